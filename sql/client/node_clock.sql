-- By how many ms this machine's clock is ahead of the server's; below 0 = behind.
select null::pg_catalog.text as state from {schema}.node_clock($1, $2, $3)
