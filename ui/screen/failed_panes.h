/* The part below the table of the Failed screen, about the selected group. A large screen has
 * panes: when the jobs failed and which values the number N had; which nodes and kinds; the newest
 * job; what a requeue does. A smaller one has a box with the same in a few lines. */
#ifndef UI_SCREEN_FAILED_PANES_H
#define UI_SCREEN_FAILED_PANES_H

#include "ui/screen/failed_table.h"

struct who_line { /* a node, a kind or a number of tries, with its share of the group */
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
    bool focus;  /* `who` gets the keys */
    int sample;  /* which of the newest jobs is shown, from 0 */
    char *about; /* the group of `sample`, by id */
};

void failed_panes_init(struct failed_panes *p);
void failed_panes_done(struct failed_panes *p);
bool failed_panes_are_shown(const struct app *a, const struct failed_table *t);
/* Asks for the details of the selected group if the screen shows them. Called when the frame is on
 * the terminal. */
void failed_panes_ask(struct app *a, const struct failed_table *t);
void failed_panes_update(struct failed_panes *p, struct app *a, const struct group_line *l);
/* Cuts the room for the panes off the bottom of the body; *r is the body without the heading. */
struct rect failed_panes_cut(const struct app *a, const struct failed_table *t, struct rect *r);
void failed_panes_draw(struct failed_panes *p, struct app *a, const struct failed_table *t,
                       struct rect r, const struct list_look *look);
void failed_panes_step(struct failed_panes *p, struct app *a, const struct group_line *l, int dir);
/* The id of the job of the selected group that is shown: the newest one, or another one after [ or
 * ]. NULL = no group is selected. */
const char *failed_sample(const struct failed_panes *p, const struct app *a,
                          const struct failed_table *t);
bool failed_detail(const struct app *a, const struct group_line *l, struct group_detail *out);

#endif
