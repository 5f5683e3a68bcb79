/* The only clock, and durations as people write them. */
#include "model/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t
clock_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t
clock_ms(void)
{
    return clock_us() / 1000;
}

int64_t
clock_slept_ms(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_BOOTTIME, &t); /* first: so the result is never too large */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 - clock_ms();
}

/* QUEUETOP_NOW: digits only are milliseconds, else YYYY-MM-DD[(T| )HH:MM:SS][Z] in UTC. */
static bool
parse_now(const char *s, int64_t *ms)
{
    struct tm tm = {0};
    char *end = NULL;

    *ms = strtoll(s, &end, 10);
    if (end > s && *end == 0)
        return true;
    const char *rest = strptime(s, "%Y-%m-%d", &tm);
    if (rest && (*rest == 'T' || *rest == ' '))
        rest = strptime(rest + 1, "%H:%M:%S", &tm);
    if (!rest || (*rest != 0 && strcmp(rest, "Z") != 0))
        return false;
    *ms = (int64_t)timegm(&tm) * 1000;
    return true;
}

int64_t
clock_wall_ms(void)
{
    const char *frozen = getenv("QUEUETOP_NOW");
    struct timespec t;
    int64_t ms;

    if (frozen && *frozen && parse_now(frozen, &ms))
        return ms;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t
clock_ahead_ms(int64_t there, int64_t from, int64_t until, int64_t was)
{
    int64_t least = there - until, most = there - from;

    return was < least ? least : was > most ? most : was;
}

struct unit {
    const char *name;
    int64_t ms;
};

static const struct unit units[] = {
    {"ms", 1       },
    {"s",  1000    },
    {"m",  60000   },
    {"h",  3600000 },
    {"d",  86400000},
};

/* The longest duration. It can be added to any time without overflow, and the server accepts it as
 * an interval. */
static const int64_t longest_ms = 100 * 365 * INT64_C(86400000);

/* The unit whose name stands at *s; moves *s behind the name. NULL = unknown. */
static const struct unit *
take_unit(const char **s)
{
    size_t len = strspn(*s, "abcdefghijklmnopqrstuvwxyz");

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == len && strncmp(*s, units[i].name, len) == 0) {
            *s += len;
            return &units[i];
        }
    return NULL;
}

bool
duration_parse(const char *s, int64_t *ms, struct err *e)
{
    const char *at = s;
    int64_t total = 0, last_unit = INT64_MAX;

    do {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > 18)
            return fail(e, ERR_USAGE, "\"%s\" is not a duration: write 90s, 5m, 2h, 1h30m or 7d",
                        s);
        int64_t n = strtoll(at, NULL, 10), part;
        const char *after = at + digits;
        const struct unit *u = n == 0 && *after == 0 && at == s ? &units[0] : take_unit(&after);
        if (*after == 0 && !u && at == s)
            return fail(e, ERR_USAGE, "\"%s\" has no unit: write %ss, %sm, %sh or %sd", s, s, s, s,
                        s);
        if (!u || u->ms >= last_unit)
            return fail(e, ERR_USAGE, "\"%s\" is not a duration: units are ms, s, m, h, d", s);
        if (__builtin_mul_overflow(n, u->ms, &part) ||
            __builtin_add_overflow(total, part, &total) || total > longest_ms)
            return fail(e, ERR_USAGE, "duration \"%s\" is too long", s);
        last_unit = u->ms;
        at = after;
    } while (*at);
    *ms = total;
    return true;
}

void
duration_write(char *text, size_t size, int64_t ms)
{
    int i = sizeof units / sizeof *units - 1;

    while (ms % units[i].ms != 0)
        i--;
    snprintf(text, size, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
}
