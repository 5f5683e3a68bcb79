-- The measurements of queues.sh, for n queues. ms = processor time of this session.
set search_path = queues;
create function public.spent() returns float8 language sql volatile as
$$ select split_part(pg_read_file('/proc/self/schedstat', 0, 100), ' ', 1)::float8 / 1e6 $$;
create function public.measure(name text, ask text, before text default 'select') returns void language plpgsql as $$
declare
    times constant int := 20; -- the clock of the processor time has steps of milliseconds
    was   float8;
    total float8 := 0;
    j     json;
begin
    for i in 1 .. times loop
        execute before;
        was := public.spent();
        execute 'explain (analyze, timing off, buffers, format json) ' || ask into j;
        total := total + public.spent() - was;
    end loop;
    insert into figures values (name || ', ms', total / times),
        (name || ', pages', (j #>> '{0,Plan,Shared Hit Blocks}')::float8 + (j #>> '{0,Plan,Shared Read Blocks}')::float8);
end $$;
create function public.stay() returns void language sql as
$$ update queues.scheduler set until = clock_timestamp() + interval '9 s' where term > 0 and until <> '-infinity' $$;
-- Makes steps until all jobs are handed out and finished. Folds the counters beside them, as the scheduler does. The place of
-- the scheduler is kept valid even on a slow machine; otherwise each step would be a take-over, and claims would make steps.
create procedure public.work_off(holder text, name text) language plpgsql as $$
declare
    was   float8;
    folds float8 := 0;
    fold  float8 := 0;
    one   float8;
    total float8 := 0;
    most  float8 := 0;
    steps int := 0;
    rest  int := 0;
    h     record;
begin
    while rest < 3 or (select more from tick order by tick desc limit 1) loop
        perform public.stay();
        was := public.spent();
        perform schedule(holder);
        commit;
        one := public.spent() - was;
        total := total + one;
        most := greatest(most, one);
        steps := steps + 1;
        rest := rest + 1;
        was := public.spent();
        perform fold_beside();
        commit;
        was := public.spent() - was;
        folds := folds + was;
        fold := greatest(fold, was);
        perform public.stay();
        commit;
        loop
            select array_agg(lease) as l, array_agg(version) as v, array_agg(seq) as s into h from claim('w', 500);
            exit when h.l is null;
            perform complete('w', h.l, h.v, h.s, null::timestamptz[], null::bytea[]);
            commit;
            rest := 0;
        end loop;
    end loop;
    insert into figures values (name || ', ms', total), (name || ', longest step ms', most), (name || ', steps', steps),
        (name || ', folds beside ms', folds), (name || ', longest fold ms', fold);
end $$;
create temp table figures (name text, value float8, n int generated always as identity);
insert into queue (queue, payload) select 'q' || i, '{}' from generate_series(1, :n) i;
call public.work_off('one', 'all new');
insert into queue (queue, payload) select 'q' || i, '{}' from generate_series(1, :n) i;
call public.work_off('one', 'all again');
insert into queue (queue, payload) select 'q7', '{}' from generate_series(1, 20000) i;
update scheduler set until = clock_timestamp() + interval '3 s' where term > 0;
select from schedule('one');
update fold set at = now(), ms = 1000000;
select public.measure('a step, one queue waits', 'select * from schedule(''one'')', 'select count(*) from claim(''w'', 500); update scheduler set until = clock_timestamp() + interval ''3 s'' where term > 0;
    update tick set mark_at = now() + interval ''1 h'', cut_at = now() - interval ''1 min'' where tick = (select max(tick) from tick)');
select public.measure('a claim of 10', 'select * from claim(''w'', 10)');
select public.measure('a refresh (overview)', 'select * from overview()');
call public.work_off('one', 'rest');
update scheduler set until = '-infinity' where term > 0;
call public.work_off('two', 'a take-over');
select name, round(value::numeric, case when name like '%ms' then 1 else 0 end) from figures where name not like 'rest%' order by n;
