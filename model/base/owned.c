/* See owned.h. */
#include "model/base/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/mem.h"

enum { OTHERS_WRITE = S_IWGRP | S_IWOTH };

static bool
is_ours(const struct stat *st)
{
    return st->st_uid == geteuid() || st->st_uid == 0;
}

bool
owned_by_us(const struct stat *st, const char *path, struct err *e)
{
    if (is_ours(st))
        return true;
    const struct passwd *owner = getpwuid(st->st_uid);
    return fail(e, ERR_DENIED, "%s belongs to another user (%s%suid %u): it is not used", path,
                owner ? owner->pw_name : "", owner ? ", " : "", (unsigned)st->st_uid);
}

static bool
is_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
}

/* Some devices may be written by anybody, such as /dev/null. */
static bool
check_stat(const struct stat *st, const char *path, struct err *e)
{
    if (!owned_by_us(st, path, e))
        return false;
    return is_device(st) || !(st->st_mode & OTHERS_WRITE) ||
           fail(e, ERR_DENIED,
                "%s can be written by others (mode %04o): it is not used (chmod go-w)", path,
                (unsigned)st->st_mode & 07777);
}

bool
owned_check(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    return check_stat(&st, path, e);
}

/* A part of a path: a folder, a link, or the file at its end, whose mode the caller checks. Where
 * the system's user has no number here (in a container without root), / belongs to nobody. */
static bool
check_part(const struct stat *st, const char *path, struct err *e)
{
    struct stat top;

    if (!(stat("/", &top) == 0 && st->st_uid == top.st_uid) && !owned_by_us(st, path, e))
        return false;
    return !S_ISDIR(st->st_mode) || !(st->st_mode & S_IWOTH) || (st->st_mode & S_ISVTX) ||
           fail(e, ERR_DENIED,
                "%s can be written by others (mode %04o): it is not used (chmod go-w)", path,
                (unsigned)st->st_mode & 07777);
}

static bool
walk(char *path, bool is_real, struct err *e)
{
    bool ok = true, is_there = true;

    for (char *at = path; ok && is_there && *at;) {
        struct stat st;
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char was = *at;
        *at = 0;
        is_there = lstat(path, &st) == 0;
        ok = !is_there || check_part(&st, path, e);
        if (ok && is_there && S_ISLNK(st.st_mode) && !is_real) {
            char *real = realpath(path, NULL);
            ok = !real || walk(real, true, e);
            free(real);
        }
        *at = was;
    }
    return ok;
}

bool
owned_path(const char *path, struct err *e)
{
    char *copy = xstrdup(path);
    bool ok = walk(copy, false, e);

    free(copy);
    return ok;
}

bool
owned_folder(const char *path)
{
    struct stat st;
    struct err e;

    return owned_path(path, &e) && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && is_ours(&st) &&
           (!(st.st_mode & OTHERS_WRITE) || (st.st_mode & S_ISVTX));
}

/* Skips the text, then digits; NULL = the path goes on in another way. */
static const char *
skip(const char *path, const char *text)
{
    size_t len = strlen(text);
    size_t digits = path && !strncmp(path, text, len) ? strspn(path + len, "0123456789") : 0;

    return digits > 0 ? path + len + digits : NULL;
}

/* True for a name of an open descriptor, of this process or of one that the kernel lets it look
 * into: /dev/stderr, /dev/fd/5, /proc/1/fd/2. */
static bool
is_descriptor(const char *path)
{
    const char *ends[] = {skip(path, "/dev/fd/"), skip(path, "/proc/self/fd/"),
                          skip(skip(path, "/proc/"), "/fd/")};
    bool is =
        !strcmp(path, "/dev/stdin") || !strcmp(path, "/dev/stdout") || !strcmp(path, "/dev/stderr");

    for (int i = 0; i < 3; i++)
        is |= ends[i] && !*ends[i];
    return is;
}

/* A pipe with a name would have to be opened before it is known whose it is, and that waits for a
 * writer. */
static bool
check_read(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (!owned_check(fd, path, e))
        return false;
    return fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode) ||
           fail(e, ERR_USAGE, "%s is a pipe: name /dev/stdin, and give it there (< %s)", path,
                path);
}

int
owned_read(const char *path, struct err *e)
{
    bool is_given = is_descriptor(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | (is_given ? 0 : O_NONBLOCK));

    if (fd < 0)
        fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    else if (is_given || check_read(fd, path, e))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool
check_written(int fd, const char *path, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    if (is_device(&st)) /* what is written to a terminal is not obeyed */
        return true;
    if (!check_stat(&st, path, e))
        return false;
    return !S_ISREG(st.st_mode) || st.st_nlink < 2 ||
           fail(e, ERR_DENIED, "%s has another name too (a hard link): it is not used", path);
}

int
owned_append(const char *path, int more, struct err *e)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | more;
    bool is_given = is_descriptor(path);
    int fd = open(path, is_given ? flags : flags | O_NOFOLLOW, 0600);

    if (fd < 0 && errno == ELOOP)
        fail(e, ERR_DENIED, "%s is a symbolic link: name the file itself", path);
    else if (fd < 0)
        fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    else if (is_given || check_written(fd, path, e))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool
owned_write_new(const char *fresh, unsigned mode, const char *text, size_t len)
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
