-- Ending a statement or a session that holds back vacuum or others, with its line in the audit. The signal goes out with
-- the caller's own rights (pg_signal_backend or the same role), never the owner's; only the audit is the owner's.

create or replace function note_signal(action uuid, batch int, verb text, target text, params jsonb, reason text, rows jsonb default null)
returns jsonb
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
begin
    if $3 is null or $3 not in ('cancel query', 'end session') then
        raise 'no signal is called "%"', $3 using errcode = 'QT007';
    end if;
    -- who may call signal_backend may call this too: nothing can be noted but what a signal says of this one process
    if (case when $7 is null then $4 ~ '^pid [0-9]{1,10}$' is not true
            when jsonb_typeof($7) <> 'array' then true
            else jsonb_array_length($7) <> 1 or $7 -> 0 ->> 'id' is distinct from $4 or $7 -> 0 ? 'n'
                 or $7 -> 0 ->> 'state' <> case $3 when 'cancel query' then 'told to stop' else 'told to end' end
                 or length($7 -> 0 ->> 'why') > 500 end) then
        raise 'this is not what becomes of a signal' using errcode = 'QT007';
    end if;
    if $7 is null then
        if act_begin($1, $2, $3, null, $4, $5, $6, null) then
            return null;
        end if;
    elsif exists (select from audit a where a.action = $1 and a.who = session_user and a.verb = $3 and a.node = $4)
          and not exists (select from audit_batch b where b.action = $1 and b.batch = $2) then
        perform act_end($1, $2, $7);
    end if;
    return (select b.rows from audit_batch b where b.action = $1 and b.batch = $2);
end $$;
comment on function note_signal(uuid, int, text, text, jsonb, text, jsonb) is 'For signal_backend: without rows begins the action (NULL: it is new, '
    'else the stored answer), with rows ends its batch';

create or replace function signal_backend(action uuid, batch int, wish jsonb, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    act    text := $3 ->> 'act';
    s      jsonb := $3 -> 'shown';
    target text := 'pid ' || (s ->> 'pid');
    a      pg_stat_activity;
    no     text;
    done   boolean;
    answer jsonb;
begin
    if act is null or act not in ('cancel', 'terminate') or s ->> 'pid' is null then
        raise 'a signal needs {"act": "cancel" or "terminate", "shown": {"pid": ...}}' using errcode = 'QT007';
    end if;
    if $2 is not null then
        answer := note_signal($1, $2, case act when 'cancel' then 'cancel query' else 'end session' end,
                              target, s - 'own' || jsonb_build_object('who', $3 -> 'who'), $4);
    end if;
    if answer is null then
        select * into a from pg_stat_activity x where x.pid = (s ->> 'pid')::int;
        no := case when not found then target || ' has ended already'
                   when a.pid in (pg_backend_pid(), (s ->> 'own')::int) then target || ' is a connection of this program'
                   when a.backend_start is distinct from (s ->> 'start')::timestamptz then target || ' is another session by now'
                   when act = 'cancel' and (a.state is distinct from 'active' or a.query_start is distinct from (s ->> 'query')::timestamptz)
                       then format('the statement of %s is over', target)
                   when a.xact_start is distinct from (s ->> 'xact')::timestamptz then format('the transaction of %s is over', target)
                   when act = 'terminate' and a.state = 'active' and s ->> 'state' <> 'active'
                       then target || ' goes on: it runs a statement by now' end;
        done := no is null;
        if done and $2 is not null then
            begin
                done := case act when 'cancel' then pg_cancel_backend(a.pid) else pg_terminate_backend(a.pid) end;
            exception when insufficient_privilege then
                done := false;
                no := format('%s: %s', target, sqlerrm);
            end;
        end if;
        answer := jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('id', target,
            'state', case when done then case act when 'cancel' then 'told to stop' else 'told to end' end end,
            'why', case when not done then coalesce(no, target || ' has ended already') end)));
        if $2 is not null then
            perform note_signal($1, $2, case act when 'cancel' then 'cancel query' else 'end session' end, target, null, null, answer);
        end if;
    end if;
    return query select r ->> 'id', r ->> 'state', r ->> 'why', null::text, 1::bigint from jsonb_array_elements(answer) r;
end $$;
comment on function signal_backend(uuid, int, jsonb, text) is 'Ends a statement ({"act": "cancel"}) or a session ("terminate") that is still as it was '
    'shown ({"shown": {pid, start, state, xact, query}}): a pid that was given to another since, a statement or transaction that is over, '
    'and an idle one that works again are left alone. Batch NULL only looks';
