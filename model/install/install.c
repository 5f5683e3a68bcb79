/* Installing the core schema. First a look: if scripts, roles and catalogs are what the last
 * installation left, there is nothing to do. Otherwise the scripts of sql/core run in the order of
 * their names in one transaction; the report is what differs in the catalogs before and after, read
 * in that same transaction, so it also holds for a dry run, which ends in ROLLBACK. */
#include "model/install/install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/base/mem.h"
#include "model/db/rows.h"
#include "model/install/install_parts.h"
#include "model/install/lock_wait.h"
#include "model/worker/queue.h"

enum {
    SCRIPT_MS = 600000,
    PLAIN_TABLES = 2,
    OLDEST_SERVER = 13,
    STATE_PARAMS = 5, /* the schema and the roles */
    BEGIN_PARAMS = 10,
    SHOWN_MOST = 5, /* rights of others that a refusal names */
    ADOPT_PARAMS = 5,
    MORE_STATEMENTS = 13 /* beside the scripts and migrations */
};

struct install_state {
    int has_schema, has_meta, tables, functions, has_viewer, has_worker, has_operator, has_pusher;
    char functions_md5[33], tables_md5[33];
    char denied[300]; /* why this user may not install; "" = may */
    int version;      /* 0 = nothing installed */
    int protocol;
    bool remembers;     /* its meta table has columns for the next two */
    char made_from[17]; /* install_made_from() of the last installation; "" = not known */
    char catalogs[66];  /* both md5 after it */
};

struct install_job {
    struct db *db;
    struct loop *loop;
    const struct install_options *o;
    void (*say)(void *ctx, const char *line);
    void *ctx;
    struct err *e;
    bool adopts; /* there are plain tables, and the user wants to adopt them */
    bool fresh;  /* the schema is made now */
    int version; /* the version that was found; 0 = nothing is installed */
    int due;     /* migrations */
    bool stops;  /* a dry run that ends after the look, because a run would lock tables */
    struct install_state before, after;
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
say_line(const struct install_job *j, struct buf *line)
{
    j->say(j->ctx, line->data);
    buf_free(line);
}

static void
on_notice(void *ctx, const char *severity, const char *text)
{
    const struct install_job *j = ctx;
    struct buf line = {0};

    buf_printf(&line, "%s: %s", severity, text);
    say_line(j, &line);
}

/* --- state --- */

struct text_row {
    const char *functions_md5, *tables_md5, *denied;
    int has_schema, has_meta, tables, functions, has_viewer, has_worker, has_operator, has_pusher;
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
    {"has_pusher",    F_BOOL, F(has_pusher),    false},
};
#undef F

static bool
read_state(struct result *r, struct install_state *s, struct err *e)
{
    struct rowset set;

    if (!rowset_decode(r, state_fields, sizeof state_fields / sizeof *state_fields,
                       sizeof(struct text_row), &set, e))
        return false;
    bool ok = set.n == 1;
    if (ok) {
        const struct text_row *t = set.rows;
        *s = (struct install_state){.has_schema = t->has_schema,
                                    .has_meta = t->has_meta,
                                    .tables = t->tables,
                                    .functions = t->functions,
                                    .has_viewer = t->has_viewer,
                                    .has_worker = t->has_worker,
                                    .has_operator = t->has_operator,
                                    .has_pusher = t->has_pusher};
        memccpy(s->functions_md5, t->functions_md5, 0, sizeof s->functions_md5 - 1);
        memccpy(s->denied, t->denied, 0, sizeof s->denied - 1);
        memccpy(s->tables_md5, t->tables_md5, 0, sizeof s->tables_md5 - 1);
    }
    rowset_free(&set);
    return ok || fail(e, ERR_DATA, "the state of the schema can't be read");
}

static void
read_version(const struct result *r, struct install_state *s)
{
    s->version = (int)result_int(r, 0, result_col(r, "version"), 0);
    s->protocol = (int)result_int(r, 0, result_col(r, "protocol"), 0);
    s->remembers = result_text(r, 0, result_col(r, "remembers"))[0] == 't';
    snprintf(s->made_from, sizeof s->made_from, "%s",
             result_text(r, 0, result_col(r, "made_from")));
    snprintf(s->catalogs, sizeof s->catalogs, "%s", result_text(r, 0, result_col(r, "catalogs")));
}

static void
catalogs_of(const struct install_state *s, char text[static 66])
{
    snprintf(text, 66, "%s %s", s->functions_md5, s->tables_md5);
}

static void
names(const struct install_options *o, struct db_param p[static STATE_PARAMS])
{
    p[0] = (struct db_param){.value = o->schema};
    p[1] = (struct db_param){.value = o->viewer};
    p[2] = (struct db_param){.value = o->worker};
    p[3] = (struct db_param){.value = o->operator_};
    p[4] = (struct db_param){.value = o->pusher};
}

/* Checks the version of the server first, because an old server would reject a later statement with
 * a message that does not name the cause. */
static bool
server_is_new_enough(const struct install_job *j)
{
    const struct db_stmt stmt = {.sql = text_of("install_server")};
    struct db_reply reply;
    bool ok = db_do(j->db, j->loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, j->e);

    if (ok) {
        const char *version = result_text(reply.results[0], 0, 0);
        if (strtol(version, NULL, 10) < OLDEST_SERVER)
            ok = fail(j->e, ERR_REFUSED, "the queue needs PostgreSQL 13 or newer, this is %s",
                      version);
    }
    db_reply_done(&reply);
    return ok;
}

static bool
state_before(const struct install_job *j, struct install_state *s)
{
    struct db_param p[STATE_PARAMS];
    struct db_reply reply;

    names(j->o, p);
    const struct db_stmt state = {
        .sql = text_of("install_state"), .nparams = STATE_PARAMS, .params = p};
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
adopt_begin(const struct install_job *j, struct db_param p[static ADOPT_PARAMS])
{
    const char *const values[ADOPT_PARAMS] = {
        adopt_from(j->o), j->o->adopt_zone ? j->o->adopt_zone : "",
        j->o->adopt_states ? j->o->adopt_states : "", j->o->schema, j->fresh ? "true" : "false"};

    for (int i = 0; i < ADOPT_PARAMS; i++)
        p[i] = (struct db_param){.value = values[i]};
    return (struct db_stmt){.sql = text_of("adopt_begin"), .nparams = ADOPT_PARAMS, .params = p};
}

/* Takes the rows of adopt_report: whether plain tables were found, why they can't be adopted, and
 * the lines of the report, which are printed if `aloud` is set or adopting is refused. */
static bool
read_report(struct install_job *j, struct result *r, bool *found, struct buf *refused, bool aloud)
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

/* Decides by the look for plain tables whether they are adopted. False = the installation is
 * refused; *e says why. */
static bool
judge_tables(struct install_job *j, bool found, const struct buf *refused)
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
look_for_plain_tables(struct install_job *j)
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
    ok = ok && judge_tables(j, found, &refused);
    buf_free(&refused);
    return ok;
}

static void
add_right(struct buf *b, const struct result *r, int i)
{
    buf_printf(b, "%s has %s on %s: %s", result_text(r, i, result_col(r, "role")),
               result_text(r, i, result_col(r, "privilege")),
               result_text(r, i, result_col(r, "object")), result_text(r, i, result_col(r, "run")));
}

/* Refuses a schema in which code of others could run as this user. With --force the scripts warn.
 */
static bool
is_ours(const struct install_job *j)
{
    if (!strcmp(j->o->schema, "public")) /* no place for a queue: the first script says so */
        return true;
    const struct db_param p[] = {{.value = j->o->schema}, {.value = "true"}};
    const struct db_stmt stmt = {.sql = text_of("code_of_others"), .nparams = 2, .params = p};
    const struct db_call call = {.stmts = &stmt, .n = 1, .search_path = "pg_catalog"};
    struct db_reply reply;
    struct buf rights = {0};

    bool ok = db_do(j->db, j->loop, &call, &reply, j->e);
    int n = ok ? result_rows(reply.results[0]) : 0;
    if (n > 0 && !j->o->force) {
        const struct result *r = reply.results[0];
        for (int i = 0; i < n && i < SHOWN_MOST; i++) {
            buf_str(&rights, i > 0 ? "; " : "");
            add_right(&rights, r, i);
        }
        if (n > SHOWN_MOST)
            buf_printf(&rights, "; and %d more", n - SHOWN_MOST);
        ok = fail(j->e, ERR_REFUSED,
                  "code of others could run as %s in schema \"%s\". Take these rights away first "
                  "(--force installs in spite of them): %s",
                  result_text(r, 0, result_col(r, "runs_as")), j->o->schema, rights.data);
    }
    buf_free(&rights);
    db_reply_done(&reply);
    return ok;
}

static bool
may_install(const struct install_job *j, const struct install_state *s)
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
    if (s->has_meta && (!s->remembers || s->version < BASE_VERSION))
        return fail(j->e, ERR_REFUSED,
                    "schema \"%s\" was made by a development version, which can't be upgraded: "
                    "`queuetop uninstall`, then install",
                    schema);
    if (s->version > install_newest(j->o))
        return fail(j->e, ERR_REFUSED,
                    "schema \"%s\" has version %d, this program installs %d: use the newer program",
                    schema, s->version, install_newest(j->o));
    if (s->protocol > QUEUE_PROTOCOL)
        return fail(j->e, ERR_REFUSED,
                    "schema \"%s\" speaks protocol %d, this program %d: use the newer program",
                    schema, s->protocol, QUEUE_PROTOCOL);
    return true;
}

/* --- running --- */

/* The statements of one attempt, and the texts that were made for it. */
struct install_list {
    struct db_stmt *stmts;
    int n;
    const char **names; /* the name of a statement, for its error; NULL = no name */
    char **made;        /* texts of our own, freed with the list */
    int nmade;
    struct db_param begin[BEGIN_PARAMS], adopt[ADOPT_PARAMS], version;
    char wait[12], seen[12], newest[12];
};

static void
add_statement(struct install_list *l, const char *name, const char *sql)
{
    l->names[l->n] = name;
    l->stmts[l->n++] = (struct db_stmt){.sql = sql};
}

static void
add_made(struct install_list *l, const char *name, char *sql)
{
    l->made[l->nmade++] = sql;
    if (*sql)
        add_statement(l, name, sql);
}

static void
add_migrations(const struct install_job *j, struct install_list *l, bool tables)
{
    int n;
    const struct sql_text *m = install_migrations(j->o, &n);

    for (int i = n - j->due; i < n; i++)
        add_made(l, m[i].name, install_part(&m[i], tables));
}

static void
add_begin(const struct install_job *j, struct install_list *l, int lock_ms)
{
    names(j->o, l->begin);
    snprintf(l->wait, sizeof l->wait, "%d", lock_ms);
    snprintf(l->seen, sizeof l->seen, "%d", j->version);
    l->begin[5] = (struct db_param){.value = l->wait};
    l->begin[6] = (struct db_param){.value = l->seen};
    l->begin[7] = (struct db_param){.value = j->due > 0 ? "off" : "on"};
    l->begin[8] = (struct db_param){.value = j->due > 0 ? "on" : "off"};
    l->begin[9] = (struct db_param){.value = j->o->force ? "on" : "off"};
    l->stmts[l->n++] = (struct db_stmt){
        .sql = text_of("install_begin"), .nparams = BEGIN_PARAMS, .params = l->begin};
    l->stmts[l->n++] =
        (struct db_stmt){.sql = text_of("install_functions"), .nparams = 1, .params = l->begin};
}

/* Adds, in this order: the statements that rename the plain tables, the first script, the part of
 * each migration before `-- tables`, the other scripts, the move of the jobs, the part of each
 * migration behind `-- tables`. */
static void
add_scripts(const struct install_job *j, struct install_list *l)
{
    static const char *const aside[] = {"adopt_lock", "adopt_look", "adopt_aside"};

    if (!j->fresh)
        add_statement(l, NULL, text_of("install_check"));
    if (j->adopts) {
        l->stmts[l->n++] = adopt_begin(j, l->adopt);
        for (int i = 0; i < 3; i++)
            add_statement(l, NULL, text_of(aside[i]));
    }
    for (int i = 0; i < sql_core_n; i++) {
        if (i == 1) /* behind 00_rights, which looks whose code could run */
            add_migrations(j, l, false);
        if (j->fresh)
            add_statement(l, sql_core[i].name, sql_core[i].text);
        else
            add_made(l, sql_core[i].name, install_without_tables(sql_core[i].text));
    }
    if (j->adopts)
        add_statement(l, NULL, text_of("adopt_move"));
    add_migrations(j, l, true);
    if (j->due > 0 || (j->fresh && install_newest(j->o) > BASE_VERSION)) {
        snprintf(l->newest, sizeof l->newest, "%d", install_newest(j->o));
        l->version = (struct db_param){.value = l->newest};
        l->stmts[l->n++] = (struct db_stmt){
            .sql = text_of("install_migrated"), .nparams = 1, .params = &l->version};
    }
}

/* Returns the index of the statement that reads the state. Version and report are read behind it.
 */
static int
list_fill(const struct install_job *j, struct install_list *l, int lock_ms)
{
    int n;

    (void)install_migrations(j->o, &n);
    size_t most = (size_t)sql_core_n + 2 * (size_t)n + MORE_STATEMENTS;
    *l = (struct install_list){.stmts = xcalloc(most, sizeof *l->stmts),
                               .names = xcalloc(most, sizeof *l->names),
                               .made = xcalloc(most, sizeof *l->made)};
    add_begin(j, l, lock_ms);
    add_scripts(j, l);
    int state = l->n;
    l->stmts[l->n++] = (struct db_stmt){
        .sql = text_of("install_state"), .nparams = STATE_PARAMS, .params = l->begin};
    add_statement(l, NULL, text_of("install_version"));
    if (j->adopts)
        add_statement(l, NULL, text_of("adopt_report"));
    return state;
}

static void
list_free(struct install_list *l)
{
    for (int i = 0; i < l->nmade; i++)
        free(l->made[i]);
    free(l->made);
    free(l->names);
    free(l->stmts);
}

static bool
take_answers(struct install_job *j, struct db_reply *reply, int state)
{
    struct buf refused = {0};
    bool found, ok = read_state(db_take(reply, state), &j->after, j->e);

    read_version(reply->results[state + 1], &j->after);
    if (ok && j->adopts)
        ok = read_report(j, db_take(reply, state + 2), &found, &refused, true);
    buf_free(&refused);
    return ok;
}

static bool
run_scripts(struct install_job *j, int lock_ms)
{
    struct db_reply reply;
    struct install_list l;
    int state = list_fill(j, &l, lock_ms);
    const struct db_call call = {.stmts = l.stmts,
                                 .n = l.n,
                                 .script = true,
                                 .dry = j->o->dry_run,
                                 .statement_timeout_ms = SCRIPT_MS};
    bool ok = db_do(j->db, j->loop, &call, &reply, j->e);

    if (ok)
        ok = take_answers(j, &reply, state);
    else if (reply.failed_at >= 0 && l.names[reply.failed_at])
        fail_in(j->e, "%s", l.names[reply.failed_at]);
    if (reply.in_doubt)
        fail_in(j->e, "the answer was lost, it may be installed (run it again to see)");
    db_reply_done(&reply);
    list_free(&l);
    return ok;
}

/* Notes what was installed from what, so that the next installation sees that there is nothing to
 * do. If this fails, the next one does everything again, which does no harm. */
static bool
remember(const struct install_job *j)
{
    char made_from[17], catalogs[66];
    struct db_reply reply;

    install_made_from(j->o, made_from);
    catalogs_of(&j->after, catalogs);
    const struct db_param p[] = {{.value = made_from}, {.value = catalogs}};
    const struct db_stmt stmt = {.sql = text_of("install_done"), .nparams = 2, .params = p};
    bool ok = db_do(j->db, j->loop, &(struct db_call){.stmts = &stmt, .n = 1}, &reply, j->e);
    db_reply_done(&reply);
    return ok || fail_in(j->e, "it is installed, but that could not be noted");
}

static void
say_role(const struct install_job *j, const char *role, bool before, bool after)
{
    const char *word = before  ? "was there"
                       : after ? j->o->dry_run ? "would be made" : "made"
                               : "is missing and could not be made: nothing "
                                 "was granted to it";
    struct buf line = {0};

    buf_printf(&line, "role %s: %s", role, word);
    say_line(j, &line);
}

static void
report_changes(const struct install_job *j, const struct install_state *b,
               const struct install_state *a)
{
    const char *would = j->o->dry_run ? "would be " : "";
    struct buf line = {0};
    bool is_same = strcmp(b->functions_md5, a->functions_md5) == 0 &&
                   strcmp(b->tables_md5, a->tables_md5) == 0;

    say_role(j, j->o->viewer, b->has_viewer == 1, a->has_viewer == 1);
    say_role(j, j->o->worker, b->has_worker == 1, a->has_worker == 1);
    say_role(j, j->o->operator_, b->has_operator == 1, a->has_operator == 1);
    say_role(j, j->o->pusher, b->has_pusher == 1, a->has_pusher == 1);
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
    say_line(j, &line);
    if (j->o->dry_run)
        j->say(j->ctx, "dry run: nothing was changed");
}

/* True if the schema is what the last installation made, and nobody has changed it since. */
static bool
is_installed(const struct install_job *j)
{
    const struct install_state *s = &j->before;
    char made_from[17], catalogs[66];

    install_made_from(j->o, made_from);
    catalogs_of(s, catalogs);
    return s->has_meta && !j->adopts && !strcmp(s->made_from, made_from) &&
           !strcmp(s->catalogs, catalogs) && s->has_viewer && s->has_worker && s->has_operator &&
           s->has_pusher;
}

static void
say_migrations(const struct install_job *j)
{
    int n;
    const struct sql_text *m = install_migrations(j->o, &n);

    for (int i = n - j->due; i < n; i++) {
        struct buf line = {0};
        buf_printf(&line, "migration %s%s", m[i].name,
                   j->o->dry_run ? ": would be run (it is not tried, it may lock tables)" : "");
        say_line(j, &line);
    }
}

/* One attempt. It begins with a look, because another installer may have finished meanwhile. */
static bool
attempt(void *ctx, int lock_ms, struct err *e)
{
    struct install_job *j = ctx;
    const struct install_options *o = j->o;

    j->e = e;
    j->before = j->after = (struct install_state){0};
    if (!state_before(j, &j->before))
        return false;
    j->fresh = !j->before.has_meta;
    j->version = j->before.version;
    bool looks = !o->migrate && (o->adopt || (j->fresh && j->before.tables > 0));
    if (!is_ours(j) || (looks && !look_for_plain_tables(j)) || !may_install(j, &j->before))
        return false;
    j->due = j->fresh ? 0 : install_newest(o) - j->version;
    bool stops = o->dry_run && (j->adopts || j->due > 0); /* to run the statements would lock
                                                             tables */
    if (stops || is_installed(j)) {
        j->after = j->before;
        j->stops = stops;
        return true;
    }
    return run_scripts(j, lock_ms) && (o->dry_run || remember(j));
}

bool
install_run(struct db *db, struct loop *l, const struct install_options *o,
            void (*say_fn)(void *ctx, const char *line), void *ctx, struct err *e)
{
    struct install_job j = {.db = db, .loop = l, .o = o, .say = say_fn, .ctx = ctx, .e = e};
    const struct lock_wait wait = {
        db, l, {o->schema, o->adopt ? adopt_from(o) : NULL},
          attempt, &j
    };

    db_on_notice(db, on_notice, &j);
    bool ok = server_is_new_enough(&j) && lock_wait_run(&wait, e);
    db_on_notice(db, NULL, NULL);
    if (!ok)
        return false;
    say_migrations(&j);
    if (j.stops)
        say_fn(ctx, "dry run: nothing was changed");
    else
        report_changes(&j, &j.before, &j.after);
    return true;
}
