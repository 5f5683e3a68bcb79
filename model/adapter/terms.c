/*
 * Terms of a filter by parameter: one table, in the words of the filter language.
 */
#include "model/adapter/terms.h"

#include <stddef.h>

static const struct {
    enum param param;
    const char *word;
    bool windowed; /* may be looked for row by row in a bounded window */
} terms[] = {
    {PARAM_QUEUE,        "queue",   false},
    {PARAM_STATES,       "state",   false},
    {PARAM_KIND,         "kind",    true },
    {PARAM_NODE,         "node",    false},
    {PARAM_ERROR,        "error",   true },
    {PARAM_IDS,          "id",      false},
    {PARAM_WORDS,        "words",   true },
    {PARAM_NOT_WORDS,    "words",   true },
    {PARAM_OLDER_THAN,   "age",     false},
    {PARAM_YOUNGER_THAN, "age",     false},
    {PARAM_MIN_TRIES,    "tries",   false},
    {PARAM_TOP_TRIES,    "tries",   false},
    {PARAM_IN_PAYLOAD,   "payload", true },
    {PARAM_PATH,         "payload", true },
};
enum { NTERMS = (int)(sizeof terms / sizeof *terms) };

bool
terms_takes(const struct adapter *a, enum section_id s, enum param p)
{
    return adapter_takes(a, s, p) || (p == PARAM_STATES && adapter_takes(a, s, PARAM_RAW_STATES));
}

const char *
terms_lacking(const struct adapter *a, enum section_id s, const struct params *where)
{
    for (int i = 0; i < NTERMS; i++)
        if (where->value[terms[i].param] && !terms_takes(a, s, terms[i].param))
            return terms[i].word;
    return NULL;
}

const char *
terms_windowed(const struct adapter *a, enum section_id s, const struct params *where)
{
    if (!adapter_takes(a, s, PARAM_N))
        return NULL;
    for (int i = 0; i < NTERMS; i++)
        if (terms[i].windowed && where->value[terms[i].param])
            return terms[i].word;
    return NULL;
}
