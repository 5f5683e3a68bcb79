/* The jobs of the demo: a table of kinds, and the decision how one try of a job ends. The decision
 * depends on the job's id, so that the same job fails in the same way each time. */
#ifndef UI_DEMO_DEMO_JOBS_H
#define UI_DEMO_DEMO_JOBS_H

#include <stdint.h>

#include "model/base/mem.h"

enum { DEMO_KINDS_MAX = 24, DEMO_CRASH_MS = 4000, DEMO_SLOW_MS = 480000 };

/* Patterns: '#' becomes a digit, '~' a digit from 1 to 9; other characters stay. */
struct demo_kind {
    const char *queue, *kind;
    double per_second;  /* mean rate of pushes */
    int backlog;        /* pushed at the start */
    int urgent_percent; /* of priority 1 */
    int later_percent;  /* with a delay of up to half an hour */
    int max_tries;      /* 0 = the queue's number */
    const char *unique; /* pattern of the unique key; NULL = none */
    const char *type;   /* of a payload that is not JSON; NULL = JSON */
    const char *payload;
};
extern const struct demo_kind demo_kinds[];

struct demo_try {
    const char *queue, *id;
    int number; /* 1 = the first try */
    int64_t wall_ms;
    int run_ms;        /* the members from here on are the decision */
    const char *error; /* pattern of the error; NULL = the try succeeds */
    uint64_t random;
};
void demo_decide(struct demo_try *t);

/* The next pace (0.05 to 1 times the rates) for this number of ready jobs. The pace drops while the
 * workers are behind, so that the demo does not fill up on a slow machine, and rises again once
 * they have caught up. */
double demo_pace(double pace, int64_t ready);

/* A number from 0 to n - 1. */
int demo_roll(uint64_t *random, int n);
void demo_fill(struct buf *out, const char *pattern, uint64_t *random);

#endif
