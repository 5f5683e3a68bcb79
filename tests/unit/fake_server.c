/*
 * The scripted server: see fake_server.h. It understands just enough of the protocol to know where
 * a message ends, and that a Sync asks for an answer.
 */
#include "tests/unit/fake_server.h"

#include "tests/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/base/clock.h"

enum { PORT = 5432, SSL_REQUEST = 80877103, GSS_REQUEST = 80877104, CANCEL_REQUEST = 80877102 };

/* --- messages --- */

static void
add_int(struct buf *b, int n)
{
    uint32_t net = htonl((uint32_t)n);

    buf_add(b, &net, 4);
}

static void
add_short(struct buf *b, int n)
{
    uint16_t net = htons((uint16_t)n);

    buf_add(b, &net, 2);
}

static void
add_message(struct buf *b, char type, const struct buf *body)
{
    buf_add(b, &type, 1);
    add_int(b, (int)body->len + 4);
    buf_add(b, body->data ? body->data : "", body->len);
}

static void
add_empty(struct buf *b, const char *types)
{
    const struct buf nothing = {0};

    for (; *types; types++)
        add_message(b, *types, &nothing);
}

static void
add_status(struct buf *b, const char *name, const char *value)
{
    struct buf body = {0};

    buf_add(&body, name, strlen(name) + 1);
    buf_add(&body, value, strlen(value) + 1);
    add_message(b, 'S', &body);
    buf_free(&body);
}

static void
add_auth(struct buf *b, int kind)
{
    struct buf body = {0};

    add_int(&body, kind);
    add_message(b, 'R', &body);
    buf_free(&body);
}

void
fake_ready(struct buf *b, char status)
{
    const struct buf body = {.data = &status, .len = 1};

    add_message(b, 'Z', &body);
}

void
fake_hello(struct buf *b)
{
    struct buf key = {0};

    add_auth(b, 0);
    add_status(b, "server_version", "15.99");
    add_status(b, "client_encoding", "UTF8");
    add_status(b, "standard_conforming_strings", "on");
    add_int(&key, 4711);
    add_int(&key, 42);
    add_message(b, 'K', &key);
    buf_free(&key);
    fake_ready(b, 'I');
}

void
fake_wants_password(struct buf *b)
{
    add_auth(b, 3);
}

void
fake_done(struct buf *b, const char *tag)
{
    struct buf body = {0};

    add_empty(b, "12n");
    buf_add(&body, tag, strlen(tag) + 1);
    add_message(b, 'C', &body);
    buf_free(&body);
}

void
fake_value(struct buf *b, const char *text)
{
    struct buf columns = {0}, row = {0}, tag = {0};

    add_empty(b, "12");
    add_short(&columns, 1);
    buf_add(&columns, "v", 2);
    add_int(&columns, 0);
    add_short(&columns, 0);
    add_int(&columns, 25);
    add_short(&columns, -1);
    add_int(&columns, -1);
    add_short(&columns, 0);
    add_message(b, 'T', &columns);
    add_short(&row, 1);
    add_int(&row, (int)strlen(text));
    buf_str(&row, text);
    add_message(b, 'D', &row);
    buf_add(&tag, "SELECT 1", 9);
    add_message(b, 'C', &tag);
    buf_free(&columns);
    buf_free(&row);
    buf_free(&tag);
}

static void
add_fields(struct buf *b, char type, const char *severity, const char *sqlstate, const char *text)
{
    struct buf body = {0};

    buf_printf(&body, "S%s%cV%s%cC%s%cM%s%c%c", severity, 0, severity, 0, sqlstate, 0, text, 0, 0);
    add_message(b, type, &body);
    buf_free(&body);
}

void
fake_error(struct buf *b, const char *severity, const char *sqlstate, const char *text)
{
    add_fields(b, 'E', severity, sqlstate, text);
}

void
fake_notice(struct buf *b, const char *text)
{
    add_fields(b, 'N', "NOTICE", "00000", text);
}

/* --- the connection --- */

static void
hang_up(struct fake *f)
{
    loop_unwatch(f->loop, f->watch);
    loop_cancel(f->loop, f->sip_timer);
    f->sip_timer = 0;
    f->is_pausing = false;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->watch = 0;
    f->has_started = false;
    buf_clear(&f->in);
    buf_clear(&f->slow);
}

static void
send_slowly(void *ctx)
{
    struct fake *f = ctx;
    size_t n = f->slow.len < (size_t)f->slowly ? f->slow.len : (size_t)f->slowly;

    if (f->fd < 0 || n == 0)
        return;
    assert_int_equal(write(f->fd, f->slow.data, n), n);
    memmove(f->slow.data, f->slow.data + n, f->slow.len - n);
    f->slow.len -= n;
    if (f->slow.len > 0)
        loop_at(f->loop, clock_ms() + 1, send_slowly, f);
}

void
fake_send(struct fake *f, const struct buf *bytes)
{
    if (bytes->len == 0 || f->fd < 0)
        return;
    if (f->slowly == 0) {
        assert_int_equal(write(f->fd, bytes->data, bytes->len), bytes->len);
        return;
    }
    buf_add(&f->slow, bytes->data, bytes->len);
    loop_at(f->loop, clock_ms(), send_slowly, f);
}

static void
answer(struct fake *f, const struct fake_answer *a)
{
    fake_send(f, &a->bytes);
    if (a->hangs_up)
        hang_up(f);
}

static int
read_int(const char *p)
{
    uint32_t net;

    memcpy(&net, p, 4);
    return (int)ntohl(net);
}

static void
take_startup(struct fake *f, const char *body)
{
    int code = read_int(body);

    if (code == SSL_REQUEST || code == GSS_REQUEST) {
        assert_int_equal(write(f->fd, "N", 1), 1);
        return;
    }
    f->has_started = true;
    answer(f, &f->greeting);
}

static void
take_message(struct fake *f, char type, const char *body)
{
    if (type == 'S') {
        int i = f->syncs++;
        if (i < f->nanswers)
            answer(f, &f->answers[i]);
    } else if (type == 'P') {
        const char *query = body + strlen(body) + 1;
        buf_printf(&f->queries, "%s\n", query);
    } else if (type == 'p') {
        struct buf hello = {0};
        bool good = !f->good_password || !strcmp(f->good_password, body);
        snprintf(f->password, sizeof f->password, "%s", body);
        if (good)
            fake_hello(&hello);
        else
            fake_error(&hello, "FATAL", "28P01", "password authentication failed");
        fake_send(f, &hello);
        buf_free(&hello);
        if (!good)
            hang_up(f);
    }
}

/* Takes one whole message off the input; false = there is none. */
static bool
take_one(struct fake *f)
{
    size_t head = f->has_started ? 1 : 0;

    if (f->fd < 0 || f->in.len < head + 4)
        return false;
    size_t len = head + (size_t)read_int(f->in.data + head);
    if (f->in.len < len)
        return false;
    char *message = xmalloc(len + 1);
    memcpy(message, f->in.data, len);
    message[len] = 0;
    memmove(f->in.data, f->in.data + len, f->in.len - len);
    f->in.len -= len;
    if (f->has_started)
        take_message(f, message[0], message + 5);
    else
        take_startup(f, message + 4);
    free(message);
    return true;
}

static void on_input(void *ctx, short revents);

static void
sip(void *ctx)
{
    struct fake *f = ctx;

    f->sip_timer = 0;
    f->is_pausing = false;
    loop_rewatch(f->loop, f->watch, f->fd, POLLIN);
    on_input(f, 0);
}

static void
on_input(void *ctx, short revents)
{
    struct fake *f = ctx;
    static char bytes[1 << 16];

    (void)revents;
    if (f->is_pausing || f->fd < 0)
        return;
    if (f->sips > 0) {
        f->is_pausing = true;
        loop_rewatch(f->loop, f->watch, f->fd, 0);
        f->sip_timer = loop_at(f->loop, clock_ms() + f->pause_ms, sip, f);
    }
    ssize_t n = recv(f->fd, bytes, f->sips > 0 ? (size_t)f->sips : sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        hang_up(f);
        return;
    }
    buf_add(&f->in, bytes, (size_t)n);
    while (take_one(f))
        ;
}

/* The client sends a cancel request on a second connection. The first connection stays open. */
static void
take_cancel(struct fake *f, int fd)
{
    char bytes[16];

    assert_int_equal(recv(fd, bytes, sizeof bytes, MSG_WAITALL), 16);
    assert_int_equal(read_int(bytes + 4), CANCEL_REQUEST);
    assert_int_equal(read_int(bytes + 8), 4711);
    f->cancels++;
    if (f->holds_cancel)
        f->cancel_fd = fd;
    else
        close(fd);
    if (f->on_cancel)
        f->on_cancel(f);
}

void
fake_let_cancel(struct fake *f)
{
    if (f->cancel_fd >= 0)
        close(f->cancel_fd);
    f->cancel_fd = -1;
}

static void
on_connection(void *ctx, short revents)
{
    struct fake *f = ctx;
    int fd = accept(f->listen_fd, NULL, NULL);
    struct pollfd old = {.fd = f->fd, .events = POLLRDHUP};

    (void)revents;
    assert_true(fd >= 0);
    if (f->fd >= 0 && poll(&old, 1, 0) == 1)
        hang_up(f); /* the client has closed this connection, we have not seen that yet */
    if (f->fd >= 0) {
        take_cancel(f, fd);
        return;
    }
    f->connections++;
    f->fd = fd;
    f->watch = loop_watch(f->loop, fd, POLLIN, on_input, f);
}

/* --- the test's side --- */

void
fake_reset(struct fake *f)
{
    f->sips = f->pause_ms = 0;
    buf_free(&f->greeting.bytes);
    f->greeting.hangs_up = false;
    f->good_password = NULL;
    for (int i = 0; i < f->nanswers; i++)
        buf_free(&f->answers[i].bytes);
    memset(f->answers, 0, sizeof f->answers);
    f->nanswers = f->syncs = f->cancels = f->connections = 0;
    buf_clear(&f->queries);
    fake_hello(&f->greeting.bytes);
}

struct fake *
fake_new(struct loop *l)
{
    struct fake *f = xcalloc(1, sizeof *f);
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    f->loop = l;
    f->fd = f->cancel_fd = -1;
    snprintf(f->dir, sizeof f->dir, "%s", getenv("TMPDIR"));
    snprintf(at.sun_path, sizeof at.sun_path, "%.80s/.s.PGSQL.%d", f->dir, PORT);
    f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listen_fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(f->listen_fd, 10), 0);
    f->listen_watch = loop_watch(l, f->listen_fd, POLLIN, on_connection, f);
    fake_reset(f);
    return f;
}

void
fake_free(struct fake *f)
{
    char path[300];

    fake_reset(f);
    fake_let_cancel(f);
    hang_up(f);
    loop_unwatch(f->loop, f->listen_watch);
    close(f->listen_fd);
    snprintf(path, sizeof path, "%s/.s.PGSQL.%d", f->dir, PORT);
    unlink(path);
    buf_free(&f->greeting.bytes);
    buf_free(&f->in);
    buf_free(&f->slow);
    buf_free(&f->queries);
    free(f);
}

const char *
fake_dsn(const struct fake *f)
{
    static char texts[4][300];
    static int at;
    char *text = texts[at++ % 4];

    snprintf(text, sizeof texts[0], "host=%s port=%d user=u dbname=d passfile=/none", f->dir, PORT);
    return text;
}

struct fake_answer *
fake_next(struct fake *f)
{
    assert_true(f->nanswers < FAKE_ANSWERS);
    return &f->answers[f->nanswers++];
}
