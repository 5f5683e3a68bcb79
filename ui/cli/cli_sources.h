/* Sources for the verbs that watch: one for each connection string, or for each -d. */
#ifndef UI_CLI_CLI_SOURCES_H
#define UI_CLI_CLI_SOURCES_H

#include "model/source/sources.h"
#include "ui/cli/cli.h"

int cli_places(const struct cli *c); /* number of databases on the command line, at least 1 */
/* Opens the first `places` sources by the common options and `like`, which holds for all. Only the
 * first source is recorded. The caller frees the sources. */
struct sources *cli_sources(struct cli *c, const struct source_options *like, int places,
                            struct err *e) __attribute__((warn_unused_result));

#endif
