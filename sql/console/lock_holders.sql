-- Sessions that hold locks on the relations of the schemas $1 and $2, or that install: the oldest transaction first.
-- is_long: the transaction has lasted longer than a second. Then it makes no sense to wait for the lock, because others
-- would queue behind us.
with held as (
    select l.pid, l.virtualtransaction, pg_catalog.min(c.relname) as relation
    from pg_catalog.pg_locks l
    left join pg_catalog.pg_class c on l.locktype = 'relation' and c.oid = l.relation
    where l.granted and l.pid is distinct from pg_catalog.pg_backend_pid()
      and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
      and (c.relnamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ($1::text, $2::text))
           or l.locktype = 'advisory' and l.objsubid = 2
              and l.classid = (pg_catalog.hashtext('queuetop install')::bigint & 4294967295)::oid)
    group by l.pid, l.virtualtransaction
), holder as (
    select a.xact_start as since,
           pg_catalog.format('pid %s (%s, %s for %s s): %s', h.pid,
                             pg_catalog.concat_ws(', ', a.usename, nullif(a.application_name, '')),
                  coalesce(a.state, a.backend_type, 'unknown'),
                  coalesce(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start)::int::text, '?'),
                  pg_catalog.regexp_replace(pg_catalog.left(a.query, 120), '\s+', ' ', 'g')) as line
    from held h left join pg_catalog.pg_stat_activity a on a.pid = h.pid
    where h.pid is not null
    union all
    select p.prepared, pg_catalog.format('prepared transaction %s (%s), for %s s: commit prepared or rollback prepared '
                                         'ends it', pg_catalog.quote_literal(p.gid),
                  p.owner, pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - p.prepared)::int)
    from held h
    join pg_catalog.pg_locks t on t.virtualtransaction = h.virtualtransaction and t.locktype = 'transactionid'
        and t.pid is null
    join pg_catalog.pg_prepared_xacts p on p.transaction = t.transactionid
    where h.pid is null
)
select h.line, coalesce(h.since < pg_catalog.clock_timestamp() - interval '1 s', false) as is_long
from holder h order by h.since nulls last limit 3
