/*
 * From argv to a verb: one getopt_long loop. Its tables change when the name of the verb is found,
 * so that `queuetop -d db push --kind k q` and `queuetop push q -d db` are the same. Nothing here
 * knows a particular verb. Messages go through model/text, because they may contain text from the
 * server.
 */
#include "ui/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/alias.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/base/text.h"
#include "model/db/db.h"
#include "ui/cli/cli_parts.h"
#include "ui/cli/cli_trust.h"

enum { OPTIONS_MAX = 64, WORDS_AT_ONCE = 16 };
enum { TIMEOUT_MS = 60000, DROP_MS = 5000, SLOW_MS = 3000 };

/* The tables for getopt_long: the options that every verb takes, then those of the current verb. */
struct option_table {
    const struct cli_option *row[OPTIONS_MAX];
    bool is_common[OPTIONS_MAX], is_given[OPTIONS_MAX];
    struct option longs[OPTIONS_MAX + 1];
    char shorts[OPTIONS_MAX * 3 + 3];
    int n;
};

struct parse {
    struct cli *c;
    struct option_table table;
    struct cli_common *common;
    void *options;              /* the verb's struct */
    const char *console_option; /* an option of the console that was used */
    struct err *e;
};

/* A verb's own option takes the place of one that every verb has. */
static bool
has_option(const struct cli_option *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (!strcmp(rows->name, name))
            return true;
    return false;
}

static void
table_add(struct option_table *t, const struct cli_option *rows, const struct cli_option *own)
{
    bool is_common = rows != own;

    for (; rows && rows->name; rows++) {
        if (is_common && has_option(own, rows->name))
            continue;
        if (t->n == OPTIONS_MAX)
            abort();
        int has_arg = rows->kind == CLI_FLAG                              ? no_argument
                      : rows->kind == CLI_MAYBE || rows->kind == CLI_SOME ? optional_argument
                                                                          : required_argument;
        t->row[t->n] = rows;
        t->is_common[t->n] = is_common;
        t->longs[t->n] = (struct option){rows->name, has_arg, NULL, UCHAR_MAX + 1 + t->n};
        size_t len = strlen(t->shorts);
        if (rows->letter)
            snprintf(t->shorts + len, sizeof t->shorts - len, "%c%s", rows->letter,
                     has_arg == required_argument ? ":"
                     : has_arg                    ? "::"
                                                  : "");
        t->n++;
    }
    t->longs[t->n] = (struct option){0};
}

/* Fills the tables. "-" makes getopt return words in their order; ":" distinguishes a missing value
 * from an unknown option. */
static void
table_make(struct option_table *t, const struct cli_verb *verb)
{
    const struct cli_option *own = verb ? verb->options : NULL;

    *t = (struct option_table){.shorts = "-:"};
    table_add(t, cli_common_options, own);
    table_add(t, own, own);
}

static int
table_find(const struct option_table *t, int code)
{
    if (code > UCHAR_MAX)
        return code - UCHAR_MAX - 1;
    for (int i = 0; i < t->n; i++)
        if (t->row[i]->letter && t->row[i]->letter == code)
            return i;
    return -1;
}

static bool
parse_number(const struct cli_option *o, const char *text, int64_t *value, struct err *e)
{
    int64_t most = o->kind == CLI_INT ? INT_MAX : INT64_MAX;
    int64_t min = o->min, max = o->min == 0 && o->max == 0 ? most : o->max;
    char *end = NULL;

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == 0 && *value >= min && *value <= max)
        return true;
    if (max == most)
        return fail(e, ERR_USAGE, "--%s takes a number from %" PRId64 " up, not '%s'", o->name, min,
                    text);
    return fail(e, ERR_USAGE, "--%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'",
                o->name, min, max, text);
}

static bool
parse_time(const struct cli_option *o, const char *text, int64_t *value, struct err *e)
{
    char bound[40];

    if (!duration_parse(text, value, e))
        return fail_in(e, "--%s", o->name);
    bool is_short = *value < o->min;
    if (!is_short && (!o->max || *value <= o->max))
        return true;
    duration_write(bound, sizeof bound, is_short ? o->min : o->max);
    return fail(e, ERR_USAGE, "--%s: '%s' is too %s: %s at %s", o->name, text,
                is_short ? "short" : "long", bound, is_short ? "least" : "most");
}

static void
list_add(struct arena *mem, struct cli_list *list, const char *text, size_t len)
{
    const char **items = arena_alloc(mem, sizeof *items * (size_t)(list->n + 1));

    if (list->n > 0)
        memcpy(items, list->items, sizeof *items * (size_t)list->n);
    items[list->n++] = arena_strndup(mem, text, len);
    list->items = items;
}

static bool
list_split(struct arena *mem, struct cli_list *list, const struct cli_option *o, const char *text,
           struct err *e)
{
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        if (len == 0)
            return fail(e, ERR_USAGE, "--%s: an empty name in '%s'", o->name, text);
        list_add(mem, list, at, len);
        at += len;
        if (!*at)
            return true;
    }
}

/* Rejects a second value of a verb's option that takes one: the first one would be lost, and the
 * verb would act on less or on something else than was asked for. For the options of every verb
 * and of the console the last value counts, because an alias of the shell may set them. */
static bool
check_once(struct parse *p, int at)
{
    const struct cli_option *o = p->table.row[at];
    bool takes_one = o->kind != CLI_FLAG && o->kind != CLI_LIST && o->kind != CLI_EACH,
         is_of_verb = !p->table.is_common[at] && p->c->verb && *p->c->verb->name;

    if (p->table.is_given[at] && takes_one && is_of_verb)
        return fail(p->e, ERR_USAGE, "--%s was given twice; it takes one value", o->name);
    p->table.is_given[at] = true;
    return true;
}

static bool
set_option(struct parse *p, int at, const char *text)
{
    const struct cli_option *o = p->table.row[at];
    void *base = p->table.is_common[at] ? (void *)p->common : p->options;
    void *field = (char *)base + o->offset;
    int64_t value = 0;

    if (!check_once(p, at))
        return false;
    if (!p->table.is_common[at] && p->c->verb && !*p->c->verb->name)
        p->console_option = o->name;
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return true;
    case CLI_TEXT:
        *(const char **)field = text;
        return true;
    case CLI_LIST:
        return list_split(p->c->mem, field, o, text, p->e);
    case CLI_EACH:
        list_add(p->c->mem, field, text, strlen(text));
        return true;
    case CLI_SOME:
    case CLI_INT:
        if (text && !parse_number(o, text, &value, p->e))
            return false;
        *(int *)field = (int)value;
        return true;
    case CLI_BIG:
        return parse_number(o, text, field, p->e);
    case CLI_TIME:
        return parse_time(o, text, field, p->e);
    case CLI_MAYBE:
        *(int64_t *)field = CLI_NO_TIME;
        return !text || parse_time(o, text, field, p->e);
    }
    return true;
}

/* The option for which `name` is another name in the verb's table: max_running or max-running is
 * --limit. */
static const char *
also_called(const struct cli_verb *v, const char *name)
{
    for (int i = 0; v && v->also && v->also[i][0]; i++) {
        const char *a = v->also[i][0], *b = name;
        for (; *a && (*a == *b || (*a == '_' && *b == '-')); b++)
            a++;
        if (!*a && !*b)
            return v->also[i][1];
    }
    return NULL;
}

static bool
unknown_option(const struct parse *p, const char *word)
{
    const char *names[OPTIONS_MAX + 1];
    char *name = arena_strndup(p->c->mem, word + 2, strcspn(word + 2, "="));

    for (int i = 0; i < p->table.n; i++)
        names[i] = p->table.row[i]->name;
    names[p->table.n] = NULL;
    const char *meant = also_called(p->c->verb, name);
    if (!meant)
        meant = alias_closest(name, names);
    if (meant)
        return fail(p->e, ERR_USAGE, "unknown option --%s, did you mean --%s?", name, meant);
    return fail(p->e, ERR_USAGE, "unknown option --%s", name);
}

static bool
bad_option(const struct parse *p, int code, char **argv)
{
    int at = optopt ? table_find(&p->table, optopt) : -1;

    if (code == ':' && !strcmp(argv[optind - 1], "-h"))
        return fail(p->e, ERR_USAGE, "-h takes a host; --help is the help");
    if (code == ':')
        return fail(p->e, ERR_USAGE, "%s needs a value", argv[optind - 1]);
    if (at >= 0)
        return fail(p->e, ERR_USAGE, "--%s takes no value", p->table.row[at]->name);
    if (optopt)
        return fail(p->e, ERR_USAGE, "unknown option -%c", optopt);
    return unknown_option(p, argv[optind - 1]);
}

static void
choose_verb(struct parse *p, const struct cli_verb *verb)
{
    p->c->verb = verb;
    p->options = arena_alloc(p->c->mem, verb && verb->size ? verb->size : 1);
    if (verb && verb->defaults)
        memcpy(p->options, verb->defaults, verb->size);
    table_make(&p->table, verb);
}

static void
add_word(struct cli *c, char *word)
{
    if (c->nwords % WORDS_AT_ONCE == 0) {
        char **words = arena_alloc(c->mem, sizeof *words * (size_t)(c->nwords + WORDS_AT_ONCE + 1));
        if (c->nwords > 0)
            memcpy(words, c->words, sizeof *words * (size_t)c->nwords);
        c->words = words;
    }
    c->words[c->nwords++] = word;
    c->words[c->nwords] = NULL;
}

/* Rejects a word that is neither a verb nor a database. The message says how to write each. */
static bool
no_such_verb(const char *word, struct err *e)
{
    const char *meant = cli_meant_verb(word);

    if (strchr(word, '=') || strstr(word, "://"))
        return fail(e, ERR_USAGE,
                    "'%s' is no connection string: libpq knows host=, dbname=, ... and "
                    "postgresql://",
                    word);
    if (meant)
        return fail(e, ERR_USAGE, "there is no verb '%s', did you mean %s?", word, meant);
    return fail(e, ERR_USAGE, "there is no verb '%s' (a database is named by -d)", word);
}

/* Handles a word before `--`: a CONNINFO, the verb, or a word of the verb. */
static bool
take_word(struct parse *p, char *word)
{
    struct cli *c = p->c;
    bool in_verb = c->verb && *c->verb->name;

    if (db_is_conninfo(word)) {
        list_add(c->mem, &c->conninfos, word, strlen(word));
        return true;
    }
    if (!in_verb) {
        const struct cli_verb *verb = cli_find_verb(word);
        if (verb && p->console_option)
            return fail(p->e, ERR_USAGE, "--%s does not go with %s", p->console_option, word);
        if (verb) {
            choose_verb(p, verb);
            return true;
        }
        if (!p->console_option || strspn(word, "0123456789") != strlen(word))
            return no_such_verb(word, p->e);
    }
    if (in_verb && c->verb->min_words > 0 && c->nwords == 0 && !strcmp(word, "help"))
        return fail(p->e, ERR_USAGE, "'help' is a question here; put -- before a name: %s -- help",
                    c->verb->name);
    if (in_verb && c->verb->after_dashes)
        return fail(p->e, ERR_USAGE, "put -- before the command: -- %s", word);
    add_word(c, word);
    return true;
}

/* Says how the verb takes a name: "; write --id x or --node x". */
static void
say_options_for(const struct cli_verb *v, const char *word, struct buf *out)
{
    static const char *const names[] = {"id", "node", "queue"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const struct cli_option *o = v->options; o && o->name; o++)
            if (!strcmp(o->name, names[i]))
                buf_printf(out, "%s --%s %s", out->len ? " or" : "; write", o->name, word);
}

static bool
check_words(const struct cli *c, struct err *e)
{
    const struct cli_verb *v = c->verb;

    if (c->nwords < v->min_words)
        return fail(e, ERR_USAGE, "what is missing: %s", v->words);
    if (v->max_words >= 0 && c->nwords > v->max_words) {
        const char *word = c->words[v->max_words];
        struct buf options = {0};
        if (v->max_words == 0)
            say_options_for(v, word, &options);
        fail(e, ERR_USAGE, "one word too many: '%s'%s", word, options.len ? options.data : "");
        buf_free(&options);
        return false;
    }
    return true;
}

static bool
is_time(const char *word)
{
    struct err e = {0};
    int64_t ms;

    return word && duration_parse(word, &ms, &e);
}

/* The value of an option. If the value is optional, the next word is the value if it has the right
 * form. */
static const char *
option_value(const struct parse *p, int at, int argc, char **argv)
{
    enum cli_kind kind = p->table.row[at]->kind;
    const char *next = optind < argc ? argv[optind] : NULL;

    if (optarg || !next || !*next)
        return optarg;
    bool is_number = !next[strspn(next, "0123456789")]; /* as a time refused, for want of a unit */
    bool fits = kind == CLI_MAYBE ? is_number || is_time(next) : kind == CLI_SOME && is_number;
    return fits ? argv[optind++] : NULL;
}

static bool
parse_all(struct parse *p, int argc, char **argv)
{
    opterr = 0;
    optind = 0; /* glibc: begin again, and read the mode from the letters */
    for (;;) {
        int code = getopt_long(argc, argv, p->table.shorts, p->table.longs, NULL);
        if (code == -1)
            break;
        if (code == '?' || code == ':')
            return bad_option(p, code, argv);
        if (code == 1 && !take_word(p, optarg))
            return false;
        if (code == 1)
            continue;
        int at = table_find(&p->table, code);
        if (!set_option(p, at, option_value(p, at, argc, argv)))
            return false;
    }
    while (optind < argc)
        add_word(p->c, argv[optind++]);
    return true;
}

/* Rejects -d together with a connection string that names another database, because neither may be
 * ignored silently. */
static bool
check_one_name(const char *conninfo, const struct cli_list *names, struct err *e)
{
    char *named = db_conninfo_value(conninfo, "dbname");
    bool ok = true;

    for (int i = 0; named && ok && i < names->n; i++)
        if (strcmp(named, names->items[i]) != 0)
            ok = fail(e, ERR_USAGE,
                      "two databases: -d %s and dbname %s; name each by -d, or each by a "
                      "connection string",
                      names->items[i], named);
    free(named);
    return ok;
}

/* Rejects several databases for a verb that takes only one. */
static bool
check_places(const struct cli *c, struct err *e)
{
    const struct cli_list *conn = &c->conninfos, *names = &c->dbnames;
    bool many = c->verb && c->verb->many_sources;

    for (int i = 0; i < conn->n; i++)
        if (!cli_check_secrets(conn->items[i], e))
            return false;
    for (int i = 0; i < names->n; i++)
        if (!cli_check_secrets(names->items[i], e))
            return false;
    if (conn->n > 1 && !many)
        return fail(e, ERR_USAGE, "two connection strings: '%s' and '%s'", conn->items[0],
                    conn->items[1]);
    if (names->n > 1 && !many)
        return fail(e, ERR_USAGE, "two databases: '%s' and '%s'", names->items[0], names->items[1]);
    if (conn->n > 1 && names->n > 0)
        return fail(e, ERR_USAGE, "-d goes with one connection string, not with %d", conn->n);
    return conn->n == 0 || check_one_name(conn->items[0], names, e);
}

static bool
take_common(struct cli *c, const struct cli_common *o, struct err *e)
{
    c->dbnames = o->dbnames;
    c->dbname = o->dbnames.n ? o->dbnames.items[0] : NULL;
    c->schema = o->schema ? o->schema : "queues";
    c->wanted = o->schema;
    c->adapter = o->adapter;
    c->trust_version = o->trust_version;
    c->trust_owners = o->trust_owners;
    c->log_file = o->log_file;
    c->timeout_ms = (int)o->timeout_ms;
    c->read_only = o->read_only;
    if (!*c->schema || strlen(c->schema) > 63)
        return fail(e, ERR_USAGE, "--schema takes a name of 1 to 63 bytes");
    if (!check_places(c, e) || !cli_take_place(c, o, e))
        return false;
    c->conninfo = c->conninfos.n ? c->conninfos.items[0] : NULL;
    return true;
}

bool
cli_parse(struct cli *c, int argc, char **argv, void **options, bool *help, struct err *e)
{
    struct cli_common common = {.timeout_ms = TIMEOUT_MS};
    struct parse p = {.c = c, .common = &common, .e = e};
    bool ok;

    *help = false;
    choose_verb(&p, cli_find_verb(""));
    ok = parse_all(&p, argc, argv);
    *options = p.options;
    if (common.help || common.version) {
        *help = true;
        common.help ? cli_help(c) : cli_version();
        return true;
    }
    if (!ok || !take_common(c, &common, e))
        return false;
    if (!c->verb)
        return fail(e, ERR_USAGE, "a verb is missing");
    return check_words(c, e) && (!common.ask_password || cli_ask_password(e));
}

static const struct db_gate *
gate_of(struct cli *c)
{
    if (!c->gate) {
        c->gate = arena_alloc(c->mem, sizeof *c->gate);
        schema_gate_init(c->gate, c->schema, cli_trust(c));
        c->gate->refuses_risk = c->pushes;
        if (c->stays)
            schema_gate_stay(c->gate);
    }
    return &c->gate->db;
}

void
cli_db_options(struct cli *c, struct db_options *o)
{
    *o = (struct db_options){.conninfo = c->conninfo ? c->conninfo : "",
                             .dbname = c->dbname,
                             .app_name = "queuetop",
                             .schema = c->schema,
                             .gate = gate_of(c),
                             .read_only = c->read_only};
}

/* A person who waits should know why. Nothing is said to a file or a pipe: a slow server is no
 * error. */
static void
look_how_slow(void *ctx)
{
    struct cli *c = ctx;
    int64_t silent = c->db ? db_silent_ms(c->db) : 0;

    if (silent < SLOW_MS)
        loop_at(c->loop, clock_ms() + SLOW_MS - silent, look_how_slow, c);
    else
        cli_say(c, "the server is slow: no answer for %d s yet; waiting %d s at most (--timeout)",
                SLOW_MS / 1000, c->timeout_ms / 1000);
}

void
cli_watch_slow(struct cli *c)
{
    if (isatty(STDERR_FILENO))
        loop_at(c->loop, clock_ms() + SLOW_MS, look_how_slow, c);
}

struct db *
cli_db(struct cli *c, bool once)
{
    struct db_options o;

    if (c->db)
        return c->db;
    cli_db_options(c, &o);
    o.once = once;
    if (once) {
        o.stall_warn_ms = o.connect_ms = c->timeout_ms;
        o.stall_drop_ms = c->timeout_ms + DROP_MS;
        cli_watch_slow(c);
    }
    c->db = db_new(c->loop, &o);
    return c->db;
}

static int
wrong_words(const struct cli *c, const struct err *e)
{
    int code = cli_usage(c, "%s", e->text);

    return c->verb && c->verb->wrong_words ? c->verb->wrong_words : code;
}

/*
 * Verbs write UTF-8. Cron, services and `su -` often name no locale: the C library then knows the
 * width of ASCII alone, and each other character would be replaced. So take the widths of C.UTF-8.
 * Not for the console, which draws with ASCII then, and not in a locale that somebody chose: the
 * bytes of UTF-8 may be control characters there.
 */
static void
know_widths(void)
{
    if (!strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968"))
        setlocale(LC_CTYPE, "C.UTF-8");
}

int
cli_main(int argc, char **argv)
{
    struct cli c = {.mem = arena_new()};
    struct err e = {0};
    void *options = NULL;
    bool help = false;
    int code;

    if (!cli_parse(&c, argc, argv, &options, &help, &e))
        code = wrong_words(&c, &e);
    else if (help)
        code = cli_flush(&c);
    else if (c.log_file && !log_open(c.log_file, &e))
        code = cli_fail(&c, &e);
    else {
        if (*c.verb->name)
            know_widths();
        c.loop = loop_new();
        code = c.verb->run(&c, options);
        if (c.db)
            db_free(c.db);
        cli_trust_done(&c);
        loop_free(c.loop);
        int flushed = cli_flush(&c);
        if (code == CLI_DONE)
            code = flushed;
    }
    log_close();
    arena_free(c.mem);
    return code;
}
