/*
 * What a newcomer stumbled over: values that typing appends to, choices that are cut.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/console.h"

static void
typing_replaces_what_stands_there(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 80, NULL);
    vt_keys(&vt, "l");
    vt_want(&vt, "▸ limit");
    vt_want(&vt, "none");
    vt_keys(&vt, "tab text:10/min");
    vt_want(&vt, "10/min");
    vt_gone(&vt, "none10");
    vt_keys(&vt, "tab end text:5"); /* a moved cursor means: edit what is there */
    vt_want(&vt, "none5");
    vt_keys(&vt, "C-u");
    vt_keys(&vt, "enter");
    vt_want(&vt, "10/min, was none");
    vt_keys(&vt, "esc esc");
    con_quit(&vt);
}

static void
the_purge_form_keeps_words_and_digits(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail", 1);
    con_start(&vt, 24, 60, NULL);
    vt_keys(&vt, "P");
    vt_want(&vt, "[both]  completed   cancelled");
    vt_keys(&vt, "text:30d"); /* on the first field, which is a choice */
    vt_want(&vt, "30d");
    vt_keys(&vt, "enter");
    vt_want(&vt, "nothing matches");
    vt_want(&vt, "older than"); /* the form is still there */
    vt_keys(&vt, "tab text:a");
    vt_want(&vt, "[all queues]");
    vt_keys(&vt, "text:x");
    vt_want(&vt, "no choice begins with \"x\"");
    vt_keys(&vt, "esc");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(typing_replaces_what_stands_there, con_empty),
        cmocka_unit_test_setup(the_purge_form_keeps_words_and_digits, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
