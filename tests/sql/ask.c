#include "tests/sql/ask.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

/* HANG_MS ends a statement that hangs. It is long because a slow machine needs more time. */
enum { HANG_MS = 60000, LOCK_MS = 500 };

struct adapter *
ask_adapter(const char *name, const char *schema)
{
    struct err e = {0};
    struct adapter *a = adapter_load(name, &e);

    if (!a || !adapter_use(a, schema ? schema : adapter_default_schema(a), &e))
        fail_msg("%s: %s", name, e.text);
    return a;
}

void
ask_words(struct params *p, va_list words)
{
    for (const char *word; (word = va_arg(words, const char *));) {
        size_t len = strcspn(word, "=");
        enum param name = PARAM_TOTAL;
        if (!word[len] || !param_find(word, (int)len, &name))
            fail_msg("no parameter: %s", word);
        params_set(p, name, word + len + 1);
    }
}

void
ask_begin(PGconn *conn, const struct adapter *a, bool read_only)
{
    struct db_call call = {0};

    adapter_settings(a, !read_only, &call);
    pg_run(conn, "begin %s", read_only ? "read only" : "");
    pg_run(conn,
           "set local search_path = %s, pg_temp; set local jit = off; set local lock_timeout = %d;"
           "set local statement_timeout = %d",
           call.search_path ? call.search_path : "pg_catalog", LOCK_MS, HANG_MS);
    if (call.timezone)
        pg_run(conn, "set local timezone = '%s'", call.timezone);
}

/* Returns the statement without the values of its parameters; the values go to `values`. */
static struct db_stmt
bind(const struct adapter *a, enum section_id s, const struct params *p,
     const char *values[ADAPTER_PARAMS])
{
    struct db_param storage[ADAPTER_PARAMS];

    assert_true(adapter_has(a, s));
    struct db_stmt stmt = adapter_bind(a, s, p, storage);
    for (int i = 0; i < stmt.nparams; i++)
        values[i] = stmt.params[i].value;
    stmt.params = NULL;
    return stmt;
}

PGresult *
ask_send(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p,
         const char *before)
{
    const char *values[ADAPTER_PARAMS];
    struct db_stmt stmt = bind(a, s, p, values);
    char *sql = xasprintf("%s%s", before, stmt.sql);
    PGresult *res = PQexecParams(conn, sql, stmt.nparams, NULL, values, NULL, NULL, 0);
    free(sql);
    return res;
}

void
ask_start(PGconn *conn, const struct adapter *a, enum section_id s, const struct params *p)
{
    const char *values[ADAPTER_PARAMS];
    struct db_stmt stmt = bind(a, s, p, values);
    assert_true(PQsendQueryParams(conn, stmt.sql, stmt.nparams, NULL, values, NULL, NULL, 0));
}

static bool
lets_pass(void *ctx, struct result *r, struct err *e)
{
    (void)ctx, (void)e;
    result_free(r);
    return true;
}

const struct db_gate ask_gate = {
    {.sql = "select pg_backend_pid() as backend_pid"}, lets_pass, NULL, NULL};
