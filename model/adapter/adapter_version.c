/*
 * What a version means. The tables of an engine change between versions. So a version that was
 * never tested may only be looked at, until the user says that he trusts it (--trust-version).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapter/adapter_parts.h"

/* The next part of a dotted number; a character that is not a digit ends it. */
static long
next_part(const char **s)
{
    char *end;
    long n = isdigit((unsigned char)**s) ? strtol(*s, &end, 10) : -1;

    if (n < 0)
        return -1;
    *s = *end == '.' ? end + 1 : end;
    return n;
}

/* Compares only the parts that `of` has: 1.9.2 equals 1.9, but is later than 1.9.1. Returns <0, 0
 * or >0. */
static int
compare_versions(const char *version, const char *of)
{
    for (;;) {
        long limit = next_part(&of);
        if (limit < 0)
            return 0;
        long part = next_part(&version);
        if (part < 0)
            part = 0;
        if (part != limit)
            return part < limit ? -1 : 1;
    }
}

static bool
is_in_ranges(const char *version, const char *ranges)
{
    for (const char *at = ranges; *at;) {
        size_t len = strcspn(at, " ");
        const char *dash = memchr(at, '-', len);
        if (len > 0 && compare_versions(version, at) >= 0 &&
            compare_versions(version, dash ? dash + 1 : at) <= 0)
            return true;
        at += len + (at[len] != 0);
    }
    return false;
}

/* Why this version is only looked at; NULL = it is not. */
static char *
judge_version(const struct adapter *a, const char *version)
{
    const char *tested = adapter_header(a, "tested-versions");
    const char *least = adapter_header(a, "min-version"), *title = adapter_title(a);
    bool known = isdigit((unsigned char)*version);

    if (a->trusts || !a->file->bound[SEC_VERSION].section || (!tested && !least))
        return NULL;
    if (!known)
        return xasprintf("the version of %s is not to be found, tested is %s: --trust-version "
                         "allows changes",
                         title, tested ? tested : least);
    if (least && compare_versions(version, least) < 0)
        return xasprintf("%s is version %s here, the oldest that is known is %s%s%s: "
                         "--trust-version allows changes",
                         title, version, least, tested ? ", tested is " : "", tested ? tested : "");
    if (tested && !is_in_ranges(version, tested))
        return xasprintf("%s is version %s here, tested is %s: --trust-version allows changes",
                         title, version, tested);
    return NULL;
}

/* Whether the word is among the words of the text. */
static bool
has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = text; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == len && !strncmp(at, word, len))
            return true;
    return false;
}

/* Why the requirement is not met; NULL = it is. */
static const char *
unmet(struct adapter *a, const char *requires, const char *version, const struct role_row *role)
{
    static const char least[] = "version >= ", column[] = "column ";

    if (!requires)
        return NULL;
    if (!strncmp(requires, least, sizeof least - 1))
        return compare_versions(version, requires + sizeof least - 1) < 0
                   ? "this version of the queue system can't do that"
                   : NULL;
    if (strncmp(requires, column, sizeof column - 1) != 0)
        return role && role->signals == 0 ? "needs the rights of pg_signal_backend" : NULL;
    if (has_word(version, requires + sizeof column - 1))
        return NULL;
    char *text = xasprintf("its table has no %s", requires);
    const char *why = adapter_keep(&a->verdicts, text);
    free(text);
    return why;
}

/* The same of a section; the adapter's own words (lacks) come first. */
static const char *
why_not(struct adapter *a, enum section_id s, const char *version, const struct role_row *role)
{
    const char *why = unmet(a, adapter_note(a, s, "requires"), version, role);
    const char *own = why ? adapter_reason(a, s) : NULL;

    return own ? own : why;
}

const char *
adapter_no_acts(const struct adapter *a)
{
    return a->now && a->now->is_guarded ? a->now->place.owners.act_why : NULL;
}

void
adapter_judge(struct adapter *a, const char *version, struct role_row *role)
{
    const char *others = adapter_no_acts(a);
    char *verdict = others ? xstrdup(others) : judge_version(a, version);

    for (int i = 0; i < SEC_COUNT; i++)
        a->lacks[i] = why_not(a, (enum section_id)i, version, role);
    if (role && verdict && role->can_act == 1) {
        role->can_act = 0;
        role->why = adapter_keep(&a->verdicts, verdict);
    }
    free(verdict);
}

void
adapter_trust(struct adapter *a)
{
    a->trusts = true;
}

const char *
adapter_reason(const struct adapter *a, enum section_id s)
{
    const char *name = section_kinds[s].name, *text;
    size_t len = strlen(name);

    for (int at = 0; (text = adapter_header_next(a, "lacks", &at));)
        if (!strncmp(text, name, len) && text[len] == ':')
            return text + len + 1 + strspn(text + len + 1, " ");
    return NULL;
}

const char *
adapter_lacks(const struct adapter *a, enum section_id s)
{
    const char *why = a->file->bound[s].section ? NULL : adapter_reason(a, s);

    if (!a->file->bound[s].section)
        return why ? why : "this queue system can't do that";
    return a->lacks[s];
}
