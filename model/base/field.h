/* A member of a struct, described by a row of a table: its name, its type, its offset, and the
 * value that means SQL NULL. */
#ifndef MODEL_BASE_FIELD_H
#define MODEL_BASE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The representation in the struct. K_* of a screen column (ui/widget/list.h) refines these. */
enum field_type {
    F_STR, /* const char *, never NULL ("" for SQL NULL) */
    F_I64, /* int64_t; SQL NULL -> INT64_MIN (FIELD_NULL); beyond FIELD_MOST -> FIELD_MOST */
    F_INT, /* int; SQL NULL -> INT_MIN */
    F_DBL, /* double; SQL NULL -> NAN */
    F_BOOL /* int: 1, 0, -1 for SQL NULL */
};
#define FIELD_NULL INT64_MIN
/* The largest number that an answer may bring, with either sign: 2^53. So neither a difference of
 * two nor a sum of a thousand can overflow, whatever a server says. */
#define FIELD_MOST (INT64_C(1) << 53)

struct field {
    const char *name; /* column in SQL */
    enum field_type type;
    size_t offset;
    bool optional; /* a missing column leaves the SQL NULL value */
};

#endif
