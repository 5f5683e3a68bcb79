-- The table queue_tasks with leases. Rows: waiting, running, with an expired lease, started without a lease.
create table public.queue_tasks (
    id bigserial primary key,
    task_name text unique not null,
    module_path text not null,
    version text not null,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    leased_until timestamptz
);
create index idx_queue_tasks_started_created on public.queue_tasks (started_at, created_at);
insert into public.queue_tasks (task_name, module_path, version, created_at, started_at, leased_until) values
    ('example.org/a@v1.0.0', 'example.org/a', 'v1.0.0', now() - interval '10 min', null, null),
    ('example.org/b@v1.2.0', 'example.org/b', 'v1.2.0', now() - interval '9 min', null, null),
    ('example.org/c@v0.1.0', 'example.org/c', 'v0.1.0', now() - interval '20 min', now() - interval '18 min', now() + interval '3 min'),
    ('example.org/d@v2.0.0', 'example.org/d', 'v2.0.0', now() - interval '30 min', now() - interval '6 min', now() - interval '1 min'),
    ('example.org/e@v2.0.0', 'example.org/e', 'v2.0.0', now() - interval '40 min', now() - interval '6 min', null);
