/*
 * The user's own adapters: the files in $XDG_CONFIG_HOME/queuetop/adapters, and a file that he
 * names. Their SQL runs with the user's rights, so nobody else may have written it: a file, however
 * it was named, and the folder must belong to the user (or root) and be writable by nobody else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/adapter/adapter_parts.h"
#include "model/base/owned.h"

enum { SIZE_MOST = 1 << 20, FILES_MOST = 40 };

static bool
read_all(int fd, const char *path, struct buf *out, struct err *e)
{
    char part[8192];
    ssize_t n;

    while ((n = read(fd, part, sizeof part)) > 0 && out->len <= SIZE_MOST)
        buf_add(out, part, (size_t)n);
    if (n < 0)
        return fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    if (out->len > SIZE_MOST)
        return fail(e, ERR_DATA, "%s: too big for an adapter", path);
    if (out->len > 0 && memchr(out->data, 0, out->len))
        return fail(e, ERR_DATA, "%s: not valid UTF-8", path);
    return true;
}

static struct adapter_file *
open_file(const char *path, struct err *e)
{
    struct adapter_file *f = NULL;
    struct buf text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        fail(e, errno == ENOENT ? ERR_USAGE : ERR_SYS, "%s: %s", path, strerror(errno));
        return NULL;
    }
    buf_str(&text, "");
    if (owned_check(fd, path, e) && read_all(fd, path, &text, e))
        f = adapter_file_read(path, text.data, e);
    close(fd);
    buf_free(&text);
    if (f) {
        free(f->origin);
        f->origin = xstrdup(path);
    }
    return f;
}

struct adapter_file *
adapter_file_open(const char *path, struct err *e)
{
    return open_file(path, e);
}

static char *
own_folder(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config == '/')
        return xasprintf("%s/queuetop/adapters", config);
    return home && *home ? xasprintf("%s/.config/queuetop/adapters", home) : NULL;
}

static bool
has_name(const struct adapter *a, const char *name)
{
    for (int i = 0; i < a->nfiles; i++)
        if (!strcmp(sections_header(&a->files[i]->text, "adapter"), name))
            return true;
    return false;
}

static void
add_own(struct adapter *a, const char *path)
{
    struct err e = {0};
    struct adapter_file *f = open_file(path, &e);

    if (f && has_name(a, sections_header(&f->text, "adapter"))) {
        fail(&e, ERR_DATA, "%s: an adapter \"%s\" is there already: not read", path,
             sections_header(&f->text, "adapter"));
        adapter_file_free(f);
        f = NULL;
    }
    if (f)
        adapter_add(a, f);
    else
        adapter_complain(a, e.text);
}

static int
is_sql(const struct dirent *d)
{
    size_t len = strlen(d->d_name);

    return *d->d_name != '.' && len > 4 && !strcmp(d->d_name + len - 4, ".sql");
}

void
adapter_add_own(struct adapter *a)
{
    char *folder = own_folder();
    struct dirent **names = NULL;
    struct err e = {0};
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd < 0) {
        if (folder && errno != ENOENT) {
            fail(&e, ERR_SYS, "%s: %s: no adapters of your own are read", folder, strerror(errno));
            adapter_complain(a, e.text);
        }
        free(folder);
        return;
    }
    int n = 0;
    if (owned_path(folder, &e) && owned_check(fd, folder, &e))
        n = scandir(folder, &names, is_sql, alphasort);
    if (n < 0)
        fail(&e, ERR_SYS, "%s: %s", folder, strerror(errno));
    if (n > FILES_MOST)
        fail(&e, ERR_DATA, "%s: only the first %d files are read", folder, FILES_MOST);
    if (e.kind != ERR_NONE)
        adapter_complain(a, e.text);
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", folder, names[i]->d_name);
        if (i < FILES_MOST)
            add_own(a, path);
        free(path);
        free(names[i]);
    }
    free(names);
    free(folder);
    close(fd);
}
