/*
 * Lost answers. Between program and server stands a proxy that passes everything on, until a
 * statement with a certain word has been carried out: then it breaks the connection in front of the
 * answer, once. What the program sends again must have happened exactly once.
 */
#include "tests/harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"

enum { WAIT_MS = 30000, CHUNK = 65536 };
#define SOCKET_NAME ".s.PGSQL.5432"

/* --- the proxy: a process of its own --- */

static int
unix_socket(const char *dir, bool is_server)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const struct sockaddr *at = (const void *)&addr;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s/" SOCKET_NAME, dir);

    assert_true(fd >= 0 && n > 0 && (size_t)n < sizeof addr.sun_path);
    if (is_server && (bind(fd, at, sizeof addr) || listen(fd, 8)))
        return -1;
    if (!is_server && connect(fd, at, sizeof addr)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool
pass_on(int to, const char *data, ssize_t n)
{
    for (ssize_t done = 0, k; done < n; done += k)
        if ((k = write(to, data + done, (size_t)(n - done))) <= 0)
            return false;
    return true;
}

/* "a!b": a is said, and b is not. */
static bool
says(const char *data, ssize_t n, const char *word)
{
    size_t len = strcspn(word, "!");
    const char *not = word[len] ? word + len + 1 : NULL;

    return memmem(data, (size_t)n, word, len) &&
           !(not &&memmem(data, (size_t)n, not, strlen(not )));
}

/* Passes bytes between the two; *word is cleared when its answer was swallowed. */
static void
serve(int client, int server, const char **word)
{
    static char data[CHUNK];
    bool is_swallowing = false;
    struct pollfd p[2] = {
        {.fd = client, .events = POLLIN},
        {.fd = server, .events = POLLIN}
    };

    for (;;) {
        if (poll(p, 2, -1) < 0)
            return;
        for (int i = 0; i < 2; i++) {
            ssize_t n = p[i].revents ? read(p[i].fd, data, sizeof data) : 0;
            if (p[i].revents && n <= 0)
                return;
            if (i == 0 && n > 0 && *word && says(data, n, *word))
                is_swallowing = true;
            if (i == 1 && n > 0 && is_swallowing) {
                /* ready for the next query: so the transaction is over */
                if (memmem(data, (size_t)n, "Z\0\0\0\5I", 6)) {
                    *word = NULL;
                    return;
                }
            } else if (n > 0 && !pass_on(p[1 - i].fd, data, n))
                return;
        }
    }
}

/* Connections one after the other: a worker has one. */
static _Noreturn void
proxy(int listener, const char *target, const char *word)
{
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int client = accept(listener, NULL, NULL), server = unix_socket(target, false);
        if (client >= 0 && server >= 0)
            serve(client, server, &word);
        if (client >= 0)
            close(client);
        if (server >= 0)
            close(server);
    }
}

struct place {
    char dsn[400]; /* through the proxy */
    char dir[200];
    PGconn *conn; /* past it */
    pid_t proxy;
};

static void
enter(struct place *p, const char *name, const char *word)
{
    char direct[400];

    snprintf(direct, sizeof direct, "%s", pg_newdb(name));
    p->conn = pg_connect(direct);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", direct), 0);
    snprintf(p->dir, sizeof p->dir, "%s/proxy", getenv("TMPDIR"));
    assert_int_equal(mkdir(p->dir, 0700), 0);
    snprintf(p->dsn, sizeof p->dsn, "host=%s user=postgres dbname=%s", p->dir, name);
    int listener = unix_socket(p->dir, true);
    assert_true(listener >= 0);
    p->proxy = fork();
    if (p->proxy == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        proxy(listener, pg_host(), word);
    }
    close(listener);
}

static void
leave(struct place *p)
{
    char path[260];

    PQfinish(p->conn);
    kill(p->proxy, SIGKILL);
    waitpid(p->proxy, NULL, 0);
    snprintf(path, sizeof path, "%s/" SOCKET_NAME, p->dir);
    unlink(path);
    rmdir(p->dir);
}

static void
check(const struct place *p, const char *sql, const char *expected)
{
    assert_string_equal(pg_value(p->conn, "%s", sql), expected);
}

/* --- the tests --- */

static void
a_push_whose_answer_was_lost_is_one_push(void **state)
{
    struct place p;
    char *out, *err;

    (void)state;
    enter(&p, "push", "push_many(");
    assert_int_equal(proc_run(NULL, &out, &err, "-d \"%s\" push q --payload 1", p.dsn), 0);
    assert_int_equal(strlen(out), 37);
    out[36] = 0;
    check(&p, "select count(*) from queues.queue", "1");
    check(&p, "select id from queues.queue", out);
    assert_null(strstr(err, "already"));
    free(out);
    free(err);
    leave(&p);
}

static void
a_completion_whose_answer_was_lost_is_sent_again(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "complete", ".complete_and_claim(");
    pg_run(p.conn, "select queues.push('q')");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- true", p.dsn);
    proc_want(&w, "perhaps it was done");
    check(&p, "select state::text || tries || count(*) over () from queues.history", "completed11");
    check(&p, "select count(*) from queues.attempt", "0");
    pg_run(p.conn, "select queues.push('q')");
    pg_wait(p.conn, "select count(*) from queues.history", "2", WAIT_MS);
    kill(w.pid, SIGTERM);
    assert_int_equal(proc_wait(&w), 0);
    proc_want(&w, "0 lost");
    proc_done(&w);
    leave(&p);
}

static void
a_failure_whose_answer_was_lost_is_one_failure(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "fail", ".fail(");
    pg_run(p.conn, "select queues.push('q')");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- sh -c 'echo no >&2; exit 1'", p.dsn);
    proc_want(&w, "perhaps it was done");
    check(&p, "select state::text || tries || error from queues.queue", "retry1no (exit status 1)");
    check(&p, "select count(*) from queues.attempt", "1");
    proc_ends(&w);
    leave(&p);
}

static void
a_claim_whose_answer_was_lost_costs_no_try(void **state)
{
    struct place p;
    struct proc w;

    (void)state;
    enter(&p, "claim", ".claim_or_wait(");
    pg_run(p.conn, "select queues.push('q', max_tries => 1)");
    proc_queuetop(&w, NULL, "-d \"%s\" work -- true", p.dsn);
    proc_want(&w, "gave back 1 job");
    pg_wait(p.conn, "select state::text || tries from queues.history", "completed1", WAIT_MS);
    check(&p, "select count(*) from queues.attempt", "0");
    proc_ends(&w);
    leave(&p);
}

/* A foreign queue knows no batch that is asked again: its guards make it harmless, and what can't
 * be told is said. */
static void
a_foreign_act_whose_answer_was_lost_is_told_as_such(void **state)
{
    struct place p;
    char *err;

    (void)state;
    enter(&p, "foreign", "update \"public\".tasks!rollback");
    pg_file(p.conn, "tests/adapters/seed_teti.sql");
    assert_int_equal(proc_run(NULL, NULL, &err,
                              "-d \"%s\" --adapter seed_teti requeue --state failed --yes", p.dsn),
                     6);
    check(&p, "select count(*) from tasks where status = 'pending'", "4");
    assert_non_null(strstr(err, "nothing changed, 2 jobs left alone: perhaps changed by the batch "
                                "whose answer was lost"));
    free(err);
    leave(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_whose_answer_was_lost_is_one_push),
        cmocka_unit_test(a_completion_whose_answer_was_lost_is_sent_again),
        cmocka_unit_test(a_failure_whose_answer_was_lost_is_one_failure),
        cmocka_unit_test(a_claim_whose_answer_was_lost_costs_no_try),
        cmocka_unit_test(a_foreign_act_whose_answer_was_lost_is_told_as_such),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
