/*
 * If not all jobs of a group were looked at, the counts are scaled up to the group and marked with
 * "~".
 */
#include "ui/facts/group_say.h"

#include <math.h>
#include <string.h>

#include "model/store/outlook.h"

enum { FEW_VALUES = NUMBER_VALUES, TELLING_PART = 4, STILL_MS = 60000, YEAR_S = 365 * 86400 };

const struct group_part_row *
group_part(const struct group_detail *d, const char *what, const char *name)
{
    for (int i = 0; i < d->nparts; i++)
        if (!strcmp(d->parts[i].what, what) && (!*name || !strcmp(d->parts[i].name, name)))
            return &d->parts[i];
    return NULL;
}

int64_t
group_looked_at(const struct group_detail *d)
{
    const struct group_part_row *jobs = group_part(d, "jobs", "");

    return jobs && jobs->n > 0 ? jobs->n : 0;
}

int64_t
group_scaled(const struct group_detail *d, const struct group_row *g, int64_t n, int *approx)
{
    int64_t looked = group_looked_at(d);

    *approx = looked > 0 && g->n > looked;
    return *approx ? (int64_t)llround((double)n * (double)g->n / (double)looked) : n;
}

/* --- N was ------------------------------------------------------------------------------------ */

static bool
tells(const struct number *n, int64_t looked)
{
    bool differs = n->of > 1 && n->of >= looked; /* each job has another value */

    return n->n > 0 && !differs &&
           (n->of <= FEW_VALUES || n->values[0]->n * TELLING_PART >= looked);
}

int
group_numbers(const struct group_detail *d, struct number out[NUMBER_PLACES])
{
    int64_t looked = group_looked_at(d);
    struct number all[NUMBER_PLACES + 1] = {{0}};
    int n = 0;

    for (int i = 0; i < d->nparts; i++) {
        const struct group_part_row *p = &d->parts[i];
        if (strcmp(p->what, "number") != 0 || p->place < 1 || p->place > NUMBER_PLACES)
            continue;
        struct number *to = &all[p->place];
        if (to->n == NUMBER_VALUES)
            continue;
        to->place = p->place;
        to->of = p->of;
        to->values[to->n++] = p;
    }
    for (int place = 1; place <= NUMBER_PLACES; place++)
        if (tells(&all[place], looked))
            out[n++] = all[place];
    return n;
}

/* Appends "es-3 ~3,200" to the list in out. */
static void
say_one(const struct group_detail *d, const struct group_row *g, const char *name, int64_t n,
        struct buf *out)
{
    int approx;
    int64_t shown = group_scaled(d, g, n, &approx);

    buf_printf(out, "%s%s %s", out->len ? ", " : "", *name ? name : "none",
               fmt_about(shown, approx).s);
}

static void
say_others(int64_t others, struct buf *out)
{
    if (others > 0)
        buf_printf(out, ", %s", fmt_plural(others, "other").s);
}

void
group_say_number(const struct group_detail *d, const struct group_row *g, const struct number *n,
                 struct buf *out)
{
    if (n->of <= 1 && n->values[0]->n >= group_looked_at(d)) {
        buf_printf(out, "%s in all", n->values[0]->name);
        return;
    }
    for (int i = 0; i < n->n; i++)
        say_one(d, g, n->values[i]->name, n->values[i]->n, out);
    say_others(n->of - n->n, out);
}

void
group_say_parts(const struct group_detail *d, const struct group_row *g, const char *what, int most,
                struct buf *out)
{
    int64_t of = 0;
    int said = 0;

    for (int i = 0; i < d->nparts; i++) {
        const struct group_part_row *p = &d->parts[i];
        if (strcmp(p->what, what) != 0 || (!*p->name && p->of <= 1)) /* the system has none */
            continue;
        of = p->of;
        if (said == most)
            continue;
        said++;
        say_one(d, g, p->name, p->n, out);
        if (!strcmp(what, "tries") && p->place == 1)
            buf_str(out, " (no retry)");
    }
    say_others(of - said, out);
}

void
group_say_took(const struct group_detail *d, struct buf *out)
{
    const struct group_part_row *p50 = group_part(d, "took", "p50");
    const struct group_part_row *p99 = group_part(d, "took", "p99");

    if (p50 && p99)
        buf_printf(out, "p50 %s, p99 %s", fmt_duration(p50->n).s, fmt_duration(p99->n).s);
}

/* --- the last time ---------------------------------------------------------------------------- */

static const char *
past_of(const char *verb)
{
    if (!strcmp(verb, "requeue"))
        return "requeued";
    return !strcmp(verb, "discard") ? "discarded" : "deleted";
}

void
group_say_past(const struct group_detail *d, int64_t now_ms, bool utc, struct buf *out)
{
    const struct group_facts_row *f = d->facts;

    if (f->past_ms == FIELD_NULL || !*f->past_verb)
        return;
    buf_printf(out, "%s %s %s %s", fmt_when(f->past_ms, now_ms, utc).s, f->past_who,
               past_of(f->past_verb), fmt_plural(f->past_jobs, "job").s);
    if (strcmp(f->past_verb, "requeue") != 0 || f->past_looked <= 0)
        return;
    buf_str(out, ": ");
    if (f->past_looked < f->past_jobs)
        buf_printf(out, "of %s ", fmt_count(f->past_looked).s);
    buf_printf(out, "%s failed again", fmt_count(f->past_failed).s);
    if (f->past_waiting > 0)
        buf_printf(out, f->past_waiting == 1 ? ", %s waits or runs" : ", %s wait or run",
                   fmt_count(f->past_waiting).s);
    buf_printf(out, ", %s ended", fmt_count(f->past_looked - f->past_failed - f->past_waiting).s);
}

/* --- requeue ---------------------------------------------------------------------------------- */

void
requeue_say_what(const struct requeue *r, struct buf *out)
{
    if (r->g->n == 1)
        buf_str(out, r->ours ? "1 job runs again, one more try" : "1 job again, by its id");
    else
        buf_printf(out, "%s%s %s", fmt_plural(r->g->n, "job").s,
                   r->g->capped == 1 ? " or more" : "",
                   r->ours ? "run again, one more try each" : "again, each by its id");
}

void
requeue_say_before(const struct requeue *r, struct buf *out)
{
    const struct queue_row *q = r->q;

    if (!q || q->ready < 0)
        return;
    if (q->paused == 1)
        buf_printf(out, "%s is paused: they would wait", r->g->queue);
    else if (q->ready > 0)
        buf_printf(out, "behind %s in %s", fmt_they(q->ready, q->approx, "that wait").s,
                   r->g->queue);
    else
        buf_printf(out, "nothing waits before them in %s", r->g->queue);
}

static const char *
clock_at(int64_t at_ms, int64_t now_ms, bool utc, struct fmt *out)
{
    *out = fmt_when(at_ms, now_ms, utc);
    if (strlen(out->s) == 8) /* today: cut the seconds */
        out->s[5] = '\0';
    return out->s;
}

struct forecast {
    double rate; /* NAN = not known */
    int64_t first_ms, last_ms;
};

/* When the requeued jobs will run: they wait behind the jobs that are ready now. Only the
 * throughput of the last five minutes counts, not what comes in. */
static struct forecast
forecast_of(const struct requeue *r)
{
    const struct queue_row *q = r->q;
    double rate = q ? outlook_flow(q).out : (double)NAN;

    if (!q || q->paused == 1 || q->ready < 0 || isnan(rate) || rate <= 0 ||
        (double)(q->ready + r->g->n) / rate > YEAR_S)
        return (struct forecast){.rate = (double)NAN};
    return (struct forecast){.rate = rate,
                             .first_ms = r->now_ms + (int64_t)((double)q->ready * 1000 / rate),
                             .last_ms =
                                 r->now_ms + (int64_t)((double)(q->ready + r->g->n) * 1000 / rate)};
}

static void
say_times(const struct requeue *r, const struct forecast *f, struct buf *out)
{
    struct fmt first, last;

    buf_printf(out, "starts about %s, the last about %s",
               clock_at(f->first_ms, r->now_ms, r->utc, &first),
               clock_at(f->last_ms, r->now_ms, r->utc, &last));
}

void
requeue_say_when(const struct requeue *r, struct buf *out)
{
    struct forecast f = forecast_of(r);

    if (isnan(f.rate))
        return;
    buf_printf(out, "at %s/s the first of them ", fmt_rate(f.rate).s);
    say_times(r, &f, out);
}

void
requeue_say_line(const struct requeue *r, struct buf *out)
{
    struct forecast f = forecast_of(r);
    struct buf before = {0};

    buf_str(out, "r: ");
    requeue_say_what(r, out);
    requeue_say_before(r, &before);
    if (r->q && r->q->ready > 0 && r->q->paused != 1)
        buf_printf(out, "; behind %s", fmt_they(r->q->ready, r->q->approx, "that wait").s);
    else if (before.len > 0)
        buf_printf(out, "; %s", before.data);
    if (!isnan(f.rate)) {
        buf_str(out, ": the first ");
        say_times(r, &f, out);
    }
    buf_free(&before);
}

bool
group_say_cause(const struct group_detail *d, const struct group_row *g, int64_t now_ms, bool utc,
                struct buf *out)
{
    const struct group_facts_row *f = d->facts;
    struct fmt since = fmt_when(g->last_ms, now_ms, utc);

    if (g->last_ms == FIELD_NULL)
        return false;
    if (f->done > 0) {
        bool quiet = now_ms - g->last_ms >= STILL_MS;
        buf_printf(out, "%s of the kind completed since %s%s", fmt_plural(f->done, "job").s,
                   since.s, quiet ? ": the cause seems gone" : ", only some fail");
        return false;
    }
    if (now_ms - g->last_ms < STILL_MS)
        buf_printf(out, "the last one failed %s ago: the cause is there",
                   fmt_age_short(now_ms > g->last_ms ? now_ms - g->last_ms : 0).s);
    else
        buf_printf(out, "none was tried since %s: cause still there?", since.s);
    if (f->retrying > 0)
        buf_printf(out, "; %s more wait%s to try again with it", fmt_count(f->retrying).s,
                   f->retrying == 1 ? "s" : "");
    return true;
}
