/*
 * What a job takes with it: a job with every column set goes through each function that ends it,
 * moves it or brings it back, and comes out with all its columns but those that this function is
 * there to change. A new column of table queue must be set here first (every_column_is_set), and
 * then has to come out of each of them.
 */
#include "tests/sql/core.h"

#include <string.h>

/* The queue of a case is setting t.q. Its node has the same name, and so has its act. */
static const char words[] =
    "create table t.before (queue text primary key, id uuid, job jsonb);"
    "create function t.q() returns text language sql as $$ select current_setting('t.q') $$;"
    "create function t.act(n int default 1) returns uuid language sql as"
    " $$ select md5(t.q() || n)::uuid $$;"
    "create function t.id() returns uuid[] language sql as"
    " $$ select array[id] from t.before where queue = t.q() $$;"
    /* two jobs for one lease: 'near' and 'full', which has every column; payload or body */
    "create function t.put(body boolean) returns void language plpgsql as $$ begin"
    "  insert into queue (queue, kind, priority, payload, unique_key, concurrency_key, "
    "lease_timeout)"
    "  values (t.q(), 'k', 3, '{\"name\": \"near\"}', 'v', 'd', '50 min');"
    "  insert into queue (queue, kind, priority, payload, body, payload_type, run_after, "
    "expires_at,"
    "   unique_key, concurrency_key, max_tries, run_timeout, lease_timeout, tries, origin_id,"
    "   last_action, error, error_key, cancel_asked)"
    "  values (t.q(), 'k', 3, case when not $1 then json '{\"name\": \"full\"}' end,"
    "   case when $1 then bytea '\\x00ff' end, 'a/b', now() - interval '1 s', now() + interval '1 "
    "d',"
    "   'u', 'c', 7, '1 h', '50 min', 2, gen_random_uuid(), gen_random_uuid(), 'was 1', 'was N',"
    "   now());"
    "  insert into t.before select queue, id, to_jsonb(q) from queue q where q.max_tries = 7"
    "   and queue = t.q();"
    "  update queue q set cancel_asked = null where q.id = any(t.id());" /* else its end is sure */
    " end $$;"
    "create function t.take() returns void language plpgsql as $$ begin"
    "  perform t.claim(t.q(), 2, null, array[t.q()]);"
    "  update t.held h set name = 'full' from t.before b where h.id = b.id; end $$;"
    "create function t.held(names text, out l bigint[], out v int[], out s bigint[])"
    " language sql as $$ select array_agg(x.lease order by n), array_agg(x.version order by n),"
    "  array_agg(x.seq order by n) from t.last x, regexp_split_to_table($1, ',') z"
    "  where x.node = t.q() and x.name = z $$;"
    "create function t.expire() returns void language sql as $$"
    " update lane set expire_at = '-infinity'; -- when the next step looks again\n"
    " update queue set expires_at = now() where id = any(t.id()) $$;"
    /* the columns that the job has no longer as before, of those that its table has, too */
    "create function t.differs(job jsonb) returns text language sql as $$"
    " select coalesce(string_agg(key, ' ' order by key), 'none')"
    " from t.before b, jsonb_each(b.job) o (key, value) where b.queue = t.q() and $1 ? key"
    " and $1 -> key is distinct from case key when 'cancel_asked' then 'null' else o.value end $$;"
    "create function t.where_now() returns text language sql as $$"
    " select concat_ws('; ',"
    "  (select string_agg('queue ' || q.state || ': ' || t.differs(to_jsonb(q)), ', ') from queue q"
    "   where q.queue = t.q() and (q.id = any(t.id()) or q.origin_id = any(t.id()))),"
    "  (select string_agg('history ' || h.state || ': ' || t.differs(to_jsonb(h)), ', ')"
    "   from history h where h.id = any(t.id()))) $$;";

#define ALL_OF "(t.q(), l, v, s, null::timestamptz[], null::bytea[]) from t.held"
#define FINAL "t.fail(t.q(), 'full', 'broken', null, true)"
#define ACT(verb) verb "(t.act(), 1, t.id())"
#define UNDO "undo(t.act(2), 1, t.act())"
#define FAILED "changed error error_key run_after seq state tries"
#define DONE "history completed: run_after state tries"

struct exit {
    const char *function;
    bool is_claimed;
    const char *before; /* a statement; NULL = none */
    const char *last;   /* the statement that calls the function; NULL = a step of the scheduler */
    const char *now;    /* where the job is then, and which of its columns differ */
};

static const struct exit exits[] = {
    {"complete_single", true,  NULL,                                  "complete" ALL_OF "('full')",                    DONE                                  },
    {"complete_one",    true,  NULL,                                  "complete" ALL_OF "('full,full')",               DONE                                  },
    {"complete_whole",  true,  NULL,                                  "complete" ALL_OF "('near,full')",               DONE                                  },
 /* a job that its lease does not have is named, too */
    {"complete_rest",   true,  NULL,
     "complete(t.q(), l || l[2], v || v[2], s || 0::bigint, null::timestamptz[], null::bytea[])"
     " from t.held('near,full')",                                                                                      DONE                                  },
    {"end_tries",       true,  NULL,                                  FINAL,                                           "queue failed: " FAILED               },
    {"end_tries",       true,  NULL,                                  "t.fail(t.q(), 'full', 'broken', '1 h')",        "queue retry: " FAILED                },
    {"end_tries",       true,  ACT("cancel"),                         "t.fail(t.q(), 'full')",
     "history cancelled: error last_action run_after state tries"                                                                                            },
    {"end_asked",       true,  ACT("cancel"),                         "give_back(t.q(), l, v, s) from t.held('full')",
     "history cancelled: last_action run_after state"                                                                                                        },
    {"take_back",       true,  NULL,                                  "give_back(t.q(), l, v, s) from t.held('full')",
     "queue ready: changed seq state"                                                                                                                        },
    {"expire_jobs",     false, "t.expire()",                          NULL,                                            "history cancelled: error state"      },
    {"remove_jobs",     false, NULL,                                  ACT("discard"),                                  "history cancelled: last_action state"},
    {"remove_jobs",     false, NULL,                                  ACT("cancel"),                                   "history cancelled: last_action state"},
    {"requeue_live",    true,  FINAL,                                 ACT("requeue"),
     "queue blocked: changed error error_key last_action run_after seq tries"                                                                                },
 /* a new job; history has no expires_at */
    {"requeue_history", true,  "complete" ALL_OF "('full')",          ACT("requeue"),
     "queue blocked: changed created error error_key expires_at id last_action origin_id run_after"
     " seq tries; " DONE                                                                                                                                     },
    {"job_put",         false, "set_priority(t.act(), 1, t.id(), 7)", UNDO,
     "queue blocked: last_action seq"                                                                                                                        },
    {"undo_remove",     false, ACT("discard"),                        UNDO,                                            "queue blocked: last_action seq"      },
    {"push_withdraw",   true,  "complete" ALL_OF "('full')",
     "push(t.q(), json '1', id => (t.id())[1])",                                                                       DONE                                  },
};
enum { EXITS = sizeof exits / sizeof *exits };

static int64_t
calls_of(PGconn *c, const char *function)
{
    return pg_int(c,
                  "select coalesce(sum(calls), 0)::bigint from pg_stat_xact_user_functions"
                  " where funcname = '%s'",
                  function);
}

static void
check_exit(PGconn *c, const struct exit *x, int n, bool body)
{
    pg_run(c, "set t.q = 'q%d%s'; select t.put(%s)", n, body ? "b" : "", body ? "true" : "false");
    if (x->is_claimed) {
        core_settle(c);
        pg_run(c, "select t.take()");
    }
    if (x->before)
        pg_run(c, "select %s", x->before);
    if (!x->last)
        core_second(c);
    pg_run(c, "begin");
    int64_t before = calls_of(c, x->function);
    pg_run(c, "select %s", x->last ? x->last : "schedule('test')");
    if (calls_of(c, x->function) == before)
        fail_msg("%d: %s was not called by %s", n, x->function, x->last ? x->last : "a step");
    pg_run(c, "commit");
    const char *now = pg_value(c, "select t.where_now()");
    if (strcmp(now, x->now) != 0)
        fail_msg("%d: %s, a job with a %s: %s, not %s", n, x->function, body ? "body" : "payload",
                 now, x->now);
}

static void
every_column_is_set(void **state)
{
    PGconn *c = core_new("exits_set");

    (void)state;
    pg_run(c, "%s", words);
    pg_run(c, "set t.q = 'q'; select t.put(false)");
    /* error_key and the time of asking are those of a failed and a running job */
    expect(c, "body",
           "select string_agg(key, ' ') from t.before, jsonb_each_text(job) where value is null");
    PQfinish(c);
}

static void
a_job_keeps_what_it_has(void **state)
{
    PGconn *c = core_new("exits");

    (void)state;
    pg_run(c, "%s", words);
    pg_run(c, "set track_functions = 'all'");
    for (int n = 0; n < EXITS; n++)
        for (int body = 0; body < 2; body++)
            check_exit(c, &exits[n], n, body);
    core_check(c);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_column_is_set),
                                       cmocka_unit_test(a_job_keeps_what_it_has)};

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
