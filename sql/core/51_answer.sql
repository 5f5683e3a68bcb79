-- The answers of a worker: complete, fail, extend, give_back. Each answer names lease, version and seq. The lease row
-- is deleted, updated or locked under exactly these values and the node's name, so a worker that has lost its lease
-- changes nothing. To read the lease without a lock would not be enough: it could be lost after the read.
-- A worker says when it started a job. Its clock may be wrong, so that time is moved into the interval from the claim
-- to till, the clock's time of the answer. now() would not do as the end: the transaction may have begun before the
-- claim.

create or replace function ms(since timestamptz, till timestamptz) returns int
language sql stable parallel safe as
$$ select greatest(0, least(1000 * (pg_catalog.date_part('epoch', till) - pg_catalog.date_part('epoch', since)),
                            2147483647))::int $$;
comment on function ms(timestamptz, timestamptz) is 'Milliseconds between two times, at most what an int holds; 0 if '
    'the clock was set back between them';

create or replace function answer_fits(leases bigint[], versions int[], seqs bigint[]) returns boolean
language sql immutable parallel safe as $$
    select fits(leases, pg_catalog.cardinality(seqs)) and fits(versions, pg_catalog.cardinality(seqs))
       and fits(seqs, pg_catalog.cardinality(seqs))
       and pg_catalog.array_position(leases, null) is null and pg_catalog.array_position(versions, null) is null
       and pg_catalog.array_position(seqs, null) is null
$$;
comment on function answer_fits(bigint[], int[], bigint[]) is 'Whether these arrays of an answer are in parallel and '
    'have no NULL. No SET, so that it is inlined';

create or replace function answer_check(leases bigint[], versions int[], seqs bigint[], names text[] default '{}',
    sizes text[] default '{}') returns void
language sql immutable as $$
    select arrays_check('{leases,versions,seqs}' || names,
                        array[array_size(leases), array_size(versions), array_size(seqs)] || sizes,
                        array[first_null(leases), first_null(versions), first_null(seqs)])
$$;
comment on function answer_check(bigint[], int[], bigint[], text[], text[]) is 'arrays_check() for the arrays of an '
    'answer. names, sizes: its other arrays';

create or replace function leave_leases(node text, leases bigint[], versions int[], seqs bigint[])
returns table (o bigint, seq bigint, queue text, priority smallint, started timestamptz, history "char",
               max_tries smallint, inside boolean)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with given as materialized (
        select pg_catalog.min(o) as o, lease, version, seq
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o)
        group by lease, version, seq
    ), matched as materialized (
        select g.o, g.seq, w.lease, w.queue, w.priority, w.started, w.history, w.max_tries,
               g.seq = any(w.seqs) as inside
        from given g cross join lateral (
            select * from work_queue w where w.lease = g.lease and w.version = g.version
              and w.lock_key = leave_leases.node offset 0) w
    ), rest as materialized ( -- by ctid: whatever the planner estimates, it can't read all leases to find these
        select w.at, array(select s from pg_catalog.unnest(w.seqs) s where s <> all(g.seqs) order by s) as seqs
        from (select m.lease, coalesce(pg_catalog.array_agg(m.seq) filter (where m.inside), '{}') as seqs from matched m
              group by m.lease) g
        cross join lateral (select w.ctid as at, w.seqs from work_queue w where w.lease = g.lease offset 0) w
    ), leases_gone as (
        delete from work_queue w using rest r where w.ctid = r.at and r.seqs = '{}'
    ), leases_cut as (
        update work_queue w set seqs = r.seqs from rest r where w.ctid = r.at and r.seqs <> '{}'
          and w.seqs <> r.seqs
    )
    select m.o, m.seq, m.queue, m.priority, m.started, m.history, m.max_tries, m.inside from matched m
    where only_ours();
end $$;
comment on function leave_leases(text, bigint[], int[], bigint[]) is 'Takes jobs out of leases that the caller has '
    'locked, and deletes leases that become empty. Returns a row for each job whose lease this node holds; o: the '
    'first position of the job in the arrays; inside: the lease held the job';

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
      and only_ours()
    order by w.lease + 0 for update; -- + 0: by the list, as 10_tables says
    till := pg_catalog.clock_timestamp();
    return query
    with matched as materialized (
        select * from leave_leases(complete_rest.node, complete_rest.leases, versions, complete_rest.seqs)
    ), jobs as materialized ( -- one by one, whatever the planner estimates
        select q.id, m.seq, m.o, m.started, m.history
        from matched m cross join lateral (select q.id from queue q where q.queue = m.queue and q.priority = m.priority
                                   and q.state = 'ready' and q.seq = m.seq offset 0) q
        where m.inside and only_ours()
    -- Sorted by seq, so that a job's position is found by binary search; a join would compare each job with each
    ), by_seq as materialized (
        select pg_catalog.array_agg(seq order by seq) as seqs, pg_catalog.array_agg(o order by seq) as o,
               pg_catalog.array_agg(started order by seq) as started,
               pg_catalog.array_agg(history order by seq) as history
        from jobs
    ), done_jobs as (
        delete from queue q using by_seq b
        where q.id = any(array(select id from jobs)) and b.seqs[pg_catalog.width_bucket(q.seq, b.seqs)] = q.seq
        returning q.*, b.o[pg_catalog.width_bucket(q.seq, b.seqs)] as o,
            b.history[pg_catalog.width_bucket(q.seq, b.seqs)] as history,
            least(till, greatest(complete_rest.started[b.o[pg_catalog.width_bucket(q.seq, b.seqs)]],
                                 b.started[pg_catalog.width_bucket(q.seq, b.seqs)])) as began
    ), history_rows as (
        insert into history (
-- part: history_columns
        ) select
-- part: history_values
        from (select j.*, 'completed'::job_state as ends_as, tries + 1 as ended_tries, error as ended_error,
                     last_action as ended_action, complete_rest.node, results[o] as result, history is null as keep
              from done_jobs j where history is distinct from 'n') ended
    ), counted as (
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        select till, queue, priority, -pg_catalog.count(*), pg_catalog.count(*), pg_catalog.sum(ms(began, till)),
               pg_catalog.array_agg(ms(changed, began)), pg_catalog.array_agg(ms(began, till))
        from done_jobs group by queue, priority
    )
    select v.seq, case when done.o[pg_catalog.width_bucket(v.first, done.o)] = v.first then 'done'
                       when held.o[pg_catalog.width_bucket(v.first, held.o)] = v.first then 'gone' else 'lost' end
    -- a job that is named twice gets the same outcome twice
    from (select z.seq, z.o, pg_catalog.min(z.o) over (partition by z.lease, z.version, z.seq) as first
          from unnest(complete_rest.leases, versions, complete_rest.seqs) with ordinality z (lease, version, seq, o)) v,
         (select pg_catalog.array_agg(m.o order by m.o) as o from matched m) held,
         (select pg_catalog.array_agg(j.o order by j.o) as o from done_jobs j) done
    order by v.o;
end $$;
comment on function complete_rest(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'complete() for parts of '
    'leases: locks the leases, then takes the completed jobs out of them';

create or replace function complete_some(node text, lease bigint, version int, seqs bigint[], started timestamptz[],
    results bytea[]) returns text[]
language sql as $$
    select array(select r.outcome
                 from complete_rest(complete_some.node,
                                    pg_catalog.array_fill(lease, array[pg_catalog.cardinality(seqs)]),
                                    pg_catalog.array_fill(version, array[pg_catalog.cardinality(seqs)]), seqs,
                                    complete_some.started, results) r)
    where only_ours()
$$;
comment on function complete_some(text, bigint, int, bigint[], timestamptz[], bytea[]) is 'complete_rest() for jobs '
    'that are said to be in one lease';

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
begin
    update work_queue w set seqs = pg_catalog.array_remove(w.seqs, complete_single.seqs[1])
    where w.lease = complete_single.lease and w.version = complete_single.version and w.lock_key = complete_single.node
      and w.seqs @> complete_single.seqs and w.seqs <> complete_single.seqs
    returning w.queue, w.priority, w.started, w.history into w;
    if not found then
        delete from work_queue w where w.lease = complete_single.lease and w.version = complete_single.version
          and w.lock_key = complete_single.node and w.seqs = complete_single.seqs
        returning w.queue, w.priority, w.started, w.history into w;
        if not found then
            perform answer_check(array[lease], array[version], seqs);
            return complete_some(node, lease, version, seqs, started, results);
        end if;
    end if;
    delete from queue q
    where q.queue = w.queue and q.priority = w.priority and q.state = 'ready' and q.seq = complete_single.seqs[1]
      and only_ours()
    returning
-- part: carried of=q.
            , q.id, q.created, q.changed, q.tries, q.payload, q.body, q.origin_id, q.last_action, q.error,
            pg_catalog.clock_timestamp() as till into j;
    if not found then
        return array['gone'];
    end if;
    began := least(j.till, case when started is null then w.started else greatest(started[1], w.started) end);
    run := ms(began, j.till);
    if w.history is distinct from 'n' then
        insert into history (
-- part: history_columns
        ) values (
-- part: carried of=j.
            , j.id, j.created, began, j.till, 'completed', w.queue, w.priority, j.tries + 1, node,
            case when w.history is null then j.payload end, case when w.history is null then j.body end,
            case when w.history is null then results[1] end, j.error, j.origin_id, j.last_action, w.history is null,
            null);
    end if;
    insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
    values (j.till, w.queue, w.priority, -1, 1, run, array[ms(j.changed, began)], array[run]);
    return null;
end $$;
comment on function complete_single(text, bigint, int, bigint[], timestamptz[], bytea[]) is 'complete_jobs() for one '
    'job, in plain statements: to start one statement with several steps and many columns would cost more than all the '
    'rest';

create or replace function leave_lease(node text, lease bigint, version int, said bigint[], out queue text,
    out priority smallint, out seqs bigint[], out started timestamptz, out history "char", out same boolean,
    out till timestamptz)
language plpgsql as $$
#variable_conflict use_column
begin
    update work_queue w set seqs = array(select s from pg_catalog.unnest(w.seqs) s where s <> all(said))
    where w.lease = leave_lease.lease and w.version = leave_lease.version and w.lock_key = leave_lease.node
      and said <@ w.seqs and not w.seqs <@ said and w.scattered is null and only_ours()
    returning w.queue, w.priority, (select pg_catalog.array_agg(s order by s) from pg_catalog.unnest(said) s),
        w.started, w.history, pg_catalog.clock_timestamp()
    into queue, priority, seqs, started, history, till;
    same := seqs = said;
end $$;
comment on function leave_lease(text, bigint, int, bigint[]) is 'Takes the named jobs (said) out of a lease that has '
    'more. seqs: the jobs, sorted; same: they were named in this order, so a job''s position is found by binary '
    'search; till: the time of the answer. queue is NULL if this node does not hold all of them in this lease, or if '
    'the lease is scattered';

create or replace function complete_one(node text, lease bigint, version int, seqs bigint[], started timestamptz[],
    results bytea[]) returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    w    record;
    done bigint[];
    run  bigint; runs int[]; wait int[];
begin
    delete from work_queue w
    where w.lease = complete_one.lease and w.version = complete_one.version and w.lock_key = complete_one.node
      and (w.seqs = complete_one.seqs or w.seqs <@ complete_one.seqs) and w.scattered is null
    returning w.queue, w.priority, w.seqs, w.started, w.history, w.seqs = complete_one.seqs as same,
        pg_catalog.clock_timestamp() as till into w;
    if not found then
        w := leave_lease(node, lease, version, seqs);
        if w.queue is null then
            return complete_some(node, lease, version, seqs, started, results);
        end if;
    end if;
    with done_job as (
        delete from queue q
        where q.queue = w.queue and q.priority = w.priority and q.state = 'ready'
          and q.seq between w.seqs[1] and w.seqs[pg_catalog.cardinality(w.seqs)]
          and w.seqs[pg_catalog.width_bucket(q.seq, w.seqs)] = q.seq and only_ours()
        returning
-- part: carried of=q.
            , q.id, q.created, q.changed, q.seq, q.tries, q.payload, q.body, q.origin_id, q.last_action, q.error,
            least(w.till, case when complete_one.started is null then w.started else greatest(w.started,
                complete_one.started[case when w.same then pg_catalog.width_bucket(q.seq, w.seqs)
                                          else pg_catalog.array_position(complete_one.seqs, q.seq) end]) end) as began
    ), history_row as (
        insert into history (
-- part: history_columns
        ) select
-- part: history_values
        from (select j.*, w.till, w.queue, w.priority, 'completed'::job_state as ends_as, tries + 1 as ended_tries,
                     error as ended_error, last_action as ended_action, complete_one.node, w.history is null as keep,
                     null::timestamptz as run_after,
                     results[case when w.same then pg_catalog.width_bucket(seq, w.seqs)
                                  else pg_catalog.array_position(complete_one.seqs, seq) end] as result
              from done_job j where w.history is distinct from 'n') ended
    )
    select pg_catalog.array_agg(seq), pg_catalog.array_agg(ms(changed, began)),
           pg_catalog.array_agg(ms(began, w.till)) filter (where complete_one.started is not null), -- else all the same
           pg_catalog.sum(ms(began, w.till)) filter (where complete_one.started is not null)
    into done, wait, runs, run from done_job;
    if started is null then
        runs := pg_catalog.array_fill(ms(w.started, w.till), array[coalesce(pg_catalog.cardinality(done), 0)]);
        run := runs[1]::bigint * pg_catalog.cardinality(done);
    end if;
    insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
    select w.till, w.queue, w.priority, -pg_catalog.cardinality(done), pg_catalog.cardinality(done), run, wait, runs
    where done is not null;
    if pg_catalog.cardinality(done) = pg_catalog.cardinality(seqs) then
        return null;
    end if;
    return array(select case when s = any(done) then 'done' when s = any(w.seqs) then 'gone' else 'lost' end
                 from pg_catalog.unnest(seqs) s where only_ours());
end $$;
comment on function complete_one(text, bigint, int, bigint[], timestamptz[], bytea[]) is 'complete_jobs() for jobs '
    'that are all in one lease. The DELETE tries = first, because <@ compares each job with each; it returns what '
    'leave_lease() returns';

create or replace function check_result(size bigint) returns void
language plpgsql stable set search_path from current as $$
begin
    if size > setting_int('result_limit') then
        raise 'result of % bytes is more than the limit of %', size, setting_int('result_limit')
            using errcode = 'QT004', hint = 'table setting, result_limit';
    end if;
end $$;
comment on function check_result(bigint) is 'Raises QT004 if a result is larger than the setting result_limit';

create or replace function check_extras(leases bigint[], versions int[], seqs bigint[], started timestamptz[],
    results bytea[]) returns int
language plpgsql stable as $$
begin
    if ((started is null or fits(started, pg_catalog.cardinality(seqs)))
        and (results is null or fits(results, pg_catalog.cardinality(seqs)))) is not true then
        perform answer_check(leases, versions, seqs, '{started,results}',
                             array[array_size(started), array_size(results)]);
    end if;
    if results is not null then -- an IF of its own: a condition with a query in it would run the query each time
        perform check_result(size)
            from (select pg_catalog.max(pg_catalog.octet_length(r)) as size from pg_catalog.unnest(results) r) x
        where size > 1000;
    end if;
    return pg_catalog.cardinality(seqs);
end $$;
comment on function check_extras(bigint[], int[], bigint[], timestamptz[], bytea[]) is 'Raises if started or results '
    'are not in parallel to the jobs (QT007), or a result is too large (QT004). Returns the number of jobs';

create or replace function leave_whole(node text, leases bigint[], versions int[], jobs bigint[],
    begun timestamptz[], answers bytea[])
returns table (lease bigint, version int, queue text, priority smallint, seqs bigint[], scattered boolean,
               started timestamptz, history "char", same boolean, said bigint[], began timestamptz[], results bytea[])
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with given as materialized (
        select lease, version, pg_catalog.array_agg(seq) as seqs, pg_catalog.array_agg(began) as began,
            pg_catalog.array_agg(result) as results
        from unnest(leases, versions, jobs, begun, answers) v (lease, version, seq, began, result) group by 1, 2
    ), found as materialized ( -- by ctid: whatever the planner estimates, it can't read all leases to find these
        select g.*, w.at from given g cross join lateral (
            select w.ctid as at from work_queue w where w.lease = g.lease offset 0) w
    )
    delete from work_queue w using found g
    where w.ctid = g.at and w.version = g.version and w.lock_key = leave_whole.node
      and (w.seqs = g.seqs or w.seqs <@ g.seqs) and only_ours()
    returning w.lease, w.version, w.queue, w.priority, w.seqs, w.scattered, w.started, w.history, w.seqs = g.seqs,
        g.seqs, g.began, g.results;
end $$;
comment on function leave_whole(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'Deletes those of these '
    'leases whose jobs are all named; the caller has locked the leases. same: the jobs are named in order, so a job''s '
    'position is found by binary search';

create or replace function complete_whole(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[], out held bigint[], out done bigint[], out moved bigint[])
language plpgsql set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    till timestamptz;
begin
    perform from work_queue w where w.lease = any(complete_whole.leases) and w.lock_key = complete_whole.node
    order by w.lease + 0 for update; -- + 0: by the list, as 10_tables says
    till := pg_catalog.clock_timestamp();
    with whole_leases as materialized (
        select * from leave_whole(complete_whole.node, complete_whole.leases, versions, complete_whole.seqs,
                                  complete_whole.started, complete_whole.results)
        where only_ours()
    ), extra as materialized (
        select q.ctid as at, q.seq, w.lease, w.history,
               least(till, case when complete_whole.started is null then w.started
                                else greatest(w.started, w.began[
                                    case when w.same then pg_catalog.width_bucket(q.seq, w.said)
                                         else pg_catalog.array_position(w.said, q.seq) end]) end) as began,
               case when w.history is null and complete_whole.results is not null then w.results[
                    case when w.same then pg_catalog.width_bucket(q.seq, w.said)
                         else pg_catalog.array_position(w.said, q.seq) end] end as result
        from whole_leases w cross join lateral ranges(w.seqs, w.scattered) r
        cross join lateral (select q.ctid, q.seq from queue q where q.queue = w.queue and q.priority = w.priority
            and q.state = 'ready' and q.seq between r.low and r.high
            and w.seqs[pg_catalog.width_bucket(q.seq, w.seqs)] = q.seq offset 0) q
    ), done_jobs as ( -- a job that somebody has changed since this statement began stays: it has moved
        delete from queue q using extra x where q.ctid = x.at and q.seq = x.seq and q.state::text = 'ready' returning
-- part: carried of=q.
            , q.id, q.created, q.changed, q.seq, q.queue, q.priority, q.tries, q.payload, q.body, q.origin_id,
            q.last_action, q.error, x.history, x.began, x.result
    ), history_rows as (
        insert into history (
-- part: history_columns
        ) select
-- part: history_values
        from (select j.*, 'completed'::job_state as ends_as, tries + 1 as ended_tries, error as ended_error,
                     last_action as ended_action, complete_whole.node, history is null as keep,
                     null::timestamptz as run_after
              from done_jobs j where history is distinct from 'n') ended
    ), counted as (
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        select till, queue, priority, -pg_catalog.count(*), pg_catalog.count(*), pg_catalog.sum(ms(began, till)),
               pg_catalog.array_agg(ms(changed, began)), pg_catalog.array_agg(ms(began, till))
        from done_jobs group by queue, priority
    ), missing as materialized ( -- jobs that were not deleted get their lease back
        select x.lease, pg_catalog.array_agg(x.seq order by x.seq) as seqs from extra x
        where (select pg_catalog.count(*) from extra) > (select pg_catalog.count(*) from done_jobs)
          and x.seq <> all(array(select seq from done_jobs)) group by x.lease
    ), back as (
        insert into work_queue (lease, version, lock_key, lock_timeout, started, queue, priority, seqs, history)
        select m.lease, w.version + 1, complete_whole.node, pg_catalog.now(), w.started, w.queue, w.priority, m.seqs,
               w.history from missing m join whole_leases w on w.lease = m.lease
    )
    select (select pg_catalog.array_agg(seq) from done_jobs),
           (select pg_catalog.array_agg(s) from whole_leases w, pg_catalog.unnest(w.seqs) s),
           (select pg_catalog.array_agg(s) from missing m, pg_catalog.unnest(m.seqs) s)
    into done, held, moved;
end $$;
comment on function complete_whole(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'complete_one() for '
    'several whole leases in one statement. moved: jobs that somebody changed meanwhile; this node holds their lease '
    'again, with the next version';

create or replace function complete_moved(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[], moved bigint[])
returns bigint[]
language sql as $$
    select array(
        select r.seq
        from (select pg_catalog.array_agg(lease) as leases, pg_catalog.array_agg(version + 1) as versions,
                     pg_catalog.array_agg(seq) as seqs,
                     pg_catalog.array_agg(began) as started, pg_catalog.array_agg(result) as results
              from unnest(complete_moved.leases, complete_moved.versions, complete_moved.seqs, complete_moved.started,
                          complete_moved.results) v (lease, version, seq, began, result)
              where seq = any(moved)) v,
             complete_rest(complete_moved.node, v.leases, v.versions, v.seqs, v.started, v.results) r
        where r.outcome = 'done' and only_ours())
$$;
comment on function complete_moved(text, bigint[], int[], bigint[], timestamptz[], bytea[], bigint[]) is 'Completes '
    'the jobs that had moved while complete_whole() ran, and returns those that are completed now';

create or replace function complete_jobs(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    c record;
    k text[];
    n int := pg_catalog.cardinality(seqs);
begin
    if started is not null or results is not null then
        n := check_extras(leases, versions, seqs, started, results);
    end if;
    if pg_catalog.current_setting('queuetop.day', true) is distinct from current_date::text || current_schema then
        perform have_day();
    end if;
    if n = 1 and leases[2] is null and versions[2] is null then -- by subscripts, which cost next to nothing
        return complete_single(node, leases[1], versions[1], seqs, started, results);
    end if;
    if leases[1] = all(leases) and versions[1] = all(versions) and pg_catalog.array_length(leases, 1) = n
       and pg_catalog.array_length(versions, 1) = n and pg_catalog.array_upper(seqs, 1) = n and seqs[1] is not null
       and pg_catalog.array_position(seqs, null) is null then
        return complete_one(node, leases[1], versions[1], seqs, started, results);
    end if;
    if answer_fits(leases, versions, seqs) is not true then
        perform answer_check(leases, versions, seqs);
    end if;
    c := complete_whole(node, leases, versions, seqs, started, results);
    if c.moved is not null then
        c.done := c.done || complete_moved(node, leases, versions, seqs, started, results, c.moved);
    end if;
    if pg_catalog.cardinality(c.done) = pg_catalog.cardinality(seqs) then
        return null;
    elsif c.held is null then
        return array(select r.outcome from complete_rest(node, leases, versions, seqs, started, results) r
                     where only_ours());
    end if;
    with given as materialized (
        select v.*, pg_catalog.row_number() over (partition by z.ours order by o) as k, z.ours
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o),
            lateral (select coalesce(v.seq = any(c.held), false) as ours) z
    ), rest as (
        select r.*
        from (select pg_catalog.array_agg(lease order by o) as l, pg_catalog.array_agg(version order by o) as n,
                     pg_catalog.array_agg(seq order by o) as s,
                     pg_catalog.array_agg(complete_jobs.started[o] order by o) as b,
                     pg_catalog.array_agg(results[o] order by o) as t
              from given where not ours) x,
             complete_rest(complete_jobs.node, x.l, x.n, x.s, x.b, x.t) with ordinality r (seq, outcome, k))
    select pg_catalog.array_agg(case when not v.ours then rest.outcome when v.seq = any(c.done) then 'done'
                                else 'gone' end order by v.o)
    from given v left join rest on not v.ours and rest.k = v.k where only_ours() into k;
    return k;
end $$;
comment on function complete_jobs(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'The work of complete() '
    'and complete_and_claim(). Returns the outcomes in order; NULL = all jobs are completed';

create or replace function complete(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[] default null, results bytea[] default null)
returns table (seq bigint, outcome text)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_indexscan = on set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    said text[] := complete_jobs(node, leases, versions, seqs, started, results);
begin
    for i in 1 .. coalesce(pg_catalog.cardinality(seqs), 0) loop -- RETURN QUERY would start one more statement
        seq := seqs[i];
        outcome := coalesce(said[i], 'done');
        return next;
    end loop;
end $$;
comment on function complete(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'Completes jobs. Outcomes: '
    'done = completed and recorded; lost = another node has the lease by now, nothing was changed; gone = the job no '
    'longer exists (cancelled, deleted, or completed before). Arrays in parallel (QT007: their lengths differ, or a '
    'lease, version or seq is NULL)';

create or replace function complete_and_claim(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[],
    results bytea[], n int, timeout interval default null, queues text[] default null, start boolean default true)
returns table (outcome text, lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int,
               try int, max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_indexscan = on set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
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
    elsif leases <> '{}' or versions <> '{}' then
        perform answer_check(leases, versions, seqs);
    end if;
    while rows = 0 loop -- from here on the same as claim()
        w := take_lease(node, n, timeout, queues, start);
        exit when w.jobs is null;
        at := pg_catalog.clock_timestamp();
        if w.leases is null then
            return query
            select null, w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
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
    'Rows with an outcome name given jobs that were NOT completed (lost, gone); all others are claimed jobs';

do $$
begin
    if to_regtype('ended_try') is null then
        create type ended_try as (o bigint, id uuid, queue text collate "C", priority smallint, tries int, seq bigint,
                                  history "char", began timestamptz, error text, outcome text, becomes text,
                                  due timestamptz);
    end if;
end $$;
comment on type ended_try is 'A try that fail() ends. o: its position in the arrays of the answer; tries: those of the '
    'job, with this one; outcome: as the worker named it; becomes: the next state of the job; due: when it is tried '
    'again';

create or replace function back_off(tries int, base interval, most interval) returns interval
language sql as $$
    -- computed in seconds, because an interval would overflow
    select pg_catalog.make_interval(secs => (0.8 + 0.4 * pg_catalog.random()) *
        least(extract(epoch from coalesce(most, interval '1 h'))::float8,
              extract(epoch from coalesce(base, interval '5 s'))::float8 * pg_catalog.power(2, least(tries, 40))))
$$;
comment on function back_off(int, interval, interval) is 'How long a job waits that has failed, give or take a fifth. '
    'tries: how often it had failed before. No SET, so that it is inlined';

create or replace function end_tries(node text, till timestamptz, given ended_try[], traces text[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    trace_limit int := case when traces is not null then setting_int('trace_limit') end; -- most have none: no look-up
begin
    with ended_tries as materialized (
        select * from pg_catalog.unnest(given) where only_ours()
    -- Sorted by id, so that a job's position is found by binary search; a join would compare each job with each
    ), by_id as materialized (
        select pg_catalog.array_agg(id order by id) as ids, pg_catalog.array_agg(becomes order by id) as becomes,
               pg_catalog.array_agg(tries order by id) as tries, pg_catalog.array_agg(error order by id) as errors,
               pg_catalog.array_agg(due order by id) as due, pg_catalog.array_agg(began order by id) as began,
               pg_catalog.array_agg(history order by id) as history, pg_catalog.array_agg(new_seq order by id) as seqs
        -- the new numbers keep the order of the old ones
        from (select z.*, pg_catalog.nextval('job_seq') as new_seq from (select * from ended_tries order by seq) z) z
    ), kept_jobs as (
        update queue q set seq = b.seqs[pg_catalog.width_bucket(q.id, b.ids)],
            state = b.becomes[pg_catalog.width_bucket(q.id, b.ids)]::job_state,
            changed = till, tries = b.tries[pg_catalog.width_bucket(q.id, b.ids)],
            error = b.errors[pg_catalog.width_bucket(q.id, b.ids)],
            error_key = error_key(b.errors[pg_catalog.width_bucket(q.id, b.ids)]),
            run_after = case when b.becomes[pg_catalog.width_bucket(q.id, b.ids)] = 'retry'
                             then b.due[pg_catalog.width_bucket(q.id, b.ids)] end
        from by_id b where q.id = any(array(select id from ended_tries where becomes <> 'cancelled'))
        returning q.queue, q.state, q.error_key
    ), cancelled_jobs as (
        delete from queue q using by_id b
        where q.id = any(array(select id from ended_tries where becomes = 'cancelled'))
        returning q.*, b.began[pg_catalog.width_bucket(q.id, b.ids)] as began,
            b.history[pg_catalog.width_bucket(q.id, b.ids)] as history,
            b.tries[pg_catalog.width_bucket(q.id, b.ids)] as now_tries,
            b.errors[pg_catalog.width_bucket(q.id, b.ids)] as last_error
    ), history_rows as (
        insert into history (
-- part: history_columns
        ) select
-- part: history_values
        from (select j.*, 'cancelled'::job_state as ends_as, now_tries as ended_tries, last_error as ended_error,
                     last_action as ended_action, end_tries.node, null::bytea as result, history is null as keep
              from cancelled_jobs j where history is distinct from 'n') ended
    ), attempt_rows as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error, trace)
        select id, tries, seq, queue, end_tries.node, began, till,
               case when becomes = 'cancelled' then 'cancelled' else outcome end, error,
               pg_catalog.left(traces[o], trace_limit)
        from ended_tries
    )
    insert into delta (at, queue, priority, error_key, ready, retry, failed, fails, retried, cancelled, min_after)
    select till, queue, priority, null, -pg_catalog.count(*), pg_catalog.count(*) filter (where becomes = 'retry'),
           pg_catalog.count(*) filter (where becomes = 'failed'),
           pg_catalog.count(*) filter (where becomes = 'failed'),
           pg_catalog.count(*) filter (where becomes = 'retry'),
           pg_catalog.count(*) filter (where becomes = 'cancelled'),
           pg_catalog.min(due) filter (where becomes = 'retry')
    from ended_tries group by queue, priority
    union all
    select till, queue, 0, error_key, 0, 0, pg_catalog.count(*), 0, 0, 0, null from kept_jobs where state = 'failed'
    group by queue, error_key;
end $$;
comment on function end_tries(text, timestamptz, ended_try[], text[]) is 'Writes what fail() has decided: the jobs, or '
    'history if they are cancelled, the attempts and the counters';

create or replace function fail(node text, leases bigint[], versions int[], seqs bigint[], errors text[],
    traces text[] default null, started timestamptz[] default null, retry_in interval[] default null,
    final boolean[] default null, outcomes text[] default null)
returns table (seq bigint, outcome text, run_after timestamptz)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours(); error_limit int := setting_int('error_limit');
    till        timestamptz; tries ended_try[];
    held        bigint[]; -- positions of the jobs whose leases this node holds, sorted
    ended       bigint[]; -- positions of the tries, sorted
begin
    if seqs[2] is not null or seqs[1] is null or leases[1] is null or versions[1] is null or errors[1] is null
       or leases[2] is not null or versions[2] is not null or errors[2] is not null or traces is not null
       or started is not null or retry_in is not null or final is not null or outcomes is not null then
        perform answer_check(leases, versions, seqs, '{errors,traces,started,retry_in,final,outcomes}',
                             array[array_size(errors), array_size(traces), array_size(started), array_size(retry_in),
                                   array_size(final), array_size(outcomes)]);
    end if;
    if interval '365 days' < any(retry_in) then
        raise 'a retry comes within 365 days, not in %', (select pg_catalog.max(r) from pg_catalog.unnest(retry_in) r)
            using errcode = 'QT007';
    end if;
    if pg_catalog.current_setting('queuetop.day', true) is distinct from current_date::text || current_schema then
        perform have_day();
    end if;
    perform from work_queue w where w.lease = any(fail.leases) and w.lock_key = fail.node
    order by w.lease + 0 for update; -- + 0: by the list, as 10_tables says
    till := pg_catalog.clock_timestamp();
    with matched as materialized (
        select * from leave_leases(fail.node, fail.leases, versions, fail.seqs)
    )
    select (select pg_catalog.array_agg(m.o order by m.o) from matched m), pg_catalog.array_agg(m.o order by m.o),
           pg_catalog.array_agg((m.o, q.id, q.queue, q.priority, q.tries + 1, m.seq, m.history,
        least(till, greatest(fail.started[m.o], m.started)),
        pg_catalog.left(coalesce(fail.errors[m.o], ''), error_limit),
        case when outcomes[m.o] in ('timeout', 'lost', 'cancelled') then outcomes[m.o] else 'failed' end,
        case when q.cancel_asked is not null or coalesce(outcomes[m.o], 'failed') = 'cancelled' then 'cancelled'
             when coalesce(final[m.o], false) or q.tries + 1 >= coalesce(q.max_tries, m.max_tries, 5) then 'failed'
             else 'retry' end,
        till + coalesce(retry_in[m.o], back_off(q.tries, c.backoff_base, c.backoff_max)))::ended_try order by m.o)
    into held, ended, tries
    from matched m cross join lateral (select q.* from queue q where q.queue = m.queue and q.priority = m.priority
        and q.state = 'ready' and q.seq = m.seq offset 0) q -- one by one, whatever the planner estimates
    left join queue_config c on c.queue = m.queue
    where m.inside and only_ours();
    if tries is not null then
        perform end_tries(fail.node, till, tries, traces);
    end if;
    return query
    select v.seq, case when ended[v.at] = v.first then (tries[v.at]).becomes
                       when held[pg_catalog.width_bucket(v.first, held)] = v.first then 'gone' else 'lost' end,
           case when ended[v.at] = v.first and (tries[v.at]).becomes = 'retry' then (tries[v.at]).due end
    from (select z.seq, z.o, z.first, pg_catalog.width_bucket(z.first, ended) as at
          from (select y.seq, y.o, pg_catalog.min(y.o) over (partition by y.lease, y.version, y.seq) as first
                from unnest(fail.leases, versions, fail.seqs) with ordinality y (lease, version, seq, o)) z) v
    where only_ours() order by v.o;
end $$;
comment on function fail(text, bigint[], int[], bigint[], text[], text[], timestamptz[], interval[], boolean[], text[])
    is
    'Records that jobs failed. Outcomes: retry (after the queue''s back-off, or retry_in), failed (no tries left, or '
    'final), cancelled (an operator had asked for it), lost, gone. outcomes: failed, timeout or cancelled, as the '
    'attempt''s row shall say';

create or replace function extend(node text, leases bigint[], versions int[], by interval,
    started_seqs bigint[] default null)
returns table (lease bigint, outcome text, lease_until timestamptz, cancel bigint[])
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
begin
    if by > interval '365 days' then
        raise 'a lease is extended by 365 days at most, not by %', by using errcode = 'QT007';
    end if;
    if (fits(leases, pg_catalog.cardinality(leases)) and fits(versions, pg_catalog.cardinality(leases))
        and pg_catalog.array_position(leases, null) is null
        and pg_catalog.array_position(versions, null) is null) is not true then
        perform arrays_check('{leases,versions}', array[array_size(leases), array_size(versions)],
                             array[first_null(leases), first_null(versions)]);
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
        set lock_timeout = greatest(w.lock_timeout, pg_catalog.now() + extend.by),
            started_seqs = case when extend.started_seqs is null or w.all_started then w.started_seqs else
                array(select s from pg_catalog.unnest(w.seqs) s where s = any(extend.started_seqs)
                        or s = any(coalesce(w.started_seqs, '{}'))) end
        from locked_leases l where w.lease = l.lease
        returning w.lease, w.version, w.lock_timeout, w.queue, w.priority, w.seqs, w.scattered)
    select v.lease, case when u.lease is null then 'lost' else 'extended' end, u.lock_timeout,
           array(select q.seq from leased_jobs(u.queue, u.priority, u.seqs, u.scattered) q
                 where q.cancel_asked is not null)
    from unnest(leases, versions) with ordinality v (lease, version, o) left join extended u on u.lease = v.lease
        and u.version = v.version order by v.o;
end $$;
comment on function extend(text, bigint[], int[], interval, bigint[]) is 'Extends leases until now + by, never to an '
    'earlier time than before. started_seqs: jobs that have been started. Returns in cancel the jobs of the lease that '
    'an operator wants ended';

create or replace function give_back(node text, leases bigint[], versions int[], seqs bigint[])
returns table (seq bigint, outcome text)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    mine bigint[];
    back bigint[];
begin
    if answer_fits(leases, versions, seqs) is not true then
        perform answer_check(leases, versions, seqs);
    end if;
    select coalesce(pg_catalog.array_agg(lease), '{}') into mine from (
        select w.lease
        from (select distinct v.lease, v.version from unnest(give_back.leases, versions) v (lease, version)
              order by v.lease, v.version) g
        cross join lateral (select w.lease from work_queue w where w.lease = g.lease and w.version = g.version
                            and w.lock_key = give_back.node for update) w) z;
    perform scheduler_lock(true);
    select coalesce(pg_catalog.array_agg(t.seq), '{}') into back
    from take_back(mine, false, false, null, coalesce(seqs, '{}')) t
    where only_ours();
    return query
    select v.seq, case when v.seq = any(back) then 'given back' when v.lease = any(mine) then 'gone' else 'lost' end
    from unnest(leases, seqs) with ordinality v (lease, seq, o) where only_ours() order by v.o;
end $$;
comment on function give_back(text, bigint[], int[], bigint[]) is 'Gives back jobs that this node will not work on: '
    'they become ready again, and no try is counted';

-- For one job or lease: names of their own. With one name for both forms, a call whose parameters have no types yet
-- could mean either.

create or replace function complete_job(node text, lease bigint, version int, seq bigint, result text default null)
    returns text
language sql security definer set search_path from current as $$
    select only_ours();
    select outcome from complete(node, array[lease], array[version], array[seq], null::timestamptz[],
                                 array[pg_catalog.convert_to(result, 'UTF8')])
$$;
comment on function complete_job(text, bigint, int, bigint, text) is 'complete() for one job; returns its outcome';

create or replace function fail_job(node text, lease bigint, version int, seq bigint, error text) returns text
language sql security definer set search_path from current as $$
    select only_ours();
    select outcome from fail(node, array[lease], array[version], array[seq], array[error])
$$;
comment on function fail_job(text, bigint, int, bigint, text) is 'fail() for one job; returns its outcome';

create or replace function extend_lease(node text, lease bigint, version int, by interval) returns timestamptz
language plpgsql security definer set search_path from current as $$
declare
    trusted boolean := only_ours();
    r record;
begin
    select * into r from extend(node, array[lease], array[version], by);
    if r.outcome = 'lost' then
        raise 'lease lost' using errcode = 'QT001',
            detail = pg_catalog.format('lease %s, version %s is not held by %s', lease, version, node);
    end if;
    return r.lease_until;
end $$;
comment on function extend_lease(text, bigint, int, interval) is 'extend() for one lease; returns its new end, and '
    'raises QT001 if the lease is lost';
