/*
 * The operator of the soak: one random act a call, asked again with the same action after a lost
 * answer. And the sampler, which looks at what must hold in every snapshot: soak.look().
 */
#include "tests/fault/soak.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 20, IDS = 8, LOOK_MS = 12, LOOKS = 50 };

struct act {
    struct soak *s;
    PGconn **conn;
    char id[37];
    const char *verb;
};

/* Jobs that an act has ended, a space between two. */
static void
note_ended(const char *ids)
{
    char id[37];

    for (; strlen(ids) >= sizeof id - 1; ids += sizeof id - 1, ids += *ids == ' ') {
        snprintf(id, sizeof id, "%s", ids);
        soak_note_order("ended", id, "-\t0\t0\t0\tby act");
    }
}

/* fmt is what stands behind the action's uuid in the call of verb, with its ")". */
static void __attribute__((format(printf, 2, 3))) act(struct act *a, const char *fmt, ...)
{
    char call[1200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(call, sizeof call, fmt, args);
    va_end(args);
    soak_uuid(a->s, a->id);
    for (int i = 0; i < TIMES; i++) {
        PGresult *r = soak_ask(a->s, a->conn,
                               "select coalesce(sum(n) filter (where state is not null), 0), "
                               "string_agg(id, ' ') filter (where state in ('cancelled', "
                               "'discarded', 'deleted')) from queues.%s('%s'%s",
                               a->verb, a->id, call);
        if (r)
            soak_note("act", "%s\t%s\t%s", a->id, a->verb, PQgetvalue(r, 0, 0));
        if (r)
            note_ended(PQgetvalue(r, 0, 1));
        PQclear(r);
        if (r || !soak_was_cut())
            return;
    }
}

/* The first column of the first row, "" when there is none. */
static void
find(struct act *a, char *text, size_t size, const char *sql)
{
    PGresult *r = soak_ask(a->s, a->conn, "%s", sql);

    snprintf(text, size, "%s", r && PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
}

static void
act_on_jobs(struct act *a, const char *verb, const char *from)
{
    char ids[IDS * 38 + 40], sql[300];

    snprintf(sql, sizeof sql,
             "select string_agg(id::text, ',') from (select id from queues.%s order by random() "
             "limit %u) z",
             from, 1 + soak_random(a->s, IDS));
    find(a, ids, sizeof ids, sql);
    a->verb = verb;
    if (*ids && !strcmp(verb, "requeue"))
        act(a, ", 1, '{%s}', %s", ids, soak_chance(a->s, 300) ? "true)" : "false)");
    else if (*ids)
        act(a, ", 1, '{%s}')", ids);
}

static void
act_on_node(struct act *a)
{
    char node[100];

    find(a, node, sizeof node,
         "select lock_key from queues.work_queue where lock_key is not null order by random() "
         "limit 1");
    if (!*node)
        return;
    if (soak_chance(a->s, 300)) {
        a->verb = "extend_leases";
        act(a, ", 1, null, '%s', interval '2 s')", node);
        return;
    }
    a->verb = "release";
    act(a, ", 1, '%s', %s, %s, %s, true)", node, soak_chance(a->s, 300) ? "true" : "false",
        soak_chance(a->s, 100) ? "true" : "false", soak_chance(a->s, 700) ? "true" : "false");
}

static void
drain(struct act *a)
{
    char node[100];

    find(a, node, sizeof node, "select lock_key from queues.node order by random() limit 1");
    a->verb = "drain_node";
    if (*node)
        act(a, ", '%s')", node);
}

static void
set(struct act *a)
{
    a->verb = "set_queue";
    if (soak_chance(a->s, 500))
        act(a, ", 'lim.varies', '{\"max_running\": %u}')", 1 + soak_random(a->s, 6));
    else
        act(a, ", '%c', '{\"weight\": %u, \"chunk\": %s}')", "abc"[soak_random(a->s, 3)],
            1 + soak_random(a->s, 5), soak_chance(a->s, 500) ? "null" : "7");
}

void
soak_act(struct soak *s, PGconn **conn)
{
    static const char *const queues[] = {"a", "b", "mail.send", "lim.three", "lim.varies", "keys"};
    struct act a = {.s = s, .conn = conn};
    const char *queue = queues[soak_random(s, 6)];

    switch (soak_random(s, 12)) {
    case 0:
        a.verb = "pause";
        act(&a, ", '%s', 'soak')", queue);
        break;
    case 1:
    case 2:
        a.verb = "resume";
        act(&a, ", '%s')", queue);
        break;
    case 3:
        act_on_jobs(&a, "requeue", "queue where state <> 'ready'");
        break;
    case 4:
        act_on_jobs(&a, "requeue", "history");
        break;
    case 5:
        a.verb = "requeue_where";
        act(&a, ", 1, null, '{failed}', \"limit\" => 200)");
        break;
    case 6:
        act_on_jobs(&a, "cancel", "queue");
        break;
    case 7:
        act_on_jobs(&a, soak_chance(s, 500) ? "discard" : "delete_jobs", "queue");
        break;
    case 8:
        drain(&a);
        break;
    case 9:
        set(&a);
        break;
    default:
        act_on_node(&a);
    }
}

void
soak_sampler(struct soak *s)
{
    PGconn *conn = soak_connect(s, "soak-sampler");

    for (int n = 0; conn; soak_wait(LOOK_MS)) {
        PGresult *r = soak_ask(s, &conn, "select soak.look()");
        if (r && *PQgetvalue(r, 0, 0))
            soak_note("sample", "1\t%s", PQgetvalue(r, 0, 0));
        else if (r && ++n % LOOKS == 0)
            soak_note("sample", "%d\t", LOOKS);
        PQclear(r);
    }
    exit(1);
}
