-- adapter: work_queue_table
-- title: queue and work_queue tables (Piechut)
-- format: 2
-- schema: queues
-- id-type: uuid
-- tables: queue work_queue
-- note: A scheduler moves due jobs into work_queue; a node that takes one there writes its name and a time limit
--   (lock_key, lock_timeout), after which another may take it. A job that is RUNNING and not in work_queue is an orphan
--   that nobody will take again: it is shown as blocked, and requeue puts it back. A node ends a job by its id alone,
--   even if another node holds the job by then.
-- note: Finished is what its state says: COMPLETED, DONE, FINISHED, SUCCEEDED; FAILED, ERROR; CANCELLED, CANCELED. A
--   state of another name is shown as blocked: its scheduler will not take such a job.
-- note: Times have no zone: they are read in the zone of this session, which must be that of the workers.
-- note: Columns that people add to queue are used where it has them: error (or last_error, error_message), max_tries
--   (or max_attempts), priority, completed_at, updated_at.
-- lacks: pause: its scheduler decides what is handed out: stop the scheduler
-- lacks: cancel: no worker asks whether its job is still wanted: delete jobs that wait
-- lacks: discard: nothing keeps what was discarded: delete the jobs
-- lacks: priority: its scheduler gives the order: reschedule jobs that may wait (your own column
--   priority is used)
-- lacks: groups: nothing keeps an error (a column error of your own is used)

-- name: detect
select n.nspname::text as schema from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
-- part: has_typed_columns table='queue'; n=10; columns=('id', 'uuid'), ('created', 'timestamp'), ('version', 'int4'),
--   ('queue', 'varchar'), ('state', 'varchar'), ('tries', 'int4'), ('delay', 'int8'), ('run_after', 'timestamp'),
--   ('payload', 'bytea'), ('payload_type', 'varchar')
-- part: has_typed_columns table='work_queue'; n=6; columns=('id', 'uuid'), ('version', 'int4'), ('batch_order',
--   'int4'), ('started', 'timestamp'), ('lock_key', 'varchar'), ('lock_timeout', 'timestamp')
  and not exists (select from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = 'queue' and c.relkind in ('r', 'p')
                and a.attname = 'tenant_id' and not a.attisdropped)
order by 1

-- name: version
-- which of the optional columns are there
select concat_ws(' ', max('priority') filter (where a.attname = 'priority' and t.typname in ('int2', 'int4', 'int8')),
                 max('error') filter (where a.attname in ('error', 'error_message', 'last_error'))) as version
-- part: columns_of table='queue'

-- name: queues
-- no index has the queue: the names come from the statistics, from the jobs in work_queue, and from the newest jobs;
-- section counts finds the others
select distinct queue, null::boolean as paused, 'the scheduler decides' as info
from (select unnest(most_common_vals::text::text[]) as queue from pg_catalog.pg_stats
      where schemaname = {schema_lit} and tablename = 'queue' and attname = 'queue'
      union all
      (select queue::text from {schema}.queue order by id desc limit 1000)
      union all
      select q.queue::text from {schema}.work_queue w join {schema}.queue q on q.id = w.id) x

-- name: counts
-- By the index on (state, run_after, created): of a state that the scheduler does not know 10000 rows at most.
with recursive words (word) as (
    (select state from {schema}.queue order by state limit 1)
    union all
    select (select q.state from {schema}.queue q where q.state > w.word order by q.state limit 1)
    from words w where w.word is not null
)
select q.queue::text as queue, count(*) filter (where w.id is null and q.state = 'PENDING'
                                                  and q.run_after > now()) as scheduled,
       count(*) filter (where w.id is not null and w.lock_key is null
                              or w.id is null and q.state in ('PENDING', 'RETRY')
                                 and (q.run_after is null or q.run_after <= now())) as ready,
       count(*) filter (where w.id is null and q.state = 'RETRY' and q.run_after > now()) as retry,
       count(w.lock_key) as running, count(*) filter (where w.id is null and q.state in ('FAILED', 'ERROR')) as failed,
       {ms(min(coalesce(q.run_after, q.created)::timestamptz) filter (where w.id is not null and w.lock_key is null
                or w.id is null and q.state in ('PENDING', 'RETRY')
                   and (q.run_after is null or q.run_after <= now())))} as oldest_ms,
       count(*) filter (where w.id is null and q.state not in ('PENDING', 'RETRY', 'FAILED', 'ERROR')) as blocked
from (select id, queue, state, run_after, created from {schema}.queue
      where state in ('PENDING', 'RETRY', 'RUNNING', 'FAILED', 'ERROR')
      union all
      select o.* from words cross join lateral (
          select id, queue, state, run_after, created from {schema}.queue where state = word
          order by state, run_after limit 10000) o
      where word not in ('PENDING', 'RETRY', 'RUNNING', 'FAILED', 'ERROR', 'COMPLETED', 'DONE', 'FINISHED', 'SUCCEEDED',
                         'CANCELLED', 'CANCELED')) q
left join {schema}.work_queue w on w.id = q.id group by 1

-- name: counts_final
-- cost: reads all that is finished
select queue::text, count(*) filter (where state not in ('CANCELLED', 'CANCELED')) as completed,
       count(*) filter (where state in ('CANCELLED', 'CANCELED')) as cancelled
from {schema}.queue where state in ('COMPLETED', 'DONE', 'FINISHED', 'SUCCEEDED', 'CANCELLED', 'CANCELED') group by 1

-- name: jobs
-- params: queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor node
-- order: *: highest id first
-- Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key,
-- part: work_queue_columns
           t.id::text as cursor
-- part: work_queue_rows
    left join {schema}.work_queue w on w.id = t.id
    where ($1::text is null or t.queue = $1::text)
      and ($2::text[] is null
           or 'running' = any($2::text[]) and w.lock_key is not null
           or 'ready' = any($2::text[]) and (w.id is not null and w.lock_key is null
                or w.id is null and t.state in ('PENDING', 'RETRY')
                    and (t.run_after is null or t.run_after <= now()))
           or 'scheduled' = any($2::text[]) and w.id is null and t.state = 'PENDING' and t.run_after > now()
           or 'retry' = any($2::text[]) and w.id is null and t.state = 'RETRY' and t.run_after > now()
           or 'failed' = any($2::text[]) and w.id is null and t.state in ('FAILED', 'ERROR')
           or 'completed' = any($2::text[]) and w.id is null
              and t.state in ('COMPLETED', 'DONE', 'FINISHED', 'SUCCEEDED')
           or 'cancelled' = any($2::text[]) and w.id is null and t.state in ('CANCELLED', 'CANCELED')
           or 'blocked' = any($2::text[]) and w.id is null
           and t.state not in ('PENDING', 'RETRY', 'COMPLETED', 'DONE', 'FINISHED', 'SUCCEEDED', 'FAILED', 'ERROR',
                               'CANCELLED', 'CANCELED'))
      and ($15::text is null or w.lock_key = $15::text)
-- part: jobs_found created=t.created; tries=t.tries; ids={uuids($11)}; before=({uuids(array[$14])})[1]

-- name: job (ids)
select
-- part: work_queue_columns
       null::text as cursor,
       case when x.text is not null then x.text else encode(substr(t.payload, 1, 65536), 'hex') end as payload,
       case when t.payload is null then '' when x.text is not null then 'text' else 'bytes' end as payload_format,
       t.payload_type::text as payload_type, octet_length(t.payload)::bigint as payload_size, t.state::text as raw_state
-- part: work_queue_rows
left join {schema}.work_queue w on w.id = t.id
-- valid UTF-8 is shown as text
cross join lateral (select case when octet_length(t.payload) <= 65536 and current_setting('server_encoding') = 'UTF8'
                                     and encode(t.payload,
                                                'hex') ~ '^([1-7].|0[1-9a-f]|c[2-9a-f][89ab].|d.[89ab].|'
                                                         'e0[ab].[89ab].|e[1-9a-ce-f]([89ab].){2}|'
                                           'ed[89].[89ab].|f0[9ab].([89ab].){2}|f[1-3]([89ab].){3}|f48.([89ab].){2})*$'
                                then convert_from(t.payload, 'UTF8') end as text) x
where t.id = any(({uuids($1)})[:1])

-- name: groups (queue limit)
-- requires: column error
-- cost: no index finds the newest jobs that failed
with failed_jobs as materialized (
    select t.id, t.queue::text as queue, t.error, coalesce(t.completed_at, t.updated_at, t.created::timestamptz) as at
-- part: work_queue_rows
    where t.state in ('FAILED', 'ERROR') and ($1::text is null or t.queue = $1::text)
      and not exists (select from {schema}.work_queue w where w.id = t.id)
    order by t.id desc limit 5000
)
-- part: groups newest=at

-- part: work_queue_sections unlock=unlocking all that a node holds

-- name: requeue (ids)
-- official: no (the states that its scheduler takes)
-- guard: only jobs that have failed, wait for their time or are orphans; not in work_queue
with seen as materialized (
    select q.id, q.state from {schema}.queue q where q.id = any({uuids($1)})
      and (q.state in ('FAILED', 'ERROR', 'RUNNING') or q.state in ('PENDING', 'RETRY') and q.run_after > now())
      and not exists (select from {schema}.work_queue w where w.id = q.id)
-- part unchanged:
), pick as (
    -- only if the state is unchanged: the scheduler may have handed the job out meanwhile
    select q.id from {schema}.queue q join seen s on s.id = q.id and s.state = q.state for update of q skip locked
)
-- end part
update {schema}.queue t set state = 'PENDING', run_after = null, version = least(t.version, 2147483646) + 1 from pick
where t.id = pick.id returning t.id::text, 'ready' as state

-- name: reschedule (ids at)
-- official: no (run_after, which its scheduler looks at)
-- guard: only jobs with another time that wait and are not in work_queue
with seen as materialized (
    select q.id, q.state from {schema}.queue q where q.id = any({uuids($1)})
      and q.state in ('PENDING', 'RETRY') and q.run_after is distinct from ($2::timestamptz)::timestamp
      and not exists (select from {schema}.work_queue w where w.id = q.id)
-- part: unchanged
update {schema}.queue t set run_after = $2::timestamptz, version = least(t.version, 2147483646) + 1 from pick
where t.id = pick.id
returning t.id::text, case when t.run_after <= now() then 'ready' when t.state = 'RETRY' then 'retry'
                           else 'scheduled' end as state

-- name: priority (ids n)
-- requires: column priority
-- official: no (a plain column; its scheduler decides what it means)
-- guard: only jobs of another priority that wait and are not in work_queue
with seen as materialized (
    select q.id, q.state from {schema}.queue q
    where q.id = any({uuids($1)}) and q.state in ('PENDING', 'RETRY') and q.priority is distinct from $2::int
      and not exists (select from {schema}.work_queue w where w.id = q.id)
-- part: unchanged
update {schema}.queue t set priority = $2::int, version = least(t.version, 2147483646) + 1 from pick
where t.id = pick.id
returning t.id::text, case when t.run_after <= now() or t.run_after is null then 'ready'
                           when t.state = 'RETRY' then 'retry' else 'scheduled' end as state

-- name: delete (ids)
-- official: no (what a node does with a finished job)
-- guard: only jobs that no node holds, or whose time is over
with free as materialized (
    select id from {schema}.work_queue
    where id = any({uuids($1)}) and (lock_key is null or lock_timeout < now()) for update skip locked
), seen as materialized (
    select q.id, q.state from {schema}.queue q where q.id = any({uuids($1)})
      and (q.id in (select id from free) or not exists (select from {schema}.work_queue w where w.id = q.id))
-- part: unchanged
delete from {schema}.queue t using pick where t.id = pick.id returning t.id::text, 'deleted' as state

-- name: purge (queue states before limit)
-- official: no
-- guard: only completed or cancelled jobs; failed ones where asked for. Where nothing tells
--   when a job ended, the time when it was pushed counts
-- cost: reads all that is finished
with pick as (
    select t.id
-- part: work_queue_rows
-- part: work_queue_final
    limit coalesce($4::int, 1000) for update of t skip locked
)
delete from {schema}.queue t using pick where t.id = pick.id returning t.id::text, 'purged' as state

-- name: purge_preview (queue states before)
-- cost: reads all that is finished
select 'purged' as state, count(*) as n, lower(t.state) as why
-- part: work_queue_rows
-- part: work_queue_final
group by 3
