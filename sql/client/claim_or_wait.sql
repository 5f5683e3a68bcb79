-- claim for a worker that has nothing to do; slot and wait_ms say how to wait where there are no jobs.
select lease, version, seq, id::text, queue, kind, priority, try, max_tries, payload::text, body, payload_type,
       (extract(epoch from lease_until) * 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until - now()) * 1000)::bigint as lease_ms,
       (extract(epoch from run_timeout) * 1000)::bigint as run_timeout_ms, slot, wait_ms
from {schema}.claim_or_wait($1::text, $2::int, $3::interval, $4::text[], $5::boolean, $6::int, $7::int)
