-- Our engine with deferred books: an answer only marks its lease as done. move_done(), which runs in a loop beside the scheduler,
-- moves finished jobs into history, hundreds at a time. It has only what is needed to measure it, and its leases are as large as
-- the claims. DESIGNS.md has the result.
set search_path = queues;
alter table work_queue add column done timestamptz;
create or replace view live as
select w.* from (select mark from mark order by n desc limit 1) m, work_queue w where w.lease >= m.mark
union all
select w.* from (select mark, older from mark order by n desc limit 1) m, unnest(m.older) o, work_queue w
where w.lease between o and o + 99;

create function defer_and_claim(node text, leases bigint[], versions int[], seqs bigint[], n int)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int, max_tries int, payload json,
    body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    w record;
begin
    if $4 <> '{}' then
        update work_queue w set lock_timeout = 'infinity', done = now()
        where w.lease = $2[1] and w.version = $3[1] and w.lock_key = $1 and w.seqs = $4 and w.done is null;
        if not found then
            perform complete_jobs($1, $2, $3, $4, null, null);
        end if;
    end if;
    w := take_lease($1, $5, null, null, true);
    if w.jobs is null then
        return;
    end if;
    return query
    select w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1, coalesce(j.max_tries, w.max_tries, 5)::int,
           j.payload, j.body, j.payload_type, j.created, w.lease_until, coalesce(j.run_timeout, w.run_timeout)
    from queue j
    where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
      and j.seq between w.seqs[1] and w.seqs[cardinality(w.seqs)] and w.seqs[width_bucket(j.seq, w.seqs)] = j.seq
    order by j.seq;
end $$;

create function move_done(most int) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    leases bigint[] := array(select lease from live where done is not null limit most);
begin
    with w as (
        delete from work_queue w where w.lease = any(leases)
        returning w.queue, w.priority, w.seqs, w.scattered, w.started, w.history, w.lock_key, w.done
    ), x as materialized (
        select q.ctid as at, q.seq, w.history, w.started as began, w.lock_key, w.done
        from w cross join lateral ranges(w.seqs, w.scattered) r
        cross join lateral (select q.ctid, q.seq from queue q where q.queue = w.queue and q.priority = w.priority
            and q.state = 'ready' and q.seq between r.low and r.high and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq offset 0) q
    ), j as (
        delete from queue q using x where q.ctid = x.at and q.seq = x.seq and q.state = 'ready'
        returning q.*, x.history, x.began, x.lock_key, x.done
    ), h as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node, payload, body,
                             payload_type, unique_key, concurrency_key, origin_id, last_action, kept, error, lease_timeout, run_timeout)
        select id, created, began, done, 'completed', priority, tries + 1, max_tries, queue, kind, lock_key,
               case when history is null then payload end, case when history is null then body end, payload_type,
               unique_key, concurrency_key, origin_id, last_action, history is null, error, lease_timeout, run_timeout
        from j where history is distinct from 'n'
    )
    insert into delta (queue, priority, ready, completed, run_ms, waits, runs)
    select queue, priority, -count(*), count(*), sum(ms(began, done)), array_agg(ms(changed, began)), array_agg(ms(began, done))
    from j group by queue, priority;
    return cardinality(leases);
end $$;
