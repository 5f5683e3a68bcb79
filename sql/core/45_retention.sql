-- Retention: when the retention of their queue has passed, finished jobs are deleted from history, and their attempts
-- with them. After the longest retention of all queues, a whole day is dropped as a partition. Queues that keep jobs
-- for a shorter time are trimmed in batches. schedule() calls retain() once a minute, and at each step while more is
-- to do.

create or replace function drop_days() returns boolean
language plpgsql set search_path from current set timezone = 'UTC' set lock_timeout = '50ms' as $$
declare
    last_day date := (now() - (select coalesce(max(retention), interval '7 days') from queue_config))::date;
    part     text;
    waits    boolean := false;
begin
    for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent in ('history'::regclass, 'attempt'::regclass)
                  and case when c.relname ~ '_[0-9]{8}$' -- a plan may look at all relations
                           then to_date(right(c.relname, 8), 'YYYYMMDD') < last_day end
                           order by right(c.relname, 8) loop
        begin
            execute format('drop table %I', part);
        exception when lock_not_available then
            exit when waits; -- a dump reads them all; completions wait behind each try, so there are no more
            waits := true; -- somebody reads this one
        end;
    end loop;
    return waits;
end $$;
comment on function drop_days() is 'Drops the days of history and attempt that every queue''s retention has left '
    'behind, where that waits for nobody longer than 50 ms; true = a day is in use and has to be tried again';

create or replace function trim_history("limit" int) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    n int;
begin
    with outdated as materialized (
        select h.part, h.place
        from (select queue, retention from queue_config where retention < (select max(retention) from queue_config)) c
        cross join lateral (select f.tableoid as part, f.ctid as place from history f
                            where f.queue = c.queue and f.finished < now() - c.retention order by f.finished
                            limit trim_history.limit) h
        limit trim_history.limit)
    delete from history h using outdated v where h.tableoid = v.part and h.ctid = v.place;
    get diagnostics n = row_count;
    return n;
end $$;
comment on function trim_history(int) is 'Deletes up to so many finished jobs of queues that keep less than the '
    'longest retention';

create or replace function retain() returns interval
language plpgsql set search_path from current as $$
declare
    waits boolean := drop_days();
begin
    return case when trim_history(2000) = 2000 then interval '0' when waits then interval '5 s'
                else interval '1 min' end;
end $$;
comment on function retain() is 'Lets go of what no queue wants to keep any more; when to come back';
