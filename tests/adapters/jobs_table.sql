-- One table "jobs": rows in every state that this system distinguishes.
create table public.jobs (
    id text primary key,
    created timestamptz not null default current_timestamp,
    name text,
    visibility_at timestamptz,
    status text not null,
    attempts integer not null default 0,
    expires_at timestamptz default current_timestamp,
    data jsonb,
    queue_name text default 'default',
    reference text
);
create index queue_name_idx on public.jobs (queue_name);
insert into public.jobs (id, created, name, visibility_at, status, attempts, expires_at, data, queue_name, reference) values
    ('job-01', now() - interval '5 min', 'mail', null, 'pending', 0, null, '{"message_id": 1}', 'default', null),
    ('job-02', now() - interval '4 min', 'mail', now() - interval '4 min', 'pending', 0, now() + interval '1 h', '{"message_id": 2}', 'default', 'ref-2'),
    ('job-03', now() - interval '3 min', 'mail', now() - interval '1 min', 'pending', 2, null, '{"message_id": 3}', 'default', null),
    ('job-04', now() - interval '2 min', 'report', now() + interval '1 h', 'pending', 0, null, '{"pages": 4}', 'reports', null),
    ('job-05', now() - interval '9 min', 'report', now() + interval '9 min', 'in_transit', 1, null, '{"pages": 5}', 'reports', null),
    ('job-06', now() - interval '30 min', 'report', now() + interval '8 min', 'pending', 1, null, '{"pages": 6}', 'reports', null),
    ('job-07', now() - interval '1 h', 'mail', now() - interval '40 min', 'in_transit', 1, null, '{"message_id": 7}', 'default', null),
    ('job-08', now() - interval '2 h', 'mail', now() - interval '1 h', 'in_transit', 4, null, '{"message_id": 8}', 'default', null),
    ('job-09', now() - interval '3 h', 'mail', now() - interval '3 h', 'pending', 0, now() - interval '2 h', '{"message_id": 9}', 'default', null),
    ('job-10', now() - interval '1 day', 'mail', now() - interval '1 day', 'completed', 1, null, '{"message_id": 10}', 'default', null),
    ('job-11', now() - interval '1 h', 'mail', now() + interval '1 min', 'completed', 1, null, null, 'default', null),
    ('job-12', now() - interval '20 min', null, now() + interval '5 min', 'in_transit', 4, null, null, null, null);
