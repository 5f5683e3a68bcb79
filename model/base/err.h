/* Errors by value. A function that can fail for reasons outside the program returns bool and fills
 * a struct err. The program acts by the kind. The text is for people. It may hold words of the
 * server, so it is untrusted: pass it through model/base/text.h before it goes to a screen. */
#ifndef MODEL_BASE_ERR_H
#define MODEL_BASE_ERR_H

#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_USAGE,   /* the user's words are wrong: exit code 2 */
    ERR_ABSENT,  /* nothing has the name or id that the user gave: exit code 1 */
    ERR_CONN,    /* no server, or the connection broke: reconnect with back-off; exit code 4 */
    ERR_AUTH,    /* the server rejects the connection for good (28xxx; 3D000 if it never worked):
                    stop and report; exit code 4 */
    ERR_DENIED,  /* lacking privilege (42501, read-only): disable the command; exit code 3 */
    ERR_REFUSED, /* a guard said no (QT001 to QT007): nothing changed; exit code 3 */
    ERR_TIMEOUT, /* cancelled by a time limit: keep the old data, mark it stale */
    ERR_SQL,     /* any other error of the server, SQLSTATE in sqlstate; exit code 5 */
    ERR_DATA,    /* an answer, a file or a value is malformed */
    ERR_SYS      /* the operating system said no */
};

struct err {
    enum err_kind kind;
    char sqlstate[6];    /* "" unless the server said it */
    char constraint[64]; /* the constraint that was violated; "" = none */
    int position;        /* of the error in the statement, in characters from 1; 0 = not known */
    char text[400];
};

/* Fills *e and returns false, so that failing is one statement: return fail(e, ERR_DATA, "..."). */
bool fail(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), nonnull(1, 3)));

/* Adds "what: " in front of the text of an error that is already there. Always returns false. */
bool fail_in(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3), nonnull));

/* True if the server does not have a function or column that this program needs: the installed
 * schema is older than the program. */
bool err_is_outdated(const struct err *e) __attribute__((nonnull));

/* The exit code of a verb that ends with this error: 1 not there, 2 usage, 3 refused, 4 no server,
 * 5 the server rejected it. */
int err_exit_code(const struct err *e);

#endif
