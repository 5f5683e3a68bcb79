/* Connections to one server that take turns. A turn begins when a connection wants to connect or to
 * send a call, and ends when it has failed or has no call left (db.c). So everything between the
 * connect and the last answer is one turn, and a server with little time begins few sessions at
 * once and finishes them. */
#include "model/db/db_private.h"

#include <assert.h>
#include <stdlib.h>

#include "model/base/clock.h"
#include "model/base/mem.h"

enum { TURN_MS = 30000 };

struct db_turns {
    struct loop *loop;
    int most, timer;
    struct db *having, *waiting; /* waiting: in the order in which they came */
};

static void
put_last(struct db **list, struct db *db)
{
    while (*list)
        list = &(*list)->turn.next;
    db->turn.next = NULL;
    *list = db;
}

static void
take_out(struct db **list, const struct db *db)
{
    while (*list != db)
        list = &(*list)->turn.next;
    *list = db->turn.next;
}

/* How many turns count. *until: when the first of them no longer does. */
static int
count_turns(const struct db_turns *ts, int64_t *until)
{
    int64_t now = clock_ms();
    int n = 0;

    *until = INT64_MAX;
    for (const struct db *db = ts->having; db; db = db->turn.next) {
        int64_t end = db->turn.since_ms + TURN_MS;
        if (end <= now)
            continue;
        n++;
        *until = end < *until ? end : *until;
    }
    return n;
}

static void
begin_turn(struct db_turns *ts, struct db *db)
{
    db->turn.waits = false;
    db->turn.since_ms = clock_ms();
    put_last(&ts->having, db);
}

/* Lets in those that wait, as far as there is room. */
static void
let_in(void *ctx)
{
    struct db_turns *ts = ctx;
    int64_t until;

    loop_cancel(ts->loop, ts->timer);
    ts->timer = 0;
    while (ts->waiting && count_turns(ts, &until) < ts->most) {
        struct db *db = ts->waiting;
        take_out(&ts->waiting, db);
        begin_turn(ts, db);
        db_kick(db);
    }
    if (ts->waiting)
        ts->timer = loop_at(ts->loop, until, let_in, ts);
}

bool
turn_take(struct db *db)
{
    struct db_turns *ts = db->turn.of;
    int64_t until;

    if (!ts || db->turn.since_ms)
        return true;
    if (db->turn.waits)
        return false;
    if (!ts->waiting && count_turns(ts, &until) < ts->most) {
        begin_turn(ts, db);
        return true;
    }
    db->turn.waits = true;
    put_last(&ts->waiting, db);
    let_in(ts); /* sets the timer */
    return db->turn.since_ms != 0;
}

void
turn_end(struct db *db)
{
    struct db_turns *ts = db->turn.of;

    if (!ts || (!db->turn.waits && !db->turn.since_ms))
        return;
    take_out(db->turn.waits ? &ts->waiting : &ts->having, db);
    db->turn.waits = false;
    db->turn.since_ms = 0;
    let_in(ts);
}

struct db_turns *
db_turns_new(struct loop *l, int most)
{
    struct db_turns *ts = xcalloc(1, sizeof *ts);

    *ts = (struct db_turns){.loop = l, .most = most};
    return ts;
}

void
db_turns_free(struct db_turns *ts)
{
    if (!ts)
        return;
    assert(!ts->having && !ts->waiting);
    loop_cancel(ts->loop, ts->timer);
    free(ts);
}

void
db_set_turns(struct db *db, struct db_turns *ts)
{
    if (db->turn.of == ts)
        return;
    turn_end(db);
    db->turn.of = ts;
    if (ts && db->state != DB_OFF && db->state != DB_BACKOFF &&
        (db->state != DB_READY || db->queue.first))
        begin_turn(ts, db); /* it is under way already */
    db_kick(db);
}
