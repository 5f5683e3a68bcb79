/*
 * On a table that another system fills, the console reads what it shows and no more: live counts,
 * the first page, the failed jobs, the nodes and the groups of errors touch as many buffers beside
 * a hundred thousand finished jobs as beside ten thousand.
 */
#include <string.h>

#include "tests/sql/other.h"

enum { FEW = 10000, MANY = 100000 };

enum { QUESTIONS = 10 };

static void
measure(struct other *f, int64_t *n)
{
    n[0] = other_buffers(f, SEC_COUNTS, NULL);
    n[1] = other_buffers(f, SEC_QUEUES, NULL);
    n[2] = other_buffers(f, SEC_JOBS, "limit=200", NULL);
    n[3] = other_buffers(f, SEC_JOBS, "limit=200", "states={failed}", NULL);
    n[4] = other_buffers(f, SEC_JOBS, "limit=200", "states={ready}", "queue=q3", NULL);
    n[5] = other_buffers(f, SEC_JOBS, "limit=200", "states={completed}", NULL);
    n[6] = other_buffers(f, SEC_JOBS, "limit=200", "kind=nothing", "n=1000", NULL);
    n[7] = other_buffers(f, SEC_NODES, NULL);
    n[8] = other_buffers(f, SEC_GROUPS, NULL);
    n[9] =
        other_buffers(f, SEC_JOBS, "limit=200", "states={completed}", "queue=q3", "n=1000", NULL);
}

static void
finished_jobs_cost_nothing(const struct other_load *e)
{
    int64_t few[QUESTIONS], many[QUESTIONS];
    struct other f;
    bool ok = true;

    other_open(&f, e->name, e->name);
    other_fill(&f, e, 0, FEW);
    measure(&f, few);
    other_fill(&f, e, FEW, MANY);
    measure(&f, many);
    for (int i = 0; i < QUESTIONS; i++) {
        /* ten times as much; an index may have grown by a level: one page more for each row fetched
         */
        bool fits = many[i] <= few[i] + few[i] / 2 + 20;
        if (!fits)
            print_error("%s, question %d: %lld buffers beside %d finished jobs, %lld beside %d\n",
                        e->name, i, (long long)few[i], FEW, (long long)many[i], MANY);
        ok = ok && fits;
    }
    assert_true(ok);
    other_close(&f);
}

static void
river_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&other_loads[0]);
}

static void
oban_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&other_loads[1]);
}

static void
good_job_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&other_loads[2]);
}

static void
solid_queue_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&other_loads[3]);
}

static void
minion_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&other_loads[4]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(river_is_read_politely),    cmocka_unit_test(oban_is_read_politely),
        cmocka_unit_test(good_job_is_read_politely), cmocka_unit_test(solid_queue_is_read_politely),
        cmocka_unit_test(minion_is_read_politely),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
