/*
 * What is asked when. Each topic has a slot with its own schedule; one timer of the loop stands at
 * the nearest of them. A query costs what the server says it took (sql/console/spent.sql closes
 * each call); a bucket that fills with 2 % of the time pays for it, and while it is empty refreshes
 * wait. What a person asked for (a screen opened, a page turned) never waits for the bucket.
 */
#include "model/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/clock.h"
#include "model/mem.h"
#include "model/store_parts.h"

#define BUDGET_SHARE 0.02
enum {
    BALANCE_MOST_US = 200 * 1000,   /* ten seconds' worth */
    BALANCE_LEAST_US = -600 * 1000, /* half a minute's */
    ERROR_WAIT_MS = 5000,
    COST_FACTOR = 5
};

struct ask { /* a query under way */
    struct store *store;
    enum topic topic;
    int serial;
    int64_t sent_ms;
};

static void run_due(void *ctx);

void
store_touch(struct store *s)
{
    s->generation++;
}

/* --- the budget ---------------------------------------------------------------------------- */

static void
budget_fill(struct budget *b, int64_t now)
{
    b->balance_us += (double)(now - b->at_ms) * 1000.0 * BUDGET_SHARE;
    if (b->balance_us > BALANCE_MOST_US)
        b->balance_us = BALANCE_MOST_US;
    b->at_ms = now;
}

static void
budget_spend(struct budget *b, int64_t now, int64_t us)
{
    int64_t second = now / 1000;
    int i = (int)(second % SPENT_SLOTS);

    budget_fill(b, now);
    b->balance_us -= (double)us;
    if (b->balance_us < BALANCE_LEAST_US)
        b->balance_us = BALANCE_LEAST_US;
    if (b->slot_s[i] != second)
        b->spent_us[i] = 0;
    b->slot_s[i] = second;
    b->spent_us[i] += us;
}

/* How long refreshes must wait until the bucket holds something again. */
static int64_t
budget_wait_ms(struct budget *b, int64_t now)
{
    budget_fill(b, now);
    return b->balance_us >= 0 ? 0 : (int64_t)(-b->balance_us / (1000.0 * BUDGET_SHARE)) + 1;
}

double
store_load(const struct store *s)
{
    int64_t now = clock_ms(), sum = 0, wall = now - s->budget.since_ms;

    if (s->clock_stands)
        return 0;
    for (int i = 0; i < SPENT_SLOTS; i++)
        if (now / 1000 - s->budget.slot_s[i] < SPENT_SLOTS)
            sum += s->budget.spent_us[i];
    if (wall > SPENT_SLOTS * 1000)
        wall = SPENT_SLOTS * 1000;
    if (wall < 10000)
        wall = 10000;
    return (double)sum / ((double)wall * 1000.0);
}

bool
store_is_slowed(const struct store *s)
{
    return s->budget.slowed;
}

/* --- asking -------------------------------------------------------------------------------- */

static int64_t
least_wait_ms(const struct store *s, const struct slot *slot, enum topic t)
{
    int64_t wait = (int64_t)s->interval_ms * topic_kinds[t].pace;
    int64_t cost = slot->info.took_us * COST_FACTOR / 1000;

    if (slot->info.err.kind == ERR_TIMEOUT)
        cost *= 2;
    else if (slot->info.err.kind != ERR_NONE && wait < ERROR_WAIT_MS)
        wait = ERROR_WAIT_MS;
    return wait > cost ? wait : cost;
}

/* The server's own word for what a call cost; the client's where there is none. */
static int64_t
read_spent(struct store *s, struct db_reply *reply)
{
    struct rowset rows;
    struct err e;

    if (reply->err.kind != ERR_NONE || reply->n < 1 ||
        !record_decode(&record_spent, db_take(reply, reply->n - 1), &rows, &e))
        return reply->took_us;
    int64_t us = reply->took_us;
    if (rows.n == 1) {
        const struct spent_row *row = rows.rows;
        us = row->spent_us;
        store_set_clock(s, row->now_ms);
    }
    rowset_free(&rows);
    return us;
}

static void
note_failure(struct store *s, struct slot *slot, const struct err *e)
{
    slot->info.err = *e;
    if (e->kind == ERR_CONN || e->kind == ERR_AUTH)
        store_lost(s, e);
}

static void
topic_answer(void *ctx, struct db_reply *reply)
{
    struct ask *ask = ctx;
    struct store *s = ask->store;
    struct slot *slot = &s->slots[ask->topic];
    int64_t now = clock_ms();
    struct err e = reply->err;

    slot->info.asking = false;
    int64_t us = read_spent(s, reply);
    if (e.kind != ERR_CONN)
        budget_spend(&s->budget, now, us);
    if (slot->serial == ask->serial) {
        bool ok = e.kind == ERR_NONE && topic_kinds[ask->topic].take(s, reply, &e);
        slot->info.took_us = us;
        if (ok) {
            slot->info.err = (struct err){0};
            slot->info.taken_ms = now;
            slot->info.has_data = true;
        } else {
            note_failure(s, slot, &e);
        }
    } else {
        slot->again = true;
    }
    free(ask);
    slot->info.next_ms =
        now + (slot->again ? 0 : least_wait_ms(s, slot, (enum topic)(slot - s->slots)));
    store_touch(s);
    store_plan(s);
}

static void
topic_ask(struct store *s, enum topic t)
{
    const struct topic_kind *kind = &topic_kinds[t];
    struct slot *slot = &s->slots[t];
    struct db_param storage[SECTIONS_MAX][ADAPTER_PARAMS];
    struct db_stmt stmts[SECTIONS_MAX + 1];
    struct ask *ask = xmalloc(sizeof *ask);
    int n = 0;

    for (int i = 0; i < kind->nsections; i++) {
        enum section_id sec = kind->sections[i];
        if (adapter_has(s->adapter, sec) && !(sec == SEC_RATES && s->seeded)) {
            stmts[n] = adapter_bind(s->adapter, sec, &slot->params, storage[n]);
            n++;
        }
    }
    stmts[n++] = (struct db_stmt){.sql = console_sql("spent")};
    *ask = (struct ask){s, t, slot->serial, clock_ms()};
    slot->again = false;
    slot->info.asking = true;
    slot->info.next_ms = 0;
    db_ask(s->db, &(struct db_call){.stmts = stmts, .n = n}, -1, topic_answer, ask);
}

static bool
can_ask(const struct store *s, enum topic t)
{
    const struct slot *slot = &s->slots[t];

    return slot->info.wanted && slot->chosen && !slot->info.unavailable;
}

/* --- the timer ----------------------------------------------------------------------------- */

/* When the topic is due by its plan, the budget and the freeze; -1 = never. */
static int64_t
due_ms(struct store *s, enum topic t, int64_t wait_until)
{
    const struct slot *slot = &s->slots[t];

    if (!can_ask(s, t) || slot->info.asking)
        return -1;
    if (slot->again || !slot->info.has_data)
        return slot->again ? 0 : slot->info.next_ms;
    if (s->frozen)
        return -1;
    return slot->info.next_ms > wait_until ? slot->info.next_ms : wait_until;
}

void
store_plan(struct store *s)
{
    int64_t now = clock_ms(), next = -1, wait = budget_wait_ms(&s->budget, now);

    if (!s->alive)
        return;
    s->budget.slowed = false;
    if (!s->open && s->open_at_ms)
        next = s->open_at_ms;
    for (int t = 0; s->open && t < TOPIC_COUNT; t++) {
        int64_t due = due_ms(s, (enum topic)t, wait ? now + wait : 0);
        if (due < 0)
            continue;
        s->budget.slowed |= wait > 0 && due == now + wait;
        if (next < 0 || due < next)
            next = due;
    }
    if (s->timer)
        loop_cancel(s->loop, s->timer);
    s->timer = next < 0 ? 0 : loop_at(s->loop, next, run_due, s);
}

static void
run_due(void *ctx)
{
    struct store *s = ctx;
    int64_t now = clock_ms(), wait = budget_wait_ms(&s->budget, now);

    s->timer = 0;
    if (!s->open && s->open_at_ms && s->open_at_ms <= now)
        store_begin_open(s);
    for (int t = 0; s->open && t < TOPIC_COUNT; t++) {
        int64_t due = due_ms(s, (enum topic)t, wait ? now + wait : 0);
        if (due >= 0 && due <= now)
            topic_ask(s, (enum topic)t);
    }
    store_plan(s);
}

void
store_lost(struct store *s, const struct err *e)
{
    bool was_open = s->open;

    s->open = false;
    s->error = *e;
    if (was_open && s->alive) {
        s->open_at_ms = clock_ms();
        store_plan(s);
    }
}

/* --- life ---------------------------------------------------------------------------------- */

/* The header shows how the connection does. */
static void
db_changed(void *ctx)
{
    store_touch(ctx);
}

struct store *
store_new(struct loop *l, struct db *watcher, struct adapter *a, const char *schema,
          int interval_ms)
{
    struct store *s = xcalloc(1, sizeof *s);

    s->loop = l;
    s->db = watcher;
    s->adapter = a;
    s->schema = schema ? xstrdup(schema) : NULL;
    s->clock_stands = getenv("QUEUETOP_NOW") != NULL;
    s->alive = true;
    s->version = xstrdup("");
    s->history = history_new(10000, 61);
    s->budget.at_ms = s->budget.since_ms = clock_ms();
    s->budget.balance_us = BALANCE_MOST_US;
    s->totals = (struct queue_row){.queue = "",
                                   .paused_by = "",
                                   .pause_reason = "",
                                   .info = "",
                                   .oldest_ms = FIELD_NULL,
                                   .pushed_per_s = (double)NAN,
                                   .done_per_s = (double)NAN,
                                   .failed_per_s = (double)NAN};
    store_set_interval(s, interval_ms);
    store_init_jobs(s);
    for (int t = 0; t < TOPIC_COUNT; t++) {
        s->slots[t].chosen = t != TOPIC_JOB;
        if (!adapter_has(a, topic_kinds[t].sections[0]))
            s->slots[t].info.unavailable = "this queue system does not tell";
    }
    db_on_state(watcher, db_changed, s);
    store_begin_open(s);
    return s;
}

void
store_free(struct store *s)
{
    if (!s)
        return;
    s->alive = false;
    if (s->timer)
        loop_cancel(s->loop, s->timer);
    for (int t = 0; t < TOPIC_COUNT; t++) {
        topic_kinds[t].clear(s);
        params_done(&s->slots[t].params);
    }
    store_done_jobs(s);
    rowset_free(&s->server);
    rowset_free(&s->role);
    history_free(s->history);
    free(s->version);
    free(s->schema);
    free(s);
}

uint64_t
store_generation(const struct store *s)
{
    return s->generation;
}

/* --- what screens say ------------------------------------------------------------------------ */

void
store_want(struct store *s, enum topic t, bool wanted)
{
    struct slot *slot = &s->slots[t];

    if (slot->info.wanted == wanted)
        return;
    slot->info.wanted = wanted;
    if (wanted && store_age_ms(s, t) > least_wait_ms(s, slot, t))
        slot->again = !slot->info.asking;
    store_plan(s);
}

void
store_refresh(struct store *s, enum topic t)
{
    s->slots[t].again = true;
    if (!s->open && !s->opening)
        store_begin_open(s);
    store_plan(s);
}

void
store_refresh_all(struct store *s)
{
    for (int t = 0; t < TOPIC_COUNT; t++)
        if (s->slots[t].info.wanted)
            store_refresh(s, (enum topic)t);
}

void
store_choose(struct store *s, enum topic t)
{
    struct slot *slot = &s->slots[t];

    slot->serial++;
    slot->chosen = true;
    slot->info.has_data = false;
    slot->info.taken_ms = 0;
    slot->info.err = (struct err){0};
    slot->info.next_ms = 0;
    topic_kinds[t].clear(s);
    store_touch(s);
    store_plan(s);
}

const struct topic_info *
store_topic(const struct store *s, enum topic t)
{
    return &s->slots[t].info;
}

int64_t
store_age_ms(const struct store *s, enum topic t)
{
    const struct topic_info *info = &s->slots[t].info;

    if (!info->taken_ms)
        return -1;
    return s->clock_stands ? 0 : clock_ms() - info->taken_ms;
}

bool
store_is_stale(const struct store *s, enum topic t)
{
    const struct slot *slot = &s->slots[t];
    int64_t age = store_age_ms(s, t), plan = slot->info.next_ms - slot->info.taken_ms;

    if (slot->info.err.kind != ERR_NONE)
        return true;
    if (age < 0 || s->frozen)
        return false;
    int64_t usual = least_wait_ms(s, slot, t);
    if (slot->info.next_ms && plan > usual)
        usual = plan;
    return age > 2 * usual + 500 && !(s->budget.slowed && !slot->info.asking);
}

void
store_set_interval(struct store *s, int interval_ms)
{
    s->interval_ms = interval_ms < 100 ? 100 : interval_ms > 3600000 ? 3600000 : interval_ms;
    for (int t = 0; t < TOPIC_COUNT; t++) {
        struct slot *slot = &s->slots[t];
        if (slot->info.next_ms && slot->info.taken_ms)
            slot->info.next_ms = slot->info.taken_ms + least_wait_ms(s, slot, (enum topic)t);
    }
    if (s->history)
        store_plan(s);
}

int
store_interval(const struct store *s)
{
    return s->interval_ms;
}

void
store_freeze(struct store *s, bool frozen)
{
    s->frozen = frozen;
    store_touch(s);
    store_plan(s);
}

bool
store_is_frozen(const struct store *s)
{
    return s->frozen;
}
