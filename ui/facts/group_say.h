/* The sentences about one group of errors: which values the numbers had that became N in its text,
 * which nodes and kinds had the error, what a requeue would do, whether the cause seems to be gone.
 * Pure: snapshots in, texts out. */
#ifndef UI_FACTS_GROUP_SAY_H
#define UI_FACTS_GROUP_SAY_H

#include "model/store/store.h"
#include "ui/widget/column.h"

/* --- N was ------------------------------------------------------------------------------------ */

enum { NUMBER_VALUES = 4, NUMBER_PLACES = 8 };
struct number { /* one of the numbers of an error */
    int place;  /* counts from 1 */
    int n;      /* the named values, the most frequent first */
    int64_t of; /* number of different values */
    const struct group_part_row *values[NUMBER_VALUES];
};
/* The numbers that are worth naming: one value is in at least a quarter of the jobs, or there are
 * few values. An id, which differs in each job, is not. Returns how many numbers; their texts are
 * borrowed from d. */
int group_numbers(const struct group_detail *d, struct number out[NUMBER_PLACES]);

/* Scales n, a count of the jobs that were looked at, up to the group; *approx = 1: the result is an
 * estimate. */
int64_t group_scaled(const struct group_detail *d, const struct group_row *g, int64_t n,
                     int *approx);
int64_t group_looked_at(const struct group_detail *d);
/* The first part of this kind (`what`) and name ("" = any name); NULL = none. */
const struct group_part_row *group_part(const struct group_detail *d, const char *what,
                                        const char *name);

/* "es-3:9200 in all", "503 ~3,200, 500 ~800, 2 others". */
void group_say_number(const struct group_detail *d, const struct group_row *g,
                      const struct number *n, struct buf *out);
/* "worker-1 1,604, worker-2 1,486, 3 others": what = "node", "kind", "tries". */
void group_say_parts(const struct group_detail *d, const struct group_row *g, const char *what,
                     int most, struct buf *out);
/* "p50 12ms, p99 31ms". */
void group_say_took(const struct group_detail *d, struct buf *out);
/* "11-02 03:12 carol requeued 812 jobs: 0 failed again, 3 wait, 809 ended"; "" = nothing is known.
 */
void group_say_past(const struct group_detail *d, int64_t now_ms, bool utc, struct buf *out);

/* --- requeue ---------------------------------------------------------------------------------- */

struct requeue {
    const struct group_row *g;
    const struct queue_row *q; /* NULL = not known */
    bool ours;                 /* queuetop's own queue */
    int64_t now_ms;
    bool utc;
};
void requeue_say_what(const struct requeue *r, struct buf *out); /* "4,000 jobs → ready, ..." */
void requeue_say_before(const struct requeue *r,
                        struct buf *out); /* "behind 5,056 that wait ..." */
/* "at 1.9/s the first of them starts about 14:46, the last about 15:21"; "" = not known. */
void requeue_say_when(const struct requeue *r, struct buf *out);
/* All three sentences in one line: "r: 4,000 jobs run again, one more try each; behind 5,056 that
 * wait: the first starts about 14:46, the last about 15:21". */
void requeue_say_line(const struct requeue *r, struct buf *out);
/* Says whether the cause is gone, judged by the tries since then; true = it may still exist. */
bool group_say_cause(const struct group_detail *d, const struct group_row *g, int64_t now_ms,
                     bool utc, struct buf *out);

#endif
