-- Leases up to $2 jobs to node $1. lease_ms is the length that was granted: the client counts it by its own clock.
select lease, version, seq, id::text, queue, kind, priority, try, max_tries, payload::text, body, payload_type,
       (extract(epoch from lease_until) * 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until - now()) * 1000)::bigint as lease_ms,
       (extract(epoch from run_timeout) * 1000)::bigint as run_timeout_ms
from {schema}.claim($1::text, $2::int, $3::interval, $4::text[], $5::boolean)
