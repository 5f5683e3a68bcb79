-- The condition of section detect that schema n has a table with that column.
  and exists (select from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = n.oid and c.relname = {table} and c.relkind in ('r', 'p')
                and a.attname = {column})
