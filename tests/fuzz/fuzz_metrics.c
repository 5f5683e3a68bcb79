/*
 * Names of sources, adapters and versions may be anything: each line of the metrics page stays one
 * line, with closed quotes and without a control character.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ui/facts/metrics.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* NAME{label="value",...} figure: quotes are closed before the line ends. */
static void
check_line(const char *s, size_t len)
{
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        assert((unsigned char)s[i] >= ' ');
        if (quoted && s[i] == '\\') {
            i++;
            assert(i < len && (s[i] == '\\' || s[i] == '"' || s[i] == 'n'));
        } else if (s[i] == '"') {
            quoted = !quoted;
        }
    }
    assert(!quoted && len > 0);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the fuzzer says what this looks like */
int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = xcalloc(size + 3, 1);
    const char *word[3] = {text, "", ""};
    struct buf out = {0};

    if (size > 1)
        memcpy(text, data + 1, size - 1);
    for (int i = 1; i < 3; i++)
        word[i] =
            word[i - 1] + strlen(word[i - 1]) + (word[i - 1] + strlen(word[i - 1]) < text + size);
    const struct metrics_source m = {
        .name = word[0], .adapter = word[1], .version = word[2], .up = size > 0 && data[0] & 2};
    metrics_write(&m, 1, 1, size > 0 && data[0] & 1, &out);
    for (const char *s = out.data, *end; s && *s; s = end + 1) {
        end = strchr(s, '\n');
        assert(end);
        if (*s != '#')
            check_line(s, (size_t)(end - s));
    }
    buf_free(&out);
    free(text);
    return 0;
}
