/* The payload of a job that a user edits, for the console and the command line: its text in the
 * editor, the payload that the edited text becomes, and the lines that differ. */
#ifndef UI_FACTS_PAYLOAD_H
#define UI_FACTS_PAYLOAD_H

#include "model/adapter/record.h"
#include "model/base/err.h"
#include "model/base/mem.h"

struct payload {
    char *version; /* of the job, for the act */
    char *stored;  /* the payload of the job */
    char *shown;   /* the editor's text: one-line JSON is spread out */
    char *typed;   /* the edited text, NULL = not yet */
    char *made;    /* the new payload; NULL = not made */
    bool is_json, in_a_line;
};

/* Why this job's payload can't be edited; NULL = it can. */
const char *payload_why_not(const struct job_detail *j);
void payload_take(struct payload *p, const struct job_detail *j); /* it can */
void payload_done(struct payload *p);
const char *payload_suffix(const struct payload *p); /* ".json" */

/* Keeps the edited text and makes the new payload: JSON that was one line becomes one line again,
 * other texts keep their end. False: the text can't be a payload, *e says why and where. */
bool payload_type(struct payload *p, const char *text, size_t len, struct err *e)
    __attribute__((warn_unused_result));
bool payload_is_same(const struct payload *p); /* ignoring white space between JSON's parts */
/* For the intent: {"version": ...}. For the question: "34 B → 36 B" and the lines that differ. */
void payload_settings(const struct payload *p, struct buf *out);
void payload_about(const struct payload *p, struct buf *out);

#endif
