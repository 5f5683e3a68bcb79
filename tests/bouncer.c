/*
 * A connection pooler that gives no client a session of its own: see bouncer.h.
 */
#include "tests/bouncer.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/server.h"

static const char *
ini(void)
{
    static char file[300];

    snprintf(file, sizeof file, "%s/bouncer.ini", getenv("TMPDIR"));
    return file;
}

pid_t
bouncer_start(int port, const char *databases, int pool)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    char all[300];

    snprintf(all, sizeof all, "* = host=%s user=postgres", pg_host());
    FILE *out = fopen(ini(), "we");
    assert_non_null(out);
    fprintf(out,
            "[databases]\n%s\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = %d\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = %d\n",
            databases ? databases : all, pg_host(), port, pool);
    fclose(out);
    chmod(ini(), 0644);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    if (user && (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)))
        _exit(126);
    execlp("pgbouncer", "pgbouncer", "-q", ini(), (char *)NULL);
    execl("/usr/sbin/pgbouncer", "pgbouncer", "-q", ini(), (char *)NULL);
    _exit(127);
}

void
bouncer_stop(pid_t bouncer)
{
    kill(bouncer, SIGINT);
    kill(bouncer, SIGTERM);
    assert_int_equal(waitpid(bouncer, NULL, 0), bouncer);
    unlink(ini());
}
