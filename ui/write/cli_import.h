/* `push QUEUE --csv FILE` and `--json FILE`: a table, or one object in a line, becomes jobs. */
#ifndef UI_WRITE_CLI_IMPORT_H
#define UI_WRITE_CLI_IMPORT_H

#include "model/worker/queue.h"
#include "ui/cli/cli.h"

struct import_words {
    const char *file, *rejects; /* file "-" = standard input; no rejects = a bad line ends it */
    bool is_json;               /* the file has one object in a line */
    struct cli_list names;      /* --columns: NAME=COLUMN each, NAME is the name in the file */
    int64_t from_line;          /* skips the lines before it; 0 = none */
    const char *resume;         /* a file that keeps the place; NULL = none */
    struct queue_push standard; /* defaults for what a row does not have; queue = the target */
};

/* Keeps some IMPORT_RECORD bytes at most, whatever the file has: a row with more is rejected. Rows
 * go out in statements of 500; a statement that the server rejects is halved until the bad row is
 * found. Gives the exit code: CLI_PART if some rows were pushed and not all. */
int cli_import(struct cli *c, const struct import_words *w);

#endif
