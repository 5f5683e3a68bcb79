/* Modes, output queue, rescue. The data for the rescue is static, because a signal handler can
 * reach nothing else. */
#include "ui/term/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "model/base/mem.h"

enum { RESCUE_MAX = 256, REPLAY_MAX = 64 * 1024, ALT_STACK = 64 * 1024, CLIPBOARD_MAX = 64 * 1024 };

struct tty {
    int fd;
    struct termios raw;
    struct buf queue;
    size_t sent; /* of queue */
    bool hung;
};

static const int fatal[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGABRT, SIGSYS,
                            SIGTRAP, SIGTERM, SIGHUP, SIGQUIT, SIGINT,  SIGXCPU};
enum { FATAL = sizeof fatal / sizeof fatal[0] };

static struct {
    volatile sig_atomic_t taken;
    pid_t pid; /* a child that exits must not touch our terminal */
    int fd;
    struct termios modes;
    int flags; /* flags of a file that is shared with the program that started us; -1 = the file is
                  our own */
    char bytes[RESCUE_MAX];
    size_t len;
    int err_was, err_mem; /* standard error while it is taken; -1 = left alone */
    struct sigaction was[FATAL];
    bool installed;
} rescue = {.flags = -1, .err_was = -1, .err_mem = -1};

/* The sanitizers end the program without exit(). Weak, because the function exists only in their
 * builds. */
/* NOLINTNEXTLINE(readability-identifier-naming) */
extern void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

/* ncurses leaks some memory if TERM is unknown; we can't help that. */
/* NOLINTBEGIN(readability-identifier-naming) */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);
const char *
__lsan_default_suppressions(void)
{
    return "leak:new_prescr\n";
}

/* A suppressed leak is no report. */
const char *
__lsan_default_options(void)
{
    return "print_suppressions=0";
}
/* NOLINTEND(readability-identifier-naming) */

/* --- standard error --------------------------------------------------------------------------- */

static void
hush(void)
{
    rescue.err_was = rescue.err_mem = -1;
    if (!isatty(STDERR_FILENO))
        return;
    int was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    int mem = memfd_create("stderr", MFD_CLOEXEC);
    if (was >= 0 && mem >= 0 && dup2(mem, STDERR_FILENO) >= 0) {
        rescue.err_was = was;
        rescue.err_mem = mem;
        return;
    }
    if (was >= 0)
        close(was);
    if (mem >= 0)
        close(mem);
}

/* Safe in a signal handler. Prints the last 64 kB of standard error that came meanwhile. */
static void
speak(void)
{
    char part[4096];
    ssize_t n;

    if (rescue.err_was < 0)
        return;
    off_t end = lseek(rescue.err_mem, 0, SEEK_END), at = end > REPLAY_MAX ? end - REPLAY_MAX : 0;
    dup2(rescue.err_was, STDERR_FILENO);
    close(rescue.err_was);
    rescue.err_was = -1;
    while ((n = pread(rescue.err_mem, part, sizeof part, at)) > 0) {
        if (write(STDERR_FILENO, part, (size_t)n) != n)
            break;
        at += n;
    }
    close(rescue.err_mem);
    rescue.err_mem = -1;
}

/* --- the rescue ------------------------------------------------------------------------------- */

/* Restores the terminal. Safe in a signal handler; does nothing if the terminal is not taken.
 * SIGTTOU is blocked, because setting modes would stop a program in the background. */
static void
set_modes(int fd, const struct termios *modes)
{
    sigset_t ttou, was;

    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    sigprocmask(SIG_BLOCK, &ttou, &was);
    while (tcsetattr(fd, TCSANOW, modes) < 0 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, &was, NULL);
}

/* Restores the flags of a shared file. A file of our own was opened with O_NONBLOCK and needs
 * nothing. Safe in a signal handler. */
static void
set_flags(int fd, int more)
{
    if (rescue.flags >= 0)
        (void)fcntl(fd, F_SETFL, rescue.flags | more);
}

/* Writes all bytes or gives up. If the terminal takes nothing, its waiting output is dropped once.
 */
static void
write_all(int fd, const char *s, size_t len)
{
    bool flushed = false;

    while (len > 0) {
        ssize_t n = write(fd, s, len);
        if (n > 0) {
            s += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN && !flushed) {
            flushed = true;
            tcflush(fd, TCOFLUSH);
        } else if (n == 0 || errno != EINTR) {
            return;
        }
    }
}

static void
rescue_now(void)
{
    int was = errno;

    if (!rescue.taken || rescue.pid != getpid())
        return;
    rescue.taken = 0;
    write_all(rescue.fd, rescue.bytes, rescue.len);
    set_modes(rescue.fd, &rescue.modes);
    set_flags(rescue.fd, 0);
    speak();
    errno = was;
}

static void
on_fatal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    rescue_now();
    for (int i = 0; i < FATAL; i++)
        if (fatal[i] == signo)
            sigaction(signo, &rescue.was[i], NULL);
    if (info->si_code <= 0 || signo == SIGTERM || signo == SIGHUP || signo == SIGINT ||
        signo == SIGQUIT)
        raise(signo); /* the signal arrives when this returns; a real fault happens again */
}

static void
install_rescue(void)
{
    static char stack[ALT_STACK];
    stack_t old, ours = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
        sigaltstack(&ours, NULL); /* so that an overflow of the stack can be handled too */
    sigemptyset(&act.sa_mask);
    for (int i = 0; i < FATAL; i++) {
        sigaction(fatal[i], NULL, &rescue.was[i]);
        bool fault = fatal[i] == SIGSEGV || fatal[i] == SIGBUS || fatal[i] == SIGFPE ||
                     fatal[i] == SIGILL || fatal[i] == SIGABRT;
        bool handled = rescue.was[i].sa_flags & SA_SIGINFO || rescue.was[i].sa_handler != SIG_DFL;
        if (fault || !handled)
            sigaction(fatal[i], &act, NULL);
    }
    if (rescue.installed)
        return;
    rescue.installed = true;
    atexit(rescue_now);
    mem_on_abort(rescue_now);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(rescue_now);
}

static void
uninstall(void)
{
    struct sigaction now;

    for (int i = 0; i < FATAL; i++)
        if (sigaction(fatal[i], NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
            now.sa_sigaction == on_fatal)
            sigaction(fatal[i], &rescue.was[i], NULL);
}

/* --- taking and giving ------------------------------------------------------------------------ */

static struct termios
raw_modes(struct termios m)
{
    m.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | ISTRIP | IXON);
    m.c_oflag &= ~(tcflag_t)(ONLCR | TABDLY);
    m.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
    m.c_cc[VMIN] = 1;
    m.c_cc[VTIME] = 0;
    m.c_cc[VINTR] = m.c_cc[VQUIT] = _POSIX_VDISABLE;
    return m;
}

/* Finds a standard file that is a terminal and can be read and written. The file is not opened
 * again, so its flags are also those of the shell and are restored with the modes. */
static int
share_standard(void)
{
    static const int files[] = {STDOUT_FILENO, STDIN_FILENO, STDERR_FILENO};

    for (int i = 0; i < 3; i++) {
        int flags = fcntl(files[i], F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || !isatty(files[i]))
            continue;
        rescue.flags = flags;
        return fcntl(files[i], F_DUPFD_CLOEXEC, 3);
    }
    return -1;
}

/* After su the terminal device belongs to another user, so it can't be opened. "su -c" also starts
 * a session without a controlling terminal, so there is no /dev/tty. */
static int
open_again(void)
{
    char name[256];
    int flags = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, fd = -1;

    rescue.flags = -1;
    if (ttyname_r(STDOUT_FILENO, name, sizeof name) == 0)
        fd = open(name, flags);
    if (fd < 0)
        fd = open("/dev/tty", flags);
    int error = errno;
    if (fd < 0 && (fd = share_standard()) < 0)
        errno = error;
    return fd;
}

bool
tty_open(struct tty **out, struct err *e)
{
    struct termios modes;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return fail(e, ERR_USAGE,
                    "the console needs a terminal; in pipes and scripts use the verbs, for example "
                    "'queuetop queues --json'");
    int fd = open_again();
    if (fd < 0 || tcgetattr(fd, &modes) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return fail(e, ERR_SYS, "the terminal can't be opened: %s", strerror(error));
    }
    struct tty *t = xcalloc(1, sizeof *t);
    t->fd = fd;
    rescue.modes = modes;
    t->raw = raw_modes(modes);
    *out = t;
    return true;
}

void
tty_close(struct tty *t)
{
    if (!t)
        return;
    tty_give(t, "", 0);
    close(t->fd);
    buf_free(&t->queue);
    free(t);
}

int
tty_fd(const struct tty *t)
{
    return t->fd;
}

void
tty_set_rescue(struct tty *t, const char *bytes, size_t len)
{
    rescue.len = len < RESCUE_MAX ? len : RESCUE_MAX;
    memcpy(rescue.bytes, bytes, rescue.len);
    rescue.fd = t->fd;
}

static bool
in_background(int fd)
{
    pid_t front = tcgetpgrp(fd);

    return front > 0 && front != getpgrp();
}

void
tty_take(struct tty *t)
{
    while (in_background(t->fd))
        raise(SIGSTOP); /* until the shell says fg */
    set_flags(t->fd, O_NONBLOCK);
    if (rescue.taken) {
        set_modes(t->fd, &t->raw);
        return;
    }
    tcgetattr(t->fd, &rescue.modes);
    rescue.pid = getpid();
    rescue.fd = t->fd;
    hush();
    install_rescue();
    rescue.taken = 1;
    set_modes(t->fd, &t->raw);
}

void
tty_give(struct tty *t, const char *last, size_t len)
{
    if (!rescue.taken)
        return;
    if (t->sent < t->queue.len) /* CAN ends a sequence that was sent in part */
        write_all(t->fd, "\030", 1);
    buf_clear(&t->queue);
    t->sent = 0;
    write_all(t->fd, last, len);
    rescue.taken = 0;
    set_modes(t->fd, &rescue.modes);
    set_flags(t->fd, 0);
    uninstall();
    speak();
}

void
tty_stop(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL}, was;
    sigset_t stop, mask;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigaction(SIGTSTP, &dfl, &was);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, &mask); /* the process stops here until SIGCONT */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGTSTP, &was, NULL);
}

/* --- output ----------------------------------------------------------------------------------- */

void
tty_put(struct tty *t, const char *bytes, size_t len)
{
    /* ncurses resets the palette whenever its screen comes up again: the user's own palette would
     * be lost */
    static const char reset[] = "\033]104\a";
    const char *found;

    while ((found = memmem(bytes, len, reset, sizeof reset - 1))) {
        size_t before = (size_t)(found - bytes);
        buf_add(&t->queue, bytes, before);
        bytes = found + sizeof reset - 1;
        len -= before + sizeof reset - 1;
    }
    buf_add(&t->queue, bytes, len);
}

bool
tty_flush(struct tty *t)
{
    while (t->sent < t->queue.len && !t->hung) {
        ssize_t n = write(t->fd, t->queue.data + t->sent, t->queue.len - t->sent);
        if (n > 0) {
            t->sent += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            return false;
        } else if (n == 0 || errno != EINTR) {
            t->hung = true;
        }
    }
    buf_clear(&t->queue);
    t->sent = 0;
    return true;
}

bool
tty_hung(const struct tty *t)
{
    return t->hung;
}

void
tty_set_hung(struct tty *t)
{
    t->hung = true;
}

bool
tty_size(const struct tty *t, int *w, int *h)
{
    struct winsize ws;

    if (ioctl(t->fd, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0 || ws.ws_row == 0)
        return false;
    *w = ws.ws_col;
    *h = ws.ws_row;
    return true;
}

void
tty_unpad(struct buf *b, const char *s)
{
    while (*s) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end)
            s = end + 1;
        else
            buf_add(b, s++, 1);
    }
}

/* Whether tmux or screen is between us and the terminal; both drop sequences that they do not know.
 */
enum mux { MUX_NONE, MUX_TMUX, MUX_SCREEN };

static enum mux
mux_here(void)
{
    const char *term = getenv("TERM"), *tmux = getenv("TMUX");

    if (!term || (strncmp(term, "tmux", 4) != 0 && strncmp(term, "screen", 6) != 0))
        return MUX_NONE;
    return term[0] == 't' || (tmux && *tmux) ? MUX_TMUX : MUX_SCREEN;
}

/* Wraps a sequence so that tmux or screen passes it to the terminal outside. tmux needs each ESC
 * twice; screen takes only short strings, and the terminal joins them. */
static void
pass_through(struct buf *out, enum mux mux, const char *s, size_t len)
{
    enum { SCREEN_PART = 600 };

    for (size_t at = 0, n; mux == MUX_SCREEN && at < len; at += n) {
        n = len - at < SCREEN_PART ? len - at : SCREEN_PART;
        buf_str(out, "\033P");
        buf_add(out, s + at, n);
        buf_str(out, "\033\\");
    }
    if (mux != MUX_TMUX)
        return;
    buf_str(out, "\033Ptmux;");
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\033')
            buf_str(out, "\033");
        buf_add(out, s + i, 1);
    }
    buf_str(out, "\033\\");
}

static void
add_base64(struct buf *out, const char *s, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        const unsigned char *p = (const unsigned char *)s + i;
        size_t n = len - i < 3 ? len - i : 3;
        unsigned v = p[0] * 65536u + (n > 1 ? p[1] * 256u : 0) + (n > 2 ? p[2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                        n > 2 ? digits[v & 63] : '='};
        buf_add(out, four, sizeof four);
    }
}

size_t
tty_clipboard(struct tty *t, const char *s, size_t len)
{
    struct buf b = {0};
    enum mux mux = mux_here();
    size_t n = len < CLIPBOARD_MAX ? len : CLIPBOARD_MAX;

    while (n < len && n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80)
        n--; /* no half of a character */
    buf_str(&b, "\033]52;c;");
    add_base64(&b, s, n);
    buf_str(&b, "\a");
    if (mux != MUX_SCREEN) /* tmux takes it for itself, too, if set-clipboard is on */
        buf_add(&t->queue, b.data, b.len);
    pass_through(&t->queue, mux, b.data, b.len);
    buf_free(&b);
    tty_flush(t);
    return n;
}
