/*
 * The counts come from the counters of the queue system. The console reads them anyway for its list
 * of queues, so the strip costs no query.
 */
#include "ui/screen/jobs_strip.h"

#include <stdio.h>
#include <string.h>

#include "ui/screen/jobs_place.h"
#include "ui/term/fmt.h"

enum { STATES = 8, NARROW = 4, WORD = 60 };

static const char *const states[STATES] = {NULL,        "running", "ready",     "retry",
                                           "scheduled", "failed",  "completed", "cancelled"};

/* The header of an adapter lists its states; the queue of our own has all. */
static bool
has_state(const struct adapter *a, int i)
{
    const char *list = i ? adapter_header(a, "states") : NULL;
    size_t n = i ? strlen(states[i]) : 0;

    for (const char *at = list; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, states[i], n) && at[n] == '=')
            return true;
    return !list;
}

/* The state that the filter asks for; 0 = none or several. */
static int
state_of(const struct filter *f)
{
    int at = 0, n = 0;

    for (int i = 1; i < STATES && f->terms.value[PARAM_STATES]; i++)
        if (filter_has_state(f, states[i])) {
            at = i;
            n++;
        }
    return n == 1 ? at : 0;
}

bool
jobs_strip_step(struct jobs_strip *s, const struct adapter *a, const struct filter *f, int step)
{
    int from = s->focus ? s->at : state_of(f), at = from;

    do
        at = (at + step + STATES) % STATES;
    while (at != from && !has_state(a, at));
    s->focus = at != from;
    s->at = at;
    return s->focus;
}

const char *
jobs_strip_state(const struct jobs_strip *s)
{
    return states[s->at];
}

static bool
is_counted(const struct filter *f)
{
    for (int i = 0; i < PARAM_TOTAL; i++)
        if (f->terms.value[i] && i != PARAM_QUEUE && i != PARAM_STATES)
            return false;
    return true;
}

static int64_t
count_of(const struct queue_row *q, int state)
{
    int64_t sum = 0;

    if (state)
        return jobs_in_state(q, states[state]);
    for (int i = 1; i < STATES && strcmp(states[i], "completed") != 0; i++) {
        int64_t n = jobs_in_state(q, states[i]);
        if (n == FIELD_NULL)
            return FIELD_NULL;
        sum += n;
    }
    return sum;
}

struct counted {
    const struct queue_row *q; /* by the counters; NULL = not known */
    int64_t
        listed; /* jobs in the list, if it has all that match; FIELD_NULL = it has not. The state
                   that is filtered by shows it, because the counters were read at another time */
};

/* "[failed 4,024]": the brackets mark the state that the filter asks for, so that it is visible
 * without colour. */
static void
say_state(char *out, int i, const struct counted *c, const struct filter *f, int digits)
{
    const struct queue_row *q = c->q;
    bool some = f->terms.value[PARAM_STATES] != NULL;
    bool on = i ? some && filter_has_state(f, states[i]) : !some;
    int64_t n = on && c->listed != FIELD_NULL ? c->listed : count_of(q, i);
    bool about =
        q && !(on && c->listed != FIELD_NULL) && (i < STATES - 2 ? q->approx : q->kept_approx) == 1;
    const char *count = n == FIELD_NULL ? ""
                        : n == 0        ? "·"
                        : digits        ? fmt_count_fit(n, digits).s
                                        : fmt_about(n, about).s;

    snprintf(out, WORD, "%s%s%s%s%s%s", on ? "[" : " ", i ? states[i] : "all", *count ? " " : "",
             about && digits && n > 0 ? "~" : "", count, on ? "]" : " ");
}

static int
say_all(char words[STATES][WORD], const struct counted *c, const struct adapter *a,
        const struct filter *f, int digits)
{
    int w = 0;

    for (int i = 0; i < STATES; i++) {
        words[i][0] = '\0';
        if (!has_state(a, i))
            continue;
        say_state(words[i], i, c, f, digits);
        w += text_width(words[i], strlen(words[i]), TEXT_LINE) + 1;
    }
    return w;
}

/* The first state that is shown: if not all have room, those before the cursor are left out. */
static int
first_shown(char words[STATES][WORD], int at, int w)
{
    int first = at;

    for (int i = at; i >= 0; i--) {
        w -= *words[i] ? text_width(words[i], strlen(words[i]), TEXT_LINE) + 1 : 0;
        if (w < 0)
            break;
        first = i;
    }
    return first;
}

void
jobs_strip_draw(const struct jobs_strip *s, const struct store *store, const struct adapter *a,
                const struct filter *f, struct grid *g, struct rect r)
{
    char words[STATES][WORD];
    const char *queue = f->terms.value[PARAM_QUEUE];
    struct jobs_place place = store_jobs_place(store);
    struct counted c = {.q = !is_counted(f) ? NULL
                             : queue        ? store_queue(store, queue)
                                            : store_totals(store),
                        .listed = FIELD_NULL};
    bool one = state_of(f) || !f->terms.value[PARAM_STATES];
    if (c.q && one && place.at_top && place.at_end && !place.searching)
        c.listed = s->listed;
    int at = s->focus ? s->at : state_of(f), first = 0;

    if (say_all(words, &c, a, f, 0) > r.w && say_all(words, &c, a, f, NARROW) > r.w)
        first = first_shown(words, at, r.w);
    struct pen p = pen_start(g, r);
    for (int i = first; i < STATES; i++) {
        if (!*words[i])
            continue;
        struct rect word = p.r;
        word.w = text_width(words[i], strlen(words[i]), TEXT_LINE);
        pen_put(&p, words[i][0] == '[' ? ROLE_STRONG : ROLE_DIM, words[i]);
        if (s->focus && i == s->at) {
            grid_lay(g, rect_clip(word, r), GROUND_NAME);
            grid_cursor(g, word.x + 1, word.y);
        }
        pen_gap(&p, 1);
    }
}
