/*
 * The filter language: the meaning of each term, the position of an error, and filters as text
 * again.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/filter.h"

struct given {
    const char *text;
    enum param param;
    const char *value;
};

static const struct given good[] = {
    {"",                          PARAM_WORDS,        NULL                         },
    {"  ",                        PARAM_WORDS,        NULL                         },
    {"boom",                      PARAM_WORDS,        "{\"boom\"}"                 },
    {"a b",                       PARAM_WORDS,        "{\"a\",\"b\"}"              },
    {"\"a b\"",                   PARAM_WORDS,        "{\"a b\"}"                  },
    {"!a b",                      PARAM_NOT_WORDS,    "{\"a\"}"                    },
    {"!a b",                      PARAM_WORDS,        "{\"b\"}"                    },
    {"\"say \\\"hi\\\"\"",        PARAM_WORDS,        "{\"say \\\"hi\\\"\"}"       },
    {"\"http://x\"",              PARAM_WORDS,        "{\"http://x\"}"             },
    {"payload~\"a b\"",           PARAM_IN_PAYLOAD,   "~a b"                       },
    {"payload.Tenant.id=A7",      PARAM_IN_PAYLOAD,   "=A7"                        },
    {"payload.Tenant.id=A7",      PARAM_PATH,         "{\"Tenant\",\"id\"}"        },
    {"payload.a~x",               PARAM_IN_PAYLOAD,   "~x"                         },
    {"payload.",                  PARAM_WORDS,        "{\"payload.\"}"             },
    {"tenant=a",                  PARAM_WORDS,        "{\"tenant=a\"}"             },
    {"code=500",                  PARAM_WORDS,        "{\"code=500\"}"             },
    {"foo::bar",                  PARAM_WORDS,        "{\"foo::bar\"}"             },
    {"Timeout::Error:",           PARAM_WORDS,        "{\"Timeout::Error:\"}"      },
    {"state:failed",              PARAM_STATES,       "{\"failed\"}"               },
    {"state:dead",                PARAM_STATES,       "{\"failed\"}"               },
    {"state:discarded",           PARAM_STATES,       "{\"failed\"}"               },
    {"state:available,executing", PARAM_STATES,       "{\"ready\",\"running\"}"    },
    {"worker:w-1",                PARAM_NODE,         "w-1"                        },
    {"attempts>=3",               PARAM_MIN_TRIES,    "3"                          },
    {"attempt<3",                 PARAM_TOP_TRIES,    "2"                          },
    {"args.id=7",                 PARAM_PATH,         "{\"id\"}"                   },
    {"state:retry,failed,failed", PARAM_STATES,       "{\"retry\",\"failed\"}"     },
    {"state:done",                PARAM_STATES,       "{\"completed\"}"            },
    {"!state:ready,running",      PARAM_STATES,
     "{\"scheduled\",\"retry\",\"failed\",\"completed\",\"cancelled\",\"blocked\"}"},
    {"queue:img",                 PARAM_QUEUE,        "img"                        },
    {"queue:\"my queue\"",        PARAM_QUEUE,        "my queue"                   },
    {"node:w-1 kind:k",           PARAM_NODE,         "w-1"                        },
    {"node:w-1 kind:k",           PARAM_KIND,         "k"                          },
    {"error:\"timeout after 1\"", PARAM_ERROR,        "timeout after 1"            },
    {"error~refused",             PARAM_ERROR,        "~refused"                   },
    {"error:\" ~/bin/x\"",        PARAM_ERROR,        " ~/bin/x"                   },
    {"error:\"\"",                PARAM_ERROR,        ""                           },
    {"id:018f",                   PARAM_IDS,          "{\"018f\"}"                 },
    {"queue:\"a,b\"",             PARAM_QUEUE,        "a,b"                        },
    {"age>5m",                    PARAM_OLDER_THAN,   "5 min"                      },
    {"age<250ms",                 PARAM_YOUNGER_THAN, "250 ms"                     },
    {"tries>=3",                  PARAM_MIN_TRIES,    "3"                          },
    {"tries>3",                   PARAM_MIN_TRIES,    "4"                          },
    {"tries<3",                   PARAM_TOP_TRIES,    "2"                          },
    {"tries<3 tries>=1",          PARAM_TOP_TRIES,    "2"                          },
    {"tries<3 tries>=1",          PARAM_MIN_TRIES,    "1"                          },
    {"tries:0",                   PARAM_TOP_TRIES,    "0"                          },
    {"tries=2",                   PARAM_MIN_TRIES,    "2"                          },
};

static void
test_terms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct filter f;
        struct err e = {0};
        if (!filter_parse(good[i].text, &f, NULL, &e))
            fail_msg("%s: %s", good[i].text, e.text);
        const char *value = f.terms.value[good[i].param];
        if (!good[i].value)
            assert_true(filter_is_empty(&f));
        else if (!value || strcmp(value, good[i].value) != 0)
            fail_msg("%s: %s is %s", good[i].text, param_name(good[i].param),
                     value ? value : "NULL");
        assert_string_equal(f.text, good[i].text);
        filter_done(&f);
    }
}

struct bad {
    const char *text;
    int start, len;
};

static const struct bad bads[] = {
    {"queue:a,b",                  0,  9 },
    {"node:n1,n2",                 0,  10},
    {"kind:x,y state:failed",      0,  8 },
    {"a stat:failed",              2,  4 },
    {"http://x",                   0,  4 },
    {"state:faild x",              0,  11},
    {"state:failed state:ready",   13, 11},
    {"queue:",                     0,  6 },
    {"age>x",                      0,  5 },
    {"age:5m",                     0,  6 },
    {"tries>many",                 0,  10},
    {"tries>99999999999999999999", 0,  26},
    {"tries<3 tries:5",            8,  7 },
    {"tries>3 tries=5",            8,  7 },
    {"tries:5 tries<3",            8,  7 },
    {"tries>1 tries>=3",           8,  8 },
    {"!queue:x",                   0,  8 },
    {"x \"open",                   2,  5 },
    {"!",                          0,  1 },
    {"queue~x",                    0,  7 },
    {"payload=x",                  0,  9 },
    {"a payload..b=x",             2,  12},
    {"payload.a.=x",               0,  12},
    {"payload.a>1",                0,  11},
    {"payload~a payload.b=c",      10, 11},
    {"!payload~x",                 0,  10},
    {"\xff",                       0,  1 },
    {"agee>1s",                    0,  4 },
    {"max_tries>3",                0,  9 },
    {"tris=3",                     0,  4 },
    {"a payloda.x=1",              2,  9 },
    {"foo~bar",                    0,  3 },
    {"error.x:1",                  0,  7 },
};

static void
test_errors_say_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct filter f;
        struct filter_mark mark;
        struct err e = {0};
        if (filter_parse(bads[i].text, &f, &mark, &e))
            fail_msg("%s: was taken", bads[i].text);
        assert_int_equal(e.kind, ERR_USAGE);
        assert_true(filter_is_empty(&f));
        if (mark.start != bads[i].start || mark.len != bads[i].len)
            fail_msg("%s: marked %d+%d", bads[i].text, mark.start, mark.len);
        filter_done(&f);
    }
}

/* For a wrong state the error quotes the word and lists all valid states. Each listed state is
 * valid. */
static void
test_states_are_named(void **state)
{
    static const char wrong[] = "no state \"faild\u241b\": ";
    struct filter f;
    struct err e = {0};
    int n = 0;

    (void)state;
    assert_false(filter_parse("state:failed,faild\x1b,x", &f, NULL, &e));
    filter_done(&f);
    if (strncmp(e.text, wrong, strlen(wrong)) != 0)
        fail_msg("%s", e.text);
    for (char *save, *s = strtok_r(e.text + strlen(wrong), " ", &save); s;
         s = strtok_r(NULL, " ", &save), n++) {
        char *text = xasprintf("state:%s", s);
        assert_true(filter_parse(text, &f, NULL, &(struct err){0}));
        filter_done(&f);
        free(text);
    }
    assert_int_equal(n, 9);
}

static void
test_limits(void **state)
{
    struct filter f;
    struct err e = {0};
    char text[3000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_false(filter_parse(text, &f, NULL, &e));
    filter_done(&f);
    text[0] = 0;
    for (int i = 0; i < 21; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "w%d ", i);
    assert_false(filter_parse(text, &f, NULL, &e));
    filter_done(&f);
}

static void
check_with(const char *text, const char *key, const char *value, const char *expected)
{
    char *got = filter_with(text, key, value);
    struct filter f;
    struct err e = {0};

    assert_string_equal(got, expected);
    assert_true(filter_parse(got, &f, NULL, &e));
    filter_done(&f);
    free(got);
}

static void
test_with(void **state)
{
    (void)state;
    check_with("", "queue", "img", "queue:img");
    check_with("a queue:x b", "queue", "img", "a b queue:img");
    check_with("a queue:x b", "queue", NULL, "a b");
    check_with("state:failed", "queue", "my \"q\"", "state:failed queue:\"my \\\"q\\\"\"");
    check_with("error~x y", "error", "timeout after N", "y error:\"timeout after N\"");
    check_with("", "error", "~/bin/x", "error:\" ~/bin/x\"");
    check_with("", "error", "", "error:\"\"");
    check_with("", "kind", "~x", "kind:~x");
    check_with("\"a b\"", "queue", "\\ \\", "\"a b\" queue:\"\\\\ \\\\\"");
}

static void
test_has_state(void **state)
{
    struct filter f;
    struct err e = {0};

    (void)state;
    assert_true(filter_parse("state:failed,retry", &f, NULL, &e));
    assert_true(filter_has_state(&f, "retry"));
    assert_false(filter_has_state(&f, "ready"));
    struct filter copy;
    filter_copy(&copy, &f);
    assert_true(filter_has_state(&copy, "failed"));
    filter_done(&copy);
    filter_done(&f);
    assert_true(filter_parse("", &f, NULL, &e));
    assert_true(filter_has_state(&f, "ready"));
    filter_done(&f);
}

/* A system that can filter only by queue, states, age and the least number of tries. */
static bool
takes_some(const void *ctx, enum param p)
{
    (void)ctx;
    return p == PARAM_QUEUE || p == PARAM_STATES || p == PARAM_OLDER_THAN || p == PARAM_MIN_TRIES;
}

static void
check_untaken(const char *text, const char *by, int start, int len)
{
    struct filter_mark mark = {-1, -1};
    const char *what = filter_untaken(text, takes_some, NULL, &mark);

    if (!by) {
        assert_null(what);
        return;
    }
    assert_string_equal(what, by);
    assert_int_equal(mark.start, start);
    assert_int_equal(mark.len, len);
}

static void
test_untaken(void **state)
{
    (void)state;
    check_untaken("", NULL, 0, 0);
    check_untaken("state:failed queue:mail age>5m tries>=3", NULL, 0, 0);
    check_untaken("queue:mail age<5m", "age", 11, 6);
    check_untaken("queue:mail tries:3", "tries", 11, 7);
    check_untaken("queue:mail payload.a.b=7", "payload", 11, 13);
    check_untaken("queue:mail boom", "words", 11, 4);
    check_untaken("!boom", "words", 0, 5);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),     cmocka_unit_test(test_errors_say_where),
        cmocka_unit_test(test_limits),    cmocka_unit_test(test_with),
        cmocka_unit_test(test_has_state), cmocka_unit_test(test_states_are_named),
        cmocka_unit_test(test_untaken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
