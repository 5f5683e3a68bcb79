/* The server that the tests start for themselves: it starts, restarts, and is gone when the program
 * that started it ends. */
#include "tests/harness.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server.h"

static void
server_answers(void **state)
{
    PGconn *conn = pg_connect(pg_newdb("one two"));

    (void)state;
    assert_string_equal(pg_value(conn, "SELECT current_database() || %d", 3), "one two3");
    assert_int_equal(pg_int(conn, "SELECT 42"), 42);
    assert_string_equal(pg_value(conn, "SELECT NULL"), "NULL");
    assert_string_equal(pg_try(conn, "SELECT 1/0"), "22012");
    assert_string_equal(pg_try(conn, "SELECT 1"), "");
    assert_string_equal(pg_value(conn, "SHOW fsync"), "off");
    PQfinish(conn);
}

static void
two_sessions_block(void **state)
{
    PGconn *a = pg_connect(pg_dsn("postgres")), *b = pg_connect(pg_dsn("postgres"));
    PGconn *watch = pg_connect(pg_dsn("postgres"));

    (void)state;
    pg_run(a, "CREATE TABLE t (x int); INSERT INTO t VALUES (1)");
    pg_run(a, "BEGIN; UPDATE t SET x = 2");
    pg_send(b, "UPDATE t SET x = x + 1");
    pg_wait_blocked(watch, b);
    pg_run(a, "COMMIT");
    assert_string_equal(pg_finish(b), "");
    pg_wait(watch, "SELECT x FROM t", "3", 1000);
    PQfinish(a);
    PQfinish(b);
    PQfinish(watch);
}

static void
server_restarts(void **state)
{
    PGconn *conn = pg_connect(pg_dsn("postgres"));
    int before = pg_pid();

    (void)state;
    pg_run(conn, "CREATE TABLE kept ()");
    pg_restart("immediate");
    assert_string_equal(pg_try(conn, "SELECT 1"), "08000");
    PQfinish(conn);
    assert_int_not_equal(pg_pid(), before);
    conn = pg_connect(pg_dsn("postgres"));
    pg_run(conn, "DROP TABLE kept"); /* what was committed before the crash is there */
    PQfinish(conn);
    pg_down("fast");
    assert_int_equal(PQping(pg_dsn("postgres")), PQPING_NO_RESPONSE);
    pg_up();
    conn = pg_connect(pg_dsn("postgres"));
    assert_int_equal(pg_int(conn, "SELECT 1"), 1);
    PQfinish(conn);
}

/* A copy of this program with an argument starts a server and is killed: nothing may stay. */
static void
killed_parent_leaves_nothing(void **state)
{
    char line[64] = "", dir[256] = "", *self = realpath("/proc/self/exe", NULL);
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pipe_fd[1], 1);
        close(pipe_fd[0]);
        close(pipe_fd[1]);
        execl(self, self, "child", (char *)NULL);
        _exit(127);
    }
    free(self);
    close(pipe_fd[1]);
    FILE *f = fdopen(pipe_fd[0], "r");
    assert_non_null(fgets(line, sizeof line, f));
    assert_non_null(fgets(dir, sizeof dir, f));
    dir[strcspn(dir, "\n")] = 0;
    int server = (int)strtol(line, NULL, 10);
    assert_true(server > 1 && kill(server, 0) == 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 6000 && (kill(server, 0) == 0 || access(dir, F_OK) == 0); i++)
        poll(NULL, 0, 10);
    assert_int_equal(kill(server, 0), -1);
    assert_int_equal(access(dir, F_OK), -1);
    fclose(f);
}

static int
be_killed(void)
{
    pg_start(NULL);
    printf("%d\n%s\n", pg_pid(), pg_host());
    fflush(stdout);
    return poll(NULL, 0, 60000);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_answers),
        cmocka_unit_test(two_sessions_block),
        cmocka_unit_test(server_restarts),
        cmocka_unit_test(killed_parent_leaves_nothing),
    };

    (void)argv;
    if (argc > 1)
        return be_killed();
    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
