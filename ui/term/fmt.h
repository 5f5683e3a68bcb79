/* Numbers and times for people. Pure: no locale, no clock, no allocation. Each function returns a
 * small struct by value; its text lives until the end of the statement: grid_str(g, r, role,
 * fmt_age(ms).s). FIELD_NULL (and NAN for doubles) becomes a dash. All times are in milliseconds.
 */
#ifndef UI_TERM_FMT_H
#define UI_TERM_FMT_H

#include <stdbool.h>
#include <stdint.h>

struct fmt {
    char s[48]; /* UTF-8, at most 47 bytes */
};

/* "2s", "4m 10s", "2h 14m", "4d 02h", "120d": at most 7 cells. Negative: "in 4m". */
struct fmt fmt_age(int64_t ms);
/* "2s", "41m", "3h", "9d": at most 4 cells up to 999 days; negative: "in 4m". */
struct fmt fmt_age_short(int64_t ms);
/* "20ms", "0.4s", "30.9s", "1m 02s", "2h 14m": at most 7 cells. */
struct fmt fmt_duration(int64_t ms);

struct fmt fmt_int(int64_t n);               /* "18234" */
struct fmt fmt_count(int64_t n);             /* "18,234" */
struct fmt fmt_about(int64_t n, int approx); /* "~18,234" if approx is 1 */
/* The same in at most w cells: "18,234", "18.2k", "18k", "1.2M"; '#' if nothing fits, because a
 * number is never cut short. */
struct fmt fmt_count_fit(int64_t n, int w);
struct fmt fmt_rate(double per_s); /* "0", "<0.1", "0.4", "96", "12,345" */
struct fmt fmt_bytes(int64_t n);   /* "412 B", "3.1 MB", "48 MB" (steps of 1024, as the server) */
/* "58%"; "<1%" and ">99%" so that 0 and 100 are exact. */
struct fmt fmt_percent(double part, double whole);

/* Times in the zone of TZ, or in UTC. */
struct fmt fmt_time(int64_t ms, bool utc);      /* "14:02:11" */
struct fmt fmt_date_time(int64_t ms, bool utc); /* "2026-11-21 14:02:11" */
/* "14:02:11" if it is today, else "11-20 14:02"; in another year "2025-11-20". */
struct fmt fmt_when(int64_t ms, int64_t now_ms, bool utc);
struct fmt fmt_iso(int64_t ms); /* "2026-11-21T14:02:11.123Z" */

/* An id in few cells: the last 8 characters if it is or ends in a uuid; the whole id if it has at
 * most 20 characters; else the id without its middle. */
struct fmt fmt_id_tail(const char *id);

/* "1 job", "402 jobs", "1,204 jobs": the plural is the noun and an s. */
struct fmt fmt_plural(int64_t n, const char *noun);
/* "1 waits", "5,056 wait", "~9 wait": the verb of one has an s. approx as in fmt_about. */
struct fmt fmt_they(int64_t n, int approx, const char *verb);

#endif
