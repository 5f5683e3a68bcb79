/*
 * `queuetop doctor`: finds faults of a queue and its database that no figure of `check` shows, and
 * says what to do. Each symptom is one statement that only reads; it returns a row for each
 * finding. The statements see only pg_catalog, so that no operator or function of another role is
 * called; the tables of the queue are named with their schema. Each statement is limited in rows
 * and in time. If the role may not read something, this is reported and counts as nothing found.
 * --fix repairs by the acts of the console, with their preview, question, guards and audit, and
 * then looks again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/text.h"
#include "model/db/rows.h"
#include "model/install/install.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/verbs.h"
#include "ui/term/fmt.h"
#include "ui/write/cli_act.h"

enum {
    SHOWN_MOST = 5,  /* findings of a symptom that are printed; then "and N more" */
    FIXED_MOST = 50, /* findings of a symptom that one call of --fix repairs */
    SHARED_MOST = 1000,
    LOOK_MS = 5000,
    MANY_JOBS = 3000000, /* are counted at most; about 0.3 s a million */
    FEW_JOBS = 300000,   /* if that took too long */
    EXIT_WARN = 1,
    EXIT_BAD = 9
};

enum level { WELL, UNKNOWN, WARN, BAD, LEVELS };
static const char *const levels[] = {"ok", "unknown", "WARN", "BAD"};

struct symptom {
    const char *name;
    enum level level;
    bool native;     /* only for our own queue; else for any database */
    bool again;      /* may be true for a moment in a healthy queue: counts only if found twice */
    const char *sql; /* columns: WHAT, KEY, RUN of finding_column; {s}, {v}, ...: symptoms.def */
    const char *why, *remedy;
};

/* The columns of a symptom's row. N_ALL: the number of all rows, including those that were left
 * out. */
enum finding_column { WHAT, KEY, RUN, N_ALL };

/* --- the symptoms ----------------------------------------------------------------------------- */

static const struct symptom symptoms[] = {
#define SYMPTOM(name, level, native, again, why, remedy, sql) \
    {#name, level, native, again, sql, why, remedy},
/* Quotes a name as a word for a shell. */
#define SHELL(name) " '''' || replace(" name ", '''', '''\"''\"''') || ''''"
#include "ui/read/symptoms.def"
#undef SYMPTOM
#undef SHELL
};
enum { SYMPTOMS = sizeof symptoms / sizeof *symptoms };

/* Neighbours that share one answer: a row's key is the name of its symptom. */
static bool
is_shared(const struct symptom *s)
{
    return !strcmp(s->sql, RIGHTS);
}

/* Which symptoms --fix can repair, and by which act. The other symptoms need a person: their remedy
 * says what to do. noun: what the key of a finding names; NULL = the act is for the whole queue. */
struct mend {
    const char *symptom;
    enum act act;
    bool all_leases;
    const char *noun;
    const char *words; /* what --fix does, in words for people */
};
static const struct mend mends[] = {
    {"orphans",    ACT_REPAIR_ORPHANS,    false, "queue", "hands them out"           },
    {"leases",     ACT_RELEASE,           false, "node",  "release --node NODE"      },
    {"dead",       ACT_RELEASE,           true,  "node",  "release --node NODE --all"},
    {"counters",   ACT_REPAIR_COUNTERS,   false, "queue", "counts the queue anew"    },
    {"partitions", ACT_REPAIR_PARTITIONS, false, NULL,    "makes those of a week"    },
};
enum { MENDS = sizeof mends / sizeof *mends };

/* What became of a finding. BY_OTHERS: somebody else was faster, perhaps even between the question
 * and the act. */
enum outcome { REMAINS, MENDED, BY_OTHERS };

struct finding { /* a finding that --fix can repair */
    const struct symptom *symptom;
    const struct mend *mend;
    const char *key;
    enum outcome outcome;
};

static const struct mend *
mend_of(const char *symptom)
{
    for (int i = 0; i < MENDS; i++)
        if (!strcmp(mends[i].symptom, symptom))
            return &mends[i];
    return NULL;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct doctor_words {
    struct act_words act;
    bool fix;
};

struct doctor {
    struct cli_queue q;
    char *schema;       /* quoted */
    bool native, hides; /* hides the sessions of others */
    bool denied;        /* this role may not read something */
    int most_jobs;      /* that are counted: MANY_JOBS or FEW_JOBS */
    bool is_compared;   /* the counters, as far as possible */
    int64_t count[LEVELS];
    int64_t all[SYMPTOMS]; /* findings of each symptom, printed or not; `count` contains them */
    struct buf json;
    bool use_json;
    struct finding found[MENDS * FIXED_MOST];
    int nfound;
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

/* The statement with the schema and the versions inserted (symptoms.def has the rule). */
static void
fill_in(const struct doctor *d, const char *sql, struct buf *b)
{
    bool in_text = false;

    for (; *sql; sql++) {
        bool is_place = sql[0] == '{' && strchr("svni", sql[1]) && sql[1] && sql[2] == '}';
        in_text ^= *sql == '\'';
        if (!is_place || (sql[1] == 's' && in_text)) {
            buf_add(b, sql, 1);
            continue;
        }
        if (sql[1] == 's')
            buf_str(b, d->schema);
        else if (sql[1] == 'v')
            buf_str(b, QUEUETOP_VERSION);
        else
            buf_printf(b, "%d", sql[1] == 'n' ? d->most_jobs : install_version());
        sql += 2;
    }
}

static bool
ask(struct doctor *d, const char *sql, struct db_reply *reply, struct err *e)
{
    const struct db_param schema = {.value = d->schema};
    const struct db_stmt stmt = {
        .sql = sql, .nparams = strstr(sql, "$1") != NULL, .params = &schema};
    const struct db_call call = {.stmts = &stmt,
                                 .n = 1,
                                 .statement_timeout_ms = db_limit_ms(d->q.db, LOOK_MS),
                                 .search_path = "pg_catalog, pg_temp"};

    return db_do(d->q.db, d->q.cli->loop, &call, reply, e);
}

/* The first rows of a symptom, each with the number of all rows. If it is about too many jobs to
 * count in LOOK_MS, it is asked again about fewer. */
static bool
look(struct doctor *d, const struct symptom *s, struct db_reply *reply, struct err *e)
{
    struct buf b = {0};

    buf_printf(&b, "select what, key, run, count(*) over (%s) from (",
               is_shared(s) ? "partition by key" : "");
    fill_in(d, s->sql, &b);
    buf_printf(&b, ") f (what, key, run) limit %d",
               is_shared(s)       ? SHARED_MOST
               : mend_of(s->name) ? FIXED_MOST
                                  : SHOWN_MOST);
    bool ok = ask(d, b.data, reply, e);
    buf_free(&b);
    if (ok || strcmp(e->sqlstate, "57014") != 0 || d->most_jobs == FEW_JOBS ||
        !strstr(s->sql, "{n}"))
        return ok;
    db_reply_done(reply);
    *e = (struct err){.kind = ERR_NONE};
    d->most_jobs = FEW_JOBS;
    return look(d, s, reply, e);
}

/* Replaces the number of findings of a symptom by that of a new look. row: its first. */
static void
note_all(struct doctor *d, const struct symptom *s, const struct result *r, int row)
{
    int64_t all = result_rows(r) > row ? result_int(r, row, N_ALL, 0) : 0;

    d->count[s->level] += all - d->all[s - symptoms];
    d->all[s - symptoms] = all;
}

static void
add_member(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, ",\"%s\":", name);
    if (text)
        json_string(b, text, strlen(text));
    else
        buf_str(b, "null");
}

static void
tell_below(const char *label, const char *text)
{
    struct buf b = {0};

    if (*text) {
        buf_printf(&b, "%21s%s%s", "", label, text);
        cli_table_line(b.data, b.len);
    }
    buf_free(&b);
}

static void
tell_line(enum level level, const struct symptom *s, const char *what, const char *run, bool first)
{
    const struct mend *mend = mend_of(s->name);
    struct buf b = {0};

    buf_printf(&b, "%-7s  %-10s  %s", levels[level], s->name, what);
    cli_table_line(b.data, b.len);
    buf_free(&b);
    if (level >= WARN && first) {
        tell_below("", s->why);
        tell_below("to do: ", s->remedy);
    }
    tell_below("run: ", run);
    if (mend && level >= WARN && first)
        tell_below("--fix mends it: ", mend->words);
}

static void
add_json(struct doctor *d, enum level level, const struct symptom *s, const char *what,
         const char *run)
{
    const struct mend *mend = level >= WARN ? mend_of(s->name) : NULL;

    buf_printf(&d->json, "%s{\"symptom\":\"%s\",\"level\":\"%s\"", d->json.len ? "," : "", s->name,
               levels[level]);
    add_member(&d->json, "what", what);
    add_member(&d->json, "why", level >= WARN ? s->why : "");
    add_member(&d->json, "remedy", level >= WARN ? s->remedy : "");
    add_member(&d->json, "run", *run ? run : NULL);
    add_member(&d->json, "fix", mend ? mend->words : NULL);
    buf_str(&d->json, "}");
}

static void
tell(struct doctor *d, enum level level, const struct symptom *s, const char *what, const char *run,
     bool first)
{
    if (d->use_json)
        add_json(d, level, s, what, run);
    else
        tell_line(level, s, what, run, first);
}

/* Reports a finding outside the table of symptoms, or that a symptom could not be looked at. */
static void
tell_aside(struct doctor *d, enum level level, const struct symptom *s, const char *what)
{
    d->count[level]++;
    tell(d, level, s, what, "", true);
}

/* Prints one row of an answer, unless enough rows were printed before. */
static void
tell_row(struct doctor *d, const struct symptom *s, const struct result *r, int row, int told)
{
    int64_t more = result_int(r, row, N_ALL, 0) - SHOWN_MOST;
    struct buf what = {0};

    if (told >= SHOWN_MOST)
        return;
    buf_str(&what, result_text(r, row, WHAT));
    if (told == SHOWN_MOST - 1 && more > 0)
        buf_printf(&what, ", and %lld more", (long long)more);
    tell(d, s->level, s, what.data, result_text(r, row, RUN), told == 0);
    buf_free(&what);
}

/* The server does the waiting, so that an answer or a lost connection ends it. */
static bool
pause_looking(struct doctor *d, struct err *e)
{
    struct db_reply reply;
    bool ok = ask(d, "select pg_sleep(1.5)", &reply, e);

    db_reply_done(&reply);
    return ok;
}

static void
note_finding(struct doctor *d, const struct symptom *s, const char *key)
{
    const struct mend *mend = mend_of(s->name);

    if (mend && d->nfound < MENDS * FIXED_MOST)
        d->found[d->nfound++] =
            (struct finding){s, mend, arena_printf(d->q.cli->mem, "%s", key), REMAINS};
}

/* Reports the rows of a symptom. */
static void
take_rows(struct doctor *d, const struct symptom *s, const struct result *r)
{
    int told = 0;

    for (int i = 0; i < result_rows(r); i++) {
        if (is_shared(s) && strcmp(result_text(r, i, KEY), s->name) != 0)
            continue;
        if (told == 0)
            note_all(d, s, r, i);
        tell_row(d, s, r, i, told++);
        note_finding(d, s, result_text(r, i, KEY));
    }
    d->count[WELL] += told == 0;
}

/* Looks for one symptom, and for those that share its answer. False: the connection is lost.
 * *doubt: a finding may last only a moment, so look again later. */
static bool
examine(struct doctor *d, const struct symptom *s, bool *doubt, struct err *e)
{
    struct db_reply reply;
    const struct symptom *end = s + 1;
    bool ok = look(d, s, &reply, e);

    if (!ok && (e->kind == ERR_CONN || e->kind == ERR_AUTH || reply.failed_at < 0)) {
        db_reply_done(&reply);
        return false;
    }
    if (doubt)
        *doubt = s->again && ok && result_rows(reply.results[0]) > 0;
    d->denied = d->denied || (!ok && e->kind == ERR_DENIED);
    d->is_compared = d->is_compared || (ok && !strcmp(s->name, "counters"));
    while (is_shared(s) && end < symptoms + SYMPTOMS && is_shared(end))
        end++;
    for (; s < end; s++)
        if (!ok)
            tell_aside(d, UNKNOWN, s,
                       err_is_outdated(e) ? "the installed queue is older: queuetop install"
                                          : e->text);
        else if (!(doubt && *doubt))
            take_rows(d, s, reply.results[0]);
    db_reply_done(&reply);
    return true;
}

/* Compares the clock of this machine with the server's, and allows for the time that the question
 * takes. */
static bool
compare_clocks(struct doctor *d, struct err *e)
{
    static const char sql[] = "select (extract(epoch from clock_timestamp()) * 1000)::bigint,"
                              " pg_has_role('pg_read_all_stats', 'usage')";
    static const struct symptom clock = {
        .name = "clock",
        .why = "ages and times on this machine's screens are wrong; deadlines of jobs go by the "
               "server",
        .remedy = "let both follow the same time server: timedatectl, chronyc tracking"};
    struct db_reply reply;
    char what[100];
    int64_t from = clock_wall_ms();

    if (!ask(d, sql, &reply, e)) {
        db_reply_done(&reply);
        return false;
    }
    int64_t until = clock_wall_ms(), there = result_int(reply.results[0], 0, 0, 0);
    int64_t ahead = clock_ahead_ms(there, from, until, 0);
    d->hides = *result_text(reply.results[0], 0, 1) != 't';
    db_reply_done(&reply);
    snprintf(what, sizeof what, "the server's clock is %s %s of this machine's",
             fmt_age(ahead < 0 ? -ahead : ahead).s, ahead < 0 ? "behind" : "ahead");
    if (ahead > CLOCK_SKEW_MS || ahead < -CLOCK_SKEW_MS)
        tell_aside(d, WARN, &clock, what);
    else
        d->count[WELL]++;
    return true;
}

/* The server may be another one than is meant, or somebody between. libpq gives a password in clear
 * text to whoever asks for it so. */
static void
look_at_password(struct doctor *d)
{
    static const struct symptom password = {
        .name = "password",
        .why = "whoever answers at this address instead of the server gets the password in clear "
               "text by asking for it",
        .remedy = "sslmode=verify-full, channel_binding=require, or, with libpq 16, "
                  "require_auth=scram-sha-256 in the "
                  "service file or PGREQUIREAUTH"};

    if (db_bares_password(d->q.db))
        tell_aside(d, WARN, &password, "this login gives its password to every server that asks");
    else
        d->count[WELL]++;
}

/* Names the queues with too many jobs to compare their counters, or says why it can't. */
static void
tell_uncounted(struct doctor *d)
{
    static const struct symptom uncounted = {
        .name = "counters", .level = UNKNOWN, .native = true, .sql = UNCOUNTED};
    struct err e = {0};
    struct db_reply reply;
    bool ok = look(d, &uncounted, &reply, &e);

    for (int i = 0; ok && i < result_rows(reply.results[0]); i++) {
        tell_row(d, &uncounted, reply.results[0], i, i);
        d->count[UNKNOWN]++;
    }
    if (!ok)
        tell_aside(d, UNKNOWN, &uncounted, e.text);
    db_reply_done(&reply);
}

static bool
examine_all(struct doctor *d, struct err *e)
{
    static const struct symptom queue = {.name = "queue"};
    bool doubts[SYMPTOMS] = {false}, any = false, ok = compare_clocks(d, e);

    if (ok)
        look_at_password(d);
    for (int i = 0; ok && i < SYMPTOMS; i++) {
        if ((symptoms[i].native && !d->native) ||
            (i > 0 && is_shared(&symptoms[i]) && is_shared(&symptoms[i - 1])))
            continue;
        if (d->hides && !strcmp(symptoms[i].name, "vacuum"))
            tell_aside(d, UNKNOWN, &symptoms[i],
                       "this role sees its own sessions only: grant pg_read_all_stats to it");
        else
            ok = examine(d, &symptoms[i], &doubts[i], e);
        any = any || doubts[i];
    }
    if (ok && any)
        ok = pause_looking(d, e);
    for (int i = 0; ok && i < SYMPTOMS; i++)
        ok = !doubts[i] || examine(d, &symptoms[i], NULL, e);
    if (ok && d->is_compared)
        tell_uncounted(d);
    if (ok && !d->native)
        tell_aside(d, UNKNOWN, &queue, "of this queue system only the database was looked at");
    return ok;
}

static enum level
worst(const struct doctor *d)
{
    return d->count[BAD] ? BAD : d->count[WARN] ? WARN : WELL;
}

static void
sum_up(const struct doctor *d)
{
    static const char denied[] = "to know the unknown, ask as a role of queues_viewer, or grant "
                                 "queues_viewer to this one";
    struct buf b = {0};

    if (d->denied && !d->use_json)
        cli_table_line(denied, sizeof denied - 1);
    if (d->use_json) {
        buf_str(&b, "{\"source\":");
        json_string(&b, d->q.source, strlen(d->q.source));
        buf_printf(&b, ",\"level\":\"%s\",\"well\":%" PRId64 ",\"findings\":[%s]}",
                   levels[worst(d)], d->count[WELL], d->json.data ? d->json.data : "");
        cli_table_json(b.data, b.len);
    } else if (worst(d) < WARN) {
        buf_printf(&b, "all is well: %" PRId64 " looks found nothing", d->count[WELL]);
        if (d->count[UNKNOWN])
            buf_printf(&b, ", %" PRId64 " could not look", d->count[UNKNOWN]);
        cli_table_line(b.data, b.len);
    } else {
        buf_printf(&b, "%" PRId64 " BAD, %" PRId64 " WARN, %" PRId64 " looks found nothing",
                   d->count[BAD], d->count[WARN], d->count[WELL]);
        cli_table_line(b.data, b.len);
    }
    buf_free(&b);
}

/* --- mending ---------------------------------------------------------------------------------- */

/* Repairs one finding. The act itself asks or refuses. */
static int
mend_one(struct doctor *d, struct finding *f, const struct act_words *words)
{
    const struct mend *m = f->mend;
    bool of_queue = m->noun && !strcmp(m->noun, "queue");
    struct intent in = {.act = m->act,
                        .queue = of_queue ? f->key : NULL,
                        .node = m->noun && !of_queue ? f->key : NULL,
                        .all_leases = m->all_leases};
    struct act_words w = *words;

    w.reason = w.reason ? w.reason : "doctor --fix";
    w.all = m->all_leases;
    int code = cli_act(d->q.cli, &w, &in);
    f->outcome = code == CLI_DONE ? MENDED : code == CLI_NOTHING ? BY_OTHERS : REMAINS;
    return code;
}

/* Repairs all findings; returns the exit code of the first act that was not done. */
static int
mend_all(struct doctor *d, const struct act_words *words)
{
    int first = CLI_DONE;

    for (int i = 0; i < d->nfound; i++) {
        int code = mend_one(d, &d->found[i], words);
        if (first == CLI_DONE && code != CLI_NOTHING)
            first = code;
        if (code == CLI_USAGE || code == CLI_NO_SERVER)
            break;
    }
    return first;
}

/* Notes that a finding still exists; false = the finding is new. */
static bool
remains(struct doctor *d, const struct mend *mend, int nfound, const char *key)
{
    for (int i = 0; i < nfound; i++)
        if (d->found[i].mend == mend && !strcmp(d->found[i].key, key)) {
            d->found[i].outcome = REMAINS;
            return true;
        }
    return false;
}

/* Looks again. New findings, and those that were too many for one call, are reported as findings of
 * their own. */
static bool
look_again(struct doctor *d, const struct mend *mend, int nfound, struct err *e)
{
    const struct symptom *s = NULL;
    struct db_reply reply;
    int told = 0;

    for (int i = 0; i < nfound; i++)
        if (d->found[i].mend == mend)
            s = d->found[i].symptom;
    if (!s)
        return true;
    bool ok = look(d, s, &reply, e);
    int n = ok ? result_rows(reply.results[0]) : 0;
    if (ok)
        note_all(d, s, reply.results[0], 0);
    for (int row = 0; row < n; row++)
        if (!remains(d, mend, nfound, result_text(reply.results[0], row, KEY)))
            tell_row(d, s, reply.results[0], row, told++);
    db_reply_done(&reply);
    return ok;
}

static void
tell_mended(struct doctor *d)
{
    static const char *const words[] = {"not mended", "mended", "nothing left to mend"};
    int n[BY_OTHERS + 1] = {0};
    struct buf b = {0};

    for (int i = 0; i < d->nfound; i++) {
        const struct finding *f = &d->found[i];
        buf_clear(&b);
        buf_printf(&b, "%s  %s", words[f->outcome], f->symptom->name);
        if (f->mend->noun)
            buf_printf(&b, ": %s %s", f->mend->noun, f->key);
        cli_table_line(b.data, b.len);
        n[f->outcome]++;
    }
    buf_clear(&b);
    buf_printf(&b, "%d mended", n[MENDED]);
    if (n[BY_OTHERS])
        buf_printf(&b, ", %d had nothing left to mend", n[BY_OTHERS]);
    buf_printf(&b, "; still %" PRId64 " BAD, %" PRId64 " WARN", d->count[BAD], d->count[WARN]);
    cli_table_line(b.data, b.len);
    buf_free(&b);
}

/* Repairs. -1: go on to the exit code for the findings. The acts use connections of their own. */
static int
fix(struct doctor *d, const struct act_words *words)
{
    struct err e = {0};
    static const char nothing[] = "--fix can mend none of it";

    if (d->nfound == 0) {
        if (worst(d) >= WARN)
            cli_table_line(nothing, sizeof nothing - 1);
        return -1;
    }
    bool writable = words->dry_run || cli_takes_changes(&d->q, &e);
    cli_close(&d->q);
    if (!writable)
        return cli_fail(d->q.cli, &e);
    int code = mend_all(d, words);
    if (words->dry_run || code == CLI_USAGE || code == CLI_NO_SERVER)
        return code == CLI_DONE ? -1 : code;
    bool ok = cli_open(d->q.cli, false, &d->q, &e);
    for (int i = 0; ok && i < MENDS; i++)
        ok = look_again(d, &mends[i], d->nfound, &e);
    if (!ok)
        return cli_fail(d->q.cli, &e);
    tell_mended(d);
    return code == CLI_DONE ? -1 : code;
}

static int
exit_code(const struct doctor *d, int code)
{
    return code != CLI_DONE   ? code
           : worst(d) == BAD  ? EXIT_BAD
           : worst(d) == WARN ? EXIT_WARN
                              : code;
}

static int
run_doctor(struct cli *c, const void *options)
{
    const struct doctor_words *w = options;
    struct doctor *d = arena_alloc(c->mem, sizeof *d);
    struct err e = {0};

    *d = (struct doctor){.q = {.cli = c}, .most_jobs = MANY_JOBS, .use_json = w->act.json};
    if (w->fix && w->act.json)
        return cli_usage(c, "--fix and --json exclude each other");
    if (!w->fix && (w->act.yes || w->act.dry_run || w->act.reason))
        return cli_usage(c, "--yes, --dry-run and --reason are for --fix");
    if (!cli_open(c, false, &d->q, &e))
        return cli_fail(c, &e);
    d->native = !strcmp(adapter_name(d->q.adapter), "native");
    const char *schema = adapter_schema(d->q.adapter);
    d->schema = quote_name(c->mem, schema ? schema : "");
    bool ok = examine_all(d, &e);
    if (ok)
        sum_up(d);
    buf_free(&d->json);
    int code = ok && w->fix ? fix(d, &w->act) : -1;
    cli_close(&d->q);
    if (!ok)
        return cli_fail(c, &e);
    return code >= 0 ? code : exit_code(d, cli_flush_look(c));
}

/* --- the table -------------------------------------------------------------------------------- */

/* clang-format off */
static const struct cli_option options[] = {
    {"json", 0, NULL, CLI_FLAG, ACT_OPTION(json), "one JSON object with all findings", 0, 0},
    {"fix", 0, NULL, CLI_FLAG, offsetof(struct doctor_words, fix), "mend what is safe to mend, and look again", 0, 0},
    {"dry-run", 0, NULL, CLI_FLAG, ACT_OPTION(dry_run), "with --fix: show what would happen, change nothing", 0, 0},
    {"yes", 'y', NULL, CLI_FLAG, ACT_OPTION(yes), "with --fix: do not ask", 0, 0},
    {"reason", 'r', "TEXT", CLI_TEXT, ACT_OPTION(reason), "with --fix: why, for the audit (doctor --fix)", 0, 0},
    {0},
};
/* clang-format on */

const struct cli_verb verbs_doctor[] = {
    {
     .name = "doctor",
     .examples = {"doctor -d app --json", "doctor -d app --fix --yes"},
     .words = "",
     .help = "Look for what is wrong with the queue and its database, and say what to do",
     .options = options,
     .size = sizeof(struct doctor_words),
     .defaults = &(const struct doctor_words){.act = ACT_WORDS_DEFAULTS},
     .run = run_doctor,
     .more =
            "exit: 0 all is well, 1 something to look at (WARN), 9 something is wrong (BAD). What "
            "the\n"
            "role may not look at is \"unknown\" and counts as nothing found. Without --fix "
            "nothing is\n"
            "changed. --fix mends only what a finding says it mends, with the question, guards and "
            "audit of\n"
            "an act: it releases expired leases and those of dead nodes, counts queues "
            "anew, makes\n"
            "partitions, and hands out jobs that no scheduler looks for. What wants a person's "
            "decision\n"
            "(pauses, settings, rights, sessions) it leaves alone: \"run:\" is the statement. If "
            "somebody\n"
            "else was quicker, it says that nothing was left to mend. The exit code is "
            "then for\n"
            "what is left; if an act was not done, it is the code of the act: 2 nobody to ask and "
            "no\n"
            "--yes, 3 refused.", },
    {0     },
};
