/*
 * -h, -p, -U and -W, as psql has them: they overrule the environment and a service file, but not
 * the connection string itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "ui/cli/cli_parts.h"

enum {
    PASSWORD_MOST = 1024,
    CONTROL_C = 3,
    CONTROL_D = 4,
    CONTROL_H = 8,
    CONTROL_U = 21,
    DEL = 127
};

/* Reads one port, or one for each host: "5432,5433". */
static bool
check_ports(const char *text, struct err *e)
{
    for (const char *at = text;; at++) {
        char *end = NULL;
        size_t len = strspn(at, "0123456789");
        long n = len > 0 && len < 6 ? strtol(at, &end, 10) : 0;
        if (n < 1 || n > 65535 || (*end && *end != ','))
            return fail(e, ERR_USAGE, "--port takes a number from 1 to 65535, not '%s'", text);
        at = end;
        if (!*at)
            return true;
    }
}

static bool
check_place(const struct cli_common *o, struct err *e)
{
    if (o->host && !*o->host)
        return fail(e, ERR_USAGE, "--host takes a name, an address or the folder of a socket");
    if (o->user && !*o->user)
        return fail(e, ERR_USAGE, "--username takes the name of a role");
    return !o->port || check_ports(o->port, e);
}

static const char *
with(struct cli *c, const char *conninfo, const char *word, const char *value)
{
    if (!value)
        return conninfo;
    char *made = db_conninfo_with(conninfo, word, value);
    const char *kept = made ? arena_printf(c->mem, "%s", made) : conninfo;
    free(made);
    return kept;
}

bool
cli_take_place(struct cli *c, const struct cli_common *o, struct err *e)
{
    int n = c->conninfos.n > 0 ? c->conninfos.n : 1;
    const char **items = arena_alloc(c->mem, sizeof *items * (size_t)n);

    if (!check_place(o, e))
        return false;
    if (!o->host && !o->port && !o->user)
        return true;
    for (int i = 0; i < n; i++) {
        const char *text = c->conninfos.n > 0 ? c->conninfos.items[i] : "";
        text = with(c, text, "host", o->host);
        text = with(c, text, "port", o->port);
        items[i] = with(c, text, "user", o->user);
    }
    c->conninfos = (struct cli_list){items, n};
    return true;
}

/* --- the password ------------------------------------------------------------------------------ */

static void
write_all(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            return; /* the terminal is gone: the next read reports it */
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
}

/* Reads up to the end of the line; false if the user has cancelled. */
static bool
read_secret(int fd, char *into, size_t size)
{
    size_t len = 0;
    char c;

    for (;;) {
        ssize_t n = read(fd, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || c == CONTROL_C || c == CONTROL_D)
            return false;
        if (c == '\r' || c == '\n')
            break;
        if (c == CONTROL_U)
            len = 0;
        else if (c != DEL && c != CONTROL_H && len + 1 < size)
            into[len++] = c;
        else if ((c == DEL || c == CONTROL_H) && len > 0)
            while (--len > 0 && (into[len] & 0xc0) == 0x80)
                ; /* the whole character */
    }
    into[len] = 0;
    return true;
}

/* Reads a password; the terminal does not show it. Ctrl-C is read as a key, so that the program can
 * switch the echo on again before it ends. */
static bool
ask_secret(int fd, char *into, size_t size, struct err *e)
{
    struct termios old, quiet;

    if (tcgetattr(fd, &old) < 0)
        return fail(e, ERR_SYS, "the terminal: %s", strerror(errno));
    quiet = old;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG | IEXTEN);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    tcsetattr(fd, TCSAFLUSH, &quiet);
    write_all(fd, "Password: ");
    bool is_given = read_secret(fd, into, size);
    write_all(fd, "\r\n");
    tcsetattr(fd, TCSAFLUSH, &old);
    return is_given || fail(e, ERR_USAGE, "no password was given");
}

bool
cli_ask_password(struct err *e)
{
    char secret[PASSWORD_MOST] = "";
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return fail(e, ERR_USAGE,
                    "-W asks at a terminal, and there is none: ~/.pgpass or PGPASSFILE serves "
                    "without one");
    bool ok = ask_secret(fd, secret, sizeof secret, e);
    close(fd);
    if (ok)
        setenv("PGPASSWORD", secret, 1); /* for every connection, including later ones */
    explicit_bzero(secret, sizeof secret);
    return ok;
}
