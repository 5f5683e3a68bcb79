/* Checks whether an adapter fits a database: runs every section of its file there with sample
 * values and reads the answer. All changes are rolled back. For `queuetop adapter check` and the
 * contract test. */
#ifndef MODEL_ADAPTER_ADAPTER_CHECK_H
#define MODEL_ADAPTER_ADAPTER_CHECK_H

#include "model/adapter/adapter.h"
#include "model/base/loop.h"
#include "model/db/db.h"

struct adapter_finding { /* about one section */
    enum section_id section;
    int line;         /* the line where the section begins, or of the fault if that is known */
    bool ok;          /* every answer was as the contract says */
    bool left_out;    /* not run: text says why */
    bool has_sample;  /* an act: it had real rows to work on */
    int runs;         /* statements */
    int rows;         /* rows of all its answers; of an act: rows changed */
    const char *text; /* the fault, or a remark, on one line; "" = none */
};
typedef void adapter_finding_fn(void *ctx, const struct adapter_finding *f);

struct adapter_trial {
    const struct adapter *adapter; /* bound to its schema */
    struct db *db;
    struct loop *loop;
    bool acts; /* also run sections that change something; db must not be read-only then */
};
/* Calls fn for each section, in the order of the file. False with *e: the connection broke. */
bool adapter_check(const struct adapter_trial *t, adapter_finding_fn *fn, void *ctx, struct err *e)
    __attribute__((warn_unused_result));

#endif
