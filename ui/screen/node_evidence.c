/*
 * The evidence that a node is alive, in one line.
 */
#include "ui/screen/node_evidence.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/facts/verdict.h"

static void
say_session(struct pen *p, const struct node_row *n, int64_t now_ms)
{
    if (n->backend_pid == INT_MIN) {
        pen_put(p, ROLE_DIM, " · session hidden");
        return;
    }
    if (n->session_alive == 0)
        pen_printf(p, ROLE_BAD, " · its session, pid %d, is gone", n->backend_pid);
    else if (n->session_alive < 0)
        pen_printf(p, ROLE_DIM, " · session pid %d: not visible to this login", n->backend_pid);
    else
        pen_printf(p, ROLE_TEXT, " · session pid %d %s", n->backend_pid,
                   *n->session_state ? n->session_state : "alive");
    if (n->session_alive == 1 && n->session_ms != FIELD_NULL)
        pen_printf(p, ROLE_TEXT, " for %s", fmt_age(now_ms - n->session_ms).s);
}

/* How far the clock of its machine is from the server's, if that is known. A part is never cut. */
static void
say_clock(struct pen *p, const struct node_row *n)
{
    int64_t ahead = n->clock_ahead_ms;
    char text[80];

    if (ahead == FIELD_NULL)
        return;
    struct fmt far = fmt_duration(ahead < 0 ? -ahead : ahead);
    bool is_wrong = ahead > CLOCK_SKEW_MS || ahead < -CLOCK_SKEW_MS;
    if (is_wrong)
        snprintf(text, sizeof text, " · its clock is %s %s", far.s, ahead < 0 ? "behind" : "ahead");
    else
        snprintf(text, sizeof text, " · clock right");
    if (p->r.w >= (int)strlen(text))
        pen_put(p, is_wrong ? ROLE_WARN : ROLE_DIM, text);
}

/* Draws the evidence: the node's heartbeat, its leases, its clock, its session in the database. */
void
node_evidence(struct grid *g, struct rect r, const struct node_row *n, const struct app *a)
{
    struct pen p = pen_start(g, r);
    int64_t now_ms = a->now_ms;

    if (n->heartbeat_ms == FIELD_NULL && app_is_foreign(a))
        pen_put(&p, ROLE_DIM, "no heartbeat is kept: only its jobs show it");
    else if (n->heartbeat_ms == FIELD_NULL)
        pen_put(&p, ROLE_WARN, "never a heartbeat");
    else
        pen_printf(&p, verdict_role(verdict_of_node(n, app_is_foreign(a))), "heartbeat %s ago",
                   fmt_age(now_ms - n->heartbeat_ms).s);
    if (n->leases > 0 && n->lease_until_ms != FIELD_NULL) {
        int64_t left = n->lease_until_ms - now_ms;
        if (left < 0)
            pen_printf(&p, ROLE_BAD, " · all leases are over, the last for %s", fmt_age(-left).s);
        else
            pen_printf(&p, ROLE_TEXT, " · last lease ends %s",
                       fmt_time(n->lease_until_ms, a->options.utc).s);
    }
    say_clock(&p, n);
    if (p.r.w >= (n->backend_pid == INT_MIN ? 18 : 30) &&
        (n->backend_pid != INT_MIN || !app_is_foreign(a))) /* a part is never cut short */
        say_session(&p, n, now_ms);
}
