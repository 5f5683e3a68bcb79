-- River's tables, as far as the adapter needs them (names, types, constraints and indexes of migration 7). Jobs in every state.
create type river_job_state as enum ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled');
create table river_migration (line text not null, version bigint not null, created_at timestamptz not null default now(),
                              primary key (line, version));
insert into river_migration (line, version) select 'main', v from generate_series(1, 7) v;

create function river_job_state_in_bitmask(bitmask bit(8), state river_job_state) returns boolean language sql immutable as $$
    select get_bit(bitmask, 7 - array_position(array['available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running',
                                                     'scheduled'], state::text) + 1) = 1
$$;
create table river_job (
    id           bigserial primary key,
    state        river_job_state not null default 'available',
    attempt      smallint not null default 0,
    max_attempts smallint not null,
    attempted_at timestamptz,
    created_at   timestamptz not null default now(),
    finalized_at timestamptz,
    scheduled_at timestamptz not null default now(),
    priority     smallint not null default 1,
    args         jsonb not null default '{}',
    attempted_by text[],
    errors       jsonb[],
    kind         text not null,
    metadata     jsonb not null default '{}',
    queue        text not null default 'default',
    tags         varchar(255)[] not null default '{}',
    unique_key   bytea,
    unique_states bit(8),
    constraint finalized_or_finalized_at_null check ((finalized_at is null) = (state not in ('cancelled', 'completed', 'discarded'))),
    constraint max_attempts_is_positive check (max_attempts > 0),
    constraint priority_in_range check (priority between 1 and 4),
    constraint queue_length check (char_length(queue) between 1 and 127),
    constraint kind_length check (char_length(kind) between 1 and 127)
);
create index river_job_kind on river_job (kind);
create index river_job_state_and_finalized_at_index on river_job (state, finalized_at) where finalized_at is not null;
create index river_job_prioritized_fetching_index on river_job (state, queue, priority, scheduled_at, id);
create unique index river_job_unique_idx on river_job (unique_key)
    where unique_key is not null and unique_states is not null and river_job_state_in_bitmask(unique_states, state);
create table river_queue (name text primary key, created_at timestamptz not null default now(), metadata jsonb not null default '{}',
                          paused_at timestamptz, updated_at timestamptz not null);
create unlogged table river_leader (elected_at timestamptz not null, expires_at timestamptz not null, leader_id text not null,
                                    name text primary key default 'default');

insert into river_queue (name, paused_at, updated_at) values ('default', null, now()), ('mail', now() - interval '1 h', now());
insert into river_leader values (now() - interval '1 min', now() + interval '30 min', 'host1_2026_11_01', 'default');
insert into river_job (id, state, queue, kind, priority, attempt, max_attempts, created_at, scheduled_at, attempted_at, finalized_at,
                       attempted_by, args, errors, metadata, unique_key, unique_states)
values
    (1, 'available', 'default', 'send_mail', 1, 0, 25, now() - interval '9 min', now() - interval '9 min', null, null, null, '{"to": "a@b"}', null, '{}', null, null),
    (2, 'available', 'default', 'send_mail', 2, 0, 25, now() - interval '8 min', now() - interval '8 min', null, null, null, '{"to": "c@d"}', null, '{}', null, null),
    (3, 'scheduled', 'default', 'report', 1, 0, 25, now() - interval '7 min', now() + interval '1 h', null, null, null, '{}', null, '{}', null, null),
    (4, 'retryable', 'mail', 'send_mail', 1, 2, 25, now() - interval '1 h', now() + interval '30 min', now() - interval '1 min', null, '{host1_2026_11_01}', '{}',
        array['{"at": "2026-11-01T10:00:00Z", "attempt": 1, "error": "timeout after 30 s", "trace": "a.go:1"}',
              '{"at": "2026-11-01T11:00:00.5Z", "attempt": 2, "error": "timeout after 31 s", "trace": "a.go:2"}']::jsonb[], '{}', null, null),
    (5, 'running', 'default', 'report', 1, 1, 3, now() - interval '6 min', now() - interval '6 min', now() - interval '5 min', null, '{host1_2026_11_01}', '{}', null, '{}', null, null),
    (6, 'running', 'mail', 'send_mail', 1, 3, 3, now() - interval '3 h', now() - interval '3 h', now() - interval '2 h', null, '{host0_old,host2_2026_11_01}', '{}', null, '{}', null, null),
    (7, 'running', 'mail', 'send_mail', 1, 1, 3, now() - interval '3 h', now() - interval '3 h', now() - interval '2 h', null, '{host2_2026_11_01}', '{}', null,
        '{"cancel_attempted_at": "2026-11-01T10:00:00Z"}', null, null),
    (8, 'running', 'mail', 'send_mail', 1, 1, 3, now() - interval '3 h', now() - interval '3 h', now() - interval '2 h', null, '{host2_2026_11_01}', '{}', null, '{}', null, null),
    (9, 'pending', 'default', 'workflow', 1, 0, 25, now() - interval '5 min', now() - interval '5 min', null, null, null, '{}', null, '{}', null, null),
    (10, 'discarded', 'default', 'report', 1, 3, 3, now() - interval '2 h', now() - interval '1 h', now() - interval '1 h', now() - interval '50 min', '{host1_2026_11_01}',
        '{"n": 1}', array['{"at": "2026-11-01T10:00:00Z", "attempt": 3, "error": "division by zero in row 17", "trace": ""}']::jsonb[], '{}', null, null),
    (11, 'discarded', 'mail', 'send_mail', 4, 25, 25, now() - interval '2 h', now() - interval '1 h', now() - interval '1 h', now() - interval '40 min', '{host1_2026_11_01}',
        '{"n": 2}', array['{"at": "2026-11-01T10:00:00Z", "attempt": 25, "error": "division by zero in row 18", "trace": ""}']::jsonb[], '{}', null, null),
    (12, 'completed', 'default', 'send_mail', 1, 1, 25, now() - interval '2 d', now() - interval '2 d', now() - interval '2 d', now() - interval '2 d', '{host1_2026_11_01}', '{}', null, '{}', null, null),
    (13, 'completed', 'mail', 'send_mail', 1, 1, 25, now() - interval '1 h', now() - interval '1 h', now() - interval '1 h', now() - interval '1 h', '{host1_2026_11_01}', '{}', null, '{}', null, null),
    (14, 'cancelled', 'default', 'send_mail', 1, 0, 25, now() - interval '3 d', now() - interval '3 d', null, now() - interval '3 d', null, '{}', null, '{}', null, null),
    (15, 'available', 'default', 'sync', 1, 0, 25, now() - interval '1 min', now() - interval '1 min', null, null, null, '{}', null, '{}', '\x01', b'11110101'),
    (16, 'discarded', 'default', 'sync', 1, 25, 25, now() - interval '1 h', now() - interval '1 h', now() - interval '1 h', now() - interval '30 min', null, '{}',
        array['{"at": "2026-11-01T10:00:00Z", "attempt": 25, "error": "conflict", "trace": ""}']::jsonb[], '{}', '\x01', b'11110101'),
    (17, 'discarded', E'evil\u202e\x1b[31m"queue', E'kind''; drop table river_job; --', 1, 1, 1, now() - interval '1 h', 'infinity', now() - interval '1 h', now() - interval '20 min',
        array[E'node\x1b]0;x\x07'], '{"k\u202e": "\u001b[2J"}', array['{"at": "never", "attempt": "x", "error": "\u001b[31mred\u202e \u0007 <b>", "trace": "\u001b[0m"}']::jsonb[],
        '{}', null, null),
    (18, 'scheduled', 'default', 'parked', 1, 0, 25, now() - interval '1 h', 'infinity', null, null, null, '{}', null, '{}', null, null);
select setval('river_job_id_seq', 100);
