-- adapter: simple_queue_table
-- title: simple_queue table (BlaboSoft)
-- format: 2
-- schema: public
-- id-type: uuid
-- timezone: UTC
-- tables: simple_queue
-- note: An item is popped once. There is no lease: nothing gives it back when its worker ends. Stale = popped over an
--   hour ago, which is a guess. A worker may keep its item's row locked while it works; such items are left alone.
-- note: Finished items are deleted; times are UTC without a zone, as the article writes them.
-- note: Columns that people add are used where the table has them: completed_at (finished items stay), leased_until
--   (stale = it has passed), attempts, max_attempts, priority, updated_at.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend: a running job has no lease that could end; release it by its id
-- lacks: pause: workers pop whatever waits: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: delete jobs that wait
-- lacks: discard: nothing keeps what was discarded: delete the jobs
-- lacks: priority: the oldest item is popped first (a column priority of your own is used)
-- lacks: reschedule: an item has no time at which it is due
-- lacks: purge: finished items are gone; delete --state failed removes failed ones

-- name: detect
select n.nspname::text as schema from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
-- part: has_typed_columns table='simple_queue'; n=5; columns=('id', 'uuid'), ('created_at', 'timestamp'),
--   ('processing_started_at', 'timestamp'), ('errors', 'text'), ('payload', 'text')
order by 1

-- name: version
-- which of the optional columns are there
select concat_ws(' ', max('completed_at') filter (where a.attname = 'completed_at'),
                 max('leased_until') filter (where a.attname = 'leased_until' and t.typname ~ '^timestamp(tz)?$'),
                 max('priority') filter (where a.attname = 'priority'
                                           and t.typname in ('int2', 'int4', 'int8'))) as version
-- part: columns_of table='simple_queue'

-- name: queues
select 'simple_queue' as queue, null::boolean as paused, 'one table is one queue; who pops decides' as info,
       exists (select from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
               where n.nspname = {schema_lit} and c.relname = 'simple_queue' and a.attname = 'completed_at'
                 and not a.attisdropped) as keeps

-- name: counts
-- no index finds popped items: the first 100000 rows are counted, more are estimated. The oldest item is read from the
-- index that a pop uses
with sums as (
    select count(*) as n, count(*) filter (where state = 'ready') as ready,
           count(*) filter (where state = 'running') as running, count(*) filter (where state = 'failed') as failed,
           count(*) filter (where state = 'completed') as completed,
           case when count(leased_until) > 0
                then count(*) filter (where state = 'running' and leased_until < now()) end as expired
    from (select t.state, t.leased_until
-- part: simple_queue_rows
          limit 100001) x
)
select 'simple_queue' as queue, 0::bigint as scheduled,
       case when s.n <= 100000 then s.ready
            else greatest(s.ready, (select c.reltuples::bigint from pg_catalog.pg_class c
                                    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                                    where n.nspname = {schema_lit} and c.relname = 'simple_queue')
                                   - s.running - s.failed - s.completed) end as ready,
       0::bigint as retry, s.running, s.failed,
       {ms((select t.created_at::timestamptz from {schema}.simple_queue t where t.processing_started_at is null
            order by t.processing_started_at, t.created_at limit 1))} as oldest_ms,
       s.expired, s.n > 100000 as approx
from sums s

-- name: counts_final
-- requires: column completed_at
-- cost: reads the whole table
select 'simple_queue' as queue, count(*) as completed, 0::bigint as cancelled
-- part: simple_queue_rows
where t.state = 'completed'

-- part: jobs_of_table columns=simple_queue_columns; rows=simple_queue_rows; created=t.created_at; tries=t.tries;
--   ids={uuids($11)}; before=({uuids(array[$14])})[1]; which=($1::text is null or $1::text = 'simple_queue') and
--   ($2::text[] is null or 'ready' = any($2::text[]) and t.processing_started_at is null or 'running' = any($2::text[])
--   and t.processing_started_at is not null and t.state = 'running' or 'completed' = any($2::text[]) and
--   t.processing_started_at is not null and t.state = 'completed' or 'failed' = any($2::text[]) and
--   t.processing_started_at is not null and t.errors is not null)

-- name: job (ids)
select
-- part: simple_queue_columns
       null::text as cursor,
       left(t.payload, 1000000) as payload,
       case when t.payload is null then '' else 'text' end as payload_format,
       octet_length(t.payload)::bigint as payload_size
-- part: simple_queue_rows
where t.id = any(({uuids($1)})[:1])

-- name: attempts (ids)
select greatest(t.tries, 1) as number, null::text as node, {ms(t.processing_started_at::timestamptz)} as started_ms,
       case when t.state = 'completed' then {ms(t.completed_at)} end as ended_ms, t.state as outcome,
       coalesce(t.errors, '') as error
-- part: simple_queue_rows
where t.id = any(({uuids($1)})[:1]) and t.processing_started_at is not null

-- name: groups (queue limit)
-- cost: no index finds the items that failed
with failed_jobs as materialized (
    select t.id, 'simple_queue' as queue, t.errors as error, t.processing_started_at::timestamptz as at
    from {schema}.simple_queue t where t.processing_started_at is not null and t.errors is not null
    order by t.processing_started_at desc limit 5000
)
-- part: groups newest=at

-- name: requeue (ids)
-- official: no (the article leaves it open)
-- guard: only failed jobs whose row no worker has locked
-- confirm: The text of the error is removed, because with it the item would look failed again as soon as it is popped.
-- part: pick rows=simple_queue_rows; ids={uuids($1)}; which=t.state = 'failed'
update {schema}.simple_queue t set processing_started_at = null, errors = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: rescue (ids)
-- official: no (the article leaves it open)
-- guard: only running jobs whose row no worker has locked
-- confirm: Nothing tells whether its worker is alive. If it is, the item is worked on twice.
-- part: pick rows=simple_queue_rows; ids={uuids($1)}; which=t.state = 'running'
update {schema}.simple_queue t set processing_started_at = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: extend (ids by)
-- requires: column leased_until
-- official: no (leased_until, as your workers set it; never made shorter)
-- guard: only running jobs whose lease ends before that time and whose row no worker has locked
-- part: pick rows=simple_queue_rows; ids={uuids($1)}; which=t.state = 'running' and coalesce(t.leased_until < now()
--   + $2::interval, true) and $2::interval > interval '0'
update {schema}.simple_queue t set leased_until = now() + $2::interval from pick where t.id = pick.id
returning t.id::text, 'extended' as state

-- name: priority (ids n)
-- requires: column priority
-- official: no (a plain column; your pop decides what it means)
-- guard: only jobs of another priority that wait
-- part: pick rows=simple_queue_rows; ids={uuids($1)}; which=t.state = 'ready' and t.priority is distinct from $2::int
update {schema}.simple_queue t set priority = $2::int from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: delete (ids)
-- official: no (what a worker does with a finished item)
-- guard: only jobs that do not run and whose row no worker has locked
-- part: pick rows=simple_queue_rows; ids={uuids($1)}; which=t.state <> 'running'
delete from {schema}.simple_queue t using pick where t.id = pick.id returning t.id::text, 'deleted' as state

-- name: purge (queue states before limit)
-- requires: column completed_at
-- official: no
-- guard: only completed jobs; failed ones where asked for, by the time when they were popped
-- cost: reads the whole table
-- part: purge_of_table table=simple_queue; rows=simple_queue_rows; first=; queue='simple_queue';
--   which=coalesce(t.completed_at, t.processing_started_at::timestamptz) < coalesce($3::timestamptz, now()) and t.state
--   = any(coalesce($2::text[], '{completed}')) and t.state in ('completed', 'failed')
