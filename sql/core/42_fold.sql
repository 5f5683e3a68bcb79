-- A fold sums deltas up into counters. This file also deletes the deltas that have been summed up, and begins a new
-- count in another cluster.

create or replace function fold_sum(last fold, keep boolean, out made bigint, out queues int)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with deltas as materialized (
        select * from delta where xid >= pg_snapshot_xmax(last.snapshot) and xid <> pg_current_xact_id()
        union all
        select * from delta where xid < pg_snapshot_xmax(last.snapshot) and xid <> pg_current_xact_id()
                              and xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid)
    ), head as (
        insert into fold (at, snapshot, xid, keep)
        select clock_timestamp(), pg_current_snapshot(), pg_current_xact_id(), fold_sum.keep
        where exists (select from deltas)
        returning fold
    ), sums as (
        select queue, priority, sum(ready) as ready, sum(scheduled) as scheduled, sum(retry) as retry,
               sum(failed) as failed, sum(pushed) as pushed, sum(completed) as completed, sum(fails) as fails,
               sum(retried) as retried, sum(cancelled) as cancelled, sum(lost) as lost, sum(run_ms) as run_ms,
               sum(blocked) as blocked
        from (select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled,
                     lost, run_ms, blocked
              from counter where fold = last.fold and error_key is null
              union all
              select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled,
                     lost, run_ms, blocked
              from deltas where error_key is null) z
        group by 1, 2
    ), counters as (
        insert into counter (fold, queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried,
                             cancelled, lost, run_ms, blocked, oldest)
        select h.fold, s.queue, s.priority, coalesce(ready, 0), coalesce(scheduled, 0), coalesce(retry, 0),
               coalesce(failed, 0), coalesce(pushed, 0), coalesce(completed, 0), coalesce(fails, 0),
               coalesce(retried, 0), coalesce(cancelled, 0), coalesce(lost, 0), coalesce(run_ms, 0),
               coalesce(blocked, 0), case when ready > 0 then (
                   select least( -- the older of two jobs: the first that is uncut, and the first in a free lease
                       (select j.changed from queue j where j.queue = s.queue and j.priority = s.priority
                        and j.state = 'ready' and j.seq > c.seq[s.priority + 1] order by j.seq limit 1),
                       (select j.changed from ( -- OFFSET 0: one lease first, then its first job
                            -- || '' and + 0: by work_queue_queue. By the primary key, in the order of `lease`, it would
                            -- read the leases of all queues up to the first of this one, once for each queue
                            select w.seqs[1] as seq from work_queue w
                            where w.queue || '' = s.queue and w.lease + 0 >= c.low and w.lock_key is null
                              and w.priority = s.priority
                            order by w.lease + 0 limit 1 offset 0) w
                        cross join lateral (
                            select j.changed from queue j where j.queue = s.queue and j.priority = s.priority
                            and j.state = 'ready' and j.seq = w.seq offset 0) j))
                   from (select * from cursor c where c.queue = s.queue order by c.n desc limit 1 offset 0) c) end
        from sums s, head h)
    select h.fold, (select count(*) from (select from sums limit 2001) z) into made, queues from head h;
end $$;
comment on function fold_sum(fold, boolean) is 'Makes a new fold: the counters of the last fold plus the deltas since. '
    'It is one statement, so that the snapshot it stores is the one it read with. Its own deltas are left for the next '
    'fold (readers add them: fold.xid). made: NULL = there were no deltas; queues: 2001 = more than 2000';

create or replace function fold_now() returns boolean
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    last  fold;
    since timestamptz;
    keep  boolean;
    sums  record;
    begun timestamptz := clock_timestamp();
begin
    select * into last from fold order by fold desc limit 1;
    select at into since from fold where keep order by fold desc limit 1;
    -- one fold every 10 s is kept, and one after the clock was set back
    keep := (since > clock_timestamp() - interval '10 s' and since < clock_timestamp() + interval '1 s') is not true;
    select * into sums from fold_sum(last, keep);
    if sums.made is null then
        return false;
    end if;
    if keep or sums.queues <= 2000 then -- with thousands of queues it is done only every 10 s, because it takes time
        perform measure_chunks(sums.made, keep);
    end if;
    begun := begun + interval '25 ms';
    -- with ten thousand queues and priorities the next fold must not come after half a second
    if begun < clock_timestamp() then
        update fold set ms = 25 + 1000 * extract(epoch from clock_timestamp() - begun) where fold = sums.made;
    end if;
    if keep then
        perform fold_groups(sums.made);
        perform roll_minutes((select fold from fold where keep and fold < sums.made order by fold desc limit 1));
        perform check_counts(20000);
        perform sweep(sums.made);
    end if;
    return true;
end $$;
comment on function fold_now() is 'Sums the deltas since the last fold up into new counter rows. Every 10 s it also '
    'sums the groups of errors and deletes rows that nobody needs. false = there were no deltas';

create or replace function must_fold(grace interval default '0') returns boolean
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select (f.at < clock_timestamp() - greatest(500, 20 * f.ms) * interval '1 ms'
                  - least(greatest(grace, interval '0'), interval '1 day')
            or f.at > clock_timestamp() + interval '1 s')
        and (exists (select from delta where xid >= pg_snapshot_xmax(f.snapshot))
             or exists (select from delta where xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid)))
    from (select * from fold order by fold desc limit 1) f
$$;
comment on function must_fold(interval) is 'Whether it is time to fold: the last fold is older than half a second (or '
    'than 20 times the time that it took) plus grace, and there are deltas that it has not seen';

create or replace function try_fold() returns boolean
language plpgsql set search_path from current as $$
begin
    return fold_now();
exception when query_canceled or others then
    raise log 'queuetop: the counters were not folded, the next try comes in a minute: %', sqlerrm;
    update fold set ms = 3000 where fold = (select f.fold from fold f order by f.fold desc limit 1);
    return false;
end $$;
comment on function try_fold() is 'fold_now() that does not fail: if the fold raises an error, or is cancelled by the '
    'client because it takes too long, only the fold is rolled back, and the next try comes in a minute';

create or replace function fold_beside(grace interval default '0') returns boolean
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set enable_hashjoin = on as $$
declare
    trusted boolean := only_ours();
begin
    perform isolation_check();
    if not must_fold(grace) or moved() then -- in another cluster the scheduler first counts anew
        return false;
    end if;
    perform from scheduler where term = -1 for update skip locked;
    return found and must_fold(grace) and try_fold(); -- asked again: another session may have folded meanwhile
end $$;
comment on function fold_beside(interval) is 'Folds the counters if it is time to, outside the scheduler''s lock, so '
    'no lease waits for the fold; one session at a time does it. The active scheduler calls it beside its steps. A '
    'step does it itself if nobody has done it for the time grace. false = not done';

create or replace function fold_groups(made bigint) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    last fold;
    this fold;
begin
    select * into this from fold where fold = made;
    select * into last from fold where keep and fold < made order by fold desc limit 1;
    with deltas as (
        select queue, error_key, failed, at from delta
        where error_key is not null and xid >= pg_snapshot_xmax(last.snapshot)
          and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
        union all
        select queue, error_key, failed, at from delta
        where error_key is not null and xid < pg_snapshot_xmax(last.snapshot)
          and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
          and xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid)
    ), sums as (
        select queue, error_key, sum(failed) as failed, min(first_at) as first_at, max(last_at) as last_at,
               row_number() over (order by sum(failed) desc) as rank
        from (select queue, error_key, failed, first_at, last_at from counter
              where fold = last.fold and error_key is not null
              union all
              select queue, error_key, failed, case when failed > 0 then at end, case when failed > 0 then at end
              from deltas) z
        group by 1, 2 having sum(failed) <> 0)
    insert into counter (fold, queue, priority, error_key, failed, first_at, last_at)
    select made, queue, 0, case when rank <= 2000 then error_key else '*' end, sum(failed), min(first_at), max(last_at)
    from sums group by 1, 2, 4;
    delete from counter where fold = last.fold and error_key is not null;
end $$;
comment on function fold_groups(bigint) is 'Sums the groups of errors with each kept fold. Beyond the 2000 largest, '
    'all groups are one group *';

create or replace function measure_chunks(made bigint, shrink boolean) returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_nestloop = off set enable_mergejoin = off as $$
    with done as (
        select queue, now.completed - coalesce(before.completed, 0) as jobs,
               now.run_ms - coalesce(before.run_ms, 0) as run_ms
        from (select queue, sum(completed) as completed, sum(run_ms) as run_ms from counter
              where fold = made and error_key is null group by 1) now
        left join (select queue, sum(completed) as completed, sum(run_ms) as run_ms from counter
                   where fold = (select fold from fold where keep and fold < made order by fold desc limit 1)
                     and error_key is null
                   group by 1) before using (queue)
        where now.completed > coalesce(before.completed, 0)
    ), measured as (
        select queue, jobs, greatest(1, least(100, round(1000.0 * jobs / greatest(1, run_ms))))::int as chunk from done
    ), changed as (
        select m.queue, m.chunk
        from measured m
        cross join lateral (select chunk from cursor c where c.queue = m.queue order by n desc limit 1) c
        where case when shrink then c.chunk <> m.chunk else m.chunk >= 2 * c.chunk and m.jobs >= 2 * c.chunk end
        order by m.jobs desc limit 1000
    ), lists as (
        select array_agg(queue) as queues, array_agg(chunk) as chunks from changed having count(*) > 0)
    update fold set chunk_queues = l.queues, chunks = l.chunks from lists l where fold = made
$$;
comment on function measure_chunks(bigint, boolean) is 'Measures what the chunk of each queue should be, so that a '
    'lease is about a second of work, from the jobs that were completed since the last kept fold (10 s at most). '
    'Stores it in the fold for the 1000 busiest queues whose chunk differs; the next step takes it over. shrink false: '
    'only chunks that are much too small, because a backlog of short jobs should not wait 10 s';

create or replace function take_chunks(inout new tick)
language plpgsql set search_path from current as $$
declare
    last fold;
begin
    select * into last from fold f order by f.fold desc limit 1;
    if last.fold <= new.measured then
        return;
    end if;
    new.measured := last.fold;
    if last.chunk_queues is not null then
        insert into cursor (queue, seq, high, low, chunk)
        select c.queue, c.seq, c.high, c.low, m.chunk
        from unnest(last.chunk_queues, last.chunks) m (queue, chunk)
        cross join lateral (select * from cursor c where c.queue = m.queue order by c.n desc limit 1) c
        where c.chunk <> m.chunk;
    end if;
end $$;
comment on function take_chunks(tick) is 'For schedule(), once a second: cursors take over the chunks that the newest '
    'fold has measured. The fold can''t do it itself, because cursors change only under the scheduler lock';

create or replace function sweep_deltas(since fold, upto fold) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    if since.fold is null then
        delete from delta where pg_visible_in_snapshot(xid, upto.snapshot) and xid <> upto.xid;
    else
        delete from delta
        where xid >= pg_snapshot_xmax(since.snapshot) and pg_visible_in_snapshot(xid, upto.snapshot)
          and xid <> upto.xid;
        delete from delta
        where xid = any(array(select pg_snapshot_xip(since.snapshot)) || since.xid)
          and pg_visible_in_snapshot(xid, upto.snapshot) and xid <> upto.xid;
    end if;
end $$;
comment on function sweep_deltas(fold, fold) is 'Deletes the deltas that this fold has summed up. Those that the fold '
    'before had seen are deleted already';

create or replace function sweep(made bigint) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    last fold; -- the kept fold before made
    lo   bigint[];
    hi   bigint[];
    gone bigint;
    begun timestamptz := clock_timestamp();
begin
    select * into last from fold where keep and fold < made order by fold desc limit 1;
    perform sweep_deltas((select f from fold f where keep and fold < last.fold order by fold desc limit 1), last);
    delete from counter where fold > last.fold and fold < made;
    delete from fold where fold > last.fold and fold < made;
    lo := last.swept;
    for gone in select f.fold from fold f
                where f.keep and (f.at < now() - interval '10 min' or f.at > now() + interval '1 min')
                  and f.fold >= coalesce(lo[5], 0) and f.fold < last.fold order by f.fold limit 100 loop
        delete from counter where fold = gone;
        delete from fold where fold = gone;
        -- after a restore all of them are old: do not delete all at once
        exit when clock_timestamp() > begun + interval '200 ms';
    end loop;
    -- n + 0: by cursor_number, in the order of numbers; cursor_queue begins with the queue
    hi := array[(select max(tick) from tick), (select max(n + 0) from cursor), (select max(n) from mark),
                extract(epoch from trim_minutes(to_timestamp(coalesce(lo[4], 0))))::bigint,
                (select f.fold from fold f where f.fold >= coalesce(lo[5], 0) order by f.fold limit 1),
                (select known from tick order by tick desc limit 1)];
    delete from tick where tick >= lo[1] and tick < hi[1];
    delete from mark where n >= lo[3] and n < hi[3];
    delete from newcomer where n > coalesce(lo[6], 0) and n <= hi[6];
    -- not a join, which might read through the dead rows for each number
    delete from cursor c where c.n + 0 = any(array(
        select o.n
        from (select queue, max(n) as n from cursor where n + 0 > lo[2] and n + 0 <= hi[2] group by queue) w
        cross join lateral (select n from cursor o where o.queue = w.queue and o.n < w.n and o.n > lo[2]
                            union all
                            (select n from cursor o where o.queue = w.queue and o.n <= lo[2] order by n desc limit 1)
                           ) o));
    update fold set swept = hi where fold = made;
    delete from node where heartbeat < now() - setting_interval('node_keep')
        and not exists (select from live where live.lock_key = node.lock_key);
end $$;
comment on function sweep(bigint) is 'Deletes rows that no reader needs any more: summed deltas, folds between the '
    'kept ones, old ticks, marks, cursors and newcomers';

-- For a schema that was restored into another cluster. Transaction ids mean nothing there, so deltas, folds and ticks
-- of the old cluster can't be compared with new ones. recount() makes a new start at once: it sums the old fold and its
-- deltas, by the ids of the old cluster. That takes a time that grows with queues and deltas, not with jobs. Afterwards
-- check_counts() compares one queue after the other with its jobs, each in one snapshot, without a lock that others
-- wait for. The row for queue '' in table checked says since when; a queue that was checked before that time is still
-- to be counted, and readers learn it from shortfalls(). All of it is kept in tables: after a cancelled call, the next
-- call or another scheduler does the rest.
create or replace function recount_sums(last fold, kept fold) returns bigint
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    made bigint;
begin
    with gone as materialized ( -- all deltas that this snapshot sees are summed up below, whatever their xid was
        delete from delta returning *
    ), unseen as ( -- not seen by a fold; `at` shows which came in this cluster, with lower ids
        select g.* from gone g where g.error_key is null
        and (not pg_visible_in_snapshot(g.xid, last.snapshot) or g.xid = last.xid or g.at > last.at)
    ), head as (
        insert into fold (at, snapshot, xid, keep, rolled, swept)
        values (clock_timestamp(), pg_current_snapshot(), pg_current_xact_id(), true, true, kept.swept) returning fold
    ), terms as (
        select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost,
               run_ms, blocked
        from counter where fold = last.fold and error_key is null
        union all
        select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost,
               run_ms, blocked
        from unseen
    ), counters as (
        insert into counter (fold, queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried,
                             cancelled, lost, run_ms, blocked)
        select h.fold, queue, priority, coalesce(sum(ready), 0), coalesce(sum(scheduled), 0), coalesce(sum(retry), 0),
               coalesce(sum(failed), 0), coalesce(sum(pushed), 0), coalesce(sum(completed), 0), coalesce(sum(fails), 0),
               coalesce(sum(retried), 0), coalesce(sum(cancelled), 0), coalesce(sum(lost), 0), coalesce(sum(run_ms), 0),
               coalesce(sum(blocked), 0)
        from terms t, head h group by 1, 2, 3
    ), failures as (
        select queue, error_key, failed, first_at, last_at from counter where fold = kept.fold and error_key is not null
        union all
        select queue, error_key, failed, case when failed > 0 then at end, case when failed > 0 then at end from gone
        where error_key is not null
          and (not pg_visible_in_snapshot(xid, kept.snapshot) or xid = kept.xid or at > kept.at)
    ), groups as (
        insert into counter (fold, queue, priority, error_key, failed, first_at, last_at)
        select h.fold, queue, 0, error_key, sum(failed), min(first_at), max(last_at)
        from failures f, head h group by 1, 2, 4 having sum(failed) <> 0)
    select fold into made from head;
    return made;
end $$;
comment on function recount_sums(fold, fold) is 'For recount(): makes a fold of this cluster from the counters of the '
    'last fold, the groups of errors of the last kept fold, and the deltas that these had not seen';

create or replace function recount() returns void
language plpgsql set search_path from current as $$
declare
    last fold;
    kept fold;
    made bigint;
begin
    select * into last from fold order by fold desc limit 1;
    select * into kept from fold where keep order by fold desc limit 1;
    made := recount_sums(last, kept);
    insert into queue_config (queue)
    select distinct c.queue from counter c
    where c.fold = made and not exists (select from queue_config q where q.queue = c.queue)
    limit greatest(0, setting_int('max_queues') - (select count(*) from queue_config))
    on conflict do nothing;
    insert into mark (mark, older) values (0, '{}');
    insert into tick (snapshot, want, weights, free, jobs, more, after, mark_at, day_at, joining, known)
    select f.snapshot, 20, 1, 0, 0, true, '-infinity', now(), '-infinity', t.joining, t.known
    from fold f, (select * from tick order by tick desc limit 1) t where f.fold = made;
    update meta set system_identifier = (select system_identifier from pg_control_system());
    insert into checked (queue, at) values ('', clock_timestamp()) on conflict (queue) do update set at = excluded.at;
    raise log 'queuetop: counters of schema % are counted anew: this is another cluster', current_schema();
    while coalesce(check_counts(20000), 0) = 10 and clock_timestamp() < now() + interval '300 ms' loop
        null; -- if there are few jobs, this call counts all of them
    end loop;
end $$;
comment on function recount() is 'Begins to make the counters anew, in another cluster: makes sums and a first tick at '
    'once; then every queue is counted, in portions (check_counts). The scheduler looks at each queue from its first '
    'job on (settle)';
