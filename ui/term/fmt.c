/* Numbers and times as text. Every function prints into a struct that it returns by value. */
#include "ui/term/fmt.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "model/base/field.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static struct fmt format_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static struct fmt
format_text(const char *format, ...)
{
    struct fmt f = {""};
    va_list ap;

    va_start(ap, format);
    vsnprintf(f.s, sizeof f.s, format, ap);
    va_end(ap);
    return f;
}

static struct fmt
dash(void)
{
    return format_text("—");
}

struct fmt
fmt_age_short(int64_t ms)
{
    if (ms == FIELD_NULL)
        return dash();
    if (ms <= -SECOND) { /* a smaller age is only a difference between two clocks */
        struct fmt f = fmt_age_short(-ms);
        return format_text("in %.40s", f.s);
    }
    if (ms < MINUTE)
        return format_text("%ds", ms < 0 ? 0 : (int)(ms / SECOND));
    if (ms < HOUR)
        return format_text("%dm", (int)(ms / MINUTE));
    if (ms < DAY)
        return format_text("%dh", (int)(ms / HOUR));
    return format_text("%lldd", (long long)(ms / DAY));
}

struct fmt
fmt_age(int64_t ms)
{
    if (ms != FIELD_NULL && ms <= -MINUTE) {
        struct fmt f = fmt_age(-ms);
        return format_text("in %.40s", f.s);
    }
    if (ms < MINUTE || ms >= 100LL * DAY)
        return fmt_age_short(ms);
    if (ms < HOUR)
        return format_text("%dm %02ds", (int)(ms / MINUTE), (int)(ms % MINUTE / SECOND));
    if (ms < DAY)
        return format_text("%dh %02dm", (int)(ms / HOUR), (int)(ms % HOUR / MINUTE));
    return format_text("%dd %02dh", (int)(ms / DAY), (int)(ms % DAY / HOUR));
}

struct fmt
fmt_duration(int64_t ms)
{
    if (ms >= MINUTE || ms < 0)
        return fmt_age(ms);
    if (ms < 100)
        return format_text("%dms", (int)ms);
    return format_text("%d.%ds", (int)(ms / SECOND), (int)(ms % SECOND / 100));
}

struct fmt
fmt_int(int64_t n)
{
    return n == FIELD_NULL ? dash() : format_text("%lld", (long long)n);
}

struct fmt
fmt_count(int64_t n)
{
    char digits[24];
    struct fmt f = {""};
    size_t out = 0;

    if (n == FIELD_NULL)
        return dash();
    int len = snprintf(digits, sizeof digits, "%lld", (long long)(n < 0 ? -n : n));
    if (n < 0)
        f.s[out++] = '-';
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            f.s[out++] = ',';
        f.s[out++] = digits[i];
    }
    return f;
}

struct fmt
fmt_about(int64_t n, int approx)
{
    struct fmt f = fmt_count(n), about;

    if (approx != 1 || n == FIELD_NULL)
        return f;
    snprintf(about.s, sizeof about.s, "~%.*s", (int)sizeof about.s - 2, f.s);
    return about;
}

struct fmt
fmt_count_fit(int64_t n, int w)
{
    static const char units[] = " kMGTPE";
    struct fmt f = fmt_count(n);
    double v = (double)n;

    if (n == FIELD_NULL || (int)strlen(f.s) <= w)
        return f;
    for (int unit = 1; units[unit]; unit++) {
        v /= 1000;
        if (fabs(v) < 0.95) /* would show only a rounded zero */
            break;
        if (fabs(v) >= 999.95)
            continue;
        f = format_text("%.1f%c", v, units[unit]);
        if ((int)strlen(f.s) <= w && fabs(v) < 99.95)
            return f;
        if (fabs(v) >= 999.5)
            continue;
        f = format_text("%.0f%c", v, units[unit]);
        if ((int)strlen(f.s) <= w)
            return f;
    }
    f = format_text("%.*s", w > 0 ? w : 0, "########################");
    return f;
}

struct fmt
fmt_rate(double per_s)
{
    if (isnan(per_s))
        return dash();
    if (per_s > 0 && per_s < 0.05)
        return format_text("<0.1");
    if (per_s > 0 && per_s < 9.95 && fabs(per_s - round(per_s)) >= 0.05)
        return format_text("%.1f", per_s);
    if (fabs(per_s) > 9e15)
        return format_text("∞");
    return fmt_count(llround(per_s));
}

struct fmt
fmt_bytes(int64_t n)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)n;
    int unit = 0;

    if (n == FIELD_NULL)
        return dash();
    if (n < 1024)
        return format_text("%lld B", (long long)n);
    for (; v >= 1023.5 && unit < 6; unit++)
        v /= 1024;
    return v < 9.95 ? format_text("%.1f %s", v, units[unit])
                    : format_text("%.0f %s", v, units[unit]);
}

struct fmt
fmt_percent(double part, double whole)
{
    if (isnan(part) || isnan(whole) || whole <= 0)
        return dash();
    double p = part / whole * 100;
    if (p > 0 && p < 1)
        return format_text("<1%%");
    if (p > 99 && p < 100)
        return format_text(">99%%");
    return format_text("%.0f%%", p);
}

/* --- times ------------------------------------------------------------------------------------ */

static bool
split(int64_t ms, bool utc, struct tm *tm)
{
    time_t t = (time_t)(ms / SECOND - (ms % SECOND < 0));

    return ms != FIELD_NULL && (utc ? gmtime_r(&t, tm) : localtime_r(&t, tm)) != NULL;
}

struct fmt
fmt_time(int64_t ms, bool utc)
{
    struct tm tm;

    if (!split(ms, utc, &tm))
        return dash();
    return format_text("%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

struct fmt
fmt_date_time(int64_t ms, bool utc)
{
    struct tm tm;

    if (!split(ms, utc, &tm))
        return dash();
    return format_text("%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                       tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

struct fmt
fmt_when(int64_t ms, int64_t now_ms, bool utc)
{
    struct tm tm, now;

    if (!split(ms, utc, &tm) || !split(now_ms, utc, &now))
        return dash();
    if (tm.tm_year != now.tm_year)
        return format_text("%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    if (tm.tm_yday != now.tm_yday)
        return format_text("%02d-%02d %02d:%02d", tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min);
    return fmt_time(ms, utc);
}

struct fmt
fmt_iso(int64_t ms)
{
    struct tm tm;

    if (!split(ms, true, &tm))
        return format_text("%s", "");
    return format_text("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                       tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                       (int)((ms % SECOND + SECOND) % SECOND));
}

/* --- words ------------------------------------------------------------------------------------ */

enum { UUID_LEN = 36, ID_HEAD = 8, ID_TAIL = 11, ID_MOST = ID_HEAD + 1 + ID_TAIL };

/* Whether the id is a uuid or ends in one: "mail:019392a1-...". */
static bool
fmt_id_is_uuid(const char *id)
{
    size_t len = strlen(id);

    if (len < UUID_LEN)
        return false;
    id += len - UUID_LEN;
    for (int i = 0; i < UUID_LEN; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? id[i] != '-' : !isxdigit((unsigned char)id[i]))
            return false;
    }
    return true;
}

/* Moves the cut so that it is not inside a character. */
static size_t
whole_char(const char *id, size_t at, int step)
{
    while (at > 0 && ((unsigned char)id[at] & 0xc0) == 0x80)
        at += step < 0 ? (size_t)-1 : 1;
    return at;
}

struct fmt
fmt_id_tail(const char *id)
{
    size_t len = strlen(id);

    if (fmt_id_is_uuid(id))
        return format_text("%.8s", id + len - 8);
    if (len <= ID_MOST)
        return format_text("%s", id);
    return format_text("%.*s…%.*s", (int)whole_char(id, ID_HEAD, -1), id, ID_TAIL,
                       id + whole_char(id, len - ID_TAIL, 1));
}

struct fmt
fmt_plural(int64_t n, const char *noun)
{
    struct fmt count = fmt_count(n);

    return format_text("%s %.18s%s", count.s, noun, n == 1 ? "" : "s");
}

struct fmt
fmt_they(int64_t n, int approx, const char *verb)
{
    struct fmt count = fmt_about(n, approx);

    return format_text("%s %.18s%s", count.s, verb, n == 1 ? "s" : "");
}
