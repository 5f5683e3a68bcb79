-- Requeue: failed, retry and scheduled jobs become ready now, or spread over a time. Finished jobs are pushed again as
-- new jobs.

-- no SET: so the planner can inline the function and computes the key of `wanted` once. Only functions with a pinned
-- path call it
create or replace function error_matches(error text, key text, wanted text) returns boolean
language sql immutable as $$
    select case when wanted is null then true
                when left(wanted, 1) = '~' then coalesce(strpos(lower(error), lower(substr(wanted, 2))) > 0, false)
                else coalesce(key = error_key(wanted), false) end
$$;
comment on function error_matches(text, text, text) is 'Whether an error belongs to the group of the text wanted, or, '
    'if wanted is ~TEXT, contains TEXT (upper and lower case are the same)';

create or replace function spread_check(spread interval) returns void
language plpgsql immutable set search_path from current as $$
begin
    if spread <= interval '0' or spread > interval '30 days' then
        raise 'a requeue can be spread over a time of up to 30 days' using errcode = 'QT007';
    end if;
end $$;
comment on function spread_check(interval) is 'Raises QT007 if jobs can''t be spread over this time';

create or replace function requeue_live(action uuid, ids uuid[], reset boolean, spread interval default null)
returns setof uuid
language sql set search_path from current as $$
    with wanted as materialized (
        select a.at, (a.params ->> 'priority')::smallint as priority from audit a where a.action = requeue_live.action
    ), chosen as materialized (
        select q.id, q.queue, q.priority, q.state, q.error_key, q.seq from queue q
        where q.id = any(ids) and q.state::text in ('failed', 'retry', 'scheduled') for update
    ), numbered as materialized ( -- in the old order; spread: one job at a random time in each of n equal parts
        select id, nextval('job_seq') as seq,
               (select w.at from wanted w) + spread * ((row_number() over () - random()) / count(*) over ()) as due
        from (select id from chosen order by seq) c
    ), requeued as (
        update queue q
        set state = case when spread is not null then 'scheduled' when q.concurrency_key is null then 'ready'
                         else 'blocked' end::job_state,
            seq = n.seq,
            priority = coalesce((select w.priority from wanted w), q.priority),
            changed = now(),
            run_after = n.due,
            last_action = action,
            expires_at = case when q.expires_at > now() then q.expires_at end,
            -- so that the number of the last try fits a smallint
            tries = case when reset then 0 else least(q.tries, 32766) end,
            max_tries = case when not reset and q.tries >= coalesce(q.max_tries, s.max_tries, 5)
                             then least(q.tries, 32766) + 1 else q.max_tries end,
            cancel_asked = null
        from chosen c join numbered n using (id) left join queue_config s on s.queue = c.queue
        where q.id = any(ids) and q.id = c.id
        returning q.id, q.queue, q.priority, q.seq, q.state, q.run_after, c.state as was, c.priority as was_at,
                  c.error_key
    ), counted as (
        insert into delta (queue, priority, error_key, ready, blocked, failed, retry, scheduled, min_seq, max_seq,
                           min_after)
        select queue, priority, null,
               count(*) filter (where state = 'ready'),
               count(*) filter (where state = 'blocked'), 0, 0,
               count(*) filter (where state = 'scheduled'),
               min(seq) filter (where state = 'ready'), max(seq) filter (where state = 'ready'), min(run_after)
        from requeued group by queue, priority
        union all
        select queue, was_at, null, 0, 0,
               -count(*) filter (where was = 'failed'),
               -count(*) filter (where was = 'retry'),
               -count(*) filter (where was = 'scheduled'), null, null, null
        from requeued group by queue, was_at
        union all
        select queue, 0, error_key, 0, 0, -count(*), 0, 0, null, null, null from requeued
        where was = 'failed' and error_key is not null group by queue, error_key)
    select id from requeued
$$;
comment on function requeue_live(uuid, uuid[], boolean, interval) is 'Makes waiting and failed jobs ready (jobs with a '
    'concurrency key: blocked), at the priority that the action names, if it names one. spread: the jobs become '
    'scheduled instead, spread evenly over that time from the beginning of the action on. The count of tries is kept '
    'and one more try is allowed; reset: it starts at 0. An expiry that has passed is removed';

create or replace function requeue_history(action uuid, job uuid, spread interval default null, out new_id uuid,
    out why text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a audit := (select x from audit x where x.action = requeue_history.action);
    h history;
begin
    select * into h from history_of(array[job]) x order by x.finished desc limit 1;
    if h.id is null then
        why := 'no such job';
    elsif not h.kept then
        why := h.state || ', and its payload was not kept';
    else
        insert into queue (
-- part: carried of=
            , queue, priority, payload, body, run_after, origin_id, last_action)
        values (
-- part: carried of=h.
            , h.queue, coalesce((a.params ->> 'priority')::smallint, h.priority), h.payload, h.body,
            a.at + spread * random(), h.id, action)
        on conflict do nothing returning id into new_id;
        why := case when new_id is null then 'a newer job has its unique key' else 'as new job ' || new_id end;
    end if;
end $$;
comment on function requeue_history(uuid, uuid, interval) is 'Pushes a finished job again, if its payload was kept';

create or replace function requeue_one(action uuid, id uuid, reset boolean, spread interval) returns jsonb
language plpgsql set search_path from current as $$
declare
    ready text := case when spread is null then 'ready' else 'scheduled' end;
    again record;
    q     queue;
begin
    select * into q from queue x where x.id = requeue_one.id;
    if not found then
        select * into again from requeue_history(action, id, spread);
        return jsonb_build_object('id', id, 'state', case when again.new_id is not null then ready end,
                                  'why', again.why, 'new', again.new_id);
    elsif q.state = 'ready' then
        return jsonb_build_object('id', id, 'why', case
            when exists (select from live w where w.queue = q.queue and w.lock_key is not null
                           and q.seq = any(w.seqs)) then 'running' else 'ready already' end);
    elsif q.state = 'blocked' then
        return jsonb_build_object('id', id, 'why', 'waits for its concurrency key');
    end if;
    begin
        perform requeue_live(action, array[id], reset, spread);
        return jsonb_build_object('id', id, 'state', ready);
    exception when unique_violation then
        return jsonb_build_object('id', id, 'why', 'a newer job has its unique key');
    end;
end $$;
comment on function requeue_one(uuid, uuid, boolean, interval) is 'Requeues one job and returns its row of the answer';

create or replace function requeue_rows(action uuid, ids uuid[], reset boolean, spread interval, out rows jsonb,
    out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    plain uuid[];
    done  uuid[] := '{}';
    ready text := case when spread is null then 'ready' else 'scheduled' end;
    job   uuid;
begin
    perform lock_waiting(ids); -- jobs that are not ready; the ready ones may be locked by their workers
    select jsonb_agg(jsonb_build_object('id', q.id, 'state', q.state, 'priority', q.priority, 'tries', q.tries,
                                        'max_tries', q.max_tries, 'run_after', q.run_after, 'changed', q.changed)),
           array_agg(q.id) filter (where q.unique_key is null or q.state <> 'failed')
    into was, plain
    from queue q where q.id = any(ids) and q.state::text <> 'ready';
    if plain is not null then
        select array_agg(x) into done from requeue_live(action, plain, reset, spread) x;
    end if;
    select coalesce(jsonb_agg(jsonb_build_object('id', q.id, 'state', ready, 'why', case
               when q.state = 'blocked' then 'waits for its concurrency key' end)), '[]')
    into rows from queue q where q.id = any(done);
    for job in -- in the order of unique keys; of several jobs with one key the first given wins
        select i.id
        from (select u.id, min(u.place) as place from unnest(ids) with ordinality u (id, place)
              where not exists (select from unnest(done) d (id) where d.id = u.id) group by u.id) i
        left join lateral (select * from queue q where q.id = i.id offset 0) q on true
        left join (select distinct on (h.id) h.id, h.queue, h.unique_key
                   from history_of(array(select unnest(ids) except select unnest(done)
                                         except select o.id from queue o where o.id = any(ids))) h
                   where h.unique_key is not null
                   order by h.id) f on f.id = i.id
        order by coalesce(q.queue, f.queue), coalesce(q.unique_key, f.unique_key), i.place loop
        rows := rows || requeue_one(action, job, reset, spread);
    end loop;
    rows := in_order(rows, ids);
end $$;
comment on function requeue_rows(uuid, uuid[], boolean, interval) is 'Requeues jobs: those that no unique key can stop '
    'in one statement, the others one by one';

create or replace function requeue(action uuid, batch int, ids uuid[], reset boolean default false,
    reason text default null, spread interval default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
begin
    perform spread_check(spread);
    return query select * from act_on(action, batch, 'requeue', ids,
                                      jsonb_build_object('reset', reset, 'spread', spread), reason);
end $$;
comment on function requeue(uuid, int, uuid[], boolean, text, interval) is 'Makes these jobs ready again: failed jobs '
    'with one more try (reset: with all their tries), waiting jobs now, finished jobs as new jobs. spread: not all at '
    'once, but spread evenly over a time of up to 30 days. Jobs that can''t be requeued are left alone; why gives the '
    'reason';

create or replace function requeue_at_priority(action uuid, batch int, ids uuid[], reset boolean default false,
    reason text default null, spread interval default null, priority int default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
begin
    perform spread_check(spread);
    if priority is not null then
        perform change_check('priority', priority, null);
    end if;
    return query select * from act_on(action, batch, 'requeue', ids, jsonb_build_object(
        'reset', reset, 'spread', spread, 'priority', priority), reason);
end $$;
comment on function requeue_at_priority(uuid, int, uuid[], boolean, text, interval, int) is 'requeue() with a priority '
    'for the jobs, 0 (soonest) to 9: with 0 they start before those that wait. NULL: the jobs keep their priority';

create or replace function requeue_find(which job_filter) returns table (id uuid, cursor text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    at jsonb;
    n  int := 0;
begin
    perform portion_check(which."limit", which.after);
    at := coalesce(which.after, '["q", "", 0]')::jsonb;
    if at ->> 0 = 'q' then
        return query
        select q.id, jsonb_build_array('q', q.queue, q.seq)::text from queue q
        where q.state not in ('ready', 'blocked') and q.state::text = any(which.states)
          and (q.queue, q.seq) > (at ->> 1, (at ->> 2)::bigint)
          and (which.queue is null
               or q.queue = which.queue and (q.queue <> at ->> 1 or q.seq > (at ->> 2)::bigint))
          and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
        order by q.queue, q.seq limit which."limit";
        get diagnostics n = row_count;
    end if;
    if n < which."limit" and which.states && '{completed,cancelled}' then
        return query
        select h.id, jsonb_build_array('h', h.finished, h.id)::text from history h
        where h.state::text = any(which.states) and (which.queue is null or h.queue = which.queue)
          and (which.kind is null or h.kind = which.kind)
          and (which.error is null or error_matches(h.error, error_key(h.error), which.error))
          and (which.before is null or h.finished < which.before)
          and (at ->> 0 = 'q' or (h.finished, h.id) > ((at ->> 1)::timestamptz, (at ->> 2)::uuid))
        order by h.finished, h.id limit which."limit" - n;
    end if;
end $$;
comment on function requeue_find(job_filter) is 'Jobs that match and could be requeued, in a fixed order from '
    'which.after on';

-- no SET: so the planner can inline it
create or replace function requeue_when(state job_state, ready text) returns text
language sql immutable as $$
    select case when state = 'failed' then null when ready = 'ready' then 'now instead of later'
                else 'at another time' end
$$;
comment on function requeue_when(job_state, text) is 'For requeue_preview: what changes for a job that waits';

create or replace function requeue_look(ids uuid[], ready text)
returns table (place bigint, queue text, key text, has_key boolean, state text, why text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
    return query
    select i.place, coalesce(q.queue, h.queue), coalesce(q.unique_key, h.unique_key),
           coalesce(q.state <> 'failed', false),
           case when q.state in ('ready', 'blocked') or twin then null
                when q.id is not null or h.kept then requeue_look.ready end,
           case when q.state = 'ready' then
                     case when exists (select from live w where w.queue = q.queue and w.lock_key is not null
                                       and q.seq = any(w.seqs)) then 'running' else 'ready already' end
                when q.state = 'blocked' then 'waits for its concurrency key'
                when twin then 'a newer job has its unique key'
                when q.id is not null then requeue_when(q.state, requeue_look.ready)
                when h.id is null then 'no such job'
                when not h.kept then 'its payload was not kept'
                else 'as a new job' end
    from (select u.id, min(u.place) as place from unnest(requeue_look.ids) with ordinality u (id, place)
          group by u.id) i
    left join lateral (select * from queue q where q.id = i.id offset 0) q on true
    left join lateral (select * from history_of(array[i.id]) h where q.id is null order by h.finished desc limit 1) h
        on true
    cross join lateral (select exists (
        select from queue o where o.queue = coalesce(q.queue, h.queue) and o.id <> i.id
        and o.unique_key = coalesce(q.unique_key, h.unique_key) and o.state <> 'failed'
        and coalesce(q.state, 'failed') in ('failed', 'completed', 'cancelled')) as twin) t;
end $$;
comment on function requeue_look(uuid[], text) is 'For requeue_preview: what would become of each of these jobs if it '
    'were the only one. has_key: the job holds its unique key already; the others would have to take theirs';

create or replace function requeue_preview_ids(ids uuid[], ready text)
returns table (state text, n bigint, why text)
language sql stable set search_path from current as $$
    select case when r.nth = 1 then r.state end, count(*),
           case when r.nth = 1 then r.why else 'another of these has its unique key' end
    from (select l.state, l.why, -- of jobs that would take the same key the first given wins
                 case when l.key is null or l.state is null or l.has_key then 1
                      else row_number() over (partition by l.queue, l.key, l.state is null, l.has_key
                                              order by l.place) end as nth
          from requeue_look(ids, ready) l) r
    group by 1, 3 order by 2 desc
$$;
comment on function requeue_preview_ids(uuid[], text) is 'requeue_preview for jobs by id';

create or replace function requeue_preview_where(which job_filter, ready text)
returns table (state text, n bigint, why text)
language plpgsql stable set search_path from current set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
    return query
    with chosen as not materialized (
        select q.queue, q.unique_key, q.seq, q.state from queue q
        where q.state not in ('ready', 'blocked') and q.state::text = any(which.states)
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
    ), keyed as ( -- separate, because only jobs with a key must be sorted
        select c.state as was, row_number() over (partition by c.queue, c.unique_key order by c.seq) = 1 as first,
               c.state = 'failed' and exists (select from queue o where o.queue = c.queue
                                                and o.unique_key = c.unique_key and o.state <> 'failed') as twin
        from chosen c where c.unique_key is not null
    ), finished as (
        select h.kept,
               h.unique_key is not null and exists (select from queue o where o.queue = h.queue
                   and o.unique_key = h.unique_key and o.state <> 'failed') as twin,
               h.unique_key is null or not exists (select from history e where e.queue = h.queue
                   and e.unique_key = h.unique_key and e.state::text = any(which.states) and e.kept
                   and (e.finished, e.id) < (h.finished, h.id)) as first
        from history h
        where which.states && '{completed,cancelled}' and h.state::text = any(which.states)
          and (which.queue is null or h.queue = which.queue) and (which.kind is null or h.kind = which.kind)
          and (which.error is null or error_matches(h.error, error_key(h.error), which.error))
          and (which.before is null or h.finished < which.before)
    )
    select z.state, count(*), z.why
    from (select requeue_preview_where.ready as state, requeue_when(c.state, requeue_preview_where.ready) as why
          from chosen c where c.unique_key is null
          union all
          select case when not k.twin and k.first then requeue_preview_where.ready end,
                 case when k.twin then 'a newer job has its unique key'
                      when not k.first then 'another of these has its unique key'
                      else requeue_when(k.was, requeue_preview_where.ready) end
          from keyed k
          union all
          select case when f.kept and not f.twin and f.first then requeue_preview_where.ready end,
                 case when not f.kept then 'its payload was not kept'
                      when f.twin then 'a newer job has its unique key'
                      when not f.first then 'another of these has its unique key' else 'as a new job' end
          from finished f) z
    group by 1, 3 order by 2 desc;
end $$;
comment on function requeue_preview_where(job_filter, text) is 'requeue_preview for all jobs that match';

create or replace function requeue_preview(ids uuid[] default null, queue text default null,
    states text[] default null, kind text default null, error text default null, before timestamptz default null,
    reset boolean default false, spread interval default null)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_sort = off
    set jit = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    ready text := case when spread is null then 'ready' else 'scheduled' end;
    which job_filter := (queue, coalesce(states, '{failed}'), kind, error, before, null, null, null);
begin
    perform spread_check(spread);
    if ids is not null then
        return query select * from requeue_preview_ids(ids, ready);
    else
        return query select * from requeue_preview_where(which, ready);
    end if;
end $$;
comment on function requeue_preview(uuid[], text, text[], text, text, timestamptz, boolean, interval) is 'What requeue '
    '(ids) or requeue_where would do now: n jobs that would become ready or scheduled (state NULL: left alone), and '
    'why. Changes nothing';

create or replace function requeue_fits(job queue, which job_filter) returns boolean language sql stable as $$
    select job.state not in ('ready', 'blocked') and job.state::text = any(which.states)
       and (which.queue is null or job.queue = which.queue) and (which.kind is null or job.kind = which.kind)
       and (which.error is null or error_matches(job.error, job.error_key, which.error))
       and (which.before is null or job.changed < which.before)
$$;
comment on function requeue_fits(queue, job_filter) is 'Whether a filter of requeue_where matches a job. No SET, so '
    'that it is inlined';

-- To rank the matching jobs they must be sorted: for a million jobs that takes a second and 140 MB of temporary files.
-- So of a large table some 300 pages are read at random, and the matching jobs on them stand for all. If these are too
-- few, only a small part of the table matches, and all matching jobs are read by an index.
create or replace function requeue_sample(queue text default null, states text[] default null, kind text default null,
    error text default null, before timestamptz default null, n int default 10)
returns table (id text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    which job_filter := (queue, coalesce(states, '{failed}'), kind, error, before, null, null, null);
    most  int := least(greatest(requeue_sample.n, 0), 1000);
    pages bigint := pg_relation_size('queue') / current_setting('block_size')::int;
    found uuid[]; -- the oldest first
begin
    if pages > 2000 then
        found := array(
            select c.id from queue c tablesample system (100.0 * 300 / pages)
            where requeue_fits(c, which)
              and not (c.state = 'failed' and c.unique_key is not null
                       and exists (select from queue o where o.queue = c.queue and o.unique_key = c.unique_key
                                                         and o.state <> 'failed'))
            order by c.changed, c.id);
    end if;
    if coalesce(cardinality(found), 0) < 10 * most then
        found := array(
            select c.id from queue c
            where requeue_fits(c, which)
              and not (c.state = 'failed' and c.unique_key is not null
                       and exists (select from queue o where o.queue = c.queue and o.unique_key = c.unique_key
                                                         and o.state <> 'failed'))
            order by c.changed, c.id);
    end if;
    return query
    select found[1 + case when cardinality(found) <= most then k -- else the first of each rank
                          else greatest(0, k::bigint * (cardinality(found) - 1) + most - 2) / greatest(most - 1, 1)
                          end]::text
    from generate_series(least(cardinality(found), most) - 1, 0, -1) k;
end $$;
comment on function requeue_sample(text, text[], text, text, timestamptz, int) is 'A sample of the jobs that '
    'requeue_where would make ready now: n of them (at most 1000), the newest, the oldest and those at equal steps '
    'between, newest first. If many jobs of a large table match, they are chosen from some 300 random pages. Finished '
    'jobs are never in the sample';

create or replace function requeue_where(action uuid, batch int, queue text, states text[] default '{failed}',
    kind text default null, error text default null, before timestamptz default null, "limit" int default 1000,
    after text default null, expected bigint default null, reset boolean default false, reason text default null,
    spread interval default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
    which job_filter := (queue, coalesce(states, '{failed}'), kind, error, before, coalesce("limit", 1000), after,
                         expected);
begin
    perform spread_check(spread);
    return query select * from act_where(action, batch, 'requeue', which,
                                         jsonb_build_object('reset', reset, 'spread', spread), reason);
end $$;
comment on function requeue_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, boolean, text,
    interval) is
    'requeue() for all jobs that match, up to limit jobs a call: call again with the next batch number and with the '
    'cursor of the last answer as after, until the cursor is NULL. error: TEXT = the group of TEXT, ~TEXT = contains '
    'TEXT. before: only jobs that have been in their state since before this time. expected: the number of jobs that '
    'the preview counted; raises QT005 if that number has changed';
