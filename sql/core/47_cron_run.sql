-- Pushes the jobs of schedules that are due. The scheduler's step calls cron_due(), so the jobs, the next time and the
-- rest of the step are one transaction. No time is pushed twice by two schedulers, a take-over or a clock that is set
-- back: the row of the schedule is locked, next_run only grows, and cron_run has one row for each schedule and time.

create or replace function cron_key(s schedule, due timestamptz) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select 'cron:' || s.name || case when s.only_one then ''
        else to_char(due at time zone 'UTC',
                     '":"YYYY-MM-DD"T"HH24:MI:SS' || case when due > date_trunc('second', due) then '.US"Z"'
                                                          else '"Z"' end) end
$$;
comment on function cron_key(schedule, timestamptz) is 'The unique key of a schedule''s job: the name of the schedule '
    'and the time of the run; with only_one the name alone';

create or replace function cron_push(s schedule, due timestamptz, out job uuid, out pushed boolean, out error text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    wait   text := current_setting('lock_timeout');
    oldest timestamptz;
begin
    insert into cron_run (schedule, due) values (s.name, due) on conflict do nothing;
    if not found then
        pushed := false;
        return;
    end if;
    begin
        -- the job of the run before may be completed in a transaction that stays open
        perform set_config('lock_timeout', '100ms', true);
        if s.body is null then
            select p.id, p.pushed into cron_push.job, cron_push.pushed
            from push(queue => s.queue, payload => s.payload, kind => s.kind,
                priority => s.priority, unique_key => cron_key(s, due), max_tries => s.max_tries) p;
        else
            select p.id, p.pushed into cron_push.job, cron_push.pushed from push_bytes(queue => s.queue, body => s.body,
                payload_type => s.payload_type, kind => s.kind, priority => s.priority, unique_key => cron_key(s, due),
                max_tries => s.max_tries) p;
        end if;
        perform set_config('lock_timeout', wait, true);
        cron_push.error := case when not cron_push.pushed then 'the job of an earlier run is not finished' end;
    exception when lock_not_available then
        cron_push.pushed := false;
        cron_push.error := 'the job of an earlier run is not finished: its worker is just answering for it';
    when others then
        cron_push.pushed := false;
        cron_push.error := left(sqlerrm, 1000);
        raise log 'queuetop: schedule %: %', to_json(s.name), to_json(sqlerrm);
    end;
    update cron_run r set job = cron_push.job, pushed = cron_push.pushed, error = cron_push.error
    where r.schedule = s.name and r.due = cron_push.due;
    -- 100 runs are kept. Runs before runs_from were deleted or belong to a removed schedule: none of them is read again
    oldest := (select o.due from cron_run o
               where o.schedule = s.name and o.due >= coalesce(s.runs_from, '-infinity')
               order by o.due desc offset 99 limit 1);
    delete from cron_run r
    where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity') and r.due < oldest;
    update schedule x
    set last_run = cron_push.due, last_job = coalesce(cron_push.job, x.last_job),
        runs_from = coalesce(oldest, x.runs_from),
        error = case when cron_push.job is null then cron_push.error end,
        error_at = case when cron_push.job is null then clock_timestamp() end
    where x.name = s.name;
end $$;
comment on function cron_push(schedule, timestamptz) is 'Pushes one run of a schedule for a time, unless that time had '
    'its run already. If the push fails, the error is stored in the run and in the schedule, and other schedules go on';

create or replace function cron_fire(s schedule, at timestamptz, most int) returns int
language plpgsql set search_path from current as $$
declare
    due   timestamptz := s.next_run;
    first timestamptz := s.next_run;
    n     int := 0;
begin
    if s.catch_up = 'all' then
        while due <= at and n < most loop
            perform cron_push(s, due);
            n := n + 1;
            due := cron_next(s.cron, s.tz, due);
        end loop;
        if due <= at and coalesce(s.last_run < first - interval '1 s', true) and s.last_run is distinct from first then
            raise log 'queuetop: schedule % is behind since %: all missed runs follow, % a step', to_json(s.name),
                first, most;
        end if;
    else
        due := cron_last(s.cron, s.tz, due, at);
        if s.catch_up = 'latest' or due >= at - interval '1 min' then
            perform cron_push(s, due);
            n := 1;
        end if;
        if first < at - interval '1 min' and (due > first or n = 0) then
            insert into cron_run (schedule, due, error) values (s.name, first, 'missed: no scheduler was there' || case
                when n = 1 then '; the latest run made up for it'
                    when due > first then ', up to ' || to_char(due at time zone s.tz, 'YYYY-MM-DD HH24:MI:SS')
                else '' end) on conflict do nothing;
            raise log 'queuetop: schedule %: the times from % on were missed, % made up for', to_json(s.name), first,
                case n when 0 then 'none is' else 'the latest is' end;
        end if;
        due := cron_next(s.cron, s.tz, at);
    end if;
    update schedule x set next_run = due where x.name = s.name;
    return n;
exception when others then -- the line can't be computed any more: for example its zone is gone
    raise log 'queuetop: schedule % stands still: %', to_json(s.name), to_json(sqlerrm);
    update schedule x set next_run = null, error = left('stands still: ' || sqlerrm, 1000), error_at = clock_timestamp()
    where x.name = s.name;
    return 0;
end $$;
comment on function cron_fire(schedule, timestamptz, int) is 'Pushes the jobs of a schedule that are due, as catch_up '
    'says, and sets its next time. A run up to a minute late counts as in time, because a new scheduler needs some '
    'seconds to take over. Returns how many jobs it pushed';

create or replace function cron_due(at timestamptz default now()) returns timestamptz
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    s    schedule;
    room int := 100;
    due  timestamptz := (select min(x.next_run) from schedule x);
begin
    -- Each look begins at due: a held snapshot keeps earlier times in the index, and these are read once only.
    -- Those that push all their missed times delay nobody: 1. the others, 2. one time of each, 3. more of the earliest
    for turn in 1..3 loop
        for s in select * from schedule x where x.next_run between due and at and (x.catch_up = 'all') = (turn > 1)
        order by x.next_run, x.name limit room
        for update skip locked loop
            room := room - cron_fire(s, at, case when turn = 3 then room else 1 end);
            exit when room <= 0;
        end loop;
    end loop;
    return (select least(min(x.next_run), at + interval '1 s') from schedule x where x.next_run >= due);
end $$;
comment on function cron_due(timestamptz) is 'For the scheduler''s step: pushes a job for each schedule that is due, '
    'at most 100 a call; what has many missed times to push waits for the others. Returns when to look again: now if '
    'more is due, otherwise at the next time, but after a second at the latest';
