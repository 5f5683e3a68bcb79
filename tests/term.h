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
    int fd, slave; /* our end of the pty; the program's, held open so that its modes can be read */
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

/* Wait until some row contains text, until no row does, until that row does. */
void vt_want(struct vt *vt, const char *text);
void vt_gone(struct vt *vt, const char *text);
void vt_want_row(struct vt *vt, int row, const char *text);
/* Wait like vt_want, but say whether it came in time instead of failing. */
bool vt_came(struct vt *vt, const char *text, int timeout_ms);
/* Wait until the program has read all that was typed, and then written nothing and rested for
 * quiet_ms, without the time that it computes: however busy the machine is, the keys before have
 * had their effect, apart from what a server must answer. */
void vt_settle(struct vt *vt, int quiet_ms);
/* Does the program compute now, or wait for a processor or a disk? Then the machine is busy, and
 * the program waits for nobody. False where the system does not tell. */
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
/* Does the screen equal it now? For whoever waits until it does. */
bool vt_is_golden(struct vt *vt, const char *name);

/* Waits for the end of the program: its exit status, or 128 + signal. */
int vt_exit_status(struct vt *vt);
/* The program ended well, and wrote nothing that could tell a terminal what to do or turn its text.
 */
void vt_is_tame(struct vt *vt);
/* The program has ended as it should: that status, alternate screen left, cursor shown, terminal
 * modes as before, no unknown sequence in all of its output. */
void vt_ended_well(struct vt *vt, int status);

#endif
