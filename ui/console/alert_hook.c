/*
 * Runs the user's program for alerts: keeps the present alerts, those already reported, and the
 * running program. One run gets all news since the last good run, so the memory needs no queue of
 * runs. If a run fails, its alerts count as not reported: the next run gets the alerts in their
 * state of that time.
 */
#include "ui/console/alert_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/child.h"
#include "model/base/clock.h"
#include "model/base/text.h"
#include "ui/console/app.h"
#include "ui/term/fmt.h"

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
