/*
 * Connections to one server that take turns: against a server that accepts everybody and says
 * nothing until the test lets it.
 */
#include "tests/harness.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/db/db.h"
#include "tests/unit/fake_server.h"

enum { SOURCES = 40, MOST = 4, DEADLINE_MS = 60000 };

struct fixture {
    struct loop *loop;
    struct db_turns *turns;
    struct db *db[SOURCES];
    int answers; /* calls that were answered, whatever came */
    char dir[200];
    int listen_fd;
    int fd[SOURCES], n; /* connections that the server has accepted */
};

static struct fixture f;

static void
on_reply(void *ctx, struct db_reply *reply)
{
    (void)ctx, (void)reply;
    f.answers++;
}

static void
ask(struct db *db)
{
    const struct db_stmt s = {.sql = "select v"};

    db_ask(db, &(struct db_call){.stmts = &s, .n = 1, .bare = true}, -1, on_reply, NULL);
}

static int
setup(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    (void)state;
    f = (struct fixture){.loop = loop_new()};
    snprintf(f.dir, sizeof f.dir, "%s/turnsXXXXXX", getenv("TMPDIR"));
    assert_non_null(mkdtemp(f.dir));
    snprintf(a.sun_path, sizeof a.sun_path, "%.80s/.s.PGSQL.5432", f.dir);
    f.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f.listen_fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(f.listen_fd, SOURCES), 0);
    f.turns = db_turns_new(f.loop, MOST);
    for (int i = 0; i < SOURCES; i++) {
        char dsn[300];
        snprintf(dsn, sizeof dsn, "host=%s user=bob dbname=d sslmode=disable", f.dir);
        f.db[i] = db_new(f.loop, &(struct db_options){.conninfo = dsn});
        db_set_turns(f.db[i], f.turns);
    }
    return 0;
}

static int
teardown(void **state)
{
    char path[300];

    (void)state;
    for (int i = 0; i < SOURCES; i++)
        db_free(f.db[i]);
    db_turns_free(f.turns);
    loop_free(f.loop);
    for (int i = 0; i < f.n; i++)
        if (f.fd[i] >= 0)
            close(f.fd[i]);
    close(f.listen_fd);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", f.dir);
    unlink(path);
    rmdir(f.dir);
    return 0;
}

static int
count(enum db_state state)
{
    int n = 0;

    for (int i = 0; i < SOURCES; i++)
        n += db_state(f.db[i]) == state;
    return n;
}

/* Turns the loop until so many connections were accepted. */
static void
accepted(int wanted)
{
    int64_t deadline = clock_ms() + DEADLINE_MS;
    struct err e;

    while (f.n < wanted) {
        int fd = accept(f.listen_fd, NULL, NULL);
        if (fd >= 0) {
            f.fd[f.n++] = fd;
            continue;
        }
        if (clock_ms() > deadline)
            fail_msg("%d connections, not %d", f.n, wanted);
        assert_true(loop_turn(f.loop, 10, &e));
    }
}

/* All that the loop has to do without waiting: then nobody else has connected. */
static void
nobody_else(void)
{
    struct err e;

    for (int i = 0; i < 100; i++)
        assert_true(loop_turn(f.loop, 0, &e));
    assert_int_equal(accept(f.listen_fd, NULL, NULL), -1);
}

static void
greet(int i)
{
    struct buf b = {0};

    fake_hello(&b);
    assert_int_equal(send(f.fd[i], b.data, b.len, MSG_NOSIGNAL), (ssize_t)b.len);
    buf_free(&b);
}

static void
answer(int i)
{
    struct buf b = {0};

    fake_value(&b, "1");
    fake_ready(&b, 'I');
    assert_int_equal(send(f.fd[i], b.data, b.len, MSG_NOSIGNAL), (ssize_t)b.len);
    buf_free(&b);
}

static void
until(bool (*holds)(void))
{
    int64_t deadline = clock_ms() + DEADLINE_MS;
    struct err e;

    while (!holds()) {
        assert_true(clock_ms() < deadline);
        assert_true(loop_turn(f.loop, 10, &e));
    }
}

static bool
is_one_busy(void)
{
    return count(DB_BUSY) == 1;
}

static bool
is_one_answered(void)
{
    return f.answers == 1;
}

/* Four of forty connect; the next one comes when one of them has its answer, not before. */
static void
few_connect_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++)
        ask(f.db[i]);
    accepted(MOST);
    nobody_else();
    assert_int_equal(count(DB_CONNECTING), MOST);
    assert_int_equal(count(DB_OFF), SOURCES - MOST);
    greet(0);
    until(is_one_busy);
    nobody_else();
    answer(0);
    until(is_one_answered);
    accepted(MOST + 1);
    nobody_else();
    assert_int_equal(count(DB_READY), 1);
}

/* Who is refused makes room, and all get their turn. */
static void
a_failure_makes_room(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++)
        ask(f.db[i]);
    for (int i = 0; i + MOST < SOURCES; i++) {
        accepted(i + MOST);
        close(f.fd[i]);
        f.fd[i] = -1;
    }
    accepted(SOURCES);
    assert_true(count(DB_CONNECTING) <= MOST);
}

/* Who waits and comes to the front does not wait any more; who has a turn keeps it. */
static void
the_front_does_not_wait(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCES; i++)
        ask(f.db[i]);
    accepted(MOST);
    nobody_else();
    db_set_turns(f.db[SOURCES - 1], NULL);
    accepted(MOST + 1);
    nobody_else();
    assert_int_equal(db_state(f.db[SOURCES - 1]), DB_CONNECTING);
    db_set_turns(f.db[SOURCES - 1], f.turns);
    assert_int_equal(count(DB_CONNECTING), MOST + 1);
    db_free(f.db[SOURCES - 1]);
    f.db[SOURCES - 1] = db_new(f.loop, &(struct db_options){.conninfo = ""});
    nobody_else(); /* its place was one too many */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(few_connect_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(the_front_does_not_wait, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
