-- Solid Queue's tables, as far as the adapter needs them (version 1.5; Rails stores times in UTC, without a zone). Jobs in every state.
create table solid_queue_jobs (id bigserial primary key, queue_name varchar not null, class_name varchar not null, arguments text, priority int not null default 0,
    active_job_id varchar, scheduled_at timestamp, finished_at timestamp, concurrency_key varchar, created_at timestamp not null, updated_at timestamp not null);
create index index_solid_queue_jobs_on_finished_at on solid_queue_jobs (finished_at);
create index index_solid_queue_jobs_for_filtering on solid_queue_jobs (queue_name, finished_at);
create table solid_queue_processes (id bigserial primary key, kind varchar not null, last_heartbeat_at timestamp not null, supervisor_id bigint, pid int not null,
    hostname varchar, metadata text, created_at timestamp not null, name varchar not null);
create table solid_queue_ready_executions (id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
    queue_name varchar not null, priority int not null default 0, created_at timestamp not null);
create index index_solid_queue_poll_all on solid_queue_ready_executions (priority, job_id);
create index index_solid_queue_poll_by_queue on solid_queue_ready_executions (queue_name, priority, job_id);
create table solid_queue_scheduled_executions (id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
    queue_name varchar not null, priority int not null default 0, scheduled_at timestamp not null, created_at timestamp not null);
create index index_solid_queue_dispatch_all on solid_queue_scheduled_executions (scheduled_at, priority, job_id);
create table solid_queue_claimed_executions (id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
    process_id bigint, created_at timestamp not null);
create index index_solid_queue_claimed_executions_on_process_id_and_job_id on solid_queue_claimed_executions (process_id, job_id);
create table solid_queue_blocked_executions (id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
    queue_name varchar not null, priority int not null default 0, concurrency_key varchar not null, expires_at timestamp not null, created_at timestamp not null);
create table solid_queue_failed_executions (id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
    error text, created_at timestamp not null);
create table solid_queue_pauses (id bigserial primary key, queue_name varchar not null unique, created_at timestamp not null);
create table solid_queue_semaphores (id bigserial primary key, key varchar not null unique, value int not null default 1, expires_at timestamp not null,
    created_at timestamp not null, updated_at timestamp not null);
create table solid_queue_recurring_tasks (id bigserial primary key, key varchar not null unique, schedule varchar not null, command varchar(2048), class_name varchar,
    arguments text, queue_name varchar, priority int default 0, static boolean not null default true, description text, created_at timestamp not null, updated_at timestamp not null);
create table solid_queue_recurring_executions (id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
    task_key varchar not null, run_at timestamp not null, created_at timestamp not null, unique (task_key, run_at));

create function pg_temp.utc(ago interval) returns timestamp language sql as $$ select timezone('UTC', now()) - ago $$;
insert into solid_queue_jobs (id, queue_name, class_name, priority, concurrency_key, created_at, updated_at, scheduled_at, finished_at, arguments)
select n, q, class, prio, conc, pg_temp.utc(made), pg_temp.utc(made), pg_temp.utc(at), pg_temp.utc(finished),
       '{"job_class":"' || class || '","arguments":' || args || ',"executions":' || tries || ',"exception_executions":{"[X]":1},"locale":"en"}'
from (values
    (1, 'default', 'MailJob', 0, null, interval '9 min', interval '9 min', null::interval, 0, '["a@b"]'),
    (2, 'mailers', 'MailJob', 5, null, '8 min', '8 min', null, 0, '["c@d"]'),
    (3, 'default', 'ReportJob', 0, null, '7 min', '-1 h', null, 0, '[]'),
    (4, 'mailers', 'SyncJob', 0, 'SyncJob/1', '1 h', '1 h', null, 0, '[1]'),
    (5, 'default', 'ReportJob', 0, null, '6 min', '6 min', null, 0, '[]'),
    (6, 'mailers', 'MailJob', 0, null, '3 h', '3 h', null, 1, '[]'),
    (7, 'mailers', 'MailJob', 0, null, '3 h', '3 h', null, 1, '[]'),
    (8, 'mailers', 'SyncJob', 0, 'SyncJob/1', '50 min', '50 min', null, 0, '[2]'),
    (10, 'default', 'ReportJob', 0, null, '2 h', '2 h', null, 1, '[{"n":1,"executions":77}]'),
    (11, 'mailers', 'SyncJob', 0, 'SyncJob/2', '2 h', '2 h', null, 3, '[2]'),
    (12, 'default', 'MailJob', 0, null, '2 d', '2 d', '2 d', 1, '[]'),
    (13, 'mailers', 'MailJob', 0, null, '1 h', '1 h', '1 h', 1, '[]'),
    (14, 'default', 'SweepJob', 0, null, '1 h', '1 h', '59 min', 1, '[]'),
    (17, E'evil\u202e\x1b[31m"queue', E'Kind''; drop table solid_queue_jobs; --', 0, null, '1 h', '1 h', null, 1, '["\u0000\u001b[2J"]')
) v (n, q, class, prio, conc, made, at, finished, tries, args);
insert into solid_queue_processes (id, kind, last_heartbeat_at, pid, hostname, created_at, name, metadata) values
    (1, 'Worker', pg_temp.utc('5 s'), 4711, 'web1', pg_temp.utc('1 h'), 'worker-aa11', '{"queues":"default","thread_pool_size":3}'),
    (2, 'Worker', pg_temp.utc('2 h'), 4712, 'web2', pg_temp.utc('1 d'), 'worker-bb22', '{"queues":"mailers","thread_pool_size":3}');
insert into solid_queue_ready_executions (job_id, queue_name, priority, created_at)
    select id, queue_name, priority, created_at from solid_queue_jobs where id in (1, 2, 4);
insert into solid_queue_scheduled_executions (job_id, queue_name, priority, scheduled_at, created_at)
    select id, queue_name, priority, scheduled_at, created_at from solid_queue_jobs where id = 3;
insert into solid_queue_claimed_executions (job_id, process_id, created_at) values
    (5, 1, pg_temp.utc('5 min')), (6, 2, pg_temp.utc('2 h')), (7, 3, pg_temp.utc('2 h'));
insert into solid_queue_blocked_executions (job_id, queue_name, priority, concurrency_key, expires_at, created_at)
    select id, queue_name, priority, concurrency_key, pg_temp.utc('-5 min'), created_at from solid_queue_jobs where id = 8;
insert into solid_queue_failed_executions (job_id, error, created_at) values
    (10, '{"exception_class":"ZeroDivisionError","message":"divided by 0 in row 17","backtrace":["app/jobs/report_job.rb:3","lib/x.rb:1"]}', pg_temp.utc('50 min')),
    (11, '{"exception_class":"ZeroDivisionError","message":"divided by 0 in row 18","backtrace":[]}', pg_temp.utc('40 min')),
    (17, '{"exception_class":"Evil","message":"\u001b[31mred\u202e \u0000 <b>","backtrace":["\u001b[0m"]}', pg_temp.utc('20 min'));
insert into solid_queue_semaphores (key, value, expires_at, created_at, updated_at) values ('SyncJob/1', 0, pg_temp.utc('-5 min'), now(), now());
insert into solid_queue_pauses (queue_name, created_at) values ('mailers', pg_temp.utc('1 h'));
insert into solid_queue_recurring_tasks (key, schedule, class_name, queue_name, created_at, updated_at, description) values
    ('sweep', 'every hour', 'SweepJob', 'default', now(), now(), 'sweeps'), ('nightly', '0 3 * * * Europe/Berlin', 'ReportJob', null, now(), now(), null);
insert into solid_queue_recurring_executions (job_id, task_key, run_at, created_at) values (14, 'sweep', pg_temp.utc('1 h'), now());
select setval('solid_queue_jobs_id_seq', 100);
