/*
 * The life of a store, and the functions that screens call.
 */
#include "model/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/store_parts.h"

void
store_touch(struct store *s)
{
    s->generation++;
}

/* --- life ---------------------------------------------------------------------------------- */

/* After a break, looks again which queue is there, because the next connection may lead to another
 * server. Between two refreshes no call is out that could fail, so only this function notices the
 * break. The header shows the state. */
static void
db_changed(void *ctx)
{
    struct store *s = ctx;

    if (s->source.open && db_state(s->db) != DB_READY && db_state(s->db) != DB_BUSY)
        store_look_anew(s);
    store_touch(s);
}

static struct store *
make_store(struct loop *l, struct db *watcher, struct adapter *a, const char *schema,
           int interval_ms)
{
    struct store *s = xcalloc(1, sizeof *s);

    s->loop = l;
    s->db = watcher;
    s->adapter = a;
    s->source.schema = schema ? xstrdup(schema) : NULL;
    s->clock_stands = getenv("QUEUETOP_NOW") != NULL;
    s->alive = true;
    s->source.version = xstrdup("");
    budget_init(&s->pace.budget, clock_ms());
    store_init_queues(s);
    store_set_interval(s, interval_ms);
    store_init_jobs(s);
    store_init_health(s);
    for (int t = 0; t < TOPIC_COUNT; t++) {
        s->slots[t].chosen = t != TOPIC_JOB && t != TOPIC_RUNS && t != TOPIC_STEPS;
        if (!adapter_has(a, topic_kinds[t].sections[0]))
            s->slots[t].info.unavailable = "this queue system does not record this";
    }
    return s;
}

struct store *
store_new(struct loop *l, struct db *watcher, struct adapter *a, const char *schema,
          int interval_ms)
{
    struct store *s = make_store(l, watcher, a, schema, interval_ms);

    db_on_state(watcher, db_changed, s);
    store_begin_open(s);
    return s;
}

/* A store of a recording. It plans no questions (alive is false), and looks like a connected store.
 */
struct store *
store_new_injected(struct loop *l, struct db *db, struct adapter *a, void (*asked)(void *ctx),
                   void *ctx)
{
    struct store *s = make_store(l, db, a, NULL, 1000);

    s->alive = s->clock_stands = false;
    s->source.open = true;
    s->injected = (struct injected){.on = true, .asked = asked, .ctx = ctx};
    return s;
}

struct store *
store_new_look(struct loop *l, struct db *db, struct adapter *a, bool rates)
{
    struct store *s = make_store(l, db, a, NULL, 1000);

    s->alive = false;
    s->source.open = s->once = true;
    s->queues.seeded = !rates;
    return s;
}

void
store_free(struct store *s)
{
    if (!s)
        return;
    s->alive = s->injected.on = false;
    if (s->pace.timer)
        loop_cancel(s->loop, s->pace.timer);
    for (int t = 0; t < TOPIC_COUNT; t++) {
        store_clear(s, (enum topic)t);
        params_done(&s->slots[t].params);
    }
    store_done_jobs(s);
    store_done_health(s);
    rowset_free(&s->source.server);
    rowset_free(&s->source.role);
    store_done_queues(s);
    free(s->source.version);
    free(s->source.schema);
    free(s);
}

uint64_t
store_generation(const struct store *s)
{
    return s->generation;
}

double
store_load(const struct store *s)
{
    return s->clock_stands ? 0 : budget_load(&s->pace.budget, clock_ms());
}

bool
store_is_slowed(const struct store *s)
{
    return s->pace.budget.slowed;
}

/* --- what screens say ------------------------------------------------------------------------ */

void
store_want(struct store *s, enum topic t, bool wanted)
{
    struct topic_slot *slot = &s->slots[t];

    if (slot->info.wanted == wanted)
        return;
    slot->info.wanted = wanted;
    if (wanted && store_age_ms(s, t) > store_wait_ms(s, slot, t))
        slot->again = !slot->info.asking;
    store_plan(s);
}

void
store_refresh(struct store *s, enum topic t)
{
    s->slots[t].again = true;
    if (!s->source.open && !s->source.asking)
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
    struct topic_slot *slot = &s->slots[t];

    slot->serial++;
    slot->chosen = true;
    slot->info.has_data = false;
    slot->info.taken_ms = 0;
    slot->info.err = (struct err){0};
    slot->info.next_ms = 0;
    store_clear(s, t);
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
    return s->clock_stands ? 0 : store_clock(s) - info->taken_ms;
}

/* Data that the budget puts off is not stale, but nobody takes data as old as this for live. */
enum { LIVE_MOST_MS = 60000 };

bool
store_is_stale(const struct store *s, enum topic t)
{
    const struct topic_slot *slot = &s->slots[t];
    int64_t age = store_age_ms(s, t), plan = slot->info.next_ms - slot->info.taken_ms;

    if (slot->info.err.kind != ERR_NONE)
        return true;
    if (age < 0 || s->pace.frozen)
        return false;
    int64_t usual = store_wait_ms(s, slot, t);
    if (slot->info.next_ms && plan > usual)
        usual = plan;
    bool is_late = age > 2 * usual + 500, is_put_off = s->pace.budget.slowed && !slot->info.asking;
    return is_late && !(is_put_off && age < LIVE_MOST_MS);
}

void
store_set_interval(struct store *s, int interval_ms)
{
    s->pace.interval_ms = interval_ms < 100 ? 100 : interval_ms > 3600000 ? 3600000 : interval_ms;
    for (int t = 0; t < TOPIC_COUNT; t++) {
        struct topic_slot *slot = &s->slots[t];
        if (slot->info.next_ms && slot->info.taken_ms)
            slot->info.next_ms = slot->info.taken_ms + store_wait_ms(s, slot, (enum topic)t);
    }
    store_plan(s);
}

void
store_set_share(struct store *s, double share)
{
    (void)budget_wait_ms(&s->pace.budget, clock_ms()); /* the time until now is counted with the
                                                          old share */
    s->pace.budget.share = share;
}

int
store_interval(const struct store *s)
{
    return s->pace.interval_ms;
}

void
store_freeze(struct store *s, bool frozen)
{
    s->pace.frozen = frozen;
    store_touch(s);
    store_plan(s);
}

bool
store_is_frozen(const struct store *s)
{
    return s->pace.frozen;
}
