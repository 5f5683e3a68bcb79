/*
 * The soak: a queue under mixed load while workers, schedulers and the server are killed at random,
 * and operators act at random; then a checker reads the books. The parts:
 *   soak.c         random numbers, the files of events, SQL over a connection that may be lost
 *   soak_push.c    pushers: each push stands in the ledger (soak.push) by its own transaction
 *   soak_claim.c   claimers: claim, note in a file, answer, note the answer
 *   soak_act.c     the operator, and the sampler that looks at the limits all the time
 *   soak_chaos.c   the processes, and what is done to them
 *   soak_books.sql the ledger, and the checks: soak.faults()
 * What a process has seen goes line by line into files, which no crash of the server takes back:
 *   acked, rolled  ids of pushes whose commit was acknowledged, and of those rolled back
 *   run            job, node, lease, version, seq, try, queue, time of the claim
 *   answer         job, node, lease, version, seq, what was said, outcome
 *   act            action, verb, rows changed: what the operator was told
 *   cmd            job, node, try: written by the command of `queuetop work`
 *   sample         one line a look at the limits: how many faults it saw, and the first
 *   order          commits, claims, answers and cancellations, each with the time before its call
 * and after its answer: replay.h tells what must be true of their order
 */
#ifndef TESTS_FAULT_SOAK_H
#define TESTS_FAULT_SOAK_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct soak {
    char dsn[400];
    uint64_t random; /* state of the generator of this process */
    uint64_t seed;
    int seconds;
};

int64_t soak_ms(void);
void soak_wait(int ms);
/* 0 to n - 1 */
unsigned soak_random(struct soak *s, unsigned n);
/* True in so many of 1000 cases. */
bool soak_chance(struct soak *s, unsigned per_mille);
/* A version 7 uuid by chance of this process. */
void soak_uuid(struct soak *s, char id[static 37]);

/* Appends one line to a file of events, in one write. */
void soak_note(const char *file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Connects again and again until it is there or 60 s have passed (NULL). */
PGconn *soak_connect(const struct soak *s, const char *name);
/* Runs it; NULL when it failed, and then *conn is new if it was lost. The caller clears. */
PGresult *soak_ask(struct soak *s, PGconn **conn, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* True if the last failure of soak_ask was a broken connection. */
bool soak_was_cut(void);
/* Notes in "order" what the last soak_ask did to a job; rest = node, lease, version, seq, outcome.
 */
void soak_note_order(const char *kind, const char *job, const char *rest);

/* Bodies of the forked processes; they end by a signal only, or with the test. */
_Noreturn void soak_pusher(struct soak *s, int n);
_Noreturn void soak_claimer(struct soak *s, int n, bool calm);
_Noreturn void soak_sampler(struct soak *s);

/* One random act of an operator. */
void soak_act(struct soak *s, PGconn **conn);

struct soak_tally {
    int kills, stops, ends, restarts, drops, acts;
};

/* Starts all processes, and disturbs them at random until the time is over. */
void soak_chaos(struct soak *s, struct soak_tally *t);
/* Stops the chaos and waits until no job is left that could run; then ends all processes. False:
 * some jobs were left after the time limit. */
bool soak_calm(struct soak *s);

/* Copies a file of the books into a table of the schema soak. */
void soak_read(PGconn *conn, const char *name, const char *columns);

#endif
