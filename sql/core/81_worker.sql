-- What worker and scheduler processes ask beside their jobs: is there anything left (work --drain), give back what a
-- lost answer left with me, let another scheduler go on.

create or replace function backlog(queues text[] default null) returns table (ready bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select coalesce(sum(o.ready), 0)::bigint from overview() o left join queue_config q on q.queue = o.queue
    where (queues is null or o.queue = any(queues)) and q.paused_at is null
$$;
comment on function backlog(text[]) is 'How many jobs of these queues (NULL: all) are ready and not running, exactly; paused queues aside';

create or replace function keep_only(node text, session uuid, leases bigint[]) returns int
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    mine bigint[];
    n    int;
begin
    select array_agg(lease) into mine from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key = $1)) and w.lock_key = $1 and w.lease <> all($3)
          and exists (select from node x where x.lock_key = $1 and x.session = $2)
        order by w.lease for update of w) z;
    if mine is null then
        return 0;
    end if;
    perform scheduler_lock(true);
    select count(*) into n from take_back(mine, false, false, null);
    return n;
end $$;
comment on function keep_only(text, uuid, bigint[]) is 'A worker knows these leases only (a claim''s answer was lost): the others of its '
    'node go back in line, without counting as a try. Says how many jobs';

create or replace function scheduler_stop(holder text) returns boolean
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    last scheduler;
begin
    perform scheduler_lock(true);
    select * into last from scheduler order by term desc limit 1;
    if last.holder <> $1 or last.until <= clock_timestamp() then
        return false;
    end if;
    insert into scheduler (holder, until) values ($1, clock_timestamp());
    delete from scheduler where term = last.term and term > 0;
    return true;
end $$;
comment on function scheduler_stop(text) is 'The active scheduler ends: the next that asks takes over at once';
