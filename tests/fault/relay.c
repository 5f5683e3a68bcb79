/*
 * The proxy: see relay.h.
 */
#include "tests/fault/relay.h"

#include "tests/harness.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server.h"

enum { CHUNK = 65536 };
#define SOCKET_NAME ".s.PGSQL.5432"

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

/* Returns true if the bytes match the word. "a!b" matches if the bytes contain a and not b. A '*'
 * at the beginning is ignored. */
static bool
says(const char *data, ssize_t n, const char *word)
{
    word += *word == '*';
    size_t len = strcspn(word, "!");
    const char *not = word[len] ? word + len + 1 : NULL;

    return memmem(data, (size_t)n, word, len) &&
           !(not &&memmem(data, (size_t)n, not, strlen(not )));
}

/* Passes bytes between client and server. After it has dropped the answer to the word, *is_due is
 * cleared, unless the word begins with '*'. */
static void
serve(int client, int server, const char *word, bool *is_due, relay_change *change)
{
    static char data[CHUNK];
    static struct buf changed;
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
            if (i == 0 && n > 0 && *is_due && says(data, n, word))
                is_swallowing = true;
            if (i == 1 && n > 0 && is_swallowing) {
                /* ready for the next query: so the transaction is over */
                if (memmem(data, (size_t)n, "Z\0\0\0\5I", 6)) {
                    *is_due = *word == '*';
                    return;
                }
            } else if (i == 1 && n > 0 && change) {
                buf_clear(&changed);
                change(&changed, data, (size_t)n);
                if (!pass_on(client, changed.data, (ssize_t)changed.len))
                    return;
            } else if (n > 0 && !pass_on(p[1 - i].fd, data, n))
                return;
        }
    }
}

enum { STEPS = 20 /* a second */, ON_THE_WAY = 40, PORTION = 50000 };

struct pace { /* of a slow line; 0 = it is none */
    int bytes_per_s, latency_ms;
};

/* One direction of a slow line: what a twentieth of a second takes, and what is on its way. */
struct line {
    int from, to;
    char data[ON_THE_WAY + 1][PORTION];
    ssize_t n[ON_THE_WAY + 1]; /* 0 = nothing, -1 = the end */
};

/* Reads as much as this step has room for, and passes on what was read `late` steps ago. Returns
 * false at the end. */
static bool
move_on(struct line *l, int step, int late, size_t most)
{
    struct pollfd p = {.fd = l->from, .events = POLLIN};
    int in = step % (late + 1), out = (step + 1) % (late + 1);

    l->n[in] = 0;
    if (poll(&p, 1, 0) > 0) {
        ssize_t n = read(l->from, l->data[in], most);
        l->n[in] = n > 0 ? n : -1;
    }
    if (l->n[out] < 0)
        return false;
    return l->n[out] == 0 || pass_on(l->to, l->data[out], l->n[out]);
}

/* Both ways; each byte arrives `latency_ms` later. */
static void
serve_slowly(int client, int server, struct pace pace)
{
    static struct line up, down;
    size_t most = (size_t)(pace.bytes_per_s / STEPS);
    int late = pace.latency_ms * STEPS / 1000;

    up = (struct line){.from = client, .to = server};
    down = (struct line){.from = server, .to = client};
    most = most < PORTION ? most : PORTION;
    late = late < ON_THE_WAY ? late : ON_THE_WAY;
    for (int step = 0; move_on(&up, step, late, most) && move_on(&down, step, late, most); step++)
        poll(NULL, 0, 1000 / STEPS);
}

static _Noreturn void
relay(int listener, const char *target, const char *word, bool *is_due, relay_change *change,
      struct pace pace)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0)
            continue;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            int server = unix_socket(target, false);
            if (server >= 0 && pace.bytes_per_s > 0)
                serve_slowly(client, server, pace);
            else if (server >= 0)
                serve(client, server, word, is_due, change);
            _exit(0);
        }
        close(client);
    }
}

static void
start(struct relay *r, const char *word, relay_change *change)
{
    snprintf(r->dir, sizeof r->dir, "%s/proxy", getenv("TMPDIR"));
    assert_int_equal(mkdir(r->dir, 0700), 0);
    int listener = unix_socket(r->dir, true);
    assert_true(listener >= 0);
    bool *is_due = mmap(NULL, sizeof *is_due, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0); /* all connections together: once */
    assert_true(is_due != MAP_FAILED);
    *is_due = word != NULL;
    r->pid = fork();
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        relay(listener, pg_host(), word, is_due, change, (struct pace){0, 0});
    }
    munmap(is_due, sizeof *is_due);
    close(listener);
}

/* The slow line has small packets and small buffers. Otherwise the kernel's buffers would take all
 * bytes of a call at once, and the sender would see no progress for long. */
void
relay_start_slow(struct relay *r, int bytes_per_s, int latency_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int packet = 536, room = bytes_per_s < 8192 ? 8192 : bytes_per_s / STEPS;

    snprintf(r->dir, sizeof r->dir, "127.0.0.1");
    assert_true(listener >= 0);
    assert_int_equal(setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &packet, sizeof packet), 0);
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(bind(listener, (const void *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (void *)&at, &size), 0);
    r->port = ntohs(at.sin_port);
    r->pid = fork();
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        relay(listener, pg_host(), NULL, NULL, NULL, (struct pace){bytes_per_s, latency_ms});
    }
    close(listener);
}

void
relay_start(struct relay *r, const char *word)
{
    start(r, word, NULL);
}

void
relay_start_changing(struct relay *r, relay_change *change)
{
    start(r, NULL, change);
}

void
relay_stop(struct relay *r)
{
    char path[260];

    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    if (r->port)
        return;
    snprintf(path, sizeof path, "%s/" SOCKET_NAME, r->dir);
    unlink(path);
    rmdir(r->dir);
}

static void
tell_connections(const struct relay *r, int signo)
{
    char path[64], pids[400] = "", *end = pids;
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)r->pid, (int)r->pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    if (!fgets(pids, sizeof pids, f))
        *pids = 0;
    fclose(f);
    for (long pid; (pid = strtol(end, &end, 10)) > 0;)
        n += kill((pid_t)pid, signo) == 0; /* one may have ended meanwhile */
    assert_true(n > 0);
}

void
relay_silence(const struct relay *r)
{
    tell_connections(r, SIGSTOP);
}

void
relay_break(const struct relay *r)
{
    tell_connections(r, SIGKILL);
}
