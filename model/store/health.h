/* Database health: what follows from its rows (model/adapter/health_rows.h) and, for rates, from
 * two answers; and advice: plain sentences, each with the process and the act that help. These
 * functions only compute; they run nothing. */
#ifndef MODEL_STORE_HEALTH_H
#define MODEL_STORE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "model/adapter/health_rows.h"
#include "model/base/mem.h"
#include "model/store/conditions.h"

struct health {                         /* one snapshot of the database's health */
    const struct health_server *server; /* NULL = not known yet */
    const struct health_session *sessions;
    int nsessions;
    const struct health_vacuum *vacuums;
    int nvacuums;
    const struct health_table *tables;
    int ntables;
    double cache_hit, wal_per_s; /* 0 to 1, bytes; NAN = unknown */
    int64_t now_ms;
};

double health_dead_part(const struct health_table *t); /* dead of all rows, 0 to 1; NAN = empty */
double health_fill(const struct health_table *t);      /* dead rows, as a part of the number that
                                                          starts a vacuum */
/* The session that holds vacuum back most, if it should be reported; NULL = none. */
const struct health_session *health_holder(const struct health *h);
/* Dead rows of all tables that the holder may keep from being removed. */
int64_t health_held_rows(const struct health *h);
bool health_is_signalled(const struct health_session *s); /* the session is a process that the
                                                             keys C and K can signal */
enum { HEALTH_MANY_DEAD = 1000 };                         /* fewer dead rows do not matter */
int64_t health_known(int64_t n);                          /* n; 0 if n is unknown */
int64_t health_open_ms(const struct health *h, const struct health_session *s); /* transaction */
bool health_is_idle(const struct health_session *s); /* in a transaction */
bool health_waits(const struct health_session *s);   /* for a lock */
bool health_waits_for(const struct health_session *s, int pid);
/* Appends "pid 4711, 4712", "a prepared transaction", or "others" if the server was not asked who
 * they are. */
void health_say_blockers(struct buf *out, const struct health_session *s);
/* A query on one line: every run of white space is one blank. Appends. */
void health_one_line(struct buf *out, const char *query);
/* How old the oldest transaction ids are: 0 = fine, 1 = a warning, 2 = bad. */
int health_xid_alarm(const struct health_server *s);

struct advice {
    enum condition_id of;
    bool bad;
    bool calm;      /* not a problem; it is explained because it looks like one */
    const char *id; /* id of the session in question, "" = none */
    const char *text;
    const char *what, *act; /* two parts of the text; act = "K end it". act NULL: `what` is the
                               whole text */
};
/* Fills in pieces of advice, the most urgent first; the texts live in mem. Returns how many, at
 * most max. */
int health_advice(const struct health *h, struct arena *mem, struct advice *out, int max);

#endif
