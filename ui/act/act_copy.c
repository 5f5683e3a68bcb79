/*
 * Copies the id of the selected row, or the row as JSON, to the clipboard of the terminal; and
 * shows the row as text.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/box/box.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"

/* --- a row as JSON --- */

/* The row under the cursor of a view as one JSON object: times as ISO 8601 in UTC, unknown
 * values as null, a JSON payload as JSON. The JSON is made by the tables that decode the rows
 * (model/adapter/record.h): a new column of the contract appears in the JSON without a change
 * here. The struct of a list's row begins with the struct of its record. */

static const void *
field_at(const void *row, const struct field *f)
{
    return (const char *)row + f->offset;
}

/* Whether only this program needs the field. */
static bool
is_ours(const struct field *f)
{
    return !strcmp(f->name, "cursor") || !strcmp(f->name, "version");
}

/* Whether the field is a time: "created_ms" is one, "run_timeout_ms" is not. Names are compared
 * whole, because "last_run_ms" is a time and "run_ms" is none. */
static bool
is_time(const struct field *f)
{
    static const char *const spans[] = {"run_ms", "run_timeout_ms", "lease_timeout_ms",
                                        "last_took_ms", "clock_ahead_ms"};
    size_t len = strlen(f->name);

    if (f->type != F_I64 || len < 3 || strcmp(f->name + len - 3, "_ms") != 0)
        return false;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (!strcmp(f->name, spans[i]))
            return false;
    return true;
}

/* The name of a time has no "_ms". If another field has that name already, "_at" follows: a queue
 * has "paused", yes or no, and "paused_at", since when. */
static struct fmt
name_of(const struct record *rec, const struct field *f)
{
    size_t len = strlen(f->name);
    struct fmt name;

    if (!is_time(f)) {
        snprintf(name.s, sizeof name.s, "%s", f->name);
        return name;
    }
    snprintf(name.s, sizeof name.s, "%.*s", (int)len - 3, f->name);
    for (int i = 0; i < rec->n; i++)
        if (!strcmp(rec->fields[i].name, name.s)) {
            snprintf(name.s, sizeof name.s, "%.*s_at", (int)len - 3, f->name);
            break;
        }
    return name;
}

static void
add_number(struct buf *out, const struct field *f, const void *row)
{
    int64_t big = f->type == F_I64 ? *(const int64_t *)field_at(row, f) : 0;

    if (f->type == F_I64 && big == FIELD_NULL)
        buf_str(out, "null");
    else if (is_time(f))
        buf_printf(out, "\"%s\"", fmt_iso(big).s);
    else
        buf_printf(out, "%" PRId64, big);
}

static void
add_value(struct buf *out, const struct field *f, const void *row)
{
    const char *text = f->type == F_STR ? *(const char *const *)field_at(row, f) : "";
    int n = f->type == F_INT || f->type == F_BOOL ? *(const int *)field_at(row, f) : 0;

    switch (f->type) {
    case F_STR:
        if (text && *text)
            json_string(out, text, strlen(text));
        else
            buf_str(out, "null");
        break;
    case F_I64:
        add_number(out, f, row);
        break;
    case F_INT:
        buf_printf(out, n == INT_MIN ? "null" : "%d", n);
        break;
    case F_DBL:
        if (isnan(*(const double *)field_at(row, f)))
            buf_str(out, "null");
        else
            buf_printf(out, "%g", *(const double *)field_at(row, f));
        break;
    case F_BOOL:
        buf_str(out, n < 0 ? "null" : n ? "true" : "false");
        break;
    }
}

static void
add_name(struct buf *out, const char *name)
{
    buf_printf(out, "%s\"%s\": ", out->len > 1 ? ", " : "", name);
}

/* Leaves out fields that only this program needs, and fields that were written already. */
static void
add_record(struct buf *out, const struct record *rec, const void *row)
{
    for (int i = 0; i < rec->n; i++) {
        const struct field *f = &rec->fields[i];
        if (is_ours(f) || (out->len > 1 && i == 0 && !strcmp(f->name, "queue")))
            continue;
        add_name(out, name_of(rec, f).s);
        add_value(out, f, row);
    }
}

/* Writes a payload: as JSON if the payload is complete JSON. */
static void
add_job(struct buf *out, const struct job_detail *j)
{
    bool whole =
        !strcmp(j->payload_format, "json") && (int64_t)strlen(j->payload) == j->payload_size;

    for (int i = 0; i < record_detail.n; i++) {
        const struct field *f = &record_detail.fields[i];
        if (is_ours(f))
            continue;
        add_name(out, name_of(&record_detail, f).s);
        if (whole && !strcmp(f->name, "payload"))
            json_compact(out, j->payload, strlen(j->payload));
        else
            add_value(out, f, j);
    }
}

/* Puts the text of a column into cell; its name. */
static const char *
read_cell(const struct list *l, int i, const void *row, const struct cell_ctx *ctx,
          struct buf *cell)
{
    const struct column *c = list_column(l, i);

    buf_clear(cell);
    buf_str(cell, "");
    column_text(c, row, ctx, 0, cell);
    return c->name;
}

/* Adds the texts of the columns, for rows that no record describes. */
static void
add_cells(const struct app *a, const struct list *l, const void *row, struct buf *out)
{
    struct cell_ctx ctx = {.now_ms = a->now_ms, .utc = true};
    struct buf cell = {0};

    for (int i = 0; i < list_columns(l); i++) {
        add_name(out, read_cell(l, i, row, &ctx, &cell));
        json_string(out, cell.data, cell.len);
    }
    buf_free(&cell);
}

struct table {
    unsigned scope;
    const struct record *records[2];
};

static const struct table *
table_of(unsigned scope)
{
    static const struct table tables[] = {
        {IN_QUEUES,    {&record_queue, &record_count}},
        {IN_JOBS,      {&record_job, NULL}           },
        {IN_FAILED,    {&record_group, NULL}         },
        {IN_NODES,     {&record_node, NULL}          },
        {IN_SCHEDULES, {&record_schedule, NULL}      },
        {IN_AUDIT,     {&record_audit, NULL}         },
    };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i].scope == scope)
            return &tables[i];
    return NULL;
}

static void
add_row(const struct app *a, const struct list *l, const void *row, struct buf *out)
{
    struct view *v = app_view(a);
    const struct table *t = view_in_pane(v) ? NULL : table_of(v->ops->scope);

    for (int k = 0; t && k < 2 && t->records[k]; k++)
        add_record(out, t->records[k], row);
    if (!t)
        add_cells(a, l, row, out);
}

/* --- for people ------------------------------------------------------------------------------- */

static void
add_line(struct buf *out, const struct app *a, const struct record *rec, int i, const void *row)
{
    const struct field *f = &rec->fields[i];
    int64_t big = f->type == F_I64 ? *(const int64_t *)field_at(row, f) : 0;
    struct buf value = {0};

    buf_str(&value, "");
    if (f->type == F_STR)
        buf_str(&value, *(const char *const *)field_at(row, f));
    else if (is_time(f) && big != FIELD_NULL)
        buf_str(&value, fmt_date_time(big, a->options.utc).s);
    else
        add_value(&value, f, row);
    if (value.len > 0 && strcmp(value.data, "null") != 0)
        buf_printf(out, "%-13s %s\n", name_of(rec, f).s, value.data);
    buf_free(&value);
}

static void
add_cell_lines(const struct app *a, const struct list *l, const void *row, struct buf *out)
{
    struct cell_ctx ctx = {.now_ms = a->now_ms, .utc = a->options.utc};
    struct buf cell = {0};

    for (int i = 0; i < list_columns(l); i++) {
        const char *name = read_cell(l, i, row, &ctx, &cell);
        if (cell.len > 0)
            buf_printf(out, "%-13s %s\n", name, cell.data);
    }
    buf_free(&cell);
}

/* All values of the row as text for people, one in a line. */
static void
row_lines(const struct app *a, struct buf *out)
{
    struct view *v = app_view(a);
    struct list *l = v->ops->list ? v->ops->list(v) : NULL;
    const void *row = l ? list_selected(l) : NULL;
    const struct table *t = row && !view_in_pane(v) ? table_of(v->ops->scope) : NULL;

    buf_str(out, "");
    for (int k = 0; t && k < 2 && t->records[k]; k++)
        for (int i = k; i < t->records[k]->n; i++) /* the second repeats the queue */
            if (!is_ours(&t->records[k]->fields[i]))
                add_line(out, a, t->records[k], i, row);
    if (row && !t)
        add_cell_lines(a, l, row, out);
}

/* "{}" if there is no row */
static void
row_json(const struct app *a, struct buf *out)
{
    struct view *v = app_view(a);
    struct list *l = v->ops->list ? v->ops->list(v) : NULL;
    const struct job_detail *j = store_job(a->store);

    buf_str(out, "{");
    if (v->ops->scope == IN_JOB && j)
        add_job(out, j);
    else if (l && list_selected(l))
        add_row(a, l, list_selected(l), out);
    buf_str(out, "}");
}

/* --- copying --- */

static struct list *
front_list(const struct app *a)
{
    struct view *v = app_view(a);

    return v->ops->list ? v->ops->list(v) : NULL;
}

/* --- to the clipboard ------------------------------------------------------------------------- */

/* Reports what was copied; if the text was too long, also how much of it. */
static void
to_clipboard(struct app *a, const char *what, const char *text, bool show)
{
    size_t len = strlen(text), sent;

    if (!a->options.clipboard) {
        app_say(a, SAY_INFO, "%s   (--clipboard lets %s copy it)", show ? text : what,
                show ? "y" : "Y");
        return;
    }
    sent = term_clipboard(a->term, text, len);
    if (sent == len)
        app_say(a, SAY_GOOD, "copied: %s", show ? text : what);
    else
        app_say(a, SAY_WARN, "copied the first %s of %s: a terminal takes no more",
                fmt_bytes((int64_t)sent).s, fmt_bytes((int64_t)len).s);
}

static void
on_copy(struct app *a, int arg)
{
    struct view *v = app_view(a);
    const char *id = v->ops->copy ? v->ops->copy(v) : NULL;

    (void)arg;
    if (id && *id)
        to_clipboard(a, "the id", id, true);
}

/* --- the row ---------------------------------------------------------------------------------- */

static void
on_copy_row(struct app *a, int arg)
{
    struct buf b = {0};

    (void)arg;
    row_json(a, &b);
    if (!a->options.clipboard)
        box_text(a, "row as JSON (--clipboard lets Y copy it)", b.data);
    else
        to_clipboard(a, "the row as JSON", b.data, false);
    buf_free(&b);
}

static void
on_full(struct app *a, int arg)
{
    struct buf out = {0};

    (void)arg;
    row_lines(a, &out);
    box_prose(a, "the row in full", out.data);
    buf_free(&out);
}

static const char *
no_full(const struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    return l && list_selected(l) ? NULL : app_no_row(a);
}

static const char *
no_row(const struct app *a, int arg)
{
    struct list *l = front_list(a);

    (void)arg;
    return l && !list_selected(l) ? app_no_row(a) : NULL;
}

/* clang-format off */
const struct command commands_copy[] = {
    {.name = "copy", .keys = "y", .help = "Show the name or id in full; --clipboard: copy it, too",
     .scope = IN_TABLES | IN_JOB, .run = on_copy, .why_not = no_row},
    {.name = "copy-row", .keys = "Y", .help = "The row as JSON; with --clipboard to the clipboard",
     .scope = IN_TABLES | IN_JOB, .run = on_copy_row, .why_not = no_row},
    {.name = "full", .keys = "f", .help = "The row in full, with the columns that are hidden or cut",
     .scope = IN_TABLES & ~IN_DATABASE, .run = on_full, .why_not = no_full},
    {0},
};
/* clang-format on */
