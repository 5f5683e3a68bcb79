/* The payload of a job on its way through an editor, for the console and the command line alike:
 * how it is shown, what is made of what came back, and what was changed. */
#ifndef UI_FACTS_PAYLOAD_H
#define UI_FACTS_PAYLOAD_H

#include "model/adapter/record.h"
#include "model/base/err.h"
#include "model/base/mem.h"

struct payload {
    char *version; /* of the job, for the act */
    char *stored;  /* as it is */
    char *shown;   /* as an editor gets it: JSON of one line is spread out */
    char *typed;   /* as it came back, NULL = not yet */
    char *made;    /* what it would become; NULL = not made */
    bool is_json, in_a_line;
};

/* Why this job's payload can't be edited; NULL = it can. */
const char *payload_why_not(const struct job_detail *j);
void payload_take(struct payload *p, const struct job_detail *j); /* it can */
void payload_done(struct payload *p);
const char *payload_suffix(const struct payload *p); /* ".json" */

/* What came back: keeps it, and makes what it would become: JSON that stood on one line goes back
 * to one line, other texts end as they did. False: it can't be a payload, *e says why and where. */
bool payload_type(struct payload *p, const char *text, size_t len, struct err *e)
    __attribute__((warn_unused_result));
bool payload_is_same(const struct payload *p); /* but for white space between JSON's parts */
/* For the intent: {"version": ...}; and for the question: "34 B → 36 B" and the lines that differ.
 */
void payload_settings(const struct payload *p, struct buf *out);
void payload_about(const struct payload *p, struct buf *out);

#endif
