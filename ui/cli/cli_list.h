/* What the verbs that look share: their common options (ui/cli/cli_list.c), looking once or again
 * and again (ui/cli/cli_watch.c), and the lists of jobs, which are read page by page
 * (ui/cli/cli_jobs.c). */
#ifndef UI_CLI_CLI_LIST_H
#define UI_CLI_CLI_LIST_H

#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"

struct list_words {
    const char *queue, *node, *kind, *error, *sort;
    struct cli_list states, columns;
    bool json, csv, exact;
    int limit;        /* -1 = not said, 0 = all */
    int64_t watch_ms; /* 0 = once, CLI_NO_TIME = as often as it likes */
};

struct look;
struct listing {
    /* Asks, and prints between look_begin and its end; says how many rows, -1 = *e says why. */
    int (*look)(const struct look *l, struct err *e);
    enum section_id section;
    const struct column *columns;
    bool (*keep)(const struct list_words *w, const void *row); /* NULL = all */
    bool varies; /* another queue system has other columns */
};
struct look { /* one look */
    struct cli_queue *queue;
    const struct list_words *words;
    const struct listing *listing;
    struct buf *to; /* NULL = standard output, as the rows come */
};

enum out_form list_form(const struct list_words *w);
int list_limit(const struct list_words *w);
/* Begins a table as the words want it. */
bool look_begin(const struct look *look, struct cli_table *out, const struct column *columns,
                struct err *e) __attribute__((warn_unused_result));
/* The whole verb: opens, looks once or until a signal, closes; gives the exit code. */
int list_run(struct cli *c, const struct list_words *w, const struct listing *listing);

int list_jobs(struct cli *c, const void *options); /* the verb */
/* The running jobs, by what they hold: a look. */
int list_held(const struct look *l, struct err *e);

#endif
