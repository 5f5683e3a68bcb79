-- How many jobs of these queues (null: all) are ready and not running.
select ready::pg_catalog.text as state from {schema}.backlog($1)
