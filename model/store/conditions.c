/*
 * The table of conditions, and the one rule by which each is judged.
 */
#include "model/store/conditions.h"

#include "model/base/field.h"

#define NONE ((double)NAN)
#define OWN ((double)NAN)

const struct condition conditions[CONDITIONS] = {
#define CONDITION(id, name, of, unit, ...) [COND_##id] = {name, OF_##of, UNIT_##unit, __VA_ARGS__},
#include "model/store/conditions.def"
};

enum verdict
condition_judge(enum condition_id id, double figure)
{
    const struct condition *c = &conditions[id];

    if (figure > c->bad) /* NAN is above nothing */
        return VERDICT_BAD;
    return figure > c->warn ? VERDICT_WARN : VERDICT_WELL;
}

enum verdict
condition_judge_ms(enum condition_id id, int64_t ms)
{
    return condition_judge(id, ms == FIELD_NULL ? (double)NAN : (double)ms / 1000);
}
