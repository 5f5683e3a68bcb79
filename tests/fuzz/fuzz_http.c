/*
 * What a client may send to the server of the metrics: whatever comes, the server lives and answers
 * in HTTP, and nobody gets the page who has not sent the password.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/read/cli_http.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { IDLE_TURNS = 6, MOST = 65536, ADDRESSES = 60000 };
#define PAGE "the page of figures"
#define PASSWORD "dTpw" /* u:p */

static struct loop *loop;
static struct http *server;

static void
write_page(void *ctx, bool modern, struct buf *out)
{
    (void)ctx;
    buf_str(out, modern ? PAGE "\n# EOF\n" : PAGE "\n");
}

static void
start(void)
{
    char path[] = "/tmp/fuzz_http.XXXXXX";
    struct err e = {0};
    int fd = mkstemp(path);

    assert(fd >= 0 && write(fd, "u:p\n", 4) == 4);
    close(fd);
    loop = loop_new();
    server = http_new(loop, &(struct http_options){.address = "127.0.0.1:0", .auth = path},
                      write_page, NULL, &e);
    assert(server);
    unlink(path);
}

/* Sends the data, and reads until the server closes or has nothing more to do. */
static void
ask(const unsigned char *data, size_t size, struct buf *out)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((in_port_t)http_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static in_addr_t last; /* one address has 28,000 ports, of which the kernel keeps some in use */
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + ++last % ADDRESSES)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct err e = {0};
    char part[4096];
    ssize_t n = -1;

    assert(fd >= 0 && bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) { /* a signal of the fuzzer's timer */
        assert(errno == EINTR);
        close(fd);
        return;
    }
    ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    assert(sent == (ssize_t)size);
    shutdown(fd, SHUT_WR);
    for (int idle = 0; idle < IDLE_TURNS && n != 0; idle++) {
        assert(loop_turn(loop, 0, &e));
        n = recv(fd, part, sizeof part, MSG_DONTWAIT);
        if (n > 0) {
            buf_add(out, part, (size_t)n);
            idle = 0;
        }
    }
    struct linger reset = {.l_onoff = 1}; /* no port stays in TIME_WAIT */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    assert(loop_turn(loop, 0, &e));
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the fuzzer says what this looks like */
int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct buf out = {0};

    if (!loop)
        start();
    if (size > MOST)
        return 0;
    ask(data, size, &out);
    assert(!out.len || !strncmp(out.data, "HTTP/1.", 7));
    if (out.len && memmem(out.data, out.len, PAGE, strlen(PAGE)))
        assert(memmem(data, size, PASSWORD, strlen(PASSWORD)));
    buf_free(&out);
    return 0;
}
