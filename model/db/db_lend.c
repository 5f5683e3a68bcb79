/* One statement on a connection that belongs to the caller. The caller lends its PGconn for the
 * time of the call; the statement runs in the transaction that is open there. This is the only call
 * of the program that blocks, and it does so on purpose: a caller of the C library who pushes
 * within its own transaction waits for the answer anyway. The console never comes here. Values are
 * bound, never put into the text. */
#include "model/db/db_private.h"

#include <string.h>

bool
db_lend(struct pg_conn *conn, const struct db_stmt *stmt, struct result **out, struct err *e)
{
    const char *values[LEND_PARAMS];
    int lengths[LEND_PARAMS], formats[LEND_PARAMS];

    if (!conn || PQstatus(conn) != CONNECTION_OK)
        return fail(e, ERR_CONN, "the connection is not open");
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF || PQisBusy(conn))
        return fail(e, ERR_USAGE, "the connection is busy, or in pipeline mode");
    for (int i = 0; i < stmt->nparams; i++) {
        values[i] = stmt->params[i].value;
        lengths[i] = stmt->params[i].len;
        formats[i] = stmt->params[i].binary;
    }
    PGresult *res = PQexecParams(conn, stmt->sql, stmt->nparams, NULL, values, lengths, formats, 0);
    if (PQresultStatus(res) == PGRES_TUPLES_OK) {
        *out = result_wrap(res);
        return true;
    }
    err_of_result(e, res);
    PQclear(res);
    return false;
}
