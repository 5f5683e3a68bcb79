/*
 * Lost answers. Between program and server stands a proxy that passes everything on, until a
 * statement with a certain word has been carried out: then it breaks the connection in front of the
 * answer, once. What the program sends again must have happened exactly once.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault/queue_fixture.h"
#include "tests/fault/relay.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000 };

struct place {
    char dsn[400]; /* through the proxy */
    PGconn *conn;  /* past it */
    struct relay relay;
};

static void
enter(struct place *p, const char *name, const char *word)
{
    char direct[400];

    p->conn = queue_in_newdb(direct, name);
    relay_start(&p->relay, word);
    snprintf(p->dsn, sizeof p->dsn, "host=%s user=postgres dbname=%s", p->relay.dir, name);
}

static void
leave(struct place *p)
{
    PQfinish(p->conn);
    relay_stop(&p->relay);
}

static void
check(const struct place *p, const char *sql, const char *expected)
{
    assert_string_equal(pg_value(p->conn, "%s", sql), expected);
}

/* --- the tests --- */

static void
a_push_whose_answer_was_lost_is_one_push(void **state)
{
    struct place p;
    char *out, *err;

    (void)state;
    enter(&p, "push", "push_many(");
    assert_int_equal(proc_run(NULL, &out, &err, "-d \"%s\" push q --payload 1", p.dsn), 0);
    assert_int_equal(strlen(out), 37);
    out[36] = 0;
    check(&p, "select count(*) from queues.queue", "1");
    check(&p, "select id from queues.queue", out);
    assert_null(strstr(err, "already"));
    free(out);
    free(err);
    leave(&p);
}

/* Every answer to the push is lost, until it is given up; then its id is asked for. */
static void
a_push_that_is_given_up_is_asked_for(void **state)
{
    struct place p;
    char *out, *err;

    (void)state;
    enter(&p, "given_up", "*mark-of-the-payload");
    assert_int_equal(
        proc_run(NULL, &out, &err, "-d \"%s\" push q --payload '\"mark-of-the-payload\"'", p.dsn),
        0);
    assert_non_null(strstr(err, "asked by id: pushed"));
    assert_int_equal(strlen(out), 37);
    out[36] = 0;
    check(&p, "select count(*) from queues.queue", "1");
    check(&p, "select id from queues.queue", out);
    free(out);
    free(err);
    leave(&p);
}

static void
a_completion_whose_answer_was_lost_is_sent_again(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "complete", ".complete_and_claim(");
    pg_run(p.conn, "select queues.push('q')");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- true", p.dsn);
    proc_want(&w, "perhaps it was done");
    check(&p, "select state::text || tries || count(*) over () from queues.history", "completed11");
    check(&p, "select count(*) from queues.attempt", "0");
    pg_run(p.conn, "select queues.push('q')");
    pg_wait(p.conn, "select count(*) from queues.history", "2", WAIT_MS);
    kill(w.pid, SIGTERM);
    assert_int_equal(proc_wait(&w), 0);
    proc_want(&w, "0 lost");
    proc_done(&w);
    leave(&p);
}

static void
a_failure_whose_answer_was_lost_is_one_failure(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "fail", ".fail(");
    pg_run(p.conn, "select queues.set_queue(gen_random_uuid(), 'q', '{\"backoff_base\": \"1h\"}')");
    pg_run(p.conn, "select queues.push('q')");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'echo no >&2; exit 1'", p.dsn);
    proc_want(&w, "perhaps it was done");
    check(&p, "select state::text || tries || error from queues.queue", "retry1no (exit status 1)");
    check(&p, "select count(*) from queues.attempt", "1");
    proc_ends(&w);
    leave(&p);
}

static void
a_claim_whose_answer_was_lost_costs_no_try(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "claim", ".claim_or_wait(");
    pg_run(p.conn, "select queues.push('q', max_tries => 1)");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- true", p.dsn);
    proc_want(&w, "jobs given back of a claim whose answer was lost: 1");
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed1", WAIT_MS);
    check(&p, "select count(*) from queues.attempt", "0");
    proc_ends(&w);
    leave(&p);
}

/* A foreign queue knows no batch that is asked again: its guards make it harmless, and what can't
 * be told is said. */
static void
a_foreign_act_whose_answer_was_lost_is_told_as_such(void **state)
{
    struct place p;
    char *err;

    (void)state;
    enter(&p, "foreign", "update \"public\".tasks!rollback");
    pg_file(p.conn, "tests/adapters/tasks_table.sql");
    assert_int_equal(proc_run(NULL, NULL, &err,
                              "-d \"%s\" --adapter tasks_table requeue --state failed --yes",
                              p.dsn),
                     6);
    check(&p, "select count(*) from tasks where status = 'pending'", "4");
    assert_non_null(strstr(err, "nothing changed, 2 jobs left alone: perhaps changed by the batch "
                                "whose answer was lost"));
    free(err);
    leave(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_whose_answer_was_lost_is_one_push),
        cmocka_unit_test(a_push_that_is_given_up_is_asked_for),
        cmocka_unit_test(a_completion_whose_answer_was_lost_is_sent_again),
        cmocka_unit_test(a_failure_whose_answer_was_lost_is_one_failure),
        cmocka_unit_test(a_claim_whose_answer_was_lost_costs_no_try),
        cmocka_unit_test(a_foreign_act_whose_answer_was_lost_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
