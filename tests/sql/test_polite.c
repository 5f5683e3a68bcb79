/*
 * On a table that another system fills, the console reads what it shows and no more: live counts,
 * the first page, the failed jobs, the nodes and the groups of errors touch as many buffers beside
 * a hundred thousand finished jobs as beside ten thousand.
 */
#include <string.h>

#include "tests/sql/other.h"

enum { FEW = 10000, MANY = 100000 };

struct engine {
    const char *name, *table;
    const char *live; /* 5000 live and failed jobs in 20 queues */
    const char *done; /* finished jobs, numbers t.from to t.to */
};

static const struct engine river = {
    .name = "river",
    .table = "river_job",
    .live = "insert into river_job (state, queue, kind, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, finalized_at, attempted_by, args) "
            "select s::river_job_state, 'q' || i % 20, 'kind', 1 + i % 2, 1, 25, now() + (i - "
            "4000) * interval '1 s', now(), "
            "case s when 'discarded' then now() - i * interval '1 s' end, '{w}', '{\"user\": 1}' "
            "from generate_series(1, 5000) i, lateral (select (array['available', 'available', "
            "'running', 'retryable', 'scheduled', 'discarded'])[1 + i % 6] as s) s",
    .done = "insert into river_job (state, queue, kind, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, finalized_at, attempted_by, args) "
            "select 'completed', 'q' || i % 20, 'kind', 1 + i % 2, 1, 25, t, t, t, '{w}', "
            "'{\"user\": 1}' "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select now() - i * interval '1 s' as t) t",
};

static const struct engine oban = {
    .name = "oban",
    .table = "oban_jobs",
    .live = "insert into oban_jobs (state, queue, worker, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, discarded_at, attempted_by, args) "
            "select s::oban_job_state, 'q' || i % 20, 'Kind', i % 2, 1, 20, timezone('UTC', now()) "
            "+ (i - 4000) * interval '1 s', timezone('UTC', now()), "
            "case s when 'discarded' then timezone('UTC', now()) - i * interval '1 s' end, "
            "'{w,u}', '{\"user\": 1}' "
            "from generate_series(1, 5000) i, lateral (select (array['available', 'available', "
            "'executing', 'retryable', 'scheduled', 'discarded'])[1 + i % 6] as s) s",
    .done = "insert into oban_jobs (state, queue, worker, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, completed_at, attempted_by, args) "
            "select 'completed', 'q' || i % 20, 'Kind', i % 2, 1, 20, t, t, t, '{w,u}', "
            "'{\"user\": 1}' "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select timezone('UTC', now()) - i * interval '1 s' as t) t",
};

static const struct engine good_job = {
    .name = "good_job",
    .table = "good_jobs",
    .live =
        "insert into good_jobs (id, queue_name, priority, job_class, created_at, updated_at, "
        "scheduled_at, performed_at, finished_at, error, serialized_params) "
        "select gen_random_uuid(), 'q' || i % 20, 0, 'Kind', now(), now(), timezone('UTC', now()) "
        "+ (i - 4000) * interval '1 s', case i % 5 when 1 then timezone('UTC', now()) end, "
        "case i % 5 when 2 then timezone('UTC', now()) - i * interval '1 s' end, case i % 5 when 2 "
        "then 'E: ' || i end, '{\"arguments\": [1], \"executions\": 1}' "
        "from generate_series(1, 5000) i",
    .done = "insert into good_jobs (id, queue_name, priority, job_class, created_at, updated_at, "
            "scheduled_at, performed_at, finished_at, serialized_params) "
            "select gen_random_uuid(), 'q' || i % 20, 0, 'Kind', t, t, t, t, t, '{\"arguments\": "
            "[1], \"executions\": 1}' "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select timezone('UTC', now()) - i * interval '1 s' as t) t",
};

static const struct engine solid_queue = {
    .name = "solid_queue",
    .table = "solid_queue_jobs",
    .live = "with j as (insert into solid_queue_jobs (queue_name, class_name, arguments, "
            "created_at, updated_at) "
            "select 'q' || i % 20, 'Kind', '{\"arguments\":[],\"executions\":0}', now(), now() "
            "from generate_series(1, 5000) i returning id, queue_name), "
            "r as (insert into solid_queue_ready_executions (job_id, queue_name, created_at) "
            "select id, queue_name, now() from j where id % 3 = 0), "
            "f as (insert into solid_queue_failed_executions (job_id, error, created_at) select "
            "id, '{\"exception_class\":\"E\",\"message\":\"x\"}', now() from j where id % 3 = 1) "
            "insert into solid_queue_claimed_executions (job_id, process_id, created_at) select "
            "id, 1, now() from j where id % 3 = 2",
    .done = "insert into solid_queue_jobs (queue_name, class_name, arguments, created_at, "
            "updated_at, finished_at) "
            "select 'q' || i % 20, 'Kind', '{\"arguments\":[],\"executions\":0}', t, t, t "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select timezone('UTC', now()) - i * interval '1 s' as t) t",
};

enum { QUESTIONS = 9 };

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
}

static void
finish(struct other *f, const struct engine *e, int from, int to)
{
    pg_run(f->conn, "select set_config('t.from', '%d', false), set_config('t.to', '%d', false)",
           from, to);
    pg_run(f->conn, "%s", e->done);
    pg_run(f->conn, "vacuum analyze %s", e->table);
    pg_run(f->conn, "analyze");
}

static void
finished_jobs_cost_nothing(const struct engine *e)
{
    int64_t few[QUESTIONS], many[QUESTIONS];
    struct other f;
    bool ok = true;

    other_open(&f, e->name, e->name);
    pg_run(f.conn, "%s", e->live);
    finish(&f, e, 1, FEW);
    measure(&f, few);
    finish(&f, e, FEW + 1, MANY);
    measure(&f, many);
    for (int i = 0; i < QUESTIONS; i++) {
        /* an index may have grown by a level: one page more for each row that is fetched */
        bool fits = many[i] <= few[i] + few[i] / 3 + 20;
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
    finished_jobs_cost_nothing(&river);
}

static void
oban_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&oban);
}

static void
good_job_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&good_job);
}

static void
solid_queue_is_read_politely(void **state)
{
    (void)state;
    finished_jobs_cost_nothing(&solid_queue);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(river_is_read_politely),
        cmocka_unit_test(oban_is_read_politely),
        cmocka_unit_test(good_job_is_read_politely),
        cmocka_unit_test(solid_queue_is_read_politely),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
