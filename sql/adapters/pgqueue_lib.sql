-- adapter: pgqueue_lib
-- title: pgqueue (Node.js)
-- format: 2
-- schema: queues
-- id-type: uuid
-- tables: queue queue_history work_queue queue_config schedules
-- note: What ended is in queue_history, failed jobs too; requeue moves a failed one back, without a retry policy of its
--   own, which the history does not keep. If queue_history has no partition for a month, every completion in that month
--   fails.
-- note: Row security shows a login the rows of its tenant only, none without one: use the owner or a member of
--   queue_worker.
-- note: A node ends a job by its id alone, even if another node holds the job by then.
-- lacks: redrive: no dead letters here: failed jobs are in the history, requeue them
-- lacks: pause: no worker reads queue_config.paused: stop the queue's workers
-- lacks: cancel: no node asks whether its job is still wanted: delete jobs that wait

-- name: detect
select n.nspname::text as schema from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
-- part: has_typed_columns table='queue'; n=10; columns=('tenant_id', 'varchar'), ('id', 'uuid'), ('key', 'varchar'),
--   ('type', 'varchar'), ('state', 'varchar'), ('run_after', 'timestamp'), ('payload', 'bytea'), ('target', 'jsonb'),
--   ('retry_policy', 'jsonb'), ('worker_data', 'jsonb')
-- part: has_typed_columns table='work_queue'; n=4; columns=('id', 'uuid'), ('tenant_id', 'varchar'), ('lock_key',
--   'varchar'), ('lock_timeout', 'timestamp')
-- part: has_typed_columns table='queue_history'; n=5; columns=('tenant_id', 'varchar'), ('id', 'uuid'), ('state',
--   'varchar'), ('scheduled', 'timestamp'), ('result', 'bytea')
-- part: has_typed_columns table='schedules'; n=5; columns=('id', 'uuid'), ('key', 'varchar'), ('schedule', 'varchar'),
--   ('next_run', 'timestamp'), ('last_run', 'timestamp')
-- part: has_typed_columns table='queue_config'; n=3; columns=('tenant_id', 'varchar'), ('paused', 'bool'),
--   ('retry_policy', 'jsonb')
order by 1

-- name: queues
-- queues of all tenants: those with settings, those in the statistics, those with jobs for a node; section counts finds
-- the others
select queue, null::boolean as paused,
       case when bool_or(paused) then 'paused in queue_config, which no worker reads'
            else 'the scheduler decides' end as info, true as keeps
from (select queue::text as queue, paused from {schema}.queue_config
      union all
      select unnest(most_common_vals::text::text[]), false from pg_catalog.pg_stats
      where schemaname = {schema_lit} and tablename in ('queue', 'queue_history') and attname = 'queue'
      union all
      select q.queue::text, false from {schema}.work_queue w join {schema}.queue q on q.id = w.id) x
group by queue

-- name: counts
-- queue holds live jobs only: its first 100000 rows are counted, approx if there are more. Failed jobs by the index of
-- each tenant in the history, of the newest 10000 of each
with recursive tenants (tenant_id) as (
-- part tenants:
    (select h.tenant_id from {schema}.queue_history h order by h.tenant_id limit 1)
    union all
    select (select h.tenant_id from {schema}.queue_history h where h.tenant_id > x.tenant_id order by h.tenant_id
            limit 1)
    from tenants x where x.tenant_id is not null
-- end part
), sampled as materialized (
    select q.id, q.queue, q.state, q.run_after, q.created from {schema}.queue q limit 100000
), live as (
    select q.queue::text as queue, count(*) filter (where w.id is null and q.state = 'PENDING'
                                                      and q.run_after > now()) as scheduled,
       count(*) filter (where w.id is not null and w.lock_key is null
                              or w.id is null and q.state in ('PENDING', 'RETRY')
                                 and (q.run_after is null or q.run_after <= now())) as ready,
       count(*) filter (where w.id is null and q.state = 'RETRY' and q.run_after > now()) as retry,
       count(w.lock_key) as running, 0 as failed,
       {ms(min(coalesce(q.run_after, q.created)::timestamptz) filter (where w.id is not null and w.lock_key is null
                or w.id is null and q.state in ('PENDING', 'RETRY')
                   and (q.run_after is null or q.run_after <= now())))} as oldest_ms,
       count(*) filter (where w.id is null and q.state = 'RUNNING') as blocked
    from sampled q left join {schema}.work_queue w on w.id = q.id group by 1
), failed as (
    select h.queue::text as queue, count(*) as failed, bool_or(h.nr = 10000) as many from tenants x
    cross join lateral (select h.queue, row_number() over () as nr
                        from (select h.queue from {schema}.queue_history h
                              where h.tenant_id = x.tenant_id and h.state = 'FAILED'
                              order by h.created desc limit 10000) h) h
    group by 1
)
select coalesce(live.queue, failed.queue) as queue, coalesce(scheduled, 0) as scheduled, coalesce(ready, 0) as ready,
       coalesce(retry, 0) as retry, coalesce(running, 0) as running, coalesce(failed.failed, 0) as failed, oldest_ms,
       coalesce(blocked, 0) as blocked, (select count(*) = 100000 from sampled)
    or coalesce(failed.many, false) as approx
from live full join failed on failed.queue = live.queue

-- name: counts_final
-- cost: reads the whole history
select queue::text, count(*) as completed, 0::bigint as cancelled from {schema}.queue_history where state = 'COMPLETED'
group by 1

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor node
-- order: completed: newest first; cancelled: newest first; *: highest id first, then what has ended
-- live jobs by their ids, newest first; then the jobs in the history, latest end first, by the index of each tenant.
-- Kind, error and words are looked for in the newest n of the rows that fit all other terms: a row without an id gives
-- the cursor to continue from
with recursive tenants (tenant_id) as (
-- part: tenants
), live as materialized (
    select 1 as arm, t.id, t.created as at, 'l' || t.id as cursor,
-- part live_columns:
           t.queue::text as queue, t.type::text as kind,
           case when w.lock_key is not null then 'running' when w.id is not null then 'ready'
                when t.state = 'PENDING' then case when t.run_after > now() then 'scheduled' else 'ready' end
                when t.state = 'RETRY' then case when t.run_after > now() then 'retry' else 'ready' end
                else 'blocked' end as state,
           t.tries,
           coalesce((case when t.retry_policy ->> 'tries' ~ '^[0-9]{1,6}$' then t.retry_policy ->> 'tries' end)::int,
                  (case when c.retry_policy ->> 'tries' ~ '^[0-9]{1,6}$'
                            then c.retry_policy ->> 'tries' end)::int, 5) + 1 as max_tries,
           {ms(t.created::timestamptz)} as created_ms, {ms(t.run_after::timestamptz)} as run_after_ms,
           {ms(coalesce(t.updated, t.created)::timestamptz)} as changed_ms, {ms(w.started::timestamptz)} as started_ms,
           null::bigint as finished_ms, w.lock_key::text as node, {ms(w.lock_timeout::timestamptz)} as lease_until_ms,
           coalesce(t.error, '')::text as error, case when w.id is null then t.state = 'RUNNING'
                                                      else coalesce(w.lock_timeout < now(), false) end as stale
-- end part
    from {schema}.queue t left join {schema}.work_queue w on w.id = t.id
    left join {schema}.queue_config c on c.tenant_id = t.tenant_id and c.queue = t.queue
    where ($14::text is null or $14::text like 'l%')
      and ($1::text is null or t.queue = $1::text)
      and ($2::text[] is null
           or 'ready' = any($2::text[]) and (w.id is not null and w.lock_key is null
                or w.id is null and t.state in ('PENDING', 'RETRY')
                    and (t.run_after is null or t.run_after <= now()))
           or 'scheduled' = any($2::text[]) and w.id is null and t.state = 'PENDING' and t.run_after > now()
           or 'retry' = any($2::text[]) and w.id is null and t.state = 'RETRY' and t.run_after > now()
           or 'running' = any($2::text[]) and w.lock_key is not null
           or 'blocked' = any($2::text[]) and w.id is null and t.state not in ('PENDING', 'RETRY'))
      and ($15::text is null or w.lock_key = $15::text)
-- part: age_and_tries created=t.created; tries=t.tries; older=$7; younger=$8; min=$9; top=$10
      and ($11::text[] is null or t.id = any({uuids($11)}))
      and ($14::text is null or t.id < case when substr($14::text, 2) ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                      then substr($14::text, 2)::uuid end)
    order by t.id desc
    limit case when num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) = 0 then coalesce($13::int, 100)
               else coalesce($12::int, 10000) end
), ended as materialized (
    select h.* from (select 'FAILED' as state where $2::text[] is null or 'failed' = any($2::text[])
                     union all select 'COMPLETED' where $2::text[] is null or 'completed' = any($2::text[])) s
    cross join tenants x
    cross join lateral (
        select 2 as arm, h.id, h.created as at, 'h' || h.created || '/' || h.id as cursor,
-- part ended_columns:
               h.queue::text as queue, h.type::text as kind,
               case h.state when 'FAILED' then 'failed' else 'completed' end as state,
           h.tries, null::int as max_tries, {ms(h.scheduled::timestamptz)} as created_ms, null::bigint as run_after_ms,
           {ms(h.created::timestamptz)} as changed_ms, {ms(h.started::timestamptz)} as started_ms,
           {ms(h.created::timestamptz)} as finished_ms, null::text as node, null::bigint as lease_until_ms,
           coalesce(h.error, '')::text as error, false as stale
-- end part
        from {schema}.queue_history h where h.tenant_id = x.tenant_id and h.state = s.state and $15::text is null
          and ($1::text is null or h.queue = $1::text)
-- part: age_and_tries created=h.scheduled; tries=h.tries; older=$7; younger=$8; min=$9; top=$10
          and ($11::text[] is null or h.id = any({uuids($11)}))
          and (coalesce($14::text, 'l') like 'l%'
               or (h.created, h.id) <
                      (case when $14::text like 'h%/%'
                            then split_part(substr($14::text, 2), '/', 1)::timestamp end,
                       case when split_part($14::text, '/', 2) ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                            then split_part($14::text, '/', 2)::uuid end))
        order by h.created desc, h.id desc
        limit case when num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) = 0 then coalesce($13::int, 100)
                     else coalesce($12::int, 10000) end) h
), looked_at as materialized (
    select x.*, row_number() over (order by arm, case when arm = 1 then id end desc, at desc, id desc) as nr
    from (select * from live union all select * from ended) x order by nr
-- part: jobs_matching
    order by nr limit coalesce($13::int, 100)
)
select id::text, queue, kind, state, null::int as priority, tries, max_tries, created_ms, run_after_ms, changed_ms,
       started_ms, finished_ms, node, lease_until_ms, left(error, 300) as error, stale, cursor
from (select f.* from matching f
      union all
      (select w.arm, null, w.at, w.cursor, '', '', '', 0, null, null, null, null, null, null, null, null, '', null, w.nr
       from looked_at w where num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) > 0
                and (select count(*) from matching) < coalesce($13::int, 100)
                and (select count(*) from looked_at) = coalesce($12::int, 10000)
       order by w.nr desc limit 1)) x
order by nr, id nulls last

-- name: job (ids)
with found as (
    select t.id,
-- part: live_columns
           , t.key::text as unique_key, t.payload, t.payload_type::text as payload_type, t.result,
           t.state::text as raw_state
    from {schema}.queue t left join {schema}.work_queue w on w.id = t.id
    left join {schema}.queue_config c on c.tenant_id = t.tenant_id and c.queue = t.queue
    where t.id = any(({uuids($1)})[:1])
    union all
    select h.id,
-- part: ended_columns
           , h.key::text, h.payload, h.payload_type::text, h.result, h.state::text
    from {schema}.queue_history h where h.id = any(({uuids($1)})[:1]) limit 1
)
select j.id::text, j.queue, j.kind, j.state, null::int as priority, j.tries, j.max_tries, j.created_ms, j.run_after_ms,
       j.changed_ms,
       j.started_ms, j.finished_ms, j.node, j.lease_until_ms, j.error, j.stale, null::text as cursor, j.unique_key,
       case when x.text is not null then x.text else encode(substr(j.payload, 1, 65536), 'hex') end as payload,
       case when j.payload is null then '' when x.text is not null then 'text' else 'bytes' end as payload_format,
       j.payload_type, octet_length(j.payload)::bigint as payload_size,
       encode(substr(j.result, 1, 65536), 'escape') as result, j.raw_state
from found j
-- valid UTF-8 is shown as text
cross join lateral (select case when octet_length(j.payload) <= 65536 and current_setting('server_encoding') = 'UTF8'
                                     and encode(j.payload,
                                                'hex') ~ '^([1-7].|0[1-9a-f]|c[2-9a-f][89ab].|d.[89ab].|'
                                                         'e0[ab].[89ab].|e[1-9a-ce-f]([89ab].){2}|'
                                           'ed[89].[89ab].|f0[9ab].([89ab].){2}|f[1-3]([89ab].){3}|f48.([89ab].){2})*$'
                                then convert_from(j.payload, 'UTF8') end as text) x

-- name: attempts (ids)
-- only the last error is kept
select q.tries as number, w.lock_key::text as node, {ms(w.started::timestamptz)} as started_ms,
       case when w.lock_key is null then {ms(q.updated::timestamptz)} end as ended_ms,
       case when w.lock_key is null then 'failed' else 'running' end as outcome, coalesce(q.error, '')::text as error
from {schema}.queue q left join {schema}.work_queue w on w.id = q.id
where q.id = any(({uuids($1)})[:1]) and (w.lock_key is not null or q.error is not null)
union all
select h.tries, null, {ms(h.started::timestamptz)}, {ms(h.created::timestamptz)}, lower(h.state), coalesce(h.error, '')
from {schema}.queue_history h where h.id = any(({uuids($1)})[:1])

-- part: work_queue_sections unlock=unlockAllWorkItems

-- name: groups (queue limit)
with recursive tenants (tenant_id) as (
-- part: tenants
), failed_jobs as materialized (
    select h.* from tenants x
    cross join lateral (select h.id, h.queue::text as queue, h.created, coalesce(h.error, '')::text as error
                        from {schema}.queue_history h where h.tenant_id = x.tenant_id and h.state = 'FAILED'
                          and ($1::text is null or h.queue = $1::text)
                        order by h.created desc limit 5000) h
    order by h.created desc limit 5000
)
select {error_key(error)} as error_key, queue, count(*) as n, (select count(*) from failed_jobs) >= 5000 as capped,
       {ms(min(created)::timestamptz)} as first_ms, {ms(max(created)::timestamptz)} as last_ms,
       (array_agg(error order by created desc))[1] as sample,
       (array_agg(id::text order by created desc))[1] as sample_id
from failed_jobs f group by 1, 2 order by 3 desc, 2, 1 limit coalesce($2::int, 200)

-- name: schedules (schedule)
select case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end as name,
       coalesce(s.schedule, '')::text as cron, s.timezone::text as tz, s.queue::text as queue,
       s.type::text as kind, case when s.paused then 'paused' else 'active' end as state,
       {ms(s.last_run::timestamptz)} as last_run_ms, null::text as last_outcome,
       {ms(s.next_run::timestamptz)} as next_run_ms,
       encode(substr(s.payload, 1, 10000), 'escape') as payload, s.payload_type::text as payload_type,
       'tenant ' || s.tenant_id as comment, {ms(s.created::timestamptz)} as created_ms,
       {ms(s.updated::timestamptz)} as changed_ms
from {schema}.schedules s
where $1::text is null or case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end = $1::text
order by 1

-- name: requeue (ids reset)
-- official: no (the history is never read again there)
-- guard: only jobs that have failed, wait for their time or are orphans; not in work_queue, and no live job of the
--   queue has the key
with seen as materialized (
    select q.id, q.state from {schema}.queue q
    where q.id = any({uuids($1)}) and (q.state = 'RUNNING' or q.state in ('PENDING', 'RETRY') and q.run_after > now())
      and not exists (select from {schema}.work_queue w where w.id = q.id)
), pick as (
    -- only if the state is unchanged: the scheduler may have handed the job out meanwhile
    select q.id from {schema}.queue q join seen s on s.id = q.id and s.state = q.state for update of q skip locked
), now_due as (
    update {schema}.queue t set state = 'PENDING', run_after = null, version = least(t.version, 2147483646) + 1,
                                updated = now(),
           tries = case when coalesce($2::boolean, false) then 0 else t.tries end
    from pick where t.id = pick.id returning t.id
), ended as (
    select h.* from {schema}.queue_history h where h.id = any({uuids($1)}) and h.state = 'FAILED'
    for update skip locked
), back as (
    insert into {schema}.queue (tenant_id, id, created, updated, key, schedule_id, type, tries, queue, state, delay,
                                payload, payload_type, target, error, worker_data)
    select tenant_id, id, scheduled, now(), key, schedule_id, type,
           case when coalesce($2::boolean, false) then 0 else tries end, queue,
           'PENDING', delay, payload, payload_type, target, error, worker_data
    from ended
    on conflict do nothing returning id
), gone as (
    delete from {schema}.queue_history h using back where h.id = back.id and h.state = 'FAILED' returning h.id
)
select id::text, 'ready' as state from now_due union all select id::text, 'ready' from gone

-- name: reschedule (ids at)
-- official: no (run_after, which its scheduler looks at)
-- guard: only jobs with another time that wait and are not in work_queue
with seen as materialized (
    select q.id, q.state from {schema}.queue q where q.id = any({uuids($1)})
      and q.state in ('PENDING', 'RETRY') and q.run_after is distinct from ($2::timestamptz)::timestamp
      and not exists (select from {schema}.work_queue w where w.id = q.id)
), pick as (
    -- only if the state is unchanged: the scheduler may have handed the job out meanwhile
    select q.id from {schema}.queue q join seen s on s.id = q.id and s.state = q.state for update of q skip locked
)
update {schema}.queue t set run_after = $2::timestamptz, version = least(t.version, 2147483646) + 1, updated = now()
from pick where t.id = pick.id
returning t.id::text, case when t.run_after <= now() then 'ready' when t.state = 'RETRY' then 'retry'
                           else 'scheduled' end as state

-- name: delete (ids)
-- official: QueueManager.delete, and from the history
-- guard: only jobs that no node holds, or whose time is over
with free as materialized (
    select id from {schema}.work_queue
    where id = any({uuids($1)}) and (lock_key is null or lock_timeout < now()) for update skip locked
), seen as materialized (
    select q.id, q.state from {schema}.queue q where q.id = any({uuids($1)})
      and (q.id in (select id from free) or not exists (select from {schema}.work_queue w where w.id = q.id))
), pick as (
    -- only if the state is unchanged: the scheduler may have handed the job out meanwhile
    select q.id from {schema}.queue q join seen s on s.id = q.id and s.state = q.state for update of q skip locked
), live as (
    delete from {schema}.queue t using pick where t.id = pick.id returning t.id
), ended as (
    delete from {schema}.queue_history h where h.id = any({uuids($1)}) returning h.id
)
select id::text, 'deleted' as state from live union select id::text, 'deleted' from ended

-- name: purge (queue states before limit)
-- official: no (it keeps all; months are dropped as partitions)
-- guard: only completed jobs; failed ones where asked for
-- cost: reads the history of a month
with pick as (
    select h.tableoid, h.ctid from {schema}.queue_history h where h.state
        = any(array(select upper(s) from unnest(coalesce($2::text[], '{completed}')) s
                    where s in ('completed', 'failed')))
      and h.created < coalesce($3::timestamptz, now()) and ($1::text is null or h.queue = $1::text)
    limit coalesce($4::int, 1000) for update skip locked
)
delete from {schema}.queue_history h using pick where h.tableoid = pick.tableoid and h.ctid = pick.ctid
returning h.id::text, 'purged' as state

-- name: purge_preview (queue states before)
-- cost: reads the whole history
select 'purged' as state, count(*) as n, lower(h.state) as why from {schema}.queue_history h where h.state
    = any(array(select upper(s) from unnest(coalesce($2::text[], '{completed}')) s where s in ('completed', 'failed')))
      and h.created < coalesce($3::timestamptz, now()) and ($1::text is null or h.queue = $1::text)
group by h.state

-- name: cron_pause (schedule)
-- official: schedules.paused
update {schema}.schedules s set paused = true, updated = now(), version = least(version, 2147483646) + 1
where case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end = $1::text and s.paused is not true
returning case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end as id, 'paused' as state

-- name: cron_resume (schedule)
-- official: no (the library also moves next_run on: a run that was missed comes once now)
update {schema}.schedules s set paused = false, updated = now(), version = least(version, 2147483646) + 1
where case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end = $1::text and s.paused
returning case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end as id, 'resumed' as state

-- name: cron_run (schedule)
-- official: no (next_run is now; the schedule runner does the rest)
-- guard: only a schedule that is not paused and not due this moment
-- mode: deferred
update {schema}.schedules s set next_run = now(), updated = now(), version = least(version, 2147483646) + 1
where case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end = $1::text and s.paused is not true
  and s.next_run is distinct from now()::timestamp
returning case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end as id, 'run' as state

-- name: cron_remove (schedule)
-- official: the schedule is deleted
-- confirm: It is gone with its payload.
delete from {schema}.schedules s where case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end
                                     = $1::text
returning case when s.key is null then s.id::text else s.tenant_id || '/' || s.key end as id, 'removed' as state
