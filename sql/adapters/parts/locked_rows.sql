-- The rows of the chosen jobs in a table of their state, locked if nobody else has locked them.
    select e.job_id from {schema}.{table} e join chosen j on j.id = e.job_id for update of e skip locked
