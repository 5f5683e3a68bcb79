/*
 * The verbs for the installation: install (and the adoption of a queue of two plain tables),
 * migrate, uninstall; and purge-audit, which is deliberately separate from the purge of jobs. The
 * model and sql/ do the work; this file has the options and the questions.
 */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/adapter/adapter.h"
#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"
#include "model/base/text.h"
#include "model/db/rows.h"
#include "model/install/install.h"
#include "ui/cli/cli_trust.h"
#include "ui/cli/verbs.h"

static void
print_line(void *ctx, const char *line)
{
    struct buf clean = {0};

    (void)ctx;
    text_clean(&clean, line, strlen(line), TEXT_LINE, INT_MAX);
    puts(clean.data ? clean.data : "");
    buf_free(&clean);
}

/* Asks the user at a terminal to type the word; false = there is no terminal, or another word was
 * typed. */
static bool
typed(const char *question, const char *word)
{
    char line[300];

    fprintf(stderr, "%s", question);
    fflush(stderr);
    if (!fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\n")] = 0;
    return !strcmp(line, word);
}

static bool
somebody_is_here(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static void
on_signal(void *ctx, int signo)
{
    (void)signo;
    loop_stop(ctx);
}

/* From here on a signal ends the verb through its loop, because the server must first be asked to
 * stop: otherwise it would keep its locks. Before this call there is nothing to stop at the server,
 * and a signal ends the program as usual. */
static void
end_by_the_loop(const struct cli *c)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        loop_on_signal(c->loop, signals[i], on_signal, c->loop);
}

static int
refuse(const struct cli *c, const char *why)
{
    cli_say(c, "%s", why);
    return CLI_REFUSED;
}

/* --- install, migrate --- */

struct install_words {
    const char *viewer, *worker, *operator_, *pusher;
    const char *adopt_from, *adopt_zone, *adopt_states;
    int from; /* migrate --print */
    bool dry_run, force, adopt, print;
};

/* Checks the owners whose code would run if these objects of the schema are used. what: the words
 * for the objects in the message. */
static bool
may_touch(struct cli *c, const char *schema, const char *tables, const char *what, struct err *e)
{
    const struct touched things = {tables, "{}", "{}", "", false};
    struct db_param storage[OWNERS_PARAMS];
    struct db_stmt stmt = owners_ask(schema, &things, storage);
    struct db_call call = {.stmts = &stmt, .n = 1, .search_path = "pg_catalog"};
    struct db_reply reply;
    struct owners o = {.n = 0};

    bool ok = db_do(cli_db(c, true), c->loop, &call, &reply, e) &&
              owners_judge(db_take(&reply, 0), cli_trust(c), "", &o, e) &&
              owners_pass(&o, what, schema, e);
    db_reply_done(&reply);
    owners_done(&o);
    return ok;
}

/* Checks the owner of the old tables: adoption reads, locks and renames them, which can run code of
 * their owner. */
static bool
may_adopt(struct cli *c, const char *from, struct err *e)
{
    return !from || may_touch(c, from, "{queue,work_queue}", "the queue to take over", e);
}

/* Checks the owners of event triggers, because these run when a table is made or dropped. They
 * count for pg_catalog (owners.sql). */
static bool
may_define(struct cli *c, struct err *e)
{
    return may_touch(c, "pg_catalog", "{}", "an event trigger, called by what is made or dropped,",
                     e);
}

static int
print_install(struct cli *c, const struct install_options *o, int from)
{
    struct buf out = {0};
    struct err e = {0};

    if (o->adopt || o->dry_run)
        return cli_usage(c, "--print goes without --%s", o->adopt ? "adopt" : "dry-run");
    bool ok = install_print(o, from, &out, &e);
    if (ok)
        fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    return ok ? cli_flush_look(c) : cli_usage(c, "%s", e.text);
}

static int
install(struct cli *c, const struct install_words *w, bool migrate)
{
    struct err e = {0};
    struct install_options o = {.schema = c->schema,
                                .viewer = w->viewer,
                                .worker = w->worker,
                                .operator_ = w->operator_,
                                .pusher = w->pusher,
                                .dry_run = w->dry_run,
                                .force = w->force,
                                .migrate = migrate,
                                .adopt = w->adopt,
                                .adopt_from = w->adopt_from,
                                .adopt_zone = w->adopt_zone,
                                .adopt_states = w->adopt_states};

    if (!w->adopt && (w->adopt_from || w->adopt_zone || w->adopt_states))
        return cli_usage(c, "--adopt-from, --adopt-zone and --adopt-states go with --adopt");
    if (w->print || w->from)
        return print_install(c, &o, w->from);
    end_by_the_loop(c);
    if (!may_define(c, &e) || !may_adopt(c, w->adopt_from, &e) ||
        !install_run(cli_db(c, true), c->loop, &o, print_line, NULL, &e)) {
        bool no_schema = !strcmp(e.sqlstate, "3F000") && !migrate;
        fflush(stdout);
        if (no_schema)
            cli_say(c, "%s", e.text);
        return no_schema ? err_exit_code(&e) : cli_fail(c, &e);
    }
    return CLI_DONE;
}

static int
install_verb(struct cli *c, const void *options)
{
    return install(c, options, false);
}

static int
migrate_verb(struct cli *c, const void *options)
{
    return install(c, options, true);
}

/* clang-format off */
#define F(field) offsetof(struct install_words, field)
#define COMMON \
    {"dry-run", 'n', NULL, CLI_FLAG, F(dry_run), "say what would be done, and do nothing", 0, 0}, \
    {"force", 0, NULL, CLI_FLAG, F(force), "although others have rights in the schema that a queue must not give", 0, 0}, \
    {"viewer", 0, "ROLE", CLI_TEXT, F(viewer), "role that reads (default queues_viewer)", 0, 0}, \
    {"worker", 0, "ROLE", CLI_TEXT, F(worker), "role that pushes and works (queues_worker)", 0, 0}, \
    {"operator", 0, "ROLE", CLI_TEXT, F(operator_), "role that administers (queues_operator)", 0, 0}, \
    {"pusher", 0, "ROLE", CLI_TEXT, F(pusher), "role that only pushes (queues_pusher)", 0, 0}
static const struct cli_option install_table[] = {
    COMMON,
    {"print", 0, NULL, CLI_FLAG, F(print), "print the SQL instead: for a tool that applies changes of schemas", 0, 0},
    {"adopt", 0, NULL, CLI_FLAG, F(adopt), "take over a queue of two plain tables (queue, work_queue)", 0, 0},
    {"adopt-from", 0, "S", CLI_TEXT, F(adopt_from), "schema of these tables (default: that of --schema)", 0, 0},
    {"adopt-zone", 0, "ZONE", CLI_TEXT, F(adopt_zone), "time zone of their times (default: TimeZone of the database)", 0, 0},
    {"adopt-states", 0, "LIST", CLI_TEXT, F(adopt_states), "their other states: RUNNING=ready,DEAD=failed", 0, 0},
    {0}};
static const struct cli_option migrate_table[] = {
    COMMON,
    {"print", 0, "FROM", CLI_INT, F(from), "print the SQL instead: from this version (meta.version)", 1, INT_MAX},
    {0}};
#undef COMMON
#undef F
/* clang-format on */

static const struct install_words install_defaults = {.viewer = "queues_viewer",
                                                      .worker = "queues_worker",
                                                      .operator_ = "queues_operator",
                                                      .pusher = "queues_pusher"};

/* --- uninstall --- */

struct uninstall_words {
    const char *viewer, *worker, *operator_, *pusher, *yes;
    bool dry_run, force, drop_roles;
};

/* Returns -1 = continue, otherwise the exit code. */
static int
may_drop(struct cli *c, const struct uninstall_words *w, const struct uninstall_look *look)
{
    char question[200];

    if (look->alive && !w->force) {
        cli_say(c, "it is in use: %s; nothing was changed (--force drops it anyway)", look->alive);
        return CLI_REFUSED;
    }
    if (w->yes && !strcmp(w->yes, c->schema))
        return -1;
    if (w->yes)
        return cli_usage(c, "--yes-drop-schema says '%s', the schema is '%s'", w->yes, c->schema);
    if (!somebody_is_here())
        return cli_usage(
            c, "nobody to ask here: --yes-drop-schema %s does it, --dry-run only looks", c->schema);
    snprintf(question, sizeof question, "Type the name of the schema to drop all of it: ");
    if (typed(question, c->schema))
        return -1;
    return refuse(c, "nothing was changed");
}

static void
print_look(const struct uninstall_look *look)
{
    for (const char *at = look->text, *end; *at; at = end + (*end == '\n')) {
        char line[1000];
        end = at + strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        print_line(NULL, line);
    }
    print_line(NULL, look->alive ? look->alive : "no living node, no active scheduler");
    fflush(stdout);
}

static int
uninstall_verb(struct cli *c, const void *options)
{
    const struct uninstall_words *w = options;
    struct uninstall_look look;
    const struct uninstall_options o = {.schema = c->schema,
                                        .viewer = w->viewer,
                                        .worker = w->worker,
                                        .operator_ = w->operator_,
                                        .pusher = w->pusher,
                                        .drop_roles = w->drop_roles,
                                        .force = w->force,
                                        .seen = &look};
    struct err e = {0};
    int code = CLI_DONE;

    if (c->read_only && !w->dry_run)
        return refuse(c, "--read-only: nothing is changed");
    c->stays = true;
    if (!may_define(c, &e) || !uninstall_look(cli_db(c, true), c->loop, &o, &look, &e))
        return cli_fail(c, &e);
    print_look(&look);
    if (w->dry_run)
        print_line(NULL, "dry run: nothing was changed");
    else
        code = may_drop(c, w, &look);
    if (code < 0) {
        end_by_the_loop(c);
        bool ok = uninstall_run(c->db, c->loop, &o, print_line, NULL, &e);
        if (ok)
            print_line(NULL, "dropped");
        code = ok ? CLI_DONE : cli_fail(c, &e);
    }
    uninstall_look_done(&look);
    return code;
}

/* clang-format off */
#define F(field) offsetof(struct uninstall_words, field)
static const struct cli_option uninstall_table[] = {
    {"dry-run", 'n', NULL, CLI_FLAG, F(dry_run), "say what is there, and do nothing", 0, 0},
    {"yes-drop-schema", 0, "NAME", CLI_TEXT, F(yes), "do not ask; NAME repeats the name of the schema", 0, 0},
    {"force", 0, NULL, CLI_FLAG, F(force), "also while workers are alive, and with the views elsewhere that depend on it", 0, 0},
    {"drop-roles", 0, NULL, CLI_FLAG, F(drop_roles), "also drop the roles, if nothing else needs them", 0, 0},
    {"viewer", 0, "ROLE", CLI_TEXT, F(viewer), "role that reads (default queues_viewer)", 0, 0},
    {"worker", 0, "ROLE", CLI_TEXT, F(worker), "role that pushes and works (queues_worker)", 0, 0},
    {"operator", 0, "ROLE", CLI_TEXT, F(operator_), "role that administers (queues_operator)", 0, 0},
    {"pusher", 0, "ROLE", CLI_TEXT, F(pusher), "role that only pushes (queues_pusher)", 0, 0},
    {0}};
#undef F
/* clang-format on */

static const struct uninstall_words uninstall_defaults = {.viewer = "queues_viewer",
                                                          .worker = "queues_worker",
                                                          .operator_ = "queues_operator",
                                                          .pusher = "queues_pusher"};

/* --- purge-audit --- */

struct audit_words {
    const char *reason;
    int64_t older_ms;
    bool dry_run, yes;
};

static bool
ask(struct cli *c, const char *name, struct db_param *p, int n, struct db_reply *reply,
    struct err *e)
{
    const struct db_stmt stmt = {.sql = console_sql(name), .nparams = n, .params = p};

    return db_do(cli_db(c, true), c->loop, &(struct db_call){.stmts = &stmt, .n = 1}, reply, e);
}

/* Deletes batch after batch until the answer has no cursor; counts the rows. */
static int
purge_audit(struct cli *c, const struct audit_words *w, const char *before)
{
    char batch[24], line[100];
    int64_t gone = 0;
    struct err e = {0};
    struct db_reply reply;
    bool more = true;
    char *action = NULL;

    end_by_the_loop(c);
    for (int i = 1; more; i++) {
        snprintf(batch, sizeof batch, "%d", i);
        struct db_param p[] = {
            {.value = action}, {.value = batch}, {.value = before}, {.value = w->reason}};
        bool ok = ask(c, "purge_audit", p, 4, &reply, &e);
        more = ok && result_int(reply.results[0], 0, result_col(reply.results[0], "more"), 0) > 0;
        if (ok) {
            gone += result_int(reply.results[0], 0, result_col(reply.results[0], "n"), 0);
            free(action);
            action =
                xstrdup(result_text(reply.results[0], 0, result_col(reply.results[0], "action")));
        }
        db_reply_done(&reply);
        if (!ok) {
            free(action);
            int code = cli_fail(c, &e);
            return gone > 0 ? CLI_PART : code;
        }
    }
    free(action);
    snprintf(line, sizeof line, "%" PRId64 " action%s forgotten", gone, gone == 1 ? "" : "s");
    print_line(NULL, line);
    return CLI_DONE;
}

static int
purge_audit_verb(struct cli *c, const void *options)
{
    const struct audit_words *w = options;
    struct err e = {0};
    struct db_reply reply;
    char ms[24];

    if (w->older_ms == 0)
        return cli_usage(c, "say how old: --older-than 90d (a day at least)");
    if (c->read_only && !w->dry_run)
        return refuse(c, "--read-only: nothing is changed");
    c->stays = true;
    snprintf(ms, sizeof ms, "%" PRId64, w->older_ms);
    struct db_param p = {.value = ms};
    if (!ask(c, "purge_audit_preview", &p, 1, &reply, &e)) {
        db_reply_done(&reply);
        return cli_fail(c, &e);
    }
    const struct result *r = reply.results[0];
    const char *denied = result_text(r, 0, result_col(r, "denied"));
    if (*denied && !w->dry_run) {
        fail(&e, ERR_DENIED, "%s", denied);
        db_reply_done(&reply);
        return cli_fail(c, &e);
    }
    bool any = result_int(r, 0, result_col(r, "actions"), 0) > 0;
    char *before = xstrdup(result_text(r, 0, result_col(r, "before")));
    print_line(NULL, result_text(r, 0, result_col(r, "line")));
    fflush(stdout);
    db_reply_done(&reply);
    int code = CLI_DONE;
    if (!any)
        code = CLI_NOTHING;
    else if (w->dry_run)
        print_line(NULL, "dry run: nothing was changed");
    else if (!w->yes && !somebody_is_here())
        code = cli_usage(c, "nobody to ask here: --yes acts, --dry-run only looks");
    else if (!w->yes && !typed("Type audit to forget them: ", "audit"))
        code = refuse(c, "nothing was changed");
    else
        code = purge_audit(c, w, before);
    free(before);
    return code;
}

/* clang-format off */
#define F(field) offsetof(struct audit_words, field)
static const struct cli_option audit_table[] = {
    {"older-than", 0, "T", CLI_TIME, F(older_ms), "actions older than this; a day at least", 86400000, INT64_MAX},
    {"dry-run", 0, NULL, CLI_FLAG, F(dry_run), "show what would happen, change nothing", 0, 0},
    {"yes", 'y', NULL, CLI_FLAG, F(yes), "do not ask", 0, 0},
    {"reason", 'r', "TEXT", CLI_TEXT, F(reason), "why, for the audit", 0, 0},
    {0}};
#undef F

/* --- the table --- */

#define LOCKS \
    "What it locks: nothing if the schema is up to date. Otherwise one transaction replaces the functions,\n" \
    "which stops neither readers nor writers; --dry-run does the same and rolls back. Only a migration\n" \
    "(its name is printed; --dry-run does not try it) and --adopt take exclusive locks on tables, at the end of\n" \
    "the transaction and after a wait of 0.2 s at most. If somebody else holds a conflicting lock, it tries again\n" \
    "for 5 s, then names the holder (process id, user, statement) and ends with exit code 3; nothing is changed\n" \
    "then. Ctrl-C and SIGTERM cancel at the server, too."

const struct cli_verb verbs_install[] = {
    {.name = "install", .examples = {"install -d app", "install -d app --schema jobs --print > V7__queue.sql"},
     .words = "",
     .help = "Install the queue into a schema, or bring it up to date; changes nothing twice",
     .options = install_table, .size = sizeof(struct install_words), .defaults = &install_defaults,
     .run = install_verb, .more = LOCKS},
    {.name = "migrate", .examples = {"migrate -d app --dry-run", "migrate -d app --print 2 > V8__queue.sql"},
     .words = "", .help = "Bring an installed queue up to date",
     .options = migrate_table, .size = sizeof(struct install_words), .defaults = &install_defaults,
     .run = migrate_verb, .more = LOCKS},
    {.name = "uninstall", .examples = {"uninstall -d app --dry-run", "uninstall -d app --yes-drop-schema queues"},
     .words = "", .help = "Drop the queue's schema with everything in it; asks for its name",
     .options = uninstall_table, .size = sizeof(struct uninstall_words), .defaults = &uninstall_defaults,
     .run = uninstall_verb, .more = "It locks every table of the schema for itself. If somebody else holds one it tries again for 5 s, then\n"
             "says who that is (process id, user, statement) and ends with exit code 3; nothing is dropped then."},
    {.name = "purge-audit",
     .examples = {"purge-audit -d app --older-than 90d --dry-run",
                  "purge-audit -d app --older-than 365d --yes --reason 'kept for a year'"},
     .words = "", .help = "Delete old actions from the audit; the purge is recorded there",
     .options = audit_table, .size = sizeof(struct audit_words), .run = purge_audit_verb},
    {0}};
/* clang-format on */
