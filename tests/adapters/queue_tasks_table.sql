-- The table queue_tasks with the payload of pkgsite and all columns that the article offers. Rows: waiting, running,
-- with an expired lease, started without a lease, completed, failed.
create table public.queue_tasks (
    id bigserial primary key,
    task_name text unique not null,
    module_path text not null,
    version text not null,
    priority int not null default 100,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    leased_until timestamptz,
    completed_at timestamptz,
    success boolean,
    failure text
);
create index idx_queue_tasks_started_created on public.queue_tasks (started_at, created_at);
insert into public.queue_tasks (task_name, module_path, version, priority, created_at, started_at, leased_until, completed_at, success, failure)
select 'example.org/' || name, 'example.org/' || name, 'v1.0.0', priority, now() - ago, now() - started, now() + lease, now() - done, failure is null, failure
from (values
    ('a', 100, interval '10 min', null::interval, null::interval, null::interval, null),
    ('b', 10, interval '9 min', null, null, null, null),
    ('c', 100, interval '20 min', interval '18 min', interval '3 min', null, null),
    ('d', 5, interval '30 min', interval '6 min', interval '-1 min', null, null),
    ('e', 100, interval '40 min', interval '6 min', null, null, null),
    ('f', 100, interval '2 h', interval '100 min', interval '-1 h', interval '95 min', null),
    ('g', 100, interval '3 h', interval '2 h', interval '-1 h', interval '119 min', 'no module at 10.1.2.3')
) v (name, priority, ago, started, lease, done, failure);
