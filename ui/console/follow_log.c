/*
 * The log of the followed thing. Of a queue the counters say how many jobs were pushed, completed
 * and failed since the last answer; systems without counters say how many wait, run and have
 * failed.
 */
#include "ui/console/follow_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/term/fmt.h"

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

void
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
