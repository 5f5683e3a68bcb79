/*
 * The verbs that list: which columns, in which order, again and again. A script reads the exit code
 * and the bytes, a person the terminal.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "model/base/clock.h"
#include "tests/proc.h"
#include "tests/sql/core.h"
#include "tests/term.h"

static char dsn[500];

static int
setup(void **state)
{
    int code = core_setup(state);
    PGconn *conn = core_new("lists");

    snprintf(dsn, sizeof dsn, "%s", pg_dsn("lists"));
    pg_run(conn, "select push('mail', kind => 'k' || i, priority => i %% 3, payload => '{}') "
                 "from generate_series(1, 5) i");
    pg_run(conn, "select push('big', '{}') from generate_series(1, 1200)");
    pg_run(conn, "select push('big', '{}', kind => 'last', priority => 9)");
    core_settle(conn);
    PQfinish(conn);
    return code;
}

static void
columns_are_chosen(void **state)
{
    (void)state;
    proc_check(0, "queue,ready\nbig,1201\nmail,5\n", NULL,
               "queues --csv --columns queue,ready --sort queue -d \"%s\"", dsn);
    proc_check(0, "READY  QUEUE\n", NULL, "queues -C ready,queue -d \"%s\"", dsn);
    proc_check(0, "\"kind\": \"k1\", \"age\": ", NULL,
               "jobs --json --columns kind,AGE k1 -d \"%s\"", dsn); /* AGE is of the table alone */
    proc_check(0, "LEASE_UNTIL", NULL, "jobs --columns lease_until -n 1 -d \"%s\"", dsn);
}

static void
rows_are_sorted(void **state)
{
    (void)state;
    proc_check(0, "priority,kind\n2,k5\n2,k2\n1,k4\n1,k1\n", NULL,
               "jobs --csv --sort priority:desc --limit 4 -C priority,kind -q mail -d \"%s\"", dsn);
    proc_check(0, "queue\nbig\nmail\n", NULL, "queues --csv --sort ready:desc -C queue -d \"%s\"",
               dsn);
    /* the last of more jobs than a page has, and one row of them */
    proc_check(0, "kind\nlast\n", NULL, "jobs --csv --sort priority:desc -n 1 -C kind -d \"%s\"",
               dsn);
}

static void
wrong_words_name_the_right_ones(void **state)
{
    static const char *const verbs[] = {"queues",   "jobs",  "nodes",
                                        "failures", "audit", "schedules"};

    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        proc_check(2, NULL, "there is no column 'queu3'", "%s --columns queu3 -d nowhere",
                   verbs[i]);
        proc_check(2, NULL, "there is no column 'x'", "%s --sort x -d nowhere", verbs[i]);
    }
    proc_check(2, NULL, "did you mean ready? There are queue, ", "queues -C redy -d nowhere");
    proc_check(2, NULL, "--sort takes COLUMN", "queues --sort ready:up -d nowhere");
    proc_check(2, NULL, "there is no column 'jobx', did you mean jobs?", "leases -C jobx -d \"%s\"",
               dsn);
    proc_check(2, NULL, "--json and --csv exclude each other", "nodes --json --csv -d nowhere");
    proc_check(2, NULL, "too short", "nodes --watch 50ms -d nowhere");
    proc_check(2, NULL, "--limit 1 to 10000", "jobs --watch --limit 0 -d nowhere");
    proc_check(2, NULL, "tail reads no payloads", "tail payload~x -d nowhere");
    proc_check(2, NULL, "there is no column 'stat'", "tail -C stat -d nowhere");
    proc_check(2, NULL, "--limit 1 to 10000", "queues --watch --limit 10001 -d nowhere");
}

/* In a pipe a watched list prints its refreshes with an empty line between them; with --json one
 * object for each refresh. A signal ends the program with success. */
static void
a_pipe_is_watched(void **state)
{
    PGconn *conn = pg_connect(dsn);
    struct proc p, json;
    char *out;

    (void)state;
    proc_queuetop(&p, NULL, "queues -q mail -C queue,ready --watch 100ms -d \"%s\"", dsn);
    proc_queuetop(&json, NULL, "queues -q mail -C ready --watch=100ms --json -d \"%s\"", dsn);
    const struct {
        struct proc *p;
        const char *before, *after;
    } watched[] = {
        {&p,    "QUEUE  READY\nmail       5\n\nQUEUE", "mail       6\n"              },
        {&json, "\"rows\": [{\"source\": \"",          "\"ready\": 6}]}\n{\"at\": \""},
    };
    for (int i = 0; i < 2; i++)
        proc_want_output(watched[i].p, watched[i].before);
    pg_run(conn, "select queues.push('mail', '{}')");
    for (int i = 0; i < 2; i++)
        proc_want_output(watched[i].p, watched[i].after);
    kill(p.pid, SIGINT);
    assert_int_equal(proc_wait(&p), 0);
    out = proc_output(&p);
    assert_null(strchr(out, '\033'));
    free(out);
    proc_done(&p);
    proc_ends(&json);
    proc_done(&json);
    PQfinish(conn);
}

/* --- tail ------------------------------------------------------------------------------------- */

/* Starts the verb, and pushes jobs of the kind "begin" into the queue until the output shows
 * one. */
static void
follow(struct proc *p, PGconn *conn, const char *queue, const char *words)
{
    bool begun = false;

    proc_queuetop(p, NULL, "tail -d \"%s\" -q %s %s", pg_dsn(PQdb(conn)), queue, words);
    for (int ms = 0; !begun && ms < PROC_WAIT_MS; ms += 50) {
        pg_run(conn, "select queues.push('%s', '{}', kind => 'begin')", queue);
        poll(NULL, 0, 50);
        char *out = proc_output(p);
        begun = strstr(out, "begin") != NULL;
        free(out);
    }
    assert_true(begun);
}

/* How many lines have both words; no line is there twice. */
static int
lines_with(const char *text, const char *one, const char *other)
{
    int n = 0;

    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        char line[1000];
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        n += strstr(line, one) && strstr(line, other);
        assert_true(*line && !strstr(end, line));
    }
    return n;
}

/* The tail leaves out nothing, except for one job "begin": if its push began before the tail and
 * ended after its first count, it is counted and not shown. */
static void
leaves_nothing_out(const char *out)
{
    int n = lines_with(out, "left out", "");

    if (n > 1 || n != lines_with(out, "left out", "\"1 more pushed\""))
        fail_msg("%s", out);
}

/* Each thing that happens is a line; what a stranger wrote can't reach the terminal. */
static void
what_happens_is_followed(void **state)
{
    static const char *const steps[][2] = {
        {"select push('work', '{}', kind => E'\\x1b[31m\\nx,\"y', id => "
         "'01a1fd3f-5d66-7dab-ac0d-78c4a62b2131')",                 "\"what\": \"pushed\", \"queue\": \"work\", \"id\": "
         "\"01a1fd3f-5d66-7dab-ac0d-78c4a62b2131\", "
         "\"kind\": \"\\u001b[31m\\nx,\\\"y\", \"node\": null, \"error\": null"},
        {"select fail(E'n\\x1b', array[lease], array[version], array[seq], "
         "array[E'bo\\x1bom\\nat']) "
         "from claim(E'n\\x1b', 1, queues => '{work}')",            "\"what\": \"retried\""                                       },
        {"select fail('n1', array[lease], array[version], array[seq], array[E'bo\\x1bom\\nat'], "
         "final => '{t}') from claim('n1', 1, queues => '{work}')", "\"node\": null, \"error\": \"bo\\u001bom\""                  },
        {"select complete('n1', array[lease], array[version], array[seq]) "
         "from claim('n1', 1, queues => '{work}')",                 "\"what\": \"completed\""                                     },
        {"select from claim('n2', 1, queues => '{work}')",                   "\"node\": \"n2\""                                            },
        {"select cancel(gen_random_uuid(), 1, array(select id from queue where state = 'ready' "
         "order by seq desc limit 1))",                             "\"what\": \"cancelled\""                                     },
    };
    PGconn *conn = core_new("tail");
    struct proc p;

    (void)state;
    follow(&p, conn, "work", "--json");
    pg_run(conn, "select push('work') from generate_series(1, 9)");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        core_settle(conn);
        pg_run(conn, "%s", steps[i][0]);
        proc_want_output(&p, steps[i][1]);
    }
    kill(p.pid, SIGINT);
    assert_int_equal(proc_wait(&p), 0);
    char *out = proc_output(&p);
    assert_null(strchr(out, '\033'));
    leaves_nothing_out(out);
    assert_int_equal(lines_with(out, "\"pushed\"", "\"kind\": null"), 9);
    assert_int_equal(lines_with(out, "\"started\"", "\"work\""), 2);
    assert_int_equal(lines_with(out, "\"retried\"", ""), 1);
    assert_int_equal(lines_with(out, "\"failed\"", ""), 1);
    assert_int_equal(lines_with(out, "\"completed\"", ""), 1);
    free(out);
    proc_done(&p);
    PQfinish(conn);
}

/* Twenty thousand jobs at once: the tail prints as many lines as one query reads, and the number of
 * the rest. */
static void
a_burst_is_counted(void **state)
{
    PGconn *conn = core_new("burst");
    struct proc p;
    long left = 0;

    (void)state;
    follow(&p, conn, "many", "--csv --columns what,left_out,kind,id");
    pg_run(conn, "insert into queue (queue, payload) select 'many', '{}' "
                 "from generate_series(1, 20000)");
    long begun =
        strtol(pg_value(conn, "select count(*) from queue where kind = 'begin'"), NULL, 10);
    proc_want_output(&p, "left out,");
    kill(p.pid, SIGTERM);
    assert_int_equal(proc_wait(&p), 0);
    char *out = proc_output(&p);
    for (const char *at = out; (at = strstr(at, "left out,")); at++)
        left += strtol(at + strlen("left out,"), NULL, 10);
    int shown = lines_with(out, "pushed,,,", ""); /* and of the kind "begin" few are left out */
    assert_in_range(shown, 1900, 2000);
    assert_in_range(shown + left, 20000 - begun, 20000 + begun);
    free(out);
    proc_done(&p);
    PQfinish(conn);
}

/* Failures are red on a terminal; so many lines end it, and so does a reader that has enough. */
static void
a_tail_ends(void **state)
{
    PGconn *conn = core_new("ends");
    char script[900];
    const char *argv[] = {"bash", "-c", script, NULL}, *env[] = {"TERM=xterm", NULL};
    const char *words[] = {getenv("QUEUETOP"), "tail", "state:failed", "-n", "1", "-d",
                           pg_dsn("ends"),     NULL};
    struct proc p;
    struct vt vt;

    (void)state;
    vt_spawn(&vt, 12, 100, words, env);
    for (int i = 0; i < 900 && !vt_came(&vt, "no luck", 100); i++) {
        pg_run(conn, "select push('bad', '{}')");
        core_settle(conn);
        pg_run(conn, "select fail('n', array[lease], array[version], array[seq], "
                     "array['no luck'], final => '{t}') from claim('n', 1)");
    }
    assert_int_equal(vt_exit_status(&vt), 0);
    assert_non_null(strstr(vt.raw, "\033[31m2")); /* the year: the line, not its titles */
    assert_int_equal(vt.unknown, 0);
    vt_done(&vt);
    snprintf(script, sizeof script,
             "set -o pipefail; \"$QUEUETOP\" tail -q pipe -d \"%s\" | head -n 1", pg_dsn("ends"));
    proc_start(&p, argv, NULL);
    siginfo_t end = {0};
    for (int i = 0; i < 1800 && !end.si_pid; i++) {
        pg_run(conn, "select push('pipe', '{}')");
        poll(NULL, 0, 50);
        assert_int_equal(waitid(P_PID, (id_t)p.pid, &end, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    assert_int_equal(proc_wait(&p), 0);
    char *said = proc_errors(&p);
    assert_string_equal(said, "");
    free(said);
    proc_done(&p);
    PQfinish(conn);
}

/* head(1) closes the pipe early: this is no error of the verb. */
static void
a_reader_may_leave(void **state)
{
    static const char *const looks[] = {"jobs", "jobs --json", "queues --watch 100ms"};
    char script[700];
    const char *argv[] = {"bash", "-c", script, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct proc p;
        snprintf(script, sizeof script,
                 "set -o pipefail; \"$QUEUETOP\" %s -n 1000 -d \"%s\" | head -c 1", looks[i], dsn);
        proc_start(&p, argv, NULL);
        assert_int_equal(proc_wait(&p), 0);
        char *said = proc_errors(&p);
        assert_string_equal(said, "");
        free(said);
        proc_done(&p);
    }
    snprintf(script, sizeof script, "\"$QUEUETOP\" jobs -d \"%s\" >/dev/full", dsn);
    struct proc p;
    proc_start(&p, argv, NULL);
    assert_int_equal(proc_wait(&p), 5);
    proc_want(&p, "standard output: ");
    proc_done(&p);
}

/* The loss of the server is reported once; the refreshes continue when the server is back. */
static void
a_lost_server_is_waited_for(void **state)
{
    struct proc p;

    (void)state;
    proc_check(4, NULL, "", "queues --watch 100ms -d nowhere host=/nonexistent");
    proc_queuetop(&p, NULL, "nodes --watch 100ms --json -d \"%s\"", dsn);
    proc_want_output(&p, "\"rows\": []}\n");
    pg_down("fast");
    proc_want(&p, "trying again");
    pg_up();
    PGconn *conn = pg_connect(dsn);
    pg_run(conn, "select queues.node_start('back', gen_random_uuid(), 'host', 7, '1', 1, null, 2)");
    PQfinish(conn);
    proc_want_output(&p, "\"node\": \"back\"");
    char *said = proc_errors(&p), *first = strstr(said, "trying again");
    assert_null(strstr(first + 1, "trying again"));
    free(said);
    proc_ends(&p);
    proc_done(&p);
}

/* Each refresh is drawn over the one before: no line scrolls away, and nothing else is cleared. */
static void
a_terminal_is_drawn_over(void **state)
{
    PGconn *conn = pg_connect(dsn);
    struct vt vt;

    (void)state;
    const char *argv[] = {getenv("QUEUETOP"), "queues", "-C", "queue,ready", "--sort", "queue",
                          "--watch",          "100ms",  "-d", dsn,           NULL};
    vt_spawn(&vt, 12, 40, argv, NULL);
    vt_want_row(&vt, 2, "mail       6");
    pg_run(conn, "select queues.push('mail', '{}')");
    vt_want_row(&vt, 2, "mail       7");
    assert_string_equal(vt_row(&vt, 0), "QUEUE  READY");
    pg_run(conn, "select queues.push('mop', '{}')");
    vt_want_row(&vt, 3, "mop        1");
    assert_false(vt.in_alt_screen);
    vt_keys(&vt, "C-c");
    assert_int_equal(vt_exit_status(&vt), 0);
    assert_int_equal(vt.unknown, 0);
    vt_done(&vt);
    PQfinish(conn);
}

/* As bash asks: COMP_WORDS is the line up to the cursor. Gives the offers; the caller frees. */
static char *
complete(const char *words)
{
    char script[3000];
    struct proc p;
    const char *argv[] = {"bash", "-uc", script, NULL};

    snprintf(script, sizeof script,
             "PATH=${QUEUETOP%%/*}:$PATH; cd \"$TMPDIR\"; source <(queuetop completion bash)\n"
             "complete -p queuetop >&2\n"
             "COMP_WORDS=(queuetop %s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
             "_queuetop queuetop; [ ${#COMPREPLY[@]} = 0 ] || printf '%%s\\n' \"${COMPREPLY[@]}\"; "
             "[ ! -e evil ]",
             words);
    proc_start(&p, argv, NULL);
    int code = proc_wait(&p);
    char *out = proc_output(&p), *err = proc_errors(&p);
    if (code != 0 || strcmp(err, "complete -F _queuetop queuetop\n") != 0)
        fail_msg("%s: %d\n%s%s", words, code, out, err);
    free(err);
    proc_done(&p);
    return out;
}

/* Live names are given up after a second, which a busy machine may need longer than: ask again. */
static void
check_completion(const char *words, const char *offers)
{
    char *out = complete(words);

    for (int i = 0; *offers && !*out && i < 100; i++) {
        free(out);
        out = complete(words);
    }
    assert_string_equal(out, offers);
    free(out);
}

static void
a_shell_completes_the_line(void **state)
{
    PGconn *conn = core_new("names");
    char words[900];

    (void)state;
    pg_run(conn,
           "select push('mail in'), push('mails'), push('$(touch evil)'), push(E'mail\\x1b[2J')");
    pg_run(conn, "select schedule_set(gen_random_uuid(), 'nightly', '{\"cron\": \"@daily\", "
                 "\"queue\": \"mails\"}')");
    pg_run(conn, "select node_start('web-3', gen_random_uuid(), 'host', 7, '1', 1, null, 2)");
    core_settle(conn);
    PQfinish(conn);
    check_completion("pus", "push\n");
    check_completion("push --payload-", "--payload-file\n");
    check_completion("-d nowhere jobs --state fa", "failed\n");
    check_completion("push q --payload-file ''", "");
    check_completion("completion ''", "bash\nzsh\nfish\n");
    check_completion("nosuch ''", "");
    const struct {
        const char *words, *offers;
    } live[] = {
        {"queues -q mail", "mail\\ in\nmails\n"                       },
        {"pause ''",       "\\$\\(touch\\ evil\\)\nmail\\ in\nmails\n"},
        {"drain ''",       "web-3\n"                                  },
        {"cron show n",    "nightly\n"                                },
    };
    for (size_t i = 0; i < sizeof live / sizeof *live; i++) {
        snprintf(words, sizeof words, "-d '%s' %s", pg_dsn("names"), live[i].words);
        check_completion(words, live[i].offers);
    }
    check_completion("-d 'host=/nonexistent' pause ''", "");
    /* values that stand in the option's word, and as bash breaks that word */
    const struct {
        const char *before, *after, *offers;
    } inside[] = {
        {"'--dbname=",   "' queues --queue=mail",   "--queue=mail\\ in\n--queue=mails\n"},
        {"--dbname = '", "' queues --queue = mail", "mail\\ in\nmails\n"                },
        {"--dbname = '", "' cron show n",           "nightly\n"                         },
        {"'-d",          "' queues -qmails",        "-qmails\n"                         },
    };
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(words, sizeof words, "%s%s%s", inside[i].before, pg_dsn("names"), inside[i].after);
        check_completion(words, inside[i].offers);
    }
    check_completion("jobs --state = fa", "failed\n");
    check_completion("jobs --state =", "ready\nscheduled\nretry\nrunning\nfailed\ncompleted\n"
                                       "cancelled\nblocked\n");
    check_completion("jobs -sfa", "-sfailed\n");
}

/* With many queues the counters take long: they get their part of the time, and the lists of one
 * queue are read as often as before. Here each answer takes 1 s, which is one in 39 s. */
static void
a_tail_counts_no_more_than_it_may(void **state)
{
    PGconn *conn = core_new("many");
    struct proc p;

    (void)state;
    pg_run(conn, "alter database \"%s\" set track_functions = 'all'", PQdb(conn));
    pg_run(conn, "alter function queues.overview() rename to overview_fast");
    pg_run(conn,
           "create function queues.overview() returns table (queue text, scheduled bigint, ready "
           "bigint, retry bigint, running bigint, failed bigint, oldest timestamptz, pushed "
           "bigint, completed bigint, fails bigint, retried bigint, cancelled bigint, lost bigint, "
           "run_ms bigint, blocked bigint) language plpgsql stable as $$ begin perform "
           "pg_sleep(1); return query select * from queues.overview_fast(); end $$");
    int64_t start = clock_ms();
    follow(&p, conn, "one", "--json");
    for (int i = 0; i < 6; i++) { /* each is seen by a look of its own */
        char kind[20];
        snprintf(kind, sizeof kind, "\"look%d\"", i);
        pg_run(conn, "select push('one', kind => 'look%d')", i);
        proc_want_output(&p, kind);
    }
    kill(p.pid, SIGTERM);
    assert_int_equal(proc_wait(&p), 0);
    long most = 2 + (long)((clock_ms() - start) / 39000);
    pg_wait(conn, /* a session tells of its calls at its end */
            "select count(*) from pg_stat_activity where datname = current_database() and "
            "application_name = 'queuetop'",
            "0", PROC_WAIT_MS);
    assert_in_range(
        strtol(
            pg_value(conn, "select calls from pg_stat_user_functions where funcname = 'overview'"),
            NULL, 10),
        1, most);
    proc_done(&p);
    PQfinish(conn);
}

/* After a lost connection the tail continues where it stopped: it prints nothing twice, and prints
 * what happened meanwhile. */
static void
a_tail_goes_on(void **state)
{
    PGconn *conn = core_new("goes");
    struct proc p;

    (void)state;
    follow(&p, conn, "on", "--json");
    PQfinish(conn);
    pg_down("fast");
    proc_want(&p, "contact lost at ");
    pg_up();
    conn = core_join("goes");
    pg_run(conn, "select push('on', '{}', kind => 'after') from generate_series(1, 3)");
    proc_want_output(&p, "\"after\"");
    proc_want(&p, "there is contact again");
    kill(p.pid, SIGTERM);
    assert_int_equal(proc_wait(&p), 0);
    char *out = proc_output(&p);
    assert_int_equal(lines_with(out, "\"pushed\"", "\"after\""), 3);
    leaves_nothing_out(out);
    free(out);
    proc_done(&p);
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_chosen),
        cmocka_unit_test(rows_are_sorted),
        cmocka_unit_test(wrong_words_name_the_right_ones),
        cmocka_unit_test(a_pipe_is_watched),
        cmocka_unit_test(a_terminal_is_drawn_over),
        cmocka_unit_test(a_shell_completes_the_line),
        cmocka_unit_test(what_happens_is_followed),
        cmocka_unit_test(a_burst_is_counted),
        cmocka_unit_test(a_tail_ends),
        cmocka_unit_test(a_reader_may_leave),
        cmocka_unit_test(a_lost_server_is_waited_for),
        cmocka_unit_test(a_tail_counts_no_more_than_it_may),
        cmocka_unit_test(a_tail_goes_on),
    };

    return cmocka_run_group_tests_name("lists", tests, setup, core_teardown);
}
