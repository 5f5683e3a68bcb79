/*
 * vshot ROWSxCOLS STEP... -- COMMAND ARG...: runs a program in a terminal and draws what it shows.
 *
 *   server:NAME      start a throwaway PostgreSQL with a database of that name; PGHOST, PGUSER and
 *                    PGDATABASE are set for everything after it
 *   sql:FILE         run a file of SQL there
 *   run:COMMAND      run a shell command to its end
 *   env:NAME=VALUE   for the program (and for run: after it)
 *   want:TEXT  gone:TEXT  key:KEYS  type:TEXT  settle:MS  resize:ROWSxCOLS     as in term.h
 *   shot:FILE.svg    draw
 *
 * The program starts at the first step that needs it and is ended after the last one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/server.h"
#include "tests/svg.h"
#include "tests/term.h"

enum { ENV_MAX = 32 };

struct shot {
    struct vt vt;
    int rows, cols;
    const char *const *argv;
    const char *env[ENV_MAX];
    int n_env;
    PGconn *conn;
};

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "vshot: %s: %s\n", what, why);
    exit(1);
}

static struct vt *
screen(struct shot *s)
{
    if (!s->vt.vterm)
        vt_spawn(&s->vt, s->rows, s->cols, s->argv, s->env);
    return &s->vt;
}

static void
set_env(struct shot *s, const char *pair)
{
    char *copy = strdup(pair), *equals = copy ? strchr(copy, '=') : NULL;

    if (!equals || s->n_env >= ENV_MAX - 1)
        die("env", pair);
    s->env[s->n_env++] = pair;
    *equals = 0;
    setenv(copy, equals + 1, 1);
    free(copy);
}

static void
step_server(struct shot *s, const char *name)
{
    static char host[4200], database[100];

    pg_start(NULL);
    s->conn = pg_connect(pg_newdb(name));
    snprintf(host, sizeof host, "PGHOST=%s", pg_host());
    snprintf(database, sizeof database, "PGDATABASE=%s", name);
    set_env(s, host);
    set_env(s, database);
    set_env(s, "PGUSER=postgres");
}

static void
step_sql(struct shot *s, const char *path)
{
    if (!s->conn)
        die("sql", "needs server: before it");
    pg_file(s->conn, path);
}

static void
step_run(struct shot *s, const char *command)
{
    int status = 1;
    pid_t pid = fork();

    (void)s;
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        die("failed", command);
}

static void
step_size(struct shot *s, const char *text)
{
    char *end;
    long rows = strtol(text, &end, 10), cols = *end == 'x' ? strtol(end + 1, &end, 10) : 0;

    if (*end || rows < 1 || cols < 1 || rows > 500 || cols > 500)
        die("not ROWSxCOLS", text);
    s->rows = (int)rows;
    s->cols = (int)cols;
    if (s->vt.vterm)
        vt_resize(&s->vt, s->rows, s->cols);
}

static void
step_want(struct shot *s, const char *text)
{
    vt_want(screen(s), text);
}

static void
step_gone(struct shot *s, const char *text)
{
    vt_gone(screen(s), text);
}

static void
step_key(struct shot *s, const char *keys)
{
    vt_keys(screen(s), keys);
}

static void
step_type(struct shot *s, const char *text)
{
    vt_type(screen(s), text);
}

static void
step_settle(struct shot *s, const char *ms)
{
    vt_settle(screen(s), (int)strtol(ms, NULL, 10));
}

static void
step_shot(struct shot *s, const char *path)
{
    vt_pump(screen(s));
    if (!svg_write(&s->vt, path))
        die(path, strerror(errno));
}

static const struct {
    const char *name;
    void (*run)(struct shot *, const char *);
} steps[] = {
    {"server", step_server},
    {"sql",    step_sql   },
    {"run",    step_run   },
    {"env",    set_env    },
    {"want",   step_want  },
    {"gone",   step_gone  },
    {"key",    step_key   },
    {"type",   step_type  },
    {"settle", step_settle},
    {"resize", step_size  },
    {"shot",   step_shot  },
};

static void
take_step(struct shot *s, const char *step)
{
    size_t len = strcspn(step, ":");

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strlen(steps[i].name) == len && strncmp(steps[i].name, step, len) == 0 && step[len]) {
            steps[i].run(s, step + len + 1);
            return;
        }
    die("no such step", step);
}

int
main(int argc, char **argv)
{
    struct shot s = {.rows = 24, .cols = 80};
    int last = 1;

    while (last < argc && strcmp(argv[last], "--") != 0)
        last++;
    if (last < 2 || last + 1 >= argc) {
        fprintf(stderr, "usage: vshot ROWSxCOLS STEP... -- COMMAND ARG...\n");
        return 2;
    }
    s.argv = (const char *const *)argv + last + 1;
    step_size(&s, argv[1]);
    for (int i = 2; i < last; i++)
        take_step(&s, argv[i]);
    vt_done(&s.vt);
    PQfinish(s.conn);
    return 0;
}
