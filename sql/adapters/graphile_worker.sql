-- adapter: graphile_worker
-- title: Graphile Worker (Node.js)
-- format: 2
-- schema: graphile_worker
-- touches: *
-- id-type: bigint
-- tested-versions: 18-20
-- min-version: 18
-- tables: _private_jobs _private_job_queues _private_tasks migrations
-- note: The queue here is the task's name; the kind is the job's named queue, whose jobs run one after the other
--   ("blocked" = it is locked).
-- note: Completed jobs are deleted. No queue can be paused. A job that fails shows only its last error.
-- note: A smaller priority runs sooner; any number from -32768 to 32767.
-- note: Locks have no heartbeat: the engine takes back what has been locked for four hours.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='_private_jobs'; column='job_queue_id'
  and exists (select from pg_proc p where p.pronamespace = n.oid and p.proname = 'force_unlock_workers')
order by 1

-- name: version
select max(id)::text as version from {schema}.migrations

-- name: queues
-- a completed job is deleted
select identifier as queue, false as paused, false as keeps from {schema}._private_tasks order by identifier

-- name: counts
-- No index finds the jobs that run or have failed. If the table has more than 128 MB, 128 MB of its pages are read at
-- random and the rest is estimated.
with sample as materialized (
    select least(
        1, 16384 * 8192.0 / greatest(
            1, pg_relation_size(to_regclass(format('%I._private_jobs', {schema_lit}::text))))) as part
), counted as (
    select j.task_id, count(*) filter (where j.locked_at is not null) as running,
           count(*) filter (where j.locked_at is null and j.attempts >= j.max_attempts) as failed,
           count(*) filter (where j.is_available and j.run_at > now() and j.attempts = 0) as scheduled,
           count(*) filter (where j.is_available and j.run_at > now() and j.attempts > 0) as retry,
           count(*) filter (where j.is_available and j.run_at <= now() and q.locked_at is not null) as blocked,
           count(*) filter (where j.is_available and j.run_at <= now() and q.locked_at is null) as ready,
           min(j.run_at) filter (where j.is_available and j.run_at <= now() and q.locked_at is null) as oldest
    from {schema}._private_jobs j tablesample system ((select 100 * part from sample))
    left join {schema}._private_job_queues q on q.id = j.job_queue_id group by j.task_id
)
select t.identifier as queue, round(coalesce(c.scheduled, 0) / s.part)::bigint as scheduled,
       round(coalesce(c.ready, 0) / s.part)::bigint as ready, round(coalesce(c.retry, 0) / s.part)::bigint as retry,
       round(coalesce(c.running, 0) / s.part)::bigint as running,
       round(coalesce(c.failed, 0) / s.part)::bigint as failed,
       {ms(c.oldest)} as oldest_ms, round(coalesce(c.blocked, 0) / s.part)::bigint as blocked, s.part < 1 as approx
from sample s cross join {schema}._private_tasks t left join counted c on c.task_id = t.id order by t.identifier

-- name: jobs
-- params: queue states kind node error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first
-- Newest first. If texts must be searched, n jobs are read; a row without an id gives the cursor to continue from. The
-- run_at of a failed job is later than its end, by the pause before the next try that would have followed:
-- exp(attempts) seconds.
with looked_at as materialized (
    select j.id, t.identifier as queue, coalesce(q.queue_name, '') as kind, s.state, j.priority, j.attempts,
           j.max_attempts, j.created_at, j.run_at, j.updated_at, j.locked_at, j.locked_by, j.last_error
-- part jobs_and_state:
    from {schema}._private_jobs j
    join {schema}._private_tasks t on t.id = j.task_id
    left join {schema}._private_job_queues q on q.id = j.job_queue_id
    cross join lateral (
        select case when j.locked_at is not null then 'running' when j.attempts >= j.max_attempts then 'failed'
                    when j.run_at > now() and j.attempts > 0 then 'retry' when j.run_at > now() then 'scheduled'
                    when q.locked_at is not null then 'blocked' else 'ready' end as state
-- end part
    ) s
    where ($1::text is null or t.identifier = $1::text)
      and ($2::text[] is null or s.state = any($2::text[]))
      and ($3::text is null or q.queue_name = $3::text)
      and ($4::text is null or j.locked_by = $4::text)
      and ($5::text is null or j.last_error is not null or s.state = 'failed')
-- part: age_and_tries created=j.created_at; tries=j.attempts; older=$8; younger=$9; min=$10; top=$11
      and ($12::text[] is null or j.id = any({bigints($12)}))
      and ($15::text is null or j.id < case when $15::text ~ '^-?[0-9]{1,19}$' then $15::text::bigint end)
    order by j.id desc
-- part: order_of_texts error=$5; words=$6; not_words=$7; n=$13; top=$14; text=last_error
-- part: has_words p=$6; text=id, queue, kind, last_error
-- part: lacks_words p=$7; text=id, queue, kind, last_error
    order by id desc limit coalesce($14::int, 100)
)
-- part: job_columns
from (
    select id::text, queue, kind, state, priority::int, greatest(attempts - (state = 'running')::int, 0) as tries,
           max_attempts::int as max_tries, {ms(created_at)} as created_ms, {ms(run_at)} as run_after_ms,
           {ms(greatest(updated_at, locked_at, case when state = 'failed' then
                least(now(), greatest(run_at, '2000-01-01') - exp(
                    least(attempts, 10)) * interval '1 s') end))} as changed_ms,
           {ms(locked_at)} as started_ms,
           {ms(case when state = 'failed' then
                greatest(updated_at,
                         least(now(), greatest(run_at, '2000-01-01') - exp(
                             least(attempts, 10)) * interval '1 s')) end)} as finished_ms,
           locked_by as node, null::bigint as lease, {ms(locked_at)} + 14400000 as lease_until_ms,
           left(last_error, 300) as error, id::text as cursor,
           case when state = 'running' then locked_at < now() - interval '4 h' end as stale, id as place, 0 as mark
    from matching
-- part: end_of_texts error=$5; words=$6; not_words=$7; n=$13; top=$14
) z order by mark, place desc

-- name: job (ids)
select j.id::text, t.identifier as queue, coalesce(q.queue_name, '') as kind, s.state, j.priority::int,
       greatest(j.attempts - (s.state = 'running')::int, 0) as tries,
       j.max_attempts::int as max_tries, {ms(j.created_at)} as created_ms, {ms(j.run_at)} as run_after_ms,
       {ms(greatest(j.updated_at, j.locked_at, s.ended))} as changed_ms, {ms(j.locked_at)} as started_ms,
       {ms(case when s.state = 'failed' then greatest(j.updated_at, s.ended) end)} as finished_ms,
       j.locked_by as node, null::bigint as lease, {ms(j.locked_at)} + 14400000 as lease_until_ms,
       j.last_error as error, null::text as cursor,
       case when s.state = 'running' then j.locked_at < now() - interval '4 h' end as stale, j.key as unique_key,
       left(j.payload::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(j.payload::text)::bigint as payload_size
-- part: jobs_and_state
,
           case when j.locked_at is null and j.attempts >= j.max_attempts then
               least(now(), greatest(j.run_at, '2000-01-01') - exp(
                   least(j.attempts, 10)) * interval '1 s') end as ended) s
where j.id = any(({bigints($1)})[:1])

-- name: nodes
-- only workers that hold a lock are known
select node, 'unknown' as state, null::text as host, null::int as pid, null::bigint as started_ms,
       null::bigint as heartbeat_ms, count(*) filter (where job) as running, count(*) filter (where job) as leases,
       count(*) filter (where job and locked_at < now() - interval '4 h') as expired,
       coalesce(string_agg(distinct queue, ',' order by queue), '') as queues,
       {ms(max(locked_at))} + 14400000 as lease_until_ms
from (select j.locked_by as node, j.locked_at, t.identifier as queue, true as job
      from {schema}._private_jobs j join {schema}._private_tasks t on t.id = j.task_id where j.locked_by is not null
      union all
      select locked_by, locked_at, null, false from {schema}._private_job_queues where locked_by is not null) l
group by node order by node

-- name: leases (node queue limit)
select j.id as lease, j.locked_by as node, t.identifier as queue, 1::bigint as jobs, {ms(j.locked_at)} as started_ms,
       {ms(j.locked_at)} + 14400000 as lease_until_ms, j.id::text as job_ids,
       greatest(j.attempts - 1, 0) as tries, j.max_attempts::int as max_tries,
       case when j.attempts >= j.max_attempts then '→ failed (last try)' else '→ ready' end as effect
from {schema}._private_jobs j join {schema}._private_tasks t on t.id = j.task_id
where j.locked_by is not null and ($1::text is null or j.locked_by = $1::text)
  and ($2::text is null or t.identifier = $2::text)
order by j.locked_at, j.id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
    select j.id, t.identifier as queue, j.last_error as error,
           greatest(j.updated_at,
                    least(now(), greatest(j.run_at, '2000-01-01') - exp(least(j.attempts, 10)) * interval '1 s')) as at
    from {schema}._private_jobs j join {schema}._private_tasks t on t.id = j.task_id
    where j.locked_at is null and j.attempts >= j.max_attempts and ($1::text is null or t.identifier = $1::text)
    order by j.id desc limit 5000
)
-- part: groups newest=at

-- name: schedules (schedule)
-- their cron expressions are in the application's crontab file
select identifier as name, '' as cron, 'UTC' as tz, '' as queue, '' as kind, 'active' as state,
       {ms(last_execution)} as last_run_ms, null::text as last_outcome, null::bigint as next_run_ms,
       'the crontab is a file of the application' as comment, {ms(known_since)} as created_ms
from {schema}._private_known_crontabs
where $1::text is null or identifier = $1::text order by identifier

-- name: requeue (ids)
-- official: reschedule_jobs(run_at := now(), attempts := 0 if none is left)
-- guard: only jobs that do not run and are not ready already
with chosen as materialized (
    select id, attempts >= max_attempts as over from {schema}._private_jobs
    where id = any({bigints($1)}) and locked_at is null and (attempts >= max_attempts or run_at > now())
    order by id for update
)
select r.id::text, 'ready' as state
from (select array_agg(id) filter (where over) as ended, array_agg(id) filter (where not over) as waiting from chosen) x
cross join lateral (select id from {schema}.reschedule_jobs(x.ended, run_at := now(), attempts := 0)
                    union all select id from {schema}.reschedule_jobs(x.waiting, run_at := now())) r

-- name: rescue (ids)
-- official: no (force_unlock_workers, for one job)
-- guard: only jobs that a worker holds
-- confirm: a worker that is still alive goes on with the job: it may run twice, and the first success deletes it
with chosen as (
    select id, locked_by, job_queue_id from {schema}._private_jobs
    where id = any({bigints($1)}) and locked_at is not null order by id for update
), updated as (
    update {schema}._private_jobs k set locked_at = null, locked_by = null from chosen j where k.id = j.id
    returning k.id, case when k.attempts >= k.max_attempts then 'failed' when k.run_at > now() then 'retry'
                         else 'ready' end as state
), queue_locks as (
    update {schema}._private_job_queues q set locked_at = null, locked_by = null from chosen j
    where q.id = j.job_queue_id and q.locked_by = j.locked_by returning q.id
)
select id::text, state from updated u where (select count(*) from queue_locks) >= 0

-- name: release_where (node expired_only)
-- official: force_unlock_workers
-- confirm: a worker that is still alive goes on with its jobs: they may run twice, and the first success deletes them
with updated as (
    update {schema}._private_jobs set locked_at = null, locked_by = null
    where locked_by = $1::text and (not coalesce($2::bool, true) or locked_at < now() - interval '4 h')
    returning id, case when attempts >= max_attempts then 'failed' when run_at > now() then 'retry'
                       else 'ready' end as state
), queue_locks as (
    update {schema}._private_job_queues set locked_at = null, locked_by = null
    where locked_by = $1::text and (not coalesce($2::bool, true) or locked_at < now() - interval '4 h') returning id
)
select id::text, state from updated u where (select count(*) from queue_locks) >= 0 order by id

-- name: extend (ids by)
-- official: no
-- guard: only jobs that a worker holds and whose lock (four hours) ends before that time
with updated as (
    update {schema}._private_jobs set locked_at = now() + $2::interval - interval '4 h'
    where id = any({bigints($1)}) and locked_at < now() + $2::interval - interval '4 h'
    returning id, job_queue_id, locked_by, locked_at
), queue_locks as (
    update {schema}._private_job_queues q set locked_at = greatest(q.locked_at, u.locked_at) from updated u
    where q.id = u.job_queue_id and q.locked_by = u.locked_by returning q.id
)
select id::text, 'extended' as state from updated u where (select count(*) from queue_locks) >= 0

-- name: discard (ids reason)
-- official: permanently_fail_jobs
-- guard: only jobs that have not failed and do not run (locked within four hours)
select r.id::text, 'failed' as state
from (select array_agg(id) as ids from {schema}._private_jobs
      where id = any({bigints($1)})
        and attempts < max_attempts) x
cross join lateral {schema}.permanently_fail_jobs(x.ids, $2::text) r

-- name: delete (ids)
-- official: complete_jobs
-- guard: only jobs that do not run (locked within four hours)
select r.id::text, 'deleted' as state from {schema}.complete_jobs({bigints($1)}) r

-- name: priority (ids n)
-- official: reschedule_jobs(priority)
-- guard: only jobs of another priority that do not run (locked within four hours)
-- range: -32768..32767
select r.id::text, case when r.attempts >= r.max_attempts then 'failed' when r.run_at <= now() then 'ready'
                        when r.attempts > 0 then 'retry' else 'scheduled' end as state
from (select array_agg(id) as ids from {schema}._private_jobs
      where id = any({bigints($1)})
        and priority <> least(greatest($2::int, -32768), 32767)) x
cross join lateral {schema}.reschedule_jobs(x.ids, priority := least(greatest($2::int, -32768), 32767)) r

-- name: reschedule (ids at)
-- official: reschedule_jobs(run_at)
-- guard: only jobs with another time that wait; a failed one is requeued
select r.id::text, case when r.run_at <= now() then 'ready' when r.attempts > 0 then 'retry'
                        else 'scheduled' end as state
from (select array_agg(id) as ids from {schema}._private_jobs
      where id = any({bigints($1)})
        and locked_at is null and attempts < max_attempts and run_at <> $2::timestamptz) x
cross join lateral {schema}.reschedule_jobs(x.ids, run_at := $2::timestamptz) r

-- name: purge (queue states before limit)
-- official: cleanup(DELETE_PERMAFAILED_JOBS)
-- guard: only failed jobs are kept at all
delete from {schema}._private_jobs
where id in (select j.id from {schema}._private_jobs j join {schema}._private_tasks t on t.id = j.task_id
-- part purged:
             where j.locked_at is null and j.attempts >= j.max_attempts
               and ($1::text is null or t.identifier = $1::text)
               and ($2::text[] is null or 'failed' = any($2::text[]))
               and ($3::timestamptz is null
                    or greatest(j.updated_at,
                                least(now(), greatest(j.run_at, '2000-01-01') - exp(
                                    least(j.attempts, 10)) * interval '1 s')) < $3::timestamptz)
-- end part
             order by j.id limit coalesce($4::int, 1000) for update of j skip locked)
returning id::text, 'purged' as state

-- name: purge_preview (queue states before)
select 'purged' as state, count(*) as n, 'failed' as why
from {schema}._private_jobs j join {schema}._private_tasks t on t.id = j.task_id
-- part: purged
having count(*) > 0
