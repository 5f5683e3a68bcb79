/* Several lists on one page. The pane with the focus gets the keys, Tab goes to the next. Each
 * pane stands below a rule with its title; a wide page has two columns. If there is not enough
 * room for all, the last panes are left out, but never the one with the focus. */
#ifndef UI_SCREEN_PANES_H
#define UI_SCREEN_PANES_H

#include "ui/widget/list.h"

enum { PANES_MOST = 6, PANES_TWO_W = 110 }; /* as wide as that, a page has two columns */

struct pane {
    const char *title;
    struct list *list;
    const char *empty; /* shown if the list has no row */
};

struct panes {
    struct pane list[PANES_MOST];
    int n, focus;
    bool shown[PANES_MOST]; /* had room when they were drawn last */
};

void panes_add(struct panes *p, const char *title, const struct list_def *def, void *ctx);
void panes_done(struct panes *p);
struct list *panes_list(const struct panes *p); /* the list of the pane with the focus */
void panes_step(struct panes *p, int step);
/* look is for all panes; the focus and the empty text are set for each pane. */
void panes_draw(struct panes *p, struct grid *g, struct rect r, const struct list_look *look);

#endif
