-- Oban's tables, as far as the adapter needs them (migration 14; times are in UTC, without a zone). Jobs in every state.
create type oban_job_state as enum ('available', 'suspended', 'scheduled', 'executing', 'retryable', 'completed', 'discarded', 'cancelled');
create table oban_jobs (
    id           bigserial primary key,
    state        oban_job_state not null default 'available',
    queue        text not null default 'default',
    worker       text not null,
    args         jsonb not null default '{}',
    errors       jsonb[] not null default '{}',
    attempt      int not null default 0,
    max_attempts int not null default 20,
    inserted_at  timestamp not null default timezone('UTC', now()),
    scheduled_at timestamp not null default timezone('UTC', now()),
    attempted_at timestamp,
    completed_at timestamp,
    attempted_by text[],
    discarded_at timestamp,
    priority     int not null default 0,
    tags         text[] default '{}',
    meta         jsonb default '{}',
    cancelled_at timestamp,
    constraint positive_max_attempts check (max_attempts > 0),
    constraint attempt_range check (attempt between 0 and max_attempts),
    constraint non_negative_priority check (priority >= 0)
);
comment on table oban_jobs is '14';
create index oban_jobs_state_queue_priority_scheduled_at_id_index on oban_jobs (state, queue, priority, scheduled_at, id);
create index oban_jobs_state_cancelled_at_index on oban_jobs (state, cancelled_at);
create index oban_jobs_state_discarded_at_index on oban_jobs (state, discarded_at);
create unlogged table oban_peers (name text primary key, node text not null, started_at timestamp not null, expires_at timestamp not null);

create function pg_temp.utc(ago interval) returns timestamp language sql as $$ select timezone('UTC', now()) - ago $$;
insert into oban_peers values ('Oban', 'web@host1', pg_temp.utc('1 h'), pg_temp.utc('-30 s'));
insert into oban_jobs (id, state, queue, worker, priority, attempt, max_attempts, inserted_at, scheduled_at, attempted_at, completed_at, discarded_at,
                       cancelled_at, attempted_by, args, errors)
values
    (1, 'available', 'default', 'App.Mailer', 0, 0, 20, pg_temp.utc('9 min'), pg_temp.utc('9 min'), null, null, null, null, null, '{"to": "a@b"}', '{}'),
    (2, 'available', 'mailers', 'App.Mailer', 3, 0, 20, pg_temp.utc('8 min'), pg_temp.utc('8 min'), null, null, null, null, null, '{"to": "c@d"}', '{}'),
    (3, 'scheduled', 'default', 'App.Report', 0, 0, 20, pg_temp.utc('7 min'), pg_temp.utc('-1 h'), null, null, null, null, null, '{}', '{}'),
    (4, 'retryable', 'mailers', 'App.Mailer', 0, 2, 20, pg_temp.utc('1 h'), pg_temp.utc('-5 min'), pg_temp.utc('1 min'), null, null, null, '{web@host1,0b7c}', '{}',
        array['{"at": "2026-11-01T10:00:00.000000Z", "attempt": 1, "error": "** (RuntimeError) timeout after 30 s"}',
              '{"at": "2026-11-01T11:00:00.000000Z", "attempt": 2, "error": "** (RuntimeError) timeout after 31 s"}']::jsonb[]),
    (5, 'executing', 'default', 'App.Report', 0, 1, 3, pg_temp.utc('6 min'), pg_temp.utc('6 min'), pg_temp.utc('5 min'), null, null, null, '{web@host1,0b7c}', '{}', '{}'),
    (6, 'executing', 'mailers', 'App.Mailer', 0, 3, 3, pg_temp.utc('3 h'), pg_temp.utc('3 h'), pg_temp.utc('2 h'), null, null, null, '{web@host2,77aa}', '{}', '{}'),
    (7, 'executing', 'mailers', 'App.Mailer', 0, 1, 3, pg_temp.utc('3 h'), pg_temp.utc('3 h'), pg_temp.utc('2 h'), null, null, null, '{web@host2,77aa}', '{}', '{}'),
    (8, 'suspended', 'default', 'App.Flow', 0, 0, 20, pg_temp.utc('5 min'), pg_temp.utc('5 min'), null, null, null, null, null, '{}', '{}'),
    (10, 'discarded', 'default', 'App.Report', 0, 3, 3, pg_temp.utc('2 h'), pg_temp.utc('1 h'), pg_temp.utc('1 h'), null, pg_temp.utc('50 min'), null, '{web@host1,0b7c}', '{"n": 1}',
        array['{"at": "2026-11-01T10:00:00Z", "attempt": 3, "error": "** (ArithmeticError) bad argument 17"}']::jsonb[]),
    (11, 'discarded', 'mailers', 'App.Mailer', 0, 20, 20, pg_temp.utc('2 h'), pg_temp.utc('1 h'), pg_temp.utc('1 h'), null, pg_temp.utc('40 min'), null, '{web@host1,0b7c}', '{"n": 2}',
        array['{"at": "2026-11-01T10:00:00Z", "attempt": 20, "error": "** (ArithmeticError) bad argument 18"}']::jsonb[]),
    (12, 'completed', 'default', 'App.Mailer', 0, 1, 20, pg_temp.utc('2 d'), pg_temp.utc('2 d'), pg_temp.utc('2 d'), pg_temp.utc('2 d'), null, null, '{web@host1,0b7c}', '{}', '{}'),
    (13, 'completed', 'mailers', 'App.Mailer', 0, 1, 20, pg_temp.utc('1 h'), pg_temp.utc('1 h'), pg_temp.utc('1 h'), pg_temp.utc('1 h'), null, null, '{web@host1,0b7c}', '{}', '{}'),
    (14, 'cancelled', 'default', 'App.Mailer', 0, 0, 20, pg_temp.utc('3 d'), pg_temp.utc('3 d'), null, null, null, pg_temp.utc('3 d'), null, '{}', '{}'),
    (17, 'discarded', E'evil\u202e\x1b[31m"queue', E'Worker''; drop table oban_jobs; --', 9, 1, 1, pg_temp.utc('1 h'), 'infinity', pg_temp.utc('1 h'), null, pg_temp.utc('20 min'), null,
        array[E'node\x1b]0;x\x07', 'u'], '{"k\u202e": "\u001b[2J"}', array['{"at": "never", "attempt": "x", "error": "\u001b[31mred\u202e \u0007 <b>"}']::jsonb[]);
select setval('oban_jobs_id_seq', 100);
