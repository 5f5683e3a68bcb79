-- Pushes many jobs; arrays in parallel. $17: sent again after a lost answer, or an id of the caller's own.
select n, id::text, pushed
from {schema}.push_many($1::uuid[], $2::text[], $3::text[], $4::int[], $5::text[]::timestamptz[], $6::interval[],
                        $7::text[], $8::int[], $9::interval[], $10::interval[], $11::text[], $12::bytea[], $13::text[],
                        $17::boolean, $14::text[]::timestamptz[], $15::interval[], $16::text[])
