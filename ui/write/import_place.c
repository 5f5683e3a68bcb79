/*
 * The file of --resume: five lines of text. It is written anew after each batch, first under
 * another name, so that it is whole at any moment. The last line is a hash of the others: a file
 * that was edited is refused, because its numbers decide which rows are passed over.
 */
#include "ui/write/import_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/base/owned.h"

enum { TEXT_MOST = 400, LOW_DIGITS = 16, ROW_BITS = 28 };

/* The lower half of a uuid: two bits of its variant, then 62 for the line and the hash of its row.
 */
static const uint64_t counted = (UINT64_C(1) << 62) - 1;

static const char title[] = "queuetop push --resume: the place of an import\nids from ";

void
import_place_begin(struct import_place *p)
{
    *p = (struct import_place){.line = 1, .rejects = -1};
    queue_make_id(p->first_id);
}

/* Moves *at behind that text; false: something else stands there. */
static bool
skip(const char **at, const char *text)
{
    bool is_there = !strncmp(*at, text, strlen(text));

    *at += is_there ? strlen(text) : 0;
    return is_there;
}

static bool
take_number(const char **at, const char *label, int64_t *n)
{
    char *end;

    if (!skip(at, label))
        return false;
    *n = strtoll(*at, &end, 10);
    bool ok = end > *at;
    *at = end;
    return ok;
}

static bool
take_hash(const char **at, const char *label, uint64_t *hash)
{
    char *end;

    if (!skip(at, label))
        return false;
    *hash = strtoull(*at, &end, 16);
    bool ok = end > *at;
    *at = end;
    return ok;
}

/* Writes the text of the file; returns its length. */
static size_t
make_text(const struct import_place *p, char text[static TEXT_MOST])
{
    int n = snprintf(text, TEXT_MOST,
                     "%s%s\nline %" PRId64 "\nbefore %" PRIx64 "\nrejects %" PRId64 " of %" PRIx64
                     " %" PRIx64 "\n",
                     title, p->first_id, p->line, p->before, p->rejects, p->rejects_dev,
                     p->rejects_ino);
    uint64_t hash = import_hash(0, text, (size_t)n);

    n += snprintf(text + n, TEXT_MOST - (size_t)n, "sum %" PRIx64 "\n", hash);
    return (size_t)n;
}

static bool
parse(const char *text, struct import_place *p)
{
    char same[TEXT_MOST];
    const char *at = text;

    if (!skip(&at, title) || strspn(at, "0123456789abcdef-") != QUEUE_ID_LEN)
        return false;
    memcpy(p->first_id, at, QUEUE_ID_LEN);
    p->first_id[QUEUE_ID_LEN] = 0;
    at += QUEUE_ID_LEN;
    return take_number(&at, "\nline ", &p->line) && take_hash(&at, "\nbefore ", &p->before) &&
           take_number(&at, "\nrejects ", &p->rejects) && take_hash(&at, " of ", &p->rejects_dev) &&
           take_hash(&at, " ", &p->rejects_ino) && p->line > 0 && make_text(p, same) &&
           !strcmp(text, same);
}

bool
import_place_read(const char *path, struct import_place *p, bool *is_there, struct err *e)
{
    char text[TEXT_MOST + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *is_there = fd >= 0;
    if (fd < 0)
        return errno == ENOENT || fail(e, ERR_USAGE, "%s: %s", path, strerror(errno));
    if (!owned_check(fd, path, e)) {
        close(fd);
        return false;
    }
    ssize_t n = read(fd, text, TEXT_MOST);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return parse(text, p) ||
           fail(e, ERR_USAGE,
                "%s is not the place of an import as push wrote it: --resume would overwrite it",
                path);
}

/* Reports errno. If the file system cannot do what --resume needs, says which one can. */
static bool
fail_file(struct err *e, enum err_kind kind, const char *path, const char *lacks)
{
    bool is_lacking = errno == EPERM || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ||
                      errno == ENOLCK;

    if (lacks && is_lacking)
        return fail(e, kind, "--resume: %s: %s (%s): give --resume a FILE on another file system",
                    path, lacks, strerror(errno));
    return fail(e, kind, "--resume: %s: %s", path, strerror(errno));
}

int
import_place_lock(const char *path, struct err *e)
{
    char *name = xasprintf("%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        fail_file(e, ERR_USAGE, name, NULL);
    } else if (!owned_check(fd, name, e)) {
        close(fd);
        fd = -1;
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            fail(e, ERR_REFUSED, "another import with --resume %s is running", path);
        else
            fail_file(e, ERR_SYS, name, "its file system has no locks");
        close(fd);
        fd = -1;
    }
    free(name);
    return fd;
}

/* Gives the file its name, unless another file has it: two imports that begin at the same time must
 * not both make ids. Some file systems have no hard links (FAT), others have only those (NFS). */
static bool
name_first(const char *fresh, const char *path)
{
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    return errno != EEXIST && link(fresh, path) == 0 && unlink(fresh) == 0;
}

/* The name itself is on the disk, too, once its folder is. */
static bool
sync_folder(const char *path)
{
    char *copy = xstrdup(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    free(copy);
    return ok;
}

bool
import_place_write(const char *path, const struct import_place *p, bool is_first, struct err *e)
{
    char text[TEXT_MOST], *fresh = xasprintf("%s.%d", path, (int)getpid());
    const char *lacks = NULL;
    bool ok = owned_write_new(fresh, 0600, text, make_text(p, text));

    if (ok && is_first) {
        ok = name_first(fresh, path);
        lacks =
            ok ? NULL : "its file system has neither hard links nor a rename that replaces nothing";
    } else if (ok) {
        ok = rename(fresh, path) == 0;
    }
    if (!ok || !sync_folder(path)) {
        ok = fail_file(e, ERR_SYS, path, lacks);
        (void)unlink(fresh);
    }
    free(fresh);
    return ok;
}

void
import_place_id(const struct import_place *p, int64_t line, uint64_t row,
                char id[static QUEUE_ID_LEN + 1])
{
    char low[LOW_DIGITS + 1];
    const char *tail = p->first_id + QUEUE_ID_LEN - LOW_DIGITS - 1; /* xxxx-xxxxxxxxxxxx */

    snprintf(low, sizeof low, "%.4s%s", tail, tail + 5);
    uint64_t n = strtoull(low, NULL, 16);
    uint64_t add = (uint64_t)line << ROW_BITS | (row & ((UINT64_C(1) << ROW_BITS) - 1));
    n = (n & ~counted) | ((n + add) & counted);
    snprintf(low, sizeof low, "%016" PRIx64, n);
    snprintf(id, QUEUE_ID_LEN + 1, "%.*s%.4s-%s", QUEUE_ID_LEN - LOW_DIGITS - 1, p->first_id, low,
             low + 4);
}

/* FNV-1a, with the end of the row. It must notice another file; nobody gains by a second file with
 * the same hash. */
uint64_t
import_hash(uint64_t before, const char *row, size_t len)
{
    uint64_t hash = before ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)row[i]) * UINT64_C(0x100000001b3);
    return (hash ^ '\n') * UINT64_C(0x100000001b3);
}
