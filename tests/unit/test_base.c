/*
 * The ground: errors, heap, arena, buffers, clock, durations, the log, words with passwords.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/err.h"
#include "model/base/log.h"
#include "model/base/mem.h"
#include "model/base/secure.h"

static void
errors_are_filled(void **state)
{
    struct err e = {.sqlstate = "12345"};

    (void)state;
    assert_false(fail(&e, ERR_DATA, "line %d", 7));
    assert_int_equal(e.kind, ERR_DATA);
    assert_string_equal(e.text, "line 7");
    assert_string_equal(e.sqlstate, "");
    assert_false(fail_in(&e, "file %s", "a"));
    assert_string_equal(e.text, "file a: line 7");
    assert_int_equal(e.kind, ERR_DATA);
}

/* A text that is cut to any length has no half of a UTF-8 sequence before the ellipsis. */
static void
errors_are_cut(void **state)
{
    char text[1000];
    struct err e;

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "€", 4);
        fail(&e, ERR_SQL, "%s", text);
        size_t len = strlen(e.text);
        assert_true(len < sizeof e.text && len > sizeof e.text - 8);
        assert_string_equal(e.text + len - 3, "…");
        assert_int_equal((len - 3 - shift) % 3, 0);
        fail_in(&e, "%s", text);
        assert_true(strlen(e.text) < sizeof e.text);
    }
}

static void
exit_codes(void **state)
{
    const int codes[] = {0, 2, 1, 4, 4, 3, 3, 5, 5, 5, 5};

    (void)state;
    for (int kind = ERR_NONE; kind <= ERR_SYS; kind++) {
        struct err e = {.kind = (enum err_kind)kind};
        assert_int_equal(err_exit_code(&e), codes[kind]);
    }
}

static void
heap_gives_what_was_asked(void **state)
{
    (void)state;
    char *s = xasprintf("%s-%d", "a", 5), *t = xstrndup("abcdef", 3);
    assert_string_equal(s, "a-5");
    assert_string_equal(t, "abc");
    s = xreallocarray(s, 100, 2);
    assert_string_equal(s, "a-5");
    free(s);
    free(t);
    free(xcalloc(0, 8));
    free(xmalloc(0));
    free(xreallocarray(NULL, 0, 3));
}

static void
hook(void)
{
    if (write(STDOUT_FILENO, "hook\n", 5) != 5)
        _exit(9);
}

static void
no_memory_aborts_after_the_hook(void **state)
{
    int pipes[2], status;
    char said[100] = "";

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(pipes[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        mem_on_abort(hook);
        arena_alloc(arena_new(), SIZE_MAX - 5); /* rejected before the allocator is called */
        _exit(1);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], said, sizeof said - 1), 5);
    close(pipes[0]);
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(said, "hook\n");
}

static void
arena_holds_until_reset(void **state)
{
    struct arena *a = arena_new();
    char *texts[300];

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++) {
            texts[i] = arena_printf(a, "%d-%0200d", i, i);
            assert_int_equal((uintptr_t)texts[i] % 16, 0);
        }
        for (int i = 0; i < 300; i++)
            assert_int_equal(strtol(texts[i], NULL, 10), i);
        unsigned char *big = arena_alloc(a, 100000);
        for (int i = 0; i < 100000; i++)
            assert_int_equal(big[i], 0);
        memset(big, 'x', 100000);
        arena_reset(a);
        unsigned char *again = arena_alloc(a, 5000); /* zeroed, though used before */
        for (int i = 0; i < 5000; i++)
            assert_int_equal(again[i], 0);
        memset(again, 'y', 5000);
    }
    assert_string_equal(arena_strndup(a, "abcdef", 2), "ab");
    assert_string_equal(arena_strndup(a, "ab", 20), "ab");
    arena_free(a);
    arena_free(NULL);
}

static void
buffer_grows(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_clear(&b);
    buf_add(&b, "a\0b", 3);
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    buf_str(&b, "end");
    assert_int_equal(b.data[1], 0);
    assert_int_equal(b.len, strlen(b.data + 2) + 2);
    assert_string_equal(b.data + b.len - 7, "999,end");
    buf_clear(&b);
    assert_string_equal(b.data, "");
    buf_free(&b);
    buf_free(&b);
    assert_null(b.data);
}

static void
durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"90s",         90000        },
        {"5m",          300000       },
        {"2h",          7200000      },
        {"7d",          604800000    },
        {"1h30m",       5400000      },
        {"250ms",       250          },
        {"0",           0            },
        {"0s",          0            },
        {"1d2h3m4s5ms", 93784005     },
        {"36500d",      3153600000000},
    };
    static const char *const bad[] = {
        "",
        "s",
        "5x",
        "1m1h",
        "1s1s",
        "-5s",
        "1.5s",
        "1h30",
        "5 s",
        "36501d",
        "999999999999999999d",
        "1000000000000000000000s",
        "5mss",
        "7",
        "30",
        "007",
    };
    struct err e;
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(duration_parse(good[i].text, &ms, &e));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (duration_parse(bad[i], &ms, &e))
            fail_msg("\"%s\" was taken for a duration", bad[i]);
        assert_int_equal(e.kind, ERR_USAGE);
    }
    assert_false(duration_parse("7", &ms, &e)); /* days for one reader, seconds for another */
    assert_string_equal(e.text, "\"7\" has no unit: write 7s, 7m, 7h or 7d");
}

static void
durations_are_written_in_the_largest_whole_unit(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } is[] = {
        {0,         "0d"   },
        {250,       "250ms"},
        {90000,     "90s"  },
        {3600000,   "1h"   },
        {604800000, "7d"   }
    };
    char text[40];

    (void)state;
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        duration_write(text, sizeof text, is[i].ms);
        assert_string_equal(text, is[i].text);
    }
}

static void
another_clock_is_ahead_or_behind(void **state)
{
    (void)state;
    assert_int_equal(clock_ahead_ms(1000, 1000, 1400, 0), 0);
    assert_int_equal(clock_ahead_ms(1400, 1000, 1400, 0), 0);
    assert_int_equal(clock_ahead_ms(4400, 1000, 1400, 0), 3000);
    assert_int_equal(clock_ahead_ms(400, 1000, 1400, 0), -600);
    /* a slow answer does not take back what a quick one has shown, nor does it add to it */
    assert_int_equal(clock_ahead_ms(4400, 1000, 4400, 3000), 3000);
    assert_int_equal(clock_ahead_ms(4400, 1000, 4400, -100), 0);
    assert_int_equal(clock_ahead_ms(1000, 1000, 4400, 50), 0);
    assert_int_equal(clock_ahead_ms(1000, 1000, 1010, 3000), 0);
}

static void
wall_clock_can_be_frozen(void **state)
{
    (void)state;
    setenv("QUEUETOP_NOW", "1700000000123", 1);
    assert_int_equal(clock_wall_ms(), 1700000000123);
    setenv("QUEUETOP_NOW", "2026-11-21T14:02:11Z", 1);
    assert_int_equal(clock_wall_ms(), 1795269731000);
    setenv("QUEUETOP_NOW", "2026-11-21 14:02:11", 1);
    assert_int_equal(clock_wall_ms(), 1795269731000);
    setenv("QUEUETOP_NOW", "2026-11-21", 1);
    assert_int_equal(clock_wall_ms(), 1795219200000);
    setenv("QUEUETOP_NOW", "soon", 1);
    assert_true(clock_wall_ms() > 1700000000123);
    unsetenv("QUEUETOP_NOW");
    int64_t before = clock_us();
    assert_true(clock_us() >= before);
}

static void
log_escapes_and_is_private(void **state)
{
    char file[1000], text[6000] = "";
    struct stat st;
    struct err e = {0};

    (void)state;
    snprintf(file, sizeof file, "%s/log", getenv("TMPDIR"));
    assert_false(log_open("/no/such/dir/log", &e));
    assert_int_equal(e.kind, ERR_SYS);
    setenv("QUEUETOP_NOW", "1700000000123", 1);
    assert_true(log_open(file, &e));
    log_quiet(true); /* applies to standard error only */
    log_line(LOG_DEBUG, "esc \033[31m nl\n%s", "del\177");
    char *huge = xmalloc(100000);
    memset(huge, '\n', 99999);
    huge[99999] = 0;
    log_line(LOG_ERROR, "%s", huge);
    free(huge);
    log_close();
    unsetenv("QUEUETOP_NOW");
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int fd = open(file, O_RDONLY);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(file);
    assert_non_null(strstr(text, "2023-11-14T22:13:20.123Z ["));
    assert_non_null(strstr(text, "debug: esc ␛[31m nl␊del␡\n"));
    log_quiet(false);
}

static volatile sig_atomic_t has_waited;

static void
end_wait(int signo)
{
    (void)signo;
    has_waited = 1; /* the write that waits fails with EINTR */
}

/* Standard error is a full pipe, a full disk, and then a pipe with room. The log never waits, and
 * says at last how many lines were lost. */
static void
log_does_not_wait(void **state)
{
    char text[6000] = "", huge[4000];
    int old = dup(STDERR_FILENO), ends[2], full = open("/dev/full", O_WRONLY);

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], text, sizeof text) > 0)
        continue;
    while (write(ends[1], text, 1) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0); /* a write would wait */
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = end_wait}, NULL);
    alarm(60);
    memset(huge, '\n', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    dup2(ends[1], STDERR_FILENO);
    log_line(LOG_ERROR, "one");
    dup2(full, STDERR_FILENO);
    log_line(LOG_ERROR, "two");
    alarm(0);
    while (read(ends[0], text, sizeof text) > 0)
        continue;
    dup2(ends[1], STDERR_FILENO);
    log_line(LOG_ERROR, "%s", huge);
    dup2(old, STDERR_FILENO);
    assert_false(has_waited);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    assert_in_range(n, PIPE_BUF - 3, PIPE_BUF);
    text[n] = '\0';
    const char *start = "queuetop: 2 log lines lost\nqueuetop: ␊␊";
    assert_memory_equal(text, start, strlen(start));
    assert_string_equal(text + n - 4, "␊\n");
    for (int fd = 0; fd < 2; fd++)
        close(ends[fd]);
    close(full);
    close(old);
}

/* In a process of its own: standard error is a terminal that nobody reads until more lines were
 * logged than it takes. Then all lines are whole but the last, and it is said that some were lost.
 */
static _Noreturn void
log_to_a_terminal(void)
{
    static char text[1 << 20];
    size_t len = 0;
    int far = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    bool has_name = far >= 0 && grantpt(far) == 0 && unlockpt(far) == 0;
    int near = has_name ? open(ptsname(far), O_RDWR | O_NOCTTY) : -1;

    if (dup2(near, STDERR_FILENO) < 0)
        _exit(2);
    for (int i = 0; i < 2000; i++)
        log_line(LOG_ERROR, "%d %80s", i, "end");
    while (!strstr(text, " lost\r\n") && len < sizeof text - 1) {
        ssize_t n = read(far, text + len, sizeof text - 1 - len);
        len += n > 0 ? (size_t)n : 0;
        log_line(LOG_ERROR, "again");
        poll(NULL, 0, 1);
    }
    for (char *at = text; (at = strstr(at, "queuetop: ")); at++)
        if (at > text && at[-1] != '\n')
            _exit(3);
    _exit(0);
}

static void
log_does_not_wait_for_a_terminal(void **state)
{
    int status = 0, left = 3000;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        log_to_a_terminal();
    while (waitpid(child, &status, WNOHANG) == 0 && left-- > 0)
        poll(NULL, 0, 10);
    if (left < 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        fail_msg("the log waits for a terminal that nobody reads");
    }
    assert_int_equal(status, 0);
}

static void
nobody_looks_into_us(void **state)
{
    int status = 0;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        secure_process();
        _exit(prctl(PR_GET_DUMPABLE));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
passwords_in_words(void **state)
{
    static const char *const bad[] = {
        "password=x",         "host=a password = x", "host='a'password=x",
        "postgres://u:p@h/d", "postgresql://u:p@h",  "postgresql://h/d?sslmode=require&password=x",
        "sslpassword=x",
    };
    static const char *const good[] = {
        "host=a dbname=password",
        "postgres://u@h:5432/d",
        "postgresql://h:5432/d@x",
        "passfile=/x",
        "host=a user=u application_name=nopassword",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(secure_has_password(bad[i]));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_false(secure_has_password(good[i]));
}

int
main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_filled),
        cmocka_unit_test(errors_are_cut),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(heap_gives_what_was_asked),
        cmocka_unit_test(no_memory_aborts_after_the_hook),
        cmocka_unit_test(arena_holds_until_reset),
        cmocka_unit_test(buffer_grows),
        cmocka_unit_test(durations),
        cmocka_unit_test(durations_are_written_in_the_largest_whole_unit),
        cmocka_unit_test(another_clock_is_ahead_or_behind),
        cmocka_unit_test(wall_clock_can_be_frozen),
        cmocka_unit_test(log_escapes_and_is_private),
        cmocka_unit_test(log_does_not_wait),
        cmocka_unit_test(log_does_not_wait_for_a_terminal),
        cmocka_unit_test(passwords_in_words),
        cmocka_unit_test(nobody_looks_into_us),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
