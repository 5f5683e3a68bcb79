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

static void
replace_rows(struct rowset *old, const struct rowset *with)
{
    rowset_free(old);
    *old = *with;
}

bool
store_take_schedules(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset rows;

    if (!record_decode(&record_schedule, db_take(reply, 0), &rows, e))
        return false;
    replace_rows(&s->schedules.rows, &rows);
    return true;
}

void
store_clear_schedules(struct store *s)
{
    rowset_free(&s->schedules.rows);
}

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

bool
store_take_runs(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset runs, next = {0};

    if (!record_decode(&record_run, db_take(reply, 0), &runs, e))
        return false;
    if (adapter_has(s->adapter, SEC_CRON_NEXT) &&
        !record_decode(&record_run, db_take(reply, 1), &next, e)) {
        rowset_free(&runs);
        return false;
    }
    replace_rows(&s->schedules.runs, &runs);
    replace_rows(&s->schedules.next, &next);
    return true;
}

void
store_clear_runs(struct store *s)
{
    rowset_free(&s->schedules.runs);
    rowset_free(&s->schedules.next);
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
