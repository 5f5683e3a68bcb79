/* One database with one queue system in it: watcher, actor, adapter and store. A console may hold
 * several. The actor is made on first use; with read_only it never is. */
#ifndef MODEL_SOURCE_SOURCE_H
#define MODEL_SOURCE_SOURCE_H

#include <stdbool.h>

#include "model/action/action.h"
#include "model/adapter/adapter.h"
#include "model/adapter/trust.h"
#include "model/db/db.h"
#include "model/recording/recorder.h"
#include "model/recording/replay.h"
#include "model/store/store.h"

struct source_options {
    const char *conninfo; /* as db_options; copied, like every text here */
    const char *dbname;   /* -d */
    const char *schema;   /* --schema; NULL = found */
    const char *adapter;  /* a name or a file, as adapter_open takes it; NULL = found */
    bool trust_version;   /* --trust-version */
    struct trust *trust;  /* whom the user trusts there, borrowed; NULL = nothing was said */
    int interval_ms;      /* 0 = 1000 */
    bool read_only;       /* --read-only */
    bool unattended;      /* nobody looks: as db_options */
    const char *record;   /* --record FILE */
    const char *replay;   /* --replay FILE: nothing is connected to */
};

struct source;
struct source *source_new(struct loop *l, const struct source_options *o, struct err *e)
    __attribute__((warn_unused_result));
/* Another queue system of the same database: the same login, by its adapter and schema. */
struct source *source_new_beside(const struct source *first, const char *adapter,
                                 const char *schema, struct err *e)
    __attribute__((warn_unused_result));
void source_free(struct source *s);
/* Call it when the user types: if the connection is not open, it tries again at once (db_attend).
 */
void source_attend(struct source *s);
/* The password that the user typed when db_needs_password(watcher): copied, wiped at the end. */
void source_password(struct source *s, const char *password);
/* The user trusts these owners in this database: the store opens anew. */
void source_trust(struct source *s, const struct owners *shown);
/* From now on nothing can be changed here; an action that runs goes on. */
void source_set_read_only(struct source *s);
struct store *source_store(struct source *s);
struct db *source_watcher(struct source *s);
struct adapter *source_adapter(struct source *s);
/* "host:port/dbname", for JSON's `source` and the header. */
const char *source_name(struct source *s);        /* valid until the next call */
bool source_is_read_only(const struct source *s); /* by option or by the role */
/* Why nothing can be changed here, as a sentence; NULL = some acts are possible. */
const char *source_look_only(const struct source *s);
/* Why the act can't be done here, as a sentence; NULL = it can. */
const char *source_why_not(const struct source *s, enum act act);
/* The recording that this source shows; NULL = the source is live. */
struct replay *source_replay(const struct source *s);
/* The recording that is being made, NULL = none. */
const struct recorder *source_recorder(const struct source *s);
/* An action on this source's actor. NULL with *e if source_why_not names a reason. */
struct action *source_act(struct source *s, const struct intent *intent, struct err *e)
    __attribute__((warn_unused_result));

#endif
