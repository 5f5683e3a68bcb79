/* What the two halves of the command line share: the options of every verb, and the search for a
 * verb. */
#ifndef UI_CLI_CLI_PARTS_H
#define UI_CLI_CLI_PARTS_H

#include <stdbool.h>

#include "ui/cli/cli.h"

struct cli_common {
    struct cli_list dbnames, trust_owners;
    const char *schema, *adapter, *log_file, *host, *port, *user;
    int64_t timeout_ms;
    bool read_only, trust_version, ask_password, help, version;
};
extern const struct cli_option cli_common_options[];

/* The verb with this name, also with the name that other queue systems use; NULL = none. */
const struct cli_verb *cli_find_verb(const char *name);
/* The verb with the most similar name; NULL = none is similar. */
const char *cli_meant_verb(const char *word);

/* Rejects a connection string with a password, because every user can read argv by `ps`. */
bool cli_check_secrets(const char *conninfo, struct err *e) __attribute__((warn_unused_result));

/* Adds -h, -p and -U to every connection string that does not have them; makes one if there is
 * none. */
bool cli_take_place(struct cli *c, const struct cli_common *o, struct err *e)
    __attribute__((warn_unused_result));
/* -W: asks for the password at the terminal, for all connections of this program. */
bool cli_ask_password(struct err *e) __attribute__((warn_unused_result));

/* --- help --- */

/* --help and --version, printed from the tables of verbs and options. */

void cli_help(const struct cli *c); /* of c->verb, or of the program */
void cli_version(void);

#endif
