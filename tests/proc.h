/*
 * Runs programs for a test: starts a program, sends it signals, keeps its output in memory, and
 * waits for it with a deadline. If a function here can't do its work, the running test fails.
 */
#ifndef TESTS_PROC_H
#define TESTS_PROC_H

#include <stdarg.h>
#include <stdbool.h>
#include <sys/types.h>

enum { PROC_WAIT_MS = 300000 };

struct proc {
    pid_t pid;    /* 0 = not running */
    int out, err; /* files in memory */
    int code;     /* once it has ended: exit code, or 128 + signal */
};

/* The exit code of a status of waitpid, or 128 + signal. A crash is printed, for the driver of the
 * tests: a program that crashed once gets no second try. */
int proc_code(int status);
/* Starts argv[0]; argv ends in NULL. input goes to its standard input, NULL = none. */
void proc_start(struct proc *p, const char *const *argv, const char *input);
/* The program under test (QUEUETOP) with a line of arguments parted by blanks, ' and " quote. */
void proc_queuetop(struct proc *p, const char *input, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Waits for the end of the program; returns the exit code. */
int proc_wait(struct proc *p);
/* Waits until the program has written text to standard error. */
void proc_want(struct proc *p, const char *text);
/* The same, without the first bytes: what it had written before something happened. */
void proc_want_after(struct proc *p, size_t from, const char *text);
/* The same for standard output. */
void proc_want_output(struct proc *p, const char *text);
/* All that it has written so far; the caller frees. */
char *proc_output(const struct proc *p);
char *proc_errors(const struct proc *p);
/* Ends it with SIGKILL if it still runs, and forgets it. */
void proc_done(struct proc *p);

/* In programs that are started from now on, these system calls fail with these errors, as on a file
 * system that can't do them: pairs of a number (SYS_link) and an errno, -1 ends them. NULL = no
 * longer. */
void proc_refuse(const int *calls);

/* Sends SIGTERM. The test fails unless the program ends with exit code 0. */
void proc_ends(struct proc *p);

/* Starts the program, waits for it and frees it. Returns the exit code, and the two outputs if out
 * and err are not NULL (the caller frees). */
int proc_run(const char *input, char **out, char **err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Runs proc_run. The test fails, and prints both outputs, unless the exit code is `code`, standard
 * output contains out and standard error contains err (NULL = any text). */
void proc_check(int code, const char *out, const char *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Runs `queuetop WORDS "DSN"`, with the words from fmt and args. The test fails unless the exit
 * code is `code`. The caller frees out and err. */
void proc_verb(int code, char **out, char **err, const char *dsn, const char *fmt, va_list args)
    __attribute__((format(printf, 5, 0)));

/* Writes a line into a FIFO as soon as a program waits for this line. */
void proc_open_gate(const char *path);

/* Copies a file of the source tree into $TMPDIR, so that only this user can write it. In a tree
 * that was made with umask 002 others can write the files, and the program rejects such files as
 * adapters. The caller unlinks the copy and frees its path. */
char *proc_own_copy(const char *name);

/* A line of /proc/PID/status, key with its colon ("VmHWM:", in KiB); -1 = it has none. */
long proc_number(pid_t pid, const char *key);
/* False once the process has ended, whether it has been reaped or not. A process that is being
 * reaped shows as dead (X) for a moment: it has ended, too. */
bool proc_lives(pid_t pid);

#endif
