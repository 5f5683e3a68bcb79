-- The schema, and whose rights may exist in it. This script runs first, and looks before anything else of the schema is
-- used: whoever may create objects there can make operators and functions that fit a call better than those of
-- pg_catalog. These would run as who installs, and later as the owner of the SECURITY DEFINER functions. So each
-- install, each act, each start of a worker and each SECURITY DEFINER function asks. rights_of_others() in 88_functions
-- lists the other rights, too. The functions here see pg_catalog only.

do $$
declare
    s text := coalesce(nullif(current_setting('queuetop.schema', true), ''), 'queues');
begin
    if s ~ '^pg_' or s in ('information_schema', 'public') then
        raise 'a schema called "%" cannot hold the queue: choose one of its own', s using errcode = '42939';
    end if;
    if to_regnamespace(quote_ident(s)) is null then
        execute format('create schema %I', s);
        execute format('comment on schema %I is %L', s, 'queuetop: a job queue (push, claim, extend, complete, fail)');
        -- default privileges give rights on a new schema, too
        for s in select format('revoke all on schema %I from %s cascade', n.nspname,
                               case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end)
                 from pg_namespace n cross join aclexplode(n.nspacl) a
                 where n.nspname = s and a.grantee <> n.nspowner loop
            execute s;
        end loop;
        s := coalesce(nullif(current_setting('queuetop.schema', true), ''), 'queues');
    end if;
    perform set_config('search_path', format('%I, pg_temp', s), true);
    perform set_config('client_min_messages', 'warning', true);
end $$;

create or replace function code_of_others(place name, makes boolean)
returns table (role text, privilege text, object text, run text, class oid, id oid, runs_as text)
language sql stable set search_path = pg_catalog, pg_temp as $$
-- part: code_of_others
$$;
comment on function code_of_others(name, boolean) is 'Which rights in the schema let code of others run as an owner of '
    'its SECURITY DEFINER functions: a row for each, with the statement that takes it away. makes: the current user is '
    'about to make functions there';

create or replace function refuse_others(place name, makes boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    risk record;
begin
    for risk in execute format('select role, privilege, object, run, runs_as from %I.code_of_others($1, $2)', place)
                using place, makes loop
        if current_setting('queuetop.force', true) = 'on' and makes then
            raise warning '% has % on %, so code of % can run as %; take it away: %', risk.role, risk.privilege,
                risk.object, risk.role, risk.runs_as, risk.run;
        else
            raise '% has % on %, so code of % could run as %: nothing is done before an owner takes it away',
                risk.role, risk.privilege, risk.object, risk.role, risk.runs_as
                using errcode = '42501', hint = risk.run, constraint = 'rights_of_others';
        end if;
    end loop;
end $$;
comment on function refuse_others(name, boolean) is 'Raises 42501 if code of others could run as an owner of the '
    'functions of this schema (code_of_others), and says which right that is and how to take it away. The error''s '
    'constraint is rights_of_others';

-- The check of every SECURITY DEFINER function: before anything else, its declarations (or its first statement, in SQL)
-- call only_ours(). A statement is parsed once a session, and again when a right of a schema, an operator or something
-- that the statement uses has changed. The planner evaluates a call of an IMMUTABLE function at the same moments and
-- keeps the result in the plan, so the check costs a session next to nothing after its first call. The innermost
-- function is VOLATILE: it sees what has been committed meanwhile. Statements of functions in SQL are planned at each
-- call, hence two levels of IMMUTABLE ones.
-- A statement that may be parsed after a wait (for a row that somebody else has locked) has "only_ours()" in its WHERE:
-- it is planned after it is parsed, so what its parser saw, the check sees, too.
-- No plan is made anew for a new function. So while a transaction is open that began to write before the schema's
-- rights last changed, no answer is kept: it may have made a function that it has not committed yet. Two things the
-- check can't see: a function whose transaction began to write while the statement that takes the right away was under
-- way, or whose maker had the right through a membership that has ended (so what pushes and works names the schema of
-- each function of the server, and lint asks for it); and triggers, constraints and other code at tables, which
-- refuse_others() looks for.
do $do$ begin execute format($make$
create or replace function only_ours_now() returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $body$
declare
    place constant oid := %2$L::regnamespace::oid;
    owner constant oid := quote_ident(current_user)::regrole::oid;
begin
    -- One statement, because to plan it costs a new session more than to run it. Exact for everybody but members of the
    -- owner, of whom refuse_others() knows more
    perform from (select n.nspowner from pg_namespace n where n.oid = place
                  union all select a.grantee
                            from aclexplode((select n.nspacl from pg_namespace n where n.oid = place)) a
                            where a.privilege_type = 'CREATE'
                  union all select o.oprowner from pg_operator o where o.oprnamespace = place
                  union all select p.proowner from pg_proc p where p.pronamespace = place) who (role)
    where who.role <> owner;
    if found then
        perform %1$s.refuse_others(%3$L, false);
    end if;
    -- Such a transaction sees neither rights that were given after it began, nor what was made with them, but runs it:
    -- the row that it sees of the schema says (xmax) that there is a newer one. Nor does it see what others, at work
    -- when it began, have committed since; those who were at work before that row was made (xmin) may have had rights
    -- that it does not show. No plan keeps this answer
    if current_setting('transaction_isolation') <> 'read committed' then
        if exists (select from pg_namespace n cross join pg_current_snapshot() now
                   where n.oid = place
                     and (n.xmax <> '0' and age(n.xmax) <= age(pg_snapshot_xmin(now)::xid)
                          or age(n.xmin) > age(pg_snapshot_xmax(now)::xid)
                             and exists (select from pg_snapshot_xip(now) other
                                         where age(other::xid) > age(n.xmin)
                                           and pg_xact_status(other) = 'committed'))) then
            raise 'the rights on schema %% have changed since this transaction began, or shortly before: begin it anew',
                %3$L using errcode = '40001';
        end if;
        discard plans;
    elsif exists (select from pg_namespace n
                  where n.oid = place
                    and age(n.xmin) between 0 and age(pg_snapshot_xmin(pg_current_snapshot())::xid)) then
        discard plans;
    end if;
    if current_setting('session_replication_role') = 'replica' then
        raise 'session_replication_role is replica: the triggers that count jobs would not run'
            using errcode = 'QT007', hint = 'alter role ... reset session_replication_role, or alter database ... '
                'reset session_replication_role';
    end if;
    return true;
end $body$;
create or replace function only_ours_kept() returns boolean language plpgsql immutable as
$body$ begin return %1$s.only_ours_now(); end $body$;
create or replace function only_ours() returns boolean language plpgsql immutable as
$body$ begin return %1$s.only_ours_kept(); end $body$;
$make$, quote_ident(current_schema()), quote_ident(current_schema()), current_schema()); end $do$;
comment on function only_ours_now() is 'For functions whose owner is the current user: raises 42501 if somebody else '
    'may create objects in the schema, owns it, or has an operator or a function there. The part of refuse_others() '
    'that is cheap. Raises QT007 in a session without triggers, where a push would not be counted';
comment on function only_ours_kept() is 'only_ours_now(), once for each plan that calls it';
comment on function only_ours() is 'only_ours_now(), once for each plan that calls it, also for callers in SQL';

create or replace function keep_for_owner(relation regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    other text;
begin
    for other in select distinct case a.grantee when 0::oid then 'public'
                                      else quote_ident(pg_get_userbyid(a.grantee)) end
                 from pg_class t cross join aclexplode(t.relacl) a
                 where t.oid = relation::oid and a.grantee <> t.relowner loop
        execute format('revoke all on table %s from %s cascade', relation, other);
    end loop;
end $$;
comment on function keep_for_owner(regclass) is 'Takes from everybody but the owner the rights that default privileges '
    'have just given on a new table';

select refuse_others(current_schema(), true);
