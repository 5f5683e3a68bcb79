/*
 * A clock that stands still, for pictures that must come out the same each time. Preloaded into a
 * PostgreSQL server and into the program (LD_PRELOAD), it answers every question for the time of
 * day with the number in the file QUEUETOP_CLOCK (microseconds since 1970), which the fixture moves
 * on by COPY TO. The monotonic clock, and so every timer, goes on. Used by tests/screenshots.sh
 * only.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict tv, void *restrict zone);

/* The last number that could be read; the real time where there is no file. */
static int64_t
now_us(void)
{
    static int64_t last;
    char text[32] = "";
    const char *path = getenv("QUEUETOP_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    if (n == 17 && text[16] == '\n') /* not one that is just being written */
        last = strtoll(text, NULL, 10);
    return last;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    int64_t us = now_us();

    (void)zone;
    tv->tv_sec = us / 1000000;
    tv->tv_usec = us % 1000000;
    return 0;
}

time_t
time(time_t *out)
{
    time_t t = now_us() / 1000000;

    if (out)
        *out = t;
    return t;
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
    int64_t us = clock == CLOCK_REALTIME ? now_us() : 0;

    if (clock != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, clock, ts);
    ts->tv_sec = us / 1000000;
    ts->tv_nsec = us % 1000000 * 1000;
    return 0;
}
