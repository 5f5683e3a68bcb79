/* The command line: words and options select one verb, which runs and returns an exit code. A
 * verb is a row of a table; its options are rows of another table, and their values go into a
 * struct of the verb's own. --help of the program and of each verb is printed from these tables;
 * docs/queuetop.1.md too.
 *
 * To add verbs: write a `const struct cli_verb verbs_X[]` ended by a row {0} in your own file,
 * and add one line to ui/cli/verbs.c. The console is the verb whose name is "": it runs if no
 * verb is given, and its options stand before any verb. The options of every verb (-d, --schema,
 * --log, --read-only, --help, --version) go into struct cli. */
#ifndef UI_CLI_CLI_H
#define UI_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/base/loop.h"
#include "model/db/db.h"

enum cli_exit {
    CLI_DONE = 0,
    CLI_NOTHING = 1,   /* nothing matched */
    CLI_USAGE = 2,     /* a word or an option is wrong */
    CLI_REFUSED = 3,   /* rejected by a guard, --expect, the role, or the user */
    CLI_NO_SERVER = 4, /* no connection */
    CLI_SERVER = 5,    /* the server rejected it; or input or output failed */
    CLI_PART = 6,      /* stopped before all was done */
    CLI_FAILED = 7,    /* --wait: the job failed, or was cancelled */
    CLI_TIME_OVER = 8, /* --wait: the job has not ended */
    CLI_UNKNOWN = 10   /* --wait: the job has ended, its outcome was not kept */
};

/* If an option of a verb takes one value (all but flags and lists), a second one is an error. */
enum cli_kind {
    CLI_FLAG, /* bool: true if given */
    CLI_TEXT, /* const char * */
    CLI_LIST, /* struct cli_list: split at commas; may be repeated */
    CLI_EACH, /* struct cli_list: not split; may be repeated */
    CLI_INT,  /* int, within min and max */
    CLI_SOME, /* the same, number optional: 0. The next word is the number if it is one */
    CLI_BIG,  /* int64_t, within min and max */
    CLI_TIME, /* int64_t milliseconds, by duration_parse ("5m"), within min and max (ms) */
    CLI_MAYBE /* the same, but the value is optional: CLI_NO_TIME. The next word is the value if it
                 is a time */
};

enum { CLI_NO_TIME = -1 };

struct cli_list { /* lives as long as the struct cli */
    const char **items;
    int n;
};

struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0 = none */
    const char *arg;  /* the name of the value in --help; NULL for CLI_FLAG */
    enum cli_kind kind;
    size_t offset; /* in the verb's struct */
    const char *help;
    int64_t min, max; /* for numbers; both 0 = any number that fits and is not negative */
};

struct cli;

struct cli_verb {
    const char *name;
    const char *words;                /* the words in the usage: "QUEUE [-]"; "" = none */
    const char *help;                 /* one sentence */
    int min_words, max_words;         /* -1 = no limit */
    const struct cli_option *options; /* ends with {0}; NULL = none */
    const char *const (*also)[2];     /* another name of an option, and that option; NULL = none */
    size_t size;                      /* size of the struct that the options fill */
    const void *defaults;             /* defaults: a struct of that size; NULL = zeros */
    int (*run)(struct cli *c, const void *options); /* returns the exit code */
    const char *more;                               /* a paragraph of its --help; NULL = none */
    const char *examples[2];                        /* each without the word "queuetop" */
    int arg;                                        /* for run: number of the act */
    int wrong_words;                                /* exit code for them; 0 = CLI_USAGE */
    bool many_sources;                              /* accepts several databases */
    bool after_dashes; /* its words stand after `--` (a command with flags of its own) */
};

struct cli {
    const char *conninfo;               /* the word that contains = or ://, NULL = none */
    const char *dbname;                 /* -d */
    struct cli_list conninfos, dbnames; /* all values of -d; only the console takes more than one */
    const char *schema;                 /* --schema of the native queue, default "queues" */
    const char *wanted;  /* --schema; NULL = not given: the adapter's or the one found */
    const char *adapter; /* --adapter, a name or a file; NULL = the one that fits the database */
    bool trust_version;  /* --trust-version */
    struct cli_list trust_owners; /* --trust-owner, as they were given */
    struct trust *trust;          /* see cli_trust; freed after run */
    struct trust **trusts;        /* of cli_sources; freed after run */
    int ntrusts;
    bool settings_said;       /* what is wrong with the user's files has been said */
    struct schema_gate *gate; /* of cli_db_options */
    bool pushes;              /* cli_db refuses a queue in which others have dangerous rights */
    bool stays;           /* a later connection of cli_db must lead to the database of the first */
    const char *place;    /* the identity that cli_open must find again; NULL = any */
    int timeout_ms;       /* --timeout: how long one answer may take */
    const char *log_file; /* --log, already open */
    bool read_only;       /* --read-only */
    const struct cli_verb *verb;
    char **words; /* the words that are neither options nor CONNINFO */
    int nwords;
    struct loop *loop; /* made before run */
    struct db *db;     /* see cli_db; freed after run */
    struct arena *mem; /* lives until the end of the program */
};

/* The verbs' tables, ended by NULL (ui/cli/verbs.c). */
extern const struct cli_verb *const cli_verbs[];

/* The whole of main: decodes, runs, frees, and reports errors. */
int cli_main(int argc, char **argv);

/* Decodes argv into *c and the verb's options (in c->mem). ERR_USAGE names the wrong word. *help:
 * --help or --version was given, and its text was printed. */
bool cli_parse(struct cli *c, int argc, char **argv, void **options, bool *help, struct err *e)
    __attribute__((warn_unused_result));

/* The connection, opened at the first call. once: if the first attempt fails, report the error
 * (short verbs); else reconnect for ever (work, schedule). --read-only holds for both. */
struct db *cli_db(struct cli *c, bool once);
/* From now on one line on the terminal says when the server is slow. */
void cli_watch_slow(struct cli *c);
/* The connection options that cli_db uses, for verbs with several connections. The connection is
 * for the queue in --schema, so the owner of the queue must be trusted (model/adapter/trust.h). */
void cli_db_options(struct cli *c, struct db_options *o);

/* Prints "queuetop VERB: text" on standard error, sanitised; returns the exit code for the error.
 */
int cli_fail(const struct cli *c, const struct err *e);
/* True if the server says that the schema or a table of the queue is not there. */
bool cli_lacks_queue(const struct err *e);
/* The same for a text of the caller. The whole text is sanitised, so %s may be foreign text. */
void cli_say(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* cli_say with a hint at --help; returns CLI_USAGE. */
int cli_usage(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Flushes standard output. Returns CLI_DONE, or CLI_SERVER with a message if not all could be
 * written. */
int cli_flush(const struct cli *c);
/* The same for a verb that only looks. If the reader of the pipe has closed it, the result is also
 * CLI_DONE: head(1) has read enough. */
int cli_flush_look(const struct cli *c);
/* The exit code of a verb that only looks: the code of the error, or of cli_flush_look, or
 * CLI_NOTHING if there were no rows. */
int cli_end(const struct cli *c, bool ok, int rows, const struct err *e);

#endif
