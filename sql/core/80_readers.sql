-- What consoles read: counts, rates, groups of errors. The figures are exact and of one snapshot: the newest fold plus
-- the deltas that it did not see. They cost the same at any number of jobs: nothing here counts rows of queue.

create or replace view new_delta as
with f as materialized (
    select snapshot, xid, at, pg_snapshot_xmax(snapshot) > pg_snapshot_xmax(pg_current_snapshot()) as restored
    from fold order by fold desc limit 1
)
select d.* from delta d
where d.xid >= (select pg_snapshot_xmax(snapshot) from f)
union all -- not OR: with statistics of full tables the planner would read all of delta
select d.* from delta d
where d.xid = any(array(select pg_snapshot_xip(snapshot) from f union all select xid from f))
  and d.xid < (select pg_snapshot_xmax(snapshot) from f)
union all -- restored into a cluster with lower ids (see moved()): until the next step the time decides what is new
select d.* from delta d
where (select restored from f) and d.at > (select at from f) and d.xid < (select pg_snapshot_xmax(snapshot) from f)
  and d.xid <> all(array(select pg_snapshot_xip(snapshot) from f union all select xid from f));
comment on view new_delta is 'Deltas that the newest fold has not seen';

create or replace function overview()
returns table (queue text, scheduled bigint, ready bigint, retry bigint, running bigint, failed bigint,
    oldest timestamptz, pushed bigint, completed bigint, fails bigint, retried bigint, cancelled bigint, lost bigint,
    run_ms bigint, blocked bigint)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
begin
    return query
    with part as (
        select queue, scheduled, ready, retry, failed, oldest, pushed, completed, fails, retried, cancelled, lost,
               run_ms, blocked, null::bigint as runs
        from counter where fold = (select fold from fold order by fold desc limit 1) and error_key is null
        union all
        select queue, scheduled, ready, retry, failed, case when pushed > 0 and ready > 0 then at end, pushed,
               completed, fails, retried, cancelled, lost, run_ms, blocked, null
        from new_delta where error_key is null
        union all
        select queue, null, null, null, null, null, null, null, null, null, null, null, null, null, cardinality(seqs)
        from live where lock_key is not null
    ), total as (
        select queue, coalesce(sum(scheduled), 0)::bigint as scheduled, sum(ready)::bigint as ready,
               coalesce(sum(retry), 0)::bigint as retry, coalesce(sum(runs), 0)::bigint as runs,
               coalesce(sum(failed), 0)::bigint as failed, min(oldest) as oldest,
               coalesce(sum(pushed), 0)::bigint as pushed, coalesce(sum(completed), 0)::bigint as completed,
               coalesce(sum(fails), 0)::bigint as fails, coalesce(sum(retried), 0)::bigint as retried,
               coalesce(sum(cancelled), 0)::bigint as cancelled, coalesce(sum(lost), 0)::bigint as lost,
               coalesce(sum(run_ms), 0)::bigint as run_ms, coalesce(sum(blocked), 0)::bigint as blocked
        from part group by queue)
    select coalesce(t.queue, c.queue), coalesce(t.scheduled, 0), coalesce(w.waits, 0), coalesce(t.retry, 0),
           greatest(0, least(t.runs, t.ready)), -- leases may name jobs that are gone
           coalesce(t.failed, 0), case when w.waits > 0 then t.oldest end, coalesce(t.pushed, 0),
           coalesce(t.completed, 0), coalesce(t.fails, 0), coalesce(t.retried, 0), coalesce(t.cancelled, 0),
           coalesce(t.lost, 0), coalesce(t.run_ms, 0), coalesce(t.blocked, 0)
    from total t full join queue_config c on c.queue = t.queue
    cross join lateral (select greatest(0, t.ready - t.runs) as waits) w;
end $$;
comment on function overview() is 'One row a queue: exact counts by state; since when its oldest waiting job has been '
    'ready (up to a second old; with more than a thousand queues and priorities older, so that the sum takes at most a '
    'twentieth of the time); and how many jobs were ever pushed, completed, failed for good, retried. Costs the same '
    'at any number of jobs';

create or replace function rates()
returns table (queue text, at timestamptz, pushed bigint, completed bigint, fails bigint, ready bigint,
    oldest timestamptz)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select c.queue, f.at, sum(c.pushed)::bigint, sum(c.completed)::bigint, sum(c.fails)::bigint, sum(c.ready)::bigint,
           min(c.oldest)
    from (select f.fold, f.at from fold f
          where f.keep and f.at > now() - interval '10 min' and f.at < now() + interval '1 min'
            and (f.fold = (select k.fold from fold k where k.keep order by k.fold desc limit 1)
                 or not exists (select from queue_config offset 1000))
            and f.fold >= coalesce((select k.swept[5] from fold k where k.keep order by k.fold desc limit 1), 0)) f
    cross join lateral (select c.* from counter c where c.fold = f.fold and c.error_key is null offset 0) c
    group by c.queue, f.at order by f.at, c.queue
$$;
comment on function rates() is 'For each 10 s of the last 10 minutes: how many jobs had been pushed, completed and '
    'failed, how many were ready or running, and since when the oldest was ready. With more than a thousand queues '
    'only the newest of these points. A fold from a time ahead of now is left out: the clock was set back since';

create or replace function failure_groups()
returns table (queue text, error_key text, n bigint, first_at timestamptz, last_at timestamptz)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    with base as materialized (
        select * from fold where keep order by fold desc limit 1
    ), part as (
        select c.queue, c.error_key, c.failed, c.first_at, c.last_at
        from base join counter c using (fold) where c.error_key is not null
        union all
        select d.queue, d.error_key, d.failed, z.at, z.at
        from base b cross join lateral deltas_since(b.snapshot, b.xid) d
        cross join lateral (select case when d.failed > 0 then d.at end as at) z where d.error_key is not null)
    select queue, error_key, sum(failed)::bigint, min(first_at), max(last_at)
    from part group by 1, 2 having sum(failed) > 0
$$;
comment on function failure_groups() is 'Failed jobs by queue and group of errors. The group * is the sum of all '
    'groups beyond the largest 2000';
