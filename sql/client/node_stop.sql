-- The worker process has answered for all its jobs and ends.
select null::text as state from {schema}.node_stop($1::text, $2::uuid)
