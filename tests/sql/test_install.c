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
    assert_non_null(strstr(f->err.text, "00_schema: "));

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

/* An owner who may not make roles gets everything else, and is told. */
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

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, install_teardown)
    const struct CMUnitTest tests[] = {
        T(dry_then_real_then_again),
        T(refuses),
        T(without_the_right_to_make_roles),
    };

    log_min_level(getenv("V") ? LOG_DEBUG : LOG_ERROR);
    pg_start(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
