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

static int64_t
to_ms(struct tm *tm, bool utc)
{
    tm->tm_isdst = -1;
    return (int64_t)(utc ? timegm(tm) : mktime(tm)) * 1000;
}

static bool
read_clock(const char *text, int64_t now_ms, bool utc, int64_t *at_ms)
{
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm = {0};

    if (utc ? !gmtime_r(&now, &tm) : !localtime_r(&now, &tm))
        return false;
    tm.tm_sec = 0;
    if (!reads(text, "%H:%M:%S", &tm)) {
        tm.tm_sec = 0;
        if (!reads(text, "%H:%M", &tm))
            return false;
    }
    *at_ms = to_ms(&tm, utc);
    if (*at_ms <= now_ms) {
        tm.tm_mday++;
        *at_ms = to_ms(&tm, utc);
    }
    return true;
}

static bool
read_day(const char *text, bool utc, int64_t *at_ms)
{
    static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M",
                                          "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"};

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm tm = {0};
        if (!reads(text, formats[i], &tm))
            continue;
        int mday = tm.tm_mday;
        *at_ms = to_ms(&tm, utc);
        return tm.tm_mday == mday; /* rejects the 31st of June */
    }
    return false;
}

bool
when_parse(const char *text, int64_t now_ms, bool utc, struct when *w, struct err *e)
{
    struct err ignored = {0};

    *w = (struct when){0};
    if (!strcmp(text, "now") || !strcmp(text, "0"))
        return true;
    if (duration_parse(*text == '+' ? text + 1 : text, &w->in_ms, &ignored) && w->in_ms > 0)
        return true;
    w->in_ms = 0;
    if (read_clock(text, now_ms, utc, &w->at_ms) || read_day(text, utc, &w->at_ms))
        return true;
    return fail(e, ERR_USAGE, "a time is now, 10m or 2h from now, 18:30, or 2026-11-30 06:00");
}
