/* The console as one value: its sources, the stack of views, the messages to the user, the running
 * action. Everything goes one way: event -> command -> state -> frame. Nothing in here waits. */
#ifndef UI_CONSOLE_APP_H
#define UI_CONSOLE_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "model/action/action.h"
#include "model/base/loop.h"
#include "model/source/sources.h"
#include "ui/console/alerts.h"
#include "ui/console/complete.h"
#include "ui/console/trail.h"
#include "ui/console/view.h"
#include "ui/term/grid.h"
#include "ui/term/term.h"
#include "ui/widget/editor.h"
#include "ui/widget/prompt.h"

enum {
    APP_DEPTH = 12,
    APP_BOXES = 6,
    APP_SCREENS = 10,
    APP_MESSAGES = 200,
    APP_FRAME_MS = 16,
    APP_GATHER_MS = 40,
    APP_TICK_MS = 1100
};

enum severity { SAY_INFO, SAY_GOOD, SAY_WARN, SAY_BAD };

struct message {
    char *number; /* identity in the list of messages */
    int64_t at_ms;
    enum severity severity;
    const char *word; /* of the severity */
    char *text;
};

struct messages { /* newest last; the oldest fall out */
    struct message items[APP_MESSAGES];
    int n;
    int64_t count; /* ever */
};

struct lookup;
struct settings;

struct desk { /* the screens of one source: filters, order and cursors stay with it */
    struct view *screens[APP_SCREENS]; /* by digit, made when first shown */
    bool password_refused;             /* the user closed the password's box */
    bool asked_trust;                  /* whether its owner is trusted was asked */
    bool warned;                       /* what its source has to warn of was said */
    int moves;                         /* of its server, seen last */
    int recovery;                      /* of its server, seen last: 1 no, 2 yes, 0 unknown */
};

struct app_boxes { /* the boxes that the console itself opens; ui/box/box.h has them */
    void (*palette)(struct app *a), (*filter)(struct app *a), (*actions)(struct app *a);
    void (*sort)(struct app *a), (*columns)(struct app *a), (*sql)(struct app *a);
    void (*sources)(struct app *a), (*progress)(struct app *a);
    void (*password)(struct app *a, int source);
    void (*password_settle)(struct app *a);
    void (*trust)(struct app *a, int source);
    void (*prose)(struct app *a, const char *title, const char *text);
    const struct view_ops *quit;
};

struct app_options {
    const struct app_boxes *boxes;
    bool clipboard;  /* y may write OSC 52 */
    bool production; /* red header, and every action is typed */
    bool closed;     /* the configuration can't be read: what protects is on */
    bool utc;
    struct settings *settings; /* borrowed; NULL = nothing is remembered */
    const char *at;            /* --at: the time of a recording to begin with, or NULL */
};

struct app {
    struct loop *loop;
    struct term *term;
    struct grid *grid;
    struct arena *frame; /* scratch, reset at the start of each frame */
    struct sources *sources;
    int at; /* the source on the screen, and what belongs to it: */
    struct source *source;
    struct store *store;
    struct app_options options;

    struct desk desks[SOURCES_MAX];
    struct view *stack[APP_DEPTH]; /* stack[0] is one of the screens */
    int depth;
    struct view *boxes[APP_BOXES]; /* the last one is in front */
    int nboxes;
    short tab_at[APP_SCREENS], tab_w[APP_SCREENS]; /* where the tabs were drawn; w 0 = not */

    struct messages log;
    bool flash; /* the last message still stands on the screen */
    struct line_history filters, words, times;
    struct trail trail;
    struct alerts alerts;
    struct names kinds; /* that passed by, for the filter */

    struct action *action; /* the running one, NULL = none */
    int action_at;         /* its source */
    bool action_ended;     /* its outcome was said */
    bool action_stopping;  /* the user has asked to stop it */
    bool action_shown;     /* its box was opened by itself once */
    int64_t action_started_ms;
    uint64_t action_seen;

    uint64_t seen;  /* generation of the sources that the views have taken */
    int asks_at;    /* the source that knows that it is in front; -1 = none yet */
    bool asks_all;  /* and the others, that their queues are shown */
    int told_of;    /* sources that there were when it was said */
    int64_t now_ms; /* the server's clock, for ages; it stops while frozen */
    int64_t frozen_ms;
    int64_t drawn_ms;      /* monotonic, of the last frame */
    int64_t tick_ms;       /* monotonic, of the next frame that comes by itself */
    int64_t wake_ms;       /* monotonic, of one that a view has asked for; 0 = none */
    int64_t stale_ms;      /* monotonic, since when a frame is due; 0 = none is */
    int frames;            /* drawn so far */
    bool ticked;           /* the coming frame is the tick's */
    int timer;             /* for it, 0 = none */
    int tty;               /* handle of the terminal in the loop */
    bool clock_stands;     /* QUEUETOP_NOW: nothing on the screen may depend on time */
    bool stale;            /* something has changed since the last frame */
    bool keyed;            /* and a key was part of it: the frame does not wait */
    bool away;             /* the terminal is lent to an editor */
    struct lookup *lookup; /* asked for a form that is to come; NULL = none was */
    char looked_up[256];   /* about this */
    struct editor *editor; /* that runs then */
    editor_fn *edited;     /* told of its end */
    void *edited_ctx;
    bool unsent;         /* the terminal has not taken the last frame yet */
    bool record_begun;   /* what there is to say of a recording at the start was said */
    bool record_ended;   /* that it had to end too */
    bool quit_when_done; /* leave when the running action has stopped */
    bool quit;
    int signo; /* that ended us */
};

struct app *app_new(struct loop *l, struct term *t, struct sources *ss,
                    const struct app_options *o);
void app_free(struct app *a);

/* --- events (ui/console/app.c) ----------------------------------------------------------------------- */
void app_key(struct app *a, const struct key *k);
void app_stale(struct app *a);               /* a frame is due */
void app_wake(struct app *a, int64_t at_ms); /* a frame is due then (monotonic) */
void app_compose(struct app *a); /* composes the frame into a->grid (ui/console/frame.c) */

/* --- where we are ----------------------------------------------------------------------------- */
struct view *app_view(const struct app *a);  /* the screen in front, never a box */
struct view *app_front(const struct app *a); /* the box in front, else the screen */
unsigned app_scope(const struct app *a);
/* A screen by its name clears the stack; a page or box is put in front. arg is the view's own. */
void app_open(struct app *a, const char *name, const char *arg);
/* A screen's view in front of where we are, so that Esc comes back ("jobs" of a queue). */
void app_push(struct app *a, const char *name, const char *arg);
/* The jobs that a filter finds; says so where the queue system can't filter so. */
void app_push_jobs(struct app *a, const char *filter);
void app_back(struct app *a); /* one view off the stack */
/* A box in front of all; it owns itself until app_close_box, which also closes those before it. */
struct view *app_box(struct app *a, const struct view_ops *ops, const char *arg);
void app_close_box(struct app *a, struct view *box);
void app_drop_boxes(struct app *a);
void app_drop_views(struct app *a); /* all of them, at the end */
/* Another source, on the same screen. False: it was said why not. */
bool app_switch(struct app *a, int source);
void app_run(struct app *a, const struct command *c);
/* Why the command can't run now; NULL = it can. */
const char *app_why_not(const struct app *a, const struct command *c);

/* --- several sources (ui/console/app_sources.c) ------------------------------------------------------- */
void app_attend(struct app *a); /* somebody types: servers that are away are tried now */
void
app_watch_sources(struct app *a); /* each turn: who is asked, who is new, who wants a password */
/* " of shop:river" where there are several, for messages; else "". Valid until the next frame. */
const char *app_of_source(const struct app *a, int source);

/* Why a screen has nothing to show of a topic, as a sentence; NULL = it has. In the frame's memory.
 */
const char *app_unavailable(const struct app *a, enum topic t);
bool app_is_foreign(const struct app *a); /* another system's queue, not our own */
/* False: a term that the queue system can't filter its jobs by. */
bool app_takes_filter(const struct app *a, const char *text, struct filter_mark *mark,
                      struct err *e);
/* For the header, the line above the footer: "2 unreachable" (false = none), which source this is,
 * what stands between the user and the whole truth (NULL = nothing). */
bool app_say_lost(const struct app *a, struct buf *out);
void app_say_place(const struct app *a, struct buf *out);
const char *app_to_know(const struct app *a);
/* `what` ("no job yet"), and that there may be some which row security hides from this login. */
const char *app_none(const struct app *a, const char *what);
/* Why nothing is selected: there is nothing, or nothing has come yet. */
const char *app_no_row(const struct app *a);
void app_overview(struct app *a); /* the screen of all sources */

/* --- saying ----------------------------------------------------------------------------------- */
void app_say(struct app *a, enum severity s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- actions (ui/act/act.c) ----------------------------------------------------------------------- */
struct action *app_action_begin(struct app *a, const struct intent *intent); /* NULL: it was said */
void app_action_run(struct app *a, struct action *act, bool force);          /* takes act over */
bool app_action_runs(const struct app *a);
void app_action_update(struct app *a); /* after each turn */
void app_action_stop(struct app *a);

void app_mouse(struct app *a, const struct key *k); /* (ui/console/look.c) */

struct app_text {
    const char *suffix; /* ".json" */
    const char *text;
    size_t len;
};
/* Gives a text to the user's editor, and the terminal with it. When the terminal is back, fn gets
 * the result. false: there is no editor, and the user was told so (ui/console/away.c). */
bool app_edit(struct app *a, const struct app_text *t, editor_fn *fn, void *ctx);

struct rect app_line(const struct app *a); /* the row above the footer */
struct rect app_body(const struct app *a); /* between tabs and that row */

#endif
