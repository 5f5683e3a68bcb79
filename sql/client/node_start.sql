-- Registers a worker process: name, session, host, pid, version, protocol, queues, slots. The answer is the server's
-- clock in ms since 1970.
select null::pg_catalog.text as state,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000)
           ::pg_catalog.int8 as server_ms
from {schema}.node_start($1, $2, $3, $4, $5, $6, $7, $8)
