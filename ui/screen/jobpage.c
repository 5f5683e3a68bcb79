/*
 * One job as text. A payload is shown as JSON (only white space is added), as text or as bytes
 * (hex).
 */
#include "ui/screen/jobpage.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/text.h"
#include "ui/term/fmt.h"
#include "ui/widget/column.h"

static size_t
unhex(const char *s, unsigned char *out)
{
    size_t n = 0;

    if (!strncmp(s, "\\x", 2))
        s += 2;
    for (; s[0] && s[1]; s += 2) {
        int hi = s[0] <= '9' ? s[0] - '0' : (s[0] | 32) - 'a' + 10;
        int lo = s[1] <= '9' ? s[1] - '0' : (s[1] | 32) - 'a' + 10;
        out[n++] = (unsigned char)(hi << 4 | (lo & 15));
    }
    return n;
}

static void
add_bytes(struct page *p, const char *hex)
{
    unsigned char *bytes = xmalloc(strlen(hex) / 2 + 1);
    struct buf b = {0};

    hex_dump(&b, bytes, unhex(hex, bytes));
    page_add(p, ROLE_CODE, 0, b.data ? b.data : "", b.len);
    buf_free(&b);
    free(bytes);
}

static void
add_payload(struct page *p, const struct job_detail *j)
{
    struct buf b = {0};

    page_printf(p, ROLE_HEADING, 0, "PAYLOAD  %s  %s", fmt_bytes(j->payload_size).s,
                *j->payload_type ? j->payload_type : j->payload_format);
    if (!*j->payload) {
        page_printf(p, ROLE_DIM, 2, "none");
    } else if (!strcmp(j->payload_format, "json")) {
        json_pretty(&b, j->payload, strlen(j->payload));
        page_add_json(p, 2, b.data ? b.data : "", b.len);
    } else if (!strcmp(j->payload_format, "bytes")) {
        add_bytes(p, j->payload);
    } else {
        page_add(p, ROLE_CODE, 2, j->payload, strlen(j->payload));
    }
    buf_free(&b);
    page_printf(p, ROLE_TEXT, 0, " ");
}

/* The job's life as one line: each try, with the glyph of its outcome at its end, and each wait. */
static void
add_timeline(struct page *p, const struct job_row *j, const struct attempt_row *rows, int n,
             const struct job_look *look)
{
    enum { CELLS = 56 };
    bool ended = j->finished_ms != FIELD_NULL || !strcmp(j->state, "failed");
    int64_t from = j->created_ms, to = look->now_ms;
    const char *cells[CELLS];
    struct buf b = {0};

    if (ended)
        to = j->finished_ms != FIELD_NULL ? j->finished_ms : j->changed_ms;
    for (int i = 0; i < n; i++)
        if (rows[i].started_ms != FIELD_NULL && rows[i].started_ms < from)
            from = rows[i].started_ms;
    if (from == FIELD_NULL || to == FIELD_NULL || to <= from)
        return;
    for (int i = 0; i < CELLS; i++)
        cells[i] = "·";
    for (int i = -1; i < n; i++) { /* -1: the try that runs, or the one that succeeded */
        int64_t begin = i < 0 ? j->started_ms : rows[i].started_ms;
        int64_t end = i < 0 ? to : rows[i].ended_ms;
        if (i >= 0 && begin == FIELD_NULL)
            begin = end;
        if (begin == FIELD_NULL || end == FIELD_NULL || end < from || begin > to)
            continue;
        int a = (int)((begin < from ? 0 : begin - from) * (CELLS - 1) / (to - from));
        int z = (int)((end > to ? to - from : end - from) * (CELLS - 1) / (to - from));
        for (int k = a; k <= z; k++)
            cells[k] = "█";
        cells[z] = i >= 0 ? "×" : ended ? "✓" : "▸";
    }
    for (int i = 0; i < CELLS; i++)
        buf_str(&b, cells[i]);
    page_printf(p, ROLE_HEADING, 0, "TIMELINE  %s", fmt_duration(to - from).s);
    page_printf(p, ROLE_CHART, 2, "%s", b.data);
    buf_free(&b);
    buf_str(&b, fmt_when(from, look->now_ms, look->utc).s);
    int gap = CELLS - (int)b.len - (ended ? 0 : 3);
    struct fmt right = fmt_when(to, look->now_ms, look->utc);
    gap -= ended ? (int)strlen(right.s) : 0;
    page_printf(p, ROLE_DIM, 2, "%s%*s%s", b.data, gap > 1 ? gap : 1, "", ended ? right.s : "now");
    buf_free(&b);
    page_printf(p, ROLE_TEXT, 0, " ");
}

static void
add_attempts(struct page *p, const struct attempt_row *rows, int n, const struct job_look *look)
{
    if (n == 0)
        return;
    page_printf(p, ROLE_HEADING, 0, "ATTEMPTS");
    for (int i = 0; i < n; i++) {
        const struct attempt_row *r = &rows[i];
        int64_t took = r->started_ms == FIELD_NULL || r->ended_ms == FIELD_NULL
                           ? FIELD_NULL
                           : r->ended_ms - r->started_ms;
        page_printf(p, ROLE_TEXT, 2, "%2d  %-11s  %7s  %-9s  %s", r->number,
                    fmt_when(r->started_ms == FIELD_NULL ? r->ended_ms : r->started_ms,
                             look->now_ms, look->utc)
                        .s,
                    fmt_duration(took).s, r->outcome, r->node);
        if (*r->error)
            page_add(p, ROLE_BAD, 6, r->error, strlen(r->error));
        if (*r->trace)
            page_add(p, ROLE_DIM, 8, r->trace, strlen(r->trace));
    }
    page_printf(p, ROLE_TEXT, 0, " ");
}

void
jobpage_build(struct page *p, const struct store *s, const struct job_look *look)
{
    const struct job_detail *j = store_job(s);
    int n;
    const struct attempt_row *rows = store_attempts(s, &n);

    page_clear(p);
    if (!j)
        return;
    if (*j->job.error) {
        page_printf(p, ROLE_HEADING, 0, "LAST ERROR");
        page_add(p, ROLE_BAD, 2, j->job.error, strlen(j->job.error));
        page_printf(p, ROLE_TEXT, 0, " ");
    }
    add_payload(p, j);
    p->split = p->n;
    if (n + (j->job.started_ms != FIELD_NULL) >= 2) /* with one try a timeline shows nothing new */
        add_timeline(p, &j->job, rows, n, look);
    add_attempts(p, rows, n, look);
    if (*j->result) {
        page_printf(p, ROLE_HEADING, 0, "RESULT");
        page_add(p, ROLE_CODE, 2, j->result, strlen(j->result));
        page_printf(p, ROLE_TEXT, 0, " ");
    }
    if (*j->origin_id)
        page_printf(p, ROLE_DIM, 0, "made by requeueing %s", j->origin_id);
}

static void
put_labeled(struct pen *p, const char *label, enum role role, const char *value)
{
    pen_put(p, ROLE_DIM, label);
    pen_put(p, role, value);
}

static void
put_time(struct pen *p, const char *label, int64_t ms, const struct job_look *look)
{
    if (ms != FIELD_NULL)
        put_labeled(p, label, ROLE_TEXT, fmt_when(ms, look->now_ms, look->utc).s);
}

static void
put_lease(struct pen *p, const struct job_row *r, const struct job_look *look)
{
    if (r->lease_until_ms == FIELD_NULL)
        return;
    int64_t left = r->lease_until_ms - look->now_ms;
    put_labeled(p, "  lease ", left < 0 ? ROLE_BAD : ROLE_TEXT,
                left < 0 ? "expired " : fmt_duration(left).s);
    pen_put(p, left < 0 ? ROLE_BAD : ROLE_DIM, left < 0 ? fmt_duration(-left).s : " left");
}

/* " for good at try 1 of 5": a failed job is not tried again by itself, however many tries are
 * left.
 */
static void
head_tries(struct pen *p, const struct job_row *row)
{
    bool runs = !strcmp(row->state, "running"), failed = !strcmp(row->state, "failed");
    int tries = row->tries + runs; /* `tries` does not count the running one */

    if (row->tries == INT_MIN)
        return;
    if (runs || failed)
        pen_printf(p, ROLE_TEXT, failed ? " for good at try %d" : ", try %d", tries);
    else
        pen_printf(p, ROLE_TEXT, tries == 1 && row->max_tries == INT_MIN ? ", %d try" : ", %d",
                   tries);
    if (row->max_tries != INT_MIN)
        pen_printf(p, ROLE_TEXT, " of %d%s", row->max_tries, runs || failed ? "" : " tries");
    else if (!runs && !failed && tries != 1)
        pen_put(p, ROLE_TEXT, " tries");
}

static void
head_what(struct pen *p, const struct job_detail *j)
{
    const struct job_row *row = &j->job;

    put_labeled(p, " queue ", ROLE_STRONG, row->queue);
    if (*row->kind)
        put_labeled(p, "  kind ", ROLE_TEXT, row->kind);
    bool stale = row->stale == 1;
    pen_printf(p, stale ? ROLE_WARN : state_role(row->state), "  %s %s",
               stale ? "▲" : state_glyph(row->state), row->state);
    if (*j->raw_state && strcmp(j->raw_state, row->state) != 0) /* as its system calls it */
        pen_printf(p, ROLE_DIM, " (%s)", j->raw_state);
    if (stale)
        pen_put(p, ROLE_WARN, ", but without a worker");
    head_tries(p, row);
    if (j->cancel_asked == 1)
        pen_put(p, ROLE_WARN, "  cancel asked");
    if (row->priority != INT_MIN)
        put_labeled(p, "  priority ", ROLE_TEXT, fmt_int(row->priority).s);
}

/* The time when the job came into its state, unless it is the push: "failed 13:31:02 (31m ago)".
 * The time of the push is shown in any case. */
static void
put_change(struct pen *p, const struct job_row *row, const struct job_look *look)
{
    bool failed = !strcmp(row->state, "failed");

    if (row->changed_ms == FIELD_NULL || (row->changed_ms == row->created_ms && !failed))
        return;
    pen_printf(p, ROLE_DIM, "  %s%s ", row->state, failed ? "" : " since");
    put_time(p, "", row->changed_ms, look);
    if (look->now_ms >= row->changed_ms)
        pen_printf(p, ROLE_DIM, " (%s ago)", fmt_age_short(look->now_ms - row->changed_ms).s);
}

static void
head_when(struct pen *p, const struct job_row *row, const struct job_look *look)
{
    put_time(p, " pushed ", row->created_ms, look);
    put_time(p, "  run at ", row->run_after_ms, look);
    put_time(p, "  started ", row->started_ms, look);
    put_time(p, "  ended ", row->finished_ms, look);
    if (row->finished_ms == FIELD_NULL && row->started_ms == FIELD_NULL)
        put_change(p, row, look);
    if (row->finished_ms != FIELD_NULL && row->started_ms != FIELD_NULL)
        pen_printf(p, ROLE_TEXT, " (%s)", fmt_duration(row->finished_ms - row->started_ms).s);
    put_lease(p, row, look);
}

static void
head_more(struct pen *p, const struct job_detail *j)
{
    pen_put(p, ROLE_DIM, " id ");
    pen_put(p, ROLE_TEXT, j->job.id);
    if (*j->job.node)
        put_labeled(p, "  node ", ROLE_TEXT, j->job.node);
    if (*j->unique_key)
        put_labeled(p, "  unique ", ROLE_TEXT, j->unique_key);
    if (j->run_timeout_ms != FIELD_NULL)
        put_labeled(p, "  run timeout ", ROLE_TEXT, fmt_duration(j->run_timeout_ms).s);
}

void
jobpage_head(struct grid *g, struct rect r, const struct job_detail *j, const struct job_look *look)
{
    struct pen p = pen_start(g, rect_row(r, 0));

    head_what(&p, j);
    p = pen_start(g, rect_row(r, 1));
    head_when(&p, &j->job, look);
    p = pen_start(g, rect_row(r, 2));
    head_more(&p, j);
}
