/*
 * Audit: the last administrative actions, who did them, and what they changed.
 */
#include <stddef.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/audit_columns.h"
#include "ui/screen/views.h"

#define F(f) offsetof(struct audit_row, f)

static const struct list_def list_of_audit = {
    .columns = audit_columns,
    .row_size = sizeof(struct audit_row),
    .id_offset = F(action),
    .sort = "at",
    .desc = true,
};

static bool
row_matches(void *ctx, const void *row)
{
    const struct table_view *v = ctx;
    const struct audit_row *r = row;

    return words_match(v->filter, (const char *const[]){r->who, r->verb, r->target, r->reason,
                                                        r->addr, r->action, r->change, NULL});
}

static void
audit_init(struct view *view, const char *arg)
{
    (void)arg;
    table_init(view, &list_of_audit, row_matches);
    list_hide_empty(table_list(view), true); /* hides FROM if all acts came by the socket */
}

static void
audit_update(struct view *view)
{
    int n;
    const struct audit_row *rows = store_audit(view->app->store, &n);

    list_set_rows(table_list(view), rows, n);
    if (!view->touched)
        list_home(table_list(view));
}

enum {
    DAY_MS = 86400000,
    ACTS_READ = 200
}; /* an adapter reads so many unless it is told how many */

/* "last 24 h: 14 acts by 2 people". Counts only the acts that were read, the newest ones. */
static void
draw_summary(const struct app *a, struct grid *g, struct rect r)
{
    int n, acts = 0, people = 0;
    const struct audit_row *rows = store_audit(a->store, &n);

    for (; acts < n && a->now_ms - rows[acts].at_ms < DAY_MS; acts++) {
        bool seen = false;
        for (int i = 0; i < acts && !seen; i++)
            seen = !strcmp(rows[i].who, rows[acts].who);
        people += !seen;
    }
    if (acts == 0 && store_topic(a->store, TOPIC_AUDIT)->has_data)
        grid_str(g, r, ROLE_DIM, " last 24 h: no act");
    else if (acts > 0)
        grid_printf(g, r, ROLE_DIM, " last 24 h: %s%s by %s",
                    acts == n && n >= ACTS_READ ? "at least " : "", fmt_plural(acts, "act").s,
                    people == 1 ? rows->who : arena_printf(a->frame, "%d people", people));
}

enum { DETAIL_H = 8, DETAIL_FROM = 30, LABEL_W = 9 };

static void
draw_fact(struct grid *g, struct rect *r, const char *label, const char *text)
{
    struct rect row = *r, at;
    int w = r->w - LABEL_W, lines = *text ? grid_count_lines(text, strlen(text), w > 0 ? w : 1) : 0;

    if (lines == 0 || r->h == 0)
        return;
    row.h = lines < r->h ? lines : r->h;
    rect_cut_top(r, row.h);
    at = rect_cut_left(&row, LABEL_W);
    grid_str(g, at, ROLE_DIM, label);
    grid_lines(g, row, ROLE_TEXT, text, strlen(text), &(struct text_area){0, 0, true});
}

/* Draws the selected act in full: the columns of the table may be cut. */
static void
draw_detail(const struct app *a, struct grid *g, struct rect r, const struct audit_row *act)
{
    const char *title = arena_printf(a->frame, "%s %s", act->verb, act->target);
    struct rect in = grid_panel(g, r, title, false);

    draw_fact(g, &in, "at", fmt_when(act->at_ms, a->now_ms, a->options.utc).s);
    draw_fact(g, &in, "by",
              *act->addr ? arena_printf(a->frame, "%s from %s", act->who, act->addr) : act->who);
    draw_fact(g, &in, "change", act->change);
    draw_fact(g, &in, "reason", act->reason);
    draw_fact(g, &in, "id", act->action);
}

static void
audit_draw(struct view *view, struct grid *g, struct rect r)
{
    struct app *a = view->app;
    const struct topic_info *t = store_topic(a->store, TOPIC_AUDIT);
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_AUDIT),
                             .old_ms = store_age_ms(a->store, TOPIC_AUDIT),
                             .empty = "no action yet"};

    if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_AUDIT);
    else if (!t->has_data)
        look.empty = "asking ...";
    struct rect head = rect_cut_top(&r, 1);
    if (!t->unavailable)
        draw_summary(a, g, head);
    const struct audit_row *act = list_selected(table_list(view));
    if (act && r.h >= DETAIL_FROM)
        draw_detail(a, g, rect_cut_bottom(&r, DETAIL_H), act);
    list_draw(table_list(view), g, r, &look);
}

static bool
audit_remark(struct view *view, struct buf *out)
{
    const struct audit_row *r = list_selected(table_list(view));

    if (!r)
        return false;
    buf_str(out, r->change);
    if (*r->reason)
        buf_printf(out, "%sreason: %s", *r->change ? "; " : "", r->reason);
    return false;
}

static void
audit_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "audit", out);
}

static void
audit_sql(struct view *view, struct buf *out)
{
    buf_str(out, adapter_sql(source_adapter(view->app->source), SEC_AUDIT));
}

static void
audit_target(struct view *view, struct target *t)
{
    const struct audit_row *r = list_selected(table_list(view));

    if (!r)
        return;
    t->kind = TARGET_ACTION;
    t->name = r->action;
}

const struct view_ops view_audit = {
    .name = "audit",
    .title = "Audit",
    .screen = 6,
    .tab = 6,
    .scope = IN_AUDIT,
    .topics = TOPIC_BIT(TOPIC_AUDIT),
    .size = sizeof(struct table_view),
    .init = audit_init,
    .done = table_done,
    .update = audit_update,
    .draw = audit_draw,
    .list = table_list,
    .back = table_back,
    .target = audit_target,
    .crumb = audit_crumb,
    .remark = audit_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = audit_sql,
    .copy = table_copy,
};
