/* What a list can be narrowed by: the terms of a filter against the parameters of a section. */
#ifndef MODEL_ADAPTER_TERMS_H
#define MODEL_ADAPTER_TERMS_H

#include "model/adapter/adapter.h"

/* The section can be asked by this parameter; by states also in their system's own words. */
bool terms_takes(const struct adapter *a, enum section_id s, enum param p);
/* The first term of `where` that the section does not take, by its key in a filter ("error",
 * "words"); NULL = it takes them all. */
const char *terms_lacking(const struct adapter *a, enum section_id s, const struct params *where);
/* A term that the section looks for in the newest rows only (it takes `n`); NULL = there is none.
 */
const char *terms_windowed(const struct adapter *a, enum section_id s, const struct params *where);
/* The text can be the id of a job: a UUID, a number or any text, as the adapter says; NULL = our
 * own queue's. */
bool terms_is_id(const struct adapter *a, const char *s);
/* Fails if the id that `where` asks for can be none: no job would ever be found by it. */
bool terms_check_id(const struct adapter *a, const struct params *where, struct err *e);

#endif
