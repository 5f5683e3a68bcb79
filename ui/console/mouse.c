/*
 * The mouse, where the user asked for it. It looks and goes, it never acts: in a box only the wheel
 * counts, and no click answers a question.
 */
#include "ui/console/app.h"
#include "ui/console/handler.h"

enum { WHEEL_ROWS = 3 };

static void
wheel(struct app *a, bool up)
{
    struct key k = {.code = up ? KC_UP : KC_DOWN};

    for (int i = 0; i < WHEEL_ROWS; i++) {
        if (a->nboxes == 0)
            on_move(a, up ? MOVE_UP : MOVE_DOWN);
        else
            app_key(a, &k);
    }
}

/* The screen whose tab stands at x, 0 = none. */
static int
tab_at(const struct app *a, int x)
{
    for (int i = 0; i < APP_SCREENS; i++)
        if (a->tab_w[i] > 0 && x >= a->tab_at[i] && x < a->tab_at[i] + a->tab_w[i])
            return i;
    return 0;
}

static void
click(struct app *a, int x, int y)
{
    struct view *v = app_view(a);
    struct list *l = v->ops->list ? v->ops->list(v) : NULL;
    int tab = y == 1 ? tab_at(a, x) : 0;

    if (tab > 0) {
        on_screen(a, tab);
        return;
    }
    if (l && list_click(l, x, y, !no_sort(a, 0)) == HIT_SELECTED && !no_row(a, 0))
        on_open(a, 0);
}

void
app_mouse(struct app *a, const struct key *k)
{
    if (k->code != KC_CLICK)
        wheel(a, k->code == KC_WHEEL_UP);
    else if (a->nboxes == 0)
        click(a, k->x, k->y);
}
