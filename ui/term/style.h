/* What a cell means (its role), and how each theme shows that. Roles are meanings, never colours.
 * What a role says is also said by a word or a glyph, because some themes have no colour at all.
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
    ROLE_GOOD,        /* what came back to well: an act that was done */
    ROLE_WARN,        /* wants a look today */
    ROLE_BAD,         /* wants an act now; errors */
    ROLE_HEADING,     /* headings inside a page (PAYLOAD, ATTEMPTS) */
    ROLE_CODE,        /* payloads, SQL */
    ROLE_KEY,         /* a key in the footer or in a dialog */
    ROLE_KEY_HELP,    /* what it does */
    ROLE_OFF,         /* a command or choice that is not possible now */
    ROLE_BORDER,      /* boxes and rules */
    ROLE_BORDER_ASK,  /* the box of a dialog that wants an answer */
    ROLE_BOX_TITLE,
    ROLE_INPUT,     /* a line being typed */
    ROLE_INPUT_BAD, /* the part of it that is wrong */
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
    GROUND_ROW,  /* the selected row: another background, where there are colours for one */
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

/* The look of a role. */
const struct style *style_of(enum theme theme, enum role role);
/* The same on a ground. */
struct style style_on(enum theme theme, enum role role, enum ground ground);

/* The theme for a terminal with this number of colours. no_color is the variable NO_COLOR: it
 * counts if it is set and not empty, and only under COLOR_AUTO. */
enum theme style_choose(int colors, enum color_when when, const char *no_color, bool light);

/* By name: "dark", "light", "contrast", "16", "8", "mono"; false = unknown. */
bool style_theme(const char *name, enum theme *out);

/* One letter a role, for the role maps of tests ('.' = ROLE_TEXT). */
char style_letter(enum role role);

#endif
