-- The tables of the scheduler and of the counters. Whatever would be updated many times a second is APPENDED instead,
-- and old rows are deleted in ranges that nobody scans. So readers stay fast while a transaction elsewhere is open for
-- an hour: VACUUM can't remove dead rows then, but no query reads through them.
--   delta    what each statement changed, with its transaction id
--   fold     counter: the sum of all deltas that the fold's snapshot saw
--   tick     one row a scheduler step that did something: the snapshot of deltas it has seen, and hints
--   cursor   per queue, how far each priority has been cut
--   mark     where the living leases begin, and which older ones still live
-- A reader adds to the newest fold the deltas that became visible since: xid among those in progress then, at or
-- above xmax then, or the fold's own. So an open transaction elsewhere delays nothing but its own row.

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
comment on table delta is 'What a statement changed in one queue and priority; ready to failed and blocked are '
    'signed, pushed to lost only grow';
comment on column delta.min_seq is 'Ready jobs came into being between min_seq and max_seq: behind the cursor they '
    'are late, and looked for';
comment on column delta.min_after is 'Waiting jobs came into being, the earliest due at this time';
comment on column delta.error_key is 'Set: the row changes the group of errors only (its column failed), not the '
    'totals';
comment on column delta.waits is 'One element a completed job: milliseconds from ready to its start';
comment on column delta.runs is 'One element a completed job: milliseconds from its start to its end';

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
comment on table fold is 'One sum of the deltas: counter rows of the same number';
comment on column fold.snapshot is 'The deltas it saw: all that are visible in it, but those of xid';
comment on column fold.swept is 'Up to which tick, cursor, mark, minute, fold and newcomer the sweep after it has '
    'deleted: the next starts there';
comment on column fold.chunks is 'What the chunk of each of chunk_queues should be: the next step takes it over';
comment on column fold.ms is 'How long summing took where that was more than 25 ms: the next comes after 20 times as '
    'long, half a second at least';
comment on column fold.rolled is 'Its deltas, those since the kept fold before it, stand in minute';
comment on column fold.keep is 'One each 10 s is kept for 10 minutes (rates); these also sum the groups of errors';

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
comment on table counter is 'The counts of one fold; with error_key NULL per queue and priority, otherwise failed '
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
comment on column tick.filled is 'Free jobs after the last cut of all queues: the next comes when half of them are '
    'gone';
comment on column tick.cut_at is 'When the last cut was made';
comment on column tick.rate is 'Jobs claimed a second, about';
comment on column tick.hasty is 'Some node works some queues only: these may run dry while others are full';
comment on column tick.more is 'Jobs were left uncut';
comment on column tick.waiting is 'Queues that may have uncut jobs, 500 at most: a cut of all queues looks at these, '
    'not at each that exists (a paused or limited queue is in none of these lists: what ends that writes a delta)';
comment on column tick.place is 'More queues than that may have uncut jobs: all names are passed, some a step, and '
    'this was the last; NULL = no';
comment on column tick.again is 'A queue was left with uncut jobs that waiting had no room for: the names are passed '
    'once more';
comment on column tick.settled is 'After a take-over: every queue is looked at from its first job on, and these are '
    'done, up to this name; NULL = all';
comment on column tick.patrol is 'Once a second the next hundred queues are looked at, whatever the lists say: up to '
    'this name';
comment on column tick.slots is 'The most slots that a living node has, a second old at most: a cut does not read the '
    'nodes, whose heartbeats leave dead rows. NULL = none says so';
comment on column tick.joining is 'New names wait in newcomer: each step makes some of them known';
comment on column tick.known is 'Newcomers up to this number are known';
comment on column tick.names is 'How many queues there are, a second old at most; NULL = not counted';
comment on column tick.limited is 'Queues with limits that may have uncut jobs, 500 at most: only these are looked at '
    'when a token is due';
comment on column tick.limits is 'More of them than that have: all queues with limits are passed, some a step, and '
    'this was the last; NULL = no';
comment on column tick.measured is 'The chunks that folds up to this number have measured are taken over';
comment on column tick.trimmed is 'The history of queues up to this name has been looked through, see retain()';
comment on column tick.after is 'Waiting jobs due until this time have been promoted, those due at this very time up '
    'to the number after_seq';

create table if not exists cursor (
    n     bigint generated always as identity,
    queue text collate "C" not null,
    seq   bigint[] not null,
    high  bigint[] not null,
    low   bigint not null default 0,
    chunk int not null default 10
);
create unique index if not exists cursor_queue on cursor (queue, n desc);
-- not of n: the planner would look for a queue's newest row in it
create index if not exists cursor_number on cursor ((n + 0));
alter table cursor set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
comment on table cursor is 'How far a queue has been cut; its newest row counts';
comment on column cursor.seq is 'By priority (0 first): jobs up to here have been cut; NULL = no job of that priority '
    'was ever seen';
comment on column cursor.high is 'By priority: jobs up to here may stand in a lease, so a cut that starts lower looks '
    'at the leases first';
comment on column cursor.low is 'No free lease of the queue has a lower number';
comment on column cursor.chunk is 'Measured jobs a lease';

create table if not exists newcomer (
    n        bigint generated always as identity primary key,
    queue    text collate "C" not null,
    priority smallint not null,
    seq      bigint not null
);
alter table newcomer set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);
comment on table newcomer is 'New names of queues, if more came than a step takes: the next steps make them known, in '
    'order (tick.known)';
comment on column newcomer.seq is 'The first job that was seen: its cursor starts before it';

create table if not exists mark (
    n     bigint generated always as identity (start 2) primary key,
    mark  bigint not null,
    older bigint[] not null
);
comment on table mark is 'Where the living leases are: number mark and above, and the older ones listed; the newest '
    'row counts';

create table if not exists scheduler (
    term   bigint generated by default as identity primary key,
    holder text not null,
    until  timestamptz not null
);
insert into scheduler (term, holder, until) values (0, 'lock', '-infinity'), (-1, 'fold', '-infinity')
on conflict do nothing;
comment on table scheduler is 'Row 0 is the lock that every maker of free leases takes, row -1 that of who folds the '
    'counters; the newest row names the active scheduler';

-- The first rows name their numbers: with wal_level minimal a sequence that is used in the transaction that makes it
-- would give the same 32 numbers again after a crash.
insert into fold (fold, snapshot, xid, keep) overriding system value
select 1, pg_current_snapshot(), pg_current_xact_id(), true where not exists (select from fold);
insert into tick (tick, snapshot, want, weights, free, jobs, more, after, mark_at, day_at) overriding system value
select 1, pg_current_snapshot(), 20, 1, 0, 0, true, '-infinity', now(), '-infinity' where not exists (select from tick);
insert into mark (n, mark, older) overriding system value select 1, 0, '{}' where not exists (select from mark);
