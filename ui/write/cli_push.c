/*
 * `queuetop push`: pushes one job from an argument, a file or standard input, or one job for each
 * line. The loop reads the input, so that a silent pipe does not delay the jobs that were read. One
 * push is under way at a time; lines that are read meanwhile go with the next one. An id is printed
 * only when the server has the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_wait.h"
#include "ui/cli/verbs.h"
#include "ui/write/cli_import.h"

enum { BATCH = 500, CHUNK = 65536 };
static const size_t batch_bytes = 4 << 20;    /* about the size of one statement */
static const size_t ahead_bytes = 16 << 20;   /* read during a push; then reading waits */
static const size_t input_bytes = 256u << 20; /* the largest payload of one job */

struct push_options {
    const char *kind, *payload, *file, *type, *at, *unique, *concurrency, *expires_at, *id;
    int priority, max_tries;
    int64_t delay_ms, expires_in_ms, run_timeout_ms, lease_timeout_ms;
    int64_t wait_ms; /* 0 = no, CLI_NO_TIME = for ever */
    const char *csv, *json, *rejects, *resume;
    struct cli_list columns;
    int64_t from_line;
    bool lines;
};

struct push {
    struct cli *cli;
    const struct push_options *o;
    const char *queue_name;
    struct queue *queue;
    int fd, watch;
    bool at_end, is_sending, is_done;
    bool one_by_one; /* a batch was rejected: find the bad line */
    struct buf in;
    size_t used;        /* bytes of `in` in the running push or sent earlier */
    int64_t line;       /* lines read into jobs so far */
    int64_t first_line; /* the first line of the running push */
    int64_t pushed;
    int lines[BATCH]; /* line of each job of the running push, counted from first_line */
    char id[QUEUE_ID_LEN + 1];
    int code;
    bool lacks_queue; /* the server says that there is none */
};

static void
stop(struct push *p, int code)
{
    p->code = code;
    p->is_done = true;
}

static void
say_pushed(const struct push *p)
{
    cli_say(p->cli, "%" PRId64 " job%s pushed", p->pushed, p->pushed == 1 ? " was" : "s were");
}

/* The answer to a push was lost, so the server was asked whether the job is there. Of a batch
 * either all jobs are there or none. */
static void
on_there(void *ctx, const struct err *e, bool is_there)
{
    struct push *p = ctx;

    if (e->kind != ERR_NONE)
        cli_say(p->cli, "perhaps pushed: the server can't be asked (%s)", e->text);
    else if (is_there)
        cli_say(p->cli, "asked by id: pushed");
    else
        cli_say(p->cli, "asked by id: not pushed");
    if (!p->o->lines && e->kind == ERR_NONE && is_there) {
        puts(p->id);
        stop(p, cli_flush(p->cli));
        return;
    }
    if (!p->o->lines)
        cli_say(p->cli, "to push it once, say --id %s", p->id);
    else
        say_pushed(p);
    stop(p, p->pushed > 0 || (p->o->lines && is_there) ? CLI_PART : p->code);
}

/* If the server can't read a value that the user has typed, the error names the option. The server
 * reads only times and JSON; the other values are text. */
static void
blame_input(const struct push_options *o, struct err *e)
{
    bool is_value = !strncmp(e->sqlstate, "22", 2) || !strcmp(e->sqlstate, "23514");
    bool is_time = !strncmp(e->sqlstate, "22007", 5) || !strncmp(e->sqlstate, "22008", 5);

    if (!is_value)
        return;
    if (is_time && o->at && o->expires_at)
        fail_in(e, "--at or --expires-at");
    else if (is_time)
        fail_in(e, "%s", o->at ? "--at" : "--expires-at");
    else if (!strcmp(e->sqlstate, "22P02") && !o->type)
        fail_in(e, "the payload is not JSON (--type takes any other)");
    e->kind = ERR_USAGE;
    e->sqlstate[0] = 0;
}

static void
stop_on(struct push *p, const struct err *e)
{
    char where[64] = "";

    if (p->first_line < p->line)
        snprintf(where, sizeof where, "lines %" PRId64 " to %" PRId64, p->first_line, p->line);
    else
        snprintf(where, sizeof where, "line %" PRId64, p->line);
    struct err told = *e;
    blame_input(p->o, &told);
    if (p->o->lines)
        fail_in(&told, "%s", where);
    p->code = cli_fail(p->cli, &told);
    p->lacks_queue = cli_lacks_queue(&told);
    if (queue_in_doubt(p->queue)) {
        queue_ask_doubtful(p->queue, on_there, p);
        return;
    }
    if (p->o->lines)
        say_pushed(p);
    stop(p, p->pushed > 0 ? CLI_PART : p->code);
}

static void
describe(const struct push *p, struct queue_push *job)
{
    const struct push_options *o = p->o;

    *job = (struct queue_push){.queue = p->queue_name,
                               .kind = o->kind,
                               .type = o->type,
                               .unique_key = o->unique,
                               .concurrency_key = o->concurrency,
                               .run_after = o->at,
                               .expires_at = o->expires_at,
                               .expires_in_ms = o->expires_in_ms,
                               .delay_ms = o->delay_ms,
                               .run_timeout_ms = o->run_timeout_ms,
                               .lease_timeout_ms = o->lease_timeout_ms,
                               .priority = o->priority,
                               .max_tries = o->max_tries,
                               .check_id = o->id != NULL};
}

/* Watches the input, unless enough lines wait to be sent. If no push is under way, only more input
 * can make a job. */
static void
watch_input(const struct push *p)
{
    bool is_ahead = p->is_sending && p->in.len - p->used >= ahead_bytes;

    if (p->fd >= 0)
        loop_rewatch(p->cli->loop, p->watch, is_ahead || p->at_end ? -1 : p->fd, POLLIN);
}

static void send_more(struct push *p);

static void
on_push(void *ctx, const struct err *e, const struct queue_pushed *jobs, int n)
{
    struct push *p = ctx;

    p->is_sending = e->kind != ERR_NONE && queue_in_doubt(p->queue);
    if (p->o->lines && !p->one_by_one && !strncmp(e->sqlstate, "22", 2)) {
        p->one_by_one = true; /* nothing of the batch was pushed */
        p->used = 0;
        p->line = p->first_line - 1;
        send_more(p);
        return;
    }
    if (e->kind != ERR_NONE) {
        stop_on(p, e);
        return;
    }
    for (int i = 0; i < n; i++) {
        puts(jobs[i].id);
        snprintf(p->id, sizeof p->id, "%s", jobs[i].id);
        if (jobs[i].is_new)
            p->pushed++;
        else if (p->o->lines)
            cli_say(p->cli, "line %" PRId64 ": there is such a job already: %s",
                    p->first_line + p->lines[i], jobs[i].id);
        else
            cli_say(p->cli, "there is such a job already: %s", jobs[i].id);
    }
    int flushed = cli_flush(p->cli);
    if (flushed != CLI_DONE) {
        stop(p, flushed);
        return;
    }
    if (p->used > 0)
        memmove(p->in.data, p->in.data + p->used, p->in.len - p->used);
    p->in.len -= p->used;
    p->used = 0;
    send_more(p);
    watch_input(p);
}

/* Sends one job; its payload is `len` bytes, NULL = none. */
static void
send_one(struct push *p, const char *payload, size_t len)
{
    struct queue_push job;
    struct err e = {0};

    p->line = 1;
    describe(p, &job);
    job.payload = payload;
    job.payload_len = len;
    snprintf(job.id, sizeof job.id, "%s", p->id);
    if (!queue_push_check(&job, &e)) {
        stop(p, cli_usage(p->cli, "%s", e.text));
        return;
    }
    p->is_sending = true;
    queue_push(p->queue, &job, 1, on_push, p);
}

/* The next whole line from `at`: its length without the line break; false if there is none yet. */
static bool
next_line(const struct push *p, size_t at, size_t *len, size_t *next)
{
    const char *from = p->in.data + at;
    const char *end = at < p->in.len ? memchr(from, '\n', p->in.len - at) : NULL;

    if (!end && (!p->at_end || at >= p->in.len))
        return false;
    *len = end ? (size_t)(end - from) : p->in.len - at;
    *next = at + *len + (end != NULL);
    return true;
}

static bool
is_blank(const char *s, size_t len)
{
    while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t' || s[len - 1] == '\r'))
        len--;
    return len == 0;
}

/* Makes lines into jobs until the batch is full. False: a line is not valid. */
static bool
take_lines(struct push *p, struct queue_push *jobs, int *n, struct err *e)
{
    size_t len = 0, next = 0;
    int most = p->one_by_one ? 1 : BATCH;

    p->first_line = p->line + 1;
    for (*n = 0; *n < most && p->used < batch_bytes && next_line(p, p->used, &len, &next);) {
        const char *text = p->in.data + p->used;
        bool is_job = p->o->type || !is_blank(text, len);
        describe(p, &jobs[*n]);
        jobs[*n].payload = text;
        jobs[*n].payload_len = len;
        if (is_job && !queue_push_check(&jobs[*n], e)) {
            if (*n > 0)
                return true; /* push the lines before it first */
            return fail_in(e, "line %" PRId64, p->line + 1);
        }
        p->used = next;
        p->line++;
        if (*n == 0)
            p->first_line = p->line;
        p->lines[*n] = (int)(p->line - p->first_line);
        *n += is_job;
    }
    return true;
}

static void
send_lines(struct push *p)
{
    static const struct queue_push none;
    struct queue_push *jobs = xcalloc(BATCH, sizeof none);
    struct err e = {0};
    int n = 0;

    if (!take_lines(p, jobs, &n, &e)) {
        int code = cli_usage(p->cli, "%s", e.text);
        say_pushed(p);
        stop(p, p->pushed > 0 ? CLI_PART : code);
    } else if (n > 0) {
        p->is_sending = true;
        queue_push(p->queue, jobs, n, on_push, p);
    } else if (p->at_end && p->used >= p->in.len)
        stop(p, CLI_DONE);
    free(jobs);
}

static void
send_more(struct push *p)
{
    if (p->is_done || p->is_sending)
        return;
    if (p->o->lines)
        send_lines(p);
    else if (p->line > 0)
        stop(p, CLI_DONE);
    else if (p->at_end)
        send_one(p, p->fd >= 0 ? p->in.data ? p->in.data : "" : p->o->payload, p->in.len);
}

static void
on_input(void *ctx, short revents)
{
    struct push *p = ctx;
    char data[CHUNK];
    ssize_t n = read(p->fd, data, sizeof data);

    (void)revents;
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        cli_say(p->cli, "reading the payload: %s", strerror(errno));
        stop(p, CLI_SERVER);
        return;
    }
    p->at_end = n == 0;
    buf_add(&p->in, data, (size_t)n);
    if (p->at_end || memchr(data, '\n', (size_t)n))
        send_more(p);
    watch_input(p);
}

/* --- the verb --- */

static bool
check(const struct cli *c, const struct push_options *o, struct err *e)
{
    bool dash = c->nwords == 2;

    if (dash && strcmp(c->words[1], "-") != 0)
        return fail(e, ERR_USAGE,
                    "a payload is given by --payload, or - and standard input, not as '%s'",
                    c->words[1]);
    if ((o->payload != NULL) + (o->file != NULL) + dash > 1)
        return fail(e, ERR_USAGE, "the payload comes from one of --payload, --payload-file and -");
    if (o->lines && !dash && !o->file)
        return fail(e, ERR_USAGE, "--lines reads standard input: push %s - --lines", c->words[0]);
    if (o->lines && (o->id || o->unique))
        return fail(e, ERR_USAGE, "--lines makes many jobs: --id and --unique name one");
    if (o->csv && o->json)
        return fail(e, ERR_USAGE, "--csv and --json exclude each other");
    if ((o->csv || o->json) &&
        (dash || o->payload || o->file || o->lines || o->id || o->unique || o->wait_ms))
        return fail(e, ERR_USAGE,
                    "%s goes without -, --payload, --payload-file, --lines, --id, --unique and "
                    "--wait: the columns say that",
                    o->csv ? "--csv" : "--json");
    if (!o->csv && !o->json && (o->rejects || o->from_line || o->resume || o->columns.n))
        return fail(e, ERR_USAGE,
                    "--columns, --rejects, --from-line and --resume go with --csv and --json");
    if (o->resume && !*o->resume)
        return fail(e, ERR_USAGE, "--resume takes the name of a file that keeps the place");
    if (o->resume && o->from_line)
        return fail(e, ERR_USAGE, "--resume and --from-line exclude each other");
    if (o->lines && o->wait_ms)
        return fail(e, ERR_USAGE, "--lines makes many jobs: --wait waits for one");
    if (o->id && strlen(o->id) != QUEUE_ID_LEN)
        return fail(e, ERR_USAGE, "--id: '%s' is not a uuid", o->id);
    if (o->at && o->delay_ms)
        return fail(e, ERR_USAGE, "--at and --delay exclude each other");
    if (o->expires_at && o->expires_in_ms)
        return fail(e, ERR_USAGE, "--expires-at and --expires-in exclude each other");
    return true;
}

static bool
open_input(struct push *p, struct err *e)
{
    p->fd = -1;
    if (p->o->file && strcmp(p->o->file, "-") != 0) {
        p->fd = open(p->o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat file;
        if (p->fd < 0)
            return fail(e, ERR_USAGE, "%s: %s", p->o->file, strerror(errno));
        if (!p->o->lines && fstat(p->fd, &file) == 0 && S_ISREG(file.st_mode) &&
            (size_t)file.st_size > input_bytes) {
            close(p->fd);
            return fail(e, ERR_USAGE, "%s has %" PRIdMAX " bytes; %zu MiB is the most", p->o->file,
                        (intmax_t)file.st_size, input_bytes >> 20);
        }
    } else if (p->o->file || p->cli->nwords == 2)
        p->fd = STDIN_FILENO;
    p->at_end = p->fd < 0;
    if (p->fd >= 0)
        p->watch = loop_watch(p->cli->loop, p->fd, POLLIN, on_input, p);
    return true;
}

static void
stop_at_size(struct push *p)
{
    struct err e = {0};

    fail(&e, ERR_USAGE, "%zu MiB is the most that a payload may have", input_bytes >> 20);
    if (p->o->lines)
        fail_in(&e, "line %" PRId64, p->line + 1);
    int code = cli_usage(p->cli, "%s", e.text);
    if (p->o->lines)
        say_pushed(p);
    stop(p, p->pushed > 0 ? CLI_PART : code);
}

static void
run(struct push *p, struct err *e)
{
    if (p->at_end)
        send_one(p, p->o->payload, p->o->payload ? strlen(p->o->payload) : 0);
    while (!p->is_done) {
        if (!loop_turn(p->cli->loop, -1, e)) {
            stop(p, cli_fail(p->cli, e));
            return;
        }
        if (!p->is_sending && p->in.len > input_bytes)
            stop_at_size(p);
    }
}

static int
push_table_rows(struct cli *c, const struct push *p)
{
    struct import_words w = {.file = p->o->csv ? p->o->csv : p->o->json,
                             .is_json = p->o->json != NULL,
                             .rejects = p->o->rejects,
                             .names = p->o->columns,
                             .from_line = p->o->from_line,
                             .resume = p->o->resume};

    describe(p, &w.standard);
    return cli_import(c, &w);
}

static int
push_run(struct cli *c, const void *options)
{
    const struct push_options *o = options;
    struct push p = {.cli = c, .o = o, .queue_name = c->words[0]};
    struct err e = {0};

    if (!check(c, o, &e))
        return cli_usage(c, "%s", e.text);
    c->pushes = true;
    if (o->csv || o->json)
        return push_table_rows(c, &p);
    if (o->id)
        snprintf(p.id, sizeof p.id, "%s", o->id);
    else
        queue_make_id(p.id);
    if (o->wait_ms && !cli_wait_may(c, p.id, &e))
        return cli_fail(c, &e);
    if (!(p.queue = queue_new(cli_db(c, true), c->schema, &e)))
        return cli_fail(c, &e);
    if (!open_input(&p, &e)) {
        queue_free(p.queue);
        return cli_fail(c, &e);
    }
    run(&p, &e);
    if (p.lacks_queue)
        cli_say_likely(c);
    db_free(c->db);
    c->db = NULL;
    queue_free(p.queue);
    if (p.fd >= 0)
        loop_unwatch(c->loop, p.watch);
    if (p.fd > STDIN_FILENO)
        close(p.fd);
    buf_free(&p.in);
    return p.code == CLI_DONE && o->wait_ms ? cli_wait_outcome(c, p.id, p.queue_name, o->wait_ms)
                                            : p.code;
}

#define F(field) offsetof(struct push_options, field)
/* name, letter, value, kind, offset, help, min, max */
/* clang-format off */
static const struct cli_option push_table[] = {
    {"kind", 'k', "K", CLI_TEXT, F(kind), "what sort of job it is", 0, 0},
    {"payload", 0, "TEXT", CLI_TEXT, F(payload), "the payload (JSON, unless --type says else)", 0, 0},
    {"payload-file", 0, "F", CLI_TEXT, F(file), "the payload is the content of file F (256 MiB at most)", 0, 0},
    {"lines", 'l', NULL, CLI_FLAG, F(lines), "with -: one job a line of standard input", 0, 0},
    {"csv", 0, "FILE", CLI_TEXT, F(csv), "one job a row of FILE; the first line names the columns", 0, 0},
    {"json", 0, "FILE", CLI_TEXT, F(json), "one job a line of FILE: a JSON object with these columns as members", 0, 0},
    {"columns", 0, "NAMES", CLI_LIST, F(columns), "with --csv, --json: A=B,C=: what FILE calls A is the column B; C is passed over", 0, 0},
    {"rejects", 0, "FILE", CLI_TEXT, F(rejects), "with --csv, --json: bad rows go there with line and reason, the rest is pushed", 0, 0},
    {"from-line", 0, "N", CLI_BIG, F(from_line), "with --csv, --json: pass over the lines before N", 1, INT64_MAX},
    {"resume", 0, "FILE", CLI_TEXT, F(resume), "with --csv, --json: FILE keeps the place; after a crash the same command goes on there", 0, 0},
    {"type", 't', "MIME", CLI_TEXT, F(type), "the payload is bytes of that type, kept as they are", 0, 0},
    {"delay", 0, "T", CLI_TIME, F(delay_ms), "not before that time has passed (90s, 5m, 2h)", 0, 0},
    {"at", 0, "TIME", CLI_TEXT, F(at), "not before (2026-11-21 10:00+01; without zone: the server's)", 0, 0},
    {"priority", 0, "N", CLI_INT, F(priority), "0 (soonest) to 9, default 5", 0, 9},
    {"unique", 'u', "KEY", CLI_TEXT, F(unique), "one unfinished job a queue and key", 0, 0},
    {"concurrency-key", 0, "KEY", CLI_TEXT, F(concurrency), "at most --per-key (1) jobs of a queue with this key run at once", 0, 0},
    {"expires-at", 0, "TIME", CLI_TEXT, F(expires_at), "not started after that time: cancelled then", 0, 0},
    {"expires-in", 0, "T", CLI_TIME, F(expires_in_ms), "not started after that time has passed", 1, INT64_MAX},
    {"id", 0, "UUID", CLI_TEXT, F(id), "the job's id, any uuid: pushed again it is the same job", 0, 0},
    {"max-tries", 0, "N", CLI_INT, F(max_tries), "tries before it counts as failed", 1, 32767},
    {"run-timeout",0, "T", CLI_TIME, F(run_timeout_ms), "how long it may run", 1, INT64_MAX},
    {"lease-timeout", 0, "T", CLI_TIME, F(lease_timeout_ms), "how long its worker may be silent", 1, INT64_MAX},
    {"wait", 'w', "[T]", CLI_MAYBE, F(wait_ms), "wait for its end, T at most; print its state and its result or error", 1, INT64_MAX},
    {0}};
/* clang-format on */
#undef F

static const struct push_options push_defaults = {.priority = -1};

const struct cli_verb verbs_push[] = {
    {
     .name = "push",
     .examples = {"push mails -k welcome --payload '{\"to\": 7}'",
                     "push mails --csv users.csv --columns body=payload,name= --rejects bad.csv"},
     .words = "QUEUE [-]",
     .help = "Push a job and print its id; - reads the payload from standard input",
     .min_words = 1,
     .max_words = 2,
     .options = push_table,
     .size = sizeof(struct push_options),
     .defaults = &push_defaults,
     .run = push_run,
     .more =
            "A second push with the same --id, or the same --unique key while such a job is "
            "unfinished, makes no\nsecond job: it prints the id of the first and says so. In a "
            "statement of your own,\nINSERT INTO queues.queue (queue, payload) is a push too. "
            "--wait exits with 0 (completed), 7 (failed, cancelled),\n8 (the time is over), 10 "
            "(the job has ended without a failure, and its queue keeps no history),\nor 6 (the job "
            "is pushed, but how it ends could not be asked). The right to push is enough for "
            "it.\n\n--csv knows the columns queue, kind, payload, type, priority, run_after, "
            "expires_at, unique_key,\nconcurrency_key, id, max_tries, run_timeout and "
            "lease_timeout. For an empty cell the option holds. If it\nis stopped, it prints the "
            "line to go on from (--from-line). With --resume FILE the same command goes on\nthere, "
            "even after kill -9 or a power cut: FILE keeps the line, and from which id on the rows "
            "are\nnumbered, so no row is lost and none becomes two jobs. Between two runs, change "
            "only rows from that line\non. (After a kill, a changed row among the next 500 may "
            "become a second job beside the one that was\npushed before the change.) Once all rows "
            "are pushed, the same command pushes nothing: give each import a\nFILE of its own. "
            "(Where a queue keeps no history, a job of the last 500 rows that has ended by then "
            "is\nmade again.) FILE.lock keeps a second run out while one runs.\n"
            "--json has the same names in an object a line; the payload is a value,\nor a string "
            "if there is a type. A row has 16 MiB at most.\n\nPush a file of "
            "rejects like any other file, after you have mended its rows. With --json, a line that "
            "was\nno JSON object is in the member \"text\" of its reject (bytes that are not UTF-8 "
            "are read as Latin-1):\nmend that text, and put it in place of the whole object.", },
    {0},
};
