/*
 * Minion's list of jobs beside many finished ones: no index knows queues and tasks, so a part is
 * looked at for them, and the search goes on where it stopped. Every way through finds the same.
 */
#include <string.h>

#include "tests/sql/other.h"

static void
every_way_finds_the_same(void **state)
{
    struct other f;

    (void)state;
    other_open(&f, "minion", "minion");
    pg_run(f.conn, "truncate minion_jobs restart identity");
    pg_run(f.conn,
           "insert into minion_jobs (task, queue, state, args) select case i %% 20 when 0 then "
           "'rare' else 'mail' end, case i %% 30 when 0 then 'few' else 'many' end, case i %% "
           "45 when 0 then 'failed' else 'finished' end::minion_state, '[]' from "
           "generate_series(1, 100) i");
    expect_walk(&f, "100 80 60 40 20", "kind=rare");
    expect_walk(&f, "90 60 30", "queue=few");
    expect_walk(&f, "60", "queue=few", "kind=rare");
    expect_walk(&f, "60 30", "queue=few", "states={completed}");
    expect_walk(&f, "90", "queue=few", "states={failed}");
    expect_walk(&f, "100 60", "words={0}", "not_words={8,4,2}", "kind=rare");
    expect_walk(&f, "", "queue=none");
    expect_look(&f, "60 30", SEC_JOBS, "id", "ids={30,60,61}", "queue=few", "n=1");
    expect_look(&f, "finished", SEC_JOB, "raw_state", "ids={60}");
    /* one that is not there costs no more the more there are */
    pg_run(f.conn, "insert into minion_jobs (task, queue, state, args) select 'mail', 'many', "
                   "'finished', '[]' from generate_series(1, 50000)");
    pg_run(f.conn, "vacuum analyze minion_jobs");
    assert_in_range(other_buffers(&f, SEC_JOBS, "limit=200", "queue=none", "n=1000", NULL), 1, 400);
    other_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_finds_the_same),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
