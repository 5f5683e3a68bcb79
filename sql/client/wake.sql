-- The worker in slot 0 leaves the slot: wakes one of the others to take it.
select {schema}.wake($1::int)::pg_catalog.text as state
