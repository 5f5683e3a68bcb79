/*
 * Database: the work of the server besides the queue's, and who prevents its vacuum.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/console/table_view.h"
#include "ui/facts/life.h"
#include "ui/facts/verdict.h"
#include "ui/screen/health_draw.h"
#include "ui/screen/views.h"

enum { ADVICE_MOST = 40 };

struct health_view {
    struct table_view table;
    char *graphed; /* the table that the chart shows */
    struct health_note note;
};

static bool
row_matches(void *ctx, const void *row)
{
    const struct health_view *v = ctx;
    const struct health_session *s = row;

    return words_match(v->table.filter, (const char *const[]){s->id, s->user, s->app, s->state,
                                                              s->waits, s->query, NULL});
}

static void
health_init(struct view *view, const char *arg)
{
    (void)arg;
    table_init(view, &health_sessions_def, row_matches);
    ((struct health_view *)view)->graphed = xstrdup("");
    ((struct health_view *)view)->note.holder = "";
    list_set_ctx(table_list(view), &((struct health_view *)view)->note);
}

static void
health_done(struct view *view)
{
    table_done(view);
    free(((struct health_view *)view)->graphed);
}

/* Chooses the table of the chart: the one in trouble, or else the one with most dead rows. The
 * chart keeps its table until another table is in more trouble or has twice its dead rows. */
static void
choose_graph(struct health_view *v, const struct health *h)
{
    const struct health_table *now = NULL, *most = NULL;

    for (int i = 0; i < h->ntables; i++) {
        const struct health_table *t = &h->tables[i];
        enum verdict this = verdict_of_table(t), worst = most ? verdict_of_table(most) : this;
        if (!strcmp(t->name, v->graphed))
            now = t;
        if (!most || this > worst || (this == worst && t->dead > most->dead))
            most = t;
    }
    if (!most || (now && verdict_of_table(most) <= verdict_of_table(now) &&
                  (double)most->dead < 2.0 * (double)now->dead + 1000))
        return;
    free(v->graphed);
    v->graphed = xstrdup(most->name);
}

static void
health_update(struct view *view)
{
    struct health_view *v = (struct health_view *)view;
    struct health h = store_health(view->app->store);

    list_set_rows(v->table.list, h.sessions, h.nsessions);
    if (!view->touched)
        list_home(v->table.list);
    choose_graph(v, &h);
}

/* --- frame ----------------------------------------------------------------------------------- */

static struct health
look_at(const struct app *a)
{
    struct health h = store_health(a->store);
    int64_t age = a->clock.stands ? 0 : store_age_ms(a->store, TOPIC_HEALTH);

    h.now_ms = age > 0 ? a->now_ms - age : a->now_ms; /* nobody knows what came after */
    return h;
}

/* Collects the advice. If no worker or scheduler is alive, this comes before trouble of the
 * database. */
static int
advise(struct app *a, const struct health *h, struct advice out[ADVICE_MOST])
{
    struct trouble t[TROUBLES_MAX];
    int n = life_of_store(a->store, a->now_ms, a->frame, t);

    for (int i = 0; i < n; i++) {
        const char *text = arena_printf(a->frame, "%s: %s", t[i].where, t[i].what);
        out[i] = (struct advice){.of = t[i].id, .bad = true, .id = "", .text = text, .what = text};
    }
    return n + health_advice(h, a->frame, out + n, ADVICE_MOST - n);
}

/* The advice that asks for an act. The key f shows the calm remarks, too. */
static int
advise_to_act(struct app *a, const struct health *h, struct advice out[ADVICE_MOST])
{
    int n = 0, all = advise(a, h, out);

    for (int i = 0; i < all; i++)
        if (!out[i].calm)
            out[n++] = out[i];
    return n;
}

static const char *
own_words(struct app *a)
{
    return arena_printf(a->frame, "this program %.1f%% of a core, at most 1s a statement",
                        store_load(a->store) * 100);
}

/* The column WAITS FOR takes room from the statements, so it is shown only while somebody waits. */
static void
make_note(struct health_view *v, const struct health *h, int w)
{
    const struct health_session *holder = health_holder(h);
    bool waits = false;

    for (int i = 0; i < h->nsessions; i++)
        waits = waits || health_waits(&h->sessions[i]);
    list_column_lacks(v->table.list, "waits", !waits);
    v->note = (struct health_note){.holder = holder ? holder->id : "",
                                   .rows = health_held_rows(h),
                                   .shows_waits = waits && w >= HEALTH_WAITS_FROM};
}

static void
health_draw_view(struct view *view, struct grid *g, struct rect r)
{
    struct health_view *v = (struct health_view *)view;
    struct app *a = view->app;
    struct advice advice[ADVICE_MOST];
    double dead[STORE_DEAD_STEPS];
    const struct topic_info *tables = store_topic(a->store, TOPIC_TABLES);
    bool known = store_topic(a->store, TOPIC_HEALTH)->has_data;
    struct health_look l = {
        .h = look_at(a),
        .sessions = v->table.list,
        .look = {.now_ms = a->now_ms,
                 .utc = a->options.utc,
                 .stale = store_is_stale(a->store, TOPIC_HEALTH),
                 .old_ms = store_age_ms(a->store, TOPIC_HEALTH),
                 .empty = !known             ? "asking ..."
                          : *v->table.filter ? "no transaction matches"
                                             : "no transaction is open"},
        .filter = v->table.filter,
        .tables_stale = store_is_stale(a->store, TOPIC_TABLES),
        .no_tables = tables->has_data ? "no table" : "asking ...",
        .advice = advice,
        .dead_name = v->graphed,
        .own = own_words(a),
    };

    l.nadvice = advise_to_act(a, &l.h, advice);
    make_note(v, &l.h, r.w);
    if (*v->graphed) {
        history_read(store_dead_rows(a->store), v->graphed, SERIES_BACKLOG, a->now_ms, dead,
                     STORE_DEAD_STEPS);
        l.dead = dead;
        l.ndead = STORE_DEAD_STEPS;
        l.step_ms = history_step_ms(store_dead_rows(a->store));
    }
    health_draw(&l, g, r);
}

/* Shows a piece of advice in full if the rows above cut it short. */
static bool
health_remark(struct view *view, struct buf *out)
{
    struct app *a = view->app;
    struct advice advice[ADVICE_MOST];
    struct health h = look_at(a);
    const struct health_session *s = list_selected(table_list(view));
    int n = advise_to_act(a, &h, advice), at = 0;

    for (int i = n - 1; s && i >= 0; i--)
        at = strcmp(advice[i].id, s->id) ? at : i;
    if (n == 0)
        return false;
    if (n > 1)
        buf_printf(out, "%d of %d: ", at + 1, n);
    buf_str(out, advice[at].text);
    if (n > 1)
        buf_str(out, "   f all");
    return advice[at].bad;
}

static void
health_crumb(struct view *view, struct buf *out)
{
    table_crumb(view, "database", out);
}

/* --- commands -------------------------------------------------------------------------------- */

static void
on_advice(struct app *a, int arg)
{
    struct advice advice[ADVICE_MOST];
    struct health h = look_at(a);
    int n = advise(a, &h, advice);
    struct buf text = {0};

    (void)arg;
    buf_str(&text, n ? "" : "Nothing: vacuum keeps up and nobody holds it back.\n");
    for (int i = 0; i < n; i++)
        buf_printf(&text, "%s%s %s\n", i ? "\n" : "",
                   advice[i].bad    ? "×"
                   : advice[i].calm ? "·"
                                    : "▲",
                   advice[i].text);
    if (h.server && h.server->signals_all == 0)
        buf_printf(&text, "\nC and K reach the sessions of your own role only: pg_signal_backend "
                          "reaches those of others too.\n");
    a->options.boxes->prose(a, "advice", text.data);
    buf_free(&text);
}

static void
fact(struct buf *out, const char *label, const char *value)
{
    if (*value)
        buf_printf(out, "%-12s %s\n", label, value);
}

static void
health_open(struct view *view)
{
    const struct health_session *s = list_selected(table_list(view));
    int64_t now = view->app->now_ms;
    struct buf text = {0};

    if (!s)
        return;
    fact(&text, "what", s->id);
    fact(&text, "kind", s->kind);
    fact(&text, "user", s->user);
    fact(&text, "application", s->app);
    fact(&text, "client", s->client);
    fact(&text, "state", s->state);
    fact(&text, "since", s->since_ms == FIELD_NULL ? "" : fmt_age(now - s->since_ms).s);
    fact(&text, "transaction", s->xact_ms == FIELD_NULL ? "" : fmt_age(now - s->xact_ms).s);
    fact(&text, "holds back",
         s->held == FIELD_NULL ? "nothing" : fmt_plural(s->held, "transaction").s);
    fact(&text, "waits for", s->waits);
    if (health_waits(s)) {
        struct buf who = {0};
        health_say_blockers(&who, s);
        fact(&text, "held by", who.data);
        buf_free(&who);
    }
    fact(&text, "C and K", s->deny);
    buf_printf(&text, "\n%s\n", s->query);
    view->app->options.boxes->prose(view->app, s->id, text.data);
    buf_free(&text);
}

static void
health_target(struct view *view, struct target *t)
{
    const struct health_session *s = list_selected(table_list(view));

    if (!s)
        return;
    t->kind = TARGET_SESSION;
    t->name = s->id;
    t->state = s->state;
}

static void
health_sql(struct view *view, struct buf *out)
{
    static const enum section_id parts[] = {SEC_HEALTH_SERVER, SEC_HEALTH_SESSIONS,
                                            SEC_HEALTH_VACUUMS, SEC_HEALTH_TABLES};

    for (int i = 0; i < 4; i++)
        buf_printf(out, "-- %s\n%s\n\n", section_kinds[parts[i]].name,
                   adapter_sql(source_adapter(view->app->source), parts[i]));
}

const struct view_ops view_health = {
    .name = "database",
    .title = "DB",
    .opens = "session",
    .screen = 7,
    .tab = 7,
    .scope = IN_DATABASE,
    .topics = TOPIC_BIT(TOPIC_HEALTH) | TOPIC_BIT(TOPIC_TABLES),
    .size = sizeof(struct health_view),
    .init = health_init,
    .done = health_done,
    .update = health_update,
    .draw = health_draw_view,
    .list = table_list,
    .open = health_open,
    .back = table_back,
    .target = health_target,
    .crumb = health_crumb,
    .remark = health_remark,
    .filter = table_filter,
    .set_filter = table_set_filter,
    .sql = health_sql,
    .copy = table_copy,
};

/* clang-format off */
const struct command commands_health[] = {
    {.name = "advice", .keys = "f", .help = "All advice in full, and what this login can't see",
     .scope = IN_DATABASE, .foot = 9, .run = on_advice},
    {0},
};
/* clang-format on */
