-- Facts about the server and this login, asked once a connection. now_ms is rounded up, so that whatever has
-- happened by now is before it.
select current_setting('server_version') as server_version,
       session_user::text as "user",
       current_database()::text as database,
       ceil(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       pg_backend_pid() as backend_pid,
       pg_is_in_recovery() as in_recovery,
       exists (select from pg_db_role_setting s, unnest(s.setconfig) c
               where s.setrole in (0, (select oid from pg_roles where rolname = session_user))
                 and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
                 and c in ('default_transaction_read_only=on', 'default_transaction_read_only=true')) as read_only,
       (select rolsuper from pg_roles where rolname = session_user) as is_superuser
