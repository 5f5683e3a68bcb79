-- The data that bench_screens.c makes before a console watches: bench.queues queues with jobs, and bench.minutes rows of table
-- minute for each. Always the same: 100,000 jobs in all, 40 nodes, 100 schedules, 200 acts. The claims follow in C, because a
-- claim sees only leases of a step that has committed.
set search_path to queues;
update setting set value = '1 day' where name in ('node_dead', 'node_late');

insert into queue (queue, kind, payload)
select 'queue-' || lpad((i % current_setting('bench.queues')::int)::text, 4, '0'), 'kind-' || i % 7, '{"n": 1}'
from generate_series(1, 100000) i;
insert into queue (queue, kind, payload, run_after)
select 'queue-' || lpad((i % current_setting('bench.queues')::int)::text, 4, '0'), 'kind-' || i % 7, '{"n": 1}',
       now() + interval '1 day'
from generate_series(1, 5000) i;

select node_start('node-' || lpad(i::text, 2, '0'), gen_random_uuid(), 'host-' || i % 8, 1000 + i, '1.0', 1, null, 50)
from generate_series(1, 40) i;

select count(*) from generate_series(1, 100) i cross join lateral schedule_set(
    gen_random_uuid(), 'schedule-' || i, json_build_object('cron', i % 60 || ' 4 * * *', 'queue', 'queue-0' || lpad((i % 50)::text,
        3, '0'))::jsonb) s;
select count(*) from generate_series(1, 100) i,
    lateral (select 'queue-00' || lpad((i % 50)::text, 2, '0') as name) q,
    lateral (select * from pause(gen_random_uuid(), q.name, 'a look')
             union all select * from resume(gen_random_uuid(), q.name, 'looked at')) p;

-- More by day than by night, as in tests/screens/fixture_week.sql; histograms of four buckets.
insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms, wait_max, run_max,
                    buckets, waits, runs, ready)
select date_trunc('minute', now()) - n * interval '1 min', 'queue-' || lpad(q::text, 4, '0'), v, v, n % 97 / 96, n % 3, 0, 0,
       v * 2000, v * 500, 4000, 2000, array[20, 21, 22, 23]::smallint[], array[v / 8, v / 2, v / 4, v / 8],
       array[v / 2, v / 3, v / 8, 1], 0
from generate_series(1, current_setting('bench.minutes')::int) n
cross join lateral (select (60 * (1 + 0.4 * sin(n * 2 * pi() / 1440)))::int as v) day
cross join generate_series(0, current_setting('bench.queues')::int - 1) q
on conflict do nothing;
