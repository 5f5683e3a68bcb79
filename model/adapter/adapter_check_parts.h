/* The inside of the check, for its own files only: adapter_check.c (what is run),
 * adapter_check_sample.c (what it is run on), adapter_check_changed.c (what came of an act). */
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
/* Runs an act between two looks at its target, in one transaction. out[0] and out[2] are the
 * answers of the look before and after the act; NULL if no section shows the target. Otherwise as
 * check_ask. */
bool check_ask_thrice(struct check *c, enum section_id s, struct result *out[3], struct err *e);
/* The first row that was reported as changed, but has not changed; NULL = none. */
const char *check_unchanged(enum section_id act, const struct result *before,
                            const struct rowset *rows, const struct result *after);
/* False: the connection broke. */
bool check_take_sample(struct check *c);
void check_sample_done(struct check_sample *s);

#endif
