/* Writing a file as a whole. */
#include "ui/cli/cli_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool
cli_file_write(const char *fresh, unsigned mode, const char *text, size_t len)
{
    unlink(fresh); /* left by a process that was killed: in a container they have the same number */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
    size_t done = 0;
    bool ok = fd >= 0;

    while (ok && done < len) {
        ssize_t n = write(fd, text + done, len - done);
        ok = n > 0 || (n < 0 && errno == EINTR);
        done += n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (fd < 0)
        return false;
    int why = errno;
    close(fd);
    if (!ok)
        unlink(fresh);
    errno = why;
    return ok;
}
