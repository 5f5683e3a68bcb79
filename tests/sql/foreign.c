#include "tests/sql/foreign.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/sql/ask.h"

enum { KEPT = 16 };
static char *kept[KEPT];
static int next_kept;

/* Keeps a text until KEPT later calls. */
static const char *
keep(struct buf *b)
{
    char **place = &kept[next_kept++ % KEPT];

    free(*place);
    *place = xstrdup(b->data ? b->data : "");
    buf_free(b);
    return *place;
}

void
foreign_open(struct foreign *q, const char *name, const char *schema)
{
    static int n;
    char *database = xasprintf("%s_%d", name, ++n);

    q->conn = pg_fixture(database, name);
    free(database);
    q->adapter = ask_adapter(name, schema);
}

void
foreign_close(struct foreign *q)
{
    PQfinish(q->conn);
    adapter_free(q->adapter);
}

PGconn *
foreign_join(const struct foreign *q)
{
    return pg_connect(pg_dsn(PQdb(q->conn)));
}

static int
by_id(const void *a, const void *b)
{
    const char *one = *(const char *const *)a, *two = *(const char *const *)b;
    size_t n = strcspn(one, " "), m = strcspn(two, " ");

    return n != m ? (n < m ? -1 : 1) : strcmp(one, two);
}

/* Returns the rows as "id state", sorted, or the code of the error. */
static const char *
told(const PGresult *res)
{
    struct buf out = {0};
    int n = PQntuples(res), id = PQfnumber(res, "id"), state = PQfnumber(res, "state");
    char **lines = xcalloc((size_t)n + 1, sizeof *lines);

    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        buf_printf(&out, "!%s", PQresultErrorField(res, PG_DIAG_SQLSTATE));
        print_message("%s", PQresultErrorMessage(res));
    }
    for (int i = 0; i < n; i++)
        lines[i] = xasprintf("%s %s", PQgetvalue(res, i, id), PQgetvalue(res, i, state));
    qsort(lines, (size_t)n, sizeof *lines, by_id);
    for (int i = 0; i < n; i++) {
        buf_printf(&out, "%s%s", i ? ", " : "", lines[i]);
        free(lines[i]);
    }
    free(lines);
    return keep(&out);
}

static const char *
act(struct foreign *q, enum section_id s, const char *end, va_list words)
{
    struct params p = {0};

    ask_words(&p, words);
    ask_begin(q->conn, q->adapter, false);
    PGresult *res = ask_send(q->conn, q->adapter, s, &p, "");
    const char *text = told(res);
    PQclear(res);
    pg_run(q->conn, "%s", *text == '!' ? "rollback" : end);
    params_done(&p);
    return text;
}

const char *
foreign_act(struct foreign *q, enum section_id s, ...)
{
    va_list words;

    va_start(words, s);
    const char *text = act(q, s, "commit", words);
    va_end(words);
    return text;
}

const char *
foreign_try(struct foreign *q, enum section_id s, ...)
{
    va_list words;

    va_start(words, s);
    const char *text = act(q, s, "rollback", words);
    va_end(words);
    return text;
}

const char *
foreign_on(struct foreign *q, PGconn *conn, enum section_id s, ...)
{
    bool is_open = PQtransactionStatus(conn) == PQTRANS_INTRANS;
    struct params p = {0};
    va_list words;

    va_start(words, s);
    ask_words(&p, words);
    va_end(words);
    if (!is_open)
        ask_begin(conn, q->adapter, false);
    PGresult *res = ask_send(conn, q->adapter, s, &p, "");
    const char *text = told(res);
    PQclear(res);
    if (!is_open)
        pg_run(conn, "%s", *text == '!' ? "rollback" : "commit");
    params_done(&p);
    return text;
}

/* --- looking ---------------------------------------------------------------------------------- */

static bool
fits(enum field_type type, Oid oid)
{
    enum { BOOL = 16, INT8 = 20, INT2 = 21, INT4 = 23, TEXT = 25, FLOAT8 = 701 };

    switch (type) {
    case F_STR:
        return oid == TEXT;
    case F_I64:
        return oid == INT8 || oid == INT4;
    case F_INT:
        return oid == INT4 || oid == INT2;
    case F_BOOL:
        return oid == BOOL;
    case F_DBL:
        return oid == FLOAT8;
    }
    return false;
}

const char *
foreign_check(enum section_id s, const PGresult *res)
{
    const struct record *rec = section_kinds[s].record;
    struct buf wrong = {0};
    struct rowset rows;
    struct err e;

    for (int i = 0; rec && i < rec->n; i++) {
        int col = PQfnumber(res, rec->fields[i].name);
        if (col < 0 && !rec->fields[i].optional)
            buf_printf(&wrong, "no column %s; ", rec->fields[i].name);
        if (col >= 0 && !fits(rec->fields[i].type, PQftype(res, col)))
            buf_printf(&wrong, "column %s has type %u; ", rec->fields[i].name, PQftype(res, col));
    }
    PGresult *copy = PQcopyResult(res, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
    if (rec && !record_decode(rec, result_wrap((struct pg_result *)copy), &rows, &e))
        buf_printf(&wrong, "%s", e.text);
    else if (rec)
        rowset_free(&rows);
    else
        PQclear(copy);
    return wrong.len ? keep(&wrong) : NULL;
}

PGresult *
foreign_look(struct foreign *q, enum section_id s, ...)
{
    struct params p = {0};
    va_list words;

    va_start(words, s);
    ask_words(&p, words);
    va_end(words);
    ask_begin(q->conn, q->adapter, true);
    PGresult *res = ask_send(q->conn, q->adapter, s, &p, "");
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s of %s: %s", section_kinds[s].name, adapter_name(q->adapter),
                 PQresultErrorMessage(res));
    pg_run(q->conn, "rollback");
    const char *wrong = foreign_check(s, res);
    if (wrong)
        fail_msg("%s of %s: %s", section_kinds[s].name, adapter_name(q->adapter), wrong);
    params_done(&p);
    return res;
}

const char *
foreign_cell(PGresult *res, const char *key, const char *column)
{
    int col = PQfnumber(res, column);

    if (col < 0)
        fail_msg("no column %s", column);
    for (int i = 0; i < PQntuples(res); i++)
        if (!strcmp(PQgetvalue(res, i, 0), key))
            return PQgetisnull(res, i, col) ? "NULL" : PQgetvalue(res, i, col);
    return "";
}

const char *
foreign_list(PGresult *res, const char *column)
{
    int col = PQfnumber(res, column);
    struct buf out = {0};

    if (col < 0)
        fail_msg("no column %s", column);
    for (int i = 0; i < PQntuples(res); i++)
        buf_printf(&out, "%s%s", i ? " " : "",
                   PQgetisnull(res, i, col) ? "NULL" : PQgetvalue(res, i, col));
    PQclear(res);
    return keep(&out);
}

const char *
foreign_heard(PGconn *conn)
{
    struct buf out = {0};

    pg_run(conn, "select 1"); /* a round trip: what was committed before has come by now */
    PQconsumeInput(conn);
    for (PGnotify *n; (n = PQnotifies(conn)); PQfreemem(n))
        buf_printf(&out, "%s%s:%s", out.len ? "\n" : "", n->relname, n->extra);
    return keep(&out);
}
