/* The table of roles and themes. In themes of eight colours or fewer the selection is reverse
 * video, because bold black on a colour can't be read there. No role is shown only by dim text. A
 * selected row of a list keeps its colours: only its ground changes. */
#include "ui/term/style.h"

#include <assert.h>
#include <string.h>

enum { B = STYLE_BOLD, R = STYLE_REVERSE, U = STYLE_UNDERLINE };

/* dark, light, contrast, 16, 8, mono; each fg, bg, attributes */
static const struct style styles[ROLES][THEMES] = {
    [ROLE_TEXT] = {{-1, -1, 0},  {-1, -1, 0},   {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_DIM] = {{245, -1, 0}, {241, -1, 0},  {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_STRONG] = {{-1, -1, B},  {-1, -1, B},   {231, 16, B},  {-1, -1, B}, {-1, -1, B}, {-1, -1, B}    },
    [ROLE_HEADER] = {{231, 24, B}, {231, 24, B},  {16, 231, B},  {15, 4, B},  {7, 4, B},   {-1, -1, R}    },
    [ROLE_HEADER_PROD] =
        {{231, 88, B}, {231, 124, B}, {16, 226, B},  {15, 1, B},  {7, 1, B},   {-1, -1, R | B}},
    [ROLE_TAB] = {{245, -1, 0}, {241, -1, 0},  {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_TAB_ON] =
        {{16, 253, 0}, {231, 238, 0}, {16, 231, B},  {0, 7, 0},   {-1, -1, R}, {-1, -1, R}    },
    [ROLE_CRUMB] = {{-1, -1, 0},  {-1, -1, 0},   {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_TITLE] =
        {{245, -1, 0}, {241, -1, 0},  {231, 16, U},  {-1, -1, U}, {-1, -1, U}, {-1, -1, U}    },
    [ROLE_SELECTED] =
        {{16, 39, B},  {231, 25, B},  {16, 226, B},  {-1, -1, R}, {-1, -1, R}, {-1, -1, R}    },
    [ROLE_MARK] = {{220, -1, B}, {130, -1, B},  {226, 16, B},  {11, -1, B}, {3, -1, B},  {-1, -1, B}    },
    [ROLE_GOOD] = {{78, -1, 0},  {28, -1, 0},   {51, 16, 0},   {10, -1, 0}, {2, -1, 0},  {-1, -1, 0}    },
    [ROLE_WARN] = {{214, -1, 0}, {130, -1, 0},  {226, 16, B},  {11, -1, 0}, {3, -1, 0},  {-1, -1, B}    },
    [ROLE_BAD] = {{203, -1, B}, {160, -1, B},  {231, 124, B}, {9, -1, B},  {1, -1, B},  {-1, -1, B}    },
    [ROLE_HEADING] =
        {{-1, -1, B},  {-1, -1, B},   {231, 16, B},  {-1, -1, B}, {-1, -1, B}, {-1, -1, B}    },
    [ROLE_CODE] = {{-1, -1, 0},  {-1, -1, 0},   {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_CODE_KEY] =
        {{109, -1, 0}, {66, -1, 0},   {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_KEY] = {{75, -1, B},  {25, -1, B},   {51, 16, B},   {12, -1, B}, {6, -1, B},  {-1, -1, B}    },
    [ROLE_KEY_HELP] =
        {{245, -1, 0}, {241, -1, 0},  {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_OFF] = {{240, -1, 0}, {248, -1, 0},  {250, 16, 0},  {8, -1, 0},  {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_BORDER] =
        {{242, -1, 0}, {247, -1, 0},  {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_BORDER_ASK] =
        {{214, -1, 0}, {130, -1, 0},  {226, 16, B},  {11, -1, 0}, {3, -1, 0},  {-1, -1, B}    },
    [ROLE_BOX_TITLE] =
        {{-1, -1, B},  {-1, -1, B},   {231, 16, B},  {-1, -1, B}, {-1, -1, B}, {-1, -1, B}    },
    [ROLE_INPUT] = {{231, 24, B}, {16, 153, 0},  {16, 51, 0},   {15, 4, B},  {-1, -1, U}, {-1, -1, U}    },
    [ROLE_INPUT_BAD] =
        {{203, 24, U}, {160, 153, U}, {16, 226, U},  {9, 4, U},   {1, -1, U},  {-1, -1, R}    },
    [ROLE_CHART] = {{109, -1, 0}, {66, -1, 0},   {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_CHART_WARN] =
        {{214, -1, 0}, {130, -1, 0},  {226, 16, 0},  {11, -1, 0}, {3, -1, 0},  {-1, -1, 0}    },
    [ROLE_BAR] = {{-1, -1, 0},  {-1, -1, 0},   {231, 16, 0},  {-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_BAR_REST] =
        {{238, -1, 0}, {250, -1, 0},  {244, 16, 0},  {8, -1, 0},  {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_STALE] = {{243, -1, 0}, {245, -1, 0},  {250, 16, 0},  {8, -1, 0},  {-1, -1, 0}, {-1, -1, 0}    },
    [ROLE_SHADE] = {{240, -1, 0}, {248, -1, 0},  {244, 16, 0},  {8, -1, 0},  {-1, -1, 0}, {-1, -1, 0}    },
};

static const char *const names[THEMES] = {"dark", "light", "contrast", "16", "8", "mono"};

static const char letters[] = ".dsHPtTclSmgwbhjJkeoxXBnNaAfrzq";
static_assert(sizeof letters - 1 == ROLES, "one letter a role");

const struct style *
style_of(enum theme theme, enum role role)
{
    assert(theme < THEMES && role < ROLES);
    return &styles[role][theme];
}

/* The theme contrast: only black can be read on its yellow; a role with a background of its own
 * keeps its colours. */
struct style
style_on(enum theme theme, enum role role, enum ground ground)
{
    static const short bg[THEMES] = {236, 254, 226, -1, -1, -1};
    struct style s = *style_of(theme, role);

    if (ground == GROUND_NONE)
        return s;
    if (bg[theme] < 0) {
        s.attrs |= ground == GROUND_NAME ? R : 0;
        return s;
    }
    bool is_own = s.bg >= 0 && s.bg != style_of(theme, ROLE_TEXT)->bg;
    if (theme == THEME_CONTRAST && !is_own)
        s.fg = style_of(theme, ROLE_SELECTED)->fg;
    s.bg = is_own ? s.bg : bg[theme];
    s.attrs |= ground == GROUND_NAME ? B : 0;
    return s;
}

enum theme
style_choose(int colors, enum color_when when, const char *no_color, bool light)
{
    bool none = when == COLOR_NEVER || (when == COLOR_AUTO && no_color && *no_color);

    if (none || colors < 8)
        return THEME_MONO;
    if (colors < 16 || colors > 256) /* with direct colour only the first eight are a palette */
        return THEME_8;
    if (colors < 256)
        return THEME_16;
    return light ? THEME_LIGHT : THEME_DARK;
}

bool
style_theme(const char *name, enum theme *out)
{
    for (int i = 0; i < THEMES; i++)
        if (!strcmp(names[i], name)) {
            *out = (enum theme)i;
            return true;
        }
    return false;
}

char
style_letter(enum role role)
{
    return role < ROLES ? letters[role] : '?';
}
