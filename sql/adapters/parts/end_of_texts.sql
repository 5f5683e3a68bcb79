-- The end of section jobs, if texts are searched: a row without an id gives the cursor to continue from.
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, null, '', min(id)::text, null,
           min(id), 1
    from looked_at where not ({error}::text is null and {words}::text[] is null and {not_words}::text[] is null)
    having count(*) >= coalesce({n}::int, 10000) and (select count(*) from matching) < coalesce({top}::int, 100)
