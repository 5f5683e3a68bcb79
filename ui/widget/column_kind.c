/* The table of kinds: how a value is compared, written and coloured. To add a kind, add one row
 * and, if no function fits, one small function. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "model/base/field.h"
#include "ui/widget/column.h"

/* --- values: what the field of a row holds ---------------------------------------------------- */

static const void *
field(const struct column *c, const void *row)
{
    return (const char *)row + c->offset;
}

static const char *
text_of(const struct column *c, const void *row)
{
    const char *s = *(const char *const *)field(c, row);

    return s ? s : "";
}

static int64_t
big_of(const struct column *c, const void *row)
{
    return *(const int64_t *)field(c, row);
}

static int64_t
int_of(const struct column *c, const void *row)
{
    int n = *(const int *)field(c, row);

    return n == INT_MIN ? FIELD_NULL : n;
}

static double
double_of(const struct column *c, const void *row)
{
    return *(const double *)field(c, row);
}

/* --- comparing: by a value that is taken out of the row once ---------------------------------- */

enum value { V_NONE, V_TEXT, V_INT, V_BIG, V_AGE, V_BOOL, V_DOUBLE };

static struct column_value
value_of(enum value kind, const struct column *c, const void *row)
{
    struct column_value v = {.number = 0};
    int64_t n;

    switch (kind) {
    case V_NONE:
        break;
    case V_TEXT:
        v.text = text_of(c, row);
        break;
    case V_INT:
        v.number = int_of(c, row);
        break;
    case V_BIG:
    case V_AGE:
        v.number = big_of(c, row);
        break;
    case V_BOOL:
        n = int_of(c, row);
        v.number = n < 0 ? FIELD_NULL : n;
        break;
    case V_DOUBLE:
        v.real = double_of(c, row);
        break;
    }
    return v;
}

static bool
is_null(enum value kind, struct column_value v)
{
    if (kind == V_TEXT)
        return !*v.text;
    if (kind == V_DOUBLE)
        return isnan(v.real);
    return kind != V_NONE && v.number == FIELD_NULL;
}

/* Compares two values that are not NULL: less, equal, greater. */
static int
compare_values(enum value kind, struct column_value a, struct column_value b)
{
    if (kind == V_TEXT)
        return strcmp(a.text, b.text);
    if (kind == V_DOUBLE)
        return (a.real > b.real) - (a.real < b.real);
    int order = (a.number > b.number) - (a.number < b.number);
    return kind == V_AGE ? -order : order; /* the later moment is the smaller age */
}

/* --- writing ---------------------------------------------------------------------------------- */

typedef void text_fn(const struct column *c, const void *row, const struct cell_ctx *x, int w,
                     struct buf *out);

static void
write_text(const struct column *c, const void *row, const struct cell_ctx *x, int w,
           struct buf *out)
{
    (void)x, (void)w;
    buf_str(out, text_of(c, row));
}

static void
write_state(const struct column *c, const void *row, const struct cell_ctx *x, int w,
            struct buf *out)
{
    const char *state = text_of(c, row);

    (void)x, (void)w;
    if (*state)
        buf_printf(out, "%s %s", state_glyph(state), state);
}

static void
write_uuid(const struct column *c, const void *row, const struct cell_ctx *x, int w,
           struct buf *out)
{
    const char *id = text_of(c, row);

    (void)x;
    if (w <= 0)
        buf_str(out, id);
    else
        buf_str(out, fmt_id_tail(id).s);
}

static void
write_int(const struct column *c, const void *row, const struct cell_ctx *x, int w, struct buf *out)
{
    (void)x, (void)w;
    buf_str(out, fmt_int(int_of(c, row)).s);
}

static void
write_big(const struct column *c, const void *row, const struct cell_ctx *x, int w, struct buf *out)
{
    (void)x, (void)w;
    buf_str(out, fmt_int(big_of(c, row)).s);
}

static void
write_count(const struct column *c, const void *row, const struct cell_ctx *x, int w,
            struct buf *out)
{
    int64_t n = big_of(c, row);
    bool about = x->approx && n != FIELD_NULL;

    buf_printf(out, "%s%s", about ? "~" : "",
               w > 0 ? fmt_count_fit(n, w - about).s : fmt_count(n).s);
}

static void
write_rate(const struct column *c, const void *row, const struct cell_ctx *x, int w,
           struct buf *out)
{
    double v = double_of(c, row);
    struct fmt f = fmt_rate(v);

    (void)x;
    if (w > 0 && fabs(v) < 9e15 && (int)strlen(f.s) > w)
        f = fmt_count_fit(llround(v), w);
    buf_str(out, f.s);
}

static void
write_percent(const struct column *c, const void *row, const struct cell_ctx *x, int w,
              struct buf *out)
{
    (void)x, (void)w;
    buf_str(out, fmt_percent(double_of(c, row), 1).s);
}

static void
write_bytes(const struct column *c, const void *row, const struct cell_ctx *x, int w,
            struct buf *out)
{
    (void)x, (void)w;
    buf_str(out, fmt_bytes(big_of(c, row)).s);
}

static int64_t
age_of(const struct column *c, const void *row, const struct cell_ctx *x)
{
    int64_t ms = big_of(c, row);

    return ms == FIELD_NULL ? FIELD_NULL : x->now_ms - ms;
}

static void
write_age(const struct column *c, const void *row, const struct cell_ctx *x, int w, struct buf *out)
{
    int64_t ms = age_of(c, row, x);

    buf_str(out, w > 0 && w < 7 ? fmt_age_short(ms).s : fmt_age(ms).s);
}

static void
write_time(const struct column *c, const void *row, const struct cell_ctx *x, int w,
           struct buf *out)
{
    int64_t ms = big_of(c, row);

    buf_str(out,
            w <= 0 || w >= 19 ? fmt_date_time(ms, x->utc).s : fmt_when(ms, x->now_ms, x->utc).s);
}

static void
write_duration(const struct column *c, const void *row, const struct cell_ctx *x, int w,
               struct buf *out)
{
    (void)x, (void)w;
    buf_str(out, fmt_duration(big_of(c, row)).s);
}

static void
write_wait(const struct column *c, const void *row, const struct cell_ctx *x, int w,
           struct buf *out)
{
    int64_t ms = big_of(c, row);

    (void)x;
    buf_str(out, w > 0 && w < 7 ? fmt_age_short(ms).s : fmt_age(ms).s);
}

static void
write_bool(const struct column *c, const void *row, const struct cell_ctx *x, int w,
           struct buf *out)
{
    int64_t v = int_of(c, row);

    (void)x, (void)w;
    buf_str(out, v < 0 ? "—" : v ? "yes" : "no");
}

/* --- colours ---------------------------------------------------------------------------------- */

typedef enum role role_fn(const struct column *c, const void *row);

static enum role
role_plain(const struct column *c, const void *row)
{
    (void)c, (void)row;
    return ROLE_TEXT;
}

static enum role
role_dim(const struct column *c, const void *row)
{
    (void)c, (void)row;
    return ROLE_DIM;
}

static enum role
role_state(const struct column *c, const void *row)
{
    return state_role(text_of(c, row));
}

/* Draws zeros of counts and rates as a dot, so that other figures are easier to see. */
static bool
is_zero(const struct column *c, const void *row)
{
    if (c->kind == K_COUNT)
        return big_of(c, row) == 0;
    return (c->kind == K_RATE || c->kind == K_PERCENT) && fpclassify(double_of(c, row)) == FP_ZERO;
}

/* --- the table -------------------------------------------------------------------------------- */

struct kind_ops {
    enum value value;
    text_fn *text;
    role_fn *role;
    bool right, desc_first;
};

static const struct kind_ops kinds[KINDS] = {
    [K_TEXT] = {V_TEXT,   write_text,     role_plain, false, false},
    [K_NAME] = {V_TEXT,   write_text,     role_plain, false, false},
    [K_LIST] = {V_TEXT,   write_text,     role_plain, false, false},
    [K_JSON] = {V_TEXT,   write_text,     role_plain, false, false},
    [K_NOTE] = {V_TEXT,   write_text,     role_dim,   false, false},
    [K_STATE] = {V_TEXT,   write_state,    role_state, false, false},
    [K_UUID] = {V_TEXT,   write_uuid,     role_plain, false, false},
    [K_INT] = {V_INT,    write_int,      role_plain, true,  false},
    [K_BIG] = {V_BIG,    write_big,      role_plain, true,  false},
    [K_COUNT] = {V_BIG,    write_count,    role_plain, true,  true },
    [K_RATE] = {V_DOUBLE, write_rate,     role_plain, true,  true },
    [K_PERCENT] = {V_DOUBLE, write_percent,  role_plain, true,  true },
    [K_BYTES] = {V_BIG,    write_bytes,    role_plain, true,  true },
    [K_AGE] = {V_AGE,    write_age,      role_plain, true,  true },
    [K_TIME] = {V_BIG,    write_time,     role_plain, true,  true },
    [K_DURATION] = {V_BIG,    write_duration, role_plain, true,  true },
    [K_WAIT] = {V_BIG,    write_wait,     role_plain, true,  true },
    [K_BOOL] = {V_BOOL,   write_bool,     role_plain, false, true },
    [K_CUSTOM] = {V_NONE,   NULL,           role_plain, false, false},
};

static enum column_kind
sort_kind(const struct column *c)
{
    return c->kind == K_CUSTOM && c->special ? c->special->sort_as : c->kind;
}

enum column_kind
column_plain_kind(const struct column *c)
{
    enum column_kind kind = c->plain ? c->plain : c->kind;

    return kind == K_CUSTOM && c->special ? c->special->sort_as : kind;
}

static enum value
sort_value(const struct column *c)
{
    return kinds[sort_kind(c)].value;
}

bool
column_is_null(const struct column *c, const void *row)
{
    return is_null(sort_value(c), column_value(c, row));
}

bool
column_sortable(const struct column *c)
{
    return sort_value(c) != V_NONE;
}

struct column_value
column_value(const struct column *c, const void *row)
{
    return value_of(sort_value(c), c, row);
}

int
column_order(const struct column *c, struct column_value a, struct column_value b, bool desc)
{
    enum value kind = sort_value(c);
    bool a_null = is_null(kind, a), b_null = is_null(kind, b);

    if (a_null || b_null)
        return (a_null > b_null) - (a_null < b_null);
    return desc ? compare_values(kind, b, a) : compare_values(kind, a, b);
}

bool
column_right(const struct column *c)
{
    return c->kind == K_CUSTOM && c->special ? c->special->right : kinds[c->kind].right;
}

bool
column_desc_first(const struct column *c)
{
    return kinds[sort_kind(c)].desc_first;
}

static enum role
column_role(const struct column *c, const void *row, const struct cell_ctx *ctx)
{
    if (c->special && c->special->role)
        return c->special->role(row, ctx);
    return kinds[c->kind].role(c, row);
}

void
column_text(const struct column *c, const void *row, const struct cell_ctx *ctx, int w,
            struct buf *out)
{
    if (kinds[c->kind].text)
        kinds[c->kind].text(c, row, ctx, w, out);
}

void
column_draw(const struct column *c, struct grid *g, struct rect r, const void *row,
            const struct cell_ctx *ctx)
{
    struct buf own = {0}, *b = ctx->scratch ? ctx->scratch : &own;

    if (c->special && c->special->draw) {
        c->special->draw(g, r, row, ctx);
        return;
    }
    buf_clear(b);
    column_text(c, row, ctx, r.w, b);
    if (is_zero(c, row)) /* an estimate of zero keeps its mark */
        grid_right(g, r, ROLE_DIM, b->len > 0 && b->data[0] == '~' ? b->data : "·");
    else if (b->len > 0 && column_right(c))
        grid_right(g, r, column_role(c, row, ctx), b->data);
    else if (b->len > 0)
        grid_text(g, r, column_role(c, row, ctx), b->data, b->len);
    buf_free(&own);
}
