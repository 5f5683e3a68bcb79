-- What happened, minute by minute: one row a queue and minute, summed from the deltas between two kept folds (10 s).
-- keep_books() does that outside the scheduler's lock; if nobody calls it, the next kept fold does it. Each delta
-- counts once, by the rule of the folds, in the minute in which its transaction began. So a late commit, or deltas
-- that piled up while no scheduler lived, change a minute that is over.
--
-- Times are kept as histograms of 64 half-octave buckets: bucket 1 is below 1 ms, bucket n from 2^((n-2)/2) to
-- 2^((n-1)/2) ms. Only buckets that hold something are stored. A percentile read from them is within half an octave of
-- the truth.

create table if not exists minute (
    minute    timestamptz not null,
    queue     text collate "C" not null,
    pushed    bigint not null,
    completed bigint not null,
    fails     bigint not null,
    retried   bigint not null,
    cancelled bigint not null,
    lost      bigint not null,
    wait_ms   bigint not null,
    run_ms    bigint not null,
    wait_max  int,
    run_max   int,
    buckets   smallint[],
    waits     int[],
    runs      int[],
    constraint minute_pkey primary key (minute, queue)
) with (fillfactor = 80);
alter table minute set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
                        autovacuum_vacuum_cost_delay = 0);
comment on table minute is 'One row a queue and minute in which something happened; kept for the setting minute_keep';
comment on column minute.fails is 'Jobs that failed for good';
comment on column minute.lost is 'Attempts that ended with their worker';
comment on column minute.wait_ms is 'Sum over completed jobs, from ready to start';
comment on column minute.run_ms is 'Sum over completed jobs, from start to end';
comment on column minute.buckets is 'The buckets that hold something, ascending; waits and runs say how many, in the '
    'same order';

insert into setting (name, value, note) values
    ('minute_keep', '7 days', 'how long what happened in each minute is kept')
on conflict do nothing;

create or replace function bucket_bounds() returns float8[] language sql immutable parallel safe as
$$ select array(select 2 ^ (i / 2.0::float8) from generate_series(0, 62) i) $$;
comment on function bucket_bounds() is 'Where the buckets of times begin, in ms, from the second one on: half octaves '
    'from 1 ms to 24 days';

create or replace function roll_minutes(kept bigint) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set work_mem = '64MB'
    set enable_nestloop = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    h      fold;
    f      fold;
    lowest timestamptz := date_trunc('minute', now() - setting_interval('minute_keep'));
    n      int;
begin
    -- once: the second waits, and finds it rolled
    select * into h from fold where fold = kept and keep and not rolled for update;
    if not found then
        return 0;
    end if;
    update fold set rolled = true where fold = kept;
    select * into f from fold where keep and fold < kept order by fold desc limit 1;
    with unrolled as materialized ( -- as in fold_groups: what fold h saw and f did not
        select greatest(date_trunc('minute', at), lowest) as minute, queue, pushed, completed, fails, retried,
               cancelled, lost,
               run_ms, waits, runs
        from delta where xid >= pg_snapshot_xmax(f.snapshot) and pg_visible_in_snapshot(xid, h.snapshot)
          and xid <> h.xid
                         and error_key is null
        union all
        select greatest(date_trunc('minute', at), lowest), queue, pushed, completed, fails, retried, cancelled, lost,
               run_ms, waits, runs
        from delta where xid < pg_snapshot_xmax(f.snapshot) and pg_visible_in_snapshot(xid, h.snapshot) and xid <> h.xid
                         and xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid) and error_key is null
    ), sums as materialized (
        select row_number() over () * 128 as id, z.* from (
            select minute, queue, sum(pushed) as pushed, sum(completed) as completed, sum(fails) as fails,
                   sum(retried) as retried,
                   sum(cancelled) as cancelled, sum(lost) as lost, sum(run_ms) as run_ms
            from unrolled group by 1, 2
            having num_nulls(sum(pushed), sum(completed), sum(fails), sum(retried), sum(cancelled), sum(lost)) < 6) z
    ), bucket_parts as ( -- one number says which minute, queue and bucket: grouping by it takes half the time
        select id + 1 + width_bucket(ms, bucket_bounds()) as key, count(*) as n, 0::bigint as r, sum(ms) as wait_ms,
               max(ms) as wait_max, null::float8 as run_max
        from (select id, unnest(waits)::float8 as ms from unrolled d join sums using (minute, queue)
              where d.waits is not null) z group by 1
        union all
        select id + 1 + width_bucket(ms, bucket_bounds()), 0, count(*), 0, null, max(ms)
        from (select id, unnest(runs)::float8 as ms from unrolled d join sums using (minute, queue)
              where d.runs is not null) z group by 1
        union all
        select s.id + u.bucket, u.w, u.r, 0, null, null
        from sums s cross join lateral (select * from minute m where m.minute = s.minute and m.queue = s.queue
                                        offset 0) m,
             unnest(m.buckets, m.waits, m.runs) u (bucket, w, r)
    ), histograms as (
        select key / 128 * 128 as id, array_agg((key % 128)::smallint) as buckets, array_agg(waits) as waits,
               array_agg(runs) as runs,
               sum(wait_ms)::bigint as wait_ms, max(wait_max)::int as wait_max, max(run_max)::int as run_max
        from (select key, sum(n)::int as waits, sum(r)::int as runs, sum(wait_ms) as wait_ms, max(wait_max) as wait_max,
                     max(run_max) as run_max
              from bucket_parts group by key order by key) z
        group by 1)
    insert into minute as m (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms,
                             wait_max, run_max,
                             buckets, waits, runs)
    select minute, queue, coalesce(pushed, 0), coalesce(completed, 0), coalesce(fails, 0), coalesce(retried, 0),
           coalesce(cancelled, 0),
           coalesce(lost, 0), coalesce(wait_ms, 0), coalesce(run_ms, 0), wait_max, run_max, buckets, a.waits, a.runs
    from sums left join histograms a using (id)
    on conflict on constraint minute_pkey do update
    set pushed = m.pushed + excluded.pushed, completed = m.completed + excluded.completed,
    fails = m.fails + excluded.fails,
        retried = m.retried + excluded.retried, cancelled = m.cancelled + excluded.cancelled,
        lost = m.lost + excluded.lost,
        wait_ms = m.wait_ms + excluded.wait_ms, run_ms = m.run_ms + excluded.run_ms,
        wait_max = greatest(m.wait_max, excluded.wait_max),
        run_max = greatest(m.run_max, excluded.run_max), buckets = excluded.buckets, waits = excluded.waits,
        runs = excluded.runs;
    get diagnostics n = row_count;
    return n;
end $$;
comment on function roll_minutes(bigint) is 'Adds the deltas between a kept fold and the one before to their minutes, '
    'once; how many rows';

create or replace function trim_minutes(since timestamptz, "limit" int default 2000) returns timestamptz
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    last_gone timestamptz;
begin
    with outdated as materialized (
        select ctid, minute from minute
        where minute >= since and minute < date_trunc('minute', now() - setting_interval('minute_keep')) order by minute
        limit trim_minutes."limit"
    ), deleted as (
        delete from minute where ctid = any(array(select ctid from outdated)))
    select max(minute) into last_gone from outdated;
    return coalesce(last_gone, since);
end $$;
comment on function trim_minutes(timestamptz, int) is 'Deletes minutes that are kept no longer, from since on (nobody '
    'wades through what was deleted before); the last one';

create or replace function minutes(queues text[] default null, since timestamptz default now() - interval '1 hour',
    upto timestamptz default now())
returns table (queue text, minute timestamptz, pushed bigint, completed bigint, fails bigint, retried bigint,
               cancelled bigint, lost bigint,
    wait_ms bigint, run_ms bigint, wait_max int, run_max int)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select m.queue, m.minute, m.pushed, m.completed, m.fails, m.retried, m.cancelled, m.lost, m.wait_ms, m.run_ms,
           m.wait_max, m.run_max
    from minute m
    where m.minute >= date_trunc('minute', since) and m.minute < upto and (queues is null or m.queue = any(queues))
    order by m.minute, m.queue
$$;
comment on function minutes(text[], timestamptz, timestamptz) is 'What happened in each minute; minutes without a row '
    'had nothing. Up to 10 s behind';

create or replace function percentiles(queues text[] default null, since timestamptz default now() - interval '1 hour',
    upto timestamptz default now())
returns table (queue text, completed bigint, wait_p50 float8, wait_p90 float8, wait_p99 float8, wait_max int,
    run_p50 float8, run_p90 float8, run_p99 float8, run_max int)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    with chosen_minutes as materialized (
        select * from minute m
        where m.minute >= date_trunc('minute', since) and m.minute < upto and (queues is null or m.queue = any(queues))
    ), sums as (
        select queue, sum(completed)::bigint as completed, max(wait_max) as wait_max, max(run_max) as run_max
        from chosen_minutes group by 1
    ), bucket_sums as (
        select m.queue, u.bucket, sum(u.w) as w, sum(u.r) as r
        from chosen_minutes m, unnest(m.buckets, m.waits, m.runs) u (bucket, w, r) group by 1, 2
    ), cumulated as (
        select queue, what, bucket, n, sum(n) over (partition by queue, what order by bucket) as upto,
               sum(n) over (partition by queue, what) as total
        from bucket_sums b, lateral (values ('w', b.w), ('r', b.r)) v (what, n) where n > 0
    ), hit_buckets as ( -- within its bucket a value is taken to lie in proportion
        select queue, what, p, case when bucket = 1 then 0 else 2 ^ ((bucket - 2) / 2.0::float8) end as low,
               2 ^ ((bucket - 1) / 2.0::float8) as high, ((p * total - (c.upto - n)) / n)::float8 as part
        from cumulated c, unnest(array[0.5, 0.9, 0.99]) p where p * total > c.upto - n and p * total <= c.upto
    ), percentile_values as (
        select queue, what, p, low + (high - low) * part as ms from hit_buckets)
    select s.queue, s.completed,
           least(max(ms) filter (where what = 'w' and p = 0.5), s.wait_max),
           least(max(ms) filter (where what = 'w' and p = 0.9), s.wait_max),
           least(max(ms) filter (where what = 'w' and p = 0.99), s.wait_max), s.wait_max,
           least(max(ms) filter (where what = 'r' and p = 0.5), s.run_max),
           least(max(ms) filter (where what = 'r' and p = 0.9), s.run_max),
           least(max(ms) filter (where what = 'r' and p = 0.99), s.run_max), s.run_max
    from sums s left join percentile_values v on v.queue = s.queue
    group by s.queue, s.completed, s.wait_max, s.run_max order by s.queue
$$;
comment on function percentiles(text[], timestamptz, timestamptz) is 'How long completed jobs waited and ran, in ms: '
    'half of them, 90 and 99 of a hundred, the longest. Read from buckets of half an octave';
