/* Errors by value. */
#include "model/base/err.h"

#include <stdarg.h>
#include <string.h>

#include "model/base/text.h"

bool
fail(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    e->kind = kind;
    e->sqlstate[0] = 0;
    e->constraint[0] = 0;
    e->position = 0;
    va_start(ap, fmt);
    text_vprint(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return false;
}

bool
fail_in(struct err *e, const char *fmt, ...)
{
    char what[sizeof e->text], was[sizeof e->text];
    va_list ap;

    memcpy(was, e->text, sizeof was);
    va_start(ap, fmt);
    text_vprint(what, sizeof what, fmt, ap);
    va_end(ap);
    text_print(e->text, sizeof e->text, "%s: %s", what, was);
    return false;
}

bool
err_is_outdated(const struct err *e)
{
    return !strcmp(e->sqlstate, "42883") || !strcmp(e->sqlstate, "42703");
}

int
err_exit_code(const struct err *e)
{
    if (!strcmp(e->sqlstate, "QT007")) /* a value that the engine does not take */
        return 2;
    switch (e->kind) {
    case ERR_NONE:
        return 0;
    case ERR_ABSENT:
        return 1;
    case ERR_USAGE:
        return 2;
    case ERR_DENIED:
    case ERR_REFUSED:
        return 3;
    case ERR_CONN:
    case ERR_AUTH:
        return 4;
    case ERR_TIMEOUT:
    case ERR_SQL:
    case ERR_DATA:
    case ERR_SYS:
        return 5;
    }
    return 5;
}
