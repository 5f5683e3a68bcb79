/*
 * Only texts: other files run the editor and ask the user.
 */
#include "ui/facts/payload.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/diff.h"
#include "model/base/text.h"
#include "ui/term/fmt.h"

enum { DIFF_LINES = 4 };

const char *
payload_why_not(const struct job_detail *j)
{
    bool is_json = !strcmp(j->payload_format, "json"), is_text = !strcmp(j->payload_format, "text");

    if (!strcmp(j->job.state, "running"))
        return "the job is running";
    if (!strcmp(j->payload_format, "gone"))
        return "its payload was not kept";
    if (!strcmp(j->payload_format, "bytes"))
        return "its payload is bytes, not text: push a new job from a file (queuetop push)";
    if (*j->payload_format && !is_json && !is_text)
        return "its payload is no text";
    if ((int64_t)strlen(j->payload) != (j->payload_size > 0 ? j->payload_size : 0))
        return "its payload is too long to be edited here";
    return NULL;
}

void
payload_take(struct payload *p, const struct job_detail *j)
{
    struct buf shown = {0};

    *p = (struct payload){.version = xstrdup(j->version),
                          .stored = xstrdup(j->payload),
                          .is_json = strcmp(j->payload_format, "text") != 0,
                          .in_a_line = !strchr(j->payload, '\n')};
    buf_str(&shown, "");
    if (p->is_json && p->in_a_line)
        json_pretty(&shown, p->stored, strlen(p->stored));
    else
        buf_str(&shown, p->stored);
    if (shown.len > 0 && shown.data[shown.len - 1] != '\n')
        buf_str(&shown, "\n");
    p->shown = shown.data;
}

void
payload_done(struct payload *p)
{
    free(p->version);
    free(p->stored);
    free(p->shown);
    free(p->typed);
    free(p->made);
    *p = (struct payload){0};
}

const char *
payload_suffix(const struct payload *p)
{
    return p->is_json ? ".json" : ".txt";
}

static void
make_stored(struct payload *p)
{
    struct buf out = {0};
    size_t len = strlen(p->typed), was = strlen(p->stored);
    bool ended = was > 0 && p->stored[was - 1] == '\n';

    buf_str(&out, "");
    if (!strcmp(p->typed, p->shown))
        buf_str(&out, p->stored);
    else if (p->is_json && p->in_a_line)
        json_compact(&out, p->typed, len);
    else
        buf_add(&out, p->typed, !ended && len > 0 && p->typed[len - 1] == '\n' ? len - 1 : len);
    p->made = out.data;
}

bool
payload_type(struct payload *p, const char *text, size_t len, struct err *e)
{
    int line, column;

    free(p->typed);
    free(p->made);
    p->typed = xstrndup(text, len);
    p->made = NULL;
    if (strlen(p->typed) != len)
        return fail(e, ERR_USAGE, "a NUL byte can't stand in a text");
    if (!utf8_valid(text, len))
        return fail(e, ERR_USAGE, "this is not UTF-8");
    bool unchanged = !strcmp(p->typed, p->shown);
    if (p->is_json && !unchanged && !json_check(text, len, &line, &column))
        return fail(e, ERR_USAGE, "this is no JSON: line %d, column %d", line, column);
    make_stored(p);
    return true;
}

bool
payload_is_same(const struct payload *p)
{
    struct buf was = {0}, is = {0};

    if (!p->is_json)
        return !strcmp(p->made, p->stored);
    json_compact(&was, p->stored, strlen(p->stored));
    json_compact(&is, p->made, strlen(p->made));
    bool same = was.len == is.len && (was.len == 0 || !memcmp(was.data, is.data, was.len));
    buf_free(&was);
    buf_free(&is);
    return same;
}

void
payload_settings(const struct payload *p, struct buf *out)
{
    buf_str(out, "{\"version\": ");
    json_string(out, p->version, strlen(p->version));
    buf_str(out, "}");
}

void
payload_about(const struct payload *p, struct buf *out)
{
    struct buf was = {0}, is = {0};

    buf_printf(out, "%s → %s\n", fmt_bytes((int64_t)strlen(p->stored)).s,
               fmt_bytes((int64_t)strlen(p->made)).s);
    buf_str(&was, p->is_json ? "" : p->stored);
    buf_str(&is, p->is_json ? "" : p->made);
    if (p->is_json) {
        json_pretty(&was, p->stored, strlen(p->stored));
        json_pretty(&is, p->made, strlen(p->made));
    }
    diff_lines(out, was.data, is.data, DIFF_LINES);
    buf_free(&was);
    buf_free(&is);
}
