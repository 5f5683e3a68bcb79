-- The worker process has answered for all its jobs and ends.
select null::pg_catalog.text as state from {schema}.node_stop($1, $2)
