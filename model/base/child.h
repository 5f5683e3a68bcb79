/* One running command. It gets bytes on its standard input; we keep its standard output up to a
 * limit and the end of its standard error. It may have a time limit. Its end is reported exactly
 * once. The command runs in a process group of its own, so a kill reaches its children. It dies
 * with this process; its children do so too if there is a guard. */
#ifndef MODEL_BASE_CHILD_H
#define MODEL_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/base/err.h"
#include "model/base/loop.h"

enum child_end {
    CHILD_EXITED,      /* code = exit status */
    CHILD_SIGNALLED,   /* code = signal */
    CHILD_NOT_STARTED, /* code = errno of exec */
    CHILD_UNKNOWN      /* ended, but somebody else took its status */
};

struct child_report {
    enum child_end end;
    int code;
    bool timed_out;     /* run_timeout_ms was over, so we ended it */
    const char *output; /* the first bytes of standard output; NULL = none */
    size_t output_len;
    uint64_t output_all; /* how many bytes the command wrote */
    const char *tail;    /* the last bytes of standard error */
    size_t tail_len;
    uint64_t tail_all;
};
/* The report, and all that it points to, is valid until the callback returns. The callback may call
 * child_free. */
typedef void child_fn(void *ctx, const struct child_report *r);

struct guard;
struct child_start {
    const char *path; /* from child_find */
    char *const *argv;
    char *const *env;
    const void *input; /* copied */
    size_t input_len;
    bool input_is_text; /* ends with a newline: one is added if the input has none */
    size_t output_limit, tail_limit;
    int64_t run_timeout_ms; /* 0 = none */
    int64_t grace_ms;       /* between SIGTERM and SIGKILL */
    bool may_leave;         /* its background processes live on after its end */
    struct guard *guard;    /* ends its group if this process dies; NULL = no guard */
    int place;              /* number of its place in the guard */
};

struct child;
/* NULL: the system has no process or descriptor left (ERR_SYS). */
struct child *child_new(struct loop *l, const struct child_start *s, child_fn *fn, void *ctx,
                        struct err *e);
/* Call it for every child after SIGCHLD. If the child has ended, this reports the end and returns
 * true. */
bool child_check(struct child *c);
/* True if the command runs: the system has taken its program. */
bool child_has_started(struct child *c);
/* Ends it: SIGTERM to the group, SIGKILL after grace_ms; 0 = SIGKILL at once. */
void child_kill(struct child *c, int64_t grace_ms);
/* Kills what still runs, without a report. */
void child_free(struct child *c);

/* Looks a command up in PATH as a shell would; the caller frees. ERR_USAGE: there is none. */
bool child_find(const char *name, char **path, struct err *e) __attribute__((warn_unused_result));

/* --- the guard --- */

/* Ends the process groups of commands if this process dies without a chance to do it (SIGKILL, a
 * crash). The kernel tells a command that its parent died, but not the children of the command.
 * So a small helper process holds the other end of a pipe and sees it close. A process that
 * leaves its group (setsid) escapes. */

struct guard;
/* For at most n groups at a time. NULL: the system has no process, memory or descriptor left. */
struct guard *guard_new(int places, struct err *e);
/* Ends the helper process and all groups that are still stored. NULL is allowed. */
void guard_free(struct guard *g);

#endif
