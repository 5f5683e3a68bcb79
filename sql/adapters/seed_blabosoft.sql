-- adapter: seed_blabosoft
-- title: simple_queue table (BlaboSoft)
-- format: 2
-- schema: public
-- id-type: uuid
-- timezone: UTC
-- tables: simple_queue
-- note: An item is popped once. There is no lease: nothing gives it back when its worker ends. Stale = popped over an
--   hour ago, which is a guess. A worker may keep its item's row locked while it works; such items are left alone.
-- note: Finished items are deleted; times are UTC without a zone, as the article writes them.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend: a running job has no lease that could end; release it by its id
-- lacks: pause: workers pop whatever waits: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: delete jobs that wait
-- lacks: discard: nothing keeps what was discarded: delete the jobs
-- lacks: priority: the oldest item is popped first
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

-- name: queues
select 'simple_queue' as queue, null::boolean as paused, 'one table is one queue; who pops decides' as info,
       false as keeps

-- name: counts
-- no index finds popped items: the first 100000 rows are counted, more are estimated. The oldest item is read from the
-- index that a pop uses
with sums as (
    select count(*) as n, count(*) filter (where started is null) as ready,
           count(*) filter (where started is not null and not failed) as running,
           count(*) filter (where started is not null and failed) as failed
    from (select processing_started_at as started, errors is not null as failed from {schema}.simple_queue
          limit 100001) x
)
select 'simple_queue' as queue, 0::bigint as scheduled,
       case when s.n <= 100000 then s.ready
            else greatest(s.ready, (select c.reltuples::bigint from pg_catalog.pg_class c
                                    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                                    where n.nspname = {schema_lit} and c.relname
                                        = 'simple_queue') - s.running - s.failed) end as ready,
       0::bigint as retry, s.running, s.failed,
       {ms((select t.created_at::timestamptz from {schema}.simple_queue t where t.processing_started_at is null
            order by t.processing_started_at, t.created_at limit 1))} as oldest_ms,
       s.n > 100000 as approx
from sums s

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first
-- Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key, t.id::text as id, 'simple_queue' as queue, '' as kind,
           case when t.processing_started_at is null then 'ready' when t.errors is null then 'running'
                else 'failed' end as state,
           null::int as priority, case when t.processing_started_at is null then 0 else 1 end as tries,
           null::int as max_tries, {ms(t.created_at::timestamptz)} as created_ms,
           null::bigint as run_after_ms,
           {ms(coalesce(t.processing_started_at, t.created_at)::timestamptz)} as changed_ms,
           {ms(t.processing_started_at::timestamptz)} as started_ms,
           null::bigint as finished_ms, null::text as node, null::bigint as lease_until_ms,
           coalesce(t.errors, '') as error,
           t.errors is null and t.processing_started_at < now() - interval '1 hour' as stale, t.id::text as cursor
    from {schema}.simple_queue t
    where ($1::text is null or $1::text = 'simple_queue')
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and t.processing_started_at is null
           or 'running' = any($2::text[]) and t.processing_started_at is not null and t.errors is null
           or 'failed' = any($2::text[]) and t.processing_started_at is not null and t.errors is not null)
      and ($7::interval is null or t.created_at < now() - $7::interval)
      and ($8::interval is null or t.created_at > now() - $8::interval)
      and ($9::int is null or case when t.processing_started_at is null then 0 else 1 end >= $9::int)
      and ($10::int is null or case when t.processing_started_at is null then 0 else 1 end <= $10::int)
      and ($11::text[] is null
           or t.id = any(array(select i::uuid from unnest($11::text[]) i
                               where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')))
      and ($14::text is null
           or t.id < case when $14::text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then $14::uuid end)
    order by t.id desc
-- part: jobs_found

-- name: job
-- params: ids
select t.id::text as id, 'simple_queue' as queue, '' as kind,
       case when t.processing_started_at is null then 'ready' when t.errors is null then 'running'
            else 'failed' end as state,
       null::int as priority, case when t.processing_started_at is null then 0 else 1 end as tries,
       null::int as max_tries, {ms(t.created_at::timestamptz)} as created_ms, null::bigint as run_after_ms,
       {ms(coalesce(t.processing_started_at, t.created_at)::timestamptz)} as changed_ms,
       {ms(t.processing_started_at::timestamptz)} as started_ms, null::bigint as finished_ms,
       null::text as node, null::bigint as lease_until_ms, coalesce(t.errors, '') as error,
       t.errors is null and t.processing_started_at < now() - interval '1 hour' as stale, null::text as cursor,
       left(t.payload, 1000000) as payload,
       case when t.payload is null then '' else 'text' end as payload_format,
       octet_length(t.payload)::bigint as payload_size
from {schema}.simple_queue t
where t.id = any(array(select i::uuid from unnest($1::text[]) i
                       where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' limit 1))

-- name: attempts
-- params: ids
select 1 as number, null::text as node, {ms(t.processing_started_at::timestamptz)} as started_ms,
       null::bigint as ended_ms,
       case when t.errors is null then 'running' else 'failed' end as outcome, coalesce(t.errors, '') as error
from {schema}.simple_queue t
where t.id = any(array(select i::uuid from unnest($1::text[]) i
                       where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' limit 1))
  and t.processing_started_at is not null

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
    where id = any(array(select i::uuid from unnest($1::text[]) i
                         where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
      and processing_started_at is not null and errors is not null
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
    select id from {schema}.simple_queue
    where id = any(array(select i::uuid from unnest($1::text[]) i
                         where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
      and processing_started_at is not null and errors is null
    for update skip locked
)
update {schema}.simple_queue t set processing_started_at = null from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: delete
-- params: ids
-- official: no (what a worker does with a finished item)
-- guard: only waiting or failed jobs whose row no worker has locked
with pick as (
    select id from {schema}.simple_queue
    where id = any(array(select i::uuid from unnest($1::text[]) i
                         where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
      and (processing_started_at is null or errors is not null)
    for update skip locked
)
delete from {schema}.simple_queue t using pick where t.id = pick.id
returning t.id::text, 'deleted' as state
