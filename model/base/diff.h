/* What was changed in a text, in a few lines for a question: from the first line that differs to
 * the last one, "- " what goes and "+ " what comes. No search for moved lines: the texts are small
 * and the reader has just changed one thing. */
#ifndef MODEL_BASE_DIFF_H
#define MODEL_BASE_DIFF_H

#include "model/base/mem.h"

/* Appends at most `lines` lines of each, each ended by a newline and cut to 120 bytes, and how many
 * more there are. Nothing where the texts are equal. */
void diff_lines(struct buf *out, const char *was, const char *is, int lines);

#endif
