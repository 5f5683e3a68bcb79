/* What a monitoring system asks of a queue: one figure a check, judged by two limits. Pure: rows
 * in, figures out; nothing is asked.
 *
 * A figure above a limit is bad, as the ranges of monitoring plugins have it: "60" means 0 to 60.
 * Times are in seconds. Limits are set for all queues or for one: NAME=VALUE, NAME@QUEUE=VALUE. */
#ifndef UI_FACTS_CHECKS_H
#define UI_FACTS_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/health_rows.h"
#include "model/base/err.h"
#include "model/base/mem.h"
#include "ui/facts/queue_columns.h"
#include "ui/facts/verdict.h"

enum check_id {
    CHECK_OLDEST,
    CHECK_BACKLOG,
    CHECK_FAILURES,
    CHECK_DRAIN,
    CHECK_STALLED,
    CHECK_WORKER,
    CHECK_SCHEDULER,
    CHECK_EXPIRED,
    CHECK_DEAD,
    CHECK_OVERDUE,
    CHECK_UNSERVED,
    CHECK_UNCOUNTED,
    CHECK_TRANSACTION,
    CHECK_XIDS,
    CHECKS
};

struct check_kind {
    const char *name, *help;
    bool is_time;      /* its figure is in seconds */
    bool of_queue;     /* each queue has one */
    double warn, crit; /* unless somebody says else; NAN = none */
};
extern const struct check_kind check_kinds[CHECKS];

enum { CHECK_LIMITS = 1000 };
struct check_limits {
    struct check_limit {
        enum check_id id;
        bool is_crit;
        const char *queue; /* NULL = all that have none of their own */
        double value;      /* NAN = off */
    } list[CHECK_LIMITS];
    int n;
};
/* Reads "oldest@mails=5m"; "off" takes a limit away. The last one that is said counts. */
bool check_limit_add(struct check_limits *l, bool is_crit, const char *spec, struct arena *mem,
                     struct err *e) __attribute__((warn_unused_result));

struct check_look { /* what was read; NULL and 0 = not known there */
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
    int64_t waiting; /* jobs that nobody works for, by life.h; 0 = somebody does */
    bool foreign, has_minutes, has_leases, has_heartbeats;
    int64_t now_ms;
};

struct check_seen {
    bool known;
    double value, warn, crit; /* limits: NAN = none */
    enum verdict verdict;
    const char *queue; /* the worst one; NULL = not of a queue */
    const char *text;  /* about it, in words */
    int bad;           /* queues that are above a limit */
};
/* of_queue: every queue with limits of its own gets a figure of its own, too. */
struct check_own {
    enum check_id id;
    struct check_seen seen;
};
struct checks {
    struct check_seen seen[CHECKS];
    struct check_own own[CHECK_LIMITS];
    int nown;
};
/* What must be read besides to judge whether work stands still, and whose leases are over. */
bool check_needs_minutes(const struct check_look *look, const struct check_limits *limits);
bool check_needs_leases(const struct check_look *look, const struct check_limits *limits);
void checks_judge(const struct check_look *look, const struct check_limits *limits,
                  struct arena *mem, struct checks *out);

#endif
