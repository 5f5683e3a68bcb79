/*
 * The rule of model/adapter/trust.h, applied to what the server tells about owners.
 */
#include "model/adapter/trust.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter.h"
#include "model/base/console_sql.h"
#include "model/base/mem.h"

enum { ANSWERS_MOST = 200 };

struct trust {
    char **names;
    int nnames;
    char **answers; /* "SERVER LOGIN OWNER NAME" */
    int nanswers;
    char *line;
};

/* --- what the user has said ------------------------------------------------------------------- */

struct trust *
trust_new(void)
{
    return xcalloc(1, sizeof(struct trust));
}

static void
free_list(char **list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void
trust_free(struct trust *t)
{
    if (!t)
        return;
    free_list(t->names, t->nnames);
    free_list(t->answers, t->nanswers);
    free(t->line);
    free(t);
}

/* Takes text over. */
static void
add_text(char ***list, int *n, char *text)
{
    *list = xreallocarray(*list, (size_t)*n + 1, sizeof **list);
    (*list)[(*n)++] = text;
}

static char *
trim_name(const char *from, size_t len)
{
    while (len > 0 && *from == ' ') {
        from++;
        len--;
    }
    while (len > 0 && from[len - 1] == ' ')
        len--;
    return len > 0 ? xstrndup(from, len) : NULL;
}

void
trust_names(struct trust *t, const char *list)
{
    for (const char *at = list; at && *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        char *name = trim_name(at, len);
        if (name)
            add_text(&t->names, &t->nnames, name);
        at += len;
    }
}

static bool
has_text(char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], text))
            return true;
    return false;
}

/* Adds an answer; if the list is full, the oldest one is dropped. Takes over text. */
static void
add_answer(struct trust *t, char *text)
{
    if (has_text(t->answers, t->nanswers, text)) {
        free(text);
        return;
    }
    if (t->nanswers == ANSWERS_MOST) {
        free(t->answers[0]);
        memmove(t->answers, t->answers + 1, (ANSWERS_MOST - 1) * sizeof *t->answers);
        t->nanswers--;
    }
    add_text(&t->answers, &t->nanswers, text);
}

void
trust_recall(struct trust *t, const char *line)
{
    for (const char *at = line; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        char *answer = trim_name(at, len);
        if (answer)
            add_answer(t, answer);
        at += len;
    }
}

const char *
trust_line(struct trust *t)
{
    struct buf b = {0};

    buf_str(&b, "");
    for (int i = 0; i < t->nanswers; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", t->answers[i]);
    free(t->line);
    t->line = b.data;
    return t->line;
}

/* Appends text as one word: letters, digits and _-./: as they are, every other byte as %XX. */
static void
add_word(struct buf *b, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 128 && (isalnum(c) || strchr("_-./:", c)))
            buf_add(b, text, 1);
        else
            buf_printf(b, "%%%02X", c);
    }
}

static char *
answer_of(const char *server, int64_t me, int64_t role, const char *name)
{
    struct buf b = {0};

    add_word(&b, server);
    buf_printf(&b, " %" PRId64 " %" PRId64 " ", me, role);
    add_word(&b, name);
    return b.data;
}

char *
trust_server(const char *identity, const char *host, const char *database)
{
    return identity && *identity ? xstrdup(identity) : xasprintf("%s/%s", host, database);
}

void
trust_answer(struct trust *t, const struct owners *shown)
{
    for (int i = 0; i < shown->n; i++)
        add_answer(t, answer_of(shown->server, shown->me, shown->strangers[i].role,
                                shown->strangers[i].name));
}

/* --- who owns a system ------------------------------------------------------------------------ */

struct owner_row { /* sql/console/owners.sql */
    int64_t role, place, place_owner, me;
    const char *name, *object, *place_acl, *power, *risk;
    int known, creates, acts;
};

#define F(field) offsetof(struct owner_row, field)
/* column, type, offset, optional */
static const struct field owner_fields[] = {
    {"role",        F_I64,  F(role),        false},
    {"name",        F_STR,  F(name),        false},
    {"known",       F_BOOL, F(known),       false},
    {"creates",     F_BOOL, F(creates),     false},
    {"acts",        F_BOOL, F(acts),        false},
    {"object",      F_STR,  F(object),      false},
    {"place",       F_I64,  F(place),       false},
    {"place_owner", F_I64,  F(place_owner), false},
    {"place_acl",   F_STR,  F(place_acl),   false},
    {"me",          F_I64,  F(me),          false},
    {"power",       F_STR,  F(power),       false},
    {"risk",        F_STR,  F(risk),        false},
};
#undef F

static bool
is_trusted(const struct trust *t, const char *server, const struct owner_row *row)
{
    if (!t || row->role == 0)
        return false;
    char *answer = answer_of(server, row->me, row->role, row->name);
    bool yes =
        has_text(t->names, t->nnames, row->name) || has_text(t->answers, t->nanswers, answer);
    free(answer);
    return yes;
}

static void
add_stranger(struct owners *o, const struct owner_row *row, struct buf *names)
{
    o->strangers = xreallocarray(o->strangers, (size_t)o->n + 1, sizeof *o->strangers);
    o->strangers[o->n++] = (struct stranger){
        .role = row->role, .name = xstrdup(row->name), .object = xstrdup(row->object)};
    buf_printf(names, "%s%s", names->len ? ", " : "", row->name);
}

static void
take_place(struct owners *o, const struct owner_row *row, const struct result *r)
{
    o->is_there = true;
    o->power = *row->power ? xstrdup(row->power) : NULL;
    o->risk = *row->risk ? xstrdup(row->risk) : NULL;
    o->me = row->me;
    o->place = xasprintf("%" PRId64, row->place);
    o->place_owner = xasprintf("%" PRId64, row->place_owner);
    o->place_acl = result_null(r, 0, result_col(r, "place_acl")) ? NULL : xstrdup(row->place_acl);
}

static void
add_role(struct buf *list, int64_t role)
{
    buf_printf(list, "%s%" PRId64, list->len > 1 ? "," : "", role);
}

/* The sentence about code that only an act would run. */
static char *
why_no_acts(const char *names, const char *object, const char *power)
{
    return xasprintf("an act would run code of %s (%s) with the rights of this login%s%s; drop "
                     "that, or --trust-owner %s allows it",
                     names, object, *power ? ", " : "", power, names);
}

static void
judge_owners(const struct owner_row *rows, int n, const struct trust *t, struct owners *o)
{
    struct buf names = {0}, allowed = {0}, acts = {0}, act_names = {0};
    const struct owner_row *first = NULL; /* of those whose code only an act would run */

    buf_str(&names, "");
    buf_str(&allowed, "{");
    buf_str(&acts, "{");
    for (int i = 0; i < n; i++) {
        bool ok = rows[i].known == 1 || is_trusted(t, o->server, &rows[i]);
        if (rows[i].creates == 1) {
            o->is_open |= !ok;
        } else if (ok) {
            add_role(&allowed, rows[i].role);
        } else if (rows[i].acts == 1) {
            first = first ? first : &rows[i];
            add_role(&acts, rows[i].role);
            buf_printf(&act_names, "%s%s", act_names.len ? "," : "", rows[i].name);
        } else {
            add_stranger(o, &rows[i], &names);
        }
    }
    buf_str(&allowed, "}");
    buf_str(&acts, "}");
    o->names = names.data;
    o->allowed = allowed.data;
    o->act_roles = acts.data;
    o->act_why = first ? why_no_acts(act_names.data, first->object, first->power) : NULL;
    buf_free(&act_names);
}

bool
owners_judge(struct result *r, const struct trust *t, const char *server, struct owners *out,
             struct err *e)
{
    struct rowset set;

    *out = (struct owners){.is_plain = result_col(r, "plain") >= 0};
    if (!rowset_decode(r, owner_fields, sizeof owner_fields / sizeof *owner_fields,
                       sizeof(struct owner_row), &set, e))
        return false;
    out->server = xstrdup(server);
    judge_owners(set.rows, set.n, t, out);
    if (set.n > 0)
        take_place(out, set.rows, set.res);
    rowset_free(&set);
    return true;
}

void
owners_done(struct owners *o)
{
    for (int i = 0; i < o->n; i++) {
        free(o->strangers[i].name);
        free(o->strangers[i].object);
    }
    free(o->strangers);
    free(o->server);
    free(o->power);
    free(o->risk);
    free(o->names);
    free(o->allowed);
    free(o->act_roles);
    free(o->act_why);
    free(o->place);
    free(o->place_owner);
    free(o->place_acl);
    *o = (struct owners){0};
}

static char *
copy_text(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

void
owners_copy(struct owners *to, const struct owners *from)
{
    *to = *from;
    to->strangers = from->n ? xcalloc((size_t)from->n, sizeof *to->strangers) : NULL;
    for (int i = 0; i < from->n; i++) {
        to->strangers[i] = from->strangers[i];
        to->strangers[i].name = xstrdup(from->strangers[i].name);
        to->strangers[i].object = xstrdup(from->strangers[i].object);
    }
    to->server = copy_text(from->server);
    to->power = copy_text(from->power);
    to->risk = copy_text(from->risk);
    to->names = copy_text(from->names);
    to->allowed = copy_text(from->allowed);
    to->act_roles = copy_text(from->act_roles);
    to->act_why = copy_text(from->act_why);
    to->place = copy_text(from->place);
    to->place_owner = copy_text(from->place_owner);
    to->place_acl = copy_text(from->place_acl);
}

void
owners_fail(const struct owners *o, const char *what, const char *schema, struct err *e)
{
    fail(e, ERR_DENIED,
         "%s in schema %s is not opened: owned by %s (%s). Code of that owner would run with the "
         "rights of this login%s%s; --trust-owner %s allows it",
         what, schema, o->names, o->strangers[0].object, o->power ? ", " : "",
         o->power ? o->power : "", o->n == 1 ? o->names : "ROLE,ROLE");
}

bool
owners_pass(const struct owners *o, const char *what, const char *schema, struct err *e)
{
    if (o->n > 0) {
        owners_fail(o, what, schema, e);
        return false;
    }
    return !o->act_why ||
           fail(e, ERR_DENIED, "%s in schema %s is not opened: %s", what, schema, o->act_why);
}

/* --- the questions ---------------------------------------------------------------------------- */

static struct db_param
text(const char *s)
{
    return (struct db_param){.value = s};
}

struct db_stmt
owners_ask(const char *schema, const struct touched *of,
           struct db_param storage[static OWNERS_PARAMS])
{
    const struct db_param params[OWNERS_PARAMS] = {
        text(schema),
        text(of->tables),
        text(of->patterns),
        text(of->functions),
        text(of->whole ? "t" : "f"),
        text(NULL),
        text(of->prefix),
        text(NULL),
    };

    memcpy(storage, params, sizeof params);
    return (struct db_stmt){
        .sql = console_sql("owners"), .nparams = OWNERS_PARAMS, .params = storage};
}

struct db_stmt
owners_ask_plain(const char *schema, bool refuses, struct db_param storage[static PLAIN_PARAMS])
{
    storage[0] = text(schema);
    storage[1] = text(refuses ? "t" : "f");
    return (struct db_stmt){
        .sql = console_sql("owners_plain"), .nparams = PLAIN_PARAMS, .params = storage};
}

void
guard_make(struct trust_guard *g, const char *schema, const struct touched *of,
           const struct owners *o)
{
    const struct db_param looks[GUARD_PARAMS] = {
        text(schema),
        text(o->place),
        text(o->place_owner),
        text(o->place_acl),
        text(o->is_open ? "t" : "f"),
        text(of->tables),
        text(of->patterns),
        text(of->functions),
        text(of->whole ? "t" : "f"),
        text(o->allowed),
        text(of->prefix),
    };

    memcpy(g->looks, looks, sizeof looks);
    g->db.looks = (struct db_stmt){
        .sql = console_sql("owners_same"), .nparams = GUARD_PARAMS, .params = g->looks};
    g->db.looks_hard = owners_ask(schema, of, g->hard);
    g->hard[OWNERS_ALLOWED] = text(o->allowed);
    g->hard[OWNERS_ACTS] = text(o->act_roles);
    g->db.changes = owners_ask(schema, of, g->changes);
    g->changes[OWNERS_ALLOWED] = text(o->allowed);
    g->db.more = (struct db_stmt){.sql = NULL};
    if (o->is_plain) {
        g->db.more = g->db.changes;
        g->db.changes = g->db.looks_hard = owners_ask_plain(schema, true, g->plain);
    }
}

/* --- the database that was seen -------------------------------------------------------------- */

static bool
keeps_place(struct place_gate *g, const char *is, struct err *e)
{
    bool same = !g->identity || !*g->identity || !*is || !strcmp(g->identity, is);

    g->has_refused = !same;
    if (!same)
        fail(e, ERR_DENIED,
             "another server or database is at this address now than before: look before you act");
    else if (!g->identity)
        g->identity = xstrdup(is);
    return same;
}

static bool
is_same_place(void *ctx, struct result *r, struct err *e)
{
    bool same = keeps_place(ctx, result_text(r, 0, result_col(r, "identity")), e);

    result_free(r);
    return same;
}

void
place_gate_init(struct place_gate *g)
{
    *g = (struct place_gate){.identity = NULL};
    g->db = (struct db_gate){{.sql = console_sql("server")}, is_same_place, g, NULL};
}

void
place_gate_expect(struct place_gate *g, const char *identity)
{
    free(g->identity);
    g->identity = xstrdup(identity);
}

void
place_gate_done(struct place_gate *g)
{
    free(g->identity);
    g->identity = NULL;
}

/* --- a schema that the user names ------------------------------------------------------------- */

static bool
passes(void *ctx, struct result *r, struct err *e)
{
    struct schema_gate *g = ctx;
    const char *identity = result_rows(r) > 0 ? result_text(r, 0, result_col(r, "identity")) : "";
    struct owners o;

    if (g->stays && result_rows(r) > 0 && !keeps_place(&g->place, identity, e)) {
        result_free(r);
        return false;
    }
    if (!owners_judge(r, g->trust, identity, &o, e))
        return false;
    bool ok = owners_pass(&o, "the queue", g->schema, e) &&
              (!g->refuses_risk || !o.risk || fail(e, ERR_DENIED, "%s", o.risk)) &&
              (o.is_there || !o.is_plain); /* if not: db.more is asked */
    owners_done(&o);
    return ok;
}

/* The owners and the server, because a gate asks one statement at a time. */
static char *
with_server(struct db_stmt *stmt, const char *name)
{
    char *sql = xasprintf(
        "select owners.*, here.identity, here.backend_pid from (%s) owners cross join (%s) here",
        stmt->sql, console_sql("server"));

    stmt->sql = sql;
    stmt->name = name;
    return sql;
}

void
schema_gate_init(struct schema_gate *g, const char *schema, const struct trust *trust)
{
    static const struct touched all = {"{}", "{%}", "{}", "", true};

    *g = (struct schema_gate){.trust = trust, .schema = xstrdup(schema)};
    g->full = owners_ask(g->schema, &all, g->storage);
    g->sql = with_server(&g->full, "owners");
    struct db_stmt plain = owners_ask_plain(g->schema, false, g->plain);
    g->plain_sql = with_server(&plain, "owners_plain");
    g->db = (struct db_gate){plain, passes, g, &g->full};
    place_gate_init(&g->place);
}

void
schema_gate_stay(struct schema_gate *g)
{
    g->stays = true;
}

void
schema_gate_done(struct schema_gate *g)
{
    if (g->sql)
        place_gate_done(&g->place);
    free(g->sql);
    free(g->plain_sql);
    g->sql = g->plain_sql = NULL;
    free(g->schema);
    g->schema = NULL;
}
