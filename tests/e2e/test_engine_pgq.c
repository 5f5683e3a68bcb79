/*
 * PgQ's adapter against PgQ's own SQL, out of Debian's package: events, ticks, a consumer that
 * takes a batch and is lost, events that wait for a retry. Its functions are its library; what
 * queuetop does to one clone they do to another.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/e2e/console.h"
#include "tests/e2e/engine.h"

/* PgQ's SQL; the caller frees. The part in PL/pgSQL is enough: no library has to be where the
 * server looks for one. */
static char *
pgq_sql(void)
{
    char *pattern = xasprintf("%s/pgq-*/*/usr/share/postgresql/*/contrib/pgq_pl_only.sql",
                              getenv("ENGINES") ? getenv("ENGINES") : "");
    char *text = NULL;
    size_t size = 0;
    glob_t found;
    int nothing = glob(pattern, 0, NULL, &found);

    free(pattern);
    if (nothing) {
        engine_dir("pgq", "pgq"); /* is not there: says why */
        skip();
    }
    FILE *f = fopen(found.gl_pathv[found.gl_pathc - 1], "re");
    assert_non_null(f);
    assert_true(getdelim(&text, &size, 0, f) > 0);
    fclose(f);
    globfree(&found);
    return text;
}

/* A tick after each step, as pgqd makes them. */
static void
tick(PGconn *c)
{
    pg_run(c, "select pgq.ticker()");
}

static PGconn *
begin(const char *name)
{
    char *sql = pgq_sql();
    PGconn *c = pg_connect(pg_newdb(name));

    pg_run(c, "%s", sql);
    free(sql);
    pg_run(c, "select pgq.create_queue('events')");
    pg_run(c, "select pgq.set_queue_config('events', 'ticker_max_lag', '0 s')");
    pg_run(c, "select pgq.set_queue_config('events', 'ticker_idle_period', '0 s')");
    pg_run(c, "select pgq.register_consumer('events', 'billing')");
    pg_run(c,
           "select pgq.insert_event('events', 'order', 'id=' || i) from generate_series(1, 10) i");
    tick(c);
    pg_run(c, "select pgq.next_batch('events', 'billing')");
    pg_run(c, "select pgq.event_retry((select sub_batch from pgq.subscription), ev_id, 7200) from "
              "pgq.get_batch_events((select sub_batch from pgq.subscription)) where ev_data in "
              "('id=1', 'id=2', 'id=3')");
    pg_run(c, "select pgq.finish_batch((select sub_batch from pgq.subscription))");
    pg_run(c,
           "select pgq.insert_event('events', 'order', 'id=' || i) from generate_series(11, 15) i");
    tick(c);
    pg_run(c, "select pgq.next_batch('events', 'billing')"); /* and the consumer is gone */
    return c;
}

static const char *
job(PGconn *c, const char *data)
{
    return pg_value(c, "select ev_owner || '/' || ev_id from pgq.retry_queue where ev_data = '%s'",
                    data);
}

static void
looks(const char *db, PGconn *c)
{
    char *out;

    engine_queuetop(db, 0, &out, "queues --json");
    engine_has(out, "\"retry\": 3, \"running\": 5");
    engine_queuetop(db, 0, &out, "jobs --json -s retry --limit 1");
    engine_has(out, "\"node\": \"billing\"");
    engine_queuetop(db, 0, &out, "job --json %s", job(c, "id=2"));
    engine_has(out, "\"payload_bytes\": 4, \"body_base64\": \"aWQ9Mg==\"");
    engine_queuetop(db, 0, &out, "nodes --json");
    engine_has(out, "\"billing\"");
    engine_queuetop(db, 0, &out, "leases --json");
    engine_has(out, "\"jobs\": 5");
}

static void
acts(const char *db, PGconn *c)
{
    engine_queuetop(db, 0, NULL, "requeue -y --id %s", job(c, "id=1"));
    engine_queuetop(db, 0, NULL, "reschedule -y --id %s 5h", job(c, "id=2"));
    engine_queuetop(db, 0, NULL, "delete -y --id %s", job(c, "id=3"));
    engine_queuetop(db, 0, NULL, "pause -y events");
}

/* PgQ has a call for the pause only; the rest is what its own functions find afterwards. */
static void
does_what_pgq_does(void **state)
{
    (void)state;
    PGconn *c = begin("q");
    looks("q", c);
    PQfinish(c);
    pg_copydb("qa", "q");
    pg_copydb("qb", "q");
    PGconn *a = pg_connect(pg_dsn("qa")), *b = pg_connect(pg_dsn("qb"));
    acts("qa", a);
    pg_run(b, "select pgq.set_queue_config('events', 'ticker_paused', 'true')");
    engine_same("qa", "qb", "pgq.queue:queue_id pgq.subscription:sub_id");
    assert_int_equal(pg_int(a, "select count(*) from pgq.tick"),
                     pg_int(b, "select count(*) from pgq.tick"));
    pg_run(a, "select pgq.insert_event('events', 'order', 'id=16')");
    pg_run(a, "select pgq.ticker()");
    assert_int_equal(pg_int(a, "select count(*) from pgq.tick"),
                     pg_int(b, "select count(*) from pgq.tick"));
    engine_queuetop("qa", 0, NULL, "resume -y events");
    pg_run(b, "select pgq.set_queue_config('events', 'ticker_paused', 'false')");
    engine_same("qa", "qb", "pgq.queue:queue_id");

    assert_int_equal(pg_int(a, "select pgq.maint_retry_events()"), 1);
    pg_run(a, "select pgq.finish_batch((select sub_batch from pgq.subscription))");
    tick(a);
    pg_run(a, "select pgq.next_batch('events', 'billing')");
    assert_string_equal(
        pg_value(a, "select string_agg(ev_data || ' ' || coalesce(ev_retry, 0), ', ' order "
                    "by ev_id) from pgq.get_batch_events((select sub_batch from "
                    "pgq.subscription))"),
        "id=1 1, id=16 0");
    assert_string_equal(pg_value(a, "select string_agg(ev_data || ' ' || round(extract(epoch from "
                                    "ev_retry_after - now()) / 3600), ' ') from pgq.retry_queue"),
                        "id=2 5");
    PQfinish(a);
    PQfinish(b);
}

/* The same by hand. */
static void
acts_in_the_console(void **state)
{
    struct vt vt;

    (void)state;
    PGconn *c = begin("k");
    const struct engine_step steps[] = {
        {job(c, "id=1"),
         "r", {"1 job → ready", "unofficial: PgQ has no call for this"},
         "y",            "requeue: 1 job ready" },
        {job(c, "id=3"),
         "D", {"1 job → deleted", "unofficial: PgQ has no call for this"},
         "text:1 enter", "delete: 1 job deleted"},
    };
    engine_console("k", &vt);
    engine_counts(&vt, "events", "~0 ~5 ~0 ~3");
    engine_steps(&vt, steps, sizeof steps / sizeof *steps);
    engine_counts(&vt, "events", "~1 ~5 ~0 ~1");
    vt_keys(&vt, "p");
    vt_want(&vt, "Pause queue: events");
    vt_keys(&vt, "enter");
    vt_want(&vt, "as the system's own: set_queue_config(ticker_paused); batches that are cut");
    vt_keys(&vt, "y");
    vt_want(&vt, "pause: 1 queue paused");
    assert_string_equal(pg_value(c, "select queue_ticker_paused from pgq.queue"), "t");
    vt_want(&vt, "‖ events"); /* the table has been read again */
    vt_keys(&vt, "p");
    vt_want(&vt, "events goes on");
    vt_keys(&vt, "y");
    vt_want(&vt, "resume: 1 queue resumed");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    assert_string_equal(pg_value(c, "select queue_ticker_paused from pgq.queue"), "f");
    assert_int_equal(pg_int(c, "select pgq.maint_retry_events()"), 1);
    assert_string_equal(pg_value(c, "select string_agg(ev_data, ' ') from pgq.retry_queue"),
                        "id=2");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_what_pgq_does),
        cmocka_unit_test(acts_in_the_console),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
