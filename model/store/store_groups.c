/*
 * Failed jobs by their error, and one of these groups in detail.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/fail_day.h"
#include "model/store/store_parts.h"

/* Each row of the groups gets its day; times NULL = the adapter does not tell them. */
static void
join_days(struct groups_topic *t, const struct rowset *times, int64_t now_ms)
{
    struct group_row *rows = t->rows.rows;

    free(t->days);
    t->days = xcalloc((size_t)t->rows.n + 1, sizeof *t->days);
    bool known = times && fail_days_read(rows, t->rows.n, times->rows, times->n, now_ms, t->days);
    for (int i = 0; i < t->rows.n; i++)
        rows[i].day = known ? &t->days[i] : NULL;
}

bool
store_take_groups(struct store *s, struct db_reply *reply, struct err *e)
{
    struct rowset times = {0};
    int64_t now = store_now_ms(s);

    if (reply->n > 1 && !record_decode(&record_fail_time, db_take(reply, 1), &times, e))
        return false;
    bool good = store_take_one(reply, 0, &record_group, &s->groups.rows, e);
    if (good)
        join_days(&s->groups, reply->n > 1 ? &times : NULL, now ? now : clock_wall_ms());
    rowset_free(&times);
    return good;
}

void
store_clear_groups(struct store *s)
{
    rowset_free(&s->groups.rows);
    free(s->groups.days);
    s->groups.days = NULL;
}

void
store_ask_groups(struct store *s, const char *queue, const char *by)
{
    params_set(&s->slots[TOPIC_GROUPS].params, PARAM_SETTINGS, by);
    params_set(&s->slots[TOPIC_GROUPS].params, PARAM_QUEUE, queue);
    store_choose(s, TOPIC_GROUPS);
}

enum section_id
store_groups_section(const struct store *s, enum section_id sec)
{
    bool by_error = !s->slots[TOPIC_GROUPS].params.value[PARAM_SETTINGS];

    return sec == SEC_GROUPS && !by_error ? SEC_GROUPS_BY : sec;
}

const struct group_row *
store_groups(const struct store *s, int *n)
{
    *n = s->groups.rows.n;
    return s->groups.rows.rows;
}
