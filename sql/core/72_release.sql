-- Acts on leases: release takes them from a node, extend_leases prolongs them; and their previews.

create or replace function node_alive(node text, expired_only boolean) returns text
language sql stable set search_path from current as $$
    select coalesce(
        (select format('its last heartbeat is %s s old', extract(epoch from now() - n.heartbeat)::int) from node n
         where n.lock_key = $1 and n.heartbeat > now() - setting_interval('node_dead')),
        (select format('%s of its leases have not expired', count(*)) from live w
         where w.lock_key = $1 and w.lock_timeout >= now() and not $2 and not exists (select from node where lock_key = $1)
         having count(*) > 0))
$$;
comment on function node_alive(text, boolean) is 'Why a node looks alive; NULL = it does not. One that registered is as alive as its heartbeat, '
    'of one that never did only its leases can tell';

create or replace function release_preview(node text, expired_only boolean default true, fail boolean default false, count boolean default true)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
    select z.state, count(*), z.why from (
        select case when $2 and w.lock_timeout >= now() then null when q.cancel_asked is not null then 'cancelled' when $3 then 'failed'
                    when counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries, 5) then 'failed' else 'ready' end as state,
               case when $2 and w.lock_timeout >= now() then 'its lease has not expired'
                    when q.cancel_asked is not null then 'its end was asked for'
                    when $3 then null when counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries, 5) then 'last try'
                    when counted then 'counts as a try' when $4 then 'had not started' end as why
        from live w
        cross join lateral ranges(w.seqs, w.scattered) r
        cross join lateral (
            select * from queue q where q.queue = w.queue and q.priority = w.priority and q.state = 'ready'
            and q.seq between r.low and r.high and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq offset 0) q
        cross join lateral (select $4 and (w.all_started or q.seq = any(w.started_seqs)) is true as counted) c
        where w.lock_key = $1) z
    group by 1, 3 order by 2 desc
$$;
comment on function release_preview(text, boolean, boolean, boolean) is 'What release would do now, job by job in counts; changes nothing';

create or replace function release(action uuid, batch int, node text, expired_only boolean default true, fail boolean default false,
    count boolean default true, force boolean default false, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    alive  text;
    leases bigint[];
    busy   bigint[];
    rows   jsonb;
    left_  boolean;
begin
    if not act_begin($1, $2, 'release', null, $3, jsonb_build_object('expired_only', $4, 'fail', $5, 'count', $6, 'force', $7), $9, $8) then
        return query select * from act_answer($1, $2);
        return;
    end if;
    alive := node_alive($3, $4);
    if alive is not null and not coalesce($7, false) then
        raise 'node "%" looks alive: %', $3, alive using errcode = 'QT006',
            hint = 'Its late answers would be refused, but what it does outside the database cannot be undone. force = true does it anyway';
    end if;
    perform scheduler_lock(true);
    if $2 = 1 and $8 is not null then
        perform check_expected($8, (select coalesce(sum(p.n), 0)::bigint from release_preview($3, $4, $5, $6) p where p.state is not null));
    end if;
    select coalesce(array_agg(z.lease), '{}') into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key = $3 and (l.lock_timeout < now() or not $4)
                                  order by l.lease limit 500))
          and w.lock_key = $3 and (w.lock_timeout < now() or not $4)
        order by w.lease for update skip locked) z;
    select array_agg(l.lease) into busy from live l
    where l.lock_key = $3 and (l.lock_timeout < now() or not $4) and l.lease <> all(leases);
    left_ := cardinality(leases) >= 500;
    select jsonb_agg(jsonb_build_object('id', t.id, 'state', t.state)) into rows
    from take_back(leases, coalesce($6, true), coalesce($5, false),
                   format('worker lost: released from %s by %s', $3, session_user)) t;
    if not left_ and busy is not null then
        rows := coalesce(rows, '[]') || (select jsonb_agg(jsonb_build_object('id', b::text, 'why', 'its worker is answering for this lease now'))
                                         from unnest(busy) b);
    end if;
    perform act_end($1, $2, rows, to_jsonb(leases), case when left_ then 'more' end);
    return query select * from act_answer($1, $2);
end $$;
comment on function release(uuid, int, text, boolean, boolean, boolean, boolean, bigint, text) is 'Takes a node''s leases (the expired ones, or all) away: '
    'their jobs go back in line, or fail; count = those that had started lose a try. QT006 where the node looks alive, unless force';

create or replace function extend_find(ids uuid[], node text)
returns table (lease bigint, jobs int, job uuid, until timestamptz)
language sql stable set search_path from current as $$
    select w.lease, cardinality(w.seqs), null::uuid, w.lock_timeout from live w
    where $1 is null and w.lock_key = $2
    union all
    select w.lease, cardinality(w.seqs), i.id, w.lock_timeout
    from (select distinct unnest($1) as id) i
    left join lateral (select * from queue q where q.id = i.id and q.state = 'ready' offset 0) q on true
    left join lateral (select * from live w where w.queue = q.queue and w.lock_key is not null and ($2 is null or w.lock_key = $2)
                       and q.seq = any(w.seqs) offset 0) w on true
$$;
comment on function extend_find(uuid[], text) is 'The leases of a node, or of jobs (lease NULL: the job is in none)';

create or replace function extend_preview(ids uuid[] default null, node text default null, by interval default '5 min')
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
    select case when f.lease is null then null else 'running' end, count(distinct coalesce(f.lease::text, f.job::text)),
           case when f.lease is null then 'in no lease' when f.until >= now() + $3 then 'holds longer already'
                when f.jobs = 1 then 'lease of 1 job' else format('lease of %s jobs', f.jobs) end
    from extend_find($1, $2) f group by 1, 3 order by 2 desc
$$;
comment on function extend_preview(uuid[], text, interval) is 'What extend_leases would do now: leases, and of how many jobs each';

create or replace function extend_leases(action uuid, batch int, ids uuid[], node text, by interval, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    rows   jsonb;
    before jsonb;
begin
    if ($3 is null) = ($4 is null) and $3 is null or $5 is null or $5 <= interval '0' or $5 > interval '365 days' then
        raise 'extend needs jobs or a node, and a time to extend by, 365 days at most' using errcode = 'QT007';
    end if;
    if act_begin($1, $2, 'extend', null, $4, jsonb_build_object('ids', cardinality($3), 'by', $5), $7, $6) then
        if $6 is not null then
            perform check_expected($6, (select count(distinct f.lease) from extend_find($3, $4) f));
        end if;
        with f as materialized (
            select * from extend_find($3, $4)
        ), o as materialized (
            select w.lease, w.lock_timeout from work_queue w
            where w.lease = any(array(select lease from f)) and w.lock_key is not null and ($4 is null or w.lock_key = $4) order by w.lease for update
        ), u as (
            update work_queue w set lock_timeout = greatest(w.lock_timeout, now() + $5) from o where w.lease = o.lease
            returning w.lease, cardinality(w.seqs) as jobs
        )
        select (select jsonb_agg(r) from (
                    select jsonb_build_object('id', u.lease::text, 'state', 'running',
                                              'why', case when u.jobs = 1 then 'lease of 1 job' else format('lease of %s jobs', u.jobs) end) as r from u
                    union all
                    select jsonb_build_object('id', coalesce(f.job::text, f.lease::text), 'why', 'in no lease') from f
                    where f.lease is null or f.lease not in (select lease from u)) z),
               (select jsonb_agg(jsonb_build_object('lease', o.lease, 'lock_timeout', o.lock_timeout)) from o)
        into rows, before;
        perform act_end($1, $2, rows, before);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function extend_leases(uuid, int, uuid[], text, interval, bigint, text) is 'Leases (of these jobs, or all of a node) hold until now + by '
    'at least; nothing else changes, so their workers'' answers stay good';
