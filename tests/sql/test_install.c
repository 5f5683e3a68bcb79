/*
 * Installing the core schema: once, again, as a dry run, without the right to make roles, and the
 * cases in which it must refuse and change nothing.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/log.h"
#include "tests/sql/install.h"

static void
must_install(struct fixture *f, struct install_options o)
{
    if (!install_try(f, f->dsn, o))
        fail_msg("%s", f->err.text);
}

static void
must_say(const struct fixture *f, const char *text)
{
    const char *said = f->said.data ? f->said.data : "";

    if (!strstr(said, text))
        fail_msg("no '%s' in:\n%s%s", text, said, f->err.text);
}

static int
setup(void **state)
{
    static int n;
    char name[20];

    snprintf(name, sizeof name, "install%d", ++n);
    *state = install_open(name);
    return 0;
}

static void
dry_then_real_then_again(void **state)
{
    struct fixture *f = *state;

    must_install(f, (struct install_options){.schema = "My Queue", .dry_run = true});
    must_say(f, "role queues_viewer: would be made");
    must_say(f, "schema My Queue: version 2 would be installed (");
    must_say(f, "dry run: nothing was changed");
    assert_string_equal(
        pg_value(f->conn, "select count(*) from pg_namespace where nspname = 'My Queue'"), "0");
    assert_string_equal(
        pg_value(f->conn, "select count(*) from pg_roles where rolname ~ '^queues_'"), "0");

    must_install(f, (struct install_options){.schema = "My Queue"});
    must_say(f, "role queues_operator: made");
    must_say(f, "role queues_pusher: made");
    must_say(f, "schema My Queue: version 2 installed (");
    assert_string_equal(pg_value(f->conn, "select version from \"My Queue\".meta"), "2");

    must_install(f, (struct install_options){.schema = "My Queue"});
    must_say(f, "role queues_operator: was there");
    must_say(f, "schema My Queue: version 2 is there, nothing to change (");
    must_install(f, (struct install_options){.schema = "My Queue", .migrate = true});
    must_say(f, "nothing to change");

    pg_run(f->conn, "drop function \"My Queue\".setting_int(text) cascade");
    must_install(f, (struct install_options){.schema = "My Queue", .dry_run = true});
    must_say(f, "would be brought up to date");
    must_install(f, (struct install_options){.schema = "My Queue", .migrate = true});
    must_say(f, "brought up to date");

    must_install(f, (struct install_options){.schema = "second"}); /* beside the first */
    must_say(f, "schema second: version 2 installed (");
}

static void
refuses(void **state)
{
    struct fixture *f = *state;

    assert_false(
        install_try(f, f->dsn, (struct install_options){.schema = "nowhere", .migrate = true}));
    assert_int_equal(f->err.kind, ERR_REFUSED);
    assert_non_null(strstr(f->err.text, "nothing is installed"));

    pg_run(f->conn, "create schema app");
    pg_run(f->conn, "create table app.customer()");
    assert_false(install_try(f, f->dsn, (struct install_options){.schema = "app"}));
    assert_int_equal(f->err.kind, ERR_REFUSED);
    assert_non_null(strstr(f->err.text, "holds tables of others"));

    assert_false(install_try(f, f->dsn, (struct install_options){.schema = "public"}));
    assert_non_null(strstr(f->err.text, "00_rights: "));

    must_install(f, (struct install_options){.schema = "q"});
    pg_run(f->conn, "update q.meta set protocol = 99");
    assert_false(install_try(f, f->dsn, (struct install_options){.schema = "q"}));
    assert_int_equal(f->err.kind, ERR_REFUSED);
    assert_non_null(strstr(f->err.text, "protocol 99"));
    pg_run(f->conn, "update q.meta set protocol = 1, version = 99");
    assert_false(install_try(f, f->dsn, (struct install_options){.schema = "q"}));
    assert_int_equal(f->err.kind, ERR_REFUSED);
    assert_non_null(strstr(f->err.text, "version 99"));
    static const char *const older[] = {"1", "0", "-2147483648"}; /* than the base */
    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        pg_run(f->conn, "update q.meta set version = %s", older[i]);
        assert_false(install_try(f, f->dsn, (struct install_options){.schema = "q"}));
        assert_non_null(strstr(f->err.text, "development version"));
    }
    pg_run(f->conn, "update q.meta set version = 2");
    pg_run(f->conn, "alter table q.meta drop made_from");
    assert_false(install_try(f, f->dsn, (struct install_options){.schema = "q"}));
    assert_non_null(strstr(f->err.text, "development version"));
}

/* An owner who may not make roles gets everything else, and the output says so. */
static void
without_the_right_to_make_roles(void **state)
{
    struct fixture *f = *state;
    char dsn[300];

    pg_run(f->conn, "create role plain login");
    pg_run(f->conn, "grant create on database \"%s\" to plain", PQdb(f->conn));
    snprintf(dsn, sizeof dsn, "host=%s user=plain dbname=%s", pg_host(), PQdb(f->conn));
    const struct install_options o = {
        .schema = "mine", .viewer = "v", .worker = "w", .operator_ = "o"};
    if (!install_try(f, dsn, o))
        fail_msg("%s", f->err.text);
    must_say(f, "role v: is missing and could not be made");
    must_say(f, "schema mine: version 2 installed");
    pg_run(f->conn, "drop owned by plain; drop role plain");
}

/* The schema of that name from a printed text, and one from an installation, hold the same; and
 * `install` has nothing to do after the text. */
static void
check_printed(struct fixture *f, struct install_options o)
{
    if (install_by_psql(f, "-1vON_ERROR_STOP=1", o, 0) != 0)
        fail_msg("%s: %s", o.schema, f->said.data);
    char *printed = install_dump(f, o.schema);
    assert_true(strlen(printed) > 100000);
    must_install(f, o);
    must_say(f, "version 2 is there, nothing to change (");
    char *same = install_dump(f, o.schema);
    assert_string_equal(printed, same);

    PGconn *maker = f->conn;
    pg_run(maker, "drop schema %s cascade", PQescapeIdentifier(maker, o.schema, strlen(o.schema)));
    must_install(f, o);
    must_say(f, "version 2 installed (");
    char *installed = install_dump(f, o.schema);
    assert_string_equal(printed, installed);
    free(printed);
    free(same);
    free(installed);
}

static void
the_printed_text_installs_the_same(void **state)
{
    struct fixture *f = *state;

    check_printed(f, (struct install_options){.schema = "queues"});
    check_printed(f, (struct install_options){.schema = "My \"Queue\"\\'; drop table x; --",
                                              .viewer = "a \"viewer\"",
                                              .worker = "w\\'); select 1/0; --",
                                              .operator_ = "O'Op\nname"});
    pg_run(f->conn, "alter database %s set standard_conforming_strings = off", PQdb(f->conn));
    assert_int_equal(
        install_by_psql(f, "-1vON_ERROR_STOP=1",
                        (struct install_options){.schema = "It's\\", .worker = "w\\'; select 1/0"},
                        0),
        0);
    assert_string_equal(pg_value(f->conn, "select version from \"It's\\\".meta"), "2");
}

/* Functions of other schemas that would hide an unqualified name would run as the user who
 * installs. */
static void
the_printed_text_calls_nothing_of_others(void **state)
{
    struct fixture *f = *state;

    static const char *const functions[] = {"set_config(text, text, boolean) returns text",
                                            "current_setting(text) returns text",
                                            "current_setting(text, boolean) returns text",
                                            "hashtext(text) returns int",
                                            "quote_ident(text) returns text",
                                            "format(text, variadic text[]) returns text",
                                            "equal(text, text) returns boolean",
                                            "equal(name, text) returns boolean"};
    static const char *const words[] = {"-1vON_ERROR_STOP=1", "-q"};
    const struct install_options o = {.schema = "q"};

    pg_run(f->conn, "create schema trap; create sequence trap.sprung");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        pg_run(f->conn,
               "create function trap.%s language plpgsql as $$ begin raise warning 'trap'; "
               "perform nextval('trap.sprung'); return null; end $$",
               functions[i]);
    pg_run(f->conn, "create operator trap.= (leftarg = text, rightarg = text, function = "
                    "trap.equal); create operator trap.= (leftarg = name, rightarg = text, "
                    "function = trap.equal); create domain trap.text as pg_catalog.text");
    pg_run(f->conn, "alter database %s set search_path = trap, pg_catalog", PQdb(f->conn));
    for (int from = 0; from <= 2; from += 2)
        for (int i = 0; i < 2; i++) {
            int code = install_by_psql(f, words[!i], o, from);
            if (strstr(f->said.data, "trap") || (i && code != 0))
                fail_msg("%s: %s", words[!i], f->said.data);
        }
    assert_string_equal(pg_value(f->conn, "select is_called from trap.sprung"), "f");
}

/* Without a transaction, into a schema that is not empty, or from another version: nothing. */
static void
the_printed_text_refuses(void **state)
{
    static const char all[] = "select count(*) from pg_namespace where nspname in ('q', 'queues')";
    const struct install_options o = {.schema = "q"};
    struct fixture *f = *state;
    struct buf out = {0};

    install_by_psql(f, "-q", o, 0); /* goes on after an error */
    must_say(f, "run this file in one transaction");
    assert_string_equal(pg_value(f->conn, all), "0");
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1", o, 2), 3);
    assert_string_equal(pg_value(f->conn, all), "0");
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1", o, 0), 0);
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1", o, 0), 3);
    must_say(f, "schema q holds tables already");
    pg_run(f->conn, "update q.meta set version = 1");
    assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1", o, 2), 3);
    must_say(f, "version 1 is installed, this file is for version 2");
    assert_false(install_print(&o, 1, &out, &f->err));
    assert_non_null(strstr(f->err.text, "can be brought up to date, not 1"));
    assert_null(out.data);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, install_teardown)
    const struct CMUnitTest tests[] = {
        T(dry_then_real_then_again),
        T(refuses),
        T(without_the_right_to_make_roles),
        T(the_printed_text_installs_the_same),
        T(the_printed_text_calls_nothing_of_others),
        T(the_printed_text_refuses),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    pg_start(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
