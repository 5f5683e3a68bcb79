-- One act on jobs, from its beginning to its end. Requeue, cancel, discard, delete, priority and reschedule have the
-- same steps: write the act to the audit, find the jobs, lock and change them, store the answer. Only the change
-- differs: requeue_rows (71_requeue), remove_jobs (74_remove), change_jobs (78_change).

create or replace function lock_waiting(ids uuid[]) returns uuid[]
language sql set search_path from current as $$
    select array(select q.id from queue q where q.id = any(ids) and q.state::text <> 'ready' order by q.id for update)
$$;
comment on function lock_waiting(uuid[]) is 'Locks those of these jobs that are not ready; returns their ids. It may '
    'have to wait, so call it before the scheduler''s lock is taken';

create or replace function finished_jobs(ids uuid[]) returns uuid[]
language sql stable set search_path from current as $$
    select array(select h.id from history_of(array(
                     select unnest(ids) except select q.id from queue q where q.id = any(ids))) h)
$$;
comment on function finished_jobs(uuid[]) is 'Those of these jobs that are in history and not in queue any more';

create or replace function act_change(action uuid, verb text, ids uuid[], params jsonb, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
begin
    if verb = 'requeue' then
        select r.rows, r.was into rows, was
        from requeue_rows(action, ids, coalesce((params ->> 'reset')::boolean, false),
                          (params ->> 'spread')::interval) r;
    elsif verb in ('priority', 'reschedule') then
        select r.rows, r.was into rows, was
        from change_jobs(action, ids, verb, (params ->> 'priority')::int, (params ->> 'at')::timestamptz) r;
    else
        select r.rows, r.was into rows, was from remove_jobs(action, ids, verb) r;
    end if;
end $$;
comment on function act_change(uuid, text, uuid[], jsonb) is 'The change that an act makes to its jobs. params: reset '
    'and spread of a requeue, priority, at. rows: the answer; was: the changed jobs as they were before';

create or replace function act_would(verb text, which job_filter, params jsonb) returns bigint
language plpgsql stable set search_path from current as $$
declare
    at timestamptz := params ->> 'at';
    n  bigint;
begin
    if verb = 'requeue' then
        select sum(p.n) into n
        from requeue_preview(null, which.queue, which.states, which.kind, which.error, which.before) p
        where p.state is not null;
    else
        select sum(p.n) into n
        from act_preview(verb, null, which, (params ->> 'priority')::int, case when at > now() then at end) p
        where p.state is not null;
    end if;
    return coalesce(n, 0);
end $$;
comment on function act_would(text, job_filter, jsonb) is 'How many jobs an act would change now';

create or replace function act_on(action uuid, batch int, verb text, ids uuid[], params jsonb, reason text)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    done record;
begin
    if act_begin(action, batch, verb, null, null, params || jsonb_build_object('ids', cardinality(ids)), reason,
                 null) then
        select * into done from act_change(action, verb, ids, params);
        perform act_end(action, batch, done.rows, done.was);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function act_on(uuid, int, text, uuid[], jsonb, text) is 'Does an act on the jobs with these ids. If the '
    'batch was done before, it only returns the stored answer';

create or replace function act_where(action uuid, batch int, verb text, which job_filter, params jsonb, reason text)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids  uuid[];
    next text;
    done record;
begin
    if act_begin(action, batch, verb, which.queue, null,
                 params || jsonb_build_object('states', which.states, 'kind', which.kind, 'error', which.error,
                                              'before', which.before), reason, which.expected) then
        if batch = 1 and which.expected is not null then
            perform check_expected(which.expected, act_would(verb, which, params));
        end if;
        if verb = 'requeue' then
            select coalesce(array_agg(f.id order by f.place), '{}'),
                   max(f.cursor) filter (where f.place = which."limit")
            into ids, next from requeue_find(which) with ordinality f (id, cursor, place);
        else
            select coalesce(array_agg(f.id order by f.place), '{}'),
                   max(f.cursor) filter (where f.place = which."limit")
            into ids, next from act_find(action, which) with ordinality f (id, cursor, place);
        end if;
        select * into done from act_change(action, verb, ids, params);
        perform act_end(action, batch, done.rows, done.was, next);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function act_where(uuid, int, text, job_filter, jsonb, text) is 'Does one batch of an act on all jobs that '
    'a filter names: at most which.limit jobs from which.after on. Batch 1 raises QT005 if the number of jobs that '
    'would change is not which.expected';
