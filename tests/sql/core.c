/* See core.h. The words of the stories are SQL functions in a schema of their own, "t". */
#include "tests/sql/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/sql.h"

enum { CROWD = 20 };

static const char words_ask[] =
    "create schema if not exists t;"
    "create table t.held (n bigint generated always as identity, node text, name text, lease "
    "bigint,"
    " version int, seq bigint, id uuid, queue text, try int, max_tries int, lease_until "
    "timestamptz);"
    "create function t.push(queue text, names text, priority int default 5, delay interval default "
    "null)"
    " returns bigint language sql as $$"
    " select count(*) from regexp_split_to_table($2, ',') with ordinality x (name, o), lateral"
    "  push($1, json_build_object('name', name), '', $3, null, $4) $$;"
    "create function t.many(queue text, prefix text, n int, priority int default 5)"
    " returns bigint language sql as $$"
    " select count(*) from (select array_agg($1) q, array_agg(json_build_object('name', $2 || "
    "i)::text"
    "  order by i) p, array_agg($4) o from generate_series(1, $3) i) z,"
    " push_many(null, q, null, o, null, null, null, null, null, null, p) $$;"
    "create function t.claim(node text, n int default 1, timeout interval default null,"
    " queues text[] default null, start boolean default true) returns text language plpgsql as $$"
    " declare r text; begin with c as (select * from claim(node, n, timeout, queues, start) with"
    "  ordinality), i as (insert into t.held (node, name, lease, version, seq, id, queue, try, "
    "max_tries,"
    "  lease_until) select $1, payload->>'name', lease, version, seq, id, c.queue, try, max_tries,"
    "  lease_until from c order by ordinality) select string_agg(payload->>'name', ',' order by"
    "  ordinality) into r from c; return coalesce(r, ''); end $$;"
    "create view t.last as select distinct on (node, name) * from t.held order by node, name, n "
    "desc;";

static const char words_answer[] =
    "create function t.done(node text, names text default null) returns text language plpgsql as $$"
    " declare r text; h record; begin select array_agg(lease order by n) l, array_agg(version "
    "order by"
    "  n) v, array_agg(seq order by n) s into h from t.last x where x.node = $1 and ($2 is null or "
    "name ="
    "  any(string_to_array($2, ','))); select string_agg(outcome, ',' order by ordinality) into r "
    "from"
    "  complete($1, h.l, h.v, h.s, null::timestamptz[], null::bytea[]) with ordinality;"
    " if $2 is null then delete from t.held x where x.node = $1; end if; return coalesce(r, ''); "
    "end $$;"
    "create function t.fail(node text, names text default null, error text default 'broken', "
    "retry_in"
    " interval default null, final boolean default null) returns text language plpgsql as $$"
    " declare r text; h record; begin select array_agg(lease order by n) l, array_agg(version "
    "order by"
    "  n) v, array_agg(seq order by n) s, array_agg($3) e, array_agg($4) i, array_agg($5) f into h "
    "from"
    "  t.last x where x.node = $1 and ($2 is null or name = any(string_to_array($2, ',')));"
    " select string_agg(outcome, ',' order by ordinality) into r from"
    "  fail($1, h.l, h.v, h.s, h.e, null, null, h.i, h.f) with ordinality; return coalesce(r, ''); "
    "end"
    " $$;"
    "create function t.back(node text, names text default null) returns text language plpgsql as $$"
    " declare r text; h record; begin select array_agg(lease order by n) l, array_agg(version "
    "order by"
    "  n) v, array_agg(seq order by n) s into h from t.last x where x.node = $1 and ($2 is null or "
    "name ="
    "  any(string_to_array($2, ','))); select string_agg(outcome, ',' order by ordinality) into r "
    "from"
    "  give_back($1, h.l, h.v, h.s) with ordinality; return coalesce(r, ''); end $$;"
    "create function t.extend(node text, names text default null, by interval default '1 min', "
    "started"
    " text default null) returns text language plpgsql as $$"
    " declare r text; h record; begin select array_agg(lease order by n) l, array_agg(version "
    "order by"
    "  n) v into h from (select min(n) as n, lease, version from t.last x where x.node = $1 and "
    "($2 is null"
    "  or name = any(string_to_array($2, ','))) group by 2, 3) z;"
    " select string_agg(outcome, ',' order by ordinality) into r from extend($1, h.l, h.v, $3, "
    "(select"
    "  array_agg(seq) from t.last x where x.node = $1 and name = any(string_to_array($4, ','))))"
    "  with ordinality; return coalesce(r, ''); end $$;"
    "create function t.step(holder text default 'test') returns text language sql as $$"
    " select case when active then concat_ws(' ', cut, promoted, stolen) else 'no' end from "
    "schedule($1)"
    " $$;"
    "create function t.names(where_state text, queue_name text default null) returns text language "
    "sql"
    " as $$ select coalesce(string_agg(payload->>'name', ',' order by priority, seq), '') from "
    "queue"
    " where state::text = $1 and ($2 is null or queue = $2) $$;"
    "create function t.finished() returns text language sql as $$"
    " select coalesce(string_agg((payload->>'name') || ' ' || state, ',' order by "
    "payload->>'name'), '')"
    " from history $$;";

/* Strangers: every answer by raw token, and all that it could have changed. */
static const char words_probe[] =
    "create function t.answers(node text, lease bigint, version int, seq bigint) returns text "
    "language sql"
    " as $$ select concat_ws(' ', (select outcome from complete($1, array[$2], array[$3], "
    "array[$4])),"
    " (select outcome from fail($1, array[$2], array[$3], array[$4], array['x'])),"
    " (select outcome from extend($1, array[$2], array[$3], interval '1 h')),"
    " (select outcome from give_back($1, array[$2], array[$3], array[$4]))) $$;"
    "create function t.picture() returns text language sql as $$ select md5(concat("
    " (select string_agg(q::text, ';' order by id) from queue q),"
    " (select string_agg(w::text, ';' order by lease) from work_queue w),"
    " (select count(*) from history), (select count(*) from attempt))) $$;";

/* The reader's way to sum counters, against count(*): one statement, so one snapshot. */
static const char words_truth[] =
    "create view t.counts as with f as (select * from fold order by fold desc limit 1), d as ("
    " select delta.* from delta, f where delta.xid >= pg_snapshot_xmax(f.snapshot) or delta.xid = "
    "f.xid"
    " or delta.xid = any(array(select pg_snapshot_xip(f.snapshot))))"
    " select queue, priority, sum(ready)::bigint ready, sum(scheduled)::bigint scheduled,"
    " sum(retry)::bigint retry, sum(failed)::bigint failed, coalesce(sum(pushed), 0)::bigint "
    "pushed, coalesce(sum(blocked), 0)::bigint blocked,"
    " coalesce(sum(completed), 0)::bigint completed, coalesce(sum(fails), 0)::bigint fails,"
    " coalesce(sum(retried), 0)::bigint retried, coalesce(sum(cancelled), 0)::bigint cancelled,"
    " coalesce(sum(lost), 0)::bigint lost from ("
    " select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried,"
    "  cancelled, lost, blocked from d where error_key is null union all"
    " select queue, priority, ready, scheduled, retry, failed, pushed, completed, fails, retried,"
    "  cancelled, lost, blocked from counter, f where counter.fold = f.fold and error_key is null) "
    "z group "
    "by 1, 2;"
    "create view t.groups as with f as (select * from fold where keep order by fold desc limit 1)"
    " select queue, error_key, sum(failed)::bigint failed from ("
    " select queue, error_key, failed from delta, f where error_key is not null and"
    "  (delta.xid >= pg_snapshot_xmax(f.snapshot) or delta.xid = f.xid"
    "   or delta.xid = any(array(select pg_snapshot_xip(f.snapshot)))) union all"
    " select queue, error_key, counter.failed from counter, f where counter.fold = f.fold and "
    "error_key"
    "  is not null) z group by 1, 2 having sum(failed) <> 0;"
    "create function t.truth() returns text language sql as $$"
    " with r as (select queue, priority, count(*) filter (where state = 'ready') ready,"
    "  count(*) filter (where state = 'scheduled') scheduled, count(*) filter (where state = "
    "'retry')"
    "  retry, count(*) filter (where state = 'failed') failed, count(*) filter (where state = "
    "'blocked') blocked from queue group by 1, 2),"
    " g as (select queue, error_key, count(*) failed from queue where state = 'failed' group by 1, "
    "2)"
    " select concat_ws('; ',"
    "  (select 'counters: ' || string_agg(concat_ws(' ', queue, priority, c.ready, r.ready, "
    "c.scheduled,"
    "    r.scheduled, c.retry, r.retry, c.failed, r.failed, c.blocked, r.blocked), ', ') from "
    "t.counts c full join r "
    "using (queue,"
    "    priority) where (coalesce(c.ready, 0), coalesce(c.scheduled, 0), coalesce(c.retry, 0),"
    "    coalesce(c.failed, 0), coalesce(c.blocked, 0)) is distinct from (coalesce(r.ready, 0), "
    "coalesce(r.scheduled, 0),"
    "    coalesce(r.retry, 0), coalesce(r.failed, 0),"
    "    coalesce(r.blocked, 0))),"
    "  (select 'groups: ' || string_agg(concat_ws(' ', queue, error_key, x.failed, g.failed), ', ')"
    "    from t.groups x full join g using (queue, error_key) where x.failed is distinct from "
    "g.failed),"
    "  (select 'overview: ' || string_agg(concat_ws(' ', queue, o.ready, x.ready, o.running, "
    "x.running), ', ')"
    "    from overview() o full join (select queue, count(*) filter (where not runs) ready, "
    "count(*) filter"
    "    (where runs) running from (select q.queue, exists (select from work_queue w where w.queue "
    "= q.queue and"
    "    w.lock_key is not null and q.seq = any(w.seqs)) runs from queue q where state = 'ready') "
    "z group by 1) x"
    "    using (queue) where (coalesce(o.ready, 0), coalesce(o.running, 0)) is distinct from"
    "    (coalesce(x.ready, 0), coalesce(x.running, 0))),"
    "  (select 'in two leases: ' || string_agg(seq::text, ',') from (select queue, unnest(seqs) "
    "seq from"
    "    work_queue group by queue, seq having count(*) > 1) z),"
    "  (select 'finished twice: ' || string_agg(id::text, ',') from (select id from history group "
    "by id"
    "    having count(*) > 1) z),"
    "  (select 'finished and not: ' || string_agg(id::text, ',') from history join queue using "
    "(id)),"
    "  (select 'hidden leases: ' || count(*) from work_queue where lease not in (select lease from "
    "live)"
    "    having count(*) > 0),"
    "  (select 'over the limit: ' || string_agg(queue, ',') from (select c.queue from queue_config "
    "c join"
    "    work_queue w using (queue) group by 1 having sum(cardinality(seqs)) > max(max_running)) "
    "z)) $$;";

static void
load_words(PGconn *conn)
{
    pg_run(conn, "%s", words_ask);
    pg_run(conn, "%s", words_answer);
    pg_run(conn, "%s", words_probe);
    pg_run(conn, "%s", words_truth);
}

void
core_load(PGconn *conn, const char *schema)
{
    const char *param[] = {schema};

    pg_run(conn, "begin");
    PGresult *res = PQexecParams(conn,
                                 "select set_config('queuetop.schema', $1, true),"
                                 " set_config('queuetop.viewer', 'queues_viewer', true),"
                                 " set_config('queuetop.worker', 'queues_worker', true),"
                                 " set_config('queuetop.operator', 'queues_operator', true)",
                                 1, NULL, param, NULL, NULL, 0);
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    PQclear(res);
    for (int i = 0; i < sql_core_n; i++)
        pg_run(conn, "%s", sql_core[i].text);
    pg_run(conn, "commit");
}

PGconn *
core_join(const char *database)
{
    PGconn *conn = pg_connect(pg_dsn(database));

    pg_run(conn, "set search_path = queues, pg_temp");
    return conn;
}

/* The schema is loaded once a program; the databases of its tests are copies. */
static void
make_template(void)
{
    PGconn *conn = pg_connect(pg_newdb("core"));

    core_load(conn, "queues");
    pg_run(conn, "set search_path = queues, pg_temp");
    load_words(conn);
    PQfinish(conn);
}

PGconn *
core_new(const char *database)
{
    PGconn *conn = pg_connect(pg_dsn("postgres"));

    if (pg_int(conn, "select count(*) from pg_database where datname = 'core'") == 0)
        make_template();
    pg_wait(conn, "select count(*) from pg_stat_activity where datname = 'core'", "0", 5000);
    PQfinish(conn);
    pg_copydb(database, "core");
    return core_join(database);
}

/* After a cut, a step waits a little before it cuts again. A test does not need that wait. The
 * scheduler also looks at every queue again when it takes over, and a slow machine (three seconds
 * without a step) must not cause that by chance. A test that wants a takeover sets the scheduler's
 * `until` to a time long ago. */
static void
unpace(PGconn *conn)
{
    pg_run(conn,
           "update tick set cut_at = cut_at - interval '1 s' where tick = (select max(tick) from"
           " tick); update lane set due = '-infinity' where due > '-infinity'; update scheduler "
           "set until = clock_timestamp() + interval '9 s' where holder = 'test' and until between "
           "clock_timestamp() - interval '1 min' and clock_timestamp() + interval '2 s'");
}

void
core_settle(PGconn *conn)
{
    int idle = 0; /* a step may find no more than what the next one is to look at */

    for (int i = 0; i < 100; i++) {
        unpace(conn);
        idle = pg_int(conn, "select cut + promoted + stolen from schedule('test')") == 0 ? idle + 1
                                                                                         : 0;
        if (idle == 2)
            return;
    }
    fail_msg("the scheduler finds no rest");
}

void
core_second(PGconn *conn)
{
    pg_run(conn, "update tick set mark_at = '-infinity' where tick = (select max(tick) from tick)");
}

void
core_ten_seconds(PGconn *conn)
{
    pg_run(conn,
           "update fold set at = at - interval '11 s', ms = 0 where fold >= (select max(fold) from "
           "fold where keep)");
}

void
core_expire(PGconn *conn, const char *node)
{
    pg_run(conn,
           "update work_queue set lock_timeout = now() - interval '1 ms' where lock_key = '%s'",
           node);
}

void
core_act_under_lock(PGconn *c, PGconn *d, PGconn *e, PGconn *f, const char *act)
{
    pg_send(e, "begin; select from scheduler where term = 0 for update"); /* the next in line */
    pg_wait_blocked(f, e);
    pg_send(c, act);
    pg_wait_blocked(f, c);
    pg_run(d, "commit");
    assert_string_equal(pg_finish(e), "");
    core_settle(e);
    expect(e, "1", "select count(*) from work_queue");
    pg_run(e, "commit");
    assert_string_equal(pg_finish(c), "");
    /* no take-over, which would look at every queue again */
    pg_run(c, "update scheduler set until = clock_timestamp() + interval '9 s' where term > 0");
}

void
core_replace(PGconn *conn, const char *function, const char *from, const char *to)
{
    pg_run(conn,
           "do $$ declare was text := pg_get_functiondef('%s'::regproc); will text; begin "
           "will := replace(was, '%s', '%s'); assert will <> was; execute will; end $$",
           function, from, to);
}

void
core_check(PGconn *conn)
{
    assert_string_equal(pg_value(conn, "select t.truth()"), "");
}

void
core_answer_any(PGconn *conn, const char *node)
{
    switch (pg_int(conn, "select (6 * random())::int")) {
    case 0:
        pg_run(conn, "select t.back('%s')", node);
        break;
    case 1:
        core_expire(conn, node);
        core_second(conn);
        break;
    case 2:
        pg_run(conn, "select t.fail('%s', retry_in => '5 ms')", node);
        break;
    default:
        pg_run(conn, "select t.done('%s')", node);
    }
    pg_run(conn, "delete from t.held where node = '%s'", node);
}

void
core_crowd(const char *database, int n, void (*work)(PGconn *conn, int i))
{
    pid_t child[CROWD];
    int status;

    assert_in_range(n, 1, CROWD);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) {
            setenv("CMOCKA_TEST_ABORT", "1",
                   1); /* a failure in here must not go on with other tests */
            work(core_join(database), i);
            _exit(0);
        }
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
}

int
core_setup(void **state)
{
    (void)state;
    pg_start(NULL);
    return 0;
}

int
core_teardown(void **state)
{
    (void)state;
    pg_stop();
    return 0;
}
