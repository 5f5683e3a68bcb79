-- The queue of queuetop 0.1.0, version 2. Run this file in ONE transaction:
-- psql -1 -v ON_ERROR_STOP=1 -f FILE
set local search_path = pg_catalog, pg_temp;
set local client_encoding = 'UTF8';
set local lock_timeout = '200ms'; -- if somebody holds a lock for longer, run this again
select pg_catalog.set_config('queuetop.schema', E'q', true);
select pg_catalog.set_config('queuetop.viewer', E'queues_viewer', true);
select pg_catalog.set_config('queuetop.worker', E'queues_worker', true);
select pg_catalog.set_config('queuetop.operator', E'queues_operator', true);
select pg_catalog.set_config('default_transaction_read_only', 'on', false),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)
where coalesce(pg_catalog.current_setting('queuetop.schema', true), '') operator(pg_catalog.=) '';

do $$
declare
    name pg_catalog.text := coalesce(pg_catalog.current_setting('queuetop.schema', true), '');
begin
    if name operator(pg_catalog.=) '' then
        raise 'run this file in one transaction (psql -1 -v ON_ERROR_STOP=1 -f FILE)';
    end if;
    if pg_catalog.current_setting('server_version_num')::int < 130000 then
        raise 'the queue needs PostgreSQL 13 or newer';
    end if;
    perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('queuetop install'),
                                             pg_catalog.hashtext(name));
    if exists (select from pg_catalog.pg_class c
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
               where n.nspname = name and c.relkind in ('r', 'p', 'v')) then
        raise 'schema % holds tables already', pg_catalog.quote_ident(name);
    end if;
end $$;

-- 00_schema
-- The schema of the queue: its name, its types, its settings, and the order of locks.
--
-- These scripts run in the order of their names in ONE transaction (`queuetop install`), after
--   select set_config('queuetop.schema', NAME, true), set_config('queuetop.viewer', ROLE, true),
--          set_config('queuetop.worker', ROLE, true), set_config('queuetop.operator', ROLE, true);
-- Nothing is substituted in the text: this script points search_path at the schema, the others use bare names, and
-- every function keeps that path (SET search_path FROM CURRENT). A second run changes nothing.
--
-- The order of locks. Every function takes its locks in this order, so no two of them wait for each other:
--   1. the action: the advisory lock of its uuid (act_begin)
--   2. rows for which a function may wait: leases (work_queue) by number; jobs (queue) that are not ready by id; the
--      row of a queue (queue_config) or of a schedule. A ready job is protected by the lock of its lease
--   3. the scheduler row (scheduler_lock). What was read before is read again: decisions are made under this lock
--   4. while a function holds the scheduler row, it does not wait for the transaction of anybody else: it takes rows
--      with SKIP LOCKED, or waits for them 50 or 100 ms at most (lock_timeout). Rows that others have locked are left
--      alone and reported. An act that can't leave a row alone (a pause, a change of settings) fails with 55P03 and
--      changes nothing
--   5. unique keys: several are inserted in the order (queue, unique_key)
-- History, attempt, delta and the other books are only appended to.

do $$
declare
    s text := coalesce(nullif(current_setting('queuetop.schema', true), ''), 'queues');
begin
    if s ~ '^pg_' or s in ('information_schema', 'public') then
        raise 'a schema called "%" cannot hold the queue: choose one of its own', s using errcode = '42939';
    end if;
    if to_regnamespace(quote_ident(s)) is null then
        execute format('create schema %I', s);
        execute format('comment on schema %I is %L', s, 'queuetop: a job queue (push, claim, extend, complete, fail)');
    end if;
    perform set_config('search_path', format('%I, pg_temp', s), true);
    perform set_config('client_min_messages', 'warning', true);
    if not exists (select from pg_type where typname = 'job_state'
                     and typnamespace = quote_ident(s)::regnamespace) then
        create type job_state as enum
            ('scheduled', 'ready', 'retry', 'failed', 'running', 'completed', 'cancelled', 'blocked');
        comment on type job_state is 'Table queue holds scheduled, ready, retry and failed jobs, history completed and '
            'cancelled ones; running and blocked are shown by views only';
    end if;
    if not exists (select from pg_type where typname = 'job_filter'
                     and typnamespace = quote_ident(s)::regnamespace) then
        create type job_filter as (queue text, states text[], kind text, error text, before timestamptz, "limit" int,
                                   after text, expected bigint);
        comment on type job_filter is 'Which jobs an act is for, and how many of them a call takes. NULL = any';
    end if;
    if not exists (select from pg_type where typname = 'job_arrays'
                     and typnamespace = quote_ident(s)::regnamespace) then
        create type job_arrays as (ids uuid[], queues text[], kinds text[], priorities int[], payloads text[],
                                   bodies bytea[], types text[], run_afters timestamptz[], delays interval[],
                                   expires_ats timestamptz[], expires_ins interval[], unique_keys text[],
                                   concurrency_keys text[], max_tries int[], run_timeouts interval[],
                                   lease_timeouts interval[]);
        comment on type job_arrays is 'Jobs to push: arrays in parallel, all but queues may be NULL';
    end if;
end $$;

create table if not exists meta (
    only_one          boolean primary key default true check (only_one),
    version           int not null,
    protocol          int not null,
    min_protocol      int not null,
    installed_at      timestamptz not null default now(),
    system_identifier bigint not null,
    made_from         text,
    catalogs          text
);
comment on table meta is 'What is installed here: one row';
comment on column meta.protocol is 'The version of the worker functions. A worker whose protocol is older than '
    'min_protocol is rejected';
comment on column meta.system_identifier is 'The cluster in which the counters, ticks and cursors were made. In '
    'another cluster they are made anew';
comment on column meta.made_from is 'The scripts and roles of the last install. If these and catalogs are unchanged, '
    'an install has nothing to do';
comment on column meta.catalogs is 'A fingerprint of the functions, tables and rights after the last install';

insert into meta (version, protocol, min_protocol, system_identifier)
select 2, 1, 1, system_identifier from pg_control_system()
on conflict do nothing;

create table if not exists setting (
    name  text primary key,
    value text not null,
    note  text not null,
    constraint setting_limit check (name <> 'payload_limit' or value::bigint >= 1000),
    -- each step and each answer reads these settings: a value that is no number or no time would stop all of them
    constraint setting_number check (name !~ '_limit$' or value::bigint between 1 and 1000000000),
    constraint setting_time check (name !~ '^node_|_keep$'
                                   or value::interval between interval '1 s' and interval '36500 days')
);
comment on table setting is 'Limits and intervals of the whole installation';

insert into setting (name, value, note) values
    ('payload_limit', '10485760',
     'bytes of a payload or body, at least 1000; the push functions reject more (QT004), INSERT is not checked'),
    ('result_limit', '1048576', 'bytes of a result; complete refuses more (QT004)'),
    ('error_limit', '8192', 'characters of an error; more is cut'),
    ('trace_limit', '65536', 'characters of a trace; more is cut'),
    ('max_queues', '100000',
     'how many queues there may be; jobs of further names wait until there is room (raise it, or remove queues)'),
    ('node_late', '15 seconds', 'a node is late when its last heartbeat is older'),
    ('node_dead', '30 seconds', 'a node is dead when its last heartbeat is older'),
    ('node_keep', '1 day', 'how long a dead node is shown')
on conflict do nothing;

create or replace function setting_int(name text) returns bigint
language sql stable set search_path from current as
$$ select value::bigint from setting s where s.name = setting_int.name $$;
comment on function setting_int(text) is 'A limit of table setting as a number';

create or replace function setting_interval(name text) returns interval
language sql stable set search_path from current as
$$ select value::interval from setting s where s.name = setting_interval.name $$;
comment on function setting_interval(text) is 'An interval of table setting';

create or replace function slot_class() returns int language sql immutable parallel safe as $$ select 1364481111 $$;
comment on function slot_class() is 'The first key of the advisory lock of wait slot 0 (48_wake); slot n has this '
    'number + n';

-- 10_tables
-- The tables that hold jobs: queue (unfinished), work_queue (leases), history and attempt (by day), and the settings:
-- queue_config, node. What each index of queue is for:
--   queue_ready       the scheduler reads jobs in order from behind a cursor; completions find theirs by (queue,
--                     priority, seq)
--   queue_due         promotion of scheduled and retry jobs
--   queue_other       lists of jobs that are not ready
--   queue_failed      groups of errors
--   queue_failed_at   failed jobs, the newest first
--   queue_unique      one unfinished job a key
--   queue_keyed       the blocked jobs of each concurrency key, and how many of the key are ready
--   queue_expires     jobs that expire
-- A statement that looks for jobs by id and by state writes state::text. With the bare state the planner may read the
-- whole index of the jobs in that state, because it estimates that there are few of them.
-- On the path push -> claim -> complete no row of queue is ever updated.

create sequence if not exists job_seq as bigint;
comment on sequence job_seq is 'The order of jobs; a job that is retried, promoted or taken back gets a new number, '
    'so that old tokens miss it';
-- Steps of 200: the parts of a lease that is split get the numbers base + 1 to base + 99 (see split). A lease that has
-- to come before a free one gets one of the hundred numbers before it (see cut_front).
create sequence if not exists lease_seq as bigint increment 200 start 200;

create table if not exists queue (
    id            uuid not null,
    seq           bigint not null default nextval('job_seq'),
    created       timestamptz not null default now(),
    changed       timestamptz not null default now(),
    state         job_state not null default 'ready',
    priority      smallint not null default 5,
    tries         smallint not null default 0,
    max_tries     smallint,
    queue         text collate "C" not null,
    kind          text not null default '',
    payload       json,
    body          bytea,
    payload_type  text,
    unique_key    text collate "C",
    run_after     timestamptz,
    expires_at    timestamptz,
    lease_timeout interval,
    run_timeout   interval,
    error         text,
    error_key     text collate "C",
    origin_id     uuid,
    last_action   uuid,
    cancel_asked  timestamptz,
    concurrency_key text collate "C",
    -- no CHECK: each INSERT would pay for it; the trigger queue_pushed() rejects invalid rows
    constraint queue_pkey primary key (id)
);
-- A version 7 uuid: 48 bits of milliseconds, the 7, 12 random bits; then the variant and 62 bits, of which 52 are
-- random and the upper 22 are xored with the process: ids of two sessions differ even if both set the same seed.
-- gen_random_uuid() alone would cost more than all this.
alter table queue alter id set default
    ('0' || to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint << 16 | 28672 | (random() * 4095)::bigint)
         || to_hex((random() * 4503599627370495)::bigint # (pg_backend_pid()::bigint << 40) & 4611686018427387903
                   | -9223372036854775808))::uuid;
create unique index if not exists queue_ready on queue (queue, priority, seq) where state = 'ready';
create index if not exists queue_due on queue (run_after, seq) where state in ('scheduled', 'retry');
create index if not exists queue_other on queue (queue, seq) where state <> 'ready';
create index if not exists queue_failed on queue (queue, error_key, changed) where state = 'failed';
create index if not exists queue_failed_at on queue (changed, id) where state = 'failed';
create index if not exists queue_keyed on queue (state, queue, concurrency_key, priority, seq)
    where concurrency_key is not null;
create index if not exists queue_expires on queue (expires_at, seq) where expires_at is not null and state <> 'failed';
create unique index if not exists queue_unique on queue (queue, unique_key)
    where unique_key is not null and state <> 'failed';
alter table queue set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0);
comment on table queue is 'Jobs that are not finished. A plain INSERT of queue, payload and other columns that a '
    'pusher may set is a push';
comment on column queue.id is 'Version 7 uuid: time first';
comment on column queue.seq is 'The number of the job: its place in the queue, and what an answer must name beside the '
    'lease';
comment on column queue.created is 'When it was pushed';
comment on column queue.changed is 'When the job came into its present state';
comment on column queue.state is 'A running job is in state ready, too: it is in a claimed lease';
comment on column queue.priority is '0 (soonest) to 9';
comment on column queue.tries is 'Tries that ended without success';
comment on column queue.max_tries is 'NULL = the setting of the queue';
comment on column queue.payload is 'JSON, stored unchanged as text';
comment on column queue.body is 'A payload that is not JSON; payload_type names its type';
comment on column queue.unique_key is 'A queue has at most one unfinished job with this key; failed jobs do not count';
comment on column queue.concurrency_key is 'Of the jobs of a queue and key only max_per_key (a setting of the queue, 1 '
    'unless set) are ready at a time; the others wait in state blocked';
comment on column queue.run_after is 'The job is not claimed before this time';
comment on column queue.expires_at is 'A job that has not started by this time is cancelled, with the error '
    '"expired"';
comment on column queue.lease_timeout is 'How long a claim lasts without a heartbeat; NULL = the setting of the queue';
comment on column queue.run_timeout is 'How long the job may run; NULL = the setting of the queue';
comment on column queue.error_key is 'The group of the last error: its text without numbers, uuids and quoted parts';
comment on column queue.origin_id is 'The finished job that was requeued as this job';
comment on column queue.last_action is 'The last action of an operator that changed the job (audit)';
comment on column queue.cancel_asked is 'When an operator asked that the running job ends';

-- The columns that a claim changes are the last: the WAL of an update leaves out the part with which both versions of a
-- row begin.
create table if not exists work_queue (
    lease        bigint not null default nextval('lease_seq'),
    batch_order  int not null default 0,
    priority     smallint not null,
    max_tries    smallint,
    history      "char",
    scattered    boolean,
    queue        text collate "C" not null,
    seqs         bigint[] not null,
    lease_time   interval,
    run_timeout  interval,
    version      int not null default 0,
    lock_timeout timestamptz,
    started      timestamptz,
    lock_key     text collate "C",
    all_started  boolean,
    started_seqs bigint[],
    constraint work_queue_pkey primary key (lease)
) with (fillfactor = 50);
-- The index is on expressions, so that a statement that looks for leases by number can use only the primary key,
-- however few leases the planner estimates.
-- A statement that locks a list of leases in order says `order by lease + 0`: with `order by lease` the planner may
-- read the whole primary key and filter by the list.
create index if not exists work_queue_queue on work_queue ((queue || ''), (lease + 0));
alter table work_queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000);
comment on table work_queue is 'Leases: one row is one lease on a chunk of one queue''s jobs. A row without lock_key '
    'is a free lease. Free leases are made under the lock of the scheduler row only, so that they become visible in '
    'the order of their numbers';
comment on column work_queue.version is 'How often the lease has changed its holder. A claim sets the version; '
    'complete, fail, extend and give_back must name it';
comment on column work_queue.batch_order is 'The round of the scheduler step in which the lease was cut';
comment on column work_queue.seqs is 'The jobs (queue.seq) of the lease that are unfinished';
comment on column work_queue.started_seqs is 'The jobs that have been started, if not all have been. A crash counts as '
    'a try of these jobs';
comment on column work_queue.all_started is 'All jobs count as started; started_seqs is not used';
comment on column work_queue.lock_key is 'The node that holds the lease; NULL = free';
comment on column work_queue.lock_timeout is 'When the lease expires';
comment on column work_queue.max_tries is 'The setting of the queue when the lease was cut, so that a claim need not '
    'read queue_config; NULL = 5';
comment on column work_queue.history is 'The setting of the queue when the lease was cut: n none, m meta, NULL full';
comment on column work_queue.lease_time is 'How long a claim of the lease lasts if the worker names no time; NULL = 60 '
    's';
comment on column work_queue.run_timeout is 'The setting of the queue when the lease was cut';
comment on column work_queue.scattered is 'True: the jobs are far apart in the queue, so each is looked up. NULL: all '
    'numbers from the first to the last are read';

-- When a lease is cut, its jobs are neighbours in queue_ready: to read from the first to the last is cheaper than to
-- look up each. Later, late jobs may come between them, at most one for each number. So a lease is read as one range if
-- it has fewer than 1000 numbers for each job. If it has more (somebody pushed a million jobs meanwhile), each job is
-- looked up. If other jobs of the queue were between them already when the lease was cut (late ones, jobs with timeouts
-- of their own), the limit is 10 numbers for each job.
-- The three functions have no SET, so that they are inlined. Statements join the ranges in a LATERAL with OFFSET 0, as
-- leased_jobs() does, so that no plan reads the whole queue.
create or replace function scattered(seqs bigint[], gap int) returns boolean
language sql immutable parallel safe as $$
    select case when seqs[cardinality(seqs)] - seqs[1] >= gap * cardinality(seqs) then true end
$$;
comment on function scattered(bigint[], int) is 'The value of work_queue.scattered for a lease of these jobs: true if '
    'there are at least gap numbers for each job';

create or replace function ranges(seqs bigint[], scattered boolean) returns table (low bigint, high bigint)
language sql immutable parallel safe as $$
    select r.low, r.high
    from unnest(case when scattered then seqs else seqs[1:1] end,
                case when scattered then seqs else seqs[cardinality(seqs):] end) r (low, high)
$$;
comment on function ranges(bigint[], boolean) is 'The ranges of numbers to read for the jobs of a lease. There may be '
    'other jobs in these ranges, too';

create or replace function leased_jobs(queue text, priority smallint, seqs bigint[], scattered boolean)
returns setof queue
language sql stable as $$
    select j.* from ranges(leased_jobs.seqs, leased_jobs.scattered) r
    cross join lateral (
        select * from queue q
        where q.queue = leased_jobs.queue and q.priority = leased_jobs.priority and q.state = 'ready'
          and q.seq between r.low and r.high and leased_jobs.seqs[width_bucket(q.seq, leased_jobs.seqs)] = q.seq
        offset 0) j
$$;
comment on function leased_jobs(text, smallint, bigint[], boolean) is 'The unfinished jobs of a lease: its queue, '
    'priority, seqs and scattered';

create table if not exists queue_config (
    queue         text collate "C" primary key check (length(queue) between 1 and 200),
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    weight        int not null default 1 check (weight between 1 and 1000),
    max_running   int check (max_running >= 0),
    chunk         int check (chunk between 1 and 100),
    lease_timeout interval not null default '60 s' check (lease_timeout > interval '0'),
    run_timeout   interval check (run_timeout > interval '0'),
    max_tries     smallint not null default 5 check (max_tries >= 1),
    backoff_base  interval not null default '5 s' check (backoff_base >= interval '0'),
    backoff_max   interval not null default '1 h' check (backoff_max >= interval '0'),
    retention     interval not null default '7 d' check (retention > interval '0'),
    history       text not null default 'full' check (history in ('none', 'meta', 'full')),
    registered    timestamptz not null default now(),
    rate          numeric check (rate between 0.000001 and 1000000),
    burst         int check (burst between 1 and 1000000),
    max_per_key   int check (max_per_key between 1 and 1000000)
);
comment on table queue_config is 'The settings of a queue. The scheduler adds a row when it first sees a queue; a push '
    'does not read it';
comment on column queue_config.weight is 'The share of the queue in a cut when several queues wait';
comment on column queue_config.max_running is 'Concurrency limit: at most this many jobs in leases, claimed or free';
comment on column queue_config.rate is 'Rate limit: in a window of w seconds at most burst + rate * w jobs start; '
    'NULL = none';
comment on column queue_config.burst is 'How many jobs may start at once after a quiet time; NULL = one second of the '
    'rate, 1 at least';
comment on column queue_config.max_per_key is 'How many jobs of a concurrency key may be ready at a time; NULL = 1';
comment on column queue_config.chunk is 'How many jobs a lease holds; NULL = measured: about a second of work, less if '
    'weights differ';
comment on column queue_config.history is 'What is kept of finished jobs: none, meta (no payload, no result), full';

create table if not exists node (
    lock_key    text collate "C" primary key check (length(lock_key) between 1 and 200),
    session     uuid not null,
    host        text,
    pid         int,
    version     text,
    protocol    int,
    queues      text[],
    slots       int,
    started     timestamptz not null default now(),
    heartbeat   timestamptz not null default now(),
    state       text not null default 'up' check (state in ('up', 'draining')),
    backend_pid int
) with (fillfactor = 30);
comment on table node is 'Worker processes that registered (node_start). A worker may also claim without registration';
comment on column node.lock_key is 'The name of the node, and the lock_key of its leases';
comment on column node.session is 'A new uuid for each start of the process, so that two processes cannot share a name';
comment on column node.slots is 'How many jobs the node works on at a time. No chunk is larger than the largest number '
    'of the living nodes';

create table if not exists attempt (
    job     uuid not null,
    number  int not null,
    seq     bigint,
    queue   text collate "C" not null,
    node    text,
    started timestamptz,
    ended   timestamptz not null,
    outcome text not null check (outcome in ('failed', 'lost', 'timeout', 'cancelled')),
    error   text,
    trace   text
) partition by range (ended);
create index if not exists attempt_job on attempt (job, number);
comment on table attempt is 'One row for each attempt that failed or was lost; by day, like history';
comment on column attempt.number is 'The number of the try, from 1';

create or replace function own_id(id uuid) returns boolean
language sql immutable parallel safe as $$
    select (pg_catalog.get_byte(pg_catalog.uuid_send(id), 6) operator(pg_catalog.&) 240) operator(pg_catalog.<>) 112
$$;
comment on function own_id(uuid) is 'Whether the pusher chose the id: then it is no version 7 uuid';

create table if not exists history (
    id           uuid not null,
    created      timestamptz not null,
    started      timestamptz,
    finished     timestamptz not null,
    state        job_state not null, -- no CHECK: each statement would parse it anew; only our functions write here
    priority     smallint not null,
    tries        smallint not null,
    max_tries    smallint,
    queue        text collate "C" not null,
    kind         text not null,
    node         text,
    payload      json,
    body         bytea,
    payload_type text,
    result       bytea,
    error        text,
    unique_key   text collate "C",
    origin_id    uuid,
    last_action  uuid,
    kept         boolean not null default true,
    run_after    timestamptz,
    lease_timeout interval,
    run_timeout  interval,
    concurrency_key text collate "C"
) partition by range (finished);
create index if not exists history_queue on history (queue, finished);
-- On an expression instead of WHERE, so that no plan can read this index without a condition on the id.
create index if not exists history_id on history using brin ((case when not own_id(id) then id end))
    with (pages_per_range = 16, autosummarize = on);
create index if not exists history_own_id on history (id) where own_id(id);
comment on table history is 'Finished jobs, a partition for each day (UTC) of the time they finished. Purge drops '
    'partitions';
comment on column history.tries is 'All tries, including the successful one';
comment on column history.kept is 'Whether payload and body were kept (queue_config.history). Only then can the job be '
    'requeued';
comment on index history_id is 'Version 7 ids are nearly in the order of time, so a small BRIN index is enough for '
    'them';
comment on index history_own_id is 'Ids that the pusher chose are in no order, so each has an entry. Without such ids '
    'the index costs nothing';

-- Each of the two indexes is searched only for its own kind of ids. The function has settings and a plan of its own, so
-- that no statement reads all of history for an id.
create or replace function history_of(ids uuid[]) returns setof history
language plpgsql stable security definer parallel safe rows 1 set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_bitmapscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    made uuid[] := array(select i from unnest(ids) i where not own_id(i));
    own  uuid[] := array(select i from unnest(ids) i where own_id(i));
begin
    if made <> '{}' then
        return query select h.* from history h where case when not own_id(h.id) then h.id end = any(made);
    end if;
    if own <> '{}' then
        return query select h.* from history h where own_id(h.id) and h.id = any(own);
    end if;
end $$;
comment on function history_of(uuid[]) is 'The finished jobs with these ids, of version 7 or not; each is found by an '
    'index';

-- 20_counters
-- The tables of the scheduler and of the counters. A row that would be updated many times a second is APPENDED instead,
-- and old rows are deleted in ranges that nobody scans. VACUUM can't remove dead rows while a transaction elsewhere
-- stays open for an hour, but no query reads through them, so readers stay fast.
--   delta    what each statement changed, with its transaction id
--   fold     counter: the sum of all deltas that the fold's snapshot saw
--   tick     one row a scheduler step that did something: the snapshot of deltas it has seen, and hints
--   cursor   for each queue, how far each priority has been cut
--   mark     where the living leases begin, and which older ones still live
-- A reader adds to the newest fold the deltas that became visible since then: those whose xid was in progress at the
-- fold, or was at or above its xmax, or is that of the fold itself. So an open transaction elsewhere delays only its
-- own row.

create table if not exists delta (
    xid       xid8 not null default pg_current_xact_id(),
    queue     text collate "C" not null,
    at        timestamptz not null default now(),
    min_seq   bigint,
    max_seq   bigint,
    min_after timestamptz,
    run_ms    bigint,
    ready     int,
    scheduled int,
    retry     int,
    failed    int,
    pushed    int,
    completed int,
    fails     int,
    retried   int,
    cancelled int,
    lost      int,
    priority  smallint not null,
    error_key text collate "C",
    blocked   int,
    waits     int[],
    runs      int[]
);
create index if not exists delta_xid on delta (xid);
create index if not exists delta_key on delta (xid) where error_key is not null;
alter table delta set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
    autovacuum_vacuum_cost_delay = 0);
comment on table delta is 'What a statement changed in one queue and priority. The columns from ready to failed, and '
    'blocked, are signed; those from pushed to lost only grow';
comment on column delta.min_seq is 'Jobs became ready whose numbers are from min_seq to max_seq. Those behind the '
    'cursor are late, and the scheduler looks for them';
comment on column delta.min_after is 'Jobs began to wait for a time; the earliest is due at this time';
comment on column delta.error_key is 'If set, the row changes only the count of this group of errors (column failed), '
    'not the totals';
comment on column delta.waits is 'One element for each completed job: milliseconds from ready to start';
comment on column delta.runs is 'One element for each completed job: milliseconds from start to end';

create table if not exists fold (
    fold     bigint generated always as identity (start 2) primary key,
    at       timestamptz not null default now(),
    snapshot pg_snapshot not null,
    xid      xid8 not null,
    keep     boolean not null,
    swept    bigint[] not null default '{0,0,0}',
    rolled   boolean not null default false,
    ms       real not null default 0,
    chunk_queues text[],
    chunks   int[]
);
comment on table fold is 'One sum of the deltas: the rows of counter with the same number';
comment on column fold.snapshot is 'The deltas that are summed up: all that are visible in this snapshot, except those '
    'of xid';
comment on column fold.swept is 'Up to which tick, cursor, mark, minute, fold and newcomer the sweep after this fold '
    'has deleted. The next sweep starts there';
comment on column fold.chunks is 'What the chunk of each of chunk_queues should be; the next step takes these values '
    'over';
comment on column fold.ms is 'How long the sum took, if that was more than 25 ms. The next fold comes after 20 times '
    'as long, and after half a second at the earliest';
comment on column fold.rolled is 'Whether the deltas between the kept fold before this one and this one have been '
    'added to table minute';
comment on column fold.keep is 'Whether the fold is kept for 10 minutes (rates): one every 10 s. Kept folds also sum '
    'the groups of errors';

create table if not exists counter (
    fold      bigint not null,
    queue     text collate "C" not null,
    priority  smallint not null,
    error_key text collate "C",
    ready     bigint not null default 0,
    scheduled bigint not null default 0,
    retry     bigint not null default 0,
    failed    bigint not null default 0,
    pushed    bigint not null default 0,
    completed bigint not null default 0,
    fails     bigint not null default 0,
    retried   bigint not null default 0,
    cancelled bigint not null default 0,
    lost      bigint not null default 0,
    run_ms    bigint not null default 0,
    oldest    timestamptz,
    first_at  timestamptz,
    last_at   timestamptz,
    blocked   bigint not null default 0
);
create index if not exists counter_fold on counter (fold);
alter table counter set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
comment on table counter is 'The counts of one fold. error_key NULL: of a queue and priority. Otherwise: the failed '
    'jobs of one group of errors';
comment on column counter.oldest is 'Since when the oldest job that waits for a worker has been ready';

create table if not exists tick (
    tick     bigint generated always as identity (start 2) primary key,
    at       timestamptz not null default clock_timestamp(),
    snapshot pg_snapshot not null,
    xid      xid8 not null default pg_current_xact_id(),
    want     int not null,
    weights  numeric not null,
    free     bigint not null,
    jobs     int not null,
    filled   int not null default 0,
    more     boolean not null,
    cut_at   timestamptz not null default clock_timestamp(),
    rate     real not null default 0,
    hasty    boolean not null default false,
    after    timestamptz not null,
    after_seq bigint not null default 0,
    mark_at  timestamptz not null,
    day_at   timestamptz not null,
    waiting  text[] not null default '{}',
    place    text,
    again    boolean not null default false,
    settled  text,
    patrol   text not null default '',
    slots    int,
    joining  boolean not null default false,
    known    bigint not null default 0,
    names    int,
    limited  text[] not null default '{}',
    limits   text,
    measured bigint not null default 0,
    trimmed  text not null default ''
);
comment on table tick is 'Scheduler steps that did something; the newest row counts';
comment on column tick.snapshot is 'The deltas that steps have seen so far';
comment on column tick.want is 'How many free jobs the scheduler keeps in work_queue';
comment on column tick.weights is 'Sum of the weights of the queues that waited';
comment on column tick.free is 'No free lease has a lower number: claims start here';
comment on column tick.jobs is 'Free jobs in work_queue when the step was over';
comment on column tick.filled is 'Free jobs after the last cut of all queues. The next such cut comes when half of '
    'them have been claimed';
comment on column tick.cut_at is 'When the last cut was made';
comment on column tick.rate is 'How many jobs are claimed a second, estimated';
comment on column tick.hasty is 'Some node works only some queues: the free jobs of these may run out while other '
    'queues have many';
comment on column tick.more is 'Jobs were left uncut';
comment on column tick.waiting is 'Queues that may have uncut jobs, 500 at most. A cut of all queues looks at these, '
    'and not at every queue that exists. A paused or limited queue is in none of these lists; what ends the pause '
    'writes a delta';
comment on column tick.place is 'Set if more queues than fit in waiting may have uncut jobs: the steps go through all '
    'names, and this was the last name. NULL = waiting is complete';
comment on column tick.again is 'A queue still had uncut jobs when waiting was full: the steps go through all names '
    'once more';
comment on column tick.settled is 'After a take-over the scheduler looks at every queue from its first job on; this '
    'was the last queue that it looked at. NULL = it has looked at all';
comment on column tick.patrol is 'Once a second the scheduler looks at the next hundred queues, whatever the lists '
    'say; this was the last name';
comment on column tick.slots is 'The most slots of a living node, a second old at most. A cut reads this instead of '
    'table node, whose heartbeats leave dead rows. NULL = no node gives its slots';
comment on column tick.joining is 'New names are in newcomer; each step makes some of them known';
comment on column tick.known is 'Rows of newcomer up to this number are known';
comment on column tick.names is 'How many queues there are, a second old at most; NULL = not counted';
comment on column tick.limited is 'Queues with limits that may have uncut jobs, 500 at most. Only these are looked at '
    'when a token is due';
comment on column tick.limits is 'Set if more queues with limits than fit in limited may have uncut jobs: the steps go '
    'through all queues with limits, and this was the last name. NULL = limited is complete';
comment on column tick.measured is 'The chunks that folds up to this number have measured have been taken over';
comment on column tick.trimmed is 'The history of queues up to this name has been looked through, see retain()';
comment on column tick.after is 'Waiting jobs that were due before this time have been promoted; of those due exactly '
    'then, the ones up to number after_seq';

create table if not exists cursor (
    n     bigint generated always as identity,
    queue text collate "C" not null,
    seq   bigint[] not null,
    high  bigint[] not null,
    low   bigint not null default 0,
    chunk int not null default 10
);
create unique index if not exists cursor_queue on cursor (queue, n desc);
-- on (n + 0) and not on n: otherwise the planner would look for a queue's newest row in this index
create index if not exists cursor_number on cursor ((n + 0));
alter table cursor set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
comment on table cursor is 'How far each queue has been cut; the newest row of a queue counts';
comment on column cursor.seq is 'For each priority (0 first): jobs up to this number have been cut; NULL = the '
    'priority has had no job';
comment on column cursor.high is 'For each priority: jobs up to this number may be in a lease, so a cut that starts '
    'below it looks at the leases first';
comment on column cursor.low is 'No free lease of the queue has a lower number';
comment on column cursor.chunk is 'How many jobs a lease should hold, measured';

create table if not exists newcomer (
    n        bigint generated always as identity primary key,
    queue    text collate "C" not null,
    priority smallint not null,
    seq      bigint not null
);
alter table newcomer set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
comment on table newcomer is 'New names of queues, if more came than a step takes. The next steps make them known, in '
    'this order (tick.known)';
comment on column newcomer.seq is 'The first job that was seen: its cursor starts before it';

create table if not exists mark (
    n     bigint generated always as identity (start 2) primary key,
    mark  bigint not null,
    older bigint[] not null
);
comment on table mark is 'Where the living leases are: those with number mark or above, and the older ones in the '
    'list; the newest row counts';

create table if not exists scheduler (
    term   bigint generated by default as identity primary key,
    holder text not null,
    until  timestamptz not null
);
insert into scheduler (term, holder, until) values (0, 'lock', '-infinity'), (-1, 'fold', '-infinity')
on conflict do nothing;
comment on table scheduler is 'Row 0 is the lock for everybody who makes free leases; row -1 is the lock for the '
    'session that folds the counters. The newest row names the active scheduler';

-- The first rows name their numbers: with wal_level minimal, a sequence that is used in the transaction that creates it
-- would give the same 32 numbers again after a crash.
insert into fold (fold, snapshot, xid, keep) overriding system value
select 1, pg_current_snapshot(), pg_current_xact_id(), true where not exists (select from fold);
insert into tick (tick, snapshot, want, weights, free, jobs, more, after, mark_at, day_at) overriding system value
select 1, pg_current_snapshot(), 20, 1, 0, 0, true, '-infinity', now(), '-infinity' where not exists (select from tick);
insert into mark (n, mark, older) overriding system value select 1, 0, '{}' where not exists (select from mark);

-- 30_push
-- Pushing: the triggers that count jobs, and the functions push, push_text, push_bytes and push_many. A plain INSERT
-- into queue does the same. The functions add three things: the id of the job that a duplicate meets, delays by the
-- server's clock, and limits of size.

create or replace function uuid_v7() returns uuid language sql volatile as -- no SET: so it can be inlined
$$ select pg_catalog.concat('0',
                            pg_catalog.to_hex((pg_catalog.date_part('epoch',
                                                                    pg_catalog.clock_timestamp()) operator(pg_catalog.*)
                                                                    1000)::bigint
        operator(pg_catalog.<<) 16 operator(pg_catalog.|) 28672 operator(pg_catalog.|)
        (pg_catalog.random() operator(pg_catalog.*) 4095)::bigint),
    pg_catalog.to_hex((pg_catalog.random() operator(pg_catalog.*) 4503599627370495)::bigint
        operator(pg_catalog.#) (pg_catalog.pg_backend_pid()::bigint operator(pg_catalog.<<) 40)
        operator(pg_catalog.&) 4611686018427387903 operator(pg_catalog.|) -9223372036854775808))::pg_catalog.uuid $$;
comment on function uuid_v7() is 'A version 7 uuid: 48 bits of milliseconds, then random bits; the default of queue.id';

-- Triggers of queue. Every statement that touches the table parses anew what the catalog keeps as text (CHECK
-- constraints, WHEN of triggers), and a plan pays for each column and function call in it. So queue has no CHECK. The
-- statement trigger sees the rows anyway: it rejects invalid rows, and its fast path (one job, ready at once, no rare
-- column) is one small INSERT.
-- The trigger is SECURITY DEFINER, so the search_path of the pusher must not decide what runs in it. SET search_path
-- would cost time at each call: instead the text below names every object with its schema, which is filled in at the
-- installation.

create or replace function job_fault(queue text, kind text, priority int, two_payloads boolean, max_tries int,
    lease_timeout interval,
    run_timeout interval, unique_key text, concurrency_key text) returns text
language sql immutable set search_path from current as $$
    select case
        when queue is null then 'a job needs the name of a queue'
        when not length(queue) between 1 and 200 then format('the name of a queue has 1 to 200 characters, not %s',
                length(queue))
        when length(kind) > 200 then format('a kind has 200 characters at most, not %s', length(kind))
        when not priority between 0 and 9 then format('a priority is 0 (soonest) to 9, not %s', priority)
        when two_payloads then 'a job has a payload or a body, not both'
        when not max_tries between 1 and 32767 then format('max_tries is 1 to 32767, not %s', max_tries)
        when lease_timeout <= interval '0' or run_timeout <= interval '0' then 'a timeout is longer than zero'
        when lease_timeout > interval '365 days' or run_timeout > interval '365 days'
             -- months and days of opposite signs look small
             or not (timestamp '2001-01-01' + lease_timeout <= timestamp '2002-01-01')
             or not (timestamp '2001-01-01' + run_timeout <= timestamp '2002-01-01')
            then 'a timeout is 365 days at most'
        when length(unique_key) > 1000
            or length(concurrency_key) > 1000 then 'a unique key or concurrency key has 1000 characters at most' end
$$;
comment on function job_fault(text, text, int, boolean, int, interval, interval, text, text) is 'Why a job with these '
    'values is invalid; NULL = it is valid';

-- Only a schedule may push a key that begins with "cron:". A schedule with `unique` pushes under its own key, so
-- whoever pushed that key first would keep the schedule from running. cron_push() inserts the row of the run before it
-- pushes, in the same transaction, without a job and without an error: only such a row allows the key.
create or replace function cron_key_fault(unique_key text) returns text
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    named text := substr(unique_key, 6);
begin
    if exists (select from schedule s
               cross join lateral ( -- OFFSET 0: a join would also read the dead rows of earlier runs
                   select r.due from cron_run r
                   where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity')
                     and r.job is null and r.error is null and not r.pushed offset 0) r
               where s.name in (named, regexp_replace(named, ':[0-9]+-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$', ''))
                 and cron_key(s, r.due) = cron_key_fault.unique_key) then
        return null;
    end if;
    return 'a unique key that begins with "cron:" is for the jobs of schedules';
end $$;
comment on function cron_key_fault(text) is 'Why a job may not have this unique key, which begins with "cron:"; NULL = '
    'a schedule pushes the key in this transaction';

do $do$ begin execute format($make$
create or replace function queue_pushed() returns trigger
language plpgsql security definer as $body$
declare
    fault pg_catalog.text;
begin
    -- If the lock is taken, a worker waits for a push: notify it. quiet: the transaction is to be prepared, and PREPARE
    -- TRANSACTION refuses a transaction that has notified.
    if coalesce(pg_catalog.current_setting('queuetop.quiet', true), '') operator(pg_catalog.<>) 'on'
       and not pg_catalog.pg_try_advisory_xact_lock_shared(%2$s, tg_relid::int) then
        perform pg_catalog.pg_notify(pg_catalog.concat('queuetop_', tg_relid), '');
    end if;
    insert into %1$I.delta (queue, priority, pushed, ready, min_seq, max_seq)
    select p.queue, p.priority, 1, 1, p.seq, p.seq from pushed p
    where p.state operator(pg_catalog.=) 'ready'::%1$I.job_state and p.queue operator(pg_catalog.<>) ''
      and pg_catalog.octet_length(p.queue operator(pg_catalog.||) p.kind) operator(pg_catalog.<=) 200
      and p.priority operator(pg_catalog.>=) 0 and p.priority operator(pg_catalog.<=) 9
      and (p.payload is null or p.body is null)
      and p.max_tries is null and p.lease_timeout is null and p.run_timeout is null and p.unique_key is null
      and (p.payload_type is null or pg_catalog.octet_length(p.payload_type) operator(pg_catalog.<=) 200)
      and not exists (select from pushed offset 1);
    if not found then
        select z.fault into fault
        from (select coalesce(%1$I.job_fault(p.queue, p.kind, p.priority, p.payload is not null and p.body is not null,
                                             p.max_tries,
                                             p.lease_timeout, p.run_timeout, p.unique_key, p.concurrency_key),
                              case when pg_catalog.octet_length(p.payload_type) operator(pg_catalog.>) 200
                                   then 'a payload type has 200 bytes at most' end,
                              case when p.last_action is null and pg_catalog.starts_with(p.unique_key, 'cron:')
                                   then %1$I.cron_key_fault(p.unique_key) end) as fault
              from pushed p
              where p.queue operator(pg_catalog.=) '' or p.priority operator(pg_catalog.<) 0
                or p.priority operator(pg_catalog.>) 9
                 or pg_catalog.octet_length(p.queue operator(pg_catalog.||) p.kind) operator(pg_catalog.>) 200
                 or p.payload is not null and p.body is not null or p.payload_type is not null
                 or p.max_tries is not null or p.lease_timeout is not null
                 or p.run_timeout is not null or p.unique_key is not null or p.concurrency_key is not null) z
        where z.fault is not null limit 1;
        if found then
            raise '%%', fault using errcode = '23514', schema = tg_table_schema, table = tg_table_name,
                constraint = 'queue_valid';
        end if;
        insert into %1$I.delta (queue, priority, pushed, ready, scheduled, retry, failed, blocked, min_seq, max_seq,
                                min_after)
        select g.queue, g.priority, g.n, case when g.state operator(pg_catalog.=) 'ready' then g.n else 0 end,
               case when g.state operator(pg_catalog.=) 'scheduled' then g.n end,
               case when g.state operator(pg_catalog.=) 'retry' then g.n end,
               case when g.state operator(pg_catalog.=) 'failed' then g.n end,
               case when g.state operator(pg_catalog.=) 'blocked' then g.n end,
               case when g.state operator(pg_catalog.=) 'ready' then g.low end,
               case when g.state operator(pg_catalog.=) 'ready' then g.high end,
               case when g.state operator(pg_catalog.=) 'scheduled'
                    or g.state operator(pg_catalog.=) 'retry' then g.due end
        from (select p.queue, p.priority, p.state, pg_catalog.count(*) as n, pg_catalog.min(p.seq) as low,
                     pg_catalog.max(p.seq) as high,
                     pg_catalog.min(p.run_after) as due
              from pushed p group by p.queue, p.priority, p.state) g;
    end if;
    return null;
end $body$
$make$, current_schema(), slot_class()); end $do$;
comment on function queue_pushed() is 'Statement trigger of queue: rejects invalid jobs, writes the counts of an '
    'INSERT to delta, notifies a waiting worker';

create or replace function queue_special() returns trigger
language plpgsql set search_path from current as $$
begin
    if new.state = 'ready' then
        if new.run_after > now() then
            new.state := 'scheduled';
        elsif new.concurrency_key is not null then
            new.state := 'blocked';
        end if;
    end if;
    return new;
end $$;
comment on function queue_special() is 'Row trigger of queue: a job with a later run_after becomes scheduled, one with '
    'a concurrency key becomes blocked';

create or replace function queue_changed() returns trigger
language plpgsql set search_path from current as $$
declare
    fault text := job_fault(new.queue, new.kind, new.priority, new.payload is not null and new.body is not null, null,
                            null, null, null, null);
begin
    if fault is not null then
        raise '%', fault using errcode = '23514', schema = tg_table_schema, table = tg_table_name,
            constraint = 'queue_valid';
    end if;
    return new;
end $$;
comment on function queue_changed() is 'Row trigger of queue: an UPDATE may not set a queue, kind, priority or payload '
    'that a push may not set';

do $$
begin
    if not exists (select from pg_trigger where tgrelid = 'queue'::regclass and tgname = 'queue_pushed') then
        create trigger queue_pushed after insert on queue referencing new table as pushed
            for each statement execute function queue_pushed();
    end if;
    if not exists (select from pg_trigger where tgrelid = 'queue'::regclass and tgname = 'queue_special') then
        create trigger queue_special before insert on queue for each row
            when (new.run_after is not null or new.concurrency_key is not null)
            execute function queue_special();
    end if;
    if not exists (select from pg_trigger where tgrelid = 'queue'::regclass and tgname = 'queue_changed') then
        create trigger queue_changed before update of queue, kind, priority, payload, body on queue for each row
            execute function queue_changed();
    end if;
end $$;

create or replace function check_size(size bigint) returns void
language plpgsql stable set search_path from current as $$
begin
    if size > setting_int('payload_limit') then
        raise 'payload of % bytes is more than the limit of %', size, setting_int('payload_limit')
            using errcode = 'QT004', hint = 'table setting, payload_limit';
    end if;
end $$;
comment on function check_size(bigint) is 'Raises QT004 if a payload is larger than the setting payload_limit';

create or replace function push_twin(id uuid, queue text, unique_key text, again boolean) returns uuid
language sql stable set search_path from current as $$
    select coalesce(
        (select q.id from queue q where q.id = push_twin.id),
        (select q.id from queue q where q.queue = push_twin.queue and q.unique_key = push_twin.unique_key
           and q.state <> 'failed'),
        case when again then (select h.id from history_of(array[push_twin.id]) h limit 1) end)
$$;
comment on function push_twin(uuid, text, text, boolean) is 'The job that a push conflicts with: it has the same id, '
    'or it is unfinished and has the same unique key. again: also a finished job with this id';

create or replace function push_withdraw(ids uuid[], before boolean default false) returns void
language sql set search_path from current as $$
    with withdrawn as (delete from queue q where q.id = any(push_withdraw.ids) returning q.queue, q.priority, q.state)
    insert into delta (queue, priority, ready, scheduled, blocked, pushed)
    select queue, priority, -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
           -count(*) filter (where state = 'blocked'), case when before then 0 else -count(*) end
    from withdrawn group by queue, priority
$$;
comment on function push_withdraw(uuid[], boolean) is 'Deletes jobs that were pushed and are not wanted: this '
    'transaction pushed them although they had finished already. before: an earlier transaction pushed them, so they '
    'stay counted as pushed, in the minute of that push';

-- An id is looked up in history by its index, whatever the planner estimates: without statistics it would read all of
-- history.
create or replace function push_row(job queue, again boolean, out id uuid, out pushed boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = on set jit = off as $$
#variable_conflict use_column
begin
    for round in 1 .. 10 loop
        insert into queue as q (id, queue, kind, priority, payload, body, payload_type, run_after, expires_at,
                                unique_key, concurrency_key, max_tries, run_timeout, lease_timeout)
        values (job.id, job.queue, coalesce(job.kind, ''), coalesce(job.priority, 5), job.payload, job.body,
                job.payload_type, job.run_after, job.expires_at, job.unique_key, job.concurrency_key, job.max_tries,
                job.run_timeout, job.lease_timeout)
        on conflict do nothing returning q.id into push_row.id;
        pushed := found;
        if pushed and again and exists (select from history_of(array[job.id])) then
            perform push_withdraw(array[job.id]);
            pushed := false;
        elsif not pushed then
            push_row.id := push_twin(job.id, job.queue, job.unique_key, again);
        end if;
        exit when push_row.id is not null;
    end loop;
    if push_row.id is null then
        raise 'cannot push: other sessions keep pushing and finishing the same job' using errcode = '40001';
    end if;
end $$;
comment on function push_row(queue, boolean) is 'Inserts one job, or returns the id of the job that it conflicts with '
    '(push_twin). If that job finishes meanwhile, it tries again, up to 10 times';

create or replace function job_check(queue text, priority int, max_tries int, unique_key text, concurrency_key text)
returns void
language plpgsql stable set search_path from current as $$
declare
    fault text := job_fault(queue, '', coalesce(priority, 5), false, max_tries, null, null, unique_key,
                            concurrency_key);
begin
    if fault is not null then
        raise '%', fault using errcode = '23514', schema = current_schema(), table = 'queue',
            constraint = 'queue_valid';
    end if;
end $$;
comment on function job_check(text, int, int, text, text) is 'Raises if the columns of queue can''t hold these values. '
    'It is called before the INSERT, because the trigger sees only values that fit the columns';

create or replace function later(delay interval) returns timestamptz
language plpgsql stable set search_path from current as $$
begin
    if abs(extract(year from delay)) > 100 or abs(extract(day from delay)) > 36600
       or abs(extract(hour from delay)) > 878400 then
        raise 'a delay is 100 years at most, not %', delay using errcode = 'QT007';
    end if;
    return now() + delay;
end $$;
comment on function later(interval) is 'The time that lies this delay ahead; raises if the delay is longer than 100 '
    'years';

create or replace function push_special(queue text, payload json, kind text, priority int, run_after timestamptz,
    unique_key text,
    max_tries int, run_timeout interval, lease_timeout interval, inout id uuid, expires_at timestamptz,
    concurrency_key text,
    out pushed boolean)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    job queue;
begin
    if octet_length(payload::text) > 1000 then
        perform check_size(octet_length(payload::text));
    end if;
    perform job_check(push_special.queue, priority, max_tries, unique_key, concurrency_key)
    where (length(push_special.queue) <= 200) is not true or priority not between 0 and 9
       or max_tries not between 1 and 32767 or length(unique_key) > 1000 or length(concurrency_key) > 1000;
    if id is null and unique_key is null then
        insert into queue as q (queue, kind, priority, payload, run_after, expires_at, concurrency_key, max_tries,
                                run_timeout, lease_timeout)
        values (push_special.queue, coalesce(kind, ''), coalesce(priority, 5), payload, run_after, expires_at,
                concurrency_key, max_tries, run_timeout, lease_timeout)
        returning q.id into push_special.id;
        pushed := true;
        return;
    end if;
    job.id := coalesce(id, uuid_v7());
    job.queue := push_special.queue;
    job.kind := kind;
    job.priority := priority;
    job.payload := payload;
    job.run_after := run_after;
    job.expires_at := expires_at;
    job.unique_key := unique_key;
    job.concurrency_key := concurrency_key;
    job.max_tries := max_tries;
    job.run_timeout := run_timeout;
    job.lease_timeout := lease_timeout;
    select r.id, r.pushed into push_special.id, push_special.pushed from push_row(job, id is not null) r;
end $$;
comment on function push_special(text, json, text, int, timestamptz, text, int, interval, interval, uuid, timestamptz,
    text) is
    'push() of a job that is large or sets a rarely used column';


do $do$ begin execute format($make$ -- names with their schema instead of SET search_path, as in queue_pushed()
create or replace function push(queue text, payload json default null, kind text default '', priority int default 5,
    run_after timestamptz default null, delay interval default null, unique_key text default null,
    max_tries int default null, run_timeout interval default null, lease_timeout interval default null,
    inout id uuid default null, expires_at timestamptz default null, concurrency_key text default null,
    out pushed boolean)
language plpgsql security definer as $body$
#variable_conflict use_column
begin
    if run_after is null and delay is null and unique_key is null and max_tries is null and run_timeout is null
       and lease_timeout is null and id is null and expires_at is null and concurrency_key is null
       and (pg_catalog.octet_length(payload::pg_catalog.text) operator(pg_catalog.<=) 1000) is not false
       and pg_catalog.octet_length(queue) operator(pg_catalog.<=) 200
       and (priority operator(pg_catalog.>=) 0 and priority operator(pg_catalog.<=) 9) is not false then
        insert into %1$I.queue as q (queue, kind, priority, payload)
        values (push.queue, coalesce(kind, ''), coalesce(priority, 5), payload)
        returning q.id into push.id;
        pushed := true;
    else
        select r.id, r.pushed into push.id, push.pushed
        from %1$I.push_special(queue, payload, kind, priority, coalesce(run_after, %1$I.later(delay)), unique_key,
                               max_tries, run_timeout, lease_timeout, id, expires_at, concurrency_key) r;
    end if;
end $body$
$make$, current_schema()); end $do$;
comment on function push(text, json, text, int, timestamptz, interval, text, int, interval, interval, uuid, timestamptz,
    text) is
    'Adds a job with a JSON payload and returns its id. If there is a job with the same id, or an unfinished one with '
    'the same unique key, pushed is false and id is the id of that job';

create or replace function push_bytes(queue text, body bytea, payload_type text default 'application/octet-stream',
    kind text default '', priority int default 5, run_after timestamptz default null, delay interval default null,
    unique_key text default null, max_tries int default null, run_timeout interval default null,
    lease_timeout interval default null, inout id uuid default null, expires_at timestamptz default null,
    concurrency_key text default null, out pushed boolean)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    job queue;
begin
    perform check_size(octet_length(body));
    perform job_check(push_bytes.queue, priority, max_tries, unique_key, concurrency_key)
    where (length(push_bytes.queue) <= 200) is not true or priority not between 0 and 9
       or max_tries not between 1 and 32767 or length(unique_key) > 1000 or length(concurrency_key) > 1000;
    job.id := coalesce(id, uuid_v7());
    job.queue := push_bytes.queue;
    job.body := body;
    job.payload_type := payload_type;
    job.kind := kind;
    job.priority := priority;
    job.run_after := coalesce(run_after, later(delay));
    job.unique_key := unique_key;
    job.max_tries := max_tries;
    job.run_timeout := run_timeout;
    job.lease_timeout := lease_timeout;
    job.expires_at := expires_at;
    job.concurrency_key := concurrency_key;
    select r.id, r.pushed into push_bytes.id, push_bytes.pushed from push_row(job, id is not null) r;
end $$;
comment on function push_bytes(text, bytea, text, text, int, timestamptz, interval, text, int, interval, interval,
    uuid, timestamptz, text) is
    'push() for bytes of any type';

create or replace function push_text(queue text, body text, payload_type text default 'text/plain',
    kind text default '', priority int default 5, run_after timestamptz default null, delay interval default null,
    unique_key text default null, max_tries int default null, run_timeout interval default null,
    lease_timeout interval default null, inout id uuid default null, expires_at timestamptz default null,
    concurrency_key text default null, out pushed boolean)
language sql security definer set search_path from current as $$
    select * from push_bytes(queue, convert_to(body, 'UTF8'), payload_type, kind, priority, run_after, delay,
                             unique_key, max_tries, run_timeout, lease_timeout, id, expires_at, concurrency_key)
$$;
comment on function push_text(text, text, text, text, int, timestamptz, interval, text, int, interval, interval, uuid,
    timestamptz, text) is
    'push() for text that is not JSON; stored as its UTF-8 bytes. It has a name of its own: with one name for both, a '
    'plain literal would be taken for text instead of json without a warning';

create or replace function rows_of(given job_arrays)
returns table (id uuid, queue text, kind text, priority int, payload text, body bytea, type text,
               run_after timestamptz, delay interval, expires_at timestamptz, expires_in interval, unique_key text,
               concurrency_key text, tries int, run_timeout interval, lease_timeout interval)
language sql stable as $$
    select * from unnest(given.ids, given.queues, given.kinds, given.priorities, given.payloads, given.bodies,
                         given.types, given.run_afters, given.delays, given.expires_ats, given.expires_ins,
                         given.unique_keys, given.concurrency_keys, given.max_tries, given.run_timeouts,
                         given.lease_timeouts)
$$;
comment on function rows_of(job_arrays) is 'One row a job, in the order given. No SET, so that it is inlined';

create or replace function push_rows(given job_arrays) returns void
language plpgsql as $$
#variable_conflict use_column
begin
    with numbered as materialized (
        select nextval('job_seq') as seq, g.* from rows_of(given) g
    )
    insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, expires_at, unique_key,
                       concurrency_key, max_tries, run_timeout, lease_timeout)
    select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
           coalesce(run_after, now() + delay), coalesce(expires_at, now() + expires_in), unique_key, concurrency_key,
           tries, run_timeout, lease_timeout
    from numbered order by id;
end $$;
comment on function push_rows(job_arrays) is 'Inserts jobs that conflict with none, in one INSERT. The numbers (seq) '
    'follow the order of the call. The rows are inserted in the order of their ids, as in push_new, so that two calls '
    'with the same ids do not deadlock';

create or replace function push_new(given job_arrays, again boolean, out seqs bigint[], out made bigint[],
    out old uuid[])
language plpgsql as $$
#variable_conflict use_column
declare
    made_ids uuid[];
begin
    -- The rows are inserted in the order of the keys, and of the ids if there is no key, so that two calls with the
    -- same keys or ids do not deadlock. If several jobs have one key or one id, the first is inserted.
    with numbered as materialized (
        select nextval('job_seq') as seq, g.* from rows_of(given) g
    ), inserted as (
        insert into queue (seq, id, queue, kind, priority, payload, body, payload_type, run_after, expires_at,
                           unique_key, concurrency_key, max_tries, run_timeout, lease_timeout)
        select seq, id, queue, coalesce(kind, ''), coalesce(priority, 5), payload::json, body, type,
               coalesce(run_after, now() + delay), coalesce(expires_at, now() + expires_in), unique_key,
               concurrency_key, tries, run_timeout, lease_timeout
        from (select n.*, row_number() over (partition by n.id order by n.seq) as nth from numbered n) f where nth = 1
        order by queue, unique_key, case when unique_key is null then id end, seq
        on conflict do nothing returning id, seq)
    select (select array_agg(seq order by seq) from numbered), coalesce(array_agg(seq order by seq), '{}'),
           array_agg(id)
    from inserted into seqs, made, made_ids;
    old := '{}';
    if again then
        select coalesce(array_agg(h.id), '{}') into old from history_of(made_ids) h;
        perform push_withdraw(old) where old <> '{}';
    end if;
end $$;
comment on function push_new(job_arrays, boolean) is 'Inserts those of the jobs that conflict with none. seqs: the '
    'number of each job in the order of the call; made: the numbers that were inserted; old: ids of jobs that had '
    'finished already, which are deleted again (looked for only if again is true)';

create or replace function job_of(given job_arrays, i int) returns queue
language plpgsql stable as $$
declare
    job queue;
begin
    job.id := given.ids[i];
    job.queue := given.queues[i];
    job.kind := given.kinds[i];
    job.priority := given.priorities[i];
    job.payload := given.payloads[i]::json;
    job.body := given.bodies[i];
    job.payload_type := given.types[i];
    job.run_after := coalesce(given.run_afters[i], now() + given.delays[i]);
    job.expires_at := coalesce(given.expires_ats[i], now() + given.expires_ins[i]);
    job.unique_key := given.unique_keys[i];
    job.concurrency_key := given.concurrency_keys[i];
    job.max_tries := given.max_tries[i];
    job.run_timeout := given.run_timeouts[i];
    job.lease_timeout := given.lease_timeouts[i];
    return job;
end $$;
comment on function job_of(job_arrays, int) is 'The i-th of these jobs as a row of queue, for push_row()';

create or replace function many_check(given job_arrays) returns void
language plpgsql stable as $$
begin
    perform job_check(g.queue, g.priority, g.tries, g.unique_key, g.concurrency_key)
    from unnest(given.ids, given.queues, given.priorities, given.max_tries, given.unique_keys, given.concurrency_keys)
         g (id, queue, priority, tries, unique_key, concurrency_key);
    perform later(d) from unnest(given.delays) d;
    perform later(d) from unnest(given.expires_ins) d;
end $$;
comment on function many_check(job_arrays) is 'job_check() and later() for many jobs';

create or replace function push_many(ids uuid[], queues text[], kinds text[] default null,
    priorities int[] default null, run_afters timestamptz[] default null, delays interval[] default null,
    unique_keys text[] default null, max_tries int[] default null, run_timeouts interval[] default null,
    lease_timeouts interval[] default null, payloads text[] default null, bodies bytea[] default null,
    types text[] default null, again boolean default false, expires_ats timestamptz[] default null,
    expires_ins interval[] default null, concurrency_keys text[] default null)
returns table (n int, id uuid, pushed boolean)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = on set jit = off as $$
#variable_conflict use_column
declare
    many    int := greatest(coalesce(cardinality(queues), 0), cardinality(ids));
    new_ids uuid[] := array(select coalesce(ids[i], uuid_v7()) from generate_series(1, many) i);
    given   job_arrays := (new_ids, queues, kinds, priorities, payloads, bodies, types, run_afters, delays,
                           expires_ats, expires_ins, unique_keys, concurrency_keys, push_many.max_tries, run_timeouts,
                           lease_timeouts);
    fresh   record; -- the result of push_new()
begin
    perform check_size(max(s)) from (select max(octet_length(x)) as s from unnest(payloads) x
                                     union all select max(octet_length(x)) from unnest(bodies) x) z;
    if not again and array_remove(unique_keys, null) = '{}' is not false then
        begin
            perform push_rows(given);
            return query select o::int, u, true from unnest(new_ids) with ordinality v (u, o);
            return;
        exception when unique_violation then
            null; -- some id exists already: find out which
        when not_null_violation then
            raise 'no array has more elements than queues and ids, and each of these names a queue'
                using errcode = '23514', schema = current_schema(), table = 'queue', constraint = 'queue_valid';
        when numeric_value_out_of_range or datetime_field_overflow or program_limit_exceeded then
            perform many_check(given);
            raise;
        end;
    end if;
    perform many_check(given);
    fresh := push_new(given, again);
    if cardinality(fresh.made) = many and fresh.old = '{}' then
        return query select o::int, u, true from unnest(new_ids) with ordinality v (u, o);
        return;
    end if;
    for i in 1 .. many loop
        n := i;
        id := new_ids[i];
        pushed := coalesce(fresh.made[width_bucket(fresh.seqs[i], fresh.made)] = fresh.seqs[i], false)
                  and id <> all(fresh.old);
        if not pushed and id <> all(fresh.old) then
            id := push_twin(new_ids[i], queues[i], unique_keys[i], again);
        end if;
        if id is null then -- the job that it conflicted with has finished meanwhile
            select r.id, r.pushed into push_many.id, push_many.pushed from push_row(job_of(given, i), again) r;
        end if;
        return next;
    end loop;
end $$;
comment on function push_many is 'Pushes many jobs in one statement; arrays in parallel, all but queues may be NULL. '
    'again: also looks for the ids among finished jobs. Set it for a push that is sent a second time after a lost '
    'answer, and for ids that the caller chooses';

-- 40_schedule
-- The parts of the scheduler's step. `queuetop schedule` calls schedule(holder) again and again; a claim that finds
-- nothing calls it once, if no scheduler lives. Everything in this file runs under the lock of scheduler row 0.

create or replace function scheduler_lock(wait boolean) returns boolean
language plpgsql set search_path from current as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise 'this function needs the isolation level READ COMMITTED' using errcode = 'QT007',
            hint = 'If the database has another default: alter role ... set default_transaction_isolation = '
                   '''read committed''';
    end if;
    if wait then
        perform from scheduler where term = 0 for update;
        return true;
    end if;
    perform from scheduler where term = 0 for update skip locked;
    return found;
end $$;
comment on function scheduler_lock(boolean) is 'Takes the lock that everybody needs who makes free leases, until the '
    'end of the transaction. wait false: returns false if another session has it';

create or replace function still(until timestamptz) returns boolean
language sql volatile as $$
    select until > pg_catalog.clock_timestamp() and until < pg_catalog.clock_timestamp() + interval '10 s'
$$;
comment on function still(timestamptz) is 'Whether a scheduler is still active that promised to act until this time '
    '(at most 3 s ahead). A time more than 10 s ahead was written before the clock was set back, and does not count';

create or replace function scheduler_wait() returns boolean
language plpgsql set search_path from current set lock_timeout = '2 s' as $$
begin
    return not exists (select from scheduler s where s.term > 0 and still(s.until)) and scheduler_lock(true);
exception when lock_not_available then
    return false;
end $$;
comment on function scheduler_wait() is 'Waits up to 2 s for the lock where no scheduler has its turn. Steps of claims '
    'hold it then. On a server short of processor time each of these is cancelled and the next claim begins another '
    'step, so that a scheduler that only tried the lock would never get it';

create or replace function scheduler_stay(holder text) returns void
language sql set search_path from current as $$
    update scheduler s set until = clock_timestamp() + interval '3 s'
    where s.term > 0 and s.holder = scheduler_stay.holder
$$;
comment on function scheduler_stay(text) is 'After a long step: this scheduler keeps its turn, if it was its own';

create or replace function scheduler_hold(holder text) returns text
language plpgsql set search_path from current as $$
declare
    helps boolean := scheduler_hold.holder like 'wake:%' or scheduler_hold.holder like 'claim:%';
    last  scheduler;
begin
    if (length(scheduler_hold.holder) between 1 and 300) is not true then
        raise 'the name of a scheduler has 1 to 300 characters, not %',
            coalesce(length(scheduler_hold.holder), 0) using errcode = 'QT007';
    elsif not scheduler_lock(false) and (helps or not scheduler_wait()) then
        return 'no';
    elsif scheduler_hold.holder like 'wake:%' then
        return 'once'; -- by an idle worker (48_wake), even if a scheduler lives
    end if;
    select * into last from scheduler order by term desc limit 1;
    if still(last.until) and last.holder <> scheduler_hold.holder then
        return 'no';
    elsif scheduler_hold.holder like 'claim:%' then
        return 'once';
    elsif still(last.until - interval '2 s') then
        return 'held';
    end if;
    insert into scheduler (holder, until) values (scheduler_hold.holder, clock_timestamp() + interval '3 s');
    delete from scheduler where term = last.term and term > 0;
    return case when last.holder = scheduler_hold.holder and still(last.until) then 'held' else 'taken' end;
end $$;
comment on function scheduler_hold(text) is 'Whether this scheduler may make a step. no: another one is active; once: '
    'this step only, for a claim or an idle worker; held: it was active already; taken: it has just taken over, or it '
    'slept';

-- The living leases, found without reading the dead rows: all numbers from the mark on, and the older ones that the
-- mark lists, each with the parts that were split off it (base + 1 to base + 99) and the leases that were put before
-- the next one (base + 100 to base + 199). The mark is a value and the older leases are read one by one, so no plan
-- can begin by reading all leases.
create or replace view live as
select w.* from work_queue w where w.lease >= (select mark from mark order by n desc limit 1)
union all
select w.* from unnest((select older from mark order by n desc limit 1)) o
cross join lateral (select w.* from work_queue w where w.lease between o and o + 199 offset 0) w;
comment on view live is 'All rows of work_queue, read without the dead ones';

create or replace function living() returns setof work_queue
language sql stable set search_path from current set enable_seqscan = off set enable_indexscan = on
    set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from live where lock_key is not null $$;
comment on function living() is 'The leases of the view live that a node holds, for a statement outside of functions: '
    'such a statement can''t switch off the plans that would read dead rows. Without the free leases, of which there '
    'may be thousands';

create or replace function mark_leases() returns void
language sql set search_path from current as $$
    with bases as materialized (
        select lease / 200 * 200 as base from live group by 1
    ), next_base as (
        select case when is_called then last_value + 200 else 200 end as base from lease_seq
    ), ranked as (
        select b.base, (n.base - b.base) / 200 as span, row_number() over (order by b.base desc) as rank
        from bases b, next_base n
    ), dense as (
        select coalesce(min(base) filter (where span <= 16 * rank + 500), (select base from next_base)) as mark
        from ranked
    ), marked as (
        select mark, coalesce((select array_agg(base order by base) from bases where base < mark), '{}') as older
        from dense)
    insert into mark (mark, older) select mark, older from marked
    where (mark, older) is distinct from (select (o.mark, o.older) from mark o order by n desc limit 1)
$$;
comment on function mark_leases() is 'Moves the mark: leases that lie close together are read as one range, older '
    'single ones one by one';

-- Sorts are switched off, so the only plan is a scan of queue_due that begins at the given time. The index also holds
-- dead entries of jobs that were promoted, cancelled or put off; they stay as long as somebody holds a snapshot. So the
-- scan is a short range: it begins where the last promotion ended, and ends two seconds ahead. That is far enough,
-- because steps and workers look again after a second at the latest. due_soon() treats dead entries within that range.
create or replace function next_due(after timestamptz, after_seq bigint, lowest timestamptz) returns timestamptz
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    since     timestamptz := least(after, lowest);
    since_seq bigint := case when lowest <= after then 0 else after_seq end;
begin
    return (select q.run_after from queue q
            where q.state in ('scheduled', 'retry') and (q.run_after, q.seq) > (since, since_seq)
              and q.run_after <= now() + interval '2 s'
            order by q.run_after, q.seq limit 1);
end $$;
comment on function next_due(timestamptz, bigint, timestamptz) is 'The time of the first waiting job after this time '
    'and number (tick.after), or from lowest on if that is earlier (lowest may be NULL). NULL = no job is due within '
    'two seconds';

create or replace function due_soon(inout new tick, lowest timestamptz, out due timestamptz, out passed boolean)
language plpgsql set search_path from current as $$
declare
    began timestamptz := clock_timestamp();
begin
    due := next_due(new.after, new.after_seq, lowest);
    passed := (due <= now()) is not true and clock_timestamp() > began + interval '3 ms';
    if passed then -- the scan was slow and found nothing: the range holds many dead entries
        new.after := now();
        new.after_seq := 9223372036854775807;
    end if;
end $$;
comment on function due_soon(tick, timestamptz) is 'next_due() for a step. passed: nothing is due, but the scan read '
    'many dead entries to find that out, so the next scans begin behind them';

create or replace function promote(t tick, lowest timestamptz, out n int, out upto timestamptz, out upto_seq bigint,
    out queues text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    -- otherwise each new number would be compared with all jobs of the step
    set enable_nestloop = off set enable_hashjoin = on
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    since     timestamptz := least(t.after, lowest);
    since_seq bigint := case when lowest <= t.after then 0 else t.after_seq end;
begin
    with due as materialized (
        select id, run_after, seq from queue
        where state in ('scheduled', 'retry') and (run_after, seq) > (since, since_seq) and run_after <= now()
        order by run_after, seq limit 1000
    ), locked as materialized (
        select q.id, q.queue, q.priority, q.state from queue q
        where q.id = any(array(select id from due)) and q.state::text in ('scheduled', 'retry')
          and q.run_after <= now()
        order by q.run_after, q.seq for update of q skip locked
    ), numbered as materialized ( -- in the order of locked, because an UPDATE joins in any order
        select id, queue, priority, state, nextval('job_seq') as new_seq from locked
    ), promoted as (
        update queue q
        set state = case when q.concurrency_key is null then 'ready' else 'blocked' end::job_state, seq = s.new_seq,
            changed = now(), run_after = null
        from numbered s where q.id = any(array(select id from numbered)) and q.id = s.id
        returning s.queue, s.priority, s.state, q.seq, q.state as becomes
    ), counted as (
        -- no min_seq: under this lock no job is late
        insert into delta (queue, priority, ready, blocked, scheduled, retry)
        select queue, priority, count(*) filter (where becomes = 'ready'), count(*) filter (where becomes = 'blocked'),
               -count(*) filter (where state = 'scheduled'), -count(*) filter (where state = 'retry')
        from promoted group by queue, priority
    ), ends as (
        (select d.run_after, d.seq - 1 as seq from due d
         where not exists (select from locked l where l.id = d.id) -- locked by others
         order by d.run_after, d.seq limit 1)
        union all
        (select d.run_after, d.seq from due d where (select count(*) from due) = 1000
         order by d.run_after desc, d.seq desc limit 1)
    )
    select (select count(*) from promoted), coalesce(e.run_after, now()), coalesce(e.seq, 9223372036854775807),
           (select array_agg(distinct queue) from promoted)
    into promote.n, promote.upto, promote.upto_seq, promote.queues
    from (select) o left join (select run_after, seq from ends order by run_after, seq limit 1) e on true;
end $$;
comment on function promote(tick, timestamptz) is 'Makes due jobs ready (jobs with a concurrency key: blocked), in the '
    'order of their time, up to 1000 a call. upto, upto_seq: everything due before upto has been promoted, and of the '
    'jobs due exactly at upto those up to this number';

-- 41_cut
-- Cutting: the scheduler reads the deltas and makes leases of the jobs that wait. 43_schedule calls it.
-- A late job is one that became visible after its queue had been cut beyond its seq: its transaction took a number
-- before others and committed after them. The delta of its push names a range of seqs; only this range is looked at
-- again.
-- If weights differ, measured chunks are made smaller: each queue gets the same number of jobs for each unit of weight,
-- or half of the queue's share if that is more. With whole chunks all queues would get the same. The rule does not
-- apply if some node works only some queues: free jobs of other queues, which that node does not take, would make its
-- leases small.

-- The functions up to cut_shares() have no SET, so that they are inlined into the statements that share their text.

create or replace function deltas_since(seen pg_snapshot, own xid8) returns setof delta
language sql stable as $$
    select d.* from delta d where d.xid >= pg_snapshot_xmax(seen)
    union all -- not OR: with statistics of full tables the planner would read all of delta
    select d.* from delta d
    where d.xid = any(array(select pg_snapshot_xip(seen)) || own) and d.xid < pg_snapshot_xmax(seen)
$$;
comment on function deltas_since(pg_snapshot, xid8) is 'The deltas that a snapshot did not see. own: the transaction '
    'that took the snapshot; its deltas count, too. No SET, so that it is inlined';

create or replace function lease_terms(config queue_config)
returns table (max_tries smallint, history "char", lease_time interval, run_timeout interval)
language sql immutable parallel safe as $$
    select nullif(config.max_tries, 5), nullif(left(config.history, 1), 'f')::"char",
           nullif(config.lease_timeout, interval '60 s'), config.run_timeout
$$;
comment on function lease_terms(queue_config) is 'The settings of a queue that its leases copy; NULL = the default. No '
    'SET, so that it is inlined';

create or replace function newest_cursor(queue text)
returns table (seq bigint[], high bigint[], low bigint, chunk int, lowered boolean)
language sql stable as $$
    select c.seq, c.high, c.low, c.chunk,
           c.high <> c.seq and exists (select from unnest(c.seq, c.high) v (cut, most) where v.most > v.cut)
    from cursor c where c.queue = newest_cursor.queue order by c.n desc limit 1
$$;
comment on function newest_cursor(text) is 'How far a queue has been cut. lowered: jobs behind the cursor may stand in '
    'leases. No SET, so that it is inlined';

create or replace function priorities_of(seq bigint[]) returns table (priority smallint, at bigint)
language sql immutable parallel safe as $$
    select (place - 1)::smallint, priorities_of.seq[place] from generate_subscripts(priorities_of.seq, 1) place
    where priorities_of.seq[place] is not null
$$;
comment on function priorities_of(bigint[]) is 'The priorities of a cursor that have had jobs, the most urgent first, '
    'and how far each has been cut. No SET, so that it is inlined';

create or replace function uncut_priorities(queue text, seq bigint[]) returns table (priority smallint)
language sql stable as $$
    select l.priority from priorities_of(uncut_priorities.seq) l
    cross join lateral (select from queue j where j.queue = uncut_priorities.queue and j.priority = l.priority
                        and j.state = 'ready' and j.seq > l.at limit 1) j
$$;
comment on function uncut_priorities(text, bigint[]) is 'The priorities in which jobs wait beyond the cursor. No SET, '
    'so that it is inlined';

create or replace function jobs_beyond(queue text, seq bigint[], high bigint[], n int, leased int)
returns table (priority smallint, seq bigint, own boolean, lease_timeout interval, over boolean)
language sql stable as $$
    select l.priority, j.seq, j.own, j.lease_timeout, j.over
    from priorities_of(jobs_beyond.seq) l
    cross join lateral (
        select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own, j.lease_timeout,
               j.expires_at <= now() as over
        from queue j
        where j.queue = jobs_beyond.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.at
        order by j.seq limit n + case when jobs_beyond.high[l.priority + 1] > l.at then leased else 0 end) j
    limit n + 10 * leased
$$;
comment on function jobs_beyond(text, bigint[], bigint[], int, int) is 'The next n jobs of a queue beyond its cursor, '
    'the most urgent first. leased: if the cursor was lowered, how many jobs in leases may be among them; otherwise 0. '
    'own: the job has timeouts of its own; over: the job has expired. No SET, so that it is inlined';

create or replace function jobs_between(queue text, priority smallint, low bigint, high bigint, most int)
returns table (seq bigint, own boolean, lease_timeout interval)
language sql stable as $$
    select j.seq, j.lease_timeout is not null or j.run_timeout is not null, j.lease_timeout from queue j
    where j.queue = jobs_between.queue and j.priority = jobs_between.priority and j.state = 'ready'
      and j.seq between low and high
    order by j.seq limit most
$$;
comment on function jobs_between(text, smallint, bigint, bigint, int) is 'Up to this many jobs of a queue and priority '
    'in a range of numbers. No SET, so that it is inlined';

create or replace function advanced(seq bigint[], priorities smallint[], cuts bigint[]) returns setof bigint[]
language sql immutable parallel safe as $$
    select case when cardinality(priorities) = 1
        then seq[:priorities[1]] || greatest(seq[priorities[1] + 1], cuts[1]) || seq[priorities[1] + 2:]
        else array(select greatest(seq[place], cuts[array_position(priorities, (place - 1)::smallint)])
                   from generate_series(1, 10) place order by place) end
$$;
comment on function advanced(bigint[], smallint[], bigint[]) is 'A cursor after it has moved up to these numbers in '
    'these priorities. No SET, so that it is inlined';

create or replace function next_lease() returns setof bigint
language sql stable as $$ select case when is_called then last_value + 200 else 200 end from lease_seq $$;
comment on function next_lease() is 'The number of the next lease; does not advance the sequence';

create or replace function cut_shares(t tick, only_queues text[])
returns table (queue text, cut boolean, weight int, free int, low bigint, seq bigint[], high bigint[],
    lowered boolean, measured int, chunk int, need int, max_tries smallint, history "char", lease_time interval,
    run_timeout interval)
language sql stable as $$
    with standing as materialized (
        select w.queue, sum(cardinality(w.seqs))::int as free, min(w.lease) as low
        from work_queue w where w.lease >= t.free and w.lock_key is null group by w.queue
    ), rule as materialized ( -- slots: those of the largest living node; unit: jobs for each unit of weight
        select z.slots, z.uneven, case when z.uneven then (
                   select min(least(r.chunk, z.slots)::real / c.weight)
                   from standing s join queue_config c on c.queue = s.queue
                   cross join lateral newest_cursor(c.queue) r
                   where c.chunk is null) end as unit
        from (select coalesce(t.slots, (select max(n.slots) from node n
                                        where n.heartbeat > now() - setting_interval('node_dead'))) as slots,
                     not t.hasty and (select min(c.weight) < max(c.weight) from queue_config c) as uneven) z
    ), name as materialized (
        select coalesce(o.queue, s.queue) as queue, o.queue is not null as wanted, coalesce(s.free, 0) as free, s.low
        from (select distinct unnest(only_queues) as queue) o full join standing s on s.queue = o.queue
    )
    select n.queue, r.chunk is not null, c.weight, n.free, n.low, r.seq, r.high, r.lowered, r.chunk, k.chunk,
           greatest(0, (greatest(k.chunk, f.fair)::int - n.free + k.chunk - 1) / k.chunk * k.chunk),
           c.max_tries, c.history, c.lease_time, c.run_timeout
    from name n cross join rule
    left join lateral (
        select c.queue, c.weight, c.chunk, l.* from queue_config c cross join lateral lease_terms(c) l
        where c.queue = n.queue and c.paused_at is null and c.max_running is null and c.rate is null offset 0) c on true
    left join lateral newest_cursor(case when n.wanted then c.queue end) r on true
    cross join lateral (select ceil(t.want * c.weight / t.weights) as fair) f
    cross join lateral (
        select coalesce(c.chunk, greatest(1, least(r.chunk, rule.slots, case when rule.uneven then
                                 greatest(f.fair / 2, rule.unit * c.weight) end))::int) as chunk) k
$$;
comment on function cut_shares(tick, text[]) is 'For a cut: a row for each queue that is wanted or has free leases, '
    'with its free jobs and its first free lease. cut: the queue may be cut now; need: how many jobs to cut, in leases '
    'of chunk jobs; seq, high, lowered: its cursor. weight NULL: the queue is paused or has limits. No SET, so that it '
    'is inlined';

create or replace function read_deltas(t tick, out snapshot pg_snapshot, out n bigint, out woken text[],
    out lowest timestamptz, out new_queues text[], out new_priorities int[], out new_seqs bigint[],
    out late_queues text[], out late_priorities int[], out late_from bigint[], out late_to bigint[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with unread as materialized (
        select queue, priority, min_seq, max_seq, min_after, ready from deltas_since(t.snapshot, t.xid)
        where error_key is null
    ), news as materialized (
        select g.queue, g.priority, g.low, g.n, g.wake, g.after, c.seq[g.priority + 1] as cut,
               c.seq is not null as known
        from (select queue, priority, min(min_seq) as low, min(min_after) as after, count(*) as n,
                     bool_or(min_seq is not null or ready > 0 or ready is null) as wake from unread group by 1, 2) g
        left join lateral newest_cursor(g.queue) c on true
    ), new as (
        select array_agg(queue) as queues, array_agg(priority::int) as priorities,
               array_agg(coalesce(low, 1) - 1) as seqs
        from (select * from news where cut is null order by known desc) z
    ), late as (
        select array_agg(u.queue) as queues, array_agg(u.priority::int) as priorities, array_agg(u.min_seq) as lows,
               array_agg(least(u.max_seq, l.cut)) as highs
        from news l join unread u using (queue, priority) where l.low <= l.cut and u.min_seq <= l.cut)
    select pg_current_snapshot(), coalesce((select sum(l.n) from news l), 0),
           (select array_agg(distinct l.queue) from news l left join queue_config c on c.queue = l.queue
            where l.known and (l.wake or c.max_running is not null or c.rate is not null)),
           (select min(after) from news),
           new.queues, new.priorities, new.seqs, late.queues, late.priorities, late.lows, late.highs
    from new, late
    into snapshot, n, woken, lowest, new_queues, new_priorities, new_seqs, late_queues, late_priorities, late_from,
         late_to;
end $$;
comment on function read_deltas(tick) is 'Reads the deltas since the last step: new queues and priorities, late jobs, '
    'the earliest due time. It is one statement, so that snapshot names exactly the deltas that were read';

create or replace function move_cursor(queues text[], priorities int[], lower bigint[], high bigint[]) returns void
language sql set search_path from current as $$
    with lowest as (
        select queue, priority + 1 as place, min(low) as low, max(high) as high
        from unnest(queues, priorities, lower, high) v (queue, priority, low, high) group by 1, 2
    ), moved as ( -- one row a queue, so that no plan compares each row with all others
        select queue, array_agg(place) as places, array_agg(low) as lows, array_agg(high) as highs
        from lowest group by queue
    )
    insert into cursor (queue, seq, high, low, chunk)
    select m.queue,
           array(select least(c.seq[i], m.lows[array_position(m.places, i)]) from generate_series(1, 10) i),
           array(select greatest(c.high[i], c.seq[i], m.highs[array_position(m.places, i)])
                 from generate_series(1, 10) i),
           coalesce(c.low, 0), coalesce(c.chunk, 10)
    from moved m left join lateral newest_cursor(m.queue) c on true
$$;
comment on function move_cursor(text[], int[], bigint[], bigint[]) is 'Lowers cursors, so that the jobs behind them '
    'are found again (jobs in leases are left out), and records up to which number jobs may be in leases. Only under '
    'the scheduler lock';

-- Free leases are claimed in the order of their numbers. If the free leases hold more than a tenth of a second of work,
-- two kinds of jobs are not put at the end: the first job of a queue that was idle, and jobs that are more urgent than
-- the free jobs of their own queue. Each of them gets a lease of its own, with one of the 50 numbers before another
-- lease: before the first free lease of all, or before the first free lease of the same queue that is less urgent. A
-- queue is idle only if none of its jobs runs either, so a queue that pushes all the time can't stay in front. Two
-- leases may get the same number one after the other: their versions differ.
create or replace function front_jobs(t tick, woken text[])
returns table (queue text, idle boolean, seq bigint[], high bigint[], low bigint, chunk int, max_tries smallint,
    history "char", lease_time interval, run_timeout interval, priority smallint, job bigint, before bigint)
language sql stable as $$
    with free as materialized (
        select lease, queue, priority from work_queue where lease >= t.free and lock_key is null
    ), comer as materialized (
        select c.queue, r.seq, r.high, r.low, r.chunk, l.max_tries, l.history, l.lease_time, l.run_timeout,
               not exists (select from free f where f.queue = c.queue)
               and not exists (select from live l where l.queue = c.queue) as idle
        from (select distinct unnest(woken) as queue) n join queue_config c on c.queue = n.queue
        cross join lateral newest_cursor(c.queue) r cross join lateral lease_terms(c) l
        where c.paused_at is null and c.max_running is null and c.rate is null
          and not r.lowered -- cut_hard() cuts a queue whose cursor was lowered
    )
    select c.queue, c.idle, c.seq, c.high, c.low, c.chunk, c.max_tries, c.history,
           coalesce(j.lease_timeout, c.lease_time), c.run_timeout, j.priority, j.job, j.before
    from comer c cross join lateral (
        select l.priority, j.seq as job, j.lease_timeout,
               (select min(f.lease) from free f
                where (c.idle or f.queue = c.queue and f.priority > l.priority) and f.lease % 200 = 0) as before
        from priorities_of(c.seq) l
        cross join lateral (
            select j.seq, j.lease_timeout from queue j
            where j.queue = c.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.at
            order by j.seq limit case when c.idle then 1 else 50 end) j
        order by l.priority, j.seq limit case when c.idle then 1 else 50 end) j
    where j.before is not null
$$;
comment on function front_jobs(tick, text[]) is 'For cut_front(): those jobs of these queues that get a lease in '
    'front, and the free lease that each comes before. No SET, so that it is inlined';

create or replace function cut_front(inout t tick, woken text[], out jobs int)
language plpgsql set search_path from current set enable_seqscan = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    first bigint;
begin
    jobs := 0;
    if t.jobs <= 0.1 * t.rate or t.jobs = 0 or cardinality(woken) > 100 then
        return;
    end if;
    with job as materialized (
        select * from front_jobs(t, woken)
    ), place as materialized ( -- behind the leases that were put there before
        select j.*, b.low + row_number() over (partition by j.before, j.idle order by j.priority, j.job) as lease,
               b.high as most
        from job j
        cross join lateral (select j.before - case when j.idle then 51 else 101 end as start) s
        cross join lateral (
            select coalesce((select max(w.lease) from work_queue w
                             where w.lease > s.start and w.lease <= s.start + 50), s.start) as low,
                   s.start + 50 as high) b
    ), made as (
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout, version)
        select p.lease, p.queue, p.priority, array[p.job], p.lease_time, p.max_tries, p.history, p.run_timeout,
               (pg_current_xact_id()::text::numeric % 2000000000)::int
        from place p where p.lease <= p.most
        returning lease, queue, priority, seqs[1] as job
    ), cut_to as materialized (
        select queue, array_agg(priority) as priorities, array_agg(job) as cuts, min(low) as low
        from (select queue, priority, max(job) as job, min(lease) as low from made group by 1, 2) z group by 1
    ), moved as (
        insert into cursor (queue, seq, high, low, chunk)
        select l.queue, s, h, case when q.idle then l.low else least(q.low, l.low) end, q.chunk
        from cut_to l join (select distinct on (j.queue) j.* from job j) q on q.queue = l.queue
        cross join lateral advanced(q.seq, l.priorities, l.cuts) s
        cross join lateral advanced(q.high, l.priorities, l.cuts) h
    )
    select count(*), min(made.lease) from made into jobs, first;
    if jobs > 0 then
        t.free := least(t.free, first);
        insert into mark (mark, older) -- so that the mark includes the new leases
        select first / 200 * 200, array(select o from unnest(m.older) o where o < first / 200 * 200)
        from (select * from mark order by n desc limit 1) m where m.mark > first;
    end if;
end $$;
comment on function cut_front(tick, text[]) is 'If many jobs are free, makes leases in front of others: for the first '
    'job of a queue that was idle, and for jobs more urgent than the free jobs of their queue. Under the scheduler '
    'lock';

create or replace function easy_jobs(queue text, seq bigint[], need int)
returns table (priority smallint, seqs bigint[], own boolean, before numeric, n int)
language sql stable as $$
    select z.priority, z.seqs, z.own, z.before, least(z.n, need - z.before)::int
    from (
        select l.priority, j.seqs, j.own, j.n, sum(j.n) over (order by l.priority) - j.n as before
        from priorities_of(easy_jobs.seq) l
        cross join lateral (
            select array_agg(j.seq) as seqs, count(*) as n, bool_or(j.own) as own
            from (
                select j.seq, j.lease_timeout is not null or j.run_timeout is not null as own from queue j
                where j.queue = easy_jobs.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.at
                order by j.seq limit need) j) j) z
    where z.n > 0 and z.before < need
$$;
comment on function easy_jobs(text, bigint[], int) is 'For cut(): the next jobs of a queue, a row for each priority, '
    'the most urgent first. before: how many jobs are more urgent; n: how many of seqs are within need; own: some have '
    'timeouts of their own. No SET, so that it is inlined';

create or replace function cut(t tick, only_queues text[], whole boolean, late_queues text[], late_priorities int[],
    late_from bigint[], late_to bigint[],
    out jobs int, out free_jobs int, out free_before int, out first bigint, out weights numeric, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    hard text[];
    h    record;
begin
    with share as materialized (
        select s.*, s.cut and (s.lowered or s.queue = any(late_queues)) as hard from cut_shares(t, only_queues) s
    ), chance as materialized (
        select s.queue, j.* from share s cross join lateral easy_jobs(s.queue, s.seq, s.need) j
        where s.need > 0 and s.hard is not true
    ), owner as materialized ( -- jobs with timeouts of their own get leases of their own
        select coalesce(array_agg(queue), '{}') as queues from chance where own
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history,
                                run_timeout)
        select nextval('lease_seq'), z.turn, z.queue, z.priority, z.seqs, scattered(z.seqs, 1000), z.lease_time,
               z.max_tries, z.history, z.run_timeout
        from (select (c.before + g) / s.chunk + 1 as turn, c.queue, c.priority,
                     c.seqs[g + 1:least(g + s.chunk, c.n)] as seqs, s.lease_time, s.max_tries, s.history, s.run_timeout
              from owner o, chance c join share s on s.queue = c.queue
              cross join lateral generate_series(0, c.n - 1, s.chunk) g
              where c.queue <> all(o.queues)
              order by turn, hashtextextended(c.queue, t.tick), c.priority, g) z
        returning lease, queue, cardinality(seqs) as jobs
    ), got as materialized (
        select queue, min(lease) as low, sum(jobs)::int as n from made group by queue
    ), cut_to as materialized (
        select queue, array_agg(priority) as priorities, array_agg(seqs[n]) as cuts from chance group by queue
    ), moved as (
        insert into cursor (queue, seq, high, low, chunk)
        select s.queue, a, a, coalesce(s.low, g.low), s.measured
        from got g join share s on s.queue = g.queue join cut_to l on l.queue = g.queue
        cross join lateral advanced(s.seq, l.priorities, l.cuts) a
    )
    select coalesce(sum(g.n), 0), coalesce(sum(s.free), 0),
           coalesce(least(min(s.low), min(g.low)), (select next_lease())),
           case when whole then sum(s.weight) filter (where (s.free > 0 or g.n > 0) and s.hard is not true) end,
           array_agg(s.queue) filter (where s.cut and (g.n >= s.need or s.need = 0 and s.hard is not true
                                                       and exists (select from uncut_priorities(s.queue, s.seq)))),
           array_agg(s.queue) filter (where s.hard or s.queue = any(o.queues))
    from owner o, share s left join got g on g.queue = s.queue
    into jobs, free_before, first, weights, remaining, hard;
    if hard is not null or late_queues is not null then
        h := cut_hard(t, coalesce(hard, '{}'), late_queues, late_priorities, late_from, late_to);
        jobs := jobs + h.jobs;
        first := least(first, h.first);
        weights := coalesce(weights, 0) + h.weights;
        remaining := remaining || h.remaining;
    end if;
    free_jobs := free_before + jobs;
end $$;
comment on function cut(tick, text[], boolean, text[], int[], bigint[], bigint[]) is 'Cuts leases for these queues, '
    'except those with limits. Each queue is filled up to its share of want; leases of different queues alternate; '
    'urgent priorities come first; late jobs are cut at once. whole: all queues that wait are cut, so weights is their '
    'sum. remaining: the queues that may have more uncut jobs';

create or replace function advance_cursor(queues text[], priorities smallint[], cuts bigint[], lows bigint[])
returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    insert into cursor (queue, seq, high, low, chunk)
    select l.queue, s, h, l.low, r.chunk
    from (select v.queue, array_agg(v.priority) as priorities, array_agg(v.cut) as cuts, min(v.low) as low
          from unnest(queues, advance_cursor.priorities, advance_cursor.cuts, lows) v (queue, priority, cut, low)
          group by v.queue) l
    cross join lateral newest_cursor(l.queue) r
    cross join lateral advanced(r.seq, l.priorities, l.cuts) s
    cross join lateral advanced(r.high, l.priorities, l.cuts) h;
end $$;
comment on function advance_cursor(text[], smallint[], bigint[], bigint[]) is 'Moves the cursors of these queues and '
    'priorities up to the last job that was cut. lows: the first free lease of the queue. Only under the scheduler '
    'lock';

create or replace function late_left(late_queues text[], late_priorities int[], late_from bigint[], late_to bigint[])
returns text[]
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    behind record;
begin
    select array_agg(v.queue) as queues, array_agg(v.priority) as priorities, array_agg(v.low - 1) as lower into behind
    from unnest(late_queues, late_priorities, late_from, late_to) v (queue, priority, low, high)
    left join queue_config c on c.queue = v.queue
    where c.paused_at is not null or c.max_running is not null or c.rate is not null or
          500 <= (select count(*) from jobs_between(v.queue, v.priority::smallint, v.low, v.high, 500));
    if behind.queues is not null then
        perform move_cursor(behind.queues, behind.priorities, behind.lower, null);
    end if;
    return behind.queues;
end $$;
comment on function late_left(text[], int[], bigint[], bigint[]) is 'For cut_hard(): lowers the cursors of queues '
    'whose late jobs can''t be cut now, because the queue is paused or has limits, or because a step can''t take so '
    'many jobs. So a later step finds them';

create or replace function hard_jobs(queue text, seq bigint[], high bigint[], need int, leased bigint[],
    late_priorities int[], late_from bigint[], late_to bigint[])
returns table (priority smallint, seq bigint, own boolean, lease_timeout interval, late boolean, taken boolean,
    remains boolean, upto bigint)
language sql stable as $$
    select c.priority, c.seq, c.own, c.lease_timeout, c.late, c.taken, c.fresh and not c.taken,
           max(c.seq) filter (where not c.late and c.seq < coalesce(c.left_from, 9223372036854775807))
               over (partition by c.priority)
    from (
        select b.*, min(b.seq) filter (where b.fresh and not b.taken and not b.late)
                        over (partition by b.priority) as left_from
        from (
            select a.*, a.fresh and (a.late or need >= row_number() over (
                       partition by a.late, a.fresh order by a.priority, a.seq)) as taken
            from (
                select j.priority, j.seq, j.own, j.lease_timeout, j.late,
                       leased[width_bucket(j.seq, leased)] is distinct from j.seq as fresh
                from (
                    select j.priority, j.seq, j.own, j.lease_timeout, false as late
                    from jobs_beyond(hard_jobs.queue, hard_jobs.seq, high, need,
                                     case when high is null then 0 else coalesce(cardinality(leased), 0) end) j
                    where need > 0
                    -- only up to the cursor: if a take-over has lowered it, the part above has the jobs beyond it
                    union all
                    select distinct v.priority::smallint, j.seq, j.own, j.lease_timeout, true
                    from unnest(late_priorities, late_from, late_to) v (priority, low, high)
                    cross join lateral jobs_between(hard_jobs.queue, v.priority::smallint, v.low,
                                                    least(v.high, hard_jobs.seq[v.priority + 1]), 500) j) j) a) b) c
$$;
comment on function hard_jobs(text, bigint[], bigint[], int, bigint[], int[], bigint[], bigint[]) is 'For cut_hard(): '
    'the jobs of a queue that a cut looks at. leased: the jobs in leases, in order; high: NULL unless the cursor was '
    'lowered. taken: the job is cut now: late jobs always, in addition to the share (need), other jobs in order up to '
    'the share. remains: the job could have been cut, but was not; upto: up to which number its priority is cut now, '
    'which is before the first job that remains. No SET, so that it is inlined';

create or replace function late_ranges(late_queues text[], late_priorities int[], late_from bigint[], late_to bigint[])
returns table (queue text, priorities int[], lows bigint[], highs bigint[])
language sql immutable parallel safe as $$
    select v.queue, array_agg(v.priority), array_agg(v.low), array_agg(v.high)
    from unnest(late_queues, late_priorities, late_from, late_to) v (queue, priority, low, high) group by v.queue
$$;
comment on function late_ranges(text[], int[], bigint[], bigint[]) is 'Where the late jobs are, one row for each '
    'queue, so that no plan compares each queue with all ranges. No SET, so that it is inlined';

create or replace function cut_hard(t tick, only_queues text[], late_queues text[], late_priorities int[],
    late_from bigint[], late_to bigint[],
    out jobs int, out free_jobs int, out free_before int, out first bigint, out weights numeric, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with share as materialized (
        select * from cut_shares(t, only_queues) where cut
    ), leased as materialized ( -- jobs in leases, of queues where a scan may meet them
        select l.queue, array_agg(u.seq order by u.seq) as seqs from live l cross join unnest(l.seqs) u (seq)
        where l.queue = any(late_queues) or l.queue in (select s.queue from share s where s.lowered) group by l.queue
    ), late as materialized (
        select * from late_ranges(late_queues, late_priorities, late_from, late_to)
    ), job as materialized (
        select s.queue, s.chunk, j.*
        from share s left join leased l on l.queue = s.queue left join late b on b.queue = s.queue
        cross join lateral hard_jobs(s.queue, s.seq, case when s.lowered then s.high end, s.need, l.seqs,
                                     b.priorities, b.lows, b.highs) j
    ), chunk as ( -- jobs with timeouts of their own get leases of their own
        select z.queue, z.priority, array_agg(z.seq order by z.seq) as seqs, max(z.lease_timeout) as lease_timeout,
               row_number() over (partition by z.queue order by bool_or(z.late) desc, z.priority, min(z.seq)) as turn
        from (select j.*, case when j.own then j.seq else -1 - (row_number() over (
                         partition by j.queue, j.priority, j.own order by j.seq) - 1) / j.chunk end as part
              from job j where j.taken) z
        group by z.queue, z.priority, z.part
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history,
                                run_timeout)
        select nextval('lease_seq'), z.* from (
            select c.turn, c.queue, c.priority, c.seqs, scattered(c.seqs, 10),
                   coalesce(c.lease_timeout, s.lease_time), s.max_tries, s.history, s.run_timeout
            from chunk c join share s on s.queue = c.queue order by c.turn, hashtextextended(c.queue, t.tick)) z
        returning lease, queue, cardinality(seqs) as jobs
    ), got as materialized (
        select queue, min(lease) as low, sum(jobs) as jobs from made group by queue
    ), seen as materialized (
        select queue, count(*) filter (where taken and not late) as n, bool_or(remains) as remains
        from job group by queue
    ), cut_to as (
        select j.queue, j.priority, max(j.upto) as upto, min(coalesce(s.low, g.low, l)) as low
        from job j join share s on s.queue = j.queue left join got g on g.queue = j.queue cross join next_lease() l
        where not j.late group by 1, 2
    ), moved as materialized (
        select advance_cursor(array_agg(queue), array_agg(priority), array_agg(upto), array_agg(low)) from cut_to
    )
    select coalesce(sum(g.jobs), 0), coalesce(sum(s.free), 0),
           coalesce(least(min(s.low), min(g.low)), (select next_lease())),
           coalesce(sum(s.weight) filter (where s.free > 0 or n.queue is not null), 0),
           coalesce(array_agg(s.queue) filter (where n.remains or case when s.need > 0 then n.n >= s.need
                    else exists (select from uncut_priorities(s.queue, s.seq)) end), '{}')
    from (select count(*) from moved) m, share s
    left join got g on g.queue = s.queue left join seen n on n.queue = s.queue
    into jobs, free_before, first, weights, remaining;
    free_jobs := free_before + jobs;
    if late_queues is not null then
        remaining := remaining || late_left(late_queues, late_priorities, late_from, late_to);
    end if;
end $$;
comment on function cut_hard(tick, text[], text[], int[], bigint[], bigint[]) is 'cut() for queues with something '
    'unusual: late jobs, a lowered cursor, jobs with timeouts of their own. All figures are of these queues';

-- 42_fold
-- A fold sums deltas up into counters. This file also deletes the deltas that have been summed up, and begins a new
-- count in another cluster.

create or replace function fold_sum(last fold, keep boolean, out made bigint, out queues int)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with deltas as materialized (
        select * from delta where xid >= pg_snapshot_xmax(last.snapshot) and xid <> pg_current_xact_id()
        union all
        select * from delta where xid < pg_snapshot_xmax(last.snapshot) and xid <> pg_current_xact_id()
                              and xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid)
    ), head as (
        insert into fold (at, snapshot, xid, keep)
        select clock_timestamp(), pg_current_snapshot(), pg_current_xact_id(), fold_sum.keep
        where exists (select from deltas)
        returning fold
    ), sums as (
        select queue, priority, sum(ready) as ready, sum(scheduled) as scheduled, sum(retry) as retry,
               sum(failed) as failed, sum(pushed) as pushed, sum(completed) as completed, sum(fails) as fails,
               sum(retried) as retried, sum(cancelled) as cancelled, sum(lost) as lost, sum(run_ms) as run_ms,
               sum(blocked) as blocked
        from (select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled,
                     lost, run_ms, blocked
              from counter where fold = last.fold and error_key is null
              union all
              select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled,
                     lost, run_ms, blocked
              from deltas where error_key is null) z
        group by 1, 2
    ), counters as (
        insert into counter (fold, queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried,
                             cancelled, lost, run_ms, blocked, oldest)
        select h.fold, s.queue, s.priority, coalesce(ready, 0), coalesce(scheduled, 0), coalesce(retry, 0),
               coalesce(failed, 0), coalesce(pushed, 0), coalesce(completed, 0), coalesce(fails, 0),
               coalesce(retried, 0), coalesce(cancelled, 0), coalesce(lost, 0), coalesce(run_ms, 0),
               coalesce(blocked, 0), case when ready > 0 then (
                   select least( -- the older of two jobs: the first that is uncut, and the first in a free lease
                       (select j.changed from queue j where j.queue = s.queue and j.priority = s.priority
                        and j.state = 'ready' and j.seq > c.seq[s.priority + 1] order by j.seq limit 1),
                       (select j.changed from ( -- OFFSET 0: one lease first, then its first job
                            select w.seqs[1] as seq from work_queue w
                            where w.queue || '' = s.queue and w.lease + 0 >= c.low and w.lock_key is null
                              and w.priority = s.priority
                            order by w.lease + 0 limit 1 offset 0) w
                        cross join lateral (
                            select j.changed from queue j where j.queue = s.queue and j.priority = s.priority
                            and j.state = 'ready' and j.seq = w.seq offset 0) j))
                   from (select * from cursor c where c.queue = s.queue order by c.n desc limit 1 offset 0) c) end
        from sums s, head h)
    select h.fold, (select count(*) from (select from sums limit 2001) z) into made, queues from head h;
end $$;
comment on function fold_sum(fold, boolean) is 'Makes a new fold: the counters of the last fold plus the deltas since. '
    'It is one statement, so that the snapshot it stores is the one it read with. Its own deltas are left for the next '
    'fold (readers add them: fold.xid). made: NULL = there were no deltas; queues: 2001 = more than 2000';

create or replace function fold_now() returns boolean
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    last  fold;
    since timestamptz;
    keep  boolean;
    sums  record;
    begun timestamptz := clock_timestamp();
begin
    select * into last from fold order by fold desc limit 1;
    select at into since from fold where keep order by fold desc limit 1;
    -- one fold every 10 s is kept, and one after the clock was set back
    keep := (since > clock_timestamp() - interval '10 s' and since < clock_timestamp() + interval '1 s') is not true;
    select * into sums from fold_sum(last, keep);
    if sums.made is null then
        return false;
    end if;
    if keep or sums.queues <= 2000 then -- with thousands of queues it is done only every 10 s, because it takes time
        perform measure_chunks(sums.made, keep);
    end if;
    begun := begun + interval '25 ms';
    -- with ten thousand queues and priorities the next fold must not come after half a second
    if begun < clock_timestamp() then
        update fold set ms = 25 + 1000 * extract(epoch from clock_timestamp() - begun) where fold = sums.made;
    end if;
    if keep then
        perform fold_groups(sums.made);
        perform roll_minutes((select fold from fold where keep and fold < sums.made order by fold desc limit 1));
        perform check_counts(20000);
        perform sweep(sums.made);
    end if;
    return true;
end $$;
comment on function fold_now() is 'Sums the deltas since the last fold up into new counter rows. Every 10 s it also '
    'sums the groups of errors and deletes rows that nobody needs. false = there were no deltas';

create or replace function must_fold(grace interval default '0') returns boolean
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select (f.at < clock_timestamp() - greatest(500, 20 * f.ms) * interval '1 ms'
                  - least(greatest(grace, interval '0'), interval '1 day')
            or f.at > clock_timestamp() + interval '1 s')
        and (exists (select from delta where xid >= pg_snapshot_xmax(f.snapshot))
             or exists (select from delta where xid = any(array(select pg_snapshot_xip(f.snapshot)) || f.xid)))
    from (select * from fold order by fold desc limit 1) f
$$;
comment on function must_fold(interval) is 'Whether it is time to fold: the last fold is older than half a second (or '
    'than 20 times the time that it took) plus grace, and there are deltas that it has not seen';

create or replace function try_fold() returns boolean
language plpgsql set search_path from current as $$
begin
    return fold_now();
exception when query_canceled or others then
    raise log 'queuetop: the counters were not folded, the next try comes in a minute: %', sqlerrm;
    update fold set ms = 3000 where fold = (select f.fold from fold f order by f.fold desc limit 1);
    return false;
end $$;
comment on function try_fold() is 'fold_now() that does not fail: if the fold raises an error, or is cancelled by the '
    'client because it takes too long, only the fold is rolled back, and the next try comes in a minute';

create or replace function fold_beside(grace interval default '0') returns boolean
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set enable_hashjoin = on as $$
begin
    if not must_fold(grace) or moved() then -- in another cluster the scheduler first counts anew
        return false;
    end if;
    perform from scheduler where term = -1 for update skip locked;
    return found and must_fold(grace) and try_fold(); -- asked again: another session may have folded meanwhile
end $$;
comment on function fold_beside(interval) is 'Folds the counters if it is time to, outside the scheduler''s lock, so '
    'no lease waits for the fold; one session at a time does it. The active scheduler calls it beside its steps. A '
    'step does it itself if nobody has done it for the time grace. false = not done';

create or replace function fold_groups(made bigint) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    last fold;
    this fold;
begin
    select * into this from fold where fold = made;
    select * into last from fold where keep and fold < made order by fold desc limit 1;
    with deltas as (
        select queue, error_key, failed, at from delta
        where error_key is not null and xid >= pg_snapshot_xmax(last.snapshot)
          and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
        union all
        select queue, error_key, failed, at from delta
        where error_key is not null and xid < pg_snapshot_xmax(last.snapshot)
          and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
          and xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid)
    ), sums as (
        select queue, error_key, sum(failed) as failed, min(first_at) as first_at, max(last_at) as last_at,
               row_number() over (order by sum(failed) desc) as rank
        from (select queue, error_key, failed, first_at, last_at from counter
              where fold = last.fold and error_key is not null
              union all
              select queue, error_key, failed, case when failed > 0 then at end, case when failed > 0 then at end
              from deltas) z
        group by 1, 2 having sum(failed) <> 0)
    insert into counter (fold, queue, priority, error_key, failed, first_at, last_at)
    select made, queue, 0, case when rank <= 2000 then error_key else '*' end, sum(failed), min(first_at), max(last_at)
    from sums group by 1, 2, 4;
    delete from counter where fold = last.fold and error_key is not null;
end $$;
comment on function fold_groups(bigint) is 'Sums the groups of errors with each kept fold. Beyond the 2000 largest, '
    'all groups are one group *';

create or replace function measure_chunks(made bigint, shrink boolean) returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_nestloop = off set enable_mergejoin = off as $$
    with done as (
        select queue, now.completed - coalesce(before.completed, 0) as jobs,
               now.run_ms - coalesce(before.run_ms, 0) as run_ms
        from (select queue, sum(completed) as completed, sum(run_ms) as run_ms from counter
              where fold = made and error_key is null group by 1) now
        left join (select queue, sum(completed) as completed, sum(run_ms) as run_ms from counter
                   where fold = (select fold from fold where keep and fold < made order by fold desc limit 1)
                     and error_key is null
                   group by 1) before using (queue)
        where now.completed > coalesce(before.completed, 0)
    ), measured as (
        select queue, jobs, greatest(1, least(100, round(1000.0 * jobs / greatest(1, run_ms))))::int as chunk from done
    ), changed as (
        select m.queue, m.chunk
        from measured m
        cross join lateral (select chunk from cursor c where c.queue = m.queue order by n desc limit 1) c
        where case when shrink then c.chunk <> m.chunk else m.chunk >= 2 * c.chunk and m.jobs >= 2 * c.chunk end
        order by m.jobs desc limit 1000
    ), lists as (
        select array_agg(queue) as queues, array_agg(chunk) as chunks from changed having count(*) > 0)
    update fold set chunk_queues = l.queues, chunks = l.chunks from lists l where fold = made
$$;
comment on function measure_chunks(bigint, boolean) is 'Measures what the chunk of each queue should be, so that a '
    'lease is about a second of work, from the jobs that were completed since the last kept fold (10 s at most). '
    'Stores it in the fold for the 1000 busiest queues whose chunk differs; the next step takes it over. shrink false: '
    'only chunks that are much too small, because a backlog of short jobs should not wait 10 s';

create or replace function take_chunks(inout new tick)
language plpgsql set search_path from current as $$
declare
    last fold;
begin
    select * into last from fold f order by f.fold desc limit 1;
    if last.fold <= new.measured then
        return;
    end if;
    new.measured := last.fold;
    if last.chunk_queues is not null then
        insert into cursor (queue, seq, high, low, chunk)
        select c.queue, c.seq, c.high, c.low, m.chunk
        from unnest(last.chunk_queues, last.chunks) m (queue, chunk)
        cross join lateral (select * from cursor c where c.queue = m.queue order by c.n desc limit 1) c
        where c.chunk <> m.chunk;
    end if;
end $$;
comment on function take_chunks(tick) is 'For schedule(), once a second: cursors take over the chunks that the newest '
    'fold has measured. The fold can''t do it itself, because cursors change only under the scheduler lock';

create or replace function sweep_deltas(since fold, upto fold) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    if since.fold is null then
        delete from delta where pg_visible_in_snapshot(xid, upto.snapshot) and xid <> upto.xid;
    else
        delete from delta
        where xid >= pg_snapshot_xmax(since.snapshot) and pg_visible_in_snapshot(xid, upto.snapshot)
          and xid <> upto.xid;
        delete from delta
        where xid = any(array(select pg_snapshot_xip(since.snapshot)) || since.xid)
          and pg_visible_in_snapshot(xid, upto.snapshot) and xid <> upto.xid;
    end if;
end $$;
comment on function sweep_deltas(fold, fold) is 'Deletes the deltas that this fold has summed up. Those that the fold '
    'before had seen are deleted already';

create or replace function sweep(made bigint) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    last fold; -- the kept fold before made
    lo   bigint[];
    hi   bigint[];
    gone bigint;
    begun timestamptz := clock_timestamp();
begin
    select * into last from fold where keep and fold < made order by fold desc limit 1;
    perform sweep_deltas((select f from fold f where keep and fold < last.fold order by fold desc limit 1), last);
    delete from counter where fold > last.fold and fold < made;
    delete from fold where fold > last.fold and fold < made;
    lo := last.swept;
    for gone in select f.fold from fold f
                where f.keep and (f.at < now() - interval '10 min' or f.at > now() + interval '1 min')
                  and f.fold >= coalesce(lo[5], 0) and f.fold < last.fold order by f.fold limit 100 loop
        delete from counter where fold = gone;
        delete from fold where fold = gone;
        -- after a restore all of them are old: do not delete all at once
        exit when clock_timestamp() > begun + interval '200 ms';
    end loop;
    hi := array[(select max(tick) from tick), (select max(n + 0) from cursor), (select max(n) from mark),
                extract(epoch from trim_minutes(to_timestamp(coalesce(lo[4], 0))))::bigint,
                (select f.fold from fold f where f.fold >= coalesce(lo[5], 0) order by f.fold limit 1),
                (select known from tick order by tick desc limit 1)];
    delete from tick where tick >= lo[1] and tick < hi[1];
    delete from mark where n >= lo[3] and n < hi[3];
    delete from newcomer where n > coalesce(lo[6], 0) and n <= hi[6];
    -- not a join, which might read through the dead rows for each number
    delete from cursor c where c.n + 0 = any(array(
        select o.n
        from (select queue, max(n) as n from cursor where n + 0 > lo[2] and n + 0 <= hi[2] group by queue) w
        cross join lateral (select n from cursor o where o.queue = w.queue and o.n < w.n and o.n > lo[2]
                            union all
                            (select n from cursor o where o.queue = w.queue and o.n <= lo[2] order by n desc limit 1)
                           ) o));
    update fold set swept = hi where fold = made;
    delete from node where heartbeat < now() - setting_interval('node_keep')
        and not exists (select from live where live.lock_key = node.lock_key);
end $$;
comment on function sweep(bigint) is 'Deletes rows that no reader needs any more: summed deltas, folds between the '
    'kept ones, old ticks, marks, cursors and newcomers';

-- For a schema that was restored into another cluster. Transaction ids mean nothing there, so deltas, folds and ticks
-- of the old cluster can't be compared with new ones. recount() makes a new start at once: it sums the old fold and its
-- deltas, by the ids of the old cluster. That takes a time that grows with queues and deltas, not with jobs. Afterwards
-- check_counts() compares one queue after the other with its jobs, each in one snapshot, without a lock that others
-- wait for. The row for queue '' in table checked says since when; a queue that was checked before that time is still
-- to be counted, and readers learn it from shortfalls(). All of it is kept in tables: after a cancelled call, the next
-- call or another scheduler does the rest.
create or replace function recount_sums(last fold, kept fold) returns bigint
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    made bigint;
begin
    with gone as materialized ( -- all deltas that this snapshot sees are summed up below, whatever their xid was
        delete from delta returning *
    ), unseen as ( -- not seen by a fold; `at` shows which came in this cluster, with lower ids
        select g.* from gone g where g.error_key is null
        and (not pg_visible_in_snapshot(g.xid, last.snapshot) or g.xid = last.xid or g.at > last.at)
    ), head as (
        insert into fold (at, snapshot, xid, keep, rolled, swept)
        values (clock_timestamp(), pg_current_snapshot(), pg_current_xact_id(), true, true, kept.swept) returning fold
    ), terms as (
        select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost,
               run_ms, blocked
        from counter where fold = last.fold and error_key is null
        union all
        select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried, cancelled, lost,
               run_ms, blocked
        from unseen
    ), counters as (
        insert into counter (fold, queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried,
                             cancelled, lost, run_ms, blocked)
        select h.fold, queue, priority, coalesce(sum(ready), 0), coalesce(sum(scheduled), 0), coalesce(sum(retry), 0),
               coalesce(sum(failed), 0), coalesce(sum(pushed), 0), coalesce(sum(completed), 0), coalesce(sum(fails), 0),
               coalesce(sum(retried), 0), coalesce(sum(cancelled), 0), coalesce(sum(lost), 0), coalesce(sum(run_ms), 0),
               coalesce(sum(blocked), 0)
        from terms t, head h group by 1, 2, 3
    ), failures as (
        select queue, error_key, failed, first_at, last_at from counter where fold = kept.fold and error_key is not null
        union all
        select queue, error_key, failed, case when failed > 0 then at end, case when failed > 0 then at end from gone
        where error_key is not null
          and (not pg_visible_in_snapshot(xid, kept.snapshot) or xid = kept.xid or at > kept.at)
    ), groups as (
        insert into counter (fold, queue, priority, error_key, failed, first_at, last_at)
        select h.fold, queue, 0, error_key, sum(failed), min(first_at), max(last_at)
        from failures f, head h group by 1, 2, 4 having sum(failed) <> 0)
    select fold into made from head;
    return made;
end $$;
comment on function recount_sums(fold, fold) is 'For recount(): makes a fold of this cluster from the counters of the '
    'last fold, the groups of errors of the last kept fold, and the deltas that these had not seen';

create or replace function recount() returns void
language plpgsql set search_path from current as $$
declare
    last fold;
    kept fold;
    made bigint;
begin
    select * into last from fold order by fold desc limit 1;
    select * into kept from fold where keep order by fold desc limit 1;
    made := recount_sums(last, kept);
    insert into queue_config (queue)
    select distinct c.queue from counter c
    where c.fold = made and not exists (select from queue_config q where q.queue = c.queue)
    limit greatest(0, setting_int('max_queues') - (select count(*) from queue_config))
    on conflict do nothing;
    insert into mark (mark, older) values (0, '{}');
    insert into tick (snapshot, want, weights, free, jobs, more, after, mark_at, day_at, joining, known)
    select f.snapshot, 20, 1, 0, 0, true, '-infinity', now(), '-infinity', t.joining, t.known
    from fold f, (select * from tick order by tick desc limit 1) t where f.fold = made;
    update meta set system_identifier = (select system_identifier from pg_control_system());
    insert into checked (queue, at) values ('', clock_timestamp()) on conflict (queue) do update set at = excluded.at;
    raise log 'queuetop: counters of schema % are counted anew: this is another cluster', current_schema();
    while coalesce(check_counts(20000), 0) = 10 and clock_timestamp() < now() + interval '300 ms' loop
        null; -- if there are few jobs, this call counts all of them
    end loop;
end $$;
comment on function recount() is 'Begins to make the counters anew, in another cluster: makes sums and a first tick at '
    'once; then every queue is counted, in portions (check_counts). The scheduler looks at each queue from its first '
    'job on (settle)';

-- 43_names
-- Which queues a step looks at. There may be a hundred thousand queues, and the cost of a step must follow what has
-- changed and not the number of queues. So a step looks at the queues in which something has changed and at those that
-- wait (tick.waiting, 500 at most). If more wait, the steps go through all names in turn, some names a step. What does
-- not fit into one step is kept for the next.

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
comment on function pass_all(tick) is 'For schedule(): more queues wait than tick.waiting can list, so the next cuts '
    'go through all names, some a step';

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
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set jit = off set plan_cache_mode = force_generic_plan as $$
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
    'to the last name. The rows of the two names are not read, dead ones neither';

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
        new := pass_all(new);
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
    'which something has changed (woken) and, if all are to be cut (whole), those that wait or the next of all names';

create or replace function settle_names(names text[]) returns text[]
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    busy text[];
begin
    with begun as materialized ( -- queues with a ready job; a running job counts as ready
        select n.queue, c.seq
        from unnest(names) n (queue)
        left join lateral (select c.seq from cursor c where c.queue = n.queue order by c.n desc limit 1) c on true
        where exists (select from queue j where j.queue = n.queue and j.state = 'ready')
    ), lane as materialized (
        select b.queue, i - 1 as priority, j.seq - 1 as seq, b.seq[i] as at, case when b.seq[i] is null then (
                   select max(w.seqs[cardinality(w.seqs)]) from work_queue w
                   -- leases of a priority without a cursor
                   where w.queue || '' = b.queue and w.priority = i - 1) end as high
        from begun b cross join generate_series(1, 10) i
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

-- 43_schedule
-- Takes leases back (expired, released, given back), and makes the steps: schedule() is one step with all its parts in
-- order.

create or replace function error_key(error text) returns text
language sql immutable parallel safe strict set search_path from current as $$
    select left(btrim(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(error, 1000),
        '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}', 'N', 'g'),
        '"[^"]*"|''[^'']*''|`[^`]*`', 'N', 'g'),
        -- E'...': the text means the same with any standard_conforming_strings
        E'0[xX][0-9a-fA-F]+|\\m(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\\M', 'N', 'g'),
        '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
        E'\\s+', ' ', 'g')), 300)
$$;
comment on function error_key(text) is 'The group of an error: its text with N in place of numbers, uuids, quoted '
    'parts and hex digits; at most 300 characters';

create or replace function add_days() returns void
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    parent text;
    part   text;
    day    date;
begin
    for parent, day in select t, (now() + i * interval '1 day')::date
                       from unnest(array['history', 'attempt']) t, generate_series(0, 7) i loop
        part := parent || to_char(day, '_YYYYMMDD');
        continue when to_regclass(quote_ident(part)) is not null;
        execute format('create table %I (like %I including all, constraint %I check (%I >= %L and %4$I < %6$L))',
                       part, parent,
                       part || '_day', case parent when 'history' then 'finished' else 'ended' end,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, part,
                       day::timestamptz, (day + 1)::timestamptz);
        execute format('alter table %I drop constraint %I', part, part || '_day');
    end loop;
end $$;
comment on function add_days() is 'Makes the partitions of history and attempt a week ahead, by LIKE and ATTACH: '
    'CREATE PARTITION OF would wait for the lock of a pg_dump';
select add_days();

create or replace function have_day() returns void
language plpgsql as $$
begin
    -- also for tomorrow: answers take the time from the clock, which may pass midnight before their transaction ends
    if (select count(*) from unnest(array['history', 'attempt']) t cross join generate_series(0, 1) d
        where to_regclass(quote_ident(t || to_char(now() at time zone 'UTC' + d * interval '1 day',
                                                   '_YYYYMMDD'))) is not null) < 4 then
        perform from scheduler where term = 0 for update; -- the scheduler's step makes partitions, too
        perform add_days();
    end if;
    -- with the name of the schema, because a database may have several queues
    perform set_config('queuetop.day', floor(date_part('epoch', now()) / 86400)::int::text || current_schema(), false);
end $$;
comment on function have_day() is 'Makes the partitions of today if they are missing, because no scheduler has run for '
    'a week: answers, lost leases and acts of operators write to them. Answers call it once a day and session';

-- Jobs of leases that end. No SET, so that the function is inlined into take_back_jobs().
create or replace function ending_leases(leases bigint[], part bigint[])
returns table (lease bigint, queue text, priority smallint, lock_key text, started timestamptz, all_started boolean,
    started_seqs bigint[], max_tries smallint, history "char", scattered boolean, seqs bigint[], rest bigint[])
language sql stable as $$
    select w.lease, w.queue, w.priority, w.lock_key, w.started, w.all_started, w.started_seqs, w.max_tries, w.history,
           w.scattered,
           case when ending_leases.part is null then w.seqs
                else array(select unnest(w.seqs) intersect select unnest(ending_leases.part) order by 1) end,
           case when ending_leases.part is null then '{}'
                else array(select unnest(w.seqs) except select unnest(ending_leases.part) order by 1) end
    from work_queue w where w.lease = any(ending_leases.leases)
$$;
comment on function ending_leases(bigint[], bigint[]) is 'Leases that end, with the jobs that come back (seqs) and '
    'those that stay (rest). part NULL: all jobs come back';

create or replace function back_in_line(queues text[], priorities int[], seqs bigint[], timeouts interval[])
returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    made record;
begin
    with leases as (
        insert into work_queue (lease, queue, priority, seqs, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), z.queue, z.priority, array[z.seq], z.lease_time, z.max_tries, z.history,
               z.run_timeout
        from (select j.queue, j.priority::smallint as priority, j.seq,
                     coalesce(j.timeout, nullif(c.lease_timeout, interval '60 s')) as lease_time,
                     nullif(c.max_tries, 5) as max_tries, nullif(left(c.history, 1), 'f')::"char" as history,
                     c.run_timeout
              from unnest(back_in_line.queues, back_in_line.priorities, back_in_line.seqs, back_in_line.timeouts)
                   j (queue, priority, seq, timeout)
              left join queue_config c on c.queue = j.queue
              where c.paused_at is null and c.rate is null and c.max_running is null
              order by j.seq) z
        returning queue, priority, seqs[1] as seq
    )
    select array_agg(l.queue) as queues, array_agg(l.priority::int) as priorities, array_agg(l.seq) as seqs into made
    from leases l;
    if made.queues is not null then
        perform move_cursor(made.queues, made.priorities, null, made.seqs);
        perform wake_workers();
    end if;
end $$;
comment on function back_in_line(text[], int[], bigint[], interval[]) is 'Makes a lease of one job for each job that '
    'came back. Jobs of queues that are paused or have limits stay uncut';

create or replace function end_asked(ids uuid[], nodes text[], began timestamptz[], histories "char"[], tries int[])
returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    with gone as (
        delete from queue q
        using unnest(end_asked.ids, end_asked.nodes, end_asked.began, end_asked.histories, end_asked.tries)
              j (id, node, began, history, now_tries)
        where q.id = any(end_asked.ids) and q.id = j.id
        returning q.*, j.node, j.began, j.history, j.now_tries
    )
    insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node, payload,
                         body, payload_type, error, unique_key, concurrency_key, origin_id, last_action, kept,
                         lease_timeout, run_timeout)
    select g.id, g.created, g.began, now(), 'cancelled', g.priority, g.now_tries, g.max_tries, g.queue, g.kind, g.node,
           case when g.history is null then g.payload end, case when g.history is null then g.body end,
           g.payload_type, g.error, g.unique_key, g.concurrency_key, g.origin_id, g.last_action, g.history is null,
           g.lease_timeout, g.run_timeout
    from gone g where g.history is distinct from 'n'
$$;
comment on function end_asked(uuid[], text[], timestamptz[], "char"[], int[]) is 'For take_back(): jobs whose end an '
    'operator asked for go to history as cancelled instead of coming back';

create or replace function take_back_jobs(leases bigint[], count boolean, fail boolean, why text, part bigint[])
returns table (id uuid, seq bigint, becomes text, queue text, priority int, new_seq bigint, lease_timeout interval,
    node text, started timestamptz, history "char", now_tries int, counted boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    return query
    with ending as materialized ( -- the caller has locked these rows and the scheduler's row
        select * from ending_leases(take_back_jobs.leases, take_back_jobs.part)
    ), deleted as (
        delete from work_queue d using ending e where d.lease = e.lease and e.rest = '{}'
    ), shortened as (
        update work_queue u
        set seqs = e.rest, started_seqs = case when u.started_seqs is not null then array(
            select unnest(u.started_seqs) intersect select unnest(e.rest)) end
        from ending e where u.lease = e.lease and e.rest <> '{}'
    ), jobs as materialized (
        select q.id, q.queue, q.priority, q.seq as was, q.lease_timeout, e.lock_key, e.started, e.history, z.counted,
               q.tries + case when z.counted then 1 else 0 end as now_tries,
               case when q.cancel_asked is not null and e.lock_key is not null then 'cancelled'
                    when take_back_jobs.fail then 'failed'
                    when z.counted and q.tries + 1 >= coalesce(q.max_tries, e.max_tries, 5) then 'failed'
                    else 'ready' end as becomes
        from ending e cross join lateral ranges(e.seqs, e.scattered) r
        cross join lateral (
            select q.* from queue q where q.queue = e.queue and q.priority = e.priority and q.state = 'ready'
            and q.seq between r.low and r.high and e.seqs[width_bucket(q.seq, e.seqs)] = q.seq offset 0) q
        cross join lateral (select take_back_jobs.count and e.lock_key is not null
                                   and (e.all_started or q.seq = any(e.started_seqs)) is true as counted) z
    ), numbered as materialized ( -- in the old order; an UPDATE joins in any order
        select j.*, nextval('job_seq') as new_seq
        from (select * from jobs where becomes <> 'cancelled' order by was) j
    -- in the order of id: a job's place is found by halving, where a join would compare each with each
    ), by_id as materialized (
        select array_agg(id order by id) as ids, array_agg(new_seq order by id) as seqs,
               array_agg(now_tries order by id) as tries, array_agg(becomes = 'failed' order by id) as failed,
               array_agg(counted or becomes = 'failed' order by id) as blamed
        from numbered
    ), changed as materialized (
        update queue q
        set seq = b.seqs[width_bucket(q.id, b.ids)], tries = b.tries[width_bucket(q.id, b.ids)],
            state = case when b.failed[width_bucket(q.id, b.ids)] then 'failed'::job_state else 'ready' end,
            changed = case when b.failed[width_bucket(q.id, b.ids)] then now() else q.changed end,
            error = case when b.blamed[width_bucket(q.id, b.ids)] then why else q.error end,
            error_key = case when b.blamed[width_bucket(q.id, b.ids)] then error_key(why) else q.error_key end
        from by_id b where q.id = any(array(select id from numbered))
        returning q.id, q.seq
    ), attempts as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error)
        select id, now_tries, was, queue, lock_key, started, now(), 'lost', why from jobs where counted
    )
    select j.id, j.was, j.becomes, j.queue, j.priority::int, c.seqs[p.at], case when p.at > 0 then j.lease_timeout end,
           j.lock_key, j.started, j.history, j.now_tries, j.counted
    from (select array_agg(id order by id) as ids, array_agg(seq order by id) as seqs from changed) c,
         jobs j, lateral (select case when c.ids[width_bucket(j.id, c.ids)] = j.id
                                      then width_bucket(j.id, c.ids) end as at) p
    order by j.was;
end $$;
comment on function take_back_jobs(bigint[], boolean, boolean, text, bigint[]) is 'For take_back(): ends the leases. '
    'Their jobs get new numbers and become ready or failed, or are returned as jobs to cancel';

create or replace function count_back(queues text[], priorities int[], becomes text[], counted boolean[], why text)
returns void
language sql set search_path from current as $$
    with jobs as materialized (
        select * from unnest(queues, priorities, becomes, counted) j (queue, priority, becomes, counted)
    )
    insert into delta (queue, priority, error_key, ready, failed, fails, lost, cancelled)
    select j.queue, j.priority, null, -count(*) filter (where j.becomes <> 'ready'),
           count(*) filter (where j.becomes = 'failed'), count(*) filter (where j.becomes = 'failed'),
           count(*) filter (where j.counted), count(*) filter (where j.becomes = 'cancelled')
    from jobs j group by 1, 2
    -- a delta makes cut_limited look at queues with limits
    having bool_or(j.becomes <> 'ready' or j.counted) or j.queue in (
        select c.queue from queue_config c where c.rate is not null or c.max_running is not null)
    union all
    select j.queue, 0, error_key(why), 0, count(*), 0, 0, 0 from jobs j where j.becomes = 'failed' group by 1
$$;
comment on function count_back(text[], int[], text[], boolean[], text) is 'For take_back(): writes the deltas';

create or replace function take_back(leases bigint[], count boolean, fail boolean, why text, part bigint[] default null)
returns table (id uuid, seq bigint, state text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a record; -- arrays of all jobs, in the same order
begin
    perform have_day();
    select array_agg(j.id) as ids, array_agg(j.seq) as seqs, array_agg(j.becomes) as becomes,
           array_agg(j.queue) as queues, array_agg(j.priority) as priorities, array_agg(j.counted) as counted,
           array_agg(j.id) filter (where j.becomes = 'cancelled') as asked,
           array_agg(j.node) filter (where j.becomes = 'cancelled') as nodes,
           array_agg(j.started) filter (where j.becomes = 'cancelled') as began,
           array_agg(j.history) filter (where j.becomes = 'cancelled') as histories,
           array_agg(j.now_tries) filter (where j.becomes = 'cancelled') as tries,
           array_agg(j.queue) filter (where j.becomes = 'ready') as back_queues,
           array_agg(j.priority) filter (where j.becomes = 'ready') as back_priorities,
           array_agg(j.new_seq) filter (where j.becomes = 'ready') as back_seqs,
           array_agg(j.lease_timeout) filter (where j.becomes = 'ready') as back_timeouts
    into a from take_back_jobs(leases, count, fail, why, part) j;
    if a.asked is not null then
        perform end_asked(a.asked, a.nodes, a.began, a.histories, a.tries);
    end if;
    if a.ids is not null then
        perform count_back(a.queues, a.priorities, a.becomes, a.counted, why);
    end if;
    if a.back_seqs is not null then
        perform back_in_line(a.back_queues, a.back_priorities, a.back_seqs, a.back_timeouts);
    end if;
    return query select * from unnest(a.ids, a.seqs, a.becomes);
end $$;
comment on function take_back(bigint[], boolean, boolean, text, bigint[]) is 'Ends leases, or the named part of them: '
    'their jobs come back with new numbers in new leases, or become failed. count: a try is counted for jobs that had '
    'started. Under the scheduler lock';

create or replace function steal() returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    leases bigint[];
    n      int;
begin
    select array_agg(lease) into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l
                                  where l.lock_key is not null and l.lock_timeout < now() limit 1000))
          and w.lock_key is not null and w.lock_timeout < now()
        order by w.lease + 0 for update skip locked) z;
    if leases is null then
        return 0;
    end if;
    select count(*) into n from take_back(leases, true, false, 'worker lost: its lease expired');
    return n;
end $$;
comment on function steal() is 'Takes expired leases back. A lease that an answer of its worker has locked is left '
    'alone';

create or replace function moved() returns boolean
language sql stable set search_path from current as
$$
    select (select system_identifier from meta) <> (select system_identifier from pg_control_system())
        or exists (select from delta where xid >= pg_snapshot_xmax(pg_current_snapshot())
                                           and xid is distinct from pg_current_xact_id_if_assigned())
        or (select pg_snapshot_xmax(f.snapshot) from fold f order by f.fold desc limit 1)
           > pg_snapshot_xmax(pg_current_snapshot())
        or (select pg_snapshot_xmax(t.snapshot) from tick t order by t.tick desc limit 1)
           > pg_snapshot_xmax(pg_current_snapshot())
$$;
comment on function moved() is 'Whether this is another cluster than the one in which the counters were made: its '
    'system identifier differs or, for a copy of that cluster with the same identifier, the counters know transactions '
    'that do not exist here yet';

create or replace function pace(t tick, free int, free_after int, more boolean, out rate real, out want int,
    out wait int)
language plpgsql immutable set search_path from current as $$
declare
    s float8 := greatest(0.0005, extract(epoch from clock_timestamp() - t.cut_at));
    r float8 := greatest(0, t.jobs - free) / s;
    -- 30 ms of work, so that new jobs do not wait long behind it; from 25,000 jobs a second on 100 ms, because a step
    -- takes longer there
    ahead int;
begin
    rate := case when r > t.rate then least(r, 2 * t.rate + 1000) else t.rate + (r - t.rate) * least(1, s) end;
    ahead := 0.1 * rate * greatest(0.3, least(1, rate / 25000));
    want := case when more and free < t.filled / 8 then least(2 * t.want, greatest(t.want, 100, 2 * ahead))
                 else t.want end;
    want := least(20000, greatest(want, ahead));
    wait := case when not more then 10 when free_after = 0 then 1
                 else least(20, greatest(1, (400.0 * free_after / greatest(1, rate))::int)) end;
end $$;
comment on function pace(tick, int, int, boolean) is 'How many jobs to keep free (30 to 100 ms of work, up to twice as '
    'many if they ran out), and when to come back (before half of them are claimed)';

create or replace function must_cut(t tick, free int) returns boolean
language sql stable as $$
    select t.more and (free <= t.filled / 2 or
        free < t.jobs and t.cut_at < clock_timestamp() - case when t.hasty then interval '10 ms'
                                                              else interval '50 ms' end)
$$;
comment on function must_cut(tick, int) is 'Whether all queues must be cut: half of the free jobs have been claimed, '
    'or some of them were claimed some time ago';

create or replace function set_back(t tick) returns tick
language plpgsql set search_path from current as $$
begin
    raise log 'queuetop: the clock was set back by % at least', t.at - clock_timestamp();
    t.mark_at := '-infinity';
    t.day_at := '-infinity';
    t.cut_at := clock_timestamp() - interval '1 s';
    t.limited_at := '-infinity';
    t.cron_at := null;
    update lane set due = '-infinity', expire_at = '-infinity';
    return t;
end $$;
comment on function set_back(tick) is 'After the clock was set back: everything that the last step put off to a time '
    'is due now. Leases keep the time until which they were granted';

create or replace function step_from(inout held text, out t tick)
language plpgsql as $$
begin
    select * into t from tick order by tick desc limit 1;
    if held in ('taken', 'once') and moved() then
        perform recount();
        held := 'taken';
        select * into t from tick order by tick desc limit 1;
    end if;
    if held = 'taken' then
        -- a look at all queues that had begun goes on, so that it comes to its end
        t.settled := coalesce(t.settled, '');
        t.more := true;
    end if;
    if t.at > clock_timestamp() + interval '1 s' then
        t := set_back(t);
        held := 'taken';
    end if;
end $$;
comment on function step_from(text) is 'For schedule(): the tick that the last step left. After a take-over (held), or '
    'after the clock was set back, some of its hints are not trusted';

create or replace function step_leases(inout new tick, news boolean, out stolen int)
language plpgsql as $$
declare
    living timestamptz;
begin
    if new.mark_at >= clock_timestamp() or not (news or new.want > 20 or exists (select from live)) then
        return;
    end if;
    stolen := steal();
    perform mark_leases();
    new := take_chunks(new);
    new.names := null;
    -- so that a lease that somebody freed by hand is found
    new.free := least(new.free, (select min(lease) from live where lock_key is null));
    -- an idle scheduler comes once a second, almost to the millisecond
    new.mark_at := clock_timestamp() + interval '900 ms';
    living := now() - setting_interval('node_dead');
    -- 20000 at most, as in pace(), however many slots table node has
    new.want := least(20000, greatest(new.want * 4 / 5,
        coalesce((select 2 * sum(greatest(1, least(1000, n.slots))) from node n where n.heartbeat > living), 20)));
    new.hasty := exists (select from node n where n.queues is not null and n.heartbeat > living);
    new.slots := (select max(n.slots) from node n where n.heartbeat > living);
end $$;
comment on function step_leases(tick, boolean) is 'For schedule(), once a second: takes expired leases back, moves the '
    'mark, and measures how many jobs the living nodes can take. stolen: NULL = it was not time yet';

create or replace function step_late(queues text[], d record, out q text[], out p int[], out f bigint[], out t bigint[])
language plpgsql set search_path from current as $$
declare
    put_off record;
begin
    if d.late_queues is null then
        return;
    end if;
    select array_agg(v.q) filter (where v.now), array_agg(v.p) filter (where v.now),
           array_agg(v.f) filter (where v.now), array_agg(v.t) filter (where v.now)
    into q, p, f, t
    from (select u.*, u.q = any(queues) as now
          from unnest(d.late_queues, d.late_priorities, d.late_from, d.late_to) u (q, p, f, t)) v;
    select array_agg(v.q) as q, array_agg(v.p) as p, array_agg(v.f - 1) as f into put_off
    from unnest(d.late_queues, d.late_priorities, d.late_from) v (q, p, f) where v.q <> all(queues);
    if put_off.q is not null then -- a later cut finds them
        perform move_cursor(put_off.q, put_off.p, put_off.f, null);
    end if;
end $$;
comment on function step_late(text[], record) is 'For schedule(): the late jobs of the queues that are cut now. The '
    'cursors of the other queues are lowered, so that their late jobs are found later. d: the result of read_deltas()';

create or replace function step_cut(t tick, inout new tick, woken text[], whole boolean, d record,
    out cut int, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    queues text[];
    late record;
    c record;
    p record;
begin
    select * into p from step_queues(new, woken, whole);
    new := p.new;
    queues := p.queues;
    select * into late from step_late(queues, d);
    select * into c from cut(new, queues, whole, late.q, late.p, late.f, late.t);
    new.waiting := case when new.again then '{}'
                        else array((select unnest(new.waiting) except select unnest(queues))
                                   union select unnest(c.remaining)) end;
    if cardinality(new.waiting) > 500 then
        new := pass_all(new);
        new.waiting := '{}';
    end if;
    new.more := not whole and t.more or new.waiting <> '{}' or new.place is not null or new.settled is not null
                or new.joining;
    select * into p from pace(t, c.free_before, c.free_jobs, new.more);
    step_cut.cut := c.jobs;
    wait_ms := p.wait;
    wrote := c.jobs > 0 or not new.more or whole and new.place is distinct from t.place;
    new.free := c.first;
    new.jobs := c.free_jobs;
    new.cut_at := clock_timestamp();
    new.rate := p.rate;
    if whole then
        new.weights := greatest(1, c.weights);
        new.filled := c.free_jobs;
        new.want := greatest(new.want, p.want);
    end if;
end $$;
comment on function step_cut(tick, tick, text[], boolean, record) is 'For schedule(): cuts the queues in which '
    'something has changed (woken) and, if whole, those that wait; writes to the tick how many jobs are free then. d: '
    'the result of read_deltas()';

create or replace function step_end(snapshot pg_snapshot, new tick) returns void
language plpgsql as $$
begin
    insert into tick (snapshot, want, weights, free, jobs, filled, more, cut_at, rate, hasty, after, after_seq, mark_at,
                      day_at, limited_at, cron_at, waiting, place, again, settled, patrol, slots, joining, known, names,
                      limited, limits, measured, trimmed)
    values (step_end.snapshot, new.want, new.weights, new.free, new.jobs, new.filled, new.more, new.cut_at, new.rate,
            new.hasty, new.after, new.after_seq, new.mark_at, new.day_at, new.limited_at, new.cron_at, new.waiting,
            new.place, new.again, new.settled, new.patrol, new.slots, new.joining, new.known, new.names, new.limited,
            new.limits, new.measured, new.trimmed);
end $$;
comment on function step_end(pg_snapshot, tick) is 'For schedule(): writes the tick with which the next step begins';

create or replace function step_again(at timestamptz) returns int
language sql volatile as $$
    select 1 + (1000 * extract(epoch from greatest(least(at, now() + interval '1 min'), now())
                                          - clock_timestamp()))::int
$$;
comment on function step_again(timestamptz) is 'For schedule(): milliseconds from now until that time, at least 1, at '
    'most those of a minute, so that the result fits an int';

create or replace function step_days(inout new tick)
language plpgsql set search_path from current as $$
begin
    if new.day_at < clock_timestamp() then
        perform add_days(); -- first, because lost and expired jobs need the partitions of today
        select r.place, clock_timestamp() + r.pause into new.trimmed, new.day_at from retain(new.trimmed) r;
    end if;
    if new.cron_at is null or new.cron_at <= clock_timestamp() then
        new.cron_at := cron_due(); -- before the deltas are read, so that this step sees what schedules push
    end if;
end $$;
comment on function step_days(tick) is 'For schedule(): what is due by the clock: partitions of the next days, '
    'retention, and jobs of schedules';

create or replace function step_news(inout new tick, d record, started boolean, out woken text[], out promoted int,
    out due timestamptz, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    t tick := new;
    p record;
begin
    new.after_seq := case when d.lowest <= t.after then 0 else t.after_seq end;
    -- After the clock was set back, t.after may be ahead of the time at which the next job is due.
    new.after := least(t.after, d.lowest);
    wrote := d.n > 0 or started or t.joining;
    select * into p from register(new, d.new_queues, d.new_priorities, d.new_seqs);
    new := p.new;
    woken := d.woken || d.late_queues || p.known;
    if new.settled is not null then
        select * into p from settle(new.settled, 2000);
        new.settled := p.after;
        woken := woken || p.busy;
        wrote := true;
    end if;
    promoted := 0;
    select * into p from due_soon(new, d.lowest);
    new := p.new;
    due := p.due;
    wrote := wrote or p.passed;
    if due <= now() then
        select * into p from promote(t, d.lowest);
        promoted := p.n;
        new.after := p.upto;
        new.after_seq := p.upto_seq;
        woken := woken || p.queues;
        wrote := true;
    end if;
    select * into p from tend_limits(d.n > 0 or promoted > 0 or started);
    woken := woken || p.queues;
    wrote := wrote or p.unblocked + p.expired > 0;
    wait_ms := p.wait_ms;
end $$;
comment on function step_news(tick, record, boolean) is 'For schedule(): makes new names known, promotes due jobs, '
    'unblocks and expires jobs. d: the result of read_deltas(); started: this scheduler has just taken over; woken: '
    'queues in which something has changed; due: when the next waiting job is due';

create or replace function step_make(t tick, inout new tick, woken text[], d record, started boolean, second boolean,
    out cut int, out wait_ms int, out wrote boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    free  int := 0;
    whole boolean; -- whether all queues that wait are to be cut
    p     record;
begin
    cut := 0; wrote := false;
    if t.more then
        select coalesce(sum(cardinality(seqs)), 0), coalesce(min(lease), new.free) into free, new.free
        from work_queue where lease >= new.free and lock_key is null;
    end if;
    whole := must_cut(t, free) or started;
    if second then
        select * into p from next_waiting(new.patrol, 100, 100, true);
        new.patrol := coalesce(p.upto, '');
        woken := woken || nullif(p.queues, '{}');
    end if;
    if cardinality(woken) > 0 then
        select * into p from cut_front(new, woken);
        new := p.t;
        cut := p.jobs;
    end if;
    if whole or woken is not null then
        select * into p from step_cut(t, new, woken, whole, d);
        new := p.new;
        wrote := p.wrote or cut > 0;
        cut := cut + p.cut;
        wait_ms := p.wait_ms;
    elsif d.n > 0 or t.more and free < t.jobs then
        wait_ms := 5;
    end if;
    select * into p from step_limits(t, new, woken, whole);
    new := p.new;
    cut := cut + p.cut;
    wrote := wrote or p.wrote;
    if p.more then
        wait_ms := least(wait_ms, 5);
    end if;
end $$;
comment on function step_make(tick, tick, text[], record, boolean, boolean) is 'For schedule(): makes the leases. '
    'second: a second has passed, so the patrol goes on; wait_ms NULL: nothing was new';

create or replace function schedule(holder text, idle_ms int default null)
returns table (active boolean, cut int, promoted int, stolen int, wait_ms int)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set enable_hashjoin = on -- a claim that calls schedule() has switched hash joins off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    held  text := scheduler_hold(holder);
    began timestamptz := clock_timestamp();
    t     tick; -- the tick of the last step
    new   tick;
    d     record;
    p     record;
    news  record;
    write boolean;
begin
    active := held <> 'no';
    cut := 0; promoted := 0; stolen := 0; wait_ms := 1000;
    if not active then
        return next;
        return;
    end if;
    select * into p from step_from(held);
    held := p.held;
    t := p.t;
    new := step_days(t);
    select * into d from read_news(t);
    if d.flood then
        new := step_flood(new);
    end if;
    select * into news from step_news(new, d, held = 'taken');
    promoted := news.promoted;
    select * into p from step_leases(news.new, d.n > 0);
    new := p.new;
    stolen := coalesce(p.stolen, 0);
    write := news.wrote or p.stolen is not null or new.day_at <> t.day_at;
    wait_ms := coalesce(idle_ms, idle_wait());
    select * into p from step_make(t, new, case when stolen > 0 then coalesce(news.woken, '{}') else news.woken end,
                                   d, held = 'taken', new.mark_at is distinct from t.mark_at);
    new := p.new;
    cut := p.cut;
    wait_ms := coalesce(p.wait_ms, wait_ms);
    if write or p.wrote then
        perform step_end(d.snapshot, new);
    end if;
    if news.wrote or p.wrote or stolen > 0 then -- a step that only moves the mark makes no work for anybody
        perform tell_sleepers();
    end if;
    perform wake_workers() where cut + stolen > 0;
    if must_fold('2 s') then -- nobody folds beside the steps
        perform fold_beside('2 s');
    end if;
    perform scheduler_stay(holder) where clock_timestamp() > began + interval '1 s';
    wait_ms := greatest(0, least(wait_ms, news.wait_ms, case when news.due > now() then step_again(news.due) end,
                                 step_again(new.limited_at), step_again(new.cron_at),
                                 case when new.settled is not null or new.joining then 0 end));
    return next;
end $$;
comment on function schedule(text, int) is 'One step of the scheduler named holder: pushes jobs of schedules that are '
    'due, promotes due jobs, takes expired leases back, cuts new leases. Call it again after wait_ms (after idle_ms at '
    'most if nothing is new; NULL: idle_wait()). active = false: another scheduler is active. If nothing is new, the '
    'step writes nothing. fold_beside() folds the counters; if nobody calls it, a step does it';

-- 44_keys
-- Concurrency keys and the expiry of jobs. Everything in this file runs under the scheduler lock, inside schedule(),
-- which calls tend_limits(). The newest row of table lane says where both continue.
--
-- A job with a concurrency key waits in state blocked. unblock() makes it ready if its key has room. If the waiting job
-- is more urgent than a ready job of the key that nobody has claimed, the ready job is blocked again in exchange.

do $$
begin
    if to_regtype('key_place') is null then
        create type key_place as (queue text collate "C", key text collate "C", n int, low bigint[], ids uuid[]);
    end if;
end $$;
comment on type key_place is 'What is remembered of a concurrency key: how many jobs it got, behind which number its '
    'waiting jobs of each priority begin, and which of its jobs are ready';
create table if not exists lane (
    n         bigint generated always as identity primary key,
    queue     text collate "C" not null,
    key       text collate "C" not null,
    laps      int not null,
    due       timestamptz not null,
    expire_at timestamptz not null,
    expired_to  timestamptz not null default '-infinity',
    expired_seq bigint not null default 0,
    expire_all  timestamptz not null default '-infinity',
    hot       key_place[] not null default '{}',
    hot_at    timestamptz not null default '-infinity',
    old_seq   bigint not null default 0,
    mid_seq   bigint not null default 0,
    hot_all   timestamptz not null default '-infinity'
);
alter table lane set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
comment on table lane is 'Where unblock() continues among the waiting keys; the newest row counts';
comment on column lane.laps is 'How often unblock() still has to go through all keys; 0 = nothing has changed since it '
    'looked at all';
comment on column lane.due is 'No look for blocked jobs before this time. The looks take at most a tenth of the time, '
    'or are 200 ms apart';
comment on column lane.expire_at is 'No look for jobs to expire before this time';
comment on column lane.expired_to is 'All jobs whose expires_at is before this time have been expired; of those with '
    'exactly this time, the ones up to number expired_seq. Their dead rows stay while somebody holds a snapshot, so '
    'the next look starts behind them';
comment on column lane.expire_all is 'When a look starts at the first job again: a transaction may have committed '
    'late, or a job may have been pushed after its expires_at';
comment on column lane.hot is 'The keys that got the most jobs, in order. The dead rows of these jobs stay while '
    'somebody holds a snapshot, so looks start behind them';
comment on column lane.hot_at is 'When old_seq and mid_seq were last moved on, which is done every ten seconds';
comment on column lane.old_seq is 'A value of job_seq at least ten seconds old. Jobs with a higher number are always '
    'looked for';
comment on column lane.mid_seq is 'The value of job_seq at hot_at; it is the next old_seq';
comment on column lane.hot_all is 'When to look at all jobs of these keys again, because a transaction took longer '
    'than ten seconds';
insert into lane (queue, key, laps, due, expire_at)
select '', '', 2, '-infinity', '-infinity' where not exists (select from lane);

-- While somebody holds a snapshot, each job that a key gets leaves a dead row before the first waiting job of the key
-- and before its ready ones. So table lane remembers, for the keys that got the most jobs (key_place), which of their
-- jobs are ready, and up to which number of each priority their waiting jobs have left. lane knows all of these,
-- because jobs become ready only here, under the scheduler's lock. A push may commit late: jobs that took their number
-- in the last ten seconds are always looked for, older ones once a minute (look_back).

create or replace function key_ready(queue text, key text, ids uuid[], most int)
returns table (id uuid, priority smallint, seq bigint)
language sql stable as $$
    (select r.id, r.priority, r.seq from queue r
     where key_ready.ids is null and r.state = (select 'ready'::job_state) and r.queue = key_ready.queue
       and r.concurrency_key = key_ready.key limit most)
    union all
    (select r.id, r.priority, r.seq from queue r where r.id = any(key_ready.ids) and r.state::text = 'ready')
$$;
comment on function key_ready(text, text, uuid[], int) is 'The ready jobs of a key, including running ones: those with '
    'these ids or, if ids is NULL, up to most of them by the index. No SET, so that it is inlined';

-- (select 'ready') instead of 'ready': the planner does not know the value, so it can use only the index queue_keyed,
-- which has all states.
create or replace function key_blocked(queue text, key text, low bigint[], most int)
returns table (priority smallint, seq bigint)
language sql stable as $$
    (select b.priority, b.seq from queue b
     where key_blocked.low is null and b.state = (select 'blocked'::job_state) and b.queue = key_blocked.queue
       and b.concurrency_key = key_blocked.key and (b.expires_at > now()) is not false
     order by b.priority, b.seq limit most)
    union all
    (select b.priority, b.seq
     from unnest(key_blocked.low) with ordinality p (low, place)
     cross join lateral (
         select b.priority, b.seq from queue b
         where b.state = (select 'blocked'::job_state) and b.queue = key_blocked.queue
           and b.concurrency_key = key_blocked.key and b.priority = (p.place - 1)::smallint
           and b.seq > coalesce(p.low, 0) and (b.expires_at > now()) is not false
         order by b.seq limit most) b
     limit most)
$$;
comment on function key_blocked(text, text, bigint[], int) is 'The first waiting jobs of a key: for each priority '
    'those behind this number, or all if low is NULL. No SET, so that it is inlined';

create or replace function key_between(queue text, key text, upto_queue text, upto_key text)
returns table (queue text, key text)
language sql stable as $$
    (select q.queue, q.concurrency_key from queue q
     where upto_queue is null and q.state = 'blocked' and q.concurrency_key is not null
       and (q.queue, q.concurrency_key) > (key_between.queue, key_between.key)
     order by q.queue, q.concurrency_key limit 1)
    union all -- a scan that is to end before a pair of values ends only at the first value
    (select q.queue, q.concurrency_key from queue q
     where upto_queue = key_between.queue and q.state = 'blocked' and q.queue = key_between.queue
       and q.concurrency_key > key_between.key and q.concurrency_key < upto_key
     order by q.concurrency_key limit 1)
    union all
    (select q.queue, q.concurrency_key from queue q
     where upto_queue > key_between.queue and q.state = 'blocked' and q.queue = key_between.queue
       and q.concurrency_key > key_between.key
     order by q.concurrency_key limit 1)
    union all
    (select q.queue, q.concurrency_key from queue q
     where q.state = 'blocked' and q.concurrency_key is not null and q.queue > key_between.queue
       and q.queue < upto_queue
     order by q.queue, q.concurrency_key limit 1)
    union all
    (select q.queue, q.concurrency_key from queue q
     where upto_queue > key_between.queue and q.state = 'blocked' and q.queue = upto_queue
       and q.concurrency_key < upto_key
     order by q.concurrency_key limit 1)
$$;
comment on function key_between(text, text, text, text) is 'The first key with blocked jobs behind one key and before '
    'another (if upto_queue is not NULL); the first row counts. No SET, so that it is inlined';

create or replace function waiting_keys(queue text, key text, n int, hot key_place[] default '{}')
returns table (queue text, key text)
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set jit = off as $$
    with recursive place as (
        select waiting_keys.queue collate "C" as queue, waiting_keys.key collate "C" as key, 0 as i
        union all
        select x.queue, x.key, place.i + 1
        from place
        cross join lateral (select waiting_keys.hot[(
            select min(h.o) from unnest(waiting_keys.hot) with ordinality h (queue, key, n, low, ids, o)
            where (h.queue, h.key) > (place.queue, place.key))] as h) next
        cross join lateral (
            select coalesce(f.queue, (next.h).queue) as queue, coalesce(f.key, (next.h).key) as key
            from (select) z left join lateral (
                select k.queue, k.key
                from key_between(place.queue, place.key, (next.h).queue, (next.h).key) k limit 1) f on true) x
        where place.i < waiting_keys.n and x.queue is not null
    )
    select place.queue, place.key from place where place.i > 0
$$;
comment on function waiting_keys(text, text, int, key_place[]) is 'Up to n keys with blocked jobs behind this queue '
    'and key. Each takes one look at the index, however many jobs wait; the keys in hot, which are in order, take none';

create or replace function less_urgent(queues text[], keys text[], hot key_place[], out ids uuid[], out seqs bigint[])
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select array_agg(r.id), array_agg(r.seq order by r.seq)
    from unnest(queues, keys) v (queue, key)
    left join unnest(hot) h on h.queue = v.queue and h.key = v.key
    left join queue_config c on c.queue = v.queue
    cross join lateral (select b.priority from key_blocked(v.queue, v.key, h.low, 1) b) b
    cross join lateral (
        (select r.id, r.seq from queue r
         where h.ids is null and r.state = (select 'ready'::job_state) and r.queue = v.queue
           and r.concurrency_key = v.key and r.priority > b.priority
         order by r.priority desc, r.seq desc limit 100)
        union all
        (select r.id, r.seq from queue r
         where r.id = any(h.ids) and r.state::text = 'ready' and r.priority > b.priority)) r
    where coalesce(c.max_per_key, 1) <= (
        select count(*) from key_ready(v.queue, v.key, h.ids, coalesce(c.max_per_key, 1)) a)
$$;
comment on function less_urgent(text[], text[], key_place[]) is 'Ready jobs, including running ones, of keys without '
    'room, that are less urgent than a blocked job of the key; up to 100 a key';

create or replace function take_out(leases bigint[], seqs bigint[]) returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    gone bigint[] := array(select s from unnest(seqs) s order by s); -- sorted for binary search
begin
    with rest as materialized (
        select w.lease, w.seqs as old, array(select s from unnest(w.seqs) s
                                             where gone[width_bucket(s, gone)] is distinct from s order by s) as seqs
        from work_queue w where w.lease = any(take_out.leases)
    ), emptied as (
        delete from work_queue w using rest r where w.lease = r.lease and r.seqs = '{}'
    )
    update work_queue w set seqs = r.seqs from rest r where w.lease = r.lease and r.seqs not in ('{}', r.old);
end $$;
comment on function take_out(bigint[], bigint[]) is 'Takes these jobs out of these leases; the caller has locked them. '
    'An empty lease is deleted';

create or replace function block_again(queues text[], keys text[], hot key_place[]) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
    found record := less_urgent(queues, keys, hot);
    seqs  bigint[] := found.seqs;
    done  record;
begin
    if found.ids is null then
        return 0;
    end if;
    with free as materialized ( -- a claim that is in progress is not waited for: its job runs
        select w.lease, w.seqs from work_queue w
        where w.lock_key is null and w.lease = any(array(
            select l.lease from live l
            where l.lock_key is null
              and exists (select from unnest(l.seqs) s where seqs[width_bucket(s, seqs)] = s offset 0)))
        order by w.lease + 0 for update skip locked
    ), ours as materialized (
        select f.lease, s as seq from free f cross join unnest(f.seqs) s where seqs[width_bucket(s, seqs)] = s
    ), cut as materialized (
        select s as seq from live l cross join unnest(l.seqs) s where seqs[width_bucket(s, seqs)] = s
    ), job as materialized (
        select q.id, q.queue, q.concurrency_key as key, q.priority, q.seq, o.lease
        from queue q left join ours o on o.seq = q.seq
        where q.id = any(found.ids) and q.state = 'ready'
          and (o.seq is not null or q.seq not in (select c.seq from cut c))
        for update of q skip locked
    ), low as ( -- the least urgent ready job is exchanged for the most urgent blocked one, and so on
        select j.*, row_number() over (partition by j.queue, j.key order by j.priority desc, j.seq desc) as rank
        from job j
    ), high as (
        select k.queue, k.key, b.priority,
               row_number() over (partition by k.queue, k.key order by b.priority, b.seq) as rank
        from (select distinct j.queue, j.key from job j) k
        left join unnest(hot) h on h.queue = k.queue and h.key = k.key
        cross join lateral key_blocked(k.queue, k.key, h.low, 100) b
    ), swap as materialized (
        select l.* from low l join high h using (queue, key, rank) where l.priority > h.priority order by rank limit 500
    ), blocked as (
        update queue q set state = 'blocked', changed = now() from swap x
        where q.id = any(found.ids) and q.id = x.id returning q.queue, q.priority
    ), counted as (
        insert into delta (queue, priority, ready, blocked)
        select queue, priority, -count(*), count(*) from blocked group by 1, 2
    )
    select count(*)::int as n, array_agg(distinct x.queue) as queues,
           array_agg(x.seq) filter (where x.lease is not null) as cut,
           array_agg(x.lease) filter (where x.lease is not null) as leases
    into done from swap x;
    if done.cut is not null then
        perform take_out(done.leases, done.cut);
        perform bucket_forget(q, done.cut) from unnest(done.queues) q;
    end if;
    return done.n;
end $$;
comment on function block_again(text[], text[], key_place[]) is 'Blocks ready jobs again that nobody has claimed, as '
    'many as there are more urgent blocked jobs of the same key; unblock_keys() then makes the urgent ones ready. Up '
    'to 500 a call, under the scheduler lock. Returns how many';

create or replace function unblock_keys(queues text[], keys text[], hot key_place[],
    out n int, out woken text[], out places key_place[])
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    with key as materialized (
        select v.queue, v.key, h.low, r.ids, m.most, m.most - coalesce(cardinality(r.ids), (
                   select count(*) from key_ready(v.queue, v.key, h.ids, m.most) a)) as room
        from unnest(queues, keys) v (queue, key)
        left join unnest(hot) h on h.queue = v.queue and h.key = v.key
        left join queue_config c on c.queue = v.queue
        cross join lateral (select coalesce(c.max_per_key, 1) as most) m
        cross join lateral (select case when m.most <= 20 then array(
            select a.id from key_ready(v.queue, v.key, h.ids, m.most + 1) a) end as ids) r
    ), waiting as materialized (
        select k.queue, k.key, k.room, b.id, b.priority, b.seq
        from key k cross join lateral (
            select q.id, q.priority, q.seq from queue q
            where q.state = 'blocked' and q.queue = k.queue and q.concurrency_key = k.key
              and (q.expires_at is null or q.expires_at > now())
            order by q.priority, q.seq limit k.room for update skip locked) b
        where k.room > 0 and k.low is null
        union all
        select k.queue, k.key, k.room, b.id, b.priority, b.seq
        from key k cross join lateral unnest(k.low) with ordinality p (low, place) cross join lateral (
            select q.id, q.priority, q.seq from queue q
            where q.state = (select 'blocked'::job_state) and q.queue = k.queue and q.concurrency_key = k.key
              and q.priority = (p.place - 1)::smallint and q.seq > coalesce(p.low, 0)
              and (q.expires_at is null or q.expires_at > now())
            order by q.seq limit k.room for update skip locked) b
        where k.room > 0
    ), ranked as materialized ( -- first one job of each key, then a second one of each key
        select w.*, row_number() over (partition by w.queue, w.key order by w.priority, w.seq) as rank from waiting w
    ), taken as materialized (
        select z.*, nextval('job_seq') as new_seq
        from (select r.* from ranked r where r.rank <= r.room order by r.rank, r.seq limit 1000) z
    ), freed as (
        update queue q set state = 'ready', seq = t.new_seq, changed = now() from taken t
        where q.id = any(array(select id from taken)) and q.id = t.id returning q.queue, q.priority
    ), counted as ( -- no min_seq: under this lock no job is late
        insert into delta (queue, priority, ready, blocked)
        select queue, priority, count(*), -count(*) from freed group by 1, 2
    ), handed as (
        select g.*, array(select max(l.seq) from generate_series(0, 9) i
                          left join unnest(g.levels, g.seqs) l (level, seq) on l.level = i
                          group by i order by i) as low
        from (select t.queue, t.key, count(*)::int as n, array_agg(t.id) as ids, array_agg(t.priority) as levels,
                     array_agg(t.seq) as seqs
              from taken t group by t.queue, t.key) g
    )
    select (select count(*)::int from freed), (select array_agg(distinct queue) from freed),
           (select array_agg((h.queue, h.key, h.n, h.low, k.ids || h.ids)::key_place)
            from handed h join key k on k.queue = h.queue and k.key = h.key where cardinality(k.ids) <= k.most)
$$;
comment on function unblock_keys(text[], text[], key_place[]) is 'Makes the first jobs of these keys ready, as many as '
    'max_per_key allows. places: the keys that got jobs, and how far';

create or replace function remember_keys(hot key_place[], got key_place[]) returns key_place[]
language sql stable set search_path from current as $$
    select coalesce(array_agg((p.queue, p.key, p.n, p.low, p.ids)::key_place order by p.queue, p.key), '{}')
    from (
        select coalesce(g.queue, h.queue) as queue, coalesce(g.key, h.key) as key,
               case when g.queue is null then h.n
                    else g.n + coalesce(h.n, case when cardinality(hot) >= 64 then m.n else 0 end) end as n,
               array(select coalesce(g.low[i], h.low[i]) from generate_series(1, 10) i order by i) as low,
               coalesce(g.ids, h.ids) as ids
        from unnest(hot) h full join unnest(got) g on g.queue = h.queue and g.key = h.key
        cross join (select min(z.n) as n from unnest(hot) z) m
        order by 3 desc, 1, 2 limit 64) p
$$;
comment on function remember_keys(key_place[], key_place[]) is 'The 64 keys that got the most jobs, of those '
    'remembered and those that just got some. A new key replaces the last one and takes over its count';

create or replace function look_back(hot key_place[]) returns key_place[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select coalesce(array_agg((h.queue, h.key, h.n, b.low, h.ids)::key_place order by h.queue, h.key), '{}')
    from unnest(hot) h
    cross join lateral (
        select array_agg(coalesce(late.seq - 1, p.low) order by p.place) as low
        from unnest(h.low) with ordinality p (low, place)
        left join lateral (
            select q.seq from queue q
            where q.state = (select 'blocked'::job_state) and q.queue = h.queue and q.concurrency_key = h.key
              and q.priority = (p.place - 1)::smallint and q.seq <= p.low
            order by q.seq limit 1) late on true) b
$$;
comment on function look_back(key_place[]) is 'Looks for waiting jobs of these keys from the first number on, because '
    'a transaction may have committed long after it took its number';

create or replace function unblock(inout place lane, out n int, out queues text[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    most  int := 200; -- keys a step
    began timestamptz := clock_timestamp();
    hot   key_place[];
    k     record;
    again record;
    done  record;
begin
    -- every ten seconds, or after the clock was set back
    if place.hot_at not between began - interval '10 s' and began then
        place.hot_at := began;
        place.old_seq := place.mid_seq;
        select s.last_value into place.mid_seq from job_seq s;
        place.hot := array(select (h.queue, h.key, greatest(1, h.n / 2), h.low, h.ids)::key_place
                           from unnest(place.hot) with ordinality h (queue, key, n, low, ids, o) order by o);
    end if;
    if place.hot <> '{}' and place.hot_all not between began and began + interval '1 min' then
        place.hot := look_back(place.hot);
        place.hot_all := began + least(1000 * (clock_timestamp() - began), interval '1 min');
    end if;
    hot := array(select (h.queue, h.key, h.n, array(select least(l, place.old_seq)
                                                    from unnest(h.low) with ordinality u (l, i) order by i),
                         h.ids)::key_place
                 from unnest(place.hot) with ordinality h (queue, key, n, low, ids, o) order by o);
    select array_agg(w.queue) as q, array_agg(w.key) as k, count(*)::int as n into k
    from waiting_keys(place.queue, place.key, most, hot) w;
    if k.n < most then -- continue at the first key; no key twice, or its room would be used twice
        select array_agg(w.queue) as q, array_agg(w.key) as k, count(*)::int as n into again
        from waiting_keys('', '', most - k.n, hot) w where (w.queue, w.key) <= (place.queue, place.key);
        place.laps := case when k.n + again.n < most then 0 else place.laps - 1 end;
        k.q := k.q || again.q;
        k.k := k.k || again.k;
        k.n := k.n + again.n;
    end if;
    if k.n = most then
        place.queue := k.q[most];
        place.key := k.k[most];
    end if;
    perform block_again(k.q, k.k, hot);
    select * into done from unblock_keys(k.q, k.k, hot);
    n := done.n;
    queues := done.woken;
    if done.places is not null then
        place.hot := remember_keys(place.hot, done.places);
    end if;
    if n >= 1000 then
        place.laps := 2;
    end if;
end $$;
comment on function unblock(lane) is 'Makes blocked jobs ready if their key has room: up to 200 keys and 1000 jobs, '
    'from where the last step ended';

create or replace function next_expired(since timestamptz, since_seq bigint) returns boolean
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    return exists (select from queue q where (q.expires_at, q.seq) > (since, since_seq) and q.expires_at <= now()
                   and q.state <> 'failed' order by q.expires_at, q.seq limit 1);
end $$;
comment on function next_expired(timestamptz, bigint) is 'Whether a job after this time and number has expired; '
    'running jobs count, too';

create or replace function overdue(since timestamptz, since_seq bigint, most int)
returns table (id uuid, expires_at timestamptz, seq bigint, runs boolean)
language sql stable as $$
    with held as materialized (
        select unnest(w.seqs) as seq from live w where w.lock_key is not null
    ), over as materialized (
        select q.id, q.expires_at, q.seq, q.state = 'ready' and q.seq in (select h.seq from held h) as runs
        from queue q
        where (q.expires_at, q.seq) > (since, since_seq) and q.expires_at <= now() and q.state <> 'failed'
        order by q.expires_at, q.seq limit most + (select count(*) from held)
    )
    select z.id, z.expires_at, z.seq, z.runs
    from (select o.*, count(*) filter (where not o.runs) over (order by o.expires_at, o.seq) as rank from over o) z
    where z.rank <= most
$$;
comment on function overdue(timestamptz, bigint, int) is 'For expire(): the jobs after this time and number that have '
    'expired: up to most jobs that wait, and those between them that run. No SET, so that it is inlined';

create or replace function expire_jobs(ids uuid[], leases bigint[], out gone uuid[], out queues text[],
    out was_cut bigint[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan
    set enable_nestloop = off set enable_hashjoin = on as $$ -- else each job would look at all jobs of the step
#variable_conflict use_column
begin
    with over as materialized (
        select q.id, q.seq, q.state from queue q
        where q.id = any(expire_jobs.ids) and q.expires_at <= now() and q.state::text <> 'failed'
        order by q.id for update skip locked
    ), leased as materialized (
        select l.lease, unnest(l.seqs) as seq from live l
    ), waiting as materialized (
        select o.id, o.seq, l.lease from over o left join leased l on l.seq = o.seq and o.state = 'ready'
        where l.lease is null or l.lease = any(expire_jobs.leases)
    ), job as (
        delete from queue q using waiting w where q.id = any(expire_jobs.ids) and q.id = w.id returning q.*, w.lease
    ), finished as (
        insert into history (id, created, finished, state, priority, tries, max_tries, queue, kind, payload, body,
                             payload_type, error, unique_key, origin_id, last_action, kept, run_after, lease_timeout,
                             run_timeout, concurrency_key)
        select j.id, created, now(), 'cancelled', priority, tries, j.max_tries, j.queue, kind,
               case when keep then payload end, case when keep then body end, payload_type, 'expired', unique_key,
               origin_id, last_action, keep, run_after, j.lease_timeout, j.run_timeout, j.concurrency_key
        from job j left join queue_config c on c.queue = j.queue
        cross join lateral (select coalesce(c.history, 'full') = 'full' as keep) k
        where c.history is distinct from 'none'
    ), counted as (
        insert into delta (queue, priority, ready, scheduled, retry, blocked, cancelled)
        select queue, priority, -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
               -count(*) filter (where state = 'retry'), -count(*) filter (where state = 'blocked'), count(*)
        from job group by 1, 2)
    select array_agg(id), array_agg(distinct queue), array_agg(seq) filter (where lease is not null)
    into gone, queues, was_cut from job;
    perform take_out(expire_jobs.leases, was_cut);
end $$;
comment on function expire_jobs(uuid[], bigint[]) is 'For expire(): moves those of these jobs that still wait to '
    'history, and out of these leases, which are free and locked. A job that somebody has locked stays. gone: the '
    'moved jobs; was_cut: the numbers of those that were in leases';

create or replace function expire(since timestamptz, since_seq bigint, most int, out n int, out queues text[],
    out upto timestamptz, out upto_seq bigint)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    seen   record;
    stays  record; -- the first job that stays
    leases bigint[]; -- free leases, locked; a claim that is in progress is not waited for
    done   record;
begin
    n := 0; upto := now(); upto_seq := 9223372036854775807;
    select array_agg(o.id order by o.expires_at, o.seq) as ids, array_agg(o.seq order by o.expires_at, o.seq) as seqs,
           array_agg(o.expires_at order by o.expires_at, o.seq) as times,
           array_agg(o.id order by o.expires_at, o.seq) filter (where not o.runs) as waits
    into seen from overdue(since, since_seq, most) o;
    if seen.waits is null then
        upto := coalesce(seen.times[1], upto);
        upto_seq := coalesce(seen.seqs[1] - 1, upto_seq);
        return;
    end if;
    select coalesce(array_agg(z.lease), '{}') into leases from (
        select w.lease from work_queue w
        where w.lock_key is null and w.lease = any(array(
            select f.lease from (select l.lease, unnest(l.seqs) as seq from live l where l.lock_key is null) f
            join queue q on q.seq = f.seq and q.id = any(seen.waits)))
        order by w.lease + 0 for update skip locked) z;
    select * into done from expire_jobs(seen.waits, leases);
    n := coalesce(cardinality(done.gone), 0);
    queues := done.queues;
    select v.at, v.seq - 1 as seq into stays from unnest(seen.ids, seen.times, seen.seqs) v (id, at, seq)
    where v.id <> all(coalesce(done.gone, '{}')) order by v.at, v.seq limit 1;
    if stays.at is not null then
        upto := stays.at;
        upto_seq := stays.seq;
    elsif cardinality(seen.waits) = most then
        upto := seen.times[cardinality(seen.times)];
        upto_seq := seen.seqs[cardinality(seen.seqs)];
    end if;
    if done.was_cut is not null then
        perform bucket_forget(q, done.was_cut) from unnest(queues) q;
    end if;
end $$;
comment on function expire(timestamptz, bigint, int) is 'Moves jobs whose expires_at has passed to history, as '
    'cancelled with the error "expired": up to most waiting jobs after this time and number, also from free leases. '
    'Running and failed jobs are left alone. upto, upto_seq: before these, no such job is left';

create or replace function tend_expired(inout place lane, began timestamptz, out n int, out queues text[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    whole boolean := place.expire_at = '-infinity' or place.expire_all <= began;
    since timestamptz := case when whole then '-infinity' else place.expired_to end;
    seq   bigint := case when whole then 0 else place.expired_seq end;
    over  boolean := next_expired(since, seq);
    e     record;
    took  interval;
begin
    n := 0;
    select 0 as n, null::text[] as queues, now() as upto, 9223372036854775807 as upto_seq into e;
    if over then
        select * into e from expire(since, seq, 1000);
        n := e.n;
        queues := e.queues;
    end if;
    took := clock_timestamp() - began;
    if over or took > interval '3 ms' then -- or: the look was slow and found nothing, so it read many dead entries
        place.expired_to := e.upto;
        place.expired_seq := e.upto_seq;
        place.expire_at := began + greatest(10 * took, case when n < 1000 then interval '1 s' end);
        place.expire_all := case when whole then began + least(1000 * took, interval '1 min') else place.expire_all end;
    end if;
    if n > 0 then
        place.laps := 2; -- an expired job frees its key
    end if;
end $$;
comment on function tend_expired(lane, timestamptz) is 'For tend_limits(): expires jobs, once a second from where the '
    'last look ended. Because a job may be pushed after its expires_at, a look also starts at the first job, at least '
    'once a minute and for at most a thousandth of the time';

create or replace function tend_limits(news boolean, out unblocked int, out expired int, out queues text[],
    out wait_ms int)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    last  lane;
    place lane;
    u     record;
    began timestamptz := clock_timestamp();
    took  interval;
begin
    unblocked := 0; expired := 0;
    select * into last from lane order by n desc limit 1;
    place := last;
    if news then
        place.laps := 2;
    end if;
    if place.expire_at <= began then
        select * into u from tend_expired(place, began);
        place := u.place;
        expired := u.n;
        queues := u.queues;
    end if;
    began := clock_timestamp();
    if place.laps > 0 and place.due <= began then
        if place.hot <> '{}'
           or exists (select from queue q where q.state = 'blocked' and q.concurrency_key is not null) then
            select * into u from unblock(place);
            place := u.place;
            unblocked := u.n;
            queues := queues || u.queues;
        else
            place.laps := 0;
        end if;
        took := clock_timestamp() - began;
        if took > interval '1 ms' then
            place.due := began + least(10 * took, took + interval '200 ms');
        end if;
    end if;
    if place is distinct from last then
        delete from lane where n = last.n;
        insert into lane (queue, key, laps, due, expire_at, expired_to, expired_seq, expire_all,
                          hot, hot_at, old_seq, mid_seq, hot_all)
        values (place.queue, place.key, place.laps, place.due, place.expire_at, place.expired_to, place.expired_seq,
                place.expire_all, place.hot, place.hot_at, place.old_seq, place.mid_seq, place.hot_all);
    end if;
    wait_ms := 1 + 1000 * extract(epoch from least(case when place.laps > 0 then greatest(place.due, began) end,
        case when expired >= 1000 then place.expire_at end, now() + interval '1 min') - clock_timestamp());
end $$;
comment on function tend_limits(boolean) is 'For schedule(): unblocks and expires jobs. news: something has changed '
    'since the last call. If there is nothing to do, it writes nothing';

-- 44_limits
-- Limits of queues: rate limits (token buckets) and concurrency limits. Everything in this file runs under the
-- scheduler lock, inside schedule(). cut() and cut_hard() leave out queues with limits.
--
-- A token bucket, exact over any number of workers: in a window of w seconds at most burst + rate * w jobs start. A job
-- starts when it is claimed. level(t) is at most burst, grows by rate, and falls by 1 when a job STARTS. Jobs that are
-- cut but not started have their tokens reserved: a job is cut only while level - (jobs cut and not started) >= 1. So
-- workers never find more free jobs than the bucket holds.
-- bucket.seqs holds the jobs that were cut. At the next look each of them is still free, or claimed (its lease says
-- when), or gone. If it is gone, the deltas of its queue give the latest time at which it can have started. If that is
-- later than its real start, the queue runs a little slower; the limit is never exceeded. Each look that changed
-- something appends one row and deletes the row before by its number.

create index if not exists queue_config_limited on queue_config (queue)
    where rate is not null or max_running is not null;
-- A cut asks for the least and for the greatest weight, to find out whether the weights differ.
create index if not exists queue_config_weight on queue_config (weight);

alter table tick add column if not exists limited_at timestamptz;
comment on column tick.limited_at is 'When the next token comes for a job that waits. Then the queues with limits are '
    'looked at again';

create table if not exists bucket (
    n     bigint generated always as identity,
    queue text collate "C" not null,
    at    timestamptz not null,
    level float8 not null,
    seqs  bigint[] not null
);
create unique index if not exists bucket_queue on bucket (queue, n desc);
alter table bucket set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
comment on table bucket is 'Token buckets of queues with a rate limit; the newest row of a queue counts';
comment on column bucket.level is 'Tokens at that time; each start takes one';
comment on column bucket.seqs is 'Jobs that were cut and had not started; their tokens are reserved';

create or replace function bucket_levels(t tick, queues text[])
returns table (queue text, n bigint, at timestamptz, level float8, rate float8, seqs bigint[], changed boolean)
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off as $$
    with clock as materialized ( -- not now(): after a wait for the scheduler lock, now() may be before the last look
        select clock_timestamp() as time
    ), last as materialized (
        select c.queue, c.rate::float8 as rate, k.burst, b.n, clock.time, least(b.at, clock.time) as at,
               least(coalesce(b.level, k.burst), k.burst) as level, coalesce(b.seqs, '{}') as seqs
        from clock cross join queue_config c
        cross join lateral (select coalesce(c.burst, greatest(1, floor(c.rate)))::float8 as burst) k
        left join lateral (select * from bucket b where b.queue = c.queue order by b.n desc limit 1) b on true
        where c.rate is not null and c.queue = any(queues)
    ), lease as materialized (
        select w.queue, u.seq, w.lock_key is null as free, w.started from live w cross join unnest(w.seqs) u (seq)
        where w.queue in (select last.queue from last where last.seqs <> '{}')
    ), reserved as materialized (
        select c.queue, c.at, c.time, c.rate, u.seq, coalesce(l.free, false) as free, l.started
        from last c cross join unnest(c.seqs) u (seq) left join lease l on l.queue = c.queue and l.seq = u.seq
    ), answer as materialized ( -- the answers that ended the other jobs: these cannot have started later
        select d.queue, max(case when d.runs is null then d.at
                                 else d.at - (select min(r) - 1 from unnest(d.runs) r) * interval '1 ms' end) as at
        from deltas_since(t.snapshot, t.xid) d
        where d.queue in (select r.queue from reserved r where not r.free and r.started is null)
          and d.error_key is null
        group by d.queue
    ), started as (
        select r.queue, r.rate,
               extract(epoch from greatest(coalesce(r.started, a.at, r.time), r.at) - r.at)::float8 as x
        from reserved r left join answer a on a.queue = r.queue where not r.free
    ), charged as ( -- in how many seconds after the last look the bucket would be full again
        select z.queue, count(*) as n, max(z.x + z.rank / z.rate) as full_at
        from (select s.*, row_number() over (partition by s.queue order by s.x desc) as rank from started s) z
        group by z.queue
    ), left_free as (
        select queue, array_agg(seq) as seqs from reserved where free group by queue
    )
    select c.queue, c.n, c.time,
           least(c.burst, c.burst - c.rate * (greatest((c.burst - c.level + coalesce(f.n, 0)) / c.rate, f.full_at)
                                              - extract(epoch from c.time - c.at)::float8)),
           c.rate, coalesce(r.seqs, '{}'), c.n is null or f.n > 0
    from last c left join charged f on f.queue = c.queue left join left_free r on r.queue = c.queue
$$;
comment on function bucket_levels(tick, text[]) is 'The token buckets of these queues now. Jobs that have started '
    'since the last look are charged at the time they started';

create or replace function bucket_settle(queue text) returns void
language sql set search_path from current as $$
    with now as materialized (
        select b.* from (select * from tick order by tick desc limit 1) t,
        bucket_levels(t, array[bucket_settle.queue]) b
    ), old as (
        delete from bucket b where b.queue = bucket_settle.queue and b.n = any(array(select now.n from now)))
    insert into bucket (queue, at, level, seqs) select queue, at, level, seqs from now
$$;
comment on function bucket_settle(text) is 'Computes a bucket up to now, before its rate changes';

create or replace function bucket_forget(queue text, seqs bigint[]) returns void
language sql set search_path from current as $$
    with last as materialized (
        select * from bucket b where b.queue = bucket_forget.queue order by n desc limit 1
    ), old as (
        delete from bucket b where b.queue = bucket_forget.queue
        and b.n = any(array(select l.n from last l where l.seqs && bucket_forget.seqs)))
    insert into bucket (queue, at, level, seqs)
    select l.queue, l.at, l.level, array(select unnest(l.seqs) except select unnest(bucket_forget.seqs))
    from last l where l.seqs && bucket_forget.seqs
$$;
comment on function bucket_forget(text, bigint[]) is 'Returns the tokens of these jobs, which were cut and will not '
    'start';

create or replace function limit_shares(t tick, queues text[])
returns table (queue text, free int, low bigint, seq bigint[], high bigint[], need int, room int, slots int,
    max_tries smallint, history "char", lease_time interval, run_timeout interval,
    bucket bigint, at timestamptz, level float8, rate float8, reserved bigint[], changed boolean)
language sql stable as $$
    with standing as materialized (
        select w.queue, coalesce(sum(cardinality(w.seqs)) filter (where w.lock_key is null), 0)::int as free,
               sum(cardinality(w.seqs))::int as jobs, min(w.lease) filter (where w.lock_key is null) as low
        from live w where w.queue in (select unnest(queues)) group by w.queue
    ), level as materialized (
        select * from bucket_levels(t, queues)
    )
    select z.queue, z.free, z.low, z.seq, z.high, greatest(0, least(z.room, z.share - z.free)), z.room, z.slots,
           z.max_tries, z.history, z.lease_time, z.run_timeout, z.n, z.at, z.level, z.rate, z.seqs, z.changed
    from (
        select c.queue, coalesce(s.free, 0) as free, s.low, r.seq, case when r.lowered then r.high end as high, l.*,
               b.n, b.at, b.level, b.rate, b.seqs, b.changed, c.max_running - coalesce(s.jobs, 0) as slots,
               greatest(1, ceil(t.want * c.weight / t.weights))::int as share,
               greatest(0, least(c.max_running - coalesce(s.jobs, 0),
                                 floor(b.level)::int - greatest(coalesce(s.free, 0), cardinality(b.seqs)))) as room
        from queue_config c cross join lateral lease_terms(c) l cross join lateral newest_cursor(c.queue) r
        left join standing s on s.queue = c.queue
        left join level b on b.queue = c.queue
        where (c.rate is not null or c.max_running is not null) and c.paused_at is null and c.queue = any(queues)) z
$$;
comment on function limit_shares(tick, text[]) is 'For cut_limited(): for each of these queues its free jobs and its '
    'first free lease, its cursor (high: NULL unless it was lowered), room: how many jobs the limits allow (slots: by '
    'max_running), need: how many to cut, and its bucket now. No SET, so that it is inlined';

create or replace function limited_jobs(queue text, seq bigint[], high bigint[], need int, leased bigint[])
returns table (priority smallint, seq bigint, lease_timeout interval, rank bigint, taken boolean, more boolean,
    upto bigint)
language sql stable as $$
    select c.priority, c.seq, c.lease_timeout, c.rank, c.taken, c.fresh and not c.taken or c.over is true,
           max(c.seq) filter (where c.seq < coalesce(c.left_from, 9223372036854775807)) over (partition by c.priority)
    from (
        select b.*, min(b.seq) filter (where b.fresh and not b.taken) over (partition by b.priority) as left_from
        from (
            select a.*, a.fresh and a.rank <= need as taken
            from (
                select j.*, v.fresh, row_number() over (partition by v.fresh order by j.priority, j.seq) as rank
                from jobs_beyond(limited_jobs.queue, limited_jobs.seq, high, need + 1,
                                 coalesce(cardinality(leased), 0)) j
                cross join lateral (
                    select leased[width_bucket(j.seq, leased)] is distinct from j.seq and j.over is not true as fresh) v
            ) a) b) c
$$;
comment on function limited_jobs(text, bigint[], bigint[], int, bigint[]) is 'For cut_limited(): the next jobs of a '
    'queue, one more than is needed. leased: the jobs in leases, in order. taken: the job is cut now; more: it is not, '
    'or it has expired; upto: up to which number its priority is cut now. No SET, so that it is inlined';

create or replace function cut_limited(t tick, queues text[], out jobs int, out free_jobs int, out free_before int,
    out first bigint, out more boolean, out wait_ms int, out remaining text[])
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    with share as materialized (
        select * from limit_shares(t, queues)
    ), leased as materialized ( -- jobs in leases, of queues where a scan may meet them
        select l.queue, array_agg(u.seq order by u.seq) as seqs from live l cross join unnest(l.seqs) u (seq)
        where l.queue in (select s.queue from share s where s.high is not null) group by l.queue
    ), job as materialized (
        select s.queue, j.*
        from share s left join leased l on l.queue = s.queue
        cross join lateral limited_jobs(s.queue, s.seq, s.high, s.need, l.seqs) j
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, lease_time, max_tries, history, run_timeout)
        select nextval('lease_seq'), z.* from (
            select j.rank, j.queue, j.priority, array[j.seq], coalesce(j.lease_timeout, s.lease_time), s.max_tries,
                   s.history, s.run_timeout
            from job j join share s on s.queue = j.queue where j.taken
            order by j.rank, hashtextextended(j.queue, t.tick)) z
        returning lease, queue, seqs[1] as seq
    ), got as materialized (
        select queue, min(lease) as low, array_agg(seq) as seqs from made group by queue
    ), seen as materialized (
        select queue, count(*) filter (where taken)::int as n, bool_or(more) as more from job group by queue
    ), cut_to as (
        select j.queue, j.priority, max(j.upto) as upto, min(coalesce(s.low, g.low, l)) as low
        from job j join share s on s.queue = j.queue left join got g on g.queue = j.queue cross join next_lease() l
        where j.upto is not null group by 1, 2
    ), moved as materialized (
        select advance_cursor(array_agg(queue), array_agg(priority), array_agg(upto), array_agg(low)) from cut_to
    ), charged as materialized ( -- buckets that have changed
        select s.*, g.seqs from share s left join got g on g.queue = s.queue
        where s.at is not null and (s.changed or g.queue is not null)
    ), old as (
        delete from bucket b using charged c cross join lateral (
            select o.ctid as at from bucket o where o.queue = c.queue and o.n = c.bucket offset 0) o
        where b.ctid = o.at
    ), new as (
        insert into bucket (queue, at, level, seqs)
        select c.queue, c.at, c.level, c.reserved || coalesce(c.seqs, '{}') from charged c
    )
    select coalesce(sum(n.n), 0), coalesce(sum(s.free), 0), least(min(s.low), min(g.low)),
           coalesce(bool_or(n.more and s.room > n.n), false),
           min(least(60000, 1000 * (greatest(s.free, cardinality(s.reserved)) + n.n + 1 - s.level) / s.rate
                           - 1000 * extract(epoch from clock_timestamp() - s.at)))
               filter (where n.more and s.room = n.n and s.slots is distinct from n.n),
           coalesce(array_agg(s.queue) filter (where n.more), '{}')
    from (select count(*) from moved) m, share s
    left join seen n on n.queue = s.queue left join got g on g.queue = s.queue
    into jobs, free_before, first, more, wait_ms, remaining;
    free_jobs := free_before + jobs;
    wait_ms := case when wait_ms is not null then greatest(1, wait_ms + 1) end;
end $$;
comment on function cut_limited(tick, text[]) is 'cut() for those of these queues that have a rate or a concurrency '
    'limit, one job a lease. first: the lowest free lease of these queues; more: the limits allow more than the share '
    'of this step; wait_ms: when the next token comes for a job that waits; remaining: the queues with uncut jobs';

create or replace function limited_among(queues text[]) returns text[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
    select array(select distinct c.queue from unnest(queues) q join queue_config c on c.queue = q
                 where c.rate is not null or c.max_running is not null)
$$;
comment on function limited_among(text[]) is 'Those of these queues that have a rate or a concurrency limit';

create or replace function next_limited(after text, looks int, out queues text[], out upto text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    queues := array(select c.queue from queue_config c where (c.rate is not null or c.max_running is not null)
                    and c.queue > after order by c.queue limit looks);
    upto := case when cardinality(queues) = looks then queues[looks] end;
end $$;
comment on function next_limited(text, int) is 'The next queues with limits in the order of names. upto: the last of '
    'them, NULL = there are no more';

create or replace function limits_left(inout new tick, k record, queues text[], passed boolean)
language plpgsql set search_path from current as $$
declare
    most constant int := 500;
begin
    new.limited := array((select unnest(new.limited) except select unnest(queues)) union select unnest(k.remaining));
    -- the names are being gone through; if the list is more than full, begin again afterwards
    if new.limits is not null then
        new.limited := new.limited[:most];
        new.limited_at := clock_timestamp();
    elsif cardinality(new.limited) >= most then
        new.limits := '';
        new.limited := '{}';
        new.limited_at := clock_timestamp() + case when passed then interval '200 ms' else '0' end;
    elsif passed then -- each queue in the list has a time of its own: the next look finds the first
        new.limited_at := clock_timestamp();
    end if;
end $$;
comment on function limits_left(tick, record, text[], boolean) is 'For step_limits(): which queues have to be looked '
    'at again, and when. k: the result of cut_limited() for these queues; passed: the last name has been reached';

create or replace function step_limits(t tick, inout new tick, woken text[], whole boolean,
    out cut int, out more boolean, out wrote boolean)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    -- whether to look at the queues that wait
    again  boolean := whole or coalesce(t.limited_at <= clock_timestamp(), false);
    passed boolean := false;
    queues text[] := '{}';
    part   record;
    k      record;
begin
    cut := 0; more := false; wrote := false;
    if not (again and (new.limited <> '{}' or new.limits is not null or new.limited_at is not null)
            or woken is not null)
       or not exists (select from queue_config c where c.rate is not null or c.max_running is not null) then
        return;
    end if;
    queues := limited_among(woken);
    if cardinality(queues) > 500 then
        new.limited := queues[:500]; -- too many for one step: go through all queues with limits
        new.limits := coalesce(new.limits, '');
        queues := '{}';
    end if;
    if again and new.limits is null then
        queues := queues || new.limited;
    elsif again then
        select * into part from next_limited(new.limits, 500);
        queues := queues || part.queues;
        new.limits := part.upto;
        passed := part.upto is null;
    end if;
    select * into k from cut_limited(new, queues);
    cut := k.jobs;
    more := k.more;
    new.free := least(new.free, k.first);
    new.jobs := new.jobs + k.jobs;
    new.filled := new.filled + case when whole then k.jobs else 0 end;
    new.more := new.more or k.more;
    new.limited_at := least(case when not again then t.limited_at end,
                            clock_timestamp() + k.wait_ms * interval '1 ms');
    new := limits_left(new, k, queues, passed);
    wrote := k.jobs > 0 or (new.limited_at, new.limited, new.limits)
                           is distinct from (t.limited_at, t.limited, t.limits);
end $$;
comment on function step_limits(tick, tick, text[], boolean) is 'For schedule(): cuts the queues with limits: those in '
    'which something has changed (woken) and, if a token is due or all are to be cut (whole), those that wait. If more '
    'than 500 wait, the steps take them in turn';

-- 45_retention
-- Retention: finished jobs are deleted from history when the retention of their queue has passed, and their attempts
-- with them. After the longest retention of all queues, a whole day is dropped as a partition. Queues with a shorter
-- retention are trimmed in batches, 500 queues a second. schedule() calls retain() once a minute, once a second until
-- all queues have been looked at, and at each step while there is more to delete.

-- each call asks for the shortest and the longest
create index if not exists queue_config_retention on queue_config (retention);

create or replace function drop_days() returns boolean
language plpgsql set search_path from current set timezone = 'UTC' set lock_timeout = '50ms' as $$
declare
    last_day date := (now() - (select coalesce(max(retention), interval '7 days') from queue_config))::date;
    part     text;
    waits    boolean := false;
begin
    for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent in ('history'::regclass, 'attempt'::regclass)
                  and case when c.relname ~ '_[0-9]{8}$' -- CASE, because a plan may look at all relations
                           then to_date(right(c.relname, 8), 'YYYYMMDD') < last_day end
                           order by right(c.relname, 8) loop
        begin
            execute format('drop table %I', part);
        exception when lock_not_available then
            exit when waits; -- one wait only: completions wait behind it, and a pg_dump reads all days
            waits := true; -- somebody reads this day
        end;
    end loop;
    return waits;
end $$;
comment on function drop_days() is 'Drops the days of history and attempt that are older than the retention of every '
    'queue, unless the drop would wait for somebody longer than 50 ms. true = a day is in use: try again later';

create or replace function trim_history(inout place text, looks int, most int, out n int)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    names text[];
begin
    names := array(select c.queue from queue_config c where c.queue > place order by c.queue limit looks);
    with outdated as materialized (
        select h.part, h.place
        from (select queue, retention from queue_config
              where queue = any(names) and retention < (select max(retention) from queue_config)) c
        cross join lateral (select f.tableoid as part, f.ctid as place from history f
                            where f.queue = c.queue and f.finished < now() - c.retention order by f.finished
                            limit most) h
        limit most)
    delete from history h using outdated v where h.tableoid = v.part and h.ctid = v.place;
    get diagnostics n = row_count;
    if n < most then -- otherwise the same names again
        place := case when cardinality(names) = looks then names[looks] else '' end;
    end if;
end $$;
comment on function trim_history(text, int, int) is 'Deletes up to most finished jobs of the next queues in the order '
    'of names, if they keep jobs for less than the longest retention. place: the last name looked at, empty = there '
    'are no more';

create or replace function retain(inout place text, out pause interval)
language plpgsql set search_path from current as $$
declare
    most  constant int := 2000;
    waits boolean := drop_days();
    trimmed int := 0;
begin
    if (select min(retention) < max(retention) from queue_config) then
        select h.place, h.n into place, trimmed from trim_history(place, 500, most) h;
    end if;
    pause := case when trimmed = most then interval '0' when place <> '' then interval '1 s'
                  when waits then interval '5 s' else interval '1 min' end;
end $$;
comment on function retain(text) is 'Deletes finished jobs that no queue keeps any longer, 500 queues a call in the '
    'order of names. place: the last name looked at; pause: when to call again';

-- 46_cron
-- Schedules push jobs by themselves. This file has the tables, the parser of a cron line and the computation of its
-- next time. 47_cron_run.sql pushes what is due; 75_schedules.sql has what an operator does with schedules.
--
-- A line has five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, day of week 0-7 or sun-sat
-- (0 and 7 are Sunday); each is *, a number, a range a-b, a list a,b, and steps */n or a-b/n. Where both days are
-- restricted either of them is enough, as crontab(5) has it. @hourly, @daily (@midnight), @weekly, @monthly, @yearly
-- (@annually) are short for such lines; @every 90s (s, m, h, d) is each multiple of that time since 1970, UTC.
--
-- Time zones, by the rule of cron(8) of Debian and of cronie. A line whose minute or hour begins with * follows real
-- time: if the clock jumps ahead, the missing hour has no runs; an hour that comes twice has its runs twice. Any other
-- line runs at fixed times of the day: times that are missing run once, at the moment of the change; times that come
-- twice run once, the first time.

create table if not exists schedule (
    name         text collate "C" primary key check (length(name) between 1 and 200),
    cron         text not null,
    tz           text not null default 'UTC',
    queue        text collate "C" not null check (length(queue) between 1 and 200),
    kind         text not null default '' check (length(kind) <= 200),
    priority     smallint not null default 5 check (priority between 0 and 9),
    payload      json,
    body         bytea,
    payload_type text,
    only_one     boolean not null default false,
    max_tries    smallint check (max_tries >= 1),
    catch_up     text not null default 'latest' check (catch_up in ('none', 'latest', 'all')),
    comment      text,
    created      timestamptz not null default now(),
    changed      timestamptz not null default now(),
    paused_at    timestamptz,
    paused_by    text,
    pause_reason text,
    next_run     timestamptz,
    last_run     timestamptz,
    last_job     uuid,
    runs_from    timestamptz,
    error        text,
    error_at     timestamptz,
    constraint schedule_one_payload check (payload is null or body is null),
    constraint schedule_one_of_all check (not only_one or catch_up <> 'all')
);
create index if not exists schedule_next on schedule (next_run);
comment on table schedule is 'Schedules: when to push a job (cron, tz), and which';
comment on column schedule.tz is 'A name of the IANA time zones, e.g. Europe/Berlin';
comment on column schedule.only_one is 'No run while the job of an earlier run is unfinished';
comment on column schedule.catch_up is 'What happens to times that were missed because no scheduler was active: none, '
    'the latest or all of them are pushed';
comment on column schedule.next_run is 'NULL = there is none: the schedule is paused, or its line can''t be computed '
    'any more (error)';
comment on column schedule.last_run is 'The time that the last run was for';
comment on column schedule.runs_from is 'Earlier runs were deleted, or belong to a removed schedule of this name';
comment on column schedule.error is 'Why the last run could not be pushed; NULL = it was pushed';

create table if not exists cron_run (
    schedule text collate "C" not null,
    due      timestamptz not null,
    at       timestamptz not null default clock_timestamp(),
    job      uuid,
    pushed   boolean not null default false,
    error    text,
    primary key (schedule, due)
);
comment on table cron_run is 'The last 100 runs of each schedule; its key makes a second run for the same time '
    'impossible';
comment on column cron_run.due is 'The time for which the run is; at = when it was pushed';
comment on column cron_run.pushed is 'False: the job of an earlier run was unfinished (job), the push failed, or the '
    'time was missed (error)';

alter table tick add column if not exists cron_at timestamptz;
comment on column tick.cron_at is 'When to look at the schedules again; NULL = at once';

create or replace function cron_number(word text, label text, low int, high int, names text[]) returns int
language plpgsql immutable set search_path from current as $$
begin
    if word ~ '^[0-9]{1,9}$' then
        if word::int not between low and high then
            raise '%: % is not within %-%', label, word, low, high using errcode = 'QT007';
        end if;
        return word::int;
    elsif word = any(names) then
        return low + array_position(names, word) - 1;
    end if;
    raise '%: "%" is not a number%', label, left(word, 30), coalesce(' and none of ' || array_to_string(names, ' '), '')
        using errcode = 'QT007';
end $$;
comment on function cron_number(text, text, int, int, text[]) is 'One number or name of a field; raises QT007 with the '
    'reason if it is invalid';

create or replace function cron_field(field text, label text, low int, high int, names text[] default null)
    returns int[]
language plpgsql immutable set search_path from current as $$
declare
    part text;
    m    text[];
    a    int;
    b    int;
    step int;
    hits int[] := '{}';
begin
    foreach part in array string_to_array(lower(field), ',') loop
        m := regexp_match(part, '^([^-/]+)(?:-([^-/]+))?(?:/([^-/]+))?$');
        if m is null or m[1] = '*' and m[2] is not null then
            raise '%: "%" is neither *, a number, a range (1-5), a list (1,5) nor a step (*/5)', label, left(field, 30)
                using errcode = 'QT007';
        end if;
        a := case when m[1] = '*' then low else cron_number(m[1], label, low, high, names) end;
        b := case when m[1] = '*' then high when m[2] is null then a when m[2] = 'sun' then 7
                  else cron_number(m[2], label, low, high, names) end;
        if a > b then
            raise '%: the range % runs backwards: write %-%,%-%', label, part, m[1], high, low, m[2]
                using errcode = 'QT007';
        elsif m[3] is not null and m[1] <> '*' and m[2] is null then
            raise '%: % is a step without a range: write %-%/%', label, part, m[1], high, m[3] using errcode = 'QT007';
        end if;
        step := case when m[3] is null then 1 else cron_number(m[3], label || ', step', 1, high, null) end;
        hits := hits || array(select generate_series(a, b, step));
    end loop;
    return array(select distinct x from unnest(hits) x order by 1);
end $$;
comment on function cron_field(text, text, int, int, text[]) is 'One field of a cron line as the sorted numbers that '
    'it allows';

create or replace function cron_every(line text) returns interval
language plpgsql immutable set search_path from current as $$
declare
    word text := substring(line from E'^@every\\s+((?:[0-9]{1,6}[dhms])+)$');
    long interval;
begin
    select sum(m[1]::int * ('1 ' || m[2])::interval) into long from regexp_matches(word, '([0-9]+)([dhms])', 'g') m;
    if long is null or long not between interval '1 s' and interval '366 d' then
        raise '"%" is not @every with a time from 1s to 366d, such as 90s, 15m or 1h30m', left(line, 60)
            using errcode = 'QT007';
    end if;
    return long;
end $$;
comment on function cron_every(text) is 'The interval of an @every line';

create or replace function cron_parse(cron text, out minutes int[], out hours int[], out days int[], out months int[],
    out weekdays int[], out either boolean, out fixed boolean, out every interval)
language plpgsql immutable set search_path from current as $$
declare
    line  text := lower(regexp_replace(cron, E'^\\s+|\\s+$', '', 'g'));
    words text[];
begin
    if line ~ '^@every' then
        every := cron_every(line);
        return;
    end if;
    line := case line when '@hourly' then '0 * * * *' when '@daily' then '0 0 * * *' when '@midnight' then '0 0 * * *'
                      when '@weekly' then '0 0 * * 0' when '@monthly' then '0 0 1 * *'
                      when '@yearly' then '0 0 1 1 *' when '@annually' then '0 0 1 1 *' else line end;
    if line ~ '^@' then
        raise 'there is no %: @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every', left(line, 30)
            using errcode = 'QT007';
    end if;
    words := regexp_split_to_array(coalesce(line, ''), E'\\s+');
    if cardinality(words) <> 5 or line = '' then
        raise 'a cron line has five fields (minute, hour, day of month, month, day of week), "%" has %', left(cron, 60),
            case when line = '' then 0 else cardinality(words) end using errcode = 'QT007',
            hint = 'for seconds there is @every 10s';
    end if;
    minutes := cron_field(words[1], 'minute', 0, 59);
    hours := cron_field(words[2], 'hour', 0, 23);
    days := cron_field(words[3], 'day of month', 1, 31);
    months := cron_field(words[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
    weekdays := array(select distinct x % 7
                      from unnest(cron_field(words[5], 'day of week', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}')) x);
    either := words[3] !~ '^[*]' and words[5] !~ '^[*]';
    fixed := words[1] !~ '^[*]' and words[2] !~ '^[*]';
    if not either and not exists (select from unnest(months) m
                                  where days[1] <= ('{31,29,31,30,31,30,31,31,30,31,30,31}'::int[])[m]) then
        raise 'day of month: % no day %: this line would never run',
            case when cardinality(months) = 1 then format('month %s has', months[1])
            else format('the months %s have', array_to_string(months, ',')) end, days[1] using errcode = 'QT007';
    end if;
end $$;
comment on function cron_parse(text) is 'A cron line as the numbers that each field allows. either: one of the two day '
    'fields is enough; fixed: times of the day, not by the hour or minute; every: the interval of an @every line, all '
    'else is NULL then. Raises QT007 if the line is invalid';

create or replace function cron_zone(tz text) returns text
language plpgsql stable set search_path from current as $$
declare
    zone text;
begin
    if length(tz) <= 100 then -- a longer name is no zone; lower() of a long text for each zone would be slow
        select z.name into zone from pg_timezone_names z where lower(z.name) = lower(tz) and z.name !~ '^(posix|right)'
        order by z.name = tz desc limit 1;
    end if;
    if zone is null then
        raise 'there is no time zone "%": name one like Europe/Berlin or UTC', left(tz, 60) using errcode = 'QT007';
    elsif zone not in ('UTC', 'GMT') and exists (select from pg_timezone_abbrevs a where a.abbrev = upper(tz)) then
        raise 'time zone % would be an abbreviation, without its changes of the clock: name one like Europe/Berlin', tz
            using errcode = 'QT007';
    end if;
    return zone;
end $$;
comment on function cron_zone(text) is 'The correct spelling of a time zone''s name; raises QT007 if there is no such '
    'zone. Slow (reads all zones), so only for settings';

create or replace function cron_local(minutes int[], hours int[], days int[], months int[], weekdays int[],
    either boolean, c timestamp)
returns timestamp
language plpgsql immutable set search_path from current as $$
declare
    d    date := c::date;
    last date := c::date + 15100; -- 29 February on a given day of the week comes after 40 years at most
    h    int := date_part('hour', c);
    m    int;
    on_day boolean;
begin
    while d <= last loop
        if date_part('month', d)::int <> all(months) then
            d := (date_trunc('month', d::timestamp) + interval '1 month')::date;
            continue;
        end if;
        on_day := date_part('day', d)::int = any(days);
        if either then
            on_day := on_day or date_part('dow', d)::int = any(weekdays);
        else
            on_day := on_day and date_part('dow', d)::int = any(weekdays);
        end if;
        if on_day and d > c::date then
            return d + make_time(hours[1], minutes[1], 0);
        elsif on_day then
            select min(x) into m from unnest(minutes) x where x > date_part('minute', c);
            if m is not null and h = any(hours) then
                return d + make_time(h, m, 0);
            end if;
            select min(x) into m from unnest(hours) x where x > h;
            if m is not null then
                return d + make_time(m, minutes[1], 0);
            end if;
        end if;
        d := d + 1;
    end loop;
    raise 'this line has no time within 40 years' using errcode = 'QT007';
end $$;
comment on function cron_local(int[], int[], int[], int[], int[], boolean, timestamp) is 'The first local time after c '
    'that the fields allow';

create or replace function cron_offset(tz text, t timestamptz) returns interval
language sql stable as $$ select (t at time zone tz) - (t at time zone 'UTC') $$;
comment on function cron_offset(text, timestamptz) is 'By how much a zone is ahead of UTC at that time';

create or replace function cron_change(tz text, low timestamptz, high timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    was interval := cron_offset(tz, low);
    mid timestamptz;
begin
    while high - low > interval '1 s' loop
        mid := date_trunc('second', low + (high - low) / 2);
        if cron_offset(tz, mid) = was then
            low := greatest(mid, date_trunc('second', low) + interval '1 s');
        else
            high := mid;
        end if;
    end loop;
    return high;
end $$;
comment on function cron_change(text, timestamptz, timestamptz) is 'When the clock changes between low and high: one '
    'change, found to the second';

create or replace function cron_instants(c timestamp, tz text, out first timestamptz, out last timestamptz,
    out gap timestamptz)
language plpgsql stable set search_path from current as $$
declare
    u timestamptz := c at time zone 'UTC';
    a timestamptz := u - cron_offset(tz, u - interval '26 h');
    b timestamptz := u - cron_offset(tz, u + interval '26 h');
begin
    first := case when a at time zone tz = c then a end;
    last := case when b at time zone tz = c then b end;
    if first is null and last is null then
        gap := cron_change(tz, least(a, b) - interval '1 s', greatest(a, b) + interval '1 s');
        return;
    end if;
    a := first;
    first := least(a, last);
    last := greatest(a, last);
end $$;
comment on function cron_instants(timestamp, text) is 'The time at which local clocks of the zone show c: first and '
    'last differ if an hour comes twice. gap: the clocks never show c, and this is when they jump over it';

create or replace function cron_next(cron text, tz text, after timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    p    record;
    i    record;
    c    timestamp := after at time zone tz;
    t    timestamptz;
    turn timestamptz;
begin
    if not isfinite(after) then
        return null;
    end if;
    select * into p from cron_parse(cron);
    if p.every is not null then
        return to_timestamp((floor(extract(epoch from after) / extract(epoch from p.every)) + 1) *
                            extract(epoch from p.every));
    end if;
    loop
        c := cron_local(p.minutes, p.hours, p.days, p.months, p.weekdays, p.either, c);
        select * into i from cron_instants(c, tz);
        t := case when p.fixed then coalesce(i.first, i.gap) when i.first > after then i.first else i.last end;
        exit when t > after;
    end loop;
    if not p.fixed and cron_offset(tz, after + interval '26 h') < cron_offset(tz, after) then -- an hour comes twice
        turn := cron_change(tz, after, after + interval '26 h');
        c := cron_local(p.minutes, p.hours, p.days, p.months, p.weekdays, p.either,
                        (turn at time zone tz) - interval '1 min');
        if turn + (c - (turn at time zone tz)) < t and (turn + (c - (turn at time zone tz))) at time zone tz = c then
            t := turn + (c - (turn at time zone tz));
        end if;
    end if;
    return t;
end $$;
comment on function cron_next(text, text, timestamptz) is 'The first time after the given one at which a cron line is '
    'due in a time zone. If the clock changes: a line with * first in minute or hour follows real time; any other line '
    'runs once for missing times, at the change, and once for times that come twice';

create or replace function cron_last(cron text, tz text, due timestamptz, at timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    high timestamptz := at;
    mid  timestamptz;
    t    timestamptz := cron_next(cron, tz, due);
begin
    while t <= at loop
        due := t;
        t := cron_next(cron, tz, due);
        exit when t > at;
        mid := due + (high - due) / 2;
        t := cron_next(cron, tz, mid);
        while t > at loop -- no time of the line is after mid
            high := mid;
            mid := due + (high - due) / 2;
            t := cron_next(cron, tz, mid);
        end loop;
    end loop;
    return due;
end $$;
comment on function cron_last(text, text, timestamptz, timestamptz) is 'The last due time up to at, given an earlier '
    'due time. Found by binary search, however many due times lie between';

create or replace function cron_times(cron text, tz text default 'UTC', n int default 3,
    after timestamptz default now()) returns setof timestamptz
language plpgsql stable security definer set search_path from current as $$
begin
    if n > 1000 then
        raise 'the next 1000 times are the most, not %', n using errcode = 'QT007';
    elsif after > '9999-12-31' and after <> 'infinity' then
        raise 'after is a time before the year 10000, not %', after using errcode = 'QT007';
    end if;
    -- zones of schedules were looked up when they were set
    if not exists (select from schedule s where s.tz = cron_times.tz) then
        tz := cron_zone(coalesce(tz, 'UTC'));
    end if;
    for i in 1 .. coalesce(n, 3) loop
        after := cron_next(cron, tz, after);
        return next after;
    end loop;
end $$;
comment on function cron_times(text, text, int, timestamptz) is 'The next n times of a cron line, 1000 at most';

-- 47_cron_run
-- Pushes the jobs of schedules that are due. The scheduler's step calls cron_due(), so the jobs, the next time and the
-- rest of the step are one transaction. No time is pushed twice by two schedulers, a take-over or a clock that is set
-- back: the row of the schedule is locked, next_run only grows, and cron_run has one row for each schedule and time.

create or replace function cron_key(s schedule, due timestamptz) returns text
language sql immutable set search_path from current as $$
    select 'cron:' || s.name || case when s.only_one then ''
        else to_char(due at time zone 'UTC',
                     '":"YYYY-MM-DD"T"HH24:MI:SS' || case when due > date_trunc('second', due) then '.US"Z"'
                                                          else '"Z"' end) end
$$;
comment on function cron_key(schedule, timestamptz) is 'The unique key of a schedule''s job: the name of the schedule '
    'and the time of the run; with only_one the name alone';

create or replace function cron_push(s schedule, due timestamptz, out job uuid, out pushed boolean, out error text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    wait   text := current_setting('lock_timeout');
    oldest timestamptz;
begin
    insert into cron_run (schedule, due) values (s.name, due) on conflict do nothing;
    if not found then
        pushed := false;
        return;
    end if;
    begin
        -- the job of the run before may be completed in a transaction that stays open
        perform set_config('lock_timeout', '100ms', true);
        if s.body is null then
            select p.id, p.pushed into cron_push.job, cron_push.pushed
            from push(queue => s.queue, payload => s.payload, kind => s.kind,
                priority => s.priority, unique_key => cron_key(s, due), max_tries => s.max_tries) p;
        else
            select p.id, p.pushed into cron_push.job, cron_push.pushed from push_bytes(queue => s.queue, body => s.body,
                payload_type => s.payload_type, kind => s.kind, priority => s.priority, unique_key => cron_key(s, due),
                max_tries => s.max_tries) p;
        end if;
        perform set_config('lock_timeout', wait, true);
        cron_push.error := case when not cron_push.pushed then 'the job of an earlier run is not finished' end;
    exception when lock_not_available then
        cron_push.pushed := false;
        cron_push.error := 'the job of an earlier run is not finished: its worker is just answering for it';
    when others then
        cron_push.pushed := false;
        cron_push.error := left(sqlerrm, 1000);
        raise log 'queuetop: schedule %: %', to_json(s.name), to_json(sqlerrm);
    end;
    update cron_run r set job = cron_push.job, pushed = cron_push.pushed, error = cron_push.error
    where r.schedule = s.name and r.due = cron_push.due;
    -- 100 runs are kept. Runs before runs_from were deleted or belong to a removed schedule: none of them is read again
    oldest := (select o.due from cron_run o
               where o.schedule = s.name and o.due >= coalesce(s.runs_from, '-infinity')
               order by o.due desc offset 99 limit 1);
    delete from cron_run r
    where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity') and r.due < oldest;
    update schedule x
    set last_run = cron_push.due, last_job = coalesce(cron_push.job, x.last_job),
        runs_from = coalesce(oldest, x.runs_from),
        error = case when cron_push.job is null then cron_push.error end,
        error_at = case when cron_push.job is null then clock_timestamp() end
    where x.name = s.name;
end $$;
comment on function cron_push(schedule, timestamptz) is 'Pushes one run of a schedule for a time, unless that time had '
    'its run already. If the push fails, the error is stored in the run and in the schedule, and other schedules go on';

create or replace function cron_fire(s schedule, at timestamptz, most int) returns int
language plpgsql set search_path from current as $$
declare
    due   timestamptz := s.next_run;
    first timestamptz := s.next_run;
    n     int := 0;
begin
    if s.catch_up = 'all' then
        while due <= at and n < most loop
            perform cron_push(s, due);
            n := n + 1;
            due := cron_next(s.cron, s.tz, due);
        end loop;
        if due <= at and coalesce(s.last_run < first - interval '1 s', true) and s.last_run is distinct from first then
            raise log 'queuetop: schedule % is behind since %: all missed runs follow, % a step', to_json(s.name),
                first, most;
        end if;
    else
        due := cron_last(s.cron, s.tz, due, at);
        if s.catch_up = 'latest' or due >= at - interval '1 min' then
            perform cron_push(s, due);
            n := 1;
        end if;
        if first < at - interval '1 min' and (due > first or n = 0) then
            insert into cron_run (schedule, due, error) values (s.name, first, 'missed: no scheduler was there' || case
                when n = 1 then '; the latest run made up for it'
                    when due > first then ', up to ' || to_char(due at time zone s.tz, 'YYYY-MM-DD HH24:MI:SS')
                else '' end) on conflict do nothing;
            raise log 'queuetop: schedule %: the times from % on were missed, % made up for', to_json(s.name), first,
                case n when 0 then 'none is' else 'the latest is' end;
        end if;
        due := cron_next(s.cron, s.tz, at);
    end if;
    update schedule x set next_run = due where x.name = s.name;
    return n;
exception when others then -- the line can't be computed any more: for example its zone is gone
    raise log 'queuetop: schedule % stands still: %', to_json(s.name), to_json(sqlerrm);
    update schedule x set next_run = null, error = left('stands still: ' || sqlerrm, 1000), error_at = clock_timestamp()
    where x.name = s.name;
    return 0;
end $$;
comment on function cron_fire(schedule, timestamptz, int) is 'Pushes the jobs of a schedule that are due, as catch_up '
    'says, and sets its next time. A run up to a minute late counts as in time, because a new scheduler needs some '
    'seconds to take over. Returns how many jobs it pushed';

create or replace function cron_due(at timestamptz default now()) returns timestamptz
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    s    schedule;
    room int := 100;
begin
    for s in select * from schedule x where x.next_run <= at order by x.next_run, x.name limit 100
    for update skip locked loop
        room := room - cron_fire(s, at, room);
        exit when room <= 0;
    end loop;
    return (select least(min(x.next_run), at + interval '1 s') from schedule x);
end $$;
comment on function cron_due(timestamptz) is 'For the scheduler''s step: pushes a job for each schedule that is due, '
    'at most 100 a call. Returns when to look again: now if more is due, otherwise at the next time, but after a '
    'second at the latest';

-- 48_wake
-- Waking. A commit notifies only if somebody waits. An idle worker takes a WAIT SLOT, which is a session advisory lock
-- (slot_class() + slot, oid of queue), looks for jobs once more, and sleeps. A pusher tries the slot's lock in shared
-- mode, until the end of its transaction. If that fails, a worker is waiting: the pusher notifies the slot's channel.
-- No wake-up is lost: while the pusher holds the lock in shared mode nobody can take the slot. So a job is either
-- committed before the waiter's last look, which sees it, or its pusher finds the slot taken.
--   slot 0        its waiter is woken by pushes (trigger queue_pushed), and makes the scheduling step itself. If no
--                 worker is idle, the scheduler waits in slot 0 after a second without anything new
--   slots 1 to 16 the others: woken when more was cut than one worker can take, or when slot 0 becomes free
-- Of a hundred idle workers 17 listen; the others look from time to time. Through a transaction pooler nobody waits,
-- because session locks and LISTEN would belong to the pooler's connections (see backend_pid in claim_or_wait).

create or replace function slot_channel(slot int) returns text
language sql stable set search_path from current as
$$ select 'queuetop_' || 'queue'::regclass::oid || case when slot > 0 then '_' || slot else '' end $$;
comment on function slot_channel(int) is 'The channel that the waiter in this slot listens to';

create or replace function slot_waits(slot int) returns boolean
language sql volatile set search_path from current as
$$ select not pg_try_advisory_xact_lock_shared(slot_class() + slot, 'queue'::regclass::oid::int) $$;
comment on function slot_waits(int) is 'Whether somebody waits in the slot. If nobody does, nobody can take the slot '
    'before this transaction ends';

create or replace function wake(n int) returns int
language plpgsql security definer set search_path from current as $$
declare
    woken int := 0;
begin
    for slot in 1 .. 16 loop
        exit when woken >= n;
        if slot_waits(slot) then
            perform pg_notify(slot_channel(slot), '');
            woken := woken + 1;
        end if;
    end loop;
    return woken;
end $$;
comment on function wake(int) is 'Wakes up to n of the workers in the slots behind slot 0. Returns how many were woken';

create or replace function wake_workers() returns void
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    free int;
    every boolean;
begin
    -- a new waiter can't take slot 0 now; the others look within a second
    if not slot_waits(0) and not slot_waits(1) then
        return;
    end if;
    select t.hasty, (select count(*) from (select from work_queue w
                                           where w.lease >= t.free and w.lock_key is null limit 17) z)
    into every, free from tick t order by t.tick desc limit 1;
    if free > 0 and slot_waits(0) then
        perform pg_notify(slot_channel(0), '');
        free := free - 1;
    end if;
    perform wake(case when every and free > 0 then 16 else free end); -- every: some nodes work only some queues
end $$;
comment on function wake_workers() is 'After a cut: wakes as many waiting workers as there are free leases';

create or replace function idle_wait() returns int
language sql volatile set search_path from current as
$$ select case when slot_waits(0) then 1000 else 50 end $$;
comment on function idle_wait() is 'After how many ms the scheduler should look again if nothing is new. If a worker '
    'waits for pushes, that worker looks when something is pushed';

create or replace function what_is_new(t tick, queues text[])
returns table (queue text, priority smallint, low bigint, after timestamptz, cut bigint, odd boolean)
language sql stable as $$
    select u.queue, u.priority, u.low, u.after, c.seq[u.priority + 1],
           u.odd or c.seq[u.priority + 1] is null or q.max_running is not null or q.rate is not null
           or u.low is not null and (u.low <= c.seq[u.priority + 1] or q.paused_at is not null or c.lowered
                                     or what_is_new.queues is not null and u.queue <> all(what_is_new.queues))
    from (select d.queue, d.priority, min(d.min_seq) as low, min(d.min_after) as after,
                 bool_or(d.ready is null or d.blocked <> 0 or d.ready > 0 and d.min_seq is null) as odd
          from deltas_since(t.snapshot, t.xid) d where d.error_key is null group by 1, 2) u
    left join lateral newest_cursor(u.queue) c on true
    left join queue_config q on q.queue = u.queue
$$;
comment on function what_is_new(tick, text[]) is 'For take_new(): the queues and priorities in which something has '
    'changed since the last step. low: the first new job; after: when the first new waiting job is due; cut: the '
    'cursor; odd: the queue needs a whole step. No SET, so that it is inlined';

create or replace function take_new(t tick, node text, n int, timeout interval, queues text[], start boolean,
    out state text, out leases bigint[], out due timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    new  tick := t;
    seen record;
begin
    if exists (select from deltas_since(t.snapshot, t.xid) d where d.error_key is null offset 1000) then
        state := 'step';
        return;
    end if;
    with news as materialized (
        select * from what_is_new(t, take_new.queues)
    ), job as materialized (
        select l.queue, l.priority, j.* from news l cross join lateral (
            select j.seq, j.lease_timeout, j.run_timeout, j.expires_at from queue j
            where j.queue = l.queue and j.priority = l.priority and j.state = 'ready' and j.seq > l.cut
            order by j.seq limit take_new.n + 1::bigint) j
        where l.low is not null limit take_new.n + 1::bigint
    )
    select pg_current_snapshot() as snapshot,
           (select bool_or(odd) from news) or (select bool_or(expires_at <= clock_timestamp()) from job)
           or exists (select from news)
              and exists (select from queue where state = 'blocked' and concurrency_key is not null) as odd,
           (select min(after) from news) as after, exists (select from news where low is not null) as woken,
           array_agg(j.queue) as queues, array_agg(j.priority) as priorities, array_agg(j.seq) as seqs,
           array_agg(j.lease_timeout) as timeouts,
           array_agg(j.lease_timeout is not null or j.run_timeout is not null) as own
    from job j into seen;
    due := next_due(t.after, t.after_seq, seen.after);
    if seen.odd or due <= now() or cardinality(seen.seqs) > n then
        state := 'step';
    elsif not seen.woken then
        state := 'nothing';
    else
        leases := lease_new(node, timeout, start, seen.queues, seen.priorities, seen.seqs, seen.timeouts, seen.own);
        new.after := least(t.after, seen.after);
        new.after_seq := case when seen.after <= t.after then 0 else t.after_seq end;
        perform step_end(seen.snapshot, new);
        perform tell_sleepers();
        state := case when leases is null then 'nothing' else 'taken' end;
    end if;
end $$;
comment on function take_new(tick, text, int, interval, text[], boolean) is 'The fast path for few new jobs if nothing '
    'else waits: cuts and claims them at once. step = the case is not that simple, or there are too many deltas: a '
    'whole step must be made. Under the scheduler lock';

create or replace function lease_new(node text, timeout interval, start boolean, queues text[], priorities smallint[],
    seqs bigint[], timeouts interval[], own boolean[]) returns bigint[]
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    leases bigint[];
begin
    with job as materialized (
        select * from unnest(lease_new.queues, lease_new.priorities, lease_new.seqs, timeouts, lease_new.own)
                      v (queue, priority, seq, lease_timeout, own)
    ), made as (
        insert into work_queue (lease, batch_order, queue, priority, seqs, scattered, lease_time, max_tries, history,
                                run_timeout, lock_key, started, all_started, lock_timeout, version)
        select nextval('lease_seq'), 1, j.queue, j.priority, j.seqs, scattered(j.seqs, 1000), z.lease_time,
               l.max_tries, l.history, l.run_timeout, node, now(), start,
               now() + coalesce(timeout, z.lease_time, interval '60 s'), 1
        from (select queue, priority, array_agg(seq order by seq) as seqs, max(lease_timeout) as lease_timeout
              from job group by queue, priority, case when own then seq end) j
        join queue_config c on c.queue = j.queue cross join lateral lease_terms(c) l
        cross join lateral (select coalesce(j.lease_timeout, l.lease_time) as lease_time) z
        returning lease
    ), cut_to as (
        select queue, array_agg(priority) as priorities, array_agg(seq) as cuts
        from (select queue, priority, max(seq) as seq from job group by 1, 2) z group by 1
    ), moved as (
        insert into cursor (queue, seq, high, low, chunk)
        select l.queue, s, h, c.low, c.chunk
        from cut_to l cross join lateral newest_cursor(l.queue) c
        cross join lateral advanced(c.seq, l.priorities, l.cuts) s
        cross join lateral advanced(c.high, l.priorities, l.cuts) h
    )
    select array_agg(lease) from made into leases;
    return leases;
end $$;
comment on function lease_new(text, interval, boolean, text[], smallint[], bigint[], interval[], boolean[]) is 'For '
    'take_new(): makes claimed leases of these jobs and moves the cursors. own: the job has timeouts of its own, so it '
    'gets a lease of its own';

create or replace function is_new() returns boolean
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    t tick;
begin
    select * into t from tick order by tick desc limit 1;
    return exists (select from deltas_since(t.snapshot, t.xid) where error_key is null)
           or t.more and t.jobs > (select coalesce(sum(cardinality(seqs)), 0) from live where lock_key is null)
           -- restored into another cluster, see moved(): a step counts anew
           or pg_snapshot_xmax(t.snapshot) > pg_snapshot_xmax(pg_current_snapshot());
end $$;
comment on function is_new() is 'Whether something was pushed or claimed that the last step has not seen. schedule() '
    'itself checks much more';

create or replace function glance(queues text[], out nothing boolean, out due timestamptz)
language plpgsql stable set search_path from current as $$
#variable_conflict use_column
declare
    t tick;
begin
    select * into t from tick order by tick desc limit 1;
    due := next_due(t.after, t.after_seq, null);
    nothing := (due <= now()) is not true and not t.more and not is_new()
               and not exists (select from work_queue w where w.lease >= t.free and w.lock_key is null
                               and (glance.queues is null or w.queue = any(glance.queues)));
end $$;
comment on function glance(text[]) is 'nothing: there is no work for a worker of these queues (NULL: all queues): no '
    'free lease, and a step would make none. due: when that changes without a push. Takes no lock, because the '
    'scheduler''s lock would write its row';

create or replace function lane_due() returns timestamptz
language sql stable set search_path from current as
$$ select case when l.laps > 0 then l.due end from lane l order by l.n desc limit 1 $$;
comment on function lane_due() is 'When to look for blocked jobs again (44_keys); NULL = not before something changes';

create or replace function look(node text, n int, timeout interval, queues text[], start boolean, polls boolean,
    out state text, out leases bigint[], out due timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    t tick;
    none boolean := false;
    soon timestamptz;
begin
    if polls then -- polling is frequent, so it must be cheap
        select g.nothing, g.due into none, soon from glance(queues) g;
    end if;
    if exists (select from node_barred(node)) then
        state := 'nothing';
    elsif (select not still(s.until) from scheduler s order by s.term desc limit 1) then
        state := 'alone'; -- claim() makes the step of the missing scheduler
        due := (select next_due(least(x.after, now()), case when x.after <= now() then x.after_seq else 0 end, null)
                from tick x order by x.tick desc limit 1);
    elsif none then
        state := 'nothing';
        due := soon;
    elsif not scheduler_lock(false) then
        state := 'busy';
    else
        select * into t from tick order by tick desc limit 1;
        if exists (select from work_queue w where w.lease >= t.free and w.lock_key is null
                   and (look.queues is null or w.queue = any(look.queues))) then
            state := 'claim';
        elsif not t.more then
            select x.state, x.leases, x.due into look.state, look.leases, look.due
            from take_new(t, node, n, timeout, queues, start) x;
        else
            state := 'step';
        end if;
        if state = 'nothing' and lane_due() <= clock_timestamp() then
            state := 'step';
        end if;
        if state = 'step' then
            perform schedule('wake:' || node);
            state := 'claim';
        end if;
        if state <> 'taken' then
            due := least(due, lane_due());
        end if;
    end if;
end $$;
comment on function look(text, int, interval, text[], boolean, boolean) is 'Looks for something to claim. state: taken '
    '= these leases are claimed already; claim = claim() may find some; alone = the same, and no scheduler lives; '
    'nothing; busy = another session makes a step';

create or replace function take_slot(listening int, out slot int, out fresh boolean)
language plpgsql set search_path from current as $$
declare
    at int := 'queue'::regclass::oid::int;
begin
    slot := -1;
    if pg_try_advisory_lock(slot_class(), at) then
        slot := 0;
    elsif slot_waits(0) then -- otherwise a push is in progress: the next look comes soon
        select s into slot from (select listening as s where listening > 0 union all select generate_series(1, 16)) z
        where pg_try_advisory_lock(slot_class() + s, at) limit 1;
        slot := coalesce(slot, -2);
    end if;
    fresh := slot >= 0 and slot <> listening;
    if fresh then
        unlisten *;
        execute format('listen %I', slot_channel(slot));
    end if;
end $$;
comment on function take_slot(int) is 'Takes a wait slot for this session. -1 = a push is in progress, -2 = all slots '
    'are taken. fresh: the session listens only from the end of this transaction on';

create or replace function look_again(state text, due timestamptz, slot int, fresh boolean) returns int
language sql volatile as $$
    select greatest(0, case when slot = -1 or state = 'busy' then 2
                            when fresh then 0
                            when due < now() + interval '1 s'
                            then 1 + (1000 * extract(epoch from greatest(due, now()) - clock_timestamp()))::int
                            when state = 'alone' and slot = 0 then 250
                            else 1000 end)
$$;
comment on function look_again(text, timestamptz, int, boolean) is 'For claim_or_wait(): after how many ms to call it '
    'again at the latest. state, due: the result of look(); slot, fresh: the result of take_slot()';

create or replace function claim_or_wait(node text, n int, timeout interval default null, queues text[] default null,
    start boolean default true, backend_pid int default null, listening int default -1)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int,
    max_tries int, payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz,
    run_timeout interval, slot int, wait_ms int)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    direct boolean := coalesce(backend_pid = pg_backend_pid(), false);
    got    boolean;
    rows   int;
    at     timestamptz; -- when the jobs were handed out
    seen   record; -- the result of look()
    place  record; -- the result of take_slot()
begin
    if claim_fault(node, n, timeout) is not null then -- as in claim(): a lease without a node would be a free lease
        raise '%', claim_fault(node, n, timeout) using errcode = 'QT007';
    end if;
    if direct then
        perform pg_advisory_unlock_all(); -- all advisory locks: the session belongs to this worker
    end if;
    if n < 1 then -- the worker takes no more jobs: another should wait in its place
        perform wake(1);
        return;
    end if;
    for round in 1 .. 2 loop
        select * into seen from look(node, n, timeout, queues, start, not direct);
        if seen.state = 'taken' then
            at := clock_timestamp();
            return query select r.*, -1, 0 from read_leases(seen.leases, at) r;
            get diagnostics rows = row_count;
            got := rows > 0;
            if rows < (select sum(cardinality(w.seqs)) from work_queue w where w.lease = any(seen.leases)) then
                perform drop_missing(seen.leases, at); -- some jobs were just deleted by hand, or have expired
            end if;
        else
            return query select c.*, -1, 0 from claim(node, n, timeout, queues, start) c where seen.state <> 'nothing';
            got := found;
        end if;
        if got then
            if direct and round = 2 then
                perform pg_advisory_unlock_all();
            end if;
            return;
        end if;
        if round = 1 and direct then
            select * into place from take_slot(listening);
        elsif round = 1 then
            select -2 as slot, false as fresh into place;
        end if;
        exit when place.slot < 0 or place.fresh;
    end loop;
    slot := place.slot;
    wait_ms := look_again(seen.state, seen.due, place.slot, place.fresh);
    return next;
end $$;
comment on function claim_or_wait(text, int, interval, text[], boolean, int, int) is 'claim() for a worker that has '
    'nothing to do. If there is nothing to claim, the answer is one row without a lease. slot: where this session '
    'waits from now on (below 0: nowhere). wait_ms: after how many ms to call again at the latest (a delayed job is '
    'due; 0: at once, because the session listens only from now on). backend_pid: the pid of the process that the '
    'client is connected to; if this call runs in another process, a pooler is between, and the session never waits. '
    'listening: slot of the last answer. The next call ends the wait; a call with n = 0 only ends the wait';

create or replace function take_place(quiet interval) returns boolean
language plpgsql set search_path from current as $$
begin
    return quiet >= interval '1 s' and not slot_waits(0) and wake(1) = 0
           and not (select more from tick order by tick desc limit 1) -- otherwise claims are news, too
           and pg_try_advisory_lock(slot_class(), 'queue'::regclass::oid::int);
end $$;
comment on function take_place(interval) is 'For a scheduler in which nothing was new for the time quiet: takes slot '
    '0, unless a worker can. If a worker waits in another slot, that worker is woken to take slot 0';

create or replace function is_late() returns boolean
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select slot_waits(0) and exists (
        select from delta d
        where d.xid >= pg_snapshot_xmax(t.snapshot) and d.min_seq is not null and d.error_key is null
        and d.at < clock_timestamp() - interval '250 ms')
    from (select * from tick order by tick desc limit 1) t
$$;
comment on function is_late() is 'Whether somebody waits for pushes, but a push of more than 250 ms ago has not been '
    'looked at';

create or replace function schedule_or_wait(holder text, quiet interval default '0', backend_pid int default null,
    listening boolean default false)
returns table (active boolean, cut int, promoted int, stolen int, wait_ms int, look_ms int, waits boolean, late boolean,
    fold boolean)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    direct boolean := coalesce(backend_pid = pg_backend_pid(), false);
    rest   int := 500;
begin
    if quiet >= interval '2 s'
       and not exists (select from queue where state = 'blocked' and concurrency_key is not null)
       and not exists (select from queue_config where max_running is not null) then
        rest := 1000; -- a job's end notifies nobody, but no job waits for one
    end if;
    waits := false;
    if direct then
        perform pg_advisory_unlock_all(); -- all advisory locks: the session belongs to this scheduler
        waits := take_place(quiet);
    end if;
    if waits and not listening then
        unlisten *;
        execute format('listen %I', slot_channel(0));
    end if;
    late := not waits and is_late();
    select s.active, s.cut, s.promoted, s.stolen, s.wait_ms into active, cut, promoted, stolen, wait_ms
    from schedule(holder, rest) s;
    if waits and not active then
        perform pg_advisory_unlock_all();
        waits := false;
    elsif waits and not listening then
        wait_ms := 0; -- the session listens only from the end of this transaction on
    end if;
    look_ms := case when active and not waits then idle_wait() else wait_ms end;
    fold := active and must_fold();
    return next;
end $$;
comment on function schedule_or_wait(text, interval, int, boolean) is 'schedule() for a process of its own in which '
    'nothing was new for the time quiet. If no worker waits for pushes, this session does (waits), until the next '
    'call; through a pooler it calls is_new() every look_ms instead. fold: fold_beside() is due. Without news the '
    'steps come every half second; after 2 s every second, if no job waits for the end of another. backend_pid: as in '
    'claim_or_wait. listening: the session has waited before on this connection';

-- 49_minute
-- What happened, minute by minute: one row for each queue and minute, summed from the deltas between two kept folds (10
-- s). keep_books() does that outside the scheduler's lock; if nobody calls it, the next kept fold does it. Each delta
-- counts once, by the rule of the folds, in the minute in which its transaction began. So a late commit, or deltas that
-- were not summed up for a while because no scheduler lived, may still change a minute that is over.
--
-- Times are kept as histograms of 64 half-octave buckets: bucket 1 is below 1 ms, bucket n from 2^((n-2)/2) to
-- 2^((n-1)/2) ms. Only buckets that hold something are stored. A percentile read from them is within half an octave of
-- the truth.

create table if not exists minute (
    minute    timestamptz not null,
    queue     text collate "C" not null,
    pushed    bigint not null,
    completed bigint not null,
    fails     bigint not null,
    retried   bigint not null,
    cancelled bigint not null,
    lost      bigint not null,
    wait_ms   bigint not null,
    run_ms    bigint not null,
    wait_max  int,
    run_max   int,
    buckets   smallint[],
    waits     int[],
    runs      int[],
    ready     bigint not null default 0,
    constraint minute_pkey primary key (minute, queue)
) with (fillfactor = 80);
alter table minute set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
                        autovacuum_vacuum_cost_delay = 0);
create index if not exists minute_fails on minute (minute) where fails > 0; -- see failed_within_hour()
comment on table minute is 'One row a queue and minute in which something happened; kept for the setting minute_keep';
comment on column minute.fails is 'Jobs that failed for good';
comment on column minute.lost is 'Attempts that ended with their worker';
comment on column minute.wait_ms is 'Sum over completed jobs, from ready to start';
comment on column minute.run_ms is 'Sum over completed jobs, from start to end';
comment on column minute.ready is 'How many ready and running jobs the queue gained (or lost, if negative) in the '
    'minute. The number at a past time is the present number less these';
comment on column minute.buckets is 'The buckets that hold something, ascending; waits and runs say how many, in the '
    'same order';

insert into setting (name, value, note) values
    ('minute_keep', '7 days', 'how long what happened in each minute is kept')
on conflict do nothing;

create or replace function bucket_bounds() returns float8[] language sql immutable parallel safe as
$$ select array(select 2 ^ (i / 2.0::float8) from generate_series(0, 62) i) $$;
comment on function bucket_bounds() is 'Where the buckets of times begin, in ms, from the second one on: half octaves '
    'from 1 ms to 24 days';

create or replace function unrolled(last fold, this fold, lowest timestamptz)
returns table (minute timestamptz, queue text, pushed int, completed int, fails int, retried int, cancelled int,
               lost int, run_ms bigint, waits int[], runs int[], ready int)
language sql stable as $$
    select greatest(date_trunc('minute', at), lowest), queue, pushed, completed, fails, retried, cancelled, lost,
           run_ms, waits, runs, ready
    from delta
    where xid >= pg_snapshot_xmax(last.snapshot) and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
      and error_key is null
    union all
    select greatest(date_trunc('minute', at), lowest), queue, pushed, completed, fails, retried, cancelled, lost,
           run_ms, waits, runs, ready
    from delta
    where xid < pg_snapshot_xmax(last.snapshot) and pg_visible_in_snapshot(xid, this.snapshot) and xid <> this.xid
      and xid = any(array(select pg_snapshot_xip(last.snapshot)) || last.xid) and error_key is null
$$;
comment on function unrolled(fold, fold, timestamptz) is 'The deltas, as in fold_groups(), that one fold saw and the '
    'one before did not, each with its minute, lowest at least. Part of the caller''s plan: no SET';

create or replace function minute_sums(last fold, this fold, lowest timestamptz)
returns table (minute timestamptz, queue text, pushed bigint, completed bigint, fails bigint, retried bigint,
               cancelled bigint, lost bigint, wait_ms bigint, run_ms bigint, wait_max int, run_max int,
               buckets smallint[], waits int[], runs int[], ready bigint)
language sql stable as $$
    with deltas as materialized (
        select d.* from unrolled(last, this, lowest) d
    ), sums as materialized (
        select row_number() over () * 128 as id, z.* from (
            select minute, queue, sum(pushed) as pushed, sum(completed) as completed, sum(fails) as fails,
                   sum(retried) as retried, sum(cancelled) as cancelled, sum(lost) as lost, sum(run_ms) as run_ms,
                   sum(ready) as ready
            from deltas group by 1, 2
            having num_nulls(sum(pushed), sum(completed), sum(fails), sum(retried), sum(cancelled), sum(lost),
                             sum(ready)) < 7) z
    ), bucket_parts as ( -- one number says which minute, queue and bucket: grouping by it takes half the time
        select id + 1 + width_bucket(ms, bucket_bounds()) as key, count(*) as n, 0::bigint as r, sum(ms) as wait_ms,
               max(ms) as wait_max, null::float8 as run_max
        from (select s.id, unnest(d.waits)::float8 as ms from deltas d join sums s using (minute, queue)
              where d.waits is not null) z group by 1
        union all
        select id + 1 + width_bucket(ms, bucket_bounds()), 0, count(*), 0, null, max(ms)
        from (select s.id, unnest(d.runs)::float8 as ms from deltas d join sums s using (minute, queue)
              where d.runs is not null) z group by 1
        union all
        select s.id + u.bucket, u.w, u.r, 0, null, null
        from sums s
        cross join lateral (select * from minute m where m.minute = s.minute and m.queue = s.queue offset 0) m,
             unnest(m.buckets, m.waits, m.runs) u (bucket, w, r)
    ), histograms as (
        select key / 128 * 128 as id, array_agg((key % 128)::smallint) as buckets, array_agg(waits) as waits,
               array_agg(runs) as runs, sum(wait_ms)::bigint as wait_ms, max(wait_max)::int as wait_max,
               max(run_max)::int as run_max
        from (select key, sum(n)::int as waits, sum(r)::int as runs, sum(wait_ms) as wait_ms, max(wait_max) as wait_max,
                     max(run_max) as run_max
              from bucket_parts group by key order by key) z
        group by 1)
    select s.minute, s.queue, coalesce(s.pushed, 0), coalesce(s.completed, 0), coalesce(s.fails, 0),
           coalesce(s.retried, 0), coalesce(s.cancelled, 0), coalesce(s.lost, 0), coalesce(h.wait_ms, 0),
           coalesce(s.run_ms, 0)::bigint, h.wait_max, h.run_max, h.buckets, h.waits, h.runs, coalesce(s.ready, 0)
    from sums s left join histograms h using (id)
$$;
comment on function minute_sums(fold, fold, timestamptz) is 'What the deltas between two folds add to their minutes; '
    'the histograms with what the minutes hold already. Part of the caller''s plan: no SET';

create or replace function roll_minutes(kept bigint) returns int
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set work_mem = '64MB' set enable_nestloop = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    this   fold;
    last   fold;
    lowest timestamptz := date_trunc('minute', now() - setting_interval('minute_keep'));
    n      int;
begin
    -- once: the second waits, and finds it rolled
    select * into this from fold where fold = kept and keep and not rolled for update;
    if not found then
        return 0;
    end if;
    update fold set rolled = true where fold = kept;
    select * into last from fold where keep and fold < kept order by fold desc limit 1;
    insert into minute as m (minute, queue, pushed, completed, fails, retried, cancelled, lost, wait_ms, run_ms,
                             wait_max, run_max, buckets, waits, runs, ready)
    select z.* from minute_sums(last, this, lowest) z
    on conflict on constraint minute_pkey do update
    set pushed = m.pushed + excluded.pushed, completed = m.completed + excluded.completed,
        fails = m.fails + excluded.fails, retried = m.retried + excluded.retried,
        cancelled = m.cancelled + excluded.cancelled, lost = m.lost + excluded.lost,
        wait_ms = m.wait_ms + excluded.wait_ms, run_ms = m.run_ms + excluded.run_ms,
        wait_max = greatest(m.wait_max, excluded.wait_max), run_max = greatest(m.run_max, excluded.run_max),
        buckets = excluded.buckets, waits = excluded.waits, runs = excluded.runs, ready = m.ready + excluded.ready;
    get diagnostics n = row_count;
    return n;
end $$;
comment on function roll_minutes(bigint) is 'Adds the deltas between a kept fold and the kept fold before it to their '
    'minutes, once. Returns how many rows were written';

create or replace function trim_minutes(since timestamptz, "limit" int default 2000) returns timestamptz
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    last_gone timestamptz;
begin
    with outdated as materialized (
        select ctid, minute from minute
        where minute >= since and minute < date_trunc('minute', now() - setting_interval('minute_keep')) order by minute
        limit trim_minutes."limit"
    ), deleted as (
        delete from minute where ctid = any(array(select ctid from outdated)))
    select max(minute) into last_gone from outdated;
    return coalesce(last_gone, since);
end $$;
comment on function trim_minutes(timestamptz, int) is 'Deletes minutes that are older than the setting minute_keep, '
    'from since on, which spares the next call the rows that earlier calls deleted. Returns the last minute deleted';

create or replace function minutes(queues text[] default null, since timestamptz default now() - interval '1 hour',
    upto timestamptz default now())
returns table (queue text, minute timestamptz, pushed bigint, completed bigint, fails bigint, retried bigint,
               cancelled bigint, lost bigint,
    wait_ms bigint, run_ms bigint, wait_max int, run_max int)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select m.queue, m.minute, m.pushed, m.completed, m.fails, m.retried, m.cancelled, m.lost, m.wait_ms, m.run_ms,
           m.wait_max, m.run_max
    from minute m
    where m.minute >= date_trunc('minute', since) and m.minute < upto and (queues is null or m.queue = any(queues))
    order by m.minute, m.queue
$$;
comment on function minutes(text[], timestamptz, timestamptz) is 'What happened in each minute. A minute without a row '
    'had no events. The answer is up to 10 s old';

create or replace function percentiles(queues text[] default null, since timestamptz default now() - interval '1 hour',
    upto timestamptz default now())
returns table (queue text, completed bigint, wait_p50 float8, wait_p90 float8, wait_p99 float8, wait_max int,
    run_p50 float8, run_p90 float8, run_p99 float8, run_max int)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    with chosen_minutes as materialized (
        select m.queue, m.completed, m.wait_max, m.run_max, m.buckets, m.waits, m.runs from minute m
        where m.minute >= date_trunc('minute', since) and m.minute < upto and (queues is null or m.queue = any(queues))
    ), sums as (
        select queue, sum(completed)::bigint as completed, max(wait_max) as wait_max, max(run_max) as run_max
        from chosen_minutes group by 1
    ), bucket_sums as (
        select m.queue, u.bucket, sum(u.w)::float8 as w, sum(u.r)::float8 as r
        from chosen_minutes m, unnest(m.buckets, m.waits, m.runs) u (bucket, w, r) group by 1, 2
    ), cumulated as ( -- in float8: numeric would take a quarter more time for all
        select queue, what, bucket, n, sum(n) over (partition by queue, what order by bucket) as upto,
               sum(n) over (partition by queue, what) as total
        from bucket_sums b, lateral (values ('w', b.w), ('r', b.r)) v (what, n) where n > 0
    ), hit_buckets as ( -- within a bucket, values are taken to be spread evenly
        select queue, what, p, case when bucket = 1 then 0 else 2 ^ ((bucket - 2) / 2.0::float8) end as low,
               2 ^ ((bucket - 1) / 2.0::float8) as high, (p * total - (c.upto - n)) / n as part
        from cumulated c, unnest(array[0.5, 0.9, 0.99]::float8[]) p where p * total > c.upto - n and p * total <= c.upto
    ), percentile_values as (
        select queue, what, p, low + (high - low) * part as ms from hit_buckets)
    select s.queue, s.completed,
           least(max(ms) filter (where what = 'w' and p = 0.5::float8), s.wait_max),
           least(max(ms) filter (where what = 'w' and p = 0.9::float8), s.wait_max),
           least(max(ms) filter (where what = 'w' and p = 0.99::float8), s.wait_max), s.wait_max,
           least(max(ms) filter (where what = 'r' and p = 0.5::float8), s.run_max),
           least(max(ms) filter (where what = 'r' and p = 0.9::float8), s.run_max),
           least(max(ms) filter (where what = 'r' and p = 0.99::float8), s.run_max), s.run_max
    from sums s left join percentile_values v on v.queue = s.queue
    group by s.queue, s.completed, s.wait_max, s.run_max order by s.queue
$$;
comment on function percentiles(text[], timestamptz, timestamptz) is 'How long completed jobs waited and ran, in ms: '
    'median, 90th and 99th percentile, longest. Read from buckets of half an octave';

create or replace function minutes_known(out rolled bigint, out newest bigint, out rolled_at timestamptz,
    out counted_at timestamptz, out low timestamptz, out high timestamptz)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    n fold;
    r fold;
begin
    select * into n from fold f order by f.fold desc limit 1;
    select * into r from fold f where f.keep and f.rolled order by f.fold desc limit 1;
    rolled := r.fold;
    rolled_at := r.at;
    newest := n.fold;
    high := now();
    if exists (select from delta where xid >= pg_snapshot_xmax(n.snapshot))
       or exists (select from delta where xid = any(array(select pg_snapshot_xip(n.snapshot)) || n.xid)) then
        high := least(high, n.at);
    end if;
    counted_at := least(high, n.at);
    select m.minute into low from minute m
    where m.minute >= to_timestamp(coalesce(r.swept[4], 0)) order by m.minute limit 1;
    low := coalesce(low, date_trunc('minute', n.at));
end $$;
comment on function minutes_known() is 'Up to where table minute is filled: the newest fold whose deltas are in minute '
    '(rolled), the newest fold of all, and when both were made; from which minute on and up to when anything is known. '
    'What no fold has seen yet is unknown, not zero';

create or replace function minute_steps(of_queue text, since timestamptz, step interval default interval '1 min')
returns table (at timestamptz, seconds float8, pushed bigint, completed bigint, fails bigint, retried bigint,
               lost bigint, backlog bigint, buckets smallint[], waits bigint[], runs bigint[])
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off as $$
    with known as materialized (
        select k.*, z.size, floor(extract(epoch from k.counted_at) / z.size) as last_n,
               (case when k.rolled_at < k.counted_at then greatest(0, extract(epoch from
                    to_timestamp(floor(extract(epoch from k.counted_at) / z.size) * z.size) - k.rolled_at)
                    / extract(epoch from k.counted_at - k.rolled_at)) else 0 end)::numeric as before,
               greatest(k.low, to_timestamp(floor(extract(epoch from least(since, k.high)) / z.size) * z.size)) as start
        from minutes_known() k, (select least(greatest(60, extract(epoch from step)::float8), 366 * 86400) as size) z
    ), lived as materialized (
        select floor(extract(epoch from m.minute) / k.size) as n, m.*
        from known k cross join generate_series(k.start, k.high, interval '1 min') g (minute)
        cross join lateral (select * from minute m where m.minute = g.minute and m.queue = of_queue offset 0) m
    ), counted as materialized (
        select c.fold = k.newest as is_new, case when c.fold = k.newest then 1 else -1 end as sign, c.*
        from known k cross join lateral (
            select * from counter c where c.fold in (k.newest, k.rolled) and c.error_key is null offset 0) c
        where c.queue = of_queue
    ), tail as ( -- the deltas that the newest fold saw and that minute lacks: they belong to the last step, or to two
        select sum(sign * c.pushed) as pushed, sum(sign * c.completed) as completed, sum(sign * c.fails) as fails,
               sum(sign * c.retried) as retried, sum(sign * c.lost) as lost, sum(sign * c.ready) as ready
        from counted c where (select rolled <> newest from known)
    ), parts as (
        select n, pushed, completed, fails, retried, lost, ready from lived
        union all
        select last_n - 1, round(t.pushed * before), round(t.completed * before), round(t.fails * before),
               round(t.retried * before), round(t.lost * before), round(t.ready * before)
        from known, tail t
        union all
        select last_n, t.pushed - round(t.pushed * before), t.completed - round(t.completed * before),
               t.fails - round(t.fails * before), t.retried - round(t.retried * before),
               t.lost - round(t.lost * before), t.ready - round(t.ready * before)
        from known, tail t
    ), sums as (
        select n, sum(pushed)::bigint as pushed, sum(completed)::bigint as completed, sum(fails)::bigint as fails,
               sum(retried)::bigint as retried, sum(lost)::bigint as lost, sum(ready)::bigint as ready
        from parts group by n
    ), histograms as (
        select n, array_agg(bucket order by bucket) as buckets, array_agg(w order by bucket) as waits,
               array_agg(r order by bucket) as runs
        from (select n, u.bucket, sum(u.w) as w, sum(u.r) as r
              from lived l, unnest(l.buckets, l.waits, l.runs) u (bucket, w, r) group by 1, 2) b group by 1)
    select to_timestamp(s.n * k.size),
           extract(epoch from least(k.high, to_timestamp((s.n + 1) * k.size))
                              - greatest(k.start, to_timestamp(s.n * k.size)))::float8,
           coalesce(z.pushed, 0), coalesce(z.completed, 0), coalesce(z.fails, 0), coalesce(z.retried, 0),
           coalesce(z.lost, 0),
           (coalesce((select sum(ready) from counted where is_new), 0) - coalesce(sum(z.ready) over (
                order by s.n desc rows between unbounded preceding and 1 preceding), 0))::bigint,
           h.buckets, h.waits, h.runs
    from known k
    cross join generate_series(floor(extract(epoch from k.start) / k.size)::bigint,
                               floor(extract(epoch from k.high) / k.size)::bigint) s (n)
    left join sums z on z.n = s.n left join histograms h on h.n = s.n
    order by 1
$$;
comment on function minute_steps(text, timestamptz, interval) is 'What happened in a queue, one row for each step of '
    'time, also if nothing happened: the ready and running jobs at the end of the step, and how many seconds of it are '
    'known. A time without a row is unknown: before the oldest minute, or not counted by a scheduler yet';

create or replace function failed_within_hour(most int default 20000) returns table (queue text, failed bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_sort = off
    set jit = off as $$
    select m.queue, sum(m.fails)::bigint
    from (select m.queue, m.fails from minute m
          where m.fails > 0 and m.minute >= date_trunc('minute', now() - interval '1 hour')
          order by m.minute desc limit greatest(most, 0)) m
    group by m.queue
$$;
comment on function failed_within_hour(int) is 'How many jobs of each queue failed for good within the last hour. '
    'Reads the newest minutes with failures, most rows at most: if there are more, the figures are too low';

create or replace function queue_pace() returns table (queue text, minutes int, pushed bigint, gone bigint,
    completed bigint, fails bigint, run_ms bigint, upto timestamptz, nets bigint[], tokens bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    with span as materialized (
        select date_trunc('minute', now() - interval '10 s') as upto
    ), sums as materialized (
        select m.queue, sum(m.pushed)::bigint as pushed, sum(m.completed + m.fails + m.cancelled)::bigint as gone,
               sum(m.completed)::bigint as completed, sum(m.fails)::bigint as fails, sum(m.run_ms)::bigint as run_ms
        from span s
        cross join lateral (
            select * from minute m where m.minute >= s.upto - interval '5 min' and m.minute < s.upto offset 0) m
        group by m.queue
    ), growing as materialized (
        select z.queue from sums z where z.pushed > z.gone * 1.05 order by z.pushed - z.gone desc, z.queue limit 50
    ), growth as materialized (
        select g.queue, array_agg(coalesce(m.net, 0) order by t.minute) as nets
        from growing g cross join span s
        cross join lateral generate_series(s.upto - interval '1 hour', s.upto - interval '1 min', interval '1 min')
            t (minute)
        left join lateral (
            select m.pushed - m.completed - m.fails - m.cancelled as net from minute m
            where m.minute = t.minute and m.queue = g.queue offset 0) m on true
        group by g.queue
    )
    select c.queue, greatest(0, least(5, floor(extract(epoch from s.upto - c.registered) / 60)))::int,
           coalesce(z.pushed, 0), coalesce(z.gone, 0), coalesce(z.completed, 0), coalesce(z.fails, 0),
           coalesce(z.run_ms, 0), s.upto, g.nets, b.tokens
    from queue_config c cross join span s
    left join sums z on z.queue = c.queue
    left join growth g on g.queue = c.queue
    left join lateral (
        select floor(least(coalesce(c.burst, greatest(1, floor(c.rate))), b.level
                           + c.rate::float8 * extract(epoch from greatest(now() - b.at, interval '0'))))::bigint
               - cardinality(b.seqs) as tokens
        from bucket b where b.queue = c.queue order by b.n desc limit 1) b on c.rate is not null
$$;
comment on function queue_pace() is 'How many jobs came in (pushed) and went out (completed, failed for good, '
    'cancelled) in the last five whole minutes, or since the queue was first seen; the tokens of a rate limit; and, '
    'for the 50 queues that grow fastest, by how much they grew in each minute of the last hour';

-- 50_claim
-- Claiming. A claim takes free leases in the order of their numbers. It begins where the scheduler's last step says
-- that free ones begin, so it never meets the dead rows of finished leases. For each lease it writes one row of
-- work_queue (HOT), and none of queue.
--
-- A lease with more jobs than asked for is split: the old row stays free, with the rest of the jobs. The part taken
-- becomes a new row, already claimed, with one of the 99 numbers after the old one: base + jobs left. That number is
-- unique, because the jobs left only become fewer. So a claim needs no lock of the scheduler, and no free lease ever
-- appears later below the scheduler's mark.

-- claim() and complete_and_claim() pin search_path and the settings of the planner, both those that are off and those
-- that must be on, whatever the role has set. The functions that they call have no settings of their own: each setting
-- would cost as much time as reading a job.

create or replace function claim_fault(node text, n int, timeout interval) returns text
language sql immutable parallel safe as $$
    select case when (length(node) between 1 and 200) is not true or n is null or timeout <= interval '0'
                     or timeout > interval '365 days'
           then 'a claim names its node (1 to 200 characters), a number of jobs, and no timeout that is over or longer '
                'than 365 days' end
$$;
comment on function claim_fault(text, int, interval) is 'Why a claim with these values is invalid; NULL = it is valid. '
    'No SET, so that it is inlined';

create or replace function node_barred(node text) returns setof boolean
language sql stable as $$
    select true from node n
    where n.lock_key = node_barred.node
      and (n.state <> 'up' or n.heartbeat < now() - (select s.value::interval from setting s
                                                     where s.name = 'node_dead'))
$$;
comment on function node_barred(text) is 'Returns one row if this node may not claim: it is draining, or its last '
    'heartbeat is so old that others take it for dead. No SET, so that it is inlined';

create or replace function find_free(node text, queues text[], n int, but bigint[]) returns bigint[]
language plpgsql as $$
declare
    r bigint[];
    m int;
begin
    if cardinality(queues) = 1 then
        return array(
            select w.lease from work_queue w
            where w.queue || '' = queues[1] and w.lock_key is null and w.lease <> all(but)
              and w.lease + 0 >= coalesce((select low from cursor r
                                           where r.queue = queues[1] order by r.n desc limit 1), 0)
              and not exists (select from node_barred(find_free.node))
            order by w.lease + 0 limit find_free.n for update skip locked);
    end if;
    for round in 1 .. 5 loop
        with candidates as materialized (
            select w.lease
            from (select distinct unnest(queues) as queue) q
            cross join lateral (
                select w.lease from work_queue w
                where w.queue || '' = q.queue and w.lock_key is null and w.lease <> all(but)
                  and w.lease + 0 >= coalesce((select low from cursor r
                                               where r.queue = q.queue order by r.n desc limit 1), 0)
                order by w.lease + 0 limit 16 + find_free.n) w
            where not exists (select from node_barred(find_free.node))
            order by w.lease
        ), locked_leases as (
            select w.lease from work_queue w where w.lease = any(array(select lease from candidates))
              and w.lock_key is null
            order by w.lease + 0 limit find_free.n for update of w skip locked)
        select array_agg(lease), (select count(*) from candidates) into r, m from locked_leases;
        exit when r is not null or m = 0;
    end loop;
    return r;
end $$;
comment on function find_free(text, text[], int, bigint[]) is 'Locks up to n free leases of these queues, the oldest '
    'first';

create or replace function take_many(node text, n int, timeout interval, queues text[], start boolean, at timestamptz,
    first bigint, inout jobs int,
    out leases bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    taken bigint[] := array[first]; -- whole leases that are locked
    part  bigint;                -- a lease that was split for this claim
    more  bigint[];
    sizes int[];
    batch int;
    i     int;
begin
    while jobs < n loop
        batch := least(100, ceil((n - jobs)::float8 * cardinality(taken) / jobs))::int;
        if queues is null then
            select array_agg(z.lease), array_agg(z.size) into more, sizes from (
                select w.lease, cardinality(w.seqs) as size from work_queue w
                where w.lease > taken[cardinality(taken)] and w.lock_key is null
                order by w.lease limit batch for update skip locked) z;
        else
            more := find_free(node, queues, batch, taken);
            select array_agg(cardinality(w.seqs) order by w.lease) into sizes from work_queue w
            where w.lease = any(more);
        end if;
        exit when more is null or more = '{}';
        i := 1;
        while i <= cardinality(more) and jobs + sizes[i] <= n loop
            jobs := jobs + sizes[i];
            i := i + 1;
        end loop;
        taken := taken || more[:i - 1];
        if i <= cardinality(more) and jobs < n then
            part := split(node, more[i], n - jobs, timeout, start, at);
            jobs := n;
        end if;
    end loop;
    update work_queue w
    set lock_key = take_many.node, started = take_many.at, version = w.version + 1, all_started = start,
    started_seqs = null,
        lock_timeout = take_many.at + coalesce(timeout, w.lease_time, interval '60 s')
    where w.lease = any(taken);
    leases := taken || part;
end $$;
comment on function take_many(text, int, interval, text[], boolean, timestamptz, bigint, int) is 'Claims leases until '
    'they hold n jobs. The first one is locked already and holds fewer jobs (jobs)';

create or replace function split(node text, lease bigint, n int, timeout interval, start boolean, at timestamptz)
    returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
    part bigint;
begin
    insert into work_queue (lease, batch_order, queue, priority, seqs, all_started, lock_key, started, lock_timeout,
                            version,
                            max_tries, history, lease_time, run_timeout, scattered)
    select w.lease + cardinality(w.seqs) - split.n, w.batch_order, w.queue, w.priority, w.seqs[:split.n], start,
           split.node, split.at,
           split.at + coalesce(timeout, w.lease_time, interval '60 s'), w.version + 1, w.max_tries, w.history,
           w.lease_time, w.run_timeout, w.scattered
    from work_queue w where w.lease = split.lease returning lease into part;
    update work_queue x set seqs = x.seqs[split.n + 1:] where x.lease = split.lease;
    return part;
end $$;
comment on function split(text, bigint, int, interval, boolean, timestamptz) is 'Claims the first n jobs of a free '
    'lease that is locked, as a lease of their own. Its number is the old one + jobs left';

create or replace function take_lease(node text, n int, timeout interval, queues text[], start boolean,
    out lease bigint, out version int, out queue text, out priority smallint, out seqs bigint[], out max_tries smallint,
    out lease_until timestamptz, out run_timeout interval, out jobs int, out leases bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    found   bigint[];
    stepped boolean := false; -- one step a claim at most
    at      timestamptz := clock_timestamp(); -- not now(): the jobs start at this time, and rate limits count by it
begin
    if claim_fault(node, n, timeout) is not null then
        raise '%', claim_fault(node, n, timeout) using errcode = 'QT007';
    end if;
    while n > 0 loop
        if queues is null then
            select x.lease, x.version + 1, x.queue, x.priority, x.seqs, x.max_tries,
                   at + coalesce(timeout, x.lease_time, interval '60 s'),
                   x.run_timeout, cardinality(x.seqs), case when x.scattered then array[x.lease] end
            into lease, version, queue, priority, seqs, max_tries, lease_until, run_timeout, jobs, leases
            from work_queue x
            where x.lease >= (select t.free from tick t order by t.tick desc limit 1) and x.lock_key is null
              and not exists (select from node_barred(take_lease.node))
            order by x.lease limit 1 for update skip locked;
        else
            found := find_free(node, queues, 1, '{}');
            select x.lease, x.version + 1, x.queue, x.priority, x.seqs, x.max_tries,
                   at + coalesce(timeout, x.lease_time, interval '60 s'),
                   x.run_timeout, cardinality(x.seqs), case when x.scattered then array[x.lease] end
            into lease, version, queue, priority, seqs, max_tries, lease_until, run_timeout, jobs, leases
            from work_queue x where x.lease = found[1];
        end if;
        if jobs = n then
            update work_queue x
            set lock_key = take_lease.node, started = at, version = take_lease.version, all_started = start,
            started_seqs = null,
                lock_timeout = take_lease.lease_until
            where x.lease = take_lease.lease;
            return;
        elsif jobs > n then
            lease := split(node, lease, n, timeout, start, at);
            seqs := seqs[:n];
            leases := case when leases is not null then array[lease] end;
            jobs := n;
            return;
        elsif jobs < n then
            select m.jobs, m.leases into jobs, leases
            from take_many(node, n, timeout, queues, start, at, lease, jobs) m;
            return;
        end if;
        exit when stepped or not idle_step(node);
        stepped := true;
        at := clock_timestamp();
    end loop;
end $$;
comment on function take_lease(text, int, interval, text[], boolean) is 'Claims n jobs. If it is one lease, whole or a '
    'part split off, the answer has all that is needed to read its jobs. If there are several leases, or one whose '
    'jobs are far apart, leases lists them. jobs NULL: nothing is free';

create or replace function read_leases(leases bigint[], at timestamptz)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int,
               max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql stable as $$
#variable_conflict use_column
begin
    return query
    select w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
           coalesce(j.max_tries, w.max_tries, 5)::int, j.payload, j.body, j.payload_type, j.created, w.lock_timeout,
           coalesce(j.run_timeout, w.run_timeout)
    from work_queue w
    cross join lateral leased_jobs(w.queue, w.priority, w.seqs, w.scattered) j
    where w.lease = any(read_leases.leases) and (j.expires_at > at) is not false
    order by w.lease, j.seq;
end $$;
comment on function read_leases(bigint[], timestamptz) is 'The jobs of claimed leases, except those that have expired '
    'by then';

create or replace function claim(node text, n int default 1, timeout interval default null, queues text[] default null,
    start boolean default true)
returns table (lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int, try int,
               max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    w    record;
    rows int := 0;
    at   timestamptz;
begin
    while rows = 0 loop -- again if all jobs that it got have expired or are gone
        w := take_lease(node, n, timeout, queues, start);
        exit when w.jobs is null;
        -- not now(): the scheduler's step may have taken some time, and a job may have expired meanwhile
        at := clock_timestamp();
        if w.leases is null then
            return query
            select w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
                   coalesce(j.max_tries, w.max_tries, 5)::int, j.payload, j.body, j.payload_type, j.created,
                   w.lease_until,
                   coalesce(j.run_timeout, w.run_timeout)
            from queue j
            where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
              and j.seq between w.seqs[1] and w.seqs[cardinality(w.seqs)]
              and w.seqs[width_bucket(j.seq, w.seqs)] = j.seq
              and (j.expires_at > at) is not false
            order by j.seq;
        else
            return query select * from read_leases(w.leases, at);
        end if;
        get diagnostics rows = row_count;
        exit when rows = w.jobs;
        perform drop_missing(coalesce(w.leases, array[w.lease]), at);
    end loop;
end $$;
comment on function claim(text, int, interval, text[], boolean) is 'Leases up to n jobs to a node. timeout: how long '
    'the lease lasts without a heartbeat (NULL: the setting of the job or of the queue, 60 s if neither is set). '
    'start: all jobs count as started, so a crash counts as a try of each; if false, name the started jobs with '
    'extend. The answers (complete, fail, extend, give_back) name lease, version and seq. Call it in a transaction of '
    'its own';

create or replace function drop_missing(leases bigint[], at timestamptz default now()) returns void
language sql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
    with remaining as materialized (
        select w.lease, array(select j.seq from leased_jobs(w.queue, w.priority, w.seqs, w.scattered) j
                              where (j.expires_at > at) is not false order by j.seq) as seqs
        from work_queue w where w.lease = any(leases)
    ), emptied as (
        delete from work_queue w using remaining r where r.lease = w.lease and r.seqs = '{}')
    update work_queue w set seqs = r.seqs from remaining r where r.lease = w.lease and r.seqs <> '{}'
      and r.seqs <> w.seqs
$$;
comment on function drop_missing(bigint[], timestamptz) is 'Takes jobs out of claimed leases that were deleted by hand '
    'or had expired at that time';

create or replace function idle_step(node text) returns boolean
language plpgsql set search_path from current as $$
begin
    return current_setting('transaction_isolation') = 'read committed'
        and not exists (select from node_barred(idle_step.node))
        and (select not still(s.until) from scheduler s order by s.term desc limit 1)
        and (select s.cut + s.stolen > 0 from schedule('claim:' || node) s);
end $$;
comment on function idle_step(text) is 'For a claim that found nothing: if no scheduler lives, makes one step. true = '
    'there is something to claim now';

-- 51_answer
-- The answers of a worker: complete, fail, extend, give_back. Each answer names lease, version and seq. The lease row
-- is deleted, updated or locked under exactly these values and the node's name, so a worker that has lost its lease
-- changes nothing. To read the lease without a lock would not be enough: it could be lost after the read.
-- A worker says when it started a job. Its clock may be wrong, so that time is moved into the interval from the claim
-- to till, the clock's time of the answer. now() would not do as the end: the transaction may have begun before the
-- claim.

create or replace function ms(since timestamptz, till timestamptz) returns int
language sql stable parallel safe as
$$ select greatest(0, least(1000 * (pg_catalog.date_part('epoch', till) - pg_catalog.date_part('epoch', since)),
                            2147483647))::int $$;
comment on function ms(timestamptz, timestamptz) is 'Milliseconds between two times, at most what an int holds; 0 if '
    'the clock was set back between them';

create or replace function leave_leases(node text, leases bigint[], versions int[], seqs bigint[])
returns table (o bigint, seq bigint, queue text, priority smallint, started timestamptz, history "char",
               max_tries smallint, inside boolean)
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with given as materialized (
        select min(o) as o, lease, version, seq
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o)
        group by lease, version, seq
    ), matched as materialized (
        select g.o, g.seq, w.lease, w.queue, w.priority, w.started, w.history, w.max_tries,
               g.seq = any(w.seqs) as inside
        from given g cross join lateral (
            select * from work_queue w where w.lease = g.lease and w.version = g.version
              and w.lock_key = leave_leases.node offset 0) w
    ), rest as materialized ( -- by ctid: whatever the planner estimates, it can't read all leases to find these
        select w.at, array(select s from unnest(w.seqs) s where s <> all(g.seqs) order by s) as seqs
        from (select m.lease, coalesce(array_agg(m.seq) filter (where m.inside), '{}') as seqs from matched m
              group by m.lease) g
        cross join lateral (select w.ctid as at, w.seqs from work_queue w where w.lease = g.lease offset 0) w
    ), leases_gone as (
        delete from work_queue w using rest r where w.ctid = r.at and r.seqs = '{}'
    ), leases_cut as (
        update work_queue w set seqs = r.seqs from rest r where w.ctid = r.at and r.seqs <> '{}'
          and w.seqs <> r.seqs
    )
    select m.o, m.seq, m.queue, m.priority, m.started, m.history, m.max_tries, m.inside from matched m;
end $$;
comment on function leave_leases(text, bigint[], int[], bigint[]) is 'Takes jobs out of leases that the caller has '
    'locked, and deletes leases that become empty. Returns a row for each job whose lease this node holds; o: the '
    'first position of the job in the arrays; inside: the lease held the job';

create or replace function complete_rest(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[])
returns table (seq bigint, outcome text)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    till timestamptz;
begin
    perform from work_queue w where w.lease = any(complete_rest.leases) and w.lock_key = complete_rest.node
    order by w.lease + 0 for update;
    till := clock_timestamp();
    return query
    with matched as materialized (
        select * from leave_leases(complete_rest.node, complete_rest.leases, versions, complete_rest.seqs)
    ), jobs as materialized ( -- one by one, whatever the planner estimates
        select q.id, m.seq, m.o, m.started, m.history
        from matched m cross join lateral (select q.id from queue q where q.queue = m.queue and q.priority = m.priority
                                   and q.state = 'ready' and q.seq = m.seq offset 0) q
        where m.inside
    -- Sorted by seq, so that a job's position is found by binary search; a join would compare each job with each
    ), by_seq as materialized (
        select array_agg(seq order by seq) as seqs, array_agg(o order by seq) as o,
               array_agg(started order by seq) as started, array_agg(history order by seq) as history
        from jobs
    ), done_jobs as (
        delete from queue q using by_seq b
        where q.id = any(array(select id from jobs)) and b.seqs[width_bucket(q.seq, b.seqs)] = q.seq
        returning q.*, b.o[width_bucket(q.seq, b.seqs)] as o, b.history[width_bucket(q.seq, b.seqs)] as history,
            least(till, greatest(complete_rest.started[b.o[width_bucket(q.seq, b.seqs)]],
                                 b.started[width_bucket(q.seq, b.seqs)])) as began
    ), history_rows as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body, payload_type, result, unique_key, concurrency_key, origin_id, last_action,
                             kept, error, lease_timeout, run_timeout)
        select id, created, began, till, 'completed', priority, tries + 1, max_tries, queue, kind, complete_rest.node,
               case when history is null then payload end, case when history is null then body end, payload_type,
               case when history is null then results[o] end, unique_key, concurrency_key, origin_id, last_action,
               history is null, error, lease_timeout, run_timeout
        from done_jobs where history is distinct from 'n'
    ), counted as (
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        select till, queue, priority, -count(*), count(*), sum(ms(began, till)), array_agg(ms(changed, began)),
               array_agg(ms(began, till))
        from done_jobs group by queue, priority
    )
    select v.seq, case when done.o[width_bucket(v.first, done.o)] = v.first then 'done'
                       when held.o[width_bucket(v.first, held.o)] = v.first then 'gone' else 'lost' end
    -- a job that is named twice gets the same outcome twice
    from (select z.seq, z.o, min(z.o) over (partition by z.lease, z.version, z.seq) as first
          from unnest(complete_rest.leases, versions, complete_rest.seqs) with ordinality z (lease, version, seq, o)) v,
         (select array_agg(m.o order by m.o) as o from matched m) held,
         (select array_agg(j.o order by j.o) as o from done_jobs j) done
    order by v.o;
end $$;
comment on function complete_rest(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'complete() for parts of '
    'leases: locks the leases, then takes the completed jobs out of them';

create or replace function complete_single(node text, lease bigint, version int, seqs bigint[], started timestamptz[],
    results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    w     record;
    j     record;
    began timestamptz;
    run   int;
    till  timestamptz;
begin
    update work_queue w set seqs = array_remove(w.seqs, complete_single.seqs[1])
    where w.lease = complete_single.lease and w.version = complete_single.version and w.lock_key = complete_single.node
      and w.seqs @> complete_single.seqs and cardinality(w.seqs) > 1
    returning w.queue, w.priority, w.started, w.history into w;
    if not found then
        delete from work_queue w where w.lease = complete_single.lease and w.version = complete_single.version
          and w.lock_key = complete_single.node and w.seqs = complete_single.seqs
        returning w.queue, w.priority, w.started, w.history into w;
        if not found then
            return array(select r.outcome
                         from complete_rest(node, array[lease], array[version], seqs, started, results) r);
        end if;
    end if;
    delete from queue q
    where q.queue = w.queue and q.priority = w.priority and q.state = 'ready' and q.seq = complete_single.seqs[1]
    returning q.id, q.created, q.changed, q.tries, q.max_tries, q.kind, q.payload, q.body, q.payload_type, q.unique_key,
        q.concurrency_key, q.origin_id, q.last_action, q.error, q.lease_timeout, q.run_timeout into j;
    if not found then
        return array['gone'];
    end if;
    till := clock_timestamp();
    began := least(till, case when started is null then w.started else greatest(started[1], w.started) end);
    run := ms(began, till);
    if w.history is distinct from 'n' then
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body,
                             payload_type, result, unique_key, concurrency_key, origin_id, last_action, kept, error,
                             lease_timeout, run_timeout)
        values (j.id, j.created, began, till, 'completed', w.priority, j.tries + 1, j.max_tries, w.queue, j.kind, node,
                case when w.history is null then j.payload end, case when w.history is null then j.body end,
                j.payload_type,
                case when w.history is null then results[1] end, j.unique_key, j.concurrency_key, j.origin_id,
                j.last_action, w.history is null,
                j.error, j.lease_timeout, j.run_timeout);
    end if;
    insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
    values (till, w.queue, w.priority, -1, 1, run, array[ms(j.changed, began)], array[run]);
    return null;
end $$;
comment on function complete_single(text, bigint, int, bigint[], timestamptz[], bytea[]) is 'complete_jobs() for one '
    'job, in plain statements: to start one statement with several steps and many columns would cost more than all the '
    'rest';

create or replace function leave_lease(node text, lease bigint, version int, said bigint[], out queue text,
    out priority smallint, out seqs bigint[], out started timestamptz, out history "char", out same boolean,
    out till timestamptz)
language plpgsql as $$
#variable_conflict use_column
begin
    delete from work_queue w
    -- = is tried first, because <@ compares each job with each
    where w.lease = leave_lease.lease and w.version = leave_lease.version and w.lock_key = leave_lease.node
      and (w.seqs = said or w.seqs <@ said) and w.scattered is null
    returning w.queue, w.priority, w.seqs, w.started, w.history into queue, priority, seqs, started, history;
    if not found then
        update work_queue w set seqs = array(select s from unnest(w.seqs) s where s <> all(said))
        where w.lease = leave_lease.lease and w.version = leave_lease.version and w.lock_key = leave_lease.node
          and said <@ w.seqs and not w.seqs <@ said and w.scattered is null
        returning w.queue, w.priority, (select array_agg(s order by s) from unnest(said) s), w.started, w.history
        into queue, priority, seqs, started, history;
    end if;
    same := seqs = said;
    till := clock_timestamp();
    started := least(till, started);
end $$;
comment on function leave_lease(text, bigint, int, bigint[]) is 'Takes the named jobs (said) out of one lease. seqs: '
    'the jobs, sorted; same: they were named in this order, so a job''s position is found by binary search; till: the '
    'time of the answer. queue is NULL if this node does not hold all of them in this lease, or if the lease is '
    'scattered';

create or replace function complete_one(node text, lease bigint, version int, seqs bigint[], started timestamptz[],
    results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    w    record;
    done bigint[];
    run  bigint;
    runs int[];
    wait int[];
begin
    w := leave_lease(node, lease, version, seqs);
    if w.queue is null then
        return array(select r.outcome from complete_rest(node, array_fill(lease, array[cardinality(seqs)]),
                                                         array_fill(version, array[cardinality(seqs)]), seqs,
                                                         started, results) r);
    end if;
    with done_job as (
        delete from queue q
        where q.queue = w.queue and q.priority = w.priority and q.state = 'ready'
          and q.seq between w.seqs[1] and w.seqs[cardinality(w.seqs)] and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq
        returning q.id, q.created, q.changed, q.seq, q.tries, q.max_tries, q.kind, q.payload, q.body, q.payload_type,
            q.unique_key, q.concurrency_key, q.origin_id, q.last_action, q.error, q.lease_timeout, q.run_timeout,
            case when complete_one.started is null then w.started else
                least(w.till, greatest(complete_one.started[case when w.same then width_bucket(q.seq, complete_one.seqs)
                                                                 else array_position(complete_one.seqs, q.seq) end],
                                       w.started)) end as began
    ), history_row as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body, payload_type, result, unique_key, concurrency_key, origin_id, last_action,
                             kept, error, lease_timeout, run_timeout)
        select id, created, began, w.till, 'completed', w.priority, tries + 1, max_tries, w.queue, kind,
               complete_one.node, case when w.history is null then payload end,
               case when w.history is null then body end, payload_type,
               case when w.history is null and results is not null
                    then results[case when w.same then width_bucket(seq, complete_one.seqs)
                                      else array_position(complete_one.seqs, seq) end] end,
               unique_key, concurrency_key, origin_id, last_action, w.history is null, error, lease_timeout, run_timeout
        from done_job where w.history is distinct from 'n'
    )
    select array_agg(seq), array_agg(ms(changed, began)),
           array_agg(ms(began, w.till)) filter (where complete_one.started is not null),
           sum(ms(began, w.till)) filter (where complete_one.started is not null)
    into done, wait, runs, run from done_job;
    if done is not null then
        if started is null then
            run := ms(w.started, w.till);
            runs := array_fill(run::int, array[cardinality(done)]);
            run := run * cardinality(done);
        end if;
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        values (w.till, w.queue, w.priority, -cardinality(done), cardinality(done), run, wait, runs);
        if cardinality(done) = cardinality(seqs) then
            return null;
        end if;
    end if;
    return array(select case when s = any(done) then 'done' when s = any(w.seqs) then 'gone' else 'lost' end
                 from unnest(seqs) s);
end $$;
comment on function complete_one(text, bigint, int, bigint[], timestamptz[], bytea[]) is 'complete_jobs() for jobs '
    'that are all in one lease';

create or replace function check_result(size bigint) returns void
language plpgsql stable set search_path from current as $$
begin
    if size > setting_int('result_limit') then
        raise 'result of % bytes is more than the limit of %', size, setting_int('result_limit')
            using errcode = 'QT004', hint = 'table setting, result_limit';
    end if;
end $$;
comment on function check_result(bigint) is 'Raises QT004 if a result is larger than the setting result_limit';

create or replace function leave_whole(node text, leases bigint[], versions int[], jobs bigint[],
    begun timestamptz[], answers bytea[])
returns table (lease bigint, version int, queue text, priority smallint, seqs bigint[], scattered boolean,
               started timestamptz, history "char", same boolean, said bigint[], began timestamptz[], results bytea[])
language plpgsql as $$
#variable_conflict use_column
begin
    return query
    with given as materialized (
        select lease, version, array_agg(seq) as seqs, array_agg(began) as began, array_agg(result) as results
        from unnest(leases, versions, jobs, begun, answers) v (lease, version, seq, began, result) group by 1, 2
    ), found as materialized ( -- by ctid: whatever the planner estimates, it can't read all leases to find these
        select g.*, w.at from given g cross join lateral (
            select w.ctid as at from work_queue w where w.lease = g.lease offset 0) w
    )
    delete from work_queue w using found g
    where w.ctid = g.at and w.version = g.version and w.lock_key = leave_whole.node
      and (w.seqs = g.seqs or w.seqs <@ g.seqs)
    returning w.lease, w.version, w.queue, w.priority, w.seqs, w.scattered, w.started, w.history, w.seqs = g.seqs,
        g.seqs, g.began, g.results;
end $$;
comment on function leave_whole(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'Deletes those of these '
    'leases whose jobs are all named; the caller has locked the leases. same: the jobs are named in order, so a job''s '
    'position is found by binary search';

create or replace function complete_whole(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[], out held bigint[], out done bigint[], out moved bigint[])
language plpgsql as $$
#variable_conflict use_column
declare
    till timestamptz;
begin
    perform from work_queue w where w.lease = any(complete_whole.leases) and w.lock_key = complete_whole.node
    order by w.lease + 0 for update;
    till := clock_timestamp();
    with whole_leases as materialized (
        select * from leave_whole(complete_whole.node, complete_whole.leases, versions, complete_whole.seqs,
                                  complete_whole.started, complete_whole.results)
    ), extra as materialized (
        select q.ctid as at, q.seq, w.lease, w.history,
               least(till, case when complete_whole.started is null then w.started
                                else greatest(w.began[case when w.same then width_bucket(q.seq, w.said)
                                                           else array_position(w.said, q.seq) end],
                                                           w.started) end) as began,
               case when w.history is null and complete_whole.results is not null
                    then w.results[case when w.same then width_bucket(q.seq, w.said)
                                        else array_position(w.said, q.seq) end] end as result
        from whole_leases w cross join lateral ranges(w.seqs, w.scattered) r
        cross join lateral (select q.ctid, q.seq from queue q where q.queue = w.queue and q.priority = w.priority
            and q.state = 'ready' and q.seq between r.low and r.high and w.seqs[width_bucket(q.seq, w.seqs)] = q.seq
            offset 0) q
    ), done_jobs as ( -- a job that somebody has changed since this statement began stays: it has moved
        delete from queue q using extra x where q.ctid = x.at and q.seq = x.seq and q.state::text = 'ready'
        returning q.id, q.created, q.changed, q.seq, q.queue, q.priority, q.tries, q.max_tries, q.kind, q.payload,
            q.body, q.payload_type, q.unique_key, q.concurrency_key, q.origin_id, q.last_action, q.error,
            q.lease_timeout, q.run_timeout, x.history, x.began, x.result
    ), history_rows as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body, payload_type, result, unique_key, concurrency_key, origin_id, last_action,
                             kept, error, lease_timeout, run_timeout)
        select id, created, began, till, 'completed', priority, tries + 1, max_tries, queue, kind, complete_whole.node,
               case when history is null then payload end, case when history is null then body end, payload_type,
               result, unique_key, concurrency_key, origin_id, last_action, history is null, error, lease_timeout,
               run_timeout
        from done_jobs where history is distinct from 'n'
    ), counted as (
        insert into delta (at, queue, priority, ready, completed, run_ms, waits, runs)
        select till, queue, priority, -count(*), count(*), sum(ms(began, till)), array_agg(ms(changed, began)),
               array_agg(ms(began, till))
        from done_jobs group by queue, priority
    ), missing as materialized ( -- jobs that were not deleted get their lease back
        select x.lease, array_agg(x.seq order by x.seq) as seqs from extra x
        where (select count(*) from extra) > (select count(*) from done_jobs)
          and x.seq <> all(array(select seq from done_jobs)) group by x.lease
    ), back as (
        insert into work_queue (lease, version, lock_key, lock_timeout, started, queue, priority, seqs, history)
        select m.lease, w.version + 1, complete_whole.node, now(), w.started, w.queue, w.priority, m.seqs, w.history
        from missing m join whole_leases w on w.lease = m.lease
    )
    select (select array_agg(seq) from done_jobs), (select array_agg(s) from whole_leases w, unnest(w.seqs) s),
           (select array_agg(s) from missing m, unnest(m.seqs) s)
    into done, held, moved;
end $$;
comment on function complete_whole(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'complete_one() for '
    'several whole leases in one statement. moved: jobs that somebody changed meanwhile; this node holds their lease '
    'again, with the next version';

create or replace function complete_moved(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[], moved bigint[])
returns bigint[]
language sql as $$
    select array(
        select r.seq
        from (select array_agg(lease) as leases, array_agg(version + 1) as versions, array_agg(seq) as seqs,
                     array_agg(began) as started, array_agg(result) as results
              from unnest(complete_moved.leases, complete_moved.versions, complete_moved.seqs, complete_moved.started,
                          complete_moved.results) v (lease, version, seq, began, result)
              where seq = any(moved)) v,
             complete_rest(complete_moved.node, v.leases, v.versions, v.seqs, v.started, v.results) r
        where r.outcome = 'done')
$$;
comment on function complete_moved(text, bigint[], int[], bigint[], timestamptz[], bytea[], bigint[]) is 'Completes '
    'the jobs that had moved while complete_whole() ran, and returns those that are completed now';

create or replace function complete_jobs(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[], results bytea[])
returns text[]
language plpgsql as $$
#variable_conflict use_column
declare
    c record;
    k text[];
begin
    if current_setting('queuetop.day', true) is distinct from floor(date_part('epoch', now()) / 86400)::int::text
        || current_schema() then
        perform have_day();
    end if;
    if results is not null then -- an IF of its own: a condition with a query in it would run the query each time
        perform check_result(size) from (select max(octet_length(r)) as size from unnest(results) r) x
        where size > 1000;
    end if;
    if cardinality(seqs) = 1 then
        return complete_single(node, leases[1], versions[1], seqs, started, results);
    end if;
    if leases[1] = all(leases) and versions[1] = all(versions) then
        return complete_one(node, leases[1], versions[1], seqs, started, results);
    end if;
    c := complete_whole(node, leases, versions, seqs, started, results);
    if c.moved is not null then
        c.done := c.done || complete_moved(node, leases, versions, seqs, started, results, c.moved);
    end if;
    if cardinality(c.done) = cardinality(seqs) then
        return null;
    elsif c.held is null then
        return array(select r.outcome from complete_rest(node, leases, versions, seqs, started, results) r);
    end if;
    with given as materialized (
        select v.*, row_number() over (partition by z.ours order by o) as k, z.ours
        from unnest(leases, versions, seqs) with ordinality v (lease, version, seq, o),
            lateral (select coalesce(v.seq = any(c.held), false) as ours) z
    ), rest as (
        select r.* from (select array_agg(lease order by o) as l, array_agg(version order by o) as n,
                                array_agg(seq order by o) as s,
                                array_agg(complete_jobs.started[o] order by o) as b, array_agg(results[o] order by o)
                                as t
                         from given where not ours) x,
             complete_rest(complete_jobs.node, x.l, x.n, x.s, x.b, x.t) with ordinality r (seq, outcome, k))
    select array_agg(case when not v.ours then rest.outcome when v.seq = any(c.done) then 'done' else 'gone' end
                     order by v.o)
    from given v left join rest on not v.ours and rest.k = v.k into k;
    return k;
end $$;
comment on function complete_jobs(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'The work of complete() '
    'and complete_and_claim(). Returns the outcomes in order; NULL = all jobs are completed';

create or replace function complete(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[] default null, results bytea[] default null)
returns table (seq bigint, outcome text)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    said text[] := complete_jobs(node, leases, versions, seqs, started, results);
begin
    return query select s, coalesce(said[o], 'done') from unnest(seqs) with ordinality v (s, o);
end $$;
comment on function complete(text, bigint[], int[], bigint[], timestamptz[], bytea[]) is 'Completes jobs. Outcomes: '
    'done = completed and recorded; lost = another node has the lease by now, nothing was changed; gone = the job no '
    'longer exists (cancelled, deleted, or completed before). Arrays in parallel';

create or replace function complete_and_claim(node text, leases bigint[], versions int[], seqs bigint[],
    started timestamptz[],
    results bytea[], n int, timeout interval default null, queues text[] default null, start boolean default true)
returns table (outcome text, lease bigint, version int, seq bigint, id uuid, queue text, kind text, priority int,
               try int, max_tries int,
    payload json, body bytea, payload_type text, created timestamptz, lease_until timestamptz, run_timeout interval)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    said text[];
    w    record;
    rows int := 0;
    at   timestamptz;
begin
    if seqs <> '{}' then
        said := complete_jobs(node, leases, versions, seqs, started, results);
        if said is not null then
            for outcome, lease, version, seq in
                select said[o], l, v, s from unnest(leases, versions, seqs) with ordinality g (l, v, s, o)
                where said[o] <> 'done' order by o loop
                return next;
            end loop;
        end if;
    end if;
    while rows = 0 loop -- from here on the same as claim()
        w := take_lease(node, n, timeout, queues, start);
        exit when w.jobs is null;
        at := clock_timestamp();
        if w.leases is null then
            return query
            select null, w.lease, w.version, j.seq, j.id, j.queue, j.kind, j.priority::int, j.tries + 1,
                   coalesce(j.max_tries, w.max_tries, 5)::int, j.payload, j.body, j.payload_type, j.created,
                   w.lease_until,
                   coalesce(j.run_timeout, w.run_timeout)
            from queue j
            where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
              and j.seq between w.seqs[1] and w.seqs[cardinality(w.seqs)]
              and w.seqs[width_bucket(j.seq, w.seqs)] = j.seq
              and (j.expires_at > at) is not false
            order by j.seq;
        else
            return query select null, r.* from read_leases(w.leases, at) r;
        end if;
        get diagnostics rows = row_count;
        exit when rows = w.jobs;
        perform drop_missing(coalesce(w.leases, array[w.lease]), at);
    end loop;
end $$;
comment on function complete_and_claim(text, bigint[], int[], bigint[], timestamptz[], bytea[], int, interval, text[],
    boolean) is
    'complete() and then claim() in one transaction: one round trip and one flush for the answer and the next jobs. '
    'Rows with an outcome name given jobs that were NOT completed (lost, gone); all others are claimed jobs';

do $$
begin
    if to_regtype('ended_try') is null then
        create type ended_try as (o bigint, id uuid, queue text collate "C", priority smallint, tries int, seq bigint,
                                  history "char", began timestamptz, error text, outcome text, becomes text,
                                  due timestamptz);
    end if;
end $$;
comment on type ended_try is 'A try that fail() ends. o: its position in the arrays of the answer; tries: those of the '
    'job, with this one; outcome: as the worker named it; becomes: the next state of the job; due: when it is tried '
    'again';

create or replace function back_off(tries int, base interval, most interval) returns interval
language sql as $$
    -- computed in seconds, because an interval would overflow
    select make_interval(secs => (0.8 + 0.4 * random()) *
        least(extract(epoch from coalesce(most, interval '1 h'))::float8,
              extract(epoch from coalesce(base, interval '5 s'))::float8 * power(2, least(tries, 40))))
$$;
comment on function back_off(int, interval, interval) is 'How long a job waits that has failed, give or take a fifth. '
    'tries: how often it had failed before. No SET, so that it is inlined';

create or replace function end_tries(node text, till timestamptz, given ended_try[], traces text[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
    trace_limit int;
begin
    if traces is not null then -- most answers have none: they save a look-up
        trace_limit := setting_int('trace_limit');
    end if;
    with ended_tries as materialized (
        select * from unnest(given)
    -- Sorted by id, so that a job's position is found by binary search; a join would compare each job with each
    ), by_id as materialized (
        select array_agg(id order by id) as ids, array_agg(becomes order by id) as becomes,
               array_agg(tries order by id) as tries, array_agg(error order by id) as errors,
               array_agg(due order by id) as due, array_agg(began order by id) as began,
               array_agg(history order by id) as history, array_agg(new_seq order by id) as seqs
        -- the new numbers keep the order of the old ones
        from (select z.*, nextval('job_seq') as new_seq from (select * from ended_tries order by seq) z) z
    ), kept_jobs as (
        update queue q
        set seq = b.seqs[width_bucket(q.id, b.ids)], state = b.becomes[width_bucket(q.id, b.ids)]::job_state,
            changed = till, tries = b.tries[width_bucket(q.id, b.ids)], error = b.errors[width_bucket(q.id, b.ids)],
            error_key = error_key(b.errors[width_bucket(q.id, b.ids)]),
            run_after = case when b.becomes[width_bucket(q.id, b.ids)] = 'retry'
                             then b.due[width_bucket(q.id, b.ids)] end
        from by_id b where q.id = any(array(select id from ended_tries where becomes <> 'cancelled'))
        returning q.queue, q.state, q.error_key
    ), cancelled_jobs as (
        delete from queue q using by_id b
        where q.id = any(array(select id from ended_tries where becomes = 'cancelled'))
        returning q.*, b.began[width_bucket(q.id, b.ids)] as began, b.history[width_bucket(q.id, b.ids)] as history,
            b.tries[width_bucket(q.id, b.ids)] as now_tries, b.errors[width_bucket(q.id, b.ids)] as last_error
    ), history_rows as (
        insert into history (id, created, started, finished, state, priority, tries, max_tries, queue, kind, node,
                             payload, body, payload_type, error, unique_key, concurrency_key, origin_id, last_action,
                             kept, lease_timeout, run_timeout)
        select id, created, began, till, 'cancelled', priority, now_tries, max_tries, queue, kind, end_tries.node,
               case when history is null then payload end, case when history is null then body end, payload_type,
               last_error, unique_key, concurrency_key, origin_id, last_action, history is null, lease_timeout,
               run_timeout
        from cancelled_jobs where history is distinct from 'n'
    ), attempt_rows as (
        insert into attempt (job, number, seq, queue, node, started, ended, outcome, error, trace)
        select id, tries, seq, queue, end_tries.node, began, till,
               case when becomes = 'cancelled' then 'cancelled' else outcome end, error, left(traces[o], trace_limit)
        from ended_tries
    )
    insert into delta (at, queue, priority, error_key, ready, retry, failed, fails, retried, cancelled, min_after)
    select till, queue, priority, null, -count(*), count(*) filter (where becomes = 'retry'),
           count(*) filter (where becomes = 'failed'), count(*) filter (where becomes = 'failed'),
           count(*) filter (where becomes = 'retry'), count(*) filter (where becomes = 'cancelled'),
           min(due) filter (where becomes = 'retry')
    from ended_tries group by queue, priority
    union all
    select till, queue, 0, error_key, 0, 0, count(*), 0, 0, 0, null from kept_jobs where state = 'failed'
    group by queue, error_key;
end $$;
comment on function end_tries(text, timestamptz, ended_try[], text[]) is 'Writes what fail() has decided: the jobs, or '
    'history if they are cancelled, the attempts and the counters';

create or replace function fail(node text, leases bigint[], versions int[], seqs bigint[], errors text[],
    traces text[] default null, started timestamptz[] default null, retry_in interval[] default null,
    final boolean[] default null, outcomes text[] default null)
returns table (seq bigint, outcome text, run_after timestamptz)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    error_limit int := setting_int('error_limit');
    till        timestamptz;
    held        bigint[]; -- positions of the jobs whose leases this node holds, sorted
    ended       bigint[]; -- positions of the tries, sorted
    tries       ended_try[];
begin
    if interval '365 days' < any(retry_in) then
        raise 'a retry comes within 365 days, not in %', (select max(r) from unnest(retry_in) r)
            using errcode = 'QT007';
    end if;
    if current_setting('queuetop.day', true) is distinct from floor(date_part('epoch', now()) / 86400)::int::text
        || current_schema() then
        perform have_day();
    end if;
    perform from work_queue w where w.lease = any(fail.leases) and w.lock_key = fail.node
    order by w.lease + 0 for update;
    till := clock_timestamp();
    with matched as materialized (
        select * from leave_leases(fail.node, fail.leases, versions, fail.seqs)
    )
    select (select array_agg(m.o order by m.o) from matched m), array_agg(m.o order by m.o), array_agg((
        m.o, q.id, q.queue, q.priority, q.tries + 1, m.seq, m.history,
        least(till, greatest(fail.started[m.o], m.started)), left(coalesce(fail.errors[m.o], ''), error_limit),
        case when outcomes[m.o] in ('timeout', 'lost', 'cancelled') then outcomes[m.o] else 'failed' end,
        case when q.cancel_asked is not null or coalesce(outcomes[m.o], 'failed') = 'cancelled' then 'cancelled'
             when coalesce(final[m.o], false) or q.tries + 1 >= coalesce(q.max_tries, m.max_tries, 5) then 'failed'
             else 'retry' end,
        till + coalesce(retry_in[m.o], back_off(q.tries, c.backoff_base, c.backoff_max)))::ended_try order by m.o)
    into held, ended, tries
    from matched m cross join lateral (select q.* from queue q where q.queue = m.queue and q.priority = m.priority
        and q.state = 'ready' and q.seq = m.seq offset 0) q -- one by one, whatever the planner estimates
    left join queue_config c on c.queue = m.queue
    where m.inside;
    if tries is not null then
        perform end_tries(fail.node, till, tries, traces);
    end if;
    return query
    select v.seq, case when ended[v.at] = v.first then (tries[v.at]).becomes
                       when held[width_bucket(v.first, held)] = v.first then 'gone' else 'lost' end,
           case when ended[v.at] = v.first and (tries[v.at]).becomes = 'retry' then (tries[v.at]).due end
    from (select z.seq, z.o, z.first, width_bucket(z.first, ended) as at
          from (select y.seq, y.o, min(y.o) over (partition by y.lease, y.version, y.seq) as first
                from unnest(fail.leases, versions, fail.seqs) with ordinality y (lease, version, seq, o)) z) v
    order by v.o;
end $$;
comment on function fail(text, bigint[], int[], bigint[], text[], text[], timestamptz[], interval[], boolean[], text[])
    is
    'Records that jobs failed. Outcomes: retry (after the queue''s back-off, or retry_in), failed (no tries left, or '
    'final), cancelled (an operator had asked for it), lost, gone. outcomes: failed, timeout or cancelled, as the '
    'attempt''s row shall say';

create or replace function extend(node text, leases bigint[], versions int[], by interval,
    started_seqs bigint[] default null)
returns table (lease bigint, outcome text, lease_until timestamptz, cancel bigint[])
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
    if by > interval '365 days' then
        raise 'a lease is extended by 365 days at most, not by %', by using errcode = 'QT007';
    end if;
    return query
    with given as materialized (
        select distinct lease, version from unnest(leases, versions) v (lease, version)
    ), locked_leases as materialized (
        select w.lease from (select * from given order by lease) g cross join lateral (
            select w.lease from work_queue w where w.lease = g.lease and w.version = g.version
              and w.lock_key = extend.node for update) w
    ), extended as (
        update work_queue w
        set lock_timeout = greatest(w.lock_timeout, now() + extend.by),
            started_seqs = case when extend.started_seqs is null or w.all_started then w.started_seqs else
                array(select s from unnest(w.seqs) s where s = any(extend.started_seqs)
                        or s = any(coalesce(w.started_seqs, '{}'))) end
        from locked_leases l where w.lease = l.lease
        returning w.lease, w.version, w.lock_timeout, w.queue, w.priority, w.seqs, w.scattered)
    select v.lease, case when u.lease is null then 'lost' else 'extended' end, u.lock_timeout,
           array(select q.seq from leased_jobs(u.queue, u.priority, u.seqs, u.scattered) q
                 where q.cancel_asked is not null)
    from unnest(leases, versions) with ordinality v (lease, version, o) left join extended u on u.lease = v.lease
        and u.version = v.version order by v.o;
end $$;
comment on function extend(text, bigint[], int[], interval, bigint[]) is 'Extends leases until now + by, never to an '
    'earlier time than before. started_seqs: jobs that have been started. Returns in cancel the jobs of the lease that '
    'an operator wants ended';

create or replace function give_back(node text, leases bigint[], versions int[], seqs bigint[])
returns table (seq bigint, outcome text)
language plpgsql security definer set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set enable_indexscan = on set enable_indexonlyscan = on
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    mine bigint[];
    back bigint[];
begin
    select coalesce(array_agg(lease), '{}') into mine from (
        select w.lease
        from (select distinct v.lease, v.version from unnest(give_back.leases, versions) v (lease, version)
              order by v.lease, v.version) g
        cross join lateral (select w.lease from work_queue w where w.lease = g.lease and w.version = g.version
                            and w.lock_key = give_back.node for update) w) z;
    perform scheduler_lock(true);
    select coalesce(array_agg(t.seq), '{}') into back from take_back(mine, false, false, null, coalesce(seqs, '{}')) t;
    return query
    select v.seq, case when v.seq = any(back) then 'given back' when v.lease = any(mine) then 'gone' else 'lost' end
    from unnest(leases, seqs) with ordinality v (lease, seq, o) order by v.o;
end $$;
comment on function give_back(text, bigint[], int[], bigint[]) is 'Gives back jobs that this node will not work on: '
    'they become ready again, and no try is counted';

create or replace function complete(node text, lease bigint, version int, seq bigint, result text default null)
    returns text
language sql security definer set search_path from current as $$
    select outcome from complete(node, array[lease], array[version], array[seq], null::timestamptz[],
                                 array[convert_to(result, 'UTF8')])
$$;
comment on function complete(text, bigint, int, bigint, text) is 'complete() for one job, by hand';

create or replace function fail(node text, lease bigint, version int, seq bigint, error text) returns text
language sql security definer set search_path from current as $$
    select outcome from fail(node, array[lease], array[version], array[seq], array[error])
$$;
comment on function fail(text, bigint, int, bigint, text) is 'fail() for one job, by hand';

create or replace function extend(node text, lease bigint, version int, by interval) returns timestamptz
language plpgsql security definer set search_path from current as $$
declare
    r record;
begin
    select * into r from extend(node, array[lease], array[version], by);
    if r.outcome = 'lost' then
        raise 'lease lost' using errcode = 'QT001', detail = format('lease %s, version %s is not held by %s', lease,
                version, node);
    end if;
    return r.lease_until;
end $$;
comment on function extend(text, bigint, int, interval) is 'extend() for one lease, by hand; raises QT001 if the lease '
    'is lost';

-- 60_nodes
-- Worker processes: node_start, node_beat, node_stop. Registration is optional: a claim needs the name of a node, but
-- no row here.

create or replace function node_limits(node text, host text, version text, queues text[]) returns void
language plpgsql immutable set search_path from current as $$
begin
    if (length(node) between 1 and 200) is not true then
        raise 'the name of a node has 1 to 200 characters, not %', coalesce(length(node), 0) using errcode = 'QT007';
    elsif length(host) > 255 or length(version) > 100 then
        raise 'the host of a node has 255 characters at most, its version 100; these have % and %', length(host),
            length(version)
            using errcode = 'QT007';
    elsif cardinality(queues) > 1000 then
        raise 'a node names 1000 queues at most, not %', cardinality(queues)
            using errcode = 'QT007', hint = 'A node that names none works them all.';
    elsif exists (select from unnest(queues) q where (length(q) between 1 and 200) is not true) then
        raise 'the name of a queue has 1 to 200 characters' using errcode = 'QT007';
    end if;
end $$;
comment on function node_limits(text, text, text, text[]) is 'Raises QT007 if a value that a node gives about itself '
    'is too long or missing';

create or replace function node_start(node text, session uuid, host text, pid int, version text, protocol int,
    queues text[], slots int)
returns void
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    m meta;
    o node;
begin
    select * into m from meta;
    if protocol < m.min_protocol then
        raise 'this worker speaks protocol %, the queue needs % at least: install a newer queuetop on the worker',
            protocol, m.min_protocol
            using errcode = 'QT003';
    elsif slots not between 1 and 1000 then
        raise 'a worker process has 1 to 1000 slots, not %', slots
            using errcode = 'QT007', hint = 'Slots are the jobs that it works at a time. More than 1000 need more '
                                            'processes.';
    end if;
    perform node_limits(node_start.node, host, version, queues);
    if session is null then
        raise 'a node needs a uuid of its session' using errcode = 'QT007';
    end if;
    insert into node as n (lock_key, session, host, pid, version, protocol, queues, slots, backend_pid)
    values (node_start.node, session, host, pid, version, protocol, queues, slots, pg_backend_pid())
    on conflict (lock_key) do update set session = node_start.session, host = node_start.host, pid = node_start.pid,
    version = node_start.version, protocol = node_start.protocol, queues = node_start.queues, slots = node_start.slots,
        started = case when n.session = node_start.session then n.started else now() end, heartbeat = now(),
        state = case when n.session = node_start.session then n.state else 'up' end, backend_pid = pg_backend_pid()
    where n.session = node_start.session or n.heartbeat <= now() - setting_interval('node_dead')
       or n.heartbeat > now() + interval '1 s' and (n.backend_pid = pg_backend_pid() or not sleeps(n.backend_pid));
    if not found then
        select * into o from node n where n.lock_key = node_start.node;
        raise 'node name "%" is in use by a live process (% on %, last heartbeat % ago)', node_start.node, o.pid,
            o.host, greatest(interval '0', now() - o.heartbeat)
            using errcode = 'QT002';
    end if;
end $$;
comment on function node_start(text, uuid, text, int, text, int, text[], int) is 'Registers a worker process. The same '
    'session may call it again after a reconnect. QT002: a live process of another session has the name. QT003: the '
    'worker''s protocol is too old. QT007: slots is not 1 to 1000, or a text is too long';

create or replace function node_beat(node text, session uuid, out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
begin
    update node n set heartbeat = now(), backend_pid = pg_backend_pid() where n.lock_key = node_beat.node
      and n.session = node_beat.session
    returning n.state into node_beat.state;
    state := coalesce(state, 'gone');
end $$;
comment on function node_beat(text, uuid) is 'The heartbeat of a worker process. Returns up; draining: take no more '
    'jobs; gone: it is not registered, call node_start';

create or replace function node_stop(node text, session uuid) returns void
language plpgsql security definer set search_path from current as $$
begin
    delete from node n where n.lock_key = node_stop.node and n.session = node_stop.session;
    perform leave_slots();
end $$;
comment on function node_stop(text, uuid) is 'Ends the registration of a worker process. The process must have '
    'answered for all its jobs';

-- 61_sleep
-- Sleeping: a worker or scheduler with `--sleep T` sends no statement until something is due, or until it is notified.
-- Other workers look once a second, and a push notifies one of them (48_wake). A sleeper does not look, so there are
-- three more rules for it:
--   a push            notifies the waiter in slot 0, who wakes the next one when it leaves the slot. Sleepers listen to
--                     the channel of slot 0, too: so they wake even if the host of that waiter is gone
--   a step, an act    whatever makes leases, and every act of an operator, calls tell_sleepers() before it commits
--   the time          a sleeper knows the earliest time at which a job, a schedule or an expiry is due
-- Nobody sleeps while there is a lease: somebody has to see it expire.
-- No notification is lost. A session that wants to sleep first takes the sleepers' lock in shared mode, and then looks
-- for work. tell_sleepers() tries the lock in exclusive mode, and keeps it until its transaction ends. So either the
-- change is committed before the sleeper's look, which sees it, or tell_sleepers() finds the lock taken and notifies.

create or replace function sleep_channel() returns text
language sql stable set search_path from current as $$ select 'queuetop_' || 'queue'::regclass::oid || '_sleep' $$;
comment on function sleep_channel() is 'The channel that all sleepers listen to';

create or replace function tell_sleepers() returns void
language plpgsql set search_path from current as $$
begin
    if not pg_try_advisory_xact_lock(slot_class() + 17, 'queue'::regclass::oid::int) then
        perform pg_notify(sleep_channel(), '');
    end if;
end $$;
comment on function tell_sleepers() is 'Wakes all sleepers at the commit of this transaction. Until then no session '
    'can fall asleep';

create or replace function leave_slots() returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_unlock(l.classid::int, l.objid::int) from pg_locks l
    where l.pid = pg_backend_pid() and l.locktype = 'advisory' and l.objsubid = 2 and l.mode = 'ExclusiveLock'
      and l.granted and l.classid::bigint between slot_class() and slot_class() + 16
      and l.objid = 'queue'::regclass::oid
      and l.database = (select d.oid from pg_database d where d.datname = current_database());
    perform tell_sleepers();
end $$;
comment on function leave_slots() is 'Called by a session that ends: leaves its wait slots and wakes the sleepers, so '
    'that one of them takes its place. The end of the session alone would notify nobody';

create or replace function sleeps(pid int) returns boolean
language sql stable set search_path from current as $$
    select exists (select from pg_locks l
                   where l.pid = sleeps.pid and l.locktype = 'advisory' and l.objsubid = 2 and l.mode = 'ShareLock'
                     and l.granted and l.classid::bigint = slot_class() + 17 and l.objid = 'queue'::regclass::oid
                     and l.database = (select d.oid from pg_database d where d.datname = current_database()))
$$;
comment on function sleeps(int) is 'Whether the session with this pid is a sleeper: it holds the sleepers'' lock. The '
    'pid alone does not prove that: after a restart of the server another session may have it';

create or replace function sleep_due(most interval) returns timestamptz
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_sort = off set enable_indexscan = on set enable_indexonlyscan = on set jit = off
    set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    t   tick;
    due timestamptz;
begin
    select * into t from tick order by tick desc limit 1;
    if t.more is not false or t.joining or t.settled is not null or is_new() or moved()
       or exists (select from live)
       or exists (select from queue q where q.state = 'blocked' and q.concurrency_key is not null)
       or (select b.ready from backlog() b) > 0 then
        return null;
    end if;
    due := least(clock_timestamp() + most, t.limited_at, (select min(s.next_run) from schedule s),
                 (select q.run_after from queue q
                  where q.state in ('scheduled', 'retry')
                    and (q.run_after, q.seq) > (coalesce(t.after, '-infinity'), coalesce(t.after_seq, 0))
                  order by q.run_after, q.seq limit 1),
                 (select q.expires_at from queue q where q.expires_at is not null and q.state <> 'failed'
                  order by q.expires_at, q.seq limit 1));
    return case when due > clock_timestamp() + interval '1 s' then due end;
end $$;
comment on function sleep_due(interval) is 'Until when there is nothing to do if nobody pushes, claims or acts, at '
    'most this long from now; NULL: there is something to do within a second. Call it under the scheduler''s lock';

create or replace function fall_asleep(most interval, slot int, backend_pid int, listening boolean, out state text,
    out due timestamptz)
language plpgsql set search_path from current as $$
#variable_conflict use_column
begin
    state := 'busy';
    if (most between interval '1 s' and interval '1 day') is not true then
        raise 'a sleep takes 1 s to 1 day, not %', most using errcode = 'QT007';
    elsif backend_pid is distinct from pg_backend_pid() then
        state := 'pooler';
    elsif slot = -1 then
        return; -- a push is in progress
    elsif slot < 0 then
        state := 'no place';
    elsif not listening then
        execute format('listen %I', slot_channel(0));
        execute format('listen %I', sleep_channel());
        state := 'listens'; -- the session listens only from the end of this transaction on
    elsif slot > 0 and not slot_waits(0) then
        return; -- a push is in progress, or nobody waits for one
    elsif pg_try_advisory_lock_shared(slot_class() + 17, 'queue'::regclass::oid::int) then
        if scheduler_lock(false) then
            due := sleep_due(most);
        end if;
        if due is null then
            perform stay_awake();
        else -- keepalives end the session of a host that is gone: it must not count as a sleeper for hours
            perform set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
                    set_config('tcp_keepalives_count', '3', false);
        end if;
    end if;
end $$;
comment on function fall_asleep(interval, int, int, boolean) is 'For node_sleep() and scheduler_sleep(): if this '
    'session may sleep, it is a sleeper from now on and due is the end of its sleep. Otherwise due is NULL and state '
    'says why';

create or replace function stay_awake() returns void
language plpgsql set search_path from current as $$
begin
    perform pg_advisory_unlock_shared(slot_class() + 17, 'queue'::regclass::oid::int);
end $$;
comment on function stay_awake() is 'This session is no sleeper any more';

create or replace function sleep_ms(due timestamptz) returns text
language sql volatile as $$ select ceil(1000 * extract(epoch from due - clock_timestamp()))::bigint::text $$;
comment on function sleep_ms(timestamptz) is 'How long from now until then, in ms';

create or replace function node_sleep(node text, session uuid, most interval, slot int, backend_pid int,
    listening boolean, out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    due timestamptz;
begin
    select f.state, f.due into state, due from fall_asleep(most, slot, backend_pid, listening) f;
    if due is not null then
        update node n set heartbeat = due, backend_pid = pg_backend_pid()
        where n.lock_key = node_sleep.node and n.session = node_sleep.session and n.state = 'up';
        if found then
            state := sleep_ms(due);
        else
            perform stay_awake();
        end if;
    end if;
end $$;
comment on function node_sleep(text, uuid, interval, int, int, boolean) is 'For a worker that waits in a slot and has '
    'nothing to do. state: for how many ms it may send nothing unless a notification comes (its heartbeat is set to '
    'that time), or why it may not sleep: listens = call again, because the session listens only from now on; busy = '
    'there is something to do, or a push is in progress; no place = the worker has no slot; pooler = locks and LISTEN '
    'would belong to the pooler''s connection. backend_pid and listening: as in claim_or_wait, whose next call ends '
    'the sleep; a heartbeat ends it as well';

create or replace function scheduler_sleep(holder text, most interval, slot int, backend_pid int, listening boolean,
    out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    due  timestamptz;
    last scheduler;
begin
    select f.state, f.due into state, due from fall_asleep(most, slot, backend_pid, listening) f;
    if due is null then
        return;
    end if;
    select * into last from scheduler order by term desc limit 1;
    -- a nearer time would count as the promise of an active scheduler, see still()
    if due < clock_timestamp() + interval '11 s'
       or must_fold() or (select not f.rolled from fold f where f.keep order by f.fold desc limit 1)
       or last.holder <> scheduler_sleep.holder and (still(last.until) or last.until <= clock_timestamp()) then
        perform stay_awake();
        return;
    end if;
    if last.holder = scheduler_sleep.holder then
        insert into scheduler (holder, until) values (scheduler_sleep.holder, due);
        delete from scheduler where term = last.term and term > 0;
    end if;
    state := sleep_ms(due);
end $$;
comment on function scheduler_sleep(text, interval, int, int, boolean) is 'node_sleep() for a scheduler in which '
    'nothing was new for some seconds (slot: 0 if its last step waits, else 1), and for one that stands by while the '
    'active one sleeps. While the active scheduler sleeps, none is active: claims make the steps. A scheduler may not '
    'sleep if something is due within 11 s, or if the books are not complete';

-- 70_audit
-- The audit, and what all administrative functions share. Each call is one batch of one action. The caller makes the
-- uuid of the action and counts its batches from 1. After a lost answer the caller repeats the call: it gets the stored
-- answer, and nothing changes twice. Table audit records who asked for what; table audit_batch records the result, and
-- is written in the transaction of the batch.

create table if not exists audit (
    action   uuid primary key,
    at       timestamptz not null default clock_timestamp(),
    who      text not null,
    app      text,
    addr     inet,
    verb     text not null,
    queue    text collate "C",
    node     text collate "C",
    params   jsonb not null,
    reason   text,
    expected bigint
);
create index if not exists audit_at on audit (at);
comment on table audit is 'One row an administrative action: who, from where, what, why';
comment on column audit.who is 'The login role (session_user)';

create table if not exists audit_batch (
    action  uuid not null references audit,
    batch   int not null check (batch >= 1),
    at      timestamptz not null default clock_timestamp(),
    changed bigint not null,
    skipped bigint not null,
    rows    jsonb not null,
    before  jsonb,
    cursor  text,
    primary key (action, batch)
);
comment on table audit_batch is 'What each batch of an action did, row by row; append-only';
comment on column audit_batch.rows is 'The answer: [{id, state, why, n}]. state null: the row was left alone; why '
    'gives the reason';
comment on column audit_batch.before is 'The changed rows as they were before';
comment on column audit_batch.cursor is 'Where the next batch continues; null = there is none';

create or replace view audit_log as
select a.action, a.at, a.who, a.app, a.addr, a.verb, a.queue, a.node, a.params, a.reason, a.expected,
       coalesce(b.changed, 0) as changed, coalesce(b.skipped, 0) as skipped, coalesce(b.batches, 0) as batches
from audit a
left join lateral (select sum(changed)::bigint as changed, sum(skipped)::bigint as skipped, count(*) as batches
                   from audit_batch b where b.action = a.action) b on true;
comment on view audit_log is 'The audit with its totals';

create or replace function act_limits(queue text, node text, params jsonb, reason text) returns void
language plpgsql immutable set search_path from current as $$
begin
    if length(reason) > 1000 then
        raise 'a reason has 1000 characters at most, not %', length(reason) using errcode = 'QT007';
    elsif length(queue) > 200 then
        raise 'the name of a queue has 1 to 200 characters, not %', length(queue) using errcode = 'QT007';
    elsif length(node) > 200 then
        raise 'the name of a node has 1 to 200 characters, not %', length(node) using errcode = 'QT007';
    elsif length(params::text) > 20000 then
        raise 'what an action is asked for has 20000 characters at most, not %', length(params::text)
            using errcode = 'QT007';
    end if;
end $$;
comment on function act_limits(text, text, jsonb, text) is 'Raises QT007 if a text of an action is too long for the '
    'audit';

create or replace function act_goes_on(a audit, params jsonb, reason text) returns void
language plpgsql stable set search_path from current as $$
declare
    latest timestamptz := (select max(b.at) from audit_batch b where b.action = a.action);
begin
    if latest < clock_timestamp() - interval '1 hour' then
        raise 'action % ended at %: use a new uuid for another action', a.action, latest using errcode = 'QT007',
            hint = 'A batch that goes on with an action comes within an hour of the batch before it.';
    elsif a.reason is distinct from reason
          or a.params - '{ids,before}'::text[] is distinct from params - '{ids,before}'::text[] then
        raise 'action % was begun with another reason or other values: use a new uuid for another action', a.action
            using errcode = 'QT007';
    end if;
end $$;
comment on function act_goes_on(audit, jsonb, text) is 'Raises QT007 if this batch can''t belong to the action. All '
    'batches of an action have the same reason and the same values (except the jobs that each names), and each follows '
    'the one before within an hour';

create or replace function portion_check("limit" int, after text) returns void
language plpgsql stable set search_path from current as $$
declare
    at jsonb;
begin
    if "limit" < 0 then
        raise 'limit is the number of jobs that a call takes, 0 or more, not %', "limit" using errcode = 'QT007';
    end if;
    begin
        at := after;
        perform case at ->> 0 when 'h' then (at ->> 1)::timestamptz end,
                case at ->> 0 when 'h' then (at ->> 2)::uuid end,
                case when at ->> 0 <> 'h' then (at ->> 2)::bigint end, (at ->> 3)::smallint;
    exception when data_exception then
        raise 'after is the cursor of the call before, not "%"', left(after, 100) using errcode = 'QT007';
    end;
end $$;
comment on function portion_check(int, text) is 'Raises QT007 if after is not the cursor of a call, or limit is '
    'negative';

create or replace function act_begin(action uuid, batch int, verb text, queue text, node text, params jsonb,
    reason text, expected bigint)
returns boolean
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a     audit;
    fresh boolean;
begin
    if action is null or batch is null or batch < 1 then
        raise 'an action needs its uuid and a batch number from 1' using errcode = 'QT007';
    end if;
    perform act_limits(queue, node, params, reason);
    perform pg_advisory_xact_lock(hashtextextended('queuetop action ' || action, 0));
    perform tell_sleepers(); -- what the act changes may be due at once
    perform have_day(); -- many acts write to history
    insert into audit (action, who, app, addr, verb, queue, node, params, reason, expected)
    values (action, session_user, nullif(current_setting('application_name'), ''), inet_client_addr(), verb, queue,
            node,
            jsonb_strip_nulls(params), reason, expected)
    on conflict do nothing;
    fresh := found;
    select * into a from audit x where x.action = act_begin.action;
    if (a.who, a.verb, a.queue, a.node) is distinct from (session_user::text, verb, queue, node) then
        raise 'action % is a "%" of %: use a new uuid for another action', action,
            concat_ws(' ', a.verb, coalesce(a.node, a.queue)), a.who using errcode = 'QT007';
    elsif exists (select from audit_batch b where b.action = act_begin.action and b.batch = act_begin.batch) then
        return false;
    elsif not fresh then
        perform act_goes_on(a, jsonb_strip_nulls(params), reason);
    end if;
    return true;
end $$;
comment on function act_begin(uuid, int, text, text, text, jsonb, text, bigint) is 'Writes an action to the audit. '
    'False: this batch was done before, and act_answer returns its answer. Raises QT007 if the uuid belongs to another '
    'action, to an action on another queue or node, or to one that has ended';

create or replace function in_order(rows jsonb, ids uuid[]) returns jsonb
language sql immutable set search_path from current as $$
    select jsonb_agg(r.job order by i.place)
    from jsonb_array_elements(rows) r (job)
    join (select u.id, min(u.place) as place from unnest(in_order.ids) with ordinality u (id, place) group by u.id) i
        on i.id = (r.job ->> 'id')::uuid
$$;
comment on function in_order(jsonb, uuid[]) is 'The answers for jobs ([{id, ..}]) in the order of the ids in the call. '
    'They can''t be sorted by id, because ids that were made within one millisecond are in no order';

create or replace function act_end(action uuid, batch int, rows jsonb, before jsonb default null,
    cursor text default null) returns void
language sql set search_path from current as $$
    insert into audit_batch (action, batch, changed, skipped, rows, before, cursor)
    select act_end.action, act_end.batch,
           coalesce(sum(coalesce((r ->> 'n')::bigint, 1)) filter (where r ->> 'state' is not null), 0),
           coalesce(sum(coalesce((r ->> 'n')::bigint, 1)) filter (where r ->> 'state' is null), 0),
           coalesce(act_end.rows, '[]'), act_end.before, act_end.cursor
    from jsonb_array_elements(coalesce(rows, '[]')) r;
    -- an idle worker should look at once for jobs that can be claimed now
    select pg_notify(slot_channel(0), '') where slot_waits(0)
$$;
comment on function act_end(uuid, int, jsonb, jsonb, text) is 'Stores the answer of a batch, and wakes an idle worker '
    'that waits for jobs';

create or replace function act_answer(action uuid, batch int)
returns table (id text, state text, why text, cursor text, n bigint)
language sql stable set search_path from current as $$
    select r ->> 'id', r ->> 'state', r ->> 'why', b.cursor, coalesce((r ->> 'n')::bigint, 1)
    from audit_batch b cross join lateral jsonb_array_elements(b.rows) with ordinality v (r, o)
    where b.action = act_answer.action and b.batch = act_answer.batch
    union all
    select null, null, 'nothing in this batch', b.cursor, 0 from audit_batch b
    where b.action = act_answer.action and b.batch = act_answer.batch and b.rows = '[]' and b.cursor is not null
$$;
comment on function act_answer(uuid, int) is 'The stored answer of a batch';

create or replace function check_expected(expected bigint, would bigint) returns void
language plpgsql immutable set search_path from current as $$
begin
    if expected <> would then
        raise 'expected %, but % would change now: nothing was changed', expected, would using errcode = 'QT005';
    end if;
end $$;
comment on function check_expected(bigint, bigint) is 'Raises QT005 if the number of jobs has changed since the '
    'preview';

create or replace function wake_queue(queue text) returns void
language sql set search_path from current as $$ insert into delta (queue, priority) values (queue, 5) $$;
comment on function wake_queue(text) is 'Makes the scheduler''s next step look at a queue. Not for workers: it would '
    'accept any name';

-- 71_requeue
-- Requeue: failed, retry and scheduled jobs become ready now, or spread over a time. Finished jobs are pushed again as
-- new jobs.

-- no SET: so the planner can inline the function and computes the key of `wanted` once. Only functions with a pinned
-- path call it
create or replace function error_matches(error text, key text, wanted text) returns boolean
language sql immutable as $$
    select case when wanted is null then true
                when left(wanted, 1) = '~' then coalesce(strpos(lower(error), lower(substr(wanted, 2))) > 0, false)
                else coalesce(key = error_key(wanted), false) end
$$;
comment on function error_matches(text, text, text) is 'Whether an error belongs to the group of the text wanted, or, '
    'if wanted is ~TEXT, contains TEXT (upper and lower case are the same)';

create or replace function spread_check(spread interval) returns void
language plpgsql immutable set search_path from current as $$
begin
    if spread <= interval '0' or spread > interval '30 days' then
        raise 'a requeue can be spread over a time of up to 30 days' using errcode = 'QT007';
    end if;
end $$;
comment on function spread_check(interval) is 'Raises QT007 if jobs can''t be spread over this time';

create or replace function requeue_live(action uuid, ids uuid[], reset boolean, spread interval default null)
returns setof uuid
language sql set search_path from current as $$
    with wanted as materialized (
        select a.at, (a.params ->> 'priority')::smallint as priority from audit a where a.action = requeue_live.action
    ), chosen as materialized (
        select q.id, q.queue, q.priority, q.state, q.error_key, q.seq from queue q
        where q.id = any(ids) and q.state::text in ('failed', 'retry', 'scheduled') for update
    ), numbered as materialized ( -- in the old order; spread: one job at a random time in each of n equal parts
        select id, nextval('job_seq') as seq,
               (select w.at from wanted w) + spread * ((row_number() over () - random()) / count(*) over ()) as due
        from (select id from chosen order by seq) c
    ), requeued as (
        update queue q
        set state = case when spread is not null then 'scheduled' when q.concurrency_key is null then 'ready'
                         else 'blocked' end::job_state,
            seq = n.seq,
            priority = coalesce((select w.priority from wanted w), q.priority),
            changed = now(),
            run_after = n.due,
            last_action = action,
            expires_at = case when q.expires_at > now() then q.expires_at end,
            -- so that the number of the last try fits a smallint
            tries = case when reset then 0 else least(q.tries, 32766) end,
            max_tries = case when not reset and q.tries >= coalesce(q.max_tries, s.max_tries, 5)
                             then least(q.tries, 32766) + 1 else q.max_tries end,
            cancel_asked = null
        from chosen c join numbered n using (id) left join queue_config s on s.queue = c.queue
        where q.id = any(ids) and q.id = c.id
        returning q.id, q.queue, q.priority, q.seq, q.state, q.run_after, c.state as was, c.priority as was_at,
                  c.error_key
    ), counted as (
        insert into delta (queue, priority, error_key, ready, blocked, failed, retry, scheduled, min_seq, max_seq,
                           min_after)
        select queue, priority, null,
               count(*) filter (where state = 'ready'),
               count(*) filter (where state = 'blocked'), 0, 0,
               count(*) filter (where state = 'scheduled'),
               min(seq) filter (where state = 'ready'), max(seq) filter (where state = 'ready'), min(run_after)
        from requeued group by queue, priority
        union all
        select queue, was_at, null, 0, 0,
               -count(*) filter (where was = 'failed'),
               -count(*) filter (where was = 'retry'),
               -count(*) filter (where was = 'scheduled'), null, null, null
        from requeued group by queue, was_at
        union all
        select queue, 0, error_key, 0, 0, -count(*), 0, 0, null, null, null from requeued
        where was = 'failed' and error_key is not null group by queue, error_key)
    select id from requeued
$$;
comment on function requeue_live(uuid, uuid[], boolean, interval) is 'Makes waiting and failed jobs ready (jobs with a '
    'concurrency key: blocked), at the priority that the action names, if it names one. spread: the jobs become '
    'scheduled instead, spread evenly over that time from the beginning of the action on. The count of tries is kept '
    'and one more try is allowed; reset: it starts at 0. An expiry that has passed is removed';

create or replace function requeue_history(action uuid, job uuid, spread interval default null, out new_id uuid,
    out why text)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    a audit := (select x from audit x where x.action = requeue_history.action);
    h history;
begin
    select * into h from history_of(array[job]) x order by x.finished desc limit 1;
    if h.id is null then
        why := 'no such job';
    elsif not h.kept then
        why := h.state || ', and its payload was not kept';
    else
        insert into queue (queue, kind, priority, payload, body, payload_type, unique_key, max_tries, lease_timeout,
                           run_timeout, concurrency_key, run_after, origin_id, last_action)
        values (h.queue, h.kind, coalesce((a.params ->> 'priority')::smallint, h.priority), h.payload, h.body,
                h.payload_type, h.unique_key, h.max_tries, h.lease_timeout, h.run_timeout, h.concurrency_key,
                a.at + spread * random(), h.id, action)
        on conflict do nothing returning id into new_id;
        why := case when new_id is null then 'a newer job has its unique key' else 'as new job ' || new_id end;
    end if;
end $$;
comment on function requeue_history(uuid, uuid, interval) is 'Pushes a finished job again, if its payload was kept';

create or replace function requeue_one(action uuid, id uuid, reset boolean, spread interval) returns jsonb
language plpgsql set search_path from current as $$
declare
    ready text := case when spread is null then 'ready' else 'scheduled' end;
    again record;
    q     queue;
begin
    select * into q from queue x where x.id = requeue_one.id;
    if not found then
        select * into again from requeue_history(action, id, spread);
        return jsonb_build_object('id', id, 'state', case when again.new_id is not null then ready end,
                                  'why', again.why, 'new', again.new_id);
    elsif q.state = 'ready' then
        return jsonb_build_object('id', id, 'why', case
            when exists (select from live w where w.queue = q.queue and w.lock_key is not null
                           and q.seq = any(w.seqs)) then 'running' else 'ready already' end);
    elsif q.state = 'blocked' then
        return jsonb_build_object('id', id, 'why', 'waits for its concurrency key');
    end if;
    begin
        perform requeue_live(action, array[id], reset, spread);
        return jsonb_build_object('id', id, 'state', ready);
    exception when unique_violation then
        return jsonb_build_object('id', id, 'why', 'a newer job has its unique key');
    end;
end $$;
comment on function requeue_one(uuid, uuid, boolean, interval) is 'Requeues one job and returns its row of the answer';

create or replace function requeue_rows(action uuid, ids uuid[], reset boolean, spread interval, out rows jsonb,
    out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    plain uuid[];
    done  uuid[] := '{}';
    ready text := case when spread is null then 'ready' else 'scheduled' end;
    job   uuid;
begin
    perform lock_waiting(ids); -- jobs that are not ready; the ready ones may be locked by their workers
    select jsonb_agg(jsonb_build_object('id', q.id, 'state', q.state, 'priority', q.priority, 'tries', q.tries,
                                        'max_tries', q.max_tries, 'run_after', q.run_after, 'changed', q.changed)),
           array_agg(q.id) filter (where q.unique_key is null or q.state <> 'failed')
    into was, plain
    from queue q where q.id = any(ids) and q.state::text <> 'ready';
    if plain is not null then
        select array_agg(x) into done from requeue_live(action, plain, reset, spread) x;
    end if;
    select coalesce(jsonb_agg(jsonb_build_object('id', q.id, 'state', ready, 'why', case
               when q.state = 'blocked' then 'waits for its concurrency key' end)), '[]')
    into rows from queue q where q.id = any(done);
    for job in -- in the order of unique keys; of several jobs with one key the first given wins
        select i.id
        from (select u.id, min(u.place) as place from unnest(ids) with ordinality u (id, place)
              where not exists (select from unnest(done) d (id) where d.id = u.id) group by u.id) i
        left join lateral (select * from queue q where q.id = i.id offset 0) q on true
        left join (select distinct on (h.id) h.id, h.queue, h.unique_key
                   from history_of(array(select unnest(ids) except select unnest(done)
                                         except select o.id from queue o where o.id = any(ids))) h
                   where h.unique_key is not null
                   order by h.id) f on f.id = i.id
        order by coalesce(q.queue, f.queue), coalesce(q.unique_key, f.unique_key), i.place loop
        rows := rows || requeue_one(action, job, reset, spread);
    end loop;
    rows := in_order(rows, ids);
end $$;
comment on function requeue_rows(uuid, uuid[], boolean, interval) is 'Requeues jobs: those that no unique key can stop '
    'in one statement, the others one by one';

create or replace function requeue(action uuid, batch int, ids uuid[], reset boolean default false,
    reason text default null, spread interval default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
begin
    perform spread_check(spread);
    return query select * from act_on(action, batch, 'requeue', ids,
                                      jsonb_build_object('reset', reset, 'spread', spread), reason);
end $$;
comment on function requeue(uuid, int, uuid[], boolean, text, interval) is 'Makes these jobs ready again: failed jobs '
    'with one more try (reset: with all their tries), waiting jobs now, finished jobs as new jobs. spread: not all at '
    'once, but spread evenly over a time of up to 30 days. Jobs that can''t be requeued are left alone; why gives the '
    'reason';

create or replace function requeue_at_priority(action uuid, batch int, ids uuid[], reset boolean default false,
    reason text default null, spread interval default null, priority int default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
begin
    perform spread_check(spread);
    if priority is not null then
        perform change_check('priority', priority, null);
    end if;
    return query select * from act_on(action, batch, 'requeue', ids, jsonb_build_object(
        'reset', reset, 'spread', spread, 'priority', priority), reason);
end $$;
comment on function requeue_at_priority(uuid, int, uuid[], boolean, text, interval, int) is 'requeue() with a priority '
    'for the jobs, 0 (soonest) to 9: with 0 they start before those that wait. NULL: the jobs keep their priority';

create or replace function requeue_find(which job_filter) returns table (id uuid, cursor text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    at jsonb;
    n  int := 0;
begin
    perform portion_check(which."limit", which.after);
    at := coalesce(which.after, '["q", "", 0]')::jsonb;
    if at ->> 0 = 'q' then
        return query
        select q.id, jsonb_build_array('q', q.queue, q.seq)::text from queue q
        where q.state not in ('ready', 'blocked') and q.state::text = any(which.states)
          and (q.queue, q.seq) > (at ->> 1, (at ->> 2)::bigint)
          and (which.queue is null
               or q.queue = which.queue and (q.queue <> at ->> 1 or q.seq > (at ->> 2)::bigint))
          and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
        order by q.queue, q.seq limit which."limit";
        get diagnostics n = row_count;
    end if;
    if n < which."limit" and which.states && '{completed,cancelled}' then
        return query
        select h.id, jsonb_build_array('h', h.finished, h.id)::text from history h
        where h.state::text = any(which.states) and (which.queue is null or h.queue = which.queue)
          and (which.kind is null or h.kind = which.kind)
          and (which.error is null or error_matches(h.error, error_key(h.error), which.error))
          and (which.before is null or h.finished < which.before)
          and (at ->> 0 = 'q' or (h.finished, h.id) > ((at ->> 1)::timestamptz, (at ->> 2)::uuid))
        order by h.finished, h.id limit which."limit" - n;
    end if;
end $$;
comment on function requeue_find(job_filter) is 'Jobs that match and could be requeued, in a fixed order from '
    'which.after on';

-- no SET: so the planner can inline it
create or replace function requeue_when(state job_state, ready text) returns text
language sql immutable as $$
    select case when state = 'failed' then null when ready = 'ready' then 'now instead of later'
                else 'at another time' end
$$;
comment on function requeue_when(job_state, text) is 'For requeue_preview: what changes for a job that waits';

create or replace function requeue_look(ids uuid[], ready text)
returns table (place bigint, queue text, key text, has_key boolean, state text, why text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
    return query
    select i.place, coalesce(q.queue, h.queue), coalesce(q.unique_key, h.unique_key),
           coalesce(q.state <> 'failed', false),
           case when q.state in ('ready', 'blocked') or twin then null
                when q.id is not null or h.kept then requeue_look.ready end,
           case when q.state = 'ready' then
                     case when exists (select from live w where w.queue = q.queue and w.lock_key is not null
                                       and q.seq = any(w.seqs)) then 'running' else 'ready already' end
                when q.state = 'blocked' then 'waits for its concurrency key'
                when twin then 'a newer job has its unique key'
                when q.id is not null then requeue_when(q.state, requeue_look.ready)
                when h.id is null then 'no such job'
                when not h.kept then 'its payload was not kept'
                else 'as a new job' end
    from (select u.id, min(u.place) as place from unnest(requeue_look.ids) with ordinality u (id, place)
          group by u.id) i
    left join lateral (select * from queue q where q.id = i.id offset 0) q on true
    left join lateral (select * from history_of(array[i.id]) h where q.id is null order by h.finished desc limit 1) h
        on true
    cross join lateral (select exists (
        select from queue o where o.queue = coalesce(q.queue, h.queue) and o.id <> i.id
        and o.unique_key = coalesce(q.unique_key, h.unique_key) and o.state <> 'failed'
        and coalesce(q.state, 'failed') in ('failed', 'completed', 'cancelled')) as twin) t;
end $$;
comment on function requeue_look(uuid[], text) is 'For requeue_preview: what would become of each of these jobs if it '
    'were the only one. has_key: the job holds its unique key already; the others would have to take theirs';

create or replace function requeue_preview_ids(ids uuid[], ready text)
returns table (state text, n bigint, why text)
language sql stable set search_path from current as $$
    select case when r.nth = 1 then r.state end, count(*),
           case when r.nth = 1 then r.why else 'another of these has its unique key' end
    from (select l.state, l.why, -- of jobs that would take the same key the first given wins
                 case when l.key is null or l.state is null or l.has_key then 1
                      else row_number() over (partition by l.queue, l.key, l.state is null, l.has_key
                                              order by l.place) end as nth
          from requeue_look(ids, ready) l) r
    group by 1, 3 order by 2 desc
$$;
comment on function requeue_preview_ids(uuid[], text) is 'requeue_preview for jobs by id';

create or replace function requeue_preview_where(which job_filter, ready text)
returns table (state text, n bigint, why text)
language plpgsql stable set search_path from current set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
    return query
    with chosen as not materialized (
        select q.queue, q.unique_key, q.seq, q.state from queue q
        where q.state not in ('ready', 'blocked') and q.state::text = any(which.states)
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
    ), keyed as ( -- separate, because only jobs with a key must be sorted
        select c.state as was, row_number() over (partition by c.queue, c.unique_key order by c.seq) = 1 as first,
               c.state = 'failed' and exists (select from queue o where o.queue = c.queue
                                                and o.unique_key = c.unique_key and o.state <> 'failed') as twin
        from chosen c where c.unique_key is not null
    ), finished as (
        select h.kept,
               h.unique_key is not null and exists (select from queue o where o.queue = h.queue
                   and o.unique_key = h.unique_key and o.state <> 'failed') as twin,
               h.unique_key is null or not exists (select from history e where e.queue = h.queue
                   and e.unique_key = h.unique_key and e.state::text = any(which.states) and e.kept
                   and (e.finished, e.id) < (h.finished, h.id)) as first
        from history h
        where which.states && '{completed,cancelled}' and h.state::text = any(which.states)
          and (which.queue is null or h.queue = which.queue) and (which.kind is null or h.kind = which.kind)
          and (which.error is null or error_matches(h.error, error_key(h.error), which.error))
          and (which.before is null or h.finished < which.before)
    )
    select z.state, count(*), z.why
    from (select requeue_preview_where.ready as state, requeue_when(c.state, requeue_preview_where.ready) as why
          from chosen c where c.unique_key is null
          union all
          select case when not k.twin and k.first then requeue_preview_where.ready end,
                 case when k.twin then 'a newer job has its unique key'
                      when not k.first then 'another of these has its unique key'
                      else requeue_when(k.was, requeue_preview_where.ready) end
          from keyed k
          union all
          select case when f.kept and not f.twin and f.first then requeue_preview_where.ready end,
                 case when not f.kept then 'its payload was not kept'
                      when f.twin then 'a newer job has its unique key'
                      when not f.first then 'another of these has its unique key' else 'as a new job' end
          from finished f) z
    group by 1, 3 order by 2 desc;
end $$;
comment on function requeue_preview_where(job_filter, text) is 'requeue_preview for all jobs that match';

create or replace function requeue_preview(ids uuid[] default null, queue text default null,
    states text[] default null, kind text default null, error text default null, before timestamptz default null,
    reset boolean default false, spread interval default null)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_sort = off
    set jit = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    ready text := case when spread is null then 'ready' else 'scheduled' end;
    which job_filter := (queue, coalesce(states, '{failed}'), kind, error, before, null, null, null);
begin
    perform spread_check(spread);
    if ids is not null then
        return query select * from requeue_preview_ids(ids, ready);
    else
        return query select * from requeue_preview_where(which, ready);
    end if;
end $$;
comment on function requeue_preview(uuid[], text, text[], text, text, timestamptz, boolean, interval) is 'What requeue '
    '(ids) or requeue_where would do now: n jobs that would become ready or scheduled (state NULL: left alone), and '
    'why. Changes nothing';

create or replace function requeue_fits(job queue, which job_filter) returns boolean language sql stable as $$
    select job.state not in ('ready', 'blocked') and job.state::text = any(which.states)
       and (which.queue is null or job.queue = which.queue) and (which.kind is null or job.kind = which.kind)
       and (which.error is null or error_matches(job.error, job.error_key, which.error))
       and (which.before is null or job.changed < which.before)
$$;
comment on function requeue_fits(queue, job_filter) is 'Whether a filter of requeue_where matches a job. No SET, so '
    'that it is inlined';

-- To rank the matching jobs they must be sorted: for a million jobs that takes a second and 140 MB of temporary files.
-- So of a large table some 300 pages are read at random, and the matching jobs on them stand for all. If these are too
-- few, only a small part of the table matches, and all matching jobs are read by an index.
create or replace function requeue_sample(queue text default null, states text[] default null, kind text default null,
    error text default null, before timestamptz default null, n int default 10)
returns table (id text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    which job_filter := (queue, coalesce(states, '{failed}'), kind, error, before, null, null, null);
    most  int := least(greatest(requeue_sample.n, 0), 1000);
    pages bigint := pg_relation_size('queue') / current_setting('block_size')::int;
    found uuid[]; -- the oldest first
begin
    if pages > 2000 then
        found := array(
            select c.id from queue c tablesample system (100.0 * 300 / pages)
            where requeue_fits(c, which)
              and not (c.state = 'failed' and c.unique_key is not null
                       and exists (select from queue o where o.queue = c.queue and o.unique_key = c.unique_key
                                                         and o.state <> 'failed'))
            order by c.changed, c.id);
    end if;
    if coalesce(cardinality(found), 0) < 10 * most then
        found := array(
            select c.id from queue c
            where requeue_fits(c, which)
              and not (c.state = 'failed' and c.unique_key is not null
                       and exists (select from queue o where o.queue = c.queue and o.unique_key = c.unique_key
                                                         and o.state <> 'failed'))
            order by c.changed, c.id);
    end if;
    return query
    select found[1 + case when cardinality(found) <= most then k -- else the first of each rank
                          else greatest(0, k::bigint * (cardinality(found) - 1) + most - 2) / greatest(most - 1, 1)
                          end]::text
    from generate_series(least(cardinality(found), most) - 1, 0, -1) k;
end $$;
comment on function requeue_sample(text, text[], text, text, timestamptz, int) is 'A sample of the jobs that '
    'requeue_where would make ready now: n of them (at most 1000), the newest, the oldest and those at equal steps '
    'between, newest first. If many jobs of a large table match, they are chosen from some 300 random pages. Finished '
    'jobs are never in the sample';

create or replace function requeue_where(action uuid, batch int, queue text, states text[] default '{failed}',
    kind text default null, error text default null, before timestamptz default null, "limit" int default 1000,
    after text default null, expected bigint default null, reset boolean default false, reason text default null,
    spread interval default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    which job_filter := (queue, coalesce(states, '{failed}'), kind, error, before, coalesce("limit", 1000), after,
                         expected);
begin
    perform spread_check(spread);
    return query select * from act_where(action, batch, 'requeue', which,
                                         jsonb_build_object('reset', reset, 'spread', spread), reason);
end $$;
comment on function requeue_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, boolean, text,
    interval) is
    'requeue() for all jobs that match, up to limit jobs a call: call again with the next batch number and with the '
    'cursor of the last answer as after, until the cursor is NULL. error: TEXT = the group of TEXT, ~TEXT = contains '
    'TEXT. before: only jobs that have been in their state since before this time. expected: the number of jobs that '
    'the preview counted; raises QT005 if that number has changed';

-- 72_act
-- One act on jobs, from its beginning to its end. Requeue, cancel, discard, delete, priority and reschedule have the
-- same steps: write the act to the audit, find the jobs, lock and change them, store the answer. Only the change
-- differs: requeue_rows (71_requeue), remove_jobs (74_remove), change_jobs (78_change).

create or replace function lock_waiting(ids uuid[]) returns uuid[]
language sql set search_path from current as $$
    select array(select q.id from queue q where q.id = any(ids) and q.state::text <> 'ready' order by q.id for update)
$$;
comment on function lock_waiting(uuid[]) is 'Locks those of these jobs that are not ready; returns their ids. It may '
    'have to wait, so call it before the scheduler''s lock is taken';

create or replace function finished_jobs(ids uuid[]) returns uuid[]
language sql stable set search_path from current as $$
    select array(select h.id from history_of(array(
                     select unnest(ids) except select q.id from queue q where q.id = any(ids))) h)
$$;
comment on function finished_jobs(uuid[]) is 'Those of these jobs that are in history and not in queue any more';

create or replace function act_change(action uuid, verb text, ids uuid[], params jsonb, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
begin
    if verb = 'requeue' then
        select r.rows, r.was into rows, was
        from requeue_rows(action, ids, coalesce((params ->> 'reset')::boolean, false),
                          (params ->> 'spread')::interval) r;
    elsif verb in ('priority', 'reschedule') then
        select r.rows, r.was into rows, was
        from change_jobs(action, ids, verb, (params ->> 'priority')::int, (params ->> 'at')::timestamptz) r;
    else
        select r.rows, r.was into rows, was from remove_jobs(action, ids, verb) r;
    end if;
end $$;
comment on function act_change(uuid, text, uuid[], jsonb) is 'The change that an act makes to its jobs. params: reset '
    'and spread of a requeue, priority, at. rows: the answer; was: the changed jobs as they were before';

create or replace function act_would(verb text, which job_filter, params jsonb) returns bigint
language plpgsql stable set search_path from current as $$
declare
    at timestamptz := params ->> 'at';
    n  bigint;
begin
    if verb = 'requeue' then
        select sum(p.n) into n
        from requeue_preview(null, which.queue, which.states, which.kind, which.error, which.before) p
        where p.state is not null;
    else
        select sum(p.n) into n
        from act_preview(verb, null, which, (params ->> 'priority')::int, case when at > now() then at end) p
        where p.state is not null;
    end if;
    return coalesce(n, 0);
end $$;
comment on function act_would(text, job_filter, jsonb) is 'How many jobs an act would change now';

create or replace function act_on(action uuid, batch int, verb text, ids uuid[], params jsonb, reason text)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    done record;
begin
    if act_begin(action, batch, verb, null, null, params || jsonb_build_object('ids', cardinality(ids)), reason,
                 null) then
        select * into done from act_change(action, verb, ids, params);
        perform act_end(action, batch, done.rows, done.was);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function act_on(uuid, int, text, uuid[], jsonb, text) is 'Does an act on the jobs with these ids. If the '
    'batch was done before, it only returns the stored answer';

create or replace function act_where(action uuid, batch int, verb text, which job_filter, params jsonb, reason text)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids  uuid[];
    next text;
    done record;
begin
    if act_begin(action, batch, verb, which.queue, null,
                 params || jsonb_build_object('states', which.states, 'kind', which.kind, 'error', which.error,
                                              'before', which.before), reason, which.expected) then
        if batch = 1 and which.expected is not null then
            perform check_expected(which.expected, act_would(verb, which, params));
        end if;
        if verb = 'requeue' then
            select coalesce(array_agg(f.id order by f.place), '{}'),
                   max(f.cursor) filter (where f.place = which."limit")
            into ids, next from requeue_find(which) with ordinality f (id, cursor, place);
        else
            select coalesce(array_agg(f.id order by f.place), '{}'),
                   max(f.cursor) filter (where f.place = which."limit")
            into ids, next from act_find(action, which) with ordinality f (id, cursor, place);
        end if;
        select * into done from act_change(action, verb, ids, params);
        perform act_end(action, batch, done.rows, done.was, next);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function act_where(uuid, int, text, job_filter, jsonb, text) is 'Does one batch of an act on all jobs that '
    'a filter names: at most which.limit jobs from which.after on. Batch 1 raises QT005 if the number of jobs that '
    'would change is not which.expected';

-- 72_find
-- What the acts on jobs share (cancel, discard, delete, priority, time): which jobs a filter names, what they would
-- become, and how a waiting job leaves its free lease. Only one function, act_becomes, decides what becomes of a job,
-- so the preview and the act agree.

create or replace function held() returns table (queue text, seq bigint)
language sql stable set search_path from current as $$
    select w.queue, s from live w, unnest(w.seqs) s where w.lock_key is not null
$$;
comment on function held() is 'The jobs that run: those in leases that a node has claimed';

create or replace function act_becomes(verb text, state job_state, runs boolean, asked boolean, priority smallint,
    wanted int, run_after timestamptz, at timestamptz)
returns table (becomes text, why text)
language sql stable as $$ -- no SET, so that it is inlined; only functions with a pinned path call it
    select case
        when verb = 'cancel' then case when runs and not asked then 'running'
                                       when not runs and state <> 'failed' then 'cancelled' end
        when runs then null
        when verb = 'discard' then 'discarded'
        when verb = 'delete' then 'deleted'
        when verb = 'priority' then case when priority <> wanted then 'at priority ' || wanted end
        when state = 'failed' then null
        when at is null then case when state in ('scheduled', 'retry') then 'ready' end
        when run_after is distinct from at then case when state = 'retry' then 'retry' else 'scheduled' end end,
    case
        when verb = 'cancel' and runs then case when asked then 'asked to end already' else 'asked to end' end
        when runs then 'running'
        when verb = 'cancel' and state = 'failed' then 'failed: discard or delete it'
        when verb in ('cancel', 'discard', 'delete') then null
        when verb = 'priority' then case when priority = wanted then 'has it already' else 'was ' || priority end
        when state = 'failed' then 'failed: requeue it'
        when at is null then case state when 'ready' then 'ready already'
                                  when 'blocked' then 'waits for its concurrency key' end
        when run_after = at then 'has that time already' end
$$;
comment on function act_becomes(text, job_state, boolean, boolean, smallint, int, timestamptz, timestamptz) is 'What '
    'an act makes of a job (becomes; NULL: the job is left alone), and why. at NULL = now';

-- groups are hashed: a million rows make few groups, and no plan should sort or merge the rows
create or replace function act_preview(verb text, ids uuid[], which job_filter, wanted int default null,
    at timestamptz default null)
returns table (state text, n bigint, why text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set enable_sort = off set enable_mergejoin = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
    perform change_check(verb, wanted, at);
    if ids is not null then
        return query
        select b.becomes, count(*), case
            when q.id is null then case when exists (select from history_of(array[i.id])) then 'finished'
                                        else 'no such job' end
            when b.becomes in ('discarded', 'deleted', 'cancelled') then q.state::text
            else b.why end
        from (select distinct unnest(act_preview.ids) as id) i
        left join lateral (select * from queue q where q.id = i.id offset 0) q on true
        left join lateral (select true as runs from live w
                           where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                             and q.seq = any(w.seqs) limit 1) r on true
        left join lateral act_becomes(act_preview.verb, q.state, coalesce(r.runs, false), q.cancel_asked is not null,
                                      q.priority, wanted, q.run_after, act_preview.at) b on q.id is not null
        group by 1, 3 order by 2 desc;
        return;
    end if;
    return query
    with running_jobs as materialized (
        select * from held()
    ), chosen_jobs as (
        select q.* from queue q
        where q.state <> 'ready' and (which.states is null or q.state::text = any(which.states))
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
        union all
        select q.* from queue q
        where q.state = 'ready' and (which.states is null or which.states && '{ready,running}')
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
    ), looked_at as (
        select j.*, r.seq is not null as runs
        from chosen_jobs j
        left join running_jobs r on j.state = 'ready' and r.queue = j.queue and r.seq = j.seq
    )
    select b.becomes, count(*),
           case when b.becomes in ('discarded', 'deleted', 'cancelled') then l.state::text else b.why end
    from looked_at l
    cross join lateral act_becomes(act_preview.verb, l.state, l.runs, l.cancel_asked is not null, l.priority, wanted,
                                   l.run_after, act_preview.at) b
    where l.state <> 'ready' or which.states is null
       or case when l.runs then 'running' else 'ready' end = any(which.states)
    group by 1, 3 order by 2 desc;
end $$;
comment on function act_preview(text, uuid[], job_filter, int, timestamptz) is 'What an act would do now to these jobs '
    '(ids), or to all that match: how many would become what (state; NULL: left alone), and why. Changes nothing';

create or replace function act_find(action uuid, which job_filter) returns table (id uuid, cursor text)
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    at jsonb;
    n  int := 0;
begin
    perform portion_check(which."limit", which.after);
    at := coalesce(which.after, '["o", "", 0]')::jsonb;
    if at ->> 0 = 'o' then -- unfinished jobs that are not ready
        return query
        select q.id, jsonb_build_array('o', q.queue, q.seq)::text from queue q
        where q.state <> 'ready' and (which.states is null or q.state::text = any(which.states))
          and (q.queue, q.seq) > (at ->> 1, (at ->> 2)::bigint)
          and (which.queue is null or q.queue = which.queue) and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
          and q.last_action is distinct from act_find.action
        order by q.queue, q.seq limit which."limit";
        get diagnostics n = row_count;
    end if;
    if n < which."limit" and coalesce(which.states && '{ready,running}', true) then
        return query
        with running_jobs as materialized (
            select * from held()
        )
        select q.id, jsonb_build_array('r', q.queue, q.seq, q.priority)::text from queue q
        where q.state = 'ready' and (which.queue is null or q.queue = which.queue)
          and (which.kind is null or q.kind = which.kind)
          and (which.error is null or error_matches(q.error, q.error_key, which.error))
          and (which.before is null or q.changed < which.before)
          and q.last_action is distinct from act_find.action
          and (at ->> 0 = 'o' or (q.queue, q.priority, q.seq) > (at ->> 1, (at ->> 3)::smallint, (at ->> 2)::bigint))
          and (which.states is null
               or case when exists (select from running_jobs r where r.queue = q.queue and r.seq = q.seq)
                       then 'running' else 'ready' end = any(which.states))
        order by q.queue, q.priority, q.seq limit which."limit" - n;
    end if;
end $$;
comment on function act_find(uuid, job_filter) is 'Unfinished jobs that match, in a fixed order from which.after on; '
    'not those that this action has changed already';

-- From jobs to their leases: the leases are read once, and each number is found by binary search. A join would read all
-- leases for each job, or all jobs for each lease, depending on the planner's estimate.
create or replace function ready_seqs(ids uuid[]) returns bigint[]
language sql stable set search_path from current as $$
    select array(select q.seq from (select q.seq, q.state from queue q where q.id = any(ready_seqs.ids) offset 0) q
                 where q.state = 'ready' order by q.seq)
$$;
comment on function ready_seqs(uuid[]) is 'The numbers (seq) of those of these jobs that are ready, ascending';

create or replace function lock_leases(ids uuid[]) returns bigint[]
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    seen   bigint[] := '{}';
    seqs   bigint[];
    fresh  bigint[];
    locked bigint[] := '{}';
    wait   text := current_setting('lock_timeout');
begin
    for round in 1 .. 5 loop -- again: a claim may split a lease meanwhile, and the part has a number of its own
        seqs := ready_seqs(ids);
        fresh := array(select l.lease from live l where l.lease <> all(seen)
                       and exists (select from unnest(l.seqs) s where seqs[width_bucket(s, seqs)] = s offset 0));
        exit when fresh = '{}';
        seen := seen || fresh;
        begin
            -- a claim or an answer that is a transaction of its own is over by then
            perform set_config('lock_timeout', '50ms', true);
            locked := locked || array(select w.lease from work_queue w
                                      where w.lease = any(fresh) order by w.lease + 0 for update);
            perform set_config('lock_timeout', wait, true);
        exception when lock_not_available then
            locked := locked || array(select w.lease from work_queue w
                                      where w.lease = any(fresh) order by w.lease + 0 for update skip locked);
        end;
    end loop;
    return locked;
end $$;
comment on function lock_leases(uuid[]) is 'Locks the leases of these jobs; returns the locked ones. A lease that '
    'somebody else keeps locked for 50 ms is left out. Call it under the scheduler''s lock';

create or replace function uncut_jobs(ids uuid[], out runs uuid[], out busy uuid[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    locked bigint[];
    seqs   bigint[];
    free   jsonb;
begin
    perform scheduler_lock(true);
    locked := lock_leases(ids);
    seqs := ready_seqs(ids);
    with leased_jobs as materialized (
        select q.id, q.queue, q.priority, q.seq, w.lease, w.runs, w.lease = any(locked) as ours
        from (select l.lease, l.lock_key is not null as runs, s as seq from live l, unnest(l.seqs) s
              where seqs[width_bucket(s, seqs)] = s offset 0) w
        join (select * from queue q where q.id = any(ids) offset 0) q on q.seq = w.seq and q.state = 'ready'
    )
    select coalesce(array_agg(o.id) filter (where o.ours and o.runs), '{}'),
           coalesce(array_agg(o.id) filter (where not o.ours), '{}'),
           jsonb_agg(jsonb_build_object('queue', o.queue, 'priority', o.priority, 'seq', o.seq, 'lease', o.lease))
               filter (where o.ours and not o.runs)
    into runs, busy, free from leased_jobs o;
    if free is null then
        return;
    end if;
    perform take_out(array_agg(f.lease), array_agg(f.seq)) from jsonb_to_recordset(free) f (lease bigint, seq bigint);
    -- the scheduler looks at these queues again: a job that the caller leaves unchanged has to be cut again
    perform move_cursor(array_agg(f.queue), array_agg(f.priority), array_agg(f.seq - 1), null)
    from jsonb_to_recordset(free) f (queue text, priority int, seq bigint);
    perform bucket_forget(f.queue, array_agg(f.seq)), wake_queue(f.queue)
    from jsonb_to_recordset(free) f (queue text, seq bigint) group by f.queue;
end $$;
comment on function uncut_jobs(uuid[]) is 'Takes ready jobs out of their free leases. runs: jobs in claimed leases, '
    'which are locked now and stay as they are; busy: jobs whose lease somebody else has locked, to claim it or to '
    'answer for it';

create or replace function lock_jobs(ids uuid[], but uuid[]) returns uuid[]
language sql set search_path from current as $$
    select array(select q.id from queue q where q.id = any(ids) and q.id <> all(but) order by q.id
                 for update skip locked)
$$;
comment on function lock_jobs(uuid[], uuid[]) is 'Locks these jobs and returns the locked ones; jobs that somebody '
    'else has locked are left out. Call it under the scheduler''s lock';

create or replace function left_alone(state job_state, busy boolean) returns text
language sql immutable set search_path from current as $$
    select case when busy then 'a worker is just claiming it or answering for it'
                when state = 'ready' then 'has just become ready'
                else 'somebody is just changing it' end
$$;
comment on function left_alone(job_state, boolean) is 'Why an act could not lock a job';

create or replace function job_put(action uuid, jobs jsonb) returns setof uuid
language sql set search_path from current
    set enable_nestloop = off set enable_hashjoin = on as $$ -- else it would compare each job with each
    with wanted as materialized (
        select * from jsonb_to_recordset(jobs) as w (id uuid, state job_state, priority smallint, tries smallint,
                                                     max_tries smallint,
                                                   run_after timestamptz, changed timestamptz)
    ), jobs_before as materialized (
        select q.id, q.priority, q.state, q.seq from queue q where q.id = any(array(select id from wanted))
    ), numbered as materialized ( -- in the old order; no answer names the new numbers
        select id, nextval('job_seq') as seq from (select id from jobs_before order by seq) z
    ), put_jobs as (
        update queue q set seq = s.seq, priority = w.priority, tries = w.tries, max_tries = w.max_tries,
            run_after = w.run_after,
               changed = w.changed, last_action = action,
               state = case when w.state = 'ready' and o.state <> 'ready'
                            and q.concurrency_key is not null then 'blocked' else w.state end
        from jobs_before o join numbered s using (id) join wanted w using (id)
        where q.id = any(array(select id from wanted)) and q.id = o.id
        returning q.id, q.queue, q.priority, q.state, q.seq, q.run_after, q.error_key, o.priority as was_priority,
        o.state as was
    ), counted as (
        insert into delta (queue, priority, error_key, ready, blocked, scheduled, retry, failed, min_seq, max_seq,
                           min_after)
        select queue, was_priority, null, -count(*) filter (where was = 'ready'),
               -count(*) filter (where was = 'blocked'),
               -count(*) filter (where was = 'scheduled'), -count(*) filter (where was = 'retry'),
               -count(*) filter (where was = 'failed'),
               null::bigint, null::bigint, null::timestamptz
        from put_jobs group by 1, 2
        union all
        select queue, priority, null, count(*) filter (where state = 'ready'),
               count(*) filter (where state = 'blocked'),
               count(*) filter (where state = 'scheduled'), count(*) filter (where state = 'retry'),
               count(*) filter (where state = 'failed'),
               min(seq) filter (where state = 'ready'), max(seq) filter (where state = 'ready'),
               min(run_after) filter (where state in ('scheduled', 'retry'))
        from put_jobs group by 1, 2
        union all
        select queue, 0, error_key, 0, 0, 0, 0,
               count(*) filter (where state = 'failed') - count(*) filter (where was = 'failed'), null, null, null
        from put_jobs where error_key is not null and (state = 'failed') <> (was = 'failed') group by 1, error_key)
    select id from put_jobs
$$;
comment on function job_put(uuid, jsonb) is 'Gives jobs another state, priority, time and number of tries ([{id, '
    'state, priority, tries, max_tries, run_after, changed}]), and writes the deltas. The caller has locked them and '
    'has taken ready jobs out of their leases';

-- 72_release
-- Acts on leases: release takes them from a node, extend_leases prolongs them; and their previews.

create or replace function node_alive(node text, expired_only boolean) returns text
language sql stable set search_path from current as $$
    select coalesce(
        (select format('its last heartbeat is %s s old', extract(epoch from now() - n.heartbeat)::int) from node n
         where n.lock_key = node_alive.node and n.heartbeat > now() - setting_interval('node_dead')),
        (select format('%s of its leases have not expired', count(*)) from live w
         where w.lock_key = node_alive.node and w.lock_timeout >= now() and not expired_only
           and not exists (select from node where lock_key = node_alive.node)
         having count(*) > 0))
$$;
comment on function node_alive(text, boolean) is 'Why a node seems to be alive; NULL: it does not. For a registered '
    'node its heartbeat decides, for any other node its leases';

create or replace function hollow(leases bigint[]) returns bigint[]
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select coalesce(array_agg(w.lease order by w.lease), '{}') from work_queue w
    where w.lease = any(hollow.leases)
      and not exists (select from leased_jobs(w.queue, w.priority, w.seqs, w.scattered))
$$;
comment on function hollow(bigint[]) is 'Those of these leases that have no job any more: somebody deleted or changed '
    'their jobs by hand';

create or replace function release_preview(node text, expired_only boolean default true, fail boolean default false,
    count boolean default true)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
    select z.state, count(*), z.why from (
        select case when expired_only and w.lock_timeout >= now() then null
                    when q.cancel_asked is not null then 'cancelled' when fail then 'failed'
                    when counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries, 5) then 'failed'
                        else 'ready' end as state,
               case when expired_only and w.lock_timeout >= now() then 'its lease has not expired'
                    when q.cancel_asked is not null then 'its end was asked for'
                    when fail then null when counted and q.tries + 1 >= coalesce(q.max_tries, w.max_tries,
                            5) then 'last try'
                    when counted then 'counts as a try' when release_preview.count then 'had not started' end as why
        from live w
        cross join lateral leased_jobs(w.queue, w.priority, w.seqs, w.scattered) q
        cross join lateral (select release_preview.count and (w.all_started or q.seq = any(w.started_seqs)) is true
                            as counted) c
        where w.lock_key = release_preview.node
        union all
        select 'ended', 'lease without a job'
        from unnest(hollow(array(select w.lease from live w where w.lock_key = release_preview.node
                                   and (w.lock_timeout < now() or not expired_only))))) z
    group by 1, 3 order by 2 desc
$$;
comment on function release_preview(text, boolean, boolean, boolean) is 'What release would do now: n jobs by the '
    'state that they would get (NULL: left alone), and why. Changes nothing';

create or replace function release(action uuid, batch int, node text, expired_only boolean default true,
    fail boolean default false,
    count boolean default true, force boolean default false, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    alive  text;
    leases bigint[];
    busy   bigint[];
    empty  bigint[];
    rows   jsonb;
    left_  boolean;
begin
    if not act_begin(action, batch, 'release', null, node, jsonb_build_object('expired_only', expired_only, 'fail',
            fail, 'count', count, 'force', force), reason, expected) then
        return query select * from act_answer(action, batch);
        return;
    end if;
    alive := node_alive(node, expired_only);
    if alive is not null and not coalesce(force, false) then
        raise 'node "%" looks alive: %', node, alive using errcode = 'QT006',
            hint = 'Its late answers would be refused, but what it does outside the database cannot be undone. force = '
                   'true does it anyway';
    end if;
    perform scheduler_lock(true);
    if batch = 1 and expected is not null then
        perform check_expected(expected, (select coalesce(sum(p.n), 0)::bigint
                                          from release_preview(node, expired_only, fail, count) p
                                          where p.state is not null));
    end if;
    select coalesce(array_agg(z.lease), '{}') into leases from (
        select w.lease from work_queue w
        where w.lease = any(array(select l.lease from live l where l.lock_key = release.node
                                    and (l.lock_timeout < now() or not expired_only)
                                  order by l.lease limit 500))
          and w.lock_key = release.node and (w.lock_timeout < now() or not expired_only)
        order by w.lease + 0 for update skip locked) z;
    select array_agg(l.lease) into busy from live l
    where l.lock_key = release.node and (l.lock_timeout < now() or not expired_only) and l.lease <> all(leases);
    left_ := cardinality(leases) >= 500;
    empty := hollow(leases);
    select jsonb_agg(jsonb_build_object('id', t.id, 'state', t.state)) into rows
    from take_back(leases, coalesce(count, true), coalesce(fail, false),
                   format('worker lost: released from %s by %s', node, session_user)) t;
    if empty <> '{}' then
        rows := coalesce(rows, '[]')
            || (select jsonb_agg(jsonb_build_object('id', e::text, 'state', 'ended', 'why', 'lease without a job'))
                from unnest(empty) e);
    end if;
    if not left_ and busy is not null then
        rows := coalesce(rows, '[]')
            || (select jsonb_agg(jsonb_build_object('id', b::text, 'why', 'its worker is answering for this lease now'))
                                         from unnest(busy) b);
    end if;
    perform act_end(action, batch, rows, to_jsonb(leases), case when left_ then 'more' end);
    return query select * from act_answer(action, batch);
end $$;
comment on function release(uuid, int, text, boolean, boolean, boolean, boolean, bigint, text) is 'Takes the leases of '
    'a node away: the expired ones, or all of them. The jobs become ready again; fail: they become failed. A lease '
    'that has no job any more ends. count: a try is counted for jobs that had started. Up to 500 leases a call: call '
    'again as long as the answer has a cursor. Raises QT006 if the node seems to be alive, unless force is true';

create or replace function extend_find(ids uuid[], node text)
returns table (lease bigint, jobs int, job uuid, until timestamptz)
language sql stable set search_path from current as $$
    select w.lease, cardinality(w.seqs), null::uuid, w.lock_timeout from live w
    where extend_find.ids is null and w.lock_key = extend_find.node
    union all
    select w.lease, cardinality(w.seqs), i.id, w.lock_timeout
    from (select distinct unnest(extend_find.ids) as id) i
    left join lateral (select * from queue q where q.id = i.id and q.state = 'ready' offset 0) q on true
    left join lateral (select * from live w where w.queue = q.queue and w.lock_key is not null
                         and (extend_find.node is null or w.lock_key = extend_find.node)
                       and q.seq = any(w.seqs) offset 0) w on true
$$;
comment on function extend_find(uuid[], text) is 'The leases of a node, or of jobs. lease NULL: the job is in no lease';

create or replace function extend_preview(ids uuid[] default null, node text default null, by interval default '5 min')
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
    select case when f.lease is null then null else 'running' end, count(distinct coalesce(f.lease::text, f.job::text)),
           case when f.lease is null then 'in no lease'
                when f.until >= now() + extend_preview.by then 'holds longer already'
                when f.jobs = 1 then 'lease of 1 job' else format('lease of %s jobs', f.jobs) end
    from extend_find(ids, node) f group by 1, 3 order by 2 desc
$$;
comment on function extend_preview(uuid[], text, interval) is 'What extend_leases would do now: n leases, and how many '
    'jobs each holds';

create or replace function extend_leases(action uuid, batch int, ids uuid[], node text, by interval,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    rows   jsonb;
    before jsonb;
begin
    if (ids is null) = (node is null) and ids is null or by is null or by <= interval '0'
       or by > interval '365 days' then
        raise 'extend needs jobs or a node, and a time to extend by, 365 days at most' using errcode = 'QT007';
    end if;
    if act_begin(action, batch, 'extend', null, node, jsonb_build_object('ids', cardinality(ids), 'by', by), reason,
                 expected) then
        if expected is not null then
            perform check_expected(expected, (select count(distinct f.lease) from extend_find(ids, node) f));
        end if;
        with asked_for as materialized (
            select * from extend_find(ids, node)
        ), locked_leases as materialized (
            select w.lease, w.lock_timeout from work_queue w
            where w.lease = any(array(select lease from asked_for)) and w.lock_key is not null
              and (extend_leases.node is null or w.lock_key = extend_leases.node) order by w.lease + 0 for update
        ), extended as (
            update work_queue w set lock_timeout = greatest(w.lock_timeout, now() + extend_leases.by)
            from locked_leases o where w.lease = o.lease
            returning w.lease, cardinality(w.seqs) as jobs
        )
        select (select jsonb_agg(r) from (
                    select jsonb_build_object('id', u.lease::text, 'state', 'running',
                                              'why', case when u.jobs = 1 then 'lease of 1 job'
                                                          else format('lease of %s jobs', u.jobs) end) as r
                                                          from extended u
                    union all
                    select jsonb_build_object('id', coalesce(f.job::text, f.lease::text), 'why', 'in no lease')
                    from asked_for f
                    where f.lease is null or f.lease not in (select lease from extended)) z),
               (select jsonb_agg(jsonb_build_object('lease', o.lease, 'lock_timeout', o.lock_timeout))
                from locked_leases o)
        into rows, before;
        perform act_end(action, batch, rows, before);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function extend_leases(uuid, int, uuid[], text, interval, bigint, text) is 'Extends leases (of these jobs, '
    'or all leases of a node) until now + by at least. Nothing else changes, so the answers of the workers stay valid. '
    'Raises QT007 unless by is over 0 and at most 365 days';

-- 73_queues
-- Acts on queues and nodes: pause, resume, set_queue, drain_node; and the rules for the settings of a queue.

create or replace function uncut(queue text, strict boolean default true) returns bigint
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    wait   text := current_setting('lock_timeout');
    leases bigint[] := array(select l.lease from live l where l.queue = uncut.queue and l.lock_key is null);
    levels int[];
    taken  bigint[];
begin
    if strict then
        begin
            perform set_config('lock_timeout', '100ms', true);
            perform from work_queue w where w.lease = any(leases) and w.lock_key is null
            order by w.lease + 0 for update;
            perform set_config('lock_timeout', wait, true);
        exception when lock_not_available then
            raise 'somebody is just claiming jobs of queue "%" in a transaction that stays open: nothing was changed, '
                  'try again', uncut.queue
                using errcode = '55P03', hint = 'A claim belongs in a transaction of its own.';
        end;
    end if;
    with locked_leases as materialized (
        select w.lease from work_queue w where w.lease = any(leases) and w.lock_key is null
        order by w.lease + 0
        for update skip locked
    ), uncut_leases as (
        delete from work_queue w using locked_leases l where w.lease = l.lease returning w.priority, w.seqs
    )
    select array_agg(d.priority::int), array_agg(u.seq) into levels, taken from uncut_leases d, unnest(d.seqs) u (seq);
    if taken is not null then
        perform move_cursor(array_fill(uncut.queue, array[cardinality(taken)]), levels,
                            array(select s - 1 from unnest(taken) s), null);
        perform bucket_forget(uncut.queue, taken);
    end if;
    return coalesce(cardinality(taken), 0);
end $$;
comment on function uncut(text, boolean) is 'Takes back the free leases of a queue. The cursor moves back before their '
    'jobs, so the jobs keep their order. A lease that a worker is just claiming: strict waits for it (raises 55P03 '
    'after 100 ms), otherwise it is left alone. Call it under the scheduler''s lock';

create or replace function unseen(queue text, kept text) returns text
language sql stable set search_path from current as $$
    select format('no job was ever seen in queue "%s"', queue)
    || coalesce(': ' || kept || ' is kept for when one comes', '')
    where not exists (select from cursor c where c.queue = unseen.queue) and not exists (select from queue q
            where q.queue = unseen.queue)
$$;
comment on function unseen(text, text) is 'A warning for a setting of a queue that does not exist yet, perhaps because '
    'its name is misspelt; NULL: the queue exists';

create or replace function pause_preview(queue text, force boolean default false) returns table (state text, n bigint,
    why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select case when c.paused_at is null and (force or slip is null) then 'paused' end, 1::bigint,
           case when c.paused_at is not null then concat('paused already, by ', c.paused_by, ': ' || c.pause_reason)
                when force then slip else slip || '; --create pauses it for when one comes' end
    from (select unseen(pause_preview.queue, null) as slip) u left join queue_config c on c.queue = pause_preview.queue
    where pause_preview.queue is not null
$$;
comment on function pause_preview(text, boolean) is 'What pause would do now. The name of a queue that was never seen '
    'counts as a typing error, unless force is true';

create or replace function pause(action uuid, queue text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    rows jsonb;
    back bigint;
    was  jsonb;
begin
    if (length(queue) between 1 and 200) is not true then
        raise 'the name of a queue has 1 to 200 characters, not %', coalesce(length(queue), 0) using errcode = 'QT007';
    end if;
    if act_begin(action, 1, 'pause', queue, null, '{}', reason, null) then
        perform from queue_config c where c.queue = pause.queue for update;
        perform scheduler_lock(true);
        insert into queue_config (queue) values (queue) on conflict do nothing;
        update queue_config c set paused_at = now(), paused_by = session_user, pause_reason = pause.reason
        where c.queue = pause.queue and c.paused_at is null;
        if not found then
            rows := jsonb_build_array(jsonb_build_object('id', queue, 'why', 'paused already'));
        else
            back := uncut(queue);
            was := jsonb_build_object('queue', queue, 'since', now());
            rows := jsonb_build_array(jsonb_build_object('id', queue, 'state', 'paused',
                'why', coalesce(unseen(queue, 'the pause'), format('%s jobs taken back', back))));
        end if;
        perform act_end(action, 1, rows, was);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function pause(uuid, text, text) is 'Pauses a queue: from now on no job of it is claimed. Running jobs go '
    'on to their end; ready jobs keep their order';

create or replace function resume(action uuid, queue text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    was jsonb;
begin
    if act_begin(action, 1, 'resume', queue, null, '{}', reason, null) then
        select to_jsonb(c) into was from queue_config c where c.queue = resume.queue and c.paused_at is not null
        for update;
        if was is not null then
            update queue_config c set paused_at = null, paused_by = null, pause_reason = null
            where c.queue = resume.queue;
            perform wake_queue(queue);
        end if;
        perform act_end(action, 1,
                        jsonb_build_array(jsonb_build_object('id', queue, 'state',
                                                             case when was is not null then 'resumed' end,
            'why', case when was is null then coalesce(unseen(queue, null), 'not paused') end)), was);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function resume(uuid, text, text) is 'Ends a pause: jobs of the queue can be claimed again';

create or replace function rate_of(value text) returns numeric
language sql immutable strict set search_path from current as $$
    select n::numeric / case unit when 'min' then 60 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 else 1 end
    from (select m[1] as n, m[2] as unit from regexp_match(rate_of.value, '^ *([0-9]{1,9}(?:[.][0-9]{1,9})?) *(?:/ '
                                                                          '*(s|min|m|h|d))? *$') m) z
$$;
comment on function rate_of(text) is 'Jobs a second, from a text such as 20, 20/s, 100/min, 5/h or 1/d; NULL = the '
    'text is invalid';

create or replace function duration_text(t interval) returns text
language sql immutable strict set search_path from current as $$
    select case when ms = 0 then '0s' when ms % 86400000 = 0 then ms / 86400000 || 'd'
                when ms % 3600000 = 0 then ms / 3600000 || 'h'
                when ms % 60000 = 0 then ms / 60000 || 'm' when ms % 1000 = 0 then ms / 1000 || 's' else ms || 'ms' end
    from (select round(extract(epoch from duration_text.t) * 1000)::bigint as ms) z
$$;
comment on function duration_text(interval) is 'A duration in the largest unit that gives a whole number: 90s, 5m, 2h, '
    '7d';

-- One row a setting; its name is a column of queue_config. The comment above the row has the texts for people,
-- separated by |: place and label in the form of limits | option and value of `queuetop queue` | sentence | what --help
-- adds to the sentence | what the form adds to it (_ = a blank). The build makes gen/settings.def of these comments.
create or replace function setting_rules()
returns table (name text, kind text, low numeric, high numeric, standard text, note text)
language sql immutable set search_path from current as $$
    values ('paused', 'flag', 0, 1, 'false', 'jobs of the queue are not claimed'),
           -- 5 weight | --weight N | share of the queue when several queues wait | (1) | : 1 to 1000
           ('weight', 'number', 1, 1000, '1', 'share of the queue when several queues wait'),
           -- 1 limit | --limit N | how many jobs may run at the same time | | ; none: no limit
           ('max_running', 'number', 0, 1000000, null, 'how many jobs may be in leases at the same time'),
           -- 2 rate | --rate RATE | how many jobs may start: 20/s, 100/min, 5/h | | ; none: no limit
           ('rate', 'rate', 0.000001, 1000000, null, 'how many jobs may start, over a long time'),
           -- 3 burst | --burst N | how many jobs may start at once after a quiet time | | ; none: as many as in 1 s
           ('burst', 'number', 1, 1000000, null,
            'how many jobs may start at once after a quiet time; none = one second of the rate'),
           -- 4 per key | --per-key N | how many jobs of one concurrency key may run at once | (1) | ; none: 1
           ('max_per_key', 'number', 1, 1000000, null,
            'how many jobs of one concurrency key may run at the same time; none = 1'),
           -- 6 chunk | --chunk N | how many jobs a lease holds | (measured) | , 1 to 100; none: measured
           ('chunk', 'number', 1, 100, null, 'how many jobs a lease holds; none = measured, about a second of work'),
           -- 7 lease timeout | --timeout T | how long a worker may be silent | (1m) | : 90s, 5m
           ('lease_timeout', 'time', 0.001, 31536000, '1m', 'how long a worker may be silent'),
           -- 8 run timeout | --run-timeout T | how long a job may run | | : 10m, 2h; none: no limit
           ('run_timeout', 'time', 0.001, 31536000, null, 'how long a job may run'),
           -- 9 max tries | --max-tries N | tries before a job counts as failed | (5) |
           ('max_tries', 'number', 1, 32767, '5', 'tries before a job counts as failed'),
 -- 10 first retry | --backoff TIMES | wait before the first retry | and the longest wait (5s..1h) |; it doubles: 5s
           ('backoff_base', 'time', 0, 31536000, '5s', 'wait before the first retry; each further retry doubles it'),
           -- 11 last retry | | longest wait before a retry | | : 1h
           ('backoff_max', 'time', 0, 31536000, '1h', 'longest wait before a retry'),
           -- 12 retention | --retention T | how long finished jobs are kept | (7d) | : 12h, 7d
           ('retention', 'time', 0.001, 3153600000, '7d', 'how long finished jobs are kept'),
 -- 13 history | --history WHAT | what is kept of finished jobs: | none, meta, full |_none, meta (no payload), full
           ('history', 'word', 0, 0, 'full', 'what is kept of finished jobs: none, meta (no payload, no result), full')
$$;
comment on function setting_rules() is 'What can be set for a queue, and how';

create or replace function setting_value(name text, value text) returns text
language plpgsql immutable set search_path from current as $$
#variable_conflict use_column
declare
    r record;
    v numeric;
begin
    select * into r from setting_rules() s where s.name = setting_value.name;
    if r.name is null then
        raise 'a queue has no setting "%"', left(name, 100) using errcode = 'QT007',
            hint = 'There are: ' || (select string_agg(s.name, ', ') from setting_rules() s);
    elsif value is null or value = 'default' or value = 'none' and r.standard is null then
        return r.standard;
    end if;
    begin
        v := case r.kind when 'number' then case when value ~ '^[0-9]{1,9}$' then value::numeric end
                  when 'rate' then rate_of(value)
                         when 'time' then extract(epoch from value::interval)::numeric
                             when 'flag' then value::boolean::int::numeric
                         else case when value in ('none', 'meta', 'full') then 0 end end;
    exception when others then
        v := null;
    end;
    if v is null or v not between r.low and r.high then
        raise '% takes %, not "%"', name, case r.kind
                when 'number' then format('a whole number from %s to %s', r.low, r.high)
                when 'rate' then 'a number of jobs up to 1000000 a second, such as 20/s, 100/min or 5/h'
                when 'time' then format('a time from %s to %s, such as 90s, 5m or 7d',
                                        duration_text(r.low * interval '1 s'),
                                        duration_text(r.high * interval '1 s'))
                when 'flag' then 'true or false' else 'none, meta or full' end || ', or default', left(value, 100)
                using errcode = 'QT007';
    end if;
    return case r.kind when 'rate' then v::text when 'flag' then (v = 1)::text
                when 'time' then (v || ' s')::interval::text else value end;
end $$;
comment on function setting_value(text, text) is 'The value in the form that the column takes; for NULL and "default" '
    'the standard value. Raises QT007 and names the allowed values if it is invalid';

create or replace function setting_shown(c queue_config)
returns table (name text, value text)
language sql immutable set search_path from current as $$
    select r.name, case when j.v is null then 'none' when r.kind = 'time' then duration_text(j.v::interval)
                        when r.kind <> 'rate' then j.v
                        when round(c.rate, 9) = round(c.rate) then round(c.rate)::text || '/s'
                        when round(c.rate * 60, 9) = round(c.rate * 60) then round(c.rate * 60)::text || '/min'
                        when round(c.rate * 3600, 8) = round(c.rate * 3600) then round(c.rate * 3600)::text || '/h'
                        else trim_scale(round(c.rate, 9))::text || '/s' end
    from setting_rules() r
    cross join lateral (select case r.name when 'paused' then (c.paused_at is not null)::text
                                    else to_jsonb(c) ->> r.name end as v) j
$$;
comment on function setting_shown(queue_config) is 'The settings of a queue as text for people, one row a setting';

create or replace function unset_queue() returns queue_config
language sql immutable set search_path from current as $$
    select jsonb_populate_record(null::queue_config, (select jsonb_object_agg(r.name, r.standard) from setting_rules() r
                                                      where r.name <> 'paused'))
$$;
comment on function unset_queue() is 'The settings of a queue for which nothing has been set';

create or replace function queue_settings(queue text)
returns table (setting text, value text, standard text, note text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select s.name, s.value, coalesce(r.standard, 'none'),
           r.note || case when s.name = 'paused' and c.paused_at is not null
                          then coalesce(', by ' || c.paused_by || coalesce(': ' || c.pause_reason, ''), '') else '' end
    from (select * from queue_config q where q.queue = queue_settings.queue
          union all
          select (unset_queue()).* where not exists (select from queue_config q where q.queue = queue_settings.queue)
            and unseen(queue_settings.queue, null) is null) c
    cross join lateral setting_shown(c) with ordinality s (name, value, o)
    join setting_rules() r on r.name = s.name
    order by s.o
$$;
comment on function queue_settings(text) is 'The settings of a queue, one row a setting; no row if the queue was never '
    'seen and never set';

create or replace function set_queue_preview(queue text, settings jsonb)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    was  queue_config;
    will queue_config;
    diff text;
    seen jsonb := settings -> 'was';
begin
    if queue is null or settings is null then
        return;
    elsif not (length(queue) between 1 and 200 and jsonb_typeof(settings) = 'object') then
        raise 'a queue has a name of 1 to 200 characters, its settings are a JSON object' using errcode = 'QT007';
    end if;
    select * into was from queue_config c where c.queue = set_queue_preview.queue;
    if not found then
        was := unset_queue();
    end if;
    will := jsonb_populate_record(was, (select jsonb_object_agg(k, setting_value(k, v))
                                        from jsonb_each_text(settings - 'was') s (k, v)));
    select string_agg(format('%s is %s now', a.name, a.value), '; ' order by a.o) into diff
    from setting_shown(was) with ordinality a (name, value, o) where seen ->> a.name <> a.value;
    if diff is not null then
        n := 1;
        why := 'changed meanwhile: ' || diff;
        return next;
        return;
    end if;
    if settings ? 'paused' then
        will.paused_at := case when setting_value('paused', settings ->> 'paused')::boolean then coalesce(was.paused_at,
                now()) end;
    end if;
    select string_agg(format('%s %s, was %s', b.name, b.value, a.value), '; ' order by b.o) into diff
    from setting_shown(will) with ordinality b (name, value, o) join setting_shown(was) a on a.name = b.name
        and a.value <> b.value;
    state := case when diff is not null then 'set' end;
    n := 1;
    why := concat_ws('; ', coalesce(diff, 'it is so already'), unseen(queue, 'this'));
    return next;
end $$;
comment on function set_queue_preview(text, jsonb) is 'What set_queue would change; raises QT007 if a setting is '
    'unknown or out of range';

create or replace function put_settings(queue text, settings jsonb) returns void
language plpgsql set search_path from current as $$
begin
    execute (select format('update queue_config c set %s from (select v.* from queue_config o '
                           'cross join lateral jsonb_populate_record(o, $1) v where o.queue = $2) x '
                           'where c.queue = $2', string_agg(format('%1$I = x.%1$I', r.name), ', '))
             from setting_rules() r where r.name <> 'paused') using settings, queue;
end $$;
comment on function put_settings(text, jsonb) is 'Gives a queue these settings ({name: value of the column}) and '
    'leaves the others as they are. It can set every setting of setting_rules() except paused';

create or replace function set_queue(action uuid, queue text, settings jsonb, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    s   jsonb;
    p   record;
    was jsonb;
begin
    perform set_queue_preview(coalesce(queue, ''), coalesce(settings, 'null')); -- raises if there is no such setting
    if act_begin(action, 1, 'set', queue, null, settings - 'was', reason, null) then
        perform from queue_config c where c.queue = set_queue.queue for update;
        perform scheduler_lock(true);
        select * into p from set_queue_preview(queue, settings);
        if p.state is null then
            perform act_end(action, 1, jsonb_build_array(jsonb_build_object('id', queue, 'why', p.why)));
            return query select * from act_answer(action, 1);
            return;
        end if;
        select jsonb_object_agg(k, setting_value(k, v)) into s from jsonb_each_text(settings - 'was') x (k, v);
        insert into queue_config (queue) values (queue) on conflict do nothing;
        select to_jsonb(c) into was from queue_config c where c.queue = set_queue.queue for update;
        perform bucket_settle(queue);
        perform uncut(queue);
        perform put_settings(queue, s);
        update queue_config c set
            paused_at = case s ->> 'paused' when 'true' then coalesce(c.paused_at, now()) when 'false' then null
                             else c.paused_at end,
            paused_by = case s ->> 'paused' when 'true' then coalesce(c.paused_by, session_user) when 'false' then null
                             else c.paused_by end,
            pause_reason = case s ->> 'paused' when 'true' then coalesce(set_queue.reason, c.pause_reason)
                                when 'false' then null else c.pause_reason end
        where c.queue = set_queue.queue;
        delete from bucket b where b.queue = set_queue.queue and not exists (select from queue_config c
                where c.queue = set_queue.queue and c.rate is not null);
        perform wake_queue(queue);
        perform act_end(action, 1, jsonb_build_array(jsonb_build_object('id', queue, 'state', p.state, 'why', p.why)),
                        was);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function set_queue(uuid, text, jsonb, text) is 'Changes settings of a queue (setting_rules names them), for '
    'example {"max_running": 4, "rate": "100/min"}; null or "default" = the default. With {"was": {"max_running": '
    '"none"}} a setting is changed only if it still has that value. Jobs that are cut but not claimed are cut anew';

create or replace function drain_node(action uuid, node text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    if act_begin(action, 1, 'drain', null, node, '{}', reason, null) then
        update node x set state = 'draining' where x.lock_key = drain_node.node and x.state = 'up';
        perform act_end(action, 1,
                        jsonb_build_array(case when found then jsonb_build_object('id', node, 'state', 'draining')
            else jsonb_build_object('id', node, 'why',
                                    case when exists (select from node x where x.lock_key = drain_node.node)
                                                     then 'draining already' else 'no such node is registered' end)
                                                     end));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function drain_node(uuid, text, text) is 'Drains a node: it takes no more jobs, and ends when its own are '
    'done. It learns that with its next heartbeat';

-- 74_remove
-- Cancel, discard and delete jobs, by id or by filter; purge finished jobs.
-- A job in a free lease leaves the lease first. A job that runs is only asked to end.

create or replace function remove_jobs(action uuid, ids uuid[], verb text, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    done    uuid[] := finished_jobs(ids);
    held    uuid[] := lock_waiting(ids);
    running uuid[] := '{}';
    busy    uuid[] := '{}';
begin
    -- the scheduler's lock is not needed if all jobs have failed
    if exists (select from queue q where q.id = any(ids) and q.state::text = 'ready') then
        select u.runs, u.busy into running, busy from uncut_jobs(ids) u;
        held := held || lock_jobs(ids, held || busy);
    end if;
    with wanted as materialized (
        select distinct unnest(ids) as id
    ), locked as materialized (
        select q.*, q.id = any(running) as runs from queue q where q.id = any(held)
    ), asked as (
        update queue q set cancel_asked = now(), last_action = action from locked l
        where q.id = any(ids) and q.id = l.id and l.runs and verb = 'cancel' and l.cancel_asked is null
        returning q.id
    ), gone as (
        delete from queue q using locked l
        where q.id = any(ids) and q.id = l.id and not l.runs and (verb <> 'cancel' or l.state <> 'failed')
        returning q.*
    ), kept as (
        insert into history (id, created, finished, state, priority, tries, max_tries, queue, kind, payload, body,
                             payload_type, error, unique_key, origin_id, last_action, kept, run_after, lease_timeout,
                             run_timeout, concurrency_key)
        select g.id, created, now(), case when g.state = 'failed' then g.state else 'cancelled' end, priority, tries,
               g.max_tries, g.queue, kind, case when keep then payload end, case when keep then body end, payload_type,
               error, unique_key, origin_id, action, keep, run_after, g.lease_timeout, g.run_timeout, g.concurrency_key
        from gone g left join queue_config c on c.queue = g.queue
        cross join lateral (select verb = 'discard' or coalesce(c.history, 'full') = 'full' as keep) k
        where verb <> 'delete' and (verb = 'discard' or c.history is distinct from 'none')
    ), counted as (
        insert into delta (queue, priority, error_key, blocked, ready, scheduled, retry, failed, cancelled)
        select queue, priority, null, -count(*) filter (where state = 'blocked'),
               -count(*) filter (where state = 'ready'), -count(*) filter (where state = 'scheduled'),
               -count(*) filter (where state = 'retry'), -count(*) filter (where state = 'failed'),
               count(*) filter (where verb = 'cancel')
        from gone group by 1, 2
        union all
        select queue, 0, error_key, 0, 0, 0, 0, -count(*), 0 from gone
        where state = 'failed' and error_key is not null group by 1, 3)
    select jsonb_agg(jsonb_build_object('id', w.id, 'state', b.becomes, 'why', case
               when l.id is not null then b.why
               when w.id = any(done) then 'finished'
               else coalesce((select left_alone(q.state, q.id = any(busy)) from queue q where q.id = w.id),
                             'no such job') end)),
           jsonb_agg(jsonb_build_object('id', l.id, 'seq', l.seq, 'state', l.state, 'queue', l.queue, 'kind', l.kind,
               'tries', l.tries, 'run_after', l.run_after, 'expires_at', l.expires_at, 'changed', l.changed,
               'finished', now())) filter (where g.id is not null)
    into rows, was
    from wanted w left join locked l using (id) left join gone g using (id) left join asked a using (id)
    left join lateral act_becomes(verb, l.state, l.runs, a.id is null, l.priority, null, null, null) b
        on l.id is not null;
    rows := in_order(rows, ids);
end $$;
comment on function remove_jobs(uuid, uuid[], text) is 'Cancels, discards or deletes jobs: takes them out of queue '
    'and, unless they are deleted, into history. A cancel only asks running jobs to end';

create or replace function cancel(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from act_on(action, batch, 'cancel', ids, '{}', reason) $$;
comment on function cancel(uuid, int, uuid[], text) is 'Cancels jobs. Waiting jobs end as cancelled. Running jobs are '
    'asked to end: their workers learn it with the next extend. Failed jobs are left alone';

create or replace function discard(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from act_on(action, batch, 'discard', ids, '{}', reason) $$;
comment on function discard(uuid, int, uuid[], text) is 'Discards jobs: failed and waiting jobs go to history as they '
    'are, with their payload, so undo brings them back. Running jobs are left alone';

create or replace function delete_jobs(action uuid, batch int, ids uuid[], reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as
$$ select * from act_on(action, batch, 'delete', ids, '{}', reason) $$;
comment on function delete_jobs(uuid, int, uuid[], text) is 'Deletes failed and waiting jobs without a trace in '
    'history, so there is no undo. Running jobs are left alone';

create or replace function cancel_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_where(action, batch, 'cancel',
                            (queue, states, kind, error, before, coalesce("limit", 1000), after, expected), '{}',
                            reason)
$$;
comment on function cancel_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is
    'cancel() for all jobs that match; the arguments as in requeue_where';

create or replace function discard_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_where(action, batch, 'discard',
                            (queue, states, kind, error, before, coalesce("limit", 1000), after, expected), '{}',
                            reason)
$$;
comment on function discard_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is
    'discard() for all jobs that match; the arguments as in requeue_where';

create or replace function delete_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language sql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_where(action, batch, 'delete',
                            (queue, states, kind, error, before, coalesce("limit", 1000), after, expected), '{}',
                            reason)
$$;
comment on function delete_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, text) is
    'delete_jobs() for all jobs that match; the arguments as in requeue_where';

create or replace function remove_preview(verb text, ids uuid[] default null, queue text default null,
    states text[] default null, kind text default null, error text default null, before timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_preview(verb, ids, (queue, states, kind, error, before, null, null, null))
$$;
comment on function remove_preview(text, uuid[], text, text[], text, text, timestamptz) is 'What cancel, discard or '
    'delete (verb) would do now: n jobs that would get a state (NULL: left alone). why: the reason, or the present '
    'state of the jobs';

create or replace function purge_preview(queue text default null, states text[] default null,
    before timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set jit = off as $$
    select 'purged', count(*), h.state::text from history h
    where (purge_preview.queue is null or h.queue = purge_preview.queue)
      and h.state::text = any(coalesce(states, '{completed,cancelled}')) and h.finished < coalesce(before, now())
    group by h.state
    union all
    select 'purged', count(*), 'failed, still to requeue' from queue q
    where 'failed' = any(states) and q.state = 'failed'
      and (purge_preview.queue is null or q.queue = purge_preview.queue) and q.changed < coalesce(before, now())
    having count(*) > 0
$$;
comment on function purge_preview(text, text[], timestamptz) is 'How many finished jobs purge would delete now, by '
    'state (why)';

create or replace function purge_days(states text[], before timestamptz) returns jsonb
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    part text;
    day  date;
    days text[] := '{}';
    ns   bigint[] := '{}';
    rows jsonb := '[]';
    n    bigint;
    keep bigint;
    wait text := current_setting('lock_timeout');
begin
    -- All days are counted before the first is dropped: from the first drop on every completion waits until we commit.
    -- The counts stay true, because new rows go to the partition of today.
    for part, day in
        select c.relname, to_date(right(c.relname, 8), 'YYYYMMDD')
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'history'::regclass order by 2 loop
        continue when day + 1 > (before at time zone 'UTC') or day >= (now() at time zone 'UTC')::date;
        execute format('select count(*), count(*) filter (where state::text <> all($1)) from %I', part)
        into n, keep using states;
        if keep = 0 then
            days := days || part;
            ns := ns || n;
        end if;
    end loop;
    perform set_config('lock_timeout', '50ms', true);
    for i in 1 .. cardinality(days) loop
        begin
            execute format('drop table %I', days[i]);
            if ns[i] > 0 then
                rows := rows || jsonb_build_object('id', days[i], 'state', 'purged', 'why', 'the whole day',
                                                   'n', ns[i]);
            end if;
        exception when lock_not_available then
            -- somebody reads the day: its rows are deleted one by one. No second try, because completions wait behind
            -- each
            exit;
        end;
    end loop;
    perform set_config('lock_timeout', wait, true);
    return rows;
end $$;
comment on function purge_days(text[], timestamptz) is 'Drops whole days of history until a drop would have to wait '
    'for a lock. Returns the rows of the answer';

create or replace function purge_some(part text, queue text, states text[], before timestamptz, block bigint,
    since timestamptz, "limit" int, out rows jsonb, out n bigint, out until timestamptz)
language plpgsql set search_path from current set enable_seqscan = off set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    execute format($x$
        with found as materialized (
            select h.ctid as place, h.finished from %1$I h
            where h.state::text = any($2) and h.finished < $3 and %2$s limit $6
        ), deleted as (
            delete from %1$I h using found f where h.ctid = f.place returning h.queue, h.state
        ), sums as (
            select d.queue, d.state, count(*) as n from deleted d group by 1, 2
        )
        select jsonb_agg(jsonb_build_object('id', s.queue, 'state', 'purged', 'why', s.state, 'n', s.n)
                         order by s.queue, s.state),
               (select count(*) from found), (select max(f.finished) from found f)
        from sums s $x$, part,
        case when queue is not null then 'h.queue = $1 and h.finished >= $5 order by h.finished'
             when block is not null then format('h.ctid >= %L and h.ctid < %L', format('(%s,0)', block),
                                                format('(%s,0)', block + 512))
             else 'true' end)
    into rows, n, until using queue, states, before, block, since, "limit";
    rows := coalesce(rows, '[]');
end $$;
comment on function purge_some(text, text, text[], timestamptz, bigint, timestamptz, int) is 'For purge: deletes up to '
    'limit rows of one day: those of a queue from a time on, or of all queues from a block on. So no call reads the '
    'rows that earlier calls deleted. n: how many rows; until: when the last of them finished';

create or replace function purge_finished(queue text, states text[], before timestamptz, "limit" int, inout at jsonb,
    out rows jsonb, out n bigint)
language plpgsql set search_path from current set timezone = 'UTC' as $$
declare
    -- only servers of this version or later can start to read at a block
    placed boolean := current_setting('server_version_num')::int >= 140000;
    looked int := 0;
    part   text;
    block  bigint;
    since  timestamptz;
    got    record;
begin
    rows := '[]'; n := 0;
    for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent = 'history'::regclass and c.relname >= coalesce(at ->> 1, '') order by 1 loop
        -- not in the query, which might evaluate it for other names
        continue when to_date(right(part, 8), 'YYYYMMDD') >= before;
        block := case when queue is not null or not placed then null
                      when part = at ->> 1 then (at ->> 2)::bigint else 0 end;
        since := case when part = at ->> 1 and queue is not null then (at ->> 2)::timestamptz else '-infinity' end;
        loop
            select * into got from purge_some(part, queue, states, before, block, since, ("limit" - n)::int);
            rows := rows || got.rows;
            n := n + got.n;
            looked := looked + 1;
            if n >= "limit" or looked >= 100 then -- a look reads 4 MB at most
                at := jsonb_build_array('h', part, coalesce(
                    to_jsonb(block + case when n < "limit" then 512 else 0 end), to_jsonb(got.until)));
                return;
            end if;
            exit when block is null or block + 512 >=
                      pg_relation_size(quote_ident(part)::regclass) / current_setting('block_size')::int;
            block := block + 512;
        end loop;
    end loop;
    at := null;
end $$;
comment on function purge_finished(text, text[], timestamptz, int, jsonb) is 'For purge: deletes up to limit rows of '
    'history, from where the batch before ended (at; NULL = from the beginning). Returns in at where it ended, NULL = '
    'nothing is left';

create or replace function purge_failed(queue text, before timestamptz, "limit" int, inout at jsonb, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids uuid[];
begin
    select array_agg(f.id), (array_agg(jsonb_build_array('q', f.queue, f.seq) order by f.queue desc, f.seq desc))[1]
    into ids, at
    from (select q.id, q.queue, q.seq from queue q
          where q.state = 'failed' and (purge_failed.queue is null or q.queue = purge_failed.queue)
            and q.changed < purge_failed.before
            and (q.queue, q.seq) > (coalesce(at ->> 1, ''), coalesce(at ->> 2, '0')::bigint)
          order by q.queue, q.seq limit purge_failed."limit" for update skip locked) f;
    with gone as (
        delete from queue q where q.id = any(ids) and q.state::text = 'failed'
        returning q.queue, q.priority, q.error_key
    ), counted as (
        insert into delta (queue, priority, error_key, failed)
        select queue, priority, null, -count(*) from gone group by 1, 2
        union all
        select queue, 0, error_key, -count(*) from gone where error_key is not null group by 1, 3)
    select coalesce(jsonb_agg(jsonb_build_object('id', s.queue, 'state', 'purged', 'why', 'failed', 'n', s.n)), '[]')
    into rows
    from (select queue, count(*) as n from gone group by 1 order by 1) s;
    if coalesce(cardinality(ids), 0) < "limit" then
        at := null;
    end if;
end $$;
comment on function purge_failed(text, timestamptz, int, jsonb) is 'For purge: deletes up to limit failed jobs, from '
    'where the batch before ended (at; NULL = from the beginning). Returns in at where it ended, NULL = nothing is '
    'left';

create or replace function purge_batch(queue text, states text[], before timestamptz, "limit" int, inout at jsonb,
    out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    n    bigint := 0;
    more record;
begin
    rows := '[]';
    if at ->> 0 is distinct from 'q' then
        select * into more from purge_finished(queue, states, before, "limit", at);
        rows := more.rows;
        n := more.n;
        at := more.at;
    end if;
    if at ->> 0 is distinct from 'h' and 'failed' = any(states) then
        select * into more from purge_failed(queue, before, ("limit" - n)::int, at);
        rows := rows || more.rows;
        at := more.at;
    end if;
    select coalesce(jsonb_agg(to_jsonb(s) order by s.id, s.why), '[]') into rows
    from (select r.id, r.state, r.why, sum(r.n) as n
          from jsonb_to_recordset(rows) r (id text, state text, why text, n bigint) group by 1, 2, 3) s;
end $$;
comment on function purge_batch(text, text[], timestamptz, int, jsonb) is 'One batch of a purge, from where the batch '
    'before ended (at; NULL = from the beginning). Returns in at where it ended, NULL = nothing is left';

create or replace function purge(action uuid, batch int, queue text, states text[], before timestamptz,
    "limit" int default 10000, expected bigint default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set jit = off as $$
#variable_conflict use_column
declare
    ended text[] := coalesce(states, '{completed,cancelled}');
    upto  timestamptz := coalesce(before, now());
    lim   int := coalesce("limit", 10000);
    at    jsonb; -- where the batch before this one ended
    done  record;
    days  jsonb := '[]';
begin
    perform portion_check(lim, null);
    if not ended <@ '{completed,cancelled,failed}' then
        raise 'only completed, cancelled and failed jobs can be purged' using errcode = 'QT007';
    end if;
    if act_begin(action, batch, 'purge', queue, null, jsonb_build_object('states', ended, 'before', upto), reason,
                 expected) then
        if batch = 1 and expected is not null then
            perform check_expected(expected, (select coalesce(sum(p.n), 0)::bigint
                                              from purge_preview(queue, ended, upto) p));
        end if;
        if queue is null and batch = 1 then
            days := purge_days(ended, upto);
        end if;
        if days <> '[]' then -- the lock on history should be short: the next batch does the rest
            perform act_end(action, batch, days, null, '["h"]');
        else
            select case when b.cursor like '[%' then b.cursor::jsonb end into at
            from audit_batch b where b.action = purge.action and b.batch = purge.batch - 1;
            select * into done from purge_batch(queue, ended, upto, lim, at);
            perform act_end(action, batch, done.rows, null, done.at::text);
        end if;
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function purge(uuid, int, text, text[], timestamptz, int, bigint, text) is 'Deletes jobs that finished '
    'before a time. Whole days of history are dropped as partitions if no lock prevents it; of the rest each call '
    'deletes up to limit rows: call again as long as the answer has a cursor. states with failed: also failed jobs, '
    'which could still be requeued. Raises QT007 for other states';

-- 75_schedules
-- Acts on schedules: set (add or change), pause, resume, run now, remove. The audit records each as "schedule ..." with
-- the name of the schedule, and with the schedule as it was before.

create or replace function schedule_begin(action uuid, verb text, name text, settings jsonb, reason text)
    returns boolean
language plpgsql set search_path from current as $$
declare
    fresh boolean := act_begin(action, 1, verb, null, null, coalesce(settings, '{}') || jsonb_build_object('schedule',
            name), reason, null);
begin
    if (select a.params ->> 'schedule' from audit a where a.action = schedule_begin.action) is distinct from name then
        raise 'action % is another schedule''s: use a new uuid for another action', action using errcode = 'QT007';
    end if;
    return fresh;
end $$;
comment on function schedule_begin(uuid, text, text, jsonb, text) is 'act_begin for a schedule';

create or replace function schedule_was(s schedule) returns jsonb
language sql stable set search_path from current as $$
    -- the payload as text, so that it is kept unchanged
    select case when s.name is not null then to_jsonb(s) || jsonb_build_object('payload', s.payload::text) end
$$;
comment on function schedule_was(schedule) is 'A schedule in the form in which the audit keeps it: its payload as text';

create or replace function whole_number(settings jsonb, name text, low int, high int) returns int
language plpgsql immutable set search_path from current as $$
declare
    value text := settings ->> name;
begin
    if value !~ '^-?[0-9]{1,9}$' or not value::int between low and high then
        raise '% is a whole number from % to %, not "%"', name, low, high, left(value, 100) using errcode = 'QT007';
    end if;
    return value;
end $$;
comment on function whole_number(jsonb, text, int, int) is 'A number from settings; NULL if settings has no such name. '
    'Raises QT007 with the allowed range';

create or replace function schedule_check(name text, settings jsonb, payload text, was schedule) returns schedule
language plpgsql stable set search_path from current as $$
#variable_conflict use_column
declare
    allowed text[] := '{cron,tz,queue,kind,priority,payload_type,unique,max_tries,catch_up,comment}';
    o       jsonb := coalesce(settings, '{}');
    wrong   text;
    s       schedule := was;
begin
    wrong := (select string_agg(k, ', ') from jsonb_object_keys(case jsonb_typeof(o) when 'object' then o end) k
              where k <> all(allowed || '{payload}'));
    if wrong is not null then
        raise 'a schedule has no setting %', left(wrong, 200)
            using errcode = 'QT007', hint = 'There are: ' || array_to_string(allowed, ', ');
    elsif jsonb_typeof(o) <> 'object' then
        raise 'the settings of a schedule are a JSON object, not %', jsonb_typeof(o) using errcode = 'QT007';
    end if;
    s.name := name;
    s.cron := coalesce(o ->> 'cron', s.cron);
    s.tz := case when o ? 'tz' or s.tz is null then cron_zone(coalesce(o ->> 'tz', 'UTC')) else s.tz end;
    s.queue := coalesce(o ->> 'queue', s.queue);
    s.kind := case when o ? 'kind' then coalesce(o ->> 'kind', '') else coalesce(s.kind, '') end;
    s.priority := coalesce(whole_number(o, 'priority', 0, 9), case when not o ? 'priority' then s.priority end, 5);
    s.only_one := case when o ? 'unique' then coalesce((o ->> 'unique')::boolean, false)
                       else coalesce(s.only_one, false) end;
    s.max_tries := case when o ? 'max_tries' then whole_number(o, 'max_tries', 1, 32767) else s.max_tries end;
    s.catch_up := case when o ? 'catch_up' then coalesce(o ->> 'catch_up', 'latest')
                       else coalesce(s.catch_up, 'latest') end;
    s.comment := case when o ? 'comment' then o ->> 'comment' else s.comment end;
    if payload is not null or o ? 'payload' or o ? 'payload_type' then
        perform check_size(octet_length(payload));
        s.payload_type := o ->> 'payload_type';
        begin
            s.payload := case when s.payload_type is null then payload::json end;
        exception when invalid_text_representation then
            raise 'payload: %: "%"', sqlerrm, left(payload, 60)
                using errcode = 'QT007', hint = 'with a payload type it is a text of that type';
        end;
        s.body := case when s.payload_type is not null then convert_to(coalesce(payload, ''), 'UTF8') end;
    end if;
    if coalesce(name, '') = '' or s.cron is null or s.queue is null then
        raise 'a new schedule needs a name, a cron line and a queue' using errcode = 'QT007';
    elsif length(name) > 200 or length(s.queue) not between 1 and 200 or length(s.kind) > 200 then
        raise 'name, queue and kind have 200 characters at most' using errcode = 'QT007';
    elsif length(s.cron) > 1000 or length(s.comment) > 1000 or length(s.payload_type) > 200 then
        raise 'a cron line and a comment have 1000 characters at most, a payload type 200' using errcode = 'QT007';
    elsif s.priority not between 0 and 9 or s.max_tries < 1 then
        raise 'priority is 0 (soonest) to 9, max_tries 1 at least' using errcode = 'QT007';
    elsif s.catch_up not in ('none', 'latest', 'all') then
        raise 'catch_up is none, latest or all, not "%"', left(s.catch_up, 100) using errcode = 'QT007';
    elsif s.only_one and s.catch_up = 'all' then
        raise 'unique and catch_up all exclude each other: of the missed runs one could wait only'
            using errcode = 'QT007';
    end if;
    s.next_run := cron_next(s.cron, s.tz, case when s.last_run < now() + interval '3 h' then greatest(s.last_run, now())
                                               else now() end);
    return s;
exception when invalid_text_representation or numeric_value_out_of_range then
    raise '%', sqlerrm using errcode = 'QT007';
end $$;
comment on function schedule_check(text, jsonb, text, schedule) is 'The schedule that these settings would give. Its '
    'next time is after its last run, so a clock that was set back repeats no run. Raises QT007 with what is wrong';

create or replace function schedule_words(s schedule) returns text
language sql stable set search_path from current as $$
    select 'next ' || string_agg(to_char(t at time zone s.tz,
                                         case when s.cron ~* '@every' then 'Dy YYYY-MM-DD HH24:MI:SS'
                                              else 'Dy YYYY-MM-DD HH24:MI' end), ', ' order by t)
           || ' ' || s.tz
    from (with recursive next_runs (i, t) as (select 1, s.next_run union all select i + 1, cron_next(s.cron, s.tz, t)
                                              from next_runs where i < 3)
          select t from next_runs) z
$$;
comment on function schedule_words(schedule) is 'The next three times of a schedule, for people';

create or replace function schedule_preview(name text, settings jsonb, payload text) returns table (state text,
    why text, n bigint)
language plpgsql stable security definer set search_path from current as $$
#variable_conflict use_column
declare
    was schedule;
begin
    select * into was from schedule s where s.name = schedule_preview.name;
    return query select case when was.name is null then 'added' else 'changed' end,
                        schedule_words(schedule_check(name, settings, payload, was)), 1::bigint;
end $$;
comment on function schedule_preview(text, jsonb, text) is 'What schedule_set would do; raises the same errors';

create or replace function schedule_put(s schedule) returns void
language sql set search_path from current as $$
    insert into schedule select s.*
    on conflict (name) do update set
        (cron, tz, queue, kind, priority, payload, body, payload_type, only_one, max_tries, catch_up, comment, changed,
         paused_at, paused_by, pause_reason, next_run, last_run, last_job, runs_from, error, error_at) =
        (excluded.cron, excluded.tz, excluded.queue, excluded.kind, excluded.priority, excluded.payload, excluded.body,
         excluded.payload_type, excluded.only_one, excluded.max_tries, excluded.catch_up, excluded.comment,
         excluded.changed, excluded.paused_at, excluded.paused_by, excluded.pause_reason, excluded.next_run,
         excluded.last_run, excluded.last_job, excluded.runs_from, excluded.error, excluded.error_at)
$$;
comment on function schedule_put(schedule) is 'Adds a schedule, or changes the existing row, which the caller has '
    'locked and read. The row is never deleted and inserted again: a session that waits for its lock must find it';

create or replace function schedule_begins(name text) returns timestamptz
language sql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off as $$
    select coalesce((select r.due + interval '1 us' from cron_run r
                     where r.schedule = schedule_begins.name
                       and r.due >= now() - interval '3 h' and r.due < now() + interval '3 h'
                     order by r.due desc limit 1),
                    now() - interval '3 h') -- the clock may be set back by less than this
$$;
comment on function schedule_begins(text) is 'From which time on runs of this name belong to a new schedule. Earlier '
    'runs belong to a removed schedule; they stay, so that neither an undo of the removal nor the new schedule runs a '
    'time twice';

create or replace function schedule_set(action uuid, name text, settings jsonb, payload text default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    was schedule;
    s   schedule;
begin
    if schedule_begin(action, 'schedule set', name, settings, reason) then
        perform from schedule x where x.name = schedule_set.name for update;
        perform scheduler_lock(true); -- against two sessions that add the same schedule
        select * into was from schedule x where x.name = schedule_set.name for update;
        s := schedule_check(name, settings, payload, was);
        s.created := coalesce(was.created, now());
        s.changed := clock_timestamp(); -- under the lock, so that it is later than the act before
        s.next_run := case when s.paused_at is not null then null
                           when (s.cron, s.tz) = (was.cron, was.tz) and was.next_run is not null
                               then was.next_run -- a time that is due and not pushed yet stays due
                           else s.next_run end;
        s.error := null;
        s.error_at := null;
        if was.name is null then
            s.runs_from := schedule_begins(name);
            s.next_run := cron_next(s.cron, s.tz, greatest(now(), s.runs_from));
        end if;
        perform schedule_put(s);
        perform act_end(action, 1,
                        jsonb_build_array(jsonb_build_object('id', name, 'state',
                                                             case when was.name is null then 'added' else 'changed' end,
            'why', case when s.paused_at is null then schedule_words(s) else 'paused' end)), schedule_was(was));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_set(uuid, text, jsonb, text, text) is 'Adds or changes a schedule: cron, tz, queue, kind, '
    'priority, payload_type, unique, max_tries, catch_up, comment. Settings that are not named stay as they are. The '
    'payload is JSON, or with payload_type a text of that type. QT007 names what is wrong';

create or replace function schedule_pause(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    s  schedule;
    at timestamptz := clock_timestamp(); -- a different time for each pause
begin
    if schedule_begin(action, 'schedule pause', name, null, reason) then
        select * into s from schedule x where x.name = schedule_pause.name for update;
        update schedule x set paused_at = at, paused_by = session_user, pause_reason = schedule_pause.reason,
            next_run = null
        where x.name = schedule_pause.name and x.paused_at is null;
        perform act_end(action, 1,
                        jsonb_build_array(case when found then jsonb_build_object('id', name, 'state', 'paused')
            else jsonb_build_object('id', name, 'why',
                                    case when s.name is null then 'not found' else 'paused already' end) end),
                        schedule_was(s) || jsonb_build_object('since', at));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_pause(uuid, text, text) is 'Pauses a schedule: it pushes no jobs from now on. Jobs that '
    'it has pushed stay';

create or replace function schedule_resume(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    was schedule;
    s   schedule;
    row jsonb;
begin
    if schedule_begin(action, 'schedule resume', name, null, reason) then
        select * into was from schedule x where x.name = schedule_resume.name for update;
        if was.name is null or was.next_run is not null then
            row := jsonb_build_object('id', name, 'why',
                                      case when was.name is null then 'not found' else 'not paused' end);
        else
            s := schedule_check(name, '{}', null, was);
            update schedule x set paused_at = null, paused_by = null, pause_reason = null, next_run = s.next_run,
                error = null, error_at = null
            where x.name = schedule_resume.name;
            row := jsonb_build_object('id', name, 'state', 'resumed', 'why', schedule_words(s));
        end if;
        perform act_end(action, 1, jsonb_build_array(row), schedule_was(was));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_resume(uuid, text, text) is 'Ends the pause of a schedule. The runs that were due during '
    'the pause are not made up for';

create or replace function schedule_run(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    s schedule;
    p record;
    o jsonb := jsonb_build_object('id', name, 'why', 'not found');
begin
    if schedule_begin(action, 'schedule run', schedule_run.name, null, reason) then
        select * into s from schedule x where x.name = schedule_run.name for update;
        if s.name is not null then
            -- greatest: the clock may have been set back
            select * into p from cron_push(s, greatest(clock_timestamp(), s.runs_from));
            o := case when p.pushed then jsonb_build_object('id', schedule_run.name, 'state', 'run', 'why',
                                                            'job ' || p.job)
                 else jsonb_build_object('id', schedule_run.name, 'why',
                                         coalesce(p.error, 'it had a run at this very time')) end;
        end if;
        perform act_end(action, 1, jsonb_build_array(o));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_run(uuid, text, text) is 'Pushes a job of the schedule now. The schedule''s own times '
    'stay as they are';

create or replace function schedule_remove(action uuid, name text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    was schedule;
begin
    if schedule_begin(action, 'schedule remove', name, null, reason) then
        delete from schedule x where x.name = schedule_remove.name returning * into was;
        delete from cron_run r -- the runs of this schedule stay, so that an undo of the removal repeats no run
        where r.at < now() - interval '7 days'
          and not exists (select from schedule x
                          where x.name = r.schedule and r.due >= coalesce(x.runs_from, '-infinity'));
        perform act_end(action, 1,
                        jsonb_build_array(case when was.name is not null then jsonb_build_object('id', name, 'state',
                                'removed')
            else jsonb_build_object('id', name, 'why', 'not found') end), schedule_was(was));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function schedule_remove(uuid, text, text) is 'Removes a schedule. Its jobs stay. The audit keeps its '
    'settings, so undo adds it again: it continues with the time that was next, and catch_up decides about times that '
    'have passed';

create or replace function cron_outcome(job uuid, due timestamptz) returns text
language sql stable set search_path from current set enable_seqscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select case when due is null then null when job is null then 'not pushed' else coalesce(
        (select case when exists (select from live w where w.lock_key is not null and w.queue = q.queue
                                    and q.seq = any(w.seqs)) then 'running'
                     else q.state::text end from queue q where q.id = cron_outcome.job),
        (select h.state::text from history_of(array[cron_outcome.job]) h
           where h.finished >= cron_outcome.due - interval '1 h' limit 1), 'gone') end
$$;
comment on function cron_outcome(uuid, timestamptz) is 'The outcome of a run: the state of its job, ''not pushed'', or '
    '''gone'' if the job left no history';

create or replace function cron_result(job uuid, due timestamptz, out outcome text, out took interval, out error text)
language sql stable set search_path from current set enable_seqscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
    select case when cron_result.due is null then null when cron_result.job is null then 'not pushed'
                else coalesce(r.outcome, 'gone') end, r.took, r.error
    from (select) o left join lateral (
        select coalesce(w.state, q.state::text) as outcome, coalesce(w.took, a.took) as took,
               case when q.state = 'failed' then q.error end as error
        from queue q
        left join lateral (select 'running' as state, clock_timestamp() - l.started as took from live l
                           where l.lock_key is not null and l.queue = q.queue and q.seq = any(l.seqs) limit 1) w on true
        left join lateral (select t.ended - t.started as took from attempt t where q.state = 'failed' and t.job = q.id
                           order by t.number desc limit 1) a on true
        where q.id = cron_result.job
        union all
        select h.state::text, h.finished - h.started, case when h.state <> 'completed' then h.error end
        from history_of(array[cron_result.job]) h where h.finished >= cron_result.due - interval '1 h'
        limit 1) r on true
$$;
comment on function cron_result(uuid, timestamptz) is 'The outcome of a run (see cron_outcome), how long its job ran '
    'in ms, and its error';

-- 76_purge_audit
-- The audit is kept until its owner purges it. Operators may not purge it, because they could erase their own acts. The
-- purge is recorded in the audit, too.

create or replace function purge_audit_preview(before timestamptz) returns table (actions bigint, batches bigint,
    oldest timestamptz)
language sql stable security definer set search_path from current as $$
    select count(*), coalesce(sum(l.batches), 0)::bigint, min(l.at) from audit_log l
    where l.at < purge_audit_preview.before
$$;
comment on function purge_audit_preview(timestamptz) is 'How many actions and batches purge_audit would delete from '
    'the audit now';

create or replace function purge_audit(action uuid, batch int, before timestamptz, "limit" int default 1000,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set enable_hashjoin = off
    set enable_mergejoin = off
    set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    gone bigint;
begin
    if before is null or before > now() - interval '1 day' then
        raise 'the audit of the last day cannot be purged: what is asked a second time is answered from it'
            using errcode = 'QT007';
    end if;
    if act_begin(action, batch, 'purge audit', null, null, jsonb_build_object('before', before), reason, null) then
        with outdated as materialized (
            select a.action, a.ctid as at from audit a where a.at < purge_audit.before order by a.at
            limit coalesce(purge_audit."limit", 1000) for update skip locked
        ), batches as ( -- by ctid: whatever the planner estimates, it can't read all batches to find these
            delete from audit_batch b where b.ctid = any(array(
                select p.at from outdated v cross join lateral (
                    select b.ctid as at from audit_batch b where b.action = v.action offset 0) p))
        ), deleted as (
            delete from audit a where a.ctid = any(array(select v.at from outdated v)) returning a.action)
        select count(*) into gone from deleted;
        perform act_end(action, batch,
                        case when gone > 0 then jsonb_build_array(jsonb_build_object('id', 'audit', 'state', 'purged',
                                'n', gone)) end, null,
                        case when gone >= coalesce("limit", 1000) then 'more' end);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function purge_audit(uuid, int, timestamptz, int, text) is 'Deletes actions older than a time (at least a '
    'day ago) from the audit, up to limit of them a call: call again as long as the answer has a cursor. The purge '
    'itself is an action in the audit';

-- 77_backend
-- Ends a statement or a session that holds back vacuum or blocks others, and records it in the audit. signal_backend()
-- runs with the rights of the caller, and decides whether the process is still the one that was shown. send_signal()
-- runs with the rights of the owner. It sends the signal and records it in one function, so that the audit can't show a
-- signal that was never sent. It sends only signals that the caller may send.

create or replace function signal_denied(target int) returns text
language sql stable set search_path from current as $$
    select case
        when a.pid is null then format('pid %s has ended already', target)
        when a.pid = pg_backend_pid() then format('pid %s is a connection of this program', target)
        when (select r.rolsuper from pg_roles r where r.rolname = c.name) then null
        when coalesce((select r.rolsuper from pg_roles r where r.oid = a.usesysid), true)
            then format('pid %s belongs to %s: only a superuser may send it a signal', target,
                        coalesce('superuser ' || quote_ident(a.usename), 'the server itself'))
        when not pg_has_role(c.name, a.usesysid, 'usage') and not pg_has_role(c.name, 'pg_signal_backend', 'usage')
            then format('pid %s: %s needs membership in role %s or in pg_signal_backend', target, quote_ident(c.name),
                        quote_ident(a.usename)) end
    from (select case current_setting('role') when 'none' then session_user::text else current_setting('role') end
          as name) c
    left join pg_stat_activity a on a.pid = target
$$;
comment on function signal_denied(int) is 'Why the caller (not the owner) may not send a signal to this process; NULL: '
    'the caller may';

create or replace function send_signal(action uuid, batch int, verb text, target int, params jsonb, reason text,
    refused text)
returns jsonb
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    no   text := left(refused, 500);
    done boolean := false;
begin
    if verb is null or verb not in ('cancel query', 'end session') then
        raise 'no signal is called "%"', left(verb, 100) using errcode = 'QT007';
    elsif target is null then
        raise 'a signal needs the pid of a process' using errcode = 'QT007';
    end if;
    if act_begin(action, batch, verb, null, 'pid ' || target, coalesce(params, '{}'), reason, null) then
        no := coalesce(no, signal_denied(target));
        if no is null then
            begin
                done := case verb when 'cancel query' then pg_cancel_backend(target)
                             else pg_terminate_backend(target) end;
            exception when insufficient_privilege then
                no := format('pid %s: %s owns the queue and may not send it: grant pg_signal_backend to %2$s', target,
                             quote_ident(current_user));
            end;
        end if;
        perform act_end(action, batch, jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('id', 'pid ' || target,
            'state', case when done then case verb when 'cancel query' then 'told to stop' else 'told to end' end end,
            'why', case when not done then coalesce(no, format('pid %s has ended already', target)) end))));
    end if;
    return (select b.rows from audit_batch b where b.action = send_signal.action and b.batch = send_signal.batch);
end $$;
comment on function send_signal(uuid, int, text, int, jsonb, text, text) is 'For signal_backend: sends "cancel query" '
    'or "end session" to a process unless refused names a reason or the caller may not do that, and records the '
    'outcome. A repeated call returns the stored answer';

create or replace function signal_backend(action uuid, batch int, wish jsonb, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    act    text := wish ->> 'act';
    s      jsonb := wish -> 'shown';
    verb   text := case act when 'cancel' then 'cancel query' when 'terminate' then 'end session' end;
    target text := 'pid ' || (s ->> 'pid');
    a      pg_stat_activity;
    no     text;
    answer jsonb;
begin
    if verb is null or s ->> 'pid' is null then
        raise 'a signal needs {"act": "cancel" or "terminate", "shown": {"pid": ...}}' using errcode = 'QT007';
    end if;
    select * into a from pg_stat_activity x where x.pid = (s ->> 'pid')::int;
    no := case when not found then target || ' has ended already'
               when a.pid in (pg_backend_pid(), (s ->> 'own')::int) then target || ' is a connection of this program'
               when a.backend_start is distinct from (s ->> 'start')::timestamptz then target
               || ' is another session by now'
               when act = 'cancel' and (a.state is distinct from 'active'
                                        or a.query_start is distinct from (s ->> 'query')::timestamptz)
                   then format('the statement of %s is over', target)
               when a.xact_start is distinct from (s ->> 'xact')::timestamptz then
               format('the transaction of %s is over', target)
               when act = 'terminate' and a.state = 'active' and s ->> 'state' <> 'active'
                   then target || ' goes on: it runs a statement by now' end;
    if batch is null then
        answer := jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('id', target, 'why', no,
            'state', case when no is null then case act when 'cancel' then 'told to stop' else 'told to end' end end)));
    else
        answer := send_signal(action, batch, verb, (s ->> 'pid')::int,
                              s - 'own' || jsonb_build_object('who', wish -> 'who'), reason, no);
    end if;
    return query select r ->> 'id', r ->> 'state', r ->> 'why', null::text, 1::bigint
    from jsonb_array_elements(answer) r;
end $$;
comment on function signal_backend(uuid, int, jsonb, text) is 'Ends a statement ({"act": "cancel"}) or a session '
    '("terminate") if it is unchanged since it was shown ({"shown": {pid, start, state, xact, query}}). The process is '
    'left alone if its pid belongs to another session now, if its statement or transaction is over, or if it was idle '
    'and works again. Batch NULL only looks';

-- 78_change
-- Changes jobs that wait: their priority, or the time at which they are due.

create or replace function change_check(verb text, wanted int, at timestamptz) returns void
language plpgsql immutable set search_path from current as $$
begin
    if verb = 'priority' and wanted between 0 and 9 is not true then
        raise 'a priority is 0 (soonest) to 9, not %', coalesce(wanted::text, 'nothing') using errcode = 'QT007';
    elsif verb = 'reschedule' and not isfinite(at) then
        raise 'a job can''t be put off for ever: cancel or pause it' using errcode = 'QT007';
    end if;
end $$;
comment on function change_check(text, int, timestamptz) is 'Raises QT007 if no job can have this priority or time';

create or replace function change_take(ids uuid[], verb text, wanted int, at timestamptz, inout held uuid[],
    out busy uuid[])
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ready uuid[];
begin
    busy := '{}';
    if not exists (select from queue q where q.id = any(ids) and q.state::text = 'ready'
                   and (verb = 'priority' or at > now())) then
        return;
    end if;
    perform scheduler_lock(true);
    ready := array(select q.id from queue q where q.id = any(ids) and q.state::text = 'ready'
                   and (verb = 'priority' and q.priority <> wanted or verb = 'reschedule' and at > now()));
    -- jobs that are cut already would start before jobs that are now more urgent: cut all anew
    if verb = 'priority' then
        perform uncut(d.queue, false) from (select distinct q.queue from queue q where q.id = any(ready)) d (queue);
    end if;
    select u.busy, array(select unnest(ready) except select unnest(u.runs || u.busy)) into busy, ready
    from uncut_jobs(ready) u;
    held := held || lock_jobs(ready, held);
end $$;
comment on function change_take(uuid[], text, int, timestamptz, uuid[]) is 'For change_jobs: takes those ready jobs '
    'that would change out of their free leases, and locks them. held: the jobs that were locked before the call and '
    'now; busy: jobs whose lease is locked by others';

create or replace function change_jobs(action uuid, ids uuid[], verb text, wanted int, at timestamptz, out rows jsonb,
    out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    later timestamptz := case when at > now() then at end; -- a time that has passed means now
    over  uuid[] := finished_jobs(ids);
    held  uuid[] := lock_waiting(ids);
    busy  uuid[];
    jobs  jsonb;
begin
    select t.held, t.busy into held, busy from change_take(ids, verb, wanted, at, held) t;
    with named as materialized (
        select distinct unnest(ids) as id
    ), looked_at as materialized (
        select n.id, q.state, q.priority, q.tries, q.max_tries, q.run_after, q.changed, b.becomes,
               case when q.id is not null then b.why when n.id = any(over) then 'finished' else 'no such job' end
               as why,
               b.becomes is not null and not q.id = any(held) as moved
        from named n
        left join lateral (select * from queue q where q.id = n.id offset 0) q on true
        left join lateral (select true as runs from live w
                           where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                             and q.seq = any(w.seqs) limit 1) r on true
        left join lateral act_becomes(verb, q.state, coalesce(r.runs, false), false, q.priority, wanted, q.run_after,
                                      later) b on q.id is not null
    ), changing as (
        select * from looked_at where becomes is not null and not moved
    )
    select (select jsonb_agg(jsonb_build_object('id', l.id,
                       'state', case when l.moved is not true then l.becomes end,
                       'why', case when l.moved then left_alone(l.state, l.id = any(busy)) else l.why end))
            from looked_at l),
           jsonb_agg(jsonb_build_object('id', c.id, 'state', c.state, 'priority', c.priority, 'tries', c.tries,
                       'max_tries', c.max_tries, 'run_after', c.run_after, 'changed', c.changed)),
           jsonb_agg(jsonb_build_object('id', c.id, 'tries', c.tries, 'max_tries', c.max_tries)
                     || case when verb = 'priority'
                             then jsonb_build_object('state', c.state, 'priority', wanted, 'run_after', c.run_after,
                                                     'changed', c.changed)
                             else jsonb_build_object('state', c.becomes, 'priority', c.priority, 'run_after', later,
                                                     'changed', now()) end)
    into rows, was, jobs from changing c;
    rows := in_order(rows, ids);
    perform job_put(action, jobs);
end $$;
comment on function change_jobs(uuid, uuid[], text, int, timestamptz) is 'Gives waiting jobs another priority (wanted) '
    'or time (at; NULL or a time that has passed = now)';

create or replace function set_priority(action uuid, batch int, ids uuid[], priority int, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
begin
    perform change_check('priority', priority, null);
    return query select * from act_on(action, batch, 'priority', ids, jsonb_build_object('priority', priority), reason);
end $$;
comment on function set_priority(uuid, int, uuid[], int, text) is 'Gives jobs that do not run another priority, 0 '
    '(soonest) to 9. They are put behind the jobs that have that priority already. Raises QT007 for another number';

create or replace function set_priority_where(action uuid, batch int, queue text, states text[],
    kind text default null, error text default null, before timestamptz default null, "limit" int default 1000,
    after text default null, expected bigint default null, priority int default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    which job_filter := (queue, states, kind, error, before, coalesce("limit", 1000), after, expected);
begin
    perform change_check('priority', priority, null);
    return query select * from act_where(action, batch, 'priority', which, jsonb_build_object('priority', priority),
                                         reason);
end $$;
comment on function set_priority_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, int,
    text) is 'set_priority() for all jobs that match; the other arguments as in requeue_where';

create or replace function set_time(action uuid, batch int, ids uuid[], at timestamptz default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
begin
    perform change_check('reschedule', null, at);
    return query select * from act_on(action, batch, 'reschedule', ids, jsonb_build_object('at', at), reason);
end $$;
comment on function set_time(uuid, int, uuid[], timestamptz, text) is 'Makes waiting jobs due at a time; NULL or a '
    'time that has passed = now. Running and failed jobs are left alone';

create or replace function set_time_where(action uuid, batch int, queue text, states text[], kind text default null,
    error text default null, before timestamptz default null, "limit" int default 1000, after text default null,
    expected bigint default null, at timestamptz default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    which job_filter := (queue, states, kind, error, before, coalesce("limit", 1000), after, expected);
begin
    perform change_check('reschedule', null, at);
    return query select * from act_where(action, batch, 'reschedule', which, jsonb_build_object('at', at), reason);
end $$;
comment on function set_time_where(uuid, int, text, text[], text, text, timestamptz, int, text, bigint, timestamptz,
    text) is 'set_time() for all jobs that match; the other arguments as in requeue_where';

create or replace function change_preview(verb text, ids uuid[] default null, queue text default null,
    states text[] default null, kind text default null, error text default null, before timestamptz default null,
    wanted int default null, at timestamptz default null)
returns table (state text, n bigint, why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select * from act_preview(verb, ids, (queue, states, kind, error, before, null, null, null), wanted,
                              case when at > now() then at end)
$$;
comment on function change_preview(text, uuid[], text, text[], text, text, timestamptz, int, timestamptz) is 'What '
    'set_priority (verb priority, wanted) or set_time (verb reschedule, at) would do now: n jobs and what they would '
    'become (state NULL: left alone), and why';

-- 78_edit
-- Acts with a payload: edit the payload of a job and requeue it, or push a job by hand. The audit keeps the payload
-- that an edit replaced. The limits of push() apply here, too.

create or replace function job_version(state text, seq bigint, finished timestamptz) returns text
language sql stable set search_path from current as $$
    select state || '/' || coalesce(seq, (extract(epoch from finished) * 1000000)::bigint)
$$;
comment on function job_version(text, bigint, timestamptz) is 'The version of a job. An edit requires that it is '
    'unchanged. Each claim that ends, each requeue and each change gives the job another version';

create or replace function edit_look(job uuid, version text)
returns table (state text, queue text, becomes text, why text, is_json boolean)
language sql stable set search_path from current as $$
    with found as (
        select q.id, q.state::text, q.queue, q.seq, null::timestamptz as finished, q.unique_key, q.body, q.payload_type,
               true as kept
        from queue q where q.id = edit_look.job
        union all
        (select h.id, h.state::text, h.queue, null, h.finished, h.unique_key, h.body, h.payload_type, h.kept
         from history_of(array[edit_look.job]) h where not exists (select from queue q where q.id = edit_look.job)
         order by h.finished desc limit 1)
    ), examined as (
        select j.*, exists (select from live w where j.state = 'ready' and w.queue = j.queue and w.lock_key is not null
                              and j.seq = any(w.seqs)) as runs,
               j.state in ('failed', 'completed', 'cancelled') and exists (select from queue o
                       where o.queue = j.queue and o.id <> j.id
                   and o.unique_key = j.unique_key and o.state <> 'failed') as twin
        from found j
    ), judged as (
        select l.*, case when l.runs then 'running'
            when job_version(l.state, l.seq, l.finished)
            is distinct from edit_look.version then format('it has moved on since it was read: %s now', l.state)
            when not l.kept then 'its payload was not kept'
            when l.body is not null and coalesce(l.payload_type,
                                                 '') not like 'text/%' then 'its payload is bytes, not text'
            when l.twin then 'a newer job has its unique key' end as no
        from examined l
    )
    select coalesce(n.state, ''), n.queue,
           case when n.id is not null and n.no is null then case n.state when 'blocked' then 'blocked'
                                                                 else 'ready' end end,
           case when n.id is null then 'no such job' when n.no is not null then n.no
                when n.state in ('completed', 'cancelled') then 'as a new job'
                when n.state in ('scheduled', 'retry') then 'now instead of later' when n.state = 'failed' then null
                else 'behind those that wait' end,
           n.body is null
    from (select edit_look.job) i left join judged n on true
$$;
comment on function edit_look(uuid, text) is 'What an edit would make of a job that still has this version, or why it '
    'would do nothing';

create or replace function edit_check(ids uuid[], payload text, is_json boolean) returns void
language plpgsql stable set search_path from current as $$
begin
    if cardinality(ids) is distinct from 1 then
        raise 'one job is edited at a time' using errcode = 'QT007';
    elsif payload is null then
        raise 'an edit needs the payload' using errcode = 'QT007';
    end if;
    perform check_size(octet_length(payload));
    if is_json then
        perform payload::json; -- raises 22P02 if it is not JSON
    end if;
end $$;
comment on function edit_check(uuid[], text, boolean) is 'Raises QT007, QT004 or 22P02 if the job can''t have this '
    'payload';

create or replace function edit_rows(action uuid, job uuid, version text, payload text, out rows jsonb, out was jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    l   record;
    own uuid := job;
    put jsonb;
    busy uuid[];
    h   record;
begin
    perform from queue q where q.id = job and q.state <> 'ready' for update;
    select * into l from edit_look(job, version);
    if l.becomes is not null and l.state = 'ready' then
        perform scheduler_lock(true);
        -- read again: the job may have been cut, claimed, changed or finished meanwhile
        select * into l from edit_look(job, version);
        if l.becomes is not null and l.state = 'ready' then
            select u.busy || u.runs into busy from uncut_jobs(array[job]) u; -- the job may be in a free lease
            if busy <> '{}' or lock_jobs(array[job], '{}') = '{}' then
                l.becomes := null;
                l.why := left_alone('ready', busy <> '{}');
            end if;
        end if;
    end if;
    perform edit_check(array[job], payload, l.is_json);
    if l.becomes is not null and l.state in ('completed', 'cancelled') then
        select * into h from requeue_history(action, job);
        own := h.new_id;
        rows := jsonb_build_array(jsonb_build_object('id', job, 'state', case when own is not null then l.becomes end,
                                                     'why', h.why, 'new', own));
    elsif l.becomes is not null then
        select jsonb_build_array(jsonb_build_object('id', q.id, 'state', q.state, 'tries', q.tries, 'max_tries',
                                                    q.max_tries, 'run_after', q.run_after,
                   'changed', q.changed, 'payload', q.payload::text, 'body', encode(q.body, 'hex'), 'payload_type',
                   q.payload_type)),
               jsonb_build_array(jsonb_build_object('id', q.id, 'state', q.state, 'priority', q.priority, 'tries',
                                                    q.tries, 'max_tries', q.max_tries,
                   'run_after', q.run_after, 'changed', now()))
        into was, put from queue q where q.id = job;
        begin
            if l.state in ('ready', 'blocked') then
                perform job_put(action, put);
            else
                perform requeue_live(action, array[job], false);
            end if;
            rows := jsonb_build_array(jsonb_build_object('id', job, 'state', l.becomes, 'why', l.why));
        exception when unique_violation then
            rows := jsonb_build_array(jsonb_build_object('id', job, 'why', 'a newer job has its unique key'));
            was := null;
            own := null;
        end;
    else
        rows := jsonb_build_array(jsonb_build_object('id', job, 'why', l.why));
        own := null;
    end if;
    update queue q set payload = case when l.is_json then edit_rows.payload::json end,
        body = case when not l.is_json then convert_to(edit_rows.payload, 'UTF8') end
    where q.id = own;
end $$;
comment on function edit_rows(uuid, uuid, text, text) is 'Gives one job another payload and requeues it, if the job '
    'still has this version';

create or replace function edit_job(action uuid, batch int, ids uuid[], version text, payload text,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    r record;
begin
    perform edit_check(ids, payload, false);
    if act_begin(action, batch, 'edit', null, null, jsonb_build_object('job', ids[1], 'version', version, 'bytes',
            octet_length(payload)), reason, null) then
        select * into r from edit_rows(action, ids[1], version, payload);
        perform act_end(action, batch, r.rows, r.was);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function edit_job(uuid, int, uuid[], text, text, text) is 'Gives a job another payload and makes it ready: '
    'a failed job with one more try, a waiting job now, a finished job as a new job. version: as the console''s '
    'section job returns it; if the job has another one by now, it is left alone. The payload is JSON, unless the '
    'job''s own payload is a text';

create or replace function edit_preview(ids uuid[], version text, payload text) returns table (state text, n bigint,
    why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
declare
    l record;
begin
    select * into l from edit_look(ids[1], version);
    perform edit_check(ids, payload, l.is_json);
    return query select l.becomes::text, 1::bigint, l.why::text;
end $$;
comment on function edit_preview(uuid[], text, text) is 'What edit_job would do now; raises the same errors';

-- --- pushing by hand

create or replace function job_by_hand(queue text, settings jsonb, payload text) returns queue
language plpgsql stable set search_path from current as $$
declare
    s     record;
    job   queue;
    fault text;
    odd   text := (select k from jsonb_object_keys(case jsonb_typeof(settings) when 'object' then settings end) k
                   where k not in ('kind', 'priority', 'delay', 'at', 'unique_key', 'max_tries', 'payload_type')
                   limit 1);
begin
    if odd is not null then
        raise 'a push knows no "%"', left(odd, 100) using errcode = 'QT007';
    elsif jsonb_typeof(settings) <> 'object' then
        raise 'the settings of a push are a JSON object, not %', jsonb_typeof(settings) using errcode = 'QT007';
    end if;
    perform whole_number(settings, 'priority', 0, 9), whole_number(settings, 'max_tries', 1, 32767);
    begin
        select * into s from jsonb_to_record(settings) x (kind text, priority int, delay interval, at timestamptz,
                                                          unique_key text, max_tries int, payload_type text);
    exception when data_exception then
        raise 'delay is a time such as 90s or 2h, at a date and a time: %', sqlerrm using errcode = 'QT007';
    end;
    perform check_size(octet_length(payload));
    job.queue := coalesce(job_by_hand.queue, '');
    job.kind := coalesce(s.kind, '');
    fault := job_fault(job.queue, job.kind, coalesce(s.priority, 5), false, s.max_tries, null, null, s.unique_key,
                       null);
    if fault is not null then
        raise '%', fault using errcode = '23514';
    end if;
    job.priority := coalesce(s.priority, 5);
    job.run_after := coalesce(s.at, later(s.delay));
    if not isfinite(job.run_after) then
        raise 'a job can''t be put off for ever' using errcode = 'QT007';
    end if;
    job.unique_key := s.unique_key;
    job.max_tries := s.max_tries;
    if s.payload_type is null then
        job.payload := payload::json;
    else
        job.body := convert_to(coalesce(payload, ''), 'UTF8');
        job.payload_type := s.payload_type;
    end if;
    return job;
end $$;
comment on function job_by_hand(text, jsonb, text) is 'The job that a push by hand would push. Raises QT007, QT004, '
    '22P02 or 23514 if there can be no such job';

create or replace function push_by_hand(action uuid, queue text, settings jsonb default '{}', payload text default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    job queue := job_by_hand(push_by_hand.queue, coalesce(settings, '{}'), payload);
    r   record;
begin
    if act_begin(action, 1, 'push', push_by_hand.queue, null, coalesce(settings, '{}') || jsonb_build_object('bytes',
            octet_length(payload)), reason, null) then
        job.id := uuid_v7();
        select * into r from push_row(job, false);
        update queue q set last_action = push_by_hand.action where q.id = r.id and r.pushed;
        perform act_end(action, 1,
                        (select jsonb_build_array(jsonb_build_object('id', r.id, 'state',
                                                                     case when r.pushed then q.state end,
            'why', case when r.pushed then 'job ' || r.id else 'there is such a job already: ' || r.id end))
            from (select r.id) x left join queue q on q.id = r.id));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function push_by_hand(uuid, text, jsonb, text, text) is 'push() as an act of an operator, with a row in the '
    'audit. settings: kind, priority, delay or at, unique_key, max_tries, payload_type. With payload_type the payload '
    'is a text of that type, otherwise it is JSON';

create or replace function push_preview(queue text, settings jsonb default '{}', payload text default null)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    job  queue := job_by_hand(push_preview.queue, coalesce(settings, '{}'), payload);
    twin uuid := push_twin(null, job.queue, job.unique_key, false);
    c    queue_config;
begin
    select * into c from queue_config x where x.queue = job.queue;
    return query select case when twin is null then case when job.run_after > now() then 'scheduled'
                                                         else 'ready' end end, 1::bigint,
        case when twin is not null then 'there is such a job already: ' || twin
             when c.paused_at is not null then 'the queue is paused: it waits'
             when c.queue is null and not exists (select from queue q
                                                  where q.queue = job.queue) then 'a queue that was never seen so far'
                                                  end;
end $$;
comment on function push_preview(text, jsonb, text) is 'What push_by_hand would do now; raises the same errors';

-- 79_undo
-- Undo: takes an action back, from what the audit kept of the changed rows. A row is changed back only if it is still
-- as the action left it; every other row is left alone, and why gives the reason. One batch of an action is one batch
-- of its undo.

create or replace function undo_why(a audit) returns text
language sql immutable set search_path from current as $$
    select case when a.action is null then 'the audit has no such action'
                when a.verb in ('requeue', 'edit', 'discard', 'cancel', 'priority', 'reschedule', 'pause', 'resume',
                                'set', 'schedule set', 'schedule pause', 'schedule resume', 'schedule remove')
                    then null
                when a.verb in ('delete', 'purge', 'purge audit')
                    then format('a %s can''t be undone: what it took is gone for good', a.verb)
                when a.verb = 'undo' then 'an undo can''t be undone: do the action again'
                when a.verb = 'extend' then 'a lease is never made shorter'
                when a.verb in ('push', 'schedule run') then 'cancel its job instead'
                else format('a %s can''t be undone', a.verb) end
$$;
comment on function undo_why(audit) is 'Why an action can''t be undone at all. NULL: it can be undone for the rows '
    'that are still as it left them';

create or replace function audit_change(a audit) returns text
language sql stable set search_path from current as $$
    select left(case when a.verb = 'set' then (select b.rows -> 0 ->> 'why' from audit_batch b
                                               where b.action = a.action and b.batch = 1)
                     else (
        select string_agg(case when p.value = 'true' then p.name
                               when p.name = 'count' then 'tries not counted'
                               when p.name = 'expired_only' then 'all leases, not only expired ones'
                               when p.name = 'bytes' then 'payload of ' || p.value || ' bytes'
                               else p.name || ' ' || p.value end
                          || coalesce(', was ' || nullif(was.value, p.value), ''), '; ' order by p.name)
        from (select k as name,
                     left(case jsonb_typeof(v) when 'array' then (select string_agg(i, ',')
                                                                  from jsonb_array_elements_text(v) i)
                               else v #>> '{}' end, 100) as value
              from jsonb_each(a.params) x (k, v)
              where k not in ('ids', 'schedule', 'job', 'version', 'of', 'verb')
                and (v <> 'false' or k in ('count', 'expired_only'))) p
        left join (select left(x.value, 100) as value, x.key
                   from (select case when jsonb_typeof(b.before) = 'array' then b.before -> 0 else b.before end
                                as before
                         from audit_batch b
                         where b.action = a.action and b.batch = 1 and b.changed = 1
                           and pg_column_size(b.before) < 4000) b
                   cross join lateral jsonb_each_text(case when jsonb_typeof(b.before) = 'object'
                                                           then b.before end) x) was
               on was.key = case p.name when 'at' then 'run_after' when 'unique' then 'only_one' else p.name end
                  and a.verb in ('priority', 'reschedule', 'schedule set')) end, 500)
$$;
comment on function audit_change(audit) is 'What an action was asked to do, as text, with the earlier values if it '
    'changed one row, queue or schedule. NULL: its verb and target say everything. Values are cut at 100 characters, '
    'the text at 500';

create or replace function undo_check(of uuid) returns audit
language plpgsql stable set search_path from current as $$
declare
    a audit;
begin
    select * into a from audit x where x.action = undo_check.of;
    if undo_why(a) is not null then
        raise '%', undo_why(a) using errcode = 'QT007';
    end if;
    return a;
end $$;
comment on function undo_check(uuid) is 'The action; raises QT007 if it can''t be undone';

create or replace function undo_live(a audit, batch int)
returns table (id uuid, becomes text, why text, job jsonb)
language sql stable set search_path from current as $$
    select e.id,
           case when no is null then case when a.verb = 'priority' then 'at priority ' || e.priority
                                          else e.state || ' again' end end,
           no,
           jsonb_build_object('id', q.id,
               'state', case when a.verb = 'priority' then q.state else e.state end,
               'priority', coalesce(e.priority, q.priority),
               'tries', case when a.verb in ('requeue', 'edit') then e.tries else q.tries end,
               'max_tries', case when a.verb in ('requeue', 'edit') then e.max_tries else q.max_tries end,
               'run_after', case when a.verb = 'priority' then q.run_after else e.run_after end,
               'changed', case when a.verb = 'priority' then q.changed else coalesce(e.changed, now()) end)
    from audit_batch b
    cross join lateral jsonb_to_recordset(b.before) e (id uuid, state job_state, priority smallint, tries smallint,
                                                       max_tries smallint, run_after timestamptz,
                                                       changed timestamptz)
    join lateral jsonb_to_recordset(b.rows) r (id uuid, state text)
        on r.id = e.id and r.state is not null -- rows that the action left alone don't count
    left join lateral (select * from queue q where q.id = e.id offset 0) q on true
    cross join lateral (select case
        when q.id is null then 'finished or gone by now'
        when a.verb <> 'priority' and q.last_action is distinct from a.action then 'changed by another action since'
        when exists (select from live w where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                                          and q.seq = any(w.seqs)) then 'running'
        when a.verb = 'priority' then case when q.priority::text <> a.params ->> 'priority'
                                           then 'has another priority by now' end
        when q.tries <> case when (a.params ->> 'reset')::boolean then 0 else least(e.tries, 32766) end
             or q.state not in ('ready', 'blocked', 'scheduled', 'retry')
             or q.state = 'retry' and a.verb in ('requeue', 'edit') then 'has run since' end as no) n
    where b.action = a.action and b.batch = undo_live.batch
$$;
comment on function undo_live(audit, int) is 'For jobs that an action changed and that still wait: what an undo would '
    'make of each, or why it would do nothing. job: in the form of job_put';

create or replace function undo_again(a audit, batch int) returns table (id uuid, becomes text, why text)
language sql stable set search_path from current as $$
    select n.id, case when no is null then 'withdrawn' end, no
    from audit_batch b cross join lateral jsonb_to_recordset(b.rows) n (id uuid, new uuid)
    left join lateral (select * from queue q where q.id = n.new offset 0) q on true
    cross join lateral (select case
        when q.id is null then 'finished or gone by now'
        when exists (select from live w where q.state = 'ready' and w.queue = q.queue and w.lock_key is not null
                                          and q.seq = any(w.seqs)) then 'running'
        when q.last_action is distinct from a.action then 'changed by another action since'
        when q.tries > 0 then 'has run since' end as no) z
    where b.action = a.action and b.batch = undo_again.batch and a.verb in ('requeue', 'edit') and n.new is not null
$$;
comment on function undo_again(audit, int) is 'The same as undo_live, for new jobs that a requeue made of finished '
    'ones';

create or replace function undo_removed(a audit, batch int)
returns table (id uuid, becomes text, why text, was jsonb)
language sql stable set search_path from current as $$
    with removed as materialized (
        select x.id, x.queue, x.finished, x.state, v as was
        from audit_batch b cross join lateral jsonb_array_elements(b.before) v
        cross join lateral jsonb_to_record(v) x (id uuid, queue text, finished timestamptz, state text)
        where b.action = a.action and b.batch = undo_removed.batch
    ), found as materialized ( -- by queue and time: no index on ids finds a thousand of them fast
        select h.id, h.kept, h.queue, h.unique_key
        from (select distinct r.queue, r.finished from removed r) k
        cross join lateral (select * from history h where h.queue = k.queue and h.finished = k.finished offset 0) h
        where h.last_action = a.action
    )
    select r.id, case when no is null then r.state || ' again' end, no, r.was
    from removed r left join found h on h.id = r.id
    cross join lateral (select case
        when exists (select from queue q where q.id = r.id offset 0) then 'is back already'
        when h.id is null then 'no longer in history'
        when not h.kept then 'its payload was not kept'
        when h.unique_key is not null and r.state <> 'failed'
             and exists (select from queue q where q.queue = h.queue and q.unique_key = h.unique_key
                                               and q.state <> 'failed' offset 0)
            then 'a newer job has its unique key' end as no) n
    union all
    select (row ->> 'id')::uuid, null, 'was asked to end while it ran', null
    from audit_batch b cross join lateral jsonb_array_elements(b.rows) row
    where b.action = a.action and b.batch = undo_removed.batch and row ->> 'state' = 'running'
$$;
comment on function undo_removed(audit, int) is 'The same as undo_live, for jobs that an action put into history';

create or replace function undo_queue(a audit) returns table (id text, becomes text, why text, was jsonb)
language sql stable set search_path from current as $$
    select a.queue,
           case when no is null then case a.verb when 'pause' then 'resumed' when 'resume' then 'paused'
                                                 else 'set back' end end,
           no, b.before
    from audit_batch b left join queue_config c on c.queue = a.queue
    cross join lateral (select jsonb_populate_record(
        jsonb_populate_record(null::queue_config, b.before),
        case when a.verb = 'set' then (select jsonb_object_agg(k, setting_value(k, v))
                                       from jsonb_each_text(a.params) s (k, v) where k <> 'paused') end) as left_) l
    cross join lateral (select case
        when b.changed = 0 then 'nothing was changed'
        when a.verb = 'pause' and b.before ->> 'since' is null then 'what it changed was not kept'
        when a.verb = 'pause' then case
            when c.paused_at is null then 'is not paused any more'
            when c.paused_at <> (b.before ->> 'since')::timestamptz then 'was resumed and paused again since' end
        when a.verb = 'resume' then case when c.paused_at is not null then 'is paused already' end
        when exists (select from jsonb_object_keys(a.params) k
                     join setting_shown(c) n on n.name = k join setting_shown(l.left_) s on s.name = k
                     where k <> 'paused' and n.value <> s.value) then 'was set again since'
        when a.params ? 'paused' and (c.paused_at is not null) is distinct from (a.params ->> 'paused')::boolean
            then 'was paused or resumed since'
        end as no) n
    where b.action = a.action and b.batch = 1 and a.verb in ('pause', 'resume', 'set')
$$;
comment on function undo_queue(audit) is 'The same as undo_live, for an action on a queue';

create or replace function undo_schedule(a audit) returns table (id text, becomes text, why text, was jsonb)
language sql stable set search_path from current as $$
    select a.params ->> 'schedule',
           case when no is null then case a.verb when 'schedule pause' then 'resumed'
                                                 when 'schedule resume' then 'paused'
                                                 when 'schedule remove' then 'added again'
                                                 else case when b.before is null then 'removed'
                                                           else 'changed back' end end end,
           no, b.before
    from audit_batch b left join schedule s on s.name = a.params ->> 'schedule'
    cross join lateral (select case
        when b.changed = 0 then 'nothing was changed'
        when a.verb = 'schedule remove' then case when s.name is not null then 'there is one of this name again' end
        when s.name is null then 'was removed since'
        when a.verb = 'schedule pause' then case
            when s.paused_at is null then 'is not paused any more'
            when s.paused_at is distinct from (b.before ->> 'since')::timestamptz
                then 'was resumed and paused again since' end
        when a.verb = 'schedule resume' then case
            when s.paused_at is not null then 'is paused already'
            when b.before ->> 'paused_at' is null then 'was not paused, it stood still' end
        when s.changed > b.at then 'was changed since' end as no) n
    where b.action = a.action and b.batch = 1 and a.verb like 'schedule %'
$$;
comment on function undo_schedule(audit) is 'The same as undo_live, for an action on a schedule';

create or replace function undo_preview(of uuid) returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    a audit := undo_check(undo_preview.of);
begin
    return query
    select z.becomes, count(*), z.why from (
        select l.becomes, l.why from audit_batch b cross join lateral undo_live(a, b.batch) l
        where b.action = undo_preview.of and a.verb in ('requeue', 'edit', 'priority', 'reschedule')
        union all
        select l.becomes, l.why from audit_batch b cross join lateral undo_again(a, b.batch) l
        where b.action = undo_preview.of and a.verb in ('requeue', 'edit')
        union all
        select l.becomes, l.why from audit_batch b cross join lateral undo_removed(a, b.batch) l
        where b.action = undo_preview.of and a.verb in ('discard', 'cancel')
        union all
        select l.becomes, l.why from undo_queue(a) l
        union all
        select l.becomes, l.why from undo_schedule(a) l) z
    group by 1, 3 order by 2 desc;
end $$;
comment on function undo_preview(uuid) is 'What undo would do now: how many rows would become what again, how many '
    'would be left alone, and why. Raises QT007 if the action can''t be undone';

create or replace function undo_new_jobs(a audit, batch int, held uuid[], busy uuid[]) returns jsonb
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    rows jsonb;
    ids  uuid[];
begin
    with judged as materialized (
        select l.id, n.new, q.id is null as free, l.becomes,
               case when q.id is null then l.why else left_alone(q.state, q.id = any(busy)) end as why
        from undo_again(a, undo_new_jobs.batch) l
        join audit_batch b on b.action = a.action and b.batch = undo_new_jobs.batch
        cross join lateral jsonb_to_recordset(b.rows) n (id uuid, new uuid)
        left join lateral (select q.id, q.state from queue q where q.id = n.new and q.id <> all(held) offset 0) q
            on l.becomes is not null
        where n.id = l.id and n.new is not null
    )
    select jsonb_agg(jsonb_build_object('id', j.id, 'state', case when j.free then j.becomes end, 'why', j.why)),
           coalesce(array_agg(j.new) filter (where j.free and j.becomes is not null), '{}')
    into rows, ids from judged j;
    perform push_withdraw(ids, true);
    return coalesce(rows, '[]');
end $$;
comment on function undo_new_jobs(audit, int, uuid[], uuid[]) is 'For undo_jobs: deletes the new jobs that one batch '
    'of a requeue pushed. held: the caller has locked them; busy: their lease is locked by others';

create or replace function undo_jobs(action uuid, a audit, batch int, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    ids  uuid[] := array(select l.id from undo_live(a, batch) l where l.becomes is not null);
    news uuid[] := array(select n.new from audit_batch b cross join lateral jsonb_to_recordset(b.rows) n (new uuid)
                         where b.action = a.action and b.batch = undo_jobs.batch and n.new is not null);
    held uuid[] := lock_waiting(ids || news);
    busy uuid[];
    jobs jsonb;
begin
    perform scheduler_lock(true);
    -- read again under the scheduler's lock
    ids := array(select l.id from undo_live(a, batch) l where l.becomes is not null);
    select u.busy into busy from uncut_jobs(ids || news) u;
    held := held || lock_jobs(ids || news, held || busy);
    select jsonb_agg(jsonb_build_object('id', l.id, 'state', case when q.id is null then l.becomes end,
                         'why', case when q.id is null then l.why
                                     else left_alone(q.state, q.id = any(busy)) end)),
           jsonb_agg(l.job) filter (where l.becomes is not null and q.id is null)
    into rows, jobs
    from undo_live(a, undo_jobs.batch) l
    left join lateral (select q.id, q.state from queue q where q.id = l.id and q.id <> all(held) offset 0) q
        on l.becomes is not null;
    perform job_put(action, jobs);
    if a.verb = 'edit' then
        update queue q set payload = e.payload::json, body = decode(e.body, 'hex'), payload_type = e.payload_type
        from audit_batch b
        cross join lateral jsonb_to_recordset(b.before) e (id uuid, payload text, body text, payload_type text)
        where b.action = a.action and b.batch = undo_jobs.batch and q.id = e.id and q.id = any(held)
          and q.last_action = undo_jobs.action;
    end if;
    if news <> '{}' then
        rows := coalesce(rows, '[]') || undo_new_jobs(a, batch, held, busy);
    end if;
end $$;
comment on function undo_jobs(uuid, audit, int) is 'Undoes one batch of a requeue, an edit (restores the payload '
    'before it), a priority or a reschedule';

create or replace function undo_remove(action uuid, a audit, batch int, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    made bigint;
    want bigint;
begin
    with judged as materialized (
        select * from undo_removed(a, undo_remove.batch)
    ), places as materialized (
        select h.tableoid as part, h.ctid as place
        from (select distinct j.was ->> 'queue' as queue, (j.was ->> 'finished')::timestamptz as finished
              from judged j where j.becomes is not null) k
        cross join lateral (select h.tableoid, h.ctid, h.last_action, h.kept, h.id from history h
                            where h.queue = k.queue and h.finished = k.finished offset 0) h
        where h.last_action = a.action and h.kept and h.id in (select j.id from judged j where j.becomes is not null)
    ), taken as (
        delete from history h using places p where h.tableoid = p.part and h.ctid = p.place returning h.*
    ), numbered as materialized ( -- in the old order; below they are inserted in the order of unique keys
        select s.id, nextval('job_seq') as seq
        from (select t.id from taken t join judged j on j.id = t.id order by (j.was ->> 'seq')::bigint) s
    ), back as (
        insert into queue (id, seq, created, changed, state, priority, tries, max_tries, queue, kind, payload, body,
                           payload_type, unique_key, run_after, expires_at, lease_timeout, run_timeout, error,
                           error_key, origin_id, last_action, concurrency_key)
        select t.id, n.seq, t.created, coalesce((j.was ->> 'changed')::timestamptz, now()),
               (j.was ->> 'state')::job_state, t.priority, t.tries, t.max_tries, t.queue, t.kind, t.payload, t.body,
               t.payload_type, t.unique_key, t.run_after, (j.was ->> 'expires_at')::timestamptz, t.lease_timeout,
               t.run_timeout, t.error, error_key(t.error), t.origin_id, undo_remove.action, t.concurrency_key
        from taken t join judged j on j.id = t.id join numbered n on n.id = t.id
        order by t.queue, t.unique_key, n.seq
        on conflict do nothing returning id, queue, priority
    ), counted as ( -- the trigger counts them as pushed, but they were pushed long ago
        insert into delta (queue, priority, pushed) select queue, priority, -count(*) from back group by 1, 2)
    select coalesce((select jsonb_agg(jsonb_build_object('id', j.id, 'state', j.becomes, 'why', j.why))
                     from judged j), '[]'),
           (select count(*) from back), (select count(*) from judged j where j.becomes is not null)
    into rows, made, want;
    if made <> want then
        raise 'some jobs can''t come back: others have their id or unique key since the preview'
            using errcode = '40001';
    end if;
    insert into delta (queue, priority, error_key, failed)
    select q.queue, 0, q.error_key, count(*) from queue q
    where q.id = any(array(select (x ->> 'id')::uuid from jsonb_array_elements(rows) x
                           where x ->> 'state' = 'failed again'))
      and q.last_action = undo_remove.action and q.error_key is not null group by 1, 3;
end $$;
comment on function undo_remove(uuid, audit, int) is 'Undoes one batch of a discard or cancel: the jobs leave history '
    'and wait again, with the id, tries and error that they had. Raises 40001 if another job has taken an id or unique '
    'key meanwhile';

create or replace function undo_on_queue(a audit, out rows jsonb)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    r    record;
    back jsonb;
begin
    perform from queue_config c where c.queue = a.queue for update;
    perform scheduler_lock(true);
    select * into r from undo_queue(a);
    if r.becomes is not null then
        perform bucket_settle(a.queue);
        perform uncut(a.queue);
        back := case a.verb
            when 'pause' then '{"paused_at": null, "paused_by": null, "pause_reason": null}'
            when 'resume' then (select jsonb_object_agg(k, v) from jsonb_each(r.was) x (k, v) where k like 'pause%')
            else (select jsonb_object_agg(k, v) from jsonb_each(r.was) x (k, v)
                  where a.params ? k or a.params ? 'paused' and k like 'pause%') end;
        perform put_settings(a.queue, back);
        update queue_config c set paused_at = o.paused_at, paused_by = o.paused_by, pause_reason = o.pause_reason
        from queue_config n cross join lateral jsonb_populate_record(n, back) o
        where n.queue = a.queue and c.queue = n.queue;
        delete from bucket b where b.queue = a.queue
            and not exists (select from queue_config c where c.queue = a.queue and c.rate is not null);
        perform wake_queue(a.queue);
    end if;
    rows := jsonb_build_array(jsonb_build_object('id', r.id, 'state', r.becomes, 'why', r.why));
end $$;
comment on function undo_on_queue(audit) is 'Undoes an action on a queue: its pause, or its settings';

create or replace function schedule_goes_on(s schedule, was schedule, of timestamptz) returns timestamptz
language plpgsql stable set search_path from current as $$
declare
    done timestamptz;
    next timestamptz;
begin
    if s.paused_at is not null then
        return null;
    end if;
    -- whole seconds only: a run by hand is not for a time of the line
    done := (select max(r.due) from cron_run r
             where r.schedule = s.name and r.due >= coalesce(s.runs_from, '-infinity')
               and r.due = date_trunc('second', r.due));
    next := case when (s.cron, s.tz) = (was.cron, was.tz) and was.next_run is not null then was.next_run
                 else cron_next(s.cron, s.tz, of) end;
    return case when next <= done then cron_next(s.cron, s.tz, done) else next end;
end $$;
comment on function schedule_goes_on(schedule, schedule, timestamptz) is 'The next time of a schedule after an undo: '
    'the time that was next before the undone act (was; of: when the act was done), or the first time after all runs '
    'since. So no time runs twice, and catch_up decides about times that passed in between';

create or replace function schedule_undone(a audit, was schedule, present schedule) returns schedule
language plpgsql stable set search_path from current as $$
declare
    s schedule := was;
begin
    if a.verb in ('schedule pause', 'schedule resume') then -- other changes since then stay
        s := present;
        s.paused_at := was.paused_at;
        s.paused_by := was.paused_by;
        s.pause_reason := was.pause_reason;
    else
        s.changed := clock_timestamp();
    end if;
    if present.name is not null then -- its runs are not undone
        s.last_run := present.last_run;
        s.last_job := present.last_job;
        s.runs_from := present.runs_from;
        s.error := present.error;
        s.error_at := present.error_at;
    end if;
    if present.name is not null and a.verb = 'schedule set' then -- a pause since then stays
        s.paused_at := present.paused_at;
        s.paused_by := present.paused_by;
        s.pause_reason := present.pause_reason;
    end if;
    s.next_run := schedule_goes_on(s, was, a.at);
    return s;
end $$;
comment on function schedule_undone(audit, schedule, schedule) is 'The schedule after an undo of the act. was: before '
    'the act; present: now (NULL: it was removed)';

create or replace function undo_on_schedule(a audit, out rows jsonb)
language plpgsql set search_path from current as $$
declare
    r       record;
    was     schedule;
    present schedule;
begin
    perform from schedule x where x.name = a.params ->> 'schedule' for update;
    perform scheduler_lock(true); -- as in schedule_set
    select * into r from undo_schedule(a);
    if r.becomes is not null and r.was is null then
        delete from schedule x where x.name = r.id;
    elsif r.becomes is not null then
        select * into present from schedule x where x.name = r.id for update;
        was := jsonb_populate_record(null::schedule, r.was - 'payload');
        was.payload := (r.was ->> 'payload')::json;
        perform schedule_put(schedule_undone(a, was, present));
    end if;
    rows := jsonb_build_array(jsonb_build_object('id', r.id, 'state', r.becomes, 'why', r.why));
end $$;
comment on function undo_on_schedule(audit) is 'Undoes an action on a schedule, but not the runs since then, nor what '
    'others changed since then';

create or replace function undo(action uuid, batch int, of uuid, after text default null, expected bigint default null,
    reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    a    audit;
    part int;
    rows jsonb;
begin
    a := undo_check(undo.of);
    if act_begin(action, batch, 'undo', a.queue, a.node,
                 jsonb_build_object('of', undo.of, 'verb', a.verb, 'schedule', a.params ->> 'schedule'), reason,
                 expected) then
        if batch = 1 and expected is not null then
            perform check_expected(expected, (select coalesce(sum(p.n), 0)::bigint from undo_preview(undo.of) p
                                              where p.state is not null));
        end if;
        select min(b.batch) into part from audit_batch b
        where b.action = undo.of and b.batch > coalesce(after::int, 0);
        rows := case when a.verb in ('requeue', 'edit', 'priority', 'reschedule') then undo_jobs(action, a, part)
                     when a.verb in ('discard', 'cancel') then undo_remove(action, a, part)
                     when a.verb in ('pause', 'resume', 'set') then undo_on_queue(a)
                     else undo_on_schedule(a) end;
        perform act_end(action, batch, rows, null, case
            when exists (select from audit_batch b where b.action = undo.of and b.batch > part) then part::text end);
    end if;
    return query select * from act_answer(action, batch);
end $$;
comment on function undo(uuid, int, uuid, text, bigint, text) is 'Takes an action (of) back, one batch of it a call: '
    'call again with the next batch number and with the cursor of the last answer as after, until the cursor is NULL. '
    'Rows that are no longer as the action left them are left alone. Raises QT007 if the action can''t be undone at '
    'all';

-- 80_readers
-- What consoles read: counts, rates, groups of errors. The figures are exact and of one snapshot: the newest fold plus
-- the deltas that it did not see. They cost the same at any number of jobs: nothing here counts rows of queue.

create or replace view new_delta as
with f as materialized (
    select snapshot, xid, at, pg_snapshot_xmax(snapshot) > pg_snapshot_xmax(pg_current_snapshot()) as restored
    from fold order by fold desc limit 1
)
select d.* from delta d
where d.xid >= (select pg_snapshot_xmax(snapshot) from f)
union all -- not OR: with statistics of full tables the planner would read all of delta
select d.* from delta d
where d.xid = any(array(select pg_snapshot_xip(snapshot) from f union all select xid from f))
  and d.xid < (select pg_snapshot_xmax(snapshot) from f)
union all -- restored into a cluster with lower ids (see moved()): until the next step the time decides what is new
select d.* from delta d
where (select restored from f) and d.at > (select at from f) and d.xid < (select pg_snapshot_xmax(snapshot) from f)
  and d.xid <> all(array(select pg_snapshot_xip(snapshot) from f union all select xid from f));
comment on view new_delta is 'Deltas that the newest fold has not seen';

create or replace function overview()
returns table (queue text, scheduled bigint, ready bigint, retry bigint, running bigint, failed bigint,
    oldest timestamptz, pushed bigint, completed bigint, fails bigint, retried bigint, cancelled bigint, lost bigint,
    run_ms bigint, blocked bigint)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set jit = off as $$
#variable_conflict use_column
begin
    return query
    with part as (
        select queue, scheduled, ready, retry, failed, oldest, pushed, completed, fails, retried, cancelled, lost,
               run_ms, blocked, null::bigint as runs
        from counter where fold = (select fold from fold order by fold desc limit 1) and error_key is null
        union all
        select queue, scheduled, ready, retry, failed, case when pushed > 0 and ready > 0 then at end, pushed,
               completed, fails, retried, cancelled, lost, run_ms, blocked, null
        from new_delta where error_key is null
        union all
        select queue, null, null, null, null, null, null, null, null, null, null, null, null, null, cardinality(seqs)
        from live where lock_key is not null
    ), total as (
        select queue, coalesce(sum(scheduled), 0)::bigint as scheduled, sum(ready)::bigint as ready,
               coalesce(sum(retry), 0)::bigint as retry, coalesce(sum(runs), 0)::bigint as runs,
               coalesce(sum(failed), 0)::bigint as failed, min(oldest) as oldest,
               coalesce(sum(pushed), 0)::bigint as pushed, coalesce(sum(completed), 0)::bigint as completed,
               coalesce(sum(fails), 0)::bigint as fails, coalesce(sum(retried), 0)::bigint as retried,
               coalesce(sum(cancelled), 0)::bigint as cancelled, coalesce(sum(lost), 0)::bigint as lost,
               coalesce(sum(run_ms), 0)::bigint as run_ms, coalesce(sum(blocked), 0)::bigint as blocked
        from part group by queue)
    select coalesce(t.queue, c.queue), coalesce(t.scheduled, 0), coalesce(w.waits, 0), coalesce(t.retry, 0),
           greatest(0, least(t.runs, t.ready)), -- leases may name jobs that are gone
           coalesce(t.failed, 0), case when w.waits > 0 then t.oldest end, coalesce(t.pushed, 0),
           coalesce(t.completed, 0), coalesce(t.fails, 0), coalesce(t.retried, 0), coalesce(t.cancelled, 0),
           coalesce(t.lost, 0), coalesce(t.run_ms, 0), coalesce(t.blocked, 0)
    from total t full join queue_config c on c.queue = t.queue
    cross join lateral (select greatest(0, t.ready - t.runs) as waits) w;
end $$;
comment on function overview() is 'One row a queue: exact counts by state; since when its oldest waiting job has been '
    'ready (up to a second old; with more than a thousand queues and priorities older, so that the sum takes at most a '
    'twentieth of the time); and how many jobs were ever pushed, completed, failed for good, retried. Costs the same '
    'at any number of jobs';

create or replace function rates()
returns table (queue text, at timestamptz, pushed bigint, completed bigint, fails bigint, ready bigint,
    oldest timestamptz)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select c.queue, f.at, sum(c.pushed)::bigint, sum(c.completed)::bigint, sum(c.fails)::bigint, sum(c.ready)::bigint,
           min(c.oldest)
    from (select f.fold, f.at from fold f
          where f.keep and f.at > now() - interval '10 min' and f.at < now() + interval '1 min'
            and (f.fold = (select k.fold from fold k where k.keep order by k.fold desc limit 1)
                 or not exists (select from queue_config offset 1000))
            and f.fold >= coalesce((select k.swept[5] from fold k where k.keep order by k.fold desc limit 1), 0)) f
    cross join lateral (select c.* from counter c where c.fold = f.fold and c.error_key is null offset 0) c
    group by c.queue, f.at order by f.at, c.queue
$$;
comment on function rates() is 'For each 10 s of the last 10 minutes: how many jobs had been pushed, completed and '
    'failed, how many were ready or running, and since when the oldest was ready. With more than a thousand queues '
    'only the newest of these points. A fold from a time ahead of now is left out: the clock was set back since';

create or replace function failure_groups()
returns table (queue text, error_key text, n bigint, first_at timestamptz, last_at timestamptz)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    with base as materialized (
        select * from fold where keep order by fold desc limit 1
    ), part as (
        select c.queue, c.error_key, c.failed, c.first_at, c.last_at
        from base join counter c using (fold) where c.error_key is not null
        union all
        select d.queue, d.error_key, d.failed, z.at, z.at
        from base b cross join lateral deltas_since(b.snapshot, b.xid) d
        cross join lateral (select case when d.failed > 0 then d.at end as at) z where d.error_key is not null)
    select queue, error_key, sum(failed)::bigint, min(first_at), max(last_at)
    from part group by 1, 2 having sum(failed) > 0
$$;
comment on function failure_groups() is 'Failed jobs by queue and group of errors. The group * is the sum of all '
    'groups beyond the largest 2000';

-- 81_worker
-- What worker and scheduler processes ask beside their jobs: whether there is anything left (work --drain), to give
-- back leases of a claim whose answer was lost, and to let another scheduler take over.

create or replace function has_waiting(queue text) returns boolean
language plpgsql stable set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off
    set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    place record;
    seen  tick;
begin
    select * into place from newest_cursor(has_waiting.queue);
    select * into seen from tick t order by t.tick desc limit 1;
    return exists (select from work_queue w -- in a free lease
                   cross join lateral ranges(w.seqs, w.scattered) r
                   cross join lateral (
                       select from queue j
                       where j.queue = w.queue and j.priority = w.priority and j.state = 'ready'
                         and j.seq between r.low and r.high and w.seqs[width_bucket(j.seq, w.seqs)] = j.seq limit 1) j
                   where w.queue || '' = has_waiting.queue and w.lease + 0 >= coalesce(place.low, 0)
                     and w.lock_key is null)
        or exists (select from generate_series(0, 9) p -- not cut yet
                   cross join lateral (
                       select from queue j
                       where j.queue = has_waiting.queue and j.priority = p::smallint and j.state = 'ready'
                         and j.seq > coalesce(place.seq[p + 1], 0) limit 1) j)
        or exists (select from deltas_since(seen.snapshot, seen.xid) d -- committed after the last step
                   where d.queue = has_waiting.queue and (d.ready > 0 or d.min_seq is not null));
end $$;
comment on function has_waiting(text) is 'Whether a queue has a job that is ready and not running. Reads the tables, '
    'not the counters';

create or replace function backlog(queues text[] default null) returns table (ready bigint)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    with counted as materialized (
        select o.queue, o.ready from overview() o left join queue_config q on q.queue = o.queue
        where (queues is null or o.queue = any(queues)) and q.paused_at is null and q.max_running is distinct from 0
          and o.ready > 0
    )
    select case when exists (select from counted c where has_waiting(c.queue)) then (select sum(c.ready) from counted c)
                else 0 end::bigint
$$;
comment on function backlog(text[]) is 'How many jobs of these queues (NULL: all) are ready and not running, by the '
    'counters; 0 if the tables hold none. Queues from which nothing can be claimed (paused, limit 0) do not count';

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
        where w.lease = any(array(select l.lease from live l where l.lock_key = keep_only.node))
          and w.lock_key = keep_only.node and w.lease <> all(keep_only.leases)
          and exists (select from node x where x.lock_key = keep_only.node and x.session = keep_only.session)
        order by w.lease + 0 for update of w) z;
    if mine is null then
        return 0;
    end if;
    perform scheduler_lock(true);
    select count(*) into n from take_back(mine, false, false, null);
    return n;
end $$;
comment on function keep_only(text, uuid, bigint[]) is 'For a worker that lost the answer of a claim: gives back all '
    'leases of its node except these. Their jobs become ready again, and no try is counted. Returns how many jobs';

create or replace function scheduler_stop(holder text) returns boolean
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    last scheduler;
begin
    perform scheduler_lock(true);
    select * into last from scheduler order by term desc limit 1;
    if last.holder is distinct from holder or last.until <= clock_timestamp() then
        return false;
    end if;
    insert into scheduler (holder, until) values (holder, clock_timestamp());
    delete from scheduler where term = last.term and term > 0;
    perform leave_slots();
    return true;
end $$;
comment on function scheduler_stop(text) is 'Ends the active scheduler''s turn, so that another scheduler may take '
    'over at once';

-- 82_check
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
    if current_setting('transaction_isolation') <> 'read committed' then
        raise 'this function needs the isolation level READ COMMITTED' using errcode = 'QT007';
    end if;
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
    due   timestamptz;
begin
    if anew is not null then
        return check_anew(anew, most);
    end if;
    select max(at + greatest(interval '1 min', ms * interval '1 s')) into due from checked;
    -- within the scheduler's step: only if no keep_books() runs, and if there are few dead rows
    if most is not null then
        due := coalesce(due, (select installed_at from meta)) + interval '5 min';
        if pg_stat_get_dead_tuples('queue'::regclass) > 100000 then
            return 60000;
        end if;
    end if;
    if due > begun then
        return least(60000, 1 + 1000 * extract(epoch from due - begun));
    end if;
    if most is null then
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
    f     fold;
    named boolean;
    wait  int;
begin
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

-- 83_repair
-- Acts that put the queue's own books right: what `queuetop doctor --fix` calls. None of them changes what a job is.

create or replace function stranded(queue text) returns bigint
language plpgsql stable set search_path from current set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
begin
    return (
        with leased as materialized (
            select unnest(l.seqs) as seq from live l where l.queue = stranded.queue
        ), behind as materialized (
            select j.seq from newest_cursor(stranded.queue) c
            cross join lateral priorities_of(c.seq) p
            cross join lateral (
                select q.seq from queue q
                where q.queue = stranded.queue and q.priority = p.priority and q.state = 'ready' and q.seq <= p.at
                order by q.seq limit 1000) j
        )
        select count(*) from behind b where not exists (select from leased l where l.seq = b.seq));
end $$;
comment on function stranded(text) is 'How many ready jobs of a queue are behind its cursor and in no lease, among the '
    'first 1000 of each priority. Call it under the scheduler''s lock: otherwise a step may just be making their '
    'leases';

create or replace function repair_orphans(queue text) returns jsonb
language plpgsql set search_path from current as $$
declare
    n bigint;
begin
    perform scheduler_lock(true);
    n := stranded(repair_orphans.queue);
    if n = 0 then
        return jsonb_build_object('id', repair_orphans.queue, 'why', 'no job stands behind the cursor');
    end if;
    perform settle_names(array[repair_orphans.queue]);
    perform wake_queue(repair_orphans.queue);
    return jsonb_build_object('id', repair_orphans.queue, 'state', 'repaired',
                              'why', format('%s job%s will be handed out', n, case when n <> 1 then 's' end));
end $$;
comment on function repair_orphans(text) is 'For repair(): lowers the cursor of a queue to before its first ready job, '
    'as a scheduler does that takes over, and wakes the scheduler';

create or replace function repair_counters(queue text) returns jsonb
language plpgsql set search_path from current as $$
declare
    c record;
begin
    select * into c from compare_queue(repair_counters.queue);
    if c.wrongs > 0 then
        if counted_anew() is not null then -- otherwise compare_queue() has written them
            perform check_log(repair_counters.queue, c.diffs);
        end if;
        return jsonb_build_object('id', queue, 'state', 'repaired', 'why', (
            select format('%s count%s wrong: ', c.wrongs, case when c.wrongs = 1 then ' was' else 's were' end)
                || string_agg(format('%s: counted %s %s, there are %s', left(difference_text(d.diff), 200),
                                     d.diff->>'was', d.diff->>'state', d.diff->>'is'), '; ' order by d.n)
                || case when c.wrongs > 5 then format('; and %s more: see the server''s log', c.wrongs - 5) else '' end
            from jsonb_array_elements(c.diffs) with ordinality d (diff, n) where d.n <= 5));
    end if;
    return jsonb_build_object('id', queue, 'why',
        case c.wrongs when 0 then 'its counters are right'
                      when -1 then 'counting takes too long here: the scheduler does it'
                      else 'another session counts it now' end);
end $$;
comment on function repair_counters(text) is 'For repair(): counts the jobs of a queue anew. The answer names the '
    'first differences, so the act''s own row of the audit has them';

create or replace function repair_days() returns jsonb
language plpgsql set search_path from current as $$
begin
    perform scheduler_lock(true);
    perform add_days();
    return coalesce(
        (select jsonb_agg(jsonb_build_object('id', c.relname, 'state', 'repaired') order by c.relname)
         from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent in ('history'::regclass, 'attempt'::regclass)
           and c.xmin = pg_current_xact_id()::xid), -- made by this transaction, here or in have_day()
        jsonb_build_object('id', 'partitions', 'why', 'those of a week are there'));
end $$;
comment on function repair_days() is 'For repair(): makes the partitions of today and a week ahead that are missing';

create or replace function repair(action uuid, part text, queue text default null, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    slip text;
    rows jsonb;
begin
    if part in ('counters', 'orphans', 'partitions') is not true or (part = 'partitions') <> (queue is null) then
        raise 'repair needs a part: counters or orphans of a queue, or partitions' using errcode = 'QT007';
    end if;
    if act_begin(action, 1, 'repair', queue, null, jsonb_build_object('part', part), reason, null) then
        slip := case when queue is not null then unseen(queue, null) end;
        if slip is not null then
            rows := jsonb_build_object('id', queue, 'why', slip);
        else
            rows := case part when 'counters' then repair_counters(queue) when 'orphans' then repair_orphans(queue)
                              else repair_days() end;
        end if;
        perform act_end(action, 1, case jsonb_typeof(rows) when 'array' then rows else jsonb_build_array(rows) end);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function repair(uuid, text, text, text) is 'Puts the queue''s own books right. part: counters of a queue '
    '(they are counted anew), orphans of a queue (ready jobs that no scheduler looks for any more are handed out), '
    'partitions (those of a week ahead). What is right already is left alone, and the answer says so';

-- 90_roles
-- Rights. PUBLIC has none. The viewer reads; the worker pushes and works; the operator, who is a viewer too, may call
-- the administrative functions. Only the owner may change a table directly, and nobody may change the audit. Roles are
-- created if that is allowed; a NOTICE names what was not granted.

create or replace function role_functions() returns table (kind text, functions text[])
language sql immutable set search_path from current as $$
    with list (work, act, read) as (values (
        '{claim_or_wait,wake,push,push_text,push_bytes,push_many,claim,complete,complete_and_claim,fail,extend,'
        'give_back,node_start,node_beat,node_sleep,node_stop,schedule,schedule_or_wait,is_new,scheduler_sleep,'
        'scheduler_stop,backlog,keep_only,keep_books,fold_beside,uuid_v7}'::text[],
        '{requeue,requeue_at_priority,requeue_where,release,extend_leases,purge,pause,resume,cancel,discard,'
        'delete_jobs,drain_node,set_queue,'
        'schedule_set,schedule_pause,schedule_resume,schedule_run,schedule_remove,signal_backend,'
        'send_signal,cancel_where,discard_where,delete_where,set_priority,set_priority_where,set_time,'
        'set_time_where,undo,edit_job,push_by_hand,repair}'::text[],
        '{history_of,living,purge_audit_preview,error_key,overview,rates,minutes,minute_steps,percentiles,'
        'failure_groups,slot_class,requeue_preview,requeue_sample,queue_pace,failed_within_hour,'
        'release_preview,extend_preview,purge_preview,setting_int,setting_interval,backlog,node_alive,cron_times,'
        'cron_outcome,cron_result,schedule_preview,queue_settings,set_queue_preview,pause_preview,remove_preview,'
        'change_preview,undo_preview,undo_why,audit_change,edit_preview,push_preview,shortfalls,'
        'role_functions}'::text[]))
    select 'viewer', read from list union all select 'worker', work from list
    union all select 'operator', act from list
$$;
comment on function role_functions() is 'Which functions each kind of role may call: viewer, worker, operator. An '
    'operator is a viewer, too';

do $$
declare
    s        text := current_schema();
    viewer   text := coalesce(nullif(current_setting('queuetop.viewer', true), ''), 'queues_viewer');
    worker   text := coalesce(nullif(current_setting('queuetop.worker', true), ''), 'queues_worker');
    operator text := coalesce(nullif(current_setting('queuetop.operator', true), ''), 'queues_operator');
    role     text;
    f        record;
begin
    foreach role in array array[viewer, worker, operator] loop
        begin
            if to_regrole(quote_ident(role)) is null then
                execute format('create role %I nologin', role);
                execute format('comment on role %I is %L', role, 'queuetop');
            end if;
        exception when insufficient_privilege or duplicate_object then
            null;
        end;
    end loop;
    for f in select p.oid::regprocedure as name, p.proname from pg_proc p
             where p.pronamespace = quote_ident(s)::regnamespace and p.prokind = 'f' loop
        execute format('revoke all on function %s from public', f.name);
    end loop;
    foreach role in array array[viewer, worker, operator] loop
        if to_regrole(quote_ident(role)) is null then
            raise notice 'role % does not exist and could not be made: nothing was granted to it', quote_ident(role);
            continue;
        end if;
        execute format('grant usage on schema %I to %I', s, role);
        for f in select p.oid::regprocedure as name, p.proname from pg_proc p
                 where p.pronamespace = quote_ident(s)::regnamespace and p.prokind = 'f'
                   and p.proname in (
                       select unnest(r.functions) from role_functions() r
                       where r.kind = 'viewer' and role in (viewer, operator) or r.kind = 'worker' and role = worker
                          or r.kind = 'operator' and role = operator)
        loop
            execute format('grant execute on function %s to %I', f.name, role);
        end loop;
        if role = worker then
            execute format('grant insert (id, queue, kind, priority, payload, body, payload_type, run_after, '
                           'expires_at, unique_key, '
                           'max_tries, run_timeout, lease_timeout, concurrency_key) on queue to %I', role);
            execute format('grant usage on sequence job_seq to %I', role);
            execute format('grant select on meta, setting to %I', role);
        else
            execute format('grant select on all tables in schema %I to %I', s, role);
        end if;
    end loop;
end $$;
