-- Undo: takes an action back, from what the audit kept of the changed rows. A row is changed back only if it is still
-- as the action left it; every other row is left alone, and why gives the reason. One batch of an action is one batch
-- of its undo.

create or replace function undo_why(a audit) returns text
language sql immutable set search_path from current as $$
    select case when a.action is null then 'the audit has no such action'
                when a.verb in ('requeue', 'edit', 'discard', 'cancel', 'priority', 'reschedule', 'pause', 'resume',
                                'set', 'schedule set', 'schedule pause', 'schedule resume', 'schedule remove')
                    then null
                when a.verb in ('delete', 'purge', 'purge audit')
                    then format('a %s can''t be undone: what it took is gone for good', a.verb)
                when a.verb = 'undo' then 'an undo can''t be undone: do the action again'
                when a.verb = 'extend' then 'a lease is never made shorter'
                when a.verb in ('push', 'schedule run') then 'cancel its job instead'
                else format('a %s can''t be undone', a.verb) end
$$;
comment on function undo_why(audit) is 'Why an action can''t be undone at all. NULL: it can be undone for the rows '
    'that are still as it left them';

create or replace function audit_change(a audit) returns text
language sql stable set search_path from current as $$
    select left(case when a.verb = 'set' then (select b.rows -> 0 ->> 'why' from audit_batch b
                                               where b.action = a.action and b.batch = 1)
                     else (
        select string_agg(case when p.value = 'true' then p.name
                               when p.name = 'count' then 'tries not counted'
                               when p.name = 'expired_only' then 'all leases, not only expired ones'
                               when p.name = 'bytes' then 'payload of ' || p.value || ' bytes'
                               else p.name || ' ' || p.value end
                          || coalesce(', was ' || nullif(was.value, p.value), ''), '; ' order by p.name)
        from (select k as name,
                     left(case jsonb_typeof(v) when 'array' then (select string_agg(i, ',')
                                                                  from jsonb_array_elements_text(v) i)
                               else v #>> '{}' end, 100) as value
              from jsonb_each(a.params) x (k, v)
              where k not in ('ids', 'schedule', 'job', 'version', 'of', 'verb')
                and (v <> 'false' or k in ('count', 'expired_only'))) p
        left join (select left(x.value, 100) as value, x.key
                   from (select case when jsonb_typeof(b.before) = 'array' then b.before -> 0 else b.before end
                                as before
                         from audit_batch b
                         where b.action = a.action and b.batch = 1 and b.changed = 1
                           and pg_column_size(b.before) < 4000) b
                   cross join lateral jsonb_each_text(case when jsonb_typeof(b.before) = 'object'
                                                           then b.before end) x) was
               on was.key = case p.name when 'at' then 'run_after' when 'unique' then 'only_one' else p.name end
                  and a.verb in ('priority', 'reschedule', 'schedule set')) end, 500)
$$;
comment on function audit_change(audit) is 'What an action was asked to do, as text, with the earlier values if it '
    'changed one row, queue or schedule. NULL: its verb and target say everything. Values are cut at 100 characters, '
    'the text at 500';

create or replace function undo_check(of uuid) returns audit
language plpgsql stable set search_path from current as $$
declare
    a audit;
begin
    select * into a from audit x where x.action = undo_check.of;
    if undo_why(a) is not null then
        raise '%', undo_why(a) using errcode = 'QT007';
    end if;
    return a;
end $$;
comment on function undo_check(uuid) is 'The action; raises QT007 if it can''t be undone';

create or replace function undo_live(a audit, batch int)
returns table (id uuid, becomes text, why text, job jsonb)
language sql stable set search_path from current as $$
    select e.id,
           case when no is null then case when a.verb = 'priority' then 'at priority ' || e.priority
                                          else e.state || ' again' end end,
           no,
           jsonb_build_object('id', q.id,
               'state', case when a.verb = 'priority' then q.state else e.state end,
               'priority', coalesce(e.priority, q.priority),
               'tries', case when a.verb in ('requeue', 'edit') then e.tries else q.tries end,
               'max_tries', case when a.verb in ('requeue', 'edit') then e.max_tries else q.max_tries end,
               'run_after', case when a.verb = 'priority' then q.run_after else e.run_after end,
               'changed', case when a.verb = 'priority' then q.changed else coalesce(e.changed, now()) end)
    from audit_batch b
    cross join lateral jsonb_to_recordset(b.before) e (id uuid, state job_state, priority smallint, tries smallint,
                                                       max_tries smallint, run_after timestamptz,
                                                       changed timestamptz)
    join lateral jsonb_to_recordset(b.rows) r (id uuid, state text)
        on r.id = e.id and r.state is not null -- rows that the action left alone don't count
    left join lateral (select * from queue q where q.id = e.id offset 0) q on true
    cross join lateral (select case
        when q.id is null then 'finished or gone by now'
        when a.verb <> 'priority' and q.last_action is distinct from a.action then 'changed by another action since'
        when exists (select from live w where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                                          and q.seq = any(w.seqs)) then 'running'
        when a.verb = 'priority' then case when q.priority::text <> a.params ->> 'priority'
                                           then 'has another priority by now' end
        when q.tries <> case when (a.params ->> 'reset')::boolean then 0 else least(e.tries, 32766) end
             or q.state not in ('ready', 'blocked', 'scheduled', 'retry')
             or q.state = 'retry' and a.verb in ('requeue', 'edit') then 'has run since' end as no) n
    where b.action = a.action and b.batch = undo_live.batch
$$;
comment on function undo_live(audit, int) is 'For jobs that an action changed and that still wait: what an undo would '
    'make of each, or why it would do nothing. job: in the form of job_put';

create or replace function undo_again(a audit, batch int) returns table (id uuid, becomes text, why text)
language sql stable set search_path from current as $$
    select n.id, case when no is null then 'withdrawn' end, no
    from audit_batch b cross join lateral jsonb_to_recordset(b.rows) n (id uuid, new uuid)
    left join lateral (select * from queue q where q.id = n.new offset 0) q on true
    cross join lateral (select case
        when q.id is null then 'finished or gone by now'
        when exists (select from live w where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                                          and q.seq = any(w.seqs)) then 'running'
        when q.last_action is distinct from a.action then 'changed by another action since'
        when q.tries > 0 then 'has run since' end as no) z
    where b.action = a.action and b.batch = undo_again.batch and a.verb in ('requeue', 'edit') and n.new is not null
$$;
comment on function undo_again(audit, int) is 'The same as undo_live, for new jobs that a requeue made of finished '
    'ones';

create or replace function undo_removed(a audit, batch int)
returns table (id uuid, becomes text, why text, was jsonb)
language sql stable set search_path from current as $$
    with removed as materialized (
        select x.id, x.queue, x.finished, x.state, v as was
        from audit_batch b cross join lateral jsonb_array_elements(b.before) v
        cross join lateral jsonb_to_record(v) x (id uuid, queue text, finished timestamptz, state text)
        where b.action = a.action and b.batch = undo_removed.batch
    ), found as materialized ( -- by queue and time: no index on ids finds a thousand of them fast
        select h.id, h.kept, h.queue, h.unique_key
        from (select distinct r.queue, r.finished from removed r) k
        cross join lateral (select * from history h where h.queue = k.queue and h.finished = k.finished offset 0) h
        where h.last_action = a.action
    )
    select r.id, case when no is null then r.state || ' again' end, no, r.was
    from removed r left join found h on h.id = r.id
    cross join lateral (select case
        when exists (select from queue q where q.id = r.id offset 0) then 'is back already'
        when h.id is null then 'no longer in history'
        when not h.kept then 'its payload was not kept'
        when h.unique_key is not null and r.state <> 'failed'
             and exists (select from queue q where q.queue = h.queue and q.unique_key = h.unique_key
                                               and q.state <> 'failed' offset 0)
            then 'a newer job has its unique key' end as no) n
    union all
    select (row ->> 'id')::uuid, null, 'was asked to end while it ran', null
    from audit_batch b cross join lateral jsonb_array_elements(b.rows) row
    where b.action = a.action and b.batch = undo_removed.batch and row ->> 'state' = 'running'
$$;
comment on function undo_removed(audit, int) is 'The same as undo_live, for jobs that an action put into history';

create or replace function undo_queue(a audit) returns table (id text, becomes text, why text, was jsonb)
language sql stable set search_path from current as $$
    select a.queue,
           case when no is null then case a.verb when 'pause' then 'resumed' when 'resume' then 'paused'
                                                 else 'set back' end end,
           no, b.before
    from audit_batch b left join queue_config c on c.queue = a.queue
    cross join lateral (select jsonb_populate_record(
        jsonb_populate_record(null::queue_config, b.before),
        case when a.verb = 'set' then (select jsonb_object_agg(k, setting_value(k, v))
                                       from jsonb_each_text(a.params) s (k, v) where k <> 'paused') end) as left_) l
    cross join lateral (select case
        when b.changed = 0 then 'nothing was changed'
        when a.verb = 'pause' and b.before ->> 'since' is null then 'what it changed was not kept'
        when a.verb = 'pause' then case
            when c.paused_at is null then 'is not paused any more'
            when c.paused_at <> (b.before ->> 'since')::timestamptz then 'was resumed and paused again since' end
        when a.verb = 'resume' then case when c.paused_at is not null then 'is paused already' end
        when exists (select from jsonb_object_keys(a.params) k
                     join setting_shown(c) n on n.name = k join setting_shown(l.left_) s on s.name = k
                     where k <> 'paused' and n.value <> s.value) then 'was set again since'
        when a.params ? 'paused' and (c.paused_at is not null) is distinct from (a.params ->> 'paused')::boolean
            then 'was paused or resumed since'
        end as no) n
    where b.action = a.action and b.batch = 1 and a.verb in ('pause', 'resume', 'set')
$$;
comment on function undo_queue(audit) is 'The same as undo_live, for an action on a queue';

create or replace function undo_schedule(a audit) returns table (id text, becomes text, why text, was jsonb)
language sql stable set search_path from current as $$
    select a.params ->> 'schedule',
           case when no is null then case a.verb when 'schedule pause' then 'resumed'
                                                 when 'schedule resume' then 'paused'
                                                 when 'schedule remove' then 'added again'
                                                 else case when b.before is null then 'removed'
                                                           else 'changed back' end end end,
           no, b.before
    from audit_batch b left join schedule s on s.name = a.params ->> 'schedule'
    cross join lateral (select case
        when b.changed = 0 then 'nothing was changed'
        when a.verb = 'schedule remove' then case when s.name is not null then 'there is one of this name again' end
        when s.name is null then 'was removed since'
        when a.verb = 'schedule pause' then case
            when s.paused_at is null then 'is not paused any more'
            when s.paused_at is distinct from (b.before ->> 'since')::timestamptz
                then 'was resumed and paused again since' end
        when a.verb = 'schedule resume' then case
            when s.paused_at is not null then 'is paused already'
            when b.before ->> 'paused_at' is null then 'was not paused, it stood still' end
        when s.changed > b.at then 'was changed since' end as no) n
    where b.action = a.action and b.batch = 1 and a.verb like 'schedule %'
$$;
comment on function undo_schedule(audit) is 'The same as undo_live, for an action on a schedule';

create or replace function undo_preview(of uuid) returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    a audit := undo_check(undo_preview.of);
begin
    return query
    select z.becomes, count(*), z.why from (
        select l.becomes, l.why from audit_batch b cross join lateral undo_live(a, b.batch) l
        where b.action = undo_preview.of and a.verb in ('requeue', 'edit', 'priority', 'reschedule')
        union all
        select l.becomes, l.why from audit_batch b cross join lateral undo_again(a, b.batch) l
        where b.action = undo_preview.of and a.verb in ('requeue', 'edit')
        union all
        select l.becomes, l.why from audit_batch b cross join lateral undo_removed(a, b.batch) l
        where b.action = undo_preview.of and a.verb in ('discard', 'cancel')
        union all
        select l.becomes, l.why from undo_queue(a) l
        union all
        select l.becomes, l.why from undo_schedule(a) l) z
    group by 1, 3 order by 2 desc;
end $$;
comment on function undo_preview(uuid) is 'What undo would do now: how many rows would become what again, how many '
    'would be left alone, and why. Raises QT007 if the action can''t be undone';

create or replace function undo_new_jobs(a audit, batch int, held uuid[], busy uuid[]) returns jsonb
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    rows jsonb;
    ids  uuid[];
begin
    with judged as materialized (
        select l.id, n.new, q.id is null as free, l.becomes,
               case when q.id is null then l.why else left_alone(q.state, q.id = any(busy)) end as why
        from undo_again(a, undo_new_jobs.batch) l
        join audit_batch b on b.action = a.action and b.batch = undo_new_jobs.batch
        cross join lateral jsonb_to_recordset(b.rows) n (id uuid, new uuid)
        left join lateral (select q.id, q.state from queue q where q.id = n.new and q.id <> all(held) offset 0) q
            on l.becomes is not null
        where n.id = l.id and n.new is not null
    )
    select jsonb_agg(jsonb_build_object('id', j.id, 'state', case when j.free then j.becomes end, 'why', j.why)),
           coalesce(array_agg(j.new) filter (where j.free and j.becomes is not null), '{}')
    into rows, ids from judged j;
    perform push_withdraw(ids, true);
    return coalesce(rows, '[]');
end $$;
comment on function undo_new_jobs(audit, int, uuid[], uuid[]) is 'For undo_jobs: deletes the new jobs that one batch '
    'of a requeue pushed. held: the caller has locked them; busy: their lease is locked by others';

create or replace function undo_jobs(action uuid, a audit, batch int, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids  uuid[] := array(select l.id from undo_live(a, batch) l where l.becomes is not null);
    news uuid[] := array(select n.new from audit_batch b cross join lateral jsonb_to_recordset(b.rows) n (new uuid)
                         where b.action = a.action and b.batch = undo_jobs.batch and n.new is not null);
    held uuid[] := lock_waiting(ids || news);
    busy uuid[];
    jobs jsonb;
begin
    perform act_lock();
    -- read again under the scheduler's lock
    ids := array(select l.id from undo_live(a, batch) l where l.becomes is not null);
    select u.busy into busy from uncut_jobs(ids || news) u;
    held := held || lock_jobs(ids || news, held || busy);
    select jsonb_agg(jsonb_build_object('id', l.id, 'state', case when q.id is null then l.becomes end,
                         'why', case when q.id is null then l.why
                                     else left_alone(q.state, q.id = any(busy)) end)),
           jsonb_agg(l.job) filter (where l.becomes is not null and q.id is null)
    into rows, jobs
    from undo_live(a, undo_jobs.batch) l
    left join lateral (select q.id, q.state from queue q where q.id = l.id and q.id <> all(held) offset 0) q
        on l.becomes is not null;
    perform job_put(action, jobs);
    if a.verb = 'edit' then
        update queue q set payload = e.payload::json, body = decode(e.body, 'hex'), payload_type = e.payload_type
        from audit_batch b
        cross join lateral jsonb_to_recordset(b.before) e (id uuid, payload text, body text, payload_type text)
        where b.action = a.action and b.batch = undo_jobs.batch and q.id = e.id and q.id = any(held)
          and q.last_action = undo_jobs.action;
    end if;
    if news <> '{}' then
        rows := coalesce(rows, '[]') || undo_new_jobs(a, batch, held, busy);
    end if;
end $$;
comment on function undo_jobs(uuid, audit, int) is 'Undoes one batch of a requeue, an edit (restores the payload '
    'before it), a priority or a reschedule';

create or replace function undo_remove(action uuid, a audit, batch int, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    late    text := 'another job has its id or unique key since the preview';
    made    bigint;
    deleted bigint;
begin
    with judged as materialized (
        select * from undo_removed(a, undo_remove.batch)
    ), taken as materialized (
        select h.*
        from (select distinct j.was ->> 'queue' as queue, (j.was ->> 'finished')::timestamptz as finished
              from judged j where j.becomes is not null) k
        cross join lateral (select h.tableoid as part, h.ctid as place, h.* from history h
                            where h.queue = k.queue and h.finished = k.finished offset 0) h
        where h.last_action = a.action and h.kept and h.id in (select j.id from judged j where j.becomes is not null)
    ), numbered as materialized ( -- in the old order; below they are inserted in the order of unique keys
        select s.id, nextval('job_seq') as seq
        from (select t.id from taken t join judged j on j.id = t.id order by (j.was ->> 'seq')::bigint) s
    ), back as (
        insert into queue (
-- part: carried of=
            , id, seq, created, changed, state, queue, priority, tries, payload, body, run_after, expires_at,
            error, error_key, origin_id, last_action)
        select
-- part: carried of=t.
            , t.id, n.seq, t.created, coalesce((j.was ->> 'changed')::timestamptz, now()),
            (j.was ->> 'state')::job_state, t.queue, t.priority, t.tries, t.payload, t.body, t.run_after,
            (j.was ->> 'expires_at')::timestamptz, t.error, error_key(t.error), t.origin_id, undo_remove.action
        from taken t join judged j on j.id = t.id join numbered n on n.id = t.id
        order by t.queue, t.unique_key, n.seq
        on conflict do nothing returning id, queue, priority
    ), gone as materialized (
        select delete_finished(array_agg(t.part), array_agg(t.place)) as n
        from taken t where t.id in (select b.id from back b)
    ), counted as ( -- the trigger counts them as pushed, but they were pushed long ago
        insert into delta (queue, priority, pushed) select queue, priority, -count(*) from back group by 1, 2)
    select coalesce((select jsonb_agg(jsonb_build_object(
                                'id', j.id, 'state', case when b.id is not null then j.becomes end,
                                'why', case when b.id is null then coalesce(j.why, late) end))
                     from judged j left join back b on b.id = j.id), '[]'),
           (select count(*) from back), coalesce((select g.n from gone g), 0)
    into rows, made, deleted;
    if made <> deleted then
        raise 'some jobs have left history since the preview: try again' using errcode = '40001';
    end if;
    insert into delta (queue, priority, error_key, failed)
    select q.queue, 0, q.error_key, count(*) from queue q
    where q.id = any(array(select (x ->> 'id')::uuid from jsonb_array_elements(rows) x
                           where x ->> 'state' = 'failed again'))
      and q.last_action = undo_remove.action and q.error_key is not null group by 1, 3;
end $$;
comment on function undo_remove(uuid, audit, int) is 'Undoes one batch of a discard or cancel: the jobs leave history '
    'and wait again, with the id, tries and error that they had. A job is left alone if another one has taken its id '
    'or unique key meanwhile. Raises 40001 if jobs have left history meanwhile';

create or replace function undo_on_queue(a audit, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    r    record;
    back jsonb;
begin
    perform from queue_config c where c.queue = a.queue for update;
    perform act_lock();
    select * into r from undo_queue(a);
    if r.becomes is not null then
        perform bucket_settle(a.queue);
        perform uncut(a.queue);
        back := case a.verb
            when 'pause' then '{"paused_at": null, "paused_by": null, "pause_reason": null}'
            when 'resume' then (select jsonb_object_agg(k, v) from jsonb_each(r.was) x (k, v) where k like 'pause%')
            else (select jsonb_object_agg(k, v) from jsonb_each(r.was) x (k, v)
                  where a.params ? k or a.params ? 'paused' and k like 'pause%') end;
        perform put_settings(a.queue, back);
        update queue_config c set paused_at = o.paused_at, paused_by = o.paused_by, pause_reason = o.pause_reason
        from queue_config n cross join lateral jsonb_populate_record(n, back) o
        where n.queue = a.queue and c.queue = n.queue;
        delete from bucket b where b.queue = a.queue
            and not exists (select from queue_config c where c.queue = a.queue and c.rate is not null);
        perform wake_queue(a.queue);
    end if;
    rows := jsonb_build_array(jsonb_build_object('id', r.id, 'state', r.becomes, 'why', r.why));
end $$;
comment on function undo_on_queue(audit) is 'Undoes an action on a queue: its pause, or its settings';

create or replace function schedule_goes_on(s schedule, was schedule, of timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    done timestamptz;
    next timestamptz;
begin
    if s.paused_at is not null then
        return null;
    end if;
    -- whole seconds only: a run by hand is not for a time of the line
    done := (select max(r.due) from cron_run r
             where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity')
               and r.due = date_trunc('second', r.due));
    next := case when (s.cron, s.tz) = (was.cron, was.tz) and was.next_run is not null then was.next_run
                 else cron_next(s.cron, s.tz, of) end;
    return case when next <= done then cron_next(s.cron, s.tz, done) else next end;
end $$;
comment on function schedule_goes_on(schedule, schedule, timestamptz) is 'The next time of a schedule after an undo: '
    'the time that was next before the undone act (was; of: when the act was done), or the first time after all runs '
    'since. So no time runs twice, and catch_up decides about times that passed in between';

create or replace function schedule_undone(a audit, was schedule, present schedule) returns schedule
language plpgsql stable set search_path from current as $$
declare
    s schedule := was;
begin
    if a.verb in ('schedule pause', 'schedule resume') then -- other changes since then stay
        s := present;
        s.paused_at := was.paused_at;
        s.paused_by := was.paused_by;
        s.pause_reason := was.pause_reason;
    else
        s.changed := clock_timestamp();
    end if;
    if present.name is not null then -- its runs are not undone
        s.last_run := present.last_run;
        s.last_job := present.last_job;
        s.runs_from := present.runs_from;
        s.error := present.error;
        s.error_at := present.error_at;
    end if;
    if present.name is not null and a.verb = 'schedule set' then -- a pause since then stays
        s.paused_at := present.paused_at;
        s.paused_by := present.paused_by;
        s.pause_reason := present.pause_reason;
    end if;
    s.next_run := schedule_goes_on(s, was, a.at);
    return s;
end $$;
comment on function schedule_undone(audit, schedule, schedule) is 'The schedule after an undo of the act. was: before '
    'the act; present: now (NULL: it was removed)';

create or replace function undo_on_schedule(a audit, out rows jsonb)
language plpgsql set search_path from current as $$
declare
    r       record;
    was     schedule;
    present schedule;
begin
    perform from schedule x where x.name = a.params ->> 'schedule' for update;
    perform act_lock(); -- as in schedule_set
    select * into r from undo_schedule(a);
    if r.becomes is not null and r.was is null then
        delete from schedule x where x.name = r.id;
    elsif r.becomes is not null then
        select * into present from schedule x where x.name = r.id for update;
        was := jsonb_populate_record(null::schedule, r.was - 'payload');
        was.payload := (r.was ->> 'payload')::json;
        perform schedule_put(schedule_undone(a, was, present));
    end if;
    rows := jsonb_build_array(jsonb_build_object('id', r.id, 'state', r.becomes, 'why', r.why));
end $$;
comment on function undo_on_schedule(audit) is 'Undoes an action on a schedule, but not the runs since then, nor what '
    'others changed since then';

create or replace function undo(action uuid, batch int, of uuid, after text default null, expected bigint default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    a    audit;
    part int;
    rows jsonb;
begin
    a := undo_check(undo.of);
    if act_begin(action, batch, 'undo', a.queue, a.node,
                 jsonb_build_object('of', undo.of, 'verb', a.verb, 'schedule', a.params ->> 'schedule'), reason,
                 expected) then
        if batch = 1 and expected is not null then
            perform check_expected(expected, (select coalesce(sum(p.n), 0)::bigint from undo_preview(undo.of) p
                                              where p.state is not null));
        end if;
        select min(b.batch) into part from audit_batch b
        where b.action = undo.of and b.batch > coalesce(after::int, 0);
        rows := case when a.verb in ('requeue', 'edit', 'priority', 'reschedule') then undo_jobs(action, a, part)
                     when a.verb in ('discard', 'cancel') then undo_remove(action, a, part)
                     when a.verb in ('pause', 'resume', 'set') then undo_on_queue(a)
                     else undo_on_schedule(a) end;
        perform act_end(action, batch, rows, null, case
            when exists (select from audit_batch b where b.action = undo.of and b.batch > part) then part::text end);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function undo(uuid, int, uuid, text, bigint, text) is 'Takes an action (of) back, one batch of it a call: '
    'call again with the next batch number and with the cursor of the last answer as after, until the cursor is NULL. '
    'Rows that are no longer as the action left them are left alone. Raises QT007 if the action can''t be undone at '
    'all';
