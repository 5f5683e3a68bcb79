-- A database with problems, for the picture of the screen Database. It replaces the server's statistics with constants:
-- views with tables, and functions with expressions that the planner inlines. Use it only on a throwaway server, and as
-- the last thing there: afterwards no query of the statistics gets a true answer.
\set ON_ERROR_STOP on
\set QUIET on
set client_min_messages = warning;
set allow_system_table_mods = on;
create schema picture;

-- Linux gives no process a pid above 4194304: so the console's own session never has one of these, and no signal reaches
-- anybody.

create table picture.activity as select * from pg_stat_activity with no data;
insert into picture.activity (datname, pid, usename, application_name, backend_start, backend_type, state, wait_event_type, wait_event,
                              xact_start, query_start, state_change, backend_xid, backend_xmin, query, usesysid)
select current_database(), pid, usename, app, now() - interval '3 h', type, state, event_type, event, now() - xact, now() - since, now() - since,
       xid::text::xid, xmin::text::xid, query, case when usename is not null then (select oid from pg_roles where rolname = 'bob') end
from (values
    (9008123, 'etl', 'etl', 'client backend', 'idle in transaction', 'Client', 'ClientRead', interval '41 min', interval '40 min', 1204118, 1204118,
     e'select *\n  from queues.queue\n where run_after < now() for share'),
    (9009001, 'app', 'worker-3', 'client backend', 'active', null, null, '12 s', '12 s', null, 310, 'update queues.queue set payload = payload - ''note'''),
    (9009107, 'bob', 'psql', 'client backend', 'active', 'Lock', 'relation', '4 min', '4 min', 2210, 2210, 'alter table queues.queue add column note text'),
    (9009301, null, '', 'autovacuum worker', 'active', 'Timeout', 'VacuumDelay', '2 min 10 s', '2 min 10 s', null, 41,
     'autovacuum: VACUUM queues.history_20261121')) v (pid, usename, app, type, state, event_type, event, xact, since, xid, xmin, query);
insert into picture.activity (datname, pid, usename, application_name, backend_type, state, usesysid)
select current_database(), 9005000 + i, 'app', 'worker-' || i % 6, 'client backend', 'idle', 10 from generate_series(1, 35) i;
create or replace view pg_catalog.pg_stat_activity as select * from picture.activity;

create table picture.vacuum as select * from pg_stat_progress_vacuum with no data;
insert into picture.vacuum (pid, datname, relid, phase, heap_blks_total, heap_blks_scanned, heap_blks_vacuumed)
values (9009301, current_database(), 'queues.history_20261121'::regclass, 'scanning heap', 39680, 28173, 0);
create or replace view pg_catalog.pg_stat_progress_vacuum as select * from picture.vacuum;

create table picture.replication as select * from pg_stat_replication with no data;
insert into picture.replication (pid, application_name, state, replay_lsn, replay_lag) values (9004001, 'db2', 'streaming', pg_current_wal_lsn(), '0.4 s');
create or replace view pg_catalog.pg_stat_replication as select * from picture.replication;

create table picture.database as select * from pg_stat_database with no data;
insert into picture.database (datname, blks_hit, blks_read) values (current_database(), 99200, 800);
create or replace view pg_catalog.pg_stat_database as select * from picture.database;

create or replace function pg_catalog.age(xid) returns int language sql stable as
    $$ select case when $1 is null then null when $1::text::int < 10000 and $1::text::int > 3000 or $1::text::int in (41, 310, 2210) or $1::text::int > 1000000
                   then $1::text::int else 41220114 end $$;
create or replace function pg_catalog.pg_blocking_pids(int) returns int[] language sql stable as
    $$ select case when $1 = 9009107 then '{9008123}'::int[] else '{}'::int[] end $$;
create or replace function pg_catalog.pg_table_size(regclass) returns bigint language sql stable as
    $$ select case when $1::text = 'queues.queue' then 50331648 when $1::text like 'queues.history\_%' then 40632320
                   when $1::text like 'queues.attempt\_%' then 11010048 when $1::text = 'queues.delta' then 2097152
                   when $1::text = 'queues.audit' then 23068672 else 16384 end $$;
create or replace function pg_catalog.pg_indexes_size(regclass) returns bigint language sql stable as
    $$ select case when $1::text = 'queues.queue' then 12582912 when $1::text like 'queues.history\_%' then 9437184
                   when $1::text like 'queues.attempt\_%' then 1048576 else 16384 end $$;
create or replace function pg_catalog.pg_stat_get_live_tuples(oid) returns bigint language sql stable as
    $$ select case when $1::regclass::text = 'queues.queue' then 25012 when $1::regclass::text like 'queues.history\_%' then 51501
                   when $1::regclass::text like 'queues.attempt\_%' then 8120 when $1::regclass::text = 'queues.audit' then 91220
                   when $1::regclass::text = 'queues.delta' then 48 else 8 end::bigint $$;
create or replace function pg_catalog.pg_stat_get_dead_tuples(oid) returns bigint language sql stable as
    $$ select case when $1::regclass::text = 'queues.queue' then 11300 when $1::regclass::text like 'queues.history\_%' then 1140
                   when $1::regclass::text = 'queues.delta' then 2910 else 0 end::bigint $$;
create or replace function pg_catalog.pg_stat_get_tuples_updated(oid) returns bigint language sql stable as
    $$ select case when $1::regclass::text = 'queues.queue' then 200000 else 0 end::bigint $$;
create or replace function pg_catalog.pg_stat_get_tuples_hot_updated(oid) returns bigint language sql stable as
    $$ select case when $1::regclass::text = 'queues.queue' then 182000 else 0 end::bigint $$;
create or replace function pg_catalog.pg_stat_get_last_autovacuum_time(oid) returns timestamptz language sql stable as
    $$ select now() - case when $1::regclass::text = 'queues.queue' then interval '41 min' when $1::regclass::text = 'queues.audit' then '3 d'
                           when $1::regclass::text = 'queues.delta' then '1 min' else '6 min' end $$;
create or replace function pg_catalog.pg_stat_get_last_vacuum_time(oid) returns timestamptz language sql stable as
    $$ select null::timestamptz $$;
create or replace function pg_catalog.pg_stat_get_last_autoanalyze_time(oid) returns timestamptz language sql stable as
    $$ select now() - interval '12 min' $$;
create or replace function pg_catalog.pg_stat_get_last_analyze_time(oid) returns timestamptz language sql stable as
    $$ select null::timestamptz $$;

update pg_class set reltuples = case when relname = 'queue' then 36312 when relname like 'history%' then 52600 when relname like 'attempt%' then 8120 when relname = 'audit' then 91220 else 0 end
where relnamespace = 'queues'::regnamespace and relkind in ('r', 'p');
alter system set autovacuum_naptime = '20 d';
alter system set autovacuum = on;
select pg_reload_conf() \g /dev/null
