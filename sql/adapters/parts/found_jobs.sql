-- CTE found: the jobs of live and done, or those of the ids.
), found as materialized (
    select *, row_number() over (order by rank, o) as place from (
        select * from live union all select * from done
        union all
        select 9, 0, null, i::bigint, row_number() over (order by i::bigint desc) from params p, unnest(p.ids) i
        where i ~ '^[0-9]{1,18}$') f
    order by rank, o limit (select most from params)
), fits as (
