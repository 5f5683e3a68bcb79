/* The rule that decides whose code may run in a session of queuetop.
 *
 * A statement runs more than its own text: views, functions, operators, types, row security,
 * defaults, triggers, partitions and foreign tables run with the rights of this login, and READ
 * ONLY stops none of that. So in a session of queuetop runs
 *   - what is in pg_catalog,
 *   - what belongs to a role that is known: the login itself, a superuser, a role that the login is
 * a member of with INHERIT or SET (if one of these granted it: everybody may grant a role of his
 * own), and the owner of the database, unless the login has a power that reaches beyond the
 * database: a superuser, CREATEROLE, pg_execute_server_program and its kin. The owner of a
 * database, a tenant perhaps, would get this power,
 *   - what belongs to a role that the user trusts: --trust-owner, trust_owner in the configuration,
 * or the answer to the console's question. Every other owner is a stranger, and a queue system is
 * not opened in which a stranger owns the schema or anything that our statements could run.
 * sql/console/owners.sql finds these objects, by OID, for all systems alike, from the names that
 * the adapter's text uses; detection itself reads nothing but pg_catalog. The rule holds for
 * queuetop's own queue too, and for event triggers, which run when install, uninstall or the
 * scheduler makes or drops a table. tests/sql/strangers.md is the table of what was tried.
 * Triggers run only when a row is changed. If nothing but triggers leads to a stranger's code, a
 * foreign system is opened for reading, and acts are refused: everybody with the right TRIGGER or
 * REFERENCES on a table could close it otherwise. For queuetop's own queue the scheduler, push and
 * install are refused, too.
 * A trigger has no owner: with a condition or arguments, everybody with TRIGGER on its table
 * counts. If that right was taken away since, nobody is seen.
 *
 * A role that may create objects in such a schema is no reason to ask: what counts is who owns what
 * is there. But then new things can appear at any time, so every transaction on an opened system
 * begins with a guard: the schema is the same one with the same rights, and, where somebody else
 * may create in it, every object found there still belongs to those who were allowed. Transactions
 * that change something run owners.sql first. Nothing is remembered instead: no fingerprint of the
 * catalogs is cheaper than the question. But the question has a cheap form: if everything in the
 * database belongs to roles that are known (owners_plain.sql), nothing that we touch belongs to a
 * stranger. It is asked first, at the opening and before each act; owners.sql only if it fails. A
 * guard that says no ends the transaction, and
 * the console looks anew. What is left is the moment between the guard and the statement behind it,
 * and only where a stranger may create objects in the schema.
 *
 * An answer is kept for one owner, one login and one database: by the system identifier of the
 * cluster and the OIDs of the three, none of which another database of the cluster can take on.
 * Names count only where the user typed them. */
#ifndef MODEL_ADAPTER_TRUST_H
#define MODEL_ADAPTER_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/db/db.h"

/* --- what the user has said ------------------------------------------------------------------- */

struct trust;
struct trust *trust_new(void);
void trust_free(struct trust *t);
/* Roles by name, between commas: --trust-owner, or the configuration. */
void trust_names(struct trust *t, const char *list);
/* Takes the answers of earlier runs, as trust_line wrote them. Entries that can't be parsed are
 * dropped. */
void trust_recall(struct trust *t, const char *line);
const char *trust_line(struct trust *t); /* valid until the next call */

/* --- who owns a system ------------------------------------------------------------------------ */

struct stranger {
    int64_t role; /* its OID */
    char *name;
    char *object; /* one of its objects, as the server describes it */
};

struct owners {    /* the owners of all objects that one adapter uses in one schema, and the
                      judgement */
    bool is_there; /* the schema exists */
    bool is_open;  /* roles that are not in `allowed` may create objects there */
    char *power;   /* what this login may beyond its database: "a superuser"; NULL = nothing */
    bool is_plain; /* by owners_plain.sql: the guard begins with that statement, too */
    int64_t me;    /* its OID */
    char *server;  /* which database: for the answer */
    struct stranger *strangers;
    int n;
    char *names;     /* of them: "mallory, eve"; "" = none */
    char *allowed;   /* the others, as an array of OIDs */
    char *act_roles; /* whose code only an act would run: neither strangers nor allowed */
    char *risk;      /* somebody's right by which his code could run as the owner, as a sentence;
                        NULL = none */
    char *act_why;   /* the sentence about them; NULL = there are none */
    char *place, *place_owner, *place_acl; /* of the schema; acl NULL = the usual rights */
};
/* From an answer of sql/console/owners.sql, which it takes over. server: of trust_server. t NULL =
 * nothing was said. */
bool owners_judge(struct result *r, const struct trust *t, const char *server, struct owners *out,
                  struct err *e) __attribute__((warn_unused_result));
/* False with the sentence if there are strangers, or code that only an act would run. For a schema
 * that is not only read. */
bool owners_pass(const struct owners *o, const char *what, const char *schema, struct err *e)
    __attribute__((warn_unused_result));
/* The sentence for verbs; what: the queue system. */
void owners_fail(const struct owners *o, const char *what, const char *schema, struct err *e);
void owners_done(struct owners *o);
void owners_copy(struct owners *to, const struct owners *from);
/* The user trusts these strangers in this database: only those that he was shown, none that came
 * later. */
void trust_answer(struct trust *t, const struct owners *shown);

/* The identity of a database as one word: from what the server reports (sql/console/server.sql) or,
 * if it reports nothing, from the place where it was found. The caller frees. */
char *trust_server(const char *identity, const char *host, const char *database);

/* --- the questions ---------------------------------------------------------------------------- */

struct touched { /* the names that a text may use in its schema, as array literals */
    const char *tables, *patterns, *functions, *prefix;
    bool whole; /* all functions, types and operators */
};
enum { OWNERS_ALLOWED = 5, OWNERS_ACTS = 7, OWNERS_PARAMS = 8, GUARD_PARAMS = 11 };
/* Who owns it? schema, touched and storage live until db_ask. */
struct db_stmt owners_ask(const char *schema, const struct touched *of,
                          struct db_param storage[static OWNERS_PARAMS]);

/* The cheap proof that there are no strangers (sql/console/owners_plain.sql). If it has no row, ask
 * owners_ask. refuses: an error instead of no row. */
enum { PLAIN_PARAMS = 2 };
struct db_stmt owners_ask_plain(const char *schema, bool refuses,
                                struct db_param storage[static PLAIN_PARAMS]);

struct trust_guard { /* borrows schema, touched and owners */
    struct db_param looks[GUARD_PARAMS], plain[PLAIN_PARAMS];
    struct db_param hard[OWNERS_PARAMS], changes[OWNERS_PARAMS];
    struct db_guard db;
};
void guard_make(struct trust_guard *g, const char *schema, const struct touched *of,
                const struct owners *o);

/* --- the database that was seen --------------------------------------------------------------- */

/* After a break, the address may lead to another database, which may have the same names. An act
 * that was asked for the first one must not be done in the second. So each new connection must
 * lead to the expected identity (sql/console/server.sql); of a login that may not read it, nothing
 * is required. */
struct place_gate {
    struct db_gate db;
    char *identity;   /* NULL = that of the next connection; "" = any */
    bool has_refused; /* the last connection */
};
void place_gate_init(struct place_gate *g);
void place_gate_expect(struct place_gate *g, const char *identity);
void place_gate_done(struct place_gate *g);

/* --- a schema that the user names: work, push, schedule, the C library ------------------------ */

struct schema_gate { /* everything in a schema; asked on each new connection */
    struct db_gate db;
    struct db_stmt full; /* if the plain proof fails */
    struct db_param storage[OWNERS_PARAMS], plain[PLAIN_PARAMS];
    const struct trust *trust;
    char *schema;
    char *sql, *plain_sql;
    bool stays;              /* schema_gate_stay */
    bool refuses_risk;       /* owners.risk ends the connection; the caller sets it */
    struct place_gate place; /* of the first connection */
};
/* trust is borrowed. */
void schema_gate_init(struct schema_gate *g, const char *schema, const struct trust *trust);
/* From now on a later connection must lead to the database of the first one, as in place_gate. */
void schema_gate_stay(struct schema_gate *g);
void schema_gate_done(struct schema_gate *g);

#endif
