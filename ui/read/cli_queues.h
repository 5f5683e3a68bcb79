/* The queues for a verb: one look by a store of its own. */
#ifndef UI_READ_CLI_QUEUES_H
#define UI_READ_CLI_QUEUES_H

#include "ui/cli/cli_open.h"
#include "ui/facts/life.h"
#include "ui/facts/queue_columns.h"

struct queues_look {
    struct store *store;
    struct queue_line *lines; /* one for each queue, in the server's order */
    int n;
    bool foreign;
};

enum queues_besides {
    BESIDES_LIFE = 1, /* whether anybody works */
    BESIDES_TIMES = 2 /* the rates per second and the times of the jobs: the most expensive */
};

/* Asks for the queues, their pace, the nodes, and what else the bits name. */
bool queues_look(struct cli_queue *q, unsigned besides, struct queues_look *l, struct err *e)
    __attribute__((warn_unused_result));
void queues_done(struct queues_look *l);
/* Whether anybody works, by the rules of ui/facts/life.h; the texts live as long as the cli. */
int queues_troubles(const struct cli_queue *q, const struct queues_look *l, struct trouble *out);

#endif
