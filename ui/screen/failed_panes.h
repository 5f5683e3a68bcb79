/* What stands below the table of the Failed screen, about the selected group. On a large screen
 * panes: when it failed and what N was, who and what, the newest job, what a requeue does. On a
 * smaller one a box with the same in some lines. */
#ifndef UI_SCREEN_FAILED_PANES_H
#define UI_SCREEN_FAILED_PANES_H

#include "ui/screen/failed_table.h"

struct who_line { /* a node, a kind or the tries of the group */
    char *id;
    const char *what, *name;
    int64_t n;
    double share;
    int approx;
};

struct failed_panes {
    struct list *who;
    struct who_line *lines;
    int n;
    bool focus;  /* the keys go to `who` */
    int sample;  /* which of the newest jobs is shown, from 0 */
    char *about; /* id of the group that `sample` is of */
};

void failed_panes_init(struct failed_panes *p);
void failed_panes_done(struct failed_panes *p);
bool failed_panes_are_shown(const struct app *a, const struct failed_table *t);
/* Asks for the selected group where something of it is drawn; once the frame is on the terminal. */
void failed_panes_ask(struct app *a, const struct failed_table *t);
void failed_panes_update(struct failed_panes *p, struct app *a, const struct group_line *l);
/* Cuts what it needs off the bottom of the body below the heading. */
struct rect failed_panes_cut(const struct app *a, const struct failed_table *t, struct rect *r);
void failed_panes_draw(struct failed_panes *p, struct app *a, const struct failed_table *t,
                       struct rect r, const struct list_look *look);
void failed_panes_step(struct failed_panes *p, struct app *a, const struct group_line *l, int dir);
bool failed_detail(const struct app *a, const struct group_line *l, struct group_detail *out);

#endif
