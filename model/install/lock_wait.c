/* See lock_wait.h. */
#include "model/install/lock_wait.h"

#include <string.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "model/db/rows.h"

/* LONGEST_MS is far below the server's deadlock_timeout (default 1 s). If a session holds a lock
 * that we need and waits for one that we hold, our attempt must end first, so that this session
 * goes on and does not get "deadlock detected". */
enum { GIVE_UP_MS = 5000, PAUSE_MS = 250, FIRST_MS = 100, LONGEST_MS = 200 };

struct holder {
    const char *line;
    int is_long;
};

static const struct field holder_fields[] = {
    {"line",    F_STR,  offsetof(struct holder, line),    false},
    {"is_long", F_BOOL, offsetof(struct holder, is_long), false},
};

/* True if the error came from the lock of another session: a later attempt may succeed. */
static bool
is_lock_error(const struct err *e)
{
    static const char *const states[] = {"55P03", "40P01", "40001"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(e->sqlstate, states[i]))
            return true;
    return false;
}

/* Who holds locks now, in words; *is_long = one of them has held it for long. If nobody holds one
 * now, *who does not change: it names who was in the way. */
static bool
ask_holders(const struct lock_wait *w, struct buf *who, bool *is_long, struct err *e)
{
    const struct db_param p[] = {{.value = w->schemas[0]}, {.value = w->schemas[1]}};
    const struct db_stmt stmt = {.sql = console_sql("lock_holders"), .nparams = 2, .params = p};
    struct db_reply reply;
    struct rowset set;

    *is_long = false;
    bool ok = db_do(w->db, w->loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, e) &&
              rowset_decode(db_take(&reply, 0), holder_fields, 2, sizeof(struct holder), &set, e);
    db_reply_done(&reply);
    if (!ok)
        return false;
    const struct holder *rows = set.rows;
    if (set.n > 0)
        buf_clear(who);
    for (int i = 0; i < set.n; i++) {
        *is_long |= rows[i].is_long == 1;
        if (i == 0 || rows[i].is_long == 1)
            buf_printf(who, "%s%s", i > 0 ? "; " : "", rows[i].line);
    }
    rowset_free(&set);
    return true;
}

/* False = a signal stopped the loop. */
static bool
pause_a_moment(const struct lock_wait *w, struct err *e)
{
    const bool never = false;

    return loop_until(w->loop, &never, clock_ms() + PAUSE_MS, e) || e->kind == ERR_TIMEOUT;
}

/* Waits while somebody holds a lock for long; false = the time is over, or *e. */
static bool
wait_for_the_long(const struct lock_wait *w, int64_t deadline, struct buf *who, struct err *e)
{
    bool is_long = true;

    while (is_long) {
        if (clock_ms() >= deadline)
            return fail(e, ERR_REFUSED, "nothing was changed: the lock was not free for %d s: %s",
                        GIVE_UP_MS / 1000, who->len ? who->data : "somebody holds it");
        if (!pause_a_moment(w, e) || !ask_holders(w, who, &is_long, e))
            return false;
    }
    return true;
}

bool
lock_wait_run(const struct lock_wait *w, struct err *e)
{
    int64_t deadline = clock_ms() + GIVE_UP_MS;
    struct buf who = {0};
    bool ok = false, goes_on = true, is_long;

    for (int lock_ms = FIRST_MS; goes_on; lock_ms *= 2) {
        ok = w->attempt(w->ctx, lock_ms < LONGEST_MS ? lock_ms : LONGEST_MS, e);
        goes_on = !ok && is_lock_error(e) && ask_holders(w, &who, &is_long, e) &&
                  wait_for_the_long(w, deadline, &who, e);
    }
    buf_free(&who);
    return ok;
}
