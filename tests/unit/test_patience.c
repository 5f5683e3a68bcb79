/*
 * If the step of a scheduler is cancelled, the scheduler asks again with more time, so a step that
 * is too long for the usual time still ends. A step that finds another scheduler at work does not
 * shorten that time again.
 */
#include "tests/harness.h"

#include <signal.h>
#include <stdio.h>

#include "model/worker/scheduler.h"
#include "tests/unit/fake_db.h"

#define STEP "active cut promoted stolen wait_ms look_ms waits late fold"

void
db_on_notify(struct db *db, db_notify_fn *fn, void *ctx)
{
    (void)db, (void)fn, (void)ctx;
}

void
db_own_session(struct db *db, bool is_own)
{
    (void)db, (void)is_own;
}

int
db_backend_pid(const struct db *db)
{
    (void)db;
    return 7;
}

int
db_tries(const struct db *db)
{
    (void)db;
    return 0;
}

struct db_param
db_array(struct array *a)
{
    (void)a;
    return (struct db_param){0};
}

struct server { /* each step takes needs_ms; patience holds the times asked for */
    struct loop *loop;
    struct db *db;
    int needs_ms, cancelled, done;
    int patience[16];
};

static void
answer(void *ctx)
{
    struct server *s = ctx;

    loop_at(s->loop, 0, answer, s);
    if (s->db->next == s->db->n)
        return;
    int patience = s->db->call[s->db->next].patience_ms;
    if (patience < s->needs_ms) {
        s->patience[s->cancelled++] = patience;
        assert_true(s->cancelled < 8);
        fake_fail(s->db, ERR_TIMEOUT, "57014", false);
        return;
    }
    s->patience[s->cancelled + s->done++] = patience;
    s->needs_ms = 0;
    const char *row = s->done == 1 ? "0|0|0|0|0|0|0|0|0" : "1|0|0|0|0|0|0|0|0";
    struct result *tables[] = {fake_table(STEP, row, NULL)};
    fake_answer(s->db, tables);
    if (s->done == 5)
        raise(SIGTERM);
}

static void
test_patience(void **state)
{
    struct loop *l = loop_new();
    struct db *db = db_new(l, NULL), *books = db_new(l, NULL);
    struct server server = {.loop = l, .db = db, .needs_ms = 20000};
    struct err e;
    struct scheduler *s = scheduler_new(l, db, books, "queues", "test", &e);
    static const int expected[] = {0, 6000, 12000, 24000, 24000, 12000, 6000, 0};

    (void)state;
    assert_non_null(s);
    loop_at(l, 0, answer, &server);
    assert_true(scheduler_run(s, &e));
    assert_int_equal(server.cancelled, 3);
    for (int i = 0; i < 8; i++)
        assert_int_equal(server.patience[i], expected[i]);
    db_free(db);
    scheduler_free(s);
    loop_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_patience)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
