/* The named sections of an annotated .sql file (adapters): header lines `-- key: value`, then
 * sections `-- name: X` with annotations and one statement each. This module also has the only
 * function of the program that puts an identifier into SQL. It replaces {schema} and {schema_lit},
 * {prefix} and {prefix_lit}, and the macros {error_key(EXPR)}, the group of an error, and
 * {ms(EXPR)}, milliseconds since 1970 of a point in time (NULL for infinity, which has none), and
 * {uuids(EXPR)} and {bigints(EXPR)}, those ids of a list of texts that have the form of the type.
 */
#ifndef MODEL_ADAPTER_SECTIONS_H
#define MODEL_ADAPTER_SECTIONS_H

#include <stdbool.h>

#include "model/base/err.h"

struct note {
    char *key;
    char *value;
    int line;
};

struct section {
    char *name;
    char *sql;    /* one statement, without the trailing semicolon */
    int line;     /* where it begins: "-- name:" */
    int sql_line; /* where its statement begins */
    struct note *notes;
    int nnotes;
    bool has_prefix; /* header "prefix": the schema is given as "schema/prefix" */
};

struct sections {
    struct note *header;
    int nheader;
    struct section *list;
    int n;
};

/* Errors name file, line and section. */
bool sections_read(const char *file_name, const char *text, struct sections *out, struct err *e)
    __attribute__((warn_unused_result));
void sections_free(struct sections *s);
const struct section *sections_find(const struct sections *s, const char *name); /* NULL = none */
const char *sections_header(const struct sections *s, const char *key);          /* NULL = none */
const char *section_note(const struct section *s, const char *key);              /* NULL = none */

/* The statement with its placeholders replaced; the caller frees. Refuses a schema that is not
 * valid UTF-8 or is longer than 63 bytes, and a prefix of anything but a-z, 0-9 and _. */
bool sections_bind(const struct section *s, const char *schema, char **sql, struct err *e)
    __attribute__((warn_unused_result));

#endif
