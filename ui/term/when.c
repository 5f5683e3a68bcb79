/*
 * Reads a time: a word, a duration, a clock time, or a day with a clock time. Characters that
 * strptime leaves over are an error and are not ignored.
 */
#include "ui/term/when.h"

#include <string.h>
#include <time.h>

#include "model/base/clock.h"

static bool
reads(const char *text, const char *format, struct tm *tm)
{
    const char *end = strptime(text, format, tm);

    return end && !*end;
}

/* HH:MM or HH:MM:SS. */
static bool
read_clock(const char *text, struct tm *tm)
{
    tm->tm_sec = 0;
    if (reads(text, "%H:%M:%S", tm))
        return true;
    tm->tm_sec = 0;
    return reads(text, "%H:%M", tm);
}

/* Puts the 32nd of a month and the 60th second where they belong. No zone plays a part. */
static int64_t
in_order(struct tm *tm)
{
    return timegm(tm);
}

static bool
read_day(const char *text, struct tm *tm)
{
    static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M",
                                          "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"};

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        *tm = (struct tm){0};
        if (!reads(text, formats[i], tm))
            continue;
        int mday = tm->tm_mday;
        in_order(tm);
        return tm->tm_mday == mday; /* rejects the 31st of June */
    }
    return false;
}

/* The first moment after after_ms with this day and clock time. A day has two of them in the hour
 * that the clocks repeat in autumn, and none in the hour that they skip in spring. mktime() shifts
 * a time that its tm_isdst does not fit, and a skipped one: the fields tell. */
static bool
first_after(const struct tm *want, int64_t after_ms, bool utc, int64_t *at_ms)
{
    bool found = false;

    for (int dst = -1; dst <= 1; dst++) {
        struct tm tm = *want;
        tm.tm_isdst = dst;
        int64_t ms = (int64_t)(utc ? timegm(&tm) : mktime(&tm)) * 1000;
        bool fits = tm.tm_mday == want->tm_mday && tm.tm_hour == want->tm_hour &&
                    tm.tm_min == want->tm_min && ms > after_ms;
        if (fits && (!found || ms < *at_ms)) {
            found = true;
            *at_ms = ms;
        }
    }
    return found;
}

static bool
say_skipped(const struct tm *tm, struct err *e)
{
    char text[40];

    strftime(text, sizeof text, "%H:%M on %Y-%m-%d", tm);
    return fail(e, ERR_DATA, "there is no %s: the clocks skip it", text);
}

/* The next moment with this clock time, today or tomorrow. */
static bool
find_clock(const struct tm *clock, int64_t now_ms, bool utc, int64_t *at_ms, struct err *e)
{
    time_t s = (time_t)(now_ms / 1000);
    struct tm now, tm;
    int64_t any;

    if (utc ? !gmtime_r(&s, &now) : !localtime_r(&s, &now))
        return fail(e, ERR_DATA, "the clock of this machine is wrong");
    int64_t today = in_order(&now);
    for (int day = 0; day <= 1; day++) {
        tm = now;
        tm.tm_mday += day;
        tm.tm_hour = clock->tm_hour;
        tm.tm_min = clock->tm_min;
        tm.tm_sec = clock->tm_sec;
        bool is_ahead = in_order(&tm) > today;
        if (first_after(&tm, now_ms, utc, at_ms))
            return true;
        if (is_ahead && !first_after(&tm, INT64_MIN, utc, &any))
            break; /* the user means today, where the clocks skip it: tomorrow is another time */
    }
    return say_skipped(&tm, e);
}

/* The repeated hour: the first of the two moments that is still to come, or else that was. */
static bool
find_day(const struct tm *tm, int64_t now_ms, bool utc, int64_t *at_ms, struct err *e)
{
    return first_after(tm, now_ms, utc, at_ms) || first_after(tm, INT64_MIN, utc, at_ms) ||
           say_skipped(tm, e);
}

bool
when_parse(const char *text, int64_t now_ms, bool utc, struct when *w, struct err *e)
{
    struct err ignored = {0};
    struct tm tm = {0};

    *w = (struct when){0};
    if (!strcmp(text, "now") || !strcmp(text, "0"))
        return true;
    if (duration_parse(*text == '+' ? text + 1 : text, &w->in_ms, &ignored) && w->in_ms > 0)
        return true;
    w->in_ms = 0;
    if (read_clock(text, &tm))
        return find_clock(&tm, now_ms, utc, &w->at_ms, e);
    if (read_day(text, &tm))
        return find_day(&tm, now_ms, utc, &w->at_ms, e);
    return fail(e, ERR_USAGE, "a time is now, 10m or 2h from now, 18:30, or 2026-11-30 06:00");
}
