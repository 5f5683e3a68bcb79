-- CTE size: how many rows the table has, by the statistics.
with size as materialized (
    select greatest(reltuples, 1)::float8 as n from pg_class where oid = format({table}, {schema_lit})::regclass
)
