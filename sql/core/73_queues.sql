-- Acts on queues and nodes: pause, resume, set_queue, drain_node; and the rules for the settings of a queue.

create or replace function uncut(queue text, strict boolean default true) returns bigint
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    wait   text := current_setting('lock_timeout');
    leases bigint[] := array(select l.lease from live l where l.queue = uncut.queue and l.lock_key is null);
    levels int[];
    taken  bigint[];
begin
    if strict then
        begin
            perform set_config('lock_timeout', '100ms', true);
            perform from work_queue w where w.lease = any(leases) and w.lock_key is null
            order by w.lease + 0 for update; -- + 0: by the list, as 10_tables says
            perform set_config('lock_timeout', wait, true);
        exception when lock_not_available then
            raise 'somebody is just claiming jobs of queue "%" in a transaction that stays open: nothing was changed, '
                  'try again', uncut.queue
                using errcode = '55P03', hint = 'A claim belongs in a transaction of its own.';
        end;
    end if;
    with locked_leases as materialized (
        select w.lease from work_queue w where w.lease = any(leases) and w.lock_key is null
        order by w.lease + 0 -- + 0: by the list, as 10_tables says
        for update skip locked
    ), uncut_leases as (
        delete from work_queue w using locked_leases l where w.lease = l.lease returning w.priority, w.seqs
    )
    select array_agg(d.priority::int), array_agg(u.seq) into levels, taken from uncut_leases d, unnest(d.seqs) u (seq);
    if taken is not null then
        perform move_cursor(array_fill(uncut.queue, array[cardinality(taken)]), levels,
                            array(select s - 1 from unnest(taken) s), null);
        perform bucket_forget(uncut.queue, taken);
    end if;
    return coalesce(cardinality(taken), 0);
end $$;
comment on function uncut(text, boolean) is 'Takes back the free leases of a queue. The cursor moves back before their '
    'jobs, so the jobs keep their order. A lease that a worker is just claiming: strict waits for it (raises 55P03 '
    'after 100 ms), otherwise it is left alone. Call it under the scheduler''s lock';

create or replace function unseen(queue text, kept text) returns text
language sql stable set search_path from current as $$
    select format('no job was ever seen in queue "%s"', queue)
    || coalesce(': ' || kept || ' is kept for when one comes', '')
    where not exists (select from cursor c where c.queue = unseen.queue) and not exists (select from queue q
            where q.queue = unseen.queue)
$$;
comment on function unseen(text, text) is 'A warning for a setting of a queue that does not exist yet, perhaps because '
    'its name is misspelt; NULL: the queue exists';

create or replace function pause_preview(queue text, force boolean default false) returns table (state text, n bigint,
    why text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select case when c.paused_at is null and (force or slip is null) then 'paused' end, 1::bigint,
           case when c.paused_at is not null then concat('paused already, by ', c.paused_by, ': ' || c.pause_reason)
                when force then slip else slip || '; --create pauses it for when one comes' end
    from (select unseen(pause_preview.queue, null) as slip) u left join queue_config c on c.queue = pause_preview.queue
    where pause_preview.queue is not null
$$;
comment on function pause_preview(text, boolean) is 'What pause would do now. The name of a queue that was never seen '
    'counts as a typing error, unless force is true';

create or replace function pause(action uuid, queue text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    rows jsonb;
    back bigint;
    was  jsonb;
begin
    if (length(queue) between 1 and 200) is not true then
        raise 'the name of a queue has 1 to 200 characters, not %', coalesce(length(queue), 0) using errcode = 'QT007';
    end if;
    if act_begin(action, 1, 'pause', queue, null, '{}', reason, null) then
        perform from queue_config c where c.queue = pause.queue for update;
        perform act_lock();
        insert into queue_config (queue) values (queue) on conflict do nothing;
        update queue_config c set paused_at = now(), paused_by = session_user, pause_reason = pause.reason
        where c.queue = pause.queue and c.paused_at is null;
        if not found then
            rows := jsonb_build_array(jsonb_build_object('id', queue, 'why', 'paused already'));
        else
            back := uncut(queue);
            was := jsonb_build_object('queue', queue, 'since', now());
            rows := jsonb_build_array(jsonb_build_object('id', queue, 'state', 'paused',
                'why', coalesce(unseen(queue, 'the pause'), format('%s jobs taken back', back))));
        end if;
        perform act_end(action, 1, rows, was);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function pause(uuid, text, text) is 'Pauses a queue: from now on no job of it is claimed. Running jobs go '
    'on to their end; ready jobs keep their order';

create or replace function resume(action uuid, queue text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    was jsonb;
begin
    if act_begin(action, 1, 'resume', queue, null, '{}', reason, null) then
        select to_jsonb(c) into was from queue_config c where c.queue = resume.queue and c.paused_at is not null
        for update;
        if was is not null then
            update queue_config c set paused_at = null, paused_by = null, pause_reason = null
            where c.queue = resume.queue;
            perform wake_queue(queue);
        end if;
        perform act_end(action, 1,
                        jsonb_build_array(jsonb_build_object('id', queue, 'state',
                                                             case when was is not null then 'resumed' end,
            'why', case when was is null then coalesce(unseen(queue, null), 'not paused') end)), was);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function resume(uuid, text, text) is 'Ends a pause: jobs of the queue can be claimed again';

create or replace function rate_of(value text) returns numeric
language sql immutable strict set search_path from current as $$
    select n::numeric / case unit when 'min' then 60 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 else 1 end
    from (select m[1] as n, m[2] as unit from regexp_match(rate_of.value, '^ *([0-9]{1,9}(?:[.][0-9]{1,9})?) *(?:/ '
                                                                          '*(s|min|m|h|d))? *$') m) z
$$;
comment on function rate_of(text) is 'Jobs a second, from a text such as 20, 20/s, 100/min, 5/h or 1/d; NULL = the '
    'text is invalid';

create or replace function duration_text(t interval) returns text
language sql immutable strict set search_path from current as $$
    select case when ms = 0 then '0s' when ms % 86400000 = 0 then ms / 86400000 || 'd'
                when ms % 3600000 = 0 then ms / 3600000 || 'h'
                when ms % 60000 = 0 then ms / 60000 || 'm' when ms % 1000 = 0 then ms / 1000 || 's' else ms || 'ms' end
    from (select round(extract(epoch from duration_text.t) * 1000)::bigint as ms) z
$$;
comment on function duration_text(interval) is 'A duration in the largest unit that gives a whole number: 90s, 5m, 2h, '
    '7d';

-- One row a setting; its name is a column of queue_config. The comment above the row has the texts for people,
-- separated by |: place and label in the form of limits | option and value of `queuetop queue` | sentence | what --help
-- adds to the sentence | what the form adds to it (_ = a blank). The build makes gen/settings.def of these comments.
create or replace function setting_rules()
returns table (name text, kind text, low numeric, high numeric, standard text, note text)
language sql immutable set search_path from current as $$
    values ('paused', 'flag', 0, 1, 'false', 'jobs of the queue are not claimed'),
           -- 5 weight | --weight N | share of the queue when several queues wait | (1) | : 1 to 1000
           ('weight', 'number', 1, 1000, '1', 'share of the queue when several queues wait'),
           -- 1 limit | --limit N | how many jobs may run at the same time | | ; none: no limit
           ('max_running', 'number', 0, 1000000, null, 'how many jobs may be in leases at the same time'),
           -- 2 rate | --rate RATE | how many jobs may start: 20/s, 100/min, 5/h | | ; none: no limit
           ('rate', 'rate', 0.000001, 1000000, null, 'how many jobs may start, over a long time'),
           -- 3 burst | --burst N | how many jobs may start at once after a quiet time | | ; none: as many as in 1 s
           ('burst', 'number', 1, 1000000, null,
            'how many jobs may start at once after a quiet time; none = one second of the rate'),
           -- 4 per key | --per-key N | how many jobs of one concurrency key may run at once | (1) | ; none: 1
           ('max_per_key', 'number', 1, 1000000, null,
            'how many jobs of one concurrency key may run at the same time; none = 1'),
           -- 6 chunk | --chunk N | how many jobs a lease holds | (measured) | , 1 to 100; none: measured
           ('chunk', 'number', 1, 100, null, 'how many jobs a lease holds; none = measured, about a second of work'),
           -- 7 lease timeout | --timeout T | how long a worker may be silent | (1m) | : 90s, 5m
           ('lease_timeout', 'time', 0.001, 31536000, '1m', 'how long a worker may be silent'),
           -- 8 run timeout | --run-timeout T | how long a job may run | | : 10m, 2h; none: no limit
           ('run_timeout', 'time', 0.001, 31536000, null, 'how long a job may run'),
           -- 9 max tries | --max-tries N | tries before a job counts as failed | (5) |
           ('max_tries', 'number', 1, 32767, '5', 'tries before a job counts as failed'),
 -- 10 first retry | --backoff TIMES | wait before the first retry | and the longest wait (5s..1h) |; it doubles: 5s
           ('backoff_base', 'time', 0, 31536000, '5s', 'wait before the first retry; each further retry doubles it'),
           -- 11 last retry | | longest wait before a retry | | : 1h
           ('backoff_max', 'time', 0, 31536000, '1h', 'longest wait before a retry'),
           -- 12 retention | --retention T | how long finished jobs are kept | (7d) | : 12h, 7d
           ('retention', 'time', 0.001, 3153600000, '7d', 'how long finished jobs are kept'),
 -- 13 history | --history WHAT | what is kept of finished jobs: | none, meta, full |_none, meta (no payload), full
           ('history', 'word', 0, 0, 'full', 'what is kept of finished jobs: none, meta (no payload, no result), full')
$$;
comment on function setting_rules() is 'What can be set for a queue, and how';

create or replace function setting_value(name text, value text) returns text
language plpgsql immutable set search_path from current as $$
#variable_conflict use_column
declare
    r record;
    v numeric;
begin
    select * into r from setting_rules() s where s.name = setting_value.name;
    if r.name is null then
        raise 'a queue has no setting "%"', left(name, 100) using errcode = 'QT007',
            hint = 'There are: ' || (select string_agg(s.name, ', ') from setting_rules() s);
    elsif value is null or value = 'default' or value = 'none' and r.standard is null then
        return r.standard;
    end if;
    begin
        v := case r.kind when 'number' then case when value ~ '^[0-9]{1,9}$' then value::numeric end
                  when 'rate' then rate_of(value)
                         when 'time' then case when value !~ '^ *[0-9.]*[1-9][0-9.]* *$' -- a number needs its unit
                                               then extract(epoch from value::interval)::numeric end
                             when 'flag' then value::boolean::int::numeric
                         else case when value in ('none', 'meta', 'full') then 0 end end;
    exception when others then
        v := null;
    end;
    if v is null or v not between r.low and r.high then
        raise '% takes %, not "%"', name, case r.kind
                when 'number' then format('a whole number from %s to %s', r.low, r.high)
                when 'rate' then 'a number of jobs up to 1000000 a second, such as 20/s, 100/min or 5/h'
                when 'time' then format('a time from %s to %s, such as 90s, 5m or 7d',
                                        duration_text(r.low * interval '1 s'),
                                        duration_text(r.high * interval '1 s'))
                when 'flag' then 'true or false' else 'none, meta or full' end || ', or default', left(value, 100)
                using errcode = 'QT007';
    end if;
    return case r.kind when 'rate' then v::text when 'flag' then (v = 1)::text
                when 'time' then (v || ' s')::interval::text else value end;
end $$;
comment on function setting_value(text, text) is 'The value in the form that the column takes; for NULL and "default" '
    'the standard value. Raises QT007 and names the allowed values if it is invalid';

create or replace function setting_shown(c queue_config)
returns table (name text, value text)
language sql immutable set search_path from current as $$
    select r.name, case when j.v is null then 'none' when r.kind = 'time' then duration_text(j.v::interval)
                        when r.kind <> 'rate' then j.v
                        when round(c.rate, 9) = round(c.rate) then round(c.rate)::text || '/s'
                        when round(c.rate * 60, 9) = round(c.rate * 60) then round(c.rate * 60)::text || '/min'
                        when round(c.rate * 3600, 8) = round(c.rate * 3600) then round(c.rate * 3600)::text || '/h'
                        else trim_scale(round(c.rate, 9))::text || '/s' end
    from setting_rules() r
    cross join lateral (select case r.name when 'paused' then (c.paused_at is not null)::text
                                    else to_jsonb(c) ->> r.name end as v) j
$$;
comment on function setting_shown(queue_config) is 'The settings of a queue as text for people, one row a setting';

create or replace function unset_queue() returns queue_config
language sql immutable set search_path from current as $$
    select jsonb_populate_record(null::queue_config, (select jsonb_object_agg(r.name, r.standard) from setting_rules() r
                                                      where r.name <> 'paused'))
$$;
comment on function unset_queue() is 'The settings of a queue for which nothing has been set';

create or replace function queue_settings(queue text)
returns table (setting text, value text, standard text, note text)
language sql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
    select only_ours();
    select s.name, s.value, coalesce(r.standard, 'none'),
           r.note || case when s.name = 'paused' and c.paused_at is not null
                          then coalesce(', by ' || c.paused_by || coalesce(': ' || c.pause_reason, ''), '') else '' end
    from (select * from queue_config q where q.queue = queue_settings.queue
          union all
          select (unset_queue()).* where not exists (select from queue_config q where q.queue = queue_settings.queue)
            and unseen(queue_settings.queue, null) is null) c
    cross join lateral setting_shown(c) with ordinality s (name, value, o)
    join setting_rules() r on r.name = s.name
    order by s.o
$$;
comment on function queue_settings(text) is 'The settings of a queue, one row a setting; no row if the queue was never '
    'seen and never set';

create or replace function set_queue_preview(queue text, settings jsonb)
returns table (state text, n bigint, why text)
language plpgsql stable security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    was  queue_config;
    will queue_config;
    diff text;
    seen jsonb := settings -> 'was';
begin
    if queue is null or settings is null then
        return;
    elsif not (length(queue) between 1 and 200 and jsonb_typeof(settings) = 'object') then
        raise 'a queue has a name of 1 to 200 characters, its settings are a JSON object' using errcode = 'QT007';
    end if;
    select * into was from queue_config c where c.queue = set_queue_preview.queue;
    if not found then
        was := unset_queue();
    end if;
    will := jsonb_populate_record(was, (select jsonb_object_agg(k, setting_value(k, v))
                                        from jsonb_each_text(settings - 'was') s (k, v)));
    select string_agg(format('%s is %s now', a.name, a.value), '; ' order by a.o) into diff
    from setting_shown(was) with ordinality a (name, value, o) where seen ->> a.name <> a.value;
    if diff is not null then
        n := 1;
        why := 'changed meanwhile: ' || diff;
        return next;
        return;
    end if;
    if settings ? 'paused' then
        will.paused_at := case when setting_value('paused', settings ->> 'paused')::boolean then coalesce(was.paused_at,
                now()) end;
    end if;
    select string_agg(format('%s %s, was %s', b.name, b.value, a.value), '; ' order by b.o) into diff
    from setting_shown(will) with ordinality b (name, value, o) join setting_shown(was) a on a.name = b.name
        and a.value <> b.value;
    state := case when diff is not null then 'set' end;
    n := 1;
    why := concat_ws('; ', coalesce(diff, 'it is so already'), unseen(queue, 'this'));
    return next;
end $$;
comment on function set_queue_preview(text, jsonb) is 'What set_queue would change; raises QT007 if a setting is '
    'unknown or out of range';

create or replace function put_settings(queue text, settings jsonb) returns void
language plpgsql set search_path from current as $$
begin
    execute (select format('update queue_config c set %s from (select v.* from queue_config o '
                           'cross join lateral jsonb_populate_record(o, $1) v where o.queue = $2) x '
                           'where c.queue = $2', string_agg(format('%1$I = x.%1$I', r.name), ', '))
             from setting_rules() r where r.name <> 'paused') using settings, queue;
end $$;
comment on function put_settings(text, jsonb) is 'Gives a queue these settings ({name: value of the column}) and '
    'leaves the others as they are. It can set every setting of setting_rules() except paused';

create or replace function set_queue(action uuid, queue text, settings jsonb, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    s   jsonb;
    p   record;
    was jsonb;
begin
    perform set_queue_preview(coalesce(queue, ''), coalesce(settings, 'null')); -- raises if there is no such setting
    if act_begin(action, 1, 'set', queue, null, settings - 'was', reason, null) then
        perform from queue_config c where c.queue = set_queue.queue for update;
        perform act_lock();
        select * into p from set_queue_preview(queue, settings);
        if p.state is null then
            perform act_end(action, 1, jsonb_build_array(jsonb_build_object('id', queue, 'why', p.why)));
            return query select * from act_answer(action, 1);
            return;
        end if;
        select jsonb_object_agg(k, setting_value(k, v)) into s from jsonb_each_text(settings - 'was') x (k, v);
        insert into queue_config (queue) values (queue) on conflict do nothing;
        select to_jsonb(c) into was from queue_config c where c.queue = set_queue.queue for update;
        perform bucket_settle(queue);
        perform uncut(queue);
        perform put_settings(queue, s);
        update queue_config c set
            paused_at = case s ->> 'paused' when 'true' then coalesce(c.paused_at, now()) when 'false' then null
                             else c.paused_at end,
            paused_by = case s ->> 'paused' when 'true' then coalesce(c.paused_by, session_user) when 'false' then null
                             else c.paused_by end,
            pause_reason = case s ->> 'paused' when 'true' then coalesce(set_queue.reason, c.pause_reason)
                                when 'false' then null else c.pause_reason end
        where c.queue = set_queue.queue;
        delete from bucket b where b.queue = set_queue.queue and not exists (select from queue_config c
                where c.queue = set_queue.queue and c.rate is not null);
        perform wake_queue(queue);
        perform act_end(action, 1, jsonb_build_array(jsonb_build_object('id', queue, 'state', p.state, 'why', p.why)),
                        was);
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function set_queue(uuid, text, jsonb, text) is 'Changes settings of a queue (setting_rules names them), for '
    'example {"max_running": 4, "rate": "100/min"}; null or "default" = the default. With {"was": {"max_running": '
    '"none"}} a setting is changed only if it still has that value. Jobs that are cut but not claimed are cut anew';

create or replace function drain_node(action uuid, node text, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql security definer set search_path from current set enable_seqscan = off
    set enable_indexscan = on set enable_indexonlyscan = on set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
begin
    if act_begin(action, 1, 'drain', null, node, '{}', reason, null) then
        update node x set state = 'draining' where x.lock_key = drain_node.node and x.state = 'up';
        perform act_end(action, 1,
                        jsonb_build_array(case when found then jsonb_build_object('id', node, 'state', 'draining')
            else jsonb_build_object('id', node, 'why',
                                    case when exists (select from node x where x.lock_key = drain_node.node)
                                                     then 'draining already' else 'no such node is registered' end)
                                                     end));
    end if;
    return query select * from act_answer(action, 1);
end $$;
comment on function drain_node(uuid, text, text) is 'Drains a node: it takes no more jobs, and ends when its own are '
    'done. It learns that with its next heartbeat';
