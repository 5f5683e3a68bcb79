/*
 * Audit: the last administrative actions, who did them, and what they changed.
 */
#include <stddef.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/facts/audit_columns.h"
#include "ui/screen/views.h"
#include "ui/term/words.h"

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
