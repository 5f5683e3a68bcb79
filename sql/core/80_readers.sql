-- What consoles read: counts, rates, groups of errors. Exact and of one snapshot: the newest fold plus the deltas that it
-- did not see. Cheap at any number of jobs: nothing here counts rows of queue.

-- An OR, so that it is read by bitmap: each page once, however many sessions have written there in turn.
create or replace view new_delta as
with f as materialized (
    select snapshot, xid, at, pg_snapshot_xmax(snapshot) > pg_snapshot_xmax(pg_current_snapshot()) as restored from fold order by fold desc limit 1
)
select d.* from delta d
where d.xid >= (select pg_snapshot_xmax(snapshot) from f)
union all -- not OR: with statistics of full tables the planner would read all of delta
select d.* from delta d
where d.xid = any(array(select pg_snapshot_xip(snapshot) from f union all select xid from f))
  and d.xid < (select pg_snapshot_xmax(snapshot) from f)
union all -- restored into a cluster with lower numbers (see moved()): until the next step what came since the fold is told by its time
select d.* from delta d
where (select restored from f) and d.at > (select at from f) and d.xid < (select pg_snapshot_xmax(snapshot) from f)
  and d.xid <> all(array(select pg_snapshot_xip(snapshot) from f union all select xid from f));
comment on view new_delta is 'Deltas that the newest fold has not seen';

create or replace function overview()
returns table (queue text, scheduled bigint, ready bigint, retry bigint, running bigint, failed bigint, oldest timestamptz, pushed bigint,
    completed bigint, fails bigint, retried bigint, cancelled bigint, lost bigint, run_ms bigint, blocked bigint)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set jit = off as $$
#variable_conflict use_column
begin
    return query
    with s as (
        select queue, scheduled, ready, retry, failed, oldest, pushed, completed, fails, retried, cancelled, lost, run_ms, null::bigint as runs, blocked
        from counter where fold = (select fold from fold order by fold desc limit 1) and error_key is null
        union all
        select queue, scheduled, ready, retry, failed, case when pushed > 0 and ready > 0 then at end, pushed, completed, fails, retried,
               cancelled, lost, run_ms, null, blocked
        from new_delta where error_key is null
        union all
        select queue, null, null, null, null, null, null, null, null, null, null, null, null, cardinality(seqs), null from live where lock_key is not null
    ), q as (
        select queue, coalesce(sum(scheduled), 0)::bigint as scheduled, greatest(0, coalesce(sum(ready), 0) - coalesce(sum(runs), 0))::bigint as ready,
               coalesce(sum(retry), 0)::bigint as retry, greatest(0, least(coalesce(sum(runs), 0), sum(ready)))::bigint as running, -- leases may name jobs that are gone
               coalesce(sum(failed), 0)::bigint as failed,
               min(oldest) as oldest, coalesce(sum(pushed), 0)::bigint as pushed, coalesce(sum(completed), 0)::bigint as completed,
               coalesce(sum(fails), 0)::bigint as fails, coalesce(sum(retried), 0)::bigint as retried,
               coalesce(sum(cancelled), 0)::bigint as cancelled, coalesce(sum(lost), 0)::bigint as lost, coalesce(sum(run_ms), 0)::bigint as run_ms,
               coalesce(sum(blocked), 0)::bigint as blocked
        from s group by queue)
    select coalesce(q.queue, c.queue), coalesce(q.scheduled, 0), coalesce(q.ready, 0), coalesce(q.retry, 0), coalesce(q.running, 0),
           coalesce(q.failed, 0), case when q.ready > 0 then q.oldest end, coalesce(q.pushed, 0), coalesce(q.completed, 0),
           coalesce(q.fails, 0), coalesce(q.retried, 0), coalesce(q.cancelled, 0), coalesce(q.lost, 0), coalesce(q.run_ms, 0), coalesce(q.blocked, 0)
    from q full join queue_config c on c.queue = q.queue;
end $$;
comment on function overview() is 'One row a queue: exact counts by state, since when its oldest waiting job has been ready (a second old at most; with more than a '
    'thousand queues and priorities, as old as summing them can be had for a twentieth of the time), '
    'and what was ever pushed, completed, failed for good, retried. Costs the same at any number of jobs';

create or replace function rates()
returns table (queue text, at timestamptz, pushed bigint, completed bigint, fails bigint, ready bigint, oldest timestamptz)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select c.queue, f.at, sum(c.pushed)::bigint, sum(c.completed)::bigint, sum(c.fails)::bigint, sum(c.ready)::bigint, min(c.oldest)
    from (select f.fold, f.at from fold f
          where f.keep and f.at > now() - interval '10 min' and f.at < now() + interval '1 min'
            and (f.fold = (select k.fold from fold k where k.keep order by k.fold desc limit 1)
                 or not exists (select from queue_config offset 1000))
            and f.fold >= coalesce((select k.swept[5] from fold k where k.keep order by k.fold desc limit 1), 0)) f
    cross join lateral (select c.* from counter c where c.fold = f.fold and c.error_key is null offset 0) c
    group by c.queue, f.at order by f.at, c.queue
$$;
comment on function rates() is 'What had been pushed, completed and failed, what was ready or running and since when the oldest was ready, each 10 s of the last 10 minutes; with more than a thousand queues only the newest of these points. A fold ahead of the clock is of one that was set back since: it is left out';

create or replace function failure_groups()
returns table (queue text, error_key text, n bigint, first_at timestamptz, last_at timestamptz)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    with f as materialized (
        select * from fold where keep order by fold desc limit 1
    ), s as (
        select c.queue, c.error_key, c.failed, c.first_at, c.last_at from f join counter c using (fold) where c.error_key is not null
        union all
        select d.queue, d.error_key, d.failed, case when failed > 0 then d.at end, case when failed > 0 then d.at end from f, delta d
        where d.error_key is not null and d.xid >= pg_snapshot_xmax(f.snapshot)
        union all
        select d.queue, d.error_key, d.failed, case when failed > 0 then d.at end, case when failed > 0 then d.at end from f, delta d
        where d.error_key is not null and d.xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid) and d.xid < pg_snapshot_xmax(f.snapshot))
    select queue, error_key, sum(failed)::bigint, min(first_at), max(last_at) from s group by 1, 2 having sum(failed) > 0
$$;
comment on function failure_groups() is 'Failed jobs by queue and group of errors; the group * is all beyond the largest 2000';
