/* The sources of those who watch: one for each connection string, or for each -d. */
#ifndef UI_CLI_CLI_SOURCES_H
#define UI_CLI_CLI_SOURCES_H

#include "model/source/sources.h"
#include "ui/cli/cli.h"

int cli_places(const struct cli *c); /* how many the command line names, 1 at least */
/* The first so many of them, opened by the common options; what else is the same for all stands in
 * `like`; only the first one is recorded. The caller frees them. */
struct sources *cli_sources(struct cli *c, const struct source_options *like, int places,
                            struct err *e) __attribute__((warn_unused_result));

#endif
