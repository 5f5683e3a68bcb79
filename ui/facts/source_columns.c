/*
 * The columns of the table of sources.
 */
#include "ui/facts/source_columns.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/fmt.h"

#define F(f) offsetof(struct source_row, f)

bool
source_is_bad(enum source_state s)
{
    return s == SOURCE_LOST || s == SOURCE_MISSING;
}

enum role
source_state_role(enum source_state s)
{
    switch (s) {
    case SOURCE_OPEN:
        return ROLE_TEXT;
    case SOURCE_LOOK_ONLY:
    case SOURCE_STRANGE:
        return ROLE_WARN;
    case SOURCE_LOST:
    case SOURCE_MISSING:
        return ROLE_BAD;
    case SOURCE_UNSEEN:
    case SOURCE_CONNECTING:
        break;
    }
    return ROLE_DIM;
}

static const char *
state_mark(enum source_state s)
{
    static const char *const marks[] = {"·", "…", "×", "×", "▲", "▲", "●"};

    return marks[s];
}

static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct source_line *l = &((const struct source_row *)row)->line;

    (void)c;
    grid_printf(g, r, source_state_role(l->state), "%s %s", state_mark(l->state),
                source_state_word(l->state));
}

static void
draw_age(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct source_line *l = &((const struct source_row *)row)->line;

    (void)c;
    if (l->age_ms < 0)
        grid_right(g, r, ROLE_DIM, "—");
    else if (l->stale)
        grid_right(g, r, ROLE_BAD, fmt_age(l->age_ms).s);
}

static void
draw_number(struct grid *g, struct rect r, int64_t n, bool approx, enum role role)
{
    char text[64];

    snprintf(text, sizeof text, "%s%s", approx && n != FIELD_NULL ? "~" : "",
             fmt_count_fit(n, r.w - approx).s);
    grid_right(g, r, role, text);
}

static void
draw_ready(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct source_line *l = &((const struct source_row *)row)->line;

    (void)c;
    draw_number(g, r, l->ready, l->approx, ROLE_TEXT);
}

static void
draw_failed(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct source_line *l = &((const struct source_row *)row)->line;

    (void)c;
    draw_number(g, r, l->failed, l->approx, l->failed == 0 ? ROLE_DIM : ROLE_TEXT);
}

void
source_draw_system(struct grid *g, struct rect r, const struct source_line *l)
{
    char full[200], brief[200];

    text_print(full, sizeof full, "%s%s%s", l->title, *l->version ? " " : "", l->version);
    text_print(brief, sizeof brief, "%s%s%s", l->adapter, *l->version ? " " : "", l->version);
    bool fits = *l->title && text_width(full, strlen(full), TEXT_LINE) <= r.w;
    grid_str(g, r, ROLE_DIM, fits ? full : brief);
}

static void
draw_system(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    source_draw_system(g, r, &((const struct source_row *)row)->line);
}

static const struct column_special system_special = {draw_system, NULL, K_TEXT, false};
static const struct column_special state_special = {draw_state, NULL, K_CUSTOM, false};
static const struct column_special age_special = {draw_age, NULL, K_BIG, true};
static const struct column_special ready_special = {draw_ready, NULL, K_COUNT, true};
static const struct column_special failed_special = {draw_failed, NULL, K_COUNT, true};

/* clang-format off */
static const struct column columns[] = {
    {.name = "source", .title = "SOURCE", .help = "Its name, for :source", .kind = K_TEXT, .offset = F(line.name),
     .min_w = 18, .max_w = 28},
    {.name = "system", .title = "SYSTEM", .help = "The queue system, and its version", .kind = K_CUSTOM,
     .offset = F(system), .min_w = 10, .max_w = 26, .keep = 4, .special = &system_special},
    {.name = "schema", .title = "SCHEMA", .help = "Where it is installed", .kind = K_NOTE, .offset = F(line.schema),
     .min_w = 7, .max_w = 16, .keep = 6},
    {.name = "state", .title = "STATE", .help = "open, look only, not opened, unreachable", .kind = K_CUSTOM,
     .offset = F(line.state), .min_w = 13, .max_w = 15, .special = &state_special},
    {.name = "ready", .title = "READY", .help = "Jobs that wait for a worker", .kind = K_CUSTOM,
     .offset = F(line.ready), .min_w = 7, .max_w = 8, .keep = 2, .special = &ready_special},
    {.name = "failed", .title = "FAIL", .help = "Jobs that failed for good", .kind = K_CUSTOM,
     .offset = F(line.failed), .min_w = 6, .max_w = 7, .keep = 3, .special = &failed_special},
    {.name = "data", .title = "DATA", .help = "How old the numbers are, if they are not live", .kind = K_CUSTOM,
     .offset = F(line.age_ms), .min_w = 7, .max_w = 7, .keep = 5, .special = &age_special},
    {.name = "host", .title = "HOST", .help = "The server", .kind = K_NOTE, .offset = F(line.host), .min_w = 10,
     .keep = 20},
    {0},
};
/* clang-format on */

static struct sign
sign_of(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct source_row *)row)->here ? (struct sign){"▸", ROLE_STRONG}
                                                  : (struct sign){NULL, ROLE_TEXT};
}

const struct list_def list_of_sources = {
    .columns = columns,
    .row_size = sizeof(struct source_row),
    .id_offset = F(line.name),
    .sign = sign_of,
};

int
source_rows(const struct sources *ss, int front, struct source_row *rows)
{
    int n = sources_n(ss);

    for (int i = 0; i < n; i++) {
        struct source_row *r = &rows[i];
        sources_line(ss, i, &r->line);
        r->at = i;
        r->here = i == front;
        if (*r->line.host == '/' || !*r->line.host)
            r->line.host = "local";
        r->system = r->line.adapter;
    }
    return n;
}

void
source_say(const struct source_line *l, struct buf *out)
{
    if (l->state == SOURCE_OPEN || l->state == SOURCE_UNSEEN)
        return;
    buf_printf(out, "%s: %s", l->name, source_state_word(l->state));
    if (*l->why)
        buf_printf(out, ": %s", l->why);
    if (l->state == SOURCE_LOST && l->age_ms >= 0)
        buf_printf(out, " (numbers %s old)", fmt_age(l->age_ms).s);
}
