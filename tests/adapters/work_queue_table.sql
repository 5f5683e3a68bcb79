-- Two tables, queue and work_queue. Claims take the rows of work_queue in the order of column "created". Rows in every
-- state; one of them was marked as running, but no worker has got it.
create schema queues;
create table queues.queue (
    id uuid not null,
    created timestamp not null default now(),
    version integer not null default 0,
    queue varchar(255) not null,
    state varchar(40) not null,
    tries integer not null default 0,
    delay bigint,
    run_after timestamp,
    payload bytea,
    payload_type varchar(255),
    primary key (id)
);
create index ix_queue_state_run_after_created on queues.queue (state, run_after, created);
create table queues.work_queue (
    id uuid not null,
    version integer not null default 0,
    created timestamp not null default now(),
    batch_order integer not null default 0,
    started timestamp,
    lock_key varchar(255),
    lock_timeout timestamp,
    primary key (id),
    foreign key (id) references queues.queue (id) on delete cascade
);
create index ix_work_queue_created_order on queues.work_queue (created, batch_order);
insert into queues.queue (id, created, queue, state, tries, run_after, payload, payload_type)
select ('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, now() - ago, queue, state, tries, now() + later, payload, type
from (values
    (1, interval '9 min', 'mail', 'PENDING', 0, null::interval, convert_to('{"to": "ä@example.org"}', 'UTF8'), 'application/json'),
    (2, interval '8 min', 'mail', 'PENDING', 0, interval '1 h', convert_to('later \ with a backslash', 'UTF8'), 'text/plain'),
    (3, interval '7 min', 'mail', 'RETRY', 2, interval '10 min', null, null),
    (4, interval '6 min', 'mail', 'RETRY', 1, interval '-1 s', '\x00ff10', 'application/octet-stream'),
    (5, interval '30 min', 'mail', 'RUNNING', 0, null, '\xc3', 'text/plain'),
    (6, interval '29 min', 'mail', 'RUNNING', 0, null, null, null),
    (7, interval '28 min', 'report', 'RUNNING', 1, null, null, null),
    (8, interval '27 min', 'report', 'RUNNING', 0, null, null, null),
    (9, interval '26 min', 'report', 'RUNNING', 0, null, null, null),
    (10, interval '1 day', 'report', 'FAILED', 5, null, null, null),
    (11, interval '2 days', 'report', 'COMPLETED', 1, null, null, null),
    (12, interval '3 days', 'report', 'PARKED', 0, null, null, null)
) v (i, ago, queue, state, tries, later, payload, type);
insert into queues.work_queue (id, created, version, batch_order, started, lock_key, lock_timeout)
select ('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, now() - interval '5 min', version, i, now() + started, node, now() + until
from (values
    (5, 1, interval '-1 min', 'node-1', interval '1 min'),
    (6, 1, interval '-1 min', 'node-1', interval '1 min'),
    (7, 3, interval '-10 min', 'node-2', interval '-8 min'),
    (8, 0, null, null, null)
) v (i, version, started, node, until);
