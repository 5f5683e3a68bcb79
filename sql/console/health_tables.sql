-- The tables of the schema; partitions are summed. next_dead: at how many dead rows the next autovacuum begins, by the
-- settings of the server and of the table (for a partitioned table: of worst, the partition that is nearest to it).
-- Sizes are NULL while a session holds or wants an exclusive lock: the question would wait for that session.
with locked as materialized (
    select distinct l.relation from pg_locks l
    where l.mode = 'AccessExclusiveLock' and l.database = (select d.oid from pg_database d
            where d.datname = current_database())
), part as (
    select c.oid, c.relname, c.relkind, coalesce(pg_partition_root(c.oid)::oid, c.oid) as root,
           pg_stat_get_live_tuples(c.oid) as live, pg_stat_get_dead_tuples(c.oid) as dead,
           pg_stat_get_tuples_updated(c.oid) as upd, pg_stat_get_tuples_hot_updated(c.oid) as hot,
           greatest(pg_stat_get_last_autovacuum_time(c.oid), pg_stat_get_last_vacuum_time(c.oid)) as vacuumed,
           greatest(pg_stat_get_last_autoanalyze_time(c.oid), pg_stat_get_last_analyze_time(c.oid)) as analyzed,
           case when c.relkind <> 'p' and x.free then pg_table_size(c.oid) end as size,
           case when c.relkind <> 'p' and x.free then pg_indexes_size(c.oid) end as index_size,
           coalesce(o.base, current_setting('autovacuum_vacuum_threshold')::float8)
               + coalesce(o.scale, current_setting('autovacuum_vacuum_scale_factor')::float8) * greatest(c.reltuples, 0)
               as next_dead,
           coalesce(o.enabled, true) as enabled
    from pg_class c
    cross join lateral (select not exists (select from locked l where l.relation = c.oid
                                           or l.relation in (select i.indexrelid from pg_index i
                                                             where i.indrelid = c.oid)) as free) x
    cross join lateral (select max(v.option_value) filter (where v.option_name = 'autovacuum_vacuum_threshold')::float8
                        as base,
                               max(v.option_value) filter
                               (where v.option_name = 'autovacuum_vacuum_scale_factor')::float8 as scale,
                               bool_and(v.option_value::boolean) filter (where v.option_name = 'autovacuum_enabled')
                               as enabled
                        from pg_options_to_table(c.reloptions) v
                        where v.option_name in ('autovacuum_vacuum_threshold', 'autovacuum_vacuum_scale_factor',
                                                'autovacuum_enabled')) o
    where c.relnamespace = (select n.oid from pg_namespace n where n.nspname = {schema_lit})
      and c.relkind in ('r', 'm', 'p')
)
select r.relname::text as name, (count(*) filter (where p.relkind <> 'p'))::int as parts,
       r.relkind = 'p' as partitioned,
       sum(p.live)::bigint as live, sum(p.dead)::bigint as dead, sum(p.size)::bigint as size, sum(p.index_size)::bigint
       as index_size,
       sum(p.hot) / nullif(sum(p.upd), 0)::float8 as hot,
       (extract(epoch from max(p.vacuumed)) * 1000)::bigint as vacuumed_ms,
       (extract(epoch from max(p.analyzed)) * 1000)::bigint as analyzed_ms,
       ((array_agg(p.next_dead order by p.dead / (p.next_dead + 1) desc,
                   p.oid) filter (where p.relkind <> 'p'))[1])::bigint as next_dead,
       ((array_agg(p.dead order by p.dead / (p.next_dead + 1) desc, p.oid) filter (where p.relkind <> 'p'))[1])::bigint
       as worst_dead,
       ((array_agg(p.relname order by p.dead / (p.next_dead + 1) desc, p.oid) filter (where p.relkind <> 'p'))[1])::text
       as worst,
       ((array_agg(p.relname order by p.size desc nulls last, p.oid) filter (where p.relkind <> 'p'))[1])::text
       as largest,
       max(p.size + p.index_size)::bigint as largest_size,
       bool_or(not p.enabled) as vacuum_off
from part p join pg_class r on r.oid = p.root
group by r.oid, r.relname, r.relkind
order by sum(p.size) desc nulls last, r.relname limit 500
