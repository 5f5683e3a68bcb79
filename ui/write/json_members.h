/* Reads a JSON object member by member, for imports (ui/write/cli_import.c). The text must have
 * passed json_check and must end with a zero byte. */
#ifndef UI_WRITE_JSON_MEMBERS_H
#define UI_WRITE_JSON_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/err.h"
#include "model/base/mem.h"

struct json_member { /* as written: strings with their quotes */
    const char *name, *value;
    size_t name_len, value_len;
};

/* Reads the next member; *at is after the opening brace or after a value. False: there are no more.
 */
bool json_member(const char **at, struct json_member *m) __attribute__((warn_unused_result));

/* A string without its quotes and escapes, any other value as written; lives as long as mem. False:
 * half of a surrogate pair. */
bool json_text(struct arena *mem, const char *s, size_t len, char **text, size_t *text_len,
               struct err *e) __attribute__((warn_unused_result));

#endif
