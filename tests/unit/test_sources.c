/*
 * Several sources against scripted connections: their names, the systems found beside each other,
 * how often each is asked, and the line that shows a source.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/source/sources.h"
#include "tests/unit/fake_db.h"

#define SERVER "server_version user database now_ms backend_pid in_recovery read_only is_superuser"
#define COUNTS "queue scheduled ready retry running failed oldest_ms approx"

struct fixture {
    struct loop *loop;
    struct sources *ss;
    struct trust *trust;
    const char *owner; /* the owner of the systems found, a row of FAKE_OWNERS; NULL = the login */
};

static struct fixture *
connect_to(void **state, const char *const *conninfos, int n)
{
    static struct fixture f;
    struct source_options o[SOURCES_MAX + 5] = {0};
    struct err e = {0};

    f = (struct fixture){.trust = trust_new()};
    for (int i = 0; i < n; i++)
        o[i] =
            (struct source_options){.conninfo = conninfos[i], .interval_ms = 100, .trust = f.trust};
    f.loop = loop_new();
    f.ss = sources_new(f.loop, o, n, &e);
    if (!f.ss)
        fail_msg("%s", e.text);
    *state = &f;
    return &f;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    sources_free(f->ss);
    trust_free(f->trust);
    loop_free(f->loop);
    return 0;
}

static struct db *
db_at(struct fixture *f, int i)
{
    struct source *s = sources_peek(f->ss, i);

    assert_non_null(s);
    return source_watcher(s);
}

/* Turns the loop until the source has asked something. */
static const struct fake_call *
asked(struct fixture *f, int i)
{
    struct db *db = db_at(f, i);
    struct err e;
    int64_t deadline = clock_ms() + 60000;

    fake_marks(db);
    while (db->next == db->n) {
        int64_t left = deadline - clock_ms();
        assert_true(left > 0 && loop_turn(f->loop, (int)left, &e));
        fake_marks(db);
    }
    return &db->call[db->next];
}

static bool
is_called(const char *name, struct adapter *a, int i)
{
    adapter_become(a, i);
    return !strcmp(adapter_name(a), name);
}

/* Answers the DETECT statements with these systems: "river.public" and so on, NULL at the end. */
static void
answer_detects(struct fixture *f, int i, const char *const *systems)
{
    struct result *tables[ADAPTERS_MAX + 1];
    struct err e;
    struct adapter *a = adapter_open(NULL, &e);
    int n = adapter_candidates(a);

    assert_int_equal(asked(f, i)->n, n + 1);
    for (int k = 0; k < n; k++) {
        char schemas[2][32] = {"", ""};
        int found = 0;
        for (const char *const *s = systems; *s; s++) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(*s, "."), *s);
            if (is_called(name, a, k) && found < 2)
                snprintf(schemas[found++], sizeof schemas[0], "%s", strchr(*s, '.') + 1);
        }
        tables[k] = fake_table("schema", found > 0 ? schemas[0] : NULL,
                               found > 1 ? schemas[1] : NULL, NULL);
    }
    tables[n] = fake_table(SERVER, "15.1|bob|app|1763712000000|7|f|f|f", NULL);
    fake_answer(db_at(f, i), tables);
    if (*systems)
        fake_owners(db_at(f, i), f->owner ? f->owner : FAKE_OWNER);
    adapter_free(a);
}

static void
answer_role(struct fixture *f, int i, const char *version, const char *role)
{
    struct result *tables[] = {fake_table("version", version, NULL),
                               fake_table("role can_act why", role, NULL),
                               fake_table("now_ms spent_us", "1763712000000|10", NULL)};

    assert_int_equal(asked(f, i)->n, 3);
    db_at(f, i)->state = DB_READY;
    fake_answer(db_at(f, i), tables);
}

static void
open_one(struct fixture *f, int i, const char *const *systems)
{
    answer_detects(f, i, systems);
    answer_role(f, i, "7", "operator|t|~");
}

static struct source_line
line(struct fixture *f, int i)
{
    struct source_line l;

    sources_line(f->ss, i, &l);
    return l;
}

/* --- names ----------------------------------------------------------------------------------- */

static void
test_names_of_places(void **state)
{
    static const char *const places[] = {"db1/shop", "db2/shop", "db1/books", "db3/same",
                                         "db3/same", "/tmp/x",   "db9/"};
    struct fixture *f = connect_to(state, places, 7);

    assert_int_equal(sources_n(f->ss), 7);
    assert_string_equal(sources_name(f->ss, 0), "db1/shop");
    assert_string_equal(sources_name(f->ss, 1), "db2/shop");
    assert_string_equal(sources_name(f->ss, 2), "books"); /* the only one of that name: no host */
    assert_string_equal(sources_name(f->ss, 3), "db3/same#4");
    assert_string_equal(sources_name(f->ss, 4), "db3/same#5");
    assert_string_equal(sources_name(f->ss, 6), "source7"); /* nothing is known of it */
    assert_int_equal(sources_find(f->ss, "db2/shop"), 1);
    assert_int_equal(sources_find(f->ss, "bo"), 2);
    assert_int_equal(sources_find(f->ss, "db"), -2);
    assert_int_equal(sources_find(f->ss, "nothing"), -1);
    assert_string_equal(line(f, 1).host, "db2");
    assert_string_equal(line(f, 1).database, "shop");
}

/* Each further system of a database is added once, with a name that differs from the others. */
static void
test_found_beside(void **state)
{
    static const char *const one[] = {"db1/shop"};
    static const char *const systems[] = {"native.queues", "river.public", "river.jobs2", NULL};
    struct fixture *f = connect_to(state, one, 1);

    assert_string_equal(sources_name(f->ss, 0), "shop");
    assert_false(sources_update(f->ss));
    open_one(f, 0, systems);
    assert_true(sources_update(f->ss));
    assert_false(sources_update(f->ss)); /* nothing new */
    assert_int_equal(sources_n(f->ss), 3);
    assert_string_equal(sources_name(f->ss, 0), "shop:native");
    assert_string_equal(sources_name(f->ss, 1), "shop:river.public");
    assert_string_equal(sources_name(f->ss, 2), "shop:river.jobs2");
    assert_int_equal(sources_find(f->ss, "shop:river"), -2);
    assert_int_equal(sources_find(f->ss, "shop:river.j"), 2);
    assert_null(sources_peek(f->ss, 1)); /* found, but not connected */
    assert_int_equal(line(f, 1).state, SOURCE_UNSEEN);
    assert_string_equal(line(f, 1).adapter, "river");
    assert_string_equal(line(f, 2).schema, "jobs2");
    /* the first look connects, to its own schema only */
    struct err e;
    assert_non_null(sources_at(f->ss, 2, &e));
    assert_ptr_equal(sources_at(f->ss, 2, &e), sources_peek(f->ss, 2));
    assert_string_equal(db_at(f, 2)->host, "db1");
    store_want(source_store(sources_peek(f->ss, 2)), TOPIC_QUEUES, true);
    struct result *tables[] = {fake_table("schema", "public", "jobs2", NULL),
                               fake_table(SERVER, "15.1|bob|app|1763712000000|7|f|f|f", NULL)};
    assert_int_equal(asked(f, 2)->n, 2); /* one candidate: it is known which */
    fake_answer(db_at(f, 2), tables);
    fake_owners(db_at(f, 2), FAKE_OWNER);
    answer_role(f, 2, "7", "operator|t|~");
    sources_update(f->ss);
    assert_int_equal(sources_n(f->ss), 3);
    assert_string_equal(adapter_schema(source_adapter(sources_peek(f->ss, 2))), "jobs2");
    assert_string_equal(sources_name(f->ss, 2), "shop:river.jobs2");
}

static void
test_too_many(void **state)
{
    static const char *const systems[] = {"native.queues", "river.public", NULL};
    const char *places[SOURCES_MAX + 3];
    char names[SOURCES_MAX + 3][16];

    for (int i = 0; i < SOURCES_MAX + 3; i++) {
        snprintf(names[i], sizeof names[i], "h/db%d", i);
        places[i] = names[i];
    }
    struct fixture *f = connect_to(state, places, SOURCES_MAX + 3);
    assert_int_equal(sources_n(f->ss), SOURCES_MAX);
    assert_int_equal(sources_left_out(f->ss), 3);
    store_want(source_store(sources_peek(f->ss, 0)), TOPIC_QUEUES, true);
    open_one(f, 0, systems);
    sources_update(f->ss);
    assert_int_equal(sources_n(f->ss), SOURCES_MAX);
    assert_int_equal(sources_left_out(f->ss), 4); /* one more: a system found in a database */
}

/* --- who is asked ---------------------------------------------------------------------------- */

static int
interval(struct fixture *f, int i)
{
    return store_interval(source_store(sources_peek(f->ss, i)));
}

/* Only the source on the screen is asked, or with `all` every source. Sources of one database share
 * the rate of one source. */
static void
test_turns(void **state)
{
    static const char *const places[] = {"db1/shop", "db2/books"};
    static const char *const systems[] = {"native.queues", "river.public", NULL};
    struct fixture *f = connect_to(state, places, 2);

    sources_show(f->ss, 0, false);
    open_one(f, 0, systems);
    assert_true(sources_update(f->ss));
    assert_int_equal(sources_n(f->ss), 3);
    assert_int_equal(interval(f, 0), 100);
    assert_null(sources_peek(f->ss, 2));
    sources_show(f->ss, 0, true);
    assert_non_null(sources_peek(f->ss, 2));
    assert_int_equal(interval(f, 0), 200); /* two sources of this database */
    assert_int_equal(interval(f, 2), 200);
    assert_int_equal(interval(f, 1), 100); /* one source of that database */
    sources_set_interval(f->ss, 300);
    assert_int_equal(sources_interval(f->ss), 300);
    assert_int_equal(interval(f, 2), 600);
    sources_show(f->ss, 1, false);
    assert_int_equal(interval(f, 0), 300);
    sources_freeze(f->ss, true);
    assert_true(store_is_frozen(source_store(sources_peek(f->ss, 1))));
    sources_freeze(f->ss, false);
    assert_false(store_is_frozen(source_store(sources_peek(f->ss, 1))));
}

/* Sources of one server take turns, all but the one on the screen; those of another server have
 * turns of their own. */
static void
test_turns_of_a_server(void **state)
{
    static const char *const places[] = {"db1/shop", "db1/mail", "db2/shop", "db1/books"};
    struct fixture *f = connect_to(state, places, 4);

    assert_null(db_at(f, 0)->turns);
    assert_int_equal(db_at(f, 1)->turns->most, 4);
    assert_ptr_equal(db_at(f, 1)->turns, db_at(f, 3)->turns);
    assert_ptr_not_equal(db_at(f, 1)->turns, db_at(f, 2)->turns);
    sources_show(f->ss, 3, true);
    assert_null(db_at(f, 3)->turns);
    assert_ptr_equal(db_at(f, 0)->turns, db_at(f, 1)->turns);
}

/* A source that is first opened while all sources are frozen is frozen too. A password belongs to
 * all sources of the same connection string. */
static void
test_belongs_together(void **state)
{
    static const char *const places[] = {"db1/shop", "db2/books"};
    static const char *const systems[] = {"native.queues", "river.public", NULL};
    struct fixture *f = connect_to(state, places, 2);
    struct err e;

    sources_show(f->ss, 0, false);
    open_one(f, 0, systems);
    sources_update(f->ss);
    sources_freeze(f->ss, true);
    assert_non_null(sources_at(f->ss, 2, &e));
    assert_true(store_is_frozen(source_store(sources_peek(f->ss, 2))));
    sources_password(f->ss, 2, "sesame");
    assert_string_equal(db_at(f, 0)->password, "sesame");
    assert_string_equal(db_at(f, 2)->password, "sesame");
    assert_string_equal(db_at(f, 1)->password, "");
    assert_int_equal(db_at(f, 0)->retries, 1);
    assert_int_equal(db_at(f, 1)->retries, 0);
}

/* --- one of them in a line ------------------------------------------------------------------- */

/* A stranger's system is listed with its owner, and not opened until the user trusts the owner. */
static void
test_strangers(void **state)
{
    static const char mallory[] = "666|mallory|f|f|view v|2200|666|~|10|a superuser|f|~";
    static const char *const one[] = {"db1/shop"};
    static const char *const systems[] = {"river.public", NULL};
    struct fixture *f = connect_to(state, one, 1);
    struct source *s = sources_peek(f->ss, 0);

    f->owner = mallory;
    answer_detects(f, 0, systems);
    sources_update(f->ss);
    assert_int_equal(store_state(source_store(s)), STORE_STRANGE);
    assert_int_equal(db_at(f, 0)->next, db_at(f, 0)->n); /* no further statement is asked */
    assert_int_equal(sources_n(f->ss), 1);
    assert_int_equal(line(f, 0).state, SOURCE_STRANGE);
    assert_string_equal(line(f, 0).adapter, "river");
    assert_string_equal(line(f, 0).schema, "public");
    assert_non_null(
        strstr(line(f, 0).why, "river in schema public is not opened: owned by mallory"));
    assert_string_equal(store_strangers(source_store(s))->names, "mallory");
    assert_non_null(source_why_not(s, ACT_REQUEUE));
    sources_trust(f->ss, 0, store_strangers(source_store(s)));
    open_one(f, 0, systems);
    assert_int_equal(line(f, 0).state, SOURCE_OPEN);
}

static void
test_states(void **state)
{
    static const char *const places[] = {"db1/a", "db1/b", "db1/c", "db1/d"};
    static const char *const systems[] = {"native.queues", NULL};
    static const char *const none[] = {NULL};
    struct fixture *f = connect_to(state, places, 4);

    sources_show(f->ss, 0, true);
    assert_int_equal(line(f, 0).state, SOURCE_CONNECTING);
    assert_string_equal(line(f, 0).adapter, ""); /* unknown before the first answer */
    open_one(f, 0, systems);
    assert_int_equal(line(f, 0).state, SOURCE_OPEN);
    assert_string_equal(line(f, 0).why, "");
    assert_string_equal(line(f, 0).version, "7");
    answer_detects(f, 1, systems);
    answer_role(f, 1, "7", "viewer|f|bob may only look");
    assert_int_equal(line(f, 1).state, SOURCE_LOOK_ONLY);
    assert_string_equal(line(f, 1).why, "bob may only look");
    answer_detects(f, 2, none);
    assert_int_equal(line(f, 2).state, SOURCE_CONNECTING);
    asked(f, 2); /* which tables look like a queue */
    fake_answer(db_at(f, 2), (struct result *[]){fake_table("names", "~", NULL)});
    assert_int_equal(line(f, 2).state, SOURCE_MISSING);
    assert_non_null(strstr(line(f, 2).why, "no queue in database c"));
    asked(f, 3);
    fake_fail(db_at(f, 3), ERR_CONN, "", false);
    db_at(f, 3)->error = (struct err){.kind = ERR_CONN, .text = "no route"};
    assert_int_equal(line(f, 3).state, SOURCE_LOST);
    assert_string_equal(line(f, 3).why, "no route");
    for (int s = SOURCE_UNSEEN; s <= SOURCE_OPEN; s++)
        assert_true(*source_state_word((enum source_state)s));
}

/* The numbers appear with the first answer about queues. If the connection breaks, the numbers stay
 * and are marked as old. */
static void
test_numbers(void **state)
{
    static const char *const places[] = {"db1/a"};
    static const char *const systems[] = {"native.queues", NULL};
    struct fixture *f = connect_to(state, places, 1);

    sources_show(f->ss, 0, false);
    store_want(source_store(sources_peek(f->ss, 0)), TOPIC_QUEUES, true);
    open_one(f, 0, systems);
    assert_true(line(f, 0).age_ms < 0 && line(f, 0).ready == FIELD_NULL);
    uint64_t before = sources_generation(f->ss);
    struct result *tables[] = {fake_table("queue paused", "q|f", NULL),
                               fake_table(COUNTS, "q|0|12|0|0|3|~|f", "r|0|1|0|0|1|~|t", NULL),
                               fake_table("queue at_ms pushed completed fails", NULL),
                               fake_table("now_ms spent_us", "1763712000000|10", NULL)};
    assert_int_equal(asked(f, 0)->n, 4);
    fake_answer(db_at(f, 0), tables);
    assert_true(sources_generation(f->ss) > before);
    struct source_line l = line(f, 0);
    assert_int_equal(l.ready, 13);
    assert_int_equal(l.failed, 4);
    assert_true(l.approx && !l.stale && l.age_ms >= 0); /* one of them is an estimate */
    db_at(f, 0)->state = DB_BACKOFF;
    db_at(f, 0)->error = (struct err){.kind = ERR_CONN, .text = "gone"};
    l = line(f, 0);
    assert_int_equal(l.state, SOURCE_LOST);
    assert_string_equal(l.why, "gone");
    assert_int_equal(l.ready, 13);
    assert_true(l.stale);
}

int
main(void)
{
#define T(test) cmocka_unit_test_teardown(test, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_names_of_places), T(test_found_beside), T(test_strangers),
        T(test_too_many),        T(test_turns),        T(test_belongs_together),
        T(test_states),          T(test_numbers),      T(test_turns_of_a_server),
    };
#undef T

    setenv("XDG_CONFIG_HOME", "/nowhere", 1); /* no adapters of the user's own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
