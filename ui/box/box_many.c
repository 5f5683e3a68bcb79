/*
 * The question before the same act on several queues, nodes or groups of failed jobs. The box waits
 * until all previews have come, and shows each and the sum. The most dangerous of the acts, or
 * their sum, decides how much the user must type.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/box/box.h"
#include "ui/box/box_parts.h"

enum { LINES = 12, MANY_JOBS = 100 };

struct many_box {
    struct view view;
    struct question ask;
    struct action *acts[RUNNING_MOST]; /* NULL = left out */
    char *names[RUNNING_MOST];
    int n;
    bool filled, typed;
    char note[80];
    char sum[32]; /* the number that the user must type */
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

/* Whether action i can be done. An action that can't is left out of the question, with the reason.
 */
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

/* Names all nodes that look alive above the table, because the table has room for its first rows
 * only. */
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
    int64_t sum = 0, hollow = 0;

    m->filled = true;
    app_stale(m->view.app);
    question_clear(&m->ask);
    m->ask.busy = false;
    for (int i = 0; i < m->n; i++)
        if (can_do(m, i)) {
            sum += action_count(m->acts[i]);
            hollow += action_hollow(m->acts[i]);
            first = m->acts[i];
        }
    if (first)
        question_say(&m->ask, ROLE_STRONG, NULL, "%s%s%s in all",
                     fmt_plural(sum - hollow, act_infos[action_act(first)].noun).s,
                     hollow ? " and " : "",
                     hollow ? fmt_plural(hollow, "lease without job").s : "");
    say_alive(m);
    for (int i = 0; i < m->n && i < LINES; i++)
        say_one(m, i);
    if (m->n > LINES)
        question_say(&m->ask, ROLE_TEXT, NULL, "and %d more", m->n - LINES);
    if (*m->note)
        question_say(&m->ask, ROLE_WARN, NULL, "%s", m->note);
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
start(struct view *v)
{
    struct many_box *m = (struct many_box *)v;
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
    return asking_key(v, k, start, asking_no);
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

static const struct view_ops many_ops = {
    .name = "many-box",
    .size = sizeof(struct many_box),
    .done = many_free,
    .update = many_update,
    .draw = asking_draw,
    .drawn = asking_drawn,
    .key = many_key,
    .footer = asking_footer,
};

void
box_many(struct app *a, struct action *const *acts, const char *const *names, int n,
         const char *noun, const char *note)
{
    enum act act = action_act(acts[0]);
    char *kept[RUNNING_MOST];

    for (int i = 0; i < n; i++)
        kept[i] = xstrdup(names[i]);
    app_drop_boxes(a); /* closes also the form from which the box was opened */
    struct many_box *m = (struct many_box *)app_box(a, &many_ops, NULL);
    memcpy(m->acts, acts, sizeof *acts * (size_t)n);
    memcpy(m->names, kept, sizeof *kept * (size_t)n);
    m->n = n;
    snprintf(m->note, sizeof m->note, "%s", note);
    begin(m, act, noun);
    m->ask.busy = true;
    question_say(&m->ask, ROLE_DIM, NULL, "%s ...", action_busy(acts[0]));
    many_update(&m->view);
}
