-- Transactions of this database, the one that holds vacuum back most first: sessions, prepared transactions,
-- replication slots.
-- held: how many transaction ids back the oldest rows are that the transaction may still see (NULL: it holds nothing
-- back). A vacuum holds nothing back, an analyze does. A writer in another database does too, because every snapshot
-- taken here reaches back to it. A slot's catalog_xmin keeps only rows of the system's own tables.
-- blocked_by: pids, 0 = a prepared transaction; only for the 20 that wait longest, because the answer stops the lock
-- manager for a moment.
-- kind place: the session holds the lock of a worker that waits for a push (48_wake), and none of its statements is one
-- of a worker. The number is that of slot_class(), which a database without our schema does not have.
-- holds_turn: it holds the scheduler's row (scheduler_lock), so nothing is scheduled before its transaction ends.
-- waitstart is read through json: PostgreSQL 13 has no such column, and then the start of the query is used.
-- guard: what a signal checks again (health_signal.sql). deny: why this login may not send one.
with me as (
    select oid, rolsuper from pg_roles where rolname = current_user
), v as materialized (
    select pid from pg_stat_progress_vacuum
), a as materialized (
    select *, wait_event_type = 'Lock' as waiting, datname <> current_database() as elsewhere,
           row_number() over (partition by wait_event_type = 'Lock' order by query_start) as nth
    from pg_stat_activity
    where pid <> pg_backend_pid() and backend_type <> 'parallel worker'
), w as materialized (
    select l.pid, min((to_jsonb(l) ->> 'waitstart')::timestamptz) as since from pg_locks l
    where not l.granted and exists (select from a where a.waiting) group by l.pid
), b as materialized (
    select l.pid from pg_locks l join a using (pid)
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted and l.objsubid = 2
      and l.classid::bigint between 1364481111 and 1364481127 and l.database = (select oid from pg_database
              where datname = current_database())
      and a.application_name not like 'queuetop%' and a.query <> '<insufficient privilege>'
      and a.query !~
      '[.](claim|claim_or_wait|schedule_or_wait|complete|complete_and_claim|extend|fail|give_back|keep_only'
      '|backlog|node_start|node_beat|node_sleep)[(]'
), s as (
    select 'pid ' || a.pid as id, case when a.pid in (select pid from b) then 'place'
                                       else case a.backend_type when 'client backend' then 'session'
                                                 when 'autovacuum worker' then 'autovacuum'
               when 'walsender' then 'walsender' else 'background' end end as kind,
           a.pid, a.usename::text as "user",
           coalesce(nullif(a.application_name, ''),
                    case a.backend_type when 'client backend' then '' when 'autovacuum worker' then 'autovacuum'
               else a.backend_type end) as app, coalesce(host(a.client_addr), 'local') as client,
           coalesce(a.state, a.backend_type) as state,
           (extract(epoch from a.xact_start) * 1000)::bigint as xact_ms,
           (extract(epoch from case when a.waiting then coalesce(w.since, a.query_start)
                                    when a.state = 'active' then a.query_start
                                    else a.state_change end) * 1000)::bigint as since_ms,
           case when v.pid is not null then null when a.elsewhere then age(a.backend_xid)
                else greatest(age(a.backend_xmin), age(a.backend_xid)) end::bigint as held,
           case when a.elsewhere then format('(in database %s) ', a.datname) else '' end ||
           left(a.query, 4000) as query,
           case when a.wait_event_type is not null and a.state = 'active' then a.wait_event_type || ': '
                || a.wait_event end as waits,
           case when a.waiting and a.nth <= 20 then
               array_to_string(array(select distinct p from unnest(pg_blocking_pids(a.pid)) p order by p), ' ') end
               as blocked_by,
           a.query like 'autovacuum:%(to prevent wraparound)' and a.backend_type = 'autovacuum worker' as wraparound,
           exists (select from pg_locks l
                   where l.pid = a.pid and l.locktype = 'advisory' and l.mode = 'ShareLock' and l.granted
                     and l.objsubid = 2 and l.classid::bigint = 1364481129
                     and l.database = (select oid from pg_database where datname = current_database())) as holds_turn,
           json_build_object('pid', a.pid, 'start', a.backend_start, 'state', a.state, 'xact', a.xact_start,
                             'query', a.query_start, 'own', pg_backend_pid())::text as guard,
           case when a.usesysid is null and not me.rolsuper then 'only a superuser may signal a process of the server'
                when t.rolsuper and not me.rolsuper then
                format('user %s is a superuser: only a superuser may signal it', a.usename)
                when not pg_has_role(a.usesysid, 'usage') and not pg_has_role('pg_signal_backend', 'usage')
                    then format('it is a session of %s: that needs the role pg_signal_backend', a.usename) end as deny
    from me, a left join pg_roles t on t.oid = a.usesysid left join v on v.pid = a.pid left join w on w.pid = a.pid
    where (not a.elsewhere or a.elsewhere is null and a.backend_type = 'walsender'
           or a.backend_xid is not null and a.xact_start < now() - interval '1 min')
      and (a.xact_start is not null or a.backend_xmin is not null or a.backend_xid is not null
           or a.pid in (select pid from b))
    union all
    select 'prepared ' || gid, 'prepared', null, owner::text, gid, '', 'prepared',
           (extract(epoch from prepared) * 1000)::bigint,
           (extract(epoch from prepared) * 1000)::bigint, age(transaction)::bigint,
           'rollback prepared ' || quote_literal(gid),
           null, null, false, false, null,
           'a prepared transaction has no process: commit prepared or rollback prepared ends '
                                    'it'
    from pg_prepared_xacts where database = current_database()
    union all
    select 'slot ' || slot_name, 'slot', active_pid, '', slot_name::text, '',
           case when wal_status = 'lost' then 'lost slot' when active then 'active slot' else 'unread slot' end,
           null, null, age(xmin)::bigint,
           format('keeps %s of WAL; select pg_drop_replication_slot(%L)',
                  coalesce(pg_size_pretty(case when pg_is_in_recovery()
               then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - restart_lsn), 'nothing'), slot_name),
           null, null, false, false, null,
           'a replication slot has no transaction: its reader must catch up, or the slot be '
                                    'dropped'
    from pg_replication_slots
    where (xmin is not null or catalog_xmin is not null or not active)
      and coalesce(database, current_database()) = current_database()
)
select * from s order by held desc nulls last, xact_ms nulls last, id limit 200
