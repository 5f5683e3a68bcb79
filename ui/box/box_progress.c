/*
 * The box of the running action (Esc hides it, the action goes on), and the question whether to
 * leave while it runs.
 */
#include <math.h>

#include "model/db/rows.h"
#include "ui/box/box.h"
#include "ui/box/box_parts.h"

static void
fill_progress(const struct app *a, struct progress_box *b)
{
    struct progress p = action_progress(a->running.action);
    const struct act_info *info = &act_infos[action_act(a->running.action)];
    enum action_state state = action_state(a->running.action);

    *b = (struct progress_box){
        .title = action_title(a->running.action),
        .noun = info->noun,
        .done = p.changed + p.skipped,
        .total = p.total,
        .batches = p.batches,
        .all_batches = -1,
        .rate = p.rate,
        .left_ms = p.left_ms < 0 ? FIELD_NULL : p.left_ms,
        .slowest_ms = p.slowest_us > 0 ? p.slowest_us / 1000 : FIELD_NULL,
        .note = state == ACTION_WAITING ? "the connection is lost: asks again when it is back"
                                        : action_waits(a->running.action),
    };
    if (a->running.ended) {
        b->result = action_summary(a->running.action);
        b->bad = state == ACTION_FAILED || state == ACTION_REFUSED || state == ACTION_DOUBTFUL;
    }
}

static void
progress_box_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct progress_box b;

    if (!v->app->running.action)
        return;
    fill_progress(v->app, &b);
    b.stopping = v->app->running.stopping;
    progress_draw(&b, g, screen);
}

static bool
progress_box_key(struct view *v, const struct key *k)
{
    struct app *a = v->app;
    struct progress_box b;

    if (!a->running.action) {
        app_close_box(a, v);
        return true;
    }
    fill_progress(a, &b);
    switch (progress_key(&b, k)) {
    case PROGRESS_HIDE:
        app_close_box(a, v);
        break;
    case PROGRESS_STOP:
        app_action_stop(a);
        break;
    case PROGRESS_IGNORED:
        break;
    }
    return true;
}

/* When the box of an ended action closes, the action goes with it. */
static void
progress_box_done(struct view *v)
{
    app_action_forget(v->app);
}

static void
progress_box_footer(struct view *v, struct buf *out)
{
    buf_str(out, v->app->running.ended ? "Esc close"
                                       : "Esc hide (goes on; F8 shows it)   Ctrl-C stop "
                                         "after this part");
}

const struct view_ops progress_ops = {
    .name = "progress-box",
    .size = sizeof(struct view),
    .done = progress_box_done,
    .draw = progress_box_draw,
    .key = progress_box_key,
    .footer = progress_box_footer,
};

void
box_progress(struct app *a)
{
    if (a->running.canary && !app_find_box(a, &canary_ops))
        app_box(a, &canary_ops, NULL);
    else if (!a->running.canary && a->running.action && app_front(a)->ops != &progress_ops)
        app_box(a, &progress_ops, NULL);
}

/* --- leaving --------------------------------------------------------------------------------- */

struct quit_box {
    struct view view;
    struct question ask;
};

static void
quit_init(struct view *v, const char *arg)
{
    struct quit_box *q = (struct quit_box *)v;

    (void)arg;
    question_init(&q->ask, "Quit");
    if (v->app->running.canary) {
        question_say(&q->ask, ROLE_WARN, NULL, "some jobs of a requeue are tried");
        question_say(&q->ask, ROLE_TEXT, NULL, "y quits: they go on, the rest stays as it is");
    } else if (app_action_runs(v->app)) {
        question_say(&q->ask, ROLE_WARN, NULL, "an action is running: %s",
                     action_title(v->app->running.action));
        question_say(&q->ask, ROLE_TEXT, NULL, "y stops it after this part, then quits");
    } else {
        question_say(&q->ask, ROLE_TEXT, NULL, "Leave queuetop?");
        q->ask.easy = true;
    }
}

static void
quit_done(struct view *v)
{
    question_done(&((struct quit_box *)v)->ask);
}

static void
quit_yes(struct view *v)
{
    struct app *a = v->app;

    app_close_box(a, v);
    if (app_action_runs(a)) {
        app_quit_after_action(a);
        app_action_stop(a);
    } else {
        app_quit(a);
    }
}

static void
quit_no(struct view *v)
{
    app_close_box(v->app, v);
}

static bool
quit_key(struct view *v, const struct key *k)
{
    return asking_key(v, k, quit_yes, quit_no);
}

const struct view_ops quit_ops = {
    .name = "quit-box",
    .size = sizeof(struct quit_box),
    .init = quit_init,
    .done = quit_done,
    .draw = asking_draw,
    .drawn = asking_drawn,
    .key = quit_key,
    .footer = asking_footer,
};
