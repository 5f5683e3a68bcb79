/* The owners that the user trusts in a database (model/adapter/trust.h): from --trust-owner, from
 * trust_owner in the configuration file, and from earlier answers to the console's questions. */
#ifndef UI_CLI_CLI_TRUST_H
#define UI_CLI_CLI_TRUST_H

#include "model/adapter/trust.h"
#include "ui/cli/cli.h"

/* For one of the databases of the command line; conninfo, dbname NULL = not given. The caller
 * frees. */
struct trust *cli_trust_new(struct cli *c, const char *conninfo, const char *dbname);
/* The same for the only database of a verb; lives as long as c. */
struct trust *cli_trust(struct cli *c);
/* Frees all of them, and the gate; after the connections that ask them. */
void cli_trust_done(struct cli *c);

#endif
