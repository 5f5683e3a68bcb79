-- The parts of the scheduler's step. `queuetop schedule` calls schedule(holder) again and again; a claim that finds
-- nothing calls it once, if no scheduler lives. Everything here runs under the lock of scheduler row 0.

create or replace function scheduler_lock(wait boolean) returns boolean
language plpgsql set search_path from current as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise 'this function needs the isolation level READ COMMITTED' using errcode = 'QT007',
            hint = 'Where another one is the default of the database: alter role ... set default_transaction_isolation = ''read committed''';
    end if;
    if wait then
        perform from scheduler where term = 0 for update;
        return true;
    end if;
    perform from scheduler where term = 0 for update skip locked;
    return found;
end $$;
comment on function scheduler_lock(boolean) is 'Takes the lock that every maker of free leases needs, until the end of the transaction';

create or replace function still(until timestamptz) returns boolean
language sql volatile as $$ select $1 > pg_catalog.clock_timestamp() and $1 < pg_catalog.clock_timestamp() + interval '10 s' $$;
comment on function still(timestamptz) is 'Whether a scheduler''s word (3 s at most) still holds: further ahead it is of a clock that was set back since';

create or replace function scheduler_hold(holder text) returns text
language plpgsql set search_path from current as $$
declare
    last scheduler;
begin
    if (length($1) between 1 and 300) is not true then
        raise 'the name of a scheduler has 1 to 300 characters, not %', coalesce(length($1), 0) using errcode = 'QT007';
    elsif not scheduler_lock(false) then
        return 'no';
    elsif $1 like 'wake:%' then
        return 'once'; -- by an idle worker (48_wake), also where a scheduler lives
    end if;
    select * into last from scheduler order by term desc limit 1;
    if still(last.until) and last.holder <> $1 then
        return 'no';
    elsif $1 like 'claim:%' then
        return 'once';
    elsif still(last.until - interval '2 s') then
        return 'held';
    end if;
    insert into scheduler (holder, until) values ($1, clock_timestamp() + interval '3 s');
    delete from scheduler where term = last.term and term > 0;
    return case when last.holder = $1 and still(last.until) then 'held' else 'taken' end;
end $$;
comment on function scheduler_hold(text) is 'no = another scheduler is active; once = a step by a claim; held; taken = it has just taken over, or slept';

-- The living leases, found without reading the dead rows: all numbers from the mark on, and the older ones that the
-- mark lists, each with the parts that were split off it (base + 1 to base + 99) and the leases that were put before
-- the next one (base + 100 to base + 199). The mark is a value and the older leases are read one by one, so no plan
-- can begin by reading all leases.
create or replace view live as
select w.* from work_queue w where w.lease >= (select mark from mark order by n desc limit 1)
union all
select w.* from unnest((select older from mark order by n desc limit 1)) o
cross join lateral (select w.* from work_queue w where w.lease between o and o + 199 offset 0) w;
comment on view live is 'All rows of work_queue, read without wading through dead ones';

create or replace function living() returns setof work_queue
language sql stable set search_path from current set enable_seqscan = off set enable_indexscan = on set enable_indexonlyscan = on
    set enable_bitmapscan = off set jit = off as
$$ select * from live $$;
comment on function living() is 'The view live for who reads it in a statement of its own: that can''t say which plans it wants';

create or replace function mark_leases() returns void
language sql set search_path from current as $$
    with l as materialized (select lease / 200 * 200 as base from live group by 1),
    r as (select base, (case when is_called then last_value + 200 else 200 end - base) / 200 as span,
                 row_number() over (order by base desc) as rank from l, lease_seq),
    m as (select coalesce(min(base) filter (where span <= 16 * rank + 500),
                          (select case when is_called then last_value + 200 else 200 end from lease_seq)) as mark from r),
    n as (select mark, coalesce((select array_agg(base order by base) from l where base < mark), '{}') as older from m)
    insert into mark (mark, older) select mark, older from n
    where (mark, older) is distinct from (select (o.mark, o.older) from mark o order by n desc limit 1)
$$;
comment on function mark_leases() is 'Moves the mark: dense leases are read as one range, stragglers one by one';

-- There is no sort, so the only plan is a scan of queue_due that begins at the given time. Before that time the index
-- holds the jobs that were promoted: dead entries, which stay as long as somebody holds a snapshot.
create or replace function next_due(after timestamptz, after_seq bigint, lowest timestamptz) returns timestamptz
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
    set enable_indexscan = on set enable_indexonlyscan = on set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    since     timestamptz := least($1, $3);
    since_seq bigint := case when $3 <= $1 then 0 else $2 end;
begin
    return (select q.run_after from queue q where q.state in ('scheduled', 'retry') and (q.run_after, q.seq) > (since, since_seq)
            order by q.run_after, q.seq limit 1);
end $$;
comment on function next_due(timestamptz, bigint, timestamptz) is 'The time of the first waiting job after this time and number (tick.after), or '
    'from lowest on, where that is earlier (NULL: it is not); NULL = none waits';

create or replace function promote(t tick, lowest timestamptz, out n int, out upto timestamptz, out upto_seq bigint, out queues text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
    set enable_indexscan = on set enable_indexonlyscan = on set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    since     timestamptz := least(t.after, $2);
    since_seq bigint := case when $2 <= t.after then 0 else t.after_seq end;
begin
    with c as materialized (
        select id, run_after, seq from queue
        where state in ('scheduled', 'retry') and (run_after, seq) > (since, since_seq) and run_after <= now()
        order by run_after, seq limit 1000
    ), l as materialized (
        select q.id, q.queue, q.priority, q.state from queue q
        where q.id = any(array(select id from c)) and q.state::text in ('scheduled', 'retry') and q.run_after <= now()
        order by q.run_after, q.seq for update of q skip locked
    ), k as materialized ( -- numbers in the order of l: an update joins in any order
        select id, queue, priority, state, nextval('job_seq') as new_seq from l
    ), u as (
        update queue q set state = case when q.concurrency_key is null then 'ready' else 'blocked' end::job_state, seq = l.new_seq,
               changed = now(), run_after = null
        from k l where q.id = any(array(select id from k)) and q.id = l.id returning l.queue, l.priority, l.state, q.seq, q.state as becomes
    ), d as (
        insert into delta (queue, priority, ready, blocked, scheduled, retry) -- no min_seq: under this lock nothing is late
        select queue, priority, count(*) filter (where becomes = 'ready'), count(*) filter (where becomes = 'blocked'), -count(*) filter (where state = 'scheduled'),
               -count(*) filter (where state = 'retry')
        from u group by queue, priority)
    select (select count(*) from u), coalesce(e.run_after, now()), coalesce(e.seq, 9223372036854775807), (select array_agg(distinct queue) from u)
    into promote.n, promote.upto, promote.upto_seq, promote.queues
    from (select) o left join (
        select z.run_after, z.seq from (
            (select c.run_after, c.seq - 1 as seq from c where not exists (select from l where l.id = c.id) -- locked by others
             order by c.run_after, c.seq limit 1)
            union all
            (select c.run_after, c.seq from c where (select count(*) from c) = 1000 order by c.run_after desc, c.seq desc limit 1)) z
        order by z.run_after, z.seq limit 1) e on true;
end $$;
comment on function promote(tick, timestamptz) is 'Makes due jobs ready (those with a concurrency key: blocked), in the order of their time, a thousand a call; '
    'upto, upto_seq = everything due before has been promoted, and of what is due at that time up to this number';
