-- The last ten minutes of the story that fixture.sql begins. A node dies in them. At the end the other nodes hold some
-- jobs. psql runs this file as owner; after each step it waits for the console that bob runs.
\set ON_ERROR_STOP on
\set QUIET on
set client_min_messages = warning;
set synchronous_commit = off;
set search_path = queues, pg_temp;

call fixture.live(600, 440, false);
select fixture.at('7 min 3 s') \g /dev/null
call fixture.claim('worker-4', 'image.resize', 8, '7 min');
select fixture.push('search.index', 2, '{"doc": #, "index": "products-v7"}', max_tries => 1) \g /dev/null
call fixture.claim('worker-4', 'search.index', 8, '30 min');
call fixture.live(420, 10, false);

-- Some jobs wait for a retry, some for their time.
select fixture.at('9 s') \g /dev/null
call fixture.done(1, 9);
call fixture.claim('worker-1', 'image.resize', 1);
select fixture.fail('worker-1', 'image.resize', 'ENOSPC: no space left on device', null, false, '2 min') \g /dev/null
call fixture.claim('worker-1', 'image.resize', 1);
select fixture.fail('worker-1', 'image.resize', 'ENOSPC: no space left on device', null, false, '2 min') \g /dev/null
call fixture.claim('worker-1', 'image.resize', 1);
select fixture.fail('worker-1', 'image.resize', 'ENOSPC: no space left on device', null, false, '2 min') \g /dev/null
select fixture.push('webhook.out', 3, '{"url": "https://hooks.acme.example/in", "order": #}', '5 min') \g /dev/null
call fixture.claim('worker-5', 'webhook.out', 3);
select fixture.fail('worker-5', 'webhook.out', 'HTTP 503 from hooks.acme.example', null, true) \g /dev/null
insert into queue (id, queue, kind, payload, run_after)
select fixture.id(), 'mail.send', 'newsletter', json_build_object('to', 'user' || i || '@mail.example', 'edition', '2026-11'),
    now() + i * interval '1 min' from generate_series(1, 240) i;

-- The jobs that come in the last moments, and the jobs that the living nodes hold.
select fixture.at('5 s') \g /dev/null
call fixture.done(4, 5);
call fixture.seen();
select fixture.push('thumb.video', 646, '{"video": "v#", "at_s": [1, 5, 30]}', '11 min 40 s') \g /dev/null
select fixture.push('mail.send', 128, '{"to": "user#@mail.example", "template": "receipt"}', '2 s') \g /dev/null
select fixture.push('webhook.out', 81, '{"url": "https://hooks.acme.example/in", "order": #}', '9 s') \g /dev/null
select fixture.push('billing.sync', 43, '{"customer": #}', '6 s') \g /dev/null
select fixture.push('sms.send', 10, '{"to": "+4917012345#"}', '1 s') \g /dev/null
select fixture.push('invoice.pdf', 2, '{"invoice": #}') \g /dev/null
select fixture.push('audit.ship', 1, '{"from": #, "count": 100}') \g /dev/null
call fixture.claim('worker-1', 'image.resize', 8);
call fixture.claim('worker-2', 'image.resize', 8);
call fixture.claim('worker-1', 'mail.send', 8);
call fixture.claim('worker-2', 'thumb.video', 6);
call fixture.claim('worker-3', 'invoice.pdf', 2);
call fixture.claim('worker-3', 'audit.ship', 1);
call fixture.claim('worker-5', 'search.index', 8);
call fixture.claim('worker-5', 'webhook.out', 4);
call fixture.claim('worker-5', 'billing.sync', 2);
call fixture.claim('worker-6', 'sms.send', 1);
update node set state = 'draining' where lock_key = 'worker-3';
select fixture.at('0') \g /dev/null
call fixture.done(5, 0);

-- How long jobs waited and ran in the last hour: each bucket is about 1.4 times as wide as the one before, and has some jobs.
insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms, wait_max, run_max, buckets, waits, runs)
select '2026-11-21 14:00+00', queue, 1000, 1000, 0, 0, 0, 0, 0, 0, 900000, 60000, array[b - 4, b, b + 4, b + 7]::smallint[], array[300, 500, 190, 10], array[600, 380, 18, 2]
from (values ('image.resize', 24), ('search.index', 28), ('thumb.video', 30), ('mail.send', 14), ('webhook.out', 18), ('billing.sync', 17),
      ('sms.send', 16), ('invoice.pdf', 20), ('audit.ship', 12)) v (queue, b)
on conflict on constraint minute_pkey do update set wait_max = excluded.wait_max, run_max = excluded.run_max, buckets = excluded.buckets,
    waits = excluded.waits, runs = excluded.runs;

-- The schedules. No scheduler runs any more, so their times do not change.
select fixture.cron('audit.ship', '* * * * *', 'UTC', 'audit.ship', '0.3 s', 20, '1 min', '2026-11-21 14:02+00') \g /dev/null
select fixture.cron('billing.sync', '*/5 * * * *', 'UTC', 'billing.sync', '4.1 s', 20, '5 min', '2026-11-21 14:00+00', catch_up => 'all') \g /dev/null
select fixture.cron('cert.check', '@daily', 'UTC', 'maintenance', '2 s', 6, '1 day', '2026-11-21 00:00+00') \g /dev/null
select fixture.cron('index.full', '0 2 * * *', 'UTC', 'search.index', '2 h 4 min', 6, '1 day', '2026-11-21 02:00+00',
    (select q.id from queue q where q.queue = 'search.index' and q.state = 'failed' order by q.seq limit 1)) \g /dev/null
select fixture.cron('lease.sweep', '@every 30s', 'UTC', 'maintenance', '8 ms', 20, '30 s', '2026-11-21 14:02+00') \g /dev/null
select fixture.cron('mail.digest', '0 8 * * 1-5', 'America/New_York', 'mail.send', '41 s', 5, '1 day', '2026-11-20 13:00+00') \g /dev/null
select fixture.cron('purge.old', '30 3 * * *', 'UTC', 'maintenance', '11 min', 6, '1 day', '2026-11-21 03:30+00', catch_up => 'none') \g /dev/null
select fixture.cron('report.daily', '0 13 * * *', 'Europe/Berlin', 'report.daily', '18 min 20 s', 6, '1 day', '2026-11-21 12:00+00',
    (select q.id from queue q where q.queue = 'report.daily' order by q.seq limit 1), note => 'revenue, for the board') \g /dev/null
insert into cron_run (schedule, due, error) values ('mail.digest', '2026-11-18 13:00+00', 'missed: no scheduler was there; the latest run made up for it')
on conflict (schedule, due) do update set job = null, pushed = false, error = excluded.error;
select from schedule_pause('a11ce000-0000-4000-8000-000000000002', 'purge.old', 'the disk is being moved') \g /dev/null
call fixture.seen();
