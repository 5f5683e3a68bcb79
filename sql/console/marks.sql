-- Which queue systems could be in this database: one cheap statement before the detection of each. $1 and $2 are
-- parallel: the number of an adapter, and a table that its detection requires, with % before it if the table's name may
-- have a prefix. The answer is the number of each adapter that has all these tables in one schema. The others need not
-- be asked.
with wanted (adapter, name) as (
    select * from unnest($1::int[], $2::name[])
),
found (adapter, tables) as (
    select w.adapter, count(*)
    from wanted w
    join pg_catalog.pg_class c on c.relname = w.name
    group by w.adapter, c.relnamespace
    union all
    select w.adapter, count(distinct w.name)
    from wanted w
    join pg_catalog.pg_class c on c.relname like w.name::text
    where left(w.name::text, 1) = '%'
    group by w.adapter, c.relnamespace
)
select distinct f.adapter
from found f
where f.tables = (select count(*) from wanted w where w.adapter = f.adapter)
