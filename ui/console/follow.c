/*
 * Follows a queue, a job or a group. A table keeps its cursor on a row by the id of the row; this
 * file brings the cursor back to the row after another screen, a filter or a page was in front. The
 * state of the followed thing comes from the store; if the screen in front does not ask for the
 * data, this file asks.
 */
#include "ui/console/follow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/term/fmt.h"

/* --- the log --- */

/* The log of the followed thing. Of a queue the counters say how many jobs were pushed,
 * completed and failed since the last answer; systems without counters say how many wait, run
 * and have failed. */

enum { EVENTS_MOST = 500, EVENTS_DROPPED = 100 };

static void
drop_events(struct follow_log *l, int n)
{
    for (int i = 0; i < n; i++) {
        free(l->events[i].number);
        free(l->events[i].text);
    }
    l->n -= n;
    if (l->n > 0)
        memmove(l->events, l->events + n, (size_t)l->n * sizeof *l->events);
}

static void
follow_log_done(struct follow_log *l)
{
    drop_events(l, l->n);
    free(l->events);
    free(l->was.state);
    *l = (struct follow_log){.count = l->count};
}

static void
add_event(struct app *a, bool bad, const struct buf *text)
{
    struct follow_log *l = &a->follow.log;

    if (!l->events)
        l->events = xcalloc(EVENTS_MOST, sizeof *l->events);
    if (l->n == EVENTS_MOST)
        drop_events(l, EVENTS_DROPPED);
    l->events[l->n++] = (struct follow_event){.number = xasprintf("%012" PRId64, ++l->count),
                                              .at_ms = a->now_ms,
                                              .bad = bad,
                                              .text = xstrndup(text->data, text->len)};
}

/* --- a queue ---------------------------------------------------------------------------------- */

static void
say_more(struct buf *out, int64_t was, int64_t is, const char *what)
{
    if (was != FIELD_NULL && is != FIELD_NULL && is > was)
        buf_printf(out, "%s%s %s", out->len ? ", " : "", fmt_count(is - was).s, what);
}

static void
note_queue(struct app *a)
{
    const struct queue_row *q = store_queue(a->store, a->follow.id);
    struct follow_was *was = &a->follow.log.was;
    struct buf text = {0};

    if (!q)
        return;
    struct follow_was is = {true,     q->pushed,  q->completed, q->fails,  q->retried,
                            q->ready, q->running, q->failed,    q->paused, NULL};
    bool moved = is.ready != was->ready || is.running != was->running || is.failed != was->failed;
    if (!was->known) {
        buf_str(&text, "followed from here on");
    } else if (is.paused != was->paused && is.paused >= 0) {
        buf_printf(&text, "%s%s%s", is.paused == 1 ? "paused" : "goes on",
                   is.paused == 1 && *q->paused_by ? " by " : "",
                   is.paused == 1 ? q->paused_by : "");
    }
    say_more(&text, was->known ? was->pushed : FIELD_NULL, is.pushed, "pushed");
    say_more(&text, was->known ? was->completed : FIELD_NULL, is.completed, "completed");
    say_more(&text, was->known ? was->retried : FIELD_NULL, is.retried, "to try again");
    say_more(&text, was->known ? was->fails : FIELD_NULL, is.fails, "failed");
    if (text.len || moved) {
        buf_printf(&text, "%s%s wait%s, %s run%s, %s failed", text.len ? "; " : "",
                   fmt_about(is.ready, q->approx).s, is.ready == 1 ? "s" : "",
                   fmt_count(is.running).s, is.running == 1 ? "s" : "",
                   fmt_about(is.failed, q->approx).s);
        add_event(a, was->known && is.fails > was->fails, &text);
    }
    *was = is;
    buf_free(&text);
}

/* --- a job, a group of errors ----------------------------------------------------------------- */

static void
note_job(struct app *a)
{
    const struct job_detail *d = store_job(a->store);
    struct follow_was *was = &a->follow.log.was;
    struct buf text = {0};

    if (!d || strcmp(d->job.id, a->follow.id) != 0)
        return;
    const struct job_row *j = &d->job;
    buf_str(&text, j->state);
    if (*j->node)
        buf_printf(&text, " on %s", j->node);
    if (j->max_tries > 0)
        buf_printf(&text, ", %d of %d tries have ended", j->tries, j->max_tries);
    if (d->cancel_asked == 1)
        buf_str(&text, ", its end was asked for");
    if (*j->error)
        buf_printf(&text, ": %s", j->error);
    if (!was->state || strcmp(was->state, text.data) != 0) {
        add_event(a, !strcmp(j->state, "failed"), &text);
        free(was->state);
        was->state = xstrndup(text.data, text.len);
    }
    buf_free(&text);
}

static void
note_group(struct app *a)
{
    struct follow_was *was = &a->follow.log.was;
    struct buf text = {0};
    bool is_known;
    const struct group_row *g =
        store_find_group(a->store, a->follow.queue, a->follow.error, &is_known);
    int64_t failed = g ? g->n : 0;

    if (!is_known)
        return;
    if (!was->known)
        buf_printf(&text, "followed from here on; %s failed", fmt_count(failed).s);
    else if (failed > was->failed)
        buf_printf(&text, "%s more failed, %s in all", fmt_count(failed - was->failed).s,
                   fmt_count(failed).s);
    else if (failed < was->failed)
        buf_printf(&text, "%s are failed no more, %s are left", fmt_count(was->failed - failed).s,
                   fmt_count(failed).s);
    if (text.len)
        add_event(a, was->known && failed > was->failed, &text);
    was->known = true;
    was->failed = failed;
    buf_free(&text);
}

void
follow_log_note(struct app *a)
{
    switch (a->follow.what) {
    case FOLLOW_QUEUE:
        note_queue(a);
        break;
    case FOLLOW_JOB:
        note_job(a);
        break;
    case FOLLOW_GROUP:
        note_group(a);
        break;
    case FOLLOW_NOTHING:
        break;
    }
}

/* --- following --- */

void
follow_done(struct follow *f)
{
    free(f->id);
    free(f->queue);
    free(f->error);
    free(f->name);
    follow_log_done(&f->log);
    *f = (struct follow){.log = f->log};
}

void
follow_end(struct app *a)
{
    if (a->follow.what == FOLLOW_NOTHING)
        return;
    app_say(a, SAY_INFO, "%s is no longer followed", a->follow.name);
    follow_done(&a->follow);
}

static bool
is_events(const struct app *a)
{
    return !strcmp(app_view(a)->ops->name, "events");
}

/* --- the row ---------------------------------------------------------------------------------- */

/* The table of the screen in front if its rows are of the followed kind; else NULL. */
static struct list *
table_of(const struct app *a)
{
    static const unsigned scopes[] = {
        [FOLLOW_QUEUE] = IN_QUEUES, [FOLLOW_JOB] = IN_JOBS, [FOLLOW_GROUP] = IN_FAILED};
    struct view *v = app_view(a);

    if (a->follow.what == FOLLOW_NOTHING || v->ops->scope != scopes[a->follow.what] ||
        !v->ops->list || view_in_pane(v))
        return NULL;
    return v->ops->list(v);
}

static bool
is_selected(const struct app *a, const struct list *l)
{
    return l && !strcmp(list_selected_id(l), a->follow.id);
}

void
follow_hold(struct app *a)
{
    struct list *l = a->views.nboxes > 0 ? NULL : table_of(a); /* a box may be about another row */

    a->follow.held = l && list_select(l, a->follow.id) ? app_view(a) : NULL;
}

void
follow_key(struct app *a)
{
    struct list *l = table_of(a);
    struct view *held = a->follow.held;

    if (!l || is_selected(a, l)) {
        a->follow.held = l ? app_view(a) : NULL;
        return;
    }
    char *other = xstrdup(list_selected_id(l));
    follow_hold(a);
    if (held == app_view(a) && a->follow.held) { /* the user has selected another row */
        list_select(l, other);
        follow_end(a);
    }
    free(other);
}

bool
follow_is_seen(const struct app *a)
{
    struct view *v = app_view(a);

    if (is_events(a))
        return true;
    if (v->ops->page && v->ops->subject && v->ops->scope == IN_QUEUES)
        return a->follow.what == FOLLOW_QUEUE && !strcmp(v->ops->subject(v), a->follow.id);
    if (v->ops->scope == IN_JOB)
        return a->follow.what == FOLLOW_JOB && v->ops->copy &&
               !strcmp(v->ops->copy(v), a->follow.id);
    return is_selected(a, table_of(a));
}

/* --- how it is -------------------------------------------------------------------------------- */

void
follow_ask(struct app *a)
{
    const struct follow *f = &a->follow;
    unsigned topics = app_view(a)->ops->topics;

    if (f->what == FOLLOW_QUEUE)
        store_want(a->store, TOPIC_QUEUES, true);
    if (f->what == FOLLOW_JOB && !(topics & TOPIC_BIT(TOPIC_JOB))) {
        store_want(a->store, TOPIC_JOB, true);
        store_ask_job(a->store, f->id);
    }
    if (f->what == FOLLOW_GROUP && !(topics & TOPIC_BIT(TOPIC_GROUPS))) {
        store_want(a->store, TOPIC_GROUPS, true);
        store_ask_groups(a->store, f->queue, NULL);
    }
}

static void
say_queue(const struct app *a, struct buf *out)
{
    const struct queue_row *q = store_queue(a->store, a->follow.id);

    if (!q) {
        buf_str(out, store_topic(a->store, TOPIC_QUEUES)->has_data
                         ? "there is no such queue any more"
                         : "asking ...");
        return;
    }
    buf_printf(out, "%s%s ready", q->paused == 1 ? "paused, " : "",
               fmt_about(q->ready, q->approx).s);
    if (q->ready > 0 && q->oldest_ms != FIELD_NULL)
        buf_printf(out, ", the oldest for %s", fmt_age(a->now_ms - q->oldest_ms).s);
    buf_printf(out, ", %s running, %s failed", fmt_count(q->running).s,
               fmt_about(q->failed, q->approx).s);
}

static void
say_job(const struct app *a, struct buf *out)
{
    const struct job_detail *d = store_job(a->store);
    const struct topic_info *t = store_topic(a->store, TOPIC_JOB);

    if (!d || strcmp(d->job.id, a->follow.id) != 0) {
        buf_str(out, !d && t->wanted && t->has_data ? "there is no such job any more"
                                                    : "not among these rows");
        return;
    }
    const struct job_row *j = &d->job;
    bool runs = !strcmp(j->state, "running");
    int64_t since = runs && j->started_ms != FIELD_NULL ? j->started_ms : j->changed_ms;
    buf_printf(out, "%s, %s", j->queue, j->state);
    if (since != FIELD_NULL)
        buf_printf(out, " for %s", fmt_age(a->now_ms - since).s);
    if (runs && *j->node)
        buf_printf(out, " on %s", j->node);
    if (j->max_tries > 0)
        buf_printf(out, ", %d of %d tries have ended", j->tries, j->max_tries);
}

static void
say_group(const struct app *a, struct buf *out)
{
    bool is_known;
    const struct group_row *g =
        store_find_group(a->store, a->follow.queue, a->follow.error, &is_known);

    if (!g) {
        buf_str(out, is_known                                        ? "no failed job any more"
                     : store_topic(a->store, TOPIC_GROUPS)->has_data ? "not among these rows"
                                                                     : "asking ...");
        return;
    }
    buf_printf(out, "%s%s", fmt_plural(g->n, "failed job").s, g->capped == 1 ? " or more" : "");
    if (g->last_ms != FIELD_NULL)
        buf_printf(out, ", the last %s ago", fmt_age(a->now_ms - g->last_ms).s);
}

void
follow_say(const struct app *a, struct buf *out)
{
    buf_printf(out, "F %s: ", a->follow.name);
    switch (a->follow.what) {
    case FOLLOW_QUEUE:
        say_queue(a, out);
        break;
    case FOLLOW_JOB:
        say_job(a, out);
        break;
    case FOLLOW_GROUP:
        say_group(a, out);
        break;
    case FOLLOW_NOTHING:
        break;
    }
}

/* --- its key ---------------------------------------------------------------------------------- */

static const char *
no_follow(const struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    if (a->follow.what != FOLLOW_NOTHING)
        return NULL;
    if (t.nnames > 1 || t.nids > 1 || t.all || t.ngroups > 1)
        return "several are marked: U unmarks them";
    if (t.kind != TARGET_QUEUE && t.kind != TARGET_JOBS && t.kind != TARGET_GROUP)
        return "a queue, a job or an error can be followed: select one";
    return NULL;
}

static void
begin(struct app *a)
{
    struct follow *f = &a->follow;
    struct target t = app_target(a);

    f->what = t.kind == TARGET_QUEUE  ? FOLLOW_QUEUE
              : t.kind == TARGET_JOBS ? FOLLOW_JOB
                                      : FOLLOW_GROUP;
    f->id = f->what == FOLLOW_JOB     ? xstrdup(t.ids[0])
            : f->what == FOLLOW_GROUP ? xasprintf("%s\n%s", t.queue, t.error)
                                      : xstrdup(t.name);
    f->name = f->what == FOLLOW_JOB ? xasprintf("job %s", fmt_id_tail(f->id).s) : xstrdup(t.name);
    if (f->what == FOLLOW_GROUP) {
        f->queue = xstrdup(t.queue);
        f->error = xstrdup(t.error);
    }
    follow_ask(a);
    follow_hold(a);
    follow_log_note(a);
}

static void
on_follow(struct app *a, int arg)
{
    (void)arg;
    if (a->follow.what != FOLLOW_NOTHING) {
        follow_end(a);
        return;
    }
    begin(a);
    app_say(a, SAY_INFO, "%s is followed on all screens; i shows what happens, F or Esc ends it",
            a->follow.name);
}

bool
follow_ends_by_esc(const struct app *a)
{
    return a->follow.what != FOLLOW_NOTHING && !is_events(a);
}

static const char *
no_events(const struct app *a, int arg)
{
    return is_events(a) ? "these are the events" : no_follow(a, arg);
}

static void
on_events(struct app *a, int arg)
{
    (void)arg;
    if (a->follow.what == FOLLOW_NOTHING)
        begin(a);
    app_push(a, "events", NULL);
}

/* clang-format off */
const struct command commands_follow[] = {
    {.name = "follow", .keys = "F", .help = "Follow this queue, job or error: the cursor stays on it, screens say how it is",
     .scope = IN_ALL & ~IN_HELP, .run = on_follow, .why_not = no_follow},
    {.name = "events", .keys = "i", .help = "What happens to what F follows, or to this row, as it comes",
     .scope = IN_ALL & ~IN_HELP, .run = on_events, .why_not = no_events},
    {0},
};
/* clang-format on */

/* --- a row whose answer may not have come yet -------------------------------------------------- */

static const char *
find_row(const struct list *l, const char *row)
{
    size_t len = strlen(row);

    for (int i = 0; i < list_count(l); i++) {
        const char *id = list_id(l, i);
        if (!strncmp(id, row, len) && (id[len] == 0 || id[len] == '\n'))
            return id;
    }
    return NULL;
}

void
seek_end(struct app *a)
{
    free(a->seek.row);
    a->seek = (struct seek){0};
}

void
seek_turn(struct app *a)
{
    struct view *v = app_view(a);

    if (!a->seek.in || a->seek.in != v || !v->ops->list || a->views.nboxes > 0)
        return; /* an open box may be about the row under the cursor */
    const char *id = find_row(v->ops->list(v), a->seek.row);
    if (!id)
        return;
    list_select(v->ops->list(v), id);
    v->touched = true;
    seek_end(a);
}

void
seek_row(struct app *a, const char *row)
{
    char *kept = xstrdup(row); /* it may belong to the row sought so far */

    seek_end(a);
    a->seek = (struct seek){app_view(a), kept};
    seek_turn(a);
}
