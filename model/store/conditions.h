/* What counts as wrong, and from which figure on: one row for each condition (conditions.def), for
 * the colours and alerts of the console, `check`, `metrics` and the manual. Pure. */
#ifndef MODEL_STORE_CONDITIONS_H
#define MODEL_STORE_CONDITIONS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* How bad it is, on one scale: BAD needs an act now, WARN a look today. A state that somebody has
 * decided (a pause, a drain) is neither. */
enum verdict { VERDICT_WELL, VERDICT_DECIDED, VERDICT_WARN, VERDICT_BAD };

enum condition_id {
#define CONDITION(id, ...) COND_##id,
#include "model/store/conditions.def"
    CONDITIONS
};

enum condition_of { OF_ALL, OF_QUEUE, OF_NODE, OF_SCHEDULE, OF_SESSION, OF_TABLE };
enum condition_unit { UNIT_NUMBER, UNIT_SECONDS, UNIT_PART };

struct condition {
    const char *name;
    enum condition_of of;
    enum condition_unit unit;
    double warn, bad; /* the figure above which it is a warning, or bad; NAN = never */
    bool is_check;
    const char *metric; /* "" = none */
    int screen;         /* the digit of the screen; 0 = no alert */
    const char *key, *act, *help;
};
extern const struct condition conditions[CONDITIONS];

/* How bad a figure is; NAN = not known, which is no trouble. */
enum verdict condition_judge(enum condition_id id, double figure);
/* The same for a time; a FIELD_NULL is not known. */
enum verdict condition_judge_ms(enum condition_id id, int64_t ms);

static inline enum verdict
verdict_worse(enum verdict a, enum verdict b)
{
    return a > b ? a : b;
}

#endif
