/* The rows and columns of the table of queues. Rows are copies with what is worked out from others:
 * a rank for sorting, the slots that could work for the queue, when it will be empty. */
#ifndef UI_FACTS_QUEUE_COLUMNS_H
#define UI_FACTS_QUEUE_COLUMNS_H

#include "model/store/store.h"
#include "ui/facts/verdict.h"
#include "ui/term/fmt.h"
#include "ui/widget/list.h"

struct queue_line { /* its queue_row first */
    struct queue_row q;
    struct outlook o;
    struct slots slots;
    int64_t oldest_rank; /* age of the oldest ready job in steps; FIELD_NULL = none */
    int64_t capacity;    /* jobs at a time that limit and living nodes allow; FIELD_NULL = no limit
                            known */
    int64_t empty_rank;  /* how long until it is empty, for sorting; FIELD_NULL = nothing waits */
    double fills_per_s;  /* NAN = it does not fill up */
    const char *trend, *held; /* words of data; "" = none */
    enum verdict verdict;
};

extern const struct column queue_columns[];
/* ctx of the list: the store. */
extern const struct list_def list_of_queues;

int64_t queue_age(const struct queue_row *q, int64_t now_ms); /* FIELD_NULL = nothing is ready */
/* Copies of the living nodes that say how many slots they have: found once, as there may be many
 * dead ones and many queues. */
struct workers {
    struct node_row *rows;
    int n;
    bool told;           /* nodes make themselves known there */
    int64_t slots, used; /* of all that are not dead, those that drain too */
};
struct workers workers_of(const struct node_row *nodes, int n);
void workers_done(struct workers *w);
bool worker_takes(const struct node_row *n, const char *queue);
void queue_line_fill(struct queue_line *l, const struct queue_row *q, const struct workers *w,
                     int64_t now_ms);

/* "14:41", "steady", "never, +4.8/s", "nothing completes"; in w cells. "" = nothing is to say. */
struct fmt queue_empty_at(const struct queue_line *l, int64_t now_ms, bool utc, int w);
/* What becomes of it: "fills up by 4.8 jobs/s since 13:55, 17,600 wait in an hour"; why, and what
 * helps: "held by slots: all 22 are in use; 3 more hold it level". "" = nothing is to say. */
void queue_say_trend(const struct queue_line *l, int64_t now_ms, bool utc, struct buf *out);
void queue_say_advice(const struct queue_line *l, struct buf *out);
/* "limit 5", "slots", "paused"; "" = nothing holds it. */
struct fmt queue_held_by(const struct queue_line *l);

#endif
