/* The inside of adapters, for their own files only: adapter_read.c (one file, checked),
 * adapter_states.c (normalised and raw states), adapter.c (what it is bound to). */
#ifndef MODEL_ADAPTER_PARTS_H
#define MODEL_ADAPTER_PARTS_H

#include "model/adapter.h"
#include "model/mem.h"
#include "model/sections.h"

enum { CONSOLE_SECTIONS = 6 };

struct bound {
    const struct section *section; /* NULL = the file has none */
    enum param params[ADAPTER_PARAMS];
    int nparams;
};

struct raw_states { /* a list that was translated; both are array literals */
    char *states, *raw;
    struct raw_states *next;
};

struct adapter_file { /* one file, read and checked */
    struct sections text;
    struct bound bound[SEC_COUNT];
    struct section console[CONSOLE_SECTIONS];
    struct note params[CONSOLE_SECTIONS];
    char *origin;           /* where it is from, for people; "" = built in */
    char *tables;           /* header "tables" as an array literal; NULL = none */
    struct raw_states *raw; /* translated so far: text that was bound stays */
};

/* NULL with *e naming file, line and section. */
struct adapter_file *adapter_file_read(const char *file_name, const char *text, struct err *e)
    __attribute__((warn_unused_result));
void adapter_file_free(struct adapter_file *f);

/* What is wrong with the header "states", NULL = nothing. */
const char *adapter_check_states(const char *header);
/* The raw words of a list of states by the header; NULL gives NULL. Belongs to the file. */
const char *adapter_raw_states(struct adapter_file *f, const char *states);

#endif
