-- adapter: seed_teti
-- title: tasks table (Teti)
-- format: 2
-- schema: public
-- id-type: bigint
-- tables: tasks
-- note: A worker of this kind takes a task, works and finishes it in one transaction. Until then the task is shown as
--   waiting, only its row is locked, and a crash gives it back. A task with status running was committed before its
--   work was done.
-- note: There is no lease, no name of a worker and no error text; stale = running for over an hour, which is a guess.
-- note: The table has one index, that of its ids: the numbers are those of the newest 100000 tasks.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend: a running job has no lease that could end: nothing takes it away from its worker
-- lacks: pause: workers take whatever waits: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: discard or delete jobs that wait
-- lacks: reschedule: a task has no time at which it is due

-- name: detect
select n.nspname::text as schema
from pg_catalog.pg_namespace n
where n.nspname !~ '^pg_' and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = 'tasks' and c.relkind in ('r', 'p')
                and 5 = (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values ('id', 'int4'), ('status', 'varchar'), ('payload', 'jsonb'),
                                ('created_at', 'timestamptz'), ('updated_at', 'timestamptz')
                          ) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
  and exists (select from pg_catalog.pg_class c
              join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = 'status'
              join pg_catalog.pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
              where c.relnamespace = n.oid and c.relname = 'tasks' and c.relkind in ('r', 'p')
                and pg_catalog.pg_get_expr(d.adbin, d.adrelid) like '''pending''%')
order by 1

-- name: queues
select 'tasks' as queue, null::boolean as paused, 'one table is one queue; who takes from it decides' as info

-- name: counts
-- no index has the status: only the newest 100000 ids are counted, so that the cost is bounded; approx if there are
-- more
with by_status as (
    select status, count(*) as n, min(created_at) as oldest
    from (select status, created_at from {schema}.tasks order by id desc limit 100001) x group by status
)
select 'tasks' as queue, 0::bigint as scheduled, coalesce(sum(n) filter (where status = 'pending'), 0)::bigint as ready,
       0::bigint as retry, coalesce(sum(n) filter (where status = 'in_progress'), 0)::bigint as running,
       coalesce(sum(n) filter (where status = 'failed'), 0)::bigint as failed,
       {ms(min(oldest) filter (where status = 'pending'))} as oldest_ms,
       coalesce(sum(n) filter (where status not in ('pending', 'in_progress', 'failed', 'completed', 'cancelled',
                                                    'canceled')), 0)::bigint
           as blocked,
       coalesce(sum(n) > 100000, false) as approx
from by_status t

-- name: counts_final
-- cost: reads the whole table
select 'tasks' as queue, count(*) filter (where status = 'completed') as completed,
       count(*) filter (where status in ('cancelled', 'canceled')) as cancelled
from {schema}.tasks

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- newest first by the primary key. Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key, t.id::text as id, 'tasks' as queue, coalesce(t.payload ->> 'task_type', '') as kind,
           case t.status when 'pending' then 'ready' when 'in_progress' then 'running' when 'failed' then 'failed'
                when 'completed' then 'completed' when 'cancelled' then 'cancelled' when 'canceled' then 'cancelled'
                else 'blocked' end as state,
           null::int as priority, coalesce(t.retry_count, 0)::int as tries, null::int as max_tries,
           {ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
           {ms(t.updated_at)} as changed_ms,
           case when t.status = 'in_progress' then {ms(t.updated_at)} end as started_ms,
           case when t.status in ('completed', 'failed') then {ms(t.updated_at)} end as finished_ms,
           null::text as node, null::bigint as lease_until_ms, '' as error,
           t.status = 'in_progress' and t.updated_at < now() - interval '1 hour' as stale, t.id::text as cursor
    from (select null::int as retry_count) d
    cross join lateral (select id, status, payload, created_at, updated_at, retry_count from {schema}.tasks) t
    where ($1::text is null or $1::text = 'tasks')
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and t.status = 'pending'
           or 'running' = any($2::text[]) and t.status = 'in_progress'
           or 'failed' = any($2::text[]) and t.status = 'failed'
           or 'completed' = any($2::text[]) and t.status = 'completed'
           or 'cancelled' = any($2::text[]) and t.status in ('cancelled', 'canceled')
           or 'blocked' = any($2::text[]) and t.status not in ('pending', 'in_progress', 'failed', 'completed',
                                                               'cancelled', 'canceled'))
      and ($7::interval is null or t.created_at < now() - $7::interval)
      and ($8::interval is null or t.created_at > now() - $8::interval)
      and ($9::int is null or coalesce(t.retry_count, 0)::int >= $9::int)
      and ($10::int is null or coalesce(t.retry_count, 0)::int <= $10::int)
      and ($11::text[] is null
           or t.id = any(array(select i::bigint from unnest($11::text[]) i where i ~ '^[0-9]{1,18}$')))
      and ($14::text is null
           or t.id < case when $14::text ~ '^-?[0-9]{1,19}$' then $14::bigint end)
    order by t.id desc
-- part: jobs_found

-- name: job
-- params: ids
select t.id::text as id, 'tasks' as queue, coalesce(t.payload ->> 'task_type', '') as kind,
       case t.status when 'pending' then 'ready' when 'in_progress' then 'running' when 'failed' then 'failed'
                when 'completed' then 'completed' when 'cancelled' then 'cancelled' when 'canceled' then 'cancelled'
            else 'blocked' end as state,
       null::int as priority, coalesce(t.retry_count, 0)::int as tries, null::int as max_tries,
       {ms(t.created_at)} as created_ms, null::bigint as run_after_ms,
       {ms(t.updated_at)} as changed_ms,
       case when t.status = 'in_progress' then {ms(t.updated_at)} end as started_ms,
       case when t.status in ('completed', 'failed') then {ms(t.updated_at)} end as finished_ms,
       null::text as node, null::bigint as lease_until_ms, '' as error,
       t.status = 'in_progress' and t.updated_at < now() - interval '1 hour' as stale, null::text as cursor,
       left(t.payload::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(t.payload::text)::bigint as payload_size, t.status::text as raw_state
from (select null::int as retry_count) d
    cross join lateral (select id, status, payload, created_at, updated_at, retry_count from {schema}.tasks) t
where t.id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$' limit 1))

-- name: requeue
-- params: ids
-- official: no (the article leaves that to a job of your own)
-- guard: only failed jobs whose row no transaction has locked
with pick as (
    select id from {schema}.tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and status = 'failed' for update skip locked
)
update {schema}.tasks t set status = 'pending', updated_at = now() from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: rescue
-- params: ids
-- official: no (the system never gives a running task back)
-- guard: only running jobs whose row no transaction has locked
-- confirm: Nothing tells whether its worker is alive. If it is, the task is done twice, and the first to finish marks
--   it done.
with pick as (
    select id from {schema}.tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and status = 'in_progress' for update skip locked
)
update {schema}.tasks t set status = 'pending', updated_at = now() from pick where t.id = pick.id
returning t.id::text, 'ready' as state

-- name: discard
-- params: ids
-- official: no (the status that its workers give to what failed)
-- guard: only jobs that wait and whose row no worker has locked
with pick as (
    select id from {schema}.tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and status = 'pending' for update skip locked
)
update {schema}.tasks t set status = 'failed', updated_at = now() from pick where t.id = pick.id
returning t.id::text, 'failed' as state

-- name: delete
-- params: ids
-- official: no
-- guard: only jobs that do not run and whose row no worker has locked
with pick as (
    select id from {schema}.tasks
    where id = any(array(select i::bigint from unnest($1::text[]) i where i ~ '^[0-9]{1,18}$'))
      and status <> 'in_progress' for update skip locked
)
delete from {schema}.tasks t using pick where t.id = pick.id
returning t.id::text, 'deleted' as state

-- name: purge
-- params: queue states before limit
-- official: no
-- guard: only completed or cancelled jobs; failed ones where asked for
-- cost: reads the table by its ids
with pick as (
    select id from {schema}.tasks
    where ($1::text is null or $1::text = 'tasks')
      and case when status in ('cancelled', 'canceled') then 'cancelled' else status end
          = any(array(select s from unnest(coalesce($2::text[], '{completed,cancelled}')) s
                      where s in ('completed', 'cancelled', 'failed')))
      and coalesce(updated_at, created_at) < coalesce($3::timestamptz, now())
    order by id limit coalesce($4::int, 1000) for update skip locked
)
delete from {schema}.tasks t using pick where t.id = pick.id
returning t.id::text, 'purged' as state

-- name: purge_preview
-- params: queue states before
-- cost: reads the whole table
select 'purged' as state, count(*) as n, status::text as why
from {schema}.tasks
where ($1::text is null or $1::text = 'tasks')
  and case when status in ('cancelled', 'canceled') then 'cancelled' else status end
      = any(array(select s from unnest(coalesce($2::text[], '{completed,cancelled}')) s
                  where s in ('completed', 'cancelled', 'failed')))
  and coalesce(updated_at, created_at) < coalesce($3::timestamptz, now())
group by status
