/*
 * The life of the console between the loop and the views: which view gets a key, when the views
 * take new data, when a frame is drawn. It knows a view only by its ops and the server only by the
 * store.
 *
 * A frame is drawn after every turn that took a key; after other turns that changed something, at
 * most once each 16 ms; and once a second, so that ages tick.
 */
#include "ui/console/app.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/action/canary.h"
#include "model/adapter/lookup.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "ui/console/replay_keys.h"

/* --- saying ---------------------------------------------------------------------------------- */

static void
message_done(struct message *m)
{
    free(m->number);
    free(m->text);
}

void
app_say(struct app *a, enum severity s, const char *fmt, ...)
{
    static const char *const words[] = {"note", "done", "warning", "error"};
    struct messages *l = &a->messages;
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    text_vprint(text, sizeof text, fmt, ap);
    va_end(ap);
    if (l->n == APP_MESSAGES) {
        message_done(&l->items[0]);
        memmove(&l->items[0], &l->items[1], sizeof l->items[0] * (size_t)--l->n);
    }
    l->items[l->n++] = (struct message){.at_ms = a->now_ms,
                                        .severity = s,
                                        .word = words[s],
                                        .number = xasprintf("%4lld", (long long)++l->count),
                                        .text = xstrdup(text)};
    log_line(s == SAY_BAD ? LOG_ERROR : LOG_INFO, "%s", text);
    a->messages.fresh = true;
    a->clock.stale = true;
}

/* --- keys ------------------------------------------------------------------------------------ */

const char *
app_why_not(const struct app *a, const struct command *c)
{
    if (!(c->scope & app_scope(a)))
        return "not on this screen";
    if (!c->run)
        return "only in boxes that ask";
    return c->why_not ? c->why_not(a, c->arg) : NULL;
}

void
app_run(struct app *a, const struct command *c)
{
    const char *why = app_why_not(a, c);

    if (why)
        app_say(a, SAY_INFO, "%s: %s", c->name, why);
    else
        c->run(a, c->arg);
    a->clock.stale = true;
}

static void app_sync(struct app *a);

/* While the screen is too small to show anything, no key may act on what the user can't see: only
 * the keys that leave work. A question before the end could not be seen either. */
static void
take_blind_key(struct app *a, const struct key *k)
{
    struct view *box = a->views.nboxes > 0 ? app_front(a) : NULL;

    if (key_is(k, "C-c") && !app_action_runs(a))
        app_quit(a);
    else if (key_is(k, "Esc") && box)
        box->ops->key(box, k);
    else if (key_is(k, "C-c") || (key_in(k, "q Esc") && !box))
        app_run(a, command_for_key(app_scope(a), k));
}

static void
take_key(struct app *a, const struct key *k)
{
    if (key_is(k, "C-l")) {
        term_repaint(a->term);
        return;
    }
    if ((a->clock.blind || app_is_small(a)) && !a->options.tv_ms) {
        take_blind_key(a, k);
        return;
    }
    a->messages.fresh = false;
    if (a->options.tv_ms) {
        tv_key(a, k);
        return;
    }
    if (k->code >= KC_CLICK && k->code <= KC_WHEEL_DOWN) {
        app_mouse(a, k);
        return;
    }
    if (a->views.nboxes > 0) {
        struct view *box = app_front(a);
        box->ops->key(box, k);
        return;
    }
    if (k->code == KC_PASTE)
        return;
    const struct command *c = command_for_key(app_scope(a), k);
    if (c)
        app_run(a, c);
    else
        app_say(a, SAY_INFO, "%s does nothing here; ? lists the keys", key_word(k).s);
}

void
app_key(struct app *a, const struct key *k)
{
    a->clock.stale = a->clock.keyed = true;
    app_attend(a);
    app_view(a)->touched = true; /* before new data can move other rows under the cursor */
    app_sync(a);
    take_key(a, k);
    follow_key(a);
}

/* Tells the screen and the box in front that the user can see them now. */
static void
tell_drawn(struct app *a)
{
    struct view *front = app_front(a), *screen = app_view(a);

    a->clock.blind = false;
    if (screen->ops->drawn) /* also if a box is in front of the screen */
        screen->ops->drawn(screen);
    if (front != screen && front->ops->drawn)
        front->ops->drawn(front);
}

/* The terminal has taken the rest of a frame. If something has changed since the frame was drawn,
 * the next frame is the one that counts. */
static void
take_sent(struct app *a)
{
    a->clock.unsent = false;
    loop_rewatch(a->loop, a->tty, term_fd(a->term), POLLIN);
    if (a->clock.stale || app_is_small(a))
        return;
    a->clock.drawn_ms = clock_ms();
    tell_drawn(a);
}

static void
on_tty(void *ctx, short revents)
{
    struct app *a = ctx;
    struct key k;
    bool hung = false;

    if (revents & ~POLLOUT)
        while (!a->leaving.now && term_read(a->term, &k, &hung))
            app_key(a, &k);
    /* after the keys: they were typed before the rest of the frame could be seen */
    if (a->clock.unsent && (revents & POLLOUT) && term_flush(a->term))
        take_sent(a);
    if (hung) {
        a->leaving.signo = SIGHUP;
        a->leaving.now = true;
    }
}

/* --- signals --------------------------------------------------------------------------------- */

static void
on_end_signal(void *ctx, int signo)
{
    struct app *a = ctx;

    a->leaving.signo = signo;
    a->leaving.now = true;
}

static void
on_command_signal(void *ctx, int signo)
{
    struct app *a = ctx;

    if (a->lent.away && signo == SIGINT) /* the user pressed the key in the editor */
        return;
    app_run(a, command_named(app_scope(a), signo == SIGINT ? "stop" : "suspend"));
}

static void
on_size_signal(void *ctx, int signo)
{
    struct app *a = ctx;

    if (a->lent.away)
        return;
    if (signo == SIGCONT)
        term_enter(a->term);
    term_resized(a->term);
    a->clock.stale = true;
}

static void
take_signals(struct app *a)
{
    loop_on_signal(a->loop, SIGTERM, on_end_signal, a);
    loop_take_signal(a->loop, SIGHUP, on_end_signal, a);
    loop_take_signal(a->loop, SIGINT, on_command_signal, a);
    loop_on_signal(a->loop, SIGTSTP, on_command_signal, a);
    loop_on_signal(a->loop, SIGWINCH, on_size_signal, a);
    loop_on_signal(a->loop, SIGCONT, on_size_signal, a);
}

/* --- turns and frames ------------------------------------------------------------------------ */

int64_t
app_clock_ms(const struct app *a)
{
    int64_t now = store_now_ms(a->store);

    return now > 0 && !a->clock.stands ? now : clock_wall_ms();
}

/* Lets the views take new data; draws nothing. */
static void
app_sync(struct app *a)
{
    app_watch_sources(a);
    uint64_t seen = sources_generation(a->sources);

    if (!store_is_frozen(a->store) || a->now_ms == 0)
        a->now_ms = app_clock_ms(a);
    app_action_update(a);
    replay_keys_watch(a);
    if (seen != a->taken) {
        a->taken = seen;
        a->clock.stale = true;
        app_say_news(a);
        for (int i = 0; i < a->views.depth; i++) /* also hidden views: their rows may be freed */
            if (a->views.stack[i]->ops->update)
                a->views.stack[i]->ops->update(a->views.stack[i]);
        app_fit_screen(a);
        follow_log_note(a);
        follow_hold(a);
        seek_turn(a);
        follow_key(a);
    }
    for (int i = 0; i < a->views.nboxes;
         i++) /* boxes watch actions, which do not change the generation of a store */
        if (a->views.boxes[i]->ops->update)
            a->views.boxes[i]->ops->update(a->views.boxes[i]);
}

void
app_stale(struct app *a)
{
    a->clock.stale = true;
}

void
app_quit(struct app *a)
{
    a->leaving.now = true;
}

void
app_quit_after_action(struct app *a)
{
    a->leaving.after_action = true;
}

void
app_lend_terminal(struct app *a)
{
    a->clock.unsent = false;
    loop_rewatch(a->loop, a->tty, -1, 0);
    term_leave(a->term);
}

void
app_take_terminal(struct app *a)
{
    term_enter(a->term);
    term_drop_input(a->term);
    loop_rewatch(a->loop, a->tty, term_fd(a->term), POLLIN);
    a->clock.stale = a->clock.keyed = true;
}

static void
draw_frame(struct app *a, int64_t now)
{
    int w, h;

    term_resized(a->term); /* without a controlling terminal no signal reports a new size */
    term_size(a->term, &w, &h);
    struct rect have = grid_rect(a->grid);
    if (have.w != w || have.h != h)
        grid_resize(a->grid, w, h);
    if (!a->clock.ticked)
        a->clock.tick_ms = now + APP_TICK_MS;
    a->clock.ticked = false;
    a->clock.frames++;
    a->clock.stale_ms = 0;
    app_compose(a);
    bool drawn = term_draw(a->term, a->grid); /* not while something else waits to be sent */
    a->clock.unsent = !drawn || !term_flush(a->term);
    if (a->clock.unsent)
        loop_rewatch(a->loop, a->tty, term_fd(a->term), POLLIN | POLLOUT);
    a->clock.stale = a->clock.keyed = !drawn;
    a->clock.drawn_ms = now;
    if (app_is_small(a))
        a->clock.blind = true;
    else if (!a->clock.unsent)
        tell_drawn(a);
}

static void
on_timer(void *ctx)
{
    struct app *a = ctx;

    a->clock.timer = 0;
}

void
app_wake(struct app *a, int64_t at_ms)
{
    if (!a->clock.wake_ms || at_ms < a->clock.wake_ms)
        a->clock.wake_ms = at_ms;
}

/* When the next frame may be drawn: at once after a key; after data a moment later, so that the
 * answers to several questions are drawn in one frame. */
static int64_t
frame_due(const struct app *a)
{
    int64_t gather = a->clock.frames < 10 ? 0 : APP_GATHER_MS;

    if (a->clock.keyed)
        return 0;
    return a->clock.stale_ms + gather > a->clock.drawn_ms + APP_FRAME_MS
               ? a->clock.stale_ms + gather
               : a->clock.drawn_ms + APP_FRAME_MS;
}

/* Draws a frame each second if there is no new data, because ages grow. After new data the next
 * tick is set a little later than the next data should come, so that a live screen is drawn once a
 * second, not twice. */
static void
take_ticks(struct app *a, int64_t now)
{
    bool tick = now >= a->clock.tick_ms, wake = a->clock.wake_ms && now >= a->clock.wake_ms;

    if (tick) {
        a->clock.tick_ms = now + 1000 - now % 1000;
        a->clock.ticked = true;
    }
    if (wake)
        a->clock.wake_ms = 0;
    if (tick || wake) {
        a->clock.stale = true;
        a->clock.stale_ms = now - APP_GATHER_MS;
    }
    if (a->clock.stale && !a->clock.stale_ms)
        a->clock.stale_ms = now;
}

static int64_t
next_turn(const struct app *a)
{
    int64_t at = a->clock.tick_ms;

    if (a->clock.stale && !a->clock.unsent && !a->lent.away)
        at = frame_due(a);
    return a->clock.wake_ms && a->clock.wake_ms < at ? a->clock.wake_ms : at;
}

/* Hook of the loop: sync and draw. */
static void
app_before_wait(void *ctx)
{
    struct app *a = ctx;
    int64_t now = clock_ms();

    app_sync(a);
    if (a->leaving.now) {
        loop_stop(a->loop);
        return;
    }
    if (a->options.tv_ms)
        tv_turn(a);
    if (a->hook)
        alert_hook_turn(a->hook);
    take_ticks(a, now);
    if (a->clock.stale && !a->clock.unsent && !a->lent.away && now >= frame_due(a))
        draw_frame(a, now);
    if (a->clock.timer)
        loop_cancel(a->loop, a->clock.timer);
    a->clock.timer = loop_at(a->loop, next_turn(a), on_timer, a);
}

/* --- beginning and end ----------------------------------------------------------------------- */

struct app *
app_new(struct loop *l, struct term *t, struct sources *ss, const struct app_options *o)
{
    struct app *a = xcalloc(1, sizeof *a);
    int w, h;

    a->loop = l;
    a->term = t;
    a->sources = ss;
    a->source = sources_peek(ss, 0);
    a->store = source_store(a->source);
    a->watch.at = -1;
    a->watch.told_of = sources_n(ss);
    a->options = *o;
    a->frame = arena_new();
    a->clock.stands = getenv("QUEUETOP_NOW") != NULL;
    term_size(t, &w, &h);
    a->grid = grid_new(w, h, term_ascii(t));
    a->tty = loop_watch(l, term_fd(t), POLLIN, on_tty, a);
    take_signals(a);
    loop_before_wait(l, app_before_wait, a);
    app_open(a, "queues", NULL);
    if (sources_n(ss) > 1 && !o->tv_ms)
        app_push(a, "overview", NULL);
    replay_keys_begin(a);
    if (o->alert_program)
        a->hook = alert_hook_new(a, o->alert_program, o->alert_after_ms);
    app_sync(a);
    return a;
}

void
app_free(struct app *a)
{
    loop_before_wait(a->loop, NULL, NULL);
    loop_unwatch(a->loop, a->tty);
    if (a->clock.timer)
        loop_cancel(a->loop, a->clock.timer);
    editor_free(a->lent.editor);
    alert_hook_free(a->hook);
    lookup_free(a->form.lookup);
    free(a->form.about);
    app_drop_views(a);
    app_action_drop(a);
    if (a->running.action)
        action_free(a->running.action);
    canary_free(a->running.canary);
    for (int i = 0; i < a->messages.n; i++)
        message_done(&a->messages.items[i]);
    line_history_done(&a->typed.filters);
    line_history_done(&a->typed.words);
    line_history_done(&a->typed.times);
    names_done(&a->typed.kinds);
    trail_done(&a->trail);
    follow_done(&a->follow);
    seek_end(a);
    alerts_done(&a->alerts);
    grid_free(a->grid);
    arena_free(a->frame);
    free(a);
}
