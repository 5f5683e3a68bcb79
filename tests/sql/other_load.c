/* Fills the tables of other queues: 5,000 live and failed jobs in 20 queues, and finished ones. */
#include "tests/sql/other.h"

const struct other_load other_loads[] = {
    {
     .name = "river",
     .table = "river_job",
     .live =
            "insert into river_job (state, queue, kind, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, finalized_at, attempted_by, args) "
            "select s::river_job_state, 'q' || i % 20, 'bulk_import', 1 + i % 2, 1, 25, now() + (i "
            "- "
            "4000) * interval '1 s', now(), "
            "case s when 'discarded' then now() - i * interval '1 s' end, '{w}', '{\"user\": 1}' "
            "from generate_series(1, 5000) i, lateral (select (array['available', 'available', "
            "'running', 'retryable', 'scheduled', 'discarded'])[1 + i % 6] as s) s",                                                                                             .done =
            "insert into river_job (state, queue, kind, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, finalized_at, attempted_by, args) "
            "select 'completed', 'q' || i % 20, 'bulk_import', 1 + i % 2, 1, 25, t, t, t, '{w}', "
            "'{\"user\": 1}' "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select now() - i * interval '1 s' as t) t", },
    {
     .name = "oban",
     .table = "oban_jobs",
     .live = "insert into oban_jobs (state, queue, worker, priority, attempt, max_attempts, "
                "scheduled_at, attempted_at, discarded_at, attempted_by, args) "
                "select s::oban_job_state, 'q' || i % 20, 'bulk_import', i % 2, 1, 20, "
                "timezone('UTC', now()) "
                "+ (i - 4000) * interval '1 s', timezone('UTC', now()), "
                "case s when 'discarded' then timezone('UTC', now()) - i * interval '1 s' end, "
                "'{w,u}', '{\"user\": 1}' "
                "from generate_series(1, 5000) i, lateral (select (array['available', 'available', "
                "'executing', 'retryable', 'scheduled', 'discarded'])[1 + i % 6] as s) s",                                                                                                                                                             .done =
            "insert into oban_jobs (state, queue, worker, priority, attempt, max_attempts, "
            "scheduled_at, attempted_at, completed_at, attempted_by, args) "
            "select 'completed', 'q' || i % 20, 'bulk_import', i % 2, 1, 20, t, t, t, '{w,u}', "
            "'{\"user\": 1}' "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select timezone('UTC', now()) - i * interval '1 s' as t) t", },
    {
     .name = "good_job",
     .table = "good_jobs",
     .live =
            "insert into good_jobs (id, queue_name, priority, job_class, created_at, updated_at, "
            "scheduled_at, performed_at, finished_at, error, serialized_params) "
            "select gen_random_uuid(), 'q' || i % 20, 0, 'bulk_import', now(), now(), "
            "timezone('UTC', "
            "now()) "
            "+ (i - 4000) * interval '1 s', case i % 5 when 1 then timezone('UTC', now()) end, "
            "case i % 5 when 2 then timezone('UTC', now()) - i * interval '1 s' end, case i % 5 "
            "when 2 "
            "then 'E: ' || i end, '{\"arguments\": [1], \"executions\": 1}' "
            "from generate_series(1, 5000) i", .done =
            "insert into good_jobs (id, queue_name, priority, job_class, created_at, updated_at, "
            "scheduled_at, performed_at, finished_at, serialized_params) "
            "select gen_random_uuid(), 'q' || i % 20, 0, 'bulk_import', t, t, t, t, t, "
            "'{\"arguments\": "
            "[1], \"executions\": 1}' "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select timezone('UTC', now()) - i * interval '1 s' as t) t", },
    {
     .name = "solid_queue",
     .table = "solid_queue_jobs",
     .live =
            "with j as (insert into solid_queue_jobs (queue_name, class_name, arguments, "
            "created_at, updated_at) "
            "select 'q' || i % 20, 'bulk_import', '{\"arguments\":[],\"executions\":0}', now(), "
            "now() "
            "from generate_series(1, 5000) i returning id, queue_name), "
            "r as (insert into solid_queue_ready_executions (job_id, queue_name, created_at) "
            "select id, queue_name, now() from j where id % 3 = 0), "
            "f as (insert into solid_queue_failed_executions (job_id, error, created_at) select "
            "id, '{\"exception_class\":\"E\",\"message\":\"x\"}', now() from j where id % 3 = 1) "
            "insert into solid_queue_claimed_executions (job_id, process_id, created_at) select "
            "id, 1, now() from j where id % 3 = 2",                                                                                                                                   .done =
            "insert into solid_queue_jobs (queue_name, class_name, arguments, created_at, "
            "updated_at, finished_at) "
            "select 'q' || i % 20, 'bulk_import', '{\"arguments\":[],\"executions\":0}', t, t, t "
            "from generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select timezone('UTC', now()) - i * interval '1 s' as t) t", },
    {
     .name = "minion",
     .table = "minion_jobs",
     .live =
            "insert into minion_jobs (state, queue, task, args, delayed, worker, started, "
            "finished, "
            "result, attempts) select s::minion_state, 'q' || i % 20, 'bulk_import', '[1]', now() "
            "+ "
            "(i - 4000) * interval '1 s', case s when 'active' then 1 end, now(), case s when "
            "'failed' then now() end, case s when 'failed' then to_jsonb('E: ' || i) end, 3 from "
            "generate_series(1, 5000) i, lateral (select (array['inactive', 'inactive', 'active', "
            "'failed'])[1 + i % 4] as s) s",                                                                                                                                                      .done =
            "insert into minion_jobs (state, queue, task, args, created, delayed, worker, started, "
            "finished) select 'finished', 'q' || i % 20, 'bulk_import', '[1]', t, t, 1, t, t from "
            "generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
            "lateral (select now() - i * interval '1 s' as t) t", },
    {
     .name = "pgboss",
     .table = "pgboss.job_common",
     .live =
            "insert into pgboss.queue select (jsonb_populate_record(q, jsonb_build_object('name', "
            "'q' || i))).* from pgboss.queue q, generate_series(0, 19) i where q.name = 'again';"
            "insert into pgboss.job (name, data, state, created_on, started_on, completed_on, "
            "start_after, output) select 'q' || i % 20, '{\"user\": 1}', s::pgboss.job_state, "
            "now(), "
            "case when s <> 'created' then now() end, case s when 'failed' then now() end, now() + "
            "(i - 4000) * interval '1 s', case s when 'failed' then jsonb_build_object('message', "
            "'E: ' || i) end from generate_series(1, 5000) i, lateral (select (array['created', "
            "'created', 'active', 'retry', 'created', 'failed'])[1 + i % 6] as s) s",                                        .done = "insert into pgboss.job (name, data, state, created_on, started_on, completed_on, "
                "start_after) select 'q' || i % 20, '{\"user\": 1}', 'completed', t, t, t, t from "
                "generate_series(current_setting('t.from')::int, current_setting('t.to')::int) i, "
                "lateral (select now() - i * interval '1 s' as t) t", },
};
const int other_loads_n = sizeof other_loads / sizeof *other_loads;

void
other_fill(struct other *f, const struct other_load *l, int from, int to)
{
    if (from == 0)
        pg_run(f->conn, "%s", l->live);
    pg_run(f->conn, "select set_config('t.from', '%d', false), set_config('t.to', '%d', false)",
           from + 1, to);
    pg_run(f->conn, "%s", l->done);
    pg_run(f->conn, "vacuum analyze %s", l->table);
    pg_run(f->conn, "analyze");
}
