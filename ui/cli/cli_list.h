/* What the verbs that look share: their common options (ui/cli/cli_list.c), and the lists of jobs,
 * which are read page by page (ui/cli/cli_jobs.c). */
#ifndef UI_CLI_CLI_LIST_H
#define UI_CLI_CLI_LIST_H

#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"

struct list_words {
    const char *queue, *node, *kind, *error;
    struct cli_list states;
    bool json, csv, exact;
    int limit; /* -1 = not said, 0 = all */
};

enum out_form list_form(const struct list_words *w);
int list_limit(const struct list_words *w);

int list_jobs(struct cli *c, const void *options); /* the verb */
/* The running jobs, by what they hold; closes the connection. */
int list_held(struct cli_queue *q, const struct list_words *w);

#endif
