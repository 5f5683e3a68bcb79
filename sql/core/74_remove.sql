-- Cancel, discard, delete (by job) and purge (by predicate).
-- A job that stands in a free lease leaves it first; one that runs is only asked to end.

create or replace function remove_jobs(action uuid, ids uuid[], verb text, out rows jsonb, out before jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    done uuid[] := array(select h.id from history h where h.id = any(array(select unnest(ids) except select q.id from queue q where q.id = any(ids))));
    held uuid[] := array(select q.id from queue q where q.id = any(ids) and q.state::text <> 'ready' order by q.id for update);
    runs uuid[] := '{}';
    busy uuid[] := '{}';
begin
    if exists (select from queue q where q.id = any(ids) and q.state::text = 'ready') then -- many failed jobs do without the scheduler's lock
        select u.runs, u.busy into runs, busy from uncut_jobs(ids) u;
        held := held || lock_jobs(ids, held || busy);
    end if;
    with i as materialized (
        select distinct unnest(ids) as id
    ), o as materialized (
        select q.*, q.id = any(runs) as runs from queue q where q.id = any(held)
    ), asked as (
        update queue q set cancel_asked = now(), last_action = action from o
        where q.id = any(ids) and q.id = o.id and o.runs and verb = 'cancel' and o.cancel_asked is null returning q.id
    ), gone as (
        delete from queue q using o
        where q.id = any(ids) and q.id = o.id and not o.runs and (verb <> 'cancel' or o.state <> 'failed')
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
                           when o.id is null then case when i.id = any(done) then 'finished'
                               else coalesce((select left_alone(q.state, q.id = any(busy)) from queue q where q.id = i.id), 'no such job') end
                           when o.runs and verb = 'cancel' then 'asked to end already'
                           when o.runs then 'running' else 'failed: discard or delete it' end)),
           jsonb_agg(jsonb_build_object('id', o.id, 'seq', o.seq, 'state', o.state, 'queue', o.queue, 'kind', o.kind,
               'tries', o.tries, 'run_after', o.run_after, 'expires_at', o.expires_at, 'changed', o.changed,
               'finished', now())) filter (where gone.id is not null)
    into rows, before
    from i left join o using (id) left join gone using (id) left join asked using (id);
    rows := in_order(rows, ids);
end $$;
comment on function remove_jobs(uuid, uuid[], text) is 'Takes jobs out of queue, into history unless deleted';

create or replace function remove_act(action uuid, batch int, verb text, ids uuid[], reason text)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    r record;
begin
    if act_begin($1, $2, $3, null, null, jsonb_build_object('ids', cardinality($4)), $5, null) then
        select * into r from remove_jobs($1, $4, $3);
        perform act_end($1, $2, r.rows, r.before);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function remove_act(uuid, int, text, uuid[], text) is 'remove_jobs as an act: with its line in the audit, once';

create or replace function cancel(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from remove_act($1, $2, 'cancel', $3, $4) $$;
comment on function cancel(uuid, int, uuid[], text) is 'Waiting jobs end as cancelled; running ones are asked to: their workers learn it with the next extend';

create or replace function discard(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from remove_act($1, $2, 'discard', $3, $4) $$;
comment on function discard(uuid, int, uuid[], text) is 'Failed or waiting jobs go to history as they are, payload and all: undo brings them back';

create or replace function delete_jobs(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from remove_act($1, $2, 'delete', $3, $4) $$;
comment on function delete_jobs(uuid, int, uuid[], text) is 'Jobs that do not run are gone for good';

create or replace function remove_where(action uuid, batch int, verb text, queue text, states text[], kind text, error text, before timestamptz,
    "limit" int, after text, expected bigint, reason text)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    found uuid[];
    next  text;
    r     record;
begin
    if not act_begin($1, $2, $3, $4, null, jsonb_build_object('states', $5, 'kind', $6, 'error', $7, 'before', $8), $12, $11) then
        return query select * from act_answer($1, $2);
        return;
    end if;
    if $2 = 1 and $11 is not null then
        perform check_expected($11, (select coalesce(sum(p.n), 0)::bigint from act_preview($3, null, $4, $5, $6, $7, $8) p where p.state is not null));
    end if;
    select coalesce(array_agg(f.id order by f.o), '{}'), max(f.cursor) filter (where f.o = $9) into found, next
    from act_find($1, $4, $5, $6, $7, $8, $10, $9) with ordinality f (id, cursor, o);
    select * into r from remove_jobs($1, found, $3);
    perform act_end($1, $2, r.rows, r.before, next);
    return query select * from act_answer($1, $2);
end $$;
comment on function remove_where(uuid, int, text, text, text[], text, text, timestamptz, int, text, bigint, text) is 'remove_act() for all that match, a batch of them';

create or replace function cancel_where(action uuid, batch int, queue text, states text[], kind text default null, error text default null,
    before timestamptz default null, "limit" int default 1000, after text default null, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from remove_where($1, $2, 'cancel', $3, $4, $5, $6, $7, coalesce($8, 1000), $9, $10, $11) $$;
comment on function cancel_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is 'cancel() for all that match, as requeue_where does it';

create or replace function discard_where(action uuid, batch int, queue text, states text[], kind text default null, error text default null,
    before timestamptz default null, "limit" int default 1000, after text default null, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from remove_where($1, $2, 'discard', $3, $4, $5, $6, $7, coalesce($8, 1000), $9, $10, $11) $$;
comment on function discard_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is 'discard() for all that match, as requeue_where does it';

create or replace function delete_where(action uuid, batch int, queue text, states text[], kind text default null, error text default null,
    before timestamptz default null, "limit" int default 1000, after text default null, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from remove_where($1, $2, 'delete', $3, $4, $5, $6, $7, coalesce($8, 1000), $9, $10, $11) $$;
comment on function delete_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is 'delete_jobs() for all that match, as requeue_where does it';

create or replace function remove_preview(verb text, ids uuid[] default null, queue text default null, states text[] default null,
    kind text default null, error text default null, before timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_preview($1, $2, $3, $4, $5, $6, $7)
$$;
comment on function remove_preview(text, uuid[], text, text[], text, text, timestamptz) is 'What cancel, discard or delete would do now, the state of those that go in why';

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

create or replace function purge_some(part text, queue text, states text[], before timestamptz, block bigint, since timestamptz, "limit" int,
    out rows jsonb, out n bigint, out until timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    execute format($x$
        with v as materialized (
            select h.ctid as place, h.finished from %1$I h where h.state::text = any($2) and h.finished < $3 and %2$s limit $6
        ), d as (
            delete from %1$I h using v where h.ctid = v.place returning h.queue, h.state
        ), g as (
            select d.queue, d.state, count(*) as n from d group by 1, 2
        )
        select jsonb_agg(jsonb_build_object('id', g.queue, 'state', 'purged', 'why', g.state, 'n', g.n) order by g.queue, g.state),
               (select count(*) from v), (select max(v.finished) from v) from g $x$, part,
        case when queue is not null then 'h.queue = $1 and h.finished >= $5 order by h.finished'
             when block is not null then format('h.ctid >= %L and h.ctid < %L', format('(%s,0)', block), format('(%s,0)', block + 512))
             else 'true' end)
    into rows, n, until using queue, states, before, block, since, "limit";
    rows := coalesce(rows, '[]');
end $$;
comment on function purge_some(text, text, text[], timestamptz, bigint, timestamptz, int) is 'For purge: limit rows of one day, of a queue from a time '
    'on, or of all queues from a block on, so that no call wades through what those before it deleted. n: how many it found, until: the last of them';

create or replace function purge_finished(queue text, states text[], before timestamptz, "limit" int, inout at jsonb, out rows jsonb, out n bigint)
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    placed boolean := current_setting('server_version_num')::int >= 140000; -- that can begin to read at a block
    looked int := 0;
    part   text;
    block  bigint;
    since  timestamptz;
    got    record;
begin
    rows := '[]'; n := 0;
    for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent = 'history'::regclass and c.relname >= coalesce(at ->> 1, '') order by 1 loop
        continue when to_date(right(part, 8), 'YYYYMMDD') >= before; -- not in the query: there it may see other names
        block := case when $1 is null and placed then case when part = at ->> 1 then (at ->> 2)::bigint else 0 end end;
        since := case when part = at ->> 1 and $1 is not null then (at ->> 2)::timestamptz else '-infinity' end;
        loop
            select * into got from purge_some(part, $1, $2, $3, block, since, ("limit" - n)::int);
            rows := rows || got.rows;
            n := n + got.n;
            looked := looked + 1;
            if n >= "limit" or looked >= 100 then -- a look reads 4 MB at most
                at := jsonb_build_array('h', part, coalesce(to_jsonb(block + case when n < "limit" then 512 else 0 end), to_jsonb(got.until)));
                return;
            end if;
            exit when block is null or block + 512 >= pg_relation_size(quote_ident(part)::regclass) / current_setting('block_size')::int;
            block := block + 512;
        end loop;
    end loop;
    at := null;
end $$;
comment on function purge_finished(text, text[], timestamptz, int, jsonb) is 'For purge: limit rows of history from where the batch before it ended '
    '(at; NULL = from the beginning, and in the end: nothing is left)';

create or replace function purge_failed(queue text, before timestamptz, "limit" int, inout at jsonb, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids uuid[];
begin
    select array_agg(z.id), (array_agg(jsonb_build_array('q', z.queue, z.seq) order by z.queue desc, z.seq desc))[1] into ids, at
    from (select q.id, q.queue, q.seq from queue q
          where q.state = 'failed' and ($1 is null or q.queue = $1) and q.changed < $2
            and (q.queue, q.seq) > (coalesce(at ->> 1, ''), coalesce(at ->> 2, '0')::bigint)
          order by q.queue, q.seq limit $3 for update skip locked) z;
    with g as (
        delete from queue q where q.id = any(ids) and q.state::text = 'failed' returning q.queue, q.priority, q.error_key
    ), dd as (
        insert into delta (queue, priority, error_key, failed)
        select queue, priority, null, -count(*) from g group by 1, 2
        union all
        select queue, 0, error_key, -count(*) from g where error_key is not null group by 1, 3)
    select coalesce(jsonb_agg(jsonb_build_object('id', queue, 'state', 'purged', 'why', 'failed', 'n', n)), '[]') into rows
    from (select queue, count(*) as n from g group by 1 order by 1) z;
    if coalesce(cardinality(ids), 0) < $3 then
        at := null;
    end if;
end $$;
comment on function purge_failed(text, timestamptz, int, jsonb) is 'For purge: limit failed jobs from where the batch before it ended (at; NULL in the end: nothing is left)';

create or replace function purge(action uuid, batch int, queue text, states text[], before timestamptz, "limit" int default 10000,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set jit = off as $$
#variable_conflict use_column
declare
    states text[] := coalesce($4, '{completed,cancelled}');
    upto   timestamptz := coalesce($5, now());
    lim    int := coalesce($6, 10000);
    at     jsonb; -- where the batch before this one ended
    rows   jsonb := '[]';
    n      bigint := 0;
    more   record;
begin
    perform portion_check(lim, null);
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
                perform act_end($1, $2, rows, null, '["h"]');
                return query select * from act_answer($1, $2);
                return;
            end if;
        end if;
        select case when b.cursor like '[%' then b.cursor::jsonb end into at
        from audit_batch b where b.action = $1 and b.batch = $2 - 1;
        if at ->> 0 is distinct from 'q' then
            select * into more from purge_finished($3, states, upto, lim, at);
            rows := more.rows;
            n := more.n;
            at := more.at;
        end if;
        if at ->> 0 is distinct from 'h' and 'failed' = any(states) then
            select * into more from purge_failed($3, upto, (lim - n)::int, at);
            rows := rows || more.rows;
            at := more.at;
        end if;
        select coalesce(jsonb_agg(to_jsonb(z) order by z.id, z.why), '[]') into rows
        from (select r.id, r.state, r.why, sum(r.n) as n from jsonb_to_recordset(rows) r (id text, state text, why text, n bigint) group by 1, 2, 3) z;
        perform act_end($1, $2, rows, null, at::text);
    end if;
    return query select * from act_answer($1, $2);
end $$;
comment on function purge(uuid, int, text, text[], timestamptz, int, bigint, text) is 'Deletes finished jobs that ended before a time: whole days as '
    'partitions where nobody is in the way, the rest limit rows a call, as long as the answer has a cursor. failed = also those still to requeue';
