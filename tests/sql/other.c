#include "tests/sql/other.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/db/db.h"
#include "tests/sql/ask.h"

enum { KEPT = 16 };

/* Keeps a text until 16 later calls. */
static const char *
keep(struct buf *b)
{
    static char *kept[KEPT];
    static int next;
    char **place = &kept[next++ % KEPT];

    free(*place);
    return *place = b->data ? b->data : xstrdup("");
}

void
other_open(struct other *f, const char *adapter, const char *database)
{
    char path[256];

    f->a = ask_adapter(adapter, NULL);
    PGconn *first = pg_connect(pg_newdb(database));
    pg_run(first, "alter database %s set timezone = 'Asia/Kolkata'", database);
    PQfinish(first);
    f->conn = pg_connect(pg_dsn(database));
    f->watcher = pg_connect(pg_dsn(database));
    snprintf(path, sizeof path, "tests/adapters/%s.sql", adapter);
    pg_file(f->conn, path);
}

void
other_close(struct other *f)
{
    adapter_free(f->a);
    PQfinish(f->conn);
    PQfinish(f->watcher);
}

static PGresult *
ask(struct other *f, enum section_id s, const struct params *p, bool read_only, const char *before)
{
    ask_begin(f->conn, f->a, read_only);
    return ask_send(f->conn, f->a, s, p, before);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *
change(const PGresult *res, int row)
{
    int id = PQfnumber(res, "id"), state = PQfnumber(res, "state"), why = PQfnumber(res, "why");
    struct buf b = {0};

    buf_printf(&b, "%s %s", PQgetvalue(res, row, id),
               PQgetisnull(res, row, state) ? "-" : PQgetvalue(res, row, state));
    if (why >= 0 && !PQgetisnull(res, row, why))
        buf_printf(&b, " (%s)", PQgetvalue(res, row, why));
    return b.data;
}

/* The rows are sorted, because the order in which a statement changes rows means nothing. */
static const char *
changes(const PGresult *res)
{
    int n = PQntuples(res);
    char **rows = xcalloc((size_t)n + 1, sizeof *rows);
    struct buf all = {0};

    for (int i = 0; i < n; i++)
        rows[i] = change(res, i);
    qsort(rows, (size_t)n, sizeof *rows, by_text);
    for (int i = 0; i < n; i++) {
        buf_printf(&all, "%s%s", i ? ", " : "", rows[i]);
        free(rows[i]);
    }
    free(rows);
    return keep(&all);
}

/* Returns the answer of the act, and ends its transaction. Frees res. */
static const char *
end_act(struct other *f, PGresult *res)
{
    struct buf failed = {0};
    bool ok = PQresultStatus(res) == PGRES_TUPLES_OK;

    if (!ok)
        buf_printf(&failed, "!%s", PQresultErrorField(res, PG_DIAG_SQLSTATE));
    const char *text = ok ? changes(res) : keep(&failed);
    PQclear(res);
    pg_run(f->conn, ok ? "commit" : "rollback");
    return text;
}

const char *
other_act(struct other *f, enum section_id s, ...)
{
    struct params p = {0};
    va_list words;

    va_start(words, s);
    ask_words(&p, words);
    va_end(words);
    const char *text = end_act(f, ask(f, s, &p, false, ""));
    params_done(&p);
    return text;
}

const char *
other_act_waits(struct other *f, const char *then, enum section_id s, ...)
{
    struct params p = {0};
    va_list words;

    va_start(words, s);
    ask_words(&p, words);
    va_end(words);
    ask_begin(f->conn, f->a, false);
    pg_run(f->conn, "set local lock_timeout = '20 s'");
    ask_start(f->conn, f->a, s, &p);
    pg_wait_blocked(f->watcher, f->conn);
    pg_run(f->watcher, "%s", then);
    PGresult *res = PQgetResult(f->conn);
    PGresult *more = PQgetResult(f->conn);
    assert_null(more);
    params_done(&p);
    return end_act(f, res);
}

static PGresult *
look(struct other *f, enum section_id s, const struct params *p)
{
    PGresult *res = ask(f, s, p, true, "");

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", section_kinds[s].name, PQresultErrorMessage(res));
    pg_run(f->conn, "rollback");
    return res;
}

const char *
other_look(struct other *f, enum section_id s, const char *column, ...)
{
    struct params p = {0};
    va_list words;
    struct buf b = {0};

    va_start(words, column);
    ask_words(&p, words);
    va_end(words);
    PGresult *res = look(f, s, &p);
    int col = PQfnumber(res, column);
    assert_true(col >= 0);
    for (int i = 0; i < PQntuples(res); i++)
        buf_printf(&b, "%s%s", i ? " " : "",
                   PQgetisnull(res, i, col) ? "-" : PQgetvalue(res, i, col));
    PQclear(res);
    params_done(&p);
    return keep(&b);
}

/* All ids, in pages of `page` rows. One search looks at n rows (0 = at all rows). */
static char *
walk(struct other *f, struct params *p, int page, int n)
{
    struct buf b = {0};
    bool more = true;

    params_set_int(p, PARAM_LIMIT, page);
    if (n > 0)
        params_set_int(p, PARAM_N, n);
    for (int turns = 0; more; turns++) {
        PGresult *res = look(f, SEC_JOBS, p);
        int rows = PQntuples(res), id = PQfnumber(res, "id");
        bool goes_on = rows > 0 && !*PQgetvalue(res, rows - 1, id);
        assert_true(turns < 200 && rows <= page + goes_on);
        for (int i = 0; i < rows - goes_on; i++)
            buf_printf(&b, "%s%s", b.len ? " " : "", PQgetvalue(res, i, id));
        more = goes_on || rows == page;
        if (more)
            params_set(p, PARAM_CURSOR, PQgetvalue(res, rows - 1, PQfnumber(res, "cursor")));
        PQclear(res);
    }
    params_set(p, PARAM_CURSOR, NULL);
    params_set(p, PARAM_N, NULL);
    return b.data ? b.data : xstrdup("");
}

void
other_expect_walk(struct other *f, const char *expected, ...)
{
    static const int pages[][2] = {
        {1000, 0},
        {1,    0},
        {2,    0},
        {3,    3},
        {5,    2},
    };
    struct params p = {0};
    va_list words;

    va_start(words, expected);
    ask_words(&p, words);
    va_end(words);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char *ids = walk(f, &p, pages[i][0], pages[i][1]);
        if (strcmp(ids, expected) != 0)
            fail_msg("pages of %d, searches of %d:\n  %s\nexpected:\n  %s", pages[i][0],
                     pages[i][1], ids, expected);
        free(ids);
    }
    params_done(&p);
}

static PGresult *
explain(struct other *f, enum section_id s, const char *how, const struct params *p)
{
    PGresult *res = ask(f, s, p, true, how);

    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", section_kinds[s].name, PQresultErrorMessage(res));
    pg_run(f->conn, "rollback");
    return res;
}

int64_t
other_buffers(struct other *f, enum section_id s, ...)
{
    struct params p = {0};
    va_list words;

    va_start(words, s);
    ask_words(&p, words);
    va_end(words);
    PGresult *res = explain(f, s, "explain (analyze, buffers, timing off, format json) ", &p);
    const char *hit = strstr(PQgetvalue(res, 0, 0), "\"Shared Hit Blocks\":");
    const char *read = strstr(PQgetvalue(res, 0, 0), "\"Shared Read Blocks\":");
    assert_true(hit && read);
    int64_t n = strtoll(strchr(hit, ':') + 1, NULL, 10) + strtoll(strchr(read, ':') + 1, NULL, 10);
    PQclear(res);
    params_done(&p);
    return n;
}

const char *
other_plan(struct other *f, enum section_id s, ...)
{
    struct params p = {0};
    struct buf b = {0};
    va_list words;

    va_start(words, s);
    ask_words(&p, words);
    va_end(words);
    PGresult *res = explain(f, s, "explain (analyze, buffers, costs off, timing off) ", &p);
    for (int i = 0; i < PQntuples(res); i++)
        buf_printf(&b, "%s\n", PQgetvalue(res, i, 0));
    PQclear(res);
    params_done(&p);
    return keep(&b);
}

void
other_listen(struct other *f, const char *channel)
{
    pg_run(f->watcher, "listen \"%s\"", channel);
}

const char *
other_heard(struct other *f)
{
    struct buf b = {0};
    PGnotify *n;

    pg_run(f->watcher, "select 1"); /* what was committed before is delivered with it */
    while ((n = PQnotifies(f->watcher))) {
        buf_printf(&b, "%s%s %s", b.len ? "; " : "", n->relname, n->extra);
        PQfreemem(n);
    }
    return keep(&b);
}
