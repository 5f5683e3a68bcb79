-- The session that probably holds what a batch waited for: of the other sessions that have changed or locked rows of
-- this schema's tables, the one whose transaction has been open the longest.
select 'waits' as state, 1::bigint as n,
       format('pid %s (%s) has had a transaction open for %s s%s', a.pid,
              concat_ws(', ', a.usename, nullif(a.application_name, '')),
              extract(epoch from clock_timestamp() - a.xact_start)::int,
              case when a.state like 'idle%' then ' and does nothing' else '' end) as why
from pg_stat_activity a
where a.pid <> pg_backend_pid() and a.xact_start < clock_timestamp() - interval '0.3 s'
  and exists (select from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
              where l.pid = a.pid and l.granted and l.mode <> 'AccessShareLock' and n.nspname = $1)
order by a.xact_start limit 1
