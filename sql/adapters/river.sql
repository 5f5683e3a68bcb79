-- adapter: river
-- title: River (Go)
-- format: 2
-- schema: public
-- id-type: bigint
-- tested-versions: 6-7
-- min-version: 6
-- states: scheduled=scheduled ready=available retry=retryable running=running failed=discarded blocked=pending
--   completed=completed cancelled=cancelled
-- tables: river_job river_queue river_leader river_migration
-- note: River has no heartbeat: a running job counts as stale an hour after its attempt began, when River's own rescuer
--   takes it.
-- note: Schedules (periodic jobs) are only in the programs. A queue's row vanishes a day after its last client.
-- note: A worker whose job was taken back can't finish it any more, unless the job runs again at that time.

-- name: detect
select n.nspname::text as schema
from pg_namespace n
where exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'river_job' and c.relkind in ('r', 'p')
                and a.attname = 'unique_states')
  and exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'river_queue'
                                       and c.relkind in ('r', 'p'))
  and exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'river_migration' and c.relkind in ('r', 'p')
                and a.attname = 'line')
order by 1

-- name: version
select max(version)::text as version from {schema}.river_migration where line = 'main'

-- name: queues
select name as queue, paused_at is not null as paused, {ms(paused_at)} as paused_ms,
       case when updated_at < now() - interval '1 h' then 'no client has reported for an hour' else '' end as info,
       true as keeps
from {schema}.river_queue order by name

-- name: counts
-- live jobs and failed ones, by the index of (state, queue, ...)
select queue, coalesce(sum(n) filter (where state = 'scheduled'), 0)::bigint as scheduled,
       coalesce(sum(n) filter (where state = 'available'), 0)::bigint as ready,
       coalesce(sum(n) filter (where state = 'retryable'), 0)::bigint as retry,
       coalesce(sum(n) filter (where state = 'running'), 0)::bigint as running,
       coalesce(sum(n) filter (where state = 'discarded'), 0)::bigint as failed,
       coalesce(sum(n) filter (where state = 'pending'), 0)::bigint as blocked,
       {ms(min(oldest) filter (where state = 'available'))} as oldest_ms
from (select queue, state, count(*) as n, min(scheduled_at) as oldest from {schema}.river_job
      where state in ('available', 'discarded', 'pending', 'retryable', 'running', 'scheduled') group by 1, 2) s
group by 1

-- name: counts_final
-- cost: reads the index entries of all finished jobs; of more than five million jobs a sample
with size as materialized (
    select greatest(reltuples, 1)::float8 as n from pg_class where oid = format('%I.river_job', {schema_lit})::regclass
)
select queue, coalesce(sum(n) filter (where state = 'completed'), 0)::bigint as completed,
       coalesce(sum(n) filter (where state = 'cancelled'), 0)::bigint as cancelled, bool_or(approx) as approx
from (select queue, state, count(*)::numeric as n, false as approx from {schema}.river_job
      where state in ('completed', 'cancelled') and (select n <= 5e6 from size) group by 1, 2
      union all
      select queue, state, round(count(*) * (select n / 100000 from size)::numeric), true
      from {schema}.river_job tablesample system ((select least(100, 1e7 / n) from size))
      where state in ('completed', 'cancelled') and (select n > 5e6 from size) group by 1, 2) s
group by 1

-- name: jobs
-- params: queue states raw_states kind node error words not_words ids older_than younger_than min_tries top_tries
--   in_payload path n limit cursor
-- order: ready: next to start first; running: first due first; retry: next due first; scheduled: next due first;
--   blocked: next due first; queue: running, next to start, last due; failed: last failed first;
--   completed: last finished first; cancelled: last finished first; *: running, next to start, failed
-- Without states: jobs that are not completed or cancelled. The order: running, ready, retry, scheduled, blocked (the
-- next first), then failed and the other final ones (newest first). runs are the existing combinations of state, queue
-- and priority, found by skipping through the index, so that only rows that are shown are read. If terms must be
-- checked row by row, at most n rows are read, and a row without an id gives the cursor to continue from.
with recursive params as not materialized (
    select $1::text as queue, $2::text[] as states, $3::text[] as raw, $4::text as kind, $5::text as node,
           case when $6::text like '~%' then lower(substr($6::text, 2)) end as part,
           case when $6::text not like '~%' then {error_key($6::text)} end as error_key,
           $7::text[] as words, $8::text[] as not_words, $9::text[] as ids, $10::interval as older,
           $11::interval as younger, $12::int as min_tries, $13::int as top_tries, left($14::text, 1) as how,
           substr($14::text, 2) as inside, $15::text[] as path,
           coalesce($16::int, 10000) as n, coalesce($17::int, 100) as top,
           num_nonnulls($4::text, $5::text, $6::text, $7::text[], $8::text[], $10::interval, $11::interval, $12::int,
                        $13::int, $14::text) = 0 as plain,
           case when num_nonnulls($4::text, $5::text, $6::text, $7::text[], $8::text[], $10::interval, $11::interval,
                                  $12::int, $13::int, $14::text) = 0
                then coalesce($17::int, 100) else coalesce($16::int, 10000) end as most,
           nullif(split_part($18::text, '/', 1), '')::int as c_rank,
           nullif(split_part($18::text, '/', 2), '')::int as c_priority,
           nullif(split_part($18::text, '/', 3), '')::bigint as c_id,
           substring($18::text from '^[^/]*/[^/]*/[^/]*/(.*)$')::timestamptz as c_at
), wanted as (
    select w.state::{schema}.river_job_state as state, w.rank
    from (values ('running', 1), ('available', 2), ('retryable', 3), ('scheduled', 4), ('pending', 5),
               ('discarded', 6), ('completed', 7), ('cancelled', 7)) w (state, rank), params p
    where p.ids is null and case when p.raw is not null then w.state = any(p.raw)
                                 else w.rank < case when p.node is null then 7 else 2 end end
      and (p.c_rank is null or w.rank >= p.c_rank)
), runs (rank, state, queue, priority) as (
    select w.rank, w.state, j.queue, j.priority from wanted w, params p cross join lateral (
        select j.queue, j.priority from {schema}.river_job j
        where j.state = w.state and (p.queue is null or j.queue = p.queue)
        order by j.queue, j.priority limit 1) j
    where w.rank < 6 or p.queue is not null
    union all
    select r.rank, r.state, j.queue, j.priority from runs r, params p cross join lateral (
        select j.queue, j.priority from {schema}.river_job j
        where j.state = r.state and (p.queue is not null or (j.queue, j.priority) > (r.queue, r.priority))
          and (p.queue is null or (j.queue = p.queue and j.priority > r.priority))
        order by j.queue, j.priority limit 1) j
), live as (
    select r.rank, r.o1, j.scheduled_at as at, j.id,
           row_number() over (order by r.rank, r.o1, j.scheduled_at, j.id) as o
    from (select *, case when rank = 2 then priority else 0 end::int as o1 from runs where rank < 6) r, params p
    cross join lateral (
        select j.scheduled_at, j.id from {schema}.river_job j
        where j.state = r.state and j.queue = r.queue and j.priority = r.priority
          and (j.scheduled_at,
               j.id) > (case when r.rank = p.c_rank and r.o1 = p.c_priority then p.c_at else '-infinity' end,
                                        case when r.rank = p.c_rank and r.o1 = p.c_priority then p.c_id else -1 end)
        order by j.scheduled_at, j.id limit p.most) j
    where p.c_rank is null or r.rank > p.c_rank or r.o1 >= p.c_priority
    order by o limit (select most from params)
), done as (
    select s.rank, 0 as o1, s.at, s.id, row_number() over (order by s.rank, s.at desc, s.id desc) as o
    from (select w.rank, j.at, j.id from wanted w, params p cross join lateral (
              select j.finalized_at as at, j.id from {schema}.river_job j
              where j.state = w.state and j.finalized_at is not null
                and (j.finalized_at, j.id) < (case when w.rank = p.c_rank then p.c_at else 'infinity' end,
                                              case when w.rank = p.c_rank then p.c_id else 9223372036854775807 end)
              order by j.finalized_at desc, j.id desc limit p.most) j
          where w.rank >= 6 and p.queue is null
          union all
          select r.rank, j.at, j.id from runs r, params p cross join lateral (
              select j.scheduled_at as at, j.id from {schema}.river_job j
              where j.state = r.state and j.queue = r.queue and j.priority = r.priority
                and (j.scheduled_at, j.id) < (case when r.rank = p.c_rank then p.c_at else 'infinity' end,
                                              case when r.rank = p.c_rank then p.c_id else 9223372036854775807 end)
              order by j.scheduled_at desc, j.id desc limit p.most) j
          where r.rank >= 6) s
    order by o limit (select most from params)
), found as materialized (
    select *, row_number() over (order by rank, o) as place from (
        select * from live union all select * from done
        union all
        select 9, 0, null, i::bigint, row_number() over (order by i::bigint desc) from params p, unnest(p.ids) i
        where i ~ '^[0-9]{1,18}$') f
    order by rank, o limit (select most from params)
), fits as (
    select f.place, f.rank || '/' || f.o1 || '/' || f.id || '/' || f.at as cursor, j.*, e.error
    from params p, found f cross join lateral (select * from {schema}.river_job j where j.id = f.id limit 1) j
    cross join lateral (select j.errors[array_upper(j.errors, 1)] ->> 'error' as error,
                               j.attempted_by[array_upper(j.attempted_by, 1)] as node,
                               case j.state when 'available' then 'ready' when 'retryable' then 'retry'
                                    when 'discarded' then 'failed'
                                            when 'pending' then 'blocked' else j.state::text end as norm) e
    where (p.queue is null or j.queue = p.queue)
      and (p.states is null or e.norm = any(p.states))
      and (p.kind is null or j.kind = p.kind)
      and (p.node is null or e.node = p.node)
      and (p.error_key is null
           or coalesce({error_key(e.error)}, case when e.norm = 'failed' then '' end) = p.error_key)
      and (p.part is null or strpos(lower(e.error), p.part) > 0)
      and (p.older is null or j.created_at < now() - p.older)
      and (p.younger is null or j.created_at > now() - p.younger)
      and (p.min_tries is null or j.attempt >= p.min_tries)
      and (p.top_tries is null or j.attempt <= p.top_tries)
      and (p.words is null or not exists (select from unnest(p.words) w
               where strpos(lower(concat_ws(' ', j.id, j.queue, j.kind, e.error)), lower(w)) = 0))
      and (p.not_words is null or not exists (select from unnest(p.not_words) w
               where strpos(lower(concat_ws(' ', j.id, j.queue, j.kind, e.error)), lower(w)) > 0))
      and (p.inside is null
           or case when p.path is null then strpos(lower(left(j.args::text, 1000000)), lower(p.inside)) > 0
                                    when p.how = '=' then j.args #>> p.path = p.inside
                                    else strpos(lower(j.args #>> p.path), lower(p.inside)) > 0 end)
    order by f.place limit (select top from params)
)
select z.id, z.queue, z.kind, z.state, z.priority, z.tries, z.max_tries, z.created_ms, z.run_after_ms, z.changed_ms,
       z.started_ms, z.finished_ms, z.node, z.lease_until_ms, z.error, z.cursor, z.stale
from (
    select f.id::text, f.queue, f.kind,
           case f.state when 'available' then 'ready' when 'retryable' then 'retry' when 'discarded' then 'failed'
                        when 'pending' then 'blocked' else f.state::text end as state,
           f.priority::int, greatest(f.attempt - (f.state = 'running')::int, 0) as tries,
           f.max_attempts::int as max_tries, {ms(f.created_at)} as created_ms, {ms(f.scheduled_at)} as run_after_ms,
           {ms(coalesce(f.finalized_at, f.attempted_at, f.created_at))} as changed_ms,
           {ms(f.attempted_at)} as started_ms,
           {ms(f.finalized_at)} as finished_ms,
           case when f.state in ('running', 'completed', 'cancelled')
                    then f.attempted_by[array_upper(f.attempted_by, 1)] end as node,
           null::bigint as lease_until_ms, left(f.error, 300) as error, f.cursor,
           f.state = 'running' and f.attempted_at < now() - interval '1 h' as stale, f.place, 0 as mark
    from fits f
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, '',
           f.rank || '/' || f.o1 || '/' || f.id || '/' || f.at, null, f.place, 1
    from params p, found f where f.place = p.n and not p.plain and p.ids is null and (select count(*) from fits) < p.top
) z order by z.place, z.mark

-- name: job
-- params: ids
select j.id::text, j.queue, j.kind,
       case j.state when 'available' then 'ready' when 'retryable' then 'retry' when 'discarded' then 'failed'
                    when 'pending' then 'blocked' else j.state::text end as state,
       j.priority::int, greatest(j.attempt - (j.state = 'running')::int, 0) as tries, j.max_attempts::int as max_tries,
       {ms(j.created_at)} as created_ms,
       {ms(j.scheduled_at)} as run_after_ms,
       {ms(coalesce(j.finalized_at, j.attempted_at, j.created_at))} as changed_ms,
       {ms(j.attempted_at)} as started_ms,
       {ms(j.finalized_at)} as finished_ms,
       j.attempted_by[array_upper(j.attempted_by, 1)] as node, null::bigint as lease_until_ms,
       j.errors[array_upper(j.errors, 1)] ->> 'error' as error, null::text as cursor,
       j.state = 'running' and j.attempted_at < now() - interval '1 h' as stale,
       encode(j.unique_key, 'hex') as unique_key, left(j.args::text, 1000000) as payload, 'json' as payload_format,
       'application/json' as payload_type, octet_length(j.args::text)::bigint as payload_size,
       left(j.metadata ->> 'output', 65536) as result,
       j.metadata ? 'cancel_attempted_at' and j.state = 'running' as cancel_asked, j.state::text as raw_state
from {schema}.river_job j
where j.id = ({bigints($1)})[1]

-- name: attempts
-- params: ids
select coalesce(case when e ->> 'attempt' ~ '^[0-9]{1,9}$' then (e ->> 'attempt')::int end, o::int) as number,
       j.attempted_by[case when e ->> 'attempt' ~ '^[0-9]{1,4}$' then (e ->> 'attempt')::int end] as node,
       null::bigint as started_ms,
       {ms(case when e ->> 'at' ~ '^\d{4}-(0[1-9]|1[0-2])-([012]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|'
                                  '[+-]\d\d:\d\d)$'
                                then (e ->> 'at')::timestamptz end)} as ended_ms,
       'failed' as outcome, e ->> 'error' as error, left(e ->> 'trace', 65536) as trace
from {schema}.river_job j, unnest(j.errors) with ordinality u (e, o)
where j.id = ({bigints($1)})[1]
order by o desc limit 200

-- name: nodes
-- nodes that run jobs, and the client that leads (elected for seconds at a time); no other client shows that it is
-- alive
with running_rows as materialized (
    select coalesce(attempted_by[array_upper(attempted_by, 1)], '') as node, count(*) as running,
           count(*) filter (where attempted_at < now() - interval '1 h') as expired,
           min(attempted_at) as oldest, string_agg(distinct queue, ',' order by queue) as queues
    from {schema}.river_job where state = 'running' group by 1
)
select coalesce(r.node, l.leader_id) as node, case when l.expires_at > now() then 'up' else 'unknown' end as state,
       null::text as host, null::int as pid, {ms(l.elected_at)} as started_ms, null::bigint as heartbeat_ms,
       coalesce(r.running, 0)::bigint as running, coalesce(r.running, 0)::bigint as leases,
       coalesce(r.expired, 0)::bigint as expired, coalesce(r.queues, '') as queues, null::boolean as session_alive
from running_rows r full join (select distinct on (leader_id) * from {schema}.river_leader
                  order by leader_id, expires_at desc) l on l.leader_id = r.node
order by 1

-- name: leases
-- params: node queue limit
-- a running job is a lease of its own; it ends when River's rescuer would take the job
select id as lease, coalesce(attempted_by[array_upper(attempted_by, 1)], '') as node, queue, 1::bigint as jobs,
       {ms(attempted_at)} as started_ms,
       {ms(attempted_at)} + 3600000 as lease_until_ms, id::text as job_ids,
       greatest(attempt - 1, 0) as tries, max_attempts::int as max_tries,
       case when metadata ? 'cancel_attempted_at' then '→ cancelled' when attempt < max_attempts then '→ retry'
            else '→ failed (last try)' end as effect
from {schema}.river_job
where state = 'running' and ($1::text is null or attempted_by[array_upper(attempted_by, 1)] = $1::text)
  and ($2::text is null or queue = $2::text)
order by attempted_at, id limit coalesce($3::int, 200)

-- name: groups
-- params: queue limit
with failed_jobs as materialized (
    select id, queue, finalized_at, left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.river_job where state = 'discarded' and finalized_at is not null order by finalized_at desc limit 5000
), keyed as (
    select f.*, coalesce({error_key(f.error)}, '') as error_key from failed_jobs f
    where $1::text is null or f.queue = $1::text
)
select error_key, queue, count(*) as n, (select count(*) from failed_jobs) >= 5000 as capped,
       {ms(min(finalized_at))} as first_ms, {ms(max(finalized_at))} as last_ms,
       (array_agg(error order by finalized_at desc))[1] as sample,
       (array_agg(id::text order by finalized_at desc))[1] as sample_id
from keyed k group by 1, 2 order by 3 desc, 2, 1 limit coalesce($2::int, 200)

-- name: groups_by
-- params: settings queue limit n
-- settings = what to group by: kind, node or hour; of the newest n failed jobs of all queues
with failed_jobs as materialized (
    select id::text, queue, kind, attempted_by[array_upper(attempted_by, 1)] as node, finalized_at as at,
           left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.river_job where state = 'discarded' and finalized_at is not null order by finalized_at desc
    limit coalesce($4::int, 5000)
), grouped as (
    select f.*, coalesce({error_key(f.error)}, '') as error_key,
           case $1::text when 'kind' then f.kind when 'node' then f.node
                when 'hour' then to_char(f.at at time zone 'UTC', 'YYYY-MM-DD HH24:00 "UTC"') end as by
    from failed_jobs f where $2::text is null or f.queue = $2::text
)
select coalesce(by, '') as "group", case when count(distinct queue) = 1 then min(queue) else '' end as queue,
       count(*) as n, (select count(*) from failed_jobs) >= coalesce($4::int, 5000) as capped,
       {ms(min(at))} as first_ms, {ms(max(at))} as last_ms,
       mode() within group (order by error_key) as error_key, (array_agg(error order by at desc))[1] as sample,
       (array_agg(id order by at desc))[1] as sample_id
from grouped g group by 1 order by 3 desc, 1 limit coalesce($3::int, 200)

-- name: fail_times
-- params: queue n
-- when jobs failed in the last 24 hours, by half hours, and how many of them in the last hour; of the newest n
with failed_jobs as materialized (
    select id::text, queue, kind, attempted_by[array_upper(attempted_by, 1)] as node, finalized_at as at,
           left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.river_job where state = 'discarded' and finalized_at is not null order by finalized_at desc
    limit coalesce($2::int, 5000)
)
select queue, coalesce({error_key(f.error)}, '') as error_key,
       (floor(extract(epoch from least(at, '9999-12-31')) / 1800) * 1800000)::bigint as at_ms, count(*) as n,
       count(*) filter (where at > now() - interval '1 h') as hour,
       case when (select count(*) from failed_jobs) >= coalesce($2::int, 5000)
            then (select {ms(min(at))} from failed_jobs) end as since_ms
from failed_jobs f where ($1::text is null or queue = $1::text) and at > now() - interval '24 h'
group by 1, 2, 3

-- name: requeue
-- params: ids
-- official: JobRetry
-- guard: only jobs that do not run and are not ready and due
-- one more try if all were used; finalized_at must change with the state (a CHECK)
update {schema}.river_job set state = 'available', scheduled_at = now(), finalized_at = null,
       max_attempts = case when attempt >= max_attempts then attempt + 1 else max_attempts end
where id = any({bigints($1)})
  and state <> 'running' and not (state = 'available' and scheduled_at <= now()) and attempt < 32767
returning id::text, 'ready' as state

-- name: rescue
-- params: ids
-- official: what the leader's rescuer does with a job that runs for an hour
-- guard: only a running job
-- confirm: If its worker still lives, the job runs twice.
update {schema}.river_job
set state = case when metadata ? 'cancel_attempted_at' then 'cancelled' when attempt < max_attempts then 'retryable'
                 else 'discarded' end::{schema}.river_job_state,
    finalized_at = case when metadata ? 'cancel_attempted_at' or attempt >= max_attempts then now() end,
    scheduled_at = case when attempt < max_attempts then now() else scheduled_at end,
    errors = array_append(errors, jsonb_build_object('at', now(), 'attempt', attempt, 'error',
                                                     'taken back by an operator: the worker seemed gone', 'trace', '')),
    metadata = metadata || jsonb_build_object('river:rescue_count',
        case when metadata ->> 'river:rescue_count' ~ '^[0-9]{1,8}$' then (metadata ->> 'river:rescue_count')::int
             else 0 end + 1)
where id = any({bigints($1)}) and state = 'running' and coalesce(array_ndims(errors), 1) = 1
returning id::text, case state when 'retryable' then 'retry' when 'discarded' then 'failed'
                         else state::text end as state

-- name: release_where
-- params: node expired_only
-- official: no (the rescuer goes by age alone: an hour)
-- guard: only running jobs of this node
-- confirm: If the node still lives, its jobs run twice.
update {schema}.river_job
set state = case when metadata ? 'cancel_attempted_at' then 'cancelled' when attempt < max_attempts then 'retryable'
                 else 'discarded' end::{schema}.river_job_state,
    finalized_at = case when metadata ? 'cancel_attempted_at' or attempt >= max_attempts then now() end,
    scheduled_at = case when attempt < max_attempts then now() else scheduled_at end,
    errors = array_append(errors, jsonb_build_object('at', now(), 'attempt', attempt, 'error',
                                                     'taken back by an operator: the worker seemed gone', 'trace', '')),
    metadata = metadata || jsonb_build_object('river:rescue_count',
        case when metadata ->> 'river:rescue_count' ~ '^[0-9]{1,8}$' then (metadata ->> 'river:rescue_count')::int
             else 0 end + 1)
where state = 'running' and attempted_by[array_upper(attempted_by, 1)] = $1::text
  and coalesce(array_ndims(errors), 1) = 1
  and (not coalesce($2::boolean, true) or attempted_at < now() - interval '1 h')
returning id::text, case state when 'retryable' then 'retry' when 'discarded' then 'failed'
                         else state::text end as state

-- name: cancel
-- params: ids
-- official: JobCancel
-- guard: only jobs that have not ended
-- mode: signal
-- a running job stays running: its client receives the request on the control channel and ends the job
with chosen as materialized (
    select id, queue, state from {schema}.river_job
    where id = any({bigints($1)})
      and state not in ('cancelled', 'completed', 'discarded') and jsonb_typeof(metadata) = 'object'
    order by id for update
), updated as (
    update {schema}.river_job r
    set state = case when r.state = 'running' then 'running' else 'cancelled' end::{schema}.river_job_state,
        finalized_at = case when r.state <> 'running' then now() end,
        metadata = jsonb_set(r.metadata, '{cancel_attempted_at}', to_jsonb(now()))
    from chosen j where r.id = j.id
    returning r.id, r.queue, r.state
)
select id::text, state::text, case when told is not null then 'its client is told' end as why
from (select u.*, pg_notify({schema_lit} || '.river_control',
                            json_build_object('action', 'cancel', 'job_id', id, 'queue', queue)::text) as told
      from updated u where state = 'running'
      union all
      select u.*, null from updated u where state <> 'running') n

-- name: delete
-- params: ids
-- official: JobDelete
-- guard: only jobs that do not run
-- confirm: The jobs are gone for good.
delete from {schema}.river_job
where id = any({bigints($1)}) and state <> 'running'
returning id::text, 'deleted' as state

-- name: priority
-- params: ids n
-- official: no
-- guard: only jobs of another priority that wait
-- range: 1..4
update {schema}.river_job set priority = least(greatest($2::int, 1), 4)::smallint
where id = any({bigints($1)})
  and state in ('available', 'pending', 'retryable', 'scheduled') and $2::int between 1 and 4 and priority <> $2::int
returning id::text, case state when 'available' then 'ready' when 'retryable' then 'retry'
                         when 'pending' then 'blocked' else state::text end as state

-- name: reschedule
-- params: ids at
-- official: no
-- guard: only jobs with another time that wait
update {schema}.river_job set scheduled_at = $2::timestamptz,
       state = case when state = 'available' and $2::timestamptz > now() then 'scheduled' else state end
where id = any({bigints($1)}) and state in ('available', 'retryable', 'scheduled') and scheduled_at <> $2::timestamptz
-- a job that is due is made available by River's own scheduler, within seconds
returning id::text, case when scheduled_at <= now() then 'ready' when state = 'retryable' then 'retry'
                         else state::text end as state

-- name: pause
-- params: queue
-- official: QueuePause
-- guard: only a queue that River knows and that is not paused
-- running jobs go on; clients receive the pause on the control channel
with updated as (
    update {schema}.river_queue set paused_at = now(), updated_at = now() where name = $1::text and paused_at is null
    returning name
)
select name as id, 'paused' as state
from (select name, pg_notify({schema_lit} || '.river_control',
                             json_build_object('action', 'pause', 'queue', name)::text) as told from updated) n
where told is not null

-- name: resume
-- params: queue
-- official: QueueResume
-- guard: only a queue that is paused
with updated as (
    update {schema}.river_queue set paused_at = null, updated_at = now()
    where name = $1::text and paused_at is not null returning name
)
select name as id, 'active' as state
from (select name, pg_notify({schema_lit} || '.river_control',
                             json_build_object('action', 'resume', 'queue', name)::text) as told from updated) n
where told is not null

-- name: purge
-- params: queue states raw_states before limit
-- official: JobDeleteBefore
-- guard: only final jobs
-- confirm: The jobs are gone for good.
delete from {schema}.river_job where id = any(array(
    select id from {schema}.river_job
    where state::text = any(coalesce($3::text[], '{completed,cancelled}'))
      and finalized_at is not null and finalized_at < coalesce($4::timestamptz, now())
      and ($1::text is null or queue = $1::text)
      and ($2::text[] is null or $2::text[] && '{completed,cancelled,failed}')
    limit coalesce($5::int, 1000) for update skip locked))
returning id::text, 'deleted' as state

-- name: purge_preview
-- params: queue states raw_states before
select 'deleted' as state, count(*) as n, null::text as why from {schema}.river_job
where state::text = any(coalesce($3::text[], '{completed,cancelled}'))
  and finalized_at is not null and finalized_at < coalesce($4::timestamptz, now())
  and ($1::text is null or queue = $1::text)
  and ($2::text[] is null or $2::text[] && '{completed,cancelled,failed}')
having count(*) > 0
