-- adapter: delayed_job
-- title: Delayed Job (Ruby)
-- format: 2
-- schema: public
-- id-type: bigint
-- timezone: UTC
-- tables: delayed_jobs
-- note: There is no heartbeat. A lock counts as expired after 4 hours, the library's default; the programs may set
--   another max_run_time.
-- note: Failed jobs stay only if destroy_failed_jobs is off; completed ones never do. No queue can be paused.
-- note: Failed jobs have no index: a table with very many of them makes every look slower.

-- name: detect
select n.nspname::text as schema
from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relname = 'delayed_jobs' and c.relkind in ('r', 'p')
where (select count(*) from pg_attribute a where a.attrelid = c.oid and not a.attisdropped
       and a.attname in ('handler', 'locked_by', 'locked_at', 'failed_at', 'run_at', 'last_error', 'attempts',
                         'queue')) = 8
order by 1

-- name: queues
-- a completed job is deleted
select coalesce(nullif(queue, ''), '(none)')::text as queue, null::bool as paused, false as keeps
from {schema}.delayed_jobs group by 1 order by 1 limit 10000

-- name: counts
-- a job without a time to run is never taken by a worker (blocked)
select coalesce(nullif(queue, ''), '(none)')::text as queue,
       count(*) filter (where failed_at is null and locked_at is null and run_at > now() and attempts = 0) as scheduled,
       count(*) filter (where failed_at is null and locked_at is null and run_at <= now()) as ready,
       count(*) filter (where failed_at is null and locked_at is null and run_at > now() and attempts <> 0) as retry,
       count(*) filter (where failed_at is null and locked_at is not null) as running,
       count(*) filter (where failed_at is not null) as failed,
       count(*) filter (where failed_at is null and locked_at is null and run_at is null) as blocked,
       {ms(min(run_at) filter (where failed_at is null and locked_at is null and run_at <= now()))} as oldest_ms
from {schema}.delayed_jobs group by 1 order by 1

-- name: jobs (queue states kind node error words older_than younger_than min_tries top_tries ids n limit cursor)
-- order: *: highest id first
-- newest first; with terms n rows are read; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select j.*, s.state, row_number() over (order by j.id desc) as o
    from {schema}.delayed_jobs j cross join lateral (
        select case when j.failed_at is not null then 'failed' when j.locked_at is not null then 'running'
                    when j.run_at <= now() then 'ready'
                    when j.run_at is null then 'blocked' when j.attempts = 0 then 'scheduled'
                    else 'retry' end as state) s
    where ($1::text is null or coalesce(nullif(j.queue, ''), '(none)') = $1::text)
      and ($2::text[] is null or s.state = any($2::text[]))
      and ($11::text[] is null or j.id = any({bigints($11)}))
      and ($14::text is null or j.id < case when $14::text ~ '^-?[0-9]{1,19}$' then $14::text::bigint end)
    order by j.id desc
-- part: n_if_terms terms=$3::text, $4::text, $5::text, $6::text[], $7::interval, $8::interval, $9::int, $10::int;
--   n=$12; top=$13
), matching as (
    select w.*, k.kind
    from looked_at w cross join lateral (
        select coalesce(
            case when w.handler ~ '^--- !ruby/object:ActiveJob::'
                     then substring(left(w.handler, 4000) from E'\n[[:space:]]+job_class: ''?"?([A-Za-z0-9_:]+)') end,
            case when w.handler ~ '^--- !ruby/object:Delayed::Performable' then
                substring(left(w.handler, 4000) from E'\nobject: !ruby/[a-zA-Z]+:? ?''?([A-Za-z0-9_:]+)') || '#'
                || substring(w.handler from E'\nmethod_name: :?"?([A-Za-z0-9_?!=]+)') end,
            substring(left(w.handler, 4000) from '^--- !ruby/[a-zA-Z]+:([A-Za-z0-9_:]+)'), '?') as kind) k
    where ($3::text is null or k.kind = $3::text)
      and ($4::text is null or (w.state = 'running' and coalesce(w.locked_by, '(none)') = $4::text))
-- part: error_term p=$5; error=w.last_error; key=split_part(w.last_error, E'\n', 1); state=w.state
-- part: has_words p=$6; text=w.id, w.queue, k.kind, w.last_error
-- part: age_and_tries created=w.created_at; tries=w.attempts; older=$7; younger=$8; min=$9; top=$10
    order by w.o limit coalesce($13::int, 100)
)
select id::text, coalesce(nullif(queue, ''), '(none)')::text as queue, kind, state, priority, attempts as tries,
       null::int as max_tries,
       {ms(created_at)} as created_ms, {ms(run_at)} as run_after_ms, {ms(updated_at)} as changed_ms,
       {ms(case when state = 'running' then locked_at end)} as started_ms, {ms(failed_at)} as finished_ms,
       case when state = 'running' then coalesce(locked_by, '(none)') end::text as node, null::bigint as lease,
       case when state = 'running' then {ms(locked_at)} + 14400000 end as lease_until_ms,
       left(split_part(last_error, E'\n', 1), 300) as error,
       id::text as cursor, case when state = 'running' then locked_at < now() - interval '4 h' end as stale
-- part: end_of_jobs cursor=id::text; n=$12; top=$13

-- name: job (ids)
select j.id::text, coalesce(nullif(j.queue, ''), '(none)')::text as queue, coalesce(
           case when j.handler ~ '^--- !ruby/object:ActiveJob::'
                    then substring(left(j.handler, 4000) from E'\n[[:space:]]+job_class: ''?"?([A-Za-z0-9_:]+)') end,
           case when j.handler ~ '^--- !ruby/object:Delayed::Performable' then
               substring(left(j.handler, 4000) from E'\nobject: !ruby/[a-zA-Z]+:? ?''?([A-Za-z0-9_:]+)') || '#'
               || substring(j.handler from E'\nmethod_name: :?"?([A-Za-z0-9_?!=]+)') end,
           substring(left(j.handler, 4000) from '^--- !ruby/[a-zA-Z]+:([A-Za-z0-9_:]+)'), '?') as kind,
       s.state, j.priority, j.attempts as tries, null::int as max_tries, {ms(j.created_at)} as created_ms,
       {ms(j.run_at)} as run_after_ms, {ms(j.updated_at)} as changed_ms,
       {ms(case when s.state = 'running' then j.locked_at end)} as started_ms, {ms(j.failed_at)} as finished_ms,
       case when s.state = 'running' then coalesce(j.locked_by, '(none)') end::text as node, null::bigint as lease,
       case when s.state = 'running' then {ms(j.locked_at)} + 14400000 end as lease_until_ms,
       split_part(j.last_error, E'\n', 1) as error, null::text as cursor,
       case when s.state = 'running' then j.locked_at < now() - interval '4 h' end as stale,
       left(j.handler, 1000000) as payload, 'text' as payload_format, 'application/yaml' as payload_type,
       octet_length(j.handler)::bigint as payload_size
from {schema}.delayed_jobs j cross join lateral (
    select case when j.failed_at is not null then 'failed' when j.locked_at is not null then 'running'
                when j.run_at <= now() then 'ready'
                when j.run_at is null then 'blocked' when j.attempts = 0 then 'scheduled' else 'retry' end as state) s
where j.id = any(({bigints($1)})[:1])

-- name: attempts (ids)
-- only the last error is kept: its message and its trace
select attempts as number, null::text as node, null::bigint as started_ms,
       {ms(coalesce(failed_at, updated_at))} as ended_ms,
       case when failed_at is not null then 'failed' else 'retry' end as outcome,
       split_part(last_error, E'\n', 1) as error,
       left(substr(last_error, strpos(last_error || E'\n', E'\n') + 1), 65536) as trace
from {schema}.delayed_jobs where last_error is not null and id = any(({bigints($1)})[:1])

-- name: nodes
-- a worker is known by its locks only
select coalesce(locked_by, '(none)')::text as node,
       case when max(locked_at) < now() - interval '4 h' then 'dead' else 'unknown' end as state,
       substring(locked_by from 'host:(.*) pid:[0-9]+$') as host,
       substring(locked_by from 'pid:([0-9]{1,9})$')::int as pid, null::bigint as heartbeat_ms, count(*) as running,
       count(*) as leases, count(*) filter (where locked_at < now() - interval '4 h') as expired,
       string_agg(distinct coalesce(nullif(queue, ''), '(none)'), ',') as queues,
       {ms(max(locked_at))} + 14400000 as lease_until_ms
from {schema}.delayed_jobs where locked_at is not null and failed_at is null group by locked_by order by 1 limit 10000

-- name: leases (node queue limit)
select id::bigint as lease, coalesce(locked_by, '(none)')::text as node,
       coalesce(nullif(queue, ''), '(none)')::text as queue, 1::bigint as jobs, {ms(locked_at)} as started_ms,
       {ms(locked_at)} + 14400000 as lease_until_ms, id::text as job_ids, attempts as tries, '→ ready' as effect
from {schema}.delayed_jobs
where locked_at is not null and failed_at is null and ($1::text is null or coalesce(locked_by, '(none)') = $1::text)
  and ($2::text is null or coalesce(nullif(queue, ''), '(none)') = $2::text)
order by locked_at, id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
    select id, coalesce(nullif(queue, ''), '(none)')::text as queue, failed_at as at,
           split_part(last_error, E'\n', 1) as error
    from {schema}.delayed_jobs
    where failed_at is not null and ($1::text is null or coalesce(nullif(queue, ''), '(none)') = $1::text)
    order by id desc limit 5000
)
-- part: groups newest=id

-- name: requeue (ids reset)
-- official: delayed_job_web's requeue (run_at now, failed_at NULL); with reset its reload (attempts and error too). A
--   lock that a failed job kept is freed
-- guard: only jobs that have failed or wait and that no worker holds
update {schema}.delayed_jobs j
set run_at = now(), failed_at = null, locked_at = null, locked_by = null, updated_at = now(),
    attempts = case when $2::boolean then 0 else j.attempts end,
    last_error = case when $2::boolean then null else j.last_error end
where (j.failed_at is not null or (j.locked_at is null and (j.run_at <= now()) is not true))
  and j.id = any({bigints($1)})
returning j.id::text, 'ready' as state

-- name: rescue (ids)
-- official: no (what clear_locks! does, for one job)
-- guard: only running jobs
-- confirm: there is no heartbeat: if the worker still runs the job, it will run twice
update {schema}.delayed_jobs j set locked_at = null, locked_by = null
where j.failed_at is null and j.locked_at is not null and j.id = any({bigints($1)})
returning j.id::text, case when j.run_at <= now() then 'ready' when j.run_at is null then 'blocked'
                           when j.attempts = 0 then 'scheduled' else 'retry' end as state

-- name: release_where (node expired_only)
-- official: Delayed::Job.clear_locks!
-- guard: only running jobs; with expired only, locks older than 4 hours
-- confirm: there is no heartbeat: what the worker still runs will run twice
update {schema}.delayed_jobs j set locked_at = null, locked_by = null
where j.failed_at is null and j.locked_at is not null and coalesce(j.locked_by, '(none)') = $1::text
  and (j.locked_at < now() - interval '4 h' or not coalesce($2::boolean, true))
returning j.id::text, case when j.run_at <= now() then 'ready' when j.run_at is null then 'blocked'
                           when j.attempts = 0 then 'scheduled' else 'retry' end as state

-- name: extend (ids by)
-- official: no (locked_at is set to 4 hours before the wanted time)
-- guard: only running jobs whose lock ends before that time
update {schema}.delayed_jobs j set locked_at = (now() + $2::interval - interval '4 h')::timestamp
where j.failed_at is null and j.locked_at < (now() + $2::interval - interval '4 h')::timestamp
  and j.id = any({bigints($1)})
returning j.id::text, 'extended' as state

-- name: discard (ids)
-- official: Delayed::Job#fail!: it stays as failed and can be requeued
-- guard: only jobs that have neither failed nor run now
update {schema}.delayed_jobs j set failed_at = now(), updated_at = now()
where j.failed_at is null and j.locked_at is null and j.id = any({bigints($1)}) returning j.id::text, 'failed' as state

-- name: delete (ids)
-- official: delayed_job_web's remove
-- guard: only jobs that do not run
delete from {schema}.delayed_jobs j
where (j.failed_at is not null or j.locked_at is null) and j.id = any({bigints($1)})
returning j.id::text, 'deleted' as state

-- name: priority (ids n)
-- official: no (plain column; smaller is sooner)
-- guard: only jobs of another priority that have neither failed nor run now
-- range: -2147483648..2147483647
update {schema}.delayed_jobs j set priority = $2::int, updated_at = now()
where j.failed_at is null and j.locked_at is null and j.priority is distinct from $2::int and j.id = any({bigints($1)})
returning j.id::text, case when j.run_at <= now() then 'ready' when j.run_at is null then 'blocked'
                           when j.attempts = 0 then 'scheduled' else 'retry' end as state

-- name: reschedule (ids at)
-- official: no (plain column)
-- guard: only jobs with another time that have neither failed nor run now
update {schema}.delayed_jobs j set run_at = $2::timestamptz, updated_at = now()
where j.failed_at is null and j.locked_at is null and $2::timestamptz is not null
  and j.run_at is distinct from ($2::timestamptz)::timestamp and j.id = any({bigints($1)})
returning j.id::text, case when j.run_at <= now() then 'ready' when j.attempts = 0 then 'scheduled'
                           else 'retry' end as state

-- name: purge (queue states before limit)
-- official: no (plain delete)
-- guard: only failed jobs; completed ones are not kept by the library
delete from {schema}.delayed_jobs j
where j.id = any(array(
    select f.id from {schema}.delayed_jobs f
    where f.failed_at is not null and 'failed' = any($2::text[]) and f.failed_at < coalesce($3::timestamptz, now())
      and ($1::text is null or coalesce(nullif(f.queue, ''), '(none)') = $1::text)
    order by f.id limit coalesce($4::int, 1000) for update skip locked))
returning j.id::text, 'purged' as state

-- name: purge_preview (queue states before)
select 'purged' as state, count(*) as n, 'failed, still to requeue' as why from {schema}.delayed_jobs f
where f.failed_at is not null and 'failed' = any($2::text[]) and f.failed_at < coalesce($3::timestamptz, now())
  and ($1::text is null or coalesce(nullif(f.queue, ''), '(none)') = $1::text)
having count(*) > 0
