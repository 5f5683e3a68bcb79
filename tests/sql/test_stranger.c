/*
 * Anybody who may connect may take any advisory lock, also those of the wait slots (48_wake). Then
 * a push notifies for nothing, or no worker can wait, and that is all. Nothing hangs or is refused,
 * and `database health` names the session.
 */
#include "model/base/console_sql.h"
#include "tests/sql/core.h"

#include <stdio.h>
#include <string.h>

#include "tests/sql/ask.h"

enum { SLOT_0 = 1364481111, SLOTS = 17 };

/* A role that has no right in the schema at all. */
static PGconn *
stranger(const char *database)
{
    char dsn[500];
    PGconn *c = pg_connect(pg_dsn(database));

    if (pg_int(c, "select count(*) from pg_roles where rolname = 'stranger'") == 0)
        pg_run(c, "create role stranger login");
    PQfinish(c);
    snprintf(dsn, sizeof dsn, "%s user=stranger", pg_dsn(database));
    return pg_connect(dsn);
}

static void
hold(PGconn *c, PGconn *s, const char *function)
{
    char oid[32];

    snprintf(oid, sizeof oid, "%s", pg_value(c, "select 'queue'::regclass::oid::int"));
    for (int i = 0; i < SLOTS; i++)
        pg_run(s, "select %s(%d, %s)", function, SLOT_0 + i, oid);
}

/* Each of these statements may wait a second at most for a lock. */
static void
all_goes_on(PGconn *c)
{
    pg_run(c, "set statement_timeout = '60 s'");
    pg_run(c, "insert into queue (queue) values ('q')");
    pg_run(c, "select push('q')");
    expect(c, "t", "select active from schedule_or_wait('test', '1 h', pg_backend_pid())");
    expect(c, "2", "select count(*) from claim_or_wait('n', 9, backend_pid => pg_backend_pid())");
    expect(c, "2",
           "select count(*) from (select complete_job('n', lease, 1, unnest(seqs)) from "
           "work_queue) z");
    pg_run(c, "select pause(gen_random_uuid(), 'q'), resume(gen_random_uuid(), 'q')");
    expect(c, "t", "select active from schedule_or_wait('test', '1 h', pg_backend_pid())");
    pg_run(c, "reset statement_timeout");
}

static void
every_place_is_taken(void **state)
{
    static const char *const ways[] = {"pg_advisory_lock", "pg_advisory_lock_shared"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        char name[20];
        snprintf(name, sizeof name, "taken%d", i);
        PGconn *c = core_new(name), *s = stranger(name);
        pg_run(c, "select schedule('test')");
        hold(c, s, ways[i]);
        all_goes_on(c);
        /* nobody can wait there: it is told to ask again soon, or that all places are taken */
        expect(c, i == 0 ? "-2" : "-1",
               "select slot from claim_or_wait('n', 1, backend_pid => pg_backend_pid())");
        core_check(c);
        PQfinish(s);
        PQfinish(c);
    }
}

static const char *
places(PGconn *c)
{
    static char list[200];
    PGresult *r = PQexec(c, console_sql("health_sessions"));

    *list = 0;
    assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
    for (int i = 0; i < PQntuples(r); i++)
        if (!strcmp(PQgetvalue(r, i, PQfnumber(r, "kind")), "place"))
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s %s;",
                     PQgetvalue(r, i, PQfnumber(r, "id")), PQgetvalue(r, i, PQfnumber(r, "user")));
    PQclear(r);
    return list;
}

static void
health_names_it(void **state)
{
    PGconn *c = core_new("named"), *s = stranger("named"), *w = core_join("named");
    char want[60];

    (void)state;
    pg_run(c, "select schedule('test')");
    pg_run(w, "select * from queues.claim_or_wait('w', 1, backend_pid => %d)", PQbackendPID(w));
    assert_string_equal(places(c), ""); /* a worker that waits is none */
    pg_run(w, "select pg_advisory_unlock_all()");
    hold(c, s, "pg_advisory_lock");
    snprintf(want, sizeof want, "pid %d stranger;", PQbackendPID(s));
    assert_string_equal(places(c), want);
    PQfinish(w);
    PQfinish(s);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_is_taken),
        cmocka_unit_test(health_names_it),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
