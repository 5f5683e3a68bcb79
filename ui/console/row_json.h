/* What a view shows of the row under its cursor as one JSON object: times as ISO 8601 in UTC, what
 * is not known as null, a payload as itself. */
#ifndef UI_CONSOLE_ROW_JSON_H
#define UI_CONSOLE_ROW_JSON_H

#include "model/base/mem.h"

struct app;

/* All values of the row for people, one on a line. */
void row_lines(const struct app *a, struct buf *out);
void row_json(const struct app *a, struct buf *out); /* "{}" if there is no row */

#endif
