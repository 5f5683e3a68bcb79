-- Rights. PUBLIC has none. The viewer reads; the pusher pushes, and the worker works, too; the operator, who is a
-- viewer, too, may call the administrative functions. Only the owner may change a table directly, and nobody may change
-- the audit. Roles are created if that is allowed; a NOTICE names what was not granted. What kind_rights() lists is
-- granted (88_functions). What this install has made loses every other right, because default privileges may have given
-- some. An older object that others may change ends the install.

do $$
declare
    viewer   text := coalesce(nullif(current_setting('queuetop.viewer', true), ''), 'queues_viewer');
    worker   text := coalesce(nullif(current_setting('queuetop.worker', true), ''), 'queues_worker');
    operator text := coalesce(nullif(current_setting('queuetop.operator', true), ''), 'queues_operator');
    pusher   text := coalesce(nullif(current_setting('queuetop.pusher', true), ''), 'queues_pusher');
    there    text[] := string_to_array(current_setting('queuetop.there', true), ' '); -- null: the scripts alone
    is_new   boolean;
    role     text;
    f        record;
begin
    foreach role in array array[viewer, worker, operator, pusher] loop
        begin
            if to_regrole(quote_ident(role)) is null then
                execute format('create role %I nologin', role);
                execute format('comment on role %I is %L', role, 'queuetop');
            end if;
        exception when insufficient_privilege or duplicate_object then
            null;
        end;
        if to_regrole(quote_ident(role)) is null then
            raise notice 'role % does not exist and could not be made: nothing was granted to it', quote_ident(role);
            continue;
        end if;
        for f in select distinct grant_or_revoke('grant', k.class, k.id, k.part, k.privilege) as run
                 from kind_rights() k
                 where k.kind = 'viewer' and role in (viewer, operator) or k.kind = 'worker' and role = worker
                    or k.kind = 'operator' and role = operator or k.kind = 'pusher' and role = pusher loop
            execute f.run || ' to ' || quote_ident(role);
        end loop;
    end loop;
    for f in select * from rights_of_others() loop
        is_new := (concat_ws(':', f.class, f.id) = any(there)) is not true;
        if is_new or f.role = 'PUBLIC' and f.privilege = 'EXECUTE' then
            execute f.run;
        elsif f.danger = 'write' and current_setting('queuetop.force', true) = 'on' then
            raise warning '% has % on %: it can change the queue past its functions and the audit; take it away: %',
                f.role, f.privilege, f.object, f.run;
        elsif f.danger = 'write' then
            raise '% has % on %: it can change the queue past its functions and the audit', f.role, f.privilege,
                f.object using errcode = '42501', hint = f.run;
        end if;
    end loop;
end $$;
