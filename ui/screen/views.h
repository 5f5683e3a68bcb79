/* The screens' records of functions, for the table in ui/screen/views.c only. */
#ifndef UI_SCREEN_VIEWS_H
#define UI_SCREEN_VIEWS_H

#include "ui/console/view.h"

extern const struct view_ops view_health, view_queues, view_jobs, view_failures, view_nodes,
    view_schedules, view_audit, view_messages, view_job, view_help, view_overview, view_queue,
    view_node, view_events, view_happened, view_failed_jobs, view_running_jobs;

#endif
