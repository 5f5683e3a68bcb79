/* What all parts of the soak use: see soak.h. */
#include "tests/fault/soak.h"

#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_MS = 60000 };

static bool was_cut;
static int64_t asked, answered; /* of the last soak_ask, on the clock that all processes have */

int64_t
soak_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
soak_wait(int ms)
{
    poll(NULL, 0, ms);
}

static uint64_t
next(struct soak *s) /* splitmix64 */
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

unsigned
soak_random(struct soak *s, unsigned n)
{
    return (unsigned)(next(s) % n);
}

bool
soak_chance(struct soak *s, unsigned per_mille)
{
    return soak_random(s, 1000) < per_mille;
}

void
soak_uuid(struct soak *s, char id[static 37])
{
    uint64_t ms = (uint64_t)soak_ms(), a = next(s), b = next(s);

    snprintf(id, 37, "%08x-%04x-7%03x-%04x-%012llx", (unsigned)(ms >> 16), (unsigned)(ms & 0xffff),
             (unsigned)(a & 0xfff), (unsigned)(0x8000 | (a >> 16 & 0x3fff)),
             (unsigned long long)(b & 0xffffffffffffu));
}

void
soak_note(const char *file, const char *fmt, ...)
{
    char line[600];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, args);
    va_end(args);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    for (int i = 0; i < n; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[n++] = '\n';
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)n) != n) {
        fprintf(stderr, "soak: %s: %s\n", file, strerror(errno));
        abort();
    }
    close(fd);
}

static void
drop_notice(void *arg, const PGresult *r)
{
    (void)arg, (void)r;
}

PGconn *
soak_connect(const struct soak *s, const char *name)
{
    char dsn[500];
    int64_t until = soak_ms() + CONNECT_MS;

    /* the one who continues stopped processes must not wait for them */
    bool waits = strcmp(name, "soak-operator") != 0;
    snprintf(dsn, sizeof dsn, "%s application_name=%s%s", s->dsn, name,
             waits ? "" : " options='-c lock_timeout=1s'");
    for (;;) {
        PGconn *conn = PQconnectdb(dsn);
        if (PQstatus(conn) == CONNECTION_OK) {
            PQsetNoticeReceiver(conn, drop_notice, NULL);
            return conn;
        }
        if (soak_ms() > until)
            fprintf(stderr, "soak: %s: %s", name, PQerrorMessage(conn));
        PQfinish(conn);
        if (soak_ms() > until)
            return NULL;
        soak_wait(20);
    }
}

static bool
is_good(const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* What may go wrong in a database that is being shaken; anything else is worth a line. */
static bool
is_expected(const PGresult *r)
{
    const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);

    return !code || !strncmp(code, "57P", 3) || !strncmp(code, "08", 2) || !strcmp(code, "QT006") ||
           !strcmp(code, "55P03");
}

PGresult *
soak_ask(struct soak *s, PGconn **conn, const char *fmt, ...)
{
    char *sql = NULL, name[64];
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&sql, fmt, args) < 0)
        abort();
    va_end(args);
    asked = now_ns();
    PGresult *r = PQexec(*conn, sql);
    answered = now_ns();
    bool good = is_good(r);
    was_cut = PQstatus(*conn) != CONNECTION_OK;
    if (!good && !is_expected(r))
        soak_note("errors", "%s: %.200s", PQresultErrorMessage(r), sql);
    free(sql);
    if (good)
        return r;
    PQclear(r);
    if (was_cut) {
        snprintf(name, sizeof name, "%s", PQparameterStatus(*conn, "application_name"));
        PQfinish(*conn);
        *conn = soak_connect(s, name);
        if (!*conn)
            abort();
    }
    return NULL;
}

bool
soak_was_cut(void)
{
    return was_cut;
}

void
soak_note_order(const char *kind, const char *job, const char *rest)
{
    soak_note("order", "%s\t%lld\t%lld\t%s\t%s", kind, (long long)asked, (long long)answered, job,
              rest);
}

void
soak_read(PGconn *conn, const char *name, const char *columns)
{
    char line[1000];
    FILE *f = fopen(name, "re");

    assert_non_null(f);
    snprintf(line, sizeof line, "copy soak.%s (%s) from stdin", name, columns);
    PGresult *r = PQexec(conn, line);
    assert_int_equal(PQresultStatus(r), PGRES_COPY_IN);
    PQclear(r);
    while (fgets(line, sizeof line, f))
        assert_int_equal(PQputCopyData(conn, line, (int)strlen(line)), 1);
    fclose(f);
    assert_int_equal(PQputCopyEnd(conn, NULL), 1);
    while ((r = PQgetResult(conn))) {
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            fail_msg("%s: %s", name, PQresultErrorMessage(r));
        PQclear(r);
    }
}
