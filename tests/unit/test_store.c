/*
 * The store against a scripted connection: what is asked when, what stays on the screen while the
 * server is slow, gone or wrong, and how the window of jobs moves.
 */
#include "tests/harness.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>

#include "model/base/clock.h"
#include "model/store/store.h"
#include "tests/unit/fake_db.h"

struct fixture {
    struct loop *loop;
    struct db *db;
    struct adapter *adapter;
    struct store *store;
};

#define SPENT "now_ms spent_us"
#define SERVER "server_version user database now_ms backend_pid in_recovery read_only is_superuser"
#define QUEUES "queue paused"
#define COUNTS "queue scheduled ready retry running failed oldest_ms pushed completed fails"
#define RATES "queue at_ms pushed completed fails"
#define JOBS "id queue kind state tries created_ms error cursor"

static struct result *
spent(int64_t us)
{
    char row[64];

    snprintf(row, sizeof row, "1763712000000|%lld", (long long)us);
    return fake_table(SPENT, row, NULL);
}

static int
set_up(void **state)
{
    static struct fixture f;
    struct err e;

    f = (struct fixture){.loop = loop_new(), .db = db_new(NULL, NULL)};
    f.adapter = adapter_load("native", &e);
    assert_non_null(f.adapter);
    f.store = store_new(f.loop, f.db, f.adapter, NULL, 100);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    db_free(f->db);
    store_free(f->store);
    adapter_free(f->adapter);
    loop_free(f->loop);
    return 0;
}

static void
detect(struct fixture *f, struct result *schemas)
{
    struct result *tables[] = {schemas,
                               fake_table(SERVER, "15.1|bob|app|1763712000000|7|f|f|f", NULL)};
    bool found = result_rows(schemas) > 0;

    fake_answer(f->db, tables);
    if (found)
        fake_owners(f->db, FAKE_OWNER);
}

static void
open_store(struct fixture *f)
{
    struct result *tables[] = {fake_table("version", "1", NULL),
                               fake_table("role can_act why", "operator|t|~", NULL), spent(10)};

    detect(f, fake_table("schema", "queues", NULL));
    fake_answer(f->db, tables);
    assert_int_equal(store_state(f->store), STORE_OPEN);
}

/* Turns the loop until a call is sent. Returns false if none is sent within ms. */
static bool
is_asked(struct fixture *f, int ms)
{
    struct err e;
    int64_t deadline = clock_ms() + ms;

    fake_marks(f->db);
    while (f->db->next == f->db->n) {
        int64_t left = deadline - clock_ms();
        if (left <= 0)
            return false;
        assert_true(loop_turn(f->loop, (int)left, &e));
        fake_marks(f->db);
    }
    return true;
}

static const struct fake_call *
asked(struct fixture *f)
{
    assert_true(is_asked(f, 60000));
    return &f->db->call[f->db->next];
}

static void
answer_queues(struct fixture *f, int64_t us)
{
    bool seeds = asked(f)->n == 4;
    struct result *tables[] = {
        fake_table(QUEUES, "b|f", "idle|t", "a|f", NULL),
        fake_table(COUNTS, "a|1|10|0|2|3|1763711990000|100|50|5", "new|0|1|0|0|0|~|1|0|0",
                   "b|0|5|0|0|0|1763711000000|10|5|0", NULL),
        seeds ? fake_table(RATES, "a|1763711990000|80|40|5", "a|1763711980000|60|30|5",
                           "b|1763711990000|0|0|0", NULL)
              : spent(us),
        seeds ? spent(us) : NULL};

    fake_answer(f->db, tables);
}

static void
test_queues(void **state)
{
    struct fixture *f = *state;
    int n;

    open_store(f);
    assert_string_equal(store_server(f->store)->user, "bob");
    assert_int_equal(store_role(f->store)->can_act, 1);
    assert_false(is_asked(f, 150)); /* no screen wants anything */
    store_want(f->store, TOPIC_QUEUES, true);
    answer_queues(f, 500);
    const struct queue_row *q = store_queues(f->store, &n);
    assert_int_equal(n, 4);
    assert_string_equal(q[0].queue, "a");
    assert_string_equal(q[2].queue, "idle");
    assert_int_equal(q[2].paused, 1);
    assert_int_equal(q[2].ready, 0);
    assert_string_equal(q[3].queue, "new");
    assert_true(q[0].done_per_s == 1.0);
    assert_true(isnan(q[3].done_per_s));
    assert_int_equal(store_totals(f->store)->ready, 16);
    assert_true(store_totals(f->store)->oldest_ms == 1763711000000);
    assert_int_equal(store_queue(f->store, "b")->ready, 5);
    assert_null(store_queue(f->store, "zzz"));
    assert_true(store_now_ms(f->store) >= 1763712000000);
    assert_true(is_asked(f, 60000)); /* again, without the seeds */
    assert_int_equal(asked(f)->n, 3);
    answer_queues(f, 500);
    store_want(f->store, TOPIC_QUEUES, false);
    assert_false(is_asked(f, 250));
}

/* A verb's only look: rates come from the points that are kept; the server's order is known. */
static void
test_look(void **state)
{
    const enum topic topics[] = {TOPIC_QUEUES};
    struct fixture *f = *state;
    struct err e;
    int n;

    open_store(f);
    struct store *look = store_new_look(f->loop, f->db, f->adapter, true);
    struct result *good[] = {fake_table(QUEUES, "b|t", "a|f", NULL),
                             fake_table(COUNTS, "c|0|1|0|0|0|~|90|0|0", "b|0|5|0|0|0|~|100|50|0",
                                        "a|0|1|0|0|0|~|9|9|9", "d|0|1|0|0|0|~|9|9|9", NULL),
                             fake_table(RATES, "c|1763711985000|100|0|0", "b|1763711985000|70|20|0",
                                        "a|1763711000000|0|0|0", "b|1763711975000|0|0|0",
                                        "b|1763711995000|99|49|0", NULL),
                             spent(10)};
    f->db->planned = good;
    assert_true(store_look(look, topics, 1, &e));
    const struct queue_row *q = store_queues(look, &n);
    assert_int_equal(n, 4);
    assert_string_equal(q[0].queue, "a");
    assert_int_equal(q[0].place, 2);
    assert_int_equal(q[2].place, 0);
    assert_int_equal(q[1].paused, 1);
    assert_true(isnan(q[0].done_per_s)); /* the only point is older than ten minutes */
    assert_true(q[1].pushed_per_s == 2); /* in the 15 seconds since the second newest point */
    assert_true(q[1].done_per_s == 2);
    assert_true(isnan(q[2].pushed_per_s)); /* counted anew */
    assert_true(isnan(q[3].pushed_per_s)); /* no point */
    assert_true(store_now_ms(look) == 1763712000000);
    store_free(look);

    look = store_new_look(f->loop, f->db, f->adapter, false);
    struct result *bad[] = {fake_table(QUEUES, NULL), fake_table("queue", "a", NULL), spent(10)};
    f->db->planned = bad;
    assert_false(store_look(look, topics, 1, &e));
    assert_non_null(strstr(e.text, "counts: "));
    store_free(look);
}

/* --- very many queues --- */

enum { MANY = 50000, KEPT_BYTES = 400 }; /* a queue: its row and its name */

static void
put_cells(struct result *r, int row, const char *line)
{
    int col = 0;

    for (const char *at = line; at; col++) {
        size_t len = strcspn(at, "|");
        result_put(r, row, col, *at == '~' ? NULL : at, (int)len);
        at = at[len] ? at + len + 1 : NULL;
    }
}

static struct result *
table_of(const char *columns)
{
    char *words = xstrdup(columns), *rest = words;
    const char *names[32];
    int n = 0;

    for (char *word; (word = strsep(&rest, " "));)
        names[n++] = word;
    struct result *r = result_new(names, n);
    free(words);
    return r;
}

/* Queues q000000 to q049999 without each tenth that begins at `hole`; every 500th has completed
 * that many jobs. */
static void
answer_many(struct fixture *f, int hole, int completed, const char *clock)
{
    bool seeds = asked(f)->n == 4;
    struct result *config = table_of("queue paused paused_by info"), *counts = table_of(COUNTS);
    char line[200];
    int n = 0;

    for (int i = 0; i < MANY; i++) {
        if (i % 10 == hole)
            continue;
        snprintf(line, sizeof line, "q%06d|f|~|weight 1, lease 00:01:00, tries 5", i);
        put_cells(config, n, line);
        snprintf(line, sizeof line, "q%06d|0|%d|0|0|0|~|%d|%d|0", i, i % 7, completed,
                 i % 500 ? 0 : completed);
        put_cells(counts, n++, line);
    }
    struct result *end = fake_table(SPENT, clock, NULL);
    struct result *tables[] = {config, counts, seeds ? table_of(RATES) : end, seeds ? end : NULL};
    fake_answer(f->db, tables);
}

static size_t
heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* The store keeps a row and a name for each queue, whatever was answered. Only queues whose numbers
 * change have a history. */
static void
test_many_queues(void **state)
{
    struct fixture *f = *state;
    size_t before;
    int n;

    open_store(f);
    before = heap();
    store_want(f->store, TOPIC_QUEUES, true);
    answer_many(f, 1, 10, "1763712000000|100");
    store_queues(f->store, &n);
    assert_int_equal(n, MANY - MANY / 10);
    assert_int_equal(history_count(store_history(f->store)), 1);
    assert_true(is_asked(f, 60000));
    uint64_t serial = store_queues_serial(f->store);
    answer_many(f, 3, 30, "1763712010000|100");
    assert_true(store_queues_serial(f->store) > serial);
    const struct queue_row *q = store_queues(f->store, &n);
    assert_int_equal(n, MANY - MANY / 10);
    for (int i = 1; i < n; i++)
        assert_true(strcmp(q[i - 1].queue, q[i].queue) < 0);
    assert_null(store_queue(f->store, "q000003"));
    assert_non_null(store_queue(f->store, "q000001"));
    assert_true(isnan(store_queue(f->store, "q000001")->pushed_per_s)); /* a new queue: no rate */
    assert_true(store_queue(f->store, "q000500")->done_per_s == 2);
    assert_true(store_queue(f->store, "q000502")->done_per_s == 0);
    assert_int_equal(store_queue(f->store, "q049999")->ready, 49999 % 7);
    assert_string_equal(store_queue(f->store, "q049999")->info,
                        "weight 1, lease 00:01:00, tries 5");
    assert_in_range(history_count(store_history(f->store)), 100, 2001);
    assert_in_range(store_queues_bytes(f->store), 1, (size_t)n * KEPT_BYTES);
    assert_true(heap() - before < (size_t)n * KEPT_BYTES + 9 * (1U << 20)); /* and 2001 histories */
}

static void
test_missing(void **state)
{
    struct fixture *f = *state;

    detect(f, fake_table("schema", NULL));
    assert_int_equal(store_state(f->store), STORE_MISSING);
    assert_string_equal(store_error(f->store)->text,
                        "no queue in database fake yet: queuetop install");
    store_refresh(f->store, TOPIC_QUEUES); /* the user need not wait for the next attempt */
    detect(f, fake_table("schema", "one", "two", NULL));
    assert_non_null(strstr(store_error(f->store)->text, "one, two"));
    store_want(f->store, TOPIC_QUEUES, true);
    store_refresh(f->store, TOPIC_QUEUES);
    detect(f, fake_table("schema", "mine", NULL));
    assert_string_equal(adapter_schema(f->adapter), "mine");
}

/* --- other queue systems --------------------------------------------------------------------- */

#define FOREIGN                                                                          \
    "-- adapter: x\n-- title: X\n-- format: 2\n-- schema: public\n-- tables: t\n"        \
    "-- tested-versions: 1\n-- name: detect\nselect 'd'\n-- name: version\nselect 'v'\n" \
    "-- name: queues\nselect 'q'\n-- name: counts\nselect 'c'\n"                         \
    "-- name: counts_final\n-- cost: all of it is read\nselect 'f'\n"                    \
    "-- name: jobs\nselect 'j'\n-- name: job\nselect 'k'\n"

static void
use_adapter(struct fixture *f, struct adapter *a)
{
    assert_non_null(a);
    tear_down((void **)&f);
    *f = (struct fixture){.loop = loop_new(), .db = db_new(NULL, NULL), .adapter = a};
    f->store = store_new(f->loop, f->db, a, NULL, 100);
}

static void
open_foreign(struct fixture *f, const char *version, const char *role)
{
    struct result *tables[] = {fake_table("version", version, NULL),
                               fake_table("role can_act why warning signals", role, NULL),
                               spent(10)};

    detect(f, fake_table("schema", "public", NULL));
    assert_non_null(strstr(asked(f)->sql[1], "row_security_active"));
    assert_string_equal(asked(f)->param[1][0], "{\"t\"}");
    fake_answer(f->db, tables);
    assert_int_equal(store_state(f->store), STORE_OPEN);
}

/* Kept finished jobs are asked for rarely and alone, and shown beside the live numbers. */
static void
test_finals(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    int n;

    use_adapter(f, adapter_parse("x", FOREIGN, &e));
    open_foreign(f, "1", "operator|t|~|~|f");
    assert_non_null(store_topic(f->store, TOPIC_NODES)->unavailable);
    assert_string_equal(store_topic(f->store, TOPIC_NODES)->unavailable, "X does not record this");
    assert_null(store_topic(f->store, TOPIC_FINAL)->unavailable);
    int64_t before = clock_ms();
    store_want(f->store, TOPIC_QUEUES, true);
    for (int i = 0; i < 2; i++) {
        bool final = !strcmp(asked(f)->sql[0], "select 'f'");
        assert_int_equal(asked(f)->n, final ? 2 : 3);
        if (final) {
            struct result *tables[] = {
                fake_table("queue completed cancelled approx", "a|70|2|t", "c|5|~|f", NULL),
                spent(90000)};
            fake_answer(f->db, tables);
        } else {
            struct result *tables[] = {
                fake_table(QUEUES, "a|f", "b|f", NULL),
                fake_table("queue scheduled ready retry running failed oldest_ms approx",
                           "a|0|3|0|0|0|~|t", "c|0|1|0|0|0|~|f", NULL),
                spent(100)};
            fake_answer(f->db, tables);
        }
    }
    const struct queue_row *q = store_queues(f->store, &n);
    assert_int_equal(n, 3);
    assert_int_equal(q[0].kept_completed, 70);
    assert_int_equal(q[0].kept_cancelled, 2);
    assert_int_equal(q[0].kept_approx, 1);
    assert_int_equal(q[0].approx, 1);
    assert_int_equal(q[1].kept_completed, 0);
    assert_int_equal(q[1].approx, 0);
    assert_int_equal(q[2].kept_completed, 5);
    assert_int_equal(store_totals(f->store)->kept_completed, 75);
    assert_int_equal(store_totals(f->store)->approx, 1);
    int64_t next = store_topic(f->store, TOPIC_FINAL)->next_ms;
    assert_true(next >= before + 60000 && next <= clock_ms() + 60000);
    assert_int_equal(asked(f)->n, 3); /* the live numbers continue */
    fake_fail(f->db, ERR_CONN, "", false);
    asked(f);
    fake_fail(f->db, ERR_CONN, "", false);
}

/* The user sees what the version and row security mean, and can't change anything. */
static void
test_untested(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};

    use_adapter(f, adapter_parse("x", FOREIGN, &e));
    open_foreign(f, "2", "operator|t|~|rows may be hidden|f");
    assert_int_equal(store_role(f->store)->can_act, 0);
    assert_non_null(strstr(store_role(f->store)->why, "X is version 2 here, tested is 1"));
    assert_string_equal(store_warning(f->store, 0), "rows may be hidden");
    assert_null(store_warning(f->store, 1));
}

/* Adapters of that name get one row, the others get none. */
static void
detect_one(struct fixture *f, const char *name)
{
    struct result *tables[FAKE_STMTS];
    int n = asked(f)->n - 1;

    assert_true(n > 2);
    for (int i = 0; i < n; i++) {
        struct err e;
        struct adapter *one = adapter_load(name, &e);
        bool is_it = !strcmp(asked(f)->sql[i], adapter_sql(one, SEC_DETECT));
        tables[i] = is_it ? fake_table("schema", adapter_default_schema(one), NULL)
                          : fake_table("schema", NULL);
        adapter_free(one);
    }
    tables[n] = fake_table(SERVER, "15.1|bob|app|1763712000000|7|f|f|f", NULL);
    fake_answer(f->db, tables);
    fake_owners(f->db, FAKE_OWNER);
}

/* After a reconnection the system may be another one: no old data stays on the screen. */
static void
test_becomes(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct adapter *all = adapter_open(NULL, &e);
    int n;

    use_adapter(f, all);
    asked(f);
    fake_fail_at(f->db, 2, ERR_SQL, "42P01"); /* one DETECT fails: the others are used */
    assert_non_null(store_warning(f->store, 0));
    detect_one(f, "native");
    struct result *native[] = {fake_table("version", "1", NULL),
                               fake_table("role can_act why", "operator|t|~", NULL), spent(10)};
    fake_answer(f->db, native);
    store_want(f->store, TOPIC_QUEUES, true);
    answer_queues(f, 100);
    store_queues(f->store, &n);
    assert_int_equal(n, 4);
    asked(f);
    fake_fail(f->db, ERR_CONN, "", false);
    detect_one(f, "minion");
    struct result *foreign[] = {
        fake_table("version", "25", NULL),
        fake_table("role can_act why warning signals", "operator|t|~|~|f", NULL), spent(10)};
    fake_answer(f->db, foreign);
    assert_string_equal(adapter_name(all), "minion");
    assert_int_equal(store_state(f->store), STORE_OPEN);
    store_queues(f->store, &n);
    assert_int_equal(n, 0);
    assert_non_null(
        strstr(store_topic(f->store, TOPIC_AUDIT)->unavailable, "does not record this"));
    assert_null(store_topic(f->store, TOPIC_QUEUES)->unavailable);
}

/* A recording says which system its answers are from. */
static void
test_replayed(void **state)
{
    struct err e = {0};
    struct loop *loop = loop_new();
    struct db *db = db_new(NULL, NULL);
    struct adapter *all = adapter_open(NULL, &e);
    struct store *s = store_new_injected(loop, db, all, NULL, NULL);
    struct result *t = fake_table("adapter title schema", "minion|Minion|jobs", NULL);

    (void)state;
    assert_string_equal(adapter_name(all), "native");
    store_inject(s, &(struct store_answer){.name = "adapter", .key = "", .tables = &t, .n = 1});
    assert_string_equal(adapter_name(all), "minion");
    assert_string_equal(adapter_schema(all), "jobs");
    assert_non_null(store_topic(s, TOPIC_AUDIT)->unavailable);
    assert_null(store_topic(s, TOPIC_NODES)->unavailable);
    t = fake_table("adapter title schema", "mine|My own|jobs", NULL);
    store_inject(s, &(struct store_answer){.name = "adapter", .key = "", .tables = &t, .n = 1});
    assert_string_equal(store_error(s)->text, "recorded with adapter mine, which is not here");
    db_free(db);
    store_free(s);
    adapter_free(all);
    loop_free(loop);
}

/* Old data stays, with the error beside it. Then the server is asked which system it is. */
static void
test_lost(void **state)
{
    struct fixture *f = *state;
    int n;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    answer_queues(f, 500);
    assert_false(store_is_stale(f->store, TOPIC_QUEUES));
    asked(f);
    fake_fail(f->db, ERR_CONN, "", false);
    store_queues(f->store, &n);
    assert_int_equal(n, 4);
    assert_true(store_is_stale(f->store, TOPIC_QUEUES));
    assert_int_equal(store_error(f->store)->kind, ERR_CONN);
    assert_int_equal(asked(f)->n, 2);
    open_store(f);
    assert_int_equal(store_error(f->store)->kind, ERR_NONE);
    answer_queues(f, 500);
    assert_false(store_is_stale(f->store, TOPIC_QUEUES));
}

static void
test_failed_refresh(void **state)
{
    struct fixture *f = *state;
    int n;

    open_store(f);
    store_want(f->store, TOPIC_NODES, true);
    asked(f);
    fake_fail(f->db, ERR_TIMEOUT, "57014", false);
    const struct topic_info *info = store_topic(f->store, TOPIC_NODES);
    assert_int_equal(info->err.kind, ERR_TIMEOUT);
    assert_false(info->has_data);
    struct result *nodes[] = {fake_table("node state heartbeat_ms running", "w|up|5|1", NULL),
                              spent(10)};
    asked(f);
    fake_answer(f->db, nodes);
    assert_int_equal(info->err.kind, ERR_NONE);
    assert_string_equal(store_node(f->store, "w")->state, "up");
    struct result *wrong[] = {fake_table("nonsense", "x", NULL), spent(10)};
    asked(f);
    fake_answer(f->db, wrong);
    assert_int_equal(info->err.kind, ERR_DATA);
    assert_non_null(store_nodes(f->store, &n));
    assert_int_equal(n, 1);
    assert_true(store_is_stale(f->store, TOPIC_NODES));
}

/* Answers a call that took took_ms. The topic must be due wait_ms later. */
static void
answer_and_wait(struct fixture *f, int64_t took_ms, int64_t wait_ms)
{
    int64_t before = clock_ms();

    answer_queues(f, took_ms * 1000);
    int64_t next = store_topic(f->store, TOPIC_QUEUES)->next_ms;
    assert_true(next >= before + wait_ms && next <= clock_ms() + wait_ms);
}

enum { FIRST_WAIT_MS = 2083 }; /* 25 ms and a quarter, of three quarters of 2 % */

/* A slow query is asked rarely: its pauses keep it to three quarters of the two percent budget. If
 * a user asks all the same, the bucket limits the query to the two percent. */
static void
test_budget(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    asked(f);
    answer_and_wait(f, 1, 100); /* the normal interval */
    assert_false(store_is_slowed(f->store));
    asked(f);
    answer_and_wait(f, 130, FIRST_WAIT_MS); /* the first run of these statements */
    for (int i = 0; i < 4; i++) {
        store_refresh(f->store, TOPIC_QUEUES);
        asked(f);
        answer_and_wait(f, 130, 10833); /* 130 ms and a quarter, of three quarters of 2 % */
        assert_true(store_is_slowed(f->store));
    }
    store_refresh(f->store, TOPIC_QUEUES); /* the user does not wait for the bucket */
    asked(f);
    answer_queues(f, 130 * 1000);
    assert_true(store_load(f->store) > 0.02);
    assert_false(is_asked(f, 1000)); /* 650 by the plan: the bucket says more than 20 s */
    assert_false(store_is_stale(f->store, TOPIC_QUEUES));
    store_refresh(f->store, TOPIC_QUEUES);
    asked(f);
    answer_queues(f, 100);
}

#define TIMES "queue wait_p50_ms wait_p99_ms run_p50_ms run_p99_ms"

/* Topics that are rare and costly are asked alone, so that live rows keep their pace. */
static void
test_rare_alone(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    store_want(f->store, TOPIC_TIMES, true);
    answer_queues(f, 500);
    int64_t before = clock_ms();
    for (int i = 0; i < 2; i++) { /* what the first run costs says little */
        struct result *times[] = {fake_table(TIMES, "a|1|2|3|4", NULL), spent(100 * 1000)};
        before = clock_ms();
        assert_int_equal(asked(f)->n, 2);
        fake_answer(f->db, times);
        if (i == 0) {
            assert_false(store_is_slowed(f->store));
            store_refresh(f->store, TOPIC_TIMES); /* two at once are more than the bucket has */
        }
    }
    assert_true(store_topic(f->store, TOPIC_TIMES)->has_data);
    assert_true(store_topic(f->store, TOPIC_TIMES)->next_ms > before + 5000);
    answer_and_wait(f, 1, 100);
}

/* A cost that can't be counts as a minute or as nothing. */
static void
test_impossible_costs(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    for (int i = 0; i < 20; i++) {
        asked(f);
        answer_queues(f, i % 2 ? INT64_MIN : INT64_MAX);
        assert_true(store_topic(f->store, TOPIC_QUEUES)->next_ms <= clock_ms() + 300000);
        assert_true(store_load(f->store) >= 0);
        store_refresh(f->store, TOPIC_QUEUES);
    }
    asked(f);
    answer_queues(f, 100);
}

/* The first answer takes long on any server, because plans and caches are cold: it counts little
 * until the second comes. If that takes as long, both count, and no pause is longer than half a
 * minute. */
static void
test_pause_ends(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    for (int i = 0; i < 2; i++) { /* the first answer brings rates, too: other statements */
        asked(f);
        answer_and_wait(f, 3000, FIRST_WAIT_MS);
        store_refresh(f->store, TOPIC_QUEUES);
    }
    asked(f);
    answer_and_wait(f, 3000, 30000);
    assert_true(store_is_slowed(f->store));
    assert_true(store_load(f->store) > 0.5);
    assert_false(is_asked(f, 20000));
}

static int
set_up_with_budget(void **state)
{
    assert_int_equal(setenv("QUEUETOP_BUDGET", "100", 1), 0);
    int failed = set_up(state);
    unsetenv("QUEUETOP_BUDGET");
    return failed;
}

/* A larger budget for a server with time to spare. */
static void
test_budget_is_told(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    for (int i = 0; i < 6; i++) {
        asked(f); /* by the plan alone */
        answer_and_wait(f, 130, i < 2 ? 125 : 650);
        assert_false(store_is_slowed(f->store));
    }
    asked(f);
    answer_queues(f, 100);
}

static void
test_freeze(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_freeze(f->store, true);
    store_want(f->store, TOPIC_QUEUES, true);
    answer_queues(f, 100); /* frozen, but a new screen gets its first data */
    assert_false(is_asked(f, 250));
    store_refresh(f->store, TOPIC_QUEUES);
    answer_queues(f, 100);
    store_freeze(f->store, false);
    assert_true(is_asked(f, 60000));
}

#define NODES "node state heartbeat_ms running"

static void
answer_both(struct fixture *f, int64_t us)
{
    struct result *tables[] = {fake_table(QUEUES, NULL), fake_table(COUNTS, NULL),
                               fake_table(NODES, "w|up|5|1", NULL), spent(us)};

    assert_int_equal(asked(f)->n, 4);
    fake_answer(f->db, tables);
}

/* Answers the topic of nodes: the only node is `node`, and the server's clock shows at_ms. */
static void
answer_nodes(struct fixture *f, const char *node, int64_t at_ms)
{
    char row[64], now[64];

    snprintf(row, sizeof row, "%s|up|5|1", node);
    snprintf(now, sizeof now, "%lld|10", (long long)at_ms);
    struct result *tables[] = {fake_table(NODES, row, NULL), fake_table(SPENT, now, NULL)};
    store_refresh(f->store, TOPIC_NODES);
    asked(f);
    fake_answer(f->db, tables);
}

/* A node that is gone has ended in order, if the server's last answer is a few seconds old. By the
 * server's clock: while this machine sleeps, its own clock may stand still. */
static void
test_who_left(void **state)
{
    struct fixture *f = *state;
    const int64_t then = 1763712000000;
    int n;

    open_store(f);
    store_want(f->store, TOPIC_NODES, true);
    answer_nodes(f, "a", then);
    store_left(f->store, &n);
    assert_int_equal(n, 0);
    answer_nodes(f, "b", then + 5000);
    const struct left_node *left = store_left(f->store, &n);
    assert_int_equal(n, 1);
    assert_string_equal(left[0].node, "a");
    answer_nodes(f, "c", then + 3600000); /* nobody knows how b has ended */
    store_left(f->store, &n);
    assert_int_equal(n, 1);
    answer_nodes(f, "d", then + 3605000);
    left = store_left(f->store, &n);
    assert_int_equal(n, 2);
    assert_string_equal(left[0].node, "c");
}

/* Topics that are due together are sent as one pipeline, unless one of them fails or is slow. */
static void
test_together(void **state)
{
    struct fixture *f = *state;
    const struct topic_info *nodes = store_topic(f->store, TOPIC_NODES);
    const struct topic_info *queues = store_topic(f->store, TOPIC_QUEUES);

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    store_want(f->store, TOPIC_NODES, true);
    struct result *seeds[] = {fake_table(QUEUES, NULL), fake_table(COUNTS, NULL),
                              fake_table(RATES, NULL), fake_table(NODES, "w|up|5|1", NULL),
                              spent(10)};
    asked(f);
    fake_answer(f->db, seeds);
    assert_true(queues->has_data && nodes->has_data);
    assert_string_equal(store_node(f->store, "w")->state, "up");
    answer_both(f, 100);
    asked(f);
    fake_fail_at(f->db, 2, ERR_SQL, "XX000"); /* the statement of the nodes */
    assert_int_equal(nodes->err.kind, ERR_SQL);
    assert_int_equal(queues->err.kind, ERR_NONE);
    assert_int_equal(asked(f)->n, 3); /* only the queues, again and at once */
    answer_queues(f, 100);
    store_refresh(f->store, TOPIC_NODES);
    struct result *alone[] = {fake_table(NODES, "w|up|5|1", NULL), spent(10)};
    while (asked(f)->n != 2)
        answer_queues(f, 100);
    fake_answer(f->db, alone);
    assert_int_equal(nodes->err.kind, ERR_NONE);
    store_refresh(f->store, TOPIC_NODES);
    store_refresh(f->store, TOPIC_QUEUES);
    while (asked(f)->n != 4)
        answer_queues(f, 100);
    answer_both(f, 250 * 1000); /* too slow for a common pipeline */
    store_refresh(f->store, TOPIC_NODES);
    store_refresh(f->store, TOPIC_QUEUES);
    assert_int_equal(asked(f)->n, 3);
    answer_queues(f, 100);
    assert_int_equal(asked(f)->n, 2);
}

/* On a busy machine most answers wait long at the server, and one in eight waits little. The work
 * is small: nothing is slowed, and the excess that the first answers were charged is given back. */
static void
test_waiting_is_no_work(void **state)
{
    static const int64_t took[] = {400, 900, 700, 1, 800, 600, 950, 500};
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    answer_queues(f, 1000); /* with what each queue did before */
    for (int i = 0; i < 24; i++) {
        store_refresh(f->store, TOPIC_QUEUES);
        answer_queues(f, took[i % 8] * 1000);
        if (i < 3)
            continue;
        assert_false(store_is_slowed(f->store));
        assert_true(store_load(f->store) < 0.01);
        int64_t wait = store_topic(f->store, TOPIC_QUEUES)->next_ms - clock_ms();
        assert_true(wait <= 100); /* the interval, not five times the answer's time */
    }
}

/* Eight runs show that the work has grown. */
static void
test_work_that_grows(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    answer_queues(f, 1000);
    for (int i = 0; i < 16; i++) {
        store_refresh(f->store, TOPIC_QUEUES);
        answer_queues(f, i < 8 ? 1000 : 400 * 1000);
        assert_false(i < 15 && store_is_slowed(f->store));
    }
    assert_true(store_is_slowed(f->store));
    assert_true(store_load(f->store) > 0.02);
}

/* A wait for a lock is not load: the budget hardly changes, the screen is live again soon. */
static void
test_locks_cost_little(void **state)
{
    struct fixture *f = *state;

    open_store(f);
    store_want(f->store, TOPIC_QUEUES, true);
    for (int i = 0; i < 3; i++) {
        asked(f);
        struct db_reply late = {
            .failed_at = 0, .took_us = 500 * 1000, .err = {.kind = ERR_TIMEOUT}};
        fake_reply(f->db, &late);
        store_refresh(f->store, TOPIC_QUEUES);
    }
    assert_false(store_is_slowed(f->store));
    assert_true(store_load(f->store) < 0.01);
    answer_queues(f, 100);
    assert_false(store_is_stale(f->store, TOPIC_QUEUES));
}

/* --- jobs ------------------------------------------------------------------------------------- */

static struct result *
job_page(int first, int n, const char *marker)
{
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    static char names[8][12] = {"id",    "queue",      "kind",  "state",
                                "tries", "created_ms", "error", "cursor"};
    PGresAttDesc cols[8] = {0};
    char text[32];

    for (int i = 0; i < 8; i++)
        cols[i].name = names[i];
    PQsetResultAttrs(res, 8, cols);
    for (int i = 0; i < n + (marker != NULL); i++)
        for (int c = 0; c < 8; c++) {
            snprintf(text, sizeof text, c == 0 ? "job%d" : c == 7 ? "after%d" : "1", first + i);
            if (i == n)
                snprintf(text, sizeof text, "%s", c == 7 ? marker : c == 4 || c == 5 ? "0" : "");
            PQsetvalue(res, i, c, text, (int)strlen(text));
        }
    return result_wrap((struct pg_result *)res);
}

static void
answer_jobs(struct fixture *f, int first, int n, const char *marker)
{
    struct result *tables[] = {job_page(first, n, marker), spent(10)};

    asked(f);
    fake_answer(f->db, tables);
}

enum { AT_N = 12, AT_LIMIT, AT_CURSOR };

static void
check_ask(struct fixture *f, const char *limit, const char *cursor)
{
    const struct fake_call *c = asked(f);

    assert_string_equal(c->param[0][AT_LIMIT], limit);
    if (cursor)
        assert_string_equal(c->param[0][AT_CURSOR], cursor);
    else
        assert_null(c->param[0][AT_CURSOR]);
}

static void
test_window(void **state)
{
    struct fixture *f = *state;
    int n;

    open_store(f);
    store_freeze(f->store, true); /* frozen: only what the test asks for */
    store_want(f->store, TOPIC_JOBS, true);
    check_ask(f, "200", NULL);
    answer_jobs(f, 0, 200, NULL);
    store_more_jobs(f->store, 1);
    store_more_jobs(f->store, 1); /* one at a time */
    check_ask(f, "400", NULL);
    answer_jobs(f, 0, 400, NULL);
    store_more_jobs(f->store, 1);
    answer_jobs(f, 0, 600, NULL);
    store_more_jobs(f->store, 1);
    check_ask(f, "600", "after199");
    answer_jobs(f, 200, 600, NULL);
    assert_string_equal(store_jobs(f->store, &n)[0].id, "job200");
    assert_int_equal(n, 600);
    assert_int_equal(store_jobs_place(f->store).before, 200);
    store_more_jobs(f->store, 1);
    check_ask(f, "600", "after399");
    answer_jobs(f, 400, 450, NULL);
    assert_true(store_jobs_place(f->store).at_end);
    store_more_jobs(f->store, 1);
    assert_false(is_asked(f, 20));
    store_more_jobs(f->store, -1);
    check_ask(f, "600", "after199");
    answer_jobs(f, 200, 600, NULL);
    store_more_jobs(f->store, -1);
    check_ask(f, "600", NULL);
    answer_jobs(f, 0, 600, NULL);
    assert_true(store_jobs_place(f->store).at_top);
    store_more_jobs(f->store, -1);
    assert_false(is_asked(f, 20));
}

static void
test_search(void **state)
{
    struct fixture *f = *state;
    struct filter filter;
    struct err e = {0};
    int n;

    open_store(f);
    store_freeze(f->store, true);
    store_want(f->store, TOPIC_JOBS, true);
    asked(f);
    assert_true(filter_parse("needle", &filter, NULL, &e));
    store_ask_jobs(f->store, &filter); /* the answer of the running query is dropped */
    filter_done(&filter);
    answer_jobs(f, 0, 200, NULL);
    store_jobs(f->store, &n);
    assert_int_equal(n, 0);
    assert_string_equal(asked(f)->param[0][5], "{\"needle\"}");
    assert_string_equal(asked(f)->param[0][AT_N], "10000");
    answer_jobs(f, 0, 3, "stop1");
    store_jobs(f->store, &n);
    assert_int_equal(n, 3);
    assert_true(store_jobs_place(f->store).searching);
    assert_false(store_jobs_place(f->store).at_end);
    store_more_jobs(f->store, 1);
    assert_string_equal(asked(f)->param[0][AT_N], "40000");
    answer_jobs(f, 0, 3, "stop2");
    store_more_jobs(f->store, 1);
    answer_jobs(f, 0, 3, "stop3");
    assert_true(store_jobs_place(f->store).waits);
    assert_int_equal(store_jobs_place(f->store).looked, 160000);
    store_more_jobs(f->store, 1); /* no effect: the search would never stop */
    store_look_on(f->store);
    check_ask(f, "200", "stop3");
    answer_jobs(f, 3, 1, NULL);
    assert_true(store_jobs_place(f->store).at_end);
    assert_int_equal(store_jobs_place(f->store).before, 3);
    store_top_jobs(f->store);
    check_ask(f, "200", NULL);
    answer_jobs(f, 0, 3, NULL);
}

static void
test_one_job(void **state)
{
    struct fixture *f = *state;
    int n;

    open_store(f);
    store_want(f->store, TOPIC_JOB, true);
    assert_false(is_asked(f, 150)); /* none was chosen */
    store_ask_job(f->store, "x");
    assert_string_equal(asked(f)->param[0][0], "{\"x\"}");
    struct result *tables[] = {
        fake_table(JOBS " payload payload_format", "x|q|k|failed|1|1|boom|~|{}|json", NULL),
        fake_table("number error", "1|boom", NULL), spent(10)};
    fake_answer(f->db, tables);
    assert_string_equal(store_job(f->store)->job.error, "boom");
    assert_string_equal(store_job(f->store)->unique_key, "");
    assert_int_equal(store_attempts(f->store, &n)->number, 1);
    store_ask_job(f->store, "y");
    assert_null(store_job(f->store));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_finals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_untested, set_up, tear_down),
        cmocka_unit_test(test_replayed),
        cmocka_unit_test_setup_teardown(test_becomes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_refresh, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_budget, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_impossible_costs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rare_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pause_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_budget_is_told, set_up_with_budget, tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_is_no_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_work_that_grows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_locks_cost_little, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_freeze, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_search, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_job, set_up, tear_down),
    };

    setenv("XDG_CONFIG_HOME", "/nonexistent", 1); /* no adapters of the user's own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
