-- The schema, and whose rights may exist in it. This script runs first, and looks before anything else of the schema is
-- used: whoever may create objects there can make operators and functions that fit a call better than those of
-- pg_catalog. These would run as who installs, and later as the owner of the SECURITY DEFINER functions. So each
-- install, each step of the scheduler, each act and each start of a worker asks. rights_of_others() in 88_functions
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
                using errcode = '42501', hint = risk.run;
        end if;
    end loop;
end $$;
comment on function refuse_others(name, boolean) is 'Raises 42501 if code of others could run as an owner of the '
    'functions of this schema (code_of_others), and says which right that is and how to take it away';

create or replace function only_ours(place name) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    -- Exact for everybody but members of the owner, of whom refuse_others() knows more.
    if exists (select from pg_namespace n
               where n.nspname = place
                 and (pg_get_userbyid(n.nspowner) <> current_user
                      or exists (select from aclexplode(n.nspacl) a
                                 where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner))) then
        execute format('select %I.refuse_others($1, false)', place) using place;
    end if;
    return true;
end $$;
comment on function only_ours(name) is 'For the SECURITY DEFINER functions, whose owner is the current user: raises '
    '42501 if somebody else may create objects in the schema. The part of refuse_others() that is cheap enough for '
    'each step of the scheduler';

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
