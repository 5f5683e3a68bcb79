-- Jobs failed: node, leases, versions, seqs, errors, traces, started, when to try again, whether for good, outcomes.
select seq, outcome from {schema}.fail($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
