-- adapter: queue_tasks_table
-- title: queue_tasks table (pkgsite)
-- format: 2
-- schema: public
-- id-type: bigint
-- tables: queue_tasks
-- note: Columns that the article offers are used where the table has them: leased_until, priority (the smallest is
--   taken first), completed_at, success and failure.
-- note: Without leased_until another worker may take a task five minutes after its start; that limit is in the code of
--   the workers, not in the table. A task whose leased_until is null is never given back.
-- note: Without completed_at a task is deleted when its worker ends, whether it succeeded or not.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend_where: nothing tells who works on a job: extend it by its id (extend --id)
-- lacks: pause: workers take whatever waits: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: delete jobs that wait
-- lacks: discard: nothing keeps what was discarded: delete the jobs
-- lacks: reschedule: a task has no time at which it is due

-- name: detect
select n.nspname::text as schema
from pg_catalog.pg_namespace n
where n.nspname !~ '^pg_' and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = 'queue_tasks' and c.relkind in ('r', 'p')
                and 4 = (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values ('id', 'int8'), ('task_name', 'text'), ('created_at', 'timestamptz'),
                                ('started_at', 'timestamptz')
                          ) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
  and not exists (select from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid
              join pg_catalog.pg_type t on t.oid = a.atttypid
              where c.relnamespace = n.oid and c.relname = 'queue_tasks' and c.relkind in ('r', 'p')
                and (a.attname in ('leased_until', 'completed_at') and t.typname not in ('timestamptz', 'timestamp')
                     or a.attname = 'priority' and t.typname not in ('int2', 'int4', 'int8')))
order by 1

-- name: version
-- which of the optional columns are there
select coalesce(string_agg(a.attname::text, ' '), '') as version
from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = {schema_lit} and c.relname = 'queue_tasks' and not a.attisdropped
  and a.attname in ('leased_until', 'priority', 'completed_at', 'failure')

-- name: queues
select 'queue_tasks' as queue, null::boolean as paused, 'one table is one queue' as info, false as keeps

-- name: counts
-- Waiting tasks are counted by the index of the dequeue; more than 100000 are estimated. Of the started ones the newest
-- 100000 are looked at, by the same index. A task whose lease has ended counts as running until another takes it.
with waiting as (select count(*) as n from (select from {schema}.queue_tasks where started_at is null limit 100001) x),
     started as (
    select count(*) as n, count(*) filter (where state = 'running') as running,
           count(*) filter (where state = 'failed') as failed,
           count(*) filter (where state = 'running' and lease_until < now()) as expired
    from (select t.state, t.lease_until
-- part: queue_tasks_rows
          where t.started_at is not null order by t.started_at desc limit 100001) x
)
select 'queue_tasks' as queue, 0::bigint as scheduled,
       case when w.n <= 100000 then w.n
            else greatest(w.n, (select c.reltuples::bigint from pg_catalog.pg_class c
                                join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                                where n.nspname = {schema_lit} and c.relname = 'queue_tasks') - s.n) end as ready,
       0::bigint as retry, s.running, s.failed,
       {ms((select t.created_at from {schema}.queue_tasks t where t.started_at is null
            order by t.started_at, t.created_at limit 1))} as oldest_ms,
       s.expired, w.n > 100000 or s.n > 100000 as approx
from waiting w, started s

-- name: counts_final
-- requires: column completed_at
-- cost: reads the whole table
select 'queue_tasks' as queue, count(*) as completed, 0::bigint as cancelled
-- part: queue_tasks_rows
where t.state = 'completed'

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first
-- Kind, error and words are looked for in the newest n of the rows that fit all other terms; a row without an id gives
-- the cursor to continue from
with looked_at as materialized (
    select t.id as key,
-- part: queue_tasks_columns
           t.id::text as cursor
-- part: queue_tasks_rows
    where ($1::text is null or $1::text = 'queue_tasks')
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and t.started_at is null and t.state = 'ready'
           or 'running' = any($2::text[]) and t.started_at is not null and t.state = 'running'
           or 'failed' = any($2::text[]) and t.state = 'failed'
           or 'completed' = any($2::text[]) and t.state = 'completed')
      and ($7::interval is null or t.created_at < now() - $7::interval)
      and ($8::interval is null or t.created_at > now() - $8::interval)
      and ($9::int is null or case when t.completed_at is null then 0 else 1 end >= $9::int)
      and ($10::int is null or case when t.completed_at is null then 0 else 1 end <= $10::int)
      and ($11::text[] is null or t.id = any({bigints($11)}))
      and ($14::text is null
           or t.id < case when $14::text ~ '^-?[0-9]{1,19}$' then $14::bigint end)
    order by t.id desc
-- part: jobs_found

-- name: job
-- params: ids
select
-- part: queue_tasks_columns
       null::text as cursor, t.task_name as unique_key, left(p.payload::text, 1000000) as payload,
       'json' as payload_format, octet_length(p.payload::text)::bigint as payload_size
-- part: queue_tasks_rows
cross join lateral (select t.record - array['id', 'task_name', 'created_at', 'started_at', 'leased_until', 'priority',
                                            'completed_at', 'success', 'failure'] as payload) p
where t.id = any(({bigints($1)})[:1])

-- name: groups
-- params: queue limit
-- requires: column failure
-- cost: no index finds the tasks that failed
with failed_jobs as materialized (
    select t.id, t.failure, t.completed_at as ended
-- part: queue_tasks_rows
    where t.state = 'failed' and ($1::text is null or $1::text = 'queue_tasks')
    order by t.completed_at desc limit 5000
)
select {error_key(failure)} as error_key, 'queue_tasks' as queue, count(*) as n,
       (select count(*) from failed_jobs) >= 5000 as capped, {ms(min(ended))} as first_ms, {ms(max(ended))} as last_ms,
       (array_agg(left(failure, 1000) order by ended desc))[1] as sample,
       (array_agg(id::text order by ended desc))[1] as sample_id
from failed_jobs f group by 1 order by 3 desc, 1 limit coalesce($2::int, 200)

-- name: requeue
-- params: ids
-- requires: column completed_at
-- official: no (the article leaves it open)
-- guard: only failed jobs
with pick as (
    select t.id
-- part: queue_tasks_rows
    where t.id = any({bigints($1)}) and t.state = 'failed'
    for update of t skip locked
)
update {schema}.queue_tasks t set started_at = null, completed_at = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: rescue
-- params: ids
-- official: no (the system waits until the lease has ended)
-- guard: only running jobs
-- confirm: Its worker may be alive: then the task is done twice. When that worker ends, it does not delete the task of
--   the new start.
update {schema}.queue_tasks t set started_at = null
where id = any({bigints($1)}) and started_at is not null and to_jsonb(t) ->> 'completed_at' is null
returning id::text, 'ready' as state

-- name: extend
-- params: ids by
-- requires: column leased_until
-- official: what a worker does (leased_until); never made shorter
-- guard: only running jobs whose lease ends before that time
update {schema}.queue_tasks t set leased_until = now() + $2::interval
where id = any({bigints($1)}) and started_at is not null and to_jsonb(t) ->> 'completed_at' is null
  and (leased_until is null or leased_until < now() + $2::interval)
  and $2::interval > interval '0'
returning id::text, 'extended' as state

-- name: priority
-- params: ids n
-- requires: column priority
-- official: no (a plain column)
-- guard: only jobs of another priority that wait
with pick as (
    select id from {schema}.queue_tasks
    where id = any({bigints($1)}) and started_at is null and priority is distinct from $2::int for update skip locked
)
update {schema}.queue_tasks t set priority = $2::int from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: delete
-- params: ids
-- official: no (what a worker does with a finished task)
-- guard: only jobs that do not run, or whose lease has ended
with pick as (
    select t.id
-- part: queue_tasks_rows
    where t.id = any({bigints($1)}) and (t.state <> 'running' or t.lease_until < now())
    for update of t skip locked
)
delete from {schema}.queue_tasks t using pick where t.id = pick.id
returning t.id::text, 'deleted' as state

-- name: purge
-- params: queue states before limit
-- requires: column completed_at
-- official: no
-- guard: only completed jobs; failed ones where asked for
-- cost: reads the table by its ids
with pick as (
    select t.id
-- part: queue_tasks_rows
    where ($1::text is null or $1::text = 'queue_tasks')
      and t.completed_at < coalesce($3::timestamptz, now())
      and t.state = any(coalesce($2::text[], '{completed}')) and t.state in ('completed', 'failed')
    order by t.id limit coalesce($4::int, 1000) for update of t skip locked
)
delete from {schema}.queue_tasks t using pick where t.id = pick.id
returning t.id::text, 'purged' as state

-- name: purge_preview
-- params: queue states before
-- requires: column completed_at
-- cost: reads the whole table
select 'purged' as state, count(*) as n, t.state as why
-- part: queue_tasks_rows
where ($1::text is null or $1::text = 'queue_tasks')
  and t.completed_at < coalesce($3::timestamptz, now())
  and t.state = any(coalesce($2::text[], '{completed}')) and t.state in ('completed', 'failed')
group by 3
