/*
 * queuetop-moving(7): each statement of the page, as it stands there, on the tables of the system
 * that it is for, with jobs in every state. What waits is moved once, with what belongs to it; what
 * runs, has ended or has failed stays; and the way back takes what the new queue has done.
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
};

static void
move(const struct system *s)
{
    PGconn *c = pg_fixture(s->fixture, s->fixture);
    char moved[40], again[40], n[20];

    pg_run(c, "reset all");
    core_load(c, "queues");
    assert_string_equal(say(c, s->name, NULL, NULL), "CREATE VIEW");
    expect(c, s->waits, "select string_agg(right(old::text, 3), ' ' order by old) from old_jobs");
    snprintf(n, sizeof n, "%s", pg_value(c, "select count(*) from old_jobs"));
    snprintf(moved, sizeof moved, "t %s", n);
    snprintf(again, sizeof again, "f %s", n);
    assert_string_equal(say(c, "move", NULL, NULL), moved);
    assert_string_equal(say(c, "move", NULL, NULL), again);
    expect(c, s->jobs,
           "select string_agg(concat_ws(' ', q.queue, q.kind, q.state, q.priority, q.max_tries, "
           "q.unique_key, q.concurrency_key), E'\\n' order by j.old) from old_jobs j join "
           "queues.queue q on q.id = j.id");
    expect(c, n,
           "select count(*) from old_jobs j join queues.queue q on q.id = j.id where "
           "q.payload::jsonb = "
           "j.payload::jsonb and (q.run_after = j.run_after or q.run_after is null and j.run_after "
           "<= now())");

    /* the new queue does one job; a second run does not bring it back */
    pg_run(c, "set search_path = queues, pg_temp");
    core_settle(c);
    pg_run(c, "select complete_job('n', lease, version, seq) from claim('n', 1)");
    pg_run(c, "set search_path = public, queues");
    assert_string_equal(say(c, "move", NULL, NULL), again);
    assert_non_null(strstr(say(c, "check", NULL, NULL), "completed 1"));
    expect(c, "0",
           "select count(*) from old_jobs j where not exists (select from "
           "queues.job_outcome(j.id))");
    assert_string_equal(say(c, "back", "river_job", s->table), "DELETE 1");
    expect(c, n, "select count(*) + 1 from old_jobs");
    PQfinish(c);
}

static void
from_graphile_worker(void **state)
{
    (void)state;
    move(&(struct system){"graphile_worker", "graphile-worker", "graphile_worker._private_jobs",
                          "1 2 3 7 9",
                          "default send_email ready 0 25\n"
                          "default send_email scheduled 0 25 tomorrow\n"
                          "default send_email scheduled 0 22\n"
                          "default resize blocked 0 25 busy\n"
                          "default resize blocked 0 25 free"});
}

static void
from_pgboss(void **state)
{
    (void)state;
    move(&(struct system){"pgboss", "pg-boss", "pgboss.job", "001 002 003 009 00c 00f",
                          "mail mail ready 9 3\n"
                          "mail mail scheduled 4 3\n"
                          "mail mail scheduled 9 1\n"
                          "mail-dead mail-dead ready 9 3\n"
                          "only-one only-one ready 9 3\n"
                          "mail mail ready 9 3 k"});
}

static void
from_river(void **state)
{
    (void)state;
    move(&(struct system){"river", "River", "river_job", "1 2 3 4 15",
                          "default send_mail ready 1 25\n"
                          "default send_mail ready 2 25\n"
                          "default report scheduled 1 25\n"
                          "mail send_mail scheduled 1 23\n"
                          "default sync ready 1 25 01"});
}

static void
from_oban(void **state)
{
    (void)state;
    move(&(struct system){"oban", "Oban", "oban_jobs", "1 2 3 4",
                          "default App.Mailer ready 0 20\n"
                          "mailers App.Mailer ready 3 20\n"
                          "default App.Report scheduled 0 20\n"
                          "mailers App.Mailer scheduled 0 18"});
}

static void
from_a_table_of_your_own(void **state)
{
    (void)state;
    move(&(struct system){"example_jobs", "a table of your own", "shop.jobs", "1 2 3",
                          "default mail ready 5 5\n"
                          "default mail scheduled 5 5\n"
                          "default mail scheduled 5 3"});
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
