-- The cheap proof that owners.sql would find no stranger: everything in this database belongs to roles that are known
-- to it. One row for each of these roles and for each role that may create objects in schema $1, with the columns of
-- owners.sql. No row if it is not so, or if the schema is not there: then owners.sql is asked, which takes seven times
-- as long, nearly all of it for its plan. $2 true: a stranger raises an error (22P02) instead, so that a later
-- statement of the same transaction does not run.
-- pg_shdepend has a row for each object whose owner is not pinned. Pinned are the first superuser (10), who must still
-- be one, and the roles of initdb (pg_monitor): who is a member of one can give it an object of his own, so their
-- objects are looked for in each catalog that has owners, as are those whose row of pg_shdepend is missing. What has no
-- owner (triggers, rules, casts, policies) runs functions and operators, which have one; but the condition and the
-- arguments of a trigger make known functions do what its author wants, so the right TRIGGER on such a table counts.
-- trusted has no NULL, or "not in" would never be true. Version 13 has no pg_database_owner.
with recursive
-- part: roles_of_login
trusted (oid) as materialized (
    select role from grantors where role is not null
    union
    select role from memberships
    union
    select owners from base
    where owners is not null and owner in (select role from grantors union all select role from memberships)
),
stranger as materialized (
    select not exists (select from pg_catalog.pg_roles where oid = 10 and rolsuper)
        or exists (select from pg_catalog.pg_shdepend s
                   where s.dbid = (select database from base) and s.deptype = 'o'
                     and s.refclassid = 'pg_authid'::regclass and s.refobjid not in (select oid from trusted))
        or exists (select from pg_catalog.pg_trigger g
                   join pg_catalog.pg_class c on c.oid = g.tgrelid
                   cross join lateral pg_catalog.aclexplode(c.relacl) x
                   where (g.tgqual is not null or g.tgnargs > 0) and not g.tgisinternal
                     and x.privilege_type = 'TRIGGER' and x.grantee not in (select oid from trusted))
        or exists (select from (
               select relowner from pg_catalog.pg_class where oid >= 16384
               union all select proowner from pg_catalog.pg_proc where oid >= 16384
               union all select typowner from pg_catalog.pg_type where oid >= 16384
               union all select oprowner from pg_catalog.pg_operator where oid >= 16384
               union all select opcowner from pg_catalog.pg_opclass where oid >= 16384
               union all select opfowner from pg_catalog.pg_opfamily where oid >= 16384
               union all select collowner from pg_catalog.pg_collation where oid >= 16384
               union all select lanowner from pg_catalog.pg_language where oid >= 16384
               union all select srvowner from pg_catalog.pg_foreign_server
               union all select fdwowner from pg_catalog.pg_foreign_data_wrapper
               union all select nspowner from pg_catalog.pg_namespace where oid >= 16384 or nspname = $1::text
           ) owned (owner)
           where owned.owner <> 10 and owned.owner not in (select oid from trusted)) as is_there
),
-- part: risk_of_others
roles (role, name, known, creates) as (
    select t.oid, r.rolname::text, true, false from trusted t join pg_catalog.pg_roles r on r.oid = t.oid
    union all
    select distinct x.grantee, coalesce(r.rolname::text, 'public'), x.grantee in (select oid from trusted), true
    from pg_catalog.pg_namespace n
    cross join lateral pg_catalog.aclexplode(n.nspacl) x
    left join pg_catalog.pg_roles r on r.oid = x.grantee
    where n.nspname = $1::text and x.privilege_type = 'CREATE'
)
select roles.role::bigint as role, roles.name, roles.known, roles.creates, false as acts, '' as object,
       place.oid::bigint as place,
       (case when place.nspowner = base.owners then base.owner else place.nspowner end)::bigint as place_owner,
       place.nspacl::text as place_acl, me.oid::bigint as me, me.power, (select said from risk) as risk,
       case when stranger.is_there then pg_catalog.concat('something here belongs to another role')::int end as refused,
       true as plain
from roles
cross join stranger
join pg_catalog.pg_namespace place on place.nspname = $1::text
cross join me
cross join base
where $2::boolean or not stranger.is_there
order by roles.known, roles.creates, roles.name
