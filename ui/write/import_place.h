/* The place of an import in a file (--resume), which outlives the process, also one that has ended:
 * from where to go on, and the ids of the jobs. The id of a row is made from the first id, the
 * number of its line and its text. So a row that is pushed again is the same job, and a row that
 * was changed meanwhile, or is another file's, is another job. */
#ifndef UI_WRITE_IMPORT_PLACE_H
#define UI_WRITE_IMPORT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/err.h"
#include "model/worker/queue.h"

struct import_place {
    char first_id[QUEUE_ID_LEN + 1];
    int64_t line;                      /* all rows before this line are pushed or rejected */
    uint64_t before;                   /* import_hash() of these rows */
    int64_t rejects;                   /* size of the file of rejects then; -1 = none, or no file */
    uint64_t rejects_dev, rejects_ino; /* which file that was */
};

/* Keeps other runs with this place out, by a lock on PATH.lock, until the process ends or the
 * descriptor is closed: -1 and *e if another run has it. The file itself stays. */
int import_place_lock(const char *path, struct err *e) __attribute__((warn_unused_result));
/* The place of an import that begins. */
void import_place_begin(struct import_place *p);
/* False: the file can't be read, or holds something else. *is_there: there is such a file. */
bool import_place_read(const char *path, struct import_place *p, bool *is_there, struct err *e)
    __attribute__((warn_unused_result));
/* Replaces the file at once and on the disk: after a crash it is the old or the new one. is_first:
 * there must be no file of that name yet. */
bool import_place_write(const char *path, const struct import_place *p, bool is_first,
                        struct err *e) __attribute__((warn_unused_result));
/* row: import_hash() of that row alone. */
void import_place_id(const struct import_place *p, int64_t line, uint64_t row,
                     char id[static QUEUE_ID_LEN + 1]);

/* The hash of all rows so far and one more. */
uint64_t import_hash(uint64_t before, const char *row, size_t len);

#endif
