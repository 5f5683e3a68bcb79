/* What the two halves of the command line share: the options of every verb, and the look-up. */
#ifndef UI_CLI_CLI_PARTS_H
#define UI_CLI_CLI_PARTS_H

#include <stdbool.h>

#include "ui/cli/cli.h"

struct cli_common {
    struct cli_list dbnames, trust_owners;
    const char *schema, *adapter, *log_file;
    bool read_only, trust_version, help, version;
};
extern const struct cli_option cli_common_options[];

/* The verb of that name; "" = the console; NULL = there is none. */
/* The verb of this name, or of what others call it; NULL = none. */
const struct cli_verb *cli_find_verb(const char *name);
/* The verb that was perhaps meant; NULL = none is near. */
const char *cli_meant_verb(const char *word);

/* Refuses a connection string that carries a password: every user can read argv in `ps`. */
bool cli_check_secrets(const char *conninfo, struct err *e) __attribute__((warn_unused_result));

#endif
