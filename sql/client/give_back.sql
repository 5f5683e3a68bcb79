-- Jobs go back in line, without counting as a try.
select seq, outcome from {schema}.give_back($1, $2, $3, $4)
