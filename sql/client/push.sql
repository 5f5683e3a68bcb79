-- Pushes many jobs; arrays in parallel. $17: the push is sent again after a lost answer, or the caller chose the ids.
select n, id::pg_catalog.text, pushed
from {schema}.push_many($1, $2, $3, $4, $5::pg_catalog.text[]::pg_catalog.timestamptz[], $6, $7, $8, $9, $10, $11, $12,
                        $13, $17, $14::pg_catalog.text[]::pg_catalog.timestamptz[], $15, $16)
