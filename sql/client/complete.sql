-- Jobs are done: node, leases, versions, seqs, when they were started, results.
select seq, outcome
from {schema}.complete($1::text, $2::bigint[], $3::int[], $4::bigint[], $5::timestamptz[], $6::bytea[])
