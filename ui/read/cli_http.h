/* A small web server in the loop (libmicrohttpd): GET of one page, answered from memory. */
#ifndef UI_READ_CLI_HTTP_H
#define UI_READ_CLI_HTTP_H

#include <stdbool.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/base/mem.h"

struct http;

struct http_options {
    const char *address; /* ADDR:PORT, [ADDR]:PORT, or PORT: only on this machine; port 0 = any */
    const char *cert, *key; /* files in PEM format; both: TLS, neither: no TLS */
    const char *auth;       /* file whose first line is USER:PASSWORD; NULL = open to anybody */
};

/* Writes the page into out; modern: the client accepts OpenMetrics. */
typedef void http_page_fn(void *ctx, bool modern, struct buf *out);

struct http *http_new(struct loop *l, const struct http_options *o, http_page_fn *page, void *ctx,
                      struct err *e) __attribute__((warn_unused_result));
void http_free(struct http *h);
int http_port(const struct http *h);

#endif
