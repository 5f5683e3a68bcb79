/*
 * queuetop-moving(7): each statement of the page, as it stands there, on the tables of the system
 * that it is for, with jobs in every state. What waits is moved once, with what belongs to it; what
 * runs, has ended or has failed stays; and the way back leaves each job in one of the two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/sql/core.h"

static char *page;

static int
read_page(void **state)
{
    char *path = xasprintf("%s/docs/queuetop-moving.7.md", getenv("SRCDIR"));
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    page = xcalloc(1, 65536);
    assert_in_range(fread(page, 1, 65535, f), 1000, 65534);
    fclose(f);
    free(path);
    return core_setup(state);
}

static int
forget_page(void **state)
{
    free(page);
    return core_teardown(state);
}

/* The block of the page whose first line begins with this comment; the caller frees. */
static char *
block(const char *name)
{
    char *head = xasprintf("```sql\n-- %s", name), *at = strstr(page, head);

    assert_non_null(at);
    free(head);
    at += strlen("```sql\n");
    return xstrndup(at, (size_t)(strstr(at, "\n```") - at));
}

/* A statement of the page; with `from` replaced by `to`. */
static const char *
say(PGconn *c, const char *name, const char *from, const char *to)
{
    char *sql = block(name), *at = from ? strstr(sql, from) : NULL;

    if (at) {
        char *other = xasprintf("%.*s%s%s", (int)(at - sql), sql, to, at + strlen(from));
        free(sql);
        sql = other;
    }
    PGresult *r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
        fail_msg("%s\n%s", sql, PQerrorMessage(c));
    static char text[200];
    text[0] = 0;
    for (int i = 0; i < PQntuples(r); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s", i ? ", " : "",
                 PQgetvalue(r, i, 0), PQgetvalue(r, i, 1));
    if (PQresultStatus(r) == PGRES_COMMAND_OK)
        snprintf(text, sizeof text, "%s", PQcmdStatus(r));
    PQclear(r);
    free(sql);
    return text;
}

struct system {
    const char *fixture, *name, *table;
    const char *waits; /* the old numbers that are moved */
    const char *jobs;  /* queue kind state priority max_tries [unique_key] [concurrency_key] */
    const char *more;  /* jobs that the fixture lacks */
};

static void
move(const struct system *s)
{
    PGconn *c = pg_fixture(s->fixture, s->fixture);
    char moved[40], all[20];

    pg_run(c, "reset all");
    if (s->more)
        pg_run(c, "%s", s->more);
    core_load(c, "queues");
    assert_string_equal(say(c, s->name, NULL, NULL), "CREATE VIEW");
    expect(c, s->waits, "select string_agg(right(old::text, 3), ' ' order by old) from old_jobs");
    int n = (int)pg_int(c, "select count(*) from old_jobs");
    snprintf(all, sizeof all, "%d", n);
    pg_run(c, "begin; set local track_functions = 'all'");
    assert_string_equal(say(c, "move", "100000", "2"), "t 2"); /* a part, then the others */
    /* each of a million that wait would cost a look at all of history */
    expect(c, "2", "select calls from pg_stat_xact_user_functions where funcname = 'job_outcome'");
    pg_run(c, "commit");
    expect(c, "t", "select has_column_privilege('queues_worker', 'queues.queue', 'id', 'select')");
    snprintf(moved, sizeof moved, "t %d", n - 2);
    assert_string_equal(say(c, "move", NULL, NULL), moved);
    assert_string_equal(say(c, "move", NULL, NULL), "");
    expect(c, s->jobs,
           "select string_agg(concat_ws(' ', q.queue, q.kind, q.state, q.priority, q.max_tries, "
           "q.unique_key, q.concurrency_key), E'\\n' order by j.old) from old_jobs j join "
           "queues.queue q on q.id = j.id");
    expect(c, all,
           "select count(*) from old_jobs j join queues.queue q on q.id = j.id where "
           "q.payload::jsonb = "
           "j.payload::jsonb and (q.run_after = j.run_after or q.run_after is null and j.run_after "
           "<= now())");

    /* the new queue does one job; a second run does not bring it back */
    pg_run(c, "set search_path = queues, pg_temp");
    core_settle(c);
    pg_run(c, "select complete_job('n', lease, version, seq) from claim('n', 1)");
    pg_run(c, "select push('new', '1')");
    pg_run(c, "set search_path = public, queues");
    assert_string_equal(say(c, "move", NULL, NULL), "");
    assert_non_null(strstr(say(c, "check", NULL, NULL), "completed 1"));
    expect(c, "0",
           "select count(*) from old_jobs j where not exists (select from "
           "queues.job_outcome(j.id))");
    assert_string_equal(say(c, "back", "river_job", s->table), "DELETE 1");
    expect(c, all, "select count(*) + 1 from old_jobs");

    /* the others leave the new queue; "back" once more takes none of them, and they can be moved */
    snprintf(moved, sizeof moved, "deleted %d", n - 1);
    assert_string_equal(say(c, "withdraw", NULL, NULL), moved);
    assert_string_equal(say(c, "withdraw", NULL, NULL), "");
    expect(c, "1", "select count(*) from queues.queue"); /* pushed to the new queue alone */
    assert_string_equal(say(c, "back", "river_job", s->table), "DELETE 0");
    snprintf(moved, sizeof moved, "t %d", n - 1);
    assert_string_equal(say(c, "move", NULL, NULL), moved);
    PQfinish(c);
}

static void
from_graphile_worker(void **state)
{
    (void)state;
    move(&(struct system){"graphile_worker", "graphile-worker", "graphile_worker._private_jobs",
                          "1 2 3 7 9",
                          "default send_email ready 5 25\n"
                          "default send_email scheduled 5 25 tomorrow\n"
                          "default send_email scheduled 5 22\n"
                          "default resize blocked 5 25 busy\n"
                          "default resize blocked 5 25 free",
                          NULL});
}

static void
from_pgboss(void **state)
{
    (void)state;
    move(&(struct system){
        "pgboss", "pg-boss", "pgboss.job", "001 002 003 009 00c 00f 101 102 103 104 105",
        "mail mail ready 5 3\n"
        "mail mail scheduled 0 3\n"
        "mail mail scheduled 5 1\n"
        "mail-dead mail-dead ready 5 3\n"
        "only-one only-one ready 5 3\n"
        "mail mail ready 5 3 k\n"
        "mail mail ready 5 3\n"
        "mail mail ready 5 3\n"
        "in-order in-order blocked 5 3 s\n"
        "in-order in-order blocked 5 3 s\n"
        "only-one only-one ready 5 3 u",
        /* a key is not unique in each policy; what is pg-boss' own stays */
        "insert into pgboss.job (name, id, singleton_key, policy) select v.name, "
        "('00000000-0000-4000-8000-000000000' || v.id)::uuid, v.key, v.policy "
        "from (values ('mail', '101', 's', 'standard'), "
        "('mail', '102', 's', 'standard'), "
        "('in-order', '103', 's', 'key_strict_fifo'), "
        "('in-order', '104', 's', 'key_strict_fifo'), "
        "('only-one', '105', 'u', 'short'), "
        "('__pgboss__send-it', '106', null, 'standard')) v (name, id, key, policy)"});
}

static void
from_river(void **state)
{
    (void)state;
    move(&(struct system){"river", "River", "river_job", "1 2 3 4 15 90",
                          "default send_mail ready 1 25\n"
                          "default send_mail ready 2 25\n"
                          "default report scheduled 1 25\n"
                          "mail send_mail scheduled 1 23\n"
                          "default sync ready 1 25 01\n"
                          "default sync ready 1 1",
                          /* its key is not unique in this state, and it has no try left */
                          "insert into river_job (id, state, kind, attempt, max_attempts, "
                          "unique_key, unique_states) values (90, 'available', 'sync', 3, 3, "
                          "'\\x01', b'00000000')"});
}

static void
from_oban(void **state)
{
    (void)state;
    move(&(struct system){"oban", "Oban", "oban_jobs", "1 2 3 4",
                          "default App.Mailer ready 0 20\n"
                          "mailers App.Mailer ready 3 20\n"
                          "default App.Report scheduled 0 20\n"
                          "mailers App.Mailer scheduled 0 18",
                          NULL});
}

static void
from_a_table_of_your_own(void **state)
{
    (void)state;
    move(&(struct system){"example_jobs", "a table of your own", "shop.jobs", "1 2 3",
                          "default mail ready 5 5\n"
                          "default mail scheduled 5 5\n"
                          "default mail scheduled 5 3",
                          NULL});
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_graphile_worker),
        cmocka_unit_test(from_pgboss),
        cmocka_unit_test(from_river),
        cmocka_unit_test(from_oban),
        cmocka_unit_test(from_a_table_of_your_own),
    };

    return cmocka_run_group_tests(tests, read_page, forget_page);
}
