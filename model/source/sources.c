/*
 * Several sources side by side: the list of sources, their names, and which of them ask their
 * server. model/source/source.c has the source itself; nothing here talks to a server.
 */
#include "model/source/sources.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"

struct source_entry {
    int place;              /* number of the connection string */
    struct source *source;  /* NULL = nobody has looked yet */
    char *adapter, *schema; /* of a source that was found; NULL = the source that was named by
                               the string */
    char *strange;          /* why it is not opened; NULL = it may be */
    char *name;
};

struct source_place {
    struct source *first;
    struct db_turns *turns; /* of its server, shared with the other places there */
    uint64_t seen;          /* generation of its store when it was asked what there is */
};

/* How many sources of one server want something of it at once, beside the one on the screen. */
enum { TURNS_MOST = 4 };

struct sources {
    struct loop *loop;
    struct source_place *places;
    int nplaces;
    struct source_entry list[SOURCES_MAX];
    int n, too_many, left_out; /* too_many: connection strings beyond SOURCES_MAX */
    int front;
    bool all;
    bool frozen;
    int interval_ms;
};

/* --- life ------------------------------------------------------------------------------------ */

static struct source_entry *
add_entry(struct sources *ss, int place)
{
    struct source_entry *x = &ss->list[ss->n++];

    *x = (struct source_entry){.place = place, .name = xstrdup("")};
    return x;
}

/* The turns of the server that the place's connection string names. */
static void
join_server(struct sources *ss, int place)
{
    struct source_place *p = &ss->places[place];
    struct db *db = source_watcher(p->first);

    if (!source_replay(p->first))
        db_find_where(db);
    for (int i = 0; i < place && !p->turns; i++)
        if (!strcmp(db_host(source_watcher(ss->places[i].first)), db_host(db)))
            p->turns = ss->places[i].turns;
    if (!p->turns)
        p->turns = db_turns_new(ss->loop, TURNS_MOST);
}

static void
leave_servers(struct sources *ss)
{
    for (int i = 0; i < ss->nplaces; i++) {
        bool is_shared = false;
        for (int k = 0; k < i; k++)
            is_shared |= ss->places[k].turns == ss->places[i].turns;
        if (!is_shared)
            db_turns_free(ss->places[i].turns);
    }
}

/* The source on the screen never waits for others. */
static void
set_turns(struct sources *ss)
{
    for (int i = 0; i < ss->n; i++)
        if (ss->list[i].source && !source_replay(ss->list[i].source))
            db_set_turns(source_watcher(ss->list[i].source),
                         i == ss->front ? NULL : ss->places[ss->list[i].place].turns);
}

struct sources *
sources_new(struct loop *l, const struct source_options *each, int n, struct err *e)
{
    struct sources *ss = xcalloc(1, sizeof *ss);

    assert(n >= 1);
    ss->loop = l;
    ss->too_many = ss->left_out = n > SOURCES_MAX ? n - SOURCES_MAX : 0;
    n -= ss->too_many;
    ss->places = xcalloc((size_t)n, sizeof *ss->places);
    for (; ss->nplaces < n; ss->nplaces++) {
        struct source *s = source_new(l, &each[ss->nplaces], e);
        if (!s) {
            sources_free(ss);
            return NULL;
        }
        ss->places[ss->nplaces].first = s;
        add_entry(ss, ss->nplaces)->source = s;
        join_server(ss, ss->nplaces);
    }
    set_turns(ss);
    ss->interval_ms = store_interval(source_store(ss->list[0].source));
    sources_update(ss);
    return ss;
}

void
sources_free(struct sources *ss)
{
    if (!ss)
        return;
    for (int i = 0; i < ss->n; i++) {
        source_free(ss->list[i].source);
        free(ss->list[i].adapter);
        free(ss->list[i].schema);
        free(ss->list[i].strange);
        free(ss->list[i].name);
    }
    leave_servers(ss);
    free(ss->places);
    free(ss);
}

int
sources_n(const struct sources *ss)
{
    return ss->n;
}

int
sources_left_out(const struct sources *ss)
{
    return ss->left_out;
}

struct source *
sources_peek(const struct sources *ss, int i)
{
    return ss->list[i].source;
}

/* --- names ----------------------------------------------------------------------------------- */

static const struct db *
db_of(const struct sources *ss, int place)
{
    return store_db(source_store(ss->places[place].first));
}

/* "shop"; with `host` "db1/shop". */
static void
add_place(const struct sources *ss, int place, bool host, struct buf *out)
{
    const struct db *db = db_of(ss, place);
    const char *at = db_host(db);

    if (source_replay(ss->places[place].first))
        buf_str(out, source_name(ss->places[place].first));
    else if (!*db_name(db))
        buf_printf(out, "source%d", place + 1);
    else if (host)
        buf_printf(out, "%s/%s", *at == '/' || !*at ? "local" : at, db_name(db));
    else
        buf_str(out, db_name(db));
}

static bool
place_is_alone(const struct sources *ss, int place, bool host)
{
    struct buf mine = {0}, other = {0};
    bool alone = true;

    add_place(ss, place, host, &mine);
    for (int i = 0; i < ss->nplaces && alone; i++) {
        buf_clear(&other);
        add_place(ss, i, host, &other);
        alone = i == place || strcmp(mine.data, other.data) != 0;
    }
    buf_free(&mine);
    buf_free(&other);
    return alone;
}

/* The system of strangers that this source would show if the user trusted them; NULL = the source
 * is open, or nothing is known. */
static const struct adapter_found *
strange_of(const struct source_entry *x)
{
    const struct adapter_found *f;

    if (!x->source || !store_strangers(source_store(x->source)))
        return NULL;
    for (int i = 0; (f = adapter_found(source_adapter(x->source), i)) && !f->chosen;)
        i++;
    return f;
}

static const char *
adapter_of(const struct source_entry *x)
{
    const struct adapter_found *f = strange_of(x);

    if (f)
        return f->adapter;
    return x->source ? adapter_name(source_adapter(x->source)) : x->adapter;
}

static const char *
schema_of(const struct source_entry *x)
{
    const char *s = x->source ? adapter_schema(source_adapter(x->source)) : NULL;
    const struct adapter_found *f = strange_of(x);

    if (f)
        return f->schema;
    return s ? s : x->schema ? x->schema : "";
}

static void
add_name(const struct sources *ss, int i, struct buf *out)
{
    const struct source_entry *x = &ss->list[i];
    int here = 0, same = 0;

    bool alone = place_is_alone(ss, x->place, false);
    add_place(ss, x->place, !alone, out);
    if (!alone && !place_is_alone(ss, x->place, true))
        buf_printf(out, "#%d", x->place + 1);
    for (int k = 0; k < ss->n; k++) {
        here += ss->list[k].place == x->place;
        same += ss->list[k].place == x->place && !strcmp(adapter_of(&ss->list[k]), adapter_of(x));
    }
    if (here > 1)
        buf_printf(out, ":%s", adapter_of(x));
    if (same > 1)
        buf_printf(out, ".%s", schema_of(x));
}

static bool
name_all(struct sources *ss)
{
    bool changed = false;

    for (int i = 0; i < ss->n; i++) {
        struct buf b = {0};
        add_name(ss, i, &b);
        if (!strcmp(b.data, ss->list[i].name)) {
            buf_free(&b);
            continue;
        }
        free(ss->list[i].name);
        ss->list[i].name = b.data;
        changed = true;
    }
    return changed;
}

const char *
sources_name(const struct sources *ss, int i)
{
    return ss->list[i].name;
}

int
sources_find(const struct sources *ss, const char *name)
{
    int found = -1;

    for (int i = 0; i < ss->n; i++)
        if (!strcmp(ss->list[i].name, name))
            return i;
    for (int i = 0; i < ss->n; i++)
        if (!strncmp(ss->list[i].name, name, strlen(name)))
            found = found == -1 ? i : -2;
    return found;
}

/* --- what there is --------------------------------------------------------------------------- */

struct source *
sources_at(struct sources *ss, int i, struct err *e)
{
    struct source_entry *x = &ss->list[i];

    if (x->source)
        return x->source;
    x->source = source_new_beside(ss->places[x->place].first, x->adapter, x->schema, e);
    if (!x->source)
        return NULL;
    store_freeze(source_store(x->source), ss->frozen);
    set_turns(ss);
    return x->source;
}

static struct source_entry *
find_known(struct sources *ss, int place, const char *adapter, const char *schema)
{
    for (int i = 0; i < ss->n; i++) {
        struct source_entry *x = &ss->list[i];
        if (x->place == place && !strcmp(adapter_of(x), adapter) && !strcmp(schema_of(x), schema))
            return x;
    }
    return NULL;
}

/* Takes the strangers among the owners. True = they have changed. */
static bool
note_owners(struct source_entry *x, const struct owners *o)
{
    char *now = o->n ? xasprintf("owned by %s", o->names) : NULL;
    bool same = now && x->strange ? !strcmp(now, x->strange) : now == x->strange;

    free(x->strange);
    x->strange = now;
    return !same;
}

/* Whether this becomes a source, unless it already is one. */
static bool
is_beside(const struct adapter_found *f)
{
    return f->owners->is_there && !f->chosen;
}

/* How many sources can be added for systems of strangers: everybody can make many of them, so they
 * get the room that the other systems leave. */
static int
room_for_strangers(struct sources *ss, int place, const struct adapter *first)
{
    const struct adapter_found *f;
    int room = SOURCES_MAX - ss->n;

    for (int i = 0; (f = adapter_found(first, i)); i++)
        room -= is_beside(f) && f->owners->n == 0 && !find_known(ss, place, f->adapter, f->schema);
    return room;
}

/* Adds a source for each installation that was found in the database of a place, except the one
 * that the first source of the place shows. */
static bool
take_found(struct sources *ss, int place)
{
    const struct adapter *first = source_adapter(ss->places[place].first);
    const struct adapter_found *f;
    int room = room_for_strangers(ss, place, first);
    bool more = false;

    for (int i = 0; (f = adapter_found(first, i)); i++) {
        struct source_entry *x = find_known(ss, place, f->adapter, f->schema);
        if (x) {
            more |= note_owners(x, f->owners);
            continue;
        }
        if (!is_beside(f))
            continue;
        if (ss->n == SOURCES_MAX || (f->owners->n > 0 && room-- <= 0)) {
            ss->left_out++;
            continue;
        }
        x = add_entry(ss, place);
        x->adapter = xstrdup(f->adapter);
        x->schema = xstrdup(f->schema);
        (void)note_owners(x, f->owners);
        more = true;
    }
    return more;
}

bool
sources_update(struct sources *ss)
{
    bool news = false;

    for (int p = 0; p < ss->nplaces; p++) {
        uint64_t now = store_generation(source_store(ss->places[p].first));
        if (now == ss->places[p].seen && *ss->list[p].name)
            continue;
        ss->places[p].seen = now;
        news = true;
    }
    if (!news)
        return false;
    bool more = false;
    ss->left_out = ss->too_many;
    for (int p = 0; p < ss->nplaces; p++)
        more |= take_found(ss, p);
    return name_all(ss) | more;
}

uint64_t
sources_generation(const struct sources *ss)
{
    uint64_t sum = 0;

    for (int i = 0; i < ss->n; i++)
        if (ss->list[i].source)
            sum += store_generation(source_store(ss->list[i].source));
    return sum;
}

/* --- who is asked ---------------------------------------------------------------------------- */

/* While all sources are shown, n sources of one database are asked n times less often each, so
 * together they ask as often as one. */
static int
interval_of(const struct sources *ss, int i)
{
    int here = 0;

    for (int k = 0; k < ss->n; k++)
        here += ss->list[k].place == ss->list[i].place && ss->list[k].source != NULL;
    return ss->interval_ms * (ss->all && here > 1 ? here : 1);
}

static void
share_server(struct sources *ss)
{
    for (int i = 0; i < ss->n; i++) {
        struct source *s = ss->list[i].source;
        int ms = interval_of(ss, i);
        if (!s || source_replay(s))
            continue;
        if (store_interval(source_store(s)) != ms)
            store_set_interval(source_store(s), ms);
        store_set_share(source_store(s), (double)ss->interval_ms / ms);
    }
}

void
sources_show(struct sources *ss, int front, bool all)
{
    struct err e;

    for (int i = 0; all && i < ss->n; i++)
        if (ss->list[i].strange || !sources_at(ss, i, &e))
            continue; /* its line in the list says why it is not open */
    ss->front = front;
    ss->all = all;
    set_turns(ss);
    share_server(ss);
    for (int i = 0; i < ss->n; i++) {
        if (i == front || !ss->list[i].source)
            continue;
        for (int t = 0; t < TOPIC_COUNT; t++)
            store_want(source_store(ss->list[i].source), (enum topic)t, all && t == TOPIC_QUEUES);
    }
}

void
sources_set_interval(struct sources *ss, int interval_ms)
{
    ss->interval_ms = interval_ms;
    share_server(ss);
}

int
sources_interval(const struct sources *ss)
{
    return ss->interval_ms;
}

void
sources_freeze(struct sources *ss, bool frozen)
{
    ss->frozen = frozen;
    for (int i = 0; i < ss->n; i++) {
        if (!ss->list[i].source)
            continue;
        store_freeze(source_store(ss->list[i].source), frozen);
        if (!frozen)
            store_refresh_all(source_store(ss->list[i].source));
    }
}

void
sources_set_read_only(struct sources *ss)
{
    for (int i = 0; i < ss->n; i++)
        if (ss->list[i].source)
            source_set_read_only(ss->list[i].source);
}

void
sources_trust(struct sources *ss, int i, const struct owners *shown)
{
    struct source *first = ss->places[ss->list[i].place].first;

    if (ss->list[i].source && ss->list[i].source != first)
        source_trust(ss->list[i].source, shown);
    source_trust(first, shown);
}

void
sources_password(struct sources *ss, int i, const char *password)
{
    for (int k = 0; k < ss->n; k++)
        if (ss->list[k].place == ss->list[i].place && ss->list[k].source)
            source_password(ss->list[k].source, password);
}

/* --- one of them in a line ------------------------------------------------------------------- */

const char *
source_state_word(enum source_state s)
{
    static const char *const words[] = {"not looked at", "connecting", "unreachable",
                                        "no queue here", "not opened", "look only",
                                        "open"};

    return words[s];
}

static bool
is_connected(const struct db *db)
{
    return db_state(db) == DB_READY || db_state(db) == DB_BUSY;
}

/* The error of a source. The connection is asked first, because it notices a break earlier than the
 * store. */
static const struct err *
trouble(const struct source *s, const struct store *st)
{
    const struct db *db = store_db(st);
    const struct err *e = db_last_error(db);

    return source_replay(s) || is_connected(db) || e->kind == ERR_NONE ? store_error(st) : e;
}

/* A statement took too long, and the connection lives: the source is not lost. */
static bool
is_only_slow(const struct db *db, const struct err *e)
{
    return is_connected(db) && e->kind == ERR_TIMEOUT;
}

static void
say_state(struct source *s, struct source_line *out)
{
    const struct store *st = source_store(s);
    const struct err *e = trouble(s, st);
    const char *why = source_look_only(s);

    out->why = "";
    if (store_state(st) == STORE_MISSING)
        out->state = SOURCE_MISSING;
    else if (store_state(st) == STORE_STRANGE)
        out->state = SOURCE_STRANGE;
    else if (!source_replay(s) && e->kind != ERR_NONE && !is_connected(store_db(st)))
        out->state = SOURCE_LOST;
    else if (store_state(st) != STORE_OPEN)
        out->state =
            e->kind == ERR_NONE || is_only_slow(store_db(st), e) ? SOURCE_CONNECTING : SOURCE_LOST;
    else
        out->state = why ? SOURCE_LOOK_ONLY : SOURCE_OPEN;
    if (out->state == SOURCE_LOOK_ONLY)
        out->why = why;
    else if (out->state != SOURCE_OPEN && e->kind != ERR_NONE)
        out->why = e->text;
}

void
sources_line(const struct sources *ss, int i, struct source_line *out)
{
    const struct source_entry *x = &ss->list[i];
    const struct db *db = db_of(ss, x->place);

    *out = (struct source_line){.name = x->name,
                                .adapter = x->adapter ? x->adapter : "",
                                .title = "",
                                .version = "",
                                .schema = schema_of(x),
                                .database = db_name(db),
                                .host = db_host(db),
                                .why = "",
                                .age_ms = -1,
                                .ready = FIELD_NULL,
                                .failed = FIELD_NULL};
    if (!x->source) {
        out->state = x->strange ? SOURCE_STRANGE : SOURCE_UNSEEN;
        out->why = x->strange ? x->strange : "";
        return;
    }
    const struct store *st = source_store(x->source);
    const struct adapter_found *f = strange_of(x);
    if (*schema_of(x)) {
        out->adapter = adapter_of(x);
        out->title = f ? f->title : adapter_title(source_adapter(x->source));
        /* that of a table made by hand names its optional columns */
        const char *version = f ? "" : store_version(st);
        out->version = *version >= '0' && *version <= '9' ? version : "";
    }
    say_state(x->source, out);
    out->age_ms = store_age_ms(st, TOPIC_QUEUES);
    out->stale = store_is_stale(st, TOPIC_QUEUES) || out->state == SOURCE_LOST;
    if (out->age_ms < 0)
        return;
    const struct queue_row *t = store_totals(st);
    out->ready = t->ready;
    out->failed = t->failed;
    out->approx = t->approx == 1;
}
