/*
 * Arrays in parallel: if one is shorter or longer, or names no lease, the call fails, names the
 * lengths and changes nothing. Without the error the answer would count for no job, and the job
 * would run again.
 */
#include "tests/sql/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The leases, versions and seqs that node n holds: of a, then of b. */
#define HELD                                                                                 \
    "from (select array_agg(lease order by seq) as l, array_agg(version order by seq) as v," \
    " array_agg(seq order by seq) as s from t.held) h, lateral "
#define LENGTHS "arrays of different lengths: "

static const struct {
    const char *call, *says;
} bad[] = {
    {"complete('n', l, v[:1], s)",                                      LENGTHS "leases 2, versions 1, seqs 2"           },
    {"complete('n', l[:1], v, s)",                                      LENGTHS "leases 1, versions 2, seqs 2"           },
    {"complete('n', l, v, s[:1])",                                      LENGTHS "leases 2, versions 2, seqs 1"           },
    {"complete('n', l, v, null::bigint[])",                             LENGTHS "leases 2, versions 2, seqs NULL"        },
    {"complete('n', l, v, '{}'::bigint[])",                             LENGTHS "leases 2, versions 2, seqs 0"           },
    {"complete('n', l, v, s, array[now()])",                            LENGTHS "leases 2, versions 2, seqs 2, started 1"},
    {"complete('n', l, v, s, null, array['x', 'y', 'z']::bytea[])",
     LENGTHS "leases 2, versions 2, seqs 2, results 3"                                                                   },
    {"complete('n', l, v, s, null, '{}')",                              LENGTHS "leases 2, versions 2, seqs 2, results 0"},
    {"complete('n', array[l], array[v], array[s])",
     LENGTHS "leases [1:1][1:2], versions [1:1][1:2], seqs [1:1][1:2]"                                                   },
    {"complete('n', array[array[l[1]], array[l[2]]], v, s)",
     LENGTHS "leases [1:2][1:1], versions 2, seqs 2"                                                                     },
    {"complete('n', l, v, array_fill(s[1], array[2], array[0]))",
     LENGTHS "leases 2, versions 2, seqs [0:1]"                                                                          },
    {"complete('n', array_replace(l, l[2], null), v, s)",               "element 2 of leases is NULL"                    },
    {"complete('n', l, array[v[1], null], s)",                          "element 2 of versions is NULL"                  },
    {"complete('n', l, v, array[s[1], null])",                          "element 2 of seqs is NULL"                      },
    {"complete('n', l[:1], v[:1], array[null]::bigint[])",              "element 1 of seqs is NULL"                      },
    {"complete_and_claim('n', l, v[:1], s, null, null, 1)",             LENGTHS "leases 2, versions 1, seqs 2"           },
    {"complete_and_claim('n', l, v, '{}', null, null, 1)",              LENGTHS "leases 2, versions 2, seqs 0"           },
    {"complete_and_claim('n', l, v, null, null, null, 1)",
     LENGTHS "leases 2, versions 2, seqs NULL"                                                                           },
    {"complete_and_claim('n', '{}', v, '{}', null, null, 1)",
     LENGTHS "leases 0, versions 2, seqs 0"                                                                              },
    {"complete_and_claim('n', l, v, array[s[1], null], null, null, 1)",
     "element 2 of seqs is NULL"                                                                                         },
    {"fail('n', l, v[:1], s, array['x', 'y'])",                         LENGTHS "leases 2, versions 1, seqs 2, errors 2" },
    {"fail('n', l, v, s, array['x'])",                                  LENGTHS "leases 2, versions 2, seqs 2, errors 1" },
    {"fail('n', l, v, s, array['x', 'y'], final => array[true])",
     LENGTHS "leases 2, versions 2, seqs 2, errors 2, final 1"                                                           },
    {"fail('n', l, v, s, array['x', 'y'], retry_in => '{}')",
     LENGTHS "leases 2, versions 2, seqs 2, errors 2, retry_in 0"                                                        },
    {"fail('n', array[l[1], null], v, s, array['x', 'y'])",             "element 2 of leases is NULL"                    },
    {"extend('n', l, v[:1], '1 h')",                                    LENGTHS "leases 2, versions 1"                   },
    {"extend('n', l, null, '1 h')",                                     LENGTHS "leases 2, versions NULL"                },
    {"extend('n', array[l[1], null], v, '1 h')",                        "element 2 of leases is NULL"                    },
    {"give_back('n', l, v, s[:1])",                                     LENGTHS "leases 2, versions 2, seqs 1"           },
    {"give_back('n', l, array[null, v[1]], s)",                         "element 1 of versions is NULL"                  },
    {"keep_only('n', gen_random_uuid(), l || null::bigint)",            "element 3 of leases is NULL"                    },
    {"push_many(null, '{q,q}', payloads => '{1}')",                     LENGTHS "queues 2, payloads 1"                   },
    {"push_many(null, '{q}', payloads => '{1,2}')",                     LENGTHS "queues 1, payloads 2"                   },
    {"push_many(null, '{q,q}', unique_keys => '{k}')",                  LENGTHS "queues 2, unique_keys 1"                },
    {"push_many(array[gen_random_uuid()], null)",                       LENGTHS "queues NULL, ids 1"                     },
    {"push_many(array[null, null]::uuid[], '{q}')",                     LENGTHS "queues 1, ids 2"                        },
    {"push_many(null, '{q,null}')",                                     "element 2 of queues is NULL"                    },
    {"push_many(null, '{q}', expires_ins => '{}')",                     LENGTHS "queues 1, expires_ins 0"                },
    {"push_many(null, '{{q,q}}', '{x,y}')",                             LENGTHS "queues [1:1][1:2], kinds 2"             },
};

static void
unequal_arrays_are_refused(void **state)
{
    PGconn *c = core_new("parallel");

    (void)state;
    pg_run(c, "select t.push('q', 'a,b')");
    core_settle(c);
    expect(c, "a", "select t.claim('n')"); /* two leases */
    expect(c, "b", "select t.claim('n')");
    char *before = strdup(pg_value(c, "select t.picture()"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char sql[1024];
        snprintf(sql, sizeof sql, "select * " HELD "%s", bad[i].call);
        PGresult *r = PQexec(c, sql);
        const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        if (!code || strcmp(code, "QT007") != 0)
            fail_msg("%s: %s", bad[i].call, code ? PQresultErrorMessage(r) : "no error");
        assert_string_equal(PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY), bad[i].says);
        assert_non_null(PQresultErrorField(r, PG_DIAG_MESSAGE_HINT));
        PQclear(r);
        expect(c, before, "select t.picture()");
    }
    free(before);
    /* what the answers meant is still to be had */
    expect(c, "done,done",
           "select string_agg(outcome, ',') " HELD "complete('n', l, v, s, array[null, now()],"
           " array[null, 'x']::bytea[])");
    core_check(c);
    PQfinish(c);
}

/* Nothing to answer is no error, and the table above has each function that takes such arrays. */
static void
none_is_left_out(void **state)
{
    PGconn *c = core_new("parallel_all");

    (void)state;
    expect(c, "0", "select count(*) from complete('n', '{}', '{}', '{}'::bigint[])");
    expect(c, "0", "select count(*) from complete('n', null, null, null::bigint[])");
    expect(c, "0", "select count(*) from complete_and_claim('n', '{}', '{}', '{}', null, null, 1)");
    expect(c, "0", "select count(*) from fail('n', '{}', '{}', '{}', '{}'::text[])");
    expect(c, "0", "select count(*) from extend('n', '{}', '{}'::int[], '1 h')");
    expect(c, "0", "select count(*) from give_back('n', '{}', '{}', '{}')");
    expect(c, "0", "select count(*) from push_many('{}', '{}')");
    expect(c, "complete complete_and_claim extend fail give_back push_many",
           "select string_agg(distinct p.proname, ' ' order by p.proname) from pg_proc p"
           " where p.pronamespace = 'queues'::regnamespace"
           " and has_function_privilege('queues_worker', p.oid, 'execute')"
           " and 1 < (select count(*) from unnest(p.proargtypes::oid[]) a"
           " where format_type(a, null) like '%%[]')");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unequal_arrays_are_refused),
        cmocka_unit_test(none_is_left_out),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
