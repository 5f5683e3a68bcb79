-- The tables of the scheduler and of the counters. A row that would be updated many times a second is APPENDED instead,
-- and old rows are deleted in ranges that nobody scans. VACUUM can't remove dead rows while a transaction elsewhere
-- stays open for an hour, but no query reads through them, so readers stay fast.
--   delta    what each statement changed, with its transaction id
--   fold     a sum of all deltas that the fold's snapshot saw; table counter has the sums of each queue and priority
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
alter table delta replica identity full;
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
alter table counter replica identity full;
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
alter table cursor replica identity using index cursor_queue;
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
