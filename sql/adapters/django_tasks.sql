-- adapter: django_tasks
-- title: django-tasks, database backend (Python)
-- format: 2
-- schema: public
-- id-type: uuid
-- states: ready=READY scheduled=READY retry=READY running=RUNNING failed=FAILED completed=SUCCESSFUL,SUCCEEDED
-- tables: django_tasks_database_dbtaskresult
-- note: There is no heartbeat, and nothing takes back the jobs of a worker that died: a job that runs for an hour
--   counts as stale, which is a guess.
-- note: The library knows no requeue and no release: all acts but delete and purge are plain updates. No queue can be
--   paused.
-- note: Only what is ready has an index: a table with very many results makes every look slower (prune_db_task_results,
--   or purge here).

-- name: detect
select n.nspname::text as schema
from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relname = 'django_tasks_database_dbtaskresult'
                        and c.relkind in ('r', 'p')
where (select count(*) from pg_attribute a where a.attrelid = c.oid and not a.attisdropped
       and a.attname in ('status', 'run_after', 'worker_ids', 'args_kwargs', 'task_path', 'exception_class_path',
                         'traceback')) = 7
order by 1

-- name: queues
select queue_name::text as queue, null::bool as paused, true as keeps
from {schema}.django_tasks_database_dbtaskresult group by 1 order by 1 limit 10000

-- name: counts
-- the year 9999 means at once
select queue_name::text as queue,
       count(*) filter (where status = 'READY' and run_after > now() and run_after < '9999-01-01 00:00:00+00'
                          and not tried) as scheduled,
       count(*) filter (where status = 'READY' and (run_after <= now()
                                                    or run_after >= '9999-01-01 00:00:00+00') is not false) as ready,
       count(*) filter (where status = 'READY' and run_after > now() and run_after < '9999-01-01 00:00:00+00'
                          and tried) as retry,
       count(*) filter (where status = 'RUNNING') as running, count(*) filter (where status = 'FAILED') as failed,
       {ms(min(case when run_after < '9999-01-01 00:00:00+00' then greatest(enqueued_at, run_after)
                    else enqueued_at end)
           filter (where status = 'READY' and (run_after <= now()
                                               or run_after >= '9999-01-01 00:00:00+00') is not false))} as oldest_ms
from (select *, worker_ids -> 0 is not null as tried from {schema}.django_tasks_database_dbtaskresult
      where status in ('READY', 'RUNNING', 'FAILED')) j
group by 1 order by 1

-- name: counts_final
-- cost: reads all results
select queue_name::text as queue, count(*) as completed from {schema}.django_tasks_database_dbtaskresult
where status in ('SUCCESSFUL', 'SUCCEEDED') group by 1 order by 1

-- name: jobs
-- params: queue states raw_states kind node error words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: newest first
-- newest first (cursor: time of the push, and the id); with terms n rows are read; a row without an id gives the cursor
-- to continue from
with looked_at as materialized (
    select j.*, s.*, row_number() over (order by j.enqueued_at desc, j.id desc) as o
    from {schema}.django_tasks_database_dbtaskresult j cross join lateral (
        select case j.status when 'RUNNING' then 'running' when 'FAILED' then 'failed' when 'READY' then
                        case when (j.run_after <= now() or j.run_after >= '9999-01-01 00:00:00+00') is not false
                                 then 'ready'
                             when j.worker_ids -> 0 is null then 'scheduled' else 'retry' end
                    else 'completed' end as state,
               case when jsonb_typeof(j.worker_ids) = 'array' then jsonb_array_length(j.worker_ids) else 0 end as tries,
               j.enqueued_at::text || '/' || j.id as cursor) s
    where ($1::text is null or j.queue_name = $1::text)
      and ($2::text[] is null or s.state = any($2::text[]))
      and ($3::text[] is null or j.status = any($3::text[]))
      and ($12::text[] is null or j.id = any({uuids($12)}))
      and ($15::text is null or (j.enqueued_at, j.id) <
           (case when $15::text ~ '^[-+:. 0-9infity(BC)]+/[0-9a-f-]{36}$'
                     then split_part($15::text, '/', 1)::timestamptz end,
            case when $15::text ~ '^[^/]+/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                     then split_part($15::text, '/', 2)::uuid end))
    order by j.enqueued_at desc, j.id desc
-- part: n_if_terms terms=$4::text, $5::text, $6::text, $7::text[], $8::interval, $9::interval, $10::int, $11::int;
--   n=$13; top=$14
), matching as (
    select w.*, e.node, e.error
    from looked_at w cross join lateral (
        select case when w.state = 'running' then coalesce(w.worker_ids ->> -1, '(none)') end as node,
               coalesce(nullif(btrim(substring(btrim(right(w.traceback, 2000), E' \t\r\n') from E'[^\n]*$')), ''),
                        w.exception_class_path) as error) e
    where ($4::text is null or w.task_path = $4::text)
      and ($5::text is null or e.node = $5::text)
      and ($6::text is null or case when $6::text like '~%' then strpos(lower(e.error), lower(substr($6::text, 2))) > 0
                                    else {error_key(e.error)} = {error_key($6::text)} end)
-- part: has_words p=$7; text=w.id, w.queue_name, w.task_path, e.error
-- part: age_and_tries created=w.enqueued_at; tries=w.tries; older=$8; younger=$9; min=$10; top=$11
    order by w.o limit coalesce($14::int, 100)
)
select id::text, queue_name::text as queue, task_path as kind, state, priority, tries, null::int as max_tries,
       {ms(enqueued_at)} as created_ms,
       case when run_after < '9999-01-01 00:00:00+00' then {ms(run_after)} end as run_after_ms,
       {ms(coalesce(finished_at, started_at))} as changed_ms, {ms(started_at)} as started_ms,
       {ms(finished_at)} as finished_ms, node,
       null::bigint as lease, null::bigint as lease_until_ms, left(error, 300) as error, cursor,
       case when state = 'running' then started_at < now() - interval '1 h' end as stale
-- part: end_of_jobs cursor=cursor; n=$13; top=$14

-- name: job (ids)
select j.id::text, j.queue_name::text as queue, j.task_path as kind,
       case j.status when 'RUNNING' then 'running' when 'FAILED' then 'failed' when 'READY' then
                case when (j.run_after <= now() or j.run_after >= '9999-01-01 00:00:00+00') is not false then 'ready'
                     when j.worker_ids -> 0 is null then 'scheduled' else 'retry' end
            else 'completed' end as state,
       j.priority, case when jsonb_typeof(j.worker_ids) = 'array' then jsonb_array_length(j.worker_ids)
                        else 0 end as tries, null::int as max_tries,
       {ms(j.enqueued_at)} as created_ms,
       case when j.run_after < '9999-01-01 00:00:00+00' then {ms(j.run_after)} end as run_after_ms,
       {ms(coalesce(j.finished_at, j.started_at))} as changed_ms, {ms(j.started_at)} as started_ms,
       {ms(j.finished_at)} as finished_ms,
       case when j.status = 'RUNNING' then coalesce(j.worker_ids ->> -1, '(none)') end as node, null::bigint as lease,
       null::bigint as lease_until_ms,
       coalesce(nullif(btrim(substring(btrim(right(j.traceback, 2000), E' \t\r\n') from E'[^\n]*$')), ''),
                j.exception_class_path) as error,
       null::text as cursor, case when j.status = 'RUNNING' then j.started_at < now() - interval '1 h' end as stale,
       left(j.args_kwargs::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(j.args_kwargs::text)::bigint as payload_size, left(j.return_value::text, 65536) as result,
       j.status::text as raw_state
from {schema}.django_tasks_database_dbtaskresult j where j.id = any(({uuids($1)})[:1])

-- name: attempts (ids)
-- one row for each worker that took the job; times and errors are known of the last one only
select w.number::int, left(w.node, 1000) as node, case when w.number = w.n then {ms(j.started_at)} end as started_ms,
       case when w.number = w.n then {ms(j.finished_at)} end as ended_ms,
       case when w.number < w.n then '' else case j.status when 'FAILED' then 'failed' when 'RUNNING' then 'running'
                                                  when 'READY' then 'given back' else 'completed' end
       end as outcome,
       case when w.number = w.n
                then coalesce(nullif(btrim(substring(btrim(right(j.traceback, 2000), E' \t\r\n') from E'[^\n]*$')),
                                     ''), j.exception_class_path)
            else '' end as error, case when w.number = w.n then right(j.traceback, 65536) end as trace
from {schema}.django_tasks_database_dbtaskresult j
cross join lateral (select node, number, count(*) over () as n
                    from jsonb_array_elements_text(case when jsonb_typeof(j.worker_ids) = 'array' then j.worker_ids
                                                        else '[]' end)
                         with ordinality x (node, number)) w
where j.id = any(({uuids($1)})[:1]) order by w.number desc limit 200

-- name: nodes
-- a worker is known by the jobs that name it last
select coalesce(worker_ids ->> -1, '(none)') as node, 'unknown' as state, null::bigint as heartbeat_ms,
       count(*) as running, count(*) as leases, count(*) filter (where started_at < now() - interval '1 h') as expired,
       string_agg(distinct queue_name, ',') as queues
from {schema}.django_tasks_database_dbtaskresult where status = 'RUNNING' group by 1 order by 1 limit 10000

-- name: leases (node queue limit)
select null::bigint as lease, coalesce(worker_ids ->> -1, '(none)') as node, queue_name::text as queue,
       1::bigint as jobs, {ms(started_at)} as started_ms, null::bigint as lease_until_ms, id::text as job_ids,
       case when jsonb_typeof(worker_ids) = 'array' then jsonb_array_length(worker_ids) else 0 end as tries,
       '→ ready' as effect
from {schema}.django_tasks_database_dbtaskresult
where status = 'RUNNING' and ($1::text is null or coalesce(worker_ids ->> -1, '(none)') = $1::text)
  and ($2::text is null or queue_name = $2::text)
order by started_at, id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
    select id, queue_name::text as queue, finished_at as at,
           coalesce(nullif(btrim(substring(btrim(right(traceback, 2000), E' \t\r\n') from E'[^\n]*$')), ''),
                    exception_class_path) as error
    from {schema}.django_tasks_database_dbtaskresult
    where status = 'FAILED' and ($1::text is null or queue_name = $1::text) order by finished_at desc nulls last
    limit 5000
)
-- part: groups newest=at

-- name: requeue (ids)
-- official: no (plain update: ready at once; result and error are cleared, the workers' names stay)
-- guard: only failed jobs
update {schema}.django_tasks_database_dbtaskresult j
set status = 'READY', run_after = '9999-01-01 00:00:00+00', started_at = null, finished_at = null, return_value = null,
    exception_class_path = '', traceback = ''
where j.status = 'FAILED' and j.id = any({uuids($1)}) returning j.id::text, 'ready' as state

-- name: rescue (ids)
-- official: no (plain update: ready at once)
-- guard: only running jobs
-- confirm: there is no heartbeat: if the worker still runs the job, it will run twice
update {schema}.django_tasks_database_dbtaskresult j set status = 'READY', run_after = '9999-01-01 00:00:00+00',
                                                         started_at = null
where j.status = 'RUNNING' and j.id = any({uuids($1)}) returning j.id::text, 'ready' as state

-- name: release_where (node expired_only)
-- official: no (plain update: ready at once)
-- guard: only running jobs; with expired only, those that run for an hour
-- confirm: there is no heartbeat: what the worker still runs will run twice
update {schema}.django_tasks_database_dbtaskresult j set status = 'READY', run_after = '9999-01-01 00:00:00+00',
                                                         started_at = null
where j.status = 'RUNNING' and coalesce(j.worker_ids ->> -1, '(none)') = $1::text
  and (j.started_at < now() - interval '1 h' or j.started_at is null or not coalesce($2::boolean, true))
returning j.id::text, 'ready' as state

-- name: delete (ids)
-- official: the result's own delete
-- guard: only jobs that do not run
delete from {schema}.django_tasks_database_dbtaskresult j where j.status <> 'RUNNING' and j.id = any({uuids($1)})
returning j.id::text, 'deleted' as state

-- name: priority (ids n)
-- official: no (plain column; larger is sooner)
-- guard: only jobs of another priority that wait
-- range: -100..100
update {schema}.django_tasks_database_dbtaskresult j set priority = $2::int
where j.status = 'READY' and $2::int between -100 and 100 and j.priority <> $2::int and j.id = any({uuids($1)})
returning j.id::text,
          case when (j.run_after <= now() or j.run_after >= '9999-01-01 00:00:00+00') is not false then 'ready'
                           when j.worker_ids -> 0 is null then 'scheduled' else 'retry' end as state

-- name: reschedule (ids at)
-- official: no (plain column)
-- guard: only jobs with another time that wait; times before the year 9999, which stands for at once
update {schema}.django_tasks_database_dbtaskresult j set run_after = $2::timestamptz
where j.status = 'READY' and $2::timestamptz < '9999-01-01 00:00:00+00' and j.run_after is distinct from $2::timestamptz
  and j.id = any({uuids($1)})
returning j.id::text, case when j.run_after <= now() then 'ready' when j.worker_ids -> 0 is null then 'scheduled'
                           else 'retry' end as state

-- name: purge (queue raw_states before limit)
-- official: prune_db_task_results
-- guard: only finished jobs
delete from {schema}.django_tasks_database_dbtaskresult j
where j.id = any(array(
    select f.id from {schema}.django_tasks_database_dbtaskresult f
-- part purged:
    where f.status = any(coalesce($2::text[], '{SUCCESSFUL,SUCCEEDED}'))
      and f.status in ('SUCCESSFUL', 'SUCCEEDED', 'FAILED')
      and f.finished_at < coalesce($3::timestamptz, now()) and ($1::text is null or f.queue_name = $1::text)
-- end part
    limit coalesce($4::int, 1000) for update skip locked))
returning j.id::text, 'purged' as state

-- name: purge_preview (queue raw_states before)
select 'purged' as state, count(*) as n, case f.status when 'FAILED' then 'failed, still to requeue'
                                              else 'completed' end as why
from {schema}.django_tasks_database_dbtaskresult f
-- part: purged
group by 3
