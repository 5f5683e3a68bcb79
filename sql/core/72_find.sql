-- What the acts on jobs share (cancel, discard, delete, priority, time): which jobs a filter names, what they would
-- become, and how a waiting job leaves its free lease. Only one function, act_becomes, decides what becomes of a job,
-- so the preview and the act agree.

create or replace function held() returns table (queue text, seq bigint)
language sql stable set search_path from current as $$
    select w.queue, s from live w, unnest(w.seqs) s where w.lock_key is not null
$$;
comment on function held() is 'The jobs that run: those in leases that a node has claimed';

create or replace function act_becomes(verb text, state job_state, runs boolean, asked boolean, priority smallint,
    wanted int, run_after timestamptz, at timestamptz)
returns table (becomes text, why text)
language sql stable as $$ -- no SET, so that it is inlined; only functions with a pinned path call it
    select case
        when verb = 'cancel' then case when runs and not asked then 'running'
                                       when not runs and state <> 'failed' then 'cancelled' end
        when runs then null
        when verb = 'discard' then 'discarded'
        when verb = 'delete' then 'deleted'
        when verb = 'priority' then case when priority <> wanted then 'at priority ' || wanted end
        when state = 'failed' then null
        when at is null then case when state in ('scheduled', 'retry') then 'ready' end
        when run_after is distinct from at then case when state = 'retry' then 'retry' else 'scheduled' end end,
    case
        when verb = 'cancel' and runs then case when asked then 'asked to end already' else 'asked to end' end
        when runs then 'running'
        when verb = 'cancel' and state = 'failed' then 'failed: discard or delete it'
        when verb in ('cancel', 'discard', 'delete') then null
        when verb = 'priority' then case when priority = wanted then 'has it already' else 'was ' || priority end
        when state = 'failed' then 'failed: requeue it'
        when at is null then case state when 'ready' then 'ready already'
                                  when 'blocked' then 'waits for its concurrency key' end
        when run_after = at then 'has that time already' end
$$;
comment on function act_becomes(text, job_state, boolean, boolean, smallint, int, timestamptz, timestamptz) is 'What '
    'an act makes of a job (becomes; NULL: the job is left alone), and why. at NULL = now';

-- groups are hashed: a million rows make few groups, and no plan should sort or merge the rows
create or replace function act_preview(verb text, ids uuid[], which job_filter, wanted int default null,
    at timestamptz default null)
returns table (state text, n bigint, why text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set enable_sort = off set enable_mergejoin = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
    perform change_check(verb, wanted, at);
    if ids is not null then
        return query
        select b.becomes, count(*), case
            when q.id is null then case when exists (select from history_of(array[i.id])) then 'finished'
                                        else 'no such job' end
            when b.becomes in ('discarded', 'deleted', 'cancelled') then q.state::text
            else b.why end
        from (select distinct unnest(act_preview.ids) as id) i
        left join lateral (select * from queue q where q.id = i.id offset 0) q on true
        left join lateral (select true as runs from live w
                           where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                             and q.seq = any(w.seqs) limit 1) r on true
        left join lateral act_becomes(act_preview.verb, q.state, coalesce(r.runs, false), q.cancel_asked is not null,
                                      q.priority, wanted, q.run_after, act_preview.at) b on q.id is not null
        group by 1, 3 order by 2 desc;
        return;
    end if;
    return query
    with running_jobs as materialized (
        select * from held()
    ), chosen_jobs as (
        select q.* from queue q
        where q.state <> 'ready' and (which.states is null or q.state::text = any(which.states))
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
        union all
        select q.* from queue q
        where q.state = 'ready' and (which.states is null or which.states && '{ready,running}')
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
    ), looked_at as (
        select j.*, r.seq is not null as runs
        from chosen_jobs j
        left join running_jobs r on j.state = 'ready' and r.queue = j.queue and r.seq = j.seq
    )
    select b.becomes, count(*),
           case when b.becomes in ('discarded', 'deleted', 'cancelled') then l.state::text else b.why end
    from looked_at l
    cross join lateral act_becomes(act_preview.verb, l.state, l.runs, l.cancel_asked is not null, l.priority, wanted,
                                   l.run_after, act_preview.at) b
    where l.state <> 'ready' or which.states is null
       or case when l.runs then 'running' else 'ready' end = any(which.states)
    group by 1, 3 order by 2 desc;
end $$;
comment on function act_preview(text, uuid[], job_filter, int, timestamptz) is 'What an act would do now to these jobs '
    '(ids), or to all that match: how many would become what (state; NULL: left alone), and why. Changes nothing';

create or replace function act_find(action uuid, which job_filter) returns table (id uuid, cursor text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    at jsonb;
    n  int := 0;
begin
    perform portion_check(which."limit", which.after);
    at := coalesce(which.after, '["o", "", 0]')::jsonb;
    if at ->> 0 = 'o' then -- unfinished jobs that are not ready
        return query
        select q.id, jsonb_build_array('o', q.queue, q.seq)::text from queue q
        where q.state <> 'ready' and (which.states is null or q.state::text = any(which.states))
          and (q.queue, q.seq) > (at ->> 1, (at ->> 2)::bigint)
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
          and q.last_action is distinct from act_find.action
        order by q.queue, q.seq limit which."limit";
        get diagnostics n = row_count;
    end if;
    if n < which."limit" and coalesce(which.states && '{ready,running}', true) then
        return query
        with running_jobs as materialized (
            select * from held()
        )
        select q.id, jsonb_build_array('r', q.queue, q.seq, q.priority)::text from queue q
        where q.state = 'ready' and (which.queue is null or q.queue = which.queue)
          and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
          and q.last_action is distinct from act_find.action
          and (at ->> 0 = 'o' or (q.queue, q.priority, q.seq) > (at ->> 1, (at ->> 3)::smallint, (at ->> 2)::bigint))
          and (which.states is null
               or case when exists (select from running_jobs r where r.queue = q.queue and r.seq = q.seq)
                       then 'running' else 'ready' end = any(which.states))
        order by q.queue, q.priority, q.seq limit which."limit" - n;
    end if;
end $$;
comment on function act_find(uuid, job_filter) is 'Unfinished jobs that match, in a fixed order from which.after on; '
    'not those that this action has changed already';

-- From jobs to their leases: the leases are read once, and each number is found by binary search. A join would read all
-- leases for each job, or all jobs for each lease, depending on the planner's estimate.
create or replace function ready_seqs(ids uuid[]) returns bigint[]
language sql stable set search_path from current as $$
    select array(select q.seq from (select q.seq, q.state from queue q where q.id = any(ready_seqs.ids) offset 0) q
                 where q.state = 'ready' order by q.seq)
$$;
comment on function ready_seqs(uuid[]) is 'The numbers (seq) of those of these jobs that are ready, ascending';

create or replace function lock_leases(ids uuid[]) returns bigint[]
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    seen   bigint[] := '{}';
    seqs   bigint[];
    fresh  bigint[];
    locked bigint[] := '{}';
    wait   text := current_setting('lock_timeout');
begin
    for round in 1 .. 5 loop -- again: a claim may split a lease meanwhile, and the part has a number of its own
        seqs := ready_seqs(ids);
        fresh := array(select l.lease from live l where l.lease <> all(seen)
                       and exists (select from unnest(l.seqs) s where seqs[width_bucket(s, seqs)] = s offset 0));
        exit when fresh = '{}';
        seen := seen || fresh;
        begin
            -- long enough for a claim or an answer that is a transaction of its own
            perform set_config('lock_timeout', '50ms', true);
            locked := locked || array(select w.lease from work_queue w
                                      -- + 0: by the list, as 10_tables says
                                      where w.lease = any(fresh) order by w.lease + 0 for update);
            perform set_config('lock_timeout', wait, true);
        exception when lock_not_available then
            locked := locked || array(select w.lease from work_queue w
                                      -- + 0: by the list, as 10_tables says
                                      where w.lease = any(fresh) order by w.lease + 0 for update skip locked);
        end;
    end loop;
    return locked;
end $$;
comment on function lock_leases(uuid[]) is 'Locks the leases of these jobs; returns the locked ones. A lease that '
    'somebody else keeps locked for 50 ms is left out. Call it under the scheduler''s lock';

create or replace function uncut_jobs(ids uuid[], out runs uuid[], out busy uuid[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    locked bigint[];
    seqs   bigint[];
    free   jsonb;
begin
    perform act_lock();
    locked := lock_leases(ids);
    seqs := ready_seqs(ids);
    with leased_jobs as materialized (
        select q.id, q.queue, q.priority, q.seq, w.lease, w.runs, w.lease = any(locked) as ours
        from (select l.lease, l.lock_key is not null as runs, s as seq from live l, unnest(l.seqs) s
              where seqs[width_bucket(s, seqs)] = s offset 0) w
        join (select * from queue q where q.id = any(ids) offset 0) q on q.seq = w.seq and q.state = 'ready'
    )
    select coalesce(array_agg(o.id) filter (where o.ours and o.runs), '{}'),
           coalesce(array_agg(o.id) filter (where not o.ours), '{}'),
           jsonb_agg(jsonb_build_object('queue', o.queue, 'priority', o.priority, 'seq', o.seq, 'lease', o.lease))
               filter (where o.ours and not o.runs)
    into runs, busy, free from leased_jobs o;
    if free is null then
        return;
    end if;
    perform take_out(array_agg(f.lease), array_agg(f.seq)) from jsonb_to_recordset(free) f (lease bigint, seq bigint);
    -- the scheduler looks at these queues again: a job that the caller leaves unchanged has to be cut again
    perform move_cursor(array_agg(f.queue), array_agg(f.priority), array_agg(f.seq - 1), null)
    from jsonb_to_recordset(free) f (queue text, priority int, seq bigint);
    perform bucket_forget(f.queue, array_agg(f.seq)), wake_queue(f.queue)
    from jsonb_to_recordset(free) f (queue text, seq bigint) group by f.queue;
end $$;
comment on function uncut_jobs(uuid[]) is 'Takes ready jobs out of their free leases. runs: jobs in claimed leases, '
    'which are locked now and stay as they are; busy: jobs whose lease somebody else has locked, to claim it or to '
    'answer for it';

create or replace function lock_jobs(ids uuid[], but uuid[]) returns uuid[]
language sql set search_path from current as $$
    select array(select q.id from queue q where q.id = any(ids) and q.id <> all(but) order by q.id
                 for update skip locked)
$$;
comment on function lock_jobs(uuid[], uuid[]) is 'Locks these jobs and returns the locked ones; jobs that somebody '
    'else has locked are left out. Call it under the scheduler''s lock';

create or replace function left_alone(state job_state, busy boolean) returns text
language sql immutable set search_path from current as $$
    select case when busy then 'a worker is just claiming it or answering for it'
                when state = 'ready' then 'has just become ready'
                else 'somebody is just changing it' end
$$;
comment on function left_alone(job_state, boolean) is 'Why an act could not lock a job';

create or replace function job_put(action uuid, jobs jsonb) returns setof uuid
language sql set search_path from current
    set enable_nestloop = off set enable_hashjoin = on as $$ -- else it would compare each job with each
    with wanted as materialized (
        select * from jsonb_to_recordset(jobs) as w (id uuid, state job_state, priority smallint, tries smallint,
                                                     max_tries smallint,
                                                   run_after timestamptz, changed timestamptz)
    ), jobs_before as materialized (
        select q.id, q.priority, q.state, q.seq from queue q where q.id = any(array(select id from wanted))
    ), numbered as materialized ( -- in the old order; no answer names the new numbers
        select id, nextval('job_seq') as seq from (select id from jobs_before order by seq) z
    ), put_jobs as (
        update queue q set seq = s.seq, priority = w.priority, tries = w.tries, max_tries = w.max_tries,
            run_after = w.run_after,
               changed = w.changed, last_action = action,
               state = case when w.state = 'ready' and o.state <> 'ready'
                            and q.concurrency_key is not null then 'blocked' else w.state end
        from jobs_before o join numbered s using (id) join wanted w using (id)
        where q.id = any(array(select id from wanted)) and q.id = o.id
        returning q.id, q.queue, q.priority, q.state, q.seq, q.run_after, q.error_key, o.priority as was_priority,
        o.state as was
    ), counted as (
        insert into delta (queue, priority, error_key, ready, blocked, scheduled, retry, failed, min_seq, max_seq,
                           min_after)
        select queue, was_priority, null, -count(*) filter (where was = 'ready'),
               -count(*) filter (where was = 'blocked'),
               -count(*) filter (where was = 'scheduled'), -count(*) filter (where was = 'retry'),
               -count(*) filter (where was = 'failed'),
               null::bigint, null::bigint, null::timestamptz
        from put_jobs group by 1, 2
        union all
        select queue, priority, null, count(*) filter (where state = 'ready'),
               count(*) filter (where state = 'blocked'),
               count(*) filter (where state = 'scheduled'), count(*) filter (where state = 'retry'),
               count(*) filter (where state = 'failed'),
               min(seq) filter (where state = 'ready'), max(seq) filter (where state = 'ready'),
               min(run_after) filter (where state in ('scheduled', 'retry'))
        from put_jobs group by 1, 2
        union all
        select queue, 0, error_key, 0, 0, 0, 0,
               count(*) filter (where state = 'failed') - count(*) filter (where was = 'failed'), null, null, null
        from put_jobs where error_key is not null and (state = 'failed') <> (was = 'failed') group by 1, error_key)
    select id from put_jobs
$$;
comment on function job_put(uuid, jsonb) is 'Gives jobs another state, priority, time and number of tries ([{id, '
    'state, priority, tries, max_tries, run_after, changed}]), and writes the deltas. The caller has locked them and '
    'has taken ready jobs out of their leases';
