-- The active scheduler lets another take over.
select {schema}.scheduler_stop($1)::pg_catalog.text as state
