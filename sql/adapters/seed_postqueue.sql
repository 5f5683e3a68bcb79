-- adapter: seed_postqueue
-- title: jobs table (PostQueue)
-- format: 2
-- schema: public
-- id-type: text
-- tables: jobs
-- note: visibility_at is the lease: a job that was taken is hidden until then, for ten minutes, and nothing tells who
--   took it.
-- note: Failed is what no worker will ever take again: four attempts used, or expires_at has passed (its default is the
--   moment of the insert). Workers take from all queues at once. Ack and nack name the id alone: a job that was
--   released and taken anew is also finished by its first worker.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend_where: nothing tells who works on a job: extend it by its id (extend --id)
-- lacks: pause: workers take from all queues: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: delete jobs that wait
-- lacks: discard: nothing keeps what was discarded: delete the jobs
-- lacks: priority: the oldest job is taken first: reschedule jobs that may wait

-- name: detect
select n.nspname::text as schema
from pg_catalog.pg_namespace n
where n.nspname !~ '^pg_' and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = 'jobs' and c.relkind in ('r', 'p')
                and 10 = (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values ('id', 'text'), ('created', 'timestamptz'), ('name', 'text'),
                                ('visibility_at', 'timestamptz'), ('status', 'text'), ('attempts', 'int4'),
                                ('expires_at', 'timestamptz'), ('data', 'jsonb'), ('queue_name', 'text'),
                                ('reference', 'text')
                          ) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
order by 1

-- name: queues
-- the names, found by skipping through the index
with recursive queue_names (queue) as (
    (select queue_name from {schema}.jobs where queue_name is not null order by queue_name limit 1)
    union all
    select (select j.queue_name from {schema}.jobs j where j.queue_name > q.queue order by j.queue_name limit 1)
    from queue_names q where q.queue is not null
)
select queue, null::boolean as paused, 'workers take from all queues' as info from queue_names q where queue is not null
union all
select '(none)', null, 'workers take from all queues' where exists (select from {schema}.jobs where queue_name is null)

-- name: counts
-- cost: no index has the state; reads the whole table
select coalesce(t.queue_name, '(none)') as queue,
       count(*) filter (where not held and may_run and visibility_at > now()) as scheduled,
       count(*) filter (where not held and may_run and (visibility_at is null or visibility_at <= now())
                              and status <> 'in_transit') as ready,
       0::bigint as retry,
       count(*) filter (where held or may_run and status = 'in_transit'
                                 and (visibility_at is null or visibility_at <= now())) as running,
       count(*) filter (where not held and not may_run) as failed,
       {ms(min(coalesce(visibility_at, created)) filter (where not held and may_run
                     and (visibility_at is null or visibility_at <= now()) and status <> 'in_transit'))} as oldest_ms,
       count(*) filter (where not held and may_run and status = 'in_transit'
                              and (visibility_at is null or visibility_at <= now())) as expired
from {schema}.jobs t
cross join lateral (select (t.expires_at is null or t.expires_at > now()) and t.attempts <= 3 as may_run,
                           t.attempts > 0 and coalesce(t.visibility_at > now(), false) as held) h
where t.status <> 'completed' group by 1

-- name: counts_final
-- cost: reads the whole table
select coalesce(queue_name, '(none)') as queue, count(*) as completed, 0::bigint as cancelled
from {schema}.jobs where status = 'completed' group by 1

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: highest id first
-- Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key, t.id::text as id, coalesce(t.queue_name, '(none)') as queue, coalesce(t.name, '') as kind,
           s.state as state, null::int as priority, t.attempts as tries, 4 as max_tries, {ms(t.created)} as created_ms,
           case when s.state = 'scheduled' then {ms(t.visibility_at)} end as run_after_ms,
           null::bigint as changed_ms, null::bigint as started_ms, null::bigint as finished_ms, null::text as node,
           case when s.state = 'running' then {ms(t.visibility_at)} end as lease_until_ms,
           case when s.state <> 'failed' then '' when t.attempts > 3 then 'no attempts left'
                else 'expired before it was done' end as error,
           s.state = 'running' and not h.held as stale, t.id::text as cursor
    from {schema}.jobs t
    cross join lateral (select (t.expires_at is null or t.expires_at > now()) and t.attempts <= 3 as may_run,
                               t.attempts > 0 and coalesce(t.visibility_at > now(), false) as held) h
    cross join lateral (select case when t.status = 'completed' then 'completed' when h.held then 'running'
                                    when not h.may_run then 'failed' when t.visibility_at > now() then 'scheduled'
                                    when t.status = 'in_transit' then 'running' else 'ready' end as state) s
    where ($1::text is null or (t.queue_name = $1::text or t.queue_name is null and $1::text = '(none)'))
      and ($2::text[] is null or s.state = any($2::text[])
           and ('completed' = any($2::text[]) or t.status <> 'completed'))
      and ($7::interval is null or t.created < now() - $7::interval)
      and ($8::interval is null or t.created > now() - $8::interval)
      and ($9::int is null or t.attempts >= $9::int)
      and ($10::int is null or t.attempts <= $10::int)
      and ($11::text[] is null
           or t.id = any($11::text[]))
      and ($14::text is null
           or t.id < $14::text)
    order by t.id desc
-- part: jobs_found

-- name: job
-- params: ids
select t.id::text as id, coalesce(t.queue_name, '(none)') as queue, coalesce(t.name, '') as kind, s.state as state,
       null::int as priority, t.attempts as tries, 4 as max_tries,
       {ms(t.created)} as created_ms,
       case when s.state = 'scheduled' then {ms(t.visibility_at)} end as run_after_ms,
       null::bigint as changed_ms, null::bigint as started_ms, null::bigint as finished_ms, null::text as node,
       case when s.state = 'running' then {ms(t.visibility_at)} end as lease_until_ms,
       case when s.state <> 'failed' then '' when t.attempts > 3 then 'no attempts left'
            else 'expired before it was done' end as error,
       s.state = 'running' and not h.held as stale, null::text as cursor,
       t.reference as unique_key, left(t.data::text, 1000000) as payload,
       case when t.data is null then '' else 'json' end as payload_format,
       octet_length(t.data::text)::bigint as payload_size, t.status::text as raw_state
from {schema}.jobs t
    cross join lateral (select (t.expires_at is null or t.expires_at > now()) and t.attempts <= 3 as may_run,
                               t.attempts > 0 and coalesce(t.visibility_at > now(), false) as held) h
    cross join lateral (select case when t.status = 'completed' then 'completed' when h.held then 'running'
                                    when not h.may_run then 'failed' when t.visibility_at > now() then 'scheduled'
                                    when t.status = 'in_transit' then 'running' else 'ready' end as state) s
where t.id = any(array(select i from unnest($1::text[]) i limit 1))

-- name: groups
-- params: queue limit
-- cost: no index finds the jobs that failed
with failed_jobs as materialized (
    select t.id, coalesce(t.queue_name, '(none)') as queue, t.created,
           case when t.attempts > 3 then 'no attempts left' else 'expired before it was done' end as error
    from {schema}.jobs t
    where t.status <> 'completed' and (t.attempts > 3 or t.expires_at <= now())
      and not (t.attempts > 0 and coalesce(t.visibility_at > now(), false))
      and ($1::text is null or t.queue_name = $1::text or t.queue_name is null and $1::text = '(none)')
    order by t.created desc limit 5000
)
select {error_key(error)} as error_key, queue, count(*) as n, (select count(*) from failed_jobs) >= 5000 as capped,
       {ms(min(created))} as first_ms, {ms(max(created))} as last_ms,
       min(error) as sample, (array_agg(id order by created desc))[1] as sample_id
from failed_jobs f group by 1, 2 order by 3 desc, 2, 1 limit coalesce($2::int, 200)

-- name: requeue
-- params: ids reset
-- official: no (nack; a job without attempts gets one more, and an expiry that has passed is removed for good)
-- guard: only jobs that have failed or wait for their time
update {schema}.jobs set status = 'pending', visibility_at = now(),
       attempts = case when coalesce($2::boolean, false) then 0 else least(attempts, 3) end,
       expires_at = case when expires_at <= now() then null else expires_at end
where id = any($1::text[]) and status <> 'completed' and not (attempts > 0 and coalesce(visibility_at > now(), false))
  and ((attempts > 3 or coalesce(expires_at <= now(), false)) or coalesce(visibility_at > now(), false))
returning id, 'ready' as state

-- name: rescue
-- params: ids
-- official: nack
-- guard: only running jobs
-- confirm: Its worker may be alive: then the job is done twice, and the first to acknowledge it marks it completed.
update {schema}.jobs set status = 'pending', visibility_at = now()
where id = any($1::text[])
  and status <> 'completed' and (attempts > 0 and coalesce(visibility_at > now(), false)
                                 or status = 'in_transit' and not (attempts > 3
                                                                   or coalesce(expires_at <= now(), false)))
returning id, case when attempts > 3 or expires_at <= now() then 'failed' else 'ready' end as state

-- name: extend
-- params: ids by
-- official: what a worker does with a job that takes longer; never made shorter
-- guard: only running jobs whose lease ends before that time
update {schema}.jobs set status = 'pending', visibility_at = now() + $2::interval
where id = any($1::text[])
  and status <> 'completed' and (attempts > 0 and coalesce(visibility_at > now(), false)
                                 or status = 'in_transit' and not (attempts > 3
                                                                   or coalesce(expires_at <= now(), false)))
  and coalesce(visibility_at < now() + $2::interval, true)
  and $2::interval > interval '0'
returning id, 'extended' as state

-- name: reschedule
-- params: ids at
-- official: no (visibility_at, as it is set when a job is added)
-- guard: only jobs with another time that wait, were never taken (a later time would look like a lease) and do not
--   expire before
update {schema}.jobs set visibility_at = $2::timestamptz
where id = any($1::text[]) and status <> 'completed' and attempts = 0 and status <> 'in_transit'
  and visibility_at is distinct from $2::timestamptz and (visibility_at > now() or $2::timestamptz > now())
  and (expires_at is null or expires_at > greatest(now(), $2::timestamptz))
returning id, case when visibility_at > now() then 'scheduled' else 'ready' end as state

-- name: delete
-- params: ids
-- official: no
-- guard: only jobs that do not run
with pick as (
    select id from {schema}.jobs
    where id = any($1::text[])
      and (status = 'completed' or not (attempts > 0 and coalesce(visibility_at > now(), false))
                                   and (status <> 'in_transit' or attempts > 3 or coalesce(expires_at <= now(), false)))
    for update skip locked
)
delete from {schema}.jobs t using pick where t.id = pick.id
returning t.id, 'deleted' as state

-- name: purge
-- params: queue states before limit
-- official: no
-- guard: only completed jobs; failed ones where asked for. Nothing tells when a job ended: the end of its last lease
--   counts
-- cost: no index finds what is finished
with pick as (
    select t.id from {schema}.jobs t
    where ($1::text is null or t.queue_name = $1::text or t.queue_name is null and $1::text = '(none)')
      and coalesce(t.visibility_at, t.created) < coalesce($3::timestamptz, now())
      and (t.status = 'completed' and 'completed' = any(coalesce($2::text[], '{completed}'))
           or t.status <> 'completed' and 'failed' = any($2::text[]) and (t.attempts > 3 or t.expires_at <= now())
              and not (t.attempts > 0 and coalesce(t.visibility_at > now(), false)))
    limit coalesce($4::int, 1000) for update skip locked
)
delete from {schema}.jobs t using pick where t.id = pick.id
returning t.id, 'purged' as state

-- name: purge_preview
-- params: queue states before
-- cost: reads the whole table
select 'purged' as state, count(*) as n, case when t.status = 'completed' then 'completed' else 'failed' end as why
from {schema}.jobs t
where ($1::text is null or t.queue_name = $1::text or t.queue_name is null and $1::text = '(none)')
      and coalesce(t.visibility_at, t.created) < coalesce($3::timestamptz, now())
      and (t.status = 'completed' and 'completed' = any(coalesce($2::text[], '{completed}'))
           or t.status <> 'completed' and 'failed' = any($2::text[]) and (t.attempts > 3 or t.expires_at <= now())
              and not (t.attempts > 0 and coalesce(t.visibility_at > now(), false)))
group by 3
