/*
 * See engine.h. Rows are compared as the server writes them in JSON; what differs between two runs
 * of the same act is only when it was done, so times count as steps of ten minutes from now. A test
 * first makes all rows an hour older (engine_age): what was left alone stays an hour back, what was
 * written now is now.
 */
#include "tests/e2e/engine.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "tests/harness.h"
#include "tests/server.h"

enum { COUNTS_MS = 60000, QUIET_MS = 100 };

/* --- programs --- */

static char *
reason(const char *engine)
{
    char path[PATH_MAX], line[1000], *found = NULL;

    snprintf(path, sizeof path, "%s/skipped", getenv("ENGINES") ? getenv("ENGINES") : "");
    FILE *f = fopen(path, "re");
    size_t len = strlen(engine);
    while (f && !found && fgets(line, sizeof line, f))
        if (!strncmp(line, engine, len) && line[len] == '\t')
            found = xstrndup(line + len + 1, strcspn(line + len + 1, "\n"));
    if (f)
        fclose(f);
    return found;
}

const char *
engine_dir(const char *dir, const char *engine)
{
    static char path[PATH_MAX];
    char *why = reason(engine);

    snprintf(path, sizeof path, "%s/%s", getenv("ENGINES") ? getenv("ENGINES") : "", dir);
    if (!why && access(path, X_OK) != 0)
        why = xasprintf("%s is not there; make deps-engines fetches it", path);
    if (why) {
        print_message("%s is skipped: %s\n", engine, why);
        free(why);
        skip();
    }
    return path;
}

const char *
engine_script(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/tests/adapters/%s", getenv("SRCDIR"), name);
    return path;
}

void
engine_run(const char *const *argv)
{
    struct proc p;

    proc_start(&p, argv, NULL);
    if (proc_wait(&p) != 0) {
        char *text = proc_errors(&p);
        fail_msg("%s %s: exit code %d\n%s", argv[1], argv[5] ? argv[5] : "", p.code, text);
    }
    proc_done(&p);
}

void
engine_crash(const char *const *argv)
{
    struct proc p;

    proc_start(&p, argv, NULL);
    proc_want(&p, "holding");
    proc_done(&p); /* SIGKILL */
}

void
engine_queuetop(const char *database, int code, char **out, const char *fmt, ...)
{
    char *args, *said, *err;
    va_list ap;

    va_start(ap, fmt);
    assert_true(vasprintf(&args, fmt, ap) >= 0);
    va_end(ap);
    int got = proc_run(NULL, &said, &err, "%s \"%s\"", args, pg_dsn(database));
    if (got != code)
        fail_msg("%s: exit code %d, not %d\n%s%s", args, got, code, said, err);
    if (out)
        *out = xasprintf("%s%s", said, err);
    free(said);
    free(err);
    free(args);
}

void
engine_has(char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
    free(text);
}

void
engine_has_job(char *text, const char *id)
{
    char *part = xasprintf("\"id\": \"%s\"", id);

    engine_has(text, part);
    free(part);
}

void
engine_console(const char *database, struct vt *vt)
{
    const char *argv[] = {getenv("QUEUETOP"), pg_dsn(database), NULL};

    vt_spawn(vt, 30, 120, argv, NULL);
    vt_want(vt, "ready");
    vt_want(vt, "live");
}

void
engine_step(struct vt *vt, const struct engine_step *s)
{
    char *filter = xasprintf("filter id:%s", s->id);

    vt_keys(vt, "2 / C-u");
    vt_type(vt, filter + strlen("filter "));
    vt_keys(vt, "enter");
    vt_want(vt, filter);
    vt_want(vt, "1 of 1");
    vt_keys(vt, s->key);
    for (size_t i = 0; i < sizeof s->asks / sizeof *s->asks && s->asks[i]; i++)
        vt_want(vt, s->asks[i]);
    vt_keys(vt, s->answer);
    vt_want(vt, s->said);
    free(filter);
}

void
engine_steps(struct vt *vt, const struct engine_step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        engine_step(vt, &steps[i]);
}

/* Returns the text after a queue's name in its row of the table, NULL while there is no such row.
 * Only the cursor and the severity may come before the name, so the line "mails is broken" above
 * the table does not count. The caller frees the text. */
static char *
behind_name(const struct vt *vt, const char *name)
{
    for (int row = 0; row < vt->rows; row++) {
        const char *p = vt_row(vt, row);
        while (*p && !isalnum((unsigned char)*p))
            p++;
        if (!strncmp(p, name, strlen(name)) && !strncmp(p + strlen(name), "  ", 2))
            return xstrdup(p + strlen(name));
    }
    return NULL;
}

/* Copies the numbers of a queue's row to `said`, a blank after each. `said` is empty while there is
 * no such row. */
static void
read_counts(const struct vt *vt, const char *name, char *said, size_t size)
{
    char *line = behind_name(vt, name), *rest = line;

    said[0] = 0;
    for (char *word; rest && (word = strsep(&rest, " "));)
        if (*word && !strchr("smhd", word[strlen(word) - 1])) /* skips an age */
            snprintf(said + strlen(said), size - strlen(said), "%s ",
                     strcmp(word, "·") ? word : "0");
    free(line);
}

void
engine_counts(struct vt *vt, const char *queue, const char *numbers)
{
    char said[200] = "";
    int64_t deadline = clock_ms() + COUNTS_MS;

    vt_keys(vt, "1");
    vt_want(vt, "READY ");
    do { /* the next refresh shows what an act changed */
        vt_settle(vt, QUIET_MS);
        read_counts(vt, queue, said, sizeof said);
    } while (strncmp(said, numbers, strlen(numbers)) != 0 && clock_ms() < deadline);
    if (strncmp(said, numbers, strlen(numbers)) != 0)
        fail_msg("%s: %s, not %s\n%s", queue, said, numbers, vt_screen_text(vt));
}

/* --- rows --- */

void
engine_drop(const char *databases)
{
    PGconn *c = pg_connect(pg_dsn("postgres"));
    char *list = xstrdup(databases), *rest = list;

    for (char *name; (name = strsep(&rest, " "));)
        pg_run(c, "drop database \"%s\" with (force)", name);
    free(list);
    PQfinish(c);
}

void
engine_age(PGconn *conn, const char *tables)
{
    PGresult *r = pg_query(
        conn,
        "select format('update %%s set %%s', t, string_agg(format('%%1$I = %%1$I - interval "
        "''1 h''', attname), ', ')) from unnest(string_to_array('%s', ' ')) t join "
        "pg_attribute on attrelid = t::regclass and atttypid = 'timestamptz'::regtype and "
        "attnum > 0 and not attisdropped and attgenerated = '' group by t",
        tables);

    for (int i = 0; i < PQntuples(r); i++)
        pg_run(conn, "%s", PQgetvalue(r, i, 0));
    PQclear(r);
}

char *
engine_rows(PGconn *conn, const char *table, const char *order)
{
    PGresult *r = pg_query(
        conn,
        "select string_agg((select jsonb_object_agg(key, case when value #>> '{}' ~ "
        "'^\\d{4}-\\d\\d-\\d\\dT\\d\\d:' then to_jsonb('now + 10 min * ' || round(extract(epoch "
        "from (value #>> '{}')::timestamptz - now()) / 600)) else value end) from "
        "jsonb_each(to_jsonb(t)))::text, E'\\n' order by %s) from %s t",
        order, table);
    char *text = xstrdup(PQgetvalue(r, 0, 0));

    PQclear(r);
    return text;
}

void
engine_same(const char *a, const char *b, const char *tables)
{
    PGconn *one = pg_connect(pg_dsn(a)), *two = pg_connect(pg_dsn(b));
    char *list = xstrdup(tables), *rest = list;

    for (char *table; (table = strsep(&rest, " "));) {
        char *order = strchr(table, ':');
        *order++ = 0;
        char *left = engine_rows(one, table, order), *right = engine_rows(two, table, order);
        if (strcmp(left, right) != 0)
            fail_msg("%s differs.\nby queuetop:\n%s\nby the library:\n%s", table, left, right);
        free(left);
        free(right);
    }
    free(list);
    PQfinish(one);
    PQfinish(two);
}
