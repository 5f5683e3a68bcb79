/* What the screens that are one table share. Any text is a valid filter here, so setting one never
 * fails. */
#include "ui/console/table_view.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/base/mem.h"
#include "ui/console/app.h"
#include "ui/console/crumb.h"

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

/* Whether the word is a term in the filter language of Jobs ("state:failed"): as a plain word it
 * would match no row. */
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
                        "this table is filtered by plain words; Enter looks in Jobs (2)");
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
    char *kept = xstrdup(text); /* text may be the present filter itself */
    free(t->filter);
    t->filter = kept;
    list_set_filter(t->list, t->keep, v);
    return true;
}

bool
table_has_other(struct view *v)
{
    struct table_view *t = (struct table_view *)v;

    return t->other && app_body(v->app).h >= t->other_from;
}

void
table_pane(struct view *v, int step)
{
    struct table_view *t = (struct table_view *)v;

    (void)step;
    t->on_other = !t->on_other && table_has_other(v);
    if (!table_has_other(v))
        app_say(v->app, SAY_INFO, "only this table has room here");
}

struct list *
table_focus(struct view *v)
{
    struct table_view *t = (struct table_view *)v;

    t->on_other = t->on_other && table_has_other(v);
    return t->on_other ? t->other : t->list;
}

static int
table_marks(struct view *v)
{
    int n;

    list_marks(table_list(v), &n);
    return n;
}

void
table_mark_all(struct view *v)
{
    list_mark_shown(table_list(v));
}

void
table_unmark(struct view *v)
{
    list_unmark_all(table_list(v));
}

bool
table_target(struct view *v, const char *noun, struct target *t)
{
    t->names = list_targets(table_list(v), &t->nnames);
    t->name = t->nnames == 1 ? t->names[0] : arena_printf(v->app->frame, "%d %ss", t->nnames, noun);
    return t->nnames > 0;
}

bool
say_marked(struct view *v, const struct list *l, struct buf *out)
{
    const char *gap = ":";
    int n;

    list_marks(l, &n);
    if (n == 0)
        return false;
    buf_printf(out, "%d marked", n);
    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        bool of_rows = c->act && !c->by_filter && (c->act->target || !c->act->once); /* not push */
        if (!(c->scope & v->ops->scope) || !of_rows || app_why_not(v->app, c))
            continue;
        buf_printf(out, "%s %s %s", gap, command_key(c).s, c->name);
        gap = " ·";
    }
    buf_str(out, " · Esc clears the marks");
    return true;
}

bool
table_say_marked(struct view *v, struct buf *out)
{
    return say_marked(v, table_list(v), out);
}

bool
table_back(struct view *v)
{
    if (table_focus(v) != table_list(v)) {
        table_pane(v, 1);
        return true;
    }
    if (table_marks(v) > 0) {
        table_unmark(v);
        return true;
    }
    return *table_filter(v) && table_set_filter(v, "", NULL, NULL);
}

void
table_crumb(struct view *v, const char *name, struct buf *out)
{
    crumb_add(out, name);
    if (app_view(v->app) == v)
        crumb_add(out, table_filter(v));
}

const char *
table_copy(struct view *v)
{
    return list_selected_id(table_list(v));
}
