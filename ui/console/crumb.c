/*
 * The path in the row of tabs. The frame asks each view on the stack, from the bottom up, and each
 * view appends its subject.
 */
#include "ui/console/crumb.h"

#include <string.h>

#include "model/base/text.h"
#include "ui/term/grid.h"

static const char gap[] = " › ", gone[] = "… › ";

static bool
has_step(const struct buf *path, const char *step)
{
    size_t len = strlen(step);

    for (const char *at = path->data; at;) {
        const char *end = strstr(at, gap);
        if ((end ? (size_t)(end - at) : strlen(at)) == len && !strncmp(at, step, len))
            return true;
        at = end ? end + strlen(gap) : NULL;
    }
    return false;
}

void
crumb_add(struct buf *path, const char *step)
{
    if (*step && !has_step(path, step))
        buf_printf(path, "%s%s", path->len ? gap : "", step);
}

void
crumb_fit(struct buf *path, int w)
{
    const char *rest = path->len ? path->data : NULL, *next;
    int cut = 0;

    while (rest && text_width(rest, strlen(rest), TEXT_LINE) + cut > w &&
           (next = strstr(rest, gap)) != NULL) {
        rest = next + strlen(gap);
        cut = text_width(gone, strlen(gone), TEXT_LINE);
    }
    if (cut == 0)
        return;
    struct buf fitted = {0};
    buf_printf(&fitted, "%s%s", gone, rest);
    buf_free(path);
    *path = fitted;
}
