/* The table of sources, a row for each, made from sources_line. It is shown in the menu of S, and
 * below the overview if there is room. */
#ifndef UI_FACTS_SOURCE_COLUMNS_H
#define UI_FACTS_SOURCE_COLUMNS_H

#include "model/source/sources.h"
#include "ui/widget/list.h"

struct source_row {
    struct source_line line;
    int at;             /* its index */
    bool here;          /* it is the one on the screen */
    const char *system; /* as it sorts */
};

extern const struct list_def list_of_sources;

/* Fills all rows; rows has room for SOURCES_MAX. Returns how many. */
int source_rows(const struct sources *ss, int front, struct source_row *rows);
enum role source_state_role(enum source_state s);
/* Title and version, or the adapter's name and version if the title does not fit. */
void source_draw_system(struct grid *g, struct rect r, const struct source_line *l);
bool source_is_bad(enum source_state s); /* its numbers may be out of date */
/* What the user should know about the source, in one line: "unreachable: connection refused"; "" =
 * nothing. */
void source_say(const struct source_line *l, struct buf *out);

#endif
