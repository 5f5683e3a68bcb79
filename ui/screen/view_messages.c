/*
 * Messages: all messages of this session, the newest first; the line above the footer shows the
 * selected one in full.
 */
#include <stddef.h>

#include "ui/console/app.h"
#include "ui/console/table_view.h"
#include "ui/screen/views.h"

struct messages_view {
    struct table_view table;
    int64_t seen;
};

#define F(f) offsetof(struct message, f)

static enum role
role_of_word(const void *row, const struct cell_ctx *c)
{
    static const enum role roles[] = {ROLE_DIM, ROLE_GOOD, ROLE_WARN, ROLE_BAD};

    (void)c;
    return roles[((const struct message *)row)->severity];
}

static const struct column_special word_special = {NULL, role_of_word, K_CUSTOM, false};

/* clang-format off */
static const struct column columns[] = {
    {.name = "number", .title = "NUMBER", .help = "In the order of this session", .kind = K_TEXT, .offset = F(number),
     .min_w = 8, .max_w = 8, .keep = 100},
    {.name = "at", .title = "TIME", .help = "When the message came", .kind = K_TIME, .offset = F(at_ms), .min_w = 8,
     .max_w = 14, .keep = 1},
    {.name = "word", .title = "", .help = "Severity", .kind = K_TEXT, .offset = F(word), .min_w = 7, .max_w = 7,
     .keep = 2, .special = &word_special},
    {.name = "text", .title = "MESSAGE", .help = "Text of the message", .kind = K_TEXT, .offset = F(text), .min_w = 10},
    {0},
};
/* clang-format on */

static const struct list_def list_of_messages = {
    .columns = columns,
    .row_size = sizeof(struct message),
    .id_offset = F(number),
    .sort = "number",
    .desc = true,
};

static bool
row_matches(void *ctx, const void *row)
{
    const struct messages_view *v = ctx;
    const struct message *m = row;

    return words_match(v->table.filter, (const char *const[]){m->word, m->text, NULL});
}

static void
messages_init(struct view *view, const char *arg)
{
    (void)arg;
    table_init(view, &list_of_messages, row_matches);
}

/* Called before every key and frame, so the list never reads rows that have dropped out of the log.
 */
static struct list *
messages_list(struct view *view)
{
    struct messages_view *v = (struct messages_view *)view;
    const struct messages *log = &view->app->messages;

    if (v->seen != log->count)
        list_set_rows(v->table.list, log->items, log->n);
    v->seen = log->count;
    return v->table.list;
}

static void
messages_draw(struct view *view, struct grid *g, struct rect r)
{
    struct app *a = view->app;

    grid_printf(g, rect_cut_top(&r, 1), ROLE_DIM, " %s in this session",
                fmt_plural(a->messages.count, "message").s);
    list_draw(messages_list(view), g, r,
              &(struct list_look){.now_ms = a->now_ms,
                                  .utc = a->options.utc,
                                  .empty = "no messages in this session"});
}

static bool
messages_remark(struct view *view, struct buf *out)
{
    const struct message *m = list_selected(messages_list(view));

    if (m)
        buf_str(out, m->text);
    return false;
}

static void
messages_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "messages", out);
}

static const char *
messages_copy(struct view *view)
{
    const struct message *m = list_selected(messages_list(view));

    return m ? m->text : NULL;
}

const struct view_ops view_messages = {
    .name = "messages",
    .title = "Messages",
    .screen = 8,
    .tab = 8,
    .scope = IN_MESSAGES,
    .size = sizeof(struct messages_view),
    .init = messages_init,
    .done = table_done,
    .draw = messages_draw,
    .list = messages_list,
    .back = table_back,
    .crumb = messages_crumb,
    .remark = messages_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .copy = messages_copy,
};
