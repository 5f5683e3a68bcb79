/*
 * Terms of a filter by parameter: one table, in the words of the filter language.
 */
#include "model/adapter/terms.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum param param;
    const char *word;
    bool windowed; /* the search may be limited to a window of rows */
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

bool
terms_is_id(const struct adapter *a, const char *s)
{
    const char *type = a ? adapter_header(a, "id-type") : NULL;

    if (type && strcmp(type, "bigint") == 0)
        return *s && !s[strspn(s, "0123456789")];
    if (type && strcmp(type, "text") == 0)
        return *s != 0;
    for (int i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : !isxdigit((unsigned char)s[i]))
            return false;
    }
    return !s[36];
}

/* The list of ids has one member, quoted: {"id"}. */
bool
terms_check_id(const struct adapter *a, const struct params *where, struct err *e)
{
    const char *list = where->value[PARAM_IDS], *type = adapter_header(a, "id-type");
    size_t len = list ? strlen(list) : 0;
    char id[120];

    if (len < 4)
        return true;
    snprintf(id, sizeof id, "%.*s", (int)(len - 4), list + 2);
    if (terms_is_id(a, id))
        return true;
    if (type && !strcmp(type, "bigint"))
        return fail(e, ERR_USAGE, "\"%s\" can't be the id of a job: ids are numbers here", id);
    if (strlen(id) < 36 && strspn(id, "0123456789abcdefABCDEF-") == strlen(id))
        return fail(e, ERR_USAGE, "\"%s\" is only a part of an id: leave out id: to look for it",
                    id);
    return fail(e, ERR_USAGE, "\"%s\" can't be the id of a job: ids are UUIDs here", id);
}
