/*
 * Matches plain words, for tables whose rows are all in memory.
 */
#include "ui/term/words.h"

#include <string.h>
#include <strings.h>

static bool
has_part(const char *text, const char *word, size_t len)
{
    for (; *text; text++)
        if (strncasecmp(text, word, len) == 0)
            return true;
    return len == 0;
}

bool
words_match(const char *filter, const char *const *texts)
{
    while (*(filter += strspn(filter, " "))) {
        bool not = *filter == '!', found = false;
        const char *word = filter + not ;
        size_t len = strcspn(word, " ");
        for (int i = 0; texts[i]; i++)
            found = found || has_part(texts[i], word, len);
        if (len > 0 && found == not )
            return false;
        filter = word + len;
    }
    return true;
}
