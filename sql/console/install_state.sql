-- What a schema holds before and after `queuetop install`: the report is the difference. $1 schema, $2 viewer role, $3
-- worker role, $4 operator role, $5 pusher role. Reads the catalogs only.
select s.oid is not null as has_schema,
       exists (select from pg_class c where c.relnamespace = s.oid and c.relname = 'meta') as has_meta,
       case when s.oid is null and not has_database_privilege(current_database(), 'CREATE')
            then format('%I may not create a schema in database %I: its owner can install, or GRANT CREATE ON DATABASE '
                        '%2$I TO %1$I',
                        current_user, current_database())
            when not pg_has_role(s.nspowner, 'USAGE')
            then format('schema %I belongs to %I, and %I is not a member of that role: install as its owner',
                        s.nspname, s.nspowner::regrole, current_user)
            else '' end as denied,
       (select count(*) from pg_class c
        where c.relnamespace = s.oid and c.relkind in ('r', 'p', 'v') and not c.relispartition)::int as tables,
       (select count(*) from pg_proc p where p.pronamespace = s.oid)::int as functions,
       (select md5(string_agg(concat_ws(' ', pg_get_functiondef(p.oid), p.proacl), ' '
                              order by p.oid::regprocedure::text))
        from pg_proc p where p.pronamespace = s.oid and p.prokind in ('f', 'p')) as functions_md5,
       (select md5(string_agg(concat_ws(' ', c.relname, c.relkind, c.relacl, a.attname, a.atttypid::regtype,
                                        a.attnotnull), ' '
                              order by c.relname, a.attnum))
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = s.oid and not c.relispartition and a.attnum > 0) as tables_md5,
       exists (select from pg_roles where rolname = $2::text) as has_viewer,
       exists (select from pg_roles where rolname = $3::text) as has_worker,
       exists (select from pg_roles where rolname = $4::text) as has_operator,
       exists (select from pg_roles where rolname = $5::text) as has_pusher
from (values (1)) one
left join pg_namespace s on s.nspname = $1::text
