-- A small copy of Procrastinate 3.4, written by us: its names and types, and the functions and triggers that matter for an operator.
-- Rows in every state: 1 and 2 ready, 3 scheduled, 4 waits for a retry, 5 to 9 running (5 by a living worker, 6 by a silent one,
-- 7 by none, 8 silent and asked to abort, 9 asked to abort), 10 to 12 failed, 13 succeeded, 14 cancelled, 15 aborted, 16 aborting.
create type procrastinate_job_status as enum ('todo', 'doing', 'succeeded', 'failed', 'cancelled', 'aborting', 'aborted');
create type procrastinate_job_event_type as enum ('deferred', 'started', 'deferred_for_retry', 'failed', 'succeeded', 'cancelled',
                                                  'abort_requested', 'aborted', 'scheduled', 'retried');

create table procrastinate_workers (
    id bigint primary key generated always as identity,
    last_heartbeat timestamptz not null default now()
);
create table procrastinate_jobs (
    id bigserial primary key,
    queue_name varchar(128) not null,
    task_name varchar(128) not null,
    priority integer not null default 0,
    lock text,
    queueing_lock text,
    args jsonb not null default '{}',
    status procrastinate_job_status not null default 'todo',
    scheduled_at timestamptz,
    attempts integer not null default 0,
    abort_requested boolean not null default false,
    worker_id bigint references procrastinate_workers (id) on delete set null,
    constraint check_not_todo_abort_requested check (not (status = 'todo' and abort_requested))
);
create table procrastinate_events (
    id bigserial primary key,
    job_id bigint not null references procrastinate_jobs (id) on delete cascade,
    type procrastinate_job_event_type,
    at timestamptz default now()
);
create table procrastinate_periodic_defers (
    id bigserial primary key,
    task_name varchar(128) not null,
    defer_timestamp bigint,
    job_id bigint references procrastinate_jobs (id),
    periodic_id varchar(128) not null default '',
    unique (task_name, periodic_id, defer_timestamp)
);
create unique index procrastinate_jobs_queueing_lock_idx_v1 on procrastinate_jobs (queueing_lock) where status = 'todo';
create unique index procrastinate_jobs_lock_idx_v1 on procrastinate_jobs (lock) where status = 'doing';
create index procrastinate_jobs_queue_name_idx_v1 on procrastinate_jobs (queue_name);
create index procrastinate_jobs_id_lock_idx_v1 on procrastinate_jobs (id, lock) where status in ('todo', 'doing');
create index procrastinate_jobs_priority_idx_v1 on procrastinate_jobs (priority desc, id) where status = 'todo';
create index procrastinate_events_job_id_fkey_v1 on procrastinate_events (job_id);

-- the event of a job, from its states before and after
create function procrastinate_note() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into procrastinate_events (job_id, type) values (new.id, 'deferred');
        perform pg_notify(c, json_build_object('type', 'job_inserted', 'job_id', new.id)::text)
        from unnest(array['procrastinate_queue_v1#' || new.queue_name, 'procrastinate_any_queue_v1']) c;
    elsif new.status is distinct from old.status then
        insert into procrastinate_events (job_id, type)
        select new.id, t::procrastinate_job_event_type
        from (select case old.status || '>' || new.status
                  when 'todo>doing' then 'started' when 'doing>todo' then 'deferred_for_retry' when 'failed>todo' then 'retried'
                  when 'doing>failed' then 'failed' when 'doing>succeeded' then 'succeeded' when 'doing>aborted' then 'aborted'
                  when 'todo>cancelled' then 'cancelled' when 'todo>failed' then 'cancelled' when 'todo>succeeded' then 'cancelled'
              end) x (t)
        where t is not null;
    end if;
    if new.status = 'todo' and new.scheduled_at is not null then
        insert into procrastinate_events (job_id, type, at) values (new.id, 'scheduled', new.scheduled_at);
    end if;
    if tg_op = 'UPDATE' and new.abort_requested and not old.abort_requested then
        insert into procrastinate_events (job_id, type) values (new.id, 'abort_requested');
        if new.status = 'doing' then
            perform pg_notify(c, json_build_object('type', 'abort_job_requested', 'job_id', new.id)::text)
            from unnest(array['procrastinate_queue_v1#' || new.queue_name, 'procrastinate_any_queue_v1']) c;
        end if;
    end if;
    return null;
end $$;
create trigger procrastinate_note after insert or update on procrastinate_jobs for each row execute function procrastinate_note();

create function procrastinate_unlink_periodic_defers_v1() returns trigger language plpgsql as $$
begin
    update procrastinate_periodic_defers set job_id = null where job_id = old.id;
    return old;
end $$;
create trigger procrastinate_trigger_delete_jobs_v1 before delete on procrastinate_jobs
    for each row execute function procrastinate_unlink_periodic_defers_v1();

create function procrastinate_defer_jobs_v1() returns bigint[] language sql as $$ select '{}'::bigint[] $$; -- the adapter knows the version by this name

create function procrastinate_cancel_job_v1(job_id bigint, abort boolean, delete_job boolean) returns bigint language plpgsql as $$
declare
    done bigint;
begin
    if delete_job then
        delete from procrastinate_jobs j where j.id = job_id and j.status = 'todo' returning j.id into done;
    end if;
    if done is null then
        update procrastinate_jobs j
        set status = case when j.status = 'todo' then 'cancelled' else j.status end, abort_requested = abort
        where j.id = job_id and (j.status = 'todo' or (abort and j.status = 'doing')) returning j.id into done;
    end if;
    return done;
end $$;

create function procrastinate_retry_job_v2(job_id bigint, retry_at timestamptz, new_priority integer, new_queue_name varchar, new_lock varchar)
returns void language plpgsql as $$
begin
    update procrastinate_jobs j
    set status = case when stop then 'failed' else 'todo' end::procrastinate_job_status, attempts = attempts + (not stop)::int,
        scheduled_at = case when stop then scheduled_at else retry_at end, priority = coalesce(new_priority, j.priority),
        queue_name = coalesce(new_queue_name, j.queue_name), lock = coalesce(new_lock, j.lock)
    from (select o.id, o.status = 'doing' and o.abort_requested as stop from procrastinate_jobs o
          where o.id = job_id and o.status in ('doing', 'failed') for update) o
    where j.id = o.id;
    if not found then
        raise 'job % is neither doing nor failed', job_id;
    end if;
end $$;

insert into procrastinate_workers (last_heartbeat) values (now() + interval '1 hour'), (now() - interval '5 min'), (now() - interval '1 day');
alter table procrastinate_jobs disable trigger procrastinate_note;
insert into procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at, attempts, abort_requested, worker_id) values
    ('mail', 'app.send', 0, null, 'one-report', '{"to": "a@example.org", "n": 1}', 'todo', null, 0, false, null),
    ('mail', 'app.send', 5, null, null, '{}', 'todo', now() - interval '1 min', 1, false, null),
    ('mail', 'app.send', 0, null, null, '{}', 'todo', now() + interval '1 day', 0, false, null),
    ('mail', 'app.send', 0, null, null, '{}', 'todo', now() + interval '1 hour', 2, false, null),
    ('video', 'app.encode', 0, null, null, '{"file": "a.mov"}', 'doing', null, 0, false, 1),
    ('video', 'app.encode', 0, 'lane-1', null, '{"file": "b.mov"}', 'doing', null, 1, false, 2),
    ('video', 'app.encode', 0, null, null, '{}', 'doing', null, 0, false, null),
    ('video', 'app.encode', 0, null, null, '{}', 'doing', null, 0, true, 2),
    ('video', 'app.encode', 0, null, null, '{}', 'doing', null, 0, true, 1),
    ('mail', 'app.send', 0, null, null, '{"to": "b@example.org"}', 'failed', null, 3, false, 2),
    ('mail', 'app.report', 0, null, 'one-report', '{}', 'failed', null, 1, false, null),
    (E'ma\x1b[31mil\u202e', E'app.\r\n<b>send</b>\x07', -5, E'lock\x1b]0;x\x07', null, E'{"text": "\\u001b[2J \\"quoted\\"\\n", "deep": [[{}]]}', 'failed',
     null, 9, false, null),
    ('mail', 'app.send', 0, null, null, '{}', 'succeeded', null, 1, false, 1),
    ('mail', 'app.send', 0, null, null, '{}', 'cancelled', null, 0, false, null),
    ('video', 'app.encode', 0, null, null, '{}', 'aborted', null, 1, false, 1),
    ('video', 'app.encode', 0, null, null, '{}', 'aborting', null, 1, false, null);
alter table procrastinate_jobs enable trigger procrastinate_note;
insert into procrastinate_events (job_id, type, at)
select id, 'deferred'::procrastinate_job_event_type, now() - interval '3 days' from procrastinate_jobs
union all select id, 'started', now() - interval '2 days' from procrastinate_jobs where status not in ('todo', 'cancelled')
union all select id, status::text::procrastinate_job_event_type, now() - interval '2 days' + interval '7 s'
          from procrastinate_jobs where status in ('succeeded', 'failed', 'cancelled', 'aborted');
insert into procrastinate_periodic_defers (task_name, defer_timestamp, job_id, periodic_id) values
    ('app.report', extract(epoch from now() - interval '1 day')::bigint, 11, ''),
    ('app.send', extract(epoch from now() - interval '2 days')::bigint, 13, E'morning\x1b[7m');
