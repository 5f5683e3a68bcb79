/* Words and glyphs of states, and which columns fit on a screen. The kinds are in column_kind.c. */
#include "ui/widget/column.h"

#include <string.h>

/* --- states ----------------------------------------------------------------------------------- */

static const struct {
    const char *state, *glyph;
    enum role role;
} states[] = {
    {"scheduled",  "…", ROLE_DIM },
    {"ready",      "·",  ROLE_TEXT},
    {"running",    "●", ROLE_TEXT},
    {"retry",      "↻", ROLE_TEXT},
    {"failed",     "×",  ROLE_BAD },
    {"completed",  "✓", ROLE_TEXT},
    {"cancelled",  "‖", ROLE_DIM },
    {"blocked",    "◐", ROLE_TEXT},
    {"up",         "●", ROLE_TEXT},
    {"asleep",     "·",  ROLE_DIM },
    {"draining",   "◐", ROLE_DIM },
    {"late",       "▲", ROLE_WARN},
    {"dead",       "×",  ROLE_BAD },
    {"unknown",    "▲", ROLE_WARN},
    {"cut off",    "▲", ROLE_WARN},
    {"lost",       "×",  ROLE_BAD },
    {"timeout",    "×",  ROLE_BAD },
    {"not pushed", "▲", ROLE_WARN},
    {"gone",       "·",  ROLE_DIM },
    {"waits",      "‖", ROLE_DIM },
    {"active",     "●", ROLE_TEXT},
    {"paused",     "‖", ROLE_DIM },
};

static int
find_state(const char *state)
{
    for (int i = 0; i < (int)(sizeof states / sizeof states[0]); i++)
        if (!strcmp(states[i].state, state))
            return i;
    return -1;
}

const char *
state_glyph(const char *state)
{
    int i = find_state(state);

    return i < 0 ? "·" : states[i].glyph;
}

enum role
state_role(const char *state)
{
    int i = find_state(state);

    return i < 0 ? ROLE_TEXT : states[i].role;
}

/* --- tables ----------------------------------------------------------------------------------- */

int
column_count(const struct column *c)
{
    int n = 0;

    while ((c[n].name || c[n].title) && (!c[n].only || (c[n].only & ON_SCREEN)))
        n++;
    return n;
}

/* --- widths ----------------------------------------------------------------------------------- */

static int
least_width(const struct column *c)
{
    int title = text_width(c->title, strlen(c->title), TEXT_LINE);

    return c->min_w > title ? c->min_w : title;
}

/* The cells that the visible columns need, with the gaps between them. */
static int
total_width(const int *widths, int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++)
        if (widths[i] > 0)
            sum += widths[i] + (sum > 0);
    return sum;
}

/* The column to drop next: the one with the largest `keep`; of equal ones the rightmost. -1 = only
 * the first column is left. */
static int
worst(const struct column *c, const int *widths, int n)
{
    int found = -1;

    for (int i = 1; i < n; i++)
        if (widths[i] > 0 && (found < 0 || c[i].keep >= c[found].keep))
            found = i;
    return found;
}

/* Gives spare width first to columns with a max_w, up to their max_w, then to the last column
 * without a max_w. */
static void
spread(const struct column *c, int n, int spare, int *widths)
{
    for (int i = 0; i < n && spare > 0; i++) {
        int more = widths[i] > 0 && c[i].max_w > widths[i] ? c[i].max_w - widths[i] : 0;
        more = more < spare ? more : spare;
        widths[i] += more;
        spare -= more;
    }
    for (int i = n - 1; i >= 0 && spare > 0; i--)
        if (widths[i] > 0 && c[i].max_w == 0) {
            widths[i] += spare;
            spare = 0;
        }
}

void
column_layout(const struct column *c, int n, const bool *hidden, int w, int *widths)
{
    int drop;

    for (int i = 0; i < n; i++)
        widths[i] = hidden && hidden[i] && i > 0 ? 0 : least_width(&c[i]);
    while (total_width(widths, n) > w && (drop = worst(c, widths, n)) >= 0)
        widths[drop] = 0;
    if (n > 0 && widths[0] > w)
        widths[0] = w > 0 ? w : 0;
    spread(c, n, w - total_width(widths, n), widths);
}
