/*
 * The columns of nodes. How many of its slots a node uses, in figures and as a bar; and its state,
 * by which lists of nodes are sorted worst first.
 */
#include "ui/facts/node_columns.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/fmt.h"

static void
draw_slots(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_row *n = row;

    (void)c;
    if (node_state(n) == NODE_DEAD && n->running > 0) {
        grid_printf(g, r, ROLE_BAD, "%*lld lost", r.w - 5, (long long)n->running);
        return;
    }
    grid_right(g, r, ROLE_TEXT, node_at_work(n, r.w).s);
}

struct fmt
node_at_work(const struct node_row *n, int w)
{
    int64_t more = n->running > 0 ? n->running - node_busy(n) : 0;
    struct fmt f;

    if (n->slots <= 0)
        return fmt_int(n->running);
    int len = snprintf(f.s, sizeof f.s, "%lld/%d", (long long)node_busy(n), n->slots);
    struct fmt plus = fmt_count(more);
    if (more > 0 && len + 1 + (int)strlen(plus.s) <= w)
        snprintf(f.s + len, sizeof f.s - (size_t)len, "+%.20s", plus.s);
    return f;
}

void
node_draw_gauge(struct grid *g, struct rect r, const struct node_row *n, enum role role)
{
    int64_t slots = n->slots == INT_MIN ? 0 : n->slots;
    int64_t jobs = node_state(n) == NODE_DEAD ? n->running : node_busy(n);
    int64_t full = slots > 0 && jobs > 0 ? jobs * r.w / slots : 0;

    if (slots <= 0)
        return;
    for (int i = 0; i < r.w; i++)
        grid_str(g, (struct rect){r.x + i, r.y, 1, 1}, i < full ? role : ROLE_BAR_REST,
                 i >= full                    ? "░"
                 : node_state(n) == NODE_DEAD ? "×"
                                              : "█");
}

static void
draw_gauge(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    node_draw_gauge(g, r, row, node_state(row) == NODE_DEAD ? ROLE_BAD : ROLE_CHART);
}

const struct column_special node_slots_special = {draw_slots, NULL, K_BIG, true};
const struct column_special node_gauge_special = {draw_gauge, NULL, K_BIG, false};

/* --- a line of a list of nodes -------------------------------------------------------------------- */

struct node_line
node_line_of(const struct node_row *n, bool foreign)
{
    enum verdict v = verdict_of_node(n, foreign);

    return (struct node_line){*n, node_is_cut_off(n) ? "cut off" : n->state, v, VERDICT_BAD - v};
}

static void
draw_state(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_line *n = row;

    (void)c;
    grid_str(g, r, verdict_role(n->verdict), n->state);
}

struct sign
node_sign(const void *line, const struct cell_ctx *c)
{
    (void)c;
    return verdict_sign(((const struct node_line *)line)->verdict);
}

const struct column_special node_state_special = {draw_state, NULL, K_INT, false};

/* --- the table -------------------------------------------------------------------------------- */

#define N(f) offsetof(struct node_row, f)

/* The node's session in the database, by pg_stat_activity. */
static void
draw_session(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_row *n = row;

    (void)c;
    if (n->session_alive == 1)
        grid_right(g, r, ROLE_TEXT, "alive");
    else if (n->session_alive == 0)
        grid_right(g, r, ROLE_BAD, "gone");
    else
        grid_right(g, r, ROLE_DIM, "hidden");
}

/* The queues of a node. If a node has a heartbeat, an empty list means all queues. */
static void
draw_queues(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    const struct node_row *n = row;
    bool all = !*n->queues && n->heartbeat_ms != FIELD_NULL;

    (void)c;
    grid_str(g, r, all ? ROLE_DIM : ROLE_TEXT, all ? "all" : n->queues);
}

static enum role
role_of_expired(const void *row, const struct cell_ctx *c)
{
    (void)c;
    return ((const struct node_row *)row)->expired > 0 ? ROLE_BAD : ROLE_TEXT;
}

static const struct column_special session_special = {draw_session, NULL, K_BOOL, true};
static const struct column_special queues_special = {draw_queues, NULL, K_TEXT, false};
static const struct column_special expired_special = {NULL, role_of_expired, K_CUSTOM, false};

/* clang-format off */
const struct column node_columns[] = {
    {.name = "node", .title = "NODE", .help = "Name of the worker process", .kind = K_TEXT, .offset = N(node),
     .min_w = 10, .max_w = 24,
     .place = 1, .most = 30},
    {.name = "state", .title = "STATE",
     .help = "up, late, dead, draining, cut off (its session is gone), or unknown: leases without a node; "
             "sorts by trouble",
     .kind = K_CUSTOM, .offset = offsetof(struct node_line, trouble), .min_w = 10, .max_w = 10,
     .special = &node_state_special,
     .only = ON_SCREEN},
    {.name = "beat", .title = "BEAT", .help = "Time since the last heartbeat", .kind = K_AGE,
     .offset = N(heartbeat_ms), .min_w = 7, .max_w = 7,
     .place = 5, .json = "heartbeat_s"},
    {.name = "slots", .title = "SLOTS", .help = "How many of its slots are at work, as a bar", .kind = K_CUSTOM,
     .offset = N(running), .min_w = NODE_GAUGE_W, .max_w = NODE_GAUGE_W, .keep = 23, .special = &node_gauge_special,
     .only = ON_SCREEN},
    {.name = "run", .title = "RUN", .help = "Jobs on its slots; +3: jobs that it holds besides: expired, claimed ahead, or their answers are on the way", .kind = K_CUSTOM, .offset = N(running),
     .min_w = 7, .max_w = 7, .keep = 3, .special = &node_slots_special,
     .place = 9, .json = "running", .table = "RUNNING", .plain = K_BIG},
    {.name = "leases", .title = "LEASES", .help = "Leases it holds", .kind = K_COUNT, .offset = N(leases), .min_w = 6,
     .max_w = 6,
     .place = 7, .plain = K_BIG},
    {.name = "expired", .title = "OVER", .help = "Leases that have expired without an answer", .kind = K_COUNT,
     .offset = N(expired), .min_w = 5, .max_w = 7, .special = &expired_special,
     .place = 10, .table = "EXPIRED", .plain = K_BIG},
    {.name = "session", .title = "SESSION",
     .help = "Its database session: alive, gone, or hidden: not visible to this role, or behind a pooler", .kind = K_CUSTOM,
     .offset = N(session_alive), .min_w = 7, .max_w = 7, .keep = 21, .special = &session_special,
     .place = 6, .json = "session_alive", .plain = K_BOOL},
    {.name = "up", .title = "UP", .help = "Time since it started", .kind = K_AGE, .offset = N(started_ms), .min_w = 7,
     .max_w = 7, .keep = 6,
     .only = ON_SCREEN},
    {.name = "version", .title = "VERSION", .help = "Its version", .kind = K_TEXT, .offset = N(version), .min_w = 7,
     .max_w = 9, .keep = 8,
     .only = ON_SCREEN},
    {.name = "host", .title = "HOST", .help = "Where it runs", .kind = K_TEXT, .offset = N(host), .min_w = 8,
     .max_w = 20, .keep = 20,
     .place = 3, .plain = K_NAME, .most = 20},
    {.name = "pid", .title = "PID", .help = "Its process", .kind = K_INT, .offset = N(pid), .min_w = 7, .max_w = 7,
     .keep = 21,
     .place = 4},
    {.name = "queues", .title = "QUEUES", .help = "Queues it works for", .kind = K_CUSTOM,
     .offset = N(queues), .min_w = 8, .keep = 22, .special = &queues_special,
     .place = 12, .plain = K_LIST, .most = 30},
    /* the command line alone */
    {.name = "state", .title = "STATE", .kind = K_TEXT, .offset = N(state), .only = IN_TABLE | IN_DATA, .place = 2},
    {.name = "slots", .title = "SLOTS", .kind = K_INT, .offset = N(slots), .only = IN_TABLE | IN_DATA, .place = 8},
    {.name = "expired_jobs", .title = "EXPIRED JOBS", .kind = K_BIG, .offset = N(expired_jobs),
     .only = IN_TABLE | IN_DATA, .place = 11},
    {0},
};
/* clang-format on */

const struct list_def list_of_nodes = {
    .columns = node_columns,
    .row_size = sizeof(struct node_line),
    .id_offset = N(node),
    .sort = "state",
    .sign = node_sign,
};
