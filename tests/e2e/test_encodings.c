/*
 * Databases in other encodings than UTF-8. In SQL_ASCII each text may hold any bytes: lists, JSON,
 * CSV, console, acts and workers take them, and what is shown is UTF-8. In LATIN1 the server
 * converts; what it can't hold is refused with a word, and stops nobody.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/text.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

#define BYTES "E'm\\374\\233l\\377'"

static char dsn[300];

static PGconn *
start(const char *name, const char *encoding)
{
    PGconn *conn = pg_connect(pg_dsn("postgres"));

    pg_run(conn, "create database %s encoding '%s' template template0 lc_collate 'C' lc_ctype 'C'",
           name, encoding);
    PQfinish(conn);
    snprintf(dsn, sizeof dsn, "%s", pg_dsn(name));
    assert_int_equal(proc_run(NULL, NULL, NULL, "install -d \"%s\"", dsn), 0);
    conn = pg_connect(dsn);
    assert_int_equal(PQsetClientEncoding(conn, encoding), 0);
    pg_run(conn, "set search_path = queues");
    return conn;
}

/* Such bytes in each text that somebody pushes, works or acts with. */
static void
any_bytes(PGconn *conn)
{
    pg_run(conn, "insert into queue (queue, kind, payload, unique_key, max_tries) values (" BYTES
                 ", " BYTES ", to_json(" BYTES "::text), " BYTES ", 1)");
    pg_run(conn, "insert into queue (queue, kind, body, payload_type) values (" BYTES ", 'second', "
                 "'\\xfffe', " BYTES ")");
    pg_run(conn, "create temp table held as select * from claim(" BYTES ", 1)");
    pg_run(conn, "select f.* from held h, fail(" BYTES ", array[h.lease], array[h.version], "
                 "array[h.seq], array[" BYTES "], array[" BYTES "], final => array[true]) f");
    pg_run(conn, "select node_start(" BYTES ", gen_random_uuid(), " BYTES ", 1, " BYTES
                 ", 1, array[" BYTES "], 4)");
    pg_run(conn, "select p.* from pause(gen_random_uuid(), 'other', " BYTES ") p");
    pg_run(conn, "select schedule_set(gen_random_uuid(), " BYTES
                 ", '{\"cron\": \"@daily\", \"queue\": \"later\"}')");
}

/* The verb's output, which must be UTF-8; the caller frees. */
static char *
list(const char *words)
{
    char *out, *err;
    int code = proc_run(NULL, &out, &err, "-d \"%s\" %s", dsn, words);

    if (code != 0 || !utf8_valid(out, strlen(out)))
        fail_msg("%s: %d: %s%s", words, code, out, err);
    free(err);
    return out;
}

static void
lists_show_any_bytes(void **state)
{
    static const char *const words[] = {
        "queues",       "queues --json", "queues --csv",       "jobs",
        "jobs --json",  "jobs --csv",    "jobs --csv --exact", "jobs --state failed --json",
        "nodes --json", "nodes --csv",   "failures",           "failures --json",
        "audit",        "audit --json",  "audit --csv",        "cron list"};
    PGconn *conn = start("lists", "SQL_ASCII");
    char verb[100];

    (void)state;
    any_bytes(conn);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *out = list(words[i]);
        if (!strstr(out, "m\uFFFD\uFFFDl\uFFFD"))
            fail_msg("%s: %s", words[i], out);
        free(out);
    }
    for (int json = 0; json < 2; json++) {
        snprintf(verb, sizeof verb, "job %s%s",
                 pg_value(conn, "select id from queue where state = 'failed'"),
                 json ? " --json" : "");
        char *out = list(verb);
        assert_non_null(strstr(out, "m\uFFFD\uFFFDl\uFFFD"));
        free(out);
    }
    PQfinish(conn);
}

/* A name that was typed in UTF-8 is found, one of any bytes is taken as it is. */
static void
workers_and_acts_take_any_bytes(void **state)
{
    PGconn *conn = start("works", "SQL_ASCII");

    (void)state;
    any_bytes(conn);
    assert_int_equal(
        proc_run(NULL, NULL, NULL, "-d \"%s\" push gr\u00fc\u00dfe --payload '\"\u20ac\"'", dsn),
        0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" pause m\374\233l\377 -y", dsn), 0);
    assert_string_equal(pg_value(conn, "select count(*) from queue_config where queue = " BYTES
                                       " and paused_at is not null"),
                        "1");
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" resume m\374\233l\377 -y", dsn), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" work --drain -- cat", dsn), 0);
    assert_string_equal(pg_value(conn,
                                 "select string_agg(convert_to(queue, 'SQL_ASCII')::text, ' ' "
                                 "order by queue) from history where state = 'completed'"),
                        "\\x6772c3bcc39f65 \\x6dfc9b6cff");
    char *out = list("jobs 'queue:gr\u00fc\u00dfe state:completed'");
    assert_non_null(strstr(out, "completed"));
    free(out);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" requeue -y --state failed", dsn), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" work --drain -- false", dsn), 0);
    PQfinish(conn);
}

static void
the_console_shows_any_bytes(void **state)
{
    static const char *const screens[] = {"2", "3", "4", "5", "6", "7", "8", "0", "1"};
    struct vt vt;
    const char *const argv[] = {getenv("QUEUETOP"), dsn, NULL};
    PGconn *conn = start("shows", "SQL_ASCII");

    (void)state;
    any_bytes(conn);
    vt_spawn(&vt, 24, 100, argv, NULL);
    vt_want(&vt, "m\uFFFD\uFFFDl\uFFFD");
    for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
        vt_keys(&vt, screens[i]);
        if (strchr("234561", *screens[i]))
            vt_want(&vt, "m\uFFFD\uFFFDl\uFFFD");
        vt_settle(&vt, 50);
    }
    vt_keys(&vt, "2 enter");
    vt_want(&vt, "PAYLOAD");
    vt_want(&vt, "\uFFFD");
    vt_keys(&vt, "esc q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    PQfinish(conn);
}

/* A push with a character that LATIN1 lacks fails. A job whose error output has such a character
 * still ends as failed. */
static void
another_encoding_is_converted(void **state)
{
    PGconn *conn = start("latin", "LATIN1");
    char *err;

    (void)state;
    assert_int_equal(
        proc_run(NULL, NULL, NULL, "-d \"%s\" push gr\u00fc\u00dfe --payload '\"\u00e9\"'", dsn),
        0);
    assert_string_equal(pg_value(conn, "select convert_to(queue, 'LATIN1') from queue"),
                        "\\x6772fcdf65");
    assert_int_equal(proc_run(NULL, NULL, &err, "-d \"%s\" push mail --payload '\"\u20ac\"'", dsn),
                     2);
    assert_null(strstr(err, "22P05"));
    assert_non_null(strstr(err, "has no equivalent in encoding"));
    free(err);
    assert_int_equal(
        proc_run(NULL, NULL, NULL, "-d \"%s\" push mail --payload 1 --max-tries 1", dsn), 0);
    assert_int_equal(proc_run(NULL, NULL, NULL,
                              "-d \"%s\" work --drain -- sh -c 'cat >&2; echo \u20ac >&2; exit 1'",
                              dsn),
                     0);
    assert_string_equal(pg_value(conn, "select state from queue where queue = 'mail'"), "failed");
    char *out = list("jobs --state failed --json");
    assert_non_null(strstr(out, "mail"));
    free(out);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_show_any_bytes),
        cmocka_unit_test(workers_and_acts_take_any_bytes),
        cmocka_unit_test(the_console_shows_any_bytes),
        cmocka_unit_test(another_encoding_is_converted),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
