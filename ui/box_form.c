/*
 * A form of a few fields that comes before the question: how long to extend, what to purge, which
 * leases to release. Enter goes on to the preview, Tab and the arrows move, Space changes a choice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/clock.h"
#include "ui/box.h"

struct form {
    struct view view;
    const struct form_spec *spec;
    char *subject, *facts;
    struct line lines[FORM_FIELDS];
    int choice[FORM_FIELDS];
    int at;
    char note[160];
};

const char *
form_subject(const struct form *f)
{
    return f->subject;
}

const char *
form_text(const struct form *f, int field)
{
    return f->lines[field].text;
}

int
form_choice(const struct form *f, int field)
{
    return f->choice[field];
}

int64_t
form_ms(const struct form *f, int field)
{
    struct err e = {.kind = ERR_NONE};
    int64_t ms = 0;

    return duration_parse(f->lines[field].text, &ms, &e) ? ms : 0;
}

static void
form_free(struct view *v)
{
    struct form *f = (struct form *)v;

    for (int i = 0; f->spec && i < f->spec->n; i++)
        line_done(&f->lines[i]);
    free(f->subject);
    free(f->facts);
}

/* Every duration must be one before the form can go on. */
static bool
form_check(struct form *f)
{
    struct err e = {.kind = ERR_NONE};
    int64_t ms;

    for (int i = 0; i < f->spec->n; i++) {
        if (f->spec->fields[i].kind != FIELD_TIME)
            continue;
        if (duration_parse(f->lines[i].text, &ms, &e) && ms > 0)
            continue;
        f->at = i;
        snprintf(f->note, sizeof f->note, "%.150s",
                 e.kind != ERR_NONE ? e.text : "a time like 90s, 5m, 2h or 7d");
        return false;
    }
    return true;
}

static void
form_enter(struct form *f)
{
    struct app *a = f->view.app;

    if (!form_check(f))
        return;
    f->spec->done(a, f);
}

static void
form_choose(struct form *f, int step)
{
    const char *const *choice = f->spec->fields[f->at].choice;
    int n = 0;

    while (choice[n])
        n++;
    if (n > 0)
        f->choice[f->at] = (f->choice[f->at] + step + n) % n;
}

static void
form_go(struct form *f, int step)
{
    f->at = (f->at + step + f->spec->n) % f->spec->n;
}

static bool
form_key(struct view *v, const struct key *k)
{
    struct form *f = (struct form *)v;
    bool choice = f->spec->fields[f->at].kind == FIELD_CHOICE;

    f->note[0] = '\0';
    if (key_is(k, "Esc")) {
        app_say(v->app, SAY_INFO, "nothing was changed");
        app_close_box(v->app, v);
    } else if (key_is(k, "Enter")) {
        form_enter(f);
    } else if (key_in(k, "Tab Down")) {
        form_go(f, 1);
    } else if (key_in(k, "S-Tab Up")) {
        form_go(f, -1);
    } else if (choice && key_in(k, "Space Right")) {
        form_choose(f, 1);
    } else if (choice && key_is(k, "Left")) {
        form_choose(f, -1);
    } else if (!choice) {
        line_key(&f->lines[f->at], k);
    }
    return true;
}

static void
draw_choice(const struct form *f, struct grid *g, struct rect row, int i)
{
    const struct form_field *field = &f->spec->fields[i];
    struct pen p = pen_start(g, row);
    bool on = f->at == i;

    for (int c = 0; field->choice[c]; c++) {
        bool chosen = f->choice[i] == c;
        enum role role = !chosen ? ROLE_DIM : on ? ROLE_SELECTED : ROLE_STRONG;
        pen_printf(&p, role, "%s%s%s", chosen ? "[" : " ", field->choice[c], chosen ? "]" : " ");
        pen_gap(&p, 1);
    }
    if (on)
        grid_cursor(g, row.x, row.y);
}

static void
draw_typed(const struct form *f, struct grid *g, struct rect row, int i)
{
    const struct form_field *field = &f->spec->fields[i];
    struct rect box = row;

    if (field->kind == FIELD_TIME)
        box.w = box.w < 10 ? box.w : 10;
    grid_fill(g, box, ROLE_INPUT);
    if (f->at == i)
        line_draw(&f->lines[i], g, box, &(struct line_look){.label = ""});
    else
        grid_str(g, box, ROLE_INPUT, f->lines[i].text);
    if (!field->help || box.w == row.w)
        return;
    row.x += box.w + 2;
    row.w -= box.w + 2;
    grid_str(g, row, ROLE_DIM, field->help);
}

static void
draw_field(const struct form *f, struct grid *g, struct rect row, int i)
{
    const struct form_field *field = &f->spec->fields[i];
    struct rect label = rect_cut_left(&row, 16);

    grid_str(g, label, f->at == i ? ROLE_STRONG : ROLE_DIM, field->label);
    if (field->kind == FIELD_CHOICE)
        draw_choice(f, g, row, i);
    else
        draw_typed(f, g, row, i);
}

static void
form_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct form *f = (struct form *)v;
    int facts = f->facts ? grid_count_lines(f->facts, strlen(f->facts), 60) + 1 : 0;
    struct rect box = box_room(screen, 66, facts + f->spec->n * 2 + 4);
    char title[200];

    snprintf(title, sizeof title, "%s%s%.100s", f->spec->title, *f->subject ? ": " : "",
             f->subject);
    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER_ASK, title), 2, 1);
    if (facts)
        grid_lines(g, rect_cut_top(&in, facts), ROLE_DIM, f->facts, strlen(f->facts),
                   &(struct text_area){.wrap = true});
    for (int i = 0; i < f->spec->n; i++)
        draw_field(f, g, rect_cut_top(&in, i < f->spec->n - 1 ? 2 : 1), i);
    if (*f->note)
        grid_str(g, rect_cut_bottom(&in, 1), ROLE_BAD, f->note);
}

static void
form_footer(struct view *v, struct buf *out)
{
    struct form *f = (struct form *)v;

    buf_str(out, f->spec->fields[f->at].kind == FIELD_CHOICE
                     ? "Space change   Tab next   Enter preview   Esc cancel (nothing happens)"
                     : "Enter preview   Tab next   Esc cancel (nothing happens)");
}

static const struct view_ops form_ops = {
    .name = "form-box",
    .size = sizeof(struct form),
    .done = form_free,
    .draw = form_draw,
    .key = form_key,
    .footer = form_footer,
};

void
box_form(struct app *a, const struct form_spec *spec, const char *subject, const char *facts)
{
    struct form *f = (struct form *)app_box(a, &form_ops, NULL);

    f->spec = spec;
    f->subject = xstrdup(subject);
    f->facts = facts && *facts ? xstrdup(facts) : NULL;
    for (int i = 0; i < spec->n; i++)
        line_init(&f->lines[i], NULL, spec->fields[i].value ? spec->fields[i].value : "");
}
