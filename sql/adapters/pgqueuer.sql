-- adapter: pgqueuer
-- title: PGQueuer (Python)
-- format: 2
-- schema: public
-- prefix: yes
-- id-type: bigint
-- tested-versions: 1.3 1.6
-- states: ready=queued scheduled=queued retry=queued running=picked failed=failed,exception completed=successful
--   cancelled=canceled,deleted
-- tables: pgqueuer pgqueuer_log pgqueuer_statistics pgqueuer_schedules
-- note: Finished jobs are only in the log, without payload: a job that ended with an exception and was not held as
--   failed can't be requeued.
-- note: A queue is an entrypoint. No queue can be paused. What changes here is also written to the log, as the library
--   does.
-- note: A worker that was only slow completes its job by the job's number: so a rescued job may end twice.

-- name: detect
-- the tables may have a prefix, one installation each; a slash ends the schema's name
select n.nspname || case when x.prefix <> '' or n.nspname like '%/%' then '/' || x.prefix else '' end as schema
from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relkind in ('r', 'p')
                        and c.relname ~ '^([a-z_][a-z0-9_]*)?pgqueuer$'
cross join lateral (select left(c.relname, -8) as prefix) x
where exists (select from pg_attribute a
              where a.attrelid = c.oid and a.attname = 'queue_manager_id' and not a.attisdropped)
  and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'attempts' and not a.attisdropped)
  and exists (select from pg_class l join pg_attribute a on a.attrelid = l.oid and a.attname = 'traceback'
              where l.relnamespace = n.oid and l.relname = x.prefix || 'pgqueuer_log')
order by 1

-- name: version
-- No table has the version. 1.6 brings an index, and ids of 8 bytes if the upgrade was allowed to widen them; a column
-- that neither has shows a later one.
select case when exists (select from pg_attribute a
                         where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attname <> all (
                             '{id,priority,queue_manager_id,created,updated,heartbeat,execute_after,status,'
                             'entrypoint,dedupe_key,payload,headers,attempts}'))
            then '1.7'
            when exists (select from pg_index i join pg_class c on c.oid = i.indexrelid
                         where i.indrelid = t.oid and c.relname = {prefix_lit} || 'pgqueuer_picked_heartbeat_idx')
            then '1.6' else '1.3' end as version
from pg_class t where t.relnamespace = (select oid from pg_namespace where nspname = {schema_lit})
  and t.relname = {prefix_lit} || 'pgqueuer'

-- name: queues
select queue, null::bool as paused, true as keeps
from (select distinct entrypoint as queue from {schema}.{prefix}pgqueuer
      union select distinct entrypoint from {schema}.{prefix}pgqueuer_schedules
      union select distinct entrypoint from (select entrypoint from {schema}.{prefix}pgqueuer_log order by id desc
                                             limit 10000) l) q
order by 1 limit 10000

-- name: counts
-- as failed: jobs that are held, and jobs that ended with an exception, 10,000 of these at most
with gone as materialized (
    select entrypoint, job_id from {schema}.{prefix}pgqueuer_log where status = 'exception' limit 10000
), counted as (
    select entrypoint as queue, count(*) filter (where status = 'queued' and execute_after > now()
                                                   and attempts = 0) as scheduled,
           count(*) filter (where status = 'queued' and execute_after <= now()) as ready,
           count(*) filter (where status = 'queued' and execute_after > now() and attempts <> 0) as retry,
           count(*) filter (where status = 'picked') as running,
           count(*) filter (where status::text = 'failed') as failed,
           min(greatest(created, execute_after)) filter (where status = 'queued' and execute_after <= now()) as oldest,
           false as approx
    from {schema}.{prefix}pgqueuer group by 1
    union all
    select entrypoint, 0, 0, 0, 0, count(*), null, (select count(*) from gone) = 10000
    from gone where not exists (select from {schema}.{prefix}pgqueuer q where q.id = gone.job_id) group by 1
)
select queue, sum(scheduled)::bigint as scheduled, sum(ready)::bigint as ready, sum(retry)::bigint as retry,
       sum(running)::bigint as running,
       sum(failed)::bigint as failed, {ms(min(oldest))} as oldest_ms, bool_or(approx) as approx
from counted c group by 1 order by 1

-- name: counts_final
-- cost: reads the log's entries of finished jobs
select entrypoint as queue, count(*) filter (where status = 'successful') as completed,
       count(*) filter (where status in ('canceled', 'deleted')) as cancelled
from {schema}.{prefix}pgqueuer_log where status in ('successful', 'canceled', 'deleted') group by 1 order by 1

-- name: jobs
-- params: queue states raw_states kind node error words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first, then what has ended
-- First the jobs of the queue, newest first (cursor q...); then, if final states or ids are asked for, the jobs that
-- only the log has (l...). If terms must be checked row by row, n rows are read; a row without an id gives the cursor
-- to continue from.
with params as not materialized (
    select case when num_nonnulls($4::text, $5::text, $6::text, $7::text[], $8::interval, $9::interval, $10::int,
                                  $11::int) > 0
                then coalesce($13::int, 10000) else coalesce($14::int, 100) end as n,
           {bigints($12)} as ids,
           case when $15::text ~ '^q-?[0-9]{1,19}$' then substr($15::text, 2)::bigint end as q,
           case when $15::text ~ '^l-?[0-9]{1,19}$' then substr($15::text, 2)::bigint end as l,
           coalesce($2::text[] && '{completed,cancelled,failed}', $12::text[] is not null) as final
), live as materialized (
    select j.*, row_number() over (order by j.id desc) as o from {schema}.{prefix}pgqueuer j
    where (select l from params) is null and ($1::text is null or j.entrypoint = $1::text)
      and ($3::text[] is null or j.status::text = any($3::text[]))
      and ($2::text[] is null or case j.status::text when 'picked' then 'running' when 'failed' then 'failed'
               when 'queued' then case when j.execute_after <= now() then 'ready' when j.attempts = 0 then 'scheduled'
                                       else 'retry' end
               else 'cancelled' end = any($2::text[]))
      and ($12::text[] is null or j.id = any((select ids from params)::bigint[]))
      and ((select q from params) is null or j.id < (select q from params))
    order by j.id desc limit (select n from params)
), past as materialized (
    select g.*, row_number() over (order by g.id desc) as o from {schema}.{prefix}pgqueuer_log g
    where (select final from params) and (select count(*) from live) < (select n from params)
      and g.status in ('successful', 'exception', 'canceled', 'deleted')
      and ($1::text is null or g.entrypoint = $1::text)
      and ($3::text[] is null or g.status::text = any($3::text[]))
      and ($12::text[] is null or g.job_id = any((select ids from params)::bigint[]))
      and ((select l from params) is null or g.id < (select l from params))
      and not exists (select from {schema}.{prefix}pgqueuer q where q.id = g.job_id)
      and not exists (select from {schema}.{prefix}pgqueuer_log o where o.job_id = g.job_id and o.id > g.id
                      and o.status in ('successful', 'exception', 'canceled', 'deleted'))
    order by g.id desc limit (select n from params)
), merged as (
    select 1 as arm, o, 'q' || id as cursor, id::bigint as id, entrypoint, status, priority, attempts, created,
           execute_after, updated,
           case when status = 'picked' then updated end as started, null::timestamptz as ended, queue_manager_id,
           heartbeat,
           case when status::text = 'failed' then (select g.traceback from {schema}.{prefix}pgqueuer_log g
               where g.job_id = live.id and g.traceback is not null order by g.created desc, g.id desc
                                                   limit 1) end as traceback
    from live
    union all
    select 2, o, 'l' || id, job_id, entrypoint, status, priority, (h.picked)::int, h.created, null, past.created,
           h.started, past.created, null, null, traceback
    from past cross join lateral (
        select min(g.created) filter (where g.status = 'queued') as created,
               max(g.created) filter (where g.status = 'picked') as started,
               count(*) filter (where g.status = 'picked') as picked
        from {schema}.{prefix}pgqueuer_log g where g.job_id = past.job_id) h
), matching as (
    select j.*, s.state, s.error
    from merged j cross join lateral (
        select case j.status::text when 'picked' then 'running' when 'failed' then 'failed'
                    when 'exception' then 'failed' when 'successful' then 'completed'
                    when 'queued' then case when j.execute_after <= now() then 'ready'
                                            when j.attempts = 0 then 'scheduled' else 'retry' end
                    else 'cancelled' end as state,
               case when jsonb_typeof(j.traceback) = 'object'
                        then concat_ws(': ', j.traceback ->> 'exception_type', j.traceback ->> 'exception_message')
                    else j.traceback::text end as error) s
    where ($4::text is null or j.entrypoint = $4::text)
      and ($5::text is null or (j.status = 'picked' and coalesce(j.queue_manager_id::text, '(none)') = $5::text))
-- part: error_term p=$6; error=s.error; key=s.error; state=s.state
-- part: has_words p=$7; text=j.id, j.entrypoint, s.error
-- part: age_and_tries created=j.created; tries=j.attempts; older=$8; younger=$9; min=$10; top=$11
    order by j.arm, j.o limit coalesce($14::int, 100)
)
-- part: job_columns
from (
    select arm, o, id::text, entrypoint as queue, entrypoint as kind, state, priority, attempts as tries,
           null::int as max_tries, {ms(created)} as created_ms, {ms(execute_after)} as run_after_ms,
           {ms(updated)} as changed_ms, {ms(started)} as started_ms, {ms(ended)} as finished_ms,
           case when status = 'picked' then coalesce(queue_manager_id::text, '(none)') end as node,
           null::bigint as lease,
           case when status = 'picked' then {ms(heartbeat)} + 30000 end as lease_until_ms, left(error, 300) as error,
           cursor,
           case when status = 'picked' then heartbeat <= now() - interval '30 s' end as stale
    from matching
    union all
    (select 3, 0, '', '', '', '', null, 0, null, null, null, null, null, null, null, null, null, '', cursor, null
     from merged where o = (select n from params) and (select count(*) from matching) < coalesce($14::int, 100)
     order by arm desc
     limit 1)
) z order by arm, o

-- name: job (ids)
with wanted as materialized (
    select i::bigint as id from unnest($1::text[]) i
    where case when i ~ '^-?[0-9]{1,19}$' then i::numeric between -9223372036854775808 and 9223372036854775807 end
    limit 1
), found as (
    select q.id::bigint as id, q.entrypoint, q.status, q.priority, q.attempts, q.created, q.execute_after, q.updated,
           case when q.status = 'picked' then q.updated end as started, null::timestamptz as ended, q.queue_manager_id,
           q.heartbeat, q.dedupe_key, q.payload, q.headers, true as kept,
           case when q.status::text = 'failed' then (select g.traceback from {schema}.{prefix}pgqueuer_log g
               where g.job_id = q.id and g.traceback is not null order by g.created desc, g.id desc
                                                     limit 1) end as traceback
    from {schema}.{prefix}pgqueuer q where q.id = (select id from wanted)
    union all
    (select g.job_id, g.entrypoint, g.status, g.priority, h.picked::int, h.created, null, g.created, h.started,
            g.created, null, null, null, null, null, false, g.traceback
     from {schema}.{prefix}pgqueuer_log g cross join lateral (
         select min(l.created) filter (where l.status = 'queued') as created,
                max(l.created) filter (where l.status = 'picked') as started,
                count(*) filter (where l.status = 'picked') as picked
         from {schema}.{prefix}pgqueuer_log l where l.job_id = g.job_id) h
     where g.job_id = (select id from wanted) and g.status in ('successful', 'exception', 'canceled', 'deleted')
       and not exists (select from {schema}.{prefix}pgqueuer q where q.id = g.job_id)
     order by g.id desc limit 1)
)
select j.id::text, j.entrypoint as queue, j.entrypoint as kind,
       case j.status::text when 'picked' then 'running' when 'failed' then 'failed' when 'exception' then 'failed'
            when 'successful' then 'completed'
            when 'queued' then case when j.execute_after <= now() then 'ready' when j.attempts = 0 then 'scheduled'
                                    else 'retry' end
            else 'cancelled' end as state,
       j.priority, j.attempts as tries, null::int as max_tries, {ms(j.created)} as created_ms,
       {ms(j.execute_after)} as run_after_ms,
       {ms(j.updated)} as changed_ms, {ms(j.started)} as started_ms, {ms(j.ended)} as finished_ms,
       case when j.status = 'picked' then coalesce(j.queue_manager_id::text, '(none)') end as node,
       null::bigint as lease,
       case when j.status = 'picked' then {ms(j.heartbeat)} + 30000 end as lease_until_ms,
       case when jsonb_typeof(j.traceback) = 'object'
                then concat_ws(': ', j.traceback ->> 'exception_type', j.traceback ->> 'exception_message')
            else j.traceback::text end as error, null::text as cursor,
       case when j.status = 'picked' then j.heartbeat <= now() - interval '30 s' end as stale,
       case when t.is_text then convert_from(j.payload, 'UTF8')
            else encode(substr(j.payload, 1, 65536), 'hex') end as payload,
       case when not j.kept then 'gone' when j.payload is null then '' when not t.is_text then 'bytes'
            when encode(substr(j.payload, 1, 1), 'escape') in ('{', '[') then 'json' else 'text' end as payload_format,
       ''::text as payload_type, octet_length(j.payload)::bigint as payload_size, j.dedupe_key as unique_key,
       j.status::text as raw_state
from found j cross join lateral (
    select case when octet_length(j.payload) <= 100000
                     and getdatabaseencoding() = 'UTF8' then encode(j.payload, 'hex') ~
        ('^(?:0[1-9a-f]|[1-7][0-9a-f]|(?:c[2-9a-f]|d[0-9a-f])[89ab][0-9a-f]|e0[ab][0-9a-f][89ab][0-9a-f]|'
         'e[1-9a-cef](?:[89ab][0-9a-f]){2}'
         || '|ed[89][0-9a-f][89ab][0-9a-f]|f0[9ab][0-9a-f](?:[89ab][0-9a-f]){2}|f[1-3](?:[89ab][0-9a-f]){3}|'
            'f48[0-9a-f](?:[89ab][0-9a-f]){2})*$')
        else false end as is_text) t

-- name: attempts (ids)
-- the log, from the newest
select row_number() over (order by id)::int as number, null::text as node, null::bigint as started_ms,
       {ms(created)} as ended_ms,
       case status when 'picked' then 'started' when 'successful' then 'completed' when 'exception' then 'failed'
            when 'canceled' then 'cancelled'
                   else status::text end as outcome,
       coalesce(case when jsonb_typeof(traceback) = 'object'
                         then concat_ws(': ', traceback ->> 'exception_type', traceback ->> 'exception_message')
                     else traceback::text end, '') as error, left(traceback ->> 'traceback', 65536) as trace
from {schema}.{prefix}pgqueuer_log where job_id = any(({bigints($1)})[:1]) order by id desc limit 200

-- name: nodes
-- a worker is known by the jobs that it holds; each has a heartbeat of its own
select coalesce(queue_manager_id::text, '(none)') as node,
       case when max(heartbeat) > now() - interval '30 s' then 'up' else 'dead' end as state,
       {ms(max(heartbeat))} as heartbeat_ms,
       count(*) as running, count(*) as leases, count(*) filter (where heartbeat <= now() - interval '30 s') as expired,
       string_agg(distinct entrypoint, ',') as queues, {ms(max(heartbeat))} + 30000 as lease_until_ms
from {schema}.{prefix}pgqueuer where status = 'picked' group by 1 order by 1 limit 10000

-- name: leases (node queue limit)
select id::bigint as lease, coalesce(queue_manager_id::text, '(none)') as node, entrypoint as queue, 1::bigint as jobs,
       {ms(updated)} as started_ms,
       {ms(heartbeat)} + 30000 as lease_until_ms, id::text as job_ids, attempts as tries, '→ ready' as effect
from {schema}.{prefix}pgqueuer
where status = 'picked' and ($1::text is null or coalesce(queue_manager_id::text, '(none)') = $1::text)
  and ($2::text is null or entrypoint = $2::text)
order by heartbeat, id limit coalesce($3::int, 200)

-- name: groups (queue limit)
-- of the newest 5000 failures in the log
with failed_jobs as materialized (
    select * from {schema}.{prefix}pgqueuer_log
    where status::text in ('exception', 'failed') and ($1::text is null or entrypoint = $1::text) order by id desc
    limit 5000
), grouped as (
    select distinct on (f.job_id) f.job_id, f.id, f.entrypoint, f.created,
           coalesce(case when jsonb_typeof(f.traceback) = 'object'
                             then concat_ws(': ', f.traceback ->> 'exception_type', f.traceback ->> 'exception_message')
                         else f.traceback::text end, '') as error
    from failed_jobs f left join {schema}.{prefix}pgqueuer q on q.id = f.job_id
    where q.status::text = 'failed' or (q.id is null and f.status = 'exception') order by f.job_id, f.id desc
)
select {error_key(error)} as error_key, entrypoint as queue, count(*) as n,
       (select count(*) from failed_jobs) = 5000 as capped,
       {ms(min(created))} as first_ms, {ms(max(created))} as last_ms,
       (array_agg(left(error, 1000) order by id desc))[1] as sample,
       (array_agg(job_id::text order by id desc))[1] as sample_id
from grouped g group by 1, 2 order by 3 desc, 2, 1 limit coalesce($2::int, 200)

-- name: schedules (schedule)
select name, expression as cron, ''::text as tz, entrypoint as queue, entrypoint as kind, 'active' as state,
       {ms(last_run)} as last_run_ms,
       case when status = 'picked' then 'running' else '' end as last_outcome, {ms(next_run)} as next_run_ms,
       {ms(created)} as created_ms, {ms(updated)} as changed_ms
from (select s.*, s.entrypoint || ' (' || s.expression || ')' as name from {schema}.{prefix}pgqueuer_schedules s) s
where $1::text is null or name = $1::text order by 1 limit 10000

-- name: requeue (ids)
-- official: Queries.requeue_jobs (attempts start over)
-- guard: only jobs that are held as failed; a job that ended with an exception is not in the queue any more, and its
--   payload is lost
with updated_rows as (
    update {schema}.{prefix}pgqueuer q
    set status = 'queued', execute_after = now(), updated = now(), attempts = 0, queue_manager_id = null
    where q.status::text = 'failed' and q.id = any({bigints($1)})
-- part: pgqueuer_log status='queued'; rows=updated_rows
-- part channel:
), channel as (
    select coalesce((select substring(p.prosrc from 'pg_notify[(][[:space:]]*''([^'']+)''') from pg_proc p
                     join pg_namespace n on n.oid = p.pronamespace
                     where n.nspname = {schema_lit} and p.proname = {prefix_lit} || 'fn_pgqueuer_changed'),
                    {prefix_lit} || 'ch_pgqueuer') as name
-- end part
-- part woken:
), woken as materialized (
    select pg_notify(c.name, json_build_object('channel', c.name, 'operation', 'update', 'sent_at', now(), 'table',
                                               {prefix_lit} || 'pgqueuer', 'type', 'table_changed_event')::text) as sent
    from channel c where exists (select from updated_rows)
-- end part
)
select up.id::text, 'ready' as state, woken.sent from updated_rows up cross join woken

-- name: rescue (ids)
-- official: Queries.retry_job: a try is counted
-- guard: only running jobs whose heartbeat is 30 s old
with updated_rows as (
    update {schema}.{prefix}pgqueuer q
    set status = 'queued', execute_after = now(), updated = now(), attempts = q.attempts + 1, queue_manager_id = null
    where q.status = 'picked' and q.heartbeat <= now() - interval '30 s' and q.attempts < 2147483647
      and q.id = any({bigints($1)})
-- part: pgqueuer_log status='queued'; rows=updated_rows
-- part: channel
-- part: woken
)
select up.id::text, 'ready' as state, woken.sent from updated_rows up cross join woken

-- name: release_where (node)
-- official: no (Queries.retry_job for each of the worker's jobs: a try is counted)
-- guard: only jobs whose heartbeat is 30 s old
with updated_rows as (
    update {schema}.{prefix}pgqueuer q
    set status = 'queued', execute_after = now(), updated = now(), attempts = q.attempts + 1, queue_manager_id = null
    where q.status = 'picked' and q.heartbeat <= now() - interval '30 s' and q.attempts < 2147483647
      and coalesce(q.queue_manager_id::text, '(none)') = $1::text
-- part: pgqueuer_log status='queued'; rows=updated_rows
-- part: channel
-- part: woken
)
select up.id::text, 'ready' as state, woken.sent from updated_rows up cross join woken

-- name: extend (ids by)
-- official: Queries.update_heartbeat (which stands for 30 s from now); more than that is our own
-- guard: only running jobs whose heartbeat would end before that time
update {schema}.{prefix}pgqueuer q set heartbeat = now() + coalesce($2::interval, '30 s') - interval '30 s'
where q.status = 'picked' and q.heartbeat < now() + coalesce($2::interval, '30 s') - interval '30 s'
  and q.id = any({bigints($1)})
returning q.id::text, 'extended' as state

-- name: cancel (ids)
-- official: Queries.mark_job_as_cancelled: the job is removed and logged; a running one gets a message and stops
--   when its code asks for it
-- guard: only jobs that are in the queue
-- confirm: The job is removed with its payload, also one that runs or has failed.
-- mode: signal
with del as (
    delete from {schema}.{prefix}pgqueuer q where q.id = any({bigints($1)})
-- part: pgqueuer_log status='canceled'; rows=del
-- part: channel
), told as materialized (
    select count(
        pg_notify(c.name, json_build_object('channel', c.name, 'ids', d.ids, 'sent_at', now(), 'type',
                                            'cancellation_event')::text)) as n
    from channel c cross join (
        select json_agg(id) as ids from (select id, row_number() over (order by id) / 300 as part from del) x
        group by part) d
)
select del.id::text, 'cancelled' as state, told.n as told from del cross join told

-- name: delete (ids)
-- official: delete from the queue, logged as deleted
-- guard: only jobs that do not run; what only the log knows: purge
with del as (
    delete from {schema}.{prefix}pgqueuer q where q.status <> 'picked' and q.id = any({bigints($1)})
-- part: pgqueuer_log status='deleted'; rows=del
)
select id::text, 'deleted' as state from del

-- name: priority (ids n)
-- official: no (plain column; larger is sooner)
-- guard: only jobs of another priority that wait
-- range: -2147483648..2147483647
update {schema}.{prefix}pgqueuer q set priority = $2::int, updated = now()
where q.status = 'queued' and q.priority <> $2::int and q.id = any({bigints($1)})
returning q.id::text, case when q.execute_after <= now() then 'ready' when q.attempts = 0 then 'scheduled'
                           else 'retry' end as state

-- name: reschedule (ids at)
-- official: no (plain column; workers are woken)
-- guard: only jobs with another time that wait
with updated_rows as (
    update {schema}.{prefix}pgqueuer q set execute_after = $2::timestamptz, updated = now()
    where q.status = 'queued' and q.execute_after <> $2::timestamptz and q.id = any({bigints($1)})
    returning q.id, case when q.execute_after <= now() then 'ready' when q.attempts = 0 then 'scheduled'
                         else 'retry' end as state
-- part: channel
-- part: woken
)
select up.id::text, up.state, woken.sent from updated_rows up cross join woken

-- name: purge (queue raw_states before limit)
-- official: delete from the log and the queue
-- guard: only what has ended; a job that is held as failed is logged as deleted
with past as materialized (
    select distinct g.job_id from {schema}.{prefix}pgqueuer_log g
-- part purged:
    where g.status::text = any(coalesce($2::text[], '{successful,canceled,deleted}'))
      and g.status in ('successful', 'exception', 'canceled', 'deleted')
      and ($1::text is null or g.entrypoint = $1::text) and g.created < coalesce($3::timestamptz, now())
      and not exists (select from {schema}.{prefix}pgqueuer q where q.id = g.job_id)
-- end part
    limit coalesce($4::int, 1000)
), gone as (
    delete from {schema}.{prefix}pgqueuer_log g using past where g.job_id = past.job_id returning g.job_id
), held as (
    delete from {schema}.{prefix}pgqueuer q
    where q.id = any(array(
        select h.id from {schema}.{prefix}pgqueuer h
        where h.status::text = 'failed' and 'failed' = any($2::text[]) and ($1::text is null or h.entrypoint = $1::text)
          and h.updated < coalesce($3::timestamptz, now())
        order by h.id limit coalesce($4::int, 1000) - (select count(*) from past) for update skip locked))
-- part: pgqueuer_log status='deleted'; rows=held
)
select distinct job_id::text as id, 'purged' as state from gone union all select id::text, 'purged' from held

-- name: purge_preview (queue raw_states before)
select 'purged' as state, count(distinct g.job_id) as n,
       case g.status when 'successful' then 'completed' when 'exception' then 'failed, payload gone'
            else g.status::text end as why
from {schema}.{prefix}pgqueuer_log g
-- part: purged
group by g.status
union all
select 'purged', count(*), 'failed, still to requeue' from {schema}.{prefix}pgqueuer h
where h.status::text = 'failed' and 'failed' = any($2::text[]) and ($1::text is null or h.entrypoint = $1::text)
  and h.updated < coalesce($3::timestamptz, now())
having count(*) > 0
