/*
 * A store that shows a recording: answers come from outside, each into the topic whose name it
 * bears, through the same functions as the server's. Its clock is the time that is shown.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/store_parts.h"

int64_t
store_clock(const struct store *s)
{
    return s->still.on ? s->still.now_ms : clock_ms();
}

void
store_feed_clock(struct store *s, int64_t now_ms)
{
    if (now_ms / 100 != s->still.now_ms / 100)
        store_touch(s);
    s->still.now_ms = now_ms;
}

static void
forget(struct store *s, enum topic t)
{
    struct slot *slot = &s->slots[t];

    topic_kinds[t].clear(s);
    slot->info.has_data = false;
    slot->info.taken_ms = slot->info.took_us = 0;
    slot->info.err = (struct err){0};
}

void
store_feed_reset(struct store *s)
{
    for (int t = 0; t < TOPIC_COUNT; t++)
        forget(s, (enum topic)t);
    history_free(s->history);
    s->history = store_new_history();
    s->seeded = false;
    store_done_health(s);
    s->health.was_ms = 0;
    store_init_health(s);
    s->error = (struct err){0};
    store_touch(s);
}

/* --- an answer ------------------------------------------------------------------------------- */

/* How many tables this program makes of a topic's answer. */
static int
tables_of(const struct store *s, enum topic t)
{
    int n = 0;

    for (int i = 0; i < topic_kinds[t].nsections; i++) {
        enum section_id sec = topic_kinds[t].sections[i];
        n += adapter_has(s->adapter, sec) && !(sec == SEC_RATES && s->seeded);
    }
    return n;
}

static bool
take(struct store *s, enum topic t, struct store_answer *a, struct err *e)
{
    struct db_reply reply = {.results = a->tables, .n = a->n};

    if (t == TOPIC_QUEUES && a->n < topic_kinds[t].nsections)
        s->seeded = true; /* the points of the past came with the first answer only */
    else if (t == TOPIC_QUEUES && s->seeded)
        reply.n = tables_of(s, t); /* and once is enough */
    if (reply.n != tables_of(s, t))
        return fail(e, ERR_DATA, "recorded by another version: %d tables of %s", a->n, a->name);
    return topic_kinds[t].take(s, &reply, e);
}

/* What was not recorded can't be scrolled to. */
static void
end_window(struct store *s)
{
    free(s->window.resume);
    s->window.resume = NULL;
    s->window.at_end = true;
}

static void
feed_topic(struct store *s, enum topic t, struct store_answer *a)
{
    struct slot *slot = &s->slots[t];
    struct buf key = {0};
    struct err e = {0};

    store_key(s, t, &key);
    s->server_ms = a->at_ms;
    if (strcmp(key.data, a->key) != 0) {
        forget(s, t);
        fail(&slot->info.err, ERR_DATA, "not recorded then: %s of \"%s\" %s", a->name, a->key,
             "were looked at");
    } else if (a->err && a->err->kind != ERR_NONE) {
        slot->info.err = *a->err;
    } else if (take(s, t, a, &e)) {
        slot->info.err = (struct err){0};
        slot->info.taken_ms = a->at_ms;
        slot->info.took_us = a->took_us;
        slot->info.has_data = true;
        if (t == TOPIC_JOBS)
            end_window(s);
    } else {
        slot->info.err = e;
    }
    buf_free(&key);
}

/* Which system this is a recording of. */
static void
feed_adapter(struct store *s, const struct result *r)
{
    const char *name = result_text(r, 0, result_col(r, "adapter"));
    const char *schema = result_text(r, 0, result_col(r, "schema"));

    if (adapter_become_named(s->adapter, name) && adapter_use(s->adapter, schema, &s->error))
        for (int t = 0; t < TOPIC_COUNT; t++)
            s->slots[t].info.unavailable = adapter_has(s->adapter, topic_kinds[t].sections[0])
                                               ? NULL
                                               : adapter_silence(s->adapter);
    else if (s->error.kind == ERR_NONE)
        fail(&s->error, ERR_DATA, "recorded with adapter %s, which is not here", name);
}

static void
feed_source(struct store *s, struct store_answer *a)
{
    struct db_reply reply = {.results = a->tables, .n = a->n};
    struct rowset rows;
    struct err e = {0};

    s->error = a->err ? *a->err : (struct err){0};
    if (a->n < 1 || !a->tables[0])
        return;
    if (!strcmp(a->name, "adapter")) {
        feed_adapter(s, a->tables[0]);
        return;
    }
    if (!strcmp(a->name, "version")) {
        free(s->version);
        s->version = xstrdup(result_text(a->tables[0], 0, 0));
        return;
    }
    bool server = !strcmp(a->name, "server");
    if (!record_decode(server ? &record_server : &record_role, db_take(&reply, 0), &rows, &e)) {
        s->error = e;
        return;
    }
    struct rowset *to = server ? &s->server : &s->role;
    rowset_free(to);
    *to = rows;
}

void
store_feed(struct store *s, struct store_answer *a)
{
    s->state = STORE_OPEN;
    if (!strcmp(a->name, "server") || !strcmp(a->name, "version") || !strcmp(a->name, "role") ||
        !strcmp(a->name, "adapter"))
        feed_source(s, a);
    for (int t = 0; t < TOPIC_COUNT; t++)
        if (!strcmp(a->name, topic_kinds[t].name) && s->slots[t].chosen &&
            !s->slots[t].info.unavailable)
            feed_topic(s, (enum topic)t, a);
    for (int i = 0; i < a->n; i++) {
        result_free(a->tables[i]);
        a->tables[i] = NULL;
    }
    store_touch(s);
}

void
store_feed_done(struct store *s)
{
    for (int t = 0; t < TOPIC_COUNT; t++) {
        struct slot *slot = &s->slots[t];
        if (!slot->info.wanted || !slot->chosen || slot->info.unavailable || slot->info.has_data ||
            slot->info.err.kind != ERR_NONE)
            continue;
        fail(&slot->info.err, ERR_DATA, "not recorded: nobody looked at this then");
        store_touch(s);
    }
}
