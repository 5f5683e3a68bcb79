/*
 * A server that lies: a proxy in front of the real one that changes what it answers, at random.
 * Columns are missing, added, renamed or of another type; values are NULL, huge, negative, no
 * number, no text; rows are missing or come many times over; tags, notices and notifications say
 * anything. All of it is a stream that libpq takes.
 */
#ifndef TESTS_E2E_LIAR_H
#define TESTS_E2E_LIAR_H

#include "tests/fault/relay.h"

/* One of `one_in` answers is a lie. The same seed makes the same lies from the same answers. */
void liar_start(struct relay *r, unsigned seed, unsigned one_in);

#endif
