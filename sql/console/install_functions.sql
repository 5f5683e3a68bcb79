-- Keeps the functions of the schema as they are before the first script, see 88_functions.sql. $1 schema. A statement
-- of its own behind the lock of install_begin, so that it sees what another installer has just made.
select pg_catalog.set_config('queuetop.before', coalesce((
           select pg_catalog.string_agg(pg_catalog.concat(p.oid, ':', p.xmin), ' ')
           from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
           where n.nspname = $1::text), ''), true)
