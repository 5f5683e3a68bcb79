/*
 * Whatever a table or a line of JSON holds: each row becomes a job or is refused as the user's
 * fault, and what is written about a refused row is read again as one row.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/write/import_rows.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void
try_row(const struct import_columns *c, struct arena *mem, const struct import_row *row)
{
    struct queue_push job = {.queue = "q"};
    struct err e = {0};
    struct buf out = {0};

    if (import_is_blank(c, row))
        return;
    if (!import_job(c, mem, row, &job, &e)) {
        assert(e.kind == ERR_USAGE && *e.text);
        import_reject(c, row, e.text, &out);
        assert(out.len > 0);
    }
    buf_free(&out);
}

/* The first byte: a table or JSON. The rows end with a zero byte, so that a row may hold line ends
 * in quotes. */
int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const struct cli_list none = {0};
    struct arena *mem = arena_new();
    struct err e = {0};
    bool has_header = false;

    if (size == 0) {
        arena_free(mem);
        return 0;
    }
    struct import_columns c = {.is_json = data[0] & 1, .names = &none};
    char *text = xcalloc(size, 1);

    memcpy(text, data + 1, size - 1);
    bool ok = import_names(&none, &e);
    for (size_t at = 0; ok && at + 1 < size;) {
        const char *end = memchr(text + at, 0, size - at);
        struct import_row row = {.text = text + at, .len = (size_t)(end - text) - at, .line = 1};
        if (c.is_json || has_header)
            try_row(&c, mem, &row);
        else if (!import_header(&c, mem, &row, &e))
            break;
        has_header = true;
        at += row.len + 1;
    }
    import_done(&c);
    free(text);
    arena_free(mem);
    return 0;
}
