-- The answers of a worker: complete, fail, extend, give_back. Each names lease, version and seq; the lease row is
-- deleted, updated or locked under exactly these (and the node), so whoever has lost its lease changes nothing:
-- reading the lease without a lock would be no fence.
-- A worker's word on when it started a job is taken between the claim and now: its clock may be wrong. Now (till) is
-- the time of the answer, not now(): its transaction may have begun before the claim.

create or replace function ms(since timestamptz, till timestamptz) returns int
language sql stable parallel safe as
$$ select greatest(0, least(1000 * (pg_catalog.date_part('epoch', till) - pg_catalog.date_part('epoch', since)),
                            2147483647))::int $$;
comment on function ms(timestamptz, timestamptz) is 'Milliseconds between two times, as many as an int holds; none '
    'where the clock was set back between them';

create or replace function complete_rest(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[])
returns table (seq bigint, outcome text)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    till timestamptz;
begin
    perform from work_queue w where w.lease = any(complete_rest.leases) and w.lock_key = complete_rest.node
    order by w.lease + 0 for update;
    till := clock_timestamp();
    return query
    with given as materialized (
        select min(o) as o, lease, version, seq
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o)
        group by lease, version, seq
    ), matched as materialized (
        select g.o, g.seq, w.lease, w.version, w.queue, w.priority, w.started, w.history, g.seq = any(w.seqs) as inside
        from given g cross join lateral (
            select * from work_queue w where w.lease = g.lease and w.version = g.version
              and w.lock_key = complete_rest.node offset 0) w
    ), rest as materialized ( -- with its place: whatever the planner believes, nobody reads all leases to find these
        select w.at, array(select s from unnest(w.seqs) s where s <> all(g.seqs) order by s) as seqs
        from (select m.lease, coalesce(array_agg(m.seq) filter (where m.inside), '{}') as seqs from matched m
              group by m.lease) g
        cross join lateral (select w.ctid as at, w.seqs from work_queue w where w.lease = g.lease offset 0) w
    ), leases_gone as (
        delete from work_queue w using rest r where w.ctid = r.at and r.seqs = '{}'
    ), leases_cut as (
        update work_queue w set seqs = r.seqs from rest r where w.ctid = r.at and r.seqs <> '{}'
          and w.seqs <> r.seqs
    ), jobs as materialized ( -- one by one, whatever the planner believes
        select q.id, m.seq, m.o, m.started, m.history
        from matched m cross join lateral (select q.id from queue q where q.queue = m.queue and q.priority = m.priority
                                   and q.state = 'ready' and q.seq = m.seq offset 0) q
        where m.inside
    -- in the order of seq: a job's place is found by halving, where a join would compare each with each
    ), by_seq as materialized (
        select array_agg(seq order by seq) as seqs, array_agg(o order by seq) as o, array_agg(started order by seq)
        as started,
               array_agg(history order by seq) as history
        from jobs
    ), done_jobs as (
        delete from queue q using by_seq
        where q.id = any(array(select id from jobs)) and by_seq.seqs[width_bucket(q.seq, by_seq.seqs)] = q.seq
        returning q.*, by_seq.o[width_bucket(q.seq, by_seq.seqs)] as o, by_seq.history[width_bucket(q.seq, by_seq.seqs)]
        as history,
            least(till, greatest(complete_rest.started[by_seq.o[width_bucket(q.seq, by_seq.seqs)]],
                                 by_seq.started[width_bucket(q.seq, by_seq.seqs)])) as began
    ), history_rows as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body,
                             payload_type, result, unique_key, concurrency_key, origin_id, last_action, kept, error,
                             lease_timeout, run_timeout)
        select id, created, began, till, 'completed', priority, tries + 1, max_tries, queue, kind, complete_rest.node,
               case when history is null then payload end, case when history is null then body end, payload_type,
               case when history is null then results[o] end, unique_key, concurrency_key, origin_id, last_action,
               history is null, error,
               lease_timeout, run_timeout
        from done_jobs where history is distinct from 'n'
    ), counted as (
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        select till, queue, priority, -count(*), count(*), sum(ms(began, till)), array_agg(ms(changed, began)),
               array_agg(ms(began, till))
        from done_jobs group by queue, priority
    )
    select v.seq, case when done.o[width_bucket(v.first, done.o)] = v.first then 'done'
                       when held.o[width_bucket(v.first, held.o)] = v.first then 'gone' else 'lost' end
    -- one said twice is told the same twice
    from (select z.seq, z.o, min(z.o) over (partition by z.lease, z.version, z.seq) as first
          from unnest(complete_rest.leases, versions, complete_rest.seqs) with ordinality z (lease, version, seq, o)) v,
         (select array_agg(m.o order by m.o) as o from matched m) held, (select array_agg(j.o order by j.o) as o
                 from done_jobs j) done
    order by v.o;
end $$;
comment on function complete_rest(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is
    'complete() for parts of leases: locks them, then takes out what is done';

create or replace function complete_single(node text, lease bigint, version int, seqs bigint[], started timestamptz[],
    results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    w     record;
    j     record;
    began timestamptz;
    run   int;
    till  timestamptz;
begin
    update work_queue w set seqs = array_remove(w.seqs, complete_single.seqs[1])
    where w.lease = complete_single.lease and w.version = complete_single.version and w.lock_key = complete_single.node
      and w.seqs @> complete_single.seqs and cardinality(w.seqs) > 1
    returning w.queue, w.priority, w.started, w.history into w;
    if not found then
        delete from work_queue w where w.lease = complete_single.lease and w.version = complete_single.version
          and w.lock_key = complete_single.node and w.seqs = complete_single.seqs
        returning w.queue, w.priority, w.started, w.history into w;
        if not found then
            return array(select r.outcome
                         from complete_rest(node, array[lease], array[version], seqs, started, results) r);
        end if;
    end if;
    delete from queue q
    where q.queue = w.queue and q.priority = w.priority and q.state = 'ready' and q.seq = complete_single.seqs[1]
    returning q.id, q.created, q.changed, q.tries, q.max_tries, q.kind, q.payload, q.body, q.payload_type, q.unique_key,
        q.concurrency_key, q.origin_id, q.last_action, q.error, q.lease_timeout, q.run_timeout into j;
    if not found then
        return array['gone'];
    end if;
    till := clock_timestamp();
    began := least(till, case when started is null then w.started else greatest(started[1], w.started) end);
    run := ms(began, till);
    if w.history is distinct from 'n' then
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body,
                             payload_type, result, unique_key, concurrency_key, origin_id, last_action, kept, error,
                             lease_timeout, run_timeout)
        values (j.id, j.created, began, till, 'completed', w.priority, j.tries + 1, j.max_tries, w.queue, j.kind, node,
                case when w.history is null then j.payload end, case when w.history is null then j.body end,
                j.payload_type,
                case when w.history is null then results[1] end, j.unique_key, j.concurrency_key, j.origin_id,
                j.last_action, w.history is null,
                j.error, j.lease_timeout, j.run_timeout);
    end if;
    insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
    values (till, w.queue, w.priority, -1, 1, run, array[ms(j.changed, began)], array[run]);
    return null;
end $$;
comment on function complete_single(text, bigint, int, bigint[], timestamptz[], bytea[]) is
    'complete_jobs() for one job: plain statements, as starting one that names many columns in several steps costs '
    'more than all its work';

create or replace function complete_one(node text, lease bigint, version int, seqs bigint[], started timestamptz[],
    results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    w    record;
    same boolean; -- seqs is what the lease names, in order: then a job's place in it is found by halving
    done bigint[];
    run  bigint;
    runs int[];
    wait int[];
    till timestamptz;
begin
    delete from work_queue w
    -- <@ compares each with each
    where w.lease = complete_one.lease and w.version = complete_one.version and w.lock_key = complete_one.node
      and (w.seqs = complete_one.seqs or w.seqs <@ complete_one.seqs) and w.scattered is null
    returning w.queue, w.priority, w.seqs, w.started, w.history into w;
    if not found then
        update work_queue w set seqs = array(select s from unnest(w.seqs) s where s <> all(complete_one.seqs))
        where w.lease = complete_one.lease and w.version = complete_one.version and w.lock_key = complete_one.node
          and complete_one.seqs <@ w.seqs and not w.seqs <@ complete_one.seqs and w.scattered is null
        returning w.queue, w.priority, (select array_agg(s order by s) from unnest(complete_one.seqs) s) as seqs,
        w.started, w.history into w;
        if not found then
            return array(select r.outcome from complete_rest(node, array_fill(lease, array[cardinality(seqs)]),
                                                             array_fill(version, array[cardinality(seqs)]), seqs,
                                                             started, results) r);
        end if;
    end if;
    same := w.seqs = seqs;
    till := clock_timestamp();
    w.started := least(till, w.started);
    with done_job as (
        delete from queue q
        where q.queue = w.queue and q.priority = w.priority and q.state = 'ready'
          and q.seq between w.seqs[1] and w.seqs[cardinality(w.seqs)] and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq
        returning q.id, q.created, q.changed, q.seq, q.tries, q.max_tries, q.kind, q.payload, q.body, q.payload_type,
        q.unique_key,
            q.concurrency_key, q.origin_id, q.last_action, q.error, q.lease_timeout, q.run_timeout,
            case when complete_one.started is null then w.started else
                least(till, greatest(complete_one.started[case when same then width_bucket(q.seq, complete_one.seqs)
                                                               else array_position(complete_one.seqs, q.seq) end],
                                                               w.started)) end as began
    ), history_row as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body,
                             payload_type, result, unique_key, concurrency_key, origin_id, last_action, kept, error,
                             lease_timeout, run_timeout)
        select id, created, began, till, 'completed', w.priority, tries + 1, max_tries, w.queue, kind,
               complete_one.node,
               case when w.history is null then payload end, case when w.history is null then body end, payload_type,
               case when w.history is null and results is not null
                    then results[case when same then width_bucket(seq, complete_one.seqs)
                                      else array_position(complete_one.seqs, seq) end] end,
               unique_key, concurrency_key, origin_id, last_action, w.history is null, error, lease_timeout, run_timeout
        from done_job where w.history is distinct from 'n'
    )
    select array_agg(seq), array_agg(ms(changed, began)),
           array_agg(ms(began, till)) filter (where complete_one.started is not null),
           sum(ms(began, till)) filter (where complete_one.started is not null)
    into done, wait, runs, run from done_job;
    if done is not null then
        if started is null then
            run := ms(w.started, till);
            runs := array_fill(run::int, array[cardinality(done)]);
            run := run * cardinality(done);
        end if;
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        values (till, w.queue, w.priority, -cardinality(done), cardinality(done), run, wait, runs);
        if cardinality(done) = cardinality(seqs) then
            return null;
        end if;
    end if;
    return array(select case when s = any(done) then 'done' when s = any(w.seqs) then 'gone' else 'lost' end
                 from unnest(seqs) s);
end $$;
comment on function complete_one(text, bigint, int, bigint[], timestamptz[], bytea[]) is 'complete_jobs() for one '
    'whole lease, or jobs that all stand in one';

create or replace function check_result(size bigint) returns void
language plpgsql stable set search_path from current as $$
begin
    if size > setting_int('result_limit') then
        raise 'result of % bytes is more than the limit of %', size, setting_int('result_limit')
            using errcode = 'QT004', hint = 'table setting, result_limit';
    end if;
end $$;
comment on function check_result(bigint) is 'Raises QT004 where a result is larger than the setting result_limit';

create or replace function complete_leases(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[],
    out held bigint[], out done bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    moved bigint[];
    till  timestamptz;
begin
    perform from work_queue w where w.lease = any(complete_leases.leases) and w.lock_key = complete_leases.node
    order by w.lease + 0 for update;
    till := clock_timestamp();
    with given as materialized (
        select lease, version, array_agg(seq) as seqs, array_agg(began) as began, array_agg(result) as results
        from unnest(leases, versions, seqs, started, results) v (lease, version, seq, began, result) group by 1, 2
    ), found as materialized ( -- by its place: whatever the planner believes, nobody reads all leases to find these
        select g.*, w.at from given g cross join lateral (
            select w.ctid as at from work_queue w where w.lease = g.lease offset 0) w
    ), whole_leases as (
        delete from work_queue w using found g
        where w.ctid = g.at and w.version = g.version and w.lock_key = complete_leases.node
          and (w.seqs = g.seqs or w.seqs <@ g.seqs)
        returning w.lease, w.version, w.queue, w.priority, w.seqs, w.scattered, w.started, w.history,
            w.seqs = g.seqs as same, -- then a job's place in it is found by halving
            g.seqs as said, g.began, g.results
    ), extra as materialized (
        select q.ctid as at, q.seq, w.lease, w.history,
               least(till, case when complete_leases.started is null then w.started
                                else greatest(w.began[case when w.same then width_bucket(q.seq, w.said)
                                                           else array_position(w.said, q.seq) end],
                                                           w.started) end) as began,
               case when w.history is null and complete_leases.results is not null
                    then w.results[case when w.same then width_bucket(q.seq, w.said)
                                        else array_position(w.said, q.seq) end] end as result
        from whole_leases w cross join lateral ranges(w.seqs, w.scattered) r
        cross join lateral (select q.ctid, q.seq from queue q where q.queue = w.queue and q.priority = w.priority
            and q.state = 'ready' and q.seq between r.low and r.high and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq
            offset 0) q
    ), done_jobs as ( -- not one that somebody has changed since this statement began: it has moved
        delete from queue q using extra x where q.ctid = x.at and q.seq = x.seq and q.state::text = 'ready'
        returning q.id, q.created, q.changed, q.seq, q.queue, q.priority, q.tries, q.max_tries, q.kind, q.payload,
        q.body, q.payload_type,
            q.unique_key, q.concurrency_key, q.origin_id, q.last_action, q.error, q.lease_timeout, q.run_timeout,
            x.history, x.began, x.result
    ), history_rows as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body,
                             payload_type, result, unique_key, concurrency_key, origin_id, last_action, kept, error,
                             lease_timeout, run_timeout)
        select id, created, began, till, 'completed', priority, tries + 1, max_tries, queue, kind, complete_leases.node,
               case when history is null then payload end, case when history is null then body end, payload_type,
               result, unique_key, concurrency_key, origin_id, last_action,
               history is null, error, lease_timeout, run_timeout
        from done_jobs where history is distinct from 'n'
    ), counted as (
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        select till, queue, priority, -count(*), count(*), sum(ms(began, till)), array_agg(ms(changed, began)),
               array_agg(ms(began, till))
        from done_jobs group by queue, priority
    ), missing as materialized ( -- those get their lease back
        select x.lease, array_agg(x.seq order by x.seq) as seqs from extra x
        where (select count(*) from extra) > (select count(*) from done_jobs)
          and x.seq <> all(array(select seq from done_jobs)) group by x.lease
    ), back as (
        insert into work_queue (lease, version, lock_key, lock_timeout, started, queue, priority, seqs, history)
        select m.lease, w.version + 1, complete_leases.node, now(), w.started, w.queue, w.priority, m.seqs, w.history
        from missing m join whole_leases w on w.lease = m.lease
    )
    select (select array_agg(seq) from done_jobs), (select array_agg(s) from whole_leases w, unnest(w.seqs) s),
           (select array_agg(s) from missing m, unnest(m.seqs) s)
    into done, held, moved;
    if moved is not null then
        done := done || array(
            select r.seq from (select array_agg(lease) as l, array_agg(version + 1) as n, array_agg(seq) as s,
                                      array_agg(began) as b,
                                      array_agg(result) as t
                               from unnest(complete_leases.leases, versions, complete_leases.seqs,
                                           complete_leases.started, complete_leases.results) v (lease, version, seq,
                                                   began, result) where seq = any(moved)) v,
                              complete_rest(complete_leases.node, v.l, v.n, v.s, v.b, v.t) r
            where r.outcome = 'done');
    end if;
end $$;
comment on function complete_leases(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is
    'complete_one() for several whole leases in one statement';

create or replace function complete_jobs(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    c record;
    k text[];
begin
    if current_setting('queuetop.day', true) is distinct from floor(date_part('epoch', now()) / 86400)::int::text
        || current_schema() then
        perform have_day();
    end if;
    if results is not null then -- inside: a condition with a query in it costs one each time
        perform check_result(size) from (select max(octet_length(r)) as size from unnest(results) r) x
        where size > 1000;
    end if;
    if cardinality(seqs) = 1 then
        return complete_single(node, leases[1], versions[1], seqs, started, results);
    end if;
    if leases[1] = all(leases) and versions[1] = all(versions) then
        return complete_one(node, leases[1], versions[1], seqs, started, results);
    end if;
    c := complete_leases(node, leases, versions, seqs, started, results);
    if cardinality(c.done) = cardinality(seqs) then
        return null;
    elsif c.held is null then
        return array(select r.outcome from complete_rest(node, leases, versions, seqs, started, results) r);
    end if;
    with given as materialized (
        select v.*, row_number() over (partition by z.ours order by o) as k, z.ours
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o),
            lateral (select coalesce(v.seq = any(c.held), false) as ours) z
    ), rest as (
        select r.* from (select array_agg(lease order by o) as l, array_agg(version order by o) as n,
                                array_agg(seq order by o) as s,
                                array_agg(complete_jobs.started[o] order by o) as b, array_agg(results[o] order by o)
                                as t
                         from given where not ours) x,
             complete_rest(complete_jobs.node, x.l, x.n, x.s, x.b, x.t) with ordinality r (seq, outcome, k))
    select array_agg(case when not v.ours then rest.outcome when v.seq = any(c.done) then 'done' else 'gone' end
                     order by v.o)
    from given v left join rest on not v.ours and rest.k = v.k into k;
    return k;
end $$;
comment on function complete_jobs(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is
    'What complete() does, for complete() and complete_and_claim(): the outcomes in order; NULL = all done';

create or replace function complete(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[] default null, results bytea[] default null)
returns table (seq bigint, outcome text)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    said text[] := complete_jobs(node, leases, versions, seqs, started, results);
begin
    return query select s, coalesce(said[o], 'done') from unnest(seqs) with ordinality v (s, o);
end $$;
comment on function complete(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'Jobs are done: done = in the '
    'books now; lost = the lease is another''s by now, nothing changed; gone = the job is no more (cancelled, deleted, '
    'done before). Arrays in parallel';

create or replace function complete_and_claim(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[],
    results bytea[], n int, timeout interval default null, queues text[] default null, start boolean default true)
returns table (outcome text, lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int,
               try int, max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    said text[];
    w    record;
    rows int := 0;
    at   timestamptz;
begin
    if seqs <> '{}' then
        said := complete_jobs(node, leases, versions, seqs, started, results);
        if said is not null then
            for outcome, lease, version, seq in
                select said[o], l, v, s from unnest(leases, versions, seqs) with ordinality g (l, v, s, o)
                where said[o] <> 'done' order by o loop
                return next;
            end loop;
        end if;
    end if;
    while rows = 0 loop -- from here on it is claim()
        w := take_lease(node, n, timeout, queues, start);
        exit when w.jobs is null;
        at := clock_timestamp();
        if w.leases is null then
            return query
            select null, w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
                   coalesce(j.max_tries, w.max_tries, 5)::int, j.payload, j.body, j.payload_type, j.created,
                   w.lease_until,
                   coalesce(j.run_timeout, w.run_timeout)
            from queue j
            where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
              and j.seq between w.seqs[1] and w.seqs[cardinality(w.seqs)]
              and w.seqs[width_bucket(j.seq, w.seqs)] = j.seq
              and (j.expires_at > at) is not false
            order by j.seq;
        else
            return query select null, r.* from read_leases(w.leases, at) r;
        end if;
        get diagnostics rows = row_count;
        exit when rows = w.jobs;
        perform drop_missing(coalesce(w.leases, array[w.lease]), at);
    end loop;
end $$;
comment on function complete_and_claim(text, bigint[], int[], bigint[], timestamptz[], bytea[], int, interval, text[],
    boolean) is
    'complete() and then claim() in one transaction: one round trip and one flush for the answer and the next jobs. '
    'Rows with an outcome name jobs given that are NOT done (lost, gone); all others are claimed';

create or replace function fail(node text, leases bigint[], versions int[], seqs bigint[], errors text[],
    traces text[] default null, started timestamptz[] default null, retry_in interval[] default null,
    final boolean[] default null, outcomes text[] default null)
returns table (seq bigint, outcome text, run_after timestamptz)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    error_limit int := setting_int('error_limit');
    trace_limit int := setting_int('trace_limit');
    till        timestamptz;
begin
    if interval '365 days' < any(retry_in) then
        raise 'a retry comes within 365 days, not in %', (select max(r) from unnest(retry_in) r)
            using errcode = 'QT007';
    end if;
    if current_setting('queuetop.day', true) is distinct from floor(date_part('epoch', now()) / 86400)::int::text
        || current_schema() then
        perform have_day();
    end if;
    perform from work_queue w where w.lease = any(fail.leases) and w.lock_key = fail.node
    order by w.lease + 0 for update;
    till := clock_timestamp();
    return query
    with given as materialized (
        select min(o) as o, lease, version, seq
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o)
        group by lease, version, seq
    ), matched as materialized (
        select g.o, g.seq, w.lease, w.version, w.queue, w.priority, w.started, w.history, w.max_tries,
               g.seq = any(w.seqs) as inside
        from given g cross join lateral (
            select * from work_queue w where w.lease = g.lease and w.version = g.version and w.lock_key = fail.node
            offset 0) w
    ), rest as materialized ( -- with its place: whatever the planner believes, nobody reads all leases to find these
        select w.at, array(select s from unnest(w.seqs) s where s <> all(g.seqs) order by s) as seqs
        from (select m.lease, coalesce(array_agg(m.seq) filter (where m.inside), '{}') as seqs from matched m
              group by m.lease) g
        cross join lateral (select w.ctid as at, w.seqs from work_queue w where w.lease = g.lease offset 0) w
    ), leases_gone as (
        delete from work_queue w using rest r where w.ctid = r.at and r.seqs = '{}'
    ), leases_cut as (
        update work_queue w set seqs = r.seqs from rest r where w.ctid = r.at and r.seqs <> '{}'
          and w.seqs <> r.seqs
    ), ended_jobs as materialized (
        select q.id, q.queue, q.priority, q.tries + 1 as now_tries, m.o, m.seq as was, m.history,
               least(till, greatest(fail.started[m.o], m.started)) as began,
               left(coalesce(fail.errors[m.o], ''), error_limit) as error, left(traces[m.o], trace_limit) as trace,
               case when q.cancel_asked is not null or coalesce(outcomes[m.o], 'failed') = 'cancelled' then 'cancelled'
                    when coalesce(final[m.o], false) or q.tries + 1 >= coalesce(q.max_tries, m.max_tries,
                            5) then 'failed'
                    else 'retry' end as becomes,
               case when outcomes[m.o] in ('timeout', 'lost', 'cancelled') then outcomes[m.o] else 'failed' end
               as kind_of,
               -- in seconds, as an interval would overflow
               till + coalesce(retry_in[m.o], make_interval(secs => (0.8 + 0.4 * random()) *
                   least(extract(epoch from coalesce(c.backoff_max, interval '1 h'))::float8,
                         extract(epoch from coalesce(c.backoff_base, interval '5 s'))::float8 * power(2,
                                 least(q.tries, 40))))) as due
        from matched m cross join lateral (select q.* from queue q where q.queue = m.queue and q.priority = m.priority
                                     and q.state = 'ready'
                                   and q.seq = m.seq offset 0) q -- one by one, whatever the planner believes
        left join queue_config c on c.queue = m.queue
        where m.inside
    -- in the order of id: a job's place is found by halving, where a join would compare each with each
    ), by_id as materialized (
        select array_agg(id order by id) as ids, array_agg(becomes order by id) as becomes,
               array_agg(now_tries order by id) as tries,
               array_agg(error order by id) as errors, array_agg(due order by id) as due, array_agg(began order by id)
               as began,
               array_agg(history order by id) as history, array_agg(new_seq order by id) as seqs
        -- they keep their order
        from (select z.*, nextval('job_seq') as new_seq from (select * from ended_jobs order by was) z) z
    ), kept_jobs as (
        update queue q
        set seq = by_id.seqs[width_bucket(q.id, by_id.ids)],
        state = by_id.becomes[width_bucket(q.id, by_id.ids)]::job_state, changed = till,
            tries = by_id.tries[width_bucket(q.id, by_id.ids)], error = by_id.errors[width_bucket(q.id, by_id.ids)],
            error_key = error_key(by_id.errors[width_bucket(q.id, by_id.ids)]),
            run_after = case when by_id.becomes[width_bucket(q.id,
                                                             by_id.ids)] = 'retry' then by_id.due[width_bucket(q.id,
                                                                     by_id.ids)] end
        from by_id where q.id = any(array(select id from ended_jobs where becomes <> 'cancelled'))
        returning q.queue, q.state, q.error_key
    ), cancelled_jobs as (
        delete from queue q using by_id where q.id = any(array(select id from ended_jobs where becomes = 'cancelled'))
        returning q.*, by_id.began[width_bucket(q.id, by_id.ids)] as began, by_id.history[width_bucket(q.id, by_id.ids)]
        as history,
            by_id.tries[width_bucket(q.id, by_id.ids)] as now_tries, by_id.errors[width_bucket(q.id, by_id.ids)]
            as last_error
    ), history_rows as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body,
                             payload_type, error, unique_key, concurrency_key, origin_id, last_action, kept,
                             lease_timeout, run_timeout)
        select id, created, began, till, 'cancelled', priority, now_tries, max_tries, queue, kind, fail.node,
               case when history is null then payload end, case when history is null then body end, payload_type,
               last_error,
               unique_key, concurrency_key, origin_id, last_action, history is null, lease_timeout, run_timeout
        from cancelled_jobs where history is distinct from 'n'
    ), attempt_rows as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error, trace)
        select id, now_tries, was, queue, fail.node, began, till,
               case when becomes = 'cancelled' then 'cancelled' else kind_of end, error, trace
        from ended_jobs
    ), counted as (
        insert into delta (at, queue, priority, error_key, ready, retry, failed, fails, retried, cancelled, min_after)
        select till, j.queue, j.priority, null, -count(*), count(*) filter (where becomes = 'retry'),
               count(*) filter (where becomes = 'failed'),
               count(*) filter (where becomes = 'failed'), count(*) filter (where becomes = 'retry'),
               count(*) filter (where becomes = 'cancelled'), min(due) filter (where becomes = 'retry')
        from ended_jobs j group by j.queue, j.priority
        union all
        select till, queue, 0, error_key, 0, 0, count(*), 0, 0, 0, null from kept_jobs where state = 'failed'
        group by queue, error_key
    )
    select v.seq, case when ended.o[v.at] = v.first then ended.becomes[v.at]
                       when held.o[width_bucket(v.first, held.o)] = v.first then 'gone' else 'lost' end,
           case when ended.o[v.at] = v.first and ended.becomes[v.at] = 'retry' then ended.due[v.at] end
    from (select array_agg(m.o order by m.o) as o from matched m) held,
         (select array_agg(j.o order by j.o) as o, array_agg(j.becomes order by j.o) as becomes,
                 array_agg(j.due order by j.o) as due
          from ended_jobs j) ended,
         lateral (select z.seq, z.o, z.first, width_bucket(z.first, ended.o) as at
                  from (select y.seq, y.o, min(y.o) over (partition by y.lease, y.version, y.seq) as first
                        from unnest(fail.leases, versions, fail.seqs) with ordinality y (lease, version, seq, o)) z) v
    order by v.o;
end $$;
comment on function fail(text, bigint[], int[], bigint[], text[], text[], timestamptz[], interval[], boolean[],
    text[]) is
    'Jobs went wrong: retry (after the queue''s back-off or retry_in), failed (no tries left, or final), cancelled (an '
    'operator had asked), lost, gone. outcomes: failed, timeout or cancelled, for the attempt''s row';

create or replace function extend(node text, leases bigint[], versions int[], by interval,
    started_seqs bigint[] default null)
returns table (lease bigint, outcome text, lease_until timestamptz, cancel bigint[])
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    if by > interval '365 days' then
        raise 'a lease is extended by 365 days at most, not by %', by using errcode = 'QT007';
    end if;
    return query
    with given as materialized (
        select distinct lease, version from unnest(leases, versions) v (lease, version)
    ), locked_leases as materialized (
        select w.lease from (select * from given order by lease) g cross join lateral (
            select w.lease from work_queue w where w.lease = g.lease and w.version = g.version
              and w.lock_key = extend.node for update) w
    ), extended as (
        update work_queue w
        set lock_timeout = greatest(w.lock_timeout, now() + extend.by),
            started_seqs = case when extend.started_seqs is null or w.all_started then w.started_seqs else
                array(select s from unnest(w.seqs) s where s = any(extend.started_seqs)
                        or s = any(coalesce(w.started_seqs, '{}'))) end
        from locked_leases l where w.lease = l.lease
        returning w.lease, w.version, w.lock_timeout, w.queue, w.priority, w.seqs, w.scattered)
    select v.lease, case when u.lease is null then 'lost' else 'extended' end, u.lock_timeout,
           array(select q.seq from leased_jobs(u.queue, u.priority, u.seqs, u.scattered) q
                 where q.cancel_asked is not null)
    from unnest(leases, versions) with ordinality v (lease, version, o) left join extended u on u.lease = v.lease
        and u.version = v.version order by v.o;
end $$;
comment on function extend(text, bigint[], int[], interval, bigint[]) is 'Leases hold until now + by, never shorter '
    'than before. started_seqs: jobs that have been started. cancel: jobs of the lease that an operator wants ended';

create or replace function give_back(node text, leases bigint[], versions int[], seqs bigint[])
returns table (seq bigint, outcome text)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    mine bigint[];
    back bigint[];
begin
    select coalesce(array_agg(lease), '{}') into mine from (
        select w.lease
        from (select distinct v.lease, v.version from unnest(give_back.leases, versions) v (lease, version)
              order by v.lease, v.version) g
        cross join lateral (select w.lease from work_queue w where w.lease = g.lease and w.version = g.version
                            and w.lock_key = give_back.node for update) w) z;
    perform scheduler_lock(true);
    select coalesce(array_agg(t.seq), '{}') into back from take_back(mine, false, false, null, coalesce(seqs, '{}')) t;
    return query
    select v.seq, case when v.seq = any(back) then 'given back' when v.lease = any(mine) then 'gone' else 'lost' end
    from unnest(leases, seqs) with ordinality v (lease, seq, o) order by v.o;
end $$;
comment on function give_back(text, bigint[], int[], bigint[]) is 'Jobs that will not be worked here go back in line, '
    'without counting as a try';

create or replace function complete(node text, lease bigint, version int, seq bigint, result text default null)
    returns text
language sql security definer set search_path from current as $$
    select outcome from complete(node, array[lease], array[version], array[seq], null::timestamptz[],
                                 array[convert_to(result, 'UTF8')])
$$;
comment on function complete(text, bigint, int, bigint, text) is 'complete() for one job, by hand';

create or replace function fail(node text, lease bigint, version int, seq bigint, error text) returns text
language sql security definer set search_path from current as $$
    select outcome from fail(node, array[lease], array[version], array[seq], array[error])
$$;
comment on function fail(text, bigint, int, bigint, text) is 'fail() for one job, by hand';

create or replace function extend(node text, lease bigint, version int, by interval) returns timestamptz
language plpgsql security definer set search_path from current as $$
declare
    r record;
begin
    select * into r from extend(node, array[lease], array[version], by);
    if r.outcome = 'lost' then
        raise 'lease lost' using errcode = 'QT001', detail = format('lease %s, version %s is not held by %s', lease,
                version, node);
    end if;
    return r.lease_until;
end $$;
comment on function extend(text, bigint, int, interval) is 'extend() for one lease, by hand; QT001 where it is lost';
