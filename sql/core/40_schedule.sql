-- The parts of the scheduler's step. `queuetop schedule` calls schedule(holder) again and again; a claim that finds
-- nothing calls it once, if no scheduler lives. Everything in this file runs under the lock of scheduler row 0.

create or replace function isolation_check() returns void
language plpgsql stable as $$
begin
    if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then
        raise 'this function needs the isolation level READ COMMITTED' using errcode = 'QT007',
            hint = 'If the database has another default: alter role ... set default_transaction_isolation = '
                   '''read committed''';
    end if;
end $$;
comment on function isolation_check() is 'Raises QT007 in a transaction that reads everything as of its beginning. '
    'What takes a lock and then looks again would not see what others have committed before the lock was free';

create or replace function scheduler_lock(wait boolean) returns boolean
language plpgsql set search_path from current as $$
begin
    perform isolation_check();
    if wait then
        perform from scheduler where term = 0 for update;
    else
        perform from scheduler where term = 0 for update skip locked;
        if not found then
            return false;
        end if;
    end if;
    -- A row's lock does not say whose it is, this one does (pg_locks). It never waits, whoever else has taken it.
    perform pg_catalog.pg_try_advisory_xact_lock_shared(slot_class() + 18, 'queue'::regclass::oid::int);
    return true;
end $$;
comment on function scheduler_lock(boolean) is 'Takes the lock that everybody needs who makes free leases, until the '
    'end of the transaction. wait false: returns false if another session has it. scheduler_holder() says which';

create or replace function act_lock() returns void
language plpgsql set search_path from current as $$
declare
    allowed interval := current_setting('idle_in_transaction_session_timeout');
begin
    perform scheduler_lock(true);
    perform only_ours_now(); -- what follows may be parsed only now
    if allowed = interval '0' or allowed > interval '10 s' then
        perform set_config('idle_in_transaction_session_timeout', '10s', true);
    end if;
end $$;
comment on function act_lock() is 'scheduler_lock(true) for acts. Nothing is scheduled until their transaction ends: '
    'if its client leaves it idle for 10 s, the server ends the session, and the act is undone. A shorter '
    'idle_in_transaction_session_timeout of the session stays';

create or replace function still(until timestamptz) returns boolean
language sql volatile as $$
    select until > pg_catalog.clock_timestamp() and until < pg_catalog.clock_timestamp() + interval '10 s'
$$;
comment on function still(timestamptz) is 'Whether a scheduler is still active that promised to act until this time '
    '(at most 3 s ahead). A time more than 10 s ahead was written before the clock was set back, and does not count';

create or replace function scheduler_holder() returns text
language sql stable security definer set search_path from current as $$
    select only_ours();
    select coalesce(format('the transaction of pid %s (%s, user %s)%s', l.pid,
                           coalesce(nullif(a.application_name, ''), 'no name'), a.usename,
                           ', open for ' || date_trunc('second', clock_timestamp() - a.xact_start)),
                    'a prepared transaction')
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.mode = 'ShareLock' and l.granted and l.objsubid = 2
      and l.classid::bigint = slot_class() + 18 and l.objid = 'queue'::regclass::oid
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.pid is distinct from pg_backend_pid()
      and not exists (select from scheduler s where s.term > 0 and still(s.until))
    order by a.xact_start limit 1
$$;
comment on function scheduler_holder() is 'Why schedule() answers active = false: the transaction of an act or of a '
    'claim holds the scheduler''s row, and no scheduler gets a turn before it ends. NULL: another scheduler is active';

create or replace function scheduler_wait() returns boolean
language plpgsql set search_path from current set lock_timeout = '2 s' as $$
begin
    return not exists (select from scheduler s where s.term > 0 and still(s.until)) and scheduler_lock(true);
exception when lock_not_available then
    return false;
end $$;
comment on function scheduler_wait() is 'Waits up to 2 s for the lock where no scheduler has its turn. Steps of claims '
    'hold it then. On a server short of processor time each of these is cancelled and the next claim begins another '
    'step, so that a scheduler that only tried the lock would never get it';

create or replace function scheduler_stay(holder text) returns void
language sql set search_path from current as $$
    update scheduler s set until = clock_timestamp() + interval '3 s'
    where s.term > 0 and s.holder = scheduler_stay.holder
$$;
comment on function scheduler_stay(text) is 'After a long step: this scheduler keeps its turn, if it was its own';

create or replace function scheduler_hold(holder text) returns text
language plpgsql set search_path from current as $$
declare
    helps boolean := scheduler_hold.holder like 'wake:%' or scheduler_hold.holder like 'claim:%';
    last  scheduler;
begin
    if (length(scheduler_hold.holder) between 1 and 300) is not true then
        raise 'the name of a scheduler has 1 to 300 characters, not %',
            coalesce(length(scheduler_hold.holder), 0) using errcode = 'QT007';
    elsif not scheduler_lock(false) and (helps or not scheduler_wait()) then
        return 'no';
    elsif scheduler_hold.holder like 'wake:%' then
        return 'once'; -- by an idle worker (48_wake), even if a scheduler lives
    end if;
    select * into last from scheduler order by term desc limit 1;
    if still(last.until) and last.holder <> scheduler_hold.holder then
        return 'no';
    elsif scheduler_hold.holder like 'claim:%' then
        return 'once';
    elsif still(last.until - interval '2 s') then
        return 'held';
    end if;
    insert into scheduler (holder, until) values (scheduler_hold.holder, clock_timestamp() + interval '3 s');
    delete from scheduler where term = last.term and term > 0;
    return case when last.holder = scheduler_hold.holder and still(last.until) then 'held' else 'taken' end;
end $$;
comment on function scheduler_hold(text) is 'Whether this scheduler may make a step. no: another one is active; once: '
    'this step only, for a claim or an idle worker; held: it was active already; taken: it has just taken over, or it '
    'slept';

-- The living leases, found without reading the dead rows: all numbers from the mark on, and the older ones that the
-- mark lists, each with the parts that were split off it (base + 1 to base + 99) and the leases that were put before
-- the next one (base + 100 to base + 199). The mark is a value and the older leases are read one by one, so no plan
-- can begin by reading all leases.
create or replace view live as
select w.* from work_queue w where w.lease >= (select mark from mark order by n desc limit 1)
union all
select w.* from unnest((select older from mark order by n desc limit 1)) o
cross join lateral (select w.* from work_queue w where w.lease between o and o + 199 offset 0) w;
comment on view live is 'All rows of work_queue, read without the dead ones';

create or replace function living() returns setof work_queue
language sql stable set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from live where lock_key is not null $$;
comment on function living() is 'The leases of the view live that a node holds, for a statement outside of functions: '
    'such a statement can''t switch off the plans that would read dead rows. Without the free leases, of which there '
    'may be thousands';

create or replace function mark_leases() returns void
language sql set search_path from current as $$
    with bases as materialized (
        select lease / 200 * 200 as base from live group by 1
    ), next_base as (
        select case when is_called then last_value + 200 else 200 end as base from lease_seq
    ), ranked as (
        select b.base, (n.base - b.base) / 200 as span, row_number() over (order by b.base desc) as rank
        from bases b, next_base n
    ), dense as (
        select coalesce(min(base) filter (where span <= 16 * rank + 500), (select base from next_base)) as mark
        from ranked
    ), marked as (
        select mark, coalesce((select array_agg(base order by base) from bases where base < mark), '{}') as older
        from dense)
    insert into mark (mark, older) select mark, older from marked
    where (mark, older) is distinct from (select (o.mark, o.older) from mark o order by n desc limit 1)
$$;
comment on function mark_leases() is 'Moves the mark: leases that lie close together are read as one range, older '
    'single ones one by one';

-- Sorts are switched off, so the only plan is a scan of queue_due that begins at the given time. The index also holds
-- dead entries of jobs that were promoted, cancelled or put off; they stay as long as somebody holds a snapshot. So the
-- scan is a short range: it begins where the last promotion ended, and ends two seconds ahead. That is far enough,
-- because steps and workers look again after a second at the latest. due_soon() treats dead entries within that range.
create or replace function next_due(after timestamptz, after_seq bigint, lowest timestamptz) returns timestamptz
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    since     timestamptz := least(after, lowest);
    since_seq bigint := case when lowest <= after then 0 else after_seq end;
begin
    return (select q.run_after from queue q
            where q.state in ('scheduled', 'retry') and (q.run_after, q.seq) > (since, since_seq)
              and q.run_after <= now() + interval '2 s'
            order by q.run_after, q.seq limit 1);
end $$;
comment on function next_due(timestamptz, bigint, timestamptz) is 'The time of the first waiting job after this time '
    'and number (tick.after), or from lowest on if that is earlier (lowest may be NULL). NULL = no job is due within '
    'two seconds';

create or replace function due_soon(inout new tick, lowest timestamptz, out due timestamptz, out passed boolean)
language plpgsql set search_path from current as $$
declare
    began timestamptz := clock_timestamp();
begin
    due := next_due(new.after, new.after_seq, lowest);
    passed := (due <= now()) is not true and clock_timestamp() > began + interval '3 ms';
    if passed then -- the scan was slow and found nothing: the range holds many dead entries
        new.after := now();
        new.after_seq := 9223372036854775807;
    end if;
end $$;
comment on function due_soon(tick, timestamptz) is 'next_due() for a step. passed: nothing is due, but the scan read '
    'many dead entries to find that out, so the next scans begin behind them';

create or replace function promote(t tick, lowest timestamptz, out n int, out upto timestamptz, out upto_seq bigint,
    out queues text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    -- otherwise each new number would be compared with all jobs of the step
    set enable_nestloop = off set enable_hashjoin = on
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    since     timestamptz := least(t.after, lowest);
    since_seq bigint := case when lowest <= t.after then 0 else t.after_seq end;
begin
    with due as materialized (
        select id, run_after, seq from queue
        where state in ('scheduled', 'retry') and (run_after, seq) > (since, since_seq) and run_after <= now()
        order by run_after, seq limit 1000
    ), locked as materialized (
        select q.id, q.queue, q.priority, q.state from queue q
        where q.id = any(array(select id from due)) and q.state::text in ('scheduled', 'retry')
          and q.run_after <= now()
        order by q.run_after, q.seq for update of q skip locked
    ), numbered as materialized ( -- in the order of locked, because an UPDATE joins in any order
        select id, queue, priority, state, nextval('job_seq') as new_seq from locked
    ), promoted as (
        update queue q
        set state = case when q.concurrency_key is null then 'ready' else 'blocked' end::job_state, seq = s.new_seq,
            changed = now(), run_after = null
        from numbered s where q.id = any(array(select id from numbered)) and q.id = s.id
        returning s.queue, s.priority, s.state, q.seq, q.state as becomes
    ), counted as (
        -- no min_seq: under this lock no job is late
        insert into delta (queue, priority, ready, blocked, scheduled, retry)
        select queue, priority, count(*) filter (where becomes = 'ready'), count(*) filter (where becomes = 'blocked'),
               -count(*) filter (where state = 'scheduled'), -count(*) filter (where state = 'retry')
        from promoted group by queue, priority
    ), ends as (
        (select d.run_after, d.seq - 1 as seq from due d
         where not exists (select from locked l where l.id = d.id) -- locked by others
         order by d.run_after, d.seq limit 1)
        union all
        (select d.run_after, d.seq from due d where (select count(*) from due) = 1000
         order by d.run_after desc, d.seq desc limit 1)
    )
    select (select count(*) from promoted), coalesce(e.run_after, now()), coalesce(e.seq, 9223372036854775807),
           (select array_agg(distinct queue) from promoted)
    into promote.n, promote.upto, promote.upto_seq, promote.queues
    from (select) o left join (select run_after, seq from ends order by run_after, seq limit 1) e on true;
end $$;
comment on function promote(tick, timestamptz) is 'Makes due jobs ready (jobs with a concurrency key: blocked), in the '
    'order of their time, up to 1000 a call. upto, upto_seq: everything due before upto has been promoted, and of the '
    'jobs due exactly at upto those up to this number';
