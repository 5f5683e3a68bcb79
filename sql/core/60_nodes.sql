-- Worker processes: node_start, node_beat, node_clock, node_stop. Registration is optional: a claim needs the name of a
-- node, but no row here.

create or replace function node_limits(node text, host text, version text, queues text[]) returns void
language plpgsql immutable set search_path from current as $$
begin
    if (length(node) between 1 and 200) is not true then
        raise 'the name of a node has 1 to 200 characters, not %', coalesce(length(node), 0) using errcode = 'QT007';
    elsif length(host) > 255 or length(version) > 100 then
        raise 'the host of a node has 255 characters at most, its version 100; these have % and %', length(host),
            length(version)
            using errcode = 'QT007';
    elsif cardinality(queues) > 1000 then
        raise 'a node names 1000 queues at most, not %', cardinality(queues)
            using errcode = 'QT007', hint = 'A node that names none works them all.';
    elsif exists (select from unnest(queues) q where (length(q) between 1 and 200) is not true) then
        raise 'the name of a queue has 1 to 200 characters' using errcode = 'QT007';
    end if;
end $$;
comment on function node_limits(text, text, text, text[]) is 'Raises QT007 if a value that a node gives about itself '
    'is too long or missing';

create or replace function node_start(node text, session uuid, host text, pid int, version text, protocol int,
    queues text[], slots int)
returns void
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    m meta;
    o node;
begin
    perform refuse_others(current_schema(), false);
    select * into m from meta;
    if protocol < m.min_protocol then
        raise 'this worker speaks protocol %, the queue needs % at least: install a newer queuetop on the worker',
            protocol, m.min_protocol
            using errcode = 'QT003';
    elsif protocol > m.protocol then
        raise 'this worker speaks protocol %, the queue knows % at most', protocol, m.protocol
            using errcode = 'QT003', hint = 'queuetop install of the worker''s version brings the queue up to date.';
    elsif slots not between 1 and 1000 then
        raise 'a worker process has 1 to 1000 slots, not %', slots
            using errcode = 'QT007', hint = 'Slots are the jobs that it works at a time. More than 1000 need more '
                                            'processes.';
    end if;
    perform node_limits(node_start.node, host, version, queues);
    if session is null then
        raise 'a node needs a uuid of its session' using errcode = 'QT007';
    end if;
    insert into node as n (lock_key, session, host, pid, version, protocol, queues, slots, backend_pid)
    values (node_start.node, session, host, pid, version, protocol, queues, slots, pg_backend_pid())
    on conflict (lock_key) do update set session = node_start.session, host = node_start.host, pid = node_start.pid,
    version = node_start.version, protocol = node_start.protocol, queues = node_start.queues, slots = node_start.slots,
        started = case when n.session = node_start.session then n.started else now() end, heartbeat = now(),
        state = case when n.session = node_start.session then n.state else 'up' end, backend_pid = pg_backend_pid(),
        clock_ahead = case when n.session = node_start.session then n.clock_ahead end
    where n.session = node_start.session or is_dead(n.heartbeat)
       or n.heartbeat > now() + interval '1 s' and (n.backend_pid = pg_backend_pid() or not sleeps(n.backend_pid));
    if not found then
        select * into o from node n where n.lock_key = node_start.node;
        raise 'node name "%" is in use by a live process (% on %, last heartbeat % ago)', node_start.node, o.pid,
            o.host, greatest(interval '0', now() - o.heartbeat)
            using errcode = 'QT002';
    end if;
end $$;
comment on function node_start(text, uuid, text, int, text, int, text[], int) is 'Registers a worker process. The same '
    'session may call it again after a reconnect. QT002: a live process of another session has the name. QT003: the '
    'worker''s protocol is too old or too new. QT007: slots is not 1 to 1000, or a text is too long';

create or replace function node_beat(node text, session uuid, out state text)
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
begin
    update node n set heartbeat = now(), backend_pid = pg_backend_pid() where n.lock_key = node_beat.node
      and n.session = node_beat.session
    returning n.state into node_beat.state;
    state := coalesce(state, 'gone');
end $$;
comment on function node_beat(text, uuid) is 'The heartbeat of a worker process. Returns up; draining: take no more '
    'jobs; gone: it is not registered, call node_start';

create or replace function node_clock(node text, session uuid, ahead_ms bigint) returns void
language plpgsql security definer set search_path from current as $$
declare
    trusted boolean := only_ours();
begin
    -- a hundred years at most, so that any number is an interval; least() and greatest() pass over a NULL
    update node n set clock_ahead = case when ahead_ms is not null
            then least(greatest(ahead_ms, -3153600000000), 3153600000000) * interval '1 ms' end
    where n.lock_key = node_clock.node and n.session = node_clock.session;
end $$;
comment on function node_clock(text, uuid, bigint) is 'Notes by how many ms the clock of the worker''s machine is '
    'ahead of the server''s (below 0 = behind), as the worker has measured it. The queue itself goes by the server''s '
    'clock';

create or replace function node_stop(node text, session uuid) returns void
language plpgsql security definer set search_path from current as $$
declare
    trusted boolean := only_ours();
begin
    delete from node n where n.lock_key = node_stop.node and n.session = node_stop.session;
    perform leave_slots();
end $$;
comment on function node_stop(text, uuid) is 'Ends the registration of a worker process. The process must have '
    'answered for all its jobs';
