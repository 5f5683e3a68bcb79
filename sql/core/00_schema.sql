-- The schema of the queue: its types, its settings, and the order of locks.
--
-- These scripts run in the order of their names in ONE transaction (`queuetop install`), after
--   select set_config('queuetop.schema', NAME, true), set_config('queuetop.viewer', ROLE, true),
--          set_config('queuetop.worker', ROLE, true), set_config('queuetop.operator', ROLE, true);
-- Nothing is substituted in the text: 00_rights points search_path at the schema, the others use bare names, and every
-- function keeps that path (SET search_path FROM CURRENT). A second run changes nothing.
--
-- The order of locks. Every function takes its locks in this order, so no two of them wait for each other:
--   1. the action: the advisory lock of its uuid (act_begin)
--   2. rows for which a function may wait: leases (work_queue) by number; jobs (queue) that are not ready by id; the
--      row of a queue (queue_config) or of a schedule. A ready job is protected by the lock of its lease
--   3. the scheduler row (scheduler_lock). What was read before is read again: decisions are made under this lock
--   4. while a function holds the scheduler row, it does not wait for the transaction of anybody else: it takes rows
--      with SKIP LOCKED, or waits for them 50 or 100 ms at most (lock_timeout). Rows that others have locked are left
--      alone and reported. An act that can't leave a row alone (a pause, a change of settings) fails with 55P03 and
--      changes nothing. It waits only for the partitions of the next two days, if these are missing (add_days)
--   5. unique keys: several are inserted in the order (queue, unique_key)
-- History, attempt, delta and the other books are only appended to.

do $$
declare
    s text := current_schema();
begin
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

-- In PL/pgSQL, because with a SET a function in SQL is not inlined, and each transaction parses and plans it anew.
create or replace function setting_int(name text) returns bigint
language plpgsql stable set search_path from current as $$
begin
    return (select value::bigint from setting s where s.name = setting_int.name);
end $$;
comment on function setting_int(text) is 'A limit of table setting as a number';

create or replace function setting_interval(name text) returns interval
language plpgsql stable set search_path from current as $$
begin
    return (select value::interval from setting s where s.name = setting_interval.name);
end $$;
comment on function setting_interval(text) is 'An interval of table setting';

-- Its body names nothing of this schema: the name in the default value is looked up now, and not by the caller's path.
create or replace function is_dead(heartbeat timestamptz, allowed interval default setting_interval('node_dead'))
returns boolean
language sql stable as $$ select heartbeat operator(pg_catalog.<) (pg_catalog.now() operator(pg_catalog.-) allowed) $$;
comment on function is_dead(timestamptz, interval) is 'Whether a node with this last heartbeat is dead: it is older '
    'than setting node_dead. The only place that decides it. allowed: the setting, if the caller has read it. No SET, '
    'so that it is inlined';

create or replace function slot_class() returns int language sql immutable parallel safe as $$ select 1364481111 $$;
comment on function slot_class() is 'The first key of the advisory lock of wait slot 0 (48_wake); slot n has this '
    'number + n';
