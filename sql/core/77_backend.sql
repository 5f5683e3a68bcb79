-- Ends a statement or a session that holds back vacuum or blocks others, and records it in the audit. signal_backend()
-- runs with the rights of the caller, and decides whether the process is still the one that was shown. send_signal()
-- runs with the rights of the owner. It sends the signal and records it in one function, so that the audit can't show a
-- signal that was never sent. It sends only signals that the caller may send.

create or replace function signal_denied(target int) returns text
language sql stable set search_path from current as $$
    select case
        when a.pid is null then format('pid %s has ended already', target)
        when a.pid = pg_backend_pid() then format('pid %s is a connection of this program', target)
        when (select r.rolsuper from pg_roles r where r.rolname = c.name) then null
        when coalesce((select r.rolsuper from pg_roles r where r.oid = a.usesysid), true)
            then format('pid %s belongs to %s: only a superuser may send it a signal', target,
                        coalesce('superuser ' || quote_ident(a.usename), 'the server itself'))
        when not pg_has_role(c.name, a.usesysid, 'usage') and not pg_has_role(c.name, 'pg_signal_backend', 'usage')
            then format('pid %s: %s needs membership in role %s or in pg_signal_backend', target, quote_ident(c.name),
                        quote_ident(a.usename)) end
    from (select case current_setting('role') when 'none' then session_user::text else current_setting('role') end
          as name) c
    left join pg_stat_activity a on a.pid = target
$$;
comment on function signal_denied(int) is 'Why the caller (not the owner) may not send a signal to this process; NULL: '
    'the caller may';

create or replace function send_signal(action uuid, batch int, verb text, target int, params jsonb, reason text,
    refused text)
returns jsonb
language plpgsql security definer set search_path from current as $$
#variable_conflict use_column
declare
    trusted boolean := only_ours();
    no   text := left(refused, 500);
    done boolean := false;
begin
    if verb is null or verb not in ('cancel query', 'end session') then
        raise 'no signal is called "%"', left(verb, 100) using errcode = 'QT007';
    elsif target is null then
        raise 'a signal needs the pid of a process' using errcode = 'QT007';
    end if;
    if act_begin(action, batch, verb, null, 'pid ' || target, coalesce(params, '{}'), reason, null) then
        no := coalesce(no, signal_denied(target));
        if no is null then
            begin
                done := case verb when 'cancel query' then pg_cancel_backend(target)
                             else pg_terminate_backend(target) end;
            exception when insufficient_privilege then
                no := format('pid %s: %s owns the queue and may not send it: grant pg_signal_backend to %2$s', target,
                             quote_ident(current_user));
            end;
        end if;
        perform act_end(action, batch, jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('id', 'pid ' || target,
            'state', case when done then case verb when 'cancel query' then 'told to stop' else 'told to end' end end,
            'why', case when not done then coalesce(no, format('pid %s has ended already', target)) end))));
    end if;
    return (select b.rows from audit_batch b where b.action = send_signal.action and b.batch = send_signal.batch);
end $$;
comment on function send_signal(uuid, int, text, int, jsonb, text, text) is 'For signal_backend: sends "cancel query" '
    'or "end session" to a process unless refused names a reason or the caller may not do that, and records the '
    'outcome. A repeated call returns the stored answer';

create or replace function signal_backend(action uuid, batch int, wish jsonb, reason text default null)
returns table (id text, state text, why text, cursor text, n bigint)
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    act    text := wish ->> 'act';
    s      jsonb := wish -> 'shown';
    verb   text := case act when 'cancel' then 'cancel query' when 'terminate' then 'end session' end;
    target text := 'pid ' || (s ->> 'pid');
    a      pg_stat_activity;
    no     text;
    answer jsonb;
begin
    if verb is null or s ->> 'pid' is null then
        raise 'a signal needs {"act": "cancel" or "terminate", "shown": {"pid": ...}}' using errcode = 'QT007';
    end if;
    select * into a from pg_stat_activity x where x.pid = (s ->> 'pid')::int;
    no := case when not found then target || ' has ended already'
               when a.pid in (pg_backend_pid(), (s ->> 'own')::int) then target || ' is a connection of this program'
               when a.backend_start is distinct from (s ->> 'start')::timestamptz then target
               || ' is another session by now'
               when act = 'cancel' and (a.state is distinct from 'active'
                                        or a.query_start is distinct from (s ->> 'query')::timestamptz)
                   then format('the statement of %s is over', target)
               when a.xact_start is distinct from (s ->> 'xact')::timestamptz then
               format('the transaction of %s is over', target)
               when act = 'terminate' and a.state = 'active' and s ->> 'state' <> 'active'
                   then target || ' goes on: it runs a statement by now' end;
    if batch is null then
        answer := jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('id', target, 'why', no,
            'state', case when no is null then case act when 'cancel' then 'told to stop' else 'told to end' end end)));
    else
        answer := send_signal(action, batch, verb, (s ->> 'pid')::int,
                              s - 'own' || jsonb_build_object('who', wish -> 'who'), reason, no);
    end if;
    return query select r ->> 'id', r ->> 'state', r ->> 'why', null::text, 1::bigint
    from jsonb_array_elements(answer) r;
end $$;
comment on function signal_backend(uuid, int, jsonb, text) is 'Ends a statement ({"act": "cancel"}) or a session '
    '("terminate") if it is unchanged since it was shown ({"shown": {pid, start, state, xact, query}}). The process is '
    'left alone if its pid belongs to another session now, if its statement or transaction is over, or if it was idle '
    'and works again. Batch NULL only looks';
