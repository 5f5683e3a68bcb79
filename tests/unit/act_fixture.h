/*
 * An adapter on a scripted connection, and the words that the tests of actions share: the preview
 * is answered, a batch is answered, what was asked is looked at.
 */
#ifndef TESTS_UNIT_ACT_FIXTURE_H
#define TESTS_UNIT_ACT_FIXTURE_H

#include "tests/harness.h"

#include "model/action/action.h"
#include "model/base/clock.h"
#include "tests/unit/fake_db.h"

struct fixture {
    struct loop *loop;
    struct db *db;
    struct adapter *adapter;
    struct action *action;
};

static inline void
fixture_new(struct fixture *f, struct adapter *adapter, const char *schema)
{
    struct err e;

    *f = (struct fixture){.loop = loop_new(), .db = db_new(NULL, NULL), .adapter = adapter};
    assert_non_null(adapter);
    assert_true(adapter_use(adapter, schema, &e));
}

static inline int
tear_down(void **state)
{
    struct fixture *f = *state;

    action_free(f->action);
    db_free(f->db);
    adapter_free(f->adapter);
    loop_free(f->loop);
    return 0;
}

static inline void
begin(struct fixture *f, const struct intent *in)
{
    f->action = action_new(f->loop, f->db, f->adapter, in);
}

/* The server's clock, then the effects. */
static inline void
preview(struct fixture *f, struct result *effects)
{
    struct result *clock[] = {fake_table("now_ms spent_us", "1763712000123|5", NULL)};
    struct result *tables[] = {effects};

    fake_answer(f->db, clock);
    fake_answer(f->db, tables);
}

static inline void
batch(struct fixture *f, struct result *rows)
{
    struct result *tables[] = {rows};

    fake_answer(f->db, tables);
}

/* Turns the loop until something has been asked. */
static inline void
wait_asked(struct fixture *f)
{
    struct err e;
    int64_t deadline = clock_ms() + 60000;

    while (f->db->next == f->db->n && clock_ms() < deadline)
        assert_true(loop_turn(f->loop, 50, &e));
    assert_true(f->db->next < f->db->n);
}

static inline const struct fake_call *
asked(const struct fixture *f)
{
    assert_true(f->db->next < f->db->n);
    return &f->db->call[f->db->next];
}

#define ROWS "id state why cursor n"
#define EFFECTS "state n why"

#endif
