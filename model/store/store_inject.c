/*
 * A store that shows a recording. Answers come from the recording; each goes into the topic of its
 * name, through the same functions as an answer of the server. The clock of this store is the time
 * that is shown.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/store_parts.h"

int64_t
store_clock(const struct store *s)
{
    return s->injected.on ? s->injected.now_ms : clock_ms();
}

void
store_inject_clock(struct store *s, int64_t now_ms)
{
    if (now_ms / 100 != s->injected.now_ms / 100)
        store_touch(s);
    s->injected.now_ms = now_ms;
}

static void
forget(struct store *s, enum topic t)
{
    struct topic_slot *slot = &s->slots[t];

    store_clear(s, t);
    slot->info.has_data = false;
    slot->info.taken_ms = slot->info.took_us = 0;
    slot->info.err = (struct err){0};
}

void
store_inject_reset(struct store *s)
{
    for (int t = 0; t < TOPIC_COUNT; t++)
        forget(s, (enum topic)t);
    store_reset_queues(s);
    store_reset_health(s);
    store_clear_error(s);
    store_touch(s);
}

/* --- an answer ------------------------------------------------------------------------------- */

/* How many tables this program reads from an answer of a topic. */
static int
tables_of(const struct store *s, enum topic t)
{
    int n = 0;

    for (int i = 0; i < topic_kinds[t].nsections; i++) {
        enum section_id sec = topic_kinds[t].sections[i];
        n += adapter_has(s->adapter, sec) && !(sec == SEC_RATES && s->queues.seeded);
    }
    return n;
}

static bool
take_answer(struct store *s, enum topic t, struct store_answer *a, struct err *e)
{
    struct db_reply reply = {.results = a->tables, .n = a->n};

    if (t == TOPIC_QUEUES && a->n < topic_kinds[t].nsections)
        store_skip_seed(s); /* only the first answer has the history */
    else if (t == TOPIC_QUEUES && s->queues.seeded)
        reply.n = tables_of(s, t); /* the points of the past were taken once already */
    if (reply.n != tables_of(s, t))
        return fail(e, ERR_DATA, "recorded by another version: %d tables of %s", a->n, a->name);
    return store_take(s, t, &reply, e);
}

static void
inject_topic(struct store *s, enum topic t, struct store_answer *a)
{
    struct topic_slot *slot = &s->slots[t];
    struct buf key = {0};
    struct err e = {0};

    store_key(s, t, &key);
    store_set_clock(s, a->at_ms);
    if (strcmp(key.data, a->key) != 0) {
        forget(s, t);
        fail(&slot->info.err, ERR_DATA, "not recorded then: %s of \"%s\" %s", a->name, a->key,
             "were looked at");
    } else if (a->err && a->err->kind != ERR_NONE) {
        slot->info.err = *a->err;
    } else if (take_answer(s, t, a, &e)) {
        slot->info.err = (struct err){0};
        slot->info.taken_ms = a->at_ms;
        slot->info.took_us = a->took_us;
        slot->info.has_data = true;
        if (t == TOPIC_JOBS)
            store_close_window(s);
    } else {
        slot->info.err = e;
    }
    buf_free(&key);
}

void
store_inject(struct store *s, struct store_answer *a)
{
    if (!strcmp(a->name, "server") || !strcmp(a->name, "version") || !strcmp(a->name, "role") ||
        !strcmp(a->name, "adapter"))
        store_inject_source(s, a);
    for (int t = 0; t < TOPIC_COUNT; t++)
        if (!strcmp(a->name, topic_kinds[t].name) && s->slots[t].chosen &&
            !s->slots[t].info.unavailable)
            inject_topic(s, (enum topic)t, a);
    for (int i = 0; i < a->n; i++) {
        result_free(a->tables[i]);
        a->tables[i] = NULL;
    }
    store_touch(s);
}

void
store_inject_done(struct store *s)
{
    for (int t = 0; t < TOPIC_COUNT; t++) {
        struct topic_slot *slot = &s->slots[t];
        if (!slot->info.wanted || !slot->chosen || slot->info.unavailable || slot->info.has_data ||
            slot->info.err.kind != ERR_NONE)
            continue;
        fail(&slot->info.err, ERR_DATA, "not recorded: nobody looked at this then");
        store_touch(s);
    }
}
