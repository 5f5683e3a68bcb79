-- adapter: procrastinate
-- title: Procrastinate (Python)
-- format: 2
-- schema: public
-- id-type: bigint
-- tested-versions: 3.2-3.4
-- min-version: 3.2
-- states: ready=todo scheduled=todo retry=todo running=doing failed=failed completed=succeeded
--   cancelled=cancelled,aborting,aborted
-- search-path: {schema}
-- tables: procrastinate_jobs procrastinate_events procrastinate_workers procrastinate_periodic_defers
-- note: No error texts are stored, and no queue can be paused. Times come from the events table.
-- note: Failed and finished jobs have no index: they are looked for among the newest jobs; a count of failed ones
--   covers 10,000 jobs.
-- note: A worker that was only slow finishes its job by the job's number: so a rescued job may end twice.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='procrastinate_jobs'; column='abort_requested'
-- part: has_column table='procrastinate_workers'; column='last_heartbeat'
order by 1

-- name: version
-- no table has the version; it is known from the functions. Functions that this file does not know mean a newer version
select case when new then '3.5' when fn @> '{procrastinate_retry_job_v2}' then '3.4'
            when fn @> '{procrastinate_defer_jobs_v1}' then '3.2' else '3.0' end as version
from (select array(select p.proname::text from pg_proc p
                   where p.pronamespace = n.oid and p.proname ~ '^procrastinate_') as fn,
             exists (select from pg_proc p where p.pronamespace = n.oid
                                             and p.proname ~ '^procrastinate_(retry_job_v[3-9]|cancel_job_v[2-9])')
             or exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
                                                   and not a.attisdropped
                        where c.relnamespace = n.oid and c.relname = 'procrastinate_jobs' and a.attname <> all (
                            '{id,queue_name,task_name,priority,lock,queueing_lock,args,status,scheduled_at,attempts,'
                            'abort_requested,worker_id}')) as new
      from pg_namespace n where n.nspname = {schema_lit}) x

-- name: queues
-- the queues, found by skipping through the index
with recursive queue_names (queue) as (
    (select queue_name from {schema}.procrastinate_jobs order by queue_name limit 1)
    union all
    select (select j.queue_name from {schema}.procrastinate_jobs j where j.queue_name > q.queue order by j.queue_name
            limit 1)
    from queue_names q where q.queue is not null
)
select queue::text, null::bool as paused from queue_names q where queue is not null limit 10000

-- name: counts
with live as (
    select queue_name::text as queue, count(*) filter (where status = 'todo' and scheduled_at > now()
                                                         and attempts = 0) as scheduled,
           count(*) filter (where status = 'todo' and (scheduled_at <= now()) is not false) as ready,
           count(*) filter (where status = 'todo' and scheduled_at > now() and attempts <> 0) as retry,
           count(*) filter (where status = 'doing') as running, 0::bigint as failed,
           min(id) filter (where status = 'todo' and (scheduled_at <= now()) is not false) as oldest
    from {schema}.procrastinate_jobs where status in ('todo', 'doing') group by 1
), newest as materialized (
    select queue_name::text as queue, status from {schema}.procrastinate_jobs order by id desc limit 10000
), counted as (
    select * from live union all
    select queue, 0, 0, 0, 0, count(*), null from newest where status = 'failed' group by 1
)
select c.queue, sum(scheduled)::bigint as scheduled, sum(ready)::bigint as ready, sum(retry)::bigint as retry,
       sum(running)::bigint as running, sum(failed)::bigint as failed, (select {ms(greatest(j.scheduled_at, min(e.at)))}
        from {schema}.procrastinate_jobs j left join {schema}.procrastinate_events e on e.job_id = j.id
                                               and e.type = 'deferred'
        where j.id = min(c.oldest) group by j.id) as oldest_ms,
       (select count(*) from newest) = 10000 as approx
from counted c group by c.queue order by 1

-- name: counts_final
-- cost: reads all jobs
select queue_name::text as queue, count(*) filter (where status = 'succeeded') as completed,
       count(*) filter (where status::text in ('cancelled', 'aborting', 'aborted')) as cancelled
from {schema}.procrastinate_jobs where status not in ('todo', 'doing', 'failed') group by 1 order by 1

-- name: jobs
-- params: queue states raw_states kind node error words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first
-- Newest first. Waiting and running jobs have an index; the others are looked for among n jobs at a time: a row without
-- an id gives the cursor to continue from.
with looked_at as materialized (
    select j.*, row_number() over (order by j.id desc) as o from {schema}.procrastinate_jobs j
    where ($1::text is null or j.queue_name = $1::text)
      and (coalesce(not $3::text[] <@ '{todo,doing}', true)
           or (j.status::text = any($3::text[]) and j.status in ('todo', 'doing')))
      and ($12::text[] is null or j.id = any({bigints($12)}))
      and ($15::text is null or j.id < case when $15::text ~ '^-?[0-9]{1,19}$' then $15::text::bigint end)
    order by j.id desc
-- part: n_if_terms terms=$2::text[], $4::text, $5::text, $6::text, $7::text[], $8::interval, $9::interval, $10::int,
--   $11::int; n=$13; top=$14
), matching as (
    select j.*, s.state, s.stale, s.last_heartbeat, e.deferred, e.started, e.changed, e.ended
    from looked_at j cross join lateral (
        select case j.status when 'doing' then 'running' when 'succeeded' then 'completed' when 'failed' then 'failed'
                    when 'todo' then case when (j.scheduled_at <= now()) is not false then 'ready'
                                          when j.attempts = 0 then 'scheduled' else 'retry' end
                    else 'cancelled' end as state,
               case when j.status = 'doing' then not exists (
                   select from {schema}.procrastinate_workers k
                   where k.id = j.worker_id and k.last_heartbeat > now() - interval '30 s') end as stale,
               case when j.status = 'doing' then (
                   select k.last_heartbeat from {schema}.procrastinate_workers k where k.id = j.worker_id
               ) end as last_heartbeat) s
-- part events:
    left join lateral (
        select min(e.at) filter (where e.type = 'deferred') as deferred,
               max(e.at) filter (where e.type = 'started') as started,
               max(e.at) filter (where e.type <> 'scheduled') as changed,
               max(e.at) filter (where e.type::text in ('succeeded', 'failed', 'cancelled', 'aborted')) as ended
        from {schema}.procrastinate_events e where e.job_id = j.id) e on true
-- end part
    where ($2::text[] is null or s.state = any($2::text[]))
      and ($3::text[] is null or j.status::text = any($3::text[]))
      and ($4::text is null or j.task_name = $4::text)
      and ($5::text is null or (j.status = 'doing' and coalesce(j.worker_id::text, '(none)') = $5::text))
      and $6::text is null
-- part: has_words p=$7; text=j.id, j.queue_name, j.task_name
-- part: age_and_tries created=e.deferred; tries=j.attempts; older=$8; younger=$9; min=$10; top=$11
    order by j.o limit coalesce($14::int, 100)
)
select id::text, queue_name::text as queue, task_name::text as kind, state, priority, attempts as tries,
       null::int as max_tries,
       {ms(deferred)} as created_ms, {ms(scheduled_at)} as run_after_ms, {ms(changed)} as changed_ms,
       {ms(case when status <> 'todo' then started end)} as started_ms,
       {ms(case when status not in ('todo', 'doing') then ended end)} as finished_ms,
       case when status = 'doing' then coalesce(worker_id::text, '(none)') end as node, null::bigint as lease,
       {ms(last_heartbeat)} + 30000 as lease_until_ms, ''::text as error, id::text as cursor, stale
-- part: end_of_jobs cursor=id::text; n=$13; top=$14

-- name: job (ids)
select j.id::text, j.queue_name::text as queue, j.task_name::text as kind,
       case j.status when 'doing' then 'running' when 'succeeded' then 'completed' when 'failed' then 'failed'
            when 'todo' then case when (j.scheduled_at <= now()) is not false then 'ready'
                                  when j.attempts = 0 then 'scheduled' else 'retry' end
            else 'cancelled' end as state,
       j.priority, j.attempts as tries, null::int as max_tries, {ms(e.deferred)} as created_ms,
       {ms(j.scheduled_at)} as run_after_ms,
       {ms(e.changed)} as changed_ms, {ms(case when j.status <> 'todo' then e.started end)} as started_ms,
       {ms(case when j.status not in ('todo', 'doing') then e.ended end)} as finished_ms,
       case when j.status = 'doing' then coalesce(j.worker_id::text, '(none)') end as node, null::bigint as lease,
       {ms(case when j.status = 'doing' then k.last_heartbeat end)} + 30000 as lease_until_ms, ''::text as error,
       null::text as cursor,
       case when j.status = 'doing' then (k.last_heartbeat > now() - interval '30 s') is not true end as stale,
       left(j.args::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(j.args::text)::bigint as payload_size, j.queueing_lock as unique_key,
       j.abort_requested as cancel_asked, j.status::text as raw_state
from {schema}.procrastinate_jobs j
left join {schema}.procrastinate_workers k on k.id = j.worker_id
-- part: events
where j.id = any(({bigints($1)})[:1])

-- name: attempts (ids)
-- from one start to the event that follows it
select number::int, null::text as node, {ms(at)} as started_ms, {ms(ended)} as ended_ms,
       case outcome when 'deferred_for_retry' then 'retry' when 'succeeded' then 'completed' when 'started' then 'lost'
            else outcome end as outcome,
       ''::text as error, null::text as trace
from (select type, at, lead(type::text) over (order by id) as outcome, lead(at) over (order by id) as ended,
             count(*) filter (where type = 'started') over (order by id) as number
      from {schema}.procrastinate_events
      where type::text in ('started', 'deferred_for_retry', 'failed', 'succeeded', 'aborted')
        and job_id = any(({bigints($1)})[:1])) e
where type = 'started' order by number desc limit 200

-- name: nodes
-- a worker writes a heartbeat every 10 s; "(none)" holds the jobs of workers that were pruned
select coalesce(k.id::text, '(none)') as node,
       case when k.id is null or k.last_heartbeat <= now() - interval '30 s' then 'dead'
            when k.last_heartbeat <= now() - interval '20 s' then 'late' else 'up' end as state,
       {ms(k.last_heartbeat)} as heartbeat_ms, coalesce(r.n, 0) as running, coalesce(r.n, 0) as leases,
       case when k.last_heartbeat > now() - interval '30 s' then 0 else coalesce(r.n, 0) end as expired,
       coalesce(r.queues, '') as queues, {ms(k.last_heartbeat)} + 30000 as lease_until_ms
from {schema}.procrastinate_workers k
full join (select worker_id, count(*) as n, string_agg(distinct queue_name, ',') as queues
           from {schema}.procrastinate_jobs where status = 'doing' group by 1) r on r.worker_id = k.id
order by 1 limit 10000

-- name: leases (node queue limit)
select j.id as lease, coalesce(j.worker_id::text, '(none)') as node, j.queue_name::text as queue, 1::bigint as jobs,
       (select {ms(max(e.at))} from {schema}.procrastinate_events e
        where e.job_id = j.id and e.type = 'started') as started_ms,
       {ms(k.last_heartbeat)} + 30000 as lease_until_ms, j.id::text as job_ids, j.attempts as tries,
       case when j.abort_requested then '→ failed (abort was asked for)' else '→ ready' end as effect
from {schema}.procrastinate_jobs j left join {schema}.procrastinate_workers k on k.id = j.worker_id
where j.status = 'doing' and ($1::text is null or coalesce(j.worker_id::text, '(none)') = $1::text)
  and ($2::text is null or j.queue_name = $2::text)
order by k.last_heartbeat nulls first, j.id limit coalesce($3::int, 200)

-- name: schedules (schedule)
-- the last job of each periodic task; the cron lines are in the application
select d.name, ''::text as cron, ''::text as tz, j.queue_name::text as queue, d.task_name::text as kind,
       'active' as state,
       case when abs(d.defer_timestamp::numeric) < 1e13 then d.defer_timestamp * 1000 end as last_run_ms,
       case j.status when 'doing' then 'running' when 'succeeded' then 'completed' when 'todo' then 'ready'
            when 'failed' then 'failed'
            else case when j.id is null then 'gone' else 'cancelled' end end as last_outcome,
       null::bigint as next_run_ms, d.job_id::text as last_job
from (select distinct on (p.task_name, p.periodic_id) p.*,
             p.task_name || case when p.periodic_id <> '' then '/' || p.periodic_id else '' end as name
      from {schema}.procrastinate_periodic_defers p
      order by p.task_name, p.periodic_id, p.defer_timestamp desc nulls last) d
left join {schema}.procrastinate_jobs j on j.id = d.job_id
where $1::text is null or d.name = $1::text order by 1 limit 10000

-- name: requeue (ids)
-- official: retry_job_by_id (procrastinate_retry_job_v2, at once)
-- guard: only failed jobs, and only if no abort was asked for. If a running job's worker is gone: rescue. If the job
--   waits: reschedule
-- requires: version >= 3.4
with chosen as materialized (
    select j.id from {schema}.procrastinate_jobs j
    where j.status = 'failed' and not j.abort_requested and j.attempts < 2147483647 and j.id = any({bigints($1)})
    order by j.id for update
)
select w.id::text, 'ready' as state, {schema}.procrastinate_retry_job_v2(w.id, now(), null, null, null) as done
from chosen w

-- name: rescue (ids)
-- official: get_stalled_jobs + retry_job (procrastinate_retry_job_v2)
-- guard: only running jobs whose worker is gone or has been silent for 30 s
-- requires: version >= 3.4
with seen as materialized (
    select j.id, j.worker_id from {schema}.procrastinate_jobs j
    where j.status = 'doing' and j.attempts < 2147483647 and j.id = any({bigints($1)})
-- part judged:
      and not exists (select from {schema}.procrastinate_workers k
                      where k.id = j.worker_id and k.last_heartbeat > now() - interval '30 s')
), chosen as materialized (
    -- locked rows are not waited for, and the worker must be the one that was judged: another worker that took the job
    -- may live
    select j.id, j.abort_requested from {schema}.procrastinate_jobs j join seen s on s.id = j.id
    where j.status = 'doing' and j.worker_id is not distinct from s.worker_id order by j.id for update of j skip locked
)
select w.id::text, case when abort_requested then 'failed' else 'ready' end as state,
       {schema}.procrastinate_retry_job_v2(w.id, now(), null, null, null) as done from chosen w
-- end part

-- name: release_where (node)
-- official: get_stalled_jobs + retry_job, for one worker
-- guard: only jobs whose worker is gone or has been silent for 30 s
-- requires: version >= 3.4
with seen as materialized (
    select j.id, j.worker_id from {schema}.procrastinate_jobs j
    where j.status = 'doing' and j.attempts < 2147483647 and coalesce(j.worker_id::text, '(none)') = $1::text
-- part: judged

-- name: cancel (ids)
-- official: cancel_job_by_id (procrastinate_cancel_job_v1), abort=True for a running job
-- guard: only jobs that wait or run; a running one is asked to abort, once, and stops when its task asks for that
-- mode: signal
with chosen as materialized (
    select j.id, j.status = 'doing' as runs from {schema}.procrastinate_jobs j
    where j.status in ('todo', 'doing') and not j.abort_requested and j.id = any({bigints($1)}) order by j.id for update
), cancelled as materialized (
    select {schema}.procrastinate_cancel_job_v1(w.id, w.runs, false) as id, runs from chosen w
)
select id::text, case when runs then 'abort requested' else 'cancelled' end as state from cancelled c
where id is not null

-- name: delete (ids)
-- official: cancel_job_by_id(delete_job=True), delete_old_jobs
-- guard: only jobs that do not run
delete from {schema}.procrastinate_jobs j where j.status <> 'doing' and j.id = any({bigints($1)})
returning j.id::text, 'deleted' as state

-- name: priority (ids n)
-- official: no (plain column; larger is sooner)
-- guard: only jobs of another priority that wait
-- range: -2147483648..2147483647
update {schema}.procrastinate_jobs j set priority = $2::int
where j.status = 'todo' and j.priority <> $2::int and j.id = any({bigints($1)})
returning j.id::text, case when (j.scheduled_at <= now()) is not false then 'ready'
                           when j.attempts = 0 then 'scheduled' else 'retry' end as state

-- name: reschedule (ids at)
-- official: no (plain column; a trigger writes the event)
-- guard: only jobs with another time that wait
update {schema}.procrastinate_jobs j set scheduled_at = $2::timestamptz
where j.status = 'todo' and j.scheduled_at is distinct from $2::timestamptz and j.id = any({bigints($1)})
returning j.id::text, case when (j.scheduled_at <= now()) is not false then 'ready'
                           when j.attempts = 0 then 'scheduled' else 'retry' end as state

-- name: purge (queue raw_states before limit)
-- official: delete_old_jobs
-- guard: only jobs that have ended; the time is that of their last event
delete from {schema}.procrastinate_jobs j
where j.id = any(array(
    select f.id from {schema}.procrastinate_jobs f
-- part purged:
    where f.status::text = any(coalesce($2::text[], '{succeeded,cancelled,aborting,aborted}'))
      and f.status not in ('todo', 'doing') and ($1::text is null or f.queue_name = $1::text)
      and (select max(e.at) from {schema}.procrastinate_events e where e.job_id = f.id)
        < coalesce($3::timestamptz, now())
-- end part
    order by f.id limit coalesce($4::int, 1000) for update skip locked))
returning j.id::text, 'purged' as state

-- name: purge_preview (queue raw_states before)
select 'purged' as state, count(*) as n,
       case f.status when 'succeeded' then 'completed' when 'failed' then 'failed, still to requeue'
            else f.status::text end as why
from {schema}.procrastinate_jobs f
-- part: purged
group by f.status
