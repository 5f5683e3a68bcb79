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
select n.nspname::text as schema
from pg_catalog.pg_namespace n
where n.nspname !~ '^pg_' and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = 'simple_queue' and c.relkind in ('r', 'p')
                and 5 = (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values ('id', 'uuid'), ('created_at', 'timestamp'), ('processing_started_at', 'timestamp'),
                                ('errors', 'text'), ('payload', 'text')
                          ) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
order by 1

-- name: version
-- which of the optional columns are there
select concat_ws(' ', max('completed_at') filter (where a.attname = 'completed_at'),
                 max('leased_until') filter (where a.attname = 'leased_until' and t.typname ~ '^timestamp(tz)?$'),
                 max('priority') filter (where a.attname = 'priority'
                                           and t.typname in ('int2', 'int4', 'int8'))) as version
from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace join pg_catalog.pg_type t on t.oid = a.atttypid
where n.nspname = {schema_lit} and c.relname = 'simple_queue' and a.attnum > 0 and not a.attisdropped

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
           count(*) filter (where state = 'running') as running,
           count(*) filter (where state = 'failed') as failed,
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
                                    where n.nspname = {schema_lit} and c.relname
                                        = 'simple_queue') - s.running - s.failed
                              - s.completed) end as ready,
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

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first
-- Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key,
-- part: simple_queue_columns
           t.id::text as cursor
-- part: simple_queue_rows
    where ($1::text is null or $1::text = 'simple_queue')
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and t.processing_started_at is null
           or 'running' = any($2::text[]) and t.processing_started_at is not null and t.state = 'running'
           or 'completed' = any($2::text[]) and t.processing_started_at is not null and t.state = 'completed'
           or 'failed' = any($2::text[]) and t.processing_started_at is not null and t.errors is not null)
      and ($7::interval is null or t.created_at < now() - $7::interval)
      and ($8::interval is null or t.created_at > now() - $8::interval)
      and ($9::int is null or t.tries >= $9::int)
      and ($10::int is null or t.tries <= $10::int)
      and ($11::text[] is null or t.id = any({uuids($11)}))
      and ($14::text is null
           or t.id < case when $14::text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then $14::uuid end)
    order by t.id desc
-- part: jobs_found

-- name: job
-- params: ids
select
-- part: simple_queue_columns
       null::text as cursor,
       left(t.payload, 1000000) as payload,
       case when t.payload is null then '' else 'text' end as payload_format,
       octet_length(t.payload)::bigint as payload_size
-- part: simple_queue_rows
where t.id = any(({uuids($1)})[:1])

-- name: attempts
-- params: ids
select greatest(t.tries, 1) as number, null::text as node, {ms(t.processing_started_at::timestamptz)} as started_ms,
       case when t.state = 'completed' then {ms(t.completed_at)} end as ended_ms, t.state as outcome,
       coalesce(t.errors, '') as error
-- part: simple_queue_rows
where t.id = any(({uuids($1)})[:1]) and t.processing_started_at is not null

-- name: groups
-- params: queue limit
-- cost: no index finds the items that failed
with failed_jobs as materialized (
    select t.id, t.errors, t.processing_started_at as started, {error_key(t.errors)} as error_key
    from {schema}.simple_queue t
    where t.processing_started_at is not null and t.errors is not null
      and ($1::text is null or $1::text = 'simple_queue')
    order by t.processing_started_at desc limit 5000
)
select error_key, 'simple_queue' as queue, count(*) as n, (select count(*) from failed_jobs) >= 5000 as capped,
       {ms(min(started)::timestamptz)} as first_ms,
       {ms(max(started)::timestamptz)} as last_ms,
       (array_agg(left(errors, 1000) order by started desc))[1] as sample,
       (array_agg(id::text order by started desc))[1] as sample_id
from failed_jobs f group by error_key order by count(*) desc, error_key limit coalesce($2::int, 200)

-- name: requeue
-- params: ids
-- official: no (the article leaves it open)
-- guard: only failed jobs whose row no worker has locked
-- confirm: The text of the error is removed, because with it the item would look failed again as soon as it is popped.
with pick as (
    select id from {schema}.simple_queue
    where id = any({uuids($1)}) and processing_started_at is not null and errors is not null
    for update skip locked
)
update {schema}.simple_queue t set processing_started_at = null, errors = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: rescue
-- params: ids
-- official: no (the article leaves it open)
-- guard: only running jobs whose row no worker has locked
-- confirm: Nothing tells whether its worker is alive. If it is, the item is worked on twice.
with pick as (
    select t.id
-- part: simple_queue_rows
    where t.id = any({uuids($1)}) and t.state = 'running'
    for update of t skip locked
)
update {schema}.simple_queue t set processing_started_at = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: extend
-- params: ids by
-- requires: column leased_until
-- official: no (leased_until, as your workers set it; never made shorter)
-- guard: only running jobs whose lease ends before that time and whose row no worker has locked
with pick as (
    select t.id
-- part: simple_queue_rows
    where t.id = any({uuids($1)})
      and t.state = 'running' and coalesce(t.leased_until < now() + $2::interval, true) and $2::interval > interval '0'
    for update of t skip locked
)
update {schema}.simple_queue t set leased_until = now() + $2::interval from pick where t.id = pick.id
returning t.id::text, 'extended' as state

-- name: priority
-- params: ids n
-- requires: column priority
-- official: no (a plain column; your pop decides what it means)
-- guard: only jobs of another priority that wait
with pick as (
    select id from {schema}.simple_queue
    where id = any({uuids($1)}) and processing_started_at is null and priority is distinct from $2::int
    for update skip locked
)
update {schema}.simple_queue t set priority = $2::int from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: delete
-- params: ids
-- official: no (what a worker does with a finished item)
-- guard: only jobs that do not run and whose row no worker has locked
with pick as (
    select t.id
-- part: simple_queue_rows
    where t.id = any({uuids($1)}) and t.state <> 'running'
    for update of t skip locked
)
delete from {schema}.simple_queue t using pick where t.id = pick.id
returning t.id::text, 'deleted' as state

-- name: purge
-- params: queue states before limit
-- requires: column completed_at
-- official: no
-- guard: only completed jobs; failed ones where asked for, by the time when they were popped
-- cost: reads the whole table
with pick as (
    select t.id
-- part: simple_queue_rows
    where ($1::text is null or $1::text = 'simple_queue')
      and coalesce(t.completed_at, t.processing_started_at::timestamptz) < coalesce($3::timestamptz, now())
      and t.state = any(coalesce($2::text[], '{completed}')) and t.state in ('completed', 'failed')
    limit coalesce($4::int, 1000) for update of t skip locked
)
delete from {schema}.simple_queue t using pick where t.id = pick.id
returning t.id::text, 'purged' as state

-- name: purge_preview
-- params: queue states before
-- requires: column completed_at
-- cost: reads the whole table
select 'purged' as state, count(*) as n, t.state as why
-- part: simple_queue_rows
where ($1::text is null or $1::text = 'simple_queue')
  and coalesce(t.completed_at, t.processing_started_at::timestamptz) < coalesce($3::timestamptz, now())
  and t.state = any(coalesce($2::text[], '{completed}')) and t.state in ('completed', 'failed')
group by 3
