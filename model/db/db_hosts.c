/* Which addresses an attempt tries. libpq would look up host names inside PQconnectPoll and wait.
 * So each name is looked up on a helper thread, anew at each attempt, because a failover changes
 * the address. Only libpq knows which hosts are configured (string, service file, environment). We
 * ask a PGconn that has a wrong keyword, so that it never connects. */
#include "model/db/db_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "model/base/mem.h"

void
keywords_add(struct keywords *k, const char *name, const char *value)
{
    if (!value || k->n == KEYWORDS_MAX)
        return;
    k->names[k->n] = name;
    k->values[k->n++] = value;
}

void
keywords_base(const struct db *db, struct keywords *k)
{
    static const struct {
        const char *name, *value;
    } defaults[] = {
        {"keepalives_idle",     "5"    },
        {"keepalives_interval", "2"    },
        {"keepalives_count",    "3"    },
        {"tcp_user_timeout",    "60000"}, /* a proxy before a slow line may block for long */
    };

    *k = (struct keywords){.n = 0};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        keywords_add(k, defaults[i].name, defaults[i].value);
    for (int i = 0; i < db->conf.nkeywords; i++)
        keywords_add(k, db->conf.keywords[i].name, db->conf.keywords[i].value);
    keywords_add(k, "password", db->conf.password);
    keywords_add(k, "application_name", db->conf.app_name);
    keywords_add(k, "client_encoding", db->session.is_raw ? "SQL_ASCII" : "UTF8");
}

/* --- which hosts --- */

static const char *
option_value(const PQconninfoOption *options, const char *name)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, name) == 0)
            return o->val ? o->val : "";
    return "";
}

/* Item i of a comma-separated list. A list of one item counts for all. */
static char *
list_item(const char *list, int i)
{
    const char *at = list;

    for (; i > 0 && strchr(at, ','); i--)
        at = strchr(at, ',') + 1;
    return i > 0 && at != list ? xstrdup("") : xstrndup(at, strcspn(at, ","));
}

static int
list_count(const char *list)
{
    int n = *list != 0;

    for (; *list; list++)
        n += *list == ',';
    return n;
}

bool
host_is_socket(const char *name)
{
    return *name == 0 || *name == '/' || *name == '@';
}

bool
host_is_numeric(const char *name)
{
    char plain[64], address[sizeof(struct in6_addr)];

    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "%"), name); /* fe80::1%eth0 */
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, plain, address) == 1;
}

void
where_set(char **field, const char *text)
{
    free(*field);
    *field = xstrdup(text);
}

void
where_set_host(struct db *db, const char *host, const char *port)
{
    bool is_usual = *port == 0 || strcmp(port, "5432") == 0;

    free(db->where.host);
    db->where.host = xasprintf("%s%s%s", host_is_socket(host) ? "local" : host, is_usual ? "" : ":",
                               is_usual ? "" : port);
}

void
options_free(PQconninfoOption *options)
{
    for (PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val && strcmp(o->keyword, "password") == 0)
            explicit_bzero(o->val, strlen(o->val));
    PQconninfoFree(options);
}

/* Asks libpq for the effective configuration. Reads files, never the network. */
void
hosts_find(struct db *db)
{
    struct attempt *a = &db->attempt;
    struct keywords k;

    keywords_base(db, &k);
    keywords_add(&k, "password", "-"); /* so that libpq does not read ~/.pgpass twice and warn
                                          twice */
    keywords_add(&k, "gssencmode", "not connecting");
    PGconn *conn = PQconnectStartParams(k.names, k.values, 0);
    PQconninfoOption *options = PQconninfo(conn);
    const char *names = option_value(options, "host"), *addrs = option_value(options, "hostaddr");
    const char *ports = option_value(options, "port");
    int n = list_count(*addrs ? addrs : names);

    a->nhosts = n > 0 ? n : 1;
    a->hosts = xcalloc((size_t)a->nhosts, sizeof *a->hosts);
    for (int i = 0; i < a->nhosts; i++) {
        a->hosts[i].name = list_item(names, i);
        a->hosts[i].addr = list_item(addrs, i);
        a->hosts[i].port = list_item(ports, i);
    }
    int64_t seconds = strtoll(option_value(options, "connect_timeout"), NULL, 10);
    a->is_total = seconds > 0 && seconds < 86400;
    a->timeout_ms = a->is_total ? (int)seconds * 1000 : CONNECT_MS;
    const char *shown = *a->hosts[0].name ? a->hosts[0].name : a->hosts[0].addr;
    where_set_host(db, shown, a->hosts[0].port);
    where_set(&db->where.name, option_value(options, "dbname"));
    where_set(&db->where.user, option_value(options, "user"));
    where_set(&db->writable.attrs, option_value(options, "target_session_attrs"));
    options_free(options);
    PQfinish(conn);
}

/* --- look-up --- */

struct host_lookup {
    struct db *db;
    int serial, index;
    char *name;
    char **found;
    int nfound;
    char *problem;
};

static void
lookup_free(void *ctx)
{
    struct host_lookup *k = ctx;

    for (int i = 0; i < k->nfound; i++)
        free(k->found[i]);
    free(k->found);
    free(k->name);
    free(k->problem);
    free(k);
}

static void
lookup_work(void *ctx)
{
    struct host_lookup *k = ctx;
    struct addrinfo hint = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    char text[NI_MAXHOST];

    int rc = getaddrinfo(k->name, NULL, &hint, &list);
    if (rc != 0) {
        k->problem = xasprintf("could not translate host name \"%s\" to address: %s", k->name,
                               gai_strerror(rc));
        return;
    }
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            continue;
        k->found = xreallocarray(k->found, (size_t)k->nfound + 1, sizeof *k->found);
        k->found[k->nfound++] = xstrdup(text);
    }
    freeaddrinfo(list);
}

static void
lookup_done(void *ctx)
{
    struct host_lookup *k = ctx;
    struct db *db = k->db;

    if (db->session.serial == k->serial && db->state == DB_RESOLVING) {
        struct host *h = &db->attempt.hosts[k->index];
        h->found = k->found;
        h->nfound = k->nfound;
        h->problem = k->problem;
        k->found = NULL;
        k->nfound = 0;
        k->problem = NULL;
        db_enter(db);
        if (--db->attempt.lookups == 0)
            connect_begin(db);
        db_leave(db);
    }
    lookup_free(k);
}

void
hosts_look_up(struct db *db, int i)
{
    struct host *h = &db->attempt.hosts[i];
    struct offload *off = db_offload(db);

    if (!off) {
        h->problem = xasprintf("could not look up host name \"%s\": %s", h->name, strerror(errno));
        return;
    }
    struct host_lookup *k = xcalloc(1, sizeof *k);
    *k = (struct host_lookup){.db = db, .serial = db->session.serial, .index = i};
    k->name = xstrdup(h->name);
    db->attempt.lookups++;
    offload_run(off, lookup_work, lookup_done, lookup_free, k);
}

void
connect_forget(struct db *db)
{
    struct attempt *a = &db->attempt;

    for (int i = 0; i < a->nhosts; i++) {
        struct host *h = &a->hosts[i];
        for (int j = 0; j < h->nfound; j++)
            free(h->found[j]);
        free(h->found);
        free(h->name);
        free(h->addr);
        free(h->port);
        free(h->problem);
    }
    for (int i = 0; i < a->ntargets; i++) {
        free(a->targets[i].host);
        free(a->targets[i].hostaddr);
        free(a->targets[i].port);
    }
    free(a->hosts);
    free(a->targets);
    *a = (struct attempt){.at = -1};
}
