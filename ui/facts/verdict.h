/* How bad a row is, by the limits of model/store/conditions.def. The first column of each table
 * shows the verdict, the tabs and the header count it. Pure: rows in. */
#ifndef UI_FACTS_VERDICT_H
#define UI_FACTS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/record.h"
#include "model/store/conditions.h"
#include "model/store/health.h"
#include "model/store/outlook.h"
#include "ui/widget/list.h"

enum {
    RECENT_MS = 3600000, /* only failures since then are red */
    RISING_FAILED = 5    /* failures of one error, twice as many as usual */
};

struct sign verdict_sign(enum verdict v); /* the sign that lists show */
enum role verdict_role(enum verdict v);   /* colour of the cause; well = plain */

enum verdict verdict_of_age(int64_t age_ms); /* age of the oldest ready job; FIELD_NULL = none */
bool verdict_is_recent(int64_t at_ms, int64_t now_ms);
/* Many jobs failed within the hour and are failed still: bad. If it is not known how many of these
 * are left: many failed within the hour, and many are left or jobs fail now. Many failed earlier,
 * or at an unknown time: a warning. */
enum verdict verdict_of_failed(const struct queue_row *q);
/* trend: from model/store/outlook.h; by itself only a queue that fills up is a warning. */
enum verdict verdict_of_queue(const struct queue_row *q, enum trend trend, int64_t now_ms);
/* The worker's process was killed: its session is gone at once, but its heartbeat is missed only
 * later. */
bool node_is_cut_off(const struct node_row *n);
/* foreign: another queue system, in which a node of unknown state is no trouble. */
enum verdict verdict_of_node(const struct node_row *n, bool foreign);
/* RISING: many failed in the last hour, or twice as many as usual. NEW: the first one failed in the
 * last hour. */
enum fail_trend { FAIL_OLD, FAIL_NEW, FAIL_RISING };
enum fail_trend fail_trend_of(const struct group_row *g, int64_t now_ms);
enum verdict verdict_of_group(const struct group_row *g, int64_t now_ms);
enum verdict verdict_of_job(const struct job_row *j, int64_t now_ms);
enum verdict verdict_of_lateness(const struct schedule_row *s,
                                 int64_t now_ms); /* by its next run */
enum verdict verdict_of_schedule(const struct schedule_row *s, int64_t now_ms);
enum verdict verdict_of_session(const struct health_session *s, int64_t now_ms);
enum verdict verdict_of_table(const struct health_table *t);

#endif
