/*
 * `queuetop push` and `install` as a user types them: what is printed, what is in the database, and
 * the exit codes.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/server.h"

static char dsn[400];
static PGconn *conn;

/* Runs it; both outputs must be what they should (NULL = not looked at). */
static void
check_run(const char *input, const char *words, int code, const char *out, const char *err)
{
    char *got_out, *got_err;
    int got = proc_run(input, &got_out, &got_err, "-d \"%s\" %s", dsn, words);

    if (got != code)
        fail_msg("%s: exit code %d, not %d: %s", words, got, code, got_err);
    if (out)
        assert_string_equal(got_out, out);
    if (err && !strstr(got_err, err))
        fail_msg("%s: said '%s', not '%s'", words, got_err, err);
    free(got_out);
    free(got_err);
}

static void
check(const char *sql, const char *expected)
{
    assert_string_equal(pg_value(conn, "%s", sql), expected);
}

static int
clear(void **state)
{
    (void)state;
    pg_run(conn, "delete from queues.queue");
    return 0;
}

static void
all_that_a_job_can_say(void **state)
{
    (void)state;
    check_run(
        NULL,
        "push mail --kind welcome --payload '{\"b\":1, \"a\" : 1}' --priority 2 --max-tries 7 "
        "--run-timeout 90s --lease-timeout 2m --unique k1 --delay 5m "
        "--id 01a1fd3f-5d66-7dab-ac0d-78c4a62b213e",
        0, "01a1fd3f-5d66-7dab-ac0d-78c4a62b213e\n", NULL);
    check("select concat_ws('|', queue, kind, state, payload, priority, max_tries, run_timeout, "
          "lease_timeout, unique_key, run_after > now() + interval '4 min') from queues.queue",
          "mail|welcome|scheduled|{\"b\":1, \"a\" : 1}|2|7|00:01:30|00:02:00|k1|t");
    check_run(NULL, "push keyed --concurrency-key 17 --expires-in 1h", 0, NULL, NULL);
    check_run(NULL, "push keyed --expires-at '2100-01-01 00:00+00'", 0, NULL, NULL);
    check("select string_agg(concat_ws('|', state, concurrency_key, expires_at > '2099-01-01', "
          "expires_at < now() + interval '2 h'), ',' order by seq) from queues.queue where queue = "
          "'keyed'",
          "blocked|17|f|t,ready|t|f");
    check_run(NULL, "push keyed --expires-at now --expires-in 1h", 2, NULL, "exclude each other");
}

static void
a_payload_comes_from_anywhere(void **state)
{
    FILE *f = fopen("payload", "we");

    (void)state;
    assert_non_null(f);
    fputs("a\tb\n", f);
    assert_int_equal(fclose(f), 0);
    check_run(NULL, "push none", 0, NULL, NULL);
    check_run("[1]\n", "push input -", 0, NULL, NULL);
    check_run("[2]", "push input2 --payload-file -", 0, NULL, NULL);
    check_run("", "push empty - --type text/plain", 0, NULL, NULL);
    check_run(NULL, "push file --payload-file payload --type text/tsv", 0, NULL, NULL);
    unlink("payload");
    check("select string_agg(concat_ws('|', queue, payload, encode(body, 'escape'), payload_type), "
          "' ' "
          "order by queue) from queues.queue",
          "empty||text/plain file|a\tb\n|text/tsv input|[1]\n input2|[2] none");
    check_run(NULL, "push q --payload-file nowhere", 2, "", "nowhere: No such file");
    check_run(NULL, "push q - --payload 1", 2, "", "one of --payload");
}

static void
pushed_twice_is_one_job(void **state)
{
    const char *id = "01a1fd3f-0000-7dab-ac0d-78c4a62b213e";
    char words[100], line[40];

    (void)state;
    snprintf(words, sizeof words, "push q --id %s", id);
    snprintf(line, sizeof line, "%s\n", id);
    check_run(NULL, words, 0, line, "");
    check_run(NULL, words, 0, line, "there is such a job already");
    pg_run(conn, "update queues.queue set unique_key = 'k'");
    check_run(NULL, "push q --unique k", 0, line, "there is such a job already");
    check("select count(*) from queues.queue", "1");
}

static void
lines_are_jobs(void **state)
{
    size_t size = 3000 * 8;
    char *lines = calloc(1, size), *out;
    int n = 0;

    (void)state;
    for (int i = 0, at = 0; i < 3000; i++)
        at += snprintf(lines + at, size - (size_t)at, "%d\n", i);
    lines[strlen(lines) - 1] = 0; /* the last line without its end */
    assert_int_equal(proc_run(lines, &out, NULL, "-d \"%s\" push many - --lines", dsn), 0);
    for (const char *at = out; *at; at++)
        n += *at == '\n';
    assert_int_equal(n, 3000);
    check("select count(distinct payload::text) from queues.queue", "3000");
    /* in the order of the lines */
    check("select count(*) from (select payload::text::int as p, row_number() over (order by seq) "
          "as r "
          "from queues.queue) z where p <> r - 1",
          "0");
    char first[37] = "";
    snprintf(first, sizeof first, "%s", out);
    check("select id from queues.queue order by seq limit 1", first);
    free(lines);
    free(out);
}

static void
a_bad_line_is_named(void **state)
{
    (void)state;
    check_run("1\n\n{\"a\":\n4\n", "push q - --lines", 6, NULL, "line 3: ");
    check("select string_agg(payload::text, ' ') from queues.queue", "1");
    check_run("{\n", "push q - --lines", 2, "", "line 1: ");
    pg_run(conn, "delete from queues.queue");
    check_run("1\n2\n\"\xff\"\n4\n", "push q - --lines", 6, NULL, "line 3: ");
    check("select string_agg(payload::text, ' ' order by seq) from queues.queue", "1 2");
    check_run("1\n", "push q - --lines --unique k", 2, "", "--unique");
    check_run(NULL, "push q --lines", 2, "", "push q - --lines");
}

/* A payload larger than the program reads ahead during a push: as the only job, as a line, and
 * before another line. */
static void
a_large_payload_ends(void **state)
{
    const size_t size = 11u << 20;
    char *text = malloc(size + 8);

    (void)state;
    assert_non_null(text);
    pg_run(conn, "update queues.setting set value = '30000000' where name = 'payload_limit'");
    memset(text, '7', size);
    text[0] = '"';
    memcpy(text + size - 1, "\"\n8\n", 5);
    check_run(text, "push q - --lines", 0, NULL, "");
    check("select string_agg(octet_length(payload::text)::text, ' ' order by seq) "
          "from queues.queue",
          "11534336 1");
    text[size] = 0;
    check_run(text, "push one -", 0, NULL, "");
    check("select octet_length(payload::text) from queues.queue where queue = 'one'", "11534336");
    pg_run(conn, "update queues.setting set value = '10485760' where name = 'payload_limit'");
    check_run(text, "push one -", 3, "", "payload_limit");
    free(text);
}

/* The server's socket must not become the closed standard output. */
static void
standard_output_may_be_closed(void **state)
{
    char words[600];
    struct proc p;

    (void)state;
    snprintf(words, sizeof words, "exec \"$QUEUETOP\" -d \"%s\" push q >&-", dsn);
    proc_start(&p, (const char *const[]){"sh", "-c", words, NULL}, NULL);
    assert_int_equal(proc_wait(&p), 5);
    char *said = proc_errors(&p);
    assert_string_equal(said, "queuetop push: standard output: Bad file descriptor\n");
    free(said);
    proc_done(&p);
    check("select count(*) from queues.queue", "1");
}

#define TEN "xxxxxxxxxx"
#define A_HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void
what_is_wrong_is_said(void **state)
{
    (void)state;
    check_run(NULL, "push q --payload {", 2, "",
              "the payload is not JSON (--type takes any other): invalid input syntax");
    check_run("1\n{\n3\n", "push lines - --lines", 6, NULL, "line 2: the payload is not JSON");
    check_run(NULL, "push q --at BAD", 2, "", "--at: invalid input syntax for type timestamp");
    check_run(NULL, "push q --at 2026-02-31", 2, "", "--at: date/time field value out of range");
    check_run(NULL, "push q --expires-at BAD", 2, "", "--expires-at: invalid input syntax");
    check_run(NULL, "push q --at now --expires-at BAD", 2, "", "--at or --expires-at: ");
    check_run(NULL, "push q --type a\377b", 2, "", "0xff");
    check_run(NULL, "push q --payload 1 --type " A_HUNDRED A_HUNDRED "x", 2, "",
              "200 bytes at most");
    check("select count(*) from queues.queue where queue = 'q'", "0");
    check_run(NULL, "push q --id 123", 2, "", "'123' is not a uuid");
    check_run(NULL, "push q --at soon", 2, "", "soon");
    check_run(NULL, "push q --at 2026-01-01 --delay 5m", 2, "", "exclude each other");
    check_run(NULL, "push q --csv t.csv --resume ''", 2, "", "--resume takes the name of a file");
    check_run(NULL, "--schema nix push q", 5, "", "queuetop install");
    check_run(NULL, "--read-only push q", 3, "", "");
    check_run(NULL, "--read-only schedule", 3, "", "read-only");
    check_run(NULL, "--read-only work -- true", 3, "", "read-only");
    check_run(NULL, "push '' --payload 1", 2, "", "1 to 200");
    pg_run(conn, "update queues.setting set value = '1000' where name = 'payload_limit'");
    char large[1100];
    snprintf(large, sizeof large, "\"%01040d\"", 7);
    check_run(large, "push q -", 3, "", "payload_limit");
    pg_run(conn, "update queues.setting set value = '10485760' where name = 'payload_limit'");
    check("select count(*) from queues.queue where queue = 'q'", "0");
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"host=/nowhere\" push q"), 4);
}

static void
a_second_install_changes_nothing(void **state)
{
    (void)state;
    check_run(NULL, "install", 0, NULL, NULL);
    check_run(NULL, "migrate", 0, NULL, NULL);
    check_run(NULL, "--schema 'My \"Other\" Queue' install --dry-run", 0, NULL, NULL);
    check("select count(*) from pg_namespace where nspname like 'My%'", "0");
    check_run(NULL, "--schema 'My Queue' install", 0, NULL, NULL);
    check_run(NULL, "--schema 'My Queue' push q", 0, NULL, NULL);
    check("select count(*) from \"My Queue\".queue", "1");
    check("select count(*) from queues.queue", "0");
    check_run(NULL, "--schema nix migrate", 3, NULL, "install");
}

static int
set_up(void **state)
{
    (void)state;
    if (chdir(getenv("TMPDIR")) != 0)
        return -1;
    pg_start(NULL);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("push"));
    conn = pg_connect(dsn);
    return proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn);
}

static int
tear_down(void **state)
{
    (void)state;
    PQfinish(conn);
    pg_stop();
    return 0;
}

static void
check_waited(struct proc *p, int code, const char *out, const char *err)
{
    int got = proc_wait(p);
    char *got_out = proc_output(p), *got_err = proc_errors(p);

    if (got != code || !strstr(got_out, out) || !strstr(got_err, err))
        fail_msg("exit code %d, not %d: %s%s", got, code, got_out, got_err);
    free(got_out);
    free(got_err);
    proc_done(p);
}

static void
write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The header names the columns. Options give the values that a row does not have. */
static void
rows_are_jobs(void **state)
{
    static const char jobs[] = "select string_agg(concat_ws('|', queue, kind, priority, payload, "
                               "state, unique_key, max_tries, run_timeout), E'\\n' order by seq) "
                               "from queues.queue";

    (void)state;
    write_file(
        "t.csv",
        "\xef\xbb\xbfkind,payload,queue,priority,run_after,unique_key,max_tries,run_timeout\r\n"
        "a,\"{\"\"n\"\":\n \"\"x,y\"\"}\",,,,,,\r\n\r\n,7,other,9,2100-01-01,u,3,90s");
    check_run(NULL, "push csv --csv t.csv --kind k --priority 4", 0, NULL, "2 jobs were pushed");
    check(jobs, "csv|a|4|{\"n\":\n \"x,y\"}|ready\nother|k|9|7|scheduled|u|3|00:01:30");
    check_run("id\n01a1fd3f-5d66-7dab-ac0d-78c4a62b2131\n", "push csv --csv -", 0,
              "01a1fd3f-5d66-7dab-ac0d-78c4a62b2131\n", "1 job was pushed");
    check_run("id\n01a1fd3f-5d66-7dab-ac0d-78c4a62b2131\n", "push csv --csv -", 0,
              "01a1fd3f-5d66-7dab-ac0d-78c4a62b2131\n", "0 jobs were pushed");
    check_run("kind,knd\n", "push csv --csv -", 2, "", "no column 'knd', did you mean kind?");
    check_run("kind,kind\n", "push csv --csv -", 2, "", "column kind stands there twice");
    check_run("", "push csv --csv -", 2, "", "has no header");
    check_run(NULL, "push csv --csv t.csv --payload 1", 2, "", "--csv goes without");
    check_run(NULL, "push csv --rejects x", 2, "", "go with --csv");
    check_run(NULL, "push csv --csv nosuch", 2, "", "nosuch: No such file");
    unlink("t.csv");
}

/* The columns have the names that another program gives them. */
static void
columns_have_other_names(void **state)
{
    static const char rows[] = "mail,age,body\na@b,7,1\n", object[] = "{\"mail\": \"c\", "
                                                                      "\"age\": {}, \"body\": [2]}";

    (void)state;
    check_run(rows, "push names --csv - --columns mail=unique_key,body=payload,age=", 0, NULL,
              "1 job was pushed");
    check_run(object,
              "push names --json - --columns mail=unique_key,body=payload --columns age=", 0, NULL,
              "1 job was pushed");
    check("select string_agg(unique_key || payload, ' ' order by seq) from queues.queue",
          "a@b1 c[2]");
    check_run(rows, "push names --csv -", 2, "", "--columns gives it such a name");
    check_run(rows, "push names --csv - --columns mail=kind,body=payload,age=kind", 2, "",
              "column kind stands there twice");
    check_run(rows, "push names --csv - --columns mail=,body=payload,age=,name=kind", 2, "",
              "--columns: there is no column 'name' in the file");
    check_run(rows, "push names --csv - --columns mail=kin", 2, "", "did you mean kind?");
    check_run(rows, "push names --csv - --columns mail", 2, "", "'mail' is not NAME=COLUMN");
    check_run(NULL, "push names --columns mail=kind", 2, "", "go with --csv");
}

/* A file as other programs write it, and rows of somebody who means harm: each costs one row. */
static void
odd_objects(void **state)
{
    static char deep[60001];

    (void)state;
    memset(deep, '[', 30000);
    memset(deep + 30000, ']', 30000);
    FILE *f = fopen("odd.json", "we");
    assert_non_null(f);
    fprintf(f,
            "\xef\xbb\xbf{\"kind\": \"first\"}\n  \t\r\n{\"queue\\u0000x\": \"b\"}\n"
            "{\"queue\": true}\n{\"kind\": \"deep\", \"payload\": %s}\n{\"kind\": \"last\"}\n",
            deep);
    fclose(f);
    check_run(NULL, "push odd --json odd.json --rejects odd.out", 6, NULL, "3 rows were rejected");
    check("select string_agg(queue || ' ' || kind, ',' order by seq) from queues.queue",
          "odd first,odd last");
    unlink("odd.json");
    unlink("odd.out");
}

/* Bad rows are found by this program and by the server; the rest is pushed. The file of rejects is
 * one to import again. */
static void
bad_rows_are_put_aside(void **state)
{
    (void)state;
    write_file("t.csv", "payload,priority,id\n1,1,\n2,10,\n{,1,\n4,1\n5,1,x\n6,1,\n\"7\"x,,\n");
    check_run(NULL, "push bad --csv t.csv --rejects r.csv", 6, NULL,
              "5 rows were rejected: see r.csv");
    check("select string_agg(payload::text, ',' order by seq) from queues.queue", "1,6");
    FILE *f = fopen("r.csv", "re");
    char line[200], all[2000] = "";
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) /* the number and what was in the row */
        snprintf(all + strlen(all), sizeof all - strlen(all), "%.*s%s", (int)strcspn(line, ",") + 1,
                 line, strrchr(line, '"') > line ? strstr(line, "\",") + 2 : "\n");
    fclose(f);
    assert_string_equal(all, "line,\n3,2,10,\n4,{,1,\n5,4,1\n6,5,1,x\n8,\"7\"x,,\n");
    unlink("r.csv");
    write_file("r.csv", "line,reason,payload,priority,id\n3,\"because, so\",2,1,\n4,,{,1,\n");
    check_run(NULL, "push bad --csv r.csv --rejects again.csv", 6, NULL, "1 row was rejected");
    check_run(NULL, "push bad --csv r.csv --rejects r.csv", 2, "", "is the file that is read");
    assert_int_equal(mkfifo("pipe", 0600), 0); /* no reader: the verb must not wait for ever */
    check_run(NULL, "push bad --csv r.csv --rejects pipe", 2, "", "pipe: ");
    unlink("pipe");
    check("select count(*) from queues.queue", "3");
    f = fopen("again.csv", "re");
    assert_non_null(f);
    assert_string_equal(fgets(line, sizeof line, f), "line,reason,payload,priority,id\n");
    assert_non_null(fgets(line, sizeof line, f)); /* five cells again, so that it can go on */
    assert_memory_equal(line, "3,\"", 3);
    assert_string_equal(strrchr(line, '"'), "\",{,1,\n");
    fclose(f);
    unlink("again.csv");
    unlink("r.csv");
    check_run("payload\n{\n", "push bad --csv - --rejects r.csv", 2, "", "0 jobs were pushed");
    unlink("r.csv");
    unlink("t.csv");
}

/* The same columns as members of objects; a reject keeps what the line had. */
static void
objects_are_jobs(void **state)
{
    static const char jobs[] =
        "select string_agg(concat_ws('|', queue, kind, priority, payload, convert_from(body, "
        "'UTF8'), unique_key, max_tries, run_timeout), E'\\n' order by seq) from queues.queue";
    char all[3000] = "";

    (void)state;
    write_file("t.json",
               "{\"kind\": \"a \\\"\\u00e9\\ud83d\\ude00\\n\", \"payload\": {\"b\":[1, \"},\"], "
               "\"a\" : null}, \"priority\": 3, \"unique_key\": null}\r\n\n"
               " {\"payload\":\"t\\u0041\",\"type\":\"text/plain\",\"queue\":\"other\","
               "\"unique_key\":17,\"run_timeout\":\"90s\"}\n{}\n"
               "{\"priority\": 10, \"kind\": \"bad\"}\n[1]\n{\"kind\": \"x\n"
               "{\"knd\": 1}\n{\"kind\": {}}\n{\"kind\": \"\\u0000\"}\n"
               "{\"kind\": \"\\ud800\"}\n{\"run_after\": \"x\", \"kind\": \"pg\"}\n{\"kind\": "
               "\"last\"}");
    check_run(NULL, "push js --json t.json --max-tries 7 --rejects r.json", 6, NULL,
              "8 rows were rejected: see r.json");
    check(jobs, "js|a \"\xc3\xa9\xf0\x9f\x98\x80\n|3|{\"b\":[1, \"},\"], \"a\" : null}|7\n"
                "other||5|tA|17|7|00:01:30\njs||5|7\njs|last|5|7");
    FILE *f = fopen("r.json", "re");
    assert_non_null(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    assert_non_null(strstr(all, "{\"line\": 5, \"reason\": \"priority is a number from 0 to 9, not "
                                "'10'\", \"priority\": 10, \"kind\": \"bad\"}\n"));
    assert_non_null(strstr(all, "\"text\": \"{\\\"kind\\\": \\\"x\"}\n"));
    assert_non_null(strstr(all, "did you mean kind?"));
    assert_non_null(strstr(all, "\\\\ud800 is half of a character"));
    unlink("r.json");
    write_file("t.json", "{\"line\": 7, \"reason\": \"old\", \"payload\": 1}\n{\"line\": 9, "
                         "\"reason\": \"x\", \"payload\": 2, \"priority\": -1}\n");
    check_run(NULL, "push js --json t.json --rejects r.json", 6, NULL, "1 job was pushed");
    f = fopen("r.json", "re");
    assert_non_null(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    assert_string_equal(all, "{\"line\": 2, \"reason\": \"priority is a number from 0 to 9, not "
                             "'-1'\", \"payload\": 2, \"priority\": -1}\n");
    check_run(NULL, "push js --json t.json", 6, NULL, "to go on there: --from-line 2");
    check_run(NULL, "push js --json t.json --csv t.json", 2, "", "exclude each other");
    unlink("r.json");
    unlink("t.json");
}

/* Without a file for them the first bad row ends it, behind all rows before it, and the line to go
 * on from is printed. The same for a server that goes away. */
static void
an_import_is_gone_on_with(void **state)
{
    FILE *f = fopen("t.csv", "we");
    struct proc p;

    (void)state;
    assert_non_null(f);
    fputs("payload\n", f);
    for (int i = 2; i <= 1500; i++)
        fprintf(f, i == 1203 ? "{\n" : "%d\n", i);
    assert_int_equal(fclose(f), 0);
    check_run(NULL, "push on --csv t.csv", 6, NULL, "to go on there: --from-line 1203");
    check("select count(*) || ' ' || max(payload::text::int) from queues.queue", "1201 1202");
    check_run(NULL, "push on --csv t.csv --from-line 1204", 0, NULL, "297 jobs were pushed");
    check("select count(*) || ' ' || count(distinct payload::text) from queues.queue", "1498 1498");

    /* a pipe that stays silent: what came is pushed, and a signal ends it */
    assert_int_equal(mkfifo("gate", 0600), 0);
    int gate = open("gate", O_RDWR | O_CLOEXEC);
    assert_int_equal(write(gate, "payload\n1\n2\n3", 13), 13);
    proc_queuetop(&p, NULL, "push pipe --csv gate -d \"%s\"", dsn);
    pg_wait(conn, "select count(*) from queues.queue where queue = 'pipe'", "2", PROC_WAIT_MS);
    assert_int_equal(kill(p.pid, SIGINT), 0);
    check_waited(&p, 6, "", "to go on there: --from-line 4");
    close(gate);
    unlink("gate");
    unlink("t.csv");
}

/* Lines from..to of a table, of which line 650 is bad; line 1 is the header. */
static void
add_lines(struct buf *b, int from, int to)
{
    for (int i = from; i <= to; i++)
        if (i == 1)
            buf_str(b, "payload\n");
        else
            buf_printf(b, i == 650 ? "{\n" : "%d\n", i);
}

static char *
read_whole(const char *name)
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

/* Waits until the file keeps that line as the place. */
static void
want_place(const char *name, const char *line)
{
    for (int i = 0; i < PROC_WAIT_MS / 10; i++) {
        char *text = read_whole(name);
        bool found = strstr(text, line) != NULL;
        free(text);
        if (found)
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("%s has no '%s'", name, line);
}

/* What is refused changes no file: not the rejects, nor what was named for them by mistake. */
static void
a_refused_import_changes_no_file(void)
{
    static const struct {
        const char *files, *why;
    } twice[] = {
        {"place --rejects t.csv",        "the file that is read"                          },
        {"t.csv",                        "is not the place of an import"                  },
        {"new --rejects new",            "--resume and --rejects are the same file: new"  },
        {"new --rejects ./new",          "--resume and --rejects are the same file: new"  },
        {"place --rejects ./place",      "--resume and --rejects are the same file: place"},
        {"place --rejects ./place.lock", "--rejects is the lock of --resume"              },
    };
    char *bad = read_whole("bad.csv"), *rows = read_whole("t.csv");
    int lock = open("place.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(flock(lock, LOCK_EX), 0);
    check_run(NULL, "push killed --csv t.csv --resume place --rejects bad.csv", 3, "",
              "another import with --resume place is running");
    close(lock);
    check_run(NULL, "push killed --csv other --resume place", 2, "", "other");
    write_file("other", "payload\n1\n2\n");
    check_run(NULL, "push killed --csv other --resume place --rejects bad.csv", 2, "",
              "rows before line 602");
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
        char *words = xasprintf("push killed --csv t.csv --resume %s", twice[i].files);
        check_run(NULL, words, 2, "", twice[i].why);
        free(words);
    }
    assert_int_equal(access("t.csv.lock", F_OK) + access("new", F_OK), -2);
    unlink("new.lock");
    char *bad_now = read_whole("bad.csv"), *rows_now = read_whole("t.csv");
    assert_string_equal(bad_now, bad);
    assert_string_equal(rows_now, rows);
    free(bad);
    free(rows);
    free(bad_now);
    free(rows_now);
}

static void
all_end(void)
{
    for (int i = 0; i < 100 && pg_int(conn, "select count(*) from queue where queue = 'killed'");
         i++) {
        pg_run(conn, "select schedule('test')");
        pg_run(conn, "select c.* from claim('n', 2000, queues => '{killed}') x, complete('n', "
                     "array[x.lease], array[x.version], array[x.seq]) c");
    }
}

/* With a small batch first: what may have been pushed is more than that. */
static void
goes_on_by_a_pipe(const char *first)
{
    int gate = open("gate", O_RDWR | O_CLOEXEC);
    struct buf rest = {0};
    struct proc p;

    add_lines(&rest, 605, 1501);
    proc_queuetop(&p, NULL, "push killed --csv gate --resume place --rejects bad.csv -d \"%s\"",
                  dsn);
    assert_int_equal(write(gate, first, strlen(first)), strlen(first));
    assert_int_equal(write(gate, "602\n603\n604\n", 12), 12);
    want_place("place", "\nline 605\n");
    assert_int_equal(write(gate, rest.data, rest.len), rest.len);
    close(gate);
    assert_int_equal(proc_wait(&p), 6);
    char *said = proc_errors(&p);
    assert_non_null(strstr(said, "600 jobs were pushed"));
    free(said);
    proc_done(&p);
    buf_free(&rest);
}

/* Killed between a batch and the note of it: then the file has the place before that batch. Its
 * jobs have ended meanwhile, and a row was rejected. */
static void
a_killed_import_goes_on(void **state)
{
    struct buf first = {0}, second = {0}, all = {0};
    struct proc p;

    (void)state;
    add_lines(&first, 1, 601);
    add_lines(&second, 602, 901);
    add_lines(&all, 1, 1501);
    write_file("t.csv", all.data);
    assert_int_equal(mkfifo("gate", 0600), 0);
    int gate = open("gate", O_RDWR | O_CLOEXEC);
    proc_queuetop(&p, NULL, "push killed --csv gate --resume place --rejects bad.csv -d \"%s\"",
                  dsn);
    assert_int_equal(write(gate, first.data, first.len), first.len);
    want_place("place", "\nline 602\n");
    char *before = read_whole("place");
    assert_int_equal(write(gate, second.data, second.len), second.len);
    want_place("place", "\nline 902\n");
    proc_done(&p); /* SIGKILL */
    close(gate);
    write_file("place", before);
    pg_run(conn, "set search_path to queues");
    all_end();
    check("select count(*) from queues.history where queue = 'killed'", "899");
    a_refused_import_changes_no_file();
    goes_on_by_a_pipe(first.data);
    check("select count(*) || ' ' || count(distinct p) from (select payload::text from queues.queue"
          " where queue = 'killed' union all select payload::text from queues.history where queue ="
          " 'killed') j (p)",
          "1499 1499");
    char *bad = read_whole("bad.csv"), *row = strstr(bad, "\n650,");
    assert_non_null(row);
    assert_null(strstr(row + 1, "\n650,"));
    /* nobody has seen how it ended: the same once more */
    check_run(NULL, "push killed --csv t.csv --resume place --rejects bad.csv", 0, "",
              "an earlier run has pushed all rows");
    check(
        "select (select count(*) from queues.queue where queue = 'killed') + (select count(*) from"
        " queues.history where queue = 'killed')",
        "1499");
    unlink("place");
    unlink("place.lock");
    free(bad);
    free(before);
    buf_free(&first);
    buf_free(&second);
    buf_free(&all);
    unlink("gate");
    unlink("t.csv");
    unlink("bad.csv");
    unlink("other");
}

/* Which of two members was meant is not known. A payload of type application/json may be a value.
 */
static void
members_say_one_thing(void **state)
{
    (void)state;
    write_file("t.json",
               "{\"kind\": \"a\", \"\\u006bind\": \"b\"}\n{\"payload\": 1, \"payload\": null}\n"
               "{\"type\": \"application/json\", \"payload\": {\"a\": 1, \"a\": 2}}\n"
               "{\"type\": \"Application/JSON; charset=utf-8\", \"payload\": 7}\n"
               "{\"type\": \"application/json\", \"payload\": \"{}\"}\n"
               "{\"type\": \"application/jsonp\", \"payload\": {}}\n");
    check_run(NULL, "push one --json t.json --rejects r.json", 6, NULL, "3 rows were rejected");
    check("select string_agg(concat_ws('|', payload, payload_type, encode(body, 'escape')), ' ' "
          "order by seq) from queues.queue",
          "{\"a\": 1, \"a\": 2} 7 application/json|{}");
    check_run(NULL, "push one --json t.json", 2, "", "line 1: kind stands there twice");
    unlink("t.json");
    unlink("r.json");
}

/* In the rejects, which are JSON, bytes that are not valid UTF-8 appear as their Latin-1
 * characters. An unchanged reject is rejected again; a corrected reject is pushed. */
static void
rejects_can_be_mended(void **state)
{
    char all[500] = "";

    (void)state;
    write_file("t.json",
               "\xef\xbb\xbf{\"kind\": \"caf\xe9\", \"payload\": 1}\n\xc4\n{\"kind\": \"ok\"}\n");
    check_run(NULL, "push bytes --json t.json --rejects r.json", 6, NULL, "2 rows were rejected");
    FILE *f = fopen("r.json", "re");
    assert_non_null(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    assert_string_equal(all,
                        "{\"line\": 1, \"reason\": \"byte 14 is no UTF-8\", \"text\": \"{\\\"kind"
                        "\\\": \\\"caf\xc3\xa9\\\", \\\"payload\\\": 1}\"}\n{\"line\": 2, "
                        "\"reason\": \"byte 1 is no UTF-8\", \"text\": \"\xc3\x84\"}\n");
    check_run(NULL, "push bytes --json r.json --rejects again.json", 2, "", "2 rows were rejected");
    check("select string_agg(kind, ' ' order by seq) from queues.queue", "ok");
    unlink("again.json");
    unlink("r.json");
    unlink("t.json");
}

/* The row is rejected, the other rows are pushed. The program keeps at most as much of the row as a
 * row may have. */
static void
a_row_that_is_too_long_is_passed_over(void **state)
{
    static char piece[1 << 20];
    static const char end[] = "\"\nc,2\n";
    struct proc p;
    char all[200] = "";

    (void)state;
    memset(piece, '\n', sizeof piece);
    assert_int_equal(mkfifo("gate", 0600), 0);
    proc_queuetop(&p, NULL, "push long --csv gate --rejects r.csv -d \"%s\"", dsn);
    int gate = open("gate", O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(gate, "kind,payload\na,1\nb,\"", 20), 20);
    for (int mib = 0; mib < 160; mib++)
        assert_int_equal(write(gate, piece, sizeof piece), sizeof piece);
    assert_int_equal(write(gate, end, sizeof end - 1), sizeof end - 1);
    pg_wait(conn, "select string_agg(kind, ',' order by seq) from queues.queue", "a,c",
            PROC_WAIT_MS);
    assert_in_range(proc_number(p.pid, "VmHWM:"), 1, 150 << 10);
    memset(piece, 'x', sizeof piece); /* and one that the input ends in */
    for (int mib = 0; mib < 17; mib++)
        assert_int_equal(write(gate, piece, sizeof piece), sizeof piece);
    close(gate);
    check_waited(&p, 6, "", "2 rows were rejected");
    FILE *f = fopen("r.csv", "re");
    assert_non_null(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    assert_string_equal(all, "line,reason,kind,payload\n3,\"a row has 16 MiB at most\"\n"
                             "167772165,\"a row has 16 MiB at most\"\n");
    check_run(NULL, "push long --csv r.csv --rejects again.csv", 2, "", "0 jobs were pushed");
    unlink("again.csv");
    unlink("r.csv");
    unlink("gate");
}

/* A row is looked at once, however small the pieces are that it comes in: to look at all of it
 * again with each piece of 4 KiB would take some 40 s of processor time. Its size is bounded. */
static void
a_huge_row_is_read_in_linear_time(void **state)
{
    static const char head[] = "kind,payload\na,1\nb,\"";
    char script[600], piece[4096];
    const char *argv[] = {"bash", "-c", script, NULL};
    struct proc p;

    (void)state;
    memset(piece, 'x', sizeof piece);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(mkfifo("gate", 0600), 0);
    snprintf(script, sizeof script,
             "ulimit -t 10; exec \"$QUEUETOP\" push huge --csv gate -d \"%s\"", dsn);
    proc_start(&p, argv, NULL);
    int gate = open("gate", O_WRONLY | O_CLOEXEC);
    assert_true(fcntl(gate, F_SETPIPE_SZ, 4096) >= 0);
    assert_int_equal(write(gate, head, sizeof head - 1), sizeof head - 1);
    while (write(gate, piece, sizeof piece) > 0)
        ;
    close(gate);
    check_waited(&p, 6, "", "line 3: a row has 16 MiB at most (a \" does not close?)");
    check("select string_agg(kind, ',') from queues.queue", "a");
    signal(SIGPIPE, SIG_DFL);
    unlink("gate");
}

/* One job of the queue is taken by node w and answered by this call of complete() or fail(). */
static void
answer(const char *queue, const char *how)
{
    pg_wait(conn, "select count(*) > 0 from queues.queue where queue like 'w%'", "t", PROC_WAIT_MS);
    for (int i = 0; i < 3; i++)
        pg_run(conn, "select queues.schedule('test')");
    pg_run(conn,
           "select queues.%s from (select array[lease] l, array[version] v, array[seq] s "
           "from queues.claim('w', 1, queues => '{%s}')) c",
           how, queue);
    pg_run(conn, "select queues.scheduler_stop('test')");
}

static void
an_end_is_waited_for(void **state)
{
    static const char failed[] = "fail('w', l, v, s, '{no such user}', final => '{t}')";
    struct proc p, other;

    (void)state;
    proc_queuetop(&p, NULL, "-d \"%s\" push w1 --wait", dsn);
    answer("w1", "complete('w', l, v, s, results => '{\"a\\\\012b\"}')");
    check_waited(&p, 0, "\ncompleted\na\nb\n", "");
    proc_queuetop(&p, NULL, "-d \"%s\" push w2 --wait 10m", dsn);
    proc_want_output(&p, "\n");
    char *id = proc_output(&p);
    id[strcspn(id, "\n")] = 0;
    proc_queuetop(&other, NULL, "-d \"%s\" job %s --wait --json", dsn, id);
    free(id);
    answer("w2", failed);
    check_waited(&p, 7, "\nfailed\nno such user\n", "");
    check_waited(&other, 7, "\"state\": \"failed\"", "");
    check_run(NULL, "push w3 --id 01a1fd3f-5d66-7dab-ac0d-78c4a62b2130 --wait 100ms", 8,
              "01a1fd3f-5d66-7dab-ac0d-78c4a62b2130\n", "the time is over, the job is ready");
    check_run(NULL, "job 01a1fd3f-5d66-7dab-ac0d-78c4a62b2130 --wait 1ms", 8, NULL, "is ready");
    proc_queuetop(&p, NULL, "-d \"%s\" job 01a1fd3f-5d66-7dab-ac0d-78c4a62b2130 --wait", dsn);
    check_run(NULL, "cancel --id 01a1fd3f-5d66-7dab-ac0d-78c4a62b2130 --yes", 0, NULL, NULL);
    check_waited(&p, 7, "state         cancelled\n", "");
    check_run(NULL, "push w3 -", 2, NULL, NULL); /* an empty payload is no JSON */
    check_run("1\n", "push w3 - --lines --wait", 2, NULL, "--wait waits for one");
    check_run(NULL, "job 01a1fd3f-0000-7dab-ac0d-78c4a62b2130 --wait", 1, "", "there is no job");
}

/* Without history the end of a job can't be known: the wait warns at its beginning, and ends with
 * an exit code of its own. A failed job is kept. */
static void
an_end_without_history_is_told(void **state)
{
    static const char failed[] = "fail('w', l, v, s, '{no such user}', final => '{t}')";
    struct proc p, other;

    (void)state;
    pg_run(conn, "insert into queues.queue_config (queue, history) select q, 'none' "
                 "from unnest('{w6,w7}'::text[]) q");
    proc_queuetop(&p, NULL, "-d \"%s\" push w6 --wait", dsn);
    proc_want(&p, "queue \"w6\" keeps no history: if the job does not fail");
    char *id = proc_output(&p);
    id[strcspn(id, "\n")] = 0;
    proc_queuetop(&other, NULL, "-d \"%s\" job %s --wait", dsn, id);
    proc_want(&other, "keeps no history");
    free(id);
    answer("w6", "complete('w', l, v, s)");
    check_waited(&p, 10, "", "the job has ended and has not failed");
    check_waited(&other, 10, "", "the job has ended and has not failed");
    proc_queuetop(&p, NULL, "-d \"%s\" push w7 --wait", dsn);
    answer("w7", failed);
    check_waited(&p, 7, "\nfailed\nno such user\n", "keeps no history");
}

/* A lost server is waited for. */
static void
a_wait_outlives_the_server(void **state)
{
    struct proc p;

    (void)state;
    proc_queuetop(&p, NULL, "-d \"%s\" push w4 --wait", dsn);
    proc_want_output(&p, "\n");
    PQfinish(conn);
    pg_down("fast");
    proc_want(&p, "trying again");
    pg_up();
    conn = pg_connect(dsn);
    answer("w4", "complete('w', l, v, s)");
    check_waited(&p, 0, "\ncompleted\n", "trying again");
}

/* Whoever may push may ask what became of the job. Who can't ask pushes nothing: a script that
 * repeats the push would make a second job. If the answer is lost after the push, the exit code
 * says that there is a job. */
static void
a_pusher_waits(void **state)
{
    static const char revoke[] = "%s execute on function queues.job_outcome(uuid) %s queues_pusher";
    struct proc p;

    (void)state;
    pg_run(conn, "create role pusher login in role queues_pusher");
    proc_queuetop(&p, NULL, "push w5 --wait -d \"%s user=pusher\"", dsn);
    answer("w5", "complete('w', l, v, s, results => '{\\\\x6f6b}')");
    check_waited(&p, 0, "\ncompleted\nok\n", "");
    pg_run(conn, revoke, "revoke", "from");
    proc_check(3, "", "not pushed", "push w8 --wait -d \"%s user=pusher\"", dsn);
    check("select count(*) from queues.queue where queue = 'w8'", "0");
    pg_run(conn, revoke, "grant", "to");
    proc_queuetop(&p, NULL, "push w8 --wait -d \"%s user=pusher\"", dsn);
    proc_want_output(&p, "\n");
    pg_run(conn, revoke, "revoke", "from");
    check_waited(&p, 6, "", "the job is pushed; how it ends is not known: queuetop job");
    pg_run(conn, revoke, "grant", "to");
}

/* A text or result that is UTF-8 is shown as it is, not as the escapes of its bytes. */
static void
text_is_shown_as_text(void **state)
{
    (void)state;
    check_run("Stra\u00dfe", "push w9 - --type text/plain", 0, NULL, "");
    char *id = xstrdup(pg_value(conn, "select id from queues.queue where queue = 'w9'"));
    proc_check(0, "\n  Stra\u00dfe", NULL, "job %s -d \"%s\"", id, dsn);
    answer("w9", "complete('w', l, v, s, results => array[convert_to('gr\u00fcn\\', 'UTF8')])");
    proc_check(0, "\n  gr\u00fcn\\\n", NULL, "job %s -d \"%s\"", id, dsn);
    free(id);
    check_run("a", "push w10 -", 2, NULL, "not JSON");
    check_run("7", "push w10 -", 0, NULL, "");
    id = xstrdup(pg_value(conn, "select id from queues.queue where queue = 'w10'"));
    answer("w10", "complete('w', l, v, s, results => array['\\xff00'::bytea])");
    proc_check(0, "\\377\\000", NULL, "job %s -d \"%s\"", id, dsn);
    free(id);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_that_a_job_can_say, clear),
        cmocka_unit_test_setup(a_payload_comes_from_anywhere, clear),
        cmocka_unit_test_setup(pushed_twice_is_one_job, clear),
        cmocka_unit_test_setup(lines_are_jobs, clear),
        cmocka_unit_test_setup(a_bad_line_is_named, clear),
        cmocka_unit_test_setup(a_large_payload_ends, clear),
        cmocka_unit_test_setup(standard_output_may_be_closed, clear),
        cmocka_unit_test_setup(what_is_wrong_is_said, clear),
        cmocka_unit_test_setup(a_second_install_changes_nothing, clear),
        cmocka_unit_test_setup(rows_are_jobs, clear),
        cmocka_unit_test_setup(columns_have_other_names, clear),
        cmocka_unit_test_setup(bad_rows_are_put_aside, clear),
        cmocka_unit_test_setup(odd_objects, clear),
        cmocka_unit_test_setup(objects_are_jobs, clear),
        cmocka_unit_test_setup(members_say_one_thing, clear),
        cmocka_unit_test_setup(rejects_can_be_mended, clear),
        cmocka_unit_test_setup(a_row_that_is_too_long_is_passed_over, clear),
        cmocka_unit_test_setup(an_import_is_gone_on_with, clear),
        cmocka_unit_test_setup(a_huge_row_is_read_in_linear_time, clear),
        cmocka_unit_test_setup(a_killed_import_goes_on, clear),
        cmocka_unit_test_setup(an_end_is_waited_for, clear),
        cmocka_unit_test_setup(an_end_without_history_is_told, clear),
        cmocka_unit_test_setup(a_pusher_waits, clear),
        cmocka_unit_test_setup(text_is_shown_as_text, clear),
        cmocka_unit_test_setup(a_wait_outlives_the_server, clear),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
