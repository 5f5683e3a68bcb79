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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_means_one_function),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
