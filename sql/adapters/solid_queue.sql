-- adapter: solid_queue
-- title: Solid Queue (Rails)
-- format: 2
-- schema: public
-- id-type: bigint
-- tested-versions: 1.0-1.5
-- timezone: UTC
-- tables: solid_queue_jobs solid_queue_ready_executions solid_queue_scheduled_executions solid_queue_claimed_executions
--   solid_queue_blocked_executions solid_queue_failed_executions solid_queue_processes solid_queue_pauses
--   solid_queue_recurring_tasks solid_queue_recurring_executions
-- note: The limits of concurrency keys are in the application's classes, so semaphores are never changed here. A failed
--   job with such a key becomes scheduled, due now, and Solid Queue's dispatcher starts it. A ready job with a key
--   holds a slot of its semaphore and can't be deleted here.
-- note: A retry of ActiveJob is a new job, so no job is in state retry. A worker that is silent for five minutes is
--   pruned by Solid Queue, which fails its jobs.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_table table='solid_queue_jobs'
-- part: has_table table='solid_queue_claimed_executions'
-- part: has_table table='solid_queue_processes'
-- part: has_table table='solid_queue_recurring_tasks'
order by 1

-- name: version
-- known from its tables: batches came after 1.5
select case when to_regclass(format('%I.solid_queue_batches', {schema_lit})) is not null then '1.6'
            else '1.5' end as version

-- name: queues
-- every queue that has jobs, found by skipping through the index, and those that are paused
with recursive queue_names as (
    select min(queue_name) as queue from {schema}.solid_queue_jobs
    union all
    select (select min(j.queue_name) from {schema}.solid_queue_jobs j where j.queue_name > q.queue) from queue_names q
    where q.queue is not null
)
select coalesce(q.queue, p.queue_name)::text as queue, p.id is not null as paused, {ms(p.created_at)} as paused_ms,
       null::text as info
from (select queue from queue_names where queue is not null) q
full join {schema}.solid_queue_pauses p on p.queue_name = q.queue order by 1

-- name: counts
-- each state is a table of its own, and none of them holds finished jobs
select queue, sum(scheduled)::bigint as scheduled, sum(ready)::bigint as ready, 0::bigint as retry,
       sum(running)::bigint as running,
       sum(failed)::bigint as failed, sum(blocked)::bigint as blocked, {ms(min(oldest))} as oldest_ms
from (select queue_name::text as queue, count(*) as ready, 0 as scheduled, 0 as running, 0 as failed, 0 as blocked,
             min(created_at) as oldest
      from {schema}.solid_queue_ready_executions group by 1
      union all
      select queue_name, 0, count(*), 0, 0, 0, null from {schema}.solid_queue_scheduled_executions group by 1
      union all
      select queue_name, 0, 0, 0, 0, count(*), null from {schema}.solid_queue_blocked_executions group by 1
      union all
      select j.queue_name, 0, 0, count(*), 0, 0, null from {schema}.solid_queue_claimed_executions c
      cross join lateral (select queue_name from {schema}.solid_queue_jobs j where j.id = c.job_id limit 1) j group by 1
      union all
      select j.queue_name, 0, 0, 0, count(*), 0, null from {schema}.solid_queue_failed_executions f
      cross join lateral (select queue_name from {schema}.solid_queue_jobs j where j.id = f.job_id limit 1) j
      group by 1) s
group by 1

-- name: counts_final
-- cost: reads the index entries of all finished jobs; of more than five million jobs a sample
-- part: table_size table='%I.solid_queue_jobs'
select queue, sum(n)::bigint as completed, null::bigint as cancelled, bool_or(approx) as approx
from (select queue_name::text as queue, count(*)::numeric as n, false as approx from {schema}.solid_queue_jobs
      where finished_at is not null and (select n <= 5e6 from size) group by 1
      union all
      select queue_name, round(count(*) * (select n / 100000 from size)::numeric), true
      from {schema}.solid_queue_jobs tablesample system ((select least(100, 1e7 / n) from size))
      where finished_at is not null and (select n > 5e6 from size) group by 1) s
group by 1

-- name: jobs
-- params: queue states kind node error words not_words ids older_than younger_than min_tries top_tries in_payload path
--   n limit cursor
-- order: running: lowest id first; ready: next to start first; scheduled: next due first; blocked: lowest id first;
--   failed: last failed first; completed: last finished first; *: running, next to start, failed
-- Without states: jobs that are not completed. The order: running, ready, scheduled, blocked (the next first), then
-- failed and completed ones, newest first. Each arm reads one table by its index. If terms must be checked row by row,
-- at most n rows are read, and a row without an id gives the cursor to continue from.
with params as not materialized (
-- part: search
           coalesce(nullif(split_part($17::text, '/', 1), '')::int, 0) as c_arm,
           nullif(split_part($17::text, '/', 2), '')::int as c_priority,
           nullif(split_part($17::text, '/', 3), '')::bigint as c_id,
           substring($17::text from '^[^/]*/[^/]*/[^/]*/(.*)$')::timestamp as c_at,
           $8::text[] is null and coalesce($2::text[] @> '{running}', true) as running,
           $8::text[] is null and coalesce($2::text[] @> '{ready}', $4::text is null) as ready,
           $8::text[] is null and coalesce($2::text[] @> '{scheduled}', $4::text is null) as scheduled,
           $8::text[] is null and coalesce($2::text[] @> '{blocked}', $4::text is null) as blocked,
           $8::text[] is null and coalesce($2::text[] @> '{failed}', $4::text is null) as failed,
           $8::text[] is null and coalesce($2::text[] @> '{completed}', false) as completed
), running_jobs as (
    select 1 as arm, 0 as o1, c.created_at as at, c.job_id as id, c.job_id, c.process_id,
           row_number() over (order by c.job_id) as o from (
        select c.* from params p, {schema}.solid_queue_claimed_executions c
        where p.running and p.c_arm <= 1 and (p.c_arm < 1 or c.job_id > p.c_id)
          and (p.queue is null or exists (select from {schema}.solid_queue_jobs j
                                          where j.id = c.job_id and j.queue_name = p.queue))
        order by c.job_id limit (select most from params)) c
), ready_jobs as (
    select 2, c.priority, c.created_at, c.job_id, c.job_id, null::bigint,
           row_number() over (order by c.priority, c.job_id) from (
        select c.* from params p, {schema}.solid_queue_ready_executions c
        where p.ready and p.c_arm <= 2 and (p.queue is null or c.queue_name = p.queue)
          and (p.c_arm < 2 or (c.priority, c.job_id) > (p.c_priority, p.c_id))
        order by c.priority, c.job_id limit (select most from params)) c
), scheduled_jobs as (
    select 3, c.priority, c.scheduled_at, c.job_id, c.job_id, null::bigint,
           row_number() over (order by c.scheduled_at, c.priority, c.job_id) from (
        select c.* from params p, {schema}.solid_queue_scheduled_executions c
        where p.scheduled and p.c_arm <= 3 and (p.queue is null or c.queue_name = p.queue)
          and (p.c_arm < 3 or (c.scheduled_at, c.priority, c.job_id) > (p.c_at, p.c_priority, p.c_id))
        order by c.scheduled_at, c.priority, c.job_id limit (select most from params)) c
), blocked_jobs as (
    select 4, 0, c.created_at, c.job_id, c.job_id, null::bigint, row_number() over (order by c.job_id) from (
        select c.* from params p, {schema}.solid_queue_blocked_executions c
        where p.blocked and p.c_arm <= 4 and (p.queue is null or c.queue_name = p.queue)
          and (p.c_arm < 4 or c.job_id > p.c_id)
        order by c.job_id limit (select most from params)) c
), failed_jobs as (
    select 5, 0, c.created_at, c.id, c.job_id, null::bigint, row_number() over (order by c.id desc) from (
        select c.* from params p, (
            select c.* from params p, {schema}.solid_queue_failed_executions c
            where p.failed and p.c_arm <= 5 and (p.c_arm < 5 or c.id < p.c_id)
            order by c.id desc limit (select 16::bigint * n from params)) c
        where p.queue is null or exists (select from {schema}.solid_queue_jobs j
                                         where j.id = c.job_id and j.queue_name = p.queue)
        order by c.id desc limit (select most from params)) c
), finished_jobs as (
    select 6, 0, c.finished_at, c.id, c.id, null::bigint, row_number() over (order by c.finished_at desc, c.id desc)
    from (
        select c.* from params p, {schema}.solid_queue_jobs c
        where p.completed and c.finished_at is not null and (p.queue is null or c.queue_name = p.queue)
          and (p.c_arm < 6 or (c.finished_at <= p.c_at and (c.finished_at, c.id) < (p.c_at, p.c_id)))
        order by c.finished_at desc, c.id desc limit (select most from params)) c
), found as materialized (
    select *, row_number() over (order by arm, o) as place from (
        select * from running_jobs union all select * from ready_jobs union all select * from scheduled_jobs
                union all select * from blocked_jobs
                union all select * from failed_jobs union all select * from finished_jobs
        union all
        select 9, 0, null, i::bigint, i::bigint, (select c.process_id from {schema}.solid_queue_claimed_executions c
                                                  where c.job_id = i::bigint),
               row_number() over (order by i::bigint desc) from params p, unnest(p.ids) i where i ~ '^[0-9]{1,18}$') f
    order by arm, o limit (select most from params)
), fits as (
    select f.place, f.arm || '/' || f.o1 || '/' || f.id || '/' || coalesce(f.at::text, '') as cursor, j.*, x.failed_at,
           x.error, x.since, x.state, x.tries, x.heartbeat, x.node, x.process_id
    from params p, found f
    cross join lateral (select * from {schema}.solid_queue_jobs j where j.id = f.job_id limit 1) j
    cross join lateral (
        select e.*, case when e.raw is null then null when left(e.raw, 1) = '{' and right(e.raw, 1) = '}'
                         then concat_ws(': ', replace(e.raw, '\u0000', '\ufffd')::json ->> 'exception_class',
                                        replace(e.raw, '\u0000', '\ufffd')::json ->> 'message')
                         else e.raw end as error,
               case when left(j.arguments, 1) = '{' and right(j.arguments, 1) = '}'
                     and replace(j.arguments, '\u0000', '')::json ->> 'executions' ~ '^[0-9]{1,8}$'
                    then (replace(j.arguments, '\u0000', '')::json ->> 'executions')::int else 0 end as tries,
               case when j.finished_at is not null then 'completed' when e.claim is not null then 'running'
                    when e.failed_at is not null then 'failed'
                    when e.is_ready then 'ready' when e.is_blocked then 'blocked' else 'scheduled' end as state
        from (select (select f5.created_at from {schema}.solid_queue_failed_executions f5
                      where f5.job_id = j.id) as failed_at,
                     (select f5.error from {schema}.solid_queue_failed_executions f5 where f5.job_id = j.id) as raw,
                     c.id as claim, c.created_at as since, c.process_id, w.last_heartbeat_at as heartbeat,
                     case when c.id is not null then coalesce(w.name, 'process ' || c.process_id) end as node,
                     exists (select from {schema}.solid_queue_ready_executions r where r.job_id = j.id) as is_ready,
                     exists (select from {schema}.solid_queue_blocked_executions b where b.job_id = j.id) as is_blocked
              from (select) one left join {schema}.solid_queue_claimed_executions c on c.job_id = j.id
              left join {schema}.solid_queue_processes w on w.id = c.process_id) e) x
    where (p.queue is null or j.queue_name = p.queue)
      and (p.states is null or x.state = any(p.states))
      and (p.kind is null or j.class_name = p.kind)
      and (p.node is null or x.node = p.node)
      and (p.error_key is null
           or coalesce({error_key(x.error)}, case when x.state = 'failed' then '' end) = p.error_key)
-- part: text_terms error=x.error; created=j.created_at; tries=x.tries; text=j.id, j.queue_name, j.class_name, x.error
      and (p.inside is null
           or case when p.path is null then strpos(lower(left(j.arguments, 1000000)), lower(p.inside)) > 0
                                    when left(j.arguments, 1) <> '{' or right(j.arguments, 1) <> '}'
                        or strpos(j.arguments, '\u0000') > 0 then false
                                    when p.how = '=' then (j.arguments::json -> 'arguments') #>> p.path = p.inside
                                    else strpos(lower((j.arguments::json -> 'arguments') #>> p.path),
                                                lower(p.inside)) > 0 end)
    order by f.place limit (select top from params)
)
-- part: job_columns_z
from (
    select f.id::text, f.queue_name::text as queue, f.class_name::text as kind, f.state, f.priority, f.tries,
           null::int as max_tries, {ms(f.created_at)} as created_ms, {ms(f.scheduled_at)} as run_after_ms,
           {ms(coalesce(f.finished_at, f.failed_at, f.since, f.updated_at))} as changed_ms, {ms(f.since)} as started_ms,
           {ms(coalesce(f.finished_at, f.failed_at))} as finished_ms, f.node,
           {ms(f.heartbeat + interval '5 min')} as lease_until_ms, left(f.error, 300) as error, f.cursor,
           f.state = 'running' and coalesce(f.heartbeat < now() - interval '5 min', true) as stale, f.place, 0 as mark
    from fits f
-- part: end_of_search cursor=f.arm || '/' || f.o1 || '/' || f.id || '/' || coalesce(f.at::text, '')

-- name: job (ids)
select j.id::text, j.queue_name::text as queue, j.class_name::text as kind,
       case when j.finished_at is not null then 'completed' when c.id is not null then 'running'
            when f.id is not null then 'failed'
            when exists (select from {schema}.solid_queue_ready_executions r where r.job_id = j.id) then 'ready'
            when exists (select from {schema}.solid_queue_blocked_executions b where b.job_id = j.id) then 'blocked'
            else 'scheduled' end as state,
       j.priority, case when left(j.arguments, 1) = '{' and right(j.arguments, 1) = '}'
                             and replace(j.arguments, '\u0000', '')::json ->> 'executions' ~ '^[0-9]{1,8}$'
                        then (replace(j.arguments, '\u0000', '')::json ->> 'executions')::int else 0 end as tries,
       null::int as max_tries, {ms(j.created_at)} as created_ms, {ms(j.scheduled_at)} as run_after_ms,
       {ms(coalesce(j.finished_at, f.created_at, c.created_at, j.updated_at))} as changed_ms,
       {ms(c.created_at)} as started_ms, {ms(coalesce(j.finished_at, f.created_at))} as finished_ms,
       case when c.id is not null then coalesce(w.name, 'process ' || c.process_id) end as node,
       {ms(w.last_heartbeat_at + interval '5 min')} as lease_until_ms,
       case when left(f.error, 1) = '{' and right(f.error, 1) = '}'
            then concat_ws(': ', replace(f.error, '\u0000', '\ufffd')::json ->> 'exception_class',
                           replace(f.error, '\u0000', '\ufffd')::json ->> 'message') else f.error end as error,
       null::text as cursor, c.id is not null and coalesce(w.last_heartbeat_at < now() - interval '5 min',
                                                           true) as stale,
       j.concurrency_key::text as unique_key, left(j.arguments, 1000000) as payload,
       case when j.arguments is null then '' when left(j.arguments, 1) = '{' then 'json'
            else 'text' end as payload_format,
       'application/json' as payload_type, octet_length(j.arguments)::bigint as payload_size
from {schema}.solid_queue_jobs j
left join {schema}.solid_queue_claimed_executions c on c.job_id = j.id
left join {schema}.solid_queue_processes w on w.id = c.process_id
left join {schema}.solid_queue_failed_executions f on f.job_id = j.id where j.id = ({bigints($1)})[1]

-- name: attempts (ids)
-- only the present failure is kept
select 1 as number, null::text as node, null::bigint as started_ms, {ms(f.created_at)} as ended_ms, 'failed' as outcome,
       case when f.is_json then concat_ws(': ', f.raw::json ->> 'exception_class', f.raw::json ->> 'message')
            else f.raw end as error,
       case when f.is_json and json_typeof(f.raw::json -> 'backtrace') = 'array'
            then left((select string_agg(t, e'\n')
                       from json_array_elements_text(f.raw::json -> 'backtrace') t), 65536) end as trace
from (select f.created_at, replace(f.error, '\u0000', '\ufffd') as raw,
             left(f.error, 1) = '{' and right(f.error, 1) = '}' as is_json
      from {schema}.solid_queue_failed_executions f
      where f.job_id = ({bigints($1)})[1]) f

-- name: nodes
-- workers write a heartbeat once a minute; a claim whose process has no row is an orphan
with running_rows as materialized (
    select c.process_id, count(*) as running, string_agg(distinct j.queue_name, ',' order by j.queue_name) as queues
    from {schema}.solid_queue_claimed_executions c
    cross join lateral (select queue_name from {schema}.solid_queue_jobs j where j.id = c.job_id limit 1) j group by 1
)
select coalesce(w.name, 'process ' || r.process_id)::text as node,
       case when w.id is null or w.last_heartbeat_at < now() - interval '5 min' then 'dead'
            when w.last_heartbeat_at < now() - interval '2 min' then 'late' else 'up' end as state,
       w.hostname::text as host, w.pid, {ms(w.created_at)} as started_ms,
       {ms(w.last_heartbeat_at)} as heartbeat_ms, coalesce(r.running, 0)::bigint as running,
       coalesce(r.running, 0)::bigint as leases,
       case when w.id is null or w.last_heartbeat_at < now() - interval '5 min' then coalesce(r.running, 0)
            else 0 end::bigint as expired,
       coalesce(r.queues, '')::text as queues, null::boolean as session_alive, w.kind::text as version
from (select * from {schema}.solid_queue_processes) w full join running_rows r on r.process_id = w.id order by 1

-- name: leases (node queue limit)
-- a claimed job is a lease; it ends when its worker has been silent for five minutes
select c.id as lease, coalesce(w.name, 'process ' || c.process_id)::text as node, j.queue_name::text as queue,
       1::bigint as jobs,
       {ms(c.created_at)} as started_ms, {ms(w.last_heartbeat_at + interval '5 min')} as lease_until_ms,
       c.job_id::text as job_ids, '→ ready' as effect
from {schema}.solid_queue_claimed_executions c
cross join lateral (select queue_name from {schema}.solid_queue_jobs j where j.id = c.job_id limit 1) j
left join {schema}.solid_queue_processes w on w.id = c.process_id
where ($1::text is null or coalesce(w.name, 'process ' || c.process_id) = $1::text)
  and ($2::text is null or j.queue_name = $2::text)
order by c.created_at, c.id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
-- part failed_jobs:
    select f.job_id::text as id, j.queue_name::text as queue, j.class_name::text as kind, null::text as node,
           f.created_at as at, left(case when left(f.error, 1) = '{' and right(f.error, 1) = '}'
                     then concat_ws(': ', replace(f.error, '\u0000', '\ufffd')::json ->> 'exception_class',
                                    replace(f.error, '\u0000', '\ufffd')::json ->> 'message')
                     else f.error end, 1000) as error
    from {schema}.solid_queue_failed_executions f
    cross join lateral (select queue_name, class_name from {schema}.solid_queue_jobs j where j.id = f.job_id limit 1) j
    order by f.id desc
-- end part
    limit 5000
)
-- part: groups newest=at

-- part: failures utc=f.at; now=now()

-- name: schedules (schedule)
select t.key::text as name, t.schedule::text as cron, '' as tz,
       coalesce(t.queue_name, j.queue_name, 'default')::text as queue,
       coalesce(t.class_name, 'command')::text as kind, 'active' as state, {ms(e.run_at)} as last_run_ms,
       case when e.job_id is null then null when j.finished_at is not null then 'completed'
            when exists (select from {schema}.solid_queue_failed_executions f where f.job_id = j.id) then 'failed'
            when exists (select from {schema}.solid_queue_claimed_executions c where c.job_id = j.id) then 'running'
            else 'ready' end as last_outcome,
       null::bigint as next_run_ms, e.job_id::text as last_job, t.priority,
       coalesce(t.command, t.arguments)::text as payload, t.description as comment,
       {ms(t.created_at)} as created_ms, {ms(t.updated_at)} as changed_ms
from {schema}.solid_queue_recurring_tasks t
left join lateral (select * from {schema}.solid_queue_recurring_executions e where e.task_key = t.key
                   order by e.run_at desc limit 1) e on true
left join {schema}.solid_queue_jobs j on j.id = e.job_id
where $1::text is null or t.key = $1::text order by 1

-- name: requeue (ids)
-- official: FailedExecution#retry
-- guard: only a failed job
-- mode: deferred
-- a job with a concurrency key becomes scheduled, due now: the dispatcher applies the limit, which only the Ruby code
-- knows
with failed_jobs as materialized (
    select f.id, f.job_id, j.queue_name, j.priority, j.concurrency_key
    from {schema}.solid_queue_failed_executions f join {schema}.solid_queue_jobs j on j.id = f.job_id
    where f.job_id = any({bigints($1)}) order by f.job_id for update of f
), deleted as (
    delete from {schema}.solid_queue_failed_executions x using failed_jobs f where x.id = f.id returning x.job_id
), updated as (
    update {schema}.solid_queue_jobs j set updated_at = now(), arguments = case
        when left(j.arguments, 1) = '{' and right(j.arguments, 1) = '}' and strpos(j.arguments, '\u0000') = 0
        then (select '{' || string_agg(to_json(e.key)::text || ':'
                                       || case e.key when 'executions' then '0' when 'exception_executions' then '{}'
                                               else e.value::text end, ','
                                       order by e.o) || '}'
              from json_each(j.arguments::json) with ordinality e (key, value, o))
        else j.arguments end
    from failed_jobs f where j.id = f.job_id
), ready_rows as (
    insert into {schema}.solid_queue_ready_executions (job_id, queue_name, priority, created_at)
    select f.job_id, f.queue_name, f.priority, now() from failed_jobs f join deleted using (job_id)
    where f.concurrency_key is null
), scheduled_rows as (
    insert into {schema}.solid_queue_scheduled_executions (job_id, queue_name, priority, scheduled_at, created_at)
    select f.job_id, f.queue_name, f.priority, now(), now() from failed_jobs f join deleted using (job_id)
    where f.concurrency_key is not null
)
select f.job_id::text as id, case when f.concurrency_key is null then 'ready' else 'scheduled' end as state,
       case when f.concurrency_key is not null
                then 'the dispatcher lets it in when its concurrency key has room' end as why
from failed_jobs f join deleted d using (job_id)

-- name: rescue (ids)
-- official: ClaimedExecution#release
-- guard: only a running job
-- confirm: If its worker is still alive, the job runs twice. The limit of its concurrency key does not hold then.
with chosen as materialized (
    select c.id, c.job_id, j.queue_name, j.priority
    from {schema}.solid_queue_claimed_executions c join {schema}.solid_queue_jobs j on j.id = c.job_id
    where c.job_id = any({bigints($1)}) order by c.job_id for update of c
-- part released:
), deleted as (
    delete from {schema}.solid_queue_claimed_executions x using chosen c where x.id = c.id returning x.job_id
), ready_rows as (
    insert into {schema}.solid_queue_ready_executions (job_id, queue_name, priority, created_at)
    select c.job_id, c.queue_name, c.priority, now() from chosen c join deleted using (job_id)
)
select job_id::text as id, 'ready' as state from deleted d
-- end part

-- name: release_where (node)
-- official: ClaimedExecution.release_all (Solid Queue itself fails such jobs)
-- guard: only of a process that is gone or has been silent for five minutes
with chosen as materialized (
    select c.id, c.job_id, j.queue_name, j.priority
    from {schema}.solid_queue_claimed_executions c join {schema}.solid_queue_jobs j on j.id = c.job_id
    left join {schema}.solid_queue_processes w on w.id = c.process_id
    where coalesce(w.name, 'process ' || c.process_id) = $1::text
      and (w.id is null or w.last_heartbeat_at < now() - interval '5 min')
    -- a locked row is being ended by another session: it is not waited for, because a heartbeat may come meanwhile
    order by c.job_id for update of c skip locked
-- part: released

-- name: delete (ids)
-- official: Execution#discard
-- guard: only jobs that do not run; none that is ready with a concurrency key: it holds a slot of its semaphore
-- confirm: The jobs are gone for good.
-- To lock the job waits for a session that moves it (a new execution refers to the job), and after the wait its state
-- may have changed. So the row of its state is locked, too: if that row is gone, or if another session is just taking
-- it, the job stays.
with chosen as materialized (
    select j.id from {schema}.solid_queue_jobs j where j.id = any({bigints($1)}) order by j.id for update
), seen as materialized (
    select j.id, exists (select from {schema}.solid_queue_claimed_executions e where e.job_id = j.id) as runs,
           exists (select from {schema}.solid_queue_ready_executions e where e.job_id = j.id) as ready,
           exists (select from {schema}.solid_queue_scheduled_executions e where e.job_id = j.id) as scheduled,
           exists (select from {schema}.solid_queue_blocked_executions e where e.job_id = j.id) as blocked,
           exists (select from {schema}.solid_queue_failed_executions e where e.job_id = j.id) as failed
    from chosen j
), ready_rows as materialized (
-- part: locked_rows table=solid_queue_ready_executions
), scheduled_rows as materialized (
-- part: locked_rows table=solid_queue_scheduled_executions
), blocked_rows as materialized (
-- part: locked_rows table=solid_queue_blocked_executions
), failed_jobs as materialized (
-- part: locked_rows table=solid_queue_failed_executions
)
delete from {schema}.solid_queue_jobs x using seen where x.id = seen.id and not seen.runs
  and (not seen.ready or (x.concurrency_key is null and x.id in (select job_id from ready_rows)))
  and (not seen.scheduled or x.id in (select job_id from scheduled_rows))
  and (not seen.blocked or x.id in (select job_id from blocked_rows))
  and (not seen.failed or x.id in (select job_id from failed_jobs))
returning x.id::text, 'deleted' as state

-- name: priority (ids n)
-- official: no
-- guard: only jobs of another priority that wait
with chosen as materialized (
    select j.id from {schema}.solid_queue_jobs j
    where j.id = any({bigints($1)}) and j.finished_at is null and j.priority <> $2::int
), ready_rows as (
    update {schema}.solid_queue_ready_executions e set priority = $2::int from chosen j where e.job_id = j.id
    returning e.job_id, 'ready' as state
), scheduled_rows as (
    update {schema}.solid_queue_scheduled_executions e set priority = $2::int from chosen j where e.job_id = j.id
    returning e.job_id, 'scheduled' as state
), blocked_rows as (
    update {schema}.solid_queue_blocked_executions e set priority = $2::int from chosen j where e.job_id = j.id
    returning e.job_id, 'blocked' as state
), all_rows as (
    select * from ready_rows union all select * from scheduled_rows union all select * from blocked_rows
), updated as (
    update {schema}.solid_queue_jobs x set priority = $2::int, updated_at = now() from all_rows a where x.id = a.job_id
)
select job_id::text as id, state from all_rows a

-- name: reschedule (ids at)
-- official: no
-- guard: only scheduled jobs with another time
with scheduled_rows as (
    update {schema}.solid_queue_scheduled_executions e set scheduled_at = $2::timestamptz
    where e.job_id = any({bigints($1)}) and e.scheduled_at <> $2::timestamptz returning e.job_id
), updated as (
    update {schema}.solid_queue_jobs x set scheduled_at = $2::timestamptz, updated_at = now() from scheduled_rows s
    where x.id = s.job_id
)
select job_id::text as id, 'scheduled' as state from scheduled_rows s

-- name: pause (queue force)
-- official: Queue#pause
-- guard: only a queue that is not paused and has jobs, be they finished; --create pauses any other
insert into {schema}.solid_queue_pauses (queue_name, created_at)
select $1::text, now() where $1::text is not null
  and (coalesce($2::boolean, false) or exists (select from {schema}.solid_queue_jobs where queue_name = $1::text))
on conflict (queue_name) do nothing returning queue_name::text as id, 'paused' as state

-- name: resume (queue)
-- official: Queue#resume
-- guard: only a queue that is paused
delete from {schema}.solid_queue_pauses where queue_name = $1::text returning queue_name::text as id, 'active' as state

-- name: purge (queue states before limit)
-- official: Job.clear_finished_in_batches
-- guard: only finished jobs; failed ones if asked for
-- confirm: The jobs are gone for good.
with done as ( -- locked, so that nothing goes that has been retried meanwhile
    select j.id from {schema}.solid_queue_jobs j
    where coalesce($2::text[], '{completed}') @> '{completed}' and j.finished_at is not null
      and j.finished_at < coalesce($3::timestamptz, now()) and ($1::text is null or j.queue_name = $1::text)
    order by j.finished_at limit coalesce($4::int, 1000) for update skip locked
), broken as (
    select j.id from {schema}.solid_queue_failed_executions f join {schema}.solid_queue_jobs j on j.id = f.job_id
    where $2::text[] @> '{failed}' and f.created_at < coalesce($3::timestamptz, now())
      and ($1::text is null or j.queue_name = $1::text)
    order by f.id limit coalesce($4::int, 1000) for update skip locked
)
delete from {schema}.solid_queue_jobs where id = any(array(
    select id from done union all select id from broken limit coalesce($4::int, 1000)))
returning id::text, 'deleted' as state

-- name: purge_preview (queue states before)
select 'deleted' as state, n, null::text as why
from (select (select count(*) from {schema}.solid_queue_jobs j
              where coalesce($2::text[], '{completed}') @> '{completed}' and j.finished_at is not null
                and j.finished_at < coalesce($3::timestamptz, now()) and ($1::text is null or j.queue_name = $1::text))
           + (select count(*) from {schema}.solid_queue_failed_executions f
              join {schema}.solid_queue_jobs j on j.id = f.job_id
              where $2::text[] @> '{failed}' and f.created_at < coalesce($3::timestamptz, now())
                and ($1::text is null or j.queue_name = $1::text)) as n) c
where n > 0
