/*
 * A form of a few fields that comes before the question: how long to extend, what to purge, which
 * leases to release, what a schedule is. Enter goes on to the preview, Tab and the arrows move,
 * Space changes a choice, F5 opens the editor for a text that may have many lines.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/text.h"
#include "ui/box/box.h"

struct form {
    struct view view;
    const struct form_spec *spec;
    char *subject, *facts;
    struct line lines[FORM_FIELDS];
    char *filled[FORM_FIELDS];  /* the lines as they were at the start */
    bool left_out[FORM_FIELDS]; /* the value does not fit into a line */
    int choice[FORM_FIELDS], chosen[FORM_FIELDS];
    int at, top;
    int64_t stamp;
    char *doc;             /* text of the FIELD_DOC that no line can hold; NULL = the line has
                              the text */
    struct action *action; /* form_ask: the preview of this action is under way */
    uint64_t seen;         /* the generation that was drawn */
    char note[400];
};

enum { ROOMY = 5, LABEL_W = 16, TYPED_CELLS = 40 };

const char *
form_subject(const struct form *f)
{
    return f->subject;
}

const char *
form_text(const struct form *f, int field)
{
    return f->doc && f->spec->fields[field].kind == FIELD_DOC ? f->doc : f->lines[field].text;
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

bool
form_changed(const struct form *f, int field)
{
    return f->choice[field] != f->chosen[field] ||
           strcmp(form_text(f, field), f->filled[field]) != 0;
}

const char *
form_filled(const struct form *f, int field)
{
    return f->filled[field];
}

int64_t
form_stamp(const struct form *f)
{
    return f->stamp;
}

bool
form_left_out(const struct form *f, int field)
{
    return f->left_out[field] && !*f->lines[field].text;
}

static void
form_free(struct view *v)
{
    struct form *f = (struct form *)v;

    for (int i = 0; f->spec && i < f->spec->n; i++) {
        line_done(&f->lines[i]);
        free(f->filled[i]);
    }
    if (f->action)
        action_free(f->action);
    free(f->doc);
    free(f->subject);
    free(f->facts);
}

/* --- the preview ----------------------------------------------------------------------------- */

void
form_ask(struct form *f, const struct intent *intent)
{
    f->action = app_action_begin(f->view.app, intent);
}

/* Shows the error and moves the cursor into the field that it is about. */
static void
form_blame(struct form *f, const char *error)
{
    int i = f->spec->blame ? f->spec->blame(f, error) : -1;

    if (i < 0) {
        text_print(f->note, sizeof f->note, "%s", error);
        return;
    }
    f->at = i;
    struct buf typed = {0};
    text_clean(&typed, f->lines[i].text, strlen(f->lines[i].text), TEXT_LINE, TYPED_CELLS);
    text_print(f->note, sizeof f->note, "%s \"%s\": %s", f->spec->fields[i].label,
               typed.data ? typed.data : "", error);
    buf_free(&typed);
}

static void
form_update(struct view *v)
{
    struct form *f = (struct form *)v;
    struct action *act = f->action;

    if (act && action_generation(act) != f->seen) {
        f->seen = action_generation(act);
        app_stale(v->app); /* draw how far the preview is */
    }
    if (!act || action_state(act) == ACTION_PREVIEWING)
        return;
    f->action = NULL;
    app_stale(v->app);
    if (action_state(act) == ACTION_READY &&
        action_confirm(act, v->app->options.production) == CONFIRM_NOTHING) {
        text_print(f->note, sizeof f->note, "%s", action_what(act));
        action_free(act);
        return;
    }
    if (action_state(act) == ACTION_READY) {
        box_confirm(v->app, act, NULL);
        return;
    }
    form_blame(f,
               action_error(act)->kind != ERR_NONE ? action_error(act)->text : action_summary(act));
    action_free(act);
}

/* --- keys ------------------------------------------------------------------------------------ */

/* Every duration must be valid before the form can go on. */
static bool
form_check(struct form *f)
{
    struct err e = {.kind = ERR_NONE};
    int at = f->at;
    const char *wrong = f->spec->check ? f->spec->check(f->view.app, f, &at) : NULL;
    int64_t ms;

    if (wrong) {
        f->at = at;
        text_print(f->note, sizeof f->note, "%s: %s", f->spec->fields[at].label, wrong);
        return false;
    }

    for (int i = 0; i < f->spec->n; i++) {
        if (f->spec->fields[i].kind != FIELD_TIME)
            continue;
        if (duration_parse(f->lines[i].text, &ms, &e) && ms > 0)
            continue;
        f->at = i;
        text_print(f->note, sizeof f->note, "%s",
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

/* If the field has a value already, the value is selected, so that typing replaces it. */
static void
focus(struct form *f, int field)
{
    f->at = field;
    if (f->spec->fields[field].kind != FIELD_CHOICE && f->spec->fields[field].kind != FIELD_DOC)
        line_select(&f->lines[field]);
}

static void
form_go(struct form *f, int step)
{
    focus(f, (f->at + step + f->spec->n) % f->spec->n);
}

/* In a choice a letter selects the word that begins with this letter. A digit is typed into the
 * next field of text or time. */
static void
type_choice(struct form *f, const struct key *k)
{
    const struct form_field *field = &f->spec->fields[f->at];

    if (!key_is_char(k) || k->code > 0x7e)
        return;
    for (int c = 0; field->choice[c]; c++)
        if (tolower((unsigned char)field->choice[c][0]) == tolower((int)k->code)) {
            f->choice[f->at] = c;
            return;
        }
    for (int i = f->at + 1; i < f->spec->n && isdigit((int)k->code); i++)
        if (f->spec->fields[i].kind == FIELD_TIME || f->spec->fields[i].kind == FIELD_TEXT) {
            focus(f, i);
            line_key(&f->lines[i], k);
            return;
        }
    snprintf(f->note, sizeof f->note, "no choice begins with \"%c\": Space or the arrows change it",
             (int)k->code);
}

/* Takes ownership of text. */
static void
set_doc(struct form *f, int field, char *text)
{
    bool fits = line_fits(text);

    line_set(&f->lines[field], fits ? text : "");
    free(f->doc);
    f->doc = fits ? NULL : text;
    if (fits)
        free(text);
}

/* The editor has ended. A one-line JSON text was split into lines for the editor: if the user
 * changed nothing, the old text is kept. */
static void
doc_came(void *ctx, const char *text, size_t len, const struct err *e)
{
    struct form *f = ctx;
    struct buf was = {0}, is = {0};

    if (!text || strlen(text) != len || !utf8_valid(text, len)) {
        text_print(f->note, sizeof f->note, "%s", text ? "this is no text in UTF-8" : e->text);
        return;
    }
    json_compact(&was, form_text(f, f->at), strlen(form_text(f, f->at)));
    json_compact(&is, text, len);
    len -= len > 0 && text[len - 1] == '\n';
    if (was.len != is.len || (is.len > 0 && memcmp(was.data, is.data, is.len) != 0))
        set_doc(f, f->at, xstrndup(text, len));
    buf_free(&was);
    buf_free(&is);
}

static void
edit_doc(struct form *f)
{
    struct buf b = {0};
    const char *text = form_text(f, f->at);

    buf_str(&b, "");
    if (strchr(text, '\n'))
        buf_str(&b, text);
    else
        json_pretty(&b, text, strlen(text));
    if (b.len > 0 && b.data[b.len - 1] != '\n')
        buf_str(&b, "\n");
    app_edit(f->view.app, &(struct app_text){".json", b.data, b.len}, doc_came, &f->view);
    buf_free(&b);
}

/* A text of many lines can't be edited in the field: F5 opens it, or it is dropped. */
static bool
doc_key(struct form *f, const struct key *k)
{
    if (f->spec->fields[f->at].kind != FIELD_DOC)
        return false;
    if (key_is(k, "F5")) {
        edit_doc(f);
        return true;
    }
    if (!f->doc)
        return false;
    if (key_in(k, "C-u Backspace Del"))
        set_doc(f, f->at, xstrdup(""));
    else
        snprintf(f->note, sizeof f->note, "F5 opens it in the editor, Backspace drops it");
    return true;
}

/* If the line does not take all of a paste, the form says so: what is sent is what the line shows.
 */
static void
type_line(struct form *f, const struct key *k)
{
    bool is_doc = f->spec->fields[f->at].kind == FIELD_DOC;
    struct buf b = {0};

    line_key(&f->lines[f->at], k);
    if (line_say_lost(&f->lines[f->at], &b))
        snprintf(f->note, sizeof f->note, "%s%s", b.data, is_doc ? "; F5: editor" : "");
    buf_free(&b);
}

static bool
form_key(struct view *v, const struct key *k)
{
    struct form *f = (struct form *)v;
    bool choice = f->spec->fields[f->at].kind == FIELD_CHOICE;

    if (f->action && !key_is(k, "Esc"))
        return true;
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
    } else if (choice) {
        type_choice(f, k);
    } else if (!doc_key(f, k)) {
        type_line(f, k);
    }
    return true;
}

/* --- drawing --------------------------------------------------------------------------------- */

/* Cells of all choices side by side; *n = how many. */
static int
choices_width(const struct form_field *field, int *n)
{
    int w = 0;

    for (*n = 0; field->choice[*n]; ++*n)
        w += text_width(field->choice[*n], strlen(field->choice[*n]), TEXT_LINE) + 3;
    return w - 1;
}

/* Draws all choices; if there is no room, the chosen one and its number. */
static void
draw_choice(const struct form *f, struct grid *g, struct rect row, int i)
{
    const struct form_field *field = &f->spec->fields[i];
    struct pen p = pen_start(g, row);
    bool on = f->at == i;
    int n, all = choices_width(field, &n);

    if (all > row.w) {
        pen_printf(&p, on ? ROLE_SELECTED : ROLE_STRONG, "[%s]", field->choice[f->choice[i]]);
        pen_printf(&p, ROLE_DIM, " %d of %d", f->choice[i] + 1, n);
    }
    for (int c = 0; all <= row.w && c < n; c++) {
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
    struct rect box = row = rect_row(row, 0); /* the row below it is blank */

    if (field->kind == FIELD_TIME)
        box.w = box.w < 10 ? box.w : 10;
    grid_fill(g, box, ROLE_INPUT);
    if (f->doc && field->kind == FIELD_DOC) {
        grid_printf(g, box, ROLE_INPUT, "%s in %s", fmt_bytes((int64_t)strlen(f->doc)).s,
                    fmt_plural(grid_count_lines(f->doc, strlen(f->doc), INT_MAX), "line").s);
        if (f->at == i)
            grid_cursor(g, box.x, box.y);
    } else if (f->at == i)
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
    struct rect label = rect_cut_left(&row, LABEL_W);

    if (f->at == i)
        grid_str(g, (struct rect){label.x - 2, label.y, 1, 1}, ROLE_STRONG, "▸");
    grid_str(g, label, f->at == i ? ROLE_STRONG : ROLE_DIM, field->label);
    if (field->kind == FIELD_CHOICE)
        draw_choice(f, g, row, i);
    else
        draw_typed(f, g, row, i);
}

/* Forms of many fields have no blank rows between them, and scroll if there is not enough room. */
static void
draw_fields(struct form *f, struct grid *g, struct rect box, struct rect in)
{
    int step = f->spec->n > ROOMY ? 1 : 2, rows = (in.h + step - 1) / step;

    if (f->at < f->top)
        f->top = f->at;
    if (rows > 0 && f->at >= f->top + rows)
        f->top = f->at - rows + 1;
    if (f->top + rows > f->spec->n)
        f->top = f->spec->n > rows ? f->spec->n - rows : 0;
    for (int i = f->top; i < f->spec->n && in.h > 0; i++)
        draw_field(f, g, rect_cut_top(&in, step), i);
    grid_more(g, box, f->top, f->spec->n - f->top - rows);
}

/* Draws what is wrong. If nothing is wrong, a form of many fields shows the help of the selected
 * field. */
static void
draw_note(const struct form *f, struct grid *g, struct rect r)
{
    const struct form_field *field = &f->spec->fields[f->at];
    struct text_area area = {.wrap = true};
    const char *help = form_left_out(f, f->at)
                           ? "no line can hold it: it stays as it is unless you type here"
                       : f->spec->n > ROOMY || field->kind != FIELD_TIME ? field->help
                                                                         : NULL;

    if (f->action)
        grid_printf(g, r, ROLE_DIM, "%s ...", action_busy(f->action));
    else if (*f->note)
        grid_lines(g, r, ROLE_BAD, f->note, strlen(f->note), &area);
    else if (help)
        grid_lines(g, r, ROLE_DIM, help, strlen(help), &area);
}

static void
form_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct form *f = (struct form *)v;
    bool roomy = f->spec->n <= ROOMY;
    int facts = f->facts ? grid_count_lines(f->facts, strlen(f->facts), 60) + 1 : 0;
    int h = roomy ? f->spec->n * 2 + 4 : f->spec->n + 7;
    struct rect box = box_room(screen, roomy ? 66 : 76, facts + h);
    char title[200];

    text_print(title, sizeof title, "%s%s%s", f->spec->title, *f->subject ? ": " : "", f->subject);
    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER_ASK, title), 2, box.h < 12 ? 0 : 1);
    if (facts)
        grid_lines(g, rect_cut_top(&in, facts), ROLE_DIM, f->facts, strlen(f->facts),
                   &(struct text_area){.wrap = true});
    draw_note(f, g, rect_cut_bottom(&in, roomy ? 1 : in.h > 6 ? 2 : 1));
    draw_fields(f, g, box, in);
}

static void
form_footer(struct view *v, struct buf *out)
{
    struct form *f = (struct form *)v;

    buf_str(out, f->spec->fields[f->at].kind == FIELD_CHOICE
                     ? "Space change   Tab next   Enter preview   Esc cancel (nothing happens)"
                 : f->spec->fields[f->at].kind == FIELD_DOC
                     ? "F5 editor   Enter preview   Tab next   Esc cancel (nothing happens)"
                     : "Enter preview   Tab next   Esc cancel (nothing happens)");
}

static const struct view_ops form_ops = {
    .name = "form-box",
    .size = sizeof(struct form),
    .done = form_free,
    .update = form_update,
    .draw = form_draw,
    .key = form_key,
    .footer = form_footer,
};

static void
fill_field(struct form *f, int i, const char *value)
{
    const struct form_field *field = &f->spec->fields[i];

    bool is_doc = field->kind == FIELD_DOC && value && strcmp(value, "\n") != 0;

    f->left_out[i] = value && !is_doc && !line_fits(value);
    if (is_doc && !line_fits(value))
        f->doc = xstrdup(value);
    if (field->kind == FIELD_CHOICE)
        for (int c = 0; value && field->choice[c]; c++)
            if (!strcmp(field->choice[c], value))
                f->choice[i] = f->chosen[i] = c;
    line_init(&f->lines[i], NULL,
              field->kind == FIELD_CHOICE || !value || !line_fits(value) ? "" : value);
    f->filled[i] = xstrdup(form_text(f, i));
}

static struct form *
form_new(struct app *a, const struct form_spec *spec, const char *subject)
{
    struct form *f = (struct form *)app_box(a, &form_ops, NULL);

    f->spec = spec;
    f->subject = xstrdup(subject);
    return f;
}

void
box_form(struct app *a, const struct form_spec *spec, const char *subject, const char *facts)
{
    struct form *f = form_new(a, spec, subject);

    f->facts = facts && *facts ? xstrdup(facts) : NULL;
    for (int i = 0; i < spec->n; i++)
        fill_field(f, i, spec->fields[i].value);
    focus(f, 0);
}

void
box_form_with(struct app *a, const struct form_spec *spec, const char *subject,
              const char *const *values, int64_t stamp)
{
    struct form *f = form_new(a, spec, subject);

    f->stamp = stamp;
    for (int i = 0; i < spec->n; i++)
        fill_field(f, i, values[i]);
    focus(f, 0);
}
