/*
 * Calls by a driver that leaves the types of parameters to the server, as node-pg does: each call
 * of a function that some role may call means one function.
 */
#include "tests/sql/core.h"

/* All public functions, called with each number of arguments by position and by name, and with each
 * optional argument alone by name. The answer: each call that the server does not take. */
static const char every_call[] =
    "create function t.untyped() returns table (call text, why text) language plpgsql as $$\n"
    "declare f record;\n"
    "begin\n"
    "    for f in select p.proname, p.pronargs::int as most, (p.pronargs - p.pronargdefaults)::int "
    "as least,\n"
    "                    array(select quote_ident(a) from unnest(p.proargnames[:p.pronargs]) a) as "
    "names\n"
    "             from pg_proc p where p.pronamespace = current_schema()::regnamespace\n"
    "               and p.proname in (select unnest(functions) from role_functions()) loop\n"
    "        for call in\n"
    "            select format('%I(%s)', f.proname,\n"
    "                          (select string_agg(case when named then f.names[i] || ' => ' else "
    "'' end || '$' || i,\n"
    "                                             ', ' order by i) from generate_series(1, n) i))\n"
    "            from generate_series(f.least, f.most) n, unnest('{f,t}'::bool[]) named union\n"
    "            select format('%I(%s)', f.proname, string_agg(f.names[i] || ' => $' || "
    "row_number, ', '))\n"
    "            from (select other, i, row_number() over (partition by other)\n"
    "                  from generate_series(f.least + 1, f.most) other, generate_series(1, f.most) "
    "i\n"
    "                  where i <= f.least or i = other) z group by other loop\n"
    "            begin\n"
    "                execute 'prepare untyped as select ' || call;\n"
    "                deallocate untyped;\n"
    "            exception when others then\n"
    "                why := sqlerrm;\n"
    "                return next;\n"
    "            end;\n"
    "        end loop;\n"
    "    end loop;\n"
    "end $$";

static void
each_call_means_one_function(void **state)
{
    PGconn *c = core_new("untyped");

    (void)state;
    pg_run(c, "%s", every_call);
    expect(c, "", "select coalesce(string_agg(call || ': ' || why, e'\\n'), '') from t.untyped()");
    /* The look itself: it would find two functions of one name. */
    pg_run(c,
           "create function give_back(node text, lease bigint, version int, seq bigint) returns int"
           " language sql as 'select 1'");
    expect(c, "give_back($1, $2, $3, $4)", "select call from t.untyped()");
    PQfinish(c);
}

/* The payload as a driver or a statement may give it. What is no JSON, or has another type, is an
 * error; nothing is guessed. */
static void
a_payload_has_any_type_of_json(void **state)
{
    static const struct {
        const char *value, *says;
    } payloads[] = {
        {"'{\"n\": 1.50}'",                                   "{\"n\": 1.50}" },
        {"json '{\"n\": 1.50}'",                              "{\"n\": 1.50}" },
        {"jsonb '{\"n\": 1.50}'",                             "{\"n\": 1.50}" },
        {"text '{\"n\": 1.50}'",                              "{\"n\": 1.50}" },
        {"varchar '[1]'",                                     "[1]"           },
        {"to_jsonb(array['x'])",                              "[\"x\"]"       },
        {"jsonb_build_object('n', repeat('x', 2000)) -> 'm'", "NULL"          },
        {"null",                                              "NULL"          },
        {"jsonb 'null'",                                      "null"          },
        {"json_build_object('n', ''), delay => '-1 s'",       "{\"n\" : \"\"}"},
    };
    static const struct {
        const char *value, *sqlstate;
    } wrong[] = {
        {"'x'",            "22P02"},
        {"text ''",        "22P02"},
        {"'\\x31'::bytea", "42883"},
        {"1",              "42883"},
    };
    PGconn *c = core_new("payload");

    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        pg_run(c, "select push('q', %s)", payloads[i].value);
        expect(c, payloads[i].says, "select payload from queue");
        pg_run(c, "delete from queue");
        pg_run(c, "select push(queue => 'q', payload => %s)", payloads[i].value);
        pg_run(c, "delete from queue");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_string_equal(pg_try(c, "select push('q', %s)", wrong[i].value), wrong[i].sqlstate);
    assert_string_equal(pg_try(c, "select push('q', jsonb_build_array(repeat('x', 10485760)))"),
                        "QT004");
    pg_run(c, "prepare typeless as select push($1, $2); execute typeless('q', '{\"a\":  1}')");
    expect(c, "{\"a\":  1}", "select payload from queue"); /* to the letter */
    pg_run(c, "prepare given (text, jsonb) as select push($1, $2, 'k'); execute given('q', '{}');"
              " select push('q'); select push('q', delay => '1 s')");
    expect(c, "4", "select count(*) from queue");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_means_one_function),
        cmocka_unit_test(a_payload_has_any_type_of_json),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
