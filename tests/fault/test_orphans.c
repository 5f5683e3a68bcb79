/*
 * A worker that is killed without a word takes its commands along, and the commands' own children
 * too: their lease is somebody else's soon.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 60000, END_MS = 60000 /* left alone they never end: they wait at a gate */ };

static char dsn[400], pids[300], gate[300];
static PGconn *conn;

static int
set_up(void **state)
{
    pg_group_start(state);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("orphans"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    conn = pg_connect(dsn);
    snprintf(pids, sizeof pids, "%s/pids", getenv("TMPDIR"));
    snprintf(gate, sizeof gate, "%s/gate", getenv("TMPDIR"));
    return mkfifo(gate, 0600);
}

static int
tear_down(void **state)
{
    unlink(gate);
    PQfinish(conn);
    return pg_group_stop(state);
}

/* The first line of a file; "" = there is none. */
static const char *
first_line(const char *path)
{
    static char line[400];
    FILE *f = fopen(path, "re");

    *line = 0;
    if (f && !fgets(line, sizeof line, f))
        *line = 0;
    if (f)
        fclose(f);
    return line;
}

/* A command whose child reads from a pipe that nobody writes to; says both. */
static void
start(struct proc *w, pid_t both[2])
{
    char *end = NULL;

    unlink(pids);
    pg_run(conn, "select queues.push('q', max_tries => 1)");
    proc_queuetop(w, NULL,
                  "-d \"%s\" work -- sh -c 'cat <%s & echo $$ $! >%s.new; mv %s.new %s; "
                  "wait'",
                  dsn, gate, pids, pids, pids);
    both[1] = 0;
    for (int64_t until = clock_ms() + WAIT_MS; both[1] == 0 && clock_ms() < until;) {
        both[0] = (pid_t)strtol(first_line(pids), &end, 10);
        both[1] = (pid_t)strtol(end, NULL, 10);
    }
    assert_true(both[0] > 1 && both[1] > 1);
    unlink(pids);
    assert_true(proc_lives(both[0]) && proc_lives(both[1]));
}

static void
ends_soon(pid_t pid)
{
    int64_t end = clock_ms() + END_MS;

    while (proc_lives(pid))
        if (clock_ms() >= end) {
            kill(pid, SIGKILL);
            fail_msg("pid %d still lives", (int)pid);
        }
}

static void
a_killed_worker_leaves_nobody(void **state)
{
    struct proc w;
    pid_t both[2];

    (void)state;
    start(&w, both);
    kill(w.pid, SIGKILL);
    proc_wait(&w);
    proc_done(&w);
    ends_soon(both[0]);
    ends_soon(both[1]);
}

/* Sends the signals that a terminal or a supervisor sends to all processes of a worker, except the
 * command. */
static void
disturb_others(pid_t worker, pid_t command)
{
    char path[60], *end;
    int others = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)worker, (int)worker);
    for (const char *s = first_line(path); *s && *s != '\n'; s = *end == ' ' ? end + 1 : end) {
        pid_t pid = (pid_t)strtol(s, &end, 10);
        if (pid <= 1 || pid == command)
            continue;
        others++;
        kill(pid, SIGINT);
        kill(pid, SIGTERM);
    }
    assert_int_equal(others, 1);
}

/* The worker was asked to end, and is killed while it waits for its command. */
static void
nor_one_that_was_interrupted_before(void **state)
{
    struct proc w;
    pid_t both[2];

    (void)state;
    start(&w, both);
    disturb_others(w.pid, both[0]);
    kill(w.pid, SIGINT);
    proc_want(&w, "finishing 1");
    kill(w.pid, SIGKILL);
    proc_wait(&w);
    proc_done(&w);
    ends_soon(both[0]);
    ends_soon(both[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_worker_leaves_nobody),
        cmocka_unit_test(nor_one_that_was_interrupted_before),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
