-- adapter: example_jobs
-- title: the shop's own jobs table
-- format: 2
-- schema: shop
-- id-type: bigint
-- states: scheduled=waiting ready=waiting retry=waiting running=working failed=broken completed=done
-- tables: jobs
-- note: A job counts as stale when it has run for an hour: the shop's workers take no longer.

-- name: detect
-- The schemas that have the table. It reads only the catalogs, because it runs in every database.
select n.nspname::text as schema
from pg_namespace n
where exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'jobs' and a.attname = 'task')
  and exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'jobs' and a.attname = 'args')
order by 1

-- name: queues
-- The kind of work is the queue here. It can't be paused, so paused is null.
select task as queue, null::boolean as paused from {schema}.jobs
where status <> 'done' group by task order by task

-- name: counts
-- Runs every second: only live states, from an index.
select task as queue,
       count(*) filter (where status = 'waiting' and due > now() and tries = 0) as scheduled,
       count(*) filter (where status = 'waiting' and due <= now()) as ready,
       count(*) filter (where status = 'waiting' and due > now() and tries > 0) as retry,
       count(*) filter (where status = 'working') as running,
       count(*) filter (where status = 'broken') as failed,
       {ms(min(due) filter (where status = 'waiting' and due <= now()))} as oldest_ms
from {schema}.jobs where status in ('waiting', 'working', 'broken') group by task order by task

-- name: counts_final
-- cost: reads all finished jobs
select task as queue, count(*) as completed, 0::bigint as cancelled
from {schema}.jobs where status = 'done' group by task order by task

-- name: jobs (queue states raw_states ids limit cursor)
-- The newest first. The next page begins below the last id. The condition on raw_states uses the index, that on states decides.
select id::text, task as queue, task as kind, s.state, null::int as priority, tries, 5 as max_tries,
       {ms(created)} as created_ms, {ms(due)} as run_after_ms,
       {ms(coalesce(ended, started, created))} as changed_ms,
       {ms(started)} as started_ms, {ms(ended)} as finished_ms,
       worker as node, null::bigint as lease, null::bigint as lease_until_ms,
       status = 'working' and started < now() - interval '1 hour' as stale,
       left(error, 300) as error, id::text as cursor
from {schema}.jobs
cross join lateral (select case status when 'working' then 'running' when 'broken' then 'failed' when 'done' then 'completed'
                                       else case when due <= now() then 'ready' when tries > 0 then 'retry' else 'scheduled' end
                           end as state) s
where ($1::text is null or task = $1::text)
  and ($2::text[] is null or s.state = any($2::text[]))
  and ($3::text[] is null or status = any($3::text[]))
  and ($4::text[] is null or id::text = any($4::text[]))
  and ($6::text is null or id < case when $6::text ~ '^[0-9]{1,18}$' then $6::text::bigint end)
order by id desc limit coalesce($5::int, 100)

-- name: job (ids)
select id::text, task as queue, task as kind,
       case status when 'working' then 'running' when 'broken' then 'failed' when 'done' then 'completed'
                   else case when due <= now() then 'ready' when tries > 0 then 'retry' else 'scheduled' end end as state,
       null::int as priority, tries, 5 as max_tries,
       {ms(created)} as created_ms, {ms(due)} as run_after_ms,
       {ms(coalesce(ended, started, created))} as changed_ms,
       {ms(started)} as started_ms, {ms(ended)} as finished_ms,
       worker as node, error, args::text as payload, 'json' as payload_format
from {schema}.jobs where id::text = any($1::text[])

-- name: groups (queue limit)
select {error_key(error)} as error_key, task as queue, count(*) as n,
       {ms(min(ended))} as first_ms, {ms(max(ended))} as last_ms,
       min(error) as sample, min(id)::text as sample_id
from (select * from {schema}.jobs where status = 'broken' and ($1::text is null or task = $1::text)
      order by id desc limit 5000) j
group by 1, 2 order by 3 desc limit coalesce($2::int, 100)

-- name: nodes
select worker as node, 'unknown' as state, count(*) as running, {ms(max(started))} as heartbeat_ms
from {schema}.jobs where status = 'working' group by worker order by worker

-- name: requeue (ids)
-- official: no, plain SQL
-- guard: only jobs that neither run nor are done
update {schema}.jobs set status = 'waiting', due = now(), tries = 0, ended = null
where id::text = any($1::text[]) and (status = 'broken' or (status = 'waiting' and due > now()))
returning id::text, 'ready' as state

-- name: rescue (ids)
-- official: no, plain SQL
-- guard: only jobs that have been running for an hour
-- confirm: the old worker may still be at it: the job may run twice
update {schema}.jobs set status = 'waiting', due = now(), worker = null, started = null
where id::text = any($1::text[]) and status = 'working' and started < now() - interval '1 hour'
returning id::text, 'ready' as state

-- name: delete (ids)
-- official: no, plain SQL
-- guard: only jobs that do not run
delete from {schema}.jobs where id::text = any($1::text[]) and status <> 'working'
returning id::text, 'deleted' as state

-- name: purge (queue states before limit)
-- official: no, plain SQL
with old as (
    select id from {schema}.jobs
    where status = 'done' and 'completed' = any($2::text[]) and ended < $3::timestamptz
      and ($1::text is null or task = $1::text)
    order by ended limit $4::int for update skip locked
)
delete from {schema}.jobs j using old where j.id = old.id
returning j.id::text, 'deleted' as state

-- name: purge_preview (queue states before)
select 'deleted' as state, count(*) as n, null::text as why from {schema}.jobs
where status = 'done' and 'completed' = any($2::text[]) and ended < $3::timestamptz
  and ($1::text is null or task = $1::text)
