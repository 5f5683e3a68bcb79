-- Changes jobs that wait: their priority, or the time at which they are due.

create or replace function change_check(verb text, wanted int, at timestamptz) returns void
language plpgsql immutable set search_path from current as $$
begin
    if verb = 'priority' and wanted between 0 and 9 is not true then
        raise 'a priority is 0 (soonest) to 9, not %', coalesce(wanted::text, 'nothing') using errcode = 'QT007';
    elsif verb = 'reschedule' and not isfinite(at) then
        raise 'a job can''t be put off for ever: cancel or pause it' using errcode = 'QT007';
    end if;
end $$;
comment on function change_check(text, int, timestamptz) is 'Raises QT007 if no job can have this priority or time';

create or replace function change_take(ids uuid[], verb text, wanted int, at timestamptz, inout held uuid[],
    out busy uuid[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ready uuid[];
begin
    busy := '{}';
    if not exists (select from queue q where q.id = any(ids) and q.state::text = 'ready'
                   and (verb = 'priority' or at > now())) then
        return;
    end if;
    perform act_lock();
    ready := array(select q.id from queue q where q.id = any(ids) and q.state::text = 'ready'
                   and (verb = 'priority' and q.priority <> wanted or verb = 'reschedule' and at > now()));
    -- jobs that are cut already would start before jobs that are now more urgent: cut all anew
    if verb = 'priority' then
        perform uncut(d.queue, false) from (select distinct q.queue from queue q where q.id = any(ready)) d (queue);
    end if;
    select u.busy, array(select unnest(ready) except select unnest(u.runs || u.busy)) into busy, ready
    from uncut_jobs(ready) u;
    held := held || lock_jobs(ready, held);
end $$;
comment on function change_take(uuid[], text, int, timestamptz, uuid[]) is 'For change_jobs: takes those ready jobs '
    'that would change out of their free leases, and locks them. held: the jobs that were locked before the call and '
    'now; busy: jobs whose lease is locked by others';

create or replace function change_jobs(action uuid, ids uuid[], verb text, wanted int, at timestamptz, out rows jsonb,
    out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    later timestamptz := case when at > now() then at end; -- a time that has passed means now
    over  uuid[] := finished_jobs(ids);
    held  uuid[] := lock_waiting(ids);
    busy  uuid[];
    jobs  jsonb;
begin
    select t.held, t.busy into held, busy from change_take(ids, verb, wanted, at, held) t;
    with named as materialized (
        select distinct unnest(ids) as id
    ), looked_at as materialized (
        select n.id, q.state, q.priority, q.tries, q.max_tries, q.run_after, q.changed, b.becomes,
               case when q.id is not null then b.why when n.id = any(over) then 'finished' else 'no such job' end
               as why,
               b.becomes is not null and not q.id = any(held) as moved
        from named n
        left join lateral (select * from queue q where q.id = n.id offset 0) q on true
        left join lateral (select true as runs from live w
                           where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                             and q.seq = any(w.seqs) limit 1) r on true
        left join lateral act_becomes(verb, q.state, coalesce(r.runs, false), false, q.priority, wanted, q.run_after,
                                      later) b on q.id is not null
    ), changing as (
        select * from looked_at where becomes is not null and not moved
    )
    select (select jsonb_agg(jsonb_build_object('id', l.id,
                       'state', case when l.moved is not true then l.becomes end,
                       'why', case when l.moved then left_alone(l.state, l.id = any(busy)) else l.why end))
            from looked_at l),
           jsonb_agg(jsonb_build_object('id', c.id, 'state', c.state, 'priority', c.priority, 'tries', c.tries,
                       'max_tries', c.max_tries, 'run_after', c.run_after, 'changed', c.changed)),
           jsonb_agg(jsonb_build_object('id', c.id, 'tries', c.tries, 'max_tries', c.max_tries)
                     || case when verb = 'priority'
                             then jsonb_build_object('state', c.state, 'priority', wanted, 'run_after', c.run_after,
                                                     'changed', c.changed)
                             else jsonb_build_object('state', c.becomes, 'priority', c.priority, 'run_after', later,
                                                     'changed', now()) end)
    into rows, was, jobs from changing c;
    rows := in_order(rows, ids);
    perform job_put(action, jobs);
end $$;
comment on function change_jobs(uuid, uuid[], text, int, timestamptz) is 'Gives waiting jobs another priority (wanted) '
    'or time (at; NULL or a time that has passed = now)';

create or replace function set_priority(action uuid, batch int, ids uuid[], priority int, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
begin
    perform change_check('priority', priority, null);
    return query select * from act_on(action, batch, 'priority', ids, jsonb_build_object('priority', priority), reason);
end $$;
comment on function set_priority(uuid, int, uuid[], int, text) is 'Gives jobs that do not run another priority, 0 '
    '(soonest) to 9. They are put behind the jobs that have that priority already. Raises QT007 for another number';

create or replace function set_priority_where(action uuid, batch int, queue text, states text[],
    kind text default null, error text default null, before timestamptz default null, "limit" int default 1000,
    after text default null, expected bigint default null, priority int default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
    which job_filter := (queue, states, kind, error, before, coalesce("limit", 1000), after, expected);
begin
    perform change_check('priority', priority, null);
    return query select * from act_where(action, batch, 'priority', which, jsonb_build_object('priority', priority),
                                         reason);
end $$;
comment on function set_priority_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, int,
    text) is 'set_priority() for all jobs that match; the other arguments as in requeue_where';

create or replace function set_time(action uuid, batch int, ids uuid[], at timestamptz default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
begin
    perform change_check('reschedule', null, at);
    return query select * from act_on(action, batch, 'reschedule', ids, jsonb_build_object('at', at), reason);
end $$;
comment on function set_time(uuid, int, uuid[], timestamptz, text) is 'Makes waiting jobs due at a time; NULL or a '
    'time that has passed = now. Running and failed jobs are left alone';

create or replace function set_time_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, at timestamptz default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
    which job_filter := (queue, states, kind, error, before, coalesce("limit", 1000), after, expected);
begin
    perform change_check('reschedule', null, at);
    return query select * from act_where(action, batch, 'reschedule', which, jsonb_build_object('at', at), reason);
end $$;
comment on function set_time_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, timestamptz,
    text) is 'set_time() for all jobs that match; the other arguments as in requeue_where';

create or replace function change_preview(verb text, ids uuid[] default null, queue text default null,
    states text[] default null, kind text default null, error text default null, before timestamptz default null,
    wanted int default null, at timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select * from act_preview(verb, ids, (queue, states, kind, error, before, null, null, null), wanted,
                              case when at > now() then at end)
$$;
comment on function change_preview(text, uuid[], text, text[], text, text, timestamptz, int, timestamptz) is 'What '
    'set_priority (verb priority, wanted) or set_time (verb reschedule, at) would do now: n jobs and what they would '
    'become (state NULL: left alone), and why';
