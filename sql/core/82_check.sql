-- Compares the counters with the jobs. The counters are exact as long as every change goes through the functions. They
-- miss what somebody changes in queue by hand (a DELETE, rows loaded with the triggers off). So the jobs of one queue
-- after the other are counted, in one snapshot with its counters and without a lock that others wait for. A difference
-- is appended as a delta, written to the log and to the audit. Counting may take about 0.1 % of the time: after a count
-- that took t, the next one comes after 1000 t, and after a minute at the earliest.

create table if not exists checked (
    queue   text collate "C" primary key,
    at      timestamptz not null,
    ms      real not null default 0,
    jobs    bigint not null default 0,
    repairs bigint not null default 0
);
comment on table checked is 'When the counters of each queue were last compared with its jobs. While all counters are '
    'counted anew there is a row for queue '''': queues that were compared before its time are still to be counted';
comment on column checked.ms is 'How long the last comparison took, in ms';
comment on column checked.repairs is 'How often the counters differed from the jobs';

create or replace function count_jobs(queue text, out jobs bigint, out diffs jsonb)
language plpgsql set search_path from current set enable_seqscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with sums as materialized (
        select priority, sum(ready) as ready, sum(scheduled) as scheduled, sum(retry) as retry, sum(failed) as failed,
               sum(blocked) as blocked
        from (select priority, ready, scheduled, retry, failed, blocked from counter
              where fold = (select fold from fold order by fold desc limit 1) and queue = count_jobs.queue
                and error_key is null
              union all
              select priority, ready, scheduled, retry, failed, blocked from new_delta
              where queue = count_jobs.queue and error_key is null) z
        group by 1
    ), counted as (
        select priority, v.state, v.n
        from sums, lateral (values ('ready', ready), ('scheduled', scheduled), ('retry', retry), ('failed', failed),
                                   ('blocked', blocked)) v (state, n)
    ), truth as materialized (
        select priority, 'ready' as state, count(*) as n, min(seq) as low, max(seq) as high, null::timestamptz as after
        from queue where queue = count_jobs.queue and state = 'ready' group by 1
        union all
        select priority, state::text, count(*), null, null, min(run_after)
        from queue where queue = count_jobs.queue and state <> 'ready' group by 1, 2
    ), differing as materialized (
        select priority, state, coalesce(c.n, 0)::bigint as was, coalesce(t.n, 0) as truth, t.low, t.high, t.after
        from counted c full join truth t using (priority, state) where coalesce(c.n, 0) <> coalesce(t.n, 0)
    -- the scheduler may have missed jobs that were not counted: low, high and after make it look for them
    ), repaired as (
        insert into delta (queue, priority, ready, scheduled, retry, failed, blocked, min_seq, max_seq, min_after)
        select count_jobs.queue, priority,
               sum(truth - was) filter (where state = 'ready'),
               sum(truth - was) filter (where state = 'scheduled'),
               sum(truth - was) filter (where state = 'retry'),
               sum(truth - was) filter (where state = 'failed'),
               sum(truth - was) filter (where state = 'blocked'),
               min(low) filter (where truth > was), max(high) filter (where truth > was),
               min(after) filter (where truth > was and state in ('scheduled', 'retry'))
        from differing group by priority)
    select (select coalesce(sum(n), 0) from truth),
           (select jsonb_agg(jsonb_build_object('priority', priority, 'state', state, 'was', was, 'is', truth)
                             order by priority, state) from differing)
    into count_jobs.jobs, count_jobs.diffs;
end $$;
comment on function count_jobs(text) is 'Counts the jobs of a queue by priority and state, and appends the difference '
    'to its counters. One statement and one snapshot. diffs: [{priority, state, was, is}], NULL = none';

create or replace function count_groups(queue text, out diffs jsonb)
language plpgsql set search_path from current set enable_seqscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with last_fold as materialized (
        select * from fold where keep order by fold desc limit 1
    ), counted as materialized (
        select z.error_key, sum(z.failed) as n from (
            select c.error_key, c.failed from last_fold f join counter c using (fold)
            where c.error_key is not null and c.queue = count_groups.queue
            union all
            select d.error_key, d.failed from last_fold f, delta d
            where d.error_key is not null and d.queue = count_groups.queue and d.xid >= pg_snapshot_xmax(f.snapshot)
            union all
            select d.error_key, d.failed from last_fold f, delta d
            where d.error_key is not null and d.queue = count_groups.queue and d.xid < pg_snapshot_xmax(f.snapshot)
              and d.xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid)) z
        group by 1
    ), truth as materialized (
        select q.error_key, count(*) as n from queue q
        where q.queue = count_groups.queue and q.state = 'failed' and q.error_key is not null group by 1
    ), differing as materialized ( -- the group * stands for all other errors: nobody knows which are in it
        select error_key, coalesce(c.n, 0)::bigint as was, coalesce(t.n, 0) as truth
        from counted c full join truth t using (error_key)
        where coalesce(c.n, 0) <> coalesce(t.n, 0) and not exists (select from counted where error_key = '*')
        order by abs(coalesce(c.n, 0) - coalesce(t.n, 0)) desc limit 1000
    ), repaired as (
        insert into delta (queue, priority, error_key, failed)
        select count_groups.queue, 0, error_key, truth - was from differing
    )
    select jsonb_agg(jsonb_build_object('priority', 0, 'state', 'failed', 'error', error_key, 'was', was, 'is', truth)
                     order by error_key)
    from differing into diffs;
end $$;
comment on function count_groups(text) is 'The same for the groups of errors of a queue: repairs the 1000 groups that '
    'differ most';

create or replace function difference_text(d jsonb) returns text
language sql immutable set search_path from current as $$
    select case when d->>'error' is null then 'priority ' || (d->>'priority') else 'error ' || (d->'error')::text end
$$;
comment on function difference_text(jsonb) is 'Names the counter of a difference that count_jobs() or count_groups() '
    'found';

create or replace function check_log(queue text, diffs jsonb) returns void
language plpgsql set search_path from current as $$
declare
    d jsonb;
begin
    for d in select * from jsonb_array_elements(diffs) loop
        raise log 'queuetop: schema %: queue %, %: the counter said % %, there are %: repaired', current_schema(),
            to_json(queue), difference_text(d), d->>'was', d->>'state', d->>'is';
    end loop;
end $$;
comment on function check_log(text, jsonb) is 'Writes which counters were repaired to the log';

create or replace function check_audit(queue text, diffs jsonb) returns void
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    action uuid := uuid_v7();
begin
    insert into audit (action, who, app, verb, queue, params, reason)
    values (action, 'scheduler', nullif(current_setting('application_name'), ''), 'repair counters', check_audit.queue,
            jsonb_build_object('differences', diffs),
            'the counters differed from the jobs: somebody changed table queue by hand?');
    insert into audit_batch (action, batch, changed, skipped, rows)
    select action, 1, count(*), 0, jsonb_agg(jsonb_build_object('id', null, 'state', d->'state',
        'n', (d->>'is')::bigint - (d->>'was')::bigint,
        'why', format('%s: counted %s, there are %s', difference_text(d), d->>'was', d->>'is')))
    from jsonb_array_elements(diffs) d;
end $$;
comment on function check_audit(text, jsonb) is 'Writes to the audit which counters the scheduler repaired';

create or replace function may_note() returns boolean
language sql volatile set search_path from current as
$$ select pg_try_advisory_xact_lock(slot_class(), 'checked'::regclass::oid::int) $$;
comment on function may_note() is 'Whether this transaction may add rows to checked. Only one transaction at a time '
    'may: it goes on to count, and a second one that adds the same queue would wait until that ends';

create or replace function compare_queue(queue text, out wrongs int, out diffs jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    begun  timestamptz := clock_timestamp();
    anew   timestamptz := counted_anew();
    groups jsonb;
    c      record;
begin
    perform isolation_check();
    if not exists (select from checked where checked.queue = compare_queue.queue) and may_note() then
        insert into checked (queue, at) values (compare_queue.queue, begun) on conflict do nothing;
    end if;
    -- two sessions that count one queue at the same time would repair it twice
    perform from checked where checked.queue = compare_queue.queue for update skip locked;
    if not found then
        return;
    end if;
    begin
        select * into c from count_jobs(compare_queue.queue);
        select g.diffs into groups from count_groups(compare_queue.queue) g;
        c.diffs := case when groups is null then c.diffs else coalesce(c.diffs, '[]') || groups end;
    exception when query_canceled then -- the count took too long for the caller: the other queues come first
        select null::bigint as jobs, null::jsonb as diffs into c;
    end;
    update checked
    set at = case when c.jobs is null and anew is not null then anew - interval '1 us' else clock_timestamp() end,
        ms = 1000 * extract(epoch from clock_timestamp() - begun),
        jobs = coalesce(c.jobs, jobs), repairs = repairs + (c.diffs is not null)::int
    where checked.queue = compare_queue.queue;
    if c.diffs is not null and anew is null then
        perform check_log(compare_queue.queue, c.diffs);
    end if;
    wrongs := case when c.jobs is null then -1 else coalesce(jsonb_array_length(c.diffs), 0) end;
    diffs := c.diffs;
end $$;
comment on function compare_queue(text) is 'Compares the counters of one queue with its jobs; repairs and logs the '
    'differences. wrongs: how many counts were wrong, -1 = the count was cancelled, NULL = another session counts '
    'this queue. diffs: those that were wrong';

create or replace function check_queue(queue text) returns int
language plpgsql set search_path from current as $$
declare
    anew timestamptz := counted_anew();
    c    record;
begin
    select * into c from compare_queue(check_queue.queue);
    if c.diffs is not null and anew is null then
        perform check_audit(check_queue.queue, c.diffs);
    end if;
    return c.wrongs;
end $$;
comment on function check_queue(text) is 'The same for the scheduler, which writes the differences to the audit in its '
    'own name. Returns how many counts were wrong, as compare_queue() does';

create or replace function few_jobs(queue text, most bigint) returns boolean
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set plan_cache_mode = force_generic_plan as $$
begin
    return (select count(*) from (
        (select from queue q where q.queue = few_jobs.queue and q.state = 'ready' limit most)
        union all
        (select from queue q where q.queue = few_jobs.queue and q.state <> 'ready' limit most)) z) < most;
end $$;
comment on function few_jobs(text, bigint) is 'Whether a queue has fewer jobs than that. Reads at most twice as many';

create or replace function check_unheard() returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    n int;
begin
    if not may_note() then
        return null;
    end if;
    insert into checked (queue, at)
    with recursive ready_queues (queue) as (
        (select q.queue from queue q where q.state = 'ready' order by q.queue limit 1)
        union all
        select (select q.queue from queue q where q.state = 'ready' and q.queue > r.queue order by q.queue limit 1)
        from ready_queues r where r.queue is not null
    ), other_queues (queue) as (
        (select q.queue from queue q where q.state <> 'ready' order by q.queue limit 1)
        union all
        select (select q.queue from queue q where q.state <> 'ready' and q.queue > r.queue order by q.queue limit 1)
        from other_queues r where r.queue is not null
    )
    select n.queue, '-infinity' from (select * from ready_queues union select * from other_queues) n
    where n.queue is not null and not exists (select from checked c where c.queue = n.queue)
    on conflict do nothing;
    get diagnostics n = row_count;
    return n;
end $$;
comment on function check_unheard() is 'Adds queues with jobs that are not in checked, so that they are checked first. '
    'Returns how many there were; NULL = another session does it';

create or replace function counted_anew() returns timestamptz
language sql stable set search_path from current as $$ select at from checked where queue = '' $$;
comment on function counted_anew() is 'Since when all counters are being counted anew, see recount(); NULL = they are '
    'not';

create or replace function check_names(anew timestamptz, most bigint) returns setof text
language sql stable set search_path from current as $$
    with names as (
        select queue from queue_config union select queue from checked where queue <> ''
    ), sums as (
        select queue, sum(ready + scheduled + retry + failed + blocked) as jobs from counter
        where most is not null and error_key is null and fold = (select fold from fold order by fold desc limit 1)
        group by 1
    )
    select n.queue from names n left join checked c on c.queue = n.queue left join sums s on s.queue = n.queue
    where (most is null or coalesce(greatest(c.jobs, s.jobs), 0) < most)
      and (anew is null or coalesce(c.at < anew, true))
    order by c.at nulls first, n.queue
$$;
comment on function check_names(timestamptz, bigint) is 'The queues to check, the one that was checked longest ago '
    'first. anew: only those that were not counted since that time; most: only queues with fewer jobs';

create or replace function check_time(anew timestamptz, most bigint) returns interval
language sql immutable as $$
    select case when anew is null then interval '20 ms' when most is null then interval '500 ms'
                else interval '200 ms' end
$$;
comment on function check_time(timestamptz, bigint) is 'How long one call checks queues: longer while all are counted '
    'anew, but less in a step of the scheduler';

create or replace function check_some(anew timestamptz, most bigint, out checked int, out cancelled boolean)
language plpgsql set search_path from current as $$
declare
    upto   timestamptz := clock_timestamp() + check_time(anew, most);
    name   text;
    wrongs int;
begin
    checked := 0; cancelled := false;
    for name in select * from check_names(anew, most) loop
        -- check_names() goes by the counters, which may be wrong
        continue when anew is not null and most is not null and not few_jobs(name, most);
        wrongs := check_queue(name);
        checked := checked + (wrongs is not null)::int;
        cancelled := coalesce(wrongs < 0, false) or cancelled;
        exit when clock_timestamp() > upto;
    end loop;
end $$;
comment on function check_some(timestamptz, bigint) is 'Checks queues for check_time(), at least one, however long '
    'that one takes. cancelled: a count took too long for the caller';

create or replace function check_anew(anew timestamptz, most bigint) returns int
language plpgsql set search_path from current as $$
declare
    part    record;
    unheard int;
begin
    select * into part from check_some(anew, most);
    if part.checked > 0 then
        return case when part.cancelled then 60000 else 10 end;
    -- queues with too many jobs for a step, or another session counts them
    elsif exists (select from check_names(anew, null)) then
        return 60000;
    end if;
    unheard := check_unheard();
    if unheard <> 0 or unheard is null then
        return case when unheard > 0 then 10 else 1000 end;
    end if;
    delete from checked where queue = '' and at = anew; -- at = anew: another recount() may have begun meanwhile
    raise log 'queuetop: counters of schema % were counted anew', current_schema();
    return 1000;
end $$;
comment on function check_anew(timestamptz, bigint) is 'Does a portion of what recount() has begun. Returns after how '
    'many milliseconds to call again';

create or replace function check_counts(most bigint default null) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_nestloop = off set jit = off as $$
#variable_conflict use_column
declare
    begun timestamptz := clock_timestamp();
    anew  timestamptz := counted_anew();
    dead  bigint := pg_stat_get_dead_tuples('queue'::regclass);
    due   timestamptz;
begin
    if anew is not null then
        return check_anew(anew, most);
    end if;
    select max(at + greatest(interval '1 min', ms * interval '1 s')) into due from checked;
    -- A scheduler's step gives most. It checks only if keep_books(), which runs beside the steps, has not done so for
    -- another 5 minutes, and if there are few dead rows
    if most is not null then
        due := coalesce(due, (select installed_at from meta)) + interval '5 min';
        if dead > 100000 then
            return 60000;
        end if;
    end if;
    if due > begun then
        return least(60000, 1 + 1000 * extract(epoch from due - begun));
    end if;
    -- It reads all dead entries. With very many (a snapshot is held) the caller would cancel it each time, and no
    -- counter would be checked
    if most is null and dead < 300000 then
        perform check_unheard();
    end if;
    perform check_some(null, most);
    delete from checked c
    where c.queue = any(array(
        select o.queue from checked o
        where o.at < now() - interval '1 day' and not exists (select from queue_config q where q.queue = o.queue)
        for update skip locked)); -- a session that counts a queue has locked its row
    return 60000;
end $$;
comment on function check_counts(bigint) is 'Checks the queues that were checked longest ago, for 20 ms and at least '
    'one queue. most: the call comes from the scheduler''s step, which checks only queues with fewer jobs than that, '
    'and only if nobody calls keep_books(). Returns after how many milliseconds to call again';

create or replace function shortfalls(out counting bigint, out counting_since timestamptz, out unserved bigint,
    out max_queues bigint)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    trusted boolean := only_ours();
begin
    counting_since := counted_anew();
    counting := case when counting_since is null then 0
                     else (select count(*) from check_names(counting_since, null)) end;
    max_queues := setting_int('max_queues');
    unserved := 0;
    if not exists (select from queue_config offset greatest(0, shortfalls.max_queues - 1)) then
        return; -- there is room
    end if;
    select count(*) into unserved from (
        select c.queue from counter c
        where c.fold = (select f.fold from fold f order by f.fold desc limit 1) and c.error_key is null
          and c.ready + c.scheduled + c.retry + c.failed + c.blocked > 0
          and not exists (select from queue_config q where q.queue = c.queue)
        group by c.queue) z;
end $$;
comment on function shortfalls() is 'What an operator should know about the whole installation: how many queues are '
    'still to be counted anew after a restore, and since when; how many queues have jobs that wait because there are '
    'max_queues queues already';

create or replace function lost_queues(fold bigint) returns text[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off as
$$  select array(
        select distinct c.queue from counter c
        where c.fold = lost_queues.fold and c.error_key is null
          and not exists (select from queue_config q where q.queue = c.queue)
        limit greatest(0, least(1000, setting_int('max_queues') - (select count(*) from queue_config))))
$$;
comment on function lost_queues(bigint) is 'For keep_books(): queues that this fold counts and that have no row in '
    'queue_config; at most 1000, and only as many as max_queues allows';

create or replace function find_lost(fold bigint) returns boolean
language plpgsql set search_path from current as $$
declare
    lost text;
begin
    if lost_queues(find_lost.fold) = '{}' then
        return null;
    elsif not scheduler_lock(false) then
        return false;
    end if;
    for lost in
        insert into queue_config (queue) select * from unnest(lost_queues(find_lost.fold))
        on conflict do nothing returning queue
    loop
        raise log 'queuetop: queue %: it had no row in queue_config; it has the standard settings now', to_json(lost);
        perform wake_queue(lost);
    end loop;
    return true;
end $$;
comment on function find_lost(bigint) is 'For keep_books(): gives lost_queues() the standard settings, under the '
    'scheduler''s lock, like everybody who adds queues; so the caller must end its transaction then. NULL = there are '
    'none, false = another session has the lock';

create or replace function keep_books() returns int
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    f     fold;
    named boolean;
    wait  int;
begin
    perform isolation_check();
    if moved() then -- the scheduler counts anew first
        return 1000;
    end if;
    select * into f from fold where keep order by fold desc limit 1;
    named := find_lost(f.fold);
    if named is not null then -- the lock is held: the transaction must end soon
        return case when named then 10 else 100 end;
    elsif not f.rolled then
        perform roll_minutes(f.fold);
        return 10;
    end if;
    wait := check_counts();
    return case when wait <= 10 then wait else least(10000, greatest(1000, wait)) end;
end $$;
comment on function keep_books() is 'What the active scheduler does beside its steps, on a connection of its own and '
    'without the scheduler''s lock: rolls up minutes, checks counters. If queues have lost their row in queue_config, '
    'a call gives them the standard settings and does nothing else, because it takes the scheduler''s lock for that. '
    'Returns after how many milliseconds to call again';
