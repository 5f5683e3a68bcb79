/* For the files of install only: which statements an installation sends. */
#ifndef MODEL_INSTALL_INSTALL_PARTS_H
#define MODEL_INSTALL_INSTALL_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "model/install/install.h"

enum { BASE_VERSION = 2 }; /* what sql/core writes into table meta; then the newest is set */

/* The migrations of o, in order; those of the program unless a test brought its own. */
const struct sql_text *install_migrations(const struct install_options *o, int *n);
/* The version that this program installs. */
int install_newest(const struct install_options *o);
/* What an installation is made from, in 16 digits: scripts, migrations and names of roles. */
void install_made_from(const struct install_options *o, char digits[static 17]);

/* A script of sql/core without the statements that concern tables, which a migration changes. */
char *install_without_tables(const char *script) __attribute__((malloc, warn_unused_result));
/* The part of a migration before, or behind, the line `-- tables`; "" = none. */
char *install_part(const struct sql_text *migration, bool tables)
    __attribute__((malloc, warn_unused_result));

#endif
