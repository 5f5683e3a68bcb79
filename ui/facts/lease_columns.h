/* The table of leases: below the nodes, and on the pages of a queue and of a node; and what becomes
 * of the leases of a node that is gone. */
#ifndef UI_FACTS_LEASE_COLUMNS_H
#define UI_FACTS_LEASE_COLUMNS_H

#include "model/adapter/record.h"
#include "ui/term/fmt.h"
#include "ui/widget/list.h"

struct lease_line {
    struct lease_row l;
    char *id;
};

enum { LEASE_QUEUE_COLUMN = 2, LEASE_NODE_COLUMN = 3 };
extern const struct column lease_columns[];
extern const struct list_def list_of_leases;  /* the first to end on top */
extern const struct list_def list_of_running; /* the longest on top */

struct leases { /* lines made of rows; they borrow the rows' texts */
    struct lease_line *rows;
    int n;
};
/* Those of one node, of one queue; NULL = any. */
void leases_take(struct leases *l, const struct lease_row *rows, int n, const char *node,
                 const char *queue);
void leases_done(struct leases *l);

/* What L does with them, and what becomes of them if nobody does anything: "L releases all 9 leases
 * (16 jobs); left alone, the scheduler takes 8 jobs back now and 8 by 14:25:08". */
void leases_say_release(const struct leases *l, const struct node_row *of, int64_t now_ms, bool utc,
                        struct buf *out);
/* Id of the first job of a lease, in out; "" = not known. */
struct fmt lease_first_job(const struct lease_row *l);

#endif
