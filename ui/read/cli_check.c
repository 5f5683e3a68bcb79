/*
 * `queuetop check`: a plugin for Nagios, Icinga, Zabbix and similar programs
 * (https://www.monitoring-plugins.org/doc/guidelines.html). It prints one line and returns one of
 * their exit codes (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN); performance data comes after a bar. No
 * server is CRITICAL, wrong words are UNKNOWN; a label contains no = and no '.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/owned.h"
#include "model/base/text.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/verbs.h"
#include "ui/facts/checks.h"
#include "ui/read/cli_queues.h"
#include "ui/term/fmt.h"

enum plugin { PLUGIN_OK, PLUGIN_WARNING, PLUGIN_CRITICAL, PLUGIN_UNKNOWN };
enum { LINE_MOST = 1000, SAID_MOST = 6, LEASES_MOST = 10000 };

static const char *const names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

struct check_words {
    struct cli_list warn, crit, queues;
    const char *config;
    bool json, list;
};

struct check_run {
    struct cli_queue q;
    const struct check_words *words;
    struct check_limits limits;
    struct checks checks;
    bool source_is_read;
    int nqueues;
    int64_t ready;
    const char *unknown; /* a figure that has a limit but is not known; NULL = none */
};

/* --- limits ----------------------------------------------------------------------------------- */

/* Reads "warn oldest = 1m", "crit oldest@mails = 5m", with optional blanks around the = and #
 * comments. */
static bool
read_line(struct cli *c, struct check_limits *l, char *line, struct err *e)
{
    char *is = strrchr(line, '='), *value = is ? is + 1 + strspn(is + 1, " \t") : NULL;
    bool is_crit = !strncmp(line, "crit ", 5);

    if (!is || (!is_crit && strncmp(line, "warn ", 5) != 0))
        return fail(e, ERR_USAGE, "a line is \"warn NAME = VALUE\" or \"crit NAME = VALUE\"");
    for (char *end = value + strlen(value); end > value && strchr(" \t\r", end[-1]);)
        *--end = '\0';
    while (is > line && strchr(" \t", is[-1]))
        is--;
    const char *name = line + 5 + strspn(line + 5, " \t");
    if (is < name)
        return fail(e, ERR_USAGE, "the name is missing");
    return check_limit_add(
        l, is_crit, arena_printf(c->mem, "%.*s=%s", (int)(is - name), name, value), c->mem, e);
}

static bool
read_config(struct cli *c, const char *path, struct check_limits *l, struct err *e)
{
    int fd = owned_read(path, e);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char line[LINE_MOST];
    int number = 0;
    bool ok = true;

    if (!f)
        return false;
    while (ok && fgets(line, sizeof line, f)) {
        number++;
        size_t len = strlen(line);
        bool is_whole = len > 0 && line[len - 1] == '\n';
        char *text = line + strspn(line, " \t");
        if (is_whole)
            line[--len] = '\0';
        if (!is_whole && !feof(f))
            ok = fail(e, ERR_USAGE, "a line is longer than %d bytes", LINE_MOST - 2);
        else if (*text && *text != '#' && *text != '\r')
            ok = read_line(c, l, text, e);
        if (!ok)
            fail_in(e, "%s:%d", path, number);
    }
    if (ok && ferror(f))
        ok = fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    fclose(f);
    return ok;
}

/* Reads the file first, so that the limits on the command line replace it. */
static bool
read_limits(struct cli *c, const struct check_words *w, struct check_limits *l, struct err *e)
{
    const struct cli_list *lists[] = {&w->warn, &w->crit};

    if (w->config && !read_config(c, w->config, l, e))
        return false;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lists[k]->n; i++)
            if (!check_limit_add(l, k == 1, lists[k]->items[i], c->mem, e))
                return false;
    return true;
}

/* --- what is read ----------------------------------------------------------------------------- */

struct check_rows {
    struct queues_look queues;
    struct rowset server, sessions, minutes, leases;
};

static void
rows_done(struct check_rows *r)
{
    queues_done(&r->queues);
    rowset_free(&r->server);
    rowset_free(&r->sessions);
    rowset_free(&r->minutes);
    rowset_free(&r->leases);
}

static bool
is_asked(const struct check_words *w, const char *queue)
{
    for (int i = 0; i < w->queues.n; i++)
        if (!strcmp(w->queues.items[i], queue))
            return true;
    return w->queues.n == 0;
}

static void
keep_queues(const struct check_words *w, struct queues_look *l)
{
    int n = 0;

    for (int i = 0; i < l->n; i++)
        if (is_asked(w, l->lines[i].q.queue))
            l->lines[n++] = l->lines[i];
    l->n = n;
}

/* Collects the rows for the checks. If the adapter has no heartbeats, no node counts as dead. If
 * our role may not see the sessions of others, nothing is judged by the sessions of the server. */
static struct check_look
look_of(struct check_run *r, const struct check_rows *rows)
{
    struct check_look look = {.asked = r->words->queues.items,
                              .nasked = r->words->queues.n,
                              .lines = rows->queues.lines,
                              .nlines = rows->queues.n,
                              .life = store_life(rows->queues.store),
                              .foreign = rows->queues.foreign,
                              .is_native = !strcmp(adapter_name(r->q.adapter), "native"),
                              .has_heartbeats = adapter_has(r->q.adapter, SEC_NODES),
                              .has_minutes = adapter_has(r->q.adapter, SEC_MINUTES),
                              .has_leases = adapter_has(r->q.adapter, SEC_LEASES),
                              .now_ms = r->q.now_ms};
    const struct health_server *server = rows->server.n ? rows->server.rows : NULL;
    struct trouble t[TROUBLES_MAX];

    look.nodes = store_nodes(rows->queues.store, &look.nnodes);
    if (server && server->hidden == 0)
        look.server = server;
    if (adapter_risk(r->q.adapter)) /* is said when the adapter is closed */
        look.risk = arena_printf(r->q.cli->mem, "%s", adapter_risk(r->q.adapter));
    look.sessions = rows->sessions.rows;
    look.nsessions = rows->sessions.n;
    look.minutes = rows->minutes.rows;
    look.nminutes = rows->minutes.n;
    look.leases = rows->leases.rows;
    look.nleases = rows->leases.n;
    bool no_worker = false;
    for (int i = queues_troubles(&r->q, &rows->queues, t) - 1; i >= 0; i--)
        if (t[i].id != COND_WORKER)
            look.no_scheduler = arena_printf(r->q.cli->mem, "%s: %s", t[i].where, t[i].what);
        else
            no_worker = look.life->workers == 0;
    if (no_worker)
        for (int i = 0; i < look.nlines; i++)
            look.waiting += look.lines[i].q.paused != 1 && look.lines[i].q.ready > 0
                                ? look.lines[i].q.ready
                                : 0;
    return look;
}

static bool
ask_more(struct check_run *r, struct check_rows *rows, struct err *e)
{
    static const enum section_id health[] = {SEC_HEALTH_SERVER, SEC_HEALTH_SESSIONS},
                                 minutes = SEC_MINUTES, leases = SEC_LEASES;
    struct rowset out[2];
    struct params p = {0};
    bool ok = true;

    if (!cli_ask(&r->q, health, 2, NULL, out, e))
        return false;
    rows->server = out[0];
    rows->sessions = out[1];
    struct check_look look = look_of(r, rows);
    if (look.has_minutes && check_needs_minutes(&look, &r->limits))
        ok = cli_ask(&r->q, &minutes, 1, NULL, &rows->minutes, e);
    if (ok && look.has_leases && check_needs_leases(&look, &r->limits)) {
        params_set_int(&p, PARAM_LIMIT, LEASES_MOST);
        ok = cli_ask(&r->q, &leases, 1, &p, &rows->leases, e);
        params_done(&p);
    }
    return ok;
}

static bool
has_queue(const struct check_look *look, const char *queue)
{
    for (int i = 0; i < look->nlines; i++)
        if (!strcmp(look->lines[i].q.queue, queue))
            return true;
    return false;
}

/* Why the check can't judge: a queue with a limit does not exist, or the queue system does not have
 * the figure of a limit. A sentence; NULL = it can judge. If there are no queues at all, no limit
 * of a queue is exceeded. */
static const char *
find_unknown(const struct check_run *r, const struct check_look *look)
{
    struct arena *mem = r->q.cli->mem;

    for (int i = 0; i < r->words->queues.n; i++)
        if (!has_queue(look, r->words->queues.items[i]))
            return arena_printf(mem, "there is no queue %s", r->words->queues.items[i]);
    for (int i = 0; i < r->limits.n; i++) {
        const struct check_limit *l = &r->limits.list[i];
        const struct condition *k = &conditions[l->id];
        bool none = k->of == OF_QUEUE && look->nlines == 0;
        if (l->queue && !has_queue(look, l->queue))
            return arena_printf(mem, "there is no queue %s", l->queue);
        if (!isnan(l->value) && !none && !r->checks.seen[l->id].known)
            return arena_printf(mem, "%s is not known here", k->name);
    }
    return NULL;
}

/* Copies the names of the queues, because the rows will be freed and the names are still printed.
 */
static void
keep_names(struct check_run *r)
{
    struct checks *c = &r->checks;

    for (int i = 0; i < CONDITIONS; i++)
        if (c->seen[i].queue)
            c->seen[i].queue = arena_printf(r->q.cli->mem, "%s", c->seen[i].queue);
    for (int i = 0; i < c->nown; i++)
        if (c->own[i].seen.queue)
            c->own[i].seen.queue = arena_printf(r->q.cli->mem, "%s", c->own[i].seen.queue);
}

static bool
judge(struct check_run *r, struct err *e)
{
    struct check_rows rows = {.server = {0}};

    if (!queues_look(&r->q, BESIDES_LIFE, &rows.queues, e))
        return false;
    keep_queues(r->words, &rows.queues);
    bool ok = ask_more(r, &rows, e);
    if (ok) {
        struct check_look look = look_of(r, &rows);
        checks_judge(&look, &r->limits, r->q.cli->mem, &r->checks);
        r->unknown = find_unknown(r, &look);
        r->source_is_read = true;
        r->nqueues = look.nlines;
        for (int i = 0; i < look.nlines; i++)
            r->ready += look.lines[i].q.ready > 0 ? look.lines[i].q.ready : 0;
    }
    keep_names(r);
    rows_done(&rows);
    return ok;
}

/* --- what is said ----------------------------------------------------------------------------- */

static enum plugin
state_of(const struct check_seen *s)
{
    return s->verdict == VERDICT_BAD    ? PLUGIN_CRITICAL
           : s->verdict == VERDICT_WARN ? PLUGIN_WARNING
                                        : PLUGIN_OK;
}

static enum plugin
worst_of(const struct check_run *r)
{
    enum plugin worst = PLUGIN_OK;

    for (int i = 0; i < CONDITIONS; i++)
        if (state_of(&r->checks.seen[i]) > worst)
            worst = state_of(&r->checks.seen[i]);
    return worst == PLUGIN_OK && r->unknown ? PLUGIN_UNKNOWN : worst;
}

static void
say_one(struct buf *out, const struct check_seen *s)
{
    if (out->len)
        buf_str(out, "; ");
    if (s->queue)
        buf_printf(out, "%s: ", s->queue);
    buf_str(out, s->text);
    if (s->bad > 1)
        buf_printf(out, " (and %s)", fmt_plural(s->bad - 1, "more queue").s);
}

static void
say_calm(const struct check_run *r, struct buf *out)
{
    const struct check_seen *oldest = &r->checks.seen[COND_OLDEST],
                            *worker = &r->checks.seen[COND_WORKER];

    buf_str(out, fmt_plural(r->nqueues, "queue").s);
    if (r->nqueues)
        buf_printf(out, ", %s ready", fmt_plural(r->ready, "job").s);
    if (oldest->known && oldest->value > 0)
        buf_printf(out, ", the oldest for %s", fmt_age((int64_t)(oldest->value * 1000)).s);
    if (worker->known)
        buf_printf(out, ", %s", worker->text);
}

/* Appends the worst figures first; the good ones in a few words. */
static void
say_all(const struct check_run *r, struct buf *out)
{
    const struct checks *c = &r->checks;

    for (int v = VERDICT_BAD; v >= VERDICT_WARN; v--)
        for (int i = 0; i < CONDITIONS; i++)
            if (c->seen[i].known && (int)c->seen[i].verdict == v)
                say_one(out, &c->seen[i]);
    if (r->unknown)
        buf_printf(out, "%s%s", out->len ? "; " : "", r->unknown);
    if (!out->len)
        say_calm(r, out);
}

static void
add_number(struct buf *out, double value)
{
    if (isnan(value))
        return;
    buf_printf(out, fabs(value - round(value)) < 1e-9 ? "%.0f" : "%.3f", value);
}

static void
add_label(struct buf *out, const char *name, const char *queue)
{
    buf_printf(out, " '%s%s", name, queue ? "@" : "");
    for (const char *s = queue ? queue : ""; *s; s++)
        buf_printf(out, "%c", *s == '\'' || *s == '=' || *s == '|' ? '_' : *s);
    buf_str(out, "'=");
}

/* 'label'=value[unit];warn;crit;min. A value that is not known or infinite is U. */
static void
add_figure(struct buf *out, const struct condition *k, const char *queue,
           const struct check_seen *s)
{
    add_label(out, k->name, queue);
    if (isfinite(s->value)) {
        add_number(out, s->value);
        buf_str(out, k->unit == UNIT_SECONDS ? "s" : "");
    } else
        buf_str(out, "U");
    buf_str(out, ";");
    add_number(out, s->warn);
    buf_str(out, ";");
    add_number(out, s->crit);
    buf_str(out, ";0");
}

static void
add_figures(const struct checks *c, struct buf *out)
{
    buf_str(out, " |");
    for (int i = 0; i < CONDITIONS; i++)
        if (c->seen[i].known)
            add_figure(out, &conditions[i], NULL, &c->seen[i]);
    for (int i = 0; i < c->nown; i++)
        add_figure(out, &conditions[c->own[i].id], c->own[i].seen.queue, &c->own[i].seen);
}

static void
add_json_number(struct buf *out, const char *name, double value)
{
    buf_printf(out, ",\"%s\":", name);
    if (isfinite(value))
        add_number(out, value);
    else
        buf_str(out, "null");
}

static void
add_json_one(struct buf *out, const struct condition *k, const struct check_seen *s, bool own)
{
    buf_printf(out, "{\"check\":\"%s\",\"queue\":", k->name);
    if (s->queue)
        json_string(out, s->queue, strlen(s->queue));
    else
        buf_str(out, "null");
    add_json_number(out, "value", s->value);
    buf_printf(out, ",\"unit\":\"%s\"", k->unit == UNIT_SECONDS ? "s" : "");
    add_json_number(out, "warn", s->warn);
    add_json_number(out, "crit", s->crit);
    buf_printf(out, ",\"status\":\"%s\"", names[state_of(s)]);
    if (!own)
        buf_printf(out, ",\"queues_above\":%d", s->queue ? s->bad : 0);
    buf_str(out, ",\"text\":");
    json_string(out, s->text, strlen(s->text));
    buf_str(out, "}");
}

static void
print_json(const struct check_run *r, enum plugin state, const char *text)
{
    struct buf out = {0};
    const struct checks *c = &r->checks;
    bool first = true;

    buf_printf(&out, "{\"source\":");
    if (r->q.source)
        json_string(&out, r->q.source, strlen(r->q.source));
    else
        buf_str(&out, "null");
    buf_printf(&out, ",\"status\":\"%s\",\"exit\":%d,\"text\":", names[state], (int)state);
    json_string(&out, text, strlen(text));
    buf_str(&out, ",\"checks\":[");
    for (int i = 0; i < CONDITIONS; i++)
        if (c->seen[i].known) {
            buf_str(&out, first ? "" : ",");
            add_json_one(&out, &conditions[i], &c->seen[i], false);
            first = false;
        }
    for (int i = 0; i < c->nown; i++) {
        buf_str(&out, first ? "" : ",");
        add_json_one(&out, &conditions[c->own[i].id], &c->own[i].seen, true);
        first = false;
    }
    buf_str(&out, "]}");
    cli_table_json(out.data, out.len);
    buf_free(&out);
}

/* Prints the text as one line: a bar would begin the figures, and a line break the long text. */
static void
print_line(const struct check_run *r, enum plugin state, const char *text)
{
    struct buf out = {0};

    buf_printf(&out, "QUEUETOP %s: ", names[state]);
    for (const char *s = text; *s; s++)
        buf_printf(&out, "%c", *s == '|' ? '/' : *s == '\n' || *s == '\r' ? ' ' : *s);
    if (r->source_is_read)
        add_figures(&r->checks, &out);
    cli_table_line(out.data, out.len);
    buf_free(&out);
}

static int
tell(const struct check_run *r, enum plugin state, const char *text)
{
    if (r->words->json)
        print_json(r, state, text);
    else
        print_line(r, state, text);
    return cli_flush(r->q.cli) == CLI_DONE ? (int)state : PLUGIN_UNKNOWN;
}

/* A server that can't be reached is CRITICAL, because the check exists to find this; so is a queue
 * whose functions refuse because of the rights of others (only_ours() in sql/core/00_rights.sql).
 * If the server refuses another request, the check is set up wrongly: UNKNOWN. */
static int
tell_error(const struct check_run *r, const struct err *e)
{
    bool is_down = e->kind == ERR_CONN || e->kind == ERR_TIMEOUT ||
                   (!strcmp(e->sqlstate, "42501") && !strcmp(e->constraint, "rights_of_others"));

    return tell(r, is_down ? PLUGIN_CRITICAL : PLUGIN_UNKNOWN, e->text);
}

static int
list_checks(const struct cli *c)
{
    printf("%-12s %-7s %-7s WHAT\n", "CHECK", "WARN", "CRIT");
    for (const struct condition *k = conditions; k < conditions + CONDITIONS; k++)
        if (k->is_check)
            printf("%-12s %-7s %-7s %s%s\n", k->name, condition_limit(k, k->warn).s,
                   condition_limit(k, k->bad).s, k->help, k->of == OF_QUEUE ? " (of a queue)" : "");
    return cli_flush_look(c);
}

static int
run_check(struct cli *c, const void *options)
{
    struct check_run *r = arena_alloc(c->mem, sizeof *r);
    struct err e = {0};
    struct buf text = {0};

    *r = (struct check_run){.words = options, .q = {.cli = c}};
    if (r->words->list)
        return list_checks(c);
    if (!read_limits(c, r->words, &r->limits, &e) || !cli_open(c, false, &r->q, &e))
        return tell_error(r, &e);
    bool ok = judge(r, &e);
    cli_close(&r->q);
    if (!ok)
        return tell_error(r, &e);
    enum plugin state = worst_of(r);
    say_all(r, &text);
    int code = tell(r, state, text.data);
    buf_free(&text);
    return code;
}

/* --- the table -------------------------------------------------------------------------------- */

#define F(f) offsetof(struct check_words, f)
/* clang-format off */
static const struct cli_option options[] = {
    {"warn", 'w', "LIMIT", CLI_EACH, F(warn), "NAME=VALUE or NAME@QUEUE=VALUE: WARNING above it; off takes it away", 0, 0},
    {"crit", 'c', "LIMIT", CLI_EACH, F(crit), "the same for CRITICAL", 0, 0},
    {"queue", 'q', "Q", CLI_EACH, F(queues), "of this queue only; again for more", 0, 0},
    {"config", 0, "FILE", CLI_TEXT, F(config), "limits, a line each: warn oldest@mails = 5m", 0, 0},
    {"list", 0, NULL, CLI_FLAG, F(list), "list the checks with the limits that hold by themselves", 0, 0},
    {"json", 0, NULL, CLI_FLAG, F(json), "one JSON object instead of the plugin's line", 0, 0},
    {0},
};
/* clang-format on */

const struct cli_verb verbs_check[] = {
    {
     .name = "check",
     .examples = {"check -d app -c oldest=10m -c oldest@mails=2m -w backlog=5000",
                     "check -d app --config /etc/queuetop/check --json"},
     .words = "",
     .help = "Judge the queues for a monitoring system: one line, exit code 0 to 3",
     .options = options,
     .size = sizeof(struct check_words),
     .run = run_check,
     .wrong_words = PLUGIN_UNKNOWN,
     .more =
            "exit: 0 OK, 1 WARNING, 2 CRITICAL (also: no server), 3 UNKNOWN (also: wrong words).\n"
            "--list names the checks. Times are written as 90s, 5m, 2h, other limits as numbers.", },
    {0    },
};
