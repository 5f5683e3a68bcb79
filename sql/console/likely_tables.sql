-- Tables that look like those of a queue system that no adapter knows: a column says the state of a row, another
-- one its tries, its lease or when it is due. Four names at most, in one text.
select coalesce(string_agg(left(t.name, 40), ', ' order by t.name), '') as names
from (
    select format('%I.%I', n.nspname, c.relname) as name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition
      and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and exists (select from pg_catalog.pg_attribute a
                  where a.attrelid = c.oid and not a.attisdropped and a.attname in ('state', 'status'))
      and exists (select from pg_catalog.pg_attribute a
                  where a.attrelid = c.oid and not a.attisdropped
                    and a.attname in ('attempt', 'attempts', 'attempts_made', 'recovery_attempts', 'max_attempts',
                                      'tries', 'retries', 'retry_count', 'locked_at', 'locked_by', 'locked_until',
                                      'claim_expires_at', 'lease_until', 'run_at', 'run_after', 'scheduled_at'))
    order by 1 limit 4
) t
