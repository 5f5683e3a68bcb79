/*
 * README.md says what is so: its SQL runs as it stands there, as a plain member of queues_worker;
 * its verbs and keys, and those of the manual page, are the program's; its pictures exist.
 */
#include "tests/harness.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server.h"

static const char *dsn;

static int
run(const char *const *argv)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        char *args[16] = {NULL};
        for (int i = 0; argv[i] && i < 15; i++)
            memcpy(&args[i], &argv[i], sizeof args[i]);
        execvp(args[0], args);
        _exit(127);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static char *
readme(void)
{
    char path[4096];
    struct stat st;

    snprintf(path, sizeof path, "%s/README.md", getenv("SRCDIR"));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    return text;
}

static int
start(void **state)
{
    const char *queuetop = getenv("QUEUETOP");

    (void)state;
    pg_start(NULL);
    dsn = strdup(pg_newdb("readme"));
    const char *install[] = {queuetop, "install", dsn, NULL};
    assert_int_equal(run(install), 0);
    return 0;
}

/* The text between ```sql and ```, in a file of our own. */
static void
write_sql(const char *path)
{
    char *text = readme(), *from = strstr(text, "```sql\n"), *to;

    assert_non_null(from);
    from += strlen("```sql\n");
    assert_non_null(to = strstr(from, "```"));
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(from, 1, (size_t)(to - from), f), to - from);
    fclose(f);
    free(text);
}

static void
its_sql_runs(void **state)
{
    char path[300], as_app[4200];
    PGconn *conn = pg_connect(dsn);

    (void)state;
    snprintf(path, sizeof path, "%s/readme.sql", getenv("TMPDIR"));
    write_sql(path);
    pg_run(conn, "create role app login in role queues_worker, queues_viewer");
    snprintf(as_app, sizeof as_app, "%s user=app", dsn);
    const char *argv[] = {"psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", as_app, "-f", path, NULL};
    assert_int_equal(run(argv), 0);
    unlink(path);
    assert_string_equal(pg_value(conn, "select convert_from(result, 'UTF8') from queues.history"),
                        "sent");
    assert_string_equal(pg_value(conn, "select state || ' ' || tries || ' ' || error "
                                       "from queues.queue"),
                        "retry 1 mailbox full");
    PQfinish(conn);
}

/* Every filter in the table of "Finding a job", as the argument of a verb: a filter, no connection
 * string, and one that the queue knows. */
static void
its_filters_are_words_of_verbs(void **state)
{
    char *text = readme(), *at = strstr(text, "## Finding a job"), *end;
    int n = 0;

    (void)state;
    assert_non_null(at);
    assert_non_null(at = strstr(at, "|---|---|\n"));
    assert_non_null(end = strstr(at, "\n\n"));
    *end = 0;
    for (at += strlen("|---|---|\n"); at && *at == '|'; at = strchr(at, '\n'), at += at != NULL) {
        for (char *s = at + 2; *s == '`'; s += strspn(s, " ")) {
            char *close = strchr(s + 1, '`');
            assert_non_null(close);
            *close = 0;
            const char *word =
                strcmp(s + 1, "id:UUID") != 0 ? s + 1 : "id:00000000-0000-4000-8000-000000000001";
            const char *argv[] = {getenv("QUEUETOP"), "jobs", word, "-d", dsn, NULL};
            int code = run(argv);
            if (code != 0 && code != 1)
                fail_msg("queuetop jobs '%s' ends with %d", word, code);
            *close = '`';
            s = close + 1;
            n++;
        }
    }
    assert_true(n >= 14);
    free(text);
}

static void
verbs_options_and_keys_are_those_of_the_program(void **state)
{
    char path[4096];

    (void)state;
    snprintf(path, sizeof path, "%s/tests/docs.sh", getenv("SRCDIR"));
    const char *argv[] = {path, "--check", NULL};
    assert_int_equal(run(argv), 0);
}

static void
its_pictures_exist(void **state)
{
    char *text = readme();
    int n = 0;

    (void)state;
    for (char *at = text; (at = strstr(at, "](screenshots/")); n++) {
        char path[4096];
        at += strlen("](");
        snprintf(path, sizeof path, "%s/%.*s", getenv("SRCDIR"), (int)strcspn(at, ")"), at);
        if (access(path, R_OK) != 0)
            fail_msg("%s: %s", path, strerror(errno));
    }
    assert_true(n >= 10);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_sql_runs),
        cmocka_unit_test(its_filters_are_words_of_verbs),
        cmocka_unit_test(verbs_options_and_keys_are_those_of_the_program),
        cmocka_unit_test(its_pictures_exist),
    };

    return cmocka_run_group_tests_name("readme", tests, start, pg_group_stop);
}
