-- Changing jobs that wait: priority and time; pushing one by hand; another payload and requeue.

create or replace function change_check(verb text, wanted int, at timestamptz) returns void
language plpgsql immutable set search_path from current as $$
begin
    if verb = 'priority' and wanted between 0 and 9 is not true then
        raise 'a priority is 0 (soonest) to 9, not %', coalesce(wanted::text, 'nothing') using errcode = 'QT007';
    elsif verb = 'reschedule' and not isfinite(at) then
        raise 'a job can''t be put off for ever: cancel or pause it' using errcode = 'QT007';
    end if;
end $$;
comment on function change_check(text, int, timestamptz) is 'Raises QT007 where a job can''t be given this priority or time';

create or replace function change_jobs(action uuid, ids uuid[], verb text, wanted int, at timestamptz, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    at    timestamptz := case when $5 > now() then $5 end; -- a time that is over is now
    over  uuid[] := array(select h.id from history h where h.id = any(array(select unnest(ids) except select q.id from queue q where q.id = any(ids))));
    held  uuid[] := array(select q.id from queue q where q.id = any(ids) and q.state::text <> 'ready' order by q.id for update);
    cut   uuid[];
    busy  uuid[] := '{}';
    jobs  jsonb;
begin
    if exists (select from queue q where q.id = any(ids) and q.state::text = 'ready' and (verb = 'priority' or $5 > now())) then
        perform scheduler_lock(true);
        cut := array(select q.id from queue q where q.id = any(ids) and q.state::text = 'ready'
                     and (verb = 'priority' and q.priority <> wanted or verb = 'reschedule' and $5 > now()));
        if verb = 'priority' then -- what is cut already would go before those that shall be sooner: all is cut anew
            perform uncut(q, false) from (select distinct q.queue from queue q where q.id = any(cut)) d (q);
        end if;
        select u.busy, array(select unnest(cut) except select unnest(u.runs || u.busy)) into busy, cut from uncut_jobs(cut) u;
        held := held || lock_jobs(cut, held);
    end if;
    with i as materialized (
        select distinct unnest(ids) as id
    ), l as materialized (
        select i.id, q.id is not null as here, q.state, q.priority, q.tries, q.max_tries, q.run_after, q.changed, b.becomes,
               case when q.id is not null then b.why when i.id = any(over) then 'finished' else 'no such job' end as why,
               b.becomes is not null and not q.id = any(held) as moved
        from i left join lateral (select * from queue q where q.id = i.id offset 0) q on true
        left join lateral (select true as runs from live w where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                           and q.seq = any(w.seqs) limit 1) r on true
        left join lateral act_becomes(verb, q.state, coalesce(r.runs, false), false, q.priority, wanted, q.run_after, at) b on q.id is not null
    )
    select jsonb_agg(jsonb_build_object('id', id, 'state', case when not moved is not false then becomes end,
               'why', case when moved then left_alone(state, id = any(busy)) else why end)),
           jsonb_agg(jsonb_build_object('id', id, 'state', state, 'priority', priority, 'tries', tries, 'max_tries', max_tries,
                                        'run_after', run_after, 'changed', changed)) filter (where becomes is not null and not moved),
           jsonb_agg(jsonb_build_object('id', id, 'priority', case when verb = 'priority' then wanted else priority end, 'tries', tries,
               'max_tries', max_tries, 'state', case when verb = 'priority' then state::text else becomes end,
               'run_after', case when verb = 'priority' then run_after else at end,
               'changed', case when verb = 'priority' then changed else now() end)) filter (where becomes is not null and not moved)
    into rows, was, jobs from l;
    rows := in_order(rows, ids);
    perform job_put(action, jobs);
end $$;
comment on function change_jobs(uuid, uuid[], text, int, timestamptz) is 'Gives waiting jobs a priority or a time';

create or replace function change_where(action uuid, batch int, verb text, queue text, states text[], kind text, error text, before timestamptz,
    "limit" int, after text, expected bigint, wanted int, at timestamptz, out rows jsonb, out was jsonb, out cursor text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    found uuid[];
begin
    if $2 = 1 and $11 is not null then
        perform check_expected($11, (select coalesce(sum(p.n), 0)::bigint from act_preview($3, null, $4, $5, $6, $7, $8, $12, $13) p
                                     where p.state is not null));
    end if;
    select coalesce(array_agg(f.id order by f.o), '{}'), max(f.cursor) filter (where f.o = $9) into found, cursor
    from act_find($1, $4, $5, $6, $7, $8, $10, $9) with ordinality f (id, cursor, o);
    select x.rows, x.was into rows, was from change_jobs($1, found, $3, $12, $13) x;
end $$;
comment on function change_where(uuid, int, text, text, text[], text, text, timestamptz, int, text, bigint, int, timestamptz) is
    'One batch of change_jobs for a predicate';

create or replace function set_priority(action uuid, batch int, ids uuid[], priority int, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    perform change_check('priority', $4, null);
    if act_begin($1, $2, 'priority', null, null, jsonb_build_object('ids', cardinality($3), 'priority', $4), $5, null) then
        select * into r from change_jobs($1, $3, 'priority', $4, null);
        perform act_end($1, $2, r.rows, r.was);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function set_priority(uuid, int, uuid[], int, text) is 'Jobs that do not run get another priority, 0 (soonest) to 9; they stand at the end of those that have it';

create or replace function set_priority_where(action uuid, batch int, queue text, states text[], kind text default null, error text default null,
    before timestamptz default null, "limit" int default 1000, after text default null, expected bigint default null, priority int default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    perform change_check('priority', $11, null);
    if act_begin($1, $2, 'priority', $3, null, jsonb_build_object('states', $4, 'kind', $5, 'error', $6, 'before', $7, 'priority', $11), $12, $10) then
        select * into r from change_where($1, $2, 'priority', $3, $4, $5, $6, $7, coalesce($8, 1000), $9, $10, $11, null);
        perform act_end($1, $2, r.rows, r.was, r.cursor);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function set_priority_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, int, text) is
    'set_priority() for all that match, as requeue_where does it';

create or replace function set_time(action uuid, batch int, ids uuid[], at timestamptz default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    perform change_check('reschedule', null, $4);
    if act_begin($1, $2, 'reschedule', null, null, jsonb_build_object('ids', cardinality($3), 'at', $4), $5, null) then
        select * into r from change_jobs($1, $3, 'reschedule', null, $4);
        perform act_end($1, $2, r.rows, r.was);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function set_time(uuid, int, uuid[], timestamptz, text) is 'Waiting jobs become due at a time, without one (or with one that is over) now; what runs or failed is left alone';

create or replace function set_time_where(action uuid, batch int, queue text, states text[], kind text default null, error text default null,
    before timestamptz default null, "limit" int default 1000, after text default null, expected bigint default null, at timestamptz default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    perform change_check('reschedule', null, $11);
    if act_begin($1, $2, 'reschedule', $3, null, jsonb_build_object('states', $4, 'kind', $5, 'error', $6, 'before', $7, 'at', $11), $12, $10) then
        select * into r from change_where($1, $2, 'reschedule', $3, $4, $5, $6, $7, coalesce($8, 1000), $9, $10, null, $11);
        perform act_end($1, $2, r.rows, r.was, r.cursor);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function set_time_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, timestamptz, text) is
    'set_time() for all that match, as requeue_where does it';

create or replace function change_preview(verb text, ids uuid[] default null, queue text default null, states text[] default null, kind text default null,
    error text default null, before timestamptz default null, wanted int default null, at timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_preview($1, $2, $3, $4, $5, $6, $7, $8, case when $9 > now() then $9 end)
$$;
comment on function change_preview(text, uuid[], text, text[], text, text, timestamptz, int, timestamptz) is 'What set_priority or set_time would do now';
