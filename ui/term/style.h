/* The meaning of a cell (its role), and how each theme shows it. Roles are meanings, never colours.
 * A word or a glyph always has the same meaning as the role, because some themes have no colour.
 * This file does not know curses: term.c turns a style into attributes. */
#ifndef UI_TERM_STYLE_H
#define UI_TERM_STYLE_H

#include <stdbool.h>

enum role {
    ROLE_TEXT,        /* plain */
    ROLE_DIM,         /* labels, hints, less important text */
    ROLE_STRONG,      /* figures and words that matter */
    ROLE_HEADER,      /* line 1 */
    ROLE_HEADER_PROD, /* line 1 when the service is marked production, or data is stale */
    ROLE_TAB,         /* tabs of line 2 */
    ROLE_TAB_ON,      /* the tab of this screen */
    ROLE_CRUMB,       /* where we are, links */
    ROLE_TITLE,       /* titles of columns */
    ROLE_SELECTED,    /* the selected choice of a menu or a form */
    ROLE_MARK,        /* marked rows */
    ROLE_GOOD,        /* good news: an act that was done */
    ROLE_WARN,        /* needs a look today */
    ROLE_BAD,         /* needs an act now; errors */
    ROLE_HEADING,     /* headings inside a page (PAYLOAD, ATTEMPTS) */
    ROLE_CODE,        /* payloads, SQL */
    ROLE_CODE_KEY,    /* names of members in JSON */
    ROLE_KEY,         /* a key in the footer or in a dialog */
    ROLE_KEY_HELP,    /* the word for that key */
    ROLE_OFF,         /* a command or choice that is not possible now */
    ROLE_BORDER,      /* boxes and rules */
    ROLE_BORDER_ASK,  /* the box of a dialog that waits for an answer */
    ROLE_BOX_TITLE,
    ROLE_INPUT,     /* a line being typed */
    ROLE_INPUT_BAD, /* the wrong part of that line */
    ROLE_CHART,
    ROLE_CHART_WARN,
    ROLE_BAR, /* done part of a progress bar */
    ROLE_BAR_REST,
    ROLE_STALE, /* rows whose data is old */
    ROLE_SHADE, /* everything behind a dialog */
    ROLES
};

/* What lies under a cell, whatever its role: the selected row keeps the colours of its cells. */
enum ground {
    GROUND_NONE,
    GROUND_ROW,  /* the selected row: another background, if there are colours */
    GROUND_NAME, /* its first cell and its name: also bold, or in reverse with few colours */
    GROUNDS
};

enum theme { THEME_DARK, THEME_LIGHT, THEME_CONTRAST, THEME_16, THEME_8, THEME_MONO, THEMES };

enum style_attr { STYLE_BOLD = 1, STYLE_REVERSE = 2, STYLE_UNDERLINE = 4 };

struct style {
    short fg, bg; /* palette index of the terminal, -1 = its default */
    unsigned attrs;
};

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER }; /* --color */

/* The style of a role. */
const struct style *style_of(enum theme theme, enum role role);
/* The style of a role on a ground. */
struct style style_on(enum theme theme, enum role role, enum ground ground);

/* The theme for a terminal with this number of colours. no_color: the value of the variable
 * NO_COLOR; it counts only under COLOR_AUTO, and only if it is set and not empty. */
enum theme style_choose(int colors, enum color_when when, const char *no_color, bool light);

/* Finds a theme by name: "dark", "light", "contrast", "16", "8", "mono"; false = unknown. */
bool style_theme(const char *name, enum theme *out);

/* One letter for each role, for the role maps of tests ('.' = ROLE_TEXT). */
char style_letter(enum role role);

#endif
