/*
 * `queuetop metrics`: the text is OpenMetrics to the letter, its figures are the database's, a
 * scrape costs the server nothing, and a stranger at the port can't hold it up.
 */
#include "tests/harness.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/store/conditions.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/sql/foreign.h"

static char dsn[300];
static PGconn *conn;

static int
set_up(void **state)
{
    pg_group_start(state);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("metrics"));
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn), 0);
    conn = pg_connect(dsn);
    pg_run(conn, "set search_path = queues");
    return 0;
}

static int
tear_down(void **state)
{
    PQfinish(conn);
    return pg_group_stop(state);
}

static char *
print(const char *options)
{
    char *out;

    if (proc_run(NULL, &out, NULL, "-d \"%s\" metrics %s", dsn, options) != 0)
        fail_msg("metrics %s: %s", options, out);
    return out;
}

static void
has(const char *text, const char *line)
{
    char *whole = xasprintf("%s\n", line);

    if (!strstr(text, whole))
        fail_msg("no line %s in\n%s", line, text);
    free(whole);
}

/* --- the format ------------------------------------------------------------------------------- */

/* Behind the labels of a sample, whose values may hold anything in quotes; NULL = they are wrong.
 */
static const char *
behind_labels(const char *s)
{
    if (*s++ != '{')
        return NULL;
    for (;;) {
        size_t name = strspn(s, "abcdefghijklmnopqrstuvwxyz_");
        if (name == 0 || s[name] != '=' || s[name + 1] != '"')
            return NULL;
        for (s += name + 2; *s != '"'; s++) {
            if (*s == '\\' && !strchr("\\n\"", *++s))
                return NULL;
            if (*s == '\0')
                return NULL;
        }
        if (*++s == '}')
            return s + 1;
        if (*s++ != ',')
            return NULL;
    }
}

/* A sample belongs to the family above it, by its name and the ending of its type. */
static void
check_sample(const char *line, const char *family, const char *type)
{
    size_t len = strcspn(line, "{"), own = strlen(family);
    const char *ending = !strcmp(type, "counter") ? "_total" : "";
    char *end;

    if (strncmp(line, family, own) != 0 || len != own + strlen(ending) ||
        strncmp(line + own, ending, strlen(ending)) != 0)
        fail_msg("%s stands below %s", line, family);
    const char *value = behind_labels(line + len);
    if (!value || *value++ != ' ')
        fail_msg("labels of %s", line);
    strtod(value, &end);
    if (end == value || *end)
        fail_msg("value of %s", line);
    if (!strcmp(type, "summary") && !strstr(line, "quantile=\""))
        fail_msg("no quantile: %s", line);
}

/* `line` is WHAT NAME WORD...; name and word take 200 bytes each. */
static bool
is_told(const char *line, const char *what, char *name, char *word)
{
    if (strncmp(line, what, strlen(what)) != 0)
        return false;
    line += strlen(what);
    size_t len = strcspn(line, " ");
    assert_true(len > 0 && line[len] == ' ');
    snprintf(name, 200, "%.*s", (int)len, line);
    snprintf(word, 200, "%.*s", (int)strcspn(line + len + 1, " "), line + len + 1);
    assert_true(word[0] != '\0');
    return true;
}

static void
check_format(const char *text)
{
    char *copy = strdup(text), *rest = NULL, family[200] = "", type[20] = "", *seen = strdup(" ");
    int samples = 0;
    bool ended = false;

    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[200], word[200];
        assert_false(ended);
        if (is_told(line, "# TYPE ", name, word)) {
            char *again = xasprintf(" %s ", name), *more = xasprintf("%s%s ", seen, name);
            assert_null(strstr(seen, again)); /* a family stands in one place */
            free(again);
            free(seen);
            seen = more;
            snprintf(family, sizeof family, "%s", name);
            snprintf(type, sizeof type, "%.19s", word);
        } else if (is_told(line, "# UNIT ", name, word)) {
            assert_string_equal(name, family);
            assert_string_equal(family + strlen(family) - strlen(word), word);
        } else if (is_told(line, "# HELP ", name, word))
            assert_string_equal(name, family);
        else if (!strcmp(line, "# EOF"))
            ended = true;
        else {
            check_sample(line, family, type);
            samples++;
        }
    }
    assert_true(ended);
    assert_true(samples > 20);
    free(copy);
    free(seen);
}

/* --- once ------------------------------------------------------------------------------------- */

static void
figures_are_the_database_s(void **state)
{
    (void)state;
    pg_run(conn, "insert into queue (queue) select 'mails' from generate_series(1, 3);"
                 "insert into queue (queue, run_after) values ('mails', now() + interval '1 h');"
                 "select schedule('test'); select claim('n', 1);"
                 "select pause(gen_random_uuid(), 'mails', 'why')");
    char *text = print("");
    check_format(text);
    has(text, "queuetop_up{source=\"metrics\"} 1");
    has(text, "queuetop_queue_jobs{source=\"metrics\",queue=\"mails\",state=\"ready\"} 2");
    has(text, "queuetop_queue_jobs{source=\"metrics\",queue=\"mails\",state=\"running\"} 1");
    has(text, "queuetop_queue_jobs{source=\"metrics\",queue=\"mails\",state=\"scheduled\"} 1");
    has(text, "queuetop_queue_pushed_total{source=\"metrics\",queue=\"mails\"} 4");
    has(text, "queuetop_queue_paused{source=\"metrics\",queue=\"mails\"} 1");
    char info[100];
    snprintf(info, sizeof info,
             "queuetop_source_info{source=\"metrics\",adapter=\"native\",version=\"%s\"} 1",
             pg_value(conn, "select version from meta"));
    has(text, info);
    free(text);
    text = print("--plain");
    has(text, "# TYPE queuetop_queue_pushed_total counter");
    assert_null(strstr(text, "# EOF"));
    assert_null(strstr(text, "# UNIT"));
    free(text);
}

/* With 6 digits the first value would be 1.23457e+06, which is more than the second one. */
static void
a_counter_never_falls(void **state)
{
    (void)state;
    pg_run(conn, "insert into delta (queue, priority, run_ms) values ('long', 5, 1234567300)");
    char *text = print("");
    has(text, "queuetop_queue_run_seconds_total{source=\"metrics\",queue=\"long\"} 1234567.3");
    free(text);
    pg_run(conn, "insert into delta (queue, priority, run_ms) values ('long', 5, 700)");
    text = print("");
    has(text, "queuetop_queue_run_seconds_total{source=\"metrics\",queue=\"long\"} 1234568");
    free(text);
}

static void
names_of_strangers(void **state)
{
    (void)state;
    pg_run(conn, "insert into queue (queue) values (E'a\"b\\\\c\\nd} 5\\n# EOF\\n'), "
                 "(E'\\x1b[31m\\u202e'); select schedule('test')");
    char *text = print("");
    check_format(text);
    has(text, "queuetop_queue_jobs{source=\"metrics\",queue=\"a\\\"b\\\\c\\nd} 5\\n# "
              "EOF\\n\",state=\"ready\"} 1");
    assert_null(strchr(text, '\x1b'));
    free(text);
}

static void
queues_are_bounded(void **state)
{
    (void)state;
    pg_run(conn, "insert into queue (queue) select 'z' || i from generate_series(1, 20) i;"
                 "select schedule('test')");
    char *text = print("--queues 5");
    int omitted = (int)pg_int(conn, "select count(*) - 5 from overview()");
    char *line = xasprintf("queuetop_queues_omitted{source=\"metrics\"} %d", omitted);
    has(text, line);
    assert_null(strstr(text, "\"z3\""));
    free(line);
    free(text);
}

/* Each database is a source, also one of another system. If there is no such database, its up is
 * 0. */
static void
many_sources(void **state)
{
    char *out, *err;

    (void)state;
    PQfinish(pg_fixture("metrics_river", "river"));
    char *river = strdup(pg_dsn("metrics_river")), *none = strdup(pg_dsn("metrics_none"));
    int code = proc_run(NULL, &out, &err, "metrics \"%s\" \"%s\" \"%s\"", dsn, river, none);
    free(river);
    free(none);
    if (code != 0)
        fail_msg("%d: %s%s", code, out, err);
    check_format(out);
    has(out, "queuetop_up{source=\"metrics\"} 1");
    has(out, "queuetop_up{source=\"metrics_river\"} 1");
    has(out, "queuetop_up{source=\"metrics_none\"} 0");
    assert_non_null(strstr(out, "source=\"metrics_river\",queue=\"mail\""));
    assert_non_null(strstr(err, "metrics_none"));
    free(out);
    free(err);
    proc_check(4, "queuetop_up{source=\"x\"} 0", NULL, "metrics \"host=/nowhere dbname=x\"");
}

/* --- into a file ------------------------------------------------------------------------------ */

static void
a_file_is_whole(void **state)
{
    char folder[] = "/tmp/metrics.XXXXXX", path[100];
    static char text[200000];
    struct proc p;
    struct stat first = {0}, now = {0};
    int64_t until = clock_ms() + PROC_WAIT_MS;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/queuetop.prom", folder);
    proc_queuetop(&p, NULL, "-d \"%s\" metrics --file %s --interval 1s", dsn, path);
    while (stat(path, &first) != 0 && clock_ms() < until)
        poll(NULL, 0, 20);
    do {
        FILE *f = fopen(path, "r"); /* at any time the file is complete */
        assert_non_null(f);
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[n] = '\0';
        check_format(text);
        assert_int_equal(stat(path, &now), 0);
        poll(NULL, 0, 20);
    } while (now.st_ino == first.st_ino && clock_ms() < until);
    assert_int_not_equal(now.st_ino, first.st_ino);
    proc_ends(&p);
    proc_done(&p);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing is left beside it */
    proc_queuetop(&p, NULL, "-d \"%s\" metrics --file %s", dsn, path);
    proc_want(&p, "No such file or directory");
    proc_ends(&p);
    proc_done(&p);
}

/* Waits until the file is there and has that line. */
static void
file_says(const char *path, const char *line)
{
    static char text[200000];
    int64_t until = clock_ms() + PROC_WAIT_MS;

    while (clock_ms() < until) {
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
            fclose(f);
        text[n] = '\0';
        if (strstr(text, line))
            return;
        poll(NULL, 0, 20);
    }
    fail_msg("no line %s in %s:\n%s", line, path, text);
}

/* Services are started in any order. The file is first written when the server has refused. */
static void
they_wait_for_their_database(void **state)
{
    char folder[] = "/tmp/metrics.XXXXXX", path[100];
    struct proc p, record;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/queuetop.prom", folder);
    char *late = strdup(pg_dsn("metrics_late"));
    proc_queuetop(&p, NULL, "-d \"%s\" metrics --file %s --interval 1s", late, path);
    proc_queuetop(&record, NULL, "-d \"%s\" record %s/recording", late, folder);
    file_says(path, "queuetop_up{source=\"metrics_late\"} 0\n");
    proc_want(&p, "does not exist");
    proc_want(&record, "does not exist");
    assert_string_equal(pg_newdb("metrics_late"), late);
    proc_check(0, NULL, NULL, "-d \"%s\" install", late);
    file_says(path, "queuetop_up{source=\"metrics_late\"} 1\n");
    pg_wait(conn,
            "select count(*) from pg_stat_activity where datname = 'metrics_late' and "
            "application_name = 'queuetop'",
            "2", PROC_WAIT_MS);
    proc_ends(&p);
    proc_done(&record);
    unlink(path);
    snprintf(path, sizeof path, "%s/recording", folder);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    free(late);
}

/* --- by HTTP ---------------------------------------------------------------------------------- */

static int port;

static void
listen_with(struct proc *p, const char *options)
{
    proc_queuetop(p, NULL, "-d \"%s\" metrics --listen 0 %s", dsn, options);
    proc_want(p, "listening on port ");
    char *said = proc_errors(p);
    port = (int)strtol(strstr(said, "port ") + 5, NULL, 10);
    free(said);
}

static int
join(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* The whole answer; the caller frees. */
static char *
ask(const char *request)
{
    int fd = join();
    struct buf b = {0};
    char part[4096];
    ssize_t n;
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    while (poll(&ready, 1, PROC_WAIT_MS) == 1 && (n = read(fd, part, sizeof part)) > 0)
        buf_add(&b, part, (size_t)n);
    close(fd);
    buf_str(&b, "");
    return b.data ? b.data : strdup("");
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

static void
wants(const char *request, const char *text)
{
    char *said = ask(request);

    if (!strstr(said, text))
        fail_msg("%s: no %s in %s", request, text, said);
    free(said);
}

/* Waits until the page has that line; false = it did not come in time. */
static bool
came(const char *line, int timeout_ms)
{
    int64_t until = clock_ms() + timeout_ms;

    for (;;) {
        char *said = ask(GET("/metrics") "\r\n");
        bool there = strstr(said, line) != NULL;
        free(said);
        if (there || clock_ms() > until)
            return there;
        poll(NULL, 0, 20);
    }
}

static void
comes(const char *line)
{
    if (!came(line, 60000))
        wants(GET("/metrics") "\r\n", line);
}

static void
answers(void **state)
{
    struct proc p;

    (void)state;
    listen_with(&p, "");
    comes("queuetop_up{source=\"metrics\"} 1\n");
    wants(GET("/metrics") "\r\n", "Content-Type: text/plain; version=0.0.4");
    wants(GET("/metrics") "\r\n", "# TYPE queuetop_queue_pushed_total counter");
    char *said = ask(GET("/metrics") "Accept: application/openmetrics-text;version=1.0.0\r\n\r\n");
    assert_non_null(strstr(said, "Content-Type: application/openmetrics-text; version=1.0.0"));
    check_format(strstr(said, "\r\n\r\n") + 4);
    free(said);
    wants(GET("/") "\r\n", "200 OK");
    wants(GET("/other") "\r\n", "404 Not Found");
    wants("POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
          "405 Method Not Allowed");
    said = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(said, "200 OK"));
    assert_null(strstr(said, "queuetop_up"));
    free(said);
    proc_ends(&p);
    proc_done(&p);
}

/* Between two refreshes the program asks the server nothing, however many scrapes come. The health
 * of a busy server may not come in its time of 1 s, and then not again for hours. */
static void
a_scrape_costs_nothing(void **state)
{
    struct proc p;

    (void)state;
    listen_with(&p, "--interval 1h");
    for (int i = 0; i < 9 && !came("queuetop_database_connections{", 10000); i++) {
        proc_ends(&p);
        proc_done(&p);
        listen_with(&p, "--interval 1h");
    }
    comes("queuetop_database_connections{");
    comes("queuetop_workers_alive{");
    comes("queuetop_nodes{");
    const char *asked =
        "select max(query_start)::text from pg_stat_activity where application_name "
        "like 'queuetop%' and pid <> pg_backend_pid()";
    char *before = strdup(pg_value(conn, "%s", asked));
    assert_true(*before);
    for (int i = 0; i < 100; i++)
        wants(GET("/metrics") "\r\n", "queuetop_up");
    assert_string_equal(pg_value(conn, "%s", asked), before);
    free(before);
    proc_ends(&p);
    proc_done(&p);
}

/* A client that sends nothing, half a request or a large request delays no other client. */
static void
strangers_at_the_port(void **state)
{
    enum { IDLE = 20 };
    struct proc p;
    int idle[IDLE];
    char *large = xcalloc(1, 200000);

    (void)state;
    listen_with(&p, "");
    for (int i = 0; i < IDLE; i++) {
        idle[i] = join();
        if (i % 2)
            assert_int_equal(write(idle[i], "GET /met", 8), 8);
    }
    wants(GET("/metrics") "\r\n", "200 OK");
    int length = snprintf(large, 200000, "GET /metrics HTTP/1.1\r\nHost: ");
    memset(large + length, 'a', 100000);
    int fd = join();
    assert_true(send(fd, large, strlen(large), MSG_NOSIGNAL) > 0);
    close(fd);
    wants("\x16\x03\x01 nonsense\r\n\r\n", "");
    wants(GET("/metrics") "\r\n", "200 OK");
    for (int i = 0; i < IDLE; i++)
        close(idle[i]);
    free(large);
    proc_ends(&p);
    proc_done(&p);
}

/* Clients that send a byte now and then are never silent. Many more of them than there are
 * connections, all at once, delay no other client. */
static void
strangers_who_never_ask(void **state)
{
    enum { SLOW = 2000 };
    struct rlimit files;
    struct proc p;
    int slow[SLOW];
    char said[100] = "";

    (void)state;
    listen_with(&p, "");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    for (int i = 0; i < SLOW; i++)
        slow[i] = join();
    struct pollfd asked = {.fd = join(), .events = POLLIN};
    const char *request = GET("/metrics") "\r\n";
    assert_int_equal(write(asked.fd, request, strlen(request)), strlen(request));
    for (int left = 120; left > 0 && poll(&asked, 1, 500) == 0; left--)
        for (int i = 0; i < SLOW; i++)
            send(slow[i], "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    assert_int_equal(poll(&asked, 1, 0), 1);
    assert_true(read(asked.fd, said, sizeof said - 1) > 0);
    assert_non_null(strstr(said, "200 OK"));
    close(asked.fd);
    for (int i = 0; i < SLOW; i++)
        close(slow[i]);
    proc_ends(&p);
    proc_done(&p);
}

static void
who_may_ask(void **state)
{
    char folder[] = "/tmp/metrics.XXXXXX", path[100];
    struct proc p;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/auth", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("prom:open sesame\n", f);
    fclose(f);
    chmod(path, 0644);
    proc_check(3, NULL, "others may read it", "-d \"%s\" metrics --listen 0 --auth %s", dsn, path);
    chmod(path, 0600);
    char *options = xasprintf("--auth %s", path);
    listen_with(&p, options);
    wants(GET("/metrics") "\r\n", "401 Unauthorized");
    wants(GET("/metrics") "\r\n", "WWW-Authenticate: Basic");
    wants(GET("/metrics") "Authorization: Basic cHJvbTpvcGVuIHNlc2FtZQ==\r\n\r\n", "200 OK");
    wants(GET("/metrics") "Authorization: Basic cHJvbTpvcGVuIHNlc2FtZg==\r\n\r\n", "401 ");
    proc_ends(&p);
    proc_done(&p);
    free(options);
    unlink(path);
    rmdir(folder);
}

static void
shell(const char *command)
{
    struct proc p;

    proc_start(&p, (const char *const[]){"sh", "-c", command, NULL}, NULL);
    assert_int_equal(proc_wait(&p), 0);
    proc_done(&p);
}

static void
by_tls(void **state)
{
    char folder[] = "/tmp/metrics.XXXXXX";
    struct proc p;

    (void)state;
    assert_non_null(mkdtemp(folder));
    char *make =
             xasprintf("cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert "
                       "-days 2 -subj /CN=localhost >log 2>&1 && chmod 600 key",
                       folder),
         *options = xasprintf("--cert %s/cert --key %s/key", folder, folder),
         *away = xasprintf("rm -r %s", folder);
    shell(make);
    listen_with(&p, options);
    char *client =
        xasprintf("printf 'GET /metrics HTTP/1.1\\r\\nHost: x\\r\\nConnection: "
                  "close\\r\\n\\r\\n' | openssl s_client -quiet -verify_quiet -CAfile "
                  "%s/cert -verify_return_error -connect 127.0.0.1:%d 2>&1 | grep -q '200 "
                  "OK'",
                  folder, port);
    shell(client);
    proc_ends(&p);
    proc_done(&p);
    proc_check(2, NULL, "--cert and --key go together",
               "-d \"%s\" metrics --listen 0 --cert /etc/hostname", dsn);
    proc_check(2, NULL, "the number of an address, not localhost",
               "-d \"%s\" metrics --listen localhost:0", dsn);
    shell(away);
    free(make);
    free(options);
    free(client);
    free(away);
}

/* A system that has no leases has no number of expired ones: 0 would say that all is well. */
static void
what_is_unknown_is_left_out(void **state)
{
    char *out;

    (void)state;
    PQfinish(pg_fixture("unknown", "tasks_table"));
    assert_int_equal(proc_run(NULL, &out, NULL, "-d \"%s\" metrics", pg_dsn("unknown")), 0);
    assert_non_null(strstr(out, "queuetop_up{source=\"unknown\"} 1\n"));
    assert_null(strstr(out, "queuetop_leases_expired{"));
    free(out);
    PQfinish(pg_fixture("known", "jobs_table"));
    assert_int_equal(proc_run(NULL, &out, NULL, "-d \"%s\" metrics", pg_dsn("known")), 0);
    has(out, "queuetop_leases_expired{source=\"known\"} 1");
    free(out);
}

/* While the server is away, queuetop_up is 0; it becomes 1 again when the server is back. */
static void
the_server_goes_and_comes(void **state)
{
    struct proc p;

    (void)state;
    listen_with(&p, "--interval 1s");
    comes("queuetop_up{source=\"metrics\"} 1\n");
    PQfinish(conn);
    pg_down("immediate");
    comes("queuetop_up{source=\"metrics\"} 0\n");
    pg_up();
    comes("queuetop_up{source=\"metrics\"} 1\n");
    proc_ends(&p);
    proc_done(&p);
    conn = pg_connect(dsn);
    pg_run(conn, "set search_path = queues");
}

/* Every name in the rules, the dashboard and the scaler is one that is printed. */
static void
the_examples_know_the_names(void **state)
{
    static const char *const files[] = {"alerts.yml", "alerts_test.yml", "dashboard.json",
                                        "keda.yaml"};
    static char content[100000];
    char *text = print(""), path[4096];
    int names = 0;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/docs/monitoring/%s", getenv("SRCDIR"), files[i]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        content[fread(content, 1, sizeof content - 1, f)] = '\0';
        fclose(f);
        for (const char *s = content; (s = strstr(s, "queuetop_")); names++) {
            size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyz_");
            char *type = xasprintf("# TYPE %.*s ", (int)len, s),
                 *counter = xasprintf("# TYPE %.*s counter", (int)len - 6, s);
            bool total = len > 6 && !strncmp(s + len - 6, "_total", 6);
            if (!strstr(text, total ? counter : type))
                fail_msg("%s: there is no %.*s", files[i], (int)len, s);
            free(type);
            free(counter);
            s += len;
        }
    }
    assert_true(names > 30);
    free(text);
}

/* An alert about a figure that the console judges, too, begins where the console sees it bad, or a
 * warning. */
static void
the_alerts_have_the_limits_of_the_conditions(void **state)
{
    static char content[100000];
    char *text = print(""), path[4096], *next;
    int compared = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/docs/monitoring/alerts.yml", getenv("SRCDIR"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    content[fread(content, 1, sizeof content - 1, f)] = '\0';
    fclose(f);
    for (char *rule = strstr(content, "- alert:"); rule; rule = next) {
        next = strstr(rule + 1, "- alert:");
        if (next)
            next[-1] = '\0';
        const char *above = strstr(rule, " > ");
        bool bad = strstr(rule, "severity: critical") != NULL;
        for (const struct condition *k = conditions; k < conditions + CONDITIONS; k++) {
            const char *metric = *k->metric ? strstr(rule, k->metric) : NULL;
            if (!metric || !above || metric > above || isnan(k->warn) + isnan(k->bad) == 2)
                continue;
            compared++;
            if (strtod(above + 3, NULL) != (bad ? k->bad : k->warn))
                fail_msg("%s: another limit than %s has: %.120s", path, k->name, rule);
        }
    }
    assert_int_equal(compared, 4);
    for (const struct condition *k = conditions; k < conditions + CONDITIONS; k++)
        if (!strstr(text, k->metric))
            fail_msg("%s: metrics does not print %s", k->name, k->metric);
    free(text);
}

static void
wrong_words(void **state)
{
    static const char *const wrong[] = {"--listen x",     "--listen 1:2:99999", "--listen :-1",
                                        "--listen 70000", "--auth /x",          "--cert /x",
                                        "--listen :",     "--queues 0",         "--interval 1ms"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *err;
        int code = proc_run(NULL, NULL, &err, "-d \"%s\" metrics %s", dsn, wrong[i]);
        if (code != 2)
            fail_msg("%s: %d: %s", wrong[i], code, err);
        free(err);
    }
    proc_check(5, NULL, "can't listen: ", "-d \"%s\" metrics --listen 192.0.2.1:9187", dsn);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_the_database_s),
        cmocka_unit_test(a_counter_never_falls),
        cmocka_unit_test(names_of_strangers),
        cmocka_unit_test(queues_are_bounded),
        cmocka_unit_test(many_sources),
        cmocka_unit_test(a_file_is_whole),
        cmocka_unit_test(they_wait_for_their_database),
        cmocka_unit_test(answers),
        cmocka_unit_test(a_scrape_costs_nothing),
        cmocka_unit_test(strangers_at_the_port),
        cmocka_unit_test(strangers_who_never_ask),
        cmocka_unit_test(who_may_ask),
        cmocka_unit_test(by_tls),
        cmocka_unit_test(what_is_unknown_is_left_out),
        cmocka_unit_test(the_server_goes_and_comes),
        cmocka_unit_test(the_examples_know_the_names),
        cmocka_unit_test(the_alerts_have_the_limits_of_the_conditions),
        cmocka_unit_test(wrong_words)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
