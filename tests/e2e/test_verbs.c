/*
 * The verbs that look and act, as a script uses them: the real program against a real server. Exact
 * fields of JSON, exact bytes for pipes, exit codes, guards; and the books are checked after each
 * act.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/sql/core.h"
#include "tests/term.h"

static char dsn[500];

static char *run(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Runs `queuetop VERB... DSN`; gives standard output, which the caller frees. */
static char *
run(int code, const char *fmt, ...)
{
    char *out, *err;
    va_list ap;

    va_start(ap, fmt);
    proc_verb(code, &out, &err, dsn, fmt, ap);
    va_end(ap);
    char *both = xasprintf("%s\1%s", out, err);
    both[strlen(out)] = 0; /* the text of standard error follows the NUL */
    free(out);
    free(err);
    return both;
}

static const char *
errors(const char *both)
{
    return both + strlen(both) + 1;
}

static void
has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

/* The fields of the first JSON line, in order. */
static void
check_fields(const char *json, const char *expected)
{
    struct buf names = {0};
    bool value = false;

    buf_str(&names, "");
    for (const char *s = json; *s && *s != '\n'; s++) {
        if (*s == '[') {
            s += strcspn(s, "]");
        } else if (*s == ':') {
            value = true;
        } else if (*s == ',') {
            value = false;
        } else if (*s == '"') {
            const char *end = s + 1;
            while (*end != '"')
                end += *end == '\\' ? 2 : 1;
            if (!value)
                buf_printf(&names, "%s%.*s", names.len ? " " : "", (int)(end - s - 1), s + 1);
            s = end;
        }
    }
    assert_string_equal(names.data, expected);
    buf_free(&names);
}

static PGconn *
begin(const char *name)
{
    PGconn *conn = core_new(name);

    pg_run(conn, "update setting set value = '30 min' where name in ('node_late', 'node_dead')");
    snprintf(dsn, sizeof dsn, "%s", pg_dsn(name));
    return conn;
}

/* n failed jobs of a queue, each with an error of its own number. */
static void
make_failed(PGconn *conn, const char *queue, int n)
{
    pg_run(conn, "select push('%s', max_tries => 1) from generate_series(1, %d)", queue, n);
    core_settle(conn);
    for (int i = 1; i <= n; i++)
        pg_run(conn,
               "select fail_job('n1', lease, version, seq, 'timeout after %d s') "
               "from claim('n1', 1, queues => '{%s}')",
               i, queue);
    core_ten_seconds(conn);
    core_settle(conn);
}

static void
test_lists(void **state)
{
    PGconn *conn = begin("lists");
    char *out;

    (void)state;
    make_failed(conn, "bad", 3);
    pg_run(conn, "select push('mail', '{\"a\":1}', kind => 'k') from generate_series(1, 3)");
    core_settle(conn);
    pg_run(conn, "select node_start('n1', gen_random_uuid(), 'host', 7, '1', 1, '{mail,bad}', 2)");
    pg_run(conn, "select count(*) from claim('n1', 1, queues => '{mail}')");

    out = run(0, "queues --json");
    check_fields(out,
                 "source queue paused ready scheduled retry running failed blocked "
                 "oldest_ready_s pushed_per_s done_per_s failed_per_s wait_p50_ms wait_p99_ms "
                 "run_p50_ms run_p99_ms approx failed_hour outlook held_by empty_at fills_per_s "
                 "fills_since slots_needed");
    has(out,
        "\"queue\": \"mail\", \"paused\": false, \"ready\": 2, \"scheduled\": 0, \"retry\": 0, "
        "\"running\": 1, \"failed\": 0, \"blocked\": 0");
    free(out);
    out = run(0, "queues --queue bad --csv");
    has(out, "queue,paused,ready,scheduled,retry,running,failed,blocked,oldest_ready_s,");
    has(out, "\nbad,false,0,0,0,0,3,0,,");
    free(out);
    out = run(0, "jobs --json --queue mail");
    check_fields(out, "source id queue kind state priority tries max_tries created run_after node "
                      "lease_until error");
    free(out);
    out = run(0, "jobs --state running --csv");
    has(out, ",mail,k,running,5,0,5,");
    has(out, ",n1,");
    free(out);
    out = run(0, "nodes --json");
    check_fields(
        out, "source node state host pid heartbeat_s session_alive leases slots running expired "
             "expired_jobs queues");
    has(out, "\"node\": \"n1\", \"state\": \"up\", \"host\": \"host\", \"pid\": 7");
    has(out, "\"queues\": [\"mail\", \"bad\"]");
    free(out);
    out = run(0, "leases --json --node n1");
    check_fields(out, "source lease node queue jobs started lock_timeout version");
    free(out);
    out = run(0, "failures --json");
    has(out, "\"n\": 3, \"queue\": \"bad\"");
    has(out, "\"error_key\": \"timeout after N s\"");
    free(out);
    free(run(1, "jobs state:failed queue:mail"));
    free(run(1, "nodes --node nobody"));
    free(run(1, "audit"));
    PQfinish(conn);
}

/* The text of strangers is printed as plain text, also into a pipe, but not in CSV: ESC, C1 and the
 * signs that change the direction of writing are never printed raw. */
/* Without a locale, as in cron and services, a verb writes the characters that are there. */
static void
without_a_locale(void **state)
{
    static const char city[] = "K\xc3\xb6ln \xe6\x97\xa5";
    PGconn *conn = begin("locales");

    (void)state;
    pg_run(conn, "select push('%s')", city);
    core_settle(conn);
    setenv("LC_ALL", "C", 1);
    char *out = run(0, "queues -C queue,ready");
    has(out, "\nK\xc3\xb6ln \xe6\x97\xa5      1\n");
    free(out);
    out = run(0, "pause --dry-run 'K\xc3\xb6ln \xe6\x97\xa5'");
    has(errors(out), city);
    free(out);
    setenv("LC_ALL", "C.UTF-8", 1);
    PQfinish(conn);
}

static void
test_pipes(void **state)
{
    static const char *const raw[] = {"\x1b", "\xc2\x9b", "\xe2\x80\xae"};
    static const struct {
        const char *words;
        bool takes_id;
    } verbs[] = {
        {"job ",                       true },
        {"job --json ",                true },
        {"jobs --json --state failed", false},
        {"failures",                   false},
        {"failures --json",            false},
        {"requeue --yes --json --id ", true },
        {"job ",                       true },
    };
    PGconn *conn = begin("pipes");

    (void)state;
    pg_run(conn, "select push('b\xc2\x9b\xe2\x80\xae"
                 "d', '{\"a\": \"\xc2\x9b[31m\xe2\x80\xae\"}', max_tries => 1)");
    core_settle(conn);
    const char *id = pg_value(conn, "select id from queue");
    pg_run(conn, "select fail('n', array[lease], array[version], array[seq], "
                 "array[E'\\x1b[2J\xc2\x9b\xe2\x80\xae'], "
                 "array[E'a\\n\\x1b[2J']) "
                 "from claim('n', 1)");
    core_ten_seconds(conn);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char args[100];
        snprintf(args, sizeof args, "%s%s", verbs[i].words, verbs[i].takes_id ? id : "");
        char *out = run(0, "%s", args);
        for (size_t k = 0; k < sizeof raw / sizeof *raw; k++)
            if (strstr(out, raw[k]))
                fail_msg("%s: %s", args, out);
        if (!strcmp(verbs[i].words, "job --json "))
            has(out, "\"payload\": {\"a\": \"\\u009b[31m\\u202e\"}");
        free(out);
    }
    char *out = run(0, "queues --csv -C queue"); /* CSV needs all bytes */
    has(out, "\nb\xc2\x9b\xe2\x80\xae"
             "d\n");
    free(out);
    out = run(0, "pause --yes b\xc2\x9b\xe2\x80\xae"
                 "d");
    assert_null(strstr(out, raw[1]));
    assert_null(strstr(out, raw[2]));
    free(out);
    PQfinish(conn);
}

/* A spreadsheet runs what begins like a formula. */
static void
test_formulas(void **state)
{
    PGconn *conn = begin("formulas");

    (void)state;
    pg_run(conn, "select push('=1+1', kind => '@SUM(1)'), push('-2+3', kind => '+1')");
    core_settle(conn);
    char *out = run(0, "queues --csv");
    has(out, "\n'=1+1,false,1,");
    has(out, "\n'-2+3,false,1,");
    free(out);
    out = run(0, "jobs --csv");
    has(out, ",'=1+1,'@SUM(1),ready,");
    free(out);
    out = run(0, "jobs --csv --exact");
    has(out, ",=1+1,@SUM(1),ready,");
    has(out, ",-2+3,+1,ready,");
    free(out);
    pg_run(conn, "select push('wide', kind => e'\\uFF1D1+1'), push('line', kind => e'\\n=1'),"
                 "push('more', kind => 'a;=1+1;b;-2; =3'), push('tab', kind => e'a\\t@B(1)'),"
                 "push('lines', kind => e'a\\n-1'), push('quoted', kind => 'a;\"=1\"')");
    core_settle(conn);
    out = run(0, "jobs --csv");
    has(out, ",wide,'\uFF1D1+1,ready,");
    has(out, ",line,\"'\n'=1\",ready,");
    has(out, ",more,a;'=1+1;b;'-2; =3,ready,");
    has(out, ",tab,a\t'@B(1),ready,");
    has(out, ",lines,\"a\n'-1\",ready,");
    has(out, ",quoted,\"a;'\"\"=1\"\"\",ready,");
    free(out);
    out = run(0, "jobs --csv --exact");
    has(out, ",wide,\uFF1D1+1,ready,");
    has(out, ",more,a;=1+1;b;-2; =3,ready,");
    has(out, ",tab,a\t@B(1),ready,");
    free(out);
    PQfinish(conn);
}

static int64_t
cpu_us(void)
{
    struct rusage r;

    getrusage(RUSAGE_CHILDREN, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * (int64_t)1000000 + r.ru_utime.tv_usec +
           r.ru_stime.tv_usec;
}

/* What `queues` costs with so many of them, in CPU time; each has its own settings. */
static int64_t
cost_of_queues(PGconn *conn, int n)
{
    char last[40];
    int lines = 0;

    pg_run(conn,
           "insert into queue_config (queue, paused_at) select 'queue.' || i, "
           "case when i %% 1000 = 7 then now() end from generate_series(1, %d) i on conflict "
           "do nothing",
           n);
    int64_t before = cpu_us();
    char *out = run(0, "queues --csv");
    int64_t cost = cpu_us() - before;
    for (const char *s = out; (s = strchr(s, '\n')); s++)
        lines++;
    assert_int_equal(lines, n + 4);
    for (int i = 0; i < 2; i++) {
        snprintf(last, sizeof last, "\nqueue.%d,%s,0,", n - 1000 + 7 + i, i ? "false" : "true");
        has(out, last);
    }
    has(out, "\nQueue,false,0,");
    has(out, "\n\u00e4,true,0,");
    has(out, "\n\U0001f600,false,0,");
    free(out);
    return cost;
}

/* The time to list very many queues must be proportional to their number: four times as many must
 * not take 16 times as long, as a search among all queues for each queue would. */
static void
test_many_queues(void **state)
{
    PGconn *conn = begin("queues");

    (void)state;
    pg_run(conn, "insert into queue_config (queue, paused_at) values ('Queue', null), "
                 "('\u00e4', now()), ('\U0001f600', null)");
    int64_t few = cost_of_queues(conn, 5000), many = cost_of_queues(conn, 20000);
    print_message("5,000 queues: %d ms of CPU; 20,000: %d ms\n", (int)(few / 1000),
                  (int)(many / 1000));
    assert_in_range(many, 0, 8 * few);
    PQfinish(conn);
}

/* Many jobs stream through in pages; limits hold; words and options say the same. */
static void
test_many_jobs(void **state)
{
    PGconn *conn = begin("many");
    char *out, *same;
    int lines = 0;

    (void)state;
    pg_run(conn,
           "insert into queue (queue, kind) select 'q', 'k' || i from generate_series(1, 2500) i");
    out = run(0, "jobs --csv");
    for (const char *s = out; (s = strchr(s, '\n')); s++)
        lines++;
    assert_int_equal(lines, 2501);
    free(out);
    out = run(0, "jobs --csv --limit 1");
    assert_ptr_equal(strchr(strchr(out, '\n') + 1, '\n'), out + strlen(out) - 1);
    free(out);
    out = run(0, "jobs --csv k2499");
    same = run(0, "jobs --csv kind:k2499 queue:q");
    assert_string_equal(out, same);
    free(same);
    same = run(0, "jobs --csv --kind k2499 --queue q --state ready");
    assert_string_equal(out, same);
    free(same);
    free(out);
    out = run(2, "jobs stat:x");
    has(errors(out), "no such key");
    free(out);
    PQfinish(conn);
}

/* CSV and JSON hold the text of jobs unchanged, for other programs; a table is for people. */
static void
test_exact_bytes(void **state)
{
    PGconn *conn = begin("bytes");
    char *out;

    (void)state;
    pg_run(conn, "select push(E'a\\x1b[31m,\"b', '{\"re\":\"\\\\d+\",\n \"z\":1.50}')");
    pg_run(conn, "select push_bytes('bytes', '\\x00ff10')");
    out = run(0, "queues --csv");
    has(out, "\"a\x1b[31m,\"\"b\",false,");
    free(out);
    out = run(0, "jobs --json");
    has(out, "\"queue\": \"a\\u001b[31m,\\\"b\"");
    free(out);
    out = run(0, "job %s --json", pg_value(conn, "select id from queue where payload is not null"));
    has(out, "\"payload\": {\"re\":\"\\\\d+\",  \"z\":1.50}");
    free(out);
    out = run(0, "job %s --json", pg_value(conn, "select id from queue where body is not null"));
    has(out, "\"body_base64\": \"AP8Q\", \"body_is_whole\": true");
    has(out, "\"attempts\": []");
    free(out);
    out = run(1, "job 00000000-0000-7000-8000-000000000000");
    has(errors(out), "there is no job 00000000-0000-7000-8000-000000000000");
    free(out);
    free(run(2, "job 12"));
    PQfinish(conn);
}

static void
test_requeue(void **state)
{
    PGconn *conn = begin("requeue");
    char *out;

    (void)state;
    make_failed(conn, "bad", 3);
    make_failed(conn, "other", 1);
    pg_run(conn, "update queue set error_key = 'x', error = 'x' where queue = 'other'");
    out = run(0, "requeue --queue bad --dry-run");
    has(out, "would change: 3 jobs ready");
    has(errors(out), "queue bad, state failed");
    has(errors(out), "requeue_where");
    free(out);
    out = run(2, "requeue --queue bad"); /* nobody to ask */
    has(errors(out), "--yes");
    free(out);
    out = run(3, "requeue --queue bad --expect 2 --yes");
    has(errors(out), "expected 2, would change 3");
    free(out);
    free(run(2, "requeue --yes"));
    free(run(2, "requeue --id 12 --yes"));
    free(run(3, "requeue --queue bad --yes --read-only"));
    expect(conn, "4", "select count(*) from queue where state = 'failed'");
    expect(conn, "0", "select count(*) from audit");

    out = run(0, "requeue --id %s --yes --reason 'one of them'",
              pg_value(conn, "select id from queue where error like '%% 2 s'"));
    assert_string_equal(out, "1 job ready\n");
    free(out);
    out = run(0, "requeue --error 'timeout after 77 s' --expect 2 --yes --json");
    has(out, "\"verb\": \"requeue\"");
    has(out, "\"changed\": 2, \"skipped\": 0");
    free(out);
    expect(conn, "other", "select string_agg(queue, ',') from queue where state = 'failed'");
    expect(conn, "one of them", "select reason from audit order by at limit 1");
    out = run(1, "requeue --error 'timeout after 77 s' --yes");
    assert_string_equal(out, "nothing would change\n");
    free(out);
    out = run(0, "audit --json");
    has(out, "\"verb\": \"requeue\"");
    free(out);
    PQfinish(conn);
}

static void
test_leases(void **state)
{
    PGconn *conn = begin("leases");
    char *out;

    (void)state;
    pg_run(conn, "select push('q', max_tries => 2) from generate_series(1, 4)");
    core_settle(conn);
    pg_run(conn, "select node_start('n1', gen_random_uuid(), 'host', 7, '1', 1, null, 2)");
    pg_run(conn, "select count(*) from claim('n1', 2)");
    out = run(0, "extend --node n1 --by 2h --yes");
    has(out, "extended");
    free(out);
    expect(conn, "t",
           "select bool_and(lock_timeout > now() + interval '1 h 50 min') from work_queue "
           "where lock_key = 'n1'");
    out = run(1, "release --node n1 --yes"); /* no lease has expired */
    has(out, "its lease has not expired");
    free(out);
    out = run(3, "release --node n1 --all --yes");
    has(errors(out), "looks alive");
    free(out);
    expect(conn, "2", "select sum(cardinality(seqs)) from work_queue where lock_key = 'n1'");
    out = run(0, "release --node n1 --all --force --dry-run");
    has(errors(out), "last heartbeat "); /* of what age, the load decides */
    has(errors(out), " ago");
    free(out);
    out = run(0, "release --node n1 --all --force --yes --no-count");
    assert_string_equal(out, "2 jobs ready\n");
    free(out);
    expect(conn, "0", "select count(*) from work_queue where lock_key = 'n1'");
    expect(conn, "0", "select sum(tries) from queue");
    core_settle(conn);
    pg_run(conn, "select count(*) from claim('n2', 4)");
    core_expire(conn, "n2");
    out = run(0, "release --node n2 --fail --yes");
    assert_string_equal(out, "4 jobs failed\n");
    free(out);
    free(run(2, "release --yes"));
    free(run(2, "extend --by 5m --yes"));
    free(run(1, "drain nobody --yes"));
    free(run(0, "drain n1 --yes"));
    expect(conn, "draining", "select state from node");
    core_check(conn);
    PQfinish(conn);
}

static void
test_changes_and_undo(void **state)
{
    PGconn *conn = begin("changes");
    char *out;

    (void)state;
    pg_run(conn, "select push('q') from generate_series(1, 2)");
    core_settle(conn);
    out = run(0, "cancel --id %s --yes", pg_value(conn, "select id from queue limit 1"));
    assert_string_equal(out, "1 job cancelled\n");
    free(out);
    out = run(0, "undo %s --yes", pg_value(conn, "select action from audit"));
    assert_string_equal(out, "1 row ready again\n");
    free(out);
    free(run(2, "undo last --yes"));
    out = run(0, "discard --queue q --state ready --yes --reason x --expect 2");
    assert_string_equal(out, "2 jobs discarded\n");
    free(out);
    free(run(3, "discard --queue q --state ready --yes --expect 2"));
    out = run(0, "undo %s --yes", pg_value(conn, "select action from audit where reason = 'x'"));
    assert_string_equal(out, "2 rows ready again\n");
    free(out);
    out = run(0, "priority 1 --queue q --yes");
    assert_string_equal(out, "2 jobs at priority 1\n");
    free(out);
    free(run(2, "priority 11 --queue q --yes"));
    out = run(0, "reschedule 2h --queue q --yes");
    assert_string_equal(out, "2 jobs scheduled\n");
    free(out);
    out = run(2, "reschedule soon --queue q --yes");
    assert_non_null(strstr(strchr(out, 0) + 1, "reschedule: a time is now, 10m"));
    free(out);
    free(run(2, "reschedule now --yes"));
    out = run(0, "reschedule now --queue q --yes");
    assert_string_equal(out, "2 jobs ready\n");
    free(out);
    free(run(1, "delete --queue q --kind none --dry-run"));
    free(run(0, "cancel --queue q --yes --expect 2"));
    core_check(conn);
    PQfinish(conn);
}

static void
test_purge_and_pause(void **state)
{
    PGconn *conn = begin("purge");
    char *out;

    (void)state;
    pg_run(conn, "select push('q') from generate_series(1, 5)");
    core_settle(conn);
    pg_run(conn, "select complete_job('n1', lease, version, seq) from claim('n1', 3)");
    out = run(0, "cancel --id %s --yes", pg_value(conn, "select id from queue limit 1"));
    assert_string_equal(out, "1 job cancelled\n");
    free(out);
    free(run(2, "purge --yes"));
    proc_check(2, NULL, "--older-than: \"7\" has no unit: write 7s, 7m, 7h or 7d",
               "-d \"%s\" purge --older-than 7 --yes", dsn);
    proc_check(2, NULL, "--older-than is an hour at least",
               "-d \"%s\" purge --older-than 59m --yes", dsn);
    free(run(1, "purge --older-than 1h --yes"));
    free(run(0,
             "purge --older-than 0 --force --state finished,succeeded --yes --dry-run --expect 3"));
    free(run(1, "purge --older-than 0 --force --state dead,discarded --dry-run"));
    out = run(0, "purge --older-than 0 --force --state completed --yes");
    assert_string_equal(out, "3 jobs purged\n");
    free(out);
    expect(conn, "cancelled", "select string_agg(state::text, ',') from history");
    out = run(1, "pause typo --yes");
    has(out, "no job was ever seen in queue \"typo\"");
    free(out);
    expect(conn, "0", "select count(*) from queue_config where queue = 'typo'");
    free(run(0, "pause typo --create --yes"));
    expect(conn, "1", "select count(*) from queue_config where paused_at is not null");
    out = run(1, "release --node nobody --yes");
    has(out, "no node is called \"nobody\"");
    free(out);
    free(run(0, "pause q --yes --reason night"));
    expect(conn, "night", "select pause_reason from queue_config where queue = 'q'");
    out = run(0, "queues --json");
    has(out, "\"paused\": true");
    free(out);
    free(run(0, "resume q --yes"));
    expect(conn, "f", "select paused_at is not null from queue_config where queue = 'q'");
    core_check(conn);
    PQfinish(conn);
}

/* Settings are shown, set and reset. A value that is not allowed is reported, and so is a mistyped
 * name. */
static void
test_queue_settings(void **state)
{
    PGconn *conn = begin("settings");
    char *out;

    (void)state;
    free(run(1, "queue q"));
    pg_run(conn, "select push('q') from generate_series(1, 5)");
    core_settle(conn);
    out = run(0, "queue q --rate 100/min --burst 3 --limit 2 --backoff 2s..90s --dry-run");
    has(out, "would change: 1 queue set (max_running 2, was none; rate 100/min, was none; burst 3, "
             "was none; backoff_base 2s, was 5s; backoff_max 90s, was 1h)\n");
    free(out);
    expect(conn, "1", "select count(*) from queue_config where rate is null");
    out = run(0, "queue q --rate 100/min --burst 3 --limit 2 --backoff 2s..90s --pause --reason "
                 "night --yes");
    has(out, "1 queue set (paused true, was false; ");
    free(out);
    expect(conn, "100.0000 3 2 00:00:02 00:01:30 night",
           "select concat_ws(' ', round(60 * rate, 4), burst, max_running, backoff_base, "
           "backoff_max, pause_reason) from queue_config");
    expect(conn, "set q", "select concat_ws(' ', verb, queue) from audit");
    out = run(0, "queue q");
    has(out, "rate           100/min  none ");
    free(out);
    out = run(0, "queue q --json");
    has(out, "\"setting\": \"max_running\", \"value\": \"2\", \"default\": \"none\"");
    free(out);
    free(run(0, "queue q --resume --rate default --limit none --backoff default --yes"));
    expect(conn, "t t 01:00:00",
           "select concat_ws(' ', rate is null, paused_at is null, backoff_max) from queue_config");
    free(run(1, "queue q --resume --yes")); /* the queue is not paused */
    free(run(2, "queue q --pause --resume --yes"));
    free(run(2, "queue q --rate 0 --yes"));
    free(run(2, "queue q --chunk 1000 --yes"));
    free(run(2, "queue q --history some --dry-run"));
    out = run(0, "queue TYPO --weight 3 --yes");
    has(out, "no job was ever seen in queue \"TYPO\": this is kept for when one comes");
    free(out);
    out = run(0, "pause TYPO2 --create --yes");
    has(out, "no job was ever seen in queue \"TYPO2\"");
    free(out);
    core_check(conn);
    PQfinish(conn);
}

static void
test_no_queue_no_server(void **state)
{
    char *out;

    (void)state;
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("nothing"));
    out = run(5, "queues");
    has(errors(out), "no queue in database nothing yet: queuetop install; ");
    free(out);
    out = run(5, "jobs --schema mine");
    has(errors(out), "schema mine");
    free(out);
    snprintf(dsn, sizeof dsn, "host=/nowhere dbname=x");
    free(run(4, "queues"));
    free(run(4, "requeue --queue x --yes"));
}

static void
test_roles(void **state)
{
    PGconn *conn = begin("roles");
    char *out;

    (void)state;
    make_failed(conn, "bad", 2);
    pg_run(conn, "create role anna login; grant queues_viewer to anna");
    snprintf(dsn + strlen(dsn), sizeof dsn - strlen(dsn), " user=anna");
    free(run(0, "queues"));
    free(run(0, "jobs"));
    free(run(0, "failures"));
    free(run(0, "requeue --queue bad --dry-run"));
    out = run(3, "requeue --queue bad --yes");
    has(errors(out), "operator");
    free(out);
    pg_run(conn, "grant queues_operator to anna");
    free(run(0, "requeue --queue bad --yes"));
    expect(conn, "anna", "select who from audit");
    PQfinish(conn);
}

/* --- at a terminal ---------------------------------------------------------------------------- */

static void
spawn(struct vt *vt, const char *verb, const char *option, const char *value)
{
    const char *argv[] = {getenv("QUEUETOP"), verb, option, value, dsn, NULL};

    vt_spawn(vt, 24, 80, argv, NULL);
}

/* A person is asked: y for what is small and harmless, the count for what cannot be taken back. */
static void
test_prompts(void **state)
{
    PGconn *conn = begin("prompts");
    struct vt vt;

    (void)state;
    make_failed(conn, "bad", 3);
    spawn(&vt, "requeue", "--queue", "bad");
    vt_want(&vt, "3 jobs → ready");
    vt_want(&vt, "Go on? [y/N]");
    vt_type(&vt, "\n");
    vt_want(&vt, "nothing was changed");
    assert_int_equal(vt_exit_status(&vt), 3);
    vt_done(&vt);
    expect(conn, "3", "select count(*) from queue where state = 'failed'");
    spawn(&vt, "requeue", "--queue", "bad");
    vt_want(&vt, "[y/N]");
    vt_type(&vt, "y\n");
    vt_want(&vt, "3 jobs ready");
    assert_int_equal(vt_exit_status(&vt), 0);
    assert_null(memchr(vt.raw, 0x1b, vt.raw_len)); /* TERM=dumb knows no escapes */
    vt_done(&vt);

    core_settle(conn);
    pg_run(conn, "select complete_job('n1', lease, version, seq) from claim('n1', 2)");
    spawn(&vt, "purge", "--force", "--older-than=0");
    vt_want(&vt, "Type 2 to go on:");
    vt_type(&vt, "y\n");
    vt_want(&vt, "nothing was changed");
    assert_int_equal(vt_exit_status(&vt), 3);
    vt_done(&vt);
    spawn(&vt, "purge", "--force", "--older-than=0");
    vt_want(&vt, "Type 2 to go on:");
    vt_type(&vt, "2\n");
    vt_want(&vt, "2 jobs purged");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
    PQfinish(conn);
}

/* What jobs say never reaches a terminal raw, in any form of output. */
static void
test_hostile_words(void **state)
{
    PGconn *conn = begin("hostile");
    static const char *const bad[] = {"\x1b", "\x07", "\xe2\x80\xae", "\xc2\x9b"};
    static const char *const words[][2] = {
        {"queues", "--limit=5"},
        {"queues", "--json"   },
        {"queues", "--csv"    },
        {"jobs",   "--limit=5"},
        {"jobs",   "--json"   },
        {"jobs",   "--csv"    }
    };

    (void)state;
    pg_run(conn, "select push(E'evil\\x1b]0;owned\\x07\\x1b[2J\\u202e\\u009b31m', "
                 "kind => E'k\\r\\x1b[1;1H')");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *argv[] = {getenv("QUEUETOP"), words[i][0], words[i][1], dsn, NULL};
        struct vt vt;
        vt_spawn(&vt, 24, 200, argv, NULL);
        vt_want(&vt, "evil");
        vt_is_tame(&vt);
        vt_done(&vt);
    }
    char *piped = run(0, "jobs"); /* a table in a pipe may end at a terminal, too */
    has(piped, "evil");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_null(strstr(piped, bad[k]));
    free(piped);
    PQfinish(conn);
}

/* Runs the words unchanged, without a database of the test; standard error must contain the
 * part. */
static void
ends(int code, const char *part, const char *words)
{
    char *out, *err;
    int got = proc_run(NULL, &out, &err, "%s", words);

    if (got != code || !strstr(err, part))
        fail_msg("%s: %d, not %d, or no \"%s\" in: %s", words, got, code, part, err);
    assert_null(strstr(err, "queuetop install"));
    free(out);
    free(err);
}

/* Exit codes are those of queuetop(1); no advice leads astray. */
static void
codes_of_what_is_not_there(void **state)
{
    char *words = xasprintf("uninstall --schema other \"%s\"", pg_newdb("none"));

    (void)state;
    ends(4, "/nonexistent", "work --drain 'host=/nonexistent dbname=x' -- true");
    ends(4, "/nonexistent", "queues 'host=/nonexistent dbname=x'");
    ends(5, "nothing to uninstall in other", words);
    ends(2, "did you mean requeue?", "reqeue --id x");
    ends(2, "unknown option --max-running, did you mean --limit?", "queue mail --max-running 3");
    ends(2, "unknown option --max_per_key, did you mean --per-key?", "queue mail --max_per_key=3");
    ends(2, "no connection string", "hots=db1");
    ends(2, "push -- help", "push help");
    ends(2, "given by --payload", "push mail '{}'");
    ends(2, "two databases: -d app and dbname lk", "-d app 'dbname=lk'");
    ends(2, "two databases: -d app and dbname lk", "queues postgresql://h/lk -d app");
    ends(4, "/nonexistent", "retry --id x --yes 'host=/nonexistent dbname=x'");
    free(words);
}

static const struct {
    const char *verb, *says;
} unknown[] = {
    {"drain nope",                         "no node is called \"nope\""            },
    {"release --node nope",                "no node is called \"nope\""            },
    {"release --node nope --all",          "no node is called \"nope\""            },
    {"extend --node nope --by 5m",         "no node is called \"nope\""            },
    {"pause nope",                         "no job was ever seen in queue \"nope\""},
    {"resume nope",                        "no job was ever seen in queue \"nope\""},
    {"requeue --queue nope",               "no job was ever seen in queue \"nope\""},
    {"requeue --queue nope --error ~x",    "no job was ever seen in queue \"nope\""},
    {"cancel --queue nope",                "no job was ever seen in queue \"nope\""},
    {"cancel --queue nope --state ready",  "no job was ever seen in queue \"nope\""},
    {"discard --queue nope",               "no job was ever seen in queue \"nope\""},
    {"delete --queue nope",                "no job was ever seen in queue \"nope\""},
    {"priority 3 --queue nope",            "no job was ever seen in queue \"nope\""},
    {"reschedule 10m --queue nope",        "no job was ever seen in queue \"nope\""},
    {"purge --queue nope --older-than 1h", "no job was ever seen in queue \"nope\""},
    {"cron pause nope",                    "no schedule is called \"nope\""        },
    {"cron resume nope",                   "no schedule is called \"nope\""        },
    {"cron run nope",                      "no schedule is called \"nope\""        },
    {"cron remove nope",                   "no schedule is called \"nope\""        },
    {"drain n1",                           "draining already"                      },
    {"resume q",                           "not paused"                            },
    {"cron resume n",                      "not paused"                            },
    {"cron pause p",                       "paused already"                        },
    {"purge --queue q --older-than 1h",    "nothing "                              },
};

/* A name that nobody has: every verb says so, whether it would act or only show what it would do,
 * and changes nothing. What would change nothing for another reason says that reason. */
static void
unknown_names(void **state)
{
    PGconn *conn = begin("unknown");
    char *out;

    (void)state;
    pg_run(conn, "select push('q')");
    core_settle(conn);
    pg_run(conn, "select node_start('n1', gen_random_uuid(), 'host', 7, '1', 1, null, 2)");
    free(run(0, "drain n1 --yes"));
    free(run(0, "cron add n '0 3 * * *' --queue q --yes"));
    free(run(0, "cron add p '0 3 * * *' --queue q --yes"));
    free(run(0, "cron pause p --yes"));
    char *before = xstrdup(pg_value(conn, "select count(*) from audit"));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        for (int acts = 0; acts < 2; acts++) {
            out = run(1, "%s %s", unknown[i].verb, acts ? "--yes" : "--dry-run");
            has(out, unknown[i].says);
            free(out);
        }
    expect(conn, before, "select count(*) from audit");
    free(before);
    out = run(1, "cron show nope");
    has(errors(out), "no schedule is called \"nope\"");
    free(out);
    static const char *const known[] = {"cron pause n", "cron resume p", "cron run n",
                                        "cron remove p"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        out = run(0, "%s --dry-run", known[i]);
        has(out, "would change: 1 schedule");
        free(out);
    }
    PQfinish(conn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(without_a_locale),
        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_many_queues),
        cmocka_unit_test(test_many_jobs),
        cmocka_unit_test(test_exact_bytes),
        cmocka_unit_test(test_requeue),
        cmocka_unit_test(test_leases),
        cmocka_unit_test(test_changes_and_undo),
        cmocka_unit_test(test_purge_and_pause),
        cmocka_unit_test(test_queue_settings),
        cmocka_unit_test(test_no_queue_no_server),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_hostile_words),
        cmocka_unit_test(codes_of_what_is_not_there),
        cmocka_unit_test(unknown_names),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
