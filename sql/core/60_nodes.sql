-- Worker processes: node_start, node_beat, node_stop. Optional: a claim needs a name only, not a row here.

create or replace function node_limits(node text, host text, version text, queues text[]) returns void
language plpgsql immutable set search_path from current as $$
begin
    if (length($1) between 1 and 200) is not true then
        raise 'the name of a node has 1 to 200 characters, not %', coalesce(length($1), 0) using errcode = 'QT007';
    elsif length($2) > 255 or length($3) > 100 then
        raise 'the host of a node has 255 characters at most, its version 100; these have % and %', length($2), length($3)
            using errcode = 'QT007';
    elsif cardinality($4) > 1000 then
        raise 'a node names 1000 queues at most, not %', cardinality($4)
            using errcode = 'QT007', hint = 'A node that names none works them all.';
    elsif exists (select from unnest($4) q where (length(q) between 1 and 200) is not true) then
        raise 'the name of a queue has 1 to 200 characters' using errcode = 'QT007';
    end if;
end $$;
comment on function node_limits(text, text, text, text[]) is 'Raises QT007 for what a node may not say of itself';

create or replace function node_start(node text, session uuid, host text, pid int, version text, protocol int, queues text[], slots int)
returns void
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    m meta;
    o node;
begin
    select * into m from meta;
    if $6 < m.min_protocol then
        raise 'this worker speaks protocol %, the queue needs % at least: install a newer queuetop on the worker', $6, m.min_protocol
            using errcode = 'QT003';
    elsif $8 not between 1 and 1000 then
        raise 'a worker process has 1 to 1000 slots, not %', $8
            using errcode = 'QT007', hint = 'Slots are the jobs that it works at a time. More than 1000 need more processes.';
    end if;
    perform node_limits($1, $3, $5, $7);
    insert into node as n (lock_key, session, host, pid, version, protocol, queues, slots, backend_pid)
    values ($1, $2, $3, $4, $5, $6, $7, $8, pg_backend_pid())
    on conflict (lock_key) do update set session = $2, host = $3, pid = $4, version = $5, protocol = $6, queues = $7, slots = $8,
        started = case when n.session = $2 then n.started else now() end, heartbeat = now(),
        state = case when n.session = $2 then n.state else 'up' end, backend_pid = pg_backend_pid()
    where n.session = $2 or n.heartbeat <= now() - setting_interval('node_dead');
    if not found then
        select * into o from node n where n.lock_key = $1;
        raise 'node name "%" is in use by a live process (% on %, last heartbeat % ago)', $1, o.pid, o.host, now() - o.heartbeat
            using errcode = 'QT002';
    end if;
end $$;
comment on function node_start(text, uuid, text, int, text, int, text[], int) is 'Registers a worker process. QT002: a live process of '
    'another session has the name; QT003: the worker''s protocol is too old; QT007: slots outside 1 to 1000. The same session again is a reconnect';

create or replace function node_beat(node text, session uuid, out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
begin
    update node n set heartbeat = now(), backend_pid = pg_backend_pid() where n.lock_key = $1 and n.session = $2
    returning n.state into node_beat.state;
    state := coalesce(state, 'gone');
end $$;
comment on function node_beat(text, uuid) is 'A sign of life: up; draining = take no more jobs; gone = not registered (any more): start anew';

create or replace function node_stop(node text, session uuid) returns void
language sql security definer set search_path from current as $$
    delete from node n where n.lock_key = $1 and n.session = $2
$$;
comment on function node_stop(text, uuid) is 'Ends the registration of a worker process that has answered for all its jobs';
