/* A view is a screen or a box in front of it: a record of functions and a struct of its own that
 * begins with struct view. Views draw from the store and know no other view: going somewhere is
 * app_open with a name. A function that a view lacks is NULL, and the commands that need it say so.
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

/* What an action would act on. Borrowed from the view until the next turn of the loop. */
struct target {
    enum target_kind kind;
    const char *name;       /* for titles: the queue, the node, the job, the error; session: id */
    const char *const *ids; /* TARGET_JOBS: one row or the marks */
    int nids;
    bool all;                   /* TARGET_JOBS: marked "all that match": `where` counts, not ids */
    const struct params *where; /* what the list's filter says; NULL = this view has none */
    const char *state;          /* of the one row, "" = several or unknown */
    const char *queue, *error;  /* TARGET_GROUP: its predicate; JOBS: queue of the row */
    int moved, left; /* TARGET_JOBS: marked rows that have changed their state, or are gone */
    bool paused;     /* TARGET_QUEUE, TARGET_SCHEDULE: all of them */
    const char *const *names; /* TARGET_QUEUE, TARGET_NODE: the marked ones, or the row's */
    int nnames;
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

enum pane_keys { PANES_NOT_SHOWN, PANES_TABLE, PANES_BESIDE }; /* where the keys go */

enum { TOGGLE_WRAP, TOGGLE_GROUP }; /* view's own switches */

struct view_ops {
    const char *name;  /* for app_open and the palette */
    const char *title; /* in the tab */
    int screen;        /* the digit of its tab; 0 = a box or a page of another screen's */
    int tab;           /* the tab that is lit while it is in front */
    unsigned scope;    /* one bit of enum scope */
    unsigned topics;   /* bits of enum topic that it shows: only these are asked */
    size_t size;
    bool fixed_order; /* the server gives the order: no sorting */
    bool all_sources; /* it shows the queues of all of them */
    bool page;        /* about one thing, which `subject` names; its lists are panes */
    void (*init)(struct view *, const char *arg);
    void (*done)(struct view *);
    void (*show)(struct view *);   /* it is in front now: asks the store for what it needs */
    void (*hide)(struct view *);   /* another view is in front now: its rows may be freed */
    void (*update)(struct view *); /* the store or the running action has changed */
    void (*draw)(struct view *, struct grid *, struct rect);
    void (*drawn)(struct view *);                   /* the frame with it is on the terminal */
    bool (*key)(struct view *, const struct key *); /* boxes: true = done with this key */
    struct list *(*list)(struct view *);
    /* Of the pane that has the keys, if it is not always `list`; NULL = a pane without a list. */
    struct list *(*focus)(struct view *);
    void (*move)(struct view *, enum move); /* pages without a list */
    void (*open)(struct view *);            /* Enter */
    bool (*beside)(struct view *);          /* Enter is for something beside the list now */
    bool (*back)(struct view *);            /* Esc: true = there was something to clear */
    void (*step)(struct view *, int dir);   /* [ and ] */
    void (*target)(struct view *, struct target *);
    void (*crumb)(struct view *, struct buf *);  /* adds its steps (crumb.h) to those below it */
    void (*footer)(struct view *, struct buf *); /* boxes: instead of the commands */
    bool (*remark)(struct view *, struct buf *); /* the line above the footer; true = bad news */
    const char *(*filter)(struct view *);        /* the text of its filter */
    bool (*set_filter)(struct view *, const char *, struct filter_mark *, struct err *);
    void (*mark_all)(struct view *); /* * and U: everything that matches */
    void (*unmark)(struct view *);
    void (*sql)(struct view *, struct buf *); /* v */
    const char *(*subject)(struct view *);    /* of a page: the queue, the node */
    void (*pane)(struct view *, int step);    /* Tab: the next pane; NULL = it has none */
    enum pane_keys (*panes)(struct view *);   /* of a screen that has panes only when it is large */
    const char *(*copy)(struct view *);       /* y: the id of what is selected */
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
/* The list with the keys is a pane: its rows and its columns are not those of the screen. */
bool view_in_pane(struct view *v);
const struct view_ops *view_named(const char *name);
const struct view_ops *view_screen(int digit);

#endif
