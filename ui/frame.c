/*
 * One frame: header, tabs and where we are, the view, the line above the footer, the footer, boxes.
 * All arithmetic of the screen stands here; views get a rectangle. A size that is too small for a
 * table still says so in words.
 */
#include <stdio.h>
#include <string.h>

#include "model/clock.h"
#include "ui/app.h"
#include "ui/fmt.h"

enum { MIN_W = 40, MIN_H = 10 };

bool
app_is_small(const struct app *a)
{
    struct rect r = grid_rect(a->grid);

    return r.w < MIN_W || r.h < MIN_H;
}

struct rect
app_body(const struct app *a)
{
    struct rect r = grid_rect(a->grid);

    return (struct rect){0, 2, r.w, r.h - 4};
}

struct rect
app_line(const struct app *a)
{
    struct rect r = grid_rect(a->grid);

    return (struct rect){0, r.h - 2, r.w, 1};
}

/* --- header ------------------------------------------------------------------------------------*/

/* The age of the oldest thing that this screen shows; -1 = nothing was answered yet. */
static int64_t
data_age(const struct app *a)
{
    const struct view *v = app_view(a);
    int64_t age = -1;

    for (int t = 0; t < TOPIC_COUNT; t++) {
        if (!(v->ops->topics & TOPIC_BIT(t)))
            continue;
        int64_t ms = store_age_ms(a->store, (enum topic)t);
        age = ms > age ? ms : age;
    }
    return age >= 0 && a->clock_stands ? 0 : age;
}

static bool
data_is_stale(const struct app *a)
{
    const struct view *v = app_view(a);

    for (int t = 0; t < TOPIC_COUNT; t++)
        if ((v->ops->topics & TOPIC_BIT(t)) && store_is_stale(a->store, (enum topic)t))
            return true;
    return false;
}

static bool
say_connection(const struct app *a, struct buf *out)
{
    const struct db *db = store_db(a->store);
    bool before = store_state(a->store) == STORE_CONNECTING;
    const char *verb = before ? "connecting" : "reconnecting";
    int64_t wait;

    switch (db_state(db)) {
    case DB_OFF:
        if (before && db_last_error(db)->kind == ERR_NONE)
            buf_str(out, "connecting");
        else
            buf_str(out, "refused");
        return true;
    case DB_RESOLVING:
        buf_printf(out, "%s: name look-up", verb);
        return true;
    case DB_CONNECTING:
        buf_str(out, verb);
        return true;
    case DB_BACKOFF:
        wait = db_next_try_ms(db) - clock_ms();
        buf_printf(out, "%s in %.1fs (try %d)", verb, wait > 0 ? (double)wait / 1000 : 0.0,
                   db_tries(db) + 1);
        return true;
    case DB_READY:
    case DB_BUSY:
        break;
    }
    return false;
}

static bool
say_state(const struct app *a, struct buf *out)
{
    bool ascii = grid_ascii(a->grid), bad = true;
    int64_t age = data_age(a);

    if (say_connection(a, out)) {
        if (age >= 0)
            buf_printf(out, "  STALE %s", fmt_duration(age).s);
        return true;
    }
    if (store_state(a->store) != STORE_OPEN) {
        buf_str(out, store_state(a->store) == STORE_MISSING ? "no queue here" : "connecting");
        return false;
    }
    if (store_is_frozen(a->store)) {
        buf_printf(out, "%s frozen", ascii ? "||" : "‖");
        bad = false;
    } else if (data_is_stale(a) && age >= 0) {
        buf_printf(out, "STALE %s", fmt_duration(age).s);
    } else {
        buf_printf(out, "%s live %gs%s", ascii ? "*" : "●", (double)store_interval(a->store) / 1000,
                   store_is_slowed(a->store) ? " slowed" : "");
        bad = false;
    }
    if (age >= 0 && !bad)
        buf_printf(out, "  data %.1fs", (double)age / 1000);
    return bad;
}

static void
say_badges(const struct app *a, struct buf *out)
{
    if (a->action && a->nboxes == 0) {
        struct buf b = {0};
        struct progress p = action_progress(a->action);
        const char *verb = act_infos[action_act(a->action)].name;
        buf_printf(out, "[%s %s]  ", verb,
                   fmt_percent((double)(p.changed + p.skipped), (double)p.total).s);
        buf_free(&b);
    }
    if (store_state(a->store) == STORE_OPEN && source_is_read_only(a->source))
        buf_str(out, "READ-ONLY  ");
}

/* The left parts, most important first: each is drawn only while it leaves room for the right. */
static void
draw_place(struct app *a, struct grid *g, struct rect r, enum role role)
{
    const struct db *db = store_db(a->store);
    const struct server_row *srv = store_server(a->store);
    const struct role_row *rr = store_role(a->store);
    const char *host = db_host(db);
    struct buf part[3] = {{0}, {0}, {0}};
    struct pen p = pen_start(g, r);

    if (*db_name(db))
        buf_printf(&part[0], "%s/%s", *host == '/' || !*host ? "local" : host, db_name(db));
    if (srv)
        buf_printf(&part[1], "pg%.*s", (int)strcspn(srv->server_version, " "), srv->server_version);
    if (srv)
        buf_printf(&part[2], "%s%s%s", srv->user, rr && *rr->role ? ":" : "", rr ? rr->role : "");
    pen_put(&p, role, " queuetop");
    for (int i = 0; i < 3; i++) {
        int w = part[i].len ? text_width(part[i].data, part[i].len, TEXT_LINE) : 0;
        if (w > 0 && w + 2 <= p.r.w) {
            pen_put(&p, role, "  ");
            pen_put(&p, role, part[i].data);
        } else if (w > 0 && i == 0 && p.r.w > 10) {
            pen_put(&p, role, "  ");
            pen_put(&p, role, part[i].data);
        }
        buf_free(&part[i]);
    }
}

static void
draw_header(struct app *a, struct grid *g, struct rect r)
{
    struct buf right = {0};

    say_badges(a, &right);
    bool bad = say_state(a, &right);
    int64_t clock = a->now_ms ? a->now_ms : clock_wall_ms();
    buf_printf(&right, "  %s%s ", fmt_time(clock, a->options.utc).s, a->options.utc ? "Z" : "");
    enum role role = bad || a->options.production ? ROLE_HEADER_PROD : ROLE_HEADER;
    int w = text_width(right.data, right.len, TEXT_LINE);
    w = w < r.w ? w : r.w;
    grid_fill(g, r, role);
    grid_right(g, r, role, right.data);
    r.w -= w + 1;
    draw_place(a, g, r, role);
    buf_free(&right);
}

/* --- tabs --------------------------------------------------------------------------------------*/

static int
tab_width(const struct view_ops *ops)
{
    return (int)strlen(ops->title) + 4;
}

static void
draw_tabs(struct app *a, struct grid *g, struct rect r)
{
    struct buf crumb = {0};
    struct view *v = app_view(a);
    int all = 1;

    if (v->ops->crumb)
        v->ops->crumb(v, &crumb);
    for (int i = 0; view_table[i]; i++)
        if (view_table[i]->screen)
            all += tab_width(view_table[i]);
    int cw = crumb.len ? text_width(crumb.data, crumb.len, TEXT_LINE) + 1 : 0;
    bool fits = all + cw + 1 <= r.w;
    struct pen p = pen_start(g, r);
    pen_gap(&p, 1);
    for (int i = 0; view_table[i]; i++) {
        const struct view_ops *o = view_table[i];
        bool on = o->screen && o->screen == v->ops->tab;
        if (!o->screen || (!fits && !on))
            continue;
        pen_printf(&p, on ? ROLE_TAB_ON : ROLE_TAB, " %d %s ", o->screen, o->title);
    }
    pen_gap(&p, 1);
    if (cw > 0) {
        struct rect rest = p.r;
        rest.w -= 1;
        if (cw - 1 > rest.w)
            grid_str(g, rest, ROLE_CRUMB, crumb.data);
        else
            grid_right(g, rest, ROLE_CRUMB, crumb.data);
    }
    buf_free(&crumb);
}

/* --- the two lines at the bottom
 * -----------------------------------------------------------------*/

static enum role
severity_role(enum severity s)
{
    static const enum role roles[] = {ROLE_TEXT, ROLE_GOOD, ROLE_WARN, ROLE_BAD};

    return roles[s];
}

/* What is wrong with the source, or with the last answer to this screen's questions. */
static const struct err *
trouble_of(const struct app *a)
{
    const struct view *v = app_view(a);
    const struct err *e = store_error(a->store);

    for (int t = 0; t < TOPIC_COUNT && e->kind == ERR_NONE; t++)
        if (v->ops->topics & TOPIC_BIT(t))
            e = &store_topic(a->store, (enum topic)t)->err;
    return e;
}

static void
draw_line(struct app *a, struct grid *g, struct rect r)
{
    struct view *v = app_view(a);
    struct buf text = {0};

    if (a->flash && a->log.n > 0) {
        const struct message *m = &a->log.items[a->log.n - 1];
        struct pen p = pen_start(g, r);
        if (m->severity >= SAY_WARN)
            pen_printf(&p, severity_role(m->severity), "%s: ", m->word);
        pen_put(&p, severity_role(m->severity), m->text);
        return;
    }
    const struct err *e = trouble_of(a);
    if (e->kind != ERR_NONE) {
        grid_str(g, r, ROLE_BAD, e->text);
        return;
    }
    bool bad = v->ops->remark && v->ops->remark(v, &text);
    if (text.len)
        grid_str(g, r, bad ? ROLE_BAD : ROLE_DIM, text.data);
    buf_free(&text);
}

/* Commands of this screen in the order of their place in the footer; those that can't run now stay
 * where they are, greyed. */
static void
draw_keys(struct app *a, struct grid *g, struct rect r)
{
    struct pen p = pen_start(g, r);
    unsigned scope = app_scope(a);

    for (int place = 1; place <= 20; place++) {
        for (int i = 0; i < commands_n; i++) {
            const struct command *c = &commands[i];
            if (c->foot != place || !(c->scope & scope))
                continue;
            struct key_word w = command_key(c);
            if (p.r.w < (int)(strlen(w.s) + strlen(c->name)) + 1)
                return;
            bool off = app_why_not(a, c) != NULL;
            pen_put(&p, off ? ROLE_OFF : ROLE_KEY, w.s);
            pen_printf(&p, off ? ROLE_OFF : ROLE_KEY_HELP, " %s", c->name);
            pen_gap(&p, 2);
        }
    }
}

static void
draw_footer(struct app *a, struct grid *g, struct rect r)
{
    struct view *front = app_front(a);
    struct buf text = {0};

    if (front->ops->footer)
        front->ops->footer(front, &text);
    if (text.len)
        grid_str(g, r, ROLE_KEY_HELP, text.data);
    else
        draw_keys(a, g, r);
    buf_free(&text);
}

/* --- all of it
 * -----------------------------------------------------------------------------------*/

static void
draw_small(struct app *a, struct grid *g)
{
    struct rect r = grid_rect(g);

    grid_printf(g, rect_row(r, 0), ROLE_WARN, "%dx%d needed, have %dx%d", MIN_W, MIN_H, r.w, r.h);
    grid_cursor(g, 0, 0);
    (void)a;
}

void
app_compose(struct app *a)
{
    struct grid *g = a->grid;
    struct rect all = grid_rect(g);

    arena_reset(a->frame);
    grid_clear(g);
    if (app_is_small(a)) {
        draw_small(a, g);
        return;
    }
    draw_header(a, g, rect_row(all, 0));
    draw_tabs(a, g, rect_row(all, 1));
    app_view(a)->ops->draw(app_view(a), g, app_body(a));
    draw_line(a, g, app_line(a));
    for (int i = 0; i < a->nboxes; i++)
        a->boxes[i]->ops->draw(a->boxes[i], g, all);
    draw_footer(a, g, rect_row(all, all.h - 1)); /* after the boxes, which shade what is behind */
}
