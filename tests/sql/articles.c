#include "tests/sql/articles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/sql/ask.h"

/* %1$s is the argument of the call: a number, a node or an id. %2$s is a token. */
struct article {
    const char *adapter, *empty, *push, *schedule, *claim, *done, *fail, *expire;
};

#define PKGSITE_DONE "delete from queue_tasks where id = %1$s and started_at = '%2$s'"
#define PKGSITE_PUSH                                                                               \
    "insert into queue_tasks (task_name, module_path, version, created_at) select 'm' || i || "    \
    "'@v1', 'm' || i, 'v1', now() - (%1$s - i + 1) * interval '1 s' from generate_series(1, %1$s)" \
    " i"
#define PKGSITE_CLAIM(more, free, order)                                                           \
    "update queue_tasks set started_at = now()" more " where id = (select id from queue_tasks "    \
    "where started_at is null or " free " order by " order ", id limit 1 for update skip locked) " \
    "returning id || '|' || started_at /* %1$s */"
#define STALLED "started_at + interval '5 min' < now()"
#define STALL "started_at = started_at - interval '301 s'"
#define EXPIRE_LEASE "leased_until = now() - interval '1 s'"
#define WORK_CLAIM                                                                                 \
    "update queues.work_queue w set lock_key = '%1$s', started = now(), version = w.version + 1, " \
    "lock_timeout = now() + interval '2 min' from (select id from queues.work_queue where "        \
    "lock_key is null or lock_timeout < now() order by created, batch_order limit 1 for update "   \
    "skip locked) n where n.id = w.id returning w.id || '|' || w.version"
#define WORK_SCHEDULE(tenant)                                                                      \
    "with due as (select " tenant "id, row_number() over (order by created, id) as nr from "       \
    "(select * from queues.queue where state in ('PENDING', 'RETRY') and (run_after is null or "   \
    "run_after <= now()) order by created, id limit 100 for update skip locked) x), put as "       \
    "(insert into queues.work_queue (" tenant "id, batch_order) select " tenant "id, nr from due " \
    "on conflict do nothing) update queues.queue q set state = 'RUNNING', version = q.version + "  \
    "1 from due where due.id = q.id"
#define WORK_EXPIRE                                                             \
    "update queues.work_queue set lock_timeout = now() - interval '1 s' where " \
    "lock_key is not null"
#define HISTORY(state, error)                                                                      \
    "with j as (delete from queues.queue where id = '%1$s' returning *) insert into "              \
    "queues.queue_history (tenant_id, id, key, type, schedule_id, queue, created, scheduled, "     \
    "started, state, tries, payload, payload_type, target, error) select tenant_id, id, key, "     \
    "type, schedule_id, queue, now(), created, now(), '" state "', tries, payload, payload_type, " \
    "target, " error " from j"

#define PKGSITE(more, drop, claim, expire)                                                        \
    {                                                                                             \
        "queue_tasks_table" more,                                                                 \
            "truncate queue_tasks restart identity; alter table queue_tasks " drop, PKGSITE_PUSH, \
            NULL, claim, PKGSITE_DONE, PKGSITE_DONE,                                              \
            "update queue_tasks set " expire " where started_at is not null"                      \
    }
#define DROP_HISTORY "drop completed_at, drop success, drop failure"
#define LEASE ", leased_until = now() + interval '5 min'"

/* The article's table alone, and with the columns that it offers, one by one and all together. */
static const struct article pkgsite = PKGSITE("", DROP_HISTORY ", drop leased_until, drop priority",
                                              PKGSITE_CLAIM("", STALLED, "created_at"), STALL);
static const struct article pkgsite_leased =
    PKGSITE("+leases", DROP_HISTORY ", drop priority",
            PKGSITE_CLAIM(LEASE, "leased_until < now()", "created_at"), EXPIRE_LEASE);
static const struct article pkgsite_priority =
    PKGSITE("+priorities", DROP_HISTORY ", drop leased_until",
            PKGSITE_CLAIM("", STALLED, "priority, created_at"), STALL);
static const struct article pkgsite_completed = {
    "queue_tasks_table+completed",
    "truncate queue_tasks restart identity; alter table queue_tasks drop success, drop failure, "
    "drop leased_until, drop priority",
    PKGSITE_PUSH,
    NULL,
    PKGSITE_CLAIM("", "completed_at is null and " STALLED, "created_at"),
    "update queue_tasks set completed_at = now() where id = %1$s",
    NULL,
    "update queue_tasks set " STALL};
static const struct article pkgsite_all = {
    "queue_tasks_table+all",
    "truncate queue_tasks restart identity",
    PKGSITE_PUSH,
    NULL,
    PKGSITE_CLAIM(LEASE, "completed_at is null and leased_until < now()", "priority, created_at"),
    "update queue_tasks set completed_at = now(), success = true where id = %1$s",
    "update queue_tasks set completed_at = now(), success = false, failure = 'it went wrong after "
    "17 s' where id = %1$s",
    "update queue_tasks set " EXPIRE_LEASE " where started_at is not null"};
static const struct article postqueue = {
    "jobs_table",
    "truncate jobs",
    "insert into jobs (id, created, name, visibility_at, status, expires_at, data, queue_name) "
    "select 'j' || i, now() - (%1$s - i + 1) * interval '1 s', 'mail', now(), 'pending', null, "
    "'{}', 'q' from generate_series(1, %1$s) i",
    NULL,
    "update jobs set visibility_at = now() + interval '10 min', status = 'in_transit', attempts = "
    "attempts + 1 where id in (select id from jobs where coalesce(visibility_at <= now(), true) "
    "and coalesce(expires_at > now(), true) and attempts <= 3 and status <> 'completed' order by "
    "created, id limit 1) returning id || '|%1$s'",
    "update jobs set status = 'completed' where id = '%1$s'",
    "update jobs set status = 'pending', visibility_at = now() where id = '%1$s'",
    "update jobs set visibility_at = now() - interval '1 s' where attempts > 0"};
static const struct article piechut = {
    "work_queue_table",
    "truncate queues.queue, queues.work_queue",
    "insert into queues.queue (id, created, queue, state, payload, payload_type) select "
    "gen_random_uuid(), now() - (%1$s - i + 1) * interval '1 s', 'q', 'PENDING', 'x', "
    "'text/plain' from generate_series(1, %1$s) i",
    WORK_SCHEDULE(""),
    WORK_CLAIM,
    "delete from queues.work_queue where id = '%1$s'; update queues.queue set state = 'COMPLETED' "
    "where id = '%1$s'",
    "update queues.queue set state = 'FAILED', tries = tries + 1 where id = '%1$s'; delete from "
    "queues.work_queue where id = '%1$s'",
    WORK_EXPIRE};
static const struct article teti = {
    "tasks_table",
    "truncate tasks restart identity; alter table tasks drop priority, drop error_message",
    "insert into tasks (payload) select jsonb_build_object('task_type', 'mail', 'n', i) from "
    "generate_series(1, %1$s) i",
    NULL,
    "update tasks set status = 'in_progress', updated_at = now() where id = (select id from tasks "
    "where status = 'pending' order by id limit 1 for update skip locked) returning id || '|%1$s'",
    "update tasks set status = 'completed', updated_at = now() where id = %1$s",
    "update tasks set status = 'failed', retry_count = retry_count + 1, updated_at = now() where "
    "id = %1$s",
    NULL};
static const struct article blabosoft = {
    "simple_queue_table",
    "truncate simple_queue",
    "insert into simple_queue (id, created_at, payload) select ('00000000-0000-4000-8000-' || "
    "lpad(i::text, 12, '0'))::uuid, timezone('UTC', now()) - (%1$s - i + 1) * interval '1 s', 'p' "
    "|| i from generate_series(1, %1$s) i",
    NULL,
    "update simple_queue set processing_started_at = timezone('UTC', now()) where id = (select id "
    "from simple_queue where processing_started_at is null order by created_at limit 1 for update "
    "skip locked) returning id || '|%1$s'",
    "delete from simple_queue where id = '%1$s'",
    "update simple_queue set errors = 'it went wrong after 17 s' where id = '%1$s'",
    NULL};
static const struct article pgqueue_lib = {
    "pgqueue_lib",
    "truncate queues.queue, queues.work_queue, queues.queue_history, "
    "queues.schedules, queues.queue_config",
    "insert into queues.queue (tenant_id, id, created, key, type, queue, state, target) select "
    "'t' || i %% 2, gen_random_uuid(), now() - (%1$s - i + 1) * interval '1 s', 'k' || i, 'HTTP', "
    "'q', 'PENDING', '{\"url\": \"/\"}' from generate_series(1, %1$s) i",
    WORK_SCHEDULE("tenant_id, "),
    WORK_CLAIM,
    HISTORY("COMPLETED", "null") "; delete from queues.work_queue where id = '%1$s'",
    HISTORY("FAILED",
            "'no answer from 10.0.0.1'") "; delete from queues.work_queue where id = '%1$s'",
    WORK_EXPIRE};
/* What people add to the articles' tables. */
static const struct {
    const char *adapter, *columns;
} more[] = {
    {"jobs_table",
     "alter table jobs add last_error text, add max_attempts int, add priority int, add "
     "completed_at timestamptz, add updated_at timestamptz"                                       },
    {"work_queue_table",
     "alter table queues.queue add error text, add max_tries smallint, add priority bigint, add "
     "completed_at timestamp, add updated_at timestamptz"                                         },
    {"simple_queue_table",
     "alter table simple_queue add completed_at timestamp, add leased_until timestamp, add "
     "attempts "
     "int not null default 0, add max_attempts text, add priority int, add updated_at timestamptz"},
};

void
article_add_columns(PGconn *conn, const char *adapter)
{
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (!strcmp(more[i].adapter, adapter))
            pg_run(conn, "%s", more[i].columns);
}

static struct article postqueue_more, piechut_more, blabosoft_more;
static const struct article *const articles[] = {
    &pkgsite,       &pkgsite_leased, &pkgsite_priority, &pkgsite_completed,
    &pkgsite_all,   &postqueue,      &piechut,          &teti,
    &blabosoft,     &pgqueue_lib,    &postqueue_more,   &piechut_more,
    &blabosoft_more};

static void
make_more(struct article *made, const struct article *base, const char *name, const char *done,
          const char *fail)
{
    *made = *base;
    made->adapter = name;
    made->done = done ? done : base->done;
    made->fail = fail ? fail : base->fail;
}

static const struct article *
find(const char *adapter)
{
    size_t i = 0;

    make_more(&postqueue_more, &postqueue, "jobs_table+more",
              "update jobs set status = 'completed', completed_at = now() where id = '%1$s'",
              "update jobs set status = 'pending', visibility_at = now(), last_error = 'it went "
              "wrong after 17 s' where id = '%1$s'");
    make_more(&piechut_more, &piechut, "work_queue_table+more",
              "delete from queues.work_queue where id = '%1$s'; update queues.queue set state = "
              "'COMPLETED', completed_at = now() where id = '%1$s'",
              "update queues.queue set state = 'FAILED', tries = tries + 1, error = 'it went wrong "
              "after 17 s' where id = '%1$s'; delete from queues.work_queue where id = '%1$s'");
    make_more(&blabosoft_more, &blabosoft, "simple_queue_table+more",
              "update simple_queue set completed_at = timezone('UTC', now()) where id = '%1$s'",
              NULL);
    while (strcmp(articles[i]->adapter, adapter) != 0)
        assert_true(++i < sizeof articles / sizeof *articles);
    return articles[i];
}

/* The name of the adapter: that of the article without its "+columns". */
static const char *
adapter_of(const char *article)
{
    static char name[40];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(article, "+"), article);
    return name;
}

/* The statement with its words put in: %1$s, %2$s, %%. */
static char *
fill(const char *sql, const char *one, const char *two)
{
    struct buf b = {0};

    for (const char *s = sql; *s; s++) {
        if (*s != '%') {
            buf_add(&b, s, 1);
            continue;
        }
        if (s[1] == '%') {
            buf_add(&b, "%", 1);
            s++;
            continue;
        }
        buf_str(&b, s[1] == '1' ? one : two);
        s += strlen("1$s");
    }
    return b.data;
}

static void
run(PGconn *conn, const char *sql, const char *one, const char *two)
{
    char *text = fill(sql, one, two);

    pg_run(conn, "%s", text);
    free(text);
}

PGconn *
article_new(const char *adapter, const char *database)
{
    PGconn *conn = pg_fixture(database, adapter_of(adapter));

    pg_run(conn, "%s", find(adapter)->empty);
    if (strstr(adapter, "+more"))
        article_add_columns(conn, adapter_of(adapter));
    return conn;
}

PGconn *
article_join(const char *database)
{
    return pg_connect(pg_dsn(database));
}

void
article_push(PGconn *conn, const char *adapter, int n)
{
    char number[20];

    snprintf(number, sizeof number, "%d", n);
    run(conn, find(adapter)->push, number, "");
}

void
article_schedule(PGconn *conn, const char *adapter)
{
    if (find(adapter)->schedule)
        pg_run(conn, "%s", find(adapter)->schedule);
}

const char *
article_claim(PGconn *conn, const char *adapter, const char *node)
{
    static char claims[32][100];
    static unsigned next;
    char *claim = claims[next++ % 32], *sql = fill(find(adapter)->claim, node, "");

    snprintf(claim, sizeof claims[0], "%s", pg_value(conn, "%s", sql));
    free(sql);
    return claim;
}

const char *
article_id(const char *claim)
{
    static char ids[16][100];
    static unsigned next;
    char *id = ids[next++ % 16];

    snprintf(id, sizeof ids[0], "%.*s", (int)strcspn(claim, "|"), claim);
    return id;
}

static void
answer(PGconn *conn, const char *sql, const char *claim)
{
    const char *token = strchr(claim, '|');

    run(conn, sql, article_id(claim), token ? token + 1 : "");
}

void
article_done(PGconn *conn, const char *adapter, const char *claim)
{
    answer(conn, find(adapter)->done, claim);
}

void
article_fail(PGconn *conn, const char *adapter, const char *claim)
{
    answer(conn, find(adapter)->fail, claim);
}

void
article_expire(PGconn *conn, const char *adapter)
{
    pg_run(conn, "%s", find(adapter)->expire);
}

/* --- the console's side ----------------------------------------------------------------------- */

static PGresult *
ask(PGconn *conn, const char *name, enum section_id s, const struct params *p, bool acts)
{
    struct adapter *a = ask_adapter(adapter_of(name), NULL);

    ask_begin(conn, a, !acts);
    PGresult *res = ask_send(conn, a, s, p, "");
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s: %s%s", name, section_kinds[s].name, PQresultErrorMessage(res),
                 adapter_sql(a, s));
    pg_run(conn, "commit");
    adapter_free(a);
    return res;
}

PGresult *
article_ask(PGconn *conn, const char *adapter, enum section_id s, const struct params *p)
{
    return ask(conn, adapter, s, p, false);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *
article_act(PGconn *conn, const char *adapter, enum section_id s, ...)
{
    static struct buf out;
    struct params p = {0};
    char *rows[200];
    va_list ap;

    va_start(ap, s);
    for (int name; (name = va_arg(ap, int)) != PARAM_TOTAL;)
        params_set(&p, (enum param)name, va_arg(ap, const char *));
    va_end(ap);
    PGresult *res = ask(conn, adapter, s, &p, true);
    int n = PQntuples(res);
    assert_in_range(n, 0, 199);
    for (int i = 0; i < n; i++)
        rows[i] = xasprintf("%s %s", PQgetvalue(res, i, 0), PQgetvalue(res, i, 1));
    qsort(rows, (size_t)n, sizeof *rows, by_text);
    buf_free(&out);
    buf_str(&out, "");
    for (int i = 0; i < n; i++) {
        buf_printf(&out, "%s%s", i ? ", " : "", rows[i]);
        free(rows[i]);
    }
    PQclear(res);
    params_done(&p);
    return out.data;
}

static int64_t
number_in_state(PGconn *conn, const char *adapter, const char *state)
{
    struct params p = {0};

    params_set_list(&p, PARAM_STATES, &state, 1);
    params_set_int(&p, PARAM_LIMIT, 100000);
    PGresult *res = article_ask(conn, adapter, SEC_JOBS, &p);
    int64_t n = PQntuples(res);
    PQclear(res);
    params_done(&p);
    return n;
}

const char *
article_counts(PGconn *conn, const char *adapter)
{
    static const char *const states[] = {"scheduled", "ready",  "retry",
                                         "running",   "failed", "blocked"};
    static char text[200];
    PGresult *res = article_ask(conn, adapter, SEC_COUNTS, NULL);
    size_t len = 0;

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        int column = PQfnumber(res, states[i]);
        long long sum = 0;
        for (int row = 0; column >= 0 && row < PQntuples(res); row++)
            sum += strtoll(PQgetvalue(res, row, column), NULL, 10);
        assert_int_equal(sum, number_in_state(conn, adapter, states[i]));
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld", i ? " " : "", sum);
    }
    PQclear(res);
    return text;
}

const char *
article_job(PGconn *conn, const char *adapter, const char *id, const char *column)
{
    static char texts[8][300];
    static unsigned next;
    char *text = texts[next++ % 8];
    struct params p = {0};

    params_set_list(&p, PARAM_IDS, &id, 1);
    PGresult *res = article_ask(conn, adapter, SEC_JOB, &p);
    int i = PQfnumber(res, column);
    assert_true(i >= 0);
    snprintf(text, sizeof texts[0], "%s",
             PQntuples(res) == 0      ? "gone"
             : PQgetisnull(res, 0, i) ? "NULL"
                                      : PQgetvalue(res, 0, i));
    PQclear(res);
    params_done(&p);
    return text;
}
