/* Compares the terms of a filter with the parameters of a section: which terms does the section
 * support? */
#ifndef MODEL_ADAPTER_TERMS_H
#define MODEL_ADAPTER_TERMS_H

#include "model/adapter/adapter.h"

/* True if the section takes this parameter. States may also be given in the system's own words. */
bool terms_takes(const struct adapter *a, enum section_id s, enum param p);
/* The first term of `where` that the section does not support, as its key in a filter ("error",
 * "words"); NULL = it supports all. */
const char *terms_lacking(const struct adapter *a, enum section_id s, const struct params *where);
/* A term that the section searches only in the newest rows (the section takes `n`); NULL = there is
 * none. */
const char *terms_windowed(const struct adapter *a, enum section_id s, const struct params *where);
/* True if the text can be the id of a job. The adapter says whether ids are UUIDs, numbers or any
 * text; a NULL means our own queue. */
bool terms_is_id(const struct adapter *a, const char *s);
/* Fails if `where` asks for a text that can't be an id, because no job would ever be found. */
bool terms_check_id(const struct adapter *a, const struct params *where, struct err *e);

#endif
