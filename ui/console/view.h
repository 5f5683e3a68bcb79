/* A view is a screen or a box in front of it: a record of functions and a struct of its own that
 * begins with struct view. Views draw from the store and know no other view: to go to another
 * one they call app_open with its name. A function that a view lacks is NULL, and the commands that
 * need it say so.
 * Boxes (dialogs, menus, the filter line) are views with `key`: they get every key first. */
#ifndef UI_CONSOLE_VIEW_H
#define UI_CONSOLE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/adapter/filter.h"
#include "model/base/mem.h"
#include "model/store/store.h"
#include "ui/console/command.h"
#include "ui/term/grid.h"
#include "ui/term/key.h"
#include "ui/widget/list.h"

struct app;
struct view;

#define TOPIC_BIT(t) (1U << (unsigned)(t))

enum target_kind {
    TARGET_NONE,
    TARGET_QUEUE,
    TARGET_JOBS,
    TARGET_GROUP,
    TARGET_NODE,
    TARGET_SCHEDULE,
    TARGET_SESSION,
    TARGET_ACTION
};

struct target_group { /* failed jobs with one error */
    const char *queue, *error;
};

/* What an action would act on. Borrowed from the view until the next turn of the loop. */
struct target {
    enum target_kind kind;
    const char *name;       /* for titles: queue, node, job, error; session: its id */
    const char *const *ids; /* TARGET_JOBS: the selected row or the marked ones */
    int nids;
    bool all;                   /* TARGET_JOBS: marked "all that match": use `where`, not ids */
    const struct params *where; /* the terms of the list's filter; NULL = no filter */
    const char *state;          /* the state of the only row, "" = several rows or not known */
    const char *states;         /* TARGET_JOBS: those of several marked rows, "running ready";
                                   NULL = not all are known, or one row */
    const char *queue, *error;  /* TARGET_GROUP: its predicate; TARGET_JOBS: the row's queue */
    int moved, left; /* TARGET_JOBS: marked rows with another state, marked rows that are gone */
    bool paused;     /* TARGET_QUEUE, TARGET_SCHEDULE: all are paused */
    const char *const *names; /* TARGET_QUEUE, TARGET_NODE: the marked ones, or the selected one */
    int nnames;
    const struct target_group *groups; /* TARGET_GROUP: the marked ones */
    int ngroups;                       /* 0 = the group of `queue` and `error` */
    int gone;                          /* TARGET_GROUP: marked groups without failed jobs */
    const char *sample; /* TARGET_GROUP: id of a job of the group; NULL = several groups */
    bool marked; /* TARGET_GROUP: chosen by marks. Then the words of the filter do not limit the
                    act: they only say which rows are shown */
};

enum move {
    MOVE_UP,
    MOVE_DOWN,
    MOVE_PAGE_UP,
    MOVE_PAGE_DOWN,
    MOVE_HALF_UP,
    MOVE_HALF_DOWN,
    MOVE_HOME,
    MOVE_END,
    MOVE_LEFT,
    MOVE_RIGHT
};

enum pane_keys { PANES_NOT_SHOWN, PANES_TABLE, PANES_BESIDE }; /* which part gets the keys */

enum { TOGGLE_WRAP, TOGGLE_GROUP }; /* switches that a view may have */

struct view_ops {
    const char *name;  /* the name for app_open and the palette */
    const char *title; /* the title in the tab */
    const char *opens; /* kind of page that Enter opens; NULL = depends on the pane */
    int screen;        /* the digit of its tab; 0 = a box or a page of a screen */
    int tab;           /* the tab that is lit while the view is in front */
    /* What stands on the screen if the queue system has no rows for the topic `needs`: the list of
     * jobs, with `home` as its filter. */
    const struct view_ops *stands_in;
    enum topic needs;
    const char *home;
    unsigned scope;  /* one bit of enum scope */
    unsigned topics; /* bits of enum topic that it shows: only these are asked */
    size_t size;
    bool fixed_order; /* the server gives the order: no sorting */
    bool all_sources; /* the screen shows the queues of all sources */
    bool page;        /* about one thing, which `subject` names; its lists are panes */
    void (*init)(struct view *, const char *arg);
    void (*done)(struct view *);
    void (*show)(struct view *);   /* the view has come to the front: asks the store for its data */
    void (*hide)(struct view *);   /* another view is in front now: the view's rows may be freed */
    void (*update)(struct view *); /* the store or the running action has changed */
    void (*draw)(struct view *, struct grid *, struct rect);
    void (*drawn)(struct view *); /* the terminal has the frame, and the frame shows the view */
    bool (*key)(struct view *, const struct key *); /* boxes: true = key handled */
    struct list *(*list)(struct view *);
    /* Of the pane that has the keys, if it is not always `list`; NULL = a pane without a list. */
    struct list *(*focus)(struct view *);
    void (*move)(struct view *, enum move); /* pages without a list */
    void (*open)(struct view *);            /* Enter */
    bool (*beside)(struct view *);          /* true = Enter opens a pane beside the list now */
    bool (*back)(struct view *);            /* Esc: true = there was something to clear */
    void (*step)(struct view *, int dir);   /* keys [ and ] */
    void (*target)(struct view *, struct target *);
    void (*crumb)(struct view *, struct buf *);  /* adds the view's steps (crumb.h) */
    void (*footer)(struct view *, struct buf *); /* boxes: the footer's text */
    bool (*remark)(struct view *, struct buf *); /* the line above the footer; true = bad news */
    const char *(*filter)(struct view *);        /* the text of the view's filter */
    bool (*set_filter)(struct view *, const char *, struct filter_mark *, struct err *);
    void (*mark_all)(struct view *); /* keys * and U: all rows that match */
    void (*unmark)(struct view *);
    void (*before_mark)(struct view *);       /* Space: the mark of one row will change */
    void (*sql)(struct view *, struct buf *); /* key v */
    const char *(*subject)(struct view *);    /* of a page: the queue, the node */
    void (*pane)(struct view *, int step);    /* Tab: the next pane; NULL = it has none */
    enum pane_keys (*panes)(struct view *);   /* where keys go, if the panes need a large screen */
    const char *(*copy)(struct view *);       /* key y: the selected id */
    void (*toggle)(struct view *, int what);  /* TOGGLE_... */
};

struct view {
    const struct view_ops *ops;
    struct app *app;
    bool touched; /* a key was typed on it: from then on the cursor follows its row */
};

/* Screens, in the order of their digits, then pages and boxes; ended by NULL (ui/screen/views.c).
 */
extern const struct view_ops *const view_table[];
/* Whether a pane has the keys: then the rows and columns are those of the pane, not of the screen.
 */
bool view_in_pane(struct view *v);
const struct view_ops *view_named(const char *name);
const struct view_ops *view_screen(int digit);

#endif
