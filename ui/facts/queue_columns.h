/* The rows and columns of the table of queues. Rows are copies with what is worked out from others:
 * a rank for sorting, the slots that could work for the queue, when it will be empty. */
#ifndef UI_FACTS_QUEUE_COLUMNS_H
#define UI_FACTS_QUEUE_COLUMNS_H

#include "model/store/store.h"
#include "ui/facts/verdict.h"
#include "ui/widget/list.h"

struct queue_line { /* its queue_row first: the command line has no more than that */
    struct queue_row q;
    int64_t oldest_rank; /* age of the oldest ready job in steps; FIELD_NULL = none */
    int64_t capacity;    /* jobs at a time that limit and living nodes allow; FIELD_NULL = no limit
                            known */
    int64_t drain_ms;    /* until nothing is ready at the rates of a minute; FIELD_NULL = nothing
                            is ready, INT64_MAX = not by these rates */
    double used;         /* of the capacity; NAN = unknown */
    double gain;         /* of its backlog, jobs a second; 0 = steady */
    enum verdict verdict;
};

extern const struct column queue_columns[];
/* ctx of the list: the store. */
extern const struct list_def list_of_queues;

int64_t queue_age(const struct queue_row *q, int64_t now_ms); /* FIELD_NULL = nothing is ready */
/* Copies of the living nodes that say how many slots they have: found once, as there may be many
 * dead ones and many queues. The caller frees them. */
struct node_row *queue_workers(const struct store *s, int *n);
void queue_line_fill(struct queue_line *l, const struct queue_row *q, const struct node_row *living,
                     int n, int64_t now_ms);

#endif
