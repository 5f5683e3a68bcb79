-- A copy of PgQ, written by us: only what the adapter uses. One queue with a consumer that lags, an open batch and events to retry.
create schema pgq;
create table pgq.consumer (co_id serial primary key, co_name text not null unique);
create table pgq.queue (
    queue_id serial primary key,
    queue_name text not null unique,
    queue_ticker_paused bool not null default false,
    queue_disable_insert bool not null default false,
    queue_ticker_max_count int not null default 500,
    queue_ticker_max_lag interval not null default '3 s',
    queue_event_seq text not null
);
create table pgq.tick (
    tick_queue int not null references pgq.queue, tick_id bigint not null, tick_time timestamptz not null default now(),
    tick_event_seq bigint not null, primary key (tick_queue, tick_id)
);
create table pgq.subscription (
    sub_id serial not null, sub_queue int not null references pgq.queue, sub_consumer int not null references pgq.consumer,
    sub_last_tick bigint, sub_active timestamptz not null default now(), sub_batch bigint unique, sub_next_tick bigint,
    primary key (sub_queue, sub_consumer)
);
create table pgq.retry_queue (
    ev_retry_after timestamptz not null, ev_queue int not null references pgq.queue, ev_id bigint not null, ev_time timestamptz not null,
    ev_txid bigint, ev_owner int not null, ev_retry int, ev_type text, ev_data text, ev_extra1 text, ev_extra2 text, ev_extra3 text,
    ev_extra4 text, primary key (ev_owner, ev_id)
);
create index on pgq.retry_queue (ev_retry_after);
create function pgq.set_queue_config(x_queue_name text, x_param_name text, x_param_value text) returns int language sql as $$
    update pgq.queue set queue_ticker_paused = x_param_value::bool where queue_name = x_queue_name and x_param_name = 'ticker_paused'
    returning 1
$$;

create function pgq.jsontriga() returns trigger language plpgsql as 'begin return null; end';

create sequence pgq.event_1_id_seq;
select setval('pgq.event_1_id_seq', 130);
create sequence pgq.event_2_id_seq;
insert into pgq.queue (queue_name, queue_ticker_paused, queue_event_seq) values ('events', false, 'pgq.event_1_id_seq'), ('quiet', true, 'pgq.event_2_id_seq');
insert into pgq.consumer (co_name) values ('billing'), ('search');
insert into pgq.tick (tick_queue, tick_id, tick_time, tick_event_seq)
values (1, 1, now() - interval '3 min', 1), (1, 2, now() - interval '2 min', 50), (1, 3, now() - interval '1 min', 120), (2, 1, now(), 1);
insert into pgq.subscription (sub_queue, sub_consumer, sub_last_tick, sub_active, sub_batch, sub_next_tick)
values (1, 1, 1, now() - interval '30 s', 7, 2), (1, 2, 3, now(), null, null), (2, 1, 1, now(), null, null);
insert into pgq.retry_queue (ev_retry_after, ev_queue, ev_id, ev_time, ev_owner, ev_retry, ev_type, ev_data, ev_extra1)
values (now() + interval '1 h', 1, 11, now() - interval '1 h', 1, 2, 'insert', 'id=1', 'public.orders'),
       (now() - interval '1 min', 1, 12, now() - interval '1 h', 1, 1, 'update', 'id=2', 'public.orders'),
       (now() + interval '2 h', 1, 11, now() - interval '1 h', 2, 1, 'insert', 'id=1', 'public.orders');
