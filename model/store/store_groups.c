/*
 * Failed jobs by their error, and one of these groups in detail.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/fail_day.h"
#include "model/store/store_parts.h"

enum { GROUPS_MOST = 200 };

/* Gives each group its day. times NULL = the adapter does not report times. */
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
    bool by_error = !s->slots[TOPIC_GROUPS].params.value[PARAM_SETTINGS];

    if (reply->n > 1 && !record_decode(&record_fail_time, db_take(reply, 1), &times, e))
        return false;
    struct rowset rows;
    bool good = record_decode(&record_group, db_take(reply, 0), &rows, e);
    if (good) {
        rowset_free(&s->groups.rows);
        s->groups.rows = rows;
        join_days(&s->groups, by_error && reply->n > 1 ? &times : NULL,
                  now ? now : clock_wall_ms());
    }
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
    struct params *p = &s->slots[TOPIC_GROUPS].params;

    params_set(p, PARAM_SETTINGS, by);
    params_set(p, PARAM_QUEUE, queue);
    params_set_int(p, PARAM_LIMIT, GROUPS_MOST);
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

bool
store_groups_are_all(const struct store *s)
{
    const struct topic_slot *slot = &s->slots[TOPIC_GROUPS];

    return slot->chosen && !slot->params.value[PARAM_SETTINGS] && !slot->params.value[PARAM_QUEUE];
}

const struct group_row *
store_find_group(const struct store *s, const char *queue, const char *error_key, bool *is_known)
{
    const struct topic_slot *slot = &s->slots[TOPIC_GROUPS];
    const char *asked = slot->params.value[PARAM_QUEUE];
    int n;
    const struct group_row *rows = store_groups(s, &n);

    *is_known = false;
    if (!slot->info.has_data || slot->params.value[PARAM_SETTINGS])
        return NULL;
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].queue, queue) && !strcmp(rows[i].error_key, error_key)) {
            *is_known = true;
            return &rows[i];
        }
    *is_known = n < GROUPS_MOST && (!asked || !strcmp(asked, queue));
    return NULL;
}

/* --- one group -------------------------------------------------------------------------------- */

bool
store_take_group(struct store *s, struct db_reply *reply, struct err *e)
{
    struct group_topic new = {.step_ms = s->group.step_ms};
    bool good = record_decode(&record_group_facts, db_take(reply, 0), &new.facts, e) &&
                record_decode(&record_group_part, db_take(reply, 1), &new.parts, e) &&
                record_decode(&record_group_sample, db_take(reply, 2), &new.samples, e);

    if (good && new.facts.n != 1)
        good = fail(e, ERR_DATA, "%d rows of facts about a group, not 1", new.facts.n);
    struct group_topic old = good ? s->group : new;
    if (good)
        s->group = new;
    rowset_free(&old.facts);
    rowset_free(&old.parts);
    rowset_free(&old.samples);
    return good;
}

void
store_clear_group(struct store *s)
{
    rowset_free(&s->group.facts);
    rowset_free(&s->group.parts);
    rowset_free(&s->group.samples);
}

static bool
is_asked(const struct store *s, const char *queue, const char *error_key)
{
    const struct params *p = &s->slots[TOPIC_GROUP].params;

    return p->value[PARAM_QUEUE] && !strcmp(p->value[PARAM_QUEUE], queue) &&
           !strcmp(p->value[PARAM_ERROR], error_key);
}

void
store_ask_group(struct store *s, const char *queue, const char *error_key, int64_t step_ms)
{
    struct params *p = &s->slots[TOPIC_GROUP].params;

    if (is_asked(s, queue, error_key) && s->group.step_ms == step_ms)
        return;
    params_set(p, PARAM_QUEUE, queue);
    params_set(p, PARAM_ERROR, error_key);
    params_set_interval(p, PARAM_BY, step_ms);
    s->group.step_ms = step_ms;
    store_choose(s, TOPIC_GROUP);
}

bool
store_group(const struct store *s, const char *queue, const char *error_key,
            struct group_detail *out)
{
    const struct group_topic *t = &s->group;

    if (t->facts.n != 1 || !is_asked(s, queue, error_key))
        return false;
    *out = (struct group_detail){.facts = t->facts.rows,
                                 .parts = t->parts.rows,
                                 .samples = t->samples.rows,
                                 .nparts = t->parts.n,
                                 .nsamples = t->samples.n,
                                 .step_ms = t->step_ms};
    return true;
}
