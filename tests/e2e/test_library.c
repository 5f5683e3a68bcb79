/*
 * The library as another program gets it: `make install` into a temporary prefix, pkg-config, a C
 * and a C++ compiler, and the example of tests/example.c against a server.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/server.h"

static PGconn *conn;
static char output[20000];

/* Runs a line of shell; keeps what it says. The prefix is $P, the flags of a sanitized library $S.
 */
static int
shell(const char *line)
{
    FILE *p = popen(line, "re");

    assert_non_null(p);
    output[fread(output, 1, sizeof output - 1, p)] = 0;
    int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void
must(const char *line)
{
    if (shell(line) != 0)
        fail_msg("%s\n%s", line, output);
}

static void
check(const char *sql, const char *expected)
{
    assert_string_equal(pg_value(conn, "%s", sql), expected);
}

static void
the_example_compiles_and_runs(void **state)
{
    (void)state;
    must("cd $P && cc -std=c11 -Wall -Wextra -Werror -pedantic -o example $SRCDIR/tests/example.c "
         "$(pkg-config --cflags --libs queuetop) $S 2>&1");
    must("$P/example \"$DSN\" 2>&1");
    assert_non_null(strstr(output, "mail: {\"order\": 17}\n"));
    assert_non_null(strstr(output, "invoice: {\"order\": 17}\n"));
    assert_null(strstr(output, "{\"order\": 18}"));
}

/* What was committed with the caller's own row was worked, what was rolled back was never there. */
static void
commit_and_rollback_are_the_callers(void **state)
{
    (void)state;
    check("select string_agg(queue || ' ' || state || ' ' || convert_from(result, 'UTF8'), ',' "
          "order by queue) from queues.history",
          "invoice completed \"sent\",mail completed \"sent\"");
    check("select count(*) from queues.queue", "0");
    check("select string_agg(id::text, ',') from orders", "17");
}

static void
the_header_is_for_cpp_too(void **state)
{
    (void)state;
    must("cd $P && printf '%s\\n' '#include <queuetop.h>' 'int main() {' "
         "'struct queuetop_push job = queuetop_job(\"q\", \"{}\"); struct queuetop_error e;' "
         "'return queuetop_push((pg_conn *)0, 0, &job, 0, &e) == -1 ? 0 : 1; }' >x.cc && "
         "c++ -std=c++11 -Wall -Wextra -Werror -pedantic -o x x.cc "
         "$(pkg-config --cflags --libs queuetop) $S 2>&1 && ./x 2>&1");
}

/* A program may have functions called fail or queue_new of its own. */
static void
nothing_else_is_exported(void **state)
{
    (void)state;
    must("nm -g --defined-only $P/lib/libqueuetop.a | awk 'NF == 3 && $3 !~ /^queuetop_/'");
    assert_string_equal(output, "");
    must("nm -g --defined-only $P/lib/libqueuetop.a | grep -q ' T queuetop_push$'");
}

static void
destdir_stands_before_the_prefix(void **state)
{
    (void)state;
    must("make -s -C $SRCDIR BUILD=$BUILD -o all install DESTDIR=$P/d PREFIX=/usr >/dev/null 2>&1 "
         "&& "
         "cd $P/d/usr && ls bin/queuetop include/queuetop.h lib/libqueuetop.a && "
         "grep -q '^Cflags: -I/usr/include$' lib/pkgconfig/queuetop.pc");
    must("make -s -C $SRCDIR BUILD=$BUILD uninstall DESTDIR=$P/d PREFIX=/usr >/dev/null 2>&1 && "
         "cd $P/d && find . -type f");
    assert_string_equal(output, "");
}

static int
set_up(void **state)
{
    char dir[400];

    (void)state;
    pg_start(NULL);
    const char *dsn = pg_newdb("library");
    conn = pg_connect(dsn);
    snprintf(dir, sizeof dir, "%s/prefix", getenv("TMPDIR"));
    setenv("P", dir, 1);
    setenv("DSN", dsn, 1);
    snprintf(dir, sizeof dir, "%s/prefix/lib/pkgconfig", getenv("TMPDIR"));
    setenv("PKG_CONFIG_PATH", dir, 1);
    must("\"$QUEUETOP\" -d \"$DSN\" install 2>&1");
    must("make -s -C $SRCDIR BUILD=$BUILD -o all install PREFIX=$P 2>&1");
    must(
        "nm $P/lib/libqueuetop.a | grep -q __asan_init && echo -fsanitize=address,undefined; true");
    output[strcspn(output, "\n")] = 0;
    setenv("S", output, 1);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    PQfinish(conn);
    must("rm -rf $P");
    pg_stop();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_compiles_and_runs),
        cmocka_unit_test(commit_and_rollback_are_the_callers),
        cmocka_unit_test(the_header_is_for_cpp_too),
        cmocka_unit_test(nothing_else_is_exported),
        cmocka_unit_test(destdir_stands_before_the_prefix),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
