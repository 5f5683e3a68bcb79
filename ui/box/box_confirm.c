/*
 * The question before an action. It opens at once and is filled when the preview has come. The more
 * dangerous the act, the more the user must type (action_confirm). The box owns the action until
 * the answer is yes.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/canary.h"
#include "ui/box/box.h"
#include "ui/box/box_parts.h"
#include "ui/console/commands.h"

struct confirm_box {
    struct view view;
    struct question ask;
    struct action *action;
    char *job; /* the full id of the only job, "" = several */
    bool filled;
    bool at_once;  /* all jobs at once, not a few of them first */
    uint64_t seen; /* generation of the action that the box shows */
};

/* --- boxes that ask -------------------------------------------------------------------------- */

void
asking_draw(struct view *v, struct grid *g, struct rect screen)
{
    question_draw(&((struct asking_box *)v)->ask, g, screen);
}

void
asking_drawn(struct view *v)
{
    question_shown(&((struct asking_box *)v)->ask, v->app->clock.drawn_ms);
}

void
asking_footer(struct view *v, struct buf *out)
{
    question_footer(&((struct asking_box *)v)->ask, out);
}

void
asking_no(struct view *v)
{
    app_say(v->app, SAY_INFO, "nothing was changed");
    app_close_box(v->app, v);
}

bool
asking_key(struct view *v, const struct key *k, void (*yes)(struct view *),
           void (*no)(struct view *))
{
    switch (question_key(&((struct asking_box *)v)->ask, k)) {
    case ASK_YES:
        yes(v);
        break;
    case ASK_NO:
        no(v);
        break;
    case ASK_DRY:
    case ASK_SQL:
    case ASK_OPTIONS:
    case ASK_TURN:
    case ASK_WAIT:
        break;
    }
    return true;
}

/* --- what it says ---------------------------------------------------------------------------- */

void
say_lines(struct question *ask, enum role role, const char *label, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        question_say(ask, role, label, "%.*s", (int)len, text);
        label = label ? "" : NULL;
        text += len + (text[len] == '\n');
    }
}

/* Shows the facts about a node; a fact that the queue system does not know is left out. */
static void
say_node(struct confirm_box *c, const struct node_row *n)
{
    struct buf b = {0};

    buf_printf(&b, "%s is %s", n->node, n->state);
    if (n->heartbeat_ms != FIELD_NULL)
        buf_printf(&b, ", heartbeat %s ago", fmt_age(c->view.app->now_ms - n->heartbeat_ms).s);
    if (n->running != FIELD_NULL)
        buf_printf(&b, ": %s", fmt_plural(n->running, "job").s);
    if (n->leases != FIELD_NULL)
        buf_printf(&b, "%s%s", n->running != FIELD_NULL ? " on " : ": ",
                   fmt_plural(n->leases, "lease").s);
    if (n->expired != FIELD_NULL && n->expired > 0)
        buf_printf(&b, ", %s over", fmt_count(n->expired).s);
    question_say(&c->ask, action_looks_alive(c->action) ? ROLE_WARN : ROLE_TEXT, "node", "%s",
                 b.data);
    buf_free(&b);
}

static void
say_evidence(struct confirm_box *c)
{
    const struct node_row *n = action_evidence(c->action);

    if (!n)
        return;
    say_node(c, n);
    if (n->session_alive >= 0 || action_audited(c->action))
        question_say(&c->ask, ROLE_DIM, "", "its database session %s",
                     n->session_alive == 1   ? "is still there"
                     : n->session_alive == 0 ? "is gone"
                                             : "can't be seen from here");
    if (action_looks_alive(c->action))
        question_say(&c->ask, ROLE_BAD, NULL, "%s: its jobs may be running now.",
                     node_state(n) == NODE_UNKNOWN ? "Its leases still hold"
                                                   : "This node looks alive");
    else if (action_takes_held(c->action))
        question_say(&c->ask, ROLE_WARN, NULL,
                     "Leases that still hold: if it is only cut off, its jobs run twice.");
}

static bool
is_signal(const struct action *a)
{
    return action_act(a) == ACT_BACKEND_CANCEL || action_act(a) == ACT_BACKEND_END;
}

static void
ask_ladder(struct confirm_box *c)
{
    const char *challenge = action_challenge(c->action);
    bool digits = challenge && isdigit((unsigned char)*challenge);

    switch (action_confirm(c->action, c->view.app->options.production)) {
    case CONFIRM_NOTHING:
        break;
    case CONFIRM_KEY:
        c->ask.easy = true;
        break;
    case CONFIRM_DIALOG:
        break;
    case CONFIRM_TYPE:
        if (digits && action_can_hold_count(c->action))
            question_say(&c->ask, ROLE_DIM, NULL,
                         "If the count is no longer %s, nothing is changed.", challenge);
        question_typed(&c->ask,
                       is_signal(c->action) ? "the pid"
                       : digits             ? NULL
                                            : "the name",
                       challenge);
        break;
    }
}

/* --- a few first, then ask ------------------------------------------------------------------- */

/* Whether the question offers to try a few of the jobs first. */
static bool
offers_canary(const struct confirm_box *c)
{
    return action_count(c->action) >= CANARY_FROM && canary_fits(c->action);
}

static int
ways_rows(const void *ctx, int w)
{
    (void)ctx, (void)w;
    return 3;
}

static void
draw_way(struct grid *g, struct rect row, bool chosen, const char *name, const char *words)
{
    struct pen pen = pen_start(g, row);

    pen_put(&pen, chosen ? ROLE_KEY : ROLE_DIM, chosen ? "› " : "  ");
    pen_printf(&pen, chosen ? ROLE_STRONG : ROLE_DIM, "%-21s", name);
    pen_put(&pen, chosen ? ROLE_TEXT : ROLE_DIM, words);
}

/* Draws both options ("first 10, then ask" and "all at once"); if there is only one row, the chosen
 * one. */
static void
ways_draw(const void *ctx, struct grid *g, struct rect r)
{
    const struct confirm_box *c = ctx;
    char first[40], words[120];

    snprintf(first, sizeof first, "first %d, then ask", CANARY_JOBS);
    snprintf(words, sizeof words, "now; the other %s when you say so",
             fmt_count(action_count(c->action) - CANARY_JOBS).s);
    rect_cut_top(&r, r.h > 2);
    bool both = r.h > 1;
    for (int i = 0; i < 2; i++)
        if (both || i == c->at_once)
            draw_way(g, rect_cut_top(&r, 1), i == c->at_once, i ? "all at once" : first,
                     i ? "nothing is tried before" : words);
}

/* The question for a canary. Enter is enough, because the jobs are few and can be taken back; only
 * a source on which every act is typed asks for more. */
static void
ask_ways(struct confirm_box *c)
{
    char few[20];

    snprintf(few, sizeof few, "%d", CANARY_JOBS);
    c->ask.pane = (struct question_pane){ways_rows, 74, ways_draw, c};
    question_words(&c->ask.turn, c->at_once ? "first 10, then ask" : "all at once");
    if (c->at_once) {
        ask_ladder(c);
    } else if (c->view.app->options.production) {
        question_typed(&c->ask, NULL, few);
    } else {
        c->ask.easy = true;
        question_words(&c->ask.yes, "first 10, then ask");
    }
}

static enum role
about_role(enum act act, const char *text)
{
    if (act == ACT_EDIT && *text == '-')
        return ROLE_BAD;
    if (act == ACT_EDIT && *text == '+')
        return ROLE_GOOD;
    return !strncmp(text, "! ", 2) ? ROLE_WARN : ROLE_TEXT;
}

/* The label of a line: the payload, the job, a warning ("! "), or the target as the user saw it. */
static const char *
about_label(enum act act, const char *text)
{
    return act == ACT_EDIT           ? "payload"
           : act == ACT_PUSH         ? "job"
           : !strncmp(text, "! ", 2) ? "note"
                                     : "who";
}

static void
say_about(struct question *ask, enum act act, const char *label, const char *text)
{
    for (; *text; label = "") {
        size_t len = strcspn(text, "\n");
        bool warns = !strncmp(text, "! ", 2);
        question_say(ask, about_role(act, text), label, "%.*s", (int)len - 2 * warns,
                     text + 2 * warns);
        text += len + (text[len] == '\n');
    }
}

static void
say_target(struct confirm_box *c)
{
    enum act act = action_act(c->action);
    const char *about = action_about(c->action);

    if (*c->job)
        question_say(&c->ask, ROLE_TEXT, "job", "%s", c->job);
    say_about(&c->ask, act, about_label(act, about), about);
    say_about(&c->ask, act, "note", action_notes(c->action));
}

/* What becomes of the one thing that the act changes; NULL = the counts say it. */
static const char *
say_one(const struct confirm_box *c)
{
    static const char *const becomes[ACT_COUNT] = {[ACT_PAUSE] = "%s is paused",
                                                   [ACT_RESUME] = "%s goes on",
                                                   [ACT_DRAIN] = "%s drains: it takes no more jobs",
                                                   [ACT_BACKEND_CANCEL] =
                                                       "the statement of pid %s is cancelled",
                                                   [ACT_BACKEND_END] = "pid %s is ended"};
    enum act act = action_act(c->action);
    int n;
    const struct effect_row *rows = action_effects(c->action, &n);

    if (!becomes[act] || n != 1 || !*rows->state || rows->n != 1 || *rows->why)
        return NULL;
    const char *before = becomes[act], *hole = strstr(before, "%s");
    return arena_printf(c->view.app->frame, "%.*s%s%s", (int)(hole - before), before,
                        action_param(c->action, act_infos[act].target), hole + 2);
}

/* Which rows these are, and when they were counted. A line above may name the one row; a
 * reschedule says here, too, when it will be due. */
static void
say_these(struct confirm_box *c, bool is_named)
{
    struct app *a = c->view.app;
    struct fmt at = fmt_time(action_counted_ms(c->action), a->options.utc);
    bool one = act_infos[action_act(c->action)].target != PARAM_IDS;

    if ((is_named && action_act(c->action) != ACT_TIME) || !*action_these(c->action))
        question_say(&c->ask, ROLE_DIM, "as of", "%s", at.s);
    else
        say_lines(&c->ask, ROLE_DIM, one ? "where" : "these",
                  arena_printf(a->frame, "%s; counted %s", action_these(c->action), at.s));
}

static void
say_act(struct confirm_box *c)
{
    const char *one = say_one(c);

    question_init(&c->ask, action_title(c->action));
    say_lines(&c->ask, ROLE_STRONG, NULL, one ? one : action_what(c->action));
    question_say(&c->ask, ROLE_TEXT, NULL, " ");
    say_target(c);
    say_evidence(c);
    say_these(c, one || *c->job);
    say_undo(&c->ask, c->action);
}

/* Fills the box from the preview: what will happen, where, how it can be taken back. */
static void
fill(struct confirm_box *c)
{
    bool many = action_act(c->action) == ACT_REQUEUE && !*c->job;

    c->filled = true;
    app_stale(c->view.app);
    question_done(&c->ask);
    if (many) {
        say_requeue(&c->ask, &(struct about_requeue){c->view.app, c->view.app->store, c->action});
        say_target(c);
    } else {
        say_act(c);
    }
    c->ask.can_dry = true;
    c->ask.can_sql = true;
    say_options(&c->ask, c->action);
    if (offers_canary(c))
        ask_ways(c);
    else
        ask_ladder(c);
}

/* What the box shows until the preview has come. */
static void
begin(struct confirm_box *c)
{
    c->filled = false;
    question_done(&c->ask);
    question_init(&c->ask, action_title(c->action));
    c->ask.busy = true;
    question_say(&c->ask, ROLE_DIM, NULL, "%s ...", action_busy(c->action));
}

/* Shows how far a long preview is. */
static void
say_busy(struct confirm_box *c)
{
    uint64_t seen = action_generation(c->action);

    if (seen == c->seen)
        return;
    c->seen = seen;
    question_clear(&c->ask);
    question_say(&c->ask, ROLE_DIM, NULL, "%s ...", action_busy(c->action));
    app_stale(c->view.app);
}

/* Closes the box of an action that can't go on, and says why. */
static void
give_up(struct confirm_box *c)
{
    struct app *a = c->view.app;
    const struct err *e = action_error(c->action);

    if (action_state(c->action) == ACTION_READY)
        app_say(a, SAY_INFO, "%s: %s", act_infos[action_act(c->action)].name,
                action_what(c->action));
    else
        app_say(a, SAY_BAD, "%s: %s", act_infos[action_act(c->action)].name,
                e->kind != ERR_NONE ? e->text : action_summary(c->action));
    app_close_box(a, &c->view);
}

static void
confirm_update(struct view *v)
{
    struct confirm_box *c = (struct confirm_box *)v;
    enum action_state state = action_state(c->action);

    if (c->filled)
        return;
    if (state == ACTION_PREVIEWING) {
        say_busy(c);
        return;
    }
    if (state != ACTION_READY ||
        action_confirm(c->action, v->app->options.production) == CONFIRM_NOTHING)
        give_up(c);
    else
        fill(c);
}

static void
start(struct confirm_box *c)
{
    struct app *a = c->view.app;
    struct action *act = c->action;
    bool few = offers_canary(c) && !c->at_once;

    c->action = NULL;
    bool force = action_looks_alive(act);
    if (!few && action_confirm(act, a->options.production) == CONFIRM_TYPE)
        action_hold_count(act);
    app_drop_boxes(a); /* closes also the form from which the box was opened */
    if (few)
        app_canary_run(a, canary_new(act, CANARY_JOBS, CANARY_WAIT_MS));
    else
        app_action_run(a, act, force);
}

/* Makes a new action for the same request with other options, and counts its rows again. */
void
confirm_again(struct view *v, const struct act_options *o)
{
    struct confirm_box *c = (struct confirm_box *)v;
    struct action *old = c->action;

    c->action = action_again(old, o);
    action_free(old);
    begin(c);
    confirm_update(v);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* F2: counts again, because the numbers of the preview may be old by now. */
static void
count_again(struct confirm_box *c)
{
    struct act_options o = action_options(c->action);

    confirm_again(&c->view, &o);
}

static bool
confirm_key(struct view *v, const struct key *k)
{
    struct confirm_box *c = (struct confirm_box *)v;

    switch (question_key(&c->ask, k)) {
    case ASK_YES:
        start(c);
        break;
    case ASK_NO:
        asking_no(v);
        break;
    case ASK_DRY:
        count_again(c);
        break;
    case ASK_SQL:
        box_text(v->app, "SQL of this action", action_sql(c->action));
        break;
    case ASK_OPTIONS:
        box_options(v->app, c->action);
        break;
    case ASK_TURN:
        c->at_once = !c->at_once;
        fill(c);
        break;
    case ASK_WAIT:
        break;
    }
    return true;
}

static void
confirm_free(struct view *v)
{
    struct confirm_box *c = (struct confirm_box *)v;

    question_done(&c->ask);
    free(c->job);
    if (c->action)
        action_free(c->action);
}

const struct view_ops confirm_ops = {
    .name = "confirm-box",
    .size = sizeof(struct confirm_box),
    .done = confirm_free,
    .update = confirm_update,
    .draw = asking_draw,
    .drawn = asking_drawn,
    .key = confirm_key,
    .footer = asking_footer,
};

void
box_confirm(struct app *a, struct action *act, const char *job)
{
    struct confirm_box *c = (struct confirm_box *)app_box(a, &confirm_ops, NULL);

    c->action = act;
    c->job = xstrdup(job ? job : "");
    begin(c);
    confirm_update(&c->view);
}

/* --- its keys, for help ---------------------------------------------------------------------- */

/* clang-format off */
const struct command commands_dialog[] = {
    {.name = "accept", .keys = "y", .help = "Yes, where no typing is asked for", .scope = IN_DIALOG},
    {.name = "editor", .keys = "F5", .help = "A payload that is typed: in your editor", .scope = IN_DIALOG},
    {.name = "other-way", .keys = "Tab", .help = "A requeue of 100 jobs or more: 10 first, or all at once",
     .scope = IN_DIALOG},
    {.name = "dry-run", .keys = "F2", .help = "Count again, change nothing", .scope = IN_DIALOG},
    {.name = "dialog-sql", .keys = "F3", .help = "The SQL that would run", .scope = IN_DIALOG},
    {.name = "options", .keys = "F4", .help = "Requeue: spread over a time, tries start over; a reason for the audit",
     .scope = IN_DIALOG},
    {.name = "dismiss", .keys = "Esc", .help = "Close the box; nothing happens", .scope = IN_DIALOG},
    {0},
};
/* clang-format on */
