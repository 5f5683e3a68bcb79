/* What the verbs that look or act have in common: a connection, the adapter bound to the queue that
 * is there, and a synchronous question to one of its sections. */
#ifndef UI_CLI_CLI_OPEN_H
#define UI_CLI_CLI_OPEN_H

#include "model/adapter/adapter.h"
#include "model/adapter/trust.h"
#include "model/source/sources.h"
#include "ui/cli/cli.h"

struct cli_queue {
    struct cli *cli;
    struct db *db; /* owned and freed by the cli */
    struct adapter *adapter;
    char *source;     /* "host/database", for JSON; in the cli's memory */
    int64_t now_ms;   /* the server's clock at the last answer */
    int64_t spent_us; /* time that the server spent on all answers */
    struct rowset role;
    struct place_gate place; /* the database that was opened: a later connection leads there, too */
};

/* Connects and finds the queue in --schema. acts: the connection is for changes. */
bool cli_open(struct cli *c, bool acts, struct cli_queue *q, struct err *e)
    __attribute__((warn_unused_result));
/* For verbs of our own queue, after cli_fail with an error of cli_lacks_queue: says which tables
 * look like those of another queue system. */
void cli_say_likely(struct cli *c);
void cli_close(struct cli_queue *q);
/* False if default_transaction_read_only is on; *e says where it is set and how to remove it. */
bool cli_takes_changes(struct cli_queue *q, struct err *e) __attribute__((warn_unused_result));
const struct role_row *cli_role(const struct cli_queue *q);

/* Asks n sections with the same parameters, in one transaction; the caller frees the rowsets. If n
 * > 1, a section that the adapter lacks gives an empty rowset. If it fails, all rowsets are freed.
 */
bool cli_ask(struct cli_queue *q, const enum section_id *sections, int n, const struct params *p,
             struct rowset *out, struct err *e) __attribute__((warn_unused_result));

/* Whether s is a full id of a job in the adapter's form; a NULL: a full id of an action. */
bool cli_is_id(const struct adapter *a, const char *s);
/* The full id of a job (SEC_JOBS) or of an action (SEC_AUDIT) that begins or ends with the typed
 * text, at least 4 digits; a full id is returned unchanged. The result lives as long as the cli.
 * ERR_ABSENT: none of the ids that were read fits; ERR_USAGE: several do, and the error names them.
 */
const char *cli_full_id(struct cli_queue *q, enum section_id of, const char *typed, struct err *e)
    __attribute__((warn_unused_result));

/* --- sources --- */

/* Sources for the verbs that watch: one for each connection string, or for each -d. */

int cli_places(const struct cli *c); /* number of databases on the command line, at least 1 */
/* Opens the first `places` sources by the common options and `like`, which holds for all. Only the
 * first source is recorded. The caller frees the sources. */
struct sources *cli_sources(struct cli *c, const struct source_options *like, int places,
                            struct err *e) __attribute__((warn_unused_result));

#endif
