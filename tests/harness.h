/*
 * What every test program includes first: cmocka with the standard headers that it needs before
 * itself. A program is one main() that ends in cmocka_run_group_tests(); the driver (tests/run.c)
 * counts what cmocka reports. QUEUETOP in the environment is the program under test, SRCDIR the
 * source tree and TMPDIR a private directory that must be empty when the test ends.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

/* cmocka wants the first four before it, which is not the order of the alphabet */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* The model has a function of this name. */
#undef fail
#undef fail_msg
#define fail_msg(...) (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

/* Fails, and prints the lines that differ, if the file of that name in the source tree does not
 * hold this text. With UPDATE=1 the file is written instead (golden.c). */
void golden_text(const char *name, const char *text);

#endif
