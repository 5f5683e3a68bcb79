/*
 * Jobs from a table of comma separated values (RFC 4180), whose header names the columns, or from
 * JSON, one object in a line, whose members have the names of the columns. Line numbers are those
 * of an editor: a row has the number of the line where it begins.
 *
 * An import that was stopped says at which line to continue (--from-line). Ids are not derived from
 * the rows, because the same rows in tomorrow's file are other jobs. If an import may be killed at
 * any time: with --resume a file keeps the place after each batch, and from which id on the rows
 * are numbered. So the batch that was pushed after the file was written is the same jobs again.
 */
#include "ui/write/cli_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/base/owned.h"
#include "ui/write/import_place.h"
#include "ui/write/import_rows.h"

enum { BATCH = 500, BATCH_BYTES = 4 << 20, CHUNK = 1 << 18 };

struct import {
    struct cli *c;
    const struct import_words *w;
    struct queue *queue;
    int fd, rejects, lock;
    char chunk[CHUNK];
    struct buf in;
    size_t took;   /* bytes of the last batch */
    size_t used;   /* bytes of `in` that were made into rows */
    int64_t line;  /* number of the line after them */
    size_t seen;   /* bytes after `used` that next_row has read; the next call skips them */
    bool quoted;   /* the byte after `seen` is inside quotes */
    int64_t lines; /* number of line ends in `seen` */
    bool drops;    /* the row was too long and its beginning was dropped: look for its end */
    bool at_end, is_ready, is_over;
    struct import_columns columns;
    struct arena *mem; /* memory for one batch */
    struct queue_push jobs[BATCH];
    struct import_row rows[BATCH];
    int n;
    int64_t pushed, rejected, next_line; /* next_line: no line from there on was pushed */
    uint64_t before, next_before;        /* import_hash() of the rows before `line`, `next_line` */
    int64_t from_line;                   /* pass over the lines before it */
    struct import_place place;           /* of --resume */
    bool is_resumed;                     /* the place is that of an earlier run */
    bool is_found;                       /* and the rows before it are the same */
    int may_repeat;                      /* so many of the next jobs may have been pushed */
    bool is_unkept;                      /* the last place could not be written */
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

/* The next whole row after `used`; false = there is none yet. Each byte is read once, in however
 * many pieces a row arrives. */
static bool
next_row(struct import *i, struct import_row *row)
{
    size_t at = i->used + i->seen;

    while (at < i->in.len && (i->quoted || i->in.data[at] != '\n')) {
        i->quoted ^= !i->w->is_json && i->in.data[at] == '"';
        i->lines += i->in.data[at] == '\n';
        at++;
    }
    i->seen = at - i->used;
    if (at == i->in.len && (!i->at_end || (at == i->used && !i->drops)))
        return false;
    *row = (struct import_row){
        .line = i->line, .before = i->before, .is_too_long = i->drops, .is_open = i->quoted};
    row->text = i->drops ? "" : i->in.data + i->used;
    row->len = i->drops ? 0 : at - i->used;
    if (row->len && row->text[row->len - 1] == '\r')
        row->len--;
    i->drops = false;
    i->before = import_hash(i->before, row->text, row->len);
    i->line += i->lines + 1;
    i->used = at + (at < i->in.len);
    i->seen = 0;
    i->quoted = false;
    i->lines = 0;
    return true;
}

/* Limits the size of an unfinished row. */
static bool
check_size(const struct import *i, struct err *e)
{
    return i->in.len <= IMPORT_RECORD || import_too_long(i->quoted, e) ||
           fail_in(e, "line %" PRId64, i->line);
}

/* Drops the beginning of a row that is too long, after all of it was read. */
static void
drop_long(struct import *i)
{
    if (i->in.len <= IMPORT_RECORD && !i->drops)
        return;
    i->drops = true;
    i->in.len = i->seen = 0;
}

static bool
read_header(struct import *i, struct err *e)
{
    struct import_row row;

    while (!next_row(i, &row)) {
        if (i->at_end)
            return fail(e, ERR_USAGE, "%s has no header", i->w->file);
        if (!check_size(i, e) || !read_more(i, e) || i->is_over)
            return false;
    }
    return import_header(&i->columns, i->mem, &row, e);
}

/* --- the place, with --resume ----------------------------------------------------------------- */

/* No row from there on was pushed. */
static void
stop_before(struct import *i, int64_t line, uint64_t before)
{
    i->next_line = line;
    i->next_before = before;
}

static bool
fail_same(const struct import *i, struct err *e)
{
    return fail(e, ERR_USAGE, "--resume and --rejects are the same file: %s", i->w->resume);
}

/* Before anything is read: the place of an earlier run, or a new one. */
static bool
read_place(struct import *i, struct err *e)
{
    import_place_begin(&i->place);
    if (!i->w->resume)
        return true;
    if (i->w->rejects && !strcmp(i->w->resume, i->w->rejects))
        return fail_same(i, e);
    /* read twice: a wrong file is refused before there is a lock beside it */
    if (!import_place_read(i->w->resume, &i->place, &i->is_resumed, e))
        return false;
    i->lock = import_place_lock(i->w->resume, e);
    if (i->lock < 0)
        return false;
    import_place_begin(&i->place);
    if (!import_place_read(i->w->resume, &i->place, &i->is_resumed, e))
        return false;
    i->is_found = !i->is_resumed;
    i->may_repeat = i->is_resumed ? BATCH : 0;
    i->from_line = i->is_resumed ? i->place.line : 0;
    return true;
}

/* What the earlier run rejected after its place was written will be rejected again. Another file
 * than that of the earlier run is left as it is. */
static bool
forget_rejects(const struct import *i, struct err *e)
{
    struct stat of;

    if (i->rejects < 0 || i->place.rejects < 0 || fstat(i->rejects, &of) != 0 ||
        !S_ISREG(of.st_mode) || of.st_dev != i->place.rejects_dev ||
        of.st_ino != i->place.rejects_ino || of.st_size <= i->place.rejects)
        return true;
    return ftruncate(i->rejects, i->place.rejects) == 0 ||
           fail(e, ERR_SYS, "%s: %s", i->w->rejects, strerror(errno));
}

/* The first row, or the end, from the place on: are all rows before it those of the earlier run? */
static bool
find_place(struct import *i, int64_t line, uint64_t before, struct err *e)
{
    if (!i->w->resume || i->is_found)
        return true;
    if (line != i->place.line || before != i->place.before)
        return fail(e, ERR_USAGE,
                    "the rows before line %" PRId64 " of %s are not those of the import that "
                    "stopped there: for another file, give --resume another name",
                    i->place.line, i->w->file);
    i->is_found = forget_rejects(i, e);
    return i->is_found;
}

static bool
write_place(struct import *i, bool is_first, struct err *e)
{
    struct stat of;

    i->place.line = i->next_line;
    i->place.before = i->next_before;
    i->place.rejects = -1;
    if (i->rejects >= 0 && fstat(i->rejects, &of) == 0 && S_ISREG(of.st_mode)) {
        if (fsync(i->rejects) != 0)
            return fail(e, ERR_SYS, "%s: %s", i->w->rejects, strerror(errno));
        i->place.rejects = of.st_size;
        i->place.rejects_dev = of.st_dev;
        i->place.rejects_ino = of.st_ino;
    }
    return import_place_write(i->w->resume, &i->place, is_first, e);
}

/* Before the first push the ids have to be on the disk. */
static bool
begin_place(struct import *i, struct err *e)
{
    if (!i->w->resume || i->is_resumed)
        return true;
    stop_before(i, i->line, i->before);
    return write_place(i, true, e);
}

/* After a batch, and at the end of an import that is not whole. */
static bool
keep_place(struct import *i)
{
    struct err e = {0};

    i->may_repeat = i->may_repeat > i->n ? i->may_repeat - i->n : 0;
    if (!i->w->resume || !i->is_found || write_place(i, false, &e))
        return true;
    cli_say(i->c, "%s", e.text);
    i->is_unkept = true;
    return false;
}

/* Gives the job its id, unless the row has one. The server looks among the finished jobs for the
 * ids that may have been pushed before. */
static void
name_job(const struct import *i, const struct import_row *row, struct queue_push *job)
{
    if (!*job->id && i->w->resume) {
        import_place_id(&i->place, row->line, import_hash(0, row->text, row->len), job->id);
        job->check_id = i->may_repeat > 0;
    } else if (!*job->id)
        queue_make_id(job->id);
}

/* --- batches ---------------------------------------------------------------------------------- */

/* Rejects a row. False: this ends the import. */
static bool
reject(struct import *i, const struct import_row *row, const struct err *why)
{
    struct buf line = {0};

    i->rejected++;
    if (i->rejects < 0) {
        i->code = cli_usage(i->c, "line %" PRId64 ": %s", row->line, why->text);
        stop_before(i, row->line, row->before);
        return false;
    }
    import_reject(&i->columns, row, why->text, &line);
    buf_str(&line, "\n");
    ssize_t n = write(i->rejects, line.data, line.len);
    bool ok = n == (ssize_t)line.len;
    if (!ok) {
        cli_say(i->c, "%s: %s", i->w->rejects,
                n < 0 ? strerror(errno) : "not all of it could be written");
        i->code = CLI_SERVER;
        stop_before(i, row->line, row->before);
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

/* Whether the row caused the error: a value that the server can't read, or that breaks a rule. */
static bool
is_the_rows(const struct err *e)
{
    static const char classes[][3] = {"22", "23", "54"}; /* 54: too deep, too many */

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strncmp(e->sqlstate, classes[i], 2))
            return true;
    return e->kind == ERR_REFUSED;
}

/* Pushes a rejected batch in halves, until the bad row is found. */
static bool
push_halves(struct import *i, int from, int n)
{
    struct err e = {0};

    if (n == 0)
        return true;
    stop_before(i, i->rows[from].line, i->rows[from].before);
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

/* Fills the batch with rows. Stops at a bad row, so that the rows before it are pushed first.
 * *is_found is false if this is another file than that of --resume. */
static bool
take_rows(struct import *i, struct import_row *bad, bool *is_found, struct err *why)
{
    size_t begin = i->used;
    bool ok = true;

    *is_found = true;
    i->n = 0;
    while (ok && i->n < BATCH && i->used - begin < BATCH_BYTES && next_row(i, &i->rows[i->n])) {
        const struct import_row *row = &i->rows[i->n];
        if (row->line < i->from_line)
            continue;
        *is_found = find_place(i, row->line, row->before, why);
        if (!*is_found)
            return false;
        if (import_is_blank(&i->columns, row))
            continue;
        i->jobs[i->n] = i->w->standard;
        ok = import_job(&i->columns, i->mem, row, &i->jobs[i->n], why);
        if (ok)
            name_job(i, row, &i->jobs[i->n]);
        else
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

/* Reads more input, unless the input has ended. */
static bool
read_on(struct import *i)
{
    struct err e = {0};

    if (i->at_end)
        return i->took > 0;
    if (i->rejects >= 0 || i->line < i->from_line)
        drop_long(i);
    if (check_size(i, &e) && read_more(i, &e))
        return !i->is_over;
    i->code = cli_fail(i->c, &e);
    return false;
}

/* Imports one batch. False: the input has ended, or i->code is the exit code for an error. */
static bool
step(struct import *i)
{
    struct err why = {0};
    struct import_row bad;
    bool is_found, all_good = take_rows(i, &bad, &is_found, &why);

    if (!is_found) {
        i->code = cli_fail(i->c, &why);
        return false;
    }
    if (!push_halves(i, 0, i->n) || (!all_good && !reject(i, &bad, &why)))
        return false;
    stop_before(i, i->line, i->before);
    int flushed = cli_flush(i->c);
    if (flushed == CLI_DONE && !keep_place(i))
        flushed = CLI_SERVER;
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
is_same_file(int a, int b)
{
    struct stat of_a, of_b;

    return !fstat(a, &of_a) && !fstat(b, &of_b) && S_ISREG(of_a.st_mode) &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* The place may have been named in another way (./place). If this open has made the file, it goes
 * again: the next run would take it for the place. */
static bool
is_beside_place(const struct import *i)
{
    struct stat of, place;

    if (!i->w->resume || fstat(i->rejects, &of) != 0 || stat(i->w->resume, &place) != 0 ||
        of.st_dev != place.st_dev || of.st_ino != place.st_ino)
        return true;
    if (!i->is_resumed && of.st_size == 0)
        (void)unlink(i->w->rejects);
    return false;
}

static bool
open_rejects(struct import *i, struct err *e)
{
    i->rejects = -1;
    if (!i->w->rejects)
        return true;
    /* a pipe that nobody reads is refused instead of waited for */
    i->rejects = owned_append(i->w->rejects, O_NONBLOCK, e);
    if (i->rejects < 0) {
        e->kind = e->kind == ERR_SYS ? ERR_USAGE : e->kind;
        return false;
    }
    if (fcntl(i->rejects, F_SETFL, O_APPEND) < 0)
        return fail(e, ERR_USAGE, "%s: %s", i->w->rejects, strerror(errno));
    if (is_same_file(i->fd, i->rejects))
        return fail(e, ERR_USAGE, "%s: --rejects is the file that is read", i->w->rejects);
    if (is_same_file(i->lock, i->rejects))
        return fail(e, ERR_USAGE, "%s: --rejects is the lock of --resume", i->w->rejects);
    if (!is_beside_place(i))
        return fail_same(i, e);
    if (i->w->is_json || lseek(i->rejects, 0, SEEK_END) > 0)
        return true;
    struct buf line = {0};
    import_reject_header(&i->columns, &line);
    buf_str(&line, "\n");
    bool ok = write(i->rejects, line.data, line.len) == (ssize_t)line.len;
    buf_free(&line);
    return ok || fail(e, ERR_USAGE, "%s: %s", i->w->rejects, strerror(errno));
}

static int
say_end(struct import *i)
{
    bool is_whole = i->code == CLI_DONE && !i->is_over;

    if (!i->is_unkept && !keep_place(i) && is_whole)
        i->code = CLI_SERVER;
    if (is_whole && i->is_resumed && i->next_line == i->from_line)
        cli_say(i->c, "an earlier run has pushed all rows; to push them again, remove %s",
                i->w->resume);
    cli_say(i->c, "%" PRId64 " job%s pushed", i->pushed, i->pushed == 1 ? " was" : "s were");
    if (i->rejects >= 0 && i->rejected)
        cli_say(i->c, "%" PRId64 " row%s rejected: see %s", i->rejected,
                i->rejected == 1 ? " was" : "s were", i->w->rejects);
    if (i->is_unkept)
        cli_say(i->c,
                "to go on, once %s can be written: the same command (no row becomes two jobs)",
                i->w->resume);
    else if (!is_whole && i->w->resume && i->is_found)
        cli_say(i->c, "to go on at line %" PRId64 ": the same command", i->next_line);
    else if (!is_whole && !i->w->resume)
        cli_say(i->c, "to go on there: --from-line %" PRId64, i->next_line);
    if (is_whole && !i->rejected)
        return i->code;
    return i->pushed ? CLI_PART : i->code ? i->code : i->is_over ? CLI_PART : CLI_USAGE;
}

static int
run(struct import *i)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct err e = {0};

    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
        loop_on_signal(i->c->loop, signals[k], on_signal, i);
    if (!read_place(i, &e) || (!i->w->is_json && !read_header(i, &e)) || !open_rejects(i, &e) ||
        !begin_place(i, &e))
        return i->is_over ? CLI_PART : cli_fail(i->c, &e);
    stop_before(i, i->line, i->before);
    while (step(i))
        ;
    if (i->code == CLI_DONE && !i->is_over && !find_place(i, i->line, i->before, &e))
        i->code = cli_fail(i->c, &e);
    return say_end(i);
}

int
cli_import(struct cli *c, const struct import_words *w)
{
    struct import *i = xcalloc(1, sizeof *i);
    struct err e = {0};

    *i = (struct import){.c = c,
                         .w = w,
                         .line = 1,
                         .from_line = w->from_line,
                         .fd = STDIN_FILENO,
                         .rejects = -1,
                         .lock = -1,
                         .mem = arena_new()};
    i->columns = (struct import_columns){.is_json = w->is_json, .names = &w->names};
    if (strcmp(w->file, "-") != 0)
        i->fd = open(w->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (i->fd < 0)
        fail(&e, ERR_USAGE, "%s: %s", w->file, strerror(errno));
    else if (import_names(&w->names, &e))
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
    if (i->lock >= 0)
        close(i->lock);
    buf_free(&i->in);
    import_done(&i->columns);
    arena_free(i->mem);
    free(i);
    return code;
}
