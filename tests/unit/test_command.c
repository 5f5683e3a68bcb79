/*
 * The command table: on one screen no key has two meanings, every row can be found by key and by
 * name, and the texts made from the table are complete.
 */
#include "tests/harness.h"

#include <string.h>

#include "ui/console/command.h"
#include "ui/console/view.h"

static void
keys_are_unique(void **state)
{
    (void)state;
    for (int i = 0; command_at(i); i++)
        for (int j = i + 1; command_at(j); j++) {
            if (!(command_at(i)->scope & command_at(j)->scope))
                continue;
            if (key_lists_meet(command_at(i)->keys, command_at(j)->keys))
                fail_msg("%s and %s share a key", command_at(i)->name, command_at(j)->name);
            assert_string_not_equal(command_at(i)->name, command_at(j)->name);
        }
}

static void
keys_are_keys(void **state)
{
    (void)state;
    for (int i = 0; command_at(i); i++) {
        const char *at = command_at(i)->keys;
        struct key k;
        while (key_next(&at, &k))
            for (unsigned bit = 1; bit < IN_DIALOG; bit <<= 1)
                if (command_at(i)->scope & bit)
                    assert_ptr_equal(command_for_key(bit, &k), command_at(i));
        if (*at)
            fail_msg("%s: not a key: %s", command_at(i)->name, at);
    }
}

static void
rows_are_whole(void **state)
{
    (void)state;
    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        assert_true(strlen(c->name) > 1 && strlen(c->name) <= 12);
        assert_true(strlen(c->help) > 1 && strlen(c->help) <= 80);
        assert_true(c->help[strlen(c->help) - 1] != '.');
        assert_true(c->scope != 0);
        assert_true(c->run || c->scope == IN_DIALOG);
        assert_ptr_equal(command_named(c->scope, c->name), c);
        if (c->risk == DESTROYS) /* upper case: acts on many jobs or can't be undone */
            assert_true(c->keys[0] >= 'A' && c->keys[0] <= 'Z');
    }
}

static void
completion_finds(void **state)
{
    const struct command *found[4];

    (void)state;
    assert_int_equal(command_complete(IN_JOBS, "requeue", found, 4), 2);
    assert_string_equal(found[0]->name, "requeue");
    assert_string_equal(found[1]->name, "requeue-all");
    assert_int_equal(command_complete(IN_QUEUES, "requeue", found, 4), 0);
    assert_int_equal(command_complete(IN_QUEUES, "", found, 4), 4);
    assert_string_equal(command_named(IN_JOBS, "retry")->name, "requeue");
    assert_string_equal(command_named(IN_JOBS, "rescue")->name, "release");
    assert_string_equal(command_named(IN_JOBS, "enqueue")->name, "push");
    assert_string_equal(command_named(IN_JOBS, "workers")->name, "nodes");
    assert_null(command_named(IN_ALL, "requ"));
}

static void
markdown_has_all(void **state)
{
    struct buf b = {0};

    (void)state;
    command_markdown(&b);
    for (int i = 0; command_at(i); i++) {
        assert_non_null(strstr(b.data, command_at(i)->help));
        assert_non_null(strstr(b.data, command_group(command_at(i))));
    }
    buf_free(&b);
}

static void
views_are_whole(void **state)
{
    unsigned seen = 0;

    (void)state;
    for (int i = 0; view_table[i]; i++) {
        const struct view_ops *o = view_table[i];
        assert_ptr_equal(view_named(o->name), o);
        if (o->screen)
            assert_ptr_equal(view_screen(o->screen), o);
        assert_true(o->draw && o->size >= sizeof(struct view));
        assert_int_equal(o->scope & (o->scope - 1), 0);
        if (!o->page) { /* the page of a single row has the keys of its list */
            assert_int_equal(seen & o->scope, 0);
            seen |= o->scope;
        }
        if (o->screen) { /* the digit and the name of each screen lead to the screen */
            struct key k = {.code = (uint32_t)('0' + o->screen)};
            const struct command *c = command_for_key(IN_HELP, &k);
            assert_non_null(c);
            assert_string_equal(c->name, o->name);
        }
    }
    assert_int_equal(seen, IN_ALL);
    assert_null(view_named("nothing"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_unique),  cmocka_unit_test(keys_are_keys),
        cmocka_unit_test(rows_are_whole),   cmocka_unit_test(completion_finds),
        cmocka_unit_test(markdown_has_all), cmocka_unit_test(views_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
