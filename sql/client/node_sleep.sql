-- For how many ms the worker may send nothing unless it is notified; or why it may not.
select state from {schema}.node_sleep($1, $2, $3, $4, $5, $6)
