/*
 * Named values for the statements of an adapter. Everything is text in the form that the server
 * reads; a list is an array literal with every element quoted, so any bytes may stand in it.
 */
#include "model/adapter/params.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/mem.h"

static const char *const names[PARAM_TOTAL] = {
    [PARAM_IDS] = "ids",
    [PARAM_QUEUE] = "queue",
    [PARAM_STATES] = "states",
    [PARAM_KIND] = "kind",
    [PARAM_NODE] = "node",
    [PARAM_ERROR] = "error",
    [PARAM_WORDS] = "words",
    [PARAM_NOT_WORDS] = "not_words",
    [PARAM_OLDER_THAN] = "older_than",
    [PARAM_YOUNGER_THAN] = "younger_than",
    [PARAM_MIN_TRIES] = "min_tries",
    [PARAM_TOP_TRIES] = "top_tries",
    [PARAM_BEFORE] = "before",
    [PARAM_EXPIRED_ONLY] = "expired_only",
    [PARAM_BY] = "by",
    [PARAM_AT] = "at",
    [PARAM_N] = "n",
    [PARAM_COUNT] = "count",
    [PARAM_FAIL] = "fail",
    [PARAM_RESET] = "reset",
    [PARAM_FORCE] = "force",
    [PARAM_EXPECTED] = "expected",
    [PARAM_REASON] = "reason",
    [PARAM_ACTION] = "action",
    [PARAM_BATCH] = "batch",
    [PARAM_LIMIT] = "limit",
    [PARAM_CURSOR] = "cursor",
    [PARAM_SCHEDULE] = "schedule",
    [PARAM_SETTINGS] = "settings",
    [PARAM_PAYLOAD] = "payload",
    [PARAM_IN_PAYLOAD] = "in_payload",
    [PARAM_PATH] = "path",
    [PARAM_OF] = "of",
    [PARAM_RAW_STATES] = "raw_states",
    [PARAM_TABLES] = "tables",
};

const char *
param_name(enum param p)
{
    assert((unsigned)p < PARAM_TOTAL);
    return names[p];
}

bool
param_find(const char *name, int len, enum param *p)
{
    for (int i = 0; i < PARAM_TOTAL; i++)
        if ((int)strlen(names[i]) == len && !memcmp(names[i], name, (size_t)len)) {
            *p = (enum param)i;
            return true;
        }
    return false;
}

bool
param_is_list(enum param p)
{
    return p == PARAM_IDS || p == PARAM_STATES || p == PARAM_WORDS || p == PARAM_NOT_WORDS ||
           p == PARAM_PATH || p == PARAM_RAW_STATES || p == PARAM_TABLES;
}

void
params_done(struct params *p)
{
    for (int i = 0; i < PARAM_TOTAL; i++)
        free(p->value[i]);
    *p = (struct params){0};
}

void
params_copy(struct params *to, const struct params *from)
{
    for (int i = 0; i < PARAM_TOTAL; i++) {
        assert(!to->value[i]);
        to->value[i] = from->value[i] ? xstrdup(from->value[i]) : NULL;
    }
}

void
params_set(struct params *p, enum param name, const char *text)
{
    char *copy = text ? xstrdup(text) : NULL; /* copy first: text may be the old value */

    assert((unsigned)name < PARAM_TOTAL);
    free(p->value[name]);
    p->value[name] = copy;
}

void
params_set_int(struct params *p, enum param name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, value);
    params_set(p, name, text);
}

void
params_set_bool(struct params *p, enum param name, bool value)
{
    params_set(p, name, value ? "true" : "false");
}

void
params_set_interval(struct params *p, enum param name, int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {
        {3600000, "h"  },
        {60000,   "min"},
        {1000,    "s"  },
        {1,       "ms" }
    };
    size_t i = 0;
    char text[64];

    while (ms % units[i].ms != 0)
        i++;
    snprintf(text, sizeof text, "%" PRId64 " %s", ms / units[i].ms, ms == 0 ? "s" : units[i].name);
    params_set(p, name, text);
}

void
params_set_time(struct params *p, enum param name, int64_t ms)
{
    time_t s = (time_t)(ms / 1000 - (ms % 1000 < 0));
    int part = (int)(ms - (int64_t)s * 1000);
    struct tm tm;
    char day[40], text[64];

    if (!gmtime_r(&s, &tm) || !strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &tm)) {
        params_set(p, name, NULL);
        return;
    }
    snprintf(text, sizeof text, "%s.%03d+00", day, part);
    params_set(p, name, text);
}

char *
params_group(const char *error_key)
{
    return xasprintf("%s%s", *error_key == '~' ? " " : "", error_key);
}

void
params_set_group(struct params *p, const char *error_key)
{
    char *group = params_group(error_key);

    params_set(p, PARAM_ERROR, group);
    free(group);
}

void
params_set_list(struct params *p, enum param name, const char *const *items, int n)
{
    struct buf b = {0};

    assert(param_is_list(name));
    buf_str(&b, "{");
    for (int i = 0; i < n; i++) {
        buf_str(&b, i ? ",\"" : "\"");
        for (const char *s = items[i]; *s; s++) {
            if (*s == '"' || *s == '\\')
                buf_str(&b, "\\");
            buf_add(&b, s, 1);
        }
        buf_str(&b, "\"");
    }
    buf_str(&b, "}");
    params_set(p, name, b.data);
    buf_free(&b);
}
