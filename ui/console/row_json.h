/* The row under the cursor of a view as one JSON object: times as ISO 8601 in UTC, unknown values
 * as null, a JSON payload as JSON. */
#ifndef UI_CONSOLE_ROW_JSON_H
#define UI_CONSOLE_ROW_JSON_H

#include "model/base/mem.h"

struct app;

/* All values of the row as text for people, one in a line. */
void row_lines(const struct app *a, struct buf *out);
void row_json(const struct app *a, struct buf *out); /* "{}" if there is no row */

#endif
