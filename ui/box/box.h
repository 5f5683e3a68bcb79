/* Boxes in front of a screen: they get every key, and close themselves. */
#ifndef UI_BOX_BOX_H
#define UI_BOX_BOX_H

#include "model/action/action.h"
#include "ui/console/app.h"
#include "ui/console/view.h"
#include "ui/term/fmt.h"

/* What the console opens by itself: for app_options. */
extern const struct app_boxes boxes;

/* --- lines being typed (ui/box/box_palette.c, box_line.c) --- */
void box_palette(struct app *a);
void box_filter(struct app *a);

/* --- menus (ui/box/box_menu.c) --- */
void box_actions(struct app *a); /* the row's actions; impossible ones are grey, with the reason */
void box_sort(struct app *a);
void box_columns(struct app *a);

/* --- text that scrolls (ui/box/box_text.c) --- */
void box_text(struct app *a, const char *title, const char *text);  /* code */
void box_prose(struct app *a, const char *title, const char *text); /* words */
void box_sql(struct app *a);                                        /* of the view in front */

/* --- a running action, and leaving while it runs (ui/box/box_progress.c) --- */
extern const struct view_ops progress_ops, quit_ops;
extern const struct view_ops canary_ops; /* the few jobs that are tried first: box_canary.c */
void box_progress(struct app *a);

/* --- the password that the server wants (ui/box/box_password.c) --- */
void box_password(struct app *a, int source);
void box_password_settle(struct app *a); /* closes the box if the connection is open by now */

/* --- the question before a stranger's queue is opened (ui/box/box_trust.c) --- */
void box_trust(struct app *a, int source);

/* --- the menu of sources (ui/box/box_source.c) --- */
void box_sources(struct app *a);

/* --- the question before an action (ui/box/box_confirm.c) --- */
/* Takes ownership of act. job: the full id if the act is for one job, else NULL. */
void box_confirm(struct app *a, struct action *act, const char *job);

/* --- the question before the same act on several queues, nodes or groups (ui/box/box_many.c) --- */
/* Takes ownership of the actions, at most RUNNING_MOST. noun: what they are for ("queue"); note:
 * the last line of the question, "" = none. */
void box_many(struct app *a, struct action *const *acts, const char *const *names, int n,
              const char *noun, const char *note);

/* --- another payload for a job (ui/box/box_edit.c) --- */
void box_edit(struct app *a, const char *id);

/* --- a form of a few fields before the question (ui/box/box_form.c) --- */
enum field_kind { FIELD_TEXT, FIELD_TIME, FIELD_CHOICE, FIELD_DOC /* one: F5 edits it */ };
struct form_field {
    const char *label;
    enum field_kind kind;
    const char *value;         /* the text at the start; not for FIELD_CHOICE */
    const char *const *choice; /* the words; NULL ends them */
    const char *help;          /* shown dim behind the field */
};
struct form;
struct form_spec {
    const char *title;
    const struct form_field *fields; /* at most FORM_FIELDS */
    int n;
    void (*done)(struct app *a, struct form *f); /* Enter: makes the intent */
    /* Says what is wrong with a field before the server is asked; NULL = nothing is wrong. The
     * member may be NULL: nothing is checked. */
    const char *(*check)(const struct app *a, const struct form *f, int *field);
    /* The field that an error of the server is about; -1 = not known. For form_ask. */
    int (*blame)(const struct form *f, const char *error);
};
enum { FORM_FIELDS = 16 };
/* subject: the name of the queue, node ... that the form is for, copied; facts: lines above the
 * fields, copied, or NULL. */
void box_form(struct app *a, const struct form_spec *spec, const char *subject, const char *facts);
/* The same, filled with a text for each field (for a choice: its word); the texts are copied. A
 * text that does not fit into a line (too long, or with line breaks) is left out: its field is
 * empty and says so, and counts as unchanged until the user edits it. stamp: the version of the
 * values; form_stamp returns it, so that the caller can see whether the values have changed on the
 * server since. */
void box_form_with(struct app *a, const struct form_spec *spec, const char *subject,
                   const char *const *values, int64_t stamp);
int64_t form_stamp(const struct form *f);
bool form_left_out(const struct form *f, int field); /* its text was left out, and nothing was
                                                        typed instead */
const char *form_subject(const struct form *f);
const char *form_text(const struct form *f, int field);
int form_choice(const struct form *f, int field);
int64_t form_ms(const struct form *f, int field);
bool form_changed(const struct form *f, int field); /* the field was changed since the form was
                                                       filled */
const char *form_filled(const struct form *f, int field);
/* Asks for the preview and keeps the form. An error is shown in the form. Otherwise the question
 * opens in front of it, and No leads back to the form. */
void form_ask(struct form *f, const struct intent *intent);

/* The rectangle of a box of w x h in the middle of the screen; a larger box is cut to the screen
 * without its edge. */
struct rect box_room(struct rect screen, int w, int h);

#endif
