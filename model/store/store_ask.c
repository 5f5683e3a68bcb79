/*
 * When each question is asked. Each topic has a slot with its own schedule; one timer of the loop
 * is set to the next one that is due. Topics that are due together are asked in one pipeline: one
 * transaction, one round trip. A query costs the time that the server reports
 * (sql/console/spent.sql is the last statement of each call). What the user asks for (a screen
 * opened, a page turned) never waits for the budget.
 *
 * If a statement fails, the whole pipeline fails. Its topic gets the error and is asked alone from
 * then on; the other topics are asked again at once. A slow pipeline is taken apart in the same
 * way, until its topics are quick again.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "model/store/store_parts.h"

enum {
    ERROR_WAIT_MS = 5000,
    COST_FACTOR = 5,
    FAILED_COST_US = 5000,    /* assumed cost of a failed call: a wait for a lock costs the server
                                 nothing */
    SPENT_MOST_US = 60000000, /* no call takes longer: the clock was set, or the server lies */
    SLOW_US = 200000,
    QUICK_US = 100000,
    HEALTH_TIMEOUT_MS = 1000, /* short, because another session's lock may block reads of the
                                 catalog */
    COSTLY_WAIT_MS = 60000,   /* between two questions of a costly section */
    COSTLY_TIMEOUT_MS = 3000,
    RARE = 10, /* the pace of topics that are asked alone */
    STMTS_MAX = TOPIC_COUNT * SECTIONS_MAX + 1
};

struct pipeline_part { /* of a pipeline: one topic */
    enum topic topic;
    int serial;
    int at, n;       /* its statements */
    int64_t work_us; /* of the whole pipeline, once it is answered */
};

struct pipeline { /* a pipeline under way */
    struct store *store;
    struct pipeline_part parts[TOPIC_COUNT];
    int n;
};

struct statements {
    struct db_param storage[STMTS_MAX][ADAPTER_PARAMS];
    struct db_stmt list[STMTS_MAX];
    int n;
};

static void run_due(void *ctx);

/* True if the adapter marks a section of the topic as slow ("-- cost:"). */
static bool
is_costly(const struct store *s, enum topic t)
{
    if (t == TOPIC_FINAL)
        return true;
    for (int i = 0; i < topic_kinds[t].nsections; i++)
        if (adapter_note(s->adapter, topic_kinds[t].sections[i], "cost"))
            return true;
    return false;
}

/* The time limit of a topic that is always asked alone, on a server with time to spare; 0 = the
 * topic may share a pipeline. */
static int
own_timeout_ms(const struct store *s, enum topic t)
{
    if (t == TOPIC_HEALTH || t == TOPIC_TABLES)
        return HEALTH_TIMEOUT_MS;
    if (t == TOPIC_JOBS && store_jobs_timeout_ms(s) > 0)
        return store_jobs_timeout_ms(s);
    return is_costly(s, t) ? COSTLY_TIMEOUT_MS : 0;
}

/* The planned time between two refreshes, without regard to their cost. */
static int64_t
planned_ms(const struct store *s, const struct topic_slot *slot, enum topic t)
{
    int pace =
        slot->info.wanted && !s->injected.on ? topic_kinds[t].pace : store_observer_pace(s, t);

    return (int64_t)s->pace.interval_ms * (pace ? pace : topic_kinds[t].pace);
}

/* The shortest pause after an answer; it depends on the cost of the answer. */
static int64_t
pause_ms(const struct store *s, const struct topic_slot *slot)
{
    int64_t work = slot->work_us;

    if (slot->info.err.kind != ERR_NONE && work > FAILED_COST_US)
        work = FAILED_COST_US;
    return s->injected.on ? 0 : budget_pause_ms(&s->pace.budget, work);
}

/* Between two refreshes if there were no budget. */
static int64_t
unpaused_ms(const struct store *s, const struct topic_slot *slot, enum topic t)
{
    int64_t wait = planned_ms(s, slot, t), cost = slot->work_us * COST_FACTOR / 1000;

    if (slot->info.err.kind != ERR_NONE && slot->info.err.kind != ERR_TIMEOUT &&
        wait < ERROR_WAIT_MS)
        wait = ERROR_WAIT_MS;
    if (!s->injected.on && wait < COSTLY_WAIT_MS && is_costly(s, t))
        wait = COSTLY_WAIT_MS;
    return wait > cost ? wait : cost;
}

int64_t
store_wait_ms(const struct store *s, const struct topic_slot *slot, enum topic t)
{
    int64_t wait = unpaused_ms(s, slot, t), pause = pause_ms(s, slot);

    return wait > pause ? wait : pause;
}

/* --- the answer ---------------------------------------------------------------------------- */

/* The cost of a call in microseconds: the time that the server reports, or else the time that was
 * measured here. */
static int64_t
read_spent(struct store *s, struct db_reply *reply)
{
    struct rowset rows;
    struct err e;
    int64_t us = reply->took_us;

    if (reply->err.kind != ERR_NONE || reply->n < 1 ||
        !record_decode(&record_spent, db_take(reply, reply->n - 1), &rows, &e))
        return us;
    if (rows.n == 1) {
        const struct spent_row *row = rows.rows;
        us = row->spent_us < 0 ? 0 : row->spent_us < SPENT_MOST_US ? row->spent_us : SPENT_MOST_US;
        store_set_clock(s, row->now_ms);
        store_note_recovery(s, row->in_recovery);
    }
    rowset_free(&rows);
    return us;
}

static void
part_failed(struct store *s, struct topic_slot *slot, const struct err *e, int64_t us)
{
    slot->info.err = *e;
    if (err_is_outdated(e) && !strcmp(adapter_name(s->adapter), "native"))
        fail_in(&slot->info.err, "queue of an older version, queuetop install --schema %s mends it",
                adapter_schema(s->adapter));
    slot->info.took_us = slot->work_us = us;
    slot->alone = true;
}

static struct db_reply
reply_of(const struct pipeline_part *p, const struct db_reply *reply)
{
    struct db_reply own = *reply;

    if (own.err.kind == ERR_NONE)
        own.results += p->at;
    own.n = p->n;
    return own;
}

static void
part_came(struct store *s, const struct pipeline_part *p, struct db_reply *reply, int64_t us,
          int64_t now)
{
    struct topic_slot *slot = &s->slots[p->topic];
    struct db_reply own = reply_of(p, reply);
    struct err e = {0};

    slot->info.took_us = us;
    slot->work_us = p->work_us;
    if (!store_take(s, p->topic, &own, &e)) {
        part_failed(s, slot, &e, us);
        return;
    }
    slot->info.err = (struct err){0};
    slot->info.taken_ms = now;
    slot->info.has_data = true;
}

static bool
is_culprit(const struct pipeline *ask, const struct pipeline_part *p, const struct db_reply *reply)
{
    return ask->n == 1 || reply->failed_at < 0 || reply->err.kind == ERR_CONN ||
           (reply->failed_at >= p->at && reply->failed_at < p->at + p->n);
}

static void
part_answer(const struct pipeline *ask, const struct pipeline_part *p, struct db_reply *reply,
            int64_t us, int64_t now)
{
    struct store *s = ask->store;
    struct topic_slot *slot = &s->slots[p->topic];
    struct db_reply own = reply_of(p, reply);

    slot->info.asking = false;
    if (slot->serial != p->serial) {
        slot->again = true;
    } else if (reply->err.kind == ERR_NONE) {
        store_observer_topic(s, p->topic, &own, us);
        part_came(s, p, reply, us, now);
    } else if (is_culprit(ask, p, reply)) {
        store_observer_topic(s, p->topic, &own, us);
        part_failed(s, slot, &reply->err, us);
    } else
        slot->again = true;
    if (slot->info.err.kind != ERR_NONE && p->topic == TOPIC_JOBS)
        store_jobs_failed(s, &slot->info.err);
    if (ask->n == 1 && slot->info.err.kind == ERR_NONE && us < QUICK_US)
        slot->alone = false;
    slot->alone |= us > SLOW_US;
    slot->info.next_ms = slot->again ? 0 : now + store_wait_ms(s, slot, p->topic);
}

/* A hash that identifies the statements of a pipeline: its topics, their parameters and the number
 * of statements of each. */
static uint64_t
hash_of(const struct pipeline *ask)
{
    uint64_t hash = 14695981039346656037u;

    for (int i = 0; i < ask->n; i++) {
        const uint64_t words[] = {ask->parts[i].topic, (uint64_t)ask->parts[i].serial,
                                  (uint64_t)ask->parts[i].n};
        for (int j = 0; j < 3; j++)
            hash = (hash ^ words[j]) * 1099511628211u;
    }
    return hash;
}

/* Pays for an answer from the budget. The wait before the next question of its topics follows from
 * this cost. */
static void
pay(struct pipeline *ask, const struct db_reply *reply, int64_t us, int64_t now)
{
    struct store *s = ask->store;

    if (reply->err.kind != ERR_NONE) {
        budget_spend(&s->pace.budget, now, us > FAILED_COST_US ? FAILED_COST_US : us);
        return;
    }
    int64_t work = budget_charge(&s->pace.budget, now, hash_of(ask), us);
    for (int i = 0; i < ask->n; i++)
        ask->parts[i].work_us = work;
}

static void
answer(void *ctx, struct db_reply *reply)
{
    struct pipeline *ask = ctx;
    struct store *s = ask->store;
    int64_t now = clock_ms(), us = read_spent(s, reply);

    pay(ask, reply, us, now);
    for (int i = 0; i < ask->n; i++)
        part_answer(ask, &ask->parts[i], reply, us, now);
    free(ask);
    store_observer_done(s);
    if (reply->err.kind == ERR_CONN || reply->err.kind == ERR_AUTH)
        store_lost(s, &reply->err);
    else if (s->source.turned || reply->is_guarded)
        store_look_anew(s);
    store_touch(s);
    store_plan(s);
}

/* --- the question -------------------------------------------------------------------------- */

static void
add_topic(struct store *s, struct pipeline *ask, struct statements *st, enum topic t)
{
    const struct topic_kind *kind = &topic_kinds[t];
    struct topic_slot *slot = &s->slots[t];
    struct pipeline_part *p = &ask->parts[ask->n++];

    *p = (struct pipeline_part){.topic = t, .serial = slot->serial, .at = st->n};
    if (t == TOPIC_STEPS)
        store_aim_steps(s);
    for (int i = 0; i < kind->nsections; i++) {
        enum section_id sec =
            t == TOPIC_JOBS ? store_jobs_section(s) : store_groups_section(s, kind->sections[i]);
        if (!adapter_has(s->adapter, sec) || (sec == SEC_RATES && s->queues.seeded))
            continue;
        st->list[st->n] = adapter_bind(s->adapter, sec, &slot->params, st->storage[st->n]);
        st->n++;
    }
    p->n = st->n - p->at;
    slot->again = false;
    slot->info.asking = true;
    slot->info.next_ms = 0;
}

bool
store_look(struct store *s, const enum topic *topics, int n, struct err *e)
{
    struct statements *st = xmalloc(sizeof *st);
    struct pipeline look = {.store = s};
    struct db_reply reply;

    st->n = 0;
    for (int i = 0; i < n; i++)
        if (!s->slots[topics[i]].info.unavailable)
            add_topic(s, &look, st, topics[i]);
    st->list[st->n++] = (struct db_stmt){.sql = console_sql("spent")};
    struct db_call call = {.stmts = st->list, .n = st->n};
    adapter_settings(s->adapter, false, &call);
    bool ok = db_do(s->db, s->loop, &call, &reply, e);
    if (ok)
        (void)read_spent(s, &reply);
    for (int i = 0; ok && i < look.n; i++) {
        struct db_reply own = reply_of(&look.parts[i], &reply);
        enum topic t = look.parts[i].topic;
        ok = store_take(s, t, &own, e);
    }
    db_reply_done(&reply);
    free(st);
    return ok;
}

/* Asks the topics of a set in one pipeline. */
static void
ask_topics(struct store *s, const bool *set)
{
    struct statements *st = xmalloc(sizeof *st);
    struct pipeline *ask = xcalloc(1, sizeof *ask);

    ask->store = s;
    st->n = 0;
    for (int t = 0; t < TOPIC_COUNT; t++)
        if (set[t])
            add_topic(s, ask, st, (enum topic)t);
    st->list[st->n++] = (struct db_stmt){.sql = console_sql("spent")};
    struct db_call call = {.stmts = st->list, .n = st->n};
    adapter_settings(s->adapter, false, &call);
    call.looks_hard = store_owners_due(s);
    int limit_ms = own_timeout_ms(s, ask->parts[0].topic);
    call.statement_timeout_ms = limit_ms ? db_limit_ms(s->db, limit_ms) : 0;
    db_ask(s->db, &call, -1, answer, ask);
    free(st);
}

/* --- the timer ----------------------------------------------------------------------------- */

/* When the topic is due by its plan, the budget and the freeze; -1 = never. */
static int64_t
due_ms(const struct store *s, enum topic t, int64_t wait_until)
{
    const struct topic_slot *slot = &s->slots[t];

    bool asked_for = slot->info.wanted || store_observer_pace(s, t) > 0 ||
                     (t == TOPIC_FINAL && s->slots[TOPIC_QUEUES].info.wanted);

    if (!asked_for || !slot->chosen || slot->info.unavailable || slot->info.asking)
        return -1;
    if (slot->again || !slot->info.has_data)
        return slot->again ? 0 : slot->info.next_ms;
    if (s->pace.frozen)
        return -1;
    return slot->info.next_ms > wait_until ? slot->info.next_ms : wait_until;
}

/* True if the budget makes a live topic wait longer than planned. */
static bool
is_stretched(const struct store *s, enum topic t)
{
    const struct topic_slot *slot = &s->slots[t];

    return slot->info.wanted && topic_kinds[t].pace < RARE &&
           pause_ms(s, slot) > unpaused_ms(s, slot, t);
}

void
store_plan(struct store *s)
{
    int64_t now = clock_ms(), next = -1, wait = budget_wait_ms(&s->pace.budget, now);

    if (s->injected.on && s->injected.asked)
        s->injected.asked(s->injected.ctx);
    if (!s->alive)
        return;
    s->pace.budget.slowed = false;
    if (!s->source.open && s->source.at_ms)
        next = s->source.at_ms;
    for (int t = 0; s->source.open && t < TOPIC_COUNT; t++) {
        int64_t due = due_ms(s, (enum topic)t, wait ? now + wait : 0);
        if (due < 0)
            continue;
        s->pace.budget.slowed |= (wait > 0 && due == now + wait) || is_stretched(s, (enum topic)t);
        if (next < 0 || due < next)
            next = due;
    }
    if (s->pace.timer)
        loop_cancel(s->loop, s->pace.timer);
    s->pace.timer = next < 0 ? 0 : loop_at(s->loop, next, run_due, s);
}

enum turn { TOGETHER, ALONE, LAST, TURNS };

/* Topics that share a pipeline are asked first; slow topics that nobody waits for are asked
 * last. Topics that are asked rarely cost more than others: alone, they don't make the pause of the
 * live ones longer. */
static enum turn
turn_of(const struct store *s, enum topic t)
{
    if (t == TOPIC_FINAL)
        return LAST;
    if (topic_kinds[t].pace >= RARE)
        return ALONE;
    return s->slots[t].alone || own_timeout_ms(s, t) > 0 ? ALONE : TOGETHER;
}

/* Asks all topics that are due now, or so soon that the same round trip can serve them. */
static void
ask_due(struct store *s, int64_t now, int64_t wait)
{
    bool sets[TURNS][TOPIC_COUNT] = {{false}}, any = false;

    for (int t = 0; t < TOPIC_COUNT; t++) {
        int64_t due = due_ms(s, (enum topic)t, wait ? now + wait : 0);
        enum turn turn = turn_of(s, (enum topic)t);
        if (due < 0 || due > now + (turn == TOGETHER ? s->pace.interval_ms / 4 : 0))
            continue;
        sets[turn][t] = true;
        any |= turn == TOGETHER;
    }
    if (any)
        ask_topics(s, sets[TOGETHER]);
    for (int turn = ALONE; turn < TURNS; turn++)
        for (int t = 0; t < TOPIC_COUNT; t++) {
            bool one[TOPIC_COUNT] = {false};
            one[t] = sets[turn][t];
            if (one[t])
                ask_topics(s, one);
        }
}

static void
run_due(void *ctx)
{
    struct store *s = ctx;
    int64_t now = clock_ms();

    s->pace.timer = 0;
    if (!s->source.open && s->source.at_ms && s->source.at_ms <= now)
        store_begin_open(s);
    if (s->source.open)
        ask_due(s, now, budget_wait_ms(&s->pace.budget, now));
    store_plan(s);
}
