/*
 * An adapter file is anybody's text: whatever it holds is read or refused with its line, and what
 * was read can be bound to a schema so that no placeholder is left.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/sections.h"
#include "model/base/mem.h"
#include "model/base/text.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    struct sections s;
    struct err e = {0};

    if (!sections_read("f.sql", text, &s, &e)) {
        assert(e.kind == ERR_DATA && strncmp(e.text, "f.sql", 5) == 0);
        free(text);
        return 0;
    }
    for (int i = 0; i < s.n; i++) {
        char *sql = NULL;
        const struct section *one = &s.list[i];
        assert(sections_find(&s, one->name) == one && *one->sql && one->line > 0);
        bool ok = sections_bind(one, "a\"b'c\\", &sql, &e);
        assert(ok && utf8_valid(sql, strlen(sql)));
        free(sql);
    }
    sections_free(&s);
    free(text);
    return 0;
}
