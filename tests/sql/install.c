#include "tests/sql/install.h"

#include <stdlib.h>

#include "model/db/db.h"

struct fixture *
install_open(const char *database)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->loop = loop_new();
    f->dsn = xstrdup(pg_newdb(database));
    f->conn = pg_connect(f->dsn);
    return f;
}

int
install_teardown(void **state)
{
    struct fixture *f = *state;

    PQfinish(f->conn);
    buf_free(&f->said);
    free(f->dsn);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void
say(void *ctx, const char *line)
{
    struct fixture *f = ctx;

    buf_printf(&f->said, "%s\n", line);
}

bool
install_try(struct fixture *f, const char *dsn, struct install_options o)
{
    o.viewer = o.viewer ? o.viewer : "queues_viewer";
    o.worker = o.worker ? o.worker : "queues_worker";
    o.operator_ = o.operator_ ? o.operator_ : "queues_operator";
    struct db *db =
        db_new(f->loop, &(struct db_options){.conninfo = dsn, .schema = o.schema, .once = true});

    f->err = (struct err){.kind = ERR_NONE};
    buf_clear(&f->said);
    buf_str(&f->said, "");
    bool ok = install_run(db, f->loop, &o, say, f, &f->err);
    db_free(db);
    return ok;
}
