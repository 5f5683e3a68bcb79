/*
 * The terminal that tests type into: see term.h. libvterm keeps the screen; this file moves bytes
 * between it and the pty, waits, and reads cells. Golden screens are in golden.c.
 */
#include "tests/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include "tests/harness.h"
#include "tests/proc.h"

enum { SLICE_MS = 4, ESC_MS = 40, LIVE_MAX = 16, ENV_MAX = 48 };

/* The programs that run now, so that a failed test leaves none of them behind. */
static struct {
    pid_t pids[LIVE_MAX];
    pid_t owner;
} live;

static int64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int
scaled(int ms)
{
    const char *slow = getenv("VT_SLOW");

    return ms * (slow && *slow ? (int)strtol(slow, NULL, 10) : 1);
}

static _Noreturn void
report(const struct vt *vt, const char *what, const char *text)
{
    int row, col;

    vt_cursor(vt, &row, &col);
    fprintf(stderr, "term: %s: %s\nterm: %dx%d, cursor %d,%d %s%s\n%s----\n", what, text, vt->cols,
            vt->rows, row, col, vt->is_cursor_shown ? "shown" : "hidden",
            vt->has_ended ? ", the program has ended" : "", vt_screen_text(vt));
    _fail(__FILE__, __LINE__);
    abort();
}

/* --- what libvterm tells us ------------------------------------------------------------------- */

static int
on_prop(VTermProp prop, VTermValue *value, void *user)
{
    struct vt *vt = user;

    if (prop == VTERM_PROP_ALTSCREEN)
        vt->in_alt_screen = value->boolean;
    if (prop == VTERM_PROP_CURSORVISIBLE)
        vt->is_cursor_shown = value->boolean;
    if (prop == VTERM_PROP_TITLE || prop == VTERM_PROP_ICONNAME)
        vt->titles++;
    return 1;
}

static int
on_bell(void *user)
{
    ((struct vt *)user)->bells++;
    return 1;
}

static int
note_unknown(struct vt *vt, const char *what)
{
    if (vt->unknown++ == 0)
        snprintf(vt->unknown_text, sizeof vt->unknown_text, "%s", what);
    return 1;
}

static int
on_csi(const char *leader, const long args[], int n, const char *intermed, char command, void *user)
{
    char text[64];

    /* smcup and rmcup of xterm save and restore the title with CSI 22;0;0t and CSI 23;0;0t */
    if (command == 't' && n > 0 && (args[0] == 22 || args[0] == 23))
        return 1;
    snprintf(text, sizeof text, "CSI %s%ld (%d) %s%c", leader ? leader : "",
             n > 0 ? CSI_ARG(args[0]) : 0, n, intermed ? intermed : "", command);
    return note_unknown(user, text);
}

/* Since version 0.2 libvterm passes a string in fragments, and the string's command separately. */
#if VTERM_VERSION_MAJOR > 0 || VTERM_VERSION_MINOR > 1
typedef VTermStateFallbacks fallbacks;

static int
on_osc(int command, VTermStringFragment part, void *user)
{
    char text[64];

    snprintf(text, sizeof text, "OSC %d;%.*s", command, (int)part.len, part.str);
    return note_unknown(user, text);
}

static int
on_dcs(const char *command, size_t len, VTermStringFragment part, void *user)
{
    char text[64];

    snprintf(text, sizeof text, "DCS %.*s%.*s", (int)len, command, (int)part.len, part.str);
    return note_unknown(user, text);
}
#else
typedef VTermParserCallbacks fallbacks;

static int
on_osc(const char *command, size_t len, void *user)
{
    char text[64];

    snprintf(text, sizeof text, "OSC %.*s", (int)len, command);
    return note_unknown(user, text);
}

static int
on_dcs(const char *command, size_t len, void *user)
{
    char text[64];

    snprintf(text, sizeof text, "DCS %.*s", (int)len, command);
    return note_unknown(user, text);
}
#endif

static int
on_control(unsigned char control, void *user)
{
    char text[16];

    snprintf(text, sizeof text, "control %02x", control);
    return note_unknown(user, text);
}

static void
end_live(void)
{
    for (int i = 0; i < LIVE_MAX && live.owner == getpid(); i++)
        if (live.pids[i] > 0) {
            kill(live.pids[i], SIGKILL);
            waitpid(live.pids[i], NULL, 0);
        }
}

static void
set_live(pid_t from, pid_t to)
{
    if (live.owner == 0) {
        live.owner = getpid();
        atexit(end_live);
    }
    for (int i = 0; i < LIVE_MAX; i++)
        if (live.pids[i] == from) {
            live.pids[i] = to;
            return;
        }
}

static void
note_end(struct vt *vt, int options)
{
    if (!vt->has_ended && waitpid(vt->pid, &vt->status, options) == vt->pid) {
        vt->has_ended = true;
        set_live(vt->pid, 0);
    }
}

/* Reads what the program has written, and read_some() passes it on. Returns true if there was
 * some. */
static bool
take_some(struct vt *vt)
{
    char bytes[65536];
    ssize_t n = read(vt->fd, bytes, sizeof bytes);

    if (n <= 0)
        return false;
    char *raw = realloc(vt->raw, vt->raw_len + (size_t)n);
    assert_non_null(raw);
    memcpy(raw + vt->raw_len, bytes, (size_t)n);
    vt->raw = raw;
    vt->raw_len += (size_t)n;
    return true;
}

/* While the terminal accepts no input, we read the program's output: a program may read nothing
 * before its output is read. */
static void
write_all(struct vt *vt, const char *bytes, size_t len)
{
    int64_t deadline = now_ms() + scaled(VT_WAIT_MS);

    while (len > 0) {
        ssize_t n = write(vt->fd, bytes, len);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return;
        if (n < 0) {
            struct pollfd p = {.fd = vt->fd, .events = POLLOUT | POLLIN};
            if (now_ms() >= deadline)
                report(vt, "the program does not read", bytes);
            poll(&p, 1, SLICE_MS);
            take_some(vt);
            note_end(vt, WNOHANG);
            if (vt->has_ended)
                return;
            continue;
        }
        bytes += n;
        len -= (size_t)n;
        deadline = now_ms() + scaled(VT_WAIT_MS);
    }
}

/* The terminal's answers to the program's questions. */
static void
on_output(const char *bytes, size_t len, void *user)
{
    write_all(user, bytes, len);
}

static void
make_screen(struct vt *vt)
{
    static const VTermScreenCallbacks callbacks = {.settermprop = on_prop, .bell = on_bell};
    static const fallbacks unknown = {
        .control = on_control, .csi = on_csi, .osc = on_osc, .dcs = on_dcs};

    vt->is_cursor_shown = true;
    vt->vterm = vterm_new(vt->rows, vt->cols);
    assert_non_null(vt->vterm);
    vterm_set_utf8(vt->vterm, 1);
    vterm_output_set_callback(vt->vterm, on_output, vt);
    vt->screen = vterm_obtain_screen(vt->vterm);
    vterm_screen_set_callbacks(vt->screen, &callbacks, vt);
    vterm_screen_set_unrecognised_fallbacks(vt->screen, &unknown, vt);
    vterm_screen_enable_altscreen(vt->screen, 1);
    vterm_screen_reset(vt->screen, 1);
}

/* --- starting and ending ---------------------------------------------------------------------- */

static _Noreturn void
become(const struct vt *vt, const char *const *argv, const char *const *env)
{
    static const char *const keep[] = {"PATH",         "TMPDIR",        "HOME",
                                       "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"};
    /* on a busy machine each query takes long: the budget of 2 % would make a console rest for half
     * a minute */
    const char *all[ENV_MAX] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC",
                                "QUEUETOP_BUDGET=100"};
    char *state = NULL;
    int n = 4;

    /* no settings of a user, and no test sees the order that another test left */
    if (asprintf(&state, "XDG_STATE_HOME=%s/state.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                 (int)getpid()) > 0)
        all[n++] = state;
    all[n++] = "XDG_CONFIG_HOME=/nonexistent";
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        char *pair = NULL;
        if (getenv(keep[i]) && asprintf(&pair, "%s=%s", keep[i], getenv(keep[i])) > 0)
            all[n++] = pair;
    }
    for (int i = 0; env && env[i] && n < ENV_MAX - 1; i++)
        all[n++] = env[i];
    clearenv();
    for (int i = 0; i < n; i++) {
        char *pair = strdup(all[i]);
        char *equals = pair ? strchr(pair, '=') : NULL;
        if (!equals)
            _exit(126);
        *equals = 0;
        setenv(pair, equals + 1, 1);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL); /* a shell makes its background programs ignore both */
    signal(SIGQUIT, SIG_DFL);
    if (login_tty(dup(vt->slave)))
        _exit(126);
    /* exec does not write to its arguments, but its type has no const */
    char **words = calloc(64, sizeof *words);
    for (int i = 0; words && argv[i] && i < 63; i++)
        words[i] = strdup(argv[i]);
    if (words)
        execvp(argv[0], words);
    perror(argv[0]);
    _exit(127);
}

void
vt_spawn(struct vt *vt, int rows, int cols, const char *const *argv, const char *const *env)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    *vt = (struct vt){.rows = rows, .cols = cols};
    if (openpty(&vt->fd, &vt->slave, NULL, NULL, &size))
        fail_msg("openpty: %s", strerror(errno));
    fcntl(vt->fd, F_SETFD, FD_CLOEXEC);
    fcntl(vt->slave, F_SETFD, FD_CLOEXEC);
    fcntl(vt->fd, F_SETFL, O_NONBLOCK);
    tcgetattr(vt->slave, &vt->before);
    make_screen(vt);
    fflush(NULL);
    vt->pid = fork();
    assert_true(vt->pid >= 0);
    if (vt->pid == 0)
        become(vt, argv, env);
    set_live(0, vt->pid);
}

/* What the program remembered: see become(). */
static void
drop_state(pid_t pid)
{
    static const char *const paths[] = {"/queuetop/state", "/queuetop", ""};
    const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char path[300];

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/state.%d%s", tmp, (int)pid, paths[i]);
        remove(path);
    }
}

void
vt_done(struct vt *vt)
{
    if (!vt->vterm)
        return;
    if (!vt->has_ended) {
        kill(vt->pid, SIGKILL);
        note_end(vt, 0);
    }
    drop_state(vt->pid);
    close(vt->fd);
    close(vt->slave);
    vterm_free(vt->vterm);
    free(vt->raw);
    vt->vterm = NULL;
    vt->raw = NULL;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Reads what is there into the screen. Returns true if there was something. */
static bool
read_some(struct vt *vt)
{
    char bytes[65536];

    take_some(vt);
    size_t n = vt->raw_len - vt->fed < sizeof bytes ? vt->raw_len - vt->fed : sizeof bytes;
    if (n == 0)
        return false;
    memcpy(bytes, vt->raw + vt->fed, n); /* an answer of the terminal may take more meanwhile */
    vt->fed += n;
    vterm_input_write(vt->vterm, bytes, n);
    return true;
}

/* Waits at most ms for output and reads the output. Returns true if there was some. */
static bool
wait_output(struct vt *vt, int ms)
{
    struct pollfd p = {.fd = vt->fd, .events = POLLIN};

    if (vt->fed == vt->raw_len && poll(&p, 1, ms) <= 0)
        return false;
    return read_some(vt);
}

void
vt_pump(struct vt *vt)
{
    int64_t deadline = now_ms() + scaled(VT_WAIT_MS);

    while (read_some(vt))
        if (now_ms() >= deadline)
            report(vt, "the program never rests", "");
    note_end(vt, WNOHANG);
    vterm_screen_flush_damage(vt->screen);
}

bool
vt_computes(const struct vt *vt)
{
    char path[64], text[256] = "";

    if (vt->has_ended)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)vt->pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *end = strrchr(text, ')');
    return end && strlen(end) > 2 && strchr("RDT", end[2]);
}

/* poll() alone also counts the bytes that are still on their way to the program. */
static bool
has_unread(const struct vt *vt)
{
    struct pollfd unread = {.fd = vt->slave, .events = POLLIN};

    return !vt->has_ended && poll(&unread, 1, 0) > 0 && (unread.revents & POLLIN);
}

void
vt_settle(struct vt *vt, int quiet_ms)
{
    int64_t last = now_ms(), deadline = last + scaled(VT_WAIT_MS), rest = 0;

    while (rest < quiet_ms && last < deadline) {
        bool has_output = wait_output(vt, SLICE_MS);
        int64_t now = now_ms();
        note_end(vt, WNOHANG);
        if (has_output || has_unread(vt))
            rest = 0;
        else if (!vt_computes(vt)) /* no more than was waited: a starved test has not looked */
            rest += now - last < SLICE_MS ? now - last : SLICE_MS;
        last = now;
    }
}

/* Waits until text is on the screen (in that row, or any when row is -1), or until it is not. */
static bool
wait_text(struct vt *vt, const char *text, int row, bool is_wanted, int timeout_ms)
{
    int64_t deadline = now_ms() + timeout_ms;

    for (;;) {
        vt_pump(vt);
        bool is_there =
            row >= 0 ? strstr(vt_row(vt, row), text) != NULL : vt_find(vt, text, NULL, NULL);
        if (is_there == is_wanted)
            return true;
        if (now_ms() >= deadline)
            return false;
        if (vt->has_ended && !wait_output(vt, 0))
            return false;
        if (!wait_output(vt, SLICE_MS))
            note_end(vt, WNOHANG);
    }
}

void
vt_want(struct vt *vt, const char *text)
{
    if (!wait_text(vt, text, -1, true, scaled(VT_WAIT_MS)))
        report(vt, "did not come", text);
}

void
vt_gone(struct vt *vt, const char *text)
{
    if (!wait_text(vt, text, -1, false, scaled(VT_WAIT_MS)))
        report(vt, "did not go", text);
}

void
vt_want_row(struct vt *vt, int row, const char *text)
{
    if (!wait_text(vt, text, row, true, scaled(VT_WAIT_MS)))
        report(vt, "did not come in its row", text);
}

bool
vt_came(struct vt *vt, const char *text, int timeout_ms)
{
    return wait_text(vt, text, -1, true, timeout_ms);
}

int
vt_exit_status(struct vt *vt)
{
    int64_t deadline = now_ms() + scaled(VT_WAIT_MS);

    while (!vt->has_ended) {
        if (now_ms() >= deadline)
            report(vt, "did not end", "the program");
        if (!wait_output(vt, SLICE_MS))
            note_end(vt, WNOHANG);
    }
    vt_pump(vt);
    return proc_code(vt->status);
}

void
vt_is_tame(struct vt *vt)
{
    static const char *const bad[] = {"\x1b", "\x07", "\xe2\x80\xae", "\xc2\x9b"};

    assert_int_equal(vt_exit_status(vt), 0);
    assert_int_equal(vt->unknown + vt->titles, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(memmem(vt->raw, vt->raw_len, bad[i], strlen(bad[i])));
}

void
vt_ended_well(struct vt *vt, int status)
{
    struct termios after;
    int got = vt_exit_status(vt);

    if (got != status)
        report(vt, "ended with another status", strsignal(got > 128 ? got - 128 : 0));
    if (vt->in_alt_screen || !vt->is_cursor_shown)
        report(vt, "not left", vt->in_alt_screen ? "alternate screen" : "hidden cursor");
    if (vt->unknown > 0)
        report(vt, "unknown control sequence", vt->unknown_text);
    tcgetattr(vt->slave, &after);
    assert_int_equal(after.c_iflag, vt->before.c_iflag);
    assert_int_equal(after.c_oflag, vt->before.c_oflag);
    assert_int_equal(after.c_cflag, vt->before.c_cflag);
    assert_int_equal(after.c_lflag, vt->before.c_lflag);
    assert_memory_equal(after.c_cc, vt->before.c_cc, sizeof after.c_cc);
}

/* --- typing ----------------------------------------------------------------------------------- */

static const struct {
    const char *name, *bytes;
} keys[] = {
    {"space", " "       },
    {"enter", "\r"      },
    {"tab",   "\t"      },
    {"btab",  "\033[Z"  },
    {"s-tab", "\033[Z"  },
    {"esc",   "\033"    },
    {"bs",    "\177"    },
    {"del",   "\033[3~" },
    {"ins",   "\033[2~" },
    {"up",    "\033OA"  },
    {"down",  "\033OB"  },
    {"right", "\033OC"  },
    {"left",  "\033OD"  },
    {"home",  "\033OH"  },
    {"end",   "\033OF"  },
    {"pgup",  "\033[5~" },
    {"pgdn",  "\033[6~" },
    {"f1",    "\033OP"  },
    {"f2",    "\033OQ"  },
    {"f3",    "\033OR"  },
    {"f4",    "\033OS"  },
    {"f5",    "\033[15~"},
    {"f6",    "\033[17~"},
    {"f7",    "\033[18~"},
    {"f8",    "\033[19~"},
    {"f9",    "\033[20~"},
    {"f10",   "\033[21~"},
    {"f11",   "\033[23~"},
    {"f12",   "\033[24~"},
};

static void
type_key(struct vt *vt, const char *name)
{
    char bytes[256];

    if (strncmp(name, "text:", 5) == 0) {
        vt_type(vt, name + 5);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0) {
            vt_type(vt, keys[i].bytes);
            return;
        }
    if (strncmp(name, "C-", 2) == 0 && name[2] && !name[3])
        snprintf(bytes, sizeof bytes, "%c", name[2] & 0x1f);
    else if (strncmp(name, "M-", 2) == 0 && name[2] && !name[3])
        snprintf(bytes, sizeof bytes, "\033%c", name[2]);
    else if (strlen(name) <= 4 && ((name[0] & 0x80) || !name[1]))
        snprintf(bytes, sizeof bytes, "%s", name);
    else
        fail_msg("term: no such key: %s", name);
    vt_type(vt, bytes);
}

void
vt_keys(struct vt *vt, const char *names)
{
    while (*names) {
        char name[256];
        size_t len = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, names);
        if (len > 0)
            type_key(vt, name);
        /* with another key at once, it would be read as Alt and that key */
        if (strcmp(name, "esc") == 0)
            vt_settle(vt, scaled(ESC_MS));
        names += len + (names[len] == ' ');
    }
}

void
vt_type(struct vt *vt, const char *bytes)
{
    write_all(vt, bytes, strlen(bytes));
}

void
vt_paste(struct vt *vt, const char *text)
{
    vt_type(vt, "\033[200~");
    vt_type(vt, text);
    vt_type(vt, "\033[201~");
}

void
vt_resize(struct vt *vt, int rows, int cols)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    vt_pump(vt);
    vt->rows = rows;
    vt->cols = cols;
    vterm_set_size(vt->vterm, rows, cols);
    ioctl(vt->fd, TIOCSWINSZ, &size);
}

void
vt_signal(struct vt *vt, int sig)
{
    if (!vt->has_ended)
        kill(vt->pid, sig);
}

/* --- looking ---------------------------------------------------------------------------------- */

static int
put_utf8(char *out, uint32_t c)
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3f)), 2;
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static int
colour(const VTermColor *c)
{
    if (VTERM_COLOR_IS_DEFAULT_FG(c) || VTERM_COLOR_IS_DEFAULT_BG(c))
        return VT_DEFAULT;
    if (VTERM_COLOR_IS_INDEXED(c))
        return c->indexed.idx;
    return 0x1000000 + (c->rgb.red << 16) + (c->rgb.green << 8) + c->rgb.blue;
}

struct vt_cell
vt_cell(const struct vt *vt, int row, int col)
{
    VTermScreenCell got;
    VTermPos pos = {.row = row, .col = col};
    struct vt_cell cell = {.text = " ", .fg = VT_DEFAULT, .bg = VT_DEFAULT};
    int len = 0;

    if (!vterm_screen_get_cell(vt->screen, pos, &got))
        return cell;
    if (got.chars[0] == UINT32_MAX)
        cell.text[0] = 0;
    else if (got.chars[0]) {
        for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && got.chars[i]; i++)
            len += put_utf8(cell.text + len, got.chars[i]);
        cell.text[len] = 0;
    }
    cell.fg = colour(&got.fg);
    cell.bg = colour(&got.bg);
    cell.bold = got.attrs.bold;
    cell.underline = got.attrs.underline;
    cell.reverse = got.attrs.reverse;
    cell.italic = got.attrs.italic;
    cell.strike = got.attrs.strike;
    return cell;
}

/* Appends the text of a row without trailing blanks. Returns the length of the text. */
static size_t
put_row(const struct vt *vt, int row, char *out)
{
    size_t len = 0, end = 0;

    for (int col = 0; col < vt->cols; col++) {
        struct vt_cell cell = vt_cell(vt, row, col);
        size_t n = strlen(cell.text);
        memcpy(out + len, cell.text, n);
        len += n;
        if (strcmp(cell.text, " ") != 0)
            end = len;
    }
    out[end] = 0;
    return end;
}

/* Gives a buffer for that many rows. The next call reuses the buffer. */
static char *
text_buffer(const struct vt *vt, int rows)
{
    static char *text;

    char *grown = realloc(text, (size_t)rows * ((size_t)vt->cols * sizeof(struct vt_cell) + 2) + 1);
    assert_non_null(grown);
    text = grown;
    text[0] = 0;
    return text;
}

const char *
vt_row(const struct vt *vt, int row)
{
    char *text = text_buffer(vt, 1);

    put_row(vt, row, text);
    return text;
}

const char *
vt_screen_text(const struct vt *vt)
{
    char *text = text_buffer(vt, vt->rows);
    size_t len = 0;

    for (int row = 0; row < vt->rows; row++) {
        len += put_row(vt, row, text + len);
        text[len++] = '\n';
    }
    text[len] = 0;
    return text;
}

bool
vt_find(const struct vt *vt, const char *text, int *row, int *col)
{
    for (int r = 0; r < vt->rows; r++) {
        const char *line = vt_row(vt, r), *hit = strstr(line, text);
        if (!hit)
            continue;
        size_t bytes = (size_t)(hit - line), seen = 0;
        int c = 0;
        while (seen < bytes)
            seen += strlen(vt_cell(vt, r, c++).text);
        if (row)
            *row = r;
        if (col)
            *col = c;
        return true;
    }
    return false;
}

void
vt_cursor(const struct vt *vt, int *row, int *col)
{
    VTermPos pos;

    vterm_state_get_cursorpos(vterm_obtain_state(vt->vterm), &pos);
    *row = pos.row;
    *col = pos.col;
}
