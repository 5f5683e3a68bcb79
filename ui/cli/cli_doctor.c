/*
 * `queuetop doctor`: what is wrong with a queue and its database that no figure of `check` shows,
 * and what to do. Each symptom is one statement that looks; it gives a row of text for each
 * finding. The statements see pg_catalog alone, so that no operator or function of another role is
 * called; the tables of the queue are named with their schema. Each one has a bound of rows and of
 * time. What the role may not look at is said, and counts as nothing found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/text.h"
#include "model/db/rows.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/verbs.h"
#include "ui/term/fmt.h"

enum { FINDINGS_MOST = 5, LOOK_MS = 5000, SKEW_MS = 2000, EXIT_WARN = 1, EXIT_BAD = 9 };

enum level { WELL, UNKNOWN, WARN, BAD, LEVELS };
static const char *const levels[] = {"ok", "unknown", "WARN", "BAD"};

struct symptom {
    const char *name;
    enum level level;
    bool native;     /* of the queue, else of any database */
    bool again;      /* true for a moment in a healthy queue: it counts if it is found twice */
    const char *sql; /* {s} is the schema, quoted; at most FINDINGS_MOST rows of one text */
    const char *why, *remedy;
};

/* --- the symptoms ----------------------------------------------------------------------------- */

static const struct symptom symptoms[] = {
#define SYMPTOM(name, level, native, again, why, remedy, sql) \
    {#name, level, native, again, sql, why, remedy},
#include "ui/cli/symptoms.def"
#undef SYMPTOM
};
enum { SYMPTOMS = sizeof symptoms / sizeof *symptoms };

/* --- looking ---------------------------------------------------------------------------------- */

struct doctor_words {
    bool json;
};

struct doctor {
    struct cli_queue q;
    char *schema;       /* quoted */
    bool native, hides; /* hides: sessions of others */
    enum level worst;
    int count[LEVELS];
    struct buf json;
    bool use_json;
};

static char *
quote_name(struct arena *mem, const char *name)
{
    char *out = arena_alloc(mem, 2 * strlen(name) + 3), *at = out;

    *at++ = '"';
    for (; *name; name++) {
        if (*name == '"')
            *at++ = '"';
        *at++ = *name;
    }
    *at++ = '"';
    *at = 0;
    return out;
}

/* The statement with the schema in it. Within a text of SQL ('{s}.%I') the quotes of the schema
 * stay, as to_regclass reads a name as SQL does; a ' in it is doubled. */
static char *
fill_in(const struct doctor *d, const char *sql)
{
    struct buf b = {0};
    bool in_text = false;

    for (; *sql; sql++) {
        if (strncmp(sql, "{s}", 3) != 0) {
            in_text ^= *sql == '\'';
            buf_add(&b, sql, 1);
            continue;
        }
        for (const char *s = d->schema; *s; s++) {
            buf_add(&b, s, 1);
            if (in_text && (*s == '\'' || *s == '%'))
                buf_add(&b, s, 1);
        }
        sql += 2;
    }
    return b.data;
}

static bool
look(struct doctor *d, const struct symptom *s, struct db_reply *reply, struct err *e)
{
    char *sql = fill_in(d, s->sql);
    const struct db_stmt stmt = {.sql = sql};
    const struct db_call call = {.stmts = &stmt,
                                 .n = 1,
                                 .statement_timeout_ms = LOOK_MS,
                                 .search_path = "pg_catalog, pg_temp"};
    bool ok = db_do(d->q.db, d->q.cli->loop, &call, reply, e);

    free(sql);
    return ok;
}

static void
add_member(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, ",\"%s\":", name);
    json_string(b, text, strlen(text));
}

static void
tell(struct doctor *d, enum level level, const char *name, const char *what, const char *why,
     const char *remedy)
{
    struct buf b = {0};

    d->count[level]++;
    if (level > d->worst)
        d->worst = level;
    if (!d->use_json) {
        buf_printf(&b, "%-7s  %-10s  %s", levels[level], name, what);
        cli_table_line(b.data, b.len);
        b.len = 0;
        buf_printf(&b, "%21s%s\n%21sto do: %s", "", why, "", remedy);
        for (char *line = *why ? b.data : NULL, *end; line; line = end ? end + 1 : NULL) {
            end = strchr(line, '\n');
            cli_table_line(line, end ? (size_t)(end - line) : strlen(line));
        }
        buf_free(&b);
        return;
    }
    buf_printf(&d->json, "%s{\"symptom\":\"%s\",\"level\":\"%s\"", d->json.len ? "," : "", name,
               levels[level]);
    add_member(&d->json, "what", what);
    add_member(&d->json, "why", why);
    add_member(&d->json, "remedy", remedy);
    buf_str(&d->json, "}");
}

/* The server waits, not we: an answer or a lost connection ends it. */
static bool
pause_looking(struct doctor *d, struct err *e)
{
    const struct symptom sleep = {.sql = "select pg_sleep(1.5)"};
    struct db_reply reply;
    bool ok = look(d, &sleep, &reply, e);

    db_reply_done(&reply);
    return ok;
}

/* False: the connection is gone. doubt: what may be so for a moment is looked at again later. */
static bool
examine(struct doctor *d, const struct symptom *s, bool *doubt, struct err *e)
{
    struct db_reply reply;
    bool ok = look(d, s, &reply, e);
    int n = ok ? result_rows(reply.results[0]) : 0;

    if (!ok && (e->kind == ERR_CONN || e->kind == ERR_AUTH || reply.failed_at < 0)) {
        db_reply_done(&reply);
        return false;
    }
    if (doubt)
        *doubt = s->again && n > 0;
    if (!ok)
        tell(d, UNKNOWN, s->name, e->text, "", "");
    for (int i = 0; i < n && i < FINDINGS_MOST && !(doubt && *doubt); i++)
        tell(d, s->level, s->name, result_text(reply.results[0], i, 0), s->why, s->remedy);
    if (ok && n == 0)
        d->count[WELL]++;
    db_reply_done(&reply);
    return true;
}

/* The clock of this machine against the server's; the way of the question may take its time. */
static bool
compare_clocks(struct doctor *d, struct err *e)
{
    const struct symptom clock = {
        .sql = "select (extract(epoch from clock_timestamp()) * 1000)::bigint,"
               " pg_has_role('pg_read_all_stats', 'usage')"};
    struct db_reply reply;
    char what[100];
    int64_t from = clock_wall_ms();

    if (!look(d, &clock, &reply, e)) {
        db_reply_done(&reply);
        return false;
    }
    int64_t until = clock_wall_ms(), there = result_int(reply.results[0], 0, 0, 0);
    int64_t ahead = there > until ? there - until : there < from ? there - from : 0;
    d->hides = *result_text(reply.results[0], 0, 1) != 't';
    db_reply_done(&reply);
    snprintf(what, sizeof what, "the server's clock is %s %s of this machine's",
             fmt_age(ahead < 0 ? -ahead : ahead).s, ahead < 0 ? "behind" : "ahead");
    if (ahead > SKEW_MS || ahead < -SKEW_MS)
        tell(d, WARN, "clock", what,
             "ages and times on this machine's screens are wrong; deadlines of jobs go by the "
             "server",
             "let both follow the same time server: timedatectl, chronyc tracking");
    else
        d->count[WELL]++;
    return true;
}

static bool
examine_all(struct doctor *d, struct err *e)
{
    bool doubts[SYMPTOMS] = {false}, any = false, ok = compare_clocks(d, e);

    for (int i = 0; ok && i < SYMPTOMS; i++) {
        if (symptoms[i].native && !d->native)
            continue;
        if (d->hides && !strcmp(symptoms[i].name, "vacuum"))
            tell(d, UNKNOWN, "vacuum", "this role sees its own sessions only", "", "");
        else
            ok = examine(d, &symptoms[i], &doubts[i], e);
        any = any || doubts[i];
    }
    if (ok && any)
        ok = pause_looking(d, e);
    for (int i = 0; ok && i < SYMPTOMS; i++)
        ok = !doubts[i] || examine(d, &symptoms[i], NULL, e);
    if (ok && !d->native)
        tell(d, UNKNOWN, "queue", "of this queue system only the database was looked at", "", "");
    return ok;
}

static void
sum_up(const struct doctor *d)
{
    struct buf b = {0};

    if (d->use_json) {
        buf_str(&b, "{\"source\":");
        json_string(&b, d->q.source, strlen(d->q.source));
        buf_printf(&b, ",\"level\":\"%s\",\"well\":%d,\"findings\":[%s]}", levels[d->worst],
                   d->count[WELL], d->json.data ? d->json.data : "");
        cli_table_json(b.data, b.len);
    } else if (d->worst < WARN) {
        buf_printf(&b, "all is well: %d looks found nothing", d->count[WELL]);
        if (d->count[UNKNOWN])
            buf_printf(&b, ", %d could not look", d->count[UNKNOWN]);
        cli_table_line(b.data, b.len);
    } else {
        buf_printf(&b, "%d BAD, %d WARN, %d looks found nothing", d->count[BAD], d->count[WARN],
                   d->count[WELL]);
        cli_table_line(b.data, b.len);
    }
    buf_free(&b);
}

static int
run_doctor(struct cli *c, const void *options)
{
    const struct doctor_words *w = options;
    struct doctor *d = arena_alloc(c->mem, sizeof *d);
    struct err e = {0};

    *d = (struct doctor){.q = {.cli = c}, .use_json = w->json};
    if (!cli_open(c, false, &d->q, &e))
        return cli_fail(c, &e);
    d->native = !strcmp(adapter_name(d->q.adapter), "native");
    const char *schema = adapter_schema(d->q.adapter);
    d->schema = quote_name(c->mem, schema ? schema : "");
    bool ok = examine_all(d, &e);
    if (ok)
        sum_up(d);
    buf_free(&d->json);
    cli_close(&d->q);
    if (!ok)
        return cli_fail(c, &e);
    int code = cli_flush(c);
    return code != CLI_DONE   ? code
           : d->worst == BAD  ? EXIT_BAD
           : d->worst == WARN ? EXIT_WARN
                              : code;
}

/* --- the table -------------------------------------------------------------------------------- */

/* clang-format off */
static const struct cli_option options[] = {
    {"json", 0, NULL, CLI_FLAG, offsetof(struct doctor_words, json), "one JSON object with all findings", 0, 0},
    {0},
};
/* clang-format on */

const struct cli_verb verbs_doctor[] = {
    {
     .name = "doctor",
     .examples = {"doctor -d app", "doctor -d app --json"},
     .words = "",
     .help = "Look for what is wrong with the queue and its database, and say what to do",
     .options = options,
     .size = sizeof(struct doctor_words),
     .run = run_doctor,
     .more =
            "exit: 0 all is well, 1 something to look at (WARN), 9 something is wrong (BAD). "
            "Nothing is\n"
            "changed. What the role may not look at is \"unknown\" and counts as nothing found.", },
    {0     },
};
