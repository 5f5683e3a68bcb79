/* The evidence that a node is alive: its heartbeat, its leases, its session in the database. */
#ifndef UI_SCREEN_NODE_EVIDENCE_H
#define UI_SCREEN_NODE_EVIDENCE_H

#include "ui/console/app.h"

void node_evidence(struct grid *g, struct rect r, const struct node_row *n, const struct app *a);

#endif
