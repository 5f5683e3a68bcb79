/*
 * `queuetop tail`: prints what happens to jobs, one event in a line, until a signal. It reads the
 * lists of jobs that the console has, again and again, newest first, page by page until a page has
 * nothing new. Each question is a short transaction and reads at most TAIL_ROWS rows. If more
 * happened, the counters of the queues show it: they are read before the lists, and the difference
 * is printed as left out. The counters of all queues are one question, which takes longer the more
 * queues there are. So the counters have a share of the time of their own and, if there are many
 * queues, are read less often.
 *
 * The order of times is not the order of commits: a row may become visible a moment after a newer
 * one. So each round also reads the last OVERLAP_MS again, and remembers the events of that time.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/adapter/filter.h"
#include "model/adapter/terms.h"
#include "model/base/clock.h"
#include "model/base/field.h"
#include "model/base/mem.h"
#include "ui/cli/verbs.h"
#include "ui/read/cli_list.h"
#include "ui/term/fmt.h"

enum {
    EVERY_MS = 1000,
    LONGEST_MS = 10000,
    REST = 19,          /* the lists use 1 / (REST + 1) of the time of the server */
    COUNT_REST = 39,    /* the same for the counters, whose cost has no limit */
    OVERLAP_MS = 20000, /* transactions up to this length are seen when they commit */
    KEEP_MS = 20000,    /* the clock of a new primary may be behind by this much */
    CURSOR_MS = 3000,   /* OVERLAP_MS for started jobs: a claim is short */
    TAIL_ROWS = 2000,   /* rows of one question in one round */
    FIRST_PAGE = 50,
    LARGEST_PAGE = 1000
};

enum what { PUSHED, STARTED, RETRIED, FAILED, COMPLETED, CANCELLED, LEFT_OUT, WHATS };
#define BIT(w) (1u << (w))

static const struct {
    const char *word, *ground; /* colour codes: failures are easy to see */
} whats[WHATS] = {
    [PUSHED] = {"pushed",    NULL  },
      [STARTED] = {"started",   NULL  },
    [RETRIED] = {"retried",   "33"  },
      [FAILED] = {"failed",    "31"  },
    [COMPLETED] = {"completed", "32"  },
      [CANCELLED] = {"cancelled", "2"   },
    [LEFT_OUT] = {"left out",  "1;33"},
};

struct event {
    int64_t at_ms, n; /* n: number of events LEFT_OUT; FIELD_NULL = not known */
    enum what what;
    const char *word, *queue, *id, *kind, *node, *error;
};

struct seen {
    uint64_t key; /* hash of id, what and time; 0 = free */
    int64_t at_ms;
};

struct tail {
    struct cli *c;
    const struct list_words *w;
    struct cli_queue q;
    struct cli_table out;
    struct params filter; /* without the states, which are in `wanted` */
    unsigned wanted;      /* bits of enum what: the events to print */
    bool is_open, is_told, is_over, has_start, colours;
    bool countable;            /* the counters count exactly the filtered jobs */
    bool has_counted;          /* the counters were read in this round */
    int64_t count_at_ms;       /* next time to read the counters, by the clock of this program */
    int64_t lists_us, rest_ms; /* server time for the last lists; the pause after it */
    int64_t mark_ms, floor_ms; /* server's clock: last round; older events are ignored */
    struct seen *seen;
    size_t seen_room, nseen;
    struct event *events;
    int n, room, printed;
    struct arena *mem; /* memory for the events of one round */
    struct {
        int64_t counted, base, shown; /* base + shown is the number of reported events */
        bool known, burst, same;      /* same: the counter has not changed since the last round */
    } count[WHATS];
    unsigned cut;    /* bits: more than TAIL_ROWS rows, so some were not read */
    char *from, *to; /* running jobs: cursors after which those begin that started later */
    int64_t to_ms;
};

/* --- events ----------------------------------------------------------------------------------- */

static uint64_t
make_key(const char *id, enum what what, int64_t at_ms)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * UINT64_C(1099511628211);
    h = (h ^ (uint64_t)what) * UINT64_C(1099511628211);
    h = (h ^ (uint64_t)at_ms) * UINT64_C(1099511628211);
    h ^= h >> 31;
    return h ? h : 1;
}

static bool
put_seen(struct tail *t, struct seen s)
{
    size_t at = (size_t)s.key & (t->seen_room - 1);

    for (; t->seen[at].key; at = (at + 1) & (t->seen_room - 1))
        if (t->seen[at].key == s.key)
            return false;
    t->seen[at] = s;
    t->nseen++;
    return true;
}

/* Drops the events that no later round will read again; `room` is a power of two. */
static void
rebuild_seen(struct tail *t, size_t room)
{
    struct seen *old = t->seen;
    size_t n = t->seen_room;

    t->seen = xcalloc(room, sizeof *t->seen);
    t->seen_room = room;
    t->nseen = 0;
    for (size_t i = 0; i < n; i++)
        if (old[i].key && old[i].at_ms > t->floor_ms - KEEP_MS)
            put_seen(t, old[i]);
    free(old);
}

static struct event *
new_event(struct tail *t, enum what what, int64_t at_ms)
{
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 256;
        t->events = xreallocarray(t->events, (size_t)t->room, sizeof *t->events);
    }
    struct event *e = &t->events[t->n++];
    *e = (struct event){at_ms, FIELD_NULL, what, whats[what].word, "", "", "", "", ""};
    return e;
}

/* Adds an event unless it was seen; returns whether it is new. */
static bool
add_event(struct tail *t, enum what what, int64_t at_ms, const struct job_row *j)
{
    if (at_ms == FIELD_NULL || at_ms <= t->floor_ms)
        return false;
    if (2 * t->nseen >= t->seen_room)
        rebuild_seen(t, 2 * t->seen_room);
    if (!put_seen(t, (struct seen){make_key(j->id, what, at_ms), at_ms}))
        return false;
    t->count[what].shown++;
    if (!(t->wanted & BIT(what)))
        return true;
    bool says_error = what == RETRIED || what == FAILED || what == CANCELLED;
    struct event *e = new_event(t, what, at_ms);
    e->queue = arena_printf(t->mem, "%s", j->queue);
    e->id = arena_printf(t->mem, "%s", j->id);
    e->kind = arena_printf(t->mem, "%s", j->kind);
    e->node = what == PUSHED ? "" : arena_printf(t->mem, "%s", j->node);
    e->error = says_error ? arena_strndup(t->mem, j->error, strcspn(j->error, "\r\n")) : "";
    return true;
}

/* Adds all events that a row shows about its job; returns whether any of them is new. */
static bool
take_row(struct tail *t, const struct job_row *j)
{
    bool is_completed = !strcmp(j->state, "completed"), runs = !strcmp(j->state, "running");
    bool fresh = add_event(t, PUSHED, j->created_ms, j);

    if (runs || is_completed)
        fresh |= add_event(t, STARTED, j->started_ms, j);
    if (is_completed)
        fresh |= add_event(t, COMPLETED, j->finished_ms, j);
    else if (!strcmp(j->state, "cancelled"))
        fresh |= add_event(t, CANCELLED, j->finished_ms, j);
    else if (!strcmp(j->state, "failed"))
        fresh |= add_event(t, FAILED, j->changed_ms, j);
    else if (!strcmp(j->state, "retry") && j->tries > 0)
        fresh |= add_event(t, RETRIED, j->changed_ms, j);
    return fresh;
}

/* --- one round -------------------------------------------------------------------------------- */

/* Reads the counters, before the lists: so the lists contain all that was counted, unless rows are
 * left out. */
static bool
read_counts(struct tail *t, struct err *e)
{
    enum section_id section = SEC_COUNTS;
    struct params none = {0};
    struct rowset rows;
    int64_t sums[WHATS] = {0};
    bool known[WHATS] = {false};

    if (!cli_ask(&t->q, &section, 1, &none, &rows, e))
        return false;
    const struct queue_row *r = rows.rows;
    const char *only = t->filter.value[PARAM_QUEUE];
    for (int i = 0; i < rows.n; i++) {
        const int64_t of[WHATS] = {
            [PUSHED] = r[i].pushed, [STARTED] = FIELD_NULL,       [RETRIED] = r[i].retried,
            [FAILED] = r[i].fails,  [COMPLETED] = r[i].completed, [CANCELLED] = FIELD_NULL,
            [LEFT_OUT] = FIELD_NULL};
        for (int k = 0; k < WHATS; k++)
            if (of[k] != FIELD_NULL && (!only || !strcmp(only, r[i].queue))) {
                sums[k] += of[k];
                known[k] = true;
            }
    }
    rowset_free(&rows);
    for (int k = 0; k < WHATS; k++) {
        bool is_back =
            sums[k] < t->count[k].counted; /* an older server, a queue that was removed */
        t->count[k].burst = sums[k] - t->count[k].counted > TAIL_ROWS;
        t->count[k].same = t->has_start && known[k] && sums[k] == t->count[k].counted;
        t->count[k].counted = sums[k];
        if (!t->has_start || is_back || !known[k])
            t->count[k].base = sums[k] - t->count[k].shown;
        t->count[k].known = known[k];
    }
    return true;
}

static bool
ask_page(struct tail *t, struct params *p, int limit, struct rowset *rows, struct err *e)
{
    enum section_id section = SEC_JOBS;

    params_set_int(p, PARAM_LIMIT, limit);
    params_set_int(p, PARAM_N, TAIL_ROWS);
    return cli_ask(&t->q, &section, 1, p, rows, e);
}

/* Reads one page; *full: there may be more rows. The cursor of p moves behind the rows. */
static bool
take_page(struct tail *t, struct params *p, int limit, bool *full, bool *last_is_new, struct err *e)
{
    struct rowset rows;
    int n = 0;

    *last_is_new = *full = false;
    if (!ask_page(t, p, limit, &rows, e))
        return false;
    const struct job_row *j = rows.rows;
    for (; n < rows.n && *j[n].id; n++)
        *last_is_new = take_row(t, &j[n]);
    *full = n == limit && *j[n - 1].cursor;
    if (n > 0 && *j[n - 1].cursor)
        params_set(p, PARAM_CURSOR, j[n - 1].cursor);
    rowset_free(&rows);
    return true;
}

/* Whether this round must read the list that shows these events first. */
static bool
wants(const struct tail *t, enum what what)
{
    bool waits = what == PUSHED || what == RETRIED || what == FAILED;

    bool is_same = t->has_counted && t->count[what].same;
    if (waits && (t->filter.value[PARAM_NODE] || is_same)) /* these events have no node */
        return false;
    return t->wanted & BIT(what);
}

/* Reads the jobs in these states (NULL = all unfinished jobs). The list has the latest event first,
 * except for jobs that wait to try again: of these all are read. */
static bool
read_back(struct tail *t, const char *const *states, int n, enum what what, struct err *e)
{
    struct params p = {0};
    bool ok = true, full = true, goes_on = true;
    int read = 0;

    params_copy(&p, &t->filter);
    if (states)
        params_set_list(&p, PARAM_STATES, states, n);
    for (int size = FIRST_PAGE; ok && full && goes_on && read < TAIL_ROWS; size *= 4) {
        int most = TAIL_ROWS - read < LARGEST_PAGE ? TAIL_ROWS - read : LARGEST_PAGE;
        int limit = size < most ? size : most;
        ok = take_page(t, &p, limit, &full, &goes_on, e);
        goes_on |= what == RETRIED;
        read += limit;
    }
    if (full && goes_on)
        t->cut |= BIT(what);
    params_done(&p);
    return ok;
}

/* Reads the running jobs in the order of their start, from the place that an earlier round reached.
 */
static bool
read_started(struct tail *t, struct err *e)
{
    static const char *const running[] = {"running"};
    struct params p = {0};
    bool ok = true, full = true, last_is_new;

    params_copy(&p, &t->filter);
    params_set_list(&p, PARAM_STATES, running, 1);
    params_set(&p, PARAM_CURSOR, t->from);
    for (int read = 0; ok && full && read < 2 * TAIL_ROWS; read += LARGEST_PAGE)
        ok = take_page(t, &p, LARGEST_PAGE, &full, &last_is_new, e);
    bool is_old = t->q.now_ms - t->to_ms >= CURSOR_MS;
    if (ok && p.value[PARAM_CURSOR] && (full || is_old)) {
        free(t->from);
        t->from = full || !t->to ? xstrdup(p.value[PARAM_CURSOR]) : t->to;
        if (t->from != t->to)
            free(t->to);
        t->to = xstrdup(p.value[PARAM_CURSOR]);
        t->to_ms = t->q.now_ms;
    }
    params_done(&p);
    return ok;
}

/* Reads the lists in the order in which a job moves from one to the next, so that a moving job is
 * not missed. */
static bool
read_lists(struct tail *t, struct err *e)
{
    static const char *const failed[] = {"failed"}, *const retry[] = {"retry"},
                             *const final[] = {"completed", "cancelled"};
    unsigned ends = BIT(PUSHED) | BIT(STARTED) | BIT(COMPLETED) | BIT(CANCELLED);

    return (!wants(t, PUSHED) || read_back(t, NULL, 0, PUSHED, e)) &&
           (!wants(t, STARTED) || read_started(t, e)) &&
           (!wants(t, RETRIED) || read_back(t, retry, 1, RETRIED, e)) &&
           (!wants(t, FAILED) || read_back(t, failed, 1, FAILED, e)) &&
           (!(t->wanted & ends) || read_back(t, final, 2, COMPLETED, e));
}

static void
say_left_out(struct tail *t, enum what what, int64_t n)
{
    struct event *e = new_event(t, LEFT_OUT, t->q.now_ms);

    e->n = n;
    e->queue = t->filter.value[PARAM_QUEUE] ? t->filter.value[PARAM_QUEUE] : "";
    e->error = n != FIELD_NULL
                   ? arena_printf(t->mem, "%s more %s", fmt_count(n).s, whats[what].word)
                   : arena_printf(t->mem, "more than %d rows: some %s jobs may be missing",
                                  TAIL_ROWS, whats[what].word);
}

static void
find_left_out(struct tail *t)
{
    for (enum what k = PUSHED; k < LEFT_OUT; k++) {
        int64_t missing = t->count[k].counted - t->count[k].base - t->count[k].shown;
        bool counts = t->countable && t->count[k].known,
             burst = t->has_counted && t->count[k].burst;
        if (!(t->wanted & BIT(k)))
            continue;
        if (counts && missing > 0 && t->has_counted) {
            say_left_out(t, k, missing);
            t->count[k].shown += missing;
        } else if (!counts && ((t->cut & BIT(k)) || (t->count[k].known && burst)))
            say_left_out(t, k, FIELD_NULL);
    }
}

static int
by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    bool is_left = x->what == LEFT_OUT;

    if (is_left != (y->what == LEFT_OUT)) /* after the events of their time */
        return is_left ? 1 : -1;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return x->what != y->what ? (x->what < y->what ? -1 : 1) : strcmp(x->id, y->id);
}

/* Prints an event. Only the line of the event is coloured, not the titles above the first one. */
static void
print_event(struct tail *t, const struct event *e)
{
    const char *ground = t->colours ? whats[e->what].ground : NULL;
    struct buf text = {0};

    t->out.now_ms = t->q.now_ms;
    t->out.to = ground ? &text : NULL;
    cli_table_rows(&t->out, e, 1, sizeof *e);
    t->printed++;
    if (!ground)
        return;
    size_t line = text.len - 1;
    while (line > 0 && text.data[line - 1] != '\n')
        line--;
    fwrite(text.data, 1, line, stdout);
    printf("\033[%sm%.*s\033[m\n", ground, (int)(text.len - 1 - line), text.data + line);
    buf_free(&text);
}

static void
print_events(struct tail *t)
{
    int most = t->w->limit > 0 ? t->w->limit : INT_MAX;

    if (t->n > 0)
        qsort(t->events, (size_t)t->n, sizeof *t->events, by_time);
    for (int i = 0; i < t->n && t->printed < most; i++)
        print_event(t, &t->events[i]);
    t->n = 0;
    arena_reset(t->mem);
    t->is_over |= t->printed >= most;
}

static int64_t
rest_after(int64_t spent_us)
{
    int64_t rest = REST * spent_us / 1000;

    return rest < EVERY_MS ? EVERY_MS : rest > LONGEST_MS ? LONGEST_MS : rest;
}

/* Reads the counters in the first round and whenever they are due. */
static bool
count_when_due(struct tail *t, struct err *e)
{
    int64_t before_us = t->q.spent_us;

    t->has_counted = !t->has_start || clock_ms() >= t->count_at_ms;
    if (!t->has_counted)
        return true;
    if (!read_counts(t, e))
        return false;
    t->count_at_ms = clock_ms() + COUNT_REST * (t->q.spent_us - before_us) / 1000;
    return true;
}

/* Reads the lists and sets the pause before the next round. The faster of the last two rounds
 * decides, so that one slow answer does not make the output silent. */
static bool
read_lists_timed(struct tail *t, struct err *e)
{
    int64_t before_us = t->q.spent_us, last_us = t->lists_us;

    if (!read_lists(t, e))
        return false;
    t->lists_us = t->q.spent_us - before_us;
    t->rest_ms = rest_after(last_us < t->lists_us ? last_us : t->lists_us);
    return true;
}

/* Makes one round. The first round only finds where to begin. */
static bool
make_round(struct tail *t, struct err *e)
{
    if (!count_when_due(t, e))
        return false;
    int64_t now = t->q.now_ms - t->q.spent_us / 1000 - 2; /* before the counters were read */
    if (!t->has_start)
        t->floor_ms = now;
    else if (t->mark_ms - OVERLAP_MS > t->floor_ms)
        t->floor_ms = t->mark_ms - OVERLAP_MS;
    if (now < t->floor_ms) /* another server with a clock that is behind */
        t->floor_ms = now - OVERLAP_MS;
    rebuild_seen(t, t->seen_room);
    t->has_start = true;
    t->cut = 0;
    if (!read_lists_timed(t, e))
        return false;
    t->mark_ms = now;
    find_left_out(t);
    return true;
}

/* --- until a signal --------------------------------------------------------------------------- */

static void
stop(void *ctx, int signo)
{
    struct tail *t = ctx;

    (void)signo;
    t->is_over = true;
    loop_stop(t->c->loop);
}

/* The reader of the pipe has closed it. */
static void
on_hangup(void *ctx, short revents)
{
    if (revents & (POLLERR | POLLHUP))
        stop(ctx, 0);
}

/* Checks the adapter: tail needs the jobs of each list in a known order. */
static bool
check_adapter(const struct tail *t, struct err *e)
{
    static const char *const orders[] = {"*: newest first", "failed: last failed first",
                                         "completed,cancelled: last finished first",
                                         "running: longest running first"};
    const struct adapter *a = t->q.adapter;
    const char *order = adapter_note(a, SEC_JOBS, "order"), *lacks;

    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (!order || !strstr(order, orders[i]))
            return fail(e, ERR_REFUSED,
                        "%s can't be followed: use jobs --watch, or queues --watch. (Its adapter "
                        "does not say \"order: %s\" of its jobs, so what is new can't be found)",
                        adapter_title(a), orders[i]);
    lacks = terms_lacking(a, SEC_JOBS, &t->filter);
    if (lacks)
        return fail(e, ERR_REFUSED, "%s can't filter by %s", adapter_title(a), lacks);
    return terms_check_id(a, &t->filter, e);
}

static bool
open_again(struct tail *t, struct err *e)
{
    if (!cli_open(t->c, false, &t->q, e))
        return false;
    t->out.source = t->q.source;
    t->is_open = check_adapter(t, e);
    t->count_at_ms = 0; /* which reads the clock of this server, too */
    if (!t->is_open)
        cli_close(&t->q);
    return t->is_open;
}

/* Handles an error. False: the verb ends, with *code. */
static bool
go_on(struct tail *t, const struct err *e, int *code)
{
    bool is_lost = t->has_start && (e->kind == ERR_CONN || e->kind == ERR_TIMEOUT);

    if (t->is_open)
        cli_close(&t->q);
    t->is_open = false;
    if (t->is_over)
        return false;
    if (!is_lost) {
        *code = cli_fail(t->c, e);
        return false;
    }
    if (!t->is_told)
        cli_say(t->c, "contact lost at %s: %s; trying again", fmt_time(t->mark_ms, false).s,
                e->text);
    t->is_told = true;
    return true;
}

/* Makes a round and prints its events, also those that were read before the connection broke. */
static bool
follow_once(struct tail *t, int *code)
{
    struct err e = {0};
    bool ok = (t->is_open || open_again(t, &e)) && make_round(t, &e);

    if (ok && t->is_told) {
        cli_say(t->c, "there is contact again");
        t->is_told = false;
    }
    print_events(t);
    if (fflush(stdout) != 0 && errno == EPIPE) { /* head(1) has read enough */
        clearerr(stdout);
        return false;
    }
    *code = cli_flush(t->c);
    if (*code != CLI_DONE)
        return false;
    return (ok || go_on(t, &e, code)) && !t->is_over;
}

static int
follow(struct tail *t)
{
    const bool never = false;
    int code = CLI_DONE;

    for (;;) {
        t->q.spent_us = 0;
        if (!follow_once(t, &code))
            break;
        struct err e = {0};
        if (!loop_until(t->c->loop, &never, clock_ms() + t->rest_ms, &e) && e.kind != ERR_NONE &&
            e.kind != ERR_TIMEOUT && !t->is_over) {
            code = cli_fail(t->c, &e);
            break;
        }
        if (t->is_over)
            break;
    }
    if (t->is_open)
        cli_close(&t->q);
    return code;
}

/* --- the verb --------------------------------------------------------------------------------- */

#define E(f) offsetof(struct event, f)
/* clang-format off */
static const struct column tail_columns[] = {
    {.name = "at", .title = "TIME", .kind = K_TIME, .offset = E(at_ms), .most = 19},
    {.name = "what", .title = "WHAT", .kind = K_TEXT, .offset = E(word), .most = 9},
    {.name = "queue", .title = "QUEUE", .kind = K_NAME, .offset = E(queue), .most = 16},
    {.title = "ID", .kind = K_UUID, .offset = E(id), .most = 8},
    {.name = "id", .kind = K_NAME, .offset = E(id)},
    {.name = "kind", .title = "KIND", .kind = K_NAME, .offset = E(kind), .most = 14},
    {.name = "node", .title = "NODE", .kind = K_NAME, .offset = E(node), .most = 14},
    {.name = "error", .title = "ERROR", .kind = K_NAME, .offset = E(error), .most = 100},
    {.name = "left_out", .kind = K_BIG, .offset = E(n)},
    {0},
};
/* clang-format on */

/* Turns the states of --state into the events that lead to them. */
static unsigned
wanted_by(const char *states)
{
    static const struct {
        const char *state;
        enum what what;
    } leads[] = {
        {"ready",     PUSHED   },
        {"scheduled", PUSHED   },
        {"blocked",   PUSHED   },
        {"running",   STARTED  },
        {"retry",     RETRIED  },
        {"failed",    FAILED   },
        {"completed", COMPLETED},
        {"cancelled", CANCELLED}
    };
    unsigned wanted = 0;

    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++)
        if (!states || strstr(states, leads[i].state))
            wanted |= BIT(leads[i].what);
    return wanted;
}

static bool
read_words(struct tail *t, struct err *e)
{
    const struct params *f = &t->filter;

    if (t->w->json && t->w->csv)
        return fail(e, ERR_USAGE, "--json and --csv exclude each other");
    if (!list_filter(t->c, t->w, &t->filter, e))
        return false;
    if (f->value[PARAM_IN_PAYLOAD])
        return fail(e, ERR_USAGE, "tail reads no payloads: see jobs --watch");
    t->wanted = wanted_by(f->value[PARAM_STATES]);
    params_set(&t->filter, PARAM_STATES, NULL);
    t->countable = true;
    for (int p = 0; p < PARAM_TOTAL; p++)
        t->countable &= !f->value[p] || p == PARAM_QUEUE;
    cli_table_begin(&t->out, list_form(t->w), NULL, tail_columns);
    t->out.formulas = t->w->exact;
    t->out.follows = true;
    return cli_table_choose(&t->out, tail_columns, &t->w->columns, NULL, e);
}

static int
run_tail(struct cli *c, const void *options)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool is_dumb = !term || !*term || !strcmp(term, "dumb");
    struct tail t = {.c = c, .w = options, .mem = arena_new()};
    struct err e = {0};
    int code = CLI_DONE;

    t.rest_ms = EVERY_MS;
    rebuild_seen(&t, 1024);
    if (read_words(&t, &e)) {
        t.colours =
            t.out.form == OUT_TABLE && t.out.terminal && !is_dumb && !(no_color && *no_color);
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            loop_on_signal(c->loop, signals[i], stop, &t);
        int watch = loop_watch(c->loop, STDOUT_FILENO, 0, on_hangup, &t);
        code = follow(&t);
        loop_unwatch(c->loop, watch);
    } else
        code = cli_usage(c, "%s", e.text);
    params_done(&t.filter);
    arena_free(t.mem);
    free(t.seen);
    free(t.events);
    if (t.to != t.from)
        free(t.to);
    free(t.from);
    return code;
}

static const struct list_words tail_defaults = {.limit = -1};

#define F(f) offsetof(struct list_words, f)
/* clang-format off */
static const struct cli_option tail_options[] = {
    {"queue", 'q', "Q", CLI_TEXT, F(queue), "of this queue only", 0, 0},
    {"node", 0, "N", CLI_TEXT, F(node), "what this node started and finished", 0, 0},
    {"state", 's', "STATES", CLI_LIST, F(states), "what leads to these states (failed, retry, ...)", 0, 0},
    {"kind", 'k', "K", CLI_TEXT, F(kind), "of this kind", 0, 0},
    {"error", 'e', "TEXT", CLI_TEXT, F(error), "the group of this error; ~TEXT: a part of it", 0, 0},
    {"json", 0, NULL, CLI_FLAG, F(json), "one JSON object a line", 0, 0},
    {"csv", 0, NULL, CLI_FLAG, F(csv), "comma separated, with a header line", 0, 0},
    {"exact", 0, NULL, CLI_FLAG, F(exact), "CSV: no ' before a text that begins like a formula", 0, 0},
    {"columns", 'C', "A,B", CLI_LIST, F(columns), "these columns, in this order", 0, 0},
    {"limit", 'n', "N", CLI_INT, F(limit), "end after N lines", 1, INT_MAX},
    {0}};

const struct cli_verb verbs_tail[] = {
    {.name = "tail", .words = "[FILTER]", .max_words = -1,
     .help = "Follow what happens to jobs: pushed, started, retried, failed, completed, cancelled",
     .options = tail_options, .size = sizeof(struct list_words), .defaults = &tail_defaults,
     .run = run_tail, .examples = {"tail state:failed,retry queue:mails", "tail -q mails --json --limit 100"},
     .more = "FILTER is that of jobs, without payloads; state: chooses what leads to these states. It looks every second, and\n"
             "less often, down to every 10 s, if a look takes more than 5 % of the time. A look reads 2000 rows of a list at\n"
             "most. Events beyond that, and those of jobs that left no row, are counted and printed as left out. With many\n"
             "thousand queues that line comes later; --queue keeps looks short. It begins with what happens from now on,\n"
             "goes on after a lost connection, and ends with Ctrl-C."},
    {0},
};
/* clang-format on */
