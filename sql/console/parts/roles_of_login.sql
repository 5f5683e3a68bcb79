-- Which roles' rights the login has, for owners.sql and owners_plain.sql (a recursive WITH): me (the login and its
-- power), base (the owner of the database; known: NULL if he is a stranger to this login), grantors (whose grants of
-- memberships count) and memberships (the login and the roles that it has by them). owners.sql says why.
me as materialized (
    select r.oid, (
               select case when power.rolsuper then 'a superuser'
                           when power.rolcreaterole then 'which may create roles'
                           else pg_catalog.concat('a member of ', power.rolname) end
               from pg_catalog.pg_roles power
               where (power.rolsuper or power.rolcreaterole
                      or power.rolname in ('pg_execute_server_program', 'pg_write_server_files',
                                           'pg_read_server_files'))
                 and (r.rolsuper and power.oid = r.oid
                      or not r.rolsuper and pg_catalog.pg_has_role(r.oid, power.oid, 'member'))
               order by power.rolsuper desc, power.rolname = 'pg_execute_server_program' desc, power.rolname
               limit 1) as power
    from pg_catalog.pg_roles r where r.rolname = session_user
),
base as materialized (
    select d.oid as database, d.datdba as owner, owners.oid as owners,
           case when me.power is null then d.datdba end as known
    from me
    join pg_catalog.pg_database d on d.datname = current_database()
    left join pg_catalog.pg_roles owners on owners.rolname = 'pg_database_owner'
),
grantors (role) as (
    select r.oid from pg_catalog.pg_roles r where r.rolsuper or r.rolname = session_user
    union all
    select known from base
),
memberships (role) as (
    select r.oid from pg_catalog.pg_roles r where r.rolname = session_user
    union
    select m.roleid
    from memberships s
    join pg_catalog.pg_auth_members m on m.member = s.role and m.grantor in (select role from grantors)
    cross join pg_catalog.to_jsonb(m) fields
    where coalesce((fields ->> 'inherit_option')::boolean or (fields ->> 'set_option')::boolean, true)
),
