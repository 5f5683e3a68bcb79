/* Settings: the configuration file, which only the user writes, and the state file, which only this
 * program writes (order and columns of each table). Both are text with one setting in a line.
 * Neither can stop the console: an error in them is reported with file, line and key. */
#ifndef UI_CONFIG_SETTINGS_H
#define UI_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/adapter/trust.h"
#include "model/base/err.h"
#include "model/base/mem.h"

enum setting_kind {
    SET_FLAG,   /* bool: yes no true false on off 1 0 */
    SET_SAFETY, /* the same, for a protection: if unreadable, it is on */
    SET_TEXT,   /* char *, owned by the struct settings */
    SET_TIME    /* int64_t ms, as duration_parse */
};

struct setting { /* a key of the configuration file; the table ends with {0} */
    const char *name;
    enum setting_kind kind;
    size_t offset;              /* in the struct that is filled */
    const char *const *choices; /* of SET_TEXT, ended by NULL; NULL = any word */
};

struct settings;
struct settings *settings_new(void);
void settings_free(struct settings *s);

/* Reads lines `key = value`, and `[name]`: the lines after it count only if `names` (ended by NULL)
 * has that name. A comment begins with # at the start of a line or after a blank. A bad line
 * becomes a complaint and is ignored; but a SET_SAFETY is switched on by a bad value, by a misspelt
 * name and by a section whose name can't be read. */
void settings_parse(struct settings *s, const char *file, const char *text,
                    const struct setting *table, const char *const *names, void *into);
/* Reads $XDG_CONFIG_HOME/queuetop/config. If there is no such file, there is no complaint. If the
 * file can't be read, or others may write it (model/base/owned.h), every SET_SAFETY is switched
 * on. */
void settings_read(struct settings *s, const struct setting *table, const char *const *names,
                   void *into);
/* Takes the text that settings_read has read, with more names, which were not known then. */
void settings_read_again(struct settings *s, const struct setting *table, const char *const *names,
                         void *into);
/* From now on only files that are not used become complaints, and not their lines: for a reader
 * that knows some of the keys. */
void settings_only_files(struct settings *s);
/* True if a SET_SAFETY is on only because something could not be read. */
bool settings_closed(const struct settings *s);
/* The i-th complaint, NULL = no more. */
const char *settings_complaint(const struct settings *s, int i);

/* --- the state file: $XDG_STATE_HOME/queuetop/state ------------------------------------------- */

/* Another file for this run: $XDG_STATE_HOME/queuetop/state.NAME. Before settings_load. */
void settings_apart(struct settings *s, const char *name);
void settings_load(struct settings *s);
const char *settings_get(const struct settings *s, const char *name); /* "" = nothing kept */
/* Sets the usual value, which counts if the user has set nothing. settings_put of the usual value
 * removes the line. */
void settings_usual(struct settings *s, const char *name, const char *line);
void settings_put(struct settings *s, const char *name, const char *line);
/* Writes the state file if something has changed: to a new file, mode 0600, which replaces the old
 * one. Lines that were not changed here are left as they are in the file by now: other consoles
 * write them, too. */
bool settings_save(struct settings *s, struct err *e) __attribute__((warn_unused_result));

/* --- answers about trust --- */

/* The answers to the console's questions of trust (model/adapter/trust.h), kept in the state
 * file from run to run. */

/* The answers of earlier runs; reads the state file. */
void trusted_recall(struct trust *t, struct settings *s);
/* Keeps an answer for the next run, at once. */
bool trusted_keep(struct settings *s, const struct owners *shown, struct err *e)
    __attribute__((warn_unused_result));

#endif
