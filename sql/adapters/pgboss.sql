-- adapter: pgboss
-- title: pg-boss (Node.js)
-- format: 2
-- schema: pgboss
-- id-type: text
-- tested-versions: 24 26 30-31 36-37 46
-- min-version: 24
-- states: scheduled=created ready=created,retry retry=retry blocked=created,retry running=active failed=failed
--   completed=completed cancelled=cancelled
-- tables: job queue version
-- note: A job's id is its queue and its uuid: "mail:0d4c…". No queue can be paused. pg-boss does not record which of
--   its instances has a job; from version 44 on it lists the instances themselves.
-- note: A larger priority runs sooner. No index tells how many jobs have failed or run: large tables are read in part,
--   or pg-boss' own cached counts are shown.
-- note: If the table has more than 128 MB, jobs are listed in the order of their rows, from the end of the table:
--   mostly those that were written last come first.
-- note: A failed job may have a copy in its dead letter queue: both the job and its copy can be run again.
-- note: The columns differ between versions. What only newer versions have is shown and offered from that version on.

-- name: detect
select n.nspname::text as schema from pg_namespace n where true
-- part: has_column table='job'; column='keep_until'
-- part: has_column table='queue'; column='dead_letter'
-- part: has_column table='version'; column='version'
order by 1

-- name: version
select version::text from {schema}.version

-- name: queues
-- a column that the inner table lacks is resolved as the column of the outer row: NULL, for versions without it
select q.name as queue, false as paused,
       concat_ws(', ', 'policy ' || q.policy, q.retry_limit || ' retries', 'lease ' || q.expire_seconds || ' s',
                 'heartbeat ' || q.heartbeat_seconds || ' s', 'dead letters to ' || q.dead_letter) as info,
       true as keeps
from (select null::int as heartbeat_seconds) d
cross join lateral (select name, policy, retry_limit, expire_seconds, heartbeat_seconds, dead_letter
                    from {schema}.queue) q
order by 1

-- name: counts
-- No index knows which jobs run or have failed. From 64 MB on, pg-boss' own counts are shown (version 37, some minutes
-- old at most), or as many pages are read at random and the rest is estimated.
with sample as materialized (
-- part: page_sample bytes=8192 * 8192.0
), sampled as materialized (
    select q.*, s.part, coalesce(s.part < 1 and q.failed_count is not null
                                 and q.monitor_on > now() - interval '10 min', false) as cached
    from sample s cross join (select null::bigint as deferred_count, null::bigint as ready_count,
                                     null::bigint as active_count,
                              null::bigint as failed_count, null::timestamptz as monitor_on) d
    cross join lateral (select name, deferred_count::bigint, ready_count::bigint, active_count::bigint,
                               failed_count::bigint, monitor_on
                        from {schema}.queue) q
), counted as materialized (
    select j.name, count(*) filter (where j.state = 'created' and not j.blocked and j.start_after > now()) as scheduled,
           count(*) filter (where j.state = 'retry' and not j.blocked and j.start_after > now()) as retry,
           count(*) filter (where j.state < 'active' and not j.blocked and j.start_after <= now()) as ready,
           count(*) filter (where j.state < 'active' and j.blocked) as blocked,
           count(*) filter (where j.state = 'active') as running, count(*) filter (where j.state = 'failed') as failed
    from (select false as blocked) d
    cross join lateral (select name, state, start_after, blocked
                        from {schema}.job tablesample system ((select 100 * part from sample))
                        where exists (select from sampled q where not q.cached)) j
    group by j.name
)
select q.name as queue, case when q.cached then q.deferred_count
                             else round(coalesce(c.scheduled, 0) / q.part)::bigint end as scheduled,
       case when q.cached then q.ready_count else round(coalesce(c.ready, 0) / q.part)::bigint end as ready,
       case when q.cached then 0 else round(coalesce(c.retry, 0) / q.part)::bigint end as retry,
       case when q.cached then q.active_count else round(coalesce(c.running, 0) / q.part)::bigint end as running,
       case when q.cached then q.failed_count else round(coalesce(c.failed, 0) / q.part)::bigint end as failed,
       {ms(o.oldest)} as oldest_ms,
       case when q.cached then null else round(coalesce(c.blocked, 0) / q.part)::bigint end as blocked,
       q.part < 1 as approx
from sampled q left join counted c on c.name = q.name
left join lateral (
    select j.start_after as oldest from (select false as blocked) d
    cross join lateral (select start_after, blocked, state from {schema}.job
                        where name = q.name and state < 'active' and not blocked and start_after <= now()
                        order by start_after limit 1) j) o on true
order by 1

-- name: counts_final
-- cost: reads all jobs, of a large table 64 MB
with sample as materialized (
-- part: page_sample bytes=8192 * 8192.0
)
select j.name as queue, round(count(*) filter (where j.state = 'completed') / s.part)::bigint as completed,
       round(count(*) filter (where j.state = 'cancelled') / s.part)::bigint as cancelled, s.part < 1 as approx
from sample s cross join (select name, state from {schema}.job tablesample system ((select 100 * part from sample))) j
where j.state in ('completed', 'cancelled') group by j.name, s.part order by 1

-- name: jobs
-- params: queue states raw_states error words not_words older_than younger_than min_tries top_tries ids n limit cursor
-- order: *: newest first, of a large table the last rows
-- Newest first; there is no index for that. A table of 128 MB and more is listed in the order of its rows, from its
-- end, 256 pages at a time until there are enough, 2 n pages at most: the newest rows are mostly there, and no row is
-- left out. It is sorted in spite of its size if an index leaves at most 20000 rows (those of a queue, or those that
-- wait), and before server 14, which can't start to read at a page. If texts must be searched, n jobs are read. A row
-- without an id gives the cursor to continue from. "s.by_place" is written there directly and not as a subquery: a
-- subquery would start parallel workers for each 256 pages.
with sample as materialized (
    select case when $14::text is not null then k.at is not null
                when $11::text[] is not null or t.size < 16384 * 8192.0
                     or current_setting('server_version_num')::int < 140000 then false
                when $1::text is null and not coalesce($2::text[] <@ '{scheduled,ready,retry}', false) then true
                else (select count(*) from (
                          select from (select false as blocked) d
                          cross join lateral (select name, state, blocked from {schema}.job) j
                          where ($1::text is null or j.name = $1::text)
                            and (coalesce(not $2::text[] <@ '{scheduled,ready,retry}', true) or j.state < 'active'
                                 and not j.blocked)
                          limit 20001) x) > 20000 end as by_place,
           coalesce(k.page + 1, t.pages) as top,
           greatest(coalesce(k.page + 1, t.pages) - 2 * coalesce($12::int, 10000)::bigint, 0) as low, k.at, k.part
    from (select coalesce(sum(pg_relation_size(relid)), 0) as size,
                 coalesce(max(pg_relation_size(relid)), 0) / current_setting('block_size')::int as pages
          from pg_partition_tree(to_regclass(format('%I.job', {schema_lit}::text))) where isleaf) t
    cross join (select split_part(c, '/', 1)::tid as at, split_part(c, '/', 2)::bigint as part,
                       substr(split_part(c, ',', 1), 2)::bigint as page
                from (select substring($14::text from '^\([0-9]{1,9},[0-9]{1,4}\)/[0-9]{1,10}$') as c) c) k
), looked_at as materialized (
    select j.*, j.name || ':' || j.id as key,
           case when j.state = 'active' then coalesce({ms(j.heartbeat_on)} + j.heartbeat_seconds * 1000::bigint,
                                                      {ms(j.started_on)}
                + coalesce(j.expire_seconds * 1000::bigint,
                           (extract(epoch from j.expire_in) * 1000)::bigint)) end as until,
           case when j.state in ('failed', 'retry', 'created')
                    then coalesce(j.output ->> 'message', j.output -> 'value' ->> 'message',
                case jsonb_typeof(j.output -> 'value') when 'string' then j.output ->> 'value' end,
                                  j.output::text) end as error,
           coalesce(j.at || '/' || j.part, j.created_on || '/' || j.newest_id) as cursor
    from sample s cross join lateral generate_series(case when s.by_place then s.top else 1 end,
                                              case when s.by_place then s.low else 0 end + 1, -256) p
    cross join lateral (
        select j.*, z.state as now_is, z.tries
        from (select false as blocked, null::timestamptz as heartbeat_on, null::int as heartbeat_seconds,
                     null::int as expire_seconds, null::interval as expire_in) d
        cross join lateral (
            select name, id, state, priority, retry_count, retry_limit, created_on, start_after, started_on,
                   completed_on, output, blocked, heartbeat_on, heartbeat_seconds, expire_seconds, expire_in,
                   created_on as newest, (id || '/' || name) collate "C" as newest_id, null::tid as at,
                   null::bigint as part
            from {schema}.job where not s.by_place
            union all
            select name, id, state, priority, retry_count, retry_limit, created_on, start_after, started_on,
                   completed_on, output, blocked, heartbeat_on, heartbeat_seconds, expire_seconds, expire_in, null,
                   null, ctid, tableoid::bigint
            from {schema}.job where s.by_place and ctid >= format('(%s,0)', greatest(p - 256, s.low))::tid
              and ctid < format('(%s,0)', p)::tid
              and (s.at is null or (ctid, tableoid::bigint) < (s.at, s.part))) j
        cross join lateral (
            select case when j.state = 'active' then 'running' when j.state > 'active' then j.state::text
                        when j.blocked then 'blocked'
                        when j.start_after <= now() then 'ready' when j.state = 'retry' then 'retry'
                        else 'scheduled' end as state,
                   case when j.started_on is null then 0 else least(j.retry_count,
                                                                    2147483646) + (
                                                                            j.state <> 'active')::int end as tries) z
        where ($1::text is null or j.name = $1::text)
          and ($3::{schema}.job_state[] is null or j.state = any($3::{schema}.job_state[]))
          and ($2::text[] is null or z.state = any($2::text[]))
          -- in the order of the index of waiting jobs
          and (coalesce(not $2::text[] <@ '{scheduled,ready,retry}', true) or not j.blocked)
          and ($4::text is null or j.state = 'failed' or j.output is not null and j.state in ('retry', 'created'))
-- part: age_and_tries created=j.created_on; tries=z.tries; older=$7; younger=$8; min=$9; top=$10
          and ($11::text[] is null or (j.name, j.id) in (
                  select left(i, -37), right(i, 36)::uuid from unnest($11::text[]) i
                  where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'))
          -- two queues may have jobs with one id
          and ($14::text is null or s.at is not null or (j.created_on, (j.id || '/' || j.name) collate "C") <
                  (case when $14::text ~ '^[^/(]+/[0-9a-f-]{36}/' then split_part($14::text, '/', 1)::timestamptz end,
                   substr($14::text, strpos($14::text, '/') + 1)))
        order by newest desc, newest_id desc, at desc, part desc
        limit case when $4::text is null and $5::text[] is null and $6::text[] is null then coalesce($13::int, 100)
                   else coalesce($12::int, 10000) end) j
-- part: order_of_texts error=$4; words=$5; not_words=$6; n=$12; top=$13; text=error
-- part: has_words p=$5; text=key, error
-- part: lacks_words p=$6; text=key, error
    order by newest desc, newest_id desc, at desc, part desc limit coalesce($13::int, 100)
), numbered as (
    select (select count(*) from looked_at) as looked, (select count(*) from matching) as found
)
select z.id, queue, kind, z.state, priority, tries, max_tries, created_ms, run_after_ms, changed_ms, started_ms,
       finished_ms, node, lease, lease_until_ms, error, cursor, stale
from (
    select key as id, name as queue, '' as kind, now_is as state, priority, tries,
           least(retry_limit, 2147483646) + 1 as max_tries,
           {ms(created_on)} as created_ms, {ms(start_after)} as run_after_ms,
           {ms(greatest(created_on, started_on, completed_on))} as changed_ms, {ms(started_on)} as started_ms,
           {ms(case when state > 'active' then completed_on end)} as finished_ms, null::text as node,
           null::bigint as lease, until as lease_until_ms, left(error, 300) as error,
           cursor, until < {ms(now())} as stale, newest, newest_id, at, part, 0 as mark
    from matching
    union all
    (select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, null, '', cursor, null, newest,
            newest_id, at, part, 1
     from looked_at, numbered where not ($4::text is null and $5::text[] is null and $6::text[] is null)
       and looked >= coalesce($12::int, 10000) and found < coalesce($13::int, 100)
     order by newest, newest_id, at, part limit 1)
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, null, '', format('(%s,0)/0', low),
           null, null, null, null, null, 1
    from sample, numbered where by_place and low > 0 and found < coalesce($13::int, 100)
      and ($4::text is null and $5::text[] is null and $6::text[] is null or looked < coalesce($12::int, 10000))
) z order by mark, newest desc, newest_id desc, at desc, part desc

-- name: job (ids)
select j.name || ':' || j.id as id, j.name as queue, '' as kind,
       case when j.state = 'active' then 'running' when j.state > 'active' then j.state::text
            when j.blocked then 'blocked'
            when j.start_after <= now() then 'ready' when j.state = 'retry' then 'retry' else 'scheduled' end as state,
       j.priority, case when j.started_on is null then 0
                        else least(j.retry_count, 2147483646) + (j.state <> 'active')::int end as tries,
       least(j.retry_limit, 2147483646) + 1 as max_tries,
       {ms(j.created_on)} as created_ms, {ms(j.start_after)} as run_after_ms,
       {ms(greatest(j.created_on, j.started_on, j.completed_on))} as changed_ms, {ms(j.started_on)} as started_ms,
       {ms(case when j.state > 'active' then j.completed_on end)} as finished_ms, null::text as node,
       null::bigint as lease, u.until as lease_until_ms,
       case when j.state in ('failed', 'retry', 'created')
                then coalesce(j.output ->> 'message', j.output -> 'value' ->> 'message',
            case jsonb_typeof(j.output -> 'value') when 'string' then j.output ->> 'value' end,
                              j.output::text) end as error,
       null::text as cursor, u.until < {ms(now())} as stale, j.singleton_key as unique_key,
       left(j.data::text, 1000000) as payload,
       case when j.data is null then '' else 'json' end as payload_format,
       case when j.data is not null then 'application/json' end as payload_type,
       octet_length(j.data::text)::bigint as payload_size,
       case when j.state = 'completed' then left(j.output::text, 65536) end as result,
       j.source_name || ':' || j.source_id as origin_id,
       coalesce(j.expire_seconds * 1000::bigint, (extract(epoch from j.expire_in) * 1000)::bigint) as run_timeout_ms,
       j.heartbeat_seconds * 1000::bigint as lease_timeout_ms, j.state::text as raw_state
from (select false as blocked, null::timestamptz as heartbeat_on, null::int as heartbeat_seconds,
             null::int as expire_seconds,
             null::interval as expire_in, null::text as source_name, null::uuid as source_id) d
cross join lateral (select name, id, state, priority, retry_count, retry_limit, created_on, start_after, started_on,
                           completed_on, output, data, singleton_key, blocked, heartbeat_on, heartbeat_seconds,
                           expire_seconds, expire_in, source_name, source_id
                    from {schema}.job
                    where (name, id) in (select left(i, -37), right(i, 36)::uuid from unnest($1::text[]) i
                                         where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' limit 1)) j
cross join lateral (
    select case when j.state = 'active' then coalesce({ms(j.heartbeat_on)} + j.heartbeat_seconds * 1000::bigint,
                                                      {ms(j.started_on)}
                + coalesce(j.expire_seconds * 1000::bigint,
                           (extract(epoch from j.expire_in) * 1000)::bigint)) end as until) u

-- name: attempts (ids)
-- only the last failure is kept, with its stack
select case when retry_count < retry_limit and state <> 'failed' and started_on is null then 1
            else least(retry_count, 2147483646) + 1 end as number,
       null::text as node, {ms(started_on)} as started_ms,
       {ms(completed_on)} as ended_ms, case when state = 'completed' then 'completed' else 'failed' end as outcome,
       case when state = 'completed' then '' else coalesce(output ->> 'message', output -> 'value' ->> 'message',
                                                           output::text) end as error,
       left(coalesce(output ->> 'stack', output -> 'value' ->> 'stack'), 65536) as trace
from {schema}.job
where (name, id) in (select left(i, -37), right(i, 36)::uuid from unnest($1::text[]) i
                     where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' limit 1)
  and started_on is not null and (output is not null or state = 'completed')

-- name: groups (queue limit)
-- No index knows which jobs failed: of a table of more than 1 GB as many pages are read at random, so there are more
-- failed jobs than the count says.
with sample_rows as materialized (
-- part: page_sample bytes=131072 * 8192.0
), failed_jobs as materialized (
    select name || ':' || id as id, name as queue, completed_on as at,
           coalesce(output ->> 'message', output -> 'value' ->> 'message',
                    case jsonb_typeof(output -> 'value') when 'string' then output ->> 'value' end, output::text,
                    '') as error
    from {schema}.job tablesample system ((select 100 * part from sample_rows))
    where state = 'failed' and ($1::text is null or name = $1::text) order by completed_on desc nulls last limit 5000
)
select error_key, queue, count(*) as n, (select count(*) from failed_jobs) = 5000
    or (select part < 1 from sample_rows) as capped, {ms(min(at))} as first_ms, {ms(max(at))} as last_ms,
       (array_agg(left(error, 1000) order by at desc))[1] as sample, (array_agg(id order by at desc))[1] as sample_id
from (select *, {error_key(error)} as error_key from failed_jobs) g
group by error_key, queue order by 3 desc, 2, 1 limit coalesce($2::int, 200)

-- name: nodes
-- requires: version >= 44
-- An instance beats each heartbeat_seconds; if three beats are missing, it is dead. What it then had in its
-- hands is not known: its jobs expire by themselves.
select left(coalesce(i.name, i.host) || ' ' || i.id, 100) as node,
       case when i.stopped_on is not null then 'stopped' when not x.live then 'dead'
            when i.heartbeat_on < now() - i.heartbeat_seconds * interval '2 s' then 'late' else 'up' end as state,
       i.host, i.pid, i.version, {ms(i.started_on)} as started_ms, {ms(i.heartbeat_on)} as heartbeat_ms,
       w.slots, case when x.live then w.running else 0 end as running, w.queues
from {schema}.instance i
cross join lateral (select i.stopped_on is null
                           and i.heartbeat_on >= now() - i.heartbeat_seconds * interval '3 s' as live) x
cross join lateral (
    select least(coalesce(sum(n.workers * n.batch), 0), 2147483647)::int as slots,
           least(coalesce(sum(n.active), 0), 2147483647)::int as running,
           coalesce(string_agg(distinct k ->> 'queue', ',' order by k ->> 'queue'), '') as queues
    from jsonb_array_elements(case when jsonb_typeof(i.workers) = 'array' then i.workers else '[]' end) k
    cross join lateral (
        select case when jsonb_typeof(k -> 'localConcurrency') = 'number'
                    then greatest((k ->> 'localConcurrency')::numeric, 0) end as workers,
               case when jsonb_typeof(k -> 'batchSize') = 'number'
                    then greatest((k ->> 'batchSize')::numeric, 0) end as batch,
               case when jsonb_typeof(k -> 'active') = 'number'
                    then greatest((k ->> 'active')::numeric, 0) end as active) n) w
where x.live or coalesce(i.stopped_on, i.heartbeat_on) > now() - interval '1 day' order by i.started_on, i.id limit 1000

-- name: schedules (schedule)
select s.name || coalesce(nullif(':' || s.key, ':'), '') as name, s.cron, coalesce(s.timezone, 'UTC') as tz,
       s.name as queue, '' as kind, 'active' as state, {ms(j.created_on)} as last_run_ms,
       case when s.last_job_id is null then null when j.id is null then 'gone' when j.state = 'active' then 'running'
            when j.state > 'active' then j.state::text else 'ready' end as last_outcome,
       null::bigint as next_run_ms, s.name || ':' || s.last_job_id as last_job, s.data::text as payload,
       {ms(s.created_on)} as created_ms, {ms(s.updated_on)} as changed_ms
from (select '' as key, null::uuid as last_job_id) d
cross join lateral (select name, key, cron, timezone, data, created_on, updated_on, last_job_id
                    from {schema}.schedule) s
left join {schema}.job j on j.name = s.name and j.id = s.last_job_id
where $1::text is null or s.name || coalesce(nullif(':' || s.key, ':'), '') = $1::text order by 1

-- name: requeue (ids)
-- official: retry (failed), resume (cancelled), update with startAfter (scheduled, retry)
-- guard: only jobs that do not run and are neither completed nor ready already
with chosen as (
    select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
    where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
), again as (
    -- From version 45 on, upsert() marks its job in a column, and resume clears the mark: two marked jobs of one key
    -- can't wait. An UPDATE can't name a column that older versions lack, so such a row is deleted and inserted again,
    -- as pg-boss itself does with a job that fails.
    delete from {schema}.job j using chosen i
    where j.name = i.name and j.id = i.id and j.state = 'cancelled' and to_jsonb(j) ->> 'upsert_by_key' = 'true'
    returning j.*
), updated as (
    update {schema}.job j
    set state = case j.state when 'failed' then 'retry' when 'cancelled' then 'created' else j.state end,
        retry_limit = least(j.retry_limit, 2147483646) + (j.state = 'failed')::int,
        completed_on = case when j.state = 'failed'
                                 and (select version < 37 from {schema}.version) then j.completed_on end,
        keep_until = case when j.state < 'active' then now() + case
            when isfinite(j.keep_until) and isfinite(j.start_after)
                then least(greatest(j.keep_until - j.start_after, interval '0'), interval '3650 days')
            else interval '14 days' end else j.keep_until end,
        start_after = case when j.state < 'active' then now()
                           when (select version > 37 from {schema}.version) then greatest(j.start_after, now())
                           else j.start_after end
    from chosen i where j.name = i.name and j.id = i.id
      and (j.state = 'failed' or j.state = 'cancelled' and to_jsonb(j) ->> 'upsert_by_key' is distinct from 'true'
           or j.state < 'active' and j.start_after > now())
    returning j.name, j.id, j.start_after
), inserted as (
    insert into {schema}.job
    select r.* from again a
    cross join lateral jsonb_populate_record(null::{schema}.job, to_jsonb(a) || jsonb_build_object(
        'state', 'created', 'completed_on', null, 'upsert_by_key', null,
        'start_after', greatest(a.start_after, now()))) r
    returning name, id, start_after
), changed as (
    select * from updated union all select * from inserted
), woken as (
    select pg_notify('pgboss_' || left(encode(sha224(convert_to({schema_lit}::text, 'UTF8')), 'hex'), 24), q.name)
    from (select false as notify) d cross join lateral (select name, notify from {schema}.queue) q
    where q.notify and q.name in (select c.name from changed c where c.start_after = now())
)
select c.name || ':' || c.id as id, case when c.start_after > now() then 'retry' else 'ready' end as state
from changed c where (select count(*) from woken) >= 0

-- name: rescue (ids)
-- official: no (what its own restore() does)
-- guard: only running jobs
-- requires: version >= 30
-- confirm: a worker that is still alive goes on with the job, so it may run twice; its answer is then dropped
with chosen as (
    select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
    where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
), again as ( -- the mark of upsert(), as in requeue
    delete from {schema}.job j using chosen i
    where j.name = i.name and j.id = i.id and j.state = 'active' and to_jsonb(j) ->> 'upsert_by_key' = 'true'
    returning j.*
), updated as (
    update {schema}.job j set state = 'created', started_on = null, heartbeat_on = null from chosen i
    where j.name = i.name and j.id = i.id and j.state = 'active'
      and to_jsonb(j) ->> 'upsert_by_key' is distinct from 'true'
    returning j.name, j.id
), inserted as (
    insert into {schema}.job
    select r.* from again a
    cross join lateral jsonb_populate_record(null::{schema}.job, to_jsonb(a) || jsonb_build_object(
        'state', 'created', 'started_on', null, 'heartbeat_on', null, 'upsert_by_key', null)) r
    returning name, id
)
select name || ':' || id as id, 'ready' as state from updated
union all
select name || ':' || id, 'ready' from inserted

-- name: extend (ids by)
-- official: touch (queues with a heartbeat); of the others the time to expire is raised
-- guard: only running jobs that would expire before that time
-- requires: version >= 30
update {schema}.job j set heartbeat_on = case when j.heartbeat_seconds is not null then
                       now() + $2::interval - j.heartbeat_seconds * interval '1 s' else j.heartbeat_on end,
    expire_seconds = case when j.heartbeat_seconds is null then
                         ceil(extract(epoch from now() + $2::interval - j.started_on))::int else j.expire_seconds end
from (select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
      where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$') i
where j.name = i.name and j.id = i.id and j.state = 'active' and case when j.heartbeat_seconds is null
               then j.expire_seconds < ceil(extract(epoch from now() + $2::interval - j.started_on))::int
           else j.heartbeat_on is null
                or j.heartbeat_on < now() + $2::interval - j.heartbeat_seconds * interval '1 s' end
returning j.name || ':' || j.id as id, 'extended' as state

-- name: cancel (ids)
-- official: cancel
-- guard: only jobs that have not ended
-- confirm: a worker goes on with a running job until it ends; its answer is then dropped
update {schema}.job j set state = 'cancelled', completed_on = now()
from (select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
      where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$') i
where j.name = i.name and j.id = i.id and j.state < 'completed'
returning j.name || ':' || j.id as id, 'cancelled' as state

-- name: delete (ids)
-- official: deleteJob
-- guard: only jobs that do not run
delete from {schema}.job j
using (select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
       where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$') i
where j.name = i.name and j.id = i.id and j.state <> 'active' returning j.name || ':' || j.id as id, 'deleted' as state

-- name: priority (ids n)
-- official: update(priority)
-- guard: only jobs of another priority that wait
update {schema}.job j set priority = $2::int
from (select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
      where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$') i
where j.name = i.name and j.id = i.id and j.state < 'active' and j.priority <> $2::int
returning j.name || ':' || j.id as id, case when j.start_after <= now() then 'ready'
                                            when j.state = 'retry' then 'retry' else 'scheduled' end as state

-- name: reschedule (ids at)
-- official: update(startAfter)
-- guard: only jobs with another time that wait; one that has ended is requeued
with updated as (
    update {schema}.job j set start_after = $2::timestamptz,
                              keep_until = $2::timestamptz + case -- a larger difference may not fit an interval
            when j.keep_until between timestamptz '1900-01-01' and timestamptz '9999-01-01'
             and j.start_after between timestamptz '1900-01-01' and timestamptz '9999-01-01'
            then least(greatest(j.keep_until - j.start_after, interval '0'), interval '3650 days')
            else interval '14 days' end
    from (select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
          where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$') i
    where j.name = i.name and j.id = i.id and j.state < 'active' and j.start_after <> $2::timestamptz
    returning j.name, j.id, j.start_after, j.state
), woken as (
    select pg_notify('pgboss_' || left(encode(sha224(convert_to({schema_lit}::text, 'UTF8')), 'hex'), 24), q.name)
    from (select false as notify) d cross join lateral (select name, notify from {schema}.queue) q
    where q.notify and q.name in (select u.name from updated u where u.start_after <= now())
)
select u.name || ':' || u.id as id, case when u.start_after <= now() then 'ready' when u.state = 'retry' then 'retry'
                                         else 'scheduled' end as state
from updated u where (select count(*) from woken) >= 0

-- name: redrive (ids)
-- official: redrive
-- guard: only jobs that wait and came from another queue
-- requires: version >= 36
-- A job that its old queue does not take, because its key is there already, stays here as failed with this reason.
-- Before 12.35, pg-boss itself lost such a job.
with chosen as (
    select left(i, -37) as name, right(i, 36)::uuid as id from unnest($1::text[]) i
    where i ~ ':[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
), moved as (
    delete from {schema}.job j using chosen i, {schema}.queue q
    where j.name = i.name and j.id = i.id and j.state < 'active' and q.name = j.source_name
      and not exists (select from {schema}.job k
                      where j.policy = 'key_strict_fifo' and k.policy = j.policy and k.name = j.name
                        and k.singleton_key = j.singleton_key and k.state in ('active', 'retry', 'failed'))
    returning j.*, gen_random_uuid() as new_id
), inserted as (
    insert into {schema}.job
    select r.* from moved m join {schema}.queue q on q.name = m.source_name
    cross join (select version > 37 as is_new from {schema}.version) v
    cross join lateral jsonb_populate_record(null::{schema}.job, to_jsonb(m) || jsonb_build_object(
        'id', m.new_id, 'name', m.source_name, 'state', 'created', 'retry_count', 0, 'start_after', now(),
        'created_on', now(), 'started_on', null, 'completed_on', null, 'output', null, 'heartbeat_on', null,
        'singleton_on', null, 'blocked', false, 'blocking', false, 'pending_dependencies', 0, 'upsert_by_key', null,
        'retry_limit', q.retry_limit, 'retry_backoff', q.retry_backoff, 'retry_delay', q.retry_delay,
        'retry_delay_max', q.retry_delay_max, 'expire_seconds', q.expire_seconds,
        'keep_until', now() + q.retention_seconds * interval '1 s', 'deletion_seconds', q.deletion_seconds,
        'policy', q.policy, 'dead_letter', case when v.is_new then q.dead_letter end,
        'heartbeat_seconds', case when v.is_new then q.heartbeat_seconds else m.heartbeat_seconds end,
        'source_name', null, 'source_id', null, 'source_created_on', null, 'source_retry_count', null,
        'source_output', null, 'source_root_id', coalesce(to_jsonb(m) ->> 'source_root_id', m.source_id::text))
        || case when v.is_new then '{}' else '{"group_id": null, "group_tier": null}'::jsonb end) r
    order by m.created_on
    on conflict do nothing returning id
), refused as (
    insert into {schema}.job
    select r.* from moved m join {schema}.queue q on q.name = m.source_name
    cross join lateral jsonb_populate_record(null::{schema}.job, to_jsonb(m) || case
        -- of several with one key, which must run in their order, only the oldest may fail
        when m.policy = 'key_strict_fifo' and exists (
            select from moved o where o.name = m.name and o.singleton_key = m.singleton_key
                                  and o.new_id not in (select id from inserted)
                                  and (o.created_on, o.id) < (m.created_on, m.id)) then '{}'
        else jsonb_build_object(
            'state', 'failed', 'completed_on', now(),
            'source_output', coalesce(nullif(to_jsonb(m) -> 'source_output', 'null'), m.output),
            'output', jsonb_build_object(
                'message', concat('Not redriven: queue ', q.name,
                                  coalesce(' already has a job with singletonKey ' || m.singleton_key,
                                           ' already has a job this one conflicts with'),
                                  ' under its ', q.policy, ' policy'),
                'reason', 'redrive_conflict', 'destination', q.name, 'policy', q.policy,
                'singletonKey', m.singleton_key)) end) r
    where m.new_id not in (select id from inserted) returning name, id, state
)
select m.name || ':' || m.id as id,
       case when r.id is null then 'ready' when r.state = 'failed' then 'failed' end as state,
       case when r.id is null then 'back in ' || m.source_name when r.state = 'failed' then 'its key waits in '
                || m.source_name else 'waits for the job before it' end as why
from moved m left join refused r on r.name = m.name and r.id = m.id order by m.created_on, m.id

-- name: purge (queue states before limit)
-- official: deleteStoredJobs
-- guard: only jobs that have ended; a completed one that others still wait for is left until pg-boss has told them
with gone as (
    delete from {schema}.job
    where (name, id) in (select k.name, k.id from (select false as blocking) d
                         cross join lateral (select name, id, state, completed_on, blocking from {schema}.job) k
                         where k.state > 'active' and not (k.blocking and k.state = 'completed')
                           and ($1::text is null or k.name = $1::text)
                           and ($2::text[] is null or k.state::text = any($2::text[]))
                           and ($3::timestamptz is null or k.completed_on < $3::timestamptz)
                         limit coalesce($4::int, 1000) for update of k skip locked)
      and state > 'active'
    returning name, id
)
select name || ':' || id as id, 'purged' as state from gone

-- name: purge_preview (queue states before)
select 'purged' as state, count(*) as n, k.state::text as why
from (select false as blocking) d cross join lateral (select name, state, completed_on, blocking from {schema}.job) k
where k.state > 'active' and not (k.blocking and k.state = 'completed') and ($1::text is null or k.name = $1::text)
  and ($2::text[] is null or k.state::text = any($2::text[]))
  and ($3::timestamptz is null or k.completed_on < $3::timestamptz)
group by k.state order by k.state

-- name: cron_remove (schedule)
-- official: unschedule
-- confirm: pg-boss can't switch a schedule off; it is removed until the application sets it again
with deleted as (
    delete from {schema}.schedule s
    where s.ctid in (select k.at from (select '' as key) d
                     cross join lateral (select ctid as at, name, key from {schema}.schedule) k
                     where k.name || coalesce(nullif(':' || k.key, ':'), '') = $1::text)
    returning s.name
)
select $1::text as id, 'removed' as state from deleted d
