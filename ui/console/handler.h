/* What the rows of the command table run, and why they may refuse. Each handler works on the view
 * in front through its view_ops; `arg` is the last but one column of the row. */
#ifndef UI_CONSOLE_HANDLER_H
#define UI_CONSOLE_HANDLER_H

struct app;

/* --- going and looking (ui/console/handler.c) --- */
void on_screen(struct app *a, int digit);
void on_next_screen(struct app *a, int step);
void on_open(struct app *a, int arg);
void on_back(struct app *a, int arg);
void on_trail(struct app *a, int step); /* ui/console/trail.c */
void on_step(struct app *a, int dir);
void on_box(struct app *a, int which);
void on_source(struct app *a, int arg);   /* ui/console/app_sources.c */
void on_overview(struct app *a, int arg); /* ui/console/app_sources.c */
void on_freeze(struct app *a, int arg);
void on_interval(struct app *a, int step);
void on_zone(struct app *a, int arg);
void on_toggle(struct app *a, int what);
void on_copy(struct app *a, int arg); /* this and the next: ui/act/act_copy.c */
void on_copy_row(struct app *a, int arg);
void on_full(struct app *a, int arg);
void on_action_box(struct app *a, int arg);
void on_redraw(struct app *a, int arg);
void on_suspend(struct app *a, int arg);
void on_reconnect(struct app *a, int arg);
void on_stop(struct app *a, int arg);
void on_quit(struct app *a, int arg);
/* --- tables (ui/console/handler.c) --- */
void on_move(struct app *a, int move);
void on_mark(struct app *a, int arg);
void on_mark_all(struct app *a, int arg);
void on_unmark(struct app *a, int arg);
void on_sort_step(struct app *a, int step);
void on_sort_invert(struct app *a, int arg);
/* --- acting: on_X and no_X of the rows of model/adapter/acts.def (ui/act) --- */
#define KEY(id, on, no, ...)         \
    void on(struct app *a, int arg); \
    const char *no(const struct app *a, int arg);
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) keys
#include "model/adapter/acts.def"

/* --- why not: a sentence, or NULL --- */
const char *no_row(const struct app *a, int arg);
const char *no_trail(const struct app *a, int step);
const char *no_full(const struct app *a, int arg);
const char *no_filter(const struct app *a, int arg);
const char *no_marks(const struct app *a, int arg);
const char *no_mark_all(const struct app *a, int arg);
const char *no_sql(const struct app *a, int arg);
/* --- recordings (ui/console/recording.c) --- */
void on_play(struct app *a, int arg);
void on_replay_step(struct app *a, int n);
void on_replay_jump(struct app *a, int arg);
void on_replay_move(struct app *a, int seconds);
void on_replay_end(struct app *a, int end);
void on_replay_speed(struct app *a, int step);

const char *no_action(const struct app *a, int arg);
const char *no_sort(const struct app *a, int arg);

/* on_box */
enum { BOX_PALETTE, BOX_FILTER, BOX_HELP, BOX_ACTIONS, BOX_SQL, BOX_SORT, BOX_COLUMNS };
/* on_toggle */
enum { TOGGLE_WRAP, TOGGLE_GROUP };
/* --- database (ui/screen/view_health.c) --- */
void on_advice(struct app *a, int arg);

#endif
