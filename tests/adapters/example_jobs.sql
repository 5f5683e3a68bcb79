-- A queue of the kind that many programs have: a table of their own in a schema of their own. queuetop-adapter(5) shows how to
-- write an adapter for it (example_jobs.adapter.sql).
create schema shop;
create table shop.jobs (
    id         bigint generated always as identity primary key,
    task       text not null,
    args       jsonb not null default '{}',
    status     text not null default 'waiting' check (status in ('waiting', 'working', 'done', 'broken')),
    tries      int not null default 0,
    due        timestamptz not null default now(),
    created    timestamptz not null default now(),
    worker     text,
    started    timestamptz,
    ended      timestamptz,
    error      text
);
create index jobs_open on shop.jobs (due, id) where status in ('waiting', 'working', 'broken');
create index jobs_ended on shop.jobs (ended) where status = 'done';

insert into shop.jobs (task, args, status, tries, due, worker, started, ended, error) values
    ('mail',   '{"to": "ann"}', 'waiting', 0, now() - interval '1 minute', null, null, null, null),
    ('mail',   '{"to": "bob"}', 'waiting', 0, now() + interval '1 hour', null, null, null, null),
    ('mail',   '{"to": "cid"}', 'waiting', 2, now() + interval '30 minutes', null, null, null, 'connection refused by 10.0.0.7'),
    ('resize', '{"image": 7}',  'working', 1, now() - interval '5 minutes', 'web1', now() - interval '2 minutes', null, null),
    ('resize', '{"image": 8}',  'working', 1, now() - interval '5 hours', 'web2', now() - interval '3 hours', null, null),
    ('resize', '{"image": 9}',  'broken', 5, now() - interval '1 hour', 'web1', now() - interval '1 hour', now() - interval '59 minutes', 'no such file: "/img/9.png"'),
    ('mail',   '{"to": "dan"}', 'done', 1, now() - interval '2 days', 'web1', now() - interval '2 days', now() - interval '2 days', null);
