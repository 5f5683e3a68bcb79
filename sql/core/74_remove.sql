-- Cancel, discard and delete jobs, by id or by filter; purge finished jobs.
-- A job in a free lease leaves the lease first. A job that runs is only asked to end.

create or replace function remove_jobs(action uuid, ids uuid[], verb text, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    done    uuid[] := finished_jobs(ids);
    held    uuid[] := lock_waiting(ids);
    running uuid[] := '{}';
    busy    uuid[] := '{}';
begin
    -- the scheduler's lock is not needed if all jobs have failed
    if exists (select from queue q where q.id = any(ids) and q.state::text = 'ready') then
        select u.runs, u.busy into running, busy from uncut_jobs(ids) u;
        held := held || lock_jobs(ids, held || busy);
    end if;
    with wanted as materialized (select distinct unnest(ids) as id), locked as materialized (
        select q.*, q.id = any(running) as runs from queue q where q.id = any(held)
    ), asked as (
        update queue q set cancel_asked = now(), last_action = action from locked l
        where q.id = any(ids) and q.id = l.id and l.runs and verb = 'cancel' and l.cancel_asked is null
        returning q.id
    ), gone as (
        delete from queue q using locked l
        where q.id = any(ids) and q.id = l.id and not l.runs and (verb <> 'cancel' or l.state <> 'failed')
        returning q.*
    ), kept as (
        insert into history (
-- part: history_columns
        ) select
-- part: history_values
        from (select g.*, null::timestamptz as began, now() as till, null as node, null::bytea as result,
                     case when g.state = 'failed' then g.state else 'cancelled' end as ends_as, g.tries as ended_tries,
                     g.error as ended_error, action as ended_action,
                     verb = 'discard' or coalesce(c.history, 'full') = 'full' as keep
              from gone g left join queue_config c on c.queue = g.queue
              where verb <> 'delete' and (verb = 'discard' or c.history is distinct from 'none')) ended
    ), counted as (
        insert into delta (queue, priority, error_key, blocked, ready, scheduled, retry, failed, cancelled)
        select queue, priority, null, -count(*) filter (where state = 'blocked'),
               -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
               -count(*) filter (where state = 'retry'), -count(*) filter (where state = 'failed'),
               count(*) filter (where verb = 'cancel')
        from gone group by 1, 2
        union all
        select queue, 0, error_key, 0, 0, 0, 0, -count(*), 0 from gone
        where state = 'failed' and error_key is not null group by 1, 3)
    select jsonb_agg(jsonb_build_object('id', w.id, 'state', b.becomes, 'why', case
               when l.id is not null then b.why
               when w.id = any(done) then 'finished'
               else coalesce((select left_alone(q.state, q.id = any(busy)) from queue q where q.id = w.id),
                             'no such job') end)),
           jsonb_agg(jsonb_build_object('id', l.id, 'seq', l.seq, 'state', l.state, 'queue', l.queue, 'kind', l.kind,
               'tries', l.tries, 'run_after', l.run_after, 'expires_at', l.expires_at, 'changed', l.changed,
               'finished', now())) filter (where g.id is not null)
    into rows, was
    from wanted w left join locked l using (id) left join gone g using (id) left join asked a using (id)
    left join lateral act_becomes(verb, l.state, l.runs, a.id is null, l.priority, null, null, null) b
        on l.id is not null;
    rows := in_order(rows, ids);
end $$;
comment on function remove_jobs(uuid, uuid[], text) is 'Cancels, discards or deletes jobs: takes them out of queue '
    'and, unless they are deleted, into history. A cancel only asks running jobs to end';

create or replace function cancel(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select only_ours(); select * from act_on(action, batch, 'cancel', ids, '{}', reason) $$;
comment on function cancel(uuid, int, uuid[], text) is 'Cancels jobs. Waiting jobs end as cancelled. Running jobs are '
    'asked to end: their workers learn it with the next extend. Failed jobs are left alone';

create or replace function discard(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select only_ours(); select * from act_on(action, batch, 'discard', ids, '{}', reason) $$;
comment on function discard(uuid, int, uuid[], text) is 'Discards jobs: failed and waiting jobs go to history as they '
    'are, with their payload, so undo brings them back. Running jobs are left alone';

create or replace function delete_jobs(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select only_ours(); select * from act_on(action, batch, 'delete', ids, '{}', reason) $$;
comment on function delete_jobs(uuid, int, uuid[], text) is 'Deletes failed and waiting jobs without a trace in '
    'history, so there is no undo. Running jobs are left alone';

create or replace function cancel_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select * from act_where(action, batch, 'cancel',
                            (queue, states, kind, error, before, coalesce("limit", 1000), after, expected), '{}',
                            reason)
$$;
comment on function cancel_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is
    'cancel() for all jobs that match; the arguments as in requeue_where';

create or replace function discard_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select * from act_where(action, batch, 'discard',
                            (queue, states, kind, error, before, coalesce("limit", 1000), after, expected), '{}',
                            reason)
$$;
comment on function discard_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is
    'discard() for all jobs that match; the arguments as in requeue_where';

create or replace function delete_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select * from act_where(action, batch, 'delete',
                            (queue, states, kind, error, before, coalesce("limit", 1000), after, expected), '{}',
                            reason)
$$;
comment on function delete_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is
    'delete_jobs() for all jobs that match; the arguments as in requeue_where';

create or replace function remove_preview(verb text, ids uuid[] default null, queue text default null,
    states text[] default null, kind text default null, error text default null, before timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select * from act_preview(verb, ids, (queue, states, kind, error, before, null, null, null))
$$;
comment on function remove_preview(text, uuid[], text, text[], text, text, timestamptz) is 'What cancel, discard or '
    'delete (verb) would do now: n jobs that would get a state (NULL: left alone). why: the reason, or the present '
    'state of the jobs';

create or replace function purge_preview(queue text default null, states text[] default null,
    before timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set jit = off as $$
    select only_ours();
    select 'purged', count(*), h.state::text from history h
    where (purge_preview.queue is null or h.queue = purge_preview.queue)
      and h.state::text = any(coalesce(states, '{completed,cancelled}')) and h.finished < coalesce(before, now())
    group by h.state
    union all
    select 'purged', count(*), 'failed, still to requeue' from queue q
    where 'failed' = any(states) and q.state = 'failed'
      and (purge_preview.queue is null or q.queue = purge_preview.queue) and q.changed < coalesce(before, now())
    having count(*) > 0
$$;
comment on function purge_preview(text, text[], timestamptz) is 'How many finished jobs purge would delete now, by '
    'state (why)';

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
    -- All days are counted before the first is dropped: from the first drop on every completion waits until we commit.
    -- The counts stay true, because new rows go to the partition of today.
    for part, day in
        select c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'history'::regclass order by 2 loop
        continue when day + 1 > (before at time zone 'UTC') or day >= (now() at time zone 'UTC')::date;
        execute format('select count(*), count(*) filter (where state::text <> all($1)) from %I', part)
        into n, keep using states;
        if keep = 0 then
            days := days || part;
            ns := ns || n;
        end if;
    end loop;
    perform set_config('lock_timeout', '50ms', true);
    for i in 1 .. cardinality(days) loop
        begin
            execute format('drop table %I', days[i]);
            if ns[i] > 0 then
                rows := rows || jsonb_build_object('id', days[i], 'state', 'purged', 'why', 'the whole day',
                                                   'n', ns[i]);
            end if;
        exception when lock_not_available then
            -- somebody reads the day: its rows are deleted one by one. No second try, because completions wait behind
            -- each
            exit;
        end;
    end loop;
    perform set_config('lock_timeout', wait, true);
    return rows;
end $$;
comment on function purge_days(text[], timestamptz) is 'Drops whole days of history until a drop would have to wait '
    'for a lock. Returns the rows of the answer';

create or replace function purge_some(part text, queue text, states text[], before timestamptz, block bigint,
    since timestamptz, "limit" int, out rows jsonb, out n bigint, out until timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    execute format($x$
        with found as materialized (
            select h.ctid as place, h.finished from %1$I h
            where h.state::text = any($2) and h.finished < $3 and %2$s limit $6
        ), deleted as (
            delete from %1$I h using found f where h.ctid = f.place returning h.queue, h.state
        ), sums as (
            select d.queue, d.state, count(*) as n from deleted d group by 1, 2
        )
        select jsonb_agg(jsonb_build_object('id', s.queue, 'state', 'purged', 'why', s.state, 'n', s.n)
                         order by s.queue, s.state),
               (select count(*) from found), (select max(f.finished) from found f)
        from sums s $x$, part,
        case when queue is not null then 'h.queue = $1 and h.finished >= $5 order by h.finished'
             when block is not null then format('h.ctid >= %L and h.ctid < %L', format('(%s,0)', block),
                                                format('(%s,0)', block + 512))
             else 'true' end)
    into rows, n, until using queue, states, before, block, since, "limit";
    rows := coalesce(rows, '[]');
end $$;
comment on function purge_some(text, text, text[], timestamptz, bigint, timestamptz, int) is 'For purge: deletes up to '
    'limit rows of one day: those of a queue from a time on, or of all queues from a block on. So no call reads the '
    'rows that earlier calls deleted. n: how many rows; until: when the last of them finished';

create or replace function purge_finished(queue text, states text[], before timestamptz, "limit" int, inout at jsonb,
    out rows jsonb, out n bigint)
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    -- only servers of this version or later can start to read at a block
    placed boolean := current_setting('server_version_num')::int >= 140000;
    looked int := 0;
    part   text;
    block  bigint;
    since  timestamptz;
    got    record;
begin
    rows := '[]'; n := 0;
    for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent = 'history'::regclass and c.relname >= coalesce(at ->> 1, '') order by 1 loop
        -- not in the query, which might evaluate it for other names
        continue when to_date(right(part, 8), 'YYYYMMDD') >= before;
        block := case when queue is not null or not placed then null
                      when part = at ->> 1 then (at ->> 2)::bigint else 0 end;
        since := case when part = at ->> 1 and queue is not null then (at ->> 2)::timestamptz else '-infinity' end;
        loop
            select * into got from purge_some(part, queue, states, before, block, since, ("limit" - n)::int);
            rows := rows || got.rows;
            n := n + got.n;
            looked := looked + 1;
            if n >= "limit" or looked >= 100 then -- a look reads 4 MB at most
                at := jsonb_build_array('h', part, coalesce(
                    to_jsonb(block + case when n < "limit" then 512 else 0 end), to_jsonb(got.until)));
                return;
            end if;
            exit when block is null or block + 512 >=
                      pg_relation_size(quote_ident(part)::regclass) / current_setting('block_size')::int;
            block := block + 512;
        end loop;
    end loop;
    at := null;
end $$;
comment on function purge_finished(text, text[], timestamptz, int, jsonb) is 'For purge: deletes up to limit rows of '
    'history, from where the batch before ended (at; NULL = from the beginning). Returns in at where it ended, NULL = '
    'nothing is left';

create or replace function purge_failed(queue text, before timestamptz, "limit" int, inout at jsonb, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids uuid[];
begin
    select array_agg(f.id), (array_agg(jsonb_build_array('q', f.queue, f.seq) order by f.queue desc, f.seq desc))[1]
    into ids, at
    from (select q.id, q.queue, q.seq from queue q
          where q.state = 'failed' and (purge_failed.queue is null or q.queue = purge_failed.queue)
            and q.changed < purge_failed.before
            and (q.queue, q.seq) > (coalesce(at ->> 1, ''), coalesce(at ->> 2, '0')::bigint)
          order by q.queue, q.seq limit purge_failed."limit" for update skip locked) f;
    with gone as (
        delete from queue q where q.id = any(ids) and q.state::text = 'failed'
        returning q.queue, q.priority, q.error_key
    ), counted as (
        insert into delta (queue, priority, error_key, failed)
        select queue, priority, null, -count(*) from gone group by 1, 2
        union all
        select queue, 0, error_key, -count(*) from gone where error_key is not null group by 1, 3)
    select coalesce(jsonb_agg(jsonb_build_object('id', s.queue, 'state', 'purged', 'why', 'failed', 'n', s.n)), '[]')
    into rows
    from (select queue, count(*) as n from gone group by 1 order by 1) s;
    if coalesce(cardinality(ids), 0) < "limit" then
        at := null;
    end if;
end $$;
comment on function purge_failed(text, timestamptz, int, jsonb) is 'For purge: deletes up to limit failed jobs, from '
    'where the batch before ended (at; NULL = from the beginning). Returns in at where it ended, NULL = nothing is '
    'left';

create or replace function purge_batch(queue text, states text[], before timestamptz, "limit" int, inout at jsonb,
    out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    n    bigint := 0;
    more record;
begin
    rows := '[]';
    if at ->> 0 is distinct from 'q' then
        select * into more from purge_finished(queue, states, before, "limit", at);
        rows := more.rows;
        n := more.n;
        at := more.at;
    end if;
    if at ->> 0 is distinct from 'h' and 'failed' = any(states) then
        select * into more from purge_failed(queue, before, ("limit" - n)::int, at);
        rows := rows || more.rows;
        at := more.at;
    end if;
    select coalesce(jsonb_agg(to_jsonb(s) order by s.id, s.why), '[]') into rows
    from (select r.id, r.state, r.why, sum(r.n) as n
          from jsonb_to_recordset(rows) r (id text, state text, why text, n bigint) group by 1, 2, 3) s;
end $$;
comment on function purge_batch(text, text[], timestamptz, int, jsonb) is 'One batch of a purge, from where the batch '
    'before ended (at; NULL = from the beginning). Returns in at where it ended, NULL = nothing is left';

create or replace function purge(action uuid, batch int, queue text, states text[], before timestamptz,
    "limit" int default 10000, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    ended text[] := coalesce(states, '{completed,cancelled}');
    upto  timestamptz := coalesce(before, now());
    lim   int := coalesce("limit", 10000);
    at    jsonb; -- where the batch before this one ended
    done  record;
    days  jsonb := '[]';
begin
    perform portion_check(lim, null);
    if not ended <@ '{completed,cancelled,failed}' then
        raise 'only completed, cancelled and failed jobs can be purged' using errcode = 'QT007';
    end if;
    if act_begin(action, batch, 'purge', queue, null, jsonb_build_object('states', ended, 'before', upto), reason,
                 expected) then
        if batch = 1 and expected is not null then
            perform check_expected(expected, (select coalesce(sum(p.n), 0)::bigint
                                              from purge_preview(queue, ended, upto) p));
        end if;
        if queue is null and batch = 1 then
            days := purge_days(ended, upto);
        end if;
        if days <> '[]' then -- the lock on history should be short: the next batch does the rest
            perform act_end(action, batch, days, null, '["h"]');
        else
            select case when b.cursor like '[%' then b.cursor::jsonb end into at
            from audit_batch b where b.action = purge.action and b.batch = purge.batch - 1;
            select * into done from purge_batch(queue, ended, upto, lim, at);
            perform act_end(action, batch, done.rows, null, done.at::text);
        end if;
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function purge(uuid, int, text, text[], timestamptz, int, bigint, text) is 'Deletes jobs that finished '
    'before a time. Whole days of history are dropped as partitions if no lock prevents it; of the rest each call '
    'deletes up to limit rows: call again as long as the answer has a cursor. states with failed: also failed jobs, '
    'which could still be requeued. Raises QT007 for other states';
