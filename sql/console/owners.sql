-- Whose code could run when the statements of an adapter read or change its tables in schema $1: one row for each owner
-- of such an object, and one for each role that may create objects there. model/adapter/trust.h has the rule. The
-- objects are found by their OIDs in the catalogs, from the names that the adapter's text uses:
--   $2 tables and types, $3 patterns of more tables (like), $4 functions, $5 true = all functions, types and operators
--   of the schema. If one of the functions in $4 exists, $5 counts as true: the body of a function may use any of them.
--   $7 a prefix that names may have.
-- From these the statement follows everything that could run: rules of views, policies, defaults, constraints, triggers
-- with their conditions, indexes and the functions of their operator classes, statistics, partitions, tables behind
-- foreign keys, types of columns with their functions, casts and fields, foreign servers. Event triggers belong to no
-- schema: they count for whole schemas, and alone for schema pg_catalog.
-- A cast counts only if each of its types is in pg_catalog or is reached in another way. Everybody who may use a type
-- can make a cast between that type and a type of his own, and this must not close the schema. No statement of ours
-- applies such a cast: the server casts to the type of a column, of a constraint, of a parameter of a function or an
-- operator, or to a type that the text names. It looks for functions and operators in pg_catalog and in the schema,
-- and all these objects lead to their types. The value that is cast comes from such an object, too. The exception are
-- casts without a function (castmethod b): with them an operator class of one type serves the other type, wherever it
-- is. Only a superuser can make such a cast, so these are always followed.
-- acts: only an act could run the code of this role, because nothing but triggers leads to it, and triggers run when a
-- row is changed. Who has the right TRIGGER or REFERENCES on a table, and no other, can make such code.
-- A trigger has no owner. With a condition or with arguments, functions of pg_catalog and of known roles do what its
-- author wants, so everybody with the right TRIGGER on its table counts. A right that was taken away since is not seen.
-- $6 NULL = list the owners. Otherwise only these owners are allowed, and the first other owner raises an error
-- (22P02), so that a later statement of the same transaction does not run. $8 NULL = none: owners whose code only acts
-- would run, allowed for a reader. If one of them has gone, this is an error, too: acts may be possible again.
-- A role is known if this login may use its rights anyway. pg_has_role() treats a superuser as a member of every role,
-- so this statement follows the memberships itself. It follows only those that the login, a superuser or the owner of
-- the database has granted: a stranger may grant his own role (until version 14), a role that he administers or, with
-- CREATEROLE, one that he made. Only a superuser can write another name than his own into grantor. From version 16 on a
-- membership can be one that allows only to administer the role (neither INHERIT nor SET; who makes a role has such a
-- one, granted by the first superuser): it is not followed. Older versions lack the two columns, so they are read as
-- fields of the row.
-- risk: a right of somebody else in the schema that the functions of our own queue refuse.
-- power: the right of this login that reaches beyond its database, in words; NULL = none. The code of another owner
-- would have this right. So the owner of the database is known only to a login without such a right, and so are his
-- grants. SET ROLE gives no right up, so what counts is the login's own role (session_user).
with recursive
-- part: roles_of_login
names (name) as (
    select (start || given)::name from unnest($2::text[]) given, unnest(array['', $7::text]) start
),
function_names (name) as (
    select (start || given)::name from unnest($4::text[]) given, unnest(array['', $7::text]) start
),
place as materialized (
    select n.oid, n.nspname, n.nspacl,
           case when n.nspowner = base.owners then base.owner else n.nspowner end as nspowner,
           $5::boolean or exists (
               select from pg_catalog.pg_proc p
               where p.pronamespace = n.oid and p.proname in (select name from function_names)) as whole
    from pg_catalog.pg_namespace n cross join base where n.nspname = $1::text
),
touched (class, id, acts) as (
    select class, id, false from (
        select 'pg_class'::regclass::oid, c.oid
        from place join pg_catalog.pg_class c on c.relnamespace = place.oid and c.relname in (select name from names)
        union all
        select 'pg_class'::regclass, c.oid
        from place join pg_catalog.pg_class c on c.relnamespace = place.oid and c.relname like any($3::text[])
        union all
        select 'pg_type'::regclass, t.oid
        from place join pg_catalog.pg_type t on t.typnamespace = place.oid and t.typname in (select name from names)
        union all
        select 'pg_proc'::regclass, p.oid
        from place join pg_catalog.pg_proc p on p.pronamespace = place.oid
        where p.proname in (select name from function_names)
        union all
        select d.classid, d.objid
        from place
        join pg_catalog.pg_depend d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = place.oid
        where place.whole and d.classid in ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass)
        union all
        select 'pg_event_trigger'::regclass, e.oid
        from place join pg_catalog.pg_event_trigger e on place.whole or place.nspname = 'pg_catalog'
        where e.evtenabled <> 'D'
    ) named (class, id)
    union
    select reached.class, reached.id, t.acts or t.class = 'pg_trigger'::regclass
    from touched t cross join lateral (
        select d.refclassid, d.refobjid
        from pg_catalog.pg_depend d
        where d.classid = t.class and d.objid = t.id and d.deptype <> 'e'
          and d.refclassid in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass,
                               'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_collation'::regclass,
                               'pg_foreign_server'::regclass, 'pg_foreign_data_wrapper'::regclass,
                               'pg_rewrite'::regclass, 'pg_constraint'::regclass, 'pg_attrdef'::regclass,
                               'pg_policy'::regclass, 'pg_language'::regclass)
          -- of the tables of a trigger only those that its condition names: its own one is reached already
          and (t.class <> 'pg_trigger'::regclass
               or d.refclassid not in ('pg_class'::regclass, 'pg_constraint'::regclass)
               or d.refclassid = 'pg_class'::regclass and d.deptype = 'n'
                  and not exists (select from pg_catalog.pg_trigger g where g.oid = t.id and g.tgrelid = d.refobjid))
        union all
        select part.class, part.id
        from (select 'pg_rewrite'::regclass::oid, r.oid from pg_catalog.pg_rewrite r where r.ev_class = t.id
              union all
              select 'pg_policy'::regclass, p.oid from pg_catalog.pg_policy p where p.polrelid = t.id
              union all
              select 'pg_attrdef'::regclass, d.oid from pg_catalog.pg_attrdef d where d.adrelid = t.id
              union all
              select 'pg_constraint'::regclass, c.oid from pg_catalog.pg_constraint c where c.conrelid = t.id
              union all
              select 'pg_class'::regclass, i.indexrelid from pg_catalog.pg_index i where i.indrelid = t.id
              union all
              select 'pg_class'::regclass, h.inhrelid from pg_catalog.pg_inherits h where h.inhparent = t.id
              union all
              select 'pg_trigger'::regclass, g.oid from pg_catalog.pg_trigger g where g.tgrelid = t.id
              union all
              select 'pg_statistic_ext'::regclass, x.oid from pg_catalog.pg_statistic_ext x where x.stxrelid = t.id
             ) part (class, id)
        where t.class = 'pg_class'::regclass
        union all -- the table at the other end of a foreign key, if it is not among the named ones
        select 'pg_class'::regclass, other.oid
        from place
        join pg_catalog.pg_trigger g on g.oid = t.id
        join pg_catalog.pg_class other on other.oid = g.tgconstrrelid
        where t.class = 'pg_trigger'::regclass
          and (other.relnamespace <> place.oid
               or other.relname not in (select name from names) and other.relname not like all($3::text[]))
        union all
        select part.class, part.id
        from (select 'pg_constraint'::regclass::oid, c.oid from pg_catalog.pg_constraint c where c.contypid = t.id
              union all
              select 'pg_cast'::regclass, c.oid
              from pg_catalog.pg_cast c
              join pg_catalog.pg_type other
                   on other.oid = case when c.castsource = t.id then c.casttarget else c.castsource end
              where t.id in (c.castsource, c.casttarget)
                and (c.castmethod = 'b' or other.typnamespace = 'pg_catalog'::regnamespace)
              union all
              select 'pg_opclass'::regclass, o.oid from pg_catalog.pg_opclass o where o.opcintype = t.id
              union all
              select 'pg_class'::regclass, y.typrelid
              from pg_catalog.pg_type y where y.oid = t.id and y.typrelid <> 0
             ) part (class, id)
        where t.class = 'pg_type'::regclass
        union all
        select part.class, part.id
        from (select 'pg_proc'::regclass::oid, p.amproc from pg_catalog.pg_amproc p where p.amprocfamily = t.id
              union all
              select 'pg_operator'::regclass, o.amopopr from pg_catalog.pg_amop o where o.amopfamily = t.id
             ) part (class, id)
        where t.class = 'pg_opfamily'::regclass
    ) reached (class, id)
    -- always true: without it the server expects, and makes room for, hundreds of times as many rows
    where reached.id::bigint - reached.id::bigint = 0
),
owned (owner, rank, class, id, acts) as (
    select nspowner, 9, 'pg_namespace'::regclass::oid, oid, false from place
    union all
    select owner, rank, class, id, acts
    from (
        select case t.class -- each by its OID: a join would read all of pg_proc
                   when 'pg_class'::regclass then (select relowner from pg_catalog.pg_class where oid = t.id)
                   when 'pg_proc'::regclass then (select proowner from pg_catalog.pg_proc where oid = t.id)
                   when 'pg_type'::regclass then (select typowner from pg_catalog.pg_type where oid = t.id)
                   when 'pg_operator'::regclass then (select oprowner from pg_catalog.pg_operator where oid = t.id)
                   when 'pg_opclass'::regclass then (select opcowner from pg_catalog.pg_opclass where oid = t.id)
                   when 'pg_opfamily'::regclass then (select opfowner from pg_catalog.pg_opfamily where oid = t.id)
                   when 'pg_collation'::regclass then (select collowner from pg_catalog.pg_collation where oid = t.id)
                   when 'pg_foreign_server'::regclass
                       then (select srvowner from pg_catalog.pg_foreign_server where oid = t.id)
                   when 'pg_foreign_data_wrapper'::regclass
                       then (select fdwowner from pg_catalog.pg_foreign_data_wrapper where oid = t.id)
                   when 'pg_language'::regclass then (select lanowner from pg_catalog.pg_language where oid = t.id)
               end as owner,
               case when t.class <> 'pg_class'::regclass then 1
                    when (select relkind in ('r', 'p', 'v', 'm', 'f') from pg_catalog.pg_class where oid = t.id) then 0
                    else 2 end as rank, t.class, t.id, t.acts
        from touched t
    ) found
    where owner is not null
    union all -- the functions of casts between two types that are reached
    select p.proowner, 1, 'pg_proc'::regclass, p.oid, source.acts or target.acts
    from pg_catalog.pg_cast c
    join pg_catalog.pg_proc p on p.oid = c.castfunc
    join touched source on source.class = 'pg_type'::regclass and source.id = c.castsource
    join touched target on target.class = 'pg_type'::regclass and target.id = c.casttarget
    union all -- the trigger or foreign key itself, to name it
    select p.proowner, -2, t.class, t.id, true
    from touched t
    join pg_catalog.pg_depend d on d.classid = t.class and d.objid = t.id and d.refclassid = 'pg_proc'::regclass
    join pg_catalog.pg_proc p on p.oid = d.refobjid
    where t.class = 'pg_trigger'::regclass
    union all -- who may have written the condition or the arguments of a trigger: a trigger has no owner
    select x.grantee, -3, t.class, t.id, true
    from touched t
    join pg_catalog.pg_trigger g on g.oid = t.id
    join pg_catalog.pg_class c on c.oid = g.tgrelid
    cross join lateral pg_catalog.aclexplode(c.relacl) x
    where t.class = 'pg_trigger'::regclass and (g.tgqual is not null or g.tgnargs > 0) and not g.tgisinternal
      and x.privilege_type = 'TRIGGER'
    union all
    select other.relowner, -1, 'pg_constraint'::regclass, g.tgconstraint, true
    from touched t
    join pg_catalog.pg_trigger g on g.oid = t.id
    join pg_catalog.pg_class other on other.oid = g.tgconstrrelid
    where t.class = 'pg_trigger'::regclass
),
-- part: risk_of_others
named (role, creates, rank, class, id, acts) as (
    select owner, false, rank, class, id, acts from owned
    union all
    select x.grantee, true, 0, 'pg_namespace'::regclass::oid, place.oid, false
    from place cross join lateral pg_catalog.aclexplode(place.nspacl) x
    where x.privilege_type = 'CREATE'
),
roles (role, creates, class, id, acts) as ( -- what belongs to pg_database_owner belongs to the owner of the database
    select case when named.role = base.owners then base.owner else named.role end, creates,
           (array_agg(class order by acts, rank, class, id))[1], (array_agg(id order by acts, rank, class, id))[1],
           bool_and(acts)
    from named cross join base
    group by 1, 2
)
select roles.role::bigint as role,
       coalesce(r.rolname::text, case when roles.role = 0 then 'public' else roles.role::text end) as name,
       roles.role <> 0 and (coalesce(r.rolsuper, false) or roles.role in (select role from memberships)
                            or roles.role is not distinct from base.known) as known,
       roles.creates, roles.acts, pg_catalog.pg_describe_object(roles.class, roles.id, 0) as object,
       place.oid::bigint as place, place.nspowner::bigint as place_owner, place.nspacl::text as place_acl,
       me.oid::bigint as me, me.power, (select said from risk) as risk,
       case when $6::oid[] is not null and not roles.creates and roles.role <> all($6::oid[])
                 and not coalesce(roles.acts and roles.role = any($8::oid[]), false)
            then pg_catalog.concat('owner ', r.rolname)::int
            when pg_catalog.cardinality($8::oid[]) > (select count(*) from roles other
                                                      where other.acts and other.role = any($8::oid[]))
            then pg_catalog.concat('code that an act would have run has gone')::int end as refused
from roles
cross join place
cross join me
cross join base
left join pg_catalog.pg_roles r on r.oid = roles.role
order by known, roles.creates, name
