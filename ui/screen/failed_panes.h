/* The part below the table of the Failed screen, about the selected group. A large screen has
 * panes: when the jobs failed and which values the number N had; which nodes and kinds; the newest
 * job; what a requeue does. A smaller one has a box with the same in a few lines. */
#ifndef UI_SCREEN_FAILED_PANES_H
#define UI_SCREEN_FAILED_PANES_H

#include "ui/console/app.h"
#include "ui/facts/verdict.h"

/* The table of the Failed screen: one row for each group of errors, the worst first; below the
 * table the clock times of its sparklines. */

enum group_by { BY_ERROR, BY_KIND, BY_NODE, BY_HOUR, BY_TOTAL };
extern const char *const failed_by[BY_TOTAL];

struct group_line { /* a row of the table */
    struct group_row g;
    char *id; /* queue and error */
    enum fail_trend trend;
    int64_t hour;    /* failed in the last hour; FIELD_NULL = not known */
    int64_t trouble; /* sorts new and rising groups first, then by number of jobs */
};

struct failed_table {
    struct list *list;
    struct group_line *rows;
    int n, all; /* the first n of all rows match the filter's words */
    enum group_by by;
    struct target_group *marked; /* result of failed_marked */
};

void failed_table_init(struct failed_table *t);
void failed_table_done(struct failed_table *t);
/* keep: whether the filter leaves the row. */
void failed_table_update(struct failed_table *t, struct app *a,
                         bool (*keep)(void *ctx, const struct group_row *g), void *ctx);
const struct group_line *failed_selected(const struct failed_table *t); /* or NULL */
/* The row of a group, also if the filter hides the row; NULL = there is none. */
const struct group_line *failed_line(const struct failed_table *t, const struct target_group *g);
/* The groups that an act is for: the marked ones, including those that the filter hides; if none is
 * marked, the selected one. *n = 0: no marked group has failed jobs any more; *gone: how many of
 * the marked groups have none. Valid until the next call. */
const struct target_group *failed_marked(struct failed_table *t, int *n, int *gone);
void failed_table_draw(struct failed_table *t, struct app *a, struct rect r,
                       const struct list_look *look);
/* "× 4,024 failed  + 4,003 in 1 h, last 8s ago   7 errors: 1 new, 1 rising, 5 old". */
void failed_heading(const struct failed_table *t, struct app *a, struct rect r, const char *filter);

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
