-- Which functions there are: who may call them, and which of them this install has made. Functions that an earlier
-- install made and this one did not are dropped. Table made_function remembers the functions of the last install; a
-- function of anybody else is not in it. A function counts as made by this install if its row in pg_proc is another one
-- than before the first script: install keeps these rows in the setting queuetop.before. Only an install that brings a
-- newer version drops functions: of two programs of the same version one may make functions that the other does not
-- know.

create or replace function role_functions() returns table (kind text, functions text[])
language sql immutable set search_path from current as $$
    with list (work, act, read) as (values (
        '{claim_or_wait,wake,push,push_text,push_bytes,push_many,claim,complete,complete_and_claim,fail,extend,'
        'complete_job,fail_job,extend_lease,'
        'give_back,node_start,node_beat,node_clock,node_sleep,node_stop,schedule,schedule_or_wait,is_new,'
        'scheduler_sleep,scheduler_stop,backlog,keep_only,keep_books,fold_beside,uuid_v7,'
        'job_outcome}'::text[],
        '{requeue,requeue_at_priority,requeue_where,release,extend_leases,purge,pause,resume,cancel,discard,'
        'delete_jobs,drain_node,set_queue,'
        'schedule_set,schedule_pause,schedule_resume,schedule_run,schedule_remove,signal_backend,'
        'send_signal,cancel_where,discard_where,delete_where,set_priority,set_priority_where,set_time,'
        'set_time_where,undo,edit_job,push_by_hand,repair}'::text[],
        '{history_of,living,purge_audit_preview,error_key,overview,rates,minutes,minute_steps,percentiles,'
        'failure_groups,slot_class,requeue_preview,requeue_sample,queue_pace,failed_within_hour,'
        'release_preview,extend_preview,purge_preview,setting_int,setting_interval,backlog,node_alive,cron_times,'
        'cron_outcome,cron_result,schedule_preview,queue_settings,set_queue_preview,pause_preview,remove_preview,'
        'change_preview,undo_preview,undo_why,audit_change,edit_preview,push_preview,shortfalls,'
        'role_functions}'::text[]))
    select 'viewer', read from list union all select 'worker', work from list
    union all select 'operator', act from list
$$;
comment on function role_functions() is 'Which functions each kind of role may call: viewer, worker, operator. An '
    'operator is a viewer, too';

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
