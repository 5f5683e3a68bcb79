/*
 * From a verb's intent to the last line: preview, question, batches, outcome. model/action provides
 * the guards and the sentences, as for the console. Without --yes the verb asks the user at a
 * terminal; if there is no terminal, the verb does nothing.
 */
#include "ui/write/cli_act.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/action/action.h"
#include "model/action/canary.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/term/fmt.h"

enum { GIVE_UP_MS = 60000, TURN_MS = 500 };

struct act_run {
    struct cli *cli;
    const struct act_words *words;
    struct cli_queue queue;
    struct action *action; /* NULL: only the canary's actions */
    struct canary *canary; /* for --canary, until its end; else NULL */
    struct cli_table out;  /* used only to print a line */
    int shown;             /* width of the progress line that is shown */
};

/* --- talking ---------------------------------------------------------------------------------- */

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

/* Prints the evidence that a node is alive. A fact that the queue system does not know is left out.
 */
static void
tell_evidence(const struct act_run *r)
{
    const struct node_row *n = action_evidence(r->action);
    bool foreign = !action_audited(r->action);
    struct buf b = {0};

    if (!n)
        return;
    buf_printf(&b, "%s is %s", n->node, n->state);
    if (n->heartbeat_ms != FIELD_NULL)
        buf_printf(&b, ", last heartbeat %s ago",
                   fmt_age(action_counted_ms(r->action) - n->heartbeat_ms).s);
    else if (!foreign)
        buf_str(&b, ", never sent a heartbeat");
    if (n->leases != FIELD_NULL)
        buf_printf(&b, ", %s", fmt_plural(n->leases, "lease").s);
    else if (n->running != FIELD_NULL)
        buf_printf(&b, ", runs %s", fmt_plural(n->running, "job").s);
    if (n->expired != FIELD_NULL)
        buf_printf(&b, ", %" PRId64 " expired", n->expired);
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
    tell("note", action_notes(r->action));
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

static bool
wants_canary(const struct act_run *r)
{
    return r->words->canary >= 0 && !r->words->no_canary;
}

static int
canary_size(const struct act_run *r)
{
    return r->words->canary ? r->words->canary : CANARY_JOBS;
}

/* Asks the user. For a small and harmless act the answer is y, otherwise the user must type the
 * count or the name. */
static bool
asked_and_agreed(const struct action *a, bool typed)
{
    char line[300];
    const char *challenge = action_challenge(a);
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
show_progress(struct act_run *r, bool preview)
{
    struct progress p = action_progress(r->action);

    if (!isatty(STDERR_FILENO))
        return;
    if (preview)
        r->shown = fprintf(stderr, "\r%s   ", action_busy(r->action));
    else
        r->shown =
            fprintf(stderr, "\r%s %s of %s, %s/s   ", act_infos[action_act(r->action)].doing,
                    fmt_count(p.changed + p.skipped).s, fmt_count(p.total).s, fmt_rate(p.rate).s);
    fflush(stderr);
}

/* Overwrites the progress line with blanks, because not every terminal can clear a line. */
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
add_text(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, ", \"%s\": ", name);
    if (text && *text)
        json_string(b, text, strlen(text));
    else
        buf_str(b, "null");
}

static void
add_tried_job(struct buf *b, const struct tried_job *j)
{
    static const char *const states[TRIED_STATES] = {
        [TRIED_WAITS] = "waiting", [TRIED_RUNS] = "running", [TRIED_DONE] = "done",
        [TRIED_FAILED] = "failed", [TRIED_GONE] = "gone",    [TRIED_NOT_KEPT] = "not kept"};

    buf_str(b, "{\"id\": ");
    json_string(b, j->id, strlen(j->id));
    buf_printf(b, ", \"state\": \"%s\"", states[j->state]);
    add_text(b, "node", j->node);
    if (j->run_ms == FIELD_NULL)
        buf_str(b, ", \"run_ms\": null");
    else
        buf_printf(b, ", \"run_ms\": %" PRId64, j->run_ms);
    add_text(b, "error", j->error);
    buf_str(b, "}");
}

/* Adds the canary's few jobs as an object of their own. */
static void
add_canary(const struct act_run *r, struct buf *b)
{
    struct canary_verdict v = canary_verdict(r->canary);
    const struct action *few = canary_first(r->canary);
    struct buf words = {0};
    int n;
    const struct tried_job *jobs = canary_jobs(r->canary, &n);

    buf_printf(b,
               ", \"canary\": {\"tried\": %d, \"done\": %d, \"failed\": %d, \"waiting\": %d, "
               "\"gone\": %d, \"not_kept\": %d",
               n, v.by_state[TRIED_DONE], v.by_state[TRIED_FAILED],
               v.by_state[TRIED_WAITS] + v.by_state[TRIED_RUNS], v.by_state[TRIED_GONE],
               v.by_state[TRIED_NOT_KEPT]);
    add_text(b, "action", few && n > 0 ? action_id(few) : NULL);
    if (n > 0)
        canary_say(&v, canary_waited_ms(r->canary), &words);
    add_text(b, "verdict", words.data);
    buf_str(b, ", \"jobs\": [");
    for (int i = 0; i < n; i++) {
        buf_str(b, i ? ", " : "");
        add_tried_job(b, &jobs[i]);
    }
    buf_str(b, "]}");
    buf_free(&words);
}

/* Adds the action for the rest; if there was no canary, the action for all jobs. */
static void
add_act(const struct act_run *r, struct buf *b, int code)
{
    struct progress p = action_progress(r->action);
    bool preview = action_state(r->action) == ACTION_READY;
    bool known = !preview && action_audited(r->action); /* the audit knows the action by this id */

    buf_printf(b, ", \"action\": %s%s%s, \"dry_run\": %s, \"exit\": %d", known ? "\"" : "null",
               known ? action_id(r->action) : "", known ? "\"" : "", preview ? "true" : "false",
               code);
    buf_printf(b, ", \"changed\": %" PRId64 ", \"skipped\": %" PRId64 ", \"outcome\": [",
               preview ? action_count(r->action) : p.changed,
               preview ? action_skips(r->action) : p.skipped);
    add_outcome(r, b);
    buf_str(b, "]");
}

static void
print_json(const struct act_run *r, int code)
{
    const char *verb = act_infos[r->action ? action_act(r->action) : ACT_REQUEUE].name;
    struct buf b = {0};

    buf_str(&b, "{\"source\": ");
    json_string(&b, r->queue.source, strlen(r->queue.source));
    buf_printf(&b, ", \"verb\": \"%s\"", verb);
    if (r->action)
        add_act(r, &b, code);
    else
        buf_printf(&b,
                   ", \"action\": null, \"dry_run\": false, \"exit\": %d, \"changed\": 0, "
                   "\"skipped\": 0, \"outcome\": []",
                   code);
    if (r->canary)
        add_canary(r, &b);
    add_text(&b, "summary", r->action ? action_summary(r->action) : canary_summary(r->canary));
    buf_str(&b, "}");
    cli_table_json(b.data, b.len);
    buf_free(&b);
}

/* Prints on standard error where the action is recorded and, if it can be undone, how. */
static void
tell_record(const struct action *a)
{
    const char *id = a ? action_id(a) : "";

    if (!a || !action_audited(a) || action_state(a) == ACTION_READY ||
        action_progress(a).changed == 0)
        return;
    if (strstr(action_undo(a), "udit"))
        fprintf(stderr, "action %s: queuetop undo %s takes it back\n", id, fmt_id_tail(id).s);
    else
        fprintf(stderr, "action %s\n", id);
}

/* If the server refuses the value of an option, its error begins with the name that the value has
 * in SQL. Puts the option in its place. */
static const char *
name_option(const struct act_run *r, const char *text)
{
    static const char failed[] = "failed: ";
    const char *const(*also)[2] = r->cli->verb->also;
    const char *value = text + strlen(failed);

    if (strncmp(text, failed, strlen(failed)) != 0)
        return text;
    for (int i = 0; also && also[i][0]; i++) {
        size_t len = strlen(also[i][0]);
        if (!strncmp(value, also[i][0], len) && value[len] == ' ')
            return arena_printf(r->cli->mem, "--%s%s", also[i][1], value + len);
    }
    return text;
}

/* Prints the last line: on standard output if all went well, else on standard error. */
static int
finish(const struct act_run *r, int code)
{
    const char *text = r->action ? action_summary(r->action) : canary_summary(r->canary);

    if (r->words->json)
        print_json(r, code);
    else if (code == CLI_DONE || code == CLI_NOTHING)
        cli_table_line(text, strlen(text));
    if (code != CLI_DONE && code != CLI_NOTHING)
        cli_say(r->cli, "%s", code == CLI_USAGE ? name_option(r, text) : text);
    if (!r->words->json && r->canary)
        tell_record(canary_first(r->canary));
    if (!r->words->json)
        tell_record(r->action);
    int flushed = cli_flush(r->cli);
    return flushed == CLI_DONE ? code : flushed;
}

/* --- running ---------------------------------------------------------------------------------- */

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
        if (clock_ms() - shown >= TURN_MS) {
            show_progress(r, preview);
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
    else if (r->canary)
        canary_stop(r->canary);
}

/* By default only expired leases are released. If there are none, says what the node holds and how
 * to release it. */
static void
tell_held(const struct act_run *r)
{
    const struct node_row *n = action_evidence(r->action);

    if (action_act(r->action) != ACT_RELEASE || !n || r->words->all || node_held(n) <= 0)
        return;
    tell_evidence(r);
    bool is_dead = node_state(n) == NODE_DEAD && n->session_alive != 1;
    cli_say(r->cli, "no lease of it is expired: --all%s releases them all",
            is_dead ? "" : " --force");
}

/* Judges a preview: returns an exit code, or -1 = continue. */
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
    if (action_count(r->action) == 0) {
        tell_held(r);
        return finish(r, CLI_NOTHING);
    }
    if (action_looks_alive(r->action) && !w->force) {
        tell_evidence(r);
        const struct node_row *n = action_evidence(r->action);
        cli_say(r->cli, "%s: nothing was changed; release %s does it anyway",
                n && node_state(n) == NODE_UNKNOWN ? "its leases still hold"
                                                   : "the node looks alive",
                w->all ? "--force" : "--all --force");
        return CLI_REFUSED;
    }
    if (w->yes)
        return -1;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return cli_usage(r->cli, "nobody to ask here: --yes acts, --dry-run only looks");
    tell_preview(r);
    if (wants_canary(r))
        fprintf(stderr, "%d go first, ahead of those that wait. ", canary_size(r));
    bool typed = !wants_canary(r) && action_confirm(r->action, false) == CONFIRM_TYPE;
    if (asked_and_agreed(r->action, typed))
        return -1;
    cli_say(r->cli, "nothing was changed");
    return CLI_REFUSED;
}

/* If the server keeps no record of the act, writes the record to the log (--log). */
static void
keep_record(const struct act_run *r)
{
    struct buf b = {0};

    if (action_audited(r->action))
        return;
    action_record(r->action, &b);
    log_line(LOG_INFO, "%s", b.data);
    buf_free(&b);
}

/* --- a few first ------------------------------------------------------------------------------ */

static void
show_tried(struct act_run *r)
{
    struct canary_verdict v = canary_verdict(r->canary);
    const char *away = canary_away(r->canary);

    if (!isatty(STDERR_FILENO))
        return;
    clear_progress(r);
    r->shown = fprintf(stderr, "\r%d of %d done, %d failed again, %" PRId64 "s%s%s   ",
                       v.by_state[TRIED_DONE], canary_wanted(r->canary), v.by_state[TRIED_FAILED],
                       canary_waited_ms(r->canary) / 1000, away ? ": " : "", away ? away : "");
    fflush(stderr);
}

/* Waits until the few jobs have ended or the time is over. An obstacle that keeps them from
 * starting is reported once. */
static bool
watch_canary(struct act_run *r, struct err *e)
{
    bool said = false;

    for (;;) {
        canary_update(r->canary);
        enum canary_state s = canary_state(r->canary);
        if (s == CANARY_ASKING || s == CANARY_OVER)
            return true;
        if (!said && canary_obstacle(r->canary)) {
            clear_progress(r);
            cli_say(r->cli, "%s", canary_obstacle(r->canary));
            said = true;
        }
        show_tried(r);
        if (!loop_turn(r->cli->loop, TURN_MS, e))
            return false;
    }
}

static void
tell_verdict(const struct act_run *r)
{
    struct canary_verdict v = canary_verdict(r->canary);
    struct buf b = {0};

    canary_say(&v, canary_waited_ms(r->canary), &b);
    cli_say(r->cli, "%s", b.data);
    buf_free(&b);
}

/* Whether the rest may be requeued: if the user says so, or with --yes if all jobs of the canary
 * are done. */
static bool
may_go_on(struct act_run *r)
{
    tell_verdict(r);
    if (r->words->yes)
        return canary_verdict(r->canary).hope == HOPE_GOOD;
    return asked_and_agreed(canary_rest(r->canary), true);
}

/* Runs the canary; takes ownership of the action. Returns -1 if r->action is now the rest and must
 * be started; else the exit code. */
static int
run_canary(struct act_run *r)
{
    struct err e = {0};
    int64_t wait_ms = r->words->wait_ms ? r->words->wait_ms : CANARY_WAIT_MS;

    if (!canary_fits(r->action)) {
        cli_say(r->cli, "no canary: %s can't put these jobs ahead and see what becomes of them",
                adapter_title(r->queue.adapter));
        return CLI_REFUSED;
    }
    r->canary = canary_new(r->action, canary_size(r), (int)wait_ms);
    r->action = NULL;
    bool ok = watch_canary(r, &e);
    clear_progress(r);
    if (!ok)
        return cli_fail(r->cli, &e);
    if (canary_state(r->canary) == CANARY_OVER)
        return finish(r, canary_exit_code(r->canary));
    if (!may_go_on(r)) {
        canary_stop(r->canary);
        return finish(r, CLI_REFUSED);
    }
    r->action = canary_take_rest(r->canary);
    return -1;
}

static int
run_action(struct act_run *r)
{
    struct err e = {0};
    int code;

    loop_on_signal(r->cli->loop, SIGINT, stop_asked, r);
    loop_on_signal(r->cli->loop, SIGTERM, stop_asked, r);
    bool ok = turn_until(r, true, &e);
    clear_progress(r);
    if (!ok)
        return cli_fail(r->cli, &e);
    code = decide(r);
    if (code < 0 && wants_canary(r))
        code = run_canary(r);
    if (code >= 0)
        return code;
    if (!r->words->yes && action_confirm(r->action, false) == CONFIRM_TYPE)
        action_hold_count(r->action);
    action_start(r->action, r->words->force);
    ok = turn_until(r, false, &e);
    clear_progress(r);
    keep_record(r);
    return ok ? finish(r, action_exit_code(r->action)) : cli_fail(r->cli, &e);
}

/* Connects. If the database is read-only, the error is reported at once: a connection that waits
 * for a new primary would wait in vain here. Trying an act writes, although the write is rolled
 * back, so the connection must not be read-only. */
static bool
open_for(struct act_run *r, enum act act, struct err *e)
{
    struct cli *c = r->cli;

    if (!cli_open(c, !r->words->dry_run, &r->queue, e))
        return false;
    if (!r->words->dry_run && !cli_takes_changes(&r->queue, e)) {
        cli_close(&r->queue);
        return false;
    }
    if (!r->words->dry_run || c->read_only || !act_is_tried(act, r->queue.adapter))
        return true;
    cli_close(&r->queue);
    return cli_open(c, true, &r->queue, e);
}

/* Rejects options that this queue system does not have: returns an exit code, or -1 = all is well.
 */
static int
check_words(struct act_run *r, struct intent *in)
{
    const struct act_words *w = r->words;
    const struct adapter *a = r->queue.adapter;
    struct err e = {0};

    if (in->act == ACT_PRIORITY && !act_priority_fits(a, in->priority, &e))
        return cli_usage(r->cli, "%s", e.text);
    bool look = w->dry_run && !act_is_tried(in->act, a); /* every role may look */
    const char *why = look ? NULL : act_why_not(in->act, a, cli_role(&r->queue));
    bool expired = w->expired_only && !adapter_takes(a, SEC_RELEASE_WHERE, PARAM_EXPIRED_ONLY);
    if (!why && !expired)
        return -1;
    if (why)
        cli_say(r->cli, "%s", why);
    else
        cli_say(r->cli, "%s can't tell expired leases from others", adapter_title(a));
    return CLI_REFUSED;
}

/* Replaces typed parts of ids by the full ids. */
static bool
find_ids(struct act_run *r, struct intent *in, struct err *e)
{
    const struct cli_list *typed = &r->words->ids;
    const char **ids = typed->n ? arena_alloc(r->cli->mem, (size_t)typed->n * sizeof *ids) : NULL;

    for (int i = 0; i < typed->n; i++)
        if (!(ids[i] = cli_full_id(&r->queue, SEC_JOBS, typed->items[i], e)))
            return false;
    if (typed->n > 0) {
        in->ids = ids;
        in->nids = typed->n;
    }
    return !in->of || (in->of = cli_full_id(&r->queue, SEC_AUDIT, in->of, e));
}

bool
cli_act_states(const struct act_words *w, struct params *where, struct err *e)
{
    struct buf names = {0}, text = {0};
    struct filter f;

    if (w->states.n == 0)
        return true;
    for (int i = 0; i < w->states.n; i++)
        buf_printf(&names, "%s%s", i ? "," : "", w->states.items[i]);
    buf_str(&text, "state:");
    filter_add_value(&text, names.data); /* quotes it: a name may contain a blank */
    bool ok = filter_parse(text.data, &f, NULL, e);
    if (ok)
        params_set(where, PARAM_STATES, f.terms.value[PARAM_STATES]);
    filter_done(&f);
    buf_free(&names);
    buf_free(&text);
    return ok;
}

int
cli_act(struct cli *c, const struct act_words *w, struct intent *in)
{
    struct act_run *r = arena_alloc(c->mem, sizeof *r); /* not on the stack: a signal may come
                                                           until the end */
    struct err e = {0};

    *r = (struct act_run){.cli = c, .words = w};
    if (!open_for(r, in->act, &e))
        return cli_fail(c, &e);
    int code = check_words(r, in);
    if (code < 0 && !find_ids(r, in, &e))
        code = cli_fail(c, &e);
    if (code >= 0) {
        cli_close(&r->queue);
        return code;
    }
    in->expected = w->expect;
    in->reason = w->reason;
    in->give_up_ms = GIVE_UP_MS;
    cli_table_begin(&r->out, OUT_TABLE, r->queue.source, &(struct column){0});
    r->action = action_new(c->loop, r->queue.db, r->queue.adapter, in);
    code = run_action(r);
    action_free(r->action);
    canary_free(r->canary);
    r->action = NULL;
    r->canary = NULL;
    cli_close(&r->queue);
    return code;
}
