-- Gives back every lease of the node except those in $3; returns how many jobs.
select {schema}.keep_only($1, $2, $3)::pg_catalog.text as state
