-- Whether a scheduling step would find something, between steps.
select {schema}.is_new()::int::pg_catalog.text as state
