-- Repairs of what the engine keeps beside the jobs: counters, cursors, partitions. `queuetop doctor --fix` calls them.
-- None of them changes a job.

create or replace function stranded(queue text) returns bigint
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    return (
        with leased as materialized (
            select unnest(l.seqs) as seq from live l where l.queue = stranded.queue
        ), behind as materialized (
            select j.seq from newest_cursor(stranded.queue) c
            cross join lateral priorities_of(c.seq) p
            cross join lateral (
                select q.seq from queue q
                where q.queue = stranded.queue and q.priority = p.priority and q.state = 'ready' and q.seq <= p.at
                order by q.seq limit 1000) j
        )
        select count(*) from behind b where not exists (select from leased l where l.seq = b.seq));
end $$;
comment on function stranded(text) is 'How many ready jobs of a queue are behind its cursor and in no lease, among the '
    'first 1000 of each priority. Call it under the scheduler''s lock: otherwise a step may just be making their '
    'leases';

create or replace function repair_orphans(queue text) returns jsonb
language plpgsql set search_path from current as $$
declare
    n bigint;
begin
    perform act_lock();
    n := stranded(repair_orphans.queue);
    if n = 0 then
        return jsonb_build_object('id', repair_orphans.queue, 'why', 'no job stands behind the cursor');
    end if;
    perform settle_names(array[repair_orphans.queue]);
    perform wake_queue(repair_orphans.queue);
    return jsonb_build_object('id', repair_orphans.queue, 'state', 'repaired',
                              'why', format('%s job%s will be handed out', n, case when n <> 1 then 's' end));
end $$;
comment on function repair_orphans(text) is 'For repair(): lowers the cursor of a queue to before its first ready job, '
    'as a scheduler does that takes over, and wakes the scheduler';

create or replace function repair_counters(queue text) returns jsonb
language plpgsql set search_path from current as $$
declare
    c record;
begin
    select * into c from compare_queue(repair_counters.queue);
    if c.wrongs > 0 then
        if counted_anew() is not null then -- otherwise compare_queue() has written them
            perform check_log(repair_counters.queue, c.diffs);
        end if;
        return jsonb_build_object('id', queue, 'state', 'repaired', 'why', (
            select format('%s count%s wrong: ', c.wrongs, case when c.wrongs = 1 then ' was' else 's were' end)
                || string_agg(format('%s: counted %s %s, there are %s', left(difference_text(d.diff), 200),
                                     d.diff->>'was', d.diff->>'state', d.diff->>'is'), '; ' order by d.n)
                || case when c.wrongs > 5 then format('; and %s more: see the server''s log', c.wrongs - 5) else '' end
            from jsonb_array_elements(c.diffs) with ordinality d (diff, n) where d.n <= 5));
    end if;
    return jsonb_build_object('id', queue, 'why',
        case c.wrongs when 0 then 'its counters are right'
                      when -1 then 'counting takes too long here: the scheduler does it'
                      else 'another session counts it now' end);
end $$;
comment on function repair_counters(text) is 'For repair(): counts the jobs of a queue anew. The answer names the '
    'first differences, so the act''s own row of the audit has them';

create or replace function repair_days() returns jsonb
language plpgsql set search_path from current as $$
begin
    perform act_lock();
    perform add_days();
    return coalesce(
        (select jsonb_agg(jsonb_build_object('id', c.relname, 'state', 'repaired') order by c.relname)
         from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent in ('history'::regclass, 'attempt'::regclass)
           and c.xmin = pg_current_xact_id()::xid), -- made by this transaction, here or in have_day()
        jsonb_build_object('id', 'partitions', 'why', 'those of a week are there'));
end $$;
comment on function repair_days() is 'For repair(): makes the partitions of today and a week ahead that are missing';

create or replace function repair(action uuid, part text, queue text default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    slip text;
    rows jsonb;
begin
    if part in ('counters', 'orphans', 'partitions') is not true or (part = 'partitions') <> (queue is null) then
        raise 'repair needs a part: counters or orphans of a queue, or partitions' using errcode = 'QT007';
    end if;
    if act_begin(action, 1, 'repair', queue, null, jsonb_build_object('part', part), reason, null) then
        slip := case when queue is not null then unseen(queue, null) end;
        if slip is not null then
            rows := jsonb_build_object('id', queue, 'why', slip);
        else
            rows := case part when 'counters' then repair_counters(queue) when 'orphans' then repair_orphans(queue)
                              else repair_days() end;
        end if;
        perform act_end(action, 1, case jsonb_typeof(rows) when 'array' then rows else jsonb_build_array(rows) end);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function repair(uuid, text, text, text) is 'Puts the queue''s own books right. part: counters of a queue '
    '(they are counted anew), orphans of a queue (ready jobs that no scheduler looks for any more are handed out), '
    'partitions (those of a week ahead). What is right already is left alone, and the answer says so';
