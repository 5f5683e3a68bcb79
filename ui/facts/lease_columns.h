/* The table of leases: of the verb, below the nodes, and on the pages of a queue and of a node; and
 * the sentence about the leases of a dead node. */
#ifndef UI_FACTS_LEASE_COLUMNS_H
#define UI_FACTS_LEASE_COLUMNS_H

#include "model/adapter/record.h"
#include "ui/term/fmt.h"
#include "ui/widget/list.h"

struct lease_line { /* the lease_row is first: the command line has rows of it alone */
    struct lease_row l;
    char *id;
};

/* The time left on a lease, or the time since it expired; FIELD_NULL draws nothing. */
void lease_draw_left(struct grid *g, struct rect r, int64_t until_ms, int64_t now_ms);

enum { LEASE_QUEUE_COLUMN = 2, LEASE_NODE_COLUMN = 3 };
extern const struct column lease_columns[];
extern const struct list_def list_of_leases;  /* order: the first to end on top */
extern const struct list_def list_of_running; /* order: the longest on top */

struct leases { /* lines made from rows; they borrow the texts of the rows */
    struct lease_line *rows;
    int n;
};
/* Only leases of this node or this queue; NULL = any. */
void leases_take(struct leases *l, const struct lease_row *rows, int n, const char *node,
                 const char *queue);
void leases_done(struct leases *l);

/* What a release (L) does with them, and what becomes of them without it: "L releases all 9 leases
 * (16 jobs); left alone, the scheduler takes 8 jobs back now and 8 by 14:25:08". */
void leases_say_release(const struct leases *l, const struct node_row *of, int64_t now_ms, bool utc,
                        struct buf *out);
/* Id of the first job of a lease, in out; "" = not known. */
const char *lease_first_job(const struct lease_row *l, struct arena *mem);

#endif
