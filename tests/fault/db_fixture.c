/*
 * The fixture of the connection's tests: see db_fixture.h.
 */
#include "tests/fault/db_fixture.h"

#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "tests/server.h"

enum { BEAT_MS = 10, LATE_MS = 200, DEADLINE_MS = 60000 };

/* Returns how long this process has waited for a processor, in all: on a busy machine such waits
 * delay a heartbeat, and are no fault of the loop. 0 if the system does not report the time. */
static int64_t
starved_ms(void)
{
    char text[100] = "", *ran = text;
    FILE *file = fopen("/proc/self/schedstat", "re");

    if (!file || !fgets(text, sizeof text, file))
        text[0] = 0;
    if (file)
        fclose(file);
    (void)strtoll(text, &ran, 10);
    return strtoll(ran, NULL, 10) / 1000000;
}

static void
beat(void *ctx)
{
    struct fixture *f = ctx;
    int64_t now = clock_ms(), starved = starved_ms();
    int64_t late = now - f->beat_ms - BEAT_MS - (starved - f->starved_ms);

    if (f->beat_ms && late > f->worst_ms)
        f->worst_ms = late;
    f->beat_ms = now;
    f->starved_ms = starved;
    loop_at(f->loop, now + BEAT_MS, beat, f);
}

int
db_setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    f->loop = loop_new();
    beat(f);
    *state = f;
    return 0;
}

int
db_teardown(void **state)
{
    struct fixture *f = *state;

    loop_free(f->loop);
    free(f);
    return 0;
}

int
db_teardown_prompt(void **state)
{
    const struct fixture *f = *state;
    bool is_late = f->worst_ms > LATE_MS;

    if (is_late)
        print_error("the loop stood still for %d ms\n", (int)f->worst_ms);
    db_teardown(state);
    return is_late;
}

void
hear(void *ctx, struct db_reply *reply)
{
    struct heard *h = ctx;

    h->done = true;
    h->count++;
    h->err = reply->err;
    h->failed_at = reply->failed_at;
    h->in_doubt = reply->in_doubt;
    const struct result *last = reply->n > 0 ? reply->results[reply->n - 1] : NULL;
    if (last && result_rows(last) > 0 && result_cols(last) > 0) {
        snprintf(h->text, sizeof h->text, "%s", result_text(last, 0, 0));
        h->len = result_len(last, 0, 0);
    }
}

void
ask(struct db *db, const char *sql, int wait_ms, struct heard *h)
{
    const struct db_stmt s = {.sql = sql};

    *h = (struct heard){.failed_at = -1};
    db_ask(db, &(struct db_call){.stmts = &s, .n = 1}, wait_ms, hear, h);
}

void
until(struct fixture *f, const bool *done)
{
    struct err e = {0};

    if (!loop_until(f->loop, done, clock_ms() + DEADLINE_MS, &e))
        fail_msg("%s", e.text);
}

void
get(struct fixture *f, struct db *db, const char *sql, struct heard *h)
{
    ask(db, sql, -1, h);
    until(f, &h->done);
    assert_int_equal(h->count, 1);
}

struct db *
open_db(struct fixture *f, const char *conninfo, struct db_options o)
{
    o.conninfo = conninfo ? conninfo : pg_dsn("postgres");
    o.app_name = "test_db";
    return db_new(f->loop, &o);
}

void
get_once(struct fixture *f, const char *conninfo, const char *sql, struct heard *h)
{
    struct db *db = open_db(f, conninfo, (struct db_options){.once = true});

    get(f, db, sql, h);
    db_free(db);
}
