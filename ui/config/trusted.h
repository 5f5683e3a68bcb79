/* The answers to the console's questions of trust (model/adapter/trust.h), kept in the state file
 * from run to run. */
#ifndef UI_CONFIG_TRUSTED_H
#define UI_CONFIG_TRUSTED_H

#include "model/adapter/trust.h"
#include "ui/config/settings.h"

/* The answers of earlier runs; reads the state file. */
void trusted_recall(struct trust *t, struct settings *s);
/* Keeps an answer for the next run, at once. */
bool trusted_keep(struct settings *s, const struct owners *shown, struct err *e)
    __attribute__((warn_unused_result));

#endif
