/*
 * Acting: from the row under the cursor to an intent, and the life of the running action.
 * model/action does the act, counts its rows and makes its sentences; this file says which rows the
 * act is for.
 */
#include <stdio.h>
#include <string.h>

#include "model/action/canary.h"
#include "model/base/clock.h"
#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/facts/verdict.h"

/* An action that is quicker than SHOW_AFTER_MS shows no box, only its outcome. If an action ends
 * well within BRIEF_MS, its box closes by itself, so that the user need not close the box before
 * the next key. */
enum { SHOW_AFTER_MS = 300, BRIEF_MS = 10000 };

/* --- the running action ---------------------------------------------------------------------- */

bool
app_action_runs(const struct app *a)
{
    return a->running.canary || (a->running.action && !a->running.ended);
}

struct action *
app_action_begin(struct app *a, const struct intent *intent)
{
    struct err e = {.kind = ERR_NONE};
    struct action *act = source_act(a->source, intent, &e);

    if (!act)
        app_say(a, SAY_BAD, "%s: %s", act_infos[intent->act].name, e.text);
    return act;
}

/* Notes where the question was answered: its marks go and its rows are asked for when all is done,
 * wherever the user is then. */
static void
note_asker(struct app *a)
{
    a->running.source = a->at;
    a->running.asker = app_view(a);
}

void
app_action_view_gone(struct app *a, const struct view *v)
{
    if (a->running.asker == v)
        a->running.asker = NULL;
}

void
app_action_leave_marks(struct app *a)
{
    app_action_view_gone(a, app_view(a));
}

static void
run(struct app *a, struct action *act, bool force)
{
    if (a->running.action)
        action_free(a->running.action);
    a->running.action = act;
    a->running.ended = a->running.stopping = false;
    a->running.started_ms = clock_ms();
    a->running.seen = action_generation(act);
    action_start(act, force);
    app_wake(a, a->running.started_ms + SHOW_AFTER_MS);
    app_action_update(a);
}

void
app_action_run(struct app *a, struct action *act, bool force)
{
    if (!a->running.canary) /* the rest of a canary has the asker of its first jobs */
        note_asker(a);
    canary_free(a->running.canary);
    a->running.canary = NULL;
    a->running.shown = false;
    run(a, act, force);
}

void
app_canary_run(struct app *a, struct canary *canary)
{
    if (a->running.action)
        action_free(a->running.action);
    a->running.action = NULL;
    a->running.canary = canary;
    note_asker(a);
    a->running.seen = canary_generation(canary);
    box_progress(a);
}

void
app_action_drop(struct app *a)
{
    while (a->running.nnext > 0)
        action_free(a->running.next[--a->running.nnext]);
}

static void
run_next(struct app *a)
{
    struct running *r = &a->running;
    struct action *act = r->next[0];

    memmove(r->next, r->next + 1, sizeof r->next[0] * (size_t)--r->nnext);
    run(a, act, action_looks_alive(act)); /* the challenge was typed for all actions */
}

void
app_action_run_all(struct app *a, struct action *const *acts, int n)
{
    app_action_drop(a);
    memcpy(a->running.next, acts, sizeof *acts * (size_t)n);
    a->running.nnext = n;
    a->running.shown = false;
    note_asker(a);
    if (n > 0)
        run_next(a);
}

/* Starts the next action of the same question if the last one ended well; otherwise drops the
 * others. */
static void
go_on(struct app *a, bool well)
{
    int left = a->running.nnext;

    if (left == 0)
        return;
    if (well && !a->running.stopping && !a->leaving.after_action) {
        run_next(a);
        return;
    }
    app_action_drop(a);
    app_say(a, SAY_WARN, left == 1 ? "the last one was not begun" : "the other %d were not begun",
            left);
}

void
app_action_stop(struct app *a)
{
    if (!app_action_runs(a))
        return;
    if (a->running.canary) {
        canary_stop(a->running.canary);
        return;
    }
    a->running.stopping = true;
    action_stop(a->running.action);
    app_say(a, SAY_INFO, "stops after this part; what is done stays done");
}

void
app_action_forget(struct app *a)
{
    if (!a->running.action || !a->running.ended)
        return;
    action_free(a->running.action);
    a->running.action = NULL;
}

static bool
action_is_over(const struct action *act, enum severity *how)
{
    switch (action_state(act)) {
    case ACTION_PREVIEWING:
    case ACTION_READY:
    case ACTION_RUNNING:
    case ACTION_WAITING:
        return false;
    case ACTION_DONE:
        *how = SAY_GOOD;
        return true;
    case ACTION_STOPPED:
        *how = SAY_WARN;
        return true;
    case ACTION_REFUSED:
    case ACTION_FAILED:
    case ACTION_DOUBTFUL:
        *how = SAY_BAD;
        return true;
    }
    return false;
}

/* Shows the record of an action as a message if the server keeps no record of its own. */
static void
say_record(struct app *a)
{
    struct buf b = {0};

    if (action_audited(a->running.action) || action_progress(a->running.action).batches == 0)
        return;
    action_record(a->running.action, &b);
    app_say(a, SAY_INFO, "%s", b.data);
    buf_free(&b);
}

/* Takes away the marks that the answered question was for. */
static void
unmark(struct app *a)
{
    struct view *v = a->running.asker;

    if (v && v->ops->unmark)
        v->ops->unmark(v);
    a->running.asker = NULL;
}

static void
action_over(struct app *a, enum severity how)
{
    a->running.ended = true;
    say_record(a);
    app_say(a, how, "%s%s: %s", act_infos[action_act(a->running.action)].name,
            app_of_source(a, a->running.source), action_summary(a->running.action));
    if (how == SAY_GOOD && a->running.nnext == 0)
        unmark(a);
    store_refresh_all(source_store(sources_peek(a->sources, a->running.source)));
    if (a->leaving.after_action)
        app_quit(a);
    struct view *box = app_find_box(a, &progress_ops);
    if (box) /* a box that the user hid stays hidden for the next action, too */
        a->running.shown = false;
    if (!box) {
        app_action_forget(a);
    } else if (how == SAY_GOOD && box == app_front(a) &&
               clock_ms() - a->running.started_ms < BRIEF_MS) {
        app_close_box(a, box); /* closing the box frees the action, too */
    }
    go_on(a, how == SAY_GOOD);
}

/* The canary has ended, or can't run: a message says what became of its few jobs and of the rest.
 */
static void
canary_over(struct app *a)
{
    struct canary *c = a->running.canary;
    struct view *box = app_find_box(a, &canary_ops);

    app_say(a, canary_failed(c) ? SAY_BAD : SAY_INFO, "requeue%s: %s",
            app_of_source(a, a->running.source), canary_summary(c));
    if (box)
        app_close_box(a, box);
    a->running.canary = NULL;
    canary_free(c);
    store_refresh_all(source_store(sources_peek(a->sources, a->running.source)));
    if (a->leaving.after_action)
        app_quit(a);
}

/* If the box of the canary is hidden, shows a message: the canary asks for the rest. */
static void
say_asks(struct app *a)
{
    struct canary_verdict v = canary_verdict(a->running.canary);
    struct buf b = {0};

    if (app_find_box(a, &canary_ops))
        return;
    canary_say(&v, canary_waited_ms(a->running.canary), &b);
    app_say(a, v.hope == HOPE_NONE ? SAY_BAD : SAY_INFO, "requeue%s: %s; F8 asks for the rest",
            app_of_source(a, a->running.source), b.data);
    buf_free(&b);
}

static void
update_canary(struct app *a)
{
    struct canary *c = a->running.canary;
    enum canary_state before = canary_state(c);

    canary_update(c);
    if (canary_generation(c) != a->running.seen)
        app_stale(a);
    a->running.seen = canary_generation(c);
    if (canary_state(c) == CANARY_OVER)
        canary_over(a);
    else if (canary_state(c) == CANARY_ASKING && before != CANARY_ASKING)
        say_asks(a);
}

void
app_action_update(struct app *a)
{
    enum severity how = SAY_INFO;

    if (a->running.canary) {
        update_canary(a);
        return;
    }
    if (!app_action_runs(a))
        return;
    uint64_t seen = action_generation(a->running.action);
    if (seen != a->running.seen)
        app_stale(a);
    a->running.seen = seen;
    if (action_is_over(a->running.action, &how)) {
        action_over(a, how);
    } else if (!a->running.shown && clock_ms() - a->running.started_ms >= SHOW_AFTER_MS) {
        a->running.shown = true;
        box_progress(a);
    }
}

/* --- what it is for -------------------------------------------------------------------------- */

void
act_ask(struct app *a, const struct intent *intent)
{
    struct action *act = app_action_begin(a, intent);

    app_drop_boxes(a);
    if (act)
        box_confirm(a, act, intent->ids && intent->nids == 1 ? intent->ids[0] : NULL);
}

const char *
act_no_one(const struct app *a, enum act act)
{
    if (app_action_runs(a))
        return "an action is running (F8 shows it)";
    if (store_state(a->store) != STORE_OPEN)
        return "there is no connection yet";
    return source_why_not(a->source, act);
}

const char *
act_no_target(const struct app *a, enum act act)
{
    const char *why = act_no_one(a, act);

    if (!why && app_target(a).kind == TARGET_NONE)
        why = app_no_row(a);
    struct target t = app_target(a);
    if (!why && (t.nnames > 1 || t.ngroups > 1) && !act_takes_many(&t, act))
        why = "several are marked: U unmarks them";
    return why;
}

/* True if several jobs are marked, and none of them is in one of these states. */
static bool
none_in(const struct target *t, const char *const *states)
{
    if (t->kind != TARGET_JOBS || !t->states)
        return false;
    for (; *states; states++)
        if (strstr(t->states, *states))
            return false;
    return true;
}

const char *
no_named(const struct app *a, int act)
{
    return act_no_target(a, (enum act)act);
}

void
on_named(struct app *a, int act)
{
    const char *name = app_target(a).name;
    enum param target = act_infos[act].target;

    if (target == PARAM_QUEUE || target == PARAM_NODE) {
        act_ask_each(a, &(struct intent){.act = (enum act)act, .expected = -1}, target, name);
        return;
    }
    act_ask(a, &(struct intent){.act = (enum act)act,
                                .schedule = target == PARAM_SCHEDULE ? name : NULL,
                                .expected = -1});
}

static bool
one_in(const struct target *t, const char *states)
{
    return t->kind == TARGET_JOBS && !t->all && t->nids == 1 && *t->state &&
           strstr(states, t->state);
}

/* --- requeue --------------------------------------------------------------------------------- */

const char *
no_requeue(const struct app *a, int act)
{
    static const char *const requeued[] = {"failed",    "retry",     "scheduled",
                                           "completed", "cancelled", NULL};
    const char *why = act_no_target(a, (enum act)act);
    struct target t = app_target(a);

    if (why)
        return why;
    if (one_in(&t, "running"))
        return "the job is running";
    if (none_in(&t, requeued))
        return "the marked jobs run or wait";
    return one_in(&t, "ready scheduled") ? "the job is waiting already" : NULL;
}

const char *
no_requeue_all(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);

    return why || app_target(a).where ? why : "no filter on this screen";
}

void
on_requeue_all(struct app *a, int act)
{
    struct target t = app_target(a);

    t.all = true;
    t.kind = TARGET_JOBS;
    act_jobs(a, &(struct intent){.act = (enum act)act}, &t);
}

/* --- cancel ---------------------------------------------------------------------------------- */

const char *
no_cancel(const struct app *a, int act)
{
    static const char *const unfinished[] = {"running", "retry",   "scheduled",
                                             "ready",   "blocked", NULL};
    const char *why = act_no_target(a, (enum act)act);
    struct target t = app_target(a);

    if (why)
        return why;
    if (one_in(&t, "failed"))
        return "the job failed: X discards it, D deletes it";
    if (none_in(&t, unfinished))
        return "the marked jobs have ended";
    return one_in(&t, "completed cancelled") ? "the job is finished" : NULL;
}

/* --- pause ----------------------------------------------------------------------------------- */

static void
pause_done(struct app *a, struct form *f)
{
    act_ask_each(a,
                 &(struct intent){.act = ACT_PAUSE,
                                  .expected = -1,
                                  .reason = *form_text(f, 0) ? form_text(f, 0) : NULL},
                 PARAM_QUEUE, form_subject(f));
}

static const struct form_field pause_fields[] = {
    {"reason", FIELD_TEXT, "", NULL, NULL},
};
static const struct form_spec pause_form = {"Pause queue", pause_fields, 1, pause_done, NULL, NULL};

const char *
no_pause(const struct app *a, int arg)
{
    (void)arg;
    return act_no_target(a, app_target(a).paused ? ACT_RESUME : ACT_PAUSE);
}

const char *
help_pause(const struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    return arena_printf(a->frame, "%s %s", t.paused ? "Resume" : "Pause", t.name);
}

void
on_pause(struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    if (t.paused)
        act_ask_each(a, &(struct intent){.act = ACT_RESUME, .expected = -1}, PARAM_QUEUE, t.name);
    else
        box_form(a, &pause_form, t.name,
                 "No job of it starts until it is resumed; what runs goes on.");
}

/* --- purge ----------------------------------------------------------------------------------- */

static void
purge_done(struct app *a, struct form *f)
{
    static const char *const states[] = {"completed", "cancelled"};
    struct intent i = {.act = ACT_PURGE, .expected = -1};
    struct params where = {{0}};
    int which = form_choice(f, 1);
    struct target t = app_target(a);

    if (which == 0)
        params_set_list(&where, PARAM_STATES, states, 2);
    else
        params_set_list(&where, PARAM_STATES, &states[which - 1], 1);
    i.where = &where;
    if (form_choice(f, 0) == 0)
        i.queue = form_subject(f);
    if (i.queue)
        params_set(&where, PARAM_QUEUE, i.queue);
    i.older_than_ms = form_ms(f, 2);
    if (i.queue && t.nnames > 1)
        act_ask_each(a, &i, PARAM_QUEUE, form_subject(f));
    else
        form_ask(f, &i);
    params_done(&where);
}

static const char *
purge_check(const struct app *a, const struct form *f, int *field)
{
    int64_t ms;
    struct err e;

    (void)a;
    *field = 2;
    return duration_parse(form_text(f, 2), &ms, &e) && ms < PURGE_LEAST_MS
               ? "an hour at least; less: purge --force"
               : NULL;
}

static const char *const purge_queues[] = {"this queue", "all queues", NULL};
static const char *const purge_states[] = {"both", "completed", "cancelled", NULL};
static const struct form_field purge_fields[] = {
    {"of",         FIELD_CHOICE, NULL, purge_queues, NULL              },
    {"state",      FIELD_CHOICE, NULL, purge_states, NULL              },
    {"older than", FIELD_TIME,   "7d", NULL,         "12h, 7d; from 1h"},
};
static const struct form_spec purge_form = {"Purge finished jobs", purge_fields, 3, purge_done,
                                            purge_check,           NULL};

void
on_purge(struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    box_form(a, &purge_form, t.name, NULL);
}

/* --- release --------------------------------------------------------------------------------- */

static void
release_done(struct app *a, struct form *f)
{
    act_ask_each(a,
                 &(struct intent){.act = ACT_RELEASE,
                                  .all_leases = form_choice(f, 0) == 1,
                                  .fail = form_choice(f, 1) == 1,
                                  .no_count = form_choice(f, 2) == 1,
                                  .expected = -1},
                 PARAM_NODE, form_subject(f));
}

/* The form for systems in which only the leases can be chosen. */
static void
release_some_done(struct app *a, struct form *f)
{
    act_ask_each(
        a,
        &(struct intent){.act = ACT_RELEASE, .all_leases = form_choice(f, 0) == 1, .expected = -1},
        PARAM_NODE, form_subject(f));
}

static const char *const release_which[] = {"expired only", "all", NULL};
static const char *const release_where[] = {"run again", "count as failed", NULL};
static const char *const release_count[] = {"counts", "does not count", NULL};
static const struct form_field release_fields[] = {
    {"leases",     FIELD_CHOICE, NULL, release_which, NULL},
    {"afterwards", FIELD_CHOICE, NULL, release_where, NULL},
    {"this try",   FIELD_CHOICE, NULL, release_count, NULL},
};
static const struct form_field release_dead[] = {
    {"leases",     FIELD_CHOICE, "all", release_which, NULL},
    {"afterwards", FIELD_CHOICE, NULL,  release_where, NULL},
    {"this try",   FIELD_CHOICE, NULL,  release_count, NULL},
};
static const struct form_spec release_form = {"Release leases", release_fields, 3,
                                              release_done,     NULL,           NULL};
static const struct form_spec release_some = {"Release leases",  release_fields, 1,
                                              release_some_done, NULL,           NULL};

static const struct form_spec release_form_dead = {"Release leases", release_dead, 3,
                                                   release_done,     NULL,         NULL};
static const struct form_spec release_some_dead = {"Release leases",  release_dead, 1,
                                                   release_some_done, NULL,         NULL};

const char *
no_release(const struct app *a, int arg)
{
    const char *why = act_no_target(a, ACT_RELEASE);

    (void)arg;
    if (!why && !adapter_has(source_adapter(a->source), SEC_RELEASE_WHERE))
        why = "here single jobs are given back: Enter, then L";
    return why;
}

static struct fmt
beat_age(const struct app *a, const struct node_row *n)
{
    return fmt_age(n->heartbeat_ms == FIELD_NULL ? FIELD_NULL : a->now_ms - n->heartbeat_ms);
}

static bool
all_dead(const struct app *a, const struct target *t)
{
    for (int i = 0; i < t->nnames; i++) {
        const struct node_row *n = store_node(a->store, t->names[i]);
        if (!n || node_state(n) != NODE_DEAD || n->session_alive != 0)
            return false;
    }
    return t->nnames > 0;
}

void
on_release(struct app *a, int arg)
{
    struct target t = app_target(a);
    const struct node_row *n = store_node(a->store, t.name);
    bool beats = n && (n->heartbeat_ms != FIELD_NULL || !app_is_foreign(a));
    char facts[400] = "";

    (void)arg;
    if (n)
        snprintf(facts, sizeof facts, "%.40s, %s%s\n%s on %s; %s %s over%s",
                 node_is_cut_off(n) ? "cut off: its session is gone" : n->state,
                 beats ? "last heartbeat " : "no heartbeat is kept",
                 beats ? arena_printf(a->frame, "%s ago", beat_age(a, n).s) : "",
                 fmt_plural(n->running, "running job").s, fmt_plural(n->leases, "lease").s,
                 fmt_plural(n->expired, "lease").s, n->expired == 1 ? "is" : "are",
                 node_is_cut_off(n) ? "\nit may come back until they expire; all takes them now"
                                    : "");
    const struct adapter *ad = source_adapter(a->source);
    bool whole = adapter_takes(ad, SEC_RELEASE_WHERE, PARAM_FAIL);
    bool which = adapter_takes(ad, SEC_RELEASE_WHERE, PARAM_EXPIRED_ONLY);
    bool is_dead = all_dead(a, &t); /* then "all" is the default */
    if (whole || which)
        box_form(a,
                 whole && is_dead ? &release_form_dead
                 : whole          ? &release_form
                 : is_dead        ? &release_some_dead
                                  : &release_some,
                 t.name, facts);
    else
        act_ask_each(a, &(struct intent){.act = ACT_RELEASE, .all_leases = true, .expected = -1},
                     PARAM_NODE, t.name);
}

/* --- extend ---------------------------------------------------------------------------------- */

static void
extend_done(struct app *a, struct form *f)
{
    struct target t = app_target(a);
    struct intent i = {.act = ACT_EXTEND, .by_ms = form_ms(f, 0), .expected = -1};

    if (t.kind == TARGET_NODE) {
        i.node = form_subject(f);
    } else if (strcmp(t.name, form_subject(f)) != 0) { /* another row is under the cursor: the
                                                          job of the form is gone */
        app_say(
            a, SAY_WARN,
            "extend: another row is selected now, so nothing was changed: select the job again");
        return;
    } else {
        i.ids = t.ids;
        i.nids = t.nids;
    }
    act_ask(a, &i);
}

static const struct form_field extend_fields[] = {
    {"by", FIELD_TIME, "5m", NULL, "from now: 90s, 5m, 2h"},
};
static const struct form_spec extend_form = {"Extend leases", extend_fields, 1,
                                             extend_done,     NULL,          NULL};

const char *
no_extend(const struct app *a, int arg)
{
    static const char *const running[] = {"running", NULL};
    const char *why = act_no_target(a, ACT_EXTEND);
    struct target t = app_target(a);

    (void)arg;
    if (why)
        return why;
    if (t.kind == TARGET_NODE && !adapter_has(source_adapter(a->source), SEC_EXTEND_WHERE))
        return "here single jobs are extended: Enter, then E";
    if (t.all)
        return "only marked rows can be extended: U, then Space";
    if (t.kind == TARGET_JOBS && t.nids == 1 && *t.state && strcmp(t.state, "running") != 0)
        return "the job is not running";
    return none_in(&t, running) ? "no marked job is running" : NULL;
}

void
on_extend(struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    box_form(a, &extend_form, t.name,
             t.kind == TARGET_NODE ? "All its leases; a lease is never made shorter."
                                   : "The lease of a job is extended whole; never made shorter.");
}

/* --- drain ----------------------------------------------------------------------------------- */

const char *
no_drain(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);

    if (!why && !strcmp(app_target(a).state, node_states[NODE_DRAINING]))
        why = "it is draining already";
    return why;
}

/* --- the table ------------------------------------------------------------------------------- */

/* clang-format off */
#define KEY(id, on, no, ...)                                                                       \
    {.run = on, .why_not = no, .arg = ACT_##id, .act = &act_infos[ACT_##id], __VA_ARGS__},
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) keys
const struct command commands_acts[] = {
#include "model/adapter/acts.def"
    {0},
};
/* clang-format on */
