/*
 * Whatever is typed behind `/`: it is taken or refused with a mark inside the text; what is taken
 * can be changed by filter_with and is taken again; array literals stay balanced.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/filter.h"
#include "model/base/mem.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Checks a literal like {"a","b\"c"}: quotes are closed, with only commas between them. */
static void
check_list(const char *s)
{
    bool quoted = false;

    assert(*s == '{' && s[strlen(s) - 1] == '}');
    for (s++; s[1]; s++) {
        if (quoted && *s == '\\') {
            s++;
            assert(*s == '"' || *s == '\\');
        } else if (*s == '"') {
            quoted = !quoted;
        } else {
            assert(quoted || *s == ',');
        }
    }
    assert(!quoted);
}

static void
check_again(const char *text)
{
    struct filter f;
    struct err e = {0};
    char *with = filter_with(text, "queue", "a \"b\\");
    char *without = filter_with(with, "queue", NULL);

    if (strlen(with) <= 1000) {
        assert(filter_parse(with, &f, NULL, &e));
        assert(!strcmp(f.terms.value[PARAM_QUEUE], "a \"b\\"));
        filter_done(&f);
    }
    assert(filter_parse(without, &f, NULL, &e));
    assert(!f.terms.value[PARAM_QUEUE]);
    filter_done(&f);
    free(with);
    free(without);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the fuzzer says what this looks like */
int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    struct filter f;
    struct filter_mark mark;
    struct err e = {0};

    if (filter_parse(text, &f, &mark, &e)) {
        for (int i = 0; i < PARAM_TOTAL; i++)
            if (f.terms.value[i] && param_is_list((enum param)i))
                check_list(f.terms.value[i]);
        check_again(text);
    } else {
        assert(e.kind == ERR_USAGE && filter_is_empty(&f));
        assert(mark.start >= 0 && mark.len >= 0);
        assert((size_t)mark.start + (size_t)mark.len <= strlen(text));
    }
    filter_done(&f);
    free(text);
    return 0;
}
