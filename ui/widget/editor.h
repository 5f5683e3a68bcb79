/* Edits a text in the user's own editor ($VISUAL, $EDITOR, else one that the system has). The text
 * is in a file that only this user can read, in a directory of its own. A small process waits for
 * the editor and removes the directory, even if this program was killed. Nothing here waits: the
 * result comes through the loop. The caller lends the terminal and takes it back. */
#ifndef UI_WIDGET_EDITOR_H
#define UI_WIDGET_EDITOR_H

#include <stddef.h>

#include "model/base/err.h"
#include "model/base/loop.h"

enum { EDITOR_MOST = 16 << 20 }; /* the most bytes of an edited text */

struct editor;
/* text = NULL: there is no edited text, *e says why. The text is borrowed for the call, which may
 * free the editor. */
typedef void editor_fn(void *ctx, const char *text, size_t len, const struct err *e);

/* suffix: ".json", ".txt", so that the editor knows the type. NULL with *e if the editor can't
 * start. */
struct editor *editor_open(struct loop *l, const char *suffix, const char *text, size_t len,
                           struct err *e);
void editor_then(struct editor *ed, editor_fn *fn, void *ctx);
/* Ends the editor if it still runs. */
void editor_free(struct editor *ed);

#endif
