-- Vacuums of this database that run now, and how far they are.
select p.pid, coalesce(n.nspname || '.' || c.relname, p.relid::text) as name, p.phase,
       p.heap_blks_total * current_setting('block_size')::bigint as total_bytes,
       case when p.phase = 'vacuuming heap' then p.heap_blks_vacuumed else p.heap_blks_scanned end
           / nullif(p.heap_blks_total, 0)::float8 as done,
       (extract(epoch from a.xact_start) * 1000)::bigint as started_ms,
       a.backend_type = 'autovacuum worker' as auto,
       a.query like 'autovacuum:%(to prevent wraparound)' as wraparound
from pg_stat_progress_vacuum p
left join pg_stat_activity a on a.pid = p.pid
left join pg_class c on c.oid = p.relid
left join pg_namespace n on n.oid = c.relnamespace
where p.datname = current_database()
order by a.xact_start, p.pid limit 20
