-- Gives back every lease of the node but those in $3; says how many jobs.
select {schema}.keep_only($1::text, $2::uuid, $3::bigint[])::text as state
