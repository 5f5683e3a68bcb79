-- Jobs failed: node, leases, versions, seqs, errors, traces, started, when to try again, whether for good, outcomes.
select seq, outcome
from {schema}.fail($1::text, $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::text[], $7::timestamptz[],
                   $8::interval[], $9::boolean[], $10::text[])
