-- Cutting: the scheduler reads the deltas and makes leases of the jobs that wait. 43_schedule calls it.
-- A late job is one that became visible after its queue had been cut beyond its seq: its transaction took a number
-- before others and committed after them. The delta of its push names a range of seqs; only this range is looked at
-- again.
-- If weights differ, measured chunks are made smaller: each queue gets the same number of jobs for each unit of weight,
-- or half of the queue's share if that is more. With whole chunks all queues would get the same. The rule does not
-- apply if some node works only some queues: free jobs of other queues, which that node does not take, would make its
-- leases small.

-- The functions up to cut_shares() have no SET, so that they are inlined into the statements that share their text.

create or replace function deltas_since(seen pg_snapshot, own xid8) returns setof delta
language sql stable as $$
    select d.* from delta d where d.xid >= pg_snapshot_xmax(seen)
    union all -- not OR: with statistics of full tables the planner would read all of delta
    select d.* from delta d
    where d.xid = any(array(select pg_snapshot_xip(seen)) || own) and d.xid < pg_snapshot_xmax(seen)
$$;
comment on function deltas_since(pg_snapshot, xid8) is 'The deltas that a snapshot did not see. own: the transaction '
    'that took the snapshot; its deltas count, too. No SET, so that it is inlined';

create or replace function lease_terms(config queue_config)
returns table (max_tries smallint, history "char", lease_time interval, run_timeout interval)
language sql immutable parallel safe as $$
    select nullif(config.max_tries, 5), nullif(left(config.history, 1), 'f')::"char",
           nullif(config.lease_timeout, interval '60 s'), config.run_timeout
$$;
comment on function lease_terms(queue_config) is 'The settings of a queue that its leases copy; NULL = the default. No '
    'SET, so that it is inlined';

create or replace function newest_cursor(queue text)
returns table (seq bigint[], high bigint[], low bigint, chunk int, lowered boolean)
language sql stable as $$
    select c.seq, c.high, c.low, c.chunk,
           c.high <> c.seq and exists (select from unnest(c.seq, c.high) v (cut, most) where v.most > v.cut)
    from cursor c where c.queue = newest_cursor.queue order by c.n desc limit 1
$$;
comment on function newest_cursor(text) is 'How far a queue has been cut. lowered: jobs behind the cursor may stand in '
    'leases. No SET, so that it is inlined';

create or replace function priorities_of(seq bigint[]) returns table (priority smallint, at bigint)
language sql immutable parallel safe as $$
    select (place - 1)::smallint, priorities_of.seq[place] from generate_subscripts(priorities_of.seq, 1) place
    where priorities_of.seq[place] is not null
$$;
comment on function priorities_of(bigint[]) is 'The priorities of a cursor that have had jobs, the most urgent first, '
    'and how far each has been cut. No SET, so that it is inlined';

create or replace function uncut_priorities(queue text, seq bigint[]) returns table (priority smallint)
language sql stable as $$
    select l.priority from priorities_of(uncut_priorities.seq) l
    cross join lateral (select from queue j where j.queue = uncut_priorities.queue and j.priority = l.priority
                        and j.state = 'ready' and j.seq > l.at limit 1) j
$$;
comment on function uncut_priorities(text, bigint[]) is 'The priorities in which jobs wait beyond the cursor. No SET, '
    'so that it is inlined';

create or replace function jobs_beyond(queue text, seq bigint[], high bigint[], n int, leased int)
returns table (priority smallint, seq bigint, own boolean, lease_timeout interval, over boolean)
language sql stable as $$
    select l.priority, j.seq, j.own, j.lease_timeout, j.over
    from priorities_of(jobs_beyond.seq) l
    cross join lateral (
        select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own, j.lease_timeout,
               j.expires_at <= now() as over
        from queue j
        where j.queue = jobs_beyond.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.at
        order by j.seq limit n + case when jobs_beyond.high[l.priority + 1] > l.at then leased else 0 end) j
    limit n + 10 * leased
$$;
comment on function jobs_beyond(text, bigint[], bigint[], int, int) is 'The next n jobs of a queue beyond its cursor, '
    'the most urgent first. leased: if the cursor was lowered, how many jobs in leases may be among them; otherwise 0. '
    'own: the job has timeouts of its own; over: the job has expired. No SET, so that it is inlined';

create or replace function jobs_between(queue text, priority smallint, low bigint, high bigint, most int)
returns table (seq bigint, own boolean, lease_timeout interval)
language sql stable as $$
    select j.seq, j.lease_timeout is not null or j.run_timeout is not null, j.lease_timeout from queue j
    where j.queue = jobs_between.queue and j.priority = jobs_between.priority and j.state = 'ready'
      and j.seq between low and high
    order by j.seq limit most
$$;
comment on function jobs_between(text, smallint, bigint, bigint, int) is 'Up to this many jobs of a queue and priority '
    'in a range of numbers. No SET, so that it is inlined';

create or replace function advanced(seq bigint[], priorities smallint[], cuts bigint[]) returns setof bigint[]
language sql immutable parallel safe as $$
    select case when cardinality(priorities) = 1
        then seq[:priorities[1]] || greatest(seq[priorities[1] + 1], cuts[1]) || seq[priorities[1] + 2:]
        else array(select greatest(seq[place], cuts[array_position(priorities, (place - 1)::smallint)])
                   from generate_series(1, 10) place order by place) end
$$;
comment on function advanced(bigint[], smallint[], bigint[]) is 'A cursor after it has moved up to these numbers in '
    'these priorities. No SET, so that it is inlined';

create or replace function next_lease() returns setof bigint
language sql stable as $$ select case when is_called then last_value + 200 else 200 end from lease_seq $$;
comment on function next_lease() is 'The number of the next lease; does not advance the sequence';

create or replace function cut_shares(t tick, only_queues text[])
returns table (queue text, cut boolean, weight int, free int, low bigint, seq bigint[], high bigint[],
    lowered boolean, measured int, chunk int, need int, max_tries smallint, history "char", lease_time interval,
    run_timeout interval)
language sql stable as $$
    with standing as materialized (
        select w.queue, sum(cardinality(w.seqs))::int as free, min(w.lease) as low
        from work_queue w where w.lease >= t.free and w.lock_key is null group by w.queue
    ), rule as materialized ( -- slots: those of the largest living node; unit: jobs for each unit of weight
        select z.slots, z.uneven, case when z.uneven then (
                   select min(least(r.chunk, z.slots)::real / c.weight)
                   from standing s join queue_config c on c.queue = s.queue
                   cross join lateral newest_cursor(c.queue) r
                   where c.chunk is null) end as unit
        from (select coalesce(t.slots, (select max(n.slots) from node n
                                        where not is_dead(n.heartbeat))) as slots,
                     not t.hasty and (select min(c.weight) < max(c.weight) from queue_config c) as uneven) z
    ), name as materialized (
        select coalesce(o.queue, s.queue) as queue, o.queue is not null as wanted, coalesce(s.free, 0) as free, s.low
        from (select distinct unnest(only_queues) as queue) o full join standing s on s.queue = o.queue
    )
    select n.queue, r.chunk is not null, c.weight, n.free, n.low, r.seq, r.high, r.lowered, r.chunk, k.chunk,
           greatest(0, (greatest(k.chunk, f.fair)::int - n.free + k.chunk - 1) / k.chunk * k.chunk),
           c.max_tries, c.history, c.lease_time, c.run_timeout
    from name n cross join rule
    left join lateral (
        select c.queue, c.weight, c.chunk, l.* from queue_config c cross join lateral lease_terms(c) l
        where c.queue = n.queue and c.paused_at is null and c.max_running is null and c.rate is null offset 0) c on true
    left join lateral newest_cursor(case when n.wanted then c.queue end) r on true
    cross join lateral (select ceil(t.want * c.weight / t.weights) as fair) f
    cross join lateral (
        select coalesce(c.chunk, greatest(1, least(r.chunk, rule.slots, case when rule.uneven then
                                 greatest(f.fair / 2, rule.unit * c.weight) end))::int) as chunk) k
$$;
comment on function cut_shares(tick, text[]) is 'For a cut: a row for each queue that is wanted or has free leases, '
    'with its free jobs and its first free lease. cut: the queue may be cut now; need: how many jobs to cut, in leases '
    'of chunk jobs; seq, high, lowered: its cursor. weight NULL: the queue is paused or has limits. No SET, so that it '
    'is inlined';

create or replace function read_deltas(t tick, out snapshot pg_snapshot, out n bigint, out woken text[],
    out lowest timestamptz, out new_queues text[], out new_priorities int[], out new_seqs bigint[],
    out late_queues text[], out late_priorities int[], out late_from bigint[], out late_to bigint[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with unread as materialized (
        select queue, priority, min_seq, max_seq, min_after, ready from deltas_since(t.snapshot, t.xid)
        where error_key is null
    ), news as materialized (
        select g.queue, g.priority, g.low, g.n, g.wake, g.after, c.seq[g.priority + 1] as cut,
               c.seq is not null as known
        from (select queue, priority, min(min_seq) as low, min(min_after) as after, count(*) as n,
                     bool_or(min_seq is not null or ready > 0 or ready is null) as wake from unread group by 1, 2) g
        left join lateral newest_cursor(g.queue) c on true
    ), new as (
        select array_agg(queue) as queues, array_agg(priority::int) as priorities,
               array_agg(coalesce(low, 1) - 1) as seqs
        from (select * from news where cut is null order by known desc) z
    ), late as (
        select array_agg(u.queue) as queues, array_agg(u.priority::int) as priorities, array_agg(u.min_seq) as lows,
               array_agg(least(u.max_seq, l.cut)) as highs
        from news l join unread u using (queue, priority) where l.low <= l.cut and u.min_seq <= l.cut)
    select pg_current_snapshot(), coalesce((select sum(l.n) from news l), 0),
           (select array_agg(distinct l.queue) from news l left join queue_config c on c.queue = l.queue
            where l.known and (l.wake or c.max_running is not null or c.rate is not null)),
           (select min(after) from news),
           new.queues, new.priorities, new.seqs, late.queues, late.priorities, late.lows, late.highs
    from new, late
    into snapshot, n, woken, lowest, new_queues, new_priorities, new_seqs, late_queues, late_priorities, late_from,
         late_to;
end $$;
comment on function read_deltas(tick) is 'Reads the deltas since the last step: new queues and priorities, late jobs, '
    'the earliest due time. It is one statement, so that snapshot names exactly the deltas that were read';

create or replace function move_cursor(queues text[], priorities int[], lower bigint[], high bigint[]) returns void
language sql set search_path from current as $$
    with lowest as (
        select queue, priority + 1 as place, min(low) as low, max(high) as high
        from unnest(queues, priorities, lower, high) v (queue, priority, low, high) group by 1, 2
    ), moved as ( -- one row a queue, so that no plan compares each row with all others
        select queue, array_agg(place) as places, array_agg(low) as lows, array_agg(high) as highs
        from lowest group by queue
    )
    insert into cursor (queue, seq, high, low, chunk)
    select m.queue,
           array(select least(c.seq[i], m.lows[array_position(m.places, i)]) from generate_series(1, 10) i),
           array(select greatest(c.high[i], c.seq[i], m.highs[array_position(m.places, i)])
                 from generate_series(1, 10) i),
           coalesce(c.low, 0), coalesce(c.chunk, 10)
    from moved m left join lateral newest_cursor(m.queue) c on true
$$;
comment on function move_cursor(text[], int[], bigint[], bigint[]) is 'Lowers cursors, so that the jobs behind them '
    'are found again (jobs in leases are left out), and records up to which number jobs may be in leases. Only under '
    'the scheduler lock';

-- Free leases are claimed in the order of their numbers. If the free leases hold more than a tenth of a second of work,
-- two kinds of jobs are not put at the end: the first job of a queue that was idle, and jobs that are more urgent than
-- the free jobs of their own queue. Each of them gets a lease of its own, with one of the 50 numbers before another
-- lease: before the first free lease of all, or before the first free lease of the same queue that is less urgent. A
-- queue is idle only if none of its jobs runs either, so a queue that pushes all the time can't stay in front, and only
-- if the last step has not left it (perhaps) waiting: on a slow server such a queue may have no lease between two
-- steps, and a lease of one job among larger ones makes each claim after it split a lease. Two leases may get the same
-- number one after the other: their versions differ.
create or replace function front_jobs(t tick, woken text[])
returns table (queue text, idle boolean, seq bigint[], high bigint[], low bigint, chunk int, max_tries smallint,
    history "char", lease_time interval, run_timeout interval, priority smallint, job bigint, before bigint)
language sql stable as $$
    with free as materialized (
        select lease, queue, priority from work_queue where lease >= t.free and lock_key is null
    ), comer as materialized (
        select c.queue, r.seq, r.high, r.low, r.chunk, l.max_tries, l.history, l.lease_time, l.run_timeout,
               c.queue <> all(t.waiting) and not exists (select from free f where f.queue = c.queue)
               and not exists (select from live l where l.queue = c.queue) as idle
        from (select distinct unnest(woken) as queue) n join queue_config c on c.queue = n.queue
        cross join lateral newest_cursor(c.queue) r cross join lateral lease_terms(c) l
        where c.paused_at is null and c.max_running is null and c.rate is null
          and not r.lowered -- cut_hard() cuts a queue whose cursor was lowered
    )
    select c.queue, c.idle, c.seq, c.high, c.low, c.chunk, c.max_tries, c.history,
           coalesce(j.lease_timeout, c.lease_time), c.run_timeout, j.priority, j.job, j.before
    from comer c cross join lateral (
        select l.priority, j.seq as job, j.lease_timeout, b.before
        from priorities_of(c.seq) l
        cross join lateral ( -- once for each priority: most have no lease to come before, and read no jobs
            select min(f.lease) as before from free f
            where (c.idle or f.queue = c.queue and f.priority > l.priority) and f.lease % 200 = 0) b
        cross join lateral (
            select j.seq, j.lease_timeout from queue j
            where b.before is not null and j.queue = c.queue and j.priority = l.priority and j.state = 'ready'
              and j.seq > l.at
            order by j.seq limit case when c.idle then 1 else 50 end) j
        order by l.priority, j.seq limit case when c.idle then 1 else 50 end) j
$$;
comment on function front_jobs(tick, text[]) is 'For cut_front(): those jobs of these queues that get a lease in '
    'front, and the free lease that each comes before. No SET, so that it is inlined';

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
    with job as materialized (
        select * from front_jobs(t, woken)
    ), place as materialized ( -- behind the leases that were put there before
        select j.*, b.low + row_number() over (partition by j.before, j.idle order by j.priority, j.job) as lease,
               b.high as most
        from job j
        cross join lateral (select j.before - case when j.idle then 51 else 101 end as start) s
        cross join lateral (
            select coalesce((select max(w.lease) from work_queue w
                             where w.lease > s.start and w.lease <= s.start + 50), s.start) as low,
                   s.start + 50 as high) b
    ), made as (
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout, version)
        select p.lease, p.queue, p.priority, array[p.job], p.lease_time, p.max_tries, p.history, p.run_timeout,
               (pg_current_xact_id()::text::numeric % 2000000000)::int
        from place p where p.lease <= p.most
        returning lease, queue, priority, seqs[1] as job
    ), cut_to as materialized (
        select queue, array_agg(priority) as priorities, array_agg(job) as cuts, min(low) as low
        from (select queue, priority, max(job) as job, min(lease) as low from made group by 1, 2) z group by 1
    ), moved as (
        insert into cursor (queue, seq, high, low, chunk)
        select l.queue, s, h, case when q.idle then l.low else least(q.low, l.low) end, q.chunk
        from cut_to l join (select distinct on (j.queue) j.* from job j) q on q.queue = l.queue
        cross join lateral advanced(q.seq, l.priorities, l.cuts) s
        cross join lateral advanced(q.high, l.priorities, l.cuts) h
    )
    select count(*), min(made.lease) from made into jobs, first;
    if jobs > 0 then
        t.free := least(t.free, first);
        insert into mark (mark, older) -- so that the mark includes the new leases
        select first / 200 * 200, array(select o from unnest(m.older) o where o < first / 200 * 200)
        from (select * from mark order by n desc limit 1) m where m.mark > first;
    end if;
end $$;
comment on function cut_front(tick, text[]) is 'If many jobs are free, makes leases in front of others: for the first '
    'job of a queue that was idle, and for jobs more urgent than the free jobs of their queue. Under the scheduler '
    'lock';

create or replace function easy_jobs(queue text, seq bigint[], need int)
returns table (priority smallint, seqs bigint[], own boolean, before numeric, n int)
language sql stable as $$
    select z.priority, z.seqs, z.own, z.before, least(z.n, need - z.before)::int
    from (
        select l.priority, j.seqs, j.own, j.n, sum(j.n) over (order by l.priority) - j.n as before
        from priorities_of(easy_jobs.seq) l
        cross join lateral (
            select array_agg(j.seq) as seqs, count(*) as n, bool_or(j.own) as own
            from (
                select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own from queue j
                where j.queue = easy_jobs.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.at
                order by j.seq limit need) j) j) z
    where z.n > 0 and z.before < need
$$;
comment on function easy_jobs(text, bigint[], int) is 'For cut(): the next jobs of a queue, a row for each priority, '
    'the most urgent first. before: how many jobs are more urgent; n: how many of seqs are within need; own: some have '
    'timeouts of their own. No SET, so that it is inlined';

create or replace function cut(t tick, only_queues text[], whole boolean, late_queues text[], late_priorities int[],
    late_from bigint[], late_to bigint[],
    out jobs int, out free_jobs int, out free_before int, out first bigint, out weights numeric, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    hard text[];
    h    record;
begin
    with share as materialized (
        select s.*, s.cut and (s.lowered or s.queue = any(late_queues)) as hard from cut_shares(t, only_queues) s
    ), chance as materialized (
        select s.queue, j.* from share s cross join lateral easy_jobs(s.queue, s.seq, s.need) j
        where s.need > 0 and s.hard is not true
    ), owner as materialized ( -- jobs with timeouts of their own get leases of their own
        select coalesce(array_agg(queue), '{}') as queues from chance where own
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history,
                                run_timeout)
        select nextval('lease_seq'), z.turn, z.queue, z.priority, z.seqs, scattered(z.seqs, 1000), z.lease_time,
               z.max_tries, z.history, z.run_timeout
        from (select (c.before + g) / s.chunk + 1 as turn, c.queue, c.priority,
                     c.seqs[g + 1:least(g + s.chunk, c.n)] as seqs, s.lease_time, s.max_tries, s.history, s.run_timeout
              from owner o, chance c join share s on s.queue = c.queue
              cross join lateral generate_series(0, c.n - 1, s.chunk) g
              where c.queue <> all(o.queues)
              order by turn, hashtextextended(c.queue, t.tick), c.priority, g) z
        returning lease, queue, cardinality(seqs) as jobs
    ), got as materialized (
        select queue, min(lease) as low, sum(jobs)::int as n from made group by queue
    ), cut_to as materialized (
        select queue, array_agg(priority) as priorities, array_agg(seqs[n]) as cuts from chance group by queue
    ), moved as (
        insert into cursor (queue, seq, high, low, chunk)
        select s.queue, a, a, coalesce(s.low, g.low), s.measured
        from got g join share s on s.queue = g.queue join cut_to l on l.queue = g.queue
        cross join lateral advanced(s.seq, l.priorities, l.cuts) a
    )
    select coalesce(sum(g.n), 0), coalesce(sum(s.free), 0),
           coalesce(least(min(s.low), min(g.low)), (select next_lease())),
           case when whole then sum(s.weight) filter (where (s.free > 0 or g.n > 0) and s.hard is not true) end,
           array_agg(s.queue) filter (where s.cut and (g.n >= s.need or s.need = 0 and s.hard is not true
                                                       and exists (select from uncut_priorities(s.queue, s.seq)))),
           array_agg(s.queue) filter (where s.hard or s.queue = any(o.queues))
    from owner o, share s left join got g on g.queue = s.queue
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
comment on function cut(tick, text[], boolean, text[], int[], bigint[], bigint[]) is 'Cuts leases for these queues, '
    'except those with limits. Each queue is filled up to its share of want; leases of different queues alternate; '
    'urgent priorities come first; late jobs are cut at once. whole: all queues that wait are cut, so weights is their '
    'sum. remaining: the queues that may have more uncut jobs';

create or replace function advance_cursor(queues text[], priorities smallint[], cuts bigint[], lows bigint[])
returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    insert into cursor (queue, seq, high, low, chunk)
    select l.queue, s, h, l.low, r.chunk
    from (select v.queue, array_agg(v.priority) as priorities, array_agg(v.cut) as cuts, min(v.low) as low
          from unnest(queues, advance_cursor.priorities, advance_cursor.cuts, lows) v (queue, priority, cut, low)
          group by v.queue) l
    cross join lateral newest_cursor(l.queue) r
    cross join lateral advanced(r.seq, l.priorities, l.cuts) s
    cross join lateral advanced(r.high, l.priorities, l.cuts) h;
end $$;
comment on function advance_cursor(text[], smallint[], bigint[], bigint[]) is 'Moves the cursors of these queues and '
    'priorities up to the last job that was cut. lows: the first free lease of the queue. Only under the scheduler '
    'lock';

create or replace function late_left(late_queues text[], late_priorities int[], late_from bigint[], late_to bigint[])
returns text[]
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    behind record;
begin
    select array_agg(v.queue) as queues, array_agg(v.priority) as priorities, array_agg(v.low - 1) as lower into behind
    from unnest(late_queues, late_priorities, late_from, late_to) v (queue, priority, low, high)
    left join queue_config c on c.queue = v.queue
    where c.paused_at is not null or c.max_running is not null or c.rate is not null or
          500 <= (select count(*) from jobs_between(v.queue, v.priority::smallint, v.low, v.high, 500));
    if behind.queues is not null then
        perform move_cursor(behind.queues, behind.priorities, behind.lower, null);
    end if;
    return behind.queues;
end $$;
comment on function late_left(text[], int[], bigint[], bigint[]) is 'For cut_hard(): lowers the cursors of queues '
    'whose late jobs can''t be cut now, because the queue is paused or has limits, or because a step can''t take so '
    'many jobs. So a later step finds them';

create or replace function hard_jobs(queue text, seq bigint[], high bigint[], need int, leased bigint[],
    late_priorities int[], late_from bigint[], late_to bigint[])
returns table (priority smallint, seq bigint, own boolean, lease_timeout interval, late boolean, taken boolean,
    remains boolean, upto bigint)
language sql stable as $$
    select c.priority, c.seq, c.own, c.lease_timeout, c.late, c.taken, c.fresh and not c.taken,
           max(c.seq) filter (where not c.late and c.seq < coalesce(c.left_from, 9223372036854775807))
               over (partition by c.priority)
    from (
        select b.*, min(b.seq) filter (where b.fresh and not b.taken and not b.late)
                        over (partition by b.priority) as left_from
        from (
            select a.*, a.fresh and (a.late or need >= row_number() over (
                       partition by a.late, a.fresh order by a.priority, a.seq)) as taken
            from (
                select j.priority, j.seq, j.own, j.lease_timeout, j.late,
                       leased[width_bucket(j.seq, leased)] is distinct from j.seq as fresh
                from (
                    select j.priority, j.seq, j.own, j.lease_timeout, false as late
                    from jobs_beyond(hard_jobs.queue, hard_jobs.seq, high, need,
                                     case when high is null then 0 else coalesce(cardinality(leased), 0) end) j
                    where need > 0
                    -- only up to the cursor: if a take-over has lowered it, the part above has the jobs beyond it
                    union all
                    select distinct v.priority::smallint, j.seq, j.own, j.lease_timeout, true
                    from unnest(late_priorities, late_from, late_to) v (priority, low, high)
                    cross join lateral jobs_between(hard_jobs.queue, v.priority::smallint, v.low,
                                                    least(v.high, hard_jobs.seq[v.priority + 1]), 500) j) j) a) b) c
$$;
comment on function hard_jobs(text, bigint[], bigint[], int, bigint[], int[], bigint[], bigint[]) is 'For cut_hard(): '
    'the jobs of a queue that a cut looks at. leased: the jobs in leases, in order; high: NULL unless the cursor was '
    'lowered. taken: the job is cut now: late jobs always, in addition to the share (need), other jobs in order up to '
    'the share. remains: the job could have been cut, but was not; upto: up to which number its priority is cut now, '
    'which is before the first job that remains. No SET, so that it is inlined';

create or replace function late_ranges(late_queues text[], late_priorities int[], late_from bigint[], late_to bigint[])
returns table (queue text, priorities int[], lows bigint[], highs bigint[])
language sql immutable parallel safe as $$
    select v.queue, array_agg(v.priority), array_agg(v.low), array_agg(v.high)
    from unnest(late_queues, late_priorities, late_from, late_to) v (queue, priority, low, high) group by v.queue
$$;
comment on function late_ranges(text[], int[], bigint[], bigint[]) is 'Where the late jobs are, one row for each '
    'queue, so that no plan compares each queue with all ranges. No SET, so that it is inlined';

create or replace function cut_hard(t tick, only_queues text[], late_queues text[], late_priorities int[],
    late_from bigint[], late_to bigint[],
    out jobs int, out free_jobs int, out free_before int, out first bigint, out weights numeric, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with share as materialized (
        select * from cut_shares(t, only_queues) where cut
    ), leased as materialized ( -- jobs in leases, of queues where a scan may meet them
        select l.queue, array_agg(u.seq order by u.seq) as seqs from live l cross join unnest(l.seqs) u (seq)
        where l.queue = any(late_queues) or l.queue in (select s.queue from share s where s.lowered) group by l.queue
    ), late as materialized (
        select * from late_ranges(late_queues, late_priorities, late_from, late_to)
    ), job as materialized (
        select s.queue, s.chunk, j.*
        from share s left join leased l on l.queue = s.queue left join late b on b.queue = s.queue
        cross join lateral hard_jobs(s.queue, s.seq, case when s.lowered then s.high end, s.need, l.seqs,
                                     b.priorities, b.lows, b.highs) j
    ), chunk as ( -- jobs with timeouts of their own get leases of their own
        select z.queue, z.priority, array_agg(z.seq order by z.seq) as seqs, max(z.lease_timeout) as lease_timeout,
               row_number() over (partition by z.queue order by bool_or(z.late) desc, z.priority, min(z.seq)) as turn
        from (select j.*, case when j.own then j.seq else -1 - (row_number() over (
                         partition by j.queue, j.priority, j.own order by j.seq) - 1) / j.chunk end as part
              from job j where j.taken) z
        group by z.queue, z.priority, z.part
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history,
                                run_timeout)
        select nextval('lease_seq'), z.* from (
            select c.turn, c.queue, c.priority, c.seqs, scattered(c.seqs, 10),
                   coalesce(c.lease_timeout, s.lease_time), s.max_tries, s.history, s.run_timeout
            from chunk c join share s on s.queue = c.queue order by c.turn, hashtextextended(c.queue, t.tick)) z
        returning lease, queue, cardinality(seqs) as jobs
    ), got as materialized (
        select queue, min(lease) as low, sum(jobs) as jobs from made group by queue
    ), seen as materialized (
        select queue, count(*) filter (where taken and not late) as n, bool_or(remains) as remains
        from job group by queue
    ), cut_to as (
        select j.queue, j.priority, max(j.upto) as upto, min(coalesce(s.low, g.low, l)) as low
        from job j join share s on s.queue = j.queue left join got g on g.queue = j.queue cross join next_lease() l
        where not j.late group by 1, 2
    ), moved as materialized (
        select advance_cursor(array_agg(queue), array_agg(priority), array_agg(upto), array_agg(low)) from cut_to
    )
    select coalesce(sum(g.jobs), 0), coalesce(sum(s.free), 0),
           coalesce(least(min(s.low), min(g.low)), (select next_lease())),
           coalesce(sum(s.weight) filter (where s.free > 0 or n.queue is not null), 0),
           coalesce(array_agg(s.queue) filter (where n.remains or case when s.need > 0 then n.n >= s.need
                    else exists (select from uncut_priorities(s.queue, s.seq)) end), '{}')
    from (select count(*) from moved) m, share s
    left join got g on g.queue = s.queue left join seen n on n.queue = s.queue
    into jobs, free_before, first, weights, remaining;
    free_jobs := free_before + jobs;
    if late_queues is not null then
        remaining := remaining || late_left(late_queues, late_priorities, late_from, late_to);
    end if;
end $$;
comment on function cut_hard(tick, text[], text[], int[], bigint[], bigint[]) is 'cut() for queues with something '
    'unusual: late jobs, a lowered cursor, jobs with timeouts of their own. All figures are of these queues';
