/* `queuetop --demo [SECONDS]`: a private PostgreSQL in a temporary directory, with the queue
 * installed, a scheduler, workers and a mixed load, and the console on all that. However the
 * program ends, it leaves neither a process nor a file.
 *
 * Three processes matter. The demo is the user's own process, with the console; it makes the
 * directory and holds the writing end of a pipe. The keeper is a child of the demo, in a session of
 * its own; it starts everything else and reaps all orphans. The pipe closes when the demo ends, for
 * whatever reason; then the keeper ends all and removes the directory. If the keeper is killed, the
 * kernel ends its children (PR_SET_PDEATHSIG) and the demo removes the directory. */
#ifndef UI_DEMO_DEMO_H
#define UI_DEMO_DEMO_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "model/base/err.h"

struct cli;

/* Starts the demo, points *c at its server and runs `console` (the run function of the console
 * verb, with its options). Without a terminal it waits for SECONDS (words[0]) and prints the
 * queues. Returns the exit code. Must be called before any connection is made: it forks, so there
 * must be no second thread yet. */
int demo_run(struct cli *c, int (*console)(struct cli *c, const void *options),
             const void *options);

struct demo_place {
    char dir[80];           /* private directory; the server's socket is in it */
    char bin[PATH_MAX / 2]; /* where initdb and postgres are */
    char conninfo[160];     /* connection string of the console: the operator */
    const char *schema;     /* where the queue is installed */
    char user[32];          /* the user who runs the server if we are root; else "" */
    uid_t uid;
    gid_t gid;
};

/* The report that the keeper sends to the demo once, through a pipe. */
struct demo_report {
    bool ok;
    struct err err;
};

/* Finds the server's programs: first in PATH, then in the distribution's directories (newest
 * version first), then by pg_config. The error names the package to install. */
bool demo_find_server(struct demo_place *p, struct err *e) __attribute__((warn_unused_result));
/* Makes the directory below TMPDIR (/tmp), mode 0700, owned by the server's user. */
bool demo_make_dir(struct demo_place *p, struct err *e) __attribute__((warn_unused_result));
/* Removes the directory with everything in it; false if something is left. */
bool demo_remove_dir(const struct demo_place *p);
/* For a child that becomes a program of the server: gives up root for good. */
bool demo_drop_root(const struct demo_place *p);
/* Kills every child of this process except one. False: there was none; a zombie counts as a child.
 */
bool demo_kill_children(pid_t spare);
/* Writes the server's settings, after initdb. */
bool demo_configure(const struct demo_place *p, struct err *e) __attribute__((warn_unused_result));

/* The whole life of the keeper: reports to `ready`, ends when `life` closes. */
_Noreturn void demo_keep(const struct demo_place *p, int life, int ready);

#endif
