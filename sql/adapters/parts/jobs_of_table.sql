-- Section jobs of a table. {columns}, {rows}: the parts that have the columns and the rows t; {which}: the
-- condition on $1 and $2.
-- name: jobs (queue states kind error words not_words older_than younger_than min_tries top_tries ids n limit cursor)
-- order: *: highest id first
-- Kind, error and words are looked for in the newest n of the rows that fit all other
-- terms; a row without an id gives the cursor to continue from
with looked_at as materialized (
    select t.id as key,
-- part: {columns}
           t.id::text as cursor
-- part: {rows}
    where {which}
-- part: jobs_found created={created}; tries={tries}; ids={ids}; before={before}
