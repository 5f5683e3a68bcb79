/* The filter of tables that are in memory as a whole: every word must be a part of one of the
 * texts, in any case (ASCII); !word must not. */
#ifndef UI_TERM_WORDS_H
#define UI_TERM_WORDS_H

#include <stdbool.h>

/* texts ends with NULL. An empty filter matches all. */
bool words_match(const char *filter, const char *const *texts);

#endif
