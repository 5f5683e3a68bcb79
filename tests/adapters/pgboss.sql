-- A copy of pg-boss (schema 46), written by us: only what the adapter uses. Jobs in every state.
create schema pgboss;
create table pgboss.version (version int primary key, cron_on timestamptz);
insert into pgboss.version values (46);
create type pgboss.job_state as enum ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');

create table pgboss.queue (
    name text primary key,
    policy text not null default 'standard',
    retry_limit int not null default 2,
    retry_delay int not null default 0,
    retry_backoff bool not null default false,
    retry_delay_max int,
    expire_seconds int not null default 900,
    retention_seconds int not null default 1209600,
    deletion_seconds int not null default 604800,
    dead_letter text,
    heartbeat_seconds int,
    notify bool not null default false,
    deferred_count int not null default 0,
    blocked_count int not null default 0,
    ready_count int not null default 0,
    active_count int not null default 0,
    failed_count int not null default 0,
    monitor_on timestamptz,
    created_on timestamptz not null default now()
);
create table pgboss.job (
    id uuid not null default gen_random_uuid(),
    name text not null,
    priority int not null default 0,
    data jsonb,
    state pgboss.job_state not null default 'created',
    retry_limit int not null default 2,
    retry_count int not null default 0,
    retry_delay int not null default 0,
    retry_backoff bool not null default false,
    retry_delay_max int,
    expire_seconds int not null default 900,
    deletion_seconds int not null default 604800,
    singleton_key text,
    singleton_on timestamp,
    group_id text,
    group_tier text,
    start_after timestamptz not null default now(),
    created_on timestamptz not null default now(),
    started_on timestamptz,
    completed_on timestamptz,
    keep_until timestamptz not null default now() + interval '14 d',
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamptz,
    heartbeat_seconds int,
    blocked bool not null default false,
    blocking bool not null default false,
    pending_dependencies int not null default 0,
    source_name text,
    source_id uuid,
    source_created_on timestamptz,
    source_retry_count int,
    source_output jsonb,
    source_root_id uuid,
    trace_context jsonb,
    upsert_by_key bool,
    primary key (name, id)
) partition by list (name);
create table pgboss.job_common partition of pgboss.job default;
create index on pgboss.job_common (name, priority desc, created_on, start_after) where state < 'active' and not blocked;
create index on pgboss.job_common (name, state, blocked, start_after) where state in ('created', 'retry', 'active', 'failed');
create unique index on pgboss.job_common (name, singleton_key) where state = 'created' and upsert_by_key;
create unique index on pgboss.job_common (name, coalesce(singleton_key, '')) where state = 'created' and policy = 'short';
create table pgboss.schedule (
    name text not null, key text not null default '', kind text not null default 'cron', cron text not null, timezone text,
    data jsonb, options jsonb, created_on timestamptz not null default now(),
    updated_on timestamptz not null default now(), last_job_id uuid, primary key (name, key)
);
create table pgboss.instance (
    id uuid primary key, name text, host text not null, pid int not null, version text not null,
    heartbeat_seconds int not null, workers jsonb not null default '[]', started_on timestamptz not null default now(),
    heartbeat_on timestamptz not null default now(), stopped_on timestamptz
);

insert into pgboss.queue (name, dead_letter, notify, heartbeat_seconds, policy)
values ('mail', 'mail-dead', true, null, 'standard'), ('mail-dead', null, false, null, 'standard'),
       ('video', null, false, 30, 'standard'), ('only-one', null, false, null, 'short');
insert into pgboss.job (name, id, state, data, start_after, started_on, completed_on, retry_count, output, priority)
values ('mail', '00000000-0000-4000-8000-000000000001', 'created', '{"to": "a"}', now() - interval '1 min', null, null, 0, null, 0),
       ('mail', '00000000-0000-4000-8000-000000000002', 'created', '{"to": "b"}', now() + interval '1 h', null, null, 0, null, 5),
       ('mail', '00000000-0000-4000-8000-000000000003', 'retry', '{"to": "c"}', now() + interval '30 min', now() - interval '1 min', null, 1,
        '{"name": "Error", "message": "connection refused on port 25", "stack": "Error: connection refused\n    at send"}', 0),
       ('mail', '00000000-0000-4000-8000-000000000004', 'active', '{"to": "d"}', now() - interval '2 min', now() - interval '1 min', null, 0, null, 0),
       ('mail', '00000000-0000-4000-8000-000000000005', 'completed', '{"to": "e"}', now() - interval '2 h', now() - interval '2 h', now() - interval '1 h', 0,
        '{"value": "sent"}', 0),
       ('mail', '00000000-0000-4000-8000-000000000006', 'cancelled', '{"to": "f"}', now() - interval '2 h', null, now() - interval '1 h', 0, null, 0),
       ('mail', '00000000-0000-4000-8000-000000000007', 'failed', '{"to": "g"}', now() - interval '2 h', now() - interval '2 h', now() - interval '1 h', 2,
        '{"message": "no such user 4711"}', 0),
       ('mail', '00000000-0000-4000-8000-000000000008', 'failed', null, now() - interval '2 h', now() - interval '2 h', now() - interval '1 h', 2,
        '{"value": {"message": "job heartbeat timeout"}}', 0);
insert into pgboss.job (name, id, source_name, source_id, data)
values ('mail-dead', '00000000-0000-4000-8000-000000000009', 'mail', '00000000-0000-4000-8000-000000000007', '{"to": "g"}');
insert into pgboss.job (name, id, state, started_on, heartbeat_on, heartbeat_seconds)
values ('video', '00000000-0000-4000-8000-00000000000a', 'active', now() - interval '10 min', now() - interval '5 min', 30);
insert into pgboss.job (name, id, blocked) values ('video', '00000000-0000-4000-8000-00000000000b', true);
insert into pgboss.job (name, id, state, policy) values ('only-one', '00000000-0000-4000-8000-00000000000c', 'created', 'short'),
                                                        ('only-one', '00000000-0000-4000-8000-00000000000d', 'cancelled', 'short');
insert into pgboss.schedule (name, key, cron, timezone, data) values ('mail', '', '0 3 * * *', 'Europe/Berlin', '{"all": true}'),
                                                                     ('mail', 'noon', '0 12 * * *', null, null);
update pgboss.schedule set last_job_id = '00000000-0000-4000-8000-000000000005' where key = '';
insert into pgboss.job (name, id, state, singleton_key, upsert_by_key, completed_on)
values ('mail', '00000000-0000-4000-8000-00000000000e', 'cancelled', 'k', true, now()),
       ('mail', '00000000-0000-4000-8000-00000000000f', 'created', 'k', true, null);
insert into pgboss.instance (id, name, host, pid, version, heartbeat_seconds, workers, heartbeat_on, stopped_on)
values ('00000000-0000-4000-8000-000000000021', 'mailer', 'web-1', 11, '12.38.0', 30,
        '[{"queue": "mail", "localConcurrency": 4, "batchSize": 2, "active": 1}]', now(), null),
       ('00000000-0000-4000-8000-000000000022', null, 'web-2', 12, '12.38.0', 30, '[]', now() - interval '1 h', null),
       ('00000000-0000-4000-8000-000000000023', null, 'web-3', 13, '12.38.0', 30, '[]', now() - interval '1 h', now());
