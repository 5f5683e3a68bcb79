-- Retention: finished jobs are deleted from history when the retention of their queue has passed, and their attempts
-- with them. After the longest retention of all queues, a whole day is dropped as a partition. Queues with a shorter
-- retention are trimmed in batches, 500 queues a second. schedule() calls retain() once a minute, once a second until
-- all queues have been looked at, and at each step while there is more to delete. After 25 hours without a step it
-- first waits for an hour, because the clock may be wrong (step_days).

-- each call asks for the shortest and the longest
create index if not exists queue_config_retention on queue_config (retention);

create or replace function drop_days() returns boolean
language plpgsql set search_path from current set timezone = 'UTC' set lock_timeout = '50ms' as $$
declare
    last_day date := (now() - (select coalesce(max(retention), interval '7 days') from queue_config))::date;
    part     text;
    waits    boolean := false;
begin
    for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent in ('history'::regclass, 'attempt'::regclass)
                  and case when c.relname ~ '_[0-9]{8}$' -- CASE, because a plan may look at all relations
                           then to_date(right(c.relname, 8), 'YYYYMMDD') < last_day end
                           order by right(c.relname, 8) loop
        begin
            execute format('drop table %I', part);
            raise log 'queuetop: % of schema % was dropped: no queue keeps jobs for so long', part, current_schema();
        exception when lock_not_available then
            exit when waits; -- one wait only: completions wait behind it, and a pg_dump reads all days
            waits := true; -- somebody reads this day
        end;
    end loop;
    return waits;
end $$;
comment on function drop_days() is 'Drops the days of history and attempt that are older than the retention of every '
    'queue, unless the drop would wait for somebody longer than 50 ms. true = a day is in use: try again later';

-- By partition: a DELETE on history itself would look for each row in each partition.
create or replace function delete_finished(parts oid[], places tid[]) returns int
language plpgsql set search_path from current set enable_seqscan = off as $$
declare
    part  regclass;
    those tid[];
    gone  int;
    n     int := 0;
begin
    for part, those in
        select p.part, array_agg(p.place) from unnest(parts, places) p (part, place) group by p.part loop
        execute format('delete from %s where ctid = any($1)', part) using those;
        get diagnostics gone = row_count;
        n := n + gone;
    end loop;
    return n;
end $$;
comment on function delete_finished(oid[], tid[]) is 'Deletes rows of history by their places. The caller has found '
    'them in the same statement, so no place has got another row. Returns how many there still were';

create or replace function trim_history(inout place text, looks int, most int, out n int)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    names text[];
begin
    names := array(select c.queue from queue_config c where c.queue > place order by c.queue limit looks);
    with outdated as materialized (
        select h.part, h.place
        from (select queue, retention from queue_config
              where queue = any(names) and retention < (select max(retention) from queue_config)) c
        cross join lateral (select f.tableoid as part, f.ctid as place from history f
                            where f.queue = c.queue and f.finished < now() - c.retention order by f.finished
                            limit most for update skip locked) h -- a purge may have locked them
        limit most)
    select delete_finished(array_agg(v.part), array_agg(v.place)) into n from outdated v;
    if n < most then -- otherwise the same names again
        place := case when cardinality(names) = looks then names[looks] else '' end;
    end if;
end $$;
comment on function trim_history(text, int, int) is 'Deletes up to most finished jobs of the next queues in the order '
    'of names, if they keep jobs for less than the longest retention. place: the last name looked at, empty = there '
    'are no more';

create or replace function retain(inout place text, out pause interval)
language plpgsql set search_path from current as $$
declare
    most  constant int := 2000;
    waits boolean := drop_days();
    trimmed int := 0;
begin
    if (select min(retention) < max(retention) from queue_config) then
        select h.place, h.n into place, trimmed from trim_history(place, 500, most) h;
    end if;
    pause := case when trimmed = most then interval '0' when place <> '' then interval '1 s'
                  when waits then interval '5 s' else interval '1 min' end;
end $$;
comment on function retain(text) is 'Deletes finished jobs that no queue keeps any longer, 500 queues a call in the '
    'order of names. place: the last name looked at; pause: when to call again';
