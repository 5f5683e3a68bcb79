-- The tables of the library pgqueue with its row security: two tenants, rows in every state, a history with a partition a month.
do $$ begin
    create role queue_worker;
exception when duplicate_object then null;
end $$;
create schema queues;
create table queues.queue (
    tenant_id varchar(40) not null,
    id uuid not null,
    version integer not null default 0,
    created timestamp not null,
    updated timestamp,
    started timestamp,
    key varchar(255),
    schedule_id uuid,
    type varchar(40) not null,
    tries integer not null default 0,
    queue varchar(255) not null,
    state varchar(40) not null,
    delay integer,
    run_after timestamp,
    payload bytea,
    payload_type varchar(255),
    target jsonb,
    retry_policy jsonb,
    result bytea,
    result_type varchar(255),
    error varchar(1000),
    worker_data jsonb,
    primary key (id),
    unique (tenant_id, queue, key)
);
create index queue_run_after_created on queues.queue (run_after, created);
create table queues.queue_config (
    tenant_id varchar(40) not null,
    queue varchar(255) not null,
    created timestamp not null default now(),
    updated timestamp,
    version integer not null default 0,
    display_name varchar(255),
    paused boolean not null default false,
    retry_policy jsonb,
    primary key (tenant_id, queue)
);
create table queues.queue_history (
    tenant_id varchar(40) not null,
    id uuid not null,
    key varchar(255),
    queue varchar(255) not null,
    schedule_id uuid,
    type varchar(40) not null,
    created timestamp not null,
    scheduled timestamp not null,
    started timestamp not null,
    state varchar(40) not null,
    delay integer,
    tries integer not null,
    payload bytea,
    payload_type varchar(255),
    result bytea,
    result_type varchar(255),
    error varchar(1000),
    target jsonb,
    worker_data jsonb
) partition by range (created);
create index queue_history_id on queues.queue_history (id);
create index queue_history_tenant_state_created on queues.queue_history (tenant_id, state, created);
do $$
declare
    month timestamp;
begin
    for i in -2..1 loop
        month := date_trunc('month', localtimestamp) + make_interval(months => i);
        execute format('create table queues.%I partition of queues.queue_history for values from (%L) to (%L)',
                       'queue_history_' || to_char(month, 'YYYY_MM'), month, month + interval '1 month');
    end loop;
end $$;
create table queues.work_queue (
    id uuid not null,
    tenant_id varchar(40) not null,
    version integer not null default 0,
    created timestamp not null default now(),
    updated timestamp,
    batch_order integer not null default 0,
    started timestamp,
    lock_key varchar(255),
    lock_timeout timestamp,
    primary key (id),
    foreign key (id) references queues.queue (id) on delete cascade
);
create index work_queue_created_order on queues.work_queue (created, batch_order);
create table queues.worker_metadata (
    tenant_id varchar(40) not null default current_setting('pgqueue.current_tenant', false),
    key varchar(255) not null,
    value jsonb,
    version integer not null default 0,
    created timestamp not null default now(),
    updated timestamp,
    primary key (tenant_id, key)
);
create table queues.schedules (
    id uuid not null,
    tenant_id varchar(40) not null default current_setting('pgqueue.current_tenant', false),
    queue varchar(255) not null,
    type varchar(40) not null,
    key varchar(255),
    paused boolean default false,
    retry_policy jsonb,
    created timestamp not null default now(),
    updated timestamp,
    version integer not null default 0,
    tries integer not null default 0,
    next_run timestamp,
    last_run timestamp,
    payload bytea,
    payload_type varchar(255),
    target jsonb,
    schedule varchar(64),
    timezone varchar(32) not null,
    primary key (id)
);
create unique index schedule_tenant_key on queues.schedules (tenant_id, key);
create index schedule_next_run on queues.schedules (next_run, paused);
alter table queues.queue enable row level security;
create policy tenant_policy on queues.queue using (tenant_id = current_setting('pgqueue.current_tenant', true));
create policy worker_policy on queues.queue to queue_worker using (true);
alter table queues.queue_history enable row level security;
create policy tenant_policy on queues.queue_history using (tenant_id = current_setting('pgqueue.current_tenant', true));
create policy worker_policy on queues.queue_history to queue_worker using (true);
alter table queues.schedules enable row level security;
create policy tenant_policy on queues.schedules using (tenant_id = current_setting('pgqueue.current_tenant', true));
create policy worker_policy on queues.schedules to queue_worker using (true);

insert into queues.queue_config (tenant_id, queue, paused, retry_policy) values
    ('acme', 'mail', false, '{"type": "constant", "delay": 1000, "tries": 2}'), ('acme', 'report', true, null);
insert into queues.queue (tenant_id, id, created, type, queue, state, tries, run_after, key, payload, payload_type, target, error, retry_policy)
select tenant, ('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, now() - ago, type, queue, state, tries, now() + later, key, payload,
       'application/json', target, error, policy
from (values
    (1, 'acme', interval '9 min', 'HTTP', 'mail', 'PENDING', 0, null::interval, 'k1', convert_to('{"to": "a"}', 'UTF8'), '{"url": "http://localhost/"}'::jsonb, null, null::jsonb),
    (2, 'acme', interval '8 min', 'HTTP', 'mail', 'PENDING', 0, interval '1 h', null, null, null, null, null),
    (3, 'globex', interval '7 min', 'HTTP', 'mail', 'RETRY', 1, interval '10 min', null, null, null, 'no answer', null),
    (4, 'globex', interval '6 min', 'PULL', 'mail', 'RETRY', 2, interval '-1 s', null, '\x00ff10', null, 'no answer', '{"tries": 7}'),
    (5, 'acme', interval '30 min', 'HTTP', 'mail', 'RUNNING', 0, null, null, null, null, null, null),
    (6, 'acme', interval '29 min', 'HTTP', 'mail', 'RUNNING', 0, null, null, null, null, null, null),
    (7, 'acme', interval '28 min', 'HTTP', 'report', 'RUNNING', 1, null, null, null, null, null, null),
    (8, 'globex', interval '27 min', 'HTTP', 'report', 'RUNNING', 0, null, null, null, null, null, null),
    (9, 'globex', interval '26 min', 'HTTP', 'report', 'RUNNING', 0, null, null, null, null, null, null)
) v (i, tenant, ago, type, queue, state, tries, later, key, payload, target, error, policy);
insert into queues.work_queue (id, tenant_id, created, version, batch_order, started, lock_key, lock_timeout)
select ('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 'acme', now() - interval '5 min', version, i, now() + started, node, now() + until
from (values
    (5, 1, interval '-1 min', 'node-1', interval '30 min'),
    (6, 1, interval '-1 min', 'node-1', interval '30 min'),
    (7, 3, interval '-10 min', 'node-2', interval '-8 min'),
    (8, 0, null, null, null)
) v (i, version, started, node, until);
insert into queues.queue_history (tenant_id, id, key, queue, type, created, scheduled, started, state, tries, payload, payload_type, result, result_type, error)
select tenant, ('00000000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, key, queue, 'HTTP', now() - ago, now() - ago - interval '1 h', now() - ago - interval '1 min',
       state, tries, convert_to('{"n": 1}', 'UTF8'), 'application/json', convert_to(result, 'UTF8'), 'text/plain', error
from (values
    (21, 'acme', 'k1', 'mail', interval '1 h', 'FAILED', 2, null, 'no answer from 10.1.2.3'),
    (22, 'acme', null, 'mail', interval '2 h', 'FAILED', 2, 'half of it', 'no answer from 10.4.5.6'),
    (23, 'globex', null, 'report', interval '31 days', 'FAILED', 5, null, 'disk full'),
    (24, 'globex', null, 'report', interval '20 min', 'COMPLETED', 1, 'done', null),
    (25, 'acme', null, 'mail', interval '40 days', 'COMPLETED', 1, 'done', null)
) v (i, tenant, key, queue, ago, state, tries, result, error);
insert into queues.schedules (id, tenant_id, queue, type, key, paused, next_run, last_run, payload, payload_type, schedule, timezone) values
    ('00000000-0000-7000-8000-0000000000a1', 'acme', 'report', 'HTTP', 'nightly', false, now() + interval '8 h', now() - interval '16 h', '{}', 'application/json', '0 3 * * *', 'UTC'),
    ('00000000-0000-7000-8000-0000000000a2', 'globex', 'mail', 'HTTP', null, true, null, null, null, null, '*/5 * * * *', 'Europe/Warsaw');
