-- Cutting: reading the deltas, and making leases of the jobs that wait. 43_schedule calls it.
-- A late job is one that became visible after its queue had been cut beyond its seq: its transaction took a number
-- before others and committed after them. Its delta names the range of seqs, so only this range is looked at again.
-- If weights differ, measured chunks are made smaller: the same number of jobs for each unit of weight, or half of
-- the queue's share if that is more. With whole chunks all queues would get the same. The rule is off if some node
-- works only some queues: jobs that other nodes leave must not make its leases small.

create or replace function read_deltas(t tick, out snapshot pg_snapshot, out n bigint, out woken text[], out lowest timestamptz,
    out new_queues text[], out new_priorities int[], out new_seqs bigint[],
    out late_queues text[], out late_priorities int[], out late_from bigint[], out late_to bigint[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with d as materialized (
        select queue, priority, min_seq, max_seq, min_after, ready from delta
        where xid >= pg_snapshot_xmax(t.snapshot) and error_key is null
        union all
        select queue, priority, min_seq, max_seq, min_after, ready from delta
        where xid = any(array(select pg_snapshot_xip(t.snapshot)) || t.xid) and xid < pg_snapshot_xmax(t.snapshot)
          and error_key is null
    ), g as materialized (
        select g.queue, g.priority, g.low, g.n, g.wake, g.after, c.seq[g.priority + 1] as cut, c.seq is not null as known
        from (select queue, priority, min(min_seq) as low, min(min_after) as after, count(*) as n,
                     bool_or(min_seq is not null or ready > 0 or ready is null) as wake from d group by 1, 2) g
        left join lateral (select seq from cursor c where c.queue = g.queue order by n desc limit 1) c on true
    ), new as (
        select array_agg(queue) as q, array_agg(priority::int) as p, array_agg(coalesce(low, 1) - 1) as s
        from (select * from g where cut is null order by known desc) z
    ), late as (
        select array_agg(d.queue) as q, array_agg(d.priority::int) as p, array_agg(d.min_seq) as f,
               array_agg(least(d.max_seq, g.cut)) as t
        from g join d using (queue, priority) where g.low <= g.cut and d.min_seq <= g.cut)
    select pg_current_snapshot(), coalesce((select sum(g.n) from g), 0),
           (select array_agg(distinct g.queue) from g left join queue_config c on c.queue = g.queue
            where g.known and (g.wake or c.max_running is not null or c.rate is not null)),
           (select min(after) from g),
           new.q, new.p, new.s, late.q, late.p, late.f, late.t
    from new, late
    into snapshot, n, woken, lowest, new_queues, new_priorities, new_seqs, late_queues, late_priorities, late_from, late_to;
end $$;
comment on function read_deltas(tick) is 'The deltas since the last step: unknown queues and priorities, late commits, the '
    'earliest due time. One statement, so that snapshot says exactly what was seen';

create or replace function move_cursor(queues text[], priorities int[], lower bigint[], high bigint[]) returns void
language sql set search_path from current as $$
    with lane as (
        select queue, priority + 1 as place, min(low) as low, max(high) as high
        from unnest(queues, priorities, lower, high) v (queue, priority, low, high) group by 1, 2
    ), moved as ( -- one row a queue: nothing may look at all the others for each
        select queue, array_agg(place) as places, array_agg(low) as lows, array_agg(high) as highs from lane group by queue
    )
    insert into cursor (queue, seq, high, low, chunk)
    select m.queue,
           array(select least(c.seq[i], m.lows[array_position(m.places, i)]) from generate_series(1, 10) i),
           array(select greatest(c.high[i], c.seq[i], m.highs[array_position(m.places, i)]) from generate_series(1, 10) i),
           coalesce(c.low, 0), coalesce(c.chunk, 10)
    from moved m
    left join lateral (select * from cursor c where c.queue = m.queue order by n desc limit 1) c on true
$$;
comment on function move_cursor(text[], int[], bigint[], bigint[]) is 'Lowers cursors, so that jobs behind them are found again (those '
    'in leases are left out), and says up to where jobs may stand in leases. Under the scheduler lock only';

-- The line of free leases is claimed in the order of their numbers. Where it is longer than a tenth of a second of work, the first
-- job of a queue that had nothing to do, and jobs more urgent than what stands free of their own queue, do not wait at its
-- end: each gets a lease of its own with a number before the first (the 50 numbers before it), or before the first free lease of the
-- same queue that is less urgent (the 50 before these). A queue is idle if nothing of it runs either, so one that pushes all the time
-- cannot stay in front. A number may come twice: the version says which one is meant.
create or replace function cut_front(inout t tick, woken text[], out jobs int)
language plpgsql set search_path from current set enable_seqscan = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    first bigint;
begin
    jobs := 0;
    if t.jobs <= 0.1 * t.rate or t.jobs = 0 or cardinality(woken) > 100 then
        return;
    end if;
    with free as materialized (
        select lease, queue, priority from work_queue where lease >= t.free and lock_key is null
    ), comer as materialized (
        select c.queue, r.seq, r.high, r.low, r.chunk, nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history,
               nullif(c.lease_timeout, interval '60 s') as lease_timeout, c.run_timeout,
               not exists (select from free f where f.queue = c.queue) and not exists (select from live l where l.queue = c.queue) as idle
        from (select distinct unnest(woken) as queue) n join queue_config c on c.queue = n.queue
        cross join lateral (select * from cursor r where r.queue = c.queue order by r.n desc limit 1) r
        where c.paused_at is null and c.max_running is null and c.rate is null
          and not exists (select from unnest(r.seq, r.high) v (a, b) where b > a) -- a lowered cursor is cut_hard's
    ), job as materialized (
        select q.*, j.priority, j.job, coalesce(j.lease_timeout, q.lease_timeout) as lease_time, j.before
        from comer q cross join lateral (
            select p.priority, j.seq as job, j.lease_timeout,
                   (select min(f.lease) from free f where (q.idle or f.queue = q.queue and f.priority > p.priority) and f.lease % 200 = 0) as before
            from (select (i - 1)::smallint as priority, q.seq[i] as at from generate_subscripts(q.seq, 1) i where q.seq[i] is not null) p
            cross join lateral (
                select j.seq, j.lease_timeout from queue j
                where j.queue = q.queue and j.priority = p.priority and j.state = 'ready' and j.seq > p.at
                order by j.seq limit case when q.idle then 1 else 50 end) j
            order by p.priority, j.seq limit case when q.idle then 1 else 50 end) j
        where j.before is not null
    ), place as materialized ( -- behind those that stand there
        select j.*, b.low + row_number() over (partition by j.before, j.idle order by j.priority, j.job) as lease, b.high as most
        from job j
        cross join lateral (select j.before - case when j.idle then 51 else 101 end as start) s
        cross join lateral (
            select coalesce((select max(w.lease) from work_queue w where w.lease > s.start and w.lease <= s.start + 50), s.start) as low,
                   s.start + 50 as high) b
    ), ins as (
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout, version)
        select p.lease, p.queue, p.priority, array[p.job], p.lease_time, p.max_tries, p.history, p.run_timeout,
               (pg_current_xact_id()::text::numeric % 2000000000)::int
        from place p where p.lease <= p.most
        returning lease, queue, priority, seqs[1] as job
    ), lane as materialized (
        select queue, array_agg(priority + 1) as places, array_agg(job) as cuts, min(low) as low
        from (select queue, priority, max(job) as job, min(lease) as low from ins group by 1, 2) z group by 1
    ), cur as (
        insert into cursor (queue, seq, high, low, chunk)
        select q.queue, array(select greatest(q.seq[i], l.cuts[array_position(l.places, i)]) from generate_series(1, 10) i),
               array(select greatest(q.high[i], l.cuts[array_position(l.places, i)]) from generate_series(1, 10) i),
               case when q.idle then l.low else least(q.low, l.low) end, q.chunk
        from comer q join lane l on l.queue = q.queue
    )
    select count(*), min(ins.lease) from ins into jobs, first;
    if jobs > 0 then
        t.free := least(t.free, first);
        insert into mark (mark, older) -- they are to be among the living
        select first / 200 * 200, array(select o from unnest(m.older) o where o < first / 200 * 200)
        from (select * from mark order by n desc limit 1) m where m.mark > first;
    end if;
end $$;
comment on function cut_front(tick, text[]) is 'Where much stands free, the first job of a queue that was idle and jobs more urgent than what is free of their '
    'queue get leases in front. Under the scheduler lock';

create or replace function cut(t tick, only_queues text[], whole boolean, late_queues text[], late_priorities int[], late_from bigint[], late_to bigint[],
    out jobs int, out free_jobs int, out free_before int, out first bigint, out weights numeric, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    hard text[];
    h    record;
begin
    with e as materialized (
        select case when is_called then last_value + 200 else 200 end as next from lease_seq
    ), lq as materialized (
        select queue, sum(cardinality(seqs))::int as free, min(lease) as low
        from work_queue where lease >= t.free and lock_key is null group by queue
    ), s as materialized (
        select z.*, case when uneven then (
            select min(least(r.chunk, z.n)::real / c.weight) from lq join queue_config c on c.queue = lq.queue
            cross join lateral (select chunk from cursor r where r.queue = c.queue order by n desc limit 1) r
            where lq.free > 0 and c.chunk is null) end as unit
        from (select coalesce(t.slots, (select max(slots) from node
                                        where heartbeat > now() - (select value::interval from setting where name = 'node_dead'))) as n,
                     not t.hasty and (select min(weight) < max(weight) from queue_config) as uneven) z
    ), q as materialized ( -- queues that may be cut, and how much of each
        select z.*, greatest(0, (share - free + chunk - 1) / chunk * chunk) as need,
               queue = any(late_queues) or high <> seq and exists (select from unnest(seq, high) v (a, b) where b > a) as hard
        from (
            select y.*, greatest(chunk, fair)::int as share
            from (
                select c.queue, c.weight, coalesce(lq.free, 0) as free, r.seq, r.high, lq.low, r.chunk as measured,
                       nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history,
                       nullif(c.lease_timeout, interval '60 s') as lease_timeout, c.run_timeout,
                       coalesce(c.chunk, greatest(1, least(r.chunk, s.n, case when s.uneven then greatest(f.fair / 2, s.unit * c.weight) end))::int) as chunk, f.fair
                from s, queue_config c
                cross join lateral (select * from cursor r where r.queue = c.queue order by n desc limit 1) r
                cross join lateral (select ceil(t.want * c.weight / t.weights) as fair) f
                left join lq on lq.queue = c.queue
                where c.paused_at is null and c.max_running is null and c.rate is null -- those are cut_limited's
                  and c.queue = any(only_queues)) y) z
    ), a as materialized ( -- the next jobs of each queue and priority, up to need, the most urgent first
        select queue, priority, seqs, own, before, least(n, need - before)::int as n
        from (
            select q.queue, q.need, p.priority, j.*, sum(j.n) over (partition by q.queue order by p.priority) - j.n as before
            from q
            cross join lateral (
                select (i - 1)::smallint as priority, q.seq[i] as at from generate_subscripts(q.seq, 1) i where q.seq[i] is not null) p
            cross join lateral (
                select array_agg(j.seq) as seqs, count(*) as n, bool_or(j.own) as own
                from (
                    select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own
                    from queue j
                    where j.queue = q.queue and j.priority = p.priority and j.state = 'ready' and j.seq > p.at
                    order by j.seq limit q.need) j) j
            where q.need > 0 and not coalesce(q.hard, false)) z
        where n > 0 and before < need
    ), o as materialized ( -- jobs with their own timeouts get their own leases
        select coalesce(array_agg(queue), '{}') as queues from a where own
    ), ins as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), k, queue, priority, seqs, scattered(seqs, 1000), lease_timeout, max_tries, history, run_timeout
        from (select (a.before + g) / q.chunk + 1 as k, a.queue, a.priority, a.seqs[g + 1:least(g + q.chunk, a.n)] as seqs,
                     q.lease_timeout, q.max_tries, q.history, q.run_timeout
              from o, a join q on q.queue = a.queue cross join lateral generate_series(0, a.n - 1, q.chunk) g
              where a.queue <> all(o.queues)
              order by k, hashtextextended(a.queue, t.tick), a.priority, g) z
        returning lease, queue, cardinality(seqs) as jobs
    ), made as materialized (
        select queue, min(lease) as low, sum(jobs)::int as n from ins group by queue
    ), lanes as materialized (
        select queue, array_agg(priority::int) as p, array_agg(seqs[n]) as cut from a group by queue
    ), cur as (
        insert into cursor (queue, seq, high, low, chunk)
        select queue, seq, seq, low, measured
        from (select q.queue, q.measured, coalesce(q.low, made.low) as low,
                     case when cardinality(l.p) = 1 then q.seq[:l.p[1]] || l.cut[1] || q.seq[l.p[1] + 2:]
                          else array(select coalesce(c.cut, q.seq[i]) from generate_series(1, 10) i
                                     left join unnest(l.p, l.cut) c (p, cut) on c.p = i - 1 order by i) end as seq
              from made join q on q.queue = made.queue join lanes l on l.queue = made.queue) z
    )
    select coalesce((select sum(n) from made), 0), coalesce((select sum(free) from lq), 0),
           coalesce(least((select min(low) from lq), (select min(low) from made)), (select next from e)),
           case when whole then (
               select sum(c.weight) from queue_config c where c.queue in (select queue from lq union select queue from made)
               and c.paused_at is null and c.max_running is null and c.rate is null
               and c.queue not in (select queue from q where hard)) end,
           (select array_agg(q.queue) from q left join made on made.queue = q.queue
            where made.n >= q.need or need = 0 and not coalesce(hard, false)
                  and exists (select from generate_subscripts(q.seq, 1) i cross join lateral (
                                  select from queue j where j.queue = q.queue and j.priority = (i - 1)::smallint and j.state = 'ready'
                                  and j.seq > q.seq[i] limit 1) j)),
           (select array_agg(queue) from (select queue from q where hard union select unnest(queues) from o) z)
    into jobs, free_before, first, weights, remaining, hard;
    if hard is not null or late_queues is not null then
        h := cut_hard(t, coalesce(hard, '{}'), late_queues, late_priorities, late_from, late_to);
        jobs := jobs + h.jobs;
        first := least(first, h.first);
        weights := coalesce(weights, 0) + h.weights;
        remaining := remaining || h.remaining;
    end if;
    free_jobs := free_before + jobs;
end $$;
comment on function cut(tick, text[], boolean, text[], int[], bigint[], bigint[]) is 'Cuts leases for these queues, but those with limits: each backlogged '
    'queue is filled up to its share of want, leases of different queues alternate, urgent priorities first, late jobs at once. whole: weights = of all '
    'queues that wait now; remaining = of these queues, where more may be uncut';

create or replace function cut_hard(t tick, only_queues text[], late_queues text[], late_priorities int[], late_from bigint[], late_to bigint[],
    out jobs int, out free_jobs int, out free_before int, out first bigint, out weights numeric, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    behind record;
begin
    with e as materialized (
        select case when is_called then last_value + 200 else 200 end as next from lease_seq
    ), l as materialized (
        select lease, queue, lock_key is null as free, seqs from live
    ), lq as materialized (
        select queue, coalesce(sum(cardinality(seqs)) filter (where free), 0)::int as free, sum(cardinality(seqs))::int as total,
               min(lease) filter (where free) as low
        from l group by queue
    ), s as (
        select z.*, case when uneven then (
            select min(least(r.chunk, z.n)::real / c.weight) from lq join queue_config c on c.queue = lq.queue
            cross join lateral (select chunk from cursor r where r.queue = c.queue order by n desc limit 1) r
            where lq.free > 0 and c.chunk is null) end as unit
        from (select coalesce(t.slots, (select max(slots) from node where heartbeat > now() - setting_interval('node_dead'))) as n,
                     not t.hasty and (select min(weight) < max(weight) from queue_config) as uneven) z
    ), q as materialized ( -- queues that may be cut, and how much of each
        select z.*, greatest(0, (share - free + chunk - 1) / chunk * chunk) as need
        from (
            select y.*, greatest(chunk, fair)::int as share
            from (
                select c.queue, c.weight, coalesce(lq.free, 0) as free, coalesce(lq.total, 0) as total,
                       r.seq, r.high, lq.low, r.chunk as measured,
                       nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history,
                       nullif(c.lease_timeout, interval '60 s') as lease_timeout, c.run_timeout,
                       coalesce(c.chunk, greatest(1, least(r.chunk, s.n, case when s.uneven then greatest(f.fair / 2, s.unit * c.weight) end))::int) as chunk, f.fair
                from s, queue_config c
                cross join lateral (select * from cursor r where r.queue = c.queue order by n desc limit 1) r
                cross join lateral (select ceil(t.want * c.weight / t.weights) as fair) f
                left join lq on lq.queue = c.queue
                where c.paused_at is null and c.max_running is null and c.rate is null -- those are cut_limited's
                  and c.queue = any(only_queues)) y) z
    ), x as materialized ( -- jobs that stand in leases, where a scan may meet them; in order, so that one is found by halving
        select l.queue, array_agg(u.seq order by u.seq) as seqs from l cross join unnest(l.seqs) u (seq)
        where l.queue = any(late_queues) or
              l.queue in (select q.queue from q where exists (select from unnest(q.seq, q.high) v (a, b) where b > a))
        group by l.queue
    ), a as materialized (
        select q.queue, c.priority, c.seq, c.own, c.lease_timeout, q.need, q.chunk, false as late
        from q cross join lateral (
            select p.p as priority, j.*
            from (select (i - 1)::smallint as p, q.seq[i] as at, q.high[i] > q.seq[i] as low
                  from generate_subscripts(q.seq, 1) i where q.seq[i] is not null) p
            cross join lateral (
                select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own, j.lease_timeout
                from queue j
                where j.queue = q.queue and j.priority = p.p and j.state = 'ready' and j.seq > p.at
                order by j.seq limit q.need + case when p.low then q.total else 0 end) j
            limit case when exists (select from unnest(q.seq, q.high) v (a, b) where b > a) then q.need + 10 * q.total
                       else q.need end) c
        where q.need > 0
        union all
        select distinct q.queue, v.p::smallint, j.seq, j.own, j.lease_timeout, q.need, q.chunk, true
        from unnest(late_queues, late_priorities, late_from, late_to) v (q, p, f, t) join q on q.queue = v.q
        cross join lateral (
            select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own, j.lease_timeout
            from queue j
            where j.queue = q.queue and j.priority = v.p and j.state = 'ready'
              and j.seq between v.f and least(v.t, q.seq[v.p + 1]) -- a take-over may have lowered the cursor: what is beyond it stands above
            order by j.seq limit 500) j
    ), b as ( -- fresh = in no lease; late ones come on top, the others in order as far as the share goes
        select z.*, row_number() over (partition by z.queue, z.late, z.fresh order by z.priority, z.seq) as rank
        from (select a.*, x.seqs[width_bucket(a.seq, x.seqs)] is distinct from a.seq as fresh from a left join x on x.queue = a.queue) z
    ), c as materialized (
        select b.*, b.fresh and (b.late or b.rank <= b.need) as taken from b
    ), g as (
        select c.*, case when c.own then c.seq
                         else -1 - (row_number() over (partition by c.queue, c.priority, c.own order by c.seq) - 1) / c.chunk end as part
        from c where c.taken
    ), ch as (
        select queue, priority, array_agg(seq order by seq) as seqs, max(lease_timeout) as lease_timeout,
               row_number() over (partition by queue order by bool_or(late) desc, priority, min(seq)) as k
        from g group by queue, priority, part
    ), ins as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), k, queue, priority, seqs, scattered(seqs, 10), lease_time, max_tries, history, run_timeout
        from (select ch.k, ch.queue, ch.priority, ch.seqs, coalesce(ch.lease_timeout, q.lease_timeout) as lease_time,
                     q.max_tries, q.history, q.run_timeout
              from ch join q on q.queue = ch.queue
              order by ch.k, hashtextextended(ch.queue, t.tick)) z
        returning lease, queue, cardinality(seqs) as jobs
    ), lane as ( -- up to before the first fresh job that was not taken
        select queue, priority, max(seq) filter (where seq < coalesce(left_from, 9223372036854775807)) as cut
        from (select queue, priority, seq, min(seq) filter (where fresh and not taken) over (partition by queue, priority) as left_from
              from c where not late) z
        group by 1, 2
    ), lanes as materialized ( -- these three a row a queue: with a thousand queues nothing may look at all of them for each
        select queue, array_agg(priority) as priorities, array_agg(cut) as cuts from lane group by queue
    ), made as materialized (
        select queue, min(lease) as low from ins group by queue
    ), got as materialized (
        select queue, count(*) filter (where taken and not late) as n from c group by queue
    ), cur as (
        insert into cursor (queue, seq, high, low, chunk)
        select q.queue,
               array(select greatest(q.seq[i], l.cut) from generate_series(1, 10) i
                     left join unnest(lanes.priorities, lanes.cuts) l (priority, cut) on l.priority = i - 1 order by i),
               array(select greatest(q.high[i], l.cut) from generate_series(1, 10) i
                     left join unnest(lanes.priorities, lanes.cuts) l (priority, cut) on l.priority = i - 1 order by i),
               coalesce(q.low, made.low, (select next from e)), q.measured
        from q join lanes on lanes.queue = q.queue left join made on made.queue = q.queue
    )
    select coalesce((select sum(ins.jobs) from ins), 0), coalesce((select sum(lq.free) from lq), 0),
           coalesce(least((select min(lq.low) from lq), (select min(lease) from ins)),
                    (select next from e)),
           coalesce((select sum(weight) from q where free > 0 or queue in (select queue from c)), 0),
           array(select queue from c where fresh and not taken
                 union
                 select q.queue from q left join got on got.queue = q.queue where case when need > 0
                     then coalesce(got.n, 0) >= need
                     else exists (select from generate_subscripts(q.seq, 1) i cross join lateral (
                         select from queue j where j.queue = q.queue and j.priority = (i - 1)::smallint and j.state = 'ready'
                         and j.seq > q.seq[i] limit 1) j) end)
    into jobs, free_before, first, weights, remaining;
    free_jobs := free_before + jobs;
    if late_queues is not null then
        select array_agg(q) as q, array_agg(p) as p, array_agg(f - 1) as f into behind
        from unnest(late_queues, late_priorities, late_from, late_to) v (q, p, f, t)
        left join queue_config c on c.queue = v.q
        where c.paused_at is not null or c.max_running is not null or c.rate is not null or
              500 <= (select count(*) from (select from queue j where j.queue = q and j.priority = p::smallint
                      and j.state = 'ready' and j.seq between f and t limit 500) z)
        having count(*) > 0;
        if found then
            perform move_cursor(behind.q, behind.p, behind.f, null);
            remaining := remaining || behind.q; -- the next step comes for them
        end if;
    end if;
end $$;
comment on function cut_hard(tick, text[], text[], int[], bigint[], bigint[]) is 'cut() for queues where something is unusual: late jobs, '
    'a lowered cursor, jobs with timeouts of their own. Late jobs come at once, on top of the share';
