/*
 * The words of a requeue of many jobs, and the box of its canary. A canary runs a few of the jobs
 * first; the box shows what becomes of them and then asks whether to requeue the rest. While the
 * few run, Esc hides the box and F8 shows it again. Once the box asks, Esc leaves the rest as it
 * is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/canary.h"
#include "model/base/clock.h"
#include "ui/box/box.h"
#include "ui/box/box_parts.h"
#include "ui/term/chart.h"

enum {
    PANE_W = 74,
    HEAD_W = 34,
    ID_W = 10,
    JOB_W = 34,
    VERDICT_ROWS = 2,
    SOON_MS = 60000,
    DAY_MS = 86400000
};

/* --- the words of a requeue ---------------------------------------------------------------------- */

/* "key 6, then u: ...", with the words for what undo takes back. */
void
say_undo(struct question *ask, const struct action *act)
{
    static const char audit[] = "Audit: u";
    const char *undo = action_undo(act);

    if (!strncmp(undo, audit, sizeof audit - 1))
        question_say(ask, ROLE_DIM, "undo", "key 6, then u%s%s",
                     undo[sizeof audit - 1] == ',' ? ":" : "",
                     undo + sizeof audit - 1 + (undo[sizeof audit - 1] == ','));
    else
        say_lines(ask, ROLE_DIM, "undo", undo);
}

/* The queue that all jobs of the act are of; NULL = several, or not known. */
static const struct queue_row *
queue_of(const struct store *s, const struct action *act)
{
    const char *queue = action_param(act, PARAM_QUEUE);

    return queue ? store_queue(s, queue) : NULL;
}

/* Whether all jobs of the act are failed jobs without a further remark: then one sentence says what
 * happens to all of them. */
static bool
is_plain(const struct action *act)
{
    int n;
    const struct effect_row *rows = action_effects(act, &n);

    return n == 1 && *rows[0].state && !*rows[0].why;
}

static void
say_they(struct question *ask, const struct action *act, const struct queue_row *q)
{
    struct act_options o = action_options(act);
    struct buf b = {0};

    if (!is_plain(act)) {
        say_lines(ask, ROLE_STRONG, "they", action_what(act));
        return;
    }
    buf_printf(&b, "run again, %s",
               o.reset ? "their tries start over" : "one more try each at least");
    if (q && q->ready != FIELD_NULL && q->ready > 0)
        buf_printf(&b, ", behind %s that wait%s", fmt_count(q->ready).s, q->ready == 1 ? "s" : "");
    question_say(ask, ROLE_STRONG, "they", "%s", b.data);
    buf_free(&b);
}

/* The time until a moment, in words: "at once", "about 14:46", "in about 3d". */
static const char *
about(const struct app *a, double in_ms)
{
    int64_t ms = in_ms < 9e15 ? (int64_t)in_ms : INT64_C(9000000000000000);

    if (ms < SOON_MS)
        return "at once";
    if (ms >= DAY_MS)
        return arena_printf(a->frame, "in about %s", fmt_age_short(ms).s);
    return arena_printf(a->frame, "about %.5s", fmt_time(a->now_ms + ms, a->options.utc).s);
}

/* When the first job starts and when the last one is done, by the present throughput of the queue.
 */
static void
say_start(struct question *ask, const struct about_requeue *of, const struct queue_row *q)
{
    const struct app *a = of->app;
    const struct action *act = of->action;
    struct act_options o = action_options(act);
    const struct life_row *life = store_life(of->store);

    if (!q)
        return;
    double rate = q->out5_per_s > 0 ? q->out5_per_s : q->done_per_s;
    if (q->paused == 1)
        question_say(ask, ROLE_WARN, "start",
                     "%s is paused%s%s: none starts until it is resumed (p)", q->queue,
                     q->paused_by && *q->paused_by ? " by " : "", q->paused_by ? q->paused_by : "");
    else if (life && life->workers == 0)
        question_say(ask, ROLE_WARN, "start",
                     "no worker takes this queue: none is alive; start one (queuetop work)");
    else if (!(rate > 0))
        question_say(ask, ROLE_DIM, "start", "not known: nothing of the queue completes now");
    else {
        double first = (double)q->ready / rate * 1000;
        double last = ((double)q->ready + (double)action_count(act)) / rate * 1000;
        if (o.spread_ms && last < (double)o.spread_ms)
            last = (double)o.spread_ms;
        question_say(ask, ROLE_TEXT, "start", "the first %s, the last done %s", about(a, first),
                     about(a, last));
    }
}

void
say_requeue(struct question *ask, const struct about_requeue *of)
{
    const struct app *a = of->app;
    const struct action *act = of->action;
    const char *queue = action_param(act, PARAM_QUEUE), *error = action_param(act, PARAM_ERROR);
    const struct queue_row *q = queue_of(of->store, act);
    char *title = xasprintf("Requeue %s%s%s", fmt_plural(action_count(act), "job").s,
                            queue ? " of " : "", queue ? queue : "");

    question_init(ask, title);
    free(title);
    question_words(&ask->aside, arena_printf(a->frame, "counted %s",
                                             fmt_time(action_counted_ms(act), a->options.utc).s));
    if (error && queue && !action_param(act, PARAM_KIND) && !action_param(act, PARAM_WORDS))
        question_say(ask, ROLE_TEXT, "error", "%s%s", *error == '~' ? "has " : "",
                     error + (*error == '~' || *error == ' '));
    else
        question_say(ask, ROLE_TEXT, "these", "%s", action_these(act));
    say_they(ask, act, q);
    say_start(ask, of, q);
    say_undo(ask, act);
}

/* --- what becomes of the few --------------------------------------------------------------------- */

struct canary_box {
    struct view view;
    struct question ask;
    uint64_t seen; /* generation of the canary that the box shows */
    enum canary_state state;
};

static const struct canary *
canary_of(const void *ctx)
{
    return ((const struct canary_box *)ctx)->view.app->running.canary;
}

static int
answered(const struct canary_verdict *v)
{
    return v->tried - v->by_state[TRIED_WAITS] - v->by_state[TRIED_RUNS];
}

static bool
is_asking(const struct canary *c)
{
    return canary_state(c) == CANARY_ASKING;
}

/* The question for the rest: "9 of 10 are done, 1 failed again: the cause seems gone. The other
 * 3,990?" */
static enum role
verdict_words(const struct canary *c, struct buf *b)
{
    static const enum role roles[] = {[HOPE_GOOD] = ROLE_STRONG,
                                      [HOPE_SOME] = ROLE_STRONG,
                                      [HOPE_LITTLE] = ROLE_WARN,
                                      [HOPE_UNKNOWN] = ROLE_WARN,
                                      [HOPE_NONE] = ROLE_BAD};
    struct canary_verdict v = canary_verdict(c);
    int64_t rest = action_count(canary_rest(c));
    int64_t moved = action_count(canary_whole(c)) - v.tried - rest;

    canary_say(&v, canary_waited_ms(c), b);
    buf_printf(b, ". The other %s?", fmt_count(rest).s);
    if (moved > 0)
        buf_printf(b, " (%s %s moved on meanwhile)", fmt_count(moved).s,
                   moved == 1 ? "has" : "have");
    return roles[v.hope];
}

/* The line below the jobs: the verdict, or the obstacle, or the present step. */
static enum role
status_words(const struct canary *c, struct buf *b)
{
    const char *away = canary_away(c), *obstacle = canary_obstacle(c);

    if (is_asking(c))
        return verdict_words(c, b);
    if (away || (obstacle && canary_state(c) == CANARY_WATCHING)) {
        buf_str(b, away ? away : obstacle);
        return ROLE_WARN;
    }
    buf_str(b, canary_state(c) == CANARY_CHOOSING   ? "choosing them: the newest, the oldest, some "
                                                      "between"
               : canary_state(c) == CANARY_TRYING   ? "requeueing them"
               : canary_state(c) == CANARY_COUNTING ? "counting the rest"
                                                    : "they run ahead of those that wait");
    return ROLE_DIM;
}

static int
text_rows(const struct buf *b, int w)
{
    int h = grid_count_lines(b->data, b->len, w);

    return h < 1 ? 1 : h < VERDICT_ROWS ? h : VERDICT_ROWS;
}

static int
job_rows(const struct canary *c, int w)
{
    int per_row = w >= 2 * JOB_W ? 2 : 1;

    return (canary_wanted(c) + per_row - 1) / per_row;
}

static int
pane_rows(const void *ctx, int w)
{
    const struct canary *c = canary_of(ctx);
    struct buf b = {0};

    if (!c)
        return 0;
    status_words(c, &b);
    int h = text_rows(&b, w);
    buf_free(&b);
    return 1 + 2 + 1 + job_rows(c, w) + 1 + h;
}

static int
head_width(struct rect r)
{
    return r.w >= 2 * JOB_W ? HEAD_W : HEAD_W - 8;
}

/* The name of the option ("first 10, then ask"), how many jobs have an outcome, and for how long
 * the canary has waited. */
static void
draw_head(const struct canary *c, struct grid *g, struct rect r)
{
    struct canary_verdict v = canary_verdict(c);
    int n = canary_wanted(c);
    int64_t waited = canary_waited_ms(c) / 1000;

    if (r.w >= 50)
        grid_printf(g, rect_cut_left(&r, head_width(r)), ROLE_STRONG, "first %d, then ask", n);
    if (v.tried == 0)
        grid_printf(g, r, ROLE_DIM, "%d are tried", n);
    else if (answered(&v) == n)
        grid_printf(g, r, ROLE_TEXT, "%d of %d tried, %" PRId64 "s", n, n, waited);
    else
        grid_printf(g, r, ROLE_TEXT, "%d of %d ended, %" PRId64 "s of %" PRId64 "s", answered(&v),
                    n, waited, canary_wait_ms(c) / 1000);
}

static void
draw_counts(const struct canary *c, struct grid *g, struct rect r)
{
    struct canary_verdict v = canary_verdict(c);

    if (r.w >= 50) {
        struct rect bar = rect_cut_left(&r, head_width(r));
        rect_cut_right(&bar, 2);
        chart_bar(g, bar, (double)answered(&v) / (double)canary_wanted(c));
    }
    struct pen pen = pen_start(g, r);
    pen_printf(&pen, ROLE_TEXT, "%d done", v.by_state[TRIED_DONE]);
    if (v.by_state[TRIED_NOT_KEPT] > 0)
        pen_printf(&pen, ROLE_TEXT, ", %d not kept", v.by_state[TRIED_NOT_KEPT]);
    if (v.by_state[TRIED_FAILED] > 0)
        pen_printf(&pen, ROLE_BAD, ", %d failed again", v.by_state[TRIED_FAILED]);
    if (v.by_state[TRIED_GONE] > 0)
        pen_printf(&pen, ROLE_TEXT, ", %d gone", v.by_state[TRIED_GONE]);
    if (v.by_state[TRIED_RUNS] > 0)
        pen_printf(&pen, ROLE_DIM, ", %d running", v.by_state[TRIED_RUNS]);
}

static void
draw_job(const struct tried_job *j, struct grid *g, struct rect r)
{
    struct pen pen = pen_start(g, rect_cut_left(&r, ID_W));

    pen_put(&pen, ROLE_DIM, fmt_id_tail(j->id).s);
    pen = pen_start(g, r);
    switch (j->state) {
    case TRIED_DONE:
        pen_printf(&pen, ROLE_GOOD, "✓ %-7s", fmt_duration(j->run_ms).s);
        pen_put(&pen, ROLE_TEXT, " ");
        pen_put(&pen, ROLE_TEXT, j->node);
        break;
    case TRIED_FAILED:
        pen_put(&pen, ROLE_BAD, "× ");
        pen_put(&pen, ROLE_TEXT, j->error);
        break;
    case TRIED_RUNS:
        pen_put(&pen, ROLE_TEXT, "running  ");
        pen_put(&pen, ROLE_DIM, j->node);
        break;
    case TRIED_GONE:
        pen_put(&pen, ROLE_DIM, "gone: discarded or purged");
        break;
    case TRIED_NOT_KEPT:
        pen_put(&pen, ROLE_DIM, "completed or removed");
        break;
    case TRIED_WAITS:
    case TRIED_STATES:
        pen_put(&pen, ROLE_DIM, "waits");
        break;
    }
}

/* The order in which jobs are shown. If all have room, it is their own order; otherwise by state,
 * failed ones first. */
static int
order_jobs(const struct tried_job *jobs, int n, int room, int *order)
{
    static const enum tried_state first[] = {TRIED_FAILED, TRIED_RUNS,     TRIED_GONE,
                                             TRIED_WAITS,  TRIED_NOT_KEPT, TRIED_DONE};
    int k = 0;

    if (n <= room) {
        for (; k < n; k++)
            order[k] = k;
        return n;
    }
    for (size_t s = 0; s < sizeof first / sizeof *first; s++)
        for (int i = 0; i < n; i++)
            if (jobs[i].state == first[s])
                order[k++] = i;
    return room - 1;
}

static void
draw_jobs(const struct canary *c, struct grid *g, struct rect r)
{
    int order[CANARY_MOST], n, per_row = r.w >= 2 * JOB_W ? 2 : 1;
    const struct tried_job *jobs = canary_jobs(c, &n);
    int w = r.w / per_row, shown = order_jobs(jobs, n, r.h * per_row, order);

    for (int i = 0; i < shown; i++)
        draw_job(&jobs[order[i]], g,
                 (struct rect){r.x + i % per_row * w, r.y + i / per_row, w - (per_row > 1), 1});
    if (shown < n && shown >= 0)
        grid_printf(g, (struct rect){r.x + shown % per_row * w, r.y + shown / per_row, w, 1},
                    ROLE_DIM, "… %d more", n - shown);
}

static void
pane_draw(const void *ctx, struct grid *g, struct rect r)
{
    const struct canary *c = canary_of(ctx);
    struct text_area area = {.wrap = true};
    struct buf b = {0};

    if (!c)
        return;
    enum role role = status_words(c, &b);
    int want = pane_rows(ctx, r.w), h = text_rows(&b, r.w);
    bool tight = r.h < want;

    rect_cut_top(&r, tight ? 0 : 1);
    struct rect words = rect_cut_bottom(&r, h < r.h ? h : r.h);
    rect_cut_bottom(&r, tight ? 0 : 1);
    if (r.h != 1)
        draw_head(c, g, rect_cut_top(&r, 1));
    draw_counts(c, g, rect_cut_top(&r, 1));
    rect_cut_top(&r, tight ? 0 : 1);
    if (r.h > 0)
        draw_jobs(c, g, r);
    grid_lines(g, words, role, b.data, b.len, &area);
    buf_free(&b);
}

/* --- the box ------------------------------------------------------------------------------------- */

/* Whether all jobs of the canary are done. Then the user need not type the number of the rest,
 * except on a production source. */
static bool
is_proven(const struct canary_box *b)
{
    const struct canary *c = b->view.app->running.canary;

    return canary_verdict(c).by_state[TRIED_DONE] == canary_wanted(c) &&
           !b->view.app->options.production;
}

/* The question and its keys, by the state of the canary. The lines stay as they were when the box
 * was opened, because later the few jobs are counted among the waiting ones. */
static void
ask(struct canary_box *b)
{
    const struct canary *c = b->view.app->running.canary;

    b->state = canary_state(c);
    b->ask.shown_ms = 0;
    b->ask.watching = !is_asking(c);
    b->ask.can_dry = b->ask.can_sql = is_asking(c);
    question_words(&b->ask.no, is_asking(c) ? "stop here" : "hide (they go on; F8 shows it)");
    question_words(&b->ask.options, NULL);
    question_words(&b->ask.challenge, NULL);
    question_words(&b->ask.yes, NULL);
    if (!is_asking(c))
        return;
    b->ask.enter_is_no = canary_verdict(c).hope == HOPE_NONE;
    say_options(&b->ask, canary_rest(c));
    if (is_proven(b))
        question_words(&b->ask.yes, "requeue them, too");
    else
        question_typed(&b->ask, NULL, action_challenge(canary_rest(c)));
}

static void
canary_update_box(struct view *v)
{
    struct canary_box *b = (struct canary_box *)v;
    const struct canary *c = v->app->running.canary;

    if (!c) {
        app_close_box(v->app, v);
        return;
    }
    app_wake(v->app, clock_ms() + 1000); /* the box counts seconds */
    if (canary_generation(c) == b->seen)
        return;
    b->seen = canary_generation(c);
    if (canary_state(c) != b->state && canary_state(c) != CANARY_OVER)
        ask(b);
    app_stale(v->app);
}

static void
canary_init(struct view *v, const char *arg)
{
    struct canary_box *b = (struct canary_box *)v;
    struct app *a = v->app;
    int source = a->running.source;
    struct store *store = source_store(sources_peek(a->sources, source));

    (void)arg;
    say_requeue(&b->ask, &(struct about_requeue){a, store, canary_whole(a->running.canary)});
    if (source != a->at)
        question_say(&b->ask, ROLE_WARN, "source", "%s, not the source on the screen",
                     sources_name(a->sources, source));
    b->ask.pane = (struct question_pane){pane_rows, PANE_W, pane_draw, b};
    ask(b);
    b->seen = canary_generation(v->app->running.canary);
}

static void
canary_done(struct view *v)
{
    question_done(&((struct canary_box *)v)->ask);
}

/* Yes: requeues the rest without a second question. */
static void
go_on(struct app *a)
{
    struct action *rest = canary_take_rest(a->running.canary);

    action_hold_count(rest);
    app_drop_boxes(a);
    app_action_run(a, rest, false);
}

void
canary_again(struct view *v, const struct act_options *o)
{
    struct canary *c = v->app->running.canary;

    if (c && is_asking(c))
        canary_rest_again(c, o);
    canary_update_box(v);
}

static void
answer(struct canary_box *b, const struct key *k)
{
    struct app *a = b->view.app;
    struct canary *c = a->running.canary;
    struct act_options o = action_options(canary_rest(c));

    switch (question_key(&b->ask, k)) {
    case ASK_YES:
        go_on(a);
        break;
    case ASK_NO:
        app_action_stop(a);
        break;
    case ASK_DRY:
        canary_again(&b->view, &o);
        break;
    case ASK_SQL:
        box_text(a, "SQL of this action", action_sql(canary_rest(c)));
        break;
    case ASK_OPTIONS:
        box_options(a, canary_rest(c));
        break;
    case ASK_TURN:
    case ASK_WAIT:
        break;
    }
}

static bool
canary_key(struct view *v, const struct key *k)
{
    struct canary_box *b = (struct canary_box *)v;
    struct canary *c = v->app->running.canary;

    if (!c) {
        app_close_box(v->app, v);
    } else if (is_asking(c) && b->state == CANARY_ASKING) {
        answer(b, k);
    } else if (key_is(k, "Esc")) {
        app_close_box(v->app, v);
    } else if (key_is(k, "C-c")) {
        app_action_stop(v->app);
    }
    return true;
}

static void
canary_draw(struct view *v, struct grid *g, struct rect screen)
{
    question_draw(&((struct canary_box *)v)->ask, g, screen);
}

static void
canary_drawn(struct view *v)
{
    question_shown(&((struct canary_box *)v)->ask, v->app->clock.drawn_ms);
}

static void
canary_footer(struct view *v, struct buf *out)
{
    struct canary_box *b = (struct canary_box *)v;

    if (b->state == CANARY_ASKING)
        question_footer(&b->ask, out);
    else
        buf_str(out, "Esc hide (they go on; F8 shows it)   Ctrl-C stop: the rest stays as it is");
}

const struct view_ops canary_ops = {
    .name = "canary-box",
    .size = sizeof(struct canary_box),
    .init = canary_init,
    .done = canary_done,
    .update = canary_update_box,
    .draw = canary_draw,
    .drawn = canary_drawn,
    .key = canary_key,
    .footer = canary_footer,
};
