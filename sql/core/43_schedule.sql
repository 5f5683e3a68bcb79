-- Taking leases back (expired, released, given back), and schedule(), the step that does everything in order.

create or replace function error_key(error text) returns text
language sql immutable parallel safe strict set search_path from current as $$
    select left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left($1, 1000),
        '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', 'N', 'g'),
        '"[^"]*"|''[^'']*''|`[^`]*`', 'N', 'g'),
        E'0[xX][0-9a-fA-F]+|\\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\M', 'N', 'g'), -- E: whatever standard_conforming_strings says
        '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
        E'\\s+', ' ', 'g')), 300)
$$;
comment on function error_key(text) is 'The group of an error: numbers, uuids, quoted parts and hex become N; at most 300 characters';

create or replace function add_days() returns void
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    parent text;
    part   text;
    day    date;
begin
    for parent, day in select t, (now() + i * interval '1 day')::date from unnest(array['history', 'attempt']) t, generate_series(0, 7) i loop
        part := parent || to_char(day, '_YYYYMMDD');
        continue when to_regclass(quote_ident(part)) is not null;
        execute format('create table %I (like %I including all, constraint %I check (%I >= %L and %4$I < %6$L))', part, parent,
                       part || '_day', case parent when 'history' then 'finished' else 'ended' end,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, part,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I drop constraint %I', part, part || '_day');
    end loop;
end $$;
comment on function add_days() is 'Makes the partitions of history and attempt a week ahead, by LIKE and ATTACH: CREATE PARTITION OF would wait behind a pg_dump';
select add_days();

create or replace function have_day() returns void
language plpgsql as $$
begin
    if (select count(*) from unnest(array['history', 'attempt']) t cross join generate_series(0, 1) d -- one day more: answers take the clock's time
        where to_regclass(quote_ident(t || to_char(now() at time zone 'UTC' + d * interval '1 day', '_YYYYMMDD'))) is not null) < 4 then
        perform from scheduler where term = 0 for update; -- its step makes them, too
        perform add_days();
    end if;
    perform set_config('queuetop.day', floor(date_part('epoch', now()) / 86400)::int::text || current_schema(), false); -- of this schema: a database may have several
end $$;
comment on function have_day() is 'Makes the partitions of today where no scheduler has run for a week: an answer, a lost lease and an operator''s act '
    'must find their place. Answers call it once a day and session';

create or replace function take_back(leases bigint[], count boolean, fail boolean, why text, part bigint[] default null)
returns table (id uuid, seq bigint, state text)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    ids      uuid[];
    old_seqs bigint[];
    states   text[];
    queues   text[];
    levels   int[];
    new_seqs bigint[];
begin
    perform have_day();
    with w as materialized ( -- the caller has locked these rows, and the scheduler's
        select lease, queue, priority, lock_key, started, all_started, started_seqs, max_tries, history, scattered,
               case when part is null then seqs else array(select unnest(seqs) intersect select unnest(part) order by 1) end as seqs,
               case when part is null then '{}' else array(select unnest(seqs) except select unnest(part) order by 1) end as rest
        from work_queue where lease = any(leases)
    ), wd as (
        delete from work_queue d using w where d.lease = w.lease and w.rest = '{}'
    ), wu as (
        update work_queue u set seqs = w.rest,
               started_seqs = case when u.started_seqs is not null then array(select unnest(u.started_seqs) intersect select unnest(w.rest)) end
        from w where u.lease = w.lease and w.rest <> '{}'
    ), j as materialized (
        select q.id, q.queue, q.priority, q.tries, q.seq as was, w.lock_key, w.started, w.history,
               q.tries + case when z.counted then 1 else 0 end as now_tries,
               z.counted,
               case when q.cancel_asked is not null and w.lock_key is not null then 'cancelled'
                    when take_back.fail or z.counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries, 5) then 'failed'
                    else 'ready' end as becomes
        from w cross join lateral ranges(w.seqs, w.scattered) r
        cross join lateral (
            select q.* from queue q where q.queue = w.queue and q.priority = w.priority and q.state = 'ready'
            and q.seq between r.low and r.high and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq offset 0) q
        cross join lateral (select take_back.count and w.lock_key is not null
                                   and (w.all_started or q.seq = any(w.started_seqs)) is true as counted) z
    ), k as materialized ( -- the old order; an update joins in any order
        select j.*, nextval('job_seq') as new_seq from (select * from j where becomes <> 'cancelled' order by was) j
    ), u as (
        update queue q set seq = j.new_seq, tries = j.now_tries, changed = case when j.becomes = 'ready' then q.changed else now() end,
               state = j.becomes::job_state,
               error = case when j.counted or j.becomes = 'failed' then why else q.error end,
               error_key = case when j.counted or j.becomes = 'failed' then error_key(why) else q.error_key end
        from k j where q.id = any(array(select id from j)) and q.id = j.id
        returning q.id, q.queue, q.priority, q.seq, q.state, q.error_key, q.lease_timeout, j.counted, j.was, j.lock_key, j.now_tries
    ), x as (
        delete from queue q using j where q.id = any(array(select id from j)) and q.id = j.id and j.becomes = 'cancelled'
        returning q.*, j.lock_key, j.started as began, j.history, j.counted, j.now_tries
    ), h as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node, payload, body,
                             payload_type, error, unique_key, concurrency_key, origin_id, last_action, kept, lease_timeout, run_timeout)
        select id, created, began, now(), 'cancelled', priority, now_tries, max_tries, queue, kind, lock_key,
               case when history is null then payload end, case when history is null then body end, payload_type, error,
               unique_key, concurrency_key, origin_id, last_action, history is null, lease_timeout, run_timeout
        from x where history is distinct from 'n'
    ), a as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error)
        select id, now_tries, was, queue, lock_key, started, now(), 'lost', why from j where counted
    ), d as (
        insert into delta (queue, priority, error_key, ready, failed, fails, lost, cancelled)
        select queue, priority, null, -count(*) filter (where becomes <> 'ready'), count(*) filter (where becomes = 'failed'),
               count(*) filter (where becomes = 'failed'), count(*) filter (where counted), count(*) filter (where becomes = 'cancelled')
        from j group by 1, 2 having bool_or(becomes <> 'ready' or counted) or j.queue in (
            select c.queue from queue_config c where c.rate is not null or c.max_running is not null) -- cut_limited looks at them
        union all
        select queue, 0, error_key, 0, count(*), 0, 0, 0 from u where state = 'failed' group by queue, error_key
    ), n as ( -- back in line as leases of one job each; where the queue is paused or has limits they stay uncut
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), queue, priority, array[seq], lease_time, max_tries, history, run_timeout
        from (select u.queue, u.priority, u.seq, coalesce(u.lease_timeout, nullif(c.lease_timeout, interval '60 s')) as lease_time,
                     nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history, c.run_timeout
              from u left join queue_config c on c.queue = u.queue
              where u.state = 'ready' and c.paused_at is null and c.rate is null and c.max_running is null order by u.seq) z
        returning queue, priority, seqs[1] as seq
    ), r as (
        select id, was as seq, state::text as state from u
        union all
        select id, seq, 'cancelled' from x)
    select array_agg(r.id order by r.seq), array_agg(r.seq order by r.seq), array_agg(r.state order by r.seq),
           (select array_agg(n.queue) from n), (select array_agg(n.priority::int) from n), (select array_agg(n.seq) from n)
    from r into ids, old_seqs, states, queues, levels, new_seqs;
    if queues is not null then
        perform move_cursor(queues, levels, null, new_seqs);
        perform wake_workers();
    end if;
    return query select * from unnest(ids, old_seqs, states);
end $$;
comment on function take_back(bigint[], boolean, boolean, text, bigint[]) is 'Ends leases (or the part of them): their jobs come back '
    'with new numbers in new leases, or as failed; count = it counts as a try for those that had started. Under the scheduler lock';

create or replace function steal() returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    leases bigint[];
    n      int;
begin
    select array_agg(lease) into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key is not null and l.lock_timeout < now() limit 1000))
          and w.lock_key is not null and w.lock_timeout < now()
        order by w.lease + 0 for update skip locked) z;
    if leases is null then
        return 0;
    end if;
    select count(*) into n from take_back(leases, true, false, 'worker lost: its lease expired');
    return n;
end $$;
comment on function steal() is 'Takes back expired leases; one that its worker is just answering for is left alone';

create or replace function moved() returns boolean
language sql stable set search_path from current as
$$
    select (select system_identifier from meta) <> (select system_identifier from pg_control_system())
        or exists (select from delta where xid >= pg_snapshot_xmax(pg_current_snapshot()) and xid is distinct from pg_current_xact_id_if_assigned())
        or (select pg_snapshot_xmax(f.snapshot) from fold f order by f.fold desc limit 1) > pg_snapshot_xmax(pg_current_snapshot())
        or (select pg_snapshot_xmax(t.snapshot) from tick t order by t.tick desc limit 1) > pg_snapshot_xmax(pg_current_snapshot())
$$;
comment on function moved() is 'Whether this is another cluster than the one that the counters were made in: it says so, or (a copy of that cluster says the '
    'same) they know transactions that do not exist here yet';

create or replace function pace(t tick, free int, free_after int, more boolean, out rate real, out want int, out wait int)
language plpgsql immutable set search_path from current as $$
declare
    s float8 := greatest(0.0005, extract(epoch from clock_timestamp() - t.cut_at));
    r float8 := greatest(0, t.jobs - free) / s;
    ahead int; -- 30 ms of work, as what is new waits behind it; 100 ms of 25,000 jobs a second, where a step takes its time
begin
    rate := case when r > t.rate then least(r, 2 * t.rate + 1000) else t.rate + (r - t.rate) * least(1, s) end;
    ahead := 0.1 * rate * greatest(0.3, least(1, rate / 25000));
    want := case when more and free < t.filled / 8 then least(2 * t.want, greatest(t.want, 100, 2 * ahead)) else t.want end;
    want := least(20000, greatest(want, ahead));
    wait := case when not more then 10 when free_after = 0 then 1
                 else least(20, greatest(1, (400.0 * free_after / greatest(1, rate))::int)) end;
end $$;
comment on function pace(tick, int, int, boolean) is 'How much to keep ready (30 to 100 ms of work, up to twice as much where it ran out) and '
    'when to come back (before half of it is gone)';

create or replace function must_cut(t tick, free int) returns boolean
language sql stable as $$
    select t.more and (free <= t.filled / 2 or
        free < t.jobs and t.cut_at < clock_timestamp() - case when t.hasty then interval '10 ms' else interval '50 ms' end)
$$;
comment on function must_cut(tick, int) is 'Whether all queues must be looked at: half of what was ready has been claimed, or some of it a while ago';

create or replace function set_back(t tick) returns tick
language plpgsql set search_path from current as $$
begin
    raise log 'queuetop: the clock was set back by % at least', t.at - clock_timestamp();
    t.mark_at := '-infinity';
    t.day_at := '-infinity';
    t.cut_at := clock_timestamp() - interval '1 s';
    t.limited_at := '-infinity';
    t.cron_at := null;
    update lane set due = '-infinity', expire_at = '-infinity';
    return t;
end $$;
comment on function set_back(tick) is 'After a clock was set back: what the last step put off to a time is done now. Leases hold until the time that they were given';

create or replace function step_from(inout held text, out t tick)
language plpgsql as $$
begin
    select * into t from tick order by tick desc limit 1;
    if held in ('taken', 'once') and moved() then
        perform recount();
        held := 'taken';
        select * into t from tick order by tick desc limit 1;
    end if;
    if held = 'taken' then
        t.settled := coalesce(t.settled, ''); -- who had begun goes on: what takes long must come to its end
        t.more := true;
    end if;
    if t.at > clock_timestamp() + interval '1 s' then
        t := set_back(t);
        held := 'taken';
    end if;
end $$;
comment on function step_from(text) is 'For schedule(): what the last step left. Who has taken over (held), or finds that the clock was set back, trusts less of it';

create or replace function step_leases(inout new tick, news boolean, out stolen int)
language plpgsql as $$
declare
    living timestamptz;
begin
    if new.mark_at >= clock_timestamp() or not (news or new.want > 20 or exists (select from live)) then
        return;
    end if;
    stolen := steal();
    perform mark_leases();
    new := take_chunks(new);
    new.names := null;
    new.free := least(new.free, (select min(lease) from live where lock_key is null)); -- one that somebody freed by hand is found again
    new.mark_at := clock_timestamp() + interval '900 ms'; -- an idle scheduler comes once a second, to the millisecond
    living := now() - setting_interval('node_dead');
    new.want := least(20000, greatest(new.want * 4 / 5, -- however many slots the table holds: 20000 as in pace()
        coalesce((select 2 * sum(greatest(1, least(1000, n.slots))) from node n where n.heartbeat > living), 20)));
    new.hasty := exists (select from node n where n.queues is not null and n.heartbeat > living);
    new.slots := (select max(n.slots) from node n where n.heartbeat > living);
end $$;
comment on function step_leases(tick, boolean) is 'For schedule(), once a second: expired leases, the mark, how much the living nodes can take. stolen: NULL = it was not time';

create or replace function step_late(queues text[], d record, out q text[], out p int[], out f bigint[], out t bigint[])
language plpgsql set search_path from current as $$
declare
    put_off record;
begin
    if d.late_queues is null then
        return;
    end if;
    select array_agg(v.q) filter (where v.now), array_agg(v.p) filter (where v.now),
           array_agg(v.f) filter (where v.now), array_agg(v.t) filter (where v.now)
    into q, p, f, t
    from (select u.*, u.q = any(queues) as now
          from unnest(d.late_queues, d.late_priorities, d.late_from, d.late_to) u (q, p, f, t)) v;
    select array_agg(v.q) as q, array_agg(v.p) as p, array_agg(v.f - 1) as f into put_off
    from unnest(d.late_queues, d.late_priorities, d.late_from) v (q, p, f) where v.q <> all(queues);
    if put_off.q is not null then -- their turn comes
        perform move_cursor(put_off.q, put_off.p, put_off.f, null);
    end if;
end $$;
comment on function step_late(text[], record) is 'For schedule(): the late jobs of the queues that are cut now; the '
    'cursors of the others are lowered, so that they are found later. d: what read_deltas() said';

create or replace function step_cut(t tick, inout new tick, woken text[], whole boolean, d record,
    out cut int, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    queues text[];
    late record;
    c record;
    p record;
begin
    select * into p from step_queues(new, woken, whole);
    new := p.new;
    queues := p.queues;
    select * into late from step_late(queues, d);
    select * into c from cut(new, queues, whole, late.q, late.p, late.f, late.t);
    new.waiting := case when new.again then '{}'
                        else array((select unnest(new.waiting) except select unnest(queues))
                                   union select unnest(c.remaining)) end;
    if cardinality(new.waiting) > 500 then
        new := pass_all(new);
        new.waiting := '{}';
    end if;
    new.more := not whole and t.more or new.waiting <> '{}' or new.place is not null or new.settled is not null
                or new.joining;
    select * into p from pace(t, c.free_before, c.free_jobs, new.more);
    step_cut.cut := c.jobs;
    wait_ms := p.wait;
    wrote := c.jobs > 0 or not new.more or whole and new.place is distinct from t.place;
    new.free := c.first;
    new.jobs := c.free_jobs;
    new.cut_at := clock_timestamp();
    new.rate := p.rate;
    if whole then
        new.weights := greatest(1, c.weights);
        new.filled := c.free_jobs;
        new.want := greatest(new.want, p.want);
    end if;
end $$;
comment on function step_cut(tick, tick, text[], boolean, record) is 'For schedule(): cuts what has come up (woken) '
    'and, if whole, what waits, and notes in the tick what stands free then. d: what read_deltas() said';

create or replace function step_end(snapshot pg_snapshot, new tick) returns void
language plpgsql as $$
begin
    insert into tick (snapshot, want, weights, free, jobs, filled, more, cut_at, rate, hasty, after, after_seq, mark_at,
                      day_at, limited_at, cron_at, waiting, place, again, settled, patrol, slots, joining, known, names,
                      limited, limits, measured, trimmed)
    values (step_end.snapshot, new.want, new.weights, new.free, new.jobs, new.filled, new.more, new.cut_at, new.rate,
            new.hasty, new.after, new.after_seq, new.mark_at, new.day_at, new.limited_at, new.cron_at, new.waiting,
            new.place, new.again, new.settled, new.patrol, new.slots, new.joining, new.known, new.names, new.limited,
            new.limits, new.measured, new.trimmed);
end $$;
comment on function step_end(pg_snapshot, tick) is 'For schedule(): what the next step goes on from';

create or replace function step_again(at timestamptz) returns int
language sql volatile as $$
    select 1 + (1000 * extract(epoch from greatest(least(at, now() + interval '1 min'), now()) - clock_timestamp()))::int
$$;
comment on function step_again(timestamptz) is 'For schedule(): ms until then, from now on and a minute at most: a time '
    'far away is no int';

create or replace function step_days(inout new tick)
language plpgsql set search_path from current as $$
begin
    if new.day_at < clock_timestamp() then
        perform add_days(); -- first: what is lost or expired needs the partitions of today
        select r.place, clock_timestamp() + r.pause into new.trimmed, new.day_at from retain(new.trimmed) r;
    end if;
    if new.cron_at is null or new.cron_at <= clock_timestamp() then
        new.cron_at := cron_due(); -- so early that this step sees what it pushes
    end if;
end $$;
comment on function step_days(tick) is 'For schedule(), what comes with the time: the partitions of the next days, '
    'retention, and what schedules push';

create or replace function step_news(inout new tick, d record, started boolean, out woken text[], out promoted int,
    out due timestamptz, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    t tick := new;
    p record;
begin
    new.after_seq := case when d.lowest <= t.after then 0 else t.after_seq end;
    -- it may be due only later, and t.after ahead of it: of a clock that was set back
    new.after := least(t.after, d.lowest);
    wrote := d.n > 0 or started or t.joining;
    select * into p from register(new, d.new_queues, d.new_priorities, d.new_seqs);
    new := p.new;
    woken := d.woken || d.late_queues || p.known;
    if new.settled is not null then
        select * into p from settle(new.settled, 2000);
        new.settled := p.after;
        woken := woken || p.busy;
        wrote := true;
    end if;
    promoted := 0;
    select * into p from due_soon(new, d.lowest);
    new := p.new;
    due := p.due;
    wrote := wrote or p.passed;
    if due <= now() then
        select * into p from promote(t, d.lowest);
        promoted := p.n;
        new.after := p.upto;
        new.after_seq := p.upto_seq;
        woken := woken || p.queues;
        wrote := true;
    end if;
    select * into p from tend_limits(d.n > 0 or promoted > 0 or started);
    woken := woken || p.queues;
    wrote := wrote or p.unblocked + p.expired > 0;
    wait_ms := p.wait_ms;
end $$;
comment on function step_news(tick, record, boolean) is 'For schedule(): names that are new, jobs that are due, free '
    'keys, jobs that have expired. d: what read_deltas() said; started: this scheduler has just taken over; woken: '
    'queues in which something has come up; due: when the next waiting job is';

create or replace function step_make(t tick, inout new tick, woken text[], d record, started boolean, second boolean,
    out cut int, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    free  int := 0;
    whole boolean; -- all queues that wait are to be cut
    p     record;
begin
    cut := 0; wrote := false;
    if t.more then
        select coalesce(sum(cardinality(seqs)), 0), coalesce(min(lease), new.free) into free, new.free
        from work_queue where lease >= new.free and lock_key is null;
    end if;
    whole := must_cut(t, free) or started;
    if second then
        select * into p from next_waiting(new.patrol, 100, 100, true);
        new.patrol := coalesce(p.upto, '');
        woken := woken || nullif(p.queues, '{}');
    end if;
    if cardinality(woken) > 0 then
        select * into p from cut_front(new, woken);
        new := p.t;
        cut := p.jobs;
    end if;
    if whole or woken is not null then
        select * into p from step_cut(t, new, woken, whole, d);
        new := p.new;
        wrote := p.wrote or cut > 0;
        cut := cut + p.cut;
        wait_ms := p.wait_ms;
    elsif d.n > 0 or t.more and free < t.jobs then
        wait_ms := 5;
    end if;
    select * into p from step_limits(t, new, woken, whole);
    new := p.new;
    cut := cut + p.cut;
    wrote := wrote or p.wrote;
    if p.more then
        wait_ms := least(wait_ms, 5);
    end if;
end $$;
comment on function step_make(tick, tick, text[], record, boolean, boolean) is 'For schedule(): makes the leases. '
    'second: a second is over, so the patrol goes on; wait_ms NULL: nothing was new';

create or replace function schedule(holder text, idle_ms int default null)
returns table (active boolean, cut int, promoted int, stolen int, wait_ms int)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set enable_hashjoin = on -- a claim that calls it has switched them off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    held  text := scheduler_hold(holder);
    t     tick; -- what the last step left
    new   tick;
    d     record;
    p     record;
    news  record;
    write boolean;
begin
    active := held <> 'no';
    cut := 0; promoted := 0; stolen := 0; wait_ms := 1000;
    if not active then
        return next;
        return;
    end if;
    select * into p from step_from(held);
    held := p.held;
    t := p.t;
    new := step_days(t);
    select * into d from read_news(t);
    if d.flood then
        new := step_flood(new);
    end if;
    select * into news from step_news(new, d, held = 'taken');
    promoted := news.promoted;
    select * into p from step_leases(news.new, d.n > 0);
    new := p.new;
    stolen := coalesce(p.stolen, 0);
    write := news.wrote or p.stolen is not null or new.day_at <> t.day_at;
    wait_ms := coalesce(idle_ms, idle_wait());
    select * into p from step_make(t, new, case when stolen > 0 then coalesce(news.woken, '{}') else news.woken end,
                                   d, held = 'taken', new.mark_at is distinct from t.mark_at);
    new := p.new;
    cut := p.cut;
    wait_ms := coalesce(p.wait_ms, wait_ms);
    if write or p.wrote then
        perform step_end(d.snapshot, new);
    end if;
    if cut + stolen > 0 then
        perform wake_workers();
    end if;
    if must_fold('2 s') then -- nobody does it beside
        perform fold_beside('2 s');
    end if;
    wait_ms := greatest(0, least(wait_ms, news.wait_ms, case when news.due > now() then step_again(news.due) end,
                                 step_again(new.limited_at), step_again(new.cron_at),
                                 case when new.settled is not null or new.joining then 0 end));
    return next;
end $$;
comment on function schedule(text, int) is 'One step of the scheduler named holder: pushes what schedules are due for, '
    'promotes what is due, takes back expired leases, cuts new ones. Call it again after wait_ms (idle_ms at most if '
    'nothing is new; NULL: idle_wait()). active = false: another scheduler holds the lease. If nothing is new it '
    'writes nothing. The counters are folded by fold_beside(); if nobody calls it, a step does it';
