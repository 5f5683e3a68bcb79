-- One table "simple_queue": waiting, popped, popped long ago, failed.
create table public.simple_queue (
    id uuid not null primary key,
    created_at timestamp not null,
    processing_started_at timestamp,
    errors text,
    payload text
);
create index ix_simple_queue_pop on public.simple_queue (processing_started_at, created_at asc) include (id) where processing_started_at is null;
insert into public.simple_queue
select ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, timezone('UTC', now()) - ago, timezone('UTC', now()) - started, errors, payload
from (values
    (1, interval '5 min', null::interval, null, 'waits longest'),
    (2, interval '4 min', null, null, '{"n": 2}'),
    (3, interval '9 min', interval '1 min', null, 'runs'),
    (4, interval '1 day', interval '20 h', null, 'popped and forgotten'),
    (5, interval '2 h', interval '1 h', 'no answer from host 10.1.2.3', 'failed'),
    (6, interval '3 h', interval '2 h', 'no answer from host 10.4.5.6', null),
    (7, interval '3 h', interval '2 h', 'disk full', 'failed, another error')
) v (i, ago, started, errors, payload);
