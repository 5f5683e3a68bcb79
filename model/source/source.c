/*
 * A source: everything that belongs to one queue system in one database. At the end the connections
 * are freed first, because they answer the calls that are still out; then the adapter, the store
 * and the others that these answers went to.
 */
#include "model/source/source.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

struct source {
    struct loop *loop;
    char *conninfo, *dbname, *name, *password;
    char *wanted;               /* the adapter that the user named, NULL = none */
    struct db *watcher, *actor; /* actor: NULL until first used */
    struct adapter *adapter;
    struct store *store;
    struct recorder *recorder; /* or NULL */
    struct replay *replay;     /* or NULL; owns the store then */
    bool read_only, unattended, trusts;
    struct trust *trust; /* or NULL; shared with the other sources of the place */
    int interval_ms;
    int moves;               /* store_moves() when the actor was last used */
    struct place_gate place; /* the actor changes only the database that the watcher shows */
};

/* The server's own limit comes first. What keeps a healthy server from costly statements is the
 * budget of the store, and the limits of single topics (store_ask.c). */
enum { TIMEOUT_MS = 60000, LOCK_TIMEOUT_MS = 500, STALL_MS = 5000, DROP_MS = 60000 };

static char *
copy_text(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static struct db *
connect_as(struct source *s, bool acts)
{
    struct db_options o = {.conninfo = s->conninfo,
                           .dbname = s->dbname,
                           .app_name = acts ? "queuetop actor" : "queuetop",
                           .schema = "pg_catalog",
                           .statement_timeout_ms = TIMEOUT_MS,
                           .lock_timeout_ms = LOCK_TIMEOUT_MS,
                           .stall_warn_ms = acts ? -1 : TIMEOUT_MS + STALL_MS,
                           .stall_drop_ms = TIMEOUT_MS + STALL_MS + DROP_MS,
                           .gate = acts ? &s->place.db : NULL,
                           .read_only = !acts,
                           .unattended = s->unattended};

    return db_new(s->loop, &o);
}

/* The actor was led to another database than the watcher shows: the watcher looks where its address
 * leads now, too. */
static void
actor_changed(void *ctx)
{
    struct source *s = ctx;

    if (!s->place.has_refused)
        return;
    s->place.has_refused = false;
    db_move(s->watcher, "another server or database is at this address now");
}

static const char *
name_source(void *ctx)
{
    return source_name(ctx);
}

/* Makes the store, with the replay that feeds it or the recorder that listens to it. */
static bool
make_store(struct source *s, const struct source_options *o, struct err *e)
{
    if (o->replay) {
        s->replay = replay_new(s->loop, o->replay, s->watcher, s->adapter, e);
        s->store = s->replay ? replay_store(s->replay) : NULL;
        return s->replay != NULL;
    }
    s->interval_ms = o->interval_ms ? o->interval_ms : 1000;
    s->store = store_new(s->loop, s->watcher, s->adapter, o->schema, s->interval_ms);
    store_trust(s->store, s->trust);
    if (o->record)
        s->recorder = recorder_new(o->record, s->store, name_source, s, e);
    return !o->record || s->recorder;
}

struct source *
source_new(struct loop *l, const struct source_options *o, struct err *e)
{
    struct adapter *a = adapter_open(o->adapter, e);

    if (!a)
        return NULL;
    if (o->trust_version)
        adapter_trust(a);
    struct source *s = xcalloc(1, sizeof *s);
    s->loop = l;
    s->conninfo = copy_text(o->conninfo);
    s->dbname = copy_text(o->dbname);
    s->wanted = copy_text(o->adapter);
    s->trusts = o->trust_version;
    s->trust = o->trust;
    s->name = xstrdup("");
    s->read_only = o->read_only;
    s->unattended = o->unattended;
    s->adapter = a;
    place_gate_init(&s->place);
    s->watcher = connect_as(s, false);
    if (make_store(s, o, e))
        return s;
    source_free(s);
    return NULL;
}

struct source *
source_new_beside(const struct source *first, const char *adapter, const char *schema,
                  struct err *e)
{
    struct source_options o = {.conninfo = first->conninfo,
                               .dbname = first->dbname,
                               .schema = schema,
                               .adapter = first->wanted ? first->wanted : adapter,
                               .trust_version = first->trusts,
                               .trust = first->trust,
                               .interval_ms = first->interval_ms,
                               .read_only = first->read_only,
                               .unattended = first->unattended};
    struct source *s = source_new(first->loop, &o, e);

    if (s && first->password)
        source_password(s, first->password);
    return s;
}

static void
wipe_password(struct source *s)
{
    if (s->password)
        explicit_bzero(s->password, strlen(s->password));
    free(s->password);
    s->password = NULL;
}

void
source_free(struct source *s)
{
    if (!s)
        return;
    recorder_free(s->recorder); /* freed first: calls that we cut off now must not be recorded as
                                   answers of the source */
    db_free(s->watcher);
    db_free(s->actor);
    if (s->replay)
        replay_free(s->replay);
    else
        store_free(s->store);
    adapter_free(s->adapter);
    place_gate_done(&s->place);
    wipe_password(s);
    free(s->conninfo);
    free(s->dbname);
    free(s->wanted);
    free(s->name);
    free(s);
}

void
source_attend(struct source *s)
{
    bool was_off = db_state(s->watcher) == DB_OFF;

    db_attend(s->watcher);
    if (s->actor)
        db_attend(s->actor);
    if (was_off && db_state(s->watcher) != DB_OFF)
        store_refresh_all(s->store);
}

void
source_password(struct source *s, const char *password)
{
    wipe_password(s);
    s->password = xstrdup(password);
    db_password(s->watcher, password);
    if (s->actor)
        db_password(s->actor, password);
    db_retry_now(s->watcher);
    store_refresh_all(s->store);
}

void
source_trust(struct source *s, const struct owners *shown)
{
    if (!s->trust)
        return;
    trust_answer(s->trust, shown);
    store_look_again(s->store);
}

void
source_set_read_only(struct source *s)
{
    s->read_only = true;
}

struct store *
source_store(struct source *s)
{
    return s->store;
}

struct db *
source_watcher(struct source *s)
{
    return s->watcher;
}

struct adapter *
source_adapter(struct source *s)
{
    return s->adapter;
}

const char *
source_name(struct source *s)
{
    char *name = s->replay ? xstrdup(replay_state(s->replay).place)
                           : xasprintf("%s/%s", db_host(s->watcher), db_name(s->watcher));

    free(s->name);
    s->name = name;
    return name;
}

bool
source_is_read_only(const struct source *s)
{
    const struct role_row *role = store_role(s->store);

    return s->replay || s->read_only || (role && role->can_act != 1);
}

const char *
source_look_only(const struct source *s)
{
    const struct server_row *server = store_server(s->store);
    const struct role_row *role = store_role(s->store);

    if (s->replay)
        return "this is a recording: nothing in it can be changed";
    if (s->read_only)
        return "started with --read-only";
    if (server && server->in_recovery == 1)
        return "this server is a standby: it takes no changes";
    if (!role || role->can_act == 1)
        return NULL;
    return *role->why ? role->why : "this login may only look";
}

const char *
source_why_not(const struct source *s, enum act act)
{
    const struct server_row *server = store_server(s->store);

    if (s->replay)
        return "this is a recording: nothing in it can be changed";
    if (s->read_only)
        return "started with --read-only";
    if (store_state(s->store) != STORE_OPEN)
        return "not connected to a queue";
    if (server && server->in_recovery == 1)
        return "this server is a standby: it takes no changes";
    return act_why_not(act, s->adapter, store_role(s->store));
}

struct replay *
source_replay(const struct source *s)
{
    return s->replay;
}

const struct recorder *
source_recorder(const struct source *s)
{
    return s->recorder;
}

/* The actor has a connection of its own. After a failover it may still be attached to the old
 * server: reconnect it whenever the watcher sees the server change. If the actor's connection has
 * given up, connect it again, because the watcher has proved that the server can be reached. */
static void
ready_actor(struct source *s)
{
    const struct server_row *server = store_server(s->store);
    int moves = store_moves(s->store);

    place_gate_expect(&s->place, server ? server->identity : "");
    if (!s->actor) {
        s->actor = connect_as(s, true);
        db_on_state(s->actor, actor_changed, s);
        if (s->password)
            db_password(s->actor, s->password);
    } else if (s->moves != moves) {
        db_move(s->actor, "another server or database is at this address now");
    } else if (db_state(s->actor) == DB_OFF) {
        db_retry_now(s->actor);
    }
    s->moves = moves;
}

struct action *
source_act(struct source *s, const struct intent *intent, struct err *e)
{
    const char *why = source_why_not(s, intent->act);

    if (why) {
        fail(e, ERR_DENIED, "%s: %s", act_infos[intent->act].name, why);
        return NULL;
    }
    ready_actor(s);
    return action_new(s->loop, s->actor, s->adapter, intent);
}
