/*
 * The verbs that list: which columns, in which order, again and again. A script reads the exit code
 * and the bytes, a person the terminal.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
}

/* A pipe: looks with an empty line between them, or one object each; a signal ends it well. */
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

/* A server that goes away is told once, and looked at again when it is back. */
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

/* Each look is drawn over the one before: no line scrolls away, and nothing else is cleared. */
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
        cmocka_unit_test(a_lost_server_is_waited_for),
    };

    return cmocka_run_group_tests_name("lists", tests, setup, core_teardown);
}
