-- Seven days of rows in table minute, before the story of fixture.sql. How many jobs came in depends on the hour of the day.
-- As many went out, except for twenty minutes an hour ago, when a third of the slots was lost. At the end each queue has the
-- backlog with which the story begins.
insert into queues.minute (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms, wait_max, run_max,
                           buckets, waits, runs, ready)
select m.minute, q.queue, m.pushed, m.completed, case when m.n % 97 = 0 then 1 else 0 end, m.n % 3, 0, 0,
       m.completed * w.wait, m.completed * 500, w.wait * 2, 2000,
       array[w.low, w.low + 1, w.low + 2, w.low + 3]::smallint[],
       array[m.completed / 8, m.completed / 2, m.completed / 4, m.completed / 8]::int[],
       array[m.completed / 2, m.completed / 3, m.completed / 8, 1]::int[], m.pushed - m.completed
from (values ('image.resize', 1800), ('search.index', 900), ('mail.send', 9000), ('thumb.video', 60), ('webhook.out', 2400)) q (queue, rate),
     lateral (
        select n, timestamptz '2026-11-21 13:52:00+00' - n * interval '1 min' as minute,
               (day * rate)::int as pushed, (day * rate * case when n between 25 and 45 then 0.66 when n < 25 then 1.3 else 1 end)::int as completed
        from generate_series(1, 10060) n,
             lateral (select 1 + 0.4 * sin((n + 200) * 2 * pi() / 1440) + 0.06 * sin(n * 1.7)) d (day)) m,
     lateral (select case when m.n < 45 then 60000 else 2000 end as wait, case when m.n < 25 then 20 when m.n < 45 then 34 else 22 end as low) w
on conflict (minute, queue) do update
set pushed = excluded.pushed, completed = excluded.completed, buckets = excluded.buckets, waits = excluded.waits, runs = excluded.runs,
    ready = excluded.ready;
