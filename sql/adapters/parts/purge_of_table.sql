-- Section purge of a table, behind its notes, and section purge_preview. {rows}: the part that has the rows t;
-- {first}: which rows first.
with pick as (
    select t.id
-- part: {rows}
    where ($1::text is null or $1::text = {queue}) and {which}
    {first} limit coalesce($4::int, 1000) for update of t skip locked
)
delete from {schema}.{table} t using pick where t.id = pick.id returning t.id::text, 'purged' as state

-- name: purge_preview (queue states before)
-- cost: reads the whole table
select 'purged' as state, count(*) as n, t.state as why
-- part: {rows}
where ($1::text is null or $1::text = {queue}) and {which} group by 3
