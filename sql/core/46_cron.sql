-- Schedules push jobs by themselves. This file has the tables, the parser of a cron line and the computation of its
-- next time. 47_cron_run.sql pushes what is due; 75_schedules.sql has what an operator does with schedules.
--
-- A line has five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, day of week 0-7 or sun-sat
-- (0 and 7 are Sunday); each is *, a number, a range a-b, a list a,b, and steps */n or a-b/n. Where both days are
-- restricted either of them is enough, as crontab(5) has it. @hourly, @daily (@midnight), @weekly, @monthly, @yearly
-- (@annually) are short for such lines; @every 90s (s, m, h, d) is each multiple of that time since 1970, UTC.
--
-- Time zones, by the rule of cron(8) of Debian and of cronie. A line whose minute or hour begins with * follows real
-- time: if the clock jumps ahead, the missing hour has no runs; an hour that comes twice has its runs twice. Any other
-- line runs at fixed times of the day: times that are missing run once, at the moment of the change; times that come
-- twice run once, the first time.

create table if not exists schedule (
    name         text collate "C" primary key check (length(name) between 1 and 200),
    cron         text not null,
    tz           text not null default 'UTC',
    queue        text collate "C" not null check (length(queue) between 1 and 200),
    kind         text not null default '' check (length(kind) <= 200),
    priority     smallint not null default 5 check (priority between 0 and 9),
    payload      json,
    body         bytea,
    payload_type text,
    only_one     boolean not null default false,
    max_tries    smallint check (max_tries >= 1),
    catch_up     text not null default 'latest' check (catch_up in ('none', 'latest', 'all')),
    comment      text,
    created      timestamptz not null default now(),
    changed      timestamptz not null default now(),
    paused_at    timestamptz,
    paused_by    text,
    pause_reason text,
    next_run     timestamptz,
    last_run     timestamptz,
    last_job     uuid,
    runs_from    timestamptz,
    error        text,
    error_at     timestamptz,
    constraint schedule_one_payload check (payload is null or body is null),
    constraint schedule_one_of_all check (not only_one or catch_up <> 'all')
);
create index if not exists schedule_next on schedule (next_run);
comment on table schedule is 'Schedules: when to push a job (cron, tz), and which';
comment on column schedule.tz is 'A name of the IANA time zones, e.g. Europe/Berlin';
comment on column schedule.only_one is 'No run while the job of an earlier run is unfinished';
comment on column schedule.catch_up is 'What happens to times that were missed because no scheduler was active: none, '
    'the latest or all of them are pushed';
comment on column schedule.next_run is 'NULL = there is none: the schedule is paused, or its line can''t be computed '
    'any more (error)';
comment on column schedule.last_run is 'The time that the last run was for';
comment on column schedule.runs_from is 'Earlier runs were deleted, or belong to a removed schedule of this name';
comment on column schedule.error is 'Why the last run could not be pushed; NULL = it was pushed';

create table if not exists cron_run (
    schedule text collate "C" not null,
    due      timestamptz not null,
    at       timestamptz not null default clock_timestamp(),
    job      uuid,
    pushed   boolean not null default false,
    error    text,
    primary key (schedule, due)
);
comment on table cron_run is 'The last 100 runs of each schedule; its key makes a second run for the same time '
    'impossible';
comment on column cron_run.due is 'The time for which the run is; at = when it was pushed';
comment on column cron_run.pushed is 'False: the job of an earlier run was unfinished (job), the push failed, or the '
    'time was missed (error)';

alter table tick add column if not exists cron_at timestamptz;
comment on column tick.cron_at is 'When to look at the schedules again; NULL = at once';

create or replace function cron_number(word text, label text, low int, high int, names text[]) returns int
language plpgsql immutable set search_path from current as $$
begin
    if word ~ '^[0-9]{1,9}$' then
        if word::int not between low and high then
            raise '%: % is not within %-%', label, word, low, high using errcode = 'QT007';
        end if;
        return word::int;
    elsif word = any(names) then
        return low + array_position(names, word) - 1;
    end if;
    raise '%: "%" is not a number%', label, left(word, 30), coalesce(' and none of ' || array_to_string(names, ' '), '')
        using errcode = 'QT007';
end $$;
comment on function cron_number(text, text, int, int, text[]) is 'One number or name of a field; raises QT007 with the '
    'reason if it is invalid';

create or replace function cron_field(field text, label text, low int, high int, names text[] default null)
    returns int[]
language plpgsql immutable set search_path from current as $$
declare
    part text;
    m    text[];
    a    int;
    b    int;
    step int;
    hits int[] := '{}';
begin
    foreach part in array string_to_array(lower(field), ',') loop
        m := regexp_match(part, '^([^-/]+)(?:-([^-/]+))?(?:/([^-/]+))?$');
        if m is null or m[1] = '*' and m[2] is not null then
            raise '%: "%" is neither *, a number, a range (1-5), a list (1,5) nor a step (*/5)', label, left(field, 30)
                using errcode = 'QT007';
        end if;
        a := case when m[1] = '*' then low else cron_number(m[1], label, low, high, names) end;
        b := case when m[1] = '*' then high when m[2] is null then a when m[2] = 'sun' then 7
                  else cron_number(m[2], label, low, high, names) end;
        if a > b then
            raise '%: the range % runs backwards: write %-%,%-%', label, part, m[1], high, low, m[2]
                using errcode = 'QT007';
        elsif m[3] is not null and m[1] <> '*' and m[2] is null then
            raise '%: % is a step without a range: write %-%/%', label, part, m[1], high, m[3] using errcode = 'QT007';
        end if;
        step := case when m[3] is null then 1 else cron_number(m[3], label || ', step', 1, high, null) end;
        hits := hits || array(select generate_series(a, b, step));
    end loop;
    return array(select distinct x from unnest(hits) x order by 1);
end $$;
comment on function cron_field(text, text, int, int, text[]) is 'One field of a cron line as the sorted numbers that '
    'it allows';

create or replace function cron_every(line text) returns interval
language plpgsql immutable set search_path from current as $$
declare
    word text := substring(line from E'^@every\\s+((?:[0-9]{1,6}[dhms])+)$');
    long interval;
begin
    select sum(m[1]::int * ('1 ' || m[2])::interval) into long from regexp_matches(word, '([0-9]+)([dhms])', 'g') m;
    if long is null or long not between interval '1 s' and interval '366 d' then
        raise '"%" is not @every with a time from 1s to 366d, such as 90s, 15m or 1h30m', left(line, 60)
            using errcode = 'QT007';
    end if;
    return long;
end $$;
comment on function cron_every(text) is 'The interval of an @every line';

create or replace function cron_parse(cron text, out minutes int[], out hours int[], out days int[], out months int[],
    out weekdays int[], out either boolean, out fixed boolean, out every interval)
language plpgsql immutable set search_path from current as $$
declare
    line  text := lower(regexp_replace(cron, E'^\\s+|\\s+$', '', 'g'));
    words text[];
begin
    if line ~ '^@every' then
        every := cron_every(line);
        return;
    end if;
    line := case line when '@hourly' then '0 * * * *' when '@daily' then '0 0 * * *' when '@midnight' then '0 0 * * *'
                      when '@weekly' then '0 0 * * 0' when '@monthly' then '0 0 1 * *'
                      when '@yearly' then '0 0 1 1 *' when '@annually' then '0 0 1 1 *' else line end;
    if line ~ '^@' then
        raise 'there is no %: @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every', left(line, 30)
            using errcode = 'QT007';
    end if;
    words := regexp_split_to_array(coalesce(line, ''), E'\\s+');
    if cardinality(words) <> 5 or line = '' then
        raise 'a cron line has five fields (minute, hour, day of month, month, day of week), "%" has %', left(cron, 60),
            case when line = '' then 0 else cardinality(words) end using errcode = 'QT007',
            hint = 'for seconds there is @every 10s';
    end if;
    minutes := cron_field(words[1], 'minute', 0, 59);
    hours := cron_field(words[2], 'hour', 0, 23);
    days := cron_field(words[3], 'day of month', 1, 31);
    months := cron_field(words[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
    weekdays := array(select distinct x % 7
                      from unnest(cron_field(words[5], 'day of week', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}')) x);
    either := words[3] !~ '^[*]' and words[5] !~ '^[*]';
    fixed := words[1] !~ '^[*]' and words[2] !~ '^[*]';
    if not either and not exists (select from unnest(months) m
                                  where days[1] <= ('{31,29,31,30,31,30,31,31,30,31,30,31}'::int[])[m]) then
        raise 'day of month: % no day %: this line would never run',
            case when cardinality(months) = 1 then format('month %s has', months[1])
            else format('the months %s have', array_to_string(months, ',')) end, days[1] using errcode = 'QT007';
    end if;
end $$;
comment on function cron_parse(text) is 'A cron line as the numbers that each field allows. either: one of the two day '
    'fields is enough; fixed: times of the day, not by the hour or minute; every: the interval of an @every line, all '
    'else is NULL then. Raises QT007 if the line is invalid';

create or replace function cron_zone(tz text) returns text
language plpgsql stable set search_path from current as $$
declare
    zone text;
begin
    if length(tz) <= 100 then -- a longer name is no zone; lower() of a long text for each zone would be slow
        select z.name into zone from pg_timezone_names z where lower(z.name) = lower(tz) and z.name !~ '^(posix|right)'
        order by z.name = tz desc limit 1;
    end if;
    if zone is null then
        raise 'there is no time zone "%": name one like Europe/Berlin or UTC', left(tz, 60) using errcode = 'QT007';
    elsif zone not in ('UTC', 'GMT') and exists (select from pg_timezone_abbrevs a where a.abbrev = upper(tz)) then
        raise 'time zone % would be an abbreviation, without its changes of the clock: name one like Europe/Berlin', tz
            using errcode = 'QT007';
    end if;
    return zone;
end $$;
comment on function cron_zone(text) is 'The correct spelling of a time zone''s name; raises QT007 if there is no such '
    'zone. Slow (reads all zones), so only for settings';

create or replace function cron_local(minutes int[], hours int[], days int[], months int[], weekdays int[],
    either boolean, c timestamp)
returns timestamp
language plpgsql immutable set search_path from current as $$
declare
    d    date := c::date;
    last date := c::date + 15100; -- 29 February on a given day of the week comes after 40 years at most
    h    int := date_part('hour', c);
    m    int;
    on_day boolean;
begin
    while d <= last loop
        if date_part('month', d)::int <> all(months) then
            d := (date_trunc('month', d::timestamp) + interval '1 month')::date;
            continue;
        end if;
        on_day := date_part('day', d)::int = any(days);
        if either then
            on_day := on_day or date_part('dow', d)::int = any(weekdays);
        else
            on_day := on_day and date_part('dow', d)::int = any(weekdays);
        end if;
        if on_day and d > c::date then
            return d + make_time(hours[1], minutes[1], 0);
        elsif on_day then
            select min(x) into m from unnest(minutes) x where x > date_part('minute', c);
            if m is not null and h = any(hours) then
                return d + make_time(h, m, 0);
            end if;
            select min(x) into m from unnest(hours) x where x > h;
            if m is not null then
                return d + make_time(m, minutes[1], 0);
            end if;
        end if;
        d := d + 1;
    end loop;
    raise 'this line has no time within 40 years' using errcode = 'QT007';
end $$;
comment on function cron_local(int[], int[], int[], int[], int[], boolean, timestamp) is 'The first local time after c '
    'that the fields allow';

create or replace function cron_offset(tz text, t timestamptz) returns interval
language sql stable as $$ select (t at time zone tz) - (t at time zone 'UTC') $$;
comment on function cron_offset(text, timestamptz) is 'By how much a zone is ahead of UTC at that time';

create or replace function cron_change(tz text, low timestamptz, high timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    was interval := cron_offset(tz, low);
    mid timestamptz;
begin
    while high - low > interval '1 s' loop
        mid := date_trunc('second', low + (high - low) / 2);
        if cron_offset(tz, mid) = was then
            low := greatest(mid, date_trunc('second', low) + interval '1 s');
        else
            high := mid;
        end if;
    end loop;
    return high;
end $$;
comment on function cron_change(text, timestamptz, timestamptz) is 'When the clock changes between low and high: one '
    'change, found to the second';

create or replace function cron_instants(c timestamp, tz text, out first timestamptz, out last timestamptz,
    out gap timestamptz)
language plpgsql stable set search_path from current as $$
declare
    u timestamptz := c at time zone 'UTC';
    a timestamptz := u - cron_offset(tz, u - interval '26 h');
    b timestamptz := u - cron_offset(tz, u + interval '26 h');
begin
    first := case when a at time zone tz = c then a end;
    last := case when b at time zone tz = c then b end;
    if first is null and last is null then
        gap := cron_change(tz, least(a, b) - interval '1 s', greatest(a, b) + interval '1 s');
        return;
    end if;
    a := first;
    first := least(a, last);
    last := greatest(a, last);
end $$;
comment on function cron_instants(timestamp, text) is 'The time at which local clocks of the zone show c: first and '
    'last differ if an hour comes twice. gap: the clocks never show c, and this is when they jump over it';

create or replace function cron_next(cron text, tz text, after timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    p    record;
    i    record;
    c    timestamp := after at time zone tz;
    t    timestamptz;
    turn timestamptz;
begin
    if not isfinite(after) then
        return null;
    end if;
    select * into p from cron_parse(cron);
    if p.every is not null then
        return to_timestamp((floor(extract(epoch from after) / extract(epoch from p.every)) + 1) *
                            extract(epoch from p.every));
    end if;
    loop
        c := cron_local(p.minutes, p.hours, p.days, p.months, p.weekdays, p.either, c);
        select * into i from cron_instants(c, tz);
        t := case when p.fixed then coalesce(i.first, i.gap) when i.first > after then i.first else i.last end;
        exit when t > after;
    end loop;
    if not p.fixed and cron_offset(tz, after + interval '26 h') < cron_offset(tz, after) then -- an hour comes twice
        turn := cron_change(tz, after, after + interval '26 h');
        c := cron_local(p.minutes, p.hours, p.days, p.months, p.weekdays, p.either,
                        (turn at time zone tz) - interval '1 min');
        if turn + (c - (turn at time zone tz)) < t and (turn + (c - (turn at time zone tz))) at time zone tz = c then
            t := turn + (c - (turn at time zone tz));
        end if;
    end if;
    return t;
end $$;
comment on function cron_next(text, text, timestamptz) is 'The first time after the given one at which a cron line is '
    'due in a time zone. If the clock changes: a line with * first in minute or hour follows real time; any other line '
    'runs once for missing times, at the change, and once for times that come twice';

create or replace function cron_last(cron text, tz text, due timestamptz, at timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    high timestamptz := at;
    mid  timestamptz;
    t    timestamptz := cron_next(cron, tz, due);
begin
    while t <= at loop
        due := t;
        t := cron_next(cron, tz, due);
        exit when t > at;
        mid := due + (high - due) / 2;
        t := cron_next(cron, tz, mid);
        while t > at loop -- no time of the line is after mid
            high := mid;
            mid := due + (high - due) / 2;
            t := cron_next(cron, tz, mid);
        end loop;
    end loop;
    return due;
end $$;
comment on function cron_last(text, text, timestamptz, timestamptz) is 'The last due time up to at, given an earlier '
    'due time. Found by binary search, however many due times lie between';

create or replace function cron_times(cron text, tz text default 'UTC', n int default 3,
    after timestamptz default now()) returns setof timestamptz
language plpgsql stable security definer set search_path from current as $$
declare
    trusted boolean := only_ours();
begin
    if n > 1000 then
        raise 'the next 1000 times are the most, not %', n using errcode = 'QT007';
    elsif after > '9999-12-31' and after <> 'infinity' then
        raise 'after is a time before the year 10000, not %', after using errcode = 'QT007';
    end if;
    -- zones of schedules were looked up when they were set
    if not exists (select from schedule s where s.tz = cron_times.tz) then
        tz := cron_zone(coalesce(tz, 'UTC'));
    end if;
    for i in 1 .. coalesce(n, 3) loop
        after := cron_next(cron, tz, after);
        return next after;
    end loop;
end $$;
comment on function cron_times(text, text, int, timestamptz) is 'The next n times of a cron line, 1000 at most';
