/*
 * Actions against a scripted connection: which statements are asked in which order, and how actions
 * react to lost answers, locks, refusals and stops.
 */
#include "tests/unit/act_fixture.h"

#include "model/action/canary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const ids[] = {"a", "b", "c"};

static int
set_up(void **state)
{
    static struct fixture f;
    struct err e;

    fixture_new(&f, adapter_load("native", &e), "queues");
    *state = &f;
    return 0;
}

static void
test_ids(void **state)
{
    struct fixture *f = *state;
    int n;

    begin(f, &(struct intent){
                 .act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1, .batch_size = 2});
    assert_int_equal(action_state(f->action), ACTION_PREVIEWING);
    assert_true(asked(f)->dry);
    preview(f, fake_table(EFFECTS, "ready|2|~", "~|1|running", NULL));
    assert_int_equal(action_state(f->action), ACTION_READY);
    assert_int_equal(action_count(f->action), 2);
    assert_int_equal(action_skips(f->action), 1);
    assert_string_equal(action_what(f->action), "2 jobs → ready\n1 job left alone: running");
    assert_string_equal(action_where(f->action), "3 jobs by id; counted at 08:00:00 UTC");
    assert_int_equal(action_confirm(f->action, false), CONFIRM_DIALOG);
    assert_int_equal(action_confirm(f->action, true), CONFIRM_TYPE);
    assert_string_equal(action_challenge(f->action), "2");
    assert_int_equal(action_exit_code(f->action), 0);

    action_start(f->action, false);
    assert_false(asked(f)->dry);
    assert_string_equal(asked(f)->param[0][0], action_id(f->action));
    assert_string_equal(asked(f)->param[0][1], "1");
    assert_string_equal(asked(f)->param[0][2], "{\"a\",\"b\"}");
    batch(f, fake_table(ROWS, "a|ready|~|~|1", "b|~|running|~|1", NULL));
    wait_asked(f);
    assert_string_equal(asked(f)->param[0][1], "2");
    assert_string_equal(asked(f)->param[0][2], "{\"c\"}");
    batch(f, fake_table(ROWS, "c|ready|~|~|1", NULL));
    assert_int_equal(action_state(f->action), ACTION_DONE);
    assert_string_equal(action_summary(f->action), "2 jobs ready, 1 job left alone: 1 running");
    assert_int_equal(action_exit_code(f->action), 0);
    action_outcome(f->action, &n);
    assert_int_equal(n, 2);
    assert_int_equal(action_progress(f->action).changed, 2);
}

static void
test_predicate(void **state)
{
    struct fixture *f = *state;
    struct params where = {0};

    params_set(&where, PARAM_QUEUE, "mail");
    params_set(&where, PARAM_ERROR, "timeout");
    begin(f, &(struct intent){.act = ACT_REQUEUE, .where = &where, .expected = -1});
    params_done(&where);
    preview(f, fake_table(EFFECTS, "ready|402|~", NULL));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_TYPE);
    assert_string_equal(action_challenge(f->action), "402");
    assert_string_equal(
        action_where(f->action),
        "queue mail, state failed, error like \"timeout\"; counted at 08:00:00 UTC");
    action_hold_count(f->action);
    action_start(f->action, false);
    const struct fake_call *c = asked(f);
    assert_string_equal(c->param[0][2], "mail");
    assert_string_equal(c->param[0][3], "{\"failed\"}");
    assert_string_equal(c->param[0][5], "timeout");
    assert_string_equal(c->param[0][6], "2025-11-21 08:00:00.123+00");
    assert_null(c->param[0][8]);
    assert_string_equal(c->param[0][9], "402");
    batch(f, fake_table(ROWS, "a|ready|~|c1|1", NULL));
    wait_asked(f);
    assert_string_equal(asked(f)->param[0][8], "c1");
    batch(f, fake_table(ROWS, "b|ready|~|~|401", NULL));
    assert_int_equal(action_state(f->action), ACTION_DONE);
    assert_int_equal(action_progress(f->action).changed, 402);
}

/* The user may have typed "02:30": the question says which day that is, and in which zone. */
static void
test_due(void **state)
{
    struct fixture *f = *state;

    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    begin(f, &(struct intent){
                 .act = ACT_TIME, .ids = ids, .nids = 3, .at_ms = 1774830600000, .expected = -1});
    preview(f, fake_table(EFFECTS, "scheduled|3|~", NULL));
    assert_string_equal(action_these(f->action), "3 jobs by id, due 2026-03-30 02:30 CEST");
    action_free(f->action);

    begin(f, &(struct intent){
                 .act = ACT_TIME, .ids = ids, .nids = 3, .by_ms = 7200000, .expected = -1});
    preview(f, fake_table(EFFECTS, "scheduled|3|~", NULL));
    assert_string_equal(action_these(f->action), "3 jobs by id, due 2025-11-21 11:00 CET");
    action_free(f->action);

    begin(f, &(struct intent){.act = ACT_TIME, .ids = ids, .nids = 3, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    assert_string_equal(action_these(f->action), "3 jobs by id");
}

/* After a reconnection the schema may hold another queue: no batch is sent to that queue. */
static void
test_moved(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};

    begin(f, &(struct intent){
                 .act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1, .batch_size = 2});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    action_start(f->action, false);
    assert_true(adapter_use(f->adapter, "queues", &e)); /* the same schema is no change */
    batch(f, fake_table(ROWS, "a|ready|~|~|1", "b|ready|~|~|1", NULL));
    assert_true(adapter_use(f->adapter, "others", &e));
    while (action_state(f->action) == ACTION_RUNNING)
        assert_true(loop_turn(f->loop, 1000, &e));
    assert_int_equal(action_state(f->action), ACTION_FAILED);
    assert_int_equal(f->db->next, f->db->n);
    assert_non_null(strstr(action_summary(f->action), "the schema holds another queue now"));
    assert_non_null(strstr(action_summary(f->action), "done before: 2 jobs ready"));
}

/* The filter has a term that requeue_where has no parameter for: the ids are looked up first. */
static void
test_gathering(void **state)
{
    struct fixture *f = *state;
    struct filter filter;
    struct err e = {0};

    assert_true(filter_parse("queue:mail boom", &filter, NULL, &e));
    begin(f, &(struct intent){.act = ACT_REQUEUE, .where = &filter.terms, .expected = -1});
    filter_done(&filter);
    struct result *clock[] = {fake_table("now_ms spent_us", "1763712000123|5", NULL)};
    fake_answer(f->db, clock);
#define JOBS "id queue kind state tries created_ms error cursor"
    struct result *page[] = {fake_table(JOBS, "a|mail||failed|1|1|x|c1", "||||0|0||c2", NULL)};
    assert_string_equal(asked(f)->param[0][5], "{\"boom\"}");
    fake_answer(f->db, page);
    assert_string_equal(asked(f)->param[0][14], "c2");
    struct result *more[] = {fake_table(JOBS, "b|mail||failed|1|1|x|c3", NULL)};
    fake_answer(f->db, more);
    assert_string_equal(asked(f)->param[0][0], "{\"a\",\"b\"}");
    struct result *effects[] = {fake_table(EFFECTS, "ready|2|~", NULL)};
    fake_answer(f->db, effects);
    assert_int_equal(action_state(f->action), ACTION_READY);
    action_start(f->action, false);
    assert_string_equal(asked(f)->param[0][2], "{\"a\",\"b\"}");
    batch(f, fake_table(ROWS, "a|ready|~|~|1", "b|ready|~|~|1", NULL));
    assert_int_equal(action_state(f->action), ACTION_DONE);
}

/* The action sends the same (action, batch) again after a lost answer, a lock that was not free,
 * and a deadlock. */
static void
test_asks_again(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum err_kind kind;
        const char *sqlstate;
        bool in_doubt;
    } trouble[] = {
        {ERR_CONN, "", true}, /* clang-format off */
        {ERR_CONN,    "",      false},
        {ERR_TIMEOUT, "55P03", false},
        {ERR_SQL,     "40P01", false},
    }; /* clang-format on */

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 1, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|1|~", NULL));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_KEY);
    action_start(f->action, false);
    for (size_t i = 0; i < sizeof trouble / sizeof *trouble; i++) {
        fake_fail(f->db, trouble[i].kind, trouble[i].sqlstate, trouble[i].in_doubt);
        assert_int_equal(action_state(f->action), i < 2 ? ACTION_WAITING : ACTION_RUNNING);
        if (!strcmp(trouble[i].sqlstate, "55P03")) { /* asks who holds the lock */
            assert_string_equal(action_waits(f->action), "waits for a lock");
            assert_string_equal(asked(f)->param[0][0], "queues");
            batch(f, fake_table(EFFECTS, "waits|1|pid 7", NULL));
            assert_string_equal(action_waits(f->action), "waits for a lock: pid 7");
        }
        wait_asked(f);
        assert_string_equal(asked(f)->param[0][0], action_id(f->action));
        assert_string_equal(asked(f)->param[0][1], "1");
    }
    batch(f, fake_table(ROWS, "a|ready|~|~|1", NULL));
    assert_int_equal(action_state(f->action), ACTION_DONE);
    assert_int_equal(action_error(f->action)->kind, ERR_NONE);
    assert_null(action_waits(f->action));
}

static void
test_doubt(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 1, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|1|~", NULL));
    action_start(f->action, false);
    fake_fail(f->db, ERR_CONN, "", true);
    action_stop(f->action);
    assert_int_equal(action_state(f->action), ACTION_DOUBTFUL);
    assert_non_null(strstr(action_summary(f->action), action_id(f->action)));
    assert_int_equal(action_exit_code(f->action), 6);
    action_free(f->action);

    /* the address leads to another database when the batch is asked again */
    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 1, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|1|~", NULL));
    action_start(f->action, false);
    fake_fail(f->db, ERR_CONN, "", true);
    wait_asked(f);
    fake_fail(f->db, ERR_DENIED, "", false);
    assert_int_equal(action_state(f->action), ACTION_DOUBTFUL);
    assert_int_equal(action_exit_code(f->action), 6);
}

static void
test_refusals(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = 2});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    assert_int_equal(action_state(f->action), ACTION_REFUSED);
    assert_int_equal(action_exit_code(f->action), 3);
    assert_non_null(strstr(action_summary(f->action), "expected 2, would change 3"));
    action_free(f->action);

    begin(f, &(struct intent){.act = ACT_PURGE, .queue = "q", .expected = -1});
    preview(f, fake_table(EFFECTS, "purged|3|~", NULL));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_TYPE);
    action_start(f->action, false);
    fake_fail(f->db, ERR_REFUSED, "QT005", false);
    assert_int_equal(action_state(f->action), ACTION_REFUSED);
    action_free(f->action);

    begin(f, &(struct intent){
                 .act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1, .batch_size = 1});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    action_start(f->action, false);
    batch(f, fake_table(ROWS, "a|ready|~|~|1", NULL));
    wait_asked(f);
    fake_fail(f->db, ERR_SQL, "XX000", false);
    assert_int_equal(action_state(f->action), ACTION_FAILED);
    assert_int_equal(action_exit_code(f->action), 6);
    action_free(f->action);

    begin(f, &(struct intent){.act = ACT_RELEASE, .ids = ids, .nids = 3, .expected = -1});
    assert_int_equal(action_state(f->action), ACTION_REFUSED);
}

static void
test_nothing(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .queue = "q", .expected = -1});
    preview(f, fake_table(EFFECTS, NULL));
    batch(f, fake_table("setting", "paused", NULL)); /* the queue is known */
    assert_int_equal(action_confirm(f->action, true), CONFIRM_NOTHING);
    assert_int_equal(action_exit_code(f->action), 1);
    assert_string_equal(action_what(f->action), "nothing matches");
}

static void
test_unknown_queue(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .queue = "q", .expected = -1});
    preview(f, fake_table(EFFECTS, NULL));
    batch(f, fake_table("setting", NULL));
    assert_int_equal(action_confirm(f->action, true), CONFIRM_NOTHING);
    assert_int_equal(action_exit_code(f->action), 1);
    assert_string_equal(action_what(f->action), "no job was ever seen in queue \"q\"");
}

/* The preview's count is of all jobs, and each of several batches has only some of the jobs. So no
 * batch gets the expected count. */
static void
test_count_of_ids(void **state)
{
    struct fixture *f = *state;
    struct intent extend = {
        .act = ACT_EXTEND, .ids = ids, .nids = 3, .by_ms = 1000, .expected = 3, .batch_size = 2};

    begin(f, &extend);
    preview(f, fake_table(EFFECTS, "extended|3|~", NULL));
    assert_false(action_can_hold_count(f->action));
    action_start(f->action, false);
    assert_string_equal(asked(f)->param[0][2], "{\"a\",\"b\"}");
    assert_null(asked(f)->param[0][4]);
    batch(f, fake_table(ROWS, "a|extended|~|~|1", "b|extended|~|~|1", NULL));
    wait_asked(f);
    assert_null(asked(f)->param[0][4]);
    batch(f, fake_table(ROWS, "c|extended|~|~|1", NULL));
    assert_int_equal(action_state(f->action), ACTION_DONE);
}

static void
test_stop(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){
                 .act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1, .batch_size = 1});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    action_start(f->action, false);
    action_stop(f->action);
    assert_int_equal(action_state(f->action), ACTION_RUNNING);
    batch(f, fake_table(ROWS, "a|ready|~|~|1", NULL));
    assert_int_equal(action_state(f->action), ACTION_STOPPED);
    assert_int_equal(action_exit_code(f->action), 6);
    assert_string_equal(action_summary(f->action), "1 job ready; stopped before the rest");
}

#define NODES "node state heartbeat_ms running leases expired session_alive"

static void
release(struct fixture *f, const char *node, bool all)
{
    struct result *clock[] = {fake_table("now_ms spent_us", "1763712000123|5", NULL)};
    struct result *tables[] = {fake_table(EFFECTS, "retry|7|~", "failed|1|last try", NULL),
                               fake_table(NODES, "other|up|1|1|1|0|~", node, NULL)};

    begin(f, &(struct intent){.act = ACT_RELEASE, .node = "w1", .all_leases = all, .expected = -1});
    fake_answer(f->db, clock);
    fake_answer(f->db, tables);
    assert_int_equal(action_state(f->action), ACTION_READY);
}

static void
test_release_of_the_living(void **state)
{
    struct fixture *f = *state;

    release(f, "w1|late|5|8|2|1|~", false);
    assert_true(action_looks_alive(f->action));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_TYPE);
    assert_string_equal(action_challenge(f->action), "w1");
    assert_string_equal(action_evidence(f->action)->state, "late");
    action_start(f->action, true);
    assert_string_equal(asked(f)->param[0][2], "w1");
    assert_string_equal(asked(f)->param[0][3], "true");
    assert_string_equal(asked(f)->param[0][6], "true");
    batch(f, fake_table(ROWS, "a|retry|~|~|1", NULL));
    action_free(f->action);

    release(f, "w1|dead|5|8|2|2|f", true);
    assert_false(action_looks_alive(f->action));
    assert_int_equal(action_confirm(f->action, false), CONFIRM_DIALOG);
    assert_string_equal(action_what(f->action), "7 jobs → retry\n1 job → failed (last try)");
    assert_false(action_takes_held(f->action));
    action_free(f->action);
    release(f, "w1|dead|5|8|2|1|f", true); /* dead, but a lease is valid: shown, not rejected */
    assert_false(action_looks_alive(f->action));
    assert_true(action_takes_held(f->action));
    action_free(f->action);
    release(f, "w1|unknown|5|8|2|1|f", true); /* never registered: there is only the lease */
    assert_true(action_looks_alive(f->action));
    action_free(f->action);
    release(f, "w1|dead|5|8|2|2|t", false);
    assert_true(action_looks_alive(f->action));
}

/* Somebody has deleted the jobs of a lease: what ends then is a lease, not a job. */
static void
test_release_of_a_hollow_lease(void **state)
{
    struct fixture *f = *state;
    struct result *clock[] = {fake_table("now_ms spent_us", "1763712000123|5", NULL)};
    struct result *tables[] = {
        fake_table(EFFECTS, "ready|7|~", "ended|1|lease without a job", NULL),
        fake_table(NODES, "w1|dead|9|8|2|2|f", NULL)};

    begin(f, &(struct intent){.act = ACT_RELEASE, .node = "w1", .expected = -1});
    fake_answer(f->db, clock);
    fake_answer(f->db, tables);
    assert_string_equal(action_what(f->action),
                        "7 jobs → ready\n1 lease → ended (lease without a job)");
    assert_int_equal(action_count(f->action), 8);
    assert_int_equal(action_hollow(f->action), 1);
    action_start(f->action, false);
    batch(f, fake_table(ROWS, "a|ready|~|~|7", "9|ended|lease without a job|~|1", NULL));
    assert_string_equal(action_summary(f->action), "7 jobs ready, 1 lease ended");
}

/* If the count took long, the action first counts again and reports that. Then the first batch is
 * small. Batches grow while they are quick, and shrink when they are slow. */
static void
test_pace_of_a_purge(void **state)
{
    static const struct {
        int64_t took_us;
        const char *rows; /* of the next batch */
    } steps[] = {
        {3000000, "1000"}, /* the first batch includes the count */
        {1000, "2000"},    {1000, "4000"}, {300000, "4000"},
        {1000, "5000"},    {1000, "5000"}, {2000000, "2500"},
    };
    struct fixture *f = *state;

    f->db->took_us = 2100000;
    begin(f, &(struct intent){.act = ACT_PURGE, .older_than_ms = 60000, .expected = -1});
    preview(f, fake_table(EFFECTS, "purged|1000000|completed", NULL));
    action_hold_count(f->action);
    action_start(f->action, false);
    assert_string_equal(action_waits(f->action),
                        "counts again whether the number is unchanged: about 3 s");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        f->db->took_us = steps[i].took_us;
        batch(f, fake_table(ROWS, "mail|purged|completed|c|900", NULL));
        assert_null(action_waits(f->action));
        wait_asked(f);
        assert_string_equal(asked(f)->param[0][5], steps[i].rows);
    }
}

/* The action is freed while a batch is out: nobody gets the answer, and nothing leaks. */
static void
test_freed_early(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    action_start(f->action, false);
    action_free(f->action);
    f->action = NULL;
    batch(f, fake_table(ROWS, "a|ready|~|~|1", NULL));
}

static void
test_why_not(void **state)
{
    struct fixture *f = *state;
    struct role_row viewer = {.role = "viewer", .can_act = 0, .why = "only looking"};
    struct role_row operator_ = {.role = "operator", .can_act = 1, .why = ""};

    for (int act = 0; act < ACT_COUNT; act++) {
        if (act == ACT_REDRIVE || act == ACT_TERMINATE) {
            assert_string_equal(act_why_not((enum act)act, f->adapter, &operator_),
                                "this queue system has no such action");
            continue;
        }
        assert_string_equal(act_why_not((enum act)act, f->adapter, &viewer), "only looking");
        assert_null(act_why_not((enum act)act, f->adapter, &operator_));
    }
}

/* --- a canary: some jobs first ------------------------------------------------------------------ */

static void
test_canary_places(void **state)
{
    int64_t at[12];

    (void)state;
    assert_int_equal(canary_places(4000, 10, at), 10);
    assert_int_equal(at[0], 0);
    assert_int_equal(at[1], 444);
    assert_int_equal(at[9], 3999);
    assert_int_equal(canary_places(3, 10, at), 3); /* too few jobs: each is chosen once */
    assert_true(at[0] == 0 && at[1] == 1 && at[2] == 2);
    assert_int_equal(canary_places(11, 10, at), 10);
    for (int i = 1; i < 10; i++)
        assert_true(at[i] > at[i - 1]);
    assert_int_equal(canary_places(5, 1, at), 1);
    assert_int_equal(canary_places(0, 10, at), 0);
}

/* Each letter of states is one job: D done, F failed, x failed with another error, w waits, r runs,
 * g is gone, n was not kept. */
static struct canary_verdict
judge(const char *states, const char *words)
{
    static char same[] = "connect() to es-3: refused \"a\"",
                again[] = "connect() to es-17: refused 'b'", other[] = "mapping conflict",
                none[] = "";
    struct tried_job jobs[20];
    struct buf b = {0};
    int n = (int)strlen(states);

    for (int i = 0; i < n; i++) {
        char c = states[i];
        jobs[i] = (struct tried_job){.state = c == 'D'               ? TRIED_DONE
                                              : c == 'F' || c == 'x' ? TRIED_FAILED
                                              : c == 'g'             ? TRIED_GONE
                                              : c == 'n'             ? TRIED_NOT_KEPT
                                              : c == 'r'             ? TRIED_RUNS
                                                                     : TRIED_WAITS,
                                     .error = c == 'x'   ? other
                                              : c != 'F' ? none
                                              : i % 2    ? same
                                                         : again};
    }
    struct canary_verdict v = canary_judge(jobs, n);
    canary_say(&v, 60000, &b);
    assert_string_equal(b.data, words);
    buf_free(&b);
    return v;
}

static void
test_canary_verdicts(void **state)
{
    (void)state;
    assert_int_equal(judge("DDDDDDDDDD", "10 of 10 are done: the cause seems gone").hope,
                     HOPE_GOOD);
    assert_int_equal(
        judge("DDDDDDDDDx", "9 of 10 are done, 1 failed again: the cause seems gone").hope,
        HOPE_SOME);
    assert_int_equal(
        judge("DDDDFFFFFF", "4 of 10 are done, 6 failed again: the cause is still there for some")
            .hope,
        HOPE_LITTLE);
    assert_int_equal(
        judge("FFFF", "the cause is still there: 4 of 4 failed again with the same error").hope,
        HOPE_NONE);
    assert_int_equal(
        judge("FFxF", "the cause is still there: 4 of 4 failed again with different errors").hope,
        HOPE_NONE);
    assert_int_equal(judge("DDwr",
                           "2 of 4 are done, 2 without an answer in 60s: whether the cause is "
                           "gone is not known")
                         .hope,
                     HOPE_UNKNOWN);
    assert_int_equal(judge("wwww",
                           "none of 4 is done: 4 without an answer in 60s: whether the cause "
                           "is gone is not known")
                         .hope,
                     HOPE_UNKNOWN);
    assert_int_equal(judge("Dggg",
                           "1 of 4 is done, 3 were discarded or purged meanwhile: the cause "
                           "seems gone")
                         .hope,
                     HOPE_GOOD);
    assert_int_equal(judge("gg", "none of 2 is done: 2 were discarded or purged meanwhile: whether "
                                 "the cause is gone is not known")
                         .hope,
                     HOPE_UNKNOWN);
    assert_int_equal(judge("Dnn",
                           "1 of 3 is done, 2 completed or were removed (finished jobs are not "
                           "kept there), none failed again: the cause seems gone")
                         .hope,
                     HOPE_GOOD);
    assert_int_equal(judge("nnnnx",
                           "4 of 5 completed or were removed (finished jobs are not kept there), "
                           "1 failed again: the cause seems gone")
                         .hope,
                     HOPE_SOME);
    assert_true(judge("FwF", "none of 3 is done: 2 failed again, 1 without an answer in 60s: the "
                             "cause is still there for some")
                    .same_error);
}

#define LOOKED "id queue kind state tries created_ms error started_ms finished_ms node"
#define TRIED(id, state, error) id "|mail|k|" state "|1|1|" error "|1000|2100|w1"

/* Answers a look at the jobs. The other tables name nothing that keeps the jobs from starting. */
static void
answer_look(struct fixture *f, struct result *jobs)
{
    wait_asked(f);
    struct result *tables[] = {jobs, fake_table("queue paused", "mail|f", NULL),
                               fake_table("workers scheduler_alive overdue", "0|t|0", NULL),
                               fake_table("node state running", NULL)};
    fake_answer(f->db, tables);
}

/* Asks for the sample, then requeues the chosen jobs by id at priority 0. One answer is lost. */
static struct canary *
try_three(struct fixture *f)
{
    struct params where = {0};

    params_set(&where, PARAM_QUEUE, "mail");
    begin(f, &(struct intent){
                 .act = ACT_REQUEUE, .where = &where, .expected = -1, .reason = "es is back"});
    params_done(&where);
    preview(f, fake_table(EFFECTS, "ready|4000|~", NULL));
    assert_true(canary_fits(f->action));
    struct canary *c = canary_new(f->action, 3, 60000);
    f->action = NULL;
    assert_non_null(strstr(asked(f)->sql[0], "requeue_sample"));
    assert_string_equal(asked(f)->param[0][5], "3");
    batch(f, fake_table("id", "new", "mid", "old", NULL));
    assert_int_equal(canary_state(c), CANARY_TRYING);
    preview(f, fake_table(EFFECTS, "ready|2|~", "~|1|running", NULL));
    canary_update(c);
    assert_string_equal(asked(f)->param[0][2], "{\"new\",\"mid\",\"old\"}");
    assert_string_equal(asked(f)->param[0][4], "first 3 of 4,000: es is back");
    assert_string_equal(asked(f)->param[0][6], "0");
    fake_fail(f->db, ERR_CONN, "", true); /* the answer is lost: the same batch again */
    wait_asked(f);
    assert_string_equal(asked(f)->param[0][1], "1");
    batch(f, fake_table(ROWS, "new|ready|~|~|1", "mid|~|running|~|1", "old|ready|~|~|1", NULL));
    canary_update(c);
    return c;
}

/* Looks at the chosen jobs, of which one fails; then requeues the rest. */
static void
test_canary(void **state)
{
    struct fixture *f = *state;
    struct err e;
    int n;

    struct canary *c = try_three(f);
    assert_int_equal(canary_state(c), CANARY_WATCHING); /* the job left alone is not watched */
    assert_string_equal(asked(f)->param[0][11], "{\"new\",\"old\"}");
    answer_look(
        f, fake_table(LOOKED, TRIED("new", "ready", "boom"), TRIED("old", "running", ""), NULL));
    assert_string_equal(canary_obstacle(c),
                        "no worker takes this queue: none is alive; start one (queuetop work)");
    wait_asked(f);
    fake_fail(f->db, ERR_CONN, "", false);
    assert_non_null(strstr(canary_away(c), "the connection is lost: asks again"));
    wait_asked(f);
    batch(f,
          fake_table(LOOKED, TRIED("new", "completed", ""), TRIED("old", "failed", "boom"), NULL));
    assert_null(canary_away(c));
    assert_int_equal(canary_state(c), CANARY_COUNTING);
    const struct tried_job *jobs = canary_jobs(c, &n);
    assert_true(n == 2 && jobs[0].state == TRIED_DONE && jobs[1].state == TRIED_FAILED);
    assert_int_equal(jobs[0].run_ms, 1100);
    preview(f, fake_table(EFFECTS, "ready|3990|~", NULL));
    canary_update(c);
    assert_int_equal(canary_state(c), CANARY_ASKING);
    assert_string_equal(action_challenge(canary_rest(c)), "3990");
    struct act_options o = action_options(canary_rest(c));
    assert_string_equal(o.reason, "es is back");
    char *lead = xasprintf("rest of action %s: es is back", action_id(canary_first(c)));
    f->action = canary_take_rest(c);
    action_start(f->action, false);
    assert_string_equal(asked(f)->param[0][6],
                        "2025-11-21 08:00:00.123+00"); /* the time of the count */
    assert_string_equal(asked(f)->param[0][11], lead);
    assert_true(strcmp(action_id(f->action), action_id(canary_first(c))) != 0);
    free(lead);
    canary_free(c);
    assert_true(loop_turn(f->loop, 0, &e));
}

/* The look finds one of two jobs. The next look also asks whether their queue keeps finished
 * jobs. */
static void
test_canary_of_a_queue_that_keeps_nothing(void **state)
{
    struct fixture *f = *state;
    int n;

    struct canary *c = try_three(f);
    answer_look(f, fake_table(LOOKED, TRIED("new", "running", ""), TRIED("old", "running", ""),
                              NULL)); /* no job waits, so nothing keeps jobs from starting */
    wait_asked(f);
    assert_int_equal(asked(f)->n, 1);
    batch(f, fake_table(LOOKED, TRIED("old", "running", ""), NULL));
    const struct tried_job *jobs = canary_jobs(c, &n);
    assert_int_equal(jobs[0].state, TRIED_RUNS);
    wait_asked(f);
    assert_int_equal(asked(f)->n, 2);
    struct result *tables[] = {fake_table(LOOKED, NULL),
                               fake_table("queue paused keeps", "mail|f|f", "x|f|t", NULL)};
    fake_answer(f->db, tables);
    assert_true(jobs[0].state == TRIED_NOT_KEPT && jobs[1].state == TRIED_NOT_KEPT);
    assert_int_equal(canary_state(c), CANARY_COUNTING);
    assert_int_equal(canary_verdict(c).hope, HOPE_GOOD);
    canary_free(c);
}

/* If the count of the rest reaches its time limit, the count is asked once more, but not a third
 * time. */
static void
test_canary_whose_count_takes_too_long(void **state)
{
    struct fixture *f = *state;

    struct canary *c = try_three(f);
    answer_look(
        f, fake_table(LOOKED, TRIED("new", "completed", ""), TRIED("old", "completed", ""), NULL));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(canary_state(c), CANARY_COUNTING);
        fake_fail(f->db, ERR_TIMEOUT, "57014", false);
        canary_update(c);
        if (i > 0)
            break;
        assert_non_null(strstr(canary_away(c), "the server is slow: asks again"));
        wait_asked(f);
        batch(f, fake_table(LOOKED, NULL));
    }
    assert_int_equal(canary_state(c), CANARY_OVER);
    assert_true(canary_failed(c));
    assert_non_null(strstr(canary_summary(c), "the tried jobs stay as they are: "));
    assert_non_null(strstr(canary_summary(c), "; the rest is as it was"));
    canary_free(c);
}

/* If the user leaves while the jobs are chosen, the statement is cancelled: the next action need
 * not wait for the statement. */
static void
test_canary_is_left_while_it_chooses(void **state)
{
    struct fixture *f = *state;
    struct params where = {0};

    params_set(&where, PARAM_QUEUE, "mail");
    for (int stop = 0; stop < 2; stop++) {
        begin(f, &(struct intent){.act = ACT_REQUEUE, .where = &where, .expected = -1});
        preview(f, fake_table(EFFECTS, "ready|4000|~", NULL));
        struct canary *c = canary_new(f->action, 3, 60000);
        f->action = NULL;
        assert_int_equal(f->db->cancels, stop);
        if (stop)
            canary_stop(c);
        else
            canary_free(c);
        assert_int_equal(f->db->cancels, stop + 1);
        fake_fail(f->db, ERR_TIMEOUT, "57014", false);
        if (stop)
            canary_free(c);
    }
    params_done(&where);
    assert_int_equal(f->db->cancels, 2);
}

/* With named ids the rest is the ids that were not tried. A canary can be stopped before the
 * rest. */
static void
test_canary_of_ids(void **state)
{
    struct fixture *f = *state;

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|3|~", NULL));
    struct canary *c = canary_new(f->action, 2, 60000);
    f->action = NULL;
    preview(f, fake_table(EFFECTS, "ready|2|~", NULL));
    canary_update(c);
    assert_string_equal(asked(f)->param[0][2], "{\"a\",\"c\"}");
    batch(f, fake_table(ROWS, "a|ready|~|~|1", "c|ready|~|~|1", NULL));
    canary_update(c);
    answer_look(f, fake_table(LOOKED, TRIED("c", "failed", "x 1"), NULL)); /* a is purged */
    preview(f, fake_table(EFFECTS, "ready|1|~", NULL));
    canary_update(c);
    assert_int_equal(canary_state(c), CANARY_ASKING);
    assert_int_equal(canary_verdict(c).hope, HOPE_NONE);
    canary_stop(c);
    assert_int_equal(canary_state(c), CANARY_OVER);
    assert_string_equal(canary_summary(c),
                        "2 of 3 tried: 1 failed again, 1 gone; the other 1 is as it was");
    assert_int_equal(canary_exit_code(c), 3);
    canary_free(c);

    begin(f, &(struct intent){.act = ACT_REQUEUE, .ids = ids, .nids = 3, .expected = -1});
    preview(f, fake_table(EFFECTS, "ready|3|as a new job", NULL));
    assert_false(canary_fits(f->action)); /* nothing shows what becomes of a finished job */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_predicate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gathering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_due, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_asks_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_doubt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unknown_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_count_of_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_release_of_the_living, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_release_of_a_hollow_lease, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pace_of_a_purge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_freed_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_why_not, set_up, tear_down),
        cmocka_unit_test(test_canary_places),
        cmocka_unit_test(test_canary_verdicts),
        cmocka_unit_test_setup_teardown(test_canary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_canary_of_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_canary_of_a_queue_that_keeps_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_canary_whose_count_takes_too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_canary_is_left_while_it_chooses, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
