-- Acts with a payload: edit the payload of a job and requeue it, or push a job by hand. The audit keeps the payload
-- that an edit replaced. The limits of push() apply here, too.

create or replace function job_version(state text, seq bigint, finished timestamptz) returns text
language sql stable set search_path from current as $$
    select state || '/' || coalesce(seq, (extract(epoch from finished) * 1000000)::bigint)
$$;
comment on function job_version(text, bigint, timestamptz) is 'The version of a job. An edit requires that it is '
    'unchanged. Each claim that ends, each requeue and each change gives the job another version';

create or replace function edit_look(job uuid, version text)
returns table (state text, queue text, becomes text, why text, is_json boolean)
language sql stable set search_path from current as $$
    with found as (
        select q.id, q.state::text, q.queue, q.seq, null::timestamptz as finished, q.unique_key, q.body, q.payload_type,
               true as kept
        from queue q where q.id = edit_look.job
        union all
        (select h.id, h.state::text, h.queue, null, h.finished, h.unique_key, h.body, h.payload_type, h.kept
         from history_of(array[edit_look.job]) h where not exists (select from queue q where q.id = edit_look.job)
         order by h.finished desc limit 1)
    ), examined as (
        select j.*, exists (select from live w where j.state = 'ready' and w.queue = j.queue and w.lock_key is not null
                              and j.seq = any(w.seqs)) as runs,
               j.state in ('failed', 'completed', 'cancelled') and exists (select from queue o
                       where o.queue = j.queue and o.id <> j.id
                   and o.unique_key = j.unique_key and o.state <> 'failed') as twin
        from found j
    ), judged as (
        select l.*, case when l.runs then 'running'
            when job_version(l.state, l.seq, l.finished)
            is distinct from edit_look.version then format('it has moved on since it was read: %s now', l.state)
            when not l.kept then 'its payload was not kept'
            when l.body is not null and coalesce(l.payload_type,
                                                 '') not like 'text/%' then 'its payload is bytes, not text'
            when l.twin then 'a newer job has its unique key' end as no
        from examined l
    )
    select coalesce(n.state, ''), n.queue,
           case when n.id is not null and n.no is null then case n.state when 'blocked' then 'blocked'
                                                                 else 'ready' end end,
           case when n.id is null then 'no such job' when n.no is not null then n.no
                when n.state in ('completed', 'cancelled') then 'as a new job'
                when n.state in ('scheduled', 'retry') then 'now instead of later' when n.state = 'failed' then null
                else 'behind those that wait' end,
           n.body is null
    from (select edit_look.job) i left join judged n on true
$$;
comment on function edit_look(uuid, text) is 'What an edit would make of a job that still has this version, or why it '
    'would do nothing';

create or replace function edit_check(ids uuid[], payload text, is_json boolean) returns void
language plpgsql stable set search_path from current as $$
begin
    if cardinality(ids) is distinct from 1 then
        raise 'one job is edited at a time' using errcode = 'QT007';
    elsif payload is null then
        raise 'an edit needs the payload' using errcode = 'QT007';
    end if;
    perform check_size(octet_length(payload));
    if is_json then
        perform payload::json; -- raises 22P02 if it is not JSON
    end if;
end $$;
comment on function edit_check(uuid[], text, boolean) is 'Raises QT007, QT004 or 22P02 if the job can''t have this '
    'payload';

create or replace function edit_rows(action uuid, job uuid, version text, payload text, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    l   record;
    own uuid := job;
    put jsonb;
    busy uuid[];
    h   record;
begin
    perform from queue q where q.id = job and q.state <> 'ready' for update;
    select * into l from edit_look(job, version);
    if l.becomes is not null and l.state = 'ready' then
        perform act_lock();
        -- read again: the job may have been cut, claimed, changed or finished meanwhile
        select * into l from edit_look(job, version);
        if l.becomes is not null and l.state = 'ready' then
            select u.busy || u.runs into busy from uncut_jobs(array[job]) u; -- the job may be in a free lease
            if busy <> '{}' or lock_jobs(array[job], '{}') = '{}' then
                l.becomes := null;
                l.why := left_alone('ready', busy <> '{}');
            end if;
        end if;
    end if;
    perform edit_check(array[job], payload, l.is_json);
    if l.becomes is not null and l.state in ('completed', 'cancelled') then
        select * into h from requeue_history(action, job);
        own := h.new_id;
        rows := jsonb_build_array(jsonb_build_object('id', job, 'state', case when own is not null then l.becomes end,
                                                     'why', h.why, 'new', own));
    elsif l.becomes is not null then
        select jsonb_build_array(jsonb_build_object('id', q.id, 'state', q.state, 'tries', q.tries, 'max_tries',
                                                    q.max_tries, 'run_after', q.run_after,
                   'changed', q.changed, 'payload', q.payload::text, 'body', encode(q.body, 'hex'), 'payload_type',
                   q.payload_type)),
               jsonb_build_array(jsonb_build_object('id', q.id, 'state', q.state, 'priority', q.priority, 'tries',
                                                    q.tries, 'max_tries', q.max_tries,
                   'run_after', q.run_after, 'changed', now()))
        into was, put from queue q where q.id = job;
        begin
            if l.state in ('ready', 'blocked') then
                perform job_put(action, put);
            else
                perform requeue_live(action, array[job], false);
            end if;
            rows := jsonb_build_array(jsonb_build_object('id', job, 'state', l.becomes, 'why', l.why));
        exception when unique_violation then
            rows := jsonb_build_array(jsonb_build_object('id', job, 'why', 'a newer job has its unique key'));
            was := null;
            own := null;
        end;
    else
        rows := jsonb_build_array(jsonb_build_object('id', job, 'why', l.why));
        own := null;
    end if;
    update queue q set payload = case when l.is_json then edit_rows.payload::json end,
        body = case when not l.is_json then convert_to(edit_rows.payload, 'UTF8') end
    where q.id = own;
end $$;
comment on function edit_rows(uuid, uuid, text, text) is 'Gives one job another payload and requeues it, if the job '
    'still has this version';

create or replace function edit_job(action uuid, batch int, ids uuid[], version text, payload text,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    r record;
begin
    perform edit_check(ids, payload, false);
    if act_begin(action, batch, 'edit', null, null, jsonb_build_object('job', ids[1], 'version', version, 'bytes',
            octet_length(payload)), reason, null) then
        select * into r from edit_rows(action, ids[1], version, payload);
        perform act_end(action, batch, r.rows, r.was);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function edit_job(uuid, int, uuid[], text, text, text) is 'Gives a job another payload and makes it ready: '
    'a failed job with one more try, a waiting job now, a finished job as a new job. version: as the console''s '
    'section job returns it; if the job has another one by now, it is left alone. The payload is JSON, unless the '
    'job''s own payload is a text';

create or replace function edit_preview(ids uuid[], version text, payload text) returns table (state text, n bigint,
    why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
    l record;
begin
    select * into l from edit_look(ids[1], version);
    perform edit_check(ids, payload, l.is_json);
    return query select l.becomes::text, 1::bigint, l.why::text;
end $$;
comment on function edit_preview(uuid[], text, text) is 'What edit_job would do now; raises the same errors';

-- --- pushing by hand

create or replace function job_by_hand(queue text, settings jsonb, payload text) returns queue
language plpgsql stable set search_path from current as $$
declare
    s     record;
    job   queue;
    fault text;
    odd   text := (select k from jsonb_object_keys(case jsonb_typeof(settings) when 'object' then settings end) k
                   where k not in ('kind', 'priority', 'delay', 'at', 'unique_key', 'max_tries', 'payload_type')
                   limit 1);
begin
    if odd is not null then
        raise 'a push knows no "%"', left(odd, 100) using errcode = 'QT007';
    elsif jsonb_typeof(settings) <> 'object' then
        raise 'the settings of a push are a JSON object, not %', jsonb_typeof(settings) using errcode = 'QT007';
    end if;
    perform whole_number(settings, 'priority', 0, 9), whole_number(settings, 'max_tries', 1, 32767);
    begin
        select * into s from jsonb_to_record(settings) x (kind text, priority int, delay interval, at timestamptz,
                                                          unique_key text, max_tries int, payload_type text);
    exception when data_exception then
        raise 'delay is a time such as 90s or 2h, at a date and a time: %', sqlerrm using errcode = 'QT007';
    end;
    perform check_size(octet_length(payload));
    job.queue := coalesce(job_by_hand.queue, '');
    job.kind := coalesce(s.kind, '');
    fault := job_fault(job.queue, job.kind, coalesce(s.priority, 5), false, s.max_tries, null, null, s.unique_key,
                       null);
    if fault is not null then
        raise '%', fault using errcode = '23514';
    end if;
    job.priority := coalesce(s.priority, 5);
    job.run_after := coalesce(s.at, later(s.delay));
    if not isfinite(job.run_after) then
        raise 'a job can''t be put off for ever' using errcode = 'QT007';
    end if;
    job.unique_key := s.unique_key;
    job.max_tries := s.max_tries;
    if s.payload_type is null then
        job.payload := payload::json;
    else
        job.body := convert_to(coalesce(payload, ''), 'UTF8');
        job.payload_type := s.payload_type;
    end if;
    return job;
end $$;
comment on function job_by_hand(text, jsonb, text) is 'The job that a push by hand would push. Raises QT007, QT004, '
    '22P02 or 23514 if there can be no such job';

create or replace function push_by_hand(action uuid, queue text, settings jsonb default '{}', payload text default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    job queue := job_by_hand(push_by_hand.queue, coalesce(settings, '{}'), payload);
    r   record;
begin
    if act_begin(action, 1, 'push', push_by_hand.queue, null, coalesce(settings, '{}') || jsonb_build_object('bytes',
            octet_length(payload)), reason, null) then
        job.id := uuid_v7();
        select * into r from push_row(job, false);
        update queue q set last_action = push_by_hand.action where q.id = r.id and r.pushed;
        perform act_end(action, 1,
                        (select jsonb_build_array(jsonb_build_object('id', r.id, 'state',
                                                                     case when r.pushed then q.state end,
            'why', case when r.pushed then 'job ' || r.id else 'there is such a job already: ' || r.id end))
            from (select r.id) x left join queue q on q.id = r.id));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function push_by_hand(uuid, text, jsonb, text, text) is 'push() as an act of an operator, with a row in the '
    'audit. settings: kind, priority, delay or at, unique_key, max_tries, payload_type. With payload_type the payload '
    'is a text of that type, otherwise it is JSON';

create or replace function push_preview(queue text, settings jsonb default '{}', payload text default null)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    job  queue := job_by_hand(push_preview.queue, coalesce(settings, '{}'), payload);
    twin uuid := push_twin(null, job.queue, job.unique_key, false);
    c    queue_config;
begin
    select * into c from queue_config x where x.queue = job.queue;
    return query select case when twin is null then case when job.run_after > now() then 'scheduled'
                                                         else 'ready' end end, 1::bigint,
        case when twin is not null then 'there is such a job already: ' || twin
             when c.paused_at is not null then 'the queue is paused: it waits'
             when c.queue is null and not exists (select from queue q
                                                  where q.queue = job.queue) then 'a queue that was never seen so far'
                                                  end;
end $$;
comment on function push_preview(text, jsonb, text) is 'What push_by_hand would do now; raises the same errors';
