-- Rights. PUBLIC has none. The viewer reads; the worker pushes and works; the operator, who is a viewer too, may call
-- the administrative functions. Only the owner may change a table directly, and nobody may change the audit. Roles are
-- created if that is allowed; a NOTICE names what was not granted.

do $$
declare
    s        text := current_schema();
    viewer   text := coalesce(nullif(current_setting('queuetop.viewer', true), ''), 'queues_viewer');
    worker   text := coalesce(nullif(current_setting('queuetop.worker', true), ''), 'queues_worker');
    operator text := coalesce(nullif(current_setting('queuetop.operator', true), ''), 'queues_operator');
    role     text;
    f        record;
begin
    foreach role in array array[viewer, worker, operator] loop
        begin
            if to_regrole(quote_ident(role)) is null then
                execute format('create role %I nologin', role);
                execute format('comment on role %I is %L', role, 'queuetop');
            end if;
        exception when insufficient_privilege or duplicate_object then
            null;
        end;
    end loop;
    for f in select p.oid::regprocedure as name, p.proname from pg_proc p
             where p.pronamespace = quote_ident(s)::regnamespace and p.prokind = 'f' loop
        execute format('revoke all on function %s from public', f.name);
    end loop;
    foreach role in array array[viewer, worker, operator] loop
        if to_regrole(quote_ident(role)) is null then
            raise notice 'role % does not exist and could not be made: nothing was granted to it', quote_ident(role);
            continue;
        end if;
        execute format('grant usage on schema %I to %I', s, role);
        for f in select p.oid::regprocedure as name, p.proname from pg_proc p
                 where p.pronamespace = quote_ident(s)::regnamespace and p.prokind = 'f'
                   and p.proname in (
                       select unnest(r.functions) from role_functions() r
                       where r.kind = 'viewer' and role in (viewer, operator) or r.kind = 'worker' and role = worker
                          or r.kind = 'operator' and role = operator)
        loop
            execute format('grant execute on function %s to %I', f.name, role);
        end loop;
        if role = worker then
            execute format('grant insert (id, queue, kind, priority, payload, body, payload_type, run_after, '
                           'expires_at, unique_key, '
                           'max_tries, run_timeout, lease_timeout, concurrency_key) on queue to %I', role);
            -- insert .. returning id. A worker can look an id up in any case: job_outcome()
            execute format('grant select (id) on queue to %I', role);
            execute format('grant usage on sequence job_seq to %I', role);
            execute format('grant select on meta, setting to %I', role);
        else
            execute format('grant select on all tables in schema %I to %I', s, role);
        end if;
    end loop;
end $$;
