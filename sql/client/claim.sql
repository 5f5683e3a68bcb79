-- Leases up to $2 jobs to node $1. lease_ms is the length of the lease: the client measures it by its own clock. The
-- session's search_path may be anything, so each function, operator and type is named with its schema; only SQL's own
-- keywords stand alone. Copy these statements into another language as they are.
select lease, version, seq, id::pg_catalog.text, queue, kind, priority, try, max_tries,
       payload::pg_catalog.text, body, payload_type,
       (extract(epoch from lease_until) operator(pg_catalog.*) 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until operator(pg_catalog.-) pg_catalog.now()) operator(pg_catalog.*) 1000)::bigint
           as lease_ms,
       (extract(epoch from run_timeout) operator(pg_catalog.*) 1000)::bigint as run_timeout_ms
from {schema}.claim($1, $2, $3, $4, $5)
