/*
 * The rules of advice: each sentence names what is wrong, who it is, and what helps. An act that
 * does harm is named only where nothing milder ends the trouble.
 */
#include "model/store/health.h"

#include <math.h>
#include <string.h>

#include "model/base/text.h"

struct advice_list {
    const struct health *h;
    struct arena *mem;
    struct advice *out;
    int n, max;
};

static void
add_advice(struct advice_list *l, enum condition_id of, bool bad, const char *id, const char *text)
{
    if (l->n < l->max)
        l->out[l->n++] =
            (struct advice){.of = of, .bad = bad, .id = id, .text = text, .what = text};
}

static void
add_calm(struct advice_list *l, const char *text)
{
    add_advice(l, COND_DEAD_ROWS, false, "", text);
    if (l->n > 0 && l->out[l->n - 1].text == text)
        l->out[l->n - 1].calm = true;
}

/* A duration as the lists show it: "41m". */
static const char *
span(struct advice_list *l, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {
        {86400000, "d"},
        {3600000,  "h"},
        {60000,    "m"},
    };

    for (int i = 0; i < 3; i++)
        if (ms >= units[i].ms)
            return arena_printf(l->mem, "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
    return arena_printf(l->mem, "%llds", (long long)(ms / 1000));
}

static const char *
count(struct advice_list *l, int64_t n)
{
    if (n < 1000)
        return arena_printf(l->mem, "%lld", (long long)n);
    if (n < 1000000)
        return arena_printf(l->mem, "%lld,%03lld", (long long)(n / 1000), (long long)(n % 1000));
    return arena_printf(l->mem, "%lld,%03lld,%03lld", (long long)(n / 1000000),
                        (long long)(n / 1000 % 1000), (long long)(n % 1000));
}

/* A name made safe to show: any user may have chosen it. */
static const char *
clean(struct advice_list *l, const char *name)
{
    struct buf b = {0};

    text_clean(&b, name, strlen(name), TEXT_LINE, 24);
    const char *text = arena_strndup(l->mem, b.data ? b.data : "", b.len);
    buf_free(&b);
    return text;
}

static const char *
who(struct advice_list *l, const struct health_session *s)
{
    struct buf b = {0};

    if (s->pid > 0 && strcmp(s->kind, "slot") != 0)
        buf_printf(&b, "pid %d (%s", s->pid, *s->app ? "" : "user ");
    else
        buf_printf(&b, "%s (",
                   !strcmp(s->kind, "slot") ? "replication slot" : "prepared transaction");
    text_clean(&b, *s->app ? s->app : s->user, strlen(*s->app ? s->app : s->user), TEXT_LINE, 24);
    buf_str(&b, ")");
    const char *text = arena_strndup(l->mem, b.data, b.len);
    buf_free(&b);
    return text;
}

static const char *
help_for(struct advice_list *l, const struct health_session *s)
{
    if (!strcmp(s->kind, "slot"))
        return "start its reader, or drop the slot: a reader that comes later must be made anew";
    if (!strcmp(s->kind, "prepared"))
        return "commit prepared or rollback prepared ends it";
    if (!strcmp(s->kind, "walsender"))
        return "a standby holds it by hot_standby_feedback: look for the long query there";
    if (!strcmp(s->kind, "autovacuum"))
        return "an analyze that ends by itself";
    if (!strcmp(s->kind, "background"))
        return "a process of the server: look at what it does before you end it";
    if (*s->deny)
        return arena_printf(l->mem, "ending it is not yours to do: %s", s->deny);
    return health_is_idle(s) ? "K ends it" : "C cancels its statement, K ends it";
}

/* Ends a sentence with the act that helps. If a key does this act, the act becomes the second part
 * of the text. */
static void
add_with_help(struct advice_list *l, enum condition_id of, bool bad, const struct health_session *s,
              const char *what)
{
    const char *help = help_for(l, s);

    add_advice(l, of, bad, s->id, arena_printf(l->mem, "%s: %s", what, help));
    if (l->n == l->max || !health_is_signalled(s) || *s->deny || !strstr(help, "K ends"))
        return;
    l->out[l->n - 1].what = what;
    l->out[l->n - 1].act = health_is_idle(s) ? "K  end it" : "C  cancel it";
}

static const char *
what_it_does(struct advice_list *l, const struct health_session *s)
{
    int64_t ms = health_open_ms(l->h, s);

    if (!strcmp(s->kind, "slot"))
        return arena_printf(l->mem, "(%s) keeps rows since %s transactions", s->state,
                            count(l, health_known(s->held)));
    if (!strcmp(s->kind, "prepared"))
        return arena_printf(l->mem, "is open for %s", span(l, ms));
    return arena_printf(l->mem, "is %s for %s", s->state, span(l, ms));
}

static void
on_holder(struct advice_list *l)
{
    const struct health_session *s = health_holder(l->h);
    int64_t rows = health_held_rows(l->h);
    const char *stay = "", *what;

    if (!s)
        return;
    if (rows >= HEALTH_MANY_DEAD)
        stay = arena_printf(l->mem, ", up to %s dead rows stay", count(l, rows));
    if (!strcmp(s->kind, "slot") || !strcmp(s->kind, "prepared"))
        what = arena_printf(l->mem, "%s %s and holds back vacuum%s", who(l, s), what_it_does(l, s),
                            stay);
    else /* a narrow row is cut at its end: what it does there comes last */
        what = arena_printf(l->mem, "%s holds back vacuum for %s%s; it is %s", who(l, s),
                            span(l, health_open_ms(l->h, s)), stay, s->state);
    enum condition_id id = health_is_idle(s) ? COND_IDLE : COND_TRANSACTION;
    bool is_long = condition_judge_ms(id, health_open_ms(l->h, s)) == VERDICT_BAD;
    add_with_help(l, id, is_long || rows >= HEALTH_MANY_DEAD, s, what);
}

static int64_t
waits_ms(const struct health *h, const struct health_session *s)
{
    return s->since_ms == FIELD_NULL || h->now_ms < s->since_ms ? 0 : h->now_ms - s->since_ms;
}

/* A session that others wait for, and that waits for nobody: the cause, and what ends it. */
static bool
on_blocker(struct advice_list *l, const struct health_session *s)
{
    const struct health *h = l->h;
    int64_t most = 0;
    int n = 0;
    bool more = false; /* for some waiting sessions the server was not asked who blocks them */

    for (int i = 0; i < h->nsessions && s->pid > 0; i++) {
        const struct health_session *w = &h->sessions[i];
        more = more || (health_waits(w) && !*w->blocked_by);
        if (!health_waits_for(w, s->pid))
            continue;
        n++;
        most = waits_ms(h, w) > most ? waits_ms(h, w) : most;
    }
    if (n == 0 || condition_judge_ms(COND_BLOCKS, most) < VERDICT_BAD)
        return false;
    add_with_help(l, COND_BLOCKS, true, s,
                  arena_printf(l->mem, "%s %s, and %d%s wait%s for its locks since %s", who(l, s),
                               what_it_does(l, s), n, more ? " or more" : "",
                               n == 1 && !more ? "s" : "", span(l, most)));
    return true;
}

/* A waiting session whose blocker is not in the list, or waits itself: no sentence above names
 * it. */
static void
on_waiter(struct advice_list *l, const struct health_session *s)
{
    const struct health *h = l->h;
    struct buf b = {0};

    for (int i = 0; i < h->nsessions; i++)
        if (h->sessions[i].pid > 0 && health_waits_for(s, h->sessions[i].pid))
            return;
    if (condition_judge_ms(COND_BLOCKS, waits_ms(h, s)) < VERDICT_BAD || !*s->blocked_by)
        return;
    health_say_blockers(&b, s);
    add_advice(l, COND_BLOCKS, true, s->id,
               arena_printf(l->mem,
                            "%s waits for a lock since %s, held by %.*s: look at that first",
                            who(l, s), span(l, waits_ms(h, s)), (int)b.len, b.data));
    buf_free(&b);
}

/* Advisory locks: every role that may connect may take any of them. */
static void
on_place(struct advice_list *l, const struct health_session *s)
{
    add_advice(
        l, COND_WORKER_LOCK, false, s->id,
        arena_printf(l->mem,
                     "%s of user %s holds the lock of a worker that waits, and is none: each push "
                     "sends a NOTIFY in vain, jobs start a little later; end it, or let it call "
                     "pg_advisory_unlock_all()",
                     who(l, s), clean(l, s->user)));
}

/* An act or a claim was left in an open transaction: no scheduler gets a turn before it ends. */
static bool
on_turn(struct advice_list *l, const struct health_session *s)
{
    if (s->holds_turn != 1 || !health_is_idle(s) ||
        condition_judge_ms(COND_TURN, health_open_ms(l->h, s)) < VERDICT_BAD)
        return false;
    add_with_help(l, COND_TURN, true, s,
                  arena_printf(l->mem,
                               "%s holds the scheduler's row, so nothing is scheduled; it %s",
                               who(l, s), what_it_does(l, s)));
    return true;
}

/* Sessions that wait, sessions that others wait for, and long transactions beside the one that
 * holds back vacuum. */
static void
on_sessions(struct advice_list *l)
{
    const struct health *h = l->h;
    const struct health_session *holder = health_holder(h);

    for (int i = 0; i < h->nsessions; i++) {
        const struct health_session *s = &h->sessions[i];
        int64_t ms = health_open_ms(h, s);
        if (!strcmp(s->kind, "place"))
            on_place(l, s);
        if (on_turn(l, s))
            continue;
        if (health_waits(s))
            on_waiter(l, s);
        else if (on_blocker(l, s))
            continue;
        else if (s == holder || !strcmp(s->kind, "autovacuum"))
            continue;
        else if (!strcmp(s->kind, "slot") && !strcmp(s->state, "unread slot"))
            add_advice(
                l, COND_SLOT, false, s->id,
                arena_printf(
                    l->mem,
                    "%s is not read by anybody and keeps WAL%s: start its reader, or drop it",
                    who(l, s), s->held == FIELD_NULL ? "" : " and dead rows"));
        else if (!strcmp(s->kind, "slot") && !strcmp(s->state, "lost slot"))
            add_advice(l, COND_SLOT, false, s->id,
                       arena_printf(l->mem,
                                    "%s is lost: its WAL is gone, drop it and make its reader anew",
                                    who(l, s)));
        else if (health_is_idle(s) && condition_judge_ms(COND_IDLE, ms) == VERDICT_BAD)
            add_with_help(
                l, COND_IDLE, true, s,
                arena_printf(l->mem, "%s is %s for %s", who(l, s), s->state, span(l, ms)));
    }
}

static void
on_tables(struct advice_list *l)
{
    const struct health *h = l->h;
    const struct health_session *holder = health_holder(h);

    for (int i = 0; i < h->ntables; i++) {
        const struct health_table *t = &h->tables[i];
        double part = health_dead_part(t);
        int percent = isnan(part) ? 0 : (int)(part * 100 + 0.5);
        if (t->vacuum_off == 1)
            add_advice(l, COND_VACUUM_OFF, true, "",
                       arena_printf(l->mem,
                                    "%s: autovacuum is switched off for it: alter table ... reset "
                                    "(autovacuum_enabled)",
                                    t->name));
        if (health_known(t->dead) < HEALTH_MANY_DEAD ||
            condition_judge(COND_DEAD_ROWS, part) < VERDICT_BAD)
            continue;
        if (holder && health_fill(t) >= 1)
            add_advice(l, COND_DEAD_ROWS, true, holder->id,
                       arena_printf(l->mem, "%s: %d%% dead, %s rows, and vacuum is held back by %s",
                                    t->name, percent, count(l, t->dead), who(l, holder)));
        else if (health_fill(t) >= 1)
            add_advice(
                l, COND_DEAD_ROWS, false, "",
                arena_printf(l->mem,
                             "%s: %d%% dead and past its mark of %s: autovacuum is due, or %d of "
                             "%d workers are not enough",
                             t->name, percent, count(l, t->next_dead),
                             h->server ? h->server->workers : 0,
                             h->server ? h->server->max_workers : 0));
        else
            add_calm(l, arena_printf(l->mem,
                                     "%s: %d%% dead is normal between vacuums: the next starts "
                                     "at %s dead rows",
                                     t->name, percent, count(l, t->next_dead)));
    }
}

static void
on_server(struct advice_list *l)
{
    const struct health_server *s = l->h->server;

    if (!s)
        return;
    int alarm = health_xid_alarm(s);
    if (alarm)
        add_advice(l, COND_XIDS, alarm == 2, "",
                   arena_printf(l->mem,
                                "database %s: oldest transaction id %s back, vacuums to prevent "
                                "wraparound do not finish: end what holds vacuum back, never those "
                                "vacuums; then vacuum (freeze) its oldest tables",
                                s->xid_database, count(l, s->xid_age)));
    if (s->autovacuum == 0)
        add_advice(l, COND_VACUUM_OFF, true, "",
                   "autovacuum is switched off on this server: dead rows stay. alter system set "
                   "autovacuum = on, then reload");
    double taken =
        s->max_connections > 0 ? (double)s->connections / s->max_connections : (double)NAN;
    if (condition_judge(COND_CONNECTIONS, taken) == VERDICT_BAD)
        add_advice(
            l, COND_CONNECTIONS, true, "",
            arena_printf(
                l->mem,
                "%d of %d connections are taken: a pooler, or fewer workers, before nobody gets in",
                s->connections, s->max_connections));
    if (s->standby == 1)
        add_advice(
            l, COND_STANDBY, false, "",
            "this is a standby: rows and vacuums are counted on the primary only, look there");
    if (condition_judge_ms(COND_LAG, s->lag_ms) > VERDICT_WELL)
        add_advice(l, COND_LAG, false, "",
                   arena_printf(
                       l->mem,
                       s->standby == 1
                           ? "this standby is %s behind: what you see is that old"
                           : "a standby is %s behind: its disk, its network, or a long query there",
                       span(l, s->lag_ms)));
}

static void
on_rights(struct advice_list *l)
{
    const struct health_server *s = l->h->server;

    if (s && s->sees_all == 0 && s->hidden > 0)
        add_advice(
            l, COND_HIDDEN, false, "",
            arena_printf(l->mem,
                         "user %s can't see what other users' sessions do (%d hidden now): grant "
                         "pg_monitor to it would show them",
                         s->login, s->hidden));
}

int
health_advice(const struct health *h, struct arena *mem, struct advice *out, int max)
{
    struct advice all[64];
    struct advice_list l = {h, mem, all, 0, 64};
    int n = 0;

    on_holder(&l);
    on_server(&l);
    on_sessions(&l);
    on_tables(&l);
    on_rights(&l);
    for (int bad = 1; bad >= 0; bad--)
        for (int i = 0; i < l.n && n < max; i++)
            if (all[i].bad == (bad == 1))
                out[n++] = all[i];
    return n;
}
