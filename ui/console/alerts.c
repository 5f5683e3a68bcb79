/*
 * Alerts: finds them, draws them, and walks through them. A walk over any number of alerts is one
 * step on the trail: Esc goes back to the place where the walk began.
 */
#include "ui/console/alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/term/fmt.h"

enum { FRESH_MS = 1000, KEY_W = 14, WHERE_W = 14, WIDE_WHERE_W = 24, WIDE_W = 100 };

const struct attention *
app_attention(struct app *a)
{
    struct alerts *l = &a->alerts;
    int64_t age = a->now_ms - l->at_ms;

    if (l->mem && l->store == a->store && l->seen == a->taken && age >= 0 && age < FRESH_MS)
        return &l->now;
    if (!l->mem)
        l->mem = arena_new();
    arena_reset(l->mem);
    l->store = a->store;
    l->seen = a->taken;
    l->at_ms = a->now_ms;
    const struct attention_of of = {a->now_ms, app_is_foreign(a), a->options.utc};
    attention(a->store, &of, l->mem, &l->now);
    l->well_ms = l->now.n > 0 ? 0 : l->well_ms ? l->well_ms : a->now_ms;
    return &l->now;
}

int64_t
alerts_old_ms(const struct app *a)
{
    int64_t age = a->clock.stands ? 0 : store_age_ms(a->store, TOPIC_QUEUES);

    return age >= DATA_OLD_MS ? age : 0;
}

/* "all is well", or when it was. */
static struct fmt
say_well(const struct app *a)
{
    int64_t old = alerts_old_ms(a);
    struct fmt f;

    if (old)
        snprintf(f.s, sizeof f.s, "all was well %.30s ago", fmt_age_short(old).s);
    else
        snprintf(f.s, sizeof f.s, "all is well, as seen since %.18s",
                 fmt_time(a->alerts.well_ms, a->options.utc).s);
    return f;
}

void
alerts_done(struct alerts *l)
{
    if (l->mem)
        arena_free(l->mem);
    free(l->last);
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void
say_shown(struct grid *g, struct rect r, int top, int shown, int total)
{
    char text[64];

    if (shown > 1)
        snprintf(text, sizeof text, " %d to %d of %d ", top + 1, top + shown, total);
    else
        snprintf(text, sizeof text, " %d of %d ", top + shown, total);
    grid_right(g, r, ROLE_DIM, text);
}

static void
draw_rule(struct grid *g, struct rect r, const struct attention *all, int top, int shown, bool on)
{
    int total = all->bad + all->warn;

    grid_rule(g, r, on ? ROLE_STRONG : ROLE_BOX_TITLE, on ? "› needs you" : "needs you");
    rect_cut_right(&r, 2);
    if (total > shown)
        say_shown(g, r, top, shown, total);
}

static void
draw_alert(struct grid *g, struct rect r, const struct alert *alert)
{
    struct sign sign = verdict_sign(alert->verdict);
    struct rect key = rect_cut_right(&r, KEY_W);
    int where_w = r.w >= WIDE_W ? WIDE_WHERE_W : WHERE_W;

    rect_cut_left(&r, 1);
    grid_str(g, rect_cut_left(&r, 2), sign.role, sign.glyph);
    if (alert->is_words) {
        struct pen p = pen_start(g, r);
        pen_put(&p, ROLE_STRONG, alert->where);
        int used = r.w - p.r.w;
        pen_gap(&p, used < where_w ? where_w - used : 1);
        r = p.r;
    } else {
        grid_str(g, rect_cut_left(&r, where_w - 1), ROLE_STRONG, alert->where);
        rect_cut_left(&r, 1);
    }
    r.w -= 1;
    grid_words(g, r, ROLE_TEXT, alert->what);
    struct pen p = pen_start(g, key);
    pen_put(&p, ROLE_DIM, "→ ");
    if (*alert->key)
        pen_printf(&p, ROLE_KEY, "%s ", alert->key);
    pen_put(&p, ROLE_KEY_HELP, alert->act);
}

int
alerts_draw(struct app *a, struct grid *g, struct rect r, int at)
{
    const struct attention *all = app_attention(a);
    struct rect rule = rect_cut_top(&r, 1);
    int shown = all->n < r.h ? all->n : r.h, top = at >= shown ? at - shown + 1 : 0;

    if (all->n == 0 && !store_topic(a->store, TOPIC_QUEUES)->has_data)
        return 0; /* no answer has come yet */
    draw_rule(g, rule, all, top, shown, at >= 0);
    for (int i = 0; i < shown; i++) {
        struct rect row = rect_row(r, i);
        draw_alert(g, row, &all->alerts[top + i]);
        if (top + i != at)
            continue;
        grid_str(g, (struct rect){row.x, row.y, 1, 1}, ROLE_TEXT, "›");
        grid_lay(g, row, GROUND_ROW);
        grid_cursor(g, row.x, row.y);
    }
    if (all->n == 0) {
        rect_cut_left(&r, 3);
        grid_str(g, r, alerts_old_ms(a) ? ROLE_DIM : ROLE_GOOD, say_well(a).s);
    }
    return shown;
}

/* --- walking ---------------------------------------------------------------------------------- */

void
alerts_leave(struct app *a)
{
    a->alerts.walking = false;
}

/* The index of the alert that follows the last one of the walk. */
static int
next_alert(const struct alerts *l)
{
    for (int i = 0; l->last && l->walking && i < l->now.n; i++)
        if (l->now.alerts[i].screen == l->last_screen && !strcmp(l->now.alerts[i].row, l->last) &&
            i >= l->at)
            return (i + 1) % l->now.n;
    return l->walking && l->at + 1 < l->now.n ? l->at : 0;
}

void
alerts_open(struct app *a, int i)
{
    const struct attention *all = app_attention(a);
    struct alerts *l = &a->alerts;
    bool walking = l->walking;
    struct filter_mark mark;
    struct err e = {0};

    if (i < 0 || i >= all->n) { /* no alert is left */
        app_say(a, SAY_INFO, "%s", no_alert(a, 0));
        return;
    }
    const struct alert *to = &all->alerts[i];
    trail_hold(a, walking); /* the whole walk is one place on the trail */
    app_open(a, view_screen(to->screen)->name, NULL);
    trail_hold(a, false);
    struct view *v = app_view(a);
    const char *home = v->ops->home ? v->ops->home : "";
    if (v->ops->set_filter && strcmp(v->ops->filter(v), home) != 0)
        v->ops->set_filter(v, home, &mark, &e);
    free(l->last);
    l->last = xstrdup(to->row);
    l->last_screen = to->screen;
    l->at = i;
    l->walking = true;
    if (*to->row)
        seek_row(a, to->row);
    app_say(a, SAY_INFO, "%d of %d  %s: %s", i + 1, all->bad + all->warn, to->where, to->what);
}

void
on_alert(struct app *a, int arg)
{
    (void)arg;
    alerts_open(a, app_attention(a)->n > 0 ? next_alert(&a->alerts) : -1);
}

const char *
no_alert(const struct app *a, int arg)
{
    (void)arg;
    int64_t old = alerts_old_ms(a);

    if (a->alerts.now.n)
        return NULL;
    return old ? arena_printf(a->frame, "nothing needed attention %s ago; the data are that old",
                              fmt_age_short(old).s)
               : "all is well: nothing needs attention";
}
