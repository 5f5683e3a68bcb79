/*
 * Recordings: written data is read back, a torn end is cut, damage in the middle is named, a jump
 * shows what was known at that time, and a day of fifty queues is as small as promised.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/fake_db.h"

#include "model/recording/recording.h"
#include "model/recording/recording_state.h"
#include "model/recording/replay.h"

static char file[200];

static int
fresh_file(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "%s/recording.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
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

static int64_t
file_size(void)
{
    struct stat st;

    assert_int_equal(stat(file, &st), 0);
    return st.st_size;
}

/* Writes n entries, one per second from 1000 s on. Every tenth entry begins a frame. */
static void
write_entries(int n)
{
    struct err e;
    int64_t cut;
    struct recording_out *t = recording_create(file, &cut, &e);
    struct buf entry = {0};

    assert_non_null(t);
    int64_t at = recording_last_ms(t) ? recording_last_ms(t) : 999000;
    for (int i = 0; i < n; i++) {
        at += 1000;
        buf_clear(&entry);
        buf_printf(&entry, "entry of %lld, and the same words in each", (long long)at);
        assert_true(recording_write(t, at, i % 10 == 0, &entry, &e));
    }
    buf_free(&entry);
    recording_end(t);
}

static void
want_entry(struct recording *t, int i)
{
    const struct buf *raw;
    char text[100];
    struct err e;

    snprintf(text, sizeof text, "entry of %d,", 1000000 + i * 1000);
    assert_true(recording_read(t, i, &raw, &e));
    assert_memory_equal(raw->data, text, strlen(text));
    assert_int_equal(recording_at_ms(t, i), 1000000 + i * 1000);
}

static void
pieces_come_back(void **state)
{
    struct stat st;
    struct err e;
    int64_t lost;

    (void)state;
    write_entries(35);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    struct recording *t = recording_open(file, &e);
    assert_non_null(t);
    assert_int_equal(recording_entries(t), 35);
    assert_int_equal(recording_damage(t, &lost), 0);
    for (int i = 0; i < 35; i++)
        want_entry(t, i);
    static const int jumps[] = {34, 0, 9, 10, 11, 33, 33, 5};
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++)
        want_entry(t, jumps[i]);
    assert_int_equal(recording_find(t, 0), 0);
    assert_int_equal(recording_find(t, 1012999), 12);
    assert_int_equal(recording_find(t, 1013000), 13);
    assert_int_equal(recording_find(t, INT64_MAX), 34);
    assert_int_equal(recording_frame(t, 29), 20);
    recording_close(t);
}

static void
goes_on_behind(void **state)
{
    struct err e;

    (void)state;
    write_entries(5);
    write_entries(5);
    struct recording *t = recording_open(file, &e);
    assert_non_null(t);
    assert_int_equal(recording_entries(t), 10);
    for (int i = 9; i >= 0; i--)
        want_entry(t, i);
    recording_close(t);
}

/* A crash tears the file at any byte: the whole entries before are read, and writing continues
 * after them. */
static void
torn_ends(void **state)
{
    struct err e;
    int64_t lost, cut;

    (void)state;
    write_entries(3);
    int64_t two = file_size();
    write_entries(1);
    for (int64_t size = file_size() - 1; size > two; size--) {
        assert_int_equal(truncate(file, size), 0);
        struct recording *t = recording_open(file, &e);
        assert_non_null(t);
        assert_int_equal(recording_entries(t), 3);
        assert_int_equal(recording_damage(t, &lost), two);
        assert_int_equal(lost, size - two);
        recording_close(t);
    }
    struct recording_out *out = recording_create(file, &cut, &e);
    assert_non_null(out);
    assert_int_equal(cut, 1);
    recording_end(out);
    assert_int_equal(file_size(), two);
}

/* One changed byte at any place is detected. The error names the offset of the damaged entry. */
static void
damage_is_named(void **state)
{
    const struct buf *raw;
    struct err e;
    int64_t lost;

    (void)state;
    write_entries(12);
    int64_t size = file_size();
    for (int64_t at = 0; at < size; at += 3) {
        unsigned char c, bad;
        int fd = open(file, O_RDWR);
        assert_int_equal(pread(fd, &c, 1, at), 1);
        bad = c ^ 0x41;
        assert_int_equal(pwrite(fd, &bad, 1, at), 1);
        struct recording *t = recording_open(file, &e);
        int good = 0;
        for (int i = 0; t && i < recording_entries(t); i++)
            if (recording_read(t, i, &raw, &e))
                good++;
            else
                assert_non_null(strstr(e.text, "byte "));
        assert_true(t ? good < 12 || recording_damage(t, &lost) > 0
                      : strstr(e.text, "(byte ") != NULL);
        recording_close(t);
        assert_int_equal(pwrite(fd, &c, 1, at), 1);
        close(fd);
    }
}

static void
others_files_stay(void **state)
{
    struct err e;
    int64_t cut;
    FILE *f = fopen(file, "w");

    (void)state;
    fputs("somebody's notes, longer than a header of ours would be\n", f);
    fclose(f);
    assert_null(recording_create(file, &cut, &e));
    assert_non_null(strstr(e.text, "stays as it is"));
    assert_int_equal(file_size(), 56);
    assert_null(recording_open(file, &e));
    assert_non_null(strstr(e.text, "not a recording"));
    assert_null(recording_open("/nonexistent/recording", &e));
    assert_null(recording_create("/nonexistent/recording", &cut, &e));
}

static int
mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return (int)(st.st_mode & 07777);
}

/* Only a plain file that is a recording, with no other link, is accepted. For anything else the
 * permissions stay as they are. */
static void
others_rights_stay(void **state)
{
    char *other = xasprintf("%s.other", file);
    struct err e;
    int64_t cut;

    (void)state;
    write_entries(3);
    assert_int_equal(rename(file, other) | chmod(other, 0644) | symlink(other, file), 0);
    assert_null(recording_create(file, &cut, &e));
    assert_non_null(strstr(e.text, "is a symbolic link"));
    assert_int_equal(unlink(file) | link(other, file), 0);
    assert_null(recording_create(file, &cut, &e));
    assert_non_null(strstr(e.text, "hard link"));
    assert_int_equal(mode_of(other), 0644);
    assert_int_equal(unlink(other), 0);
    struct recording_out *t =
        recording_create(file, &cut, &e); /* no other link: a recording, made private */
    assert_non_null(t);
    recording_end(t);
    assert_int_equal(mode_of(file), 0600);
    assert_int_equal(unlink(file) | mkfifo(file, 0644) | chmod(file, 0644), 0);
    assert_null(recording_create(file, &cut, &e));
    assert_non_null(strstr(e.text, "is no plain file"));
    assert_int_equal(mode_of(file), 0644);
    unlink(file);
    FILE *f = fopen(file, "w");
    fputs("somebody's notes", f);
    fclose(f);
    assert_int_equal(chmod(file, 0664), 0);
    assert_null(recording_create(file, &cut, &e));
    assert_int_equal(mode_of(file), 0664);
    unlink(file);
    assert_null(recording_create("/dev", &cut, &e));
    free(other);
}

/* A limit on the file size acts as a full disk. */
static void
full_disk(void **state)
{
    struct rlimit was, tight;
    struct buf entry = {0};
    struct err e = {0};
    int64_t cut;
    int n = 0;

    (void)state;
    for (int i = 0; i < 500; i++)
        buf_printf(&entry, "%d ", i * 7919 % 1000);
    getrlimit(RLIMIT_FSIZE, &was);
    tight = was;
    tight.rlim_cur = 20000;
    struct recording_out *t = recording_create(file, &cut, &e);
    assert_non_null(t);
    setrlimit(RLIMIT_FSIZE, &tight);
    while (n < 1000 && recording_write(t, n * 1000, true, &entry, &e))
        n++;
    setrlimit(RLIMIT_FSIZE, &was);
    assert_in_range(n, 5, 100);
    assert_non_null(strstr(e.text, strerror(EFBIG)));
    assert_false(recording_write(t, 0, true, &entry, &e)); /* it is over */
    recording_end(t);
    struct recording *in = recording_open(file, &e);
    assert_non_null(in);
    assert_int_equal(recording_entries(in), n);
    assert_int_equal(recording_damage(in, &cut), 0);
    recording_close(in);
    buf_free(&entry);
}

/* --- tables ---------------------------------------------------------------------------------- */

static void
same_table(const struct recording_table *a, const struct recording_table *b)
{
    assert_int_equal(a->cols, b->cols);
    assert_int_equal(a->rows, b->rows);
    for (int i = 0; i < a->cols * (a->rows + 1); i++) {
        assert_int_equal(a->cells[i].len, b->cells[i].len);
        if (a->cells[i].len > 0)
            assert_string_equal(a->text.data + a->cells[i].at, b->text.data + b->cells[i].at);
    }
}

static void
tables_come_back(void **state)
{
    struct result *results[] = {
        fake_table("queue n note", "a|1|x", "b|~|", "c|-9|~", NULL),
        fake_table("queue n note", "a|2|x", "c|007|y", "b|5|", "d|12345678901234567890|z", NULL),
        fake_table("queue n note", NULL),
        fake_table("queue n", "a|1", NULL),
        fake_table("queue n", "a|99999999999999999", "b|-99999999999999999", NULL),
        fake_table("queue n", "b|99999999999999999", "a|-0", NULL),
    };
    struct recording_table was = {0}, read_was = {0};

    (void)state;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        struct recording_table t = {0}, back;
        struct buf b = {0};
        recording_of_result(&t, results[i]);
        recording_pack(&b, &t, i ? &was : NULL);
        struct recording_bytes in = {(unsigned char *)b.data, b.len, 0, true};
        assert_true(recording_unpack(&in, i ? &read_was : NULL, &back));
        assert_int_equal(in.at, b.len);
        same_table(&t, &back);
        struct result *r = recording_result(&back);
        assert_int_equal(result_rows(r), result_rows(results[i]));
        for (int row = 0; row < result_rows(r); row++)
            for (int c = 0; c < result_cols(r); c++) {
                assert_int_equal(result_null(r, row, c), result_null(results[i], row, c));
                assert_string_equal(result_text(r, row, c), result_text(results[i], row, c));
            }
        result_free(r);
        result_free(results[i]);
        recording_done(&was);
        recording_done(&read_was);
        was = t;
        read_was = back;
        buf_free(&b);
    }
    recording_done(&was);
    recording_done(&read_was);
}

/* --- how small ------------------------------------------------------------------------------- */

enum { QUEUES = 50, SECONDS = 1200 };

static struct result *
counts_at(int64_t now_ms, int64_t *pushed, uint32_t *random)
{
    static const char *const names[] = {"queue",  "scheduled", "ready",     "retry",  "running",
                                        "failed", "blocked",   "oldest_ms", "pushed", "completed",
                                        "fails",  "retried",   "run_ms"};
    struct result *r = result_new(names, 13);

    for (int q = 0; q < QUEUES; q++) {
        int64_t v[13] = {0};
        for (int i = 0; i < 3; i++)
            *random = *random * 1664525 + 1013904223;
        pushed[q] += *random >> 16 & 63; /* each queue changes every second */
        v[1] = q * 3;
        v[2] = *random >> 8 & 127;
        v[3] = *random >> 24 & 3;
        v[4] = *random >> 20 & 15;
        v[5] = pushed[q] / 1000;
        v[7] = now_ms - (*random >> 12 & 4095);
        v[8] = pushed[q];
        v[9] = pushed[q] - v[2] - v[4];
        v[10] = pushed[q] / 900;
        v[11] = pushed[q] / 1100;
        v[12] = v[9] * 37 + (*random >> 16 & 255);
        for (int c = 0; c < 13; c++) {
            char *text =
                c ? xasprintf("%lld", (long long)v[c]) : xasprintf("department%02d.work", q);
            result_put(r, q, c, text, (int)strlen(text));
            free(text);
        }
    }
    return r;
}

/* All fifty queues change every second: 86,400 such snapshots stay under 100 MB. */
static void
a_day_is_small(void **state)
{
    struct recording_state s = {0}, back = {0};
    int64_t pushed[QUEUES] = {0}, cut, frame = 0;
    uint32_t random = 7;
    struct buf entry = {0};
    const struct buf *raw;
    const char *why;
    struct err e;

    (void)state;
    struct recording_out *out = recording_create(file, &cut, &e);
    assert_non_null(out);
    for (int i = 0; i < SECONDS; i++) {
        int64_t now = INT64_C(1795237000000) + i * 1000;
        struct result *r = counts_at(now, pushed, &random);
        struct store_answer a = {.name = "queues", .key = "", .at_ms = now, .tables = &r, .n = 1};
        buf_clear(&entry);
        recording_state_take(&s, &a, &entry);
        bool begins = now - frame >= 120000;
        if (begins) {
            frame = now;
            buf_clear(&entry);
            recording_state_pack(&s, &entry);
        }
        assert_true(recording_write(out, now, begins, &entry, &e));
        result_free(r);
    }
    double a_day = (double)file_size() / SECONDS * 86400 / 1e6;
    print_message("a snapshot of %d queues: %.0f bytes; a day: %.1f MB\n", QUEUES,
                  (double)file_size() / SECONDS, a_day);
    assert_true(a_day < 100);
    recording_end(out);
    struct recording *t = recording_open(file, &e);
    assert_non_null(t);
    for (int i = 0; i < recording_entries(t); i++) {
        assert_true(recording_read(t, i, &raw, &e));
        assert_true(recording_state_unpack(&back, raw, &why));
    }
    same_table(&s.parts[0].tables[0], &back.parts[0].tables[0]);
    recording_close(t);
    recording_state_done(&s);
    recording_state_done(&back);
    buf_free(&entry);
}

/* --- times as people type them --------------------------------------------------------------- */

#define NIGHT_MS \
    INT64_C(1792886400000) /* 2026-10-25 00:00 UTC: 02:00 in Berlin, an hour later again */

/* A recording of the two hours that both go from 02:00 to 03:00. */
static void
write_night(void)
{
    struct recording_state s = {0};
    int64_t pushed[QUEUES] = {0}, cut;
    uint32_t random = 7;
    struct buf entry = {0};
    struct err e;
    struct recording_out *out = recording_create(file, &cut, &e);

    assert_non_null(out);
    for (int64_t at = NIGHT_MS; at <= NIGHT_MS + 7200000; at += 600000) {
        struct result *r = counts_at(at, pushed, &random);
        struct store_answer a = {.name = "queues", .key = "", .at_ms = at, .tables = &r, .n = 1};
        buf_clear(&entry);
        recording_state_take(&s, &a, &entry);
        buf_clear(&entry);
        recording_state_pack(&s, &entry);
        assert_true(recording_write(out, at, true, &entry, &e));
        result_free(r);
    }
    recording_end(out);
    recording_state_done(&s);
    buf_free(&entry);
}

static void
check_time(const struct replay *r, bool utc, const char *text, int minute)
{
    struct err e = {0};
    int64_t ms = -1;
    bool ok = replay_time(r, text, utc, &ms, &e);

    if (ok != (minute >= 0) || (ok && ms != NIGHT_MS + minute * 60000))
        fail_msg("%s: %s", text, ok ? xasprintf("%lld", (long long)(ms - NIGHT_MS)) : e.text);
}

/* In the hour that the clocks repeat, a zone or the time that is shown tells which is meant. */
static void
times_of_the_repeated_hour(void **state)
{
    static const struct {
        const char *text;
        int first, second; /* minutes, near the start and near the end; -1 = refused */
    } times[] = {
        {"02:30",                   30,  90 },
        {"2026-10-25 02:30",        30,  90 },
        {"02:30 CEST",              30,  30 },
        {"02:30 CET",               90,  90 },
        {"2026-10-25 02:30:00 CET", 90,  90 },
        {"02:30+02:00",             30,  30 },
        {"2026-10-25T02:30+0100",   90,  90 },
        {"02:30 +01",               90,  90 },
        {"00:30 UTC",               30,  30 },
        {"2026-10-25T01:30:00Z",    90,  90 },
        {"03:00",                   120, 120},
        {"03:00 CEST",              -1,  -1 },
        {"02:30 EST",               -1,  -1 },
        {"02:30 +1:",               -1,  -1 },
        {"02:30 UTC+1",             -1,  -1 },
        {"01:30 CET",               -1,  -1 },
        {"04:30",                   -1,  -1 },
    };
    struct err e = {0};
    struct loop *l = loop_new();
    struct adapter *a = adapter_load("native", &e);

    (void)state;
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    write_night();
    struct replay *r = replay_new(l, file, NULL, a, &e);
    assert_non_null(r);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        replay_seek(r, NIGHT_MS);
        check_time(r, false, times[i].text, times[i].first);
        replay_seek(r, NIGHT_MS + 7200000);
        check_time(r, false, times[i].text, times[i].second);
    }
    check_time(r, true, "01:30", 90);
    check_time(r, true, "02:30 CEST", 30);
    unsetenv("TZ");
    tzset();
    replay_free(r);
    adapter_free(a);
    loop_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_come_back, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(goes_on_behind, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(torn_ends, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(damage_is_named, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(others_files_stay, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(others_rights_stay, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(full_disk, fresh_file, drop_file),
        cmocka_unit_test(tables_come_back),
        cmocka_unit_test_setup_teardown(a_day_is_small, fresh_file, drop_file),
        cmocka_unit_test_setup_teardown(times_of_the_repeated_hour, fresh_file, drop_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
