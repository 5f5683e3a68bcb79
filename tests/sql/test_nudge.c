/*
 * An operator's act that makes something to claim wakes an idle worker at once, though a scheduler
 * lives that would find it in its time; one that changes nothing leaves it alone. And nobody can
 * bar the way with a lock that anyone may take.
 */
#include "tests/sql/core.h"

#include <poll.h>
#include <stdio.h>

#define ACT(n) "'00000000-0000-7000-8000-0000000000" #n "'"

/* The idle worker: asks until it waits, and nobody has woken it. */
static PGconn *
idle(const char *database)
{
    PGconn *w = core_join(database);

    for (int i = 0; i < 2; i++)
        expect(w, "0", "select slot from claim_or_wait('idle', 1, null, null, true, %d, %d)",
               PQbackendPID(w), i - 1);
    return w;
}

static bool
is_woken(PGconn *w)
{
    struct pollfd fd = {.fd = PQsocket(w), .events = POLLIN};

    poll(&fd, 1, 60000);
    PQconsumeInput(w);
    PGnotify *n = PQnotifies(w);
    PQfreemem(n);
    return n != NULL;
}

static void
acts_wake_who_waits(void **state)
{
    static const struct {
        const char *before, *act;
    } cases[] = {
        {"select t.claim('n'), t.fail('n', final => true)",
         "select requeue(" ACT(01) ", 1, array(select id from queue))"                                                                     },
        {"select t.claim('n'), t.fail('n', retry_in => '1 h')",
         "select requeue_where(" ACT(02) ", 1, 'q', '{retry}')"                                                                            },
        {"select pause(" ACT(03) ", 'q')",                                      "select resume(" ACT(04) ", 'q')"                          },
        {"select set_queue(" ACT(05) ", 'q', '{\"max_running\": 0}')",
         "select set_queue(" ACT(06) ", 'q', '{\"max_running\": 1}')"                                                                      },
        {"select t.claim('n')",                                                 "select release(" ACT(07) ", 1, 'n', false, force => true)"},
        {"select t.claim('n'), set_queue(" ACT(10) ", 'q', '{\"rate\": 100}')",
         "select release(" ACT(11) ", 1, 'n', false, force => true)"                                                                       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[16];
        snprintf(name, sizeof name, "acts%zu", i);
        PGconn *c = core_new(name), *w;
        pg_run(c, "select t.push('q', 'a')");
        core_settle(c);
        pg_run(c, "%s", cases[i].before);
        core_settle(c);
        pg_run(c, "select schedule('test')");
        w = idle(name);
        pg_run(c, "%s", cases[i].act);
        if (!is_woken(w))
            fail_msg("%s woke nobody", cases[i].act);
        expect(w, "a",
               "select payload->>'name' from claim_or_wait('idle', 1, null, null, true,"
               " %d, 0)",
               PQbackendPID(w));
        core_check(c);
        PQfinish(w);
        PQfinish(c);
    }
}

/* Anybody can guess the number of an advisory lock and take the lock: no function may wait for one.
 */
static void
no_function_waits_for_an_advisory_lock(void **state)
{
    PGconn *c = core_new("advisory");

    (void)state;
    expect(c, "",
           "select coalesce(string_agg(proname, ','), '') from pg_proc where pronamespace ="
           " 'queues'::regnamespace and prosrc ~ 'pg_advisory_(xact_)?lock' and proname <>"
           " 'act_begin'"); /* nobody can guess its uuid */
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acts_wake_who_waits),
        cmocka_unit_test(no_function_waits_for_an_advisory_lock),
    };

    return cmocka_run_group_tests(tests, core_setup, core_teardown);
}
