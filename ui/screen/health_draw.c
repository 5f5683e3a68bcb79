/*
 * The Database screen: figures, advice, sessions that hold vacuum back or wait, tables, vacuums,
 * locks; if there is room, also the chart of dead rows. What the user can act on comes first. The
 * heights of the parts depend only on the room, so nothing moves when a vacuum begins. A part that
 * comes and goes takes its rows from the list of sessions.
 */
#include "ui/screen/health_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/facts/verdict.h"
#include "ui/term/chart.h"
#include "ui/term/plot.h"

enum { WIDE_W = 120, WIDE_H = 34, SHOWN_VACUUMS = 2, SHOWN_WAITS = 3, FILL_W = 10 };
#define HIT_WARN 0.95

/* --- transactions ---------------------------------------------------------------------------- */

#define S(f) offsetof(struct health_session, f)

/* "idle in txn" */
static const char *
health_state(const struct health_session *s)
{
    if (health_waits(s))
        return "waits: lock";
    if (!strcmp(s->state, "idle in transaction"))
        return "idle in txn";
    if (!strcmp(s->state, "idle in transaction (aborted)"))
        return "aborted txn";
    return s->state;
}

static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_session *s = row;

    grid_str(g, r, verdict_role(verdict_of_session(s, c->now_ms)), health_state(s));
}

static struct sign
sign_of_session(const void *row, const struct cell_ctx *c)
{
    return verdict_sign(verdict_of_session(row, c->now_ms));
}

static void
draw_query(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_session *s = row;
    const struct health_note *note = c ? c->ctx : NULL;
    struct buf line = {0};

    if (*s->blocked_by && (!note || !note->shows_waits)) {
        buf_str(&line, "(waits for ");
        health_say_blockers(&line, s);
        buf_str(&line, ") ");
    }
    health_one_line(&line, s->query);
    if (line.len)
        grid_text(g, r, ROLE_TEXT, line.data, line.len);
    buf_free(&line);
}

/* The dead rows that the oldest transaction keeps. The others keep none but these. */
static void
draw_held(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_session *s = row;
    const struct health_note *note = c->ctx;
    char text[64];

    if (!note || strcmp(s->id, note->holder) != 0) {
        grid_right(g, r, ROLE_DIM, "·");
        return;
    }
    snprintf(text, sizeof text, "%s row%s", fmt_count_fit(note->rows, r.w - 5).s,
             note->rows == 1 ? "" : "s");
    grid_right(g, r, verdict_role(verdict_of_session(s, c->now_ms)), text);
}

/* "└ 8123": the sessions that hold what this one waits for. */
static void
draw_waits(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_session *s = row;
    struct buf who = {0};

    (void)c;
    if (!health_waits(s))
        return;
    health_say_blockers(&who, s);
    grid_printf(g, r, ROLE_TEXT, "└ %s", who.data + (strncmp(who.data, "pid ", 4) ? 0 : 4));
    buf_free(&who);
}

static const struct column_special state_special = {draw_state, NULL, K_TEXT, false};
static const struct column_special held_special = {draw_held, NULL, K_COUNT, true};
static const struct column_special waits_special = {draw_waits, NULL, K_CUSTOM, false};
static const struct column_special query_special = {draw_query, NULL, K_TEXT, false};

/* clang-format off */
static const struct column session_columns[] = {
    {.name = "pid", .title = "PID", .help = "Process of the server; none for prepared transactions", .kind = K_INT,
     .offset = S(pid), .min_w = 7, .max_w = 7},
    {.name = "user", .title = "USER", .help = "Who is logged in", .kind = K_TEXT, .offset = S(user), .min_w = 6,
     .max_w = 10, .keep = 5},
    {.name = "app", .title = "APP", .help = "What the program calls itself, or the name of the slot", .kind = K_TEXT,
     .offset = S(app), .min_w = 8, .max_w = 16, .keep = 2},
    {.name = "state", .title = "STATE", .help = "What the session does", .kind = K_CUSTOM, .offset = S(state),
     .min_w = 11, .max_w = 11, .special = &state_special},
    {.name = "xact", .title = "XACT", .help = "How long its transaction has been open", .kind = K_AGE,
     .offset = S(xact_ms), .min_w = 4, .max_w = 7},
    {.name = "held", .title = "HOLDS BACK",
     .help = "Dead rows of the queue's tables that stay while it is open, at most; a dot: an older one holds them, too",
     .kind = K_CUSTOM, .offset = S(held), .min_w = 11, .max_w = 11, .special = &held_special},
    {.name = "waits", .title = "WAITS FOR", .help = "The process that holds the lock that it waits for",
     .kind = K_CUSTOM, .offset = S(blocked_by), .min_w = 9, .max_w = 12, .keep = 15, .special = &waits_special},
    {.name = "client", .title = "CLIENT", .help = "Where it comes from", .kind = K_TEXT, .offset = S(client),
     .min_w = 15, .max_w = 15, .keep = 20},
    {.name = "query", .title = "QUERY", .help = "Its statement, or the last one", .kind = K_CUSTOM,
     .offset = S(query), .min_w = 11, .keep = 1, .special = &query_special},
    {0},
};
/* clang-format on */

const struct list_def health_sessions_def = {
    .columns = session_columns,
    .row_size = sizeof(struct health_session),
    .id_offset = S(id),
    .sort = "held",
    .desc = true,
    .sign = sign_of_session,
};

/* --- tables ---------------------------------------------------------------------------------- */

#define T(f) offsetof(struct health_table, f)

static void
draw_name(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_table *t = row;
    struct pen p = pen_start(g, r);

    (void)c;
    pen_put(&p, t->vacuum_off == 1 ? ROLE_WARN : ROLE_TEXT, t->name);
    if (t->partitioned == 1 && p.r.w > 8)
        pen_printf(&p, ROLE_TEXT, " ×%d", t->parts);
}

static void
draw_part(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_table *t = row;
    double part = health_dead_part(t);

    (void)c;
    grid_right(g, r, isnan(part) ? ROLE_DIM : verdict_role(verdict_of_table(t)),
               isnan(part) ? "–" : fmt_percent(part, 1).s);
}

/* The fill of the fullest partition: when it is full, the next vacuum begins. */
static void
draw_fill(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_table *t = row;
    double fill = health_fill(t);
    struct rect bar = rect_cut_left(&r, r.w > 2 * FILL_W ? FILL_W : 5);
    int full = fill >= 1 ? bar.w : (int)(fill * bar.w + 0.5);
    enum role role = verdict_role(verdict_of_table(t));

    (void)c;
    for (int i = 0; i < bar.w; i++)
        grid_str(g, (struct rect){bar.x + i, bar.y, 1, 1}, i < full ? role : ROLE_BAR_REST,
                 i < full ? "█" : "░");
    if (isnan(fill))
        return;
    if (fill >= 1)
        grid_printf(g, r, role, " overdue x%.*f", fill < 9.5, fill);
    else
        grid_printf(g, r, ROLE_TEXT, " %s", fmt_percent(fill, 1).s);
}

static void
draw_largest(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_table *t = row;

    (void)c;
    if (t->partitioned == 1 && *t->largest)
        grid_printf(g, r, ROLE_DIM, "%s %s", fmt_bytes(t->largest_size).s, t->largest);
}

static const struct column_special name_special = {draw_name, NULL, K_TEXT, false};
static const struct column_special part_special = {draw_part, NULL, K_CUSTOM, true};
static const struct column_special fill_special = {draw_fill, NULL, K_CUSTOM, false};
static const struct column_special largest_special = {draw_largest, NULL, K_CUSTOM, false};

/* clang-format off */
static const struct column table_columns[] = {
    {.name = "name", .title = "TABLE", .help = "", .kind = K_CUSTOM, .offset = T(name), .min_w = 14, .max_w = 22,
     .special = &name_special},
    {.name = "live", .title = "LIVE", .help = "", .kind = K_COUNT, .offset = T(live), .min_w = 9, .max_w = 11,
     .keep = 4},
    {.name = "dead", .title = "DEAD", .help = "", .kind = K_COUNT, .offset = T(dead), .min_w = 7, .max_w = 10},
    {.name = "part", .title = "DEAD%", .help = "", .kind = K_CUSTOM, .offset = T(dead), .min_w = 5, .max_w = 5,
     .special = &part_special},
    {.name = "size", .title = "SIZE", .help = "", .kind = K_BYTES, .offset = T(size), .min_w = 7, .max_w = 7,
     .keep = 1},
    {.name = "index", .title = "INDEX", .help = "", .kind = K_BYTES, .offset = T(index_size), .min_w = 7, .max_w = 7,
     .keep = 9},
    {.name = "hot", .title = "HOT%", .help = "", .kind = K_PERCENT, .offset = T(hot), .min_w = 4, .max_w = 4,
     .keep = 10},
    {.name = "vacuumed", .title = "VACUUM", .help = "", .kind = K_AGE, .offset = T(vacuumed_ms), .min_w = 7,
     .max_w = 7, .keep = 3},
    {.name = "analyzed", .title = "ANALYZE", .help = "", .kind = K_AGE, .offset = T(analyzed_ms), .min_w = 7,
     .max_w = 7, .keep = 11},
    {.name = "fill", .title = "TO NEXT VACUUM", .help = "", .kind = K_CUSTOM, .offset = T(next_dead), .min_w = 18,
     .max_w = 23, .keep = 2, .special = &fill_special},
    {.name = "largest", .title = "LARGEST PARTITION", .help = "", .kind = K_CUSTOM, .offset = T(largest), .min_w = 20,
     .keep = 20, .special = &largest_special},
    {0},
};
/* clang-format on */
enum { TABLE_COLUMNS = (int)(sizeof table_columns / sizeof *table_columns) - 1, SIGN_W = 3 };

static void
draw_table_titles(struct grid *g, struct rect r, const int *widths)
{
    grid_paint(g, r, ROLE_TITLE);
    rect_cut_left(&r, SIGN_W);
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        struct rect cell = rect_cut_left(&r, widths[i]);
        if (widths[i] <= 0)
            continue;
        if (column_right(&table_columns[i]))
            grid_right(g, cell, ROLE_TITLE, table_columns[i].title);
        else
            grid_str(g, cell, ROLE_TITLE, table_columns[i].title);
        rect_cut_left(&r, 1);
    }
}

/* Tables in trouble first, then the largest. */
static int
pick_tables(const struct health *h, int max, const struct health_table **out)
{
    int n = 0;

    for (int v = VERDICT_BAD; v >= VERDICT_WELL; v--)
        for (int i = 0; i < h->ntables && n < max; i++)
            if ((int)verdict_of_table(&h->tables[i]) == v)
                out[n++] = &h->tables[i];
    return n;
}

enum { TABLES_MOST = 40 };

static void
draw_sign(struct grid *g, struct rect r, const struct health_table *t)
{
    struct sign sign = verdict_sign(verdict_of_table(t));

    rect_cut_left(&r, 1);
    if (sign.glyph)
        grid_str(g, r, sign.role, sign.glyph);
}

enum { PARTS_WIDE_W = 50 };

/* A table in parts shows their number: "history ×15". */
static void
draw_tables_rule(const struct health_look *l, struct grid *g, struct rect r)
{
    bool parts = false;

    for (int i = 0; i < l->h.ntables; i++)
        parts = parts || l->h.tables[i].partitioned == 1;
    grid_rule(g, r, ROLE_BOX_TITLE, "tables");
    rect_cut_left(&r, 12);
    rect_cut_right(&r, 2);
    if (parts)
        grid_right(g, r, ROLE_DIM,
                   r.w >= PARTS_WIDE_W ? " ×N: N partitions, the bar is the fullest one's "
                                       : " ×N: N partitions ");
}

static void
draw_tables(const struct health_look *l, struct grid *g, struct rect r)
{
    const struct health_table *pick[TABLES_MOST];
    struct cell_ctx ctx = {.now_ms = l->h.now_ms, .utc = l->look.utc};
    int widths[TABLE_COLUMNS];

    column_layout(table_columns, TABLE_COLUMNS, (const bool[TABLE_COLUMNS]){false}, r.w - SIGN_W,
                  widths);
    draw_table_titles(g, rect_cut_top(&r, 1), widths);
    int n = pick_tables(&l->h, r.h < TABLES_MOST ? r.h : TABLES_MOST, pick);
    for (int i = 0; i < n; i++) {
        struct rect line = rect_row(r, i), at = line;
        struct rect sign = rect_cut_left(&at, SIGN_W);
        draw_sign(g, sign, pick[i]);
        for (int k = 0; k < TABLE_COLUMNS; k++) {
            struct rect cell = rect_cut_left(&at, widths[k]);
            if (widths[k] > 0) {
                column_draw(&table_columns[k], g, cell, pick[i], &ctx);
                rect_cut_left(&at, 1);
            }
        }
        if (l->tables_stale)
            grid_paint(g, line, ROLE_STALE);
    }
    if (n == 0) {
        rect_cut_left(&r, SIGN_W);
        grid_str(g, r, ROLE_DIM, l->no_tables);
    }
}

/* --- figures --------------------------------------------------------------------------------- */

enum { WIDE_FIGURES = 100 };

/* Draws a label and its figure if both have room: a number is never cut short. */
static void
figure(struct pen *p, const char *label, enum role role, const char *value, const char *rest)
{
    if (p->r.w < (int)(strlen(label) + strlen(value) + strlen(rest)) + 2)
        return;
    pen_printf(p, ROLE_DIM, " %s ", label);
    pen_put(p, role, value);
    pen_put(p, ROLE_DIM, rest);
    pen_gap(p, 1);
}

static void
draw_figures(const struct health_look *l, struct grid *g, struct rect r)
{
    const struct health_server *s = l->h.server;
    struct pen p = pen_start(g, r);
    char text[64];

    if (!s) {
        pen_put(&p, ROLE_DIM, " asking ...");
        return;
    }
    snprintf(text, sizeof text, "/%d", s->max_connections);
    bool wide = r.w >= WIDE_FIGURES, full = s->connections * 10 >= s->max_connections * 9;
    if (wide && l->nadvice > 0 && health_holder(&l->h) && l->advice->bad)
        pen_put(&p, ROLE_BAD, " × vacuum is held back ");
    if (*l->filter)
        figure(&p, "filter", ROLE_STRONG, l->filter, "");
    figure(&p, "connections", full ? ROLE_BAD : ROLE_STRONG, fmt_int(s->connections).s, text);
    figure(&p, "active", ROLE_STRONG, fmt_int(s->active).s, "");
    figure(&p, wide ? "idle in a transaction" : "idle in txn",
           s->idle_in_txn ? ROLE_WARN : ROLE_STRONG, fmt_int(s->idle_in_txn).s, "");
    figure(&p, "blocked", s->blocked ? ROLE_BAD : ROLE_STRONG, fmt_int(s->blocked).s, "");
    if (s->lag_ms != FIELD_NULL)
        figure(&p,
               s->standby == 1 ? "own lag"
               : wide          ? "replica lag"
                               : "lag",
               s->lag_ms >= 30000 ? ROLE_WARN : ROLE_STRONG, fmt_duration(s->lag_ms).s, "");
    snprintf(text, sizeof text, "%.1f%%", l->h.cache_hit * 100);
    if (!isnan(l->h.cache_hit))
        figure(&p, wide ? "cache hit" : "cache",
               l->h.cache_hit < HIT_WARN ? ROLE_WARN : ROLE_STRONG, text, "");
    if (!isnan(l->h.wal_per_s))
        figure(&p, s->standby == 1 ? "replay" : "wal", ROLE_STRONG,
               fmt_bytes((int64_t)l->h.wal_per_s).s, "/s");
}

static struct pen
heading(struct grid *g, struct rect r, const char *title)
{
    grid_printf(g, r, ROLE_HEADING, " %s", title);
    rect_cut_left(&r, 13);
    return pen_start(g, r);
}

static void
draw_vacuum(const struct health_look *l, struct grid *g, struct rect r,
            const struct health_vacuum *v)
{
    rect_cut_left(&r, SIGN_W);
    struct rect name = rect_cut_left(&r, r.w > 90 ? 32 : 22), phase = rect_cut_left(&r, 20);
    struct rect bar = rect_cut_left(&r, r.w > 40 ? 20 : r.w > 22 ? 8 : 0);
    struct pen p = pen_start(g, r);

    name.w--;
    phase.w--;
    grid_str(g, name, v->wraparound == 1 ? ROLE_WARN : ROLE_TEXT, v->name);
    grid_str(g, phase, ROLE_TEXT, v->phase);
    chart_bar(g, bar, v->done);
    pen_printf(&p, ROLE_TEXT, " %s", isnan(v->done) ? "–" : fmt_percent(v->done, 1).s);
    if (p.r.w >= 20)
        pen_printf(
            &p, ROLE_DIM, " of %s, %s", fmt_bytes(v->total_bytes).s,
            fmt_age(v->started_ms == FIELD_NULL ? FIELD_NULL : l->h.now_ms - v->started_ms).s);
    if (v->wraparound == 1 && p.r.w >= 16)
        pen_put(&p, ROLE_WARN, " wraparound");
}

static int
draw_vacuums(const struct health_look *l, struct grid *g, struct rect r)
{
    const struct health_server *s = l->h.server;
    struct pen p = heading(g, rect_row(r, 0), "AUTOVACUUM");
    int shown = l->h.nvacuums < SHOWN_VACUUMS ? l->h.nvacuums : SHOWN_VACUUMS;

    if (s && s->autovacuum == 0)
        pen_put(&p, ROLE_BAD, "off");
    else if (s)
        pen_printf(&p, ROLE_DIM, "%d/%d workers", s->workers, s->max_workers);
    if (l->h.nvacuums == 0)
        pen_put(&p, ROLE_DIM, " · no vacuum runs");
    else if (l->h.nvacuums > shown)
        pen_printf(&p, ROLE_DIM, " · %d vacuums run", l->h.nvacuums);
    for (int i = 0; i < shown; i++)
        draw_vacuum(l, g, rect_row(r, i + 1), &l->h.vacuums[i]);
    return shown + 1;
}

static void
draw_xid(const struct health_look *l, struct grid *g, struct rect r)
{
    const struct health_server *s = l->h.server;
    struct pen p = heading(g, r, "XID");

    if (!s)
        return;
    static const enum role roles[] = {ROLE_TEXT, ROLE_WARN, ROLE_BAD};
    pen_printf(&p, roles[health_xid_alarm(s)], "oldest %s of %s freeze max (%s)",
               fmt_count(s->xid_age).s, fmt_count(s->freeze_max).s,
               fmt_percent((double)s->xid_age, (double)s->freeze_max).s);
    if (p.r.w > 20)
        pen_printf(&p, ROLE_DIM, " in database %s", s->xid_database);
}

static int
draw_locks(const struct health_look *l, struct grid *g, struct rect r)
{
    const struct health *h = &l->h;
    struct pen p = heading(g, rect_row(r, 0), "LOCKS");
    int waits = 0;

    for (int i = 0; i < h->nsessions; i++) {
        const struct health_session *s = &h->sessions[i];
        if (!health_waits(s) || waits++ >= SHOWN_WAITS)
            continue;
        struct pen w = pen_start(g, rect_row(r, waits));
        pen_gap(&w, SIGN_W);
        pen_printf(&w, ROLE_BAD, "pid %d", s->pid);
        pen_printf(
            &w, ROLE_TEXT, " (%.40s) %s ", s->app,
            fmt_age_short(s->since_ms == FIELD_NULL ? FIELD_NULL : h->now_ms - s->since_ms).s);
        draw_query(g, w.r, s, NULL);
    }
    if (waits)
        pen_printf(&p, ROLE_BAD, "%d waiting", waits);
    else
        pen_put(&p, ROLE_DIM, h->server ? "none waiting" : "");
    if (h->server && h->server->longest_ms != FIELD_NULL)
        pen_printf(&p, ROLE_DIM, " · longest statement %s",
                   fmt_age_short(h->now_ms - h->server->longest_ms).s);
    if (p.r.w >= (int)strlen(l->own) + 3)
        pen_printf(&p, ROLE_DIM, " · %s", l->own);
    return 1 + (waits < SHOWN_WAITS ? waits : SHOWN_WAITS);
}

/* --- what to do ------------------------------------------------------------------------------ */

enum { ACT_W = 16 };

static void
draw_one(const struct advice *a, struct grid *g, struct rect r)
{
    enum role role = a->bad ? ROLE_BAD : ROLE_WARN;
    struct rect sign = rect_cut_left(&r, SIGN_W);
    struct rect key = rect_cut_right(&r, a->act && r.w > 3 * ACT_W ? ACT_W : 0);

    rect_cut_left(&sign, 1);
    grid_str(g, sign, role, a->bad ? "×" : "▲");
    if (key.w > 0) {
        struct pen p = pen_start(g, key);
        pen_put(&p, ROLE_DIM, " → ");
        pen_put(&p, ROLE_KEY, a->act);
    }
    if (r.h == 1)
        grid_words(g, r, ROLE_TEXT, a->what);
    else
        grid_lines(g, r, ROLE_TEXT, a->what, strlen(a->what), &(struct text_area){0, 0, true});
}

/* Each piece of advice gets a row; rows that are left over go to longer advice. If a text is cut,
 * the line at the foot shows it in full. */
static void
draw_advice(const struct health_look *l, struct grid *g, struct rect r)
{
    grid_rule(g, rect_cut_top(&r, 1), ROLE_BOX_TITLE, "what to do (nothing is run by itself)");
    if (l->nadvice == 0) {
        rect_cut_left(&r, SIGN_W);
        grid_str(g, r, ROLE_DIM,
                 l->h.server ? "nothing: vacuum keeps up and nobody holds it back" : "");
    }
    for (int i = 0; i < l->nadvice && r.h > 0; i++) {
        const struct advice *a = &l->advice[i];
        int room = r.h - (l->nadvice - i - 1), w = r.w - SIGN_W - ACT_W;
        int lines = grid_count_lines(a->what, strlen(a->what), w > 0 ? w : 1);
        if (r.h == 1 && i + 1 < l->nadvice && i > 0) {
            rect_cut_left(&r, SIGN_W);
            grid_printf(g, r, ROLE_DIM, "%d more: f shows all", l->nadvice - i);
            return;
        }
        draw_one(a, g, rect_cut_top(&r, lines < room ? lines : room < 1 ? 1 : room));
    }
}

/* --- the chart ------------------------------------------------------------------------------- */

enum { COLUMNS = 60, COLUMN_MS = 30000, CHART_H = 11, CHART_W = COLUMNS + PLOT_EDGES };

/* The time that one column covers: one step as long as all steps have room, later half a minute. */
static int64_t
column_ms(const struct health_look *l)
{
    for (int i = 0; i < l->ndead - COLUMNS; i++)
        if (!isnan(l->dead[i]))
            return COLUMN_MS;
    return l->step_ms;
}

/* Combines the steps of the history into columns that begin at whole multiples of their length; the
 * last column ends now. Returns the last known value. */
static double
fold_steps(const struct health_look *l, int64_t ms, double out[COLUMNS])
{
    int64_t newest = l->h.now_ms / l->step_ms, per = ms / l->step_ms;
    int64_t first = (l->h.now_ms / ms - COLUMNS + 1) * per;
    double last = (double)NAN;

    for (int i = 0; i < COLUMNS; i++) {
        out[i] = (double)NAN;
        for (int64_t s = first + i * per; s < first + (i + 1) * per && s <= newest; s++) {
            int64_t at = l->ndead - 1 - (newest - s);
            if (at >= 0 && !isnan(l->dead[at]))
                out[i] = last = l->dead[at];
        }
    }
    return last;
}

/* Marks the causes on the chart: when the table was vacuumed, and when the transaction began that
 * holds vacuum back. */
static int
chart_events(const struct health_look *l, struct plot_event out[2])
{
    const struct health_session *holder = health_holder(&l->h);
    int n = 0;

    for (int i = 0; i < l->h.ntables; i++)
        if (!strcmp(l->h.tables[i].name, l->dead_name) && l->h.tables[i].vacuumed_ms != FIELD_NULL)
            out[n++] = (struct plot_event){l->h.tables[i].vacuumed_ms, "↑", ROLE_TEXT};
    if (holder && holder->xact_ms != FIELD_NULL)
        out[n++] = (struct plot_event){holder->xact_ms, "×", ROLE_BAD};
    return n;
}

/* The server keeps only the present number of dead rows, so the first frame has one column: its
 * height on the axis is true, and a sentence says why the others are blank. */
static void
draw_dead(const struct health_look *l, struct grid *g, struct rect r)
{
    struct plot_event events[2];
    double dead[COLUMNS];
    char title[300];
    int64_t ms = column_ms(l);
    double now = fold_steps(l, ms, dead);

    text_print(title, sizeof title, "dead rows in %s %s   ↑ vacuum", l->dead_name,
               isnan(now) ? "" : fmt_count((int64_t)now).s);
    plot_panel(g, r,
               &(struct plot_axis){
                   .first_ms = (l->h.now_ms / ms - COLUMNS + 1) * ms,
                   .step_ms = ms,
                   .n = COLUMNS,
                   .now_ms = l->h.now_ms,
                   .utc = l->look.utc,
                   .events = events,
                   .nevents = chart_events(l, events),
               },
               &(struct plot){.title = title,
                              .corner = ms == COLUMN_MS ? "30 min" : "10 min",
                              .role = ROLE_CHART,
                              .area = dead,
                              .none = "asking ...",
                              .why = ": the server keeps no earlier figures"});
}

/* --- all ------------------------------------------------------------------------------------- */

static int
lower_height(const struct health *h)
{
    int waits = 0;

    for (int i = 0; i < h->nsessions; i++)
        waits += health_waits(&h->sessions[i]);
    return 3 + (h->nvacuums < SHOWN_VACUUMS ? h->nvacuums : SHOWN_VACUUMS) +
           (waits < SHOWN_WAITS ? waits : SHOWN_WAITS);
}

static void
draw_facts(const struct health_look *l, struct grid *g, struct rect r)
{
    rect_cut_top(&r, draw_vacuums(l, g, r));
    draw_xid(l, g, rect_cut_top(&r, 1));
    draw_locks(l, g, r);
}

static void
draw_sessions(const struct health_look *l, struct grid *g, struct rect r)
{
    if (r.h >= 4)
        grid_rule(g, rect_cut_top(&r, 1), ROLE_BOX_TITLE, "who holds vacuum back, who waits");
    list_draw(l->sessions, g, r, &l->look);
}

/* Draws the chart with the facts beside it. If there is less room: the facts alone, or one row of
 * them. */
static void
draw_lower(const struct health_look *l, struct grid *g, struct rect *r)
{
    int lower = lower_height(&l->h);

    if (r->w >= WIDE_W && r->h >= WIDE_H) {
        struct rect low = rect_cut_bottom(r, CHART_H);
        if (l->dead)
            draw_dead(l, g, rect_cut_left(&low, CHART_W));
        draw_facts(l, g, low);
    } else if (r->h >= 15 + lower) {
        draw_facts(l, g, rect_cut_bottom(r, lower));
    } else if (r->h >= 12) {
        draw_locks(l, g, rect_cut_bottom(r, 1));
    }
}

void
health_draw(const struct health_look *l, struct grid *g, struct rect r)
{
    int advice = r.h >= WIDE_H ? 6 : r.h >= 18 ? 4 : r.h >= 12 ? 3 : r.h >= 8 ? 2 : 0;

    draw_figures(l, g, rect_cut_top(&r, 1));
    int tables = r.h < 10       ? 0
                 : r.h < 15     ? 4
                 : r.h < 18     ? 5
                 : r.h < WIDE_H ? 7
                                : (r.h - advice - CHART_H) / 2;
    draw_lower(l, g, &r);
    if (advice)
        draw_advice(l, g, rect_cut_top(&r, advice));
    struct rect low = rect_cut_bottom(&r, tables);
    if (tables > 4)
        draw_tables_rule(l, g, rect_cut_top(&low, 1));
    draw_tables(l, g, low);
    draw_sessions(l, g, r);
}
