-- adapter: seed_pkgsite_leased
-- title: queue_tasks table with leases (pkgsite)
-- format: 2
-- schema: public
-- id-type: bigint
-- tables: queue_tasks
-- note: A task is deleted when its worker ends, whether it succeeded or not: no task is failed or finished here, and
--   nothing tells who works.
-- note: Another worker may take a task once leased_until has passed; a task without it is never given back.

-- name: detect
select n.nspname::text as schema
from pg_catalog.pg_namespace n
where n.nspname !~ '^pg_' and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = 'queue_tasks' and c.relkind in ('r', 'p')
                and 5 = (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values ('id', 'int8'), ('task_name', 'text'), ('created_at', 'timestamptz'),
                                ('started_at', 'timestamptz'), ('leased_until', 'timestamptz')
                          ) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
order by 1

-- name: queues
select 'queue_tasks' as queue, null::boolean as paused, 'one table is one queue' as info, false as keeps

-- name: counts
-- part: queue_tasks_counts

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- newest first by the primary key. Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key, t.id::text as id, 'queue_tasks' as queue, t.task_name as kind,
           case when t.started_at is null then 'ready' else 'running' end as state, null::int as priority, 0 as tries,
           null::int as max_tries, {ms(t.created_at)} as created_ms,
           null::bigint as run_after_ms,
           {ms(coalesce(t.started_at, t.created_at))} as changed_ms,
           {ms(t.started_at)} as started_ms, null::bigint as finished_ms, null::text as node,
           case when t.started_at is not null then {ms(t.leased_until)} end as lease_until_ms,
           '' as error, t.started_at is not null and t.leased_until < now() as stale, t.id::text as cursor
-- part: queue_tasks_filter
-- part: jobs_found

-- name: job
-- params: ids
select t.id::text as id, 'queue_tasks' as queue, t.task_name as kind,
       case when t.started_at is null then 'ready' else 'running' end as state, null::int as priority, 0 as tries,
       null::int as max_tries, {ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
       {ms(coalesce(t.started_at, t.created_at))} as changed_ms,
       {ms(t.started_at)} as started_ms, null::bigint as finished_ms, null::text as node,
       case when t.started_at is not null then {ms(t.leased_until)} end as lease_until_ms,
       '' as error, t.started_at is not null and t.leased_until < now() as stale, null::text as cursor,
       t.task_name as unique_key, left(p.payload::text, 1000000) as payload,
       'json' as payload_format, octet_length(p.payload::text)::bigint as payload_size
from {schema}.queue_tasks t
cross join lateral (select to_jsonb(t) - array['id', 'task_name', 'created_at', 'started_at',
                                               'leased_until'] as payload) p
where t.id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$' limit 1))

-- name: rescue
-- params: ids
-- official: no (the system waits until leased_until has passed)
-- guard: only running jobs
-- confirm: Its worker may be alive: then the task is done twice. When that worker ends, it does not delete the task of
--   the new start.
update {schema}.queue_tasks set started_at = null, leased_until = null
where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$')) and started_at is not null
returning id::text, 'ready' as state

-- name: extend
-- params: ids by
-- official: what a worker does (leased_until); never made shorter
-- guard: only running jobs whose lease ends before that time
update {schema}.queue_tasks set leased_until = now() + $2::interval
where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
  and started_at is not null and (leased_until is null or leased_until < now() + $2::interval)
  and $2::interval > interval '0'
returning id::text, 'extended' as state

-- name: delete
-- params: ids
-- official: no (what a worker does with a finished task)
-- guard: only jobs that wait, or whose worker has stalled
with pick as (
    select id from {schema}.queue_tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and not coalesce(started_at is not null and leased_until >= now(), started_at is not null)
    for update skip locked
)
delete from {schema}.queue_tasks t using pick where t.id = pick.id
returning t.id::text, 'deleted' as state
