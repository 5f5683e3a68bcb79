/*
 * `queuetop queue NAME`: shows or changes the settings of a queue. The values of the options go to
 * the server unchanged: the server has the rules (setting_rules), so every client gets the same
 * errors.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/verbs.h"
#include "ui/write/cli_act.h"

/* clang-format off */
#define SETTING(id, place, label, hint) SET_##id,
#define SETTING_OPTION(id, option, arg, help)
enum setting {
#include "gen/settings.def"
    SETTINGS
};

#define SETTING(id, place, label, hint) [SET_##id] = #id,
#define SETTING_OPTION(id, option, arg, help)
static const char *const names[SETTINGS] = {
#include "gen/settings.def"
};
/* clang-format on */

struct queue_words {
    struct act_words act; /* must be first: its options write there */
    bool pause, resume;
    const char *value[SETTINGS]; /* NULL = not given */
};

static const struct queue_words queue_defaults = {.act = ACT_WORDS_DEFAULTS};

#define S(f) offsetof(struct setting_row, f)
/* clang-format off */
static const struct column setting_columns[] = {
    {.name = "setting", .title = "SETTING", .kind = K_TEXT, .offset = S(setting)},
    {.name = "value", .title = "VALUE", .kind = K_TEXT, .offset = S(value)},
    {.name = "default", .title = "DEFAULT", .kind = K_TEXT, .offset = S(standard)},
    {.name = "note", .title = "WHAT IT IS", .kind = K_TEXT, .offset = S(note)},
    {0},
};
/* clang-format on */

static void
add_setting(struct buf *b, const char *name, const char *value, size_t len)
{
    buf_printf(b, "%s\"%s\": ", b->len > 1 ? ", " : "", name);
    json_string(b, value, len);
}

static void
add_given(struct buf *b, const char *name, const char *value)
{
    if (value)
        add_setting(b, name, value, strlen(value));
}

/* Adds "5s..1h": the first wait and the longest; "5s": only the first. */
static void
add_backoff(struct buf *b, const char *value)
{
    const char *dots = value ? strstr(value, "..") : NULL;

    if (dots) {
        add_setting(b, "backoff_base", value, (size_t)(dots - value));
        add_given(b, "backoff_max", dots + 2);
    } else {
        add_given(b, "backoff_base", value);
        if (value && !strcmp(value, "default"))
            add_given(b, "backoff_max", value);
    }
}

static char *
make_settings(const struct queue_words *w)
{
    struct buf b = {0};

    buf_str(&b, "{");
    if (w->pause || w->resume)
        add_given(&b, "paused", w->pause ? "true" : "false");
    for (int i = 0; i < SETTINGS; i++)
        if (i == SET_backoff_base)
            add_backoff(&b, w->value[i]);
        else
            add_given(&b, names[i], w->value[i]);
    buf_str(&b, "}");
    return b.data;
}

static int
show_settings(struct cli *c, const struct queue_words *w)
{
    static const enum section_id section = SEC_QUEUE_SETTINGS;
    struct cli_queue q;
    struct params p = {0};
    struct rowset rows = {0};
    struct err e = {0};
    struct cli_table out;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    params_set(&p, PARAM_QUEUE, c->words[0]);
    bool ok = cli_ask(&q, &section, 1, &p, &rows, &e);
    int n = ok ? rows.n : 0;
    if (n > 0) {
        cli_table_begin(&out, w->act.json ? OUT_JSON : OUT_TABLE, q.source, setting_columns);
        cli_table_rows(&out, rows.rows, n, rows.size);
    }
    rowset_free(&rows);
    params_done(&p);
    cli_close(&q);
    if (!ok)
        return cli_fail(c, &e);
    if (n == 0)
        cli_say(c, "no job was ever seen in queue \"%s\", and nothing is set for it", c->words[0]);
    int code = cli_flush_look(c);
    return code != CLI_DONE ? code : n > 0 ? CLI_DONE : CLI_NOTHING;
}

static int
run_queue(struct cli *c, const void *options)
{
    const struct queue_words *w = options;

    if (w->pause && w->resume)
        return cli_usage(c, "--pause or --resume, not both");
    char *settings = make_settings(w);
    int code = !strcmp(settings, "{}")
                   ? show_settings(c, w)
                   : cli_act(c, &w->act,
                             &(struct intent){
                                 .act = ACT_QUEUE_SET, .queue = c->words[0], .settings = settings});
    free(settings);
    return code;
}

/* clang-format off */
#define F(f) offsetof(struct queue_words, f)
static const struct cli_option queue_options[] = {
    {"pause", 0, NULL, CLI_FLAG, F(pause), "hand out none of its jobs", 0, 0},
    {"resume", 0, NULL, CLI_FLAG, F(resume), "hand them out again", 0, 0},
#define SETTING(id, place, label, hint)
#define SETTING_OPTION(id, option, arg, help) {option, 0, arg, CLI_TEXT, F(value[SET_##id]), help, 0, 0},
#include "gen/settings.def"
    ACT_OPTIONS, {0}};
static const char *const also[][2] = {
#define SETTING(id, place, label, hint)
#define SETTING_OPTION(id, option, arg, help) {#id, option},
#include "gen/settings.def"
    {NULL, NULL}};

const struct cli_verb verbs_queue[] = {
    {.name = "queue", .examples = {"queue mails", "queue mails --rate 50/s --limit 9 --yes"},
     .words = "QUEUE", .help = "What is set for a queue: show it, or set limits, weight, tries, history",
     .min_words = 1, .max_words = 1, .options = queue_options, .also = also, .size = sizeof(struct queue_words), .defaults = &queue_defaults,
     .run = run_queue,
     .more = "Without options it shows what is set. The value `default` takes a setting back."},
    {0},
};
/* clang-format on */
