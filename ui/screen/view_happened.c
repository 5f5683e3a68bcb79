/*
 * What happened: to a queue, to a node, to an error, or at all. Acts from the audit, nodes that
 * came, died or left, and the first and the last time of each error, as one list with the newest on
 * top. Enter on a row goes to what the row is about.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/store/store.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/console/crumb.h"
#include "ui/console/table_view.h"
#include "ui/facts/verdict.h"
#include "ui/screen/views.h"
#include "ui/term/fmt.h"

/* --- the lines --- */

/* What happened, as lines: the answer of the queue system together with the nodes that this
 * console has seen leaving. The lines of what happened, and how many there are of each kind. */

struct happened_line {
    const char *id, *what;                  /* what: as in struct happened_row */
    const char *word;                       /* as shown: "pause", "came", "first failed" */
    const char *target, *queue, *error_key; /* "" = none, like the next ones */
    const char *action, *who;
    const char *say; /* what was asked for and why; what the node is; the error */
    int64_t at_ms, n;
};

static const char *
word_of(const struct happened_row *r)
{
    static const struct {
        const char *what, *word;
    } words[] = {
        {"failed", "failed"      },
        {"first",  "first failed"},
        {"last",   "last failed" }
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(r->what, words[i].what))
            return words[i].word;
    return !strcmp(r->what, "act") ? r->verb : r->what;
}

static struct happened_line
line_of(const struct happened_row *r, struct arena *mem)
{
    const char *gap = *r->text && *r->reason ? "  " : "";

    return (struct happened_line){
        .id = r->id,
        .what = r->what,
        .word = word_of(r),
        .target = r->target,
        .queue = r->queue,
        .error_key = r->error_key,
        .action = r->action,
        .who = r->who,
        .say = *r->reason ? arena_printf(mem, "%s%s\"%s\"", r->text, gap, r->reason) : r->text,
        .at_ms = r->at_ms,
        .n = r->n};
}

/* The lines of the store's answer, and the nodes that left of the queue or with the name (NULL =
 * any). They live in mem, and not longer than the store's answers. */
static const struct happened_line *
happened_lines(const struct store *s, const char *queue, const char *node, struct arena *mem,
               int *n)
{
    int known, gone, lines = 0;
    const struct happened_row *rows = store_happened(s, &known);
    const struct left_node *left = store_left(s, &gone);
    struct happened_line *all = arena_alloc(mem, ((size_t)known + (size_t)gone + 1) * sizeof *all);

    for (int i = 0; i < known; i++)
        all[lines++] = line_of(&rows[i], mem);
    for (int i = 0; i < gone; i++)
        if ((!node || !strcmp(node, left[i].node)) && (!queue || node_takes(left[i].queues, queue)))
            all[lines++] =
                (struct happened_line){.id = left[i].id,
                                       .what = "left",
                                       .word = "left",
                                       .target = left[i].node,
                                       .queue = "",
                                       .error_key = "",
                                       .action = "",
                                       .who = "",
                                       .say = "its process ended in order, as seen from here",
                                       .at_ms = left[i].at_ms,
                                       .n = FIELD_NULL};
    *n = lines;
    return all;
}

/* --- sums ------------------------------------------------------------------------------------- */

struct sums {
    int acts, people, came, died, errors;
    int error_rows; /* an error has one or two */
};

static bool
is_new_person(const struct happened_row *rows, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(rows[k].what, "act") && !strcmp(rows[k].who, rows[i].who))
            return false;
    return true;
}

static struct sums
sums_of(const struct happened_row *rows, int n)
{
    struct sums s = {0};

    for (int i = 0; i < n; i++) {
        bool act = !strcmp(rows[i].what, "act");
        s.acts += act;
        s.people += act && is_new_person(rows, i);
        s.came += !strcmp(rows[i].what, "came");
        s.died += !strcmp(rows[i].what, "died");
        s.errors += !strcmp(rows[i].what, "failed") || !strcmp(rows[i].what, "last");
        s.error_rows += *rows[i].error_key != 0;
    }
    return s;
}

/* Whether the answer is as long as it may be, all of it or one kind of its rows. */
static bool
is_cut(const struct sums *s, int n)
{
    return n >= HAPPENED_MOST || s->error_rows >= HAPPENED_MOST / 2 ||
           s->came + s->died >= HAPPENED_MOST / 4;
}

static void
add_sum(struct buf *out, int n, const char *noun, const char *more)
{
    if (n > 0)
        buf_printf(out, "%s%s%s", out->len ? ", " : ": ", fmt_plural(n, noun).s, more);
}

/* ": 14 acts by 2 people, 3 nodes died, 5 errors": what the answer holds; ", no older ones" if it
 * is as long as it may be. */
static void
happened_say_sums(const struct store *s, struct buf *out)
{
    int n;
    const struct happened_row *rows = store_happened(s, &n);
    struct sums sums = sums_of(rows, n);

    buf_str(out, "");
    add_sum(out, sums.acts, "act", "");
    if (sums.people > 1)
        buf_printf(out, " by %d people", sums.people);
    add_sum(out, sums.died, "node", " died");
    add_sum(out, sums.came, "node", " came");
    add_sum(out, sums.errors, "error", "");
    if (is_cut(&sums, n))
        buf_str(out, ", no older ones");
}

/* --- the screen --- */

static const char of_queue[] = "queue ", of_node[] = "node ", of_error[] = "error ";

struct happened_view {
    struct table_view table;
    char *subject; /* "queue NAME", "node NAME", "error QUEUE\nERROR"; "" = everything */
    char *queue, *node, *error;
    char *selected;    /* the row when another view came in front, NULL = none did */
    struct arena *mem; /* of the lines */
};

/* --- columns ---------------------------------------------------------------------------------- */

#define F(f) offsetof(struct happened_line, f)

static enum role
role_of_what(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return !strcmp(((const struct happened_line *)row)->what, "died") ? ROLE_BAD : ROLE_TEXT;
}

static const struct column_special what_special = {NULL, role_of_what, K_CUSTOM, false};

/* clang-format off */
static const struct column columns[] = {
    {.name = "at", .title = "TIME", .help = "When it happened", .kind = K_TIME, .offset = F(at_ms), .min_w = 11,
     .max_w = 11},
    {.name = "what", .title = "WHAT", .help = "An act, a node that came, died or left, or an error: its first and last job",
     .kind = K_TEXT, .offset = F(word), .min_w = 13, .max_w = 15, .special = &what_special},
    {.name = "target", .title = "TO WHAT", .help = "The queue, the node or the schedule", .kind = K_TEXT,
     .offset = F(target), .min_w = 12, .max_w = 24},
    {.name = "who", .title = "BY", .help = "Login that did it", .kind = K_TEXT, .offset = F(who), .min_w = 16, .max_w = 16,
     .keep = 6},
    {.name = "n", .title = "ROWS", .help = "Rows that the act changed, jobs that are failed with the error",
     .kind = K_COUNT, .offset = F(n), .min_w = 5, .max_w = 9, .keep = 5},
    {.name = "text", .title = "MORE", .help = "What was asked for and why, what the node is, the error", .kind = K_TEXT,
     .offset = F(say), .min_w = 16},
    {0},
};
/* clang-format on */

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    const struct happened_line *l = row;

    (void)c;
    return verdict_sign(!strcmp(l->what, "died") ? VERDICT_BAD : VERDICT_WELL);
}

static const struct list_def list_of_happened = {
    .columns = columns,
    .row_size = sizeof(struct happened_line),
    .id_offset = F(id),
    .sort = "at",
    .desc = true,
    .sign = sign_of,
};

/* --- data ------------------------------------------------------------------------------------- */

static bool
row_matches(void *ctx, const void *row)
{
    const struct table_view *v = ctx;
    const struct happened_line *l = row;

    return words_match(v->filter,
                       (const char *const[]){l->word, l->target, l->who, l->say, l->what, NULL});
}

/* The rest of the subject if it begins with the word; else NULL. */
static char *
after_word(const char *subject, const char *word)
{
    size_t len = strlen(word);

    return strncmp(subject, word, len) ? NULL : xstrdup(subject + len);
}

static void
happened_init(struct view *view, const char *arg)
{
    struct happened_view *v = (struct happened_view *)view;

    v->subject = xstrdup(arg ? arg : "");
    v->queue = after_word(v->subject, of_queue);
    v->node = after_word(v->subject, of_node);
    v->error = after_word(v->subject, of_error);
    char *line = v->error ? strrchr(v->error, '\n') : NULL;
    if (line) { /* the name of a queue may have such a byte, an error has none */
        v->queue = xstrndup(v->error, (size_t)(line - v->error));
        memmove(v->error, line + 1, strlen(line));
    }
    v->mem = arena_new();
    table_init(view, &list_of_happened, row_matches);
}

static void
happened_done(struct view *view)
{
    struct happened_view *v = (struct happened_view *)view;

    table_done(view);
    arena_free(v->mem);
    free(v->subject);
    free(v->queue);
    free(v->node);
    free(v->error);
    free(v->selected);
}

/* The answer is asked for anew if another subject was looked at meanwhile: then the rows come
 * later.
 */
static void
happened_show(struct view *view)
{
    struct happened_view *v = (struct happened_view *)view;

    store_ask_happened(view->app->store, v->queue, v->node, v->error);
    if (v->selected)
        seek_row(view->app, v->selected);
    free(v->selected);
    v->selected = NULL;
}

static void
happened_hide(struct view *view)
{
    struct happened_view *v = (struct happened_view *)view;

    free(v->selected);
    v->selected = xstrdup(list_selected_id(v->table.list));
}

static void
happened_update(struct view *view)
{
    struct happened_view *v = (struct happened_view *)view;
    int n;

    if (app_view(view->app) != view) { /* the store may have what happened to something else */
        list_set_rows(v->table.list, NULL, 0);
        return;
    }
    arena_reset(v->mem);
    const struct happened_line *lines =
        happened_lines(view->app->store, v->queue, v->node, v->mem, &n);
    list_set_rows(v->table.list, lines, n);
    seek_turn(view->app);
    if (!view->touched)
        list_home(v->table.list);
}

/* --- frame ------------------------------------------------------------------------------------ */

/* What the subject is called: "image.resize", "worker-4", "an error of mail". */
static const char *
subject_name(const struct happened_view *v)
{
    if (v->error)
        return arena_printf(v->table.view.app->frame, "%s: %s", v->queue, v->error);
    return v->queue ? v->queue : v->node ? v->node : "everything";
}

static void
draw_heading(struct happened_view *v, struct grid *g, struct rect r)
{
    struct app *a = v->table.view.app;
    struct pen p = pen_start(g, r);
    struct buf sums = {0};

    pen_put(&p, ROLE_DIM, *v->subject ? " what happened to " : " what happened");
    if (*v->subject)
        pen_put(&p, ROLE_STRONG, subject_name(v));
    happened_say_sums(a->store, &sums);
    pen_put(&p, ROLE_DIM, sums.data);
    buf_free(&sums);
    if (*v->table.filter) {
        pen_put(&p, ROLE_DIM, "  filter ");
        pen_put(&p, ROLE_STRONG, v->table.filter);
    }
    if (*v->subject && p.r.w > 16) {
        pen_put(&p, ROLE_KEY, "   h");
        pen_put(&p, ROLE_KEY_HELP, " everything");
    }
}

static void
happened_draw(struct view *view, struct grid *g, struct rect r)
{
    struct happened_view *v = (struct happened_view *)view;
    struct app *a = view->app;
    const struct topic_info *t = store_topic(a->store, TOPIC_HAPPENED);
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_HAPPENED),
                             .counts = true,
                             .old_ms = store_age_ms(a->store, TOPIC_HAPPENED),
                             .empty = "nothing that is still known"};

    if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_HAPPENED);
    else if (!t->has_data)
        look.empty = t->err.kind != ERR_NONE ? t->err.text : "asking ...";
    draw_heading(v, g, rect_cut_top(&r, 1));
    list_draw(v->table.list, g, r, &look);
}

/* The selected row in full: its columns may be cut. */
static bool
happened_remark(struct view *view, struct buf *out)
{
    const struct happened_line *l = list_selected(table_list(view));

    if (!l)
        return false;
    buf_printf(out, "%s %s", fmt_date_time(l->at_ms, view->app->options.utc).s, l->word);
    if (*l->target)
        buf_printf(out, " %s", l->target);
    if (*l->who)
        buf_printf(out, " by %s", l->who);
    if (*l->say)
        buf_printf(out, ": %s", l->say);
    return false;
}

static void
happened_crumb(struct view *view, struct buf *out)
{
    struct happened_view *v = (struct happened_view *)view;

    crumb_add(out, v->queue ? v->queue : v->node ? v->node : "");
    crumb_add(out, v->error ? v->error : "");
    table_crumb(view, "what happened", out);
    const struct view *below = app_below(view->app);
    if (!*v->subject && app_view(view->app) == view && below && below->ops == view->ops)
        crumb_add(out, "everything");
}

/* --- commands --------------------------------------------------------------------------------- */

static void
open_error(struct app *a, const struct happened_line *l)
{
    char *row = xasprintf("%s\n%s", l->queue, l->error_key);
    char *filter = filter_with("", "queue", l->queue);

    app_push(a, "failed", filter);
    seek_row(a, row);
    free(filter);
    free(row);
}

static void
happened_open(struct view *view)
{
    const struct happened_line *l = list_selected(table_list(view));
    struct app *a = view->app;

    if (*l->error_key) {
        open_error(a, l);
    } else if (*l->action) {
        char *row = xstrdup(l->action);
        app_push(a, "audit", NULL);
        seek_row(a, row);
        free(row);
    } else {
        app_push(a, "node", l->target);
    }
}

static const char *
happened_subject(struct view *view)
{
    return ((struct happened_view *)view)->subject;
}

static void
happened_sql(struct view *view, struct buf *out)
{
    buf_str(out, adapter_sql(source_adapter(view->app->source), SEC_HAPPENED));
}

const struct view_ops view_happened = {
    .name = "happened",
    .title = "What happened",
    .tab = 6,
    .scope = IN_HAPPENED,
    .topics = TOPIC_BIT(TOPIC_HAPPENED) | TOPIC_BIT(TOPIC_NODES),
    .size = sizeof(struct happened_view),
    .init = happened_init,
    .done = happened_done,
    .show = happened_show,
    .hide = happened_hide,
    .update = happened_update,
    .draw = happened_draw,
    .list = table_list,
    .open = happened_open,
    .back = table_back,
    .crumb = happened_crumb,
    .remark = happened_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = happened_sql,
    .subject = happened_subject,
    .copy = table_copy,
};

/* --- its key ---------------------------------------------------------------------------------- */

/* The subject in front: that of the page, else that of the row; of a job it is its queue. */
static char *
subject_of(const struct app *a)
{
    struct view *v = app_view(a);
    struct target t = app_target(a);

    if (v->ops == &view_happened) /* the second time: everything */
        return xstrdup("");
    if (v->ops->page)
        return xasprintf("%s%s", v->ops->scope == IN_QUEUES ? of_queue : of_node,
                         v->ops->subject(v));
    if (t.kind == TARGET_GROUP)
        return xasprintf("%s%s\n%s", of_error, t.queue, t.error);
    if (t.kind == TARGET_NODE)
        return xasprintf("%s%s", of_node, t.name);
    if (t.kind == TARGET_QUEUE || (t.kind == TARGET_JOBS && t.queue && *t.queue))
        return xasprintf("%s%s", of_queue, t.kind == TARGET_QUEUE ? t.name : t.queue);
    return xstrdup("");
}

static const char *
no_happened(const struct app *a, int arg)
{
    struct view *v = app_view(a);
    struct target t = app_target(a);
    const char *why = app_unavailable(a, TOPIC_HAPPENED);

    (void)arg;
    if (why)
        return why;
    if (v->ops == &view_happened)
        return *happened_subject(v) ? NULL : "this is everything that is still known";
    return t.nnames > 1 || t.nids > 1 || t.all || t.ngroups > 1
               ? "several are marked: U unmarks them"
               : NULL;
}

static void
on_happened(struct app *a, int arg)
{
    char *subject = subject_of(a);

    (void)arg;
    app_push(a, "happened", subject);
    free(subject);
}

/* clang-format off */
const struct command commands_happened[] = {
    {.name = "happened", .keys = "h",
     .help = "What happened to this queue, node or error, newest first; again: to all",
     .scope = IN_ALL & ~IN_HELP, .run = on_happened, .why_not = no_happened},
    {0},
};
/* clang-format on */
