/* The hosts of the nodes, one in a row, the worst first. The box shows whether a node's trouble
 * comes from its host or from its version. */
#ifndef UI_SCREEN_NODES_HOSTS_H
#define UI_SCREEN_NODES_HOSTS_H

#include "ui/console/app.h"

enum { HOSTS_LEAST_W = 100, HOSTS_LEAST_H = 4 };

/* The rows that the box needs for this many nodes at most. draw shows as many hosts as have room.
 */
int nodes_hosts_height(const struct node_row *rows, int n);
void nodes_hosts_draw(struct app *a, struct rect r, const struct node_row *rows, int n);

#endif
