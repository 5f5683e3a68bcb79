-- What this login may do with a queue system that has no roles of its own. Its rights on the tables decide ($1, names
-- in {schema}, * = any letters; NULL = not known). The statement reads only catalogs: it must answer even if the login
-- may do nothing at all. To act, the login needs a right to write on some table, and a server that is no standby.
-- warning: row security applies to this login and hides rows without an error.
select case when has_schema_privilege(n.oid, 'usage') and t.unread is null
            then case when pg_has_role(n.nspowner, 'usage') then 'owner' when t.writes then 'operator' else 'viewer' end
            else '' end as role,
       has_schema_privilege(n.oid, 'usage') and t.unread is null and t.writes and not pg_is_in_recovery() as can_act,
       case when not has_schema_privilege(n.oid, 'usage')
            then format('user %s may not look into schema %s: grant usage on schema %I', session_user, n.nspname,
                        n.nspname)
            when t.unread is not null
            then format('user %s may not read table %s: grant select on it', session_user, t.unread)
            when pg_is_in_recovery() then 'this server is a standby: it takes no changes'
            when not t.writes then format('user %s may only look: changing needs the right to update %s', session_user,
                                          t.some)
       end as why,
       case when t.hidden is not null
            then format('row security of table %s applies to user %s: jobs may be there that are not shown', t.hidden,
                        session_user)
       end as warning,
       pg_has_role('pg_signal_backend', 'member') as signals
from pg_namespace n
cross join lateral (
    select coalesce(bool_or(has_table_privilege(c.oid, 'update') or has_table_privilege(c.oid, 'delete')), true)
    as writes,
           min(c.relname::text) filter (where not has_table_privilege(c.oid, 'select')
                                        and not has_any_column_privilege(c.oid, 'select')) as unread,
           min(c.relname::text) filter (where c.relrowsecurity and row_security_active(c.oid)) as hidden,
           min(c.relname::text) as some
    from pg_class c
    where c.relnamespace = n.oid and c.relkind in ('r', 'p', 'v', 'm', 'f')
      and exists (select from unnest($1::text[]) name
                  where c.relname like replace(replace(replace({prefix_lit} || name, E'\\', E'\\\\'), '_', E'\\_'), '*',
                                               '%'))) t
where n.nspname = {schema_lit}
