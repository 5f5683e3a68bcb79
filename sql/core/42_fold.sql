-- Summing deltas up into counters (a fold), deleting what was summed up, and the partitions of the next days.

create or replace function fold_now() returns boolean
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    f     fold;
    big   boolean;
    since timestamptz;
    made  bigint;
    begun timestamptz := clock_timestamp();
    n     int;
begin
    select * into f from fold order by fold desc limit 1;
    select at into since from fold where keep order by fold desc limit 1;
    big := (since > clock_timestamp() - interval '10 s' and since < clock_timestamp() + interval '1 s') is not true; -- or the clock was set back
    with d as materialized (
        select * from delta where xid >= pg_snapshot_xmax(f.snapshot) and xid <> pg_current_xact_id()
        union all
        select * from delta where xid < pg_snapshot_xmax(f.snapshot) and xid <> pg_current_xact_id()
                              and xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid)
    ), h as (
        insert into fold (at, snapshot, xid, keep)
        select clock_timestamp(), pg_current_snapshot(), pg_current_xact_id(), big where exists (select from d)
        returning fold
    ), s as (
        select queue, priority, sum(ready) as ready, sum(scheduled) as scheduled, sum(retry) as retry, sum(failed) as failed,
               sum(pushed) as pushed, sum(completed) as completed, sum(fails) as fails, sum(retried) as retried,
               sum(cancelled) as cancelled, sum(lost) as lost, sum(run_ms) as run_ms, sum(blocked) as blocked
        from (select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost, run_ms, blocked
              from counter where fold = f.fold and error_key is null
              union all
              select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost, run_ms, blocked
              from d where error_key is null) z
        group by 1, 2
    ), ins as (
    insert into counter (fold, queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled,
                         lost, run_ms, blocked, oldest)
    select h.fold, s.queue, s.priority, coalesce(ready, 0), coalesce(scheduled, 0), coalesce(retry, 0), coalesce(failed, 0),
           coalesce(pushed, 0), coalesce(completed, 0), coalesce(fails, 0), coalesce(retried, 0), coalesce(cancelled, 0),
           coalesce(lost, 0), coalesce(run_ms, 0), coalesce(blocked, 0), case when ready > 0 then (
               select least( -- the next that is uncut, and the first that is cut and free
                   (select j.changed from queue j where j.queue = s.queue and j.priority = s.priority and j.state = 'ready'
                    and j.seq > c.seq[s.priority + 1] order by j.seq limit 1),
                   (select j.changed from ( -- OFFSET 0: one lease first, then its first job
                        select w.seqs[1] as seq from work_queue w
                        where w.queue || '' = s.queue and w.lease + 0 >= c.low and w.lock_key is null and w.priority = s.priority
                        order by w.lease + 0 limit 1 offset 0) w
                    cross join lateral (
                        select j.changed from queue j
                        where j.queue = s.queue and j.priority = s.priority and j.state = 'ready' and j.seq = w.seq offset 0) j))
               from (select * from cursor c where c.queue = s.queue order by c.n desc limit 1 offset 0) c) end
    from s, h)
    select h.fold, (select count(*) from (select from s limit 2001) z) into made, n from h;
    if made is not null and (big or n <= 2000) then -- with thousands of queues its time counts
        perform measure_chunks(made, big);
    end if;
    begun := begun + interval '25 ms';
    if begun < clock_timestamp() then -- ten thousand queues and priorities: not each half second
        update fold set ms = 25 + 1000 * extract(epoch from clock_timestamp() - begun) where fold = made;
    end if;
    if made is not null and big then
        perform fold_groups(made);
        perform roll_minutes((select fold from fold where keep and fold < made order by fold desc limit 1));
        perform check_counts(20000);
        perform sweep(made);
    end if;
    return made is not null;
end $$;
comment on function fold_now() is 'Sums the deltas since the last fold into new counter rows. One statement does it, so that the '
    'snapshot it stores is the one it read with; its own deltas are left for the next (readers add them: fold.xid)';

create or replace function must_fold() returns boolean
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select (f.at < clock_timestamp() - greatest(500, 20 * f.ms) * interval '1 ms' or f.at > clock_timestamp() + interval '1 s')
        and (exists (select from delta where xid >= pg_snapshot_xmax(f.snapshot))
             or exists (select from delta where xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid)))
    from (select * from fold order by fold desc limit 1) f
$$;
comment on function must_fold() is 'Whether the last fold is half a second old (or older, where folding takes its time) and has not seen all deltas';

create or replace function try_fold() returns boolean
language plpgsql set search_path from current as $$
begin
    return fold_now();
exception when query_canceled or others then
    raise log 'queuetop: the counters were not folded, the next try comes in a minute: %', sqlerrm;
    update fold set ms = 3000 where fold = (select f.fold from fold f order by f.fold desc limit 1);
    return false;
end $$;
comment on function try_fold() is 'fold_now() within a step: where it fails, or takes so long that the client cancels it, the leases that the step '
    'has cut are kept';

create or replace function fold_groups(made bigint) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    f fold;
    h fold;
begin
    select * into h from fold where fold = made;
    select * into f from fold where keep and fold < made order by fold desc limit 1;
    with d as (
        select queue, error_key, failed, at from delta
        where error_key is not null and xid >= pg_snapshot_xmax(f.snapshot) and pg_visible_in_snapshot(xid, h.snapshot) and xid <> h.xid
        union all
        select queue, error_key, failed, at from delta
        where error_key is not null and xid < pg_snapshot_xmax(f.snapshot) and pg_visible_in_snapshot(xid, h.snapshot) and xid <> h.xid
          and xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid)
    ), s as (
        select queue, error_key, sum(failed) as failed, min(first_at) as first_at, max(last_at) as last_at,
               row_number() over (order by sum(failed) desc) as rank
        from (select queue, error_key, failed, first_at, last_at from counter where fold = f.fold and error_key is not null
              union all
              select queue, error_key, failed, case when failed > 0 then at end, case when failed > 0 then at end from d) z
        group by 1, 2 having sum(failed) <> 0)
    insert into counter (fold, queue, priority, error_key, failed, first_at, last_at)
    select made, queue, 0, case when rank <= 2000 then error_key else '*' end, sum(failed), min(first_at), max(last_at)
    from s group by 1, 2, 4;
    delete from counter where fold = f.fold and error_key is not null;
end $$;
comment on function fold_groups(bigint) is 'Sums the groups of errors with each kept fold; beyond 2000 groups the rest is one group *';

create or replace function measure_chunks(made bigint, shrink boolean) returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off set enable_mergejoin = off as $$
    insert into cursor (queue, seq, high, low, chunk)
    select c.queue, c.seq, c.high, c.low, m.chunk
    from (select queue, greatest(1, least(100, round(1000.0 * (n.completed - coalesce(o.completed, 0))
                                   / greatest(1, n.run_ms - coalesce(o.run_ms, 0)))))::int as chunk, n.completed - coalesce(o.completed, 0) as n
          from (select queue, sum(completed) as completed, sum(run_ms) as run_ms from counter
                where fold = made and error_key is null group by 1) n
          left join (select queue, sum(completed) as completed, sum(run_ms) as run_ms from counter
                     where fold = (select fold from fold where keep and fold < made order by fold desc limit 1) and error_key is null
                     group by 1) o using (queue)
          where n.completed > coalesce(o.completed, 0)) m
    cross join lateral (select * from cursor c where c.queue = m.queue order by n desc limit 1) c
    where case when shrink then c.chunk <> m.chunk else m.chunk >= 2 * c.chunk and m.n >= 2 * c.chunk end
$$;
comment on function measure_chunks(bigint, boolean) is 'A lease should be about a second of work: sets each queue''s chunk from what was done since the '
    'last kept fold, 10 s at most. Without shrink it only grows where it is much too small: a backlog of short jobs should not wait for that';

create or replace function sweep(made bigint) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    h fold;
    f fold;
    e fold;
    c bigint;
    lo bigint[];
    hi bigint[];
begin
    select * into h from fold where fold = made;
    select * into f from fold where keep and fold < made order by fold desc limit 1;
    select * into e from fold where keep and fold < f.fold order by fold desc limit 1;
    -- deltas that fold f saw (this fold's readers start at h); what fold e saw went with the last sweep
    if e.fold is null then
        delete from delta where pg_visible_in_snapshot(xid, f.snapshot) and xid <> f.xid;
    else
        delete from delta where xid >= pg_snapshot_xmax(e.snapshot) and pg_visible_in_snapshot(xid, f.snapshot) and xid <> f.xid;
        delete from delta where xid = any(array(select pg_snapshot_xip(e.snapshot)) || e.xid)
                            and pg_visible_in_snapshot(xid, f.snapshot) and xid <> f.xid;
    end if;
    delete from counter where fold > f.fold and fold < made;
    delete from fold where fold > f.fold and fold < made;
    lo := f.swept;
    for c in delete from fold where keep and (at < now() - interval '10 min' or at > now() + interval '1 min')
             and fold >= coalesce(lo[5], 0) and fold < f.fold returning fold loop
        delete from counter where fold = c;
    end loop;
    hi := array[(select max(tick) from tick), (select max(n + 0) from cursor), (select max(n) from mark),
                extract(epoch from trim_minutes(to_timestamp(coalesce(lo[4], 0))))::bigint,
                (select x.fold from fold x where x.fold >= coalesce(lo[5], 0) order by x.fold limit 1)];
    delete from tick where tick >= lo[1] and tick < hi[1];
    delete from mark where n >= lo[3] and n < hi[3];
    delete from cursor c where c.n + 0 = any(array( -- not a join, which might look through the dead for each
        select o.n from (select queue, max(n) as n from cursor where n + 0 > lo[2] and n + 0 <= hi[2] group by queue) w
        cross join lateral (select n from cursor o where o.queue = w.queue and o.n < w.n and o.n > lo[2]
                            union all
                            (select n from cursor o where o.queue = w.queue and o.n <= lo[2] order by n desc limit 1)) o));
    update fold set swept = hi where fold = made;
    delete from node where heartbeat < now() - setting_interval('node_keep')
        and not exists (select from live where live.lock_key = node.lock_key);
end $$;
comment on function sweep(bigint) is 'Deletes what no reader needs any more: summed deltas, folds between the kept ones, old ticks, marks and cursors';

create or replace function recount() returns void
language plpgsql set search_path from current as $$
declare
    last bigint;
    made bigint;
begin
    select fold into last from fold order by fold desc limit 1;
    with o as ( -- all that this snapshot sees is counted below, whatever its xid was
        delete from delta
    ), h as (
        insert into fold (snapshot, xid, keep) values (pg_current_snapshot(), pg_current_xact_id(), true) returning fold
    ), d as (
        select queue, priority, ready, scheduled, retry, failed, blocked from queue q
        cross join lateral (select (q.state = 'ready')::int as ready, (q.state = 'scheduled')::int as scheduled,
                                   (q.state = 'retry')::int as retry, (q.state = 'failed')::int as failed,
                                   (q.state = 'blocked')::int as blocked) s
    )
    insert into counter (fold, queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost, run_ms, blocked)
    select h.fold, queue, priority, coalesce(sum(ready), 0), coalesce(sum(scheduled), 0), coalesce(sum(retry), 0), coalesce(sum(failed), 0),
           coalesce(sum(pushed), 0), coalesce(sum(completed), 0), coalesce(sum(fails), 0), coalesce(sum(retried), 0),
           coalesce(sum(cancelled), 0), coalesce(sum(lost), 0), coalesce(sum(run_ms), 0), coalesce(sum(blocked), 0)
    from (select queue, priority, ready, scheduled, retry, failed, blocked, 0 as pushed, 0 as completed, 0 as fails, 0 as retried,
                 0 as cancelled, 0 as lost, 0 as run_ms from d
          union all
          select queue, priority, 0, 0, 0, 0, 0, pushed, completed, fails, retried, cancelled, lost, run_ms
          from counter where fold = last and error_key is null) z, h
    group by 1, 2, 3;
    select fold into made from fold order by fold desc limit 1;
    insert into counter (fold, queue, priority, error_key, failed, first_at, last_at)
    select made, queue, 0, error_key, count(*), min(changed), max(changed) from queue
    where state = 'failed' and error_key is not null group by queue, error_key;
    delete from counter where fold < made;
    delete from fold where fold < made;
    insert into queue_config (queue) select distinct queue from queue on conflict do nothing;
    insert into cursor (queue, seq, high)
    select c.queue, array(select case when q.priority is not null then 0 end from generate_series(0, 9) p
                          left join (select distinct priority from queue q where q.queue = c.queue) q on q.priority = p order by p),
           array(select max(s) from generate_series(0, 9) p left join (select unnest(seqs) as s, priority from work_queue w
                 where w.queue = c.queue) w on w.priority = p group by p order by p)
    from (select distinct queue from queue) c;
    insert into mark (mark, older) values (0, '{}');
    insert into tick (snapshot, want, weights, free, jobs, more, after, mark_at, day_at)
    select snapshot, 20, 1, 0, 0, true, '-infinity', now(), '-infinity' from fold where fold = made;
    update meta set system_identifier = (select system_identifier from pg_control_system());
    raise log 'queuetop: counters and cursors of schema % were made anew', current_schema();
end $$;
comment on function recount() is 'Makes counters and cursors anew from the jobs themselves: in another cluster transaction ids mean nothing';
