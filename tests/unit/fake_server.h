/*
 * A server of the PostgreSQL protocol (version 3) that says exactly what a test wrote down: a
 * greeting for each connection, and one prepared answer for each Sync that arrives. It lives in the
 * test's own loop, on a unix socket in TMPDIR.
 */
#ifndef TESTS_UNIT_FAKE_SERVER_H
#define TESTS_UNIT_FAKE_SERVER_H

#include <stdbool.h>

#include "model/base/loop.h"
#include "model/base/mem.h"

enum { FAKE_ANSWERS = 16 };

struct fake_answer {
    struct buf bytes;
    bool hangs_up; /* closes the connection after the bytes */
};

struct fake {
    struct loop *loop;
    char dir[200];
    int listen_fd, listen_watch;
    int fd, watch; /* the connection, -1 = none */
    struct buf in;
    bool has_started; /* the startup message was read */
    struct fake_answer greeting, answers[FAKE_ANSWERS];
    int nanswers;
    int slowly; /* bytes a write, one write a millisecond; 0 = all at once */
    struct buf slow;
    int sips; /* bytes that it reads at a time, with a pause after each; 0 = all */
    int pause_ms;
    bool is_pausing;
    int sip_timer;
    int connections, syncs, cancels;
    char password[50];                    /* as the client sent it */
    const char *good_password;            /* any other password is rejected; NULL = all are
                                             accepted */
    struct buf queries;                   /* texts of Parse messages, a line each */
    void (*on_cancel)(struct fake *fake); /* NULL = nothing happens */
    bool holds_cancel; /* a cancel request stays unanswered until fake_let_cancel */
    int cancel_fd;
};

struct fake *fake_new(struct loop *l);
void fake_free(struct fake *f);
/* The conninfo that leads here; valid until 4 later calls. */
const char *fake_dsn(const struct fake *f);
/* Forgets greeting and answers; the greeting is a good one again. */
void fake_reset(struct fake *f);
/* Appends an empty answer for the caller to fill. Answers are used in order; a Sync after the last
 * one gets no answer. */
struct fake_answer *fake_next(struct fake *f);
/* Sends bytes now. */
void fake_send(struct fake *f, const struct buf *bytes);

/* Ends the cancel request that is held. */
void fake_let_cancel(struct fake *f);

/* Messages. A greeting is fake_hello; an answer to a call is BEGIN, settings, statements, COMMIT.
 */
void fake_hello(struct buf *b);
void fake_done(struct buf *b, const char *tag);   /* a statement without rows */
void fake_value(struct buf *b, const char *text); /* a statement with one row of one column */
void fake_error(struct buf *b, const char *severity, const char *sqlstate, const char *text);
void fake_notice(struct buf *b, const char *text);
void fake_wants_password(struct buf *b);
void fake_ready(struct buf *b, char status); /* 'I', 'T', 'E' */

#endif
