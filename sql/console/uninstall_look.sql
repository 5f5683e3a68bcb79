-- What `queuetop uninstall` would drop: one row. The schema is the one that search_path names first.
select format(E'schema %s, version %s, installed at %s, %s on disk\nunfinished jobs: %s (%s)\nfinished jobs: %s; audit: %s actions\nleases: %s claimed',
              quote_ident(current_schema()), (select version from meta), (select installed_at::timestamptz(0) from meta),
              (select pg_size_pretty(coalesce(sum(pg_total_relation_size(c.oid)), 0)) from pg_class c
               where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relkind in ('r', 'm')),
              (select count(*) from queue),
              (select coalesce(string_agg(state || ' ' || n, ', ' order by state), 'none') from (select state, count(*) as n from queue group by state) z),
              (select count(*) from history), (select count(*) from audit),
              (select count(*) from work_queue where lock_key is not null)) as text,
       (select string_agg(what, ', ') from (
            select format('node %s (last heartbeat %s s ago)', lock_key, extract(epoch from now() - heartbeat)::int) as what
            from node where heartbeat > now() - (select value::interval from setting where name = 'node_dead')
            union all
            select format('node %s (a lease until %s)', lock_key, max(lock_timeout)::timestamptz(0)) from work_queue
            where lock_key is not null and lock_timeout > now() and lock_key not in (select lock_key from node) group by lock_key
            union all
            (select 'scheduler ' || holder from scheduler where until > now() order by term desc limit 1)) z) as alive,
       (select string_agg(c.relname, ',' order by c.relname) from pg_class c
        where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relkind in ('r', 'p', 'v', 'm', 'f')
          and not c.relispartition) as tables,
       (select string_agg(distinct v.oid::regclass::text, ', ') from pg_depend d join pg_rewrite r on r.oid = d.objid join pg_class v on v.oid = r.ev_class
        join pg_class c on c.oid = d.refobjid
        where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass
          and c.relnamespace = to_regnamespace(quote_ident(current_schema())) and v.relnamespace <> c.relnamespace) as dependents
