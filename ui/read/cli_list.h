/* What the verbs that look share: their common options (ui/read/cli_list.c), looking once or
 * repeatedly (ui/read/cli_watch.c), and the lists of jobs, which are read page by page
 * (ui/read/cli_jobs.c). */
#ifndef UI_READ_CLI_LIST_H
#define UI_READ_CLI_LIST_H

#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"

struct list_words {
    const char *queue, *node, *kind, *error, *sort;
    struct cli_list states, columns;
    bool json, csv, exact;
    int limit;        /* -1 = not given, 0 = all */
    int64_t watch_ms; /* 0 = once, CLI_NO_TIME = repeatedly at the usual interval */
};

struct look;
struct listing {
    /* Asks, and prints from look_begin on. Returns the number of rows, -1 = *e is the error. */
    int (*look)(const struct look *l, struct err *e);
    enum section_id section;
    const struct column *columns;
    bool (*keep)(const struct list_words *w, const void *row); /* NULL = all */
    bool varies; /* the columns depend on the queue system */
};
struct look { /* one look */
    struct cli_queue *queue;
    const struct list_words *words;
    const struct listing *listing;
    struct buf *to; /* NULL = print each row to standard output at once */
};

enum out_form list_form(const struct list_words *w);
int list_limit(const struct list_words *w);
/* Begins a table with the columns and the order that the words ask for. */
bool look_begin(const struct look *look, struct cli_table *out, const struct column *columns,
                struct err *e) __attribute__((warn_unused_result));
/* Runs the whole verb: opens, looks once or until a signal, closes; returns the exit code. */
int list_run(struct cli *c, const struct list_words *w, const struct listing *listing);

/* The filter, from words in the filter language and from the options with the same meaning. */
bool list_filter(const struct cli *c, const struct list_words *w, struct params *p, struct err *e)
    __attribute__((warn_unused_result));
int list_jobs(struct cli *c, const void *options); /* the verb */
/* A look at the running jobs and their leases. */
int list_held(const struct look *l, struct err *e);

#endif
