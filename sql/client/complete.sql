-- Jobs are done: node, leases, versions, seqs, when they were started, results.
select seq, outcome from {schema}.complete($1, $2, $3, $4, $5, $6)
