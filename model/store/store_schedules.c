/*
 * The schedules, and the runs of the selected one. Its last and its next runs are one topic,
 * because both change when it runs.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "model/store/store_parts.h"

enum { LAST_RUNS = 30, NEXT_RUNS = 10 };

const struct schedule_row *
store_schedules(const struct store *s, int *n)
{
    *n = s->schedules.rows.n;
    return s->schedules.rows.rows;
}

const struct schedule_row *
store_schedule(const struct store *s, const char *name)
{
    const struct schedule_row *rows = s->schedules.rows.rows;

    for (int i = 0; i < s->schedules.rows.n; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

void
store_ask_runs(struct store *s, const struct schedule_row *of)
{
    struct params *p = &s->slots[TOPIC_RUNS].params;
    struct buf line = {0};

    buf_str(&line, "{\"cron\": ");
    json_string(&line, of->cron, strlen(of->cron));
    buf_str(&line, ", \"tz\": ");
    json_string(&line, of->tz, strlen(of->tz));
    buf_str(&line, "}");
    params_set(p, PARAM_SCHEDULE, of->name);
    params_set(p, PARAM_SETTINGS, strcmp(of->state, "failed") ? line.data : NULL);
    params_set_int(p, PARAM_N, NEXT_RUNS);
    params_set_int(p, PARAM_LIMIT, LAST_RUNS);
    buf_free(&line);
    store_choose(s, TOPIC_RUNS);
}

const struct run_row *
store_runs(const struct store *s, int *n)
{
    *n = s->schedules.runs.n;
    return s->schedules.runs.rows;
}

const struct run_row *
store_next_runs(const struct store *s, int *n)
{
    *n = s->schedules.next.n;
    return s->schedules.next.rows;
}
