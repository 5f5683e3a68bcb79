-- Acts on queues and nodes: pause, resume, set_queue, drain_node.

create or replace function uncut(queue text) returns bigint
language sql set search_path from current as $$
    with d as ( -- a claim that is just taking one of them is waited for: then it is running
        delete from work_queue w where w.queue = $1 and w.lock_key is null
        and w.lease = any(array(select l.lease from live l where l.queue = $1 and l.lock_key is null))
        returning w.queue, w.priority, w.seqs
    ), l as (
        select array_agg(queue) as q, array_agg(p) as p, array_agg(s - 1) as s, sum(n)::bigint as n
        from (select queue, priority::int as p, min(s) as s, count(*) as n from d, unnest(d.seqs) s group by 1, 2) z)
    select coalesce((select z.n from l, lateral (select l.n, move_cursor(l.q, l.p, l.s, null)) z where l.q is not null), 0)
$$;
comment on function uncut(text) is 'Takes back the free leases of a queue: the cursor goes back to before their jobs, so that order is kept. Under the scheduler lock';

create or replace function pause(action uuid, queue text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    rows jsonb;
    back bigint;
begin
    if act_begin($1, 1, 'pause', $2, null, '{}', $3, null) then
        perform scheduler_lock(true);
        insert into queue_config (queue) values ($2) on conflict do nothing;
        update queue_config c set paused_at = now(), paused_by = session_user, pause_reason = $3 where c.queue = $2 and c.paused_at is null;
        if not found then
            rows := jsonb_build_array(jsonb_build_object('id', $2, 'why', 'paused already'));
        else
            back := uncut($2);
            rows := jsonb_build_array(jsonb_build_object('id', $2, 'state', 'paused', 'why', format('%s jobs taken back', back)));
        end if;
        perform act_end($1, 1, rows);
    end if;
    return query select * from act_answer($1, 1);
end $$;
comment on function pause(uuid, text, text) is 'No job of the queue is handed out from here on; what runs is finished. Jobs that were ready in leases keep their place';

create or replace function resume(action uuid, queue text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off as $$
#variable_conflict use_column
declare
    was jsonb;
begin
    if act_begin($1, 1, 'resume', $2, null, '{}', $3, null) then
        select to_jsonb(c) into was from queue_config c where c.queue = $2 and c.paused_at is not null for update;
        if was is not null then
            update queue_config c set paused_at = null, paused_by = null, pause_reason = null where c.queue = $2;
            perform wake($2);
        end if;
        perform act_end($1, 1, jsonb_build_array(jsonb_build_object('id', $2, 'state', case when was is not null then 'resumed' end,
            'why', case when was is null then 'not paused' end)), was);
    end if;
    return query select * from act_answer($1, 1);
end $$;
comment on function resume(uuid, text, text) is 'Ends a pause';

create or replace function set_queue(action uuid, queue text, settings jsonb, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off as $$
#variable_conflict use_column
declare
    allowed text[] := '{weight,max_running,chunk,lease_timeout,run_timeout,max_tries,backoff_base,backoff_max,retention,history}';
    wrong   text;
    was     jsonb;
begin
    select string_agg(k, ', ') into wrong from jsonb_object_keys($3) k where k <> all(allowed);
    if wrong is not null then
        raise 'a queue has no setting %', wrong using errcode = 'QT007', hint = 'There are: ' || array_to_string(allowed, ', ');
    end if;
    if act_begin($1, 1, 'set', $2, null, $3, $4, null) then
        perform scheduler_lock(true);
        insert into queue_config (queue) values ($2) on conflict do nothing;
        select to_jsonb(c) into was from queue_config c where c.queue = $2 for update;
        update queue_config c set
            weight = case when $3 ? 'weight' then ($3 ->> 'weight')::int else c.weight end,
            max_running = case when $3 ? 'max_running' then ($3 ->> 'max_running')::int else c.max_running end,
            chunk = case when $3 ? 'chunk' then ($3 ->> 'chunk')::int else c.chunk end,
            lease_timeout = case when $3 ? 'lease_timeout' then ($3 ->> 'lease_timeout')::interval else c.lease_timeout end,
            run_timeout = case when $3 ? 'run_timeout' then ($3 ->> 'run_timeout')::interval else c.run_timeout end,
            max_tries = case when $3 ? 'max_tries' then ($3 ->> 'max_tries')::smallint else c.max_tries end,
            backoff_base = case when $3 ? 'backoff_base' then ($3 ->> 'backoff_base')::interval else c.backoff_base end,
            backoff_max = case when $3 ? 'backoff_max' then ($3 ->> 'backoff_max')::interval else c.backoff_max end,
            retention = case when $3 ? 'retention' then ($3 ->> 'retention')::interval else c.retention end,
            history = case when $3 ? 'history' then $3 ->> 'history' else c.history end
        where c.queue = $2;
        perform uncut($2);
        perform wake($2);
        perform act_end($1, 1, jsonb_build_array(jsonb_build_object('id', $2, 'state', 'set')), was);
    end if;
    return query select * from act_answer($1, 1);
end $$;
comment on function set_queue(uuid, text, jsonb, text) is 'Changes settings of a queue (columns of queue_config), e.g. {"max_running": 4}; null = the default. '
    'What is cut but not claimed is cut anew';

create or replace function drain_node(action uuid, node text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off as $$
#variable_conflict use_column
begin
    if act_begin($1, 1, 'drain', null, $2, '{}', $3, null) then
        update node x set state = 'draining' where x.lock_key = $2 and x.state = 'up';
        perform act_end($1, 1, jsonb_build_array(case when found then jsonb_build_object('id', $2, 'state', 'draining')
            else jsonb_build_object('id', $2, 'why', case when exists (select from node x where x.lock_key = $2)
                                                     then 'draining already' else 'no such node is registered' end) end));
    end if;
    return query select * from act_answer($1, 1);
end $$;
comment on function drain_node(uuid, text, text) is 'The node takes no more jobs and ends when its own are done; it learns so with its next heartbeat';
