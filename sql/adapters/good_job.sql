-- adapter: good_job
-- title: GoodJob (Rails)
-- format: 2
-- schema: public
-- id-type: uuid
-- tested-versions: 4.0-4.19
-- min-version: 4.0
-- timezone: UTC
-- tables: good_jobs good_job_executions good_job_processes good_job_settings
-- note: GoodJob keeps no version: 4.19 stands for tables with lock_type, 4.20 for newer ones.
-- note: Acts take the job's advisory lock as GoodJob does (its hash md5); a job that is locked elsewhere is left alone.
--   Ruby's callbacks and concurrency checks do not run. The next worker takes a job whose lock is free, so nothing
--   needs to be taken back.
-- note: Pauses hold only if the application sets enable_pauses. Cron lines are in the application; only those that have
--   run are shown.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='good_jobs'; column='locked_by_id'
-- part: has_table table='good_job_processes'
-- part: has_table table='good_job_settings'
order by 1

-- name: version
select case when to_regclass(format('%I.good_job_concurrency_claims', {schema_lit})) is not null then '4.20'
            when exists (select from pg_attribute where attrelid = format('%I.good_jobs', {schema_lit})::regclass
                                                    and attname = 'lock_type') then '4.19'
            else '4.0' end as version

-- name: queues
-- queues that are paused or have unfinished jobs, found by skipping through the index
with recursive queue_names as (
    select min(queue_name) as queue from {schema}.good_jobs where finished_at is null
    union all
    select (select min(j.queue_name) from {schema}.good_jobs j where j.finished_at is null and j.queue_name > q.queue)
    from queue_names q where q.queue is not null
), pauses as (
    select value -> 'queues' as queues, updated_at from {schema}.good_job_settings
    where key = 'pauses' and jsonb_typeof(value -> 'queues') = 'array'
), paused as (
    select jsonb_array_elements_text(queues) as queue, updated_at from pauses
)
select coalesce(q.queue, p.queue) as queue, p.queue is not null as paused, null::text as info
from (select queue from queue_names where queue is not null) q
full join (select distinct on (queue) * from paused order by queue) p on p.queue = q.queue order by 1

-- name: counts
-- unfinished jobs and failed ones, each by its partial index
select queue, sum(scheduled)::bigint as scheduled, sum(ready)::bigint as ready, sum(retry)::bigint as retry,
       sum(running)::bigint as running, sum(failed)::bigint as failed, {ms(min(oldest))} as oldest_ms
from (select coalesce(queue_name, '') as queue,
             count(*) filter (where performed_at is null and scheduled_at > now() and error is null) as scheduled,
             count(*) filter (where performed_at is null and coalesce(scheduled_at, created_at) <= now()) as ready,
             count(*) filter (where performed_at is null and scheduled_at > now() and error is not null) as retry,
             count(*) filter (where performed_at is not null) as running, 0 as failed,
             min(scheduled_at) filter (where performed_at is null and scheduled_at <= now()) as oldest
      from {schema}.good_jobs where finished_at is null group by 1
      union all
      select coalesce(queue_name, ''), 0, 0, 0, 0, count(*), null
      from {schema}.good_jobs where finished_at is not null and error is not null group by 1) s
group by 1

-- name: counts_final
-- cost: reads all finished jobs; of more than five million jobs a sample
-- part: table_size table='%I.good_jobs'
select queue, sum(n)::bigint as completed, null::bigint as cancelled, bool_or(approx) as approx
from (select coalesce(queue_name, '') as queue, count(*)::numeric as n, false as approx from {schema}.good_jobs
      where finished_at is not null and error is null and (select n <= 5e6 from size) group by 1
      union all
      select coalesce(queue_name, ''), round(count(*) * (select n / 100000 from size)::numeric), true
      from {schema}.good_jobs tablesample system ((select least(100, 1e7 / n) from size))
      where finished_at is not null and error is null and (select n > 5e6 from size) group by 1) s
group by 1

-- name: jobs
-- params: queue states kind node error words not_words ids older_than younger_than min_tries top_tries in_payload path
--   n limit cursor
-- order: failed: last failed first; completed: last finished first; retry,scheduled: next due first;
--   *: first due first, then last failed
-- Without states: jobs that are not completed. Unfinished jobs by the time when they are due (running ones were due
-- first), then failed ones, then completed ones, newest first. Each arm stops when it has found enough or has read n
-- rows; a row without an id gives the cursor to continue from.
with params as not materialized (
-- part: search
           nullif(split_part($17::text, '/', 1), '')::int as c_arm,
           nullif(split_part($17::text, '/', 2), '')::uuid as c_id,
           substring($17::text from '^[^/]*/[^/]*/(.*)$')::timestamp as c_at,
           case when $8::text[] is null and ($2::text[] is null or $2::text[] && '{running,ready,scheduled,retry}')
                    then 1 end as arm1,
           case when $8::text[] is null and ($2::text[] is null and $4::text is null or $2::text[] @> '{failed}')
                    then 2 end as arm2,
           case when $8::text[] is null and $2::text[] @> '{completed}' then 3 end as arm3,
           $2::text[] is not null and $2::text[] <@ '{ready}' as due,
           $2::text[] is not null and $2::text[] <@ '{scheduled,retry}' as not_due
), unfinished as (
    select j.*, 1 as arm, j.scheduled_at as at from params p, {schema}.good_jobs j
    where j.finished_at is null and p.arm1 = 1 and (p.queue is null or j.queue_name = p.queue)
      and coalesce(p.c_arm, 1) = 1
      and (not p.due or j.scheduled_at <= now()) and (not p.not_due or j.scheduled_at > now())
      and (p.c_id is null or (j.scheduled_at >= p.c_at and (j.scheduled_at, j.id) > (p.c_at, p.c_id)))
    order by j.scheduled_at, j.id limit (select n from params)
), failed_jobs as (
    select j.*, 2 as arm, j.finished_at as at from params p, {schema}.good_jobs j
    where j.finished_at is not null and j.error is not null and p.arm2 = 2 and coalesce(p.c_arm, 1) <= 2
      and (p.c_arm is null or p.c_arm < 2 or (j.finished_at <= p.c_at and (j.finished_at, j.id) < (p.c_at, p.c_id)))
    order by j.finished_at desc, j.id desc limit (select n from params)
), completed_jobs as (
    select j.*, 3 as arm, j.finished_at as at from params p, {schema}.good_jobs j
    where j.finished_at is not null and p.arm3 = 3
      and (p.c_arm is null or p.c_arm < 3 or (j.finished_at <= p.c_at and (j.finished_at, j.id) < (p.c_at, p.c_id)))
    order by j.finished_at desc, j.id desc limit (select n from params)
), jobs_by_id as (
    select j.*, 4 as arm, j.created_at as at from params p cross join {schema}.good_jobs j
    where j.id = any({uuids(p.ids)})
), matching_unfinished as materialized (
    select c.* from params p, unfinished c cross join lateral (
        select case when c.performed_at is not null then 'running'
                    when c.scheduled_at is null or c.scheduled_at <= now() then 'ready'
                    when c.error is not null then 'retry' else 'scheduled' end as norm) e
    where (p.states is null or e.norm = any(p.states)) and (p.kind is null or c.job_class = p.kind)
      and (p.node is null or (c.locked_by_id::text = p.node and c.performed_at is not null))
      and (p.error_key is null or {error_key(c.error)} = p.error_key)
-- part: text_terms error=c.error; created=c.created_at; tries=coalesce(c.executions_count, 0); text=c.id, c.queue_name,
--   c.job_class, c.error
-- part: payload_term json=(c.serialized_params -> 'arguments')
    limit (select top from params)
), stop_unfinished as materialized (
    -- the search ended early: the cursor to continue from
    select * from (select id, arm, at from unfinished offset (select n - 1 from params)) z
    where (select count(*) from matching_unfinished) < (select top from params)
), matching_finished as materialized (
    select c.* from params p, (select * from failed_jobs union all select * from completed_jobs union all select *
            from jobs_by_id) c
    where (p.queue is null or c.queue_name = p.queue)
      and (p.states is null or case when c.finished_at is not null and c.error is not null then 'failed'
                                    when c.finished_at is not null then 'completed'
                                    when c.performed_at is not null then 'running'
                                    when c.scheduled_at is null or c.scheduled_at <= now() then 'ready'
                                    when c.error is not null then 'retry' else 'scheduled' end = any(p.states))
      and (c.arm <> 3 or c.error is null) and (p.kind is null or c.job_class = p.kind)
      and (p.node is null or c.locked_by_id::text = p.node)
      and (p.error_key is null or {error_key(c.error)} = p.error_key)
-- part: text_terms error=c.error; created=c.created_at; tries=coalesce(c.executions_count, 0); text=c.id, c.queue_name,
--   c.job_class, c.error
-- part: payload_term json=(c.serialized_params -> 'arguments')
      and (select count(*) from matching_unfinished) < (select top from params)
      and not exists (select from stop_unfinished)
    limit (select top from params)
), stop_finished as materialized (
    select z.* from (select id, arm, at from failed_jobs offset (select n - 1 from params)) z
    where (select count(*) from matching_unfinished) + (select count(*) from matching_finished)
        < (select top from params) and not exists (select from stop_unfinished)
    union all
    select z.* from (select id, arm, at from completed_jobs offset (select n - 1 from params)) z
    where (select count(*) from matching_unfinished) + (select count(*) from matching_finished)
        < (select top from params) and not exists (select from stop_unfinished)
), found as (
    select *, row_number() over (order by arm, case when arm = 1 then at end, case when arm = 1 then id end, at desc,
                                          id desc) as place
    from (select * from matching_unfinished union all select * from matching_finished) f
    where arm <= coalesce((select min(arm) from stop_finished), 4) order by place limit (select top from params)
), locks as materialized (
-- part locks:
    select (classid::bigint << 32) | objid::bigint as key from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
)
-- end part
-- part: job_columns_z
from (
-- part columns:
    select j.id::text, coalesce(j.queue_name, '') as queue,
           coalesce(j.job_class, j.serialized_params ->> 'job_class', '') as kind,
           case when j.finished_at is not null and j.error is not null then 'failed'
                when j.finished_at is not null then 'completed'
                when j.performed_at is not null then 'running'
                when j.scheduled_at is null or j.scheduled_at <= now() then 'ready'
                when j.error is not null then 'retry' else 'scheduled' end as state,
           j.priority,
           greatest(greatest(coalesce(j.executions_count, 0), 0) - (j.finished_at is null
                                                                    and j.performed_at is not null)::int, 0) as tries,
           null::int as max_tries, {ms(j.created_at)} as created_ms, {ms(j.scheduled_at)} as run_after_ms,
           {ms(coalesce(j.finished_at, j.performed_at, j.updated_at))} as changed_ms,
           {ms(j.performed_at)} as started_ms, {ms(j.finished_at)} as finished_ms,
-- end part
           j.locked_by_id::text as node, null::bigint as lease_until_ms, left(j.error, 300) as error,
           j.arm || '/' || j.id || '/' || j.at as cursor, j.finished_at is null and j.performed_at is not null
               and ('x' || substr(md5('good_jobs-' || j.id::text), 1, 16))::bit(64)::bigint
        not in (select key from locks)
               and not exists (select from {schema}.good_job_processes w
                               where w.id = j.locked_by_id and w.updated_at > now() - interval '5 min') as stale,
           j.place, 0 as mark
    from found j
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, '',
           s.arm || '/' || s.id || '/' || s.at, null, 1000000, 1
    from (select * from (select * from stop_unfinished union all select * from stop_finished) s order by arm
          limit 1) s, params p where p.ids is null
) z order by z.place, z.mark

-- name: job (ids)
-- part: columns
       j.locked_by_id::text as node, null::bigint as lease_until_ms, j.error, null::text as cursor,
       j.finished_at is null and j.performed_at is not null and not exists (
           select from pg_locks l where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
             and l.database = (select oid from pg_database where datname = current_database())
             and ((l.classid::bigint << 32) | l.objid::bigint)
                                      = ('x' || substr(md5('good_jobs-' || j.id::text), 1, 16))::bit(64)::bigint)
           and not exists (select from {schema}.good_job_processes w
                           where w.id = j.locked_by_id and w.updated_at > now() - interval '5 min') as stale,
       j.concurrency_key as unique_key, left((j.serialized_params -> 'arguments')::text, 1000000) as payload,
       case when j.serialized_params -> 'arguments' is null then '' else 'json' end as payload_format,
       'application/json' as payload_type,
       octet_length((j.serialized_params -> 'arguments')::text)::bigint as payload_size
from {schema}.good_jobs j where j.id = ({uuids($1)})[1]

-- name: attempts (ids)
select row_number() over (order by e.created_at)::int as number, e.process_id::text as node,
       {ms(e.created_at)} as started_ms, {ms(e.finished_at)} as ended_ms,
       case when e.error is not null then 'failed' when e.finished_at is not null then 'completed'
            else 'running' end as outcome, e.error,
       left(array_to_string(e.error_backtrace, e'\n'), 65536) as trace
from {schema}.good_job_executions e where e.active_job_id = ({uuids($1)})[1] order by e.created_at desc limit 200

-- name: nodes
-- a process holds an advisory lock while it lives, or refreshes its row every half minute
with locks as materialized (
-- part: locks
    , running_rows as materialized (
    select locked_by_id, count(*) as running, string_agg(distinct queue_name, ',' order by queue_name) as queues,
           count(*) filter (where ('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint
                                not in (select key from locks)) as free
    from {schema}.good_jobs where locked_by_id is not null and finished_at is null group by 1
), processes as (
    select w.*, ('x' || substr(md5('good_job_processes-' || id::text), 1, 16))::bit(64)::bigint
        in (select key from locks) as locked
    from {schema}.good_job_processes w
)
select coalesce(w.id, r.locked_by_id)::text as node,
       case when w.id is null then 'dead' when w.locked or w.updated_at > now() - interval '1 min' then 'up'
            when w.updated_at > now() - interval '5 min' then 'late' else 'dead' end as state,
       w.state ->> 'hostname' as host,
       case when w.state ->> 'pid' ~ '^[0-9]{1,9}$' then (w.state ->> 'pid')::int end as pid,
       {ms(w.created_at)} as started_ms, {ms(w.updated_at)} as heartbeat_ms,
       coalesce(r.running, 0)::bigint as running, coalesce(r.running, 0)::bigint as leases,
       case when w.id is null or not w.locked and w.updated_at <= now() - interval '5 min' then coalesce(r.free, 0)
            else 0 end::bigint as expired,
       coalesce(r.queues, '') as queues, case when w.locked then true
                                              when w.updated_at > now() - interval '5 min' then null
                                              else false end as session_alive
from processes w full join running_rows r on r.locked_by_id = w.id order by 1

-- name: groups (queue limit)
with failed_jobs as materialized (
-- part failed_jobs:
    select id::text, coalesce(queue_name, '') as queue, coalesce(job_class, '') as kind, locked_by_id::text as node,
           finished_at as at, left(error, 1000) as error
    from {schema}.good_jobs where finished_at is not null and error is not null order by finished_at desc
-- end part
    limit 5000
)
-- part: groups newest=at

-- part: failures utc=f.at; now=now()

-- name: schedules (schedule)
-- the cron keys of existing jobs, found by skipping through the index, and those that are switched off
with recursive cron_keys as (
    select min(cron_key) as key from {schema}.good_jobs where cron_key is not null
    union all
    select (select min(j.cron_key) from {schema}.good_jobs j where j.cron_key > k.key) from cron_keys k
    where k.key is not null
), off as (
    select jsonb_array_elements_text(value) as key from {schema}.good_job_settings
    where key = 'cron_keys_disabled' and jsonb_typeof(value) = 'array'
), switched as (
    select coalesce(k.key, o.key) as name, o.key is not null as off
    from (select key from cron_keys where key is not null) k full join (select distinct key from off) o on o.key = k.key
)
select s.name, '' as cron, '' as tz, coalesce(j.queue_name, '') as queue, coalesce(j.job_class, '') as kind,
       case when s.off then 'paused' else 'active' end as state, {ms(coalesce(j.cron_at, j.created_at))} as last_run_ms,
       case when j.id is null then null when j.finished_at is not null and j.error is not null then 'failed'
            when j.finished_at is not null then 'completed'
            when j.performed_at is not null then 'running' when j.scheduled_at <= now() then 'ready'
            else 'scheduled' end as last_outcome,
       null::bigint as next_run_ms, j.id::text as last_job, left(j.error, 300) as last_error
from switched s left join lateral (select * from {schema}.good_jobs j where j.cron_key = s.name
                          order by j.cron_at desc nulls last limit 1) j on true
where $1::text is null or s.name = $1::text order by 1

-- name: requeue (ids)
-- official: retry_job
-- guard: only a failed job that no session has locked
with chosen as materialized (
    select id from {schema}.good_jobs where id = any({uuids($1)})
      and finished_at is not null and error is not null and jsonb_typeof(serialized_params) = 'object' order by id
-- part locked:
), locked as materialized (
    select id, pg_try_advisory_xact_lock(('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint) as got
    from chosen
), updated as (
-- end part
    update {schema}.good_jobs j
    set scheduled_at = now(), performed_at = null, finished_at = null, locked_by_id = null, locked_at = null,
        error_event = 3, updated_at = now(), serialized_params = jsonb_set(j.serialized_params, '{executions}',
            to_jsonb(case when j.serialized_params ->> 'executions' ~ '^[0-9]{1,8}$'
                              then (j.serialized_params ->> 'executions')::int else 0 end + 1))
    from locked l where l.got and j.id = l.id and j.finished_at is not null and j.error is not null
    returning j.id, j.queue_name
), told as materialized (
    select count(pg_notify('good_job', json_build_object('queue_name', queue_name)::text)) as n
    from (select distinct queue_name from updated) q
)
select u.id::text, 'ready' as state, null::text as why from updated u, told where told.n > 0
union all
select l.id::text, null, 'another session has locked it' from locked l where not l.got

-- name: discard (ids reason)
-- official: discard_job
-- guard: only an unfinished job that no session has locked and no live process holds; none of a batch, which only
--   GoodJob can close
with chosen as materialized (
    select id, locked_by_id from {schema}.good_jobs where id = any({uuids($1)}) and finished_at is null order by id
-- part locked_with_holder:
), locked as materialized (
    select id, locked_by_id,
           pg_try_advisory_xact_lock(('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint) as got
    from chosen
), updated as (
-- end part
    update {schema}.good_jobs j set finished_at = now(), error = 'GoodJob::Job::DiscardJobError: '
        || coalesce(nullif($2::text, ''), 'discarded by an operator'), error_event = 5,
        locked_by_id = null, locked_at = null, updated_at = now()
    from locked l where l.got and j.id = l.id and j.finished_at is null and j.batch_id is null
                    and j.batch_callback_id is null
      -- the holder as seen before: a process that took the job meanwhile is not known here
      and j.locked_by_id is not distinct from l.locked_by_id
      and not exists (select from {schema}.good_job_processes w
                      where w.id = j.locked_by_id and w.updated_at > now() - interval '5 min')
    returning j.id
)
select u.id::text, 'failed' as state, null::text as why from updated u
union all
select l.id::text, null, 'another session has locked it' from locked l where not l.got

-- name: delete (ids)
-- official: destroy_job
-- guard: only a finished job that no session has locked
-- confirm: The jobs and what is known of their runs are gone for good.
with chosen as materialized (
    select id from {schema}.good_jobs where id = any({uuids($1)}) and finished_at is not null order by id
), locked as materialized (
    select id, pg_try_advisory_xact_lock(('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint) as got
    from chosen
), deleted as (
    delete from {schema}.good_jobs j using locked l where l.got and j.id = l.id and j.finished_at is not null
    returning j.id, j.active_job_id
), executions as (
    delete from {schema}.good_job_executions x using deleted d where x.active_job_id = coalesce(d.active_job_id, d.id)
)
select d.id::text, 'deleted' as state, null::text as why from deleted d
union all
select l.id::text, null, 'another session has locked it' from locked l where not l.got

-- name: priority (ids n)
-- official: no
-- guard: only a job of another priority that waits and that no session has locked
with chosen as materialized (
    select id from {schema}.good_jobs
    where id = any({uuids($1)}) and finished_at is null and performed_at is null order by id
-- part: locked
    update {schema}.good_jobs j set priority = $2::int, updated_at = now()
    from locked l where l.got and j.id = l.id and j.finished_at is null and j.performed_at is null
      and j.priority is distinct from $2::int
    returning j.id, j.scheduled_at, j.error
)
select id::text, case when scheduled_at is null or scheduled_at <= now() then 'ready'
                      when error is not null then 'retry' else 'scheduled' end as state, null::text as why
from updated u
union all
select l.id::text, null, 'another session has locked it' from locked l where not l.got

-- name: reschedule (ids at)
-- official: reschedule_job
-- guard: only an unfinished job with another time that no session has locked and no live process holds
with chosen as materialized (
    select id, locked_by_id from {schema}.good_jobs where id = any({uuids($1)}) and finished_at is null order by id
-- part: locked_with_holder
    update {schema}.good_jobs j set scheduled_at = $2::timestamptz, updated_at = now()
    from locked l where l.got and j.id = l.id and j.finished_at is null and $2::timestamptz is not null
             and j.scheduled_at is distinct from $2::timestamptz
      -- the holder as seen before: a process that took the job meanwhile is not known here
      and j.locked_by_id is not distinct from l.locked_by_id
      and not exists (select from {schema}.good_job_processes w
                      where w.id = j.locked_by_id and w.updated_at > now() - interval '5 min')
    returning j.id, j.scheduled_at, j.error, j.performed_at
)
select id::text, case when performed_at is not null then 'running' when scheduled_at <= now() then 'ready'
                      when error is not null then 'retry' else 'scheduled' end as state,
       null::text as why from updated u
union all
select l.id::text, null, 'another session has locked it' from locked l where not l.got

-- name: release_where (node)
-- official: Process.cleanup
-- guard: only jobs of a process that is gone: no row or silent for five minutes, and no lock of its own or on the job
with locks as materialized (
-- part: locks
    , dead as materialized (
    select case when $1::text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then $1::text::uuid end as id
    where not exists (
        select from {schema}.good_job_processes w where w.id::text = lower($1::text)
          and (w.updated_at > now() - interval '5 min'
               or ('x' || substr(md5('good_job_processes-' || w.id::text), 1, 16))::bit(64)::bigint
                   in (select key from locks)))
), chosen as materialized (
    select j.id from {schema}.good_jobs j join dead d on d.id = j.locked_by_id where j.finished_at is null order by j.id
-- part: locked
    update {schema}.good_jobs j set locked_by_id = null, locked_at = null, updated_at = now()
    from locked l, dead where l.got and j.id = l.id and j.locked_by_id = dead.id and j.finished_at is null
    returning j.id
), workers_gone as (
    delete from {schema}.good_job_processes w using dead where w.id = dead.id
      and w.updated_at <= now() - interval '5 min' and not exists (select from locked where not got)
)
select id::text, 'ready' as state, null::text as why from updated u
union all
select l.id::text, null, 'another session has locked it' from locked l where not l.got

-- name: terminate (node)
-- official: no
-- guard: only sessions that hold the locks of this process' jobs; a superuser's only if you are one, too
-- confirm: The process' database sessions end. Their open transactions are rolled back, and the jobs of the process run
--   again elsewhere.
-- requires: pg_signal_backend
-- dry: no
with lock_keys as materialized (
    select ('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint as key
    from {schema}.good_jobs where locked_by_id::text = lower($1::text) and finished_at is null
), sessions as materialized (
    select distinct l.pid from pg_locks l join lock_keys k on k.key = ((l.classid::bigint << 32) | l.objid::bigint)
    where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.pid <> pg_backend_pid()
      and l.database = (select oid from pg_database where datname = current_database())
)
select pid::text as id, 'terminated' as state from sessions s where pg_terminate_backend(pid)

-- name: pause (queue force)
-- official: GoodJob.pause(queue: ...)
-- guard: only a queue that is not paused and has unfinished or failed jobs; --create pauses any other
insert into {schema}.good_job_settings as s (key, value, created_at, updated_at)
select 'pauses', jsonb_build_object('queues', jsonb_build_array($1::text), 'job_classes', '[]'::jsonb, 'labels',
                                    '[]'::jsonb), now(), now()
where $1::text is not null
  and (coalesce($2::boolean, false)
       or exists (select from {schema}.good_jobs where queue_name = $1::text and finished_at is null)
       or exists (select from {schema}.good_jobs
                  where queue_name = $1::text and finished_at is not null and error is not null))
on conflict (key) do update set value = jsonb_set(s.value, '{queues}',
                                                  coalesce(s.value -> 'queues', '[]') || to_jsonb($1::text)),
                                updated_at = now()
    where not coalesce(s.value -> 'queues', '[]') ? $1::text
returning $1::text as id, 'paused' as state

-- name: resume (queue)
-- official: GoodJob.unpause(queue: ...)
-- guard: only a queue that is paused
update {schema}.good_job_settings s set value = jsonb_set(s.value, '{queues}', (s.value -> 'queues') - $1::text),
                                        updated_at = now()
where key = 'pauses' and s.value -> 'queues' ? $1::text returning $1::text as id, 'active' as state

-- name: cron_pause (schedule force)
-- official: CronEntry#disable
-- guard: only a schedule that is switched on and has jobs, or was switched on here; --create takes any other
with enabled as (
    update {schema}.good_job_settings s set value = s.value - $1::text, updated_at = now()
    where s.key = 'cron_keys_enabled' and s.value ? $1::text
)
insert into {schema}.good_job_settings as s (key, value, created_at, updated_at)
select 'cron_keys_disabled', jsonb_build_array($1::text), now(), now() where $1::text is not null
  and (coalesce($2::boolean, false) or exists (select from {schema}.good_jobs where cron_key = $1::text)
       or exists (select from {schema}.good_job_settings k where k.key = 'cron_keys_enabled' and k.value ? $1::text))
on conflict (key) do update set value = s.value || to_jsonb($1::text), updated_at = now() where not s.value ? $1::text
returning $1::text as id, 'paused' as state

-- name: cron_resume (schedule)
-- official: CronEntry#enable
-- guard: only a schedule that is switched off
with disabled as (
    update {schema}.good_job_settings s set value = s.value - $1::text, updated_at = now()
    where s.key = 'cron_keys_disabled' and s.value ? $1::text returning 1
), enabled as (
    insert into {schema}.good_job_settings as s (key, value, created_at, updated_at)
    select 'cron_keys_enabled', jsonb_build_array($1::text), now(), now() from disabled
    on conflict (key) do update set value = s.value || to_jsonb($1::text), updated_at = now()
    where not s.value ? $1::text
)
select $1::text as id, 'active' as state from disabled d

-- name: purge (queue states before limit)
-- official: GoodJob.cleanup_preserved_jobs
-- guard: only finished jobs
-- confirm: The jobs and what is known of their runs are gone for good.
with deleted as (
    delete from {schema}.good_jobs where id = any(array(
        select id from {schema}.good_jobs
-- part purged:
        where finished_at is not null and finished_at < coalesce($3::timestamptz, now())
          and ($1::text is null or coalesce(queue_name, '') = $1::text)
          and ((error is null and coalesce($2::text[], '{completed}') @> '{completed}')
               or (error is not null and $2::text[] @> '{failed}'))
-- end part
        order by finished_at limit coalesce($4::int, 1000) for update skip locked))
    returning id, active_job_id
), executions as (
    delete from {schema}.good_job_executions x using deleted d where x.active_job_id = coalesce(d.active_job_id, d.id)
)
select id::text, 'deleted' as state from deleted d

-- name: purge_preview (queue states before)
select 'deleted' as state, count(*) as n, null::text as why from {schema}.good_jobs
-- part: purged
having count(*) > 0
