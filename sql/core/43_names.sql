-- Which queues a step looks at. There may be a hundred thousand queues, and the cost of a step must follow what has
-- changed and not the number of queues. So a step looks at the queues in which something has changed and at those that
-- wait (tick.waiting, 500 at most). If more wait, the steps go through all names in turn, some names a step. What does
-- not fit into one step is kept for the next.

create or replace function pass_all(inout new tick, queues text[])
language plpgsql set search_path from current as $$
begin
    if new.place is null then
        new.place := '';
        new.again := false;
        new.waiting := '{}';
    else
        new.again := new.again or exists (select from unnest(queues) q where q collate "C" <= new.place);
    end if;
    new.more := true;
end $$;
comment on function pass_all(tick, text[]) is 'For schedule(): more queues wait (queues) than tick.waiting can list, '
    'so the next cuts go through all names, some a step. If they are under way and have passed one of these names, '
    'they go through all names again';

create or replace function make_known(queues text[], priorities int[], seqs bigint[], room bigint, out made int,
    out known text[])
language plpgsql set search_path from current as $$
begin
    insert into queue_config (queue)
    select v.queue from unnest(queues, seqs) v (queue, seq)
    where not exists (select from queue_config c where c.queue = v.queue)
    group by v.queue order by min(v.seq) limit greatest(0, room)
    on conflict do nothing;
    get diagnostics made = row_count;
    perform move_cursor(array_agg(v.queue), array_agg(v.priority), array_agg(v.seq), null)
    from unnest(queues, priorities, seqs) v (queue, priority, seq) join queue_config c on c.queue = v.queue
    having count(*) > 0;
    known := array(select distinct c.queue from unnest(queues) v join queue_config c on c.queue = v);
end $$;
comment on function make_known(text[], int[], bigint[], bigint) is 'Makes new queues and priorities known: adds their '
    'rows in queue_config and their cursors, which start before the first job seen. Names for which there is no room '
    'stay unknown, and their jobs wait';

-- A flood: more deltas than a step should read, for example after an hour without a step, or of a hundred thousand new
-- names. The step does not read these deltas; it assumes that everything has changed. Each known queue is looked at
-- from its first job on (settle), unknown names are searched for in the order of names, and promotion starts at the
-- first waiting job. All of that is done in portions. Row (name, -1) of newcomer says up to which name the search has
-- come.
create or replace function most_deltas() returns int
language sql immutable as $$ select 20000 $$;
comment on function most_deltas() is 'How many deltas a step reads at most';

create or replace function read_news(t tick, out snapshot pg_snapshot, out n bigint, out woken text[],
    out lowest timestamptz, out new_queues text[], out new_priorities int[], out new_seqs bigint[],
    out late_queues text[], out late_priorities int[], out late_from bigint[], out late_to bigint[], out flood boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    -- deltas_since() as in read_deltas(): deltas of transactions that were open at the last step count, too
    if exists (select from deltas_since(t.snapshot, t.xid) d where d.error_key is null offset most_deltas()) then
        snapshot := pg_current_snapshot(); -- the next step reads the deltas that come after this snapshot
        n := most_deltas();
        lowest := '-infinity';
        flood := true;
    else
        select *, false from read_deltas(t) into snapshot, n, woken, lowest, new_queues, new_priorities, new_seqs,
            late_queues, late_priorities, late_from, late_to, flood;
    end if;
end $$;
comment on function read_news(tick) is 'read_deltas(), or flood = true if there are more deltas than one step reads';

create or replace function name_between(after text, before text) returns text
language plpgsql stable as $$
begin
    if before is null then
        return least((select q.queue from queue q where q.state = 'ready' and q.queue > after
                      order by q.queue limit 1),
                     (select q.queue from queue q where q.state <> 'ready' and q.queue > after
                      order by q.queue limit 1));
    end if;
    return least((select q.queue from queue q where q.state = 'ready' and q.queue > after and q.queue < before
                  order by q.queue limit 1),
                 (select q.queue from queue q where q.state <> 'ready' and q.queue > after and q.queue < before
                  order by q.queue limit 1));
end $$;
comment on function name_between(text, text) is 'The first name in queue between these two, or NULL; before: NULL = up '
    'to the last name. The rows of the two names are not read, dead ones neither. No SET: next_names() has them, and '
    'calls it for each name';

create or replace function next_names(after text, looks int, out queues text[], out priorities int[], out seqs bigint[],
    out upto text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with recursive names (queue, i, is_new) as (
        select next_names.after collate "C", 0, false
        union all
        select coalesce(b.queue, k.queue), names.i + 1, b.queue is not null
        from names left join lateral (select c.queue from queue_config c where c.queue > names.queue
                                      order by c.queue limit 1) k on true
        cross join lateral (select name_between(names.queue, k.queue) as queue) b
        where names.queue is not null and names.i < next_names.looks
    ), unknown as materialized (
        select n.queue from names n where n.is_new
    ), lanes as (
        select u.queue, l.priority, j.seq
        from unknown u cross join generate_series(0, 9) l (priority)
        cross join lateral (select q.seq - 1 as seq from queue q where q.queue = u.queue and q.state = 'ready'
                            and q.priority = l.priority::smallint order by q.seq limit 1) j
        union all
        select u.queue, j.priority, 0 from unknown u
        cross join lateral (select q.priority from queue q where q.queue = u.queue and q.state <> 'ready' limit 1) j
    )
    select array_agg(l.queue), array_agg(l.priority), array_agg(l.seq),
           (select n.queue from names n where n.i = next_names.looks)
    into queues, priorities, seqs, upto from lanes l;
end $$;
comment on function next_names(text, int) is 'Looks at the next names of queues, in the order of names, from after on, '
    'looks of them at most. Returns those with jobs that have no row in queue_config, their priorities, and the number '
    'before the first job of each. It looks between the known names: behind an open snapshot these have more dead rows '
    'than a step can read. upto: the last name looked at, NULL = there are no more';

create or replace function step_flood(inout new tick)
language plpgsql set search_path from current as $$
begin
    new.settled := '';
    new.joining := true;
    new.more := true;
    insert into newcomer (queue, priority, seq) values ('', -1, 0);
end $$;
comment on function step_flood(tick) is 'For schedule(): after a flood, everything counts as changed';

create or replace function take_newcomers(inout new tick, most int, out queues text[], out priorities int[],
    out seqs bigint[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    next record;
    more record;
begin
    select array_agg(z.queue) filter (where z.priority >= 0) as q,
           array_agg(z.priority::int) filter (where z.priority >= 0) as p,
           array_agg(z.seq) filter (where z.priority >= 0) as s,
           min(z.queue) filter (where z.priority < 0) as search, max(z.n) as n
    into next
    from (select * from newcomer where n > new.known and new.joining order by n limit greatest(0, most)) z;
    queues := next.q; priorities := next.p; seqs := next.s;
    new.known := coalesce(next.n, new.known);
    if next.search is not null then
        select * into more from next_names(next.search, most);
        queues := queues || more.queues; priorities := priorities || more.priorities; seqs := seqs || more.seqs;
        if more.upto is not null then
            insert into newcomer (queue, priority, seq) values (more.upto, -1, 0);
        end if;
    end if;
    new.joining := new.joining and exists (select from newcomer where n > new.known);
end $$;
comment on function take_newcomers(tick, int) is 'For register(): the next of the names in newcomer, and of the names '
    'that a search finds';

create or replace function register(inout new tick, queues text[], priorities int[], seqs bigint[], out known text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    most constant int := 500;
    next record;
    done record;
begin
    if queues is null and not new.joining then
        return;
    end if;
    if cardinality(queues) > most then
        insert into newcomer (queue, priority, seq)
        select v.queue, v.priority, v.seq
        from unnest(queues[most + 1:], priorities[most + 1:], seqs[most + 1:]) v (queue, priority, seq);
        new.joining := true;
    end if;
    select * into next from take_newcomers(new, most - coalesce(cardinality(queues), 0));
    new := next.new;
    new.names := coalesce(new.names, (select count(*) from queue_config));
    select * into done from make_known(queues[:most] || next.queues, priorities[:most] || next.priorities,
                                       seqs[:most] || next.seqs, setting_int('max_queues') - new.names);
    new.names := new.names + done.made;
    -- so many new queues at once wait for their turn: other queues should not wait behind them
    if cardinality(done.known) > 50 then
        new := pass_all(new, done.known);
    else
        known := nullif(done.known, '{}');
    end if;
    new.more := new.more or new.joining;
end $$;
comment on function register(tick, text[], int[], bigint[]) is 'For schedule(): makes new queues and priorities known, '
    '500 a step; the ones given come before those in newcomer. known: those of them that are to be cut now';

create or replace function next_waiting(after text, looks int, most int, patrol boolean default false,
    out queues text[], out upto text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    names text[] := array(select c.queue from queue_config c where c.queue > after order by c.queue limit looks);
begin
    queues := array(
        select c.queue
        from unnest(names) n (queue) join queue_config c on c.queue = n.queue
        cross join lateral (select r.seq from cursor r where r.queue = c.queue order by r.n desc limit 1) r
        where c.paused_at is null and (patrol or c.max_running is null and c.rate is null)
          and exists (select from generate_subscripts(r.seq, 1) i cross join lateral (
                          select from queue j where j.queue = c.queue and j.priority = (i - 1)::smallint
                          and j.state = 'ready' and j.seq > r.seq[i] limit 1) j)
        order by c.queue limit most);
    upto := case when cardinality(queues) = most then queues[most]
                 when cardinality(names) = looks then names[looks] end;
end $$;
comment on function next_waiting(text, int, int, boolean) is 'Looks at the next queues in the order of names, from '
    'after on, looks of them at most, and returns those with uncut jobs, most of them at most. Queues with limits are '
    'returned only on patrol. upto: the last name looked at, NULL = there are no more';

create or replace function step_queues(inout new tick, woken text[], whole boolean, out queues text[])
language plpgsql set search_path from current as $$
declare
    most constant int := 500;
    part record;
begin
    queues := array(select distinct q from unnest(woken) q where q is not null);
    if cardinality(queues) > most then
        new := pass_all(new, queues);
        queues := '{}';
    end if;
    if whole and new.place is null then
        queues := array(select unnest(queues) union select unnest(new.waiting));
    elsif whole then
        select * into part from next_waiting(new.place, 1000, greatest(50, least(most, new.want)));
        queues := array(select unnest(queues) union select unnest(part.queues));
        new.place := part.upto;
        if new.place is null and new.again then
            new.place := '';
            new.waiting := '{}';
            new.again := false;
        end if;
    end if;
end $$;
comment on function step_queues(tick, text[], boolean) is 'For schedule(): the queues that a cut looks at: those in '
    'which something has changed (woken) and, if all are to be cut (whole), those that wait or the next of all names';

create or replace function settle_names(names text[]) returns text[]
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    busy text[];
begin
    with begun as materialized ( -- queues with a ready job; a running job counts as ready
        select n.queue, c.seq, f.priority as first, l.priority as last
        from unnest(names) n (queue)
        cross join lateral (select j.priority from queue j where j.queue = n.queue and j.state = 'ready'
                            order by j.priority, j.seq limit 1) f
        cross join lateral (select j.priority from queue j where j.queue = n.queue and j.state = 'ready'
                            order by j.priority desc, j.seq desc limit 1) l
        left join lateral (select c.seq from cursor c where c.queue = n.queue order by c.n desc limit 1) c on true
    ), lane as materialized (
        select b.queue, i - 1 as priority, j.seq - 1 as seq, b.seq[i] as at, case when b.seq[i] is null then (
                   select max(w.seqs[cardinality(w.seqs)]) from work_queue w
                   -- leases of a priority without a cursor. || '': by work_queue_queue, the leases of this queue; the
                   -- plain column is in no index, so the plan would read the leases of all queues, and dead rows
                   where w.queue || '' = b.queue and w.priority = i - 1) end as high
        from begun b cross join lateral generate_series(b.first + 1, b.last + 1) i
        cross join lateral (select j.seq from queue j where j.queue = b.queue and j.priority = (i - 1)::smallint
                            and j.state = 'ready' order by j.seq limit 1) j
    ), lower as (
        select move_cursor(array_agg(l.queue), array_agg(l.priority), array_agg(l.seq), array_agg(l.high)) from lane l
        where l.at is null or l.seq < l.at having count(*) > 0
    )
    select array(select b.queue from begun b) from (select count(*) from lower) z into busy;
    return busy;
end $$;
comment on function settle_names(text[]) is 'For settle(): looks at these queues and returns those with ready jobs';

create or replace function settle_until(inout after text, most int, until timestamptz, out busy text[])
language plpgsql set search_path from current as $$
declare
    part  int := 1;
    names text[];
begin
    busy := '{}';
    loop
        names := array(select c.queue from queue_config c where c.queue > after order by c.queue limit part);
        busy := busy || settle_names(names);
        most := most - part;
        if cardinality(names) < part then
            after := null;
            return;
        end if;
        after := names[part];
        exit when most <= 0 or clock_timestamp() > until;
        part := least(2 * part, most);
    end loop;
end $$;
comment on function settle_until(text, int, timestamptz) is 'For settle(): looks at one queue, then at twice as many '
    'at a time, until that time';

create or replace function settle(inout after text, most int, out busy text[])
language plpgsql set search_path from current as $$
begin
    -- The time is bounded, because a look can be slow: while an old snapshot is open, the dead rows of all finished
    -- jobs lie before the first job of a queue. A step that looked at all queues would be cancelled on a busy server,
    -- and the next step would start at the first queue again.
    select s.after, s.busy into settle.after, settle.busy
    from settle_until(settle.after, most, clock_timestamp() + interval '50 ms') s;
end $$;
comment on function settle(text, int) is 'What a scheduler does after it has taken over: looks at every queue from its '
    'first job on, most queues a step at most and for about 50 ms. busy: those with ready jobs; after: the last name '
    'looked at, NULL = all are done';
