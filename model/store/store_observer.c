/*
 * The observer: what a recorder gets from a store. While there is a recorder, the topics that show
 * the whole system are asked even if no screen shows them, at a pace that keeps the budget and the
 * file small.
 */
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/store_parts.h"

static const int paces[TOPIC_COUNT] = {
    [TOPIC_QUEUES] = 1,  [TOPIC_FINAL] = 60,  [TOPIC_NODES] = 5,      [TOPIC_GROUPS] = 10,
    [TOPIC_JOBS] = 60,   [TOPIC_AUDIT] = 60,  [TOPIC_SCHEDULES] = 30, [TOPIC_LIFE] = 15,
    [TOPIC_HEALTH] = 10, [TOPIC_TABLES] = 60, [TOPIC_PACE] = 30};

void
store_record(struct store *s, store_observer_fn *fn, void *ctx)
{
    s->observer.fn = fn;
    s->observer.ctx = ctx;
    store_plan(s);
}

static const int watch_paces[TOPIC_COUNT] = {
    [TOPIC_QUEUES] = 5, [TOPIC_NODES] = 5,      [TOPIC_LIFE] = 5,   [TOPIC_PACE] = 30,
    [TOPIC_TIMES] = 60, [TOPIC_SCHEDULES] = 30, [TOPIC_HEALTH] = 15};

void
store_watch(struct store *s, bool on)
{
    s->observer.watched = on;
    store_plan(s);
}

int
store_observer_pace(const struct store *s, enum topic t)
{
    int observer = s->observer.fn || s->injected.on ? paces[t] : 0;
    int watch = s->observer.watched && !s->injected.on ? watch_paces[t] : 0;

    return !observer || (watch && watch < observer) ? watch : observer;
}

void
store_key(const struct store *s, enum topic t, struct buf *out)
{
    static const enum param names[] = {PARAM_IDS,      PARAM_QUEUE, PARAM_NODE,
                                       PARAM_SCHEDULE, PARAM_BY,    PARAM_ERROR};
    const struct params *p = &s->slots[t].params;

    buf_str(out, "");
    if (t == TOPIC_JOBS) { /* the position of the window is not part of the question */
        buf_str(out, s->jobs.window.filter.text);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (p->value[names[i]])
            buf_printf(out, "%s%s:%s", out->len ? " " : "", param_name(names[i]),
                       p->value[names[i]]);
    if (t == TOPIC_GROUPS && p->value[PARAM_SETTINGS])
        buf_printf(out, "%sby:%s", out->len ? " " : "", p->value[PARAM_SETTINGS]);
}

static void
tell_observer(struct store *s, const struct store_answer *a)
{
    if (s->observer.fn)
        s->observer.fn(s->observer.ctx, a);
}

void
store_observer_topic(struct store *s, enum topic t, const struct db_reply *own, int64_t us)
{
    struct buf key = {0};
    struct store_answer a = {.name = topic_kinds[t].name,
                             .at_ms = s->source.server_ms,
                             .took_us = us,
                             .err = &own->err,
                             .tables = own->results,
                             .n = own->err.kind == ERR_NONE ? own->n : 0};

    bool no_rows = t == TOPIC_JOBS && a.n > 0 && result_col(a.tables[0], "id") < 0;
    if (!s->observer.fn || no_rows) /* this answer only finds the start of the last page */
        return;
    store_key(s, t, &key);
    a.key = key.data;
    tell_observer(s, &a);
    buf_free(&key);
}

void
store_observer(struct store *s, const char *name, struct result **tables, int n,
               const struct err *err)
{
    int64_t now = store_now_ms(s);
    struct store_answer a = {.name = name,
                             .key = "",
                             .at_ms = now ? now : clock_wall_ms(),
                             .err = err,
                             .tables = tables,
                             .n = n};

    tell_observer(s, &a);
}

void
store_observer_done(struct store *s)
{
    tell_observer(s, NULL);
}
