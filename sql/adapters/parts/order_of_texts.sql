-- The end of CTE looked_at, and the beginning of CTE matching: if texts are searched, n rows are looked at.
    limit case when {error}::text is null and {words}::text[] is null and {not_words}::text[] is null
               then coalesce({top}::int, 100)
               else coalesce({n}::int, 10000) end
), matching as materialized (
    select * from looked_at
    where ({error}::text is null
           or case when {error}::text like '~%' then strpos(lower({text}), lower(substr({error}::text, 2))) > 0
                                    else coalesce({error_key({text})}, case when state = 'failed' then '' end)
                                         = {error_key({error}::text)} end)
