/* How bad a row is, on one scale for all tables: BAD wants an act now, WARN a look today; what
 * somebody has decided (a pause, a drain) is neither. The first column of each table shows it, the
 * tabs and the header count it. Pure: rows in. */
#ifndef UI_FACTS_VERDICT_H
#define UI_FACTS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"
#include "model/store/health.h"
#include "model/store/outlook.h"
#include "ui/widget/list.h"

enum verdict { VERDICT_WELL, VERDICT_DECIDED, VERDICT_WARN, VERDICT_BAD };

enum {
    OLD_MS = 60000,          /* age of the oldest ready job: a warning */
    VERY_OLD_MS = 900000,    /* bad */
    RECENT_MS = 3600000,     /* red is for what happened since then */
    MANY_FAILED = 10,        /* of one queue or one error within RECENT_MS */
    RISING_FAILED = 5,       /* of one error, if they are twice as many as in an hour before */
    SCHEDULE_LATE_MS = 10000 /* an idle scheduler comes once a second */
};

struct lead verdict_lead(enum verdict v); /* as lists show it */
enum role verdict_role(enum verdict v);   /* of words and figures that say why; well = plain */

enum verdict verdict_of_age(int64_t age_ms); /* of the oldest ready job; FIELD_NULL = none */
bool verdict_is_recent(int64_t at_ms, int64_t now_ms);
/* Many failed within the hour: bad. Many failed before it, or nobody knows when: a warning. */
enum verdict verdict_of_failed(const struct queue_row *q);
/* trend: by model/store/outlook.h; only one that fills up is a warning by itself. */
enum verdict verdict_of_queue(const struct queue_row *q, enum trend trend, int64_t now_ms);
/* A process that was killed: its session goes at once, its heartbeat is missed later. */
bool node_is_cut_off(const struct node_row *n);
/* foreign: a node that nobody knows is no trouble by itself there. */
enum verdict verdict_of_node(const struct node_row *n, bool foreign);
/* Many failed with it in the last hour, or twice as many as in a usual one; the first did so. */
enum fail_trend { FAIL_OLD, FAIL_NEW, FAIL_RISING };
enum fail_trend fail_trend_of(const struct group_row *g, int64_t now_ms);
enum verdict verdict_of_group(const struct group_row *g, int64_t now_ms);
enum verdict verdict_of_job(const struct job_row *j, int64_t now_ms);
enum verdict verdict_of_schedule(const struct schedule_row *s, int64_t now_ms);
enum verdict verdict_of_session(const struct health_session *s, int64_t now_ms);
enum verdict verdict_of_table(const struct health_table *t);

#endif
