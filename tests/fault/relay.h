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

/* word: after the server has run a statement with this word, the connection breaks before the
 * answer; this happens once. "a!b": a statement with a and without b. "*a": every time. NULL =
 * never. */
void relay_start(struct relay *r, const char *word);
/* Passes all bytes from the server through `change`, in the process of the connection. `change`
 * appends to out the bytes that the program receives instead. */
typedef void relay_change(struct buf *out, const char *data, size_t n);
void relay_start_changing(struct relay *r, relay_change *change);
/* A slow line over TCP: this number of bytes per second in each direction, each delayed by this
 * time (2 s at most). */
void relay_start_slow(struct relay *r, int bytes_per_s, int latency_ms);
void relay_stop(struct relay *r);
/* The present connections receive nothing more, not even the end of the connection. New connections
 * work. */
void relay_silence(const struct relay *r);
/* Breaks the present connections. */
void relay_break(const struct relay *r);

#endif
