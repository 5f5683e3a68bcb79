/*
 * Audit: the last administrative actions, who did them, and what they changed.
 */
#include <stddef.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/screen/views.h"
#include "ui/term/words.h"

#define F(f) offsetof(struct audit_row, f)

/* clang-format off */
static const struct column columns[] = {
    {"at", "TIME", "When it was done", K_TIME, F(at_ms), 8, 11, 0, NULL},
    {"who", "WHO", "Login that did it", K_TEXT, F(who), 8, 14, 0, NULL},
    {"addr", "FROM", "Address it came from", K_TEXT, F(addr), 9, 15, 9, NULL},
    {"verb", "ACTION", "What was done", K_TEXT, F(verb), 15, 15, 0, NULL},
    {"target", "TARGET", "To what", K_TEXT, F(target), 12, 24, 0, NULL},
    {"change", "CHANGE", "What was asked, and what was there before", K_TEXT, F(change), 12, 44, 4, NULL},
    {"changed", "ROWS", "Rows changed", K_COUNT, F(changed), 5, 9, 0, NULL},
    {"skipped", "SKIP", "Rows that had moved on", K_COUNT, F(skipped), 4, 7, 9, NULL},
    {"reason", "REASON", "Why, in the words of who did it", K_TEXT, F(reason), 10, 0, 6, NULL},
    {"action", "ID", "The action, for queuetop undo", K_UUID, F(action), 8, 8, 8, NULL},
    {"params", "PARAMETERS", "What was asked, as JSON", K_TEXT, F(params), 12, 30, 101, NULL},
    {"before", "BEFORE", "What the one changed row was, as JSON", K_TEXT, F(before), 12, 30, 102, NULL},
};
/* clang-format on */

static const struct list_def list_of_audit = {
    .columns = columns,
    .ncolumns = (int)(sizeof columns / sizeof *columns),
    .row_size = sizeof(struct audit_row),
    .id_offset = F(action),
    .sort = "at",
    .desc = true,
};

static bool
keep(void *ctx, const void *row)
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
    table_init(view, &list_of_audit, keep);
    list_hide_empty(table_list(view), true); /* FROM, where all came by the socket */
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

static void
audit_draw(struct view *view, struct grid *g, struct rect r)
{
    struct app *a = view->app;
    const struct topic_info *t = store_topic(a->store, TOPIC_AUDIT);
    struct list_look look = {.now_ms = a->now_ms,
                             .utc = a->options.utc,
                             .stale = store_is_stale(a->store, TOPIC_AUDIT),
                             .empty = "no action yet"};

    if (t->unavailable)
        look.empty = app_unavailable(a, TOPIC_AUDIT);
    else if (!t->has_data)
        look.empty = "asking ...";
    struct rect head = rect_cut_top(&r, 1);
    if (!t->unavailable)
        grid_str(g, head, ROLE_DIM, " append-only, written in the same transaction as the change");
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
    buf_printf(out, "audit log%s%s", *table_filter(view) ? " › " : "", table_filter(view));
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
