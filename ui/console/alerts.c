/*
 * Alerts: finds them, draws them, and walks through them. A walk over any number of alerts is one
 * step on the trail: Esc goes back to the place where the walk began.
 */
#include "ui/console/alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/child.h"
#include "model/base/clock.h"
#include "model/base/text.h"
#include "ui/console/app.h"
#include "ui/term/fmt.h"

enum { FRESH_MS = 1000, KEY_W = 14, WHERE_W = 14, WIDE_WHERE_W = 24, WIDE_W = 100 };

const struct attention *
app_attention(struct app *a)
{
    struct alerts *l = &a->alerts;
    int64_t age = a->now_ms - l->at_ms;

    if (l->mem && l->store == a->store && l->seen == a->taken && age >= 0 && age < FRESH_MS)
        return &l->now;
    if (!l->mem)
        l->mem = arena_new();
    arena_reset(l->mem);
    l->store = a->store;
    l->seen = a->taken;
    l->at_ms = a->now_ms;
    const struct attention_of of = {a->now_ms, app_is_foreign(a), a->options.utc};
    attention(a->store, &of, l->mem, &l->now);
    l->well_ms = l->now.n > 0 ? 0 : l->well_ms ? l->well_ms : a->now_ms;
    return &l->now;
}

int64_t
alerts_old_ms(const struct app *a)
{
    int64_t age = a->clock.stands ? 0 : store_age_ms(a->store, TOPIC_QUEUES);

    return age >= DATA_OLD_MS ? age : 0;
}

/* "all is well", or when it was. */
static struct fmt
say_well(const struct app *a)
{
    int64_t old = alerts_old_ms(a);
    struct fmt f;

    if (old)
        snprintf(f.s, sizeof f.s, "all was well %.30s ago", fmt_age_short(old).s);
    else
        snprintf(f.s, sizeof f.s, "all is well, as seen since %.18s",
                 fmt_time(a->alerts.well_ms, a->options.utc).s);
    return f;
}

void
alerts_done(struct alerts *l)
{
    if (l->mem)
        arena_free(l->mem);
    free(l->last);
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void
say_shown(struct grid *g, struct rect r, int top, int shown, int total)
{
    char text[64];

    if (shown > 1)
        snprintf(text, sizeof text, " %d to %d of %d ", top + 1, top + shown, total);
    else
        snprintf(text, sizeof text, " %d of %d ", top + shown, total);
    grid_right(g, r, ROLE_DIM, text);
}

static void
draw_rule(struct grid *g, struct rect r, const struct attention *all, int top, int shown, bool on)
{
    int total = all->bad + all->warn;

    grid_rule(g, r, on ? ROLE_STRONG : ROLE_BOX_TITLE, on ? "› needs you" : "needs you");
    rect_cut_right(&r, 2);
    if (total > shown)
        say_shown(g, r, top, shown, total);
}

static void
draw_alert(struct grid *g, struct rect r, const struct alert *alert)
{
    struct sign sign = verdict_sign(alert->verdict);
    struct rect key = rect_cut_right(&r, KEY_W);
    int where_w = r.w >= WIDE_W ? WIDE_WHERE_W : WHERE_W;

    rect_cut_left(&r, 1);
    grid_str(g, rect_cut_left(&r, 2), sign.role, sign.glyph);
    if (alert->is_words) {
        struct pen p = pen_start(g, r);
        pen_put(&p, ROLE_STRONG, alert->where);
        int used = r.w - p.r.w;
        pen_gap(&p, used < where_w ? where_w - used : 1);
        r = p.r;
    } else {
        grid_str(g, rect_cut_left(&r, where_w - 1), ROLE_STRONG, alert->where);
        rect_cut_left(&r, 1);
    }
    r.w -= 1;
    grid_words(g, r, ROLE_TEXT, alert->what);
    struct pen p = pen_start(g, key);
    pen_put(&p, ROLE_DIM, "→ ");
    if (*alert->key)
        pen_printf(&p, ROLE_KEY, "%s ", alert->key);
    pen_put(&p, ROLE_KEY_HELP, alert->act);
}

int
alerts_draw(struct app *a, struct grid *g, struct rect r, int at)
{
    const struct attention *all = app_attention(a);
    struct rect rule = rect_cut_top(&r, 1);
    int shown = all->n < r.h ? all->n : r.h, top = at >= shown ? at - shown + 1 : 0;

    if (all->n == 0 && !store_topic(a->store, TOPIC_QUEUES)->has_data)
        return 0; /* no answer has come yet */
    draw_rule(g, rule, all, top, shown, at >= 0);
    for (int i = 0; i < shown; i++) {
        struct rect row = rect_row(r, i);
        draw_alert(g, row, &all->alerts[top + i]);
        if (top + i != at)
            continue;
        grid_str(g, (struct rect){row.x, row.y, 1, 1}, ROLE_TEXT, "›");
        grid_lay(g, row, GROUND_ROW);
        grid_cursor(g, row.x, row.y);
    }
    if (all->n == 0) {
        rect_cut_left(&r, 3);
        grid_str(g, r, alerts_old_ms(a) ? ROLE_DIM : ROLE_GOOD, say_well(a).s);
    }
    return shown;
}

/* --- walking ---------------------------------------------------------------------------------- */

void
alerts_leave(struct app *a)
{
    a->alerts.walking = false;
}

/* The index of the alert that follows the last one of the walk. */
static int
next_alert(const struct alerts *l)
{
    for (int i = 0; l->last && l->walking && i < l->now.n; i++)
        if (l->now.alerts[i].screen == l->last_screen && !strcmp(l->now.alerts[i].row, l->last) &&
            i >= l->at)
            return (i + 1) % l->now.n;
    return l->walking && l->at + 1 < l->now.n ? l->at : 0;
}

void
alerts_open(struct app *a, int i)
{
    const struct attention *all = app_attention(a);
    struct alerts *l = &a->alerts;
    bool walking = l->walking;
    struct filter_mark mark;
    struct err e = {0};

    if (i < 0 || i >= all->n) { /* no alert is left */
        app_say(a, SAY_INFO, "%s", no_alert(a, 0));
        return;
    }
    const struct alert *to = &all->alerts[i];
    trail_hold(a, walking); /* the whole walk is one place on the trail */
    app_open(a, view_screen(to->screen)->name, NULL);
    trail_hold(a, false);
    struct view *v = app_view(a);
    const char *home = v->ops->home ? v->ops->home : "";
    if (v->ops->set_filter && strcmp(v->ops->filter(v), home) != 0)
        v->ops->set_filter(v, home, &mark, &e);
    free(l->last);
    l->last = xstrdup(to->row);
    l->last_screen = to->screen;
    l->at = i;
    l->walking = true;
    if (*to->row)
        seek_row(a, to->row);
    app_say(a, SAY_INFO, "%d of %d  %s: %s", i + 1, all->bad + all->warn, to->where, to->what);
}

void
on_alert(struct app *a, int arg)
{
    (void)arg;
    alerts_open(a, app_attention(a)->n > 0 ? next_alert(&a->alerts) : -1);
}

const char *
no_alert(const struct app *a, int arg)
{
    (void)arg;
    int64_t old = alerts_old_ms(a);

    if (a->alerts.now.n)
        return NULL;
    return old ? arena_printf(a->frame, "nothing needed attention %s ago; the data are that old",
                              fmt_age_short(old).s)
               : "all is well: nothing needs attention";
}

/* --- the program --- */

/* Runs the user's program for alerts: keeps the present alerts, those already reported, and the
 * running program. One run gets all news since the last good run, so the memory needs no queue
 * of runs. If a run fails, its alerts count as not reported: the next run gets the alerts in
 * their state of that time. */

enum {
    KNOWN_MOST = 2 * ALERTS_MOST,
    LEAST_MS = 1000,
    RUN_MS = 30000,
    GRACE_MS = 2000,
    AGAIN_MOST_MS = 300000, /* the longest wait after a run that failed */
    TAIL = 400              /* the end of its standard error, for the message */
};

struct hook_alert {                 /* one alert; texts are owned, times are monotonic */
    char *key;                      /* alert_key() */
    char *words;                    /* the end of its JSON object, from "source" on */
    enum verdict verdict, reported; /* reported: WELL = not yet */
    bool is_told;                   /* the running program has the alert */
    enum verdict told;              /* the level that the running program got; WELL = gone */
    int64_t since_ms, seen_ms;
    int64_t listed_ms; /* when the alert last had a place in the list */
};

struct alert_hook {
    struct app *a;
    char *program;
    int64_t after_ms;
    struct hook_alert known[KNOWN_MOST];
    int n;
    int source;          /* the index of the source of the alerts */
    int64_t ran_ms;      /* the last start; 0 = never */
    int64_t lost_ms;     /* since when the connection is lost; 0 = it is open */
    struct child *child; /* NULL = it does not run */
    int fails;           /* runs that failed, since the last good one */
};

static void
hook_alert_done(struct hook_alert *k)
{
    free(k->key);
    free(k->words);
}

static void
forget_all(struct alert_hook *h)
{
    for (int i = 0; i < h->n; i++)
        hook_alert_done(&h->known[i]);
    h->n = 0;
}

static void
forget(struct alert_hook *h, int i)
{
    hook_alert_done(&h->known[i]);
    h->known[i] = h->known[--h->n];
}

/* --- what is there ---------------------------------------------------------------------------- */

static void
add_word(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, ", \"%s\": ", name);
    json_string(out, value, strlen(value));
}

static char *
words_of(const struct app *a, const struct alert *alert)
{
    const struct view_ops *screen = view_screen(alert->screen);
    struct buf b = {0};

    add_word(&b, "source", sources_name(a->sources, a->at));
    add_word(&b, "screen", screen ? screen->name : "");
    add_word(&b, "row", alert->row);
    add_word(&b, "where", alert->where);
    add_word(&b, "what", alert->what);
    return b.data;
}

static struct hook_alert *
find_known(struct alert_hook *h, const char *key)
{
    for (int i = 0; i < h->n; i++)
        if (!strcmp(h->known[i].key, key))
            return &h->known[i];
    return NULL;
}

/* A free place for a new alert. If there is none, the alert that left the list first loses its
 * place, warnings before bad ones. NULL = all alerts are on the list. */
static struct hook_alert *
free_place(struct alert_hook *h, int64_t now)
{
    struct hook_alert *out = NULL;

    if (h->n < KNOWN_MOST)
        return &h->known[h->n++];
    for (int i = 0; i < h->n; i++) {
        struct hook_alert *k = &h->known[i];
        if (k->listed_ms < now && (!out || k->verdict < out->verdict ||
                                   (k->verdict == out->verdict && k->listed_ms < out->listed_ms)))
            out = k;
    }
    if (out)
        hook_alert_done(out);
    return out;
}

static bool
is_away(const struct alert_hook *h, const struct hook_alert *k, int64_t now)
{
    return now - k->seen_ms >= h->after_ms && k->seen_ms != now;
}

static void
note(struct alert_hook *h, const struct alert *alert, int64_t now)
{
    char *key = alert_key(alert);
    struct hook_alert *k = find_known(h, key);

    if (k) {
        if (k->is_told && k->told == VERDICT_WELL && is_away(h, k, now))
            k->since_ms = now; /* the alert has come back: it counts as a new one */
        free(key);
        free(k->words);
    } else {
        k = free_place(h, now);
        if (!k) {
            free(key);
            return;
        }
        *k = (struct hook_alert){.key = key, .since_ms = now};
    }
    k->words = words_of(h->a, alert);
    k->verdict = alert->verdict;
    k->seen_ms = k->listed_ms = now;
}

/* Adds the alert that the connection is lost. The other alerts stay as they were, because without a
 * connection nothing is known of them. */
static void
note_loss(struct alert_hook *h, int64_t now)
{
    char what[100];

    if (!h->lost_ms)
        h->lost_ms = now;
    for (int i = 0; i < h->n; i++)
        h->known[i].seen_ms = now;
    snprintf(what, sizeof what, "no connection for %s", fmt_duration(now - h->lost_ms).s);
    note(h,
         &(struct alert){.verdict = VERDICT_BAD,
                         .screen = 1,
                         .row = "",
                         .where = "connection",
                         .what = what,
                         .act = ""},
         now);
}

static void
look(struct alert_hook *h, int64_t now)
{
    struct app *a = h->a;

    if (h->source != a->at) {
        forget_all(h);
        h->source = a->at;
        h->lost_ms = 0;
    }
    if (store_state(a->store) != STORE_OPEN) {
        note_loss(h, now);
        return;
    }
    if (!store_topic(a->store, TOPIC_QUEUES)->has_data)
        return;
    h->lost_ms = 0;
    const struct attention *all = app_attention(a);
    for (int i = 0; i < all->n; i++)
        note(h, &all->alerts[i], now);
    for (int i = 0; i < h->n && all->bad + all->warn > all->n; i++)
        h->known[i].seen_ms = now; /* it may be one of the alerts that have no place */
}

/* --- what is reported ------------------------------------------------------------------------- */

static const char *
event_of(const struct alert_hook *h, const struct hook_alert *k, int64_t now)
{
    if (is_away(h, k, now))
        return k->reported == VERDICT_WELL ? NULL : "gone";
    if (k->reported == VERDICT_WELL)
        return now - k->since_ms >= h->after_ms ? "appeared" : NULL;
    return k->reported != k->verdict ? "changed" : NULL;
}

static void
add_event(struct buf *out, const char *event, const struct hook_alert *k, int64_t now)
{
    buf_printf(out, "{\"event\": \"%s\", \"level\": \"%s\", \"for_ms\": %lld%s}\n", event,
               k->verdict == VERDICT_BAD ? "bad" : "warn",
               (long long)((strcmp(event, "gone") ? now : k->seen_ms) - k->since_ms), k->words);
}

/* Collects all events to report. An alert that has gone and was never reported is forgotten. */
static void
take_events(struct alert_hook *h, struct buf *out, int64_t now)
{
    for (int i = h->n - 1; i >= 0; i--) {
        struct hook_alert *k = &h->known[i];
        const char *event = event_of(h, k, now);
        k->is_told = event != NULL;
        k->told = is_away(h, k, now) ? VERDICT_WELL : k->verdict;
        if (event)
            add_event(out, event, k, now);
        else if (k->told == VERDICT_WELL)
            forget(h, i);
    }
}

/* After a good run the alerts that the program got are reported. After a bad run they are not. */
static void
settle(struct alert_hook *h, bool good, int64_t now)
{
    for (int i = h->n - 1; i >= 0; i--) {
        struct hook_alert *k = &h->known[i];
        if (!k->is_told)
            continue;
        k->is_told = false;
        if (good)
            k->reported = k->told;
        if (k->reported == VERDICT_WELL && is_away(h, k, now))
            forget(h, i);
    }
}

static bool
has_events(const struct alert_hook *h, int64_t now)
{
    for (int i = 0; i < h->n; i++)
        if (event_of(h, &h->known[i], now))
            return true;
    return false;
}

/* --- the program ------------------------------------------------------------------------------ */

/* A message reports only the first of several failures in a row. */
static void
has_failed(struct alert_hook *h, const char *why)
{
    if (h->fails++ == 0)
        app_say(h->a, SAY_WARN, "alert_program: %s (%s)", why, h->program);
    settle(h, false, clock_ms());
}

static void
has_run_well(struct alert_hook *h)
{
    if (h->fails > 0)
        app_say(h->a, SAY_GOOD, "alert_program works again, after %s",
                fmt_plural(h->fails, "failed run").s);
    h->fails = 0;
    settle(h, true, clock_ms());
}

/* The least time between two starts. It doubles with each further failure. */
static int64_t
least_wait(const struct alert_hook *h)
{
    int64_t wait = h->after_ms > LEAST_MS ? h->after_ms : LEAST_MS;

    for (int i = 1; i < h->fails && wait < AGAIN_MOST_MS; i++)
        wait = 2 * wait < AGAIN_MOST_MS ? 2 * wait : AGAIN_MOST_MS;
    return wait;
}

static void
ended(void *ctx, const struct child_report *r)
{
    struct alert_hook *h = ctx;
    struct child *c = h->child;
    char why[TAIL + 100];

    h->child = NULL;
    if (r->end == CHILD_NOT_STARTED)
        snprintf(why, sizeof why, "%s", strerror(r->code));
    else if (r->end == CHILD_UNKNOWN)
        snprintf(why, sizeof why, "it ended, and its exit status is not known");
    else if (r->timed_out)
        snprintf(why, sizeof why, "it ran for longer than %s", fmt_duration(RUN_MS).s);
    else
        snprintf(why, sizeof why, "%s %d: %.*s", r->end == CHILD_EXITED ? "exit code" : "signal",
                 r->code, (int)r->tail_len, r->tail_len ? r->tail : "");
    if (r->end == CHILD_EXITED && r->code == 0)
        has_run_well(h);
    else
        has_failed(h, why);
    child_free(c);
}

static void
on_child_signal(void *ctx, int signo)
{
    struct alert_hook *h = ctx;

    (void)signo;
    if (h->child)
        child_check(h->child);
}

static void
run(struct alert_hook *h, int64_t now)
{
    char *const argv[] = {h->program, NULL};
    struct buf in = {0};
    struct err e = {0};

    take_events(h, &in, now);
    h->ran_ms = now;
    struct child_start start = {.path = h->program,
                                .argv = argv,
                                .env = environ,
                                .input = in.data,
                                .input_len = in.len,
                                .tail_limit = TAIL,
                                .run_timeout_ms = RUN_MS,
                                .grace_ms = GRACE_MS};
    h->child = child_new(h->a->loop, &start, ended, h, &e);
    if (!h->child)
        has_failed(h, e.text);
    buf_free(&in);
}

void
alert_hook_turn(struct alert_hook *h)
{
    int64_t now = clock_ms();

    look(h, now);
    if (!h->child && (!h->ran_ms || now - h->ran_ms >= least_wait(h)) && has_events(h, now))
        run(h, now);
}

struct alert_hook *
alert_hook_new(struct app *a, const char *program, int64_t after_ms)
{
    if (*program != '/' || access(program, X_OK) != 0) {
        app_say(a, SAY_WARN, "alert_program: %s (%s)",
                *program == '/' ? "it can't be run" : "the path must begin with /", program);
        return NULL;
    }
    struct alert_hook *h = xcalloc(1, sizeof *h);
    h->a = a;
    h->program = xstrdup(program);
    h->after_ms = after_ms;
    h->source = a->at;
    loop_on_signal(a->loop, SIGCHLD, on_child_signal, h);
    return h;
}

void
alert_hook_free(struct alert_hook *h)
{
    if (!h)
        return;
    loop_on_signal(h->a->loop, SIGCHLD, NULL, NULL);
    if (h->child)
        child_free(h->child);
    forget_all(h);
    free(h->program);
    free(h);
}
