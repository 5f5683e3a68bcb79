-- The condition of section detect that schema n has that table.
  and exists (select from pg_class c where c.relnamespace = n.oid and c.relname = {table} and c.relkind in ('r', 'p'))
