/*
 * `queuetop record FILE`: the recorder without a screen, for a service that runs day and night. It
 * asks the server what a console asks, within the same budget, and waits for a server that is gone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/source/source.h"
#include "ui/cli/cli_trust.h"
#include "ui/cli/verbs.h"
#include "ui/term/fmt.h"

enum { LOOK_MS = 1000 };

struct record_options {
    int64_t interval_ms, for_ms;
};

static const struct record_options defaults = {.interval_ms = 1000};

#define O(f) offsetof(struct record_options, f)

/* clang-format off */
static const struct cli_option options[] = {
    {"interval", 0, "TIME", CLI_TIME, O(interval_ms), "time between snapshots (1s)", 100, 3600000},
    {"for", 0, "TIME", CLI_TIME, O(for_ms), "end after this time; else it runs until SIGTERM or Ctrl-C", 0, 0},
    {0},
};
/* clang-format on */

struct record_run {
    struct cli *c;
    struct source *source;
    int64_t until_ms; /* monotonic; 0 = until a signal */
    bool told;        /* the user knows why there is no connection */
    int signo;        /* the signal that ended it; 0 = none */
};

static void
on_signal(void *ctx, int signo)
{
    struct record_run *r = ctx;

    r->signo = signo;
    loop_stop(r->c->loop);
}

static void
say_trouble(struct record_run *r)
{
    const struct err *e = store_error(source_store(r->source));

    if (e->kind == ERR_NONE)
        r->told = false;
    else if (!r->told)
        cli_say(r->c, "%s", e->text);
    r->told = e->kind != ERR_NONE;
}

static void
check_recorder(void *ctx)
{
    struct record_run *r = ctx;
    bool ended = recorder_state(source_recorder(r->source)).err.kind != ERR_NONE;

    say_trouble(r);
    if (ended || (r->until_ms && clock_ms() >= r->until_ms))
        loop_stop(r->c->loop);
    else
        loop_at(r->c->loop, clock_ms() + LOOK_MS, check_recorder, r);
}

/* The exit code of a recording without a snapshot. If nothing but the user's signal has prevented
 * the first one, the exit code is that of a program that a signal ended. */
static int
code_of_none(const struct record_run *r)
{
    const struct store *s = source_store(r->source);
    enum store_state state = store_state(s);

    if (state == STORE_MISSING)
        return CLI_SERVER;
    if (state == STORE_STRANGE)
        return CLI_REFUSED;
    if (!r->signo || store_error(s)->kind != ERR_NONE)
        return CLI_NO_SERVER;
    cli_say(r->c, "ended by a signal before the first snapshot");
    return 128 + r->signo;
}

static int
tell_end(const struct cli *c, const char *file, const struct recorder_state *s, int none)
{
    printf("%s recorded; %s is %s\n", fmt_plural(s->snapshots, "snapshot").s, file,
           fmt_bytes(s->bytes).s);
    if (s->err.kind != ERR_NONE)
        return cli_fail(c, &s->err);
    return s->snapshots ? CLI_DONE : none;
}

static int
run_recorder(struct cli *c, const void *opts)
{
    const struct record_options *o = opts;
    struct record_run r = {.c = c, .until_ms = o->for_ms ? clock_ms() + o->for_ms : 0};
    struct err e = {.kind = ERR_NONE};
    struct source_options so = {.conninfo = c->conninfo,
                                .dbname = c->dbname,
                                .schema = c->wanted,
                                .adapter = c->adapter,
                                .trust_version = c->trust_version,
                                .trust = cli_trust(c),
                                .interval_ms = (int)o->interval_ms,
                                .read_only = true,
                                .unattended = true,
                                .record = c->words[0]};

    loop_on_signal(c->loop, SIGINT, on_signal, &r);
    loop_on_signal(c->loop, SIGTERM, on_signal, &r);
    loop_on_signal(c->loop, SIGHUP, on_signal, &r);
    r.source = source_new(c->loop, &so, &e);
    if (!r.source)
        return cli_fail(c, &e);
    if (recorder_state(source_recorder(r.source)).cut > 0)
        cli_say(c, "%s: its torn end was cut off, %" PRId64 " bytes", c->words[0],
                recorder_state(source_recorder(r.source)).cut);
    check_recorder(&r);
    bool ok = loop_run(c->loop, &e);
    struct recorder_state s = recorder_state(source_recorder(r.source));
    int none = s.snapshots || !ok ? CLI_DONE : code_of_none(&r);
    source_free(r.source);
    return ok ? tell_end(c, c->words[0], &s, none) : cli_fail(c, &e);
}

const struct cli_verb verbs_record[] = {
    {
     .name = "record",
     .examples = {"record -d app night.tape --for 8h", "record -d app night.tape --interval 5s"},
     .words = "FILE",
     .help =
            "Keep what the console would show in FILE, without a screen; --replay FILE shows it", .min_words = 1,
     .max_words = 1,
     .options = options,
     .size = sizeof(struct record_options),
     .defaults = &defaults,
     .run = run_recorder,
     .more = "A new FILE gets mode 0600; a recording that exists is continued. It holds names, "
                "counts\n"
                "and errors. It holds payloads only if a console makes it (queuetop --record), and "
                "only of\n"
                "the jobs that are opened there.", },
    {0 },
};
