/*
 * Makes the texts of an answer from the output of a command. The bytes of standard output are the
 * result; the end of standard error is the error (one line) and the trace. Pure functions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/text.h"
#include "model/worker/worker_parts.h"

static const int64_t RETRY_MOST_MS = 365 * (int64_t)86400000; /* fail() takes no more */

char *
report_clean(const char *s, size_t len)
{
    struct buf out = {0};
    uint32_t cp;

    buf_str(&out, "");
    for (size_t i = 0; i < len;) {
        int n = s[i] ? utf8_decode(s + i, len - i, &cp) : 0;
        if (n > 0)
            buf_add(&out, s + i, (size_t)n);
        else
            buf_str(&out, "\xEF\xBF\xBD");
        i += n > 0 ? (size_t)n : 1;
    }
    return out.data;
}

char *
report_result(const struct child_report *r, size_t *len)
{
    struct buf out = {0};

    *len = 0;
    if (r->output_all == 0)
        return NULL;
    buf_add(&out, r->output ? r->output : "", r->output_len);
    if (r->output_all > r->output_len)
        buf_printf(&out, "\n[queuetop: cut, %" PRIu64 " of %" PRIu64 " bytes kept]\n",
                   (uint64_t)r->output_len, r->output_all);
    *len = out.len;
    return out.data;
}

void
report_how(const struct child_report *r, char *out, size_t size)
{
    switch (r->end) {
    case CHILD_EXITED:
        snprintf(out, size, "exit status %d", r->code);
        break;
    case CHILD_SIGNALLED:
        snprintf(out, size, "killed by signal %d (%s)", r->code, strsignal(r->code));
        break;
    case CHILD_NOT_STARTED:
        snprintf(out, size, "could not be started: %s", strerror(r->code));
        break;
    case CHILD_UNKNOWN:
        snprintf(out, size, "ended, and its exit status is not known");
        break;
    }
}

static bool
is_blank(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r\n", s[i]))
            return false;
    return true;
}

/* The first line that is not blank. */
static const char *
first_line(const char *text, size_t *len)
{
    for (const char *at = text;; at += *len + 1) {
        *len = strcspn(at, "\n");
        if (!is_blank(at, *len) || !at[*len])
            return at;
    }
}

static const char *
last_line(const char *text, size_t *len)
{
    const char *best = text;

    *len = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, "\n");
        if (!is_blank(at, n)) {
            best = at;
            *len = n;
        }
        at += n;
        if (!*at)
            return best;
    }
}

/* The line that says what went wrong. It is the first line, unless standard error was cut in front
 * of it, or the first line only opens a trace whose last line is the error. */
static const char *
error_line(const char *text, bool is_cut, size_t *len)
{
    const char *first = first_line(text, len);
    bool is_trace = !strncmp(first, "Traceback (most recent call last)", 33);

    return is_cut || is_trace ? last_line(text, len) : first;
}

int64_t
report_retry_in(const struct child_report *r, struct err *e)
{
    char *text, *word;
    size_t len;
    int64_t ms = 0;

    if (r->output_all > r->output_len) {
        fail(e, ERR_USAGE, "its standard output is longer than --result-limit");
        return 0;
    }
    text = report_clean(r->output ? r->output : "", r->output_len);
    word = text + (last_line(text, &len) - text);
    word[len] = 0;
    word += strspn(word, " \t\r");
    len = strcspn(word, " \t\r");
    if (len > 0 && is_blank(word + len, strlen(word + len)))
        word[len] = 0;
    if (*word && !duration_parse(word, &ms, e))
        ms = 0;
    else if (ms > RETRY_MOST_MS) {
        fail(e, ERR_USAGE, "%s is more than 365 days", word);
        ms = 0;
    } else if (*word && ms == 0)
        ms = 1;
    free(text);
    return ms;
}

char *
report_error(const struct child_report *r, const char *how, char **trace)
{
    char *text = report_clean(r->tail, r->tail_len);
    size_t all = strlen(text), len = 0;
    const char *line = error_line(text, r->tail_all > r->tail_len, &len);
    const char *rest = line + len;
    char *error;

    while (len > 0 && strchr(" \t\r", line[len - 1]))
        len--;
    if (len == 0)
        error = xstrdup(how);
    else if (r->end == CHILD_EXITED) /* the command's text comes first, because lists show the
                                        beginning of an error */
        error = xasprintf("%.*s (%s)", (int)len, line, how);
    else
        error = xasprintf("%s: %.*s", how, (int)len, line);
    *trace = NULL;
    if (line > text && !is_blank(text, (size_t)(line - text)))
        *trace = xstrdup(text);
    else if (!is_blank(rest, all - (size_t)(rest - text)))
        *trace = xstrdup(rest + (*rest == '\n'));
    free(text);
    return error;
}
