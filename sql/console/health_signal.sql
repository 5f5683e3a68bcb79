-- Ends a statement ("act": "cancel") or a session ("terminate") if it is unchanged since it was shown: the same
-- process, started at the same time, in the same statement or transaction, and not one that was idle and works again.
-- $1 = {"act", "shown"}, shown = guard of health_sessions.sql. $2 = the batch; NULL only looks. Returns one row: state,
-- or why the process was left alone.
with w as (
    select $1::jsonb ->> 'act' as act, $1::jsonb -> 'shown' as s
), t as materialized (
    select w.act, (w.s ->> 'pid')::int as pid,
           case when a.pid is null then format('pid %s has ended already', w.s ->> 'pid')
                when a.pid in (pg_backend_pid(),
                               (w.s ->> 'own')::int) then format('pid %s is a connection of this program', a.pid)
                when a.backend_start is distinct from (w.s ->> 'start')::timestamptz
                    then format('pid %s is another session by now', a.pid)
                when w.act = 'cancel' and (a.state is distinct from 'active'
                                           or a.query_start is distinct from (w.s ->> 'query')::timestamptz)
                    then format('the statement of pid %s is over', a.pid)
                when a.xact_start is distinct from (w.s ->> 'xact')::timestamptz then
                format('the transaction of pid %s is over', a.pid)
                when w.act = 'terminate' and a.state = 'active' and w.s ->> 'state' <> 'active'
                    then format('pid %s goes on: it runs a statement by now', a.pid) end as why
    from w left join pg_stat_activity a on a.pid = (w.s ->> 'pid')::int
), d as materialized (
    select t.*, case when t.why is null and $2::int is not null
                     then case t.act when 'cancel' then pg_cancel_backend(t.pid)
                               when 'terminate' then pg_terminate_backend(t.pid) end
                     else t.why is null end as done
    from t
)
select 'pid ' || d.pid as id,
       case when d.done then case d.act when 'cancel' then 'told to stop' else 'told to end' end end as state,
       case when not d.done then coalesce(d.why, format('pid %s has ended already', d.pid)) end as why,
       null::text as cursor, 1::bigint as n
from d
