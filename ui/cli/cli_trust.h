/* Whom the user trusts in a database (model/adapter/trust.h): --trust-owner, trust_owner of the
 * configuration file, and the answers that the console's questions got in earlier runs. */
#ifndef UI_CLI_CLI_TRUST_H
#define UI_CLI_CLI_TRUST_H

#include "model/adapter/trust.h"
#include "ui/cli/cli.h"

/* For one of the places of the command line; conninfo, dbname NULL = not given. The caller frees.
 */
struct trust *cli_trust_new(const struct cli *c, const char *conninfo, const char *dbname);
/* The same for the only place of a verb; lives as long as c. */
struct trust *cli_trust(struct cli *c);

#endif
