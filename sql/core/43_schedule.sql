-- Takes leases back (expired, released, given back), and makes the steps: schedule() is one step with all its parts in
-- order.

-- In PL/pgSQL, for the reason of setting_int().
create or replace function error_key(error text) returns text
language plpgsql immutable parallel safe strict set search_path = pg_catalog, pg_temp as $$
begin
    return left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(error, 1000),
        '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', 'N', 'g'),
        '"[^"]*"|''[^'']*''|`[^`]*`', 'N', 'g'),
        -- E'...': the text means the same with any standard_conforming_strings
        E'0[xX][0-9a-fA-F]+|\\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\M', 'N', 'g'),
        '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
        E'\\s+', ' ', 'g')), 300);
end $$;
comment on function error_key(text) is 'The group of an error: its text with N in place of numbers, uuids, quoted '
    'parts and hex digits; at most 300 characters';

create or replace function may_attach(parent text) returns boolean
language plpgsql set search_path from current set lock_timeout = '50ms' as $$
begin
    execute format('lock table only %I in share update exclusive mode', parent);
    return true;
exception when lock_not_available then
    return false;
end $$;
comment on function may_attach(text) is 'Takes the lock that ATTACH PARTITION needs, unless it would wait longer than '
    '50 ms for somebody, such as an ANALYZE of the whole table';

create or replace function add_days() returns void
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    ahead  int;
    parent text;
    part   text;
    day    date;
begin
    for ahead, parent, day in select n, t, (now() + n * interval '1 day')::date
                              from generate_series(0, 7) n, unnest(array['history', 'attempt']) t order by n loop
        part := parent || to_char(day, '_YYYYMMDD');
        continue when to_regclass(quote_ident(part)) is not null;
        -- No job can end without the partitions of the next two days (have_day), so these are waited for. The others
        -- have time until the next look.
        exit when ahead > 2 and not may_attach(parent);
        execute format('create table %I (like %I including all, constraint %I check (%I >= %L and %4$I < %6$L))',
                       part, parent,
                       part || '_day', case parent when 'history' then 'finished' else 'ended' end,
                       day::timestamptz, (day + 1)::timestamptz);
        perform keep_for_owner(part::regclass); -- before anybody else sees the table
        execute format('alter table %I replica identity full', part); -- LIKE does not copy it
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, part,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I drop constraint %I', part, part || '_day');
    end loop;
end $$;
comment on function add_days() is 'Makes the partitions of history and attempt a week ahead, by LIKE and ATTACH: '
    'CREATE PARTITION OF would wait for the lock of a pg_dump';
select add_days();

create or replace function have_day() returns void
language plpgsql as $$
begin
    -- Also for the next two days: the session's day may end a day later than that of UTC, and answers take the time
    -- from the clock, which may pass midnight before their transaction ends.
    if (select pg_catalog.count(*) from pg_catalog.unnest(array['history', 'attempt']) t
        cross join pg_catalog.generate_series(0, 2) d
        where pg_catalog.to_regclass(t || pg_catalog.to_char(pg_catalog.now() at time zone 'UTC'
                                                             + d * interval '1 day', '_YYYYMMDD')) is not null) < 6 then
        perform from scheduler where term = 0 for update; -- the scheduler's step makes partitions, too
        perform add_days();
    end if;
    -- the value also names the schema, because a database may have several queues
    perform pg_catalog.set_config('queuetop.day', current_date::text || current_schema, false);
end $$;
comment on function have_day() is 'Makes the partitions of today if they are missing, because no scheduler has run for '
    'a week: answers, lost leases and acts of operators write to them. Answers call it once a day and session';

-- Jobs of leases that end. No SET, so that the function is inlined into take_back_jobs().
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
    'those that stay (rest). part NULL: all jobs come back';

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
comment on function back_in_line(text[], int[], bigint[], interval[]) is 'Makes a lease of one job for each job that '
    'came back. Jobs of queues that are paused or have limits stay uncut';

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
    insert into history (
-- part: history_columns
    ) select
-- part: history_values
    from (select g.*, now() as till, 'cancelled'::job_state as ends_as, now_tries as ended_tries,
                 error as ended_error, last_action as ended_action, null::bytea as result, history is null as keep
          from gone g where g.history is distinct from 'n') ended
$$;
comment on function end_asked(uuid[], text[], timestamptz[], "char"[], int[]) is 'For take_back(): jobs whose end an '
    'operator asked for go to history as cancelled instead of coming back';

create or replace function take_back_jobs(leases bigint[], count boolean, fail boolean, why text, part bigint[])
returns table (id uuid, seq bigint, becomes text, queue text, priority int, new_seq bigint, lease_timeout interval,
    node text, started timestamptz, history "char", now_tries int, counted boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query
    with ending as materialized ( -- the caller has locked these rows and the scheduler's row
        select * from ending_leases(take_back_jobs.leases, take_back_jobs.part) where only_ours()
    ), deleted as (
        delete from work_queue d using ending e where d.lease = e.lease and e.rest = '{}'
    ), shortened as (
        update work_queue u
        set seqs = e.rest, started_seqs = case when u.started_seqs is not null then array(
            select unnest(u.started_seqs) intersect select unnest(e.rest)) end
        from ending e where u.lease = e.lease and e.rest <> '{}'
    ), jobs as materialized (
        select q.id, q.queue, q.priority, q.seq as was, q.lease_timeout, e.lock_key, e.started, e.history, z.counted,
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
    ), numbered as materialized ( -- in the old order; an UPDATE joins in any order
        select j.*, nextval('job_seq') as new_seq
        from (select * from jobs where becomes <> 'cancelled' order by was) j
    -- in the order of id: a job's place is found by halving, where a join would compare each with each
    ), by_id as materialized (
        select array_agg(id order by id) as ids, array_agg(new_seq order by id) as seqs,
               array_agg(now_tries order by id) as tries, array_agg(becomes = 'failed' order by id) as failed,
               array_agg(counted or becomes = 'failed' order by id) as blamed
        from numbered
    ), changed as materialized (
        update queue q
        set seq = b.seqs[width_bucket(q.id, b.ids)], tries = b.tries[width_bucket(q.id, b.ids)],
            state = case when b.failed[width_bucket(q.id, b.ids)] then 'failed'::job_state else 'ready' end,
            changed = case when b.failed[width_bucket(q.id, b.ids)] then now() else q.changed end,
            error = case when b.blamed[width_bucket(q.id, b.ids)] then why else q.error end,
            error_key = case when b.blamed[width_bucket(q.id, b.ids)] then error_key(why) else q.error_key end
        from by_id b where q.id = any(array(select id from numbered))
        returning q.id, q.seq
    ), attempts as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error)
        select id, now_tries, was, queue, lock_key, started, now(), 'lost', why from jobs where counted
    )
    select j.id, j.was, j.becomes, j.queue, j.priority::int, c.seqs[p.at], case when p.at > 0 then j.lease_timeout end,
           j.lock_key, j.started, j.history, j.now_tries, j.counted
    from (select array_agg(id order by id) as ids, array_agg(seq order by id) as seqs from changed) c,
         jobs j, lateral (select case when c.ids[width_bucket(j.id, c.ids)] = j.id
                                      then width_bucket(j.id, c.ids) end as at) p
    order by j.was;
end $$;
comment on function take_back_jobs(bigint[], boolean, boolean, text, bigint[]) is 'For take_back(): ends the leases. '
    'Their jobs get new numbers and become ready or failed, or are returned as jobs to cancel';

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
    -- a delta makes cut_limited look at queues with limits
    having bool_or(j.becomes <> 'ready' or j.counted) or j.queue in (
        select c.queue from queue_config c where c.rate is not null or c.max_running is not null)
    union all
    select j.queue, 0, error_key(why), 0, count(*), 0, 0, 0 from jobs j where j.becomes = 'failed' group by 1
$$;
comment on function count_back(text[], int[], text[], boolean[], text) is 'For take_back(): writes the deltas';

create or replace function take_back(leases bigint[], count boolean, fail boolean, why text, part bigint[] default null)
returns table (id uuid, seq bigint, state text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a record; -- arrays of all jobs, in the same order
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
    into a from take_back_jobs(leases, count, fail, why, part) j where only_ours();
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
comment on function take_back(bigint[], boolean, boolean, text, bigint[]) is 'Ends leases, or the named part of them: '
    'their jobs come back with new numbers in new leases, or become failed. count: a try is counted for jobs that had '
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
        -- + 0: by the list, as 10_tables says
        order by w.lease + 0 for update skip locked) z;
    if leases is null then
        return 0;
    end if;
    select count(*) into n from take_back(leases, true, false, 'worker lost: its lease expired');
    return n;
end $$;
comment on function steal() is 'Takes expired leases back. A lease that an answer of its worker has locked is left '
    'alone';

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
comment on function moved() is 'Whether this is another cluster than the one in which the counters were made: its '
    'system identifier differs or, for a copy of that cluster with the same identifier, the counters know transactions '
    'that do not exist here yet';

create or replace function pace(t tick, free int, free_after int, more boolean, took float8, out rate real,
    out want int, out wait int)
language plpgsql immutable set search_path from current as $$
declare
    s float8 := greatest(0.0005, extract(epoch from clock_timestamp() - t.cut_at));
    r float8 := greatest(0, t.jobs - free) / s;
    -- 30 ms of work, so that new jobs do not wait long behind it; from 25,000 jobs a second on 100 ms, because a step
    -- takes longer there; on a slow server what is claimed during a cut and the wait after it
    ahead int;
begin
    rate := case when r > t.rate then least(r, 2 * t.rate + 1000) else t.rate + (r - t.rate) * least(1, s) end;
    ahead := rate * greatest(0.03, 0.1 * least(1, rate / 25000), 5 * took);
    want := case when more and free < t.filled / 8 then least(2 * t.want, greatest(t.want, 100, 2 * ahead))
                 else t.want end;
    want := least(20000, greatest(want, ahead));
    wait := case when not more then 10 when free_after = 0 then 1
                 -- up to three times as long as the cut, so that on a slow server the clients get the processor
                 else least(greatest(20, 3000 * took), 250, greatest(1, 400.0 * free_after / greatest(1, rate))) end;
end $$;
comment on function pace(tick, int, int, boolean, float8) is 'How many jobs to keep free (30 to 100 ms of work, more '
    'if cuts take long, and up to twice as many if they ran out), and when to come back (before half of them are '
    'claimed). took: seconds that the cut took, 0.2 at most';

create or replace function must_cut(t tick, free int) returns boolean
language sql stable as $$
    select t.more and (free <= t.filled / 2 or
        free < t.jobs and t.cut_at < clock_timestamp() - case when t.hasty then interval '10 ms'
                                                              else interval '50 ms' end)
$$;
comment on function must_cut(tick, int) is 'Whether all queues must be cut: half of the free jobs have been claimed, '
    'or some of them were claimed some time ago';

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
comment on function set_back(tick) is 'After the clock was set back: everything that the last step put off to a time '
    'is due now. Leases keep the time until which they were granted';

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
        -- a look at all queues that had begun goes on, so that it comes to its end
        t.settled := coalesce(t.settled, '');
        t.more := true;
    end if;
    if t.at > clock_timestamp() + interval '1 s' then
        t := set_back(t);
        held := 'taken';
    end if;
end $$;
comment on function step_from(text) is 'For schedule(): the tick that the last step left. After a take-over (held), or '
    'after the clock was set back, some of its hints are not trusted';

create or replace function step_leases(inout new tick, news boolean, out stolen int)
language plpgsql as $$
declare
    allowed interval := setting_interval('node_dead');
begin
    if new.mark_at >= clock_timestamp() or not (news or new.want > 20 or exists (select from live)) then
        return;
    end if;
    stolen := steal();
    perform mark_leases();
    new := take_chunks(new);
    new.names := null;
    -- so that a lease that somebody freed by hand is found
    new.free := least(new.free, (select min(lease) from live where lock_key is null));
    -- an idle scheduler comes once a second, almost to the millisecond
    new.mark_at := clock_timestamp() + interval '900 ms';
    -- 20000 at most, as in pace(), however many slots table node has
    new.want := least(20000, greatest(new.want * 4 / 5,
        coalesce((select 2 * sum(greatest(1, least(1000, n.slots))) from node n
                  where not is_dead(n.heartbeat, allowed)), 20)));
    new.hasty := exists (select from node n where n.queues is not null and not is_dead(n.heartbeat, allowed));
    new.slots := (select max(n.slots) from node n where not is_dead(n.heartbeat, allowed));
end $$;
comment on function step_leases(tick, boolean) is 'For schedule(), once a second: takes expired leases back, moves the '
    'mark, and measures how many jobs the living nodes can take. stolen: NULL = it was not time yet';

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
    if put_off.q is not null then -- a later cut finds them
        perform move_cursor(put_off.q, put_off.p, put_off.f, null);
    end if;
end $$;
comment on function step_late(text[], record) is 'For schedule(): the late jobs of the queues that are cut now. The '
    'cursors of the other queues are lowered, so that their late jobs are found later. d: the result of read_deltas()';

create or replace function step_cut(t tick, inout new tick, woken text[], whole boolean, d record,
    out cut int, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    began timestamptz := clock_timestamp();
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
        new := pass_all(new, new.waiting);
        new.waiting := '{}';
    end if;
    new.more := not whole and t.more or new.waiting <> '{}' or new.place is not null or new.settled is not null
                or new.joining;
    -- not after a take-over: the first cut of a session is slow because the session is new
    select * into p from pace(t, c.free_before, c.free_jobs, new.more, case when t.settled is null
        then least(0.2, extract(epoch from clock_timestamp() - began)) else 0 end);
    step_cut.cut := c.jobs;
    wait_ms := p.wait;
    wrote := c.jobs > 0 or not new.more or whole and new.place is distinct from t.place;
    new.free := c.first;
    new.jobs := c.free_jobs;
    if whole or not t.more then
        new.cut_at := clock_timestamp();
        new.rate := p.rate;
    end if;
    if whole then
        new.weights := greatest(1, c.weights);
        new.filled := c.free_jobs;
        new.want := greatest(new.want, p.want);
    end if;
end $$;
comment on function step_cut(tick, tick, text[], boolean, record) is 'For schedule(): cuts the queues in which '
    'something has changed (woken) and, if whole, those that wait; writes to the tick how many jobs are free then. d: '
    'the result of read_deltas()';

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
comment on function step_end(pg_snapshot, tick) is 'For schedule(): writes the tick with which the next step begins';

create or replace function step_again(at timestamptz) returns int
language sql volatile as $$
    select 1 + (1000 * extract(epoch from greatest(least(at, now() + interval '1 min'), now())
                                          - clock_timestamp()))::int
$$;
comment on function step_again(timestamptz) is 'For schedule(): milliseconds from now until that time, at least 1, at '
    'most those of a minute, so that the result fits an int';

create or replace function step_days(inout new tick)
language plpgsql set search_path from current as $$
begin
    if new.day_at < clock_timestamp() then
        perform add_days(); -- first, because lost and expired jobs need the partitions of today
        -- After a day without a step, the clock may be wrong: what it says is too old is deleted an hour later. If the
        -- clock is set back meanwhile, set_back() makes the next look due. retain() uses now(). A look that was put off
        -- (all others come after a minute) is not put off again: with an hour of work a week, none would ever come.
        -- A scheduler that sleeps comes once a day.
        if new.at < greatest(now(), clock_timestamp()) - interval '25 h'
           and new.day_at < new.at + interval '2 min' then
            raise log 'queuetop: the last step in schema % was at %, so finished jobs are not deleted before an hour '
                'has passed', current_schema(), new.at;
            new.day_at := clock_timestamp() + interval '1 h';
        else
            select r.place, clock_timestamp() + r.pause into new.trimmed, new.day_at from retain(new.trimmed) r;
        end if;
    end if;
    if new.cron_at is null or new.cron_at <= clock_timestamp() then
        new.cron_at := cron_due(); -- before the deltas are read, so that this step sees what schedules push
    end if;
end $$;
comment on function step_days(tick) is 'For schedule(): what is due by the clock: partitions of the next days, '
    'retention, and jobs of schedules';

create or replace function step_news(inout new tick, d record, started boolean, out woken text[], out promoted int,
    out due timestamptz, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    t tick := new;
    p record;
begin
    new.after_seq := case when d.lowest <= t.after then 0 else t.after_seq end;
    -- After the clock was set back, t.after may be ahead of the time at which the next job is due.
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
comment on function step_news(tick, record, boolean) is 'For schedule(): makes new names known, promotes due jobs, '
    'unblocks and expires jobs. d: the result of read_deltas(); started: this scheduler has just taken over; woken: '
    'queues in which something has changed; due: when the next waiting job is due';

create or replace function step_make(t tick, inout new tick, woken text[], d record, started boolean, second boolean,
    out cut int, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    free  int := 0;
    whole boolean; -- whether all queues that wait are to be cut
    p     record;
begin
    cut := 0; wrote := false;
    if t.more then
        select coalesce(sum(cardinality(seqs)), 0), coalesce(min(lease), new.free) into free, new.free
        from work_queue where lease >= new.free and lock_key is null;
    end if;
    whole := must_cut(t, free) or started;
    if second then
        -- jobs that were given back may hide in `free` what was claimed of another queue
        whole := whole or t.more and exists (select unnest(t.waiting) except
                                             select w.queue from work_queue w
                                             where w.lease >= new.free and w.lock_key is null);
        select * into p from next_waiting(new.patrol, 100, 100, true);
        new.patrol := coalesce(p.upto, '');
        woken := woken || nullif(p.queues, '{}');
    end if;
    if cardinality(woken) > 0 and t.settled is null then -- after a take-over every queue is woken
        select * into p from cut_front(new, woken);
        new := p.t;
        cut := p.jobs;
    end if;
    if whole or woken is not null then
        select * into p from step_cut(t, new, woken, whole, d);
        new := p.new;
        if t.more and not whole then -- the next whole cut still knows what was claimed since the last one
            new.jobs := new.jobs + greatest(0, t.jobs - free);
        end if;
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
    'started: all queues that wait are cut; second: a second has passed, so the patrol goes on, and all that wait are '
    'cut if one of them has no lease; wait_ms NULL: nothing was new';

create or replace function schedule(holder text, idle_ms int default null)
returns table (active boolean, cut int, promoted int, stolen int, wait_ms int)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set enable_hashjoin = on set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    held  text := scheduler_hold(holder);
    began timestamptz := clock_timestamp();
    t     tick; -- the tick of the last step
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
    select * into p from step_make(t, new, news.woken, d, held = 'taken' or stolen > 0,
                                   new.mark_at is distinct from t.mark_at);
    new := p.new;
    cut := p.cut;
    wait_ms := coalesce(p.wait_ms, wait_ms);
    if write or p.wrote then
        perform step_end(d.snapshot, new);
    end if;
    if news.wrote or p.wrote or stolen > 0 then -- a step that only moves the mark makes no work for anybody
        perform tell_sleepers();
    end if;
    perform wake_workers() where cut + stolen > 0;
    if must_fold('2 s') then -- nobody folds beside the steps
        perform fold_beside('2 s');
    end if;
    perform scheduler_stay(holder) where clock_timestamp() > began + interval '1 s';
    wait_ms := greatest(0, least(wait_ms, news.wait_ms, case when news.due > now() then step_again(news.due) end,
                                 step_again(new.limited_at), step_again(new.cron_at),
                                 case when new.settled is not null or new.joining then 0 end));
    return next;
end $$;
comment on function schedule(text, int) is 'One step of the scheduler named holder: pushes jobs of schedules that are '
    'due, promotes due jobs, takes expired leases back, cuts new leases. Call it again after wait_ms (after idle_ms at '
    'most if nothing is new; NULL: idle_wait()). active = false: another scheduler is active, or a transaction holds '
    'the scheduler''s row (scheduler_holder() says which). If nothing is new, the step writes nothing. fold_beside() '
    'folds the counters; if nobody calls it, a step does it';
