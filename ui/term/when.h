/* Times that a person types: "now", "10m" (from now), "18:30", "2026-11-30 06:00". */
#ifndef UI_TERM_WHEN_H
#define UI_TERM_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"

struct when {      /* both are 0 = now */
    int64_t at_ms; /* since 1970 */
    int64_t in_ms; /* from now */
};

/* A clock time without a day is the next moment with that clock time, in the zone of TZ or in UTC.
 * False: ERR_USAGE, the text is no time; ERR_DATA, the clocks skip this time, and *e names it. */
bool when_parse(const char *text, int64_t now_ms, bool utc, struct when *w, struct err *e)
    __attribute__((warn_unused_result));

#endif
