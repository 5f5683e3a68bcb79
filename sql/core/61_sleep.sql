-- Sleeping: a worker or scheduler with `--sleep T` sends no statement until something is due, or until it is notified.
-- Other workers look once a second, and a push notifies one of them (48_wake). A sleeper does not look, so there are
-- three more rules for it:
--   a push            notifies the waiter in slot 0, who wakes the next one when it leaves the slot. Sleepers listen to
--                     the channel of slot 0, too: so they wake even if the host of that waiter is gone
--   a step, an act    whatever makes leases, and every act of an operator, calls tell_sleepers() before it commits
--   the time          a sleeper knows the earliest time at which a job, a schedule or an expiry is due
-- Nobody sleeps while there is a lease: somebody has to see it expire.
-- No notification is lost. A session that wants to sleep first takes the sleepers' lock in shared mode, and then looks
-- for work. tell_sleepers() tries the lock in exclusive mode, and keeps it until its transaction ends. So either the
-- change is committed before the sleeper's look, which sees it, or tell_sleepers() finds the lock taken and notifies.

create or replace function sleep_channel() returns text
language sql stable set search_path from current as $$ select 'queuetop_' || 'queue'::regclass::oid || '_sleep' $$;
comment on function sleep_channel() is 'The channel that all sleepers listen to';

create or replace function tell_sleepers() returns void
language plpgsql set search_path from current as $$
begin
    if not pg_try_advisory_xact_lock(slot_class() + 17, 'queue'::regclass::oid::int) then
        perform pg_notify(sleep_channel(), '');
    end if;
end $$;
comment on function tell_sleepers() is 'Wakes all sleepers at the commit of this transaction. Until then no session '
    'can fall asleep';

create or replace function leave_slots() returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_unlock(l.classid::int, l.objid::int) from pg_locks l
    where l.pid = pg_backend_pid() and l.locktype = 'advisory' and l.objsubid = 2 and l.mode = 'ExclusiveLock'
      and l.granted and l.classid::bigint between slot_class() and slot_class() + 16
      and l.objid = 'queue'::regclass::oid
      and l.database = (select d.oid from pg_database d where d.datname = current_database());
    perform tell_sleepers();
end $$;
comment on function leave_slots() is 'Called by a session that ends: leaves its wait slots and wakes the sleepers, so '
    'that one of them takes its place. The end of the session alone would notify nobody';

create or replace function sleeps(pid int) returns boolean
language sql stable set search_path from current as $$
    select exists (select from pg_locks l
                   where l.pid = sleeps.pid and l.locktype = 'advisory' and l.objsubid = 2 and l.mode = 'ShareLock'
                     and l.granted and l.classid::bigint = slot_class() + 17 and l.objid = 'queue'::regclass::oid
                     and l.database = (select d.oid from pg_database d where d.datname = current_database()))
$$;
comment on function sleeps(int) is 'Whether the session with this pid is a sleeper: it holds the sleepers'' lock. The '
    'pid alone does not prove that: after a restart of the server another session may have it';

create or replace function sleep_due(most interval) returns timestamptz
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    t   tick;
    due timestamptz;
begin
    select * into t from tick order by tick desc limit 1;
    if t.more is not false or t.joining or t.settled is not null or is_new() or moved()
       or exists (select from live)
       or exists (select from queue q where q.state = 'blocked' and q.concurrency_key is not null)
       or (select b.ready from backlog() b) > 0 then
        return null;
    end if;
    due := least(clock_timestamp() + most, t.limited_at, (select min(s.next_run) from schedule s),
                 (select q.run_after from queue q
                  where q.state in ('scheduled', 'retry')
                    and (q.run_after, q.seq) > (coalesce(t.after, '-infinity'), coalesce(t.after_seq, 0))
                  order by q.run_after, q.seq limit 1),
                 (select q.expires_at from queue q where q.expires_at is not null and q.state <> 'failed'
                  order by q.expires_at, q.seq limit 1));
    return case when due > clock_timestamp() + interval '1 s' then due end;
end $$;
comment on function sleep_due(interval) is 'Until when there is nothing to do if nobody pushes, claims or acts, at '
    'most this long from now; NULL: there is something to do within a second. Call it under the scheduler''s lock';

create or replace function fall_asleep(most interval, slot int, backend_pid int, listening boolean, out state text,
    out due timestamptz)
language plpgsql set search_path from current as $$
#variable_conflict use_column
begin
    state := 'busy';
    if (most between interval '1 s' and interval '1 day') is not true then
        raise 'a sleep takes 1 s to 1 day, not %', most using errcode = 'QT007';
    elsif backend_pid is distinct from pg_backend_pid() then
        state := 'pooler';
    elsif slot = -1 then
        return; -- a push is in progress
    elsif slot < 0 then
        state := 'no place';
    elsif not listening then
        execute format('listen %I', slot_channel(0));
        execute format('listen %I', sleep_channel());
        state := 'listens'; -- the session listens only from the end of this transaction on
    elsif slot > 0 and not slot_waits(0) then
        return; -- a push is in progress, or nobody waits for one
    elsif pg_try_advisory_lock_shared(slot_class() + 17, 'queue'::regclass::oid::int) then
        if scheduler_lock(false) then
            due := sleep_due(most);
        end if;
        if due is null then
            perform stay_awake();
        else -- keepalives end the session of a host that is gone: it must not count as a sleeper for hours
            perform set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
                    set_config('tcp_keepalives_count', '3', false);
        end if;
    end if;
end $$;
comment on function fall_asleep(interval, int, int, boolean) is 'For node_sleep() and scheduler_sleep(): if this '
    'session may sleep, it is a sleeper from now on and due is the end of its sleep. Otherwise due is NULL and state '
    'says why';

create or replace function stay_awake() returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_unlock_shared(slot_class() + 17, 'queue'::regclass::oid::int);
end $$;
comment on function stay_awake() is 'This session is no sleeper any more';

create or replace function sleep_ms(due timestamptz) returns text
language sql volatile as $$ select ceil(1000 * extract(epoch from due - clock_timestamp()))::bigint::text $$;
comment on function sleep_ms(timestamptz) is 'How long from now until then, in ms';

create or replace function node_sleep(node text, session uuid, most interval, slot int, backend_pid int,
    listening boolean, out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    due timestamptz;
begin
    select f.state, f.due into state, due from fall_asleep(most, slot, backend_pid, listening) f;
    if due is not null then
        update node n set heartbeat = due, backend_pid = pg_backend_pid()
        where n.lock_key = node_sleep.node and n.session = node_sleep.session and n.state = 'up';
        if found then
            state := sleep_ms(due);
        else
            perform stay_awake();
        end if;
    end if;
end $$;
comment on function node_sleep(text, uuid, interval, int, int, boolean) is 'For a worker that waits in a slot and has '
    'nothing to do. state: for how many ms it may send nothing unless a notification comes (its heartbeat is set to '
    'that time), or why it may not sleep: listens = call again, because the session listens only from now on; busy = '
    'there is something to do, or a push is in progress; no place = the worker has no slot; pooler = locks and LISTEN '
    'would belong to the pooler''s connection. backend_pid and listening: as in claim_or_wait, whose next call ends '
    'the sleep; a heartbeat ends it as well';

create or replace function scheduler_sleep(holder text, most interval, slot int, backend_pid int, listening boolean,
    out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    due  timestamptz;
    last scheduler;
begin
    select f.state, f.due into state, due from fall_asleep(most, slot, backend_pid, listening) f;
    if due is null then
        return;
    end if;
    select * into last from scheduler order by term desc limit 1;
    -- a nearer time would count as the promise of an active scheduler, see still()
    if due < clock_timestamp() + interval '11 s'
       or must_fold() or (select not f.rolled from fold f where f.keep order by f.fold desc limit 1)
       or last.holder <> scheduler_sleep.holder and (still(last.until) or last.until <= clock_timestamp()) then
        perform stay_awake();
        return;
    end if;
    if last.holder = scheduler_sleep.holder then
        insert into scheduler (holder, until) values (scheduler_sleep.holder, due);
        delete from scheduler where term = last.term and term > 0;
    end if;
    state := sleep_ms(due);
end $$;
comment on function scheduler_sleep(text, interval, int, int, boolean) is 'node_sleep() for a scheduler in which '
    'nothing was new for some seconds (slot: 0 if its last step waits, else 1), and for one that stands by while the '
    'active one sleeps. While the active scheduler sleeps, none is active: claims make the steps. A scheduler may not '
    'sleep if something is due within 11 s, or if the books are not complete';
