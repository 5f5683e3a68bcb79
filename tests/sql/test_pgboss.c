/*
 * pg-boss' list of jobs where its table is large: no index knows their order or who failed, so the
 * table is read from its end, a part at a time. What is found must be the same whichever way it is
 * walked, a page must not cost more the larger the table, and where an index leaves little the list
 * is ordered and whole. Pages that are nearly empty make a large table out of few rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "tests/sql/other.h"

enum { ROWS = 80000, LARGE = 16384 * 8192 };

#define UUID "('00000000-0000-4000-9000-' || lpad(i::text, 12, '0'))::uuid"
#define NUMBERS                                                                             \
    "select coalesce(string_agg(right(id::text, 6)::int::text, ' ' order by %s), '') from " \
    "pgboss.job "

static struct other f;

static int
open_large(void **state)
{
    (void)state;
    pg_group_start(state);
    other_open(&f, "pgboss", "large");
    pg_run(f.conn, "truncate pgboss.job; alter table pgboss.job_common set (fillfactor = 10)");
    pg_run(f.conn, "insert into pgboss.queue (name) select 'q' || i from generate_series(0, 9) i "
                   "union all select 'rare'");
    /* the later a row, the older its job: the order of rows is not that of time */
    pg_run(f.conn,
           "insert into pgboss.job (name, id, state, created_on, started_on, completed_on, output) "
           "select 'q' || i %% 10, " UUID ", case i %% 2000 when 0 then 'failed' else 'completed' "
           "end::pgboss.job_state, now() - i * interval '1 s', now() - i * interval '1 s', now(), "
           "jsonb_build_object('message', 'broken ' || i %% 4000) from generate_series(1, %d) i",
           ROWS);
    pg_run(f.conn, "insert into pgboss.job (name, id, created_on) select 'rare', " UUID
                   ", now() - i * interval '1 s' from generate_series(100001, 100005) i");
    pg_run(f.conn, "vacuum analyze pgboss.job_common");
    assert_true(pg_int(f.conn, "select pg_relation_size('pgboss.job_common')") >= LARGE);
    return 0;
}

static int
close_large(void **state)
{
    other_close(&f);
    return pg_group_stop(state);
}

static void
add_numbers(struct buf *all, char *ids, int *rows)
{
    for (char *id; (id = strsep(&ids, " "));)
        if (*id && ++*rows)
            buf_printf(all, "%s%ld", all->len ? " " : "", strtol(id + strlen(id) - 6, NULL, 10));
}

/* The numbers of all jobs that a search finds by pages of so many rows, looking at n at a time. */
static char *
walk(const char *search, int page, int n)
{
    struct buf all = {0};
    char *limit = xasprintf("limit=%d", page), *look = xasprintf("n=%d", n), *from = NULL;
    bool more = true;

    for (int turns = 0; more; turns++) {
        int rows = 0;
        char *ids = xstrdup(other_look(&f, SEC_JOBS, "id", search, limit, look, from, NULL));
        const char *cursors = other_look(&f, SEC_JOBS, "cursor", search, limit, look, from, NULL);
        const char *last = strrchr(cursors, ' ');
        bool goes_on = *cursors && (!*ids || ids[strlen(ids) - 1] == ' ');
        add_numbers(&all, ids, &rows);
        assert_true(turns < 500 && rows <= page);
        more = goes_on || rows == page;
        free(from);
        from = xasprintf("cursor=%s", last ? last + 1 : cursors);
        free(ids);
    }
    free(limit);
    free(look);
    free(from);
    return all.data ? all.data : xstrdup("");
}

static void
finds_the_same(const char *search, const char *where)
{
    static const int ways[][2] = {
        {1000, 100000},
        {1000, 1000  },
        {7,    10000 },
        {1,    10000 },
        {40,   300   },
    };
    char *expected = xstrdup(pg_value(f.conn, NUMBERS "where %s", "ctid desc", where));

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char *found = walk(search, ways[i][0], ways[i][1]);
        if (strcmp(found, expected) != 0)
            fail_msg("%s, pages of %d, %d looked at:\n%s\nnot\n%s", search, ways[i][0], ways[i][1],
                     found, expected);
        free(found);
    }
    free(expected);
}

static void
every_way_finds_the_same(void **state)
{
    (void)state;
    pg_needs(f.conn, 14, "it can't read a table from a page on, so all is read and put in order");
    finds_the_same("states={failed}", "state = 'failed'");
    finds_the_same("error=broken 7", "state = 'failed'");
    finds_the_same("words={en 2000}", "state = 'failed' and output ->> 'message' = 'broken 2000'");
    finds_the_same("states={running}", "state = 'active'");
}

/* What an index leaves is whole and the newest first, whatever lies where. */
static void
few_are_in_order(void **state)
{
    (void)state;
    expect_row(&f, "100001 100002 100003 100004 100005", NUMBERS "where name = 'rare'",
               "created_on desc");
    const char *rare = "rare:00000000-0000-4000-9000-000000100001 "
                       "rare:00000000-0000-4000-9000-000000100002";
    expect_look(&f, rare, SEC_JOBS, "id", "queue=rare", "limit=2");
    expect_look(&f, rare, SEC_JOBS, "id", "states={ready}", "limit=2");
    expect_look(&f, "completed failed", SEC_JOBS, "state",
                "ids={q0:00000000-0000-4000-9000-000000002000,q1:00000000-0000-4000-9000-"
                "000000000001}");
    expect_look(&f, "created", SEC_JOB, "raw_state",
                "ids={rare:00000000-0000-4000-9000-000000100001}");
}

/* The table's oid in a cursor may be larger than the largest int: the cursor still finds its place.
 */
static void
any_table_goes_on(void **state)
{
    (void)state;
    char *first = xstrdup(pg_value(f.conn, "select name || ':' || id from pgboss.job where ctid = "
                                           "(select max(ctid) from pgboss.job where ctid <= "
                                           "'(5,1)')"));
    expect_look(&f, first, SEC_JOBS, "id", "cursor=(5,1)/4294967295", "limit=1");
    free(first);
}

static void
a_page_costs_little(void **state)
{
    (void)state;
    pg_needs(f.conn, 14, "it can't read a table from a page on, so all is read and put in order");
    int64_t pages = pg_int(f.conn, "select pg_relation_size('pgboss.job_common') / 8192");
    assert_in_range(other_buffers(&f, SEC_JOBS, "limit=200", NULL), 1, 1500);
    assert_in_range(other_buffers(&f, SEC_JOBS, "limit=200", "states={completed}", NULL), 1, 1500);
    assert_in_range(other_buffers(&f, SEC_JOBS, "limit=200", "queue=rare", NULL), 1, 500);
    assert_in_range(other_buffers(&f, SEC_JOBS, "limit=200", "states={failed}", "n=1000", NULL), 1,
                    4000);
    /* a place that is not there any more, or never was */
    expect_look(&f, "", SEC_JOBS, "id", "cursor=(0,1)/0");
    assert_in_range(
        other_buffers(&f, SEC_JOBS, "limit=200", "cursor=(999999999,9)/9", "n=10000", NULL), 0,
        pages / 2);
}

static long
sum(enum section_id section, const char *column)
{
    char *all = xstrdup(other_look(&f, section, column, NULL)), *rest = all;
    long n = 0;

    for (char *value; (value = strsep(&rest, " "));)
        n += strtol(value, NULL, 10);
    free(all);
    return n;
}

/* If the engine has not counted, the counts are estimated from a part, and marked so. Else the
 * engine's own counts are shown. */
static void
counts_are_reckoned(void **state)
{
    (void)state;
    expect_look(&f, "t t t t t t t t t t t t t t t", SEC_COUNTS, "approx");
    assert_in_range(sum(SEC_COUNTS, "failed"), ROWS / 2000 / 4, ROWS / 2000 * 2);
    assert_non_null(strstr(other_look(&f, SEC_COUNTS_FINAL, "approx", NULL), "t t"));
    assert_in_range(sum(SEC_COUNTS_FINAL, "completed"), ROWS * 3 / 4, ROWS * 5 / 4);
    pg_run(f.conn, "update pgboss.queue set monitor_on = now(), failed_count = 7");
    assert_int_equal(sum(SEC_COUNTS, "failed"), 15 * 7);
    pg_run(f.conn, "update pgboss.queue set monitor_on = now() - interval '1 h' where name = 'q1'");
    assert_int_equal(sum(SEC_COUNTS, "failed"), 14 * 7);
}

/* The purge leaves a completed job that another job waits for: the engine notifies the other job a
 * little later, and needs the completed one for that. */
static void
who_is_waited_for_stays(void **state)
{
    (void)state;
    pg_run(f.conn, "update pgboss.job set state = 'completed', completed_on = now(), blocking = "
                   "right(id::text, 1) = '4' where name = 'rare' and right(id::text, 1) in ('4', "
                   "'5')");
    expect_look(&f, "1", SEC_PURGE_PREVIEW, "n", "queue=rare");
    expect_act(&f, "rare:00000000-0000-4000-9000-000000100005 purged", SEC_PURGE, "queue=rare");
    pg_run(f.conn, "update pgboss.job set blocking = false where name = 'rare'");
    expect_act(&f, "rare:00000000-0000-4000-9000-000000100004 purged", SEC_PURGE, "queue=rare");
}

/* Two jobs of one key that must run in their order, whose old queue takes neither: only the first
 * one fails. The other one is as it was, so it is not counted as changed. */
static void
what_stays_is_not_redriven(void **state)
{
    (void)state;
    pg_run(f.conn, "insert into pgboss.queue (name, policy) values ('src', 'short'), "
                   "('dlq', 'key_strict_fifo')");
    pg_run(f.conn, "insert into pgboss.job (name, id, policy, singleton_key, source_name) "
                   "select case i when 1 then 'src' else 'dlq' end, " UUID
                   ", case i when 1 then 'short' else 'key_strict_fifo' end, 'k', "
                   "case when i > 1 then 'src' end from generate_series(1, 3) i");
    expect_act(&f,
               "dlq:00000000-0000-4000-9000-000000000002 failed (its key waits in src), "
               "dlq:00000000-0000-4000-9000-000000000003 - (waits for the job before it)",
               SEC_REDRIVE,
               "ids={dlq:00000000-0000-4000-9000-000000000002,"
               "dlq:00000000-0000-4000-9000-000000000003}");
    assert_string_equal(pg_value(f.conn, "select string_agg(state::text, ' ' order by id) from "
                                         "pgboss.job where name = 'dlq'"),
                        "failed created");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_finds_the_same),   cmocka_unit_test(few_are_in_order),
        cmocka_unit_test(any_table_goes_on),          cmocka_unit_test(a_page_costs_little),
        cmocka_unit_test(counts_are_reckoned),        cmocka_unit_test(who_is_waited_for_stays),
        cmocka_unit_test(what_stays_is_not_redriven),
    };

    return cmocka_run_group_tests(tests, open_large, close_large);
}
