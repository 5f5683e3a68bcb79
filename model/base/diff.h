/* The difference of two texts in a few lines, for a question to the user. It goes from the first
 * line that differs to the last one: "- " marks old lines, "+ " new ones. It does not look for
 * moved lines: the texts are small and the reader has just made one change. */
#ifndef MODEL_BASE_DIFF_H
#define MODEL_BASE_DIFF_H

#include "model/base/mem.h"

/* Appends at most `lines` old and `lines` new lines, each cut to 120 bytes and ended by a newline,
 * then how many more there are. Appends nothing if the texts are equal. */
void diff_lines(struct buf *out, const char *was, const char *is, int lines);

#endif
