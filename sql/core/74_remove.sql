-- Cancel, discard, delete (by job) and purge (by predicate).
-- A job that stands in a free lease leaves it first; one that runs is only asked to end.

create or replace function remove_jobs(action uuid, ids uuid[], verb text, out rows jsonb, out before jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
begin
    perform scheduler_lock(true);
    perform from work_queue w where w.lease = any(array(
        select l.lease from live l join queue q on q.queue = l.queue and q.seq = any(l.seqs) where q.id = any(ids)))
    order by w.lease for update;
    with i as materialized (
        select distinct unnest(ids) as id
    ), o as materialized (
        select q.*, w.lease, w.lock_key is not null and w.lease is not null as runs
        from i join queue q using (id)
        left join live w on q.state = 'ready' and w.queue = q.queue and q.seq = any(w.seqs)
    ), w as materialized ( -- what stays in the free leases
        select w.lease, array(select s from unnest(w.seqs) s where s not in (select o.seq from o where o.lease = w.lease)) as seqs
        from work_queue w where w.lease in (select o.lease from o where not o.runs)
    ), wd as (
        delete from work_queue x using w where x.lease = w.lease and w.seqs = '{}'
    ), wu as (
        update work_queue x set seqs = w.seqs from w where x.lease = w.lease and w.seqs <> '{}'
    ), asked as (
        update queue q set cancel_asked = now(), last_action = action from o
        where q.id = o.id and o.runs and verb = 'cancel' and o.cancel_asked is null returning q.id
    ), gone as (
        delete from queue q using o
        where q.id = o.id and not o.runs and (verb <> 'cancel' or o.state <> 'failed')
        returning q.*
    ), h as (
        insert into history (id, created, finished, state, priority, tries, max_tries, queue, kind, payload, body, payload_type, error,
                             unique_key, origin_id, last_action, kept, run_after, lease_timeout, run_timeout, concurrency_key)
        select g.id, created, now(), (case when g.state = 'failed' then 'failed' else 'cancelled' end)::job_state, priority, tries, g.max_tries,
               g.queue, kind, case when keep then payload end, case when keep then body end, payload_type, error, unique_key, origin_id,
               action, keep, run_after, g.lease_timeout, g.run_timeout, g.concurrency_key
        from gone g left join queue_config c on c.queue = g.queue
        cross join lateral (select verb = 'discard' or coalesce(c.history, 'full') = 'full' as keep) k
        where verb <> 'delete' and (verb = 'discard' or c.history is distinct from 'none')
    ), d as (
        insert into delta (queue, priority, error_key, blocked, ready, scheduled, retry, failed, cancelled)
        select queue, priority, null, -count(*) filter (where state = 'blocked'), -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
               -count(*) filter (where state = 'retry'), -count(*) filter (where state = 'failed'), count(*) filter (where verb = 'cancel')
        from gone group by 1, 2
        union all
        select queue, 0, error_key, 0, 0, 0, 0, -count(*), 0 from gone where state = 'failed' and error_key is not null group by 1, 3)
    select jsonb_agg(jsonb_build_object('id', i.id,
               'state', case when gone.id is not null then case verb when 'cancel' then 'cancelled' when 'discard' then 'discarded' else 'deleted' end
                             when asked.id is not null then 'running' end,
               'why', case when asked.id is not null then 'asked to end' when gone.id is not null then null
                           when o.id is null then 'no such job' when o.runs and verb = 'cancel' then 'asked to end already'
                           when o.runs then 'running' else 'failed: discard or delete it' end) order by i.id),
           jsonb_agg(jsonb_build_object('id', o.id, 'seq', o.seq, 'state', o.state, 'queue', o.queue, 'kind', o.kind)) filter (where gone.id is not null)
    into rows, before
    from i left join o using (id) left join gone using (id) left join asked using (id);
    perform bucket_forget(b ->> 'queue', array[(b ->> 'seq')::bigint]) from jsonb_array_elements(before) b;
end $$;
comment on function remove_jobs(uuid, uuid[], text) is 'Takes jobs out of queue, into history unless deleted';

create or replace function cancel(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    if act_begin($1, $2, 'cancel', null, null, jsonb_build_object('ids', cardinality($3)), $4, null) then
        select * into r from remove_jobs($1, $3, 'cancel');
        perform act_end($1, $2, r.rows, r.before);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function cancel(uuid, int, uuid[], text) is 'Waiting jobs end as cancelled; running ones are asked to: their workers learn it with the next extend';

create or replace function discard(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    if act_begin($1, $2, 'discard', null, null, jsonb_build_object('ids', cardinality($3)), $4, null) then
        select * into r from remove_jobs($1, $3, 'discard');
        perform act_end($1, $2, r.rows, r.before);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function discard(uuid, int, uuid[], text) is 'Failed or waiting jobs go to history as they are, payload and all: requeue brings them back';

create or replace function delete_jobs(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    if act_begin($1, $2, 'delete', null, null, jsonb_build_object('ids', cardinality($3)), $4, null) then
        select * into r from remove_jobs($1, $3, 'delete');
        perform act_end($1, $2, r.rows, r.before);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function delete_jobs(uuid, int, uuid[], text) is 'Jobs that do not run are gone for good';

create or replace function purge_preview(queue text default null, states text[] default null, before timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set jit = off as $$
    select 'purged', count(*), h.state::text from history h
    where ($1 is null or h.queue = $1) and h.state::text = any(coalesce($2, '{completed,cancelled}'))
      and h.finished < coalesce($3, now()) group by h.state
    union all
    select 'purged', count(*), 'failed, still to requeue' from queue q
    where 'failed' = any($2) and q.state = 'failed' and ($1 is null or q.queue = $1) and q.changed < coalesce($3, now())
    having count(*) > 0
$$;
comment on function purge_preview(text, text[], timestamptz) is 'How many finished jobs purge would delete now, by state (in why)';

create or replace function purge_days(states text[], before timestamptz) returns jsonb
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    part text;
    day  date;
    days text[] := '{}';
    ns   bigint[] := '{}';
    rows jsonb := '[]';
    n    bigint;
    keep bigint;
    wait text := current_setting('lock_timeout');
begin
    -- All are counted before the first is dropped: from then on every completion waits until we commit. What was counted stands
    -- still, as new rows go to today's.
    for part, day in select c.relname, to_date(right(c.relname, 8), 'YYYYMMDD') from pg_inherits i join pg_class c on c.oid = i.inhrelid
                     where i.inhparent = 'history'::regclass order by 2 loop
        continue when day + 1 > (before at time zone 'UTC') or day >= (now() at time zone 'UTC')::date;
        execute format('select count(*), count(*) filter (where state::text <> all($1)) from %I', part) into n, keep using states;
        if keep = 0 then
            days := days || part;
            ns := ns || n;
        end if;
    end loop;
    perform set_config('lock_timeout', '50ms', true);
    for i in 1 .. cardinality(days) loop
        begin
            execute format('drop table %I', days[i]);
            rows := rows || case when ns[i] = 0 then '[]' else jsonb_build_array(jsonb_build_object(
                'id', days[i], 'state', 'purged', 'why', 'the whole day', 'n', ns[i])) end;
        exception when lock_not_available then
            exit; -- somebody reads it, a dump perhaps: rows go one by one. Completions wait behind each try, so there is one
        end;
    end loop;
    perform set_config('lock_timeout', wait, true);
    return rows;
end $$;
comment on function purge_days(text[], timestamptz) is 'Drops whole days of history, where that waits for nobody';

create or replace function purge(action uuid, batch int, queue text, states text[], before timestamptz, "limit" int default 10000,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set jit = off as $$
#variable_conflict use_column
declare
    states text[] := coalesce($4, '{completed,cancelled}');
    upto   timestamptz := coalesce($5, now());
    lim    int := coalesce($6, 10000);
    rows   jsonb := '[]';
    more   jsonb;
    k      bigint := 0;
begin
    if not states <@ '{completed,cancelled,failed}' then
        raise 'only completed, cancelled and failed jobs can be purged' using errcode = 'QT007';
    end if;
    if act_begin($1, $2, 'purge', $3, null, jsonb_build_object('states', states, 'before', upto), $8, $7) then
        if $2 = 1 and $7 is not null then
            perform check_expected($7, (select coalesce(sum(p.n), 0)::bigint from purge_preview($3, states, upto) p));
        end if;
        if $3 is null and $2 = 1 then
            rows := purge_days(states, upto);
            if rows <> '[]' then -- the lock on history should be short: the rest is the next batch's
                perform act_end($1, $2, rows, null, 'more');
                return query select * from act_answer($1, $2);
                return;
            end if;
        end if;
        with v as materialized (
            select h.tableoid as t, h.ctid as c from history h
            where ($3 is null or h.queue = $3) and h.state::text = any(states) and h.finished < upto
            limit lim
        ), d as (
            delete from history h using v where h.tableoid = v.t and h.ctid = v.c returning h.queue, h.state
        )
        select jsonb_agg(jsonb_build_object('id', queue, 'state', 'purged', 'why', state, 'n', n)), coalesce(sum(n), 0) into more, k
        from (select queue, state, count(*) as n from d group by 1, 2 order by 1, 2) z;
        rows := rows || coalesce(more, '[]');
        if 'failed' = any(states) and k < lim then
            with v as materialized (
                select q.id from queue q where q.state = 'failed' and ($3 is null or q.queue = $3) and q.changed < upto
                order by q.queue, q.seq limit lim - k for update skip locked
            ), g as (
                delete from queue q using v where q.id = v.id and q.state = 'failed' returning q.queue, q.priority, q.error_key
            ), dd as (
                insert into delta (queue, priority, error_key, failed)
                select queue, priority, null, -count(*) from g group by 1, 2
                union all
                select queue, 0, error_key, -count(*) from g where error_key is not null group by 1, 3)
            select jsonb_agg(jsonb_build_object('id', queue, 'state', 'purged', 'why', 'failed', 'n', n)), k + coalesce(sum(n), 0) into more, k
            from (select queue, count(*) as n from g group by 1 order by 1) z;
            rows := rows || coalesce(more, '[]');
        end if;
        perform act_end($1, $2, rows, null, case when k >= lim then 'more' end);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function purge(uuid, int, text, text[], timestamptz, int, bigint, text) is 'Deletes finished jobs that ended before a time: whole days as '
    'partitions where nobody is in the way, the rest limit rows a call, as long as the answer has a cursor. failed = also those still to requeue';
