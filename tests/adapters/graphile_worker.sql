-- A copy of Graphile Worker, written by us: only what the adapter uses. Jobs in every state.
create schema graphile_worker;
create table graphile_worker.migrations (id int primary key, ts timestamptz not null default now(), breaking bool not null default false);
insert into graphile_worker.migrations (id) values (18), (20);

create table graphile_worker._private_tasks (
    id int generated always as identity primary key,
    identifier text not null unique
);
create table graphile_worker._private_job_queues (
    id int generated always as identity primary key,
    queue_name text not null unique,
    locked_at timestamptz,
    locked_by text,
    is_available bool generated always as (locked_at is null) stored not null
);
create table graphile_worker._private_jobs (
    id bigint generated always as identity primary key,
    job_queue_id int,
    task_id int not null,
    payload json not null default '{}',
    priority smallint not null default 0,
    run_at timestamptz not null default now(),
    attempts smallint not null default 0,
    max_attempts smallint not null default 25 check (max_attempts >= 1),
    last_error text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    key text unique,
    locked_at timestamptz,
    locked_by text,
    revision int not null default 0,
    flags jsonb,
    is_available bool generated always as (locked_at is null and attempts < max_attempts) stored not null
);
create index on graphile_worker._private_jobs (priority, run_at) include (id, task_id, job_queue_id) where is_available;
create table graphile_worker._private_known_crontabs (
    identifier text primary key, known_since timestamptz not null, last_execution timestamptz
);

create function graphile_worker.force_unlock_workers(worker_ids text[]) returns void language sql as $$
    update graphile_worker._private_jobs set locked_at = null, locked_by = null where locked_by = any(worker_ids);
    update graphile_worker._private_job_queues set locked_at = null, locked_by = null where locked_by = any(worker_ids)
$$;
create function graphile_worker.complete_jobs(job_ids bigint[]) returns setof graphile_worker._private_jobs language sql as $$
    delete from graphile_worker._private_jobs
    where id = any(job_ids) and coalesce(locked_at < now() - interval '4 h', true) returning *
$$;
create function graphile_worker.permanently_fail_jobs(job_ids bigint[], error_message text default null)
returns setof graphile_worker._private_jobs language sql as $$
    update graphile_worker._private_jobs
    set last_error = coalesce(error_message, 'Manually marked as failed'), attempts = max_attempts, updated_at = now()
    where id = any(job_ids) and coalesce(locked_at < now() - interval '4 h', true) returning *
$$;
create function graphile_worker.reschedule_jobs(job_ids bigint[], run_at timestamptz default null, priority int default null,
                                                attempts int default null, max_attempts int default null)
returns setof graphile_worker._private_jobs language sql as $$
    update graphile_worker._private_jobs j
    set run_at = coalesce(reschedule_jobs.run_at, j.run_at), priority = coalesce(reschedule_jobs.priority::smallint, j.priority),
        attempts = coalesce(reschedule_jobs.attempts::smallint, j.attempts),
        max_attempts = coalesce(reschedule_jobs.max_attempts::smallint, j.max_attempts), updated_at = now()
    where j.id = any(job_ids) and coalesce(j.locked_at < now() - interval '4 h', true) returning *
$$;

insert into graphile_worker._private_tasks (identifier) values ('send_email'), ('resize'), ('idle');
insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
values ('free', null, null), ('busy', now() - interval '1 min', 'worker-1');
insert into graphile_worker._private_jobs (task_id, job_queue_id, payload, run_at, attempts, max_attempts, last_error, key, locked_at, locked_by)
values (1, null, '{"to": "a@example.com"}', now() - interval '5 min', 0, 25, null, null, null, null),                        -- ready
       (1, null, '{"to": "b@example.com"}', now() + interval '1 h', 0, 25, null, 'tomorrow', null, null),                    -- scheduled
       (1, null, '{"to": "c@example.com"}', now() + interval '30 min', 3, 25, 'connection refused on port 25', null, null, null), -- retry
       (1, null, '{"to": "d@example.com"}', now() - interval '1 h', 4, 4, 'no such user 4711', null, null, null),            -- failed
       (1, null, '{"to": "e@example.com"}', now() - interval '1 h', 4, 4, 'no such user 4712', null, null, null),            -- failed
       (2, 2, '[1, 2]', now() - interval '2 min', 1, 25, null, null, now() - interval '1 min', 'worker-1'),                  -- running
       (2, 2, '[3]', now() - interval '1 min', 0, 25, null, null, null, null),                                               -- blocked
       (2, 1, '[4]', now() - interval '9 h', 25, 25, null, null, now() - interval '5 h', 'worker-0'),                        -- running, stale
       (2, 1, '[5]', now() - interval '1 min', 0, 25, null, null, null, null);                                               -- ready
insert into graphile_worker._private_known_crontabs values ('nightly', now() - interval '3 d', now() - interval '6 h');
