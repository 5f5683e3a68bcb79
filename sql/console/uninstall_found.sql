-- What speaks against `queuetop uninstall`: one row. The schema is the one that search_path names first. gone:
-- everything that depends on the schema, as DROP SCHEMA ... CASCADE follows it, in any schema. others: what of it
-- belongs to somebody else: everything in other schemas (views, columns of our types, defaults, foreign keys,
-- partitions), and in this schema what no script of ours makes. The caller decides by name which functions and tables
-- are ours. The settings queuetop.* keep the row for uninstall_same.sql.
with recursive schema (oid) as (
    select to_regnamespace(quote_ident(current_schema()))::oid
), gone (classid, objid, objsubid) as (
    select 'pg_namespace'::regclass::oid, oid, 0 from schema
    union
    select next.classid, next.objid, next.objsubid
    from gone g
    join pg_depend d on d.refclassid = g.classid and d.refobjid = g.objid
        and (g.objsubid = 0 or d.refobjsubid = g.objsubid)
    left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
    left join pg_class v on v.oid = r.ev_class and v.relkind in ('v', 'm') -- the view that has this rule
    cross join lateral (select case when v.oid is null then d.classid else 'pg_class'::regclass end as classid,
                               coalesce(v.oid, d.objid) as objid, case when v.oid is null then d.objsubid else 0 end
                               as objsubid) next
    where d.deptype <> 'x' -- an index on such a column, a function that needs an extension
), owned as ( -- for each object the table that it is a part of, 0 = none
    select g.*, coalesce(case g.classid when 'pg_class'::regclass then g.objid end, a.adrelid, nullif(k.conrelid, 0),
                         r.ev_class,
                         t.tgrelid, p.polrelid, 0) as relation
    from gone g
    left join pg_attrdef a on g.classid = 'pg_attrdef'::regclass and a.oid = g.objid
    left join pg_constraint k on g.classid = 'pg_constraint'::regclass and k.oid = g.objid
    left join pg_rewrite r on g.classid = 'pg_rewrite'::regclass and r.oid = g.objid
    left join pg_trigger t on g.classid = 'pg_trigger'::regclass and t.oid = g.objid
    left join pg_policy p on g.classid = 'pg_policy'::regclass and p.oid = g.objid
), others (what) as (
    select distinct left(pg_describe_object(o.classid, o.objid, o.objsubid), 200)
    from owned o
    cross join schema
    left join pg_class c on c.oid = o.relation
    left join pg_type y on o.classid = 'pg_type'::regclass and y.oid = o.objid
    left join pg_proc f on o.classid = 'pg_proc'::regclass and f.oid = o.objid
    where not exists (select from gone w where w.classid = o.classid and w.objid = o.objid and w.objsubid = 0
                        and o.objsubid <> 0)
      and o.classid not in ('pg_namespace'::regclass, 'pg_default_acl'::regclass)
      and not exists (select from pg_depend e where e.classid = o.classid and e.objid = o.objid and e.deptype = 'e')
      and not exists (select from pg_trigger t where o.classid = 'pg_trigger'::regclass and t.oid = o.objid
                        and t.tgisinternal)
      and coalesce(c.relkind, 'r') not in ('i', 'I', 't') -- they go with their table
      and case when c.relnamespace <> schema.oid
               then o.classid = 'pg_class'::regclass or not exists (select from gone w
                       where w.objid = c.oid and w.objsubid = 0)
               when c.oid is not null then
                   (c.relkind = 'c' and c.relname not in ('job_arrays', 'job_filter', 'key_place', 'ended_try'))
                   or (c.relkind = 'S' and c.relname not in ('job_seq', 'lease_seq')
                   and not exists (select from pg_depend e where e.classid = o.classid and e.objid = o.objid
                                     and e.deptype in ('a', 'i')
                                   and e.refclassid = o.classid))
               when y.oid is not null then (y.typnamespace <> schema.oid or y.typname <> 'job_state')
                    and y.typrelid = 0 and y.typelem = 0
               when f.oid is not null then f.pronamespace <> schema.oid
               else true end
)
select found.alive, found.tables, found.functions, found.dependents,
       set_config('queuetop.alive', coalesce(found.alive, ''), true) as kept_alive,
       set_config('queuetop.tables', coalesce(found.tables, ''), true) as kept_tables,
       set_config('queuetop.functions', coalesce(found.functions, ''), true) as kept_functions,
       set_config('queuetop.dependents', coalesce(found.dependents, ''), true) as kept_dependents
from (
select (select string_agg(what, ', ') from (
            select format(case when heartbeat > now() + interval '1 s' then 'node %s (it sleeps)'
                               else 'node %s (last heartbeat %s s ago)' end,
                          lock_key, greatest(0, extract(epoch from now() - heartbeat)::int)) as what
            from node where heartbeat >= now() - (select value::interval from setting where name = 'node_dead')
            union all
            select format('node %s (a lease until %s)', lock_key, max(lock_timeout)::timestamptz(0)) from work_queue
            where lock_key is not null and lock_timeout > now() and lock_key not in (select lock_key from node)
            group by lock_key
            union all
            (select 'scheduler ' || holder from scheduler where until > now() order by term desc limit 1)) z) as alive,
       (select string_agg(c.relname, ',' order by c.relname) from pg_class c
        where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relkind in ('r', 'p', 'v', 'm', 'f')
          and not c.relispartition) as tables,
       (select string_agg(distinct p.proname, ',' order by p.proname) from pg_proc p
        where p.pronamespace = to_regnamespace(quote_ident(current_schema()))
            and not exists (select from pg_depend e where e.classid = 'pg_proc'::regclass and e.objid = p.oid
                              and e.deptype = 'e')) as functions,
       (select string_agg(what, ', ' order by what) filter (where place <= 20)
               || case when max(place) > 20 then format(' and %s more', max(place) - 20) else '' end
        from (select what, row_number() over (order by what) as place from others) o) as dependents
) found
