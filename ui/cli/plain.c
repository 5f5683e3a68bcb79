/*
 * The line mode. A line is a verb with its words, as typed in a shell (queues, jobs state:failed,
 * requeue ...). The verb runs as a process of its own, so that nothing of it remains when it ends.
 * The verb itself asks before it acts. An empty line repeats the last look.
 */
#include "ui/cli/plain.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/mem.h"

extern char **environ;

enum { WORDS_MAX = 64, OWNERS_MOST = 20 };

static const char intro[] =
    "Lines instead of screens: type a verb, for example\n"
    "  queues   jobs --state failed   failures   nodes   audit   job ID   requeue ID\n"
    "An empty line shows the last one again. help lists all verbs, quit ends.\n";

/* The next word of a line: blanks end it, quotes hold it together. NULL = no more; *bad = a quote
 * is not closed. */
static char *
next_word(char **at, bool *bad)
{
    char *s = *at + strspn(*at, " \t"), *out = s, *word = s, quote = 0;

    if (!*s)
        return NULL;
    for (; *s && (quote || !strchr(" \t", *s)); s++) {
        if (quote && *s == quote)
            quote = 0;
        else if (!quote && strchr("'\"", *s))
            quote = *s;
        else
            *out++ = *s;
    }
    *bad |= quote != 0;
    *at = *s ? s + 1 : s;
    *out = 0;
    return word;
}

/* The options of this program that name the database. */
static int
add_common(const struct cli *c, const char **argv)
{
    int n = 0;

    argv[n++] = "queuetop";
    if (c->dbname) {
        argv[n++] = "-d";
        argv[n++] = c->dbname;
    }
    if (c->wanted) {
        argv[n++] = "--schema";
        argv[n++] = c->wanted;
    }
    if (c->adapter) {
        argv[n++] = "--adapter";
        argv[n++] = c->adapter;
    }
    if (c->trust_version)
        argv[n++] = "--trust-version";
    if (c->read_only)
        argv[n++] = "--read-only";
    for (int i = 0; i < c->trust_owners.n && i < OWNERS_MOST; i++) {
        argv[n++] = "--trust-owner";
        argv[n++] = c->trust_owners.items[i];
    }
    return n;
}

/* Runs a verb. Ctrl-C ends the verb, not the line mode. */
static int
run_verb(const struct cli *c, char *const *argv)
{
    posix_spawnattr_t attr;
    sigset_t interrupt;
    int status = 0;
    pid_t pid;

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &interrupt);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    void (*was)(int) = signal(SIGINT, SIG_IGN);
    int failed = posix_spawn(&pid, "/proc/self/exe", NULL, &attr, argv, environ);
    while (!failed && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    signal(SIGINT, was);
    posix_spawnattr_destroy(&attr);
    if (failed) {
        cli_say(c, "%s", strerror(failed));
        return CLI_SERVER;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
run_line(const struct cli *c, const char *line)
{
    const char *argv[WORDS_MAX + 10 + 2 * OWNERS_MOST];
    char *copy = xstrdup(line), *at = copy, *word;
    int n = add_common(c, argv), first = n, code;
    bool bad = false;

    while (n < WORDS_MAX && (word = next_word(&at, &bad)))
        argv[n++] = word;
    if (n > first && !strcmp(argv[first], "help"))
        argv[first] = "--help";
    if (c->conninfo && n > first)
        argv[n++] = c->conninfo;
    argv[n] = NULL;
    if (bad) {
        cli_say(c, "a quote has no end");
        code = CLI_USAGE;
    } else {
        code = run_verb(c, (char *const *)(uintptr_t)argv);
    }
    free(copy);
    return code;
}

int
plain_run(struct cli *c)
{
    char *line = NULL, *last;
    bool asks = isatty(STDIN_FILENO);
    int code = CLI_DONE;
    size_t cap = 0;

    if (c->conninfos.n > 1 || c->dbnames.n > 1)
        return cli_usage(c, "--plain speaks to one database");
    last = xstrdup("queues");

    fputs(asks ? intro : "", stdout);
    for (;;) {
        fputs(asks ? "queuetop> " : "", stdout);
        fflush(stdout);
        ssize_t len = getline(&line, &cap, stdin);
        if (len < 0)
            break;
        line[strcspn(line, "\r\n")] = 0;
        if (!strcmp(line, "quit") || !strcmp(line, "q"))
            break;
        if (line[strspn(line, " \t")]) {
            free(last);
            last = xstrdup(line);
        }
        code = run_line(c, last);
    }
    free(line);
    free(last);
    return code;
}
