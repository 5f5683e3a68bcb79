/* The sources of one console: one for each connection string that was given, and one for each queue
 * system that is found beside it in the same database. Each has its own watcher, actor and store; a
 * found one connects when somebody first looks at it. The order never changes and nothing is taken
 * away, so an index names a source for as long as the console lives. A source that is not on the
 * screen asks its server nothing. Exception: while all sources are shown, each asks for its queues,
 * and the sources of one database share the load that one of them would make. */
#ifndef MODEL_SOURCE_SOURCES_H
#define MODEL_SOURCE_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/source/source.h"

enum { SOURCES_MAX = 40 }; /* more are left out; sources_left_out says how many */

struct sources;

/* n >= 1; the options of each as source_new takes them. */
struct sources *sources_new(struct loop *l, const struct source_options *each, int n, struct err *e)
    __attribute__((warn_unused_result));
void sources_free(struct sources *ss);

int sources_n(const struct sources *ss);
int sources_left_out(const struct sources *ss);
/* Connects the first time. NULL with *e: its adapter can't be read. */
struct source *sources_at(struct sources *ss, int i, struct err *e)
    __attribute__((warn_unused_result));
struct source *sources_peek(const struct sources *ss, int i); /* NULL = nobody has looked at it */
/* A unique name of the source: "shop", "shop:river", "shop:river.jobs2", "db1/shop". */
const char *sources_name(const struct sources *ss, int i);
/* Finds a source by its name, or by a beginning that only one name has; -1 = none, -2 = several. */
int sources_find(const struct sources *ss, const char *name);

/* Takes what the databases have answered since the last call: new sources, names. True = something
 * is new. */
bool sources_update(struct sources *ss);
uint64_t sources_generation(const struct sources *ss); /* grows when any of them has news */

/* front: the source on the screen, whose topics the screen chooses. all: the queues of the others
 * are asked too. */
void sources_show(struct sources *ss, int front, bool all);
void sources_set_interval(struct sources *ss, int interval_ms);
int sources_interval(const struct sources *ss);
void sources_freeze(struct sources *ss, bool frozen);
/* From now on nothing can be changed in any of them. */
void sources_set_read_only(struct sources *ss);
/* The user trusts these strangers in the database of source i. */
void sources_trust(struct sources *ss, int i, const struct owners *shown);
/* Passes the password to the source and to all sources of the same connection string. */
void sources_password(struct sources *ss, int i, const char *password);

enum source_state {
    SOURCE_UNSEEN,     /* nobody has looked at it yet */
    SOURCE_CONNECTING, /* no answer yet, and no error either */
    SOURCE_LOST,       /* the server can't be reached: `why`; the last answers are kept */
    SOURCE_MISSING,    /* no queue is there: `why` */
    SOURCE_STRANGE,    /* not opened: `why` names its owner */
    SOURCE_LOOK_ONLY,  /* nothing can be done there: `why` */
    SOURCE_OPEN
};

struct source_line { /* one source, as a line of the menu; borrowed until the next turn */
    const char *name, *adapter, *title, *version; /* adapter: "" until it is known */
    const char *schema, *database, *host;
    enum source_state state;
    const char *why;       /* "" = nothing to say */
    int64_t age_ms;        /* of the numbers; -1 = there are none */
    int64_t ready, failed; /* FIELD_NULL = unknown */
    bool approx;           /* they are estimates */
    bool stale;            /* the numbers are old */
};
void sources_line(const struct sources *ss, int i, struct source_line *out);
const char *source_state_word(enum source_state s); /* "open", "look only", "unreachable" */

#endif
