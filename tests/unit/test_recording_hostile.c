/*
 * Recordings that an attacker made, with correct checksums. Data that is small in the file takes
 * little memory. A damaged snapshot is skipped quickly even in a long frame, and the error names
 * its byte.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/fake_db.h"

#include "model/adapter/adapter.h"
#include "model/recording/recording.h"
#include "model/recording/recording_state.h"
#include "model/recording/replay.h"

static char file[200];

static int
fresh_file(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "%s/hostile.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    unlink(file);
    return 0;
}

static int
drop_file(void **state)
{
    (void)state;
    unlink(file);
    return 0;
}

static void
put_word(struct buf *b, const char *word)
{
    bytes_put_text(b, word, strlen(word));
}

/* An answer with a table of NULLs: one byte for each cell, and almost nothing after compression. */
static void
put_nulls(struct buf *b, const char *name, int tables, int rows)
{
    bytes_put(b, 1);
    put_word(b, name);
    put_word(b, "");
    bytes_put_signed(b, 1000);
    bytes_put_signed(b, 1);
    bytes_put(b, (uint64_t)tables);
    for (int i = 0; i < tables; i++) {
        bytes_put(b, 0);
        bytes_put(b, (uint64_t)rows);
        bytes_put(b, 1);
        put_word(b, "a");
        for (int k = 0; k < rows; k++)
            bytes_put(b, 1);
    }
}

/* 20 parts of 3 tables with 1.9 million cells each would take 900 MB of memory. */
static void
cells_take_memory(void **state)
{
    struct recording_state s = {0};
    const char *why = NULL;
    bool ok = true;
    int taken = 0;

    (void)state;
    for (int i = 0; i < 20 && ok; i++) {
        struct buf raw = {0};
        char name[20];
        snprintf(name, sizeof name, "part%d", i);
        put_nulls(&raw, name, 3, 1900000);
        ok = recording_state_unpack(&s, &raw, &why);
        buf_free(&raw);
        taken += ok;
    }
    assert_false(ok);
    assert_string_equal(why, "more than it may hold");
    assert_in_range(taken, 1, 3);
    recording_state_done(&s);
}

static int64_t
spent_ms(void)
{
    struct rusage u;

    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* Writes one frame whose second snapshot is invalid. */
static void
write_long_frame(int entries)
{
    struct err e;
    int64_t cut;
    struct recording_out *t = recording_create(file, &cut, &e);
    struct buf whole = {0}, broken = {0}, empty = {0};

    assert_non_null(t);
    put_nulls(&whole, "queues", 1, 1);
    buf_str(&broken, "nonsense");
    buf_str(&empty, "");
    assert_true(recording_write(t, 1000, true, &whole, &e));
    assert_true(recording_write(t, 2000, false, &broken, &e));
    for (int i = 2; i < entries; i++)
        assert_true(recording_write(t, 2000 + i, false, &empty, &e));
    recording_end(t);
    buf_free(&whole);
    buf_free(&broken);
    buf_free(&empty);
}

/* A number of steps quadratic in 400,000 snapshots would take a minute. */
static void
long_frames_are_stepped_over(void **state)
{
    enum { ENTRIES = 400000 };
    struct err e = {0};
    struct loop *l = loop_new();
    struct adapter *a = adapter_open("native", &e);
    struct db *db = db_new(l, &(struct db_options){.conninfo = "host=/nonexistent"});

    (void)state;
    write_long_frame(ENTRIES);
    int64_t before = spent_ms();
    struct replay *r = replay_new(l, file, db, a, &e);
    assert_non_null(r);
    struct replay_state s = replay_state(r);
    replay_seek(r, s.end_ms);
    s = replay_state(r);
    assert_int_equal(s.entries, ENTRIES);
    assert_non_null(strstr(s.err->text, "snapshot 2 of the recording is damaged at byte "));
    replay_seek(r, s.start_ms);
    replay_free(r);
    assert_in_range(spent_ms() - before, 0, 10000);
    db_free(db);
    adapter_free(a);
    loop_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_take_memory),
        cmocka_unit_test_setup_teardown(long_frames_are_stepped_over, fresh_file, drop_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
