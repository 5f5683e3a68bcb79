/* The filter of tables whose rows are all in memory. Every word must be a part of one of the texts;
 * upper and lower case (ASCII) are equal. A word with ! before it must not be in them. */
#ifndef UI_TERM_WORDS_H
#define UI_TERM_WORDS_H

#include <stdbool.h>

/* texts ends with NULL. An empty filter matches all. */
bool words_match(const char *filter, const char *const *texts);

#endif
