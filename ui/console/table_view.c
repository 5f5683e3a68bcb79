/* What the screens of one table share. Any text is a filter here, so setting one never fails. */
#include "ui/console/table_view.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

void
table_init(struct view *v, const struct list_def *def, bool (*keep)(void *ctx, const void *row))
{
    struct table_view *t = (struct table_view *)v;

    t->filter = xstrdup("");
    t->keep = keep;
    t->list = list_new(def);
    list_set_filter(t->list, keep, v);
}

void
table_done(struct view *v)
{
    struct table_view *t = (struct table_view *)v;

    list_free(t->list);
    free(t->filter);
}

struct list *
table_list(struct view *v)
{
    return ((struct table_view *)v)->list;
}

const char *
table_filter(struct view *v)
{
    return ((struct table_view *)v)->filter;
}

/* A term in the filter language of Jobs ("state:failed"): as a plain word no row would match it. */
static bool
is_term(const char *word, size_t len)
{
    static const char *const keys[] = {"state", "queue", "node", "kind",   "error",
                                       "age",   "tries", "id",   "payload"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t n = strlen(keys[i]);
        if (len > n && !strncmp(word, keys[i], n) && strchr(":~<>=", word[n]))
            return true;
    }
    return false;
}

static bool
check_words(const char *text, struct filter_mark *mark, struct err *e)
{
    const char *word = text;

    while (*(word += strspn(word, " "))) {
        size_t len = strcspn(word, " "), not = *word == '!';
        if (is_term(word + not, len - not )) {
            if (mark)
                *mark = (struct filter_mark){(int)(word - text), (int)len};
            return fail(e, ERR_USAGE,
                        "this table is filtered by plain words; terms are for Jobs (2)");
        }
        word += len;
    }
    return true;
}

bool
table_set_filter(struct view *v, const char *text, struct filter_mark *mark, struct err *e)
{
    struct table_view *t = (struct table_view *)v;

    if (!check_words(text, mark, e))
        return false;
    char *kept = xstrdup(text); /* text may be the filter itself */
    free(t->filter);
    t->filter = kept;
    list_set_filter(t->list, t->keep, v);
    return true;
}

bool
table_back(struct view *v)
{
    return *table_filter(v) && table_set_filter(v, "", NULL, NULL);
}

const char *
table_copy(struct view *v)
{
    return list_selected_id(table_list(v));
}
