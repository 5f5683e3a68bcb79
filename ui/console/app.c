/*
 * The life of the console between the loop and the views: which view gets a key, which topics are
 * asked, when a frame is drawn. It knows views only by their ops and the server only by the store.
 * A frame is drawn after every turn that took a key, after other turns that changed something at
 * most one each 16 ms, and one each second so that ages tick.
 */
#include "ui/console/app.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/lookup.h"
#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "ui/console/recording.h"

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
    struct messages *l = &a->log;
    char text[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
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
    a->flash = true;
    a->stale = true;
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
    a->stale = true;
}

static void app_sync(struct app *a);

void
app_key(struct app *a, const struct key *k)
{
    a->stale = a->keyed = true;
    app_attend(a);
    app_view(a)->touched = true; /* before new data can move a row from under the key */
    app_sync(a);
    if (key_is(k, "C-l")) {
        term_repaint(a->term);
        return;
    }
    a->flash = false;
    if (k->code >= KC_CLICK && k->code <= KC_WHEEL_DOWN) {
        app_mouse(a, k);
        return;
    }
    if (a->nboxes > 0) {
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

static void
on_tty(void *ctx, short revents)
{
    struct app *a = ctx;
    struct key k;
    bool hung = false;

    if (a->unsent && (revents & POLLOUT) && term_flush(a->term)) {
        a->unsent = false;
        loop_rewatch(a->loop, a->tty, term_fd(a->term), POLLIN);
    }
    if (revents & ~POLLOUT)
        while (!a->quit && term_read(a->term, &k, &hung))
            app_key(a, &k);
    if (hung) {
        a->signo = SIGHUP;
        a->quit = true;
    }
}

/* --- signals --------------------------------------------------------------------------------- */

static void
on_end_signal(void *ctx, int signo)
{
    struct app *a = ctx;

    a->signo = signo;
    a->quit = true;
}

static void
on_command_signal(void *ctx, int signo)
{
    struct app *a = ctx;

    if (a->away && signo == SIGINT) /* meant for the editor */
        return;
    app_run(a, command_named(app_scope(a), signo == SIGINT ? "stop" : "suspend"));
}

static void
on_size_signal(void *ctx, int signo)
{
    struct app *a = ctx;

    if (a->away)
        return;
    if (signo == SIGCONT)
        term_enter(a->term);
    term_resized(a->term);
    a->stale = true;
}

static void
take_signals(struct app *a)
{
    loop_on_signal(a->loop, SIGTERM, on_end_signal, a);
    loop_on_signal(a->loop, SIGHUP, on_end_signal, a);
    loop_on_signal(a->loop, SIGINT, on_command_signal, a);
    loop_on_signal(a->loop, SIGTSTP, on_command_signal, a);
    loop_on_signal(a->loop, SIGWINCH, on_size_signal, a);
    loop_on_signal(a->loop, SIGCONT, on_size_signal, a);
}

/* --- turns and frames ------------------------------------------------------------------------ */

/* What this login may not do, rows that may be hidden from it, adapters that were not read: said
 * once a source. */
static void
say_warnings(struct app *a)
{
    bool *warned = &a->desks[a->at].warned;

    if (*warned || store_state(a->store) != STORE_OPEN)
        return;
    *warned = true;
    const struct role_row *role = store_role(a->store);
    if (app_is_foreign(a) && role && role->can_act != 1 && *role->why)
        app_say(a, SAY_INFO, "look only: %s", role->why);
    for (int i = 0; store_warning(a->store, i); i++)
        app_say(a, SAY_WARN, "%s", store_warning(a->store, i));
}

/* A promotion changes what can be done here, and nothing else on the screen tells of it. */
static void
say_turn(struct app *a)
{
    const struct server_row *server = store_server(a->store);
    int *was = &a->desks[a->at].recovery, is = server ? server->in_recovery + 1 : 0;

    if (*was && is && *was != is)
        app_say(a, SAY_INFO, "%s",
                is == 1 ? "this server was promoted: it is no standby any more, and takes changes"
                        : "this server is a standby now: it takes no changes");
    *was = is ? is : *was;
}

/* The same names stand there, but they are other jobs: nothing that was asked before goes on. */
static void
say_move(struct app *a)
{
    int *seen = &a->desks[a->at].moves, moves = store_moves(a->store);

    if (*seen == moves)
        return;
    *seen = moves;
    app_drop_boxes(a);
    app_say(a, SAY_BAD, "another server or database is at this address now: look before you act");
}

/* Lets the views take new data; draws nothing. */
static void
app_sync(struct app *a)
{
    app_watch_sources(a);
    uint64_t seen = sources_generation(a->sources);
    int64_t now = store_now_ms(a->store);

    if (!store_is_frozen(a->store) || a->now_ms == 0)
        a->now_ms = now > 0 && !a->clock_stands ? now : clock_wall_ms();
    app_action_update(a);
    recording_watch(a);
    if (seen != a->seen) {
        a->seen = seen;
        a->stale = true;
        say_warnings(a);
        say_turn(a);
        say_move(a);
        for (int i = 0; i < a->depth; i++) /* also what lies below: its rows may have gone */
            if (a->stack[i]->ops->update)
                a->stack[i]->ops->update(a->stack[i]);
        alerts_seek(a);
    }
    for (int i = 0; i < a->nboxes; i++) /* boxes watch actions, which the store knows nothing of */
        if (a->boxes[i]->ops->update)
            a->boxes[i]->ops->update(a->boxes[i]);
}

void
app_stale(struct app *a)
{
    a->stale = true;
}

static void
draw_frame(struct app *a, int64_t now)
{
    int w, h;

    term_resized(a->term); /* in a session without a terminal no signal tells */
    term_size(a->term, &w, &h);
    struct rect have = grid_rect(a->grid);
    if (have.w != w || have.h != h)
        grid_resize(a->grid, w, h);
    if (!a->ticked)
        a->tick_ms = now + APP_TICK_MS;
    a->ticked = false;
    a->frames++;
    a->stale_ms = 0;
    app_compose(a);
    a->unsent = !term_draw(a->term, a->grid) || !term_flush(a->term);
    if (a->unsent)
        loop_rewatch(a->loop, a->tty, term_fd(a->term), POLLIN | POLLOUT);
    a->stale = a->keyed = false;
    a->drawn_ms = now;
    struct view *front = app_front(a), *screen = app_view(a);
    if (screen->ops->drawn) /* behind a box too */
        screen->ops->drawn(screen);
    if (front != screen && front->ops->drawn)
        front->ops->drawn(front);
}

static void
on_timer(void *ctx)
{
    struct app *a = ctx;

    a->timer = 0;
}

void
app_wake(struct app *a, int64_t at_ms)
{
    if (!a->wake_ms || at_ms < a->wake_ms)
        a->wake_ms = at_ms;
}

/* When the next frame may be drawn: after a key at once; after data a moment later, because the
 * answers to several questions come one after the other and shall be one frame. */
static int64_t
frame_due(const struct app *a)
{
    int64_t gather = a->frames < 10 ? 0 : APP_GATHER_MS;

    if (a->keyed)
        return 0;
    return a->stale_ms + gather > a->drawn_ms + APP_FRAME_MS ? a->stale_ms + gather
                                                             : a->drawn_ms + APP_FRAME_MS;
}

/* Ages tick: without news a frame each second; after news the next one by itself is a little later
 * than the next news, so that a live screen is drawn once a second and not twice. */
static void
take_ticks(struct app *a, int64_t now)
{
    bool tick = now >= a->tick_ms, wake = a->wake_ms && now >= a->wake_ms;

    if (tick) {
        a->tick_ms = now + 1000 - now % 1000;
        a->ticked = true;
    }
    if (wake)
        a->wake_ms = 0;
    if (tick || wake) {
        a->stale = true;
        a->stale_ms = now - APP_GATHER_MS;
    }
    if (a->stale && !a->stale_ms)
        a->stale_ms = now;
}

static int64_t
next_turn(const struct app *a)
{
    int64_t at = a->tick_ms;

    if (a->stale && !a->unsent && !a->away)
        at = frame_due(a);
    return a->wake_ms && a->wake_ms < at ? a->wake_ms : at;
}

/* Hook of the loop: sync and draw. */
static void
app_before_wait(void *ctx)
{
    struct app *a = ctx;
    int64_t now = clock_ms();

    app_sync(a);
    if (a->quit) {
        loop_stop(a->loop);
        return;
    }
    take_ticks(a, now);
    if (a->stale && !a->unsent && !a->away && now >= frame_due(a))
        draw_frame(a, now);
    if (a->timer)
        loop_cancel(a->loop, a->timer);
    a->timer = loop_at(a->loop, next_turn(a), on_timer, a);
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
    a->asks_at = -1;
    a->told_of = sources_n(ss);
    a->options = *o;
    a->frame = arena_new();
    a->clock_stands = getenv("QUEUETOP_NOW") != NULL;
    term_size(t, &w, &h);
    a->grid = grid_new(w, h, term_ascii(t));
    a->tty = loop_watch(l, term_fd(t), POLLIN, on_tty, a);
    take_signals(a);
    loop_before_wait(l, app_before_wait, a);
    app_open(a, "queues", NULL);
    if (sources_n(ss) > 1)
        app_push(a, "overview", NULL);
    recording_begin(a);
    app_sync(a);
    return a;
}

void
app_free(struct app *a)
{
    loop_before_wait(a->loop, NULL, NULL);
    loop_unwatch(a->loop, a->tty);
    if (a->timer)
        loop_cancel(a->loop, a->timer);
    editor_free(a->editor);
    lookup_free(a->lookup);
    app_drop_views(a);
    if (a->action)
        action_free(a->action);
    for (int i = 0; i < a->log.n; i++)
        message_done(&a->log.items[i]);
    line_history_done(&a->filters);
    line_history_done(&a->words);
    line_history_done(&a->times);
    names_done(&a->kinds);
    trail_done(&a->trail);
    alerts_done(&a->alerts);
    grid_free(a->grid);
    arena_free(a->frame);
    free(a);
}
