-- Folds the counters, beside the scheduler's steps. 1 = they were folded.
select {schema}.fold_beside()::int::pg_catalog.text as state
