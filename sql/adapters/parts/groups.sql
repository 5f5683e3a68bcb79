-- The answer of section groups, from the CTE failed_jobs (id, queue, at, error).
select {error_key(coalesce(error, ''))} as error_key, queue, count(*) as n,
       (select count(*) from failed_jobs) >= 5000 as capped, {ms(min(at))} as first_ms, {ms(max(at))} as last_ms,
       (array_agg(left(error, 1000) order by {newest} desc))[1] as sample,
       (array_agg(id::text order by {newest} desc))[1] as sample_id
from failed_jobs f where $1::text is null or f.queue = $1::text
group by 1, 2 order by 3 desc, 2, 1 limit coalesce($2::int, 200)
