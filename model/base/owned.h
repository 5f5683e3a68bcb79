/* Files that this program obeys, and files that it writes. Such a file must belong to this user or
 * to root, and nobody else may be able to write it. Otherwise another user decides what is done
 * with the rights of this one (sudo keeps HOME; a variable leads into a shared folder), or gets
 * what is written. */
#ifndef MODEL_BASE_OWNED_H
#define MODEL_BASE_OWNED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "model/base/err.h"

/* The owner alone: this user or root. ERR_DENIED names the owner. */
bool owned_by_us(const struct stat *st, const char *path, struct err *e)
    __attribute__((warn_unused_result));
/* Owner and mode of an open file or folder, of a device the owner. ERR_DENIED names the owner or
 * the mode. */
bool owned_check(int fd, const char *path, struct err *e) __attribute__((warn_unused_result));
/* False: a folder or a link on the way to the file belongs to another user, who can lead the way
 * elsewhere, or all may write there. What is not there yet is no fault. */
bool owned_path(const char *path, struct err *e) __attribute__((warn_unused_result));
/* True if nobody else can replace what this user makes in the folder. */
bool owned_folder(const char *path) __attribute__((warn_unused_result));

/* Opens a file that is there, to read it; -1 = no. Descriptors (/dev/fd/5, /dev/stdin) are not
 * checked: who started the program has opened them. They may be pipes; a path may lead to none. */
int owned_read(const char *path, struct err *e) __attribute__((warn_unused_result));
/* Opens a file to append to it, or makes it with mode 0600; -1 = no. A symbolic link is no file,
 * except that of a descriptor, and a file must have no second name (hard link). more: flags. */
int owned_append(const char *path, int more, struct err *e) __attribute__((warn_unused_result));
/* Makes a new file with that text, on the disk, instead of one that was left there. The caller
 * renames it to its name, so that a reader sees the old or the new text and never a part. False:
 * errno says why, and there is no file. */
bool owned_write_new(const char *fresh, unsigned mode, const char *text, size_t len)
    __attribute__((warn_unused_result));

#endif
