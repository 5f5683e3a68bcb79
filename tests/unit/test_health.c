/*
 * Advice names the cause and a correct remedy. If all is well, there is no advice.
 */
#include "tests/harness.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/store/health.h"

#define MINUTE (60 * 1000LL)
enum { NOW = 1000000000 };

static struct health_server
calm(void)
{
    return (struct health_server){.max_connections = 100,
                                  .connections = 20,
                                  .longest_ms = FIELD_NULL,
                                  .lag_ms = FIELD_NULL,
                                  .lag_bytes = FIELD_NULL,
                                  .xid_age = 190000000,
                                  .freeze_max = 200000000,
                                  .xid_database = "app",
                                  .autovacuum = 1,
                                  .max_workers = 3,
                                  .sees_all = 1,
                                  .signals_all = 1,
                                  .login = "bob"};
}

static struct health_session
session(int pid, const char *state, int64_t open_ms, int64_t held)
{
    static char ids[8][16];
    static int n;
    char *id = ids[n++ % 8];

    snprintf(id, sizeof ids[0], "pid %d", pid);
    return (struct health_session){.id = id,
                                   .kind = "session",
                                   .pid = pid,
                                   .user = "etl",
                                   .app = "etl",
                                   .client = "local",
                                   .state = state,
                                   .query = "select 1",
                                   .waits = "",
                                   .blocked_by = "",
                                   .xact_ms = open_ms < 0 ? FIELD_NULL : NOW - open_ms,
                                   .since_ms = open_ms < 0 ? FIELD_NULL : NOW - open_ms,
                                   .held = held,
                                   .wraparound = 0,
                                   .guard = "{}",
                                   .deny = ""};
}

static struct health_table
table(int64_t live, int64_t dead, int64_t next)
{
    return (struct health_table){.name = "queue",
                                 .parts = 1,
                                 .live = live,
                                 .dead = dead,
                                 .next_dead = next,
                                 .worst_dead = dead,
                                 .worst = "queue",
                                 .largest = "queue"};
}

static struct arena *mem;

/* All advice about it, one a line, "!" before what is bad. */
static const char *
advice(const struct health_server *server, const struct health_session *s, int ns,
       const struct health_table *t, int nt)
{
    static char text[4000];
    struct health h = {.server = server,
                       .sessions = s,
                       .nsessions = ns,
                       .tables = t,
                       .ntables = nt,
                       .now_ms = NOW};
    struct advice out[20];
    size_t at = 0;

    text[0] = 0;
    int n = health_advice(&h, mem, out, 20);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", i ? "\n" : "",
                               out[i].bad ? "! " : "", out[i].text);
    return text;
}

static void
says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void
nothing_where_all_is_well(void **state)
{
    struct health_server server = calm();
    struct health_session s[] = {session(7, "active", 2000, 900000),
                                 session(8, "idle in transaction", 3000, 12)};
    struct health_table t = table(10000, 900, 2050);

    (void)state;
    assert_string_equal(advice(&server, s, 2, &t, 1), "");
    assert_string_equal(advice(NULL, NULL, 0, NULL, 0), "");
}

static void
the_holder_and_what_ends_it(void **state)
{
    struct health_server server = calm();
    struct health_session s[] = {session(7, "active", 8 * MINUTE, 5000),
                                 session(8, "idle in transaction", 41 * MINUTE, 1204118)};
    struct health_table t = table(25012, 11300, 5052);

    (void)state;
    const char *text = advice(&server, s, 2, &t, 1);
    says(text,
         "! pid 8 (etl) holds back vacuum for 41m, up to 11,300 dead rows stay; it is idle in "
         "transaction: K ends it");
    says(text, "queue: 31% dead, 11,300 rows, and vacuum is held back by pid 8 (etl)");
    s[1].deny = "user admin is a superuser: only a superuser may signal it";
    says(advice(&server, s, 2, &t, 1), "ending it is not yours to do: user admin is a superuser");
    says(advice(&server, s, 1, NULL, 0), "C cancels its statement, K ends it");
}

/* Advice does not say to end a session that ends by itself, or whose end would do harm. */
static void
not_everything_is_to_be_ended(void **state)
{
    struct health_server server = calm();
    struct health_session s = session(7, "walsender", -1, 500000);

    (void)state;
    s.kind = "walsender";
    const char *text = advice(&server, &s, 1, NULL, 0);
    says(text, "look for the long query there");
    assert_null(strstr(text, "K ends"));
    s = session(7, "active", 20 * MINUTE, 500000);
    s.kind = "autovacuum";
    s.wraparound = 1;
    text = advice(&server, &s, 1, NULL, 0);
    assert_null(strstr(text, "K ends"));
    assert_null(strstr(text, "C cancels"));
    s = session(INT_MIN, "unread slot", -1, 500000);
    s.kind = "slot";
    s.id = "slot old";
    text = advice(&server, &s, 1, NULL, 0);
    says(text, "start its reader, or drop the slot");
    s.state = "lost slot";
    s.held = FIELD_NULL;
    says(advice(&server, &s, 1, NULL, 0), "is lost: its WAL is gone");
    s = session(INT_MIN, "prepared", 90 * MINUTE, 500000);
    s.kind = "prepared";
    text = advice(&server, &s, 1, NULL, 0);
    says(text, "commit prepared or rollback prepared ends it");
    assert_null(strstr(text, "K ends"));
}

/* The advice names the session by pid and user, so that an operator can ask the user. */
static void
a_stranger_in_the_place_of_a_worker(void **state)
{
    struct health_server server = calm();
    struct health_session s = session(7, "idle", -1, FIELD_NULL);

    (void)state;
    s.kind = "place";
    s.app = "psql";
    s.user = "bob";
    const char *text = advice(&server, &s, 1, NULL, 0);
    says(text, "pid 7 (psql) of user bob holds the lock of a worker that waits");
    says(text, "pg_advisory_unlock_all()");
}

static void
the_root_of_a_queue_for_a_lock(void **state)
{
    struct health_server server = calm();
    struct health_session s[] = {session(7, "idle in transaction", 30000, 5),
                                 session(71, "active", 20000, 5), session(9, "active", 15000, 5)};

    (void)state;
    s[1].blocked_by = "7";
    s[2].blocked_by = "7 71";
    assert_string_equal(advice(&server, s, 3, NULL, 0),
                        "! pid 7 (etl) is idle in transaction for 30s, and 2 wait for its locks "
                        "since 20s: K ends it");
    s[1].blocked_by = "";
    s[1].waits = "Lock: relation"; /* beyond those of whom it is asked */
    says(advice(&server, s, 3, NULL, 0), "and 1 or more wait for its locks since 15s: K ends");
    s[1].blocked_by = "70"; /* 70 is not in the list: its work is unknown */
    s[2].blocked_by = "0";
    const char *text = advice(&server, s, 3, NULL, 0);
    says(text, "pid 71 (etl) waits for a lock since 20s, held by pid 70: look at that first");
    says(text, "held by a prepared transaction");
    s[1].since_ms = s[2].since_ms = NOW - 2000; /* a short wait gives no advice */
    assert_string_equal(advice(&server, s, 3, NULL, 0), "");
}

static void
tables_are_told_apart(void **state)
{
    struct health_server server = calm();
    struct health_table t = table(1000, 3000, 5000);

    (void)state;
    says(advice(&server, NULL, 0, &t, 1), "75% dead is normal between vacuums: the next starts at");
    t.worst_dead = t.dead = 6000;
    says(advice(&server, NULL, 0, &t, 1), "past its mark of 5,000: autovacuum is due");
    t.vacuum_off = 1;
    says(advice(&server, NULL, 0, &t, 1), "! queue: autovacuum is switched off for it");
}

static void
transaction_ids_and_rights(void **state)
{
    struct health_server server = calm();

    (void)state;
    server.xid_age = 210000000; /* vacuums to prevent wraparound have just begun: that is usual */
    assert_string_equal(advice(&server, NULL, 0, NULL, 0), "");
    server.xid_age = 300000000;
    const char *text = advice(&server, NULL, 0, NULL, 0);
    says(text, "end what holds vacuum back, never those vacuums");
    assert_true(*text != '!');
    server.xid_age = 1200000000;
    assert_int_equal(*advice(&server, NULL, 0, NULL, 0), '!');
    server = calm();
    server.sees_all = 0;
    server.hidden = 4;
    says(advice(&server, NULL, 0, NULL, 0),
         "user bob can't see what other users' sessions do (4 hidden now): grant pg_monitor");
    server = calm();
    server.standby = 1;
    says(advice(&server, NULL, 0, NULL, 0), "this is a standby");
}

static void
waits_and_names(void **state)
{
    struct health_session s = session(7, "active", 1000, 5);
    struct buf b = {0};

    (void)state;
    assert_false(health_waits(&s));
    s.waits = "Lock: relation";
    assert_true(health_waits(&s));
    health_say_blockers(&b, &s);
    assert_string_equal(b.data, "others");
    buf_clear(&b);
    s.blocked_by = "0 41 412";
    assert_true(health_waits_for(&s, 41));
    assert_false(health_waits_for(&s, 4));
    assert_false(health_waits_for(&s, 2));
    health_say_blockers(&b, &s);
    assert_string_equal(b.data, "pid 41, 412 and a prepared transaction");
    buf_free(&b);
}

static int
set_up(void **state)
{
    (void)state;
    mem = arena_new();
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    arena_free(mem);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_where_all_is_well),
        cmocka_unit_test(the_holder_and_what_ends_it),
        cmocka_unit_test(not_everything_is_to_be_ended),
        cmocka_unit_test(a_stranger_in_the_place_of_a_worker),
        cmocka_unit_test(the_root_of_a_queue_for_a_lock),
        cmocka_unit_test(tables_are_told_apart),
        cmocka_unit_test(transaction_ids_and_rights),
        cmocka_unit_test(waits_and_names),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
