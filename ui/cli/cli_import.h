/* `push QUEUE --csv FILE`: a table becomes jobs. */
#ifndef UI_CLI_CLI_IMPORT_H
#define UI_CLI_CLI_IMPORT_H

#include "model/worker/queue.h"
#include "ui/cli/cli.h"

struct import_words {
    const char *file, *rejects; /* "-" = standard input; NULL = the first bad line ends it */
    int64_t from_line;          /* lines before it are passed over; 0 = none */
    struct queue_push standard; /* what a row does not say; queue = where jobs go */
};

/* Reads at most IMPORT_RECORD bytes at a time, whatever the file has. Rows go out in statements of
 * 500; a statement that the server rejects is halved until the bad row is found. Gives the exit
 * code: CLI_PART if some rows were pushed and not all. */
enum { IMPORT_RECORD = 16 << 20 };
int cli_import(struct cli *c, const struct import_words *w);

#endif
