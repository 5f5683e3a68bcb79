/*
 * Events: what happens to the thing that F follows, the newest below. While the cursor is on the
 * newest event, it moves on with each new one; on an older event it stays.
 */
#include <stddef.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/screen/views.h"

struct events_view {
    struct table_view table;
    int64_t seen;
    int n;
};

#define F(f) offsetof(struct follow_event, f)

static enum role
role_of_event(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct follow_event *)row)->bad ? ROLE_BAD : ROLE_TEXT;
}

static const struct column_special text_special = {NULL, role_of_event, K_CUSTOM, false};

/* clang-format off */
static const struct column columns[] = {
    {.name = "number", .title = "NUMBER", .help = "In the order in which they came", .kind = K_TEXT,
     .offset = F(number), .min_w = 12, .max_w = 12, .keep = 100},
    {.name = "at", .title = "TIME", .help = "When it was seen", .kind = K_TIME, .offset = F(at_ms), .min_w = 8,
     .max_w = 14},
    {.name = "text", .title = "WHAT HAPPENED", .help = "Since the line before", .kind = K_TEXT, .offset = F(text),
     .min_w = 20, .special = &text_special},
    {0},
};
/* clang-format on */

static const struct list_def list_of_events = {
    .columns = columns,
    .row_size = sizeof(struct follow_event),
    .id_offset = F(number),
    .sort = "number",
};

static bool
row_matches(void *ctx, const void *row)
{
    const struct events_view *v = ctx;

    return words_match(v->table.filter,
                       (const char *const[]){((const struct follow_event *)row)->text, NULL});
}

static void
events_init(struct view *view, const char *arg)
{
    (void)arg;
    table_init(view, &list_of_events, row_matches);
}

static bool
is_at_end(const struct list *l)
{
    return list_index(l) == list_count(l) - 1;
}

/* The list, with the events that there are now. What reads its rows takes it from here: the log may
 * have dropped events since the last frame. */
static struct list *
events_list(struct view *view)
{
    struct events_view *v = (struct events_view *)view;
    const struct follow_log *log = &view->app->follow.log;
    bool follows = is_at_end(v->table.list);

    if (v->seen == log->count && v->n == log->n)
        return v->table.list;
    list_set_rows(v->table.list, log->events, log->n);
    if (follows)
        list_end(v->table.list);
    v->seen = log->count;
    v->n = log->n;
    return v->table.list;
}

static void
events_draw(struct view *view, struct grid *g, struct rect r)
{
    struct app *a = view->app;
    struct rect head = rect_cut_top(&r, 1);
    struct buf now = {0};

    if (a->follow.what == FOLLOW_NOTHING) {
        grid_words(g, head, ROLE_DIM, " nothing is followed: F on a queue, a job or an error");
    } else {
        follow_say(a, &now);
        rect_cut_left(&head, 1);
        grid_words(g, head, ROLE_DIM, now.data);
    }
    list_draw(events_list(view), g, r,
              &(struct list_look){.now_ms = a->now_ms,
                                  .utc = a->options.utc,
                                  .counts = true,
                                  .order = "the newest below",
                                  .empty = "nothing has happened yet"});
    buf_free(&now);
}

static bool
events_remark(struct view *view, struct buf *out)
{
    const struct list *l = events_list(view);
    const struct follow_event *e = list_selected(l);

    if (!is_at_end(l))
        buf_str(out, "stands still: G goes to the newest and on with it");
    else if (e)
        buf_str(out, e->text);
    return false;
}

static bool
events_set_filter(struct view *view, const char *text, struct filter_mark *mark, struct err *e)
{
    events_list(view);
    return table_set_filter(view, text, mark, e);
}

static bool
events_back(struct view *view)
{
    events_list(view);
    return table_back(view);
}

static void
events_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "events", out);
}

static const char *
events_copy(struct view *view)
{
    const struct follow_event *e = list_selected(events_list(view));

    return e ? e->text : NULL;
}

const struct view_ops view_events = {
    .name = "events",
    .tab = 1,
    .scope = IN_EVENTS,
    .size = sizeof(struct events_view),
    .init = events_init,
    .done = table_done,
    .draw = events_draw,
    .list = events_list,
    .back = events_back,
    .crumb = events_crumb,
    .remark = events_remark,
    .filter = table_filter,
    .set_filter = events_set_filter,
    .copy = events_copy,
};
