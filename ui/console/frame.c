/*
 * Composes one frame: header, tabs with the path, the view, the line above the footer, the footer,
 * boxes. This file does all the arithmetic of the screen; a view gets a rectangle. A screen too
 * small for a table shows a sentence that says so.
 */
#include <stdio.h>
#include <string.h>

#include "model/action/canary.h"
#include "model/base/clock.h"
#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/console/replay_keys.h"
#include "ui/term/fmt.h"

enum { MIN_W = 40, MIN_H = 10, FOLLOW_W = 16, USUAL_MS = 1000 };

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

    int tv = a->options.tv_ms ? tv_height(a) : 0;

    return (struct rect){0, 2 + tv, r.w, r.h - 4 - tv};
}

struct rect
app_line(const struct app *a)
{
    struct rect r = grid_rect(a->grid);

    return (struct rect){0, r.h - 2, r.w, 1};
}

/* --- header ---------------------------------------------------------------------------------- */

/* The age of the oldest data that this screen shows; -1 = no answer has come yet. */
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
    return age >= 0 && a->clock.stands ? 0 : age;
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
            buf_str(out, db_last_error(db)->kind == ERR_AUTH ? "refused: password" : "refused");
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

/* The usual interval is not said; the age of the data only if it is high. */
static void
say_live(const struct app *a, int64_t age, struct buf *out)
{
    double interval = (double)sources_interval(a->sources) / 1000;
    bool ascii = grid_ascii(a->grid);

    if (store_is_slowed(a->store) && age >= DATA_OLD_MS)
        buf_printf(out, "%s data %s old", ascii ? "!" : "▲", fmt_age_short(age).s);
    else if (sources_interval(a->sources) != USUAL_MS)
        buf_printf(out, "%s live, each %gs", ascii ? "*" : "●", interval);
    else
        buf_printf(out, "%s live", ascii ? "*" : "●");
}

static bool
say_state(const struct app *a, struct buf *out)
{
    bool ascii = grid_ascii(a->grid), bad = true;
    int64_t age = data_age(a);

    if (app_view(a)->ops->all_sources && app_say_lost(a, out))
        return true;

    if (app_replays(a)) {
        replay_keys_state(a, out);
        bool old = data_is_stale(a) && age >= 0;
        if (old)
            buf_printf(out, "  STALE %s", fmt_duration(age).s);
        return old;
    }
    if (say_connection(a, out)) {
        if (age >= 0)
            buf_printf(out, "  STALE %s", fmt_duration(age).s);
        return true;
    }
    if (store_state(a->store) != STORE_OPEN) {
        if (store_state(a->store) == STORE_MISSING)
            buf_printf(out, "no queue in %s", db_name(store_db(a->store)));
        else
            buf_str(out, store_state(a->store) == STORE_STRANGE ? "not opened" : "connecting");
        return false;
    }
    if (store_is_frozen(a->store)) {
        buf_printf(out, "%s frozen", ascii ? "||" : "‖");
        bad = false;
    } else if (data_is_stale(a) && age >= 0) {
        buf_printf(out, "STALE %s", fmt_duration(age).s);
    } else {
        say_live(a, age, out);
        bad = false;
    }
    return bad;
}

static void
say_badges(const struct app *a, struct buf *out)
{
    if (a->running.canary && a->views.nboxes == 0) {
        struct canary_verdict v = canary_verdict(a->running.canary);
        bool asks = canary_state(a->running.canary) == CANARY_ASKING;
        int ended = v.by_state[TRIED_DONE] + v.by_state[TRIED_FAILED] + v.by_state[TRIED_NOT_KEPT];
        buf_printf(out, "[requeue %d of %d%s]  ", ended, canary_wanted(a->running.canary),
                   asks ? ", F8 asks" : "");
    } else if (a->running.action && a->views.nboxes == 0) {
        struct progress p = action_progress(a->running.action);
        const char *verb = act_infos[action_act(a->running.action)].name;
        buf_printf(out, "[%s %s]  ", verb,
                   fmt_percent((double)(p.changed + p.skipped), (double)p.total).s);
    }
    replay_keys_badge(a, out);
    if (store_warning(a->store, 0))
        buf_printf(out, "%sWARNING  ", grid_ascii(a->grid) ? "! " : "▲ ");
    if (a->options.production)
        buf_printf(out, "PRODUCTION%s  ", a->options.closed ? "?" : "");
    if (store_state(a->store) == STORE_OPEN && source_is_read_only(a->source) && !app_replays(a)) {
        const struct server_row *server = store_server(a->store);
        buf_str(out, server && server->in_recovery == 1 ? "STANDBY  " : "READ-ONLY  ");
    }
}

/* The parts of the header from left to right. If there is not enough room, the part with the
 * highest `drop` goes first. */
struct frame_part {
    struct buf text;
    int drop;
};
enum {
    PART_NAME,
    PART_PLACE,
    PART_SERVER,
    PART_USER,
    PART_SUPERUSER,
    PART_FOLLOW,
    PART_ALERTS,
    PART_STATE,
    PART_CLOCK,
    PARTS
};

static void
fill_parts(struct app *a, struct frame_part *p, bool *bad)
{
    const struct server_row *srv = store_server(a->store);
    const struct role_row *rr = store_role(a->store);
    const char *z = a->options.utc ? "Z" : "";
    int64_t clock = a->now_ms ? a->now_ms : clock_wall_ms();

    buf_str(&p[PART_NAME].text, "queuetop");
    app_say_place(a, &p[PART_PLACE].text);
    if (srv && !app_view(a)->ops->all_sources) {
        buf_printf(&p[PART_SERVER].text, "pg%.*s", (int)strcspn(srv->server_version, " "),
                   srv->server_version);
        buf_printf(&p[PART_USER].text, "%s%s%s", srv->user, rr && *rr->role ? ":" : "",
                   rr ? rr->role : "");
        if (srv->is_superuser == 1 && !app_replays(a))
            buf_printf(&p[PART_SUPERUSER].text, "%s superuser", grid_ascii(a->grid) ? "!" : "▲");
    }
    if (a->follow.what != FOLLOW_NOTHING) {
        buf_str(&p[PART_FOLLOW].text, "F ");
        text_clean(&p[PART_FOLLOW].text, a->follow.name, strlen(a->follow.name), TEXT_LINE,
                   FOLLOW_W);
    }
    const struct attention *all = app_attention(a);
    if (all->bad)
        buf_printf(&p[PART_ALERTS].text, "%d BAD", all->bad);
    if (all->warn)
        buf_printf(&p[PART_ALERTS].text, "%s%d WARN", all->bad ? " " : "", all->warn);
    say_badges(a, &p[PART_STATE].text);
    *bad = say_state(a, &p[PART_STATE].text);
    buf_printf(&p[PART_CLOCK].text, "%s%s", fmt_time(clock, a->options.utc).s, z);
}

static int
part_width(const struct frame_part *p)
{
    return p->text.len ? text_width(p->text.data, p->text.len, TEXT_LINE) + 2 : 0;
}

static void
drop_parts(struct frame_part *p, int w)
{
    for (int drop = 4; drop > 0; drop--) {
        int all = 0;
        for (int i = 0; i < PARTS; i++)
            all += part_width(&p[i]);
        for (int i = 0; i < PARTS && all > w; i++)
            if (p[i].drop == drop)
                buf_clear(&p[i].text);
    }
}

static void
draw_header(struct app *a, struct grid *g, struct rect r)
{
    struct frame_part p[PARTS] = {[PART_SERVER] = {.drop = 4},
                                  [PART_USER] = {.drop = 3},
                                  [PART_CLOCK] = {.drop = 2},
                                  [PART_SUPERUSER] = {.drop = 1}};
    bool bad = false;
    int right = 1;

    fill_parts(a, p, &bad);
    drop_parts(p, r.w - 2);
    enum role role = bad || a->options.production ? ROLE_HEADER_PROD : ROLE_HEADER;
    grid_fill(g, r, role);
    for (int i = PARTS - 1; i >= PART_FOLLOW; i--) {
        int w = part_width(&p[i]);
        if (w > 0 && w - 2 < r.w - right)
            grid_str(g, (struct rect){r.x + r.w - right - w + 2, r.y, w - 2, 1},
                     i == PART_ALERTS && app_attention(a)->bad ? ROLE_HEADER_PROD : role,
                     p[i].text.data);
        right += w;
    }
    struct pen pen = pen_start(g, (struct rect){r.x + 1, r.y, r.w - right, 1});
    for (int i = 0; i < PART_FOLLOW; i++) {
        if (p[i].text.len)
            pen_printf(&pen, role, "%s  ", p[i].text.data);
    }
    for (int i = 0; i < PARTS; i++)
        buf_free(&p[i].text);
}

/* --- tabs ------------------------------------------------------------------------------------ */

/* Every screen has its tab at any width. If there is too little room, the path behind the tabs is
 * cut first. Then names are left out: first the name of Messages, then the names of all screens but
 * the one in front. The last name is left out only if the tabs alone are too wide. Widths do not
 * depend on marks. */
enum tab_names { TABS_ALL, TABS_FEWER, TABS_FRONT, TABS_DIGITS, TAB_LEVELS };

static bool
has_name(const struct view_ops *o, bool on, enum tab_names names)
{
    if (names == TABS_DIGITS)
        return false;
    return on || names == TABS_ALL || (names == TABS_FEWER && o->screen != 8);
}

/* The width of a tab: " 1 Queues", "[1 Queues]" or " 1", and a cell for its mark. */
static int
tab_width(const struct view_ops *o, bool on, enum tab_names names)
{
    return (has_name(o, on, names) ? (int)strlen(o->title) + 1 : 0) + 3 + on;
}

static int
tabs_width(const struct view *v, enum tab_names names)
{
    int all = 1;

    for (int i = 0; view_table[i]; i++)
        if (view_table[i]->screen)
            all += tab_width(view_table[i], view_table[i]->screen == v->ops->tab, names);
    return all;
}

static void
draw_tab(struct app *a, struct pen *p, const struct view_ops *o, enum tab_names names)
{
    bool on = o->screen == app_view(a)->ops->tab;
    struct sign mark = verdict_sign(app_attention(a)->screens[o->screen]);
    enum role role = on ? ROLE_TAB_ON : ROLE_TAB;

    a->tabs.x[o->screen] = (short)p->r.x;
    a->tabs.w[o->screen] = (short)tab_width(o, on, names);
    pen_printf(p, on ? role : ROLE_TEXT, "%s", on ? "[" : " ");
    pen_printf(p, role, "%d", o->screen);
    if (has_name(o, on, names))
        pen_printf(p, role, " %s", o->title);
    if (mark.glyph)
        pen_put(p, mark.role, mark.glyph);
    if (on)
        pen_put(p, role, "]");
    if (!mark.glyph)
        pen_gap(p, 1);
}

/* Appends the whole path to this screen. */
static void
say_crumb(const struct app *a, struct buf *out)
{
    for (int i = 0; i < a->views.depth; i++)
        if (a->views.stack[i]->ops->crumb)
            a->views.stack[i]->ops->crumb(a->views.stack[i], out);
}

static void
draw_tabs(struct app *a, struct grid *g, struct rect r)
{
    struct buf crumb = {0};
    struct view *v = app_view(a);
    enum tab_names names = TABS_ALL;

    say_crumb(a, &crumb);
    int cw = crumb.len ? text_width(crumb.data, crumb.len, TEXT_LINE) + 2 : 0;
    while (names < TABS_DIGITS && tabs_width(v, names) + (names < TABS_FRONT ? cw : 0) > r.w)
        names++;
    struct pen p = pen_start(g, r);
    memset(a->tabs.w, 0, sizeof a->tabs.w);
    for (int i = 0; view_table[i]; i++)
        if (view_table[i]->screen)
            draw_tab(a, &p, view_table[i], names);
    pen_gap(&p, 1);
    struct rect rest = p.r;
    rest.w -= 1;
    crumb_fit(&crumb, rest.w);
    if (cw > 0 && text_width(crumb.data, crumb.len, TEXT_LINE) > rest.w)
        grid_str(g, rest, ROLE_CRUMB, crumb.data);
    else if (cw > 0)
        grid_right(g, rest, ROLE_CRUMB, crumb.data);
    buf_free(&crumb);
}

/* --- the two lines at the bottom ------------------------------------------------------------- */

static enum role
severity_role(enum severity s)
{
    static const enum role roles[] = {ROLE_TEXT, ROLE_GOOD, ROLE_WARN, ROLE_BAD};

    return roles[s];
}

/* The error of the source, or else of the last answer for this screen; NULL = none. */
static const struct err *
trouble_of(const struct app *a)
{
    const struct view *v = app_view(a);
    const struct err *e = store_error(a->store);

    if (app_replays(a) && replay_state(source_replay(a->source)).err->kind != ERR_NONE)
        e = replay_state(source_replay(a->source)).err;
    for (int t = 0; t < TOPIC_COUNT && e->kind == ERR_NONE; t++)
        if (v->ops->topics & TOPIC_BIT(t))
            e = &store_topic(a->store, (enum topic)t)->err;
    return e;
}

/* For a failed connection: the cause first, then the host or socket, because a narrow line is cut
 * at its end. */
static const char *
reason_of(struct arena *mem, const struct err *e)
{
    static const char where[] = "connection to server ", failed[] = " failed: ";
    bool one = !strncmp(e->text, where, strlen(where)) && !strstr(e->text + 1, where);
    const char *why = one ? strstr(e->text, failed) : NULL, *place = e->text + strlen(where);

    if (!why)
        return e->text;
    return arena_printf(mem, "%s (%.*s)", why + strlen(failed), (int)(why - place), place);
}

static void
draw_line(struct app *a, struct grid *g, struct rect r)
{
    struct view *v = app_view(a);
    struct buf text = {0};

    if (a->messages.fresh && a->messages.n > 0) {
        const struct message *m = &a->messages.items[a->messages.n - 1];
        struct pen p = pen_start(g, r);
        if (m->severity >= SAY_WARN)
            pen_printf(&p, severity_role(m->severity), "%s: ", m->word);
        pen_put(&p, severity_role(m->severity), m->text);
        return;
    }
    const struct err *e = trouble_of(a);
    if (e->kind != ERR_NONE) {
        grid_str(g, r, ROLE_BAD, reason_of(a->frame, e));
        return;
    }
    if (app_replays(a)) {
        replay_keys_draw(a, g, r);
        return;
    }
    bool bad = v->ops->remark && v->ops->remark(v, &text);
    const char *known = app_to_know(a);
    if (known && !bad) {
        grid_words(g, r, ROLE_WARN, known);
        buf_free(&text);
        return;
    }
    if (!bad && a->follow.what != FOLLOW_NOTHING && !follow_is_seen(a)) {
        buf_clear(&text);
        follow_say(a, &text);
    }
    if (text.len)
        grid_words(g, r, bad ? ROLE_BAD : ROLE_DIM, text.data);
    buf_free(&text);
}

enum { FOOT_MAX = 24, FOOT_FIRST = 4, FOOT_STAY = 19 }; /* place of back; quit comes after */

/* The word in the footer. For Enter on a row of the screen's list it is the kind of page that Enter
 * opens: "queue", not "open". Rows of other panes lead elsewhere. */
static const char *
foot_word(const struct app *a, const struct command *c)
{
    struct view *v = app_view(a);

    if (!v->ops->opens || strcmp(c->name, "open") != 0)
        return c->name;
    return v->ops->list && app_list(a) == v->ops->list(v) ? v->ops->opens : c->name;
}

static int
key_width(const struct app *a, const struct command *c)
{
    return (int)(strlen(command_key(c).s) + strlen(foot_word(a, c))) + 3;
}

/* Whether a command is impossible for all rows of the screen. All acts are, while the screen shows
 * a recording or a source that this console may only read. */
static bool
is_never(const struct app *a, const struct command *c)
{
    bool looks_only = app_replays(a) || source_is_read_only(a->source);

    return (c->of_screen || c->foot == FOOT_STAY || (c->risk != SAFE && looks_only)) &&
           app_why_not(a, c) != NULL;
}

/* The main act of the screen: the first of its acts. */
static int
first_act(const struct command *const *keys, int n)
{
    for (int i = 0; i < n; i++)
        if (keys[i]->act)
            return keys[i]->foot;
    return 0;
}

/* Which key is left out next if the footer has not enough room: the one with the highest place.
 * back, quit and the main act of the screen stay longest. Of these back goes first, because
 * everybody knows its key. */
static int
next_to_go(const struct command *const *keys, int n, int act)
{
    int back = -1;

    for (int i = n - 1; i >= 0; i--) {
        if (keys[i]->foot == FOOT_STAY)
            back = i;
        if (keys[i]->foot < FOOT_STAY && (keys[i]->foot != act || !keys[i]->act) &&
            keys[i]->foot > FOOT_FIRST)
            return i;
    }
    return back;
}

/* The commands of this screen, ordered by their place in the footer; back only if there is a place
 * to go back to. */
static int
pick_keys(const struct app *a, int w, const struct command **out)
{
    int n = 0, all = 0;

    for (int place = 1; place <= 20; place++)
        for (int i = 0; command_at(i); i++)
            if (command_at(i)->foot == place && (command_at(i)->scope & app_scope(a)) &&
                n < FOOT_MAX && !is_never(a, command_at(i))) {
                out[n++] = command_at(i);
                all += key_width(a, command_at(i));
            }
    int act = first_act(out, n);
    for (int i; all - 2 > w && (i = next_to_go(out, n, act)) >= 0;) {
        all -= key_width(a, out[i]);
        n--;
        for (int j = i; j < n; j++)
            out[j] = out[j + 1];
    }
    return n;
}

/* If a command is impossible for this row, the footer shows its word in dim and without the key. So
 * the footer offers no useless key, and the words keep their places when the cursor moves. */
static void
draw_keys(struct app *a, struct grid *g, struct rect r)
{
    struct pen p = pen_start(g, r);
    const struct command *keys[FOOT_MAX];
    int n = pick_keys(a, r.w, keys);

    for (int i = 0; i < n; i++) {
        struct key_word key = command_key(keys[i]);
        bool off = app_why_not(a, keys[i]) != NULL;
        if (off)
            pen_gap(&p, (int)strlen(key.s));
        else
            pen_put(&p, ROLE_KEY, key.s);
        pen_printf(&p, off ? ROLE_OFF : ROLE_KEY_HELP, " %s", foot_word(a, keys[i]));
        pen_gap(&p, 2);
    }
}

/* If the footer does not fit, the remarks in brackets at the ends of texts go first, then the gaps
 * between the keys. Words are cut last. */
static void
fit_footer(struct buf *text, int w)
{
    char *in, *out = text->data, *last = strrchr(text->data, '(');

    if (text_width(text->data, text->len, TEXT_LINE) <= w)
        return;
    if (last && last > text->data && text->data[text->len - 1] == ')')
        text->len = (size_t)(last - text->data);
    while (text->len && text->data[text->len - 1] == ' ')
        text->len--;
    text->data[text->len] = 0;
    if (text_width(text->data, text->len, TEXT_LINE) <= w)
        return;
    for (in = text->data; *in; in++)
        if (strncmp(in, "   ", 3) != 0)
            *out++ = *in;
    *out = 0;
    text->len = (size_t)(out - text->data);
}

static void
draw_footer(struct app *a, struct grid *g, struct rect r)
{
    struct view *front = app_front(a);
    struct buf text = {0};

    if (front->ops->footer)
        front->ops->footer(front, &text);
    if (text.len) {
        fit_footer(&text, r.w);
        grid_str(g, r, ROLE_KEY_HELP, text.data);
    } else
        draw_keys(a, g, r);
    buf_free(&text);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void
draw_small(struct app *a, struct grid *g)
{
    struct rect r = grid_rect(g);

    grid_printf(g, rect_row(r, 0), ROLE_WARN, "%dx%d needed, have %dx%d", MIN_W, MIN_H, r.w, r.h);
    grid_cursor(g, 0, 0);
    (void)a;
}

/* No queue system is there, so nothing of this screen is known: says so, with all words, where the
 * lists would be. False = the screen itself is to be drawn. */
static bool
draw_missing(struct app *a, struct grid *g, struct rect r)
{
    const struct view *v = app_view(a);
    const char *text = arena_printf(a->frame, "%s\n\nIt is looked for again every 3 s.",
                                    store_error(a->store)->text);

    if (v->ops->all_sources || !v->ops->topics || app_replays(a) ||
        store_state(a->store) != STORE_MISSING)
        return false;
    for (int t = 0; t < TOPIC_COUNT; t++)
        if ((v->ops->topics & TOPIC_BIT(t)) && store_topic(a->store, (enum topic)t)->has_data)
            return false;
    grid_lines(g, rect_inset(r, 1, 1), ROLE_TEXT, text, strlen(text),
               &(struct text_area){.wrap = true});
    grid_cursor(g, r.x, r.y);
    return true;
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
    if (!draw_missing(a, g, app_body(a)))
        app_view(a)->ops->draw(app_view(a), g, app_body(a));
    if (a->options.tv_ms) {
        tv_draw(a);
        return;
    }
    draw_line(a, g, app_line(a));
    for (int i = 0; i < a->views.nboxes; i++)
        a->views.boxes[i]->ops->draw(a->views.boxes[i], g, all);
    draw_footer(a, g, rect_row(all, all.h - 1)); /* after the boxes, because they shade */
}
