/* One-dimensional arrays as binary parameters. They need no quoting, take half the bytes of \x...,
 * and an element may hold any byte. Call array_start, add exactly n elements, then db_array. */
#ifndef MODEL_BASE_ARRAY_H
#define MODEL_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/mem.h"

enum array_type { /* the element types' fixed OIDs */
                  ARRAY_BOOL = 16,
                  ARRAY_BYTES = 17,
                  ARRAY_I64 = 20,
                  ARRAY_I32 = 23,
                  ARRAY_TEXT = 25,
                  ARRAY_TIME = 1184,     /* timestamptz */
                  ARRAY_INTERVAL = 1186, /* of milliseconds */
                  ARRAY_UUID = 2950
};

struct array {
    struct buf buf;
    int n, left;
    bool has_null;
};

void array_start(struct array *a, enum array_type type, int n);
void array_null(struct array *a);
void array_bool(struct array *a, bool value);
void array_i32(struct array *a, int32_t value);
void array_i64(struct array *a, int64_t value);
void array_text(struct array *a, const char *s);              /* NULL = SQL NULL */
void array_bytes(struct array *a, const void *p, size_t len); /* of BYTES and TEXT; p NULL = NULL */
void array_time(struct array *a, int64_t since_1970_ms);
void array_interval(struct array *a, int64_t ms);
bool array_uuid(struct array *a, const char *text); /* false: not a uuid, NULL was added */

/* The whole array in the server's binary form. The bytes still belong to a. Asserts that all n
 * elements were added. */
const char *array_whole(struct array *a, size_t *len);
void array_free(struct array *a);

#endif
