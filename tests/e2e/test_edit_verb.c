/*
 * `queuetop edit`: another payload by an option, from a file, by the user's editor; what it
 * refuses, with which exit code, and what the database says afterwards.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/proc.h"

static const char *
id_of(const char *where)
{
    static char id[64];

    snprintf(id, sizeof id, "%s",
             pg_value(con_db(), "select id from queue where %s limit 1", where));
    return id;
}

/* Runs it; the errors must name the text (NULL = any). Gives the exit code. */
static int
edit(const char *input, const char *says, const char *words)
{
    char *out = NULL, *err = NULL;
    int code = proc_run(input, &out, &err, "edit %s \"%s\"", words, con_dsn());

    if (says && !strstr(err, says) && !strstr(out, says))
        fail_msg("\"%s\" is in neither of\n%s\n%s", says, out, err);
    free(out);
    free(err);
    return code;
}

static const char *
words_for(const char *id, const char *rest)
{
    static char words[500];

    snprintf(words, sizeof words, "%s %s", id, rest);
    return words;
}

static void
takes_a_payload(void **state)
{
    (void)state;
    con_failed("mail.send", 1, "boom");
    const char *id = id_of("true");
    assert_int_equal(
        edit(NULL, "+ { \"n\": 2 }", words_for(id, "--payload '{\"n\": 2}' --dry-run")), 0);
    assert_int_equal(con_count("state = 'failed'"), 1);
    assert_int_equal(
        edit(NULL, "1 job ready", words_for(id, "--payload '{\"n\": 2}' --yes --reason typo")), 0);
    assert_string_equal(pg_value(con_db(), "select payload || ' ' || state from queue"),
                        "{\"n\":2} ready");
    assert_string_equal(pg_value(con_db(), "select verb || ' ' || reason from audit"), "edit typo");
    assert_int_equal(edit(NULL, "the same", words_for(id, "--payload '{ \"n\": 2 }' --yes")), 1);
    assert_int_equal(edit("[3]\n", "1 job ready", words_for(id, "--payload-file - --yes")), 0);
    assert_string_equal(pg_value(con_db(), "select payload::text from queue"), "[3]");
}

static void
refuses(void **state)
{
    (void)state;
    con_running("mail.send", 1, "w");
    const char *id = id_of("true");
    assert_int_equal(edit(NULL, "the job is running", words_for(id, "--payload 1 --yes")), 3);
    pg_run(con_db(), "select push_bytes('b', '\\x00')");
    id = id_of("body is not null");
    assert_int_equal(edit(NULL, "bytes, not text", words_for(id, "--payload 1 --yes")), 3);
    con_failed("c", 1, "boom");
    id = id_of("state = 'failed'");
    assert_int_equal(
        edit(NULL, "this is no JSON: line 1, column 2", words_for(id, "--payload '{' --yes")), 2);
    assert_int_equal(edit(NULL, "nobody to ask", words_for(id, "--payload 1")), 2);
    assert_int_equal(edit(NULL, "an editor needs a terminal", id), 2);
    assert_int_equal(edit(NULL, "exclude", words_for(id, "--payload 1 --payload-file x")), 2);
    assert_int_equal(edit(NULL, "no-such-file", words_for(id, "--payload-file no-such-file")), 2);
    assert_int_equal(edit(NULL, "no job has \"12341234\"", "12341234 --payload 1"), 1);
    assert_int_equal(
        edit(NULL, "there is no job", "00000000-0000-7000-8000-000000000000 --payload 1 --yes"), 1);
    assert_int_equal(pg_int(con_db(), "select count(*) from audit"), 0);
}

/* At a terminal: the editor, a slip, the editor again, the question. */
static void
opens_the_editor(void **state)
{
    const char *env[] = {"VISUAL=sed -i s/SLIP/7/;s/.job./SLIP/", NULL};
    const char *argv[] = {getenv("QUEUETOP"), "edit", NULL, con_dsn(), NULL};
    struct vt vt;

    (void)state;
    pg_run(con_db(), "select push('q', '[\"job\"]', delay => '1 h')");
    argv[2] = id_of("true");
    vt_spawn(&vt, 24, 80, argv, env);
    vt_want(&vt, "this is no JSON: line 1, column 2");
    vt_want(&vt, "Edit on?");
    vt_keys(&vt, "enter");
    vt_want(&vt, "+ [7]");
    vt_want(&vt, "now instead of later");
    vt_want(&vt, "Go on?");
    vt_keys(&vt, "y enter");
    vt_want(&vt, "1 job ready");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
    assert_string_equal(pg_value(con_db(), "select payload || ' ' || state from queue"),
                        "[7] ready");
}

/* The same in line mode (--plain). */
static void
edits_in_lines(void **state)
{
    const char *env[] = {"VISUAL=sed -i s/1/2/", NULL};
    char line[200];
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    con_spawn(&vt, 24, 80, (const char *const[]){"--plain", NULL}, env);
    vt_want(&vt, "type a verb");
    snprintf(line, sizeof line, "edit %s\n", id_of("true"));
    vt_type(&vt, line);
    vt_want(&vt, "Go on?");
    vt_type(&vt, "y\n");
    vt_want(&vt, "1 job ready");
    vt_type(&vt, "quit\n");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
    assert_int_equal(con_count("state = 'ready' and payload ->> 'n' = '2'"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(takes_a_payload, con_empty),
        cmocka_unit_test_setup(refuses, con_empty),
        cmocka_unit_test_setup(opens_the_editor, con_empty),
        cmocka_unit_test_setup(edits_in_lines, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
