/* The rows and columns of the table of queues. A row is a copy of the queue's row with calculated
 * figures: a rank for sorting, the slots that can work for the queue, the time until it is empty.
 */
#ifndef UI_FACTS_QUEUE_COLUMNS_H
#define UI_FACTS_QUEUE_COLUMNS_H

#include "model/store/store.h"
#include "ui/facts/verdict.h"
#include "ui/term/fmt.h"
#include "ui/widget/list.h"

struct queue_line { /* the queue_row must be the first member */
    struct queue_row q;
    struct outlook o;
    struct slots slots;
    int64_t oldest_rank; /* age of the oldest ready job in steps; FIELD_NULL = none */
    int64_t capacity;   /* jobs at a time that the limit and the living nodes allow; FIELD_NULL = no
                           limit known */
    int64_t empty_rank; /* time until it is empty, for sorting; FIELD_NULL = nothing waits */
    double fills_per_s; /* NAN = the queue does not fill up */
    const char *trend, *held; /* data as words; "" = none */
    enum verdict verdict;
};

extern const struct column queue_columns[];
/* ctx of the list: the store. */
extern const struct list_def list_of_queues;

int64_t queue_age(const struct queue_row *q, int64_t now_ms); /* FIELD_NULL = nothing is ready */
/* Copies of the living nodes that have a number of slots. They are found once, because there may be
 * many dead nodes and many queues. */
struct workers {
    struct node_row *rows;
    int n;
    bool told;           /* this queue system registers nodes */
    int64_t slots, used; /* of all nodes that are not dead; draining ones count */
    int64_t lost;        /* of all nodes: their lost jobs (node_lost) */
    int64_t beyond;      /* of the living: jobs that they hold besides (node_beyond), and all jobs
                            of those that gave no slots */
};
struct workers workers_of(const struct node_row *nodes, int n);
/* How many slots are in use, by the sum of the queues: the screen shows both, and the nodes were
 * read at another time. */
int64_t workers_used(const struct workers *w, const struct queue_row *totals);
void workers_done(struct workers *w);
void queue_line_fill(struct queue_line *l, const struct queue_row *q, const struct workers *w,
                     int64_t now_ms);

/* "14/16": the jobs that run, and the most that limit and nodes allow; "16/16+3" if more run: lost
 * ones, or a limit was lowered. Without the most if it is not known or w cells are too few. */
struct fmt queue_running(const struct queue_line *l, int w);
/* "14:41", "steady", "wait <1m", "turning", "never, +4.8/s", "nothing completes", in at most w
 * cells. "" = nothing to say. */
struct fmt queue_empty_at(const struct queue_line *l, int64_t now_ms, bool utc, int w);
/* The trend: "fills up by 4.8 jobs/s since 13:55, 17,600 wait in an hour"; then the cause and what
 * helps: "held by slots: all 22 are in use; 3 more hold it level". "" = nothing to say. */
void queue_say_trend(const struct queue_line *l, int64_t now_ms, bool utc, struct buf *out);
void queue_say_advice(const struct queue_line *l, struct buf *out);
void queue_say_why(const struct queue_line *l, int64_t now_ms, bool utc,
                   struct buf *out); /* both sentences */
/* "limit 5", "slots", "paused"; "" = nothing holds it. */
struct fmt queue_held_by(const struct queue_line *l);

#endif
