-- The first right in schema $1 by which somebody who can't become the owner could have code run as the owner: what
-- refuse_others() of sql/core/00_rights.sql says, from what it finds about schemas and tables. For whoever calls the
-- owner's functions. No row = none. Tables count only beside a SECURITY DEFINER function: a large schema may have none.
definers (has) as (
    select exists (select from pg_catalog.pg_depend d -- it has an index for this
                   join pg_catalog.pg_proc p on p.oid = d.objid
                   where d.refclassid = 'pg_namespace'::regclass and d.classid = 'pg_proc'::regclass and p.prosecdef
                     and d.refobjid = (select n.oid from pg_catalog.pg_namespace n where n.nspname = $1::text))
),
rights (role, privilege, object, owner) as (
    select x.grantee, pg_catalog.lower(x.privilege_type), pg_catalog.format('schema %I', n.nspname), n.nspowner
    from pg_catalog.pg_namespace n cross join lateral pg_catalog.aclexplode(n.nspacl) x
    where n.nspname = $1::text and x.privilege_type = 'CREATE' and x.grantee <> n.nspowner
    union all
    select x.grantee, pg_catalog.lower(x.privilege_type), pg_catalog.format('table %I.%I', $1::text, c.relname),
           c.relowner
    from pg_catalog.pg_class c cross join lateral pg_catalog.aclexplode(c.relacl) x
    where c.relnamespace = (select n.oid from pg_catalog.pg_namespace n where n.nspname = $1::text)
      and case when x.privilege_type in ('TRIGGER', 'REFERENCES') and x.grantee <> c.relowner
               then (select has from definers) else false end -- looked for once, and only if somebody has such a right
    union all -- of a column of a queue of ours
    select x.grantee, pg_catalog.lower(x.privilege_type), pg_catalog.format('table %I.%I', $1::text, c.relname),
           c.relowner
    from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid
        cross join lateral pg_catalog.aclexplode(a.attacl) x
    where c.relnamespace = (select t.relnamespace from pg_catalog.pg_class t
                            join pg_catalog.pg_namespace n on n.oid = t.relnamespace
                            where n.nspname = $1::text and t.relname = 'tick')
      and x.privilege_type = 'REFERENCES' and x.grantee <> c.relowner
),
risk (said) as materialized (
    select pg_catalog.format('%1$s has %2$s on %3$s, so code of %1$s could run as %4$s: nothing is done before an '
                             'owner takes it away; hint: revoke %5$s on %3$s from %6$s',
                             coalesce(r.rolname::text, 'PUBLIC'), pg_catalog.upper(privilege), object,
                             pg_catalog.pg_get_userbyid(owner), privilege,
                             coalesce(pg_catalog.quote_ident(r.rolname::text), 'public'))
    from rights left join pg_catalog.pg_roles r on r.oid = rights.role
    where rights.role = 0 -- from 16 on a member may be one who can't become the role
       or not pg_catalog.pg_has_role(rights.role, owner, case when current_setting('server_version_num')::int >= 160000
                                                              then 'USAGE, SET, MEMBER WITH ADMIN OPTION'
                                                              else 'MEMBER' end)
    order by object, 1
    limit 1
),
