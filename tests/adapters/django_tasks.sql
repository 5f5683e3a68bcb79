-- A small copy of the database backend of django-tasks: its names, types and the index that the adapter uses, written by us.
-- Rows by the last digit of the id: 1 and 2 ready, 3 scheduled, 4 waits for a retry, 5 and 6 running (6 for two hours), 7 to 9 failed,
-- a successful, b succeeded (the word of older versions).
create table django_tasks_database_dbtaskresult (
    id uuid primary key,
    status varchar(10) not null,
    enqueued_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    args_kwargs jsonb not null,
    priority integer not null,
    task_path text not null,
    worker_ids jsonb not null,
    queue_name varchar(32) not null,
    backend_name varchar(32) not null,
    run_after timestamptz not null,
    return_value jsonb,
    exception_class_path text not null,
    traceback text not null,
    constraint priority_range check (priority between -100 and 100)
);
create index django_task_new_ordering_idx on django_tasks_database_dbtaskresult (status, priority desc, run_after) where status = 'READY';
create index django_tasks_database_dbtaskresult_queue_name_0b1d1d3b on django_tasks_database_dbtaskresult (queue_name);

insert into django_tasks_database_dbtaskresult
select ('00000000-0000-4000-8000-00000000000' || v.n)::uuid, status, now() - interval '3 days', started, finished, args, priority, path, workers, queue,
       'default', run_after, result, class, trace
from (values
    ('1', 'READY', null::timestamptz, null::timestamptz, '{"args": ["a@example.org"], "kwargs": {"n": 1}}'::jsonb, 0, 'app.tasks.send', '[]'::jsonb, 'mail',
     '9999-01-01 00:00:00+00'::timestamptz, null::jsonb, '', ''),
    ('2', 'READY', null, null, '{"args": [], "kwargs": {}}', 50, 'app.tasks.send', '["w1"]', 'mail', now() - interval '1 min', null, '', ''),
    ('3', 'READY', null, null, '{"args": [], "kwargs": {}}', 0, 'app.tasks.send', '[]', 'mail', now() + interval '1 day', null, '', ''),
    ('4', 'READY', null, null, '{"args": [], "kwargs": {}}', 0, 'app.tasks.send', '["w1", "w2"]', 'mail', now() + interval '1 hour', null, '', ''),
    ('5', 'RUNNING', now() - interval '1 min', null, '{"args": [], "kwargs": {}}', 0, 'app.tasks.encode', '["w1"]', 'video', '9999-01-01 00:00:00+00', null, '', ''),
    ('6', 'RUNNING', now() - interval '2 hours', null, '{"args": [], "kwargs": {}}', 0, 'app.tasks.encode', '["w1", "w2"]', 'video', now() - interval '1 day', null, '', ''),
    ('7', 'FAILED', now() - interval '1 hour', now() - interval '59 min', '{"args": ["b"], "kwargs": {}}', 0, 'app.tasks.send', '["w1"]', 'mail',
     '9999-01-01 00:00:00+00', null, 'smtplib.SMTPException', E'Traceback (most recent call last):\n  File "a.py", line 7\nsmtplib.SMTPException: 10.0.0.7 is down\n'),
    ('8', 'FAILED', now() - interval '2 days', now() - interval '2 days', '{"args": [], "kwargs": {}}', 0, 'app.tasks.send', '["w1"]', 'mail',
     now() - interval '2 days', null, 'smtplib.SMTPException', E'Traceback (most recent call last):\nsmtplib.SMTPException: 10.0.0.8 is down'),
    ('9', 'FAILED', now() - interval '3 days', now() - interval '3 days', '{"args": ["\u001b[2J\u202e"], "kwargs": {"\u0007": null}}', -100, E'app.\x1b]0;x\x07\r\nsend', '"none"', E'ma\x1b[31mil',
     now(), null, E'\x1b[7mError', E'"\u202eno"\r\n\x07'),
    ('a', 'SUCCESSFUL', now() - interval '2 days', now() - interval '2 days', '{"args": [], "kwargs": {}}', 0, 'app.tasks.send', '["w1"]', 'mail', now() - interval '2 days', '{"sent": 1}', '', ''),
    ('b', 'SUCCEEDED', now() - interval '1 hour', now() - interval '1 hour', '{"args": [], "kwargs": {}}', 0, 'app.tasks.send', '["w2"]', 'mail', now() - interval '1 hour', null, '', '')
) v (n, status, started, finished, args, priority, path, workers, queue, run_after, result, class, trace);
