/*
 * Annotated .sql files: what is read from them, what is rejected, and how the name of a schema gets
 * into a statement.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/sections.h"

static const char file[] =
    "-- adapter: native\n"
    "-- title:  Native queue \r\n"
    "--\n"
    "-- some prose, with a colon: in it\n"
    "-- note: one\n"
    "\n"
    "-- name: queues\n"
    "-- cost: low\n"
    "-- Explains itself.\n"
    "-- params: ids queue\n"
    "\n"
    "select ';', \"a;b\", $$ ; {x} $$, $t$ $$;$$ $t$ -- more; {y}\n"
    "-- key: not a note any more\n"
    "/* ; /* nested ; */ */ from {schema}.queue where x = $1 and e = E'\\';'\n"
    ";  -- the end\n"
    "-- name: version\n"
    "select 1";

static void
reads_a_file(void **state)
{
    struct sections s;
    struct err e = {0};

    (void)state;
    if (!sections_read("native.sql", file, &s, &e))
        fail_msg("%s", e.text);
    assert_string_equal(sections_header(&s, "adapter"), "native");
    assert_string_equal(sections_header(&s, "title"), "Native queue");
    assert_string_equal(sections_header(&s, "note"), "one");
    assert_null(sections_header(&s, "nope"));
    assert_int_equal(s.n, 2);
    const struct section *q = sections_find(&s, "queues");
    assert_non_null(q);
    assert_int_equal(q->line, 7);
    assert_string_equal(section_note(q, "params"), "ids queue");
    assert_string_equal(section_note(q, "cost"), "low");
    assert_int_equal(q->notes[1].line, 10);
    assert_null(section_note(q, "key"));
    assert_memory_equal(q->sql, "select ';'", 10);
    assert_string_equal(q->sql + strlen(q->sql) - 5, "'\\';'");
    assert_string_equal(sections_find(&s, "version")->sql, "select 1");
    assert_null(sections_find(&s, "no"));
    sections_free(&s);
    sections_free(&s);
}

/* A value continues in comment lines that begin with two blanks and follow the value directly.
 * Nowhere else do such lines count. */
static void
joins_lines(void **state)
{
    static const char text[] = "--  before any note\n"
                               "-- tables: a b\n"
                               "--    c \r\n"
                               "--\td\n"
                               "-- note: one\n"
                               "--\n"
                               "--  prose\n"
                               "-- note:\n"
                               "--  two -- name: x\n"
                               "-- name: queues\n"
                               "--  prose\n"
                               "-- params: ids\n"
                               "--   queue\n"
                               "--   n: no note\n"
                               "-- prose\n"
                               "--  more prose\n"
                               "select $1\n"
                               "--  of the statement\n"
                               "--   and this\n"
                               ", 2";
    struct sections s;
    struct err e = {0};

    (void)state;
    if (!sections_read("f.sql", text, &s, &e))
        fail_msg("%s", e.text);
    assert_string_equal(sections_header(&s, "tables"), "a b c");
    assert_int_equal(s.nheader, 3);
    assert_string_equal(s.header[1].value, "one");
    assert_string_equal(s.header[2].value, "two -- name: x");
    assert_int_equal(s.n, 1);
    assert_int_equal(s.list[0].nnotes, 1);
    assert_string_equal(section_note(&s.list[0], "params"), "ids queue n: no note");
    assert_int_equal(s.list[0].notes[0].line, 12);
    assert_string_equal(s.list[0].sql, "select $1\n--  of the statement\n--   and this\n, 2");
    sections_free(&s);
}

static void
refuses(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"select 1",                                    "f.sql:1: SQL before"                            },
        {"-- name: (ids)\nselect 1",                    "a section without a name"                       },
        {"-- name: a\nselect 1; select 2",              "f.sql:1: section \"a\": more than one statement"},
        {"-- name: a\nselect 1;;",                      "more than one statement"                        },
        {"-- name: a\n-- name: b\nselect 1",            "section \"a\": no statement"                    },
        {"-- name: a\n-- only prose\n",                 "no statement"                                   },
        {"-- name: a\nselect 1\n-- name: a\nselect 2",
         "f.sql:3: section \"a\" stands already in line 1"                                               },
        {"-- name:\nselect 1",                          "without a name"                                 },
        {"-- name: a\nselect 'x",                       "has no end"                                     },
        {"-- name: a\nselect $$ x",                     "has no end"                                     },
        {"-- name: a\nselect /* x",                     "has no end"                                     },
        {"-- name: a\nselect \"x",                      "has no end"                                     },
        {"-- name: a\nselect '{schema}.job'::regclass", "quoted text"                                    },
        {"-- name: a\nselect \"{schema}\"",             "quoted text"                                    },
        {"-- name: a\nselect {table}",                  "unknown placeholder"                            },
        {"-- name: a\nselect {error_key(a}",            "has no end"                                     },
        {"-- name: a\nselect {error_key(a) }",          "has no end"                                     },
        {"-- name: a\nselect {ms(a}",                   "has no end"                                     },
        {"-- name: a\nselect {uuids($1}",               "has no end"                                     },
        {"-- name: a\nselect '{prefix}'",               "a placeholder stands in quoted text"            },
        {"-- name: a\nselect '\xff'",                   "UTF-8"                                          },
    };
    struct sections s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (sections_read("f.sql", bad[i].text, &s, &e))
            fail_msg("taken: %s", bad[i].text);
        assert_int_equal(e.kind, ERR_DATA);
        if (!strstr(e.text, bad[i].says))
            fail_msg("%s says: %s", bad[i].text, e.text);
        assert_int_equal(s.n, 0);
    }
}

static void
accepts(void **state)
{
    static const char *const good[] = {
        "-- name: a\nselect '{}'::text[], $1::text, a$b, '''', e'\\'' -- it's\n",
        "-- name: a\nselect 1 ; /* c */ -- ; c\n",
        "-- name: a\nselect {error_key(coalesce(a, ')'))}, {schema_lit}",
        "-- name: a\r\nselect 1;\r\n",
        "",
        "-- only: a header\n",
    };
    struct sections s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!sections_read("f.sql", good[i], &s, &e))
            fail_msg("%s: %s", good[i], e.text);
        sections_free(&s);
    }
}

static void
bind(const char *sql, const char *schema, const char *wanted)
{
    char name[] = "x", text[200], *bound;
    struct section s = {.name = name, .sql = text};
    struct err e = {0};

    snprintf(text, sizeof text, "%s", sql);
    bool ok = sections_bind(&s, schema, &bound, &e);
    assert_int_equal(ok, wanted != NULL);
    if (wanted)
        assert_string_equal(bound, wanted);
    else
        assert_null(bound);
    free(bound);
}

static void
binds_a_schema(void **state)
{
    char longest[65];

    (void)state;
    bind("select {schema}.f({schema_lit})", "queues", "select \"queues\".f('queues')");
    bind("{schema} {schema_lit}", "My \"Q\" 'x'", "\"My \"\"Q\"\" 'x'\" 'My \"Q\" ''x'''");
    bind("f({schema_lit})", "a\\b'", "f( E'a\\\\b''')");
    bind("{schema}", "größe", "\"größe\"");
    bind("-- {schema}\n'{x}' {schema}", "s", "-- {schema}\n'{x}' \"s\"");
    bind("{schema}", "", NULL);
    bind("{schema}", "a\xff", NULL);
    bind("{schema}", "\xc0\xa7", NULL);
    memset(longest, 'x', 64);
    longest[64] = 0;
    bind("1", longest, NULL);
    longest[63] = 0;
    bind("1", longest, "1");
}

/* Ids of another form than the type's are left out before they are cast. */
static void
binds_ids(void **state)
{
    char name[] = "x", text[] = "select {uuids($1)}, ({bigints(p.ids)})[1]", *bound = NULL;
    struct section s = {.name = name, .sql = text};
    struct err e = {0};

    (void)state;
    assert_true(sections_bind(&s, "q", &bound, &e));
    assert_string_equal(
        "select array(select i::uuid from unnest($1::text[]) i"
        " where i ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'),"
        " (array(select i::bigint from unnest(p.ids::text[]) i where case when i ~ "
        "'^-?[0-9]{1,19}$'"
        " then i::numeric between -9223372036854775808 and 9223372036854775807 end))[1]",
        bound);
    free(bound);
}

/* {error_key(...)} is replaced as a whole, and the {schema} inside is bound too.
 * tests/sql/test_adapters.c asks a server for the value of the expression. */
static void
binds_error_keys(void **state)
{
    char name[] = "x", text[] = "select {error_key({schema}.f(a, ')'))} as k", *bound = NULL;
    struct section s = {.name = name, .sql = text};
    struct err e = {0};

    (void)state;
    assert_true(sections_bind(&s, "q", &bound, &e));
    assert_non_null(strstr(bound, "left((\"q\".f(a, ')'))::text, 1000)"));
    assert_non_null(strstr(bound, " as k"));
    assert_null(strchr(bound, '\a'));
    assert_null(strstr(bound, "{error"));
    assert_non_null(strstr(bound, "E'\\\\s+'"));
    free(bound);
}

static void
binds_prefixes_and_times(void **state)
{
    char name[] = "x", text[] = "select {ms(max(a))}, {error_key({ms(b)})} from "
                                "{schema}.{prefix}t, {prefix_lit} {schema_lit}";
    struct section s = {.name = name, .sql = text, .has_prefix = true};
    char *bound = NULL;
    struct err e = {0};

    (void)state;
    assert_true(sections_bind(&s, "we/ird/acme_", &bound, &e));
    assert_non_null(strstr(bound, "select (extract(epoch from nullif(nullif(max(a), 'infinity'), "
                                  "'-infinity')) * 1000)::bigint, "));
    assert_non_null(strstr(bound, "nullif(nullif(b, "));
    assert_non_null(strstr(bound, "from \"we/ird\".acme_t, 'acme_' 'we/ird'"));
    free(bound);
    assert_true(sections_bind(&s, "public", &bound, &e));
    assert_non_null(strstr(bound, "from \"public\".t, '' 'public'"));
    free(bound);
    assert_false(sections_bind(&s, "public/a\"; drop", &bound, &e));
    assert_false(sections_bind(&s, "public/1a", &bound, &e));
    assert_false(sections_bind(&s, "/a", &bound, &e));
    s.has_prefix = false;
    assert_true(sections_bind(&s, "a/b", &bound, &e));
    assert_non_null(strstr(bound, "from \"a/b\".t, '' 'a/b'"));
    free(bound);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_file),     cmocka_unit_test(joins_lines),
        cmocka_unit_test(refuses),          cmocka_unit_test(accepts),
        cmocka_unit_test(binds_a_schema),   cmocka_unit_test(binds_ids),
        cmocka_unit_test(binds_error_keys), cmocka_unit_test(binds_prefixes_and_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
