/* What the verbs that look or act have in common: a connection, the adapter bound to the queue that
 * is there, and a synchronous question to one of its sections. */
#ifndef UI_CLI_CLI_OPEN_H
#define UI_CLI_CLI_OPEN_H

#include "model/adapter/adapter.h"
#include "ui/cli/cli.h"

struct cli_queue {
    struct cli *cli;
    struct db *db; /* the cli's, freed by it */
    struct adapter *adapter;
    char *source;   /* "host/database", for JSON; in the cli's memory */
    int64_t now_ms; /* the server's clock at the last answer */
    struct rowset role;
};

/* Connects and finds the queue in --schema; acts: for changing something. */
bool cli_open(struct cli *c, bool acts, struct cli_queue *q, struct err *e)
    __attribute__((warn_unused_result));
void cli_close(struct cli_queue *q);
const struct role_row *cli_role(const struct cli_queue *q);

/* The answers of n sections to the same parameters, in one transaction; rowsets are the caller's.
 * Of several, those that the adapter has not are empty. False frees them all. */
bool cli_ask(struct cli_queue *q, const enum section_id *sections, int n, const struct params *p,
             struct rowset *out, struct err *e) __attribute__((warn_unused_result));

/* A full id of a job, in the adapter's shape; NULL: of an action. */
bool cli_is_id(const struct adapter *a, const char *s);
/* The full id of a job (SEC_JOBS) or of an action (SEC_AUDIT) that begins or ends with what was
 * typed, 4 digits at least; a full id is taken as it is. The result lives as long as the cli.
 * ERR_USAGE: no such id among those looked at, or several, which the text names. */
const char *cli_full_id(struct cli_queue *q, enum section_id of, const char *typed, struct err *e)
    __attribute__((warn_unused_result));

#endif
