/* Boxes in front of a screen: they get every key, and close themselves. */
#ifndef UI_BOX_H
#define UI_BOX_H

#include "model/action.h"
#include "ui/app.h"
#include "ui/fmt.h"
#include "ui/view.h"

/* --- lines being typed (ui/box_line.c) --- */
void box_palette(struct app *a);
void box_filter(struct app *a);

/* --- menus (ui/box_menu.c) --- */
void box_actions(struct app *a); /* what can be done with this row, greyed with the reason */
void box_sort(struct app *a);
void box_columns(struct app *a);

/* --- text that scrolls (ui/box_text.c) --- */
void box_text(struct app *a, const char *title, const char *text);
void box_sql(struct app *a); /* of the view in front */

/* --- a running action, and leaving while it runs (ui/box_progress.c) --- */
extern const struct view_ops quit_ops;
void box_progress(struct app *a);

/* --- the password that the server wants (ui/box_password.c) --- */
void box_password(struct app *a);

/* --- the question before an action (ui/box_confirm.c) --- */
/* Takes act over; job: the full id when it is for one job, else NULL. */
void box_confirm(struct app *a, struct action *act, const char *job);

/* --- a form of a few fields before the question (ui/box_form.c) --- */
enum field_kind { FIELD_TEXT, FIELD_TIME, FIELD_CHOICE };
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
    void (*done)(struct app *a, const struct form *f); /* Enter: makes the intent */
};
enum { FORM_FIELDS = 4 };
/* subject: what it is for (a queue, a node), copied; facts: lines to read first, copied, or NULL.
 */
void box_form(struct app *a, const struct form_spec *spec, const char *subject, const char *facts);
const char *form_subject(const struct form *f);
const char *form_text(const struct form *f, int field);
int form_choice(const struct form *f, int field);
int64_t form_ms(const struct form *f, int field);

/* Room for a box of w x h in the middle of the screen, at most the screen less its edge. */
struct rect box_room(struct rect screen, int w, int h);

#endif
