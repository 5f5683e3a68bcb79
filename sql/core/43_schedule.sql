-- Taking leases back (expired, released, given back) and schedule(), the step that does everything in its turn.

create or replace function error_key(error text) returns text
language sql immutable parallel safe strict set search_path from current as $$
    select left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left($1, 1000),
        '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', 'N', 'g'),
        '"[^"]*"|''[^'']*''|`[^`]*`', 'N', 'g'),
        '0[xX][0-9a-fA-F]+|\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\M', 'N', 'g'),
        '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
        '\s+', ' ', 'g')), 300)
$$;
comment on function error_key(text) is 'The group of an error: numbers, uuids, quoted parts and hex become N; at most 300 characters';

create or replace function add_days() returns void
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    parent text;
    part   text;
    day    date;
begin
    for parent, day in select t, (now() + i * interval '1 day')::date from unnest(array['history', 'attempt']) t, generate_series(-1, 7) i loop
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

create or replace function take_back(leases bigint[], count boolean, fail boolean, why text, part bigint[] default null)
returns table (id uuid, seq bigint, state text)
language plpgsql set search_path from current set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    ids      uuid[];
    old_seqs bigint[];
    states   text[];
    queues   text[];
    levels   int[];
    new_seqs bigint[];
begin
    with w as materialized ( -- the caller has locked these rows, and the scheduler's
        select lease, queue, priority, lock_key, started, started_seqs, max_tries, history,
               case when part is null then seqs else array(select unnest(seqs) intersect select unnest(part)) end as seqs,
               case when part is null then '{}' else array(select unnest(seqs) except select unnest(part) order by 1) end as rest
        from work_queue where lease = any(leases)
    ), wd as (
        delete from work_queue d using w where d.lease = w.lease and w.rest = '{}'
    ), wu as (
        update work_queue u set seqs = w.rest,
               started_seqs = array(select unnest(u.started_seqs) intersect select unnest(w.rest))
        from w where u.lease = w.lease and w.rest <> '{}'
    ), j as materialized (
        select q.id, q.queue, q.priority, q.tries, q.seq as was, w.lock_key, w.started, w.history,
               q.tries + case when z.counted then 1 else 0 end as now_tries,
               z.counted,
               case when q.cancel_asked is not null and w.lock_key is not null then 'cancelled'
                    when take_back.fail or z.counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries, 5) then 'failed'
                    else 'ready' end as becomes
        from w join queue q on q.queue = w.queue and q.priority = w.priority and q.state = 'ready' and q.seq = any(w.seqs)
        cross join lateral (select take_back.count and w.lock_key is not null
                                   and q.seq = any(coalesce(w.started_seqs, '{}')) as counted) z
    ), u as (
        update queue q set seq = nextval('job_seq'), tries = j.now_tries, changed = case when j.becomes = 'ready' then q.changed else now() end,
               state = j.becomes::job_state,
               error = case when j.counted or j.becomes = 'failed' then why else q.error end,
               error_key = case when j.counted or j.becomes = 'failed' then error_key(why) else q.error_key end
        from (select * from j where becomes <> 'cancelled' order by was) j where q.id = j.id
        returning q.id, q.queue, q.priority, q.seq, q.state, q.error_key, j.counted, j.was, j.lock_key, j.now_tries
    ), x as (
        delete from queue q using j where q.id = j.id and j.becomes = 'cancelled'
        returning q.*, j.lock_key, j.started as began, j.history, j.counted, j.now_tries
    ), h as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node, payload, body,
                             payload_type, error, unique_key, origin_id, last_action, kept)
        select id, created, began, now(), 'cancelled', priority, now_tries, max_tries, queue, kind, lock_key,
               case when history is null then payload end, case when history is null then body end, payload_type, error,
               unique_key, origin_id, last_action, history is null
        from x where history is distinct from 'n'
    ), a as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error)
        select id, now_tries, was, queue, lock_key, started, now(), 'lost', why from j where counted
    ), d as (
        insert into delta (queue, priority, error_key, ready, failed, fails, lost, cancelled)
        select queue, priority, null, -count(*) filter (where becomes <> 'ready'), count(*) filter (where becomes = 'failed'),
               count(*) filter (where becomes = 'failed'), count(*) filter (where counted), count(*) filter (where becomes = 'cancelled')
        from j group by 1, 2 having bool_or(becomes <> 'ready' or counted)
        union all
        select queue, 0, error_key, 0, count(*), 0, 0, 0 from u where state = 'failed' group by queue, error_key
    ), n as ( -- back in line as leases of one job each; where the queue is paused they stay uncut
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), queue, priority, array[seq], lease_time, max_tries, history, run_timeout
        from (select u.queue, u.priority, u.seq, coalesce(q.lease_timeout, nullif(c.lease_timeout, interval '60 s')) as lease_time,
                     nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history, c.run_timeout
              from u join queue q using (id) left join queue_config c on c.queue = u.queue
              where u.state = 'ready' and c.paused_at is null order by u.seq) z
        returning queue, priority, seqs[1] as seq
    ), r as (
        select id, was as seq, state::text as state, queue, priority, seq as new_seq from u
        union all
        select id, seq, 'cancelled', queue, priority, null from x)
    select array_agg(r.id), array_agg(r.seq), array_agg(r.state),
           array_agg(r.queue) filter (where r.state = 'ready'), array_agg(r.priority::int) filter (where r.state = 'ready'),
           array_agg(r.new_seq) filter (where r.state = 'ready')
    from r into ids, old_seqs, states, queues, levels, new_seqs;
    if queues is not null then
        perform move_cursor(queues, levels, null, new_seqs);
    end if;
    return query select * from unnest(ids, old_seqs, states);
end $$;
comment on function take_back(bigint[], boolean, boolean, text, bigint[]) is 'Ends leases (or the part of them): their jobs come back '
    'with new numbers in new leases, or as failed; count = it counts as a try for those that had started. Under the scheduler lock';

create or replace function steal() returns int
language plpgsql set search_path from current set enable_seqscan = off as $$
declare
    leases bigint[];
    n      int;
begin
    select array_agg(lease) into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key is not null and l.lock_timeout < now() limit 1000))
          and w.lock_key is not null and w.lock_timeout < now()
        order by w.lease for update skip locked) z;
    if leases is null then
        return 0;
    end if;
    select count(*) into n from take_back(leases, true, false, 'worker lost: its lease expired');
    return n;
end $$;
comment on function steal() is 'Takes back expired leases; one that its worker is just answering for is left alone';

create or replace function next_due(after timestamptz) returns int
language sql stable set search_path from current as $$
    select greatest(0, ceil(1000 * extract(epoch from min(run_after) - clock_timestamp())))::int
    from (select run_after from queue where state in ('scheduled', 'retry') and run_after >= $1 order by run_after limit 1) z
$$;
comment on function next_due(timestamptz) is 'In how many milliseconds the next waiting job is due; NULL = none';

create or replace function settle() returns void
language plpgsql set search_path from current as $$
begin
    if (select system_identifier from meta) <> (select system_identifier from pg_control_system()) then
        perform recount();
        return;
    end if;
    perform move_cursor(array_agg(c.queue), array_agg(i - 1), array_agg(j.seq - 1), null)
    from queue_config q
    cross join lateral (select * from cursor c where c.queue = q.queue order by n desc limit 1) c
    cross join generate_series(1, 10) i
    cross join lateral (select seq from queue j where j.queue = c.queue and j.priority = (i - 1)::smallint and j.state = 'ready'
                        order by seq limit 1) j
    where j.seq <= c.seq[i]
    having count(*) > 0;
end $$;
comment on function settle() is 'What a scheduler does when it takes over: looks at every queue from its first job on; in another cluster, counts anew';

create or replace function schedule(holder text)
returns table (active boolean, cut int, promoted int, stolen int, wait_ms int)
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    held  text := scheduler_hold($1);
    t     tick;
    new   tick;
    d     record;
    c     record;
    p     record;
    slots int;
begin
    active := held <> 'no';
    cut := 0; promoted := 0; stolen := 0; wait_ms := 1000;
    if not active then
        return next;
        return;
    end if;
    select * into t from tick order by tick desc limit 1;
    if held = 'taken' then
        perform settle();
    end if;
    select * into d from read_deltas(t);
    if d.new_queues is not null then
        perform register(d.new_queues, d.new_priorities, d.new_seqs);
    end if;
    new := t;
    if least(t.after, d.lowest) <= now() and exists (select from queue q where q.state in ('scheduled', 'retry')
            and q.run_after >= least(t.after, d.lowest) and q.run_after <= now()) then
        select * into p from promote(t, d.lowest);
        promoted := p.n;
        new.after := p.upto;
    end if;
    if t.mark_at < clock_timestamp() and (t.want > 20 or exists (select from live)) then
        stolen := steal();
        perform mark_leases();
        new.mark_at := clock_timestamp() + interval '1 s';
        select coalesce(sum(n.slots), 0) into slots from node n where n.heartbeat > now() - setting_interval('node_dead');
        new.want := greatest(20, 2 * slots, t.want * 9 / 10);
    end if;
    if t.day_at < clock_timestamp() then
        perform add_days();
        new.day_at := clock_timestamp() + interval '1 h';
    end if;
    if d.n > 0 or promoted > 0 or stolen > 0 or
       t.more and t.jobs is distinct from (select coalesce(sum(cardinality(seqs)), 0) from live where lock_key is null) then
        select * into c from cut(new, d.late_queues, d.late_priorities, d.late_from, d.late_to);
        cut := c.jobs;
        if c.more and c.free_before < t.jobs / 4 then
            new.want := least(20000, new.want * 2);
        end if;
        new.weights := greatest(1, c.weights);
        new.free := c.first;
        new.jobs := c.free_jobs;
        new.more := c.more;
        wait_ms := case when c.more and c.free_before < t.jobs / 4 then 0 when c.more then 5 else 10 end;
    elsif t.more then
        wait_ms := 10;
    end if;
    if cut > 0 or d.n > 0 or (new.mark_at, new.day_at, new.after, new.want) is distinct from (t.mark_at, t.day_at, t.after, t.want) then
        insert into tick (snapshot, want, weights, free, jobs, more, after, mark_at, day_at)
        values (d.snapshot, new.want, new.weights, new.free, new.jobs, new.more, new.after, new.mark_at, new.day_at);
    end if;
    perform fold_now() where (select f.at from fold f order by f.fold desc limit 1) < clock_timestamp() - interval '500 ms';
    wait_ms := least(wait_ms, 50, next_due(new.after));
    return next;
end $$;
