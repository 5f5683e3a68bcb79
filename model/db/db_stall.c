/* A call on the wire that is not answered. A slow answer is not silence: a server that gets little
 * of a processor needs seconds for what takes milliseconds elsewhere, and who cancels it and asks
 * again keeps the server busy with nothing. So two things are told apart:
 *   - The line is dead: the other kernel confirms nothing of what was sent (is_line_dead), or
 *     no keepalive (db_hosts.c). The connection is dropped within about 10 s.
 *   - The line is alive and no answer comes. The server may work, wait, or stand still; nothing
 *     tells these apart from outside. So the call gets all its time (warn_ms). Then nobody wants
 *     it any more: we ask the server to cancel, and drop the socket if not even that is answered.
 * A cancel request goes out on a helper thread, because PQcancel waits for its answer (and is not
 * encrypted: libpq 15 has no other). While a request is under way no other call is sent, so that
 * the request can't hit the wrong call. A request that is not over CANCEL_MS after its call costs
 * the connection.
 */
#include "model/db/db_private.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"

enum {
    GREETING_BYTES = 400,
    SLOW_GREETING_US = 500000,
    LINE_PATIENCE_MS = 60000,
    CANCEL_MS = 10000, /* PQcancel has no time limit of its own */
    DEAD_MS = 8000,    /* the other kernel confirms nothing for so long */
    DEAD_TRIES = 2,    /* and our kernel has sent it again so often */
    WORK_BYTES_PER_MS =
        250 /* a very busy server parses, packs and writes a large value that fast */
};

/* --- slow lines --- */

/* Measures the line by how long the server's greeting took; calls that are quicker lower the
 * figure. A proxy or tunnel in front of a slow line takes our bytes at once, so how fast it takes
 * them says nothing. */
void
stall_greeted(struct db *db, int64_t took_us)
{
    bool is_slow = took_us >= SLOW_GREETING_US;

    db->line.greet_us = is_slow ? took_us : 0;
    db->line.byte_ns = is_slow ? took_us * 1000 / GREETING_BYTES : 0;
}

void
stall_answered(struct db *db, const struct call *c)
{
    int64_t took_us = clock_us() - c->sent_us;

    db->line.lag_us = took_us / (c->what.n + 1);
    if (took_us < db->line.greet_us)
        db->line.greet_us = took_us;
    if (took_us * 1000 / (c->size + GREETING_BYTES) < db->line.byte_ns)
        db->line.byte_ns = took_us * 1000 / (c->size + GREETING_BYTES);
}

int
stall_line_ms(const struct db *db, const struct call *c)
{
    int64_t bytes_ms =
        db->line.byte_ns ? (c->size + GREETING_BYTES) * db->line.byte_ns / 1000000 : 0;
    int64_t ms = db->line.greet_us / 1000 + bytes_ms + bytes_ms / 2;

    return ms < LINE_PATIENCE_MS ? (int)ms : LINE_PATIENCE_MS;
}

/* --- silence --- */

/* How much longer than usual the server may be silent. There are three reasons: the call has a
 * longer limit of its own; the line is slow; the call is large, and the server is silent from its
 * last byte until the value is stored. */
static int
patience_ms(const struct db *db)
{
    const struct call *c = db->flight.call;

    if (!c)
        return 0;
    int more = c->what.statement_timeout_ms - db->conf.statement_timeout_ms;
    int work = (int)(c->size / WORK_BYTES_PER_MS);
    return (more > 0 ? more : 0) + work + stall_line_ms(db, c);
}

enum { TICKS = 4, TICK_LEAST_MS = 20, TICK_MOST_MS = 2000 };

/* The kernel still holds bytes of a large call long after we have written them. Bytes that leave
 * the kernel are a sign of life, too. Over TCP the number is the bytes not yet confirmed, over a
 * unix socket the bytes not yet read. */
static void
note_progress(struct db *db)
{
    struct flight *f = &db->flight;
    int left = 0;

    if (ioctl(PQsocket(db->conn), SIOCOUTQ, &left) != 0)
        left = 0;
    if (f->out_left > 0 && left < f->out_left)
        f->heard_ms = clock_ms();
    f->out_left = left;
}

/* Over TCP our kernel knows whether the other one is there: it confirms what it gets at once,
 * however busy its programs are. A proxy confirms for itself; what is behind it is not known. */
static bool
is_line_dead(const struct db *db)
{
    struct tcp_info tcp;
    socklen_t len = sizeof tcp;

    return getsockopt(PQsocket(db->conn), IPPROTO_TCP, TCP_INFO, &tcp, &len) == 0 &&
           tcp.tcpi_unacked > 0 && tcp.tcpi_retransmits >= DEAD_TRIES &&
           tcp.tcpi_last_ack_recv >= DEAD_MS;
}

void
stall_arm(struct db *db)
{
    const struct flight *f = &db->flight;
    int wait = -1;

    if (db->conf.warn_ms >= 0 && !f->is_cancelled)
        wait = db->conf.warn_ms;
    else if (db->conf.drop_ms >= 0)
        wait = db->conf.drop_ms;
    int64_t at = wait < 0 ? 0 : f->heard_ms + wait + patience_ms(db);
    int tick_ms = wait / TICKS < TICK_MOST_MS ? wait / TICKS : TICK_MOST_MS;
    int64_t tick = clock_ms() + (tick_ms > TICK_LEAST_MS ? tick_ms : TICK_LEAST_MS);
    db_set_timer(db, at && f->out_left != 0 && tick < at ? tick : at);
}

void
stall_sent(struct db *db)
{
    db->flight.out_left = -1;
    stall_arm(db);
}

struct cancel {
    struct db *db;
    int serial;
    PGcancel *how;
    bool ok;
    char said[256];
};

static void
cancel_free(void *ctx)
{
    struct cancel *k = ctx;

    PQfreeCancel(k->how);
    free(k);
}

static void
cancel_work(void *ctx)
{
    struct cancel *k = ctx;

    k->ok = PQcancel(k->how, k->said, sizeof k->said) == 1; /* blocks: hence the thread */
}

/* The cancel request is over. Only now may the next call be sent, because a late cancel would hit
 * it. */
static void
cancel_done(void *ctx)
{
    struct cancel *k = ctx;

    if (!k->ok)
        log_line(LOG_WARN, "cancel request: %s", k->said);
    if (k->serial == k->db->session.serial) {
        k->db->is_cancelling = false;
        if (k->db->state == DB_READY)
            db_set_timer(k->db, 0);
        db_kick(k->db);
    }
    cancel_free(k);
}

void
stall_cancel(struct db *db)
{
    struct offload *off = db->is_cancelling ? NULL : db_offload(db);
    PGcancel *how = off ? PQgetCancel(db->conn) : NULL;

    if (!how)
        return;
    struct cancel *k = xcalloc(1, sizeof *k);
    *k = (struct cancel){.db = db, .serial = db->session.serial, .how = how};
    db->is_cancelling = true;
    offload_run(off, cancel_work, cancel_done, cancel_free, k);
}

void
stall_over(struct db *db)
{
    db_set_timer(db, db->is_cancelling ? clock_ms() + CANCEL_MS : 0);
}

/* libpq does not say whether the request has left, and nobody can take it back: it may still hit a
 * later call of this session. In a new session it hits nothing. */
void
stall_cancel_hangs(struct db *db)
{
    struct err e;

    fail(&e, ERR_CONN, "a cancel request was not answered for %d s: connection dropped",
         CANCEL_MS / 1000);
    db_broken(db, &e);
}

void
stall_timeout(struct db *db)
{
    struct flight *f = &db->flight;
    struct err e;

    note_progress(db);
    int64_t silent = clock_ms() - f->heard_ms - patience_ms(db);

    if (db->conf.drop_ms >= 0 && is_line_dead(db)) {
        fail(&e, ERR_CONN, "%s confirms nothing that is sent: the line is dead", db_host(db));
        db_broken(db, &e);
        return;
    }
    if (db->conf.drop_ms >= 0 && silent >= db->conf.drop_ms) {
        fail(&e, ERR_CONN,
             "the server was silent for %.1f s, not even a request to cancel was answered: "
             "connection dropped",
             (double)(clock_ms() - f->heard_ms) / 1000);
        db_broken(db, &e);
        return;
    }
    if (db->conf.warn_ms >= 0 && silent >= db->conf.warn_ms && !f->is_cancelled) {
        f->is_cancelled = true;
        log_line(LOG_WARN, "no answer within the time of the call, asking the server to cancel it");
        stall_cancel(db);
    }
    stall_arm(db);
}
