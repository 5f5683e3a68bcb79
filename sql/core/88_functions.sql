-- Which functions there are: who may call them, what rights a role has besides, who has more than that, and which of
-- the functions this install has made. Functions that an earlier install made and this one did not are dropped. Table
-- made_function remembers the functions of the last install; a function of anybody else is not in it. A function counts
-- as made by this install if its row in pg_proc is another one than before the first script: install keeps these rows
-- in the setting queuetop.before. Only an install that brings a newer version drops functions: of two programs of the
-- same version one may make functions that the other does not know.

create or replace function role_functions() returns table (kind text, functions text[])
language sql immutable set search_path from current as $$
    with list (push, work, act, read) as (values (
        '{push,push_text,push_bytes,push_many,uuid_v7,job_outcome}'::text[],
        '{claim_or_wait,wake,push,push_text,push_bytes,push_many,claim,complete,complete_and_claim,fail,extend,'
        'complete_job,fail_job,extend_lease,'
        'give_back,node_start,node_beat,node_clock,node_sleep,node_stop,schedule,schedule_or_wait,is_new,'
        'scheduler_sleep,scheduler_stop,scheduler_holder,backlog,keep_only,keep_books,fold_beside,uuid_v7,'
        'job_outcome}'::text[],
        '{requeue,requeue_at_priority,requeue_where,release,extend_leases,purge,pause,resume,cancel,discard,'
        'delete_jobs,drain_node,set_queue,'
        'schedule_set,schedule_pause,schedule_resume,schedule_run,schedule_remove,signal_backend,'
        'send_signal,cancel_where,discard_where,delete_where,set_priority,set_priority_where,set_time,'
        'set_time_where,undo,edit_job,push_by_hand,repair}'::text[],
        '{history_of,living,as_text,purge_audit_preview,error_key,overview,rates,minutes,minute_steps,percentiles,'
        'failure_groups,slot_class,requeue_preview,requeue_sample,queue_pace,failed_within_hour,'
        'release_preview,extend_preview,purge_preview,setting_int,setting_interval,backlog,node_alive,cron_times,'
        'cron_outcome,cron_result,schedule_preview,queue_settings,set_queue_preview,pause_preview,remove_preview,'
        'change_preview,undo_preview,undo_why,audit_change,edit_preview,push_preview,shortfalls,'
        'role_functions,kind_rights,queue_roles,all_rights,grant_or_revoke,rights_of_others,code_of_others}'::text[]))
    select 'viewer', read from list union all select 'pusher', push from list
    union all select 'worker', work from list union all select 'operator', act from list
$$;
comment on function role_functions() is 'Which functions each kind of role may call: viewer, pusher, worker, '
    'operator. An operator is a viewer, too';

create or replace function kind_rights() returns table (kind text, class oid, id oid, part int, privilege text)
language sql stable set search_path from current as $$
    with place as (
        select 'pg_namespace'::regclass::oid as class, n.oid as id
        from pg_namespace n where n.nspname = current_schema()
    ),
    relation as (
        select t.oid, t.relname, t.relkind from pg_class t join place on t.relnamespace = place.id
        where t.relkind in ('r'::"char", 'p'::"char", 'v'::"char", 'S'::"char")
    ),
    pushed as (
        select unnest('{id,queue,kind,priority,payload,body,payload_type,run_after,expires_at,unique_key,max_tries,'
                      'run_timeout,lease_timeout,concurrency_key}'::name[]) as attname
    )
    select k.kind, place.class, place.id, 0, 'USAGE'
    from place, unnest('{viewer,pusher,worker,operator}'::text[]) k (kind)
    union all
    select f.kind, 'pg_proc'::regclass, p.oid, 0, 'EXECUTE'
    from role_functions() f, place, pg_proc p
    where p.pronamespace = place.id and p.prokind = 'f'::"char"
      -- a function that a migration has put aside keeps its rights
      and regexp_replace(p.proname::text, '_before_[0-9]{3}$'::text, ''::text) = any(f.functions)
    union all
    select 'viewer', 'pg_class'::regclass, t.oid, 0, 'SELECT' from relation t where t.relkind <> 'S'::"char"
    union all
    select k.kind, 'pg_class'::regclass, t.oid, 0, 'SELECT'
    from relation t, unnest('{pusher,worker}'::text[]) k (kind)
    where t.relname::text = 'meta' or t.relname::text = 'setting' and k.kind = 'worker'
    union all
    select k.kind, 'pg_class'::regclass, t.oid, 0, 'USAGE'
    from relation t, unnest('{pusher,worker}'::text[]) k (kind) where t.relname::text = 'job_seq'
    union all
    select k.kind, 'pg_class'::regclass, t.oid, a.attnum, 'INSERT'
    from relation t join pg_attribute a on a.attrelid = t.oid, unnest('{pusher,worker}'::text[]) k (kind)
    where t.relname::text = 'queue' and a.attname in (select attname from pushed)
    union all -- insert .. returning id. Whoever pushes can look an id up in any case: job_outcome()
    select k.kind, 'pg_class'::regclass, t.oid, a.attnum, 'SELECT'
    from relation t join pg_attribute a on a.attrelid = t.oid, unnest('{pusher,worker}'::text[]) k (kind)
    where t.relname::text = 'queue' and a.attname::text = 'id'
$$;
comment on function kind_rights() is 'Which rights a role of each kind has (viewer, pusher, worker, operator; an '
    'operator is a viewer, too): class and id are those of pg_depend, part is the number of a column, 0 = the whole';

create or replace function queue_roles() returns table (kind text, role oid)
language sql stable set search_path from current as $$
    with callable as materialized (
        select k.kind, p.oid, p.proowner, p.proacl from kind_rights() k join pg_proc p on p.oid = k.id
        where k.class = 'pg_proc'::regclass::oid
    )
    select c.kind, a.grantee
    from callable c cross join lateral aclexplode(c.proacl) a
    where a.grantee <> 0::oid and a.grantee <> c.proowner
    group by c.kind, a.grantee
    having 2::bigint * count(*) >= (select count(*) from callable other where other.kind = c.kind)
$$;
comment on function queue_roles() is 'The roles of this queue: who may call half of the functions of a kind, or more, '
    'is meant to be of that kind';

create or replace function all_rights() returns table (role oid, class oid, id oid, part int, privilege text)
language sql stable set search_path from current as $$
    with place as (select n.oid, n.nspowner, n.nspacl from pg_namespace n where n.nspname = current_schema()),
    held (owner, class, id, part, acl) as (
        select place.nspowner, 'pg_namespace'::regclass::oid, place.oid, 0, place.nspacl from place
        union all
        select t.relowner, 'pg_class'::regclass, t.oid, 0, t.relacl
        from place join pg_class t on t.relnamespace = place.oid where t.relacl is not null
        union all
        select t.relowner, 'pg_class'::regclass, t.oid, a.attnum, a.attacl
        from place join pg_class t on t.relnamespace = place.oid join pg_attribute a on a.attrelid = t.oid
        where a.attacl is not null
        union all
        select p.proowner, 'pg_proc'::regclass, p.oid, 0, coalesce(p.proacl, acldefault('f'::"char", p.proowner))
        from place join pg_proc p on p.pronamespace = place.oid
        union all
        select y.typowner, 'pg_type'::regclass, y.oid, 0, y.typacl
        from place join pg_type y on y.typnamespace = place.oid where y.typacl is not null
    )
    select distinct a.grantee, h.class, h.id, h.part, a.privilege_type
    from held h cross join lateral aclexplode(h.acl) a
    where a.grantee <> h.owner
      and (a.grantee = 0::oid
           or not pg_has_role(a.grantee, h.owner, case when current_setting('server_version_num')::int >= 160000
                                                       then 'USAGE, SET, MEMBER WITH ADMIN OPTION'::text
                                                       else 'MEMBER'::text end))
      and (a.grantee <> 0::oid or h.class <> 'pg_type'::regclass::oid) -- everybody may use a type
$$;
comment on function all_rights() is 'The rights in this schema that somebody has who is no owner of the object and no '
    'member of its owner. role 0 = PUBLIC';

create or replace function grant_or_revoke(word text, class oid, id oid, part int, privilege text) returns text
language sql stable set search_path from current as $$
    select case class
        when 'pg_namespace'::regclass::oid
            then format('%s %s on schema %I', word, privilege, (select n.nspname from pg_namespace n where n.oid = id))
        when 'pg_class'::regclass::oid
            then format('%s %s%s on %s %s', word, privilege,
                        (select format(' (%I)', a.attname) from pg_attribute a
                         where a.attrelid = id and a.attnum::int = part and part > 0),
                        case when what.type = 'sequence' then 'sequence' else 'table' end, what.identity)
        else format('%s %s on %s %s', word, privilege,
                    case when class = 'pg_type'::regclass::oid then 'type' else 'routine' end, what.identity) end
    from pg_identify_object(class, id, 0) what
$$;
comment on function grant_or_revoke(text, oid, oid, int, text) is 'GRANT or REVOKE of a right of kind_rights() or '
    'all_rights(), without the role';

create or replace function rights_of_others()
returns table (danger text, role text, privilege text, object text, run text, class oid, id oid)
language sql stable set search_path from current as $$
    with usual as materialized (
        select r.role, k.class, k.id, k.part, k.privilege
        from queue_roles() r join kind_rights() k on k.kind = r.kind
    ),
    strange as (
        select a.role, a.class, a.id, a.part, a.privilege from all_rights() a
        where not (a.class = 'pg_namespace'::regclass::oid and a.privilege = 'CREATE'
                   or a.privilege in ('TRIGGER', 'REFERENCES'))
        except select u.role, u.class, u.id, u.part, u.privilege from usual u
    ),
    judged as (
        select case when s.class = 'pg_proc'::regclass::oid
                    then s.role = 0::oid or s.role not in (select r.role from queue_roles() r)
                    else s.class = 'pg_class'::regclass::oid and s.privilege <> 'SELECT' end as changes,
               case when s.role = 0::oid then 'PUBLIC' else pg_get_userbyid(s.role)::text end as name,
               case when s.role = 0::oid then 'public' else quote_ident(pg_get_userbyid(s.role)::text) end as quoted,
               s.class, s.id, s.part, s.privilege
        from strange s
    )
    select 'code', c.role, c.privilege, c.object, c.run, c.class, c.id from code_of_others(current_schema(), false) c
    union all
    select case when j.changes then 'write' else 'read' end, j.name, j.privilege,
           pg_describe_object(j.class, j.id, j.part),
           concat(grant_or_revoke('revoke', j.class, j.id, j.part, j.privilege), ' from ', j.quoted, ' cascade'),
           j.class, j.id
    from judged j
    order by 1, 4, 2, 3
$$;
comment on function rights_of_others() is 'Whose rights on this queue are neither those of its owner nor those of its '
    'roles (kind_rights): a row for each, with the statement that takes it away. danger: code = code of that role '
    'could run as the owner; write = it can change the queue past its functions and the audit; read = all else';

create table if not exists made_function (
    name   text collate "C" primary key,
    source text not null
);
comment on table made_function is 'The functions that the last install made here. The next one drops those of '
    'them that it does not make';
comment on column made_function.name is 'With the types of its parameters';
comment on column made_function.source is 'The md5 of its source: if somebody has replaced the function since, it is '
    'not dropped';

do $$
declare
    before text[] := string_to_array(current_setting('queuetop.before', true), ' ');
    drops  boolean := coalesce(current_setting('queuetop.drops', true), '') = 'on';
    f      record;
    why    text;
begin
    if before is null then -- the scripts alone, without install: which functions are ours is not known
        return;
    end if;
    for f in select p.oid, m.name, m.source = md5(p.prosrc) as is_ours
             from pg_proc p join made_function m on m.name = p.proname || '(' || oidvectortypes(p.proargtypes) || ')'
             where drops and p.pronamespace = quote_ident(current_schema())::regnamespace
               and p.oid || ':' || p.xmin = any(before)
             order by m.name loop
        if not f.is_ours then
            raise warning 'function % is not needed any more, but somebody has changed it: it stays', f.name;
            delete from made_function m where m.name = f.name;
            continue;
        end if;
        begin
            execute format('drop routine %s', f.oid::regprocedure);
        exception when dependent_objects_still_exist then
            get stacked diagnostics why = pg_exception_detail;
            raise warning 'function % is not needed any more, but it stays: %', f.name, why;
        end;
    end loop;
    with there as (
        select p.proname || '(' || oidvectortypes(p.proargtypes) || ')' as name, md5(p.prosrc) as source,
               p.oid || ':' || p.xmin <> all(before) as is_made
        from pg_proc p where p.pronamespace = quote_ident(current_schema())::regnamespace
    ), gone as (
        delete from made_function m where not exists (select from there t where t.name = m.name)
    )
    insert into made_function as m (name, source) select t.name, t.source from there t where t.is_made
    on conflict (name) do update set source = excluded.source where m.source <> excluded.source;
end $$;
