-- Functions for test_plans. They put as many rows into every table that changes at work as an hour of work leaves behind, and
-- they bring the engine into the states that are then measured.

-- Only the test itself changes the statistics of the planner.
create function t.still() returns void language plpgsql as $$
declare
    r regclass;
begin
    for r in select c.oid from pg_class c where c.relnamespace = 'queues'::regnamespace and c.relkind = 'r' loop
        execute format('alter table %s set (autovacuum_enabled = off)', r);
    end loop;
end $$;

-- n rows in each table, in the places where statements look: in queues with jobs, with times that have passed, with numbers
-- below those of living rows.
create function t.fill(n int) returns void language plpgsql as $$
begin
    set local session_replication_role = replica; -- no triggers: the counters must not count these rows
    insert into queue (id, queue, kind, state, priority, payload, run_after, expires_at, unique_key, concurrency_key, error, error_key, changed)
    select gen_random_uuid(), 'p' || i % 4, 'dead', s.state, i % 3 + 4, '1', case when s.state in ('scheduled', 'retry') then now() - interval '1 h' + i * interval '1 ms' end,
           case when i % 7 = 0 then now() - interval '1 h' + i * interval '1 ms' end, case when i % 11 = 0 then 'dead ' || i end,
           case when i % 2 = 0 then 'key ' || i % 50 end, case when s.state = 'failed' then 'dead ' || i end,
           case when s.state = 'failed' then 'dead N' end, now() - interval '1 h' + i * interval '1 ms'
    from generate_series(1, n) i,
         lateral (select ('{ready,ready,scheduled,retry,failed,blocked}'::job_state[])[1 + i % 6] as state) s;
    insert into work_queue (queue, priority, seqs, batch_order, lock_key, started, lock_timeout, version)
    select 'p' || i % 4, 5, array[i], -1, case when i % 2 = 0 then 'dead' end, now(), now(), 1 from generate_series(1, n) i;
    insert into attempt (job, number, queue, node, ended, outcome)
    select gen_random_uuid(), 1, 'p' || i % 4, 'dead', now(), 'failed' from generate_series(1, n) i;
    insert into history (id, created, finished, state, priority, tries, queue, kind, payload)
    select gen_random_uuid(), now(), now() - (n - i) * interval '1 us', 'completed', 5, 1, 'p' || i % 4, 'dead', '1' from generate_series(1, n) i;
    insert into delta (queue, priority, ready, completed, error_key) -- folded long ago
    select 'p' || i % 4, 99, 0, 0, case when i % 20 = 0 then 'dead N' end from generate_series(1, n) i;
    insert into counter (fold, queue, priority, error_key) select i / 20 + 2, 'p' || i % 4, 99, case when i % 5 = 0 then 'dead N' end from generate_series(1, n) i;
    insert into fold (at, snapshot, xid, keep, ms)
    select now() - interval '1 h', pg_current_snapshot(), pg_current_xact_id(), i % 20 = 0, -1 from generate_series(1, n) i;
    insert into tick (at, snapshot, want, weights, free, jobs, more, after, mark_at, day_at)
    select now() - interval '1 h', pg_current_snapshot(), 20, 1, 0, -1, false, now(), now(), now() from generate_series(1, n) i;
    insert into cursor (queue, seq, high, low, chunk) select 'p' || i % 4, array_fill(0, array[10]), array_fill(0, array[10]), 0, -1 from generate_series(1, n) i;
    insert into mark (mark, older) select 0, '{-1}' from generate_series(1, n) i;
    insert into bucket (queue, at, level, seqs) select 'limited', now(), -1, '{}' from generate_series(1, n) i;
    insert into lane (queue, key, laps, due, expire_at) select '', 'dead', -1, now(), now() from generate_series(1, n) i;
    insert into scheduler (holder, until) select 'dead', now() from generate_series(1, n) i;
    insert into minute (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms)
    select date_trunc('minute', now()) - i / 4 * interval '1 min' - interval '10 days', 'dead' || i % 4, -1, 0, 0, 0, 0, 0, 0, 0 from generate_series(1, n) i;
    insert into audit (action, at, who, verb, params) select gen_random_uuid(), now() - interval '1 h', 'dead', 'cancel', '{}' from generate_series(1, n) i;
    insert into audit_batch (action, batch, changed, skipped, rows, cursor) select gen_random_uuid(), 1, 0, 0, '[]', 'dead' from generate_series(1, n) i;
    insert into cron_run (schedule, due, error) select 'nightly', now() - i * interval '1 min' - interval '1 day', 'dead' from generate_series(1, n) i;
end $$;

-- Counts everything again. The earlier folds are then ten minutes old, and their deltas are swept.
create function t.anew() returns void language plpgsql as $$
declare
    made bigint;
begin
    perform recount();
    select fold into made from fold order by fold desc limit 1;
    delete from counter where fold < made;
    delete from fold where fold < made;
end $$;

create function t.empty() returns void language plpgsql as $$
begin
    set local session_replication_role = replica;
    delete from queue where kind = 'dead';
    delete from work_queue where batch_order = -1;
    delete from attempt where node = 'dead';
    delete from history where kind = 'dead';
    delete from delta where priority = 99;
    delete from counter where priority = 99;
    delete from fold where ms = -1;
    delete from tick where jobs = -1;
    delete from cursor where chunk = -1;
    delete from mark where older = '{-1}';
    delete from bucket where level = -1;
    delete from lane where laps = -1;
    delete from scheduler where holder = 'dead';
    delete from minute where pushed = -1;
    delete from audit_batch b where b.cursor = 'dead';
    delete from audit where who = 'dead';
    delete from cron_run where error = 'dead';
    perform t.anew();
end $$;

-- Deletes all statistics, as pg_upgrade does.
create function t.forget() returns void language sql as $$
    delete from pg_statistic where starelid in (select c.oid from pg_class c where c.relnamespace = 'queues'::regnamespace);
    update pg_class set reltuples = -1, relpages = 0 where relnamespace = 'queues'::regnamespace and relkind in ('r', 'i', 'p')
$$;

-- --- bringing about states

create function t.later() returns void language sql as $$ -- the next step may make leases, fold, and do what it does once a second
    update tick set cut_at = cut_at - interval '1 s', mark_at = '-infinity' where tick = (select tick from tick order by tick desc limit 1);
    update lane set due = '-infinity', expire_at = now(), expired_to = greatest(expired_to, now() - interval '1 min'), expire_all = 'infinity' where n = (select n from lane order by n desc limit 1);
    update fold set at = at - interval '11 s' where fold >= (select fold from fold where keep order by fold desc limit 1);
$$;
create function t.steps() returns void language plpgsql as $$
begin
    for i in 1 .. 3 loop
        perform t.later();
        perform schedule('test');
    end loop;
end $$;
create function t.feed(queue text, n int) returns void language sql as $$
    select t.many($1, 'j', $2);
    select t.steps();
$$;
create function t.hold(node text, queue text, n int) returns void language plpgsql as $$
declare
    got int;
begin
    delete from t.held h where h.node = $1;
    perform t.feed($2, $3);
    insert into t.held (node, name, lease, version, seq, id, queue)
    select $1, c.payload ->> 'name', c.lease, c.version, c.seq, c.id, c.queue from claim($1, $3, queues => array[$2]) c;
    get diagnostics got = row_count;
    if got = 0 then
        raise 'nothing to hold in %', $2;
    end if;
end $$;
create function t.l(node text) returns bigint[] language sql as $$ select array_agg(lease order by n) from t.held h where h.node = $1 $$;
create function t.v(node text) returns int[] language sql as $$ select array_agg(version order by n) from t.held h where h.node = $1 $$;
create function t.s(node text) returns bigint[] language sql as $$ select array_agg(seq order by n) from t.held h where h.node = $1 $$;
create function t.e(node text) returns text[] language sql as $$ select array_agg('broken ' || n) from t.held h where h.node = $1 $$;
create function t.end(queue text, n int, state text) returns void language plpgsql as $$ -- n jobs that end in this state
begin
    perform t.hold('ender', $1, $2);
    if $3 = 'completed' then
        perform complete('ender', t.l('ender'), t.v('ender'), t.s('ender'));
    else
        perform fail('ender', t.l('ender'), t.v('ender'), t.s('ender'), t.e('ender'), final => array(select $3 = 'failed' from t.held where node = 'ender'));
    end if;
    delete from t.held where node = 'ender';
end $$;
create function t.ids(state text, n int default 3) returns text[] language sql as $$
    select array(select id::text from queue where queue.state::text = $1 and kind <> 'dead' order by seq desc limit $2)
$$;
create function t.done(n int default 3) returns text[] language sql as $$
    select array(select id::text from history where kind <> 'dead' order by finished desc limit $1)
$$;
create function t.act(verb text) returns uuid language sql as $$ select action from audit a where a.verb = $1 order by at desc limit 1 $$;

-- A step that makes a queue known. It is undone, because whoever takes over looks at every queue that is known.
create function t.newcomer() returns void language plpgsql as $$
begin
    perform push('new', '1');
    perform schedule('test');
    if not exists (select from queue_config where queue = 'new') then
        raise 'the step made no queue known';
    end if;
    raise 'undo' using errcode = 'QT999';
exception when sqlstate 'QT999' then
    null;
end $$;

create table t.called (name text primary key);
-- The state in which most calls are measured: four queues at work, one of them with keys, one with limits; jobs in every state.
create function t.live() returns void language plpgsql as $$
begin
    perform set_queue(gen_random_uuid(), 'limited', '{"rate": "1000/s", "burst": "1000"}');
    for i in 0 .. 3 loop
        perform t.feed('p' || i, 8);
        perform t.end('p' || i, 4, 'completed');
        perform t.end('p' || i, 4, 'failed');
        perform t.end('p' || i, 4, 'retry');
        perform push('p' || i, '{"name": "later"}', delay => '1 h');
        perform push('p' || i, '{"name": "keyed"}', concurrency_key => 'a key');
        perform push('p' || i, '{"name": "keyed"}', concurrency_key => 'a key');
        perform t.feed('limited', 2);
    end loop;
    perform t.steps();
    update fold set swept[4] = extract(epoch from now() - interval '8 days') where fold = (select max(fold) from fold where keep);
end $$;

-- Removes all living rows: only dead ones are left when the next call looks.
create function t.clear() returns void language plpgsql as $$
begin
    set local session_replication_role = replica;
    delete from queue; delete from work_queue; delete from history; delete from attempt; delete from minute; delete from audit_batch;
    delete from audit; delete from cron_run;
    perform t.anew();
end $$;

-- How many pages a statement touches. It runs twice and the second run counts: the planner looks at the ends of indexes, and
-- each time it reads up to a hundred dead pages there.
create function t.pages(ask text) returns bigint language plpgsql as $$
declare
    j json;
begin
    begin
        execute 'explain (analyze) ' || ask;
        raise 'again' using errcode = 'QT999';
    exception when sqlstate 'QT999' then
        null;
    end;
    execute 'explain (analyze, buffers, format json) ' || ask into j;
    insert into t.called select distinct funcname from pg_stat_xact_user_functions where schemaname = 'queues' on conflict do nothing;
    return (j->0->'Plan'->>'Shared Hit Blocks')::bigint + (j->0->'Plan'->>'Shared Read Blocks')::bigint;
end $$;

-- Functions that name a table of the schema and that no call has reached. Left out: functions for rare events, with what they
-- call (recount() after a restore, next_names() after a flood of deltas, scheduler_wait() and scheduler_stay() after a long
-- step); and SQL functions that return rows and have no SET, because the planner inlines them, so the server does not count
-- their calls.
create view t.unreached as
select p.proname::text as name from pg_proc p
where p.pronamespace = 'queues'::regnamespace and p.prokind = 'f' and p.proname not in (select c.name from t.called c)
  and p.proname not in ('recount', 'recount_sums', 'few_jobs', 'next_names', 'name_between', 'step_flood', 'ending_leases', 'end_asked',
                        'settle', 'moved', 'set_back', 'drop_days', 'trim_history', 'key_ready', 'key_blocked',
                        'key_between', 'scheduler_wait', 'scheduler_stay')
  and not (p.prolang = (select oid from pg_language where lanname = 'sql') and p.proretset and p.proconfig is null)
  and exists (select from pg_class r where r.relnamespace = p.pronamespace and r.relkind in ('r', 'v', 'p')
              and p.prosrc ~ format('\m(from|join|into|update)\s+(only\s+|queues[.])?%s\M', r.relname));
