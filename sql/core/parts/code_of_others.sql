-- Which rights let code of others run as an owner of this queue's functions (SECURITY DEFINER): a row for each, with
-- the statement that takes it away. $1 the schema, $2 true = the current user is about to make functions there, too.
-- Known are the owners of such functions, and who can become all of them (superusers can). Everybody else may not
--   create in the schema: an operator of his could fit a call better than one of pg_catalog does,
--   own the schema or anything in it,
--   have TRIGGER on a table, or a trigger on a table that calls a function of his.
-- The statement reads catalogs only and starts from pg_depend, so a large database costs no more than a small one.
with place as materialized (
    select n.oid, n.nspname, n.nspowner, n.nspacl from pg_catalog.pg_namespace n where n.nspname = $1::name
),
content as materialized (
    select d.classid, d.objid
    from place
    join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_namespace'::regclass::oid and d.refobjid = place.oid
),
definers (owner) as materialized (
    select distinct p.proowner
    from content c join pg_catalog.pg_proc p on p.oid = c.objid
    where c.classid = 'pg_catalog.pg_proc'::regclass::oid and p.prosecdef
    union
    select r.oid from pg_catalog.pg_roles r where $2::boolean and r.rolname = current_user
),
-- from 16 on a member may be one who can't become the role
becomes (way) as (
    select case when pg_catalog.current_setting('server_version_num')::int >= 160000
                then 'USAGE, SET, MEMBER WITH ADMIN OPTION' else 'MEMBER' end
),
relations as materialized (
    select t.oid, t.relowner, t.relacl
    from content c join pg_catalog.pg_class t on t.oid = c.objid
    where c.classid = 'pg_catalog.pg_class'::regclass::oid and t.relkind in ('r', 'p', 'v', 'm', 'f')
),
held (role, privilege, class, id, start) as (
    select a.grantee, a.privilege_type, 'pg_catalog.pg_namespace'::regclass::oid, place.oid,
           pg_catalog.format('revoke create on schema %I from ', place.nspname)
    from place cross join lateral pg_catalog.aclexplode(place.nspacl) a
    where a.privilege_type = 'CREATE' and a.grantee <> place.nspowner
    union all
    select place.nspowner, 'OWNER', 'pg_catalog.pg_namespace'::regclass::oid, place.oid,
           pg_catalog.format('alter schema %I owner to %I', place.nspname, pg_catalog.pg_get_userbyid(d.owner))
    from place cross join (select owner from definers limit 1) d
    union all
    select a.grantee, a.privilege_type, 'pg_catalog.pg_class'::regclass::oid, t.oid,
           pg_catalog.format('revoke trigger on %s from ', t.oid::regclass)
    from relations t cross join lateral pg_catalog.aclexplode(t.relacl) a
    where a.privilege_type = 'TRIGGER' and a.grantee <> t.relowner
    union all
    select s.refobjid, 'OWNER', c.classid, c.objid,
           case c.classid when 'pg_catalog.pg_class'::regclass::oid
                          then pg_catalog.format('alter %s %s owner to %I', i.type, i.identity,
                                                 pg_catalog.pg_get_userbyid(d.owner))
                          else pg_catalog.format('drop %s %s', i.type, i.identity) end
    from content c
    join pg_catalog.pg_database here on here.datname = pg_catalog.current_database()
    join pg_catalog.pg_shdepend s on s.dbid = here.oid and s.classid = c.classid and s.objid = c.objid
                                  and s.deptype = 'o'
    cross join (select owner from definers limit 1) d
    cross join lateral pg_catalog.pg_identify_object(c.classid, c.objid, 0) i
    union all
    select p.proowner, 'OWNER', 'pg_catalog.pg_trigger'::regclass::oid, g.oid,
           pg_catalog.format('drop trigger %I on %s', g.tgname, t.oid::regclass)
    from relations t
    join pg_catalog.pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
    join pg_catalog.pg_proc p on p.oid = g.tgfoid
)
select case h.role when 0::oid then 'PUBLIC' else pg_catalog.pg_get_userbyid(h.role)::text end as role,
       h.privilege, pg_catalog.pg_describe_object(h.class, h.id, 0) as object,
       case when h.privilege = 'OWNER' then h.start
            else h.start operator(pg_catalog.||) case h.role when 0::oid then 'public'
                     else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(h.role)::text) end
       end as run,
       h.class, h.id,
       pg_catalog.pg_get_userbyid(risk.owner)::text as runs_as
from held h
cross join lateral (select d.owner from definers d cross join becomes b
                    where h.role = 0::oid or not pg_catalog.pg_has_role(h.role, d.owner, b.way) limit 1) risk
order by object, role
