/* The debug log. Its file and level are the only global state of the program: every function must
 * be able to log, also one that runs while everything else fails. */
#include "model/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/owned.h"
#include "model/base/text.h"

enum { LINE_MAX_BYTES = 4000, LINE_CELLS = 4000 };

static int log_fd = -1;
static enum log_level log_min = LOG_WARN;
static bool log_is_quiet;
static bool log_is_gone; /* standard error: it is closed, or nobody can read it any more */
static int log_lost;     /* lines since the last one that was written */
static bool log_is_torn; /* only the start of the last one of them was written */

bool
log_open(const char *file, struct err *e)
{
    int fd = owned_append(file, 0, e);

    if (fd < 0)
        return fail_in(e, "log file");
    log_close();
    log_fd = fd;
    return true;
}

void
log_min_level(enum log_level min)
{
    log_min = min;
}

void
log_quiet(bool quiet)
{
    log_is_quiet = quiet;
}

void
log_close(void)
{
    if (log_fd >= 0)
        close(log_fd);
    log_fd = -1;
}

static void
add_stamp(struct buf *b, enum log_level level)
{
    if (log_fd < 0) {
        buf_str(b, "queuetop: ");
        return;
    }
    static const char *const names[] = {"debug", "info", "warn", "error"};
    int64_t now = clock_wall_ms();
    time_t sec = (time_t)(now / 1000);
    struct tm tm;
    char when[32];

    gmtime_r(&sec, &tm);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(b, "%s.%03dZ [%d] %s: ", when, (int)(now % 1000), (int)getpid(), names[level]);
}

/* Ends the line. A pipe that takes anything takes PIPE_BUF bytes, so no longer line is written. */
static void
end_line(struct buf *b)
{
    size_t len = b->len < PIPE_BUF ? b->len : PIPE_BUF - 1;

    while (len < b->len && ((unsigned char)b->data[len] & 0xC0) == 0x80) /* whole characters */
        len--;
    b->len = len;
    buf_str(b, "\n");
}

/* The terminal, opened anew; -1 if it is none. If nobody reads what a terminal shows (a connection
 * that hangs), poll says that it takes bytes, and write waits nevertheless. Only O_NONBLOCK
 * prevents that, and fcntl would set it for all programs that use this terminal. */
static int
open_terminal(int fd)
{
    char name[40];

    if (!isatty(fd))
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* A terminal that is stopped (Ctrl-S), or a pipe that nobody reads, must not stop the loop with its
 * heartbeats: the line is lost then, and is counted. */
static void
write_line(int fd, const struct buf *line)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int was = errno, own = open_terminal(fd);
    ssize_t n = poll(&ready, 1, 0) > 0 ? write(own < 0 ? fd : own, line->data, line->len) : -1;
    bool is_gone = ready.revents && n < 0 && (errno == EPIPE || errno == EBADF);

    if (own >= 0)
        close(own);
    if (is_gone)
        log_is_gone = log_fd < 0;
    log_lost = n == (ssize_t)line->len ? 0 : log_lost + !is_gone;
    log_is_torn = log_lost > 0 && (log_is_torn || n > 0);
    errno = was;
}

void
log_line(enum log_level level, const char *fmt, ...)
{
    bool to_stderr = log_fd < 0;
    struct buf line = {0};
    va_list ap;

    if (to_stderr && (log_is_quiet || log_is_gone || level < log_min))
        return;
    char said[LINE_MAX_BYTES];
    va_start(ap, fmt);
    vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
    if (log_is_torn)
        buf_str(&line, "\n");
    if (log_lost > 0) {
        add_stamp(&line, LOG_WARN);
        buf_printf(&line, "%d log line%s lost\n", log_lost, log_lost == 1 ? "" : "s");
    }
    add_stamp(&line, level);
    text_clean(&line, said, strlen(said), TEXT_LINE, LINE_CELLS);
    end_line(&line);
    write_line(to_stderr ? STDERR_FILENO : log_fd, &line);
    buf_free(&line);
}
