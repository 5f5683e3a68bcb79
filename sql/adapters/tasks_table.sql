-- adapter: tasks_table
-- title: tasks table (Teti)
-- format: 2
-- schema: public
-- id-type: bigint
-- tables: tasks
-- note: A worker of this kind takes a task, works and finishes it in one transaction. Until then the task is shown as
--   waiting, only its row is locked, and a crash gives it back. A task with status running was committed before its
--   work was done.
-- note: There is no lease and no name of a worker; stale = running for over an hour, which is a guess.
-- note: Columns that the article suggests are used where the table has them: retry_count, priority, error (also
--   error_message, last_error).
-- note: The table has one index, that of its ids: the numbers are those of the newest 100000 tasks.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend: a running job has no lease that could end; release it by its id
-- lacks: pause: workers take whatever waits: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: discard or delete jobs that wait
-- lacks: reschedule: a task has no time at which it is due

-- name: detect
select n.nspname::text as schema from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
-- part: has_typed_columns table='tasks'; n=5; columns=('id', 'int4'), ('status', 'varchar'), ('payload', 'jsonb'),
--   ('created_at', 'timestamptz'), ('updated_at', 'timestamptz')
  and exists (select from pg_catalog.pg_class c
              join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'status'
              join pg_catalog.pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
              where c.relnamespace = n.oid and c.relname = 'tasks' and c.relkind in ('r', 'p')
                and pg_catalog.pg_get_expr(d.adbin, d.adrelid) like '''pending''%')
order by 1

-- name: version
-- which of the optional columns are there
select concat_ws(' ', max('priority') filter (where a.attname = 'priority' and t.typname in ('int2', 'int4', 'int8')),
                 max('error') filter (where a.attname in ('error', 'error_message', 'last_error'))) as version
-- part: columns_of table='tasks'

-- name: queues
select 'tasks' as queue, null::boolean as paused, 'one table is one queue; who takes from it decides' as info

-- name: counts
-- no index has the status: only the newest 100000 ids are counted, so that the cost is bounded; approx if there are
-- more
with by_state as (
    select state, count(*) as n, min(created_at) as oldest
    from (select t.state, t.created_at
-- part: tasks_rows
          order by t.id desc limit 100001) x group by state
)
select 'tasks' as queue, 0::bigint as scheduled, coalesce(sum(n) filter (where state = 'ready'), 0)::bigint as ready,
       0::bigint as retry, coalesce(sum(n) filter (where state = 'running'), 0)::bigint as running,
       coalesce(sum(n) filter (where state = 'failed'), 0)::bigint as failed,
       {ms(min(oldest) filter (where state = 'ready'))} as oldest_ms,
       coalesce(sum(n) filter (where state = 'blocked'), 0)::bigint as blocked,
       coalesce(sum(n) > 100000, false) as approx
from by_state b

-- name: counts_final
-- cost: reads the whole table
select 'tasks' as queue, count(*) filter (where t.state = 'completed') as completed,
       count(*) filter (where t.state = 'cancelled') as cancelled
-- part: tasks_rows

-- part: jobs_of_table columns=tasks_columns; rows=tasks_rows; created=t.created_at; tries=t.retry_count;
--   ids={bigints($11)}; before=({bigints(array[$14])})[1]; which=($1::text is null or $1::text = 'tasks') and
--   ($2::text[] is null or t.state = any($2::text[]))

-- name: job (ids)
select
-- part: tasks_columns
       null::text as cursor,
       left(t.payload::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(t.payload::text)::bigint as payload_size, t.status::text as raw_state
-- part: tasks_rows
where t.id = any(({bigints($1)})[:1])

-- name: groups (queue limit)
-- requires: column error
-- cost: no index finds the tasks that failed
with failed_jobs as materialized (
    select t.id, 'tasks' as queue, t.error, t.updated_at as at
-- part: tasks_rows
    where t.state = 'failed' order by t.id desc limit 5000
)
-- part: groups newest=at

-- name: requeue (ids)
-- official: no (the article leaves that to a job of your own)
-- guard: only failed jobs whose row no transaction has locked
-- part: pick rows=tasks_rows; ids={bigints($1)}; which=t.state = 'failed'
update {schema}.tasks t set status = 'pending', updated_at = now() from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: rescue (ids)
-- official: no (the system never gives a running task back)
-- guard: only running jobs whose row no transaction has locked
-- confirm: Nothing tells whether its worker is alive. If it is, the task is done twice, and the first to finish marks
--   it done.
-- part: pick rows=tasks_rows; ids={bigints($1)}; which=t.state = 'running'
update {schema}.tasks t set status = 'pending', updated_at = now() from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: discard (ids)
-- official: no (the status that its workers give to what failed)
-- guard: only jobs that wait and whose row no worker has locked
-- part: pick rows=tasks_rows; ids={bigints($1)}; which=t.state = 'ready'
update {schema}.tasks t set status = 'failed', updated_at = now() from pick where t.id = pick.id
returning t.id::text, 'failed' as state

-- name: priority (ids n)
-- requires: column priority
-- official: no (a plain column)
-- guard: only jobs of another priority that wait and whose row no worker has locked
-- part: pick rows=tasks_rows; ids={bigints($1)}; which=t.state = 'ready' and t.priority is distinct from $2::int
update {schema}.tasks t set priority = $2::int from pick where t.id = pick.id returning t.id::text, 'ready' as state

-- name: delete (ids)
-- official: no
-- guard: only jobs that do not run, have a status, and whose row no worker has locked
-- part: pick rows=tasks_rows; ids={bigints($1)}; which=t.status is not null and t.state <> 'running'
delete from {schema}.tasks t using pick where t.id = pick.id returning t.id::text, 'deleted' as state

-- name: purge (queue states before limit)
-- official: no
-- guard: only completed or cancelled jobs; failed ones where asked for
-- cost: reads the table by its ids
-- part: purge_of_table table=tasks; rows=tasks_rows; first=order by t.id; queue='tasks'; which=t.state in ('completed',
--   'cancelled', 'failed') and t.state = any(coalesce($2::text[], '{completed,cancelled}')) and coalesce(t.updated_at,
--   t.created_at) < coalesce($3::timestamptz, now())
