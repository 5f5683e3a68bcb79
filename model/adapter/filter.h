/* The filter language of the jobs list. Terms are joined by "and":
 *   word  !word  "two words"     part of id, queue, kind or error, in any case; ! = not
 *   state:failed,retry  queue:mail  node:worker-1  kind:resize    exact: no wildcards
 *   error:"timeout after N"      the group of this error;  error~text  a part of the error
 *   error:" ~/bin/x"             the group of an error that begins with ~
 *   error:""                     the group of failed jobs that have no error
 *   age>5m  age<2h  tries>=3  tries<2  tries:0      age counts from when the job was made
 *   id:UUID                      one job
 *   payload~text                 a part of the payload
 *   payload.customer.id=7        a value in a JSON payload; payload.customer.name~part
 * It only makes parameters (model/adapter/params.h), never SQL. */
#ifndef MODEL_ADAPTER_FILTER_H
#define MODEL_ADAPTER_FILTER_H

#include <stdbool.h>

#include "model/adapter/params.h"
#include "model/base/err.h"
#include "model/base/mem.h"

struct filter {
    struct params terms; /* what the language said, by parameter */
    char *text;          /* as it was typed; "" = everything */
};
struct filter_mark { /* the part of the text that is wrong: bytes, for underlining */
    int start, len;
};

/* An empty text matches all. On failure *f is the empty filter and *mark (may be NULL) is the wrong
 * part. Call filter_done in both cases. */
bool filter_parse(const char *text, struct filter *f, struct filter_mark *mark, struct err *e)
    __attribute__((warn_unused_result));
void filter_done(struct filter *f);
void filter_copy(struct filter *to, const struct filter *from);
bool filter_is_empty(const struct filter *f);
/* Appends or replaces the term of one key ("queue", "state", "node", "kind", "error"); a NULL value
 * removes it. Returns the new text; the caller frees. Values are quoted where they must be. */
char *filter_with(const char *text, const char *key, const char *value);
/* A value as it must be typed: quoted where it has blanks or quotes. */
void filter_add_value(struct buf *b, const char *value);
/* The first term of the text that the list does not support ("payload", "words"), and its position;
 * NULL = the list supports all terms. */
const char *filter_untaken(const char *text, bool (*takes)(const void *ctx, enum param p),
                           const void *ctx, struct filter_mark *mark);
/* True if the filter reads payloads, which is costly. */
bool filter_reads_payloads(const struct filter *f);
/* True if the filter admits this state. A filter without states admits all. */
bool filter_has_state(const struct filter *f, const char *state);

#endif
