/*
 * The commands that look and move, by key and by mouse. Each works on the view in front by its ops,
 * so that no command knows a screen. The no_* functions give the sentence that the user reads if a
 * key can't do anything.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/console/go.h"

enum { WHEEL_ROWS = 3, JOBS_DIGIT = 2, FAILED_DIGIT = 3, NODES_DIGIT = 4 };
enum { BOX_PALETTE, BOX_FILTER, BOX_HELP, BOX_ACTIONS, BOX_SQL, BOX_SORT, BOX_COLUMNS };

/* --- going ----------------------------------------------------------------------------------- */

/* From a page about a queue or a node, a digit opens the jobs, errors or nodes of that queue or
 * node. False: the other screen can't be limited to it. Groups of errors have no node: the failed
 * jobs of a node are listed in Jobs. */
static bool
keep_subject(struct app *a, int digit)
{
    struct view *v = app_view(a);
    bool queue = v->ops->scope == IN_QUEUES, fails = digit == FAILED_DIGIT && !queue;
    const char *home = fails ? "state:failed" : app_screen(a, digit)->home;

    if (!v->ops->page ||
        (digit != JOBS_DIGIT && digit != FAILED_DIGIT && (!queue || digit != NODES_DIGIT)))
        return false;
    char *name = xstrdup(v->ops->subject(v));
    char *filter = filter_with(home ? home : "", queue ? "queue" : "node", name);
    if (digit == JOBS_DIGIT || home)
        app_push_jobs(a, filter);
    else
        app_push(a, view_screen(digit)->name, digit == FAILED_DIGIT ? filter : name);
    free(filter);
    free(name);
    return true;
}

static void
on_screen(struct app *a, int digit)
{
    const struct view_ops *ops = view_screen(digit);

    if (ops && !keep_subject(a, digit))
        app_open(a, ops->name, NULL);
}

static void
on_next_screen(struct app *a, int step)
{
    struct view *v = app_view(a);
    int at = v->ops->tab;

    if (v->ops->pane && step > 0 && (!v->ops->panes || v->ops->panes(v) != PANES_NOT_SHOWN)) {
        v->ops->pane(v, step);
        return;
    }
    for (int i = 0; i < APP_SCREENS; i++) {
        at = (at + step + APP_SCREENS) % APP_SCREENS;
        if (view_screen(at)) {
            on_screen(a, at);
            return;
        }
    }
}

static void
on_open(struct app *a, int arg)
{
    struct view *v = app_view(a);

    (void)arg;
    if (v->ops->open)
        v->ops->open(v);
}

static void
on_back(struct app *a, int arg)
{
    struct view *v = app_view(a);

    (void)arg;
    if (follow_ends_by_esc(a)) {
        follow_end(a);
        return;
    }
    if (v->ops->back && v->ops->back(v))
        return;
    if (a->trail.at > 0 && !trail_is_below(a))
        trail_back(a);
    else if (a->views.depth > 1) /* the view below is still in memory */
        app_back(a);
}

/* Whether Esc has something to clear before it goes back: marks, a filter, or a pane beside the
 * list. */
static bool
has_to_clear(const struct app *a)
{
    struct view *v = app_view(a);
    struct list *l = app_list(a);
    int marks = 0;

    if (l)
        list_marks(l, &marks);
    if (v->ops->focus && l != v->ops->list(v))
        return true;
    return marks > 0 || (v->ops->filter && *v->ops->filter(v)) ||
           (v->ops->beside && v->ops->beside(v));
}

static const char *
no_back(const struct app *a, int arg)
{
    (void)arg;
    return a->trail.at > 0 || a->views.depth > 1 || a->follow.what != FOLLOW_NOTHING ||
                   has_to_clear(a)
               ? NULL
               : "this is the first place: q quits";
}

static void
on_step(struct app *a, int dir)
{
    struct view *v = app_view(a);

    if (v->ops->step)
        v->ops->step(v, dir);
}

static void
on_box(struct app *a, int which)
{
    switch (which) {
    case BOX_PALETTE:
        a->options.boxes->palette(a);
        break;
    case BOX_FILTER:
        a->options.boxes->filter(a);
        break;
    case BOX_HELP:
        app_push(a, "help", NULL);
        break;
    case BOX_ACTIONS:
        a->options.boxes->actions(a);
        break;
    case BOX_SQL:
        a->options.boxes->sql(a);
        break;
    case BOX_SORT:
        a->options.boxes->sort(a);
        break;
    case BOX_COLUMNS:
        a->options.boxes->columns(a);
        break;
    default:
        break;
    }
}

/* --- how it is shown ------------------------------------------------------------------------- */

static void
on_freeze(struct app *a, int arg)
{
    bool on = !store_is_frozen(a->store);

    (void)arg;
    sources_freeze(a->sources, on);
    app_say(a, SAY_INFO, on ? "frozen: no refresh until z" : "live again");
}

static void
on_interval(struct app *a, int step)
{
    static const int steps[] = {100,   250,   500,   1000,   2000,   5000,
                                10000, 30000, 60000, 300000, 600000, 3600000};
    int n = (int)(sizeof steps / sizeof *steps), now = sources_interval(a->sources), i = 0;

    while (i < n - 1 && steps[i] < now)
        i++;
    i += step;
    if (i < 0 || i >= n)
        return;
    sources_set_interval(a->sources, steps[i]);
    app_say(a, SAY_INFO, "refresh each %s", fmt_duration(steps[i]).s);
}

static void
on_zone(struct app *a, int arg)
{
    (void)arg;
    a->options.utc = !a->options.utc;
    app_say(a, SAY_INFO, a->options.utc ? "times are UTC" : "times are local");
}

static void
on_toggle(struct app *a, int what)
{
    struct view *v = app_view(a);

    if (v->ops->toggle)
        v->ops->toggle(v, what);
}

static void
on_redraw(struct app *a, int arg)
{
    (void)arg;
    term_repaint(a->term);
}

static void
on_suspend(struct app *a, int arg)
{
    (void)arg;
    term_suspend(a->term);
    term_resized(a->term);
}

static void
on_reconnect(struct app *a, int arg)
{
    (void)arg;
    app_ask_again(a);
    db_retry_now(source_watcher(a->source));
    store_refresh_all(a->store);
    app_say(a, SAY_INFO, "asked the server again");
}

/* --- the running action, and leaving --------------------------------------------------------- */

static void
on_action_box(struct app *a, int arg)
{
    (void)arg;
    a->options.boxes->progress(a);
}

static void
on_stop(struct app *a, int arg)
{
    (void)arg;
    if (app_action_runs(a))
        app_action_stop(a);
    else if (a->views.nboxes == 0 || app_front(a)->ops != a->options.boxes->quit)
        app_box(a, a->options.boxes->quit, NULL);
}

static void
on_quit(struct app *a, int arg)
{
    (void)arg;
    if (app_action_runs(a))
        app_box(a, a->options.boxes->quit, NULL);
    else
        app_quit(a);
}

/* --- tables ---------------------------------------------------------------------------------- */

static void
move_list(struct list *l, enum move move)
{
    switch (move) {
    case MOVE_UP:
        list_move(l, -1);
        break;
    case MOVE_DOWN:
        list_move(l, 1);
        break;
    case MOVE_PAGE_UP:
        list_page(l, -1);
        break;
    case MOVE_PAGE_DOWN:
        list_page(l, 1);
        break;
    case MOVE_HALF_UP:
        list_half_page(l, -1);
        break;
    case MOVE_HALF_DOWN:
        list_half_page(l, 1);
        break;
    case MOVE_HOME:
        list_home(l);
        break;
    case MOVE_END:
        list_end(l);
        break;
    case MOVE_LEFT:
    case MOVE_RIGHT:
        break;
    }
}

static void
on_move(struct app *a, int move)
{
    struct list *l = app_list(a);
    struct view *v = app_view(a);

    seek_end(a); /* the user has chosen another row */
    if (l)
        move_list(l, (enum move)move);
    if (v->ops->move)
        v->ops->move(v, (enum move)move);
}

static void
on_mark(struct app *a, int arg)
{
    struct list *l = app_list(a);
    struct view *v = app_view(a);

    (void)arg;
    app_action_leave_marks(a);
    if (v->ops->before_mark)
        v->ops->before_mark(v);
    if (l)
        list_toggle_mark(l);
}

static void
on_mark_all(struct app *a, int arg)
{
    struct view *v = app_view(a);

    (void)arg;
    app_action_leave_marks(a);
    if (v->ops->mark_all)
        v->ops->mark_all(v);
}

static void
on_unmark(struct app *a, int arg)
{
    struct view *v = app_view(a);
    struct list *l = app_list(a);

    (void)arg;
    if (v->ops->unmark)
        v->ops->unmark(v);
    else if (l)
        list_unmark_all(l);
}

static void
on_sort_step(struct app *a, int step)
{
    list_sort_step(app_list(a), step);
}

static void
on_sort_invert(struct app *a, int arg)
{
    (void)arg;
    list_sort_invert(app_list(a));
}

/* --- why not --------------------------------------------------------------------------------- */

static const char *
no_row(const struct app *a, int arg)
{
    struct list *l = app_list(a);

    (void)arg;
    return l && !list_selected(l) ? app_no_row(a) : NULL;
}

static const char *
no_open(const struct app *a, int arg)
{
    struct view *v = app_view(a);

    return v->ops->beside && v->ops->beside(v) ? NULL : no_row(a, arg);
}

static const char *
no_filter(const struct app *a, int arg)
{
    (void)arg;
    return app_view(a)->ops->set_filter ? NULL : "nothing to filter on this screen";
}

static const char *
no_marks(const struct app *a, int arg)
{
    return app_view(a)->ops->unmark ? no_row(a, arg) : "no marks here: they are for tables";
}

/* Only rows of a screen's own table can be marked, and only if an act can take them. */
static const char *
no_mark(const struct app *a, int arg)
{
    struct view *v = app_view(a);
    const char *why = no_marks(a, arg);

    if (why)
        return why;
    if (view_in_pane(v) || (v->ops->focus && v->ops->focus(v) != v->ops->list(v)))
        return "marks are for the rows of the table: Tab goes there";
    return app_target(a).kind == TARGET_NONE ? "nothing can be done with rows like this" : NULL;
}

static const char *
no_mark_all(const struct app *a, int arg)
{
    return app_view(a)->ops->mark_all ? no_mark(a, arg) : "this table has no marks";
}

static const char *
no_sql(const struct app *a, int arg)
{
    (void)arg;
    return app_view(a)->ops->sql ? NULL : "this screen has no SQL";
}

static const char *
no_action(const struct app *a, int arg)
{
    (void)arg;
    return a->running.action || a->running.canary ? NULL : "no action is running";
}

static const char *
no_sort(const struct app *a, int arg)
{
    struct list *l = app_list(a);

    (void)arg;
    if (!l)
        return "nothing to sort on this screen";
    return app_view(a)->ops->fixed_order ? "the server gives the order of this table" : NULL;
}

static const char *
no_columns(const struct app *a, int arg)
{
    (void)arg;
    return app_list(a) ? NULL
                       : "the keys are with the alerts, which have no columns: Tab goes back";
}

/* --- the mouse ------------------------------------------------------------------------------- */

/* The mouse selects and opens, it never acts. In a box only the wheel works: no click answers a
 * question. */
static void
wheel(struct app *a, bool up)
{
    struct key k = {.code = up ? KC_UP : KC_DOWN};

    for (int i = 0; i < WHEEL_ROWS; i++) {
        if (a->views.nboxes == 0)
            on_move(a, up ? MOVE_UP : MOVE_DOWN);
        else
            app_key(a, &k);
    }
}

/* The digit of the screen whose tab is at x, 0 = none. */
static int
tab_at(const struct app *a, int x)
{
    for (int i = 0; i < APP_SCREENS; i++)
        if (a->tabs.w[i] > 0 && x >= a->tabs.x[i] && x < a->tabs.x[i] + a->tabs.w[i])
            return i;
    return 0;
}

static void
click(struct app *a, int x, int y)
{
    struct view *v = app_view(a);
    struct list *l = v->ops->list ? v->ops->list(v) : NULL;
    int tab = y == 1 ? tab_at(a, x) : 0;

    if (tab > 0) {
        on_screen(a, tab);
        return;
    }
    seek_end(a);
    if (l && list_click(l, x, y, !no_sort(a, 0)) == HIT_SELECTED && !no_row(a, 0))
        on_open(a, 0);
}

void
app_mouse(struct app *a, const struct key *k)
{
    if (k->code != KC_CLICK)
        wheel(a, k->code == KC_WHEEL_UP);
    else if (a->views.nboxes == 0)
        click(a, k->x, k->y);
}

/* --- the tables ------------------------------------------------------------------------------ */

/* clang-format off */
#define PAGES (IN_TABLES | IN_JOB | IN_HELP)
const struct command commands_screens[] = {
    {.name = "queues", .keys = "1", .help = "Queues: backlog, rates and the age of the oldest job",
     .scope = IN_ALL, .run = on_screen, .arg = 1, .run_with = go_filtered, .takes = TAKES_FILTER},
    {.name = "jobs", .keys = "2", .help = "Jobs: all, or those that a filter finds",
     .scope = IN_ALL, .run = on_screen, .arg = 2, .run_with = go_jobs, .takes = TAKES_FILTER},
    {.name = "failed", .keys = "3", .help = "Failed jobs, grouped by their error",
     .scope = IN_ALL, .run = on_screen, .arg = 3, .run_with = go_failed, .takes = TAKES_FILTER},
    {.name = "nodes", .keys = "4", .help = "Nodes: workers, their heartbeats and leases",
     .scope = IN_ALL, .run = on_screen, .arg = 4, .run_with = go_filtered, .takes = TAKES_FILTER},
    {.name = "schedules", .keys = "5", .help = "Schedules: jobs that are pushed by the clock",
     .scope = IN_ALL, .run = on_screen, .arg = 5, .run_with = go_filtered, .takes = TAKES_FILTER},
    {.name = "audit", .keys = "6", .help = "Audit: what was done, by whom",
     .scope = IN_ALL, .run = on_screen, .arg = 6, .run_with = go_filtered, .takes = TAKES_FILTER},
    {.name = "database", .keys = "7", .help = "Database: what holds vacuum back, dead rows, locks",
     .scope = IN_ALL, .run = on_screen, .arg = 7, .run_with = go_filtered, .takes = TAKES_FILTER},
    {.name = "messages", .keys = "8", .help = "Messages of this session",
     .scope = IN_ALL, .run = on_screen, .arg = 8, .run_with = go_filtered, .takes = TAKES_FILTER},
    {.name = "queue", .keys = "", .help = "The page of this queue: its bare name does the same",
     .scope = IN_ALL, .run = on_screen, .arg = 1, .run_with = go_queue, .takes = TAKES_QUEUE},
    {.name = "job", .keys = "", .help = "The job with this id, or with these first or last digits",
     .scope = IN_ALL, .run = on_screen, .arg = 2, .run_with = go_job, .takes = TAKES_JOB},
    {.name = "node", .keys = "", .help = "The page of this node: its bare name does the same",
     .scope = IN_ALL, .run = on_screen, .arg = 4, .run_with = go_node, .takes = TAKES_NODE},
    {.name = "schedule", .keys = "", .help = "This schedule: its bare name does the same",
     .scope = IN_ALL, .run = on_screen, .arg = 5, .run_with = go_schedule, .takes = TAKES_SCHEDULE},
    {0},
};

const struct command commands_look[] = {
    {.name = "next", .keys = "Tab", .help = "Next pane of this screen; where it has none, next screen", .scope = IN_ALL, .run = on_next_screen, .arg = 1, .moves = MOVES_ON},
    {.name = "previous", .keys = "S-Tab", .help = "Previous screen",
     .scope = IN_ALL, .run = on_next_screen, .arg = -1, .moves = MOVES_ON},
    {.name = "command", .keys = ":", .help = "Type a command by its name",
     .scope = IN_ALL, .run = on_box, .arg = BOX_PALETTE},
    {.name = "help", .keys = "? F1", .help = "All keys",
     .scope = IN_ALL & ~IN_HELP, .foot = 1, .run = on_box, .arg = BOX_HELP},
    {.name = "filter", .keys = "/", .help = "Filter: words, state: queue: node: kind: error: age> tries>",
     .scope = IN_ALL & ~IN_JOB, .foot = 2, .run = on_box, .arg = BOX_FILTER, .why_not = no_filter,
     .of_screen = true},
    {.name = "actions", .keys = "a", .help = "What can be done with this row, and why not",
     .scope = IN_ALL & ~IN_HELP, .foot = 4, .run = on_box, .arg = BOX_ACTIONS},
    {.name = "alert", .keys = "!", .help = "The next of what needs attention: its row on its screen; Esc comes back",
     .scope = IN_ALL, .foot = 8, .run = on_alert, .why_not = no_alert, .moves = MOVES_ON},
    {.name = "sql", .keys = "v", .help = "The SQL behind this screen",
     .scope = IN_ALL, .run = on_box, .arg = BOX_SQL, .why_not = no_sql},
    {.name = "freeze", .keys = "z", .help = "Freeze the data, or let it move again",
     .scope = IN_ALL, .run = on_freeze},
    {.name = "slower", .keys = "+", .help = "Longer interval between refreshes",
     .scope = IN_ALL, .run = on_interval, .arg = 1},
    {.name = "faster", .keys = "-", .help = "Shorter interval between refreshes",
     .scope = IN_ALL, .run = on_interval, .arg = -1},
    {.name = "zone", .keys = "Z", .help = "Times in local time or in UTC", .scope = IN_ALL, .run = on_zone},
    {.name = "progress", .keys = "F8", .help = "Show the running action",
     .scope = IN_ALL, .run = on_action_box, .why_not = no_action},
    {.name = "stop", .keys = "C-c", .help = "Stop the running action after its batch, or quit",
     .scope = IN_ALL, .run = on_stop},
    {.name = "reconnect", .keys = "", .help = "Try the server now, without waiting for the next try",
     .scope = IN_ALL, .run = on_reconnect},
    {.name = "redraw", .keys = "C-l", .help = "Draw the screen anew", .scope = IN_ALL, .run = on_redraw},
    {.name = "suspend", .keys = "C-z", .help = "Back to the shell; fg comes back",
     .scope = IN_ALL, .run = on_suspend},
    {.name = "quit", .keys = "q", .help = "Quit; asks only while an action runs",
     .scope = IN_ALL, .foot = 20, .run = on_quit},
    {.name = "up", .keys = "k Up", .help = "Up", .scope = PAGES, .run = on_move, .arg = MOVE_UP, .moves = MOVES_CURSOR},
    {.name = "down", .keys = "j Down", .help = "Down", .scope = PAGES, .run = on_move, .arg = MOVE_DOWN, .moves = MOVES_CURSOR},
    {.name = "page-up", .keys = "PgUp C-b", .help = "A page up", .scope = PAGES, .run = on_move, .arg = MOVE_PAGE_UP, .moves = MOVES_CURSOR},
    {.name = "page-down", .keys = "PgDn C-f", .help = "A page down",
     .scope = PAGES, .run = on_move, .arg = MOVE_PAGE_DOWN, .moves = MOVES_CURSOR},
    {.name = "half-up", .keys = "C-u", .help = "Half a page up", .scope = PAGES, .run = on_move, .arg = MOVE_HALF_UP, .moves = MOVES_CURSOR},
    {.name = "half-down", .keys = "C-d", .help = "Half a page down",
     .scope = PAGES, .run = on_move, .arg = MOVE_HALF_DOWN, .moves = MOVES_CURSOR},
    {.name = "top", .keys = "g Home", .help = "To the first row", .scope = PAGES, .run = on_move, .arg = MOVE_HOME, .moves = MOVES_CURSOR},
    {.name = "end", .keys = "G End", .help = "To the last row", .scope = PAGES, .run = on_move, .arg = MOVE_END, .moves = MOVES_CURSOR},
    {.name = "left", .keys = "Left", .help = "In a job: to the left, where lines are not wrapped; in Jobs: the state before",
     .scope = IN_JOB | IN_JOBS, .run = on_move, .arg = MOVE_LEFT, .moves = MOVES_ON},
    {.name = "right", .keys = "Right", .help = "In a job: to the right; in Jobs: the next state, Enter filters by it",
     .scope = IN_JOB | IN_JOBS, .run = on_move, .arg = MOVE_RIGHT, .moves = MOVES_ON},
    {.name = "open", .keys = "Enter", .help = "Open the row",
     .scope = IN_QUEUES | IN_JOBS | IN_FAILED | IN_NODES | IN_SCHEDULES | IN_DATABASE | IN_OVERVIEW |
              IN_HAPPENED,
     .foot = 3, .run = on_open, .why_not = no_open, .moves = MOVES_ON},
    {.name = "back", .keys = "Esc", .help = "Back, wherever you came from; first ends F, then clears marks and the filter",
     .scope = IN_ALL, .foot = 19, .run = on_back, .why_not = no_back, .moves = MOVES_ON},
    {0},
};

const struct command commands_page[] = {
    {.name = "previous-job", .keys = "[", .help = "Previous job", .scope = IN_JOB, .foot = 5, .run = on_step, .arg = -1},
    {.name = "next-job", .keys = "]", .help = "Next job", .scope = IN_JOB, .foot = 6, .run = on_step, .arg = 1},
    {.name = "newer", .keys = "[", .help = "A newer job of the group, in the box below", .scope = IN_FAILED,
     .run = on_step, .arg = -1},
    {.name = "older", .keys = "]", .help = "An older job of the group, in the box below", .scope = IN_FAILED,
     .run = on_step, .arg = 1},
    {.name = "wrap", .keys = "w", .help = "Wrap long lines, or not",
     .scope = IN_JOB, .foot = 7, .run = on_toggle, .arg = TOGGLE_WRAP},
    {.name = "group", .keys = "m", .help = "Group by error, kind, node or hour",
     .scope = IN_FAILED, .foot = 5, .run = on_toggle, .arg = TOGGLE_GROUP},
    {0},
};

const struct command commands_table[] = {
    {.name = "sort", .keys = "s", .help = "Sort by a column from a list",
     .scope = IN_TABLES, .foot = 12, .run = on_box, .arg = BOX_SORT, .why_not = no_sort,
     .of_screen = true},
    {.name = "sort-left", .keys = "<", .help = "Sort by the column to the left",
     .scope = IN_TABLES, .run = on_sort_step, .arg = -1, .why_not = no_sort},
    {.name = "sort-right", .keys = ">", .help = "Sort by the column to the right",
     .scope = IN_TABLES, .run = on_sort_step, .arg = 1, .why_not = no_sort},
    {.name = "invert", .keys = "I", .help = "Sort the other way round",
     .scope = IN_TABLES, .run = on_sort_invert, .why_not = no_sort},
    {.name = "columns", .keys = "o", .help = "Show and hide columns",
     .scope = IN_TABLES, .run = on_box, .arg = BOX_COLUMNS, .why_not = no_columns},
    {.name = "mark", .keys = "Space", .help = "Mark the row",
     .scope = IN_JOBS, .foot = 5, .run = on_mark, .why_not = no_marks},
    {.name = "all", .keys = "*", .help = "Mark all that match, on the server too",
     .scope = IN_JOBS, .foot = 8, .run = on_mark_all, .why_not = no_mark_all},
    {.name = "mark", .keys = "Space", .help = "Mark the row: the next act is for all that are marked",
     .scope = IN_QUEUES | IN_FAILED | IN_NODES, .run = on_mark, .why_not = no_mark},
    {.name = "all", .keys = "*", .help = "Mark all rows of the table",
     .scope = IN_QUEUES | IN_FAILED | IN_NODES, .run = on_mark_all, .why_not = no_mark_all},
    {.name = "unmark", .keys = "U", .help = "Unmark all", .scope = IN_JOBS | IN_QUEUES | IN_FAILED | IN_NODES,
     .run = on_unmark, .why_not = no_marks},
    {0},
};
/* clang-format on */
