-- pgmq's tables and functions, as far as the adapter needs them (version 1.5; we wrote the bodies). Messages in every state.
create schema pgmq;
create table pgmq.meta (queue_name varchar unique not null, is_partitioned boolean not null, is_unlogged boolean not null,
                        created_at timestamptz not null default now());
create type pgmq.message_record as (msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb, headers jsonb);
create function pgmq.set_vt(queue_name text, msg_id bigint, vt int) returns setof pgmq.message_record language plpgsql as $$
begin
    return query execute format('update pgmq.%I set vt = clock_timestamp() + make_interval(secs => $2) where msg_id = $1 '
                                'returning msg_id, read_ct, enqueued_at, vt, message, headers', lower('q_' || queue_name)) using msg_id, vt;
end $$;
create function pgmq.archive(queue_name text, msg_id bigint) returns boolean language plpgsql as $$
declare
    n int;
begin
    execute format('with d as (delete from pgmq.%I where msg_id = $1 returning *) insert into pgmq.%I (msg_id, read_ct, enqueued_at, vt, message, headers) '
                   'select msg_id, read_ct, enqueued_at, vt, message, headers from d', lower('q_' || queue_name), lower('a_' || queue_name)) using msg_id;
    get diagnostics n = row_count;
    return n > 0;
end $$;
create function pgmq.delete(queue_name text, msg_id bigint) returns boolean language plpgsql as $$
declare
    n int;
begin
    execute format('delete from pgmq.%I where msg_id = $1', lower('q_' || queue_name)) using msg_id;
    get diagnostics n = row_count;
    return n > 0;
end $$;
create function pgmq.archive(queue_name text, msg_ids bigint[]) returns setof bigint language sql as $$
    select i from unnest(msg_ids) i where pgmq.archive(queue_name, i)
$$;
create function pgmq.delete(queue_name text, msg_ids bigint[]) returns setof bigint language sql as $$
    select i from unnest(msg_ids) i where pgmq.delete(queue_name, i)
$$;
create function pgmq."create"(queue_name text) returns void language plpgsql as $$
declare
    q text := lower('q_' || queue_name);
    a text := lower('a_' || queue_name);
begin
    execute format('create table pgmq.%I (msg_id bigint primary key generated always as identity, read_ct int not null default 0, '
                   'enqueued_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb)', q);
    execute format('create table pgmq.%I (msg_id bigint primary key, read_ct int not null default 0, enqueued_at timestamptz not null default now(), '
                   'archived_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb)', a);
    execute format('create index %I on pgmq.%I (vt)', q || '_vt_idx', q);
    execute format('create index %I on pgmq.%I (archived_at)', 'archived_at_idx_' || queue_name, a);
    insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values (queue_name, false, false);
end $$;
select pgmq."create"('orders'), pgmq."create"('Mails'), pgmq."create"(E'evil\u202e "queue:7');
insert into pgmq.q_orders (read_ct, enqueued_at, vt, message, headers) values
    (0, now() - interval '9 min', now() - interval '9 min', '{"order": 1}', null),
    (0, now() - interval '8 min', now() - interval '8 min', '{"order": 2}', '{"trace": "x"}'),
    (0, now() - interval '7 min', now() + interval '1 h', '{"order": 3}', null),
    (2, now() - interval '6 min', now() + interval '30 min', '{"order": 4}', null),
    (1, now() - interval '5 min', now() - interval '1 min', '{"order": 5}', null),
    (0, now() - interval '4 min', 'infinity', '{"order": 6}', null);
insert into pgmq.a_orders (msg_id, read_ct, enqueued_at, archived_at, vt, message) values
    (101, 1, now() - interval '2 d', now() - interval '2 d', now() - interval '2 d', '{"order": 0}'),
    (102, 1, now() - interval '1 d', now() - interval '1 d', now() - interval '1 d', '{"order": -1}');
insert into pgmq.q_mails (read_ct, enqueued_at, vt, message) values
    (0, now() - interval '3 min', now() - interval '3 min', '{"to": "a@b"}'), (1, now() - interval '1 min', now() + interval '40 min', '{"to": "c@d"}');
insert into pgmq."q_evil‮ ""queue:7" (read_ct, enqueued_at, vt, message) values
    (0, now() - interval '2 min', now() - interval '2 min', E'{"k\u202e": "\\u001b[2J\\u0007 <b>&amp; ]]> \\uFFFE"}');
