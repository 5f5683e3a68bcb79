-- Registers a worker process: name, session, host, pid, version, protocol, queues, slots.
select null::pg_catalog.text as state from {schema}.node_start($1, $2, $3, $4, $5, $6, $7, $8)
