-- claim for a worker that has nothing to do; slot and wait_ms say how to wait where there are no jobs.
select lease, version, seq, id::pg_catalog.text, queue, kind, priority, try, max_tries,
       payload::pg_catalog.text, body, payload_type,
       (extract(epoch from lease_until) operator(pg_catalog.*) 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until operator(pg_catalog.-) pg_catalog.now()) operator(pg_catalog.*) 1000)::bigint
           as lease_ms,
       (extract(epoch from run_timeout) operator(pg_catalog.*) 1000)::bigint as run_timeout_ms, slot, wait_ms
from {schema}.claim_or_wait($1, $2, $3, $4, $5, $6, $7)
