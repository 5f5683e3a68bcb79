/*
 * README.md and the pages of docs/ say what is so: their SQL runs as it stands there, as a plain
 * member of queues_worker; their filters are words of the verbs; what they say of verbs, options,
 * keys, settings and functions is the program's; pictures and links lead somewhere; man shows each
 * page without a warning.
 */
#include "tests/harness.h"

#include <errno.h>
#include <glob.h>
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
read_file(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "re");

    if (!f)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fstat(fileno(f), &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    return text;
}

static char *
page(const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", getenv("SRCDIR"), name);
    return read_file(path);
}

/* Calls fn with the path, below the source, of every page in Markdown: README.md, docs/, the rooms.
 */
static int
each_page(void (*fn)(const char *name, int *n), const char *pattern)
{
    char path[4096];
    glob_t found;
    int n = 0;
    size_t root = strlen(getenv("SRCDIR")) + 1;

    snprintf(path, sizeof path, "%s/%s", getenv("SRCDIR"), pattern);
    assert_int_equal(glob(path, GLOB_BRACE, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        fn(found.gl_pathv[i] + root, &n);
    globfree(&found);
    return n;
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

/* The text of a page between ```sql and ```; from malloc. */
static char *
sql_of(const char *name)
{
    char *text = page(name), *from = strstr(text, "```sql\n"), *to;

    assert_non_null(from);
    from += strlen("```sql\n");
    assert_non_null(to = strstr(from, "```"));
    char *sql = strndup(from, (size_t)(to - from));
    assert_non_null(sql);
    free(text);
    return sql;
}

static void
psql(const char *who, const char *sql)
{
    char path[300];

    snprintf(path, sizeof path, "%s/page.sql", getenv("TMPDIR"));
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(sql, f) >= 0);
    fclose(f);
    const char *argv[] = {"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", who, "-f", path, NULL};
    assert_int_equal(run(argv), 0);
    unlink(path);
}

static void
their_sql_runs(void **state)
{
    char as_app[4200];
    PGconn *conn = pg_connect(dsn);
    char *sql = sql_of("README.md"), *same = sql_of("docs/queuetop-engine.7.md");
    char *roles = sql_of("docs/queuetop-operations.7.md");

    (void)state;
    assert_string_equal(sql, same);
    pg_run(conn, "create role app login in role queues_worker, queues_viewer");
    snprintf(as_app, sizeof as_app, "%s user=app", dsn);
    psql(as_app, sql);
    assert_string_equal(pg_value(conn, "select convert_from(result, 'UTF8') from queues.history"),
                        "sent");
    assert_string_equal(pg_value(conn, "select state || ' ' || tries || ' ' || error "
                                       "from queues.queue"),
                        "retry 1 mailbox full");
    psql(dsn, roles);
    PQfinish(conn);
    free(roles);
    free(same);
    free(sql);
}

/* Every filter in the table of "Finding a job", as the argument of a verb: a filter, no connection
 * string, and one that the queue knows. */
static void
filters_are_words_of_verbs(void **state)
{
    char *text = page("docs/queuetop-console.7.md"), *at = strstr(text, "## Finding a job"), *end;
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

/* The examples of verbs that only look, and those that only say what they would do, as a shell runs
 * them, in a database "app". Most of what they name is not there. */
static void
examples_run(void **state)
{
    static const char script[] =
        "for verb in queues jobs nodes leases failures audit job queue help cron adapter install "
        "migrate uninstall purge-audit purge delete; do\n"
        "    queuetop $verb --help | sed -n '/^examples:$/,/^$/s/^  //p' | grep -E \"^queuetop "
        "(queues|jobs|nodes|leases|failures|audit|job|help)\\\\b|next|adapter list|queue mails$|"
        "--print|--dry-run\" | grep -v -e --watch -e --wait | while read -r line; do\n"
        "        sh -c \"$line\" >out 2>err </dev/null || [ $? = 1 ] || { echo \"$line\"; cat err; "
        "}\n"
        "        echo >>ran\n"
        "    done\n"
        "done >failed\n"
        "[ ! -s failed ] && [ $(wc -l <ran) -ge 20 ] || { cat failed ran >&2; exit 1; }\n"
        "rm -f -- *";
    char command[sizeof script + 9000];
    const char *argv[] = {"bash", "-euc", command, NULL};
    PGconn *conn = pg_connect(pg_newdb("app"));
    const char *install[] = {getenv("QUEUETOP"), "install", pg_dsn("app"), NULL};

    (void)state;
    assert_int_equal(run(install), 0);
    pg_run(conn, "select queues.push('mails', id => '0198c5e7-0000-7000-8000-000000000001')");
    PQfinish(conn);
    setenv("PGHOST", pg_host(), 1);
    setenv("PGDATABASE", "app", 1);
    setenv("PGUSER", "postgres", 1);
    snprintf(command, sizeof command,
             "mkdir \"$TMPDIR/run\"; cd \"$TMPDIR/run\"; trap 'rmdir \"$TMPDIR/run\"' EXIT\n"
             "PATH=${QUEUETOP%%/*}:$PATH\n%s",
             script);
    assert_int_equal(run(argv), 0);
}

/* With UPDATE=1 (make docs) the pages are written anew instead. */
static void
generated_parts_are_the_programs(void **state)
{
    char path[4096];
    const char *update = getenv("UPDATE");

    (void)state;
    snprintf(path, sizeof path, "%s/tests/docs.sh", getenv("SRCDIR"));
    setenv("DSN", dsn, 1);
    const char *argv[] = {path, update && *update ? NULL : "--check", NULL};
    assert_int_equal(run(argv), 0);
}

/* Each [text](target) outside of code, if the target is in the tree: pictures and pages. */
static void
follow_links(const char *name, int *n)
{
    char *text = page(name);
    const char *slash = strrchr(name, '/');
    int folder = slash ? (int)(slash - name + 1) : 0;

    for (char *at = text; (at = strstr(at, "]("));) {
        char path[8192];
        at += 2;
        int len = (int)strcspn(at, ")#\n");
        if (len == 0 || strstr(at, "://") == at + strcspn(at, ":)\n"))
            continue;
        snprintf(path, sizeof path, "%s/%.*s%.*s", getenv("SRCDIR"), folder, name, len, at);
        if (access(path, R_OK) != 0)
            fail_msg("%s: %s: %s", name, path, strerror(errno));
        ++*n;
    }
    free(text);
}

static void
pictures_and_links_lead_somewhere(void **state)
{
    (void)state;
    assert_true(each_page(follow_links, "{README.md,docs/*.md}") >= 40);
    each_page(follow_links, "{*/README.md,*/*/README.md}");
}

/* README is one page for somebody in a hurry. */
static void
readme_is_short(void **state)
{
    char *text = page("README.md");
    int lines = 0;

    (void)state;
    for (char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_in_range(lines, 50, 150);
    free(text);
}

/* What man and groff print, beside the text, is a warning. */
static void
show(const char *name, int *n)
{
    static const char *const shown_by[] = {"man --warnings -P cat -l",
                                           "groff -ww -man -K utf8 -T utf8"};
    char made[4096], command[9000], said[1000];
    int len = (int)strlen(name) - (int)strlen("docs/") - (int)strlen(".md");

    snprintf(made, sizeof made, "%s/man/%.*s", getenv("BUILD"), len, name + strlen("docs/"));
    char *text = read_file(made);
    assert_non_null(strstr(text, "\n.SH NAME\n"));
    free(text);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "%s %s 2>&1 >/dev/null", shown_by[i], made);
        FILE *f = popen(command, "r");
        assert_non_null(f);
        size_t got = fread(said, 1, sizeof said - 1, f);
        said[got] = 0;
        int status = pclose(f);
        if (got > 0 || status != 0)
            fail_msg("%s: %d, %s", command, status, said);
    }
    ++*n;
}

static void
man_shows_each_page(void **state)
{
    (void)state;
    setenv("MANWIDTH", "80", 1);
    assert_int_equal(each_page(show, "docs/*.[1-9].md"), 7);
}

/* A page that man.awk does not understand ends it: nothing is dropped in silence. */
static void
no_page_is_half_understood(void **state)
{
    static const char *const wrong[] = {
        "no heading\n",
        "# x(1): y\n\n#### too deep\n",
        "# x(1): y\n\na `code without an end\n",
        "# x(1): y\n\n**bold without an end\n",
        "# x(1): y\n\n| a | b |\n|---|---|\n| one cell |\n",
        "# x(1): y\n\n| a | b |\n|---|---|\n| c | d |\ntext\n",
        "# x(1): y\n\n- item\n  - an item in an item\n",
        "# x(1): y\n\n```\ncode\n",
        "# x(1): y\n\n> a quotation\n",
    };
    char path[300], program[4200];

    (void)state;
    snprintf(path, sizeof path, "%s/page", getenv("TMPDIR"));
    snprintf(program, sizeof program, "%s/docs/man.awk", getenv("SRCDIR"));
    const char *argv[] = {"awk", "-f", program, path, NULL};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        fputs(wrong[i], f);
        fclose(f);
        if (run(argv) == 0)
            fail_msg("man.awk takes: %s", wrong[i]);
    }
    unlink(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(their_sql_runs),
        cmocka_unit_test(filters_are_words_of_verbs),
        cmocka_unit_test(generated_parts_are_the_programs),
        cmocka_unit_test(examples_run),
        cmocka_unit_test(pictures_and_links_lead_somewhere),
        cmocka_unit_test(readme_is_short),
        cmocka_unit_test(man_shows_each_page),
        cmocka_unit_test(no_page_is_half_understood),
    };

    return cmocka_run_group_tests_name("pages", tests, start, pg_group_stop);
}
