/*
 * Parses times as people type them, inside a recording.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/tape/replay.h"

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

/* HH:MM or HH:MM:SS up to the end. */
static bool
read_clock(const char *s, struct tm *tm)
{
    tm->tm_sec = 0;
    if (!read_digits(&s, 2, 23, &tm->tm_hour) || *s++ != ':' ||
        !read_digits(&s, 2, 59, &tm->tm_min))
        return false;
    if (*s == ':') {
        s++;
        if (!read_digits(&s, 2, 59, &tm->tm_sec))
            return false;
    }
    return !*s;
}

static int64_t
ms_of(struct tm tm, bool utc)
{
    tm.tm_isdst = -1;
    return (int64_t)(utc ? timegm(&tm) : mktime(&tm)) * 1000;
}

/* Turns a time of day into a full time: tries the days around the time that is shown, and takes the
 * nearest time that is in the recording. */
static int64_t
nearest(const struct replay_state *s, const struct tm *clock, bool utc)
{
    int64_t best = -1;

    for (int day = -1; day <= 1; day++) {
        time_t t = (time_t)(s->now_ms / 1000);
        struct tm tm;
        if (utc)
            gmtime_r(&t, &tm);
        else
            localtime_r(&t, &tm);
        tm.tm_mday += day;
        tm.tm_hour = clock->tm_hour;
        tm.tm_min = clock->tm_min;
        tm.tm_sec = clock->tm_sec;
        int64_t ms = ms_of(tm, utc);
        bool inside = ms + 999 >= s->start_ms && ms <= s->end_ms;
        if (inside && (best < 0 || llabs(ms - s->now_ms) < llabs(best - s->now_ms)))
            best = ms;
    }
    return best;
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
    const char *rest = text;

    if (!strcmp(text, "start") || !strcmp(text, "end")) {
        *ms = *text == 's' ? s.start_ms : s.end_ms;
        return true;
    }
    if (*text == '+' || *text == '-')
        return read_move(&s, text, ms, e);
    if (read_clock(text, &tm)) {
        *ms = nearest(&s, &tm, utc);
        return *ms >= 0 || fail(e, ERR_USAGE, "%s is not in this recording", text);
    }
    rest = strptime(text, "%Y-%m-%d", &tm);
    if (!rest || (*rest != ' ' && *rest != 'T') || !read_clock(rest + 1, &tm))
        return fail(e, ERR_USAGE,
                    "\"%.40s\" is no time: 03:10, 03:10:05, 2026-11-21 03:10, +5m, "
                    "-90s, start or end",
                    text);
    *ms = ms_of(tm, utc);
    if (*ms + 999 < s.start_ms || *ms > s.end_ms)
        return fail(e, ERR_USAGE, "%s is not in this recording", text);
    return true;
}
