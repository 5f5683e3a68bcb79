/*
 * The lines of what happened, and how many there are of each kind.
 */
#include "ui/facts/happened.h"

#include <string.h>

#include "ui/term/fmt.h"

static const char *
word_of(const struct happened_row *r)
{
    static const struct {
        const char *what, *word;
    } words[] = {
        {"failed", "failed"      },
        {"first",  "first failed"},
        {"last",   "last failed" }
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(r->what, words[i].what))
            return words[i].word;
    return !strcmp(r->what, "act") ? r->verb : r->what;
}

static struct happened_line
line_of(const struct happened_row *r, struct arena *mem)
{
    const char *gap = *r->text && *r->reason ? "  " : "";

    return (struct happened_line){
        .id = r->id,
        .what = r->what,
        .word = word_of(r),
        .target = r->target,
        .queue = r->queue,
        .error_key = r->error_key,
        .action = r->action,
        .who = r->who,
        .say = *r->reason ? arena_printf(mem, "%s%s\"%s\"", r->text, gap, r->reason) : r->text,
        .at_ms = r->at_ms,
        .n = r->n};
}

const struct happened_line *
happened_lines(const struct store *s, const char *queue, const char *node, struct arena *mem,
               int *n)
{
    int known, gone, lines = 0;
    const struct happened_row *rows = store_happened(s, &known);
    const struct left_node *left = store_left(s, &gone);
    struct happened_line *all = arena_alloc(mem, ((size_t)known + (size_t)gone + 1) * sizeof *all);

    for (int i = 0; i < known; i++)
        all[lines++] = line_of(&rows[i], mem);
    for (int i = 0; i < gone; i++)
        if ((!node || !strcmp(node, left[i].node)) && (!queue || node_takes(left[i].queues, queue)))
            all[lines++] =
                (struct happened_line){.id = left[i].id,
                                       .what = "left",
                                       .word = "left",
                                       .target = left[i].node,
                                       .queue = "",
                                       .error_key = "",
                                       .action = "",
                                       .who = "",
                                       .say = "its process ended in order, as seen from here",
                                       .at_ms = left[i].at_ms,
                                       .n = FIELD_NULL};
    *n = lines;
    return all;
}

/* --- sums ------------------------------------------------------------------------------------- */

struct sums {
    int acts, people, came, died, errors;
    int error_rows; /* an error has one or two */
};

static bool
is_new_person(const struct happened_row *rows, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(rows[k].what, "act") && !strcmp(rows[k].who, rows[i].who))
            return false;
    return true;
}

static struct sums
sums_of(const struct happened_row *rows, int n)
{
    struct sums s = {0};

    for (int i = 0; i < n; i++) {
        bool act = !strcmp(rows[i].what, "act");
        s.acts += act;
        s.people += act && is_new_person(rows, i);
        s.came += !strcmp(rows[i].what, "came");
        s.died += !strcmp(rows[i].what, "died");
        s.errors += !strcmp(rows[i].what, "failed") || !strcmp(rows[i].what, "last");
        s.error_rows += *rows[i].error_key != 0;
    }
    return s;
}

/* Whether the answer is as long as it may be, all of it or one kind of its rows. */
static bool
is_cut(const struct sums *s, int n)
{
    return n >= HAPPENED_MOST || s->error_rows >= HAPPENED_MOST / 2 ||
           s->came + s->died >= HAPPENED_MOST / 4;
}

static void
add_sum(struct buf *out, int n, const char *noun, const char *more)
{
    if (n > 0)
        buf_printf(out, "%s%s%s", out->len ? ", " : ": ", fmt_plural(n, noun).s, more);
}

void
happened_say_sums(const struct store *s, struct buf *out)
{
    int n;
    const struct happened_row *rows = store_happened(s, &n);
    struct sums sums = sums_of(rows, n);

    buf_str(out, "");
    add_sum(out, sums.acts, "act", "");
    if (sums.people > 1)
        buf_printf(out, " by %d people", sums.people);
    add_sum(out, sums.died, "node", " died");
    add_sum(out, sums.came, "node", " came");
    add_sum(out, sums.errors, "error", "");
    if (is_cut(&sums, n))
        buf_str(out, ", no older ones");
}
