/* One running command: bytes in on its standard input, standard output kept up to a limit, the end
 * of standard error kept, a time limit, and an end that is reported exactly once. It runs in a
 * process group of its own, so that a kill reaches its children, and dies with this process; its
 * children too, where there is a guard. */
#ifndef MODEL_BASE_CHILD_H
#define MODEL_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"

enum child_end {
    CHILD_EXITED,     /* code = exit status */
    CHILD_SIGNALLED,  /* code = signal */
    CHILD_NOT_STARTED /* code = errno of exec */
};

struct child_report {
    enum child_end end;
    int code;
    bool timed_out;     /* run_timeout_ms had passed, so it was ended */
    const char *output; /* the first bytes of standard output; NULL = none */
    size_t output_len;
    uint64_t output_all; /* how many bytes there were */
    const char *tail;    /* the last bytes of standard error */
    size_t tail_len;
    uint64_t tail_all;
};
/* The report and what it points to live until the callback returns. child_free is allowed in it. */
typedef void child_fn(void *ctx, const struct child_report *r);

struct guard;
struct child_start {
    const char *path; /* from child_find */
    char *const *argv;
    char *const *env;
    const void *input; /* copied */
    size_t input_len;
    size_t output_limit, tail_limit;
    int64_t run_timeout_ms; /* 0 = none */
    int64_t grace_ms;       /* between SIGTERM and SIGKILL */
    bool may_leave;         /* processes that it leaves in its group live on when it ends */
    struct guard *guard;    /* ends its group should this process die; NULL = nobody does */
    int place;              /* there */
};

struct child;
/* NULL: the system has no process or descriptor left (ERR_SYS). */
struct child *child_new(struct loop *l, const struct child_start *s, child_fn *fn, void *ctx,
                        struct err *e);
/* To be called for every child after SIGCHLD: reports the end if it has come. True if it has. */
bool child_check(struct child *c);
/* Ends it: SIGTERM to the group, SIGKILL after grace_ms; 0 = SIGKILL at once. */
void child_kill(struct child *c, int64_t grace_ms);
/* Kills what still runs, without a report. */
void child_free(struct child *c);

/* Looks a command up in PATH as a shell would; the caller frees. ERR_USAGE: there is none. */
bool child_find(const char *name, char **path, struct err *e) __attribute__((warn_unused_result));

#endif
