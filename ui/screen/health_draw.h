/* How the Database screen looks. Everything but the list of transactions is drawn from one snapshot
 * of the database's health; drawing asks nobody. */
#ifndef UI_SCREEN_HEALTH_DRAW_H
#define UI_SCREEN_HEALTH_DRAW_H

#include "model/store/health.h"
#include "ui/widget/list.h"

extern const struct list_def health_sessions_def; /* rows: struct health_session */

struct health_note {    /* ctx of that list */
    const char *holder; /* id of the session that holds vacuum back; "" = none */
    int64_t rows;       /* dead rows that it keeps, at most */
    bool shows_waits;   /* somebody waits, and the list has room for the column WAITS FOR */
};
enum { HEALTH_WAITS_FROM = 78 }; /* from this width on */

struct health_look {
    struct health h;
    struct list *sessions;
    struct list_look look; /* look of that list */
    const char *filter;
    bool tables_stale;
    const char *no_tables; /* shown while no table is known */
    const struct advice *advice;
    int nadvice;
    const double *dead; /* dead rows of dead_name over time, NULL = no chart yet */
    int ndead, step_ms;
    const char *dead_name;
    const char *own; /* the load that this program itself causes */
};
void health_draw(const struct health_look *l, struct grid *g, struct rect r);

#endif
