/*
 * The database of the pictures (tests/screens/fixture.sql) with clocks that stand still, for golden
 * screens: group setup and teardown, the console in it, and the comparison.
 */
#ifndef TESTS_E2E_SHOP_H
#define TESTS_E2E_SHOP_H

#include "tests/term.h"

int shop_open(void **state);
int shop_close(void **state);
const char *shop_dsn(void); /* as the operator bob */
/* The console on it, with its first data; env: one more variable, or NULL. */
void shop_enter(struct vt *vt, int rows, int cols, const char *env);
/* tests/screens/COLS_NAME.txt, without the header, which names the server's version, and for most
 * names without tabs and keys. */
void shop_golden(struct vt *vt, const char *name);
void shop_run(const char *const *argv); /* a program that must end well */

#endif
