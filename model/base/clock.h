/* The only clock. Monotonic milliseconds drive timers; wall-clock milliseconds are for display.
 * QUEUETOP_NOW (milliseconds since 1970, or an ISO time in UTC) freezes the wall clock for tests.
 */
#ifndef MODEL_BASE_CLOCK_H
#define MODEL_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"

int64_t clock_ms(void);       /* monotonic */
int64_t clock_us(void);       /* monotonic */
int64_t clock_slept_ms(void); /* how long this machine was suspended since it was started; clock_ms
                                 stands still then */
int64_t clock_wall_ms(void);  /* since 1970, frozen by QUEUETOP_NOW */

/* How far another wall clock is ahead of ours (negative: behind). The other clock showed `there` at
 * some moment between `from` and `until` on our clock. The result is the difference that explains
 * these three times and is nearest to `was`, the difference that was known before (0 = none): a
 * slow answer, which explains many differences, changes nothing. */
int64_t clock_ahead_ms(int64_t there, int64_t from, int64_t until, int64_t was);
enum { CLOCK_SKEW_MS = 2000 }; /* a smaller difference is not reported */

/* "90s", "5m", "2h", "7d", "1h30m", "250ms" -> milliseconds. A number without a unit is refused, as
 * one reader takes it for days and the next for seconds; 0 needs none. At most 100 years. Every
 * option, field, filter and setting that is a time is read by this function; setting_value() and
 * cron_next() keep the same rule on the server. */
bool duration_parse(const char *s, int64_t *ms, struct err *e) __attribute__((warn_unused_result));
/* The same in the largest unit that gives a whole number: "90s", "7d". */
void duration_write(char *text, size_t size, int64_t ms);

#endif
