-- The worker in slot 0 leaves it: one of the others should take it.
select {schema}.wake($1::int)::pg_catalog.text as state
