-- The columns a of a table, with their types t.
from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace join pg_catalog.pg_type t on t.oid = a.atttypid
where n.nspname = {schema_lit} and c.relname = {table} and a.attnum > 0 and not a.attisdropped
