-- One table "tasks" with the columns that the article suggests; a row in every state.
create table public.tasks (
    id serial primary key,
    status varchar(50) not null default 'pending',
    payload jsonb not null,
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    retry_count int not null default 0,
    priority int not null default 0,
    error_message text
);
insert into public.tasks (status, payload, created_at, updated_at, retry_count) values
    ('pending', '{"task_type": "send_email", "recipient": "a@example.org"}', now() - interval '3 min', now() - interval '3 min', 0),
    ('pending', '{"task_type": "create_report", "pages": 12}', now() - interval '2 min', now() - interval '2 min', 2),
    ('in_progress', '{"task_type": "send_email", "recipient": "b@example.org"}', now() - interval '9 min', now() - interval '1 min', 0),
    ('in_progress', '{"task_type": "create_report"}', now() - interval '1 day', now() - interval '5 h', 1),
    ('failed', '{"task_type": "send_email", "recipient": "c@example.org"}', now() - interval '2 h', now() - interval '1 h', 5),
    ('failed', '"only a string"', now() - interval '2 days', now() - interval '2 days', 1),
    ('completed', '{"task_type": "create_report"}', now() - interval '3 days', now() - interval '3 days', 0),
    ('completed', '{"task_type": "send_email"}', now() - interval '1 h', now() - interval '50 min', 0),
    ('cancelled', '{"task_type": "send_email"}', now() - interval '4 days', now() - interval '4 days', 0),
    ('on_hold', '[1, 2]', now() - interval '5 min', now() - interval '5 min', 0);
update public.tasks set error_message = 'no answer from 10.1.2.' || id where status = 'failed';
