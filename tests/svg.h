/*
 * Draws a terminal as an SVG picture of a window. The same cells always give the same bytes.
 */
#ifndef TESTS_SVG_H
#define TESTS_SVG_H

#include "tests/term.h"

/* Writes the screen to a file; false with errno set when the file cannot be written. */
bool svg_write(const struct vt *vt, const char *path);

#endif
