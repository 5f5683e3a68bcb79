-- Leases hold for $4 more; $5 names the jobs that have been started. cancel: seqs that an operator wants ended.
select lease, outcome, (extract(epoch from lease_until) * 1000)::bigint as lease_until_ms,
       (extract(epoch from lease_until - now()) * 1000)::bigint as lease_ms, array_to_string(cancel, ' ') as cancel
from {schema}.extend($1::text, $2::bigint[], $3::int[], $4::interval, $5::bigint[])
