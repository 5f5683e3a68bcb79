-- Limits of queues: rate limits (token buckets) and concurrency limits. Everything in this file runs under the
-- scheduler lock, inside schedule(). cut() and cut_hard() leave out queues with limits.
--
-- A token bucket, exact over any number of workers: in a window of w seconds at most burst + rate * w jobs start. A job
-- starts when it is claimed. level(t) is at most burst, grows by rate, and falls by 1 when a job STARTS. Jobs that are
-- cut but not started have their tokens reserved: a job is cut only while level - (jobs cut and not started) >= 1. So
-- workers never find more free jobs than the bucket holds.
-- bucket.seqs holds the jobs that were cut. At the next look each of them is still free, or claimed (its lease says
-- when), or gone. If it is gone, the deltas of its queue give the latest time at which it can have started. If that is
-- later than its real start, the queue runs a little slower; the limit is never exceeded. Each look that changed
-- something appends one row and deletes the row before by its number.

create index if not exists queue_config_limited on queue_config (queue)
    where rate is not null or max_running is not null;
-- A cut asks for the least and for the greatest weight, to find out whether the weights differ.
create index if not exists queue_config_weight on queue_config (weight);

alter table tick add column if not exists limited_at timestamptz;
comment on column tick.limited_at is 'When the next token comes for a job that waits. Then the queues with limits are '
    'looked at again';

create table if not exists bucket (
    n     bigint generated always as identity,
    queue text collate "C" not null,
    at    timestamptz not null,
    level float8 not null,
    seqs  bigint[] not null
);
create unique index if not exists bucket_queue on bucket (queue, n desc);
alter table bucket replica identity using index bucket_queue;
alter table bucket set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
comment on table bucket is 'Token buckets of queues with a rate limit; the newest row of a queue counts';
comment on column bucket.level is 'Tokens at that time; each start takes one';
comment on column bucket.seqs is 'Jobs that were cut and had not started; their tokens are reserved';

create or replace function bucket_levels(t tick, queues text[])
returns table (queue text, n bigint, at timestamptz, level float8, rate float8, seqs bigint[], changed boolean)
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off as $$
    with clock as materialized ( -- not now(): after a wait for the scheduler lock, now() may be before the last look
        select clock_timestamp() as time
    ), last as materialized (
        select c.queue, c.rate::float8 as rate, k.burst, b.n, clock.time, least(b.at, clock.time) as at,
               least(coalesce(b.level, k.burst), k.burst) as level, coalesce(b.seqs, '{}') as seqs
        from clock cross join queue_config c
        cross join lateral (select coalesce(c.burst, greatest(1, floor(c.rate)))::float8 as burst) k
        left join lateral (select * from bucket b where b.queue = c.queue order by b.n desc limit 1) b on true
        where c.rate is not null and c.queue = any(queues)
    ), lease as materialized (
        select w.queue, u.seq, w.lock_key is null as free, w.started from live w cross join unnest(w.seqs) u (seq)
        where w.queue in (select last.queue from last where last.seqs <> '{}')
    ), reserved as materialized (
        select c.queue, c.at, c.time, c.rate, u.seq, coalesce(l.free, false) as free, l.started
        from last c cross join unnest(c.seqs) u (seq) left join lease l on l.queue = c.queue and l.seq = u.seq
    ), answer as materialized ( -- the answers that ended the other jobs: these cannot have started later
        select d.queue, max(case when d.runs is null then d.at
                                 else d.at - (select min(r) - 1 from unnest(d.runs) r) * interval '1 ms' end) as at
        from deltas_since(t.snapshot, t.xid) d
        where d.queue in (select r.queue from reserved r where not r.free and r.started is null)
          and d.error_key is null
        group by d.queue
    ), started as (
        select r.queue, r.rate,
               extract(epoch from greatest(coalesce(r.started, a.at, r.time), r.at) - r.at)::float8 as x
        from reserved r left join answer a on a.queue = r.queue where not r.free
    ), charged as ( -- in how many seconds after the last look the bucket would be full again
        select z.queue, count(*) as n, max(z.x + z.rank / z.rate) as full_at
        from (select s.*, row_number() over (partition by s.queue order by s.x desc) as rank from started s) z
        group by z.queue
    ), left_free as (
        select queue, array_agg(seq) as seqs from reserved where free group by queue
    )
    select c.queue, c.n, c.time,
           least(c.burst, c.burst - c.rate * (greatest((c.burst - c.level + coalesce(f.n, 0)) / c.rate, f.full_at)
                                              - extract(epoch from c.time - c.at)::float8)),
           c.rate, coalesce(r.seqs, '{}'), c.n is null or f.n > 0
    from last c left join charged f on f.queue = c.queue left join left_free r on r.queue = c.queue
$$;
comment on function bucket_levels(tick, text[]) is 'The token buckets of these queues now. Jobs that have started '
    'since the last look are charged at the time they started';

create or replace function bucket_settle(queue text) returns void
language sql set search_path from current as $$
    with now as materialized (
        select b.* from (select * from tick order by tick desc limit 1) t,
        bucket_levels(t, array[bucket_settle.queue]) b
    ), old as (
        delete from bucket b where b.queue = bucket_settle.queue and b.n = any(array(select now.n from now)))
    insert into bucket (queue, at, level, seqs) select queue, at, level, seqs from now
$$;
comment on function bucket_settle(text) is 'Computes a bucket up to now, before its rate changes';

create or replace function bucket_forget(queue text, seqs bigint[]) returns void
language sql set search_path from current as $$
    with last as materialized (
        select * from bucket b where b.queue = bucket_forget.queue order by n desc limit 1
    ), old as (
        delete from bucket b where b.queue = bucket_forget.queue
        and b.n = any(array(select l.n from last l where l.seqs && bucket_forget.seqs)))
    insert into bucket (queue, at, level, seqs)
    select l.queue, l.at, l.level, array(select unnest(l.seqs) except select unnest(bucket_forget.seqs))
    from last l where l.seqs && bucket_forget.seqs
$$;
comment on function bucket_forget(text, bigint[]) is 'Returns the tokens of these jobs, which were cut and will not '
    'start';

create or replace function limit_shares(t tick, queues text[])
returns table (queue text, free int, low bigint, seq bigint[], high bigint[], need int, room int, slots int,
    max_tries smallint, history "char", lease_time interval, run_timeout interval,
    bucket bigint, at timestamptz, level float8, rate float8, reserved bigint[], changed boolean)
language sql stable as $$
    with standing as materialized (
        select w.queue, coalesce(sum(cardinality(w.seqs)) filter (where w.lock_key is null), 0)::int as free,
               sum(cardinality(w.seqs))::int as jobs, min(w.lease) filter (where w.lock_key is null) as low
        from live w where w.queue in (select unnest(queues)) group by w.queue
    ), level as materialized (
        select * from bucket_levels(t, queues)
    )
    select z.queue, z.free, z.low, z.seq, z.high, greatest(0, least(z.room, z.share - z.free)), z.room, z.slots,
           z.max_tries, z.history, z.lease_time, z.run_timeout, z.n, z.at, z.level, z.rate, z.seqs, z.changed
    from (
        select c.queue, coalesce(s.free, 0) as free, s.low, r.seq, case when r.lowered then r.high end as high, l.*,
               b.n, b.at, b.level, b.rate, b.seqs, b.changed, c.max_running - coalesce(s.jobs, 0) as slots,
               greatest(1, ceil(t.want * c.weight / t.weights))::int as share,
               greatest(0, least(c.max_running - coalesce(s.jobs, 0),
                                 floor(b.level)::int - greatest(coalesce(s.free, 0), cardinality(b.seqs)))) as room
        from queue_config c cross join lateral lease_terms(c) l cross join lateral newest_cursor(c.queue) r
        left join standing s on s.queue = c.queue
        left join level b on b.queue = c.queue
        where (c.rate is not null or c.max_running is not null) and c.paused_at is null and c.queue = any(queues)) z
$$;
comment on function limit_shares(tick, text[]) is 'For cut_limited(): for each of these queues its free jobs and its '
    'first free lease, its cursor (high: NULL unless it was lowered), room: how many jobs the limits allow (slots: by '
    'max_running), need: how many to cut, and its bucket now. No SET, so that it is inlined';

create or replace function limited_jobs(queue text, seq bigint[], high bigint[], need int, leased bigint[])
returns table (priority smallint, seq bigint, lease_timeout interval, rank bigint, taken boolean, more boolean,
    upto bigint)
language sql stable as $$
    select c.priority, c.seq, c.lease_timeout, c.rank, c.taken, c.fresh and not c.taken or c.over is true,
           max(c.seq) filter (where c.seq < coalesce(c.left_from, 9223372036854775807)) over (partition by c.priority)
    from (
        select b.*, min(b.seq) filter (where b.fresh and not b.taken) over (partition by b.priority) as left_from
        from (
            select a.*, a.fresh and a.rank <= need as taken
            from (
                select j.*, v.fresh, row_number() over (partition by v.fresh order by j.priority, j.seq) as rank
                from jobs_beyond(limited_jobs.queue, limited_jobs.seq, high, need + 1,
                                 coalesce(cardinality(leased), 0)) j
                cross join lateral (
                    select leased[width_bucket(j.seq, leased)] is distinct from j.seq and j.over is not true as fresh) v
            ) a) b) c
$$;
comment on function limited_jobs(text, bigint[], bigint[], int, bigint[]) is 'For cut_limited(): the next jobs of a '
    'queue, one more than is needed. leased: the jobs in leases, in order. taken: the job is cut now; more: it is not, '
    'or it has expired; upto: up to which number its priority is cut now. No SET, so that it is inlined';

create or replace function cut_limited(t tick, queues text[], out jobs int, out free_jobs int, out free_before int,
    out first bigint, out more boolean, out wait_ms int, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with share as materialized (
        select * from limit_shares(t, queues)
    ), leased as materialized ( -- jobs in leases, of queues where a scan may meet them
        select l.queue, array_agg(u.seq order by u.seq) as seqs from live l cross join unnest(l.seqs) u (seq)
        where l.queue in (select s.queue from share s where s.high is not null) group by l.queue
    ), job as materialized (
        select s.queue, j.*
        from share s left join leased l on l.queue = s.queue
        cross join lateral limited_jobs(s.queue, s.seq, s.high, s.need, l.seqs) j
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), z.* from (
            select j.rank, j.queue, j.priority, array[j.seq], coalesce(j.lease_timeout, s.lease_time), s.max_tries,
                   s.history, s.run_timeout
            from job j join share s on s.queue = j.queue where j.taken
            order by j.rank, hashtextextended(j.queue, t.tick)) z
        returning lease, queue, seqs[1] as seq
    ), got as materialized (
        select queue, min(lease) as low, array_agg(seq) as seqs from made group by queue
    ), seen as materialized (
        select queue, count(*) filter (where taken)::int as n, bool_or(more) as more from job group by queue
    ), cut_to as (
        select j.queue, j.priority, max(j.upto) as upto, min(coalesce(s.low, g.low, l)) as low
        from job j join share s on s.queue = j.queue left join got g on g.queue = j.queue cross join next_lease() l
        where j.upto is not null group by 1, 2
    ), moved as materialized (
        select advance_cursor(array_agg(queue), array_agg(priority), array_agg(upto), array_agg(low)) from cut_to
    ), charged as materialized ( -- buckets that have changed
        select s.*, g.seqs from share s left join got g on g.queue = s.queue
        where s.at is not null and (s.changed or g.queue is not null)
    ), old as (
        delete from bucket b using charged c cross join lateral (
            select o.ctid as at from bucket o where o.queue = c.queue and o.n = c.bucket offset 0) o
        where b.ctid = o.at
    ), new as (
        insert into bucket (queue, at, level, seqs)
        select c.queue, c.at, c.level, c.reserved || coalesce(c.seqs, '{}') from charged c
    )
    select coalesce(sum(n.n), 0), coalesce(sum(s.free), 0), least(min(s.low), min(g.low)),
           coalesce(bool_or(n.more and s.room > n.n), false),
           min(least(60000, 1000 * (greatest(s.free, cardinality(s.reserved)) + n.n + 1 - s.level) / s.rate
                           - 1000 * extract(epoch from clock_timestamp() - s.at)))
               filter (where n.more and s.room = n.n and s.slots is distinct from n.n),
           coalesce(array_agg(s.queue) filter (where n.more), '{}')
    from (select count(*) from moved) m, share s
    left join seen n on n.queue = s.queue left join got g on g.queue = s.queue
    into jobs, free_before, first, more, wait_ms, remaining;
    free_jobs := free_before + jobs;
    wait_ms := case when wait_ms is not null then greatest(1, wait_ms + 1) end;
end $$;
comment on function cut_limited(tick, text[]) is 'cut() for those of these queues that have a rate or a concurrency '
    'limit, one job a lease. first: the lowest free lease of these queues; more: the limits allow more than the share '
    'of this step; wait_ms: when the next token comes for a job that waits; remaining: the queues with uncut jobs';

create or replace function limited_among(queues text[]) returns text[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
    select array(select distinct c.queue from unnest(queues) q join queue_config c on c.queue = q
                 where c.rate is not null or c.max_running is not null)
$$;
comment on function limited_among(text[]) is 'Those of these queues that have a rate or a concurrency limit';

create or replace function next_limited(after text, looks int, out queues text[], out upto text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    queues := array(select c.queue from queue_config c where (c.rate is not null or c.max_running is not null)
                    and c.queue > after order by c.queue limit looks);
    upto := case when cardinality(queues) = looks then queues[looks] end;
end $$;
comment on function next_limited(text, int) is 'The next queues with limits in the order of names. upto: the last of '
    'them, NULL = there are no more';

create or replace function limits_left(inout new tick, k record, queues text[], passed boolean)
language plpgsql set search_path from current as $$
declare
    most constant int := 500;
begin
    new.limited := array((select unnest(new.limited) except select unnest(queues)) union select unnest(k.remaining));
    -- the names are being gone through; if the list is more than full, begin again afterwards
    if new.limits is not null then
        new.limited := new.limited[:most];
        new.limited_at := clock_timestamp();
    elsif cardinality(new.limited) >= most then
        new.limits := '';
        new.limited := '{}';
        new.limited_at := clock_timestamp() + case when passed then interval '200 ms' else '0' end;
    elsif passed then -- each queue in the list has a time of its own: the next look finds the first
        new.limited_at := clock_timestamp();
    end if;
end $$;
comment on function limits_left(tick, record, text[], boolean) is 'For step_limits(): which queues have to be looked '
    'at again, and when. k: the result of cut_limited() for these queues; passed: the last name has been reached';

create or replace function step_limits(t tick, inout new tick, woken text[], whole boolean,
    out cut int, out more boolean, out wrote boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    -- whether to look at the queues that wait
    again  boolean := whole or coalesce(t.limited_at <= clock_timestamp(), false);
    passed boolean := false;
    queues text[] := '{}';
    part   record;
    k      record;
begin
    cut := 0; more := false; wrote := false;
    if not (again and (new.limited <> '{}' or new.limits is not null or new.limited_at is not null)
            or woken is not null)
       or not exists (select from queue_config c where c.rate is not null or c.max_running is not null) then
        return;
    end if;
    queues := limited_among(woken);
    if cardinality(queues) > 500 then
        new.limited := queues[:500]; -- too many for one step: go through all queues with limits
        new.limits := coalesce(new.limits, '');
        queues := '{}';
    end if;
    if again and new.limits is null then
        queues := queues || new.limited;
    elsif again then
        select * into part from next_limited(new.limits, 500);
        queues := queues || part.queues;
        new.limits := part.upto;
        passed := part.upto is null;
    end if;
    select * into k from cut_limited(new, queues);
    cut := k.jobs;
    more := k.more;
    new.free := least(new.free, k.first);
    new.jobs := new.jobs + k.jobs;
    new.filled := new.filled + case when whole then k.jobs else 0 end;
    new.more := new.more or k.more;
    new.limited_at := least(case when not again then t.limited_at end,
                            clock_timestamp() + k.wait_ms * interval '1 ms');
    new := limits_left(new, k, queues, passed);
    wrote := k.jobs > 0 or (new.limited_at, new.limited, new.limits)
                           is distinct from (t.limited_at, t.limited, t.limits);
end $$;
comment on function step_limits(tick, tick, text[], boolean) is 'For schedule(): cuts the queues with limits: those in '
    'which something has changed (woken) and, if a token is due or all are to be cut (whole), those that wait. If more '
    'than 500 wait, the steps take them in turn';
