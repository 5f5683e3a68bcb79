/* Keeping passwords out of other people's sight, and descriptors out of other programs. */
#include "model/base/secure.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/base/log.h"

void
secure_process(void)
{
    /* not RLIMIT_CORE, which the commands of `work` would inherit */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        log_line(LOG_WARN, "core dumps can't be turned off");
}

/* True if key stands at s, followed by blanks, '=' and a value. */
static bool
is_given(const char *s, const char *key)
{
    size_t len = strlen(key);

    if (strncmp(s, key, len) != 0)
        return false;
    s += len;
    s += strspn(s, " \t\r\n");
    return *s == '=';
}

static bool
uri_has_password(const char *word)
{
    const char *user = strstr(word, "://") + 3;
    const char *at = user + strcspn(user, "@/");

    return *at == '@' && memchr(user, ':', (size_t)(at - user));
}

bool
secure_has_password(const char *word)
{
    bool is_uri = strncmp(word, "postgres://", 11) == 0 || strncmp(word, "postgresql://", 13) == 0;

    if (is_uri && uri_has_password(word))
        return true;
    for (const char *s = word; *s; s++) {
        bool is_start = s == word || strchr(" \t\r\n?&'", s[-1]);
        if (is_start && (is_given(s, "password") || is_given(s, "sslpassword")))
            return true;
    }
    return false;
}

/* The call itself, because C libraries before glibc 2.34 have no function for it. Kernels
 * before 5.9 don't know it: there the descriptors are closed one by one, up to the limit of open
 * files. */
void
secure_close(unsigned low, unsigned high)
{
    enum { MOST = 1 << 20 };
    long most = sysconf(_SC_OPEN_MAX);

    if (low > high || syscall(__NR_close_range, low, high, 0) == 0)
        return;
    if (most < 0 || most > MOST)
        most = MOST;
    for (unsigned fd = low; fd <= high && fd < (unsigned)most; fd++)
        close((int)fd);
}
