/* What a large screen shows below the table of queues: errors, nodes, and the latest events. They
 * concern all queues, and other screens show the same rows in full. */
#ifndef UI_SCREEN_QUEUES_MORE_H
#define UI_SCREEN_QUEUES_MORE_H

#include "ui/console/app.h"

enum { MORE_LEAST_H = 6, MORE_MOST_H = 13, MORE_LEAST_W = 56 };

/* wanted: the store asks for the data of these boxes, or stops asking. */
void queues_more_ask(struct app *a, bool wanted);
/* Errors and nodes side by side. */
void queues_more_draw(struct app *a, struct rect r);
/* Acts, nodes that died, the first and the last time of each error; newest first. */
void queues_more_lately(struct app *a, struct rect r);

#endif
