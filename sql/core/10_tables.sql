-- The tables that hold jobs: queue (unfinished), work_queue (leases), history and attempt (by day), and the settings:
-- queue_config, node. What each index of queue is for:
--   queue_ready       the scheduler reads jobs in order from behind a cursor; completions find theirs by (queue,
--                     priority, seq)
--   queue_due         promotion of scheduled and retry jobs
--   queue_other       lists of jobs that are not ready
--   queue_failed      groups of errors
--   queue_failed_at   failed jobs, the newest first
--   queue_unique      at most one job with a unique key, apart from failed and finished ones
--   queue_keyed       the blocked jobs of each concurrency key, and how many of the key are ready
--   queue_expires     jobs that may expire: all with expires_at, except failed ones
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
                case when scattered then seqs else seqs[pg_catalog.cardinality(seqs):] end) r (low, high)
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
          and q.seq between r.low and r.high
          and leased_jobs.seqs[pg_catalog.width_bucket(q.seq, leased_jobs.seqs)] = q.seq
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
    backend_pid int,
    clock_ahead interval
) with (fillfactor = 30);
comment on table node is 'Worker processes that registered (node_start). A worker may also claim without registration';
comment on column node.lock_key is 'The name of the node, and the lock_key of its leases';
comment on column node.session is 'A new uuid for each start of the process, so that two processes cannot share a name';
comment on column node.clock_ahead is 'How far the clock of its machine is ahead of the server''s; below 0 = behind, '
    'NULL = the worker has not said (node_clock)';
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
-- With a publication for all tables, PostgreSQL rejects each UPDATE and DELETE on a table without a replica identity.
-- So each table has one: its primary key, a unique index, or all its columns. Unless wal_level is logical, it costs
-- nothing.
alter table attempt replica identity full;
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
alter table history replica identity full;
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
    trusted boolean := only_ours();
    made uuid[] := array(select i from pg_catalog.unnest(ids) i where not own_id(i));
    own  uuid[] := array(select i from pg_catalog.unnest(ids) i where own_id(i));
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
