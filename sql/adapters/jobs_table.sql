-- adapter: jobs_table
-- title: jobs table (PostQueue)
-- format: 2
-- schema: public
-- id-type: text
-- tables: jobs
-- note: visibility_at is the lease: a job that was taken is hidden until then, for ten minutes, and nothing tells who
--   took it.
-- note: Failed is what no worker will ever take again: all attempts used (four), or expires_at has passed (its default
--   is the moment of the insert). Workers take from all queues at once. Ack and nack name the id alone: a job that was
--   released and taken anew is also finished by its first worker.
-- note: Columns that people add are used where the table has them: error (or last_error, error_message), max_attempts,
--   priority, completed_at, updated_at.
-- lacks: release_where: nothing tells who works on a job: release it by its id (release --id)
-- lacks: extend_where: nothing tells who works on a job: extend it by its id (extend --id)
-- lacks: pause: workers take from all queues: stop them in their own program
-- lacks: cancel: no worker asks whether its job is still wanted: delete jobs that wait
-- lacks: discard: nothing keeps what was discarded: delete the jobs
-- lacks: priority: the oldest job is taken first: reschedule jobs that may wait (your own column priority
--   is used)

-- name: detect
select n.nspname::text as schema from pg_catalog.pg_namespace n where n.nspname !~ '^pg_'
-- part: has_typed_columns table='jobs'; n=10; columns=('id', 'text'), ('created', 'timestamptz'), ('name', 'text'),
--   ('visibility_at', 'timestamptz'), ('status', 'text'), ('attempts', 'int4'), ('expires_at', 'timestamptz'), ('data',
--   'jsonb'), ('queue_name', 'text'), ('reference', 'text')
order by 1

-- name: version
-- which of the optional columns are there
select concat_ws(' ', max('priority') filter (where a.attname = 'priority'
                                                and t.typname in ('int2', 'int4', 'int8'))) as version
-- part: columns_of table='jobs'

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
select coalesce(t.queue_name, '(none)') as queue, count(*) filter (where t.state = 'scheduled') as scheduled,
       count(*) filter (where t.state = 'ready') as ready, 0::bigint as retry,
       count(*) filter (where t.state = 'running') as running, count(*) filter (where t.state = 'failed') as failed,
       {ms(min(coalesce(t.visibility_at, t.created)) filter (where t.state = 'ready'))} as oldest_ms,
       count(*) filter (where t.state = 'running' and not t.held) as expired
-- part: jobs_table_rows
where t.status <> 'completed' group by 1

-- name: counts_final
-- cost: reads the whole table
select coalesce(queue_name, '(none)') as queue, count(*) as completed, 0::bigint as cancelled
from {schema}.jobs where status = 'completed' group by 1

-- part: jobs_of_table columns=jobs_table_columns; rows=jobs_table_rows; created=t.created; tries=t.tries;
--   ids=$11::text[]; before=$14::text; which=($1::text is null or (t.queue_name = $1::text or t.queue_name is null and
--   $1::text = '(none)')) and ($2::text[] is null or t.state = any($2::text[]) and ('completed' = any($2::text[]) or
--   t.status <> 'completed'))

-- name: job (ids)
select
-- part: jobs_table_columns
       null::text as cursor, t.reference as unique_key, left(t.data::text, 1000000) as payload,
       case when t.data is null then '' else 'json' end as payload_format,
       octet_length(t.data::text)::bigint as payload_size, t.status::text as raw_state
-- part: jobs_table_rows
where t.id = any(array(select i from unnest($1::text[]) i limit 1))

-- name: groups (queue limit)
-- cost: no index finds the jobs that failed
with failed_jobs as materialized (
    select t.id, coalesce(t.queue_name, '(none)') as queue, t.created as at, t.reason as error
-- part: jobs_table_rows
    where t.state = 'failed'
      and ($1::text is null or t.queue_name = $1::text or t.queue_name is null and $1::text = '(none)')
    order by t.created desc limit 5000
)
-- part: groups newest=at

-- name: requeue (ids reset)
-- official: no (nack; a job without attempts gets one more, and an expiry that has passed is removed for good)
-- guard: only jobs that have failed or wait for their time
with pick as (
    select t.id, t.most
-- part: jobs_table_rows
    where t.id = any($1::text[]) and t.state in ('failed', 'scheduled') for update of t
)
update {schema}.jobs t set status = 'pending', visibility_at = now(),
       attempts = case when coalesce($2::boolean, false) then 0 else least(t.attempts, greatest(pick.most - 1, 0)) end,
       expires_at = case when t.expires_at <= now() then null else t.expires_at end
from pick where t.id = pick.id returning t.id, 'ready' as state

-- name: rescue (ids)
-- official: nack
-- guard: only running jobs
-- confirm: Its worker may be alive: then the job is done twice, and the first to acknowledge it marks it completed.
with pick as (
    select t.id, t.may_run
-- part: jobs_table_rows
    where t.id = any($1::text[]) and t.state = 'running' for update of t
)
update {schema}.jobs t set status = 'pending', visibility_at = now() from pick where t.id = pick.id
returning t.id, case when pick.may_run then 'ready' else 'failed' end as state

-- name: extend (ids by)
-- official: what a worker does with a job that takes longer; never made shorter
-- guard: only running jobs whose lease ends before that time
with pick as (
    select t.id
-- part: jobs_table_rows
    where t.id = any($1::text[]) and t.state = 'running'
      and coalesce(t.visibility_at < now() + $2::interval, true) and $2::interval > interval '0'
    for update of t
)
update {schema}.jobs t set status = 'pending', visibility_at = now() + $2::interval from pick where t.id = pick.id
returning t.id, 'extended' as state

-- name: priority (ids n)
-- requires: column priority
-- official: no (a plain column; what it means is in the workers' statement)
-- guard: only jobs of another priority that wait
with pick as (
    select t.id
-- part: jobs_table_rows
    where t.id = any($1::text[]) and t.state in ('ready', 'scheduled') and t.rank is distinct from $2::int
    for update of t
)
update {schema}.jobs t set priority = $2::int from pick where t.id = pick.id
returning t.id, case when t.visibility_at > now() then 'scheduled' else 'ready' end as state

-- name: reschedule (ids at)
-- official: no (visibility_at, as it is set when a job is added)
-- guard: only jobs with another time that wait, were never taken (a later time would look like a lease) and do not
--   expire before
update {schema}.jobs set visibility_at = $2::timestamptz
where id = any($1::text[]) and status <> 'completed' and attempts = 0 and status <> 'in_transit'
  and visibility_at is distinct from $2::timestamptz and (visibility_at > now() or $2::timestamptz > now())
  and (expires_at is null or expires_at > greatest(now(), $2::timestamptz))
returning id, case when visibility_at > now() then 'scheduled' else 'ready' end as state

-- name: delete (ids)
-- official: no
-- guard: only jobs that do not run
with pick as (
    select t.id
-- part: jobs_table_rows
    where t.id = any($1::text[]) and t.state <> 'running'
    for update of t skip locked
)
delete from {schema}.jobs t using pick where t.id = pick.id returning t.id, 'deleted' as state

-- name: purge (queue states before limit)
-- official: no
-- guard: only completed jobs; failed ones where asked for. Where nothing tells when a job ended, the end of its last
--   lease counts
-- cost: no index finds what is finished
-- part: purge_of_table table=jobs; rows=jobs_table_rows; first=; queue=coalesce(t.queue_name, '(none)');
--   which=coalesce(t.ended, t.visibility_at, t.created) < coalesce($3::timestamptz, now()) and t.state =
--   any(coalesce($2::text[], '{completed}')) and t.state in ('completed', 'failed')
