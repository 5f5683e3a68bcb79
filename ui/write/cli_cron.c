/*
 * `queuetop cron`: schedules. A change of a schedule is an action like any other (preview,
 * question, audit). The server reads the cron lines, so `next` prints the same times that the
 * scheduler uses.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/verbs.h"
#include "ui/facts/life.h"
#include "ui/facts/schedule_columns.h"
#include "ui/write/cli_act.h"

enum { NEXT_RUNS = 3, LAST_RUNS = 10, NEXT_MOST = 1000 };

struct cron_words {
    struct act_words act; /* must be first: its options write there */
    const char *queue, *kind, *payload, *type, *tz, *catch_up, *comment;
    int priority, max_tries, count;
    bool unique;
};

static const struct cron_words cron_defaults = {
    .act = ACT_WORDS_DEFAULTS, .priority = -1, .count = NEXT_RUNS};

#define S(f) offsetof(struct schedule_row, f)
/* clang-format off */
static const struct column show_columns[] = {
    {.name = "name", .title = "name", .kind = K_TEXT, .offset = S(name)},
    {.name = "cron", .title = "cron", .kind = K_TEXT, .offset = S(cron)},
    {.name = "tz", .title = "zone", .kind = K_TEXT, .offset = S(tz)},
    {.name = "queue", .title = "queue", .kind = K_TEXT, .offset = S(queue)},
    {.name = "kind", .title = "kind", .kind = K_NAME, .offset = S(kind)},
    {.name = "priority", .title = "priority", .kind = K_INT, .offset = S(priority)},
    {.name = "max_tries", .title = "max tries", .kind = K_INT, .offset = S(max_tries)},
    {.name = "unique", .title = "unique", .kind = K_BOOL, .offset = S(unique)},
    {.name = "catch_up", .title = "catch up", .kind = K_TEXT, .offset = S(catch_up)},
    {.name = "state", .title = "state", .kind = K_TEXT, .offset = S(state)},
    {.name = "paused_by", .title = "paused by", .kind = K_NAME, .offset = S(paused_by)},
    {.name = "pause_reason", .title = "because", .kind = K_NAME, .offset = S(pause_reason)},
    {.name = "last_run", .title = "last run", .kind = K_TIME, .offset = S(last_run_ms)},
    {.name = "last_job", .title = "last job", .kind = K_NAME, .offset = S(last_job)},
    {.name = "last_outcome", .title = "outcome", .kind = K_NAME, .offset = S(last_outcome)},
    {.name = "next_run", .title = "next run", .kind = K_TIME, .offset = S(next_run_ms)},
    {.name = "error", .title = "error", .kind = K_NAME, .offset = S(error)},
    {.name = "comment", .title = "comment", .kind = K_NAME, .offset = S(comment)},
    {.name = "payload_type", .title = "payload type", .kind = K_NAME, .offset = S(payload_type)},
    {.name = "payload", .title = "payload", .kind = K_NAME, .offset = S(payload)},
    {0},
};
#define R(f) offsetof(struct run_row, f)
static const struct column run_columns[] = {
    {.name = "due", .title = "RUN", .kind = K_TEXT, .offset = R(due)},
    {.name = "time", .title = "TIME", .kind = K_TIME, .offset = R(due_ms)},
    {.name = "outcome", .title = "OUTCOME", .kind = K_NAME, .offset = R(outcome)},
    {.name = "job", .title = "JOB", .kind = K_NAME, .offset = R(job)},
    {.name = "error", .title = "ERROR", .kind = K_NAME, .offset = R(error), .most = 60},
    {0},
};
static const struct column next_columns[] = {
    {.name = "due", .title = "NEXT", .kind = K_TEXT, .offset = R(due)},
    {.name = "time", .title = "TIME", .kind = K_TIME, .offset = R(due_ms)},
    {0},
};
/* clang-format on */

/* --- what is to be set ------------------------------------------------------------------------ */

static void
add_text(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(b, "%s\"%s\": ", b->len > 1 ? ", " : "", name);
    json_string(b, value, strlen(value));
}

static void
add_number(struct buf *b, const char *name, int value)
{
    buf_printf(b, "%s\"%s\": %d", b->len > 1 ? ", " : "", name, value);
}

/* Joins the words of a cron line, which may be one word or several. */
static char *
join_line(const struct cli *c, int from)
{
    struct buf b = {0};

    for (int i = from; i < c->nwords; i++)
        buf_printf(&b, "%s%s", i > from ? " " : "", c->words[i]);
    return b.data;
}

static char *
make_settings(const struct cli *c, const struct cron_words *w, int from)
{
    char *line = join_line(c, from);
    struct buf b = {0};

    buf_str(&b, "{");
    add_text(&b, "cron", line);
    add_text(&b, "tz", w->tz);
    add_text(&b, "queue", w->queue);
    add_text(&b, "kind", w->kind);
    add_text(&b, "payload_type", w->type);
    add_text(&b, "catch_up", w->catch_up);
    add_text(&b, "comment", w->comment);
    if (w->priority >= 0)
        add_number(&b, "priority", w->priority);
    if (w->max_tries > 0)
        add_number(&b, "max_tries", w->max_tries);
    if (w->unique)
        buf_printf(&b, "%s\"unique\": true", b.len > 1 ? ", " : "");
    buf_str(&b, "}");
    free(line);
    return b.data;
}

static int
cron_add(struct cli *c, const struct cron_words *w)
{
    if (w->type && !w->payload)
        return cli_usage(c, "--type goes with --payload");
    char *settings = make_settings(c, w, 2);
    int code = cli_act(c, &w->act,
                       &(struct intent){.act = ACT_CRON_SET,
                                        .schedule = c->words[1],
                                        .settings = settings,
                                        .payload = w->payload});
    free(settings);
    return code;
}

static int
cron_pause(struct cli *c, const struct cron_words *w)
{
    return cli_act(
        c, &w->act,
        &(struct intent){.act = ACT_CRON_PAUSE, .schedule = c->words[1], .force = w->act.force});
}

static int
cron_resume(struct cli *c, const struct cron_words *w)
{
    return cli_act(c, &w->act, &(struct intent){.act = ACT_CRON_RESUME, .schedule = c->words[1]});
}

static int
cron_run(struct cli *c, const struct cron_words *w)
{
    return cli_act(c, &w->act, &(struct intent){.act = ACT_CRON_RUN, .schedule = c->words[1]});
}

static int
cron_remove(struct cli *c, const struct cron_words *w)
{
    return cli_act(c, &w->act, &(struct intent){.act = ACT_CRON_REMOVE, .schedule = c->words[1]});
}

/* --- looking ---------------------------------------------------------------------------------- */

/* Warns of schedules that push no job. */
static void
say_life(struct cli_queue *q)
{
    static const enum section_id section = SEC_LIFE;
    struct rowset life = {0};
    struct err e = {0};
    struct trouble t[TROUBLES_MAX];

    if (!adapter_has(q->adapter, SEC_LIFE))
        return;
    if (!cli_ask(q, &section, 1, NULL, &life, &e)) {
        cli_say(q->cli, "whether a scheduler is alive: %s", e.text);
        return;
    }
    struct life_look look = {.row = life.n ? life.rows : NULL, .now_ms = q->now_ms};
    int n = look.row ? life_troubles(&look, q->cli->mem, t) : 0;
    for (int i = 0; i < n; i++)
        cli_say(q->cli, "%s: %s", t[i].where, t[i].what);
    rowset_free(&life);
}

/* Prints one section as a table, or as JSON with one object in a line. */
static int
print_section(struct cli *c, enum section_id section, const struct params *p,
              const struct column *columns, bool json)
{
    struct cli_queue q;
    struct rowset rows = {0};
    struct err e = {0};
    struct cli_table out;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    bool ok = cli_ask(&q, &section, 1, p, &rows, &e);
    int n = ok ? rows.n : 0;
    if (ok) {
        cli_table_begin(&out, json ? OUT_JSON : OUT_TABLE, q.source, columns);
        out.now_ms = q.now_ms;
        cli_table_rows(&out, rows.rows, n, rows.size);
        rowset_free(&rows);
    }
    if (ok && section == SEC_SCHEDULES && !json)
        say_life(&q);
    cli_close(&q);
    return cli_end(c, ok, n, &e);
}

static int
cron_list(struct cli *c, const struct cron_words *w)
{
    return print_section(c, SEC_SCHEDULES, NULL, schedule_columns, w->act.json);
}

static int
cron_next(struct cli *c, const struct cron_words *w)
{
    struct params p = {0};
    char *settings = make_settings(c, w, 1);

    params_set(&p, PARAM_SETTINGS, settings);
    params_set_int(&p, PARAM_N, w->count);
    free(settings);
    int code = print_section(c, SEC_CRON_NEXT, &p, next_columns, w->act.json);
    params_done(&p);
    return code;
}

static void
add_rows(struct buf *b, const char *name, const struct column *columns, const struct rowset *rows)
{
    struct cli_table o;

    cli_table_begin(&o, OUT_JSON, NULL, columns);
    buf_printf(b, ", \"%s\": [", name);
    for (int i = 0; i < rows->n; i++) {
        buf_str(b, i ? ", {" : "{");
        cli_table_members(&o, (const char *)rows->rows + (size_t)i * rows->size, b);
        buf_str(b, "}");
    }
    buf_str(b, "]");
}

static void
print_schedule(struct cli_table *o, const struct rowset *rows, const struct rowset *next, bool json)
{
    struct buf b = {0};
    struct cli_table part;

    if (json) {
        buf_str(&b, "{");
        cli_table_members(o, rows[0].rows, &b);
        add_rows(&b, "next", next_columns, next);
        add_rows(&b, "runs", run_columns, &rows[1]);
        buf_str(&b, "}");
        cli_table_json(b.data, b.len);
        buf_free(&b);
        return;
    }
    cli_table_sideways(o, rows[0].rows);
    cli_table_begin(&part, OUT_TABLE, o->source, next_columns);
    cli_table_rows(&part, next->rows, next->n, next->size);
    cli_table_begin(&part, OUT_TABLE, o->source, run_columns);
    cli_table_rows(&part, rows[1].rows, rows[1].n, rows[1].size);
}

/* The next times of a schedule that has some. */
static bool
ask_next(struct cli_queue *q, const struct schedule_row *s, struct rowset *next, struct err *e)
{
    enum section_id section = SEC_CRON_NEXT;
    struct params p = {0};
    struct buf b = {0};

    if (s->next_run_ms == FIELD_NULL || !adapter_has(q->adapter, SEC_CRON_NEXT))
        return true;
    buf_str(&b, "{");
    add_text(&b, "cron", s->cron);
    add_text(&b, "tz", s->tz);
    buf_str(&b, "}");
    params_set(&p, PARAM_SETTINGS, b.data);
    params_set_int(&p, PARAM_N, NEXT_RUNS);
    bool ok = cli_ask(q, &section, 1, &p, next, e);
    params_done(&p);
    buf_free(&b);
    return ok;
}

static int
cron_show(struct cli *c, const struct cron_words *w)
{
    static const enum section_id sections[] = {SEC_SCHEDULES, SEC_CRON_RUNS};
    struct cli_queue q;
    struct params p = {0};
    struct rowset rows[2] = {{0}}, next = {0};
    struct err e = {0};
    struct cli_table out;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    params_set(&p, PARAM_SCHEDULE, c->words[1]);
    params_set_int(&p, PARAM_LIMIT, LAST_RUNS);
    bool ok = cli_ask(&q, sections, 2, &p, rows, &e);
    int n = ok ? rows[0].n : 0;
    if (ok && n > 0 && (ok = ask_next(&q, rows[0].rows, &next, &e))) {
        cli_table_begin(&out, w->act.json ? OUT_JSON : OUT_TABLE, q.source, show_columns);
        out.now_ms = q.now_ms;
        print_schedule(&out, rows, &next, w->act.json);
    }
    rowset_free(&rows[0]);
    rowset_free(&rows[1]);
    rowset_free(&next);
    params_done(&p);
    cli_close(&q);
    if (ok && n == 0)
        cli_say(c, "no schedule is called \"%s\"", c->words[1]);
    return cli_end(c, ok, n, &e);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct what {
    const char *name, *words;
    int min, max; /* number of words, with the name itself */
    int (*run)(struct cli *c, const struct cron_words *w);
} whats[] = {
    {"add",    "NAME 'LINE'", 2, 7, cron_add   },
    {"list",   "",            1, 1, cron_list  },
    {"show",   "NAME",        2, 2, cron_show  },
    {"next",   "'LINE'",      2, 6, cron_next  },
    {"pause",  "NAME",        2, 2, cron_pause },
    {"resume", "NAME",        2, 2, cron_resume},
    {"run",    "NAME",        2, 2, cron_run   },
    {"remove", "NAME",        2, 2, cron_remove},
};

static int
run_cron(struct cli *c, const void *options)
{
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        const struct what *t = &whats[i];
        if (strcmp(c->words[0], t->name) != 0)
            continue;
        if (c->nwords < t->min || c->nwords > t->max)
            return cli_usage(c, "what it takes: %s %s", t->name, t->words);
        return t->run(c, options);
    }
    return cli_usage(c, "there is no '%s': add, list, show, next, pause, resume, run, remove",
                     c->words[0]);
}

/* clang-format off */
#define F(f) offsetof(struct cron_words, f)
static const struct cli_option cron_options[] = {
    {"queue", 'q', "Q", CLI_TEXT, F(queue), "add: into this queue", 0, 0},
    {"kind", 'k', "K", CLI_TEXT, F(kind), "add: what sort of job it is", 0, 0},
    {"payload", 0, "JSON", CLI_TEXT, F(payload), "add: its payload (JSON, unless --type says else)", 0, 0},
    {"type", 't', "MIME", CLI_TEXT, F(type), "add: the payload is a text of that type", 0, 0},
    {"tz", 'z', "ZONE", CLI_TEXT, F(tz), "add, next: by the clock of this zone (Europe/Berlin; UTC)", 0, 0},
    {"catch-up", 0, "HOW", CLI_TEXT, F(catch_up), "add: which missed runs are made up for: none, latest (default), all", 0, 0},
    {"priority", 0, "N", CLI_INT, F(priority), "add: 0 (soonest) to 9, default 5", 0, 9},
    {"max-tries", 0, "N", CLI_INT, F(max_tries), "add: tries before a job counts as failed", 1, 32767},
    {"unique", 'u', NULL, CLI_FLAG, F(unique), "add: no run while an earlier job is unfinished", 0, 0},
    {"comment", 0, "T", CLI_TEXT, F(comment), "add: a note", 0, 0},
    {"create", 0, NULL, CLI_FLAG, F(act.force), "pause: also a schedule of which no job is known", 0, 0},
    {"count", 'n', "N", CLI_INT, F(count), "next: how many times to list (3)", 1, NEXT_MOST},
    ACT_OPTIONS, {0}};

const struct cli_verb verbs_cron[] = {
    {.name = "cron", .words = "add|list|show|next|pause|resume|run|remove [NAME] ['LINE']",
     .help = "Schedules: jobs that are pushed by the clock", .min_words = 1, .max_words = 7,
     .examples = {"cron add nightly '0 3 * * *' -q reports --tz Europe/Berlin", "cron next '*/10 8-18 * * 1-5' --count 20"},
     .options = cron_options, .size = sizeof(struct cron_words), .defaults = &cron_defaults, .run = run_cron,
     .more = "A line is: minute hour day-of-month month day-of-week (numbers, names, *, 1-5, 1,5, */10),\n"
             "or @hourly, @daily, @weekly, @monthly, @yearly, or @every 90s. `add` adds NAME, or changes those of\n"
             "its settings that are given; `next` only shows when a line would run. When the clock changes, a line\n"
             "at fixed times runs once a day; a line with * first in minute or hour follows real time."},
    {0},
};
/* clang-format on */
