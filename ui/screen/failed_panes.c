/*
 * The panes and the box draw one topic of the store. The store asks for this topic only while this
 * screen shows it.
 */
#include "ui/screen/failed_panes.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/facts/group_say.h"
#include "ui/screen/charts.h"
#include "ui/term/chart.h"
#include "ui/term/plot.h"

enum { WIDE_W = 140, WIDE_H = 38, UPPER_H = 15, LOWER_H = 12, HIGH_H = 50, HIGH_MORE = 6 };
enum {
    BOX_TALL = 15,
    BOX_H = 11,
    BOX_LOW = 8,
    LABEL_W = 8,
    LEFT_W = CHARTS_W + 22,
    NUMBERS_W = 12,
    FACT_LINES = 3
};

/* --- who and what ----------------------------------------------------------------------------- */

#define W(f) offsetof(struct who_line, f)

static void
draw_share(struct grid *g, struct rect r, const void *row, const struct cell_ctx *c)
{
    (void)c;
    chart_bar(g, r, ((const struct who_line *)row)->share);
}

static bool
is_estimate(const void *row)
{
    return ((const struct who_line *)row)->approx == 1;
}

static const struct column_special share_special = {draw_share, NULL, K_CUSTOM, false};
/* clang-format off */
static const struct column who_columns[] = {
    {.name = "what", .title = "WHAT", .help = "Node of the last try, kind, or tries", .kind = K_NOTE,
     .offset = W(what), .min_w = 5, .max_w = 5},
    {.name = "name", .title = "WHICH", .help = "Its name", .kind = K_TEXT, .offset = W(name), .min_w = 12, .max_w = 20},
    {.name = "share", .title = "SHARE", .help = "Its part of the group", .kind = K_CUSTOM, .offset = 0, .min_w = 8,
     .max_w = 19, .keep = 1, .special = &share_special},
    {.name = "n", .title = "JOBS", .help = "Failed jobs with this value", .kind = K_COUNT, .offset = W(n), .min_w = 7, .max_w = 8},
    {0},
};
/* clang-format on */

static const struct list_def list_of_who = {
    .columns = who_columns,
    .row_size = sizeof(struct who_line),
    .id_offset = W(id),
    .approx = is_estimate,
};

void
failed_panes_init(struct failed_panes *p)
{
    p->who = list_new(&list_of_who);
    p->about = xstrdup("");
}

static void
drop_lines(struct failed_panes *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->lines[i].id);
    p->n = 0;
}

void
failed_panes_done(struct failed_panes *p)
{
    list_free(p->who);
    drop_lines(p);
    free(p->lines);
    free(p->about);
}

bool
failed_detail(const struct app *a, const struct group_line *l, struct group_detail *out)
{
    return l && store_group(a->store, l->g.queue, l->g.error_key, out);
}

static void
add_line(struct failed_panes *p, const struct group_detail *d, const struct group_row *g,
         const char *what, const struct group_part_row *part)
{
    struct who_line *to = &p->lines[p->n++];
    int64_t looked = group_looked_at(d);
    bool gave_up = !strcmp(what, "tries") && part->place == 1;

    *to =
        (struct who_line){.what = what, .share = looked > 0 ? (double)part->n / (double)looked : 0};
    to->n = group_scaled(d, g, part->n, &to->approx);
    to->id =
        xasprintf("%s:%s%s", what, *part->name ? part->name : "none", gave_up ? " (no retry)" : "");
    to->name = to->id + strlen(what) + 1;
}

void
failed_panes_update(struct failed_panes *p, struct app *a, const struct group_line *l)
{
    static const char *const sorts[] = {"node", "kind", "tries"};
    struct group_detail d;

    if (strcmp(p->about, l ? l->id : "") != 0) {
        free(p->about);
        p->about = xstrdup(l ? l->id : "");
        p->sample = 0;
    }
    drop_lines(p);
    if (failed_detail(a, l, &d)) {
        p->lines = xreallocarray(p->lines, (size_t)d.nparts + 1, sizeof *p->lines);
        for (int s = 0; s < 3; s++)
            for (int i = 0; i < d.nparts; i++)
                if (!strcmp(d.parts[i].what, sorts[s]) && (*d.parts[i].name || d.parts[i].of > 1))
                    add_line(p, &d, &l->g, sorts[s], &d.parts[i]);
        p->sample = p->sample < d.nsamples ? p->sample : 0;
    }
    list_set_rows(p->who, p->lines, p->n);
}

void
failed_panes_step(struct failed_panes *p, struct app *a, const struct group_line *l, int dir)
{
    struct group_detail d;

    if (failed_detail(a, l, &d) && d.nsamples > 0)
        p->sample = (p->sample + dir + d.nsamples) % d.nsamples;
}

/* --- where there is room ---------------------------------------------------------------------- */

static bool
has_detail(const struct app *a, const struct failed_table *t)
{
    return t->by == BY_ERROR && !store_topic(a->store, TOPIC_GROUP)->unavailable;
}

static bool
is_wide(struct rect r)
{
    return r.w >= WIDE_W && r.h >= WIDE_H;
}

static struct rect
below_heading(const struct app *a)
{
    struct rect r = app_body(a);

    rect_cut_top(&r, 1);
    return r;
}

const char *
failed_sample(const struct failed_panes *p, const struct app *a, const struct failed_table *t)
{
    const struct group_line *l = failed_selected(t);
    struct group_detail d;

    if (l && has_detail(a, t) && failed_detail(a, l, &d) && p->sample < d.nsamples)
        return d.samples[p->sample].id;
    return l ? l->g.sample_id : NULL;
}

bool
failed_panes_are_shown(const struct app *a, const struct failed_table *t)
{
    return has_detail(a, t) && is_wide(below_heading(a)) && list_count(t->list) > 0;
}

struct rect
failed_panes_cut(const struct app *a, const struct failed_table *t, struct rect *r)
{
    int h = r->h >= 29 ? BOX_TALL : r->h >= 18 ? BOX_H : r->h >= 13 ? BOX_LOW : 0;

    if (failed_panes_are_shown(a, t))
        h = UPPER_H + LOWER_H + (r->h >= HIGH_H ? HIGH_MORE : 0);
    return rect_cut_bottom(r, list_count(t->list) > 0 ? h : 0);
}

void
failed_panes_ask(struct app *a, const struct failed_table *t)
{
    struct rect r = below_heading(a);
    const struct group_line *l = failed_selected(t);
    bool asks = has_detail(a, t) && l && failed_panes_cut(a, t, &r).h > 0 &&
                strcmp(l->g.error_key, "*") != 0;

    if (asks)
        store_ask_group(a->store, l->g.queue, l->g.error_key, span_step_ms(a->span));
    store_want(a->store, TOPIC_GROUP, asks);
}

static const char *
why_none(const struct app *a, const struct group_line *l)
{
    const struct topic_info *t = store_topic(a->store, TOPIC_GROUP);

    if (!strcmp(l->g.error_key, "*"))
        return "these are all the errors beyond the 2,000 most frequent";
    return t->err.kind != ERR_NONE ? t->err.text : "asking ...";
}

/* --- text ------------------------------------------------------------------------------------- */

/* Draws a text in as many rows as it needs; *r becomes the room that is left. */
static void
put_text(struct grid *g, struct rect *r, enum role role, const char *text)
{
    int h = text && *text ? grid_count_lines(text, strlen(text), r->w) : 0;
    struct rect rows = rect_cut_top(r, h);

    if (rows.h > 0)
        grid_lines(g, rows, role, text, strlen(text), &(struct text_area){.wrap = true});
}

/* Draws a name and its text in one row. */
static void
put_fact(struct grid *g, struct rect *r, const char *name, const char *text)
{
    if (!text || !*text || r->h <= 0)
        return;
    struct rect row = rect_cut_top(r, 1);
    grid_str(g, rect_cut_left(&row, LABEL_W), ROLE_DIM, name);
    rect_cut_left(&row, 1);
    grid_str(g, row, ROLE_TEXT, text);
}

static const char *
keep_text(const struct app *a, struct buf *text)
{
    const char *kept = arena_printf(a->frame, "%s", text->len ? text->data : "");

    buf_free(text);
    return kept;
}

static const char *
past_text(const struct app *a, const struct group_detail *d)
{
    struct buf text = {0};

    group_say_past(d, a->now_ms, a->options.utc, &text);
    return keep_text(a, &text);
}

static const char *
took_text(const struct app *a, const struct group_detail *d)
{
    struct buf text = {0};

    group_say_took(d, &text);
    return keep_text(a, &text);
}

static struct requeue
requeue_of(const struct app *a, const struct group_line *l)
{
    return (struct requeue){.g = &l->g,
                            .q = store_queue(a->store, l->g.queue),
                            .ours = !app_is_foreign(a),
                            .now_ms = a->now_ms,
                            .utc = a->options.utc};
}

static const char *
requeue_text(const struct app *a, const struct group_line *l,
             void (*say)(const struct requeue *, struct buf *))
{
    struct requeue r = requeue_of(a, l);
    struct buf text = {0};

    say(&r, &text);
    return keep_text(a, &text);
}

static const char *
nth_number(const struct app *a, const struct number *n, int all)
{
    return all > 1 || n->place > 1 ? arena_printf(a->frame, "N %d was", n->place) : "N was";
}

/* --- when ------------------------------------------------------------------------------------- */

static void
read_steps(const struct group_detail *d, const struct plot_axis *axis, double *out)
{
    const struct group_part_row *cut = group_part(d, "since", "");

    for (int i = 0; i < axis->n; i++) {
        int64_t end = axis->first_ms + (i + 1) * axis->step_ms;
        out[i] = cut && cut->n != FIELD_NULL && end <= cut->n ? (double)NAN : 0;
    }
    for (int i = 0; i < d->nparts; i++) {
        const struct group_part_row *p = &d->parts[i];
        if (strcmp(p->what, "step") != 0 || p->of < axis->first_ms)
            continue;
        int64_t at = (p->of - axis->first_ms) / axis->step_ms;
        if (at < axis->n)
            out[at] = (isnan(out[at]) ? 0 : out[at]) + (double)p->n;
    }
}

/* Draws the numbers of the error beside the columns: which values each number had. */
static void
draw_numbers(const struct app *a, const struct group_line *l, const struct group_detail *d,
             struct rect r)
{
    struct number numbers[NUMBER_PLACES];
    int n = group_numbers(d, numbers);

    for (int i = 0; i < n && r.h > 1 && r.w >= NUMBERS_W; i++) {
        grid_str(a->grid, rect_cut_top(&r, 1), ROLE_DIM, nth_number(a, &numbers[i], n));
        for (int k = 0; k < numbers[i].n && r.h > 0; k++) {
            struct rect row = rect_cut_top(&r, 1);
            int approx;
            int64_t shown = group_scaled(d, &l->g, numbers[i].values[k]->n, &approx);
            struct rect count = rect_cut_right(&row, 7);
            grid_right(a->grid, count, ROLE_TEXT, fmt_about(shown, approx).s);
            row.w--;
            grid_str(a->grid, row, ROLE_TEXT, numbers[i].values[k]->name);
        }
        if (numbers[i].of > numbers[i].n)
            grid_printf(a->grid, rect_cut_top(&r, 1), ROLE_DIM, "%s",
                        fmt_plural(numbers[i].of - numbers[i].n, "other").s);
    }
}

static const char *
chart_title(const struct app *a, const struct group_line *l, int w)
{
    struct buf key = {0};
    const char *rest = arena_printf(a->frame, "   %s of %s", fmt_count(l->g.n).s, l->g.queue);
    int room = w - text_width(rest, strlen(rest), TEXT_LINE);

    text_clean(&key, l->g.error_key, strlen(l->g.error_key), TEXT_LINE, room > 8 ? room : 8);
    const char *title = arena_printf(a->frame, "%s%s", key.len ? key.data : "", rest);
    buf_free(&key);
    return title;
}

static void
draw_when(const struct app *a, const struct group_line *l, struct rect r)
{
    double steps[CHART_STEPS];
    int64_t step = span_step_ms(a->span);
    struct group_detail d;
    bool known = failed_detail(a, l, &d) && d.step_ms == step;
    struct plot_axis axis = {.first_ms = a->now_ms - a->now_ms % step - (CHART_STEPS - 1) * step,
                             .step_ms = step,
                             .n = CHART_STEPS,
                             .now_ms = a->now_ms,
                             .utc = a->options.utc};

    for (int i = 0; i < CHART_STEPS; i++)
        steps[i] = (double)NAN;
    if (known)
        read_steps(&d, &axis, steps);
    const char *corner =
        arena_printf(a->frame, "a column %s  x: %s", fmt_age_short(step).s, span_name(a->span));
    plot_panel(a->grid, r, &axis,
               &(struct plot){.title = chart_title(a, l, r.w - 10 - (int)strlen(corner)),
                              .corner = corner,
                              .role = ROLE_CHART,
                              .area = steps,
                              .none = known ? NULL : why_none(a, l)});
    rect_cut_left(&r, 2 + PLOT_LABEL_W + 1 + CHART_STEPS + 2);
    if (known)
        draw_numbers(a, l, &d, rect_inset(r, 1, 1));
}

/* --- the other panes -------------------------------------------------------------------------- */

static void
draw_who(struct failed_panes *p, const struct app *a, const struct group_line *l, struct rect r,
         const struct list_look *usual)
{
    struct rect in = grid_panel(a->grid, r, p->focus ? "› who and what" : "who and what", p->focus);
    struct list_look look = *usual;
    struct group_detail d;

    if (!failed_detail(a, l, &d)) {
        grid_str(a->grid, in, ROLE_DIM, why_none(a, l));
        return;
    }
    const char *past = past_text(a, &d), *took = took_text(a, &d);
    int facts = (*took != '\0') + 1 + grid_count_lines(past, strlen(past), in.w - LABEL_W - 1);
    int h = p->n + 1 < in.h - facts ? p->n + 1 : in.h - facts;
    look.unfocused = !p->focus;
    list_draw(p->who, a->grid, rect_cut_top(&in, h), &look);
    put_fact(a->grid, &in, "took", took);
    if (*past && in.h > 0) {
        grid_str(a->grid, (struct rect){in.x, in.y, LABEL_W, 1}, ROLE_DIM, "before");
        rect_cut_left(&in, LABEL_W + 1);
        put_text(a->grid, &in, ROLE_TEXT, past);
    }
}

static const char *
sample_title(const struct app *a, const struct group_line *l, const struct group_detail *d, int i)
{
    const struct group_sample_row *s = &d->samples[i];
    const char *which = i == 0
                            ? arena_printf(a->frame, "the newest of %s", fmt_count(l->g.n).s)
                            : arena_printf(a->frame, "newest but %d of %s", i, fmt_count(l->g.n).s);

    return arena_printf(a->frame, "%s: job %s, failed %s%s%s, try %d of %d", which,
                        fmt_id_tail(s->id).s, fmt_when(s->failed_ms, a->now_ms, a->options.utc).s,
                        *s->node ? " on " : "", s->node, s->tries, s->max_tries);
}

/* Draws the error, the trace and the payload. */
static void
draw_sample_text(const struct app *a, const struct group_sample_row *s, struct rect in)
{
    struct rect payload = rect_cut_bottom(&in, *s->payload && in.h > 2 ? 1 : 0);

    put_text(a->grid, &in, ROLE_TEXT, s->error);
    put_text(a->grid, &in, ROLE_DIM, s->trace);
    put_fact(a->grid, &payload, "payload", s->payload);
}

static void
draw_sample(const struct failed_panes *p, const struct app *a, const struct group_line *l,
            struct rect r)
{
    struct group_detail d;
    bool known = failed_detail(a, l, &d) && d.nsamples > 0;
    int i = known && p->sample < d.nsamples ? p->sample : 0;
    struct rect in =
        grid_panel(a->grid, r, known ? sample_title(a, l, &d, i) : "the newest", false);

    if (!known) {
        put_text(a->grid, &in, ROLE_TEXT, l->g.sample);
        return;
    }
    if (d.nsamples > 1)
        grid_printf(a->grid, rect_cut_bottom(&in, 1), ROLE_DIM, "[ ] other samples (%d of %d)",
                    i + 1, d.nsamples);
    draw_sample_text(a, &d.samples[i], in);
}

static void
draw_requeue(const struct app *a, const struct group_line *l, struct rect r)
{
    struct rect in = grid_panel(a->grid, r, "r requeue: what it does", false);
    struct group_detail d;
    struct buf cause = {0};

    put_text(a->grid, &in, ROLE_TEXT, requeue_text(a, l, requeue_say_what));
    put_text(a->grid, &in, ROLE_TEXT, requeue_text(a, l, requeue_say_before));
    put_text(a->grid, &in, ROLE_TEXT, requeue_text(a, l, requeue_say_when));
    rect_cut_top(&in, 1);
    if (failed_detail(a, l, &d)) {
        bool doubt = group_say_cause(&d, &l->g, a->now_ms, a->options.utc, &cause);
        const char *text = keep_text(a, &cause);
        if (*text)
            put_text(a->grid, &in, doubt ? ROLE_WARN : ROLE_TEXT,
                     doubt ? arena_printf(a->frame, "▲ %s", text) : text);
    }
    put_text(a->grid, &in, ROLE_DIM, "X discard: to history, u in Audit brings them back");
    put_text(a->grid, &in, ROLE_DIM, "e edit the payload of one and try it");
}

/* --- one box on a smaller screen -------------------------------------------------------------- */

static const char *
number_text(const struct app *a, const struct group_line *l, const struct group_detail *d)
{
    struct number numbers[NUMBER_PLACES];
    struct buf text = {0};
    int n = group_numbers(d, numbers);

    for (int i = 0; i < n; i++) {
        struct buf one = {0};
        group_say_number(d, &l->g, &numbers[i], &one);
        buf_printf(&text, "%s%s", i ? "; " : "", one.data);
        buf_free(&one);
    }
    return keep_text(a, &text);
}

static const char *
parts_text(const struct app *a, const struct group_line *l, const struct group_detail *d,
           const char *what)
{
    struct buf text = {0};

    group_say_parts(d, &l->g, what, 3, &text);
    return keep_text(a, &text);
}

/* Draws at most `most` facts, one in a row; *in becomes the room that is left. */
static void
draw_facts(const struct app *a, const struct group_line *l, const struct group_detail *d,
           struct rect *in, int most)
{
    const struct {
        const char *name, *text;
    } facts[] = {
        {"N was",       number_text(a, l, d)     },
        {                         "node", parts_text(a,             l, d, "node")},
        {                         "before",  past_text(a,            d) },
        {    "kind",            parts_text(a,                  l,                   d,   "kind")},
        { "tries",            parts_text(a,                 l,                  d,"tries")}
    };

    for (size_t i = 0; i < sizeof facts / sizeof *facts && most > 0; i++) {
        if (!*facts[i].text)
            continue;
        put_fact(a->grid, in, facts[i].name, facts[i].text);
        most--;
    }
}

static void
draw_requeue_lines(const struct app *a, const struct failed_table *t, const struct group_line *l,
                   struct rect in)
{
    if (t->by != BY_ERROR) {
        put_text(a->grid, &in, ROLE_TEXT,
                 arena_printf(a->frame,
                              "grouped by %s: R requeues all that match the filter; m back to "
                              "errors, there r requeues one group",
                              failed_by[t->by]));
        return;
    }
    put_text(a->grid, &in, ROLE_TEXT, requeue_text(a, l, requeue_say_line));
}

static void
draw_box(struct failed_panes *p, const struct app *a, const struct failed_table *t,
         const struct group_line *l, struct rect r)
{
    struct group_detail d;
    bool known = has_detail(a, t) && failed_detail(a, l, &d) && d.nsamples > 0;
    int i = known && p->sample < d.nsamples ? p->sample : 0;
    const char *title = known ? sample_title(a, l, &d, i)
                              : arena_printf(a->frame, "the newest of %s: job %s",
                                             fmt_count(l->g.n).s, fmt_id_tail(l->g.sample_id).s);
    struct rect in = grid_panel(a->grid, r, title, false);
    struct rect requeue = rect_cut_bottom(&in, in.h > 3 ? 2 : 1);

    draw_requeue_lines(a, t, l, requeue);
    if (known) {
        draw_facts(a, l, &d, &in, in.h > FACT_LINES + 1 ? FACT_LINES : 1);
        draw_sample_text(a, &d.samples[i], in);
    } else {
        put_text(a->grid, &in, ROLE_TEXT, l->g.sample);
    }
}

void
failed_panes_draw(struct failed_panes *p, struct app *a, const struct failed_table *t,
                  struct rect r, const struct list_look *look)
{
    const struct group_line *l = failed_selected(t);

    if (!l || r.h < 4)
        return;
    if (!failed_panes_are_shown(a, t)) {
        draw_box(p, a, t, l, r);
        return;
    }
    struct rect upper = rect_cut_top(&r, r.h * UPPER_H / (UPPER_H + LOWER_H));
    int left = r.w * 3 / 5 > LEFT_W ? r.w * 3 / 5 : LEFT_W;
    draw_when(a, l, rect_cut_left(&upper, left));
    draw_who(p, a, l, upper, look);
    draw_sample(p, a, l, rect_cut_left(&r, left));
    draw_requeue(a, l, r);
}
