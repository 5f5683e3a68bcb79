-- adapter: que
-- title: Que (Ruby)
-- format: 2
-- schema: public
-- id-type: bigint
-- tested-versions: 5-7
-- min-version: 5
-- tables: que_jobs que_lockers
-- note: A job runs as long as its worker's session holds an advisory lock on the job's number; no lock here is taken
--   away from a session. To free what a worker holds, end its session (terminate): everything that session holds goes
--   with it.
-- note: Expired jobs are shown as failed. They and finished ones have no index: a count of failed ones covers the
--   newest 10,000 jobs.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='que_jobs'; column='expired_at'
-- part: has_column table='que_lockers'; column='ruby_pid'
order by 1

-- name: version
-- the comment of the table holds the number of the last migration
select substring(obj_description(c.oid, 'pg_class') from '^[0-9]{1,6}$') as version
from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = {schema_lit} and c.relname = 'que_jobs'

-- name: queues
select queue, null::bool as paused
from (select queue from {schema}.que_jobs where finished_at is null and expired_at is null
      union select queue from (select queue from {schema}.que_jobs order by id desc limit 10000) n
      union select unnest(queues) from {schema}.que_lockers) q
where queue is not null order by 1 limit 10000

-- name: counts
with held as materialized (
    select (l.classid::bigint << 32) | l.objid::bigint as id from pg_locks l
-- part of_worker:
    where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.pid in (select pid from {schema}.que_lockers)
      and l.database = (select oid from pg_database where datname = current_database())
-- end part
), newest as materialized (
    select queue, expired_at is not null and finished_at is null as failed from {schema}.que_jobs order by id desc
    limit 10000
), counted as (
    select queue, count(*) filter (where run_at > now() and error_count = 0 and not runs) as scheduled,
           count(*) filter (where run_at <= now() and not runs) as ready,
           count(*) filter (where run_at > now() and error_count <> 0 and not runs) as retry,
           count(*) filter (where runs) as running, 0::bigint as failed,
           min(run_at) filter (where run_at <= now() and not runs) as oldest
    from (select queue, run_at, error_count, id in (select id from held) as runs
          from {schema}.que_jobs where finished_at is null and expired_at is null) j group by queue
    union all
    select queue, 0, 0, 0, 0, count(*), null from newest where failed group by queue
)
select queue, sum(scheduled)::bigint as scheduled, sum(ready)::bigint as ready, sum(retry)::bigint as retry,
       sum(running)::bigint as running,
       sum(failed)::bigint as failed, {ms(min(oldest))} as oldest_ms, (select count(*) from newest) = 10000 as approx
from counted c group by queue order by 1

-- name: counts_final
-- cost: reads all jobs
select queue, count(*) as completed from {schema}.que_jobs where finished_at is not null group by 1 order by 1

-- name: jobs (queue states kind node error words older_than younger_than min_tries top_tries ids n limit cursor)
-- order: *: highest id first
-- Newest first, by number: the time of the push is not kept (the age is that of run_at). Live jobs have an index; the
-- others are looked for among n jobs at a time: a row without an id gives the cursor to continue from.
with held as materialized (
    select (l.classid::bigint << 32) | l.objid::bigint as id, min(l.pid) as pid from pg_locks l
-- part: of_worker
    group by 1
), looked_at as materialized (
    select j.*, row_number() over (order by j.id desc) as o from {schema}.que_jobs j
    where ($1::text is null or j.queue = $1::text)
      and (coalesce($2::text[] && '{failed,completed,cancelled,blocked}', true)
           or (j.finished_at is null and j.expired_at is null))
      and (coalesce(not $2::text[] <@ '{running}', true) or j.id in (select id from held))
      and ($11::text[] is null or j.id = any({bigints($11)}))
      and ($14::text is null or j.id < case when $14::text ~ '^-?[0-9]{1,19}$' then $14::text::bigint end)
    order by j.id desc
-- part: n_if_terms terms=$2::text[], $3::text, $4::text, $5::text, $6::text[], $7::interval, $8::interval, $9::int,
--   $10::int; n=$12; top=$13
), matching as (
    select w.*, s.state, s.kind, h.pid
    from looked_at w left join held h on h.id = w.id and w.finished_at is null and w.expired_at is null
    cross join lateral (
        select case when w.finished_at is not null then 'completed' when w.expired_at is not null then 'failed'
                    when h.pid is not null then 'running'
                    when w.run_at <= now() then 'ready' when w.error_count = 0 then 'scheduled'
                    else 'retry' end as state,
               coalesce(case when w.job_class like '%JobWrapper' then w.args #>> '{0,job_class}' end,
                        w.job_class) as kind) s
    where ($2::text[] is null or s.state = any($2::text[]))
      and ($3::text is null or s.kind = $3::text)
      and ($4::text is null or h.pid::text = $4::text)
-- part: error_term p=$5; error=w.last_error_message; key=w.last_error_message; state=s.state
-- part: has_words p=$6; text=w.id, w.queue, s.kind, w.last_error_message
-- part: age_and_tries created=w.run_at; tries=w.error_count; older=$7; younger=$8; min=$9; top=$10
    order by w.o limit coalesce($13::int, 100)
)
select id::text, queue, kind, state, priority::int, error_count as tries, null::int as max_tries,
       null::bigint as created_ms,
       {ms(run_at)} as run_after_ms, {ms(coalesce(finished_at, expired_at))} as changed_ms, null::bigint as started_ms,
       {ms(coalesce(finished_at, expired_at))} as finished_ms, pid::text as node, null::bigint as lease,
       null::bigint as lease_until_ms, left(last_error_message, 300) as error, id::text as cursor
from matching f
union all
select '', '', '', '', null, 0, null, null, null, null, null, null, null, null, null, '', id::text
from looked_at w where o = coalesce($12::int, 10000) and (select count(*) from matching) < coalesce($13::int, 100)

-- name: job (ids)
select j.id::text, j.queue, coalesce(case when j.job_class like '%JobWrapper' then j.args #>> '{0,job_class}' end,
                                     j.job_class) as kind,
       case when j.finished_at is not null then 'completed' when j.expired_at is not null then 'failed'
            when h.pid is not null then 'running'
            when j.run_at <= now() then 'ready' when j.error_count = 0 then 'scheduled' else 'retry' end as state,
       j.priority::int, j.error_count as tries, null::int as max_tries, null::bigint as created_ms,
       {ms(j.run_at)} as run_after_ms,
       {ms(coalesce(j.finished_at, j.expired_at))} as changed_ms, null::bigint as started_ms,
       {ms(coalesce(j.finished_at, j.expired_at))} as finished_ms, h.pid::text as node, null::bigint as lease,
       null::bigint as lease_until_ms, j.last_error_message as error, null::text as cursor,
       left(p.payload, 1000000) as payload, 'json' as payload_format,
       'application/json' as payload_type, octet_length(p.payload)::bigint as payload_size
from {schema}.que_jobs j
cross join lateral (
    select case when to_jsonb(j) -> 'kwargs' is null or to_jsonb(j) -> 'kwargs' = '{}' then j.args::text
                else jsonb_build_object('args', j.args, 'kwargs', to_jsonb(j) -> 'kwargs')::text end as payload) p
left join lateral (
    select l.pid from pg_locks l
-- part: of_worker
      and (l.classid::bigint << 32) | l.objid::bigint = j.id and j.finished_at is null and j.expired_at is null
    limit 1) h on true
where j.id = any(({bigints($1)})[:1])

-- name: attempts (ids)
-- only the last error is kept
select error_count as number, null::text as node, null::bigint as started_ms, {ms(expired_at)} as ended_ms,
       case when expired_at is not null and finished_at is null then 'failed' else 'retry' end as outcome,
       last_error_message as error, last_error_backtrace as trace
from {schema}.que_jobs where error_count > 0 and last_error_message is not null and id = any(({bigints($1)})[:1])

-- name: nodes
-- a worker process is the database session that holds the locks of its jobs: the jobs run as long as that session lives
select k.pid::text as node, case when a.pid is null then 'dead' else 'up' end as state, k.ruby_hostname as host,
       k.ruby_pid as pid, {ms(a.backend_start)} as started_ms, null::bigint as heartbeat_ms, k.worker_count as slots,
       coalesce(h.n, 0) as running, coalesce(h.n, 0) as leases, array_to_string(k.queues, ',') as queues,
       a.pid is not null as session_alive, k.pid as backend_pid,
       a.state as session_state, {ms(a.state_change)} as session_ms
from {schema}.que_lockers k
left join pg_stat_activity a on a.pid = k.pid and a.datname = current_database()
left join (select l.pid, count(*) as n
           from pg_locks l
           join {schema}.que_jobs j on j.id = (l.classid::bigint << 32) | l.objid::bigint
               and j.finished_at is null and j.expired_at is null
           where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
             and l.database = (select oid from pg_database where datname = current_database())
           group by 1) h on h.pid = k.pid order by 1

-- name: leases (node queue limit)
select j.id as lease, l.pid::text as node, j.queue, 1::bigint as jobs, null::bigint as started_ms,
       null::bigint as lease_until_ms, j.id::text as job_ids, j.error_count as tries, '→ ready' as effect
from pg_locks l
join {schema}.que_jobs j on j.id = (l.classid::bigint << 32) | l.objid::bigint and j.finished_at is null
    and j.expired_at is null
-- part: of_worker
  and ($1::text is null or l.pid::text = $1::text) and ($2::text is null or j.queue = $2::text)
order by l.pid, j.id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
    select id, queue, expired_at as at, last_error_message as error from {schema}.que_jobs
    where expired_at is not null and finished_at is null and ($1::text is null or queue = $1::text) order by id desc
    limit 5000
)
-- part: groups newest=id

-- name: requeue (ids)
-- official: que-web's reschedule to now: run_at, expired_at NULL, under the job's lock; errors stay counted
-- guard: only jobs that have expired or wait for their time and whose lock no worker holds
with chosen as materialized (
    select j.id from {schema}.que_jobs j
    where j.finished_at is null and (j.expired_at is not null or j.run_at > now()) and j.id = any({bigints($1)})
    order by j.id
-- part locked:
), got as materialized (
    select w.id from chosen w where pg_try_advisory_xact_lock(w.id)
)
-- end part
update {schema}.que_jobs j set run_at = now(), expired_at = null
from got where j.id = got.id and j.finished_at is null and (j.expired_at is not null or j.run_at > now())
returning j.id::text, 'ready' as state

-- name: reschedule (ids at)
-- official: que-web's reschedule: run_at, expired_at NULL, under the job's lock
-- guard: only jobs with another time that are not finished and whose lock no worker holds
with chosen as materialized (
    select j.id from {schema}.que_jobs j
    where j.finished_at is null and (j.run_at <> $2::timestamptz or j.expired_at is not null)
      and j.id = any({bigints($1)})
    order by j.id
-- part: locked
update {schema}.que_jobs j set run_at = $2::timestamptz, expired_at = null
from got where j.id = got.id and j.finished_at is null
returning j.id::text, case when j.run_at <= now() then 'ready' when j.error_count = 0 then 'scheduled'
                           else 'retry' end as state

-- name: discard (ids)
-- official: Que::Job#expire: it stays as expired (failed) and can be requeued
-- guard: only jobs that are neither finished nor expired and whose lock no worker holds
with chosen as materialized (
    select j.id from {schema}.que_jobs j
    where j.finished_at is null and j.expired_at is null and j.id = any({bigints($1)}) order by j.id
-- part: locked
update {schema}.que_jobs j set expired_at = now()
from got where j.id = got.id and j.finished_at is null and j.expired_at is null returning j.id::text, 'expired' as state

-- name: delete (ids)
-- official: que-web's delete, under the job's lock
-- guard: only jobs whose lock no worker holds
with chosen as materialized (
    select j.id from {schema}.que_jobs j where j.id = any({bigints($1)}) order by j.id
-- part: locked
delete from {schema}.que_jobs j using got where j.id = got.id returning j.id::text, 'deleted' as state

-- name: priority (ids n)
-- official: no (plain column, under the job's lock; smaller is sooner)
-- guard: only jobs of another priority that are neither finished nor expired and whose lock no worker holds
-- range: -32768..32767
with chosen as materialized (
    select j.id from {schema}.que_jobs j
    where j.finished_at is null and j.expired_at is null and $2::int between -32768 and 32767 and j.priority <> $2::int
      and j.id = any({bigints($1)})
    order by j.id
-- part: locked
update {schema}.que_jobs j set priority = least(greatest($2::int, -32768), 32767)::smallint
from got where j.id = got.id and j.finished_at is null and j.expired_at is null
returning j.id::text, case when j.run_at <= now() then 'ready' when j.error_count = 0 then 'scheduled'
                           else 'retry' end as state

-- name: release_where (node)
-- official: Que's clean-up of lockers: the entry of a session that is gone is removed; its jobs are free already
-- guard: only if the worker's session is gone; to free what a living session holds: terminate
delete from {schema}.que_lockers k
where k.pid::text = $1::text and not exists (select from pg_stat_activity a where a.pid = k.pid)
returning k.pid::text as id, 'removed' as state

-- name: terminate (node)
-- official: no (pg_terminate_backend of the worker's session)
-- guard: only a registered worker whose session, in this database, holds the lock of a job
-- confirm: ends the worker's database session; its jobs are free at once and may still be running there: they can run
--   twice
-- mode: signal
-- requires: pg_signal_backend
-- dry: no
select k.pid::text as id, case when pg_terminate_backend(k.pid) then 'terminated' end as state
from {schema}.que_lockers k join pg_stat_activity a on a.pid = k.pid and a.datname = current_database()
where k.pid::text = $1::text and k.pid <> pg_backend_pid()
  and exists (select from pg_locks l join {schema}.que_jobs j on j.id = (l.classid::bigint << 32) | l.objid::bigint
              where l.pid = k.pid and l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.database = a.datid)

-- name: purge (queue states before limit)
-- official: no (plain delete)
-- guard: only finished and expired jobs
delete from {schema}.que_jobs j
where j.id = any(array(
    select f.id from {schema}.que_jobs f
    where case when f.finished_at is not null then 'completed' when f.expired_at is not null then 'failed' end
              = any(coalesce($2::text[], '{completed}'))
      and coalesce(f.finished_at, f.expired_at) < coalesce($3::timestamptz, now())
      and ($1::text is null or f.queue = $1::text)
    order by f.id limit coalesce($4::int, 1000) for update skip locked))
returning j.id::text, 'purged' as state

-- name: purge_preview (queue states before)
select 'purged' as state, count(*) as n, case s.state when 'failed' then 'failed, still to requeue'
                                              else s.state end as why
from {schema}.que_jobs j cross join lateral (
    select case when j.finished_at is not null then 'completed'
                when j.expired_at is not null then 'failed' end as state) s
where s.state = any(coalesce($2::text[], '{completed}'))
  and coalesce(j.finished_at, j.expired_at) < coalesce($3::timestamptz, now())
  and ($1::text is null or j.queue = $1::text)
group by s.state
