/*
 * The texts of the command line about itself: --help from the tables, messages on standard error,
 * and the rejection of words that would show a secret.
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/base/alias.h"
#include "model/base/mem.h"
#include "model/base/secure.h"
#include "model/base/text.h"
#include "ui/cli/cli_parts.h"

enum { VERBS_MOST = 60 };

#define F(field) offsetof(struct cli_common, field)
/* name, letter, value, kind, offset, help, min, max */
/* clang-format off */
const struct cli_option cli_common_options[] = {
    {"dbname", 'd', "NAME", CLI_EACH, F(dbnames), "database (or a connection string)", 0, 0},
    {"host", 'h', "HOST", CLI_TEXT, F(host), "server: a name, an address or the folder of its socket", 0, 0},
    {"port", 'p', "PORT", CLI_TEXT, F(port), "port of the server", 0, 0},
    {"username", 'U', "ROLE", CLI_TEXT, F(user), "role that connects", 0, 0},
    {"password", 'W', NULL, CLI_FLAG, F(ask_password), "ask for the password before connecting", 0, 0},
    {"schema", 0, "S", CLI_TEXT, F(schema), "schema of the queue (default: queues)", 0, 0},
    {"adapter", 0, "NAME", CLI_TEXT, F(adapter), "queue system, or a FILE that describes it (default: found)", 0, 0},
    {"trust-version", 0, NULL, CLI_FLAG, F(trust_version), "allow changes in a version that was never tested", 0, 0},
    {"trust-owner", 0, "ROLE", CLI_EACH, F(trust_owners), "let code of ROLE run: open its queues (again for more roles)", 0, 0},
    {"read-only", 0, NULL, CLI_FLAG, F(read_only), "change nothing; the server enforces it", 0, 0},
    {"timeout", 0, "T", CLI_TIME, F(timeout_ms), "verbs: how long one answer of the server may take (60s)", 100, 86400000},
    {"log", 0, "FILE", CLI_TEXT, F(log_file), "append a debug log to FILE", 0, 0},
    {"help", 0, NULL, CLI_FLAG, F(help), "this text; after a verb: about that verb", 0, 0},
    {"version", 'V', NULL, CLI_FLAG, F(version), "print the version", 0, 0},
    {0}};
/* clang-format on */
#undef F

static const struct cli_verb *
find_verb(const char *name)
{
    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++)
            if (!strcmp(v->name, name))
                return v;
    return NULL;
}

const struct cli_verb *
cli_find_verb(const char *name)
{
    const struct cli_verb *v = find_verb(name);
    const char *ours = v ? NULL : alias_find(ALIAS_ACT, name, (int)strlen(name));

    return ours ? find_verb(ours) : v;
}

const char *
cli_meant_verb(const char *word)
{
    const char *names[VERBS_MOST + 1];
    int n = 0;

    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++)
            if (*v->name && v->help && n < VERBS_MOST)
                names[n++] = v->name;
    names[n] = NULL;
    return alias_closest(word, names);
}

static void
print_option(const struct cli_option *o)
{
    char left[64];
    char letter[] = {'-', o->letter, ',', ' ', 0};

    snprintf(left, sizeof left, "  %s--%s%s%s", o->letter ? letter : "    ", o->name,
             o->arg ? " " : "", o->arg ? o->arg : "");
    printf("%-28s %s\n", left, o->help);
}

static void
print_options(const char *title, const struct cli_option *o)
{
    if (o && o->name)
        printf("\n%s:\n", title);
    for (; o && o->name; o++)
        print_option(o);
}

static void
print_verbs(void)
{
    printf("\nverbs:\n");
    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++)
            if (*v->name && v->help) /* a verb without help is internal */
                printf("  %-11s %s\n", v->name, v->help);
}

static void
print_examples(const struct cli_verb *v)
{
    if (!v || !v->examples[0])
        return;
    printf("\nexamples:\n");
    for (int i = 0; i < 2; i++)
        printf("  queuetop %s\n", v->examples[i]);
}

void
cli_help(const struct cli *c)
{
    const struct cli_verb *v = c->verb;
    bool program = !v || !*v->name;

    if (program)
        printf("usage: queuetop [options] [CONNINFO ...]     the console\n"
               "       queuetop VERB [options] [CONNINFO]    see queuetop VERB --help\n");
    else
        printf("usage: queuetop %s [options] [CONNINFO]%s%s\n%s.\n", v->name, *v->words ? " " : "",
               v->words, v->help ? v->help : "For queuetop's own use");
    if (program)
        print_verbs();
    print_options("options", v ? v->options : NULL);
    print_options("options of every verb", cli_common_options);
    printf("\nCONNINFO is a connection string of libpq (host=db1 dbname=app, postgres://db1/app). "
           "What "
           "it\nand the options leave out comes from libpq's environment, service file and "
           "~/.pgpass.\n");
    if (program)
        printf("Several of them, or -d several times, put their databases side by side.\n");
    if (v && v->more)
        printf("\n%s\n", v->more);
    print_examples(v);
    if (program)
        printf("\nexit: 0 done, 1 nothing matched, 2 usage, 3 refused, 4 no server, 5 the server "
               "said no,\n6 stopped in part, 7 the job failed, 8 time over, 10 ended somehow "
               "(these: --wait),\n9 doctor found something that is wrong\n");
}

void
cli_version(void)
{
    printf("queuetop %s\n", QUEUETOP_VERSION);
}

static void
say(const struct cli *c, const char *text)
{
    struct buf clean = {0};
    const char *verb = c->verb ? c->verb->name : "";

    text_clean(&clean, text, strlen(text), TEXT_LINE, INT_MAX);
    fprintf(stderr, "queuetop%s%s: %s\n", *verb ? " " : "", verb, clean.data ? clean.data : "");
    buf_free(&clean);
}

void
cli_say(const struct cli *c, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    say(c, text);
}

int
cli_usage(const struct cli *c, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    const char *verb = c->verb ? c->verb->name : "";

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_say(c, "%s; see queuetop%s%s --help", text, *verb ? " " : "", verb);
    return CLI_USAGE;
}

bool
cli_lacks_queue(const struct err *e)
{
    return !strcmp(e->sqlstate, "3F000") || !strcmp(e->sqlstate, "42P01");
}

int
cli_fail(const struct cli *c, const struct err *e)
{
    bool no_queue = cli_lacks_queue(e);
    bool ours =
        !c->adapter || !strcmp(c->adapter, "native"); /* install repairs only our own queue */

    if (ours && err_is_outdated(e))
        cli_say(c,
                "%s (%s); is the queue of an older queuetop, or none? queuetop install --schema %s "
                "brings it up to date",
                e->text, e->sqlstate, c->schema);
    else if (ours && no_queue && c->verb && !strcmp(c->verb->name, "uninstall"))
        cli_say(c, "%s (%s): nothing to uninstall in %s; --schema names another", e->text,
                e->sqlstate, c->schema);
    else if (ours && no_queue)
        cli_say(c, "%s (%s); is the queue installed here? queuetop install --schema %s", e->text,
                e->sqlstate, c->schema);
    else if (*e->sqlstate)
        cli_say(c, "%s (%s)", e->text, e->sqlstate);
    else
        cli_say(c, "%s", e->text);
    return err_exit_code(e);
}

static void
on_left(void *ctx, short revents)
{
    *(bool *)ctx = revents & POLLERR;
}

/* Whether the reader of standard output has closed the pipe. */
static bool
has_reader_left(const struct cli *c)
{
    struct err e = {0};
    bool has_left = false;
    int watch = loop_watch(c->loop, STDOUT_FILENO, 0, on_left, &has_left);
    bool ok = loop_turn(c->loop, 0, &e);

    loop_unwatch(c->loop, watch);
    return ok && has_left;
}

static int
flush(const struct cli *c, bool may_leave)
{
    errno = 0; /* the error may come from an earlier write */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_DONE;
    int why = errno;
    clearerr(stdout); /* report the error once */
    if (may_leave && has_reader_left(c))
        return CLI_DONE;
    cli_say(c, "standard output: %s", why ? strerror(why) : "not all of it could be written");
    return CLI_SERVER;
}

int
cli_flush(const struct cli *c)
{
    return flush(c, false);
}

int
cli_flush_look(const struct cli *c)
{
    return flush(c, true);
}

int
cli_end(const struct cli *c, bool ok, int rows, const struct err *e)
{
    if (!ok)
        return cli_fail(c, e);
    int code = cli_flush_look(c);
    if (code != CLI_DONE || rows > 0)
        return code;
    if (isatty(STDOUT_FILENO)) /* a script uses the exit code */
        cli_say(c, "nothing matched");
    return CLI_NOTHING;
}

bool
cli_check_secrets(const char *conninfo, struct err *e)
{
    if (!conninfo || !secure_has_password(conninfo))
        return true;
    return fail(e, ERR_USAGE,
                "a password in an argument is readable in ps: put it into ~/.pgpass, "
                "PGPASSFILE or a PGSERVICE file");
}
