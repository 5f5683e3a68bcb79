-- Sections of the two systems whose nodes hold leases in a table work_queue; {unlock}: what releases all of a node.
-- name: nodes
-- a node is known by the jobs it holds; it has no heartbeat
select w.lock_key::text as node, 'unknown' as state, count(*) as running, count(*) as leases,
       count(*) filter (where w.lock_timeout < now()) as expired, string_agg(distinct q.queue::text, ',') as queues,
       {ms(max(w.lock_timeout)::timestamptz)} as lease_until_ms
from {schema}.work_queue w join {schema}.queue q on q.id = w.id where w.lock_key is not null group by 1 order by 1

-- name: leases (node queue limit)
select w.lock_key::text as node, q.queue::text as queue, 1::bigint as jobs, {ms(w.started::timestamptz)} as started_ms,
       {ms(w.lock_timeout::timestamptz)} as lease_until_ms,
       w.version::bigint as version, w.id::text as job_ids, q.tries, '→ ready' as effect
from {schema}.work_queue w join {schema}.queue q on q.id = w.id
where w.lock_key is not null and ($1::text is null or w.lock_key = $1::text)
  and ($2::text is null or q.queue = $2::text)
order by w.lock_timeout, w.id limit coalesce($3::int, 200)

-- name: rescue (ids)
-- official: no (unlocking, of one job instead of a whole node)
-- guard: only jobs that a node holds
-- confirm: Its node may be alive: then the job is done twice, and the first to end removes it for both.
update {schema}.work_queue set lock_key = null, lock_timeout = null, started = null,
                               version = least(version, 2147483646) + 1
where id = any({uuids($1)}) and lock_key is not null returning id::text, 'ready' as state

-- name: release_where (node expired_only)
-- official: {unlock}
-- confirm: If the node is alive, what it works on is done twice.
update {schema}.work_queue set lock_key = null, lock_timeout = null, started = null
where lock_key = $1::text and (not coalesce($2::boolean, true) or lock_timeout < now())
returning id::text, 'ready' as state

-- name: extend (ids by)
-- official: no (lock_timeout, as the claim sets it; never made shorter)
-- guard: only jobs that a node holds and whose lease ends before that time
update {schema}.work_queue set lock_timeout = (now() + $2::interval)::timestamp where id = any({uuids($1)})
  and lock_key is not null and coalesce(lock_timeout < (now() + $2::interval)::timestamp, true)
  and $2::interval > interval '0'
returning id::text, 'extended' as state

-- name: extend_where (node by)
-- official: no (lock_timeout, as the claim sets it; never made shorter)
-- guard: only jobs that the node holds and whose lease ends before that time
update {schema}.work_queue set lock_timeout = (now() + $2::interval)::timestamp
where lock_key = $1::text and coalesce(lock_timeout < (now() + $2::interval)::timestamp, true)
  and $2::interval > interval '0'
returning id::text, 'extended' as state
