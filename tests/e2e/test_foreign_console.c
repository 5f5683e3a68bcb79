/*
 * What the console says of queues that are not ours beside their rows: which numbers are estimates,
 * rows that row security may hide, rights that are missing, what a system can't do and how else it
 * is done, the word that the system itself has for a state; and a database among several that asks
 * for a password.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/harness.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

static char dsn[500];

/* A new database with the tables of a system. */
static PGconn *
begin(const char *fixture)
{
    static int databases;
    char name[100];

    snprintf(name, sizeof name, "%s_%d", fixture, ++databases);
    snprintf(dsn, sizeof dsn, "%s", pg_dsn(name));
    return pg_fixture(name, fixture);
}

/* The console; more options or connections end in NULL. */
static void
start(struct vt *vt, const char *one, const char *two, const char *three)
{
    const char *argv[] = {getenv("QUEUETOP"), "--interval", "200ms", one, two, three, NULL};

    vt_spawn(vt, 24, 100, argv, NULL);
}

static void
end(struct vt *vt)
{
    vt_keys(vt, "q");
    vt_ended_well(vt, 0);
    vt_done(vt);
}

/* Runs the program; both outputs must have `part`. */
static __attribute__((format(printf, 3, 4))) void
says(int code, const char *part, const char *fmt, ...)
{
    char *out, *err, *args;
    va_list ap;

    va_start(ap, fmt);
    assert_true(vasprintf(&args, fmt, ap) >= 0);
    va_end(ap);
    int got = proc_run("queues\n", &out, &err, "%s", args);
    char *both = xasprintf("%s%s", out, err);
    if (got != code || !strstr(both, part))
        fail_msg("%s: exit code %d, no \"%s\" in:\n%s", args, got, part, both);
    free(out);
    free(err);
    free(args);
    free(both);
}

/* --- estimates ------------------------------------------------------------------------------- */

/* A queue whose counts are estimates, and one whose counts are not. */
static const char guessing[] =
    "-- adapter: guess\n-- title: the guesser\n-- format: 2\n-- schema: public\n-- id-type: text\n"
    "-- name: detect\nselect 'public' as schema where to_regclass('public.guess') is not null\n"
    "-- name: queues\nselect unnest('{about,exact}'::text[]) as queue, null::boolean as paused\n"
    "-- name: counts\n"
    "select 'about' as queue, 0::bigint as scheduled, 1234::bigint as ready, 0::bigint as retry, "
    "7::bigint as running, 5::bigint as failed, 1::bigint as oldest_ms, true as approx "
    "union all select 'exact', 0, 21, 0, 0, 3, null, false\n"
    "-- name: counts_final\n"
    "select 'about' as queue, 9000::bigint as completed, null::bigint as cancelled, true as approx "
    "union all select 'exact', 40, null, false\n"
    "-- name: jobs\n-- params: queue states limit cursor\n"
    "select id, queue, '' as kind, 'ready' as state, 0 as tries, 1::bigint as created_ms, "
    "'' as error, id as cursor from {schema}.guess where ($1::text is null or queue = $1::text) "
    "and ($2::text[] is null or 'ready' = any($2::text[])) and $4::text is null "
    "limit $3::int\n"
    "-- name: job\n-- params: ids\nselect 1 where $1::text[] is null\n";

static const char *
line_with(const struct vt *vt, const char *text)
{
    int row, col;

    assert_true(vt_find(vt, text, &row, &col));
    return vt_row(vt, row);
}

static void
of_estimates(const char *file)
{
    struct vt vt;
    char *with = xasprintf("--adapter=%s", file);

    start(&vt, with, dsn, NULL);
    vt_want(&vt, "ready ~1,255  running ~7  failed ~8"); /* a sum with an estimate in it is one */
    vt_want(&vt, "completed ~9,040");
    vt_want(&vt, "~1,234");
    vt_settle(&vt, 100); /* the whole frame is there */
    assert_non_null(strstr(line_with(&vt, " exact "), " 21 "));
    assert_null(strstr(line_with(&vt, " exact "), "~"));
    assert_non_null(strstr(line_with(&vt, " about "), "~5"));
    vt_want(&vt, "; ~1,234 wait"); /* what stands out */
    vt_keys(&vt, "0");
    vt_want(&vt, "ready ~1,255");
    vt_want(&vt, "~1,234");
    vt_keys(&vt, "S");
    vt_want(&vt, "● open");
    vt_settle(&vt, 100);
    assert_non_null(strstr(line_with(&vt, "● open"), " ~1,255"));
    assert_non_null(strstr(line_with(&vt, "● open"), " ~8"));
    vt_keys(&vt, "esc 3");
    vt_want(&vt, "[failed ~8]");
    vt_keys(&vt, "2 / text:queue:about enter");
    vt_want(&vt, "1 of 2"); /* of those that were read: an estimate is no total */
    vt_keys(&vt, "C-u");
    end(&vt);
    free(with);
}

static void
estimates_are_marked(void **state)
{
    char *file = xasprintf("%s/guess.sql", getenv("TMPDIR"));
    PGconn *conn = pg_connect(pg_newdb("guess"));
    FILE *f = fopen(file, "w");

    (void)state;
    snprintf(dsn, sizeof dsn, "%s", pg_dsn("guess"));
    pg_run(conn, "create table guess (id text, queue text); insert into guess values "
                 "('a', 'about'), ('b', 'about'), ('c', 'exact')");
    assert_non_null(f);
    fputs(guessing, f);
    assert_int_equal(fclose(f), 0);
    of_estimates(file);
    says(0, "about  -       ~1234         ~0     ~0       ~7      ~5", "queues --adapter %s \"%s\"",
         file, dsn);
    says(0, "exact  -          21          0      0        0       3", "queues --adapter %s \"%s\"",
         file, dsn);
    says(0, "\"ready\": 1234, ", "queues --json --adapter %s \"%s\"", file, dsn);
    says(0, "\"approx\": true, \"failed_hour\": null, ",
         "queues --json --queue about --adapter %s \"%s\"", file, dsn);
    says(0, "\"approx\": false, ", "queues --json --queue exact --adapter %s \"%s\"", file, dsn);
    says(0, "\nabout,,1234,0,0,7,5,", "queues --csv --adapter %s \"%s\"", file, dsn);
    assert_int_equal(unlink(file), 0);
    free(file);
    PQfinish(conn);
}

/* A query that counts the finished jobs of this system takes very long. */
static const char slow[] =
    "-- adapter: slow\n-- title: the slow one\n-- format: 2\n-- schema: public\n-- id-type: text\n"
    "-- name: detect\nselect 'public' as schema where to_regclass('public.slow') is not null\n"
    "-- name: queues\nselect 'q' as queue, null::boolean as paused\n"
    "-- name: counts\n"
    "select 'q' as queue, 0::bigint as scheduled, count(*) as ready, 0::bigint as retry, "
    "0::bigint as running, 0::bigint as failed, null::bigint as oldest_ms from {schema}.slow\n"
    "-- name: counts_final\n-- cost: counts\n"
    "select 'q' as queue, 5::bigint as completed, null::bigint as cancelled from pg_sleep(3600)\n"
    "-- name: jobs\n-- params: queue states limit cursor\n"
    "select id, 'q' as queue, '' as kind, 'ready' as state, 0 as tries, 1::bigint as created_ms, "
    "'' as error, id as cursor from {schema}.slow where $1::text is null and $2::text[] is null "
    "and $4::text is null limit $3::int\n"
    "-- name: job\n-- params: ids\nselect 1 where $1::text[] is null\n";

/* A costly section that does not come to an end is given up; what is live goes on, and no session
 * of ours is left at it. */
static void
costly_sections_are_given_up(void **state)
{
    char *file = xasprintf("%s/slow.sql", getenv("TMPDIR"));
    char *with = xasprintf("--adapter=%s", file);
    PGconn *conn = pg_connect(pg_newdb("slow"));
    FILE *f = fopen(file, "w");
    struct vt vt;

    (void)state;
    snprintf(dsn, sizeof dsn, "%s", pg_dsn("slow"));
    pg_run(conn, "create table slow (id text); insert into slow values ('a')");
    assert_non_null(f);
    fputs(slow, f);
    assert_int_equal(fclose(f), 0);
    start(&vt, with, dsn, NULL);
    vt_want(&vt, "ready 1 "); /* before it was even begun */
    static const char asleep[] =
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    pg_wait(conn, asleep, "1", 5000);
    pg_wait(conn, asleep, "0", 10000);
    pg_run(conn, "insert into slow values ('b')");
    vt_want(&vt, "ready 2 ");
    vt_want(&vt, "● live");
    vt_want(&vt, "completed: too many to count");
    end(&vt);
    assert_int_equal(unlink(file), 0);
    free(file);
    free(with);
    PQfinish(conn);
}

/* --- rights ---------------------------------------------------------------------------------- */

static void
start_as(struct vt *vt, const char *user)
{
    char *conninfo = xasprintf("%s user=%s", dsn, user);

    start(vt, conninfo, NULL, NULL);
    free(conninfo);
}

/* Row security hides rows without an error: on the first screen, as a badge on the others, and in
 * the messages. */
static void
hidden_rows_are_said(void **state)
{
    static const char warning[] = "row security of table river_job applies to user shade";
    PGconn *conn = begin("river");
    struct vt vt;

    (void)state;
    pg_run(conn, "drop role if exists shade; create role shade login; grant select, update on all "
                 "tables in schema public to "
                 "shade; alter table river_job enable row level security");
    start_as(&vt, "shade");
    vt_want(&vt, warning);
    vt_want_row(&vt, 0, "▲ WARNING");
    vt_keys(&vt, "2");
    vt_want(&vt, "no job yet; row security of table river_job applies to user shade");
    vt_want_row(&vt, 0, "▲ WARNING");
    vt_keys(&vt, "3");
    vt_want(&vt, "no failed job; row security of table river_job");
    vt_keys(&vt, "8");
    vt_want(&vt, warning);
    vt_want(&vt, "jobs may be there that are not shown");
    vt_keys(&vt, "1");
    vt_want(&vt, warning); /* not only at the beginning */
    end(&vt);
    says(0, warning, "queues \"%s user=shade\"", dsn);
    pg_run(conn, "drop owned by shade; drop role shade");
    PQfinish(conn);
}

/* If a login lacks a right, the message names the table. */
static void
missing_rights_are_said(void **state)
{
    PGconn *conn = begin("river");
    struct vt vt;

    (void)state;
    pg_run(conn, "drop role if exists shade; create role shade login; grant select on all tables "
                 "in schema public to shade");
    start_as(&vt, "shade");
    vt_want(&vt, "look only: user shade may only look: changing needs the right to update");
    vt_want_row(&vt, 0, "READ-ONLY");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 15");
    vt_keys(&vt, "r");
    vt_want(&vt, "user shade may only look");
    vt_keys(&vt, "8");
    vt_want(&vt, "user shade may only look: changing needs the right to update");
    end(&vt);
    pg_run(conn, "revoke select on river_job from shade");
    start_as(&vt, "shade");
    vt_want(&vt, "user shade may not read table river_job: grant select on it");
    vt_keys(&vt, "8");
    vt_want(&vt, "user shade may not read table river_job: grant select on it");
    end(&vt);
    says(3, "user shade may not read table river_job: grant select on it",
         "requeue --id 1 --yes \"%s user=shade\"", dsn);
    pg_run(conn, "drop owned by shade; drop role shade");
    PQfinish(conn);
}

/* --- what it can't do, what it calls things -------------------------------------------------- */

static void
ways_out_are_said(void **state)
{
    PGconn *conn = begin("pgmq");
    struct vt vt;

    (void)state;
    start(&vt, dsn, NULL, NULL);
    vt_want(&vt, "orders");
    vt_keys(&vt, "P");
    vt_want(&vt, "purge: pgmq has no call for it: delete rows of a_QUEUE by archived_at");
    vt_keys(&vt, "h");
    vt_want(&vt, "keeps no audit and no times of nodes");
    vt_keys(&vt, "p");
    vt_want(&vt, "pause: its readers are stopped in their own programs");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of ");
    vt_keys(&vt, "c");
    vt_want(&vt,
            "cancel: no reader asks whether its message is still wanted: archive it (discard)");
    vt_keys(&vt, "a");
    vt_want(&vt, "not possible now"); /* this comes last */
    vt_keys(&vt, "G");
    vt_want(&vt, "cancel: no reader asks whether its message");
    vt_want(&vt, "priority: messages are read in the order of their times");
    vt_keys(&vt, "esc /"); /* only the fields that the system can filter by */
    vt_want_row(&vt, 23, "Tab  state:  queue:  age>  age<  tries>=  id:  payload~  payload.");
    vt_keys(&vt, "text:no");
    vt_gone(&vt, "Tab  ");
    vt_keys(&vt, "esc");
    end(&vt);
    says(3, "delete rows of a_QUEUE by archived_at", "purge --older-than 1d --yes \"%s\"", dsn);
    PQfinish(conn);
}

static void
own_words_are_shown(void **state)
{
    PGconn *conn = begin("river");
    struct vt vt;

    (void)state;
    start(&vt, dsn, NULL, NULL);
    vt_want(&vt, "mail");
    vt_keys(&vt, "2 / text:id:10 enter");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "enter");
    vt_want(&vt, "× failed (discarded)");
    vt_keys(&vt, "esc / C-u text:id:6 enter");
    vt_want(&vt, "host2_2");
    vt_keys(&vt, "enter");
    vt_want(&vt, "▲ running, but without a worker"); /* the same word is not said twice */
    end(&vt);
    says(0, "\"state\": \"failed\", \"raw_state\": \"discarded\"", "job 10 --json \"%s\"", dsn);
    PQfinish(conn);
    conn = begin("tasks_table");
    says(0, "\"raw_state\": \"in_progress\"", "job 3 --json \"%s\"", dsn);
    PQfinish(conn);
}

/* --- long ids -------------------------------------------------------------------------------- */

/* Ends the console's sessions in this database, and lets no new one in. */
static void
shut_out(PGconn *conn)
{
    char *name = xstrdup(PQdb(conn));
    PGconn *admin = pg_connect(pg_dsn("postgres"));

    pg_run(admin, "alter database %s allow_connections false", name);
    pg_run(admin,
           "select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s' and "
           "application_name like 'queuetop%%'",
           name);
    PQfinish(admin);
    free(name);
}

/* The ids of pg-boss have the name of the queue in front. The preview of such a job is asked for
 * once: without a connection the last answer stays on the screen. The question names the whole id.
 */
static void
long_ids_are_whole(void **state)
{
    static const char queue[] = "notifications.customer.reports";
    static const char uuid[] = "00000000-0000-4000-8000-0000000000f1";
    const char *argv[] = {getenv("QUEUETOP"), dsn, NULL};
    PGconn *conn = begin("pgboss");
    char *id = xasprintf("%s:%s", queue, uuid);
    char *filter = xasprintf("2 / text:queue:%s enter", queue);
    struct vt vt;

    (void)state;
    pg_run(conn, "insert into pgboss.queue (name) values ('%s')", queue);
    pg_run(conn, "insert into pgboss.job (name, id, data) values ('%s', '%s', '{\"to\": \"far\"}')",
           queue, uuid);
    start(&vt, dsn, NULL, NULL);
    vt_want(&vt, "mail-dead");
    vt_keys(&vt, filter);
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "c");
    vt_want(&vt, id);
    vt_keys(&vt, "esc");
    end(&vt);
    vt_spawn(&vt, 45, 140, argv, NULL);
    vt_want(&vt, "mail-dead");
    vt_keys(&vt, filter);
    vt_want(&vt, "\"to\": \"far\"");
    shut_out(conn);
    vt_want_row(&vt, 0, "reconnecting");
    vt_settle(&vt, 300); /* longer than the rest before a preview is asked for */
    assert_non_null(line_with(&vt, "\"to\": \"far\""));
    end(&vt);
    free(filter);
    free(id);
    PQfinish(conn);
}

/* --- passwords ------------------------------------------------------------------------------- */

/* Adds a line at the beginning of pg_hba.conf; NULL restores the file. */
static void
let_in(PGconn *conn, const char *line)
{
    static char *before;
    char *path = strdup(pg_value(conn, "show hba_file"));
    FILE *f = fopen(path, before ? "w" : "r+");

    assert_non_null(f);
    if (!before) {
        before = xcalloc(1, 20000);
        assert_true(fread(before, 1, 19999, f) > 0);
        rewind(f);
    }
    fprintf(f, "%s%s", line ? line : "", before);
    assert_int_equal(fclose(f), 0);
    free(path);
    pg_run(conn, "select pg_reload_conf()");
    if (!line) {
        free(before);
        before = NULL;
    }
}

/* A password is refused while it is being changed, and accepted again later: nobody has to type it
 * a second time. */
static void
a_password_is_right_again(void **state)
{
    PGconn *conn = begin("river");
    struct vt vt;

    (void)state;
    pg_run(conn, "set password_encryption = 'scram-sha-256'; create role keeper login password "
                 "'open sesame'; grant all on all tables in schema public to keeper");
    let_in(conn, "local all keeper scram-sha-256\n");
    char *locked = xasprintf("%s user=keeper", dsn);
    unsetenv("PGPASSWORD");
    setenv("PGPASSFILE", "/nowhere", 1);
    start(&vt, locked, NULL, NULL);
    vt_want(&vt, "Password");
    vt_type(&vt, "open sesame\n");
    vt_want(&vt, "mail");
    pg_run(conn, "alter role keeper password 'another'");
    pg_run(conn, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'keeper'");
    vt_want(&vt, "the server refuses this password");
    vt_want(&vt, "Password");
    pg_run(conn, "alter role keeper password 'open sesame'");
    vt_gone(&vt, "Password");
    vt_want(&vt, "live");
    end(&vt);
    let_in(conn, NULL);
    pg_run(conn, "drop owned by keeper; drop role keeper");
    free(locked);
    PQfinish(conn);
}

/* -W, answered at the terminal; what is typed is not shown, and ^C leaves a terminal with an echo.
 */
static void
a_password_is_asked_first(void **state)
{
    PGconn *conn = begin("river");
    const char *argv[] = {getenv("QUEUETOP"), "queues", "-W",         "-U", "keeper",   "-h",
                          PQhost(conn),       "-p",     PQport(conn), "-d", PQdb(conn), NULL};
    struct vt vt;

    (void)state;
    pg_run(conn, "set password_encryption = 'scram-sha-256'; create role keeper login password "
                 "'open sesame'; grant all on all tables in schema public to keeper");
    let_in(conn, "local all keeper scram-sha-256\n");
    unsetenv("PGPASSWORD");
    setenv("PGPASSFILE", "/nowhere", 1);
    vt_spawn(&vt, 24, 100, argv, NULL);
    vt_want(&vt, "Password:");
    vt_type(&vt, "wrong\025open sesamé\177e\n");
    vt_want(&vt, "mail");
    assert_int_equal(vt_exit_status(&vt), 0);
    assert_null(memmem(vt.raw, vt.raw_len, "sesam", 5));
    vt_done(&vt);
    vt_spawn(&vt, 24, 100, argv, NULL);
    vt_want(&vt, "Password:");
    vt_type(&vt, "half\003");
    vt_want(&vt, "no password was given");
    assert_int_equal(vt_exit_status(&vt), 2);
    vt_done(&vt);
    proc_check(2, NULL, "-W asks at a terminal", "queues -W -d nothing");
    let_in(conn, NULL);
    pg_run(conn, "drop owned by keeper; drop role keeper");
    PQfinish(conn);
}

static void
one_asks_for_a_password(void **state)
{
    PGconn *conn = begin("tasks_table");
    char *open = strdup(dsn), *locked;
    struct vt vt;

    (void)state;
    PQfinish(conn);
    conn = begin("river");
    pg_run(conn, "set password_encryption = 'scram-sha-256'; create role keeper login password "
                 "'open sesame'; grant all on all tables in schema public to keeper");
    let_in(conn, "local all keeper scram-sha-256\n");
    locked = xasprintf("%s user=keeper", dsn);
    unsetenv("PGPASSWORD");
    setenv("PGPASSFILE", "/nowhere", 1);

    start(&vt, open, locked, NULL);
    vt_want(&vt, "Password of river_"); /* which of them */
    vt_type(&vt, "wrong\n");
    vt_want(&vt, "the server refuses this password for user keeper");
    vt_want(&vt, "Password of river_"); /* and it can be typed again */
    vt_keys(&vt, "esc");
    vt_want(&vt, "no password: there is no data");
    vt_want(&vt, "tasks"); /* the other one goes on */
    vt_want(&vt, "1 unreachable");
    vt_keys(&vt, "S");
    vt_want(&vt, "× unreachable");
    vt_keys(&vt, "j enter");
    vt_want_row(&vt, 0, "2/2");
    vt_keys(&vt, ":");
    vt_type(&vt, "reconnect\n");
    vt_want(&vt, "Password of river_");
    vt_type(&vt, "open sesame\n");
    vt_gone(&vt, "Password of");
    vt_want(&vt, "mail");
    vt_keys(&vt, "0");
    vt_want(&vt, "tasks");
    vt_want(&vt, "mail");
    vt_gone(&vt, "unreachable");
    end(&vt);

    /* without a screen nobody is asked: the ways are named */
    says(4, ".pgpass", "--plain \"%s\"", locked);
    says(2, "--plain speaks to one database", "--plain \"%s\" \"%s\"", open, locked);
    setenv("PGPASSWORD", "open sesame", 1);
    says(0, "mail", "--plain \"%s\"", locked);
    unsetenv("PGPASSWORD");
    let_in(conn, NULL);
    pg_run(conn, "drop owned by keeper; drop role keeper");
    free(open);
    free(locked);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_marked),      cmocka_unit_test(costly_sections_are_given_up),
        cmocka_unit_test(hidden_rows_are_said),      cmocka_unit_test(missing_rights_are_said),
        cmocka_unit_test(ways_out_are_said),         cmocka_unit_test(own_words_are_shown),
        cmocka_unit_test(a_password_is_asked_first), cmocka_unit_test(one_asks_for_a_password),
        cmocka_unit_test(a_password_is_right_again), cmocka_unit_test(long_ids_are_whole),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
