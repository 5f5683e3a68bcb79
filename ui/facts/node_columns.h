/* The table of nodes, and what columns of shorter lists of nodes share with it. */
#ifndef UI_FACTS_NODE_COLUMNS_H
#define UI_FACTS_NODE_COLUMNS_H

#include "model/adapter/record.h"
#include "ui/facts/verdict.h"
#include "ui/term/fmt.h"
#include "ui/widget/list.h"

enum { NODE_GAUGE_W = 16 };

/* For the screen rows are node_lines; for the command line, node_rows. */
extern const struct column node_columns[];
extern const struct list_def list_of_nodes;

struct node_line { /* the node_row is first: the columns are its members */
    struct node_row n;
    const char *state; /* as shown: a node whose session is gone is not only "up" */
    enum verdict verdict;
    int trouble; /* sorts the worst first */
};
struct node_line node_line_of(const struct node_row *n, bool foreign);
struct sign node_sign(const void *line, const struct cell_ctx *c);
extern const struct column_special node_state_special; /* of `trouble`, of a node_line */

/* "14/16"; "16/16+3" if it holds 3 more jobs than slots work on, expired ones too; as much of it as
 * fits w cells. */
struct fmt node_at_work(const struct node_row *n, int w);
/* The same as a column; "16 lost" for a dead node, because nobody works on those slots. Rows begin
 * with a node_row. */
extern const struct column_special node_slots_special;
/* The same as a bar; a row of × for a dead node. */
extern const struct column_special node_gauge_special;
void node_draw_gauge(struct grid *g, struct rect r, const struct node_row *n, enum role role);

#endif
