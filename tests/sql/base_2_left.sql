-- Functions that earlier trees of version 2 made and the base no longer does, as they were. The test of upgrades adds them
-- to the base.

CREATE OR REPLACE FUNCTION complete_leases(node text, leases bigint[], versions integer[], seqs bigint[], started timestamp with time zone[], results bytea[], OUT held bigint[], OUT done bigint[])
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
end $function$
;
CREATE OR REPLACE FUNCTION many_check(ids uuid[], queues text[], priorities integer[], max_tries integer[], unique_keys text[], concurrency_keys text[], delays interval[], expires_ins interval[])
 RETURNS void
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'q', 'pg_temp'
AS $function$
begin
    perform job_check(g.queue, g.priority, g.tries, g.unique_key, g.concurrency_key)
    from unnest(ids, queues, priorities, many_check.max_tries, unique_keys, concurrency_keys)
         g (id, queue, priority, tries, unique_key, concurrency_key);
    perform later(d) from unnest(delays) d;
    perform later(d) from unnest(expires_ins) d;
end $function$
;
CREATE OR REPLACE FUNCTION push_rows(ids uuid[], queues text[], kinds text[], priorities integer[], run_afters timestamp with time zone[], delays interval[], unique_keys text[], max_tries integer[], run_timeouts interval[], lease_timeouts interval[], payloads text[], bodies bytea[], types text[], expires_ats timestamp with time zone[], expires_ins interval[], concurrency_keys text[])
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'q', 'pg_temp'
AS $function$
    with given as materialized (
        select nextval('job_seq') as seq, g.*
        from unnest(ids, queues, kinds, priorities, run_afters, delays, unique_keys, max_tries, run_timeouts,
                    lease_timeouts, payloads, bodies, types, expires_ats, expires_ins, concurrency_keys)
             g (id, queue, kind, priority, run_after, delay, unique_key, tries, run_timeout, lease_timeout, payload,
                body, type, expires_at,
                expires_in, concurrency_key)
    )
    insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, unique_key, max_tries,
                       run_timeout, lease_timeout,
                       expires_at, concurrency_key)
    select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
           coalesce(run_after, now() + delay), unique_key,
           tries, run_timeout, lease_timeout, coalesce(expires_at, now() + expires_in), concurrency_key
    from given order by id
$function$
;
