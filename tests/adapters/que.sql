-- A small copy of Que 2.4 (migration 7), written by us: its names, types, constraints and notifications.
-- Rows in every state except running, because running means that a session holds a lock: 1 and 2 ready, 3 scheduled, 4 and 5 wait after errors, 6 and 7
-- expired, 8 and 9 finished. The registered locker has no session.
create table que_jobs (
    priority smallint not null default 100,
    run_at timestamptz not null default now(),
    id bigserial primary key,
    job_class text not null,
    error_count integer not null default 0,
    last_error_message text,
    queue text not null default 'default',
    last_error_backtrace text,
    finished_at timestamptz,
    expired_at timestamptz,
    args jsonb not null default '[]',
    data jsonb not null default '{}',
    job_schema_version integer not null,
    kwargs jsonb not null default '{}',
    constraint error_length check (char_length(last_error_message) <= 500 and char_length(last_error_backtrace) <= 10000),
    constraint queue_length check (char_length(queue) <= 100),
    constraint valid_args check (jsonb_typeof(args) = 'array')
) with (fillfactor = 90);
comment on table que_jobs is '7';
create index que_poll_idx on que_jobs (job_schema_version, queue, priority, run_at, id) where finished_at is null and expired_at is null;
create table que_values (key text primary key, value jsonb not null default '{}');
create unlogged table que_lockers (
    pid integer primary key,
    worker_count integer not null,
    worker_priorities integer[] not null,
    ruby_pid integer not null,
    ruby_hostname text not null,
    queues text[] not null,
    listening boolean not null,
    job_schema_version integer default 1
);

create function que_determine_job_state(job que_jobs) returns text language sql as $$
    select case when job.expired_at is not null then 'expired' when job.finished_at is not null then 'finished'
                when job.error_count > 0 then 'errored' when job.run_at > now() then 'scheduled' else 'ready' end
$$;
create function que_state_notify() returns trigger language plpgsql as $$
declare
    was text := 'nonexistent';
    is_now text := 'nonexistent';
    j public.que_jobs := old;
begin
    if tg_op <> 'INSERT' then was := public.que_determine_job_state(old); end if;
    if tg_op <> 'DELETE' then is_now := public.que_determine_job_state(new); j := new; end if;
    perform pg_notify('que_state', json_build_object('message_type', 'job_change', 'queue', j.queue, 'previous_state', was,
                                                     'current_state', is_now, 'job_class', j.job_class)::text);
    return null;
end $$;
create trigger que_state_notify after insert or update or delete on que_jobs for each row execute function que_state_notify();
create function que_job_notify() returns trigger language plpgsql as $$
declare
    locker int := (select pid from public.que_lockers where listening and queues @> array[new.queue] limit 1);
begin
    if new.run_at <= now() and locker is not null then
        perform pg_notify('que_listener_' || locker, json_build_object('message_type', 'work_job', 'queue', new.queue, 'id', new.id)::text);
    end if;
    return null;
end $$;
create trigger que_job_notify after insert on que_jobs for each row execute function que_job_notify();

insert into que_lockers (pid, worker_count, worker_priorities, ruby_pid, ruby_hostname, queues, listening) values
    (2147483000, 6, '{10,30,50,null,null,null}', 4711, E'web-1\x1b[2J', '{default,mail}', true);
insert into que_jobs (priority, run_at, job_class, error_count, last_error_message, last_error_backtrace, queue, finished_at, expired_at, args,
                      kwargs, job_schema_version) values
    (100, now() - interval '3 min', 'SendMail', 0, null, null, 'mail', null, null, '["a@example.org", 1]', '{"cc": true}', 2),
    (10, now() - interval '1 min', 'ActiveJob::QueueAdapters::QueAdapter::JobWrapper', 0, null, null, 'default', null, null,
     '[{"job_class": "ReportJob", "arguments": [7]}]', '{}', 2),
    (100, now() + interval '1 day', 'SendMail', 0, null, null, 'mail', null, null, '[]', '{}', 2),
    (100, now() + interval '1 hour', 'SendMail', 2, 'Net::OpenTimeout: 10.0.0.7:25', E'smtp.rb:1\nmail.rb:2', 'mail', null, null, '[]', '{}', 2),
    (100, now() - interval '1 s', 'SendMail', 1, 'Net::OpenTimeout: 10.0.0.8:25', null, 'mail', null, null, '[]', '{}', 2),
    (100, now() - interval '1 day', 'SendMail', 15, 'Net::OpenTimeout: 10.0.0.9:25', E'smtp.rb:1\nmail.rb:2', 'mail', null, now() - interval '2 hours',
     '["b@example.org"]', '{}', 2),
    (100, now() - interval '1 day', E'Bad\x1b]0;title\x07\u202eJob', 15, E'it said "\x1b[31mno\x1b[0m"\r\nand \u2028 left', E'\x07\n\t\u200b', E'ma\x1bil', null,
     now() - interval '3 hours', '[{"job_class": "\u001b[2J"}, null, [[]]]', '{"\u202e": "\u0007"}', 2),
    (100, now() - interval '2 days', 'SendMail', 0, null, null, 'mail', now() - interval '2 days', null, '[]', '{}', 2),
    (100, now() - interval '1 hour', 'SendMail', 3, 'Net::OpenTimeout', null, 'mail', now() - interval '1 hour', null, '[]', '{}', 2);
