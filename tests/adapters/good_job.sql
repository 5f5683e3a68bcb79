-- GoodJob's tables, as far as the adapter needs them (version 4.19; Rails stores times in UTC, without a zone). Jobs in every state.
create table good_jobs (
    id                uuid primary key default gen_random_uuid(),
    queue_name        text,
    priority          int,
    serialized_params jsonb,
    scheduled_at      timestamp,
    performed_at      timestamp,
    finished_at       timestamp,
    error             text,
    created_at        timestamp not null,
    updated_at        timestamp not null,
    active_job_id     uuid,
    concurrency_key   text,
    cron_key          text,
    retried_good_job_id uuid,
    cron_at           timestamp,
    batch_id          uuid,
    batch_callback_id uuid,
    is_discrete       boolean,
    executions_count  int,
    job_class         text,
    error_event       smallint,
    labels            text[],
    locked_by_id      uuid,
    locked_at         timestamp,
    lock_type         smallint
);
create index index_good_jobs_on_scheduled_at on good_jobs (scheduled_at) where finished_at is null;
create index index_good_jobs_on_queue_name_and_scheduled_at on good_jobs (queue_name, scheduled_at) where finished_at is null;
create index index_good_jobs_jobs_on_finished_at_only on good_jobs (finished_at) where finished_at is not null;
create index index_good_jobs_on_discarded on good_jobs (finished_at desc) where finished_at is not null and error is not null;
create index index_good_jobs_on_created_at on good_jobs (created_at);
create index index_good_jobs_on_locked_by_id on good_jobs (locked_by_id) where locked_by_id is not null;
create unique index index_good_jobs_on_cron_key_and_cron_at_cond on good_jobs (cron_key, cron_at desc nulls last) where cron_key is not null;
create table good_job_executions (
    id                uuid primary key default gen_random_uuid(),
    created_at        timestamp not null,
    updated_at        timestamp not null,
    active_job_id     uuid not null,
    job_class         text,
    queue_name        text,
    serialized_params jsonb,
    scheduled_at      timestamp,
    finished_at       timestamp,
    error             text,
    error_event       smallint,
    error_backtrace   text[],
    process_id        uuid,
    duration          interval
);
create index index_good_job_executions_on_active_job_id_and_created_at on good_job_executions (active_job_id, created_at);
create table good_job_processes (id uuid primary key default gen_random_uuid(), created_at timestamp not null, updated_at timestamp not null,
                                 state jsonb, lock_type smallint);
create table good_job_settings (id uuid primary key default gen_random_uuid(), created_at timestamp not null, updated_at timestamp not null,
                                key text, value jsonb);
create unique index index_good_job_settings_on_key on good_job_settings (key);

create function pg_temp.utc(ago interval) returns timestamp language sql as $$ select timezone('UTC', now()) - ago $$;
create function pg_temp.id(n int) returns uuid language sql as $$ select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid $$;
insert into good_job_processes (id, created_at, updated_at, state) values
    (pg_temp.id(901), pg_temp.utc('1 h'), pg_temp.utc('5 s'), '{"hostname": "web1", "pid": 4711, "proctitle": "puma"}'),
    (pg_temp.id(902), pg_temp.utc('1 d'), pg_temp.utc('2 h'), '{"hostname": "web2", "pid": 4712, "proctitle": "puma"}');
insert into good_job_settings (created_at, updated_at, key, value) values
    (now(), now(), 'pauses', '{"queues": ["mailers"], "job_classes": [], "labels": []}'), (now(), now(), 'cron_keys_disabled', '["nightly"]');
insert into good_jobs (id, active_job_id, queue_name, priority, job_class, created_at, updated_at, scheduled_at, performed_at, finished_at, error, error_event,
                       executions_count, locked_by_id, locked_at, serialized_params, cron_key, cron_at, batch_id)
select pg_temp.id(n), pg_temp.id(n), q, prio, class, pg_temp.utc(made), pg_temp.utc(made), pg_temp.utc(at), pg_temp.utc(performed), pg_temp.utc(finished), error, event,
       tries, pg_temp.id(by), pg_temp.utc(performed),
       jsonb_build_object('job_class', class, 'job_id', pg_temp.id(n), 'queue_name', q, 'arguments', args::jsonb, 'executions', tries, 'exception_executions', '{}'::jsonb),
       cron, pg_temp.utc(case when cron is not null then at end), pg_temp.id(batch)
from (values
    (1, 'default', 0, 'MailJob', interval '9 min', interval '9 min', null::interval, null::interval, null, null::int, 0, null::int, '["a@b"]', null, null::int),
    (2, 'mailers', 5, 'MailJob', '8 min', '8 min', null, null, null, null, 0, null, '["c@d"]', null, null),
    (3, 'default', 0, 'ReportJob', '7 min', '-1 h', null, null, null, null, 0, null, '[]', null, null),
    (4, 'mailers', 0, 'MailJob', '1 h', '-5 min', null, null, 'Net::ReadTimeout: timeout after 31 s', 3, 2, null, '[]', null, null),
    (5, 'default', 0, 'ReportJob', '6 min', '6 min', '5 min', null, null, null, 1, 901, '[]', null, null),
    (6, 'mailers', 0, 'MailJob', '3 h', '3 h', '2 h', null, null, null, 1, 902, '[]', null, null),
    (7, 'mailers', 0, 'MailJob', '3 h', '3 h', '2 h', null, null, null, 1, 903, '[]', null, null),
    (10, 'default', 0, 'ReportJob', '2 h', '1 h', '1 h', '50 min', 'ZeroDivisionError: divided by 0 in row 17', 1, 5, null, '[{"n": 1}]', null, null),
    (11, 'mailers', 0, 'MailJob', '2 h', '1 h', '1 h', '40 min', 'ZeroDivisionError: divided by 0 in row 18', 1, 5, null, '[{"n": 2}]', null, null),
    (12, 'default', 0, 'MailJob', '2 d', '2 d', '2 d', '2 d', null, null, 1, null, '[]', null, null),
    (13, 'mailers', 0, 'MailJob', '1 h', '1 h', '1 h', '1 h', null, null, 1, null, '[]', null, null),
    (14, 'default', 0, 'SweepJob', '1 h', '1 h', '1 h', '59 min', null, null, 1, null, '[]', 'sweep', null),
    (15, 'default', 0, 'SweepJob', '2 h', '2 h', '2 h', '2 h', 'RuntimeError: no', 1, 1, null, '[]', 'sweep', null),
    (16, 'default', 0, 'StepJob', '1 min', '-1 h', null, null, null, null, 0, null, '[]', null, 800),
    (17, E'evil\u202e\x1b[31m"queue', 0, E'Kind''; drop table good_jobs; --', '1 h', '1 h', '1 h', '20 min', E'\x1b[31mred\u202e \x07 <b>', 1, 1, null, '["\u001b[2J"]',
     E'cron\u202e\x1b[31m', null)
) v (n, q, prio, class, made, at, performed, finished, error, event, tries, by, args, cron, batch);
insert into good_job_executions (active_job_id, created_at, updated_at, scheduled_at, finished_at, error, error_event, error_backtrace, process_id, job_class, queue_name)
select pg_temp.id(10), pg_temp.utc(n * interval '10 min'), pg_temp.utc(n * interval '10 min'), pg_temp.utc(n * interval '10 min'), pg_temp.utc(n * interval '10 min' - interval '1 s'),
       'ZeroDivisionError: divided by 0 in row ' || n, 1, array['app/jobs/report_job.rb:' || n, 'lib/x.rb:1'], pg_temp.id(901), 'ReportJob', 'default'
from generate_series(1, 5) n;
