-- Which queues a step looks at, if there may be a hundred thousand of them. A step looks at those in which something
-- has come up and at those that wait (tick.waiting, 500 at most). If more wait, it passes all names, some a step. So
-- a step costs what it does, and not how many queues there are. What does not fit in a step is put off, and kept.

create or replace function pass_all(inout new tick)
language plpgsql set search_path from current as $$
begin
    if new.place is null then
        new.place := '';
        new.again := false;
        new.waiting := '{}';
    else
        new.again := true;
    end if;
    new.more := true;
end $$;
comment on function pass_all(tick) is 'For schedule(): too many queues wait to be listed, so the next cuts pass all '
    'names, some a step';

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
comment on function make_known(text[], int[], bigint[], bigint) is 'New queues and priorities: their rows and cursors, '
    'which start before the first job seen. Names beyond room stay unknown, and their jobs wait';

-- A flood: more deltas than a step should read, of a hundred thousand new names, or of an hour without a step. They are
-- not read at all. The step says instead that everything may have changed: each known queue is looked at from its first
-- job on (settle), names that nobody knows are looked for in the order of names, and what is due from the first on. All
-- of that goes in portions. Row (name, -1) of newcomer says up to which name the search has come.
create or replace function most_deltas() returns int
language sql immutable as $$ select 20000 $$;
comment on function most_deltas() is 'How many deltas a step reads';

create or replace function read_news(t tick, out snapshot pg_snapshot, out n bigint, out woken text[],
    out lowest timestamptz, out new_queues text[], out new_priorities int[], out new_seqs bigint[],
    out late_queues text[], out late_priorities int[], out late_from bigint[], out late_to bigint[], out flood boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    if exists (select from delta d where d.xid >= pg_snapshot_xmax(t.snapshot) and d.error_key is null
               offset most_deltas()) then
        snapshot := pg_current_snapshot(); -- what comes after it is read by the next step
        n := most_deltas();
        lowest := '-infinity';
        flood := true;
    else
        select *, false from read_deltas(t) into snapshot, n, woken, lowest, new_queues, new_priorities, new_seqs,
            late_queues, late_priorities, late_from, late_to, flood;
    end if;
end $$;
comment on function read_news(tick) is 'read_deltas(); flood: there are too many to be read by one step';

create or replace function next_names(after text, looks int, out queues text[], out priorities int[], out seqs bigint[],
    out upto text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with recursive names (queue, i) as (
        select next_names.after, 0
        union all
        select (select least(
                   (select q.queue from queue q where q.state = 'ready' and q.queue > names.queue
                    order by q.queue limit 1),
                   (select q.queue from queue q where q.state <> 'ready' and q.queue > names.queue
                    order by q.queue limit 1))), names.i + 1
        from names where names.queue is not null and names.i < next_names.looks
    ), unknown as materialized (
        select n.queue from names n where n.i > 0 and n.queue is not null
        and not exists (select from queue_config c where c.queue = n.queue)
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
comment on function next_names(text, int) is 'Which of the next names after this one, in the order of names, nobody '
    'knows: so many looks; their priorities, and the number before the first job of each. upto = where it ended, NULL '
    '= at the last name';

create or replace function step_flood(inout new tick)
language plpgsql set search_path from current as $$
begin
    new.settled := '';
    new.joining := true;
    new.more := true;
    insert into newcomer (queue, priority, seq) values ('', -1, 0);
end $$;
comment on function step_flood(tick) is 'For schedule(): everything may have changed';

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
comment on function take_newcomers(tick, int) is 'For register(): the next of the names that were put off, and of '
    'those that are searched for';

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
    if cardinality(done.known) > 50 then -- so many at once wait their turn, or others would wait behind them
        new := pass_all(new);
    else
        known := nullif(done.known, '{}');
    end if;
    new.more := new.more or new.joining;
end $$;
comment on function register(tick, text[], int[], bigint[]) is 'For schedule(): makes new queues and priorities known, '
    '500 a step, new ones before those that were put off (newcomer). known: of these something is to be cut now';

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
comment on function next_waiting(text, int, int, boolean) is 'The queues with uncut jobs among the next in the order '
    'of names, after this one: so many looks, at most so many found; those with limits only on patrol. upto = where '
    'it ended, NULL = at the last name';

create or replace function step_queues(inout new tick, woken text[], whole boolean, out queues text[])
language plpgsql set search_path from current as $$
declare
    most constant int := 500;
    part record;
begin
    queues := array(select distinct q from unnest(woken) q where q is not null);
    if cardinality(queues) > most then
        queues := '{}';
        new := pass_all(new);
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
    'which something has come up and, if all are to be cut (whole), those that wait, or the next of all';

create or replace function settle(inout after text, most int, out busy text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    names text[];
begin
    names := array(select c.queue from queue_config c where c.queue > after order by c.queue limit most);
    with begun as materialized ( -- queues with a ready job, running ones too
        select n.queue, c.seq
        from unnest(names) n (queue)
        left join lateral (select c.seq from cursor c where c.queue = n.queue order by c.n desc limit 1) c on true
        where exists (select from queue j where j.queue = n.queue and j.state = 'ready')
    ), lane as materialized (
        select b.queue, i - 1 as priority, j.seq - 1 as seq, b.seq[i] as at, case when b.seq[i] is null then (
                   select max(w.seqs[cardinality(w.seqs)]) from work_queue w
                   where w.queue || '' = b.queue and w.priority = i - 1) end as high -- leases without a cursor
        from begun b cross join generate_series(1, 10) i
        cross join lateral (select j.seq from queue j where j.queue = b.queue and j.priority = (i - 1)::smallint
                            and j.state = 'ready' order by j.seq limit 1) j
    ), lower as (
        select move_cursor(array_agg(l.queue), array_agg(l.priority), array_agg(l.seq), array_agg(l.high)) from lane l
        where l.at is null or l.seq < l.at having count(*) > 0
    )
    select array(select b.queue from begun b) from (select count(*) from lower) z into busy;
    after := case when cardinality(names) = most then names[most] end;
end $$;
comment on function settle(text, int) is 'What a scheduler does when it has taken over: looks at every queue from its '
    'first job on, so many queues a step; busy = those with ready jobs, after = up to which name it has come, NULL = '
    'all';
