/* The inside of adapters, for their own files only: adapter_read.c (one file, checked),
 * adapter_states.c (normalised and raw states), adapter_choose.c (which of them a database has),
 * adapter_owners.c (who owns what its text touches), adapter_version.c (what may be done with it),
 * adapter_user.c (files of the user's own), adapter.c (what it is bound to). */
#ifndef MODEL_ADAPTER_ADAPTER_PARTS_H
#define MODEL_ADAPTER_ADAPTER_PARTS_H

#include "model/adapter/adapter.h"
#include "model/adapter/sections.h"
#include "model/adapter/trust.h"
#include "model/base/mem.h"

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
    char *source;           /* its text */
    char *silence;          /* "X does not record this" */
    char *detect;           /* the text of DETECT */
    bool is_out;            /* left out: its tables are not there, or its DETECT failed */
    char *tables;           /* header "tables" as an array literal; NULL = none */
    char *touched[3];       /* what its text can touch: tables, patterns, functions */
    struct raw_states *raw; /* translations so far; kept, because bound statements use them */
};

struct adapter_place {     /* the parts of a place where a system was found */
    char *name;            /* as it was found: "schema" or "schema/prefix" */
    char *schema, *prefix; /* prefix "" = none */
    const struct adapter_file *file;
    struct owners owners;
};

struct binding { /* a file for one schema; kept until the end, statements may be under way */
    const struct adapter_file *file;
    char *schema;
    struct adapter_place place; /* without name; of what was found there */
    struct trust_guard guard;
    bool is_guarded;
    char *search_path; /* search path of the header; NULL = none */
    char *sql[SEC_COUNT];
    struct binding *next;
};

struct kept_text { /* sentences that others borrow, until the end */
    char *text;
    struct kept_text *next;
};

struct adapter {
    struct adapter_file **files; /* the candidates */
    int nfiles;
    struct adapter_file *file; /* the chosen candidate; the first one until adapter_choose */
    struct binding *now;       /* NULL = bound to no schema yet */
    struct binding *all;
    struct adapter_found *found;
    struct adapter_place *places; /* what found points to */
    int nfound;
    struct kept_text *complaints, *verdicts;
    bool trusts;                  /* --trust-version */
    const char *lacks[SEC_COUNT]; /* sections whose requirement is not met: why */
    int serial;
};

/* Adds a candidate; a owns it then. */
void adapter_add(struct adapter *a, struct adapter_file *f);
/* Returns the sentence as the list keeps it; adds it at the end if it is new. */
const char *adapter_keep(struct kept_text **list, const char *text);
void adapter_complain(struct adapter *a, const char *text);
/* Reads the user's own files into a; a file that is rejected becomes a complaint. */
void adapter_add_own(struct adapter *a);
/* A file that was named. NULL with *e. */
struct adapter_file *adapter_file_open(const char *path, struct err *e)
    __attribute__((warn_unused_result));

/* NULL with *e naming file, line and section. */
struct adapter_file *adapter_file_read(const char *file_name, const char *text, struct err *e)
    __attribute__((warn_unused_result));
void adapter_file_free(struct adapter_file *f);

/* Fills f->touched from the text and the header. */
void adapter_find_touched(struct adapter_file *f);
/* Splits the place where a system was found into schema and prefix. */
struct adapter_place adapter_place(const struct adapter_file *f, const char *name);
void adapter_place_done(struct adapter_place *p);
/* Takes the owners of the system that a is bound to; from now on its transactions are guarded. */
void adapter_guard(struct adapter *a, const struct owners *owners);

/* What is wrong with the header "states", NULL = nothing. */
const char *adapter_check_states(const char *header);
/* The raw words of a list of states by the header; NULL gives NULL. Belongs to the file. */
const char *adapter_raw_states(struct adapter_file *f, const char *states);

#endif
