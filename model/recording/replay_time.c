/*
 * Parses times as people type them, inside a recording.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/recording/replay.h"

enum { DAY_MS = 86400000 };

static bool
read_digits(const char **s, int digits, int max, int *out)
{
    int v = 0, n = 0;

    for (; n < digits && **s >= '0' && **s <= '9'; n++)
        v = v * 10 + *(*s)++ - '0';
    *out = v;
    return n > 0 && v <= max;
}

/* HH:MM or HH:MM:SS; *s = what follows. */
static bool
read_clock(const char **s, struct tm *tm)
{
    tm->tm_sec = 0;
    if (!read_digits(s, 2, 23, &tm->tm_hour) || *(*s)++ != ':' ||
        !read_digits(s, 2, 59, &tm->tm_min))
        return false;
    if (**s != ':')
        return true;
    (*s)++;
    return read_digits(s, 2, 59, &tm->tm_sec);
}

/* What stands behind a time. It tells the two moments apart that have the same time in the hour
 * that the clocks repeat in autumn. */
struct zone {
    bool is_offset;
    int offset_s;
    const char *name; /* of the local zone: CET or CEST; NULL = none */
};

static bool
read_zone(const char *s, bool utc, struct zone *z)
{
    int hours, minutes = 0;

    *z = (struct zone){.is_offset = utc};
    s += strspn(s, " ");
    if (!*s)
        return true;
    z->is_offset = true;
    if (!strcmp(s, "Z") || !strcmp(s, "UTC"))
        return true;
    if (*s != '+' && *s != '-') {
        tzset();
        z->is_offset = false;
        z->name = s;
        return !strcmp(s, tzname[0]) || !strcmp(s, tzname[1]);
    }
    int sign = *s++ == '-' ? -1 : 1;
    if (!read_digits(&s, 2, 14, &hours))
        return false;
    bool has_minutes = *s != '\0';
    s += *s == ':';
    if (has_minutes && !read_digits(&s, 2, 59, &minutes))
        return false;
    z->offset_s = sign * (hours * 60 + minutes) * 60;
    return !*s;
}

/* The moment with this day and time if summer time (dst) holds or not, -1 = as mktime() thinks.
 * mktime() moves a time that dst does not fit, and one that the clocks skip: the fields tell. */
static bool
find_moment(const struct tm *want, const struct zone *z, int dst, int64_t *ms)
{
    struct tm tm = *want;

    tm.tm_isdst = dst;
    *ms = (int64_t)(z->is_offset ? timegm(&tm) - z->offset_s : mktime(&tm)) * 1000;
    bool fits = tm.tm_hour == want->tm_hour && tm.tm_min == want->tm_min;
    return z->is_offset || (z->name ? fits && !strcmp(tm.tm_zone, z->name) : fits || dst < 0);
}

/* *best becomes the moment with this day and time that is in the recording and nearest to the time
 * that is shown. */
static void
take_nearest(const struct replay_state *s, const struct tm *want, const struct zone *z,
             int64_t *best)
{
    for (int dst = -1; dst <= 1; dst++) {
        int64_t ms;
        if (find_moment(want, z, dst, &ms) && ms + 999 >= s->start_ms && ms <= s->end_ms &&
            (*best < 0 || llabs(ms - s->now_ms) < llabs(*best - s->now_ms)))
            *best = ms;
    }
}

/* The same for a time of day: tries the days around the time that is shown. */
static void
take_nearest_day(const struct replay_state *s, const struct tm *clock, const struct zone *z,
                 int64_t *best)
{
    for (int day = -1; day <= 1; day++) {
        time_t t = (time_t)(s->now_ms / 1000 + z->offset_s);
        struct tm tm;
        if (z->is_offset)
            gmtime_r(&t, &tm);
        else
            localtime_r(&t, &tm);
        tm.tm_mday += day;
        tm.tm_hour = clock->tm_hour;
        tm.tm_min = clock->tm_min;
        tm.tm_sec = clock->tm_sec;
        take_nearest(s, &tm, z, best);
    }
}

static bool
read_move(const struct replay_state *s, const char *text, int64_t *ms, struct err *e)
{
    int64_t by;

    if (!duration_parse(text + 1, &by, e))
        return false;
    *ms = s->now_ms + (*text == '-' ? -by : by);
    return true;
}

bool
replay_time(const struct replay *r, const char *text, bool utc, int64_t *ms, struct err *e)
{
    struct replay_state s = replay_state(r);
    struct tm tm = {0};
    struct zone zone;
    const char *rest = text;

    if (!strcmp(text, "start") || !strcmp(text, "end")) {
        *ms = *text == 's' ? s.start_ms : s.end_ms;
        return true;
    }
    if (*text == '+' || *text == '-')
        return read_move(&s, text, ms, e);
    bool is_clock = read_clock(&rest, &tm), ok = is_clock;
    if (!is_clock) {
        rest = strptime(text, "%Y-%m-%d", &tm);
        ok = rest && (*rest == ' ' || *rest == 'T') && (rest++, read_clock(&rest, &tm));
    }
    if (!ok || !read_zone(rest, utc, &zone))
        return fail(e, ERR_USAGE,
                    "\"%.40s\" is no time: 03:10, 03:10:05, 2026-11-21 03:10, with a zone 02:30 "
                    "UTC or 02:30+01, +5m, -90s, start or end",
                    text);
    *ms = -1;
    (is_clock ? take_nearest_day : take_nearest)(&s, &tm, &zone, ms);
    return *ms >= 0 || fail(e, ERR_USAGE, "%s is not in this recording", text);
}
