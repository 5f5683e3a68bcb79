-- The end of section jobs: a row without an id gives the cursor to continue from.
    union all
    select '', '', '', '', null, 0, null, 0, null, null, null, null, null, null, '', {cursor}, null, f.place, 1
    from params p, found f where f.place = p.n and not p.plain and p.ids is null and (select count(*) from fits) < p.top
) z order by z.place, z.mark
