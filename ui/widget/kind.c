/* The table of kinds: how a value is compared, written and coloured. Adding a kind is one row and,
 * when nothing fits, one small function. */
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

/* --- comparing: less, equal, more; *nulls is set when one of both is NULL, and then decides --- */

typedef int compare_fn(const struct column *c, const void *a, const void *b, bool *nulls);

static int
order_nulls(bool a_null, bool b_null, bool *nulls)
{
    *nulls = true;
    return (a_null > b_null) - (a_null < b_null);
}

static int
compare_text(const struct column *c, const void *a, const void *b, bool *nulls)
{
    const char *x = text_of(c, a), *y = text_of(c, b);

    if (!*x || !*y)
        return order_nulls(!*x, !*y, nulls);
    return strcmp(x, y);
}

static int
compare_numbers(int64_t x, int64_t y, bool *nulls)
{
    if (x == FIELD_NULL || y == FIELD_NULL)
        return order_nulls(x == FIELD_NULL, y == FIELD_NULL, nulls);
    return (x > y) - (x < y);
}

static int
compare_big(const struct column *c, const void *a, const void *b, bool *nulls)
{
    return compare_numbers(big_of(c, a), big_of(c, b), nulls);
}

static int
compare_age(const struct column *c, const void *a, const void *b, bool *nulls)
{
    int64_t x = big_of(c, a), y = big_of(c, b);
    int order = compare_numbers(x, y, nulls);

    return *nulls ? order : -order; /* the later moment is the smaller age */
}

static int
compare_int(const struct column *c, const void *a, const void *b, bool *nulls)
{
    return compare_numbers(int_of(c, a), int_of(c, b), nulls);
}

static int
compare_bool(const struct column *c, const void *a, const void *b, bool *nulls)
{
    int64_t x = int_of(c, a), y = int_of(c, b);

    return compare_numbers(x < 0 ? FIELD_NULL : x, y < 0 ? FIELD_NULL : y, nulls);
}

static int
compare_double(const struct column *c, const void *a, const void *b, bool *nulls)
{
    double x = double_of(c, a), y = double_of(c, b);

    if (isnan(x) || isnan(y))
        return order_nulls(isnan(x), isnan(y), nulls);
    return (x > y) - (x < y);
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
write_age_short(const struct column *c, const void *row, const struct cell_ctx *x, int w,
                struct buf *out)
{
    (void)w;
    buf_str(out, fmt_age_short(age_of(c, row, x)).s);
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

static enum role
role_faults(const struct column *c, const void *row)
{
    int64_t n = big_of(c, row);

    return n == FIELD_NULL ? ROLE_TEXT : n > 0 ? ROLE_WARN : ROLE_GOOD;
}

/* --- the table -------------------------------------------------------------------------------- */

struct kind_ops {
    compare_fn *compare;
    text_fn *text;
    role_fn *role;
    bool right, desc_first;
};

static const struct kind_ops kinds[KINDS] = {
    [K_TEXT] = {compare_text,   write_text,      role_plain,  false, false},
    [K_NOTE] = {compare_text,   write_text,      role_dim,    false, false},
    [K_STATE] = {compare_text,   write_state,     role_state,  false, false},
    [K_UUID] = {compare_text,   write_uuid,      role_plain,  false, false},
    [K_INT] = {compare_int,    write_int,       role_plain,  true,  false},
    [K_BIG] = {compare_big,    write_big,       role_plain,  true,  false},
    [K_COUNT] = {compare_big,    write_count,     role_plain,  true,  true },
    [K_FAULTS] = {compare_big,    write_count,     role_faults, true,  true },
    [K_RATE] = {compare_double, write_rate,      role_plain,  true,  true },
    [K_PERCENT] = {compare_double, write_percent,   role_plain,  true,  true },
    [K_BYTES] = {compare_big,    write_bytes,     role_plain,  true,  true },
    [K_AGE] = {compare_age,    write_age,       role_plain,  true,  true },
    [K_AGE_SHORT] = {compare_age,    write_age_short, role_plain,  true,  true },
    [K_TIME] = {compare_big,    write_time,      role_plain,  true,  true },
    [K_DURATION] = {compare_big,    write_duration,  role_plain,  true,  true },
    [K_WAIT] = {compare_big,    write_wait,      role_plain,  true,  true },
    [K_BOOL] = {compare_bool,   write_bool,      role_plain,  false, true },
    [K_CUSTOM] = {NULL,           NULL,            role_plain,  false, false},
};

static enum kind
sort_kind(const struct column *c)
{
    return c->kind == K_CUSTOM && c->special ? c->special->sort_as : c->kind;
}

bool
column_is_null(const struct column *c, const void *row)
{
    bool nulls = false;
    compare_fn *compare = kinds[sort_kind(c)].compare;

    if (!compare)
        return false;
    compare(c, row, row, &nulls);
    return nulls;
}

bool
column_sortable(const struct column *c)
{
    return kinds[sort_kind(c)].compare != NULL;
}

int
column_compare(const struct column *c, const void *a, const void *b, bool desc)
{
    bool nulls = false;
    compare_fn *compare = kinds[sort_kind(c)].compare;
    int order = compare ? compare(c, a, b, &nulls) : 0;

    return desc && !nulls ? -order : order;
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
    if (b->len > 0 && column_right(c))
        grid_right(g, r, column_role(c, row, ctx), b->data);
    else if (b->len > 0)
        grid_text(g, r, column_role(c, row, ctx), b->data, b->len);
    buf_free(&own);
}
