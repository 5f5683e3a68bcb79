/*
 * Decoding of answers: the values that a row may hold. For a bad value the error names the value,
 * and nothing is guessed.
 */
#include "tests/harness.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "model/db/rows.h"

struct thing {
    const char *name;
    int64_t big;
    int small;
    double rate;
    int flag;
};

#define F(field) offsetof(struct thing, field)
static const struct field fields[] = {
    {"name",  F_STR,  F(name),  false},
    {"big",   F_I64,  F(big),   false},
    {"small", F_INT,  F(small), false},
    {"rate",  F_DBL,  F(rate),  true },
    {"flag",  F_BOOL, F(flag),  true },
};
#undef F

enum { NFIELDS = sizeof fields / sizeof *fields };

/* Makes an answer of one row from pairs of column and value. NULL ends the pairs. */
static struct result *
answer(const char *const *pairs)
{
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[10];
    char names[10][20];
    int n = 0;

    memset(columns, 0, sizeof columns);
    for (; pairs[2 * n]; n++) {
        snprintf(names[n], sizeof names[n], "%s", pairs[2 * n]);
        columns[n].name = names[n];
    }
    assert_int_equal(PQsetResultAttrs(res, n, columns), 1);
    for (int i = 0; i < n; i++) {
        char value[100];
        const char *given = pairs[2 * i + 1];
        bool is_null = strcmp(given, "NULL") == 0;
        snprintf(value, sizeof value, "%s", given);
        assert_int_equal(
            PQsetvalue(res, 0, i, is_null ? NULL : value, is_null ? -1 : (int)strlen(value)), 1);
    }
    return result_wrap(res);
}

static void
good_row(void **state)
{
    const char *const pairs[] = {"extra", "x",    "big", "-9000000000", "name",  "a b", "small",
                                 "42",    "flag", "t",   "rate",        "1.5e3", NULL};
    struct rowset set;
    struct err e;

    (void)state;
    assert_true(rowset_decode(answer(pairs), fields, NFIELDS, sizeof(struct thing), &set, &e));
    assert_int_equal(set.n, 1);
    const struct thing *t = set.rows;
    assert_string_equal(t->name, "a b");
    assert_true(t->big == -9000000000);
    assert_int_equal(t->small, 42);
    assert_true(t->rate == 1500);
    assert_int_equal(t->flag, 1);
    rowset_free(&set);
    rowset_free(&set);
}

/* A server may say anything; what is computed with its numbers must not overflow. */
static void
numbers_have_a_bound(void **state)
{
    static const struct {
        const char *said;
        int64_t read;
    } numbers[] = {
        {"9007199254740992",     FIELD_MOST     },
        {"9007199254740991",     FIELD_MOST - 1 },
        {"9223372036854775807",  FIELD_MOST     },
        {"-9223372036854775808", -FIELD_MOST    },
        {"-9007199254740991",    -FIELD_MOST + 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *const pairs[] = {"name", "", "big", numbers[i].said, "small", "0", NULL};
        struct rowset set;
        struct err e;
        assert_true(rowset_decode(answer(pairs), fields, NFIELDS, sizeof(struct thing), &set, &e));
        assert_true(((const struct thing *)set.rows)->big == numbers[i].read);
        rowset_free(&set);
    }
}

static void
nulls_and_missing(void **state)
{
    const char *const pairs[] = {"name", "NULL", "big", "NULL", "small", "NULL", NULL};
    struct rowset set;
    struct err e;

    (void)state;
    assert_true(rowset_decode(answer(pairs), fields, NFIELDS, sizeof(struct thing), &set, &e));
    const struct thing *t = set.rows;
    assert_string_equal(t->name, "");
    assert_true(t->big == FIELD_NULL);
    assert_int_equal(t->small, INT_MIN);
    assert_true(isnan(t->rate));
    assert_int_equal(t->flag, -1);
    rowset_free(&set);
}

static void
bad_rows_are_named(void **state)
{
    static const char *const bad[][8] = {
        {"name",   "",                   "small", "1", NULL}, /* no big */
        { "name", "",                     "big", "", "small", "1", NULL}, /* empty */
        { "name", "",                  "big", "12x", "small", "1", NULL}, /* rest */
        { "name", "", "big", "99999999999999999999", "small", "1", NULL}, /* too big */
        { "name", "",         "small",   "3000000000", "big", "1", NULL},
        { "Name", "",                  "small",   "1", "big", "1", NULL}, /* names are exact */
    };
    static const char *const says[] = {"\"big\"", "\"big\", row 1", "12x",
                                       "\"big\"", "\"small\"",      "\"name\""};
    static const char *const rate[] = {"name", "", "big", "1", "small", "1", "rate", "fast", NULL};
    static const char *const flag[] = {"name", "", "big", "1", "small", "1", "flag", "yes", NULL};
    struct rowset set;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(
            rowset_decode(answer(bad[i]), fields, NFIELDS, sizeof(struct thing), &set, &e));
        assert_int_equal(e.kind, ERR_DATA);
        if (!strstr(e.text, says[i]))
            fail_msg("case %zu says: %s", i, e.text);
        assert_null(set.rows);
    }
    assert_false(rowset_decode(answer(rate), fields, NFIELDS, sizeof(struct thing), &set, &e));
    assert_non_null(strstr(e.text, "fast"));
    assert_false(rowset_decode(answer(flag), fields, NFIELDS, sizeof(struct thing), &set, &e));
    assert_non_null(strstr(e.text, "\"flag\""));
}

static void
no_rows(void **state)
{
    struct rowset set;
    struct err e;

    (void)state;
    struct result *r = result_wrap(PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK));
    assert_false(rowset_decode(r, fields, NFIELDS, sizeof(struct thing), &set, &e));
    r = result_wrap(PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK));
    assert_true(rowset_decode(r, fields, 0, sizeof(struct thing), &set, &e));
    assert_int_equal(set.n, 0);
    rowset_free(&set);
}

static void
single_values(void **state)
{
    const char *const pairs[] = {"a", "17", "b", "\\x00ff41", "c", "NULL", "d", "x\\134y", NULL};
    struct result *r = answer(pairs);
    size_t len;

    (void)state;
    assert_int_equal(result_rows(r), 1);
    assert_int_equal(result_cols(r), 4);
    assert_string_equal(result_name(r, 1), "b");
    assert_string_equal(result_name(r, 9), "");
    assert_int_equal(result_int(r, 0, 0, -1), 17);
    assert_int_equal(result_int(r, 0, 1, -1), -1);
    assert_int_equal(result_int(r, 0, 2, -1), -1);
    assert_int_equal(result_int(r, 5, 0, -1), -1); /* outside the table is NULL, not a crash */
    assert_int_equal(result_int(r, 0, -1, -1), -1);
    assert_true(result_null(r, 0, 2));
    assert_int_equal(result_len(r, 0, 0), 2);
    assert_int_equal(result_len(r, 0, 2), 0);
    assert_int_equal(result_col(r, "nope"), -1);
    unsigned char *bytes = result_bytes(r, 0, 1, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "\0\377A", 4);
    free(bytes);
    bytes = result_bytes(r, 0, 3, &len); /* bytea_output = escape */
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "x\\y", 4);
    free(bytes);
    bytes = result_bytes(r, 0, 2, &len);
    assert_int_equal(len, 0);
    free(bytes);
    result_free(r);
    result_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_row),          cmocka_unit_test(numbers_have_a_bound),
        cmocka_unit_test(nulls_and_missing), cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(no_rows),           cmocka_unit_test(single_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
