-- Sections groups_by and fail_times, from the part failed_jobs of the adapter (id, queue, kind, node, at, error).
-- name: groups_by (settings queue limit n)
-- settings = what to group by: kind, node or hour; of the newest n failed jobs of all queues
with failed_jobs as materialized (
-- part: failed_jobs
    limit coalesce($4::int, 5000)
), grouped as (
    select f.*, coalesce({error_key(f.error)}, '') as error_key,
           case $1::text when 'kind' then f.kind when 'node' then f.node
                when 'hour' then to_char({utc}, 'YYYY-MM-DD HH24:00 "UTC"') end as by
    from failed_jobs f where $2::text is null or f.queue = $2::text
)
select coalesce(by, '') as "group", case when count(distinct queue) = 1 then min(queue) else '' end as queue,
       count(*) as n, (select count(*) from failed_jobs) >= coalesce($4::int, 5000) as capped,
       {ms(min(at))} as first_ms, {ms(max(at))} as last_ms,
       mode() within group (order by error_key) as error_key, (array_agg(error order by at desc))[1] as sample,
       (array_agg(id order by at desc))[1] as sample_id
from grouped g group by 1 order by 3 desc, 1 limit coalesce($3::int, 200)

-- name: fail_times (queue n)
-- when jobs failed in the last 24 hours, by half hours, and how many of them in the last hour; of the newest n
with failed_jobs as materialized (
-- part: failed_jobs
    limit coalesce($2::int, 5000)
)
select queue, coalesce({error_key(f.error)}, '') as error_key,
       (floor(extract(epoch from least(at, '9999-12-31')) / 1800) * 1800000)::bigint as at_ms, count(*) as n,
       count(*) filter (where at > {now} - interval '1 h') as hour,
       case when (select count(*) from failed_jobs) >= coalesce($2::int, 5000)
            then (select {ms(min(at))} from failed_jobs) end as since_ms
from failed_jobs f where ($1::text is null or queue = $1::text) and at > {now} - interval '24 h' group by 1, 2, 3
