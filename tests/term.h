/*
 * Drives a real program in a real terminal: a pty whose other end is libvterm. Reads like a story:
 *     vt_spawn(&vt, 24, 80, argv, NULL);
 *     vt_want(&vt, "Queues");
 *     vt_keys(&vt, "j j r");
 *     vt_want(&vt, "Requeue 1 job?");
 * Nothing here sleeps: every wait is for a text, an exit or silence, with one deadline (VT_WAIT_MS,
 * times VT_SLOW from the environment). A wait that fails prints the whole screen and fails the
 * test.
 */
#ifndef TESTS_TERM_H
#define TESTS_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>
#include <vterm.h>

enum { VT_WAIT_MS = 60000, VT_DEFAULT = -1 };

struct vt {
    VTerm *vterm;
    VTermScreen *screen;
    int fd, slave; /* our end of the pty; the program's end, which stays open so that we can read
                      its modes */
    pid_t pid;
    int rows, cols;
    int status; /* from wait(), valid once has_ended */
    bool has_ended;
    bool in_alt_screen, is_cursor_shown;
    int bells, titles;     /* how many came */
    int unknown;           /* control sequences that no terminal program of ours should send */
    char unknown_text[80]; /* the first of them */
    char *raw;             /* every byte that the program wrote; raw_len of them */
    size_t raw_len;
    size_t fed; /* how many of them libvterm has read */
    struct termios before;
};

struct vt_cell {
    char text[32]; /* UTF-8, " " when empty, "" for the right half of a wide character */
    int fg, bg;    /* palette index, 0x1000000 + RGB, or VT_DEFAULT */
    bool bold, underline, reverse, italic, strike;
};

/* Starts argv[0] (looked up in PATH); argv ends in NULL, env holds NAME=value, may be NULL. */
void vt_spawn(struct vt *vt, int rows, int cols, const char *const *argv, const char *const *env);
/* Ends the program when it still runs and frees everything. */
void vt_done(struct vt *vt);

/* Wait until a row contains text; until no row contains it; until this row contains it. */
void vt_want(struct vt *vt, const char *text);
void vt_gone(struct vt *vt, const char *text);
void vt_want_row(struct vt *vt, int row, const char *text);
/* Wait like vt_want, but say whether it came in time instead of failing. */
bool vt_came(struct vt *vt, const char *text, int timeout_ms);
/* Waits until the program has read all that was typed, and then has written nothing and rested for
 * quiet_ms. Time in which the program computes does not count. So the keys have had their effect
 * even on a busy machine, except for effects that need an answer of a server. */
void vt_settle(struct vt *vt, int quiet_ms);
/* True if the program computes now, or waits for a processor or a disk. Then only the machine is
 * busy. False also if the system does not report it. */
bool vt_computes(const struct vt *vt);
/* Reads what is there now and no more. */
void vt_pump(struct vt *vt);

/* Keys by name: "j j space enter esc f8 C-c M-x up pgdn text:abc". After esc it waits until the
 * program has read it and rested for 40 ms. */
void vt_keys(struct vt *vt, const char *keys);
/* Bytes as they are; a bracketed paste of them; a new window size; a signal to the program. */
void vt_type(struct vt *vt, const char *bytes);
void vt_paste(struct vt *vt, const char *text);
void vt_resize(struct vt *vt, int rows, int cols);
void vt_signal(struct vt *vt, int sig);

/* What is on the screen now. Rows and columns count from 0. */
struct vt_cell vt_cell(const struct vt *vt, int row, int col);
bool vt_find(const struct vt *vt, const char *text, int *row, int *col);
void vt_cursor(const struct vt *vt, int *row, int *col);
/* Text without trailing blanks, rows ended by newlines; valid until the next call. */
const char *vt_row(const struct vt *vt, int row);
const char *vt_screen_text(const struct vt *vt);
/* Text, cursor and colours must equal tests/screens/NAME.txt; UPDATE=1 rewrites it. */
void vt_golden(struct vt *vt, const char *name);
/* True if the screen equals the file now; for callers that wait for this. */
bool vt_is_golden(struct vt *vt, const char *name);

/* Waits for the end of the program: its exit status, or 128 + signal. */
int vt_exit_status(struct vt *vt);
/* Fails unless the program ended well and wrote nothing that could control a terminal or change the
 * direction of text. */
void vt_is_tame(struct vt *vt);
/* Fails unless the program has ended in order: with this status, out of the alternate screen, with
 * the cursor shown and the terminal modes as before, and without an unknown sequence in its output.
 */
void vt_ended_well(struct vt *vt, int status);

#endif
