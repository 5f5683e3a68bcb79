-- Facts about the server and this login, asked once a connection. now_ms is rounded up, so that whatever has
-- happened by now is before it. read_only is the login's default, which "begin read only" does not change.
select current_setting('server_version') as server_version,
       session_user::text as "user",
       current_database()::text as database,
       ceil(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       pg_backend_pid() as backend_pid,
       pg_is_in_recovery() as in_recovery,
       current_setting('default_transaction_read_only')::boolean as read_only,
       (select rolsuper from pg_roles where rolname = session_user) as is_superuser
