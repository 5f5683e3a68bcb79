/*
 * What stands on a screen can be typed: ids by the 8 digits that lists show, the id of an action by
 * what the verb printed, and the audit says what was asked and what was there before.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/e2e/console.h"
#include "tests/proc.h"

static const char *const ids[] = {"018f0000-0000-7000-8000-0000aaaa0001",
                                  "018f0000-0000-7000-8000-0000aaaa0002",
                                  "018f1111-0000-7000-8000-0000bbbb0002"};

/* A verb ends with that exit code and says that: to standard output, a refusal to standard error.
 */
static void
verb(int code, const char *says, const char *words)
{
    proc_check(code, code == 0 ? says : NULL, code == 0 ? NULL : says, "%s \"%s\"", words,
               con_dsn());
}

/* Returns what the verb wrote to standard output, or to standard error: refusals, and how to undo
 * an action. The caller frees the text. */
static char *
said_by(int code, bool errors, const char *words)
{
    char *out, *err;

    assert_int_equal(proc_run(NULL, &out, &err, "%s \"%s\"", words, con_dsn()), code);
    free(errors ? out : err);
    return errors ? err : out;
}

static void
push_three(void)
{
    for (int i = 0; i < 3; i++)
        pg_run(con_db(), "insert into queue (id, queue) values ('%s', 'mail')", ids[i]);
}

static void
a_job_by_its_first_or_last_digits(void **state)
{
    (void)state;
    push_three();
    verb(0, ids[0], "job aaaa0001");
    verb(0, ids[2], "job 018f1111");
    verb(0, ids[2], "job BBBB0002");
    verb(2, "4 at least", "job 002");
    verb(1, "no job has \"99999999\"", "job 99999999");
    char *text = said_by(2, true, "job 018f0000");
    assert_non_null(strstr(text, "jobs have \"018f0000\""));
    assert_non_null(strstr(text, ids[0]));
    assert_non_null(strstr(text, ids[1]));
    assert_null(strstr(text, ids[2]));
    free(text);
}

static void
several_at_once_or_none(void **state)
{
    (void)state;
    push_three();
    verb(2, "jobs have \"0002\"", "cancel --id aaaa0001 --id 0002 --yes");
    assert_int_equal(con_count("true"), 3);
    pg_run(con_db(), "select schedule('test')"); /* the scheduler has seen the queue */
    verb(0, "2 jobs cancelled", "cancel --id aaaa0001 --id bbbb0002 --yes");
    assert_int_equal(con_count("id = '018f0000-0000-7000-8000-0000aaaa0002'"), 1);
    verb(0, "cancelled", "job aaaa0001"); /* what is finished is found, too */
}

/* The digits of an unfinished and of a finished job: neither is taken for the other. */
static void
a_finished_job_counts_too(void **state)
{
    (void)state;
    pg_run(con_db(), "insert into queue (id, queue) values ('%s', 'mail')", ids[0]);
    pg_run(con_db(), "select schedule('test')"); /* the scheduler has seen the queue */
    verb(0, "1 job cancelled", "cancel --id 018f0000 --yes");
    pg_run(con_db(), "insert into queue (id, queue) values ('%s', 'mail')", ids[1]);
    for (int i = 0; i < 2; i++) {
        char *text = said_by(2, true, i == 0 ? "job 018f0000" : "delete --id 018f0000 --yes");
        assert_non_null(strstr(text, "jobs have \"018f0000\""));
        assert_non_null(strstr(text, ids[0]));
        assert_non_null(strstr(text, ids[1]));
        free(text);
    }
    assert_int_equal(con_count("true"), 1);
    verb(0, "cancelled", "job aaaa0001");
}

/* More than a page of newer jobs have the digits elsewhere: in the name of their kind. */
static void
digits_in_other_texts(void **state)
{
    (void)state;
    push_three();
    pg_run(con_db(), "insert into queue (queue, kind) select 'mail', 'k-018f1111' "
                     "from generate_series(1, 1100)");
    verb(0, ids[2], "job 018f1111");
}

static void
an_action_as_the_verb_printed_it(void **state)
{
    (void)state;
    push_three();
    char *said = said_by(0, true, "cancel --queue mail --yes --expect 3"), words[80];
    assert_non_null(strstr(said, "takes it back"));
    char *undo = strstr(said, "queuetop undo ");
    assert_non_null(undo);
    undo[strlen("queuetop undo ") + 8] = 0;
    snprintf(words, sizeof words, "%s --yes", undo + strlen("queuetop "));
    verb(0, "3 rows ready again", words);
    assert_int_equal(con_count("state = 'ready'"), 3);
    free(said);
    verb(0, "ACTION", "audit");
    verb(1, "no action has \"00000000\"", "undo 00000000 --yes");
}

static void
the_audit_says_what_was_changed(void **state)
{
    (void)state;
    push_three();
    verb(0, "set", "queue mail --limit 4 --rate 10/min --yes");
    verb(0, "set", "queue mail --limit 7 --yes");
    verb(0, "1 job", "priority 1 --id aaaa0001 --yes");
    verb(0, "2 jobs", "priority 2 --id aaaa0002 --id bbbb0002 --yes");
    verb(0, "max_running 7, was 4", "audit");
    verb(0, "max_running 4, was none", "audit --json");
    verb(0, "rate 10/min, was none", "audit --json");
    verb(0, "\"change\": \"priority 1, was 5\"", "audit --json");
    verb(0, "\"change\": \"priority 2\"", "audit --json");
    char *json = said_by(0, false, "audit --json");
    assert_non_null(strstr(json, "\"params\": {"));
    assert_non_null(strstr(json, "\"max_running\": \"7\""));
    assert_non_null(strstr(json, "\"before\": {"));
    free(json);
}

static void
the_screen_says_it_too(void **state)
{
    struct vt vt;

    (void)state;
    push_three();
    verb(0, "set", "queue mail --limit 4 --yes");
    verb(0, "set", "queue mail --limit 7 --yes");
    con_start(&vt, 24, 140, NULL);
    vt_keys(&vt, "6");
    vt_want(&vt, "max_running 7, was 4");
    vt_keys(&vt, "f");
    vt_want(&vt, "\"max_running\": 4,");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_job_by_its_first_or_last_digits, con_empty),
        cmocka_unit_test_setup(several_at_once_or_none, con_empty),
        cmocka_unit_test_setup(a_finished_job_counts_too, con_empty),
        cmocka_unit_test_setup(digits_in_other_texts, con_empty),
        cmocka_unit_test_setup(an_action_as_the_verb_printed_it, con_empty),
        cmocka_unit_test_setup(the_audit_says_what_was_changed, con_empty),
        cmocka_unit_test_setup(the_screen_says_it_too, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
