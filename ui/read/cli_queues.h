/* The queues for a verb, joined from the answers of one transaction. */
#ifndef UI_READ_CLI_QUEUES_H
#define UI_READ_CLI_QUEUES_H

#include "ui/cli/cli_open.h"
#include "ui/facts/life.h"
#include "ui/facts/queue_columns.h"

enum look_part {
    LOOK_QUEUES,
    LOOK_COUNTS,
    LOOK_LIFE,
    LOOK_PACE,
    LOOK_NODES,
    LOOK_RATES, /* these two only if times are asked for */
    LOOK_TIMES,
    LOOK_PARTS
};

struct queues_look {
    struct rowset rows[LOOK_PARTS];
    struct queue_line *lines; /* one for each queue */
    int n;
    bool foreign;
};

/* times: also asks for the rates per second and for the times of the jobs, the most expensive
 * questions. A section that the adapter lacks gives no rows. */
bool queues_look(struct cli_queue *q, bool times, struct queues_look *l, struct err *e)
    __attribute__((warn_unused_result));
void queues_done(struct queues_look *l);
/* Whether anybody works, by the rules of ui/facts/life.h; the texts live as long as the cli. */
int queues_troubles(const struct cli_queue *q, const struct queues_look *l, struct trouble *out);
const struct life_row *queues_life(const struct queues_look *l); /* NULL = not known */

#endif
