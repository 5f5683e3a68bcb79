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
select n.nspname::text as schema
from pg_namespace n
where exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'oban_jobs' and c.relkind in ('r', 'p')
                and a.attname = 'attempted_by')
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
with size as materialized (
    select greatest(reltuples, 1)::float8 as n from pg_class where oid = format('%I.oban_jobs', {schema_lit})::regclass
)
select queue, coalesce(sum(n) filter (where state = 'completed'), 0)::bigint as completed,
       coalesce(sum(n) filter (where state = 'cancelled'), 0)::bigint as cancelled, bool_or(approx) as approx
from (select queue, state, count(*)::numeric as n, false as approx from {schema}.oban_jobs
      where state in ('completed', 'cancelled') and (select n <= 5e6 from size) group by 1, 2
      union all
      select queue, state, round(count(*) * (select n / 100000 from size)::numeric), true
      from {schema}.oban_jobs tablesample system ((select least(100, 1e7 / n) from size))
      where state in ('completed', 'cancelled') and (select n > 5e6 from size) group by 1, 2) s
group by 1

-- name: jobs
-- params: queue states raw_states kind node error words not_words ids older_than younger_than min_tries top_tries
--   in_payload path n limit cursor
-- order: ready: next to start first; running: first due first; retry: next due first; scheduled: next due first;
--   blocked: next due first; failed: last due first; completed: last due first; cancelled: last due first;
--   *: running, next to start, failed
-- Without states: jobs that are not completed or cancelled. The order: running, ready, retry, scheduled, blocked (the
-- next first), then failed and the other final ones (the latest scheduled first: every version has that index). runs
-- are the existing combinations of state, queue and priority, found by skipping through the index, so that only rows
-- that are shown are read. If terms must be checked row by row, at most n rows are read, and a row without an id gives
-- the cursor to continue from.
with recursive params as not materialized (
    select $1::text as queue, $2::text[] as states, $3::text[] as raw, $4::text as kind, $5::text as node,
           case when $6::text like '~%' then lower(substr($6::text, 2)) end as part,
           case when $6::text not like '~%' then {error_key($6::text)} end as error_key,
           $7::text[] as words, $8::text[] as not_words, $9::text[] as ids,
           timezone('UTC', now()) - $10::interval as older, timezone('UTC', now()) - $11::interval as younger,
           $12::int as min_tries, $13::int as top_tries, left($14::text, 1) as how, substr($14::text, 2) as inside,
           $15::text[] as path, coalesce($16::int, 10000) as n, coalesce($17::int, 100) as top,
           num_nonnulls($4::text, $5::text, $6::text, $7::text[], $8::text[], $10::interval, $11::interval, $12::int,
                        $13::int, $14::text) = 0 as plain,
           case when num_nonnulls($4::text, $5::text, $6::text, $7::text[], $8::text[], $10::interval, $11::interval,
                                  $12::int, $13::int, $14::text) = 0
                then coalesce($17::int, 100) else coalesce($16::int, 10000) end as most,
           nullif(split_part($18::text, '/', 1), '')::int as c_rank,
           nullif(split_part($18::text, '/', 2), '')::int as c_priority,
           nullif(split_part($18::text, '/', 3), '')::bigint as c_id,
           substring($18::text from '^[^/]*/[^/]*/[^/]*/(.*)$')::timestamp as c_at
), wanted as (
    select s.state, w.rank
    from (values ('executing', 1), ('available', 2), ('retryable', 3), ('scheduled', 4), ('suspended', 5),
               ('discarded', 6), ('completed', 7), ('cancelled', 7)) w (word, rank)
    join unnest(enum_range(null::{schema}.oban_job_state)) s (state) on s.state::text = w.word, params p
    where p.ids is null and case when p.raw is not null then w.word = any(p.raw)
                                 else w.rank < case when p.node is null then 7 else 2 end end
      and (p.c_rank is null or w.rank >= p.c_rank)
), runs (rank, state, queue, priority) as (
    select w.rank, w.state, j.queue, j.priority from wanted w, params p cross join lateral (
        select j.queue, j.priority from {schema}.oban_jobs j
        where j.state = w.state and (p.queue is null or j.queue = p.queue)
        order by j.queue, j.priority limit 1) j
    union all
    select r.rank, r.state, j.queue, j.priority from runs r, params p cross join lateral (
        select j.queue, j.priority from {schema}.oban_jobs j
        where j.state = r.state and (p.queue is not null or (j.queue, j.priority) > (r.queue, r.priority))
          and (p.queue is null or (j.queue = p.queue and j.priority > r.priority))
        order by j.queue, j.priority limit 1) j
), live as (
    select r.rank, r.o1, j.scheduled_at as at, j.id,
           row_number() over (order by r.rank, r.o1, j.scheduled_at, j.id) as o
    from (select *, case when rank = 2 then priority else 0 end as o1 from runs where rank < 6) r, params p
    cross join lateral (
        select j.scheduled_at, j.id from {schema}.oban_jobs j
        where j.state = r.state and j.queue = r.queue and j.priority = r.priority
          and (j.scheduled_at,
               j.id) > (case when r.rank = p.c_rank and r.o1 = p.c_priority then p.c_at else '-infinity' end,
                                        case when r.rank = p.c_rank and r.o1 = p.c_priority then p.c_id else -1 end)
        order by j.scheduled_at, j.id limit p.most) j
    where p.c_rank is null or r.rank > p.c_rank or r.o1 >= p.c_priority
    order by o limit (select most from params)
), done as (
    select r.rank, 0 as o1, j.at, j.id, row_number() over (order by r.rank, j.at desc, j.id desc) as o
    from (select * from runs where rank >= 6) r, params p cross join lateral (
        select j.scheduled_at as at, j.id from {schema}.oban_jobs j
        where j.state = r.state and j.queue = r.queue and j.priority = r.priority
          and (j.scheduled_at, j.id) < (case when r.rank = p.c_rank then p.c_at else 'infinity' end,
                                        case when r.rank = p.c_rank then p.c_id else 9223372036854775807 end)
        order by j.scheduled_at desc, j.id desc limit p.most) j
    order by o limit (select most from params)
), found as materialized (
    select *, row_number() over (order by rank, o) as place from (
        select * from live union all select * from done
        union all
        select 9, 0, null, i::bigint, row_number() over (order by i::bigint desc) from params p, unnest(p.ids) i
        where i ~ '^[0-9]{1,18}$') f
    order by rank, o limit (select most from params)
), fits as (
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
      and (p.error_key is null
           or coalesce({error_key(e.error)}, case when e.norm = 'failed' then '' end) = p.error_key)
      and (p.part is null or strpos(lower(e.error), p.part) > 0)
      and (p.older is null or j.inserted_at < p.older)
      and (p.younger is null or j.inserted_at > p.younger)
      and (p.min_tries is null or j.attempt >= p.min_tries)
      and (p.top_tries is null or j.attempt <= p.top_tries)
      and (p.words is null or not exists (select from unnest(p.words) w
               where strpos(lower(concat_ws(' ', j.id, j.queue, j.worker, e.error)), lower(w)) = 0))
      and (p.not_words is null or not exists (select from unnest(p.not_words) w
               where strpos(lower(concat_ws(' ', j.id, j.queue, j.worker, e.error)), lower(w)) > 0))
      and (p.inside is null
           or case when p.path is null then strpos(lower(left(j.args::text, 1000000)), lower(p.inside)) > 0
                                    when p.how = '=' then j.args #>> p.path = p.inside
                                    else strpos(lower(j.args #>> p.path), lower(p.inside)) > 0 end)
    order by f.place limit (select top from params)
)
select z.id, z.queue, z.kind, z.state, z.priority, z.tries, z.max_tries, z.created_ms, z.run_after_ms, z.changed_ms,
       z.started_ms, z.finished_ms, z.node, z.lease_until_ms, z.error, z.cursor, z.stale
from (
    select f.id::text, f.queue, f.worker as kind, f.norm as state, f.priority,
           greatest(f.attempt - (f.norm = 'running')::int, 0) as tries, f.max_attempts as max_tries,
           {ms(f.inserted_at)} as created_ms,
           {ms(f.scheduled_at)} as run_after_ms,
           {ms(coalesce(f.completed_at, f.discarded_at, f.cancelled_at, f.attempted_at, f.inserted_at))} as changed_ms,
           {ms(f.attempted_at)} as started_ms,
           {ms(coalesce(f.completed_at, f.discarded_at, f.cancelled_at))} as finished_ms,
           case when f.norm in ('running', 'completed', 'cancelled') then f.attempted_by[1] end as node,
           null::bigint as lease_until_ms, left(f.error, 300) as error, f.cursor,
           f.norm = 'running' and f.attempted_at < timezone('UTC', now()) - interval '1 h' as stale, f.place, 0 as mark
    from fits f
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, '',
           f.rank || '/' || f.o1 || '/' || f.id || '/' || f.at, null, f.place, 1
    from params p, found f where f.place = p.n and not p.plain and p.ids is null and (select count(*) from fits) < p.top
) z order by z.place, z.mark

-- name: job
-- params: ids
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
from {schema}.oban_jobs j
where j.id = ({bigints($1)})[1]

-- name: attempts
-- params: ids
-- the text of an error includes its trace
select coalesce(case when e ->> 'attempt' ~ '^[0-9]{1,9}$' then (e ->> 'attempt')::int end, o::int) as number,
       null::text as node, null::bigint as started_ms,
       {ms(case when e ->> 'at' ~ '^\d{4}-(0[1-9]|1[0-2])-([012]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|'
                                  '[+-]\d\d:\d\d)$'
                                then (e ->> 'at')::timestamptz end)} as ended_ms,
       'failed' as outcome, split_part(e ->> 'error', e'\n', 1) as error,
       case when strpos(e ->> 'error', e'\n') > 0 then left(substr(e ->> 'error', strpos(e ->> 'error', e'\n') + 1),
                                                            65536) end as trace
from {schema}.oban_jobs j, unnest(j.errors) with ordinality u (e, o)
where j.id = ({bigints($1)})[1]
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
from running_rows r full join (select distinct on (node) * from {schema}.oban_peers
                               order by node, expires_at desc) l on l.node
           = r.node
order by 1

-- name: leases
-- params: node queue limit
-- a running job is a lease of its own; if Oban's Lifeline runs, it takes the job back after an hour
select id as lease, coalesce(attempted_by[1], '') as node, queue, 1::bigint as jobs, {ms(attempted_at)} as started_ms,
       {ms(attempted_at)} + 3600000 as lease_until_ms, id::text as job_ids, greatest(attempt - 1, 0) as tries,
       max_attempts as max_tries, case when attempt < max_attempts then '→ ready'
                                       else '→ failed (last try)' end as effect
from {schema}.oban_jobs
where state = 'executing' and ($1::text is null or attempted_by[1] = $1::text)
  and ($2::text is null or queue = $2::text)
order by attempted_at, id limit coalesce($3::int, 200)

-- name: groups
-- params: queue limit
with failed_jobs as materialized (
    select id, queue, discarded_at, left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.oban_jobs where state = 'discarded' order by discarded_at desc limit 5000
), keyed as (
    select f.*, coalesce({error_key(f.error)}, '') as error_key from failed_jobs f
    where $1::text is null or f.queue = $1::text
)
select error_key, queue, count(*) as n, (select count(*) from failed_jobs) >= 5000 as capped,
       {ms(min(discarded_at))} as first_ms, {ms(max(discarded_at))} as last_ms,
       (array_agg(error order by discarded_at desc))[1] as sample,
       (array_agg(id::text order by discarded_at desc))[1] as sample_id
from keyed k group by 1, 2 order by 3 desc, 2, 1 limit coalesce($2::int, 200)

-- name: groups_by
-- params: settings queue limit n
-- settings = what to group by: kind, node or hour; of the newest n failed jobs of all queues
with failed_jobs as materialized (
    select id::text, queue, worker as kind, attempted_by[1] as node, discarded_at as at,
           left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.oban_jobs where state = 'discarded' order by discarded_at desc limit coalesce($4::int, 5000)
), grouped as (
    select f.*, coalesce({error_key(f.error)}, '') as error_key,
           case $1::text when 'kind' then f.kind when 'node' then f.node
                when 'hour' then to_char(f.at, 'YYYY-MM-DD HH24:00 "UTC"') end as by
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
    select id::text, queue, worker as kind, attempted_by[1] as node, discarded_at as at,
           left(errors[array_upper(errors, 1)] ->> 'error', 1000) as error
    from {schema}.oban_jobs where state = 'discarded' order by discarded_at desc limit coalesce($2::int, 5000)
)
select queue, coalesce({error_key(f.error)}, '') as error_key,
       (floor(extract(epoch from least(at, '9999-12-31')) / 1800) * 1800000)::bigint as at_ms, count(*) as n,
       count(*) filter (where at > timezone('UTC', now()) - interval '1 h') as hour,
       case when (select count(*) from failed_jobs) >= coalesce($2::int, 5000)
            then (select {ms(min(at))} from failed_jobs) end as since_ms
from failed_jobs f where ($1::text is null or queue = $1::text) and at > timezone('UTC', now()) - interval '24 h'
group by 1, 2, 3

-- name: requeue
-- params: ids
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

-- name: rescue
-- params: ids
-- official: what Oban's Lifeline does with a job that runs for an hour
-- guard: only a running job, and not beside Oban Pro (table oban_producers)
-- confirm: If its worker still lives, the job runs twice and either one completes it.
update {schema}.oban_jobs
set state = case when attempt < max_attempts then 'available' else 'discarded' end::{schema}.oban_job_state,
    discarded_at = case when attempt < max_attempts then discarded_at else timezone('UTC', now()) end
where id = any({bigints($1)}) and state = 'executing' and to_regclass(format('%I.oban_producers', {schema_lit})) is null
returning id::text, case state when 'available' then 'ready' else 'failed' end as state

-- name: release_where
-- params: node expired_only
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

-- name: cancel
-- params: ids
-- official: Oban.cancel_job
-- guard: only jobs that have not ended
-- a running job is cancelled at once, and its node is asked to end it
with chosen as materialized (
    select id, state from {schema}.oban_jobs
    where id = any({bigints($1)}) and state not in ('completed', 'discarded', 'cancelled')
    order by id for update
), updated as (
    update {schema}.oban_jobs o set state = 'cancelled', cancelled_at = timezone('UTC', now()) from chosen j
    where o.id = j.id
    returning o.id, j.state = 'executing' as ran
)
select id::text, 'cancelled' as state, case when told is not null then 'its node is told to end it' end as why
from (select u.id, pg_notify({schema_lit} || '.oban_signal',
                             json_build_object('action', 'pkill', 'job_id', id)::text) as told from updated u where ran
      union all
      select u.id, null from updated u where not ran) n

-- name: delete
-- params: ids
-- official: Oban.delete_job
-- guard: only jobs that do not run
-- confirm: The jobs are gone for good.
delete from {schema}.oban_jobs
where id = any({bigints($1)}) and state <> 'executing'
returning id::text, 'deleted' as state

-- name: priority
-- params: ids n
-- official: Oban.update_job
-- guard: only jobs of another priority that wait
-- range: 0..9
update {schema}.oban_jobs set priority = $2::int
where id = any({bigints($1)})
  and state not in ('executing', 'completed', 'discarded', 'cancelled') and $2::int between 0 and 9
  and priority <> $2::int
returning id::text, case state::text when 'available' then 'ready' when 'retryable' then 'retry'
                         when 'suspended' then 'blocked' else state::text end as state

-- name: reschedule
-- params: ids at
-- official: Oban.update_job
-- guard: only jobs with another time that wait
update {schema}.oban_jobs set scheduled_at = timezone('UTC', $2::timestamptz),
       state = case when state = 'available' and $2::timestamptz > now() then 'scheduled' else state end
where id = any({bigints($1)}) and state in ('available', 'scheduled', 'retryable')
  and scheduled_at is distinct from timezone('UTC', $2::timestamptz)
-- a job that is due is made available by Oban's own stager, within seconds
returning id::text, case when scheduled_at <= timezone('UTC', now()) then 'ready' when state = 'retryable' then 'retry'
                         else state::text end as state

-- name: pause
-- params: queue force
-- official: Oban.pause_queue
-- guard: only a queue that has jobs, be they finished; --create pauses any other
-- mode: signal
-- nothing in the database changes: only the nodes that run now receive the signal
select $1::text as id, 'paused' as state, 'the nodes that listen now are told; nothing shows whether they heard' as why
from (select pg_notify({schema_lit} || '.oban_signal',
                       json_build_object('action', 'pause', 'queue', $1::text, 'ident', 'any')::text) as told
      where $1::text is not null
        and (coalesce($2::boolean, false)
             or exists (select from {schema}.oban_jobs
                        where queue = $1::text and state = any(enum_range(null::{schema}.oban_job_state))))) n
where told is not null

-- name: resume
-- params: queue force
-- official: Oban.resume_queue
-- guard: only a queue that has jobs, be they finished; --create resumes any other
-- mode: signal
select $1::text as id, 'active' as state, 'the nodes that listen now are told; nothing shows whether they heard' as why
from (select pg_notify({schema_lit} || '.oban_signal',
                       json_build_object('action', 'resume', 'queue', $1::text, 'ident', 'any')::text) as told
      where $1::text is not null
        and (coalesce($2::boolean, false)
             or exists (select from {schema}.oban_jobs
                        where queue = $1::text and state = any(enum_range(null::{schema}.oban_job_state))))) n
where told is not null

-- name: purge
-- params: queue states raw_states before limit
-- official: the Pruner
-- guard: only final jobs
-- confirm: The jobs are gone for good.
delete from {schema}.oban_jobs where id = any(array(
    select id from {schema}.oban_jobs
    where state::text = any(coalesce($3::text[], '{completed,cancelled}'))
      and coalesce(completed_at, discarded_at, cancelled_at)
        < coalesce(timezone('UTC', $4::timestamptz), timezone('UTC', now()))
      and state in ('completed', 'discarded', 'cancelled') and ($1::text is null or queue = $1::text)
      and ($2::text[] is null or $2::text[] && '{completed,cancelled,failed}')
    limit coalesce($5::int, 1000) for update skip locked))
returning id::text, 'deleted' as state

-- name: purge_preview
-- params: queue states raw_states before
select 'deleted' as state, count(*) as n, null::text as why from {schema}.oban_jobs
where state::text = any(coalesce($3::text[], '{completed,cancelled}'))
  and coalesce(completed_at, discarded_at, cancelled_at)
    < coalesce(timezone('UTC', $4::timestamptz), timezone('UTC', now()))
  and state in ('completed', 'discarded', 'cancelled') and ($1::text is null or queue = $1::text)
  and ($2::text[] is null or $2::text[] && '{completed,cancelled,failed}')
having count(*) > 0
