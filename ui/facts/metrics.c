/*
 * One table of metrics: each row has the name of a family, its meaning, and the source of its
 * samples. All samples of a family are written together, because the format requires it.
 */
#include "ui/facts/metrics.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/base/text.h"
#include "model/store/health.h"
#include "ui/facts/life.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/verdict.h"

enum { FIGURES = 8, LABEL_MOST = 400 };

/* One sample of a family: its further label, as name="value", and its figure; NAN = not known. */
struct figure {
    const char *label;
    double value;
};

struct figures {
    struct figure list[FIGURES];
    int n;
};

struct writer {
    const struct metrics_source *sources;
    int n, queues;
    bool modern;
    struct buf *out;
};

static void
add(struct figures *s, const char *label, double value)
{
    if (!isnan(value))
        s->list[s->n++] = (struct figure){label, value};
}

static double
count(int64_t n)
{
    return n == FIELD_NULL ? (double)NAN : (double)n;
}

static double
seconds(int64_t ms)
{
    return ms == FIELD_NULL ? (double)NAN : (double)ms / 1000;
}

/* --- of a queue ------------------------------------------------------------------------------- */

struct of_queue {
    const struct queue_line *line;
    int64_t now_ms;
};

static void
jobs_of(const struct of_queue *q, struct figures *s)
{
    add(s, "state=\"scheduled\"", count(q->line->q.scheduled));
    add(s, "state=\"ready\"", count(q->line->q.ready));
    add(s, "state=\"retry\"", count(q->line->q.retry));
    add(s, "state=\"running\"", count(q->line->q.running));
    add(s, "state=\"failed\"", count(q->line->q.failed));
    add(s, "state=\"blocked\"", count(q->line->q.blocked));
}

static void
age_of(const struct of_queue *q, struct figures *s)
{
    bool waits = q->line->q.ready > 0;
    double age = seconds(queue_age(&q->line->q, q->now_ms));

    add(s, "", waits ? age : q->line->q.ready == 0 ? 0 : (double)NAN);
}

static void
pushed_of(const struct of_queue *q, struct figures *s)
{
    add(s, "", count(q->line->q.pushed));
}

static void
completed_of(const struct of_queue *q, struct figures *s)
{
    add(s, "", count(q->line->q.completed));
}

static void
failed_of(const struct of_queue *q, struct figures *s)
{
    add(s, "", count(q->line->q.fails));
}

static void
retried_of(const struct of_queue *q, struct figures *s)
{
    add(s, "", count(q->line->q.retried));
}

static void
run_of(const struct of_queue *q, struct figures *s)
{
    add(s, "", seconds(q->line->q.run_ms));
}

static void
paused_of(const struct of_queue *q, struct figures *s)
{
    add(s, "", q->line->q.paused < 0 ? (double)NAN : q->line->q.paused);
}

static void
limit_of(const struct of_queue *q, struct figures *s)
{
    int most = q->line->q.max_running;

    add(s, "", most == INT_MIN ? (double)NAN : most);
}

static void
drain_of(const struct of_queue *q, struct figures *s)
{
    const struct outlook *o = &q->line->o;

    if (o->trend == TREND_FILLS || o->trend == TREND_STANDS)
        add(s, "", (double)INFINITY);
    else if (o->trend == TREND_DRAINS && o->empty_ms != FIELD_NULL)
        add(s, "", fmax(0, seconds(o->empty_ms - q->now_ms)));
    else if (o->trend != TREND_UNKNOWN)
        add(s, "", 0);
}

static void
waited_of(const struct of_queue *q, struct figures *s)
{
    add(s, "quantile=\"0.5\"", seconds(q->line->q.wait_p50_ms));
    add(s, "quantile=\"0.99\"", seconds(q->line->q.wait_p99_ms));
}

static void
ran_of(const struct of_queue *q, struct figures *s)
{
    add(s, "quantile=\"0.5\"", seconds(q->line->q.run_p50_ms));
    add(s, "quantile=\"0.99\"", seconds(q->line->q.run_p99_ms));
}

/* --- of a source ------------------------------------------------------------------------------ */

static void
up_of(const struct metrics_source *m, struct figures *s)
{
    add(s, "", m->up);
}

static void
load_of(const struct metrics_source *m, struct figures *s)
{
    add(s, "", store_load(m->store));
}

static void
data_age_of(const struct metrics_source *m, struct figures *s)
{
    int64_t ms = store_age_ms(m->store, TOPIC_QUEUES);

    add(s, "", ms < 0 ? (double)NAN : seconds(ms));
}

static void
nodes_of(const struct metrics_source *m, struct figures *s)
{
    static const enum node_state states[] = {NODE_UP,       NODE_ASLEEP, NODE_LATE,
                                             NODE_DRAINING, NODE_DEAD,   NODE_UNKNOWN};
    static const char *const labels[] = {"state=\"up\"",   "state=\"asleep\"",
                                         "state=\"late\"", "state=\"draining\"",
                                         "state=\"dead\"", "state=\"unknown\""};
    int n;
    const struct node_row *rows = store_nodes(m->store, &n);

    if (!store_topic(m->store, TOPIC_NODES)->has_data)
        return;
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
        int found = 0;
        for (int i = 0; i < n; i++)
            found += node_state(&rows[i]) == states[k];
        add(s, labels[k], found);
    }
}

static void
slots_of(const struct metrics_source *m, struct figures *s)
{
    int n;
    const struct node_row *rows = store_nodes(m->store, &n);
    struct workers w = workers_of(rows, n);

    if (w.told) {
        add(s, "state=\"free\"", (double)(w.slots > w.used ? w.slots - w.used : 0));
        add(s, "state=\"used\"", (double)w.used);
    }
    workers_done(&w);
}

static void
expired_of(const struct metrics_source *m, struct figures *s)
{
    int nnodes, nqueues;
    const struct node_row *nodes = store_nodes(m->store, &nnodes);
    const struct queue_row *queues = store_queues(m->store, &nqueues);
    int64_t sum = nnodes == 0 && store_topic(m->store, TOPIC_NODES)->has_data ? 0 : FIELD_NULL;

    for (int i = 0; i < nnodes; i++)
        sum = add_if_known(sum, nodes[i].expired);
    for (int i = 0; i < nqueues; i++)
        sum = add_if_known(sum, queues[i].expired);
    if (sum != FIELD_NULL)
        add(s, "", (double)sum);
}

static void
workers_alive(const struct metrics_source *m, struct figures *s)
{
    const struct life_row *life = store_life(m->store);

    if (life)
        add(s, "", count(life->workers));
}

static void
scheduler_alive(const struct metrics_source *m, struct figures *s)
{
    const struct life_row *life = store_life(m->store);

    if (life && life->scheduler_alive >= 0)
        add(s, "", life->scheduler_alive);
}

static void
scheduler_missing(const struct metrics_source *m, struct figures *s)
{
    struct trouble t[TROUBLES_MAX];
    struct arena *mem = arena_new();
    int n = life_of_store(m->store, store_now_ms(m->store), mem, t), found = 0;

    for (int i = 0; i < n; i++)
        found += t[i].id != COND_WORKER;
    if (store_life(m->store))
        add(s, "", found > 0);
    arena_free(mem);
}

static void
overdue_of(const struct metrics_source *m, struct figures *s)
{
    const struct life_row *life = store_life(m->store);

    if (life)
        add(s, "", count(life->overdue));
}

static void
oldest_transaction(const struct metrics_source *m, struct figures *s)
{
    struct health h = store_health(m->store);
    int64_t oldest = 0;

    h.now_ms = store_now_ms(m->store);
    if (!h.server || h.server->hidden != 0)
        return;
    for (int i = 0; i < h.nsessions; i++) {
        const char *kind = h.sessions[i].kind;
        if (strcmp(kind, "session") != 0 && strcmp(kind, "prepared") != 0)
            continue;
        int64_t open = health_open_ms(&h, &h.sessions[i]);
        oldest = open > oldest ? open : oldest;
    }
    add(s, "", seconds(oldest));
}

static void
xid_age(const struct metrics_source *m, struct figures *s)
{
    struct health h = store_health(m->store);

    if (h.server)
        add(s, "", count(h.server->xid_age));
}

static void
sessions_of(const struct metrics_source *m, struct figures *s)
{
    struct health h = store_health(m->store);

    if (!h.server)
        return;
    add(s, "state=\"active\"", h.server->active);
    add(s, "state=\"idle_in_transaction\"", h.server->idle_in_txn);
    add(s, "state=\"blocked\"", h.server->blocked);
}

static void
connections_of(const struct metrics_source *m, struct figures *s)
{
    struct health h = store_health(m->store);

    if (h.server)
        add(s, "", h.server->connections);
}

static void
connections_most(const struct metrics_source *m, struct figures *s)
{
    struct health h = store_health(m->store);

    if (h.server)
        add(s, "", h.server->max_connections);
}

/* --- the table -------------------------------------------------------------------------------- */

enum type { GAUGE, COUNTER, SUMMARY };

static const struct family {
    const char *name; /* the samples of a counter are NAME_total */
    enum type type;
    const char *unit, *help;
    void (*of_source)(const struct metrics_source *m, struct figures *s); /* one of them is set */
    void (*of_queue)(const struct of_queue *q, struct figures *s);
    bool even_closed; /* also for a source that is not open */
} families[] = {
  /* clang-format off */
    {"queuetop_up", GAUGE, "", "1 = the figures of this source are current.", up_of, NULL, true},
    {"queuetop_data_age_seconds", GAUGE, "seconds", "How old the figures of the queues are.", data_age_of, NULL, false},
    {"queuetop_load_ratio", GAUGE, "ratio", "Load of these queries on the server: 1 = one of its cores.", load_of, NULL, false},
    {"queuetop_queue_jobs", GAUGE, "", "Jobs by queue and state.", NULL, jobs_of, false},
    {"queuetop_queue_oldest_ready_age_seconds", GAUGE, "seconds", "How long the oldest ready job has waited.", NULL, age_of, false},
    {"queuetop_queue_pushed", COUNTER, "", "Jobs that were pushed.", NULL, pushed_of, false},
    {"queuetop_queue_completed", COUNTER, "", "Jobs that completed.", NULL, completed_of, false},
    {"queuetop_queue_failed", COUNTER, "", "Jobs that failed for good.", NULL, failed_of, false},
    {"queuetop_queue_retried", COUNTER, "", "Tries that failed and are tried again.", NULL, retried_of, false},
    {"queuetop_queue_run_seconds", COUNTER, "seconds", "Time that completed jobs ran.", NULL, run_of, false},
    {"queuetop_queue_wait_seconds", SUMMARY, "seconds", "How long jobs of the last hour waited.", NULL, waited_of, false},
    {"queuetop_queue_duration_seconds", SUMMARY, "seconds", "How long jobs of the last hour ran.", NULL, ran_of, false},
    {"queuetop_queue_drain_seconds", GAUGE, "seconds", "Until nothing waits any more; +Inf = never, by the last five minutes.", NULL, drain_of, false},
    {"queuetop_queue_paused", GAUGE, "", "1 = the queue is paused: none of its jobs is claimed.", NULL, paused_of, false},
    {"queuetop_queue_running_limit", GAUGE, "", "How many of its jobs may run at a time.", NULL, limit_of, false},
    {"queuetop_nodes", GAUGE, "", "Worker processes by state.", nodes_of, NULL, false},
    {"queuetop_slots", GAUGE, "", "Jobs that living nodes can run at a time.", slots_of, NULL, false},
    {"queuetop_workers_alive", GAUGE, "", "Workers with a recent heartbeat.", workers_alive, NULL, false},
    {"queuetop_scheduler_alive", GAUGE, "", "1 = a scheduler is active.", scheduler_alive, NULL, false},
    {"queuetop_scheduler_missing", GAUGE, "", "1 = none is, for 30 s, and jobs or schedules depend on it.", scheduler_missing, NULL, false},
    {"queuetop_leases_expired", GAUGE, "", "Leases that have expired and are not yet taken back.", expired_of, NULL, false},
    {"queuetop_schedules_overdue", GAUGE, "", "Schedules with a run that is overdue.", overdue_of, NULL, false},
    {"queuetop_database_oldest_transaction_seconds", GAUGE, "seconds", "How long the oldest transaction has been open.", oldest_transaction, NULL, false},
    {"queuetop_database_xid_age", GAUGE, "", "Transaction ids since the oldest that the database still needs.", xid_age, NULL, false},
    {"queuetop_database_sessions", GAUGE, "", "Sessions by what they do.", sessions_of, NULL, false},
    {"queuetop_database_connections", GAUGE, "", "Connections to the server.", connections_of, NULL, false},
    {"queuetop_database_connections_limit", GAUGE, "", "Connections that the server allows.", connections_most, NULL, false},
  /* clang-format on */
};

/* --- the text --------------------------------------------------------------------------------- */

/* A label's value is any UTF-8 with \, " and the end of a line escaped. Foreign text is cut. */
static void
add_escaped(struct buf *out, const char *s)
{
    size_t left = strlen(s), most = LABEL_MOST;

    while (left > 0 && most-- > 0) {
        uint32_t cp;
        int len = utf8_decode(s, left, &cp);
        if (len == 0 || !text_is_plain(cp)) {
            buf_str(out, *s == '\n' ? "\\n" : "\xef\xbf\xbd");
            len = len ? len : 1;
        } else {
            if (cp == '\\' || cp == '"')
                buf_str(out, "\\");
            buf_add(out, s, (size_t)len);
        }
        s += len;
        left -= (size_t)len;
    }
}

/* Writes 15 digits, because a counter must never seem to fall. With 6 digits 1234567.3 would be
 * 1.23457e+06, and the whole number 1234568 after it would look like a restart. */
static void
add_value(struct buf *out, double v)
{
    if (isinf(v))
        buf_str(out, v > 0 ? "+Inf" : "-Inf");
    else if (fabs(v) < 1e15 && v == floor(v))
        buf_printf(out, "%.0f", v);
    else
        buf_printf(out, "%.15g", v);
}

static void
write_figures(const struct writer *w, const struct family *f, const struct metrics_source *m,
              const char *queue, const struct figures *s)
{
    for (int i = 0; i < s->n; i++) {
        buf_printf(w->out, "%s%s{source=\"", f->name, f->type == COUNTER ? "_total" : "");
        add_escaped(w->out, m->name);
        if (queue) {
            buf_str(w->out, "\",queue=\"");
            add_escaped(w->out, queue);
        }
        buf_printf(w->out, "\"%s%s} ", *s->list[i].label ? "," : "", s->list[i].label);
        add_value(w->out, s->list[i].value);
        buf_str(w->out, "\n");
    }
}

static void
write_queues(const struct writer *w, const struct family *f, const struct metrics_source *m)
{
    int n, nnodes;
    const struct queue_row *q = store_queues(m->store, &n);
    const struct node_row *nodes = store_nodes(m->store, &nnodes);
    struct workers workers = workers_of(nodes, nnodes);

    for (int i = 0; i < n && i < w->queues; i++) {
        struct queue_line line;
        struct figures s = {.n = 0};
        queue_line_fill(&line, &q[i], &workers, store_now_ms(m->store));
        f->of_queue(&(struct of_queue){&line, store_now_ms(m->store)}, &s);
        write_figures(w, f, m, q[i].queue, &s);
    }
    workers_done(&workers);
}

static void
write_family(const struct writer *w, const struct family *f)
{
    static const char *const types[] = {"gauge", "counter", "summary"};

    const char *total = f->type == COUNTER && !w->modern ? "_total" : "";

    buf_printf(w->out, "# TYPE %s%s %s\n", f->name, total, types[f->type]);
    if (*f->unit && w->modern)
        buf_printf(w->out, "# UNIT %s %s\n", f->name, f->unit);
    buf_printf(w->out, "# HELP %s%s %s\n", f->name, total, f->help);
    for (int i = 0; i < w->n; i++) {
        const struct metrics_source *m = &w->sources[i];
        struct figures s = {.n = 0};
        if (!m->store && !f->even_closed)
            continue;
        if (f->of_queue) {
            write_queues(w, f, m);
            continue;
        }
        f->of_source(m, &s);
        write_figures(w, f, m, NULL, &s);
    }
}

/* Writes the queue system and version of each source, and how many of its queues have no figures of
 * their own. */
static void
write_infos(const struct writer *w)
{
    buf_str(w->out, "# TYPE queuetop_source_info gauge\n# HELP queuetop_source_info What queue "
                    "system a source is.\n");
    for (int i = 0; i < w->n; i++) {
        buf_str(w->out, "queuetop_source_info{source=\"");
        add_escaped(w->out, w->sources[i].name);
        buf_str(w->out, "\",adapter=\"");
        add_escaped(w->out, w->sources[i].adapter);
        buf_str(w->out, "\",version=\"");
        add_escaped(w->out, w->sources[i].version);
        buf_str(w->out, "\"} 1\n");
    }
    buf_str(w->out, "# TYPE queuetop_queues_omitted gauge\n# HELP queuetop_queues_omitted Queues "
                    "without figures of their own: there are too many.\n");
    for (int i = 0; i < w->n; i++) {
        int n = 0;
        if (w->sources[i].store)
            store_queues(w->sources[i].store, &n);
        buf_str(w->out, "queuetop_queues_omitted{source=\"");
        add_escaped(w->out, w->sources[i].name);
        buf_printf(w->out, "\"} %d\n", n > w->queues ? n - w->queues : 0);
    }
}

void
metrics_write(const struct metrics_source *sources, int n, int queues, bool modern, struct buf *out)
{
    const struct writer w = {sources, n, queues, modern, out};

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        write_family(&w, &families[i]);
    write_infos(&w);
    if (modern)
        buf_str(out, "# EOF\n");
}
