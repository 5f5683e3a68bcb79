/*
 * Payloads by hand: e gives one to the user's editor and requeues the job, N pushes a job. What the
 * editor sees, what a slip or a refusal leaves, and what the database says afterwards.
 */
#include "tests/e2e/console.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* EDITOR=file, a shell script with the file as $1; it lives until the test is done. */
static const char *
editor(const char *script)
{
    static char path[300], var[320];

    snprintf(path, sizeof path, "%s/editor", getenv("TMPDIR"));
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(var, sizeof var, "EDITOR=%s", path);
    return var;
}

/* Directories of editors that are left in TMPDIR. */
static int
left_behind(void)
{
    DIR *d = opendir(getenv("TMPDIR"));
    int n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += !strncmp(e->d_name, "queuetop-", 9);
    closedir(d);
    return n;
}

static void
start(struct vt *vt, const char *script)
{
    const char *const env[] = {editor(script), "VISUAL=", "XDG_RUNTIME_DIR=/nowhere", NULL};

    con_spawn(vt, 24, 80, NULL, env);
    vt_want(vt, "ready");
    vt_want(vt, "live");
}

static const char *
payloads(const char *where)
{
    return pg_value(con_db(),
                    "select coalesce(string_agg(coalesce(payload::text, convert_from(body, "
                    "'UTF8')), ' ' order by seq), '') from queue where %s",
                    where);
}

/* --- edit ------------------------------------------------------------------------------------- */

static void
edits_and_requeues(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 2, "boom");
    start(&vt, "sed -i 's/job 2/job two/' \"$1\"");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "g e");
    vt_want(&vt, "1 job → ready");
    vt_want(&vt, "- { \"n\": 2, \"note\": \"job 2\" }");
    vt_want(&vt, "+ { \"n\": 2, \"note\": \"job two\" }");
    assert_int_equal(con_count("state = 'failed'"), 2);
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_string_equal(payloads("state = 'ready'"), "{\"n\":2,\"note\":\"job two\"}");
    assert_int_equal(con_count("state = 'failed'"), 1);
    assert_int_equal(left_behind(), 0);
    /* undo: the audit has kept the old payload byte by byte */
    vt_keys(&vt, "6");
    vt_want(&vt, "edit  ");
    vt_keys(&vt, "u");
    vt_want(&vt, "failed again");
    vt_keys(&vt, "y");
    vt_want(&vt, "undo: 1 row failed again");
    assert_string_equal(payloads("state = 'failed' and payload->>'n' = '2'"),
                        "{\"n\" : 2, \"note\" : \"job 2\"}");
    con_quit(&vt);
}

/* From the page of a job and from the sample of a group. */
static void
edits_from_other_screens(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    start(&vt, "sed -i 's/job 1/job one/' \"$1\"");
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "n");
    vt_want(&vt, "What you typed is kept");
    vt_keys(&vt, "esc");
    vt_want(&vt, "dropped; nothing was changed");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "enter");
    vt_want(&vt, "PAYLOAD");
    vt_keys(&vt, "e");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_string_equal(payloads("true"), "{\"n\":1,\"note\":\"job one\"}");
    con_quit(&vt);
}

/* A marked group: its job is edited, not that of the group under the cursor; also if the filter
 * hides all rows. */
static void
edits_a_job_of_the_marked_group(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 3, "no paper");
    con_failed("mail", 1, "boom");
    start(&vt, "sed -i 's/job/task/' \"$1\"");
    vt_keys(&vt, "3");
    vt_want(&vt, "boom");
    vt_want_row(&vt, 4, "no paper");
    vt_keys(&vt, "g space");
    vt_want(&vt, "1 marked");
    vt_want(&vt, "the newest of 1: job"); /* the cursor is on the other group */
    vt_keys(&vt, "e");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_int_equal(con_count("queue = 'fax' and state = 'ready'"), 1);
    assert_int_equal(con_count("queue = 'mail' and state = 'failed'"), 1);
    vt_keys(&vt, "g");
    vt_want(&vt, "the newest of 2: job");
    vt_keys(&vt, "space");
    vt_want(&vt, "1 marked");
    vt_keys(&vt, "/ text:nosuch enter");
    vt_want(&vt, "no failed job");
    vt_keys(&vt, "e");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_int_equal(con_count("queue = 'fax' and state = 'ready'"), 2);
    con_quit(&vt);
}

/* An older job of the group is shown: e edits this one, and y names it. */
static void
edits_the_sample_that_is_shown(void **state)
{
    const char *title = "newest but 1 of 2: job ";
    struct vt vt;
    int row, col;
    char id[9];

    (void)state;
    con_failed("mail.send", 1, "boom");
    con_failed("mail.send", 1, "boom"); /* later: so the order of the two is certain */
    start(&vt, "sed -i 's/job/task/' \"$1\"");
    vt_keys(&vt, "3");
    vt_want(&vt, "the newest of 2: job");
    vt_want(&vt, ", failed "); /* the details have come */
    vt_keys(&vt, "]");
    vt_want(&vt, title);
    assert_true(vt_find(&vt, title, &row, &col));
    snprintf(id, sizeof id, "%.8s", strstr(vt_row(&vt, row), title) + strlen(title));
    vt_keys(&vt, "y");
    vt_want(&vt, "(--clipboard lets y copy it)");
    assert_non_null(strstr(vt_row(&vt, 22), id));
    vt_keys(&vt, "e");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_string_equal(
        pg_value(con_db(), "select right(id::text, 8) from queue where state = 'ready'"), id);
    con_quit(&vt);
}

/* A job is followed while the payload of another one is edited: it is followed on afterwards. */
static void
leaves_the_followed_job_alone(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("fax", 1, "no paper");
    con_ready("mail", 1);
    start(&vt, "true");
    vt_resize(&vt, 24, 160);
    vt_keys(&vt, "2 / text:queue:mail enter");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "F 3");
    vt_want(&vt, "mail, ready for");
    vt_want(&vt, "no paper");
    vt_keys(&vt, "e");
    vt_want(&vt, "nothing was changed");
    vt_keys(&vt, "g"); /* the message goes */
    pg_run(con_db(), "select cancel(gen_random_uuid(), 1, array_agg(id)) from queue "
                     "where queue = 'mail'");
    vt_want(&vt, "mail, cancelled for");
    con_quit(&vt);
}

/* The editor has the terminal as the shell would give it, and the file is nobody else's. */
static void
lends_the_terminal(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    start(&vt, "cat >\"$1.copy\" <\"$1\"; stat -c 'modes %a' \"$1\" \"$(dirname \"$1\")\"; "
               "stty -a | grep -o ' icanon'; read line; echo \"heard $line\"; read more");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, " icanon");
    vt_want(&vt, "modes 600");
    vt_want(&vt, "modes 700");
    assert_false(vt.in_alt_screen);
    vt_keys(&vt, "text:q2r enter"); /* the editor gets these keys, not the console */
    vt_want(&vt, "heard q2r");
    vt_keys(&vt, "C-l"); /* the console draws nothing meanwhile */
    vt_settle(&vt, 1200);
    assert_false(vt.in_alt_screen);
    vt_resize(&vt, 30, 100);
    vt_keys(&vt, "enter");
    vt_want(&vt, "edit: nothing was changed");
    assert_true(vt.in_alt_screen);
    assert_int_equal(left_behind(), 0);
    assert_int_equal(con_count("state = 'failed'"), 1);
    vt_keys(&vt, "3");
    vt_want_row(&vt, 1, "[3 Failed");
    con_quit(&vt);
}

static void
brings_mistakes_back_to_the_editor(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    /* first a mistake; then the editor opens the typed text again */
    start(&vt, "if grep -q SLIP \"$1\"; then sed -i 's/SLIP/\"mended\"/' \"$1\"; "
               "else sed -i 's/\"job 1\"/SLIP/' \"$1\"; fi");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "this is no JSON: line 1, column 19");
    vt_settle(&vt, 50);
    assert_int_equal(con_count("state = 'failed'"), 1);
    vt_keys(&vt, "e");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_string_equal(payloads("true"), "{\"n\":1,\"note\":\"mended\"}");
    con_quit(&vt);
}

/* The job changes while the editor is open: the edit makes no second job, and the typed text is
 * kept. */
static void
refuses_what_moved_on(void **state)
{
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    start(&vt, "echo '[1]' >\"$1\"; clear; echo 'in the editor'; read line; clear");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "in the editor");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id)) from queue");
    vt_keys(&vt, "enter");
    vt_want(&vt, "it has moved on since it was read: ready now");
    vt_want(&vt, "What you typed is kept");
    vt_keys(&vt, "esc");
    /* and between the question and the answer */
    pg_run(con_db(), "truncate queue, work_queue");
    con_failed("mail.send", 1, "bang");
    vt_want(&vt, "bang");
    vt_keys(&vt, "g e");
    vt_want(&vt, "in the editor");
    vt_keys(&vt, "enter");
    vt_want(&vt, "1 job → ready");
    pg_run(con_db(), "select requeue(gen_random_uuid(), 1, array_agg(id)) from queue");
    vt_keys(&vt, "y");
    vt_want(&vt, "nothing changed: it has moved on since it was read: ready now");
    assert_int_equal(con_count("true"), 1);
    assert_string_equal(payloads("true"), "{\"n\" : 1, \"note\" : \"job 1\"}");
    con_quit(&vt);
}

static void
edits_texts_but_no_bytes(void **state)
{
    struct vt vt;

    (void)state;
    pg_run(con_db(), "select push_bytes('b', '\\x00ff')");
    start(&vt, "sed -i 's/two/2/' \"$1\"");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "e");
    vt_want(&vt, "its payload is bytes, not text");
    pg_run(con_db(), "select push_text('a', E'one\\ntwo {', 'text/plain')");
    vt_want(&vt, "2 of 2");
    vt_keys(&vt, "g e");
    vt_want(&vt, "- two {");
    vt_want(&vt, "behind those that wait");
    vt_keys(&vt, "y");
    vt_want(&vt, "edit: 1 job ready");
    assert_string_equal(payloads("queue = 'a'"), "one\n2 {");
    vt_keys(&vt, "* e");
    vt_want(&vt, "one job at a time");
    con_quit(&vt);
}

static void
without_an_editor(void **state)
{
    const char *const env[] = {"VISUAL=no-such-editor -w", NULL};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    con_spawn(&vt, 24, 80, NULL, env);
    vt_want(&vt, "live");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "no-such-editor");
    vt_want(&vt, "boom");
    con_quit(&vt);
    start(&vt, "exit 3");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "the editor ended with exit code 3");
    assert_int_equal(left_behind(), 0);
    assert_int_equal(con_count("state = 'failed'"), 1);
    con_quit(&vt);
}

/* The temporary file is removed however the console ends, also if only the editor is left. */
static void
leaves_no_file(void **state)
{
    static const int signals[] = {15, 9};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    for (int i = 0; i < 2; i++) {
        start(&vt, "echo 'in the editor'; read line; echo ended >\"$1\"");
        vt_keys(&vt, "2");
        vt_want(&vt, "boom");
        vt_keys(&vt, "e");
        vt_want(&vt, "in the editor");
        assert_int_equal(left_behind(), 1);
        vt_signal(&vt, signals[i]);
        assert_int_equal(vt_exit_status(&vt), 128 + signals[i]);
        vt_keys(&vt, "enter");
        for (int k = 0; k < 3000 && left_behind() > 0; k++)
            vt_settle(&vt, 20);
        assert_int_equal(left_behind(), 0);
        vt_done(&vt);
    }
}

/* Ctrl-Z in the editor stops us with it; fg goes on in the editor. */
static void
stops_with_its_editor(void **state)
{
    const char *argv[] = {"sh",
                          "-c",
                          "set -m; \"$0\" \"$1\"; echo in the shell; read x; fg >/dev/null",
                          getenv("QUEUETOP"),
                          con_dsn(),
                          NULL};
    const char *env[] = {editor("echo 'in the editor'; kill -TSTP 0; echo on; read line"), NULL};
    struct vt vt;

    (void)state;
    con_failed("mail.send", 1, "boom");
    vt_spawn(&vt, 24, 80, argv, env);
    vt_want(&vt, "live");
    vt_keys(&vt, "2");
    vt_want(&vt, "boom");
    vt_keys(&vt, "e");
    vt_want(&vt, "in the editor");
    vt_want(&vt, "in the shell");
    vt_keys(&vt, "enter");
    vt_want(&vt, "on");
    vt_settle(&vt, 100);
    assert_false(vt.in_alt_screen);
    vt_keys(&vt, "enter");
    vt_want(&vt, "nothing was changed");
    con_quit(&vt);
}

/* --- push ------------------------------------------------------------------------------------- */

static void
pushes_by_hand(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    con_start(&vt, 24, 80, NULL);
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "N");
    vt_want(&vt, "Push a job");
    vt_want(&vt, "mail.send");
    vt_keys(&vt, "tab text:welcome tab");
    vt_type(&vt, "{\"to\": 1,}");
    vt_keys(&vt, "enter");
    vt_want(&vt, "no JSON: line 1, column 10");
    vt_keys(&vt, "C-u");
    vt_type(&vt, "{\"to\":  1}");
    vt_keys(&vt, "tab C-u text:2 tab tab text:only-one tab text:3 tab");
    vt_type(&vt, "asked by Zoë, 日本");
    vt_keys(&vt, "enter");
    vt_want(&vt, "1 job → ready");
    vt_want(&vt, "kind welcome, priority 2");
    vt_keys(&vt, "y");
    vt_want(&vt, "push: 1 job ready (job ");
    assert_string_equal(
        pg_value(con_db(), "select concat_ws(' ', kind, priority, unique_key, max_tries, payload) "
                           "from queue where kind <> ''"),
        "welcome 2 only-one 3 {\"to\":  1}");
    assert_string_equal(pg_value(con_db(), "select verb || ' ' || queue || ' ' || reason || ' ' || "
                                           "(who = session_user) from audit"),
                        "push mail.send asked by Zoë, 日本 true");
    /* a second push with the same unique key adds no job */
    vt_keys(&vt, "N");
    vt_want(&vt, "Push a job");
    vt_keys(&vt, "tab tab tab tab tab text:only-one enter");
    vt_want(&vt, "there is such a job already: ");
    vt_keys(&vt, "esc");
    assert_int_equal(con_count("true"), 2);
    con_quit(&vt);
}

/* By the editor, for later, and refused by the limit; what was typed stays. */
static void
pushes_what_was_edited(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    pg_run(con_db(), "update setting set value = '2000' where name = 'payload_limit'");
    start(&vt, "if [ -s \"$1\" ]; then echo '{\n \"small\": true\n}' >\"$1\"; else "
               "printf '[%03000d]' 1 | sed 's/0/1/g' >\"$1\"; fi");
    vt_keys(&vt, "2");
    vt_want_row(&vt, 1, "[2 Jobs");
    vt_want(&vt, "1 of 1");
    vt_keys(&vt, "N");
    vt_want(&vt, "Push a job");
    vt_keys(&vt, "tab tab f5");
    vt_want(&vt, "in 1 line");
    vt_keys(&vt, "text:x");
    vt_want(&vt, "F5 opens it");
    vt_keys(&vt, "tab tab C-u text:10m enter");
    vt_want(&vt, "more than the limit of 2000");
    vt_keys(&vt, "f5");
    vt_want(&vt, "in 3 lines");
    vt_keys(&vt, "enter");
    vt_want(&vt, "1 job → scheduled");
    vt_keys(&vt, "y");
    vt_want(&vt, "push: 1 job scheduled");
    assert_string_equal(payloads("state = 'scheduled' and run_after between now() + interval '9 "
                                 "min' and now() + interval '10 min'"),
                        "{\n \"small\": true\n}");
    con_quit(&vt);
}

/* Characters that a line of the form can't show: the text from the editor is sent as it is, and a
 * paste that loses some says so. */
static void
pushes_what_a_line_cannot_show(void **state)
{
    struct vt vt;

    (void)state;
    con_ready("mail.send", 1);
    start(&vt, "printf '{\"a\":\"x\\342\\200\\214y\"}' >\"$1\"");
    vt_keys(&vt, "N");
    vt_want(&vt, "Push a job");
    vt_keys(&vt, "tab");
    vt_paste(&vt, "wel\u200Ccome");
    vt_want(&vt, "1 character was left out: a line can't show it");
    vt_want(&vt, "welcome");
    vt_type(&vt, "é日");
    vt_want(&vt, "welcomeé日");
    vt_keys(&vt, "tab f5");
    vt_want(&vt, "in 1 line");
    vt_keys(&vt, "enter");
    vt_want(&vt, "1 job → ready");
    vt_keys(&vt, "y");
    vt_want(&vt, "push: 1 job ready");
    assert_int_equal(
        con_count("kind = 'welcomeé日' and payload::text = '{\"a\":\"x' || chr(8204) || "
                  "'y\"}'"),
        1);
    con_quit(&vt);
}

static int
end(void **state)
{
    char path[300];

    snprintf(path, sizeof path, "%s/editor", getenv("TMPDIR"));
    unlink(path);
    return con_teardown(state);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(edits_and_requeues, con_empty),
        cmocka_unit_test_setup(edits_from_other_screens, con_empty),
        cmocka_unit_test_setup(edits_a_job_of_the_marked_group, con_empty),
        cmocka_unit_test_setup(edits_the_sample_that_is_shown, con_empty),
        cmocka_unit_test_setup(leaves_the_followed_job_alone, con_empty),
        cmocka_unit_test_setup(lends_the_terminal, con_empty),
        cmocka_unit_test_setup(brings_mistakes_back_to_the_editor, con_empty),
        cmocka_unit_test_setup(refuses_what_moved_on, con_empty),
        cmocka_unit_test_setup(edits_texts_but_no_bytes, con_empty),
        cmocka_unit_test_setup(without_an_editor, con_empty),
        cmocka_unit_test_setup(leaves_no_file, con_empty),
        cmocka_unit_test_setup(stops_with_its_editor, con_empty),
        cmocka_unit_test_setup(pushes_by_hand, con_empty),
        cmocka_unit_test_setup(pushes_what_was_edited, con_empty),
        cmocka_unit_test_setup(pushes_what_a_line_cannot_show, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, end);
}
