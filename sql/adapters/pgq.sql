-- adapter: pgq
-- title: PgQ
-- format: 2
-- schema: pgq
-- touches: *
-- id-type: text
-- tested-versions: 3.5
-- min-version: 3.2
-- tables: queue consumer subscription tick retry_queue
-- note: Events are handed out in batches between ticks and have no state of their own. Ready and running are numbers of
--   events, computed from ticks for the consumer that lags most. Nodes are consumers. Only events that wait for a retry
--   are jobs here: "subscription/event".
-- note: A paused queue has no new ticks: events that come in wait, batches already cut are handed out.
-- note: Retried events go back into their queue when pgq.maint_retry_events() runs (pgqd calls it every two minutes).

-- name: detect
select n.nspname::text as schema from pg_namespace n where n.nspname = 'pgq'
-- part: has_column table='retry_queue'; column='ev_retry_after'
-- part: has_column table='subscription'; column='sub_last_tick'

-- name: version
-- if PgQ was loaded as a script, it has no version number: its newest function shows the version
select coalesce((select extversion from pg_extension where extname = 'pgq'),
                case when to_regprocedure(format('%I.jsontriga()', {schema_lit}::text)) is not null then '3.5'
                     else '3.2' end) as version

-- name: queues
select q.queue_name as queue, q.queue_ticker_paused as paused,
       concat_ws(', ', case when q.queue_disable_insert then 'inserting is switched off' end,
                 'last tick '
                 || case when isfinite(t.tick_time) then date_trunc('second', now() - t.tick_time)::text end || ' ago',
                 'tick every ' || q.queue_ticker_max_count || ' events or ' || q.queue_ticker_max_lag,
                 (select count(*) || ' consumers' from {schema}.subscription s where s.sub_queue = q.queue_id)) as info
from {schema}.queue q
left join lateral (select tick_time from {schema}.tick t where t.tick_queue = q.queue_id order by t.tick_id desc
                   limit 1) t on true order by 1

-- name: counts
-- the number of events after the last tick comes from the sequence; ev_retry_after has an index
with retrying as (
    select ev_queue, count(*) filter (where ev_retry_after > now()) as waits, count(*) as n from {schema}.retry_queue
    group by ev_queue
)
select q.queue_name as queue, 0::bigint as scheduled,
       greatest(coalesce(c.waits, 0), 0) + coalesce(r.n - r.waits, 0) as ready,
       coalesce(r.waits, 0) as retry, coalesce(c.running, 0)::bigint as running, 0::bigint as failed,
       {ms(case when c.waits > 0 then c.since end)} as oldest_ms, true as approx
from {schema}.queue q
left join retrying r on r.ev_queue = q.queue_id
left join lateral (
    select max(coalesce(pg_sequence_last_value(to_regclass(q.queue_event_seq)), 1) - coalesce(nt.tick_event_seq,
            lt.tick_event_seq)) as waits,
           sum(nt.tick_event_seq - lt.tick_event_seq) as running, min(coalesce(nt.tick_time, lt.tick_time)) as since
    from {schema}.subscription s
    left join {schema}.tick lt on lt.tick_queue = s.sub_queue and lt.tick_id = s.sub_last_tick
    left join {schema}.tick nt on nt.tick_queue = s.sub_queue and nt.tick_id = s.sub_next_tick
        and s.sub_batch is not null
    where s.sub_queue = q.queue_id) c on true
order by 1

-- name: jobs (queue states kind node words not_words older_than younger_than min_tries top_tries ids limit cursor)
-- order: *: next due first
-- the events that wait for a retry, by the time when they are due
select e.ev_owner || '/' || e.ev_id as id, q.queue_name as queue, coalesce(e.ev_type, '') as kind, s.state,
       null::int as priority, coalesce(e.ev_retry, 0) as tries, null::int as max_tries, {ms(e.ev_time)} as created_ms,
       {ms(e.ev_retry_after)} as run_after_ms, null::bigint as changed_ms, null::bigint as started_ms,
       null::bigint as finished_ms, c.co_name as node, null::bigint as lease, null::bigint as lease_until_ms,
       '' as error, e.ev_retry_after::text || '/' || e.ev_owner || '/' || e.ev_id as cursor
from {schema}.retry_queue e
join {schema}.queue q on q.queue_id = e.ev_queue
left join {schema}.subscription b on b.sub_id = e.ev_owner and b.sub_queue = e.ev_queue
left join {schema}.consumer c on c.co_id = b.sub_consumer
cross join lateral (select case when e.ev_retry_after > now() then 'retry' else 'ready' end as state) s
cross join (select $13::text ~ '^[^/]+/[0-9]{1,9}/[0-9]{1,18}$' as ok) c2
where ($1::text is null or q.queue_name = $1::text)
  and ($2::text[] is null or s.state = any($2::text[]))
  and ($3::text is null or e.ev_type = $3::text)
  and ($4::text is null or c.co_name = $4::text)
-- part: has_words p=$5; text=e.ev_owner || '/' || e.ev_id, q.queue_name, e.ev_type
-- part: lacks_words p=$6; text=e.ev_owner || '/' || e.ev_id, q.queue_name, e.ev_type
-- part: age_and_tries created=e.ev_time; tries=coalesce(e.ev_retry, 0); older=$7; younger=$8; min=$9; top=$10
  and ($11::text[] is null or (e.ev_owner, e.ev_id) in (select split_part(i, '/', 1)::int, split_part(i, '/', 2)::bigint
                                                       from unnest($11::text[]) i where i ~ '^[0-9]{1,9}/[0-9]{1,18}$'))
  and ($13::text is null or (e.ev_retry_after, e.ev_owner, e.ev_id) >
          (case when c2.ok then split_part($13::text, '/', 1)::timestamptz end,
           case when c2.ok then split_part($13::text, '/', 2)::int end,
           case when c2.ok then split_part($13::text, '/', 3)::bigint end))
order by e.ev_retry_after, e.ev_owner, e.ev_id limit coalesce($12::int, 100)

-- name: job (ids)
select e.ev_owner || '/' || e.ev_id as id, q.queue_name as queue, coalesce(e.ev_type, '') as kind,
       case when e.ev_retry_after > now() then 'retry' else 'ready' end as state, null::int as priority,
       coalesce(e.ev_retry, 0) as tries, null::int as max_tries, {ms(e.ev_time)} as created_ms,
       {ms(e.ev_retry_after)} as run_after_ms, null::bigint as changed_ms, null::bigint as started_ms,
       null::bigint as finished_ms, c.co_name as node, null::bigint as lease, null::bigint as lease_until_ms,
       '' as error, null::text as cursor, left(e.ev_data, 1000000) as payload,
       case when e.ev_data is null then '' else 'text' end as payload_format, 'text/plain' as payload_type,
       octet_length(e.ev_data)::bigint as payload_size,
       nullif(concat_ws(' · ', e.ev_extra1, e.ev_extra2, e.ev_extra3, e.ev_extra4), '') as result
from {schema}.retry_queue e
join {schema}.queue q on q.queue_id = e.ev_queue
left join {schema}.subscription b on b.sub_id = e.ev_owner and b.sub_queue = e.ev_queue
left join {schema}.consumer c on c.co_id = b.sub_consumer
where (e.ev_owner, e.ev_id) in (select split_part(i, '/', 1)::int, split_part(i, '/', 2)::bigint
                                from unnest($1::text[]) i where i ~ '^[0-9]{1,9}/[0-9]{1,18}$' limit 1)

-- name: nodes
-- a consumer is one name for all its queues; only the time of its last request shows whether it is alive
select c.co_name as node, 'unknown' as state, null::text as host, null::int as pid, null::bigint as started_ms,
       {ms(max(s.sub_active))} as heartbeat_ms,
       coalesce(sum(nt.tick_event_seq - lt.tick_event_seq), 0)::bigint as running, count(s.sub_batch) as leases,
       null::bigint as expired, string_agg(q.queue_name, ',' order by q.queue_name) as queues
from {schema}.consumer c
join {schema}.subscription s on s.sub_consumer = c.co_id
join {schema}.queue q on q.queue_id = s.sub_queue
left join {schema}.tick lt on lt.tick_queue = s.sub_queue and lt.tick_id = s.sub_last_tick
left join {schema}.tick nt on nt.tick_queue = s.sub_queue and nt.tick_id = s.sub_next_tick and s.sub_batch is not null
group by c.co_name order by 1

-- name: leases (node queue limit)
select s.sub_batch as lease, c.co_name as node, q.queue_name as queue, nt.tick_event_seq - lt.tick_event_seq as jobs,
       {ms(s.sub_active)} as started_ms, null::bigint as lease_until_ms, '' as job_ids,
       'handed out again when the consumer asks' as effect
from {schema}.subscription s
join {schema}.consumer c on c.co_id = s.sub_consumer
join {schema}.queue q on q.queue_id = s.sub_queue
left join {schema}.tick lt on lt.tick_queue = s.sub_queue and lt.tick_id = s.sub_last_tick
left join {schema}.tick nt on nt.tick_queue = s.sub_queue and nt.tick_id = s.sub_next_tick
where s.sub_batch is not null and ($1::text is null or c.co_name = $1::text)
  and ($2::text is null or q.queue_name = $2::text)
order by s.sub_active, s.sub_batch limit coalesce($3::int, 200)

-- name: requeue (ids)
-- official: no (there is no call; maint_retry_events() takes what is due)
-- guard: only events that wait and are not due already
-- mode: deferred
update {schema}.retry_queue set ev_retry_after = now()
where (ev_owner, ev_id) in (select split_part(i, '/', 1)::int, split_part(i, '/', 2)::bigint
                            from unnest($1::text[]) i where i ~ '^[0-9]{1,9}/[0-9]{1,18}$')
  and ev_retry_after > now()
returning ev_owner || '/' || ev_id as id, 'ready' as state

-- name: reschedule (ids at)
-- official: no
update {schema}.retry_queue set ev_retry_after = $2::timestamptz
where ev_retry_after <> $2::timestamptz and (ev_owner, ev_id)
    in (select split_part(i, '/', 1)::int, split_part(i, '/', 2)::bigint
                            from unnest($1::text[]) i where i ~ '^[0-9]{1,9}/[0-9]{1,18}$')
returning ev_owner || '/' || ev_id as id, case when ev_retry_after > now() then 'retry' else 'ready' end as state

-- name: delete (ids)
-- official: no
delete from {schema}.retry_queue
where (ev_owner, ev_id) in (select split_part(i, '/', 1)::int, split_part(i, '/', 2)::bigint
                            from unnest($1::text[]) i where i ~ '^[0-9]{1,9}/[0-9]{1,18}$')
returning ev_owner || '/' || ev_id as id, 'deleted' as state

-- name: pause (queue)
-- official: set_queue_config(ticker_paused); batches that are cut already are handed out
select queue_name as id, 'paused' as state
from {schema}.queue cross join lateral {schema}.set_queue_config(queue_name, 'ticker_paused', 'true') c
where queue_name = $1::text and not queue_ticker_paused

-- name: resume (queue)
-- official: set_queue_config(ticker_paused)
select queue_name as id, 'resumed' as state
from {schema}.queue cross join lateral {schema}.set_queue_config(queue_name, 'ticker_paused', 'false') c
where queue_name = $1::text and queue_ticker_paused
