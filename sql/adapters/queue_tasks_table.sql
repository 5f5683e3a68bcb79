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
select n.nspname::text as schema from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
-- part: has_typed_columns table='queue_tasks'; n=4; columns=('id', 'int8'), ('task_name', 'text'), ('created_at',
--   'timestamptz'), ('started_at', 'timestamptz')
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

-- part: jobs_of_table columns=queue_tasks_columns; rows=queue_tasks_rows; created=t.created_at; tries=case when
--   t.completed_at is null then 0 else 1 end; ids={bigints($11)}; before=({bigints(array[$14])})[1]; which=($1::text is
--   null or $1::text = 'queue_tasks') and ($2::text[] is null or 'ready' = any($2::text[]) and t.started_at is null and
--   t.state = 'ready' or 'running' = any($2::text[]) and t.started_at is not null and t.state = 'running' or 'failed' =
--   any($2::text[]) and t.state = 'failed' or 'completed' = any($2::text[]) and t.state = 'completed')

-- name: job (ids)
select
-- part: queue_tasks_columns
       null::text as cursor, t.task_name as unique_key, left(p.payload::text, 1000000) as payload,
       'json' as payload_format, octet_length(p.payload::text)::bigint as payload_size
-- part: queue_tasks_rows
cross join lateral (select t.record - array['id', 'task_name', 'created_at', 'started_at', 'leased_until', 'priority',
                                            'completed_at', 'success', 'failure'] as payload) p
where t.id = any(({bigints($1)})[:1])

-- name: groups (queue limit)
-- requires: column failure
-- cost: no index finds the tasks that failed
with failed_jobs as materialized (
    select t.id, 'queue_tasks' as queue, t.failure as error, t.completed_at as at
-- part: queue_tasks_rows
    where t.state = 'failed' order by t.completed_at desc limit 5000
)
-- part: groups newest=at

-- name: requeue (ids)
-- requires: column completed_at
-- official: no (the article leaves it open)
-- guard: only failed jobs
-- part: pick rows=queue_tasks_rows; ids={bigints($1)}; which=t.state = 'failed'
update {schema}.queue_tasks t set started_at = null, completed_at = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: rescue (ids)
-- official: no (the system waits until the lease has ended)
-- guard: only running jobs
-- confirm: Its worker may be alive: then the task is done twice. When that worker ends, it does not delete the task of
--   the new start.
update {schema}.queue_tasks t set started_at = null
where id = any({bigints($1)}) and started_at is not null and to_jsonb(t) ->> 'completed_at' is null
returning id::text, 'ready' as state

-- name: extend (ids by)
-- requires: column leased_until
-- official: what a worker does (leased_until); never made shorter
-- guard: only running jobs whose lease ends before that time
update {schema}.queue_tasks t set leased_until = now() + $2::interval
where id = any({bigints($1)}) and started_at is not null and to_jsonb(t) ->> 'completed_at' is null
  and (leased_until is null or leased_until < now() + $2::interval) and $2::interval > interval '0'
returning id::text, 'extended' as state

-- name: priority (ids n)
-- requires: column priority
-- official: no (a plain column)
-- guard: only jobs of another priority that wait
-- part: pick rows=queue_tasks_rows; ids={bigints($1)}; which=t.state = 'ready' and t.priority is distinct from $2::int
update {schema}.queue_tasks t set priority = $2::int from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: delete (ids)
-- official: no (what a worker does with a finished task)
-- guard: only jobs that do not run, or whose lease has ended
-- part: pick rows=queue_tasks_rows; ids={bigints($1)}; which=(t.state <> 'running' or t.lease_until < now())
delete from {schema}.queue_tasks t using pick where t.id = pick.id returning t.id::text, 'deleted' as state

-- name: purge (queue states before limit)
-- requires: column completed_at
-- official: no
-- guard: only completed jobs; failed ones where asked for
-- cost: reads the table by its ids
-- part: purge_of_table table=queue_tasks; rows=queue_tasks_rows; first=order by t.id; queue='queue_tasks';
--   which=t.completed_at < coalesce($3::timestamptz, now()) and t.state = any(coalesce($2::text[], '{completed}')) and
--   t.state in ('completed', 'failed')
