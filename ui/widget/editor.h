/* A text goes through an editor of the user's own ($VISUAL, $EDITOR, else what the system has), in
 * a file that only he can read, in a directory of its own. The directory goes away however this
 * ends: a small process that waits for the editor takes it away, also when this program was killed.
 * Nothing here waits: the answer comes by the loop. The terminal is the caller's affair. */
#ifndef UI_WIDGET_EDITOR_H
#define UI_WIDGET_EDITOR_H

#include <stddef.h>

#include "model/base/err.h"
#include "model/base/loop.h"

enum { EDITOR_MOST = 16 << 20 }; /* bytes that may come back */

struct editor;
/* text = NULL: it came to nothing, *e says why. Borrowed for the call, which may free the editor.
 */
typedef void editor_fn(void *ctx, const char *text, size_t len, const struct err *e);

/* suffix: ".json", ".txt"; so that the editor knows what it is. NULL with *e when it can't start.
 */
struct editor *editor_open(struct loop *l, const char *suffix, const char *text, size_t len,
                           struct err *e);
void editor_then(struct editor *ed, editor_fn *fn, void *ctx);
/* Ends the editor when it still runs. */
void editor_free(struct editor *ed);

#endif
