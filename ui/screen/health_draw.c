/*
 * The Database screen: figures, tables, transactions, vacuums, locks; if there is room, also the
 * graph of dead rows and the advice. The heights of the upper parts follow from the room alone, so
 * nothing moves when a vacuum begins. Parts that come and go take their rows from the list of
 * transactions.
 */
#include "ui/screen/health_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/facts/verdict.h"
#include "ui/term/chart.h"

enum { WIDE_W = 120, WIDE_H = 34, PANEL_H = 9, SHOWN_VACUUMS = 2, SHOWN_WAITS = 3 };
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

static struct lead
lead_of_session(const void *row, const struct cell_ctx *c)
{
    return verdict_lead(verdict_of_session(row, c->now_ms));
}

static void
draw_query(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_session *s = row;
    struct buf line = {0};

    (void)c;
    if (*s->blocked_by) {
        buf_str(&line, "(waits for ");
        health_say_blockers(&line, s);
        buf_str(&line, ") ");
    }
    health_one_line(&line, s->query);
    if (line.len)
        grid_text(g, r, ROLE_TEXT, line.data, line.len);
    buf_free(&line);
}

static const struct column_special state_special = {draw_state, NULL, K_TEXT, false};
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
    {.name = "xact", .title = "XACT", .help = "How long its transaction has been open", .kind = K_AGE_SHORT,
     .offset = S(xact_ms), .min_w = 4, .max_w = 4},
    {.name = "held", .title = "XMIN AGE",
     .help = "Transactions since the oldest that it may still see: rows that died since then stay", .kind = K_COUNT,
     .offset = S(held), .min_w = 9, .max_w = 11},
    {.name = "client", .title = "CLIENT", .help = "Where it comes from", .kind = K_TEXT, .offset = S(client),
     .min_w = 15, .max_w = 15, .keep = 20},
    {.name = "query", .title = "QUERY", .help = "Its statement, or the last one", .kind = K_CUSTOM,
     .offset = S(query), .min_w = 12, .keep = 1, .special = &query_special},
    {0},
};
/* clang-format on */

const struct list_def health_sessions_def = {
    .columns = session_columns,
    .row_size = sizeof(struct health_session),
    .id_offset = S(id),
    .sort = "held",
    .desc = true,
    .lead = lead_of_session,
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
        pen_printf(&p, ROLE_DIM, " ×%d", t->parts);
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

static void
draw_fill(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct health_table *t = row;
    double fill = health_fill(t);
    int full = fill >= 1 ? r.w : (int)(fill * r.w + 0.5);
    enum role role = verdict_role(verdict_of_table(t));

    (void)c;
    for (int i = 0; i < r.w; i++)
        grid_str(g, (struct rect){r.x + i, r.y, 1, 1}, i < full ? role : ROLE_BAR_REST,
                 i < full ? "█" : "░");
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
    {.name = "next", .title = "NEXT AT", .help = "", .kind = K_COUNT, .offset = T(next_dead), .min_w = 8, .max_w = 9},
    {.name = "fill", .title = "", .help = "", .kind = K_CUSTOM, .offset = T(next_dead), .min_w = 10, .max_w = 16,
     .keep = 2, .special = &fill_special},
    {.name = "largest", .title = "LARGEST PARTITION", .help = "", .kind = K_CUSTOM, .offset = T(largest), .min_w = 20,
     .keep = 20, .special = &largest_special},
    {0},
};
/* clang-format on */
enum { TABLE_COLUMNS = (int)(sizeof table_columns / sizeof *table_columns) - 1, LEAD_W = 3 };

static void
draw_table_titles(struct grid *g, struct rect r, const int *widths)
{
    grid_paint(g, r, ROLE_TITLE);
    rect_cut_left(&r, LEAD_W);
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

/* The largest ones; the last rows go to smaller ones that are past their mark, or not vacuumed. */
static int
pick_tables(const struct health *h, int max, const struct health_table **out)
{
    int n = 0;

    for (int i = 0; i < h->ntables && n < max; i++)
        out[n++] = &h->tables[i];
    for (int i = n, at = n; i < h->ntables && at > n / 2; i++)
        if (health_fill(&h->tables[i]) >= 1 || h->tables[i].vacuum_off == 1)
            out[--at] = &h->tables[i];
    return n;
}

enum { TABLES_MOST = 40 };

static void
draw_lead(struct grid *g, struct rect r, const struct health_table *t)
{
    struct lead lead = verdict_lead(verdict_of_table(t));

    rect_cut_left(&r, 1);
    if (lead.glyph)
        grid_str(g, r, lead.role, lead.glyph);
}

static void
draw_tables(const struct health_look *l, struct grid *g, struct rect r)
{
    const struct health_table *pick[TABLES_MOST];
    struct cell_ctx ctx = {.now_ms = l->h.now_ms, .utc = l->look.utc};
    int widths[TABLE_COLUMNS];

    column_layout(table_columns, TABLE_COLUMNS, (const bool[TABLE_COLUMNS]){false}, r.w - LEAD_W,
                  widths);
    draw_table_titles(g, rect_cut_top(&r, 1), widths);
    int n = pick_tables(&l->h, r.h < TABLES_MOST ? r.h : TABLES_MOST, pick);
    for (int i = 0; i < n; i++) {
        struct rect line = rect_row(r, i), at = line;
        struct rect lead = rect_cut_left(&at, LEAD_W);
        draw_lead(g, lead, pick[i]);
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
        rect_cut_left(&r, LEAD_W);
        grid_str(g, r, ROLE_DIM, l->no_tables);
    }
}

/* --- figures --------------------------------------------------------------------------------- */

/* A label and its figure, only where both fit: never a number cut short. */
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
    bool full = s->connections * 10 >= s->max_connections * 9;
    figure(&p, "conns", full ? ROLE_BAD : ROLE_STRONG, fmt_int(s->connections).s, text);
    figure(&p, "active", ROLE_STRONG, fmt_int(s->active).s, "");
    figure(&p, "idle-txn", s->idle_in_txn ? ROLE_WARN : ROLE_STRONG, fmt_int(s->idle_in_txn).s, "");
    figure(&p, "blocked", s->blocked ? ROLE_BAD : ROLE_STRONG, fmt_int(s->blocked).s, "");
    if (s->lag_ms != FIELD_NULL)
        figure(&p, s->standby == 1 ? "own lag" : "repl lag",
               s->lag_ms >= 30000 ? ROLE_WARN : ROLE_STRONG, fmt_duration(s->lag_ms).s, "");
    snprintf(text, sizeof text, "%.1f%%", l->h.cache_hit * 100);
    if (!isnan(l->h.cache_hit))
        figure(&p, "cache hit", l->h.cache_hit < HIT_WARN ? ROLE_WARN : ROLE_STRONG, text, "");
    if (!isnan(l->h.wal_per_s))
        figure(&p, s->standby == 1 ? "replay" : "wal", ROLE_STRONG,
               fmt_bytes((int64_t)l->h.wal_per_s).s, "/s");
    if (*l->filter)
        figure(&p, "filter", ROLE_STRONG, l->filter, "");
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
    rect_cut_left(&r, LEAD_W);
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
        pen_gap(&w, LEAD_W);
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

/* --- panels ---------------------------------------------------------------------------------- */

static void
draw_dead(const struct health_look *l, struct grid *g, struct rect r)
{
    char title[160];
    double top = l->dead ? chart_max(l->dead, l->ndead) : 0;

    snprintf(title, sizeof title,
             "dead rows in %.60s, last 30 min, as seen while this screen was open", l->dead_name);
    struct fmt high = fmt_count_fit((int64_t)top, 4), mid = fmt_count_fit((int64_t)(top / 2), 4);
    chart_panel(g, r,
                &(struct chart){title, ROLE_CHART_WARN, l->dead, l->dead ? l->ndead : 0, 0, high.s,
                                mid.s, "0", "-30m", "-15m", "now"});
}

static void
draw_advice(const struct health_look *l, struct grid *g, struct rect r)
{
    struct rect in =
        rect_inset(grid_box(g, r, ROLE_BORDER, "advice (nothing is run by itself)"), 1, 0);
    int left = l->nadvice;

    if (left == 0)
        grid_str(g, in, ROLE_DIM,
                 l->h.server ? "nothing: vacuum keeps up and nobody holds it back" : "");
    for (int i = 0; i < l->nadvice && in.h > 0; i++) {
        const struct advice *a = &l->advice[i];
        int lines = grid_count_lines(a->text, strlen(a->text), in.w - 2);
        if (in.h < 2 && left > 1) {
            grid_printf(g, in, ROLE_DIM, "  %d more: f shows all", left);
            return;
        }
        struct rect text = rect_cut_top(&in, lines);
        grid_str(g, rect_cut_left(&text, 2),
                 a->bad    ? ROLE_BAD
                 : a->calm ? ROLE_DIM
                           : ROLE_WARN,
                 a->bad    ? "×"
                 : a->calm ? "·"
                           : "▲");
        grid_lines(g, text, a->calm ? ROLE_DIM : ROLE_TEXT, a->text, strlen(a->text),
                   &(struct text_area){0, 0, true});
        left--;
    }
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

void
health_draw(const struct health_look *l, struct grid *g, struct rect r)
{
    draw_figures(l, g, rect_cut_top(&r, 1));
    if (r.w >= WIDE_W && r.h >= WIDE_H) {
        draw_advice(l, g, rect_cut_bottom(&r, PANEL_H));
        draw_dead(l, g, rect_cut_bottom(&r, PANEL_H));
        rect_cut_bottom(&r, 1);
    }
    int tables = r.h < 8 ? 0 : r.h < 18 ? 5 : r.h / 2 - 2;
    draw_tables(l, g, rect_cut_top(&r, tables));
    rect_cut_top(&r, r.h >= 12 ? 1 : 0);
    int lower = lower_height(&l->h);
    if (r.h - lower >= 4) {
        struct rect low = rect_cut_bottom(&r, lower);
        rect_cut_top(&low, draw_vacuums(l, g, low));
        draw_xid(l, g, rect_cut_top(&low, 1));
        draw_locks(l, g, low);
    } else if (r.h >= 5) {
        draw_locks(l, g, rect_cut_bottom(&r, 1));
    }
    if (r.h >= 4)
        grid_str(g, rect_cut_top(&r, 1), ROLE_HEADING, " OLDEST TRANSACTIONS (hold back vacuum)");
    list_draw(l->sessions, g, r, &l->look);
}
