/*
 * Prepares the place of the demo: the server's programs, the directory, the user, the settings. A
 * server refuses to run as root, so for root the demo runs the server as postgres or nobody. The
 * server listens only on a socket in its own directory. Nobody else may enter the directory, so the
 * server trusts every connection.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/demo/demo.h"

enum { SOCKET_PATH_MAX = 107, MAX_OPEN = 16 };

/* Uses little memory, because the machine may be shared, and gives up durability, because nothing
 * has to survive a crash. */
static const char settings[] = "listen_addresses = ''\n"
                               "unix_socket_permissions = 0700\n"
                               "max_connections = 60\n"
                               "shared_buffers = 16MB\n"
                               "dynamic_shared_memory_type = mmap\n"
                               "wal_level = minimal\n"
                               "max_wal_senders = 0\n"
                               "min_wal_size = 8MB\n"
                               "max_wal_size = 64MB\n"
                               "fsync = off\n"
                               "synchronous_commit = off\n"
                               "full_page_writes = off\n"
                               "autovacuum_naptime = 10s\n"
                               "jit = off\n"
                               "max_parallel_workers_per_gather = 0\n"
                               "timezone = 'UTC'\n"
                               "lc_messages = 'C'\n"
                               "log_line_prefix = '%m [%p] '\n"
                               "cluster_name = 'queuetop demo'\n";

static bool
has_programs(const char *dir, size_t len)
{
    char initdb[PATH_MAX], postgres[PATH_MAX];

    snprintf(initdb, sizeof initdb, "%.*s/initdb", (int)len, dir);
    snprintf(postgres, sizeof postgres, "%.*s/postgres", (int)len, dir);
    return len > 0 && access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;
}

static bool
take_bin(struct demo_place *p, const char *dir, size_t len)
{
    if (len >= sizeof p->bin || !has_programs(dir, len))
        return false;
    snprintf(p->bin, sizeof p->bin, "%.*s", (int)len, dir);
    return true;
}

/* The first number in a directory's name: the server's version. */
static long
version_in(const char *dir)
{
    return strtol(dir + strcspn(dir, "0123456789"), NULL, 10);
}

static bool
search_pattern(struct demo_place *p, const char *pattern)
{
    glob_t found;
    long best = -1;

    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *dir = found.gl_pathv[i];
        if (version_in(dir) > best && take_bin(p, dir, strlen(dir)))
            best = version_in(dir);
    }
    globfree(&found);
    return best >= 0;
}

static bool
search_path(struct demo_place *p)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t len = strcspn(at, ":");
        if (*at == '/' && take_bin(p, at, len))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static bool
ask_pg_config(struct demo_place *p)
{
    char line[PATH_MAX] = "";
    FILE *out = popen("pg_config --bindir 2>/dev/null", "re");
    bool any = out && fgets(line, sizeof line, out);

    if (out)
        pclose(out);
    return any && take_bin(p, line, strcspn(line, "\n"));
}

static bool
choose_user(struct demo_place *p, struct err *e)
{
    if (geteuid() != 0)
        return true;
    const struct passwd *pw = getpwnam("postgres");
    if (!pw)
        pw = getpwnam("nobody");
    if (!pw || pw->pw_uid == 0)
        return fail(e, ERR_SYS,
                    "root may not run a PostgreSQL server, and there is neither a user "
                    "postgres nor nobody to run it");
    snprintf(p->user, sizeof p->user, "%s", pw->pw_name);
    p->uid = pw->pw_uid;
    p->gid = pw->pw_gid;
    return true;
}

bool
demo_find_server(struct demo_place *p, struct err *e)
{
    if (!search_path(p) && !search_pattern(p, "/usr/lib/postgresql/*/bin") &&
        !search_pattern(p, "/usr/pgsql-*/bin") && !ask_pg_config(p))
        return fail(e, ERR_SYS,
                    "no PostgreSQL server found (initdb and postgres, in PATH, in "
                    "/usr/lib/postgresql/*/bin or where pg_config says): install it, on Debian and "
                    "Ubuntu by 'apt-get install postgresql', on Fedora by 'dnf install "
                    "postgresql-server'");
    return choose_user(p, e);
}

bool
demo_make_dir(struct demo_place *p, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    char path[PATH_MAX], socket_path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/queuetop-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    snprintf(socket_path, sizeof socket_path, "%s/.s.PGSQL.5432.lock", path);
    if (strlen(path) >= sizeof p->dir || strlen(socket_path) > SOCKET_PATH_MAX)
        return fail(e, ERR_SYS, "TMPDIR is too long for the path of a socket: %s", tmp);
    if (strpbrk(path, " '\\"))
        return fail(e, ERR_SYS, "TMPDIR has a space, a quote or a backslash in it: %s", tmp);
    if (!mkdtemp(path))
        return fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    snprintf(p->dir, sizeof p->dir, "%.*s", (int)sizeof p->dir - 1, path);
    if (*p->user && chown(p->dir, p->uid, p->gid) != 0) {
        fail(e, ERR_SYS, "chown %s: %s", p->dir, strerror(errno));
        rmdir(p->dir);
        return false;
    }
    snprintf(p->conninfo, sizeof p->conninfo, "host=%s dbname=demo user=ops", p->dir);
    return true;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    remove(path);
    return 0;
}

/* Removes the shared memory that a killed server leaves: line seven of its pid file names it (key,
 * id). A server that ended by itself has removed both. */
static void
remove_shared_memory(const struct demo_place *p)
{
    char path[sizeof p->dir + 64], line[256] = "";
    int n = 0;

    snprintf(path, sizeof path, "%s/data/postmaster.pid", p->dir);
    FILE *f = fopen(path, "re");
    while (f && n < 7 && fgets(line, sizeof line, f))
        n++;
    if (f)
        fclose(f);
    char *id = n == 7 ? strrchr(line, ' ') : NULL;
    struct shmid_ds about;
    int shmid = id ? (int)strtol(id, NULL, 10) : -1;
    if (id && shmctl(shmid, IPC_STAT, &about) == 0 && about.shm_nattch == 0)
        shmctl(shmid, IPC_RMID, NULL);
}

bool
demo_remove_dir(const struct demo_place *p)
{
    remove_shared_memory(p);
    nftw(p->dir, remove_one, MAX_OPEN, FTW_DEPTH | FTW_PHYS);
    return access(p->dir, F_OK) != 0 && errno == ENOENT;
}

bool
demo_drop_root(const struct demo_place *p)
{
    if (!*p->user)
        return true;
    return initgroups(p->user, p->gid) == 0 && setgid(p->gid) == 0 && setuid(p->uid) == 0 &&
           setuid(0) != 0;
}

bool
demo_configure(const struct demo_place *p, struct err *e)
{
    char path[sizeof p->dir + 64];

    snprintf(path, sizeof path, "%s/data/postgresql.conf", p->dir);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    bool ok = fd >= 0 && dprintf(fd, "%sunix_socket_directories = '%s'\n", settings, p->dir) > 0;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    return ok || fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
}

static pid_t
parent_of(pid_t pid)
{
    char path[64], text[512] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *close = strrchr(text, ')'); /* the name may have any characters */
    return close && strlen(close) > 4 ? (pid_t)strtol(close + 4, NULL, 10) : 0;
}

bool
demo_kill_children(pid_t spare)
{
    DIR *proc = opendir("/proc");
    bool any = false;

    for (const struct dirent *d; proc && (d = readdir(proc));) {
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        if (pid <= 0 || pid == spare || parent_of(pid) != getpid())
            continue;
        kill(pid, SIGKILL);
        any = true;
    }
    if (proc)
        closedir(proc);
    return any;
}
