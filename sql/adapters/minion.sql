-- adapter: minion
-- title: Minion (Perl)
-- format: 2
-- schema: public
-- id-type: bigint
-- tested-versions: 23 25
-- min-version: 23
-- states: scheduled=inactive ready=inactive retry=inactive blocked=inactive running=active failed=failed
--   completed=finished
-- tables: minion_jobs minion_workers mojo_migrations
-- note: A node is a worker's number. A larger priority runs sooner. Blocked jobs wait for their parents.
-- note: Minion counts retries; a job's tries here are its retries and the one that runs or has ended.
-- note: Cancelling a running job tells its worker to kill it; the worker reads that within seconds. The job then fails,
--   and is retried if it has attempts left.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='minion_jobs'; column='lax'
-- part: has_column table='minion_workers'; column='inbox'
order by 1

-- name: version
select version::text from {schema}.mojo_migrations where name = 'minion'

-- name: queues
-- from the live jobs, along their index, and the queues that workers name
with live as (select distinct queue from {schema}.minion_jobs where state in ('inactive', 'active', 'failed'))
select queue, false as paused, true as keeps from (
    select queue from live
    union
    select q from {schema}.minion_workers w, jsonb_array_elements_text(
        case jsonb_typeof(w.status -> 'queues') when 'array' then w.status -> 'queues' else '[]' end) q
) z order by 1

-- name: counts
with counted as (
    select j.queue, s.state, count(*) as n, min(j.delayed) as oldest
    from {schema}.minion_jobs j cross join lateral (
        select case when j.state = 'active' then 'running' when j.state = 'failed' then 'failed'
-- part live_state:
                    when j.delayed > now() then case when j.retries > 0 then 'retry' else 'scheduled' end
                    when j.parents <> '{}' and exists (select from {schema}.minion_jobs p
                                                       where p.id = any(j.parents) and (p.state = 'active'
                         or (p.state = 'failed' and not j.lax) or (p.state = 'inactive'
                                                                   and (p.expires is null or p.expires > now()))))
                        then 'blocked'
-- end part
                    else 'ready' end as state) s
    where j.state in ('inactive', 'active', 'failed')
      and (j.state <> 'inactive' or j.expires is null or j.expires > now())
    group by 1, 2
)
select queue, coalesce(sum(n) filter (where state = 'scheduled'), 0)::bigint as scheduled,
       coalesce(sum(n) filter (where state = 'ready'), 0)::bigint as ready,
       coalesce(sum(n) filter (where state = 'retry'), 0)::bigint as retry,
       coalesce(sum(n) filter (where state = 'running'), 0)::bigint as running,
       coalesce(sum(n) filter (where state = 'failed'), 0)::bigint as failed,
       {ms(min(oldest) filter (where state = 'ready'))} as oldest_ms,
       coalesce(sum(n) filter (where state = 'blocked'), 0)::bigint as blocked
from counted c group by queue order by queue

-- name: counts_final
-- cost: reads all finished jobs
select queue, count(*) as completed, null::bigint as cancelled from {schema}.minion_jobs where state = 'finished'
group by queue order by queue

-- name: jobs
-- params: queue states raw_states kind node error words not_words older_than younger_than min_tries top_tries ids n
--   limit cursor
-- order: *: highest id first
-- Newest first. If texts must be searched, n jobs are read. No index has queues and tasks: 4 n jobs are looked at in
-- addition to the finished ones. A row without an id gives the cursor to continue from.
with bounds as materialized (
    select (select id from {schema}.minion_jobs
            where num_nonnulls($1::text, $4::text) > 0
              and coalesce('finished' = any($3::{schema}.minion_state[]), true) and $13::text[] is null
              and ($16::text is null or id < case when $16::text ~ '^-?[0-9]{1,19}$' then $16::text::bigint end)
            order by id desc offset 4 * coalesce($14::int, 10000)::bigint limit 1) as low
), looked_at as materialized (
    select j.id, j.queue, j.task, s.state, j.priority, s.tries,
           greatest(least(j.retries::bigint + j.attempts, 2147483647), 0)::int as max_tries, j.created, j.delayed,
           j.retried, j.started, j.finished, j.state as raw, j.worker, k.notified,
           case when j.state = 'failed' or (j.state = 'inactive' and j.retries > 0) then
               case jsonb_typeof(j.result) when 'string' then j.result #>> '{}' else j.result::text end end as error
    from {schema}.minion_jobs j
    left join {schema}.minion_workers k on k.id = j.worker and j.state = 'active'
    cross join lateral (
        select case when j.state = 'active' then 'running' when j.state = 'failed' then 'failed'
                    when j.state = 'finished' then 'completed'
-- part: live_state
                    else 'ready' end as state,
               least(j.retries, 2147483646) + (j.state not in ('inactive', 'active'))::int as tries) s
    where (j.state <> 'inactive' or j.expires is null or j.expires > now())
      and ($1::text is null or j.queue = $1::text)
      and ($3::{schema}.minion_state[] is null or j.state = any($3::{schema}.minion_state[]))
      and ($2::text[] is null or s.state = any($2::text[]))
      and ($4::text is null or j.task = $4::text)
      and ($5::text is null or j.state = 'active' and j.worker::text = $5::text)
      and ($6::text is null or j.state = 'failed' or j.state = 'inactive' and j.result is not null)
-- part: age_and_tries created=j.created; tries=s.tries; older=$9; younger=$10; min=$11; top=$12
      and ($13::text[] is null or j.id = any({bigints($13)}))
      and ($16::text is null or j.id < case when $16::text ~ '^-?[0-9]{1,19}$' then $16::text::bigint end)
      and (num_nonnulls($1::text, $4::text) = 0 or not coalesce('finished' = any($3::{schema}.minion_state[]), true)
           or j.id >= coalesce((select low from bounds), -9223372036854775808))
    order by j.id desc
-- part: order_of_texts error=$6; words=$7; not_words=$8; n=$14; top=$15; text=error
-- part: has_words p=$7; text=id, queue, task, error
-- part: lacks_words p=$8; text=id, queue, task, error
    order by id desc limit coalesce($15::int, 100)
)
-- part: job_columns
from (
    select id::text, queue, task as kind, state, priority, tries, max_tries, {ms(created)} as created_ms,
           {ms(delayed)} as run_after_ms,
           {ms(case when raw = 'inactive' then coalesce(retried, created)
                    else greatest(created, started, finished) end)} as changed_ms,
           {ms(case when raw <> 'inactive' then started end)} as started_ms,
           {ms(case when raw in ('failed', 'finished') then finished end)} as finished_ms,
           case when raw <> 'inactive' then worker::text end as node, null::bigint as lease,
           {ms(notified)} + 1800000 as lease_until_ms, left(error, 300) as error, id::text as cursor,
           case when raw = 'active' then (notified > now() - interval '30 min') is not true end as stale, id as place,
           0 as mark
    from matching
-- part: end_of_texts error=$6; words=$7; not_words=$8; n=$14; top=$15
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, null, '', low::text, null, low, 1
    from bounds where low is not null and (select count(*) from matching) < coalesce($15::int, 100)
      and ($6::text is null and $7::text[] is null and $8::text[] is null
           or (select count(*) from looked_at) < coalesce($14::int, 10000))
) z order by mark, place desc

-- name: job (ids)
select j.id::text, j.queue, j.task as kind,
       case when j.state = 'active' then 'running' when j.state = 'failed' then 'failed'
            when j.state = 'finished' then 'completed'
-- part: live_state
            else 'ready' end as state,
       j.priority, least(j.retries, 2147483646) + (j.state not in ('inactive', 'active'))::int as tries,
       greatest(least(j.retries::bigint + j.attempts, 2147483647), 0)::int as max_tries,
       {ms(j.created)} as created_ms, {ms(j.delayed)} as run_after_ms,
       {ms(case when j.state = 'inactive' then coalesce(j.retried, j.created)
                                else greatest(j.created, j.started, j.finished) end)} as changed_ms,
       {ms(case when j.state <> 'inactive' then j.started end)} as started_ms,
       {ms(case when j.state in ('failed', 'finished') then j.finished end)} as finished_ms,
       case when j.state <> 'inactive' then j.worker::text end as node, null::bigint as lease,
       {ms(k.notified)} + 1800000 as lease_until_ms,
       case when j.state = 'failed' or (j.state = 'inactive' and j.retries > 0) then
           case jsonb_typeof(j.result) when 'string' then j.result #>> '{}' else j.result::text end end as error,
       null::text as cursor,
       case when j.state = 'active' then (k.notified > now() - interval '30 min') is not true end as stale,
       left(j.args::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(j.args::text)::bigint as payload_size,
       case when j.state = 'finished' then left(j.result::text, 65536) end as result, j.state::text as raw_state
from {schema}.minion_jobs j
left join {schema}.minion_workers k on k.id = j.worker and j.state = 'active' where j.id = any(({bigints($1)})[:1])

-- name: nodes
-- a worker writes a heartbeat every five minutes; a worker that a running job names and that is not registered is gone
with active as (
    select worker, count(*) as running, min(queue) as queue from {schema}.minion_jobs where state = 'active'
    group by worker
)
select coalesce(w.id, a.worker)::text as node,
       case when w.id is null or w.notified < now() - interval '30 min' then 'dead'
            when w.notified < now() - interval '15 min' then 'late'
            else 'up' end as state, w.host, w.pid, {ms(w.started)} as started_ms,
       {ms(w.notified)} as heartbeat_ms,
       case when w.status ->> 'jobs' ~ '^[0-9]{1,6}$' then (w.status ->> 'jobs')::int end as slots,
       coalesce(a.running, 0) as running, coalesce(a.running, 0) as leases,
       case when w.id is null or w.notified < now() - interval '30 min' then coalesce(a.running, 0)
            else 0 end as expired,
       coalesce((select string_agg(q, ',' order by q) from jsonb_array_elements_text(
           case jsonb_typeof(w.status -> 'queues') when 'array' then w.status -> 'queues'
                else '[]' end) q), '') as queues,
       {ms(w.notified)} + 1800000 as lease_until_ms
from {schema}.minion_workers w full join active a on a.worker = w.id order by coalesce(w.id, a.worker)

-- name: leases (node queue limit)
select j.id as lease, coalesce(j.worker::text, '') as node, j.queue, 1::bigint as jobs, {ms(j.started)} as started_ms,
       {ms(k.notified)} + 1800000 as lease_until_ms, j.id::text as job_ids,
       j.retries as tries, greatest(least(j.retries::bigint + j.attempts, 2147483647), 0)::int as max_tries,
       '→ ready' as effect
from {schema}.minion_jobs j left join {schema}.minion_workers k on k.id = j.worker
where j.state = 'active' and ($1::text is null or j.worker::text = $1::text)
  and ($2::text is null or j.queue = $2::text)
order by j.started, j.id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
    select id, queue, finished as at, case jsonb_typeof(result) when 'string' then result #>> '{}'
                                           else result::text end as error
    from {schema}.minion_jobs where state = 'failed' and ($1::text is null or queue = $1::text)
    order by id desc limit 5000
)
-- part: groups newest=at

-- name: schedules (schedule)
-- requires: version >= 25
select s.name, s.cron, 'UTC' as tz, s.queue, s.task as kind,
       case when s.paused then 'paused' else 'active' end as state, {ms(s.last_run)} as last_run_ms,
       case when s.last_job is null then null when j.id is null then 'gone' when j.state = 'active' then 'running'
            when j.state = 'finished' then 'completed' when j.state = 'failed' then 'failed'
            else 'ready' end as last_outcome,
       {ms(s.next_run)} as next_run_ms, s.last_job::text, s.priority, s.attempts as max_tries,
       s.args::text as payload, {ms(s.created)} as created_ms
from {schema}.minion_schedules s left join {schema}.minion_jobs j on j.id = s.last_job
where $1::text is null or s.name = $1::text order by s.name

-- name: requeue (ids)
-- official: retry_job
-- guard: only jobs that do not run and are not ready already
update {schema}.minion_jobs
set delayed = now(), retried = now(), retries = least(retries, 2147483646) + 1, state = 'inactive'
where id = any({bigints($1)}) and (state in ('failed', 'finished') or state = 'inactive' and delayed > now())
returning id::text, 'ready' as state

-- name: rescue (ids)
-- official: retry_job
-- guard: only running jobs whose worker has sent no heartbeat for half an hour
-- confirm: a worker that still lives goes on with the job, so it may run twice; its answer is then dropped
update {schema}.minion_jobs j
set delayed = now(), retried = now(), retries = least(retries, 2147483646) + 1, state = 'inactive'
where id = any({bigints($1)}) and state = 'active'
  and not exists (select from {schema}.minion_workers w
                  where w.id = j.worker and w.notified > now() - interval '30 min')
returning id::text, 'ready' as state

-- name: release_where (node expired_only)
-- official: retry_job
-- guard: only jobs of a worker that has sent no heartbeat for half an hour, unless all are released
-- confirm: a worker that still lives goes on with its jobs, so they may run twice; its answer is then dropped
update {schema}.minion_jobs j
set delayed = now(), retried = now(), retries = least(retries, 2147483646) + 1, state = 'inactive'
where state = 'active' and worker = case when $1::text ~ '^[0-9]{1,18}$' then $1::text::bigint end
  and (not coalesce($2::bool, true)
       or not exists (select from {schema}.minion_workers w
                      where w.id = j.worker and w.notified > now() - interval '30 min'))
returning id::text, 'ready' as state

-- name: cancel (ids)
-- official: broadcast stop
-- guard: only running jobs whose worker has sent a heartbeat within half an hour; if the worker is gone: release; if
--   the job waits: delete
-- mode: signal
with chosen as (
    select id, worker from {schema}.minion_jobs where id = any({bigints($1)}) and state = 'active'
), updated as (
    update {schema}.minion_workers w
    set inbox = w.inbox || (select jsonb_agg(jsonb_build_array('stop', j.id) order by j.id) from chosen j
                            where j.worker = w.id)
    where w.id in (select worker from chosen) and w.notified > now() - interval '30 min' returning w.id
)
select j.id::text, 'running' as state from chosen j join updated u on u.id = j.worker order by j.id

-- name: delete (ids)
-- official: remove_job
-- guard: only jobs that do not run
delete from {schema}.minion_jobs where id = any({bigints($1)}) and state in ('inactive', 'failed', 'finished')
returning id::text, 'deleted' as state

-- name: priority (ids n)
-- official: retry_job(priority, delay: what is left of it)
-- guard: only jobs of another priority that wait
update {schema}.minion_jobs
set priority = $2::int, delayed = greatest(delayed, now()), retried = now(), retries = least(retries, 2147483646) + 1
where id = any({bigints($1)}) and state = 'inactive' and priority <> $2::int
returning id::text, case when delayed > now() then 'retry' else 'ready' end as state

-- name: reschedule (ids at)
-- official: retry_job(delay)
-- guard: only jobs with another time that wait; one that has ended is requeued
update {schema}.minion_jobs set delayed = $2::timestamptz, retried = now(), retries = least(retries, 2147483646) + 1
where $2::timestamptz is not null and id = any({bigints($1)}) and state = 'inactive' and delayed <> $2::timestamptz
returning id::text, case when delayed > now() then 'retry' else 'ready' end as state

-- name: purge (queue states before limit)
-- official: what repair() removes (finished jobs); failed ones only here
-- guard: only jobs that no other waits for
with gone as (
    delete from {schema}.minion_jobs
    where id in (select j.id from {schema}.minion_jobs j
-- part purged:
                 where (j.state = 'finished' and coalesce('completed' = any($2::text[]), true)
                        or j.state = 'failed' and coalesce('failed' = any($2::text[]), true))
                   and ($1::text is null or j.queue = $1::text)
                   and ($3::timestamptz is null or j.finished < $3::timestamptz)
                   and not exists (select from {schema}.minion_jobs k
-- end part
                                   where k.parents @> array[j.id] and k.state <> 'finished')
                 order by j.id limit coalesce($4::int, 1000) for update of j skip locked)
    returning id
)
select id::text, 'purged' as state from gone

-- name: purge_preview (queue states before)
select 'purged' as state, count(*) as n, case when j.state = 'failed' then 'failed' else 'completed' end as why
from {schema}.minion_jobs j
-- part: purged
where k.parents @> array[j.id] and k.state <> 'finished')
group by j.state order by 3

-- name: cron_run (schedule)
-- official: no (next_run is now: the next worker that looks for schedules pushes its job)
-- guard: only a schedule that is not paused and not due already
-- requires: version >= 25
-- mode: deferred
update {schema}.minion_schedules set next_run = now() where name = $1::text and not paused and next_run > now()
returning name as id, 'run' as state

-- name: cron_pause (schedule)
-- official: pause_schedule
-- requires: version >= 25
update {schema}.minion_schedules set paused = true where name = $1::text and not paused
returning name as id, 'paused' as state

-- name: cron_resume (schedule)
-- official: resume_schedule
-- requires: version >= 25
update {schema}.minion_schedules set paused = false where name = $1::text and paused
returning name as id, 'resumed' as state

-- name: cron_remove (schedule)
-- official: unschedule
-- requires: version >= 25
delete from {schema}.minion_schedules where name = $1::text returning name as id, 'removed' as state
