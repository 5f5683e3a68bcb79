/* Inside the queue's C interface: the statements, and one call with what its answer needs. */
#ifndef MODEL_WORKER_QUEUE_PARTS_H
#define MODEL_WORKER_QUEUE_PARTS_H

#include "model/base/array.h"
#include "model/worker/queue.h"

enum queue_sql { /* `files` in queue.c names the file of each */
                 SQL_PUSH,
                 SQL_CLAIM,
                 SQL_COMPLETE,
                 SQL_FAIL,
                 SQL_EXTEND,
                 SQL_GIVE_BACK,
                 SQL_NODE_START,
                 SQL_NODE_BEAT,
                 SQL_NODE_CLOCK,
                 SQL_NODE_SLEEP,
                 SQL_SCHEDULER_SLEEP,
                 SQL_NODE_STOP,
                 SQL_KEEP_ONLY,
                 SQL_BACKLOG,
                 SQL_SCHEDULE,
                 SQL_SCHEDULE_STOP,
                 SQL_SCHEDULER_HOLDER,
                 SQL_CLAIM_OR_WAIT,
                 SQL_COMPLETE_AND_CLAIM,
                 SQL_WAKE,
                 SQL_KEEP_BOOKS,
                 SQL_IS_NEW,
                 SQL_FOLD,
                 SQL_N
};

struct queue {
    struct db *db;
    char *sql[SQL_N]; /* with the schema's name in it */
    int wait_ms;
    bool in_doubt;
    int64_t server_ms;
    struct queue_push doubtful; /* the first job of the push in doubt: id and queue */
    char *doubtful_queue;       /* owns doubtful.queue */
};

/* Sends one statement in a transaction of its own; the parameters are copied. */
void queue_send(struct queue *q, enum queue_sql sql, const struct db_param *params, int n,
                db_reply_fn *fn, void *ctx);

/* "60000 milliseconds" for an interval parameter; a NULL parameter for 0. */
struct db_param queue_interval(char buf[static 40], int64_t ms);
struct db_param queue_text(const char *s);
/* A text[] of names; *a is left empty and the parameter NULL for none. */
struct db_param queue_names(struct array *a, const char *const *names, int n);
/* false: the server's word for an outcome is unknown (ERR_DATA). */
bool queue_outcome_of(const char *word, enum queue_outcome *out, struct err *e)
    __attribute__((warn_unused_result));

#endif
