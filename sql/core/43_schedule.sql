-- Taking leases back (expired, released, given back), and schedule(), the step that does everything in order.

create or replace function error_key(error text) returns text
language sql immutable parallel safe strict set search_path from current as $$
    select left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(error, 1000),
        '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', 'N', 'g'),
        '"[^"]*"|''[^'']*''|`[^`]*`', 'N', 'g'),
        -- E: whatever standard_conforming_strings says
        E'0[xX][0-9a-fA-F]+|\\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\M', 'N', 'g'),
        '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
        E'\\s+', ' ', 'g')), 300)
$$;
comment on function error_key(text) is 'The group of an error: numbers, uuids, quoted parts and hex become N; at most '
    '300 characters';

create or replace function add_days() returns void
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    parent text;
    part   text;
    day    date;
begin
    for parent, day in select t, (now() + i * interval '1 day')::date
                       from unnest(array['history', 'attempt']) t, generate_series(0, 7) i loop
        part := parent || to_char(day, '_YYYYMMDD');
        continue when to_regclass(quote_ident(part)) is not null;
        execute format('create table %I (like %I including all, constraint %I check (%I >= %L and %4$I < %6$L))',
                       part, parent,
                       part || '_day', case parent when 'history' then 'finished' else 'ended' end,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, part,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I drop constraint %I', part, part || '_day');
    end loop;
end $$;
comment on function add_days() is 'Makes the partitions of history and attempt a week ahead, by LIKE and ATTACH: '
    'CREATE PARTITION OF would wait behind a pg_dump';
select add_days();

create or replace function have_day() returns void
language plpgsql as $$
begin
    -- one day more: answers take the clock's time
    if (select count(*) from unnest(array['history', 'attempt']) t cross join generate_series(0, 1) d
        where to_regclass(quote_ident(t || to_char(now() at time zone 'UTC' + d * interval '1 day',
                                                   '_YYYYMMDD'))) is not null) < 4 then
        perform from scheduler where term = 0 for update; -- its step makes them, too
        perform add_days();
    end if;
    -- of this schema: a database may have several
    perform set_config('queuetop.day', floor(date_part('epoch', now()) / 86400)::int::text || current_schema(), false);
end $$;
comment on function have_day() is 'Makes the partitions of today where no scheduler has run for a week: an answer, a '
    'lost lease and an operator''s act must find their place. Answers call it once a day and session';

-- Jobs of leases that end. Without SET, so that both are inlined: the text of take_back() and nothing else.
create or replace function ending_leases(leases bigint[], part bigint[])
returns table (lease bigint, queue text, priority smallint, lock_key text, started timestamptz, all_started boolean,
    started_seqs bigint[], max_tries smallint, history "char", scattered boolean, seqs bigint[], rest bigint[])
language sql stable as $$
    select w.lease, w.queue, w.priority, w.lock_key, w.started, w.all_started, w.started_seqs, w.max_tries, w.history,
           w.scattered,
           case when ending_leases.part is null then w.seqs
                else array(select unnest(w.seqs) intersect select unnest(ending_leases.part) order by 1) end,
           case when ending_leases.part is null then '{}'
                else array(select unnest(w.seqs) except select unnest(ending_leases.part) order by 1) end
    from work_queue w where w.lease = any(ending_leases.leases)
$$;
comment on function ending_leases(bigint[], bigint[]) is 'Leases that end, with the jobs that come back (seqs) and '
    'those that stay (rest): all, or only the part';

create or replace function back_in_line(queues text[], priorities int[], seqs bigint[], timeouts interval[])
returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    made record;
begin
    with leases as (
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), z.queue, z.priority, array[z.seq], z.lease_time, z.max_tries, z.history,
               z.run_timeout
        from (select j.queue, j.priority::smallint as priority, j.seq,
                     coalesce(j.timeout, nullif(c.lease_timeout, interval '60 s')) as lease_time,
                     nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history,
                     c.run_timeout
              from unnest(back_in_line.queues, back_in_line.priorities, back_in_line.seqs, back_in_line.timeouts)
                   j (queue, priority, seq, timeout)
              left join queue_config c on c.queue = j.queue
              where c.paused_at is null and c.rate is null and c.max_running is null
              order by j.seq) z
        returning queue, priority, seqs[1] as seq
    )
    select array_agg(l.queue) as queues, array_agg(l.priority::int) as priorities, array_agg(l.seq) as seqs into made
    from leases l;
    if made.queues is not null then
        perform move_cursor(made.queues, made.priorities, null, made.seqs);
        perform wake_workers();
    end if;
end $$;
comment on function back_in_line(text[], int[], bigint[], interval[]) is 'Leases of one job each for jobs that came '
    'back; where the queue is paused or has limits they stay uncut';

create or replace function end_asked(ids uuid[], nodes text[], began timestamptz[], histories "char"[], tries int[])
returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    with gone as (
        delete from queue q
        using unnest(end_asked.ids, end_asked.nodes, end_asked.began, end_asked.histories, end_asked.tries)
              j (id, node, began, history, now_tries)
        where q.id = any(end_asked.ids) and q.id = j.id
        returning q.*, j.node, j.began, j.history, j.now_tries
    )
    insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node, payload,
                         body, payload_type, error, unique_key, concurrency_key, origin_id, last_action, kept,
                         lease_timeout, run_timeout)
    select g.id, g.created, g.began, now(), 'cancelled', g.priority, g.now_tries, g.max_tries, g.queue, g.kind, g.node,
           case when g.history is null then g.payload end, case when g.history is null then g.body end,
           g.payload_type, g.error, g.unique_key, g.concurrency_key, g.origin_id, g.last_action, g.history is null,
           g.lease_timeout, g.run_timeout
    from gone g where g.history is distinct from 'n'
$$;
comment on function end_asked(uuid[], text[], timestamptz[], "char"[], int[]) is 'For take_back(): jobs whose end an '
    'operator asked for go to history instead of coming back';

create or replace function take_back_jobs(leases bigint[], count boolean, fail boolean, why text, part bigint[])
returns table (id uuid, seq bigint, becomes text, queue text, priority int, new_seq bigint, lease_timeout interval,
    node text, started timestamptz, history "char", now_tries int, counted boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query
    with ending as materialized ( -- the caller has locked these rows, and the scheduler's
        select * from ending_leases(take_back_jobs.leases, take_back_jobs.part)
    ), deleted as (
        delete from work_queue d using ending e where d.lease = e.lease and e.rest = '{}'
    ), shortened as (
        update work_queue u
        set seqs = e.rest, started_seqs = case when u.started_seqs is not null then array(
            select unnest(u.started_seqs) intersect select unnest(e.rest)) end
        from ending e where u.lease = e.lease and e.rest <> '{}'
    ), jobs as materialized (
        select q.id, q.queue, q.priority, q.seq as was, e.lock_key, e.started, e.history, z.counted,
               q.tries + case when z.counted then 1 else 0 end as now_tries,
               case when q.cancel_asked is not null and e.lock_key is not null then 'cancelled'
                    when take_back_jobs.fail then 'failed'
                    when z.counted and q.tries + 1 >= coalesce(q.max_tries, e.max_tries, 5) then 'failed'
                    else 'ready' end as becomes
        from ending e cross join lateral ranges(e.seqs, e.scattered) r
        cross join lateral (
            select q.* from queue q where q.queue = e.queue and q.priority = e.priority and q.state = 'ready'
            and q.seq between r.low and r.high and e.seqs[width_bucket(q.seq, e.seqs)] = q.seq offset 0) q
        cross join lateral (select take_back_jobs.count and e.lock_key is not null
                                   and (e.all_started or q.seq = any(e.started_seqs)) is true as counted) z
    ), numbered as materialized ( -- the old order; an update joins in any order
        select j.*, nextval('job_seq') as new_seq
        from (select * from jobs where becomes <> 'cancelled' order by was) j
    ), changed as (
        update queue q
        set seq = j.new_seq, tries = j.now_tries, state = j.becomes::job_state,
            changed = case when j.becomes = 'ready' then q.changed else now() end,
            error = case when j.counted or j.becomes = 'failed' then why else q.error end,
            error_key = case when j.counted or j.becomes = 'failed' then error_key(why) else q.error_key end
        from numbered j where q.id = any(array(select id from jobs)) and q.id = j.id
        returning q.id, q.seq, q.lease_timeout
    ), attempts as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error)
        select id, now_tries, was, queue, lock_key, started, now(), 'lost', why from jobs where counted
    )
    select j.id, j.was, j.becomes, j.queue, j.priority::int, c.seq, c.lease_timeout, j.lock_key, j.started, j.history,
           j.now_tries, j.counted
    from jobs j left join changed c on c.id = j.id order by j.was;
end $$;
comment on function take_back_jobs(bigint[], boolean, boolean, text, bigint[]) is 'For take_back(): ends the leases, '
    'and their jobs get new numbers, become ready or failed, or are to be cancelled';

create or replace function count_back(queues text[], priorities int[], becomes text[], counted boolean[], why text)
returns void
language sql set search_path from current as $$
    with jobs as materialized (
        select * from unnest(queues, priorities, becomes, counted) j (queue, priority, becomes, counted)
    )
    insert into delta (queue, priority, error_key, ready, failed, fails, lost, cancelled)
    select j.queue, j.priority, null, -count(*) filter (where j.becomes <> 'ready'),
           count(*) filter (where j.becomes = 'failed'), count(*) filter (where j.becomes = 'failed'),
           count(*) filter (where j.counted), count(*) filter (where j.becomes = 'cancelled')
    from jobs j group by 1, 2
    having bool_or(j.becomes <> 'ready' or j.counted) or j.queue in ( -- cut_limited looks at them
        select c.queue from queue_config c where c.rate is not null or c.max_running is not null)
    union all
    select j.queue, 0, error_key(why), 0, count(*), 0, 0, 0 from jobs j where j.becomes = 'failed' group by 1
$$;
comment on function count_back(text[], int[], text[], boolean[], text) is 'For take_back(): the deltas';

create or replace function take_back(leases bigint[], count boolean, fail boolean, why text, part bigint[] default null)
returns table (id uuid, seq bigint, state text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a record; -- of all jobs: arrays in the same order
begin
    perform have_day();
    select array_agg(j.id) as ids, array_agg(j.seq) as seqs, array_agg(j.becomes) as becomes,
           array_agg(j.queue) as queues, array_agg(j.priority) as priorities, array_agg(j.counted) as counted,
           array_agg(j.id) filter (where j.becomes = 'cancelled') as asked,
           array_agg(j.node) filter (where j.becomes = 'cancelled') as nodes,
           array_agg(j.started) filter (where j.becomes = 'cancelled') as began,
           array_agg(j.history) filter (where j.becomes = 'cancelled') as histories,
           array_agg(j.now_tries) filter (where j.becomes = 'cancelled') as tries,
           array_agg(j.queue) filter (where j.becomes = 'ready') as back_queues,
           array_agg(j.priority) filter (where j.becomes = 'ready') as back_priorities,
           array_agg(j.new_seq) filter (where j.becomes = 'ready') as back_seqs,
           array_agg(j.lease_timeout) filter (where j.becomes = 'ready') as back_timeouts
    into a from take_back_jobs(leases, count, fail, why, part) j;
    if a.asked is not null then
        perform end_asked(a.asked, a.nodes, a.began, a.histories, a.tries);
    end if;
    if a.ids is not null then
        perform count_back(a.queues, a.priorities, a.becomes, a.counted, why);
    end if;
    if a.back_seqs is not null then
        perform back_in_line(a.back_queues, a.back_priorities, a.back_seqs, a.back_timeouts);
    end if;
    return query select * from unnest(a.ids, a.seqs, a.becomes);
end $$;
comment on function take_back(bigint[], boolean, boolean, text, bigint[]) is 'Ends leases (or the part of them): '
    'their jobs come back with new numbers in new leases, or as failed; count = it counts as a try for those that had '
    'started. Under the scheduler lock';

create or replace function steal() returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    leases bigint[];
    n      int;
begin
    select array_agg(lease) into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l
                                  where l.lock_key is not null and l.lock_timeout < now() limit 1000))
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
        or exists (select from delta where xid >= pg_snapshot_xmax(pg_current_snapshot())
                                           and xid is distinct from pg_current_xact_id_if_assigned())
        or (select pg_snapshot_xmax(f.snapshot) from fold f order by f.fold desc limit 1)
           > pg_snapshot_xmax(pg_current_snapshot())
        or (select pg_snapshot_xmax(t.snapshot) from tick t order by t.tick desc limit 1)
           > pg_snapshot_xmax(pg_current_snapshot())
$$;
comment on function moved() is 'Whether this is another cluster than the one that the counters were made in: it says '
    'so, or (a copy of that cluster says the same) they know transactions that do not exist here yet';

create or replace function pace(t tick, free int, free_after int, more boolean, out rate real, out want int,
    out wait int)
language plpgsql immutable set search_path from current as $$
declare
    s float8 := greatest(0.0005, extract(epoch from clock_timestamp() - t.cut_at));
    r float8 := greatest(0, t.jobs - free) / s;
    -- 30 ms of work, as what is new waits behind it; 100 ms of 25,000 jobs a second, where a step takes its time
    ahead int;
begin
    rate := case when r > t.rate then least(r, 2 * t.rate + 1000) else t.rate + (r - t.rate) * least(1, s) end;
    ahead := 0.1 * rate * greatest(0.3, least(1, rate / 25000));
    want := case when more and free < t.filled / 8 then least(2 * t.want, greatest(t.want, 100, 2 * ahead))
                 else t.want end;
    want := least(20000, greatest(want, ahead));
    wait := case when not more then 10 when free_after = 0 then 1
                 else least(20, greatest(1, (400.0 * free_after / greatest(1, rate))::int)) end;
end $$;
comment on function pace(tick, int, int, boolean) is 'How much to keep ready (30 to 100 ms of work, up to twice as '
    'much where it ran out) and when to come back (before half of it is gone)';

create or replace function must_cut(t tick, free int) returns boolean
language sql stable as $$
    select t.more and (free <= t.filled / 2 or
        free < t.jobs and t.cut_at < clock_timestamp() - case when t.hasty then interval '10 ms'
                                                              else interval '50 ms' end)
$$;
comment on function must_cut(tick, int) is 'Whether all queues must be looked at: half of what was ready has been '
    'claimed, or some of it a while ago';

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
comment on function set_back(tick) is 'After a clock was set back: what the last step put off to a time is done now. '
    'Leases hold until the time that they were given';

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
comment on function step_from(text) is 'For schedule(): what the last step left. Who has taken over (held), or finds '
    'that the clock was set back, trusts less of it';

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
    -- one that somebody freed by hand is found again
    new.free := least(new.free, (select min(lease) from live where lock_key is null));
    new.mark_at := clock_timestamp() + interval '900 ms'; -- an idle scheduler comes once a second, to the millisecond
    living := now() - setting_interval('node_dead');
    new.want := least(20000, greatest(new.want * 4 / 5, -- however many slots the table holds: 20000 as in pace()
        coalesce((select 2 * sum(greatest(1, least(1000, n.slots))) from node n where n.heartbeat > living), 20)));
    new.hasty := exists (select from node n where n.queues is not null and n.heartbeat > living);
    new.slots := (select max(n.slots) from node n where n.heartbeat > living);
end $$;
comment on function step_leases(tick, boolean) is 'For schedule(), once a second: expired leases, the mark, how much '
    'the living nodes can take. stolen: NULL = it was not time';

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
    select 1 + (1000 * extract(epoch from greatest(least(at, now() + interval '1 min'), now())
                                          - clock_timestamp()))::int
$$;
comment on function step_again(timestamptz) is 'For schedule(): ms until then, from now on and a minute at most: a '
    'time far away is no int';

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
