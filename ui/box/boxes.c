/* The boxes that the console opens by itself, for app_options. */
#include "ui/box/box.h"

const struct app_boxes boxes = {
    .palette = box_palette,
    .filter = box_filter,
    .actions = box_actions,
    .sort = box_sort,
    .columns = box_columns,
    .sql = box_sql,
    .sources = box_sources,
    .progress = box_progress,
    .password = box_password,
    .password_settle = box_password_settle,
    .trust = box_trust,
    .prose = box_prose,
    .quit = &quit_ops,
};
