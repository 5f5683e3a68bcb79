/* Whether the cause is gone: what the last ten minutes show of failures that have stopped, and of a
 * backlog that shrinks again. Uses only the values that the store has kept; nothing is asked. */
#ifndef UI_FACTS_RECOVERY_H
#define UI_FACTS_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/mem.h"
#include "model/store/store.h"

struct recovery_of {
    const struct store *s;
    int64_t now_ms;
    bool utc;
};

/* Appends ", none for 4m, 1,230 completed" or ", still 12 a minute"; "" = nothing is known. True:
 * no job has failed for a minute or longer. */
bool recovery_say_failures(const struct recovery_of *of, const struct queue_row *q,
                           struct buf *out);
/* True if no job has failed for a minute or longer, and jobs have completed since: only then does a
 * requeue do more than fail once again. */
bool recovery_is_seen(const struct store *s, const char *queue);
/* Appends ", fewer wait since 13:58"; "" = the backlog does not shrink. */
void recovery_say_backlog(const struct recovery_of *of, const struct queue_row *q, struct buf *out);

#endif
