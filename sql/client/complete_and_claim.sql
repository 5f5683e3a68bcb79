-- Jobs are done, and up to $7 others are claimed; rows with an outcome name those that are not done after all.
select outcome, lease, version, seq, id::pg_catalog.text, queue, kind, priority, try, max_tries,
       payload::pg_catalog.text, body, payload_type,
       (extract(epoch from lease_until) operator(pg_catalog.*) 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until operator(pg_catalog.-) pg_catalog.now()) operator(pg_catalog.*) 1000)::bigint
           as lease_ms,
       (extract(epoch from run_timeout) operator(pg_catalog.*) 1000)::bigint as run_timeout_ms
from {schema}.complete_and_claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
