-- Jobs go back in line, without counting as a try.
select seq, outcome from {schema}.give_back($1::text, $2::bigint[], $3::int[], $4::bigint[])
