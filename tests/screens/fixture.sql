-- The data of the pictures: nine hours of a small company's queues. The real functions make them, with a clock that
-- stands still between the statements (tests/screens/clock.c). psql runs this file as owner after `queuetop install`, with
-- the variable clock = path of the clock's file. It ends ten minutes before the end of the story. fixture_live.sql makes
-- these ten minutes while a console watches. Only the rates are invented: rows of delta count jobs that never existed.
\set ON_ERROR_STOP on
\set QUIET on
set client_min_messages = warning;
set synchronous_commit = off;
set search_path = queues, pg_temp;
alter system set autovacuum = off; -- it would run at times of the moved clock
select pg_reload_conf() \g /dev/null
select setseed(0.5) \g /dev/null

create schema fixture;
create table fixture.clock (path text);
insert into fixture.clock values (:'clock');
create table fixture.held (n int generated always as identity, node text, queue text, lease bigint, version int, seq bigint, id uuid);
create sequence fixture.number;

-- Sets the clock: from here on it is `ago` before 14:02:11.
create function fixture.at(ago interval) returns void language plpgsql as $$
begin
    execute format('copy (select %s) to %L',
        (extract(epoch from timestamptz '2026-11-21 14:02:11+00' - ago) * 1000000)::bigint, (select path from fixture.clock));
end $$;

-- Ids of version 7 that are the same in each run: the milliseconds of the clock, then a number.
create function fixture.id() returns uuid language sql as $$
    select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(n::text), 1, 3) || 'a' || substr(md5(n::text), 4, 15))::uuid from nextval('fixture.number') n
$$;

-- Pushes n jobs. At the end of the story the oldest has been ready for `oldest`, the youngest for `youngest`. A # in the
-- payload becomes another number in each job.
create function fixture.push(queue text, n int, payload text, oldest interval default '0', kind text default '', priority int default 5,
    max_tries int default 5, unique_key text default null, youngest interval default '0') returns void language sql as $$
    insert into queue (id, queue, kind, priority, max_tries, unique_key, created, changed, payload)
    select fixture.id(), $1, $5, $6, $7, $8 || i, since, since, replace($3, '#', (88000 + i * 7)::text)::json
    from generate_series(1, $2) i,
        lateral (select case when $4 = '0' then now() else timestamptz '2026-11-21 14:02:11+00' - $9 - ($4 - $9) * ((n - i + 1.0) / n) end) s (since)
$$;

-- A node claims n jobs of a queue; the scheduler makes leases in between.
create procedure fixture.claim(node text, queue text, n int, timeout interval default '60 s') language plpgsql as $$
declare
    found int := 0;
begin
    for round in 1 .. 60 loop
        insert into fixture.held (node, queue, lease, version, seq, id)
        select $1, c.queue, c.lease, c.version, c.seq, c.id from claim($1, $3 - found, $4, array[$2]) c;
        select count(*) into found from fixture.held h where h.node = $1 and h.queue = $2;
        exit when found >= $3;
        commit;
        perform fixture.at(timestamptz '2026-11-21 14:02:11+00' - clock_timestamp() - interval '60 ms'); -- 60 ms later: the scheduler goes by the clock
        commit;
        perform schedule('db1');
        commit;
    end loop;
    if found < $3 then
        raise 'only % of % jobs of % for %', found, $3, $2, $1;
    end if;
end $$;

create function fixture.fail(node text, queue text, error text, trace text default null, final boolean default false,
    retry_in interval default null) returns void language plpgsql as $$
begin
    update work_queue w set started = now() - interval '30.9 s' -- the engine does not accept a start that is before the claim
    from fixture.held h where h.node = $1 and h.queue = $2 and w.lease = h.lease and w.started > now() - interval '30.9 s';
    perform fail($1, array_agg(lease order by n), array_agg(version order by n), array_agg(seq order by n),
        array_agg(replace(error, '#', (8800 + n)::text) order by n), array_agg(trace order by n),
        array_agg(now() - interval '30.9 s' order by n), array_agg(retry_in order by n), array_agg(final order by n))
    from fixture.held h where h.node = $1 and h.queue = $2;
    delete from fixture.held h where h.node = $1 and h.queue = $2;
end $$;

-- Jobs that are pushed, claimed and fail for good.
create procedure fixture.failed(node text, queue text, n int, payload text, error text, trace text default null) language plpgsql as $$
begin
    perform fixture.push(queue, n, payload);
    commit;
    call fixture.claim(node, queue, n);
    perform fixture.fail(node, queue, error, trace, true);
    commit;
end $$;

-- How many jobs were finished in some seconds, t seconds before the end: the mean rate with a variation.
create procedure fixture.done(seconds numeric, t int) language sql as $$
    insert into delta (queue, priority, pushed, completed, run_ms)
    select queue, 5, n, n, n * 40 from (values ('image.resize', 96), ('search.index', 18), ('thumb.video', 4), ('mail.send', 412),
        ('webhook.out', 51), ('billing.sync', 7), ('sms.send', 22), ('invoice.pdf', 3), ('audit.ship', 30)) r (queue, rate),
        lateral (select (rate * seconds / 10 * (10 + 6 * sin(t / (30.0 + length(queue) * 9)) + 4 * abs(hashtext(queue || t)::bigint) / 2147483648.0 - 2))::int) d (n)
$$;

-- Waits until the console that watches as bob has read the present state.
create procedure fixture.seen() language plpgsql as $$
begin
    commit;
    for round in 1 .. 200000 loop
        perform pg_stat_clear_snapshot();
        exit when not exists (select from pg_stat_activity where usename = 'bob' and (state <> 'idle' or query_start < now()));
    end loop;
end $$;

-- Moves the clock from one time to another, in steps of ten seconds.
create procedure fixture.live(since int, until int, failing boolean) language plpgsql as $$
begin
    for t in reverse since .. until by 10 loop
        -- the engine keeps a fold for the rates if more than ten seconds have passed since the last
        perform fixture.at(t * interval '1.0001 s');
        commit;
        call fixture.done(10, t);
        perform schedule('db1');
        commit;
        if failing and t % 60 = 0 then
            call fixture.failed('worker-2', 'search.index', 200, '{"doc": #, "index": "products-v7"}',
                'connect() to es-3:9200: Connection refused', '  at index_doc  worker/search.c:142');
        elsif not failing then
            perform fixture.push('image.resize', 80 + t % 70, '{"bucket": "acme-media", "key": "2026/11/#.jpg", "sizes": [320, 640]}',
                kind => 'upload');
            perform fixture.push('search.index', 20 + t % 30, '{"doc": #, "index": "products-v7"}', kind => 'product');
            call fixture.seen();
        end if;
    end loop;
end $$;

-- A schedule and the outcome of its last n runs. Only the newest of its jobs exists, if it is given.
create function fixture.cron(name text, line text, tz text, queue text, took interval, n int, every interval, last timestamptz,
    job uuid default null, catch_up text default 'latest', note text default null) returns void language plpgsql as $$
begin
    perform schedule_set(md5(name)::uuid, name, jsonb_build_object('cron', line, 'tz', tz, 'queue', queue, 'catch_up', catch_up, 'comment', note),
        format('{"by": "%s"}', name));
    insert into history (id, created, started, finished, state, priority, tries, queue, kind)
    select fixture.id(), d, d, d + took, 'completed', 5, 1, queue, '' from generate_series(case when job is null then 0 else 1 end, n - 1) i,
        lateral (select last - i * every) x (d);
    insert into cron_run (schedule, due, at, job, pushed)
    select name, d, d, coalesce(h.id, cron.job), true from generate_series(0, n - 1) i, lateral (select last - i * every) x (d)
    left join history h on h.started = d and h.queue = cron.queue and h.finished = d + took;
    update schedule s set runs_from = null, (last_run, last_job) = (select r.due, r.job from cron_run r where r.schedule = s.name order by due desc limit 1)
    where s.name = cron.name;
end $$;

-- Partitions for the jobs that were finished before the story begins.
select fixture.at('8 d') \g /dev/null
select add_days() \g /dev/null
select fixture.at('9 h') \g /dev/null
create role alice login in role queues_operator;
create role bob login in role queues_operator;
insert into queue_config (queue, max_running) values ('image.resize', 32), ('thumb.video', 12),
    ('mail.send', 16), ('webhook.out', 8), ('billing.sync', 4), ('sms.send', 2), ('report.daily', 4), ('invoice.pdf', 4), ('audit.ship', 2)
on conflict (queue) do update set max_running = excluded.max_running;
select schedule('db1') \g /dev/null
call fixture.failed('worker-2', 'sms.send', 1, '{"to": "+4917012345#", "text": "Your code"}', 'number not allowed: +4917012345#');
select fixture.at('5 h') \g /dev/null
call fixture.failed('worker-1', 'thumb.video', 1, '{"video": "v#"}', 'ffmpeg: moov atom not found in v#.mp4');
select fixture.at('3 h') \g /dev/null
call fixture.failed('worker-2', 'search.index', 6, '{"doc": #, "index": "products-v6"}', 'mapping conflict: field "price" of doc # is text');

select fixture.at('2 h 14 min') \g /dev/null
set session authorization alice;
select from queues.pause('a11ce000-0000-4000-8000-000000000001', 'report.daily', 'month close') \g /dev/null
reset session authorization;
select fixture.at('2 h') \g /dev/null
call fixture.failed('worker-1', 'thumb.video', 1, '{"video": "v#"}', 'ffmpeg: moov atom not found in v#.mp4');
call fixture.failed('worker-5', 'image.resize', 3, '{"bucket": "acme-media", "key": "2026/11/#.jpg"}', 'ENOSPC: no space left on device');
select fixture.at('1 h') \g /dev/null
call fixture.failed('worker-5', 'image.resize', 3, '{"bucket": "acme-media", "key": "2026/11/#.jpg"}', 'timeout after 30s', e'  at fetch  worker/http.c:88');
select fixture.at('52 min') \g /dev/null
call fixture.failed('worker-2', 'search.index', 3, '{"doc": #, "index": "products-v6"}', 'mapping conflict: field "price" of doc # is text');

-- The job in the picture of one job: a lost lease, a file that is no image, two time-outs.
select fixture.at('50 min 31 s') \g /dev/null
select fixture.push('image.resize', 1, e'{\n  "bucket": "acme-media",\n  "key": "2026/11/beach \u202egpj.exe",\n  "sizes": [320, 640, 1280],\n'
    '  "notify": {"url": "https://api.acme.example/hook", "tries": 3}\n}', '0', 'upload', 0, 5, 'img:884') \g /dev/null
call fixture.claim('worker-4', 'image.resize', 1, '20 s');
delete from fixture.held;
select fixture.at('50 min') \g /dev/null
select schedule('db1') \g /dev/null
select fixture.at('44 min 1 s') \g /dev/null
call fixture.claim('worker-2', 'image.resize', 1);
select fixture.fail('worker-2', 'image.resize', e'invalid JPEG: bad marker \x1b[31m at 0x1c', null, false, '30 s') \g /dev/null
select fixture.at('38 min 40 s') \g /dev/null
call fixture.claim('worker-2', 'image.resize', 1);
select fixture.fail('worker-2', 'image.resize', 'timeout after 30s', e'  at resize  worker/image.c:211\n  at fetch  worker/http.c:88', false, '30 s') \g /dev/null
select fixture.at('31 min 9 s') \g /dev/null
call fixture.claim('worker-3', 'image.resize', 1);
select fixture.fail('worker-3', 'image.resize', 'timeout after 30s', e'  at resize  worker/image.c:211\n  at fetch  worker/http.c:88', true) \g /dev/null
call fixture.failed('worker-5', 'image.resize', 2, '{"bucket": "acme-media", "key": "2026/11/#.jpg"}', 'ENOSPC: no space left on device');

-- A search server is down for twenty minutes, and its jobs pile up.
call fixture.live(1800, 620, true);
select fixture.at('10 min 5 s') \g /dev/null
select fixture.push('search.index', 3300, '{"doc": #, "index": "products-v7"}', '38 min 2 s', 'product', youngest => '11 min') \g /dev/null
select fixture.push('image.resize', 11200, '{"bucket": "acme-media", "key": "2026/11/#.jpg", "sizes": [320, 640, 1280]}',
    '14 min 10 s', 'upload', youngest => '11 min') \g /dev/null
select fixture.push('report.daily', 3, '{"report": "revenue", "day": "2026-11-20"}') \g /dev/null
select schedule('db1') \g /dev/null

insert into node (lock_key, session, host, pid, version, protocol, slots, started, heartbeat, state)
select 'worker-' || n, md5(n::text)::uuid, 'app-' || (n + 1) / 2, 4000 + 31 * n, v, 1, 16, end_at - up, end_at - beat, state
from (select timestamptz '2026-11-21 14:02:11+00') t (end_at), (values
    (1, interval '4 d 2 h', interval '3 s', '0.1.0', 'up'), (2, '4 d 2 h', '4 s', '0.1.0', 'up'), (3, '3 d 6 h', '4 s', '0.1.0', 'up'),
    (4, '4 d 2 h', '6 min 12 s', '0.1.0', 'up'), (5, '1 h 10 min', '1 s', '0.1.0', 'up'), (6, '9 d 20 h', '21 s', '0.1.0', 'up')) v (n, up, beat, v, state);
analyze;
