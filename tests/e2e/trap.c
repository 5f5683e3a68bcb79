/*
 * The traps, and the databases that they are in.
 */
#include "tests/e2e/trap.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "tests/proc.h"

static struct {
    PGconn *conn; /* a superuser with a search path of its own */
    char db[32];
    long seen; /* bytes of the server's log that were read already */
} trap;

/* --- the traps --- */

struct text {
    char *data;
    size_t len;
};

static void
add(struct text *t, const char *s, size_t n)
{
    t->data = realloc(t->data, t->len + n + 1);
    assert_non_null(t->data);
    memcpy(t->data + t->len, s, n);
    t->len += n;
    t->data[t->len] = 0;
}

static void
add_files(struct text *t, const struct sql_text *files, int n)
{
    for (int i = 0; i < n; i++)
        add(t, files[i].text, strlen(files[i].text));
}

/* Each word that stands before a parenthesis, as an array of the server. */
static struct text
names_in(const char *sql)
{
    struct text names = {0};

    add(&names, "{set_config,current_setting,concat,format", 41);
    for (const char *s = sql, *at; (at = strchr(s, '(')); s = at + 1) {
        const char *from = at;
        while (from > s && (isalnum((unsigned char)from[-1]) || from[-1] == '_'))
            from--;
        if (from == at || isdigit((unsigned char)*from))
            continue;
        add(&names, ",", 1);
        add(&names, from, (size_t)(at - from));
    }
    add(&names, "}", 1);
    return names;
}

/* As mallory, who may create in public; more: for these types, NULL = all that the server has. */
static void
set_traps(const char *more)
{
    struct text sql = {0};

    add_files(&sql, sql_client, sql_client_n);
    add_files(&sql, sql_console, sql_console_n);
    add_files(&sql, sql_core, sql_core_n);
    add_files(&sql, sql_adapters, sql_adapters_n);
    struct text names = names_in(sql.data);
    const char *params[] = {names.data, sql.data, more};
    PGresult *r = PQexecParams(trap.conn,
                               "select functions, operators, views, types from public.set_traps($1,"
                               " $2, $3)",
                               3, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(trap.conn));
    for (int i = 0; i < (more ? 2 : 4); i++)
        assert_true(strtol(PQgetvalue(r, 0, i), NULL, 10) > (more ? 10 : i < 2 ? 5000 : 12));
    print_message("%s functions, %s operators, %s views, %s types\n", PQgetvalue(r, 0, 0),
                  PQgetvalue(r, 0, 1), PQgetvalue(r, 0, 2), PQgetvalue(r, 0, 3));
    PQclear(r);
    free(names.data);
    free(sql.data);
}

static void
make_model(void)
{
    trap.conn = pg_connect(pg_newdb("model"));
    pg_run(trap.conn, "create role mallory; grant create on schema public to mallory;"
                      " set role mallory");
    pg_file(trap.conn, "tests/sql/trap.sql");
    pg_run(trap.conn, "begin");
    set_traps(NULL);
    pg_run(trap.conn, "commit");
    PQfinish(trap.conn);
    trap.conn = NULL;
}

/* --- what was sprung --- */

/* What the log has said since the last look; the caller frees. */
char *
trap_sprung(void)
{
    char path[300], *line = NULL;
    struct text said = {0};
    size_t size = 0;

    snprintf(path, sizeof path, "%s/log", pg_host());
    FILE *log = fopen(path, "re");
    assert_non_null(log);
    assert_int_equal(fseek(log, trap.seen, SEEK_SET), 0);
    while (getline(&line, &size, log) > 0)
        if (strstr(line, "TRAP "))
            add(&said, line, strlen(line));
    trap.seen = ftell(log);
    free(line);
    fclose(log);
    return said.data;
}

void
trap_none_sprung(const char *when)
{
    char *said = trap_sprung();

    if (said)
        fail_msg("%s: %.3000s", when, said);
    free(said);
}

/* --- the databases --- */

/* The search path of every session there: public is at its default place, or before pg_catalog. */
const char *const trap_paths[TRAP_PATHS] = {"\"$user\", public", "public, pg_catalog"};

static void
enter(const char *name, const char *path, const char *from)
{
    char *old = trap_sprung();

    free(old);
    PQfinish(trap.conn);
    trap.conn = NULL;
    PGconn *conn = pg_connect(pg_dsn("postgres"));
    if (*trap.db)
        pg_run(conn, "drop database %s with (force)", trap.db);
    snprintf(trap.db, sizeof trap.db, "%s", name);
    pg_copydb(name, from);
    pg_run(conn, "alter database %s set search_path = %s", name, path);
    PQfinish(conn);
    trap.conn = pg_connect(pg_dsn(name));
    pg_run(trap.conn, "set search_path = pg_catalog, pg_temp");
}

void
trap_enter(const char *name, const char *path)
{
    enter(name, path, "model");
}

/* queuetop -d (this database as that user) ...: the exit code, and nothing sprung. */
void
trap_run(const char *user, int code, const char *words)
{
    char *out, *err;
    int ended = proc_run("{\"from\": \"input\"}", &out, &err, "-d \"host=%s dbname=%s user=%s\" %s",
                         pg_host(), trap.db, user, words);

    trap_none_sprung(words);
    if (code == ANY ? ended > 1 : ended != code)
        fail_msg("%s: exit code %d: %s%s", words, ended, err, out);
    free(out);
    free(err);
}

/* The queue, its users, and traps for its own types. */
void
trap_install(const char *path)
{
    trap_enter("trap", path);
    trap_run("postgres", 0, "install --dry-run");
    trap_run("postgres", 0, "install");
    trap_run("postgres", 0, "install");
    trap_run("postgres", 0, "migrate");
    pg_run(trap.conn, "do $$ begin if to_regrole('app') is null then create role app login in role"
                      " queues_worker; create role ops login in role queues_operator, "
                      "queues_viewer, queues_worker; create"
                      " role look login in role queues_viewer; end if; end $$");
    pg_run(trap.conn, "begin");
    set_traps("{queues.job_state}");
    pg_run(trap.conn, "commit");
}

void
trap_installed(const char *path)
{
    static bool is_made;

    if (!is_made) {
        trap_install(path);
        PQfinish(trap.conn);
        trap.conn = pg_connect(pg_dsn("postgres"));
        pg_run(trap.conn, "alter database %s rename to installed", trap.db);
        *trap.db = 0;
        is_made = true;
    }
    enter("trap", path, "installed");
}

PGconn *
trap_db(void)
{
    return trap.conn;
}

const char *
trap_name(void)
{
    return trap.db;
}

int
trap_setup(void **state)
{
    (void)state;
    pg_start(NULL);
    make_model();
    return 0;
}

int
trap_teardown(void **state)
{
    (void)state;
    PQfinish(trap.conn);
    pg_stop();
    return 0;
}
