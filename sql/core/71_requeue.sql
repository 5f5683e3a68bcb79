-- Requeue: failed, retry and scheduled jobs become ready now, or spread over a time; finished ones are pushed again as new jobs.


create or replace function error_matches(error text, key text, wanted text) returns boolean
language sql immutable as $$ -- no SET: so it can be inlined, and the key of what is wanted is made once; only functions with a pinned path call it
    select case when $3 is null then true when left($3, 1) = '~' then coalesce(strpos(lower($1), lower(substr($3, 2))) > 0, false)
                else coalesce($2 = error_key($3), false) end
$$;
comment on function error_matches(text, text, text) is 'Whether an error is in the group of a text, or contains what follows a ~, in any case';

create or replace function spread_check(spread interval) returns void
language plpgsql immutable set search_path from current as $$
begin
    if $1 <= interval '0' or $1 > interval '30 days' then
        raise 'a requeue can be spread over a time of up to 30 days' using errcode = 'QT007';
    end if;
end $$;
comment on function spread_check(interval) is 'Raises QT007 where a time to spread jobs over is none';

create or replace function requeue_live(action uuid, ids uuid[], reset boolean, spread interval default null) returns setof uuid
language sql set search_path from current as $$
    with o as materialized (
        select q.id, q.queue, q.priority, q.state, q.error_key, q.seq from queue q
        where q.id = any(ids) and q.state::text in ('failed', 'retry', 'scheduled') for update
    ), s as materialized ( -- they keep their order
        select id, nextval('job_seq') as seq, -- spread: one somewhere in each of as many equal parts as there are jobs
               (select a.at from audit a where a.action = $1) + $4 * ((row_number() over () - random()) / count(*) over ()) as due
        from (select id from o order by seq) z
    ), u as (
        update queue q set state = case when $4 is not null then 'scheduled' when q.concurrency_key is null then 'ready' else 'blocked' end::job_state,
               seq = s.seq, changed = now(), run_after = s.due, last_action = action, expires_at = case when q.expires_at > now() then q.expires_at end,
               tries = case when reset then 0 else least(q.tries, 32766) end, -- the last try fits a smallint
               max_tries = case when not reset and q.tries >= coalesce(q.max_tries, c.max_tries, 5) then least(q.tries, 32766) + 1 else q.max_tries end,
               cancel_asked = null
        from o join s using (id) left join queue_config c on c.queue = o.queue
        where q.id = any(ids) and q.id = o.id
        returning q.id, q.queue, q.priority, q.seq, q.state, q.run_after, o.state as was, o.error_key
    ), d as (
        insert into delta (queue, priority, error_key, ready, blocked, failed, retry, scheduled, min_seq, max_seq, min_after)
        select queue, priority, null, count(*) filter (where state = 'ready'), count(*) filter (where state = 'blocked'),
               -count(*) filter (where was = 'failed'), -count(*) filter (where was = 'retry'),
               count(*) filter (where state = 'scheduled') - count(*) filter (where was = 'scheduled'),
               min(seq) filter (where state = 'ready'), max(seq) filter (where state = 'ready'), min(run_after)
        from u group by queue, priority
        union all
        select queue, 0, error_key, 0, 0, -count(*), 0, 0, null, null, null from u
        where was = 'failed' and error_key is not null group by queue, error_key)
    select id from u
$$;
comment on function requeue_live(uuid, uuid[], boolean, interval) is 'Makes waiting or failed jobs ready (those with a '
    'concurrency key: blocked; spread: scheduled, evenly over that time from the beginning of the action on); tries are kept and one more is allowed, or they start over (reset). A time that is over no longer counts';

create or replace function requeue_history(action uuid, job uuid, spread interval default null, out new_id uuid, out why text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    h history;
begin
    select * into h from history x where x.id = job order by x.finished desc limit 1;
    if h.id is null then
        why := 'no such job';
    elsif not h.kept then
        why := h.state || ', and its payload was not kept';
    else
        insert into queue (queue, kind, priority, payload, body, payload_type, unique_key, max_tries, lease_timeout, run_timeout,
                           concurrency_key, run_after, origin_id, last_action)
        values (h.queue, h.kind, h.priority, h.payload, h.body, h.payload_type, h.unique_key, h.max_tries, h.lease_timeout,
                h.run_timeout, h.concurrency_key, (select a.at from audit a where a.action = $1) + $3 * random(), h.id, action)
        on conflict do nothing returning id into new_id;
        why := case when new_id is null then 'a newer job has its unique key' else 'as new job ' || new_id end;
    end if;
end $$;
comment on function requeue_history(uuid, uuid, interval) is 'Pushes a finished job again, if its payload was kept';

create or replace function requeue_rows(action uuid, ids uuid[], reset boolean, spread interval, out rows jsonb, out before jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    plain uuid[];
    done  uuid[] := '{}';
    r     record;
    h     record;
    ready text := case when spread is null then 'ready' else 'scheduled' end;
begin
    perform from queue q where q.id = any(ids) and q.state::text <> 'ready' order by q.id for update; -- ready ones are their workers' to lock
    select jsonb_agg(jsonb_build_object('id', q.id, 'state', q.state, 'tries', q.tries, 'max_tries', q.max_tries, 'run_after', q.run_after,
                                        'changed', q.changed)),
           array_agg(q.id) filter (where q.unique_key is null or q.state <> 'failed')
    into before, plain
    from queue q where q.id = any(ids) and q.state::text <> 'ready';
    if plain is not null then
        select array_agg(x) into done from requeue_live(action, plain, reset, spread) x;
    end if;
    select jsonb_agg(jsonb_build_object('id', q.id, 'state', ready,
                                        'why', case when q.state = 'blocked' then 'waits for its concurrency key' end))
    into rows from queue q where q.id = any(done);
    rows := coalesce(rows, '[]');
    for r in select i.id, q.id is not null as here, q.state, q.unique_key,
                    q.state = 'ready' and exists (select from live w where w.queue = q.queue and w.lock_key is not null and q.seq = any(w.seqs)) as runs
             from (select u.id, min(u.o) as o from unnest(ids) with ordinality u (id, o)
                   where not exists (select from unnest(done) d (id) where d.id = u.id) group by u.id) i
             left join lateral (select * from queue q where q.id = i.id offset 0) q on true
             left join (select distinct on (h.id) h.id, h.queue, h.unique_key from history h
                        where h.unique_key is not null and h.id = any(array(select unnest(ids) except select unnest(done)
                                                                            except select o.id from queue o where o.id = any(ids)))
                        order by h.id) k on k.id = i.id
             order by coalesce(q.queue, k.queue), coalesce(q.unique_key, k.unique_key), i.o loop -- of equals the first given wins
        if not r.here then
            select * into h from requeue_history(action, r.id, spread);
            rows := rows || jsonb_build_object('id', r.id, 'state', case when h.new_id is not null then ready end, 'why', h.why, 'new', h.new_id);
        elsif r.state = 'ready' then
            rows := rows || jsonb_build_object('id', r.id, 'why', case when r.runs then 'running' else 'ready already' end);
        elsif r.state = 'blocked' then
            rows := rows || jsonb_build_object('id', r.id, 'why', 'waits for its concurrency key');
        else
            begin
                perform requeue_live(action, array[r.id], reset, spread);
                rows := rows || jsonb_build_object('id', r.id, 'state', ready);
            exception when unique_violation then
                rows := rows || jsonb_build_object('id', r.id, 'why', 'a newer job has its unique key');
            end;
        end if;
    end loop;
    rows := in_order(rows, ids);
end $$;
comment on function requeue_rows(uuid, uuid[], boolean, interval) is 'Requeues job by job where a unique key may be in the way, all others at once';

create or replace function requeue(action uuid, batch int, ids uuid[], reset boolean default false, reason text default null,
    spread interval default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    perform spread_check($6);
    if act_begin($1, $2, 'requeue', null, null, jsonb_build_object('ids', cardinality($3), 'reset', $4, 'spread', $6), $5, null) then
        select * into r from requeue_rows($1, $3, coalesce($4, false), $6);
        perform act_end($1, $2, r.rows, r.before);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function requeue(uuid, int, uuid[], boolean, text, interval) is 'These jobs become ready again: failed ones with one more try (reset: with all), '
    'waiting ones now, finished ones as new jobs; spread: not at once but evenly over that time. What cannot is left alone and says why';

create or replace function requeue_find(ids uuid[], queue text, states text[], kind text, error text, before timestamptz, after text, "limit" int)
returns table (id uuid, cursor text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    at jsonb;
    n  int := 0;
begin
    perform portion_check($8, $7);
    at := coalesce($7, '["q", "", 0]')::jsonb;
    if at ->> 0 = 'q' then
        return query
        select q.id, jsonb_build_array('q', q.queue, q.seq)::text from queue q
        where q.state not in ('ready', 'blocked') and q.state::text = any($3) and (q.queue, q.seq) > (at ->> 1, (at ->> 2)::bigint)
          and ($2 is null or q.queue = $2 and (q.queue <> at ->> 1 or q.seq > (at ->> 2)::bigint)) and ($4 is null or q.kind = $4)
          and ($5 is null or error_matches(q.error, q.error_key, $5)) and ($6 is null or q.changed < $6) and ($1 is null or q.id = any($1))
        order by q.queue, q.seq limit $8;
        get diagnostics n = row_count;
    end if;
    if n < $8 and $3 && '{completed,cancelled}' then
        return query
        select h.id, jsonb_build_array('h', h.finished, h.id)::text from history h
        where h.state::text = any($3) and ($2 is null or h.queue = $2) and ($4 is null or h.kind = $4)
          and ($5 is null or error_matches(h.error, error_key(h.error), $5)) and ($6 is null or h.finished < $6) and ($1 is null or h.id = any($1))
          and (at ->> 0 = 'q' or (h.finished, h.id) > ((at ->> 1)::timestamptz, (at ->> 2)::uuid))
        order by h.finished, h.id limit $8 - n;
    end if;
end $$;
comment on function requeue_find(uuid[], text, text[], text, text, timestamptz, text, int) is 'Jobs that a predicate names, in a fixed order from a cursor on';

create or replace function requeue_look(ids uuid[], ready text)
returns table (o bigint, queue text, key text, has_key boolean, state text, why text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    as_ready text := case when $2 = 'ready' then 'now instead of later' else 'at another time' end;
begin
    return query
    select i.o, coalesce(q.queue, h.queue), coalesce(q.unique_key, h.unique_key),
           coalesce(q.state <> 'failed', false),
           case when q.state in ('ready', 'blocked') or twin then null
                when q.id is not null or h.kept then $2 end,
           case when q.state = 'ready' then
                     case when exists (select from live w where w.queue = q.queue and w.lock_key is not null
                                       and q.seq = any(w.seqs)) then 'running' else 'ready already' end
                when q.state = 'blocked' then 'waits for its concurrency key'
                when twin then 'a newer job has its unique key'
                when q.id is not null then case when q.state <> 'failed' then as_ready end
                when h.id is null then 'no such job'
                when not h.kept then 'its payload was not kept'
                else 'as a new job' end
    from (select u.id, min(u.o) as o from unnest($1) with ordinality u (id, o) group by u.id) i
    left join lateral (select * from queue q where q.id = i.id offset 0) q on true
    left join lateral (select * from history h where h.id = i.id and q.id is null order by h.finished desc limit 1) h
        on true
    cross join lateral (select exists (
        select from queue o where o.queue = coalesce(q.queue, h.queue) and o.id <> i.id
        and o.unique_key = coalesce(q.unique_key, h.unique_key) and o.state <> 'failed'
        and coalesce(q.state, 'failed') in ('failed', 'completed', 'cancelled')) as twin) t;
end $$;
comment on function requeue_look(uuid[], text) is 'For requeue_preview: what would become of each of these jobs by itself; '
    'has_key = it holds its unique key, others must take it';

create or replace function requeue_preview(ids uuid[] default null, queue text default null, states text[] default null,
    kind text default null, error text default null, before timestamptz default null, reset boolean default false,
    spread interval default null)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_sort = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    ready text := case when $8 is null then 'ready' else 'scheduled' end;
begin
    perform spread_check($8);
    if $1 is not null then
        return query
        select case when z.nth = 1 then z.state end, count(*),
               case when z.nth = 1 then z.why else 'another of these has its unique key' end
        from (select y.state, y.why, -- of those that would take the same key the first given wins
                     case when y.key is null or y.state is null or y.has_key then 1
                          else row_number() over (partition by y.queue, y.key, y.state is null, y.has_key order by y.o) end as nth
              from requeue_look($1, ready) y) z
        group by 1, 3 order by 2 desc;
        return;
    end if;
    return query
    select z.state, count(*), z.why from (
        select ready as state, case when q.state <> 'failed' then case when $8 is null then 'now instead of later' else 'at another time' end end as why
        from queue q -- apart: nothing stands in the way of those without a key, and only the others must be sorted
        where q.unique_key is null and q.state not in ('ready', 'blocked') and q.state::text = any(coalesce($3, '{failed}'))
          and ($2 is null or q.queue = $2) and ($4 is null or q.kind = $4)
          and ($5 is null or error_matches(q.error, q.error_key, $5)) and ($6 is null or q.changed < $6)
        union all
        select case when not twin and first then ready end,
               case when twin then 'a newer job has its unique key' when not first then 'another of these has its unique key'
                    when was <> 'failed' then case when $8 is null then 'now instead of later' else 'at another time' end end
        from (select q.state as was, row_number() over (partition by q.queue, q.unique_key order by q.seq) = 1 as first,
                     q.state = 'failed' and exists (select from queue o
                         where o.queue = q.queue and o.unique_key = q.unique_key and o.state <> 'failed') as twin
              from queue q
              where q.unique_key is not null and q.state not in ('ready', 'blocked') and q.state::text = any(coalesce($3, '{failed}'))
                and ($2 is null or q.queue = $2) and ($4 is null or q.kind = $4)
                and ($5 is null or error_matches(q.error, q.error_key, $5)) and ($6 is null or q.changed < $6)) y
        union all
        select case when h.kept and not t.twin and t.first then ready end,
               case when not h.kept then 'its payload was not kept' when t.twin then 'a newer job has its unique key'
                    when not t.first then 'another of these has its unique key' else 'as a new job' end
        from history h
        cross join lateral (select h.unique_key is not null and exists (select from queue o where o.queue = h.queue
                                and o.unique_key = h.unique_key and o.state <> 'failed') as twin,
                                h.unique_key is null or not exists (select from history e where e.queue = h.queue
                                and e.unique_key = h.unique_key and e.state::text = any($3) and e.kept
                                and (e.finished, e.id) < (h.finished, h.id)) as first) t
        where $3 && '{completed,cancelled}' and h.state::text = any($3) and ($2 is null or h.queue = $2)
          and ($4 is null or h.kind = $4) and ($5 is null or error_matches(h.error, error_key(h.error), $5)) and ($6 is null or h.finished < $6)) z
    group by 1, 3 order by 2 desc;
end $$;
comment on function requeue_preview(uuid[], text, text[], text, text, timestamptz, boolean, interval) is 'What requeue or requeue_where would do now: how many '
    'become ready, how many are left alone and why. Changes nothing';

create or replace function requeue_where(action uuid, batch int, queue text, states text[] default '{failed}', kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reset boolean default false, reason text default null, spread interval default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    states text[] := coalesce($4, '{failed}');
    lim    int := coalesce($8, 1000);
    found  uuid[];
    at     text;
    r      record;
begin
    perform spread_check($13);
    if act_begin($1, $2, 'requeue', $3, null, jsonb_build_object('states', states, 'kind', $5, 'error', $6, 'before', $7, 'reset', $11,
                                                                   'spread', $13), $12, $10) then
        if $2 = 1 and $10 is not null then
            perform check_expected($10, (select coalesce(sum(p.n), 0)::bigint from requeue_preview(null, $3, states, $5, $6, $7, $11) p
                                         where p.state is not null));
        end if;
        select coalesce(array_agg(f.id order by f.o), '{}'), max(f.cursor) filter (where f.o = lim) into found, at
        from requeue_find(null, $3, states, $5, $6, $7, $9, lim) with ordinality f (id, cursor, o);
        select * into r from requeue_rows($1, found, coalesce($11, false), $13);
        perform act_end($1, $2, r.rows, r.before, at);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function requeue_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, boolean, text, interval) is
    'requeue() for all that match, a batch of limit jobs a call: pass the cursor of the last answer on until it is NULL. error: TEXT = the '
    'group of TEXT, ~TEXT = contains TEXT. before: came into its state before. expected: QT005 where another number would change';
