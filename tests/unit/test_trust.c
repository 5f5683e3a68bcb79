/*
 * The user's trust in owners: names, answers that are kept between runs, and when an answer
 * applies. tests/e2e/test_strangers.c checks on a server that no stranger's code runs.
 */
#include "model/adapter/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/db/rows.h"
#include "tests/harness.h"

static const char *const columns[] = {"role",      "name",  "known", "creates",
                                      "object",    "place", "me",    "place_owner",
                                      "place_acl", "power", "acts",  "risk"};

struct owner_of {
    const char *role, *name, *known, *creates, *me, *acts;
};

static struct owners
judged(const struct owner_of *rows, int n, const struct trust *t, const char *server)
{
    struct result *r = result_new(columns, 12);
    struct owners o;
    struct err e;

    for (int i = 0; i < n; i++) {
        const char *cells[] = {rows[i].role, rows[i].name, rows[i].known, rows[i].creates,
                               "table t",    "2200",       rows[i].me,    "10",
                               NULL,         NULL,         rows[i].acts,  "app has"};
        for (int k = 0; k < 12; k++)
            result_put(r, i, k, cells[k], cells[k] ? (int)strlen(cells[k]) : 0);
    }
    assert_true(owners_judge(r, t, server, &o, &e));
    return o;
}

static const struct owner_of both[] = {
    {"16390", "app",        "f", "f", "20", "f"},
    {"16391", "mallory, x", "f", "f", "20", "f"},
    {"10",    "postgres",   "t", "f", "20", "f"},
    {"0",     "public",     "f", "t", "20", "f"},
};

static void
test_names(void **state)
{
    struct trust *t = trust_new();

    (void)state;
    struct owners o = judged(both, 4, NULL, "7/1");
    assert_string_equal(o.names, "app, mallory, x");
    assert_string_equal(o.allowed, "{10}");
    assert_true(o.is_open);
    assert_string_equal(o.risk, "app has");
    owners_done(&o);
    trust_names(t, " app ,public,");
    o = judged(both, 4, t, "7/1");
    assert_int_equal(o.n, 1);
    assert_string_equal(o.strangers[0].name, "mallory, x");
    assert_string_equal(o.allowed, "{16390,10}");
    assert_true(o.is_open); /* "public" is not a role: nobody can trust all users that way */
    owners_done(&o);
    o = judged(both, 0, t, "7/1");
    assert_false(o.is_there);
    owners_done(&o);
    trust_free(t);
}

/* An answer applies only to the same owner by OID and name, the same login and the same
 * database. */
static void
test_answers(void **state)
{
    struct trust *t = trust_new(), *later = trust_new();
    struct owner_of same[] = {both[1]}, renamed[] = {both[1]}, made_anew[] = {both[1]},
                    other_login[] = {both[1]};

    (void)state;
    struct owners o = judged(same, 1, t, "7/1");
    trust_answer(t, &o);
    trust_answer(t, &o);
    owners_done(&o);
    assert_string_equal(trust_line(t), "7/1 20 16391 mallory%2C%20x");
    trust_recall(later, trust_line(t));
    renamed[0].name = "eve";
    made_anew[0].role = "16999";
    other_login[0].me = "10";
    const struct {
        const struct owner_of *row;
        const char *server;
        int strangers;
    } tries[] = {
        {same,        "7/1", 0},
        {same,        "7/2", 1},
        {same,        "8/1", 1},
        {renamed,     "7/1", 1},
        {made_anew,   "7/1", 1},
        {other_login, "7/1", 1},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        o = judged(tries[i].row, 1, later, tries[i].server);
        assert_int_equal(o.n, tries[i].strangers);
        owners_done(&o);
    }
    trust_free(t);
    trust_free(later);
}

/* The answer covers the owners that were shown, and no owner that came later. */
static void
test_a_third(void **state)
{
    struct trust *t = trust_new();

    (void)state;
    struct owners o = judged(both, 1, t, "7/1"), copy;
    owners_copy(&copy, &o);
    owners_done(&o);
    trust_answer(t, &copy);
    owners_done(&copy);
    o = judged(both, 4, t, "7/1");
    assert_int_equal(o.n, 1);
    assert_string_equal(o.names, "mallory, x");
    owners_done(&o);
    trust_free(t);
}

/* Code that only an act would run closes nothing for a reader, and is not allowed for an act. */
static void
test_acts(void **state)
{
    struct trust *t = trust_new();
    struct owner_of rows[] = {both[0], both[1], both[2]};
    struct err e;

    (void)state;
    rows[1].acts = "t";
    struct owners o = judged(rows, 3, NULL, "7/1"), copy;
    assert_string_equal(o.names, "app");
    assert_string_equal(o.allowed, "{10}");
    assert_string_equal(o.act_roles, "{16391}");
    assert_string_equal(o.act_why,
                        "an act would run code of mallory, x (table t) with the rights "
                        "of this login; drop that, or --trust-owner mallory, x allows it");
    owners_done(&o);
    trust_names(t, "app");
    o = judged(rows, 3, t, "7/1");
    assert_int_equal(o.n, 0);
    owners_copy(&copy, &o);
    owners_done(&o);
    assert_false(owners_pass(&copy, "the queue", "s", &e));
    assert_non_null(strstr(e.text, "the queue in schema s is not opened: an act would run"));
    owners_done(&copy);
    rows[1].name = "mallory";
    trust_names(t, "mallory");
    o = judged(rows, 3, t, "7/1");
    assert_string_equal(o.allowed, "{16390,16391,10}");
    assert_string_equal(o.act_roles, "{}");
    assert_null(o.act_why);
    assert_true(owners_pass(&o, "the queue", "s", &e));
    owners_done(&o);
    trust_free(t);
}

static void
test_server(void **state)
{
    char *name = trust_server("7312/16384", "db1", "shop");

    (void)state;
    assert_string_equal(name, "7312/16384");
    free(name);
    name = trust_server("", "db1:6432", "shop");
    assert_string_equal(name, "db1:6432/shop");
    free(name);
}

/* A state line with too many answers, or with wrong ones, does no harm. */
static void
test_many(void **state)
{
    struct trust *t = trust_new();
    char line[64];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof line, "7/1 20 %d app", i);
        trust_recall(t, line);
    }
    trust_recall(t, ",, ,\x01 x,");
    assert_true(strlen(trust_line(t)) < 200 * 20);
    assert_null(strstr(trust_line(t), " 20 1 app"));
    assert_non_null(strstr(trust_line(t), " 20 999 app"));
    trust_free(t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),   cmocka_unit_test(test_answers),
        cmocka_unit_test(test_a_third), cmocka_unit_test(test_acts),
        cmocka_unit_test(test_server),  cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
