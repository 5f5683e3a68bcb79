/*
 * libmicrohttpd without a thread of its own: the loop watches its epoll descriptor, and the server
 * runs when the descriptor is readable or a time-out is over. Everything that a client can make
 * larger is limited: the connections, their memory, and how long they may be silent. A client that
 * sends a byte now and then is not silent. So if there are many, the oldest connection is closed.
 */
#include "ui/read/cli_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/owned.h"

enum {
    CONNECTIONS_MOST = 32,
    CONNECTIONS_MANY = 24, /* less: the library accepts nobody at its limit */
    CONNECTION_BYTES = 16384,
    SILENCE_S = 10,
    FILE_MOST = 65536,
    LOOK_MS = 1000
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct seat { /* of a connection */
    bool is_taken;
    int fd;      /* -1 = it is being closed */
    int64_t age; /* its number in the order of connections and requests */
};

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    http_page_fn *page;
    void *ctx;
    char *cert, *key, *auth; /* auth: the header that a client must send; NULL = anybody */
    int watch, timer, port;
    struct seat seats[CONNECTIONS_MOST];
    int taken;
    bool has_closed; /* a connection, since the library ran last */
    int64_t last_age;
};

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result
answer(struct MHD_Connection *c, unsigned status, const char *type, const void *text, size_t len)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"queuetop\"");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result
say(struct MHD_Connection *c, unsigned status, const char *text)
{
    return answer(c, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Takes the same time for a wrong password as for the right one. */
static bool
is_known(const struct http *h, struct MHD_Connection *c)
{
    const char *said =
        MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    size_t len = h->auth ? strlen(h->auth) : 0;
    unsigned char differs = 0;

    if (!h->auth)
        return true;
    if (!said || strlen(said) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(said[i] ^ h->auth[i]);
    return differs == 0;
}

static enum MHD_Result
answer_page(struct http *h, struct MHD_Connection *c)
{
    const char *wants = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    bool modern = wants && strstr(wants, "application/openmetrics-text");
    struct buf out = {0};

    h->page(h->ctx, modern, &out);
    enum MHD_Result done =
        answer(c, MHD_HTTP_OK,
               modern ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                      : "text/plain; version=0.0.4; charset=utf-8",
               out.data, out.len);
    buf_free(&out);
    return done;
}

/* --- seats ------------------------------------------------------------------------------------- */

/* Ends the connection that has asked for nothing for the longest time. */
static void
close_oldest(struct http *h)
{
    struct seat *oldest = NULL;

    for (int i = 0; i < CONNECTIONS_MOST; i++) {
        struct seat *p = &h->seats[i];
        if (p->is_taken && p->fd >= 0 && (!oldest || p->age < oldest->age))
            oldest = p;
    }
    if (!oldest)
        return;
    shutdown(oldest->fd, SHUT_RDWR); /* the library sees its end, and closes it */
    oldest->fd = -1;
}

static void
on_connection(void *ctx, struct MHD_Connection *c, void **seat,
              enum MHD_ConnectionNotificationCode what)
{
    struct http *h = ctx;
    struct seat *p = *seat;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        h->has_closed = true;
        h->taken -= p != NULL;
        if (p)
            *p = (struct seat){0};
        return;
    }
    if (h->taken >= CONNECTIONS_MANY)
        close_oldest(h);
    for (p = h->seats; p < h->seats + CONNECTIONS_MOST && p->is_taken; p++)
        continue;
    if (p == h->seats + CONNECTIONS_MOST)
        return;
    int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *p = (struct seat){.is_taken = true, .fd = fd, .age = ++h->last_age};
    h->taken++;
    *seat = p;
}

static void
renew_seat(struct http *h, struct MHD_Connection *c)
{
    struct seat *p = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

    if (p)
        p->age = ++h->last_age;
}

/* --- requests --------------------------------------------------------------------------------- */

static enum MHD_Result
on_request(void *ctx, struct MHD_Connection *c, const char *url, const char *method,
           const char *version, const char *upload, size_t *upload_size, void **seen)
{
    struct http *h = ctx;
    static int begun;

    (void)version;
    (void)upload;
    if (!*seen) { /* the headers have come; the body is dropped */
        *seen = &begun;
        return MHD_YES;
    }
    if (*upload_size) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (!is_known(h, c))
        return say(c, MHD_HTTP_UNAUTHORIZED, "user and password, please\n");
    renew_seat(h, c);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return say(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n");
    if (!strcmp(url, "/metrics"))
        return answer_page(h, c);
    if (!strcmp(url, "/"))
        return say(c, MHD_HTTP_OK, "queuetop: see /metrics\n");
    return say(c, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
}

/* --- in the loop ------------------------------------------------------------------------------ */

static void on_timer(void *ctx);

/* At its limit the library does not look at clients that wait to connect. After a connection has
 * closed it looks at them again, but only when it runs the next time, and no event causes that. */
static void
run(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;

    h->has_closed = false;
    MHD_run(h->daemon);
    if (h->timer)
        loop_cancel(h->loop, h->timer);
    h->timer = 0;
    if (h->has_closed)
        h->timer = loop_at(h->loop, clock_ms(), on_timer, h);
    else if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        h->timer =
            loop_at(h->loop, clock_ms() + (ms < LOOK_MS ? (int64_t)ms : LOOK_MS), on_timer, h);
}

static void
on_timer(void *ctx)
{
    struct http *h = ctx;

    h->timer = 0;
    run(h);
}

static void
on_ready(void *ctx, short revents)
{
    (void)revents;
    run(ctx);
}

/* --- starting --------------------------------------------------------------------------------- */

/* Reads a whole small file. secret: rejects a file that others may read. */
static char *
read_small(const char *path, bool secret, struct err *e)
{
    int fd = owned_read(path, e);
    struct stat st;
    char *text = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0) {
        fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST) {
        fail(e, ERR_DATA, "%s: not a file of at most %d bytes", path, FILE_MOST);
    } else if (secret && (st.st_mode & (S_IRWXG | S_IRWXO))) {
        fail(e, ERR_REFUSED, "%s: others may read it: chmod 600", path);
    } else {
        text = xmalloc((size_t)st.st_size + 1);
        ssize_t n = read(fd, text, (size_t)st.st_size);
        text[n > 0 ? n : 0] = '\0';
    }
    close(fd);
    return text;
}

/* The header that a client must send if the file has this first line: RFC 7617. */
static char *
header_of(const char *line, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf b = {0};

    buf_str(&b, "Basic ");
    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)(unsigned char)line[i] << 16;
        v |= i + 1 < len ? (unsigned)(unsigned char)line[i + 1] << 8 : 0;
        v |= i + 2 < len ? (unsigned)(unsigned char)line[i + 2] : 0;
        buf_printf(&b, "%c%c%c%c", digits[v >> 18], digits[v >> 12 & 63],
                   i + 1 < len ? digits[v >> 6 & 63] : '=', i + 2 < len ? digits[v & 63] : '=');
    }
    return b.data;
}

static bool
read_auth(struct http *h, const char *path, struct err *e)
{
    char *text = read_small(path, true, e);

    if (!text)
        return false;
    size_t len = strcspn(text, "\r\n");
    char *colon = memchr(text, ':', len);
    bool ok = colon && colon > text && colon + 1 < text + len;
    if (ok)
        h->auth = header_of(text, len);
    else
        fail(e, ERR_DATA, "%s: its first line must be USER:PASSWORD", path);
    free(text);
    return ok;
}

/* Splits an address: "[::1]:9187", "0.0.0.0:9187", "9187" = on this machine only. */
/* Accepts only an address, not a name: looking up a name blocks, and the answer may differ
 * tomorrow. */
static bool
read_address(const char *text, union address *at, struct err *e)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    char host[INET6_ADDRSTRLEN] = "127.0.0.1";
    size_t len = colon ? (size_t)(colon - text) : 0;

    if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (!*port || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 ||
        strtol(port, NULL, 10) > 65535)
        return fail(e, ERR_USAGE, "--listen takes PORT, ADDR:PORT or [ADDR]:PORT");
    in_port_t number = htons((in_port_t)strtol(port, NULL, 10));
    if (len && len < sizeof host)
        snprintf(host, sizeof host, "%.*s", (int)len, text);
    *at = (union address){0};
    if (len < sizeof host && inet_pton(AF_INET, host, &at->v4.sin_addr) == 1) {
        at->v4.sin_family = AF_INET;
        at->v4.sin_port = number;
        return true;
    }
    if (len < sizeof host && inet_pton(AF_INET6, host, &at->v6.sin6_addr) == 1) {
        at->v6.sin6_family = AF_INET6;
        at->v6.sin6_port = number;
        return true;
    }
    return fail(e, ERR_USAGE, "--listen takes the number of an address, not %.*s", (int)len, text);
}

static bool
start(struct http *h, const struct sockaddr *at, struct err *e)
{
    unsigned flags = MHD_USE_EPOLL | (at->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0) |
                     (h->cert ? MHD_USE_TLS : 0);
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, h->cert},
        {MHD_OPTION_HTTPS_MEM_KEY,  0, h->key },
        {MHD_OPTION_END,            0, NULL   }
    };
    const struct MHD_OptionItem none[] = {
        {MHD_OPTION_END, 0, NULL}
    };

    if (h->cert && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return fail(e, ERR_SYS, "this libmicrohttpd has no TLS");
    errno = 0;
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_SOCK_ADDR, at, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, h, MHD_OPTION_ARRAY, h->cert ? tls : none, MHD_OPTION_END);
    if (!h->daemon)
        return fail(e, ERR_SYS, "can't listen: %s",
                    errno ? strerror(errno) : "the certificate or its key is not usable");
    h->port = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    int fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    h->watch = loop_watch(h->loop, fd, POLLIN, on_ready, h);
    return true;
}

static bool
read_files(struct http *h, const struct http_options *o, struct err *e)
{
    if (!o->cert != !o->key)
        return fail(e, ERR_USAGE, "--cert and --key go together");
    if (o->auth && !read_auth(h, o->auth, e))
        return false;
    if (!o->cert)
        return true;
    h->cert = read_small(o->cert, false, e);
    h->key = h->cert ? read_small(o->key, true, e) : NULL;
    return h->key != NULL;
}

struct http *
http_new(struct loop *l, const struct http_options *o, http_page_fn *page, void *ctx, struct err *e)
{
    struct http *h = xcalloc(1, sizeof *h);
    union address at;

    h->loop = l;
    h->page = page;
    h->ctx = ctx;
    bool ok = read_files(h, o, e) && read_address(o->address, &at, e) && start(h, &at.any, e);
    if (ok)
        return h;
    http_free(h);
    return NULL;
}

void
http_free(struct http *h)
{
    if (!h)
        return;
    if (h->timer)
        loop_cancel(h->loop, h->timer);
    if (h->watch)
        loop_unwatch(h->loop, h->watch);
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    free(h->cert);
    free(h->key);
    free(h->auth);
    free(h);
}

int
http_port(const struct http *h)
{
    return h->port;
}
