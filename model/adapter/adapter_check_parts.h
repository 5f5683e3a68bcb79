/* The inside of the check, for its own files only: adapter_check.c (what is run, and what came of
 * an act), adapter_check_sample.c (what it is run on). */
#ifndef MODEL_ADAPTER_ADAPTER_CHECK_PARTS_H
#define MODEL_ADAPTER_ADAPTER_CHECK_PARTS_H

#include "model/adapter/adapter_check.h"

enum { SAMPLES_MOST = 24, NAMES_MOST = 8, HOUR_MS = 3600000 };

struct check_sample { /* what the database holds */
    char *ids[SAMPLES_MOST];
    int nids;
    char *queue, *kind, *node, *error, *cursor; /* of the first job that has one */
    char *queues[NAMES_MOST], *nodes[NAMES_MOST], *schedules[NAMES_MOST];
    int nqueues, nnodes, nschedules;
};

struct check {
    const struct adapter *a;
    struct db *db;
    struct loop *loop;
    struct check_sample sample;
    struct params p; /* of the next run */
    struct adapter_finding found;
    bool is_alone; /* the act runs job by job */
    char text[400];
    struct err *e; /* the error of the connection */
};

extern const char *const check_states[8];

/* Clears the parameters of the next run; only small limits are set. */
void check_clear(struct check *c);
/* Runs a section once by c->p. False: the connection broke. The answer is the caller's, NULL when
 * the statement failed. */
bool check_ask(struct check *c, enum section_id s, struct result **out, struct err *e);
/* False: the connection broke. */
bool check_take_sample(struct check *c);
void check_sample_done(struct check_sample *s);

#endif
