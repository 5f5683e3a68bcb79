/* See trusted.h. */
#include "ui/config/trusted.h"

static const char answers[] = "trust"; /* the line of the state file */

void
trusted_recall(struct trust *t, struct settings *s)
{
    settings_load(s);
    trust_recall(t, settings_get(s, answers));
}

bool
trusted_keep(struct settings *s, const struct owners *shown, struct err *e)
{
    struct trust *t = trust_new();

    settings_renew(s, answers);
    trust_recall(t, settings_get(s, answers));
    trust_answer(t, shown);
    settings_put(s, answers, trust_line(t));
    trust_free(t);
    return settings_save(s, e);
}
