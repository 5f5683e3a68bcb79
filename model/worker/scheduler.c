/*
 * The loop of the scheduler: ask for a step, wait as long as the answer says, ask again. All rules
 * are in SQL (schedule_or_wait()): it waits for a NOTIFY, or it checks from time to time whether
 * anything is new, which costs little. The active scheduler also calls fold_beside() when a step
 * says that it is time to, and keep_books(), both on a second connection, so no step ever waits for
 * them. If one fails, the error is logged and it is tried again.
 *
 * A step that was cancelled because the server was silent for too long has done nothing. The next
 * step would do the same, so it gets twice the time. Otherwise 50,000 new queues on a busy server
 * would be started again and again, and never finished.
 *
 * With scheduler_may_sleep() it asks before a step whether it may sleep, once nothing was new for
 * some seconds: then neither connection sends anything until something is due, or a NOTIFY comes,
 * or its connection breaks (sql/core/61_sleep.sql).
 */
#include "model/worker/scheduler.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "model/worker/worker.h"

enum {
    RETRY_MS = 500,
    WAIT_MAX_MS = 5000,
    STOP_MS = 1000,
    BOOKS_WAIT_MS = 5000,
    PATIENCE_MS = 6000, /* for the step after a step that was cancelled */
    PATIENCE_MOST_MS = 96000,
    NEWS_MS = 50,        /* two steps in a row that ask for a shorter wait = work */
    LOOK_MS = 50,        /* how often to look if a waiting worker does not react */
    DISTRUST_MS = 60000, /* for how long it looks itself */
    STANDS_BY_MS = 3000, /* refused for this time: not by a claim's step. It asks by whom */
    ASK_AGAIN_MS = 30000,
    AWAKE_MS = 2500,   /* sleeps after this time without news */
    AGAIN_MS = 1000,   /* next try after the server said "not now" */
    REFUSED_MS = 60000 /* next try if a pooler prevents sleep */
};

#define STANDS_BY "stands by: another is active"
enum told { TOLD_NOTHING, TOLD_ACTIVE, TOLD_STANDS_BY, TOLD_WAITS };

struct scheduler {
    struct loop *loop;
    struct db *db;
    struct queue *queue;
    char *holder;
    struct db *books_db;
    struct queue *books;
    int timer, books_timer;
    int64_t steps;
    int64_t news_ms;     /* when a step last did something */
    int64_t step_ms;     /* when the next step is due */
    int64_t distrust_ms; /* look until then, even if a worker waits */
    int64_t doubt_ms;    /* when a waiter last did not react */
    int patience_ms;     /* for a step, 0 = the usual one */
    int look_ms;         /* until queue_is_new; 0 = not before the step */
    int listen_pid;      /* the connection that has waited for a NOTIFY, 0 = none */
    bool was_short;      /* the last step said to come back soon */
    bool is_asking;      /* a step is out */
    bool is_waiting;     /* for a NOTIFY */
    bool is_woken;       /* one came while a step was out */
    bool is_active, has_ended;
    enum told told;      /* what the log said last */
    int64_t refused_ms;  /* when its first step was refused since it was last active */
    int64_t asked_ms;    /* when it last asked who refuses it; 0 = not since it was active */
    bool is_keeping;     /* keep_books is out */
    bool is_folding;     /* fold_beside is out */
    int64_t sleep_ms;    /* at most; 0 = never */
    int64_t sleep_at_ms; /* does not sleep before this time */
    int sleep_pid;       /* the connection that listens for who sleeps */
    bool is_asleep;
    bool has_said_no_sleep;
    struct err fatal;
    struct err said; /* last complaint */
    struct err said_books;
};

static void ask(void *ctx);
static void look(void *ctx);
static void keep_books(void *ctx);

static void
again_in(struct scheduler *s, int64_t ms)
{
    loop_cancel(s->loop, s->timer);
    s->timer = loop_at(s->loop, clock_ms() + ms, ask, s);
}

static void
complain(struct scheduler *s, const struct err *e)
{
    if (e->kind == ERR_CONN || !strcmp(s->said.text, e->text)) /* db logs this itself */
        return;
    s->said = *e;
    log_line(LOG_WARN, "%s; trying again", e->text);
}

/* --- the books --- */

static void
on_books(void *ctx, const struct err *e, const char *text)
{
    struct scheduler *s = ctx;
    int64_t wait_ms = BOOKS_WAIT_MS;

    s->is_keeping = false;
    if (s->has_ended)
        return;
    if (e->kind == ERR_NONE) {
        s->said_books = (struct err){0};
        wait_ms = strtol(text, NULL, 10);
    } else if (e->kind != ERR_CONN && strcmp(s->said_books.text, e->text) != 0) {
        s->said_books = *e;
        log_line(LOG_WARN, "keeping the books: %s; trying again", e->text);
    }
    s->books_timer = loop_at(s->loop, clock_ms() + (wait_ms > 0 ? wait_ms : 0), keep_books, s);
}

static void
keep_books(void *ctx)
{
    struct scheduler *s = ctx;

    s->books_timer = 0;
    if (!s->is_active || s->is_keeping || s->is_asleep)
        return;
    s->is_keeping = true;
    queue_wait(s->books, BOOKS_WAIT_MS);
    queue_keep_books(s->books, on_books, s);
}

static void
on_fold(void *ctx, const struct err *e, const char *text)
{
    struct scheduler *s = ctx;

    (void)text;
    s->is_folding = false;
    if (e->kind != ERR_NONE)
        log_line(LOG_DEBUG, "folding the counters: %s; a step does it", e->text);
}

static void
fold_beside(struct scheduler *s)
{
    if (s->is_folding || s->is_keeping) /* if the call is late, a step folds the counters */
        return;
    s->is_folding = true;
    queue_wait(s->books, BOOKS_WAIT_MS);
    queue_fold(s->books, on_fold, s);
}

/* --- the steps --- */

static int
longer(int patience_ms)
{
    if (patience_ms == 0)
        return PATIENCE_MS;
    return patience_ms < PATIENCE_MOST_MS ? 2 * patience_ms : PATIENCE_MOST_MS;
}

/* The patience does not go back to the usual one at once: the next step may have as much to do. */
static int
shorter(int patience_ms)
{
    return patience_ms > PATIENCE_MS ? patience_ms / 2 : 0;
}

static void
tell(struct scheduler *s, enum told what, const char *text)
{
    if (s->told != what)
        log_line(what == TOLD_WAITS ? LOG_WARN : LOG_INFO, "scheduler %s %s", s->holder, text);
    s->told = what;
}

static void
on_holder(void *ctx, const struct err *e, const char *holder)
{
    struct scheduler *s = ctx;

    if (e->kind != ERR_NONE)
        log_line(LOG_DEBUG, "who holds the scheduler's row: %s", e->text);
    if (e->kind != ERR_NONE || s->is_active || s->has_ended)
        return;
    if (!*holder) {
        tell(s, TOLD_STANDS_BY, STANDS_BY);
        return;
    }
    char *text = xasprintf("waits for %s: it must commit, or be ended (K on Database)", holder);
    tell(s, TOLD_WAITS, text);
    free(text);
}

/* Logs whether this scheduler is active, stands by, or waits for a transaction. One refused step
 * does not mean that: a claim or an idle worker may hold the lock for a moment. */
static void
tell_turn(struct scheduler *s)
{
    int64_t now = clock_ms();

    if (s->is_active) {
        s->refused_ms = s->asked_ms = 0;
        tell(s, TOLD_ACTIVE, "is active");
        return;
    }
    if (s->refused_ms == 0)
        s->refused_ms = now;
    if (now - s->refused_ms < STANDS_BY_MS || (s->asked_ms && now - s->asked_ms < ASK_AGAIN_MS))
        return;
    s->asked_ms = now;
    queue_schedule_holder(s->queue, on_holder, s);
}

static void
on_error(struct scheduler *s, const struct err *e)
{
    bool no_queue = !strcmp(e->sqlstate, "3F000") || !strcmp(e->sqlstate, "42883");

    s->is_active = false;
    s->refused_ms = s->asked_ms = 0;
    if (s->told == TOLD_ACTIVE)
        s->told = TOLD_NOTHING;
    if (s->steps == 0 && (no_queue || e->kind == ERR_AUTH || e->kind == ERR_DENIED)) {
        s->fatal = *e;
        loop_stop(s->loop);
        return;
    }
    complain(s, e);
    if (e->kind == ERR_TIMEOUT)
        s->patience_ms = longer(s->patience_ms);
    if (e->kind == ERR_AUTH || e->kind == ERR_DENIED)
        db_retry_now(s->db); /* this login worked before: perhaps the password is being changed */
    again_in(s, RETRY_MS);
}

static void
on_woken(void *ctx, const struct err *e, const char *text)
{
    (void)ctx, (void)text;
    if (e->kind != ERR_NONE)
        log_line(LOG_DEBUG, "wake: %s", e->text);
}

/* The lock says that a worker waits for pushes, but this step found a job that was pushed. So that
 * worker hangs, or a stranger holds the lock. */
static void
watch_waiter(struct scheduler *s, const struct queue_step *step, int64_t now)
{
    if (step->late && step->cut > 0) {
        if (s->doubt_ms > 0 && now < s->doubt_ms + DISTRUST_MS) { /* a single time may be chance */
            log_line(LOG_WARN,
                     "who waits for a push does not work it (a worker that stands still, or a "
                     "session that is none and holds its lock: see Database in the console); "
                     "looking after it myself");
            s->distrust_ms = now + DISTRUST_MS;
        }
        s->doubt_ms = now;
    }
    if (step->cut > 0 && now < s->distrust_ms) /* the step has woken only the first worker that
                                                  waits */
        queue_wake(s->queue, step->cut, on_woken, s);
}

/* Plans the next step. If a look is due before, plans that: it asks whether anything is new. */
static void
go_on(struct scheduler *s, int64_t now)
{
    bool looks = s->look_ms > 0 && now + s->look_ms < s->step_ms;

    loop_cancel(s->loop, s->timer);
    s->timer = loop_at(s->loop, looks ? now + s->look_ms : s->step_ms, looks ? look : ask, s);
}

static void
on_look(void *ctx, const struct err *e, const char *text)
{
    struct scheduler *s = ctx;

    s->is_asking = false;
    if (s->has_ended)
        return;
    if (e->kind != ERR_NONE || s->is_woken || *text == '1')
        ask(s);
    else
        go_on(s, clock_ms());
}

static void
look(void *ctx)
{
    struct scheduler *s = ctx;

    s->timer = 0;
    s->is_asking = true;
    queue_is_new(s->queue, on_look, s);
}

static void
pace(struct scheduler *s, const struct queue_step *step)
{
    bool only_listens = step->waits && step->wait_ms == 0; /* the first step that waits */
    int64_t now = clock_ms();

    bool is_short = step->wait_ms < NEWS_MS && !only_listens;
    if (step->cut || step->promoted || step->stolen || (is_short && s->was_short))
        s->news_ms = now;
    s->was_short = is_short;
    s->is_waiting = step->waits;
    db_own_session(s->db, step->waits);
    if (step->waits)
        s->listen_pid = db_backend_pid(s->db);
    watch_waiter(s, step, now);
    s->look_ms = now < s->distrust_ms && step->active && !step->waits ? LOOK_MS : step->look_ms;
    s->step_ms = now + (step->wait_ms < WAIT_MAX_MS ? step->wait_ms : WAIT_MAX_MS);
    if (s->is_woken)
        s->step_ms = now;
    s->is_woken = false;
    go_on(s, now);
}

static void
on_step(void *ctx, const struct err *e, const struct queue_step *step)
{
    struct scheduler *s = ctx;

    s->is_asking = false;
    if (s->has_ended)
        return;
    if (e->kind != ERR_NONE) {
        on_error(s, e);
        return;
    }
    s->is_active = step->active;
    tell_turn(s);
    s->said = (struct err){0};
    if (s->is_active) /* a step that found the lock taken does not show how long a step takes */
        s->patience_ms = shorter(s->patience_ms);
    s->steps++;
    if (s->is_active && s->books_timer == 0)
        keep_books(s);
    if (step->fold)
        fold_beside(s);
    if (step->cut || step->promoted || step->stolen)
        log_line(LOG_DEBUG, "cut %d, promoted %d, stolen %d", step->cut, step->promoted,
                 step->stolen);
    pace(s, step);
}

static void
ask_step(struct scheduler *s)
{
    int pid = db_backend_pid(s->db);
    struct queue_stepper who = {.holder = s->holder,
                                .quiet_ms = s->is_active ? clock_ms() - s->news_ms : 0,
                                .is_listening = pid != 0 && pid == s->listen_pid,
                                .patience_ms = s->patience_ms};

    s->is_waiting = s->is_woken = false;
    s->is_asking = true;
    queue_schedule(s->queue, &who, on_step, s);
}

/* --- sleep --- */

static void
wake_up(struct scheduler *s)
{
    if (!s->is_asleep || s->has_ended)
        return;
    s->is_asleep = false;
    s->listen_pid = s->sleep_pid = 0; /* this session listens to too many channels: the next step
                                         sets them anew */
    s->news_ms = clock_ms();
    again_in(s, 0);
}

static void
on_due(void *ctx)
{
    struct scheduler *s = ctx;

    s->timer = 0;
    wake_up(s);
}

static void
on_state(void *ctx)
{
    struct scheduler *s = ctx;

    if (db_state(s->db) != DB_READY)
        wake_up(s);
}

/* Sleeps for ms at most. It does not keep the books meanwhile, because nothing changes them. */
static void
fall_asleep(struct scheduler *s, int64_t ms)
{
    s->is_asleep = true;
    s->has_said_no_sleep = false;
    if (!s->is_active)
        tell(s, TOLD_STANDS_BY, STANDS_BY);
    loop_cancel(s->loop, s->books_timer);
    s->books_timer = 0;
    loop_cancel(s->loop, s->timer);
    s->timer = loop_at(s->loop, clock_ms() + ms, on_due, s);
}

static void
stay_awake(struct scheduler *s, const char *why)
{
    s->sleep_at_ms = clock_ms() + REFUSED_MS;
    if (!s->has_said_no_sleep)
        log_line(LOG_WARN, "--sleep: scheduler %s stays awake: %s", s->holder, why);
    s->has_said_no_sleep = true;
}

static void
on_sleep(void *ctx, const struct err *e, const char *text)
{
    struct scheduler *s = ctx;
    int64_t ms = strtoll(text, NULL, 10);

    s->is_asking = false;
    if (s->has_ended)
        return;
    if (e->kind != ERR_NONE && e->kind != ERR_CONN)
        stay_awake(s, e->text);
    else if (!strcmp(text, "pooler"))
        stay_awake(s, "a pooler stands between, through which no notification comes");
    else if (!strcmp(text, "listens")) /* the session now listens to slot 0, too */
        s->sleep_pid = s->listen_pid = db_backend_pid(s->db);
    else if (ms > 0 && !s->is_woken && db_state(s->db) == DB_READY) {
        fall_asleep(s, ms);
        return;
    } else
        s->sleep_at_ms = clock_ms() + AGAIN_MS;
    ask_step(s);
}

/* A scheduler that stands by sleeps while the active one sleeps. It asks for sleep before each
 * step, because the step would make it the active one. */
static bool
may_sleep(const struct scheduler *s)
{
    int64_t now = clock_ms();

    return s->sleep_ms > 0 && s->steps > 0 && now >= s->sleep_at_ms && !s->is_keeping &&
           !s->is_folding && (!s->is_active || now - s->news_ms >= AWAKE_MS);
}

static void
ask(void *ctx)
{
    struct scheduler *s = ctx;
    int pid = db_backend_pid(s->db);

    s->timer = 0;
    if (!may_sleep(s)) {
        ask_step(s);
        return;
    }
    s->is_asking = true;
    s->is_woken = false;
    queue_fall_asleep(s->queue,
                      &(struct queue_sleeper){.node = s->holder,
                                              .most_ms = s->sleep_ms,
                                              .slot = s->is_waiting ? 0 : 1,
                                              .is_listening = pid != 0 && pid == s->sleep_pid},
                      on_sleep, s);
}

void
scheduler_may_sleep(struct scheduler *s, int64_t ms)
{
    s->sleep_ms = ms;
    if (ms > 0)
        db_on_state(s->db, on_state, s);
}

/* A NOTIFY: something was pushed. */
static void
wake(void *ctx, const char *channel)
{
    struct scheduler *s = ctx;

    (void)channel; /* this session listens to one channel only */
    s->is_woken = s->is_asking;
    if (s->is_asleep)
        wake_up(s);
    else if (s->is_waiting && !s->is_asking && !s->has_ended)
        again_in(s, 0);
}

static void
end(void *ctx)
{
    struct scheduler *s = ctx;

    loop_stop(s->loop);
}

static void
on_stop(void *ctx, const struct err *e, const char *text)
{
    (void)e; /* if this fails, the lease of the scheduler ends by itself in three seconds */
    (void)text;
    end(ctx);
}

/* The first signal lets another scheduler take over, then ends; the second ends at once. */
static void
on_signal(void *ctx, int signo)
{
    struct scheduler *s = ctx;

    if (s->has_ended || !s->is_active) {
        s->has_ended = true;
        loop_stop(s->loop);
        return;
    }
    log_line(LOG_INFO, "%s: ending", strsignal(signo));
    s->has_ended = true;
    loop_cancel(s->loop, s->timer);
    s->timer = loop_at(s->loop, clock_ms() + STOP_MS, end, s);
    queue_wait(s->queue, 0);
    queue_schedule_stop(s->queue, s->holder, on_stop, s);
}

struct scheduler *
scheduler_new(struct loop *l, struct db *db, struct db *books, const char *schema,
              const char *holder, struct err *e)
{
    struct queue *queue = queue_new(db, schema, e);

    if (!queue) {
        db_free(books);
        return NULL;
    }
    struct scheduler *s = xcalloc(1, sizeof *s);
    s->loop = l;
    s->db = db;
    s->queue = queue;
    s->books_db = books;
    s->books = queue_new(books, schema, e); /* the texts are those of the first queue: it can't
                                               fail */
    s->holder = holder ? xstrdup(holder) : worker_make_name();
    return s;
}

bool
scheduler_run(struct scheduler *s, struct err *e)
{
    loop_on_signal(s->loop, SIGTERM, on_signal, s);
    loop_on_signal(s->loop, SIGINT, on_signal, s);
    db_on_notify(s->db, wake, s);
    ask(s);
    if (!loop_run(s->loop, e))
        return false;
    s->has_ended = true;
    if (s->fatal.kind != ERR_NONE)
        *e = s->fatal;
    return s->fatal.kind == ERR_NONE;
}

void
scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    s->has_ended = true;
    db_free(s->books_db);
    loop_cancel(s->loop, s->timer);
    loop_cancel(s->loop, s->books_timer);
    queue_free(s->books);
    queue_free(s->queue);
    free(s->holder);
    free(s);
}
