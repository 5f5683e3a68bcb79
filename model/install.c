/* Installing the core schema. The scripts of sql/core run in the order of their names in one
 * transaction; the report is what differs in the catalogs before and after, read in that same
 * transaction, so it also holds for a dry run, which ends in ROLLBACK. */
#include "model/install.h"

#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/mem.h"
#include "model/queue.h"
#include "model/rows.h"

enum { SCRIPT_MS = 600000, PLAIN_TABLES = 2, ADOPT_PARAMS = 5, ADOPT_FIRST = 4, ADOPT_ALL = 6 };

struct state {
    int has_schema, has_meta, tables, functions, has_viewer, has_worker, has_operator;
    char functions_md5[33], tables_md5[33];
    char denied[300]; /* why this user may not install; "" = may */
    int version;      /* 0 = nothing installed */
    int protocol;
};

struct job {
    struct db *db;
    struct loop *loop;
    const struct install_options *o;
    void (*say)(void *ctx, const char *line);
    void *ctx;
    struct err *e;
    bool adopts; /* there are plain tables, and they are wanted */
    bool fresh;  /* the schema is made now */
};

static const char *
text_of(const char *name)
{
    for (int i = 0; i < sql_console_n; i++)
        if (strcmp(sql_console[i].name, name) == 0)
            return sql_console[i].text;
    abort(); /* the build embeds sql/console whole */
}

static void
say(const struct job *j, struct buf *line)
{
    j->say(j->ctx, line->data);
    buf_free(line);
}

static void
on_notice(void *ctx, const char *severity, const char *text)
{
    const struct job *j = ctx;
    struct buf line = {0};

    buf_printf(&line, "%s: %s", severity, text);
    say(j, &line);
}

/* --- state --- */

struct text_row {
    const char *functions_md5, *tables_md5, *denied;
    int has_schema, has_meta, tables, functions, has_viewer, has_worker, has_operator;
};

#define F(field) offsetof(struct text_row, field)
static const struct field state_fields[] = {
    {"has_schema",    F_BOOL, F(has_schema),    false},
    {"has_meta",      F_BOOL, F(has_meta),      false},
    {"denied",        F_STR,  F(denied),        false},
    {"tables",        F_INT,  F(tables),        false},
    {"functions",     F_INT,  F(functions),     false},
    {"functions_md5", F_STR,  F(functions_md5), false},
    {"tables_md5",    F_STR,  F(tables_md5),    false},
    {"has_viewer",    F_BOOL, F(has_viewer),    false},
    {"has_worker",    F_BOOL, F(has_worker),    false},
    {"has_operator",  F_BOOL, F(has_operator),  false},
};
#undef F

static bool
read_state(struct result *r, struct state *s, struct err *e)
{
    struct rowset set;

    if (!rowset_decode(r, state_fields, sizeof state_fields / sizeof *state_fields,
                       sizeof(struct text_row), &set, e))
        return false;
    bool ok = set.n == 1;
    if (ok) {
        const struct text_row *t = set.rows;
        *s = (struct state){.has_schema = t->has_schema,
                            .has_meta = t->has_meta,
                            .tables = t->tables,
                            .functions = t->functions,
                            .has_viewer = t->has_viewer,
                            .has_worker = t->has_worker,
                            .has_operator = t->has_operator};
        memccpy(s->functions_md5, t->functions_md5, 0, sizeof s->functions_md5 - 1);
        memccpy(s->denied, t->denied, 0, sizeof s->denied - 1);
        memccpy(s->tables_md5, t->tables_md5, 0, sizeof s->tables_md5 - 1);
    }
    rowset_free(&set);
    return ok || fail(e, ERR_DATA, "the state of the schema can't be read");
}

static void
read_version(const struct result *r, struct state *s)
{
    s->version = (int)result_int(r, 0, result_col(r, "version"), 0);
    s->protocol = (int)result_int(r, 0, result_col(r, "protocol"), 0);
}

static void
names(const struct install_options *o, struct db_param p[static 4])
{
    p[0] = (struct db_param){.value = o->schema};
    p[1] = (struct db_param){.value = o->viewer};
    p[2] = (struct db_param){.value = o->worker};
    p[3] = (struct db_param){.value = o->operator_};
}

static bool
state_before(const struct job *j, struct state *s)
{
    struct db_param p[4];
    struct db_reply reply;

    names(j->o, p);
    const struct db_stmt state = {text_of("install_state"), 4, p};
    bool ok = db_do(j->db, j->loop, &(struct db_call){.stmts = &state, .n = 1}, &reply, j->e) &&
              read_state(db_take(&reply, 0), s, j->e);
    db_reply_done(&reply);
    if (ok && *s->denied)
        return fail(j->e, ERR_DENIED, "%s", s->denied);
    if (!ok || !s->has_meta)
        return ok;
    const struct db_stmt version = {.sql = text_of("install_version")};
    ok = db_do(j->db, j->loop, &(struct db_call){.stmts = &version, .n = 1}, &reply, j->e);
    if (ok)
        read_version(reply.results[0], s);
    db_reply_done(&reply);
    return ok;
}

/* --- plain tables --- */

struct adopt_row {
    const char *refused, *line;
    int found;
};

static const struct field adopt_fields[] = {
    {"found",   F_BOOL, offsetof(struct adopt_row, found),   false},
    {"refused", F_STR,  offsetof(struct adopt_row, refused), false},
    {"line",    F_STR,  offsetof(struct adopt_row, line),    false},
};

static const char *
adopt_from(const struct install_options *o)
{
    return o->adopt_from ? o->adopt_from : o->schema;
}

static struct db_stmt
adopt_begin(const struct job *j, struct db_param p[static ADOPT_PARAMS])
{
    const char *const values[ADOPT_PARAMS] = {
        adopt_from(j->o), j->o->adopt_zone ? j->o->adopt_zone : "",
        j->o->adopt_states ? j->o->adopt_states : "", j->o->schema, j->fresh ? "true" : "false"};

    for (int i = 0; i < ADOPT_PARAMS; i++)
        p[i] = (struct db_param){.value = values[i]};
    return (struct db_stmt){text_of("adopt_begin"), ADOPT_PARAMS, p};
}

/* Takes the rows of adopt_report: found, why not, and the lines, which are said where asked. */
static bool
read_report(struct job *j, struct result *r, bool *found, struct buf *refused, bool aloud)
{
    struct rowset set;

    if (!rowset_decode(r, adopt_fields, sizeof adopt_fields / sizeof *adopt_fields,
                       sizeof(struct adopt_row), &set, j->e))
        return false;
    const struct adopt_row *rows = set.rows;
    *found = set.n > 0 && rows[0].found == 1;
    if (set.n > 0)
        buf_str(refused, rows[0].refused);
    for (int i = 0; i < set.n; i++)
        if (*rows[i].line && (aloud || *rows[0].refused))
            j->say(j->ctx, rows[i].line);
    rowset_free(&set);
    return true;
}

/* What to say of a look: where it is an error, false. */
static bool
judge(struct job *j, bool found, const struct buf *refused)
{
    const char *why = refused->data ? refused->data : "";

    j->adopts = found && j->o->adopt;
    if (found && !j->o->adopt)
        return fail(
            j->e, ERR_REFUSED,
            "schema \"%s\" holds the plain tables of another queue: --adopt takes them over, "
            "--adopt --dry-run says what would become of them; or choose another --schema",
            j->o->schema);
    if (found && *why)
        return fail(j->e, ERR_REFUSED, "%s", why);
    if (!found && j->o->adopt)
        j->say(j->ctx, "nothing to adopt: the plain tables queue and work_queue are not there");
    return true;
}

static bool
look_for_plain_tables(struct job *j)
{
    struct db_param p[ADOPT_PARAMS];
    const struct db_stmt stmts[] = {
        adopt_begin(j, p), {.sql = text_of("adopt_look")}, {.sql = text_of("adopt_report")}};
    struct db_reply reply;
    struct buf refused = {0};
    bool found = false;
    const struct db_call call = {.stmts = stmts, .n = 3, .statement_timeout_ms = SCRIPT_MS};

    bool ok = db_do(j->db, j->loop, &call, &reply, j->e) &&
              read_report(j, db_take(&reply, 2), &found, &refused, j->o->dry_run || !j->o->adopt);
    db_reply_done(&reply);
    ok = ok && judge(j, found, &refused);
    buf_free(&refused);
    return ok;
}

static bool
may_install(const struct job *j, const struct state *s)
{
    const char *schema = j->o->schema;

    if (!s->has_meta && j->o->migrate)
        return fail(j->e, ERR_REFUSED,
                    "nothing is installed in schema \"%s\": `queuetop install` does that", schema);
    if (!s->has_meta && j->adopts && !strcmp(schema, adopt_from(j->o)) && s->tables > PLAIN_TABLES)
        return fail(
            j->e, ERR_REFUSED,
            "schema \"%s\" holds %d more tables than the two: adopt into a schema of its own "
            "(--schema NEW --adopt-from %s)",
            schema, s->tables - PLAIN_TABLES, schema);
    if (!s->has_meta && !j->adopts && s->tables > 0)
        return fail(j->e, ERR_REFUSED,
                    "schema \"%s\" holds tables of others (%d): choose one of its own (--schema)",
                    schema, s->tables);
    if (s->protocol > QUEUE_PROTOCOL)
        return fail(j->e, ERR_REFUSED,
                    "schema \"%s\" speaks protocol %d, this program %d: use the newer program",
                    schema, s->protocol, QUEUE_PROTOCOL);
    return true;
}

/* --- running --- */

/* begin, the plain tables aside, the scripts, their jobs, the state, the version, the report */
static int
list_scripts(const struct job *j, struct db_stmt *stmts, struct db_param *p, struct db_param *ap)
{
    static const char *const aside[] = {"adopt_lock", "adopt_look", "adopt_aside"};
    int n = 0;

    names(j->o, p);
    stmts[n++] = (struct db_stmt){text_of("install_begin"), 4, p};
    if (j->adopts) {
        stmts[n++] = adopt_begin(j, ap);
        for (int i = 0; i < 3; i++)
            stmts[n++].sql = text_of(aside[i]);
    }
    for (int i = 0; i < sql_core_n; i++)
        stmts[n++].sql = sql_core[i].text;
    if (j->adopts)
        stmts[n++].sql = text_of("adopt_move");
    stmts[n++] = (struct db_stmt){text_of("install_state"), 4, p};
    stmts[n++].sql = text_of("install_version");
    if (j->adopts)
        stmts[n++].sql = text_of("adopt_report");
    return n;
}

/* Which script it was that failed. */
static void
name_script(const struct job *j, int at)
{
    int i = at - 1 - (j->adopts ? ADOPT_FIRST : 0);

    if (i >= 0 && i < sql_core_n)
        fail_in(j->e, "%s", sql_core[i].name);
}

static bool
run_scripts(struct job *j, struct state *after)
{
    struct db_param p[4], ap[ADOPT_PARAMS];
    struct db_reply reply;
    struct buf refused = {0};
    bool found;
    struct db_stmt *stmts = xcalloc((size_t)sql_core_n + 3 + ADOPT_ALL, sizeof *stmts);
    int n = list_scripts(j, stmts, p, ap), state = n - 2 - (j->adopts ? 1 : 0);
    const struct db_call call = {.stmts = stmts,
                                 .n = n,
                                 .script = true,
                                 .dry = j->o->dry_run,
                                 .statement_timeout_ms = SCRIPT_MS};
    bool ok = db_do(j->db, j->loop, &call, &reply, j->e);
    if (ok) {
        ok = read_state(db_take(&reply, state), after, j->e);
        read_version(reply.results[state + 1], after);
        if (ok && j->adopts)
            ok = read_report(j, db_take(&reply, n - 1), &found, &refused, true);
    } else {
        name_script(j, reply.failed_at);
    }
    if (reply.in_doubt)
        fail_in(j->e, "the answer was lost, it may be installed (run it again to see)");
    db_reply_done(&reply);
    buf_free(&refused);
    free(stmts);
    return ok;
}

static void
say_role(const struct job *j, const char *role, bool before, bool after)
{
    const char *word = before  ? "was there"
                       : after ? j->o->dry_run ? "would be made" : "made"
                               : "is missing and could not be made: nothing "
                                 "was granted to it";
    struct buf line = {0};

    buf_printf(&line, "role %s: %s", role, word);
    say(j, &line);
}

static void
report(const struct job *j, const struct state *b, const struct state *a)
{
    const char *would = j->o->dry_run ? "would be " : "";
    struct buf line = {0};
    bool is_same = strcmp(b->functions_md5, a->functions_md5) == 0 &&
                   strcmp(b->tables_md5, a->tables_md5) == 0;

    say_role(j, j->o->viewer, b->has_viewer == 1, a->has_viewer == 1);
    say_role(j, j->o->worker, b->has_worker == 1, a->has_worker == 1);
    say_role(j, j->o->operator_, b->has_operator == 1, a->has_operator == 1);
    buf_printf(&line, "schema %s: ", j->o->schema);
    if (!b->has_meta)
        buf_printf(&line, "version %d %s%s", a->version, would, "installed");
    else if (b->version != a->version)
        buf_printf(&line, "version %d %s%s from version %d", a->version, would, "made", b->version);
    else
        buf_printf(&line, "version %d %s", a->version,
                   is_same         ? "is there, nothing to change"
                   : j->o->dry_run ? "would be brought up "
                                     "to date"
                                   : "brought up to date");
    buf_printf(&line, " (%d tables and views, %d functions)", a->tables, a->functions);
    say(j, &line);
    if (j->o->dry_run)
        j->say(j->ctx, "dry run: nothing was changed");
}

bool
install_run(struct db *db, struct loop *l, const struct install_options *o,
            void (*say_fn)(void *ctx, const char *line), void *ctx, struct err *e)
{
    struct job j = {.db = db, .loop = l, .o = o, .say = say_fn, .ctx = ctx, .e = e};
    struct state before = {0}, after = {0};

    db_on_notice(db, on_notice, &j);
    bool ok = state_before(&j, &before);
    j.fresh = !before.has_meta;
    bool looks = !o->migrate && (o->adopt || (j.fresh && before.tables > 0));
    ok = ok && (!looks || look_for_plain_tables(&j)) && may_install(&j, &before);
    bool stops = j.adopts && o->dry_run; /* a trial would lock the old tables for its time */
    ok = ok && (stops || run_scripts(&j, &after));
    db_on_notice(db, NULL, NULL);
    if (ok && stops)
        j.say(ctx, "dry run: nothing was changed");
    else if (ok)
        report(&j, &before, &after);
    return ok;
}
