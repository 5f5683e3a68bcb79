/* Turns words of the server and of libpq into a struct err: the kind from the SQLSTATE, the text on
 * one line and without a password. For a refused connection libpq gives the SQLSTATE only inside
 * the verbose form of its message ("FATAL:  28P01: ..."). So attempts run verbose, and the SQLSTATE
 * is read from the text here. */
#include "model/db/db_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/console_sql.h"
#include "model/base/log.h"
#include "model/base/mem.h"

struct rule {
    const char *prefix;
    enum err_kind kind;
};

/* The first match counts. */
static const struct rule rules[] = {
    {"08",    ERR_CONN   },
    {"57P",   ERR_CONN   }, /* shutdown, crash, starting up, idle session */
    {"25P03", ERR_CONN   }, /* idle in transaction: the session is gone */
    {"53300", ERR_CONN   }, /* too many connections */
    {"28",    ERR_AUTH   },
    {"3D000", ERR_AUTH   },
    {"57014", ERR_TIMEOUT},
    {"55P03", ERR_TIMEOUT}, /* lock_timeout */
    {"25P04", ERR_TIMEOUT}, /* transaction_timeout */
    {"42501", ERR_DENIED },
    {"25006", ERR_DENIED }, /* read-only transaction */
    {"QT00",  ERR_REFUSED},
};

static enum err_kind
err_kind_of(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strncmp(sqlstate, rules[i].prefix, strlen(rules[i].prefix)) == 0)
            return rules[i].kind;
    return ERR_SQL;
}

/* Appends s with every run of white space as one blank. */
static void
add_words(struct buf *b, const char *s)
{
    bool gap = false;

    for (; *s; s++) {
        bool is_space = isspace((unsigned char)*s);
        if (gap && !is_space && b->len > 0)
            buf_str(b, " ");
        if (!is_space)
            buf_add(b, s, 1);
        gap = is_space;
    }
}

static void
add_part(struct buf *b, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    if (b->len > 0)
        buf_str(b, "; ");
    buf_str(b, label);
    add_words(b, text);
}

static void
add_message(struct buf *b, const PGresult *res)
{
    add_part(b, "", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
    add_part(b, "", PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL));
    add_part(b, "hint: ", PQresultErrorField(res, PG_DIAG_MESSAGE_HINT));
    if (b->len == 0)
        add_words(b, PQresultErrorMessage(res));
}

static void
set_sqlstate(struct err *e, const char *state)
{
    memcpy(e->sqlstate, state, 5);
    e->sqlstate[5] = 0;
}

void
err_of_result(struct err *e, const PGresult *res)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *constraint = PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME);
    const char *position = PQresultErrorField(res, PG_DIAG_STATEMENT_POSITION);
    bool has_state = state && strlen(state) == 5;
    struct buf b = {0};

    if (has_state && !strcmp(state, "53100")) /* the server's message does not say where */
        add_part(&b, "", "a file system of the server is full");
    add_message(&b, res);
    fail(e, has_state ? err_kind_of(state) : ERR_DATA, "%s", b.data ? b.data : "unknown error");
    if (has_state)
        set_sqlstate(e, state);
    snprintf(e->constraint, sizeof e->constraint, "%s", constraint ? constraint : "");
    e->position = position ? (int)strtol(position, NULL, 10) : 0;
    buf_free(&b);
}

/* Replaces each occurrence of secret. Shorter than 3 bytes it would only garble the text. */
static void
hide(struct buf *b, const char *secret)
{
    size_t len = secret ? strlen(secret) : 0;

    if (len < 3 || !b->data)
        return;
    struct buf clean = {0};
    const char *at = b->data;
    for (const char *hit; (hit = strstr(at, secret)); at = hit + len) {
        buf_add(&clean, at, (size_t)(hit - at));
        buf_str(&clean, "***");
    }
    buf_str(&clean, at);
    buf_free(b);
    *b = clean;
}

/* Takes "28P01: " out of a line "...FATAL:  28P01: words"; the state goes to *state. */
static void
add_line(struct buf *b, const char *line, size_t len, char state[static 6])
{
    const char *at = memmem(line, len, ":  ", 3), *end = line + len;

    if (at && end - at > 10 && at[8] == ':' &&
        strspn(at + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == 5) {
        memcpy(state, at + 3, 5);
        buf_add(b, line, (size_t)(at - line));
        buf_add(b, ": ", 2);
        line = at + 10;
    }
    buf_add(b, line, (size_t)(end - line));
}

/* libpq begins the line of each address with this; then come the address, its port, the cause. */
static const char server_at[] = "connection to server at ";

/* Appends one address in a short form, because a line of the screen is short and the cause that
 * matters may belong to the last address: "::1", port 5432: Connection refused; "127.0.0.1":
 * password authentication failed. `said` points behind server_at. Returns where the cause begins.
 */
static const char *
add_address(struct buf *b, const char *said, size_t len, const char **port)
{
    const char *from = memmem(said, len, ", port ", 7), *to = memmem(said, len, " failed: ", 9);

    if (!from || !to || to < from)
        return said;
    bool is_same = *port && !strncmp(*port, from, (size_t)(to - from) + 1);
    buf_add(b, said, (size_t)((is_same ? from : to) - said));
    buf_str(b, ": ");
    *port = from;
    return to + 9;
}

/* libpq's message of a failed attempt: lines, one or more an address; those that begin with a tab
 * are advice ("Is the server running on that host..."), LOCATION names a line of the server's
 * source. */
static void
add_attempt(struct buf *b, const char *said, char state[static 6])
{
    size_t prefix = sizeof server_at - 1;
    const char *first = strstr(said, server_at), *port = NULL;
    bool are_several = first && strstr(first + prefix, server_at);

    while (*said) {
        const char *line = said, *end = said + strcspn(said, "\n");
        bool is_noise = *said == '\t' || end == said || strncmp(said, "LOCATION:", 9) == 0;
        if (!is_noise) {
            if (b->len > 0)
                buf_str(b, "; ");
            if (are_several && strncmp(said, server_at, prefix) == 0)
                line = add_address(b, said + prefix, (size_t)(end - said) - prefix, &port);
            add_line(b, line, (size_t)(end - line), state);
        }
        said = end + (*end == '\n');
    }
}

void
err_of_connect(struct err *e, PGconn *conn, const char *secret)
{
    struct buf b = {0}, line = {0};
    char state[6] = "";

    add_attempt(&b, PQerrorMessage(conn), state);
    hide(&b, secret);
    add_words(&line, b.len > 0 ? b.data : "can't connect");
    /* 42501 means that the CONNECT privilege is missing. Trying again is as useless as with a wrong
     * password. */
    bool is_final = state[0] && (err_kind_of(state) == ERR_AUTH || strcmp(state, "42501") == 0);
    fail(e, is_final ? ERR_AUTH : ERR_CONN, "%s", line.data);
    if (state[0])
        set_sqlstate(e, state);
    buf_free(&b);
    buf_free(&line);
}

/* The error for a connection string that can't be parsed. We can't find the password in such a
 * string. So if the string may hold one, the error repeats nothing that libpq quotes from it. */
void
err_of_conninfo(struct err *e, const char *conninfo, const char *said)
{
    bool may_hold_one = strstr(conninfo, "password") || strchr(conninfo, '@');
    struct buf b = {0}, clean = {0};

    add_words(&b, said ? said : "out of memory");
    for (const char *s = b.data; s && *s;) {
        size_t len = strcspn(s, "\"");
        buf_add(&clean, s, len);
        s += len;
        if (*s && may_hold_one) {
            s += 1 + strcspn(s + 1, "\"");
            buf_str(&clean, "\"***\"");
        } else if (*s) {
            buf_str(&clean, "\"");
        }
        s += *s == '"';
    }
    fail(e, ERR_USAGE, "connection string: %s", clean.data ? clean.data : "");
    buf_free(&b);
    buf_free(&clean);
}

void
err_of_break(struct err *e, PGconn *conn)
{
    const char *said = PQerrorMessage(conn);

    fail(e, ERR_CONN, "%.*s", (int)strcspn(said, "\n"), said);
    if (!e->text[0])
        fail(e, ERR_CONN, "the connection broke");
}

static const char *
name_of(const struct call *c)
{
    int i = c->reply.failed_at;

    if (i < 0 || i >= c->what.n)
        return NULL;
    return c->stmts[i].name ? c->stmts[i].name : console_sql_name(c->stmts[i].sql);
}

/* Only a pooler's session, and the first statement of any, has the limits of its login. */
static void
add_way_out(struct err *e)
{
    const char *limit = !strcmp(e->sqlstate, "25P04") ? "transaction_timeout" : "statement_timeout";
    size_t len = strlen(e->text);

    snprintf(e->text + len, sizeof e->text - len,
             "; if the role or the database sets %s: alter role NAME reset %s, or alter database "
             "NAME reset %s",
             limit, limit, limit);
}

/* Rewrites the error of a call that ran into a time limit: names the statement, the limit and what
 * to do, because the server's message has none of these. If somebody else cancelled the call before
 * the limit, the server's message stays. */
void
err_of_limit(const struct db *db, struct call *c)
{
    const char *name = name_of(c), *blank = name ? " " : "";
    const char *way_out =
        db->conf.read_only ? "ask for less, as one queue or one state" : "ask for less at a time";
    int64_t limit_ms = call_limit_ms(db, c);
    struct err *e = &c->reply.err;

    name = name ? name : "";
    if (db->flight.is_cancelled && !strcmp(e->sqlstate, "57014"))
        snprintf(e->text, sizeof e->text, "statement%s%s: no answer in %.0f s, it was cancelled",
                 blank, name, (double)(clock_us() - c->sent_us) / 1e6);
    else if (!strcmp(e->sqlstate, "55P03"))
        fail_in(e, "statement%s%s", blank, name);
    else if (limit_ms > 0 && clock_us() - c->sent_us >= limit_ms * 1000)
        snprintf(e->text, sizeof e->text, "statement%s%s reached its limit of %g s: %s", blank,
                 name, (double)limit_ms / 1000, way_out);
    else if ((c->what.bare || c->reply.failed_at < 0) && !strstr(e->text, "user request"))
        add_way_out(e);
}

/* Receives notices, because libpq's default prints them over the screen. The last message of a
 * server that closes an idle connection comes here too. */
void
notice_receiver(void *ctx, const PGresult *res)
{
    struct db *db = ctx;
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY);
    const char *plain = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *from = PQresultErrorField(res, PG_DIAG_SOURCE_FUNCTION);
    struct buf b = {0};

    /* "canceling wait for synchronous replication" has no SQLSTATE of its own, and the server
     * translates the text: so compare the function */
    if (db->flight.call && from && strcmp(from, "SyncRepWaitForLSN") == 0)
        db->flight.is_alone = true;
    if (plain && (strcmp(plain, "FATAL") == 0 || strcmp(plain, "PANIC") == 0))
        err_of_result(&db->session.fatal, res);
    add_message(&b, res);
    if (db->tell.notice_fn)
        db->tell.notice_fn(db->tell.notice_ctx, severity ? severity : "", b.data ? b.data : "");
    else
        log_line(LOG_INFO, "server: %s: %s", severity ? severity : "", b.data ? b.data : "");
    buf_free(&b);
}
