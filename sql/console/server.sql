-- Facts about the server and this login, asked once a connection. now_ms is rounded up, so that everything that has
-- happened is before it. read_only is the login's default; "begin read only" does not change it. identity: this cluster
-- and this database, by whatever address they were reached; NULL for a login that may not call the function. The call
-- is in a text that is run only if the login may call it: a direct call would be refused even if it were not reached.
-- ts_stat runs a text on every server (query_to_xml needs one with libxml).
select current_setting('server_version') as server_version,
       session_user::text as "user",
       current_database()::text as database,
       ceil(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms,
       pg_backend_pid() as backend_pid,
       pg_is_in_recovery() as in_recovery,
       current_setting('default_transaction_read_only')::boolean as read_only,
       (select rolsuper from pg_roles where rolname = session_user) as is_superuser,
       case when has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()')::oid, 'execute')
            then (select word
                    from ts_stat('select pg_catalog.array_to_tsvector(array[system_identifier::text]) '
                                 'from pg_catalog.pg_control_system()')) end
           || '/' || (select oid from pg_database where datname = current_database()) as identity
