/* The fixed vocabulary of an adapter's parameters, and a set of values under these names. A value
 * is text as the server parses it; a name that was not set is SQL NULL. The set owns its values. */
#ifndef MODEL_ADAPTER_PARAMS_H
#define MODEL_ADAPTER_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

enum param {
    PARAM_IDS,        /* text[]: full job ids */
    PARAM_QUEUE,      /* text */
    PARAM_STATES,     /* text[]: scheduled ready running retry failed blocked completed cancelled */
    PARAM_KIND,       /* text */
    PARAM_NODE,       /* text */
    PARAM_ERROR,      /* text: the group of this error; "~TEXT" = a substring; see params_group() */
    PARAM_WORDS,      /* text[]: each is a part of id, queue, kind or error, in any case */
    PARAM_NOT_WORDS,  /* text[]: none is */
    PARAM_OLDER_THAN, /* interval */
    PARAM_YOUNGER_THAN, /* interval */
    PARAM_MIN_TRIES,    /* int */
    PARAM_TOP_TRIES,    /* int: the most tries */
    PARAM_BEFORE,       /* timestamptz: only jobs that reached their state before this time */
    PARAM_EXPIRED_ONLY, /* bool */
    PARAM_BY,           /* interval */
    PARAM_AT,           /* timestamptz */
    PARAM_N,            /* int */
    PARAM_COUNT,        /* bool: the lost try counts */
    PARAM_FAIL,         /* bool: to failed instead of back */
    PARAM_RESET,        /* bool: tries start over */
    PARAM_FORCE,        /* bool */
    PARAM_EXPECTED,     /* bigint: refuse if the number of changed rows would be another one */
    PARAM_REASON,       /* text */
    PARAM_ACTION,       /* uuid of the action */
    PARAM_BATCH,        /* int from 1 */
    PARAM_LIMIT,        /* int */
    PARAM_CURSOR,       /* text: of the last row seen */
    PARAM_SCHEDULE,     /* text: a schedule's name */
    PARAM_SETTINGS,     /* jsonb: what is to be set, by name */
    PARAM_PAYLOAD,      /* text */
    PARAM_OF,           /* uuid of the action that is to be undone */
    PARAM_IN_PAYLOAD,   /* text: "~TEXT" = a part of it in any case, "=TEXT" = exactly */
    PARAM_PATH,         /* text[]: path of the value in the payload that IN_PAYLOAD compares */
    PARAM_RAW_STATES,   /* text[]: states in the system's own words, by the adapter's header */
    PARAM_TABLES,       /* text[]: the adapter's header "tables" */
    PARAM_TOTAL         /* the number of parameters; not a parameter itself */
};
const char *param_name(enum param p);                      /* "ids", "queue", ... */
bool param_find(const char *name, int len, enum param *p); /* by name */
bool param_is_list(enum param p);

struct params {
    char *value[PARAM_TOTAL]; /* NULL = SQL NULL */
};
void params_done(struct params *p); /* frees the values; the set is empty then */
void params_copy(struct params *to, const struct params *from);       /* `to` must be empty */
void params_set(struct params *p, enum param name, const char *text); /* NULL unsets */
void params_set_int(struct params *p, enum param name, int64_t value);
void params_set_bool(struct params *p, enum param name, bool value);
void params_set_interval(struct params *p, enum param name, int64_t ms);
void params_set_time(struct params *p, enum param name, int64_t ms); /* since 1970 */
/* The value of PARAM_ERROR for the group with this key; the caller frees. A blank before the ~ that
 * a key begins with tells it from a substring: error_key() takes blanks off. */
char *params_group(const char *error_key);
void params_set_group(struct params *p, const char *error_key);
/* An array of text; n = 0 gives an empty array (which matches nothing). */
void params_set_list(struct params *p, enum param name, const char *const *items, int n);

#endif
