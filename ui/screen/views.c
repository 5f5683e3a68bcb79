/*
 * All views by name and by digit. To add a screen, add a row here.
 */
#include "ui/screen/views.h"

#include <string.h>

const struct view_ops *const view_table[] = {
    &view_queues, &view_jobs,     &view_failures, &view_nodes, &view_schedules, &view_audit,
    &view_health, &view_messages, &view_job,      &view_help,  &view_overview,  &view_queue,
    &view_node,   &view_events,   &view_happened, NULL,
};

bool
view_in_pane(struct view *v)
{
    return v->ops->page || (v->ops->panes && v->ops->panes(v) == PANES_BESIDE);
}

const struct view_ops *
view_named(const char *name)
{
    for (int i = 0; view_table[i]; i++)
        if (!strcmp(view_table[i]->name, name))
            return view_table[i];
    return NULL;
}

const struct view_ops *
view_screen(int digit)
{
    for (int i = 0; view_table[i]; i++)
        if (view_table[i]->screen == digit && digit > 0)
            return view_table[i];
    return NULL;
}
