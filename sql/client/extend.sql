-- Leases hold for $4 more; $5 names the jobs that have been started. cancel: seqs that an operator wants ended.
select lease, outcome, (extract(epoch from lease_until) operator(pg_catalog.*) 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until operator(pg_catalog.-) pg_catalog.now()) operator(pg_catalog.*) 1000)::bigint
           as lease_ms,
       pg_catalog.array_to_string(cancel, ' ') as cancel
from {schema}.extend($1, $2, $3, $4, $5)
