-- Acts on leases: release takes them from a node, extend_leases prolongs them; and their previews.

create or replace function node_alive(node text, expired_only boolean) returns text
language sql stable security definer set search_path from current as $$
    select only_ours();
    select coalesce(
        (select format('its last heartbeat is %s s old', extract(epoch from now() - n.heartbeat)::int) from node n
         where n.lock_key = node_alive.node and not is_dead(n.heartbeat)),
        (select format('%s of its leases have not expired', count(*)) from live w
         where w.lock_key = node_alive.node and w.lock_timeout >= now() and not expired_only
           and not exists (select from node where lock_key = node_alive.node)
         having count(*) > 0))
$$;
comment on function node_alive(text, boolean) is 'Why a node seems to be alive; NULL: it does not. For a registered '
    'node its heartbeat decides, for any other node its leases';

create or replace function hollow(leases bigint[]) returns bigint[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select coalesce(array_agg(w.lease order by w.lease), '{}') from work_queue w
    where w.lease = any(hollow.leases)
      and not exists (select from leased_jobs(w.queue, w.priority, w.seqs, w.scattered))
$$;
comment on function hollow(bigint[]) is 'Those of these leases that have no job any more: somebody deleted or changed '
    'their jobs by hand';

create or replace function release_preview(node text, expired_only boolean default true, fail boolean default false,
    count boolean default true)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
    select only_ours();
    select z.state, count(*), z.why from (
        select case when expired_only and w.lock_timeout >= now() then null
                    when q.cancel_asked is not null then 'cancelled' when fail then 'failed'
                    when counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries, 5) then 'failed'
                        else 'ready' end as state,
               case when expired_only and w.lock_timeout >= now() then 'its lease has not expired'
                    when q.cancel_asked is not null then 'its end was asked for'
                    when fail then null when counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries,
                            5) then 'last try'
                    when counted then 'counts as a try' when release_preview.count then 'had not started' end as why
        from live w
        cross join lateral leased_jobs(w.queue, w.priority, w.seqs, w.scattered) q
        cross join lateral (select release_preview.count and (w.all_started or q.seq = any(w.started_seqs)) is true
                            as counted) c
        where w.lock_key = release_preview.node
        union all
        select 'ended', 'lease without a job'
        from unnest(hollow(array(select w.lease from live w where w.lock_key = release_preview.node
                                   and (w.lock_timeout < now() or not expired_only))))) z
    group by 1, 3 order by 2 desc
$$;
comment on function release_preview(text, boolean, boolean, boolean) is 'What release would do now: n jobs by the '
    'state that they would get (NULL: left alone), and why. Changes nothing';

create or replace function release(action uuid, batch int, node text, expired_only boolean default true,
    fail boolean default false,
    count boolean default true, force boolean default false, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    alive  text;
    leases bigint[];
    busy   bigint[];
    empty  bigint[];
    rows   jsonb;
    left_  boolean;
begin
    if not act_begin(action, batch, 'release', null, node, jsonb_build_object('expired_only', expired_only, 'fail',
            fail, 'count', count, 'force', force), reason, expected) then
        return query select * from act_answer(action, batch);
        return;
    end if;
    alive := node_alive(node, expired_only);
    if alive is not null and not coalesce(force, false) then
        raise 'node "%" looks alive: %', node, alive using errcode = 'QT006',
            hint = 'Its late answers would be refused, but what it does outside the database cannot be undone. force = '
                   'true does it anyway';
    end if;
    perform act_lock();
    if batch = 1 and expected is not null then
        perform check_expected(expected, (select coalesce(sum(p.n), 0)::bigint
                                          from release_preview(node, expired_only, fail, count) p
                                          where p.state is not null));
    end if;
    select coalesce(array_agg(z.lease), '{}') into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key = release.node
                                    and (l.lock_timeout < now() or not expired_only)
                                  order by l.lease limit 500))
          and w.lock_key = release.node and (w.lock_timeout < now() or not expired_only)
        order by w.lease + 0 for update skip locked) z; -- + 0: by the list, as 10_tables says
    select array_agg(l.lease) into busy from live l
    where l.lock_key = release.node and (l.lock_timeout < now() or not expired_only) and l.lease <> all(leases);
    left_ := cardinality(leases) >= 500;
    empty := hollow(leases);
    select jsonb_agg(jsonb_build_object('id', t.id, 'state', t.state)) into rows
    from take_back(leases, coalesce(count, true), coalesce(fail, false),
                   format('worker lost: released from %s by %s', node, session_user)) t;
    if empty <> '{}' then
        rows := coalesce(rows, '[]')
            || (select jsonb_agg(jsonb_build_object('id', e::text, 'state', 'ended', 'why', 'lease without a job'))
                from unnest(empty) e);
    end if;
    if not left_ and busy is not null then
        rows := coalesce(rows, '[]')
            || (select jsonb_agg(jsonb_build_object('id', b::text, 'why', 'its worker is answering for this lease now'))
                                         from unnest(busy) b);
    end if;
    perform act_end(action, batch, rows, to_jsonb(leases), case when left_ then 'more' end);
    return query select * from act_answer(action, batch);
end $$;
comment on function release(uuid, int, text, boolean, boolean, boolean, boolean, bigint, text) is 'Takes the leases of '
    'a node away: the expired ones, or all of them. The jobs become ready again; fail: they become failed. A lease '
    'that has no job any more ends. count: a try is counted for jobs that had started. Up to 500 leases a call: call '
    'again as long as the answer has a cursor. Raises QT006 if the node seems to be alive, unless force is true';

create or replace function extend_find(ids uuid[], node text)
returns table (lease bigint, jobs int, job uuid, until timestamptz)
language sql stable set search_path from current as $$
    select w.lease, cardinality(w.seqs), null::uuid, w.lock_timeout from live w
    where extend_find.ids is null and w.lock_key = extend_find.node
    union all
    select w.lease, cardinality(w.seqs), i.id, w.lock_timeout
    from (select distinct unnest(extend_find.ids) as id) i
    left join lateral (select * from queue q where q.id = i.id and q.state = 'ready' offset 0) q on true
    left join lateral (select * from live w where w.queue = q.queue and w.lock_key is not null
                         and (extend_find.node is null or w.lock_key = extend_find.node)
                       and q.seq = any(w.seqs) offset 0) w on true
$$;
comment on function extend_find(uuid[], text) is 'The leases of a node, or of jobs. lease NULL: the job is in no lease';

create or replace function extend_preview(ids uuid[] default null, node text default null, by interval default '5 min')
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
    select only_ours();
    select case when f.lease is null then null else 'running' end, count(distinct coalesce(f.lease::text, f.job::text)),
           case when f.lease is null then 'in no lease'
                when f.until >= now() + extend_preview.by then 'holds longer already'
                when f.jobs = 1 then 'lease of 1 job' else format('lease of %s jobs', f.jobs) end
    from extend_find(ids, node) f group by 1, 3 order by 2 desc
$$;
comment on function extend_preview(uuid[], text, interval) is 'What extend_leases would do now: n leases, and how many '
    'jobs each holds';

create or replace function extend_leases(action uuid, batch int, ids uuid[], node text, by interval,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    rows   jsonb;
    before jsonb;
begin
    if (ids is null) = (node is null) and ids is null or by is null or by <= interval '0'
       or by > interval '365 days' then
        raise 'extend needs jobs or a node, and a time to extend by, 365 days at most' using errcode = 'QT007';
    end if;
    if act_begin(action, batch, 'extend', null, node, jsonb_build_object('ids', cardinality(ids), 'by', by), reason,
                 expected) then
        if expected is not null then
            perform check_expected(expected, (select count(distinct f.lease) from extend_find(ids, node) f));
        end if;
        with asked_for as materialized (
            select * from extend_find(ids, node)
        ), locked_leases as materialized (
            select w.lease, w.lock_timeout from work_queue w
            where w.lease = any(array(select lease from asked_for)) and w.lock_key is not null
              -- + 0: by the list, as 10_tables says
              and (extend_leases.node is null or w.lock_key = extend_leases.node) order by w.lease + 0 for update
        ), extended as (
            update work_queue w set lock_timeout = greatest(w.lock_timeout, now() + extend_leases.by)
            from locked_leases o where w.lease = o.lease
            returning w.lease, cardinality(w.seqs) as jobs
        )
        select (select jsonb_agg(r) from (
                    select jsonb_build_object('id', u.lease::text, 'state', 'running',
                                              'why', case when u.jobs = 1 then 'lease of 1 job'
                                                          else format('lease of %s jobs', u.jobs) end) as r
                                                          from extended u
                    union all
                    select jsonb_build_object('id', coalesce(f.job::text, f.lease::text), 'why', 'in no lease')
                    from asked_for f
                    where f.lease is null or f.lease not in (select lease from extended)) z),
               (select jsonb_agg(jsonb_build_object('lease', o.lease, 'lock_timeout', o.lock_timeout))
                from locked_leases o)
        into rows, before;
        perform act_end(action, batch, rows, before);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function extend_leases(uuid, int, uuid[], text, interval, bigint, text) is 'Extends leases (of these jobs, '
    'or all leases of a node) until now + by at least. Nothing else changes, so the answers of the workers stay valid. '
    'Raises QT007 unless by is over 0 and at most 365 days';
