/* The command line: words and options -> one verb, which runs and gives an exit code. A verb is a
 * row of a table; its options are rows of another, decoded into a struct of the verb's own. --help
 * of the program and of each verb is printed from these tables; docs/queuetop.1.md too.
 *
 * To add verbs: a `const struct cli_verb verbs_X[]` ended by a row {0} in your own file, and one
 * line in ui/cli/verbs.c. The console is the verb whose name is "": it runs when no verb is given,
 * and its options stand before any verb. The options of every verb (-d, --schema, --log,
 * --read-only,
 * --help, --version) are decoded here into struct cli. */
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
    CLI_USAGE = 2,     /* the words are wrong */
    CLI_REFUSED = 3,   /* a guard, --expect, the role, or the user at the prompt said no */
    CLI_NO_SERVER = 4, /* no connection */
    CLI_SERVER = 5,    /* the server said no; also input or output that failed */
    CLI_PART = 6,      /* stopped in part */
    CLI_FAILED = 7,    /* --wait: the job failed, or was cancelled */
    CLI_TIME_OVER = 8  /* --wait: the job has not ended */
};

enum cli_kind {
    CLI_FLAG, /* bool: true when given */
    CLI_TEXT, /* const char * */
    CLI_LIST, /* struct cli_list: split at commas; given again adds to it */
    CLI_EACH, /* struct cli_list: not split; given again adds to it */
    CLI_INT,  /* int, within min and max */
    CLI_SOME, /* the same; the number may be left out: 0. It is the next word if that is a number */
    CLI_BIG,  /* int64_t, within min and max */
    CLI_TIME, /* int64_t milliseconds, by duration_parse ("5m"), within min and max (ms) */
    CLI_MAYBE /* the same; the value may be left out: CLI_NO_TIME. It is the next word if that is a
                 time */
};

enum { CLI_NO_TIME = -1 };

struct cli_list { /* lives as long as the struct cli */
    const char **items;
    int n;
};

struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0 = none */
    const char *arg;  /* what --help calls the value; NULL for CLI_FLAG */
    enum cli_kind kind;
    size_t offset; /* in the verb's struct */
    const char *help;
    int64_t min, max; /* of numbers; both 0 = any that fits and is not negative */
};

struct cli;

struct cli_verb {
    const char *name;
    const char *words;                /* usage of its words: "QUEUE [-]"; "" = takes none */
    const char *help;                 /* one sentence */
    int min_words, max_words;         /* -1 = no limit */
    const struct cli_option *options; /* ends with {0}; NULL = none */
    size_t size;                      /* of the struct that the options fill */
    const void *defaults;             /* a struct of that size; NULL = zeros */
    int (*run)(struct cli *c, const void *options); /* -> exit code */
    const char *more;                               /* a paragraph of its --help; NULL = none */
    const char *examples[2];                        /* each without "queuetop" before it */
    int arg;                                        /* of run: which act it is */
    int wrong_words;                                /* exit code for them; 0 = CLI_USAGE */
    bool many_sources;                              /* takes several databases */
    bool after_dashes; /* its words stand after `--` (a command with flags of its own) */
};

struct cli {
    const char *conninfo;               /* the word with = or ://, NULL = none */
    const char *dbname;                 /* -d */
    struct cli_list conninfos, dbnames; /* all of them: more than one for the console only */
    const char *schema;                 /* --schema, default "queues": of the native queue */
    const char *wish;    /* --schema; NULL = not given: the adapter's, or the one that is found */
    const char *adapter; /* --adapter, a name or a file; NULL = whichever the database has */
    bool trust_version;  /* --trust-version */
    struct cli_list trust_owners; /* --trust-owner, as they were given */
    struct trust *trust;          /* see cli_trust; freed after run */
    struct trust **trusts;        /* of cli_sources; freed after run */
    int ntrusts;
    struct schema_gate *gate; /* of cli_db_options */
    const char *log_file;     /* --log, already open */
    bool read_only;           /* --read-only */
    const struct cli_verb *verb;
    char **words; /* what is neither option nor CONNINFO */
    int nwords;
    struct loop *loop; /* made before run */
    struct db *db;     /* see cli_db; freed after run */
    struct arena *mem; /* lives until the end of the program */
};

/* The verbs' tables, ended by NULL (ui/cli/verbs.c). */
extern const struct cli_verb *const cli_verbs[];

/* All of main: decodes, runs, frees, and reports what went wrong. */
int cli_main(int argc, char **argv);

/* Decodes argv into *c and the verb's options (in c->mem). ERR_USAGE names the word that is wrong.
 * *help is set when --help or --version was asked (and answered on standard output). */
bool cli_parse(struct cli *c, int argc, char **argv, void **options, bool *help, struct err *e)
    __attribute__((warn_unused_result));

/* The connection, made at the first call. once = true: the first failure to connect is the answer
 * (short verbs); false: reconnects for ever (work, schedule). --read-only holds for both. */
struct db *cli_db(struct cli *c, bool once);
/* Connection options as cli_db uses them, for verbs with several connections. Such a connection is
 * for the queue in --schema: its owner must be trusted (model/adapter/trust.h). */
void cli_db_options(struct cli *c, struct db_options *o);

/* "queuetop VERB: text" on standard error, sanitised; gives the exit code for the error. */
int cli_fail(const struct cli *c, const struct err *e);
/* The same for a text of the caller. It is sanitised as a whole, so %s may hold foreign text. */
void cli_say(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* cli_say with a hint at --help; gives CLI_USAGE. */
int cli_usage(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends standard output: CLI_DONE, or CLI_SERVER with a message when it could not be written. */
int cli_flush(const struct cli *c);
/* The exit code of a verb that looks: of the error, else of cli_flush, else whether there were
 * rows. */
int cli_end(const struct cli *c, bool ok, int rows, const struct err *e);

#endif
