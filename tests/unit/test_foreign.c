/*
 * Actions on another queue system: no previews, no audit, no batch numbers. Changes are counted by
 * the rows that come back, tried in a transaction that is rolled back, and asked again without
 * harm.
 */
#include "tests/unit/act_fixture.h"

#include <stdio.h>
#include <string.h>

static const char system_text[] =
    "-- adapter: other\n-- title: Other\n-- format: 2\n-- schema: public\n-- id-type: bigint\n"
    "-- states: ready=available failed=dead running=busy completed=done\n"
    "-- name: detect\nselect 1\n"
    "-- name: queues\nselect 1\n"
    "-- name: counts\nselect 1\n"
    "-- name: job\n-- params: ids\nselect $1\n"
    "-- name: jobs\n-- params: queue raw_states ids limit cursor kind n\n"
    "select $1, $2, $3, $4, $5, $6, $7\n"
    "-- name: requeue\n-- params: ids\n-- official: no (plain SQL)\n-- guard: a running job\n"
    "-- confirm: it may run twice\n-- mode: signal\nselect $1\n"
    "-- name: rescue\n-- params: ids\nselect $1\n"
    "-- name: redrive\n-- params: ids\n-- official: redrive()\nselect $1\n"
    "-- name: release_where\n-- params: node\nselect $1\n"
    "-- name: priority\n-- params: ids n\n-- range: 1..4\nselect $1, $2\n"
    "-- name: terminate\n-- params: node\n-- requires: pg_signal_backend\n-- dry: no\nselect $1\n"
    "-- name: pause\n-- params: queue\n-- guard: paused already\nselect $1\n"
    "-- name: resume\n-- params: queue\n-- requires: version >= 1.10\nselect $1\n"
    "-- name: cron_run\n-- params: schedule\nselect $1\n"
    "-- name: schedules\n-- params: schedule\nselect $1\n"
    "-- name: purge\n-- params: queue raw_states before limit\nselect $1, $2, $3, $4\n"
    "-- name: purge_preview\n-- params: queue raw_states before\nselect $1, $2, $3\n";

static const char *const ids[] = {"3", "1", "2", "1"};

static int
set_up(void **state)
{
    static struct fixture f;
    struct err e = {0};

    struct adapter *a = adapter_parse("other.sql", system_text, &e);
    if (!a)
        fail_msg("%s", e.text);
    fixture_new(&f, a, "public");
    *state = &f;
    return 0;
}

#define CHANGES "id state"

static void
clock_only(struct fixture *f)
{
    struct result *clock[] = {fake_table("now_ms spent_us", "1763712000123|5", NULL)};

    fake_answer(f->db, clock);
}

/* The preview runs the act and rolls it back. The guard keeps the ids that do not come back. */
static void
test_trial(void **state)
{
    struct fixture *f = *state;
    struct buf record = {0};

    begin(f, &(struct intent){.act = ACT_REQUEUE,
                              .ids = ids,
                              .nids = 4,
                              .expected = -1,
                              .batch_size = 2,
                              .reason = "fixed"});
    clock_only(f);
    assert_true(asked(f)->dry);
    assert_string_equal(asked(f)->param[0][0], "{\"1\",\"2\"}"); /* each id once */
    batch(f, fake_table(CHANGES, "1|available", NULL));
    assert_int_equal(action_state(f->action), ACTION_PREVIEWING);
    wait_asked(f);
    assert_true(asked(f)->dry);
    assert_string_equal(action_busy(f->action), "trying it, to be rolled back: 2 of 3");
    batch(f, fake_table(CHANGES, "3|available", NULL));
    assert_int_equal(action_state(f->action), ACTION_READY);
    assert_string_equal(action_what(f->action),
                        "2 jobs → available\n1 job left alone: requeue takes a running job");
    assert_string_equal(action_notes(f->action),
                        "! it may run twice\n! unofficial: Other has no call for this (plain SQL)\n"
                        "takes effect when its workers see it");
    assert_int_equal(action_confirm(f->action, false), CONFIRM_TYPE);
    assert_string_equal(action_challenge(f->action), "2");
    assert_string_equal(action_undo(f->action),
                        "none from here: this system keeps no record of it");
    assert_false(action_audited(f->action));
    assert_non_null(strstr(action_sql(f->action), "-- $1 ids = {\"1\",\"2\"}"));

    action_start(f->action, false);
    assert_false(asked(f)->dry);
    batch(f, fake_table(CHANGES, "1|available", "2|available", NULL));
    wait_asked(f);
    assert_string_equal(asked(f)->param[0][0], "{\"3\"}");
    batch(f, fake_table(CHANGES, NULL));
    assert_int_equal(action_state(f->action), ACTION_DONE);
    assert_string_equal(action_summary(f->action),
                        "2 jobs available, 1 job left alone: requeue takes a running job; "
                        "not audited by this system");
    assert_int_equal(action_exit_code(f->action), 0);
    action_record(f->action, &record);
    assert_string_equal(record.data,
                        "requeue by anna on local/fake: 3 jobs by id; counted at 08:00:00 UTC: "
                        "2 jobs available, 1 job left alone: requeue takes a running job; "
                        "not audited by this system; reason: fixed");
    buf_free(&record);
}

/* An act on one thing is tried by one statement. If the act can't be tried, it is assumed to
 * work. */
static void
test_one_thing(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_PAUSE, .queue = "mail", .expected = -1});
    clock_only(f);
    assert_true(asked(f)->dry);
    batch(f, fake_table(CHANGES, NULL));
    assert_string_equal(action_what(f->action), "nothing to change: pause takes paused already");
    assert_string_equal(action_summary(f->action), action_what(f->action));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_NOTHING);
    action_free(f->action);

    begin(f, &(struct intent){.act = ACT_TERMINATE, .node = "w1", .expected = -1});
    clock_only(f);
    assert_int_equal(action_state(f->action), ACTION_READY); /* no further call */
    assert_string_equal(action_what(f->action), "1 session → ended");
    assert_string_equal(action_notes(f->action),
                        "! it can't be tried beforehand: what it changes is assumed");
    assert_int_equal(action_confirm(f->action, false), CONFIRM_TYPE);
    assert_string_equal(action_challenge(f->action), "w1");
    action_start(f->action, false);
    batch(f, fake_table(CHANGES, "71|ended", "72|ended", NULL));
    assert_string_equal(action_summary(f->action), "2 sessions ended; not audited by this system");
}

/* A unique index makes a whole batch fail. The batch is halved until the one job in the way is
 * found. */
static void
test_duplicates(void **state)
{
    struct fixture *f = *state;
    static const char *const four[] = {"1", "2", "3", "4"};

    begin(f, &(struct intent){.act = ACT_REDRIVE, .ids = four, .nids = 4, .expected = -1});
    clock_only(f);
    batch(f, fake_table(CHANGES, "1|x", "2|x", "3|x", "4|x", NULL));
    assert_string_equal(action_notes(f->action), "as the system's own: redrive()");
    assert_int_equal(action_confirm(f->action, false), CONFIRM_DIALOG);
    action_start(f->action, false);
    static const struct {
        const char *asked, *row; /* row NULL = 23505 */
    } story[] = {
        {"{\"1\",\"2\",\"3\",\"4\"}", NULL },
        {"{\"1\",\"2\"}",             NULL },
        {"{\"1\"}",                   "1|x"},
        {"{\"2\",\"3\"}",             NULL },
        {"{\"2\"}",                   NULL }, /* this job is in the way */
        {"{\"3\"}",                   "3|x"},
        {"{\"4\"}",                   "4|x"},
    };
    for (size_t i = 0; i < sizeof story / sizeof *story; i++) {
        wait_asked(f);
        assert_string_equal(asked(f)->param[0][0], story[i].asked);
        if (story[i].row)
            batch(f, fake_table(CHANGES, story[i].row, NULL));
        else
            fake_fail(f->db, ERR_SQL, "23505", false);
    }
    assert_int_equal(action_state(f->action), ACTION_DONE);
    assert_string_equal(action_summary(f->action),
                        "3 jobs x, 1 job left alone: another live job has the same unique key "
                        "(index live_key); not audited by this system");
    action_free(f->action);

    begin(f, &(struct intent){.act = ACT_REDRIVE, .ids = four, .nids = 2, .expected = -1});
    clock_only(f);
    fake_fail(f->db, ERR_SQL, "23505", false);
    wait_asked(f);
    batch(f, fake_table(CHANGES, "1|x", NULL));
    wait_asked(f);
    batch(f, fake_table(CHANGES, "2|x", NULL));
    assert_string_equal(action_notes(f->action),
                        "as the system's own: redrive()\n"
                        "! of jobs that share a unique key only one changes");
}

/* After a lost answer the batch is asked again. Jobs that do not come back may have been changed by
 * the first attempt. */
static void
test_lost_answer(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REDRIVE, .ids = ids, .nids = 3, .expected = -1});
    clock_only(f);
    batch(f, fake_table(CHANGES, "1|x", "2|x", "3|x", NULL));
    action_start(f->action, false);
    fake_fail(f->db, ERR_CONN, "", true);
    assert_int_equal(action_state(f->action), ACTION_WAITING);
    wait_asked(f);
    assert_string_equal(asked(f)->param[0][0], "{\"1\",\"2\",\"3\"}");
    batch(f, fake_table(CHANGES, NULL));
    assert_string_equal(action_summary(f->action),
                        "nothing changed, 3 jobs left alone: perhaps changed by the batch whose "
                        "answer was lost; an answer was lost and its batch done again: rows left "
                        "alone there may have been changed by it; not audited by this system");
    assert_int_equal(action_exit_code(f->action), 6);
    action_free(f->action);

    /* lost before the end of the transaction: the first attempt changed nothing */
    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 1, .expected = -1});
    clock_only(f);
    batch(f, fake_table(CHANGES, "3|x", NULL));
    action_start(f->action, false);
    fake_fail(f->db, ERR_CONN, "", false);
    wait_asked(f);
    batch(f, fake_table(CHANGES, NULL));
    assert_string_equal(action_summary(f->action),
                        "nothing changed: requeue takes a running job; not audited by this system");
    assert_int_equal(action_exit_code(f->action), 1);
    action_free(f->action);

    /* an act without a guard is not repeated */
    begin(f, &(struct intent){.act = ACT_CRON_RUN, .schedule = "nightly", .expected = -1});
    clock_only(f);
    batch(f, fake_table(CHANGES, "nightly|run", NULL));
    action_start(f->action, false);
    fake_fail(f->db, ERR_CONN, "", true);
    assert_int_equal(action_state(f->action), ACTION_DOUBTFUL);
    assert_null(strstr(action_summary(f->action), "audit under"));
    assert_int_equal(action_exit_code(f->action), 6);
}

/* With a filter, the ids are listed first, by the terms of the job list and in the system's own
 * states. */
static void
test_gathering(void **state)
{
    struct fixture *f = *state;
    struct params where = {0};

    params_set(&where, PARAM_QUEUE, "mail");
    begin(f, &(struct intent){.act = ACT_REQUEUE, .where = &where, .expected = -1});
    clock_only(f);
#define JOBS "id queue kind state tries created_ms error cursor"
    assert_string_equal(asked(f)->param[0][0], "mail");
    assert_string_equal(asked(f)->param[0][1], "{\"dead\"}");
    struct result *page[] = {fake_table(JOBS, "7|mail||failed|1|1|x|c1", "||||0|0||c2", NULL)};
    fake_answer(f->db, page);
    assert_string_equal(action_busy(f->action), "looking for the jobs that match: 1 so far");
    assert_string_equal(asked(f)->param[0][4], "c2");
    struct result *more[] = {fake_table(JOBS, "5|mail||failed|1|1|x|c3", NULL)};
    fake_answer(f->db, more);
    assert_string_equal(asked(f)->param[0][0], "{\"5\",\"7\"}");
    batch(f, fake_table(CHANGES, "5|x", "7|x", NULL));
    assert_int_equal(action_state(f->action), ACTION_READY);
    action_free(f->action);

    /* release with a filter: the running jobs */
    begin(f, &(struct intent){.act = ACT_RELEASE, .where = &where, .expected = -1});
    clock_only(f);
    assert_string_equal(asked(f)->param[0][1], "{\"busy\"}");
    struct result *none[] = {fake_table(JOBS, NULL)};
    fake_answer(f->db, none);
    assert_string_equal(action_what(f->action), "nothing matches");
    action_free(f->action);

    params_set(&where, PARAM_KIND, "k");
    begin(f, &(struct intent){.act = ACT_REQUEUE, .where = &where, .expected = -1});
    clock_only(f);
    struct result *one[] = {fake_table(JOBS, "7|mail||failed|1|1|x|c1", NULL)};
    fake_answer(f->db, one);
    batch(f, fake_table(CHANGES, "7|x", NULL));
    assert_non_null(strstr(action_notes(f->action), "! kind was looked for among the newest jobs"));
    action_free(f->action);

    params_set(&where, PARAM_ERROR, "boom");
    begin(f, &(struct intent){.act = ACT_REQUEUE, .where = &where, .expected = -1});
    assert_string_equal(action_summary(f->action), "refused: Other can't filter by error");
    params_done(&where);
}

/* Finished jobs are purged in full batches, until a batch is not full. */
static void
test_purge(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_PURGE, .queue = "mail", .expected = -1, .batch_size = 2});
    clock_only(f);
    assert_string_equal(asked(f)->param[0][1], "{\"done\"}");
    batch(f, fake_table("state n why", "purged|3|~", NULL));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_TYPE);
    action_start(f->action, false);
    assert_string_equal(asked(f)->param[0][3], "2");
    batch(f, fake_table(CHANGES, "1|purged", "2|purged", NULL));
    wait_asked(f);
    batch(f, fake_table(CHANGES, "3|purged", NULL));
    assert_string_equal(action_summary(f->action), "3 jobs purged; not audited by this system");
}

/* Release by node and release by id have their own sections. A wish without a parameter is
 * rejected. */
static void
test_wishes(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_RELEASE, .ids = ids, .nids = 1, .expected = -1});
    clock_only(f);
    assert_string_equal(asked(f)->sql[0], adapter_sql(f->adapter, SEC_RESCUE));
    batch(f, fake_table(CHANGES, "3|x", NULL));
    assert_string_equal(action_where(f->action), "1 job by id; counted at 08:00:00 UTC");
    assert_string_equal(action_title(f->action), "Give back a running job");
    action_free(f->action);

    begin(f, &(struct intent){.act = ACT_RELEASE, .node = "w1", .expected = -1});
    clock_only(f);
    assert_string_equal(asked(f)->sql[0], adapter_sql(f->adapter, SEC_RELEASE_WHERE));
    batch(f, fake_table(CHANGES, "1|x", NULL));
    assert_string_equal(action_where(f->action),
                        "node w1, all its leases; counted at 08:00:00 UTC");
    assert_non_null(strstr(action_notes(f->action), "can't tell expired leases from others"));
    action_free(f->action);

    static const struct {
        struct intent intent;
        const char *said;
    } refused[] = {
        {{.act = ACT_REQUEUE, .reset = true},    "refused: Other can't start the tries of a job over"},
        {{.act = ACT_REQUEUE, .by_ms = 1000},    "refused: Other can't spread a requeue over a time" },
        {{.act = ACT_PRIORITY, .priority = "5"}, "refused: a priority is 1 to 4 here, not \"5\""     },
        {{.act = ACT_CANCEL},                    "refused: Other has no action \"cancel\""           },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct intent in = refused[i].intent;
        in.ids = ids;
        in.nids = 1;
        in.expected = -1;
        begin(f, &in);
        assert_string_equal(action_summary(f->action), refused[i].said);
        assert_int_equal(action_exit_code(f->action), 3);
        action_free(f->action);
        f->action = NULL;
    }
}

static void
test_why_not(void **state)
{
    struct fixture *f = *state;
    struct role_row role = {.role = "owner", .can_act = 1, .why = "", .signals = 0};

    assert_string_equal(act_why_not(ACT_CANCEL, f->adapter, &role),
                        "this queue system has no such action");
    assert_null(act_why_not(ACT_REQUEUE, f->adapter, &role));
    adapter_judge(f->adapter, "1.9", &role);
    assert_non_null(strstr(act_why_not(ACT_TERMINATE, f->adapter, &role), "pg_signal_backend"));
    assert_non_null(strstr(act_why_not(ACT_RESUME, f->adapter, &role), "this version"));
    begin(f, &(struct intent){.act = ACT_RESUME, .queue = "mail", .expected = -1});
    assert_string_equal(action_summary(f->action),
                        "refused: Other: this version of the queue system can't do that");
    role.signals = 1;
    adapter_judge(f->adapter, "1.10", &role);
    assert_null(act_why_not(ACT_TERMINATE, f->adapter, &role));
    assert_null(act_why_not(ACT_RESUME, f->adapter, &role));
}

/* Stopped during the trial: nothing was changed, and the late answer changes nothing. */
static void
test_stopped_early(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 1, .expected = -1});
    clock_only(f);
    action_stop(f->action);
    batch(f, fake_table(CHANGES, "3|x", NULL));
    assert_int_equal(action_state(f->action), ACTION_STOPPED);
    assert_string_equal(action_summary(f->action), "nothing was done");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_trial, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_thing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_duplicates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gathering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_purge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wishes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_why_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stopped_early, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
