/*
 * `queuetop push --csv FILE --resume PLACE` where the place can't be kept, was edited, or belongs
 * to other rows: what is said, and that no row is lost. What a kill leaves is in test_push.
 */
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "ui/write/import_place.h"

/* Pairs for proc_refuse(). */
#define NO_RENAME SYS_renameat2, EINVAL
#ifdef SYS_link
#define NO_LINK SYS_link, EPERM, SYS_linkat, EPERM
#else
#define NO_LINK SYS_linkat, EPERM
#endif

static char dsn[400];
static PGconn *conn;

static void
write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The whole file as text; "" if there is none. The caller frees. */
static char *
read_file(const char *name)
{
    struct buf b = {0};
    char piece[500];
    FILE *f = fopen(name, "re");

    buf_str(&b, "");
    for (size_t n = 1; f && n > 0;) {
        n = fread(piece, 1, sizeof piece, f);
        buf_add(&b, piece, n);
    }
    if (f)
        fclose(f);
    return b.data;
}

/* A table of the numbers from..to; in line bad_line (0 = none) stands no JSON. */
static void
write_table(int from, int to, int bad_line)
{
    struct buf b = {0};

    buf_str(&b, "payload\n");
    for (int i = from; i <= to; i++)
        buf_printf(&b, i - from + 2 == bad_line ? "{\n" : "%d\n", i);
    write_file("t.csv", b.data);
    buf_free(&b);
}

/* Pushes the table. Returns what it said; the caller frees. */
static char *
push(int code)
{
    char *out, *err;
    int got = proc_run(NULL, &out, &err, "-d \"%s\" push q --csv t.csv --resume place", dsn);

    if (got != code)
        fail_msg("exit code %d, not %d: %s", got, code, err);
    free(out);
    return err;
}

static void
want_said(int code, const char *text)
{
    char *said = push(code);

    if (!strstr(said, text))
        fail_msg("said '%s', not '%s'", said, text);
    free(said);
}

static void
want_jobs(const char *numbers)
{
    assert_string_equal(pg_value(conn,
                                 "select concat_ws(' ', count(*), count(distinct payload::text"
                                 "), sum(payload::text::int)) from queues.queue"),
                        numbers);
}

static int
clear(void **state)
{
    (void)state;
    proc_refuse(NULL);
    pg_run(conn, "delete from queues.queue");
    unlink("place");
    unlink("place.lock");
    unlink("t.csv");
    return 0;
}

/* --- file systems --- */

/* The first place must not replace another one. A hard link does that, or a rename. */
static void
one_of_two_ways_is_enough(void **state)
{
    static const int no_link[] = {NO_LINK, -1}, no_rename[] = {NO_RENAME, -1};

    (void)state;
    write_table(1, 3, 0);
    proc_refuse(no_link);
    want_said(0, "3 jobs were pushed");
    want_said(0, "an earlier run has pushed all rows");
    assert_int_equal(unlink("place"), 0);
    proc_refuse(no_rename);
    want_said(0, "3 jobs were pushed");
    want_said(0, "an earlier run has pushed all rows");
    want_jobs("6 3 12");
}

static void
no_way_is_named(void **state)
{
    static const int neither[] = {NO_RENAME, NO_LINK, -1}, no_lock[] = {SYS_flock, ENOLCK, -1};

    (void)state;
    write_table(1, 3, 0);
    proc_refuse(neither);
    want_said(5, "place: its file system has neither hard links nor a rename that replaces nothing "
                 "(Operation not permitted): give --resume a FILE on another file system\n");
    proc_refuse(no_lock);
    want_said(5, "place.lock: its file system has no locks (No locks available): give --resume a "
                 "FILE on another file system\n");
    want_jobs("0 0");
    assert_int_not_equal(access("place", F_OK), 0);
}

/* The last thing that a full disk, or a quota, can prevent. What was pushed without a note of it is
 * pushed again, as the same jobs. */
static void
a_disk_may_be_full(void **state)
{
    static const int full[] = {SYS_fsync, ENOSPC, -1};

    (void)state;
    write_table(1, 1500, 602);
    proc_refuse(full);
    want_said(5, "--resume: place: No space left on device\n");
    want_jobs("0 0");
    assert_int_not_equal(access("place", F_OK), 0);

    proc_refuse(NULL);
    want_said(6, "to go on at line 602: the same command");
    char *before = read_file("place");
    write_table(1, 1500, 0);
    proc_refuse(full);
    char *said = push(6), *after = read_file("place"), *why = strstr(said, "No space left");
    assert_string_equal(after, before);
    assert_non_null(why);
    assert_null(strstr(why + 1, "No space left"));
    assert_non_null(strstr(said, "to go on, once place can be written: the same command (no row"));
    want_jobs("1100 1100 605550");

    proc_refuse(NULL);
    want_said(0, "400 jobs were pushed");
    want_jobs("1500 1500 1125750");
    free(before);
    free(said);
    free(after);
}

/* Nobody can make files in /proc, not even root. */
static void
a_folder_may_take_no_files(void **state)
{
    (void)state;
    proc_check(2, NULL, "--resume: none/place.lock: No such file or directory",
               "-d \"%s\" push q --json - --resume none/place", dsn);
    proc_check(2, NULL, "--resume: /proc/place.lock: No such file or directory",
               "-d \"%s\" push q --json - --resume /proc/place", dsn);
    want_jobs("0 0");
}

/* --- the text of the place --- */

static bool
is_refused(const char *text)
{
    struct import_place p;
    struct err e = {0};
    bool is_there;

    write_file("place", text);
    return !import_place_read("place", &p, &is_there, &e) && is_there && e.kind == ERR_USAGE &&
           strstr(e.text, "is not the place of an import as push wrote it");
}

static void
an_edited_place_is_refused(void **state)
{
    (void)state;
    write_table(1, 3, 3);
    free(push(6));
    char *text = read_file("place"), *longer = xasprintf("%s\n", text);
    assert_false(is_refused(text));
    assert_true(is_refused(longer));
    for (size_t i = 0; text[i]; i++) {
        char was = text[i];
        text[i] = was == '1' ? '2' : '1';
        if (!is_refused(text))
            fail_msg("refuses no other byte %zu: %s", i, text);
        text[i] = 0;
        assert_true(is_refused(text));
        text[i] = was;
    }
    free(longer);
    longer = xasprintf("%.*s", (int)strlen(text) - 1, text);
    write_table(1, 3, 0);
    write_file("place", longer);
    want_said(2, "place is not the place of an import as push wrote it: --resume would overwrite");
    want_jobs("1 1 1");
    write_file("place", text);
    want_said(0, "2 jobs were pushed");
    want_jobs("3 3 6");
    free(text);
    free(longer);
}

/* --- rows that changed --- */

static void
want_place(const char *line)
{
    for (int i = 0; i < PROC_WAIT_MS / 10; i++) {
        char *text = read_file("place");
        bool found = strstr(text, line) != NULL;
        free(text);
        if (found)
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("place has no '%s'", line);
}

/* Leaves what a kill between the push of the rows 1, 2, 3 and the note of it leaves. */
static void
kill_after_three(void)
{
    struct proc p;

    assert_int_equal(mkfifo("gate", 0600), 0);
    int gate = open("gate", O_RDWR | O_CLOEXEC);
    proc_queuetop(&p, NULL, "-d \"%s\" push q --csv gate --resume place", dsn);
    assert_int_equal(write(gate, "payload\n", 8), 8);
    want_place("\nline 2\n");
    char *before = read_file("place");
    assert_int_equal(write(gate, "1\n2\n3\n", 6), 6);
    want_place("\nline 5\n");
    proc_done(&p); /* SIGKILL */
    close(gate);
    unlink("gate");
    write_file("place", before);
    free(before);
    want_jobs("3 3 6");
}

static void
a_changed_row_is_another_job(void **state)
{
    (void)state;
    kill_after_three();
    write_file("t.csv", "payload\n1\n20\n3\n");
    want_said(0, "1 job was pushed");
    want_jobs("4 4 26");
    want_said(0, "an earlier run has pushed all rows");
    write_file("t.csv", "payload\n1\n2\n3\n");
    want_said(2, "the rows before line 5 of t.csv are not those of the import that stopped there");
    want_jobs("4 4 26");
}

/* With the place of the killed import of another file, all rows are pushed. */
static void
another_file_loses_no_row(void **state)
{
    (void)state;
    kill_after_three();
    write_table(101, 104, 0);
    want_said(0, "4 jobs were pushed");
    want_jobs("7 7 416");
    assert_string_equal(pg_value(conn, "select string_agg(payload::text, ' ' order by seq) from "
                                       "queues.queue where payload::text::int > 100"),
                        "101 102 103 104");
}

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(NULL);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("resume"));
    conn = pg_connect(dsn);
    return proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn);
}

static int
tear_down(void **state)
{
    clear(state);
    PQfinish(conn);
    pg_stop();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_of_two_ways_is_enough, clear),
        cmocka_unit_test_setup(no_way_is_named, clear),
        cmocka_unit_test_setup(a_disk_may_be_full, clear),
        cmocka_unit_test_setup(a_folder_may_take_no_files, clear),
        cmocka_unit_test_setup(an_edited_place_is_refused, clear),
        cmocka_unit_test_setup(a_changed_row_is_another_job, clear),
        cmocka_unit_test_setup(another_file_loses_no_row, clear),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
