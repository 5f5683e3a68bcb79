/*
 * The question before an action. It opens at once, is filled when the preview has come, and asks
 * for as much as the danger wants (action_confirm). It owns the action until the answer is yes.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/box/box.h"
#include "ui/console/commands.h"

struct confirm_box {
    struct view view;
    struct question ask;
    struct action *action;
    char job[64]; /* the one that it is for, "" = several */
    bool filled;
    uint64_t seen; /* generation of the action that the box shows */
};

static void
say_lines(struct question *ask, enum role role, const char *label, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        question_say(ask, role, label, "%.*s", (int)len, text);
        label = label ? "" : NULL;
        text += len + (text[len] == '\n');
    }
}

/* Facts that a system does not know of its nodes are left out. */
static void
say_node(struct confirm_box *c, const struct node_row *n)
{
    struct buf b = {0};

    buf_printf(&b, "%s is %s", n->node, n->state);
    if (n->heartbeat_ms != FIELD_NULL)
        buf_printf(&b, ", heartbeat %s ago", fmt_age(c->view.app->now_ms - n->heartbeat_ms).s);
    if (n->leases != FIELD_NULL)
        buf_printf(&b, ", %lld leases", (long long)n->leases);
    else if (n->running != FIELD_NULL)
        buf_printf(&b, ", runs %s", fmt_plural(n->running, "job").s);
    if (n->expired != FIELD_NULL)
        buf_printf(&b, ", %lld expired", (long long)n->expired);
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
        question_say(&c->ask, ROLE_BAD, NULL,
                     "This node looks alive: its jobs may be running now.");
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
            question_say(&c->ask, ROLE_WARN, NULL,
                         "If the count is no longer %s, nothing is changed.", challenge);
        question_typed(&c->ask,
                       is_signal(c->action) ? "the pid"
                       : digits             ? "the number"
                                            : "the name",
                       challenge);
        break;
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

/* The target as the user saw it, or the payload. A line that begins with "! " is a warning. */
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

/* Fills the box from the preview: what will happen, where, how it can be taken back. */
static void
fill(struct confirm_box *c)
{
    c->filled = true;
    app_stale(c->view.app);
    question_done(&c->ask);
    question_init(&c->ask, action_title(c->action));
    c->ask.can_dry = true;
    c->ask.can_sql = true;
    c->ask.can_options = action_has_reason(c->action);
    say_lines(&c->ask, ROLE_STRONG, NULL, action_what(c->action));
    question_say(&c->ask, ROLE_TEXT, NULL, " ");
    if (*c->job)
        question_say(&c->ask, ROLE_TEXT, "job", "%s", c->job);
    enum act act = action_act(c->action);
    const char *about = action_about(c->action);
    say_about(&c->ask, act, about_label(act, about), about);
    say_about(&c->ask, act, "note", action_notes(c->action));
    say_evidence(c);
    say_lines(&c->ask, ROLE_DIM, "where", action_where(c->action));
    say_lines(&c->ask, ROLE_DIM, "undo", action_undo(c->action));
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

/* A long preview shows how far it is. */
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

/* An action that can't go on: says why, and closes the box. */
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

    c->action = NULL;
    bool force = action_looks_alive(act);
    if (action_confirm(act, a->options.production) == CONFIRM_TYPE)
        action_hold_count(act);
    app_drop_boxes(a); /* also the form that it may have come from */
    app_action_run(a, act, force);
}

/* --- options --------------------------------------------------------------------------------- */

static const struct view_ops confirm_ops;

/* Takes the options of the form: the question behind it makes a new action and counts again. */
static void
options_done(struct app *a, struct form *f)
{
    struct confirm_box *c = (struct confirm_box *)app_find_box(a, &confirm_ops);
    bool requeue = !strcmp(form_subject(f), act_infos[ACT_REQUEUE].name);
    struct act_options o = {.reason = form_text(f, requeue ? 2 : 0)};
    struct err e;

    if (requeue) {
        o.reset = form_choice(f, 1) == 1;
        if (*form_text(f, 0) && !duration_parse(form_text(f, 0), &o.spread_ms, &e))
            return;
    }
    if (c) {
        struct action *old = c->action;
        c->action = action_again(old, &o);
        action_free(old);
        begin(c);
    }
    app_close_box(a, app_front(a));
    if (c)
        confirm_update(&c->view);
}

static const char *
options_check(const struct app *a, const struct form *f, int *field)
{
    const char *text = form_text(f, 0);
    int64_t ms;
    struct err e;

    (void)a;
    *field = 0;
    if (strcmp(form_subject(f), act_infos[ACT_REQUEUE].name) != 0 || !*text)
        return NULL;
    return duration_parse(text, &ms, &e) && ms > 0 ? NULL : "a time like 90s, 10m or 2h, or empty";
}

static const char *const tries_words[] = {"kept, one more", "start over", NULL};
static const struct form_field options_fields[] = {
    {"spread over", FIELD_TEXT,   "",   NULL,        "empty: at once; 10m, 2h: evenly over that time"},
    {"tries",       FIELD_CHOICE, NULL, tries_words, NULL                                            },
    {"reason",      FIELD_TEXT,   "",   NULL,        "for the audit; may be empty"                   },
};
static const struct form_spec requeue_options = {"Options",    options_fields, 3,
                                                 options_done, options_check,  NULL};
static const struct form_spec other_options = {"Options",    options_fields + 2, 1,
                                               options_done, options_check,      NULL};

/* The duration as it can be typed. */
static void
type_duration(char *text, size_t size, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {
        {86400000, "d" },
        {3600000,  "h" },
        {60000,    "m" },
        {1000,     "s" },
        {1,        "ms"},
    };
    int i = 0;

    text[0] = '\0';
    while (ms % units[i].ms != 0)
        i++;
    if (ms > 0)
        snprintf(text, size, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
}

static void
open_options(struct confirm_box *c)
{
    struct act_options o = action_options(c->action);
    bool requeue = action_act(c->action) == ACT_REQUEUE;
    char spread[40];

    type_duration(spread, sizeof spread, o.spread_ms);
    const char *const values[] = {spread, tries_words[o.reset], o.reason ? o.reason : ""};

    box_form_with(c->view.app, requeue ? &requeue_options : &other_options,
                  act_infos[action_act(c->action)].name, requeue ? values : values + 2, 0);
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
        app_say(v->app, SAY_INFO, "nothing was changed");
        app_close_box(v->app, v);
        break;
    case ASK_DRY:
        app_say(v->app, SAY_INFO, "dry run: %s", action_what(c->action));
        break;
    case ASK_SQL:
        box_text(v->app, "SQL of this action", action_sql(c->action));
        break;
    case ASK_OPTIONS:
        open_options(c);
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
    if (c->action)
        action_free(c->action);
}

static void
confirm_draw(struct view *v, struct grid *g, struct rect screen)
{
    question_draw(&((struct confirm_box *)v)->ask, g, screen);
}

static void
confirm_drawn(struct view *v)
{
    question_shown(&((struct confirm_box *)v)->ask, v->app->clock.drawn_ms);
}

static void
confirm_footer(struct view *v, struct buf *out)
{
    buf_str(out, question_footer(&((struct confirm_box *)v)->ask));
}

static const struct view_ops confirm_ops = {
    .name = "confirm-box",
    .size = sizeof(struct confirm_box),
    .done = confirm_free,
    .update = confirm_update,
    .draw = confirm_draw,
    .drawn = confirm_drawn,
    .key = confirm_key,
    .footer = confirm_footer,
};

void
box_confirm(struct app *a, struct action *act, const char *job)
{
    struct confirm_box *c = (struct confirm_box *)app_box(a, &confirm_ops, NULL);

    c->action = act;
    snprintf(c->job, sizeof c->job, "%.60s", job ? job : "");
    begin(c);
    confirm_update(&c->view);
}

/* --- its keys, for help ---------------------------------------------------------------------- */

/* clang-format off */
const struct command commands_dialog[] = {
    {.name = "accept", .keys = "y", .help = "Yes, where no typing is asked for", .scope = IN_DIALOG},
    {.name = "editor", .keys = "F5", .help = "A payload that is typed: in your editor", .scope = IN_DIALOG},
    {.name = "dry-run", .keys = "F2", .help = "Count again, change nothing", .scope = IN_DIALOG},
    {.name = "dialog-sql", .keys = "F3", .help = "The SQL that would run", .scope = IN_DIALOG},
    {.name = "options", .keys = "F4", .help = "Requeue: spread over a time, tries start over; a reason for the audit",
     .scope = IN_DIALOG},
    {.name = "dismiss", .keys = "Esc", .help = "Close the box; nothing happens", .scope = IN_DIALOG},
    {0},
};
/* clang-format on */
