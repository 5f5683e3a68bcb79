/*
 * A proxy between a program and the throwaway server: a process of its own with a unix socket, and
 * one more process for each connection. It can swallow an answer, fall silent as a firewall does
 * (nobody is told), or break.
 */
#ifndef TESTS_FAULT_RELAY_H
#define TESTS_FAULT_RELAY_H

#include <sys/types.h>

#include "model/base/mem.h"

struct relay {
    char dir[200]; /* for host=; "127.0.0.1" of a slow one */
    int port;      /* of a slow one */
    pid_t pid;
};

/* word: once a statement with it has been carried out, the connection breaks in front of the
 * answer, once. "a!b": with a and without b. "*a": each time. NULL = never. */
void relay_start(struct relay *r, const char *word);
/* Everything that the server says to a connection goes through `change`, in the process of that
 * connection: it appends to out what the program hears instead. */
typedef void relay_change(struct buf *out, const char *data, size_t n);
void relay_start_changing(struct relay *r, relay_change *change);
/* Over TCP, and that many bytes a second go through in each direction, each so much later (2 s at
 * most): a slow line. */
void relay_start_slow(struct relay *r, int bytes_per_s, int latency_ms);
void relay_stop(struct relay *r);
/* What is connected now hears nothing any more, and no end either; new connections go through. */
void relay_silence(const struct relay *r);
/* What is connected now is cut off. */
void relay_break(const struct relay *r);

#endif
