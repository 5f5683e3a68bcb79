/*
 * `queuetop metrics`: the data of the console's sources for Prometheus and similar programs: once
 * to standard output, repeatedly into a file, or by HTTP. It asks the servers what a console asks,
 * within the same budget; a scrape is answered from memory and costs the server nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/owned.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/verbs.h"
#include "ui/facts/metrics.h"
#include "ui/read/cli_http.h"

enum { LOOK_MS = 250, FIRST_LOOK_MS = 20, QUEUES_MOST = 1000 };

struct metrics_options {
    int64_t interval_ms;
    int queues;
    const char *file, *listen, *cert, *key, *auth;
    bool plain;
};

static const struct metrics_options defaults = {.interval_ms = 5000, .queues = QUEUES_MOST};

#define O(f) offsetof(struct metrics_options, f)

/* clang-format off */
static const struct cli_option options[] = {
    {"listen", 0, "ADDR", CLI_TEXT, O(listen), "answer HTTP at PORT (of this machine only) or ADDR:PORT, path /metrics", 0, 0},
    {"file", 0, "FILE", CLI_TEXT, O(file), "write FILE anew at every interval, whole or not at all", 0, 0},
    {"interval", 0, "TIME", CLI_TIME, O(interval_ms), "time between refreshes (5s)", 1000, 3600000},
    {"queues", 0, "N", CLI_INT, O(queues), "figures of at most N queues of each source (1000)", 1, 100000},
    {"cert", 0, "FILE", CLI_TEXT, O(cert), "TLS: the certificate, in PEM", 0, 0},
    {"key", 0, "FILE", CLI_TEXT, O(key), "TLS: its key, mode 0600", 0, 0},
    {"auth", 0, "FILE", CLI_TEXT, O(auth), "ask for the USER:PASSWORD of this file, mode 0600", 0, 0},
    {"plain", 0, NULL, CLI_FLAG, O(plain), "the older text format, as node_exporter reads it from files", 0, 0},
    {0},
};
/* clang-format on */

struct exporter {
    struct cli *c;
    const struct metrics_options *o;
    struct sources *ss;
    struct http *http;
    int64_t until_ms; /* end of the only look; 0 = until a signal */
    int64_t write_ms; /* when the file must be written next */
    bool told;        /* the user knows that the file can't be written */
    bool has_said;    /* and why sources have no figures */
};

static const enum topic topics[] = {TOPIC_QUEUES, TOPIC_LIFE,  TOPIC_PACE,
                                    TOPIC_TIMES,  TOPIC_NODES, TOPIC_HEALTH};

/* --- what is asked ---------------------------------------------------------------------------- */

/* Asks for the topics of all sources, also of those that were found later. A source that can't be
 * opened is down. */
static void
want_all(struct exporter *x)
{
    struct err e;

    sources_update(x->ss);
    for (int i = 0; i < sources_n(x->ss); i++) {
        struct source_line line;
        sources_line(x->ss, i, &line);
        if (line.state == SOURCE_STRANGE)
            continue;
        struct source *s = sources_at(x->ss, i, &e);
        for (size_t t = 0; s && t < sizeof topics / sizeof *topics; t++)
            store_want(source_store(s), topics[t], true);
    }
}

static bool
is_known(const struct store *s)
{
    if (store_state(s) != STORE_OPEN)
        return store_error(s)->kind != ERR_NONE;
    for (size_t t = 0; t < sizeof topics / sizeof *topics; t++) {
        const struct topic_info *info = store_topic(s, topics[t]);
        if (!info->has_data && !info->unavailable && info->err.kind == ERR_NONE)
            return false;
    }
    return true;
}

static bool
all_known(const struct exporter *x)
{
    for (int i = 0; i < sources_n(x->ss); i++) {
        struct source *s = sources_peek(x->ss, i);
        if (s && !is_known(source_store(s)))
            return false;
    }
    return true;
}

/* --- what is written -------------------------------------------------------------------------- */

static struct metrics_source
source_of(const struct exporter *x, int i)
{
    struct source *s = sources_peek(x->ss, i);
    struct source_line line;

    sources_line(x->ss, i, &line);
    bool open = s && (line.state == SOURCE_OPEN || line.state == SOURCE_LOOK_ONLY);
    return (struct metrics_source){.name = sources_name(x->ss, i),
                                   .adapter = line.adapter,
                                   .version = line.version,
                                   .store = open ? source_store(s) : NULL,
                                   .up = open && line.age_ms >= 0 && !line.stale};
}

static int
write_page(struct exporter *x, bool modern, struct buf *out)
{
    struct metrics_source list[SOURCES_MAX];
    int n = sources_n(x->ss), up = 0;

    for (int i = 0; i < n; i++) {
        list[i] = source_of(x, i);
        up += list[i].up;
    }
    metrics_write(list, n, x->o->queues, modern, out);
    return up;
}

static void
on_page(void *ctx, bool modern, struct buf *out)
{
    write_page(ctx, modern, out);
}

/* Replaces the file at once, so that a reader sees the old or the new one, never a part. */
static bool
replace_file(const char *path, const struct buf *text, struct err *e)
{
    char *fresh = xasprintf("%s.%d", path, (int)getpid());
    bool ok = owned_write_new(fresh, 0644, text->data, text->len);

    if (ok && rename(fresh, path) != 0) {
        ok = fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
        unlink(fresh);
    } else if (!ok)
        fail(e, ERR_SYS, "%s: %s", path, strerror(errno));
    free(fresh);
    return ok;
}

/* Writes the file. A failure is not the end, because writing may work later, for example if the
 * disk was full. */
static void
write_file(struct exporter *x)
{
    struct buf text = {0};
    struct err e = {0};

    write_page(x, !x->o->plain, &text);
    bool ok = replace_file(x->o->file, &text, &e);
    if (!ok && !x->told)
        cli_say(x->c, "%s", e.text);
    x->told = !ok;
    buf_free(&text);
}

/* --- the loop --------------------------------------------------------------------------------- */

static void
on_signal(void *ctx, int signo)
{
    struct exporter *x = ctx;

    (void)signo;
    loop_stop(x->c->loop);
}

/* Says why sources have no figures; true if there are any. */
static bool
say_why(const struct exporter *x, bool aloud)
{
    bool any = false;

    for (int i = 0; i < sources_n(x->ss); i++) {
        struct source_line line;
        sources_line(x->ss, i, &line);
        if (!*line.why || line.state == SOURCE_LOOK_ONLY)
            continue;
        any = true;
        if (aloud)
            cli_say(x->c, "%s: %s", line.name, line.why);
    }
    return any;
}

static void
look(void *ctx)
{
    struct exporter *x = ctx;
    int64_t now = clock_ms();

    want_all(x);
    if (!x->until_ms)
        x->has_said = say_why(x, !x->has_said);
    if (x->until_ms && (all_known(x) || now >= x->until_ms)) {
        loop_stop(x->c->loop);
        return;
    }
    if (x->o->file && (x->write_ms ? now >= x->write_ms : all_known(x))) {
        write_file(x);
        x->write_ms = now + x->o->interval_ms;
    }
    loop_at(x->c->loop, now + (x->until_ms ? FIRST_LOOK_MS : LOOK_MS), look, x);
}

static int
print_once(struct exporter *x)
{
    struct buf text = {0};

    int up = write_page(x, !x->o->plain, &text);
    fwrite(text.data, 1, text.len, stdout);
    buf_free(&text);
    say_why(x, true);
    int code = cli_flush_look(x->c);
    return code == CLI_DONE && up == 0 ? CLI_NO_SERVER : code;
}

static int
run_exporter(struct exporter *x)
{
    struct err e = {0};

    loop_on_signal(x->c->loop, SIGINT, on_signal, x);
    loop_on_signal(x->c->loop, SIGTERM, on_signal, x);
    look(x);
    if (!loop_run(x->c->loop, &e))
        return cli_fail(x->c, &e);
    return x->until_ms ? print_once(x) : CLI_DONE;
}

static int
run_metrics(struct cli *c, const void *opts)
{
    const struct metrics_options *o = opts;
    struct exporter x = {.c = c, .o = o};
    const struct source_options like = {
        .interval_ms = (int)o->interval_ms, .read_only = true, .unattended = o->listen || o->file};
    const struct http_options ho = {o->listen, o->cert, o->key, o->auth};
    struct err e = {0};

    if (!o->listen && (o->cert || o->key || o->auth))
        return cli_usage(c, "--cert, --key and --auth go with --listen");
    if (!o->listen && !o->file)
        x.until_ms = clock_ms() + c->timeout_ms;
    if (o->listen && !(x.http = http_new(c->loop, &ho, on_page, &x, &e)))
        return cli_fail(c, &e);
    x.ss = cli_sources(c, &like, cli_places(c), &e);
    if (x.ss && sources_left_out(x.ss) > 0)
        cli_say(c, "%d of %d sources: that is the most; run another metrics for the rest",
                sources_n(x.ss), sources_n(x.ss) + sources_left_out(x.ss));
    if (x.ss && x.http)
        cli_say(c, "listening on port %d", http_port(x.http));
    int code = x.ss ? run_exporter(&x) : cli_fail(c, &e);
    http_free(x.http);
    if (x.ss)
        sources_free(x.ss);
    return code;
}

const struct cli_verb verbs_metrics[] = {
    {
     .name = "metrics",
     .examples = {"metrics -d app --listen 9187",
                     "metrics -d app -d shop --plain --file /var/lib/node_exporter/queuetop.prom"},
     .words = "",
     .help = "Figures for Prometheus: to standard output, into a file or by HTTP",
     .options = options,
     .size = sizeof(struct metrics_options),
     .defaults = &defaults,
     .run = run_metrics,
     .many_sources = true,
     .more = "Every queue system that is found is a source, with a label of that name. The text "
                "is\nOpenMetrics 1.0, in which a counter's HELP and TYPE go without _total; "
                "promtool check\nmetrics reads the older format only: give it --plain.", },
    {0      },
};
