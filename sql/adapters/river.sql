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
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='river_job'; column='unique_states'
-- part: has_table table='river_queue'
-- part: has_column table='river_migration'; column='line'
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
-- part: table_size table='%I.river_job'
-- part: counts_of_ended table=river_job

-- name: jobs
-- params: queue states kind node error words not_words ids older_than younger_than min_tries top_tries in_payload path
--   n limit cursor raw_states
-- order: ready: next to start first; running: first due first; retry: next due first; scheduled: next due first;
--   blocked: next due first; queue: running, next to start, last due; failed: last failed first;
--   completed: last finished first; cancelled: last finished first; *: running, next to start, failed
-- Without states: jobs that are not completed or cancelled. The order: running, ready, retry, scheduled, blocked (the
-- next first), then failed and the other final ones (newest first). runs are the existing combinations of state, queue
-- and priority, found by skipping through the index, so that only rows that are shown are read. If terms must be
-- checked row by row, at most n rows are read, and a row without an id gives the cursor to continue from.
with recursive params as not materialized (
-- part: search
-- part: rank_of_cursor
           substring($17::text from '^[^/]*/[^/]*/[^/]*/(.*)$')::timestamptz as c_at
), wanted as (
    select w.state::{schema}.river_job_state as state, w.rank
    from (values ('running', 1), ('available', 2), ('retryable', 3), ('scheduled', 4), ('pending', 5),
               ('discarded', 6), ('completed', 7), ('cancelled', 7)) w (state, rank), params p
    where p.ids is null and case when $18::text[] is not null then w.state = any($18::text[])
                                 else w.rank < case when p.node is null then 7 else 2 end end
      and (p.c_rank is null or w.rank >= p.c_rank)
), runs (rank, state, queue, priority) as (
    select w.rank, w.state, j.queue, j.priority from wanted w, params p cross join lateral (
        select j.queue, j.priority from {schema}.river_job j
        where j.state = w.state and (p.queue is null or j.queue = p.queue)
        order by j.queue, j.priority limit 1) j
    where w.rank < 6 or p.queue is not null
-- part: next_jobs table=river_job
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
-- part: found_jobs
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
      and (p.error_key is null or coalesce({error_key(e.error)}, case when e.norm = 'failed' then '' end) = p.error_key)
-- part: text_terms error=e.error; created=j.created_at; tries=j.attempt; text=j.id, j.queue, j.kind, e.error
-- part: payload_term json=j.args
    order by f.place limit (select top from params)
)
-- part: job_columns_z
from (
-- part columns:
    select j.id::text, j.queue, j.kind,
           case j.state when 'available' then 'ready' when 'retryable' then 'retry' when 'discarded' then 'failed'
                        when 'pending' then 'blocked' else j.state::text end as state,
           j.priority::int, greatest(j.attempt - (j.state = 'running')::int, 0) as tries,
           j.max_attempts::int as max_tries, {ms(j.created_at)} as created_ms, {ms(j.scheduled_at)} as run_after_ms,
           {ms(coalesce(j.finalized_at, j.attempted_at, j.created_at))} as changed_ms,
           {ms(j.attempted_at)} as started_ms, {ms(j.finalized_at)} as finished_ms,
-- end part
           case when j.state in ('running', 'completed', 'cancelled')
                    then j.attempted_by[array_upper(j.attempted_by, 1)] end as node,
           null::bigint as lease_until_ms, left(j.error, 300) as error, j.cursor,
           j.state = 'running' and j.attempted_at < now() - interval '1 h' as stale, j.place, 0 as mark
    from fits j
-- part: end_of_search cursor=f.rank || '/' || f.o1 || '/' || f.id || '/' || f.at

-- name: job (ids)
-- part: columns
       j.attempted_by[array_upper(j.attempted_by, 1)] as node, null::bigint as lease_until_ms,
       j.errors[array_upper(j.errors, 1)] ->> 'error' as error, null::text as cursor,
       j.state = 'running' and j.attempted_at < now() - interval '1 h' as stale,
       encode(j.unique_key, 'hex') as unique_key, left(j.args::text, 1000000) as payload, 'json' as payload_format,
       'application/json' as payload_type, octet_length(j.args::text)::bigint as payload_size,
       left(j.metadata ->> 'output', 65536) as result,
       j.metadata ? 'cancel_attempted_at' and j.state = 'running' as cancel_asked, j.state::text as raw_state
from {schema}.river_job j where j.id = ({bigints($1)})[1]

-- name: attempts (ids)
select coalesce(case when e ->> 'attempt' ~ '^[0-9]{1,9}$' then (e ->> 'attempt')::int end, o::int) as number,
       j.attempted_by[case when e ->> 'attempt' ~ '^[0-9]{1,4}$' then (e ->> 'attempt')::int end] as node,
       null::bigint as started_ms,
       {ms(case when e ->> 'at' ~ '^\d{4}-(0[1-9]|1[0-2])-([012]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|'
                                  '[+-]\d\d:\d\d)$'
                                then (e ->> 'at')::timestamptz end)} as ended_ms,
       'failed' as outcome, e ->> 'error' as error, left(e ->> 'trace', 65536) as trace
from {schema}.river_job j, unnest(j.errors) with ordinality u (e, o) where j.id = ({bigints($1)})[1]
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

-- name: leases (node queue limit)
-- a running job is a lease of its own; it ends when River's rescuer would take the job
select id as lease, coalesce(attempted_by[array_upper(attempted_by, 1)], '') as node, queue, 1::bigint as jobs,
       {ms(attempted_at)} as started_ms, {ms(attempted_at)} + 3600000 as lease_until_ms, id::text as job_ids,
       greatest(attempt - 1, 0) as tries, max_attempts::int as max_tries,
       case when metadata ? 'cancel_attempted_at' then '→ cancelled' when attempt < max_attempts then '→ retry'
            else '→ failed (last try)' end as effect
from {schema}.river_job
where state = 'running' and ($1::text is null or attempted_by[array_upper(attempted_by, 1)] = $1::text)
  and ($2::text is null or queue = $2::text)
order by attempted_at, id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
-- part failed_jobs:
    select id::text, queue, kind, attempted_by[array_upper(attempted_by, 1)] as node, finalized_at as at,
           left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.river_job where state = 'discarded' and finalized_at is not null order by finalized_at desc
-- end part
    limit 5000
)
-- part: groups newest=at

-- part: failures utc=f.at at time zone 'UTC'; now=now()

-- name: requeue (ids)
-- official: JobRetry
-- guard: only jobs that do not run and are not ready and due
-- one more try if all were used; finalized_at must change with the state (a CHECK)
update {schema}.river_job set state = 'available', scheduled_at = now(), finalized_at = null,
       max_attempts = case when attempt >= max_attempts then attempt + 1 else max_attempts end
where id = any({bigints($1)})
  and state <> 'running' and not (state = 'available' and scheduled_at <= now()) and attempt < 32767
returning id::text, 'ready' as state

-- name: rescue (ids)
-- official: what the leader's rescuer does with a job that runs for an hour
-- guard: only a running job
-- confirm: If its worker still lives, the job runs twice.
update {schema}.river_job
-- part taken_back:
set state = case when metadata ? 'cancel_attempted_at' then 'cancelled' when attempt < max_attempts then 'retryable'
                 else 'discarded' end::{schema}.river_job_state,
    finalized_at = case when metadata ? 'cancel_attempted_at' or attempt >= max_attempts then now() end,
    scheduled_at = case when attempt < max_attempts then now() else scheduled_at end,
    errors = array_append(errors, jsonb_build_object('at', now(), 'attempt', attempt, 'error',
                                                     'taken back by an operator: the worker seemed gone', 'trace', '')),
    metadata = metadata || jsonb_build_object('river:rescue_count',
        case when metadata ->> 'river:rescue_count' ~ '^[0-9]{1,8}$' then (metadata ->> 'river:rescue_count')::int
             else 0 end + 1)
-- end part
where id = any({bigints($1)}) and state = 'running' and coalesce(array_ndims(errors), 1) = 1
returning id::text, case state when 'retryable' then 'retry' when 'discarded' then 'failed'
                         else state::text end as state

-- name: release_where (node expired_only)
-- official: no (the rescuer goes by age alone: an hour)
-- guard: only running jobs of this node
-- confirm: If the node still lives, its jobs run twice.
update {schema}.river_job
-- part: taken_back
where state = 'running' and attempted_by[array_upper(attempted_by, 1)] = $1::text
  and coalesce(array_ndims(errors), 1) = 1
  and (not coalesce($2::boolean, true) or attempted_at < now() - interval '1 h')
returning id::text, case state when 'retryable' then 'retry' when 'discarded' then 'failed'
                         else state::text end as state

-- name: cancel (ids)
-- official: JobCancel
-- guard: only jobs that have not ended
-- mode: signal
-- a running job stays running: its client receives the request on the control channel and ends the job
with chosen as materialized (
    select id, queue, state from {schema}.river_job where id = any({bigints($1)})
      and state not in ('cancelled', 'completed', 'discarded') and jsonb_typeof(metadata) = 'object'
    order by id for update
), updated as (
    update {schema}.river_job r
    set state = case when r.state = 'running' then 'running' else 'cancelled' end::{schema}.river_job_state,
        finalized_at = case when r.state <> 'running' then now() end,
        metadata = jsonb_set(r.metadata, '{cancel_attempted_at}', to_jsonb(now()))
    from chosen j where r.id = j.id returning r.id, r.queue, r.state
)
select id::text, state::text, case when told is not null then 'its client is told' end as why
from (select u.*, pg_notify({schema_lit} || '.river_control',
                            json_build_object('action', 'cancel', 'job_id', id, 'queue', queue)::text) as told
      from updated u where state = 'running'
      union all
      select u.*, null from updated u where state <> 'running') n

-- name: delete (ids)
-- official: JobDelete
-- guard: only jobs that do not run
-- confirm: The jobs are gone for good.
delete from {schema}.river_job where id = any({bigints($1)}) and state <> 'running'
returning id::text, 'deleted' as state

-- name: priority (ids n)
-- official: no
-- guard: only jobs of another priority that wait
-- range: 1..4
update {schema}.river_job set priority = least(greatest($2::int, 1), 4)::smallint where id = any({bigints($1)})
  and state in ('available', 'pending', 'retryable', 'scheduled') and $2::int between 1 and 4 and priority <> $2::int
returning id::text, case state when 'available' then 'ready' when 'retryable' then 'retry'
                         when 'pending' then 'blocked' else state::text end as state

-- name: reschedule (ids at)
-- official: no
-- guard: only jobs with another time that wait
update {schema}.river_job set scheduled_at = $2::timestamptz,
       state = case when state = 'available' and $2::timestamptz > now() then 'scheduled' else state end
where id = any({bigints($1)}) and state in ('available', 'retryable', 'scheduled') and scheduled_at <> $2::timestamptz
-- a job that is due is made available by River's own scheduler, within seconds
returning id::text, case when scheduled_at <= now() then 'ready' when state = 'retryable' then 'retry'
                         else state::text end as state

-- name: pause (queue)
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

-- name: resume (queue)
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

-- name: purge (queue states raw_states before limit)
-- official: JobDeleteBefore
-- guard: only final jobs
-- confirm: The jobs are gone for good.
delete from {schema}.river_job where id = any(array(
    select id from {schema}.river_job
-- part purged:
    where state::text = any(coalesce($3::text[], '{completed,cancelled}'))
      and finalized_at is not null and finalized_at < coalesce($4::timestamptz, now())
      and ($1::text is null or queue = $1::text)
      and ($2::text[] is null or $2::text[] && '{completed,cancelled,failed}')
-- end part
    limit coalesce($5::int, 1000) for update skip locked))
returning id::text, 'deleted' as state

-- name: purge_preview (queue states raw_states before)
select 'deleted' as state, count(*) as n, null::text as why from {schema}.river_job
-- part: purged
having count(*) > 0
