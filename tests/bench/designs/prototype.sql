-- Only the idea of the engine: leases on chunks of jobs, cursors, history, fencing, counters. Queues have numbers, and the client
-- keeps the cursors. There are no priorities, retries, late commits, limits, nodes or rights. DESIGNS.md says why it is measured.
create schema prototype;
set search_path = prototype;
create sequence job_seq;
create table job (
    id        uuid primary key default gen_random_uuid(),
    seq       bigint not null default nextval('job_seq'),
    queue     int not null,
    state     smallint not null default 0,
    priority  smallint not null default 0,
    tries     smallint not null default 0,
    max_tries smallint not null default 5,
    run_after timestamptz,
    created   timestamptz not null default now(),
    kind      text not null,
    payload   jsonb
);
create unique index on job (queue, priority, seq) where state = 0;
create table work (
    lease        bigint generated always as identity primary key,
    queue        int not null,
    priority     smallint not null,
    seqs         bigint[] not null,
    lock_key     text,
    lock_timeout timestamptz,
    started      timestamptz,
    version      int not null default 0
) with (fillfactor = 60);
create table history (
    id uuid, queue int, state smallint, kind text, created timestamptz, finished timestamptz, tries smallint, lock_key text, payload jsonb
) partition by range (finished);
create table history_default partition of history default;
create index on history_default (queue, finished);
create table delta (xid xid8 not null default pg_current_xact_id(), queue int not null, state smallint not null, n int not null);
create index on delta (xid);
create table fold (fold bigint generated always as identity primary key, upto xid8 not null, at timestamptz not null default clock_timestamp());
create table counter (fold bigint not null, queue int, state smallint, n bigint);
create index on counter (fold);
insert into fold (upto) values ('0');

create function pushed() returns trigger language plpgsql set search_path from current as $$
begin
    insert into delta (queue, state, n) select queue, state, count(*) from new_rows group by 1, 2;
    return null;
end $$;
create trigger pushed after insert on job referencing new table as new_rows for each statement execute function pushed();

create function fold_now() returns void language plpgsql as $$
declare
    f    record;
    made bigint;
    till xid8 := pg_snapshot_xmin(pg_current_snapshot());
begin
    select * into f from prototype.fold order by fold desc limit 1;
    if f.at > clock_timestamp() - interval '1 s' then
        return;
    end if;
    insert into prototype.fold (upto) values (till) returning fold into made;
    insert into prototype.counter
    select made, queue, state, sum(n) from (
        select queue, state, n from prototype.counter where fold = f.fold
        union all
        select queue, state, n::bigint from prototype.delta where xid >= f.upto and xid < till) z group by 2, 3;
    if made % 10 = 0 then
        delete from prototype.delta where xid < f.upto;
        delete from prototype.counter where fold < made;
        delete from prototype.fold where fold < made;
    end if;
end $$;

create function schedule(cur bigint[], first bigint, turn int, chunk int, out next_cur bigint[], out next_first bigint, out next_turn int)
language plpgsql as $$
declare
    r record;
begin
    next_cur := cur;
    next_first := first;
    next_turn := (turn + 20) % 50;
    select count(*) as n, min(lease) as low into r from (
        select lease from prototype.work where lease > first and lock_key is null order by lease limit 200) z;
    if r.low is not null then
        next_first := r.low - 1;
    end if;
    perform prototype.fold_now();
    if r.n >= 200 then -- enough free leases
        next_turn := turn;
        perform pg_sleep(0.004);
        return;
    end if;
    for r in
        with c as (
            select q % 50 as queue, array_agg(j.seq order by j.seq) as seqs
            from generate_series(turn, turn + 19) q, lateral (
                select seq from prototype.job where queue = q % 50 and priority = 0 and state = 0 and seq > cur[q % 50 + 1]
                order by seq limit chunk) j
            group by 1
        ), ins as (
            insert into prototype.work (queue, priority, seqs) select queue, 0, seqs from c)
        select queue, seqs[cardinality(seqs)] as last from c
    loop
        next_cur[r.queue + 1] := r.last;
    end loop;
end $$;
