/*
 * `queuetop` without a verb: opens the terminal and the source, and runs the loop until the user
 * leaves. The first frame is drawn before any answer of the server has come.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/db/db.h"
#include "model/source/sources.h"
#include "ui/box/box.h"
#include "ui/cli/cli.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/verbs.h"
#include "ui/config/settings.h"
#include "ui/console/app.h"
#include "ui/demo/demo.h"

/* --- lines instead of screens --- */

/* `queuetop --plain`: reads lines and prints lines, and nothing on the screen moves; for screen
 * readers, slow links and simple terminals. A line is a verb with its words, as typed in a shell
 * (queues, jobs state:failed, requeue ...). The verb runs as a process of its own, so that nothing
 * of it remains when it ends. The verb itself asks before it acts. An empty line repeats the last
 * look. */

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

/* Reads lines up to the end of the input or "quit". Each line is a verb with its words and uses the
 * connection options of this program. Returns the exit code of the last verb. */
static int
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

/* --- the console --- */

struct console_options {
    int64_t interval_ms;
    const char *color, *theme, *record, *replay, *at;
    const char *trust_owner; /* of the file; read anew for each place, by cli_trust_new */
    const char *alert_program;
    int64_t alert_after_ms;
    bool ascii, clipboard, production, read_only, utc, mouse, plain, tv, demo, help_keys;
};

enum { INTERVAL_MS = 1000, ALERT_AFTER_MS = 10000, TV_REFRESHES = 20, SECTION_NAMES = 64 };

struct sections { /* by which names sections of the file can mean these databases */
    struct cli *cli;
    struct settings *settings;
    const char *names[SECTION_NAMES + 2 * SOURCES_MAX + 1]; /* ended by NULL */
    int n;
};

#define O(f) offsetof(struct console_options, f)

/* clang-format off */
static const struct cli_option options[] = {
    {"interval", 0, "TIME", CLI_TIME, O(interval_ms), "time between refreshes (1s)", 100, 3600000},
    {"color", 0, "WHEN", CLI_TEXT, O(color), "auto, always or never; NO_COLOR counts under auto", 0, 0},
    {"theme", 0, "NAME", CLI_TEXT, O(theme), "dark, light, contrast, 16, 8 or mono; else what fits", 0, 0},
    {"ascii", 0, NULL, CLI_FLAG, O(ascii), "draw with ASCII letters only", 0, 0},
    {"utc", 0, NULL, CLI_FLAG, O(utc), "show times in UTC (Z switches)", 0, 0},
    {"mouse", 0, NULL, CLI_FLAG, O(mouse), "clicks select rows, sort columns, change tabs; the wheel scrolls", 0, 0},
    {"clipboard", 0, NULL, CLI_FLAG, O(clipboard), "let y copy by OSC 52", 0, 0},
    {"production", 0, NULL, CLI_FLAG, O(production), "red header; every action is confirmed by typing", 0, 0},
    {"plain", 0, NULL, CLI_FLAG, O(plain), "lines instead of screens, for screen readers: type verbs", 0, 0},
    {"tv", 0, NULL, CLI_FLAG, O(tv), "for a wall: the screens take turns below a verdict, read-only; q quits", 0, 0},
    {"record", 0, "FILE", CLI_TEXT, O(record), "keep every snapshot in FILE (mode 0600; --replay shows it again)", 0, 0},
    {"replay", 0, "FILE", CLI_TEXT, O(replay), "show a recording: the same screens, read-only", 0, 0},
    {"at", 0, "WHEN", CLI_TEXT, O(at), "with --replay: start at this time, 03:10 or 2026-11-21 03:10:05", 0, 0},
    {"demo", 0, NULL, CLI_FLAG, O(demo), "a private server with a live load; SECONDS ends it", 0, 0},
    {"help-keys", 0, NULL, CLI_FLAG, O(help_keys), "print all keys and commands", 0, 0},
    {0},
};

static const char *const themes[] = {"dark", "light", "contrast", "16", "8", "mono", NULL};
static const char *const whens[] = {"auto", "always", "never", NULL};

/* the keys of the configuration file */
static const struct setting file_keys[] = {
    {"interval", SET_TIME, O(interval_ms), NULL},
    {"color", SET_TEXT, O(color), whens},
    {"theme", SET_TEXT, O(theme), themes},
    {"ascii", SET_FLAG, O(ascii), NULL},
    {"utc", SET_FLAG, O(utc), NULL},
    {"clipboard", SET_FLAG, O(clipboard), NULL},
    {"mouse", SET_FLAG, O(mouse), NULL},
    {"production", SET_SAFETY, O(production), NULL},
    {"read-only", SET_SAFETY, O(read_only), NULL},
    {"trust_owner", SET_TEXT, O(trust_owner), NULL},
    {"alert_program", SET_TEXT, O(alert_program), NULL},
    {"alert_after", SET_TIME, O(alert_after_ms), NULL},
    {0},
};
/* clang-format on */

/* The names that the user has said: services and databases. Returns their number. */
static int
names_of(const struct cli *c, const char **names)
{
    static const char *const keys[] = {"service", "dbname"};
    int n = 0;

    if (getenv("PGSERVICE"))
        names[n++] = getenv("PGSERVICE");
    if (!c->dbname && getenv("PGDATABASE"))
        names[n++] = getenv("PGDATABASE");
    for (int i = 0; i < c->dbnames.n + c->conninfos.n; i++) {
        bool is_name = i < c->dbnames.n;
        const char *text = is_name ? c->dbnames.items[i] : c->conninfos.items[i - c->dbnames.n];
        if (is_name && !db_is_conninfo(text) && n < SECTION_NAMES)
            names[n++] = text;
        for (int k = 0; k < 2 && db_is_conninfo(text); k++) {
            char *value = db_conninfo_value(text, keys[k]);
            if (value && n < SECTION_NAMES)
                names[n++] = arena_printf(c->mem, "%s", value);
            free(value);
        }
    }
    names[n] = NULL;
    return n;
}

/* A database has this name, which the user may not have said: it may be from a service file, or be
 * the name of the role. Reads the file as if the name had been said, and switches protections on.
 * What is on stays on. */
static void
protect(struct app *a, void *ctx, const char *database)
{
    struct sections *x = ctx;
    struct console_options file = {0};
    int told = 0;

    for (int i = 0; i < x->n; i++)
        if (!strcmp(x->names[i], database))
            return;
    if (x->n == SECTION_NAMES + 2 * SOURCES_MAX)
        return;
    x->names[x->n++] = arena_printf(x->cli->mem, "%s", database);
    while (settings_complaint(x->settings, told))
        told++;
    settings_read_again(x->settings, file_keys, x->names, &file);
    a->options.production |= file.production;
    a->options.closed = settings_closed(x->settings);
    if (file.read_only)
        sources_set_read_only(a->sources);
    for (; settings_complaint(x->settings, told); told++)
        app_say(a, SAY_WARN, "%s", settings_complaint(x->settings, told));
    app_stale(a);
}

/* Applies the file's settings, then those of the command line. */
static void
settle_options(const struct cli *c, struct settings *s, const struct console_options *said,
               struct console_options *out)
{
    const char *names[SECTION_NAMES + 1];
    struct console_options file = {.interval_ms = INTERVAL_MS, .alert_after_ms = ALERT_AFTER_MS};

    (void)names_of(c, names);
    settings_read(s, file_keys, names, &file);
    settings_load(s);
    *out = *said;
    out->interval_ms = said->interval_ms ? said->interval_ms : file.interval_ms;
    out->color = said->color ? said->color : file.color;
    out->theme = said->theme ? said->theme : file.theme;
    out->ascii |= file.ascii;
    out->utc |= file.utc;
    out->clipboard |= file.clipboard;
    out->mouse |= file.mouse;
    out->production |= file.production;
    out->alert_program = said->demo || said->replay ? NULL : file.alert_program; /* nothing to be
                                                                                  told of there */
    out->alert_after_ms = file.alert_after_ms;
    out->read_only = c->read_only || file.read_only || said->tv;
}

static bool
color_of(const char *name, enum color_when *when)
{
    static const char *const names[] = {"auto", "always", "never"};

    *when = COLOR_AUTO;
    for (int i = 0; name && i < 3; i++) {
        if (!strcmp(name, names[i])) {
            *when = (enum color_when)i;
            return true;
        }
    }
    return !name;
}

static int
print_keys(const struct cli *c)
{
    struct buf b = {0};

    command_markdown(&b);
    fwrite(b.data, 1, b.len, stdout);
    buf_free(&b);
    return cli_flush_look(c);
}

/* Runs the loop until the user or a signal ends it. */
static int
run_app(struct cli *c, struct term *t, struct sources *ss, const struct console_options *o,
        struct settings *kept)
{
    struct sections sections = {.cli = c, .settings = kept};
    struct app_options ao = {.boxes = &boxes,
                             .protect = protect,
                             .protect_ctx = &sections,
                             .clipboard = o->clipboard,
                             .production = o->production,
                             .closed = settings_closed(kept),
                             .utc = o->utc,
                             .tv_ms = o->tv ? TV_REFRESHES * o->interval_ms : 0,
                             .at = o->at,
                             .alert_program = o->alert_program,
                             .alert_after_ms = o->alert_after_ms,
                             .settings = o->tv ? NULL : kept};
    sections.n = names_of(c, sections.names);
    struct app *a = app_new(c->loop, t, ss, &ao);
    struct err e = {.kind = ERR_NONE};

    if (o->record && sources_n(ss) > 1)
        app_say(a, SAY_INFO, "only %s is recorded", sources_name(ss, 0));
    for (int i = 0; settings_complaint(kept, i); i++)
        app_say(a, SAY_WARN, "%s", settings_complaint(kept, i));
    bool ok = loop_run(c->loop, &e);
    int code = a->leaving.signo ? 128 + a->leaving.signo : CLI_DONE;
    app_free(a);
    sources_free(ss);
    term_close(t);
    log_quiet(false);
    struct err unkept;
    if (!settings_save(kept, &unkept))
        cli_say(c, "%s", unkept.text);
    return ok ? code : cli_fail(c, &e);
}

static int
places(const struct cli *c, const struct console_options *o)
{
    return o->replay ? 1 : cli_places(c);
}

static struct sources *
open_sources(struct cli *c, const struct console_options *o, struct err *e)
{
    const struct source_options like = {.interval_ms = (int)o->interval_ms,
                                        .read_only = o->read_only,
                                        .record = o->record,
                                        .replay = o->replay};

    return cli_sources(c, &like, places(c, o), e);
}

static int
open_console(struct cli *c, const struct console_options *o, struct settings *kept)
{
    struct term_options to = {.theme = o->theme, .ascii = o->ascii, .mouse = o->mouse && !o->tv};
    struct err e = {.kind = ERR_NONE};
    struct term *t;
    if (!color_of(o->color, &to.color))
        return cli_usage(c, "--color is auto, always or never, not %s", o->color);
    if (!term_open(&t, &to, &e))
        return cli_fail(c, &e);
    log_quiet(true);
    struct sources *ss = open_sources(c, o, &e);
    int code = CLI_DONE;
    if (ss) {
        code = run_app(c, t, ss, o, kept);
    } else {
        term_close(t);
        log_quiet(false);
        code = cli_fail(c, &e);
    }
    return code;
}

static int
console_run(struct cli *c, const void *opts)
{
    struct settings *s = settings_new();
    struct console_options o;

    if (((const struct console_options *)opts)->demo)
        settings_apart(s, "demo"); /* what is tried there is nothing for production */
    settle_options(c, s, opts, &o);
    c->settings_said = true; /* in Messages */
    int code = open_console(c, &o, s);
    settings_free(s);
    return code;
}

static int
console_main(struct cli *c, const void *opts)
{
    const struct console_options *o = opts;

    if (o->help_keys)
        return print_keys(c);
    if (o->plain)
        return plain_run(c);
    if (o->demo)
        return demo_run(c, console_run, opts);
    return console_run(c, opts);
}

const struct cli_verb verbs_console[] = {
    {
     .name = "",
     .words = "[SECONDS]",
     .help = "the console: queues, jobs, failures and nodes, live",
     .max_words = 1,
     .options = options,
     .size = sizeof(struct console_options),
     .run = console_main,
     .many_sources = true,
     },
    {0},
};
