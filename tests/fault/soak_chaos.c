/*
 * The processes of the soak and what is done to them: kill -9, SIGSTOP and SIGCONT, SIGTERM,
 * dropped sessions, a server that crashes; and the calm afterwards, in which all that is left must
 * drain.
 */
#include "tests/fault/soak.h"

#include "tests/harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/proc.h"
#include "tests/server.h"

enum kind { SCHEDULER, WORKER, CLAIMER, PUSHER, SAMPLER };
enum { ACTORS = 10, RESTART_MS = 3000, CALM_MS = 300000, END_MS = 60000 };

struct actor {
    enum kind kind;
    int n;          /* its number among all */
    int generation; /* how often it was started */
    bool calm;
    struct proc proc; /* of queuetop; the others have a pid only */
    pid_t pid;
    int64_t stopped_until; /* 0 = it runs */
};

static struct actor actors[ACTORS] = {
    {.kind = SCHEDULER}, {.kind = SCHEDULER}, {.kind = WORKER}, {.kind = WORKER}, {.kind = CLAIMER},
    {.kind = CLAIMER},   {.kind = CLAIMER},   {.kind = PUSHER}, {.kind = PUSHER}, {.kind = SAMPLER},
};

/* --- starting and ending --- */

static _Noreturn void
body(struct actor *a, struct soak *s)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    s->random = s->seed * 1000003 + (uint64_t)(a->n * 1000 + a->generation);
    if (a->kind == CLAIMER)
        soak_claimer(s, a->n, a->calm);
    if (a->kind == PUSHER)
        soak_pusher(s, a->n);
    soak_sampler(s);
}

static void
begin(struct actor *a, struct soak *s)
{
    a->generation++;
    a->stopped_until = 0;
    if (a->kind == SCHEDULER) {
        proc_queuetop(&a->proc, NULL, "-d \"%s\" schedule", s->dsn);
    } else if (a->kind == WORKER) {
        proc_queuetop(&a->proc, NULL,
                      "-d \"%s\" work --node w%d-%d --jobs %d --timeout 1500ms -- sh ./command",
                      s->dsn, a->n, a->generation, 2 + a->n % 2);
    } else {
        fflush(NULL);
        a->pid = fork();
        assert_true(a->pid >= 0);
        if (a->pid == 0)
            body(a, s);
        return;
    }
    a->pid = a->proc.pid;
}

/* Its end, once it has ended; false = it runs. */
static bool
has_ended(struct actor *a)
{
    int status;

    if (a->pid == 0)
        return true;
    if (waitpid(a->pid, &status, WNOHANG) != a->pid)
        return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && a->kind <= WORKER) {
        char *text = proc_errors(&a->proc);
        soak_note("errors", "process %d ended with %d: %.300s", a->n, WEXITSTATUS(status), text);
        free(text);
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM)
        soak_note("errors", "process %d killed by %d", a->n, WTERMSIG(status));
    a->pid = a->proc.pid = 0;
    if (a->kind <= WORKER)
        proc_done(&a->proc);
    return true;
}

static void
end(struct actor *a, int signo)
{
    int64_t until = soak_ms() + END_MS;

    if (a->pid == 0)
        return;
    kill(a->pid, signo);
    kill(a->pid, SIGCONT);
    while (!has_ended(a)) {
        if (soak_ms() > until) {
            soak_note("errors", "process %d (kind %d) does not end", a->n, a->kind);
            kill(a->pid, SIGKILL);
            until += END_MS;
        }
        soak_wait(2);
    }
}

/* --- harm --- */

static struct actor *
choose(struct soak *s, enum kind from, enum kind to)
{
    for (;;) {
        struct actor *a = &actors[soak_random(s, ACTORS)];
        if (a->kind >= from && a->kind <= to)
            return a;
    }
}

static void
hurt(const struct actor *a, int signo)
{
    if (a->pid > 0) /* kill() with 0 would signal this whole process group */
        kill(a->pid, signo);
}

static void
drop_sessions(struct soak *s, PGconn **conn)
{
    PQclear(soak_ask(s, conn,
                     "select pg_terminate_backend(pid) from (select pid from pg_stat_activity "
                     "where backend_type = 'client backend' and pid <> pg_backend_pid() order by "
                     "random() limit %u) z",
                     1 + soak_random(s, 3)));
}

static void
crash_server(struct soak *s)
{
    pg_down("immediate");
    soak_wait((int)soak_random(s, 300));
    pg_up();
}

static void
harm(struct soak *s, PGconn **conn, struct soak_tally *t, int64_t *restarted)
{
    unsigned n = soak_random(s, 100);

    if (n < 40) {
        soak_act(s, conn);
        t->acts++;
    } else if (n < 58) {
        hurt(choose(s, SCHEDULER, PUSHER), SIGKILL);
        t->kills++;
    } else if (n < 72) {
        struct actor *a = choose(s, SCHEDULER, PUSHER);
        hurt(a, SIGSTOP);
        a->stopped_until = soak_ms() + soak_random(s, 4000);
        t->stops++;
    } else if (n < 80) {
        hurt(choose(s, SCHEDULER, CLAIMER), SIGTERM);
        t->ends++;
    } else if (n < 90) {
        drop_sessions(s, conn);
        t->drops++;
    } else if (n < 97 && soak_ms() > *restarted + RESTART_MS) {
        crash_server(s);
        *restarted = soak_ms();
        t->restarts++;
    }
}

/* Continues who has been stopped long enough, starts again who has ended. */
static void
tend(struct soak *s)
{
    for (int i = 0; i < ACTORS; i++) {
        struct actor *a = &actors[i];
        if (a->stopped_until && soak_ms() > a->stopped_until) {
            kill(a->pid, SIGCONT);
            a->stopped_until = 0;
        }
        if (has_ended(a))
            begin(a, s);
    }
}

void
soak_chaos(struct soak *s, struct soak_tally *t)
{
    int64_t until = soak_ms() + s->seconds * 1000, restarted = soak_ms();
    PGconn *conn = soak_connect(s, "soak-operator");

    for (int i = 0; i < ACTORS; i++)
        actors[i] = (struct actor){.kind = actors[i].kind, .n = i};
    while (soak_ms() < until) {
        assert_non_null(conn);
        tend(s);
        soak_wait((int)soak_random(s, 200));
        harm(s, &conn, t, &restarted);
    }
    PQfinish(conn);
}

/* --- calm --- */

static bool
has_drained(struct soak *s, PGconn **conn)
{
    PGresult *r = soak_ask(s, conn,
                           "select count(*) = 0 from queues.queue where state <> 'failed' union "
                           "all select count(*) = 0 from queues.work_queue");
    bool done = r && *PQgetvalue(r, 0, 0) == 't' && *PQgetvalue(r, 1, 0) == 't';

    PQclear(r);
    return done;
}

bool
soak_calm(struct soak *s)
{
    int64_t until;
    bool done = false;
    PGconn *conn = soak_connect(s, "soak-calm");

    for (int i = 0; i < ACTORS; i++)
        if (actors[i].kind != SAMPLER)
            end(&actors[i], SIGKILL);
    PGresult *r = soak_ask(s, &conn,
                           "select count(*), (select count(*) from queues.queue) from "
                           "queues.queue_config c, queues.resume(gen_random_uuid(), c.queue) "
                           "where paused_at is not null");
    until = soak_ms() + CALM_MS + (r ? strtol(PQgetvalue(r, 0, 1), NULL, 10) * 10 : 0);
    PQclear(r);
    while (!done && soak_ms() < until) {
        for (int i = 0; i < ACTORS; i++)
            if (actors[i].kind != PUSHER && has_ended(&actors[i])) {
                actors[i].calm = true;
                begin(&actors[i], s);
            }
        soak_wait(50);
        done = has_drained(s, &conn);
    }
    for (int i = 0; i < ACTORS; i++)
        end(&actors[i], actors[i].kind <= WORKER ? SIGTERM : SIGKILL);
    PQfinish(conn);
    return done;
}
