/*
 * Pushers of the soak: push(), push_many() and plain INSERTs, with every option. A pusher takes
 * each id itself and writes it into the ledger in the same transaction, so ledger and queue are
 * committed together or not at all. Some transactions stay open for a while before they commit,
 * some are rolled back. An id goes into the file `acked` when the server has said that it is
 * committed.
 */
#include "tests/fault/soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 40, PAUSE_MS = 30 };

static const char *const plain[] = {"a", "b", "c", "mail.send"};

static const char *
choose_queue(struct soak *s)
{
    switch (soak_random(s, 12)) {
    case 0:
        return "lim.three";
    case 1:
        return "lim.varies";
    case 2:
        return "meta";
    case 7:
        return "rate";
    case 8:
        return "keys";
    default:
        return plain[soak_random(s, 4)];
    }
}

static const char *
choose_kind(struct soak *s)
{
    unsigned n = soak_random(s, 1000);

    return n < 3 ? "poison" : n < 40 ? "bad" : n < 60 ? "slow" : "good";
}

struct job {
    char id[37], unique[20], key[12], expires[60];
    const char *queue, *kind;
    int priority, delay_ms;
};

static void
make_job(struct soak *s, struct job *j)
{
    *j = (struct job){.queue = choose_queue(s),
                      .kind = choose_kind(s),
                      .unique = "null",
                      .key = "null",
                      .expires = "null"};
    soak_uuid(s, j->id);
    j->priority = soak_chance(s, 300) ? (int)soak_random(s, 10) : 5;
    j->delay_ms = soak_chance(s, 150) ? 1 + (int)soak_random(s, 2000) : 0;
    if (soak_chance(s, 80))
        snprintf(j->unique, sizeof j->unique, "'u%u'", soak_random(s, 50));
    if (!strcmp(j->queue, "keys"))
        snprintf(j->key, sizeof j->key, "'k%u'", soak_random(s, 12));
    if (soak_chance(s, 30))
        snprintf(j->expires, sizeof j->expires, "clock_timestamp() + interval '%u ms'",
                 200 + soak_random(s, 3000));
}

/* One statement: the job into the queue, and into the ledger what became of it. */
static PGresult *
push_one(struct soak *s, PGconn **conn, const struct job *j)
{
    const char *after = "null";
    char text[80];

    if (j->delay_ms > 0) {
        snprintf(text, sizeof text, "now() + interval '%d ms'", j->delay_ms);
        after = text;
    }
    if (strcmp(j->key, "null") || strcmp(j->expires, "null") || soak_chance(s, 500))
        return soak_ask(
            s, conn,
            "with p as (insert into queues.queue (id, queue, kind, priority, payload, "
            "run_after, unique_key, expires_at, concurrency_key) values ('%s', '%s', '%s', %d, "
            "'{\"n\": 1}', %s, %s, %s, %s) on conflict do nothing returning *) "
            "insert into soak.push (id, queue, key, expires_at, pushed) select '%s', "
            "'%s', %s, (select expires_at from p), exists (select from p)",
            j->id, j->queue, j->kind, j->priority, after, j->unique, j->expires, j->key, j->id,
            j->queue, j->key);
    return soak_ask(s, conn,
                    "insert into soak.push (id, queue, expires_at, pushed, twin) select '%s', "
                    "'%s', null, p.pushed, p.id from queues.push('%s', '{\"n\": 2}', kind => '%s', "
                    "priority => %d, run_after => %s, unique_key => %s, id => '%s') p",
                    j->id, j->queue, j->queue, j->kind, j->priority, after, j->unique, j->id);
}

/* push_many of one queue, all ids ours. */
static PGresult *
push_many(struct soak *s, PGconn **conn, char ids[][37], int n)
{
    char list[MANY * 38 + 1] = "";
    const char *queue = plain[soak_random(s, 4)];

    for (int i = 0; i < n; i++) {
        soak_uuid(s, ids[i]);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "," : "", ids[i]);
    }
    return soak_ask(s, conn,
                    "with g as (select array_agg(x order by o) ids, array_agg('%s'::text) q, "
                    "array_agg('[3]'::text) p from unnest('{%s}'::uuid[]) with ordinality v (x, "
                    "o)) insert into soak.push (id, queue, pushed) select ids[m.n], '%s', m.pushed "
                    "from g, queues.push_many(ids, q, payloads => p) m",
                    queue, list, queue);
}

static void
note_ids(const char *file, char ids[][37], int n)
{
    for (int i = 0; i < n; i++)
        soak_note(file, "%s", ids[i]);
}

static bool
run(struct soak *s, PGconn **conn, const char *sql)
{
    PGresult *r = soak_ask(s, conn, "%s", sql);

    PQclear(r);
    return r != NULL;
}

static void
push(struct soak *s, PGconn **conn)
{
    char ids[MANY][37];
    int n = soak_chance(s, 150) ? 1 + (int)soak_random(s, MANY) : 1;
    bool back = soak_chance(s, 60), late = soak_chance(s, 60);
    struct job j;

    if (!run(s, conn, "begin"))
        return;
    if (n == 1) {
        make_job(s, &j);
        memcpy(ids[0], j.id, sizeof ids[0]);
    }
    PGresult *r = n > 1 ? push_many(s, conn, ids, n) : push_one(s, conn, &j);
    PQclear(r);
    if (r && late)
        soak_wait((int)soak_random(s, 800));
    if (!r || back) {
        if (run(s, conn, "rollback"))
            note_ids("rolled", ids, n);
    } else if (run(s, conn, "commit")) {
        note_ids("acked", ids, n);
        for (int i = 0; i < n; i++)
            soak_note_order("commit", ids[i], "-\t0\t0\t0\tacked");
    }
}

void
soak_pusher(struct soak *s, int n)
{
    char name[32];

    snprintf(name, sizeof name, "soak-push-%d", n);
    PGconn *conn = soak_connect(s, name);
    while (conn) {
        push(s, &conn);
        soak_wait((int)soak_random(s, PAUSE_MS));
    }
    exit(1);
}
