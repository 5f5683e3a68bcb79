/* `queuetop uninstall`, see install.h. Which tables are the queue's own is read from the scripts
 * that make them, so no list has to be kept. */
#include "model/install/install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/sql.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "model/db/rows.h"
#include "model/install/lock_wait.h"

enum { DROP_MS = 600000 };

struct found_row { /* sql/console/uninstall_found.sql */
    const char *alive, *tables, *functions, *dependents;
};

#define F(field) offsetof(struct found_row, field)
static const struct field found_fields[] = {
    {"alive",      F_STR, F(alive),      false},
    {"tables",     F_STR, F(tables),     false},
    {"functions",  F_STR, F(functions),  false},
    {"dependents", F_STR, F(dependents), false},
};
#undef F

static const char *const table_words[] = {"table if not exists ", "or replace view ", NULL};
static const char *const function_words[] = {"function ", NULL};

/* Whether a script of sql/core makes a table of this name. */
static bool
is_ours(const char *name, size_t len, const char *const *words)
{
    for (int i = 0; i < sql_core_n; i++)
        for (int k = 0; words[k]; k++)
            for (const char *at = sql_core[i].text; (at = strstr(at, words[k]));) {
                at += strlen(words[k]);
                if (!strncmp(at, name, len) && strspn(at + len, " (\n") > 0)
                    return true;
            }
    return false;
}

static void
add_strangers(struct buf *b, const char *names, const char *const *words, const char *kind)
{
    for (const char *at = names, *end; *at; at = end + (*end == ',')) {
        end = at + strcspn(at, ",");
        if (!is_ours(at, (size_t)(end - at), words))
            buf_printf(b, "%s%s%.*s", b->len ? ", " : "", kind, (int)(end - at), at);
    }
}

static bool
judge_look(const struct uninstall_options *o, const struct found_row *row, struct err *e)
{
    struct buf strangers = {0}, others = {0};
    bool ok = true;

    add_strangers(&strangers, row->tables, table_words, "");
    buf_str(&others, row->dependents);
    add_strangers(&others, row->functions, function_words, "function ");
    if (strangers.len > 0)
        ok = fail(e, ERR_REFUSED,
                  "schema \"%s\" also holds tables that are not the queue's: %s; move or drop them "
                  "first",
                  o->schema, strangers.data);
    else if (others.len > 0 && !o->force)
        ok = fail(e, ERR_REFUSED, "these would be dropped, too: %s (--force does that)",
                  others.data);
    buf_free(&strangers);
    buf_free(&others);
    return ok;
}

static bool
take_look(const struct uninstall_options *o, const struct result *text, struct result *found,
          struct uninstall_look *look, struct err *e)
{
    struct rowset set;

    if (!rowset_decode(found, found_fields, sizeof found_fields / sizeof *found_fields,
                       sizeof(struct found_row), &set, e))
        return false;
    const struct found_row *row = set.rows;
    bool ok = set.n == 1 ? judge_look(o, row, e) : fail(e, ERR_DATA, "the schema can't be read");
    if (ok) {
        look->text = xstrdup(result_text(text, 0, result_col(text, "text")));
        look->alive = *row->alive ? xstrdup(row->alive) : NULL;
        look->tables = xstrdup(row->tables);
        look->functions = xstrdup(row->functions);
    }
    rowset_free(&set);
    return ok;
}

void
uninstall_look_done(struct uninstall_look *look)
{
    free(look->text);
    free(look->alive);
    free(look->tables);
    free(look->functions);
    *look = (struct uninstall_look){0};
}

enum { PARAMS = 10 };

/* seen: NULL = the first look. */
static struct db_stmt
begin_statement(const struct uninstall_options *o, const char *lock_ms,
                const struct uninstall_look *seen, struct db_param p[static PARAMS])
{
    const char *const values[PARAMS] = {o->schema,
                                        o->viewer,
                                        o->worker,
                                        o->operator_,
                                        o->drop_roles ? "true" : "false",
                                        lock_ms,
                                        o->force ? "true" : "false",
                                        seen ? seen->tables : NULL,
                                        seen ? seen->functions : NULL,
                                        o->pusher};

    for (int i = 0; i < PARAMS; i++)
        p[i] = (struct db_param){.value = values[i]};
    return (struct db_stmt){.sql = console_sql("uninstall_begin"), .nparams = PARAMS, .params = p};
}

bool
uninstall_look(struct db *db, struct loop *l, const struct uninstall_options *o,
               struct uninstall_look *look, struct err *e)
{
    struct db_param p[PARAMS];
    struct db_reply reply;
    const struct db_stmt stmts[] = {begin_statement(o, "1000", NULL, p),
                                    {.sql = console_sql("uninstall_may")},
                                    {.sql = console_sql("uninstall_look")},
                                    {.sql = console_sql("uninstall_found")}};
    const struct db_call call = {.stmts = stmts, .n = 4, .statement_timeout_ms = DROP_MS};

    *look = (struct uninstall_look){0};
    bool ok = db_do(db, l, &call, &reply, e) &&
              take_look(o, reply.results[2], db_take(&reply, 3), look, e);
    db_reply_done(&reply);
    return ok;
}

struct talk {
    void (*say)(void *ctx, const char *line);
    void *ctx;
};

static void
on_notice(void *ctx, const char *severity, const char *text)
{
    const struct talk *t = ctx;

    (void)severity;
    t->say(t->ctx, text);
}

struct drop {
    struct db *db;
    struct loop *loop;
    const struct uninstall_options *o;
};

static bool
drop(void *ctx, int lock_ms, struct err *e)
{
    const struct drop *d = ctx;
    struct db_param p[PARAMS];
    char wait[12];

    snprintf(wait, sizeof wait, "%d", lock_ms);
    const struct db_stmt stmts[] = {
        begin_statement(d->o, wait, d->o->seen, p), {.sql = console_sql("uninstall_may")},
        {.sql = console_sql("uninstall_lock")},     {.sql = console_sql("uninstall_found")},
        {.sql = console_sql("uninstall_same")},     {.sql = console_sql("uninstall_drop")}};
    const struct db_call call = {.stmts = stmts, .n = 6, .statement_timeout_ms = DROP_MS};
    struct db_reply reply;
    bool ok = db_do(d->db, d->loop, &call, &reply, e);

    if (reply.in_doubt)
        fail_in(e, "the answer was lost, it may be gone (look again with --dry-run)");
    db_reply_done(&reply);
    return ok;
}

bool
uninstall_run(struct db *db, struct loop *l, const struct uninstall_options *o,
              void (*say)(void *ctx, const char *line), void *ctx, struct err *e)
{
    struct talk talk = {say, ctx};
    struct drop d = {db, l, o};
    const struct lock_wait wait = {
        db, l, {o->schema, NULL},
          drop, &d
    };

    db_on_notice(db, on_notice, &talk);
    bool ok = lock_wait_run(&wait, e);
    db_on_notice(db, NULL, NULL);
    return ok;
}
