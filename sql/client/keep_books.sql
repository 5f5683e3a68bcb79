-- What the active scheduler does beside its steps: minutes, checks of the counters. When to call again, in ms.
select {schema}.keep_books()::pg_catalog.text as state
