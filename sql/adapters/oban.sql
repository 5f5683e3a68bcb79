-- adapter: oban
-- title: Oban (Elixir)
-- format: 2
-- schema: public
-- id-type: bigint
-- tested-versions: 12-14
-- min-version: 12
-- states: scheduled=scheduled ready=available retry=retryable running=executing failed=discarded blocked=suspended
--   completed=completed cancelled=cancelled
-- tables: oban_jobs oban_peers
-- note: The database does not record whether a queue is paused: a pause is a signal to the nodes that run now. Nodes
--   that start later are not paused.
-- note: Signals reach nodes that use Oban's Postgres notifier; with another notifier (PG, Redis) no node gets them.
-- note: A job that is taken back is not fenced: if its old worker is alive, it still completes the job by its id.
-- note: Oban Pro (table oban_producers) records running jobs in its own way: jobs can't be taken back there. Cron lines
--   are only in the programs.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='oban_jobs'; column='attempted_by'
  and exists (select from pg_type t where t.typnamespace = n.oid and t.typname = 'oban_job_state')
order by 1

-- name: version
select obj_description(format('%I.oban_jobs', {schema_lit})::regclass, 'pg_class') as version

-- name: queues
-- queues that have jobs, found by skipping through the index
with recursive queue_names as (
    select (select min(queue) from {schema}.oban_jobs where state = s.state) as queue, s.state
    from unnest(enum_range(null::{schema}.oban_job_state)) s (state)
    union all
    select (select min(j.queue) from {schema}.oban_jobs j where j.state = q.state and j.queue > q.queue), q.state
    from queue_names q where q.queue is not null
)
select distinct queue, null::boolean as paused, null::text as info, true as keeps
from queue_names q where queue is not null order by 1

-- name: counts
-- live jobs and failed ones, by the index of (state, queue, ...); in every version the states up to retryable are the
-- live ones
select queue, coalesce(sum(n) filter (where state = 'scheduled'), 0)::bigint as scheduled,
       coalesce(sum(n) filter (where state = 'available'), 0)::bigint as ready,
       coalesce(sum(n) filter (where state = 'retryable'), 0)::bigint as retry,
       coalesce(sum(n) filter (where state = 'executing'), 0)::bigint as running,
       coalesce(sum(n) filter (where state = 'discarded'), 0)::bigint as failed,
       coalesce(sum(n) filter (where state = 'suspended'), 0)::bigint as blocked,
       {ms(min(oldest) filter (where state = 'available'))} as oldest_ms
from (select queue, state::text as state, count(*) as n, min(scheduled_at) as oldest from {schema}.oban_jobs
      where state <= 'retryable' group by 1, 2
      union all
      select queue, 'discarded', count(*), null from {schema}.oban_jobs where state = 'discarded' group by 1) s
group by 1

-- name: counts_final
-- cost: reads the index entries of all finished jobs; of more than five million jobs a sample
-- part: table_size table='%I.oban_jobs'
-- part: counts_of_ended table=oban_jobs

-- name: jobs
-- params: queue states kind node error words not_words ids older_than younger_than min_tries top_tries in_payload path
--   n limit cursor raw_states
-- order: ready: next to start first; running: first due first; retry: next due first; scheduled: next due first;
--   blocked: next due first; failed: last due first; completed: last due first; cancelled: last due first;
--   *: running, next to start, failed
-- Without states: jobs that are not completed or cancelled. The order: running, ready, retry, scheduled, blocked (the
-- next first), then failed and the other final ones (the latest scheduled first: every version has that index). runs
-- are the existing combinations of state, queue and priority, found by skipping through the index, so that only rows
-- that are shown are read. If terms must be checked row by row, at most n rows are read, and a row without an id gives
-- the cursor to continue from.
with recursive params as not materialized (
-- part: search
-- part: rank_of_cursor
           substring($17::text from '^[^/]*/[^/]*/[^/]*/(.*)$')::timestamp as c_at
), wanted as (
    select s.state, w.rank
    from (values ('executing', 1), ('available', 2), ('retryable', 3), ('scheduled', 4), ('suspended', 5),
               ('discarded', 6), ('completed', 7), ('cancelled', 7)) w (word, rank)
    join unnest(enum_range(null::{schema}.oban_job_state)) s (state) on s.state::text = w.word, params p
    where p.ids is null and case when $18::text[] is not null then w.word = any($18::text[])
                                 else w.rank < case when p.node is null then 7 else 2 end end
      and (p.c_rank is null or w.rank >= p.c_rank)
), runs (rank, state, queue, priority) as (
    select w.rank, w.state, j.queue, j.priority from wanted w, params p cross join lateral (
        select j.queue, j.priority from {schema}.oban_jobs j
        where j.state = w.state and (p.queue is null or j.queue = p.queue)
        order by j.queue, j.priority limit 1) j
-- part: next_jobs table=oban_jobs
), done as (
    select r.rank, 0 as o1, j.at, j.id, row_number() over (order by r.rank, j.at desc, j.id desc) as o
    from (select * from runs where rank >= 6) r, params p cross join lateral (
        select j.scheduled_at as at, j.id from {schema}.oban_jobs j
        where j.state = r.state and j.queue = r.queue and j.priority = r.priority
          and (j.scheduled_at, j.id) < (case when r.rank = p.c_rank then p.c_at else 'infinity' end,
                                        case when r.rank = p.c_rank then p.c_id else 9223372036854775807 end)
        order by j.scheduled_at desc, j.id desc limit p.most) j
    order by o limit (select most from params)
-- part: found_jobs
    select f.place, f.rank || '/' || f.o1 || '/' || f.id || '/' || f.at as cursor, j.*, e.error, e.norm
    from params p, found f cross join lateral (select * from {schema}.oban_jobs j where j.id = f.id limit 1) j
    cross join lateral (select j.errors[array_upper(j.errors, 1)] ->> 'error' as error,
                               case j.state::text when 'available' then 'ready' when 'retryable' then 'retry'
                                    when 'discarded' then 'failed'
                                    when 'executing' then 'running' when 'suspended' then 'blocked'
                                    else j.state::text end as norm) e
    where (p.queue is null or j.queue = p.queue)
      and (p.states is null or e.norm = any(p.states))
      and (p.kind is null or j.worker = p.kind)
      and (p.node is null or j.attempted_by[1] = p.node)
      and (p.error_key is null or coalesce({error_key(e.error)}, case when e.norm = 'failed' then '' end) = p.error_key)
-- part: text_terms error=e.error; created=timezone('UTC', j.inserted_at); tries=j.attempt; text=j.id, j.queue,
--   j.worker, e.error
-- part: payload_term json=j.args
    order by f.place limit (select top from params)
)
-- part: job_columns_z
from (
    select f.id::text, f.queue, f.worker as kind, f.norm as state, f.priority,
           greatest(f.attempt - (f.norm = 'running')::int, 0) as tries, f.max_attempts as max_tries,
           {ms(f.inserted_at)} as created_ms, {ms(f.scheduled_at)} as run_after_ms,
           {ms(coalesce(f.completed_at, f.discarded_at, f.cancelled_at, f.attempted_at, f.inserted_at))} as changed_ms,
           {ms(f.attempted_at)} as started_ms,
           {ms(coalesce(f.completed_at, f.discarded_at, f.cancelled_at))} as finished_ms,
           case when f.norm in ('running', 'completed', 'cancelled') then f.attempted_by[1] end as node,
           null::bigint as lease_until_ms, left(f.error, 300) as error, f.cursor,
           f.norm = 'running' and f.attempted_at < timezone('UTC', now()) - interval '1 h' as stale, f.place, 0 as mark
    from fits f
-- part: end_of_search cursor=f.rank || '/' || f.o1 || '/' || f.id || '/' || f.at

-- name: job (ids)
select j.id::text, j.queue, j.worker as kind,
       case j.state::text when 'available' then 'ready' when 'retryable' then 'retry' when 'discarded' then 'failed'
            when 'executing' then 'running' when 'suspended' then 'blocked' else j.state::text end as state,
       j.priority, greatest(j.attempt - (j.state = 'executing')::int, 0) as tries, j.max_attempts as max_tries,
       {ms(j.inserted_at)} as created_ms, {ms(j.scheduled_at)} as run_after_ms,
       {ms(coalesce(j.completed_at, j.discarded_at, j.cancelled_at, j.attempted_at, j.inserted_at))} as changed_ms,
       {ms(j.attempted_at)} as started_ms,
       {ms(coalesce(j.completed_at, j.discarded_at, j.cancelled_at))} as finished_ms,
       j.attempted_by[1] as node, null::bigint as lease_until_ms,
       j.errors[array_upper(j.errors, 1)] ->> 'error' as error, null::text as cursor,
       j.state = 'executing' and j.attempted_at < timezone('UTC', now()) - interval '1 h' as stale,
       left(j.args::text, 1000000) as payload, 'json' as payload_format, 'application/json' as payload_type,
       octet_length(j.args::text)::bigint as payload_size, j.state::text as raw_state
from {schema}.oban_jobs j where j.id = ({bigints($1)})[1]

-- name: attempts (ids)
-- the text of an error includes its trace
select coalesce(case when e ->> 'attempt' ~ '^[0-9]{1,9}$' then (e ->> 'attempt')::int end, o::int) as number,
       null::text as node, null::bigint as started_ms,
       {ms(case when e ->> 'at' ~ '^\d{4}-(0[1-9]|1[0-2])-([012]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|'
                                  '[+-]\d\d:\d\d)$'
                                then (e ->> 'at')::timestamptz end)} as ended_ms,
       'failed' as outcome, split_part(e ->> 'error', e'\n', 1) as error,
       case when strpos(e ->> 'error', e'\n') > 0 then left(substr(e ->> 'error', strpos(e ->> 'error', e'\n') + 1),
                                                            65536) end as trace
from {schema}.oban_jobs j, unnest(j.errors) with ordinality u (e, o) where j.id = ({bigints($1)})[1]
order by o desc limit 200

-- name: nodes
-- nodes that run jobs, and the node that leads; no other node shows that it is alive
with running_rows as materialized (
    select coalesce(attempted_by[1], '') as node, count(*) as running, count(distinct attempted_by[2]) as leases,
           count(*) filter (where attempted_at < timezone('UTC', now()) - interval '1 h') as expired,
           string_agg(distinct queue, ',' order by queue) as queues
    from {schema}.oban_jobs where state = 'executing' group by 1
)
select coalesce(r.node, l.node) as node, case when l.expires_at > timezone('UTC', now()) then 'up'
                                              else 'unknown' end as state,
       null::text as host, null::int as pid, {ms(l.started_at)} as started_ms, null::bigint as heartbeat_ms,
       coalesce(r.running, 0)::bigint as running, coalesce(r.leases, 0)::bigint as leases,
       coalesce(r.expired, 0)::bigint as expired, coalesce(r.queues, '') as queues, null::boolean as session_alive
from running_rows r
full join (select distinct on (node) * from {schema}.oban_peers order by node, expires_at desc) l on l.node = r.node
order by 1

-- name: leases (node queue limit)
-- a running job is a lease of its own; if Oban's Lifeline runs, it takes the job back after an hour
select id as lease, coalesce(attempted_by[1], '') as node, queue, 1::bigint as jobs, {ms(attempted_at)} as started_ms,
       {ms(attempted_at)} + 3600000 as lease_until_ms, id::text as job_ids, greatest(attempt - 1, 0) as tries,
       max_attempts as max_tries, case when attempt < max_attempts then '→ ready'
                                       else '→ failed (last try)' end as effect
from {schema}.oban_jobs
where state = 'executing' and ($1::text is null or attempted_by[1] = $1::text)
  and ($2::text is null or queue = $2::text)
order by attempted_at, id limit coalesce($3::int, 200)

-- name: groups (queue limit)
with failed_jobs as materialized (
-- part failed_jobs:
    select id::text, queue, worker as kind, attempted_by[1] as node, discarded_at as at,
           left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.oban_jobs where state = 'discarded' order by discarded_at desc
-- end part
    limit 5000
)
-- part: groups newest=at

-- part: failures utc=f.at; now=timezone('UTC', now())

-- name: requeue (ids)
-- official: Oban.retry_job
-- guard: only jobs that are neither ready nor running
-- one more try if all were used (a CHECK requires attempt to be lower); nodes are notified as by an insert
with updated as (
    update {schema}.oban_jobs set state = 'available', max_attempts = greatest(max_attempts, attempt + 1),
                                  scheduled_at = timezone('UTC', now()),
           completed_at = null, cancelled_at = null, discarded_at = null
    where id = any({bigints($1)}) and state not in ('available', 'executing') and attempt < 2147483647
    returning id, queue
), told as materialized (
    select count(pg_notify({schema_lit} || '.oban_insert', json_build_object('queue', queue)::text)) as n
    from (select distinct queue from updated) q
)
select u.id::text, 'ready' as state from updated u, told where told.n > 0

-- name: rescue (ids)
-- official: what Oban's Lifeline does with a job that runs for an hour
-- guard: only a running job, and not beside Oban Pro (table oban_producers)
-- confirm: If its worker still lives, the job runs twice and either one completes it.
update {schema}.oban_jobs
set state = case when attempt < max_attempts then 'available' else 'discarded' end::{schema}.oban_job_state,
    discarded_at = case when attempt < max_attempts then discarded_at else timezone('UTC', now()) end
where id = any({bigints($1)}) and state = 'executing' and to_regclass(format('%I.oban_producers', {schema_lit})) is null
returning id::text, case state when 'available' then 'ready' else 'failed' end as state

-- name: release_where (node expired_only)
-- official: no (Lifeline goes by age alone)
-- guard: only running jobs of this node, and not beside Oban Pro (table oban_producers)
-- confirm: If the node still lives, its jobs run twice and either run completes them.
update {schema}.oban_jobs
set state = case when attempt < max_attempts then 'available' else 'discarded' end::{schema}.oban_job_state,
    discarded_at = case when attempt < max_attempts then discarded_at else timezone('UTC', now()) end
where state = 'executing' and attempted_by[1] = $1::text
  and (not coalesce($2::boolean, true) or attempted_at < timezone('UTC', now()) - interval '1 h')
  and to_regclass(format('%I.oban_producers', {schema_lit})) is null
returning id::text, case state when 'available' then 'ready' else 'failed' end as state

-- name: cancel (ids)
-- official: Oban.cancel_job
-- guard: only jobs that have not ended
-- a running job is cancelled at once, and its node is asked to end it
with chosen as materialized (
    select id, state from {schema}.oban_jobs
    where id = any({bigints($1)}) and state not in ('completed', 'discarded', 'cancelled') order by id for update
), updated as (
    update {schema}.oban_jobs o set state = 'cancelled', cancelled_at = timezone('UTC', now()) from chosen j
    where o.id = j.id returning o.id, j.state = 'executing' as ran
)
select id::text, 'cancelled' as state, case when told is not null then 'its node is told to end it' end as why
from (select u.id, pg_notify({schema_lit} || '.oban_signal',
                             json_build_object('action', 'pkill', 'job_id', id)::text) as told from updated u where ran
      union all
      select u.id, null from updated u where not ran) n

-- name: delete (ids)
-- official: Oban.delete_job
-- guard: only jobs that do not run
-- confirm: The jobs are gone for good.
delete from {schema}.oban_jobs where id = any({bigints($1)}) and state <> 'executing'
returning id::text, 'deleted' as state

-- name: priority (ids n)
-- official: Oban.update_job
-- guard: only jobs of another priority that wait
-- range: 0..9
update {schema}.oban_jobs set priority = $2::int where id = any({bigints($1)})
  and state not in ('executing', 'completed', 'discarded', 'cancelled') and $2::int between 0 and 9
  and priority <> $2::int
returning id::text, case state::text when 'available' then 'ready' when 'retryable' then 'retry'
                         when 'suspended' then 'blocked' else state::text end as state

-- name: reschedule (ids at)
-- official: Oban.update_job
-- guard: only jobs with another time that wait
update {schema}.oban_jobs set scheduled_at = timezone('UTC', $2::timestamptz),
       state = case when state = 'available' and $2::timestamptz > now() then 'scheduled' else state end
where id = any({bigints($1)}) and state in ('available', 'scheduled', 'retryable')
  and scheduled_at is distinct from timezone('UTC', $2::timestamptz)
-- a job that is due is made available by Oban's own stager, within seconds
returning id::text, case when scheduled_at <= timezone('UTC', now()) then 'ready' when state = 'retryable' then 'retry'
                         else state::text end as state

-- name: pause (queue force)
-- official: Oban.pause_queue
-- guard: only a queue that has jobs, be they finished; --create pauses any other
-- mode: signal
-- nothing in the database changes: only the nodes that run now receive the signal
select $1::text as id, 'paused' as state, 'the nodes that listen now are told; nothing shows whether they heard' as why
from (select pg_notify({schema_lit} || '.oban_signal',
                       json_build_object('action', 'pause', 'queue', $1::text, 'ident', 'any')::text) as told
-- part known_queue:
      where $1::text is not null
        and (coalesce($2::boolean, false)
             or exists (select from {schema}.oban_jobs
                        where queue = $1::text and state = any(enum_range(null::{schema}.oban_job_state))))) n
-- end part
where told is not null

-- name: resume (queue force)
-- official: Oban.resume_queue
-- guard: only a queue that has jobs, be they finished; --create resumes any other
-- mode: signal
select $1::text as id, 'active' as state, 'the nodes that listen now are told; nothing shows whether they heard' as why
from (select pg_notify({schema_lit} || '.oban_signal',
                       json_build_object('action', 'resume', 'queue', $1::text, 'ident', 'any')::text) as told
-- part: known_queue
where told is not null

-- name: purge (queue states raw_states before limit)
-- official: the Pruner
-- guard: only final jobs
-- confirm: The jobs are gone for good.
delete from {schema}.oban_jobs where id = any(array(
    select id from {schema}.oban_jobs
-- part purged:
    where state::text = any(coalesce($3::text[], '{completed,cancelled}'))
      and coalesce(completed_at, discarded_at, cancelled_at)
        < coalesce(timezone('UTC', $4::timestamptz), timezone('UTC', now()))
      and state in ('completed', 'discarded', 'cancelled') and ($1::text is null or queue = $1::text)
      and ($2::text[] is null or $2::text[] && '{completed,cancelled,failed}')
-- end part
    limit coalesce($5::int, 1000) for update skip locked))
returning id::text, 'deleted' as state

-- name: purge_preview (queue states raw_states before)
select 'deleted' as state, count(*) as n, null::text as why from {schema}.oban_jobs
-- part: purged
having count(*) > 0
