/*
 * Prints a list once or repeatedly (--watch). On a terminal each look is drawn over the one before:
 * the cursor moves up, each line is overwritten and its rest erased; text above stays.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/text.h"
#include "ui/read/cli_list.h"

enum { WATCH_MS = 2000, WATCH_MOST = 10000 };

struct watch {
    struct cli *c;
    const struct list_words *w;
    const struct listing *listing;
    struct cli_queue q;
    bool is_open, is_told, is_over, draws;
    int lines; /* lines of the last look, on a terminal */
};

bool
look_begin(const struct look *look, struct cli_table *out, const struct column *columns,
           struct err *e)
{
    const struct list_words *w = look->words;

    cli_table_begin(out, list_form(w), look->queue->source, columns);
    out->formulas = w->exact;
    out->to = look->to;
    out->now_ms = look->queue->now_ms;
    out->most = list_limit(w);
    return cli_table_choose(out, columns, &w->columns, w->sort, e);
}

static int
list_once(struct cli *c, const struct list_words *w, const struct listing *listing)
{
    struct cli_queue q;
    struct err e = {0};

    if (!cli_open(c, false, &q, &e))
        return cli_fail(c, &e);
    int n = listing->look(&(struct look){&q, w, listing, NULL}, &e);
    cli_close(&q);
    return cli_end(c, n >= 0, n, &e);
}

/* --- again and again -------------------------------------------------------------------------- */

static void
on_signal(void *ctx, int signo)
{
    struct watch *t = ctx;

    (void)signo;
    t->is_over = true;
    loop_stop(t->c->loop);
}

static void
add_frame_line(struct buf *out, const char *s, size_t len, int width)
{
    text_clean(out, s, len, TEXT_LINE, width);
    buf_str(out, "\033[K\n");
}

/* Draws over the look before, with as many lines as the terminal has. */
static void
draw(struct watch *t, const char *text)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct buf out = {0};
    int n = 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 2)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    int up = t->lines < size.ws_row ? t->lines : size.ws_row - 1;
    if (up > 0)
        buf_printf(&out, "\r\033[%dA", up);
    for (const char *at = text; *at && n < size.ws_row - 1; n++) {
        size_t len = strcspn(at, "\n");
        add_frame_line(&out, at, len, size.ws_col - 1);
        at += len + (at[len] == '\n');
    }
    buf_str(&out, "\033[J");
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    t->lines = n;
}

/* Prints one object with all rows and the time of the look. */
static void
print_object(const struct watch *t, const char *text)
{
    printf("{\"at\": \"%s\", \"rows\": [", fmt_iso(t->q.now_ms).s);
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\n");
        fwrite(at, 1, len, stdout);
        at += len + 1;
        if (*at)
            fputs(", ", stdout);
    }
    puts("]}");
}

static void
print_look(struct watch *t, const char *text, bool first)
{
    if (list_form(t->w) == OUT_JSON)
        print_object(t, text);
    else if (t->draws)
        draw(t, *text ? text : "nothing matched\n");
    else
        printf("%s%s", first ? "" : "\n", text);
}

/* True if a look was printed. A lost connection is reported once and opened again at the next look.
 */
static bool
look_again(struct watch *t, bool first, struct err *e)
{
    struct buf text = {0};
    int n = -1;

    buf_str(&text, "");
    if (!t->is_open)
        t->is_open = cli_open(t->c, false, &t->q, e);
    if (t->is_open)
        n = t->listing->look(&(struct look){&t->q, t->w, t->listing, &text}, e);
    if (n >= 0) {
        print_look(t, text.data, first);
        t->is_told = false;
    }
    if (n < 0 && t->is_open) {
        cli_close(&t->q);
        t->is_open = false;
    }
    buf_free(&text);
    return n >= 0;
}

/* Handles an error. False: the verb ends, with *code. */
static bool
judge(struct watch *t, bool first, const struct err *e, int *code)
{
    bool is_lost = !first && (e->kind == ERR_CONN || e->kind == ERR_TIMEOUT);

    if (t->is_over)
        return false;
    if (!is_lost) {
        *code = cli_fail(t->c, e);
        return false;
    }
    if (!t->is_told)
        cli_say(t->c, "%s; trying again", e->text);
    t->is_told = true;
    t->lines = 0; /* the message on standard error is in between */
    return true;
}

static bool
sleep_until(struct watch *t, int64_t at_ms, int *code)
{
    const bool never = false;
    struct err e = {0};

    if (!loop_until(t->c->loop, &never, at_ms, &e) && e.kind != ERR_NONE && e.kind != ERR_TIMEOUT &&
        !t->is_over) {
        *code = cli_fail(t->c, &e);
        return false;
    }
    return !t->is_over;
}

static int
list_watch(struct cli *c, const struct list_words *w, const struct listing *listing)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const char *term = getenv("TERM");
    bool is_dumb = !term || !*term || !strcmp(term, "dumb");
    int64_t every = w->watch_ms == CLI_NO_TIME ? WATCH_MS : w->watch_ms;
    struct watch t = {.c = c, .w = w, .listing = listing};
    int code = CLI_DONE;
    bool first = true, goes_on = true;

    t.draws = isatty(STDOUT_FILENO) && !is_dumb && list_form(w) == OUT_TABLE;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        loop_on_signal(c->loop, signals[i], on_signal, &t);
    while (goes_on && !t.is_over) {
        struct err e = {0};
        int64_t next = clock_ms() + every;
        if (look_again(&t, first, &e)) {
            goes_on = fflush(stdout) == 0 && !ferror(stdout);
            code = cli_flush_look(c);
            goes_on = goes_on && code == CLI_DONE;
        } else
            goes_on = judge(&t, first, &e, &code);
        first = false;
        goes_on = goes_on && sleep_until(&t, next, &code);
    }
    if (t.is_open)
        cli_close(&t.q);
    return code;
}

/* Reports wrong words before a connection is made. */
static bool
check_words(const struct list_words *w, const struct listing *listing, struct err *e)
{
    struct cli_table t;

    if (w->json && w->csv)
        return fail(e, ERR_USAGE, "--json and --csv exclude each other");
    if (w->watch_ms && (w->limit == 0 || w->limit > WATCH_MOST)) /* one look is in memory */
        return fail(e, ERR_USAGE, "--watch shows %d rows at most: --limit 1 to %d", WATCH_MOST,
                    WATCH_MOST);
    cli_table_begin(&t, list_form(w), "", listing->columns);
    return listing->varies || cli_table_choose(&t, listing->columns, &w->columns, w->sort, e);
}

int
list_run(struct cli *c, const struct list_words *w, const struct listing *listing)
{
    struct err e = {0};

    if (!check_words(w, listing, &e))
        return cli_usage(c, "%s", e.text);
    return w->watch_ms ? list_watch(c, w, listing) : list_once(c, w, listing);
}
