/*
 * The question before an action: opened at once, filled when the preview is there, answered by the
 * ladder. It owns the action until the answer is yes.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/box.h"

struct confirm_box {
    struct view view;
    struct ask ask;
    struct action *action;
    char job[64]; /* the one that it is for, "" = several */
    bool filled;
};

static void
say_lines(struct ask *ask, enum role role, const char *label, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        ask_say(ask, role, label, "%.*s", (int)len, text);
        label = label ? "" : NULL;
        text += len + (text[len] == '\n');
    }
}

static void
say_evidence(struct confirm_box *c)
{
    const struct node_row *n = action_evidence(c->action);
    struct app *a = c->view.app;

    if (!n)
        return;
    ask_say(&c->ask, action_looks_alive(c->action) ? ROLE_WARN : ROLE_TEXT, "node",
            "%s is %s, heartbeat %s ago, %lld leases, %lld expired", n->node, n->state,
            fmt_age(n->heartbeat_ms == FIELD_NULL ? FIELD_NULL : a->now_ms - n->heartbeat_ms).s,
            (long long)n->leases, (long long)n->expired);
    ask_say(&c->ask, ROLE_DIM, "", "its database session %s",
            n->session_alive == 1   ? "is still there"
            : n->session_alive == 0 ? "is gone"
                                    : "can't be seen from here");
    if (action_looks_alive(c->action))
        ask_say(&c->ask, ROLE_BAD, NULL, "This node looks alive: its jobs may be running now.");
    else if (action_takes_held(c->action))
        ask_say(&c->ask, ROLE_WARN, NULL,
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
            ask_say(&c->ask, ROLE_WARN, NULL, "If the count is no longer %s, nothing is changed.",
                    challenge);
        ask_typed(&c->ask,
                  is_signal(c->action) ? "the pid"
                  : digits             ? "the number"
                                       : "the name",
                  challenge);
        break;
    }
}

/* Who it is for, as it was shown; a warning where a line begins with "! ". */
static void
say_about(struct ask *ask, const char *text)
{
    const char *label = "who";

    for (; *text; label = "") {
        size_t len = strcspn(text, "\n");
        bool warns = !strncmp(text, "! ", 2);
        ask_say(ask, warns ? ROLE_WARN : ROLE_TEXT, label, "%.*s", (int)len - 2 * warns,
                text + 2 * warns);
        text += len + (text[len] == '\n');
    }
}

/* The preview is there: what will happen, where, how it can be taken back. */
static void
fill(struct confirm_box *c)
{
    c->filled = true;
    app_stale(c->view.app);
    ask_done(&c->ask);
    ask_init(&c->ask, action_title(c->action));
    c->ask.can_dry = true;
    c->ask.can_sql = true;
    say_lines(&c->ask, ROLE_STRONG, NULL, action_what(c->action));
    ask_say(&c->ask, ROLE_TEXT, NULL, " ");
    if (*c->job)
        ask_say(&c->ask, ROLE_TEXT, "job", "%s", c->job);
    say_about(&c->ask, action_about(c->action));
    say_evidence(c);
    say_lines(&c->ask, ROLE_DIM, "where", action_where(c->action));
    say_lines(&c->ask, ROLE_DIM, "undo", action_undo(c->action));
    ask_ladder(c);
}

/* An action that can't go on says why and goes. */
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

    if (c->filled || state == ACTION_PREVIEWING)
        return;
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
    app_close_box(a, a->boxes[0]); /* the form too that it may have come from */
    app_action_run(a, act, force);
}

static bool
confirm_key(struct view *v, const struct key *k)
{
    struct confirm_box *c = (struct confirm_box *)v;

    switch (ask_key(&c->ask, k)) {
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
    case ASK_WAIT:
        break;
    }
    return true;
}

static void
confirm_free(struct view *v)
{
    struct confirm_box *c = (struct confirm_box *)v;

    ask_done(&c->ask);
    if (c->action)
        action_free(c->action);
}

static void
confirm_draw(struct view *v, struct grid *g, struct rect screen)
{
    ask_draw(&((struct confirm_box *)v)->ask, g, screen);
}

static void
confirm_drawn(struct view *v)
{
    ask_shown(&((struct confirm_box *)v)->ask, v->app->drawn_ms);
}

static void
confirm_footer(struct view *v, struct buf *out)
{
    buf_str(out, ask_footer(&((struct confirm_box *)v)->ask));
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
    ask_init(&c->ask, act_infos[action_act(act)].title);
    c->ask.busy = true;
    ask_say(&c->ask, ROLE_DIM, NULL, "counting what this would change ...");
    confirm_update(&c->view);
}
