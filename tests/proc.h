/*
 * Runs programs beside a test: started, told things by signals, their output kept in memory, and
 * waited for with a deadline. Everything here fails the running test when it cannot do what it
 * says.
 */
#ifndef TESTS_PROC_H
#define TESTS_PROC_H

#include <stdbool.h>
#include <sys/types.h>

enum { PROC_WAIT_MS = 90000 };

struct proc {
    pid_t pid;    /* 0 = not running */
    int out, err; /* files in memory */
    int code;     /* once it has ended: exit code, or 128 + signal */
};

/* Starts argv[0]; argv ends in NULL. input goes to its standard input, NULL = none. */
void proc_start(struct proc *p, const char *const *argv, const char *input);
/* The program under test (QUEUETOP) with a line of arguments parted by blanks, ' and " quote. */
void proc_queuetop(struct proc *p, const char *input, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Waits for its end; gives the exit code. */
int proc_wait(struct proc *p);
/* Waits until it has written text to standard error. */
void proc_want(struct proc *p, const char *text);
/* The same for standard output. */
void proc_want_output(struct proc *p, const char *text);
/* All that it has written so far; the caller frees. */
char *proc_output(const struct proc *p);
char *proc_errors(const struct proc *p);
/* Ends it with SIGKILL if it still runs, and forgets it. */
void proc_done(struct proc *p);

/* SIGTERM, and it must end well: exit code 0. */
void proc_ends(struct proc *p);

/* Start, wait, done: gives the exit code, and both outputs where asked (the caller frees). */
int proc_run(const char *input, char **out, char **err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* proc_run, and the test fails, with both outputs, unless the exit code is `code` and out and err
 * are in what was written to standard output and error (NULL = anything). */
void proc_check(int code, const char *out, const char *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
