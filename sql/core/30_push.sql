-- Pushing: the triggers that count, and the functions push, push_text, push_bytes and push_many. A plain INSERT
-- into queue does the same; the functions add an answer for duplicates, delays by the server's clock, size limits.

create or replace function uuid_v7() returns uuid language sql volatile as -- no SET: so it can be inlined
$$ select pg_catalog.concat('0',
                            pg_catalog.to_hex((pg_catalog.date_part('epoch',
                                                                    pg_catalog.clock_timestamp()) operator(pg_catalog.*)
                                                                    1000)::bigint
        operator(pg_catalog.<<) 16 operator(pg_catalog.|) 28672 operator(pg_catalog.|)
        (pg_catalog.random() operator(pg_catalog.*) 4095)::bigint),
    pg_catalog.to_hex((pg_catalog.random() operator(pg_catalog.*) 4503599627370495)::bigint
        operator(pg_catalog.#) (pg_catalog.pg_backend_pid()::bigint operator(pg_catalog.<<) 40)
        operator(pg_catalog.&) 4611686018427387903 operator(pg_catalog.|) -9223372036854775808))::pg_catalog.uuid $$;
comment on function uuid_v7() is 'A version 7 uuid: 48 bits of milliseconds, then random bits; the default of queue.id';

-- Triggers of queue. Whatever is text in the catalog (CHECK constraints, WHEN of triggers) is parsed anew by every
-- statement that touches the table, and a plan pays for each column and function call it names. So queue has no CHECK:
-- the statement trigger, which sees the rows anyway, refuses what may not be, and its straight path (one job, ready at
-- once, nothing rare) is one small INSERT. No SET search_path either, but names made whole when it is installed: the
-- trigger is SECURITY DEFINER, and nothing in it may be found by the path of whoever pushes.

create or replace function job_fault(queue text, kind text, priority int, two_payloads boolean, max_tries int,
    lease_timeout interval,
    run_timeout interval, unique_key text, concurrency_key text) returns text
language sql immutable set search_path from current as $$
    select case
        when queue is null then 'a job needs the name of a queue'
        when not length(queue) between 1 and 200 then format('the name of a queue has 1 to 200 characters, not %s',
                length(queue))
        when length(kind) > 200 then format('a kind has 200 characters at most, not %s', length(kind))
        when not priority between 0 and 9 then format('a priority is 0 (soonest) to 9, not %s', priority)
        when two_payloads then 'a job has a payload or a body, not both'
        when not max_tries between 1 and 32767 then format('max_tries is 1 to 32767, not %s', max_tries)
        when lease_timeout <= interval '0' or run_timeout <= interval '0' then 'a timeout is longer than zero'
        when lease_timeout > interval '365 days' or run_timeout > interval '365 days'
             -- months and days of opposite signs look small
             or not (timestamp '2001-01-01' + lease_timeout <= timestamp '2002-01-01')
             or not (timestamp '2001-01-01' + run_timeout <= timestamp '2002-01-01')
            then 'a timeout is 365 days at most'
        when length(unique_key) > 1000
            or length(concurrency_key) > 1000 then 'a unique key or concurrency key has 1000 characters at most' end
$$;
comment on function job_fault(text, text, int, boolean, int, interval, interval, text, text) is
    'Why there may be no such job; NULL = it may be';

-- A schedule with `unique` pushes under its own key; who could push that key first would keep it from running.
-- cron_push() writes the run's row before it pushes, without a job or an error, in the same transaction: nothing else
-- looks like that.
create or replace function cron_key_fault(unique_key text) returns text
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    named text := substr(unique_key, 6);
begin
    if exists (select from schedule s
               cross join lateral ( -- OFFSET 0: a join would read the dead rows of earlier runs, too
                   select r.due from cron_run r
                   where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity')
                     and r.job is null and r.error is null and not r.pushed offset 0) r
               where s.name in (named, regexp_replace(named, ':[0-9]+-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$', ''))
                 and cron_key(s, r.due) = cron_key_fault.unique_key) then
        return null;
    end if;
    return 'a unique key that begins with "cron:" is for the jobs of schedules';
end $$;
comment on function cron_key_fault(text) is 'Why a job may not have this unique key, which begins with "cron:"; NULL = '
    'a schedule pushes it just now';

do $do$ begin execute format($make$
create or replace function queue_pushed() returns trigger
language plpgsql security definer as $body$
declare
    fault pg_catalog.text;
begin
    -- somebody waits for work; quiet: this transaction is to be prepared, which none may be that has notified
    if coalesce(pg_catalog.current_setting('queuetop.quiet', true), '') operator(pg_catalog.<>) 'on'
       and not pg_catalog.pg_try_advisory_xact_lock_shared(%2$s, tg_relid::int) then
        perform pg_catalog.pg_notify(pg_catalog.concat('queuetop_', tg_relid), '');
    end if;
    insert into %1$I.delta (queue, priority, pushed, ready, min_seq, max_seq)
    select p.queue, p.priority, 1, 1, p.seq, p.seq from pushed p
    where p.state operator(pg_catalog.=) 'ready'::%1$I.job_state and p.queue operator(pg_catalog.<>) ''
      and pg_catalog.octet_length(p.queue operator(pg_catalog.||) p.kind) operator(pg_catalog.<=) 200
      and p.priority operator(pg_catalog.>=) 0 and p.priority operator(pg_catalog.<=) 9
      and (p.payload is null or p.body is null)
      and p.max_tries is null and p.lease_timeout is null and p.run_timeout is null and p.unique_key is null
      and (p.payload_type is null or pg_catalog.octet_length(p.payload_type) operator(pg_catalog.<=) 200)
      and not exists (select from pushed offset 1);
    if not found then
        select z.fault into fault
        from (select coalesce(%1$I.job_fault(p.queue, p.kind, p.priority, p.payload is not null and p.body is not null,
                                             p.max_tries,
                                             p.lease_timeout, p.run_timeout, p.unique_key, p.concurrency_key),
                              case when pg_catalog.octet_length(p.payload_type) operator(pg_catalog.>) 200
                                   then 'a payload type has 200 bytes at most' end,
                              case when p.last_action is null and pg_catalog.starts_with(p.unique_key, 'cron:')
                                   then %1$I.cron_key_fault(p.unique_key) end) as fault
              from pushed p
              where p.queue operator(pg_catalog.=) '' or p.priority operator(pg_catalog.<) 0
                or p.priority operator(pg_catalog.>) 9
                 or pg_catalog.octet_length(p.queue operator(pg_catalog.||) p.kind) operator(pg_catalog.>) 200
                 or p.payload is not null and p.body is not null or p.payload_type is not null
                 or p.max_tries is not null or p.lease_timeout is not null
                 or p.run_timeout is not null or p.unique_key is not null or p.concurrency_key is not null) z
        where z.fault is not null limit 1;
        if found then
            raise '%%', fault using errcode = '23514', schema = tg_table_schema, table = tg_table_name,
                constraint = 'queue_valid';
        end if;
        insert into %1$I.delta (queue, priority, pushed, ready, scheduled, retry, failed, blocked, min_seq, max_seq,
                                min_after)
        select g.queue, g.priority, g.n, case when g.state operator(pg_catalog.=) 'ready' then g.n else 0 end,
               case when g.state operator(pg_catalog.=) 'scheduled' then g.n end,
               case when g.state operator(pg_catalog.=) 'retry' then g.n end,
               case when g.state operator(pg_catalog.=) 'failed' then g.n end,
               case when g.state operator(pg_catalog.=) 'blocked' then g.n end,
               case when g.state operator(pg_catalog.=) 'ready' then g.low end,
               case when g.state operator(pg_catalog.=) 'ready' then g.high end,
               case when g.state operator(pg_catalog.=) 'scheduled'
                    or g.state operator(pg_catalog.=) 'retry' then g.due end
        from (select p.queue, p.priority, p.state, pg_catalog.count(*) as n, pg_catalog.min(p.seq) as low,
                     pg_catalog.max(p.seq) as high,
                     pg_catalog.min(p.run_after) as due
              from pushed p group by p.queue, p.priority, p.state) g;
    end if;
    return null;
end $body$
$make$, current_schema(), slot_class()); end $do$;
comment on function queue_pushed() is 'Statement trigger of queue: refuses what is no job, writes what an INSERT added '
    'to delta, wakes who waits';

create or replace function queue_special() returns trigger
language plpgsql set search_path from current as $$
begin
    if new.state = 'ready' then
        if new.run_after > now() then
            new.state := 'scheduled';
        elsif new.concurrency_key is not null then
            new.state := 'blocked';
        end if;
    end if;
    return new;
end $$;
comment on function queue_special() is 'Row trigger of queue: a job for later is scheduled, one with a concurrency key '
    'blocked, not ready';

create or replace function queue_changed() returns trigger
language plpgsql set search_path from current as $$
declare
    fault text := job_fault(new.queue, new.kind, new.priority, new.payload is not null and new.body is not null, null,
                            null, null, null, null);
begin
    if fault is not null then
        raise '%', fault using errcode = '23514', schema = tg_table_schema, table = tg_table_name,
            constraint = 'queue_valid';
    end if;
    return new;
end $$;
comment on function queue_changed() is 'Row trigger of queue: what a push may not say, no change may make of it';

do $$
begin
    if not exists (select from pg_trigger where tgrelid = 'queue'::regclass and tgname = 'queue_pushed') then
        create trigger queue_pushed after insert on queue referencing new table as pushed
            for each statement execute function queue_pushed();
    end if;
    if not exists (select from pg_trigger where tgrelid = 'queue'::regclass and tgname = 'queue_special') then
        create trigger queue_special before insert on queue for each row
            when (new.run_after is not null or new.concurrency_key is not null)
            execute function queue_special();
    end if;
    if not exists (select from pg_trigger where tgrelid = 'queue'::regclass and tgname = 'queue_changed') then
        create trigger queue_changed before update of queue, kind, priority, payload, body on queue for each row
            execute function queue_changed();
    end if;
end $$;

create or replace function check_size(size bigint) returns void
language plpgsql stable set search_path from current as $$
begin
    if size > setting_int('payload_limit') then
        raise 'payload of % bytes is more than the limit of %', size, setting_int('payload_limit')
            using errcode = 'QT004', hint = 'table setting, payload_limit';
    end if;
end $$;
comment on function check_size(bigint) is 'Raises QT004 where a payload is larger than the setting payload_limit';

create or replace function push_twin(id uuid, queue text, unique_key text, again boolean) returns uuid
language sql stable set search_path from current as $$
    select coalesce(
        (select q.id from queue q where q.id = push_twin.id),
        (select q.id from queue q where q.queue = push_twin.queue and q.unique_key = push_twin.unique_key
           and q.state <> 'failed'),
        case when again then (select h.id from history_of(array[push_twin.id]) h limit 1) end)
$$;
comment on function push_twin(uuid, text, text, boolean) is 'The job that stands in the way of a push: same id, or '
    'same unique key unfinished';

create or replace function push_withdraw(ids uuid[], before boolean default false) returns void
language sql set search_path from current as $$
    with withdrawn as (delete from queue q where q.id = any(push_withdraw.ids) returning q.queue, q.priority, q.state)
    insert into delta (queue, priority, ready, scheduled, blocked, pushed)
    select queue, priority, -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
           -count(*) filter (where state = 'blocked'), case when before then 0 else -count(*) end
    from withdrawn group by queue, priority
$$;
comment on function push_withdraw(uuid[], boolean) is 'Takes back jobs that this very transaction pushed and that '
    'turned out to be finished already; before = that an earlier one pushed: their push stays counted, for it was in '
    'another minute';

-- Whatever the planner believes, an id is looked for in history by its index: without statistics it would read it all.
create or replace function push_row(job queue, again boolean, out id uuid, out pushed boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = on set jit = off as $$
#variable_conflict use_column
begin
    for round in 1 .. 10 loop
        insert into queue as q (id, queue, kind, priority, payload, body, payload_type, run_after, expires_at,
                                unique_key, concurrency_key, max_tries, run_timeout, lease_timeout)
        values (job.id, job.queue, coalesce(job.kind, ''), coalesce(job.priority, 5), job.payload, job.body,
                job.payload_type, job.run_after, job.expires_at, job.unique_key, job.concurrency_key, job.max_tries,
                job.run_timeout, job.lease_timeout)
        on conflict do nothing returning q.id into push_row.id;
        pushed := found;
        if pushed and again and exists (select from history_of(array[job.id])) then
            perform push_withdraw(array[job.id]);
            pushed := false;
        elsif not pushed then
            push_row.id := push_twin(job.id, job.queue, job.unique_key, again);
        end if;
        exit when push_row.id is not null;
    end loop;
    if push_row.id is null then
        raise 'cannot push: other sessions keep pushing and finishing the same job' using errcode = '40001';
    end if;
end $$;
comment on function push_row(queue, boolean) is 'One INSERT of a job, or the id of its twin; a twin that finishes '
    'meanwhile means another round';

create or replace function job_check(queue text, priority int, max_tries int, unique_key text, concurrency_key text)
returns void
language plpgsql stable set search_path from current as $$
declare
    fault text := job_fault(queue, '', coalesce(priority, 5), false, max_tries, null, null, unique_key,
                            concurrency_key);
begin
    if fault is not null then
        raise '%', fault using errcode = '23514', schema = current_schema(), table = 'queue',
            constraint = 'queue_valid';
    end if;
end $$;
comment on function job_check(text, int, int, text, text) is 'Raises for what the columns of queue could not hold: '
    'asked before the INSERT, as the trigger sees only what fits';

create or replace function later(delay interval) returns timestamptz
language plpgsql stable set search_path from current as $$
begin
    if abs(extract(year from delay)) > 100 or abs(extract(day from delay)) > 36600
       or abs(extract(hour from delay)) > 878400 then
        raise 'a delay is 100 years at most, not %', delay using errcode = 'QT007';
    end if;
    return now() + delay;
end $$;
comment on function later(interval) is 'The time that a delay means; raises for one that no calendar holds';

create or replace function push_special(queue text, payload json, kind text, priority int, run_after timestamptz,
    unique_key text,
    max_tries int, run_timeout interval, lease_timeout interval, inout id uuid, expires_at timestamptz,
    concurrency_key text,
    out pushed boolean)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    job queue;
begin
    if octet_length(payload::text) > 1000 then
        perform check_size(octet_length(payload::text));
    end if;
    perform job_check(push_special.queue, priority, max_tries, unique_key, concurrency_key)
    where (length(push_special.queue) <= 200) is not true or priority not between 0 and 9
       or max_tries not between 1 and 32767 or length(unique_key) > 1000 or length(concurrency_key) > 1000;
    if id is null and unique_key is null then
        insert into queue as q (queue, kind, priority, payload, run_after, expires_at, concurrency_key, max_tries,
                                run_timeout, lease_timeout)
        values (push_special.queue, coalesce(kind, ''), coalesce(priority, 5), payload, run_after, expires_at,
                concurrency_key, max_tries, run_timeout, lease_timeout)
        returning q.id into push_special.id;
        pushed := true;
        return;
    end if;
    job.id := coalesce(id, uuid_v7());
    job.queue := push_special.queue;
    job.kind := kind;
    job.priority := priority;
    job.payload := payload;
    job.run_after := run_after;
    job.expires_at := expires_at;
    job.unique_key := unique_key;
    job.concurrency_key := concurrency_key;
    job.max_tries := max_tries;
    job.run_timeout := run_timeout;
    job.lease_timeout := lease_timeout;
    select r.id, r.pushed into push_special.id, push_special.pushed from push_row(job, id is not null) r;
end $$;
comment on function push_special(text, json, text, int, timestamptz, text, int, interval, interval, uuid, timestamptz,
    text) is
    'push() of a job that is large or has something rare about it';


do $do$ begin execute format($make$ -- names in full instead of SET search_path, as in queue_pushed()
create or replace function push(queue text, payload json default null, kind text default '', priority int default 5,
    run_after timestamptz default null, delay interval default null, unique_key text default null,
    max_tries int default null, run_timeout interval default null, lease_timeout interval default null,
    inout id uuid default null, expires_at timestamptz default null, concurrency_key text default null,
    out pushed boolean)
language plpgsql security definer as $body$
#variable_conflict use_column
begin
    if $5 is null and $6 is null and $7 is null and $8 is null and $9 is null and $10 is null and $11 is null
       and $12 is null
       and $13 is null and (pg_catalog.octet_length($2::pg_catalog.text) operator(pg_catalog.<=) 1000) is not false
       and pg_catalog.octet_length($1) operator(pg_catalog.<=) 200
       and ($4 operator(pg_catalog.>=) 0 and $4 operator(pg_catalog.<=) 9) is not false then
        insert into %1$I.queue as q (queue, kind, priority, payload) values ($1, coalesce($3, ''), coalesce($4, 5), $2)
        returning q.id into push.id;
        pushed := true;
    else
        select r.id, r.pushed into push.id, push.pushed
        from %1$I.push_special($1, $2, $3, $4, coalesce($5, %1$I.later($6)), $7, $8, $9,
                               $10, $11, $12, $13) r;
    end if;
end $body$
$make$, current_schema()); end $do$;
comment on function push(text, json, text, int, timestamptz, interval, text, int, interval, interval, uuid,
    timestamptz, text) is
    'Adds a job with a JSON payload. Answers its id; pushed is false where a job of the same id or an unfinished one '
    'of the same unique key was there: then its id';

create or replace function push_bytes(queue text, body bytea, payload_type text default 'application/octet-stream',
    kind text default '', priority int default 5, run_after timestamptz default null, delay interval default null,
    unique_key text default null, max_tries int default null, run_timeout interval default null,
    lease_timeout interval default null, inout id uuid default null, expires_at timestamptz default null,
    concurrency_key text default null, out pushed boolean)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    job queue;
begin
    perform check_size(octet_length(body));
    perform job_check(push_bytes.queue, priority, max_tries, unique_key, concurrency_key)
    where (length(push_bytes.queue) <= 200) is not true or priority not between 0 and 9
       or max_tries not between 1 and 32767 or length(unique_key) > 1000 or length(concurrency_key) > 1000;
    job.id := coalesce(id, uuid_v7());
    job.queue := push_bytes.queue;
    job.body := body;
    job.payload_type := payload_type;
    job.kind := kind;
    job.priority := priority;
    job.run_after := coalesce(run_after, later(delay));
    job.unique_key := unique_key;
    job.max_tries := max_tries;
    job.run_timeout := run_timeout;
    job.lease_timeout := lease_timeout;
    job.expires_at := expires_at;
    job.concurrency_key := concurrency_key;
    select r.id, r.pushed into push_bytes.id, push_bytes.pushed from push_row(job, id is not null) r;
end $$;
comment on function push_bytes(text, bytea, text, text, int, timestamptz, interval, text, int, interval, interval,
    uuid, timestamptz, text) is
    'push() for bytes of any type';

create or replace function push_text(queue text, body text, payload_type text default 'text/plain',
    kind text default '', priority int default 5, run_after timestamptz default null, delay interval default null,
    unique_key text default null, max_tries int default null, run_timeout interval default null,
    lease_timeout interval default null, inout id uuid default null, expires_at timestamptz default null,
    concurrency_key text default null, out pushed boolean)
language sql security definer set search_path from current as $$
    select * from push_bytes(queue, convert_to(body, 'UTF8'), payload_type, kind, priority, run_after, delay,
                             unique_key, max_tries, run_timeout, lease_timeout, id, expires_at, concurrency_key)
$$;
comment on function push_text(text, text, text, text, int, timestamptz, interval, text, int, interval, interval, uuid,
    timestamptz, text) is
    'push() for text that is not JSON; stored as its UTF-8 bytes. A name of its own, because a plain literal would '
    'pick text over json in silence';

create or replace function push_rows(ids uuid[], queues text[], kinds text[], priorities int[],
    run_afters timestamptz[], delays interval[],
    unique_keys text[], max_tries int[], run_timeouts interval[], lease_timeouts interval[], payloads text[],
    bodies bytea[], types text[],
    expires_ats timestamptz[], expires_ins interval[], concurrency_keys text[]) returns void
language sql set search_path from current as $$
    with given as materialized (
        select nextval('job_seq') as seq, g.*
        from unnest(ids, queues, kinds, priorities, run_afters, delays, unique_keys, max_tries, run_timeouts,
                    lease_timeouts, payloads, bodies, types, expires_ats, expires_ins, concurrency_keys)
             g (id, queue, kind, priority, run_after, delay, unique_key, tries, run_timeout, lease_timeout, payload,
                body, type, expires_at,
                expires_in, concurrency_key)
    )
    insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, unique_key, max_tries,
                       run_timeout, lease_timeout,
                       expires_at, concurrency_key)
    select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
           coalesce(run_after, now() + delay), unique_key,
           tries, run_timeout, lease_timeout, coalesce(expires_at, now() + expires_in), concurrency_key
    from given order by id
$$;
comment on function push_rows is 'Jobs that stand in nobody''s way: one INSERT of them all. Numbers in the order '
    'given; inserted in that of their ids, as push_many does it, so that two calls with the same ids do not deadlock';

create or replace function many_check(ids uuid[], queues text[], priorities int[], max_tries int[], unique_keys text[],
    concurrency_keys text[], delays interval[], expires_ins interval[]) returns void
language plpgsql stable set search_path from current as $$
begin
    perform job_check(g.queue, g.priority, g.tries, g.unique_key, g.concurrency_key)
    from unnest(ids, queues, priorities, many_check.max_tries, unique_keys, concurrency_keys)
         g (id, queue, priority, tries, unique_key, concurrency_key);
    perform later(d) from unnest(delays) d;
    perform later(d) from unnest(expires_ins) d;
end $$;
comment on function many_check is 'job_check and later for many';

create or replace function push_many(ids uuid[], queues text[], kinds text[] default null,
    priorities int[] default null,
    run_afters timestamptz[] default null, delays interval[] default null, unique_keys text[] default null,
    max_tries int[] default null, run_timeouts interval[] default null, lease_timeouts interval[] default null,
    payloads text[] default null, bodies bytea[] default null, types text[] default null, again boolean default false,
    expires_ats timestamptz[] default null, expires_ins interval[] default null, concurrency_keys text[] default null)
returns table (n int, id uuid, pushed boolean)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = on set jit = off as $$
#variable_conflict use_column
declare
    many    int := coalesce(cardinality(queues), 0);
    new_ids uuid[] := array(select coalesce(ids[i], uuid_v7())
                            from generate_series(1, greatest(many, cardinality(ids))) i);
    seqs    bigint[]; -- the number of each
    made    bigint[]; -- those that were inserted
    made_ids uuid[];
    old     uuid[] := '{}'; -- finished already
    is_made boolean;
    job     queue;
    i       int;
begin
    perform check_size(max(s)) from (select max(octet_length(x)) as s from unnest(payloads) x
                                     union all select max(octet_length(x)) from unnest(bodies) x) z;
    if not again and array_remove(unique_keys, null) = '{}' is not false then
        begin
            perform push_rows(new_ids, queues, kinds, priorities, run_afters, delays, null, push_many.max_tries,
                              run_timeouts, lease_timeouts,
                              payloads, bodies, types, expires_ats, expires_ins, concurrency_keys);
            return query select o::int, u, true from unnest(new_ids) with ordinality v (u, o);
            return;
        exception when unique_violation then
            null; -- some id is there already: find out which
        when not_null_violation then
            raise 'no array has more elements than queues and ids, and each of these names a queue'
                using errcode = '23514', schema = current_schema(), table = 'queue', constraint = 'queue_valid';
        when numeric_value_out_of_range or datetime_field_overflow or program_limit_exceeded then
            perform many_check(new_ids, queues, priorities, push_many.max_tries, unique_keys, concurrency_keys, delays,
                               expires_ins);
            raise;
        end;
    end if;
    perform many_check(new_ids, queues, priorities, push_many.max_tries, unique_keys, concurrency_keys, delays,
                       expires_ins);
    -- Numbers in the order given. Inserted in the order of the keys, and of the ids where there is no key, so that two
    -- calls with the same do not deadlock. Of several with one key or one id the first wins.
    with given as materialized (
        select nextval('job_seq') as seq, g.*
        from unnest(new_ids, queues, kinds, priorities, run_afters, delays, unique_keys, push_many.max_tries,
                    run_timeouts,
                    lease_timeouts, payloads, bodies, types, expires_ats, expires_ins, concurrency_keys)
             g (id, queue, kind, priority, run_after, delay, unique_key, tries, run_timeout, lease_timeout, payload,
                body, type, expires_at,
                expires_in, concurrency_key)
    ), ins as (
        insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, unique_key,
                           max_tries,
                           run_timeout, lease_timeout, expires_at, concurrency_key)
        select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
               coalesce(run_after, now() + delay), unique_key,
               tries, run_timeout, lease_timeout, coalesce(expires_at, now() + expires_in), concurrency_key
        from (select g.*, row_number() over (partition by g.id order by g.seq) as nth from given g) f where nth = 1
        order by queue, unique_key, case when unique_key is null then id end, seq
        on conflict do nothing returning id, seq)
    select (select array_agg(seq order by seq) from given), coalesce(array_agg(seq order by seq), '{}'), array_agg(id)
    from ins
    into seqs, made, made_ids;
    if again then
        select coalesce(array_agg(h.id), '{}') into old from history_of(made_ids) h;
        perform push_withdraw(old) where old <> '{}';
    end if;
    if cardinality(made) = cardinality(new_ids) and old = '{}' then
        return query select o::int, u, true from unnest(new_ids) with ordinality v (u, o);
        return;
    end if;
    for i in 1 .. coalesce(cardinality(new_ids), 0) loop
        push_many.n := i;
        push_many.id := new_ids[i];
        is_made := coalesce(made[width_bucket(seqs[i], made)] = seqs[i], false);
        push_many.pushed := is_made and not new_ids[i] = any(old);
        if not pushed and not new_ids[i] = any(old) then
            push_many.id := push_twin(new_ids[i], queues[i], unique_keys[i], again);
        end if;
        if push_many.id is null then -- its twin finished meanwhile
            job.id := new_ids[i];
            job.queue := queues[i];
            job.kind := kinds[i];
            job.priority := priorities[i];
            job.payload := payloads[i]::json;
            job.body := bodies[i];
            job.payload_type := types[i];
            job.run_after := coalesce(run_afters[i], now() + delays[i]);
            job.unique_key := unique_keys[i];
            job.concurrency_key := concurrency_keys[i];
            job.expires_at := coalesce(expires_ats[i], now() + expires_ins[i]);
            job.max_tries := max_tries[i];
            job.run_timeout := run_timeouts[i];
            job.lease_timeout := lease_timeouts[i];
            select r.id, r.pushed into push_many.id, push_many.pushed from push_row(job, again) r;
        end if;
        return next;
    end loop;
end $$;
comment on function push_many is 'Many pushes in one statement, arrays in parallel, all but queues may be NULL. again '
    '= look among finished jobs too: for a push that is sent a second time after a lost answer, or ids of the '
    'caller''s own';
