/* Figures that are computed from the rows of database health. */
#include "model/store/health.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELD_XIDS = 1000,
    HELD_MS = 10 * 1000
};                       /* shorter than this, a transaction does not matter */
#define FREEZE_LATE 1.25 /* times the age at which the server forces a vacuum */
#define FREEZE_BAD 1e9   /* half of the age at which the server takes no more writes */

int64_t
health_known(int64_t n)
{
    return n == FIELD_NULL || n < 0 ? 0 : n;
}

double
health_dead_part(const struct health_table *t)
{
    int64_t dead = health_known(t->dead), all = dead + health_known(t->live);

    return all > 0 ? (double)dead / (double)all : (double)NAN;
}

double
health_fill(const struct health_table *t)
{
    int64_t next = health_known(t->next_dead);

    return (double)health_known(t->worst_dead) / (double)(next > 0 ? next : 1);
}

bool
health_is_signalled(const struct health_session *s)
{
    return s->pid > 0 && strcmp(s->kind, "slot") != 0 && *s->guard;
}

bool
health_waits(const struct health_session *s)
{
    return *s->blocked_by || !strncmp(s->waits, "Lock: ", 6);
}

bool
health_waits_for(const struct health_session *s, int pid)
{
    for (const char *at = s->blocked_by; *at;) {
        char *end;
        long one = strtol(at, &end, 10);
        if (end == at)
            return false;
        if (one == pid)
            return true;
        at = end;
    }
    return false;
}

void
health_say_blockers(struct buf *out, const struct health_session *s)
{
    const char *sign = "pid ";
    bool prepared = health_waits_for(s, 0);

    for (const char *at = s->blocked_by; *at;) {
        char *end;
        long one = strtol(at, &end, 10);
        if (end == at)
            break;
        if (one > 0) {
            buf_printf(out, "%s%ld", sign, one);
            sign = ", ";
        }
        at = end;
    }
    if (prepared)
        buf_printf(out, "%sa prepared transaction", *sign == ',' ? " and " : "");
    else if (*sign != ',')
        buf_str(out, "others");
}

void
health_one_line(struct buf *out, const char *query)
{
    static const char blank[] = " \t\r\n\f\v";

    for (const char *at = query + strspn(query, blank); *at;) {
        size_t len = strcspn(at, blank);
        buf_add(out, at, len);
        at += len;
        at += strspn(at, blank);
        if (*at)
            buf_str(out, " ");
    }
}

int
health_xid_alarm(const struct health_server *s)
{
    if ((double)s->xid_age >= FREEZE_BAD)
        return 2;
    return s->freeze_max > 0 && (double)s->xid_age >= FREEZE_LATE * (double)s->freeze_max;
}

int64_t
health_open_ms(const struct health *h, const struct health_session *s)
{
    return s->xact_ms == FIELD_NULL || h->now_ms < s->xact_ms ? 0 : h->now_ms - s->xact_ms;
}

bool
health_is_idle(const struct health_session *s)
{
    return !strncmp(s->state, "idle in transaction", 19);
}

/* True if the session should be reported: it holds back many transaction ids, or its transaction
 * has been open for long. The second rule is for a quiet database, which uses few ids. */
static bool
is_worth_a_word(const struct health *h, const struct health_session *s)
{
    int64_t ms = health_open_ms(h, s);

    if (s->held == FIELD_NULL)
        return false;
    if (s->held >= HELD_XIDS && (s->xact_ms == FIELD_NULL || ms >= HELD_MS))
        return true;
    return condition_judge_ms(health_is_idle(s) ? COND_IDLE : COND_TRANSACTION, ms) > VERDICT_WELL;
}

const struct health_session *
health_holder(const struct health *h)
{
    const struct health_session *most = NULL;

    for (int i = 0; i < h->nsessions; i++) {
        const struct health_session *s = &h->sessions[i];
        if (is_worth_a_word(h, s) &&
            (!most || s->held > most->held ||
             (s->held == most->held && health_open_ms(h, s) > health_open_ms(h, most))))
            most = s;
    }
    return most;
}

int64_t
health_held_rows(const struct health *h)
{
    int64_t sum = 0;

    for (int i = 0; i < h->ntables; i++)
        sum += health_known(h->tables[i].dead);
    return sum;
}
