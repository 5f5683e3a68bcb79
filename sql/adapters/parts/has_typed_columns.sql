-- The condition of section detect that schema n has a table with these {n} columns of these types.
  and exists (select from pg_catalog.pg_class c
              where c.relnamespace = n.oid and c.relname = {table} and c.relkind in ('r', 'p')
                and {n} = (
                     select count(*) from pg_catalog.pg_attribute a
                     join pg_catalog.pg_type t on t.oid = a.atttypid
                     join (values {columns}) v (col, typ) on v.col = a.attname and v.typ = t.typname
                     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
