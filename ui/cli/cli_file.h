/* Files that another program, or the next run, must find whole. */
#ifndef UI_CLI_CLI_FILE_H
#define UI_CLI_CLI_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a new file with that text, on the disk, instead of one that was left there. The caller
 * renames it to its name, so that a reader sees the old or the new text and never a part. False:
 * errno says why, and there is no file. */
bool cli_file_write(const char *fresh, unsigned mode, const char *text, size_t len)
    __attribute__((warn_unused_result));

#endif
