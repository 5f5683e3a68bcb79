-- Concurrency keys and the expiry of jobs. Everything in this file runs under the scheduler lock, inside schedule(),
-- which calls tend_limits(). The newest row of table lane says where both continue.
--
-- A job with a concurrency key waits in state blocked. unblock() makes it ready if its key has room. If the waiting job
-- is more urgent than a ready job of the key that nobody has claimed, the ready job is blocked again in exchange.

do $$
begin
    if to_regtype('key_place') is null then
        create type key_place as (queue text collate "C", key text collate "C", n int, low bigint[], ids uuid[]);
    end if;
end $$;
comment on type key_place is 'What is remembered of a concurrency key: how many jobs it got, behind which number its '
    'waiting jobs of each priority begin, and which of its jobs are ready';
create table if not exists lane (
    n         bigint generated always as identity primary key,
    queue     text collate "C" not null,
    key       text collate "C" not null,
    laps      int not null,
    due       timestamptz not null,
    expire_at timestamptz not null,
    expired_to  timestamptz not null default '-infinity',
    expired_seq bigint not null default 0,
    expire_all  timestamptz not null default '-infinity',
    hot       key_place[] not null default '{}',
    hot_at    timestamptz not null default '-infinity',
    old_seq   bigint not null default 0,
    mid_seq   bigint not null default 0,
    hot_all   timestamptz not null default '-infinity'
);
alter table lane set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
comment on table lane is 'Where unblock() continues among the waiting keys; the newest row counts';
comment on column lane.laps is 'How often unblock() still has to go through all keys; 0 = nothing has changed since it '
    'looked at all';
comment on column lane.due is 'No look for blocked jobs before this time. The looks take at most a tenth of the time, '
    'or are 200 ms apart';
comment on column lane.expire_at is 'No look for jobs to expire before this time';
comment on column lane.expired_to is 'All jobs whose expires_at is before this time have been expired; of those with '
    'exactly this time, the ones up to number expired_seq. Their dead rows stay while somebody holds a snapshot, so '
    'the next look starts behind them';
comment on column lane.expire_all is 'When a look starts at the first job again: a transaction may have committed '
    'late, or a job may have been pushed after its expires_at';
comment on column lane.hot is 'The keys that got the most jobs, in order. The dead rows of these jobs stay while '
    'somebody holds a snapshot, so looks start behind them';
comment on column lane.hot_at is 'When old_seq and mid_seq were last moved on, which is done every ten seconds';
comment on column lane.old_seq is 'A value of job_seq at least ten seconds old. Jobs with a higher number are always '
    'looked for';
comment on column lane.mid_seq is 'The value of job_seq at hot_at; it is the next old_seq';
comment on column lane.hot_all is 'When to look at all jobs of these keys again, because a transaction took longer '
    'than ten seconds';
insert into lane (queue, key, laps, due, expire_at)
select '', '', 2, '-infinity', '-infinity' where not exists (select from lane);

-- While somebody holds a snapshot, each job that a key gets leaves a dead row before the first waiting job of the key
-- and before its ready ones. So table lane remembers, for the keys that got the most jobs (key_place), which of their
-- jobs are ready, and up to which number of each priority their waiting jobs have left. lane knows all of these,
-- because jobs become ready only here, under the scheduler's lock. A push may commit late: jobs that took their number
-- in the last ten seconds are always looked for, older ones once a minute (look_back).

create or replace function key_ready(queue text, key text, ids uuid[], most int)
returns table (id uuid, priority smallint, seq bigint)
language sql stable as $$
    (select r.id, r.priority, r.seq from queue r
     where key_ready.ids is null and r.state = (select 'ready'::job_state) and r.queue = key_ready.queue
       and r.concurrency_key = key_ready.key limit most)
    union all
    (select r.id, r.priority, r.seq from queue r where r.id = any(key_ready.ids) and r.state::text = 'ready')
$$;
comment on function key_ready(text, text, uuid[], int) is 'The ready jobs of a key, including running ones: those with '
    'these ids or, if ids is NULL, up to most of them by the index. No SET, so that it is inlined';

-- (select 'ready') instead of 'ready': the planner does not know the value, so it can use only the index queue_keyed,
-- which has all states.
create or replace function key_blocked(queue text, key text, low bigint[], most int)
returns table (priority smallint, seq bigint)
language sql stable as $$
    (select b.priority, b.seq from queue b
     where key_blocked.low is null and b.state = (select 'blocked'::job_state) and b.queue = key_blocked.queue
       and b.concurrency_key = key_blocked.key and (b.expires_at > now()) is not false
     order by b.priority, b.seq limit most)
    union all
    (select b.priority, b.seq
     from unnest(key_blocked.low) with ordinality p (low, place)
     cross join lateral (
         select b.priority, b.seq from queue b
         where b.state = (select 'blocked'::job_state) and b.queue = key_blocked.queue
           and b.concurrency_key = key_blocked.key and b.priority = (p.place - 1)::smallint
           and b.seq > coalesce(p.low, 0) and (b.expires_at > now()) is not false
         order by b.seq limit most) b
     limit most)
$$;
comment on function key_blocked(text, text, bigint[], int) is 'The first waiting jobs of a key: for each priority '
    'those behind this number, or all if low is NULL. No SET, so that it is inlined';

create or replace function key_between(queue text, key text, upto_queue text, upto_key text)
returns table (queue text, key text)
language sql stable as $$
    (select q.queue, q.concurrency_key from queue q
     where upto_queue is null and q.state = 'blocked' and q.concurrency_key is not null
       and (q.queue, q.concurrency_key) > (key_between.queue, key_between.key)
     order by q.queue, q.concurrency_key limit 1)
    union all -- a scan that is to end before a pair of values ends only at the first value
    (select q.queue, q.concurrency_key from queue q
     where upto_queue = key_between.queue and q.state = 'blocked' and q.queue = key_between.queue
       and q.concurrency_key > key_between.key and q.concurrency_key < upto_key
     order by q.concurrency_key limit 1)
    union all
    (select q.queue, q.concurrency_key from queue q
     where upto_queue > key_between.queue and q.state = 'blocked' and q.queue = key_between.queue
       and q.concurrency_key > key_between.key
     order by q.concurrency_key limit 1)
    union all
    (select q.queue, q.concurrency_key from queue q
     where q.state = 'blocked' and q.concurrency_key is not null and q.queue > key_between.queue
       and q.queue < upto_queue
     order by q.queue, q.concurrency_key limit 1)
    union all
    (select q.queue, q.concurrency_key from queue q
     where upto_queue > key_between.queue and q.state = 'blocked' and q.queue = upto_queue
       and q.concurrency_key < upto_key
     order by q.concurrency_key limit 1)
$$;
comment on function key_between(text, text, text, text) is 'The first key with blocked jobs behind one key and before '
    'another (if upto_queue is not NULL); the first row counts. No SET, so that it is inlined';

create or replace function waiting_keys(queue text, key text, n int, hot key_place[] default '{}')
returns table (queue text, key text)
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set jit = off as $$
    with recursive place as (
        select waiting_keys.queue collate "C" as queue, waiting_keys.key collate "C" as key, 0 as i
        union all
        select x.queue, x.key, place.i + 1
        from place
        cross join lateral (select waiting_keys.hot[(
            select min(h.o) from unnest(waiting_keys.hot) with ordinality h (queue, key, n, low, ids, o)
            where (h.queue, h.key) > (place.queue, place.key))] as h) next
        cross join lateral (
            select coalesce(f.queue, (next.h).queue) as queue, coalesce(f.key, (next.h).key) as key
            from (select) z left join lateral (
                select k.queue, k.key
                from key_between(place.queue, place.key, (next.h).queue, (next.h).key) k limit 1) f on true) x
        where place.i < waiting_keys.n and x.queue is not null
    )
    select place.queue, place.key from place where place.i > 0
$$;
comment on function waiting_keys(text, text, int, key_place[]) is 'Up to n keys with blocked jobs behind this queue '
    'and key. Each takes one look at the index, however many jobs wait; the keys in hot, which are in order, take none';

create or replace function less_urgent(queues text[], keys text[], hot key_place[], out ids uuid[], out seqs bigint[])
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select array_agg(r.id), array_agg(r.seq order by r.seq)
    from unnest(queues, keys) v (queue, key)
    left join unnest(hot) h on h.queue = v.queue and h.key = v.key
    left join queue_config c on c.queue = v.queue
    cross join lateral (select b.priority from key_blocked(v.queue, v.key, h.low, 1) b) b
    cross join lateral (
        (select r.id, r.seq from queue r
         where h.ids is null and r.state = (select 'ready'::job_state) and r.queue = v.queue
           and r.concurrency_key = v.key and r.priority > b.priority
         order by r.priority desc, r.seq desc limit 100)
        union all
        (select r.id, r.seq from queue r
         where r.id = any(h.ids) and r.state::text = 'ready' and r.priority > b.priority)) r
    where coalesce(c.max_per_key, 1) <= (
        select count(*) from key_ready(v.queue, v.key, h.ids, coalesce(c.max_per_key, 1)) a)
$$;
comment on function less_urgent(text[], text[], key_place[]) is 'Ready jobs, including running ones, of keys without '
    'room, that are less urgent than a blocked job of the key; up to 100 a key';

create or replace function take_out(leases bigint[], seqs bigint[]) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    gone bigint[] := array(select s from unnest(seqs) s order by s); -- sorted for binary search
begin
    with rest as materialized (
        select w.lease, w.seqs as old, array(select s from unnest(w.seqs) s
                                             where gone[width_bucket(s, gone)] is distinct from s order by s) as seqs
        from work_queue w where w.lease = any(take_out.leases)
    ), emptied as (
        delete from work_queue w using rest r where w.lease = r.lease and r.seqs = '{}'
    )
    update work_queue w set seqs = r.seqs from rest r where w.lease = r.lease and r.seqs not in ('{}', r.old);
end $$;
comment on function take_out(bigint[], bigint[]) is 'Takes these jobs out of these leases; the caller has locked them. '
    'An empty lease is deleted';

create or replace function block_again(queues text[], keys text[], hot key_place[]) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
    found record := less_urgent(queues, keys, hot);
    seqs  bigint[] := found.seqs;
    done  record;
begin
    if found.ids is null then
        return 0;
    end if;
    with free as materialized ( -- a claim that is in progress is not waited for: its job runs
        select w.lease, w.seqs from work_queue w
        where w.lock_key is null and w.lease = any(array(
            select l.lease from live l
            where l.lock_key is null
              and exists (select from unnest(l.seqs) s where seqs[width_bucket(s, seqs)] = s offset 0)))
        order by w.lease + 0 for update skip locked -- + 0: by the list, as 10_tables says
    ), ours as materialized (
        select f.lease, s as seq from free f cross join unnest(f.seqs) s where seqs[width_bucket(s, seqs)] = s
    ), cut as materialized (
        select s as seq from live l cross join unnest(l.seqs) s where seqs[width_bucket(s, seqs)] = s
    ), job as materialized (
        select q.id, q.queue, q.concurrency_key as key, q.priority, q.seq, o.lease
        from queue q left join ours o on o.seq = q.seq
        where q.id = any(found.ids) and q.state = 'ready'
          and (o.seq is not null or q.seq not in (select c.seq from cut c))
        for update of q skip locked
    ), low as ( -- the least urgent ready job is exchanged for the most urgent blocked one, and so on
        select j.*, row_number() over (partition by j.queue, j.key order by j.priority desc, j.seq desc) as rank
        from job j
    ), high as (
        select k.queue, k.key, b.priority,
               row_number() over (partition by k.queue, k.key order by b.priority, b.seq) as rank
        from (select distinct j.queue, j.key from job j) k
        left join unnest(hot) h on h.queue = k.queue and h.key = k.key
        cross join lateral key_blocked(k.queue, k.key, h.low, 100) b
    ), swap as materialized (
        select l.* from low l join high h using (queue, key, rank) where l.priority > h.priority order by rank limit 500
    ), blocked as (
        update queue q set state = 'blocked', changed = now() from swap x
        where q.id = any(found.ids) and q.id = x.id returning q.queue, q.priority
    ), counted as (
        insert into delta (queue, priority, ready, blocked)
        select queue, priority, -count(*), count(*) from blocked group by 1, 2
    )
    select count(*)::int as n, array_agg(distinct x.queue) as queues,
           array_agg(x.seq) filter (where x.lease is not null) as cut,
           array_agg(x.lease) filter (where x.lease is not null) as leases
    into done from swap x;
    if done.cut is not null then
        perform take_out(done.leases, done.cut);
        perform bucket_forget(q, done.cut) from unnest(done.queues) q;
    end if;
    return done.n;
end $$;
comment on function block_again(text[], text[], key_place[]) is 'Blocks ready jobs again that nobody has claimed, as '
    'many as there are more urgent blocked jobs of the same key; unblock_keys() then makes the urgent ones ready. Up '
    'to 500 a call, under the scheduler lock. Returns how many';

create or replace function unblock_keys(queues text[], keys text[], hot key_place[],
    out n int, out woken text[], out places key_place[])
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    with key as materialized (
        select v.queue, v.key, h.low, r.ids, m.most, m.most - coalesce(cardinality(r.ids), (
                   select count(*) from key_ready(v.queue, v.key, h.ids, m.most) a)) as room
        from unnest(queues, keys) v (queue, key)
        left join unnest(hot) h on h.queue = v.queue and h.key = v.key
        left join queue_config c on c.queue = v.queue
        cross join lateral (select coalesce(c.max_per_key, 1) as most) m
        cross join lateral (select case when m.most <= 20 then array(
            select a.id from key_ready(v.queue, v.key, h.ids, m.most + 1) a) end as ids) r
    ), waiting as materialized (
        select k.queue, k.key, k.room, b.id, b.priority, b.seq
        from key k cross join lateral (
            select q.id, q.priority, q.seq from queue q
            where q.state = 'blocked' and q.queue = k.queue and q.concurrency_key = k.key
              and (q.expires_at is null or q.expires_at > now())
            order by q.priority, q.seq limit k.room for update skip locked) b
        where k.room > 0 and k.low is null
        union all
        select k.queue, k.key, k.room, b.id, b.priority, b.seq
        from key k cross join lateral unnest(k.low) with ordinality p (low, place) cross join lateral (
            select q.id, q.priority, q.seq from queue q
            where q.state = (select 'blocked'::job_state) and q.queue = k.queue and q.concurrency_key = k.key
              and q.priority = (p.place - 1)::smallint and q.seq > coalesce(p.low, 0)
              and (q.expires_at is null or q.expires_at > now())
            order by q.seq limit k.room for update skip locked) b
        where k.room > 0
    ), ranked as materialized ( -- first one job of each key, then a second one of each key
        select w.*, row_number() over (partition by w.queue, w.key order by w.priority, w.seq) as rank from waiting w
    ), taken as materialized (
        select z.*, nextval('job_seq') as new_seq
        from (select r.* from ranked r where r.rank <= r.room order by r.rank, r.seq limit 1000) z
    ), freed as (
        update queue q set state = 'ready', seq = t.new_seq, changed = now() from taken t
        where q.id = any(array(select id from taken)) and q.id = t.id returning q.queue, q.priority
    ), counted as ( -- no min_seq: under this lock no job is late
        insert into delta (queue, priority, ready, blocked)
        select queue, priority, count(*), -count(*) from freed group by 1, 2
    ), handed as (
        select g.*, array(select max(l.seq) from generate_series(0, 9) i
                          left join unnest(g.levels, g.seqs) l (level, seq) on l.level = i
                          group by i order by i) as low
        from (select t.queue, t.key, count(*)::int as n, array_agg(t.id) as ids, array_agg(t.priority) as levels,
                     array_agg(t.seq) as seqs
              from taken t group by t.queue, t.key) g
    )
    select (select count(*)::int from freed), (select array_agg(distinct queue) from freed),
           (select array_agg((h.queue, h.key, h.n, h.low, k.ids || h.ids)::key_place)
            from handed h join key k on k.queue = h.queue and k.key = h.key where cardinality(k.ids) <= k.most)
$$;
comment on function unblock_keys(text[], text[], key_place[]) is 'Makes the first jobs of these keys ready, as many as '
    'max_per_key allows. places: the keys that got jobs, and how far';

create or replace function remember_keys(hot key_place[], got key_place[]) returns key_place[]
language sql stable set search_path from current as $$
    select coalesce(array_agg((p.queue, p.key, p.n, p.low, p.ids)::key_place order by p.queue, p.key), '{}')
    from (
        select coalesce(g.queue, h.queue) as queue, coalesce(g.key, h.key) as key,
               case when g.queue is null then h.n
                    else g.n + coalesce(h.n, case when cardinality(hot) >= 64 then m.n else 0 end) end as n,
               array(select coalesce(g.low[i], h.low[i]) from generate_series(1, 10) i order by i) as low,
               coalesce(g.ids, h.ids) as ids
        from unnest(hot) h full join unnest(got) g on g.queue = h.queue and g.key = h.key
        cross join (select min(z.n) as n from unnest(hot) z) m
        order by 3 desc, 1, 2 limit 64) p
$$;
comment on function remember_keys(key_place[], key_place[]) is 'The 64 keys that got the most jobs, of those '
    'remembered and those that just got some. A new key replaces the last one and takes over its count';

create or replace function look_back(hot key_place[]) returns key_place[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select coalesce(array_agg((h.queue, h.key, h.n, b.low, h.ids)::key_place order by h.queue, h.key), '{}')
    from unnest(hot) h
    cross join lateral (
        select array_agg(coalesce(late.seq - 1, p.low) order by p.place) as low
        from unnest(h.low) with ordinality p (low, place)
        left join lateral (
            select q.seq from queue q
            where q.state = (select 'blocked'::job_state) and q.queue = h.queue and q.concurrency_key = h.key
              and q.priority = (p.place - 1)::smallint and q.seq <= p.low
            order by q.seq limit 1) late on true) b
$$;
comment on function look_back(key_place[]) is 'Looks for waiting jobs of these keys from the first number on, because '
    'a transaction may have committed long after it took its number';

create or replace function unblock(inout place lane, out n int, out queues text[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    most  int := 200; -- keys a step
    began timestamptz := clock_timestamp();
    hot   key_place[];
    k     record;
    again record;
    done  record;
begin
    -- every ten seconds, or after the clock was set back
    if place.hot_at not between began - interval '10 s' and began then
        place.hot_at := began;
        place.old_seq := place.mid_seq;
        select s.last_value into place.mid_seq from job_seq s;
        place.hot := array(select (h.queue, h.key, greatest(1, h.n / 2), h.low, h.ids)::key_place
                           from unnest(place.hot) with ordinality h (queue, key, n, low, ids, o) order by o);
    end if;
    if place.hot <> '{}' and place.hot_all not between began and began + interval '1 min' then
        place.hot := look_back(place.hot);
        place.hot_all := began + least(1000 * (clock_timestamp() - began), interval '1 min');
    end if;
    hot := array(select (h.queue, h.key, h.n, array(select least(l, place.old_seq)
                                                    from unnest(h.low) with ordinality u (l, i) order by i),
                         h.ids)::key_place
                 from unnest(place.hot) with ordinality h (queue, key, n, low, ids, o) order by o);
    select array_agg(w.queue) as q, array_agg(w.key) as k, count(*)::int as n into k
    from waiting_keys(place.queue, place.key, most, hot) w;
    if k.n < most then -- continue at the first key; no key twice, or its room would be used twice
        select array_agg(w.queue) as q, array_agg(w.key) as k, count(*)::int as n into again
        from waiting_keys('', '', most - k.n, hot) w where (w.queue, w.key) <= (place.queue, place.key);
        place.laps := case when k.n + again.n < most then 0 else place.laps - 1 end;
        k.q := k.q || again.q;
        k.k := k.k || again.k;
        k.n := k.n + again.n;
    end if;
    if k.n = most then
        place.queue := k.q[most];
        place.key := k.k[most];
    end if;
    perform block_again(k.q, k.k, hot);
    select * into done from unblock_keys(k.q, k.k, hot);
    n := done.n;
    queues := done.woken;
    if done.places is not null then
        place.hot := remember_keys(place.hot, done.places);
    end if;
    if n >= 1000 then
        place.laps := 2;
    end if;
end $$;
comment on function unblock(lane) is 'Makes blocked jobs ready if their key has room: up to 200 keys and 1000 jobs, '
    'from where the last step ended';

create or replace function next_expired(since timestamptz, since_seq bigint) returns boolean
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    return exists (select from queue q where (q.expires_at, q.seq) > (since, since_seq) and q.expires_at <= now()
                   and q.state <> 'failed' order by q.expires_at, q.seq limit 1);
end $$;
comment on function next_expired(timestamptz, bigint) is 'Whether a job after this time and number has expired; '
    'running jobs count, too';

create or replace function overdue(since timestamptz, since_seq bigint, most int)
returns table (id uuid, expires_at timestamptz, seq bigint, runs boolean)
language sql stable as $$
    with held as materialized (
        select unnest(w.seqs) as seq from live w where w.lock_key is not null
    ), over as materialized (
        select q.id, q.expires_at, q.seq, q.state = 'ready' and q.seq in (select h.seq from held h) as runs
        from queue q
        where (q.expires_at, q.seq) > (since, since_seq) and q.expires_at <= now() and q.state <> 'failed'
        order by q.expires_at, q.seq limit most + (select count(*) from held)
    )
    select z.id, z.expires_at, z.seq, z.runs
    from (select o.*, count(*) filter (where not o.runs) over (order by o.expires_at, o.seq) as rank from over o) z
    where z.rank <= most
$$;
comment on function overdue(timestamptz, bigint, int) is 'For expire(): the jobs after this time and number that have '
    'expired: up to most jobs that wait, and those between them that run. No SET, so that it is inlined';

create or replace function expire_jobs(ids uuid[], leases bigint[], out gone uuid[], out queues text[],
    out was_cut bigint[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan
    set enable_nestloop = off set enable_hashjoin = on as $$ -- else each job would look at all jobs of the step
#variable_conflict use_column
begin
    with over as materialized (
        select q.id, q.seq, q.state from queue q
        where q.id = any(expire_jobs.ids) and q.expires_at <= now() and q.state::text <> 'failed'
        order by q.id for update skip locked
    ), leased as materialized (
        select l.lease, unnest(l.seqs) as seq from live l
    ), waiting as materialized (
        select o.id, o.seq, l.lease from over o left join leased l on l.seq = o.seq and o.state = 'ready'
        where l.lease is null or l.lease = any(expire_jobs.leases)
    ), job as (
        delete from queue q using waiting w where q.id = any(expire_jobs.ids) and q.id = w.id returning q.*, w.lease
    ), finished as (
        insert into history (
-- part: history_columns
        ) select
-- part: history_values
        from (select j.*, null::timestamptz as began, now() as till, 'cancelled'::job_state as ends_as,
                     j.tries as ended_tries, 'expired' as ended_error, j.last_action as ended_action, null as node,
                     null::bytea as result, coalesce(c.history, 'full') = 'full' as keep
              from job j left join queue_config c on c.queue = j.queue
              where c.history is distinct from 'none') ended
    ), counted as (
        insert into delta (queue, priority, ready, scheduled, retry, blocked, cancelled)
        select queue, priority, -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
               -count(*) filter (where state = 'retry'), -count(*) filter (where state = 'blocked'), count(*)
        from job group by 1, 2)
    select array_agg(id), array_agg(distinct queue), array_agg(seq) filter (where lease is not null)
    into gone, queues, was_cut from job;
    perform take_out(expire_jobs.leases, was_cut);
end $$;
comment on function expire_jobs(uuid[], bigint[]) is 'For expire(): moves those of these jobs that still wait to '
    'history, and out of these leases, which are free and locked. A job that somebody has locked stays. gone: the '
    'moved jobs; was_cut: the numbers of those that were in leases';

create or replace function expire(since timestamptz, since_seq bigint, most int, out n int, out queues text[],
    out upto timestamptz, out upto_seq bigint)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    seen   record;
    stays  record; -- the first job that stays
    leases bigint[]; -- free leases, locked; a claim that is in progress is not waited for
    done   record;
begin
    n := 0; upto := now(); upto_seq := 9223372036854775807;
    select array_agg(o.id order by o.expires_at, o.seq) as ids, array_agg(o.seq order by o.expires_at, o.seq) as seqs,
           array_agg(o.expires_at order by o.expires_at, o.seq) as times,
           array_agg(o.id order by o.expires_at, o.seq) filter (where not o.runs) as waits
    into seen from overdue(since, since_seq, most) o;
    if seen.waits is null then
        upto := coalesce(seen.times[1], upto);
        upto_seq := coalesce(seen.seqs[1] - 1, upto_seq);
        return;
    end if;
    select coalesce(array_agg(z.lease), '{}') into leases from (
        select w.lease from work_queue w
        where w.lock_key is null and w.lease = any(array(
            select f.lease from (select l.lease, unnest(l.seqs) as seq from live l where l.lock_key is null) f
            join queue q on q.seq = f.seq and q.id = any(seen.waits)))
        order by w.lease + 0 for update skip locked) z; -- + 0: by the list, as 10_tables says
    select * into done from expire_jobs(seen.waits, leases);
    n := coalesce(cardinality(done.gone), 0);
    queues := done.queues;
    select v.at, v.seq - 1 as seq into stays from unnest(seen.ids, seen.times, seen.seqs) v (id, at, seq)
    where v.id <> all(coalesce(done.gone, '{}')) order by v.at, v.seq limit 1;
    if stays.at is not null then
        upto := stays.at;
        upto_seq := stays.seq;
    elsif cardinality(seen.waits) = most then
        upto := seen.times[cardinality(seen.times)];
        upto_seq := seen.seqs[cardinality(seen.seqs)];
    end if;
    if done.was_cut is not null then
        perform bucket_forget(q, done.was_cut) from unnest(queues) q;
    end if;
end $$;
comment on function expire(timestamptz, bigint, int) is 'Moves jobs whose expires_at has passed to history, as '
    'cancelled with the error "expired": up to most waiting jobs after this time and number, also from free leases. '
    'Running and failed jobs are left alone. upto, upto_seq: before these, no such job is left';

create or replace function tend_expired(inout place lane, began timestamptz, out n int, out queues text[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    whole boolean := place.expire_at = '-infinity' or place.expire_all <= began;
    since timestamptz := case when whole then '-infinity' else place.expired_to end;
    seq   bigint := case when whole then 0 else place.expired_seq end;
    over  boolean := next_expired(since, seq);
    e     record;
    took  interval;
begin
    n := 0;
    select 0 as n, null::text[] as queues, now() as upto, 9223372036854775807 as upto_seq into e;
    if over then
        select * into e from expire(since, seq, 1000);
        n := e.n;
        queues := e.queues;
    end if;
    took := clock_timestamp() - began;
    if over or took > interval '3 ms' then -- or: the look was slow and found nothing, so it read many dead entries
        place.expired_to := e.upto;
        place.expired_seq := e.upto_seq;
        place.expire_at := began + greatest(10 * took, case when n < 1000 then interval '1 s' end);
        place.expire_all := case when whole then began + least(1000 * took, interval '1 min') else place.expire_all end;
    end if;
    if n > 0 then
        place.laps := 2; -- an expired job frees its key
    end if;
end $$;
comment on function tend_expired(lane, timestamptz) is 'For tend_limits(): expires jobs, once a second from where the '
    'last look ended. Because a job may be pushed after its expires_at, a look also starts at the first job, at least '
    'once a minute and for at most a thousandth of the time';

create or replace function tend_limits(news boolean, out unblocked int, out expired int, out queues text[],
    out wait_ms int)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    last  lane;
    place lane;
    u     record;
    began timestamptz := clock_timestamp();
    took  interval;
begin
    unblocked := 0; expired := 0;
    select * into last from lane order by n desc limit 1;
    place := last;
    if news then
        place.laps := 2;
    end if;
    if place.expire_at <= began then
        select * into u from tend_expired(place, began);
        place := u.place;
        expired := u.n;
        queues := u.queues;
    end if;
    began := clock_timestamp();
    if place.laps > 0 and place.due <= began then
        if place.hot <> '{}'
           or exists (select from queue q where q.state = 'blocked' and q.concurrency_key is not null) then
            select * into u from unblock(place);
            place := u.place;
            unblocked := u.n;
            queues := queues || u.queues;
        else
            place.laps := 0;
        end if;
        took := clock_timestamp() - began;
        if took > interval '1 ms' then
            place.due := began + least(10 * took, took + interval '200 ms');
        end if;
    end if;
    if place is distinct from last then
        delete from lane where n = last.n;
        insert into lane (queue, key, laps, due, expire_at, expired_to, expired_seq, expire_all,
                          hot, hot_at, old_seq, mid_seq, hot_all)
        values (place.queue, place.key, place.laps, place.due, place.expire_at, place.expired_to, place.expired_seq,
                place.expire_all, place.hot, place.hot_at, place.old_seq, place.mid_seq, place.hot_all);
    end if;
    wait_ms := 1 + 1000 * extract(epoch from least(case when place.laps > 0 then greatest(place.due, began) end,
        case when expired >= 1000 then place.expire_at end, now() + interval '1 min') - clock_timestamp());
end $$;
comment on function tend_limits(boolean) is 'For schedule(): unblocks and expires jobs. news: something has changed '
    'since the last call. If there is nothing to do, it writes nothing';
