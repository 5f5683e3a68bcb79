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
#include "ui/console/follow.h"
#include "ui/console/trail.h"
#include "ui/console/tv.h"
#include "ui/console/view.h"
#include "ui/facts/chart_points.h"
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
    APP_TICK_MS = 1100,
    RUNNING_MOST = 40 /* actions of one question */
};

enum severity { SAY_INFO, SAY_GOOD, SAY_WARN, SAY_BAD };

struct message {
    char *number; /* its id in the list of messages */
    int64_t at_ms;
    enum severity severity;
    const char *word; /* the word for the severity */
    char *text;
};

struct lookup;
struct settings;

struct app_boxes { /* the boxes that the console itself opens, see ui/box/box.h */
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
    bool production; /* red header, and every action is confirmed by typing */
    int64_t tv_ms;   /* how long a page of --tv stays (tv.h); 0 = no --tv */
    bool closed;     /* the configuration can't be read: all protections are on */
    /* Called with the name of each database as soon as it is known, before anything can be changed
     * there: what the configuration protects is switched on. */
    void (*protect)(struct app *a, void *ctx, const char *database);
    void *protect_ctx;
    bool utc;
    struct settings *settings; /* borrowed; NULL = nothing is remembered */
    const char *at;            /* --at: the time of a recording to begin with, or NULL */
    const char *alert_program; /* alert_hook.h; NULL = none */
    int64_t alert_after_ms;
};

/* --- the parts of the console's state, each changed only by the file that its comment names --------- */

struct messages { /* app.c (app_say): newest last; the oldest fall out */
    struct message items[APP_MESSAGES];
    int n;
    int64_t count; /* ever */
    bool fresh;    /* no key was typed since the last one: the footer shows it */
};

struct frame_clock {  /* app.c: when the next frame is drawn; times are monotonic */
    int64_t drawn_ms; /* when the last frame was drawn */
    int64_t tick_ms;  /* when the next frame is due without a cause */
    int64_t wake_ms;  /* when a view wants a frame (app_wake); 0 = not */
    int64_t stale_ms; /* since when a frame is due; 0 = no frame is due */
    int frames;       /* number of frames drawn */
    int timer;        /* handle of the timer in the loop, 0 = none */
    bool ticked;      /* the tick causes the coming frame */
    bool stale;       /* something has changed since the last frame (app_stale) */
    bool keyed;       /* a key was part of the change: the frame does not wait */
    bool unsent;      /* the terminal has not taken the whole last frame yet */
    bool blind;       /* the terminal has taken no frame since the screen was too small for one */
    bool stands;      /* QUEUETOP_NOW is set: the screen does not depend on time */
};

struct leaving { /* app.c (app_quit) */
    bool now;
    bool after_action; /* when the running action has stopped */
    int signo;         /* the signal that ends the program, 0 = none */
};

struct views { /* app_stack.c */
    /* Of each source by digit, made when first shown: filter, order and cursor stay with it. */
    struct view *screens[SOURCES_MAX][APP_SCREENS];
    struct view *stack[APP_DEPTH]; /* stack[0] is one of the screens */
    int depth;
    struct view *boxes[APP_BOXES]; /* the last one is in front */
    int nboxes;
};

struct source_said {       /* what the user was asked and told about one source */
    bool password_refused; /* the user closed the box that asks for the password */
    bool asked_trust;      /* the user was asked whether its owner is trusted */
    bool warned;           /* its warnings were shown */
    int moves;             /* store_moves() when the user was last told */
    int recovery;          /* is the server a standby, as last seen: 1 no, 2 yes, 0 unknown */
    int64_t slow_ms;       /* when an answer last took long; 0 = never */
};

struct source_watch { /* app_sources.c */
    struct source_said said[SOURCES_MAX];
    int at;      /* the source that knows that it is on the screen; -1 = none yet */
    bool all;    /* the other sources know that their queues are shown */
    int told_of; /* the number of sources, with those left out, when the user was last told */
};

struct tabs { /* frame.c: where the tabs were drawn, for the mouse; w 0 = not drawn */
    short x[APP_SCREENS], w[APP_SCREENS];
};

struct typed { /* for boxes with a line: earlier lines, and names for completion */
    struct line_history filters, words; /* ui/box/box_line.c */
    struct line_history times;          /* replay_keys.c */
    struct names kinds; /* kinds of all jobs seen so far, added by ui/screen/view_jobs.c */
};

struct running {                       /* ui/act/act.c */
    struct action *action;             /* the last one, NULL = none */
    struct canary *canary;             /* a few jobs of a requeue are tried first; NULL = none */
    int source;                        /* the index of the source that the action was begun for */
    struct view *asker;                /* its marks go when all is done well; NULL = none go */
    bool ended;                        /* the user has seen its outcome */
    bool stopping;                     /* the user has asked to stop it */
    bool shown;                        /* its box was opened by itself once */
    int64_t started_ms;                /* monotonic */
    uint64_t seen;                     /* generation of the action that the frame shows */
    struct action *next[RUNNING_MOST]; /* of the same question: each begins when the one before has
                                          ended well */
    int nnext;
};

struct form_lookup {       /* ui/act/act_limits.c: a form is opened when its values have come */
    struct lookup *lookup; /* NULL = none was asked */
    char *about;           /* the queue that the form is for; NULL = none was asked */
};

struct lent { /* away.c: the terminal is lent to an editor */
    bool away;
    struct editor *editor; /* the editor that runs */
    editor_fn *then;       /* gets the edited text; NULL = its view is gone */
    struct view *ctx;
};

struct replayed { /* replay_keys.c: what the user was told so far */
    bool begun;   /* that the recording begins */
    bool ended;   /* that the recording had to end early */
};

/* The first members are for views. A view may read them and must not change them. */
struct app {
    struct source *source; /* on the screen (app_switch, in app_stack.c) */
    struct store *store;   /* its answers */
    int at;                /* its number in sources */
    struct sources *sources;
    int64_t now_ms;      /* the server's clock, for ages; it stops while frozen (app.c) */
    struct arena *frame; /* scratch memory, reset at the start of each frame */
    struct app_options options;

    struct loop *loop;
    struct term *term;
    int tty; /* handle of the terminal in the loop */
    struct grid *grid;
    uint64_t taken; /* the generation of the sources that the views show (app.c) */

    struct messages messages;
    struct frame_clock clock;
    struct leaving leaving;
    struct views views;
    struct source_watch watch;
    struct tabs tabs;
    struct typed typed;
    struct running running;
    struct form_lookup form;
    struct lent lent;
    struct replayed replayed;
    struct trail trail;      /* trail.c */
    struct follow follow;    /* follow.c */
    struct seek seek;        /* seek.c */
    struct alerts alerts;    /* alerts.c */
    struct alert_hook *hook; /* alert_hook.c; NULL = no program is run */
    struct tv tv;            /* tv.c; only with options.tv_ms */
    enum span span;          /* of the charts: ui/screen/charts.c */
};

struct app *app_new(struct loop *l, struct term *t, struct sources *ss,
                    const struct app_options *o);
void app_free(struct app *a);

/* --- events (ui/console/app.c) ----------------------------------------------------------------------- */
void app_key(struct app *a, const struct key *k);
void app_stale(struct app *a); /* a frame is due */
void app_quit(struct app *a);  /* leaves the loop at the end of this turn */
void app_quit_after_action(struct app *a);
/* Lends the terminal to another program, until the terminal is taken back. */
void app_lend_terminal(struct app *a);
void app_take_terminal(struct app *a);
void app_wake(struct app *a, int64_t at_ms); /* a frame is due then (monotonic) */
void app_compose(struct app *a); /* composes the frame into a->grid (ui/console/frame.c) */

/* --- where we are ----------------------------------------------------------------------------- */
struct view *app_view(const struct app *a);    /* the screen in front, never a box */
struct target app_target(const struct app *a); /* what its marked or selected rows are */
struct list *app_list(const struct app *a);    /* the list that gets the keys, NULL = none */
int64_t app_clock_ms(const struct app *a);     /* the server's clock; goes on while frozen */
struct view *app_front(const struct app *a);   /* the box in front; if there is none, the screen */
unsigned app_scope(const struct app *a);
/* Opens a view by its name. A screen clears the stack; a page or box is put in front. The meaning
 * of arg depends on the view. */
void app_open(struct app *a, const char *name, const char *arg);
/* Opens a screen's view in front of the present one, so that Esc comes back ("jobs" of a queue). */
void app_push(struct app *a, const char *name, const char *arg);
/* The screen of a digit, or the list of jobs that this queue system has instead. */
const struct view_ops *app_screen(const struct app *a, int digit);
/* Changes the screen in front to the one that fits the queue system, when the system is known. */
void app_fit_screen(struct app *a);
/* Opens a page in front of its screen, whatever was open before: Esc goes to that screen. */
void app_open_page(struct app *a, const char *screen, const char *page, const char *arg);
/* Opens the jobs that a filter finds. If the queue system lacks such a filter, a message says so.
 */
void app_push_jobs(struct app *a, const char *filter);
void app_back(struct app *a); /* takes one view off the stack */
/* Opens a box in front of all. It is freed by app_close_box, which also closes the boxes in front
 * of it. */
struct view *app_box(struct app *a, const struct view_ops *ops, const char *arg);
void app_close_box(struct app *a, struct view *box);
void app_drop_boxes(struct app *a);
struct view *app_find_box(const struct app *a, const struct view_ops *ops); /* NULL = not open */
struct view *app_below(const struct app *a); /* the view below the one in front, or NULL */
void app_drop_views(struct app *a);          /* all of them, at the end */
/* Shows another source on the same screen. False: a message says why not. */
bool app_switch(struct app *a, int source);
void app_run(struct app *a, const struct command *c);
/* Why the command can't run now; NULL = it can. */
const char *app_why_not(const struct app *a, const struct command *c);

/* --- several sources (ui/console/app_sources.c) ------------------------------------------------------- */
void app_refuse_password(struct app *a, int source); /* the user has closed its box */
void app_ask_again(struct app *a);                   /* for password and trust of this source */
void app_attend(struct app *a); /* somebody types: servers that are away are tried now */
void
app_watch_sources(struct app *a); /* each turn: who is asked, who is new, who wants a password */
void app_say_news(struct app *a); /* after an answer: warnings, a promotion, another server */
/* " of shop:river" for messages if there are several sources, else "". Valid until the next
 * frame. */
const char *app_of_source(const struct app *a, int source);

/* Why this source has no answer to a topic, as a sentence in the frame's memory; NULL = there is an
 * answer. */
const char *app_unavailable(const struct app *a, enum topic t);
bool app_is_foreign(const struct app *a); /* another system's queue, not our own */
/* Whether the queue system can filter by all terms of the text. If not, *mark is the place of the
 * bad term and *e names it. */
bool app_takes_filter(const struct app *a, const char *text, struct filter_mark *mark,
                      struct err *e);
/* Texts of the frame: the number of lost sources ("2 unreachable"; false = none), the source on the
 * screen, and the reason why the user may not see everything (NULL = the user sees everything). */
bool app_say_lost(const struct app *a, struct buf *out);
void app_say_place(const struct app *a, struct buf *out);
const char *app_to_know(const struct app *a);
/* `what` ("no job yet"), with a warning if row security may hide rows from this login. */
const char *app_none(const struct app *a, const char *what);
/* Why no row is selected: there is none, or no answer has come yet. */
const char *app_no_row(const struct app *a);
void app_overview(struct app *a); /* the screen of all sources */

/* --- saying ----------------------------------------------------------------------------------- */
void app_say(struct app *a, enum severity s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- actions (ui/act/act.c) ----------------------------------------------------------------------- */
struct action *app_action_begin(struct app *a, const struct intent *intent); /* NULL: a message
                                                                                says why */
void app_action_run(struct app *a, struct action *act, bool force);          /* takes act over */
void app_canary_run(struct app *a, struct canary *canary);                   /* takes canary over */
/* Takes ownership of the actions and runs them one after the other. If one does not end well, the
 * others do not begin. */
void app_action_run_all(struct app *a, struct action *const *acts, int n);
void app_action_drop(struct app *a);       /* number of actions that have not begun */
bool app_action_runs(const struct app *a); /* true: an action or a canary has not ended */
/* The user marks other rows in the view in front: what runs takes no marks away there. */
void app_action_leave_marks(struct app *a);
void app_action_view_gone(struct app *a, const struct view *v);
void app_action_update(struct app *a); /* after each turn */
void app_action_stop(struct app *a);
void app_action_forget(struct app *a); /* frees the action if it has ended; its box is closed */

void app_mouse(struct app *a, const struct key *k); /* (ui/console/look.c) */

struct app_text {
    const char *suffix; /* ".json" */
    const char *text;
    size_t len;
};
/* Gives a text and the terminal to the user's editor. When the editor has ended, fn gets the
 * result, with the view `ctx`. If this view is freed before, the result is dropped. False: there is
 * no editor, and a message says so (ui/console/away.c). */
bool app_edit(struct app *a, const struct app_text *t, editor_fn *fn, struct view *ctx);
void app_edit_view_gone(struct app *a, const struct view *v);

struct rect app_line(const struct app *a); /* the row above the footer */
struct rect app_body(const struct app *a); /* between tabs and that row */
/* Whether the screen is too small for a view or a box: then the frame says only so. */
bool app_is_small(const struct app *a);

#endif
