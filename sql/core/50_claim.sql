-- Claiming. A claim takes free leases in the order of their numbers. It begins where the scheduler's last step says
-- that free ones begin, so it never meets the dead rows of finished leases. For each lease it writes one row of
-- work_queue (HOT), and none of queue.
--
-- A lease with more jobs than asked for is split: the old row stays free, with the rest of the jobs. The part taken
-- becomes a new row, already claimed, with one of the 99 numbers after the old one: base + jobs left. That number is
-- unique, because the jobs left only become fewer. So a claim needs no lock of the scheduler, and no free lease ever
-- appears later below the scheduler's mark.

-- claim() and complete_and_claim() pin search_path and the settings of the planner on which their plans depend, those
-- that are off and those that must be on, whatever the role has set. Each setting costs about half as much time as
-- reading a job, so what no plan here depends on is not pinned: no statement of a claim has a join that could be
-- hashed or merged (LATERAL and OFFSET 0 leave the planner no choice), and an index scan is bounded as well as an
-- index-only scan. The functions that they call have settings of their own only if their statements need more.

create or replace function claim_fault(node text, n int, timeout interval) returns text
language sql immutable parallel safe as $$
    select case when (node <> '' and pg_catalog.length(node) <= 200) is not true or n is null or timeout <= interval '0'
                     or timeout > interval '365 days'
           then 'a claim names its node (1 to 200 characters), a number of jobs, and no timeout that is over or longer '
                'than 365 days' end
$$;
comment on function claim_fault(text, int, interval) is 'Why a claim with these values is invalid; NULL = it is valid. '
    'No SET, so that it is inlined';

create or replace function node_barred(node text) returns setof boolean
language sql stable as $$
    select true from node n
    where n.lock_key = node_barred.node
      and (n.state <> 'up' or is_dead(n.heartbeat, (select s.value::interval from setting s
                                                    where s.name = 'node_dead')))
$$;
comment on function node_barred(text) is 'Returns one row if this node may not claim: it is draining, or its last '
    'heartbeat is so old that others take it for dead. No SET, so that it is inlined';

create or replace function find_free(node text, queues text[], n int, but bigint[]) returns bigint[]
language plpgsql as $$
declare
    r bigint[];
    m int;
begin
    -- || '' and + 0: by work_queue_queue, from the first free lease of the queue on. By the primary key it would read
    -- the leases of all queues, and stop late or never if those of its own are few
    if pg_catalog.cardinality(queues) = 1 then
        return array(
            select w.lease from work_queue w
            where w.queue || '' = queues[1] and w.lock_key is null and w.lease <> all(but)
              and w.lease + 0 >= coalesce((select low from cursor r
                                           where r.queue = queues[1] order by r.n desc limit 1), 0)
              and not exists (select from node_barred(find_free.node)) and only_ours()
            order by w.lease + 0 limit find_free.n for update skip locked);
    end if;
    for round in 1 .. 5 loop
        with candidates as materialized (
            select w.lease
            from (select distinct pg_catalog.unnest(queues) as queue) q
            cross join lateral (
                select w.lease from work_queue w
                where w.queue || '' = q.queue and w.lock_key is null and w.lease <> all(but)
                  and w.lease + 0 >= coalesce((select low from cursor r
                                               where r.queue = q.queue order by r.n desc limit 1), 0)
                order by w.lease + 0 limit 16 + find_free.n) w
            where not exists (select from node_barred(find_free.node))
            order by w.lease
        ), locked_leases as (
            select w.lease from work_queue w where w.lease = any(array(select lease from candidates))
              and w.lock_key is null
            order by w.lease + 0 limit find_free.n for update of w skip locked)
        select pg_catalog.array_agg(lease), (select pg_catalog.count(*) from candidates) into r, m from locked_leases;
        exit when r is not null or m = 0;
    end loop;
    return r;
end $$;
comment on function find_free(text, text[], int, bigint[]) is 'Locks up to n free leases of these queues, the oldest '
    'first';

create or replace function take_many(node text, n int, timeout interval, queues text[], start boolean, at timestamptz,
    first bigint, inout jobs int,
    out leases bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    taken bigint[] := array[first]; -- whole leases that are locked
    part  bigint;                -- a lease that was split for this claim
    more  bigint[];
    sizes int[];
    batch int;
    i     int;
begin
    while jobs < n loop
        batch := least(100, pg_catalog.ceil((n - jobs)::float8 * pg_catalog.cardinality(taken) / jobs))::int;
        if queues is null then
            select pg_catalog.array_agg(z.lease), pg_catalog.array_agg(z.size) into more, sizes from (
                select w.lease, pg_catalog.cardinality(w.seqs) as size from work_queue w
                where w.lease > taken[pg_catalog.cardinality(taken)] and w.lock_key is null
                order by w.lease limit batch for update skip locked) z;
        else
            more := find_free(node, queues, batch, taken);
            select pg_catalog.array_agg(pg_catalog.cardinality(w.seqs) order by w.lease) into sizes from work_queue w
            where w.lease = any(more);
        end if;
        exit when more is null or more = '{}';
        i := 1;
        while i <= pg_catalog.cardinality(more) and jobs + sizes[i] <= n loop
            jobs := jobs + sizes[i];
            i := i + 1;
        end loop;
        taken := taken || more[:i - 1];
        if i <= pg_catalog.cardinality(more) and jobs < n then
            part := split(node, more[i], n - jobs, timeout, start, at);
            jobs := n;
        end if;
    end loop;
    update work_queue w
    set lock_key = take_many.node, started = take_many.at, version = w.version + 1, all_started = start,
    started_seqs = null,
        lock_timeout = take_many.at + coalesce(timeout, w.lease_time, interval '60 s')
    where w.lease = any(taken);
    leases := taken || part;
end $$;
comment on function take_many(text, int, interval, text[], boolean, timestamptz, bigint, int) is 'Claims leases until '
    'they hold n jobs. The first one is locked already and holds fewer jobs (jobs)';

create or replace function split(node text, lease bigint, n int, timeout interval, start boolean, at timestamptz)
    returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    part bigint;
begin
    insert into work_queue (lease, batch_order, queue, priority, seqs, all_started, lock_key, started, lock_timeout,
                            version,
                            max_tries, history, lease_time, run_timeout, scattered)
    select w.lease + pg_catalog.cardinality(w.seqs) - split.n, w.batch_order, w.queue, w.priority, w.seqs[:split.n],
           start, split.node, split.at,
           split.at + coalesce(timeout, w.lease_time, interval '60 s'), w.version + 1, w.max_tries, w.history,
           w.lease_time, w.run_timeout, w.scattered
    from work_queue w where w.lease = split.lease returning lease into part;
    update work_queue x set seqs = x.seqs[split.n + 1:] where x.lease = split.lease;
    return part;
end $$;
comment on function split(text, bigint, int, interval, boolean, timestamptz) is 'Claims the first n jobs of a free '
    'lease that is locked, as a lease of their own. Its number is the old one + jobs left';

create or replace function take_lease(node text, n int, timeout interval, queues text[], start boolean,
    out lease bigint, out version int, out queue text, out priority smallint, out seqs bigint[], out max_tries smallint,
    out lease_until timestamptz, out run_timeout interval, out jobs int, out leases bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    found   bigint[];
    stepped boolean := false; -- one step a claim at most
    -- not now(): the jobs start at this time, and rate limits count by it
    at      timestamptz := pg_catalog.clock_timestamp();
begin
    if claim_fault(node, n, timeout) is not null then
        raise '%', claim_fault(node, n, timeout) using errcode = 'QT007';
    end if;
    while n > 0 loop
        if queues is null then
            select x.lease, x.version + 1, x.queue, x.priority, x.seqs, x.max_tries,
                   at + coalesce(timeout, x.lease_time, interval '60 s'),
                   x.run_timeout, pg_catalog.cardinality(x.seqs), case when x.scattered then array[x.lease] end
            into lease, version, queue, priority, seqs, max_tries, lease_until, run_timeout, jobs, leases
            from work_queue x
            where x.lease >= (select t.free from tick t order by t.tick desc limit 1) and x.lock_key is null
              and not exists (select from node_barred(take_lease.node)) and only_ours()
            order by x.lease limit 1 for update skip locked;
        else
            found := find_free(node, queues, 1, '{}');
            select x.lease, x.version + 1, x.queue, x.priority, x.seqs, x.max_tries,
                   at + coalesce(timeout, x.lease_time, interval '60 s'),
                   x.run_timeout, pg_catalog.cardinality(x.seqs), case when x.scattered then array[x.lease] end
            into lease, version, queue, priority, seqs, max_tries, lease_until, run_timeout, jobs, leases
            from work_queue x where x.lease = found[1] and only_ours();
        end if;
        if jobs = n then
            update work_queue x
            set lock_key = take_lease.node, started = at, version = take_lease.version, all_started = start,
            started_seqs = null,
                lock_timeout = take_lease.lease_until
            where x.lease = take_lease.lease;
            return;
        elsif jobs > n then
            lease := split(node, lease, n, timeout, start, at);
            seqs := seqs[:n];
            leases := case when leases is not null then array[lease] end;
            jobs := n;
            return;
        elsif jobs < n then
            select m.jobs, m.leases into jobs, leases
            from take_many(node, n, timeout, queues, start, at, lease, jobs) m;
            return;
        end if;
        exit when stepped or not idle_step(node);
        stepped := true;
        at := pg_catalog.clock_timestamp();
    end loop;
end $$;
comment on function take_lease(text, int, interval, text[], boolean) is 'Claims n jobs. If it is one lease, whole or a '
    'part split off, the answer has all that is needed to read its jobs. If there are several leases, or one whose '
    'jobs are far apart, leases lists them. jobs NULL: nothing is free';

create or replace function read_leases(leases bigint[], at timestamptz)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int,
               max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql stable as $$
#variable_conflict use_column
begin
    return query
    select w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
           coalesce(j.max_tries, w.max_tries, 5)::int, j.payload, j.body, j.payload_type, j.created, w.lock_timeout,
           coalesce(j.run_timeout, w.run_timeout)
    from work_queue w
    cross join lateral leased_jobs(w.queue, w.priority, w.seqs, w.scattered) j
    where w.lease = any(read_leases.leases) and (j.expires_at > at) is not false
    order by w.lease, j.seq;
end $$;
comment on function read_leases(bigint[], timestamptz) is 'The jobs of claimed leases, except those that have expired '
    'by then';

create or replace function claim(node text, n int default 1, timeout interval default null, queues text[] default null,
    start boolean default true)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int,
               max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_indexscan = on set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    w    record;
    rows int := 0;
    at   timestamptz;
begin
    while rows = 0 loop -- again if all jobs that it got have expired or are gone
        w := take_lease(node, n, timeout, queues, start);
        exit when w.jobs is null;
        -- not now(): the scheduler's step may have taken some time, and a job may have expired meanwhile
        at := pg_catalog.clock_timestamp();
        if w.leases is null then
            return query
            select w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
                   coalesce(j.max_tries, w.max_tries, 5)::int, j.payload, j.body, j.payload_type, j.created,
                   w.lease_until,
                   coalesce(j.run_timeout, w.run_timeout)
            from queue j
            where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
              and j.seq between w.seqs[1] and w.seqs[pg_catalog.cardinality(w.seqs)]
              and w.seqs[pg_catalog.width_bucket(j.seq, w.seqs)] = j.seq
              and (j.expires_at > at) is not false
            order by j.seq;
        else
            return query select * from read_leases(w.leases, at);
        end if;
        get diagnostics rows = row_count;
        exit when rows = w.jobs;
        perform drop_missing(coalesce(w.leases, array[w.lease]), at);
    end loop;
end $$;
comment on function claim(text, int, interval, text[], boolean) is 'Leases up to n jobs to a node. timeout: how long '
    'the lease lasts without a heartbeat (NULL: the setting of the job or of the queue, 60 s if neither is set). '
    'start: all jobs count as started, so a crash counts as a try of each; if false, name the started jobs with '
    'extend. The answers (complete, fail, extend, give_back) name lease, version and seq. Call it in a transaction of '
    'its own';

create or replace function drop_missing(leases bigint[], at timestamptz default now()) returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
    with remaining as materialized (
        select w.lease, array(select j.seq from leased_jobs(w.queue, w.priority, w.seqs, w.scattered) j
                              where (j.expires_at > at) is not false order by j.seq) as seqs
        from work_queue w where w.lease = any(leases)
    ), emptied as (
        delete from work_queue w using remaining r where r.lease = w.lease and r.seqs = '{}')
    update work_queue w set seqs = r.seqs from remaining r where r.lease = w.lease and r.seqs <> '{}'
      and r.seqs <> w.seqs
$$;
comment on function drop_missing(bigint[], timestamptz) is 'Takes jobs out of claimed leases that were deleted by hand '
    'or had expired at that time';

create or replace function idle_step(node text) returns boolean
language plpgsql set search_path from current as $$
begin
    return pg_catalog.current_setting('transaction_isolation') = 'read committed'
        and not exists (select from node_barred(idle_step.node))
        and (select not still(s.until) from scheduler s order by s.term desc limit 1)
        and (select s.cut + s.stolen > 0 from schedule('claim:' || node) s);
end $$;
comment on function idle_step(text) is 'For a claim that found nothing: if no scheduler lives, makes one step. true = '
    'there is something to claim now';
