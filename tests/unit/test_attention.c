/*
 * What needs attention is judged by the data that was known when a topic was read. Alerts say
 * whether their cause continues.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

#include "model/store/store.h"
#include "tests/unit/fake_db.h"
#include "ui/facts/attention.h"

static struct {
    struct loop *loop;
    struct db *db;
    struct adapter *all;
} scene;

#define START 1763712000000 /* the tick of the schedule below, less a second */
#define SCHEDULES "name cron state next_run_ms"

static void
feed(struct store *s, const char *name, int64_t at_ms, struct result *t)
{
    store_inject_clock(s, at_ms);
    store_inject(
        s, &(struct store_answer){.name = name, .key = "", .at_ms = at_ms, .tables = &t, .n = 1});
}

/* Each test gets a store that has read nothing yet but where it is. */
static int
set_up(void **state)
{
    struct err e = {0};

    scene.loop = loop_new();
    scene.db = db_new(NULL, NULL);
    scene.all = adapter_open(NULL, &e);
    *state = store_new_injected(scene.loop, scene.db, scene.all, NULL, NULL);
    feed(*state, "adapter", START,
         fake_table("adapter title schema", "native|queuetop|queues", NULL));
    return 0;
}

static int
tear_down(void **state)
{
    db_free(scene.db);
    store_free(*state);
    adapter_free(scene.all);
    loop_free(scene.loop);
    return 0;
}

/* --- is the cause gone? ------------------------------------------------------------------------ */

#define COUNTS "queue scheduled retry ready running failed oldest_ms pushed completed fails"
#define TIMES "queue completed failed failed_left wait_p50_ms wait_p99_ms run_p50_ms run_p99_ms"
#define RATES "queue at_ms pushed completed fails ready oldest_ms"

static void
inject_queue(struct store *s, int64_t at_ms, const char *counts, struct result *rates)
{
    struct result *tables[] = {fake_table("queue paused", "mail|f", NULL),
                               fake_table(COUNTS, counts, NULL),
                               rates ? rates : fake_table(RATES, NULL)};

    store_inject_clock(s, at_ms);
    store_inject(s, &(struct store_answer){
                        .name = "queues", .key = "", .at_ms = at_ms, .tables = tables, .n = 3});
}

static void
expect_alert(const struct store *s, int64_t now_ms, const char *what, const char *act)
{
    struct arena *mem = arena_new();
    struct attention found;

    attention(s, &(struct attention_of){.now_ms = now_ms, .foreign = true, .utc = true}, mem,
              &found);
    if (found.n != 1 || strcmp(found.alerts[0].what, what))
        fail_msg("%d alerts: %s, not %s (%s)", found.n, found.n ? found.alerts[0].what : "", what,
                 store_topic(s, TOPIC_QUEUES)->err.text);
    assert_string_equal(found.alerts[0].act, act);
    arena_free(mem);
}

/* An alert says whether the failures of this hour have ended or continue, and how the age of the
 * backlog changes. The first frame already says so, from the minutes that the scheduler has
 * kept. */
static void
an_alert_says_whether_its_cause_is_gone(void **state)
{
    struct store *s = *state;

    feed(s, "times", START, fake_table(TIMES, "mail|10|40|~|~|~|~|~", NULL));
    inject_queue(s, START, "mail|0|0|0|0|40|~|200|130|40", /* START is 08:00:00 */
                 fake_table(RATES, "mail|1763711760000|200|100|39|0|~",
                            "mail|1763711880000|200|120|40|0|~", NULL));
    expect_alert(s, START, "40 failed in 1 h, none for 2m, 10 completed", "requeue");
    inject_queue(s, START + 10000, "mail|0|0|0|0|41|~|200|131|41", NULL);
    expect_alert(s, START + 10000, "40 failed in 1 h, still 6 a minute", "errors");
    for (int i = 20; i <= 130; i += 10) /* no new failures while the server is down */
        inject_queue(s, START + (int64_t)i * 1000, "mail|0|0|0|0|41|~|200|131|41", NULL);
    expect_alert(s, START + 130000, "40 failed in 1 h, none for 2m, none completed", "errors");
    feed(s, "times", START + 130000, fake_table(TIMES, "mail|10|0|~|~|~|~|~", NULL));
    for (int i = 140; i <= 250; i += 10) {
        char counts[80];
        snprintf(counts, sizeof counts, "mail|0|0|%d|0|4|1763711000000|900|%d|41",
                 i < 180 ? 500 : 700 - i, i);
        inject_queue(s, START + (int64_t)i * 1000, counts, NULL);
    }
    expect_alert(s, START + 250000, "oldest job waits 20m 50s, fewer wait since 08:03; 450 wait",
                 "why");
}

static void
inject_errors(struct store *s, int64_t at_ms, struct result *groups, struct result *times)
{
    struct result *tables[] = {groups, times};

    store_inject_clock(s, at_ms);
    store_inject(s, &(struct store_answer){
                        .name = "groups", .key = "", .at_ms = at_ms, .tables = tables, .n = 2});
}

/* An alert names the error of most failures, or says how many errors there are. */
static void
an_alert_names_the_errors(void **state)
{
    static const char groups[] = "error_key queue n", times[] = "queue error_key at_ms n hour";
    struct store *s = *state;

    feed(s, "times", START, fake_table(TIMES, "mail|10|40|40|~|~|~|~", NULL));
    inject_queue(s, START, "mail|0|0|0|0|40|~|200|130|40", NULL);
    inject_errors(
        s, START,
        fake_table(groups, "boom|mail|15", "bang|mail|15", "crash|mail|10", "boom|other|9", NULL),
        fake_table(times, "mail|boom|1763711900000|15|15", "mail|bang|1763711900000|15|15",
                   "mail|crash|1763711900000|10|10", "other|boom|1763711900000|9|9", NULL));
    expect_alert(s, START, "40 failed in 1 h, 3 errors", "errors");
    inject_errors(
        s, START + 1000, fake_table(groups, "boom|mail|30", "bang|mail|10", NULL),
        fake_table(times, "mail|boom|1763711900000|30|30", "mail|bang|1763711900000|10|10", NULL));
    expect_alert(s, START + 1000, "40 failed in 1 h, most: boom", "errors");
}

/* The failed jobs of this hour were requeued. Older ones are left: they are a warning, even while
 * another job fails now and then. */
static void
requeued_failures_are_no_alarm(void **state)
{
    struct store *s = *state;

    feed(s, "times", START, fake_table(TIMES, "mail|10|40|10|~|~|~|~", NULL));
    inject_queue(s, START, "mail|0|0|0|0|900|~|200|130|900", NULL);
    expect_alert(s, START, "40 failed in 1 h", "errors");
    feed(s, "times", START + 10000, fake_table(TIMES, "mail|10|41|1|~|~|~|~", NULL));
    inject_queue(s, START + 10000, "mail|0|0|0|0|861|~|200|130|901", NULL);
    expect_alert(s, START + 10000, "861 failed", "errors");
    assert_int_equal(store_totals(s)->failed_left, 1);
}

/* --- the time of the look ---------------------------------------------------------------------- */

static void
expect_late(const struct store *s, int64_t now_ms, enum verdict verdict, const char *what)
{
    struct arena *mem = arena_new();
    struct attention found;

    attention(s, &(struct attention_of){.now_ms = now_ms, .foreign = true}, mem, &found);
    assert_int_equal(found.screens[5], verdict);
    assert_int_equal(found.n, what ? 1 : 0);
    if (what)
        assert_string_equal(found.alerts[0].what, what);
    arena_free(mem);
}

/* A slow server answers rarely: whether the scheduler still lives is not known until the next
 * answer, so it is judged by the time of the last one. */
static void
old_data_make_no_scheduler_dead(void **state)
{
    static const char life[] = "workers scheduler_alive scheduler scheduler_ms schedules overdue "
                               "overdue_ms";
    struct store *s = *state;

    inject_queue(s, START, "mail|0|0|5|0|0|~|200|130|0", NULL);
    feed(s, "life", START, fake_table(life, "1|f|host|1763711998000|0|0|~", NULL));
    store_inject_clock(s, START + 50000);
    expect_late(s, START + 50000, VERDICT_WELL, NULL);
    feed(s, "life", START + 50000, fake_table(life, "1|f|host|1763711998000|0|0|~", NULL));
    expect_late(s, START + 50000, VERDICT_BAD,
                "its last sign is 52s old, and 5 jobs depend on it: start "
                "queuetop schedule");
}

/* The schedules are read every 30 s. A tick that became due after the last read is not late. */
static void
a_tick_after_the_look_is_not_late(void **state)
{
    struct store *s = *state;

    feed(s, "schedules", START,
         fake_table(SCHEDULES, "tick|@every 10s|active|1763712001000", NULL));
    store_inject_clock(s, START + 25000);
    expect_late(s, START + 25000, VERDICT_WELL, NULL);
    feed(s, "schedules", START + 25000,
         fake_table(SCHEDULES, "tick|@every 10s|active|1763712001000", NULL));
    expect_late(s, START + 25000, VERDICT_WARN, "is late for 24s");
    feed(s, "schedules", START + 26000,
         fake_table(SCHEDULES, "tick|@every 10s|active|1763712031000", NULL));
    expect_late(s, START + 26000, VERDICT_WELL, NULL);
}

int
main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        EACH(a_tick_after_the_look_is_not_late), EACH(old_data_make_no_scheduler_dead),
        EACH(an_alert_says_whether_its_cause_is_gone), EACH(an_alert_names_the_errors),
        EACH(requeued_failures_are_no_alarm)};
#undef EACH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
