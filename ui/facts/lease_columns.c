/*
 * The columns of leases, and the sentence about their end.
 */
#include "ui/facts/lease_columns.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

#define L(f) offsetof(struct lease_line, l.f)

void
lease_draw_left(struct grid *g, struct rect r, int64_t until_ms, int64_t now_ms)
{
    if (until_ms == FIELD_NULL)
        return;
    int64_t left = until_ms - now_ms;
    char text[64];
    struct fmt age = fmt_age(left < 0 ? -left : left);
    if (left < 0 && (int)(sizeof "over by " - 1 + strlen(age.s)) > r.w) /* never cut in the age */
        age = fmt_age_short(-left);
    snprintf(text, sizeof text, "%s%s", left < 0 ? "over by " : "", age.s);
    grid_right(g, r, left < 0 ? ROLE_BAD : ROLE_TEXT, text);
}

static void
draw_left(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    lease_draw_left(g, r, ((const struct lease_line *)row)->l.lease_until_ms, c->now_ms);
}

static void
draw_lease_tries(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct lease_line *l = row;
    char text[48];

    (void)c;
    if (l->l.tries == INT_MIN)
        return;
    if (l->l.max_tries == INT_MIN) /* `tries` does not count the running one */
        snprintf(text, sizeof text, "%d", l->l.tries + 1);
    else
        snprintf(text, sizeof text, "%d/%d", l->l.tries + 1, l->l.max_tries);
    grid_right(g, r, ROLE_TEXT, text);
}

/* Draws the effect without the arrow of the adapter's text, because the title has the arrow. */
static void
draw_effect(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *effect = ((const struct lease_line *)row)->l.effect;
    size_t arrow = strncmp(effect, "→ ", strlen("→ ")) ? 0 : strlen("→ ");

    (void)c;
    grid_str(g, r, strstr(effect, "failed") ? ROLE_BAD : ROLE_TEXT, effect + arrow);
}

/* Draws the last digits of the jobs' ids, as the list of jobs does. */
static void
draw_ids(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const char *id = ((const struct lease_line *)row)->l.job_ids;
    struct buf out = {0};

    (void)c;
    while (*(id += strspn(id, " ,{}"))) {
        size_t len = strcspn(id, " ,{}"), tail = len > 8 ? 8 : len;
        buf_printf(&out, "%s%.*s", out.len ? " " : "", (int)tail, id + len - tail);
        id += len;
    }
    if (out.len)
        grid_str(g, r, ROLE_TEXT, out.data);
    buf_free(&out);
}

static const struct column_special ids_special = {draw_ids, NULL, K_CUSTOM, false};
static const struct column_special left_special = {draw_left, NULL, K_TIME, true};
static const struct column_special tries_special = {draw_lease_tries, NULL, K_CUSTOM, true};
static const struct column_special effect_special = {draw_effect, NULL, K_CUSTOM, false};

/* clang-format off */
const struct column lease_columns[] = {
    {.name = "jobs", .title = "JOBS", .help = "Jobs on this lease", .kind = K_COUNT, .offset = L(jobs), .min_w = 4,
     .max_w = 5,
     .place = 4, .plain = K_BIG},
    {.name = "job_ids", .title = "ID", .help = "Their ids", .kind = K_CUSTOM, .offset = L(job_ids), .min_w = 8,
     .max_w = 44, .keep = 5, .special = &ids_special,
     .only = ON_SCREEN},
    {.name = "queue", .title = "QUEUE", .help = "Their queue", .kind = K_TEXT, .offset = L(queue), .min_w = 12,
     .max_w = 18,
     .place = 3, .most = 24},
    {.name = "node", .title = "NODE", .help = "Who holds it", .kind = K_TEXT, .offset = L(node), .min_w = 10,
     .max_w = 18,
     .place = 2, .most = 30},
    {.name = "taken", .title = "TAKEN", .help = "Time since it was taken", .kind = K_AGE, .offset = L(started_ms),
     .min_w = 7, .max_w = 7, .keep = 4,
     .only = ON_SCREEN | IN_TABLE, .place = 5},
    {.name = "left", .title = "LEFT", .help = "Time left, or since when it has expired", .kind = K_CUSTOM,
     .offset = L(lease_until_ms), .min_w = 12, .max_w = 15, .special = &left_special,
     .only = ON_SCREEN},
    {.name = "tries", .title = "TRY", .help = "This try, of how many", .kind = K_CUSTOM, .offset = L(tries),
     .min_w = 5, .max_w = 5, .keep = 3, .special = &tries_special,
     .only = ON_SCREEN},
    {.name = "effect", .title = "IF RELEASED", .help = "What a release makes of them", .kind = K_CUSTOM,
     .offset = L(effect), .min_w = 19, .keep = 6, .special = &effect_special,
     .only = ON_SCREEN | IN_TABLE, .place = 10, .table = "EFFECT", .plain = K_TEXT, .most = 40},
    /* the command line alone */
    {.name = "lease", .title = "LEASE", .kind = K_BIG, .offset = L(lease), .only = IN_TABLE | IN_DATA, .place = 1},
    {.title = "EXPIRED", .kind = K_AGE, .offset = L(lease_until_ms), .only = IN_TABLE, .place = 6},
    {.name = "started", .kind = K_TIME, .offset = L(started_ms), .only = IN_DATA, .place = 7},
    {.name = "lock_timeout", .kind = K_TIME, .offset = L(lease_until_ms), .only = IN_DATA, .place = 8},
    {.name = "version", .kind = K_BIG, .offset = L(version), .only = IN_DATA, .place = 9},
    {0},
};
/* clang-format on */

const struct list_def list_of_leases = {
    .columns = lease_columns,
    .row_size = sizeof(struct lease_line),
    .id_offset = offsetof(struct lease_line, id),
    .sort = "left",
};

const struct list_def list_of_running = {
    .columns = lease_columns,
    .row_size = sizeof(struct lease_line),
    .id_offset = offsetof(struct lease_line, id),
    .sort = "taken",
    .desc = true,
};

/* --- rows ------------------------------------------------------------------------------------- */

void
leases_done(struct leases *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->rows[i].id);
    free(l->rows);
    *l = (struct leases){.rows = NULL};
}

void
leases_take(struct leases *l, const struct lease_row *rows, int n, const char *node,
            const char *queue)
{
    leases_done(l);
    l->rows = xcalloc((size_t)n + 1, sizeof *l->rows);
    for (int i = 0; i < n; i++) {
        if ((node && strcmp(rows[i].node, node) != 0) ||
            (queue && strcmp(rows[i].queue, queue) != 0))
            continue;
        l->rows[l->n].l = rows[i];
        l->rows[l->n++].id = xasprintf("%lld", (long long)rows[i].lease);
    }
}

/* "the scheduler takes 8 jobs back now and 8 by 14:25:08"; "" = there are none. */
static void
say_future(const struct leases *l, int64_t now_ms, bool utc, struct buf *out)
{
    int64_t over = 0, later = 0, last = FIELD_NULL;

    for (int i = 0; i < l->n; i++) {
        const struct lease_row *r = &l->rows[i].l;
        bool is_over = r->lease_until_ms == FIELD_NULL || r->lease_until_ms <= now_ms;
        over += is_over ? r->jobs : 0;
        later += is_over ? 0 : r->jobs;
        last = !is_over && r->lease_until_ms > last ? r->lease_until_ms : last;
    }
    if (over + later == 0)
        return;
    buf_str(out, "the scheduler takes ");
    if (over > 0)
        buf_printf(out, "%s back now", fmt_plural(over, "job").s);
    if (later > 0)
        buf_printf(out, "%s%s %sby %s", over > 0 ? " and " : "",
                   over > 0 ? fmt_count(later).s : fmt_plural(later, "job").s,
                   over > 0 ? "" : "back ", fmt_time(last, utc).s);
}

void
leases_say_release(const struct leases *l, const struct node_row *of, int64_t now_ms, bool utc,
                   struct buf *out)
{
    if (of->leases == FIELD_NULL)
        buf_str(out, "L releases what it holds");
    else if (of->leases == 1)
        buf_str(out, "L releases its lease");
    else
        buf_printf(out, "L releases all %s", fmt_plural(of->leases, "lease").s);
    buf_printf(out, " (%s)", fmt_plural(of->running, "job").s);
    if (l->n > 0) {
        buf_str(out, "; left alone, ");
        say_future(l, now_ms, utc, out);
    }
}

const char *
lease_first_job(const struct lease_row *l, struct arena *mem)
{
    return arena_strndup(mem, l->job_ids, strcspn(l->job_ids, ","));
}
