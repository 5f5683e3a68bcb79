/*
 * The verb `job ID`: prints everything about one job, for people or as one JSON object.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/cli_wait.h"
#include "ui/cli/verbs.h"
#include "ui/term/fmt.h"

struct job_words {
    int64_t wait_ms; /* 0 = no, CLI_NO_TIME = for ever */
    bool json;
};

#define D(f) offsetof(struct job_detail, f)
/* clang-format off */
static const struct column detail_columns[] = {
    {.name = "id", .title = "id", .kind = K_TEXT, .offset = D(job.id)},
    {.name = "queue", .title = "queue", .kind = K_TEXT, .offset = D(job.queue)},
    {.name = "kind", .title = "kind", .kind = K_TEXT, .offset = D(job.kind)},
    {.name = "state", .title = "state", .kind = K_TEXT, .offset = D(job.state)},
    {.name = "raw_state", .title = "there called", .kind = K_NAME, .offset = D(raw_state)},
    {.name = "priority", .title = "priority", .kind = K_INT, .offset = D(job.priority)},
    {.name = "tries", .title = "tries", .kind = K_INT, .offset = D(job.tries)},
    {.name = "max_tries", .title = "max tries", .kind = K_INT, .offset = D(job.max_tries)},
    {.name = "created", .title = "created", .kind = K_TIME, .offset = D(job.created_ms)},
    {.name = "run_after", .title = "run after", .kind = K_TIME, .offset = D(job.run_after_ms)},
    {.name = "started", .title = "started", .kind = K_TIME, .offset = D(job.started_ms)},
    {.name = "finished", .title = "finished", .kind = K_TIME, .offset = D(job.finished_ms)},
    {.name = "node", .title = "node", .kind = K_NAME, .offset = D(job.node)},
    {.name = "lease_until", .title = "lease until", .kind = K_TIME, .offset = D(job.lease_until_ms)},
    {.name = "unique_key", .title = "unique key", .kind = K_NAME, .offset = D(unique_key)},
    {.name = "origin_id", .title = "repeats", .kind = K_NAME, .offset = D(origin_id)},
    {.name = "cancel_asked", .title = "cancel asked", .kind = K_BOOL, .offset = D(cancel_asked)},
    {.name = "error", .title = "error", .kind = K_NAME, .offset = D(job.error)},
    {.name = "payload_type", .title = "payload type", .kind = K_NAME, .offset = D(payload_type)},
    {.name = "payload_bytes", .title = "payload size", .kind = K_BIG, .offset = D(payload_size)},
    {0},
};
/* clang-format on */

#define A(f) offsetof(struct attempt_row, f)
/* clang-format off */
static const struct column attempt_columns[] = {
    {.name = "number", .kind = K_INT, .offset = A(number)},
    {.name = "outcome", .kind = K_TEXT, .offset = A(outcome)},
    {.name = "node", .kind = K_NAME, .offset = A(node)},
    {.name = "started", .kind = K_TIME, .offset = A(started_ms)},
    {.name = "ended", .kind = K_TIME, .offset = A(ended_ms)},
    {.name = "error", .kind = K_NAME, .offset = A(error)},
    {.name = "trace", .kind = K_NAME, .offset = A(trace)},
    {0},
};
/* clang-format on */

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

/* Adds bytes, which the adapter gives as hex. */
static size_t
from_hex(const char *hex, unsigned char *out)
{
    size_t n = strlen(hex) / 2;

    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    return n;
}

static void
add_base64(struct buf *b, const unsigned char *p, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                     (left > 2 ? (unsigned)p[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                        left > 2 ? digits[v & 63] : '='};
        buf_add(b, four, 4);
    }
}

static bool
is_format(const struct job_detail *d, const char *format)
{
    return !strcmp(d->payload_format, format);
}

static void
add_payload(struct buf *b, const struct job_detail *d)
{
    size_t len = strlen(d->payload);
    bool cut =
        d->payload_size != FIELD_NULL && is_format(d, "json") && (int64_t)len < d->payload_size;

    if (is_format(d, "json") && cut) {
        buf_str(b, ", \"payload\": null, \"payload_start\": ");
        json_string(b, d->payload, len);
    } else if (is_format(d, "json")) {
        buf_str(b, ", \"payload\": ");
        for (const char *s = d->payload; *s; s++) /* line breaks can only be between values */
            buf_add(b, *s == '\n' || *s == '\r' ? " " : s, 1);
    } else if (is_format(d, "text")) {
        buf_str(b, ", \"body_base64\": \"");
        add_base64(b, (const unsigned char *)d->payload, len);
        buf_str(b, "\"");
    } else if (is_format(d, "bytes")) {
        unsigned char *bytes = xmalloc(len / 2 + 1);
        size_t n = from_hex(d->payload, bytes);
        buf_str(b, ", \"body_base64\": \"");
        add_base64(b, bytes, n);
        buf_printf(b, "\", \"body_is_whole\": %s",
                   (int64_t)n == d->payload_size ? "true" : "false");
        free(bytes);
    } else {
        buf_str(b, ", \"payload\": null");
    }
}

static void
print_json(struct cli_table *o, const struct job_detail *d, const struct rowset *attempts)
{
    const struct attempt_row *rows = attempts->rows;
    struct cli_table inner;
    struct buf b = {0};

    cli_table_begin(&inner, OUT_JSON, NULL, attempt_columns);
    inner.now_ms = o->now_ms;
    buf_str(&b, "{");
    cli_table_members(o, d, &b);
    add_payload(&b, d);
    if (*d->result) {
        buf_str(&b, ", \"result\": ");
        json_string(&b, d->result, strlen(d->result));
    }
    buf_str(&b, ", \"attempts\": [");
    for (int i = 0; i < attempts->n; i++) {
        buf_str(&b, i ? ", {" : "{");
        cli_table_members(&inner, &rows[i], &b);
        buf_str(&b, "}");
    }
    buf_str(&b, "]}");
    cli_table_json(b.data, b.len);
    buf_free(&b);
}

/* Prints a text of many lines; each line is sanitised by itself. */
static void
print_lines(const char *s)
{
    for (const char *end; *s; s = end + (*end == '\n')) {
        struct buf line = {0};
        end = s + strcspn(s, "\n");
        buf_str(&line, "  ");
        buf_add(&line, s, (size_t)(end - s));
        cli_table_line(line.data, line.len);
        buf_free(&line);
    }
}

static void
print_payload(const struct job_detail *d)
{
    struct buf b = {0};

    if (is_format(d, "json")) {
        json_pretty(&b, d->payload, strlen(d->payload));
    } else if (is_format(d, "bytes")) {
        unsigned char *bytes = xmalloc(strlen(d->payload) / 2 + 1);
        hex_dump(&b, bytes, from_hex(d->payload, bytes));
        free(bytes);
    } else if (is_format(d, "gone")) {
        buf_str(&b, "not kept");
    } else {
        buf_str(&b, d->payload);
    }
    if (b.len > 0) {
        puts("payload:");
        print_lines(b.data);
    }
    buf_free(&b);
    if (*d->result) {
        puts("result:");
        print_lines(d->result);
    }
}

static void
print_attempts(const struct rowset *attempts)
{
    const struct attempt_row *rows = attempts->rows;

    if (attempts->n > 0)
        puts("attempts:");
    for (int i = 0; i < attempts->n; i++) {
        struct buf line = {0};
        bool timed = rows[i].started_ms != FIELD_NULL && rows[i].ended_ms != FIELD_NULL;
        buf_printf(&line, "  %d  %s  %s  %s  %s  %s", rows[i].number,
                   fmt_date_time(rows[i].ended_ms, false).s,
                   fmt_duration(timed ? rows[i].ended_ms - rows[i].started_ms : FIELD_NULL).s,
                   rows[i].node, rows[i].outcome, rows[i].error);
        cli_table_line(line.data, line.len);
        buf_free(&line);
        print_lines(rows[i].trace);
    }
}

/* Prints a job. False: *e is the error. *found: whether the job exists. */
static bool
show_job(struct cli_queue *q, const char *id, bool json, bool *found, struct err *e)
{
    static const enum section_id sections[] = {SEC_JOB, SEC_ATTEMPTS};
    struct params p = {0};
    struct rowset rows[2] = {{0}};
    struct cli_table out;

    params_set_list(&p, PARAM_IDS, &id, 1);
    bool ok = cli_ask(q, sections, 2, &p, rows, e);
    *found = ok && rows[0].n > 0;
    if (*found) {
        cli_table_begin(&out, json ? OUT_JSON : OUT_TABLE, q->source, detail_columns);
        out.now_ms = q->now_ms;
        if (json) {
            print_json(&out, rows[0].rows, &rows[1]);
        } else {
            cli_table_sideways(&out, rows[0].rows);
            print_payload(rows[0].rows);
            print_attempts(&rows[1]);
        }
    }
    rowset_free(&rows[0]);
    rowset_free(&rows[1]);
    params_done(&p);
    return ok;
}

static int
run_job(struct cli *c, const void *options)
{
    const struct job_words *w = options;
    struct cli_queue q;
    struct err e = {0};
    bool found = false;
    int waited = CLI_DONE;

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    const char *id = cli_full_id(&q, SEC_JOBS, c->words[0], &e);
    bool ok = id && (!w->wait_ms || cli_wait(&q, id, NULL, w->wait_ms, &waited, &e));
    if (ok && waited == CLI_UNKNOWN)
        found = true; /* the job existed at the beginning */
    else if (ok && waited != CLI_NOTHING)
        ok = show_job(&q, id, w->json, &found, &e);
    if (q.adapter)
        cli_close(&q);
    if (!ok) {
        int code = cli_fail(c, &e);
        return waited == CLI_TIME_OVER ? waited : code;
    }
    if (!found)
        cli_say(c, "there is no job %s", c->words[0]);
    int code = cli_flush_look(c);
    return code != CLI_DONE ? code : found ? waited : CLI_NOTHING;
}

#define F(f) offsetof(struct job_words, f)
/* clang-format off */
static const struct cli_option job_options[] = {
    {"wait", 'w', "[T]", CLI_MAYBE, F(wait_ms), "wait for its end, T at most", 1, INT64_MAX},
    {"json", 0, NULL, CLI_FLAG, F(json), "as one JSON object", 0, 0}, {0}};

const struct cli_verb verbs_job[] = {
    {.name = "job", .examples = {"job 0198c5e7", "job 0198c5e7 --wait 10m --json"},
     .words = "ID", .help = "Show one job: payload, state, attempts with their errors",
     .min_words = 1, .max_words = 1, .options = job_options, .size = sizeof(struct job_words),
     .run = run_job,
     .more = "--wait shows the job when it has ended and exits with 0 (completed), 7 (failed, cancelled), 8 (the time\n"
             "is over) or 10 (it is gone, and its queue keeps no finished jobs, so how it ended is not known:\n"
             "history none; other systems that delete completed jobs, always or if the application wants it:\n"
             "Graphile Worker, Delayed Job, Procrastinate, PGMQ, Que, GoodJob, Solid Queue). It reads this one job\n"
             "again and again, with pauses from 50 ms to 2 s, and goes on after a lost connection."},
    {0},
};
/* clang-format on */
