#include "tests/sql/install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/sql.h"
#include "model/db/db.h"
#include "tests/harness.h"
#include "tests/proc.h"

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

/* The roles, and no migration but the test's own: the versions that tests name stay what they are
 * when the program gets one. */
static void
fill_in(struct install_options *o)
{
    static const struct sql_text none;

    o->migrations = o->migrations ? o->migrations : &none;
    o->viewer = o->viewer ? o->viewer : "queues_viewer";
    o->worker = o->worker ? o->worker : "queues_worker";
    o->operator_ = o->operator_ ? o->operator_ : "queues_operator";
    o->pusher = o->pusher ? o->pusher : "queues_pusher";
}

bool
install_try(struct fixture *f, const char *dsn, struct install_options o)
{
    fill_in(&o);
    struct db *db = db_new(f->loop, &(struct db_options){.conninfo = dsn,
                                                         .schema = o.schema,
                                                         .once = true,
                                                         .stall_warn_ms = -1,
                                                         .stall_drop_ms = -1});

    f->err = (struct err){.kind = ERR_NONE};
    buf_clear(&f->said);
    buf_str(&f->said, "");
    bool ok = install_run(db, f->loop, &o, say, f, &f->err);
    db_free(db);
    return ok;
}

int
install_by_psql(struct fixture *f, const char *words, struct install_options o, int from)
{
    char path[300];
    struct buf text = {0};
    struct proc p = {0};

    fill_in(&o);
    assert_true(install_print(&o, from, &text, &f->err));
    snprintf(path, sizeof path, "%s/print.sql", getenv("TMPDIR"));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.len, file), text.len);
    fclose(file);
    buf_free(&text);
    const char *argv[] = {"psql", "-Xq", words, "-d", f->dsn, "-o", "/dev/null", "-f", path, NULL};
    proc_start(&p, argv, NULL);
    int code = proc_wait(&p);
    char *said = proc_errors(&p);
    buf_clear(&f->said);
    buf_str(&f->said, said);
    free(said);
    proc_done(&p);
    unlink(path);
    return code;
}

char *
install_dump(const struct fixture *f, const char *schema)
{
    char *quoted = PQescapeIdentifier(f->conn, schema, strlen(schema));
    struct proc p = {0};
    struct buf kept = {0};

    const char *argv[] = {"pg_dump", "-s", "-d", f->dsn, "-n", quoted, NULL};
    proc_start(&p, argv, NULL);
    int code = proc_wait(&p);
    char *text = proc_output(&p);
    if (code != 0 && strstr(proc_errors(&p), "server version mismatch")) {
        print_message("pg_dump is older than this server: what is printed is not compared\n");
        skip();
    }
    if (code != 0)
        fail_msg("pg_dump: %s", proc_errors(&p));
    buf_str(&kept, "");
    for (char *at = text, *save = NULL; (at = strtok_r(at, "\n", &save)); at = NULL)
        if (*at != '\\') /* newer ones begin with \restrict and a random word */
            buf_printf(&kept, "%s\n", at);
    free(text);
    PQfreemem(quoted);
    proc_done(&p);
    return kept.data;
}
