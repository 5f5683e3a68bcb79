/*
 * The words above the list of jobs say in which order its rows are (note `order` of the section
 * jobs). Every adapter has them, and where the words name a column, the rows are in that order: on
 * the fixture of each system, with 5,000 jobs more where there is a load for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/base/mem.h"
#include "tests/sql/other.h"

static const struct order {
    const char *words, *column;
    bool down;
} orders[] = {
    {"highest id first",    "id",           true },
    {"lowest id first",     "id",           false},
    {"newest first",        "created_ms",   true },
    {"next due first",      "run_after_ms", false},
    {"first due first",     "run_after_ms", false},
    {"first visible first", "run_after_ms", false},
    {"last due first",      "run_after_ms", true },
    {"last finished first", "finished_ms",  true },
    {"last failed first",   "finished_ms",  true },
    {"next to start first", "priority",     false},
};
static int checked;

static const struct order *
order_of(const char *words)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (!strcmp(orders[i].words, words))
            return &orders[i];
    return NULL;
}

/* The numbers at the ends of the values: those of ids may have something in front. */
static long long
number(const char *text)
{
    const char *at = text + strlen(text);

    while (at > text && strchr("0123456789", at[-1]))
        at--;
    return strtoll(at, NULL, 10);
}

static void
check_rows(struct other *f, const char *adapter, const char *states, const struct order *o)
{
    char *search = xasprintf("states={%s}", states);
    bool all = !strcmp(states, "*");
    char *list = xstrdup(other_look(f, SEC_JOBS, o->column, all ? "limit=60" : search,
                                    all ? NULL : "limit=60", NULL)),
         *rest = list;
    long long last = 0;
    int n = 0;

    for (char *value; (value = strsep(&rest, " "));) {
        if (!*value || !strcmp(value, "-"))
            continue;
        long long now = number(value);
        if (n++ && (o->down ? now > last : now < last))
            fail_msg("%s, %s: not \"%s\": %lld behind %lld", adapter, states, o->words, now, last);
        last = now;
    }
    checked += n > 1;
    free(list);
    free(search);
}

/* "ready: next to start first; *: newest first" */
static void
check_note(struct other *f, const char *adapter)
{
    const char *note = adapter_note(f->a, SEC_JOBS, "order");

    if (!note || !strstr(note, "*: "))
        fail_msg("%s: the order of its jobs has no words (order: *: ...)", adapter);
    char *copy = xstrdup(note), *rest = copy;
    for (char *clause; (clause = strsep(&rest, ";"));) {
        clause += strspn(clause, " ");
        char *words = strstr(clause, ": ");
        assert_non_null(words);
        *words = 0;
        const struct order *o = order_of(words + 2);
        if (o && strcmp(clause, "queue") != 0)
            check_rows(f, adapter, clause, o);
    }
    free(copy);
}

static void
rows_are_in_the_order_of_the_words(void **state)
{
    (void)state;
    for (int i = 0; i < sql_adapters_n; i++) {
        const char *name = sql_adapters[i].name;
        struct other f;
        if (!strcmp(name, "native")) /* test_native */
            continue;
        other_open(&f, name, name);
        for (int k = 0; k < other_loads_n; k++)
            if (!strcmp(other_loads[k].name, name))
                other_fill(&f, &other_loads[k], 0, 100);
        check_note(&f, name);
        other_close(&f);
    }
    print_message("%d orders with more than one row\n", checked);
    assert_true(checked > 30);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_in_the_order_of_the_words)};

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
