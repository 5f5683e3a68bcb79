/* An adapter: the annotated .sql file through which the console works with one queue system. The C
 * code knows only these sections and their columns (model/adapter/record.h), never a table of the
 * system. The sections of a file decide what the console can do in that system. The format:
 * sql/adapters/native.sql opens with it.
 *
 * A statement is bound to one schema. `detect` finds the schemas; adapter_use chooses one. */
#ifndef MODEL_ADAPTER_ADAPTER_H
#define MODEL_ADAPTER_ADAPTER_H

#include <stdbool.h>

#include "model/adapter/params.h"
#include "model/adapter/record.h"
#include "model/adapter/trust.h"
#include "model/base/err.h"
#include "model/db/db.h"

enum section_id {
    SEC_DETECT,
    SEC_VERSION,
    SEC_ROLE,
    SEC_QUEUES,
    SEC_COUNTS,
    SEC_COUNTS_FINAL, /* finished jobs that are kept; slow, asked rarely */
    SEC_RATES,
    SEC_TIMES,
    SEC_PACE,
    SEC_MINUTES,
    SEC_STEPS, /* the same for one queue; the caller chooses the size of the steps */
    SEC_LIFE,  /* whether a worker and a scheduler are alive */
    SEC_JOBS,
    SEC_JOBS_BACK,
    SEC_JOB,
    SEC_ATTEMPTS,
    SEC_NODES,
    SEC_LEASES,
    SEC_GROUPS,
    SEC_GROUPS_BY,
    SEC_FAIL_TIMES,
    SEC_GROUP, /* one of the groups in detail */
    SEC_GROUP_PARTS,
    SEC_GROUP_SAMPLES,
    SEC_AUDIT,
    SEC_HAPPENED, /* acts, changes of nodes and errors as one list */
    SEC_SCHEDULES,
    SEC_CRON_RUNS,
    SEC_CRON_NEXT,
    SEC_QUEUE_SETTINGS,
    SEC_REQUEUE_SAMPLE, /* some of the jobs that a requeue by filter would change */
    SEC_HEALTH_SERVER,
    SEC_HEALTH_SESSIONS,
    SEC_HEALTH_VACUUMS,
    SEC_HEALTH_TABLES,
/* The sections that act, then those that preview them: one for each act of
 * model/adapter/acts.def. */
#define OWN(id, name) SEC_##id,
#define SAME(id)
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) by_ids by_where
#include "model/adapter/acts.def"
#define OWN(id, name) SEC_##id,
#define SAME(id)
#define NONE
#define ACT(id, by_ids, by_where, preview, info, verb, keys) preview
#include "model/adapter/acts.def"
    SEC_COUNT
};

/* If a file has no HEALTH_*, BACKEND_SIGNAL or ROLE section, the console's own statements
 * (sql/console) are used. */

struct section_kind { /* one row of the contract */
    const char *name;
    const struct record *record; /* what its answer holds; NULL = one column */
    bool acts;                   /* it changes something: only the actor runs it */
    bool required;               /* a file without it is rejected */
};
extern const struct section_kind section_kinds[SEC_COUNT];

#define ADAPTER_PARAMS 20 /* at most in one section */

struct adapter;
/* Opens the adapter that the user names: a built-in adapter, one of his own, or a file (a word with
 * a slash or ".sql"). NULL = the adapter that fits the database: then all adapters are candidates,
 * the native one first, and the first candidate is in use until adapter_choose. The result is not
 * bound to a schema yet. */
struct adapter *adapter_open(const char *wanted, struct err *e) __attribute__((warn_unused_result));
/* A built-in adapter by name ("native"), the only candidate. */
struct adapter *adapter_load(const char *name, struct err *e) __attribute__((warn_unused_result));
/* From a file's text; checks header, sections, parameters. NULL with *e naming file and line. */
struct adapter *adapter_parse(const char *file_name, const char *text, struct err *e)
    __attribute__((warn_unused_result));
void adapter_free(struct adapter *a); /* after the last reply to a statement of it */
/* The i-th sentence about what is wrong with the user's own files; NULL = no more. */
const char *adapter_complaint(const struct adapter *a, int i);

/* Binds every statement of the adapter to a schema. Texts of an earlier binding stay valid. */
bool adapter_use(struct adapter *a, const char *schema, struct err *e)
    __attribute__((warn_unused_result));

/* --- which one a database has ----------------------------------------------------------------- */
/* First one statement asks which candidates could be here: those that have their tables in one
 * schema (sql/console/marks.sql). It has no text if there is only one candidate. Then the DETECT
 * statements of these are asked in one round trip; the choice is made from the answers. */
#define ADAPTERS_MAX 64
struct adapter_marks {
    struct db_param params[2];
    char *numbers, *tables; /* array literals */
};
/* Begins a new detection: no candidate is left out any more. m must live until db_ask. */
struct db_stmt adapter_marks(struct adapter *a, struct adapter_marks *m);
void adapter_marks_done(struct adapter_marks *m);
/* Leaves out the candidates that the answer does not name. */
void adapter_marked(struct adapter *a, const struct result *r);
/* Fills out[ADAPTERS_MAX] with the statements and returns how many. */
int adapter_detects(struct adapter *a, struct db_stmt *out);
/* Statement i of them failed: that candidate is left out (a complaint says so) and the others can
 * be asked again. False when none is left. */
bool adapter_spoil(struct adapter *a, int i, const struct err *why);
/* Makes the list of the systems that were found, from the answers; the owners are not known yet.
 * wanted: the schema that comes first in the list, NULL = none. Returns the length of the list. */
int adapter_take(struct adapter *a, struct result *const *detected, const char *wanted);
/* The statement that asks who owns the i-th system of the list; plain: the cheap proof that there
 * is no stranger. If one of these has no row, all are asked without. storage must live until
 * db_ask. */
struct db_stmt adapter_owners(const struct adapter *a, int i, bool plain,
                              struct db_param storage[static OWNERS_PARAMS]);
bool adapter_owners_proved(struct result *const *owners, int n);
/* Chooses a system by the answers to these statements, and binds the adapter to its schema. The
 * native queue is preferred, and among its schemas the default one. A system that belongs to a
 * stranger (model/adapter/trust.h) is never chosen. False = nothing was chosen, *e has a sentence
 * for the user; ERR_DENIED = all systems belong to strangers. Takes over the answers. */
struct adapter_wanted {
    const char *schema; /* NULL = any */
    const char *database;
    const char *server;        /* of trust_server */
    const struct trust *trust; /* NULL = nothing was said */
};
bool adapter_choose(struct adapter *a, struct result **owners, const struct adapter_wanted *wanted,
                    struct err *e) __attribute__((warn_unused_result));
/* No system was found, and none was asked for by name: the answer of sql/console/likely_tables.sql
 * may name tables of a system that no adapter knows. */
bool adapter_may_be_unknown(const struct adapter *a, const char *wanted);
/* Replaces *e, the sentence of adapter_choose, by one that names these tables and the ways out.
 * names: "" = there are none, and *e stays. */
void adapter_name_likely(const char *names, const char *database, struct err *e);
/* For verbs, which must not guess: false with a sentence if the user could mean several systems. */
bool adapter_is_clear(const struct adapter *a, const char *wanted, const char *database,
                      struct err *e) __attribute__((warn_unused_result));
struct adapter_found {
    const char *adapter, *title, *schema;
    bool chosen;
    const struct owners *owners; /* if strangers are among them, it is not opened */
};
/* The i-th system that the last choice found, the best one first; NULL = no more. Valid until the
 * next choice. */
const struct adapter_found *adapter_found(const struct adapter *a, int i);
/* Grows whenever the adapter changes to another system or another schema. */
int adapter_serial(const struct adapter *a);
/* Call it when the connection leads to another database with the same system: adapter_serial grows,
 * so answers of the old database are dropped. */
void adapter_moved(struct adapter *a);

/* How many candidates there are, for lists of adapters. */
int adapter_candidates(const struct adapter *a);
/* The adapter is candidate i from now on, bound to no schema. */
void adapter_become(struct adapter *a, int i);
/* By name; false: there is none. */
bool adapter_become_named(struct adapter *a, const char *name);
const char *adapter_source(const struct adapter *a); /* its text */
const char *adapter_origin(const struct adapter *a); /* the file it is from; "" = built in */

const char *adapter_schema(const struct adapter *a); /* NULL = none chosen yet */
/* Of our own queue, when it was opened: owners.risk. */
const char *adapter_risk(const struct adapter *a);
const char *adapter_default_schema(const struct adapter *a);
const char *adapter_name(const struct adapter *a);
const char *adapter_title(const struct adapter *a);

/* True if the file has the section and, as far as is known, the database has all that the section
 * requires. */
bool adapter_has(const struct adapter *a, enum section_id s);
/* Why the adapter has no such section, as a sentence; NULL = it has. */
const char *adapter_lacks(const struct adapter *a, enum section_id s);
/* The reason that the header `lacks` gives for a missing section; NULL = none. */
const char *adapter_reason(const struct adapter *a, enum section_id s);
/* "River (Go) does not record this": the sentence for a topic that can't be shown. */
const char *adapter_silence(const struct adapter *a);

/* Why nothing may be changed here although it is opened: code of others would run. NULL = it may.
 */
const char *adapter_no_acts(const struct adapter *a);
/* Takes the answer of VERSION ("" = none) and the role. From then on a section that requires a
 * later version or more rights counts as missing. If the version was never tested, or if
 * adapter_no_acts says why, can_act and why of the role change; the sentence lives as long as a. */
void adapter_judge(struct adapter *a, const char *version, struct role_row *role);
void adapter_trust(struct adapter *a); /* --trust-version: accepts every version */
/* The bound text, as it is sent. "" if the section or the schema is missing; DETECT needs no
 * schema. */
const char *adapter_sql(const struct adapter *a, enum section_id s);
/* The line of the file that holds character `position` (from 1) of that text. For 0, or beyond the
 * end of the text: the line where the section begins. */
int adapter_line(const struct adapter *a, enum section_id s, int position);
/* A note of a section: official, guard, confirm, mode, requires, cost, range, dry; NULL = none. */
const char *adapter_note(const struct adapter *a, enum section_id s, const char *key);
/* A line of the header: states, id-type, note, ...; NULL = none. */
const char *adapter_header(const struct adapter *a, const char *key);
/* A header line that may repeat: *at begins at 0; NULL = no more. */
const char *adapter_header_next(const struct adapter *a, const char *key, int *at);
/* The section takes this parameter. */
bool adapter_takes(const struct adapter *a, enum section_id s, enum param p);

/* A statement with its parameters in order. The header translates the states in p to raw_states,
 * and gives tables. storage[ADAPTER_PARAMS] and p must live until db_ask. */
struct db_stmt adapter_bind(const struct adapter *a, enum section_id s, const struct params *p,
                            struct db_param *storage);
/* Decodes the answers of those of the n sections that the adapter has; the others give no rows. n,
 * or the place of the section whose answer is wrong: then nothing is left in out. */
int adapter_decode(const struct adapter *a, const enum section_id *sections, int n,
                   struct db_reply *reply, struct rowset *out, struct err *e)
    __attribute__((warn_unused_result));
/* Sets the beginning of every transaction: the guard against strangers (model/adapter/trust.h), the
 * header's time zone and, for acts, the header's search path, which the system's own functions and
 * triggers need. Calls that only read run with pg_catalog as search path. The call borrows these
 * texts. */
void adapter_settings(const struct adapter *a, bool acts, struct db_call *call);
/* For people: the statement with a line for each parameter's name and value; the caller frees. */
char *adapter_show(const struct adapter *a, enum section_id s, const struct params *p);

#endif
