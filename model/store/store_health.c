/*
 * Database health: two topics that the console's own SQL reads, not the adapter's. Sessions and
 * vacuums change fast. Tables are asked less often and in a call of their own, as another session's
 * lock may block them. Rates are made from the difference of two answers. Dead rows are kept for
 * the graph as long as the topic is asked.
 */
#include <math.h>

#include "model/store/store_parts.h"

enum { STEP_MS = 10000, FEW_BLOCKS = 200, NAMES_KEPT = 40 };

void
store_init_health(struct store *s)
{
    s->health.dead = history_new(STEP_MS, STORE_DEAD_STEPS);
    s->health.cache_hit = s->health.wal_per_s = (double)NAN;
}

void
store_done_health(struct store *s)
{
    history_free(s->health.dead);
}

void
store_reset_health(struct store *s)
{
    store_done_health(s);
    s->health.was_ms = 0;
    store_init_health(s);
}

static double
part_of(int64_t hit, int64_t read)
{
    return hit + read > 0 ? (double)hit / (double)(hit + read) : (double)NAN;
}

/* The share of cache hits since the last answer. If fewer than FEW_BLOCKS were read since then, it
 * is the share of all time. */
void
store_rate_health(struct store *s)
{
    struct health_state *h = &s->health;
    const struct health_server *now = h->server.rows;

    if (h->server.n == 0)
        return;
    int64_t ms = s->source.server_ms - h->was_ms, hit = now->blks_hit - h->was.blks_hit,
            read = now->blks_read - h->was.blks_read, wal = now->wal_bytes - h->was.wal_bytes;

    h->cache_hit = h->was_ms && hit >= 0 && read >= 0 && hit + read >= FEW_BLOCKS
                       ? part_of(hit, read)
                       : part_of(now->blks_hit, now->blks_read);
    h->wal_per_s = (double)NAN;
    if (h->was_ms && ms > 0 && wal >= 0 && now->wal_bytes != FIELD_NULL)
        h->wal_per_s = (double)wal * 1000.0 / (double)ms;
    h->was = *now;
    h->was.login = h->was.xid_database = "";
    h->was_ms = s->source.server_ms;
}

void
store_note_tables(struct store *s)
{
    const struct health_table *t = s->health.tables.rows;

    for (int i = 0; i < s->health.tables.n && i < NAMES_KEPT; i++) {
        struct sample one = {
            s->source.server_ms, {FIELD_NULL, FIELD_NULL, FIELD_NULL, t[i].dead, FIELD_NULL}
        };
        history_add(s->health.dead, t[i].name, &one);
    }
}

struct health
store_health(const struct store *s)
{
    const struct health_state *h = &s->health;

    return (struct health){.server = h->server.n ? h->server.rows : NULL,
                           .sessions = h->sessions.rows,
                           .nsessions = h->sessions.n,
                           .vacuums = h->vacuums.rows,
                           .nvacuums = h->vacuums.n,
                           .tables = h->tables.rows,
                           .ntables = h->tables.n,
                           .cache_hit = h->cache_hit,
                           .wal_per_s = h->wal_per_s,
                           .now_ms = store_now_ms(s)};
}

const struct history *
store_dead_rows(const struct store *s)
{
    return s->health.dead;
}
