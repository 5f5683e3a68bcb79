-- A small copy of Delayed Job (ActiveRecord backend): its names and types, written by us. Times have no zone and are UTC.
-- Rows: 1 and 2 ready, 3 scheduled, 4 waits for a retry, 5 running, 6 locked for longer than a job may run, 7 to 9 failed (7 still
-- names its worker, as it is after the last failure of a job), 10 has no time to run.
create table delayed_jobs (
    id bigserial primary key,
    priority integer not null default 0,
    attempts integer not null default 0,
    handler text not null,
    last_error text,
    run_at timestamp(6),
    locked_at timestamp(6),
    failed_at timestamp(6),
    locked_by varchar,
    queue varchar,
    created_at timestamp(6),
    updated_at timestamp(6)
);
create index delayed_jobs_priority on delayed_jobs (priority, run_at);

set timezone = 'UTC';
insert into delayed_jobs (priority, attempts, handler, last_error, run_at, locked_at, failed_at, locked_by, queue, created_at, updated_at) values
    (0, 0, E'--- !ruby/struct:NewsletterJob\ntext: lorem ipsum\nemails: a@example.org\n', null, now() - interval '5 min', null, null, null, 'mail', now() - interval '1 hour', now()),
    (5, 1, E'--- !ruby/object:Delayed::PerformableMethod\nobject: !ruby/class ''User''\nmethod_name: :purge_old!\nargs: []\n', 'Timeout', now() - interval '1 min', null, null, null, null,
     now() - interval '1 hour', now()),
    (0, 0, E'--- !ruby/object:ActiveJob::QueueAdapters::DelayedJobAdapter::JobWrapper\njob_data:\n  job_class: ReportJob\n  arguments:\n  - 7\n', null, now() + interval '1 day', null, null, null,
     'mail', now() - interval '1 hour', now()),
    (0, 3, E'--- !ruby/object:SendMail\nto: b@example.org\n', E'Net::OpenTimeout: 10.0.0.7:25\nsmtp.rb:1', now() + interval '1 hour', null, null, null, 'mail', now() - interval '1 hour', now()),
    (0, 0, E'--- !ruby/object:SendMail\n', null, now() - interval '9 min', now() - interval '8 min', null, 'delayed_job.0 host:web-1 pid:4711', 'mail', now() - interval '1 hour', now()),
    (0, 0, E'--- !ruby/object:Encode\n', null, now() - interval '9 hours', now() - interval '8 hours', null, 'host:web-2 pid:99999999999999', 'video', now() - interval '9 hours', now()),
    (0, 25, E'--- !ruby/object:SendMail\nto: c@example.org\n', E'Net::OpenTimeout: 10.0.0.8:25\nsmtp.rb:1\nmail.rb:2', now() - interval '2 days', now() - interval '1 day', now() - interval '1 day',
     'delayed_job.0 host:web-1 pid:4711', 'mail', now() - interval '20 days', now()),
    (0, 25, E'--- !ruby/object:SendMail\n', 'Net::OpenTimeout: 10.0.0.9:25', now() - interval '2 days', null, now() - interval '2 days', null, 'mail', now() - interval '20 days', now()),
    (-7, 25, E'\x1b[2J--- !ruby/object:X\x07\n"\u202e"\n', E'said "\x1b]0;t\x07"\r\n\u200b\x1b[31m', now() - interval '2 days', null, now() - interval '3 days', E'pid:\x1b[7m', E'ma\x1b[31mil', null, null),
    (0, 0, '', null, null, null, null, null, '', now() - interval '1 hour', now());
reset timezone;
