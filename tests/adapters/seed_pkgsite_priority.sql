-- The table queue_tasks with priorities. Rows: waiting, running, stalled.
create table public.queue_tasks (
    id bigserial primary key,
    task_name text unique not null,
    module_path text not null,
    version text not null,
    priority int not null default 100,
    created_at timestamptz not null default now(),
    started_at timestamptz
);
create index idx_queue_tasks_started_created on public.queue_tasks (started_at, created_at);
insert into public.queue_tasks (task_name, module_path, version, priority, created_at, started_at) values
    ('example.org/a@v1.0.0', 'example.org/a', 'v1.0.0', 100, now() - interval '10 min', null),
    ('example.org/b@v1.2.0', 'example.org/b', 'v1.2.0', 10, now() - interval '9 min', null),
    ('example.org/c@v0.1.0', 'example.org/c', 'v0.1.0', 100, now() - interval '20 min', now() - interval '1 min'),
    ('example.org/d@v2.0.0', 'example.org/d', 'v2.0.0', 5, now() - interval '30 min', now() - interval '6 min');
