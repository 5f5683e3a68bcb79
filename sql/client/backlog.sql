-- How many jobs of these queues (null: all) are ready and not running.
select ready::text as state from {schema}.backlog($1::text[])
