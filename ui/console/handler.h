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
/* --- acting (ui/act/act.c) --- */
void on_requeue(struct app *a, int all);
void on_cancel(struct app *a, int arg);
void on_pause(struct app *a, int arg);
void on_purge(struct app *a, int arg);
void on_release(struct app *a, int arg);
void on_extend(struct app *a, int arg);
void on_drain(struct app *a, int arg);
/* --- acting on other systems' queues (ui/act/act_foreign.c) --- */
void on_rescue(struct app *a, int arg);
void on_redrive(struct app *a, int arg);
void on_terminate(struct app *a, int arg);
const char *no_rescue(const struct app *a, int arg);
const char *no_redrive(const struct app *a, int arg);
const char *no_terminate(const struct app *a, int arg);
/* --- acting on jobs, undo (ui/act/act_jobs.c) --- */
void on_discard(struct app *a, int arg);
void on_delete(struct app *a, int arg);
void on_priority(struct app *a, int arg);
void on_time(struct app *a, int arg);
void on_undo(struct app *a, int arg);
/* --- payloads (ui/act/act_payload.c) --- */
void on_edit(struct app *a, int arg);
const char *no_edit(const struct app *a, int arg);
void on_push(struct app *a, int arg);
const char *no_push(const struct app *a, int arg);
/* --- limits of a queue (ui/act/act_limits.c) --- */
void on_limits(struct app *a, int arg);
const char *no_limits(const struct app *a, int arg);
/* --- acting on schedules (ui/act/act_schedule.c) --- */
void on_run_now(struct app *a, int arg);
void on_pause_schedule(struct app *a, int arg);
void on_new_schedule(struct app *a, int arg);
void on_edit_schedule(struct app *a, int arg);
void on_remove_schedule(struct app *a, int arg);

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
const char *no_requeue(const struct app *a, int all);
const char *no_cancel(const struct app *a, int arg);
const char *no_discard(const struct app *a, int arg);
const char *no_delete(const struct app *a, int arg);
const char *no_priority(const struct app *a, int arg);
const char *no_time(const struct app *a, int arg);
const char *no_undo(const struct app *a, int arg);
const char *no_pause(const struct app *a, int arg);
const char *no_purge(const struct app *a, int arg);
const char *no_release(const struct app *a, int arg);
const char *no_extend(const struct app *a, int arg);
const char *no_drain(const struct app *a, int arg);
const char *no_run_now(const struct app *a, int arg);
const char *no_pause_schedule(const struct app *a, int arg);
const char *no_new_schedule(const struct app *a, int arg);
const char *no_edit_schedule(const struct app *a, int arg);
const char *no_remove_schedule(const struct app *a, int arg);

/* on_box */
enum { BOX_PALETTE, BOX_FILTER, BOX_HELP, BOX_ACTIONS, BOX_SQL, BOX_SORT, BOX_COLUMNS };
/* on_toggle */
enum { TOGGLE_WRAP, TOGGLE_GROUP };
/* --- database (ui/act/act_health.c, ui/screen/view_health.c) --- */
void on_signal(struct app *a, int terminate);
const char *no_signal(const struct app *a, int terminate);
void on_advice(struct app *a, int arg);

#endif
