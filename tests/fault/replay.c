/* The order of events in the soak: see replay.h. */
#include "tests/fault/replay.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20, FIELDS = 9 };

enum kind { COMMIT, CLAIM, ANSWER, ENDED, KINDS };

struct event {
    enum kind kind;
    bool accepted, final; /* of an answer */
    int64_t from, until, lease, version, seq;
    char job[37], node[40];
};

struct events {
    struct event *list;
    long n, room;
    int faults;
};

static enum kind
kind_of(const char *name)
{
    static const char *const names[] = {"commit", "claim", "answer", "ended"};
    int k = 0;

    while (k < KINDS && strcmp(name, names[k]))
        k++;
    return (enum kind)k;
}

/* The line's fields, which end by a tab; false: there are not that many. */
static bool
split(char *line, char *field[static FIELDS])
{
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, "\t");
        if ((*line == 0) != (i == FIELDS - 1))
            return false;
        *line++ = 0;
    }
    return true;
}

static bool
read_number(const char *text, int64_t *n)
{
    char *end;

    *n = strtoll(text, &end, 10);
    return end > text && *end == 0;
}

static bool
read_event(struct event *e, char *line)
{
    char *field[FIELDS];

    if (!split(line, field) || !read_number(field[1], &e->from) ||
        !read_number(field[2], &e->until) || !read_number(field[5], &e->lease) ||
        !read_number(field[6], &e->version) || !read_number(field[7], &e->seq))
        return false;
    const char *outcome = field[8];
    e->kind = kind_of(field[0]);
    snprintf(e->job, sizeof e->job, "%s", field[3]);
    snprintf(e->node, sizeof e->node, "%s", field[4]);
    e->final = !strcmp(outcome, "done") || !strcmp(outcome, "cancelled");
    e->accepted = e->final || !strcmp(outcome, "retry") || !strcmp(outcome, "failed") ||
                  !strcmp(outcome, "given back");
    return e->kind < KINDS && e->from <= e->until;
}

static bool
read_events(struct events *all, FILE *f)
{
    char line[400];

    while (fgets(line, sizeof line, f)) {
        if (all->n == all->room) {
            all->room = all->room ? 2 * all->room : 1024;
            all->list = realloc(all->list, (size_t)all->room * sizeof *all->list);
            if (!all->list)
                abort();
        }
        if (!read_event(&all->list[all->n++], line)) {
            fprintf(stderr, "replay: line %ld is no event: %s\n", all->n, line);
            return false;
        }
    }
    return !ferror(f);
}

/* by job, then by time */
static int
compare(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    int by_job = strcmp(x->job, y->job);

    return by_job ? by_job : (x->from > y->from) - (x->from < y->from);
}

static bool
is_before(const struct event *a, const struct event *b)
{
    return a->until < b->from;
}

static bool
same_token(const struct event *a, const struct event *b)
{
    return a->seq == b->seq && a->lease == b->lease && a->version == b->version &&
           !strcmp(a->node, b->node);
}

static void
tell(struct events *all, const char *rule, const struct event *a, const struct event *b)
{
    if (all->faults++ < SHOWN)
        fprintf(stderr,
                "replay: %s: job %s, seq %lld of %s, at %lld, and seq %lld of %s, at %lld\n", rule,
                a->job, (long long)a->seq, a->node, (long long)a->from, (long long)b->seq, b->node,
                (long long)b->from);
}

/* a is a claim, b any other event of its job. */
static void
judge_claim(struct events *all, const struct event *a, const struct event *b)
{
    if (b->kind == COMMIT && is_before(a, b))
        tell(all, "claimed before it is pushed", a, b);
    if (b->kind == CLAIM && a < b && a->seq == b->seq)
        tell(all, "one number, two claims", a, b);
    if (b->kind == CLAIM && a->seq > b->seq && is_before(a, b))
        tell(all, "numbers run backwards", a, b);
}

/* a is an accepted answer. */
static void
judge_answer(struct events *all, const struct event *a, const struct event *b)
{
    if (b->kind == CLAIM && b->seq > a->seq && is_before(b, a))
        tell(all, "answer of an older claim", a, b);
    if (b->kind == ANSWER && b->accepted && a < b && a->seq == b->seq)
        tell(all, "two ends of one claim", a, b);
}

/* Returns true if the job has ended for good: a requeue makes a new job of it. */
static bool
is_end(const struct event *e)
{
    return e->kind == ENDED || (e->kind == ANSWER && e->final);
}

static void
judge_job(struct events *all, const struct event *first, const struct event *last)
{
    for (const struct event *a = first; a < last; a++) {
        bool claimed = false;
        for (const struct event *b = first; b < last; b++) {
            claimed = claimed || (b->kind == CLAIM && same_token(a, b) && !is_before(a, b));
            if (a == b)
                continue;
            if (a->kind == CLAIM)
                judge_claim(all, a, b);
            if (a->kind == ANSWER && a->accepted)
                judge_answer(all, a, b);
            if (is_end(a) && (b->kind == CLAIM || (b->kind == ANSWER && b->accepted)) &&
                is_before(a, b) && !(b->kind == ANSWER && a->seq == b->seq))
                tell(all, "goes on after its end", a, b);
        }
        if (a->kind == ANSWER && a->accepted && !claimed)
            tell(all, "answer of nobody's claim", a, a);
    }
}

int
replay(const char *file, long *events)
{
    struct events all = {0};
    FILE *f = fopen(file, "re");
    bool good = f && read_events(&all, f);

    if (f)
        fclose(f);
    if (good && all.n > 0)
        qsort(all.list, (size_t)all.n, sizeof *all.list, compare);
    for (long i = 0, j; good && i < all.n; i = j) {
        for (j = i + 1; j < all.n && !strcmp(all.list[i].job, all.list[j].job);)
            j++;
        judge_job(&all, all.list + i, all.list + j);
    }
    free(all.list);
    *events = all.n;
    return good ? all.faults : -1;
}
