-- Of the rows of CTE looked_at those that fit kind ($3), error ($4), words ($5) and forbidden words ($6). Stands behind
-- the "order by" of looked_at; the order of CTE matching follows.
    limit case when num_nonnulls($3::text, $4::text, $5::text[], $6::text[]) = 0 then coalesce($13::int, 100)
               else coalesce($12::int, 10000) end
), matching as materialized (
    select * from looked_at
    where ($3::text is null or kind = $3::text)
      and ($4::text is null
           or case when $4::text like '~%' then position(lower(substr($4::text, 2)) in lower(error)) > 0
                                    else {error_key(error)} = {error_key($4::text)} end)
      and ($5::text[] is null or not exists (select from unnest($5::text[]) x
                       where position(lower(x) in lower(concat_ws(' ', id, queue, kind, error))) = 0))
      and ($6::text[] is null or not exists (select from unnest($6::text[]) x
                       where position(lower(x) in lower(concat_ws(' ', id, queue, kind, error))) > 0))
