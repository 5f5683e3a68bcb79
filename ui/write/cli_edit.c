/*
 * `queuetop edit ID`: gives a job another payload and requeues it. The payload comes from an
 * option, a file, or the user's editor. Texts, guards and question are those of the console's key
 * e.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/verbs.h"
#include "ui/facts/payload.h"
#include "ui/widget/editor.h"
#include "ui/write/cli_act.h"

struct edit_words {
    struct act_words act;
    const char *payload, *file;
};
static const struct edit_words edit_defaults = {.act = ACT_WORDS_DEFAULTS};

struct edit {
    struct cli *cli;
    const struct edit_words *words;
    const char *id;
    struct payload payload;
    bool came; /* the editor has ended */
    struct err error;
    bool ok;
};

static bool
read_job(struct edit *ed, int *code)
{
    struct cli_queue q;
    struct err e = {0};
    struct params p = {0};
    struct rowset rows = {0};
    const enum section_id section = SEC_JOB;

    *code = CLI_NOTHING;
    if (!cli_open(ed->cli, false, &q, &e)) {
        *code = cli_fail(ed->cli, &e);
        return false;
    }
    ed->id = cli_full_id(&q, SEC_JOBS, ed->id, &e);
    if (!ed->id) {
        *code = cli_fail(ed->cli, &e);
        cli_close(&q);
        return false;
    }
    params_set_list(&p, PARAM_IDS, &ed->id, 1);
    bool ok = cli_ask(&q, &section, 1, &p, &rows, &e);
    const char *why = NULL;
    if (!ok) {
        *code = cli_fail(ed->cli, &e);
    } else if (rows.n == 0) {
        cli_say(ed->cli, "there is no job %s", ed->id);
        ok = false;
    } else if ((why = payload_why_not(rows.rows))) {
        cli_say(ed->cli, "%s", why);
        *code = CLI_REFUSED;
        ok = false;
    } else {
        payload_take(&ed->payload, rows.rows);
    }
    rowset_free(&rows);
    params_done(&p);
    if (q.place.identity) /* the edited text goes back to this database only */
        ed->cli->place = arena_printf(ed->cli->mem, "%s", q.place.identity);
    cli_close(&q);
    return ok;
}

static bool
read_file(const char *name, struct buf *out, struct err *e)
{
    bool dash = !strcmp(name, "-");
    int fd = dash ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    char part[65536];
    ssize_t n = 0;

    if (fd < 0)
        return fail(e, ERR_USAGE, "%s: %s", name, strerror(errno));
    buf_str(out, "");
    while (out->len <= EDITOR_MOST && (n = read(fd, part, sizeof part)) > 0)
        buf_add(out, part, (size_t)n);
    int why = errno;
    if (!dash)
        close(fd);
    if (n < 0)
        return fail(e, ERR_SYS, "%s: %s", name, strerror(why));
    return out->len <= EDITOR_MOST ||
           fail(e, ERR_USAGE, "%d MiB is the most that can be edited", EDITOR_MOST >> 20);
}

static void
came_back(void *ctx, const char *text, size_t len, const struct err *e)
{
    struct edit *ed = ctx;

    ed->came = true;
    ed->error = *e;
    ed->ok = text && payload_type(&ed->payload, text, len, &ed->error);
}

static void
not_for_us(void *ctx, int signo)
{
    (void)ctx;
    (void)signo;
}

/* Runs the editor once. The editor has the terminal, so Ctrl-C is a key of the editor. */
static bool
edit_once(struct edit *ed)
{
    const char *text = ed->payload.typed ? ed->payload.typed : ed->payload.shown;
    struct editor *e =
        editor_open(ed->cli->loop, payload_suffix(&ed->payload), text, strlen(text), &ed->error);

    if (!e)
        return false;
    loop_on_signal(ed->cli->loop, SIGINT, not_for_us, NULL);
    ed->came = false;
    editor_then(e, came_back, ed);
    bool ran = loop_until(ed->cli->loop, &ed->came, 0, &ed->error);
    editor_free(e);
    return ran && ed->ok;
}

/* Opens the editor again with the user's text if the text has a mistake. */
static bool
edit_until_right(struct edit *ed)
{
    char line[100];

    while (!edit_once(ed)) {
        if (!ed->payload.typed || ed->payload.made)
            return false;
        cli_say(ed->cli, "%s", ed->error.text);
        fputs("Edit on? [Y/n] ", stderr);
        if (!fgets(line, sizeof line, stdin) || *line == 'n' || *line == 'N')
            return fail(&ed->error, ERR_USAGE, "dropped; nothing was changed");
    }
    return true;
}

static bool
get_payload(struct edit *ed)
{
    const struct edit_words *w = ed->words;
    struct buf text = {0};
    bool ok;

    if (w->payload)
        return payload_type(&ed->payload, w->payload, strlen(w->payload), &ed->error);
    if (!w->file)
        return edit_until_right(ed);
    ok = read_file(w->file, &text, &ed->error) &&
         payload_type(&ed->payload, text.data, text.len, &ed->error);
    buf_free(&text);
    return ok;
}

static int
act(struct edit *ed)
{
    struct buf about = {0}, settings = {0};
    struct intent in = {.act = ACT_EDIT, .ids = &ed->id, .nids = 1, .payload = ed->payload.made};

    payload_about(&ed->payload, &about);
    payload_settings(&ed->payload, &settings);
    in.about = about.data;
    in.settings = settings.data;
    int code = cli_act(ed->cli, &ed->words->act, &in);
    buf_free(&about);
    buf_free(&settings);
    return code;
}

static int
run_edit(struct cli *c, const void *options)
{
    const struct edit_words *w = options;
    struct edit ed = {.cli = c, .words = w, .id = c->words[0]};
    int code;

    if (w->payload && w->file)
        return cli_usage(c, "--payload and --payload-file exclude each other");
    if (!w->payload && !w->file && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return cli_usage(c, "an editor needs a terminal: say --payload or --payload-file");
    if (read_job(&ed, &code)) {
        if (!get_payload(&ed)) {
            code = cli_fail(c, &ed.error);
        } else if (payload_is_same(&ed.payload)) {
            cli_say(c, "the payload is the same: nothing was changed");
            code = CLI_NOTHING;
        } else {
            code = act(&ed);
        }
    }
    payload_done(&ed.payload);
    return code;
}

/* clang-format off */
#define F(f) offsetof(struct edit_words, f)
static const struct cli_option edit_options[] = {
    {"payload", 0, "TEXT", CLI_TEXT, F(payload), "the new payload; else $VISUAL or $EDITOR opens the old one", 0, 0},
    {"payload-file", 0, "F", CLI_TEXT, F(file), "the new payload is the content of file F (-: standard input)", 0, 0},
    ACT_OPTIONS, {0}};

const struct cli_verb verbs_edit[] = {
    {.name = "edit", .examples = {"edit 0198c5e7", "edit 0198c5e7 --payload '{\"to\": 8}' --yes"},
     .words = "ID", .help = "Give a job another payload and make it ready again",
     .min_words = 1, .max_words = 1, .options = edit_options, .size = sizeof(struct edit_words),
     .defaults = &edit_defaults, .run = run_edit,
     .more = "Only while the job is as it was read: one that runs or has moved on is left alone. undo brings the old\npayload back."},
    {0},
};
/* clang-format on */
