-- adapter: seed_pkgsite_priority
-- title: queue_tasks table with priorities (pkgsite)
-- format: 2
-- schema: public
-- id-type: bigint
-- tables: queue_tasks
-- note: A task is deleted when its worker ends, whatever came out: nothing is failed or finished here, and nothing tells who works.
-- note: Five minutes after its start another worker may take a task. The smallest priority is taken first.

-- name: detect
select n.nspname::text as schema
from pg_catalog.pg_namespace n
where n.nspname !~ '^pg_' and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = 'queue_tasks' and c.relkind in ('r', 'p')
                and 5 = (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values ('id', 'int8'), ('task_name', 'text'), ('created_at', 'timestamptz'),
                                ('started_at', 'timestamptz'), ('priority', 'int4')
                          ) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
  and not exists (select from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'queue_tasks' and c.relkind in ('r', 'p')
                and a.attname in ('leased_until') and not a.attisdropped)
order by 1

-- name: queues
select 'queue_tasks' as queue, null::boolean as paused, 'smaller priorities first; one table is one queue' as info

-- name: counts
-- by the index of the dequeue; more than 100000 waiting tasks are estimated. A task whose worker stalled counts as
-- running until another takes it
with retrying as (select count(*) as n from (select from {schema}.queue_tasks where started_at is null limit 100001) x),
     sample as (select count(*) as n from {schema}.queue_tasks where started_at is not null)
select 'queue_tasks' as queue, 0::bigint as scheduled,
       case when r.n <= 100000 then r.n
            else greatest(r.n, (select c.reltuples::bigint from pg_catalog.pg_class c
                                join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                                where n.nspname = {schema_lit} and c.relname = 'queue_tasks') - s.n) end as ready,
       0::bigint as retry, s.n as running, 0::bigint as failed,
       {ms((select t.created_at from {schema}.queue_tasks t where t.started_at is null
            order by t.started_at, t.created_at limit 1))} as oldest_ms,
       r.n > 100000 as approx
from retrying r, sample s

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- newest first by the primary key. Kind, error and words are looked for in the newest n of the rows that all else
-- leaves. A row without an id says where to go on
with looked_at as materialized (
    select t.id as key, t.id::text as id, 'queue_tasks' as queue, t.task_name as kind,
           case when t.started_at is null then 'ready' else 'running' end as state, t.priority::int as priority,
           0 as tries, null::int as max_tries, {ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
           {ms(coalesce(t.started_at, t.created_at))} as changed_ms,
           {ms(t.started_at)} as started_ms, null::bigint as finished_ms, null::text as node,
           case when t.started_at is not null
                then {ms(t.started_at)} + 300000 end as lease_until_ms,
           '' as error, t.started_at is not null and t.started_at < now() - interval '5 minutes' as stale,
           t.id::text as cursor
    from {schema}.queue_tasks t
    where ($1::text is null or $1::text = 'queue_tasks')
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and t.started_at is null
           or 'running' = any($2::text[]) and t.started_at is not null)
      and ($7::interval is null or t.created_at < now() - $7::interval)
      and ($8::interval is null or t.created_at > now() - $8::interval)
      and ($9::int is null or 0 >= $9::int)
      and ($10::int is null or 0 <= $10::int)
      and ($11::text[] is null
           or t.id = any(array(select i::bigint from unnest($11::text[]) i where i ~ '^[0-9]{1,18}$')))
      and ($14::text is null
           or t.id < case when $14::text ~ '^-?[0-9]{1,19}$' then $14::bigint end)
    order by t.id desc
    limit case when num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) = 0 then coalesce($13::int, 100)
               else coalesce($12::int, 10000) end
), matching as materialized (
    select * from looked_at
    where ($3::text is null or kind = $3::text)
      and ($4::text is null
           or case when $4::text like '~%' then position(lower(substr($4::text, 2)) in lower(error)) > 0
                                    else {error_key(error)} = {error_key($4::text)} end)
      and ($5::text[] is null or not exists (select from unnest($5::text[]) x
                       where position(lower(x) in lower(concat_ws(' ', id, queue, kind, error))) = 0))
      and ($6::text[] is null or not exists (select from unnest($6::text[]) x
                       where position(lower(x) in lower(concat_ws(' ', id, queue, kind, error))) > 0))
    order by key desc limit coalesce($13::int, 100)
)
select id, queue, kind, state, priority, tries, max_tries, created_ms, run_after_ms, changed_ms, started_ms,
       finished_ms, node, lease_until_ms, left(error, 300) as error, stale, cursor
from (select 1 as part, f.* from matching f
      union all
      (select 2, w.key, null, '', '', '', null, 0, null, null, null, null, null, null, null, null, '', null, w.cursor
       from looked_at w where num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) > 0
                and (select count(*) from matching) < coalesce($13::int, 100)
                and (select count(*) from looked_at) = coalesce($12::int, 10000)
       order by w.key limit 1)) x
order by part, key desc

-- name: job
-- params: ids
select t.id::text as id, 'queue_tasks' as queue, t.task_name as kind,
       case when t.started_at is null then 'ready' else 'running' end as state, t.priority::int as priority, 0 as tries,
       null::int as max_tries, {ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
       {ms(coalesce(t.started_at, t.created_at))} as changed_ms,
       {ms(t.started_at)} as started_ms, null::bigint as finished_ms, null::text as node,
       case when t.started_at is not null
            then {ms(t.started_at)} + 300000 end as lease_until_ms,
       '' as error, t.started_at is not null and t.started_at < now() - interval '5 minutes' as stale,
       null::text as cursor, t.task_name as unique_key, left(p.payload::text, 1000000) as payload,
       'json' as payload_format, octet_length(p.payload::text)::bigint as payload_size
from {schema}.queue_tasks t
cross join lateral (select to_jsonb(t) - array['id', 'task_name', 'created_at', 'started_at', 'priority'] as payload) p
where t.id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$' limit 1))

-- name: rescue
-- params: ids
-- official: no (the system waits until five minutes are over)
-- guard: only running jobs
-- confirm: Its worker may be alive: then the task is done twice. What the worker deletes when it ends is not the new start.
update {schema}.queue_tasks set started_at = null
where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$')) and started_at is not null
returning id::text, 'ready' as state

-- name: priority
-- params: ids n
-- official: no (a plain column)
-- guard: only jobs of another priority that wait
with pick as (
    select id from {schema}.queue_tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and started_at is null and priority is distinct from $2::int for update skip locked
)
update {schema}.queue_tasks t set priority = $2::int from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: delete
-- params: ids
-- official: no (what a worker does with a finished task)
-- guard: only jobs that wait, or whose worker has stalled
with pick as (
    select id from {schema}.queue_tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and not coalesce(started_at is not null and started_at >= now() - interval '5 minutes', false)
    for update skip locked
)
delete from {schema}.queue_tasks t using pick where t.id = pick.id
returning t.id::text, 'deleted' as state
