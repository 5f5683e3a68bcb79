-- The parameters of section jobs, $1 to $16, as columns of the CTE params. plain: no term must be checked row by row;
-- most: so many rows are read.
    select $1::text as queue, $2::text[] as states, $3::text as kind, $4::text as node,
           case when $5::text like '~%' then lower(substr($5::text, 2)) end as part,
           case when $5::text not like '~%' then {error_key($5::text)} end as error_key,
           $6::text[] as words, $7::text[] as not_words, $8::text[] as ids, $9::interval as older,
           $10::interval as younger, $11::int as min_tries, $12::int as top_tries, left($13::text, 1) as how,
           substr($13::text, 2) as inside, $14::text[] as path, coalesce($15::int, 10000) as n,
           coalesce($16::int, 100) as top,
           num_nonnulls($3::text, $4::text, $5::text, $6::text[], $7::text[], $9::interval, $10::interval, $11::int,
                        $12::int, $13::text) = 0 as plain,
           case when num_nonnulls($3::text, $4::text, $5::text, $6::text[], $7::text[], $9::interval, $10::interval,
                                  $11::int, $12::int, $13::text) = 0
                then coalesce($16::int, 100) else coalesce($15::int, 10000) end as most,
