/*
 * The question before the same act on several queues or nodes. It waits for the previews of all,
 * shows each and the sum, and asks for as much as the most dangerous of them, or their sum, wants.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/box/box.h"

enum { LINES = 12, MANY_JOBS = 100 };

struct many_box {
    struct view view;
    struct question ask;
    struct action *acts[RUNNING_MOST]; /* NULL = left out */
    char *names[RUNNING_MOST];
    int n;
    bool filled, typed;
    char sum[32]; /* what is typed */
};

static bool
is_counting(const struct many_box *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->acts[i] && action_state(m->acts[i]) == ACTION_PREVIEWING)
            return true;
    return false;
}

/* "Pause 3 queues" */
static void
begin(struct many_box *m, enum act act, const char *noun)
{
    char title[100];

    snprintf(title, sizeof title, "%.30s %d %.30ss", act_infos[act].name, m->n, noun);
    title[0] = (char)toupper((unsigned char)title[0]);
    question_done(&m->ask);
    question_init(&m->ask, title);
}

/* Whether it can be done at all; what can't is left out, with the reason. */
static bool
can_do(struct many_box *m, int i)
{
    const struct action *act = m->acts[i];
    bool production = m->view.app->options.production;

    return action_state(act) == ACTION_READY && action_confirm(act, production) != CONFIRM_NOTHING;
}

static void
say_one(struct many_box *m, int i)
{
    const struct action *act = m->acts[i];
    const struct err *e = action_error(act);
    const char *what = action_what(act);

    if (can_do(m, i))
        question_say(&m->ask, ROLE_TEXT, NULL, "%s: %.*s", m->names[i], (int)strcspn(what, "\n"),
                     what);
    else
        question_say(&m->ask, ROLE_WARN, NULL, "%s is left out: %s", m->names[i],
                     e->kind != ERR_NONE ? e->text : what);
    if (action_looks_alive(act))
        question_say(&m->ask, ROLE_BAD, NULL, "%s looks alive: its jobs may be running now",
                     m->names[i]);
}

static void
leave_out(struct many_box *m, int i)
{
    action_free(m->acts[i]);
    m->acts[i] = NULL;
}

static void
ask_ladder(struct many_box *m, int64_t sum)
{
    bool typed = sum >= MANY_JOBS;

    for (int i = 0; i < m->n; i++)
        typed =
            typed || (m->acts[i] &&
                      action_confirm(m->acts[i], m->view.app->options.production) == CONFIRM_TYPE);
    snprintf(m->sum, sizeof m->sum, "%lld", (long long)sum);
    m->typed = typed;
    if (typed)
        question_typed(&m->ask, "the sum", m->sum);
}

/* All of them, first: the rows below are only the first ones. */
static void
say_alive(struct many_box *m)
{
    struct buf names = {0};
    int n = 0;

    for (int i = 0; i < m->n; i++)
        if (can_do(m, i) && action_looks_alive(m->acts[i]))
            buf_printf(&names, "%s%s", n++ ? ", " : "", m->names[i]);
    if (n > 0)
        question_say(&m->ask, ROLE_BAD, NULL, "%d look%s alive: %s", n, n == 1 ? "s" : "",
                     names.data);
    buf_free(&names);
}

static void
fill(struct many_box *m)
{
    const struct action *first = NULL;
    int64_t sum = 0;

    m->filled = true;
    app_stale(m->view.app);
    question_clear(&m->ask);
    m->ask.busy = false;
    for (int i = 0; i < m->n; i++)
        if (can_do(m, i)) {
            sum += action_count(m->acts[i]);
            first = m->acts[i];
        }
    if (first)
        question_say(&m->ask, ROLE_STRONG, NULL, "%s in all",
                     fmt_plural(sum, act_infos[action_act(first)].noun).s);
    say_alive(m);
    for (int i = 0; i < m->n && i < LINES; i++)
        say_one(m, i);
    if (m->n > LINES)
        question_say(&m->ask, ROLE_TEXT, NULL, "and %d more", m->n - LINES);
    if (first)
        question_say(&m->ask, ROLE_DIM, "undo", "%s", action_undo(first));
    for (int i = 0; i < m->n; i++)
        if (!can_do(m, i))
            leave_out(m, i);
    ask_ladder(m, sum);
}

static bool
is_nothing(const struct many_box *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->acts[i])
            return false;
    return true;
}

static void
many_update(struct view *v)
{
    struct many_box *m = (struct many_box *)v;

    if (m->filled || is_counting(m))
        return;
    fill(m);
    if (!is_nothing(m))
        return;
    app_say(v->app, SAY_INFO, "nothing would change for any of the %d", m->n);
    app_close_box(v->app, v);
}

static void
start(struct many_box *m)
{
    struct app *a = m->view.app;
    struct action *acts[RUNNING_MOST];
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        if (!m->acts[i])
            continue;
        if (m->typed)
            action_hold_count(m->acts[i]);
        acts[n++] = m->acts[i];
        m->acts[i] = NULL;
    }
    app_drop_boxes(a);
    app_action_run_all(a, acts, n);
}

static bool
many_key(struct view *v, const struct key *k)
{
    struct many_box *m = (struct many_box *)v;

    switch (question_key(&m->ask, k)) {
    case ASK_YES:
        start(m);
        break;
    case ASK_NO:
        app_say(v->app, SAY_INFO, "nothing was changed");
        app_close_box(v->app, v);
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

static void
many_free(struct view *v)
{
    struct many_box *m = (struct many_box *)v;

    question_done(&m->ask);
    for (int i = 0; i < m->n; i++) {
        if (m->acts[i])
            action_free(m->acts[i]);
        free(m->names[i]);
    }
}

static void
many_draw(struct view *v, struct grid *g, struct rect screen)
{
    question_draw(&((struct many_box *)v)->ask, g, screen);
}

static void
many_drawn(struct view *v)
{
    question_shown(&((struct many_box *)v)->ask, v->app->clock.drawn_ms);
}

static void
many_footer(struct view *v, struct buf *out)
{
    question_footer(&((struct many_box *)v)->ask, out);
}

static const struct view_ops many_ops = {
    .name = "many-box",
    .size = sizeof(struct many_box),
    .done = many_free,
    .update = many_update,
    .draw = many_draw,
    .drawn = many_drawn,
    .key = many_key,
    .footer = many_footer,
};

void
box_many(struct app *a, struct action *const *acts, const char *const *names, int n)
{
    enum act act = action_act(acts[0]);
    const char *noun = act == ACT_DRAIN || act == ACT_RELEASE ? "node" : "queue";
    char *kept[RUNNING_MOST];

    for (int i = 0; i < n; i++)
        kept[i] = xstrdup(names[i]);
    app_drop_boxes(a); /* the form that they may have come from */
    struct many_box *m = (struct many_box *)app_box(a, &many_ops, NULL);
    memcpy(m->acts, acts, sizeof *acts * (size_t)n);
    memcpy(m->names, kept, sizeof *kept * (size_t)n);
    m->n = n;
    begin(m, act, noun);
    m->ask.busy = true;
    question_say(&m->ask, ROLE_DIM, NULL, "%s ...", action_busy(acts[0]));
    many_update(&m->view);
}
