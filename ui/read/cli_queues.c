/*
 * The queues for a verb. A store joins the answers of one transaction, as it does for the console;
 * the verb reads its rows.
 */
#include "ui/read/cli_queues.h"

#include <stdlib.h>

#include "model/base/mem.h"

static int
by_place(const void *a, const void *b)
{
    const struct queue_row *x = *(const struct queue_row *const *)a,
                           *y = *(const struct queue_row *const *)b;

    return (x->place > y->place) - (x->place < y->place);
}

/* Makes lines with calculated figures from the rows. */
static void
fill_lines(const struct cli_queue *q, struct queues_look *l)
{
    int nodes;
    const struct node_row *node = store_nodes(l->store, &nodes);
    struct workers w = workers_of(node, nodes);
    const struct queue_row *rows = store_queues(l->store, &l->n), **order;

    l->lines = xcalloc((size_t)l->n + 1, sizeof *l->lines);
    order = xcalloc((size_t)l->n + 1, sizeof *order);
    for (int i = 0; i < l->n; i++)
        order[i] = &rows[i];
    qsort(order, (size_t)l->n, sizeof *order, by_place);
    for (int i = 0; i < l->n; i++)
        queue_line_fill(&l->lines[i], order[i], &w, q->now_ms);
    free(order);
    workers_done(&w);
}

bool
queues_look(struct cli_queue *q, unsigned besides, struct queues_look *l, struct err *e)
{
    enum topic topics[5] = {TOPIC_QUEUES, TOPIC_PACE, TOPIC_NODES};
    int n = 3;

    *l = (struct queues_look){.foreign = !adapter_has(q->adapter, SEC_RATES)};
    if (besides & BESIDES_LIFE)
        topics[n++] = TOPIC_LIFE;
    if (besides & BESIDES_TIMES)
        topics[n++] = TOPIC_TIMES;
    l->store = store_new_look(q->cli->loop, q->db, q->adapter, besides & BESIDES_TIMES);
    if (!store_look(l->store, topics, n, e)) {
        queues_done(l);
        return false;
    }
    q->now_ms = store_now_ms(l->store);
    fill_lines(q, l);
    return true;
}

void
queues_done(struct queues_look *l)
{
    free(l->lines);
    store_free(l->store);
}

int
queues_troubles(const struct cli_queue *q, const struct queues_look *l, struct trouble *out)
{
    struct life_look look = {.row = store_life(l->store), .now_ms = q->now_ms};

    look.queues = store_queues(l->store, &look.nqueues);
    return look.row ? life_troubles(&look, q->cli->mem, out) : 0;
}
