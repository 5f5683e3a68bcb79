-- A heartbeat; the answer is up, draining or gone, and the server's clock in ms since 1970.
select state, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000)
                  ::pg_catalog.int8 as server_ms
from {schema}.node_beat($1, $2)
