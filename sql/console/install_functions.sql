-- Keeps what the schema holds before the first script: its functions (88_functions.sql), and all its objects, whose
-- rights an install leaves alone (90_roles.sql). $1 schema. A statement of its own behind the lock of install_begin, so
-- that it sees what another installer has just made.
select pg_catalog.set_config('queuetop.before', coalesce((
           select pg_catalog.string_agg(pg_catalog.concat(p.oid, ':', p.xmin), ' ')
           from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
           where n.nspname = $1::text), ''), true),
       pg_catalog.set_config('queuetop.there', coalesce((
           select pg_catalog.concat('pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid, ':', n.oid, ' ',
                                    pg_catalog.string_agg(pg_catalog.concat(d.classid, ':', d.objid), ' '))
           from pg_catalog.pg_namespace n
           left join pg_catalog.pg_depend d
                     on d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
                    and d.refobjid = n.oid
           where n.nspname = $1::text group by n.oid), ''), true)
