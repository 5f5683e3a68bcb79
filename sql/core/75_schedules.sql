-- Acts on schedules: set (add or change), pause, resume, run now, remove. The audit records each as "schedule ..." with
-- the name of the schedule, and with the schedule as it was before.

create or replace function schedule_begin(action uuid, verb text, name text, settings jsonb, reason text)
    returns boolean
language plpgsql set search_path from current as $$
declare
    fresh boolean := act_begin(action, 1, verb, null, null, coalesce(settings, '{}') || jsonb_build_object('schedule',
            name), reason, null);
begin
    if (select a.params ->> 'schedule' from audit a where a.action = schedule_begin.action) is distinct from name then
        raise 'action % is another schedule''s: use a new uuid for another action', action using errcode = 'QT007';
    end if;
    return fresh;
end $$;
comment on function schedule_begin(uuid, text, text, jsonb, text) is 'act_begin for a schedule';

create or replace function schedule_was(s schedule) returns jsonb
language sql stable set search_path from current as $$
    -- the payload as text, so that it is kept unchanged
    select case when s.name is not null then to_jsonb(s) || jsonb_build_object('payload', s.payload::text) end
$$;
comment on function schedule_was(schedule) is 'A schedule in the form in which the audit keeps it: its payload as text';

create or replace function whole_number(settings jsonb, name text, low int, high int) returns int
language plpgsql immutable set search_path from current as $$
declare
    value text := settings ->> name;
begin
    if value !~ '^-?[0-9]{1,9}$' or not value::int between low and high then
        raise '% is a whole number from % to %, not "%"', name, low, high, left(value, 100) using errcode = 'QT007';
    end if;
    return value;
end $$;
comment on function whole_number(jsonb, text, int, int) is 'A number from settings; NULL if settings has no such name. '
    'Raises QT007 with the allowed range';

create or replace function schedule_check(name text, settings jsonb, payload text, was schedule) returns schedule
language plpgsql stable set search_path from current as $$
#variable_conflict use_column
declare
    allowed text[] := '{cron,tz,queue,kind,priority,payload_type,unique,max_tries,catch_up,comment}';
    o       jsonb := coalesce(settings, '{}');
    wrong   text;
    s       schedule := was;
begin
    wrong := (select string_agg(k, ', ') from jsonb_object_keys(case jsonb_typeof(o) when 'object' then o end) k
              where k <> all(allowed || '{payload}'));
    if wrong is not null then
        raise 'a schedule has no setting %', left(wrong, 200)
            using errcode = 'QT007', hint = 'There are: ' || array_to_string(allowed, ', ');
    elsif jsonb_typeof(o) <> 'object' then
        raise 'the settings of a schedule are a JSON object, not %', jsonb_typeof(o) using errcode = 'QT007';
    end if;
    s.name := name;
    s.cron := coalesce(o ->> 'cron', s.cron);
    s.tz := case when o ? 'tz' or s.tz is null then cron_zone(coalesce(o ->> 'tz', 'UTC')) else s.tz end;
    s.queue := coalesce(o ->> 'queue', s.queue);
    s.kind := case when o ? 'kind' then coalesce(o ->> 'kind', '') else coalesce(s.kind, '') end;
    s.priority := coalesce(whole_number(o, 'priority', 0, 9), case when not o ? 'priority' then s.priority end, 5);
    s.only_one := case when o ? 'unique' then coalesce((o ->> 'unique')::boolean, false)
                       else coalesce(s.only_one, false) end;
    s.max_tries := case when o ? 'max_tries' then whole_number(o, 'max_tries', 1, 32767) else s.max_tries end;
    s.catch_up := case when o ? 'catch_up' then coalesce(o ->> 'catch_up', 'latest')
                       else coalesce(s.catch_up, 'latest') end;
    s.comment := case when o ? 'comment' then o ->> 'comment' else s.comment end;
    if payload is not null or o ? 'payload' or o ? 'payload_type' then
        perform check_size(octet_length(payload));
        s.payload_type := o ->> 'payload_type';
        begin
            s.payload := case when s.payload_type is null then payload::json end;
        exception when invalid_text_representation then
            raise 'payload: %: "%"', sqlerrm, left(payload, 60)
                using errcode = 'QT007', hint = 'with a payload type it is a text of that type';
        end;
        s.body := case when s.payload_type is not null then convert_to(coalesce(payload, ''), 'UTF8') end;
    end if;
    if coalesce(name, '') = '' or s.cron is null or s.queue is null then
        raise 'a new schedule needs a name, a cron line and a queue' using errcode = 'QT007';
    elsif length(name) > 200 or length(s.queue) not between 1 and 200 or length(s.kind) > 200 then
        raise 'name, queue and kind have 200 characters at most' using errcode = 'QT007';
    elsif length(s.cron) > 1000 or length(s.comment) > 1000 or length(s.payload_type) > 200 then
        raise 'a cron line and a comment have 1000 characters at most, a payload type 200' using errcode = 'QT007';
    elsif s.priority not between 0 and 9 or s.max_tries < 1 then
        raise 'priority is 0 (soonest) to 9, max_tries 1 at least' using errcode = 'QT007';
    elsif s.catch_up not in ('none', 'latest', 'all') then
        raise 'catch_up is none, latest or all, not "%"', left(s.catch_up, 100) using errcode = 'QT007';
    elsif s.only_one and s.catch_up = 'all' then
        raise 'unique and catch_up all exclude each other: of the missed runs one could wait only'
            using errcode = 'QT007';
    end if;
    s.next_run := cron_next(s.cron, s.tz, case when s.last_run < now() + interval '3 h' then greatest(s.last_run, now())
                                               else now() end);
    return s;
exception when invalid_text_representation or numeric_value_out_of_range then
    raise '%', sqlerrm using errcode = 'QT007';
end $$;
comment on function schedule_check(text, jsonb, text, schedule) is 'The schedule that these settings would give. Its '
    'next time is after its last run, so a clock that was set back repeats no run. Raises QT007 with what is wrong';

create or replace function schedule_words(s schedule) returns text
language sql stable set search_path from current as $$
    select 'next ' || string_agg(to_char(t at time zone s.tz,
                                         case when s.cron ~* '@every' then 'Dy YYYY-MM-DD HH24:MI:SS'
                                              else 'Dy YYYY-MM-DD HH24:MI' end), ', ' order by t)
           || ' ' || s.tz
    from (with recursive next_runs (i, t) as (select 1, s.next_run union all select i + 1, cron_next(s.cron, s.tz, t)
                                              from next_runs where i < 3)
          select t from next_runs) z
$$;
comment on function schedule_words(schedule) is 'The next three times of a schedule, for people';

create or replace function schedule_preview(name text, settings jsonb, payload text) returns table (state text,
    why text, n bigint)
language plpgsql stable security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    was schedule;
begin
    select * into was from schedule s where s.name = schedule_preview.name;
    return query select case when was.name is null then 'added' else 'changed' end,
                        schedule_words(schedule_check(name, settings, payload, was)), 1::bigint;
end $$;
comment on function schedule_preview(text, jsonb, text) is 'What schedule_set would do; raises the same errors';

create or replace function schedule_put(s schedule) returns void
language sql set search_path from current as $$
    insert into schedule select s.*
    on conflict (name) do update set
        (cron, tz, queue, kind, priority, payload, body, payload_type, only_one, max_tries, catch_up, comment, changed,
         paused_at, paused_by, pause_reason, next_run, last_run, last_job, runs_from, error, error_at) =
        (excluded.cron, excluded.tz, excluded.queue, excluded.kind, excluded.priority, excluded.payload, excluded.body,
         excluded.payload_type, excluded.only_one, excluded.max_tries, excluded.catch_up, excluded.comment,
         excluded.changed, excluded.paused_at, excluded.paused_by, excluded.pause_reason, excluded.next_run,
         excluded.last_run, excluded.last_job, excluded.runs_from, excluded.error, excluded.error_at)
$$;
comment on function schedule_put(schedule) is 'Adds a schedule, or changes the existing row, which the caller has '
    'locked and read. The row is never deleted and inserted again: a session that waits for its lock must find it';

create or replace function schedule_begins(name text) returns timestamptz
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select coalesce((select r.due + interval '1 us' from cron_run r
                     where r.schedule = schedule_begins.name
                       and r.due >= now() - interval '3 h' and r.due < now() + interval '3 h'
                     order by r.due desc limit 1),
                    now() - interval '3 h') -- the clock may be set back by less than this
$$;
comment on function schedule_begins(text) is 'From which time on runs of this name belong to a new schedule. Earlier '
    'runs belong to a removed schedule; they stay, so that neither an undo of the removal nor the new schedule runs a '
    'time twice';

create or replace function schedule_set(action uuid, name text, settings jsonb, payload text default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    was schedule;
    s   schedule;
begin
    if schedule_begin(action, 'schedule set', name, settings, reason) then
        perform from schedule x where x.name = schedule_set.name for update;
        perform act_lock(); -- against two sessions that add the same schedule
        select * into was from schedule x where x.name = schedule_set.name for update;
        s := schedule_check(name, settings, payload, was);
        s.created := coalesce(was.created, now());
        s.changed := clock_timestamp(); -- under the lock, so that it is later than the act before
        s.next_run := case when s.paused_at is not null then null
                           when (s.cron, s.tz) = (was.cron, was.tz) and was.next_run is not null
                               then was.next_run -- a time that is due and not pushed yet stays due
                           else s.next_run end;
        s.error := null;
        s.error_at := null;
        if was.name is null then
            s.runs_from := schedule_begins(name);
            s.next_run := cron_next(s.cron, s.tz, greatest(now(), s.runs_from));
        end if;
        perform schedule_put(s);
        perform act_end(action, 1,
                        jsonb_build_array(jsonb_build_object('id', name, 'state',
                                                             case when was.name is null then 'added' else 'changed' end,
            'why', case when s.paused_at is null then schedule_words(s) else 'paused' end)), schedule_was(was));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_set(uuid, text, jsonb, text, text) is 'Adds or changes a schedule: cron, tz, queue, kind, '
    'priority, payload_type, unique, max_tries, catch_up, comment. Settings that are not named stay as they are. The '
    'payload is JSON, or with payload_type a text of that type. QT007 names what is wrong';

create or replace function schedule_pause(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    s  schedule;
    at timestamptz := clock_timestamp(); -- a different time for each pause
begin
    if schedule_begin(action, 'schedule pause', name, null, reason) then
        select * into s from schedule x where x.name = schedule_pause.name for update;
        update schedule x set paused_at = at, paused_by = session_user, pause_reason = schedule_pause.reason,
            next_run = null
        where x.name = schedule_pause.name and x.paused_at is null;
        perform act_end(action, 1,
                        jsonb_build_array(case when found then jsonb_build_object('id', name, 'state', 'paused')
            else jsonb_build_object('id', name, 'why',
                                    case when s.name is null then 'not found' else 'paused already' end) end),
                        schedule_was(s) || jsonb_build_object('since', at));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_pause(uuid, text, text) is 'Pauses a schedule: it pushes no jobs from now on. Jobs that '
    'it has pushed stay';

create or replace function schedule_resume(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    was schedule;
    s   schedule;
    row jsonb;
begin
    if schedule_begin(action, 'schedule resume', name, null, reason) then
        select * into was from schedule x where x.name = schedule_resume.name for update;
        if was.name is null or was.next_run is not null then
            row := jsonb_build_object('id', name, 'why',
                                      case when was.name is null then 'not found' else 'not paused' end);
        else
            s := schedule_check(name, '{}', null, was);
            update schedule x set paused_at = null, paused_by = null, pause_reason = null, next_run = s.next_run,
                error = null, error_at = null
            where x.name = schedule_resume.name;
            row := jsonb_build_object('id', name, 'state', 'resumed', 'why', schedule_words(s));
        end if;
        perform act_end(action, 1, jsonb_build_array(row), schedule_was(was));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_resume(uuid, text, text) is 'Ends the pause of a schedule. The runs that were due during '
    'the pause are not made up for';

create or replace function schedule_run(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    s schedule;
    p record;
    o jsonb := jsonb_build_object('id', name, 'why', 'not found');
begin
    if schedule_begin(action, 'schedule run', schedule_run.name, null, reason) then
        select * into s from schedule x where x.name = schedule_run.name for update;
        if s.name is not null then
            -- greatest: the clock may have been set back
            select * into p from cron_push(s, greatest(clock_timestamp(), s.runs_from));
            o := case when p.pushed then jsonb_build_object('id', schedule_run.name, 'state', 'run', 'why',
                                                            'job ' || p.job)
                 else jsonb_build_object('id', schedule_run.name, 'why',
                                         coalesce(p.error, 'it had a run at this very time')) end;
        end if;
        perform act_end(action, 1, jsonb_build_array(o));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_run(uuid, text, text) is 'Pushes a job of the schedule now. The schedule''s own times '
    'stay as they are';

create or replace function schedule_remove(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    was schedule;
begin
    if schedule_begin(action, 'schedule remove', name, null, reason) then
        delete from schedule x where x.name = schedule_remove.name returning * into was;
        delete from cron_run r -- the runs of this schedule stay, so that an undo of the removal repeats no run
        where r.at < now() - interval '7 days'
          and not exists (select from schedule x
                          where x.name = r.schedule and r.due >= coalesce(x.runs_from, '-infinity'));
        perform act_end(action, 1,
                        jsonb_build_array(case when was.name is not null then jsonb_build_object('id', name, 'state',
                                'removed')
            else jsonb_build_object('id', name, 'why', 'not found') end), schedule_was(was));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_remove(uuid, text, text) is 'Removes a schedule. Its jobs stay. The audit keeps its '
    'settings, so undo adds it again: it continues with the time that was next, and catch_up decides about times that '
    'have passed';

create or replace function cron_outcome(job uuid, due timestamptz) returns text
language sql stable set search_path from current set enable_seqscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select case when due is null then null when job is null then 'not pushed' else coalesce(
        (select case when exists (select from live w where w.lock_key is not null and w.queue = q.queue
                                    and q.seq = any(w.seqs)) then 'running'
                     else q.state::text end from queue q where q.id = cron_outcome.job),
        (select h.state::text from history_of(array[cron_outcome.job]) h
           where h.finished >= cron_outcome.due - interval '1 h' limit 1), 'gone') end
$$;
comment on function cron_outcome(uuid, timestamptz) is 'The outcome of a run: the state of its job, ''not pushed'', or '
    '''gone'' if the job left no history';

create or replace function cron_result(job uuid, due timestamptz, out outcome text, out took interval, out error text)
language sql stable set search_path from current set enable_seqscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select case when cron_result.due is null then null when cron_result.job is null then 'not pushed'
                else coalesce(r.outcome, 'gone') end, r.took, r.error
    from (select) o left join lateral (
        select coalesce(w.state, q.state::text) as outcome, coalesce(w.took, a.took) as took,
               case when q.state = 'failed' then q.error end as error
        from queue q
        left join lateral (select 'running' as state, clock_timestamp() - l.started as took from live l
                           where l.lock_key is not null and l.queue = q.queue and q.seq = any(l.seqs) limit 1) w on true
        left join lateral (select t.ended - t.started as took from attempt t where q.state = 'failed' and t.job = q.id
                           order by t.number desc limit 1) a on true
        where q.id = cron_result.job
        union all
        select h.state::text, h.finished - h.started, case when h.state <> 'completed' then h.error end
        from history_of(array[cron_result.job]) h where h.finished >= cron_result.due - interval '1 h'
        limit 1) r on true
$$;
comment on function cron_result(uuid, timestamptz) is 'The outcome of a run (see cron_outcome), how long its job ran '
    'in ms, and its error';
