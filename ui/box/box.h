/* Boxes in front of a screen: they get every key, and close themselves. */
#ifndef UI_BOX_BOX_H
#define UI_BOX_BOX_H

#include "model/action/action.h"
#include "ui/console/app.h"
#include "ui/console/view.h"
#include "ui/term/fmt.h"

/* What the console opens by itself: for app_options. */
extern const struct app_boxes boxes;

/* --- lines being typed (ui/box/box_line.c) --- */
void box_palette(struct app *a);
void box_filter(struct app *a);

/* --- menus (ui/box/box_menu.c) --- */
void box_actions(struct app *a); /* what can be done with this row, greyed with the reason */
void box_sort(struct app *a);
void box_columns(struct app *a);

/* --- text that scrolls (ui/box/box_text.c) --- */
void box_text(struct app *a, const char *title, const char *text);  /* code */
void box_prose(struct app *a, const char *title, const char *text); /* words */
void box_sql(struct app *a);                                        /* of the view in front */

/* --- a running action, and leaving while it runs (ui/box/box_progress.c) --- */
extern const struct view_ops quit_ops;
void box_progress(struct app *a);

/* --- the password that the server wants (ui/box/box_password.c) --- */
void box_password(struct app *a, int source);
void box_password_settle(struct app *a); /* closes it where it is not needed any more */

/* --- the question before a stranger's queue is opened (ui/box/box_trust.c) --- */
void box_trust(struct app *a, int source);

/* --- the menu of sources (ui/box/box_source.c) --- */
void box_sources(struct app *a);

/* --- the question before an action (ui/box/box_confirm.c) --- */
/* Takes act over; job: the full id when it is for one job, else NULL. */
void box_confirm(struct app *a, struct action *act, const char *job);

/* --- another payload for a job (ui/box/box_edit.c) --- */
void box_edit(struct app *a, const char *id);

/* --- a form of a few fields before the question (ui/box/box_form.c) --- */
enum field_kind { FIELD_TEXT, FIELD_TIME, FIELD_CHOICE, FIELD_DOC /* one: F5 opens the editor */ };
struct form_field {
    const char *label;
    enum field_kind kind;
    const char *value;         /* at the start; FIELD_CHOICE: none */
    const char *const *choice; /* ended by NULL */
    const char *help;          /* behind it, in dim */
};
struct form;
struct form_spec {
    const char *title;
    const struct form_field *fields; /* at most FORM_FIELDS */
    int n;
    void (*done)(struct app *a, struct form *f); /* Enter: makes the intent */
    /* What is wrong with a field, before anything is asked; NULL = nothing. Or NULL: no such check.
     */
    const char *(*check)(const struct app *a, const struct form *f, int *field);
    /* The field that an answer of the server speaks of; -1 = can't tell. For form_ask. */
    int (*blame)(const struct form *f, const char *error);
};
enum { FORM_FIELDS = 16 };
/* subject: what it is for (a queue, a node), copied; facts: lines to read first, copied, or NULL.
 */
void box_form(struct app *a, const struct form_spec *spec, const char *subject, const char *facts);
/* The same, filled: a text a field, for choices the word; copied. A text that no line can hold (too
 * long, with line breaks) is left out: its field is empty and says so, and as long as it is not
 * touched it counts as not changed. stamp: kept for form_stamp, to see that what it was filled from
 * is another by now. */
void box_form_with(struct app *a, const struct form_spec *spec, const char *subject,
                   const char *const *values, int64_t stamp);
int64_t form_stamp(const struct form *f);
bool form_left_out(const struct form *f, int field); /* and nothing was typed instead */
const char *form_subject(const struct form *f);
const char *form_text(const struct form *f, int field);
int form_choice(const struct form *f, int field);
int64_t form_ms(const struct form *f, int field);
bool form_changed(const struct form *f, int field); /* since it was filled */
const char *form_filled(const struct form *f, int field);
/* Asks for the preview and keeps the form. An error is shown in the form. Otherwise the question
 * opens in front of it, and No leads back to the form. */
void form_ask(struct form *f, const struct intent *intent);

/* Room for a box of w x h in the middle of the screen, at most the screen less its edge. */
struct rect box_room(struct rect screen, int w, int h);

#endif
