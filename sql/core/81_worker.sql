-- What worker and scheduler processes ask beside their jobs: whether there is anything left (work --drain), to give
-- back leases of a claim whose answer was lost, and to let another scheduler take over.

create or replace function has_waiting(queue text) returns boolean
language plpgsql stable set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    place record;
    seen  tick;
begin
    select * into place from newest_cursor(has_waiting.queue);
    select * into seen from tick t order by t.tick desc limit 1;
    -- || '' and + 0: by work_queue_queue. By the primary key it would read the leases of all queues from place.low on,
    -- which is 0 for a queue without a cursor: then all dead rows, too
    return exists (select from work_queue w -- in a free lease
                   cross join lateral ranges(w.seqs, w.scattered) r
                   cross join lateral (
                       select from queue j
                       where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
                         and j.seq between r.low and r.high and w.seqs[width_bucket(j.seq, w.seqs)] = j.seq limit 1) j
                   where w.queue || '' = has_waiting.queue and w.lease + 0 >= coalesce(place.low, 0)
                     and w.lock_key is null)
        or exists (select from generate_series(0, 9) p -- not cut yet
                   cross join lateral (
                       select from queue j
                       where j.queue = has_waiting.queue and j.priority = p::smallint and j.state = 'ready'
                         and j.seq > coalesce(place.seq[p + 1], 0) limit 1) j)
        or exists (select from deltas_since(seen.snapshot, seen.xid) d -- committed after the last step
                   where d.queue = has_waiting.queue and (d.ready > 0 or d.min_seq is not null));
end $$;
comment on function has_waiting(text) is 'Whether a queue has a job that is ready and not running. Reads the tables, '
    'not the counters';

create or replace function backlog(queues text[] default null) returns table (ready bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    with counted as materialized (
        select o.queue, o.ready from overview() o left join queue_config q on q.queue = o.queue
        where (queues is null or o.queue = any(queues)) and q.paused_at is null and q.max_running is distinct from 0
          and o.ready > 0
    )
    select case when exists (select from counted c where has_waiting(c.queue)) then (select sum(c.ready) from counted c)
                else 0 end::bigint
$$;
comment on function backlog(text[]) is 'How many jobs of these queues (NULL: all) are ready and not running, by the '
    'counters; 0 if the tables hold none. Queues from which nothing can be claimed (paused, limit 0) do not count';

create or replace function keep_only(node text, session uuid, leases bigint[]) returns int
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    mine bigint[];
    n    int;
begin
    perform arrays_check('{leases}', array[array_size(leases)], array[first_null(leases)]);
    select array_agg(lease) into mine from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key = keep_only.node))
          and w.lock_key = keep_only.node and w.lease <> all(keep_only.leases)
          and exists (select from node x where x.lock_key = keep_only.node and x.session = keep_only.session)
        order by w.lease + 0 for update of w) z; -- + 0: by the list, as 10_tables says
    if mine is null then
        return 0;
    end if;
    perform scheduler_lock(true);
    select count(*) into n from take_back(mine, false, false, null);
    return n;
end $$;
comment on function keep_only(text, uuid, bigint[]) is 'For a worker that lost the answer of a claim: gives back all '
    'leases of its node except these. Their jobs become ready again, and no try is counted. Returns how many jobs';

create or replace function scheduler_stop(holder text) returns boolean
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    last scheduler;
begin
    perform scheduler_lock(true);
    select * into last from scheduler order by term desc limit 1;
    if last.holder is distinct from holder or last.until <= clock_timestamp() then
        return false;
    end if;
    insert into scheduler (holder, until) values (holder, clock_timestamp());
    delete from scheduler where term = last.term and term > 0;
    perform leave_slots();
    return true;
end $$;
comment on function scheduler_stop(text) is 'Ends the active scheduler''s turn, so that another scheduler may take '
    'over at once';

create or replace function as_text(bytes bytea) returns text
language plpgsql immutable strict set search_path from current as $$
begin
    return convert_from(bytes, 'UTF8');
exception when character_not_in_repertoire or untranslatable_character then
    return null;
end $$;
comment on function as_text(bytea) is 'Bytes of UTF-8 as text; NULL if they are no text';

create or replace function job_outcome(id uuid, out state text, out queue text, out tries int, out result bytea,
    out result_text text, out error text, out created timestamptz, out run_after timestamptz,
    out started timestamptz, out finished timestamptz, out history text)
returns setof record
language plpgsql stable security definer rows 1 set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_bitmapscan = on set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    its_seq      bigint;
    its_priority smallint;
begin
    select q.state::text, q.queue, q.tries, q.error, q.created, q.run_after, q.seq, q.priority,
           case when q.state = 'failed' then q.changed end
    into state, queue, tries, error, created, run_after, its_seq, its_priority, finished
    from queue q where q.id = job_outcome.id;
    if found then
        if state = 'ready' then
            select 'running', w.started into state, started from living() w
            where w.queue = job_outcome.queue and w.priority = its_priority and w.seqs @> array[its_seq];
            state := coalesce(state, 'ready');
        end if;
    else
        select h.state::text, h.queue, h.tries, h.result, h.error, h.created, h.run_after, h.started, h.finished
        into state, queue, tries, result, error, created, run_after, started, finished
        from history_of(array[job_outcome.id]) h order by h.finished desc limit 1;
        if not found then
            return;
        end if;
    end if;
    result_text := as_text(result);
    history := coalesce((select c.history from queue_config c where c.queue = job_outcome.queue), 'full');
    return next;
end $$;
comment on function job_outcome(uuid) is 'What has become of a job, for whoever pushed it: its state (scheduled, '
    'ready, retry, running, blocked, failed, completed, cancelled), tries, result, error and times. result_text: the '
    'result as text, NULL if it is no text. history: what its queue keeps of finished jobs (none, meta, full). No row: '
    'there is no such job, it was deleted, or it ended in a queue that keeps nothing';
