-- Which rights let code of others run as an owner of this queue's functions (SECURITY DEFINER): a row for each, with
-- the statement that takes it away. $1 the schema, $2 true = the current user is about to make functions there, too.
-- Known are the owners of such functions, and who can become all of them (superusers can). Everybody else may not
--   create in the schema: an operator of his could fit a call better than one of pg_catalog does,
--   own the schema or anything in it,
--   have TRIGGER or REFERENCES on a table,
--   own what something at a table calls, or a table that refers to one of ours or inherits from it. Such things stay
--   when the right that made them is gone.
-- Not found: what calls functions of pg_catalog only, and does harm by their arguments.
-- The statement reads catalogs only and starts from pg_depend, so a large database costs no more than a small one:
-- "offset 0" makes the planner go on by an index.
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
parts (class, id) as materialized ( -- what is at our tables and types, and has no owner of its own
    select 'pg_catalog.pg_class'::regclass::oid, i.indexrelid
    from relations t join pg_catalog.pg_index i on i.indrelid = t.oid
    union all
    select 'pg_catalog.pg_trigger'::regclass, g.oid
    from relations t join pg_catalog.pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal
    union all
    select 'pg_catalog.pg_constraint'::regclass, k.oid
    from relations t join pg_catalog.pg_constraint k on k.conrelid = t.oid
    union all
    select 'pg_catalog.pg_constraint'::regclass, k.oid
    from content c join pg_catalog.pg_constraint k on k.contypid = c.objid
    where c.classid = 'pg_catalog.pg_type'::regclass::oid
    union all
    select 'pg_catalog.pg_attrdef'::regclass, e.oid
    from relations t join pg_catalog.pg_attrdef e on e.adrelid = t.oid
    union all
    select 'pg_catalog.pg_rewrite'::regclass, r.oid
    from relations t join pg_catalog.pg_rewrite r on r.ev_class = t.oid
    union all
    select 'pg_catalog.pg_policy'::regclass, p.oid
    from relations t join pg_catalog.pg_policy p on p.polrelid = t.oid
    union all
    select 'pg_catalog.pg_statistic_ext'::regclass, x.oid
    from relations t join pg_catalog.pg_statistic_ext x on x.stxrelid = t.oid
),
owned (role, class, id, part) as materialized ( -- part: the number of a column, 0 = the whole
    select s.refobjid, o.class, o.id, 0
    from (select c.classid, c.objid, c.classid, c.objid from content c
          union -- what parts call: objects below 16384 are those of initdb
          select p.class, p.id, d.refclassid, d.refobjid
          from parts p
          cross join lateral (select pg_depend.refclassid, pg_depend.refobjid from pg_catalog.pg_depend
                              where pg_depend.classid = p.class and pg_depend.objid = p.id offset 0) d
          where d.refobjid >= 16384::oid and d.refclassid <> 'pg_catalog.pg_namespace'::regclass::oid
            and (d.refclassid, d.refobjid) not in (select 'pg_catalog.pg_class'::regclass::oid, t.oid from relations t)
         ) o (class, id, owned_class, owned)
    join pg_catalog.pg_database here on here.datname = pg_catalog.current_database()
    cross join lateral (select pg_shdepend.refobjid from pg_catalog.pg_shdepend
                        where pg_shdepend.dbid = here.oid and pg_shdepend.classid = o.owned_class
                          and pg_shdepend.objid = o.owned and pg_shdepend.deptype = 'o'
                        union all -- arrays and the row types of tables are not in pg_shdepend
                        select y.typowner from pg_catalog.pg_type y
                        where o.owned_class = 'pg_catalog.pg_type'::regclass::oid and y.oid = o.owned offset 0) s
    union all
    select y.typowner, 'pg_catalog.pg_class'::regclass, t.oid, a.attnum
    from relations t
    join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.atttypid >= 16384::oid
    join pg_catalog.pg_type y on y.oid = a.atttypid
    union -- a foreign key has two triggers, and pg_constraint no index by confrelid
    select t.relowner, 'pg_catalog.pg_constraint'::regclass, g.tgconstraint, 0
    from relations ours
    join pg_catalog.pg_trigger g on g.tgrelid = ours.oid and g.tgisinternal
    join pg_catalog.pg_class t on t.oid = g.tgconstrrelid
),
held (role, privilege, class, id, part, start) as (
    select a.grantee, a.privilege_type, 'pg_catalog.pg_namespace'::regclass::oid, place.oid, 0,
           pg_catalog.format('revoke create on schema %I from ', place.nspname)
    from place cross join lateral pg_catalog.aclexplode(place.nspacl) a
    where a.privilege_type = 'CREATE' and a.grantee <> place.nspowner
    union all -- to take a right on a table away takes it on each column, too
    select a.grantee, a.privilege_type, 'pg_catalog.pg_class'::regclass, t.oid, 0,
           pg_catalog.format('revoke %s on %s from ', pg_catalog.lower(a.privilege_type), t.oid::regclass)
    from relations t
    cross join lateral (select t.relacl
                        union all
                        select c.attacl from pg_catalog.pg_attribute c
                        where c.attrelid = t.oid and c.attacl is not null) given (acl)
    cross join lateral pg_catalog.aclexplode(given.acl) a
    where a.privilege_type in ('TRIGGER', 'REFERENCES') and a.grantee <> t.relowner
    union all
    select place.nspowner, 'OWNER', 'pg_catalog.pg_namespace'::regclass, place.oid, 0, null from place
    union all
    select o.role, 'OWNER', o.class, o.id, o.part, null from owned o
    union all
    select t.relowner, 'OWNER', 'pg_catalog.pg_class'::regclass, t.oid, 0,
           pg_catalog.format(case when t.relispartition then 'alter table %2$s detach partition %1$s'
                                  else 'alter table %1$s no inherit %2$s' end, t.oid::regclass, ours.oid::regclass)
    from relations ours
    join pg_catalog.pg_inherits i on i.inhparent = ours.oid
    join pg_catalog.pg_class t on t.oid = i.inhrelid
),
risky as materialized (
    select distinct h.role, h.privilege, h.class, h.id, h.part, h.start,
           pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(h.role)::text) as quoted, risk.owner as runs_as
    from held h
    cross join lateral (select d.owner from definers d cross join becomes b
                        where h.role = 0::oid or not pg_catalog.pg_has_role(h.role, d.owner, b.way) limit 1) risk
)
select case h.role when 0::oid then 'PUBLIC' else pg_catalog.pg_get_userbyid(h.role)::text end as role,
       h.privilege, pg_catalog.pg_describe_object(h.class, h.id, h.part) as object,
       case
           when h.privilege <> 'OWNER'
               then pg_catalog.concat(h.start, case h.role when 0::oid then 'public' else h.quoted end)
           when h.start is not null then h.start
           when i.type in ('schema', 'table', 'view', 'sequence', 'materialized view', 'foreign table')
               then pg_catalog.format('alter %s %s owner to %I', i.type, i.identity,
                                      pg_catalog.pg_get_userbyid(h.runs_as))
           when i.type = 'table constraint'
               then pg_catalog.format('alter table %I.%I drop constraint %I', variadic a.names)
           when i.type = 'table column'
               then pg_catalog.format('alter table %I.%I drop column %I', variadic a.names)
           when i.type = 'default value'
               then pg_catalog.format('alter table %I.%I alter %I drop default', variadic a.names)
           when i.type = 'rule' and a.names[3] = '_RETURN'
               then (select pg_catalog.format('drop %s %s', v.type, v.identity)
                     from pg_catalog.pg_rewrite r
                     cross join lateral pg_catalog.pg_identify_object('pg_catalog.pg_class'::regclass::oid,
                                                                      r.ev_class, 0) v
                     where r.oid = h.id)
           when i.type = 'domain constraint'
               then pg_catalog.format('alter domain %s drop constraint %I', a.names[1], a.args[1])
           else pg_catalog.format('drop %s %s', pg_catalog.replace(i.type, ' object', ''), i.identity) end as run,
       h.class, h.id, pg_catalog.pg_get_userbyid(h.runs_as)::text as runs_as
from risky h
cross join lateral pg_catalog.pg_identify_object(h.class, h.id, h.part) i
cross join lateral pg_catalog.pg_identify_object_as_address(h.class, h.id, h.part) a (type, names, args)
order by object, role
