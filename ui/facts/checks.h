/* What a monitoring system asks about a queue: each check is one figure, judged by two limits.
 * Pure: rows in, figures out; nothing is asked.
 *
 * A figure above a limit is bad, as in the ranges of monitoring plugins: "60" means 0 to 60. Times
 * are in seconds. A limit is set for all queues or for one: NAME=VALUE, NAME@QUEUE=VALUE. */
#ifndef UI_FACTS_CHECKS_H
#define UI_FACTS_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/health_rows.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/verdict.h"
#include "ui/term/fmt.h"

/* A limit of a condition: "15m", "9", "90%"; "-" = none. */
struct fmt condition_limit(const struct condition *k, double limit);

enum { CHECK_LIMITS = 1000 };
struct check_limits {
    struct check_limit {
        enum condition_id id;
        bool is_crit;
        const char *queue; /* NULL = all queues without a limit of their own */
        double value;      /* NAN = no limit */
    } list[CHECK_LIMITS];
    int n;
};
/* Reads "oldest@mails=5m"; "off" removes a limit. If a limit is given several times, the last one
 * counts. */
bool check_limit_add(struct check_limits *l, bool is_crit, const char *spec, struct arena *mem,
                     struct err *e) __attribute__((warn_unused_result));

struct check_look {           /* the rows that were read; NULL and 0 = not known */
    const char *const *asked; /* the queues to judge; lines has only these */
    int nasked;               /* 0 = all queues */
    const struct queue_line *lines;
    int nlines;
    const struct life_row *life;
    const struct node_row *nodes;
    int nnodes;
    const struct lease_row *leases;
    int nleases;
    const struct minute_row *minutes; /* of the last hour */
    int nminutes;
    const struct health_server *server;
    const struct health_session *sessions;
    int nsessions;
    const char *no_scheduler; /* what is wrong with the scheduler (life.h); NULL = nothing */
    int64_t waiting;  /* jobs that wait while no worker is alive (life.h); 0 = one is alive */
    const char *risk; /* a right by which others could run code as the owner; NULL = none */
    bool foreign, is_native, has_minutes, has_leases, has_heartbeats;
    int64_t now_ms;
};

struct check_seen {
    bool known;
    double value, warn, crit; /* limits: NAN = none */
    enum verdict verdict;
    const char *queue; /* the worst queue; NULL = the figure is not of a queue */
    const char *text;  /* the sentence about the figure */
    int bad;           /* number of queues above a limit */
};
/* Of a condition of queues: every queue that has limits of its own also gets a figure of its own.
 */
struct check_own {
    enum condition_id id;
    struct check_seen seen;
};
struct checks {
    struct check_seen seen[CONDITIONS];
    struct check_own own[CHECK_LIMITS];
    int nown;
};
/* What must also be read to judge stalled work and expired leases. */
bool check_needs_minutes(const struct check_look *look, const struct check_limits *limits);
bool check_needs_leases(const struct check_look *look, const struct check_limits *limits);
void checks_judge(const struct check_look *look, const struct check_limits *limits,
                  struct arena *mem, struct checks *out);

#endif
