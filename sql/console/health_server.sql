-- Database health in one row: connections of the server, sessions that work and wait in this database, totals since the
-- server's statistics began (rates are differences of two answers), replication, transaction ids, and what this login
-- can see. Times in ms since 1970, NULL if this login may not see them.
with a as materialized (
    select pid, backend_type, state, wait_event_type, query_start, usesysid, datname = current_database() as here
    from pg_stat_activity
), act as (
    select (count(*) filter (where usesysid is not null
                             and coalesce(backend_type, 'client backend') = 'client backend'))::int as connections,
           (count(*) filter (where here and backend_type = 'client backend' and state = 'active'
                             and pid <> pg_backend_pid()))::int as active,
           (count(*) filter (where here and state like 'idle in transaction%'))::int as idle_in_txn,
           (count(*) filter (where here and wait_event_type = 'Lock'))::int as blocked,
           (count(*) filter (where backend_type = 'autovacuum worker'))::int as workers,
           (count(*) filter (where backend_type is null and usesysid is not null))::int as hidden,
           min(query_start) filter (where here and backend_type = 'client backend' and state = 'active'
                                    and pid <> pg_backend_pid()) as longest
    from a
), lsn as (
    select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end as at
), rep as (
    select count(*) filter (where r.state is distinct from 'backup')::int as standbys,
           bool_or(r.state is null) as veiled, (extract(epoch from max(replay_lag)) * 1000)::bigint as lag_ms,
           max(l.at - r.replay_lsn)::bigint as lag_bytes
    from lsn l, pg_stat_replication r
), xids as (
    select age(datfrozenxid) as xid_age, datname from pg_database order by 1 desc limit 1
)
select current_setting('max_connections')::int as max_connections, connections, active, idle_in_txn, blocked, hidden,
       (extract(epoch from longest) * 1000)::bigint as longest_ms,
       d.blks_hit, d.blks_read, (l.at - '0/0'::pg_lsn)::bigint as wal_bytes, r.standbys, r.lag_bytes,
       case when not pg_is_in_recovery() then case when r.standbys > 0 and not r.veiled then coalesce(r.lag_ms, 0) end
            when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
            else (extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000)::bigint end as lag_ms,
       pg_is_in_recovery() as standby,
       f.xid_age::bigint as xid_age, f.datname::text as xid_database,
       current_setting('autovacuum_freeze_max_age')::bigint as freeze_max,
       current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean as autovacuum,
       workers, current_setting('autovacuum_max_workers')::int as max_workers,
       pg_has_role('pg_read_all_stats', 'usage') as sees_all, pg_has_role('pg_signal_backend', 'usage') as signals_all,
       session_user::text as login
from act, lsn l, rep r, xids f, pg_stat_database d
where d.datname = current_database()
