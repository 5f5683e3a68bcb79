/*
 * The keys C and K of the Database screen: which session they act on, what the question says about
 * the session, and the guard that is sent along. With the guard the server refuses if the process
 * number belongs to another session by now.
 */
#include <string.h>

#include "model/base/text.h"
#include "ui/act/act_parts.h"
#include "ui/console/app.h"
#include "ui/term/fmt.h"

static const struct health_session *
session_of(const struct app *a, const struct health *h)
{
    struct target t = app_target(a);

    for (int i = 0; t.kind == TARGET_SESSION && i < h->nsessions; i++)
        if (!strcmp(h->sessions[i].id, t.name))
            return &h->sessions[i];
    return NULL;
}

const char *
no_signal(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);
    struct health h = store_health(a->store);
    const struct health_session *s = session_of(a, &h);

    if (why)
        return why;
    if (!s)
        return app_no_row(a);
    if (*s->deny)
        return s->deny;
    if (!health_is_signalled(s))
        return "it has no process of the server";
    if (act == ACT_BACKEND_CANCEL && strcmp(s->state, "active") != 0)
        return "it runs no statement now: K ends the session";
    return NULL;
}

static void
say_what_it_holds(struct buf *out, const struct health *h, const struct health_session *s)
{
    const char *sign = "\nothers wait for its locks: pid ";

    if (s->held != FIELD_NULL)
        buf_printf(out, "\nholds back vacuum by %s, up to %s", fmt_plural(s->held, "transaction").s,
                   fmt_plural(health_held_rows(h), "dead row").s);
    for (int i = 0; i < h->nsessions; i++)
        if (health_waits_for(&h->sessions[i], s->pid)) {
            buf_printf(out, "%s%d", sign, h->sessions[i].pid);
            sign = ", ";
        }
    if (health_waits(s)) {
        buf_str(out, "\nwaits itself for ");
        health_say_blockers(out, s);
    }
}

static void
say_warnings(struct buf *out, const struct health_session *s)
{
    if (s->wraparound == 1)
        buf_str(out, "\n! A vacuum that keeps transaction ids from running out: it begins anew at "
                     "once, and every end of it brings the halt of this server nearer.");
    else if (!strcmp(s->kind, "autovacuum"))
        buf_str(out, "\n! An autovacuum: it begins anew at the next round.");
    else if (!strcmp(s->kind, "walsender"))
        buf_str(out, "\n! Replication: a standby or a reader of changes hangs on it, and connects "
                     "again.");
    else if (!strcmp(s->kind, "background"))
        buf_str(out, "\n! A process of the server, not a client.");
    else if (!strncmp(s->app, "queuetop", 8))
        buf_str(out, "\n! A connection of queuetop: a worker, a scheduler or a console that "
                     "connects again.");
}

static void
say_who(struct buf *out, const struct app *a, const struct health *h,
        const struct health_session *s)
{
    buf_printf(out, "pid %d, user ", s->pid);
    text_clean(out, s->user, strlen(s->user), TEXT_LINE, 30);
    buf_str(out, ", app ");
    text_clean(out, s->app, strlen(s->app), TEXT_LINE, 40);
    buf_printf(out, ", from %s\n%s for %s", s->client, s->state,
               fmt_age(s->since_ms == FIELD_NULL ? FIELD_NULL : a->now_ms - s->since_ms).s);
    if (s->xact_ms != FIELD_NULL)
        buf_printf(out, ", its transaction open for %s", fmt_age(a->now_ms - s->xact_ms).s);
    say_warnings(out, s); /* before the lines that a small screen may cut off */
    say_what_it_holds(out, h, s);
    buf_str(out, strcmp(s->state, "active") ? "\nlast: " : "\nruns: ");
    struct buf line = {0};
    health_one_line(&line, s->query);
    if (line.len)
        text_clean(out, line.data, line.len, TEXT_LINE, 160);
    buf_free(&line);
}

void
on_signal(struct app *a, int act)
{
    struct health h = store_health(a->store);
    const struct health_session *s = session_of(a, &h);
    struct buf about = {0}, request = {0};

    if (!s)
        return;
    say_who(&about, a, &h, s);
    buf_printf(&request,
               "{\"act\": \"%s\", \"who\": ", act == ACT_BACKEND_END ? "terminate" : "cancel");
    json_string(&request, about.data, about.len);
    buf_printf(&request, ", \"shown\": %s}", s->guard);
    act_ask(a, &(struct intent){.act = (enum act)act,
                                .pid = fmt_int(s->pid).s,
                                .settings = request.data,
                                .about = about.data,
                                .typed = strcmp(s->kind, "session") != 0,
                                .expected = -1});
    buf_free(&about);
    buf_free(&request);
}
