/*
 * Ids on the command line: the full id, or its first or last digits as the lists show them. Digits
 * are looked up by the sections that list jobs and actions, newest first, in a limited number of
 * pages. If several ids have these digits, the verb prints them and rejects the word: it never
 * guesses. So the search goes on after the first hit: the first 8 digits of an id of version 7 are
 * those of all jobs of 65 seconds.
 */
#include <ctype.h>
#include <string.h>

#include "model/base/mem.h"
#include "ui/cli/cli_open.h"

enum {
    LEAST = 4,       /* with fewer digits no id is looked up */
    SCAN = 100000,   /* jobs that one question reads */
    JOB_PAGE = 1000, /* jobs that one question returns: those with the digits in any text */
    JOB_PAGES = 10,  /* number of questions about unfinished jobs, then about finished ones */
    ACTION_PAGE = 1000,
    ACTION_PAGES = 50,
    CANDIDATES = 5
};

struct search {
    const char *typed;
    struct arena *mem;
    const char *found[CANDIDATES];
    int n; /* at most CANDIDATES: further ones are not counted */
    int64_t looked;
    bool whole; /* all jobs were read */
};

static bool
is_part(const char *typed)
{
    size_t len = strlen(typed);

    for (size_t i = 0; i < len; i++)
        if (!isxdigit((unsigned char)typed[i]) && typed[i] != '-')
            return false;
    return len >= LEAST && len < 36;
}

static void
consider(struct search *s, const char *id)
{
    size_t len = strlen(s->typed), whole = strlen(id);

    if (whole < len || (strncasecmp(id, s->typed, len) && strcasecmp(id + whole - len, s->typed)))
        return;
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->found[i], id))
            return;
    if (s->n < CANDIDATES)
        s->found[s->n++] = arena_strndup(s->mem, id, whole);
}

/* Asks for one page; *more = another page follows, from the cursor that is now in p: the page is
 * full, or its last row has no id, because the search ended early. */
static bool
look_at_jobs(struct cli_queue *q, struct params *p, struct search *s, bool *more, struct err *e)
{
    enum section_id section = SEC_JOBS;
    struct rowset rows;

    if (!cli_ask(q, &section, 1, p, &rows, e))
        return false;
    const struct job_row *row = rows.rows, *last = rows.n ? row + rows.n - 1 : NULL;
    for (int i = 0; i < rows.n; i++)
        consider(s, row[i].id);
    *more = last && *last->cursor && (!*last->id || rows.n == JOB_PAGE);
    if (*more)
        params_set(p, PARAM_CURSOR, last->cursor);
    s->looked += SCAN;
    rowset_free(&rows);
    return true;
}

static bool
search_jobs(struct cli_queue *q, const char *const *states, int nstates, struct search *s,
            struct err *e)
{
    struct params p = {0};
    bool ok = true, more = true;

    params_set_list(&p, PARAM_WORDS, &s->typed, 1);
    if (nstates)
        params_set_list(&p, PARAM_STATES, states, nstates);
    params_set_int(&p, PARAM_N, SCAN);
    params_set_int(&p, PARAM_LIMIT, JOB_PAGE);
    for (int i = 0; ok && more && s->n < CANDIDATES && i < JOB_PAGES; i++)
        ok = look_at_jobs(q, &p, s, &more, e);
    s->whole &= !more;
    params_done(&p);
    return ok;
}

static bool
search_actions(struct cli_queue *q, struct search *s, struct err *e)
{
    enum section_id section = SEC_AUDIT;
    struct params p = {0};
    bool ok = true, more = true;

    params_set_int(&p, PARAM_LIMIT, ACTION_PAGE);
    for (int i = 0; ok && more && i < ACTION_PAGES; i++) {
        struct rowset rows;
        ok = cli_ask(q, &section, 1, &p, &rows, e);
        if (!ok)
            break;
        const struct audit_row *row = rows.rows;
        for (int r = 0; r < rows.n; r++)
            consider(s, row[r].action);
        s->looked += rows.n;
        more = rows.n == ACTION_PAGE && *row[rows.n - 1].cursor;
        if (more)
            params_set(&p, PARAM_CURSOR, row[rows.n - 1].cursor);
        rowset_free(&rows);
    }
    s->whole = !more;
    params_done(&p);
    return ok;
}

static bool
search(struct cli_queue *q, enum section_id of, struct search *s, struct err *e)
{
    static const char *const finished[] = {"completed", "cancelled"};

    if (of == SEC_AUDIT)
        return search_actions(q, s, e);
    return search_jobs(q, NULL, 0, s, e) && search_jobs(q, finished, 2, s, e);
}

static const char *
judge(const struct search *s, const char *noun, struct err *e)
{
    struct buf names = {0};

    if (s->n == 1)
        return s->found[0];
    for (int i = 0; i < s->n; i++)
        buf_printf(&names, "\n  %s", s->found[i]);
    if (s->n > 1)
        fail(e, ERR_USAGE, "%s %ss have \"%s\" in front or at the end of their id:%s%s",
             s->n == CANDIDATES ? "several" : "some", noun, s->typed, names.data,
             s->n == CANDIDATES ? "\n  ..." : "");
    else
        fail(e, ERR_ABSENT, "no %s has \"%s\" in front or at the end of its id%s", noun, s->typed,
             s->whole ? "" : ", among those that were looked at; give the full id");
    buf_free(&names);
    return NULL;
}

const char *
cli_full_id(struct cli_queue *q, enum section_id of, const char *typed, struct err *e)
{
    const char *noun = of == SEC_AUDIT ? "action" : "job";
    const struct adapter *a = of == SEC_AUDIT ? NULL : q->adapter;
    struct search s = {.typed = typed, .mem = q->cli->mem, .whole = true};

    if (cli_is_id(a, typed))
        return typed;
    if (!is_part(typed) || !adapter_has(q->adapter, of) ||
        (of == SEC_JOBS && !adapter_takes(q->adapter, of, PARAM_WORDS))) {
        fail(e, ERR_USAGE,
             "\"%s\" is not the id of a%s %s: give it in full, or its first or last digits (%d at "
             "least)",
             typed, *noun == 'a' ? "n" : "", noun, LEAST);
        return NULL;
    }
    return search(q, of, &s, e) ? judge(&s, noun, e) : NULL;
}
