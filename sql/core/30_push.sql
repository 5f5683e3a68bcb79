-- Pushing: the triggers that count jobs, and the functions push, push_text, push_bytes and push_many. A plain INSERT
-- into queue does the same. The functions add three things: the id of the job that a duplicate meets, delays by the
-- server's clock, and limits of size.

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

-- Triggers of queue. Every statement that touches the table parses anew what the catalog keeps as text (CHECK
-- constraints, WHEN of triggers), and a plan pays for each column and function call in it. So queue has no CHECK. The
-- statement trigger sees the rows anyway: it rejects invalid rows, and its fast path (one job, ready at once, no rare
-- column) is one small INSERT.
-- The trigger is SECURITY DEFINER, so the search_path of the pusher must not decide what runs in it. SET search_path
-- would cost time at each call: instead the text below names every object with its schema, which is filled in at the
-- installation.

create or replace function job_fault(queue text, kind text, priority int, two_payloads boolean, max_tries int,
    lease_timeout interval,
    run_timeout interval, unique_key text, concurrency_key text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
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
comment on function job_fault(text, text, int, boolean, int, interval, interval, text, text) is 'Why a job with these '
    'values is invalid; NULL = it is valid';

-- Only a schedule may push a key that begins with "cron:". A schedule with `unique` pushes under its own key, so
-- whoever pushed that key first would keep the schedule from running. cron_push() inserts the row of the run before it
-- pushes, in the same transaction, without a job and without an error: only such a row allows the key.
create or replace function cron_key_fault(unique_key text) returns text
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    named text := pg_catalog.substr(unique_key, 6);
begin
    if exists (select from schedule s
               cross join lateral ( -- OFFSET 0: a join would also read the dead rows of earlier runs
                   select r.due from cron_run r
                   where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity')
                     and r.job is null and r.error is null and not r.pushed offset 0) r
               where s.name in (named, pg_catalog.regexp_replace(named, ':[0-9]+-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$', ''))
                 and cron_key(s, r.due) = cron_key_fault.unique_key) then
        return null;
    end if;
    return 'a unique key that begins with "cron:" is for the jobs of schedules';
end $$;
comment on function cron_key_fault(text) is 'Why a job may not have this unique key, which begins with "cron:"; NULL = '
    'a schedule pushes the key in this transaction';

do $do$ begin execute format($make$
create or replace function queue_pushed() returns trigger
language plpgsql security definer as $body$
declare
    trusted boolean := %1$I.only_ours();
    fault pg_catalog.text;
begin
    -- If the lock is taken, a worker waits for a push: notify it. quiet: the transaction is to be prepared, and PREPARE
    -- TRANSACTION refuses a transaction that has notified.
    if coalesce(pg_catalog.current_setting('queuetop.quiet', true), '') operator(pg_catalog.<>) 'on'
       and not pg_catalog.pg_try_advisory_xact_lock_shared(%2$s, tg_relid::int) then
        perform pg_catalog.pg_notify(pg_catalog.concat('queuetop_', tg_relid), '');
    end if;
    insert into %1$I.delta (queue, priority, pushed, ready, min_seq, max_seq)
    select p.queue, p.priority, 1, 1, p.seq, p.seq from pushed p
    where p.state operator(pg_catalog.=) 'ready'::%1$I.job_state and p.queue operator(pg_catalog.<>) ''
      and pg_catalog.octet_length(p.queue operator(pg_catalog.||) p.kind
                                  operator(pg_catalog.||) coalesce(p.payload_type, '')) operator(pg_catalog.<=) 200
      and p.priority operator(pg_catalog.>=) 0 and p.priority operator(pg_catalog.<=) 9
      and (p.payload is null or p.body is null)
      and p.max_tries is null and p.lease_timeout is null and p.run_timeout is null and p.unique_key is null
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
comment on function queue_pushed() is 'Statement trigger of queue: rejects invalid jobs, writes the counts of an '
    'INSERT to delta, notifies a waiting worker';

-- It runs as who pushes, so it uses only operators of pg_catalog.
create or replace function queue_special() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.state = 'ready' then
        if new.run_after > pg_catalog.now() then
            new.state := 'scheduled';
        elsif new.concurrency_key is not null then
            new.state := 'blocked';
        end if;
    end if;
    return new;
end $$;
comment on function queue_special() is 'Row trigger of queue: a job with a later run_after becomes scheduled, one with '
    'a concurrency key becomes blocked';

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
comment on function queue_changed() is 'Row trigger of queue: an UPDATE may not set a queue, kind, priority or payload '
    'that a push may not set';

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
comment on function check_size(bigint) is 'Raises QT004 if a payload is larger than the setting payload_limit';

create or replace function push_twin(id uuid, queue text, unique_key text, again boolean) returns uuid
language sql stable set search_path from current as $$
    select coalesce(
        (select q.id from queue q where q.id = push_twin.id),
        (select q.id from queue q where q.queue = push_twin.queue and q.unique_key = push_twin.unique_key
           and q.state <> 'failed'),
        case when again then (select h.id from history_of(array[push_twin.id]) h limit 1) end)
    where only_ours()
$$;
comment on function push_twin(uuid, text, text, boolean) is 'The job that a push conflicts with: it has the same id, '
    'or it is unfinished and has the same unique key. again: also a finished job with this id';

create or replace function push_withdraw(ids uuid[], before boolean default false) returns void
language sql set search_path from current as $$
    with withdrawn as (delete from queue q where q.id = any(push_withdraw.ids) and only_ours()
                       returning q.queue, q.priority, q.state)
    insert into delta (queue, priority, ready, scheduled, blocked, pushed)
    select queue, priority, -pg_catalog.count(*) filter (where state = 'ready'),
           -pg_catalog.count(*) filter (where state = 'scheduled'),
           -pg_catalog.count(*) filter (where state = 'blocked'), case when before then 0 else -pg_catalog.count(*) end
    from withdrawn group by queue, priority
$$;
comment on function push_withdraw(uuid[], boolean) is 'Deletes jobs that were pushed and are not wanted: this '
    'transaction pushed them although they had finished already. before: an earlier transaction pushed them, so they '
    'stay counted as pushed, in the minute of that push';

-- An id is looked up in history by its index, whatever the planner estimates: without statistics it would read all of
-- history.
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
        if pushed and again and exists (select from history_of(array[job.id]) where only_ours()) then
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
comment on function push_row(queue, boolean) is 'Inserts one job, or returns the id of the job that it conflicts with '
    '(push_twin). If that job finishes meanwhile, it tries again, up to 10 times';

create or replace function job_check(queue text, priority int, max_tries int, unique_key text, concurrency_key text)
returns void
language plpgsql stable set search_path from current as $$
declare
    fault text := job_fault(queue, '', coalesce(priority, 5), false, max_tries, null, null, unique_key,
                            concurrency_key);
begin
    if fault is not null then
        raise '%', fault using errcode = '23514', schema = pg_catalog.current_schema(), table = 'queue',
            constraint = 'queue_valid';
    end if;
end $$;
comment on function job_check(text, int, int, text, text) is 'Raises if the columns of queue can''t hold these values. '
    'It is called before the INSERT, because the trigger sees only values that fit the columns';

-- Arrays in parallel: element i of each belongs to job i. unnest() would fill up a shorter array with NULLs, and a
-- worker's answer about lease NULL counts for nothing. So each function that takes such arrays tests them, with fits()
-- if that costs little: a transaction pays some 1,500 instructions for each function call in an expression, also for
-- one that is inlined. arrays_check() makes the error if one does not fit.
create or replace function fits(elements anyarray, n int) returns boolean language sql immutable parallel safe as
$$ select pg_catalog.cardinality(elements) = n and pg_catalog.array_upper(elements, 1) = n
      and pg_catalog.array_ndims(elements) = 1 $$;
comment on function fits(anyarray, int) is 'Whether an array has n elements with the subscripts 1 to n. NULL: it is '
    'NULL or empty. No SET, so that it is inlined';

create or replace function array_size(elements anyarray) returns text language sql immutable parallel safe as
$$ select case when pg_catalog.array_lower(elements, 1) = 1 and pg_catalog.array_ndims(elements) = 1
               then pg_catalog.cardinality(elements)::text
               else coalesce(pg_catalog.array_dims(elements), case when elements is not null then '0' end) end $$;
comment on function array_size(anyarray) is 'The length of an array, for arrays_check(). For an array with several '
    'dimensions or other subscripts than 1, 2, ...: these';

create or replace function first_null(elements anyarray) returns int language sql immutable parallel safe as
$$ select case when pg_catalog.array_ndims(elements) = 1 then pg_catalog.array_position(elements, null) end $$;
comment on function first_null(anyarray) is 'The place of the first NULL in an array';

create or replace function arrays_check(names text[], sizes text[], nulls int[]) returns void
language plpgsql immutable as $$
begin
    if sizes[1] = all(pg_catalog.array_remove(sizes, null)) and sizes[1] not like '[%'
       and pg_catalog.array_remove(nulls, null) = '{}'
       and pg_catalog.array_position(sizes[:pg_catalog.cardinality(nulls)], null) is null then
        return; -- in one simple expression, because fail() asks often
    elsif sizes[1] like '[%' or exists (
        select from pg_catalog.unnest(sizes) with ordinality z (size, nth)
        where size is distinct from sizes[1] and (size is not null or nth <= pg_catalog.cardinality(nulls))) then
        raise 'arrays of different lengths: %',
            (select pg_catalog.string_agg(pg_catalog.concat_ws(' ', name, coalesce(size, 'NULL')), ', ' order by nth)
             from unnest(names, sizes) with ordinality z (name, size, nth)
             where size is not null or nth <= pg_catalog.cardinality(nulls))
            using errcode = 'QT007', hint = 'The arrays are in parallel: element i of each is for job i. An array that '
                'is not needed is NULL or left out. Subscripts begin at 1.';
    end if;
    for i in 1 .. pg_catalog.cardinality(nulls) loop
        if nulls[i] is not null then
            raise 'element % of % is NULL', nulls[i], names[i] using errcode = 'QT007',
                hint = pg_catalog.format('Each job is named by its element of %s.',
                    pg_catalog.array_to_string(names[:pg_catalog.cardinality(nulls)],
                                                                                         ', '));
        end if;
    end loop;
end $$;
comment on function arrays_check(text[], text[], int[]) is 'Raises QT007 unless all arrays have the length of the '
    'first one. names and sizes (array_size) of all; nulls (first_null) of the first few, which must be there and have '
    'no NULL; of the others each may be NULL as a whole and in its elements';

create or replace function later(delay interval) returns timestamptz
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if abs(extract(year from delay)) > 100 or abs(extract(day from delay)) > 36600
       or abs(extract(hour from delay)) > 878400 then
        raise 'a delay is 100 years at most, not %', delay using errcode = 'QT007';
    end if;
    return now() + delay;
end $$;
comment on function later(interval) is 'The time that lies this delay ahead; raises if the delay is longer than 100 '
    'years';

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
    if pg_catalog.octet_length(payload::text) > 1000 then
        perform check_size(pg_catalog.octet_length(payload::text));
    end if;
    perform job_check(push_special.queue, priority, max_tries, unique_key, concurrency_key)
    where (pg_catalog.length(push_special.queue) <= 200) is not true or priority not between 0 and 9
       or max_tries not between 1 and 32767 or pg_catalog.length(unique_key) > 1000
       or pg_catalog.length(concurrency_key) > 1000;
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
    'push() of a job that is large or sets a rarely used column';


do $do$
declare
    payload text;
begin
    -- A payload is given as json, jsonb or text: three functions with one body. A parameter without a type is text.
    -- Only one of them has a default: push('q') would be ambiguous otherwise.
    foreach payload in array '{json default null,jsonb,text}'::text[] loop
        execute format($make$ -- names with their schema instead of SET search_path, as in queue_pushed()
create or replace function push(queue text, payload %2$s, kind text default '', priority int default 5,
    run_after timestamptz default null, delay interval default null, unique_key text default null,
    max_tries int default null, run_timeout interval default null, lease_timeout interval default null,
    inout id uuid default null, expires_at timestamptz default null, concurrency_key text default null,
    out pushed boolean)
language plpgsql security definer as $body$
#variable_conflict use_column
declare
    trusted boolean := %1$I.only_ours();
begin
    if run_after is null and delay is null and unique_key is null and max_tries is null and run_timeout is null
       and lease_timeout is null and id is null and expires_at is null and concurrency_key is null
       and pg_catalog.octet_length(queue operator(pg_catalog.||) coalesce(payload::pg_catalog.text, ''))
           operator(pg_catalog.<=) 1000
       and (priority operator(pg_catalog.>=) 0 and priority operator(pg_catalog.<=) 9) is not false then
        insert into %1$I.queue as q (queue, kind, priority, payload)
        values (push.queue, coalesce(kind, ''), coalesce(priority, 5), payload::pg_catalog.json)
        returning q.id into push.id;
        pushed := true;
    else
        select r.id, r.pushed into push.id, push.pushed
        from %1$I.push_special(queue, payload::pg_catalog.json, kind, priority,
                               coalesce(run_after, %1$I.later(delay)), unique_key, max_tries, run_timeout,
                               lease_timeout, id, expires_at, concurrency_key) r;
    end if;
end $body$
$make$, current_schema(), payload);
    end loop;
end $do$;
comment on function push(text, json, text, int, timestamptz, interval, text, int, interval, interval, uuid, timestamptz,
    text) is
    'Adds a job with a JSON payload and returns its id. If there is a job with the same id, or an unfinished one with '
    'the same unique key, pushed is false and id is the id of that job';
comment on function push(text, jsonb, text, int, timestamptz, interval, text, int, interval, interval, uuid,
    timestamptz, text) is
    'push() for a payload of type jsonb';
comment on function push(text, text, text, int, timestamptz, interval, text, int, interval, interval, uuid,
    timestamptz, text) is
    'push() for JSON that has the type text in your program, or none: not JSON is an error (22P02)';

create or replace function push_bytes(queue text, body bytea, payload_type text default 'application/octet-stream',
    kind text default '', priority int default 5, run_after timestamptz default null, delay interval default null,
    unique_key text default null, max_tries int default null, run_timeout interval default null,
    lease_timeout interval default null, inout id uuid default null, expires_at timestamptz default null,
    concurrency_key text default null, out pushed boolean)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    job queue;
begin
    perform check_size(pg_catalog.octet_length(body));
    perform job_check(push_bytes.queue, priority, max_tries, unique_key, concurrency_key)
    where (pg_catalog.length(push_bytes.queue) <= 200) is not true or priority not between 0 and 9
       or max_tries not between 1 and 32767 or pg_catalog.length(unique_key) > 1000
       or pg_catalog.length(concurrency_key) > 1000;
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
    select only_ours();
    select * from push_bytes(queue, pg_catalog.convert_to(body, 'UTF8'), payload_type, kind, priority, run_after, delay,
                             unique_key, max_tries, run_timeout, lease_timeout, id, expires_at, concurrency_key)
$$;
comment on function push_text(text, text, text, text, int, timestamptz, interval, text, int, interval, interval, uuid,
    timestamptz, text) is
    'push() for text that is not JSON; stored as its UTF-8 bytes. It has a name of its own, because push() takes text '
    'as JSON';

create or replace function rows_of(given job_arrays)
returns table (id uuid, queue text, kind text, priority int, payload text, body bytea, type text,
               run_after timestamptz, delay interval, expires_at timestamptz, expires_in interval, unique_key text,
               concurrency_key text, tries int, run_timeout interval, lease_timeout interval)
language sql stable as $$
    select * from unnest(given.ids, given.queues, given.kinds, given.priorities, given.payloads, given.bodies,
                         given.types, given.run_afters, given.delays, given.expires_ats, given.expires_ins,
                         given.unique_keys, given.concurrency_keys, given.max_tries, given.run_timeouts,
                         given.lease_timeouts)
$$;
comment on function rows_of(job_arrays) is 'One row a job, in the order given. No SET, so that it is inlined';

create or replace function push_rows(given job_arrays) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    with numbered as materialized (
        select pg_catalog.nextval('job_seq') as seq, g.* from rows_of(given) g
    )
    insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, expires_at, unique_key,
                       concurrency_key, max_tries, run_timeout, lease_timeout)
    select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
           coalesce(run_after, pg_catalog.now() + delay), coalesce(expires_at, pg_catalog.now() + expires_in),
           unique_key, concurrency_key, tries, run_timeout, lease_timeout
    from numbered order by id;
end $$;
comment on function push_rows(job_arrays) is 'Inserts jobs that conflict with none, in one INSERT. The numbers (seq) '
    'follow the order of the call. The rows are inserted in the order of their ids, as in push_new, so that two calls '
    'with the same ids do not deadlock';

create or replace function push_new(given job_arrays, again boolean, out seqs bigint[], out made bigint[],
    out old uuid[])
language plpgsql as $$
#variable_conflict use_column
declare
    made_ids uuid[];
begin
    -- The rows are inserted in the order of the keys, and of the ids if there is no key, so that two calls with the
    -- same keys or ids do not deadlock. The order is that of the columns (collate "C"), in which requeue() and undo()
    -- insert, too, and not that of the database. If several jobs have one key or one id, the first is inserted.
    with numbered as materialized (
        select pg_catalog.nextval('job_seq') as seq, g.* from rows_of(given) g
    ), inserted as (
        insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, expires_at,
                           unique_key, concurrency_key, max_tries, run_timeout, lease_timeout)
        select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
               coalesce(run_after, pg_catalog.now() + delay), coalesce(expires_at, pg_catalog.now() + expires_in),
               unique_key, concurrency_key, tries, run_timeout, lease_timeout
        from (select n.*, pg_catalog.row_number() over (partition by n.id order by n.seq) as nth from numbered n) f
        where nth = 1
        order by queue collate "C", unique_key collate "C", case when unique_key is null then id end, seq
        on conflict do nothing returning id, seq)
    select (select pg_catalog.array_agg(seq order by seq) from numbered),
           coalesce(pg_catalog.array_agg(seq order by seq), '{}'),
           pg_catalog.array_agg(id)
    from inserted into seqs, made, made_ids;
    old := '{}';
    if again then
        select coalesce(pg_catalog.array_agg(h.id), '{}') into old from history_of(made_ids) h where only_ours();
        perform push_withdraw(old) where old <> '{}';
    end if;
end $$;
comment on function push_new(job_arrays, boolean) is 'Inserts those of the jobs that conflict with none. seqs: the '
    'number of each job in the order of the call; made: the numbers that were inserted; old: ids of jobs that had '
    'finished already, which are deleted again (looked for only if again is true)';

create or replace function push_all(given job_arrays, again boolean, out seqs bigint[], out made bigint[],
    out old uuid[], out twins uuid[])
language plpgsql as $$
begin
    -- A job may conflict with one that finishes before it is looked for here. It can't be pushed then by itself: this
    -- call holds keys by now, so it would wait for another call that waits for this one. All is undone and begins
    -- again, because push_new() takes the keys in their order.
    for round in 1 .. 10 loop
        begin
            twins := null; -- those of the round before have been undone
            select p.* into seqs, made, old from push_new(given, again) p;
            exit when pg_catalog.cardinality(made) = pg_catalog.cardinality(seqs) and old = '{}';
            select pg_catalog.array_agg(
                case when push_all.made[pg_catalog.width_bucket(job.seq, push_all.made)] = job.seq
                          or job.id = any(push_all.old) then job.id
                     else push_twin(job.id, job.queue, job.unique_key, again) end order by job.nth)
            into twins
            from unnest(push_all.seqs, given.ids, given.queues, given.unique_keys) with ordinality
                 job (seq, id, queue, unique_key, nth)
            where only_ours();
            exit when pg_catalog.array_position(twins, null) is null or round = 10;
            raise sqlstate 'QT000';
        exception when sqlstate 'QT000' then
            null;
        end;
    end loop;
end $$;
comment on function push_all(job_arrays, boolean) is 'push_new(), and twins: the id of each job, or of the job that it '
    'conflicts with, NULL if that one has finished in each of ten tries; NULL as a whole if all jobs were inserted';

create or replace function job_of(given job_arrays, i int) returns queue
language plpgsql stable as $$
declare
    job queue;
begin
    job.id := given.ids[i];
    job.queue := given.queues[i];
    job.kind := given.kinds[i];
    job.priority := given.priorities[i];
    job.payload := given.payloads[i]::json;
    job.body := given.bodies[i];
    job.payload_type := given.types[i];
    job.run_after := coalesce(given.run_afters[i], pg_catalog.now() + given.delays[i]);
    job.expires_at := coalesce(given.expires_ats[i], pg_catalog.now() + given.expires_ins[i]);
    job.unique_key := given.unique_keys[i];
    job.concurrency_key := given.concurrency_keys[i];
    job.max_tries := given.max_tries[i];
    job.run_timeout := given.run_timeouts[i];
    job.lease_timeout := given.lease_timeouts[i];
    return job;
end $$;
comment on function job_of(job_arrays, int) is 'The i-th of these jobs as a row of queue, for push_row()';

create or replace function many_fit(given job_arrays) returns void
language plpgsql immutable as $$
declare
    n int := pg_catalog.cardinality(given.queues);
begin
    if (fits(given.queues, n) and pg_catalog.array_position(given.queues, null) is null
        and (given.ids is null or fits(given.ids, n))
        and (given.kinds is null or fits(given.kinds, n))
        and (given.priorities is null or fits(given.priorities, n))
        and (given.payloads is null or fits(given.payloads, n))
        and (given.bodies is null or fits(given.bodies, n))
        and (given.types is null or fits(given.types, n))
        and (given.run_afters is null or fits(given.run_afters, n))
        and (given.delays is null or fits(given.delays, n))
        and (given.expires_ats is null or fits(given.expires_ats, n))
        and (given.expires_ins is null or fits(given.expires_ins, n))
        and (given.unique_keys is null or fits(given.unique_keys, n))
        and (given.concurrency_keys is null or fits(given.concurrency_keys, n))
        and (given.max_tries is null or fits(given.max_tries, n))
        and (given.run_timeouts is null or fits(given.run_timeouts, n))
        and (given.lease_timeouts is null or fits(given.lease_timeouts, n))) is not true then
        perform arrays_check('{queues,ids,kinds,priorities,payloads,bodies,types,run_afters,delays,expires_ats,'
                             'expires_ins,unique_keys,concurrency_keys,max_tries,run_timeouts,lease_timeouts}',
                             array[array_size(given.queues), array_size(given.ids), array_size(given.kinds),
                                   array_size(given.priorities), array_size(given.payloads),
                                   array_size(given.bodies), array_size(given.types), array_size(given.run_afters),
                                   array_size(given.delays), array_size(given.expires_ats),
                                   array_size(given.expires_ins), array_size(given.unique_keys),
                                   array_size(given.concurrency_keys), array_size(given.max_tries),
                                   array_size(given.run_timeouts), array_size(given.lease_timeouts)],
                             array[first_null(given.queues)]);
    end if;
end $$;
comment on function many_fit(job_arrays) is 'Raises QT007 if the arrays of push_many() have different lengths, or a '
    'queue is NULL';

create or replace function many_check(given job_arrays) returns void
language plpgsql stable as $$
begin
    perform job_check(g.queue, g.priority, g.tries, g.unique_key, g.concurrency_key)
    from unnest(given.ids, given.queues, given.priorities, given.max_tries, given.unique_keys, given.concurrency_keys)
         g (id, queue, priority, tries, unique_key, concurrency_key);
    perform later(d) from pg_catalog.unnest(given.delays) d;
    perform later(d) from pg_catalog.unnest(given.expires_ins) d;
end $$;
comment on function many_check(job_arrays) is 'job_check() and later() for many jobs';

create or replace function push_many(ids uuid[], queues text[], kinds text[] default null,
    priorities int[] default null, run_afters timestamptz[] default null, delays interval[] default null,
    unique_keys text[] default null, max_tries int[] default null, run_timeouts interval[] default null,
    lease_timeouts interval[] default null, payloads text[] default null, bodies bytea[] default null,
    types text[] default null, again boolean default false, expires_ats timestamptz[] default null,
    expires_ins interval[] default null, concurrency_keys text[] default null)
returns table (n int, id uuid, pushed boolean)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = on set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    many    int := coalesce(pg_catalog.cardinality(queues), 0);
    new_ids uuid[] := array(select coalesce(ids[i], uuid_v7()) from pg_catalog.generate_series(1, many) i);
    given   job_arrays := (ids, queues, kinds, priorities, payloads, bodies, types, run_afters, delays,
                           expires_ats, expires_ins, unique_keys, concurrency_keys, push_many.max_tries, run_timeouts,
                           lease_timeouts);
    fresh   record; -- the result of push_all()
begin
    perform many_fit(given);
    given.ids := new_ids;
    perform check_size(pg_catalog.max(s))
    from (select pg_catalog.octet_length(x) as s from pg_catalog.unnest(payloads) x
          union all select pg_catalog.octet_length(x) from pg_catalog.unnest(bodies) x) z;
    if not again and pg_catalog.array_remove(unique_keys, null) = '{}' is not false then
        begin
            perform push_rows(given);
            return query select o::int, u, true from pg_catalog.unnest(new_ids) with ordinality v (u, o);
            return;
        exception when unique_violation then
            null; -- some id exists already: find out which
        when numeric_value_out_of_range or datetime_field_overflow or program_limit_exceeded then
            perform many_check(given);
            raise;
        end;
    end if;
    perform many_check(given);
    fresh := push_all(given, again);
    if fresh.twins is null then
        return query select o::int, u, true from pg_catalog.unnest(new_ids) with ordinality v (u, o);
        return;
    end if;
    for i in 1 .. many loop
        n := i;
        id := fresh.twins[i];
        pushed := coalesce(fresh.made[pg_catalog.width_bucket(fresh.seqs[i], fresh.made)] = fresh.seqs[i], false)
                  and id <> all(fresh.old);
        if id is null then
            select r.id, r.pushed into push_many.id, push_many.pushed from push_row(job_of(given, i), again) r;
        end if;
        return next;
    end loop;
end $$;
comment on function push_many is 'Pushes many jobs in one statement; arrays in parallel, all but queues may be NULL '
    '(QT007: their lengths differ, or a queue is NULL). again: also looks for the ids among finished jobs. Set it for '
    'a push that is sent a second time after a lost answer, and for ids that the caller chooses';
