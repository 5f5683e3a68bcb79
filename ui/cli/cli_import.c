/*
 * Jobs from a table of comma separated values (RFC 4180). The header names the columns. Line
 * numbers are those of an editor: a row is called by the line that it begins in.
 *
 * An import that was stopped says from which line to go on (--from-line). Ids are not derived from
 * the rows: the same rows in tomorrow's file are other jobs. Where a run may be killed without a
 * word, a column `id` makes each row the same job in every run.
 */
#include "ui/cli/cli_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/alias.h"
#include "model/base/clock.h"
#include "model/base/mem.h"

enum { BATCH = 500, BATCH_BYTES = 4 << 20, CHUNK = 1 << 18, COLUMNS = 32 };

/* What a cell says of its job. */
enum cell_field {
    SAYS_NOTHING, /* line and reason: a file of rejects is read again as it is */
    SAYS_TEXT,
    SAYS_ID,
    SAYS_PAYLOAD,
    SAYS_NUMBER,
    SAYS_TIME
};
struct known_column {
    const char *name;
    enum cell_field field;
    size_t offset;
    int min, max;
};
#define Q(f) offsetof(struct queue_push, f)
static const struct known_column known[] = {
    {"queue",           SAYS_TEXT,    Q(queue),            0, 0    },
    {"kind",            SAYS_TEXT,    Q(kind),             0, 0    },
    {"payload",         SAYS_PAYLOAD, 0,                   0, 0    },
    {"type",            SAYS_TEXT,    Q(type),             0, 0    },
    {"priority",        SAYS_NUMBER,  Q(priority),         0, 9    },
    {"run_after",       SAYS_TEXT,    Q(run_after),        0, 0    },
    {"expires_at",      SAYS_TEXT,    Q(expires_at),       0, 0    },
    {"unique_key",      SAYS_TEXT,    Q(unique_key),       0, 0    },
    {"concurrency_key", SAYS_TEXT,    Q(concurrency_key),  0, 0    },
    {"id",              SAYS_ID,      0,                   0, 0    },
    {"max_tries",       SAYS_NUMBER,  Q(max_tries),        1, 32767},
    {"run_timeout",     SAYS_TIME,    Q(run_timeout_ms),   0, 0    },
    {"lease_timeout",   SAYS_TIME,    Q(lease_timeout_ms), 0, 0    },
    {"line",            SAYS_NOTHING, 0,                   0, 0    },
    {"reason",          SAYS_NOTHING, 0,                   0, 0    },
};
enum { KNOWN = sizeof known / sizeof *known };

struct row { /* where it stands in the input */
    const char *text;
    size_t len;
    int64_t line;
};

struct import {
    struct cli *c;
    const struct import_words *w;
    struct queue *queue;
    int fd, rejects;
    char chunk[CHUNK];
    struct buf in;
    size_t took;  /* bytes of the last batch */
    size_t used;  /* bytes of `in` that are in rows */
    int64_t line; /* of the byte after them */
    bool at_end, is_ready, is_over;
    const struct known_column *columns[COLUMNS];
    int ncolumns;
    struct buf header;
    struct arena *mem; /* of the batch */
    struct queue_push jobs[BATCH];
    struct row rows[BATCH];
    int n;
    int64_t pushed, rejected, next_line; /* next_line: nothing from there on was pushed */
    bool has_answer;
    struct err answer;
    int code;
};

/* --- reading ---------------------------------------------------------------------------------- */

static void
on_readable(void *ctx, short revents)
{
    struct import *i = ctx;

    (void)revents;
    i->is_ready = true;
}

static void
on_signal(void *ctx, int signo)
{
    struct import *i = ctx;

    (void)signo;
    i->is_over = true;
}

static bool
read_more(struct import *i, struct err *e)
{
    int watch = loop_watch(i->c->loop, i->fd, POLLIN, on_readable, i);
    bool ok = true;

    for (i->is_ready = false; ok && !i->is_ready && !i->is_over;)
        ok = loop_turn(i->c->loop, -1, e);
    loop_unwatch(i->c->loop, watch);
    if (!ok || i->is_over)
        return ok;
    ssize_t n = read(i->fd, i->chunk, CHUNK);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return fail(e, ERR_SYS, "%s: %s", i->w->file, strerror(errno));
    i->at_end = n == 0;
    if (n > 0)
        buf_add(&i->in, i->chunk, (size_t)n);
    return true;
}

/* The next whole row behind `used`; false = there is none yet. */
static bool
next_row(struct import *i, struct row *row)
{
    bool quoted = false;
    size_t at = i->used;
    int64_t lines = 0;

    while (at < i->in.len && (quoted || i->in.data[at] != '\n')) {
        quoted ^= i->in.data[at] == '"';
        lines += i->in.data[at] == '\n';
        at++;
    }
    if (at == i->in.len && (!i->at_end || at == i->used))
        return false;
    *row = (struct row){i->in.data + i->used, at - i->used, i->line};
    if (row->len && row->text[row->len - 1] == '\r')
        row->len--;
    i->line += lines + 1;
    i->used = at + (at < i->in.len);
    return true;
}

/* The next cell of a row; *at is behind it and its comma, *room behind its text, which has as many
 * bytes as the row at most. False: quotes that do not close. */
static bool
next_cell(const struct row *row, size_t *at, char **room, char **cell, size_t *len, struct err *e)
{
    size_t from = *at, n = 0;
    bool quoted = from < row->len && row->text[from] == '"', closed = !quoted;
    char *text = *room;

    for (from += quoted; from < row->len; from++) {
        char c = row->text[from];
        bool doubled = quoted && c == '"' && from + 1 < row->len && row->text[from + 1] == '"';
        if (quoted && c == '"' && !doubled) {
            closed = true;
            from++;
            break;
        }
        if (!quoted && c == ',')
            break;
        from += doubled;
        text[n++] = c;
    }
    if (!closed || (from < row->len && row->text[from] != ','))
        return fail(e, ERR_USAGE, "a \" that does not close, or text behind the closing one");
    text[n] = 0;
    *cell = text;
    *len = n;
    *room = text + n + 1;
    *at = from + 1;
    return true;
}

/* --- the header ------------------------------------------------------------------------------- */

static bool
no_such_column(const char *name, struct err *e)
{
    const char *names[KNOWN + 1];
    char all[300] = "";

    for (int k = 0; k < KNOWN; k++) {
        size_t len = strlen(all);
        names[k] = known[k].name;
        snprintf(all + len, sizeof all - len, "%s%s", k ? ", " : "", names[k]);
    }
    names[KNOWN] = NULL;
    const char *meant = alias_closest(name, names);
    if (meant)
        return fail(e, ERR_USAGE, "line 1: there is no column '%.40s', did you mean %s?", name,
                    meant);
    return fail(e, ERR_USAGE, "line 1: there is no column '%.40s'; there are %s", name, all);
}

static bool
add_column(struct import *i, const char *name, struct err *e)
{
    const struct known_column *found = NULL;

    for (int k = 0; k < KNOWN; k++)
        if (!strcmp(known[k].name, name))
            found = &known[k];
    if (!found)
        return no_such_column(name, e);
    if (i->ncolumns == COLUMNS)
        return fail(e, ERR_USAGE, "line 1: more than %d columns", COLUMNS);
    for (int k = 0; k < i->ncolumns; k++)
        if (i->columns[k] == found)
            return fail(e, ERR_USAGE, "line 1: column %s stands there twice", name);
    i->columns[i->ncolumns++] = found;
    return true;
}

static bool
read_header(struct import *i, struct err *e)
{
    struct row row;
    bool ok = true;

    while (!next_row(i, &row)) {
        if (i->at_end || i->in.len > IMPORT_RECORD)
            return fail(e, ERR_USAGE, "%s has no header", i->w->file);
        if (!read_more(i, e) || i->is_over)
            return false;
    }
    if (row.len >= 3 && !memcmp(row.text, "\xef\xbb\xbf", 3)) { /* as spreadsheets begin a file */
        row.text += 3;
        row.len -= 3;
    }
    char *room = arena_alloc(i->mem, row.len + 2);
    for (size_t at = 0; ok && at <= row.len;) {
        char *name;
        size_t len;
        ok = next_cell(&row, &at, &room, &name, &len, e) && add_column(i, name, e);
    }
    buf_add(&i->header, row.text, row.len);
    return ok;
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool
set_number(struct queue_push *job, const struct known_column *k, const char *cell, struct err *e)
{
    char *end;

    errno = 0;
    long value = strtol(cell, &end, 10);
    if (errno || *end || value < k->min || value > k->max)
        return fail(e, ERR_USAGE, "%s is a number from %d to %d, not '%.40s'", k->name, k->min,
                    k->max, cell);
    *(int *)((char *)job + k->offset) = (int)value;
    return true;
}

/* An empty cell says nothing. */
static bool
set_cell(struct queue_push *job, const struct known_column *k, const char *cell, size_t len,
         struct err *e)
{
    if (len == 0 || k->field == SAYS_NOTHING)
        return true;
    if (strlen(cell) != len && k->field != SAYS_PAYLOAD)
        return fail(e, ERR_USAGE, "%s has a zero byte", k->name);
    switch (k->field) {
    case SAYS_NOTHING:
        break;
    case SAYS_TEXT:
        *(const char **)((char *)job + k->offset) = cell;
        break;
    case SAYS_ID:
        if (len != QUEUE_ID_LEN)
            return fail(e, ERR_USAGE, "id: '%.40s' is not a uuid", cell);
        snprintf(job->id, sizeof job->id, "%s", cell);
        job->check_id = true;
        break;
    case SAYS_PAYLOAD:
        job->payload = cell;
        job->payload_len = len;
        break;
    case SAYS_NUMBER:
        return set_number(job, k, cell, e);
    case SAYS_TIME:
        return duration_parse(cell, (int64_t *)((char *)job + k->offset), e) ||
               fail_in(e, "%s", k->name);
    }
    return true;
}

static bool
make_job(struct import *i, const struct row *row, struct queue_push *job, struct err *e)
{
    char *room = arena_alloc(i->mem, row->len + 2);
    int n = 0;
    bool ok = true;

    *job = i->w->standard;
    for (size_t at = 0; ok && at <= row->len; n++) {
        char *cell;
        size_t len;
        ok = next_cell(row, &at, &room, &cell, &len, e) &&
             (n >= i->ncolumns || set_cell(job, i->columns[n], cell, len, e));
    }
    if (ok && n != i->ncolumns)
        return fail(e, ERR_USAGE, "%d cells instead of %d", n, i->ncolumns);
    if (ok && !*job->id)
        queue_make_id(job->id);
    return ok && queue_push_check(job, e);
}

/* What is imported are the rejects of an earlier import. */
static bool
is_again(const struct import *i)
{
    return i->header.data && !strncmp(i->header.data, "line,reason,", 12);
}

/* The place behind the first n cells; the end of the row if it has no more. */
static size_t
behind_cells(const struct row *row, int n)
{
    bool quoted = false;
    size_t at = 0;

    for (; at < row->len && n > 0; at++) {
        quoted ^= row->text[at] == '"';
        n -= !quoted && row->text[at] == ',';
    }
    return at;
}

/* False: this row ends the import. */
static bool
reject(struct import *i, const struct row *row, const struct err *why)
{
    struct buf line = {0};

    i->rejected++;
    if (i->rejects < 0) {
        i->code = cli_usage(i->c, "line %" PRId64 ": %s", row->line, why->text);
        i->next_line = row->line;
        return false;
    }
    buf_printf(&line, "%" PRId64 ",\"", row->line);
    for (const char *s = why->text; *s; s++)
        buf_add(&line, *s == '"' ? "'" : *s == '\n' ? " " : s, 1);
    buf_str(&line, "\",");
    size_t from = is_again(i) ? behind_cells(row, 2) : 0; /* they are written anew */
    buf_add(&line, row->text + from, row->len - from);
    buf_str(&line, "\n");
    ssize_t n = write(i->rejects, line.data, line.len);
    bool ok = n == (ssize_t)line.len;
    if (!ok) {
        cli_say(i->c, "%s: %s", i->w->rejects,
                n < 0 ? strerror(errno) : "not all of it could be written");
        i->code = CLI_SERVER;
        i->next_line = row->line;
    }
    buf_free(&line);
    return ok;
}

static void
on_push(void *ctx, const struct err *e, const struct queue_pushed *jobs, int n)
{
    struct import *i = ctx;

    i->has_answer = true;
    i->answer = *e;
    for (int k = 0; k < n; k++) {
        puts(jobs[k].id);
        i->pushed += jobs[k].is_new;
    }
}

static void
on_there(void *ctx, const struct err *e, bool is_there)
{
    struct import *i = ctx;

    i->has_answer = true;
    i->answer = *e;
    if (e->kind == ERR_NONE && !is_there)
        fail(&i->answer, ERR_CONN, "the connection broke; asked by id: not pushed");
}

static bool
wait_for_answer(struct import *i, struct err *e)
{
    while (!i->has_answer)
        if (!loop_turn(i->c->loop, -1, e))
            return false;
    *e = i->answer;
    return e->kind == ERR_NONE;
}

static bool
push_rows(struct import *i, int from, int n, struct err *e)
{
    i->has_answer = false;
    queue_push(i->queue, i->jobs + from, n, on_push, i);
    if (wait_for_answer(i, e))
        return true;
    if (!i->has_answer || !queue_in_doubt(i->queue))
        return false;
    i->has_answer = false;
    queue_ask_doubtful(i->queue, on_there, i);
    if (!wait_for_answer(i, e))
        return false;
    i->pushed += n;
    for (int k = 0; k < n; k++)
        puts(i->jobs[from + k].id);
    return true;
}

/* A value that the server can't take, or a rule that it breaks: the row is to blame. */
static bool
is_the_rows(const struct err *e)
{
    return !strncmp(e->sqlstate, "22", 2) || !strncmp(e->sqlstate, "23", 2) ||
           e->kind == ERR_REFUSED;
}

/* Halves what the server rejects until the bad row is alone. */
static bool
push_halves(struct import *i, int from, int n)
{
    struct err e = {0};

    if (n == 0)
        return true;
    i->next_line = i->rows[from].line;
    if (push_rows(i, from, n, &e))
        return true;
    if (!is_the_rows(&e)) {
        i->code = cli_fail(i->c, &e);
        return false;
    }
    if (n == 1)
        return reject(i, &i->rows[from], &e);
    return push_halves(i, from, n / 2) && push_halves(i, from + n / 2, n - n / 2);
}

/* Takes rows into the batch while there are any; a bad one goes behind those before it. */
static bool
take_rows(struct import *i, struct row *bad, struct err *why)
{
    size_t begin = i->used;
    bool ok = true;

    i->n = 0;
    while (ok && i->n < BATCH && i->used - begin < BATCH_BYTES && next_row(i, &i->rows[i->n])) {
        const struct row *row = &i->rows[i->n];
        if (row->len == 0 || row->line < i->w->from_line)
            continue;
        ok = make_job(i, row, &i->jobs[i->n], why);
        if (!ok)
            *bad = *row;
        i->n += ok;
    }
    i->took = i->used - begin;
    return ok;
}

static void
forget_used(struct import *i)
{
    memmove(i->in.data, i->in.data + i->used, i->in.len - i->used);
    i->in.len -= i->used;
    i->used = 0;
    arena_free(i->mem);
    i->mem = arena_new();
}

/* Reads on, unless it is the end. */
static bool
read_on(struct import *i)
{
    struct err e = {0};

    if (i->at_end)
        return i->took > 0;
    if (i->in.len > IMPORT_RECORD)
        fail(&e, ERR_USAGE, "line %" PRId64 ": a row has %d MiB at most", i->line,
             IMPORT_RECORD >> 20);
    else if (read_more(i, &e))
        return !i->is_over;
    i->code = cli_fail(i->c, &e);
    return false;
}

/* One batch. False: it is the end, or i->code says why not. */
static bool
step(struct import *i)
{
    struct err why = {0};
    struct row bad;
    bool all_good = take_rows(i, &bad, &why);

    if (!push_halves(i, 0, i->n) || (!all_good && !reject(i, &bad, &why)))
        return false;
    i->next_line = i->line;
    int flushed = cli_flush(i->c);
    if (flushed != CLI_DONE) {
        i->code = flushed;
        return false;
    }
    if (i->used)
        forget_used(i);
    if (!all_good || i->n == BATCH || i->took >= BATCH_BYTES)
        return !i->is_over;
    return read_on(i);
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool
open_rejects(struct import *i, struct err *e)
{
    i->rejects = -1;
    if (!i->w->rejects)
        return true;
    i->rejects = open(i->w->rejects, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (i->rejects < 0)
        return fail(e, ERR_USAGE, "%s: %s", i->w->rejects, strerror(errno));
    if (lseek(i->rejects, 0, SEEK_END) > 0)
        return true;
    struct buf line = {0};
    buf_printf(&line, "line,reason,%s\n", i->header.data + (is_again(i) ? 12 : 0));
    bool ok = write(i->rejects, line.data, line.len) == (ssize_t)line.len;
    buf_free(&line);
    return ok || fail(e, ERR_USAGE, "%s: %s", i->w->rejects, strerror(errno));
}

static int
say_end(const struct import *i)
{
    bool is_whole = i->code == CLI_DONE && !i->is_over;

    cli_say(i->c, "%" PRId64 " jobs were pushed", i->pushed);
    if (i->rejects >= 0 && i->rejected)
        cli_say(i->c, "%" PRId64 " lines were rejected: see %s", i->rejected, i->w->rejects);
    if (!is_whole)
        cli_say(i->c, "to go on there: --from-line %" PRId64, i->next_line);
    if (is_whole && !i->rejected)
        return CLI_DONE;
    return i->pushed ? CLI_PART : i->code ? i->code : i->is_over ? CLI_PART : CLI_USAGE;
}

static int
run(struct import *i)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct err e = {0};

    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
        loop_on_signal(i->c->loop, signals[k], on_signal, i);
    if (!read_header(i, &e) || !open_rejects(i, &e))
        return i->is_over ? CLI_PART : cli_fail(i->c, &e);
    i->next_line = i->line;
    while (step(i))
        ;
    return say_end(i);
}

int
cli_import(struct cli *c, const struct import_words *w)
{
    struct import *i = xcalloc(1, sizeof *i);
    struct err e = {0};

    *i = (struct import){
        .c = c, .w = w, .line = 1, .fd = STDIN_FILENO, .rejects = -1, .mem = arena_new()};
    if (strcmp(w->file, "-") != 0)
        i->fd = open(w->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (i->fd < 0)
        fail(&e, ERR_USAGE, "%s: %s", w->file, strerror(errno));
    else
        i->queue = queue_new(cli_db(c, true), c->schema, &e);
    int code = i->queue ? run(i) : cli_fail(c, &e);
    if (c->db)
        db_free(c->db);
    c->db = NULL;
    if (i->queue)
        queue_free(i->queue);
    if (i->fd > STDIN_FILENO)
        close(i->fd);
    if (i->rejects >= 0)
        close(i->rejects);
    buf_free(&i->in);
    buf_free(&i->header);
    arena_free(i->mem);
    free(i);
    return code;
}
