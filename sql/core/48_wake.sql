-- Waking. A commit notifies only if somebody waits. An idle worker takes a WAIT SLOT, which is a session advisory lock
-- (slot_class() + slot, oid of queue), looks for jobs once more, and sleeps. A pusher tries the slot's lock in shared
-- mode, until the end of its transaction. If that fails, a worker is waiting: the pusher notifies the slot's channel.
-- No wake-up is lost: while the pusher holds the lock in shared mode nobody can take the slot. So a job is either
-- committed before the waiter's last look, which sees it, or its pusher finds the slot taken.
--   slot 0        its waiter is woken by pushes (trigger queue_pushed), and makes the scheduling step itself. If no
--                 worker is idle, the scheduler waits in slot 0 after a second without anything new
--   slots 1 to 16 the others: woken when more was cut than one worker can take, or when slot 0 becomes free
-- Of a hundred idle workers 17 listen; the others look from time to time. Through a transaction pooler nobody waits,
-- because session locks and LISTEN would belong to the pooler's connections (see backend_pid in claim_or_wait).

create or replace function slot_channel(slot int) returns text
language sql stable set search_path from current as
$$ select 'queuetop_' || 'queue'::regclass::oid || case when slot > 0 then '_' || slot else '' end $$;
comment on function slot_channel(int) is 'The channel that the waiter in this slot listens to';

create or replace function slot_waits(slot int) returns boolean
language sql volatile set search_path from current as
$$ select not pg_try_advisory_xact_lock_shared(slot_class() + slot, 'queue'::regclass::oid::int) $$;
comment on function slot_waits(int) is 'Whether somebody waits in the slot. If nobody does, nobody can take the slot '
    'before this transaction ends';

create or replace function wake(n int) returns int
language plpgsql security definer set search_path from current as $$
declare
    trusted boolean := only_ours();
    woken int := 0;
begin
    for slot in 1 .. 16 loop
        exit when woken >= n;
        if slot_waits(slot) then
            perform pg_notify(slot_channel(slot), '');
            woken := woken + 1;
        end if;
    end loop;
    return woken;
end $$;
comment on function wake(int) is 'Wakes up to n of the workers in the slots behind slot 0. Returns how many were woken';

create or replace function wake_workers() returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    free int;
    every boolean;
begin
    -- a new waiter can't take slot 0 now; the others look within a second
    if not slot_waits(0) and not slot_waits(1) then
        return;
    end if;
    select t.hasty, (select count(*) from (select from work_queue w
                                           where w.lease >= t.free and w.lock_key is null limit 17) z)
    into every, free from tick t order by t.tick desc limit 1;
    if free > 0 and slot_waits(0) then
        perform pg_notify(slot_channel(0), '');
        free := free - 1;
    end if;
    perform wake(case when every and free > 0 then 16 else free end); -- every: some nodes work only some queues
end $$;
comment on function wake_workers() is 'After a cut: wakes as many waiting workers as there are free leases';

create or replace function idle_wait() returns int
language sql volatile set search_path from current as
$$ select case when slot_waits(0) then 1000 else 50 end $$;
comment on function idle_wait() is 'After how many ms the scheduler should look again if nothing is new. If a worker '
    'waits for pushes, that worker looks when something is pushed';

create or replace function what_is_new(t tick, queues text[])
returns table (queue text, priority smallint, low bigint, after timestamptz, cut bigint, odd boolean)
language sql stable as $$
    select u.queue, u.priority, u.low, u.after, c.seq[u.priority + 1],
           u.odd or c.seq[u.priority + 1] is null or q.max_running is not null or q.rate is not null
           or u.low is not null and (u.low <= c.seq[u.priority + 1] or q.paused_at is not null or c.lowered
                                     or what_is_new.queues is not null and u.queue <> all(what_is_new.queues))
    from (select d.queue, d.priority, min(d.min_seq) as low, min(d.min_after) as after,
                 bool_or(d.ready is null or d.blocked <> 0 or d.ready > 0 and d.min_seq is null) as odd
          from deltas_since(t.snapshot, t.xid) d where d.error_key is null group by 1, 2) u
    left join lateral newest_cursor(u.queue) c on true
    left join queue_config q on q.queue = u.queue
$$;
comment on function what_is_new(tick, text[]) is 'For take_new(): the queues and priorities in which something has '
    'changed since the last step. low: the first new job; after: when the first new waiting job is due; cut: the '
    'cursor; odd: the queue needs a whole step. No SET, so that it is inlined';

create or replace function take_new(t tick, node text, n int, timeout interval, queues text[], start boolean,
    out state text, out leases bigint[], out due timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    new  tick := t;
    seen record;
begin
    if exists (select from deltas_since(t.snapshot, t.xid) d where d.error_key is null offset 1000) then
        state := 'step';
        return;
    end if;
    with news as materialized (
        select * from what_is_new(t, take_new.queues)
    ), job as materialized (
        select l.queue, l.priority, j.* from news l cross join lateral (
            select j.seq, j.lease_timeout, j.run_timeout, j.expires_at from queue j
            where j.queue = l.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.cut
            order by j.seq limit take_new.n + 1::bigint) j
        where l.low is not null limit take_new.n + 1::bigint
    )
    select pg_current_snapshot() as snapshot,
           (select bool_or(odd) from news) or (select bool_or(expires_at <= clock_timestamp()) from job)
           or exists (select from news)
              and exists (select from queue where state = 'blocked' and concurrency_key is not null) as odd,
           (select min(after) from news) as after, exists (select from news where low is not null) as woken,
           array_agg(j.queue) as queues, array_agg(j.priority) as priorities, array_agg(j.seq) as seqs,
           array_agg(j.lease_timeout) as timeouts,
           array_agg(j.lease_timeout is not null or j.run_timeout is not null) as own
    from job j into seen;
    due := next_due(t.after, t.after_seq, seen.after);
    if seen.odd or due <= now() or cardinality(seen.seqs) > n then
        state := 'step';
    elsif not seen.woken then
        state := 'nothing';
    else
        leases := lease_new(node, timeout, start, seen.queues, seen.priorities, seen.seqs, seen.timeouts, seen.own);
        new.after := least(t.after, seen.after);
        new.after_seq := case when seen.after <= t.after then 0 else t.after_seq end;
        perform step_end(seen.snapshot, new);
        perform tell_sleepers();
        state := case when leases is null then 'nothing' else 'taken' end;
    end if;
end $$;
comment on function take_new(tick, text, int, interval, text[], boolean) is 'The fast path for few new jobs if nothing '
    'else waits: cuts and claims them at once. step = the case is not that simple, or there are too many deltas: a '
    'whole step must be made. Under the scheduler lock';

create or replace function lease_new(node text, timeout interval, start boolean, queues text[], priorities smallint[],
    seqs bigint[], timeouts interval[], own boolean[]) returns bigint[]
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    leases bigint[];
begin
    with job as materialized (
        select * from unnest(lease_new.queues, lease_new.priorities, lease_new.seqs, timeouts, lease_new.own)
                      v (queue, priority, seq, lease_timeout, own)
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history,
                                run_timeout, lock_key, started, all_started, lock_timeout, version)
        select nextval('lease_seq'), 1, j.queue, j.priority, j.seqs, scattered(j.seqs, 1000), z.lease_time,
               l.max_tries, l.history, l.run_timeout, node, now(), start,
               now() + coalesce(timeout, z.lease_time, interval '60 s'), 1
        from (select queue, priority, array_agg(seq order by seq) as seqs, max(lease_timeout) as lease_timeout
              from job group by queue, priority, case when own then seq end) j
        join queue_config c on c.queue = j.queue cross join lateral lease_terms(c) l
        cross join lateral (select coalesce(j.lease_timeout, l.lease_time) as lease_time) z
        returning lease
    ), cut_to as (
        select queue, array_agg(priority) as priorities, array_agg(seq) as cuts
        from (select queue, priority, max(seq) as seq from job group by 1, 2) z group by 1
    ), moved as (
        insert into cursor (queue, seq, high, low, chunk)
        select l.queue, s, h, c.low, c.chunk
        from cut_to l cross join lateral newest_cursor(l.queue) c
        cross join lateral advanced(c.seq, l.priorities, l.cuts) s
        cross join lateral advanced(c.high, l.priorities, l.cuts) h
    )
    select array_agg(lease) from made into leases;
    return leases;
end $$;
comment on function lease_new(text, interval, boolean, text[], smallint[], bigint[], interval[], boolean[]) is 'For '
    'take_new(): makes claimed leases of these jobs and moves the cursors. own: the job has timeouts of its own, so it '
    'gets a lease of its own';

create or replace function is_new() returns boolean
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    trusted boolean := only_ours();
    t tick;
begin
    select * into t from tick order by tick desc limit 1;
    return exists (select from deltas_since(t.snapshot, t.xid) where error_key is null)
           or t.more and t.jobs > (select coalesce(sum(cardinality(seqs)), 0) from live where lock_key is null)
           -- the database was restored into another cluster (see moved()): a step must count everything again
           or pg_snapshot_xmax(t.snapshot) > pg_snapshot_xmax(pg_current_snapshot());
end $$;
comment on function is_new() is 'Whether something was pushed or claimed that the last step has not seen. schedule() '
    'itself checks much more';

create or replace function glance(queues text[], out nothing boolean, out due timestamptz)
language plpgsql stable set search_path from current as $$
#variable_conflict use_column
declare
    t tick;
begin
    select * into t from tick order by tick desc limit 1;
    due := next_due(t.after, t.after_seq, null);
    nothing := (due <= now()) is not true and not t.more and not is_new()
               and not exists (select from work_queue w where w.lease >= t.free and w.lock_key is null
                               and (glance.queues is null or w.queue = any(glance.queues)));
end $$;
comment on function glance(text[]) is 'nothing: there is no work for a worker of these queues (NULL: all queues): no '
    'free lease, and a step would make none. due: when that changes without a push. Takes no lock, because the '
    'scheduler''s lock would write its row';

create or replace function lane_due() returns timestamptz
language sql stable set search_path from current as
$$ select case when l.laps > 0 then l.due end from lane l order by l.n desc limit 1 $$;
comment on function lane_due() is 'When to look for blocked jobs again (44_keys); NULL = not before something changes';

create or replace function look(node text, n int, timeout interval, queues text[], start boolean, polls boolean,
    out state text, out leases bigint[], out due timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    t tick;
    none boolean := false;
    soon timestamptz;
begin
    if polls then -- polling is frequent, so it must be cheap
        select g.nothing, g.due into none, soon from glance(queues) g;
    end if;
    if exists (select from node_barred(node)) then
        state := 'nothing';
    elsif (select not still(s.until) from scheduler s order by s.term desc limit 1) then
        state := 'alone'; -- claim() makes the step of the missing scheduler
        due := (select next_due(least(x.after, now()), case when x.after <= now() then x.after_seq else 0 end, null)
                from tick x order by x.tick desc limit 1);
    elsif none then
        state := 'nothing';
        due := soon;
    elsif not scheduler_lock(false) then
        state := 'busy';
    else
        select * into t from tick order by tick desc limit 1;
        if exists (select from work_queue w where w.lease >= t.free and w.lock_key is null
                   and (look.queues is null or w.queue = any(look.queues))) then
            state := 'claim';
        elsif not t.more then
            select x.state, x.leases, x.due into look.state, look.leases, look.due
            from take_new(t, node, n, timeout, queues, start) x;
        else
            state := 'step';
        end if;
        if state = 'nothing' and lane_due() <= clock_timestamp() then
            state := 'step';
        end if;
        if state = 'step' then
            perform schedule('wake:' || node);
            state := 'claim';
        end if;
        if state <> 'taken' then
            due := least(due, lane_due());
        end if;
    end if;
end $$;
comment on function look(text, int, interval, text[], boolean, boolean) is 'Looks for something to claim. state: taken '
    '= these leases are claimed already; claim = claim() may find some; alone = the same, and no scheduler lives; '
    'nothing; busy = another session makes a step';

create or replace function take_slot(listening int, out slot int, out fresh boolean)
language plpgsql set search_path from current as $$
declare
    at int := 'queue'::regclass::oid::int;
begin
    slot := -1;
    if pg_try_advisory_lock(slot_class(), at) then
        slot := 0;
    elsif slot_waits(0) then -- otherwise a push is in progress: the next look comes soon
        select s into slot from (select listening as s where listening > 0 union all select generate_series(1, 16)) z
        where pg_try_advisory_lock(slot_class() + s, at) limit 1;
        slot := coalesce(slot, -2);
    end if;
    fresh := slot >= 0 and slot <> listening;
    if fresh then
        unlisten *;
        execute format('listen %I', slot_channel(slot));
    end if;
end $$;
comment on function take_slot(int) is 'Takes a wait slot for this session. -1 = a push is in progress, -2 = all slots '
    'are taken. fresh: the session listens only from the end of this transaction on';

create or replace function look_again(state text, due timestamptz, slot int, fresh boolean) returns int
language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') <> 'read committed'
       and not still((select s.until from scheduler s order by s.term desc limit 1)) then
        perform isolation_check(); -- claim() can't make the scheduler's step, and nobody else does
    end if;
    return greatest(0, case when slot = -1 or state = 'busy' then 2
                            when fresh then 0
                            when due < now() + interval '1 s'
                            then 1 + (1000 * extract(epoch from greatest(due, now()) - clock_timestamp()))::int
                            when state = 'alone' and slot = 0 then 250
                            else 1000 end);
end $$;
comment on function look_again(text, timestamptz, int, boolean) is 'For claim_or_wait(): after how many ms to call it '
    'again at the latest. state, due: the result of look(); slot, fresh: the result of take_slot(). Raises QT007 if no '
    'scheduler lives and the isolation level does not let claim() make its step';

create or replace function claim_or_wait(node text, n int, timeout interval default null, queues text[] default null,
    start boolean default true, backend_pid int default null, listening int default -1)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int,
    max_tries int, payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz,
    run_timeout interval, slot int, wait_ms int)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    direct boolean := coalesce(backend_pid = pg_backend_pid(), false);
    got    boolean;
    rows   int;
    at     timestamptz; -- when the jobs were handed out
    seen   record; -- the result of look()
    place  record; -- the result of take_slot()
begin
    if claim_fault(node, n, timeout) is not null then -- as in claim(): a lease without a node would be a free lease
        raise '%', claim_fault(node, n, timeout) using errcode = 'QT007';
    end if;
    if direct then
        perform pg_advisory_unlock_all(); -- all advisory locks: the session belongs to this worker
    end if;
    if n < 1 then -- the worker takes no more jobs: another should wait in its place
        perform wake(1);
        return;
    end if;
    for round in 1 .. 2 loop
        select * into seen from look(node, n, timeout, queues, start, not direct);
        if seen.state = 'taken' then
            at := clock_timestamp();
            return query select r.*, -1, 0 from read_leases(seen.leases, at) r;
            get diagnostics rows = row_count;
            got := rows > 0;
            if rows < (select sum(cardinality(w.seqs)) from work_queue w where w.lease = any(seen.leases)) then
                perform drop_missing(seen.leases, at); -- some jobs were just deleted by hand, or have expired
            end if;
        else
            return query select c.*, -1, 0 from claim(node, n, timeout, queues, start) c where seen.state <> 'nothing';
            got := found;
        end if;
        if got then
            if direct and round = 2 then
                perform pg_advisory_unlock_all();
            end if;
            return;
        end if;
        if round = 1 and direct then
            select * into place from take_slot(listening);
        elsif round = 1 then
            select -2 as slot, false as fresh into place;
        end if;
        exit when place.slot < 0 or place.fresh;
    end loop;
    slot := place.slot;
    wait_ms := look_again(seen.state, seen.due, place.slot, place.fresh);
    return next;
end $$;
comment on function claim_or_wait(text, int, interval, text[], boolean, int, int) is 'claim() for a worker that has '
    'nothing to do. If there is nothing to claim, the answer is one row without a lease. slot: where this session '
    'waits from now on (below 0: nowhere). wait_ms: after how many ms to call again at the latest (a delayed job is '
    'due; 0: at once, because the session listens only from now on). backend_pid: the pid of the process that the '
    'client is connected to; if this call runs in another process, a pooler is between, and the session never waits. '
    'listening: slot of the last answer. The next call ends the wait; a call with n = 0 only ends the wait';

create or replace function take_place(quiet interval) returns boolean
language plpgsql set search_path from current as $$
begin
    return quiet >= interval '1 s' and not slot_waits(0) and wake(1) = 0
           and not (select more from tick order by tick desc limit 1) -- otherwise claims are news, too
           and pg_try_advisory_lock(slot_class(), 'queue'::regclass::oid::int);
end $$;
comment on function take_place(interval) is 'For a scheduler in which nothing was new for the time quiet: takes slot '
    '0, unless a worker can. If a worker waits in another slot, that worker is woken to take slot 0';

create or replace function is_late() returns boolean
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select slot_waits(0) and exists (
        select from delta d
        where d.xid >= pg_snapshot_xmax(t.snapshot) and d.min_seq is not null and d.error_key is null
        and d.at < clock_timestamp() - interval '250 ms')
    from (select * from tick order by tick desc limit 1) t
$$;
comment on function is_late() is 'Whether somebody waits for pushes, but a push of more than 250 ms ago has not been '
    'looked at';

create or replace function schedule_or_wait(holder text, quiet interval default '0', backend_pid int default null,
    listening boolean default false)
returns table (active boolean, cut int, promoted int, stolen int, wait_ms int, look_ms int, waits boolean, late boolean,
    fold boolean)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    direct boolean := coalesce(backend_pid = pg_backend_pid(), false);
    rest   int := 500;
begin
    if quiet >= interval '2 s'
       and not exists (select from queue where state = 'blocked' and concurrency_key is not null)
       and not exists (select from queue_config where max_running is not null) then
        rest := 1000; -- a job's end notifies nobody, but no job waits for one
    end if;
    waits := false;
    if direct then
        perform pg_advisory_unlock_all(); -- all advisory locks: the session belongs to this scheduler
        waits := take_place(quiet);
    end if;
    if waits and not listening then
        unlisten *;
        execute format('listen %I', slot_channel(0));
    end if;
    late := not waits and is_late();
    select s.active, s.cut, s.promoted, s.stolen, s.wait_ms into active, cut, promoted, stolen, wait_ms
    from schedule(holder, rest) s;
    if waits and not active then
        perform pg_advisory_unlock_all();
        waits := false;
    elsif waits and not listening then
        wait_ms := 0; -- the session listens only from the end of this transaction on
    end if;
    look_ms := case when active and not waits then idle_wait() else wait_ms end;
    fold := active and must_fold();
    return next;
end $$;
comment on function schedule_or_wait(text, interval, int, boolean) is 'schedule() for a process of its own in which '
    'nothing was new for the time quiet. If no worker waits for pushes, this session does (waits), until the next '
    'call; through a pooler it calls is_new() every look_ms instead. fold: fold_beside() is due. Without news the '
    'steps come every half second; after 2 s every second, if no job waits for the end of another. backend_pid: as in '
    'claim_or_wait. listening: the session has waited before on this connection';
