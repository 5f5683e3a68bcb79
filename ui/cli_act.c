/*
 * The verbs that act: requeue, release, extend, purge, pause, resume, drain. They only make
 * an intent; preview, guards, batches and sentences are model/action's, the same as the console's.
 * Without --yes a person at a terminal is asked; nobody there: nothing is done.
 */
#include "ui/cli_act.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/action.h"
#include "model/clock.h"
#include "model/mem.h"
#include "model/text.h"
#include "ui/cli_open.h"
#include "ui/fmt.h"
#include "ui/out.h"
#include "ui/verbs.h"

enum { GIVE_UP_MS = 60000, TURN_MS = 500 };

static const struct act_words act_defaults = ACT_WORDS_DEFAULTS;

struct act_run {
    struct cli *cli;
    const struct act_words *words;
    struct cli_queue queue;
    struct action *action;
    struct out out; /* only for its way to print a line */
    int shown;      /* cells of the line of progress that stands on standard error */
};

/* --- talking ------------------------------------------------------------------------------------
 */

static void
tell(const char *label, const char *text)
{
    struct buf b = {0};

    for (const char *s = text, *end; *s; s = end + (*end == '\n')) {
        end = s + strcspn(s, "\n");
        buf_printf(&b, "%-7s", s == text ? label : "");
        text_clean(&b, s, (size_t)(end - s), TEXT_LINE, INT_MAX);
        buf_str(&b, "\n");
    }
    if (b.len > 0)
        fwrite(b.data, 1, b.len, stderr);
    buf_free(&b);
}

static void
tell_evidence(const struct act_run *r)
{
    const struct node_row *n = action_evidence(r->action);
    struct buf b = {0};

    if (!n)
        return;
    buf_printf(&b, "%s is %s, ", n->node, n->state);
    if (n->heartbeat_ms == FIELD_NULL)
        buf_str(&b, "never sent a heartbeat");
    else
        buf_printf(&b, "last heartbeat %s ago",
                   fmt_age(action_counted_ms(r->action) - n->heartbeat_ms).s);
    buf_printf(&b, ", %s, %" PRId64 " expired", fmt_plural(n->leases, "lease").s, n->expired);
    if (n->session_alive >= 0)
        buf_printf(&b, ", its database session %s", n->session_alive ? "lives" : "is gone");
    tell("node", b.data);
    buf_free(&b);
}

static void
tell_preview(const struct act_run *r)
{
    tell("", action_title(r->action));
    tell("what", action_what(r->action));
    tell(action_act(r->action) == ACT_EDIT ? "diff" : "note", action_about(r->action));
    tell("where", action_where(r->action));
    tell_evidence(r);
    tell("undo", action_undo(r->action));
}

static bool
read_answer(char *line, int size)
{
    if (!fgets(line, size, stdin))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

/* The ladder: y for what is small and harmless, else the count or the name must be typed. */
static bool
asked_and_agreed(const struct act_run *r)
{
    char line[300];
    const char *challenge = action_challenge(r->action);
    bool typed = action_confirm(r->action, false) == CONFIRM_TYPE;
    struct buf b = {0};

    text_clean(&b, challenge, strlen(challenge), TEXT_LINE, INT_MAX);
    fprintf(stderr, typed ? "Type %s to go on: " : "Go on? [y/N] %s",
            typed && b.data ? b.data : "");
    buf_free(&b);
    if (!read_answer(line, sizeof line))
        return false;
    return typed ? !strcmp(line, challenge) : !strcmp(line, "y") || !strcmp(line, "yes");
}

static void
show_progress(struct act_run *r)
{
    struct progress p = action_progress(r->action);

    if (!isatty(STDERR_FILENO))
        return;
    r->shown =
        fprintf(stderr, "\r%s %s of %s, %s/s   ", act_infos[action_act(r->action)].doing,
                fmt_count(p.changed + p.skipped).s, fmt_count(p.total).s, fmt_rate(p.rate).s);
    fflush(stderr);
}

/* By blanks: not every terminal knows how to clear a line. */
static void
clear_progress(struct act_run *r)
{
    if (r->shown > 0)
        fprintf(stderr, "\r%*s\r", r->shown, "");
    r->shown = 0;
}

static void
add_outcome(const struct act_run *r, struct buf *b)
{
    int n;
    bool preview = action_state(r->action) == ACTION_READY;
    const struct effect_row *rows =
        preview ? action_effects(r->action, &n) : action_outcome(r->action, &n);

    for (int i = 0; i < n; i++) {
        buf_printf(b, "%s{\"state\": ", i ? ", " : "");
        if (*rows[i].state)
            json_string(b, rows[i].state, strlen(rows[i].state));
        else
            buf_str(b, "null");
        buf_printf(b, ", \"n\": %" PRId64 ", \"why\": ", rows[i].n);
        if (*rows[i].why)
            json_string(b, rows[i].why, strlen(rows[i].why));
        else
            buf_str(b, "null");
        buf_str(b, "}");
    }
}

static void
print_json(const struct act_run *r, int code)
{
    struct progress p = action_progress(r->action);
    bool preview = action_state(r->action) == ACTION_READY;
    struct buf b = {0};

    buf_str(&b, "{\"source\": ");
    json_string(&b, r->queue.source, strlen(r->queue.source));
    buf_printf(&b, ", \"verb\": \"%s\", \"action\": %s%s%s, \"dry_run\": %s, \"exit\": %d",
               act_infos[action_act(r->action)].name, preview ? "null" : "\"",
               preview ? "" : action_id(r->action), preview ? "" : "\"", preview ? "true" : "false",
               code);
    buf_printf(&b, ", \"changed\": %" PRId64 ", \"skipped\": %" PRId64 ", \"outcome\": [",
               preview ? action_count(r->action) : p.changed,
               preview ? action_skips(r->action) : p.skipped);
    add_outcome(r, &b);
    buf_str(&b, "], \"summary\": ");
    json_string(&b, action_summary(r->action), strlen(action_summary(r->action)));
    buf_str(&b, "}");
    out_line(&r->out, b.data, b.len);
    buf_free(&b);
}

/* The last word: on standard output when it went well, else on standard error. */
static int
finish(const struct act_run *r, int code)
{
    const char *text = action_summary(r->action);

    if (r->words->json)
        print_json(r, code);
    else if (code == CLI_DONE || code == CLI_NOTHING)
        out_line(&r->out, text, strlen(text));
    if (code != CLI_DONE && code != CLI_NOTHING)
        cli_say(r->cli, "%s", text);
    int flushed = cli_flush(r->cli);
    return flushed == CLI_DONE ? code : flushed;
}

/* --- running
 * -------------------------------------------------------------------------------------- */

static bool
turn_until(struct act_run *r, bool preview, struct err *e)
{
    int64_t shown = clock_ms();

    for (;;) {
        enum action_state s = action_state(r->action);
        bool busy = preview ? s == ACTION_PREVIEWING : s == ACTION_RUNNING || s == ACTION_WAITING;
        if (!busy)
            return true;
        if (!loop_turn(r->cli->loop, TURN_MS, e))
            return false;
        if (!preview && clock_ms() - shown >= TURN_MS) {
            show_progress(r);
            shown = clock_ms();
        }
    }
}

static void
stop_asked(void *ctx, int signo)
{
    const struct act_run *r = ctx;

    (void)signo;
    if (r->action)
        action_stop(r->action);
}

/* What to do with a preview: an exit code, or -1 = go on. */
static int
decide(struct act_run *r)
{
    const struct act_words *w = r->words;

    if (action_state(r->action) != ACTION_READY)
        return finish(r, action_exit_code(r->action));
    if (w->dry_run) {
        tell_preview(r);
        tell("sql", action_sql(r->action));
        return finish(r, action_exit_code(r->action));
    }
    if (action_count(r->action) == 0)
        return finish(r, CLI_NOTHING);
    if (action_looks_alive(r->action) && !w->force) {
        tell_evidence(r);
        cli_say(r->cli, "the node looks alive: nothing was changed; --force does it anyway");
        return CLI_REFUSED;
    }
    if (w->yes)
        return -1;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return cli_usage(r->cli, "nobody to ask here: --yes acts, --dry-run only looks");
    tell_preview(r);
    if (asked_and_agreed(r))
        return -1;
    cli_say(r->cli, "nothing was changed");
    return CLI_REFUSED;
}

static int
run_action(struct act_run *r)
{
    struct err e = {0};
    int code;

    loop_on_signal(r->cli->loop, SIGINT, stop_asked, r);
    loop_on_signal(r->cli->loop, SIGTERM, stop_asked, r);
    if (!turn_until(r, true, &e))
        return cli_fail(r->cli, &e);
    code = decide(r);
    if (code >= 0)
        return code;
    if (!r->words->yes && action_confirm(r->action, false) == CONFIRM_TYPE)
        action_hold_count(r->action);
    action_start(r->action, r->words->force);
    bool ok = turn_until(r, false, &e);
    clear_progress(r);
    return ok ? finish(r, action_exit_code(r->action)) : cli_fail(r->cli, &e);
}

/* Ids and the priority as this queue system has them. */
static bool
words_fit(const struct cli_queue *q, const struct act_words *w, const struct intent *in,
          struct err *e)
{
    for (int i = 0; i < w->ids.n; i++)
        if (!cli_is_id(q->adapter, w->ids.items[i]))
            return fail(e, ERR_USAGE, "\"%s\" is not a full job id", w->ids.items[i]);
    return in->act != ACT_PRIORITY || act_priority_fits(q->adapter, in->priority, e);
}

int
cli_act(struct cli *c, const struct act_words *w, struct intent *in)
{
    struct act_run *r = arena_alloc(c->mem, sizeof *r); /* a signal may come until the end */
    struct err e = {0};

    *r = (struct act_run){.cli = c, .words = w};

    /* a dry run of another queue system's act is the act, taken back */
    if (!cli_open(c, !w->dry_run || !c->read_only, &r->queue, &e))
        return cli_fail(c, &e);
    if (!words_fit(&r->queue, w, in, &e)) {
        cli_close(&r->queue);
        return cli_usage(c, "%s", e.text);
    }
    const char *why =
        w->dry_run ? NULL : act_why_not(in->act, r->queue.adapter, cli_role(&r->queue));
    if (why) {
        cli_say(c, "%s", why);
        cli_close(&r->queue);
        return CLI_REFUSED;
    }
    in->expected = w->expect;
    in->reason = w->reason;
    in->give_up_ms = GIVE_UP_MS;
    if (w->ids.n > 0) {
        in->ids = w->ids.items;
        in->nids = w->ids.n;
    }
    out_begin(&r->out, OUT_TABLE, r->queue.source, &(struct out_column){0});
    r->action = action_new(c->loop, r->queue.db, r->queue.adapter, in);
    int code = run_action(r);
    action_free(r->action);
    r->action = NULL;
    cli_close(&r->queue);
    return code;
}

/* --- the verbs
 * -------------------------------------------------------------------------------------- */

static int
run_requeue(struct cli *c, const void *options)
{
    const struct act_words *w = options;
    struct params where = {0};

    if (w->ids.n == 0 && !w->queue && !w->error && !w->kind && w->states.n == 0)
        return cli_usage(c, "say which: --id, --queue, --state, --kind or --error");
    if (w->ids.n > 0 && (w->queue || w->error || w->kind || w->states.n > 0))
        return cli_usage(
            c, "--id names jobs; it can't be joined with --queue, --state, --kind or --error");
    params_set(&where, PARAM_QUEUE, w->queue);
    params_set(&where, PARAM_KIND, w->kind);
    params_set(&where, PARAM_ERROR, w->error);
    if (w->states.n > 0)
        params_set_list(&where, PARAM_STATES, w->states.items, w->states.n);
    int code =
        cli_act(c, w,
                &(struct intent){
                    .act = ACT_REQUEUE, .where = &where, .reset = w->reset, .by_ms = w->by_ms});
    params_done(&where);
    return code;
}

static int
run_release(struct cli *c, const void *options)
{
    const struct act_words *w = options;

    if ((w->ids.n > 0) == (w->node != NULL))
        return cli_usage(c, "say which: --node NAME, or --id ID of running jobs");
    if (w->all && w->expired_only)
        return cli_usage(c, "--all and --expired-only exclude each other");
    if (w->ids.n > 0 && (w->all || w->expired_only || w->fail || w->no_count))
        return cli_usage(c, "--all, --expired-only, --fail and --no-count are for --node");
    return cli_act(c, w,
                   &(struct intent){.act = ACT_RELEASE,
                                    .node = w->node,
                                    .all_leases = w->all,
                                    .fail = w->fail,
                                    .no_count = w->no_count,
                                    .force = w->force});
}

static int
run_terminate(struct cli *c, const void *options)
{
    return cli_act(c, options, &(struct intent){.act = ACT_TERMINATE, .node = c->words[0]});
}

static int
run_extend(struct cli *c, const void *options)
{
    const struct act_words *w = options;

    if (!w->by_ms)
        return cli_usage(c, "say how long: --by 5m");
    if ((w->ids.n > 0) == (w->node != NULL))
        return cli_usage(c, "say which: --id or --node");
    return cli_act(c, w, &(struct intent){.act = ACT_EXTEND, .node = w->node, .by_ms = w->by_ms});
}

static int
run_purge(struct cli *c, const void *options)
{
    const struct act_words *w = options;
    struct params where = {0};

    if (w->older_ms < 0)
        return cli_usage(c, "say how old: --older-than 7d (0 = whatever is finished)");
    if (w->states.n > 0)
        params_set_list(&where, PARAM_STATES, w->states.items, w->states.n);
    params_set(&where, PARAM_QUEUE, w->queue);
    int code = cli_act(
        c, w, &(struct intent){.act = ACT_PURGE, .where = &where, .older_than_ms = w->older_ms});
    params_done(&where);
    return code;
}

static int
run_pause(struct cli *c, const void *options)
{
    return cli_act(c, options,
                   &(struct intent){.act = ACT_PAUSE,
                                    .queue = c->words[0],
                                    .force = ((const struct act_words *)options)->force});
}

static int
run_resume(struct cli *c, const void *options)
{
    return cli_act(c, options, &(struct intent){.act = ACT_RESUME, .queue = c->words[0]});
}

static int
run_drain(struct cli *c, const void *options)
{
    return cli_act(c, options, &(struct intent){.act = ACT_DRAIN, .node = c->words[0]});
}

/* --- the table
 * -------------------------------------------------------------------------------------- */

/* clang-format off */
#define F(f) offsetof(struct act_words, f)
#define ID {"id", 'i', "ID", CLI_LIST, F(ids), "these jobs (full ids; may be repeated)", 0, 0}
#define QUEUE {"queue", 'q', "Q", CLI_TEXT, F(queue), "of this queue", 0, 0}
#define STATE {"state", 's', "STATES", CLI_LIST, F(states), "in these states", 0, 0}
#define NODE {"node", 0, "NAME", CLI_TEXT, F(node), "of this node", 0, 0}

static const struct cli_option requeue_options[] = {
    ID, QUEUE, STATE,
    {"kind", 'k', "K", CLI_TEXT, F(kind), "of this kind", 0, 0},
    {"error", 'e', "TEXT", CLI_TEXT, F(error), "the group of this error; ~TEXT: a part of it", 0, 0},
    {"reset-tries", 0, NULL, CLI_FLAG, F(reset), "tries start over", 0, 0},
    {"spread", 0, "T", CLI_TIME, F(by_ms), "not at once, but evenly over this time: 10m, 2h", 1, INT64_C(30) * 86400000},
    ACT_OPTIONS, {0}};
static const struct cli_option release_options[] = {
    NODE,
    {"id", 'i', "ID", CLI_LIST, F(ids), "running jobs whose worker is gone, where queues can tell", 0, 0},
    {"expired-only", 0, NULL, CLI_FLAG, F(expired_only), "expired leases only (the default)", 0, 0},
    {"all", 0, NULL, CLI_FLAG, F(all), "all its leases", 0, 0},
    {"fail", 0, NULL, CLI_FLAG, F(fail), "the jobs end as failed instead of going back", 0, 0},
    {"no-count", 0, NULL, CLI_FLAG, F(no_count), "the lost try does not count", 0, 0},
    {"force", 0, NULL, CLI_FLAG, F(force), "although the node looks alive", 0, 0},
    ACT_OPTIONS, {0}};
static const struct cli_option extend_options[] = {
    ID, NODE,
    {"by", 0, "T", CLI_TIME, F(by_ms), "from now: 90s, 5m, 2h", 1, INT64_MAX / 1000},
    ACT_OPTIONS, {0}};
static const struct cli_option purge_options[] = {
    QUEUE, STATE,
    {"older-than", 0, "T", CLI_TIME, F(older_ms), "finished longer ago: 12h, 7d", 0, INT64_MAX / 1000},
    ACT_OPTIONS, {0}};
static const struct cli_option pause_options[] = {
    {"create", 0, NULL, CLI_FLAG, F(force), "also a queue that no job was ever seen in", 0, 0},
    ACT_OPTIONS, {0}};
static const struct cli_option plain_options[] = {ACT_OPTIONS, {0}};

#define VERB(n, w, h, words_n, o, r)                                                               \
    {.name = (n), .words = (w), .help = (h), .min_words = (words_n), .max_words = (words_n), .options = (o),   \
     .size = sizeof(struct act_words), .defaults = &act_defaults, .run = (r)}
const struct cli_verb verbs_act[] = {
    VERB("requeue", "", "Make jobs ready again: --id, or all that match", 0, requeue_options, run_requeue),
    VERB("release", "", "Take a dead node's leases away, so that others do its jobs", 0, release_options, run_release),
    VERB("terminate", "NODE", "End a node's database sessions, where these are its leases", 1, plain_options, run_terminate),
    VERB("extend", "", "Let leases hold longer", 0, extend_options, run_extend),
    VERB("purge", "", "Delete finished jobs for good", 0, purge_options, run_purge),
    VERB("pause", "QUEUE", "Stop handing out a queue's jobs", 1, pause_options, run_pause),
    VERB("resume", "QUEUE", "Hand out a paused queue's jobs again", 1, plain_options, run_resume),
    VERB("drain", "NODE", "Let a worker finish what it runs and take no more", 1, plain_options, run_drain),
    {0},
};
/* clang-format on */
