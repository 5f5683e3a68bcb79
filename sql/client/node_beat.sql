-- A heartbeat; the answer is up, draining or gone.
select state from {schema}.node_beat($1, $2)
