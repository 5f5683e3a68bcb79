-- What happened, minute by minute: one row for each queue and minute, summed from the deltas between two kept folds (10
-- s). keep_books() does that outside the scheduler's lock; if nobody calls it, the next kept fold does it. Each delta
-- counts once, by the rule of the folds, in the minute in which its transaction began. So a late commit, or deltas that
-- were not summed up for a while because no scheduler lived, may still change a minute that is over.
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
    ready     bigint not null default 0,
    constraint minute_pkey primary key (minute, queue)
) with (fillfactor = 80);
alter table minute set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
                        autovacuum_vacuum_cost_delay = 0);
create index if not exists minute_fails on minute (minute) where fails > 0; -- see failed_within_hour()
comment on table minute is 'One row a queue and minute in which something happened; kept for the setting minute_keep';
comment on column minute.fails is 'Jobs that failed for good';
comment on column minute.lost is 'Attempts that ended with their worker';
comment on column minute.wait_ms is 'Sum over completed jobs, from ready to start';
comment on column minute.run_ms is 'Sum over completed jobs, from start to end';
comment on column minute.ready is 'How many ready and running jobs the queue gained (or lost, if negative) in the '
    'minute. The number at a past time is the present number less these';
comment on column minute.buckets is 'The buckets that hold something, ascending; waits and runs say how many, in the '
    'same order';

insert into setting (name, value, note) values
    ('minute_keep', '7 days', 'how long what happened in each minute is kept')
on conflict do nothing;

create or replace function bucket_bounds() returns float8[] language sql immutable parallel safe as
$$ select array(select 2 ^ (i / 2.0::float8) from generate_series(0, 62) i) $$;
comment on function bucket_bounds() is 'Where the buckets of times begin, in ms, from the second one on: half octaves '
    'from 1 ms to 24 days';

create or replace function unrolled(last fold, this fold, lowest timestamptz)
returns table (minute timestamptz, queue text, pushed int, completed int, fails int, retried int, cancelled int,
               lost int, run_ms bigint, waits int[], runs int[], ready int)
language sql stable as $$
    select greatest(date_trunc('minute', at), lowest), queue, pushed, completed, fails, retried, cancelled, lost,
           run_ms, waits, runs, ready
    from delta
    where xid >= pg_snapshot_xmax(last.snapshot) and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
      and error_key is null
    union all
    select greatest(date_trunc('minute', at), lowest), queue, pushed, completed, fails, retried, cancelled, lost,
           run_ms, waits, runs, ready
    from delta
    where xid < pg_snapshot_xmax(last.snapshot) and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
      and xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid) and error_key is null
$$;
comment on function unrolled(fold, fold, timestamptz) is 'The deltas, as in fold_groups(), that one fold saw and the '
    'one before did not, each with its minute, lowest at least. Part of the caller''s plan: no SET';

create or replace function minute_sums(last fold, this fold, lowest timestamptz)
returns table (minute timestamptz, queue text, pushed bigint, completed bigint, fails bigint, retried bigint,
               cancelled bigint, lost bigint, wait_ms bigint, run_ms bigint, wait_max int, run_max int,
               buckets smallint[], waits int[], runs int[], ready bigint)
language sql stable as $$
    with deltas as materialized (
        select d.* from unrolled(last, this, lowest) d
    ), sums as materialized (
        select row_number() over () * 128 as id, z.* from (
            select minute, queue, sum(pushed) as pushed, sum(completed) as completed, sum(fails) as fails,
                   sum(retried) as retried, sum(cancelled) as cancelled, sum(lost) as lost, sum(run_ms) as run_ms,
                   sum(ready) as ready
            from deltas group by 1, 2
            having num_nulls(sum(pushed), sum(completed), sum(fails), sum(retried), sum(cancelled), sum(lost),
                             sum(ready)) < 7) z
    ), bucket_parts as ( -- one number says which minute, queue and bucket: grouping by it takes half the time
        select id + 1 + width_bucket(ms, bucket_bounds()) as key, count(*) as n, 0::bigint as r, sum(ms) as wait_ms,
               max(ms) as wait_max, null::float8 as run_max
        from (select s.id, unnest(d.waits)::float8 as ms from deltas d join sums s using (minute, queue)
              where d.waits is not null) z group by 1
        union all
        select id + 1 + width_bucket(ms, bucket_bounds()), 0, count(*), 0, null, max(ms)
        from (select s.id, unnest(d.runs)::float8 as ms from deltas d join sums s using (minute, queue)
              where d.runs is not null) z group by 1
        union all
        select s.id + u.bucket, u.w, u.r, 0, null, null
        from sums s
        cross join lateral (select * from minute m where m.minute = s.minute and m.queue = s.queue offset 0) m,
             unnest(m.buckets, m.waits, m.runs) u (bucket, w, r)
    ), histograms as (
        select key / 128 * 128 as id, array_agg((key % 128)::smallint) as buckets, array_agg(waits) as waits,
               array_agg(runs) as runs, sum(wait_ms)::bigint as wait_ms, max(wait_max)::int as wait_max,
               max(run_max)::int as run_max
        from (select key, sum(n)::int as waits, sum(r)::int as runs, sum(wait_ms) as wait_ms, max(wait_max) as wait_max,
                     max(run_max) as run_max
              from bucket_parts group by key order by key) z
        group by 1)
    select s.minute, s.queue, coalesce(s.pushed, 0), coalesce(s.completed, 0), coalesce(s.fails, 0),
           coalesce(s.retried, 0), coalesce(s.cancelled, 0), coalesce(s.lost, 0), coalesce(h.wait_ms, 0),
           coalesce(s.run_ms, 0)::bigint, h.wait_max, h.run_max, h.buckets, h.waits, h.runs, coalesce(s.ready, 0)
    from sums s left join histograms h using (id)
$$;
comment on function minute_sums(fold, fold, timestamptz) is 'What the deltas between two folds add to their minutes; '
    'the histograms with what the minutes hold already. Part of the caller''s plan: no SET';

create or replace function roll_minutes(kept bigint) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set work_mem = '64MB' set enable_nestloop = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    this   fold;
    last   fold;
    lowest timestamptz := date_trunc('minute', now() - setting_interval('minute_keep'));
    n      int;
begin
    -- once: the second waits, and finds it rolled
    select * into this from fold where fold = kept and keep and not rolled for update;
    if not found then
        return 0;
    end if;
    update fold set rolled = true where fold = kept;
    select * into last from fold where keep and fold < kept order by fold desc limit 1;
    insert into minute as m (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms,
                             wait_max, run_max, buckets, waits, runs, ready)
    select z.* from minute_sums(last, this, lowest) z
    on conflict on constraint minute_pkey do update
    set pushed = m.pushed + excluded.pushed, completed = m.completed + excluded.completed,
        fails = m.fails + excluded.fails, retried = m.retried + excluded.retried,
        cancelled = m.cancelled + excluded.cancelled, lost = m.lost + excluded.lost,
        wait_ms = m.wait_ms + excluded.wait_ms, run_ms = m.run_ms + excluded.run_ms,
        wait_max = greatest(m.wait_max, excluded.wait_max), run_max = greatest(m.run_max, excluded.run_max),
        buckets = excluded.buckets, waits = excluded.waits, runs = excluded.runs, ready = m.ready + excluded.ready;
    get diagnostics n = row_count;
    return n;
end $$;
comment on function roll_minutes(bigint) is 'Adds the deltas between a kept fold and the kept fold before it to their '
    'minutes, once. Returns how many rows were written';

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
comment on function trim_minutes(timestamptz, int) is 'Deletes minutes that are older than the setting minute_keep, '
    'from since on, which spares the next call the rows that earlier calls deleted. Returns the last minute deleted';

create or replace function minutes(queues text[] default null, since timestamptz default now() - interval '1 hour',
    upto timestamptz default now())
returns table (queue text, minute timestamptz, pushed bigint, completed bigint, fails bigint, retried bigint,
               cancelled bigint, lost bigint,
    wait_ms bigint, run_ms bigint, wait_max int, run_max int)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select m.queue, m.minute, m.pushed, m.completed, m.fails, m.retried, m.cancelled, m.lost, m.wait_ms, m.run_ms,
           m.wait_max, m.run_max
    from minute m
    where m.minute >= date_trunc('minute', since) and m.minute < upto and (queues is null or m.queue = any(queues))
    order by m.minute, m.queue
$$;
comment on function minutes(text[], timestamptz, timestamptz) is 'What happened in each minute. A minute without a row '
    'had no events. The answer is up to 10 s old';

create or replace function within_bucket(bucket int, n float8, upto float8, wanted float8) returns float8
language sql immutable as $$
    select case when wanted > upto - n and wanted <= upto
                then case when bucket = 1 then 0 else 2 ^ ((bucket - 2) / 2.0::float8) end * (upto - wanted) / n
                     + 2 ^ ((bucket - 1) / 2.0::float8) * (wanted - upto + n) / n end
$$;
comment on function within_bucket(int, float8, float8, float8) is 'For percentiles(): the value, in ms, of the job '
    'with this place (wanted) in the order of times, if it is one of the n jobs of this bucket, else NULL. upto: how '
    'many jobs this bucket and all lower ones have. The values of a bucket are taken to be spread evenly. No SET, so '
    'that it is inlined';

create or replace function percentiles(queues text[] default null, since timestamptz default now() - interval '1 hour',
    upto timestamptz default now())
returns table (queue text, completed bigint, wait_p50 float8, wait_p90 float8, wait_p99 float8, wait_max int,
    run_p50 float8, run_p90 float8, run_p99 float8, run_max int)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    with chosen_minutes as materialized (
        select m.queue, m.completed, m.wait_max, m.run_max, m.buckets, m.waits, m.runs from minute m
        where m.minute >= date_trunc('minute', since) and m.minute < upto and (queues is null or m.queue = any(queues))
    ), sums as (
        select queue, sum(completed)::bigint as completed, max(wait_max) as wait_max, max(run_max) as run_max
        from chosen_minutes group by 1
    ), bucket_sums as (
        select m.queue, u.bucket, sum(u.w)::float8 as w, sum(u.r)::float8 as r
        from chosen_minutes m, unnest(m.buckets, m.waits, m.runs) u (bucket, w, r) group by 1, 2
    ), cumulated as ( -- in float8: numeric would take a quarter more time for all
        select b.*, sum(w) over lower_buckets as w_upto, sum(r) over lower_buckets as r_upto,
               sum(w) over all_buckets as w_total, sum(r) over all_buckets as r_total
        from bucket_sums b
        window lower_buckets as (partition by queue order by bucket), all_buckets as (partition by queue)
    ), percentile_values as (
        select queue, max(within_bucket(bucket, w, w_upto, 0.5 * w_total)) as w50,
               max(within_bucket(bucket, w, w_upto, 0.9 * w_total)) as w90,
               max(within_bucket(bucket, w, w_upto, 0.99 * w_total)) as w99,
               max(within_bucket(bucket, r, r_upto, 0.5 * r_total)) as r50,
               max(within_bucket(bucket, r, r_upto, 0.9 * r_total)) as r90,
               max(within_bucket(bucket, r, r_upto, 0.99 * r_total)) as r99
        from cumulated group by queue
    )
    select s.queue, s.completed, least(w50, s.wait_max), least(w90, s.wait_max), least(w99, s.wait_max), s.wait_max,
           least(r50, s.run_max), least(r90, s.run_max), least(r99, s.run_max), s.run_max
    from sums s left join percentile_values v using (queue) order by s.queue
$$;
comment on function percentiles(text[], timestamptz, timestamptz) is 'How long completed jobs waited and ran, in ms: '
    'median, 90th and 99th percentile, longest. Read from buckets of half an octave';

create or replace function minutes_known(out rolled bigint, out newest bigint, out rolled_at timestamptz,
    out counted_at timestamptz, out low timestamptz, out high timestamptz)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    n fold;
    r fold;
begin
    select * into n from fold f order by f.fold desc limit 1;
    select * into r from fold f where f.keep and f.rolled order by f.fold desc limit 1;
    rolled := r.fold;
    rolled_at := r.at;
    newest := n.fold;
    high := now();
    if exists (select from delta where xid >= pg_snapshot_xmax(n.snapshot))
       or exists (select from delta where xid = any(array(select pg_snapshot_xip(n.snapshot)) || n.xid)) then
        high := least(high, n.at);
    end if;
    counted_at := least(high, n.at);
    select m.minute into low from minute m
    where m.minute >= to_timestamp(coalesce(r.swept[4], 0)) order by m.minute limit 1;
    low := coalesce(low, date_trunc('minute', n.at));
end $$;
comment on function minutes_known() is 'Up to where table minute is filled: the newest fold whose deltas are in minute '
    '(rolled), the newest fold of all, and when both were made; from which minute on and up to when anything is known. '
    'What no fold has seen yet is unknown, not zero';

create or replace function minute_steps(of_queue text, since timestamptz, step interval default interval '1 min')
returns table (at timestamptz, seconds float8, pushed bigint, completed bigint, fails bigint, retried bigint,
               lost bigint, backlog bigint, buckets smallint[], waits bigint[], runs bigint[])
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$ select only_ours();
    with known as materialized (
        select k.*, z.size, floor(extract(epoch from k.counted_at) / z.size) as last_n,
               (case when k.rolled_at < k.counted_at then greatest(0, extract(epoch from
                    to_timestamp(floor(extract(epoch from k.counted_at) / z.size) * z.size) - k.rolled_at)
                    / extract(epoch from k.counted_at - k.rolled_at)) else 0 end)::numeric as before,
               greatest(k.low, to_timestamp(floor(extract(epoch from least(since, k.high)) / z.size) * z.size)) as start
        from minutes_known() k, (select least(greatest(60, extract(epoch from step)::float8), 366 * 86400) as size) z
    ), lived as materialized (
        select floor(extract(epoch from m.minute) / k.size) as n, m.*
        from known k cross join generate_series(k.start, k.high, interval '1 min') g (minute)
        cross join lateral (select * from minute m where m.minute = g.minute and m.queue = of_queue offset 0) m
    ), counted as materialized (
        select c.fold = k.newest as is_new, case when c.fold = k.newest then 1 else -1 end as sign, c.*
        from known k cross join lateral (
            select * from counter c where c.fold in (k.newest, k.rolled) and c.error_key is null offset 0) c
        where c.queue = of_queue
    ), tail as ( -- the deltas that the newest fold saw and that minute lacks: they belong to the last step, or to two
        select sum(sign * c.pushed) as pushed, sum(sign * c.completed) as completed, sum(sign * c.fails) as fails,
               sum(sign * c.retried) as retried, sum(sign * c.lost) as lost, sum(sign * c.ready) as ready
        from counted c where (select rolled <> newest from known)
    ), parts as (
        select n, pushed, completed, fails, retried, lost, ready from lived
        union all
        select last_n - 1, round(t.pushed * before), round(t.completed * before), round(t.fails * before),
               round(t.retried * before), round(t.lost * before), round(t.ready * before)
        from known, tail t
        union all
        select last_n, t.pushed - round(t.pushed * before), t.completed - round(t.completed * before),
               t.fails - round(t.fails * before), t.retried - round(t.retried * before),
               t.lost - round(t.lost * before), t.ready - round(t.ready * before)
        from known, tail t
    ), sums as (
        select n, sum(pushed)::bigint as pushed, sum(completed)::bigint as completed, sum(fails)::bigint as fails,
               sum(retried)::bigint as retried, sum(lost)::bigint as lost, sum(ready)::bigint as ready
        from parts group by n
    ), histograms as (
        select n, array_agg(bucket order by bucket) as buckets, array_agg(w order by bucket) as waits,
               array_agg(r order by bucket) as runs
        from (select n, u.bucket, sum(u.w) as w, sum(u.r) as r
              from lived l, unnest(l.buckets, l.waits, l.runs) u (bucket, w, r) group by 1, 2) b group by 1)
    select to_timestamp(s.n * k.size),
           extract(epoch from least(k.high, to_timestamp((s.n + 1) * k.size))
                              - greatest(k.start, to_timestamp(s.n * k.size)))::float8,
           coalesce(z.pushed, 0), coalesce(z.completed, 0), coalesce(z.fails, 0), coalesce(z.retried, 0),
           coalesce(z.lost, 0),
           (coalesce((select sum(ready) from counted where is_new), 0) - coalesce(sum(z.ready) over (
                order by s.n desc rows between unbounded preceding and 1 preceding), 0))::bigint,
           h.buckets, h.waits, h.runs
    from known k
    cross join generate_series(floor(extract(epoch from k.start) / k.size)::bigint,
                               floor(extract(epoch from k.high) / k.size)::bigint) s (n)
    left join sums z on z.n = s.n left join histograms h on h.n = s.n
    order by 1
$$;
comment on function minute_steps(text, timestamptz, interval) is 'What happened in a queue, one row for each step of '
    'time, also if nothing happened: the ready and running jobs at the end of the step, and how many seconds of it are '
    'known. A time without a row is unknown: before the oldest minute, or not counted by a scheduler yet';

create or replace function failed_within_hour(most int default 20000) returns table (queue text, failed bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_sort = off
    set jit = off as $$
    select only_ours();
    select m.queue, sum(m.fails)::bigint
    from (select m.queue, m.fails from minute m
          where m.fails > 0 and m.minute >= date_trunc('minute', now() - interval '1 hour')
          order by m.minute desc limit greatest(most, 0)) m
    group by m.queue
$$;
comment on function failed_within_hour(int) is 'How many jobs of each queue failed for good within the last hour. '
    'Reads the newest minutes with failures, most rows at most: if there are more, the figures are too low';

create or replace function queue_pace() returns table (queue text, minutes int, pushed bigint, gone bigint,
    completed bigint, fails bigint, run_ms bigint, upto timestamptz, nets bigint[], tokens bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    with span as materialized (
        select date_trunc('minute', now() - interval '10 s') as upto
    ), sums as materialized (
        select m.queue, sum(m.pushed)::bigint as pushed, sum(m.completed + m.fails + m.cancelled)::bigint as gone,
               sum(m.completed)::bigint as completed, sum(m.fails)::bigint as fails, sum(m.run_ms)::bigint as run_ms
        from span s
        cross join lateral (
            select * from minute m where m.minute >= s.upto - interval '5 min' and m.minute < s.upto offset 0) m
        group by m.queue
    ), growing as materialized (
        select z.queue from sums z where z.pushed > z.gone * 1.05 order by z.pushed - z.gone desc, z.queue limit 50
    ), growth as materialized (
        select g.queue, array_agg(coalesce(m.net, 0) order by t.minute) as nets
        from growing g cross join span s
        cross join lateral generate_series(s.upto - interval '1 hour', s.upto - interval '1 min', interval '1 min')
            t (minute)
        left join lateral (
            select m.pushed - m.completed - m.fails - m.cancelled as net from minute m
            where m.minute = t.minute and m.queue = g.queue offset 0) m on true
        group by g.queue
    )
    select c.queue, greatest(0, least(5, floor(extract(epoch from s.upto - c.registered) / 60)))::int,
           coalesce(z.pushed, 0), coalesce(z.gone, 0), coalesce(z.completed, 0), coalesce(z.fails, 0),
           coalesce(z.run_ms, 0), s.upto, g.nets, b.tokens
    from queue_config c cross join span s
    left join sums z on z.queue = c.queue
    left join growth g on g.queue = c.queue
    left join lateral (
        select floor(least(coalesce(c.burst, greatest(1, floor(c.rate))), b.level
                           + c.rate::float8 * extract(epoch from greatest(now() - b.at, interval '0'))))::bigint
               - cardinality(b.seqs) as tokens
        from bucket b where b.queue = c.queue order by b.n desc limit 1) b on c.rate is not null
$$;
comment on function queue_pace() is 'How many jobs came in (pushed) and went out (completed, failed for good, '
    'cancelled) in the last five whole minutes, or since the queue was first seen; the tokens of a rate limit; and, '
    'for the 50 queues that grow fastest, by how much they grew in each minute of the last hour';
