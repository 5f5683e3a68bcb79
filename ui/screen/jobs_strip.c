/*
 * The counts come from the counters of the queue system. The console reads them anyway for its list
 * of queues, so the strip costs no query.
 */
#include "ui/screen/jobs_strip.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ui/term/fmt.h"

/* --- the place of a job --- */

/* The place of the cursor in the list of jobs. If the filter has only a queue and states, the
 * number of all jobs that match comes from the counters of the queue system. */

/* The number of jobs in a state, from the counters of the queue system; FIELD_NULL = not known. */
static int64_t
jobs_in_state(const struct queue_row *q, const char *state)
{
    static const struct {
        const char *state;
        size_t offset;
    } counts[] = {
        {"running",   offsetof(struct queue_row, running)       },
        {"ready",     offsetof(struct queue_row, ready)         },
        {"retry",     offsetof(struct queue_row, retry)         },
        {"scheduled", offsetof(struct queue_row, scheduled)     },
        {"failed",    offsetof(struct queue_row, failed)        },
        {"completed", offsetof(struct queue_row, kept_completed)},
        {"cancelled", offsetof(struct queue_row, kept_cancelled)},
    };

    for (size_t i = 0; q && i < sizeof counts / sizeof *counts; i++)
        if (!strcmp(counts[i].state, state))
            return *(const int64_t *)((const char *)q + counts[i].offset);
    return FIELD_NULL;
}

/* How many jobs match a filter of queue and states, by the counters of the queue system. -1 = not
 * known, or another filter. */
static int64_t
exact_count(const struct store *s, const struct filter *f)
{
    const struct params *p = &f->terms;
    const char *queue = p->value[PARAM_QUEUE];
    const struct queue_row *q = queue ? store_queue(s, queue) : store_totals(s);

    for (int i = 0; i < PARAM_TOTAL; i++)
        if (p->value[i] && i != PARAM_QUEUE && i != PARAM_STATES)
            return -1;
    if (!q || !p->value[PARAM_STATES] || filter_has_state(f, "completed") ||
        filter_has_state(f, "cancelled"))
        return -1;
    if (q->approx == 1)
        return -1;
    static const char *const live[] = {"scheduled", "ready", "running", "retry", "failed"};
    int64_t n = 0;
    for (size_t i = 0; i < sizeof live / sizeof *live && n >= 0; i++) {
        if (!filter_has_state(f, live[i]))
            continue;
        int64_t more = jobs_in_state(q, live[i]);
        n = more == FIELD_NULL ? -1 : n + more;
    }
    return n;
}

void
jobs_say_place(const struct store *s, const struct filter *f, const struct list *l, struct buf *out)
{
    struct jobs_place place = store_jobs_place(s);
    int index = list_index(l), count = list_count(l);
    int64_t exact = exact_count(s, f), seen = place.before + count;

    if (index < 0)
        return;
    if (place.before >= 0)
        buf_printf(out, "%s of %s%s", fmt_count(place.before + index + 1).s,
                   fmt_count(exact >= seen ? exact : seen).s,
                   exact >= seen || place.at_end ? "" : "+");
    else if (place.at_end && exact >= count) /* the rows are counted from the end */
        buf_printf(out, "%s of %s", fmt_count(exact - count + index + 1).s, fmt_count(exact).s);
    else if (place.at_end && index == count - 1)
        buf_str(out, "the last");
    else if (place.at_end)
        buf_printf(out, "%s before the end", fmt_count(count - index - 1).s);
    else
        buf_str(out, "near the end");
}

static bool
has_word(const char *list, size_t len, const char *word, size_t word_len)
{
    for (const char *at = list, *end = list + len; at < end;) {
        size_t n = strcspn(at, ",:");
        if (n == word_len && !memcmp(at, word, n))
            return true;
        at += n + 1;
    }
    return false;
}

/* Whether the list has all states of the array literal {"a","b"}. */
static bool
has_all(const char *list, size_t len, const char *wanted)
{
    bool any = false;

    for (const char *at = wanted; (at = strchr(at, '"')); at++) {
        size_t n = strcspn(++at, "\"");
        if (!has_word(list, len, at, n))
            return false;
        any = true;
        at += n;
    }
    return any;
}

struct fmt_order
jobs_say_order(const struct adapter *a, const struct filter *f)
{
    const char *clause = adapter_note(a, SEC_JOBS, "order");
    const char *wanted = f->terms.value[PARAM_STATES], *queue = f->terms.value[PARAM_QUEUE];
    struct fmt_order out = {""};

    for (; clause && *clause; clause += *clause == ';') {
        clause += strspn(clause, " ");
        size_t len = strcspn(clause, ":"), all = strcspn(clause, ";");
        if (len >= all)
            break;
        if (has_word(clause, len, "*", 1) || (queue && has_word(clause, len, "queue", 5)) ||
            (wanted && has_all(clause, len, wanted))) {
            snprintf(out.s, sizeof out.s, "%.*s", (int)(all - len - 2), clause + len + 2);
            break;
        }
        clause += all;
    }
    return out;
}

/* --- the strip --- */

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
