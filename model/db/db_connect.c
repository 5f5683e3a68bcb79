/* From a connection string to a connection, without ever waiting: the configuration, and an attempt
 * from its addresses to the server's greeting. Every address that db_hosts.c found is given to
 * libpq as hostaddr beside its host, so libpq looks up no name. libpq tries the addresses one after
 * the other by itself. Only a silent address would hold it up: our deadline takes that one out. */
#include "model/db/db_private.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/log.h"
#include "model/base/mem.h"

enum { GREETING_MS = 50000 };

/* --- configuration --- */

static void
wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void
set_keyword(struct db *db, const char *name, const char *value)
{
    int i = 0;

    while (i < db->conf.nkeywords && strcmp(db->conf.keywords[i].name, name) != 0)
        i++;
    if (i == db->conf.nkeywords) {
        db->conf.keywords = xreallocarray(db->conf.keywords, (size_t)++db->conf.nkeywords,
                                          sizeof *db->conf.keywords);
        db->conf.keywords[i] = (struct keyword){.name = xstrdup(name)};
    }
    wipe(db->conf.keywords[i].value);
    db->conf.keywords[i].value = xstrdup(value);
}

static bool
parse_conninfo(struct db *db, const char *conninfo)
{
    char *said = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &said);

    if (!options) {
        err_of_conninfo(&db->conf.err, conninfo, said);
        PQfreemem(said);
        return false;
    }
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (o->val)
            set_keyword(db, o->keyword, o->val);
    options_free(options);
    return true;
}

static bool
is_uri(const char *s)
{
    return strncmp(s, "postgres://", 11) == 0 || strncmp(s, "postgresql://", 13) == 0;
}

/* True if s is a connection string. libpq decides in the same way for a dbname. */
static bool
is_conninfo(const char *s)
{
    return strchr(s, '=') || is_uri(s);
}

bool
db_is_conninfo(const char *text)
{
    size_t blanks = strspn(text, " \t\n"), len = strcspn(text + blanks, " \t\n=");
    const char *word = text + blanks, *after = word + len + strspn(word + len, " \t\n");
    bool found = false;

    if (is_uri(text))
        return true;
    if (len == 0 || *after != '=')
        return false;
    PQconninfoOption *known = PQconninfoParse("", NULL);
    for (const PQconninfoOption *o = known; o && o->keyword && !found; o++)
        found = strlen(o->keyword) == len && !strncmp(o->keyword, word, len);
    PQconninfoFree(known);
    return found;
}

char *
db_conninfo_value(const char *conninfo, const char *word)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    char *value = NULL;

    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (!strcmp(o->keyword, word) && o->val)
            value = xstrdup(o->val);
    options_free(options);
    return value;
}

static void
add_keyword(struct buf *out, const char *word, const char *value)
{
    buf_printf(out, "%s%s='", out->len ? " " : "", word);
    for (; *value; value++)
        buf_printf(out, "%s%c", strchr("'\\", *value) ? "\\" : "", *value);
    buf_str(out, "'");
}

char *
db_conninfo_with(const char *conninfo, const char *word, const char *value)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    struct buf out = {0};

    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        if (o->val)
            add_keyword(&out, o->keyword, o->val);
        else if (!strcmp(o->keyword, word))
            add_keyword(&out, word, value);
    }
    options_free(options);
    return out.data;
}

void
connect_config(struct db *db, const char *conninfo, const char *dbname)
{
    if (conninfo && *conninfo && !parse_conninfo(db, conninfo))
        return;
    if (!dbname || !*dbname)
        return;
    if (!is_conninfo(dbname))
        set_keyword(db, "dbname", dbname);
    else
        (void)parse_conninfo(db, dbname);
}

void
connect_free(struct db *db)
{
    for (int i = 0; i < db->conf.nkeywords; i++) {
        free(db->conf.keywords[i].name);
        wipe(db->conf.keywords[i].value);
    }
    free(db->conf.keywords);
    wipe(db->conf.password);
}

bool
db_needs_password(const struct db *db)
{
    return db->retry.wants_password;
}

/* True if a list of require_auth ("scram-sha-256,none", "!password") lets a password through. */
static bool
allows_password(const char *list)
{
    static const char word[] = "password";
    bool refuses = *list == '!', has = false;

    for (const char *at = list; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        const char *name = at + strspn(at, " !");
        size_t name_len = (size_t)(at + len - name);
        has |= name_len >= sizeof word - 1 && !strncmp(name, word, sizeof word - 1);
        at += len;
    }
    return !*list || has != refuses;
}

bool
db_bares_password(const struct db *db)
{
    const char *host = db->conn ? PQhost(db->conn) : NULL;
    PQconninfoOption *options =
        host && *host != '/' && PQconnectionUsedPassword(db->conn) ? PQconninfo(db->conn) : NULL;
    bool bares = options != NULL;

    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        const char *value = o->val ? o->val : "";
        if (!strcmp(o->keyword, "require_auth"))
            bares &= allows_password(value);
        if (!strcmp(o->keyword, "sslmode"))
            bares &= strcmp(value, "verify-full") != 0;
        if (!strcmp(o->keyword, "channel_binding"))
            bares &= strcmp(value, "require") != 0;
    }
    options_free(options);
    return bares;
}

void
db_password(struct db *db, const char *password)
{
    wipe(db->conf.password);
    db->conf.password = xstrdup(password);
    db->retry.is_trusted = false;
    if (db->state == DB_OFF)
        db->retry.is_stopped = db->conf.err.kind != ERR_NONE;
}

/* --- connecting --- */

static void
add_target(struct attempt *a, const struct host *h, const char *addr)
{
    a->targets = xreallocarray(a->targets, (size_t)a->ntargets + 1, sizeof *a->targets);
    a->targets[a->ntargets++] =
        (struct db_target){xstrdup(h->name), xstrdup(addr), xstrdup(h->port)};
}

static void
make_targets(struct attempt *a)
{
    for (int i = 0; i < a->nhosts; i++) {
        const struct host *h = &a->hosts[i];
        if (*h->addr || host_is_socket(h->name) || host_is_numeric(h->name))
            add_target(a, h, h->addr);
        for (int j = 0; j < h->nfound; j++)
            add_target(a, h, h->found[j]);
    }
}

static void
add_item(struct buf *list, int i, const char *item)
{
    if (i > 0)
        buf_str(list, ",");
    buf_str(list, item);
}

/* The target that libpq is trying now, found by the host and port that libpq reports. */
static int
current_target(const struct db *db)
{
    const struct attempt *a = &db->attempt;
    const char *host = PQhost(db->conn), *addr = PQhostaddr(db->conn), *port = PQport(db->conn);

    for (int i = 0; i < a->ntargets; i++) {
        const struct db_target *t = &a->targets[i];
        bool is_host = !*t->host || !host || strcmp(t->host, host) == 0;
        bool is_addr = !*t->hostaddr || !addr || strcmp(t->hostaddr, addr) == 0;
        bool is_port = !*t->port || !port || strcmp(t->port, port) == 0;
        if (is_host && is_addr && is_port)
            return i;
    }
    return -1;
}

static void connect_go_on(struct db *db);

static void
on_socket(void *ctx, short revents)
{
    struct db *db = ctx;

    db_enter(db);
    if (db->state == DB_CONNECTING)
        connect_go_on(db);
    else
        pipeline_go_on(db, revents);
    db_leave(db);
}

/* The typed password is wrong: forget it, so that the user can type it again. Keep one that was
 * right before: it may be right again. */
static bool
refuses_typed(struct db *db, struct err *e)
{
    if (!db->conf.password || !PQconnectionUsedPassword(db->conn) ||
        strcmp(e->sqlstate, "28P01") != 0)
        return false;
    if (!db->retry.is_trusted) {
        wipe(db->conf.password);
        db->conf.password = NULL;
    }
    fail(e, ERR_AUTH, "the server refuses this password for user %s", db->where.user);
    memcpy(e->sqlstate, "28P01", 6);
    return true;
}

static void
give_up(struct db *db)
{
    struct err e;

    err_of_connect(&e, db->conn, db->conf.password);
    if (db->retry.was_up && strcmp(e.sqlstate, "3D000") == 0)
        e.kind = ERR_CONN; /* the database existed before, so it may come back: somebody is
                              restoring or renaming it */
    bool wants = PQconnectionNeedsPassword(db->conn) == 1;
    db->retry.wants_password = wants || refuses_typed(db, &e);
    if (wants) {
        fail(&e, ERR_AUTH,
             "the server wants a password for user %s: put it into ~/.pgpass (mode 0600) or the "
             "file that PGPASSFILE names, or name a PGSERVICE that has it",
             db->where.user);
        memcpy(e.sqlstate, "28P01", 6);
    }
    if (e.kind == ERR_CONN && db->writable.is_locked && !db->conf.once)
        fail_in(&e, "waiting for a server that takes changes");
    db_broken(db, &e);
}

/* How long libpq's address may be silent. Whoever has accepted us is there: a server that gets
 * little of a processor needs long to begin a session. Only if there is another address does a
 * silent one have to make room for it, and for a longer time after each attempt that found none
 * that answers: localhost has two addresses. */
static int
answer_ms(const struct db *db)
{
    const struct attempt *a = &db->attempt;
    bool is_there = PQstatus(db->conn) != CONNECTION_STARTED;
    int64_t ms = (int64_t)a->timeout_ms << (db->retry.tries < 3 ? db->retry.tries : 3);

    if (a->is_total || !is_there)
        return a->timeout_ms;
    if (db->conf.connect_ms)
        return db->conf.connect_ms;
    return a->ntargets > 1 && ms < SLOW_CONNECT_MS ? (int)ms : SLOW_CONNECT_MS;
}

static void
open_targets(struct db *db)
{
    struct attempt *a = &db->attempt;
    struct buf hosts = {0}, addrs = {0}, ports = {0};
    struct keywords k;

    for (int i = 0; i < a->ntargets; i++) {
        add_item(&hosts, i, a->targets[i].host);
        add_item(&addrs, i, a->targets[i].hostaddr);
        add_item(&ports, i, a->targets[i].port);
    }
    keywords_base(db, &k);
    keywords_add(&k, "host", hosts.data);
    keywords_add(&k, "hostaddr", addrs.data);
    keywords_add(&k, "port", ports.data);
    keywords_add(&k, "target_session_attrs", writable_attrs(db, a->ntargets));
    db->writable.has_others = a->ntargets > 1;
    db->conn = PQconnectStartParams(k.names, k.values, 0);
    buf_free(&hosts);
    buf_free(&addrs);
    buf_free(&ports);
    db->session.fatal = (struct err){.kind = ERR_NONE};
    PQsetNoticeReceiver(db->conn, notice_receiver, db);
    PQsetErrorVerbosity(db->conn, PQERRORS_VERBOSE); /* so that the message holds the SQLSTATE,
                                                        see db_error.c */
    if (PQstatus(db->conn) == CONNECTION_BAD) {
        give_up(db);
        return;
    }
    a->at = -1;
    a->reached_us = clock_us();
    db_set_state(db, DB_CONNECTING);
    db_set_timer(db, clock_ms() + answer_ms(db));
    loop_rewatch(db->loop, db->wait.watch, PQsocket(db->conn), POLLOUT);
}

void
connect_begin(struct db *db)
{
    struct attempt *a = &db->attempt;
    struct buf problems = {0};
    struct err e;

    make_targets(a);
    for (int i = 0; i < a->nhosts; i++)
        if (a->hosts[i].problem)
            buf_printf(&problems, "%s%s", problems.len ? "; " : "", a->hosts[i].problem);
    if (a->ntargets > 0) {
        if (problems.len > 0)
            log_line(LOG_WARN, "connection: %s", problems.data);
        open_targets(db);
    } else {
        fail(&e, ERR_CONN, "%s", problems.len ? problems.data : "the name server does not answer");
        db_broken(db, &e);
    }
    buf_free(&problems);
}

void
connect_start(struct db *db)
{
    struct attempt *a = &db->attempt;

    connect_forget(db);
    db->session.serial++;
    db->retry.tried_ms = clock_ms();
    db->retry.wants_password = false;
    if (!db->wait.watch)
        db->wait.watch = loop_watch(db->loop, -1, 0, on_socket, db);
    hosts_find(db);
    for (int i = 0; i < a->nhosts; i++)
        if (!*a->hosts[i].addr && !host_is_socket(a->hosts[i].name) &&
            !host_is_numeric(a->hosts[i].name))
            hosts_look_up(db, i);
    if (a->lookups == 0) {
        connect_begin(db);
        return;
    }
    db_set_state(db, DB_RESOLVING);
    db_set_timer(db, clock_ms() + a->timeout_ms);
}

/* A database in SQL_ASCII holds any bytes. To a session in UTF-8 the server refuses each row with a
 * byte that is not UTF-8: one such job would stop every list and every worker. So with SQL_ASCII
 * the session takes bytes as they are, and text.h shows those that are not UTF-8 as U+FFFD. All
 * other encodings are converted by the server. */
static bool
changes_encoding(struct db *db)
{
    const char *of_server = PQparameterStatus(db->conn, "server_encoding");
    bool holds_any = of_server && strcmp(of_server, "SQL_ASCII") == 0;
    bool is_utf8 = !of_server || strcmp(of_server, "UTF8") == 0;

    if (db->session.is_raw ? holds_any || is_utf8 : !holds_any)
        return false;
    db->session.is_raw = holds_any;
    return true;
}

/* The same addresses again. */
static void
reopen(struct db *db)
{
    loop_rewatch(db->loop, db->wait.watch, -1, 0);
    PQfinish(db->conn);
    db->conn = NULL;
    open_targets(db);
}

static void
is_up(struct db *db)
{
    struct err e;

    if (changes_encoding(db)) {
        reopen(db);
        return;
    }
    PQsetErrorVerbosity(db->conn, PQERRORS_DEFAULT);
    where_set_host(db, PQhost(db->conn) ? PQhost(db->conn) : "", PQport(db->conn));
    where_set(&db->where.name, PQdb(db->conn));
    where_set(&db->where.user, PQuser(db->conn));
    if (!writable_is_up(db, &e)) {
        db_broken(db, &e);
        return;
    }
    db->retry.last_err = (struct err){.kind = ERR_NONE};
    stall_greeted(db, clock_us() - db->attempt.reached_us);
    connect_forget(db);
    db_set_timer(db, 0);
    log_line(LOG_INFO, "connection: %s@%s/%s, server %d", db->where.user, db->where.host,
             db->where.name, PQserverVersion(db->conn));
    if (PQsetnonblocking(db->conn, 1) != 0) {
        give_up(db);
        return;
    }
    db->retry.was_up = true;
    db->retry.is_trusted = db->conf.password && PQconnectionUsedPassword(db->conn);
    db_set_state(db, DB_READY);
    db_kick(db);
}

/* For slow lines: as long as the server goes on sending, we wait up to a minute, unless the user
 * has set another time limit. */
static bool
may_take_longer(const struct attempt *a)
{
    return !a->is_total && clock_us() - a->reached_us < (int64_t)GREETING_MS * 1000;
}

/* The socket of a CONNECTING db is ready. */
static void
connect_go_on(struct db *db)
{
    PostgresPollingStatusType next = PQconnectPoll(db->conn);
    struct attempt *a = &db->attempt;

    if (next == PGRES_POLLING_FAILED) {
        give_up(db);
        return;
    }
    int at = current_target(db);
    if (a->at >= 0 && a->at != at) /* the deadline is for each address, as in libpq */
        a->reached_us = clock_us();
    if ((a->at >= 0 && a->at != at) || may_take_longer(a))
        db_set_timer(db, clock_ms() + answer_ms(db));
    a->at = at;
    short events = next == PGRES_POLLING_READING ? POLLIN
                   : next == PGRES_POLLING_OK    ? POLLIN
                                                 : POLLOUT;
    loop_rewatch(db->loop, db->wait.watch, PQsocket(db->conn), events);
    if (next == PGRES_POLLING_OK)
        is_up(db);
}

/* libpq does not go on to the next address by itself, so the silent one is taken out and the
 * attempt goes on with the others. */
void
connect_timeout(struct db *db)
{
    struct attempt *a = &db->attempt;
    struct err e;

    if (db->state == DB_RESOLVING) {
        db->session.serial++; /* answers of the old look-ups are ignored */
        connect_begin(db);
        return;
    }
    int at = current_target(db);
    fail(&e, ERR_CONN, "no answer from %s for %d s", db->where.host, answer_ms(db) / 1000);
    if (at < 0 || a->ntargets == 1) {
        db_broken(db, &e);
        return;
    }
    log_line(LOG_INFO, "connection: no answer from %s, trying the next address", PQhost(db->conn));
    free(a->targets[at].host);
    free(a->targets[at].hostaddr);
    free(a->targets[at].port);
    memmove(a->targets + at, a->targets + at + 1,
            (size_t)(--a->ntargets - at) * sizeof *a->targets);
    reopen(db);
}
